//! Proofs that no whole units follow any prices: that no clearing of some offers is full, at any valuations.
//!
//! # The conditions
//!
//! In every full clearing each offer sells s units for b, and the following holds for its rate r = p_A/p_B:
//!
//! 1. b ≥ ⌈s · limit⌉ and b = ⌊s · (1−ε) · r⌋, where s is the offer's amount or the fewest units that earn b; it is the
//!    amount if (1−μ) · r pays what the whole offer asks for;
//! 2. of every asset the offers sell at least as much as they are paid;
//! 3. r_AC = r_AB · r_BC;
//! 4. offers of a pair execute in their order: at most one trades in part, and one that trades at all has all before
//!    it in full whose effective limits are at most its limit, see [`mod@crate::fills`];
//! 5. what is sold of an asset and not paid out is worth no more than what all offers together leave to the auctioneer.
//!    Each offer leaves its commission, and less than a unit of what it buys, or of what it sells if it trades in part.
//!
//! The last follows from the others: the values that offers leave add up to the values of the surpluses, of which none
//! is negative. But bounds that are narrowed one by one do not find it. It holds where all that trades is known.
//!
//! A [`UnitsProof`] names assets and divides all cases: in each of them these conditions contradict each other. It
//! lists the divisions only, *offer k sells at most n units, or it sells more*, or the same of what it is paid. In each
//! case the conditions narrow the bounds of every s, b and r, until some bound is crossed. Offers that only sell, or
//! only buy, one of the named assets count as if they sold all, or asked for nothing. Pools count as if they sold all
//! that they reserve; with either of them, condition 5 is not used. Orders for exact amounts take what a full clearing
//! leaves over, see [`crate::order`], and do not matter.
//!
//! Units are integers and exact. Rates are doubles, and every bound of one is moved outward by [`OUT`], which is more
//! than a thousand times what rounding can explain. So a narrowed bound holds for every full clearing, and
//! [`UnitsProof::check`] accepts no proof of what is false.

use std::cell::Cell;
use std::ops::Range;

use primitives::{Amount, AssetId, MAX_ISSUED, Price};

use crate::book::{Book, Params};
use crate::market::Groups;
use crate::rate::{approx, asked};

mod group;
mod order;
mod search;
mod value;

pub(crate) use group::seek_units;
use search::{Settled, settle};

/// The most assets of a proof, the most offers between them, and the most divisions.
pub const MOST_ASSETS: usize = 64;
/// See [`MOST_ASSETS`].
pub const MOST_OFFERS: usize = 1_024;
/// See [`MOST_ASSETS`].
pub const MOST_DIVISIONS: usize = 512;

/// Bounds of rates are moved outward by this part.
const OUT: f64 = 1e-12;
/// A rate that narrows by less than this part has not narrowed.
const LEAST_PROGRESS: f64 = 1e-7;
/// The most rounds of narrowing in one case.
const ROUNDS: u32 = 60;
/// The most units by which rounding narrows an amount in one round.
const STEPS: u32 = 64;
/// The cost of narrowing the bounds of one offer, and the ratios that are compared for the cost of one look.
const OFFER_LOOKS: usize = 4;
const RATES_PER_LOOK: usize = 16;
/// The largest ratio of two prices in the range of [`Price`], and more.
const WIDEST: f64 = 1.1e36;

/// A division of cases by one offer. In the first case the offer sells (or is paid) at most `most` units, in the second
/// case more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// The position of the offer in the list of those between the assets of the proof, in the order of the book.
    pub offer: u32,
    /// Whether the units are those that it is paid, and not those that it sells.
    pub is_paid: bool,
    /// Units.
    pub most: Amount,
}

/// A proof that no clearing fills all that must fill, at any prices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitsProof {
    /// The assets whose conservation is used, ascending; at most [`MOST_ASSETS`].
    pub assets: Vec<AssetId>,
    /// The divisions of cases: each is followed by those of its first case, and then by those of its second.
    pub divisions: Vec<Division>,
}

