//! Block-STM.

mod bell;
mod block;
mod counters;
mod executor;
mod locations;
mod memory;
#[cfg(test)]
mod models;
mod scheduler;
mod sync;
mod view;
mod vm;
mod workers;

pub use block::{Committed, Execution, FinalWrites, TransactionPanicked, Tuning};
pub use executor::Tally;
pub use scheduler::CommitRule;
pub use view::TransactionView;
pub use vm::{Blocked, CommitSink, Number, Proceed, Vm};
pub use workers::Workers;
