//! Duties: transactions that members of the payment lane and validators owe, and that are free.

use crate::transaction::{Body, Operation};

/// The bit in the first byte of a lane post that marks a member's duty. It is free, and the ledger admits it only from
/// an account of the member that signed it, and only if it changes the state.
pub const LANE_DUTY: u8 = 0x80;

/// The first rules with a sealing key of the committee.
pub const RULES_OF_SEALS: u32 = 20;
/// Maximum size of a post in the generation of a sealing key, in bytes.
pub const SEAL_POST_BYTES_MAX: usize = 4_096;

/// Whether a lane post is marked as a member's duty.
pub fn is_lane_duty(post: &[u8]) -> bool {
    post.first().is_some_and(|first| first & LANE_DUTY != 0)
}

impl Operation {
    /// Whether it is a duty: a member's in the lane ([`LANE_DUTY`]), a validator's presence, or a seat's post about the
    /// sealing key. A duty is free, and the ledger admits it only from whoever owes it, and only if it changes the
    /// state.
    pub fn is_duty(&self) -> bool {
        match self {
            Operation::Lane(post) => is_lane_duty(post),
            Operation::Present { .. } | Operation::SealDuty { .. } => true,
            _ => false,
        }
    }
}

impl Body {
    /// Whether the validator's key signs it, in place of the account's: then it has the number 0 and uses up none.
    pub fn is_of_validator(&self) -> bool {
        let is_duty = |operation: &Operation| {
            use Operation::{Approve, Present, SealDuty, Unapprove};
            matches!(operation, Present { .. } | Approve { .. } | Unapprove { .. } | SealDuty { .. })
        };
        self.sequence == 0 && is_duty(&self.operation)
    }

    /// Whether it is a duty, or what a validator's key says of the validator: both are free.
    pub fn is_duty(&self) -> bool {
        self.is_of_validator() || self.operation.is_duty()
    }
}
