//! The resting offers, by ordered pair, in the order in which they execute: limit price, account, offer id.

use std::collections::BTreeMap;
use std::sync::Arc;

use primitives::{Address, Amount, AssetId, Price, Sequence};

use crate::receipt::Fill;

/// An ordered pair of assets: what is sold, what is bought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub struct Pair {
    /// The asset that the pair's offers sell.
    pub sell: AssetId,
    /// The asset that they buy.
    pub buy: AssetId,
}

/// The place of an offer among those of its pair. The order of places is the order of execution (SPEEDEX §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub struct Place {
    /// The limit price.
    pub limit: Price,
    /// The account that made the offer.
    pub account: Address,
    /// The offer's id: the sequence number of the transaction that made it.
    pub id: Sequence,
}

/// A resting offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub struct Offer {
    /// Its place in the book of its pair.
    pub place: Place,
    /// Units still for sale, never zero.
    pub amount: Amount,
}

impl Place {
    /// The key of the offer in the trie of its pair: price first, so that the trie is sorted by it (SPEEDEX §K.5).
    pub fn key(&self) -> [u8; 36] {
        let mut key = [0; 36];
        key[..8].copy_from_slice(&self.limit.to_bits().to_be_bytes());
        key[8..28].copy_from_slice(&self.account.0);
        key[28..].copy_from_slice(&self.id.to_be_bytes());
        key
    }
}

/// The resting offers of one ordered pair: one array per field, so that clearing reads limits and amounts alone.
/// 44 bytes an offer.
#[derive(Clone, Default)]
pub struct PairOffers {
    limits: Vec<Price>,
    amounts: Vec<Amount>,
    accounts: Vec<Address>,
    ids: Vec<Sequence>,
}

impl PairOffers {
    /// Number of offers.
    pub fn len(&self) -> usize {
        self.limits.len()
    }

    /// Whether no offer rests.
    pub fn is_empty(&self) -> bool {
        self.limits.is_empty()
    }

    /// Limit prices in order of execution.
    pub fn limits(&self) -> &[Price] {
        &self.limits
    }

    /// Units for sale, in the same order.
    pub fn amounts(&self) -> &[Amount] {
        &self.amounts
    }

    /// The offers as the solver sees them; sums them up.
    ///
    /// # Panics
    /// If there are none.
    pub fn view(&self, pair: Pair) -> clearing::PairBook<'_> {
        let view = clearing::PairBook::new(pair.sell, pair.buy, &self.limits, &self.amounts);
        view.expect("resting offers stand in order, and each sells something")
    }

    /// The place of an offer by its position.
    pub fn place(&self, at: usize) -> Place {
        Place { limit: self.limits[at], account: self.accounts[at], id: self.ids[at] }
    }

    /// An offer by its position.
    pub fn offer(&self, at: usize) -> Offer {
        Offer { place: self.place(at), amount: self.amounts[at] }
    }

    /// The place of the offer that executes last.
    pub fn last(&self) -> Option<Place> {
        self.len().checked_sub(1).map(|at| self.place(at))
    }

    /// The offers in order of execution.
    pub fn iter(&self) -> impl Iterator<Item = Offer> + '_ {
        (0..self.len()).map(|at| self.offer(at))
    }

    /// The position of the offer at a place.
    pub fn find(&self, place: &Place) -> Option<usize> {
        let at = self.lower_bound(place);
        (at < self.len() && self.place(at) == *place).then_some(at)
    }

    /// Whether some account's offer has this limit and id.
    pub fn any_at(&self, limit: Price, id: Sequence) -> bool {
        let from = self.limits.partition_point(|l| *l < limit);
        let to = self.limits.partition_point(|l| *l <= limit);
        self.ids[from..to].contains(&id)
    }

    fn lower_bound(&self, place: &Place) -> usize {
        let from = self.limits.partition_point(|limit| *limit < place.limit);
        let to = from + self.limits[from..].partition_point(|limit| *limit == place.limit);
        // Few offers share a price, but nothing forbids many.
        let mut range = from..to;
        while !range.is_empty() {
            let middle = range.start + range.len() / 2;
            if self.place(middle) < *place { range.start = middle + 1 } else { range.end = middle }
        }
        range.start
    }

    fn push(&mut self, offer: Offer) {
        self.limits.push(offer.place.limit);
        self.amounts.push(offer.amount);
        self.accounts.push(offer.place.account);
        self.ids.push(offer.place.id);
    }

    fn with_capacity(capacity: usize) -> PairOffers {
        PairOffers {
            limits: Vec::with_capacity(capacity),
            amounts: Vec::with_capacity(capacity),
            accounts: Vec::with_capacity(capacity),
            ids: Vec::with_capacity(capacity),
        }
    }

    fn extend_from(&mut self, other: &PairOffers, range: std::ops::Range<usize>) {
        self.limits.extend_from_slice(&other.limits[range.clone()]);
        self.amounts.extend_from_slice(&other.amounts[range.clone()]);
        self.accounts.extend_from_slice(&other.accounts[range.clone()]);
        self.ids.extend_from_slice(&other.ids[range]);
    }

    /// Takes out the offers at `removed` (positions, sorted) and puts in `added` (sorted by place), in one pass.
    pub(crate) fn update(&mut self, removed: &[usize], added: &[Offer]) {
        if removed.is_empty() && added.is_empty() {
            return;
        }
        let mut merged = PairOffers::with_capacity(self.len() - removed.len() + added.len());
        let mut from = 0;
        let mut removed = removed.iter().copied().peekable();
        let copy = |merged: &mut PairOffers, from: &mut usize, to: usize, removed: &mut std::iter::Peekable<_>| {
            while let Some(gone) = removed.next_if(|gone| *gone < to) {
                merged.extend_from(self, *from..gone);
                *from = gone + 1;
            }
            if *from < to {
                merged.extend_from(self, *from..to);
                *from = to;
            }
        };
        for offer in added {
            let to = self.lower_bound(&offer.place);
            copy(&mut merged, &mut from, to, &mut removed);
            merged.push(*offer);
        }
        copy(&mut merged, &mut from, self.len(), &mut removed);
        *self = merged;
    }

    /// The offers as they stood before `fills`, which are sorted by place: what rests now, and what was sold.
    pub fn before<'a>(&self, fills: impl IntoIterator<Item = &'a Fill>) -> PairOffers {
        let mut before = PairOffers::with_capacity(self.len());
        let mut from = 0;
        for fill in fills {
            let at = self.lower_bound(&fill.place);
            before.extend_from(self, from..at);
            before.push(Offer { place: fill.place, amount: fill.left + fill.sold });
            from = if fill.left > 0 { at + 1 } else { at };
        }
        before.extend_from(self, from..self.len());
        before
    }

    /// Takes executed units from the offer at a position, which keeps some.
    pub(crate) fn reduce(&mut self, at: usize, sold: Amount) {
        self.amounts[at] -= sold;
        debug_assert!(self.amounts[at] > 0, "an offer sold in full leaves the book");
    }
}

