//! The whole of a clearing, from book to trades, and its stages one by one.

use primitives::Price;
use rayon::prelude::*;

use crate::amounts::{Amounts, amounts};
use crate::book::{Book, InputError, Params, Solver};
use crate::demand::Demand;
use crate::market::{Part, Split};
use crate::newton::{again, is_nearer, newton};
use crate::outcome::{Clearing, Obstacle, Report, Spending, Trade};
use crate::quality::unrealized_utility_ratio;
use crate::rate::approx;
use crate::search::{ATTEMPTS, Effort, Found, Scene, Target, moved};
use crate::start::start;
use crate::supply::Supply;
use crate::tatonnement::tatonnement;
use crate::walk::walk;
use crate::zones::{Case, Impossible, impossible, nearby};

/// Clears `book`: prices, then amounts. `last` are the valuations of the batch before, if there was one.
///
/// Runs on the current rayon pool; the answer is the same for any number of threads.
///
/// # Errors
/// [`InputError`] if the book or the parameters break a rule; every proper book has a clearing.
pub fn clear(book: &Book, params: &Params, last: Option<&[Price]>) -> Result<Clearing, InputError> {
    params.check()?;
    let market = Market::new(book)?;
    market.clear(params, last)
}

/// A book made ready for clearing: checked, summed up, and split into parts that trade.
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
    /// Whether the solver met its own stop test on every part. The amount step has the last word on fullness.
    pub solved: bool,
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
    /// Prices may balance supply and demand, and yet no whole units do, when a book is small or its units are large:
    /// then prices a little off may serve, and a few are tried.
    ///
    /// # Errors
    /// [`InputError`] if the parameters break a rule or `last` is not one valuation per asset.
    pub fn clear(&self, params: &Params, last: Option<&[Price]>) -> Result<Clearing, InputError> {
        params.check()?;
        last.map_or(Ok(()), |last| self.check_length(last))?;
        Ok(self.clear_among(params, last, 1))
    }

    /// The same, where so many markets share what may be spent on searches.
    fn clear_among(&self, params: &Params, last: Option<&[Price]>, among: usize) -> Clearing {
        let prices = self.attempt(params, last, None, 0);
        if params.solver == Solver::Newton && !self.split.is_one() {
            let amounts = amounts(self.book, &self.supply, params, &prices.valuations).0;
            return self.group_by_group(params, self.conclude(params, prices, amounts), last, among);
        }
        let (mut solved, mut effort) = (prices.solved, Effort::of(self.book, among));
        let mut best = self.settle(params, prices, &mut effort);
        for number in 1..ATTEMPTS.len() {
            if best.full || !solved || effort.left() == 0 {
                break;
            }
            let prices = self.attempt(params, last, Some(&best.valuations), number);
            solved = prices.solved;
            let next = self.settle(params, prices, &mut effort);
            if is_better(&next, &best) {
                best = next;
            }
        }
        if !best.full && params.solver == Solver::Newton {
            best = self.search(params, best, last, among, &mut effort);
        }
        best.report.spending = effort.spent;
        best
    }

    /// The clearing at the prices at which each group that has something short in `before` clears alone.
    fn group_by_group(&self, params: &Params, before: Clearing, last: Option<&[Price]>, among: usize) -> Clearing {
        let Some(Obstacle::Short(short)) = &before.report.obstacle else { return before };
        let groups = self.split.groups_of(self.book, short);
        let clear = |group: &Part| {
            let (book, _) = group.alone(self.book);
            let market = Market::new(&book).expect("part of a proper book");
            let last: Option<Vec<Price>> = last.map(|last| of_part(last, group));
            market.clear_among(params, last.as_deref(), among * groups.len())
        };
        let cleared: Vec<Clearing> = groups.par_iter().map(clear).collect();
        let mut valuations = before.valuations.clone();
        for (group, clearing) in groups.iter().zip(&cleared) {
            group.assets.iter().zip(&clearing.valuations).for_each(|(asset, own)| valuations[*asset as usize] = *own);
        }
        let prices: Vec<Vec<f64>> = self.split.parts.iter().map(|part| prices_of(&valuations, part)).collect();
        let mut spent = before.report.spending;
        let mut best = self.improved(params, before, &prices, last, &mut spent);
        for clearing in &cleared {
            let Report { iterations, demand_queries, spending, .. } = clearing.report;
            best.report.iterations += iterations;
            best.report.demand_queries += demand_queries;
            spent = spent.plus(spending);
        }
        best.report.spending = spent;
        best
    }

    /// The clearing at prices that a search or a walk finds for those parts that have no full amounts in `before`; `before`
    /// if it finds none for any.
    fn search(
        &self,
        params: &Params,
        before: Clearing,
        last: Option<&[Price]>,
        among: usize,
        effort: &mut Effort,
    ) -> Clearing {
        let parts = &self.split.parts;
        let mut prices: Vec<Vec<f64>> = parts.iter().map(|part| prices_of(&before.valuations, part)).collect();
        let lack = |at: usize| self.alone(params, at, |scene| scene.lack(&prices[at]));
        let lacks: Vec<_> = (0..parts.len()).into_par_iter().map(lack).collect();
        lacks.iter().for_each(|(_, spent)| effort.add(*spent));
        let lacking: Vec<usize> = (0..parts.len()).filter(|at| lacks[*at].0.is_some()).collect();
        let among = among * lacking.len();
        let look = |at: &usize| {
            self.alone(params, *at, |scene| {
                let (found, spent) = nearby(scene, &prices[*at], among);
                if found.is_some() {
                    return (found, spent);
                }
                let (found, more) = walk(scene, prices[*at].clone(), among);
                (found, spent.plus(more))
            })
        };
        let looked: Vec<_> = lacking.par_iter().map(look).collect();
        let mut has_found = false;
        for (at, (found, spent)) in lacking.into_iter().zip(looked) {
            effort.add(spent);
            has_found |= found.is_some();
            found.into_iter().for_each(|found| prices[at] = found);
        }
        if has_found { self.improved(params, before, &prices, last, &mut effort.spent) } else { before }
    }

    /// The clearing at these prices of all parts, if it is better than the one `before`.
    fn improved(
        &self,
        params: &Params,
        before: Clearing,
        prices: &[Vec<f64>],
        last: Option<&[Price]>,
        spent: &mut Spending,
    ) -> Clearing {
        let prices: Vec<&[f64]> = prices.iter().map(|prices| &prices[..]).collect();
        let valuations = self.split.join(self.book, &self.supply, &prices, last);
        let amounts = amounts(self.book, &self.supply, params, &valuations).0;
        let Report { iterations, demand_queries, imbalance, .. } = before.report;
        let prices = Prices { valuations, iterations, demand_queries, imbalance, solved: true };
        *spent = spent.plus(amounts.spending);
        let after = self.conclude(params, prices, amounts);
        if is_better(&after, &before) { after } else { before }
    }

    /// What `look` finds of the part at this place, as a market of its own.
    fn alone<T>(&self, params: &Params, at: usize, look: impl FnOnce(Scene) -> T) -> T {
        let (book, part) = self.split.parts[at].alone(self.book);
        let supply = Supply::new(&book);
        look(Scene { book: &book, supply: &supply, params, part: &part })
    }

    /// The clearing at `prices`, or at prices near them if only those have a full one.
    fn settle(&self, params: &Params, mut prices: Prices, effort: &mut Effort) -> Clearing {
        let (mut found, lack) = amounts(self.book, &self.supply, params, &prices.valuations);
        effort.add(found.spending);
        if !found.full {
            let near = moved(self.book, &self.supply, params, prices.valuations.clone(), lack, effort);
            if let Some(near) = near {
                (prices.valuations, found) = near;
            }
        }
        self.conclude(params, prices, found)
    }

    /// Computes prices only.
    ///
    /// # Errors
    /// [`InputError`] if the parameters break a rule or `last` is not one valuation per asset.
    pub fn prices(&self, params: &Params, last: Option<&[Price]>) -> Result<Prices, InputError> {
        params.check()?;
        last.map_or(Ok(()), |last| self.check_length(last))?;
        Ok(self.attempt(params, last, None, 0))
    }

    /// Prices of all parts; those of one attempt are near those of the one `before`.
    fn attempt(&self, params: &Params, last: Option<&[Price]>, before: Option<&[Price]>, attempt: usize) -> Prices {
        let target = Target::new(params, attempt);
        let price = |part| self.price(part, params, target, before.or(last));
        let found: Vec<Found> = self.split.parts.par_iter().map(price).collect();
        let prices: Vec<&[f64]> = found.iter().map(|found| &found.prices[..]).collect();
        Prices {
            valuations: self.split.join(self.book, &self.supply, &prices, last),
            iterations: found.iter().map(|found| found.iterations).sum(),
            demand_queries: found.iter().map(|found| found.queries).sum(),
            imbalance: found.iter().map(|found| found.imbalance).fold(0.0, f64::max),
            solved: found.iter().all(|found| found.solved),
        }
    }

    /// Computes the amounts at any `valuations` whatever: they conserve every asset and respect every limit price.
    ///
    /// # Errors
    /// [`InputError`] if the parameters break a rule or there is not one valuation per asset.
    pub fn amounts(&self, params: &Params, valuations: &[Price]) -> Result<Amounts, InputError> {
        params.check()?;
        self.check_length(valuations)?;
        Ok(amounts(self.book, &self.supply, params, valuations).0)
    }

    /// Tries to show that the book has no full clearing at any prices, where `clearing` is not full. `None` leaves it open.
    /// The proof may take as long as some thousand clearings of the book.
    pub fn impossible(&self, params: &Params, clearing: &Clearing) -> Option<Impossible> {
        let Obstacle::Short(short) = clearing.report.obstacle.as_ref()?;
        let Clearing { valuations, trades, .. } = clearing;
        impossible(&Case { book: self.book, params, valuations, trades, short })
    }

    /// Puts prices and amounts together.
    pub fn conclude(&self, params: &Params, prices: Prices, amounts: Amounts) -> Clearing {
        let Prices { valuations, iterations, demand_queries, imbalance, .. } = prices;
        let ratio = unrealized_utility_ratio(self.book, &self.supply, &valuations, &amounts.sold);
        let report = Report {
            solver: params.solver,
            iterations,
            demand_queries,
            imbalance,
            unrealized_utility_ratio: ratio,
            spending: amounts.spending,
            obstacle: (!amounts.full).then_some(Obstacle::Short(amounts.short)),
        };
        let trades = self.book.pairs.iter().zip(amounts.sold).filter(|(_, sold)| *sold > 0);
        let trades = trades.map(|(pair, sold)| Trade { sell: pair.sell, buy: pair.buy, sold });
        let (trades, pools, buys) = (trades.collect(), amounts.pools, amounts.buys);
        Clearing { trades, pools, buys, valuations, full: amounts.full, report }
    }

    fn check_length(&self, valuations: &[Price]) -> Result<(), InputError> {
        let (given, assets) = (valuations.len(), self.book.assets);
        if given == assets as usize { Ok(()) } else { Err(InputError::Last { given, assets }) }
    }

    /// Prices of one part.
    fn price(&self, part: &Part, params: &Params, target: Target, last: Option<&[Price]>) -> Found {
        let last = last.map(|last| prices_of(last, part));
        let scene = Scene { book: self.book, supply: &self.supply, params, part };
        match params.solver {
            Solver::Newton => {
                let mut demand = Demand::new(self.book, part, &self.supply);
                let warm = last.as_ref().and_then(|last| again(target, &mut demand, last));
                warm.unwrap_or_else(|| {
                    let start = start(&demand);
                    let near = last.filter(|last| is_nearer(target, &mut demand, last, &start));
                    newton(scene, target, &mut demand, near.unwrap_or(start))
                })
            }
            Solver::Tatonnement => tatonnement(scene, target, last.unwrap_or_else(|| vec![1.0; part.assets.len()])),
        }
    }
}

/// Those of `part`, of the valuations of all assets.
fn of_part(valuations: &[Price], part: &Part) -> Vec<Price> {
    part.assets.iter().map(|asset| valuations[*asset as usize]).collect()
}

/// The same, as the prices that solvers work with.
fn prices_of(valuations: &[Price], part: &Part) -> Vec<f64> {
    of_part(valuations, part).into_iter().map(approx).collect()
}

/// Whether fewer assets are short in `next` than in `best`, or as many and less utility is lost.
fn is_better(next: &Clearing, best: &Clearing) -> bool {
    let short = |clearing: &Clearing| match &clearing.report.obstacle {
        Some(Obstacle::Short(short)) => short.len(),
        _ => 0,
    };
    let (next, best) = ((short(next), &next.report), (short(best), &best.report));
    next.0 < best.0 || (next.0 == best.0 && next.1.unrealized_utility_ratio < best.1.unrealized_utility_ratio)
}
