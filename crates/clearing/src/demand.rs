//! The demand of one part of the market at given prices (SPEEDEX §5.1, appendices C.2 and G).
//!
//! Offers of pair A/B with limits up to (1−μ)·r sell everything, r = p_A/p_B; from there to (1−ε)·r, where limits
//! begin to break, the share falls linearly to nothing. So the value sold is
//!
//! y = p_A·E(α r) + (β p_A·ΔE − p_B·ΔV) / (β − α),  α = 1−μ, β = 1−ε,
//!
//! where E sums amounts and V sums limit·amount up to a price, and Δ is from α r to β r. Its derivatives by the
//! logarithms of p_A and p_B are y + e and −e with e = p_B·ΔV / (β − α).
//!
//! Offers stand at their effective limits. A pair remembers the band that it was last asked about, and for which prices
//! nothing of it changes; where the band moves, only the offers that it moves over are read. A pool has two sides,
//! each like a pair whose supply is a formula, see `pool`.

use primitives::Amount;

use crate::book::Book;
use crate::market::{Pair, Part};
use crate::pool::Side;
use crate::rate::approx;
use crate::run::RUN;
use crate::supply::{Curve, Place, Supply};
use crate::system::System;
use crate::threshold::Threshold;
use crate::value::Value;

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

/// Evaluates the demand of a part; remembers where in each pair the last searches ended.
pub(crate) struct Demand<'a> {
    pub(crate) part: &'a Part,
    sources: Vec<Source<'a>>,
    bands: Vec<Offered>,
    ends: Vec<[End; 2]>,
    /// What each pair sells, y, and its slope e, at the last evaluation.
    slopes: Vec<(f64, f64)>,
    /// Number of evaluations.
    pub(crate) queries: u32,
    /// Looks at one pair.
    pub(crate) looks: u64,
}

/// What supplies a link.
#[derive(Clone, Copy)]
enum Source<'a> {
    Offers(Curve<'a>),
    Pool(Side),
}

/// What one pair offers below the band and in it, and for which prices that is so.
#[derive(Clone, Copy, Debug)]
struct Offered {
    /// The band may begin anywhere between these limits, and end anywhere between those.
    begins: (f64, f64),
    ends: (f64, f64),
    /// Units below the band.
    below: f64,
    /// Units in the band, and Σ amount · limit of them.
    amount: f64,
    value: f64,
}

/// One end of the band: its place, and what is offered before it.
#[derive(Clone, Copy, Debug, Default)]
struct End {
    place: Place,
    amount: Amount,
    /// Σ amount · limit before some place, not always this one: it is asked for only where a band is wide.
    value: (Place, Value),
}

impl<'a> Demand<'a> {
    pub(crate) fn new(book: &Book, part: &'a Part, supply: &'a Supply) -> Demand<'a> {
        let source = |pair: &Pair| match pair.index as usize {
            index if index < book.pairs.len() => Source::Offers(supply.curve(index)),
            index => Source::Pool(book.side(index)),
        };
        let sources: Vec<_> = part.pairs.iter().map(source).collect();
        let (bands, ends) = (vec![UNKNOWN; sources.len()], vec![[End::default(); 2]; sources.len()]);
        let slopes = vec![(0.0, 0.0); sources.len()];
        Demand { part, sources, bands, ends, slopes, queries: 0, looks: 0 }
    }

    /// The flows at `prices`: one evaluation.
    pub(crate) fn flows(&mut self, prices: &[f64], band: Band, flows: &mut Flows) {
        let Demand { part, sources, bands, ends, slopes, .. } = self;
        self.looks += evaluate(part, sources, (bands, ends), prices, band, flows, slopes);
        self.queries += 1;
    }

    /// Sets `system` to the derivatives of (value sold − value bought) of each asset by the logarithm of each price, at
    /// the prices of the last evaluation. Where `window` is given, the slope of a pair is at least its secant from
    /// r·(1−window) to r·(1+window).
    pub(crate) fn derivatives(&self, prices: &[f64], window: Option<f64>, system: &mut System) {
        system.clear();
        for (at, (pair, (y, narrow))) in self.part.pairs.iter().zip(&self.slopes).enumerate() {
            let (a, b) = (pair.sell as usize, pair.buy as usize);
            let wide = window.map_or(0.0, |w| {
                let Source::Offers(curve) = &self.sources[at] else { return 0.0 };
                let rate = prices[a] / prices[b];
                let supply = |x: f64| curve.amount(curve.place(Threshold::new(x)));
                prices[a] * (supply(rate * (1.0 + w)) - supply(rate * (1.0 - w))) as f64 / (2.0 * w)
            });
            let e = narrow.max(wide);
            system.add(at, a, b, y + e, e);
        }
    }

    /// The relative imbalance of one `asset` when it alone has `price`; it never falls as the price rises, while the
    /// asset trades. `pairs` are those of the asset.
    pub(crate) fn imbalance_at(&mut self, asset: usize, price: f64, prices: &[f64], band: Band, pairs: &[u32]) -> f64 {
        let (mut sold, mut bought) = (0.0, 0.0);
        for at in pairs.iter().map(|at| *at as usize) {
            let (sell, buy) = (self.part.pairs[at].sell as usize, self.part.pairs[at].buy as usize);
            let value = |other: usize| if other == asset { price } else { prices[other] };
            let seen = (&mut self.bands[at], &mut self.ends[at]);
            let (must, free, _) = flow(&self.sources[at], seen, value(sell), value(buy), band, &mut self.looks);
            if sell == asset {
                sold += must + free;
            } else {
                bought += must + free;
            }
        }
        let larger = f64::max(sold, bought);
        if larger > 0.0 { (sold - bought) / larger } else { 0.0 }
    }

    /// Number of offers.
    pub(crate) fn offers(&self) -> usize {
        self.sources.iter().map(Source::offers).sum()
    }

    /// The fewest offers that any asset has, on all its pairs.
    pub(crate) fn fewest_offers(&self) -> usize {
        let mut offers = vec![0; self.part.assets.len()];
        for (pair, source) in self.part.pairs.iter().zip(&self.sources) {
            offers[pair.sell as usize] += source.offers();
            offers[pair.buy as usize] += source.offers();
        }
        offers.into_iter().min().unwrap_or(0)
    }

    /// The median limit price of every pair and the number of its offers.
    pub(crate) fn medians(&self) -> impl Iterator<Item = (usize, usize, f64, usize)> {
        self.part.pairs.iter().zip(&self.sources).map(|(pair, source)| {
            let median = match source {
                Source::Offers(curve) => approx(curve.limit_at(curve.offers() / 2)),
                Source::Pool(side) => side.price(),
            };
            (pair.sell as usize, pair.buy as usize, median, source.offers())
        })
    }
}

