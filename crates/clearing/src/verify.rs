//! Verifies a clearing without solving anything, in one pass over the offers that execute.

use primitives::{Amount, AssetId, Price};
use rayon::prelude::*;

use crate::book::{Book, InputError, PairBook, Params};
use crate::fills::{PairFills, fills};
use crate::market::Groups;
use crate::outcome::{Clearing, Trade};
use crate::pool::{Pool, PoolTrade, Side};
use crate::rate::Rate;

/// The results of a successful verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The fills of every pair of the book, in its order.
    pub fills: Vec<PairFills>,
    /// Units of each asset that the auctioneer keeps: sold to it and not paid out.
    pub surplus: Vec<Amount>,
    /// Offers that trade, in full or in part.
    pub executed: usize,
}

/// The first error found in a clearing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The book itself breaks a rule.
    #[error(transparent)]
    Input(#[from] InputError),
    /// There is not one valuation per asset.
    #[error("{given} valuations are given for {assets} assets")]
    Valuations {
        /// Number of valuations.
        given: usize,
        /// Number of assets.
        assets: u32,
    },
    /// Trades are out of order, repeated, or sell nothing.
    #[error("trade {sell}/{buy} is repeated, out of order or sells nothing")]
    TradeOrder {
        /// The asset sold.
        sell: AssetId,
        /// The asset bought.
        buy: AssetId,
    },
    /// A trade on a pair without offers.
    #[error("trade {sell}/{buy} has no offers in the book")]
    NoOffers {
        /// The asset sold.
        sell: AssetId,
        /// The asset bought.
        buy: AssetId,
    },
    /// A trade is between assets of different groups: no chain of offers leads back from the asset bought to the one
    /// sold, so that there is no price between them.
    #[error("trade {sell}/{buy} is between assets that no chain of offers joins both ways")]
    AcrossGroups {
        /// The asset sold.
        sell: AssetId,
        /// The asset bought.
        buy: AssetId,
    },
    /// Offers cannot give exactly what the trade sells: too few may execute, or the last cannot be split accordingly.
    #[error("trade {sell}/{buy} sells {claimed} units but its offers execute {executed} at this rate")]
    Sold {
        /// The asset sold.
        sell: AssetId,
        /// The asset bought.
        buy: AssetId,
        /// Units claimed.
        claimed: Amount,
        /// Units that execute.
        executed: Amount,
    },
    /// A pool's trade is repeated or out of order, differs from what the pool gives and receives at this rate, or
    /// passes the rate.
    #[error("pool {0} cannot make this trade at this rate, or the trade is repeated or out of order")]
    Pool(u32),
    /// A clearing that claims fullness sells less of a pool than the pool's marginal price requires.
    #[error("pool {0} has a marginal price below (1-mu) of the rate and must sell up to there, but sells less")]
    PoolNotFull(u32),
    /// A fill of an exact order is repeated or out of order, moves other units than the rate says, is beyond the bound,
    /// or is in a group where offers are not filled.
    #[error("exact order {0} cannot be filled like this: it is repeated, out of order, or has another cost")]
    ExactOrder(u32),
    /// More of an asset is paid out than was sold.
    #[error("asset {asset} is not conserved: {sold} units sold, {paid} units paid out")]
    Conservation {
        /// The asset.
        asset: AssetId,
        /// Units that offers give.
        sold: u128,
        /// Units that offers receive.
        paid: u128,
    },
    /// An obstacle carries a proof that no whole units follow any prices, and the proof is wrong.
    #[error("the proof that no whole units follow any prices, which begins with asset {0}, is wrong")]
    Proof(AssetId),
    /// The list of groups that are not full does not name groups by their lowest assets, in order, or contradicts what
    /// the clearing says of its fullness.
    #[error(
        "the list of groups that are not full is wrong: name each group once, by its lowest asset, in order, and \
             none if the clearing is full"
    )]
    Short,
    /// A clearing does not fill an offer that must execute, in a group that it does not name as not full.
    #[error("offer {index} of pair {sell}/{buy}, limit {limit}, is below (1-mu) of the rate but not filled in full")]
    NotFull {
        /// The asset sold.
        sell: AssetId,
        /// The asset bought.
        buy: AssetId,
        /// Position of the offer in its pair.
        index: usize,
        /// Its limit price.
        limit: Price,
    },
}

