//! Who validates: certificates, handovers, committees and the registry.

use ledger::{Member, Validator};
use primitives::Amount;
use serde::Serialize;
use utoipa::ToSchema;

use crate::outline::Outline;

/// What validators have signed of a block.
#[derive(Debug, Serialize, ToSchema)]
pub struct CertificateBody {
    /// Height of the block.
    pub height: u64,
    /// State root after the block.
    pub state_root: String,
    /// Root of its receipts.
    pub receipts_root: String,
    /// Who signed both.
    pub signers: Vec<u8>,
    /// Hexadecimal; `Certificate` of the consensus documentation.
    pub certificate: String,
}

/// What proves committees, one after the other.
#[derive(Debug, Serialize, ToSchema)]
pub struct HandoversBody {
    /// The epoch of the first.
    pub from: u64,
    /// The last epoch whose committee can be proved here; 0 if the founders' is the last.
    pub last: u64,
    /// In order, without gaps; ask again from behind the last one until there are none.
    pub handovers: Vec<HandoverBody>,
}

/// What proves the committee of an epoch to who trusts that of the epoch before.
#[derive(Debug, Serialize, ToSchema)]
pub struct HandoverBody {
    /// The epoch.
    pub epoch: u64,
    /// Height of the certificate, which the committee before has signed.
    pub height: u64,
    /// Hexadecimal; `Handover` of the node's documentation.
    pub handover: String,
}

/// Who has staked, and who validates.
#[derive(Debug, Serialize, ToSchema)]
pub struct ValidatorsBody {
    /// Height of the state that was read.
    pub height: u64,
    /// The epoch whose committee decides the next block.
    pub epoch: u64,
    /// Its last height; null if it never ends.
    pub last_height: Option<u64>,
    /// The next height at which a committee is drawn; null if none ever is.
    pub next_boundary: Option<u64>,
    /// Validators that are drawn, if so many have staked.
    pub committee_size: u32,
    /// Least units that a validator stakes.
    pub minimum_stake: String,
    /// Epochs for which a stake can be punished after the last that it counted in.
    pub unbonding_epochs: u64,
    /// Units that the proposer of a sub-block is paid.
    pub reward: String,
    /// Units that rewards are paid from.
    pub reward_pool: String,
    /// The part of its stake that a validator loses that contradicts itself.
    pub slash: String,
    /// Committees that are drawn, from this epoch's on.
    pub committees: Vec<CommitteeBody>,
    /// Who has staked and not got everything back, by account.
    pub validators: Vec<ValidatorBody>,
}

/// The committee of an epoch.
#[derive(Debug, Serialize, ToSchema)]
pub struct CommitteeBody {
    /// The epoch.
    pub epoch: u64,
    /// Its first height.
    pub first_height: u64,
    /// The validators, by index.
    pub members: Vec<MemberBody>,
}

/// A member of a committee, as it was drawn.
#[derive(Debug, Serialize, ToSchema)]
pub struct MemberBody {
    /// The account that staked.
    pub account: String,
    /// The validator's key.
    pub key: String,
    /// Host and port; empty where the genesis file tells.
    pub address: String,
    /// Units staked.
    pub stake: String,
}

/// An entry of the registry.
#[derive(Debug, Serialize, ToSchema)]
pub struct ValidatorBody {
    /// Account, key, address and stake as they are now.
    #[serde(flatten)]
    pub member: MemberBody,
    /// Units on their way back.
    pub unbonding: Vec<UnbondingBody>,
    /// Whether it was convicted of contradicting itself.
    pub excluded: bool,
}

/// Units on their way back.
#[derive(Debug, Serialize, ToSchema)]
pub struct UnbondingBody {
    /// The height at which they are paid back.
    pub height: u64,
    /// Units.
    pub units: String,
}

/// The registry with a proof.
#[derive(Debug, Serialize, ToSchema)]
pub struct ValidatorsProofBody {
    /// Height of the root.
    pub height: u64,
    /// State root.
    pub root: String,
    /// Hexadecimal; `ValidatorsProof` of the ledger's documentation, which holds the whole registry.
    pub proof: String,
}

/// Who has staked, and who validates.
pub fn validators(outline: &Outline) -> ValidatorsBody {
    let Outline { height, validators, schedule, .. } = outline;
    let height = *height;
    let terms = validators.terms();
    let epoch = schedule.epoch_of(height + 1);
    let committee = |epoch: u64| CommitteeBody {
        epoch,
        first_height: schedule.first_height(epoch),
        members: validators.committee(epoch).unwrap_or_default().iter().map(member).collect(),
    };
    ValidatorsBody {
        height,
        epoch,
        last_height: (!schedule.is_fixed()).then(|| schedule.last_height(epoch)),
        next_boundary: schedule.next_boundary(height),
        committee_size: terms.committee,
        minimum_stake: terms.minimum_stake.to_string(),
        unbonding_epochs: terms.unbonding_epochs,
        reward: terms.reward.to_string(),
        reward_pool: validators.pool().to_string(),
        slash: terms.slash.to_string(),
        committees: (epoch..=validators.last_epoch()).map(committee).collect(),
        validators: validators.registry().iter().map(validator).collect(),
    }
}

fn member(member: &Member) -> MemberBody {
    MemberBody {
        account: member.account.to_string(),
        key: member.key.to_string(),
        address: member.address.clone(),
        stake: member.stake.to_string(),
    }
}

fn validator(one: &Validator) -> ValidatorBody {
    let unbonding = |&(height, units): &(u64, Amount)| UnbondingBody { height, units: units.to_string() };
    ValidatorBody {
        member: member(&one.member),
        unbonding: one.unbonding.iter().map(unbonding).collect(),
        excluded: one.excluded,
    }
}
