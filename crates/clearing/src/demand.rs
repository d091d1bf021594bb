//! The demand of one part of the market at given prices (SPEEDEX §5.1, appendices C.2 and G).
//!
//! Offers of pair A/B with limits up to (1−μ)·r sell everything, where r = p_A/p_B. From there to (1−ε)·r, above which
//! limits are broken, the share falls linearly to nothing. So the value sold is
//!
//! y = p_A·E(α r) + (β p_A·ΔE − p_B·ΔV) / (β − α),  α = 1−μ, β = 1−ε,
//!
//! where E sums amounts and V sums limit·amount up to a price, and Δ is the difference between α r and β r. Its
//! derivatives by the logarithms of p_A and p_B are y + e and −e with e = p_B·ΔV / (β − α).
//!
//! Offers are placed at their effective limits. A pair remembers the band of the last evaluation, and the rates for
//! which its result stays the same. Where the band moves, only the offers that it moves over are read. Most pairs of a
//! large market offer nothing at its rates: an evaluation sees that from the rates alone, by one product each, and
//! skips them. A pool has two sides, each like a pair whose supply is a formula, see `pool`.

use primitives::{Amount, Price};

use crate::band::Band;
use crate::book::Book;
use crate::market::{Pair, Part};
use crate::pool::Side;
use crate::rate::approx;
use crate::run::RUN;
use crate::supply::{Curve, Place, Supply, gallop};
use crate::system::System;
use crate::threshold::Threshold;
use crate::value::Value;

/// Flows of value at some prices.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flows {
    /// Value sold of each asset.
    pub(crate) sold: Vec<f64>,
    /// Value bought of each asset, before commission.
    pub(crate) bought: Vec<f64>,
    /// The part of both from offers within the band, which need not trade.
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

    /// The sum of squared relative imbalances.
    pub(crate) fn merit(&self) -> f64 {
        (0..self.sold.len()).map(|asset| self.imbalance(asset)).map(|r| r * r).sum()
    }

    /// Whether every imbalance is a small part of what need not trade, so that the amount step can certainly
    /// compensate for it.
    pub(crate) fn is_covered(&self) -> bool {
        const SMALL: f64 = 0.15;
        (0..self.sold.len()).all(|a| (self.sold[a] - self.bought[a]).abs() <= SMALL * self.free[a])
    }

    /// The largest relative excess of an asset's purchases over its sales; the commission must cover it.
    pub(crate) fn shortage(&self) -> f64 {
        (0..self.sold.len()).map(|asset| -self.imbalance(asset)).fold(0.0, f64::max)
    }
}

/// Evaluates the demand of a part; remembers where the last search in each pair ended.
pub(crate) struct Demand<'a> {
    pub(crate) part: &'a Part,
    sources: Vec<Source<'a>>,
    /// The band of the last evaluation, to which `empty` refers.
    band: Band,
    empty: Vec<Empty>,
    offered: Vec<Offered>,
    ends: Vec<[End; 2]>,
    /// The offers of all pairs with few offers, one pair after the other, so that a search of one reads few cache
    /// lines.
    limits: Vec<Price>,
    amounts: Vec<Amount>,
    /// The pairs that sold something at the last evaluation, with the value sold, y, and the slope e.
    slopes: Vec<(u32, f64, f64)>,
    /// The inverse of each price.
    inverses: Vec<f64>,
    /// Number of evaluations.
    pub(crate) queries: u32,
    /// Looks at one pair.
    pub(crate) looks: u64,
}

/// The supply of a link.
#[derive(Clone, Copy)]
enum Source<'a> {
    Offers(Curve<'a>),
    Pool(Side),
}

/// An open interval of rates for which a pair offers nothing, according to the last search.
#[derive(Clone, Copy, Debug)]
struct Empty {
    above: f64,
    below: f64,
}

/// What one pair offers below the band and in it, and the prices for which that holds.
#[derive(Clone, Copy, Debug)]
struct Offered {
    /// The result holds while the band begins between the first two limits, and ends between the other two.
    begins: (f64, f64),
    ends: (f64, f64),
    /// Units below the band.
    below: f64,
    /// Units in the band, and Σ amount · limit of them.
    amount: f64,
    value: f64,
    /// The position of the offers of a pair with few offers among those of all such pairs; unused for other pairs.
    first: u32,
    count: u32,
    /// The ends of the band among these offers, and the units before it.
    places: (u32, u32),
    before: Amount,
}

/// One end of the band: its place, and what is offered before it.
#[derive(Clone, Copy, Debug, Default)]
struct End {
    place: Place,
    amount: Amount,
    /// Σ amount · limit before some place, not always this one: it is needed only where a band is wide.
    value: (Place, Value),
}

