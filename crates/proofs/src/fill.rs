//! What became of offers in a block: executions, and ends.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::Amount;

use crate::offer::{Pair, Place};

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
    /// The session key that placed it lapsed, was stopped or was revoked, after the batch.
    Lapsed,
    /// One of its assets has closed, after the batch.
    Closed,
    /// Its account was frozen in one of its assets, after the batch.
    Frozen,
}

impl EndReason {
    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            EndReason::Cancelled => "cancelled",
            EndReason::Replaced => "replaced",
            EndReason::Expired => "expired",
            EndReason::OneBatch => "one_batch",
            EndReason::Lapsed => "lapsed",
            EndReason::Closed => "closed",
            EndReason::Frozen => "frozen",
        }
    }

    /// Whether the offer was in the batch of the block that ended it.
    pub fn is_after_batch(self) -> bool {
        match self {
            EndReason::Cancelled | EndReason::Replaced => false,
            EndReason::Expired | EndReason::OneBatch | EndReason::Lapsed | EndReason::Closed | EndReason::Frozen => {
                true
            }
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
