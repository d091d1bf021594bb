//! The search for the prices of a block's batch, from the ledger's last valuations on.

use clearing::Clearing;
use primitives::Price;
use proofs::Pair;
use rayon::prelude::*;

use super::exacts::{NewExact, orders_of};
use crate::places::offers::OrderBook;
use crate::places::pools::AwakePool;
use crate::state::Ledger;

/// Prices and amounts for what trades of a whole book, starting from this ledger's valuations; `None` if nothing is
/// for sale.
pub(crate) fn clear(
    ledger: &Ledger,
    book: &OrderBook,
    awake: &[AwakePool],
    exacts: &[NewExact],
) -> Result<Option<Clearing>, String> {
    let trades = |pair| ledger.trades(pair);
    if awake.is_empty() && !book.iter().any(|(pair, _)| trades(pair)) {
        return Ok(None);
    }
    clear_pairs(ledger, book, awake, exacts, trades).map(Some)
}

/// As [`clear`], for the pairs that are chosen: whole groups, which the others do not concern.
pub(crate) fn clear_pairs(
    ledger: &Ledger,
    book: &OrderBook,
    awake: &[AwakePool],
    exacts: &[NewExact],
    is_chosen: impl Fn(Pair) -> bool,
) -> Result<Clearing, String> {
    let last = last_valuations(ledger);
    let offers: Vec<_> = book.iter().filter(|(pair, _)| is_chosen(*pair)).collect();
    let pairs = offers.par_iter().map(|(pair, offers)| offers.view(*pair)).collect();
    let pools = awake.iter().filter(|(key, _)| is_chosen(Pair { sell: key.a, buy: key.b }));
    let pools = pools.map(|(_, pool)| *pool).collect();
    let exacts = orders_of(exacts);
    let book = clearing::Book { assets: ledger.assets.len() as u32, pairs, pools, exacts };
    clearing::clear(&book, &ledger.clearing_params(), Some(&last)).map_err(|error| error.to_string())
}

/// Where the search for prices starts: asset 0 is the unit of value, and an asset that had no price in the last
/// batch has no meaningful one here.
pub(crate) fn last_valuations(ledger: &Ledger) -> Vec<Price> {
    let mut last: Vec<Price> = ledger.assets.iter().map(|asset| asset.valuation.unwrap_or(Price::ONE)).collect();
    last[0] = Price::ONE;
    last
}
