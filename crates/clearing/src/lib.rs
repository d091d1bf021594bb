//! A batch of limit orders in, one price vector and exact trade amounts out; also checks such an answer.

mod amounts;
mod book;
mod clearing;
mod curve;
mod demand;
mod dense;
mod fills;
mod float;
mod market;
mod newton;
mod quality;
mod rate;
mod solve;
mod start;
mod verify;
mod wide;

pub use book::{Book, InputError, Offer, PairBook, Params, Solver, SortedOffers};
pub use clearing::{Clearing, Obstacle, Report, Trade};
pub use fills::{PARTIAL_TRIES, PairFills, Partial, fills};
pub use rate::{Rate, must_fill};
pub use solve::clear;
pub use verify::{Verified, Violation, verify};
