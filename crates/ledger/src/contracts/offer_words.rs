//! How contracts see offers: names, edits and slots. See `offers` for what they answer.

use primitives::{Amount, AssetId, Height, Price, Sequence};
use proofs::{NO_END, Pair, Place};
use revm::primitives::{Address, U256};

use super::slots::GAS_ASSET;

/// The first id of offers that are placed by contracts. Sequence numbers of native transactions are below.
pub const FIRST_CONTRACT_OFFER: Sequence = 1 << 63;

/// The room in the book at the start of a contract phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BookFacts {
    /// Whether it accepts no more offers.
    pub is_full: bool,
    /// Pairs that may still be opened; `None` where all pairs of the assets fit.
    pub pairs_left: Option<u32>,
    /// Of these, pairs with an asset that was listed after the genesis.
    pub listed_pairs_left: u64,
}

/// How contracts identify an offer of a known owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferName {
    /// Its pair.
    pub pair: Pair,
    /// Its limit price.
    pub limit: Price,
    /// Its id.
    pub id: Sequence,
}

impl OfferName {
    /// The word: eight zeros, the numbers of the two assets, limit and id, all big-endian.
    pub fn to_word(&self) -> [u8; 32] {
        let mut word = [0; 32];
        word[8..12].copy_from_slice(&self.pair.sell.0.to_be_bytes());
        word[12..16].copy_from_slice(&self.pair.buy.0.to_be_bytes());
        word[16..24].copy_from_slice(&self.limit.to_bits().to_be_bytes());
        word[24..].copy_from_slice(&self.id.to_be_bytes());
        word
    }

    /// The offer that a word names, if it can be an offer of a contract.
    pub fn of_word(word: &[u8; 32]) -> Option<OfferName> {
        let (pair, limit, id) = parts(word)?;
        (word[..8] == [0; 8] && id >= FIRST_CONTRACT_OFFER).then_some(OfferName { pair, limit, id })
    }

    /// Its place in the book of its pair.
    pub fn place(&self, owner: &primitives::Address) -> Place {
        Place { limit: self.limit, account: *owner, id: self.id }
    }
}

/// A pair, a limit and eight more bytes.
fn parts(word: &[u8; 32]) -> Option<(Pair, Price, u64)> {
    let asset = |at: usize| AssetId(u32::from_be_bytes(word[at..at + 4].try_into().expect("four bytes")));
    let long = |at: usize| u64::from_be_bytes(word[at..at + 8].try_into().expect("eight bytes"));
    Some((Pair { sell: asset(8), buy: asset(12) }, Price::from_bits(long(16)).ok()?, long(24)))
}

/// What a block's transactions do to an offer, as stored in a virtual slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BookEdit {
    pub pair: Pair,
    pub limit: Price,
    /// Units that it sells, or returns.
    pub amount: Amount,
    pub is_placed: bool,
    /// The last height whose batch it is in, or [`NO_END`].
    pub until: Height,
}

const PLACED: u8 = 1;
const CANCELLED: u8 = 2;

impl BookEdit {
    pub fn to_word(self) -> U256 {
        let BookEdit { pair, limit, amount, is_placed, until } = self;
        let mut word = OfferName { pair, limit, id: amount }.to_word();
        // Seven bytes hold every height at which an offer may end; zero is none.
        let end = if until == NO_END { 0 } else { until };
        word[..8].copy_from_slice(&end.to_be_bytes());
        word[0] = if is_placed { PLACED } else { CANCELLED };
        U256::from_be_bytes(word)
    }

    /// The edit that a slot holds; `None` if the offer is not edited.
    pub fn of_word(word: U256) -> Option<BookEdit> {
        let word = word.to_be_bytes();
        let (pair, limit, amount) = parts(&word)?;
        let end = Height::from_be_bytes([0, word[1], word[2], word[3], word[4], word[5], word[6], word[7]]);
        let until = if end == 0 { NO_END } else { end };
        Some(BookEdit { pair, limit, amount, is_placed: word[0] == PLACED, until })
    }

    /// Change of the units that offers lock.
    fn locked(&self) -> i128 {
        if self.is_placed { i128::from(self.amount) } else { -i128::from(self.amount) }
    }
}

/// The meaning of a slot of [`OFFERS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OffersSlot {
    /// An ordinary slot: how many offers an owner has placed.
    Count,
    /// An edit.
    Edit(primitives::Address, Sequence),
    /// Pairs that were opened in the block.
    Opened,
}

pub(super) const EDIT: u8 = 1;
pub(super) const OPENED: u8 = 2;
const OPENED_COUNT: u8 = 3;

/// Whose new pairs a slot counts within a block.
#[derive(Clone, Copy)]
pub(super) enum OpenedOf {
    All,
    /// Those with an asset that was listed after the genesis.
    Listed,
    /// Those with this one.
    Asset(AssetId),
}

impl OpenedOf {
    pub fn slot(self) -> U256 {
        let (kind, number) = match self {
            OpenedOf::All => (0u64, 0),
            OpenedOf::Listed => (1, 0),
            OpenedOf::Asset(asset) => (2, asset.0),
        };
        tagged(OPENED_COUNT, &[0; 20], (kind << 32 | u64::from(number)).to_be_bytes())
    }
}

/// A pair as eight bytes of a slot.
pub(super) fn pair_bytes(pair: Pair) -> [u8; 8] {
    (u64::from(pair.sell.0) << 32 | u64::from(pair.buy.0)).to_be_bytes()
}

impl OffersSlot {
    pub fn of(slot: &[u8; 32]) -> OffersSlot {
        match slot[3] {
            0 => OffersSlot::Count,
            EDIT => {
                let owner = primitives::Address(slot[4..24].try_into().expect("twenty bytes"));
                OffersSlot::Edit(owner, u64::from_be_bytes(slot[24..].try_into().expect("eight bytes")))
            }
            _ => OffersSlot::Opened,
        }
    }
}

pub(super) fn tagged(tag: u8, owner: &[u8; 20], rest: [u8; 8]) -> U256 {
    U256::from_be_slice(&[&[0, 0, 0, tag], &owner[..], &rest].concat())
}

pub(super) fn edit_slot(owner: &Address, id: Sequence) -> U256 {
    tagged(EDIT, &owner.0.0, id.to_be_bytes())
}

pub(super) fn count_slot(owner: &Address) -> U256 {
    owner.into_word().into()
}

/// Units of asset 0 by which a write to a slot of [`OFFERS`] changed what offers lock.
pub(super) fn locked_gas_units(slot: &U256, before: U256, after: U256) -> i128 {
    if !matches!(OffersSlot::of(&slot.to_be_bytes()), OffersSlot::Edit(..)) {
        return 0;
    }
    let locked = |word| BookEdit::of_word(word).filter(|edit| edit.pair.sell == GAS_ASSET).map_or(0, |e| e.locked());
    locked(after) - locked(before)
}
