//! One step along the central path: predictor, corrector, and what remains of each offer after elimination.

use crate::band::Band;
use crate::book::Params;
use crate::elimination::Elimination;
use crate::float::exp_all;
use crate::interior::lots::{Lot, Lots};
use crate::market::Part;
use crate::pool::Side;
use crate::system::System;

/// The share of the way to a bound that a step may go.
pub(super) const BACK: f64 = 0.99;
/// The largest change of a logarithm of a price in one step.
pub(super) const CAP: f64 = 3.0;
/// A mean product of this counts as 0.
pub(super) const TAU_LEAST: f64 = 1e-11;
/// Products are at least this part of their target: so little that a lot passes from full to partial in a few steps.
const LIFT: f64 = 1e-7;
/// The predictor reduces τ to no less than this part.
const SIGMA_LEAST: f64 = 1e-3;

/// The system of the assets that remains: eliminated in an order of its own, or as in Newton's method where that
/// would fill too many cells.
enum Schur {
    Direct(Elimination),
    Plain(System),
}

/// The state shared by all lots.
pub(super) struct Step<'a> {
    part: &'a Part,
    sides: Vec<(usize, Side)>,
    /// The middle of the band, as a band of no width.
    middle: Band,
    system: Schur,
    pub(super) prices: Vec<f64>,
    /// Value sold and bought of each asset.
    sold: Vec<f64>,
    bought: Vec<f64>,
    /// Value offered of each asset, and for it.
    offered: Vec<f64>,
    wanted: Vec<f64>,
    /// τ: the mean product f·s⁻ or g·s⁺, relative to the lots' own.
    pub(super) mean: f64,
    /// The largest imbalance of an asset: relative to what it can trade, and to what it trades and a unit of it.
    pub(super) worst: f64,
    pub(super) off: f64,
    /// The largest product that is its own, relative to τ.
    widest: f64,
    pub(super) steps: u32,
    looks: u64,
}

