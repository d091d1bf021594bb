//! The supply of every pair: what is offered below any price (SPEEDEX appendix G), from the sums of its runs.
//!
//! Only the sums over whole runs are laid out beforehand. What is offered below a price is the sum of the runs below it
//! and of the nearer part of the run that it falls in; so nothing is read but the offers near the prices asked about.
//! All sums are integers: the same serve the solvers, as doubles, and the amount step, exactly, and they are the same
//! however the book is cut into runs.

use primitives::{Amount, Price};

use crate::book::Book;
use crate::fills::{Use, usable};
use crate::rate::{Rate, approx};
use crate::run::Run;
use crate::threshold::Threshold;
use crate::value::Value;

/// What is offered in the runs of a pair before one of them.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    offers: usize,
    /// Σ amount, in units of the sold asset.
    amount: Amount,
    /// Σ amount · limit.
    value: Value,
}

/// The supply of all pairs of a book.
pub(crate) struct Supply<'a> {
    book: &'a Book<'a>,
    /// For every pair, one entry per run and one for the end.
    before: Vec<Before>,
    /// The first entry of every pair.
    first: Vec<usize>,
}

/// The supply of one pair.
#[derive(Clone, Copy)]
pub(crate) struct Curve<'a> {
    runs: &'a [Run<'a>],
    before: &'a [Before],
}

/// A place between two offers of a pair, named by the offer after it: its run and its position there; past the last
/// offer, the run after the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    run: u32,
    at: u32,
}

impl<'a> Supply<'a> {
    /// Adds up the runs of a checked book.
    pub(crate) fn new(book: &'a Book<'a>) -> Supply<'a> {
        let runs: usize = book.pairs.iter().map(|pair| pair.runs.len()).sum();
        let mut before = Vec::with_capacity(runs + book.pairs.len());
        let mut first = Vec::with_capacity(book.pairs.len() + 1);
        for pair in &book.pairs {
            first.push(before.len());
            let mut sum = Before::default();
            before.push(sum);
            for run in &pair.runs {
                sum.offers += run.limits.len();
                sum.amount += run.total.amount();
                sum.value = sum.value.plus(run.total.value());
                before.push(sum);
            }
        }
        first.push(before.len());
        Supply { book, before, first }
    }

    /// The curve of the pair at `index` of the book.
    pub(crate) fn curve(&self, index: usize) -> Curve<'_> {
        Curve { runs: &self.book.pairs[index].runs, before: &self.before[self.first[index]..self.first[index + 1]] }
    }
}

impl<'a> Curve<'a> {
    /// Number of offers.
    pub(crate) fn offers(&self) -> usize {
        self.before[self.runs.len()].offers
    }

    /// The lowest limit price.
    pub(crate) fn lowest(&self) -> Price {
        self.runs[0].total.first()
    }

    /// The limit price of the offer at position `index` of the pair.
    pub(crate) fn limit_at(&self, index: usize) -> Price {
        let run = self.before.partition_point(|before| before.offers <= index) - 1;
        self.runs[run].limits[index - self.before[run].offers]
    }

    /// The place after all offers below `threshold`.
    pub(crate) fn place(&self, threshold: Threshold) -> Place {
        let run = self.runs.partition_point(|run| threshold.is_above(run.total.last()));
        let at = self.runs.get(run).map_or(0, |run| run.limits.partition_point(|limit| threshold.is_above(*limit)));
        Place { run: run as u32, at: at as u32 }
    }

    /// The same, if it is likely to be close to `hint`.
    pub(crate) fn place_near(&self, hint: Place, threshold: Threshold) -> Place {
        let run = hint.run as usize;
        let within = |run: &Run| !threshold.is_above(run.total.last()) && threshold.is_above(run.total.first());
        match self.runs.get(run).filter(|run| within(run)) {
            None => self.place(threshold),
            Some(found) => {
                let below = |limit: &Price| threshold.is_above(*limit);
                Place { run: hint.run, at: gallop(found.limits, hint.at as usize, below) as u32 }
            }
        }
    }

    /// The place after all offers that are `below`, which holds for a prefix of them, and to all appearance ends at
    /// about `price`.
    pub(crate) fn place_exactly(&self, price: f64, below: impl Fn(Price) -> bool) -> Place {
        const CLOSE: f64 = 1e-12;
        let mut place = self.place(Threshold::new(price * (1.0 - CLOSE)));
        let surely_not = Threshold::new(price * (1.0 + CLOSE));
        let mut known = None;
        while let Some(limit) = self.limit(place).filter(|limit| surely_not.is_above(*limit)) {
            if known != Some(limit) && !below(limit) {
                break;
            }
            known = Some(limit);
            place = self.next(place);
        }
        place
    }

    /// The limit price of the offer after `place`.
    pub(crate) fn limit(&self, place: Place) -> Option<Price> {
        self.runs.get(place.run as usize).map(|run| run.limits[place.at as usize])
    }

