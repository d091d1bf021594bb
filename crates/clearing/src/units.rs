//! Proofs that no whole units follow any prices: that no clearing of some offers is full, at any valuations.
//!
//! # What is proved
//!
//! In every full clearing each offer sells s units for b, and the following holds for its rate r = p_A/p_B:
//!
//! 1. b ≥ ⌈s · limit⌉ and b = ⌊s · (1−ε) · r⌋, 0 ≤ s ≤ amount, and s = amount if r·(1−μ)·amount pays what the whole
//!    offer asks for;
//! 2. of every asset the offers sell at least as much as they are paid;
//! 3. r_AC = r_AB · r_BC.
//!
//! A [`Proof`] names assets and divides all cases: in each of them these conditions contradict each other. It lists
//! the divisions only, *offer k sells at most n units, or it sells more*; in each case the conditions narrow the bounds
//! of every s, b and r, until some bound is crossed. Offers that only sell or only buy one of the named assets count
//! as if they sold all, and asked for nothing. Pools count as if they sold all that they reserve. Buy orders take what
//! a full clearing leaves over, see [`crate::order`], and do not matter.
//!
//! Units are integers and exact. Rates are doubles, and every bound of one is moved outward by [`OUT`], which is more
//! than a thousand times what rounding can explain. So a narrowed bound holds for every full clearing, and
//! [`Proof::check`] accepts no proof of what is false.
//!
//! The rules of fills in `fills` are narrower than these conditions: at most one offer of a pair trades in part. They
//! are not needed.

use primitives::{Amount, AssetId, MAX_ISSUED, Price};

use crate::book::{Book, Params};
use crate::market::Groups;
use crate::rate::{approx, asked};

/// The most assets and offers of a proof.
pub const MOST_ASSETS: usize = 64;
/// See [`MOST_ASSETS`].
pub const MOST_OFFERS: usize = 1_024;
/// The most divisions of a proof.
pub const MOST_SPLITS: usize = 400;

/// Bounds of rates are moved outward by this part.
const OUT: f64 = 1e-12;
/// A rate that narrows by less than this part has not narrowed.
const LEAST_PROGRESS: f64 = 1e-7;
/// The most rounds of narrowing in one case.
const ROUNDS: u32 = 60;
/// The most units by which rounding narrows an amount in one round.
const STEPS: u32 = 64;
/// The largest ratio of two prices in the range of [`Price`], and more.
const WIDEST: f64 = 1.1e36;

/// A division of cases: the offer sells at most `most` units, or it sells more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// Whether units paid are meant.
    pub of_paid: bool,
    /// The position of the offer in the list of those between the assets of the proof, in the order of the book.
    pub offer: u32,
    /// Units.
    pub most: Amount,
}

/// A proof that no clearing fills all that must fill, at any prices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The assets whose conservation is used, ascending; at most [`MOST_ASSETS`].
    pub assets: Vec<AssetId>,
    /// The divisions of cases: each is followed by those of its first case, and then by those of its second.
    pub divisions: Vec<Division>,
}

impl Proof {
    /// Whether this proves that no clearing of `book` is full with these parameters. The cost is in proportion to the
    /// divisions, and to the offers between the assets.
    pub fn check(&self, book: &Book, params: &Params) -> bool {
        let Some((model, case)) = Model::new(book, params, &self.assets) else { return false };
        let mut rest = self.divisions.iter();
        self.divisions.len() <= MOST_SPLITS && model.is_closed(case, &mut rest) && rest.next().is_none()
    }
}

/// What a search for a proof ends with.
pub enum Search {
    /// No clearing is full.
    Proved(Proof),
    /// Prices that may have full amounts, for the assets.
    Open,
}

/// Searches for a proof.
pub fn prove(book: &Book, params: &Params, assets: &[AssetId], try_prices: &mut dyn FnMut(&[f64]) -> bool) -> Result<Proof, (&'static str, usize)> {
    let Some((model, mut case)) = Model::new(book, params, assets) else { return Err(("size", 0)) };
    if model.narrow(&mut case).is_err() {
        return Ok(Proof { assets: assets.to_vec(), divisions: Vec::new() });
    }
    let mut search = Prover { model: &model, divisions: Vec::new(), looks: 0, try_prices };
    match search.close(case, 0) {
        Ok(()) => Ok(Proof { assets: assets.to_vec(), divisions: search.divisions }),
        Err(why) => Err((why, search.looks)),
    }
}

struct Prover<'a> {
    model: &'a Model,
    divisions: Vec<Division>,
    looks: usize,
    try_prices: &'a mut dyn FnMut(&[f64]) -> bool,
}

