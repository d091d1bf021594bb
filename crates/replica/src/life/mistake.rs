//! Mistakes that simulations plant.

use strum::VariantArray;

/// Mistakes that simulations plant in a life: a check that never fails proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, VariantArray)]
pub enum LifeMistake {
    /// A block is shown and published once it is applied, logged or not.
    AnswersBeforeSync,
    /// The tries take a block that is applied and not logged.
    RootBeforeBlock,
    /// The next block is built although the tries are behind.
    RootNotAwaited,
    /// A checkpoint does not wait for the receipts.
    CheckpointBeforeReceipts,
    /// Blocks are forgotten behind a checkpoint that is not written yet.
    ForgetsBeforeCheckpoint,
    /// Blocks above the last durable certificate are forgotten.
    ForgetsUncertified,
    /// The newest block is published first.
    PublishesOutOfOrder,
    /// A block is logged although the handover before it is not stored.
    HandoverNotAwaited,
}

impl LifeMistake {
    /// All of them.
    pub const ALL: &[LifeMistake] = LifeMistake::VARIANTS;
}
