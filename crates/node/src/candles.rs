//! Rebuilds what readers know of the time before a start from the archived blocks: candles, and what venues did.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ledger::BlockReceipts;
use primitives::{Height, Superblock};
use replica::ReplicaError;

use crate::shared::{ExchangeError, Shared};

/// The candles thread: rebuilds the candles of archived blocks, newest first, from this height down. On a chain with
/// venues it goes on to the oldest block, since a fill of any age may have to be proved.
pub(crate) fn remember_candles(shared: &Arc<Shared>, from: Height) {
    let last = from.saturating_sub(shared.config.store.candle_blocks);
    let has_venues = shared.read_ledger().venues().is_some();
    let lowest = if has_venues { 0 } else { last };
    for height in (lowest + 1..=from).rev() {
        if shared.life.stopping.load(Ordering::Acquire) {
            return;
        }
        match archived(shared, height) {
            Ok(Some((block, receipts))) => {
                if height > last {
                    shared.readers.published.add_batch(height, block.time_ms, &receipts.batch);
                }
                if has_venues {
                    shared.readers.published.remember_venues(&block, &receipts);
                }
            }
            Ok(None) => return,
            // A node runs without old blocks; `walras inspect` reports what else is damaged.
            Err(error) => return tracing::warn!(%error, height, "cannot read older blocks: they have no candles"),
        }
    }
}

/// An archived block and its receipts; `None` if it is not held.
fn archived(shared: &Shared, height: Height) -> Result<Option<(Superblock, BlockReceipts)>, ExchangeError> {
    let (block, receipts) = (shared.archive.block(height)?, shared.archive.receipts(height)?);
    let (Some(block), Some(receipts)) = (block, receipts) else { return Ok(None) };
    let undecodable = |error| ReplicaError::Undecodable(height, error);
    Ok(Some((borsh::from_slice(&block).map_err(undecodable)?, borsh::from_slice(&receipts).map_err(undecodable)?)))
}
