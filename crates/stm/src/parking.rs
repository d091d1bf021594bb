//! Parks threads without work.

use crate::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use crate::sync::{Condvar, Mutex, lock};

/// Parks threads, and wakes them when there is work.
///
/// A sleeper increments the count before its last look for work; a waker creates work before it reads the count. So
/// one of them sees the other, and no wake-up is lost.
pub(crate) struct Parking {
    sleepers: AtomicUsize,
    wakes: Mutex<u64>,
    woken: Condvar,
}

impl Parking {
    pub fn new() -> Self {
        Parking { sleepers: AtomicUsize::new(0), wakes: Mutex::new(0), woken: Condvar::new() }
    }

    /// Parks until the next wake-up, unless there is work.
    pub fn park_unless(&self, has_work: impl Fn() -> bool) {
        let mut wakes = lock(&self.wakes);
        self.sleepers.fetch_add(1, SeqCst);
        let before = *wakes;
        if !has_work() {
            while *wakes == before {
                wakes = self.woken.wait(wakes).unwrap_or_else(std::sync::PoisonError::into_inner);
            }
        }
        self.sleepers.fetch_sub(1, SeqCst);
    }

    /// Wakes one sleeper if there are any and there is work.
    pub fn wake_if(&self, has_work: impl Fn() -> bool) {
        if self.sleepers.load(SeqCst) > 0 && has_work() {
            *lock(&self.wakes) += 1;
            self.woken.notify_one();
        }
    }

    /// Wakes all.
    pub fn wake_all(&self) {
        *lock(&self.wakes) += 1;
        self.woken.notify_all();
    }
}
