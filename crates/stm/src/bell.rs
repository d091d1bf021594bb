//! Parks threads without work.

use crate::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use crate::sync::{Condvar, Mutex, lock};

/// Parks threads, and wakes them when there is work.
///
/// A sleeper increments the count before its last look for work; a waker creates work before it reads the count. So
/// one of them sees the other, and no wake-up is lost.
pub(crate) struct Bell {
    sleepers: AtomicUsize,
    rings: Mutex<u64>,
    rung: Condvar,
}

impl Bell {
    pub fn new() -> Self {
        Bell { sleepers: AtomicUsize::new(0), rings: Mutex::new(0), rung: Condvar::new() }
    }

    /// Parks until the next ring, unless there is work.
    pub fn sleep_unless(&self, has_work: impl Fn() -> bool) {
        let mut rings = lock(&self.rings);
        self.sleepers.fetch_add(1, SeqCst);
        let before = *rings;
        if !has_work() {
            while *rings == before {
                rings = self.rung.wait(rings).unwrap_or_else(std::sync::PoisonError::into_inner);
            }
        }
        self.sleepers.fetch_sub(1, SeqCst);
    }

    /// Wakes one sleeper if there are any and there is work.
    pub fn ring_if(&self, has_work: impl Fn() -> bool) {
        if self.sleepers.load(SeqCst) > 0 && has_work() {
            *lock(&self.rings) += 1;
            self.rung.notify_one();
        }
    }

    /// Wakes all.
    pub fn ring_all(&self) {
        *lock(&self.rings) += 1;
        self.rung.notify_all();
    }
}
