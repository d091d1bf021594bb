//! State shared by the threads of a node, and how they stop together.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Condvar, Mutex, OnceLock, RwLock, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use doors::cache::{Cache, ProvenReceipts};
use doors::metrics::Metrics;
use doors::{Answer, Found, Published};
use ledger::{Ledger, Roots};
use primitives::{Digest, Height, Superblock, Transaction, TransactionId};
use replica::{Handovers, Mempool, Now, ReplicaError, ValidatorStatus, Waiting};
use store::{Archive, RealDisk, Store, StoreError};
use tokio::sync::oneshot;
use transport::Transport;

use crate::config::Config;
use crate::desk::Desk;
use crate::developer::Orders;
use crate::payment_lane::LaneHeard;
use crate::recovery::Recovered;
use crate::verified::Verified;

/// Milliseconds since 1970, from this machine's clock.
pub(crate) fn clock_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

/// Transactions of blocks that are executed and not published yet, oldest block first. They have left the pool and
/// are in no view; clients are told that they are pending.
#[derive(Default)]
pub(crate) struct Unpublished(Mutex<VecDeque<Vec<TransactionId>>>);

impl Unpublished {
    /// Records that a block has left the pool.
    pub fn begin(&self, ids: Vec<TransactionId>) {
        poisoned(self.0.lock()).push_back(ids);
    }

    /// Records that the oldest block has been published.
    pub fn end(&self) {
        poisoned(self.0.lock()).pop_front();
    }

    pub fn contains(&self, id: &TransactionId) -> bool {
        poisoned(self.0.lock()).iter().any(|block| block.contains(id))
    }
}

/// Transactions on their way to the mempool.
pub(crate) struct Submission {
    pub(crate) transactions: Vec<Transaction>,
    /// Ethereum transactions forwarded by another validator.
    pub(crate) ethereum: Vec<Vec<u8>>,
    pub(crate) wait: bool,
    pub(crate) reply: oneshot::Sender<Vec<Answer>>,
}

impl Submission {
    /// Submitted without waiting for the result.
    pub fn unanswered(transactions: Vec<Transaction>, ethereum: Vec<Vec<u8>>) -> Submission {
        Submission { transactions, ethereum, wait: false, reply: oneshot::channel().0 }
    }
}

