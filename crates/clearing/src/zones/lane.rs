//! What the offers of one pair can sell and be paid while its rate stays between two bounds.
//!
//! Amounts are doubles here, rounded so that every bound errs to the side that proves less.

use primitives::{Amount, MAX_ISSUED, Price};

use crate::fills::PARTIAL_TRIES;
use crate::rate::approx;

/// Offers of which the bounds do not tell whether they fill, beyond which they are not tried one way and the other.
const MOST_OPEN: u32 = 4;

/// So many offers that must fill, at most, are looked at one by one.
const FEW: usize = 16;

/// Stands for every pay-out that is more than can exist.
const BEYOND: f64 = 9.3e18;
/// The most that can exist.
const MOST: f64 = MAX_ISSUED as f64;
/// Whole doubles below this are exact.
const EXACT: f64 = 9e15;
/// Rates are off by no more than this part of them.
const DOUBT: f64 = 1e-13;

/// An offer that may fill and need not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub(super) amount: f64,
    /// What it asks for, or less, and that or more.
    asked: f64,
    asked_most: f64,
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
        self.amount.max(self.asked) < EXACT
    }

    fn paid_at_least(&self, at_rate: impl Fn(Amount) -> f64) -> f64 {
        if self.is_exact() { self.paid.max(at_rate(self.amount as Amount)) } else { self.paid }
    }
}

/// Bounds on what one pair sells and is paid, in whole units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    pub(super) sold: (f64, f64),
    pub(super) paid: (f64, f64),
}

/// What one pair can do.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    /// `p_sell / p_buy` is between these, and the net rate between those.
    pub(super) ratio: (f64, f64),
    pub(super) rate: (f64, f64),
    /// Units that are sold in any case, and the least that is paid for them.
    must: (f64, f64),
    /// Those units by offers, if they are few: (amount, asked for at least).
    few: Option<Vec<(Amount, f64)>>,
    /// In execution order.
    options: Vec<Choice>,
    /// The same by what they are paid for each unit, if many are open.
    cheapest: Vec<Choice>,
    open: u32,
    /// Units sold if all fill.
    all: f64,
    /// What is paid then, at most.
    paid: f64,
    /// By how much the pay-outs of offers that must fill are rounded down, at most.
    rounded: f64,
    /// Offers that must fill.
    count: f64,
}

/// What full fills come to.
struct Case {
    sold: f64,
    /// The least that is paid.
    paid: f64,
    /// The least that the net rate can be.
    rate: f64,
}

/// `ceil(amount · limit)` or less, and that or more; the same where doubles are fine enough.
fn asked(limit: Price, amount: Amount) -> (f64, f64) {
    let product = amount as f64 * approx(limit);
    let least = (product * (1.0 - 4e-15)).ceil().max(1.0);
    if product > 1e14 {
        return (least, (product * (1.0 + 4e-15)).ceil());
    }
    let least = if limit.accepts(amount, least as u64) { least } else { least + 1.0 };
    (least, least)
}

/// No more than the whole number that sums of doubles make `x`, and no less.
pub(super) fn down(x: f64) -> f64 {
    if x < EXACT { x } else { x * (1.0 - 1e-12) }
}

pub(super) fn up(x: f64) -> f64 {
    if x < EXACT { x } else { x * (1.0 + 1e-12) }
}

/// An offer, as doubles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    amount: f64,
    limit: f64,
    /// What it asks for, or less, and that or more.
    asked: f64,
    asked_most: f64,
}

impl Terms {
    pub(super) fn of(limit: Price, amount: Amount) -> Terms {
        let (asked, asked_most) = asked(limit, amount);
        Terms { amount: amount as f64, limit: approx(limit), asked, asked_most }
    }
}

/// What of a rate the band leaves: net of commission, and at the end where offers must fill.
#[derive(Clone, Copy, Debug)]
pub(super) struct Band {
    pub(super) net: f64,
    pub(super) sure: f64,
}

