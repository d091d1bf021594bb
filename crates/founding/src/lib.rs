//! How a network begins: the genesis file that people write and read, and the founders who agree on one.
//!
//! A genesis file states decimals and symbols; [`genesis_file`] turns it into the ledger's `Genesis` and back without
//! loss. [`Founding`] names the founders, their keys and addresses, and makes the `Network` of a replica from them.
//!
//! **Invariant**: what is read is what was written; a file with an unknown or impossible field is refused with the name
//! of the field. Nothing here runs a network.

mod asset_part;
mod charter_part;
mod fork_part;
mod founders;
pub mod genesis_file;
mod lane_part;
mod limits_part;
mod listing_part;
mod pool_part;
mod seal_part;
mod venue_part;

pub use founders::*;
