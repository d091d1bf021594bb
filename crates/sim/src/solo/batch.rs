//! The batch of a block, verified independently of the solver, on the book that it met.

use std::collections::{BTreeMap, BTreeSet};

use ledger::contracts::OfferEvent;
use ledger::{BlockReceipts, Edit, Ledger, NO_END, Pair, PairOffers, Place};
use primitives::{Amount, AssetId};

use super::exacts::{exact_orders, kept_by_exacts};
use super::pools::{PoolBooks, met};
use crate::listings::ListingBooks;

/// Verifies a batch by what it did; the books of assets are those before its block, and those of pools after it.
pub(crate) fn verify_batch(
    (books, pools): (&ListingBooks, &PoolBooks),
    ledger: &Ledger,
    receipts: &BlockReceipts,
    report: Option<clearing::Report>,
) -> Result<(), String> {
    let batch = &receipts.batch;
    let none = PairOffers::default();
    let mut later = undone(receipts);
    let left = batch.fills.iter().map(|fill| fill.pair).chain(batch.ended.iter().map(|ended| ended.pair));
    let pairs = ledger.book().iter().map(|(pair, _)| pair).chain(left);
    let pairs: BTreeSet<Pair> = pairs.chain(later.keys().copied()).collect();
    let offers = pairs.into_iter().map(|pair| {
        let after = ledger.book().get(pair).unwrap_or(&none).with(&later.remove(&pair).unwrap_or_default());
        (pair, after.as_met_by(batch, pair))
    });
    let offers: Vec<_> = offers.filter(|(_, offers)| !offers.is_empty()).collect();
    let (pools, pool_trades) = met(ledger, pools, batch, |asset| books.is_closed(asset, receipts.height))?;
    let Some(report) = report else {
        return if offers.is_empty() && pools.is_empty() { Ok(()) } else { Err("a book was not cleared".into()) };
    };
    let pairs = offers.iter().map(|(pair, offers)| offers.view(*pair));
    let (exacts, exact_fills) = exact_orders(batch);
    let book = clearing::Book { assets: books.assets() as u32, pairs: pairs.collect(), pools, exacts };
    let trade = |trade: &ledger::PairTrade| {
        let (sell, buy) = (trade.pair.sell, trade.pair.buy);
        clearing::Trade { sell, buy, sold: trade.sold }
    };
    let trades = batch.trades.iter().map(trade).collect();
    let claimed = clearing::Clearing {
        valuations: batch.valuations.clone(),
        trades,
        pools: pool_trades,
        exacts: exact_fills,
        full: batch.full(),
        short: batch.short.clone(),
        report,
    };
    let verified = clearing::verify(&book, &ledger.clearing_params(), &claimed).map_err(|error| error.to_string())?;
    for (asset, surplus) in verified.surplus.iter().enumerate() {
        let sold: i128 = of(asset, batch, |trade| (trade.pair.sell, trade.sold));
        let bought: i128 = of(asset, batch, |trade| (trade.pair.buy, trade.bought));
        let is = |of: AssetId| i128::from(of.0 as usize == asset);
        let by_pools = |fill: &ledger::PoolFill| {
            is(fill.sell()) * i128::from(fill.sold) - is(fill.buy()) * i128::from(fill.bought)
        };
        let pooled: i128 = batch.pools.iter().map(by_pools).sum();
        if sold - bought + pooled + kept_by_exacts(asset, batch) != i128::from(*surplus) {
            return Err(format!("asset {asset}: {} units kept in trades, but {surplus} are due", sold - bought));
        }
    }
    Ok(())
}

/// Edits that take a book back to its state before contracts placed and cancelled offers, by pair and place.
fn undone(receipts: &BlockReceipts) -> BTreeMap<Pair, Vec<Edit>> {
    let mut edits: BTreeMap<(Pair, Place), Option<Amount>> = BTreeMap::new();
    for event in OfferEvent::of_block(&receipts.contracts) {
        match event {
            OfferEvent::Placed(pair, place, _) => edits.insert((pair, place), None),
            OfferEvent::Cancelled(pair, place, amount) => match edits.get(&(pair, place)) {
                Some(None) => continue,
                _ => edits.insert((pair, place), Some(amount)),
            },
        };
    }
    let mut by_pair: BTreeMap<Pair, Vec<Edit>> = BTreeMap::new();
    for ((pair, place), amount) in edits {
        by_pair.entry(pair).or_default().push(Edit { place, amount, until: NO_END });
    }
    by_pair
}

fn of(asset: usize, batch: &ledger::Batch, side: impl Fn(&ledger::PairTrade) -> (AssetId, Amount)) -> i128 {
    let sides = batch.trades.iter().map(side).filter(|(traded, _)| traded.0 as usize == asset);
    sides.map(|(_, units)| i128::from(units)).sum()
}
