//! The thread that makes the history of accounts from published blocks, see [`crate::history`].

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ledger::{BlockReceipts, OpenedOperation, enclosed};
use primitives::{AssetId, Height, Superblock};
use readers::history::{BalanceRow, HeldUnits, HistoryRow, balance_row, rows_of, touched};
use replica::ReplicaError;

use super::History;
use super::index::HistoryIndex;
use crate::locks::poisoned;
use crate::shared::{ExchangeError, Shared};

/// Accounts that are read while the ledger is held once.
const ACCOUNTS_AT_ONCE: usize = 64;
/// A block has rows of balances if the state that can be read is at most so many heights later.
const BALANCES_LATE: u64 = 64;
/// How often the thread looks up although nobody woke it.
const PAUSE: Duration = Duration::from_millis(100);

/// How long it waits before it asks a database again that did not answer.
const AGAIN: Duration = Duration::from_secs(1);

/// The history thread.
pub(crate) fn keep_history(shared: &Arc<Shared>) {
    let Some(history) = shared.history.get() else { return };
    let Some(index) = &history.index else { return };
    drop(history.thread.set(std::thread::current()));
    while !shared.life.stopping.load(Ordering::Acquire) {
        match follow(shared, history, index) {
            Ok(more) => {
                history.go_on();
                if !more {
                    std::thread::park_timeout(PAUSE);
                }
            }
            Err(ExchangeError::History(error)) if error.may_pass() => {
                history.wait_out(&error);
                std::thread::park_timeout(AGAIN);
            }
            Err(error) => return history.fail(&error),
        }
    }
    if let Err(error) = index.flush() {
        history.fail(&error);
    }
}

/// Adds the next block, if there is one.
fn follow(shared: &Shared, history: &History, index: &HistoryIndex) -> Result<bool, ExchangeError> {
    let _turn = poisoned(history.turn.lock());
    let (published, last) = (history.published.load(Ordering::Acquire), index.reached()?.1);
    if last > published {
        // This index has blocks that were taken back.
        index.cut_above(published)?;
        return Ok(true);
    }
    if last == published {
        return Ok(false);
    }
    let Some((block, receipts)) = kept(shared, last + 1)? else {
        let first = first_kept(shared, last + 1, published)?;
        tracing::info!(first, "the history of accounts begins at the first block that this node has");
        index.begin_after(first - 1)?;
        return Ok(true);
    };
    let enclosed = enclosed(&shared.network, &block, &receipts.outcomes);
    let mut rows = rows_of(&block, &receipts, &enclosed);
    rows.extend(balances(shared, &block, &receipts, &enclosed));
    let at_most = shared.config.store.checkpoint_blocks.max(1);
    index.add(block.height, rows, at_most, shared.config.history.keep_blocks)?;
    Ok(true)
}

/// A block that this node has, with its receipts.
fn kept(shared: &Shared, height: Height) -> Result<Option<(Arc<Superblock>, BlockReceipts)>, ExchangeError> {
    let Some(block) = shared.body(height)? else { return Ok(None) };
    if let Some(proven) = shared.readers.receipts.get(height) {
        return Ok(Some((block, proven.receipts.clone())));
    }
    let Some(bytes) = shared.archive.receipts(height)? else { return Ok(None) };
    let receipts = borsh::from_slice(&bytes).map_err(|error| ReplicaError::Undecodable(height, error))?;
    Ok(Some((block, receipts)))
}

/// The first height from `from` to `to` that is kept, or the one above: what is kept has no gap.
fn first_kept(shared: &Shared, from: Height, to: Height) -> Result<Height, ExchangeError> {
    let (mut missing, mut there) = (from, to + 1);
    while there - missing > 1 {
        let middle = missing + (there - missing) / 2;
        if kept(shared, middle)?.is_some() { there = middle } else { missing = middle }
    }
    Ok(there)
}

/// What the accounts that a block changed have now.
fn balances(
    shared: &Shared,
    block: &Superblock,
    receipts: &BlockReceipts,
    enclosed: &[OpenedOperation],
) -> Vec<HistoryRow> {
    let pays_out = {
        let ledger = shared.read_ledger();
        if ledger.height().saturating_sub(block.height) > BALANCES_LATE {
            return Vec::new();
        }
        ledger.lane().is_some() || ledger.venues().is_some()
    };
    let accounts: Vec<_> = touched(block, receipts, enclosed, pays_out).into_iter().collect();
    let mut rows = Vec::with_capacity(accounts.len());
    for chunk in accounts.chunks(ACCOUNTS_AT_ONCE) {
        let ledger = shared.read_ledger();
        let views = shared.readers.published.views();
        let state = ledger.height();
        let offers = (views.height() == state).then(|| views.offers());
        for (address, assets) in chunk {
            let Some(account) = ledger.accounts().get(address).map(|account| account.state()) else { continue };
            let locked = offers.map(|offers| offers.locked(address));
            let is_touched = |asset: &AssetId| assets.as_ref().is_none_or(|assets| assets.contains(asset));
            let of_offers = locked.iter().flat_map(|locked| locked.keys().copied());
            let all: BTreeSet<AssetId> = account.balances.iter().map(|(asset, _)| *asset).chain(of_offers).collect();
            let all = all.into_iter().chain(assets.iter().flatten().copied()).filter(is_touched);
            let held = all.collect::<BTreeSet<_>>().into_iter().map(|asset| HeldUnits {
                asset,
                available: account.balances.iter().find(|(held, _)| *held == asset).map_or(0, |(_, units)| *units),
                locked: locked.as_ref().map(|locked| locked.get(&asset).copied().unwrap_or(0)),
            });
            let row = BalanceRow { time_ms: block.time_ms, state, held: held.collect() };
            rows.push(balance_row(address, block.height, &row));
        }
    }
    rows
}
