//! A run of offers of one pair, never changed once it is made: the book shares it with clones of itself.

use clearing::{Run, Total};
use primitives::{Address, Amount, Price, Sequence};

use crate::book::{Offer, Place};

/// Offers in a chunk at most. Fewer would make clearing sum up more chunks, more would copy more for each new offer.
pub(crate) const CHUNK: usize = 128;

/// One array per field, so that clearing reads limits and amounts alone.
#[derive(Debug)]
pub(crate) struct Chunk {
    limits: Box<[Price]>,
    amounts: Box<[Amount]>,
    accounts: Box<[Address]>,
    ids: Box<[Sequence]>,
    total: Total,
}

impl Chunk {
    pub(crate) fn len(&self) -> usize {
        self.limits.len()
    }

    pub(crate) fn limits(&self) -> &[Price] {
        &self.limits
    }

    pub(crate) fn amounts(&self) -> &[Amount] {
        &self.amounts
    }

    /// What the offers sum up to.
    pub(crate) fn total(&self) -> Total {
        self.total
    }

    /// Units that the offers lock.
    pub(crate) fn sum(&self) -> Amount {
        self.total.amount()
    }

    /// The offers as the solver sees them.
    pub(crate) fn run(&self) -> Run<'_> {
        Run { limits: &self.limits, amounts: &self.amounts, total: self.total }
    }

    pub(crate) fn place(&self, at: usize) -> Place {
        Place { limit: self.limits[at], account: self.accounts[at], id: self.ids[at] }
    }

    pub(crate) fn offer(&self, at: usize) -> Offer {
        Offer { place: self.place(at), amount: self.amounts[at] }
    }

    /// The first offer that stands at `place` or behind it.
    pub(crate) fn lower_bound(&self, place: &Place) -> usize {
        let from = self.limits.partition_point(|limit| *limit < place.limit);
        let same = self.limits[from..].partition_point(|limit| *limit == place.limit);
        // Few offers share a price, but nothing forbids many.
        let mut range = from..from + same;
        while !range.is_empty() {
            let middle = range.start + range.len() / 2;
            if self.place(middle) < *place { range.start = middle + 1 } else { range.end = middle }
        }
        range.start
    }

    pub(crate) fn bytes(&self) -> usize {
        // Four arrays, their allocations' overhead, and the counters of the shared pointer.
        size_of::<Chunk>() + 16 + 5 * 8 + self.len() * (8 + 8 + 20 + 8)
    }
}

/// Offers on their way into chunks.
#[derive(Default)]
pub(crate) struct Columns {
    limits: Vec<Price>,
    amounts: Vec<Amount>,
    accounts: Vec<Address>,
    ids: Vec<Sequence>,
}

impl Columns {
    pub(crate) fn len(&self) -> usize {
        self.limits.len()
    }

    pub(crate) fn push(&mut self, offer: Offer) {
        self.limits.push(offer.place.limit);
        self.amounts.push(offer.amount);
        self.accounts.push(offer.place.account);
        self.ids.push(offer.place.id);
    }

    pub(crate) fn extend(&mut self, chunk: &Chunk, range: std::ops::Range<usize>) {
        self.limits.extend_from_slice(&chunk.limits[range.clone()]);
        self.amounts.extend_from_slice(&chunk.amounts[range.clone()]);
        self.accounts.extend_from_slice(&chunk.accounts[range.clone()]);
        self.ids.extend_from_slice(&chunk.ids[range]);
    }

    pub(crate) fn append(&mut self, behind: &mut Columns) {
        self.limits.append(&mut behind.limits);
        self.amounts.append(&mut behind.amounts);
        self.accounts.append(&mut behind.accounts);
        self.ids.append(&mut behind.ids);
    }

    /// Cuts the offers into chunks of about equal length, and forgets them.
    pub(crate) fn cut(&mut self) -> impl Iterator<Item = Chunk> + '_ {
        let (len, pieces) = (self.len(), self.len().div_ceil(CHUNK));
        let mut next = 0;
        std::iter::from_fn(move || {
            if next == pieces {
                self.clear();
                return None;
            }
            let range = next * len / pieces..(next + 1) * len / pieces;
            next += 1;
            Some(self.chunk(range))
        })
    }

    fn chunk(&self, range: std::ops::Range<usize>) -> Chunk {
        let (limits, amounts) = (&self.limits[range.clone()], &self.amounts[range.clone()]);
        Chunk {
            total: Total::of(limits, amounts).expect("offers stand in order, and each sells something"),
            limits: limits.into(),
            amounts: amounts.into(),
            accounts: self.accounts[range.clone()].into(),
            ids: self.ids[range].into(),
        }
    }

    fn clear(&mut self) {
        self.limits.clear();
        self.amounts.clear();
        self.accounts.clear();
        self.ids.clear();
    }
}