impl Band {
    /// The ratios from which on an offer may fill, and must.
    pub(super) fn turns(&self, offer: &Choice) -> (f64, f64) {
        (offer.asked / offer.amount / self.net, offer.asked_most / offer.amount / self.sure)
    }
}

impl Lane {
    /// The pair of `offers`, by limits, where `p_sell / p_buy` is within `ratio`.
    pub(super) fn new(offers: &[Terms], band: Band, ratio: (f64, f64)) -> Lane {
        let mut lane = Lane {
            ratio,
            rate: (ratio.0 * band.net * (1.0 - DOUBT), ratio.1 * band.net * (1.0 + DOUBT)),
            must: (0.0, 0.0),
            few: Some(vec![]),
            options: vec![],
            cheapest: vec![],
            open: 0,
            all: 0.0,
            paid: 0.0,
            rounded: 0.0,
            count: 0.0,
        };
        let most = lane.rate.1;
        let sure = (ratio.0 * band.sure * (1.0 - DOUBT), ratio.1 * band.sure * (1.0 + DOUBT));
        for offer in offers.iter().take_while(|offer| offer.limit * (1.0 - DOUBT) <= most) {
            lane.add(offer, sure);
        }
        if lane.open > MOST_OPEN {
            lane.cheapest = lane.options.clone();
            lane.cheapest.sort_by(|a, b| (a.paid / a.amount).total_cmp(&(b.paid / b.amount)));
        }
        lane
    }

    /// Units that are sold at any rate between the bounds.
    pub(super) fn must_sell(&self) -> f64 {
        self.must.0
    }

    /// The offers that may fill and need not, in execution order.
    pub(super) fn options(&self) -> &[Choice] {
        &self.options
    }

    /// By how much pay-outs are rounded down, at most.
    pub(super) fn most_rounded(&self) -> f64 {
        self.rounded + self.options.iter().map(|option| self.rounding(option.amount, option.paid)).sum::<f64>() + 1.0
    }

    /// What it can do as far as only the rate is known.
    pub(super) fn flow(&self) -> Flow {
        Flow { sold: (down(self.must.0), up(self.all)), paid: (down(self.must.1), up(self.paid.min(BEYOND))) }
    }

    /// Adds an offer; it must fill if what it asks for is less than what it is paid at the lower of the rates `sure`.
    fn add(&mut self, offer: &Terms, sure: (f64, f64)) {
        let Terms { amount, asked, asked_most, .. } = *offer;
        if amount * self.rate.1 < asked.min(MOST) {
            return;
        }
        let paid = asked.max((amount * self.rate.0).floor()).min(BEYOND);
        self.all += amount;
        self.paid += (amount * self.rate.1).floor().min(BEYOND).max(paid);
        // What asks for more than can exist never fills in full.
        if asked_most <= MOST && amount * sure.0 >= asked_most {
            self.must = (self.must.0 + amount, self.must.1 + paid);
            self.rounded += self.rounding(amount, paid);
            self.count += 1.0;
            match &mut self.few {
                Some(few) if few.len() < FEW && amount < EXACT => few.push((amount as Amount, asked)),
                few => *few = None,
            }
            return;
        }
        let is_payable = amount * self.rate.1 < MOST;
        let is_sure = amount * self.rate.0 >= asked_most && amount * sure.1 < asked && is_payable;
        self.open += u32::from(!is_sure);
        let limit = offer.limit * (1.0 - DOUBT);
        self.options.push(Choice { amount, asked, asked_most, paid, limit, open: !is_sure });
    }

    /// By how much the pay-out of an offer that is paid at least so much is rounded down, at most.
    fn rounding(&self, amount: f64, paid: f64) -> f64 {
        (amount * self.rate.1 - paid).clamp(0.0, 1.0)
    }

