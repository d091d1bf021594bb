//! Mistakes that a store could make.

/// Mistakes that simulations plant in a store: a check that never fails proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreMistake {
    /// A checkpoint gets its final name whether or not the receipts up to its height are durable.
    CheckpointBeforeReceipts,
    /// Blocks are forgotten although recovery may need them: above the older of the checkpoints.
    ForgetsAboveCheckpoints,
}
