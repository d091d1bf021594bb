//! The counters of the collaborative scheduler, and the double collect.
//!
//! - `execution` and `validation` are lower bounds of the transactions that need an execution or a validation. A
//!   thread claims the next one by fetch-and-increment. A thread that creates work below a counter lowers the
//!   counter.
//! - `decreases` counts how often either was lowered.
//! - `active` counts tasks that are claimed and not finished. **A task counts as active before its counter
//!   advances**, so that a counter at the end never hides a task that has not begun. Only the double collect needs
//!   it.
//! - `done` is set when, between two equal reads of `decreases`, both counters were at the end and no task was
//!   active. Only active tasks create work, and they lower a counter before they finish. So no work is left.

use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};

/// Data that threads modify frequently, on separate cache lines from data that they only read: a core that writes to
/// a line takes it from the others. Two lines, because processors fetch them in pairs.
#[repr(align(128))]
pub(crate) struct Apart<T>(pub T);

impl<T> std::ops::Deref for Apart<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

pub(crate) struct Counters {
    size: u32,
    /// Whether the double collect ends the run; otherwise the last commit does.
    collects: bool,
    execution: Apart<AtomicU32>,
    validation: Apart<AtomicU32>,
    decreases: AtomicU32,
    active: Apart<AtomicU32>,
    done: Apart<AtomicBool>,
}

impl Counters {
    pub fn new(size: u32, collects: bool) -> Self {
        Counters {
            size,
            collects,
            execution: Apart(AtomicU32::new(0)),
            validation: Apart(AtomicU32::new(0)),
            decreases: AtomicU32::new(0),
            active: Apart(AtomicU32::new(0)),
            done: Apart(AtomicBool::new(false)),
        }
    }

    pub fn execution(&self) -> u32 {
        self.execution.load(SeqCst)
    }

    pub fn validation(&self) -> u32 {
        self.validation.load(SeqCst)
    }

    /// Claims the next transaction to execute, as an active task, if there is one.
    pub fn claim_execution(&self) -> Option<u32> {
        self.claim(&self.execution)
    }

    /// Claims the next transaction to validate, as an active task, if there is one.
    pub fn claim_validation(&self) -> Option<u32> {
        self.claim(&self.validation)
    }

    fn claim(&self, counter: &AtomicU32) -> Option<u32> {
        self.begin();
        let txn = counter.fetch_add(1, SeqCst);
        if txn < self.size {
            return Some(txn);
        }
        // Nothing is lost: the counter is lowered by minimum, and this overshoot is above the size.
        self.finish();
        None
    }

    /// A task begins.
    pub fn begin(&self) {
        if self.collects {
            self.active.fetch_add(1, SeqCst);
        }
    }

    /// A task and everything that it caused has ended.
    pub fn finish(&self) {
        if self.collects {
            let before = self.active.fetch_sub(1, SeqCst);
            debug_assert!(before > 0, "each task finishes once");
        }
    }

    /// A transaction from `txn` on needs an execution. Only active tasks may call this.
    pub fn lower_execution(&self, txn: u32) {
        debug_assert!(!self.collects || self.active.load(SeqCst) > 0, "only active tasks create work");
        self.execution.fetch_min(txn, SeqCst);
        self.decreases.fetch_add(1, SeqCst);
    }

    /// Transactions from `txn` on need a validation. Only active tasks may call this.
    pub fn lower_validation(&self, txn: u32) {
        debug_assert!(!self.collects || self.active.load(SeqCst) > 0, "only active tasks create work");
        self.validation.fetch_min(txn, SeqCst);
        self.decreases.fetch_add(1, SeqCst);
    }

    /// Transactions below `txn` are committed and need no validation.
    pub fn raise_validation(&self, txn: u32) {
        self.validation.fetch_max(txn, SeqCst);
    }

    /// The double collect: sets `done` if there is no work and there will be none.
    pub fn check_done(&self) {
        let decreases = self.decreases.load(SeqCst);
        if self.execution().min(self.validation()) >= self.size
            && self.active.load(SeqCst) == 0
            && self.decreases.load(SeqCst) == decreases
        {
            self.set_done();
        }
    }

    pub fn set_done(&self) {
        self.done.store(true, SeqCst);
    }

    pub fn is_done(&self) -> bool {
        self.done.load(SeqCst)
    }
}
