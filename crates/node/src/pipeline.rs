//! The threads that make blocks durable, apply and publish them. The steps are in [`replica`]; this module
//! distributes them over threads and queues.
//!
//! ```text
//! submit ─► intake ─► mempool ─► producer ─► publisher ─► answers, stream, views, receipts
//!           checks     reserves   log ∥ apply     │
//!           signatures                            └─► roots (tries follow, one block behind)
//! ```
//!
//! Four threads in one direction. *Intake* ([`crate::intake`]) checks signatures in batches and admits. The
//! *producer* of a solo node makes a block when enough transactions are pending or one has been pending long enough,
//! writes it to the log and applies it at the same time, and lets nobody read the new state before both are done. The
//! *publisher* answers waiting clients: a client that is told "committed" can rely on the block being on disk.
//! *Roots* writes the changes into the tries while the next block fills.
//!
//! In a network of several validators the *executor* replaces the producer: blocks come from consensus
//! ([`crate::validator`]). On a developers' chain one thread is producer, publisher and roots ([`crate::developer`]).
//! The *candles* thread reads old blocks from the archive after the start. Locks are taken in this order: ledger,
//! roots, mempool, published state, waiters, store.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::{Duration, Instant};

use ledger::{Applied, Changes, Ledger, Stage, outcomes_by_id};
use primitives::{Digest, Height, Superblock, Transaction, TransactionId};
use rayon::prelude::*;
use replica::{Agreed, Foundation, HandoverLog, Input, Past, PoolEntry, ReplicaError, receipts_with};
use store::{RealDisk, Store, StoreError};

use crate::inbox::InboxSender;
use crate::lane_evidence;
use crate::payment_lane::LaneHeard;
use crate::shared::{ExchangeError, Shared, clock_ms, poisoned};
use doors::cache::ProvenReceipts;
use doors::{CommittedBlock, Found, Outline};

/// Interval of checks for receipts that are being archived; needed once per epoch.
const WAIT_FOR_RECEIPTS: Duration = Duration::from_millis(1);

/// Maximum bytes of Ethereum transactions in a block of a validator that produces blocks alone.
pub(crate) const LANE_BYTES: usize = 8 << 20;

