//! What every simulated world stands on.
//!
//! A *world* is the code that runs in production, with everything around it played: one node ([`crate::run`]), a
//! network of validators ([`crate::validators`]), the payment lane ([`crate::run_lane`]), or a continuous market
//! ([`crate::run_market`]). All of them draw from [`Dice`] alone, and the kernel has what they are played with:
//!
//! * [`Schedule`]: a clock that jumps from event to event;
//! * [`Links`], which break and report it, and [`Flight`], datagrams that are lost, repeated and reordered;
//! * [`Crash`]: what a process's disks are left with when the machine stops in the middle of a write, and [`LogDisk`],
//!   a file that is only appended to;
//! * [`Mistake`]: what a world can be told to do wrong. A check that never fails proves nothing, so each has a seed
//!   that finds it ([`crate::found`]);
//! * [`Trace`]: a digest over all events, by which two runs are compared;
//! * [`run`]: one seed, one thread; a panic of an engine is a finding like any other.

mod dice;
mod disks;
mod links;
mod log_disk;
mod mistake;
mod run;
mod schedule;
mod trace;

pub(crate) use dice::Dice;
pub(crate) use disks::{Crash, Disks};
pub(crate) use links::{Flight, Links};
pub(crate) use log_disk::{LogDisk, drawn_key};
pub use mistake::{EngineMistake, LaneMistake, MarketMistake, Mistake};
pub use run::Failure;
pub(crate) use run::{World, run};
pub(crate) use schedule::Schedule;
pub(crate) use trace::Trace;
