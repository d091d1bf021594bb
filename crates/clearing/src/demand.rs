//! The demand of one part of the market at given prices (SPEEDEX §5.1, appendices C.2 and G).
//!
//! Offers of pair A/B with limits up to (1−μ)·r sell everything, r = p_A/p_B; from there to (1−ε)·r, where limits
//! begin to break, the share falls linearly to nothing. So the value sold is
//!
//! y = p_A·E(α r) + (β p_A·ΔE − p_B·ΔV) / (β − α),  α = 1−μ, β = 1−ε,
//!
//! where E sums amounts and V sums limit·amount up to a price, and Δ is from α r to β r. Its derivatives by the
//! logarithms of p_A and p_B are y + e and −e with e = p_B·ΔV / (β − α).

use crate::curve::{Curve, Curves, Sum};
use crate::dense::Matrix;
use crate::market::Part;

/// The window in which offers trade in part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Band {
    /// 1 − μ.
    pub(crate) alpha: f64,
    /// 1 − ε.
    pub(crate) beta: f64,
}

/// Flows of value at some prices.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flows {
    /// Value sold of each asset.
    pub(crate) sold: Vec<f64>,
    /// Value bought of each asset, before commission.
    pub(crate) bought: Vec<f64>,
    /// The part of both that comes from offers within the band, which need not trade.
    pub(crate) free: Vec<f64>,
}

impl Flows {
    /// Units sold less units bought, relative to the larger; 0 for an asset that does not trade.
    pub(crate) fn imbalance(&self, asset: usize) -> f64 {
        let (sold, bought) = (self.sold[asset], self.bought[asset]);
        let larger = sold.max(bought);
        if larger > 0.0 { (sold - bought) / larger } else { 0.0 }
    }

    /// The largest relative imbalance.
    pub(crate) fn largest(&self) -> f64 {
        (0..self.sold.len()).map(|asset| self.imbalance(asset).abs()).fold(0.0, f64::max)
    }

    /// Σ of squared relative imbalances.
    pub(crate) fn merit(&self) -> f64 {
        (0..self.sold.len()).map(|asset| self.imbalance(asset)).map(|r| r * r).sum()
    }

    /// Whether every imbalance is a small part of what need not trade, so that the amount step can surely make up for
    /// it.
    pub(crate) fn is_covered(&self) -> bool {
        const SMALL: f64 = 0.15;
        (0..self.sold.len()).all(|a| (self.sold[a] - self.bought[a]).abs() <= SMALL * self.free[a])
    }

    /// The largest share by which an asset is bought beyond what is sold of it; the commission has to cover it.
    pub(crate) fn shortage(&self) -> f64 {
        (0..self.sold.len()).map(|asset| -self.imbalance(asset)).fold(0.0, f64::max)
    }
}

/// Evaluates the demand of a part; remembers where the last searches ended.
pub(crate) struct Demand<'a> {
    pub(crate) part: &'a Part,
    curves: Vec<Curve<'a>>,
    hints: Vec<[u32; 2]>,
    /// Number of evaluations.
    pub(crate) queries: u32,
}

impl<'a> Demand<'a> {
    pub(crate) fn new(part: &'a Part, curves: &'a Curves) -> Demand<'a> {
        let curves: Vec<_> = part.pairs.iter().map(|pair| curves.curve(pair.index as usize)).collect();
        Demand { part, hints: vec![[UNKNOWN; 2]; curves.len()], curves, queries: 0 }
    }

    /// The flows at `prices`.
    pub(crate) fn flows(&mut self, prices: &[f64], band: Band, flows: &mut Flows) {
        self.each(prices, band, flows, |_, _, _, _| {});
    }

    /// The flows at `prices` and the derivative of (value sold − value bought) of each asset by the logarithm of each
    /// price. Where `window` is given, the slope of a pair is at least its secant from r·(1−window) to r·(1+window).
    pub(crate) fn slopes(
        &mut self,
        prices: &[f64],
        band: Band,
        window: Option<f64>,
        flows: &mut Flows,
        matrix: &mut Matrix,
    ) {
        let n = self.part.assets.len();
        matrix.cells.fill(0.0);
        let part = self.part;
        let curves = std::mem::take(&mut self.curves);
        let cells = &mut matrix.cells;
        let add = |at: usize, y: f64, narrow: f64, rate: f64| {
            let (a, b) = (part.pairs[at].sell as usize, part.pairs[at].buy as usize);
            let wide = window.map_or(0.0, |w| {
                let supply = |x: f64| curves[at].sums[curves[at].prices.partition_point(|price| *price <= x)].amount;
                prices[a] * (supply(rate * (1.0 + w)) - supply(rate * (1.0 - w))) as f64 / (2.0 * w)
            });
            let e = narrow.max(wide);
            cells[a * n + a] += y + e;
            cells[a * n + b] -= e;
            cells[b * n + a] -= y + e;
            cells[b * n + b] += e;
        };
        // The curves are lent to the closure and to the loop alike.
        let mut hints = std::mem::take(&mut self.hints);
        evaluate(part, &curves, &mut hints, prices, band, flows, add);
        (self.curves, self.hints) = (curves, hints);
        self.queries += 1;
    }

    fn each(&mut self, prices: &[f64], band: Band, flows: &mut Flows, add: impl FnMut(usize, f64, f64, f64)) {
        evaluate(self.part, &self.curves, &mut self.hints, prices, band, flows, add);
        self.queries += 1;
    }

    /// The relative imbalance of one `asset` when it alone has `price`; it never falls as the price rises, while the
    /// asset trades. `pairs` are those of the asset.
    pub(crate) fn imbalance_at(&mut self, asset: usize, price: f64, prices: &[f64], band: Band, pairs: &[u32]) -> f64 {
        let (mut sold, mut bought) = (0.0, 0.0);
        for at in pairs.iter().map(|at| *at as usize) {
            let (sell, buy) = (self.part.pairs[at].sell as usize, self.part.pairs[at].buy as usize);
            let value = |other: usize| if other == asset { price } else { prices[other] };
            let (must, free, _) = flow(&self.curves[at], &mut self.hints[at], value(sell), value(buy), band);
            if sell == asset {
                sold += must + free;
            } else {
                bought += must + free;
            }
        }
        let larger = f64::max(sold, bought);
        if larger > 0.0 { (sold - bought) / larger } else { 0.0 }
    }

    /// The fewest price levels that any asset has, on all its pairs.
    pub(crate) fn fewest_levels(&self) -> usize {
        let mut levels = vec![0; self.part.assets.len()];
        for (pair, curve) in self.part.pairs.iter().zip(&self.curves) {
            levels[pair.sell as usize] += curve.prices.len();
            levels[pair.buy as usize] += curve.prices.len();
        }
        levels.into_iter().min().unwrap_or(0)
    }

    /// The median limit price of every pair and the number of its price levels.
    pub(crate) fn medians(&self) -> impl Iterator<Item = (usize, usize, f64, usize)> {
        self.part.pairs.iter().zip(&self.curves).map(|(pair, curve)| {
            let levels = curve.prices.len();
            (pair.sell as usize, pair.buy as usize, curve.prices[levels / 2], levels)
        })
    }
}

