//! A market as people name it: an unordered pair of assets, of which one is priced in the other.

use std::collections::BTreeSet;

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

/// The markets in which offers, pools or exact orders traded in a batch, in order of base and quote.
pub fn traded(batch: &Batch) -> Vec<Sides> {
    let offers = batch.trades.iter().map(|trade| trade.pair);
    let pools = batch.pools.iter().map(|fill| Pair { sell: fill.sell(), buy: fill.buy() });
    let exacts = batch.exacts.iter().map(|trade| trade.pair);
    let all: BTreeSet<_> = offers.chain(pools).chain(exacts).map(Sides::of).map(|of| (of.base, of.quote)).collect();
    all.into_iter().map(|(base, quote)| Sides { base, quote }).collect()
}

/// Base and quote units traded in a batch, by offers, pools and exact orders. Units that one side sells and the other
/// buys count once; where one side trades more through other assets, its units count.
pub fn volumes(batch: &Batch, sides: Sides) -> (u64, u64) {
    let (base_sold, quote_paid) = moved(batch, sides.supply());
    let (quote_sold, base_paid) = moved(batch, sides.demand());
    (base_sold.max(base_paid), quote_sold.max(quote_paid))
}

/// Units that an ordered pair sold and bought. No more of an asset moves in a batch than exists, so sums fit.
fn moved(batch: &Batch, pair: Pair) -> (u64, u64) {
    let trades = of_pair(&batch.trades, pair, |trade| trade.pair).iter().map(|trade| (trade.sold, trade.bought));
    let exacts = of_pair(&batch.exacts, pair, |trade| trade.pair).iter().map(|trade| (trade.sold, trade.bought));
    let (a, b) = (pair.sell.min(pair.buy), pair.sell.max(pair.buy));
    let pools = of_pair(&batch.pools, (a, b), |fill| (fill.pool.a, fill.pool.b)).iter();
    let pools = pools.filter(|fill| fill.sell() == pair.sell).map(|fill| (fill.sold, fill.bought));
    let add =
        |(sold, bought): (u64, u64), more: (u64, u64)| (sold.saturating_add(more.0), bought.saturating_add(more.1));
    trades.chain(exacts).chain(pools).fold((0, 0), add)
}

/// Those of a pair in a list that is sorted by pairs.
fn of_pair<T, K: Ord>(all: &[T], pair: K, key: impl Fn(&T) -> K) -> &[T] {
    let from = all.partition_point(|one| key(one) < pair);
    let count = all[from..].partition_point(|one| key(one) == pair);
    &all[from..from + count]
}

#[cfg(test)]
mod tests {
    use super::*;
    use ledger::{ExactTrade, PairTrade, PoolFill};
    use primitives::{Address, ExactSide, PoolKey};

    const fn pair(sell: u32, buy: u32) -> Pair {
        Pair { sell: AssetId(sell), buy: AssetId(buy) }
    }

    fn exact(sell: u32, buy: u32, sold: u64, bought: u64) -> ExactTrade {
        ExactTrade { pair: pair(sell, buy), side: ExactSide::Buy, account: Address([1; 20]), id: 1, sold, bought }
    }

    fn pool(a: u32, b: u32, class: u8, sells_a: bool, sold: u64, bought: u64) -> PoolFill {
        PoolFill { pool: PoolKey { a: AssetId(a), b: AssetId(b), class }, sells_a, sold, bought }
    }

    #[test]
    fn offers_pools_and_exact_orders_of_a_market_count() {
        let batch = Batch {
            trades: vec![PairTrade { pair: pair(1, 0), sold: 10, bought: 20 }],
            exacts: vec![exact(0, 1, 12, 6), exact(0, 1, 2, 1), exact(3, 2, 7, 70)],
            pools: vec![pool(0, 1, 0, true, 30, 15), pool(0, 1, 1, false, 4, 8), pool(0, 2, 0, true, 9, 3)],
            ..Batch::default()
        };
        let sides = Sides { base: AssetId(1), quote: AssetId(0) };
        // The base is sold by the offer (10) and one pool (4), and bought by exact orders (7) and the other pool (15).
        assert_eq!(volumes(&batch, sides), (22, 44));
        let only = |base, quote| volumes(&batch, Sides { base: AssetId(base), quote: AssetId(quote) });
        assert_eq!(only(3, 2), (7, 70), "an exact order alone");
        assert_eq!(only(2, 0), (3, 9), "a pool alone");
        assert_eq!(only(3, 0), (0, 0));
        let markets: Vec<_> = traded(&batch).iter().map(|of| (of.base.0, of.quote.0)).collect();
        assert_eq!(markets, [(1, 0), (2, 0), (3, 2)]);
    }
}
