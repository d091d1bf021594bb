//! Where the threads that work on blocks meet: the life of the blocks ([`replica::life`]), the queues of its workers,
//! and what one job leaves for the next.
//!
//! A thread that has performed a job tells the life of it; jobs that may begin now go into the queues of their
//! workers. The lock is held for that only, and under it no other lock is taken.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use ledger::{Applied, Changes, Ledger};
use pit::ChainState;
use primitives::{Height, Superblock, TransactionId};
use readers::Outline;
use replica::life::JOBS_MAX;
use replica::{Agreed, BlockJob, BlockLife, BlockWorker, LifeInput, LifeSettings, LifeStart};

use crate::locks::poisoned;

/// A durable and applied block, for the publisher.
pub(crate) struct Made {
    pub block: Arc<Superblock>,
    /// The ids of its transactions.
    pub ids: Vec<TransactionId>,
    pub applied: Applied,
    pub outline: Outline,
    /// The state after it, for a venue that this node runs.
    pub venue: Option<ChainState>,
    pub stages_ms: Vec<(&'static str, f64)>,
}

/// What one job leaves for the next.
#[derive(Default)]
pub(crate) struct Shelf {
    /// Decided superblocks whose blocks are not built yet, in order.
    pub agreed: VecDeque<Agreed>,
    /// The block to be logged.
    pub block: Option<Arc<Superblock>>,
    /// How long the last block took to log.
    pub log_ms: f64,
    pub made: BTreeMap<Height, Made>,
    pub changes: BTreeMap<Height, Changes>,
    /// The state to be checkpointed.
    pub state: Option<Ledger>,
}

struct JobsUnderWay {
    life: BlockLife,
    shelf: Shelf,
    /// Empty before the workers start and once nothing follows.
    queues: BTreeMap<BlockWorker, SyncSender<BlockJob>>,
}

/// See the module text.
pub(crate) struct BlockJobs(Mutex<JobsUnderWay>);

impl BlockJobs {
    /// No life yet, and no workers.
    pub fn new() -> BlockJobs {
        let life = BlockLife::new(LifeSettings::default(), LifeStart::default());
        BlockJobs(Mutex::new(JobsUnderWay { life, shelf: Shelf::default(), queues: BTreeMap::new() }))
    }

    /// Begins a life; returns the queues of the workers, in this order.
    pub fn open<const N: usize>(&self, life: BlockLife, workers: [BlockWorker; N]) -> [Receiver<BlockJob>; N] {
        let mut jobs = poisoned(self.0.lock());
        jobs.life = life;
        workers.map(|worker| {
            // A worker has at most so many jobs: nobody waits for a queue.
            let (queue, waiting) = sync_channel(JOBS_MAX);
            jobs.queues.insert(worker, queue);
            waiting
        })
    }

    /// Tells what has happened.
    pub fn tell(&self, input: LifeInput) {
        self.leave(input, |_| {});
    }

    /// Tells what has happened, and leaves something for the jobs that follow from it.
    pub fn leave(&self, input: LifeInput, leave: impl FnOnce(&mut Shelf)) {
        let mut jobs = poisoned(self.0.lock());
        if jobs.queues.is_empty() {
            return;
        }
        leave(&mut jobs.shelf);
        for job in jobs.life.step(input) {
            match job.worker() {
                // A worker that has failed takes no jobs; it has stopped the node.
                Some(worker) => drop(jobs.queues[&worker].try_send(job)),
                None => return jobs.queues.clear(),
            }
        }
    }

    /// Takes what an earlier job has left.
    pub fn take<T>(&self, take: impl FnOnce(&mut Shelf) -> T) -> T {
        take(&mut poisoned(self.0.lock()).shelf)
    }

    /// The height of the state that readers see.
    pub fn height(&self) -> Height {
        poisoned(self.0.lock()).life.height()
    }

    /// Gives out no more jobs: the node has failed.
    pub fn close(&self) {
        poisoned(self.0.lock()).queues.clear();
    }
}
