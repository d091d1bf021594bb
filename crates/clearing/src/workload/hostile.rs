//! Hostile books: the offers of an attacker who wants to break a clearing, or to make it slow.
//!
//! Towers, stars, rings, meshes and chains of rings; limit prices over 36 decades; 1 to 10^18 units, dust beside
//! giants; 3 to 3,000 assets. A book is a function of its seed alone, like those of [`super`].

use crate::book::{ExactOrder, Offer, SortedOffers};
use crate::pool::Pool;
use kernel::Dice;
use primitives::{Amount, AssetId, ExactSide, Fraction, MAX_ISSUED, Price};

/// How the pairs of a hostile book are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Each asset trades with the next, both ways, at limits that cross by many decades.
    Tower,
    /// Every asset trades with one of a few centres.
    Star,
    /// Each asset is sold for the next, and the last for the first.
    Ring,
    /// Any two assets may trade.
    Mesh,
    /// Rings that share one asset each.
    Chain,
}

/// All shapes.
pub const SHAPES: [Shape; 5] = [Shape::Tower, Shape::Star, Shape::Ring, Shape::Mesh, Shape::Chain];

impl Shape {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Shape::Tower => "tower",
            Shape::Star => "star",
            Shape::Ring => "ring",
            Shape::Mesh => "mesh",
            Shape::Chain => "chain of rings",
        }
    }

    /// The pair of the offer at position `at`.
    fn pair(self, at: u64, assets: u64, random: &mut Dice) -> (u64, u64) {
        let (one, other) = match self {
            Shape::Tower => {
                let low = at / 2 % (assets - 1);
                return if at.is_multiple_of(2) { (low, low + 1) } else { (low + 1, low) };
            }
            Shape::Star => (at % assets, random.below(1 + assets / 64)),
            Shape::Ring => return (at % assets, (at + 1) % assets),
            Shape::Mesh => (random.below(assets), random.below(assets)),
            Shape::Chain => {
                let (ring, place) = (at / 4, at % 4);
                return ((3 * ring + place) % assets, (3 * ring + (place + 1) % 4) % assets);
            }
        };
        if random.unit() < 0.5 { (one, other) } else { (other, one) }
    }
}

/// A hostile book, and its parameters.
#[derive(Clone, Debug)]
pub struct Hostile {
    /// How its pairs are connected.
    pub shape: Shape,
    /// Number of assets.
    pub assets: u32,
    /// The offers.
    pub offers: Vec<Offer>,
}

impl Hostile {
    /// The offers, sorted.
    pub fn sorted(&self) -> SortedOffers {
        SortedOffers::new(self.assets, &self.offers)
    }
}

/// The hostile book of `seed`, of 3 to `most_assets` assets and at most `most_offers` offers.
pub fn hostile(seed: u64, most_assets: u32, most_offers: usize) -> Hostile {
    let mut random = Dice::new(seed ^ 0x0bad_b00c);
    let shape = SHAPES[random.below(SHAPES.len() as u64) as usize];
    let assets = log_uniform(3.0, f64::from(most_assets.max(4)), &mut random) as u64;
    let count = log_uniform(3.0, most_offers.max(4) as f64, &mut random) as u64;
    let style = Style::new(&mut random);
    let values: Vec<f64> = (0..assets).map(|_| style.value(&mut random)).collect();
    let mut offered = vec![0u64; assets as usize];
    let mut offers = Vec::new();
    for at in 0..count {
        let (sell, buy) = shape.pair(at, assets, &mut random);
        let limit = style.limit(values[sell as usize] / values[buy as usize], &mut random);
        let sum = &mut offered[sell as usize];
        // No more of an asset is offered than can exist.
        let amount = style.amount(values[sell as usize], &mut random).min((MAX_ISSUED - *sum) / 2);
        if sell != buy && amount > 0 {
            *sum += amount;
            offers.push(Offer { sell: AssetId(sell as u32), buy: AssetId(buy as u32), amount, limit });
        }
    }
    Hostile { shape, assets: assets as u32, offers }
}