impl<'a> Demand<'a> {
    pub(crate) fn new(book: &Book, part: &'a Part, supply: &'a Supply) -> Demand<'a> {
        let source = |pair: &Pair| match pair.index as usize {
            index if index < book.pairs.len() => Source::Offers(supply.curve(index)),
            index => Source::Pool(book.side(index)),
        };
        let sources: Vec<_> = part.pairs.iter().map(source).collect();
        let (mut limits, mut amounts, mut offered) = (Vec::new(), Vec::new(), vec![UNKNOWN; sources.len()]);
        for (offered, source) in offered.iter_mut().zip(&sources) {
            let Source::Offers(curve) = source else { continue };
            if let Some((own_limits, own_amounts)) = curve.only_few() {
                (offered.first, offered.count) = (limits.len() as u32, own_limits.len() as u32);
                limits.extend_from_slice(own_limits);
                amounts.extend_from_slice(own_amounts);
            }
        }
        let empty = vec![Empty::NEVER; sources.len()];
        let ends = vec![[End::default(); 2]; sources.len()];
        let (band, slopes, inverses) = (Band { alpha: 0.0, beta: 0.0 }, Vec::new(), Vec::new());
        Demand { part, sources, band, empty, offered, ends, limits, amounts, slopes, inverses, queries: 0, looks: 0 }
    }

    /// The flows at `prices`: one evaluation, which sums over all pairs in order.
    pub(crate) fn flows(&mut self, prices: &[f64], band: Band, flows: &mut Flows) {
        /// The looks of a trial price: mostly its exponential.
        const ASSET: usize = 4;
        self.set_band(band);
        for sums in [&mut flows.sold, &mut flows.bought, &mut flows.free] {
            sums.clear();
            sums.resize(prices.len(), 0.0);
        }
        self.slopes.clear();
        self.inverses.clear();
        self.inverses.extend(prices.iter().map(|price| 1.0 / price));
        for at in 0..self.empty.len() {
            let Pair { sell, buy, .. } = self.part.pairs[at];
            let (a, b) = (sell as usize, buy as usize);
            if self.empty[at].holds(prices[a] * self.inverses[b]) {
                continue;
            }
            let (must, free, slope) = self.flow(at, prices[a], prices[b]);
            let sold = must + free;
            flows.free[a] += free;
            flows.free[b] += free;
            flows.sold[a] += sold;
            flows.bought[b] += sold;
            self.slopes.push((at as u32, sold, slope));
        }
        self.looks += (self.empty.len() + ASSET * prices.len()) as u64;
        self.queries += 1;
    }

    /// Sets `band`, and updates `empty` for it.
    fn set_band(&mut self, band: Band) {
        if self.band != band {
            self.band = band;
            for (empty, offered) in self.empty.iter_mut().zip(&self.offered) {
                *empty = offered.empty(band);
            }
        }
    }

    /// The value y that one pair sells at prices `sell` and `buy`, below the band and in it, and the slope e.
    fn flow(&mut self, at: usize, sell: f64, buy: f64) -> (f64, f64, f64) {
        let Demand { band, sources, empty, offered, ends, limits, amounts, looks, .. } = self;
        let offered = &mut offered[at];
        if let (0, Source::Pool(side)) = (offered.count, &sources[at]) {
            return side.flow(sell, buy, *band);
        }
        let rate = sell / buy;
        let (low, high) = (rate * band.alpha, rate * band.beta);
        let within = |price: f64, (over, under): (f64, f64)| price > over && price < under;
        if !within(low, offered.begins) || !within(high, offered.ends) {
            let own = offered.first as usize..(offered.first + offered.count) as usize;
            *looks += match &sources[at] {
                Source::Offers(curve) if own.is_empty() => offered.search(curve, &mut ends[at], low, high),
                _ => offered.search_few(&limits[own.clone()], &amounts[own], low, high),
            };
            empty[at] = offered.empty(*band);
        }
        let width = 1.0 / (band.beta - band.alpha);
        let slope = buy * offered.value * width;
        let free = band.beta * sell * offered.amount * width - slope;
        (sell * offered.below, free.max(0.0), slope.max(0.0))
    }

    /// Sets `system` to the derivatives of (value sold − value bought) of each asset by the logarithm of each price,
    /// at the prices of the last evaluation.
    pub(crate) fn derivatives(&self, system: &mut System) {
        system.clear();
        for &(at, y, e) in &self.slopes {
            let pair = &self.part.pairs[at as usize];
            system.add(at as usize, pair.sell as usize, pair.buy as usize, y + e, e);
        }
    }

    /// The relative imbalance of one `asset` when only its price changes to `price`; it never falls as the price
    /// rises, while the asset trades. `pairs` are those of the asset.
    pub(crate) fn imbalance_at(&mut self, asset: usize, price: f64, prices: &[f64], band: Band, pairs: &[u32]) -> f64 {
        self.set_band(band);
        let (mut sold, mut bought) = (0.0, 0.0);
        for at in pairs.iter().map(|at| *at as usize) {
            let (sell, buy) = (self.part.pairs[at].sell as usize, self.part.pairs[at].buy as usize);
            let value = |other: usize| if other == asset { price } else { prices[other] };
            let (must, free, _) = self.flow(at, value(sell), value(buy));
            if sell == asset {
                sold += must + free;
            } else {
                bought += must + free;
            }
        }
        self.looks += pairs.len() as u64;
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
    /// Number of offers; a side of a pool counts as many.
    fn offers(&self) -> usize {
        const POOL: usize = 64;
        match self {
            Source::Offers(curve) => curve.offers(),
            Source::Pool(_) => POOL,
        }
    }
}

