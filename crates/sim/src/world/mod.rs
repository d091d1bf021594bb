//! What every simulated world stands on.
//!
//! A *world* is the code that runs in production, with everything around it played: one node ([`crate::run`]), a
//! network of validators ([`crate::validators`]), the payment lane ([`crate::run_lane`]), or a continuous market
//! ([`crate::run_market`]). All of them draw from [`kernel::Dice`] alone and are played with the dice, clock, links and
//! disks of [`kernel`]. Here is what else they share:
//!
//! * [`Mistake`]: what a world can be told to do wrong. A check that never fails proves nothing, so each has a seed
//!   that finds it ([`crate::found`]);
//! * [`Trace`]: a digest over all events, by which two runs are compared;
//! * [`run`]: one seed, one thread; a panic of an engine is a finding like any other.

mod mistake;
mod run;
mod trace;

pub use mistake::{EngineMistake, LaneMistake, MarketMistake, Mistake};
pub use run::Failure;
pub(crate) use run::{World, run};
pub(crate) use trace::Trace;
