//! A walk among prices of one part, for where whole units follow none of those that balance supply and demand.
//!
//! Where a part is small, or its units are worth a lot, amounts change by leaps as prices change by little, and whether
//! a full clearing exists turns on the very units of a few offers. No slope points to it. So prices are moved a little,
//! mostly those of assets that are short, by steps of many sizes; what makes the lack no larger is kept, now and then
//! also what makes it a little larger, until nothing is lacking or the tries are used up.
//!
//! # Properties
//!
//! - The moves are drawn from one fixed sequence, so that the walk is a function of the book.
//! - Each part walks on its own: what is full stays as it is.
//! - The parts that walk share the tries.

use crate::amounts::Lack;
use crate::outcome::Spending;
use crate::search::Scene;

/// Pairs looked at on all walks together, over all tries; so many offers cost as much as a pair.
const MOST_WORK: usize = 100_000;
const OFFERS_PER_PAIR: usize = 20;
/// Tries of the walk of one part. Three thousand took ten times as long, and found two more of 330 books near par of few
/// units.
const MOST_TRIES: usize = 300;
/// Offers of one part beyond which there is no walk: units are small beside amounts there.
const MOST_OFFERS: usize = 50_000;
/// How far one price moves at most, a size for each try in turn.
const STEPS: [f64; 5] = [3e-3, 1e-3, 3e-4, 1e-4, 3e-5];

/// Prices near `prices` at which the part, one `among` so many, has full amounts, if the walk finds any, and what it took.
pub(crate) fn walk(scene: Scene, prices: Vec<f64>, among: usize) -> (Option<Vec<f64>>, Spending) {
    let (lack, mut spent) = scene.lack(&prices);
    let Some(lack) = lack else { return (Some(prices), spent) };
    let offers: usize = scene.part.pairs.iter().map(|pair| scene.offers(pair.index as usize)).sum();
    if offers > MOST_OFFERS {
        return (None, spent);
    }
    let mut at = Place { lack: of_part(scene, &lack), prices };
    let mut moves = Moves(0);
    let work = scene.part.pairs.len() + offers / OFFERS_PER_PAIR;
    let tries = (MOST_WORK / among / work).min(MOST_TRIES);
    for number in 0..tries {
        let prices = at.moved(&mut moves, STEPS[number % STEPS.len()]);
        let (lack, spending) = scene.lack(&prices);
        spent = spent.plus(spending);
        let Some(lack) = lack else { return (Some(prices), spent) };
        let next = Place { lack: of_part(scene, &lack), prices };
        let tolerance = 1.0 + 0.3 * moves.unit() * moves.unit();
        if next.merit() <= at.merit() * tolerance {
            at = next;
        }
    }
    (None, spent)
}

/// The lack of each asset of the part.
fn of_part(scene: Scene, lack: &Lack) -> Vec<f64> {
    scene.part.assets.iter().map(|asset| lack[*asset as usize]).collect()
}

/// Where the walk stands.
struct Place {
    prices: Vec<f64>,
    lack: Vec<f64>,
}

impl Place {
    fn merit(&self) -> f64 {
        self.lack.iter().sum()
    }

    /// Prices of which one or two are moved by up to `step`, more often than not those of assets that lack something.
    fn moved(&self, moves: &mut Moves, step: f64) -> Vec<f64> {
        let lacking: Vec<usize> = (0..self.lack.len()).filter(|asset| self.lack[*asset] > 0.0).collect();
        let mut prices = self.prices.clone();
        for _ in 0..1 + moves.below(2) {
            let asset = if moves.unit() < 0.6 && !lacking.is_empty() {
                lacking[moves.below(lacking.len())]
            } else {
                moves.below(prices.len())
            };
            prices[asset] *= 1.0 + step * (2.0 * moves.unit() - 1.0);
        }
        prices
    }
}

/// One fixed sequence that fills its range evenly enough (SplitMix64, Steele, Lea and Flood 2014).
struct Moves(u64);

impl Moves {
    /// The next element, in [0, 1).
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The next element, as an index below `end`.
    fn below(&mut self, end: usize) -> usize {
        (self.unit() * end as f64) as usize
    }
}