    /// The most that units sold can be worth more than units paid, in units paid, and but for rounding no more than
    /// commission.
    pub(super) fn kept(&self, flow: &Flow, epsilon: f64) -> f64 {
        if flow.sold.1 < 0.5 {
            return 0.0;
        }
        let rest = flow.sold.1 - self.must.0;
        let full = |option: &&Choice| option.amount <= rest + 0.5;
        let rounded = |option: &Choice| self.rounding(option.amount, option.paid);
        let part = if rest >= 1.0 && !self.options.is_empty() { self.rate.1.min(1.0) } else { 0.0 };
        let options = self.options.iter().filter(full).map(rounded).sum::<f64>();
        let commission = epsilon * self.ratio.1 * flow.sold.1;
        let by_rounding = (commission + self.rounded + options + part) * (1.0 + 1e-9);
        by_rounding.min((flow.sold.1 * self.ratio.1 - flow.paid.0).max(0.0) + flow.sold.1 * self.ratio.1 * 1e-12)
    }

    /// Bounds on the net rate that follow from those on amounts; `sure` is what is left of the rate at the end of the band
    /// where offers must fill, over the net rate.
    pub(super) fn rates(&self, flow: &Flow, sure: f64) -> (f64, f64) {
        let least = (flow.paid.0 / flow.sold.1).max(self.rate_to_sell(flow.sold.0));
        let most = self.rate_of_must(flow, sure).min(self.rate_of_paid(flow));
        (if least.is_nan() { 0.0 } else { least }, most)
    }

    /// The net rate within `rate`, nearest to its middle, at which something changes for some offer that may fill, and not
    /// nearer than `near` to both ends.
    pub(super) fn turn(&self, rate: (f64, f64), sure: f64, near: f64) -> Option<f64> {
        let (least, most) = (rate.0 * (1.0 + near), rate.1 * (1.0 - near));
        let middle = least.sqrt() * most.sqrt();
        let of = |option: &Choice| [option.asked / option.amount, option.asked_most / option.amount / sure];
        let paid_more = |few: &(Amount, f64)| {
            let amount = few.0 as f64;
            [(few.1.max((amount * rate.0).floor()) + 1.0) / amount, (amount * middle).ceil() / amount]
        };
        let few = self.few.iter().flatten().filter(|few| few.0 as f64 * rate.1 < 1e4).flat_map(paid_more);
        let all = self.options.iter().flat_map(of).chain(few);
        let inside = all.filter(|turn| least < *turn || *turn < most).filter(|turn| rate.0 < *turn && *turn < rate.1);
        let off = |turn: &f64| (turn / middle).max(middle / turn);
        inside.min_by(|a, b| off(a).total_cmp(&off(b)))
    }

    /// The net rates at which something changes for the offers that may fill.
    pub(super) fn turns(&self, sure: f64) -> impl Iterator<Item = f64> {
        self.options
            .iter()
            .flat_map(move |option| [option.asked / option.amount, option.asked_most / option.amount / sure])
    }

    /// What is paid more, at least, for each unit that the ratio rises over its least, but for so many units.
    pub(super) fn paid_more(&self) -> (f64, f64) {
        let net = if self.ratio.0 > 0.0 { self.rate.0 / self.ratio.0 } else { 0.0 };
        (self.must.0 * net, self.count)
    }

    /// The net rate below which fewer units than `sold` can be sold.
    fn rate_to_sell(&self, sold: f64) -> f64 {
        let need = sold - self.must.0;
        if need < 0.5 || self.options.is_empty() {
            return 0.0;
        }
        let end = |option: &Choice| (option.asked.min(MOST) / option.amount, option.amount);
        let mut ends: Vec<(f64, f64)> = self.options.iter().map(end).collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut sum = 0.0;
        let enough = ends.iter().find(|end| {
            sum += end.1;
            sum >= need - 0.5
        });
        enough.map_or(0.0, |end| end.0)
    }

