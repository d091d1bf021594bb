//! What a member has to say to the ledger: each statement once, until the ledger has it or needs it no longer.
//!
//! The list is no queue: a statement has a place by its once-key, a place is free only when the ledger makes it so, and
//! the number of places is bounded by open cases, epochs and members.

use std::collections::BTreeMap;

use kernel::Planted;
use ledger::LaneBridge;
use payments::{BridgeKey, BridgeOperation, KeyGeneration, PaymentBody};
use primitives::Height;

use crate::MemberMistake;

/// A transaction with a post ends this many blocks after the height at which it was made. The next one is made then.
pub const POST_BLOCKS: Height = 8;

/// A statement, and when it is sent next.
struct Owed {
    operation: BridgeOperation,
    /// At this height the last transaction with it has ended.
    next: Height,
}

/// A post to be sent now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LanePost {
    /// The fact that the post establishes once.
    pub key: BridgeKey,
    /// The operation.
    pub operation: BridgeOperation,
    /// The last height at which its transaction may be in a block.
    pub until: Height,
}

/// The list; see the module text.
#[derive(Default)]
pub(crate) struct Posts(BTreeMap<BridgeKey, Owed>);

impl Posts {
    /// Adds a statement, unless it is there.
    pub fn owe(&mut self, operation: BridgeOperation) {
        // A statement of this member's own shards can be decoded.
        let Ok(key) = operation.once() else { return };
        self.0.entry(key).or_insert(Owed { operation, next: 0 });
    }

    pub fn contains(&self, key: &BridgeKey) -> bool {
        self.0.contains_key(key)
    }

    /// The pool did not take a post: it is made again with the next block.
    pub fn refused(&mut self, key: &BridgeKey, height: Height) {
        self.0.get_mut(key).into_iter().for_each(|owed| owed.next = height + 1);
    }

    /// Removes what the ledger has or needs no longer; returns what is to be sent. A post is made again, under another
    /// number, only when its last transaction has ended.
    pub fn due(&mut self, lane: &LaneBridge, height: Height, mistake: Planted<MemberMistake>) -> Vec<LanePost> {
        self.0.retain(|_, owed| is_owed(&owed.operation, lane));
        let wait = match mistake.get() {
            Some(MemberMistake::PostNotRepeated) => Height::MAX / 2,
            Some(MemberMistake::PostRepeatedEarly) => 1,
            _ => POST_BLOCKS,
        };
        let due = self.0.iter_mut().filter(|(_, owed)| owed.next <= height);
        due.map(|(key, owed)| {
            owed.next = height + wait;
            LanePost { key: *key, operation: owed.operation.clone(), until: height + POST_BLOCKS }
        })
        .collect()
    }
}

/// Whether the ledger lacks a statement, and would take it.
fn is_owed(operation: &BridgeOperation, lane: &LaneBridge) -> bool {
    let (bridge, resolver) = (lane.bridge(), lane.bridge().resolver());
    match operation {
        BridgeOperation::Vote { case, answer, .. } => {
            resolver.is_open(case) && !resolver.has_vote(case, answer.validator)
        }
        BridgeOperation::View { case, committee, answer, .. } => {
            resolver.is_open(case) && !resolver.has_view(case, *committee, answer.validator)
        }
        BridgeOperation::Register { registration: of, .. } => {
            let is_known = bridge.registrations(of.epoch).any(|known| known.member == of.member);
            bridge.clock().epoch() < of.epoch && !is_known
        }
        BridgeOperation::Accuse { evidence } => {
            let accused = evidence.accused();
            bridge.is_kept(accused.epoch) && !bridge.convicted().contains(&accused.validator)
        }
        BridgeOperation::Deal { epoch, dealing, .. } => {
            let awaits = |of: &KeyGeneration| of.awaits_dealings() && of.dealing_of(dealing.dealer).is_none();
            bridge.generation(*epoch).is_some_and(awaits)
        }
        BridgeOperation::Complain { epoch, complaint } => {
            let awaits = |of: &KeyGeneration| of.awaits_complaints() && !of.out().contains(&complaint.dealer);
            bridge.generation(*epoch).is_some_and(awaits)
        }
        BridgeOperation::Redeem { payment, .. } => {
            PaymentBody::parse(payment).is_ok_and(|body| resolver.awaits_certificate(&body))
        }
        BridgeOperation::Resolve { .. } | BridgeOperation::Halt { .. } => false,
    }
}
