//! The pipeline of a node with engine `solo`: one validator that makes its own blocks.
//!
//! ```text
//! submit ─► intake ─► mempool ─► producer ─► publisher ─► answers, stream, views, receipts
//!           checks     reserves   log ∥ apply     │
//!           signatures                            └─► roots (tries follow, one block behind)
//! ```
//!
//! Five threads; four in one direction. *Intake* checks signatures in batches and admits. The *producer* makes a block
//! when enough wait or one has waited long enough, writes it to the log and applies it at the same time, and lets
//! nobody see the new state before both are done. The *publisher* answers those who wait: whoever hears "committed" can
//! be sure that the block is on disk. *Roots* works the changes into the tries while the next block fills.
//!
//! Among several validators (engine `dbft`), [`crate::validator`] stands between mempool and producer: blocks come
//! decided.
//!
//! The *candles* thread reads old blocks from the archive when the node has started. Locks are taken in this order:
//! ledger, roots, mempool, published state, waiters, store.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, OnceLock, RwLock, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ledger::{
    Applied, Batch, BlockReceipts, Changes, Genesis, Ledger, Refusal, Roots, Signatures, Stage, block_time,
    outcomes_by_id,
};
use primitives::{Digest, Height, SubBlock, Superblock, Transaction, TransactionId, verify_all};
use rayon::prelude::*;
use store::{Archive, RealDisk, Store, StoreError};
use tokio::sync::{broadcast, oneshot};

use crate::config::Config;
use crate::handover::{Handover, Handovers};
use crate::mempool::{Entry, Mempool, Reject};
use crate::network::Network;
use crate::recovery::{Recovered, encode, receipts_with, recover, write_checkpoint};
use crate::validator::{self, Agreed, Answers, Channels, Input, Validator};
use crate::verified::{Verified, verify_ahead};
use doors::cache::{Cache, ProvenReceipts};
use doors::metrics::Metrics;
pub use doors::{Answer, Closed};
use doors::{CommittedBlock, Found, Outline, Published};
use transport::Transport;

/// Submissions that wait for intake.
const INTAKE_QUEUE: usize = 1_024;
/// Transactions whose signatures are checked together.
const INTAKE_BATCH: usize = 8_192;
/// Blocks that wait for the publisher.
const PUBLISH_QUEUE: usize = 2;

/// Transactions on their way to the mempool.
pub(crate) struct Submission {
    transactions: Vec<Transaction>,
    wait: bool,
    reply: oneshot::Sender<Vec<Answer>>,
}

impl Submission {
    /// Of whom nobody wants an answer.
    pub fn unanswered(transactions: Vec<Transaction>) -> Submission {
        Submission { transactions, wait: false, reply: oneshot::channel().0 }
    }
}

