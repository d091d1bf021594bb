//! What the offers of one pair can sell and be paid while its rate stays between two bounds.
//!
//! Amounts are doubles here, rounded so that every bound errs to the side that proves less.

use primitives::{Amount, MAX_ISSUED, Price};

use crate::book::{PairBook, Params};
use crate::fills::{PARTIAL_TRIES, Use, usable};
use crate::rate::{Rate, approx};

/// Offers of which the bounds do not tell whether they fill, beyond which they are not tried one way and the other.
const MOST_OPEN: u32 = 4;

/// So many offers that must fill, at most, are looked at one by one.
const FEW: usize = 16;

/// Stands for every pay-out that is more than can exist.
const BEYOND: f64 = 9.3e18;

/// An offer that may fill and need not.
#[derive(Clone, Copy, Debug)]
struct Choice {
    amount: f64,
    /// What it asks for, or less.
    asked: f64,
    /// The least that it is paid for all of it.
    paid: f64,
    /// A little less than its limit.
    limit: f64,
    /// Whether it may also have to fill, or not be able to, at some rate between the bounds.
    open: bool,
}

impl Choice {
    /// Whether its numbers are whole as doubles.
    fn is_exact(&self) -> bool {
        self.amount.max(self.asked) < 9e15
    }

    fn paid_at_least(&self, at_rate: impl Fn(Amount) -> f64) -> f64 {
        if self.is_exact() { self.paid.max(at_rate(self.amount as Amount)) } else { self.paid }
    }
}

/// What one pair can do.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    /// Units that are sold in any case, and the least that is paid for them.
    must: (f64, f64),
    /// Those units by offers, if they are few: (amount, asked for at least).
    few: Option<Vec<(Amount, f64)>>,
    /// The net rate is between these.
    rate: (f64, f64),
    /// In execution order.
    options: Vec<Choice>,
    open: u32,
    /// Units sold.
    pub(super) sold: (f64, f64),
    /// Units paid.
    pub(super) paid: (f64, f64),
}

/// What full fills come to.
struct Case {
    sold: f64,
    /// The least that is paid.
    paid: f64,
    /// The least that the net rate can be.
    rate: f64,
}

/// `ceil(amount · limit)` or less.
fn asked(limit: Price, amount: Amount) -> f64 {
    (amount as f64 * approx(limit) * (1.0 - 4e-15)).ceil().max(1.0)
}

/// Whether an offer must fill, be its pay-out more than can exist or not.
fn must(rate: &Rate, limit: Price, amount: Amount) -> bool {
    rate.sure.reaches(limit) && rate.sure.payout(amount).is_none_or(|paid| Rate::fair(limit, amount, paid))
}

/// The rate at one end of a range of ratios; `None` where it is out of the range of prices.
fn rate(ratio: f64, params: &Params) -> Option<Rate> {
    let price = Price::from_f64(ratio)?;
    Some(Rate::new(price, Price::ONE, params.epsilon, params.mu))
}

impl Lane {
    /// The pair where `p_sell / p_buy` is between `least` and `most`.
    pub(super) fn new(pair: &PairBook, params: &Params, least: f64, most: f64) -> Lane {
        let (low, high) = (rate(least * (1.0 - 4e-15), params), rate(most * (1.0 + 4e-15), params));
        let range = (
            low.as_ref().map_or(0.0, |rate| rate.to_f64() * (1.0 - 1e-14)),
            high.as_ref().map_or(f64::INFINITY, |rate| rate.to_f64() * (1.0 + 1e-14)),
        );
        let mut lane = Lane {
            must: (0.0, 0.0),
            few: Some(vec![]),
            rate: range,
            options: vec![],
            open: 0,
            sold: (0.0, 0.0),
            paid: (0.0, f64::INFINITY),
        };
        for (limit, amount) in pair.leading(|limit| high.as_ref().is_none_or(|rate| rate.reaches(limit))) {
            lane.add(limit, amount, low.as_ref(), high.as_ref());
        }
        lane.sold = (lane.must.0, lane.must.0 + lane.options.iter().map(|option| option.amount).sum::<f64>());
        lane.paid.0 = lane.must.1;
        lane
    }

