//! The lane of a purse as its file has it. The file is written by this program alone, and read by later versions.

use serde::{Deserialize, Serialize};

/// A lane, and who proves the keys of its later epochs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedLane {
    /// Its identity.
    pub network: String,
    /// The keys of each member's shards in the first epoch.
    pub members: Vec<Vec<String>>,
    /// For each member the key that registers its later keys; empty if keys do not change.
    #[serde(default)]
    pub registrars: Vec<String>,
    /// The assets that it carries.
    pub assets: Vec<PinnedMoney>,
    /// Whom the purse believes about the ledger; `None` in files of versions that knew nothing about validators.
    #[serde(default)]
    pub validators: Option<PinnedTrust>,
}

/// An asset of the lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedMoney {
    /// Its number.
    pub asset: u32,
    /// Its symbol.
    pub symbol: String,
    /// Decimal places shown to people.
    pub decimals: u8,
    /// Minimum units of an output.
    pub least_units: u64,
    /// Units that a payment pays.
    pub fee: u64,
}

/// Whom a purse believes about the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PinnedTrust {
    /// `"solo"`: a chain of one node.
    Word(String),
    /// A chain with validators.
    Committee(PinnedCommittee),
}

/// A committee, and what is needed to follow its successors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedCommittee {
    /// Heights of an epoch; 0 if the committee never changes.
    pub epoch_heights: u64,
    /// Heights from a boundary to the last one of the previous committee.
    pub delay: u64,
    /// How many heights an outcome is below the certificate that signs it.
    pub lag: u64,
    /// Epochs for which the stake of one that left can still be punished.
    pub unbonding_epochs: u64,
    /// Its epoch.
    pub epoch: u64,
    /// Its keys.
    pub keys: Vec<String>,
}
