//! Seeded books: the offers for all measurements and many tests.
//!
//! A book is a pure function of its parameters and a seed, on any machine and with any version of any dependency: the
//! sequence of [`Dice`] is fixed by its definition.
//!
//! | books | made by |
//! |---|---|
//! | the workload of SPEEDEX §7 | [`cycles`], [`cycle_book`] |
//! | volumes by a power law, prices far apart, one-sided assets, dust and giants | [`hard`], [`hard_of_any_size`] |
//! | towers, stars, rings and meshes that try to break a clearing or to slow it down | [`hostile`] |
//! | offers of few units, whose whole units can hardly follow prices | [`of_few_units`] |
//! | thousands of assets that trade against a few numeraires (appendix E) | [`numeraires`] |

pub mod hostile;
pub mod thin;

use crate::book::{Offer, SortedOffers};
use kernel::Dice;
use primitives::{AssetId, Price};

/// The trading workload of SPEEDEX §7: cycles of 2–7 offers whose amounts chain, over assets with valuations uniform in
/// [1, 1000].
///
/// Limits are up to 2 % below the true price; one offer in ten is bad, with a limit as far above it. Amounts range
/// from 10^4 to 10^9 units.
pub fn cycles(assets: u32, offers: usize, seed: u64) -> Vec<Offer> {
    const LENGTHS: [f64; 6] = [100.0, 80.0, 50.0, 30.0, 10.0, 5.0];
    const SPREAD: f64 = 0.02;
    const BAD: f64 = 0.1;
    let mut random = Dice::new(seed);
    let values: Vec<f64> = (0..assets).map(|_| random.between(1.0, 1000.0)).collect();
    let mut result = Vec::with_capacity(offers + 7);
    while result.len() < offers {
        let length = (random.weighted(&LENGTHS) + 2).min(assets as usize);
        let cycle = distinct(assets, length, &mut random);
        let value = random.between(1e7, 1e9);
        for (at, &sell) in cycle.iter().enumerate() {
            let buy = cycle[(at + 1) % length];
            let (own, other) = (values[sell as usize], values[buy as usize]);
            let shift = SPREAD * random.unit() * if random.unit() < BAD { -1.0 } else { 1.0 };
            let limit = Price::from_f64(own / other * (1.0 - shift)).expect("close to a ratio of valuations");
            result.push(Offer { sell: AssetId(sell), buy: AssetId(buy), amount: (value / own) as u64, limit });
        }
    }
    result.truncate(offers);
    result
}

/// `count` different assets out of `assets`; `count` must not be larger.
pub fn distinct(assets: u32, count: usize, random: &mut Dice) -> Vec<u32> {
    let mut chosen: Vec<u32> = Vec::with_capacity(count);
    while chosen.len() < count {
        let asset = random.below(u64::from(assets)) as u32;
        if !chosen.contains(&asset) {
            chosen.push(asset);
        }
    }
    chosen
}

/// [`cycles`], sorted.
pub fn cycle_book(assets: u32, offers: usize, seed: u64) -> SortedOffers {
    SortedOffers::new(assets, &cycles(assets, offers, seed))
}

/// The traits of hard books, in the order in which [`hard`] draws them.
const KINDS: [&str; 7] =
    ["prices far apart", "few limit prices", "one-sided assets", "disconnected groups", "dust", "giant offer", "even"];

/// The traits of the [`hard`] book of `seed`; a book without "even" has power-law volumes.
pub fn hard_kinds(seed: u64) -> Vec<&'static str> {
    let has = traits(&mut Dice::new(seed ^ 0x5eed));
    let kinds = KINDS.into_iter().zip(has).filter(|(kind, has)| *has && *kind != "even").map(|(kind, _)| kind);
    kinds.chain((!has[6]).then_some("power-law volumes")).collect()
}

fn traits(random: &mut Dice) -> [bool; 7] {
    [0.3, 0.3, 0.4, 0.3, 0.2, 0.3, 0.3].map(|share| random.unit() < share)
}

/// A difficult book: power-law volumes, valuations up to 10^15 apart, few distinct limit prices, assets that nobody
/// sells or nobody buys, groups that do not trade with each other, small amounts, and one giant offer. The seed
/// decides which of these traits it has; it has 2 to 60 assets and 500 to `most` offers.
pub fn hard(most: usize, seed: u64) -> SortedOffers {
    hard_of(seed, |random| 500 + random.below(most.saturating_sub(500) as u64 + 1) as usize)
}

/// A [`hard`] book of 500 to 10^6 offers; each order of magnitude is equally likely.
pub fn hard_of_any_size(seed: u64) -> SortedOffers {
    // 500 · 2^10.97 is 10^6: a power of two, then uniform up to the next.
    hard_of(seed, |random| {
        let doublings = random.below(11);
        ((500u64 << doublings) + random.below(500 << doublings)).min(1_000_000) as usize
    })
}

