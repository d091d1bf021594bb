//! Thin books: few offers for each asset, as of every asset that is new.
//!
//! 2 to 50 assets and 2 to 10,000 offers, whose sizes and spread of limits differ by orders of magnitude. Pairs form a
//! mesh, a tree, a cycle, hubs, or two clusters that one offer each way joins. Every offer sells and asks for at least
//! [`LEAST`] units. A book is a function of its seed alone, like those of [`super`].

use crate::book::{Offer, SortedOffers};
use kernel::Dice;
use primitives::{AssetId, Price};

/// The fewest units that an offer sells and asks for.
pub const LEAST: f64 = 4_096.0;
/// The largest offer is so many times as large as the smallest.
const RANGE: f64 = 2_500.0;

/// How the pairs of a thin book are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Any two assets may trade.
    Mesh,
    /// Every asset but the first trades with one before it.
    Tree,
    /// Each asset is mostly sold for the next, and the last for the first.
    Cycle,
    /// Every asset trades with one of up to three.
    Hubs,
    /// Two meshes, joined by one offer each way.
    Clusters,
}

/// All patterns.
pub const PATTERNS: [Pattern; 5] = [Pattern::Mesh, Pattern::Tree, Pattern::Cycle, Pattern::Hubs, Pattern::Clusters];

impl Pattern {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Pattern::Mesh => "mesh",
            Pattern::Tree => "tree",
            Pattern::Cycle => "cycle",
            Pattern::Hubs => "hubs",
            Pattern::Clusters => "two clusters",
        }
    }

    /// The pair of the offer at position `at`, as often one way as the other.
    fn pair(self, at: usize, assets: u64, random: &mut Dice) -> (u64, u64) {
        let (one, other) = match self {
            Pattern::Mesh => ordered(0, assets, random),
            Pattern::Tree => {
                let child = 1 + random.below(assets - 1);
                (child, parent(child))
            }
            Pattern::Cycle => {
                let sell = random.below(assets);
                let pair = (sell, (sell + 1) % assets);
                return if random.unit() < 0.9 { pair } else { (pair.1, pair.0) };
            }
            Pattern::Hubs => {
                let hubs = (assets / 2).clamp(1, 3);
                let other = random.below(hubs);
                (other + 1 + random.below(assets - 1 - other), other)
            }
            Pattern::Clusters => match at {
                0 => return (0, assets - 1),
                1 => return (assets - 1, 0),
                _ if random.unit() < 0.5 || assets - assets / 2 < 2 => ordered(0, (assets / 2).max(2), random),
                _ => ordered(assets / 2, assets - assets / 2, random),
            },
        };
        if random.unit() < 0.5 { (one, other) } else { (other, one) }
    }
}

/// The asset that `child` hangs on in a tree.
fn parent(child: u64) -> u64 {
    Dice::new(child).below(child)
}

/// Two different assets of `count` from `first` up.
fn ordered(first: u64, count: u64, random: &mut Dice) -> (u64, u64) {
    let one = random.below(count);
    (first + one, first + (one + 1 + random.below(count - 1)) % count)
}

/// A thin book, and its parameters.
#[derive(Clone, Debug)]
pub struct Thin {
    /// How its pairs are connected.
    pub pattern: Pattern,
    /// Number of assets.
    pub assets: u32,
    /// Limits are up to this share above the true price, or as far below it.
    pub spread: f64,
    /// The offers.
    pub offers: Vec<Offer>,
}

impl Thin {
    /// The offers, sorted.
    pub fn sorted(&self) -> SortedOffers {
        SortedOffers::new(self.assets, &self.offers)
    }
}

/// The thin book of `seed`, with at most `most_offers` offers.
pub fn thin(seed: u64, most_offers: usize) -> Thin {
    let mut random = Dice::new(seed ^ 0x0074_11b0);
    let pattern = PATTERNS[random.below(PATTERNS.len() as u64) as usize];
    let assets = 2 + random.below(49);
    let count = log_uniform(1, most_offers as f64 / 2.0, &mut random).ceil() as usize * 2;
    let spread = log_uniform(-10, 1.0, &mut random);
    of_kind(pattern, assets, count, spread, &mut random)
}

/// A thin book of so many assets and offers, with limits within `spread` of the true prices.
pub fn of_kind(pattern: Pattern, assets: u64, count: usize, spread: f64, random: &mut Dice) -> Thin {
    let values: Vec<f64> = (0..assets).map(|_| log_uniform(0, 100.0, random)).collect();
    let offer = |at: usize| {
        let (sell, buy) = pattern.pair(at, assets, random);
        let (own, asked) = (values[sell as usize], values[buy as usize]);
        let factor = 1.0 + spread * random.unit();
        let limit = if random.unit() < 0.5 { own / asked * factor } else { own / asked / factor };
        let amount = (LEAST / limit.min(1.0) * log_uniform(0, RANGE, random)).ceil();
        let limit = Price::from_f64(limit).expect("close to a ratio of valuations");
        Offer { sell: AssetId(sell as u32), buy: AssetId(buy as u32), amount: amount as u64, limit }
    };
    Thin { pattern, assets: assets as u32, spread, offers: (0..count).map(offer).collect() }
}

/// A number between 2^`least` and `most` times 1, whose magnitude is as likely anywhere.
fn log_uniform(least: i32, most: f64, random: &mut Dice) -> f64 {
    let low = if least < 0 { 1.0 / f64::from(1 << -least) } else { f64::from(1 << least) };
    // Doublings up to `most`, then uniform up to the next: the same on every machine, without a logarithm.
    let doublings = (most / low).to_bits() >> 52;
    let doublings = doublings - 1023 + u64::from((most / low).fract() != 0.0 || (most / low).to_bits() << 12 != 0);
    let scale = (0..random.below(doublings.max(1))).fold(low, |scale, _| scale * 2.0);
    (scale * random.between(1.0, 2.0)).min(most)
}
