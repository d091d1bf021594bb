//! A validator's part in the payment lane: its keys and seat, and the host that runs its shards.

pub(crate) mod apart;
pub(crate) mod host;
pub(crate) mod keys;
pub(crate) mod line;
pub(crate) mod process;
pub(crate) mod restart;
pub(crate) mod room;
pub(crate) mod seat;
mod shown;
