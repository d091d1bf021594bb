//! The supply of every pair: the amount offered below any price (SPEEDEX appendix G), from the sums of its runs.
//!
//! Only the sums over whole runs are computed in advance. The amount offered below a price is the sum of the runs below
//! it and of the nearer part of the run that contains it. So only offers near the queried prices are read. All sums are
//! integers: the solvers use them as doubles and the amount step exactly, and they do not depend on how the book is cut
//! into runs.

use primitives::{Amount, Price};
use rayon::prelude::*;

use crate::book::Book;
use crate::effective::{Piece, Runs, replaced};
use crate::rate::{Share, approx};
use crate::run::Total;
use crate::threshold::Threshold;
use crate::value::Value;

/// The supply in the runs of a pair before one of them.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    offers: usize,
    /// Σ amount, in units of the sold asset.
    amount: Amount,
    /// Σ amount · limit.
    value: Value,
    /// The largest limit + 1/amount: above that rate, whole units pay every one of the offers.
    risk: f64,
}

/// The supply of all pairs of a book, with every offer at its effective limit.
pub(crate) struct Supply<'a> {
    book: &'a Book<'a>,
    /// The runs of pairs that do not use those of the book.
    replaced: Vec<Option<Vec<Piece<'a>>>>,
    /// The sums of every pair.
    sums: Vec<Sums>,
}

/// The sums over the runs of one pair.
struct Sums {
    /// One entry per run and one for the end.
    before: Vec<Before>,
    /// The highest limit of every run, stored adjacently for searches.
    highest: Vec<Price>,
}

/// The supply of one pair.
#[derive(Clone, Copy)]
pub(crate) struct Curve<'a> {
    runs: Runs<'a>,
    before: &'a [Before],
    /// The highest limit of every run.
    highest: &'a [Price],
}

/// A place between two offers of a pair, given by the offer after it: its run and its position there. After the last
/// offer, the run after the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    run: u32,
    at: u32,
}

impl<'a> Supply<'a> {
    /// Sums up the runs of a checked book.
    pub(crate) fn new(book: &'a Book<'a>) -> Supply<'a> {
        let pairs = book.pairs.par_iter().with_min_len(64);
        let (replaced, sums) = pairs
            .map(|pair| {
                let replaced = replaced(pair);
                let sums = add_up(replaced.as_ref().map_or(Runs::Plain(&pair.runs), |pieces| Runs::Replaced(pieces)));
                (replaced, sums)
            })
            .unzip();
        Supply { book, replaced, sums }
    }

    /// The curve of the pair at `index` of the book.
    pub(crate) fn curve(&self, index: usize) -> Curve<'_> {
        let plain = Runs::Plain(&self.book.pairs[index].runs);
        let runs = self.replaced[index].as_ref().map_or(plain, |pieces| Runs::Replaced(pieces));
        let Sums { before, highest } = &self.sums[index];
        Curve { runs, before, highest }
    }
}

fn add_up(runs: Runs) -> Sums {
    let (mut before, mut highest) = (Vec::with_capacity(runs.len() + 1), Vec::with_capacity(runs.len()));
    let mut sum = Before::default();
    before.push(sum);
    for index in 0..runs.len() {
        let total = runs.total(index);
        sum.offers += runs.get(index).map_or(0, |run| run.0.len());
        sum.amount += total.amount();
        sum.value = sum.value.plus(total.value());
        sum.risk = sum.risk.max(approx(total.last()) + 1.0 / total.least() as f64);
        before.push(sum);
        highest.push(total.last());
    }
    Sums { before, highest }
}

impl<'a> Curve<'a> {
    /// Number of offers.
    pub(crate) fn offers(&self) -> usize {
        self.before[self.runs.len()].offers
    }