impl UnitsProof {
    /// Whether this proves that no clearing of `book` is full with these parameters. The cost is in proportion to the
    /// divisions, and to the offers between the assets.
    pub fn check(&self, book: &Book, params: &Params) -> bool {
        let Some((model, case)) = Model::new(book, params, &self.assets) else { return false };
        let mut rest = self.divisions.iter();
        self.divisions.len() <= MOST_DIVISIONS && model.is_closed(case, &mut rest) && rest.next().is_none()
    }
}

/// One offer between two of the assets.
struct Offer {
    sell: usize,
    buy: usize,
    limit: Price,
    /// The limit as a double.
    rate: f64,
    amount: Amount,
    /// What the whole offer asks for; `None` if that cannot exist, so that it need not fill.
    asked: Option<u64>,
}

/// The conditions.
struct Model {
    assets: usize,
    offers: Vec<Offer>,
    /// The positions of the offers of each pair, which are in execution order.
    pairs: Vec<Range<usize>>,
    /// Units of each asset that others may sell.
    others: Vec<u128>,
    /// Whether no offer and no pool trades between these assets and others.
    is_whole: bool,
    /// 1 − ε and 1 − μ.
    net: f64,
    sure: f64,
    /// Work done, in looks.
    looks: Cell<u64>,
}

/// Bounds that hold in one case.
#[derive(Clone)]
struct Case {
    /// Of each offer, the least and the most that it sells, and that it is paid.
    sold: Vec<Bounds>,
    paid: Vec<Bounds>,
    /// Upper bounds of p_A/p_B.
    rates: Vec<f64>,
}

/// The least and the most.
type Bounds = (u64, u64);

/// A contradiction.
struct Crossed;

impl Model {
    /// The conditions of the offers between `assets`, and the case of all; `None` if these are too many or out of
    /// order.
    fn new(book: &Book, params: &Params, assets: &[AssetId]) -> Option<(Model, Case)> {
        let is_known = assets.is_sorted_by(|a, b| a < b) && assets.last().is_some_and(|last| last.0 < book.assets);
        if !is_known || assets.len() > MOST_ASSETS {
            return None;
        }
        let place = |asset: AssetId| assets.binary_search(&asset).ok();
        let (mut offers, mut pairs, mut others) = (Vec::new(), Vec::new(), vec![0u128; assets.len()]);
        let groups = Groups::of_book(book);
        let mut is_whole = true;
        for pair in book.pairs.iter().filter(|pair| groups.are_one(pair.sell, pair.buy)) {
            is_whole &= place(pair.sell).is_some() == place(pair.buy).is_some();
            match (place(pair.sell), place(pair.buy)) {
                (Some(sell), Some(buy)) => {
                    if offers.len() + pair.len() > MOST_OFFERS {
                        return None;
                    }
                    let first = offers.len();
                    offers.extend(pair.offers().map(|(limit, amount)| Offer::new(sell, buy, limit, amount)));
                    pairs.push(first..offers.len());
                }
                (Some(sell), None) => {
                    others[sell] += pair.runs.iter().map(|run| u128::from(run.total.amount())).sum::<u128>()
                }
                _ => {}
            }
        }
        for pool in &book.pools {
            place(pool.a).into_iter().for_each(|a| others[a] += u128::from(pool.reserve_a));
            place(pool.b).into_iter().for_each(|b| others[b] += u128::from(pool.reserve_b));
            is_whole &= place(pool.a).is_none() && place(pool.b).is_none();
        }
        let (net, sure) = (1.0 - params.epsilon.to_f64(), 1.0 - params.mu.to_f64());
        let sold = offers.iter().map(|offer| (0, offer.amount)).collect();
        let paid = vec![(0, MAX_ISSUED); offers.len()];
        let n = assets.len();
        let rates = (0..n * n).map(|at| if at / n == at % n { 1.0 } else { WIDEST }).collect();
        Some((
            Model { assets: n, offers, pairs, others, is_whole, net, sure, looks: Cell::new(0) },
            Case { sold, paid, rates },
        ))
    }