impl Source<'_> {
    /// Number of offers; a side of a pool speaks for a good many.
    fn offers(&self) -> usize {
        const POOL: usize = 64;
        match self {
            Source::Offers(curve) => curve.offers(),
            Source::Pool(_) => POOL,
        }
    }
}

/// Sums up the flows over all pairs, in their order; `slopes` gets (y, e) of each. Returns the looks that it took.
fn evaluate(
    part: &Part,
    sources: &[Source],
    (bands, ends): (&mut [Offered], &mut [[End; 2]]),
    prices: &[f64],
    band: Band,
    flows: &mut Flows,
    slopes: &mut [(f64, f64)],
) -> u64 {
    let mut looks = 0;
    for sums in [&mut flows.sold, &mut flows.bought, &mut flows.free] {
        sums.clear();
        sums.resize(prices.len(), 0.0);
    }
    let links = part.pairs.iter().zip(sources).zip(bands.iter_mut().zip(ends));
    for (((pair, source), seen), own) in links.zip(slopes) {
        let (a, b) = (pair.sell as usize, pair.buy as usize);
        let (must, free, slope) = flow(source, seen, prices[a], prices[b], band, &mut looks);
        let sold = must + free;
        flows.free[a] += free;
        flows.free[b] += free;
        flows.sold[a] += sold;
        flows.bought[b] += sold;
        *own = (sold, slope);
    }
    looks
}

/// The value y that one pair sells at prices `sell` and `buy`, below the band and in it, and the slope e.
fn flow(
    source: &Source,
    (offered, ends): (&mut Offered, &mut [End; 2]),
    sell: f64,
    buy: f64,
    band: Band,
    looks: &mut u64,
) -> (f64, f64, f64) {
    *looks += 1;
    let curve = match source {
        Source::Offers(curve) => curve,
        Source::Pool(side) => return side.flow(sell, buy, band),
    };
    let (rate, width) = (sell / buy, 1.0 / (band.beta - band.alpha));
    let (low, high) = (rate * band.alpha, rate * band.beta);
    let within = |price: f64, (over, under): (f64, f64)| price > over && price < under;
    if !within(low, offered.begins) || !within(high, offered.ends) {
        *looks += offered.search(curve, ends, low, high);
    }
    let slope = buy * offered.value * width;
    let free = band.beta * sell * offered.amount * width - slope;
    (sell * offered.below, free.max(0.0), slope.max(0.0))
}

/// Before the first search.
const NOWHERE: (f64, f64) = (f64::INFINITY, 0.0);
const UNKNOWN: Offered = Offered { begins: NOWHERE, ends: NOWHERE, below: 0.0, amount: 0.0, value: 0.0 };

impl Offered {
    /// Finds the band from `low` to `high`; the searches begin where those before ended. Returns the looks that it
    /// took.
    fn search(&mut self, curve: &Curve, ends: &mut [End; 2], low: f64, high: f64) -> u64 {
        /// Looks for the search itself; offers that are summed up for the price of one more; and how many there are at
        /// most.
        const SEARCH: u64 = 4;
        const PER_LOOK: u64 = 4;
        const MOST: u64 = 2 * RUN as u64;
        let first = self.begins == NOWHERE;
        self.begins = ends[0].seek(curve, low);
        if first {
            ends[1] = ends[0];
        }
        self.ends = ends[1].seek(curve, high);
        self.below = ends[0].amount as f64;
        self.amount = (ends[1].amount - ends[0].amount) as f64;
        let narrow = curve.value_within(ends[0].place, ends[1].place);
        self.value = narrow.unwrap_or_else(|| ends[1].value(curve).minus(ends[0].value(curve))).to_f64();
        let within = curve.offers_before(ends[1].place).saturating_sub(curve.offers_before(ends[0].place));
        SEARCH + (within as u64).min(MOST) / PER_LOOK
    }
}

impl End {
    /// Σ amount · limit before this end.
    fn value(&mut self, curve: &Curve) -> Value {
        let (place, value) = self.value;
        self.value = (self.place, curve.value_from(place, value, self.place));
        self.value.1
    }

    /// Moves to `price`; returns bounds of the prices that surely have the same place.
    fn seek(&mut self, curve: &Curve, price: f64) -> (f64, f64) {
        const CLOSE: f64 = 1e-12;
        let place = curve.place_near(self.place, Threshold::new(price));
        if place != self.place {
            self.amount = curve.amount_from(self.place, self.amount, place);
            self.place = place;
        }
        let over = curve.limit_before(place).map_or(0.0, approx);
        let under = curve.limit(place).map_or(f64::INFINITY, approx);
        (over * (1.0 + CLOSE), under * (1.0 - CLOSE))
    }
}
