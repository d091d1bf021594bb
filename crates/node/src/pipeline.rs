//! The workers on blocks: each performs its jobs of the life of a block ([`replica::life`]) on a thread of its own.
//!
//! ```text
//! submit ─► intake ─► mempool ─► executor ─► publisher ─► answers, stream, views, receipts ─► checkpointer
//!           checks     reserves   ║  ▲         ▲
//!           signatures            ║  └─ jobs ──┤     the life says who may begin, and when
//!                                 logger       └─► roots (tries follow, one block behind)
//! ```
//!
//! *Intake* ([`crate::intake`]) checks signatures in batches and admits. The *executor* applies a block while the
//! *logger* makes it durable; nobody reads the new state before both are done. The *publisher* answers waiting
//! clients: a client that is told "committed" can rely on the block being on disk. *Roots* writes the changes into the
//! tries while the next block fills. The *checkpointer* writes states and forgets old blocks. In what order they do so
//! is decided by the life alone, which is in [`block_jobs`](crate::block_jobs).
//!
//! A solo node's executor is its producer ([`crate::producer`]). In a network of several validators it applies what
//! consensus decides ([`crate::execution`]). On a developers' chain one thread performs all jobs
//! ([`crate::developer`]). The *candles* thread reads old blocks from the archive after the start. Locks are taken in
//! the order of [`crate::locks`]; that of the jobs is taken alone.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::Instant;

use ledger::{Changes, Ledger};
use primitives::{Digest, Height};
use replica::{BlockJob, BlockLife, BlockWorker, Input, LifeInput, LifeSettings, LifeStart, ReplicaError};

use crate::executor::{Executor, milliseconds};
use crate::inbox::InboxSender;
use crate::publisher::publish;
use crate::shared::{ExchangeError, Shared, spawn};

/// The threads of the workers, and the jobs of the executor, which the caller starts.
pub(crate) struct Started {
    pub executor: Receiver<BlockJob>,
    pub threads: Vec<JoinHandle<()>>,
}

/// Starts the workers on the blocks above a state, all but the executor. With `consensus` given they report to it.
pub(crate) fn start_workers(
    shared: &Arc<Shared>,
    start: LifeStart,
    consensus: Option<&InboxSender>,
) -> Result<Started, ExchangeError> {
    use BlockWorker::{Checkpointer, Logger, Publisher, Roots};
    let store = &shared.config.store;
    let (checkpoint_blocks, keep_blocks) = (store.checkpoint_blocks, store.keep_blocks);
    let life = BlockLife::new(LifeSettings { checkpoint_blocks, keep_blocks, ..LifeSettings::default() }, start);
    let workers = [BlockWorker::Executor, Logger, Publisher, Roots, Checkpointer];
    let [executor, to_log, to_publish, to_hash, to_keep] = shared.jobs.open(life, workers);
    let (published, rooted) = (consensus.cloned(), consensus.cloned());
    let threads = vec![
        spawn("log", shared, move |shared| guard(shared, write_log(shared, &to_log)))?,
        spawn("publisher", shared, move |shared| guard(shared, publish(shared, &to_publish, published.as_ref())))?,
        spawn("checkpoint", shared, move |shared| guard(shared, write_checkpoints(shared, &to_keep)))?,
        spawn("roots", shared, move |shared| guard(shared, follow(shared, &to_hash, rooted.as_ref())))?,
    ];
    Ok(Started { executor, threads })
}

/// Stops the node if a worker fails.
pub(crate) fn guard(shared: &Shared, done: Result<(), ExchangeError>) {
    if let Err(error) = done {
        shared.fail(&error);
    }
}

/// Applies the block that has begun.
pub(crate) fn apply(
    shared: &Shared,
    executor: &mut Executor,
    height: Height,
    keeps_state: bool,
) -> Result<(), ExchangeError> {
    let kept = executor.apply(keeps_state)?;
    shared.jobs.leave(LifeInput::Applied(height), |shelf| shelf.state = kept.or(shelf.state.take()));
    Ok(())
}

