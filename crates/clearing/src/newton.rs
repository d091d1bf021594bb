//! Prices by a semismooth Newton method on their logarithms, with continuation in μ.
//!
//! The demand of a part has gross substitutes: a dearer asset is sold more and bought less, and the reverse holds for
//! the others. So the matrix of its slopes is a singular M-matrix, whose one free direction is the scale of prices.
//! With one price fixed it needs no pivoting. A step is capped, and halved while the sum of squared relative imbalances
//! does not fall. Starting from a wide band, in which demand is smooth, μ is divided by 4 down to the required value. A
//! book with many offers for every asset needs no wide band, unless its initial prices turn out to be far from balance:
//! offers that rest far from any price do not help.
//!
//! An asset with hardly any offers has a demand of steps and plateaus, on which Newton's method stalls. But at fixed
//! prices of the others its balance never falls as its own price rises. So where the steps stall, every unbalanced
//! asset is balanced on its own by bisection, and the steps continue from there. If that fails too, it is the turn of
//! the interior-point method.
//!
//! A balance of smoothed demand fills about half of what is offered within the band. Where a book has many offers for
//! each asset, the search balances a narrower band than required: the amount step has all of the required one
//! to compensate within, and less is left untraded.
//!
//! If there are earlier prices, demand is evaluated at them first: if no asset is far out of balance, a few steps
//! from them suffice. If that fails, prices that the book contradicts are replaced by the book's own, and the same is
//! tried again. So one asset whose price was driven to the end of the range does not slow down the others. If that
//! fails too, the search begins from these prices, if they are nearer to balance than the book's own; and then, as if
//! there were no others, at the book's own.
//!
//! The search ends when commission covers every shortage of the smoothed demand, or when the imbalance is a small
//! part of what need not trade, so that the amount step can compensate for it. It ends without a solution when its
//! budget is used up, or where steps and bisection stall.

use crate::band::Band;
use crate::demand::{Demand, Flows};
use crate::float::exp_all;
use crate::outcome::Reason;
use crate::range::{LEAST, MOST, bound, is_at_end};
use crate::search::{Found, Target};
use crate::system::System;

/// The widest bands, with which continuation begins: the second, if initial prices are far from balance.
const WIDEST: [f64; 2] = [0.0075, 0.03];
/// How often a step is halved before it is given up.
const HALVINGS: u32 = 8;
/// How often assets are balanced one by one at one μ.
const SWEEPS: u32 = 6;

/// Newton steps at one μ before it counts as stalled.
const STEPS: u32 = 30;
/// A step that leaves more than this part of the merit is slow; this many slow steps in a row count as stalled.
const SLOW: f64 = 0.95;
const MOST_SLOW: u32 = 4;
/// How closely a level before the last is solved.
const LOOSE: f64 = 0.05;

/// A merit above this is far from balance: books that trade begin at a tenth of it or less.
const FAR: f64 = 2.0;

/// The initial band: books in which every asset has many offers need no continuation.
fn widest(demand: &Demand) -> f64 {
    match demand.fewest_offers() {
        ..250 => WIDEST[0],
        250..1000 => 0.002,
        _ => 0.0,
    }
}

/// The task itself, or that of a narrower band if there are enough offers for it.
fn narrowed(demand: &Demand, target: Target) -> Target {
    /// Offers for each asset, on average.
    const MANY: usize = 1_000;
    if demand.offers() < MANY * demand.part.assets.len() { target } else { target.narrowed() }
}

/// The relative shortage that the commission covers, except for what rounding may need.
fn tolerance(target: Target) -> f64 {
    (0.5 * target.epsilon).max(1e-7)
}

/// Solves for prices from `start`.
pub(crate) fn newton(target: Target, demand: &mut Demand, start: Vec<f64>, most: u64) -> Found {
    let (first, narrow) = (widest(demand), narrowed(demand, target));
    let mut search = Search::new(demand, start, most);
    let solved = search.continuation(narrow, first);
    search.finish(solved)
}