impl<'a> Step<'a> {
    pub(super) fn new(part: &'a Part, sides: Vec<(usize, Side)>, params: &Params) -> Step<'a> {
        let share = 1.0 - 0.5 * (params.epsilon.to_f64() + params.mu.to_f64());
        let middle = Band { alpha: share, beta: share };
        let zero = || vec![0.0; part.assets.len()];
        let (prices, sold, bought, offered, wanted) = (zero(), zero(), zero(), zero(), zero());
        let (system, mean, worst) = (Schur::new(part), 0.0, 0.0);
        Step {
            part,
            sides,
            middle,
            system,
            prices,
            sold,
            bought,
            offered,
            wanted,
            mean,
            worst,
            steps: 0,
            off: 0.0,
            widest: 1.0,
            looks: 0,
        }
    }

    /// Puts every lot on the central path at these prices.
    pub(super) fn centre(&mut self, lots: &mut Lots, logs: &mut [f64], tau: f64) {
        crate::range::centred(logs);
        self.measure(lots, logs);
        let tradable: f64 = self.offered.iter().zip(&self.wanted).map(|(out, back)| out.min(*back)).sum();
        let scale = tradable / lots.len().max(1) as f64;
        self.widest = 1.0;
        for lot in &mut lots.all {
            let weight = scale / (lot.units * self.prices[lot.sell as usize]);
            self.widest = f64::max(self.widest, weight);
            lot.weight = weight;
            lot.centre(lot.margin(logs), tau * weight);
        }
    }

    /// Flows of value at these prices and shares, and how far they are from a solution.
    pub(super) fn measure(&mut self, lots: &Lots, logs: &[f64]) {
        self.prices.clear();
        self.prices.extend_from_slice(logs);
        exp_all(&mut self.prices);
        for sums in [&mut self.sold, &mut self.bought, &mut self.offered, &mut self.wanted] {
            sums.fill(0.0);
        }
        let mut products = 0.0;
        for lot in &lots.all {
            let (sell, buy) = (lot.sell as usize, lot.buy as usize);
            let value = lot.units * self.prices[sell];
            self.offered[sell] += value;
            self.wanted[buy] += value;
            self.sold[sell] += value * lot.filled;
            self.bought[buy] += value * lot.filled;
            products += (lot.filled * lot.below + lot.open * lot.above) / lot.weight;
        }
        self.measure_sides();
        let least = |asset: usize| f64::min(self.offered[asset], self.wanted[asset]);
        let assets = 0..self.prices.len();
        let count = lots.len().max(1) as f64;
        let off = |asset: usize| (self.sold[asset] - self.bought[asset]).abs();
        self.worst = assets.clone().map(|asset| off(asset) / least(asset)).fold(0.0, f64::max);
        let traded = |asset: usize| self.sold[asset] + self.bought[asset] + self.prices[asset];
        self.off = assets.map(|asset| off(asset) / traded(asset)).fold(0.0, f64::max);
        // Pools alone need no path.
        self.mean = if lots.len() > 0 { products / (2.0 * count) } else { self.worst };
    }

    /// Adds the sides of pools.
    fn measure_sides(&mut self) {
        for (at, side) in &self.sides {
            let (sell, buy) = self.ends(*at);
            let (sold, _) = self.side_flow(side, sell, buy);
            let most = side.most_value(self.prices[sell]);
            self.offered[sell] += most;
            self.wanted[buy] += most;
            self.sold[sell] += sold;
            self.bought[buy] += sold;
        }
    }

    fn ends(&self, at: usize) -> (usize, usize) {
        (self.part.pairs[at].sell as usize, self.part.pairs[at].buy as usize)
    }

    /// The value that a side sells, and its slope.
    fn side_flow(&self, side: &Side, sell: usize, buy: usize) -> (f64, f64) {
        let (sure, free, slope) = side.flow(self.prices[sell], self.prices[buy], self.middle);
        (sure + free, slope)
    }

    /// Whether the products are 0 for all purposes.
    pub(super) fn is_at_end(&self) -> bool {
        self.mean * self.widest < TAU_LEAST
    }

    /// The looks of one step.
    pub(super) fn spent(&self) -> u64 {
        self.looks
    }

    /// Goes one step; false if there is no finite direction.
    pub(super) fn advance(&mut self, lots: &mut Lots, logs: &mut [f64]) -> bool {
        self.steps += 1;
        self.looks = 0;
        lots.all.iter_mut().for_each(|lot| lot.second = [0.0; 3]);
        self.prepare(lots);
        let Some(change) = self.direction(lots, logs, 0.0) else { return false };
        let length = longest(lots, &change, 1.0);
        let target = self.target(lots, length);
        self.note_second_order(lots, &change, length);
        if matches!(self.system, Schur::Plain(_)) {
            self.prepare(lots);
        }
        let Some(change) = self.direction(lots, logs, target) else { return false };
        let length = longest(lots, &change, BACK);
        logs.iter_mut().zip(&change).for_each(|(log, change)| *log += length * change);
        for lot in &mut lots.all {
            lot.go(length);
            let least = LIFT * target * lot.weight;
            (lot.above, lot.below) = (lot.above.max(least / lot.open), lot.below.max(least / lot.filled));
        }
        true
    }

    /// Mehrotra's target for the products: the cube of what the predictor leaves of them.
    fn target(&self, lots: &Lots, length: f64) -> f64 {
        let after = |lot: &Lot| {
            let below = (lot.filled + length * lot.d_filled) * (lot.below + length * lot.d_below);
            let above = (lot.open - length * lot.d_filled) * (lot.above + length * lot.d_above);
            (below + above) / lot.weight
        };
        if lots.len() == 0 {
            return 0.0;
        }
        let left = lots.all.iter().map(after).sum::<f64>() / (2.0 * lots.len() as f64) / self.mean;
        // While an asset is far from conserved, the path does not get narrower.
        let least = match self.off {
            ..0.1 => SIGMA_LEAST,
            0.1..0.3 => 0.3,
            _ => 1.0,
        };
        (left * left * left).clamp(least, 1.0) * self.mean
    }

    /// Notes what the predictor neglects, for its length.
    fn note_second_order(&self, lots: &mut Lots, change: &[f64], length: f64) {
        let square = length * length;
        for lot in &mut lots.all {
            let d = change[lot.sell as usize];
            let value = lot.d_filled * d + 0.5 * lot.filled * d * d;
            lot.second = [-lot.d_filled * lot.d_above, lot.d_filled * lot.d_below, value].map(|term| square * term);
        }
    }

    /// Sets up the system of the assets: every lot eliminated.
    fn prepare(&mut self, lots: &mut Lots) {
        self.system.clear();
        for lot in &mut lots.all {
            lot.slope = 1.0 / (lot.above / lot.open + lot.below / lot.filled);
            let (sell, buy) = (lot.sell as usize, lot.buy as usize);
            let value = lot.units * self.prices[sell];
            self.system.add(lot.pair as usize, sell, buy, value * (lot.filled + lot.slope), value * lot.slope);
        }
        for (at, side) in &self.sides {
            let (sell, buy) = self.ends(*at);
            let (sold, slope) = self.side_flow(side, sell, buy);
            self.system.add(*at, sell, buy, sold + slope, slope);
        }
        self.system.factor();
        self.looks += self.system.spent();
    }

    /// The changes of the logarithms of prices, and of every lot, towards products of `target`.
    fn direction(&mut self, lots: &mut Lots, logs: &[f64], target: f64) -> Option<Vec<f64>> {
        let mut right: Vec<f64> = self.bought.iter().zip(&self.sold).map(|(bought, sold)| bought - sold).collect();
        for lot in &mut lots.all {
            let value = lot.units * self.prices[lot.sell as usize];
            lot.d_filled = lot.at_unchanged_prices(logs, target);
            let flow = value * (lot.d_filled + lot.second[2]);
            right[lot.sell as usize] -= flow;
            right[lot.buy as usize] += flow;
        }
        let volume = |asset: usize| self.sold[asset] + self.bought[asset];
        let fixed = (1..right.len()).fold(0, |best, asset| if volume(asset) > volume(best) { asset } else { best });
        let is_finite = self.system.solve(&mut right, fixed);
        self.looks += 2 * lots.len() as u64;
        for lot in &mut lots.all {
            lot.complete(right[lot.sell as usize] - right[lot.buy as usize], target);
        }
        is_finite.then_some(right)
    }
}

impl Schur {
    fn new(part: &Part) -> Schur {
        let pairs: Vec<(u32, u32)> = part.pairs.iter().map(|pair| (pair.sell, pair.buy)).collect();
        let direct = Elimination::new(part.assets.len(), &pairs);
        direct.map_or_else(|| Schur::Plain(System::new(part)), Schur::Direct)
    }

