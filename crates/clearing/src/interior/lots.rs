//! The variables of the program: one lot for each offer near the margin, and one for each run of offers far from it.

use primitives::Amount;

use crate::effective::Runs;
use crate::float::ln;
use crate::pool::Side;
use crate::rate::approx;
use crate::search::PartView;
use crate::value::Value;

/// Adjacent offers share a lot if their limits are within this part of their distance from the rate, or within the
/// least, in logarithms of prices. Of a band that is narrow, within this part of its half.
const GRAIN: f64 = 1.0 / 8.0;
const GRAIN_LEAST: f64 = 1e-5;
const GRAIN_BAND: f64 = 0.25;

/// One variable: offers with about the same limit.
#[derive(Clone, Debug)]
pub(crate) struct Lot {
    /// Positions in the part.
    pub(super) pair: u32,
    pub(super) sell: u32,
    pub(super) buy: u32,
    /// Units offered.
    pub(super) units: f64,
    /// The logarithm of the limit, raised into the band.
    pub(super) limit: f64,
    /// The logarithm of the limit.
    base: f64,
    /// The logarithms of the least and the largest limit.
    span: (f64, f64),
    /// The shares that are filled, f, and not, g.
    pub(super) filled: f64,
    pub(super) open: f64,
    /// The sides of the margin, s⁺ and s⁻.
    pub(super) above: f64,
    pub(super) below: f64,
    /// Their changes in the next step; that of `open` is the opposite of the first.
    pub(super) d_filled: f64,
    pub(super) d_above: f64,
    pub(super) d_below: f64,
    /// What the products g·s⁺ and f·s⁻ are on the path, relative to τ.
    pub(super) weight: f64,
    /// θ: by how much the filled share grows with the logarithm of the rate.
    pub(super) slope: f64,
    /// Second-order terms of g·s⁺, of f·s⁻ and of the filled share in value.
    pub(super) second: [f64; 3],
}

/// All lots of a part.
pub(super) struct Lots {
    pub(super) all: Vec<Lot>,
    /// How much limits are raised, in logarithms, and how far that may vary.
    raise: f64,
    reach: f64,
}

impl Lots {
    /// The lots of a part at prices with logarithms `logs`.
    pub(super) fn new(view: PartView, logs: &[f64]) -> Lots {
        let (epsilon, mu) = (view.params.epsilon.to_f64(), view.params.mu.to_f64());
        let raise = -ln(1.0 - 0.5 * (epsilon + mu));
        let mut lots = Lots { all: Vec::new(), raise, reach: 0.5 * (mu - epsilon) };
        lots.fill(view, logs);
        lots
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The sides of pools in the part, and their positions among its pairs.
    pub(super) fn sides(&self, view: PartView) -> Vec<(usize, Side)> {
        let pairs = view.book.pairs.len();
        let side = |(at, index): (usize, usize)| (index >= pairs).then(|| (at, view.book.side(index)));
        view.part.pairs.iter().map(|pair| pair.index as usize).enumerate().filter_map(side).collect()
    }

    /// Adds the lots of all pairs.
    fn fill(&mut self, view: PartView, logs: &[f64]) {
        for (at, pair) in view.part.pairs.iter().enumerate() {
            let index = pair.index as usize;
            if index >= view.book.pairs.len() {
                continue;
            }
            let empty = Lot { pair: at as u32, sell: pair.sell, buy: pair.buy, ..Lot::EMPTY };
            let rate = logs[pair.sell as usize] - logs[pair.buy as usize] - self.raise;
            let mut open = Open { rate, least: GRAIN_LEAST.min(GRAIN_BAND * self.reach), sum: None };
            let runs = view.supply.curve(index).runs();
            for run in 0..runs.len() {
                self.fill_run(runs, run, &empty, &mut open);
            }
            self.all.extend(open.sum.map(|sum| sum.lot(&empty, self.raise)));
        }
    }

    /// Adds the lots of one run. The result is the same as for its offers one by one, however runs are cut.
    fn fill_run(&mut self, runs: Runs, run: usize, empty: &Lot, open: &mut Open) {
        let total = runs.total(run);
        let (first, last) = (ln(approx(total.first())), ln(approx(total.last())));
        if open.takes_all(first, last) {
            let whole = Sum { first, last, units: total.amount(), value: total.value() };
            self.all.extend(open.add(whole).map(|sum| sum.lot(empty, self.raise)));
            return;
        }
        let Some((limits, amounts)) = runs.get(run) else { return };
        for (limit, amount) in limits.iter().zip(amounts) {
            let log = ln(approx(*limit));
            let one = Sum { first: log, last: log, units: *amount, value: Value::of(&[*limit], &[*amount]) };
            self.all.extend(open.add(one).map(|sum| sum.lot(empty, self.raise)));
        }
    }

    /// Divides the lots anew around the rates at `logs`, if a rate is within a lot that is too coarse; false if none
    /// is.
    pub(super) fn split(&mut self, view: PartView, logs: &[f64]) -> bool {
        let is_coarse = |lot: &Lot| {
            let (rate, (first, last)) = (lot.margin(logs) + lot.limit - self.raise, lot.span);
            last - first > 0.5 * self.reach && rate > first - 2.0 * self.reach && rate < last + 2.0 * self.reach
        };
        let any = self.all.iter().any(is_coarse);
        if any {
            *self = Lots::new(view, logs);
        }
        any
    }

    /// The mean distance of the limits from the rates.
    pub(super) fn mean_margin(&self, logs: &[f64]) -> f64 {
        let margins = self.all.iter().map(|lot| lot.margin(logs).abs());
        margins.sum::<f64>() / self.all.len().max(1) as f64
    }

    /// Raises limits to other places in the band. The nearer to its end at μ, the more units a small fill may lose by
    /// rounding. So all limits go there first, and then every lot to a place of its own.
    pub(super) fn shift(&mut self, number: u32) {
        /// The part of half the band that is used.
        const INSIDE: f64 = 0.97;
        const FIRST: [f64; 3] = [0.8, 0.97, 0.5];
        /// The golden section: its multiples are spread evenly.
        const GOLDEN: f64 = 0.618_033_988_749_894_9;
        let all = FIRST.get(number as usize - 1);
        for (at, lot) in self.all.iter_mut().enumerate() {
            let own = (f64::from(number) * GOLDEN * (1.0 + at as f64 * GOLDEN)).fract();
            let place = all.copied().unwrap_or(INSIDE * (1.5 * own - 0.5));
            lot.limit = lot.base + self.raise + self.reach * place;
        }
    }
}

/// Adjacent offers that are added up.
#[derive(Clone, Copy)]
struct Sum {
    /// The logarithms of the least and the largest limit.
    first: f64,
    last: f64,
    /// Units offered, and units asked for.
    units: Amount,
    value: Value,
}

/// The lot of a pair that may still grow.
struct Open {
    /// The logarithm of the limit at which offers are at the margin.
    rate: f64,
    /// Limits that differ by so little are about one.
    least: f64,
    sum: Option<Sum>,
}

impl Sum {
    fn lot(self, empty: &Lot, raise: f64) -> Lot {
        let units = self.units as f64;
        let base = ln(self.value.to_f64() / units);
        Lot { units, base, limit: base + raise, span: (self.first, self.last), ..empty.clone() }
    }
}

impl Open {
    /// Whether offers with limits from `first` to `last` are about at one.
    fn is_one(&self, first: f64, last: f64) -> bool {
        let far = f64::max(first - self.rate, self.rate - last).max(0.0);
        last - first <= self.least.max(GRAIN * far)
    }