    /// Whether every case of `case` leads to a contradiction with the divisions given.
    fn is_closed<'a>(&self, mut case: Case, divisions: &mut impl Iterator<Item = &'a Division>) -> bool {
        if self.narrow(&mut case).is_err() {
            return true;
        }
        let Some(division) = divisions.next().filter(|division| (division.offer as usize) < self.offers.len()) else {
            return false;
        };
        let [first, second] = case.divided(*division);
        self.is_closed(first, divisions) && self.is_closed(second, divisions)
    }

    /// Narrows all bounds until nothing changes.
    fn narrow(&self, case: &mut Case) -> Result<(), Crossed> {
        for _ in 0..ROUNDS {
            let mut changed = false;
            self.spend(OFFER_LOOKS * self.offers.len());
            for at in 0..self.offers.len() {
                changed |= self.narrow_offer(case, at)?;
            }
            changed |= self.keep_order(case)? | self.conserve(case)? | self.conserve_value(case)?;
            if !changed {
                break;
            }
        }
        Ok(())
    }

    fn spend(&self, looks: usize) {
        self.looks.set(self.looks.get() + looks as u64);
    }

    /// Narrows the bounds of one offer and of its rate; whether any changed.
    fn narrow_offer(&self, case: &mut Case, at: usize) -> Result<bool, Crossed> {
        let Offer { sell, buy, .. } = self.offers[at];
        let (high, low) = self.rate_bounds(case, at);
        let mut changed = false;
        for (a, b, most) in [(sell, buy, high), (buy, sell, 1.0 / low)] {
            if most < case.rates[a * self.assets + b] * (1.0 - LEAST_PROGRESS) {
                self.tighten(case, a, b, most * (1.0 + OUT))?;
                changed = true;
            }
        }
        let before = (case.sold[at], case.paid[at]);
        (case.sold[at], case.paid[at]) = self.unit_bounds(case, at)?;
        Ok(changed || before != (case.sold[at], case.paid[at]))
    }

    /// Bounds of the rate of an offer, by those of its units.
    fn rate_bounds(&self, case: &Case, at: usize) -> (f64, f64) {
        let (offer, (least, most), (paid_least, paid_most)) = (&self.offers[at], case.sold[at], case.paid[at]);
        let mut high = f64::INFINITY;
        if let Some(asked) = offer.asked.filter(|_| most < offer.amount) {
            high = asked as f64 / (offer.amount as f64 * self.sure);
        }
        if least == 0 {
            return (high, f64::MIN_POSITIVE);
        }
        high = high.min((paid_most as f64 + 1.0) / (least as f64 * self.net));
        if most < offer.amount && least > 1 {
            high = high.min(paid_most as f64 / ((least - 1) as f64 * self.net));
        }
        let whole =
            offer.asked.filter(|_| least == offer.amount).map_or(0.0, |asked| asked as f64 / offer.amount as f64);
        (high, offer.rate.max(whole).max(paid_least as f64 / most as f64) / self.net)
    }

    /// Bounds of the units of an offer, sold and paid, by those of its rate and by rounding.
    fn unit_bounds(&self, case: &Case, at: usize) -> Result<(Bounds, Bounds), Crossed> {
        let offer = &self.offers[at];
        let high = case.rates[offer.sell * self.assets + offer.buy] * (1.0 + OUT);
        let low = 1.0 / case.rates[offer.buy * self.assets + offer.sell] * (1.0 - OUT);
        let (mut sold, mut paid) = (case.sold[at], case.paid[at]);
        if offer.asked.is_some_and(|asked| low * self.sure * offer.amount as f64 * (1.0 - OUT) >= asked as f64) {
            sold.0 = offer.amount;
        }
        if high * self.net * (1.0 + OUT) < offer.rate {
            sold.1 = 0;
        }
        sold.1 = sold.1.min(up(paid.1 as f64 / offer.rate)).min(up((paid.1 as f64 + 1.0) / (low * self.net)));
        if sold.1 < offer.amount {
            sold.1 = sold.1.min(up(paid.1 as f64 / (low * self.net)).saturating_add(1));
        }
        if paid.0 > 0 {
            sold.0 = sold.0.max((paid.0 as f64 / (high * self.net) * (1.0 - OUT)).ceil() as u64).max(1);
        }
        let is_paid = |sold: u64| sold == 0 || offer.can_be_paid(sold, paid.1, high * self.net);
        let mut steps = 0..STEPS;
        while sold.0 <= sold.1 && !is_paid(sold.1) && steps.next().is_some() {
            sold.1 -= 1;
        }
        while sold.0 <= sold.1 && !is_paid(sold.0) && steps.next().is_some() {
            sold.0 += 1;
        }
        if sold.0 > sold.1 {
            return Err(Crossed);
        }
        let asked_least = u64::try_from(asked(offer.limit, sold.0)).map_err(|_| Crossed)?;
        paid.0 = paid.0.max(asked_least).max(down(sold.0 as f64 * low * self.net));
        paid.1 = paid.1.min(up(sold.1 as f64 * high * self.net));
        if paid.0 > paid.1 { Err(Crossed) } else { Ok((sold, paid)) }
    }

    /// Narrows the units of all offers by the conservation of every asset; whether any changed.
    fn conserve(&self, case: &mut Case) -> Result<bool, Crossed> {
        let (mut supply, mut demand) = (self.others.clone(), vec![0u128; self.assets]);
        for (offer, (sold, paid)) in self.offers.iter().zip(case.sold.iter().zip(&case.paid)) {
            supply[offer.sell] += u128::from(sold.1);
            demand[offer.buy] += u128::from(paid.0);
        }
        if supply.iter().zip(&demand).any(|(supply, demand)| supply < demand) {
            return Err(Crossed);
        }
        let mut changed = false;
        for (offer, (sold, paid)) in self.offers.iter().zip(case.sold.iter_mut().zip(&mut case.paid)) {
            let rest = supply[offer.sell] - u128::from(sold.1);
            let least = demand[offer.sell].saturating_sub(rest) as u64;
            let most = supply[offer.buy] - (demand[offer.buy] - u128::from(paid.0));
            let most = u64::try_from(most).unwrap_or(u64::MAX);
            changed |= least > sold.0 || most < paid.1;
            (sold.0, paid.1) = (sold.0.max(least), paid.1.min(most));
        }
        Ok(changed)
    }

    /// Lowers the upper bound of p_A/p_B, and of all ratios that follow from it.
    fn tighten(&self, case: &mut Case, a: usize, b: usize, most: f64) -> Result<(), Crossed> {
        let n = self.assets;
        self.spend(n * n / RATES_PER_LOOK);
        if most * case.rates[b * n + a] < 1.0 - OUT {
            return Err(Crossed);
        }
        for from in 0..n {
            let first = case.rates[from * n + a] * most * (1.0 + 1e-15);
            for to in 0..n {
                let over = first * case.rates[b * n + to] * (1.0 + 1e-15);
                if over < case.rates[from * n + to] && from != to {
                    case.rates[from * n + to] = over;
                }
            }
        }
        Ok(())
    }
}