    fn clear(&mut self) {
        match self {
            Schur::Direct(system) => system.clear(),
            Schur::Plain(system) => system.clear(),
        }
    }

    fn add(&mut self, pair: usize, sell: usize, buy: usize, out: f64, back: f64) {
        match self {
            Schur::Direct(system) => system.add(pair, sell, buy, out, back),
            Schur::Plain(system) => system.add(pair, sell, buy, out, back),
        }
    }

    /// Prepares solutions for the flows added since the last one.
    fn factor(&mut self) {
        if let Schur::Direct(system) = self {
            system.factor();
        }
    }

    /// Solves for `right`; the price of `fixed`, or of an asset of the system's choice, stays. False if the solution is
    /// not finite.
    fn solve(&mut self, right: &mut [f64], fixed: usize) -> bool {
        match self {
            Schur::Direct(system) => system.solve(right),
            Schur::Plain(system) => system.solve(right, fixed),
        }
    }

    fn spent(&self) -> u64 {
        match self {
            Schur::Direct(system) => system.spent(),
            Schur::Plain(system) => system.spent(),
        }
    }
}

impl Lot {
    /// The change of the filled share at unchanged prices.
    fn at_unchanged_prices(&self, logs: &[f64], target: f64) -> f64 {
        let (over, under) = self.aims(target);
        let residual = self.margin(logs) - (self.above - self.below);
        self.slope * (residual - (over / self.open - self.above) + (under / self.filled - self.below))
    }

    /// What the products g·s⁺ and f·s⁻ shall become, less their second-order terms.
    fn aims(&self, target: f64) -> (f64, f64) {
        let aim = target * self.weight;
        (aim - self.second[0], aim - self.second[1])
    }

    /// The changes of the lot when the logarithm of its rate changes by `change`.
    fn complete(&mut self, change: f64, target: f64) {
        let (over, under) = self.aims(target);
        self.d_filled += self.slope * change;
        self.d_above = over / self.open - self.above + self.above / self.open * self.d_filled;
        self.d_below = under / self.filled - self.below - self.below / self.filled * self.d_filled;
    }
}

/// The longest step within all bounds.
fn longest(lots: &Lots, change: &[f64], back: f64) -> f64 {
    let largest = change.iter().fold(0.0, |most: f64, change| most.max(change.abs()));
    let most = if largest > CAP { CAP / largest } else { 1.0 };
    lots.all.iter().fold(most, |length, lot| lot.longest(back, length))
}
