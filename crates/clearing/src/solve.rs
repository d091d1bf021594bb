//! A complete clearing, from book to trades, and its single stages.

use primitives::{AssetId, Price};
use rayon::prelude::*;

use crate::amounts::{Amounts, Lack, amounts, full_amounts, prepared, with_orders};
use crate::book::{Book, InputError, Params, Solver};
use crate::budget::{Allowance, Budget};
use crate::demand::Demand;
use crate::market::{Part, Split};
use crate::newton::{again, is_nearer, newton};
use crate::outcome::{Clearing, Obstacle, Reason, Report, Spending, Trade};
use crate::pool::PoolTrade;
use crate::quality::unrealized_utility_ratio;
use crate::rate::approx;
use crate::search::{ATTEMPTS, Found, MOVES, PartView, Target, dearer};
use crate::start::{mended, start};
use crate::supply::Supply;
use crate::tatonnement::tatonnement;

/// The version of the rules that determine the result of a clearing. It is incremented with every change that gives
/// some book other prices or amounts. Nodes that must agree on clearings must have the same version.
pub const RULES: u32 = 4;

/// A book prepared for clearing: checked, summed up, and split into parts that trade.
pub struct Market<'a> {
    book: &'a Book<'a>,
    supply: Supply<'a>,
    split: Split,
}

/// Prices of a whole book.
#[derive(Clone, Debug)]
pub struct Prices {
    /// A valuation for every asset.
    pub valuations: Vec<Price>,
    /// Newton steps or Tâtonnement rounds, over all parts of the market.
    pub iterations: u32,
    /// Evaluations of demand, over all parts of the market.
    pub demand_queries: u32,
    /// See [`Report::imbalance`].
    pub imbalance: f64,
    /// See [`Spending::price_looks`].
    pub looks: u64,
    /// The parts of the market for which the solver did not meet its stopping condition, and why. The amount step
    /// decides on fullness.
    pub unsolved: Vec<Obstacle>,
}

/// Clears `book`: prices, then amounts. `last` are the valuations of the previous batch, if there was one.
///
/// Runs on the current rayon pool; the result is the same for any number of threads.
///
/// # Errors
/// [`InputError`] if the book or the parameters break a rule; every valid book has a clearing.
pub fn clear(book: &Book, params: &Params, last: Option<&[Price]>) -> Result<Clearing, InputError> {
    params.check()?;
    // Sums of supply by limit price (appendix G), and the parts that can be solved alone (appendix E).
    let market = Market::new(book)?;
    // Prices, then amounts, then orders for exact amounts.
    market.clear(params, last)
}

