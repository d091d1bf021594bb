//! Evidence on the ledger against lane members that contradict themselves: every node in the lane accuses them.
//!
//! Blocks contain votes, views and certificates with their signatures. The ledger ignores a second vote or view of a
//! member, but both together convict it: the node posts both to the ledger, which slashes the stake behind the
//! member. The node does not know the posts in blocks from before its start; other nodes and watchers do.

use ledger::{LaneBridge, Outcome};
use payments::{BridgeOperation, EvidenceFinder};
use primitives::{Operation, Superblock};

/// Maximum number of confirmations and views that are kept: enough for some hundred open cases in a committee of a
/// hundred.
const ENTRIES_MAX: usize = 1 << 14;

/// The posts about the lane in a block that took effect and carry a member's signature.
pub(crate) fn posts_of(block: &Superblock, outcomes: &[Outcome]) -> Vec<BridgeOperation> {
    let transactions = block.sub_blocks.iter().flat_map(|sub| &sub.native).zip(outcomes);
    let post = |(transaction, outcome): (&primitives::Transaction, &Outcome)| match &transaction.body.operation {
        Operation::Lane(bytes) if outcome.refusal().is_none() => BridgeOperation::parse(bytes).ok(),
        _ => None,
    };
    transactions.filter_map(post).collect()
}

/// What a node has seen members sign.
pub(crate) struct LaneWitness(EvidenceFinder);

impl LaneWitness {
    pub(crate) fn new() -> LaneWitness {
        LaneWitness(EvidenceFinder::new(ENTRIES_MAX))
    }

    /// Takes the posts of a block; returns accusations that the ledger does not have yet.
    pub(crate) fn see(&mut self, mut posts: Vec<BridgeOperation>, lane: &LaneBridge) -> Vec<BridgeOperation> {
        let bridge = lane.bridge();
        self.0.forget_before(bridge.oldest());
        // A certificate counts where a member has voted, also in the same block.
        posts.sort_by_key(|post| matches!(post, BridgeOperation::Redeem { .. }));
        let found = posts.iter().flat_map(|post| self.0.note_post(&lane.network(), post)).collect::<Vec<_>>();
        let is_new = |evidence: &payments::LaneEvidence| !bridge.convicted().contains(&evidence.accused().validator);
        found.into_iter().filter(is_new).map(|evidence| BridgeOperation::Accuse { evidence }).collect()
    }
}
