//! A running node: what its threads share, and how the doors use it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, OnceLock, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ledger::{Changes, Genesis, Ledger, Roots};
use primitives::{Digest, Height, Superblock, Transaction, TransactionId};
use replica::{Handover, Handovers, Home, Mempool, Network, Now, ReplicaError, ValidatorStatus, Waiting};
use store::{Archive, RealDisk, Store, StoreError};
use tokio::sync::{broadcast, oneshot};
use transport::Transport;

use crate::config::Config;
use crate::links::Present;
use crate::pipeline::{Made, follow, produce, publish, remember_candles, take_in};
use crate::recovery::{Recovered, recover};
use crate::verified::Verified;
use doors::cache::{Cache, ProvenReceipts};
use doors::metrics::Metrics;
pub use doors::{Answer, Closed};
use doors::{Committed, Found, Published};

/// Submissions that wait for intake.
const INTAKE_QUEUE: usize = 1_024;
/// Blocks that wait for the publisher.
pub(crate) const PUBLISH_QUEUE: usize = 2;

/// Milliseconds since 1970, as this machine's clock says.
pub(crate) fn clock_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

/// Transactions on their way to the mempool.
pub(crate) struct Submission {
    pub(crate) transactions: Vec<Transaction>,
    pub(crate) wait: bool,
    pub(crate) reply: oneshot::Sender<Vec<Answer>>,
}

impl Submission {
    /// Of whom nobody wants an answer.
    pub fn unanswered(transactions: Vec<Transaction>) -> Submission {
        Submission { transactions, wait: false, reply: oneshot::channel().0 }
    }
}

