//! An order as its trader signs it.

use std::fmt;
use std::str::FromStr;

use borsh::{BorshDeserialize, BorshSerialize};

use super::{MarketId, PPM, TICK_MAX, VenueId};
use crate::{Digest, Height, PublicKey};

const SIGNING_TAG: &[u8] = b"walras venue order v1\0";
const DIGEST_CONTEXT: &str = "walras 2026 venue order v1";
/// The most bytes of an order, and of one with the names of its network, venue and key.
const ORDER_BYTES_MAX: usize = 56;
const NAMED_BYTES_MAX: usize = 68 + ORDER_BYTES_MAX;

/// The number of an order: each is used once by a key. Numbers are compared in the order of the fields, so references
/// may begin again after a fence and on every day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct OrderNumber {
    /// The incarnation of the venue that the order is for; it is void in any other.
    pub incarnation: u32,
    /// The day of the session, counted by the venue.
    pub day: u16,
    /// The client's reference.
    pub reference: u32,
}

impl fmt::Display for OrderNumber {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}:{}:{}", self.incarnation, self.day, self.reference)
    }
}

/// A text is no number of an order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no number of an order: write INCARNATION:DAY:REFERENCE, such as 0:20785:17")]
pub struct OrderNumberError(String);

impl FromStr for OrderNumber {
    type Err = OrderNumberError;

    fn from_str(text: &str) -> Result<OrderNumber, OrderNumberError> {
        let number = || {
            let mut parts = text.split(':');
            let mut digits = || parts.next().filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
            let (incarnation, day, reference) =
                (digits()?.parse().ok()?, digits()?.parse().ok()?, digits()?.parse().ok()?);
            parts.next().is_none().then_some(OrderNumber { incarnation, day, reference })
        };
        number().ok_or_else(|| OrderNumberError(text.into()))
    }
}

/// Whether an order buys or sells base units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub enum VenueSide {
    /// It buys.
    Buy,
    /// It sells.
    Sell,
}

/// How long an order rests, and how it may trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub enum OrderLife {
    /// It rests until it is cancelled or expires.
    Rests,
    /// It rests and never takes.
    PostOnly,
    /// It takes what it can at once; the rest does not rest.
    ImmediateOrCancel,
    /// It takes all of its lots at once, or nothing.
    FillOrKill,
}

/// What happens if an order would trade with another one of its owner. The venue obeys it; the ledger never fills two
/// orders of one owner with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub enum SelfTradeRule {
    /// The resting order expires.
    ExpireMaker,
    /// The incoming order expires.
    ExpireTaker,
    /// Both expire.
    ExpireBoth,
}

/// What a trading key signs. Network and venue are signed, too ([`VenueOrder::signing_bytes`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct VenueOrder {
    /// The market.
    pub market: MarketId,
    /// Its number.
    pub number: OrderNumber,
    /// Lower numbers of this key are dead when a fill of this order is applied; at most its own number.
    pub floor: OrderNumber,
    /// The side.
    pub side: VenueSide,
    /// How it trades.
    pub life: OrderLife,
    /// The rule for an order that meets another one of its owner.
    pub self_trade: SelfTradeRule,
    /// Its limit price in ticks, from 1 to [`TICK_MAX`].
    pub tick: u32,
    /// Its size in lots, at least 1.
    pub lots: u32,
    /// The last height of its life; the ledger accepts its fills somewhat later.
    pub expiry: Height,
    /// The last block time of its life in milliseconds since 1970, if it has one.
    pub until_ms: Option<u64>,
    /// The most it pays in fees, in millionths of the quote units that it trades; at most [`PPM`].
    pub fee_cap_ppm: u32,
}

impl VenueOrder {
    /// The bytes that the trading key signs.
    pub fn signing_bytes(&self, network: &Digest, venue: VenueId) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(160);
        bytes.extend_from_slice(SIGNING_TAG);
        (network, venue, self).serialize(&mut bytes).expect("writing to memory cannot fail");
        bytes
    }

    /// The digest by which leaves and entries of the ledger name the order of `key`.
    pub fn digest(&self, network: &Digest, venue: VenueId, key: &PublicKey) -> Digest {
        Digest::of_short::<NAMED_BYTES_MAX>(DIGEST_CONTEXT, &(network, venue, key, self))
    }

    /// Bytes of its encoding.
    pub(super) fn encoded_len(&self) -> usize {
        if self.until_ms.is_some() { ORDER_BYTES_MAX } else { ORDER_BYTES_MAX - 8 }
    }

    /// Whether the fields are within their bounds.
    pub fn is_plain(&self) -> bool {
        (1..=TICK_MAX).contains(&self.tick) && self.lots >= 1 && self.fee_cap_ppm <= PPM && self.floor <= self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_as_it_is_written() {
        for (incarnation, day, reference) in [(0, 0, 0), (1, 20_785, 17), (u32::MAX, u16::MAX, u32::MAX)] {
            let number = OrderNumber { incarnation, day, reference };
            assert_eq!(number.to_string().parse(), Ok(number));
        }
        for wrong in
            ["", "1", "1:2", "1:2:3:4", "-1:2:3", "+1:2:3", "1:65536:3", "1:2:4294967296", "a:b:c", "1: 2:3", "::"]
        {
            let error = wrong.parse::<OrderNumber>().expect_err(wrong);
            assert!(error.to_string().contains("INCARNATION:DAY:REFERENCE"), "{error}");
        }
    }
}
