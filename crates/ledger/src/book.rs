//! The resting offers, by ordered pair, in their order of execution: limit price, account, offer id.

use std::collections::BTreeMap;
use std::sync::Arc;

use primitives::{Address, Amount, AssetId, Price, Sequence};

use crate::pair_offers::PairOffers;

/// An ordered pair of assets: what is sold, what is bought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub struct Pair {
    /// The asset that the pair's offers sell.
    pub sell: AssetId,
    /// The asset that they buy.
    pub buy: AssetId,
}

/// The place of an offer in the book of its pair. The order of places is the order of execution (SPEEDEX §4.2).
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
    /// The place before every offer of this limit price.
    pub fn lowest(limit: Price) -> Place {
        Place { limit, account: Address([0; 20]), id: 0 }
    }

    /// The place behind every offer of this limit price.
    pub fn highest(limit: Price) -> Place {
        Place { limit, account: Address([0xff; 20]), id: Sequence::MAX }
    }

    /// The key of the offer in the trie of its pair: price first, so that the trie is sorted by it (SPEEDEX §K.5).
    pub fn key(&self) -> [u8; 36] {
        let mut key = [0; 36];
        key[..8].copy_from_slice(&self.limit.to_bits().to_be_bytes());
        key[8..28].copy_from_slice(&self.account.0);
        key[28..].copy_from_slice(&self.id.to_be_bytes());
        key
    }
}

/// The books of all pairs. A checkpoint that is being written shares their chunks.
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

    /// The offers of a pair, for changes.
    pub(crate) fn entry(&mut self, pair: Pair) -> &mut Arc<PairOffers> {
        self.pairs.entry(pair).or_default()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Pair, &mut Arc<PairOffers>)> {
        self.pairs.iter_mut().map(|(pair, offers)| (*pair, offers))
    }

    pub(crate) fn drop_empty(&mut self) {
        self.pairs.retain(|_, offers| !offers.is_empty());
    }

    /// Bytes of memory that the offers use, without their tries.
    pub fn bytes(&self) -> usize {
        self.pairs.values().map(|offers| offers.bytes()).sum()
    }

    /// Number of pairs that have resting offers.
    pub fn pairs(&self) -> usize {
        self.pairs.len()
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
