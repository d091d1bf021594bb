//! The check of a clearing that is already known (SPEEDEX §K.3).
//!
//! A replaying node and a node that catches up have the batch of a block in its receipts: valuations, what every pair
//! sells, and each pair's marginal key, which is the place of the last offer that executes. The check walks each pair's
//! offers up to that key, with resting offers and the block's own offers merged. It compares the clearing with the one
//! rule that turns amounts into fills, then checks conservation for every asset, and, in each group that is not named
//! as not full, the offers behind the key against μ. The others are solved again. So the check costs what trades and
//! not what rests, and changes nothing before all of it has passed.
//!
//! **Deviations from the paper.** There a proposer solves and followers check. A book has many clearings that pass such
//! a check. So a proposer could choose prices within ε and μ, or let nothing trade in an idle asset. Here every
//! validator solves, and the clearing of a block is the one that the solver finds. The check serves batches that were
//! solved before; the state root after them shows whether they were the right ones.

use std::collections::BTreeMap;

use borsh::{BorshDeserialize, BorshSerialize};
use clearing::{PairBook, Pool, PoolTrade, Violation as Wrong, check_pools};
use primitives::{Amount, AssetId, PoolKey, Price};
use proofs::{Batch, ExactTrade, Offer, Pair, PairTrade, Place, PoolFill};
use rayon::prelude::*;

use super::clear::clear_pairs;
use super::exacts::Judge;
use super::fault::AttachedViolation;
use super::orders::{Orders, PairOrders};
use super::settle::{Executed, PairOutcome, Prices, execute, work};
use crate::places::pools::{AwakePool, groups};
use crate::state::Ledger;

/// What one pair sells in a given clearing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct AttachedTrade {
    /// The pair.
    pub pair: Pair,
    /// Units that its offers sell in total, at least 1.
    pub sold: Amount,
    /// The place of the last offer that executes, in full or in part.
    pub marginal: Place,
}

/// A clearing that is provided together with its block.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Attached {
    /// One valuation per asset, by number; none where nothing is for sale.
    pub valuations: Vec<Price>,
    /// The pairs that trade, in order.
    pub trades: Vec<AttachedTrade>,
    /// The pools that trade, in order.
    pub pools: Vec<PoolFill>,
    /// The exact orders that are filled, in the order in which they are tried.
    pub exacts: Vec<ExactTrade>,
    /// The groups in which not every offer that is better than the rate by more than μ executes in full, each by its
    /// lowest asset, in order.
    pub short: Vec<AssetId>,
}

impl Attached {
    /// The clearing of a batch that was applied, for others to check.
    pub fn of(batch: &Batch) -> Attached {
        let trade = |trade: &PairTrade| {
            let last = batch.fills_of(trade.pair).last().expect("what trades has fills");
            AttachedTrade { pair: trade.pair, sold: trade.sold, marginal: last.place }
        };
        Attached {
            valuations: batch.valuations.clone(),
            trades: batch.trades.iter().map(trade).collect(),
            pools: batch.pools.clone(),
            exacts: batch.exacts.clone(),
            short: batch.short.clone(),
        }
    }

    fn check_order(&self) -> Result<(), AttachedViolation> {
        let mut before = None;
        for AttachedTrade { pair, sold, .. } in &self.trades {
            if before.replace(*pair) >= Some(*pair) || *sold == 0 {
                return Err(Wrong::TradeOrder { sell: pair.sell, buy: pair.buy }.into());
            }
        }
        Ok(())
    }
}

