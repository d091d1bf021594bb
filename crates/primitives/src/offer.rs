//! What traders write about their offers.

use std::fmt;
use std::str::FromStr;

use borsh::{BorshDeserialize, BorshSerialize};

use crate::hash::{HexError, from_hex, to_hex};
use crate::height::Height;
use crate::sequence::Sequence;
use crate::{Amount, AssetId, Price};

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

/// How long an offer rests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub enum Life {
    /// Until it is sold or cancelled.
    #[default]
    Rests,
    /// It is in batches up to this height, and ends with that block.
    Until(Height),
    /// It is in the batch of its own block alone and never rests.
    OneBatch,
}

/// What takes the place of a resting offer. `remains` is what the sender believes rests of it. The ledger knows what
/// does, and makes the new offer smaller by as much as was sold meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct OfferReplacement {
    /// Where the old offer rests; the new one is of the same pair, and its id is the transaction's sequence number.
    pub old: OfferPlace,
    /// Units that the sender believes the old offer has for sale; it has no more.
    pub remains: Amount,
    /// Units that the new offer would sell if that is so.
    pub amount: Amount,
    /// The limit price of the new offer.
    pub limit: Price,
    /// How long it rests.
    pub life: Life,
    /// What its client calls it.
    pub client: ClientId,
}

impl OfferReplacement {
    /// Units that it takes from the balance, whatever rests.
    pub fn debit(&self) -> Amount {
        self.amount.saturating_sub(self.remains)
    }

    /// Units that the new offer sells if so many of the old one rest, at most [`OfferReplacement::remains`].
    pub fn size(&self, rests: Amount) -> Amount {
        self.amount.saturating_sub(self.remains.saturating_sub(rests))
    }
}

/// A text that is no [`Life`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LifeError(String);

/// What a client calls its order. No state has it: it is for the client and for those who keep blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct ClientId(pub [u8; 16]);

impl fmt::Display for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Life::Rests => f.write_str("rests"),
            Life::Until(height) => write!(f, "until {height}"),
            Life::OneBatch => f.write_str("one batch"),
        }
    }
}

impl FromStr for Life {
    type Err = LifeError;

    fn from_str(text: &str) -> Result<Life, LifeError> {
        let height = |digits: &str| digits.parse().ok().filter(|height: &Height| height.to_string() == digits);
        match text {
            "rests" => Ok(Life::Rests),
            "one batch" => Ok(Life::OneBatch),
            _ => match text.strip_prefix("until ").and_then(height) {
                Some(height) => Ok(Life::Until(height)),
                None => Err(LifeError(text.into())),
            },
        }
    }
}

impl fmt::Display for LifeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no life of an offer: write `rests`, `until` and a height, or `one batch`", self.0)
    }
}

impl std::error::Error for LifeError {}

impl ClientId {
    /// Of orders that their client does not name.
    pub const NONE: ClientId = ClientId([0; 16]);
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{}", to_hex(&self.0))
    }
}

impl FromStr for ClientId {
    type Err = HexError;

    fn from_str(text: &str) -> Result<ClientId, HexError> {
        from_hex(text).map(ClientId)
    }
}

/// Whether a list names 1 to [`CANCELS_MAX`] different offers.
pub(crate) fn is_list(places: &[OfferPlace]) -> bool {
    let is_new = |(at, place): (usize, &OfferPlace)| !places[..at].contains(place);
    (1..=CANCELS_MAX).contains(&places.len()) && places.iter().enumerate().all(is_new)
}