impl Violation {
    /// The violation in one sentence. `name` gives the name of an asset, and `offer` that of an offer, from the
    /// assets that it sells and buys and its position in their pair. Pools and exact orders are named by their rows,
    /// counted from 1.
    pub fn in_words(
        &self,
        name: impl Fn(AssetId) -> String,
        offer: impl Fn(AssetId, AssetId, usize) -> String,
    ) -> String {
        let pair = |sell: &AssetId, buy: &AssetId| format!("{}/{}", name(*sell), name(*buy));
        match self {
            Violation::Input(_) | Violation::Valuations { .. } | Violation::Short => self.to_string(),
            Violation::TradeOrder { sell, buy } => {
                format!("trade {} is repeated, out of order or sells nothing", pair(sell, buy))
            }
            Violation::NoOffers { sell, buy } => format!("trade {} has no offers", pair(sell, buy)),
            Violation::AcrossGroups { sell, buy } => {
                format!("trade {} is between assets that no chain of offers joins both ways", pair(sell, buy))
            }
            Violation::Sold { sell, buy, claimed, executed } => format!(
                "trade {} sells {claimed} units but its offers execute {executed} at this rate",
                pair(sell, buy)
            ),
            Violation::Pool(pool) => format!("pools, row {}: does not trade as the rule of pools says", pool + 1),
            Violation::PoolNotFull(pool) => format!("pools, row {}: trades less than a full clearing must", pool + 1),
            Violation::ExactOrder(order) => format!("buys, row {}: does not cost what the list says", order + 1),
            Violation::Conservation { asset, sold, paid } => {
                format!("asset {} is not conserved: {sold} units sold, {paid} units paid out", name(*asset))
            }
            Violation::Proof(asset) => {
                format!("the proof that no whole units follow any prices, which begins with {}, is wrong", name(*asset))
            }
            Violation::NotFull { sell, buy, index, limit } => format!(
                "{} ({}, limit {limit}) is below (1-mu) of the rate but not filled in full",
                offer(*sell, *buy, *index),
                pair(sell, buy)
            ),
        }
    }
}

/// Verifies conservation and limit prices in integers, that the amounts sold are those of the fills, and the fullness
/// of every group but those that the clearing names as not full. Where an obstacle carries a proof, that too. Runs on
/// the current rayon pool; the result does not depend on it.
///
/// # Errors
/// The first [`Violation`] in the order of trades, then assets, then pairs.
pub fn verify(book: &Book, params: &Params, clearing: &Clearing) -> Result<Verified, Violation> {
    params.check()?;
    book.check()?;
    if clearing.valuations.len() != book.assets as usize {
        return Err(Violation::Valuations { given: clearing.valuations.len(), assets: book.assets });
    }
    let groups = Groups::of_book(book);
    let sold = sold_by_pair(book, &groups, &clearing.trades)?;
    let rate = |pair: &PairBook| {
        let value = |asset: AssetId| clearing.valuations[asset.0 as usize];
        Rate::new(value(pair.sell), value(pair.buy), params.epsilon, params.mu)
    };
    let all: Vec<PairFills> =
        book.pairs.par_iter().zip(&sold).map(|(pair, sold)| fills(pair, &rate(pair), *sold)).collect();
    for ((pair, got), claimed) in book.pairs.iter().zip(&all).zip(&sold) {
        if got.sold != *claimed {
            return Err(Violation::Sold { sell: pair.sell, buy: pair.buy, claimed: *claimed, executed: got.sold });
        }
    }
    let exempt = exempt(&groups, clearing)?;
    check_pools(&book.pools, params, &clearing.valuations, &clearing.pools, &exempt)?;
    let short = short_groups(book, params, &groups, clearing, &all);
    check_exact_fills(book, params, &groups, clearing, &short)?;
    let surplus = conserved(book, &all, clearing)?;
    let is_full = |pair: &PairBook| groups.are_one(pair.sell, pair.buy) && !exempt[pair.sell.0 as usize];
    let checks = book.pairs.par_iter().zip(&all).filter(|(pair, _)| is_full(pair));
    let first = checks.map(|(pair, got)| full(pair, got, &rate(pair))).find_first(Result::is_err);
    first.unwrap_or(Ok(()))?;
    let mut proofs = clearing.report.obstacles.iter().filter_map(|obstacle| obstacle.proof.as_ref());
    if let Some(proof) = proofs.find(|proof| !proof.check(book, params)) {
        return Err(Violation::Proof(proof.assets.first().copied().unwrap_or_default()));
    }
    let executed = all.iter().map(PairFills::executed).sum();
    Ok(Verified { fills: all, surplus, executed })
}