/// The outcome of the attached clearing for every pair that is ordered or traded. Changes nothing.
pub(crate) fn check_attached(
    ledger: &Ledger,
    orders: &Orders,
    awake: &[AwakePool],
    attached: &Attached,
) -> Result<(Vec<PairOutcome>, Option<clearing::Groups>), AttachedViolation> {
    attached.check_order()?;
    if awake.is_empty() && is_nothing_for_sale(ledger, orders) {
        let by_pair = orders.by_pair();
        let pairs = by_pair.iter().map(PairOutcome::unpriced);
        return if *attached == Attached::default() {
            Ok((pairs.collect(), None))
        } else {
            Err(AttachedViolation::NothingForSale)
        };
    }
    let (given, assets) = (attached.valuations.len(), ledger.assets.len() as u32);
    if given != assets as usize {
        return Err(Wrong::Valuations { given, assets }.into());
    }
    let mut trades: BTreeMap<Pair, Option<&AttachedTrade>> =
        ledger.places.book.iter().filter(|(pair, _)| ledger.trades(*pair)).map(|(pair, _)| (pair, None)).collect();
    trades.extend(attached.trades.iter().map(|trade| (trade.pair, Some(trade))));
    let trades: Vec<_> = trades.into_iter().collect();
    let least = ledger.least_units();
    let prices = Prices::of(ledger, &attached.valuations, &least);
    let work = work(orders, &trades);
    let offered = work.iter().map(|(orders, _)| orders);
    let offered = offered.filter(|orders| ledger.trades(orders.pair) && has_offers(ledger, orders));
    let groups = groups(assets, offered.map(|orders| (orders.pair.sell, orders.pair.buy)), awake);
    if attached.short.iter().any(|asset| groups.lowest().binary_search(asset).is_err()) {
        return Err(Wrong::Short.into());
    }
    let exempt = groups.contain(&attached.short);
    if !attached.short.is_empty() {
        check_best(ledger, orders, awake, attached, &exempt)?;
    }
    check_pool_fills(ledger, awake, attached, &exempt)?;
    let valuations = &attached.valuations;
    let judge = Judge { groups: Some(&groups), valuations, short: &exempt, params: ledger.clearing_params() };
    judge.check(&orders.exacts, &attached.exacts)?;
    // A claim may trade pairs of assets that do not exist.
    let is_full = |pair: Pair| exempt.get(pair.sell.0 as usize) == Some(&false);
    let checked: Vec<Result<PairOutcome, AttachedViolation>> = work
        .into_par_iter()
        .map(|(orders, trade)| check_pair(ledger, &orders, trade.flatten(), &prices, &groups, is_full(orders.pair)))
        .collect();
    let pairs: Vec<PairOutcome> = checked.into_iter().collect::<Result<_, _>>()?;
    conserved(ledger.assets.len(), &pairs, &attached.pools, &attached.exacts)?;
    Ok((pairs.into_iter().filter(|pair| !pair.is_nothing()).collect(), Some(groups)))
}

/// Whether no offer of assets that trade rests once the block's orders are in the book.
fn is_nothing_for_sale(ledger: &Ledger, orders: &Orders) -> bool {
    let rests = match ledger.listings().has_closed(ledger.next_height()) {
        false => ledger.places.book.len(),
        true => ledger.places.book.iter().filter(|(pair, _)| ledger.trades(*pair)).map(|(_, of)| of.len()).sum(),
    };
    rests + orders.offers.len() == orders.leaving.iter().filter(|ended| ledger.trades(ended.pair)).count()
}

/// Solves the groups that are said not to be full, and no others; the solver must find the same.
fn check_best(
    ledger: &Ledger,
    orders: &Orders,
    awake: &[AwakePool],
    attached: &Attached,
    of: &[bool],
) -> Result<(), AttachedViolation> {
    let mut book = ledger.places.book.clone();
    book.place(&orders.by_pair());
    let has = |asset: AssetId| of.get(asset.0 as usize) == Some(&true);
    let is_of = |pair: Pair| has(pair.sell) && has(pair.buy);
    let found = clear_pairs(ledger, &book, awake, &[], |pair| is_of(pair) && ledger.trades(pair));
    let found = found.map_err(|_| AttachedViolation::NotTheBest)?;
    let trades = found.trades.iter().map(|trade| (trade.sell, trade.buy, trade.sold));
    let claimed = attached.trades.iter().filter(|trade| is_of(trade.pair));
    let chosen: Vec<PoolKey> = awake.iter().map(|(key, _)| *key).filter(|key| has(key.a) && has(key.b)).collect();
    let pools = found.pools.iter().map(|trade| (chosen[trade.pool as usize], trade.sell, trade.sold, trade.bought));
    let claimed_pools = attached.pools.iter().filter(|fill| has(fill.pool.a) && has(fill.pool.b));
    let same_value = |(asset, value): (usize, &Price)| !of[asset] || *value == attached.valuations[asset];
    let same = found.short == attached.short
        && found.valuations.iter().enumerate().all(same_value)
        && trades.eq(claimed.map(|trade| (trade.pair.sell, trade.pair.buy, trade.sold)))
        && pools.eq(claimed_pools.map(|fill| (fill.pool, fill.sell(), fill.sold, fill.bought)));
    if same { Ok(()) } else { Err(AttachedViolation::NotTheBest) }
}

