//! What the ledger knows about the payment lane, proved for a purse.

use anyhow::Context;
use api::LaneRegistrationsProofBody;
use ledger::LaneProof;
use payments::BridgeEntry;

use super::client::{Client, decode};

impl Client {
    /// The keys that members of the lane registered for epochs from `from` on, in a state that a quorum has signed.
    pub fn lane_registrations(
        &mut self,
        from: u64,
        entries: impl Fn(&LaneRegistrationsProofBody) -> anyhow::Result<Vec<BridgeEntry>>,
    ) -> anyhow::Result<LaneRegistrationsProofBody> {
        let path = format!("/v1/lane/registrations/proof?from={from}&certified=true");
        let body: LaneRegistrationsProofBody = self.certified_answer(&path)?;
        let proof: LaneProof = decode(&body.proof)?;
        let certified = self.certified_with(body.height, body.certificate.as_ref())?;
        let entries: Vec<_> = entries(&body)?.iter().map(BridgeEntry::pair).collect();
        let proved = proof.verify(&certified.state, &entries);
        proved.context("the ledger has other keys of the lane than the node says: give another --server")?;
        Ok(body)
    }

    /// Moves to the committee of the newest certificate.
    pub fn follow_newest(&mut self) -> anyhow::Result<()> {
        self.head().map(drop)
    }
}