/// Units sold on every pair of the book, from trades that must be sorted and each on a pair of the book.
fn sold_by_pair(book: &Book, groups: &Groups, trades: &[Trade]) -> Result<Vec<Amount>, Violation> {
    let mut sold = vec![0; book.pairs.len()];
    let mut before = None;
    for &Trade { sell, buy, sold: claimed } in trades {
        if before.replace((sell, buy)) >= Some((sell, buy)) || claimed == 0 {
            return Err(Violation::TradeOrder { sell, buy });
        }
        let at = book.position(sell, buy).ok_or(Violation::NoOffers { sell, buy })?;
        if !groups.are_one(sell, buy) {
            return Err(Violation::AcrossGroups { sell, buy });
        }
        sold[at] = claimed;
    }
    Ok(sold)
}

/// For each asset, whether the clearing says that its group is not full. The list names groups of several assets by the
/// lowest, ascending, and is empty if and only if the clearing claims to be full.
fn exempt(groups: &Groups, clearing: &Clearing) -> Result<Vec<bool>, Violation> {
    let (short, lowest) = (&clearing.short, groups.lowest());
    let is_list = short.is_sorted_by(|a, b| a < b) && short.iter().all(|asset| lowest.binary_search(asset).is_ok());
    if !is_list || clearing.full != short.is_empty() {
        return Err(Violation::Short);
    }
    Ok(groups.contain(short))
}

/// Checks that every pool trades by its rule at these valuations, and as much as it must where its assets are not
/// `exempt`. Both lists have an entry for each asset.
///
/// # Errors
/// [`Violation::Pool`] or [`Violation::PoolNotFull`] of the first pool for which this does not hold.
pub fn check_pools(
    pools: &[Pool],
    params: &Params,
    valuations: &[Price],
    trades: &[PoolTrade],
    exempt: &[bool],
) -> Result<(), Violation> {
    let value = |asset: AssetId| valuations[asset.0 as usize];
    let mut trades = trades.iter().peekable();
    for (number, pool) in (0..).zip(pools) {
        let trade = trades.next_if(|trade| trade.pool == number);
        let mut found = false;
        for side in pool.sides() {
            let rate = Rate::new(value(side.sell), value(side.buy), params.epsilon, params.mu);
            let own = trade.filter(|trade| (trade.sell, trade.buy) == (side.sell, side.buy));
            if let Some(trade) = own {
                found = trade.sold > 0
                    && trade.sold <= side.most(params.epsilon, value(side.sell), value(side.buy))
                    && side.fill(&rate, trade.sold) == (trade.sold, trade.bought);
            }
            if !exempt[pool.a.0 as usize] && own.map_or(0, |trade| trade.sold) < side.bounds(&rate).0 {
                return Err(Violation::PoolNotFull(number));
            }
        }
        if trade.is_some() && !found {
            return Err(Violation::Pool(number));
        }
    }
    trades.next().map_or(Ok(()), |trade| Err(Violation::Pool(trade.pool)))
}