impl Offer {
    fn new(sell: usize, buy: usize, limit: Price, amount: Amount) -> Offer {
        let asked = u64::try_from(asked(limit, amount)).ok().filter(|asked| *asked <= MAX_ISSUED);
        Offer { sell, buy, limit, rate: approx(limit), amount, asked }
    }

    /// Whether some whole number up to `most` pays for `sold` units at a rate up to `high`.
    fn can_be_paid(&self, sold: Amount, most: u64, high: f64) -> bool {
        asked(self.limit, sold) <= u128::from(most.min(up(sold as f64 * high)))
    }
}

impl Case {
    /// Both cases of a division.
    fn divided(self, Division { offer, most, is_paid }: Division) -> [Case; 2] {
        let mut first = self.clone();
        let mut second = self;
        let at = offer as usize;
        let (one, other) = match is_paid {
            true => (&mut first.paid[at], &mut second.paid[at]),
            false => (&mut first.sold[at], &mut second.sold[at]),
        };
        one.1 = one.1.min(most);
        other.0 = other.0.max(most.saturating_add(1));
        [first, second]
    }
}

/// The floor of what may be up to a part [`OUT`] more than `x`.
fn up(x: f64) -> u64 {
    (x * (1.0 + OUT)) as u64
}

/// The floor of what may be up to a part [`OUT`] less than `x`.
fn down(x: f64) -> u64 {
    (x * (1.0 - OUT)) as u64
}