/// Sums up the flows over all pairs, in their order; `add` gets each pair with (y, e, r).
fn evaluate(
    part: &Part,
    curves: &[Curve],
    hints: &mut [[u32; 2]],
    prices: &[f64],
    band: Band,
    flows: &mut Flows,
    mut add: impl FnMut(usize, f64, f64, f64),
) {
    for sums in [&mut flows.sold, &mut flows.bought, &mut flows.free] {
        sums.clear();
        sums.resize(prices.len(), 0.0);
    }
    for (at, ((pair, curve), hint)) in part.pairs.iter().zip(curves).zip(hints).enumerate() {
        let (a, b) = (pair.sell as usize, pair.buy as usize);
        let (must, free, slope) = flow(curve, hint, prices[a], prices[b], band);
        let sold = must + free;
        flows.free[a] += free;
        flows.free[b] += free;
        flows.sold[a] += sold;
        flows.bought[b] += sold;
        add(at, sold, slope, prices[a] / prices[b]);
    }
}

/// The value y that one pair sells at prices `sell` and `buy`, below the band and in it, and the slope e.
fn flow(curve: &Curve, hint: &mut [u32; 2], sell: f64, buy: f64, band: Band) -> (f64, f64, f64) {
    let (rate, width) = (sell / buy, 1.0 / (band.beta - band.alpha));
    let low = below(curve, &mut hint[0], rate * band.alpha);
    let high = below(curve, &mut hint[1], rate * band.beta);
    let amount = (high.amount - low.amount) as f64;
    let slope = buy * (high.value - low.value) * width;
    let free = band.beta * sell * amount * width - slope;
    (sell * low.amount as f64, free.max(0.0), slope.max(0.0))
}

/// A hint before the first search.
const UNKNOWN: u32 = u32::MAX;
/// Curves of at most this many levels are counted through without any branch.
const SHORT: usize = 16;

/// What is offered below `price`; the search begins at `hint` and leaves there where it ended.
fn below(curve: &Curve, hint: &mut u32, price: f64) -> Sum {
    let prices = curve.prices;
    if prices.len() <= SHORT {
        return curve.sums[prices.iter().map(|p| usize::from(*p < price)).sum::<usize>()];
    }
    let at = if *hint == UNKNOWN { interpolated(prices, price) } else { *hint as usize };
    let (low, high) = bracket(prices, at, price);
    let found = low + prices[low..high].partition_point(|p| *p < price);
    *hint = found as u32;
    curve.sums[found]
}

/// Where `price` would stand if the levels were evenly spaced.
fn interpolated(prices: &[f64], price: f64) -> usize {
    let last = prices.len() - 1;
    let share = (price - prices[0]) / (prices[last] - prices[0]);
    (share.clamp(0.0, 1.0) * last as f64) as usize
}

/// Bounds of the number of levels below `price`, found by steps of growing width from `at`.
fn bracket(prices: &[f64], at: usize, price: f64) -> (usize, usize) {
    let mut step = 1;
    if at < prices.len() && prices[at] < price {
        let mut low = at + 1;
        while low + step <= prices.len() && prices[low + step - 1] < price {
            low += step;
            step *= 2;
        }
        (low, (low + step - 1).min(prices.len()))
    } else {
        let mut high = at;
        while high >= step && prices[high - step] >= price {
            high -= step;
            step *= 2;
        }
        ((high + 1).saturating_sub(step), high)
    }
}