/// For the group of each asset by its number, whether some offer or pool in it executes less than it must. Only where
/// it matters: if there are exact fills, and the clearing does not claim to be full.
fn short_groups(book: &Book, params: &Params, groups: &Groups, clearing: &Clearing, all: &[PairFills]) -> Vec<bool> {
    let mut short = vec![false; book.assets as usize];
    if clearing.full || clearing.exacts.is_empty() {
        return short;
    }
    let value = |asset: AssetId| clearing.valuations[asset.0 as usize];
    let rate = |sell, buy| Rate::new(value(sell), value(buy), params.epsilon, params.mu);
    for (pair, got) in book.pairs.iter().zip(all).filter(|(pair, _)| groups.are_one(pair.sell, pair.buy)) {
        short[groups.number(pair.sell)] |= full(pair, got, &rate(pair.sell, pair.buy)).is_err();
    }
    for (number, pool) in (0..).zip(&book.pools) {
        let sold = |side: &Side| {
            let at = clearing.pools.binary_search_by_key(&number, |trade| trade.pool).ok();
            at.map(|at| clearing.pools[at]).filter(|trade| trade.sell == side.sell).map_or(0, |trade| trade.sold)
        };
        let is_short = |side: Side| sold(&side) < side.bounds(&rate(side.sell, side.buy)).0;
        short[groups.number(pool.a)] |= pool.sides().into_iter().any(is_short);
    }
    short
}

/// Checks that every exact order pays or receives what the rate says, within its bound, in a full group.
fn check_exact_fills(
    book: &Book,
    params: &Params,
    groups: &Groups,
    clearing: &Clearing,
    short: &[bool],
) -> Result<(), Violation> {
    let value = |asset: AssetId| clearing.valuations[asset.0 as usize];
    let mut before = None;
    for fill in &clearing.exacts {
        let order = book.exacts.get(fill.order as usize).ok_or(Violation::ExactOrder(fill.order))?;
        let rate = Rate::new(value(order.sell), value(order.buy), params.epsilon, params.mu);
        let in_order = before.replace(fill.order) < Some(fill.order);
        if short[groups.number(order.sell)]
            || !in_order
            || !groups.are_one(order.sell, order.buy)
            || order.other(&rate) != Some(fill.other)
        {
            return Err(Violation::ExactOrder(fill.order));
        }
    }
    Ok(())
}

/// The auctioneer's surplus of every asset.
fn conserved(book: &Book, all: &[PairFills], clearing: &Clearing) -> Result<Vec<Amount>, Violation> {
    let mut totals = vec![(0u128, 0u128); book.assets as usize];
    for (pair, got) in book.pairs.iter().zip(all) {
        totals[pair.sell.0 as usize].0 += u128::from(got.sold);
        totals[pair.buy.0 as usize].1 += got.bought;
    }
    for trade in &clearing.pools {
        totals[trade.sell.0 as usize].0 += u128::from(trade.sold);
        totals[trade.buy.0 as usize].1 += u128::from(trade.bought);
    }
    for fill in &clearing.exacts {
        let order = &book.exacts[fill.order as usize];
        let (sold, bought) = order.moves(fill.other);
        totals[order.sell.0 as usize].0 += u128::from(sold);
        totals[order.buy.0 as usize].1 += u128::from(bought);
    }
    let surplus = totals.iter().enumerate().map(|(id, &(sold, paid))| {
        let rest = sold.checked_sub(paid).ok_or(Violation::Conservation { asset: AssetId(id as u32), sold, paid })?;
        Ok(Amount::try_from(rest).expect("no more is sold of an asset than the book may offer"))
    });
    surplus.collect()
}

/// Checks that every offer of a pair inside a group that must fill does.
pub(crate) fn full(pair: &PairBook, got: &PairFills, rate: &Rate) -> Result<(), Violation> {
    let offers = pair.leading(|limit| rate.sure.reaches(limit)).enumerate();
    let mut skipped = offers.filter(|(index, _)| !got.fills_in_full(*index));
    match skipped.find(|(_, (limit, amount))| rate.must_fill(*limit, *amount)) {
        None => Ok(()),
        Some((index, (limit, _))) => Err(Violation::NotFull { sell: pair.sell, buy: pair.buy, index, limit }),
    }
}