impl Empty {
    /// No rate at all.
    const NEVER: Empty = Empty { above: f64::INFINITY, below: 0.0 };

    fn holds(self, rate: f64) -> bool {
        rate > self.above && rate < self.below
    }
}

/// Before the first search.
const NOWHERE: (f64, f64) = (f64::INFINITY, 0.0);
const UNKNOWN: Offered = Offered {
    begins: NOWHERE,
    ends: NOWHERE,
    below: 0.0,
    amount: 0.0,
    value: 0.0,
    first: 0,
    count: 0,
    places: (0, 0),
    before: 0,
};

impl Offered {
    /// The rates for which `band` is empty; none if something is offered. A rate that is known up to a few units in
    /// the last place is good enough.
    fn empty(&self, band: Band) -> Empty {
        const CLOSE: f64 = 1e-14;
        if self.below != 0.0 || self.amount != 0.0 || self.value != 0.0 {
            return Empty::NEVER;
        }
        Empty {
            above: f64::max(self.begins.0 / band.alpha, self.ends.0 / band.beta) * (1.0 + CLOSE),
            below: f64::min(self.begins.1 / band.alpha, self.ends.1 / band.beta) * (1.0 - CLOSE),
        }
    }

    /// Finds the band from `low` to `high`; the search begins where the last one ended. Returns the looks spent.
    fn search(&mut self, curve: &Curve, ends: &mut [End; 2], low: f64, high: f64) -> u64 {
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
        cost(curve.offers_before(ends[1].place).saturating_sub(curve.offers_before(ends[0].place)))
    }

    /// As [`search`](Self::search), among the few offers of a pair.
    fn search_few(&mut self, limits: &[Price], amounts: &[Amount], low: f64, high: f64) -> u64 {
        let place = |hint: u32, price: f64| {
            let threshold = Threshold::new(price);
            gallop(limits, hint as usize, |limit| threshold.is_above(*limit))
        };
        let (hint, begin) = (self.places.0 as usize, place(self.places.0, low));
        let end = place(self.places.1.max(begin as u32), high).max(begin);
        let sum = |amounts: &[Amount]| amounts.iter().sum::<Amount>();
        if hint <= begin {
            self.before += sum(&amounts[hint..begin]);
        } else {
            self.before -= sum(&amounts[begin..hint]);
        }
        self.places = (begin as u32, end as u32);
        (self.begins, self.ends) = (bounds(limits, begin), bounds(limits, end));
        self.below = self.before as f64;
        self.amount = sum(&amounts[begin..end]) as f64;
        self.value = if begin == end { 0.0 } else { Value::of(&limits[begin..end], &amounts[begin..end]).to_f64() };
        cost(end - begin)
    }
}

/// The looks of a search that finds `within` offers in the band: the search itself, and the offers that are read one
/// by one, several of which are summed up for the cost of one look.
fn cost(within: usize) -> u64 {
    const SEARCH: u64 = 4;
    const PER_LOOK: u64 = 4;
    const MOST: u64 = 2 * RUN as u64;
    SEARCH + (within as u64).min(MOST) / PER_LOOK
}

/// Bounds of the prices that certainly have the place before the offer at `at`.
fn bounds(limits: &[Price], at: usize) -> (f64, f64) {
    let over = at.checked_sub(1).map_or(0.0, |before| approx(limits[before]));
    let under = limits.get(at).map_or(f64::INFINITY, |limit| approx(*limit));
    surely_between(over, under)
}

fn surely_between(over: f64, under: f64) -> (f64, f64) {
    const CLOSE: f64 = 1e-12;
    (over * (1.0 + CLOSE), under * (1.0 - CLOSE))
}

impl End {
    /// Σ amount · limit before this end.
    fn value(&mut self, curve: &Curve) -> Value {
        let (place, value) = self.value;
        self.value = (self.place, curve.value_from(place, value, self.place));
        self.value.1
    }

    /// Moves to `price`; returns bounds of the prices that certainly have the same place.
    fn seek(&mut self, curve: &Curve, price: f64) -> (f64, f64) {
        let place = curve.place_near(self.place, Threshold::new(price));
        if place != self.place {
            self.amount = curve.amount_from(self.place, self.amount, place);
            self.place = place;
        }
        let over = curve.limit_before(place).map_or(0.0, approx);
        let under = curve.limit(place).map_or(f64::INFINITY, approx);
        surely_between(over, under)
    }
}
