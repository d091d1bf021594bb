//! What the ledger knows about the payment lane, proved for a purse.

use anyhow::{Context, ensure};
use ledger::LaneProof;
use payments::BridgeEntry;
use serde_json::Value;

use super::client::{Client, decode};

impl Client {
    /// A node's answer at a path about the payment lane, once a quorum has certified the state that proves the
    /// entries in it.
    pub fn lane_answer(
        &mut self,
        path: &str,
        entries: impl Fn(&Value) -> anyhow::Result<Vec<BridgeEntry>>,
    ) -> anyhow::Result<Value> {
        let body = self.get(path)?;
        let height = body["height"].as_u64().context("the answer has no height")?;
        ensure!(height > 0, "no block is made yet: ask again later");
        let proof: LaneProof = decode(&body["proof"])?;
        let certified = self.certified_state(height, &proof.parts.root())?;
        let proved = proof.verify(&certified.state, &entries(&body)?);
        proved.context("the ledger has other keys of the lane than the node says: give another --server")?;
        Ok(body)
    }

    /// Moves to the committee of the newest certificate.
    pub fn follow_newest(&mut self) -> anyhow::Result<()> {
        self.head().map(drop)
    }
}
