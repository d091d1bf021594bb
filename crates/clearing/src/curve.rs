//! The supply of every pair as prefix sums over its unique limit prices (SPEEDEX appendix G).
//!
//! Prices stand apart from sums, so that a binary search touches prices alone. Amounts are summed in integers: the
//! same sums serve the solvers, as doubles, and the amount step, exactly.

use primitives::Amount;
use rayon::prelude::*;

use crate::book::{Book, PairBook};
use crate::fills::{Use, usable};
use crate::rate::{Rate, approx};

/// Offers per block of [`Curves::risk`].
const BLOCK: usize = 32;

/// What is offered below some price.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    /// Σ amount, in units of the sold asset.
    pub(crate) amount: Amount,
    /// Σ amount · limit price, in units of the bought asset.
    pub(crate) value: f64,
}

/// Where the data of one pair begin.
#[derive(Clone, Copy, Debug)]
struct Span {
    /// First price level and first offer; level spans have room for as many levels as offers.
    first: usize,
    levels: usize,
    offers: usize,
    /// First entry of `sums`, which has one more than there are levels.
    sums: usize,
}

/// Prefix sums of all pairs of a book.
pub(crate) struct Curves {
    spans: Vec<Span>,
    /// Unique limit prices, rising within a pair.
    prices: Vec<f64>,
    /// What is offered strictly below each level, and in all.
    sums: Vec<Sum>,
    /// First offer of each level.
    starts: Vec<u32>,
    /// For each offer, the largest limit + 1/amount from the first offer of its block to it, rounded up: above that rate
    /// none of them can be a hole.
    risk: Vec<f32>,
}

/// The curve of one pair.
#[derive(Clone, Copy)]
pub(crate) struct Curve<'a> {
    /// Unique limit prices, rising.
    pub(crate) prices: &'a [f64],
    /// What is offered strictly below each level, and in all.
    pub(crate) sums: &'a [Sum],
    starts: &'a [u32],
    risk: &'a [f32],
    offers: usize,
}

impl Curves {
    /// Sums up a checked book, pairs in parallel on the current rayon pool.
    pub(crate) fn new(book: &Book) -> Curves {
        let mut spans = Vec::with_capacity(book.pairs.len());
        let mut first = 0;
        for (index, pair) in book.pairs.iter().enumerate() {
            let offers = pair.limits.len();
            spans.push(Span { first, levels: 0, offers, sums: first + index });
            first += offers;
        }
        let mut prices = vec![0.0; first];
        let mut sums = vec![Sum::default(); first + book.pairs.len()];
        let mut starts = vec![0; first];
        let mut risk = vec![0.0; first];
        let mut room = Room { prices: &mut prices, sums: &mut sums, starts: &mut starts, risk: &mut risk };
        let rooms: Vec<Room> = book.pairs.iter().map(|pair| room.take(pair.limits.len())).collect();
        spans.par_iter_mut().zip(&book.pairs).zip(rooms).for_each(|((span, pair), room)| span.levels = room.fill(pair));
        Curves { spans, prices, sums, starts, risk }
    }

    /// The curve of the pair at `index` of the book.
    pub(crate) fn curve(&self, index: usize) -> Curve<'_> {
        let Span { first, levels, offers, sums } = self.spans[index];
        Curve {
            prices: &self.prices[first..first + levels],
            sums: &self.sums[sums..=sums + levels],
            starts: &self.starts[first..first + levels],
            risk: &self.risk[first..first + offers],
            offers,
        }
    }
}

/// The part of every array that one pair fills.
struct Room<'a> {
    prices: &'a mut [f64],
    sums: &'a mut [Sum],
    starts: &'a mut [u32],
    risk: &'a mut [f32],
}

impl<'a> Room<'a> {
    /// Splits off the part of the next pair, which has `offers` offers.
    fn take(&mut self, offers: usize) -> Room<'a> {
        fn cut<'a, T>(slice: &mut &'a mut [T], length: usize) -> &'a mut [T] {
            let (head, tail) = std::mem::take(slice).split_at_mut(length);
            *slice = tail;
            head
        }
        Room {
            prices: cut(&mut self.prices, offers),
            sums: cut(&mut self.sums, offers + 1),
            starts: cut(&mut self.starts, offers),
            risk: cut(&mut self.risk, offers),
        }
    }

    /// Sums up `pair`; returns the number of its price levels.
    fn fill(self, pair: &PairBook) -> usize {
        let mut sum = Sum::default();
        let mut levels = 0;
        let mut before = None;
        for (index, (limit, amount)) in pair.limits.iter().zip(pair.amounts).enumerate() {
            let price = approx(*limit);
            if before.replace(*limit) != Some(*limit) {
                (self.prices[levels], self.sums[levels], self.starts[levels]) = (price, sum, index as u32);
                levels += 1;
            }
            sum.amount += amount;
            sum.value += price * *amount as f64;
            let before = if index % BLOCK == 0 { 0.0 } else { self.risk[index - 1] };
            self.risk[index] = before.max(rounded_up(price + 1.0 / *amount as f64));
        }
        self.sums[levels] = sum;
        levels
    }
}

impl Curve<'_> {
    /// The number of levels below a price that is about `price`, where `within` says exactly whether a level is. It is
    /// asked about levels too close to tell, and must hold for a prefix of them.
    pub(crate) fn level_at(&self, price: f64, within: impl Fn(usize) -> bool) -> usize {
        const CLOSE: f64 = 1e-12;
        let within = |level: usize| match self.prices[level] {
            p if p < price * (1.0 - CLOSE) => true,
            p if p > price * (1.0 + CLOSE) => false,
            _ => within(level),
        };
        let mut level = self.prices.partition_point(|p| *p < price);
        while level < self.prices.len() && within(level) {
            level += 1;
        }
        while level > 0 && !within(level - 1) {
            level -= 1;
        }
        level
    }

    /// The position of the first offer of `level`; the number of offers for the level after the last.
    pub(crate) fn first_offer(&self, level: usize) -> usize {
        self.starts.get(level).map_or(self.offers, |start| *start as usize)
    }

    /// Units of the offers of `pair` from `from` to `to` that cannot fill in full at `rate`, because their pay-out
    /// rounds below their limit. Whole blocks that cannot hold any are stepped over.
    pub(crate) fn unusable(&self, pair: &PairBook, rate: &Rate, from: usize, to: usize) -> Amount {
        let surely = rate.to_f64() * (1.0 - 1e-12);
        let mut units = 0;
        let mut index = from;
        while index < to {
            let end = to.min((index / BLOCK + 1) * BLOCK);
            if f64::from(self.risk[end - 1]) > surely {
                units += (index..end)
                    .filter(|i| is_unusable(pair, rate, surely, *i))
                    .map(|i| pair.amounts[i])
                    .sum::<Amount>();
            }
            index = end;
        }
        units
    }
}

/// A single that is not below `x`.
fn rounded_up(x: f64) -> f32 {
    (x * (1.0 + 1e-6)) as f32
}

fn is_unusable(pair: &PairBook, rate: &Rate, surely: f64, index: usize) -> bool {
    let (limit, amount) = (pair.limits[index], pair.amounts[index]);
    let earned = amount as f64 * (surely - approx(limit));
    !(1.0..1e18).contains(&earned) && usable(rate, limit, amount) == Use::Nothing
}
