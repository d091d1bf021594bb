//! Independent bookkeeping of exact orders.

use clearing::{ExactFill, ExactOrder};
use ledger::{Batch, BlockReceipts, ExactReason, ExactTrade, Outcome, Pair};
use primitives::{Address, Amount, AssetId, ExactSide, Sequence};

/// An exact order moved exactly its units within its bound or nothing, as the batch says; returns what it sold and
/// bought.
pub(super) fn check_exact(
    pair: Pair,
    side: ExactSide,
    (units, bound): (Amount, Amount),
    (account, id): (Address, Sequence),
    outcome: &Outcome,
    receipts: &BlockReceipts,
) -> Result<(Amount, Amount), String> {
    let Some(told) = outcome.exact() else { return Err(format!("an exact order has the outcome {outcome:?}")) };
    let trade = receipts.batch.exacts.iter().find(|trade| (trade.account, trade.id) == (account, id));
    let moved = trade.map_or((0, 0), |trade| (trade.sold, trade.bought));
    let locked = if side == ExactSide::Buy { bound } else { units };
    let is_kept = match (trade, side) {
        (None, _) => told.why != ExactReason::Filled,
        (Some(trade), ExactSide::Buy) => trade.pair == pair && trade.bought == units && trade.sold <= bound,
        (Some(trade), ExactSide::Sell) => trade.pair == pair && trade.sold == units && trade.bought >= bound,
    };
    if is_kept && (told.sold, told.bought) == moved && told.returned == locked - moved.0 {
        Ok(moved)
    } else {
        Err(format!("{told:?} was reported of an exact order of {units} within {bound}, but {trade:?} was filled"))
    }
}

/// Orders that ask for exactly what the exact orders of a batch traded, and the fills of them.
pub(super) fn exact_orders(batch: &Batch) -> (Vec<ExactOrder>, Vec<ExactFill>) {
    let order = |trade: &ExactTrade| ExactOrder {
        sell: trade.pair.sell,
        buy: trade.pair.buy,
        side: trade.side,
        units: if trade.side == ExactSide::Buy { trade.bought } else { trade.sold },
        bound: if trade.side == ExactSide::Buy { trade.sold } else { trade.bought },
        owner: None,
    };
    let fill = |(order, trade): (u32, &ExactTrade)| {
        let other = if trade.side == ExactSide::Buy { trade.sold } else { trade.bought };
        ExactFill { order, other }
    };
    (batch.exacts.iter().map(order).collect(), (0..).zip(&batch.exacts).map(fill).collect())
}

/// Units of an asset that exact orders left to the auctioneer.
pub(super) fn kept_by_exacts(asset: usize, batch: &Batch) -> i128 {
    let is = |of: AssetId| i128::from(of.0 as usize == asset);
    let kept = |trade: &ExactTrade| {
        is(trade.pair.sell) * i128::from(trade.sold) - is(trade.pair.buy) * i128::from(trade.bought)
    };
    batch.exacts.iter().map(kept).sum()
}
