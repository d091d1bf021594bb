//! The synchronisation primitives of this crate. Unit tests replace them by those of `shuttle`, which explores
//! interleavings; everything else uses the standard library.

#[cfg(not(test))]
pub(crate) use std::{
    hint,
    sync::{Arc, Condvar, Mutex, MutexGuard, atomic},
    thread,
};

#[cfg(test)]
pub(crate) use shuttle::{
    hint,
    sync::{Arc, Condvar, Mutex, MutexGuard, atomic},
    thread,
};

use std::sync::PoisonError;

/// Locks, also after a panic under the lock: the protected data changes only in single steps.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