/// Why the pipeline cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The log, a checkpoint or the disk.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A checkpoint that cannot be read.
    #[error("checkpoint of height {0}: {1}")]
    Unreadable(Height, std::io::Error),
    /// A checkpoint that does not make a state.
    #[error("checkpoint of height {0}: {1}")]
    Checkpoint(Height, ledger::SnapshotError),
    /// A checkpoint that is said to be of one height and is of another.
    #[error("the checkpoint of height {0} holds the state of height {1}: take another copy")]
    OtherHeight(Height, Height),
    /// A snapshot put where something is already.
    #[error("{0} holds blocks or a checkpoint already: restore into an empty home")]
    NotEmpty(String),
    /// The directory of the store.
    #[error("{0}: {1}")]
    Directory(String, std::io::Error),
    /// The genesis.
    #[error("genesis: {0}")]
    Genesis(#[from] ledger::GenesisError),
    /// A logged block that does not apply.
    #[error(transparent)]
    Fault(#[from] ledger::Fault),
    /// The ledger panicked over a block. Whoever starts again meets the same block.
    #[error(
        "applying block {height} panicked: {what}. This is a defect of this version, and every restart meets it again: \
         stop the service, keep the data directory, and report the height and this line. The log is intact and nothing \
         that was acknowledged is lost: start again with a version that applies the block"
    )]
    Panicked {
        /// The block's height.
        height: Height,
        /// What the panic said.
        what: String,
    },
    /// A logged block that is none.
    #[error("block {0} in the log cannot be read: {1}")]
    Undecodable(Height, std::io::Error),
    /// The store belongs to another chain.
    #[error(
        "the store holds chain {stored}, but the genesis is of chain {genesis}: give the right home, or an empty one"
    )]
    OtherChain {
        /// In the store.
        stored: u64,
        /// In the genesis.
        genesis: u64,
    },
    /// A root that differs from the logged one.
    #[error(
        "after block {height} the state root is {ours}, but the log says {logged}: the state has diverged; stop and report this"
    )]
    Diverged {
        /// The height.
        height: Height,
        /// Computed here.
        ours: Digest,
        /// Found in the block above.
        logged: Digest,
    },
    /// The links to other validators.
    #[error(transparent)]
    Transport(#[from] transport::TransportError),
    /// A restored state that is not the one that validators signed.
    #[error(
        "the state at height {height}, which was restored from a file, has the root {ours}, but the validators have certified \
         {certified}, or another block: restore another snapshot into an empty home"
    )]
    Uncertified {
        /// The height.
        height: Height,
        /// What was restored.
        ours: Digest,
        /// What is right.
        certified: Digest,
    },
    /// A superblock that was decided twice, differently.
    #[error("height {0} was decided to be another block than the one that is logged here: stop and report this")]
    DecidedTwice(Height),
    /// A thread that could not be started.
    #[error("a thread could not be started: {0}")]
    Thread(std::io::Error),
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
    waiters: Mutex<HashMap<TransactionId, Vec<oneshot::Sender<Found>>>>,
    /// Signalled when something enters the mempool, and when the node stops.
    fill: Condvar,
    /// Signalled when the tries have caught up.
    rooted: Condvar,
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
    pub(crate) handovers: OnceLock<Handovers>,
    #[cfg(test)]
    pub(crate) spoil: OnceLock<crate::state_sync::Spoil>,
    /// Whether a fetched state waits for the node to begin again with it.
    again: AtomicBool,
    /// The links to other validators; nothing in a solo node. Its threads hold this, so this does not hold it.
    pub(crate) transport: Mutex<Weak<Transport>>,
    /// How this validator stands; nothing in a solo node.
    pub(crate) status: Mutex<Option<doors::ValidatorStatus>>,
}