/// A durable and applied block, on its way to the publisher.
pub(crate) struct Made {
    block: Superblock,
    entries: Vec<TransactionId>,
    applied: Applied,
    outline: Outline,
    stages_ms: Vec<(&'static str, f64)>,
    /// The state, if a checkpoint of it is due. The checkpoint begins once the receipts up to it are archived:
    /// recovery does not rebuild those.
    checkpoint: Option<Ledger>,
}

/// The producer thread.
pub(crate) fn produce(shared: &Arc<Shared>, made: &SyncSender<Made>, changed: &SyncSender<(Height, Changes)>) {
    let pool = match apply_threads(shared) {
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

/// The executor thread: applies the superblocks that the validators have decided.
pub(crate) fn execute(
    shared: &Shared,
    past: &Past<RealDisk>,
    mut handovers: HandoverLog<RealDisk>,
    agreed: &Receiver<Agreed>,
    made: &SyncSender<Made>,
    changed: &SyncSender<(Height, Changes)>,
    applied: &InboxSender,
) {
    let pool = match apply_threads(shared) {
        Ok(pool) => pool,
        Err(error) => return shared.fail(&error),
    };
    for agreed in agreed {
        let height = agreed.height;
        let done = pool.install(|| {
            if height <= shared.read_ledger().height() {
                return Ok(agreed.is_logged(past).map(|()| true)?);
            }
            let Some(foundation) = foundation(shared) else { return Ok(false) };
            if !keep_handover(shared, &mut handovers)? {
                return Ok(false);
            }
            let block = agreed.block(&foundation, |slot, payload| shared.verified.claim(slot, payload));
            let ids = ids(&block);
            make(shared, block, ids, made, changed)
        });
        match done {
            Err(error) => return shared.fail(&error),
            Ok(true) if applied.push_result(Input::Applied(height)) => {}
            Ok(_) => return,
        }
    }
}

/// The transactions of a block with their ids, in order.
fn ids(block: &Superblock) -> Vec<TransactionId> {
    let transactions: Vec<&Transaction> = block.sub_blocks.iter().flat_map(|sub| &sub.native).collect();
    transactions.par_iter().map(|transaction| transaction.id()).collect()
}

/// Stores the registry after the last applied block, if a handover needs it, before the next block is logged. Returns
/// false if the node has failed.
fn keep_handover(shared: &Shared, handovers: &mut HandoverLog<RealDisk>) -> Result<bool, ExchangeError> {
    let (height, due) = {
        let ledger = shared.read_ledger();
        (ledger.height(), handovers.held.due(&ledger))
    };
    let Some(epoch) = due else { return Ok(true) };
    if shared.archive.block(height)?.is_none() {
        tracing::warn!(epoch, height, "cannot store the handover to this epoch: this node never had its block");
        return Ok(true);
    }
    let Some(receipts) = receipts_root(shared, height)? else { return Ok(false) };
    let kept = shared.with_roots(|ledger, roots| handovers.keep(epoch, ledger, roots, receipts));
    Ok(kept.transpose()?.is_some())
}

/// The receipts root of a height whose block is held; waits for the publisher. `None` if the node has failed.
fn receipts_root(shared: &Shared, height: Height) -> Result<Option<Digest>, ExchangeError> {
    loop {
        if let Some(receipts) = shared.receipts(height)? {
            return Ok(Some(receipts.root));
        }
        if poisoned(shared.failure.lock()).is_some() {
            return Ok(None);
        }
        std::thread::sleep(WAIT_FOR_RECEIPTS);
    }
}

pub(crate) fn apply_threads(shared: &Shared) -> Result<rayon::ThreadPool, rayon::ThreadPoolBuildError> {
    let threads = shared.config.blocks.threads;
    rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("apply-{i}")).build()
}

/// Commits a block and passes it on; false if the receiver is gone.
fn make(
    shared: &Shared,
    block: Superblock,
    ids: Vec<TransactionId>,
    made: &SyncSender<Made>,
    changed: &SyncSender<(Height, Changes)>,
) -> Result<bool, ExchangeError> {
    let height = block.height;
    let (block, changes) = log_and_apply(shared, block, ids, replica::log)?;
    Ok(made.send(block).is_ok() && changed.send((height, changes)).is_ok())
}

/// Commits a block; it remains to publish it and to update the tries. A developers' chain writes no checkpoints,
/// because it may revert to below them.
pub(crate) fn log_and_apply(
    shared: &Shared,
    block: Superblock,
    entries: Vec<TransactionId>,
    log: Log,
) -> Result<(Made, Changes), ExchangeError> {
    let (applied, changes, stages_ms) = commit(shared, &block, &entries, log)?;
    let every = shared.config.store.checkpoint_blocks;
    let ledger = shared.read_ledger();
    let due = every != 0 && block.height.is_multiple_of(every) && !ledger.is_developers();
    let checkpoint = due.then(|| ledger.clone());
    let outline = Outline::of(&ledger);
    drop(ledger);
    Ok((Made { block, entries, applied, outline, stages_ms, checkpoint }, changes))
}

/// Waits until a block is due. `None` if the node has failed, or stops with nothing pending.
fn next_entries(shared: &Shared) -> Option<Vec<PoolEntry>> {
    let blocks = &shared.config.blocks;
    let mut mempool = shared.lock_mempool();
    loop {
        let stopping = shared.stopping.load(Ordering::Acquire);
        let failed = poisoned(shared.failure.lock()).is_some();
        if failed || (stopping && mempool.ready() == 0 && mempool.ethereum.waits_since_ms().is_none()) {
            return None;
        }
        let age = mempool.oldest_ms().map(|arrived| shared.now_ms().saturating_sub(arrived));
        let due = age.is_some_and(|age| age >= blocks.interval_ms);
        if due || mempool.ready() >= blocks.transactions || stopping {
            let mut quota = ledger::Quota::default();
            let admits = |entry: &PoolEntry| quota.admits(&entry.transaction);
            return Some(mempool.take_while(blocks.transactions, admits));
        }
        let rest = age.map_or(blocks.interval_ms, |age| blocks.interval_ms - age).max(1);
        mempool = match shared.fill.wait_timeout(mempool, Duration::from_millis(rest)) {
            Ok((mempool, _)) => mempool,
            Err(poisoned) => poisoned.into_inner().0,
        };
    }
}

/// The foundation of the next block; waits for the state root. `None` if the node has failed.
fn foundation(shared: &Shared) -> Option<Foundation> {
    let height = shared.read_ledger().height();
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
    let root = at.root;
    drop(at);
    Some(Foundation::of(&shared.read_ledger(), root))
}

/// Puts entries into a block on top of the present state.
fn assemble(shared: &Shared, entries: &[PoolEntry]) -> Option<Superblock> {
    let foundation = foundation(shared)?;
    let native = entries.iter().map(|entry| entry.transaction.clone()).collect();
    let height = shared.read_ledger().height() + 1;
    let ethereum = shared.lock_mempool().ethereum.take(LANE_BYTES, shared.now_ms());
    Some(foundation.own_block(height, native, ethereum, clock_ms()))
}

type Commit = (Applied, Changes, Vec<(&'static str, f64)>);

/// Writes a block to the log.
pub(crate) type Log = fn(&mut Store<RealDisk>, &Superblock) -> Result<(), StoreError>;

/// Logs and applies a block in parallel. Nobody can read the new state before it is durable.
fn commit(shared: &Shared, block: &Superblock, ids: &[TransactionId], log: Log) -> Result<Commit, ExchangeError> {
    let mut ledger = poisoned(shared.ledger.write());
    let mut stages = Stages::new();
    let (applied, logged) = std::thread::scope(|scope| {
        let logged = scope.spawn(|| {
            let begun = Instant::now();
            log(&mut shared.lock_store(), block)?;
            Ok::<_, StoreError>(milliseconds(begun.elapsed()))
        });
        let applied = replica::apply(&mut ledger, block, &mut |stage| stages.end(stage));
        (applied, logged.join())
    });
    let log_ms = logged.expect("the log thread does not panic")?;
    let mut applied = applied?;
    stages.0.push(("log", log_ms));
    let executed = applied.contracts.receipts.iter().map(|receipt| receipt.id);
    shared.unpublished.begin(ids.iter().copied().chain(executed).collect());
    let dropped = replica::settle(&mut shared.lock_mempool(), &ledger, block, ids, &applied.contracts.skipped);
    for (id, why) in dropped {
        tracing::info!(%id, %why, "an Ethereum transaction is dropped from the pool");
    }
    shared.note_pool();
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

/// Starts a checkpoint in the background, unless one is being written.
fn checkpoint(shared: &Arc<Shared>, state: Ledger) {
    let (height, keep) = (state.height(), shared.config.store.keep_blocks);
    let writer = match replica::begin_checkpoint(&mut shared.lock_store(), height, keep > 0) {
        Ok(Some(writer)) => writer,
        Ok(None) => return,
        Err(error) => return shared.fail(&error),
    };
    let shared = shared.clone();
    let write = move || {
        let begun = Instant::now();
        match replica::write_checkpoint(&state, writer) {
            Ok(()) => tracing::info!(height, ms = begun.elapsed().as_millis() as u64, "checkpoint written"),
            Err(error) => return shared.fail(&error),
        }
        if keep > 0 {
            let needed = shared.certified_durably.load(Ordering::Acquire);
            match replica::forget(&mut shared.lock_store(), height, keep, needed) {
                Ok(first) => tracing::debug!(first, "older blocks were removed"),
                Err(error) => shared.fail(&error),
            }
        }
    };
    if let Err(error) = std::thread::Builder::new().name("checkpoint".into()).spawn(write) {
        tracing::warn!(%error, "cannot start the checkpoint thread; the next checkpoint is tried as scheduled");
    }
}

/// The publisher thread.
pub(crate) fn publish(shared: &Arc<Shared>, blocks: &Receiver<Made>, consensus: Option<&InboxSender>) {
    for made in blocks {
        if let Err(error) = publish_one(shared, made, consensus) {
            return shared.fail(&error);
        }
    }
}

/// Publishes a block and archives its receipts.
pub(crate) fn publish_one(shared: &Arc<Shared>, made: Made, consensus: Option<&InboxSender>) -> Result<(), StoreError> {
    let Made { block, entries, applied, outline, stages_ms, checkpoint: state } = made;
    let receipts = Arc::new(ProvenReceipts::new(receipts_with(&applied, &entries)));
    let (block, receipts_root) = (Arc::new(block), receipts.root);
    let transactions = entries.len() + block.ethereum_len();
    shared.bodies.insert(block.height, transactions, block.clone());
    shared.receipts.insert(block.height, transactions, receipts.clone());
    let committed = Arc::new(CommittedBlock::new(&block, &applied, &entries, receipts_root, outline, stages_ms));
    let transactions: Vec<&Transaction> = block.sub_blocks.iter().flat_map(|sub| &sub.native).collect();
    shared.published.commit(&committed, &transactions, &receipts.receipts.contracts);
    shared.unpublished.end();
    shared.metrics.committed(&committed);
    answer_waiters(shared, &committed);
    replica::archive(&mut shared.lock_store(), &receipts.receipts)?;
    if let Some(state) = state {
        checkpoint(shared, state);
    }
    // The receiver is gone when the node stops.
    if let Some(host) = shared.lane_facts.get() {
        let posts = lane_evidence::posts_of(&block, &applied.outcomes);
        drop(host.send(LaneHeard::Block(block.height, applied.lane.clone(), posts)));
    }
    // The receiver is gone when the node stops.
    consensus.map(|consensus| consensus.push_result(Input::ReceiptsRoot(block.height, receipts_root)));
    let summary = &committed.summary;
    tracing::info!(
        height = summary.height,
        transactions = summary.transactions,
        refused = summary.transactions - summary.applied,
        fills = summary.fills,
        pairs = summary.pairs,
        full = summary.full,
        ms = %format_args!("{:.1}", summary.stages_ms.iter().filter(|(name, _)| *name != "log")
            .map(|(_, ms)| ms).sum::<f64>()),
        log_ms = %format_args!("{:.1}", summary.stages_ms.last().map_or(0.0, |(_, ms)| *ms)),
        "block"
    );
    shared.published.announce(committed);
    Ok(())
}

fn answer_waiters(shared: &Shared, committed: &CommittedBlock) {
    let mut waiters = poisoned(shared.waiters.lock());
    if waiters.is_empty() {
        return;
    }
    let outcomes = committed.outcomes.iter().map(|(_, id, outcome)| (*id, *outcome));
    for (id, outcome) in outcomes_by_id(outcomes) {
        for waiter in waiters.remove(&id).into_iter().flatten() {
            // The client may be gone.
            let _ = waiter.send(Found { height: committed.summary.height, outcome });
        }
    }
}

/// The roots thread.
pub(crate) fn follow(shared: &Arc<Shared>, changes: &Receiver<(Height, Changes)>, consensus: Option<&InboxSender>) {
    for (height, changes) in changes {
        let root = match follow_one(shared, height, &changes) {
            Ok(root) => root,
            Err(error) => return shared.fail(&error),
        };
        // The receiver is gone when the node stops.
        consensus.map(|consensus| consensus.push_result(Input::StateRoot(height, root)));
    }
}

/// Writes the changes of a block into the tries; returns their root.
pub(crate) fn follow_one(shared: &Shared, height: Height, changes: &Changes) -> Result<Digest, ReplicaError> {
    let begun = Instant::now();
    let mut at = poisoned(shared.roots.lock());
    at.root = replica::hash(&mut at.roots, height, changes)?;
    at.height = height;
    let root = at.root;
    drop(at);
    shared.rooted.notify_all();
    shared.metrics.hashing.observe(begun.elapsed().as_secs_f64());
    shared.published.set_state_root(height, root);
    Ok(root)
}
