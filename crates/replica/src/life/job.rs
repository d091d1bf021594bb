//! Jobs on blocks: who performs them, and what must be durable before they begin.

use primitives::Height;
use store::{Disk, Store, StoreError};

/// Work on a block, for the shell. The height is that of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BlockJob {
    /// Compare the decided superblock with the logged block ([`Agreed::is_logged`](crate::Agreed::is_logged)).
    Compare(Height),
    /// Store the registry of the state for the handover to an epoch ([`HandoverLog::keep`](crate::HandoverLog::keep)).
    Keep {
        /// The epoch.
        epoch: u64,
        /// The height of the ledger and the tries.
        height: Height,
    },
    /// Make the block on the ledger and on the root of the tries ([`Foundation`](crate::Foundation)).
    Build(Height),
    /// Make the block durable ([`log`](crate::log)).
    Log(Height),
    /// Apply the block ([`apply`](crate::apply)).
    Apply {
        /// The height.
        height: Height,
        /// Whether the state is kept for a checkpoint.
        keeps_state: bool,
    },
    /// Settle the pool ([`settle`](crate::settle)), give the ledger to its readers, tell the engine.
    Show(Height),
    /// Answer clients, publish, and archive the receipts ([`archive`](crate::archive)).
    Publish(Height),
    /// Write the changes into the tries ([`hash`](crate::hash)).
    Hash(Height),
    /// Write the kept state ([`write_checkpoint`](crate::write_checkpoint)).
    Checkpoint {
        /// The height.
        height: Height,
        /// Whether blocks are forgotten behind it, so that the logs go on in new files.
        forgets: bool,
    },
    /// Forget blocks ([`Store::forget_below`]).
    Forget {
        /// The height of the checkpoint that they are behind.
        checkpoint: Height,
        /// The lowest height to keep.
        below: Height,
    },
    /// Nothing follows: workers end.
    End,
}

/// Who performs jobs: each performs its own in the order in which they are given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BlockWorker {
    /// Borrows the ledger.
    Executor,
    /// Writes the log.
    Logger,
    /// Publishes, and archives receipts.
    Publisher,
    /// Owns the tries.
    Roots,
    /// Writes checkpoints, and forgets what is behind them.
    Checkpointer,
}

/// What must be on the disk: heights up to which something is durable. Receipts need to be archived only; a checkpoint
/// makes them durable with itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Durable {
    /// Blocks.
    pub blocks: Height,
    /// Receipts.
    pub receipts: Height,
    /// The newest checkpoint.
    pub checkpoint: Height,
}

impl Durable {
    /// What is durable in a store.
    ///
    /// # Errors
    /// [`StoreError`] if the list of checkpoints cannot be read.
    pub fn of<D: Disk>(store: &Store<D>) -> Result<Durable, StoreError> {
        let checkpoint = store.archive().checkpoints()?.last().copied().unwrap_or(0);
        let (blocks, receipts) = (store.durable_height().max(checkpoint), store.receipts_height().max(checkpoint));
        Ok(Durable { blocks, receipts, checkpoint })
    }

    /// Whether all of `needed` is.
    pub fn covers(&self, needed: &Durable) -> bool {
        let Durable { blocks, receipts, checkpoint } = needed;
        self.blocks >= *blocks && self.receipts >= *receipts && self.checkpoint >= *checkpoint
    }
}

impl BlockJob {
    /// The worker of the job; none if all of them end.
    pub fn worker(&self) -> Option<BlockWorker> {
        use BlockJob::{Apply, Build, Checkpoint, Compare, End, Forget, Hash, Keep, Log, Publish, Show};
        Some(match self {
            Compare(_) | Keep { .. } | Build(_) | Apply { .. } | Show(_) => BlockWorker::Executor,
            Log(_) => BlockWorker::Logger,
            Publish(_) => BlockWorker::Publisher,
            Hash(_) => BlockWorker::Roots,
            Checkpoint { .. } | Forget { .. } => BlockWorker::Checkpointer,
            End => return None,
        })
    }

    /// What must be durable before the job begins.
    pub fn needs(&self) -> Durable {
        let nothing = Durable::default();
        match *self {
            BlockJob::Build(height) | BlockJob::Log(height) | BlockJob::Apply { height, .. } => {
                Durable { blocks: height - 1, ..nothing }
            }
            BlockJob::Compare(height) | BlockJob::Show(height) | BlockJob::Hash(height) => {
                Durable { blocks: height, ..nothing }
            }
            BlockJob::Publish(height) => Durable { blocks: height, receipts: height - 1, ..nothing },
            BlockJob::Keep { height, .. } | BlockJob::Checkpoint { height, .. } => {
                Durable { blocks: height, receipts: height, ..nothing }
            }
            BlockJob::Forget { checkpoint, .. } => Durable { blocks: checkpoint, receipts: checkpoint, checkpoint },
            BlockJob::End => nothing,
        }
    }
}