/// Why a node cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The replica failed.
    #[error(transparent)]
    Replica(#[from] ReplicaError),
    /// The links to other validators.
    #[error(transparent)]
    Transport(#[from] transport::TransportError),
    /// A thread could not be started.
    #[error("a thread could not be started: {0}")]
    Thread(std::io::Error),
}

impl ExchangeError {
    /// The error for a directory that cannot be used.
    pub fn directory(place: impl Into<String>, error: std::io::Error) -> ExchangeError {
        ReplicaError::Directory(place.into(), error).into()
    }
}

impl From<StoreError> for ExchangeError {
    fn from(error: StoreError) -> ExchangeError {
        ReplicaError::Store(error).into()
    }
}

/// The tries and their height.
pub(crate) struct RootsAt {
    pub height: Height,
    pub root: Digest,
    pub roots: Roots,
}

/// State shared by the threads of a node.
pub(crate) struct Shared {
    pub config: Config,
    /// The identity of the network, which transactions sign.
    pub network: Digest,
    pub ledger: RwLock<Ledger>,
    pub mempool: Mutex<Mempool>,
    pub published: Published,
    pub unpublished: Unpublished,
    pub roots: Mutex<RootsAt>,
    pub archive: Archive<RealDisk>,
    pub bodies: Cache<Superblock>,
    pub receipts: Cache<ProvenReceipts>,
    store: Mutex<Store<RealDisk>>,
    /// Where the workers on blocks meet; without workers on a developers' chain.
    pub desk: Desk,
    pub metrics: Metrics,
    pub started: Instant,
    pub(crate) waiters: Mutex<HashMap<TransactionId, Vec<oneshot::Sender<Found>>>>,
    /// Signalled when something enters the mempool, and when the node stops.
    pub(crate) fill: Condvar,
    /// Signalled when the tries have caught up.
    pub(crate) rooted: Condvar,
    pub(crate) stopping: AtomicBool,
    pub(crate) failure: Mutex<Option<String>>,
    pub(crate) failed: tokio::sync::Notify,
    /// Sub-blocks of other validators, checked ahead of time.
    pub(crate) verified: Verified,
    /// The lag of certified roots, and the certificates; unset in a solo node.
    pub(crate) certificates: OnceLock<(u64, Archive<RealDisk>)>,
    /// The last certified height.
    pub(crate) certified: AtomicU64,
    /// The proofs of later committees; unset in a solo node.
    pub(crate) handovers: OnceLock<Arc<Handovers<RealDisk>>>,
    #[cfg(test)]
    pub(crate) spoil: OnceLock<crate::validator::Spoil>,
    /// Whether the node must restart with a fetched state.
    pub(crate) again: AtomicBool,
    /// The links to other validators; none in a solo node.
    pub(crate) links: Mutex<Present>,
    /// The status of this validator; `None` in a solo node.
    pub(crate) status: Mutex<Option<ValidatorStatus>>,
    /// What the pool holds, for threads that must not wait for it.
    waiting: Mutex<Waiting>,
    /// The receiver of blocks' facts about the payment lane; unset in a node that takes no part in it.
    pub(crate) lane_facts: OnceLock<SyncSender<LaneHeard>>,
    /// Whether it is a developers' chain.
    pub is_developers: bool,
    /// The pending orders of the developer on a developers' chain.
    pub(crate) orders: Mutex<Orders>,
}

/// The present links, for threads other than the one that owns them.
#[derive(Default)]
pub(crate) struct Present {
    pub generation: u64,
    pub transport: Weak<Transport>,
}

pub(crate) fn poisoned<T>(result: Result<T, std::sync::PoisonError<T>>) -> T {
    // A thread of the pipeline that panicked in the middle of a change has already stopped the node; only reads
    // follow. A thread of a door changes only the pool, and whatever is proposed from it is checked by everybody.
    result.unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Shared {
    /// The state of a node that has just recovered.
    pub(crate) fn new(config: Config, recovered: Recovered) -> Shared {
        let Recovered { ledger, roots, store, views } = recovered;
        let (network, is_developers) = (ledger.network(), ledger.is_developers());
        let mut roots = RootsAt { height: ledger.height(), root: Digest::default(), roots };
        roots.root = roots.roots.parts().root();
        Shared {
            mempool: Mutex::new(Mempool::new(config.mempool.transactions)),
            bodies: Cache::new(config.store.cached_bodies),
            receipts: Cache::new(config.store.cached_receipts),
            config,
            network,
            ledger: RwLock::new(ledger),
            published: Published::new(views),
            unpublished: Unpublished::default(),
            roots: Mutex::new(roots),
            archive: store.archive(),
            store: Mutex::new(store),
            desk: Desk::new(),
            metrics: Metrics::new(),
            started: Instant::now(),
            waiters: Mutex::default(),
            fill: Condvar::new(),
            rooted: Condvar::new(),
            stopping: AtomicBool::new(false),
            failure: Mutex::default(),
            failed: tokio::sync::Notify::new(),
            verified: Verified::new(network),
            certificates: OnceLock::new(),
            certified: AtomicU64::new(0),
            handovers: OnceLock::new(),
            #[cfg(test)]
            spoil: OnceLock::new(),
            again: AtomicBool::new(false),
            links: Mutex::default(),
            waiting: Mutex::default(),
            lane_facts: OnceLock::new(),
            is_developers,
            orders: Mutex::default(),
            status: Mutex::default(),
        }
    }

    /// Milliseconds since the node started.
    pub fn now_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    pub fn read_ledger(&self) -> std::sync::RwLockReadGuard<'_, Ledger> {
        poisoned(self.ledger.read())
    }

    pub fn lock_mempool(&self) -> std::sync::MutexGuard<'_, Mempool> {
        poisoned(self.mempool.lock())
    }

    /// The time of a step of the replica.
    pub(crate) fn now(&self) -> Now {
        Now { since: self.started.elapsed(), wall_ms: clock_ms() }
    }

    /// What the pool held after its last change.
    pub(crate) fn waiting(&self) -> Waiting {
        *poisoned(self.waiting.lock())
    }

    /// Publishes what the pool holds, after a change.
    pub(crate) fn note_pool(&self) {
        let pool = self.lock_mempool();
        self.metrics.mempool.set(pool.len() as i64);
        *poisoned(self.waiting.lock()) = Waiting { ready: pool.ready(), oldest_ms: pool.oldest_ms() };
    }

    pub(crate) fn lock_store(&self) -> std::sync::MutexGuard<'_, Store<RealDisk>> {
        poisoned(self.store.lock())
    }

    /// The newest state root and its height.
    pub fn newest_root(&self) -> (Height, Digest) {
        let at = poisoned(self.roots.lock());
        (at.height, at.root)
    }

    /// Whether the node still accepts transactions.
    pub fn is_ready(&self) -> bool {
        !self.stopping.load(Ordering::Acquire) && poisoned(self.failure.lock()).is_none()
    }

    /// The ledger together with tries of the same height, for proofs. Waits while the tries catch up; `None` if the
    /// node has failed and they never will.
    pub fn with_roots<T>(&self, read: impl FnOnce(&Ledger, &mut Roots) -> T) -> Option<T> {
        loop {
            let ledger = self.read_ledger();
            let mut at = poisoned(self.roots.lock());
            if at.height == ledger.height() {
                return Some(read(&ledger, &mut at.roots));
            }
            drop(ledger);
            if poisoned(self.failure.lock()).is_some() {
                return None;
            }
            drop(self.rooted.wait_timeout(at, Duration::from_millis(50)));
        }
    }

    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        drop(self.lock_mempool());
        self.fill.notify_all();
        self.rooted.notify_all();
    }

    /// Stops, to restart with the fetched state of this height.
    pub(crate) fn begin_again(&self, height: Height) {
        tracing::info!(height, "a state was fetched and is certified: the pipeline stops and restarts with it");
        self.again.store(true, Ordering::Release);
        // Nobody here will answer these waiters.
        poisoned(self.waiters.lock()).clear();
        self.end(format!(
            "the state at height {height} was fetched from other validators: start the node again to continue with it"
        ));
    }

    pub(crate) fn fail(&self, error: &dyn std::fmt::Display) {
        tracing::error!(%error, "the pipeline stops");
        self.end(error.to_string());
    }

    fn end(&self, reason: String) {
        poisoned(self.failure.lock()).get_or_insert(reason);
        self.desk.close();
        self.stop();
        self.failed.notify_waiters();
        self.failed.notify_one();
    }
}

pub(crate) fn spawn(
    name: &str,
    shared: &Arc<Shared>,
    run: impl FnOnce(&Arc<Shared>) + Send + 'static,
) -> Result<JoinHandle<()>, ExchangeError> {
    let shared = shared.clone();
    let guarded = move || {
        let alarm = Alarm(&shared);
        run(&shared);
        std::mem::forget(alarm);
    };
    std::thread::Builder::new().name(name.into()).spawn(guarded).map_err(ExchangeError::Thread)
}

/// Stops the node if a thread of the pipeline panics.
struct Alarm<'a>(&'a Arc<Shared>);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        self.0.fail(&"a thread of the pipeline panicked");
    }
}