/// A running pipeline.
pub struct Exchange {
    pub(crate) shared: Arc<Shared>,
    intake: SyncSender<Submission>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// A block that is durable and applied, on its way to the publisher.
struct Made {
    block: Superblock,
    entries: Vec<TransactionId>,
    applied: Applied,
    outline: Outline,
    stages_ms: Vec<(&'static str, f64)>,
    /// The state, if a checkpoint of it is due. It is begun once the receipts up to it are archived: recovery does not
    /// make those again.
    checkpoint: Option<Ledger>,
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

    fn lock_store(&self) -> std::sync::MutexGuard<'_, Store<RealDisk>> {
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
        crate::state_sync::install::finish(data)?;
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
            transport: Mutex::default(),
            status: Mutex::default(),
        });
        let (intake, submissions) = sync_channel(INTAKE_QUEUE);
        let (made, blocks) = sync_channel(PUBLISH_QUEUE);
        let (changed, changes) = sync_channel(PUBLISH_QUEUE);
        let mut threads = vec![
            spawn("intake", &shared, move |shared| take_in(shared, &submissions))?,
            spawn("candles", &shared, move |shared| remember_candles(shared, height))?,
        ];
        match network {
            None => {
                threads.push(spawn("producer", &shared, move |shared| produce(shared, &made, &changed))?);
                threads.push(spawn("roots", &shared, move |shared| follow(shared, &changes, None))?);
                threads.push(spawn("publisher", &shared, move |shared| publish(shared, &blocks, None))?);
            }
            Some(network) => {
                // As much as one superblock may hold: a frame has room for it.
                let bytes_max = network.superblock_bytes_max();
                let (validator, Channels { inputs, agreed }, parts) =
                    Validator::start(network, data, intake.clone(), &shared)?;
                let validator::Threads { unverified, asked, certificates, state_sync } = parts;
                let answers = Answers { certificates, bytes_max };
                let (applied, rooted, published) = (inputs.clone(), inputs.clone(), inputs.clone());
                let publish = move |shared: &Arc<Shared>| publish(shared, &blocks, Some(&published));
                threads.push(spawn("publisher", &shared, publish)?);
                threads.push(spawn("roots", &shared, move |shared| follow(shared, &changes, Some(&rooted)))?);
                let execute = move |shared: &Arc<Shared>| execute(shared, &agreed, &made, &changed, &applied);
                threads.push(spawn("executor", &shared, execute)?);
                threads.push(spawn("archive", &shared, move |shared| answers.run(shared, &asked))?);
                threads.push(spawn("states", &shared, move |shared| state_sync.run(shared))?);
                threads.push(spawn("verifier", &shared, move |shared| verify_ahead(shared, unverified))?);
                threads.push(spawn("consensus", &shared, move |shared| validator.run(shared))?);
            }
        }
        Ok(Exchange { shared, intake, threads: Mutex::new(threads) })
    }

    /// How this validator stands among the others; `None` in a solo node.
    pub fn status(&self) -> Option<doors::ValidatorStatus> {
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
        self.shared.handovers.get().map_or(Ok(Vec::new()), |handovers| handovers.page(from))
    }

    /// How often the vote log was synced since start.
    pub fn vote_log_syncs(&self) -> u64 {
        self.shared.metrics.vote_syncs.get()
    }

    /// The links to other validators; `None` in a solo node.
    pub fn transport(&self) -> Option<Arc<Transport>> {
        poisoned(self.shared.transport.lock()).upgrade()
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
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<CommittedBlock>> {
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

fn spawn(
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

/// The intake thread.
fn take_in(shared: &Arc<Shared>, submissions: &Receiver<Submission>) {
    while !shared.stopping.load(Ordering::Acquire) {
        let Ok(first) = submissions.recv_timeout(Duration::from_millis(100)) else { continue };
        let mut gathered = vec![first];
        let mut count = gathered[0].transactions.len();
        while count < INTAKE_BATCH {
            let Ok(next) = submissions.try_recv() else { break };
            count += next.transactions.len();
            gathered.push(next);
        }
        let transactions: Vec<&Transaction> = gathered.iter().flat_map(|s| &s.transactions).collect();
        let valid = verify_all(&transactions);
        let ids: Vec<TransactionId> = transactions.par_iter().map(|transaction| transaction.id()).collect();
        let mut checked = ids.into_iter().zip(valid);
        for submission in gathered {
            let answers = admit(shared, submission.transactions, &mut checked, submission.wait);
            // Whoever asked may have gone away.
            drop(submission.reply.send(answers));
        }
    }
}

fn admit(
    shared: &Shared,
    transactions: Vec<Transaction>,
    checked: &mut impl Iterator<Item = (TransactionId, bool)>,
    wait: bool,
) -> Vec<Answer> {
    let ledger = shared.read_ledger();
    let mut mempool = shared.lock_mempool();
    let views = shared.published.views();
    let mut waiters = poisoned(shared.waiters.lock());
    let arrived_ms = shared.now_ms();
    let mut entries = Vec::with_capacity(transactions.len());
    let mut known = Vec::with_capacity(transactions.len());
    for transaction in transactions {
        let (id, valid) = checked.next().expect("one for each transaction");
        let answer = match views.find(&id) {
            _ if !valid => Some(Answer::Refused(Refusal::BadSignature)),
            Some(found) if found.outcome.refusal().is_none() => Some(Answer::Committed(id, found)),
            _ => None,
        };
        if answer.is_none() {
            entries.push(Entry { id, arrived_ms, transaction });
        }
        known.push((id, answer));
    }
    let mut entered = mempool.admit_all(entries, &ledger).into_iter();
    let mut answer = |(id, known): (TransactionId, Option<Answer>)| {
        let answer = known.unwrap_or_else(|| match entered.next().expect("one for each entry") {
            Ok(()) | Err(Reject::Waiting) => {
                let receiver = wait.then(|| {
                    let (sender, receiver) = oneshot::channel();
                    waiters.entry(id).or_default().push(sender);
                    receiver
                });
                Answer::Pending(id, receiver)
            }
            Err(Reject::Full) => Answer::Full,
            Err(Reject::Refused(refusal)) => Answer::Refused(refusal),
        });
        shared.metrics.submitted(&answer);
        answer
    };
    let answers = known.into_iter().map(&mut answer).collect();
    shared.metrics.mempool.set(mempool.len() as i64);
    shared.fill.notify_all();
    answers
}

/// The producer thread.
fn produce(shared: &Arc<Shared>, made: &SyncSender<Made>, changed: &SyncSender<(Height, Changes)>) {
    let threads = shared.config.blocks.threads;
    let pool = match rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("apply-{i}")).build()
    {
        Ok(pool) => pool,
        Err(error) => return shared.fail(&error),
    };
    while let Some(entries) = next_entries(shared) {
        let Some(block) = assemble(shared, &entries) else { return };
        let ids = entries.iter().map(|entry| entry.id).collect();
        match pool.install(|| make(shared, block, ids, made, changed)) {
            Err(error) => return shared.fail(&error),
            Ok(false) => return,
            Ok(true) => {}
        }
    }
}

/// The executor thread: applies what the validators have decided.
fn execute(
    shared: &Arc<Shared>,
    agreed: &Receiver<Agreed>,
    made: &SyncSender<Made>,
    changed: &SyncSender<(Height, Changes)>,
    applied: &SyncSender<Input>,
) {
    let threads = shared.config.blocks.threads;
    let pool = match rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("apply-{i}")).build()
    {
        Ok(pool) => pool,
        Err(error) => return shared.fail(&error),
    };
    for agreed in agreed {
        let height = agreed.height;
        let done = pool.install(|| {
            if height <= shared.read_ledger().height() {
                return decided_again(shared, &agreed).map(|()| true);
            }
            let Some(foundation) = foundation(shared) else { return Ok(false) };
            if let Some(handovers) = shared.handovers.get()
                && !handovers.note(shared)?
            {
                return Ok(false);
            }
            let block = validator::block(&agreed, &foundation, &shared.verified);
            let ids = validator::ids(&block);
            make(shared, block, ids, made, changed)
        });
        match done {
            Err(error) => return shared.fail(&error),
            Ok(true) if applied.send(Input::Applied(height)).is_ok() => {}
            Ok(_) => return,
        }
    }
}

/// A height above the last archived certificate is decided once more after a restart: it must be what is logged.
fn decided_again(shared: &Shared, agreed: &Agreed) -> Result<(), ExchangeError> {
    let height = agreed.height;
    let logged = shared.body(height)?.ok_or(ExchangeError::DecidedTwice(height))?;
    let same = logged.sub_blocks.len() == agreed.sub_blocks.len()
        && logged
            .sub_blocks
            .iter()
            .zip(&agreed.sub_blocks)
            .all(|(sub, (slot, payload))| sub.proposer == u32::from(*slot) && sub.to_payload()[..] == payload[..]);
    if same { Ok(()) } else { Err(ExchangeError::DecidedTwice(height)) }
}

/// Commits a block and hands it on; false if nobody takes it any more.
fn make(
    shared: &Shared,
    block: Superblock,
    ids: Vec<TransactionId>,
    made: &SyncSender<Made>,
    changed: &SyncSender<(Height, Changes)>,
) -> Result<bool, ExchangeError> {
    let (applied, changes, stages_ms) = commit(shared, &block, &ids)?;
    let height = block.height;
    let every = shared.config.store.checkpoint_blocks;
    let due = every != 0 && height.is_multiple_of(every);
    let checkpoint = due.then(|| shared.read_ledger().clone());
    let outline = Outline::of(&shared.read_ledger());
    let sent = made.send(Made { block, entries: ids, applied, outline, stages_ms, checkpoint }).is_ok();
    Ok(sent && changed.send((height, changes)).is_ok())
}

/// Waits until a block is due. `None` when the node stops and nothing waits, or has failed.
fn next_entries(shared: &Shared) -> Option<Vec<Entry>> {
    let blocks = &shared.config.blocks;
    let mut mempool = shared.lock_mempool();
    loop {
        let stopping = shared.stopping.load(Ordering::Acquire);
        let failed = poisoned(shared.failure.lock()).is_some();
        if failed || (stopping && mempool.ready() == 0) {
            return None;
        }
        let age = mempool.oldest_ms().map(|arrived| shared.now_ms().saturating_sub(arrived));
        let due = age.is_some_and(|age| age >= blocks.interval_ms);
        if due || mempool.ready() >= blocks.transactions || stopping {
            return Some(mempool.take(blocks.transactions));
        }
        let rest = age.map_or(blocks.interval_ms, |age| blocks.interval_ms - age).max(1);
        mempool = match shared.fill.wait_timeout(mempool, Duration::from_millis(rest)) {
            Ok((mempool, _)) => mempool,
            Err(poisoned) => poisoned.into_inner().0,
        };
    }
}

/// What the next block builds on.
pub(crate) struct Foundation {
    /// Digest of the last block.
    pub(crate) parent: Digest,
    /// Its time.
    pub(crate) parent_ms: u64,
    /// The state root after it.
    pub(crate) parent_root: Digest,
}

/// What the next block builds on; waits for the state root. `None` if the node has failed.
fn foundation(shared: &Shared) -> Option<Foundation> {
    let (height, parent, parent_ms) = {
        let ledger = shared.read_ledger();
        (ledger.height(), ledger.last_block(), ledger.time_ms())
    };
    let mut at = poisoned(shared.roots.lock());
    while at.height < height {
        if poisoned(shared.failure.lock()).is_some() {
            return None;
        }
        at = match shared.rooted.wait_timeout(at, Duration::from_millis(100)) {
            Ok((at, _)) => at,
            Err(poisoned) => poisoned.into_inner().0,
        };
    }
    Some(Foundation { parent, parent_ms, parent_root: at.root })
}

/// Milliseconds since 1970, as this machine's clock says.
pub(crate) fn clock_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

/// Puts entries into a block on top of the present state.
fn assemble(shared: &Shared, entries: &[Entry]) -> Option<Superblock> {
    let Foundation { parent, parent_ms, parent_root } = foundation(shared)?;
    let native = entries.iter().map(|entry| entry.transaction.clone()).collect();
    let time_ms = block_time(parent_ms, &[clock_ms()], 1);
    let sub_blocks = vec![SubBlock { time_ms, native, ..SubBlock::default() }];
    let height = shared.read_ledger().height() + 1;
    Some(Superblock { height, parent, time_ms, parent_root, sub_blocks })
}

/// Applies a block. A panic of the ledger becomes an error that names the block; the state is lost then.
pub(crate) fn apply(
    ledger: &mut Ledger,
    block: &Superblock,
    signatures: Signatures,
    stage: &mut dyn FnMut(Stage),
) -> Result<Applied, ExchangeError> {
    let applied = named(block.height, || ledger.apply(block, signatures, stage))?;
    Ok(applied?)
}

/// Runs what works on the block of a height, and names that height should it panic.
fn named<T>(height: Height, run: impl FnOnce() -> T) -> Result<T, ExchangeError> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let what = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word");
        ExchangeError::Panicked { height, what: what.into() }
    })
}