impl<'a> Market<'a> {
    /// Prepares `book`; linear in the number of offers.
    ///
    /// # Errors
    /// [`InputError`] if the book breaks a rule.
    pub fn new(book: &'a Book<'a>) -> Result<Market<'a>, InputError> {
        book.check()?;
        Ok(Market { book, supply: Supply::new(book), split: Split::new(book) })
    }

    /// Clears the book, as [`clear`] does.
    ///
    /// # Errors
    /// [`InputError`] if the parameters break a rule or `last` does not contain one valuation per asset.
    pub fn clear(&self, params: &Params, last: Option<&[Price]>) -> Result<Clearing, InputError> {
        // Prices at which supply meets demand, for each part of the market on its own (§5, appendix C).
        let mut prices = self.prices(params, last)?;
        // At those prices, the most that all offers can trade, with the lower bounds if possible (appendix D).
        let (mut amounts, lack) = self.amounts_and_lack(params, &prices.valuations);
        // If whole units cannot follow the prices, other prices nearby may work.
        if !amounts.full && params.solver == Solver::Newton {
            self.clear_groups_again(params, &mut prices, &mut amounts, &lack);
        }
        // Orders for exact amounts do not influence prices; they take what fits in addition to the offers (§8).
        if amounts.full && !self.book.buys.is_empty() {
            self.fill_orders(params, &prices.valuations, &mut amounts);
        }
        // What each pair sells, and the quality of the clearing (§6.2). Fills follow by one rule, see `fills`.
        Ok(self.conclude(params, prices, amounts))
    }

    /// Computes prices only.
    ///
    /// # Errors
    /// [`InputError`] if the parameters break a rule or `last` does not contain one valuation per asset.
    pub fn prices(&self, params: &Params, last: Option<&[Price]>) -> Result<Prices, InputError> {
        params.check()?;
        last.map_or(Ok(()), |last| self.check_length(last))?;
        Ok(self.attempt(params, last, 0))
    }

    /// Computes the amounts at any `valuations`: they conserve every asset and respect every limit price.
    ///
    /// # Errors
    /// [`InputError`] if the parameters break a rule or there is not one valuation per asset.
    pub fn amounts(&self, params: &Params, valuations: &[Price]) -> Result<Amounts, InputError> {
        params.check()?;
        self.check_length(valuations)?;
        Ok(self.amounts_and_lack(params, valuations).0)
    }

    /// Combines prices and amounts into a clearing.
    pub fn conclude(&self, params: &Params, prices: Prices, amounts: Amounts) -> Clearing {
        let Prices { valuations, iterations, demand_queries, imbalance, looks, unsolved } = prices;
        let ratio = unrealized_utility_ratio(self.book, &self.supply, &valuations, &amounts.sold);
        let report = Report {
            solver: params.solver,
            iterations,
            demand_queries,
            imbalance,
            unrealized_utility_ratio: ratio,
            spending: Spending { price_looks: looks, ..amounts.spending },
            obstacles: explained(amounts.obstacles, &unsolved, self.book.assets),
        };
        let trades = self.book.pairs.iter().zip(amounts.sold).filter(|(_, sold)| *sold > 0);
        let trades = trades.map(|(pair, sold)| Trade { sell: pair.sell, buy: pair.buy, sold });
        let (trades, pools, buys) = (trades.collect(), amounts.pools, amounts.buys);
        Clearing { trades, pools, buys, valuations, full: amounts.full, report }
    }

    /// Prices of all parts, by one of [`ATTEMPTS`].
    fn attempt(&self, params: &Params, last: Option<&[Price]>, number: usize) -> Prices {
        let target = Target::new(params, number);
        let parts = &self.split.parts;
        let found: Vec<Found> = parts.par_iter().map(|part| self.price(part, params, target, last)).collect();
        let prices: Vec<&[f64]> = found.iter().map(|found| &found.prices[..]).collect();
        let unsolved = parts.iter().zip(&found).filter_map(|(part, found)| {
            let assets = || part.assets.iter().map(|asset| AssetId(*asset)).collect();
            found.unsolved.map(|reason| Obstacle { reason, assets: assets() })
        });
        Prices {
            valuations: self.split.join(&prices, last),
            iterations: found.iter().map(|found| found.iterations).sum(),
            demand_queries: found.iter().map(|found| found.queries).sum(),
            imbalance: found.iter().map(|found| found.imbalance).fold(0.0, f64::max),
            looks: found.iter().map(|found| found.looks).sum(),
            unsolved: unsolved.collect(),
        }
    }

    /// Prices of one part.
    fn price(&self, part: &Part, params: &Params, target: Target, last: Option<&[Price]>) -> Found {
        let last = last.map(|last| part.of_part(last).into_iter().map(approx).collect::<Vec<f64>>());
        let view = PartView { book: self.book, supply: &self.supply, params, part };
        match params.solver {
            Solver::Newton => {
                let mut demand = Demand::new(self.book, part, &self.supply);
                let warm = last.as_ref().and_then(|last| again(target, &mut demand, params, last));
                if let Some(found) = warm {
                    return found;
                }
                let start = start(&demand);
                let mended = last.as_ref().and_then(|last| mended(last, &start));
                if let Some(found) = mended.as_ref().and_then(|mended| again(target, &mut demand, params, mended)) {
                    return found;
                }
                let mut nearest = start;
                for other in [mended, last].into_iter().flatten() {
                    if is_nearer(target, &mut demand, &other, &nearest) {
                        nearest = other;
                    }
                }
                newton(view, target, &mut demand, nearest)
            }
            Solver::Tatonnement => tatonnement(view, target, last.unwrap_or_else(|| vec![1.0; part.assets.len()])),
        }
    }

    /// Number of offers of `part`.
    fn offers_of(&self, part: &Part) -> usize {
        part.pairs.iter().filter_map(|pair| self.book.pairs.get(pair.index as usize)).map(|pair| pair.len()).sum()
    }

    fn amounts_and_lack(&self, params: &Params, valuations: &[Price]) -> (Amounts, Lack) {
        amounts(self.book, &self.supply, params, valuations, &self.split.links)
    }

    /// Clears each group with a shortage once more, alone, and takes over full results.
    fn clear_groups_again(&self, params: &Params, prices: &mut Prices, amounts: &mut Amounts, lack: &Lack) {
        let short = amounts.obstacles.iter().map(|obstacle| obstacle.assets[0]);
        let groups = self.split.groups_of(self.book, short);
        let again = |group: &Part| Again::run(self.book, params, group, prices, lack);
        let again: Vec<Again> = groups.par_iter().map(again).collect();
        for (group, again) in groups.iter().zip(again) {
            prices.iterations += again.iterations;
            prices.demand_queries += again.demand_queries;
            prices.looks += again.spending.price_looks;
            amounts.spending = amounts.spending.plus(again.spending);
            if again.is_cut_short && again.found.is_none() {
                let own = amounts.obstacles.iter_mut().filter(|obstacle| group.has(obstacle.assets[0]));
                own.filter(|obstacle| obstacle.reason == Reason::Units).for_each(|own| own.reason = Reason::Prices);
            }
            if let Some((valuations, full)) = again.found {
                group.assets.iter().zip(valuations).for_each(|(asset, own)| prices.valuations[*asset as usize] = own);
                self.replace(amounts, group, &again.links, full);
            }
        }
        amounts.full = amounts.obstacles.is_empty();
    }

    /// Replaces the amounts of a group, whose links are `links`, by full ones.
    fn replace(&self, amounts: &mut Amounts, group: &Part, links: &[usize], full: Amounts) {
        let (pairs, sides) = links.split_at(full.sold.len());
        pairs.iter().zip(full.sold).for_each(|(link, sold)| amounts.sold[*link] = sold);
        amounts.pools.retain(|trade| !group.has(trade.sell));
        amounts.pools.extend(full.pools.into_iter().map(|trade| {
            let side = sides[2 * trade.pool as usize] - self.book.pairs.len();
            let [sell, buy] = [trade.sell, trade.buy].map(|place| AssetId(group.assets[place.0 as usize]));
            PoolTrade { pool: (side / 2) as u32, sell, buy, ..trade }
        }));
        amounts.pools.sort_by_key(|trade| trade.pool);
        amounts.obstacles.retain(|obstacle| !group.has(obstacle.assets[0]));
    }

    /// Fills buy orders, as long as amounts stay full.
    fn fill_orders(&self, params: &Params, valuations: &[Price], amounts: &mut Amounts) {
        let Market { book, supply, split } = self;
        let with = with_orders(book, supply, params, valuations, &split.links, |order| {
            split.is_within((order.sell, order.buy))
        });
        if let Some(with) = with {
            *amounts = Amounts { spending: amounts.spending.plus(with.spending), ..with };
        }
    }

    fn check_length(&self, valuations: &[Price]) -> Result<(), InputError> {
        let (given, assets) = (valuations.len(), self.book.assets);
        if given == assets as usize { Ok(()) } else { Err(InputError::Last { given, assets }) }
    }
}

