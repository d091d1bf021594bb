//! A complete clearing, from book to trades, and its single stages. See `prices` for the methods that find prices.

use primitives::Price;

use crate::again::clear_again;
use crate::amounts::{Amounts, amounts, with_orders};
use crate::book::{Book, InputError, Params, Solver};
use crate::budget::Spending;
use crate::outcome::{Clearing, Obstacle, Reason, Report, Trade};
use crate::prices::{Market, Prices};
use crate::quality::unrealized_utility_ratio;
use crate::units::seek_units;

/// The version of the rules that determine the result of a clearing. It is incremented with every change that gives
/// some book other prices or amounts. Nodes that must agree on clearings must have the same version.
pub const RULES: u32 = 10;

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

impl Market<'_> {
    /// Clears the book, as [`clear`] does.
    ///
    /// # Errors
    /// [`InputError`] if the parameters break a rule or `last` does not contain one valuation per asset.
    pub fn clear(&self, params: &Params, last: Option<&[Price]>) -> Result<Clearing, InputError> {
        params.check()?;
        last.map_or(Ok(()), |last| self.check_length(last))?;
        // Prices at which supply meets demand, for each part of the market on its own (§5, appendix C).
        let mut found = self.find(params, last);
        let mut prices = self.join(&found, last);
        // At those prices, the most that all offers can trade, with the lower bounds if possible (appendix D).
        let mut amounts = self.amounts(params, &prices.valuations)?;
        // Groups that are not full are cleared once more, part by part.
        if !amounts.full && params.solver == Solver::Newton {
            clear_again(self, params, &mut found, &mut amounts, last);
            prices = self.join(&found, last);
        }
        // Where that is in vain: other whole units, at any prices, or a proof that there are none.
        if !amounts.full && params.solver == Solver::Newton {
            seek_units(self, params, &mut prices, &mut amounts);
        }
        // Orders for exact amounts do not influence prices; they take what fits in addition to the offers (§8).
        self.fill_orders(params, &prices.valuations, &mut amounts);
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
        Ok(self.join(&self.find(params, last), last))
    }

    /// Computes the amounts at any `valuations`: they conserve every asset and respect every limit price.
    ///
    /// # Errors
    /// [`InputError`] if the parameters break a rule or there is not one valuation per asset.
    pub fn amounts(&self, params: &Params, valuations: &[Price]) -> Result<Amounts, InputError> {
        params.check()?;
        self.check_length(valuations)?;
        Ok(amounts(self.book, &self.supply, params, valuations, &self.split.links))
    }

    /// Combines prices and amounts into a clearing.
    pub fn conclude(&self, params: &Params, prices: Prices, amounts: Amounts) -> Clearing {
        let Prices { valuations, iterations, demand_queries, imbalance, looks, unsolved, interior_parts } = prices;
        let ratio = unrealized_utility_ratio(self.book, &self.supply, &valuations, &amounts.sold, &self.split.links);
        let short = self.split.lowest_of(amounts.obstacles.iter().map(|obstacle| obstacle.assets[0]));
        let report = Report {
            solver: params.solver,
            iterations,
            demand_queries,
            interior_parts,
            imbalance,
            unrealized_utility_ratio: ratio,
            spending: Spending { price_looks: looks, ..amounts.spending },
            obstacles: explained(amounts.obstacles, &unsolved, self.book.assets),
        };
        let trades = self.book.pairs.iter().zip(amounts.sold).filter(|(_, sold)| *sold > 0);
        let trades = trades.map(|(pair, sold)| Trade { sell: pair.sell, buy: pair.buy, sold });
        let (trades, pools, exacts) = (trades.collect(), amounts.pools, amounts.exacts);
        Clearing { trades, pools, exacts, valuations, full: amounts.full, short, report }
    }

    /// Fills exact orders in every group that is full, as long as it stays full.
    fn fill_orders(&self, params: &Params, valuations: &[Price], amounts: &mut Amounts) {
        let Market { book, supply, split } = self;
        let pairs = book.exacts.iter().map(|order| (order.sell, order.buy));
        let mut groups: Vec<usize> =
            pairs.filter(|pair| split.is_within(*pair)).map(|pair| split.group(pair.0)).collect();
        groups.sort_unstable();
        groups.dedup();
        let short: Vec<usize> = amounts.obstacles.iter().map(|obstacle| split.group(obstacle.assets[0])).collect();
        for group in groups.into_iter().filter(|group| !short.contains(group)) {
            let is_own = |asset| split.group(asset) == group;
            let links: Vec<usize> = split.links.iter().copied().filter(|link| is_own(book.link(*link).0)).collect();
            let with =
                with_orders(book, supply, params, valuations, &links, |order| is_own(order.sell) && is_own(order.buy));
            // Without a fill, offers keep the amounts that they have.
            if let Some(with) = with.filter(|with| !with.exacts.is_empty()) {
                amounts.replace(book, with, is_own);
            }
        }
        amounts.exacts.sort_by_key(|fill| fill.order);
    }

    fn check_length(&self, valuations: &[Price]) -> Result<(), InputError> {
        let (given, assets) = (valuations.len(), self.book.assets);
        if given == assets as usize { Ok(()) } else { Err(InputError::Last { given, assets }) }
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
    let is_open = |obstacle: &&mut Obstacle| obstacle.reason != Reason::Amounts && obstacle.proof.is_none();
    for obstacle in obstacles.iter_mut().filter(is_open) {
        let reason = obstacle.assets.iter().find_map(|asset| reason_of[asset.0 as usize]);
        obstacle.reason = reason.unwrap_or(obstacle.reason);
    }
    obstacles
}
