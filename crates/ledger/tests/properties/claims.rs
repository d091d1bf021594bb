//! Wrong clearings, which a follower refuses.

use super::*;

/// A wrong clearing is refused by name and changes nothing. A clearing is wrong if `clearing::verify` rejects it on the
/// whole book, or if a marginal key is wrong. The model's plain judgement of `market` must be the same. `after` is the
/// ledger that has applied the block.
pub fn lies(
    follower: &mut Ledger,
    (block, truth): (&Superblock, &Attached),
    (after, applied): (&Ledger, &Applied),
    market: &Market,
    rng: &mut ChaCha8Rng,
) {
    let state = |ledger: &Ledger| (ledger.height(), Snapshot::of(ledger).collect::<Vec<_>>());
    let before = state(follower);
    for kind in 0..18 {
        let mut lie = truth.clone();
        let fill = rng.random_range(0..lie.pools.len().max(1));
        if let Some(of) = lie.pools.get_mut(fill) {
            match kind {
                10 => of.sold += 1,
                11 => of.sells_a = !of.sells_a,
                12 => of.pool.class += 1,
                13 => drop(lie.pools.remove(fill)),
                _ => {}
            }
        }
        let which = rng.random_range(0..lie.trades.len().max(1));
        let asset = rng.random_range(0..ASSETS as usize);
        let exact = rng.random_range(0..lie.exacts.len().max(1));
        if let Some(of) = lie.exacts.get_mut(exact) {
            match kind {
                14 => of.sold -= 1,
                15 => of.bought += 1,
                16 => of.id += 1,
                17 => lie.exacts.push(lie.exacts[exact]),
                _ => {}
            }
        }
        let is_other = lie != *truth;
        match (kind, lie.trades.get_mut(which)) {
            (0, Some(trade)) => trade.sold += 1,
            (1, Some(trade)) => trade.sold -= 1,
            (2, Some(trade)) => trade.marginal.id += 1,
            (3, Some(trade)) => trade.marginal = Place::lowest(trade.marginal.limit),
            (4, Some(_)) => drop(lie.trades.remove(which)),
            (5, Some(_)) => lie.trades.push(truth.trades[which]),
            (6, _) if lie.short.is_empty() => lie.short.push(AssetId(asset as u32)),
            (6, _) => lie.short.clear(),
            (7, _) if !lie.valuations.is_empty() => {
                // Far from the market but still conserving: only μ can detect it.
                let (price, far) = (lie.valuations[asset].to_f64(), rng.random_range(2.0..3.0));
                let other = Price::from_f64(price * far).or(Price::from_f64(price / far));
                lie.valuations[asset] = other.expect("one of them is in range");
                lie.trades.clear();
            }
            (8, _) => drop(lie.valuations.pop()),
            (9, Some(trade)) => trade.pair.buy = AssetId((trade.pair.buy.0 + 1) % ASSETS),
            _ if is_other => {}
            _ => continue,
        }
        let holds = holds(&lie, truth, after, applied);
        let judged = market.judged(&lie).map(|_| ());
        // What trades in a group that is not full is a matter of solving: followers solve it.
        if holds || lie.short.is_empty() || truth.short.is_empty() {
            assert_eq!(judged.is_ok(), holds, "lie {kind}: {judged:?}");
        }
        match follower.apply_attached(block, &lie, Signatures::Unchecked, &mut |_| {}) {
            Err(Fault::Attached { .. }) if !holds => assert_eq!(state(follower), before, "lie {kind}"),
            Ok(_) if holds => *follower = restored(&before.1),
            other => panic!("lie {kind}, which holds: {holds}: {:?}", other.err()),
        }
    }
}

