//! The lane of a purse as its file has it. The file is written by this program alone, and read by later versions.

use serde::{Deserialize, Serialize};

/// A lane, and who proves the keys of its later epochs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedLane {
    pub network: String,
    /// The keys of each member's shards in the first epoch.
    pub members: Vec<Vec<String>>,
    #[serde(default)]
    pub registrars: Vec<String>,
    pub assets: Vec<PinnedMoney>,
    /// `None` in files of versions that knew nothing about validators.
    #[serde(default)]
    pub validators: Option<PinnedTrust>,
}

/// An asset of the lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedMoney {
    pub asset: u32,
    pub symbol: String,
    pub decimals: u8,
    pub least_units: u64,
    pub fee: u64,
}

/// Whom a purse believes about the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PinnedTrust {
    /// `"solo"`: a chain of one node.
    Word(String),
    Committee(PinnedCommittee),
}

/// A committee, and what is needed to follow its successors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedCommittee {
    pub epoch_heights: u64,
    pub delay: u64,
    pub lag: u64,
    pub unbonding_epochs: u64,
    pub epoch: u64,
    pub keys: Vec<String>,
}
