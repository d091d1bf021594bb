//! Offers as they are hashed and proved: pairs, places, what rests, and what became of offers in a block.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Address, Amount, AssetId, Digest, Height, Price, Sequence};

use crate::root_parts::{ProofFault, RootPart, RootParts, check_path};

const PAIR_CONTEXT: &str = "walras 2026 pair root v1";

/// An ordered pair of assets: what is sold, what is bought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct Pair {
    /// The asset that the pair's offers sell.
    pub sell: AssetId,
    /// The asset that they buy.
    pub buy: AssetId,
}

/// The place of an offer in the book of its pair. The order of places is the order of execution (SPEEDEX §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct Place {
    /// The limit price.
    pub limit: Price,
    /// The account that made the offer.
    pub account: Address,
    /// The offer's id: the sequence number of the transaction that made it.
    pub id: Sequence,
}

/// A resting offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub struct Offer {
    /// Its place in the book of its pair.
    pub place: Place,
    /// Units still for sale, never zero.
    pub amount: Amount,
    /// The last height whose batch it is in; [`NO_END`] if it has none.
    pub until: Height,
}

/// What rests at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Rest {
    /// Units for sale.
    pub amount: Amount,
    /// The last height whose batch it is in; [`NO_END`] if it has none.
    pub until: Height,
}

/// The last height of an offer that rests until it is sold or cancelled.
pub const NO_END: Height = Height::MAX;
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

/// The value of an offer in the trie of its pair: its amount and its last height. The key is its place.
pub fn offer_value(rest: Rest) -> [u8; 16] {
    let mut value = [0; 16];
    value[..8].copy_from_slice(&rest.amount.to_le_bytes());
    value[8..].copy_from_slice(&rest.until.to_le_bytes());
    value
}

/// The key of a pair in the trie over the roots of pairs.
pub fn pair_key(pair: Pair) -> [u8; 8] {
    let mut key = [0; 8];
    key[..4].copy_from_slice(&pair.sell.0.to_be_bytes());
    key[4..].copy_from_slice(&pair.buy.0.to_be_bytes());
    key
}

/// The value of a pair in that trie.
pub fn pair_root_digest(root: &Digest) -> [u8; 32] {
    blake3::derive_key(PAIR_CONTEXT, &root.0)
}

/// A proof that an offer rests with some amount, or that no such offer rests.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct OfferProof {
    /// The parts of the state root.
    pub parts: RootParts,
    /// What rests there; `None` proves that no offer does.
    pub rest: Option<Rest>,
    /// The pair's root, unless the pair has no resting offers.
    pub pair_root: Option<Digest>,
    /// The path in the trie of pairs.
    pub pair_path: Vec<u8>,
    /// The path in the pair's trie; empty if the pair has no resting offers.
    pub path: Vec<u8>,
}

impl OfferProof {
    /// Checks the proof against a state root; returns what rests, or `None` if it is proved that no offer rests
    /// there.
    ///
    /// # Errors
    /// [`ProofFault`] if the proof is invalid.
    pub fn verify(&self, root: &Digest, pair: Pair, place: &Place) -> Result<Option<Rest>, ProofFault> {
        let offers = self.parts.part(root, RootPart::OFFERS)?;
        let pair_value = self.pair_root.as_ref().map(pair_root_digest);
        check_path(&offers, &pair_key(pair), &self.pair_path, pair_value)?;
        match self.pair_root {
            Some(pair_root) => check_path(&pair_root, &place.key(), &self.path, self.rest.map(offer_value))?,
            None if self.rest.is_some() || !self.path.is_empty() => return Err(ProofFault::OtherValue),
            None => {}
        }
        Ok(self.rest)
    }
}
