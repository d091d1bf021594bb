//! The locks of a node, in the only order in which a thread may take them: ledger, roots, pool, store.
//!
//! A build with debug assertions notes what each thread holds, and panics when a thread takes a lock at or above one
//! that it holds. Two threads that take two locks in different orders stop each other for ever. So does one thread that
//! reads the ledger twice with a writer in between. So every test with a running node checks the order. Besides these
//! there are queues, each with a lock of its own that is taken alone (the jobs of blocks, the inbox). The memory of
//! lists that were verified has one, too, under which nothing else is taken.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, LockResult, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

/// A lock's place in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    /// The state after the last shown block.
    Ledger,
    /// The tries.
    Roots,
    /// What is pending, and who waits for it.
    Pool,
    /// The log and the archive, for writing.
    Store,
}

thread_local! {
    /// The ranks that this thread holds, one bit each.
    static HELD: Cell<u8> = const { Cell::new(0) };
}

/// A thread's claim on a rank.
struct Claim(Rank);

impl Claim {
    fn take(rank: Rank) -> Claim {
        if cfg!(debug_assertions) {
            let held = HELD.get();
            assert!(
                held >> (rank as u8) == 0,
                "{rank:?} is taken by a thread that holds it or a later lock ({held:#b})"
            );
            HELD.set(held | 1 << rank as u8);
        }
        Claim(rank)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if cfg!(debug_assertions) {
            HELD.set(HELD.get() & !(1 << self.0 as u8));
        }
    }
}

/// A lock with a rank.
pub(crate) struct Ranked<L> {
    rank: Rank,
    lock: L,
}

/// What a ranked lock guards, while it is held. The guard is released before the claim.
pub(crate) struct Held<G> {
    guard: G,
    claim: Claim,
}

/// A ranked mutex, held.
pub(crate) type Locked<'a, T> = Held<MutexGuard<'a, T>>;

impl<T> Ranked<Mutex<T>> {
    pub fn mutex(rank: Rank, value: T) -> Self {
        Ranked { rank, lock: Mutex::new(value) }
    }

    pub fn lock(&self) -> Locked<'_, T> {
        let claim = Claim::take(self.rank);
        Held { guard: poisoned(self.lock.lock()), claim }
    }
}

impl<T> Ranked<RwLock<T>> {
    pub fn shared(rank: Rank, value: T) -> Self {
        Ranked { rank, lock: RwLock::new(value) }
    }

    pub fn read(&self) -> Held<RwLockReadGuard<'_, T>> {
        let claim = Claim::take(self.rank);
        Held { guard: poisoned(self.lock.read()), claim }
    }

    /// `None` while a thread writes.
    pub fn try_read(&self) -> Option<Held<RwLockReadGuard<'_, T>>> {
        let claim = Claim::take(self.rank);
        self.lock.try_read().ok().map(|guard| Held { guard, claim })
    }

    pub fn write(&self) -> Held<RwLockWriteGuard<'_, T>> {
        let claim = Claim::take(self.rank);
        Held { guard: poisoned(self.lock.write()), claim }
    }
}

impl<T> Locked<'_, T> {
    /// Lets others have the lock until `condition` is signalled, or this much time has passed.
    pub fn wait(self, condition: &Condvar, most: Duration) -> Self {
        let Held { guard, claim } = self;
        Held { guard: poisoned(condition.wait_timeout(guard, most)).0, claim }
    }
}

impl<G: Deref> Deref for Held<G> {
    type Target = G::Target;

    fn deref(&self) -> &G::Target {
        &self.guard
    }
}

impl<G: DerefMut> DerefMut for Held<G> {
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.guard
    }
}

/// What a lock guards, also after a panic. A thread of the pipeline that panicked in the middle of a change has already
/// stopped the node; only reads follow. A thread of a door changes only the pool, and whatever is proposed from it is
/// checked by everybody.
pub(crate) fn poisoned<T>(result: LockResult<T>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn two_threads_cannot_take_two_locks_in_different_orders() {
        let (ledger, pool) = (Ranked::shared(Rank::Ledger, 1), Ranked::mutex(Rank::Pool, 2));
        let breach = |take: &dyn Fn()| catch_unwind(AssertUnwindSafe(take)).is_err();
        std::thread::scope(|threads| {
            let in_order = threads.spawn(|| breach(&|| assert_eq!(*ledger.read() + *pool.lock(), 3)));
            assert!(!in_order.join().expect("it is caught"));
            let reversed = threads.spawn(|| breach(&|| assert_eq!(*pool.lock() + *ledger.write(), 3)));
            assert!(reversed.join().expect("it is caught"), "the second order is a breach");
        });
        assert!(breach(&|| assert_eq!(*ledger.read() + *ledger.read(), 2)), "a writer may come between two reads");
        // What a thread held when it panicked is released, and a breach leaves nothing behind.
        assert!(!breach(&|| assert_eq!(*ledger.write() + *pool.lock(), 3)));
    }
}
