//! The executor: it borrows the ledger for one block after another.

use std::sync::{Arc, RwLockWriteGuard};
use std::time::{Duration, Instant};

use ledger::{Applied, Changes, Ledger, Stage, Venues};
use primitives::venue::VenueId;
use primitives::{Address, Superblock, TransactionId};
use readers::Outline;
use replica::Foundation;

use crate::block_jobs::Made;
use crate::locks::Held;
use crate::shared::{ExchangeError, Shared};

/// Applies blocks, and shows them when they are durable.
pub(crate) struct Executor<'a> {
    shared: &'a Shared,
    threads: rayon::ThreadPool,
    block: Option<(Arc<Superblock>, Vec<TransactionId>)>,
    lent: Option<Lent<'a>>,
}

/// The ledger, while nobody else may read it, and what applying the block gave.
struct Lent<'a> {
    ledger: Held<RwLockWriteGuard<'a, Ledger>>,
    applied: Applied,
    stages: Stages,
}

impl<'a> Executor<'a> {
    pub fn new(shared: &'a Shared) -> Result<Executor<'a>, ExchangeError> {
        Executor::with(shared, rayon::ThreadPoolBuilder::new())
    }

    /// One whose calling thread is the first of its threads. A small block then changes no threads, of which each may
    /// have to wait for a core. Only this thread may use it, once in its life.
    pub fn of_this_thread(shared: &'a Shared) -> Result<Executor<'a>, ExchangeError> {
        Executor::with(shared, rayon::ThreadPoolBuilder::new().use_current_thread())
    }

    fn with(shared: &'a Shared, threads: rayon::ThreadPoolBuilder) -> Result<Executor<'a>, ExchangeError> {
        let threads = threads
            .num_threads(shared.config.blocks.threads)
            .thread_name(|i| format!("apply-{i}"))
            .build()
            .map_err(|error| ExchangeError::Thread(std::io::Error::other(error)))?;
        Ok(Executor { shared, threads, block: None, lent: None })
    }

    /// What the next block builds on. The tries have caught up when a block is built.
    pub fn foundation(&self) -> Foundation {
        Foundation::of(&self.shared.read_ledger(), self.shared.newest_root().1)
    }

    /// Runs work on the threads that apply blocks.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.threads.install(work)
    }

    /// Takes the next block, with the ids of its transactions. Returns it for the log.
    pub fn begin(&mut self, block: Superblock, ids: Vec<TransactionId>) -> Arc<Superblock> {
        let block = Arc::new(block);
        self.block = Some((block.clone(), ids));
        block
    }

    /// Applies the block; nobody reads the ledger from here until the block is shown. Returns the new state, if it is
    /// to be kept.
    pub fn apply(&mut self, keeps_state: bool) -> Result<Option<Ledger>, ExchangeError> {
        let (block, _) = self.block.as_ref().expect("a block has begun");
        let (mut guard, mut stages) = (self.shared.ledger.write(), Stages::new());
        let ledger = &mut *guard;
        let applied = self.threads.install(|| replica::apply(ledger, block, &mut |stage| stages.end(stage)))?;
        let kept = keeps_state.then(|| guard.clone());
        self.lent = Some(Lent { ledger: guard, applied, stages });
        Ok(kept)
    }

    /// Settles the pool, and gives the ledger back to its readers.
    pub fn show(&mut self, log_ms: f64) -> (Made, Changes) {
        let (block, ids) = self.block.take().expect("a block has begun");
        let Lent { ledger, mut applied, mut stages } = self.lent.take().expect("the block is applied");
        stages.0.push(("log", log_ms));
        let shared = self.shared;
        let executed = applied.contracts.receipts.iter().map(|receipt| receipt.id);
        let mut pooled = shared.pool.lock();
        pooled.leave(ids.iter().copied().chain(executed).collect());
        let dropped = replica::settle(&mut pooled.mempool, &ledger, &block, &ids, &applied.contracts);
        shared.note_pool(&pooled);
        drop(pooled);
        for (id, why) in dropped {
            tracing::info!(%id, %why, "an Ethereum transaction is dropped from the pool");
        }
        let changes = std::mem::take(&mut applied.changes);
        shared.seat.verified.lists.follow(operators(&ledger));
        let venue = shared.venue.get().and_then(|line| line.state(&ledger));
        let made = Made { block, ids, outline: Outline::of(&ledger), venue, applied, stages_ms: stages.0 };
        (made, changes)
    }
}

/// The venues, and the account of the operator of each.
fn operators(ledger: &Ledger) -> impl Iterator<Item = (VenueId, Address)> {
    let venues = ledger.venues().into_iter().flat_map(Venues::iter);
    venues.map(|(venue, record)| (venue, record.operator.account))
}

pub(crate) fn milliseconds(duration: Duration) -> f64 {
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