/// Every pool trades as its rule says, and in groups that are not `exempt` as much as it must.
fn check_pool_fills(
    ledger: &Ledger,
    awake: &[AwakePool],
    attached: &Attached,
    exempt: &[bool],
) -> Result<(), AttachedViolation> {
    let trade = |fill: &PoolFill| {
        let at = awake.binary_search_by_key(&fill.pool, |(key, _)| *key);
        let pool = at.map_err(|_| AttachedViolation::Pool(fill.pool))? as u32;
        Ok(PoolTrade { pool, sell: fill.sell(), buy: fill.buy(), sold: fill.sold, bought: fill.bought })
    };
    let trades: Vec<PoolTrade> = attached.pools.iter().map(trade).collect::<Result<_, AttachedViolation>>()?;
    let pools: Vec<Pool> = awake.iter().map(|(_, pool)| *pool).collect();
    let checked = check_pools(&pools, &ledger.clearing_params(), &attached.valuations, &trades, exempt);
    checked.map_err(|wrong| match wrong {
        Wrong::Pool(at) | Wrong::PoolNotFull(at) => match awake.get(at as usize) {
            Some((key, _)) => AttachedViolation::Pool(*key),
            None => wrong.into(),
        },
        other => other.into(),
    })
}

fn check_pair(
    ledger: &Ledger,
    orders: &PairOrders,
    trade: Option<&AttachedTrade>,
    prices: &Prices,
    groups: &clearing::Groups,
    full: bool,
) -> Result<PairOutcome, AttachedViolation> {
    let Pair { sell, buy } = orders.pair;
    let has_offers = has_offers(ledger, orders);
    let can_trade = has_offers && ledger.trades(orders.pair) && groups.are_one(sell, buy);
    if trade.is_some() && has_offers && !can_trade {
        return Err(Wrong::AcrossGroups { sell, buy }.into());
    }
    let executed = trade.map_or(Ok(Executed::default()), |trade| check_trade(ledger, orders, trade, prices))?;
    if full && can_trade {
        check_full(ledger, orders, trade.map(|trade| &trade.marginal), &executed, prices)?;
    }
    Ok(PairOutcome::new(orders, executed, prices))
}

/// Walks the offers up to the marginal key; they must execute exactly as claimed.
fn check_trade(
    ledger: &Ledger,
    orders: &PairOrders,
    trade: &AttachedTrade,
    prices: &Prices,
) -> Result<Executed, AttachedViolation> {
    let AttachedTrade { pair, sold: claimed, marginal } = *trade;
    let Pair { sell, buy } = pair;
    if ledger.places.book.get(pair).is_none() && orders.offers.is_empty() {
        return Err(Wrong::NoOffers { sell, buy }.into());
    }
    let rate = prices.rate(pair);
    // Offers that cannot execute are not walked over.
    if !rate.reaches(marginal.limit) {
        return Err(AttachedViolation::Marginal { pair, marginal });
    }
    let head: Vec<Offer> = offers_with(ledger, orders, ..=marginal).collect();
    if head.is_empty() {
        return Err(Wrong::NoOffers { sell, buy }.into());
    }
    let limits: Vec<Price> = head.iter().map(|offer| offer.place.limit).collect();
    let amounts: Vec<Amount> = head.iter().map(|offer| offer.amount).collect();
    let fills = clearing::fills(&PairBook::new(sell, buy, &limits, &amounts)?, &rate, claimed);
    if fills.sold != claimed {
        return Err(Wrong::Sold { sell, buy, claimed, executed: fills.sold }.into());
    }
    let executed = execute(pair, head.into_iter(), &fills, &rate, prices.minima(pair));
    match executed.fills.last() {
        Some(last) if last.place == marginal => Ok(executed),
        _ => Err(AttachedViolation::Marginal { pair, marginal }),
    }
}

