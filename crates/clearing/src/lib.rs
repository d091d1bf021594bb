//! A batch of limit orders in, one price vector and exact trade amounts out; also checks such an answer.

mod amounts;
mod arc;
mod book;
mod clearing;
mod curve;
mod demand;
mod dense;
mod fills;
mod float;
mod flow;
mod market;
mod newton;
mod quality;
mod rate;
mod rounding;
mod search;
mod solve;
mod start;
mod tatonnement;
mod verify;
mod wide;

pub use amounts::Amounts;
pub use book::{Book, InputError, Offer, PairBook, Params, Solver, SortedOffers};
pub use clearing::{Clearing, Obstacle, Report, Trade};
pub use fills::{PARTIAL_TRIES, PairFills, Partial, fills};
pub use rate::{Rate, must_fill};
pub use solve::{Market, Prices, clear};
pub use verify::{Verified, Violation, verify};