    /// The limit price of the offer before `place`.
    pub(crate) fn limit_before(&self, place: Place) -> Option<Price> {
        match (place.run as usize, place.at as usize) {
            (0, 0) => None,
            (run, 0) => Some(self.runs[run - 1].total.last()),
            (run, at) => Some(self.runs[run].limits[at - 1]),
        }
    }

    fn next(&self, place: Place) -> Place {
        match place.at + 1 {
            at if (at as usize) < self.runs[place.run as usize].limits.len() => Place { at, ..place },
            _ => Place { run: place.run + 1, at: 0 },
        }
    }

    /// Units offered before `place`.
    pub(crate) fn amount(&self, place: Place) -> Amount {
        let (run, at) = (place.run as usize, place.at as usize);
        let sum = |amounts: &[Amount]| amounts.iter().copied().fold(0, Amount::wrapping_add);
        match self.runs.get(run).filter(|_| at > 0).map(|run| run.amounts) {
            None => self.before[run].amount,
            Some(amounts) if at <= amounts.len() / 2 => self.before[run].amount + sum(&amounts[..at]),
            Some(amounts) => self.before[run + 1].amount - sum(&amounts[at..]),
        }
    }

    /// Σ amount · limit of the offers before `place`.
    pub(crate) fn value(&self, place: Place) -> Value {
        let (run, at) = (place.run as usize, place.at as usize);
        match self.runs.get(run).filter(|_| at > 0) {
            None => self.before[run].value,
            Some(Run { limits, amounts, .. }) if at <= limits.len() / 2 => {
                self.before[run].value.plus(Value::of(&limits[..at], &amounts[..at]))
            }
            Some(Run { limits, amounts, .. }) => {
                self.before[run + 1].value.minus(Value::of(&limits[at..], &amounts[at..]))
            }
        }
    }

    /// Σ amount · limit of the cheapest `sold` units, of which there must be as many.
    pub(crate) fn cheapest(&self, sold: Amount) -> f64 {
        let run = self.before.partition_point(|before| before.amount <= sold) - 1;
        let mut rest = sold - self.before[run].amount;
        let Some(Run { limits, amounts, .. }) = self.runs.get(run) else { return self.before[run].value.to_f64() };
        let mut at = 0;
        while amounts[at] <= rest {
            rest -= amounts[at];
            at += 1;
        }
        let whole = self.before[run].value.plus(Value::of(&limits[..at], &amounts[..at]));
        whole.to_f64() + approx(limits[at]) * rest as f64
    }

    /// The offers between two places as (limit, amount), in order.
    pub(crate) fn between(&self, from: Place, to: Place) -> impl Iterator<Item = (Price, Amount)> + use<'a> {
        self.pieces(from, to).flat_map(|(_, piece)| piece.offers())
    }

    /// The runs between two places, the first and the last cut short; each with the sums of the whole run.
    fn pieces(&self, from: Place, to: Place) -> impl Iterator<Item = (&'a Run<'a>, Run<'a>)> + use<'a> {
        let end = if to.at == 0 { to.run } else { to.run + 1 };
        let runs = self.runs;
        (from.run..end).map(move |index| {
            let run = &runs[index as usize];
            let start = if index == from.run { from.at as usize } else { 0 };
            let end = if index == to.run { to.at as usize } else { run.limits.len() };
            (run, Run { limits: &run.limits[start..end], amounts: &run.amounts[start..end], total: run.total })
        })
    }

    /// Units of the offers between two places that cannot fill in full at `rate`, because their pay-out rounds below
    /// their limit. Only offers whose limit lies within 1/amount of the rate can be such, and whole runs without any
    /// are stepped over.
    pub(crate) fn unusable(&self, rate: &Rate, from: Place, to: Place) -> Amount {
        let surely = rate.to_f64() * (1.0 - 1e-12);
        let mut units = 0;
        for (whole, piece) in self.pieces(from, to) {
            let risky = surely - 1.0 / whole.total.least() as f64;
            if approx(whole.total.last()) > risky {
                let offers = piece.limits.iter().zip(piece.amounts).rev();
                let offers = offers.take_while(|(limit, _)| approx(**limit) > risky);
                units += offers.filter(|(l, a)| is_unusable(rate, surely, **l, **a)).map(|o| *o.1).sum::<Amount>();
            }
        }
        units
    }
}

/// The number of leading elements that are `below`, searched for by steps of growing width from `hint`.
fn gallop(limits: &[Price], hint: usize, below: impl Fn(&Price) -> bool) -> usize {
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

fn is_unusable(rate: &Rate, surely: f64, limit: Price, amount: Amount) -> bool {
    let earned = amount as f64 * (surely - approx(limit));
    !(1.0..1e18).contains(&earned) && usable(rate, limit, amount) == Use::Nothing
}
