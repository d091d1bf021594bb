//! What happened in a run of a network.

use std::collections::BTreeMap;

use consensus::{Frame, Index};

use crate::controls::ControlCounts;
use crate::listings::ListingCounts;
use crate::policies::PolicyCounts;
use crate::proposals::ProposalCounts;
use crate::sessions::SessionCounts;

/// The counters of a run.
#[derive(Clone, Debug, Default)]
pub struct NetworkReport {
    /// Superblocks.
    pub heights: u64,
    /// Restarts of killed validators.
    pub restarts: u64,
    /// Superblocks, at each validator, that lack some sub-blocks.
    pub partial: u64,
    /// Contradictory statements that were proved.
    pub evidence: u64,
    /// Heights that were fetched from another validator's archive.
    pub synced: u64,
    /// States that were fetched.
    pub states: u64,
    /// Transactions.
    pub transactions: u64,
    /// Ethereum transactions that succeeded, reverted, halted, and were skipped.
    pub ethereum: [u64; 4],
    /// What session keys did.
    pub sessions: SessionCounts,
    /// What accounts with several keys did.
    pub policies: PolicyCounts,
    /// What happened to assets.
    pub listings: ListingCounts,
    /// What validators proposed and voted.
    pub proposals: ProposalCounts,
    /// What issuers did to holders.
    pub controls: ControlCounts,
    /// Envelopes that were opened.
    pub opened: u64,
    /// The orders in those that paid.
    pub sealed_orders: u64,
    /// Frames sent.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames and bytes by what they are: votes, sub-blocks, commits and so on.
    pub kinds: BTreeMap<&'static str, (u64, u64)>,
    /// Processor time of the validator that needed most, in microseconds, by `SimNetwork::frame_cost`.
    pub busiest: u64,
    /// Epochs that ended.
    pub epochs: u64,
    /// Most bytes sent to a faulty validator, and most sent to a correct one.
    pub received: (u64, u64),
    /// Duration, in microseconds.
    pub duration: u64,
    /// The convicted validators.
    pub convicted: Vec<Index>,
    /// Times from a transaction's arrival to the certificate of its superblock at the validator that received it, in
    /// ascending order.
    pub latencies: Vec<u64>,
}

impl NetworkReport {
    /// Counts a frame that is sent.
    pub(super) fn count(&mut self, frame: &[u8]) {
        let bytes = frame.len() as u64;
        self.frames += 1;
        self.bytes += bytes;
        let kind = self.kinds.entry(Frame::kind_of(frame).unwrap_or("others")).or_default();
        *kind = (kind.0 + 1, kind.1 + bytes);
    }

    /// The latency that this share of transactions is below, in microseconds; 0 without transactions.
    pub fn latency(&self, share: f64) -> u64 {
        let at = (self.latencies.len() as f64 * share) as usize;
        self.latencies.get(at.min(self.latencies.len().saturating_sub(1))).copied().unwrap_or(0)
    }
}