    /// The net rate from which on more must be sold or paid than can be.
    fn rate_of_must(&self, flow: &Flow, sure: f64) -> f64 {
        let must_from = |option: &Choice| (option.asked_most / option.amount / sure, option.amount, option.paid);
        let mut ends: Vec<(f64, f64, f64)> =
            self.options.iter().filter(|option| option.open && option.asked_most <= MOST).map(must_from).collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut sold, mut paid) = self.must;
        let too_much = ends.iter().find(|end| {
            (sold, paid) = (sold + end.1, paid + end.2);
            sold > flow.sold.1 * (1.0 + 1e-12) + 0.5 || paid > flow.paid.1 * (1.0 + 1e-12) + 0.5
        });
        too_much.map_or(f64::INFINITY, |end| end.0)
    }

    /// The net rate from which on more is paid than can be, for what is sold.
    fn rate_of_paid(&self, flow: &Flow) -> f64 {
        let count = self.count + self.options.len() as f64;
        let average = (flow.paid.1 + count) / flow.sold.0;
        let Some(few) = self.few.as_ref().filter(|few| !few.is_empty()) else { return average };
        let least = |few: &(Amount, f64)| (few.0 as f64, few.1.max((few.0 as f64 * self.rate.0).floor()));
        let mut paid: Vec<(f64, f64)> = few.iter().map(least).collect();
        let spare = (flow.paid.1 - paid.iter().map(|paid| paid.1).sum::<f64>()) + flow.paid.1 * 1e-12 + 0.5;
        if spare > FEW as f64 {
            return average;
        }
        let mut rate = f64::INFINITY;
        for _ in 0..=spare.max(0.0) as usize {
            let next = |paid: &&mut (f64, f64)| (paid.1 + 1.0) / paid.0;
            let first = paid.iter_mut().min_by(|a, b| next(a).total_cmp(&next(b))).expect("there are some");
            rate = (first.1 + 1.0) / first.0;
            first.1 += 1.0;
        }
        rate.min(average)
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
        most.min(self.all)
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

    /// The same if any offers may fill, in any order: the cheapest, and one in part.
    fn most_loosely(&self, paid: f64) -> f64 {
        let (mut sold, mut rest) = (self.must.0, paid - self.must.1);
        // Whoever sells anything is paid a unit.
        if rest < 1.0 - paid * 1e-12 {
            return self.must.0;
        }
        for option in &self.cheapest {
            if option.paid <= rest {
                (sold, rest) = (sold + option.amount, rest - option.paid);
                continue;
            }
            let slope = option.amount / option.paid;
            let gain = |option: &Choice| (option.paid + 1.0) * (1.0 / self.unit(option) - slope);
            let more = self.options.iter().map(gain).fold(0.0, f64::max);
            return ((sold + rest.max(0.0) * slope + more + 1.0) * (1.0 + 1e-12)).min(self.all);
        }
        self.all
    }

    fn least_loosely(&self, sold: f64) -> f64 {
        let (mut paid, mut rest) = (self.must.1, sold - self.must.0);
        for option in &self.cheapest {
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
            let least = if sold - self.must.0 > 0.5 { self.must.1 + 1.0 } else { self.must.1 };
            return ((paid + rest * slope - less) * (1.0 - 1e-12)).max(least);
        }
        paid
    }

    /// The most that units sold, worth `own` each, can be worth more than units paid, worth `other` each.
    pub(super) fn gain(&self, flow: &Flow, own: f64, other: f64) -> f64 {
        let full = |option: &Choice| (option.amount * own - option.paid * other).max(0.0);
        let part = |option: &Choice| {
            let rounded = ((option.paid + 1.0) * (own / self.unit(option) - other)).max(0.0) + own;
            // What is paid is rounded down by less than a unit.
            let lost = option.amount * (own - other * self.unit(option) * (1.0 - DOUBT)).max(0.0) + other;
            rounded.min(lost).min(option.amount * own) - full(option)
        };
        let sum = self.must.0 * own - self.must.1 * other + self.options.iter().map(full).sum::<f64>();
        let most = sum + self.options.iter().map(part).fold(0.0, f64::max);
        most.min(flow.sold.1 * own - flow.paid.0 * other)
    }
}
