//! What a block says about the lane: the one form in which its facts travel to a member, and wait there.

use ledger::{Applied, Outcome};
use payments::{BridgeEvent, BridgeOperation};
use primitives::{Height, Operation, Superblock, Transaction};

/// The facts of an applied block. They count for shards once the block has a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneBlock {
    /// Its height.
    pub height: Height,
    /// What happened at the bridge, in order.
    pub events: Vec<BridgeEvent>,
    /// The posts about the lane that took effect, with the signatures of members.
    pub posts: Vec<BridgeOperation>,
}

impl LaneBlock {
    /// The facts of a block that was applied with this result.
    pub fn of(block: &Superblock, applied: &Applied) -> LaneBlock {
        let transactions = block.sub_blocks.iter().flat_map(|sub| &sub.native).zip(&applied.outcomes);
        let posts = transactions.filter_map(|(transaction, outcome)| post(transaction, outcome)).collect();
        LaneBlock { height: block.height, events: applied.lane.clone(), posts }
    }
}

fn post(transaction: &Transaction, outcome: &Outcome) -> Option<BridgeOperation> {
    match &transaction.body.operation {
        Operation::Lane(bytes) if outcome.refusal().is_none() => BridgeOperation::parse(bytes).ok(),
        _ => None,
    }
}
