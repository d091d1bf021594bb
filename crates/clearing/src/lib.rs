//! A batch of limit orders in, one price vector and exact trade amounts out; also checks such an answer.

mod book;
mod clearing;
mod fills;
mod rate;
mod verify;
mod wide;

pub use book::{Book, InputError, PairBook, Params, Solver};
pub use clearing::{Clearing, Obstacle, Report, Trade};
pub use fills::{PARTIAL_TRIES, PairFills, Partial, fills};
pub use rate::{Rate, must_fill};
pub use verify::{Verified, Violation, verify};
