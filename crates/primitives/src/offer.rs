//! What traders write about their offers.

use borsh::{BorshDeserialize, BorshSerialize};

use crate::sequence::Sequence;
use crate::{AssetId, Price};

/// The most offers that one cancel names.
pub const CANCELS_MAX: usize = 32;

/// Where an offer of the sender rests. The account is the sender's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct OfferPlace {
    /// The asset that it sells.
    pub sell: AssetId,
    /// The asset that it buys.
    pub buy: AssetId,
    /// Its limit price.
    pub limit: Price,
    /// Its id: the sequence number of the transaction that placed it.
    pub offer: Sequence,
}

/// Whether a list names 1 to [`CANCELS_MAX`] different offers.
pub(crate) fn is_list(places: &[OfferPlace]) -> bool {
    let is_new = |(at, place): (usize, &OfferPlace)| !places[..at].contains(place);
    (1..=CANCELS_MAX).contains(&places.len()) && places.iter().enumerate().all(is_new)
}
