//! The kernel of all simulations: whatever surrounds the code that runs in production while it is simulated.
//!
//! A *simulation kernel* is the part of a discrete event simulation that does not depend on what is simulated: random
//! numbers, the clock and its queue of events, and the faults of links, disks and machines. The worlds of `sim`,
//! `fairnet::sim`, `fuzz`, `bench` and the tests draw from this one.
//!
//! * [`Dice`]: SplitMix64; one seed, one run. [`RemainderDice`] reduces by remainders, which older seeds of tests mean;
//!   [`Xoshiro`] serves the laws of delay: [`DelayLaw`], [`LawTable`], [`Spikes`].
//! * [`Calendar`]: events by time; [`EventClock`]: a clock that jumps from event to event.
//! * [`Links`], which break and report it; [`Flight`], datagrams that are lost, repeated and reordered; and
//!   [`DatagramFaults`], what else happens to them.
//! * [`FaultDisk`]: a disk that fails as real disks do; [`Crash`]: what is left of disks when the machine stops in the
//!   middle of a write; [`LogDisk`]: a file that is only appended to.
//! * [`Planted`]: the place in a production type where a simulation plants a mistake. Only with the feature `mistakes`
//!   has it a content; the product is built without, so the compiler removes every mistake from it.
//!
//! Invariant: all of it is a function of its seed and its calls. No thread, socket, clock or real disk; links nothing.

mod calendar;
mod crash;
mod dice;
mod disk;
mod event_clock;
mod law;
mod links;
mod log_disk;
mod planted;
mod xoshiro;

pub use calendar::Calendar;
pub use crash::Crash;
pub use dice::{Dice, RemainderDice};
pub use disk::{DiskFault, FaultDisk, FaultFile, FaultLock, Surviving};
pub use event_clock::EventClock;
pub use law::{DelayLaw, LawTable, SpikeState, Spikes};
pub use links::{DatagramFaults, Flight, Links};
pub use log_disk::LogDisk;
pub use planted::{PLANTABLE, Planted};
pub use xoshiro::Xoshiro;
