//! Validators: certificates, handovers, committees and the registry.

use api::{CommitteeBody, MemberBody, UnbondingBody, ValidatorBody, ValidatorsBody};
use ledger::{Member, Validator};
use primitives::Amount;

use readers::outline::Outline;

/// Stakers and validators.
pub fn validators(outline: &Outline) -> ValidatorsBody {
    let Outline { height, validators, schedule, .. } = outline;
    let height = *height;
    let terms = validators.terms;
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
        reward_pool: validators.pool.to_string(),
        slash: terms.slash.to_string(),
        committees: (epoch..=validators.last_epoch()).map(committee).collect(),
        validators: validators.registry.iter().map(validator).collect(),
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
        present_epoch: one.present_for,
    }
}