    fn add(&mut self, limit: Price, amount: Amount, low: Option<&Rate>, high: Option<&Rate>) {
        let asked = asked(limit, amount);
        let paid = asked.max(low.map_or(0.0, |rate| rate.payout(amount).map_or(BEYOND, |paid| paid as f64)));
        // What asks for more than can exist never fills in full.
        if asked <= MAX_ISSUED as f64 && low.is_some_and(|rate| must(rate, limit, amount)) {
            self.must = (self.must.0 + amount as f64, self.must.1 + paid);
            match &mut self.few {
                Some(few) if few.len() < FEW => few.push((amount, asked)),
                few => *few = None,
            }
            return;
        }
        if high.is_some_and(|rate| usable(rate, limit, amount) == Use::Nothing) {
            return;
        }
        let is_sure = low.is_some_and(|rate| usable(rate, limit, amount) != Use::Nothing)
            && high.is_some_and(|rate| rate.payout(amount).is_some() && !must(rate, limit, amount));
        self.open += u32::from(!is_sure);
        let limit = approx(limit) * (1.0 - 1e-14);
        self.options.push(Choice { amount: amount as f64, asked, paid, limit, open: !is_sure });
    }

    /// The most that can be sold for `paid` units.
    pub(super) fn most(&self, paid: f64) -> f64 {
        if self.open > MOST_OPEN {
            return self.most_loosely(paid);
        }
        let mut most = 0.0f64;
        self.each(|case, next| {
            if case.paid <= paid {
                most = most.max(case.sold + next.map_or(0.0, |next| self.most_of(next, paid - case.paid, case.rate)));
            }
        });
        most.min(self.sold.1)
    }

    /// The least that is paid if `sold` units are sold at least; infinite if they cannot be.
    pub(super) fn least(&self, sold: f64) -> f64 {
        if self.open > MOST_OPEN {
            return self.least_loosely(sold);
        }
        let mut least = f64::INFINITY;
        self.each(|case, next| {
            if case.sold >= sold {
                least = least.min(case.paid);
            } else if let Some(next) = next.filter(|next| case.paid < least && case.sold + next.amount >= sold) {
                least = least.min(case.paid + self.least_of(next, sold - case.sold, case.rate));
            }
        });
        least
    }

    /// Calls with every choice of offers that may fill, and the offer that may then fill in part.
    fn each(&self, mut call: impl FnMut(Case, Option<&Choice>)) {
        for set in 0..1u32 << self.open {
            let has = |number: u32| set >> number & 1 == 1;
            let mut filled: Vec<&Choice> = Vec::with_capacity(self.options.len());
            let open = self.options.iter().filter(|option| option.open);
            filled.extend((0..).zip(open).filter(|(number, _)| has(*number)).map(|(_, option)| option));
            call(self.case(&filled, None), None);
            let mut number = 0;
            for option in &self.options {
                if !option.open || !has(number) {
                    call(self.case(&filled, Some(option)), Some(option));
                }
                if option.open {
                    number += 1;
                } else {
                    filled.push(option);
                    call(self.case(&filled, None), None);
                }
            }
        }
    }

    /// The sums where `filled` fill in full, and `next` could. As each is paid what it asks for, the rate cannot be so low
    /// that it would not be, and all others are paid at that rate, too.
    fn case(&self, filled: &[&Choice], next: Option<&Choice>) -> Case {
        let sold = self.must.0 + filled.iter().map(|option| option.amount).sum::<f64>();
        let all = || filled.iter().copied().chain(next);
        let base =
            Case { sold, paid: self.must.1 + filled.iter().map(|option| option.paid).sum::<f64>(), rate: self.rate.0 };
        let Some(few) = self.few.as_ref().filter(|few| few.len() + filled.len() <= 2 * FEW) else { return base };
        // The offer that asks for most of each unit.
        let dearest = all().max_by(|a, b| (a.asked / a.amount).total_cmp(&(b.asked / b.amount)));
        let Some(dearest) = dearest.filter(|option| option.open && option.is_exact()) else { return base };
        let (amount, asked) = (dearest.amount as u128, dearest.asked as u128);
        let at_rate = |own: Amount| (u128::from(own) * asked / amount) as f64;
        let must: f64 = few.iter().map(|(own, asked)| asked.max(at_rate(*own))).sum();
        let paid: f64 = filled.iter().map(|option| option.paid_at_least(at_rate)).sum();
        let rate = self.rate.0.max(dearest.asked / dearest.amount * (1.0 - 1e-15));
        Case { sold, paid: base.paid.max(must + paid), rate }
    }

