//! The variables of the program: one lot for each offer near the margin, and one for each run of offers far from it.

use crate::book::Params;
use crate::effective::Runs;
use crate::float::ln;
use crate::pool::Side;
use crate::rate::approx;
use crate::search::PartView;

/// Parts of at most so many offers have one lot for each.
const FEW: usize = 4_096;
/// Lots in other parts: the window is halved until there are no more, but not below the least.
const MOST: usize = 16_384;
/// Offers with limits within this distance of the rate have lots of their own, in logarithms of prices.
const WINDOW: f64 = 0.04;
const WINDOW_LEAST: f64 = 0.0025;

/// One variable: an offer, or a run of them.
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
    /// Of a run, the logarithms of the least and the largest limit.
    span: Option<(f64, f64)>,
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
        let curves = view.part.pairs.iter().filter(|pair| (pair.index as usize) < view.book.pairs.len());
        let offers: usize = curves.map(|pair| view.supply.curve(pair.index as usize).offers()).sum();
        let mut window = if offers <= FEW { f64::INFINITY } else { WINDOW };
        lots.fill(view, logs, window);
        while lots.all.len() > MOST && window.is_finite() && window > WINDOW_LEAST {
            window *= 0.5;
            lots.fill(view, logs, window);
        }
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

    /// Replaces the lots: offers within `window` of the rates have one each.
    fn fill(&mut self, view: PartView, logs: &[f64], window: f64) {
        self.all.clear();
        for (at, pair) in view.part.pairs.iter().enumerate() {
            let index = pair.index as usize;
            if index >= view.book.pairs.len() {
                continue;
            }
            let empty = Lot { pair: at as u32, sell: pair.sell, buy: pair.buy, ..Lot::EMPTY };
            let rate = logs[pair.sell as usize] - logs[pair.buy as usize] - self.raise;
            self.fill_pair(view.supply.curve(index).runs(), &empty, (rate - window, rate + window));
        }
    }

    /// Adds the lots of one pair; offers of runs that reach between `near` have one each.
    fn fill_pair(&mut self, runs: Runs, empty: &Lot, near: (f64, f64)) {
        for index in 0..runs.len() {
            let total = runs.total(index);
            let span = (ln(approx(total.first())), ln(approx(total.last())));
            if span.1 < near.0 || span.0 > near.1 {
                let units = total.amount() as f64;
                let base = ln(total.value().to_f64() / units);
                self.all.push(Lot { units, base, limit: base + self.raise, span: Some(span), ..empty.clone() });
                continue;
            }
            let Some((limits, amounts)) = runs.get(index) else { continue };
            for (limit, amount) in limits.iter().zip(amounts) {
                let base = ln(approx(*limit));
                self.all.push(Lot { units: *amount as f64, base, limit: base + self.raise, ..empty.clone() });
            }
        }
    }

    /// Splits runs around the rates at `logs` into their offers; false if there are none.
    pub(super) fn split(&mut self, view: PartView, logs: &[f64]) -> bool {
        let near = |lot: &Lot| {
            let rate = logs[lot.sell as usize] - logs[lot.buy as usize] - self.raise;
            lot.span.is_some_and(|(first, last)| rate > first - 2.0 * self.reach && rate < last + 2.0 * self.reach)
        };
        let any = self.all.iter().any(near);
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

    /// Raises limits to other places in the band, for every lot a different one.
    pub(super) fn shift(&mut self, params: &Params, number: u32) {
        /// The part of half the band that is used.
        const INSIDE: f64 = 0.85;
        /// The golden section: multiples are spread evenly.
        const GOLDEN: f64 = 0.618_033_988_749_894_9;
        debug_assert!(params.mu > params.epsilon);
        for (at, lot) in self.all.iter_mut().enumerate() {
            let place = (f64::from(number) * GOLDEN * (1.0 + at as f64 * GOLDEN)).fract();
            lot.limit = lot.base + self.raise + self.reach * INSIDE * (2.0 * place - 1.0);
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
        span: None,
        filled: 0.5,
        open: 0.5,
        above: 1.0,
        below: 1.0,
        d_filled: 0.0,
        d_above: 0.0,
        d_below: 0.0,
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
