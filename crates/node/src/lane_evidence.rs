//! Members of the lane that contradict themselves on the ledger: every node that takes part in the lane accuses them.
//!
//! Votes, views and certificates stand in blocks with their signatures. A second vote or view of a member does nothing
//! there, and convicts it here: the node posts both to the ledger, which slashes the stake that answers for the member.
//! What stood in blocks before the node started it does not know; other nodes and watchers do.

use ledger::{LaneBridge, Outcome};
use payments::{BridgeOperation, EvidenceFinder};
use primitives::{Operation, Superblock};

/// Confirmations that are kept, and views: of some hundred open cases in a committee of a hundred.
const ENTRIES_MAX: usize = 1 << 14;

/// What transactions of a block that counted posted about the lane and carries a member's signature.
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

    /// Takes in what a block posted; accusations that the ledger does not have yet.
    pub(crate) fn see(&mut self, mut posts: Vec<BridgeOperation>, lane: &LaneBridge) -> Vec<BridgeOperation> {
        let bridge = lane.bridge();
        self.0.forget_before(bridge.oldest());
        // A certificate counts where somebody has voted, in the same block too.
        posts.sort_by_key(|post| matches!(post, BridgeOperation::Redeem { .. }));
        let found = posts.iter().flat_map(|post| self.0.note_post(post)).collect::<Vec<_>>();
        let is_new = |evidence: &payments::LaneEvidence| !bridge.convicted().contains(&evidence.accused().validator);
        found.into_iter().filter(is_new).map(|evidence| BridgeOperation::Accuse { evidence }).collect()
    }
}
