//! Values of the books: pairs, places, resting offers, their changes and their fills.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Address, Amount, AssetId, Height, Life, Price, Sequence};

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
/// The last height of an offer that is in the batch of its own block alone: that of each block is above.
const ONE_BATCH: Height = 0;

/// The last height of an offer with this life.
pub(crate) fn last_height(life: Life) -> Height {
    match life {
        Life::Rests => NO_END,
        Life::Until(height) => height,
        Life::OneBatch => ONE_BATCH,
    }
}

/// Whether an offer with this last height is counted by its end: it may rest, and not for ever.
pub(crate) fn ends_later(until: Height) -> bool {
    until != NO_END && until != ONE_BATCH
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

/// One change to a pair's offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The offer's place.
    pub place: Place,
    /// Units for sale from now on; `None` if the offer leaves.
    pub amount: Option<Amount>,
    /// The offer's last height; of one that leaves it has no meaning.
    pub until: Height,
}

impl Edit {
    /// The offer rests from now on.
    pub fn rests(Offer { place, amount, until }: Offer) -> Edit {
        Edit { place, amount: Some(amount), until }
    }

    /// The offer leaves.
    pub fn leaves(place: Place) -> Edit {
        Edit { place, amount: None, until: NO_END }
    }

    /// What rests afterwards.
    pub(crate) fn rest(&self) -> Option<Rest> {
        self.amount.map(|amount| Rest { amount, until: self.until })
    }
}

/// One offer's execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Fill {
    /// The offer's pair.
    pub pair: Pair,
    /// The offer's place in the book.
    pub place: Place,
    /// Units sold.
    pub sold: Amount,
    /// Units received, net of commission.
    pub bought: Amount,
    /// Units that rest in the book.
    pub left: Amount,
    /// Units returned to the account, because they are too few for an offer; then none rest.
    pub returned: Amount,
}

impl Fill {
    /// Units that were for sale before.
    pub fn offered(&self) -> Amount {
        self.sold + self.left + self.returned
    }
}

/// The offers of one pair that changed. Offers that were placed and fully executed in the same block are not
/// included.
#[derive(Clone, Debug)]
pub struct PairChange {
    /// The pair.
    pub pair: Pair,
    /// Every offer up to and including this place leaves, most of them as whole subtrees; then the edits are applied.
    pub through: Option<Place>,
    /// Offers that are added, changed or removed, by place.
    pub edits: Vec<Edit>,
}

/// Why an offer left the book before it was sold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub enum EndReason {
    /// Its account cancelled it, before the batch.
    Cancelled,
    /// Another offer took its place, before the batch.
    Replaced,
    /// The block was the last one that it is for, after the batch.
    Expired,
    /// It was for the batch of its own block alone, after the batch.
    OneBatch,
}

impl EndReason {
    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            EndReason::Cancelled => "cancelled",
            EndReason::Replaced => "replaced",
            EndReason::Expired => "expired",
            EndReason::OneBatch => "one_batch",
        }
    }

    /// Whether the offer was in the batch of the block that ended it.
    pub fn is_after_batch(self) -> bool {
        match self {
            EndReason::Cancelled | EndReason::Replaced => false,
            EndReason::Expired | EndReason::OneBatch => true,
        }
    }
}

/// An offer that left the book, with what was left of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub struct EndedOffer {
    /// The offer's pair.
    pub pair: Pair,
    /// Its place in the book.
    pub place: Place,
    /// Units that it no longer locks and that are the account's; of a replaced offer those that the new one does not
    /// lock.
    pub returned: Amount,
    /// Why it left.
    pub why: EndReason,
}
