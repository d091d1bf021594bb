//! Money that the ledger put into a purse, as a file of its folder.

use payments::{Holding, HomeEpoch, Output, OutputId, OutputProof, Recipient};
use primitives::{Address, Amount, AssetId, Digest, PublicKey, Sequence};
use serde::{Deserialize, Serialize};

use super::error::Invalid;
use super::held::HeldOutput;

/// A withdrawal from the ledger.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Deposit {
    /// The id of its transaction.
    pub transaction: String,
    /// The account that pays it.
    pub account: String,
    /// The number of its transaction.
    pub sequence: Sequence,
    /// The key of the purse that it goes to.
    pub to: String,
    /// The number of its asset.
    pub asset: u32,
    /// Units of it.
    pub amount: Amount,
    /// The output's home, once the block is certified.
    pub home: Option<HomeEpoch>,
    /// The output of the network before a restart whose place it takes; then `account` and `sequence` mean nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<String>,
}

impl Deposit {
    /// An output that a restart of the network carries over; `None` if it is not a key's.
    pub fn carried(id: &OutputId, output: &Output) -> Option<Deposit> {
        let Recipient::Key(to) = output.to else { return None };
        Some(Deposit {
            transaction: id.to_string(),
            account: to.address().to_string(),
            sequence: 0,
            to: to.to_string(),
            asset: output.asset.0,
            amount: output.amount,
            home: Some(0),
            carried: Some(Digest(id.0).to_string()),
        })
    }

    /// The output, if its home is known.
    ///
    /// # Errors
    /// [`Invalid`]: the file was changed.
    pub fn held(&self, network: &Digest) -> Result<Option<HeldOutput>, Invalid> {
        let Some(home) = self.home else { return Ok(None) };
        let owner: PublicKey = self.to.parse().map_err(|_| Invalid("key of a deposit"))?;
        let output = Output { to: Recipient::Key(owner), asset: AssetId(self.asset), amount: self.amount };
        let id = match &self.carried {
            Some(before) => {
                let before: Digest = before.parse().map_err(|_| Invalid("id of a carried output"))?;
                OutputId(before.0).carried_into(network)
            }
            None => OutputId::of_deposit(network, home, &self.account()?, self.sequence),
        };
        let holding = Holding { id, output, proof: OutputProof::Ledger };
        Ok(Some(HeldOutput { holding, home, owner, payment: None, is_settled: true, is_received: false }))
    }

    pub(super) fn account(&self) -> Result<Address, Invalid> {
        self.account.parse().map_err(|_| Invalid("account of a deposit"))
    }
}
