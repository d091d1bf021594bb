//! Threads that persist between blocks.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::pace::Pace;
use crate::sync::{Arc, Condvar, Mutex, lock, thread};

/// Work that several threads do together.
pub(crate) trait Work: Send + Sync {
    fn work(&self);
}

/// Threads that help with blocks, and park between them. Dropping the workers ends the threads.
pub struct Workers {
    shared: Arc<Shared>,
    helpers: Vec<thread::JoinHandle<()>>,
    pub(crate) pace: Pace,
}

struct Shared {
    assignment: Mutex<Assignment>,
    wake: Condvar,
    left: Condvar,
}

/// The offered work, how many more helpers it wants, and how many are working on it.
#[derive(Default)]
struct Assignment {
    work: Option<Arc<dyn Work>>,
    wanted: usize,
    at_work: usize,
    panic: Option<Box<dyn std::any::Any + Send>>,
    ended: bool,
}

impl Workers {
    /// The caller and `threads - 1` helpers. Zero means one.
    pub fn new(threads: usize) -> Self {
        Workers::with_stacks(threads, 8 << 20)
    }

    /// As [`new`](Self::new), with a stack size in bytes for the helpers. A VM runs on the stack of the calling
    /// thread, too.
    ///
    /// # Panics
    ///
    /// If the system cannot create more threads.
    pub fn with_stacks(threads: usize, stack_bytes: usize) -> Self {
        let assignment = Mutex::new(Assignment::default());
        let shared = Arc::new(Shared { assignment, wake: Condvar::new(), left: Condvar::new() });
        let help = |number| {
            let shared = Arc::clone(&shared);
            let builder = thread::Builder::new().name(format!("stm-{number}")).stack_size(stack_bytes);
            builder.spawn(move || shared.help()).expect("the system gives a thread")
        };
        let helpers = (1..threads).map(help).collect();
        Workers { shared, helpers, pace: Pace::default() }
    }

    /// Number of threads that work on a block, the caller included.
    pub fn threads(&self) -> usize {
        self.helpers.len() + 1
    }

    /// Does work together with the helpers. When it returns, no helper holds the work any more.
    pub(crate) fn run<W: Work + 'static>(&mut self, work: W) -> W {
        let work = Arc::new(work);
        {
            let mut assignment = lock(&self.shared.assignment);
            assignment.work = Some(Arc::clone(&work) as Arc<dyn Work>);
            assignment.wanted = self.helpers.len();
            self.shared.wake.notify_all();
        }
        let result = catch_unwind(AssertUnwindSafe(|| work.work()));
        let mut assignment = lock(&self.shared.assignment);
        // Helpers that have not started yet need not start.
        assignment.work = None;
        assignment.wanted = 0;
        while assignment.at_work > 0 {
            assignment = self.shared.left.wait(assignment).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        let panic = result.err().or(assignment.panic.take());
        drop(assignment);
        if let Some(panic) = panic {
            std::panic::resume_unwind(panic);
        }
        Arc::into_inner(work).expect("helpers have left it")
    }
}

impl Shared {
    fn help(&self) {
        let mut assignment = lock(&self.assignment);
        while !assignment.ended {
            let wanted = assignment.wanted > 0;
            let Some(work) = assignment.work.clone().filter(|_| wanted) else {
                assignment = self.wake.wait(assignment).unwrap_or_else(std::sync::PoisonError::into_inner);
                continue;
            };
            assignment.wanted -= 1;
            assignment.at_work += 1;
            drop(assignment);
            let result = catch_unwind(AssertUnwindSafe(|| work.work()));
            drop(work);
            assignment = lock(&self.assignment);
            assignment.panic = result.err().or(assignment.panic.take());
            assignment.at_work -= 1;
            self.left.notify_one();
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        lock(&self.shared.assignment).ended = true;
        self.shared.wake.notify_all();
        for helper in self.helpers.drain(..) {
            // A helper panics only if this crate has a defect; there is nobody to report it to.
            let _ = helper.join();
        }
    }
}