    /// The runs.
    pub(crate) fn runs(&self) -> Runs<'a> {
        self.runs
    }

    /// Number of offers before `place`.
    pub(crate) fn offers_before(&self, place: Place) -> usize {
        self.before[place.run as usize].offers + place.at as usize
    }

    /// The limit price of the offer at position `index` of the pair.
    pub(crate) fn limit_at(&self, index: usize) -> Price {
        // Runs are about equally long, so that a guess is mostly right.
        let guess = index * self.runs.len() / self.offers();
        let has = |run: usize| (self.before[run].offers..self.before[run + 1].offers).contains(&index);
        let search = || self.before.partition_point(|before| before.offers <= index) - 1;
        let run = if has(guess) { guess } else { search() };
        self.limits(run)[index - self.before[run].offers]
    }

    /// Whether all limits are certainly above `rate`, which may be off by a few units in its last place.
    pub(crate) fn is_beyond(&self, rate: f64) -> bool {
        const CLOSE: f64 = 1e-12;
        approx(self.limit_at(0)) > rate * (1.0 + CLOSE)
    }

    /// The place after all offers below `threshold`.
    pub(crate) fn place(&self, threshold: Threshold) -> Place {
        let run = leading(self.highest, threshold);
        let at = leading(self.limits(run), threshold);
        Place { run: run as u32, at: at as u32 }
    }

    /// As [`place`](Self::place), fast if the result is close to `hint`.
    pub(crate) fn place_near(&self, hint: Place, threshold: Threshold) -> Place {
        let run = hint.run as usize;
        let within = |total: &Total| !threshold.is_above(total.last()) && threshold.is_above(total.first());
        if run < self.runs.len() && within(self.runs.total(run)) {
            let below = |limit: &Price| threshold.is_above(*limit);
            return Place { run: hint.run, at: gallop(self.limits(run), hint.at as usize, below) as u32 };
        }
        self.place(threshold)
    }

    /// The limit price of the offer after `place`.
    pub(crate) fn limit(&self, place: Place) -> Option<Price> {
        self.limits(place.run as usize).get(place.at as usize).copied()
    }

    /// The limit price of the offer before `place`.
    pub(crate) fn limit_before(&self, place: Place) -> Option<Price> {
        match (place.run as usize, place.at as usize) {
            (0, 0) => None,
            (run, 0) => Some(self.runs.total(run - 1).last()),
            (run, at) => Some(self.limits(run)[at - 1]),
        }
    }

    /// Units offered before `place`.
    pub(crate) fn amount(&self, place: Place) -> Amount {
        let (run, at) = (place.run as usize, place.at as usize);
        let sum = |amounts: &[Amount]| amounts.iter().copied().fold(0, Amount::wrapping_add);
        match self.runs.get(run).filter(|_| at > 0).map(|run| run.1) {
            None => self.before[run].amount,
            Some(amounts) if at <= amounts.len() / 2 => self.before[run].amount + sum(&amounts[..at]),
            Some(amounts) => self.before[run + 1].amount - sum(&amounts[at..]),
        }
    }

    /// As [`amount`](Self::amount), if `amount` is offered before the place `from`.
    pub(crate) fn amount_from(&self, from: Place, amount: Amount, place: Place) -> Amount {
        if from.run != place.run {
            return self.amount(place);
        }
        let Some((_, amounts)) = self.runs.get(place.run as usize) else { return amount };
        let sum = |a: u32, b: u32| amounts[a as usize..b as usize].iter().copied().fold(0, Amount::wrapping_add);
        if from.at <= place.at { amount + sum(from.at, place.at) } else { amount - sum(place.at, from.at) }
    }

    /// Σ amount · limit of the offers before `place`, given that it is `value` before the place `from`.
    pub(crate) fn value_from(&self, from: Place, value: Value, place: Place) -> Value {
        if from.run != place.run {
            return self.value(place);
        }
        let Some((limits, amounts)) = self.runs.get(place.run as usize) else { return value };
        let sum = |a: u32, b: u32| {
            let between = a as usize..b as usize;
            Value::of(&limits[between.clone()], &amounts[between])
        };
        if from.at <= place.at { value.plus(sum(from.at, place.at)) } else { value.minus(sum(place.at, from.at)) }
    }

    /// Σ amount · limit of the offers between two places of one run; `None` if they are not in one.
    pub(crate) fn value_within(&self, from: Place, to: Place) -> Option<Value> {
        if from.run != to.run {
            return None;
        }
        let Some((limits, amounts)) = self.runs.get(to.run as usize) else { return Some(Value::default()) };
        let between = from.at as usize..to.at as usize;
        Some(Value::of(&limits[between.clone()], &amounts[between]))
    }

    /// Σ amount · limit of the offers before `place`.
    pub(crate) fn value(&self, place: Place) -> Value {
        let (run, at) = (place.run as usize, place.at as usize);
        match self.runs.get(run).filter(|_| at > 0) {
            None => self.before[run].value,
            Some((limits, amounts)) if at <= limits.len() / 2 => {
                self.before[run].value.plus(Value::of(&limits[..at], &amounts[..at]))
            }
            Some((limits, amounts)) => self.before[run + 1].value.minus(Value::of(&limits[at..], &amounts[at..])),
        }
    }

    /// Σ amount · limit of the cheapest `sold` units; at least so many must be offered.
    pub(crate) fn cheapest(&self, sold: Amount) -> f64 {
        let run = self.before.partition_point(|before| before.amount <= sold) - 1;
        let mut rest = sold - self.before[run].amount;
        let Some((limits, amounts)) = self.runs.get(run) else { return self.before[run].value.to_f64() };
        let mut at = 0;
        while amounts[at] <= rest {
            rest -= amounts[at];
            at += 1;
        }
        let whole = self.before[run].value.plus(Value::of(&limits[..at], &amounts[..at]));
        whole.plus(Value::of(&limits[at..=at], &[rest])).to_f64()
    }

    /// The limits of a run; none past the end.
    fn limits(&self, run: usize) -> &'a [Price] {
        self.runs.get(run).map_or(&[], |run| run.0)
    }

    /// The limits and the amounts of all offers, if they are one short run.
    pub(crate) fn only_few(&self) -> Option<(&'a [Price], &'a [Amount])> {
        const FEW: usize = 16;
        if self.runs.len() == 1 { self.runs.get(0).filter(|run| run.0.len() <= FEW) } else { None }
    }

    /// Whether the runs are those of the book.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.runs, Runs::Plain(_))
    }

    /// The offers between two places as (limit, amount), in order.
    pub(crate) fn between(&self, from: Place, to: Place) -> impl Iterator<Item = (Price, Amount)> + use<'a> {
        self.pieces(from, to).flat_map(|(_, limits, amounts)| limits.iter().copied().zip(amounts.iter().copied()))
    }

    /// The runs between two places; the first and the last are cut.
    fn pieces(
        &self,
        from: Place,
        to: Place,
    ) -> impl DoubleEndedIterator<Item = (usize, &'a [Price], &'a [Amount])> + use<'a> {
        let end = if to.at == 0 { to.run } else { to.run + 1 };
        let runs = self.runs;
        (from.run..end).filter_map(move |index| {
            let (limits, amounts) = runs.get(index as usize)?;
            let start = if index == from.run { from.at as usize } else { 0 };
            let end = if index == to.run { to.at as usize } else { limits.len() };
            Some((index as usize, &limits[start..end], &amounts[start..end]))
        })
    }

    /// Units of the offers before `to` for which `is` is false. `is` must be true where `rate` pays an offer at least a
    /// whole unit more than it asks for. So only runs with offers within 1/amount of the rate are read.
    pub(crate) fn not_at(&self, rate: &Share, to: Place, is: impl Fn(Price, Amount) -> bool) -> Amount {
        let surely = rate.to_f64() * (1.0 - 1e-12);
        let mut units = 0;
        for (run, limits, amounts) in self.pieces(Place::default(), to).rev() {
            if self.before[run + 1].risk <= surely {
                break;
            }
            let total = self.runs.total(run);
            let risky = surely - 1.0 / total.least() as f64;
            if approx(total.last()) > risky {
                let offers = limits.iter().zip(amounts).rev().take_while(|(limit, _)| approx(**limit) > risky);
                let clear = |limit, amount: Amount| (1.0..1e18).contains(&(amount as f64 * (surely - approx(limit))));
                let not = offers.filter(|(limit, amount)| !clear(**limit, **amount) && !is(**limit, **amount));
                units += not.map(|offer| *offer.1).sum::<Amount>();
            }
        }
        units
    }
}