/// Hostile pools between assets of `of`: dust beside giants, reserves up to 10^15 apart, several of one pair that price
/// it differently. Each reserve has at least `least` units, 1 or more.
pub fn pools(of: &Hostile, seed: u64, count: usize, least: Amount) -> Vec<Pool> {
    let mut random = Dice::new(seed ^ 0x9001);
    let mut free = vec![MAX_ISSUED; of.assets as usize];
    of.offers.iter().for_each(|offer| free[offer.sell.0 as usize] -= offer.amount);
    let mut made: Vec<Pool> = Vec::new();
    for _ in 0..count {
        // Every third pool is of the pair of one before.
        let known = made.get(random.below(3 * made.len() as u64 + 1) as usize).map(|pool| (pool.a, pool.b));
        let any = |random: &mut Dice| AssetId(random.below(u64::from(of.assets)) as u32);
        let (a, b) = known.unwrap_or_else(|| (any(&mut random), any(&mut random)));
        let low = (least.max(1) as f64).log10();
        let mut reserve = |asset: AssetId| {
            let units = power_of_ten(random.between(low, 16.0)) as Amount;
            let units = units.max(least.max(1)).min(free[asset.0 as usize] / 4);
            free[asset.0 as usize] -= units;
            units
        };
        let (reserve_a, reserve_b) = (reserve(a), reserve(b));
        let fee = Fraction::power_of_two(4 + random.below(20) as u32);
        if a != b && reserve_a.min(reserve_b) >= least.max(1) {
            made.push(Pool { a, b, reserve_a, reserve_b, fee });
        }
    }
    made
}

/// Hostile exact orders between assets of `of`, in no order: of pairs that have offers and of any others, 1 to 10^18
/// units, bounds that no rate reaches and such that every rate does. Many are alike: a few of them fit, or each alone.
/// No more of an asset is locked than can exist beside the offers.
pub fn exacts(of: &Hostile, seed: u64, count: usize) -> Vec<ExactOrder> {
    let mut random = Dice::new(seed ^ 0xe8ac);
    let mut free = vec![MAX_ISSUED; of.assets as usize];
    of.offers.iter().for_each(|offer| free[offer.sell.0 as usize] -= offer.amount);
    let mut made: Vec<ExactOrder> = Vec::new();
    for _ in 0..count {
        let like = made.get(random.below(2 * made.len() as u64 + 1) as usize).copied();
        let mut order = like.unwrap_or_else(|| exact(of, &mut random));
        let free = &mut free[order.sell.0 as usize];
        // A purchase locks its bound: it gives what is left, so that as many as can be are there together.
        match order.side {
            ExactSide::Buy => order.bound = order.bound.min(*free / 4),
            ExactSide::Sell => order.units = order.units.min(*free / 4),
        }
        if order.sell != order.buy && order.units > 0 && order.bound > 0 {
            *free -= order.locks();
            made.push(order);
        }
    }
    made
}

/// One of them.
fn exact(of: &Hostile, random: &mut Dice) -> ExactOrder {
    let offer = of.offers.get(random.below(of.offers.len() as u64 + 1) as usize);
    let any = |random: &mut Dice| AssetId(random.below(u64::from(of.assets)) as u32);
    let pair = offer.map(|offer| (offer.sell, offer.buy)).unwrap_or_else(|| (any(random), any(random)));
    let (sell, buy) = if random.unit() < 0.5 { pair } else { (pair.1, pair.0) };
    // Often a part of what somebody sells, from a thousandth to ten times of it.
    let part = offer.map(|offer| offer.amount as f64 * power_of_ten(random.between(-3.0, 1.0)));
    let units = part.filter(|_| random.unit() < 0.7).unwrap_or_else(|| power_of_ten(random.between(0.0, 18.0)));
    let units = units.clamp(1.0, 1e18) as u64;
    let bound = match random.below(3) {
        0 => 1,
        1 => MAX_ISSUED,
        _ => power_of_ten(random.between(0.0, 18.0)) as u64,
    };
    if random.unit() < 0.5 {
        ExactOrder::buy(buy, units, sell, bound)
    } else {
        ExactOrder::sell(sell, units, buy, bound)
    }
}

/// How limits and amounts of one book are drawn.
struct Style {
    /// Decades over which the assets' values spread, on both sides of 1.
    worths: f64,
    /// Decades by which limits spread around the ratio of the values, on both sides.
    spread: f64,
    /// Whether limits are a few round numbers.
    round: bool,
    /// Decades of the units of an offer: lower and upper end.
    units: (f64, f64),
    /// Whether all offers have about the same value, whatever they sell.
    even: bool,
    /// The share of offers of a few units, and that of offers near the largest.
    dust: f64,
    giants: f64,
}