#[cfg(test)]
mod tests {
    use kernel::Dice;

    use super::*;
    use crate::rate::Rate;
    use crate::workload::{self, hostile, thin};
    use crate::{SortedOffers, clear, verify};

    /// Divides cases at random and keeps those that contain a full clearing: none of its units is ever excluded.
    fn stays_open(assets: u32, offers: &[crate::Offer], seed: u64) -> bool {
        let sorted = SortedOffers::new(assets, offers);
        let (book, params) = (sorted.book(), Params::default());
        let clearing = clear(&book, &params, None).expect("a proper book");
        let all: Vec<AssetId> = (0..assets).map(AssetId).collect();
        let Some((model, mut case)) = Model::new(&book, &params, &all).filter(|_| clearing.full) else { return false };
        let fills = verify(&book, &params, &clearing).expect("it verifies").fills;
        let groups = Groups::of_book(&book);
        let mut units = Vec::new();
        for (pair, fills) in book.pairs.iter().zip(&fills).filter(|(pair, _)| groups.are_one(pair.sell, pair.buy)) {
            let [sell, buy] = [pair.sell, pair.buy].map(|asset| clearing.valuations[asset.0 as usize]);
            let first = units.len();
            units.resize(first + pair.len(), (0, 0));
            let rate = Rate::new(sell, buy, params.epsilon, params.mu);
            fills.each(pair, &rate).for_each(|(index, sold, bought)| units[first + index] = (sold, bought));
        }
        let mut random = Dice::new(seed);
        for _ in 0..60 {
            assert!(model.narrow(&mut case).is_ok(), "seed {seed}");
            for ((sold, paid), (least, most)) in units.iter().zip(case.sold.iter().zip(&case.paid)) {
                assert!((least.0..=least.1).contains(sold) && (most.0..=most.1).contains(paid), "seed {seed}");
            }
            if units.is_empty() {
                break;
            }
            let offer = random.below(units.len() as u64) as usize;
            let is_paid = random.below(2) == 0;
            let (bounds, own) = match is_paid {
                true => (case.paid[offer], units[offer].1),
                false => (case.sold[offer], units[offer].0),
            };
            if bounds.0 < bounds.1 {
                let most = bounds.0 + random.below(bounds.1 - bounds.0);
                let [first, second] = case.divided(Division { offer: offer as u32, is_paid, most });
                case = if own <= most { first } else { second };
            }
        }
        true
    }

    #[test]
    fn no_case_with_a_full_clearing_is_closed() {
        let mut open = 0;
        for seed in 0..400 {
            let (thin, least) = (thin::thin(seed, 80), hostile::within_minimum(seed, 12, 60, 2_115));
            let few = workload::of_few_units(1, 3, 12, seed);
            let hostile = hostile::hostile(seed, 12, 60);
            open += u32::from(stays_open(thin.assets, &thin.offers, seed));
            open += u32::from(stays_open(least.assets, &least.offers, seed));
            open += u32::from(stays_open(hostile.assets, &hostile.offers, seed));
            open += u32::from(stays_open(3, &few, seed));
        }
        assert!(open > 1_000, "{open}");
    }
}
