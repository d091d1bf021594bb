//! What the solver finds for the model's market: the ledger must have given it the same book and the same parameters.

use clearing::{Book, PairBook, Params, Pool, clear};
use ledger::{Attached, Pair, PoolFill};
use primitives::{Amount, Price};

use super::market::Market;

/// Asserts that the claim is what the solver finds, given the valuations of the batch before.
pub fn assert_found(market: &Market, last: &[Price], claim: &Attached) {
    let columns: Vec<(Pair, Vec<Price>, Vec<Amount>)> = market
        .offers
        .iter()
        .map(|(pair, offers)| {
            let (limits, amounts) = offers.iter().map(|(place, amount)| (place.limit, *amount)).unzip();
            (*pair, limits, amounts)
        })
        .collect();
    let pairs = columns
        .iter()
        .map(|(pair, limits, amounts)| PairBook::new(pair.sell, pair.buy, limits, amounts).expect("sorted offers"));
    let pools = market.pools.iter().map(|(key, pool, fee)| {
        let (reserve_a, reserve_b) = (pool.a, pool.b);
        Pool { a: key.a, b: key.b, reserve_a, reserve_b, fee: *fee }
    });
    let (pairs, pools) = (pairs.collect(), pools.collect());
    let exacts = market.exacts.iter().map(|order| order.order()).collect();
    let book = Book { assets: market.least.len() as u32, pairs, pools, exacts };
    let params = Params { epsilon: market.epsilon, mu: market.mu, ..Params::default() };
    let found = clear(&book, &params, Some(last)).expect("a sound book");
    assert_eq!((&found.valuations, &found.short), (&claim.valuations, &claim.short));
    let trades = found.trades.iter().map(|trade| (Pair { sell: trade.sell, buy: trade.buy }, trade.sold));
    assert!(trades.eq(claim.trades.iter().map(|trade| (trade.pair, trade.sold))), "{claim:?}");
    let pools = found.pools.iter().map(|trade| {
        let (key, ..) = market.pools[trade.pool as usize];
        PoolFill { pool: key, sells_a: trade.sell == key.a, sold: trade.sold, bought: trade.bought }
    });
    assert!(pools.eq(claim.pools.iter().copied()), "{claim:?}");
    let filled = found.exacts.iter().map(|fill| {
        let order = &market.exacts[fill.order as usize];
        (order.account, order.id, fill.other)
    });
    let told = claim.exacts.iter().map(|trade| {
        let is_buy = trade.side == primitives::ExactSide::Buy;
        (trade.account, trade.id, if is_buy { trade.sold } else { trade.bought })
    });
    assert!(filled.eq(told), "{claim:?}");
}