/// Every offer that must execute in full does, unless no fill of it in whole units could satisfy its limit.
fn check_full(
    ledger: &Ledger,
    orders: &PairOrders,
    marginal: Option<&Place>,
    executed: &Executed,
    prices: &Prices,
) -> Result<(), AttachedViolation> {
    let (pair, rate) = (orders.pair, prices.rate(orders.pair));
    let start = marginal.map_or(std::ops::Bound::Unbounded, |last| std::ops::Bound::Excluded(*last));
    let behind = offers_with(ledger, orders, (start, std::ops::Bound::Unbounded));
    // Offers skipped ahead of the marginal offer need not execute, or they would have come first.
    let partial = executed.fills.iter().find(|fill| fill.left + fill.returned > 0);
    let partial = partial.map(|fill| (fill.place, fill.offered()));
    let behind = behind.take_while(|offer| rate.reaches(offer.place.limit)).map(|offer| (offer.place, offer.amount));
    match partial.into_iter().chain(behind).find(|(place, amount)| rate.must_fill(place.limit, *amount)) {
        Some((place, _)) => Err(AttachedViolation::NotFull { pair, place }),
        None => Ok(()),
    }
}

/// Whether a pair has offers, including the block's orders.
fn has_offers(ledger: &Ledger, orders: &PairOrders) -> bool {
    offers_with(ledger, orders, ..).next().is_some()
}

/// The offers of a pair in a range of places, including the block's orders.
fn offers_with<'a>(
    ledger: &'a Ledger,
    orders: &PairOrders<'a>,
    range: impl std::ops::RangeBounds<Place> + Clone + 'a,
) -> impl Iterator<Item = Offer> + 'a {
    let (leaving, within) = (orders.leaving, range.clone());
    let resting = ledger.places.book.get(orders.pair).into_iter().flat_map(move |offers| offers.range(range.clone()));
    let is_gone = move |offer: &Offer| leaving.binary_search_by_key(&offer.place, |ended| ended.place).is_ok();
    let mut resting = resting.filter(move |offer| !is_gone(offer)).peekable();
    let mut new = orders.offers.iter().map(|new| new.offer).filter(move |o| within.contains(&o.place)).peekable();
    std::iter::from_fn(move || match (resting.peek(), new.peek()) {
        (Some(old), Some(added)) if added.place < old.place => new.next(),
        (Some(_), _) => resting.next(),
        (None, _) => new.next(),
    })
}

/// Checks that no more of an asset is paid out than was sold.
pub(crate) fn conserved(
    assets: usize,
    pairs: &[PairOutcome],
    pools: &[PoolFill],
    exacts: &[ExactTrade],
) -> Result<(), AttachedViolation> {
    let mut totals = vec![(0u128, 0u128); assets];
    for fill in pairs.iter().flat_map(|pair| &pair.fills) {
        totals[fill.pair.sell.0 as usize].0 += u128::from(fill.sold);
        totals[fill.pair.buy.0 as usize].1 += u128::from(fill.bought);
    }
    for fill in pools {
        totals[fill.sell().0 as usize].0 += u128::from(fill.sold);
        totals[fill.buy().0 as usize].1 += u128::from(fill.bought);
    }
    for trade in exacts {
        totals[trade.pair.sell.0 as usize].0 += u128::from(trade.sold);
        totals[trade.pair.buy.0 as usize].1 += u128::from(trade.bought);
    }
    match totals.iter().position(|(sold, paid)| paid > sold) {
        Some(asset) => {
            let (sold, paid) = totals[asset];
            Err(Wrong::Conservation { asset: AssetId(asset as u32), sold, paid }.into())
        }
        None => Ok(()),
    }
}
