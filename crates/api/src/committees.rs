//! Validators: certificates, handovers, committees and the registry.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What validators have certified about a block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CertificateBody {
    /// Height of the block.
    pub height: u64,
    /// State root after the block.
    pub state_root: String,
    /// Root of its receipts.
    pub receipts_root: String,
    /// The signers of both.
    pub signers: Vec<u8>,
    /// Hexadecimal; `Certificate` of the consensus documentation.
    pub certificate: String,
}

/// The proofs of committees, one after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HandoversBody {
    /// The epoch of the first, or of the next one to come if there is none.
    pub from: u64,
    /// The last epoch whose committee can be proved here; 0 if the founders' is the last.
    pub last: u64,
    /// In order, without gaps; ask again after the last one until there are none.
    pub handovers: Vec<HandoverBody>,
}

/// The proof of the committee of an epoch, for a client that trusts the committee of the epoch before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HandoverBody {
    /// The epoch.
    pub epoch: u64,
    /// Height of the certificate, which the committee before has signed.
    pub height: u64,
    /// Hexadecimal; `Handover` of the node's documentation.
    pub handover: String,
}

/// Stakers and validators.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ValidatorsBody {
    /// Height of the state that was read.
    pub height: u64,
    /// The epoch whose committee decides the next block.
    pub epoch: u64,
    /// Its last height; null if it never ends.
    pub last_height: Option<u64>,
    /// The next height at which a committee is drawn; null if there is none.
    pub next_boundary: Option<u64>,
    /// Seats of a committee, to which it grows as validators come.
    pub committee_size: u32,
    /// Minimum stake of a validator, in units.
    pub minimum_stake: String,
    /// Epochs for which a stake can still be punished after the last epoch in which it counted.
    pub unbonding_epochs: u64,
    /// Units paid to the proposer of a sub-block.
    pub reward: String,
    /// Units from which rewards are paid.
    pub reward_pool: String,
    /// The part of its stake that a validator loses if it contradicts itself.
    pub slash: String,
    /// Drawn committees, from this epoch's on.
    pub committees: Vec<CommitteeBody>,
    /// Accounts that have staked and not got everything back.
    pub validators: Vec<ValidatorBody>,
}

/// The committee of an epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CommitteeBody {
    /// The epoch.
    pub epoch: u64,
    /// Its first height.
    pub first_height: u64,
    /// The validators, by index.
    pub members: Vec<MemberBody>,
}

/// A member of a committee, as it was drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MemberBody {
    /// The account that staked.
    pub account: String,
    /// The validator's key.
    pub key: String,
    /// Host and port; empty if the genesis file has them.
    pub address: String,
    /// Units staked.
    pub stake: String,
}

/// An entry of the registry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ValidatorBody {
    /// Account, key, address and stake as they are now.
    #[serde(flatten)]
    pub member: MemberBody,
    /// Units being paid back.
    pub unbonding: Vec<UnbondingBody>,
    /// Whether it was convicted of contradicting itself.
    pub excluded: bool,
    /// The last epoch for whose draw its node has said that it is present; 0 if there is none. Who is not present for
    /// an epoch is not drawn.
    pub present_epoch: u64,
}

/// Units being paid back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UnbondingBody {
    /// The height at which they are paid back.
    pub height: u64,
    /// Units.
    pub units: String,
}

/// The registry with a proof.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ValidatorsProofBody {
    /// Height of the root.
    pub height: u64,
    /// State root.
    pub root: String,
    /// Hexadecimal; `ValidatorsProof` of the documentation of `proofs`, with the whole registry.
    pub proof: String,
}
