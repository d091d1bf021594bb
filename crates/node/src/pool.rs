//! The pool of pending transactions, with those who wait for them. One lock guards all of it.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use doors::{Awaited, DeveloperCommand, DeveloperRefusal};
use ledger::contracts::DeveloperBlock;
use ledger::outcomes_by_id;
use primitives::TransactionId;
use readers::{CommittedBlock, FoundTransaction};
use replica::{Mempool, Waiting};
use tokio::sync::oneshot;

use crate::chain_clock::MovedTime;
use crate::locks::{Locked, Rank, Ranked};

/// The answer to a command.
pub(crate) type Answered = Result<u64, DeveloperRefusal>;

/// What the thread of a developers' chain shares with those who give commands.
#[derive(Default)]
pub(crate) struct Commands {
    /// Pending commands, each with the channel for its answer; `None` where nobody takes them.
    pub waiting: Option<VecDeque<(DeveloperCommand, SyncSender<Answered>)>>,
    /// The time of the next block, where the developer has moved it since the newest one.
    pub moved: Option<MovedTime>,
    /// What else the developer has chosen for it.
    pub chosen: DeveloperBlock,
}

/// What the pool's lock guards.
pub(crate) struct Pooled {
    pub mempool: Mempool,
    /// Transactions of blocks that are executed and not published yet, oldest block first. They have left the pool and
    /// are in no view; clients are told that they are pending.
    unpublished: VecDeque<Vec<TransactionId>>,
    /// Clients that wait for the block of their transaction.
    pub waiters: HashMap<TransactionId, Vec<oneshot::Sender<Awaited>>>,
    /// Transactions that others have displaced, with the ids of those; the newest of them.
    displaced: HashMap<TransactionId, TransactionId>,
    displaced_oldest_first: VecDeque<TransactionId>,
    /// Commands to a developers' chain.
    pub commands: Commands,
}

/// See the module text.
pub(crate) struct Pool {
    pooled: Ranked<Mutex<Pooled>>,
    /// Signalled when something enters, and when the node stops.
    fill: Condvar,
    /// What is ready and since when, for threads that must not wait for the pool.
    ready: AtomicU64,
    oldest_ms: AtomicU64,
}

/// Displaced transactions that are remembered.
const DISPLACED_KEPT: usize = 10_000;
/// The time of the oldest transaction where there is none.
const NONE: u64 = u64::MAX;

impl Pool {
    /// An empty pool for so many transactions.
    pub fn new(transactions: usize) -> Pool {
        let (unpublished, waiters, commands) = (VecDeque::new(), HashMap::new(), Commands::default());
        let (displaced, displaced_oldest_first) = (HashMap::new(), VecDeque::new());
        let mempool = Mempool::new(transactions);
        let pooled = Pooled { mempool, unpublished, waiters, displaced, displaced_oldest_first, commands };
        Pool {
            pooled: Ranked::mutex(Rank::Pool, pooled),
            fill: Condvar::new(),
            ready: AtomicU64::new(0),
            oldest_ms: AtomicU64::new(NONE),
        }
    }

    pub fn lock(&self) -> Locked<'_, Pooled> {
        self.pooled.lock()
    }

    /// Lets others have the pool until something enters, or this much time has passed.
    pub fn wait<'a>(&self, pooled: Locked<'a, Pooled>, most: Duration) -> Locked<'a, Pooled> {
        pooled.wait(&self.fill, most)
    }

    /// Wakes those who wait for the pool, after a change that was made under its lock.
    pub fn wake(&self) {
        self.fill.notify_all();
    }

    /// What the pool held after its last change.
    pub fn waiting(&self) -> Waiting {
        let oldest_ms = self.oldest_ms.load(Ordering::Acquire);
        let ready = self.ready.load(Ordering::Acquire) as usize;
        Waiting { ready, oldest_ms: (oldest_ms != NONE).then_some(oldest_ms) }
    }

    /// Notes what the pool holds, after a change.
    pub fn note(&self, pooled: &Pooled) {
        self.ready.store(pooled.mempool.ready() as u64, Ordering::Release);
        self.oldest_ms.store(pooled.mempool.oldest_ms().unwrap_or(NONE), Ordering::Release);
    }
}

impl Pooled {
    /// Records that a block has left the pool.
    pub fn leave(&mut self, ids: Vec<TransactionId>) {
        self.unpublished.push_back(ids);
    }

    /// Whether a transaction is pending, or its block is not published yet.
    pub fn is_pending(&self, id: &TransactionId) -> bool {
        let pool = &self.mempool;
        pool.contains(id) || pool.ethereum.contains(id) || self.is_unpublished(id)
    }

    /// Whether a transaction's block is executed and not published yet.
    pub fn is_unpublished(&self, id: &TransactionId) -> bool {
        self.unpublished.iter().any(|block| block.contains(id))
    }

    /// Where the block of a pending transaction is told.
    pub fn wait_for(&mut self, id: TransactionId) -> oneshot::Receiver<Awaited> {
        let (sender, receiver) = oneshot::channel();
        self.waiters.entry(id).or_default().push(sender);
        receiver
    }

    /// Tells those who wait for transactions that others have displaced, and remembers these.
    pub fn tell_displaced(&mut self) {
        for (before, by) in self.mempool.take_displaced() {
            for waiter in self.waiters.remove(&before).into_iter().flatten() {
                // The client may be gone.
                let _ = waiter.send(Awaited::Displaced(by));
            }
            if self.displaced.insert(before, by).is_none() {
                self.displaced_oldest_first.push_back(before);
            }
        }
        while self.displaced_oldest_first.len() > DISPLACED_KEPT {
            self.displaced_oldest_first.pop_front().map(|oldest| self.displaced.remove(&oldest));
        }
    }

    /// What has displaced a transaction, if that is remembered.
    pub fn displaced_by(&self, id: &TransactionId) -> Option<TransactionId> {
        self.displaced.get(id).copied()
    }

    /// Records that the oldest block that has left is published, and answers those who wait for it.
    pub fn published(&mut self, committed: &CommittedBlock) {
        self.unpublished.pop_front();
        if self.waiters.is_empty() {
            return;
        }
        let outcomes = committed.outcomes.iter().map(|(_, id, outcome)| (*id, *outcome));
        for (id, outcome) in outcomes_by_id(outcomes) {
            for waiter in self.waiters.remove(&id).into_iter().flatten() {
                // The client may be gone.
                let _ = waiter.send(Awaited::Committed(FoundTransaction { height: committed.summary.height, outcome }));
            }
        }
    }
}
