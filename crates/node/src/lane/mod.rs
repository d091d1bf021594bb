//! A validator's part in the payment lane: its keys and seat, and the host that runs its shards.

pub(crate) mod host;
pub(crate) mod keys;
pub(crate) mod restart;
pub(crate) mod seat;
