//! The whole system under faults, on one thread, from one seed.
//!
//! Four worlds run the code that runs in production, each with everything around it played: one node with its clients
//! and its disk ([`run`]), a network of validators ([`validators`]), the payment lane ([`run_lane`]), and a continuous
//! market with its venue and its custody ([`run_market`]). They stand on [`kernel`]: clock, dice, links and
//! disks. Each [`Mistake`] that a world can be told to make has a seed that finds it ([`found`]).
//!
//! A failure prints the seed. The same seed makes the same run: the trace of its report is a digest over all events.
//!
//! **Not simulated yet**: misdirected writes, and threads that really run in parallel.

mod controls;
mod ethereum;
mod fees;
mod lane;
mod listings;
mod market;
mod mistakes;
mod policies;
mod proposals;
mod sessions;
mod solo;
pub mod validators;
mod world;

pub use controls::ControlCounts;
pub use lane::{LaneOptions, LaneReport, run_lane};
pub use listings::ListingCounts;
pub use market::{MarketOptions, MarketReport, run_market};
pub use mistakes::{FOUND_ELSEWHERE, FoundMistake, Scene, found};
pub use policies::PolicyCounts;
pub use proposals::ProposalCounts;
pub use sessions::SessionCounts;
pub use solo::{CrashReport, SimOptions, SimReport, crash_points, run};
pub use world::{EngineMistake, Failure, LaneMistake, MarketMistake, Mistake};
