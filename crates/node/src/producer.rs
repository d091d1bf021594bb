//! The producer of a node that makes blocks alone: a block when enough transactions are pending, or one has been
//! pending long enough, and an interval has passed since the last block. At rest it makes an empty block now and then,
//! so that time passes and what has an end ends. More often if there is a venue.

use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use primitives::{Height, Superblock, TransactionId};
use replica::{BlockJob, LifeInput, Mempool, PoolEntry, ProposedSection};

use crate::executor::Executor;
use crate::pipeline::{apply, show};
use crate::shared::clock_ms;
use crate::shared::{ExchangeError, Shared};

/// Maximum bytes of Ethereum transactions in a block.
const SECTION_BYTES: usize = 8 << 20;

/// Time between two blocks of a chain at rest.
const AT_REST: Duration = Duration::from_secs(60);

/// The producer thread: the executor, which also says when a block is due.
pub(crate) fn produce(shared: &Shared, jobs: &Receiver<BlockJob>) {
    if let Err(error) = make_blocks(shared, jobs) {
        shared.fail(&error);
    }
    shared.jobs.tell(LifeInput::Stop);
}

fn make_blocks(shared: &Shared, jobs: &Receiver<BlockJob>) -> Result<(), ExchangeError> {
    let mut executor = Executor::new(shared)?;
    while wait_until_due(shared) {
        shared.jobs.tell(LifeInput::Decided(shared.jobs.height() + 1));
        for job in jobs {
            match job {
                BlockJob::Build(height) => {
                    let (block, ids) = build(shared, &executor, height);
                    let block = executor.begin(block, ids);
                    shared.jobs.leave(LifeInput::Built(height), |shelf| shelf.block = Some(block));
                }
                BlockJob::Apply { height, keeps_state } => apply(shared, &mut executor, height, keeps_state)?,
                BlockJob::Show(height) => {
                    show(shared, &mut executor, height, |_| Ok(None))?;
                    break;
                }
                other => unreachable!("{other:?} is not for a node that makes blocks alone"),
            }
        }
    }
    Ok(())
}

/// Waits until a block is due. False if the node has failed, or stops with nothing pending.
fn wait_until_due(shared: &Shared) -> bool {
    let blocks = &shared.config.blocks;
    let interval = Duration::from_millis(blocks.interval_ms);
    let begun = Instant::now();
    let mut pooled = shared.pool.lock();
    loop {
        let stopping = shared.life.stopping.load(Ordering::Acquire);
        let mempool = &pooled.mempool;
        let is_idle = stopping && shared.needs_rules().is_some();
        if shared.has_failed()
            || is_idle
            || (stopping && mempool.ready() == 0 && mempool.ethereum.waits_since_ms().is_none())
        {
            return false;
        }
        // Without the rules of the next block there is none, until another program starts.
        if !stopping && shared.needs_rules().is_some() {
            pooled = shared.pool.wait(pooled, AT_REST);
            continue;
        }
        let age = mempool.oldest_ms().map(|arrived| Duration::from_millis(shared.now_ms().saturating_sub(arrived)));
        let is_full = mempool.ready() >= blocks.transactions;
        let rest = interval.saturating_sub(begun.elapsed());
        let ripens = age.map_or(beat(shared).saturating_sub(begun.elapsed()), |age| interval.saturating_sub(age));
        let wait = if is_full { rest } else { rest.max(ripens) };
        if stopping || wait.is_zero() {
            return true;
        }
        pooled = shared.pool.wait(pooled, wait.min(interval).max(Duration::from_millis(1)));
    }
}

/// How long the chain rests between two blocks if nothing is pending. A venue does not match while no blocks come:
/// actions of traders might count by now.
fn beat(shared: &Shared) -> Duration {
    let quiet = shared.venue.get().map(|_| Duration::from_millis(shared.config.venue.quiet_ms / 2));
    quiet.map_or(AT_REST, |quiet| quiet.min(AT_REST))
}

/// Takes pending transactions for a block.
pub(crate) fn select_pending(shared: &Shared, mempool: &mut Mempool) -> (Vec<PoolEntry>, ProposedSection) {
    let mut quota = mempool.quota();
    let mut admits = |entry: &PoolEntry| entry.fits(&mut quota);
    let most = shared.config.blocks.transactions;
    let mut entries = mempool.take_duties(most.div_ceil(2), &mut admits);
    entries.extend(mempool.take_settles(most - entries.len(), &mut admits));
    entries.extend(mempool.take_bounded((most - entries.len()).div_ceil(2), shared.now_ms(), &mut admits));
    entries.extend(mempool.take_while(most - entries.len(), admits));
    (entries, mempool.ethereum.take(SECTION_BYTES, shared.now_ms()))
}

/// Puts pending transactions into a block on top of the present state.
fn build(shared: &Shared, executor: &Executor, height: Height) -> (Superblock, Vec<TransactionId>) {
    let foundation = executor.foundation();
    let (entries, ethereum) = select_pending(shared, &mut shared.pool.lock().mempool);
    let ids = entries.iter().map(|entry| entry.id).collect();
    let native = entries.into_iter().map(|entry| entry.transaction).collect();
    (foundation.own_block(height, native, ethereum, clock_ms()), ids)
}