fn hard_of(seed: u64, size: impl Fn(&mut Dice) -> usize) -> SortedOffers {
    let mut random = Dice::new(seed ^ 0x5eed);
    let [far, ticks, one_sided, groups, dust, giant, even] = traits(&mut random);
    let assets = 2 + random.below(59);
    let count = size(&mut random);
    let weights: Vec<f64> =
        (0..assets).map(|asset| if even { 1.0 } else { 1.0 / ((asset + 1) * (asset + 1)) as f64 }).collect();
    let values: Vec<f64> = (0..assets).map(|_| valuation(far, &mut random)).collect();
    let parts = if groups { 1 + random.below(4) } else { 1 };
    let worth = if dust { 1e6 } else { 1e11 };
    // However many offers there are, no more of an asset is offered than can exist.
    let largest = (8e18 / count as f64).min(1e14);
    let mut offers = Vec::with_capacity(count + 1);
    // Draws that fall between groups are discarded, so a book of many groups may be small.
    for _ in 0..2 * count {
        let (sell, buy) = (random.weighted(&weights) as u64, random.weighted(&weights) as u64);
        let shunned = one_sided && (buy % 7 == 3 || sell % 7 == 5);
        let limit = values[sell as usize] / values[buy as usize] * (1.0 + random.between(-0.02, 0.01));
        let limit = if ticks { rounded(limit, 3) } else { limit };
        let amount = (worth * random.unit() / values[sell as usize]).clamp(1e3, largest) as u64;
        let limit = Price::from_f64(limit.clamp(1e-17, 1e17)).expect("within the range");
        if sell != buy && sell % parts == buy % parts && !shunned && offers.len() < count {
            offers.push(Offer { sell: AssetId(sell as u32), buy: AssetId(buy as u32), amount, limit });
        }
    }
    if giant && let Some(offer) = offers.first().copied() {
        offers.push(Offer { amount: 1_000_000_000_000_000_000, ..offer });
    }
    SortedOffers::new(assets as u32, &offers)
}

fn valuation(far: bool, random: &mut Dice) -> f64 {
    let decades = if far { random.below(13) as i32 - 6 } else { 0 };
    let scale = (0..decades.abs()).fold(1.0, |scale, _| scale * 10.0);
    let value = random.between(1.0, 1000.0);
    if decades < 0 { value / scale } else { value * scale }
}

/// `x` to `digits` significant digits, as traders like to write prices.
fn rounded(x: f64, digits: u32) -> f64 {
    let text = format!("{x:.*e}", digits as usize - 1);
    text.parse().expect("a number printed is a number read")
}

/// Separate markets of so many assets and offers each, near par and with few units per offer: with three assets and
/// twelve offers each, no full clearing is found for about half of them.
pub fn of_few_units(markets: u32, assets: u32, offers: u32, seed: u64) -> Vec<Offer> {
    let mut random = Dice::new(seed);
    let mut next = |first: u32| {
        let sell = random.below(u64::from(assets)) as u32;
        let buy = (sell + 1 + random.below(u64::from(assets) - 1) as u32) % assets;
        let limit = Price::from_f64(random.between(0.97, 1.03)).expect("near par");
        Offer { sell: AssetId(first + sell), buy: AssetId(first + buy), amount: 1 + random.below(100), limit }
    };
    (0..offers * markets).map(|at| next(at / offers * assets)).collect()
}

/// A market of `count` numeraires, assets `0..count`, and other assets that trade against one of them each. If
/// `linked`, numeraires also trade among themselves: one offer in twenty. Limits range from 2 % below the true price
/// to 1 % above.
pub fn numeraires(assets: u32, count: u32, offers: usize, linked: bool, seed: u64) -> Vec<Offer> {
    let mut random = Dice::new(seed);
    let values: Vec<f64> = (0..assets).map(|_| random.between(1.0, 1000.0)).collect();
    let mut next = || {
        let (one, other) = if linked && random.unit() < 0.05 {
            let one = random.below(u64::from(count)) as u32;
            (one, (one + 1 + random.below(u64::from(count) - 1) as u32) % count)
        } else {
            let asset = count + random.below(u64::from(assets - count)) as u32;
            (asset, asset % count)
        };
        let (sell, buy) = if random.unit() < 0.5 { (one, other) } else { (other, one) };
        let (own, asked) = (values[sell as usize], values[buy as usize]);
        let limit = Price::from_f64(own / asked * (1.0 + random.between(-0.02, 0.01))).expect("close to a ratio");
        let amount = (random.between(1e7, 1e9) / own) as u64;
        Offer { sell: AssetId(sell), buy: AssetId(buy), amount, limit }
    };
    (0..offers).map(|_| next()).collect()
}
