//! Money that the ledger put into a purse, as a file of its folder.

use anyhow::Context;
use payments::{Holding, HomeEpoch, Output, OutputId, OutputProof, Recipient};
use primitives::{Address, Amount, AssetId, Digest, PublicKey, Sequence};
use serde::{Deserialize, Serialize};

use super::held::Held;

/// A withdrawal from the ledger.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Deposit {
    pub transaction: String,
    pub account: String,
    pub sequence: Sequence,
    pub to: String,
    pub asset: u32,
    pub amount: Amount,
    /// The output's home, once the block is certified.
    pub home: Option<HomeEpoch>,
    /// The output of the network before a restart whose place it takes; then `account` and `sequence` mean nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<String>,
}

impl Deposit {
    /// The output, if its home is known.
    pub fn held(&self, network: &Digest) -> anyhow::Result<Option<Held>> {
        let Some(home) = self.home else { return Ok(None) };
        let (owner, account): (PublicKey, Address) = (self.to.parse()?, self.account.parse()?);
        let output = Output { to: Recipient::Key(owner), asset: AssetId(self.asset), amount: self.amount };
        let id = match &self.carried {
            Some(before) => {
                OutputId(before.parse::<Digest>().context("a carried output has no id")?.0).carried_into(network)
            }
            None => OutputId::of_deposit(network, home, &account, self.sequence),
        };
        let holding = Holding { id, output, proof: OutputProof::Ledger };
        Ok(Some(Held { holding, home, owner, payment: None, is_settled: true, is_received: false }))
    }
}