impl Prover<'_> {
    fn close(&mut self, case: Case, depth: u32) -> Result<(), &'static str> {
        if (self.try_prices)(&self.model.prices(&case)) {
            return Err("full");
        }
        if depth > 40 {
            return Err("deep");
        }
        // A division of which one case is closed at once costs nothing.
        let mut best: Option<(f64, Division, [Case; 2])> = None;
        for division in self.model.candidates(&case) {
            self.looks += 2;
            if self.divisions.len() >= MOST_SPLITS || self.looks > 20_000 {
                return Err("budget");
            }
            let [mut first, mut second] = case.clone().divided(division);
            let (one, other) = (self.model.narrow(&mut first), self.model.narrow(&mut second));
            match (one, other) {
                (Err(_), Err(_)) => {
                    self.divisions.push(division);
                    return Ok(());
                }
                (Err(_), Ok(())) => {
                    self.divisions.push(division);
                    return self.close(second, depth);
                }
                (Ok(()), Err(_)) => {
                    self.divisions.push(division);
                    return self.close(first, depth);
                }
                (Ok(()), Ok(())) => {
                    let score = self.model.width(&first).max(self.model.width(&second)) + 0.3 * self.model.width(&first).min(self.model.width(&second));
                    if best.as_ref().is_none_or(|best| score < best.0) {
                        best = Some((score, division, [first, second]));
                    }
                }
            }
        }
        let Some((_, division, [first, second])) = best else { return Err("settled") };
        self.divisions.push(division);
        self.close(first, depth + 1)?;
        self.close(second, depth + 1)
    }
}

impl Model {
    /// How much is open in a case.
    fn width(&self, case: &Case) -> f64 {
        let units = |(least, most): &(u64, u64)| ((most - least + 1) as f64).log2();
        let n = self.assets;
        let of = |(offer, (sold, paid)): (&Offer, (&(u64, u64), &(u64, u64)))| {
            let wide = case.rates[offer.sell * n + offer.buy] * case.rates[offer.buy * n + offer.sell];
            if sold.1 == 0 { 0.0 } else { units(sold) + units(paid) + (wide.ln() * 1e3).min(20.0) }
        };
        self.offers.iter().zip(case.sold.iter().zip(&case.paid)).map(of).sum()
    }

    /// Divisions that may help.
    fn candidates(&self, case: &Case) -> Vec<Division> {
        let mut result = Vec::new();
        for (at, (offer, (least, most))) in self.offers.iter().zip(&case.sold).enumerate() {
            if least == most {
                let (least, most) = case.paid[at];
                if least < most {
                    result.push(Division { offer: at as u32, most: least + (most - least) / 2, of_paid: true });
                }
                continue;
            }
            let mut points = vec![least + (most - least) / 2];
            if *least == 0 {
                points.push(0);
            }
            if *most == offer.amount {
                points.push(most - 1);
            }
            points.sort_unstable();
            points.dedup();
            result.extend(points.into_iter().map(|most| Division { offer: at as u32, most, of_paid: false }));
        }
        result
    }