/// A group with a shortage, cleared once more.
///
/// When a book is small or its units are large, prices may balance supply and demand although no whole units do: then
/// slightly different prices may work. Short assets are made dearer in proportion to their shortage, a few times; and
/// prices are sought at which offers are deeper in the band from μ to ε, so that more amounts can be given in part.
struct Again {
    /// The valuations of the group, and its amounts, if they are full.
    found: Option<(Vec<Price>, Amounts)>,
    /// For each link of the group, the link of the book.
    links: Vec<usize>,
    /// Whether a budget ended before everything was tried that might have helped.
    is_cut_short: bool,
    iterations: u32,
    demand_queries: u32,
    spending: Spending,
}

impl Again {
    fn run(book: &Book, params: &Params, group: &Part, before: &Prices, lack: &Lack) -> Again {
        let (own, links) = group.alone(book);
        let market = Market::new(&own).expect("part of a proper book");
        let size = (2 * links.len() + group.assets.len() + own.offers() / 8) as u64;
        let mut allowance = Allowance::new(u64::from(params.budget.amounts) * size);
        // All further prices together may cost about as much as the first: each half as much, and none begins once
        // that is spent.
        let budget = Budget { prices: params.budget.prices / 2, ..params.budget };
        let looks = |part: &Part| budget.price_looks(part.assets.len(), market.offers_of(part));
        let mut price_allowance = Allowance::new(market.split.parts.iter().map(looks).sum());
        let spending = Spending::default();
        let mut again = Again { found: None, links, is_cut_short: false, iterations: 0, demand_queries: 0, spending };
        let is_solved = !before.unsolved.iter().any(|part| group.has(part.assets[0]));
        let (mut valuations, mut lack) = (group.of_part(&before.valuations), group.of_part(lack));
        for number in 0..if is_solved { ATTEMPTS.len() } else { 1 } {
            if number > 0 {
                if price_allowance.is_spent() {
                    again.is_cut_short = true;
                    return again;
                }
                let prices = market.attempt(&Params { budget, ..*params }, Some(&valuations), number);
                price_allowance.spend(prices.looks);
                again.iterations += prices.iterations;
                again.demand_queries += prices.demand_queries;
                again.spending.price_looks += prices.looks;
                if !prices.unsolved.is_empty() {
                    again.is_cut_short = true;
                    continue;
                }
                valuations = prices.valuations;
                if again.try_at(&market, params, &valuations, &mut lack, &mut allowance) {
                    return again;
                }
            }
            let mut near = valuations.clone();
            for _ in 0..MOVES {
                if allowance.is_spent() {
                    again.is_cut_short = true;
                    return again;
                }
                near = dearer(params, &near, &lack);
                if again.try_at(&market, params, &near, &mut lack, &mut allowance) {
                    return again;
                }
            }
        }
        again
    }

