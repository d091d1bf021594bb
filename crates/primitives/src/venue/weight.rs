//! What operations at venues cost, in bytes that one fee pays for.

use super::{Settle, VenueOperation};
use crate::{Height, WEIGHT_BYTES};

/// What a fill costs beside its bytes.
const FILL: u64 = 256;
/// What a signature costs beside its bytes: it is verified.
const SIGNATURE: u64 = 512;
/// What an entry costs for each [`LIFE_HEIGHTS`] begun of its life.
const ENTRY: u64 = 256;
/// Heights of an entry's life that are paid for together.
const LIFE_HEIGHTS: u64 = 1_024;
/// What stays for ever costs as many fees.
const KEY_FEES: u64 = 16;
/// A venue takes one of few places for ever.
const VENUE_FEES: u64 = 1_024;

impl VenueOperation {
    /// How many fees it costs, if it may count until a height. The ledger cannot know what entries are new before it
    /// applies a settle: a signature makes one.
    pub fn weight(&self, until: Height) -> u64 {
        let bytes = match self {
            VenueOperation::Settle(settle) => 1 + settle.encoded_len() as u64,
            other => borsh::object_length(other).map_or(u64::MAX, |bytes| bytes as u64),
        };
        let work = match self {
            VenueOperation::Settle(settle) => work_of_settle(settle, until),
            evidence if evidence.is_evidence() => 3 * SIGNATURE,
            VenueOperation::Authorize { .. } | VenueOperation::List { .. } => KEY_FEES * WEIGHT_BYTES,
            VenueOperation::Open { .. } => VENUE_FEES * WEIGHT_BYTES,
            _ => 0,
        };
        bytes.saturating_add(work).div_ceil(WEIGHT_BYTES).max(1)
    }
}

fn work_of_settle(settle: &Settle, until: Height) -> u64 {
    let of_new = |expiry: Height| {
        let life = expiry.saturating_sub(until) / LIFE_HEIGHTS + 1;
        life.saturating_mul(ENTRY)
    };
    let new = settle.orders.iter().filter(|order| order.signature.is_there());
    let entries = new.fold(0u64, |sum, order| sum.saturating_add(of_new(order.order.expiry)));
    let signatures = (settle.signatures() as u64).saturating_mul(SIGNATURE);
    (settle.fills.len() as u64).saturating_mul(FILL).saturating_add(entries).saturating_add(signatures)
}
