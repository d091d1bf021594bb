//! What a block did with the fills of a settle, as its receipts have it.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::Digest;
use primitives::venue::VenueId;

const CONTEXT: &str = "walras 2026 venue settles of a block v1";

/// The first rule that a fill breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub enum BustReason {
    /// F1: market or keys do not exist, the sides or owners do not fit, or an order is for another incarnation.
    Parties,
    /// F2: a key is revoked, a number is below the floor, or was used for another order.
    Dead,
    /// F3: an order has expired, or lives too long.
    Expired,
    /// F4: the price, the lots or the taker are outside of an order, a mandate or the market.
    Outside,
    /// F5: it moves more than can exist, or costs more in fees than a cap.
    Size,
    /// F6: a deposit is short.
    Deposit,
    /// F7: a key would lose more than it may.
    Drawdown,
    /// F8: buyer, seller or the venue's owner is frozen in an asset of the market. Since rules 17.
    Frozen,
}

/// Which sides of a bust are guilty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub enum BustGuilt {
    /// None of them.
    Nobody,
    /// The buyer.
    Buyer,
    /// The seller.
    Seller,
    /// Both of them.
    Both,
}

/// What became of a fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum FillVerdict {
    /// It moved what it says.
    Applied,
    /// It changed nothing, and cost the venue a penalty.
    Bust(BustReason, BustGuilt),
}

/// A settle that counted.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SettledFills {
    /// The venue.
    pub venue: VenueId,
    /// Its incarnation.
    pub incarnation: u32,
    /// The index of the first fill.
    pub from: u64,
    /// The leaves of the fills, in order.
    pub leaves: Vec<Digest>,
    /// What became of them.
    pub verdicts: Vec<FillVerdict>,
}

impl BustGuilt {
    /// The guilt of buyer and seller.
    pub fn of([buyer, seller]: [bool; 2]) -> BustGuilt {
        match (buyer, seller) {
            (false, false) => BustGuilt::Nobody,
            (true, false) => BustGuilt::Buyer,
            (false, true) => BustGuilt::Seller,
            (true, true) => BustGuilt::Both,
        }
    }
}

/// What the receipts root says of the settles of a block.
pub fn settles_digest(settles: &[SettledFills]) -> Digest {
    Digest::of(CONTEXT, &borsh::to_vec(settles).expect("writing to memory cannot fail"))
}
