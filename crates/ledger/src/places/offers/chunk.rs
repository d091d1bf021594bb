//! A run of offers of one pair. The book shares chunks with clones of itself. A chunk with one owner is changed in
//! place; a shared chunk is copied.

use std::ops::Range;
use std::sync::Arc;

use clearing::Total;
use primitives::{Address, Amount, Height, Price, Sequence};
use proofs::{NO_END, Offer, Place, Rest};

use super::offer::Edit;

/// The most offers in a chunk. Fewer would make clearing sum more chunks, more would copy more for each new offer.
pub(crate) const CHUNK: usize = 64;

/// One array per field, so that clearing reads only limits and amounts. Entries from `len` on have no meaning.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    len: usize,
    limits: [Price; CHUNK],
    amounts: [Amount; CHUNK],
    ids: [Sequence; CHUNK],
    untils: [Height; CHUNK],
    accounts: [Address; CHUNK],
}

impl Chunk {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn limits(&self) -> &[Price] {
        &self.limits[..self.len]
    }

    pub(crate) fn amounts(&self) -> &[Amount] {
        &self.amounts[..self.len]
    }

    /// The limits and the amounts, of which there are `len`. The length is a parameter, so this does not read the
    /// chunk, which may not be in any cache.
    pub(crate) fn unseen(&self, len: usize) -> (&[Price], &[Amount]) {
        (&self.limits[..len], &self.amounts[..len])
    }

    /// The last heights of the offers.
    pub(crate) fn untils(&self) -> &[Height] {
        &self.untils[..self.len]
    }

    /// The least of the last heights.
    pub(crate) fn ends(&self) -> Height {
        self.untils().iter().copied().min().unwrap_or(NO_END)
    }

    /// The totals of the offers.
    pub(crate) fn total(&self) -> Total {
        Total::of(self.limits(), self.amounts()).expect("offers are in order, and each sells something")
    }

    /// The position of the first offer behind `place`.
    pub(crate) fn upper_bound(&self, place: &Place) -> usize {
        let at = self.lower_bound(place);
        at + usize::from(self.is_at(at, place))
    }

    /// Whether an offer is at this place, if its position would be `at`.
    pub(crate) fn is_at(&self, at: usize, place: &Place) -> bool {
        at < self.len && self.place(at) == *place
    }

    /// Makes one change; returns the last height of the offer that was there. There must be room for a new offer.
    pub(crate) fn edit(&mut self, edit: &Edit) -> Option<Height> {
        let at = self.lower_bound(&edit.place);
        let before = self.is_at(at, &edit.place).then(|| self.untils[at]);
        match (before, edit.rest()) {
            (Some(_), Some(Rest { amount, until })) => (self.amounts[at], self.untils[at]) = (amount, until),
            (Some(_), None) => self.remove(at),
            (None, Some(Rest { amount, until })) => self.insert(at, Offer { place: edit.place, amount, until }),
            (None, None) => {}
        }
        before
    }

    fn insert(&mut self, at: usize, offer: Offer) {
        let behind = at..self.len;
        self.len += 1;
        self.limits.copy_within(behind.clone(), at + 1);
        self.amounts.copy_within(behind.clone(), at + 1);
        self.ids.copy_within(behind.clone(), at + 1);
        self.untils.copy_within(behind.clone(), at + 1);
        self.accounts.copy_within(behind, at + 1);
        self.limits[at] = offer.place.limit;
        self.amounts[at] = offer.amount;
        self.ids[at] = offer.place.id;
        self.untils[at] = offer.until;
        self.accounts[at] = offer.place.account;
    }

    fn remove(&mut self, at: usize) {
        let behind = at + 1..self.len;
        self.len -= 1;
        self.limits.copy_within(behind.clone(), at);
        self.amounts.copy_within(behind.clone(), at);
        self.ids.copy_within(behind.clone(), at);
        self.untils.copy_within(behind.clone(), at);
        self.accounts.copy_within(behind, at);
    }

    pub(crate) fn place(&self, at: usize) -> Place {
        Place { limit: self.limits()[at], account: self.accounts[at], id: self.ids[at] }
    }

    pub(crate) fn offer(&self, at: usize) -> Offer {
        Offer { place: self.place(at), amount: self.amounts[at], until: self.untils[at] }
    }

