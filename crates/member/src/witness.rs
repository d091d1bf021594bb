//! Evidence on the ledger against members that contradict themselves: every member accuses them.
//!
//! Blocks contain votes, views and certificates with their signatures. The ledger ignores a second vote or view of a
//! member, but both together convict it. A member posts both to the ledger, which slashes the stake behind the other.
//! It does not know the posts in blocks from before its start; other members and watchers do.

use ledger::LaneBridge;
use payments::{BridgeOperation, Convicted, EvidenceFinder, LaneEvidence};

/// Maximum number of confirmations and views that are kept: enough for some hundred open cases in a committee of a
/// hundred.
const ENTRIES_MAX: usize = 1 << 14;

/// What a member has seen others sign.
pub(crate) struct LaneWitness(EvidenceFinder);

impl LaneWitness {
    pub fn new() -> LaneWitness {
        LaneWitness(EvidenceFinder::new(ENTRIES_MAX))
    }

    /// Takes the posts of a block; returns accusations that the ledger does not have yet.
    pub fn see(&mut self, mut posts: Vec<BridgeOperation>, lane: &LaneBridge) -> Vec<BridgeOperation> {
        let bridge = lane.bridge();
        self.0.forget_before(bridge.oldest());
        // A certificate counts where a member has voted, also in the same block.
        posts.sort_by_key(|post| matches!(post, BridgeOperation::Redeem { .. }));
        let found = posts.iter().flat_map(|post| self.0.note_post(&lane.network(), post)).collect::<Vec<_>>();
        let is_new = |evidence: &LaneEvidence| !bridge.convicted().contains(&evidence.accused().validator);
        found.into_iter().filter(is_new).map(accusation).collect()
    }
}

fn accusation(evidence: LaneEvidence) -> BridgeOperation {
    let Convicted { epoch, validator } = evidence.accused();
    tracing::warn!(member = validator, epoch, "a member of the lane signed contradictory statements: accusing it");
    BridgeOperation::Accuse { evidence }
}
