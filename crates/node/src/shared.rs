//! State shared by the threads of a node, and how they stop together.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Condvar, Mutex, OnceLock, RwLock, RwLockReadGuard, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use consensus::Index;
use doors::TakenOrders;
use ledger::{Ledger, Roots};
use member::LaneBlock;
use payments::{HomeEpoch, LaneEffect};
use pit::RulesEnd;
use primitives::{Digest, Height, Superblock};
use readers::Published;
use readers::cache::{Cache, ProvenReceipts};
use readers::metrics::Metrics;
use replica::{Handovers, Now, ReplicaError, SeatSecrets, ValidatorStatus};
use store::{Archive, RealDisk, Store, StoreError};
use tokio::sync::watch;
use transport::{LinkStream, Transport};

use crate::block_jobs::BlockJobs;
use crate::config::Config;
use crate::empty_blocks::EmptyBlocks;
use crate::history::History;
use crate::history::index::HistoryIndexError;
use crate::intake_queue::IntakeQueue;
use crate::lane::line::LineEvent;
use crate::locks::{Held, Locked, Rank, Ranked};
use crate::pool::{Pool, Pooled};
use crate::recovery::Recovered;
use crate::venue::line::VenueLine;
use crate::verified::Verified;

/// Milliseconds since 1970, from this machine's clock.
pub(crate) fn clock_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
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
    /// The history of accounts.
    #[error(transparent)]
    History(#[from] HistoryIndexError),
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

/// What readers of the chain see.
pub(crate) struct Readers {
    pub published: Published,
    pub bodies: Cache<Superblock>,
    pub receipts: Cache<ProvenReceipts>,
}

/// Whether a node lives, and why it does not.
#[derive(Default)]
pub(crate) struct LifeCycle {
    pub stopping: AtomicBool,
    /// Whether the node must restart with a fetched state.
    pub again: AtomicBool,
    /// The rules of the next block, if this node does not follow them; 0 otherwise.
    pub needs_rules: AtomicU32,
    /// The newest rules that the chain has agreed on, if this node does not follow them, and their first height; zeros
    /// otherwise.
    pub unknown_rules: AtomicU32,
    pub unknown_from: AtomicU64,
    /// Why it has failed.
    pub failure: OnceLock<String>,
    pub failed: tokio::sync::Notify,
}

/// What others see of a validator; its consensus thread tells it.
pub(crate) struct Seat {
    /// `None` in a solo node.
    pub status: watch::Sender<Option<ValidatorStatus>>,
    /// The links to other validators; none in a solo node.
    pub links: watch::Sender<Present>,
    /// The lag of certified roots, and the certificates; unset in a solo node.
    pub certificates: OnceLock<(u64, Archive<RealDisk>)>,
    /// The last certified height.
    pub certified: AtomicU64,
    /// The proofs of later committees; unset in a solo node.
    pub handovers: OnceLock<Arc<Handovers<RealDisk>>>,
    /// Sub-blocks of other validators, checked ahead of time.
    pub verified: Verified,
    /// The secrets of this seat for sealing keys, as its disk has them.
    pub sealing: watch::Sender<SeatSecrets>,
    #[cfg(test)]
    pub spoil: OnceLock<Spoil>,
}

impl Seat {
    fn new(network: Digest) -> Seat {
        Seat {
            status: watch::Sender::new(None),
            links: watch::Sender::new(Present::default()),
            certificates: OnceLock::new(),
            certified: AtomicU64::new(0),
            handovers: OnceLock::new(),
            verified: Verified::new(network),
            sealing: watch::Sender::default(),
            #[cfg(test)]
            spoil: OnceLock::new(),
        }
    }

    /// The status of this validator; `None` in a solo node.
    pub fn status(&self) -> Option<ValidatorStatus> {
        self.status.borrow().clone()
    }

    /// Sends a frame, if the links still have the intended generation.
    pub fn send(&self, generation: u64, peer: Index, stream: LinkStream, bytes: Arc<[u8]>) {
        let (present, transport) = self.links();
        if let Some(transport) = transport.filter(|_| present == generation) {
            transport.send(peer, stream, bytes);
        }
    }

    /// The links, and their generation.
    pub fn links(&self) -> (u64, Option<Arc<Transport>>) {
        let present = self.links.borrow();
        (present.generation, present.transport.upgrade())
    }

    /// Gives a frame to all other validators that are connected.
    pub fn tell_validators(&self, status: &ValidatorStatus, frame: &Arc<[u8]>) {
        let Some(transport) = self.links().1 else { return };
        let others = status.peers.iter().map(|peer| peer.validator);
        let members = others.filter(|peer| *peer != status.me && usize::from(*peer) < status.validators);
        members.for_each(|peer| transport.send(peer, LinkStream::Bulk, frame.clone()));
    }
}

/// State shared by the threads of a node, by owner. Its four locks are those of [`crate::locks`].
pub(crate) struct Shared {
    pub config: Config,
    /// The identity of the network, which transactions sign.
    pub network: Digest,
    /// Whether it is a developers' chain.
    pub is_developers: bool,
    pub started: Instant,
    /// The height that the node had when it started.
    pub recovered: Height,
    pub metrics: Metrics,
    pub ledger: Ranked<RwLock<Ledger>>,
    pub roots: Ranked<Mutex<RootsAt>>,
    /// Signalled when the tries have caught up.
    pub rooted: Condvar,
    /// What waits for its turn to be checked.
    pub intake: IntakeQueue,
    pub pool: Pool,
    /// The orders that clients have placed here lately.
    pub taken: TakenOrders,
    pub readers: Readers,
    pub archive: Archive<RealDisk>,
    store: Ranked<Mutex<Store<RealDisk>>>,
    /// Where the workers on blocks meet; without workers on a developers' chain.
    pub jobs: BlockJobs,
    pub life: LifeCycle,
    pub seat: Seat,
    /// The receiver of blocks' facts about the payment lane; unset in a node that takes no part in it.
    pub lane_facts: OnceLock<SyncSender<LaneHeard>>,
    /// The history of accounts; unset while the node starts.
    pub history: OnceLock<History>,
    /// The venue that hears of blocks; unset in a node that runs none.
    pub venue: OnceLock<VenueLine>,
    /// What the log has not said of empty blocks.
    pub empty_blocks: EmptyBlocks,
}

/// What the host of a member of the payment lane hears.
pub(crate) enum LaneHeard {
    /// What a block says about the lane.
    Block(LaneBlock),
    /// A report of a shard of a home.
    Reported(HomeEpoch, u16, LaneEffect),
    /// Something happened on a connection to a shard that runs apart.
    Line(u16, LineEvent),
}

/// The present links, for threads other than the one that owns them.
#[derive(Default)]
pub(crate) struct Present {
    pub generation: u64,
    pub transport: Weak<Transport>,
}

impl Shared {
    /// The state of a node that has just recovered.
    pub(crate) fn new(config: Config, recovered: Recovered) -> Shared {
        let Recovered { ledger, roots, store, views } = recovered;
        let (network, is_developers) = (ledger.network(), ledger.is_developers());
        let ledger_needs = ledger.needs_rules().unwrap_or(0);
        let mut roots = RootsAt { height: ledger.height(), root: Digest::default(), roots };
        roots.root = roots.roots.parts().root();
        let readers = Readers {
            published: Published::new(views),
            bodies: Cache::new(config.store.cached_bodies),
            receipts: Cache::new(config.store.cached_receipts),
        };
        Shared {
            intake: IntakeQueue::new(),
            pool: Pool::new(config.mempool.transactions),
            taken: TakenOrders::default(),
            config,
            network,
            is_developers,
            started: Instant::now(),
            recovered: ledger.height(),
            metrics: Metrics::new(),
            ledger: Ranked::shared(Rank::Ledger, ledger),
            roots: Ranked::mutex(Rank::Roots, roots),
            rooted: Condvar::new(),
            readers,
            archive: store.archive(),
            store: Ranked::mutex(Rank::Store, store),
            jobs: BlockJobs::new(),
            life: LifeCycle { needs_rules: AtomicU32::new(ledger_needs), ..LifeCycle::default() },
            seat: Seat::new(network),
            lane_facts: OnceLock::new(),
            history: OnceLock::new(),
            venue: OnceLock::new(),
            empty_blocks: EmptyBlocks::default(),
        }
    }

    /// Milliseconds since the node started.
    pub fn now_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    pub fn read_ledger(&self) -> Held<RwLockReadGuard<'_, Ledger>> {
        self.ledger.read()
    }

    /// The time of a step of the replica.
    pub(crate) fn now(&self) -> Now {
        Now { since: self.started.elapsed(), wall_ms: clock_ms() }
    }

    /// Notes what the pool holds, after a change.
    pub(crate) fn note_pool(&self, pooled: &Pooled) {
        self.metrics.mempool.set(pooled.mempool.len() as i64);
        self.pool.note(pooled);
    }

    pub(crate) fn lock_store(&self) -> Locked<'_, Store<RealDisk>> {
        self.store.lock()
    }

    /// The newest state root and its height.
    pub fn newest_root(&self) -> (Height, Digest) {
        let at = self.roots.lock();
        (at.height, at.root)
    }

    /// Whether the pipeline has failed.
    pub fn has_failed(&self) -> bool {
        self.life.failure.get().is_some()
    }

    /// The rules of the next block, if this node does not follow them.
    pub fn needs_rules(&self) -> Option<u32> {
        Some(self.life.needs_rules.load(Ordering::Acquire)).filter(|rules| *rules > 0)
    }

    /// Notes what the last block says about the rules, and warns once of those that this node does not follow.
    pub(crate) fn note_rules(&self) {
        let ledger = self.read_ledger();
        self.life.needs_rules.store(ledger.needs_rules().unwrap_or(0), Ordering::Release);
        let rules = &ledger.charter().rules;
        let (number, meant, acts) = rules.agreed();
        self.metrics.note_rules(ledger.next_rules(), number, ledger::followed(rules, ledger.newest_rules()));
        self.metrics.note_sealing(&ledger);
        let (unknown, from) = if ledger.follows(number, &meant) { (0, 0) } else { (number, acts) };
        self.life.unknown_from.store(from, Ordering::Release);
        if self.life.unknown_rules.swap(unknown, Ordering::AcqRel) != unknown && unknown > 0 {
            tracing::warn!(rules = number, from_height = acts, "{}", needs_rules(&ledger));
        }
    }

    /// The rules before which this node stops, if the chain has agreed on such.
    pub(crate) fn ends(&self) -> Option<RulesEnd> {
        let (rules, height) =
            (self.life.unknown_rules.load(Ordering::Acquire), self.life.unknown_from.load(Ordering::Acquire));
        (rules > 0).then_some(RulesEnd { rules, height })
    }

    /// Whether the node still accepts transactions.
    pub fn is_ready(&self) -> bool {
        !self.life.stopping.load(Ordering::Acquire) && !self.has_failed()
    }

    /// The ledger together with tries of the same height, for proofs. Waits while the tries catch up; `None` if the
    /// node has failed and they never will.
    pub fn with_roots<T>(&self, read: impl FnOnce(&Ledger, &mut Roots) -> T) -> Option<T> {
        loop {
            let ledger = self.read_ledger();
            let mut at = self.roots.lock();
            if at.height == ledger.height() {
                return Some(read(&ledger, &mut at.roots));
            }
            drop(ledger);
            if self.has_failed() {
                return None;
            }
            drop(at.wait(&self.rooted, Duration::from_millis(50)));
        }
    }

    pub(crate) fn stop(&self) {
        self.life.stopping.store(true, Ordering::Release);
        // A thread that looks under this lock now sees it, or is woken.
        drop(self.pool.lock());
        self.pool.wake();
        self.rooted.notify_all();
    }

    /// Stops, to restart with the fetched state of this height.
    pub(crate) fn begin_again(&self, height: Height) {
        tracing::info!(height, "a state was fetched and is certified: the pipeline stops and restarts with it");
        self.life.again.store(true, Ordering::Release);
        // Nobody here will answer these waiters.
        self.pool.lock().waiters.clear();
        self.end(format!(
            "the state at height {height} was fetched from other validators: start the node again to continue with it"
        ));
    }

    pub(crate) fn fail(&self, error: &dyn std::fmt::Display) {
        tracing::error!(%error, "the pipeline stops");
        self.end(error.to_string());
    }

    fn end(&self, reason: String) {
        self.life.failure.get_or_init(|| reason);
        self.jobs.close();
        self.stop();
        self.life.failed.notify_waiters();
        self.life.failed.notify_one();
    }
}

/// What an operator must do about rules that a node does not follow.
pub(crate) fn needs_rules(ledger: &Ledger) -> String {
    format!(
        "the chain comes to rules that this program does not know (it knows up to {}, as the chain means them): install a \
         version of walras for them; without it this node stops before their first height, reads on, and loses nothing",
        ledger::followed(&ledger.charter().rules, ledger.newest_rules())
    )
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

/// In tests: what a faulty validator sends instead of an answer about states.
#[cfg(test)]
pub(crate) type Spoil = Box<
    dyn Fn(replica::state_sync::message::StateMessage) -> Option<replica::state_sync::message::StateMessage>
        + Send
        + Sync,
>;