/// The number of `limits` below `threshold`. Reads one limit of every eight first; these reads do not depend on each
/// other, so that cache misses overlap.
fn leading(limits: &[Price], threshold: Threshold) -> usize {
    const STEP: usize = 8;
    const MANY: usize = 64 * STEP;
    if limits.len() > MANY {
        return limits.partition_point(|limit| threshold.is_above(*limit));
    }
    let is_below = |limit: &Price| usize::from(threshold.is_above(*limit));
    let blocks: usize = limits.iter().skip(STEP - 1).step_by(STEP).map(is_below).sum();
    let rest = &limits[blocks * STEP..limits.len().min((blocks + 1) * STEP)];
    blocks * STEP + rest.iter().map(is_below).sum::<usize>()
}

/// The number of leading elements that are `below`, searched with steps of growing width from `hint`.
pub(crate) fn gallop(limits: &[Price], hint: usize, below: impl Fn(&Price) -> bool) -> usize {
    let mut step = 1;
    let (low, high) = if hint < limits.len() && below(&limits[hint]) {
        let mut low = hint + 1;
        while low + step <= limits.len() && below(&limits[low + step - 1]) {
            low += step;
            step *= 2;
        }
        (low, (low + step - 1).min(limits.len()))
    } else {
        let mut high = hint.min(limits.len());
        while high >= step && !below(&limits[high - step]) {
            high -= step;
            step *= 2;
        }
        ((high + 1).saturating_sub(step), high)
    };
    low + limits[low..high].partition_point(below)
}