    /// Computes amounts at `valuations`; keeps them if they are full, otherwise records the lack.
    fn try_at(
        &mut self,
        market: &Market,
        params: &Params,
        valuations: &[Price],
        lack: &mut Lack,
        allowance: &mut Allowance,
    ) -> bool {
        let found = full_amounts(market.book, &market.supply, params, valuations, &market.split.links);
        let spending = match &found {
            Ok(amounts) => amounts.spending,
            Err((_, spending)) => *spending,
        };
        allowance.spend(spending.amount_looks + prepared(market.book));
        self.spending = self.spending.plus(spending);
        match found {
            Ok(amounts) => self.found = Some((valuations.to_vec(), amounts)),
            Err((still, _)) => *lack = still,
        }
        self.found.is_some()
    }
}

/// The obstacles of the amount step, with the reason of the price computation where prices of their assets were
/// unsolved.
fn explained(mut obstacles: Vec<Obstacle>, unsolved: &[Obstacle], assets: u32) -> Vec<Obstacle> {
    if obstacles.is_empty() || unsolved.is_empty() {
        return obstacles;
    }
    let mut reason_of: Vec<Option<Reason>> = vec![None; assets as usize];
    for part in unsolved {
        part.assets.iter().for_each(|asset| reason_of[asset.0 as usize] = Some(part.reason));
    }
    for obstacle in obstacles.iter_mut().filter(|obstacle| obstacle.reason != Reason::Amounts) {
        let reason = obstacle.assets.iter().find_map(|asset| reason_of[asset.0 as usize]);
        obstacle.reason = reason.unwrap_or(obstacle.reason);
    }
    obstacles
}