    /// The most and the fewest units that a partial fill of `option` can give for `paid` units: the fewest that earn them
    /// at some rate between the bounds, at its limit or better.
    fn partial(&self, option: &Choice, paid: f64, rate: f64) -> (f64, f64) {
        let fair = (paid / option.limit).floor();
        let most = (paid / (rate * (1.0 - 1e-14))).ceil().min(fair).min(option.amount);
        (most, (paid / self.rate.1 * (1.0 - 1e-13)).ceil())
    }

    fn most_of(&self, option: &Choice, paid: f64, rate: f64) -> f64 {
        let mut paid = paid.min(option.amount * self.rate.1).floor();
        let mut most = 0.0;
        for _ in 0..PARTIAL_TRIES {
            if paid < 1.0 {
                return 0.0;
            }
            let fewest;
            (most, fewest) = self.partial(option, paid, rate);
            if most >= fewest {
                break;
            }
            paid -= 1.0;
        }
        most
    }

    fn least_of(&self, option: &Choice, sold: f64, rate: f64) -> f64 {
        let by_rate = (sold - 1.0) * rate;
        let mut paid = ((sold * option.limit).max(by_rate) * (1.0 - 1e-13)).ceil().max(1.0);
        for _ in 0..PARTIAL_TRIES {
            let (most, fewest) = self.partial(option, paid, rate);
            if most >= fewest && most >= sold {
                break;
            }
            paid += 1.0;
        }
        paid
    }

    /// What a unit of `option` is paid at least, but for rounding.
    fn unit(&self, option: &Choice) -> f64 {
        option.limit.max(self.rate.0)
    }

    fn cheapest_first(&self) -> Vec<Choice> {
        let mut options = self.options.clone();
        options.sort_by(|a, b| (a.paid / a.amount).total_cmp(&(b.paid / b.amount)));
        options
    }

    /// The same if any offers may fill, in any order: the cheapest, and one in part.
    fn most_loosely(&self, paid: f64) -> f64 {
        let (mut sold, mut rest) = (self.must.0, paid - self.must.1);
        for option in self.cheapest_first() {
            if option.paid <= rest {
                (sold, rest) = (sold + option.amount, rest - option.paid);
                continue;
            }
            let slope = option.amount / option.paid;
            let gain = |option: &Choice| (option.paid + 1.0) * (1.0 / self.unit(option) - slope);
            let more = self.options.iter().map(gain).fold(0.0, f64::max);
            return ((sold + rest.max(0.0) * slope + more + 1.0) * (1.0 + 1e-12)).min(self.sold.1);
        }
        self.sold.1
    }

    fn least_loosely(&self, sold: f64) -> f64 {
        let (mut paid, mut rest) = (self.must.1, sold - self.must.0);
        for option in self.cheapest_first() {
            if rest <= 0.0 {
                break;
            }
            if option.amount <= rest {
                (paid, rest) = (paid + option.paid, rest - option.amount);
                continue;
            }
            let slope = option.paid / option.amount;
            let gain = |option: &Choice| option.amount * (slope - self.unit(option));
            let less = self.options.iter().map(gain).fold(0.0, f64::max) + self.rate.0;
            return ((paid + rest * slope - less) * (1.0 - 1e-12)).max(self.must.1);
        }
        paid
    }

    /// The most that units sold, worth `own` each, can be worth more than units paid, worth `other` each.
    pub(super) fn gain(&self, own: f64, other: f64) -> f64 {
        let full = |option: &Choice| (option.amount * own - option.paid * other).max(0.0);
        let part = |option: &Choice| {
            let rounded = ((option.paid + 1.0) * (own / self.unit(option) - other)).max(0.0) + own;
            rounded.min(option.amount * own) - full(option)
        };
        let sum = self.must.0 * own - self.must.1 * other + self.options.iter().map(full).sum::<f64>();
        let most = sum + self.options.iter().map(part).fold(0.0, f64::max);
        most.min(self.sold.1 * own - self.paid.0 * other)
    }
}
