//! Changes of the books, and when offers end.

use primitives::{Amount, Height, Life};
use proofs::{NO_END, Offer, Pair, Place, Rest};

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
