//! One seed of a world.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A simulated world.
pub(crate) trait World {
    /// What a run counts.
    type Report: Send;

    /// Runs until the faults have stopped and everything pending is complete; else the violated invariant.
    fn run(&mut self) -> Result<Self::Report, String>;

    /// The height of the history.
    fn height(&self) -> u64;
}

/// A violated invariant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("seed {seed}, after block {height}: {what}")]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// Height of the history at that time.
    pub height: u64,
    /// The violation.
    pub what: String,
}

/// Runs a world of this seed. The engines use rayon's current pool: this one has a single thread. A panic of an engine
/// is a finding like any other, and needs its seed.
pub(crate) fn run<W: World>(seed: u64, world: impl FnOnce() -> W + Send) -> Result<W::Report, Failure> {
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    one.install(|| {
        let mut world = world();
        let held = catch_unwind(AssertUnwindSafe(|| world.run()));
        let held = held.unwrap_or_else(|panic| Err(format!("panic: {}", message(&*panic))));
        held.map_err(|what| Failure { seed, height: world.height(), what })
    })
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message")
}
