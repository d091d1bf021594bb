//! Rebuilds the candles of the time before a start from the archived blocks.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ledger::{Batch, BlockReceipts};
use primitives::{Height, Superblock};
use replica::ReplicaError;

use crate::shared::{ExchangeError, Shared};

/// The candles thread: rebuilds the candles of archived blocks, newest first, from this height down.
pub(crate) fn remember_candles(shared: &Arc<Shared>, from: Height) {
    let last = from.saturating_sub(shared.config.store.candle_blocks);
    for height in (last + 1..=from).rev() {
        if shared.life.stopping.load(Ordering::Acquire) {
            return;
        }
        match archived(shared, height) {
            Ok(Some((time_ms, batch))) => shared.readers.published.add_batch(height, time_ms, &batch),
            Ok(None) => return,
            // A node runs without old blocks; `walras inspect` reports what else is damaged.
            Err(error) => return tracing::warn!(%error, height, "cannot read older blocks: they have no candles"),
        }
    }
}

/// Time and batch of an archived block; `None` if it is not held.
fn archived(shared: &Shared, height: Height) -> Result<Option<(u64, Batch)>, ExchangeError> {
    let (block, receipts) = (shared.archive.block(height)?, shared.archive.receipts(height)?);
    let (Some(block), Some(receipts)) = (block, receipts) else { return Ok(None) };
    let undecodable = |error| ReplicaError::Undecodable(height, error);
    let block: Superblock = borsh::from_slice(&block).map_err(undecodable)?;
    let receipts: BlockReceipts = borsh::from_slice(&receipts).map_err(undecodable)?;
    Ok(Some((block.time_ms, receipts.batch)))
}
