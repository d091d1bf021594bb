//! Threads that persist between blocks.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::sync::{Arc, Condvar, Mutex, lock, thread};

/// Work that several threads do together.
pub(crate) trait Work: Send + Sync {
    fn work(&self);
}

/// Threads that help with blocks, and park between them. Dropping the workers ends the threads.
pub struct Workers {
    shared: Arc<Shared>,
    helpers: Vec<thread::JoinHandle<()>>,
}

struct Shared {
    slot: Mutex<Slot>,
    wake: Condvar,
    left: Condvar,
}

/// The offered work, how many more helpers it wants, and how many are working on it.
#[derive(Default)]
struct Slot {
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
        let slot = Mutex::new(Slot::default());
        let shared = Arc::new(Shared { slot, wake: Condvar::new(), left: Condvar::new() });
        let help = |number| {
            let shared = Arc::clone(&shared);
            let builder = thread::Builder::new().name(format!("stm-{number}")).stack_size(stack_bytes);
            builder.spawn(move || shared.help()).expect("the system gives a thread")
        };
        let helpers = (1..threads).map(help).collect();
        Workers { shared, helpers }
    }

    /// Number of threads that work on a block, the caller included.
    pub fn threads(&self) -> usize {
        self.helpers.len() + 1
    }

    /// Does work together with the helpers. When it returns, no helper holds the work any more.
    pub(crate) fn run<W: Work + 'static>(&mut self, work: W) -> W {
        let work = Arc::new(work);
        {
            let mut slot = lock(&self.shared.slot);
            slot.work = Some(Arc::clone(&work) as Arc<dyn Work>);
            slot.wanted = self.helpers.len();
            self.shared.wake.notify_all();
        }
        let result = catch_unwind(AssertUnwindSafe(|| work.work()));
        let mut slot = lock(&self.shared.slot);
        // Helpers that have not started yet need not start.
        slot.work = None;
        slot.wanted = 0;
        while slot.at_work > 0 {
            slot = self.shared.left.wait(slot).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        let panic = result.err().or(slot.panic.take());
        drop(slot);
        if let Some(panic) = panic {
            std::panic::resume_unwind(panic);
        }
        Arc::into_inner(work).expect("helpers have left it")
    }
}

impl Shared {
    fn help(&self) {
        let mut slot = lock(&self.slot);
        while !slot.ended {
            let wanted = slot.wanted > 0;
            let Some(work) = slot.work.clone().filter(|_| wanted) else {
                slot = self.wake.wait(slot).unwrap_or_else(std::sync::PoisonError::into_inner);
                continue;
            };
            slot.wanted -= 1;
            slot.at_work += 1;
            drop(slot);
            let result = catch_unwind(AssertUnwindSafe(|| work.work()));
            drop(work);
            slot = lock(&self.slot);
            slot.panic = result.err().or(slot.panic.take());
            slot.at_work -= 1;
            self.left.notify_one();
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        lock(&self.shared.slot).ended = true;
        self.shared.wake.notify_all();
        for helper in self.helpers.drain(..) {
            // A helper panics only if this crate has a defect; there is nobody to report it to.
            let _ = helper.join();
        }
    }
}