/// The books of all pairs. Like the shards of accounts they are shared with a running checkpoint and copied when they
/// are next written.
#[derive(Clone, Default)]
pub struct OrderBook {
    pairs: BTreeMap<Pair, Arc<PairOffers>>,
}

impl OrderBook {
    /// The resting offers of a pair.
    pub fn get(&self, pair: Pair) -> Option<&PairOffers> {
        self.pairs.get(&pair).map(Arc::as_ref)
    }

    /// The pairs that have resting offers, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Pair, &PairOffers)> {
        self.pairs.iter().map(|(pair, offers)| (*pair, offers.as_ref()))
    }

    /// The offers of a pair, to be changed.
    pub(crate) fn entry(&mut self, pair: Pair) -> &mut Arc<PairOffers> {
        self.pairs.entry(pair).or_default()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Pair, &mut Arc<PairOffers>)> {
        self.pairs.iter_mut().map(|(pair, offers)| (*pair, offers))
    }

    pub(crate) fn drop_empty(&mut self) {
        self.pairs.retain(|_, offers| !offers.is_empty());
    }

    /// Bytes of memory that the offers take, their tries apart.
    pub fn bytes(&self) -> usize {
        let pair = |offers: &Arc<PairOffers>| {
            offers.limits.capacity() * size_of::<Price>()
                + offers.amounts.capacity() * size_of::<Amount>()
                + offers.accounts.capacity() * size_of::<Address>()
                + offers.ids.capacity() * size_of::<Sequence>()
                + size_of::<PairOffers>()
        };
        self.pairs.values().map(pair).sum()
    }

    /// Number of resting offers.
    pub fn len(&self) -> usize {
        self.pairs.values().map(|offers| offers.len()).sum()
    }

    /// Whether no offer rests.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn offer(limit: u8, account: u8, id: u8, amount: u64) -> Offer {
        let limit = Price::from_f64(f64::from(limit) + 1.0).expect("in range");
        Offer { place: Place { limit, account: Address([account; 20]), id: u64::from(id) }, amount }
    }

    proptest! {
        /// Against a plain sorted map.
        #[test]
        fn updates_merge_in_order(
            steps in proptest::collection::vec(
                (proptest::collection::btree_map((0..6u8, 0..4u8, 0..6u8), 1..100u64, 0..30),
                 proptest::collection::vec(any::<prop::sample::Index>(), 0..10)),
                1..8,
            )
        ) {
            let mut book = PairOffers::default();
            let mut plain = BTreeMap::new();
            for (added, removed) in steps {
                let mut positions: Vec<usize> = removed.iter().filter(|_| !book.is_empty()).map(|i| i.index(book.len())).collect();
                positions.sort_unstable();
                positions.dedup();
                for &at in &positions {
                    plain.remove(&book.place(at));
                }
                let added: Vec<Offer> = added
                    .into_iter()
                    .map(|((limit, account, id), amount)| offer(limit, account, id, amount))
                    .filter(|new| book.find(&new.place).is_none())
                    .collect();
                plain.extend(added.iter().map(|new| (new.place, new.amount)));
                book.update(&positions, &added);
                let held: Vec<_> = book.iter().map(|o| (o.place, o.amount)).collect();
                prop_assert_eq!(held, plain.iter().map(|(p, a)| (*p, *a)).collect::<Vec<_>>());
                for place in plain.keys() {
                    prop_assert_eq!(book.find(place).map(|at| book.place(at)), Some(*place));
                }
            }
        }
    }
}
