//! What controls mean in each place of custody, by a ledger that has all places.

mod contracts;
mod native;
mod random;
mod venues;
pub(super) mod world;