impl Style {
    fn new(random: &mut Dice) -> Style {
        let mut one_of = |choices: &[f64]| choices[random.below(choices.len() as u64) as usize];
        let (worths, spread) = (one_of(&[0.0, 1.0, 6.0, 18.0]), one_of(&[0.001, 0.01, 0.3, 2.0, 36.0]));
        let least = one_of(&[0.0, 3.0, 6.0, 12.0]);
        let units = (least, one_of(&[least, least + 2.0, 18.0]));
        let (dust, giants) = (one_of(&[0.0, 0.1, 0.9]), one_of(&[0.0, 0.01, 0.2]));
        Style { worths, spread, round: random.unit() < 0.3, units, even: random.unit() < 0.3, dust, giants }
    }

    fn value(&self, random: &mut Dice) -> f64 {
        power_of_ten(random.between(-self.worths, self.worths))
    }

    fn limit(&self, ratio: f64, random: &mut Dice) -> Price {
        let exact = ratio * power_of_ten(random.between(-self.spread, self.spread));
        let limit = if self.round { power_of_ten(digits(exact)) } else { exact };
        Price::from_f64(limit.clamp(1e-18, 9.9e17)).expect("within the range of prices")
    }

    fn amount(&self, value: f64, random: &mut Dice) -> u64 {
        let kind = random.unit();
        let units = match kind {
            _ if kind < self.dust => random.between(1.0, 9.0),
            _ if kind > 1.0 - self.giants => power_of_ten(18.0),
            _ if self.even => power_of_ten(random.between(self.units.0, self.units.1)) / value,
            _ => power_of_ten(random.between(self.units.0, self.units.1)),
        };
        units.clamp(1.0, 1e18) as u64
    }
}

/// From `low` to `high`, with equal probability for each doubling.
fn log_uniform(low: f64, high: f64, random: &mut Dice) -> f64 {
    let doublings = (0..64).take_while(|k| low * (1u64 << k) as f64 <= high).count() as u64;
    let least = low * (1u64 << random.below(doublings.max(1))) as f64;
    random.between(least, 2.0 * least).min(high)
}

/// The decade of `x`.
fn digits(x: f64) -> f64 {
    let mut decade = -18.0;
    while decade < 17.0 && power_of_ten(decade + 1.0) <= x {
        decade += 1.0;
    }
    decade
}

/// About 10^x, exact for integer `x`: by multiplication only, so that it is the same on every machine.
fn power_of_ten(x: f64) -> f64 {
    let (whole, rest) = (x.floor(), x - x.floor());
    let scale = (0..whole.abs() as u32).fold(1.0, |scale, _| scale * 10.0);
    // From 1 to 10, exact at both ends and convex between them.
    let mantissa = 1.0 + rest * (4.0 + 5.0 * rest);
    if whole < 0.0 { mantissa / scale } else { mantissa * scale }
}

/// The [`hostile`] book of `seed`, with every offer increased until it sells, and asks for, at least `least` units.
pub fn within_minimum(seed: u64, most_assets: u32, most_offers: usize, least: u64) -> Hostile {
    let mut book = hostile(seed, most_assets, most_offers);
    book.offers.retain_mut(|offer| {
        let mut random = Dice::new(seed ^ u64::from(offer.sell.0) << 32 ^ u64::from(offer.buy.0));
        // One bound covers both: enough is sold that the amount asked for is enough, too.
        let enough = (least as f64 / offer.limit.to_f64()).ceil().max(least as f64) * random.between(1.0, 1.5);
        offer.amount = offer.amount.max(enough.min(1e18) as u64);
        enough < 1e15 && offer.amount as f64 * offer.limit.to_f64() >= least as f64
    });
    let mut offered = vec![0u64; book.assets as usize];
    book.offers.retain(|offer| {
        let sum = &mut offered[offer.sell.0 as usize];
        let fits = sum.checked_add(offer.amount).filter(|sum| *sum <= MAX_ISSUED);
        *sum = fits.unwrap_or(*sum);
        fits.is_some()
    });
    book
}