/// Why a node cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// What the replica found.
    #[error(transparent)]
    Replica(#[from] ReplicaError),
    /// The links to other validators.
    #[error(transparent)]
    Transport(#[from] transport::TransportError),
    /// A thread that could not be started.
    #[error("a thread could not be started: {0}")]
    Thread(std::io::Error),
}

impl ExchangeError {
    /// A directory that cannot be used.
    pub fn directory(place: impl Into<String>, error: std::io::Error) -> ExchangeError {
        ReplicaError::Directory(place.into(), error).into()
    }
}

impl From<StoreError> for ExchangeError {
    fn from(error: StoreError) -> ExchangeError {
        ReplicaError::Store(error).into()
    }
}

/// The tries, and the height that they are of.
pub(crate) struct RootsAt {
    pub height: Height,
    pub root: Digest,
    pub roots: Roots,
}

/// What the threads of a node share.
pub(crate) struct Shared {
    pub config: Config,
    pub ledger: RwLock<Ledger>,
    pub mempool: Mutex<Mempool>,
    pub published: Published,
    pub roots: Mutex<RootsAt>,
    pub archive: Archive<RealDisk>,
    pub bodies: Cache<Superblock>,
    pub receipts: Cache<ProvenReceipts>,
    store: Mutex<Store<RealDisk>>,
    pub metrics: Metrics,
    pub started: Instant,
    pub(crate) waiters: Mutex<HashMap<TransactionId, Vec<oneshot::Sender<Found>>>>,
    /// Signalled when something enters the mempool, and when the node stops.
    pub(crate) fill: Condvar,
    /// Signalled when the tries have caught up.
    pub(crate) rooted: Condvar,
    pub(crate) stopping: AtomicBool,
    pub(crate) failure: Mutex<Option<String>>,
    failed: tokio::sync::Notify,
    /// Sub-blocks of other validators, checked ahead of time.
    pub(crate) verified: Verified,
    /// The lag of certified roots, and the certificates; nothing in a solo node.
    pub(crate) certificates: OnceLock<(u64, Archive<RealDisk>)>,
    /// The last certified height.
    pub(crate) certified: AtomicU64,
    /// The last height whose certificate is durable; blocks above it are needed here. Without limit in a solo node.
    pub(crate) certified_durably: AtomicU64,
    /// What proves later committees; nothing in a solo node.
    pub(crate) handovers: OnceLock<Arc<Handovers<RealDisk>>>,
    #[cfg(test)]
    pub(crate) spoil: OnceLock<crate::validator::Spoil>,
    /// Whether a fetched state waits for the node to begin again with it.
    again: AtomicBool,
    /// The links to other validators; nothing in a solo node.
    pub(crate) links: Mutex<Present>,
    /// How this validator stands; nothing in a solo node.
    pub(crate) status: Mutex<Option<ValidatorStatus>>,
    /// What the pool holds, for whoever must not wait for it.
    waiting: Mutex<Waiting>,
}

/// The ends of the channels between the threads that commit.
pub(crate) struct Ends {
    pub made: SyncSender<Made>,
    pub blocks: Receiver<Made>,
    pub changed: SyncSender<(Height, Changes)>,
    pub changes: Receiver<(Height, Changes)>,
    pub intake: SyncSender<Submission>,
}

fn home(data: &std::path::Path) -> Result<Home<RealDisk>, ReplicaError> {
    Home::at(data).map_err(|error| ReplicaError::Directory(data.display().to_string(), error))
}

/// A running pipeline.
pub struct Exchange {
    pub(crate) shared: Arc<Shared>,
    intake: SyncSender<Submission>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

pub(crate) fn poisoned<T>(result: Result<T, std::sync::PoisonError<T>>) -> T {
    // A thread that panicked in the middle of a change has already stopped the node; what remains is to read.
    result.unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Shared {
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

    /// What the pool held when it was changed last.
    pub(crate) fn waiting(&self) -> Waiting {
        *poisoned(self.waiting.lock())
    }

    /// Tells others what the pool holds, after a change.
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

    /// Whether the node still takes transactions.
    pub fn is_ready(&self) -> bool {
        !self.stopping.load(Ordering::Acquire) && poisoned(self.failure.lock()).is_none()
    }

    /// The ledger together with tries of the same height, for proofs. Waits while the tries catch up; `None` if the
    /// node has failed and they never will.
    pub fn with_roots<T>(&self, read: impl Fn(&Ledger, &mut Roots) -> T) -> Option<T> {
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

    fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        drop(self.lock_mempool());
        self.fill.notify_all();
        self.rooted.notify_all();
    }

    /// Stops, to begin again with the fetched state of this height.
    pub(crate) fn begin_again(&self, height: Height) {
        tracing::info!(height, "the state was fetched and is certified: the pipeline stops, to begin again with it");
        self.again.store(true, Ordering::Release);
        // Nobody here will answer them.
        poisoned(self.waiters.lock()).clear();
        self.end(format!("the state at height {height} was fetched from others: the node is to begin again with it"));
    }

    pub(crate) fn fail(&self, error: &dyn std::fmt::Display) {
        tracing::error!(%error, "the pipeline stops");
        self.end(error.to_string());
    }

    fn end(&self, reason: String) {
        poisoned(self.failure.lock()).get_or_insert(reason);
        self.stop();
        self.failed.notify_waiters();
        self.failed.notify_one();
    }
}

impl Exchange {
    /// Recovers from the store what was committed, and starts.
    ///
    /// # Errors
    /// [`ExchangeError`] says what keeps the node from starting, with the file where one is to blame.
    pub fn start(
        config: Config,
        genesis: &Genesis,
        data: &std::path::Path,
        network: Option<Network>,
    ) -> Result<Exchange, ExchangeError> {
        // A state that was fetched before takes its place first.
        let home = network.as_ref().map(|_| home(data)).transpose()?;
        home.as_ref().map_or(Ok(()), replica::state_sync::finish)?;
        let recovered = recover(&config, genesis, data)?;
        let Recovered { ledger, roots, store, views } = recovered;
        let height = ledger.height();
        let mut roots = RootsAt { height, root: Digest::default(), roots };
        roots.root = roots.roots.parts().root();
        let shared = Arc::new(Shared {
            mempool: Mutex::new(Mempool::new(config.mempool.transactions)),
            bodies: Cache::new(config.store.cached_bodies),
            receipts: Cache::new(config.store.cached_receipts),
            config,
            ledger: RwLock::new(ledger),
            published: Published::new(views),
            roots: Mutex::new(roots),
            archive: store.archive(),
            store: Mutex::new(store),
            metrics: Metrics::new(),
            started: Instant::now(),
            waiters: Mutex::default(),
            fill: Condvar::new(),
            rooted: Condvar::new(),
            stopping: AtomicBool::new(false),
            failure: Mutex::default(),
            failed: tokio::sync::Notify::new(),
            verified: Verified::default(),
            certificates: OnceLock::new(),
            certified: AtomicU64::new(0),
            certified_durably: AtomicU64::new(u64::MAX),
            handovers: OnceLock::new(),
            #[cfg(test)]
            spoil: OnceLock::new(),
            again: AtomicBool::new(false),
            links: Mutex::default(),
            waiting: Mutex::default(),
            status: Mutex::default(),
        });
        let (intake, submissions) = sync_channel(INTAKE_QUEUE);
        let (made, blocks) = sync_channel(PUBLISH_QUEUE);
        let (changed, changes) = sync_channel(PUBLISH_QUEUE);
        let mut threads = vec![
            spawn("intake", &shared, move |shared| take_in(shared, &submissions))?,
            spawn("candles", &shared, move |shared| remember_candles(shared, height))?,
        ];
        match network.zip(home) {
            None => {
                threads.push(spawn("producer", &shared, move |shared| produce(shared, &made, &changed))?);
                threads.push(spawn("roots", &shared, move |shared| follow(shared, &changes, None))?);
                threads.push(spawn("publisher", &shared, move |shared| publish(shared, &blocks, None))?);
            }
            Some((network, home)) => {
                let ends = Ends { made, changed, blocks, changes, intake: intake.clone() };
                threads.extend(crate::validator::start(network, &home, ends, &shared)?);
            }
        }
        Ok(Exchange { shared, intake, threads: Mutex::new(threads) })
    }

    /// How this validator stands among the others; `None` in a solo node.
    pub fn status(&self) -> Option<ValidatorStatus> {
        poisoned(self.shared.status.lock()).clone()
    }

    /// The last height that has a certificate here, as all below; 0 in a solo node.
    pub fn certified(&self) -> Height {
        self.shared.certified.load(Ordering::Acquire)
    }

    /// Whether it stopped because it has fetched a state from others: to be started again as it was, it goes on with
    /// it.
    pub fn is_to_begin_again(&self) -> bool {
        self.shared.again.load(Ordering::Acquire)
    }

    /// What proves the committees from an epoch on, in order and as many as fit an answer; none in a solo node.
    ///
    /// # Errors
    /// [`ExchangeError`] if they cannot be read.
    pub fn handovers(&self, from: u64) -> Result<Vec<Handover>, ExchangeError> {
        Ok(self.shared.handovers.get().map_or(Ok(Vec::new()), |handovers| handovers.page(from))?)
    }

    /// How often the vote log was synced since start.
    pub fn vote_log_syncs(&self) -> u64 {
        self.shared.metrics.vote_syncs.get()
    }

    /// The links to other validators; `None` in a solo node.
    pub fn transport(&self) -> Option<Arc<Transport>> {
        poisoned(self.shared.links.lock()).transport.upgrade()
    }

    /// Submits transactions; the receiver hears one answer for each, in order.
    ///
    /// # Errors
    /// [`Closed`] if the node cannot take them now.
    pub fn submit(&self, transactions: Vec<Transaction>, wait: bool) -> Result<oneshot::Receiver<Vec<Answer>>, Closed> {
        if !self.shared.is_ready() {
            return Err(Closed::Stopping);
        }
        if self.status().is_some_and(|status| status.follows) {
            return Err(Closed::Follows);
        }
        let (reply, receiver) = oneshot::channel();
        match self.intake.try_send(Submission { transactions, wait, reply }) {
            Ok(()) => Ok(receiver),
            Err(std::sync::mpsc::TrySendError::Full(_)) => Err(Closed::Busy),
            Err(std::sync::mpsc::TrySendError::Disconnected(_)) => Err(Closed::Stopping),
        }
    }

    /// Reads the ledger. Blocks are held up while `read` runs: copy out what is needed.
    pub fn read<T>(&self, read: impl FnOnce(&Ledger) -> T) -> T {
        read(&self.shared.read_ledger())
    }

    /// A feed of committed blocks. A reader that falls 256 blocks behind misses some and is told so.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<Committed>> {
        self.shared.published.subscribe()
    }

    /// Transactions that took effect, and that were refused inside a block, since start.
    pub fn totals(&self) -> (u64, u64) {
        self.shared.published.views().totals
    }

    /// Waits until the pipeline fails by itself; says why.
    pub async fn failed(&self) -> String {
        loop {
            let notified = self.shared.failed.notified();
            if let Some(reason) = poisoned(self.shared.failure.lock()).clone() {
                return reason;
            }
            notified.await;
        }
    }

    /// Stops: what waits in the mempool is put into last blocks, which are published; then the threads end.
    pub fn stop(&self) {
        self.shared.stop();
        let threads: Vec<_> = poisoned(self.threads.lock()).drain(..).collect();
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a thread of the pipeline panicked");
            }
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.stop();
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
