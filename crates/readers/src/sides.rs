//! A market as people name it: an unordered pair of assets, of which one is priced in the other.

use ledger::{Batch, Pair};
use primitives::AssetId;

/// A base asset and the asset that it is priced in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sides {
    /// The asset that is priced.
    pub base: AssetId,
    /// The asset that it is priced in.
    pub quote: AssetId,
}

impl Sides {
    /// The market of an ordered pair: the asset with the higher number is priced in the other.
    pub fn of(pair: Pair) -> Sides {
        Sides { base: pair.sell.max(pair.buy), quote: pair.sell.min(pair.buy) }
    }

    /// Offers of the base for the quote.
    pub fn supply(self) -> Pair {
        Pair { sell: self.base, buy: self.quote }
    }

    /// Offers of the quote for the base.
    pub fn demand(self) -> Pair {
        Pair { sell: self.quote, buy: self.base }
    }
}

/// Base and quote units traded in a batch. Units that one side sells and the other buys count once; where one side
/// trades more through other assets, its units count.
pub fn volumes(batch: &Batch, sides: Sides) -> (u64, u64) {
    let trade = |pair| {
        let trades = &batch.trades;
        trades.binary_search_by_key(&pair, |trade| trade.pair).ok().map(|at| (trades[at].sold, trades[at].bought))
    };
    let (base_sold, quote_paid) = trade(sides.supply()).unwrap_or_default();
    let (quote_sold, base_paid) = trade(sides.demand()).unwrap_or_default();
    (base_sold.max(base_paid), quote_sold.max(quote_paid))
}
