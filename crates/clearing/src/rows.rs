//! The results of a clearing for a list of offers, row by row, and the rate of each pair.
//!
//! A [`Clearing`] states only prices and what each pair sells: fills follow from those by the rule of
//! [`crate::fills`]. They are computed here on request, from the list that [`SortedOffers`] has sorted.

use primitives::{Amount, AssetId};

use crate::book::{Book, PairBook, Params, SortedOffers};
use crate::explain::{TradeReason, reasons};
use crate::fills::{PairFills, fills};
use crate::market::Groups;
use crate::minima::Minima;
use crate::outcome::{Clearing, Trade};
use crate::rate::Rate;

/// What the offer of one row gives and receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowFill {
    /// Position in the list of offers, from 0.
    pub row: u32,
    /// Units given, at least 1.
    pub sold: Amount,
    /// Units received.
    pub bought: Amount,
}

/// The outcome of the offer of one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowOutcome {
    /// Units given.
    pub sold: Amount,
    /// Units received.
    pub bought: Amount,
    /// Remainder of a partial fill that is too small to rest as an offer, see [`Minima`].
    pub returned: Amount,
    /// Why it trades as much as it does.
    pub why: TradeReason,
}

impl Clearing {
    /// The rate between `sell` and `buy`, net of commission; `None` if the clearing does not have the assets. Between
    /// assets of different [`Groups`] it has no meaning, and nothing trades at it.
    pub fn rate(&self, params: &Params, sell: AssetId, buy: AssetId) -> Option<Rate> {
        let value = |asset: AssetId| self.valuations.get(asset.0 as usize).copied();
        Some(Rate::new(value(sell)?, value(buy)?, params.epsilon, params.mu))
    }

    /// The amount sold on the pair `sell`/`buy`.
    pub fn sold(&self, sell: AssetId, buy: AssetId) -> Amount {
        let found = self.trades.binary_search_by_key(&(sell, buy), |trade| (trade.sell, trade.buy));
        found.map_or(0, |at| self.trades[at].sold)
    }

    /// The offers that trade, pair by pair, and in execution order on each. `book` is that of `offers`, with or
    /// without pools and exact orders. Lazy; iterating costs time for what trades, not for what rests.
    ///
    /// Assumes a correct clearing; [`crate::verify`] checks it. Trades of pairs that the book does not have are left
    /// out.
    pub fn fills<'a>(
        &'a self,
        book: &'a Book<'a>,
        offers: &'a SortedOffers,
        params: &'a Params,
    ) -> impl Iterator<Item = RowFill> + 'a {
        self.trades.iter().flat_map(move |&Trade { sell, buy, sold }| {
            let of_pair = || {
                let position = book.position(sell, buy)?;
                let (pair, rows, rate) = (&book.pairs[position], offers.rows(position), self.rate(params, sell, buy)?);
                let got = fills(pair, &rate, sold);
                let fill = |(index, sold, bought)| RowFill { row: rows[index], sold, bought };
                Some(got.each(pair, &rate).map(fill).collect::<Vec<_>>())
            };
            of_pair().unwrap_or_default()
        })
    }

    /// The outcome of each row of `offers`, in the order of the list. `book` is that of `offers`, with or without
    /// pools and exact orders. `least` gives the minimum units of an asset, 0 if there is no minimum. Linear in the
    /// number of offers. `None` if the clearing does not have an asset of the book.
    ///
    /// Assumes a correct clearing; [`crate::verify`] checks it.
    pub fn outcomes(
        &self,
        book: &Book,
        offers: &SortedOffers,
        params: &Params,
        least: impl Fn(AssetId) -> Amount,
    ) -> Option<Vec<RowOutcome>> {
        let untouched = RowOutcome { sold: 0, bought: 0, returned: 0, why: TradeReason::NoCounterparty };
        let mut result = vec![untouched; book.offers()];
        let groups = Groups::of_book(book);
        for (position, pair) in book.pairs.iter().enumerate() {
            let rate = self.rate(params, pair.sell, pair.buy)?;
            if !groups.are_one(pair.sell, pair.buy) {
                continue;
            }
            let rows = offers.rows(position);
            let got = fills(pair, &rate, self.sold(pair.sell, pair.buy));
            let reasons = reasons(pair, &rate, &got);
            rows.iter().zip(reasons).for_each(|(row, why)| result[*row as usize].why = why);
            for (index, sold, bought) in got.each(pair, &rate) {
                let outcome = &mut result[rows[index] as usize];
                (outcome.sold, outcome.bought) = (sold, bought);
            }
            if let Some((index, returned)) = returned(pair, &got, &least) {
                result[rows[index] as usize].returned = returned;
            }
        }
        Some(result)
    }
}

/// The offer that trades in part, and the part of its remainder that is returned.
fn returned(pair: &PairBook, got: &PairFills, least: impl Fn(AssetId) -> Amount) -> Option<(usize, Amount)> {
    let partial = got.partial?;
    let (limit, amount) = pair.offers().nth(partial.index)?;
    let minima = Minima { sell: least(pair.sell), buy: least(pair.buy) };
    Some((partial.index, minima.returned(amount - partial.sold, limit)))
}