/// Solves for prices from those of the previous batch, if they are near.
pub(crate) fn again(target: Target, demand: &mut Demand, last: &[f64], most: u64) -> Option<Found> {
    /// Assets more unbalanced than this are not near.
    const NEAR: f64 = 0.3;
    /// Maximum number of steps.
    const FEW: u32 = 6;
    let target = narrowed(demand, target);
    let mut search = Search::new(demand, last.to_vec(), most);
    let band = target.band(target.mu);
    search.slopes(band);
    if search.flows.largest() > NEAR {
        return None;
    }
    let cap = 2.0 * target.mu.max(0.02);
    for _ in 0..FEW {
        if search.balanced(tolerance(target)) {
            return Some(search.finish(true));
        }
        if !search.step(band, cap) {
            return None;
        }
    }
    None
}

/// Whether `last` is nearer to balance than `start`, with the wide band.
pub(crate) fn is_nearer(target: Target, demand: &mut Demand, last: &[f64], start: &[f64]) -> bool {
    let band = target.band(WIDEST[1].max(target.mu));
    let mut flows = Flows::default();
    let mut merit = |prices: &[f64]| {
        demand.flows(prices, band, &mut flows);
        flows.merit()
    };
    merit(last) < merit(start)
}

struct Search<'a, 'b> {
    demand: &'a mut Demand<'b>,
    prices: Vec<f64>,
    flows: Flows,
    system: System,
    trial: Vec<f64>,
    trial_flows: Flows,
    steps: u32,
    /// Looks spent on linear systems, and the limit of all looks.
    other_looks: u64,
    most_looks: u64,
    /// The pairs of every asset, computed on first use.
    pairs: Vec<Vec<u32>>,
    /// The band at which demand at the current prices has just been evaluated.
    known: Option<Band>,
}

impl<'a, 'b> Search<'a, 'b> {
    fn new(demand: &'a mut Demand<'b>, prices: Vec<f64>, most_looks: u64) -> Search<'a, 'b> {
        let system = System::new(demand.part);
        let (flows, trial_flows, trial) = (Flows::default(), Flows::default(), prices.clone());
        Search {
            demand,
            prices,
            flows,
            system,
            trial,
            trial_flows,
            steps: 0,
            other_looks: 0,
            most_looks,
            pairs: vec![],
            known: None,
        }
    }

    fn continuation(&mut self, target: Target, mut widest: f64) -> bool {
        if widest < WIDEST[1] && self.is_far(target.band(widest.max(target.mu))) {
            widest = WIDEST[1];
        }
        let mut mu = widest;
        while mu > target.mu && !self.is_spent() {
            self.settle(target.band(mu), mu, LOOSE);
            mu /= 4.0;
        }
        self.settle(target.band(target.mu), target.mu, tolerance(target))
    }

    /// Whether prices are far from balance; the evaluation is reused by the first step, if that has the same band.
    fn is_far(&mut self, band: Band) -> bool {
        self.slopes(band);
        self.known = Some(band);
        self.flows.merit() > FAR
    }

    /// Newton steps at one band; where they stall, unbalanced assets are balanced one by one.
    fn settle(&mut self, band: Band, mu: f64, tolerance: f64) -> bool {
        for _ in 0..SWEEPS {
            if self.level(band, mu, tolerance) {
                return true;
            }
            if self.is_spent() {
                return false;
            }
            self.sweep(band, tolerance);
        }
        self.level(band, mu, tolerance)
    }

    /// Looks so far.
    fn looks(&self) -> u64 {
        self.demand.looks + self.other_looks
    }

    /// Whether the search has used up its budget.
    fn is_spent(&self) -> bool {
        self.looks() >= self.most_looks
    }

    /// Balances on its own every asset that is out of balance by more than `tolerance`, at fixed prices of the
    /// others.
    fn sweep(&mut self, band: Band, tolerance: f64) {
        if self.pairs.is_empty() {
            self.pairs = vec![vec![]; self.prices.len()];
            for (at, pair) in self.demand.part.pairs.iter().enumerate() {
                self.pairs[pair.sell as usize].push(at as u32);
                self.pairs[pair.buy as usize].push(at as u32);
            }
        }
        for asset in 0..self.prices.len() {
            if self.is_spent() {
                return;
            }
            self.balance(asset, band, tolerance);
        }
    }

