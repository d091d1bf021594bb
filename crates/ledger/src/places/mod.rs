//! The places of custody: where units of assets are.

pub(crate) mod accounts;
pub(crate) mod bridge;
pub(crate) mod offers;
pub(crate) mod stakes;