    /// Prices within the bounds: between the dearest and the cheapest of every asset in terms of the first.
    fn prices(&self, case: &Case) -> Vec<f64> {
        let n = self.assets;
        let root = (0..n).max_by_key(|a| self.offers.iter().zip(&case.sold).filter(|(o, s)| (o.sell == *a || o.buy == *a) && s.1 > 0).count()).unwrap_or(0);
        (0..n).map(|a| (case.rates[a * n + root] / case.rates[root * n + a]).sqrt()).collect()
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
pub(crate) struct Model {
    assets: usize,
    offers: Vec<Offer>,
    /// Units of each asset that others may sell.
    others: Vec<u128>,
    /// 1 − ε and 1 − μ.
    net: f64,
    sure: f64,
}

/// Bounds that hold in one case.
#[derive(Clone)]
pub(crate) struct Case {
    /// Of each offer, the least and the most that it sells, and that it is paid.
    sold: Vec<(u64, u64)>,
    paid: Vec<(u64, u64)>,
    /// Upper bounds of p_A/p_B.
    rates: Vec<f64>,
}

/// A contradiction.
struct Crossed;

impl Model {
    /// The conditions of the offers between `assets`, and the case of all; `None` if these are too many or out of
    /// order.
    pub(crate) fn new(book: &Book, params: &Params, assets: &[AssetId]) -> Option<(Model, Case)> {
        let is_known = assets.is_sorted_by(|a, b| a < b) && assets.last().is_some_and(|last| last.0 < book.assets);
        if !is_known || assets.len() > MOST_ASSETS {
            return None;
        }
        let place = |asset: AssetId| assets.binary_search(&asset).ok();
        let (mut offers, mut others) = (Vec::new(), vec![0u128; assets.len()]);
        let groups = Groups::of_book(book);
        for pair in book.pairs.iter().filter(|pair| groups.are_one(pair.sell, pair.buy)) {
            match (place(pair.sell), place(pair.buy)) {
                (Some(sell), Some(buy)) => {
                    if offers.len() + pair.len() > MOST_OFFERS {
                        return None;
                    }
                    offers.extend(pair.offers().map(|(limit, amount)| Offer::new(sell, buy, limit, amount)));
                }
                (Some(sell), None) => others[sell] += pair.runs.iter().map(|run| u128::from(run.total.amount())).sum::<u128>(),
                _ => {}
            }
        }
        for pool in &book.pools {
            place(pool.a).into_iter().for_each(|a| others[a] += u128::from(pool.reserve_a));
            place(pool.b).into_iter().for_each(|b| others[b] += u128::from(pool.reserve_b));
        }
        let (net, sure) = (1.0 - params.epsilon.to_f64(), 1.0 - params.mu.to_f64());
        let sold = offers.iter().map(|offer| (0, offer.amount)).collect();
        let paid = vec![(0, MAX_ISSUED); offers.len()];
        let n = assets.len();
        let rates = (0..n * n).map(|at| if at / n == at % n { 1.0 } else { WIDEST }).collect();
        Some((Model { assets: n, offers, others, net, sure }, Case { sold, paid, rates }))
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
            for at in 0..self.offers.len() {
                changed |= self.narrow_offer(case, at)?;
            }
            changed |= self.conserve(case)?;
            if !changed {
                break;
            }
        }
        Ok(())
    }

    /// Narrows the bounds of one offer and of its rate; whether any changed.
    fn narrow_offer(&self, case: &mut Case, at: usize) -> Result<bool, Crossed> {
        let offer = &self.offers[at];
        let (ahead, behind) = (offer.sell * self.assets + offer.buy, offer.buy * self.assets + offer.sell);
        let before = (case.sold[at], case.paid[at]);
        let mut changed = false;
        // Bounds of the rate by those of the units.
        let ((least, most), (paid_least, paid_most)) = before;
        let mut high = case.rates[ahead];
        let mut low = 1.0 / case.rates[behind];
        if let Some(asked) = offer.asked.filter(|_| most < offer.amount) {
            high = high.min(asked as f64 / (offer.amount as f64 * self.sure));
        }
        if least > 0 {
            high = high.min((paid_most as f64 + 1.0) / (least as f64 * self.net));
            if most < offer.amount && least > 1 {
                // A partial fill gives the fewest units that earn what it is paid.
                high = high.min(paid_most as f64 / ((least - 1) as f64 * self.net));
            }
            let full = offer.asked.filter(|_| least == offer.amount).map_or(0.0, |asked| asked as f64 / offer.amount as f64);
            low = low.max(offer.rate.max(full).max(paid_least as f64 / most as f64) / self.net);
        }
        if high < case.rates[ahead] * (1.0 - LEAST_PROGRESS) {
            self.tighten(case, offer.sell, offer.buy, high * (1.0 + OUT))?;
            changed = true;
        }
        if 1.0 / low < case.rates[behind] * (1.0 - LEAST_PROGRESS) {
            self.tighten(case, offer.buy, offer.sell, 1.0 / low * (1.0 + OUT))?;
            changed = true;
        }
        // Bounds of the units by those of the rate.
        let (high, low) = (case.rates[ahead] * (1.0 + OUT), 1.0 / case.rates[behind] * (1.0 - OUT));
        let (mut sold, mut paid) = before;
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
        for _ in 0..STEPS {
            if sold.1 < sold.0 || sold.1 == 0 || offer.can_be_paid(sold.1, paid.1, high * self.net) {
                break;
            }
            sold.1 -= 1;
        }
        for _ in 0..STEPS {
            if sold.1 < sold.0 || sold.0 == 0 || offer.can_be_paid(sold.0, paid.1, high * self.net) {
                break;
            }
            sold.0 += 1;
        }
        if sold.0 > sold.1 {
            return Err(Crossed);
        }
        let asked_least = u64::try_from(asked(offer.limit, sold.0)).map_err(|_| Crossed)?;
        paid.0 = paid.0.max(asked_least).max(down(sold.0 as f64 * low * self.net));
        paid.1 = paid.1.min(up(sold.1 as f64 * high * self.net));
        if paid.0 > paid.1 {
            return Err(Crossed);
        }
        changed |= (sold, paid) != before;
        (case.sold[at], case.paid[at]) = (sold, paid);
        Ok(changed)
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
    fn divided(self, Division { offer, most, of_paid }: Division) -> [Case; 2] {
        let mut first = self.clone();
        let mut second = self;
        let at = offer as usize;
        let (one, other) = match of_paid {
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