    /// Whether all offers with limits from `first` to `last` belong to the same lot.
    fn takes_all(&self, first: f64, last: f64) -> bool {
        match self.sum {
            Some(sum) if self.is_one(sum.first, first) => self.is_one(sum.first, last),
            _ => self.is_one(first, last),
        }
    }

    /// Adds offers; returns what came before if these begin a new lot.
    fn add(&mut self, next: Sum) -> Option<Sum> {
        match self.sum {
            Some(sum) if self.is_one(sum.first, next.last) => {
                let (units, value) = (sum.units + next.units, sum.value.plus(next.value));
                self.sum = Some(Sum { first: sum.first, last: next.last, units, value });
                None
            }
            before => {
                self.sum = Some(next);
                before
            }
        }
    }
}

impl Lot {
    const EMPTY: Lot = Lot {
        pair: 0,
        sell: 0,
        buy: 0,
        units: 0.0,
        limit: 0.0,
        base: 0.0,
        span: (0.0, 0.0),
        filled: 0.5,
        open: 0.5,
        above: 1.0,
        below: 1.0,
        d_filled: 0.0,
        d_above: 0.0,
        d_below: 0.0,
        weight: 1.0,
        slope: 0.0,
        second: [0.0; 3],
    };

    /// The margin s at prices with logarithms `logs`.
    pub(super) fn margin(&self, logs: &[f64]) -> f64 {
        logs[self.sell as usize] - logs[self.buy as usize] - self.limit
    }

    /// Puts the lot on the central path at `margin`: f·s⁻ = g·s⁺ = `tau`.
    pub(super) fn centre(&mut self, margin: f64, tau: f64) {
        let (far, root) = (margin.abs(), (margin * margin + 4.0 * tau * tau).sqrt());
        let (most, least) = (1.0 / (1.0 + 2.0 * tau / (root + far)), 2.0 * tau / (root + 2.0 * tau + far));
        (self.filled, self.open) = if margin >= 0.0 { (most, least) } else { (least, most) };
        (self.above, self.below) = (tau / self.open, tau / self.filled);
    }

    /// The largest part of the step, up to `most`, after which nothing falls below `1 − back` of itself.
    pub(super) fn longest(&self, back: f64, most: f64) -> f64 {
        let limit = |length: f64, value: f64, change: f64| match change < 0.0 {
            true => length.min(-back * value / change),
            false => length,
        };
        let length = limit(limit(most, self.filled, self.d_filled), self.open, -self.d_filled);
        limit(limit(length, self.above, self.d_above), self.below, self.d_below)
    }

    /// Goes so much of the step.
    pub(super) fn go(&mut self, length: f64) {
        // The smaller share keeps its precision.
        if self.filled < self.open {
            self.filled += length * self.d_filled;
            self.open = 1.0 - self.filled;
        } else {
            self.open -= length * self.d_filled;
            self.filled = 1.0 - self.open;
        }
        self.above += length * self.d_above;
        self.below += length * self.d_below;
    }
}