/// Whether a clearing is correct, by the independent check of the whole book.
pub fn holds(claim: &Attached, truth: &Attached, after: &Ledger, applied: &Applied) -> bool {
    let awake = awake(after, &applied.batch.pools);
    let mut met: BTreeMap<Pair, PairOffers> =
        after.book().iter().map(|(pair, offers)| (pair, offers.clone())).collect();
    for pair in applied.batch.fills.iter().map(|fill| fill.pair).chain(applied.batch.ended.iter().map(|of| of.pair)) {
        met.entry(pair).or_default();
    }
    let met = met.into_iter().map(|(pair, offers)| (pair, offers.as_met_by(&applied.batch, pair)));
    let met: Vec<_> = met.filter(|(_, offers)| !offers.is_empty()).collect();
    let pairs = met.iter().map(|(pair, offers)| offers.view(*pair));
    let pools: Vec<clearing::Pool> = awake.iter().map(|(_, pool)| *pool).collect();
    let (exacts, exact_fills) = exact_orders(&truth.exacts);
    let book = clearing::Book { assets: ASSETS, pairs: pairs.collect(), pools, exacts };
    if claim.exacts != truth.exacts {
        return false;
    }
    if book.pairs.is_empty() && book.pools.is_empty() {
        return claim == truth;
    }
    let trades = claim.trades.iter().map(|t| Trade { sell: t.pair.sell, buy: t.pair.buy, sold: t.sold }).collect();
    let report = applied.report.clone().expect("a book was cleared");
    let (full, short) = (claim.short.is_empty(), claim.short.clone());
    let mut pools = Vec::new();
    for fill in &claim.pools {
        let Ok(at) = awake.binary_search_by_key(&fill.pool, |(key, _)| *key) else { return false };
        let (sell, buy) = (fill.sell(), fill.buy());
        pools.push(PoolTrade { pool: at as u32, sell, buy, sold: fill.sold, bought: fill.bought });
    }
    let clearing =
        Clearing { valuations: claim.valuations.clone(), trades, pools, exacts: exact_fills, full, short, report };
    let Ok(verified) = clearing::verify(&book, &after.clearing_params(), &clearing) else { return false };
    let is_last = |trade: &ledger::AttachedTrade| {
        let at = met.iter().position(|(pair, _)| *pair == trade.pair).expect("verified");
        let fills = &verified.fills[at];
        let last = fills.partial.map_or(fills.full.saturating_sub(1), |partial| partial.index);
        met[at].1.iter().nth(last).map(|offer| offer.place) == Some(trade.marginal)
    };
    let is_short = clearing::Groups::of_book(&book).contain(&claim.short);
    let of_short = |of: &Attached| -> Vec<_> {
        let trades = of.trades.iter().filter(|trade| is_short[trade.pair.sell.0 as usize]);
        trades.map(|trade| (trade.pair, trade.sold)).collect()
    };
    let mut values = claim.valuations.iter().zip(&truth.valuations).zip(&is_short);
    let is_solved = claim.short.iter().all(|asset| truth.short.contains(asset))
        && values.all(|((claimed, found), short)| !short || claimed == found)
        && of_short(claim) == of_short(truth)
        && (claim.short.is_empty() || claim.pools == truth.pools);
    claim.trades.iter().all(is_last) && is_solved
}

/// Orders that ask for exactly what was traded, and their fills.
pub fn exact_orders(trades: &[ExactTrade]) -> (Vec<ExactOrder>, Vec<ExactFill>) {
    let order = |trade: &ExactTrade| {
        let (Pair { sell, buy }, ExactTrade { sold, bought, .. }) = (trade.pair, trade);
        match trade.side {
            ExactSide::Buy => ExactOrder::buy(buy, *bought, sell, *sold),
            ExactSide::Sell => ExactOrder::sell(sell, *sold, buy, *bought),
        }
    };
    let other = |trade: &ExactTrade| if trade.side == ExactSide::Buy { trade.sold } else { trade.bought };
    let fill = |(order, trade): (u32, &ExactTrade)| ExactFill { order, other: other(trade) };
    (trades.iter().map(order).collect(), (0..).zip(trades).map(fill).collect())
}

/// The pools that took part in a batch, as they were in it, from those after it.
pub fn awake(after: &Ledger, fills: &[PoolFill]) -> Vec<(PoolKey, clearing::Pool)> {
    let pools = after.pools().expect("the chain has pools");
    let before = |(key, pool): (&PoolKey, &PoolRecord)| {
        let mut was = *pool;
        if let Some(fill) = fills.iter().find(|fill| fill.pool == *key) {
            let (gave, took) = if fill.sells_a { (&mut was.a, &mut was.b) } else { (&mut was.b, &mut was.a) };
            (*gave, *took) = (*gave + fill.sold, *took - fill.bought);
        }
        (*key, was)
    };
    let least = |asset: AssetId| after.assets()[asset.0 as usize].least_units;
    let took_part = pools.iter().map(before).filter(|(key, was)| !is_asleep(was, [least(key.a), least(key.b)]));
    took_part
        .map(|(key, was)| {
            let PoolKey { a, b, .. } = key;
            (key, clearing::Pool { a, b, reserve_a: was.a, reserve_b: was.b, fee: pools.fee(&key) })
        })
        .collect()
}
