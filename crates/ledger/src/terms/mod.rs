//! What a chain is founded on: its genesis, the terms of its places of custody, its limits, how its blocks get their
//! time, and the terms of a restart. All of it is fixed before the first block, and depends on nothing above it.

mod forks;
mod genesis;
mod lane;
mod limits;
mod listings;
mod parameters;
mod pools;
mod restart;
mod rules;
mod time;
mod venues;

pub use forks::{Fork, ForkSchedule, NETWORK_SPEC, UnknownFork};
pub(crate) use genesis::{CHARTER_HEIGHTS_MAX, STAKED, STAKES_MAX};
pub use genesis::{DEVELOPERS_CHAIN, Genesis, GenesisError, LEAST_UNITS, Listing, Membership, usual_fee};
pub use lane::{LaneAsset, LaneOutflow, LaneOutput, LaneTerms};
pub use limits::{BLOCK_BYTES_MAX, Limits, TRANSACTION_GAS_MAX, USUAL_BLOCK_GAS, VOTES_BYTES_MAX, votes_bytes};
pub use listings::{ListingPolicy, ListingTerms};
pub use parameters::Parameters;
pub(crate) use parameters::only_rises;
pub use pools::PoolTerms;
pub use restart::{Restart, RestartError, RestartedLane};
pub use rules::{RULES_FLOOR, RULES_LEAST, RULES_NEWEST, followed, manifest, text_of};
pub use time::{BlockClock, TIME_MAX_MS};
pub use venues::VenueTerms;