    /// The position of the first offer at `place` or behind it.
    pub(crate) fn lower_bound(&self, place: &Place) -> usize {
        let limits = self.limits();
        let from = limits.partition_point(|limit| *limit < place.limit);
        let same = limits[from..].partition_point(|limit| *limit == place.limit);
        // Few offers share a price, but nothing forbids many.
        let mut range = from..from + same;
        while !range.is_empty() {
            let middle = range.start + range.len() / 2;
            if self.place(middle) < *place { range.start = middle + 1 } else { range.end = middle }
        }
        range.start
    }

    /// Bytes of a chunk, including the counters of its shared pointer and the overhead of its allocation.
    pub(crate) const BYTES: usize = size_of::<Chunk>() + 24;
}

/// Offers that are being put into chunks, and spare chunks for reuse.
#[derive(Default)]
pub(crate) struct Columns {
    limits: Vec<Price>,
    amounts: Vec<Amount>,
    accounts: Vec<Address>,
    ids: Vec<Sequence>,
    untils: Vec<Height>,
    spare: Vec<Arc<Chunk>>,
}

/// The most chunks kept for reuse.
const SPARE: usize = 64;

impl Columns {
    pub(crate) fn len(&self) -> usize {
        self.limits.len()
    }

    pub(crate) fn push(&mut self, offer: Offer) {
        self.limits.push(offer.place.limit);
        self.amounts.push(offer.amount);
        self.accounts.push(offer.place.account);
        self.ids.push(offer.place.id);
        self.untils.push(offer.until);
    }

    pub(crate) fn extend(&mut self, chunk: &Chunk, range: Range<usize>) {
        self.limits.extend_from_slice(&chunk.limits[range.clone()]);
        self.amounts.extend_from_slice(&chunk.amounts[range.clone()]);
        self.accounts.extend_from_slice(&chunk.accounts[range.clone()]);
        self.ids.extend_from_slice(&chunk.ids[range.clone()]);
        self.untils.extend_from_slice(&chunk.untils[range]);
    }

    /// Inserts a chunk's offers before all others.
    pub(crate) fn prepend(&mut self, chunk: &Chunk) {
        let range = 0..chunk.len;
        self.limits.splice(0..0, chunk.limits[range.clone()].iter().copied());
        self.amounts.splice(0..0, chunk.amounts[range.clone()].iter().copied());
        self.accounts.splice(0..0, chunk.accounts[range.clone()].iter().copied());
        self.ids.splice(0..0, chunk.ids[range.clone()].iter().copied());
        self.untils.splice(0..0, chunk.untils[range].iter().copied());
    }

    /// Keeps a chunk that is no longer needed for reuse, if nobody shares it.
    pub(crate) fn reuse(&mut self, mut chunk: Arc<Chunk>) {
        if self.spare.len() < SPARE && Arc::get_mut(&mut chunk).is_some() {
            self.spare.push(chunk);
        }
    }

    /// Cuts the offers into chunks of about equal length, passes them to `take` in order, and clears the offers.
    pub(crate) fn cut(&mut self, mut take: impl FnMut(Arc<Chunk>)) {
        let (len, pieces) = (self.len(), self.len().div_ceil(CHUNK));
        for piece in 0..pieces {
            take(self.chunk(piece * len / pieces..(piece + 1) * len / pieces));
        }
        self.limits.clear();
        self.amounts.clear();
        self.accounts.clear();
        self.ids.clear();
        self.untils.clear();
    }

    fn chunk(&mut self, range: Range<usize>) -> Arc<Chunk> {
        let (limits, amounts) = (&self.limits[range.clone()], &self.amounts[range.clone()]);
        let len = range.len();
        let mut chunk = self.spare.pop().unwrap_or_else(|| {
            let (limits, amounts, ids) = ([limits[0]; CHUNK], [0; CHUNK], [0; CHUNK]);
            Arc::new(Chunk { len, limits, amounts, ids, untils: [0; CHUNK], accounts: [Address([0; 20]); CHUNK] })
        });
        let written = Arc::get_mut(&mut chunk).expect("nobody shares a spare chunk");
        written.len = len;
        written.limits[..len].copy_from_slice(limits);
        written.amounts[..len].copy_from_slice(amounts);
        written.accounts[..len].copy_from_slice(&self.accounts[range.clone()]);
        written.ids[..len].copy_from_slice(&self.ids[range.clone()]);
        written.untils[..len].copy_from_slice(&self.untils[range]);
        chunk
    }
}