    /// Finds the price at which `asset` is in balance, at fixed prices of the others.
    fn balance(&mut self, asset: usize, band: Band, tolerance: f64) {
        let pairs = &self.pairs[asset];
        let mut at = |price: f64| self.demand.imbalance_at(asset, price, &self.prices, band, pairs);
        let mut here = self.prices[asset];
        let first = at(here);
        if first.abs() <= tolerance {
            return;
        }
        // The price falls in a surplus and rises in a shortage, with growing steps until the sign changes.
        let mut beyond = here;
        let mut step = 1e-5;
        loop {
            beyond *= if first > 0.0 { 1.0 / (1.0 + step) } else { 1.0 + step };
            beyond = beyond.clamp(LEAST, MOST);
            let now = at(beyond);
            if now.abs() <= tolerance || beyond == LEAST || beyond == MOST {
                self.prices[asset] = beyond;
                return;
            }
            if (now > 0.0) != (first > 0.0) {
                break;
            }
            if step > 1e6 {
                return;
            }
            here = beyond;
            step *= 2.0;
        }
        for _ in 0..60 {
            let middle = here + 0.5 * (beyond - here);
            let now = at(middle);
            if (now > 0.0) == (first > 0.0) {
                here = middle;
            } else {
                beyond = middle;
            }
            if now.abs() <= tolerance {
                break;
            }
        }
        self.prices[asset] = here + 0.5 * (beyond - here);
    }

    fn slopes(&mut self, band: Band) {
        self.demand.flows(&self.prices, band, &mut self.flows);
        self.demand.derivatives(&mut self.system);
    }

    /// Newton steps at one band until no asset is short by more than `tolerance`.
    fn level(&mut self, band: Band, mu: f64, tolerance: f64) -> bool {
        let cap = 2.0 * mu.max(0.02);
        if self.known.take() != Some(band) {
            self.slopes(band);
        }
        let mut slow = 0;
        for _ in 0..STEPS {
            if self.balanced(tolerance) {
                return true;
            }
            let before = self.flows.merit();
            if !self.step(band, cap) {
                return false;
            }
            slow = if self.flows.merit() > SLOW * before { slow + 1 } else { 0 };
            if slow == MOST_SLOW {
                return false;
            }
        }
        self.balanced(tolerance)
    }

    /// Whether no asset is short by more than `tolerance`, or, at the last level, whether the amount step will
    /// compensate for it.
    fn balanced(&self, tolerance: f64) -> bool {
        self.flows.shortage() <= tolerance || tolerance < LOOSE && self.flows.is_covered()
    }

    /// One damped step; false if none improves the merit, or the direction is not all finite.
    fn step(&mut self, band: Band, cap: f64) -> bool {
        let Some(direction) = self.direction() else { return false };
        let merit = self.flows.merit();
        let mut length = 1.0;
        self.steps += 1;
        for _ in 0..HALVINGS {
            if self.is_spent() {
                return false;
            }
            self.trial.iter_mut().zip(&direction).for_each(|(trial, d)| *trial = (length * d).clamp(-cap, cap));
            exp_all(&mut self.trial);
            self.trial.iter_mut().zip(&self.prices).for_each(|(trial, price)| *trial *= price);
            bound(&mut self.trial);
            self.demand.flows(&self.trial, band, &mut self.trial_flows);
            if self.trial_flows.merit() < merit {
                // Only an accepted step needs the derivatives at its end.
                self.demand.derivatives(&mut self.system);
                std::mem::swap(&mut self.trial, &mut self.prices);
                std::mem::swap(&mut self.trial_flows, &mut self.flows);
                return true;
            }
            length *= 0.5;
        }
        false
    }

    /// The Newton direction, if it is finite; the asset that trades most keeps its price.
    fn direction(&mut self) -> Option<Vec<f64>> {
        let n = self.prices.len();
        let volume = |asset: usize| self.flows.sold[asset] + self.flows.bought[asset];
        let fixed = (1..n).fold(0, |best, asset| if volume(asset) > volume(best) { asset } else { best });
        let mut direction: Vec<f64> = (0..n).map(|a| self.flows.bought[a] - self.flows.sold[a]).collect();
        let is_finite = self.system.solve(&mut direction, fixed);
        self.other_looks += self.system.spent();
        is_finite.then_some(direction)
    }

    fn finish(self, solved: bool) -> Found {
        let reason = if is_at_end(&self.prices) { Reason::Range } else { Reason::Prices };
        Found {
            imbalance: self.flows.largest(),
            looks: self.looks(),
            prices: self.prices,
            iterations: self.steps,
            queries: self.demand.queries,
            unsolved: (!solved).then_some(reason),
            is_interior: false,
        }
    }
}