type Commit = (Applied, Changes, Vec<(&'static str, f64)>);

/// Logs and applies a block side by side. Nobody reads the new state before it is durable.
fn commit(shared: &Shared, block: &Superblock, ids: &[TransactionId]) -> Result<Commit, ExchangeError> {
    let (bytes, known) = (block.to_bytes(), block.signatures());
    let mut ledger = poisoned(shared.ledger.write());
    let mut stages = Stages::new();
    let (applied, logged) = std::thread::scope(|scope| {
        let log = scope.spawn(|| {
            let begun = Instant::now();
            let mut store = shared.lock_store();
            store.append(block.height, &bytes)?;
            store.sync()?;
            Ok::<_, StoreError>(milliseconds(begun.elapsed()))
        });
        let signatures = known.as_ref().map_or(Signatures::Valid, |valid| Signatures::Known(valid));
        let applied = apply(&mut ledger, block, signatures, &mut |stage| stages.end(stage));
        (applied, log.join())
    });
    let log_ms = logged.expect("the log thread does not panic")?;
    let mut applied = applied?;
    stages.0.push(("log", log_ms));
    let mut mempool = shared.lock_mempool();
    let transactions = block.sub_blocks.iter().flat_map(|sub| &sub.native);
    // A copy with a false signature does not settle the transaction that it copies.
    let is_signed = |at: &usize| known.as_ref().is_none_or(|valid| valid[*at]);
    let settled = ids.iter().copied().zip(transactions).enumerate().filter(|(at, _)| is_signed(at));
    mempool.settle(settled.map(|(_, settled)| settled), ledger.fee());
    shared.metrics.mempool.set(mempool.len() as i64);
    let changes = std::mem::take(&mut applied.changes);
    Ok((applied, changes, stages.0))
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

/// Times the stages of a block.
struct Stages(Vec<(&'static str, f64)>, Instant);

impl Stages {
    fn new() -> Stages {
        Stages(Vec::with_capacity(8), Instant::now())
    }

    fn end(&mut self, stage: Stage) {
        self.0.push((stage.name(), milliseconds(self.1.elapsed())));
        self.1 = Instant::now();
    }
}

/// Starts a checkpoint in the background, if none is being written.
fn checkpoint(shared: &Arc<Shared>, state: Ledger) {
    let height = state.height();
    let keep = shared.config.store.keep_blocks;
    let begun = {
        let mut store = shared.lock_store();
        // Whole files are forgotten: they end where checkpoints are.
        let files = if keep > 0 { store.begin_files() } else { Ok(()) };
        files.and_then(|()| store.begin_checkpoint(height))
    };
    let writer = match begun {
        Ok(writer) => writer,
        Err(StoreError::CheckpointRunning) => return,
        Err(error) => return shared.fail(&error),
    };
    let shared = shared.clone();
    let write = move || {
        let begun = Instant::now();
        match write_checkpoint(&state, writer) {
            Ok(()) => tracing::info!(height, ms = begun.elapsed().as_millis() as u64, "checkpoint written"),
            Err(error) => return shared.fail(&error),
        }
        if keep > 0 {
            let needed = shared.certified_durably.load(Ordering::Acquire);
            match shared.lock_store().forget_below((height + 1).saturating_sub(keep).min(needed)) {
                Ok(first) => tracing::debug!(first, "older blocks are forgotten"),
                Err(error) => shared.fail(&error),
            }
        }
    };
    if let Err(error) = std::thread::Builder::new().name("checkpoint".into()).spawn(write) {
        tracing::warn!(%error, "no checkpoint this time");
    }
}

/// The publisher thread.
fn publish(shared: &Arc<Shared>, blocks: &Receiver<Made>, consensus: Option<&SyncSender<Input>>) {
    for Made { block, entries, applied, outline, stages_ms, checkpoint: state } in blocks {
        let receipts = Arc::new(ProvenReceipts::new(receipts_with(&applied, &entries)));
        let (block, receipts_root) = (Arc::new(block), receipts.root);
        shared.bodies.put(block.height, entries.len(), block.clone());
        shared.receipts.put(block.height, entries.len(), receipts.clone());
        let committed = Arc::new(CommittedBlock::new(&block, &applied, &entries, receipts_root, outline, stages_ms));
        let transactions: Vec<&Transaction> = block.sub_blocks.iter().flat_map(|sub| &sub.native).collect();
        shared.published.commit(&committed, &transactions);
        shared.metrics.committed(&committed);
        answer_waiters(shared, &committed);
        let bytes = encode(&receipts.receipts);
        if let Err(error) = shared.lock_store().put_receipts(block.height, &bytes) {
            return shared.fail(&error);
        }
        if let Some(state) = state {
            checkpoint(shared, state);
        }
        // Nobody listens when the node stops.
        drop(consensus.map(|consensus| consensus.send(Input::ReceiptsRoot(block.height, receipts_root))));
        let summary = &committed.summary;
        tracing::info!(
            height = summary.height,
            transactions = summary.transactions,
            refused = summary.transactions - summary.applied,
            fills = summary.fills,
            pairs = summary.pairs,
            full = summary.full,
            ms = %format_args!("{:.1}", summary.stages_ms.iter().filter(|(name, _)| *name != "log").map(|(_, ms)| ms).sum::<f64>()),
            log_ms = %format_args!("{:.1}", summary.stages_ms.last().map_or(0.0, |(_, ms)| *ms)),
            "block"
        );
        shared.published.announce(committed);
    }
}

/// The candles thread: makes those of archived blocks again, newest first, from this height down.
fn remember_candles(shared: &Arc<Shared>, from: Height) {
    let last = from.saturating_sub(shared.config.store.candle_blocks);
    for height in (last + 1..=from).rev() {
        if shared.stopping.load(Ordering::Acquire) {
            return;
        }
        match archived(shared, height) {
            Ok(Some((time_ms, batch))) => shared.published.add_batch(height, time_ms, &batch),
            Ok(None) => return,
            // A node needs no old block to go on; `walras inspect` says what else is damaged.
            Err(error) => return tracing::warn!(%error, height, "no candles of older blocks"),
        }
    }
}

/// Clock and batch of an archived block; `None` if it is not there.
fn archived(shared: &Shared, height: Height) -> Result<Option<(u64, Batch)>, ExchangeError> {
    let (block, receipts) = (shared.archive.block(height)?, shared.archive.receipts(height)?);
    let (Some(block), Some(receipts)) = (block, receipts) else { return Ok(None) };
    let undecodable = |error| ExchangeError::Undecodable(height, error);
    let block: Superblock = borsh::from_slice(&block).map_err(undecodable)?;
    let receipts: BlockReceipts = borsh::from_slice(&receipts).map_err(undecodable)?;
    Ok(Some((block.time_ms, receipts.batch)))
}

fn answer_waiters(shared: &Shared, committed: &CommittedBlock) {
    let mut waiters = poisoned(shared.waiters.lock());
    if waiters.is_empty() {
        return;
    }
    let outcomes = committed.outcomes.iter().map(|(_, id, outcome)| (*id, *outcome));
    for (id, outcome) in outcomes_by_id(outcomes) {
        for waiter in waiters.remove(&id).into_iter().flatten() {
            // Whoever waited may have gone away.
            let _ = waiter.send(Found { height: committed.summary.height, outcome });
        }
    }
}

/// The roots thread.
fn follow(shared: &Arc<Shared>, changes: &Receiver<(Height, Changes)>, consensus: Option<&SyncSender<Input>>) {
    for (height, changes) in changes {
        let begun = Instant::now();
        let mut at = poisoned(shared.roots.lock());
        at.root = at.roots.apply(&changes);
        at.height = height;
        let root = at.root;
        drop(at);
        shared.rooted.notify_all();
        shared.metrics.hashing.observe(begun.elapsed().as_secs_f64());
        shared.published.set_state_root(height, root);
        // Nobody listens when the node stops.
        drop(consensus.map(|consensus| consensus.send(Input::StateRoot(height, root))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_over_a_block_names_it_and_the_way_out() {
        let divided = named(812, || 1 / std::hint::black_box(0));
        let error = divided.expect_err("it panics").to_string();
        for part in ["block 812", "divide by zero", "keep the data directory", "a version that applies the block"] {
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(named(813, || 7).expect("nothing panics"), 7);
    }
}