/// Shows a block that is durable and applied. `due` finds the handover that needs the registry after it.
pub(crate) fn show(
    shared: &Shared,
    executor: &mut Executor,
    height: Height,
    due: impl FnOnce(&Shared) -> Result<Option<u64>, ExchangeError>,
) -> Result<(), ExchangeError> {
    let log_ms = shared.jobs.take(|shelf| shelf.log_ms);
    let (made, changes) = executor.show(log_ms);
    shared.note_rules();
    let handover = due(shared)?;
    shared.jobs.leave(LifeInput::Shown { height, handover }, |shelf| {
        shelf.made.insert(height, made);
        shelf.changes.insert(height, changes);
    });
    Ok(())
}

/// The log thread: makes blocks durable.
fn write_log(shared: &Shared, jobs: &Receiver<BlockJob>) -> Result<(), ExchangeError> {
    for job in jobs {
        let BlockJob::Log(height) = job else { unreachable!("{job:?} is not for the log") };
        let block = shared.jobs.take(|shelf| shelf.block.take()).expect("it is built");
        let begun = Instant::now();
        replica::log(&mut shared.lock_store(), &block)?;
        let log_ms = milliseconds(begun.elapsed());
        shared.jobs.leave(LifeInput::Logged(height), |shelf| shelf.log_ms = log_ms);
    }
    Ok(())
}

/// The checkpoint thread.
fn write_checkpoints(shared: &Shared, jobs: &Receiver<BlockJob>) -> Result<(), ExchangeError> {
    for job in jobs {
        match job {
            BlockJob::Checkpoint { height, forgets } => {
                let state = shared.jobs.take(|shelf| shelf.state.take()).expect("it is kept");
                write_checkpoint(shared, &state, forgets)?;
                drop(state);
                shared.jobs.tell(LifeInput::Checkpointed(height));
            }
            BlockJob::Forget { checkpoint, below } => {
                let first = shared.lock_store().forget_below(below)?;
                tracing::debug!(first, "older blocks were removed");
                shared.jobs.tell(LifeInput::Forgotten(checkpoint));
            }
            other => unreachable!("{other:?} is not for checkpoints"),
        }
    }
    Ok(())
}

/// Writes a checkpoint, unless another one is being written.
fn write_checkpoint(shared: &Shared, state: &Ledger, forgets: bool) -> Result<(), ExchangeError> {
    let (height, begun) = (state.height(), Instant::now());
    if let Some(writer) = replica::begin_checkpoint(&mut shared.lock_store(), height, forgets)? {
        replica::write_checkpoint(state, writer)?;
        tracing::info!(height, ms = begun.elapsed().as_millis() as u64, "checkpoint written");
    }
    Ok(())
}

/// The roots thread.
fn follow(shared: &Shared, jobs: &Receiver<BlockJob>, consensus: Option<&InboxSender>) -> Result<(), ExchangeError> {
    for job in jobs {
        let BlockJob::Hash(height) = job else { unreachable!("{job:?} is not for the tries") };
        let changes = shared.jobs.take(|shelf| shelf.changes.remove(&height)).expect("it is shown");
        let root = follow_one(shared, height, &changes)?;
        // The receiver is gone when the node stops.
        consensus.map(|consensus| consensus.push_result(Input::StateRoot(height, root)));
        shared.jobs.tell(LifeInput::Hashed(height));
    }
    Ok(())
}

/// Writes the changes of a block into the tries; returns their root.
pub(crate) fn follow_one(shared: &Shared, height: Height, changes: &Changes) -> Result<Digest, ReplicaError> {
    let begun = Instant::now();
    let mut at = shared.roots.lock();
    at.root = replica::hash(&mut at.roots, height, changes)?;
    at.height = height;
    let root = at.root;
    drop(at);
    shared.rooted.notify_all();
    shared.metrics.hashing.observe(begun.elapsed().as_secs_f64());
    shared.readers.published.set_state_root(height, root);
    Ok(root)
}
