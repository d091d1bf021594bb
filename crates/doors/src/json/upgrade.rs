//! The rules of a chain, and who approves of the next ones.

use std::collections::BTreeSet;

use api::{ApprovedRulesBody, ComingRulesBody, UpgradeBody};
use ledger::{ChainRules, ComingRules, RulesReadiness, Validators, followed, manifest, rules_seats_needed};
use primitives::{Address, Upgrade};
use readers::Outline;

/// The body for an outline, of a node that knows no number above `newest`.
pub fn upgrade(outline: &Outline, newest: u32) -> UpgradeBody {
    let Outline { height, validators, schedule, charter, .. } = outline;
    let (rules, terms, next) = (&charter.rules, &charter.terms, charter.rules.confirmed + 1);
    let confirms = |acts: u64| (!schedule.is_fixed()).then(|| schedule.boundary(schedule.epoch_of(acts)));
    let coming = |coming: ComingRules| ComingRulesBody {
        rules: coming.upgrade.rules,
        manifest: coming.upgrade.manifest.to_string(),
        acts: coming.acts,
        confirms: confirms(coming.acts),
        tries: coming.tries,
    };
    let upgrades: BTreeSet<Upgrade> = charter.consents.iter().filter_map(|one| one.next).collect();
    let unready = charter.consents.iter().filter(|one| one.readiness != RulesReadiness::Ready);
    UpgradeBody {
        height: *height,
        rules: rules.at(height + 1),
        confirmed: rules.confirmed,
        confirmed_manifest: rules.manifest.to_string(),
        since: rules.since,
        coming: rules.coming.map(coming),
        known: followed(rules, newest),
        manifest: manifest(next).filter(|_| next <= newest).map(|digest| digest.to_string()),
        operator: (terms.operator != Address::default()).then(|| terms.operator.to_string()),
        notice_min: terms.notice_min,
        patience: terms.patience,
        approved: upgrades.iter().map(|upgrade| approved(outline, validators, upgrade)).collect(),
        unready: unready.map(|one| one.account.to_string()).collect(),
    }
}

/// Who approves these rules.
fn approved(outline: &Outline, validators: &Validators, upgrade: &Upgrade) -> ApprovedRulesBody {
    let charter = &outline.charter;
    let approves = |account: &Address| validators.is_staked(account) && charter.approves(account, upgrade);
    let staked = || validators.registry.iter().filter(|one| one.is_staked());
    let units = |counts: &dyn Fn(&Address) -> bool| {
        let all = staked().filter(|one| counts(&one.member.account));
        all.map(|one| u128::from(one.member.stake)).sum::<u128>().to_string()
    };
    let seats = validators.committees.last().map_or(&[][..], Vec::as_slice);
    let awaited = charter.awaited.filter(|awaited| awaited.upgrade == *upgrade);
    let accounts = charter.consents.iter().filter(|one| one.next == Some(*upgrade));
    ApprovedRulesBody {
        rules: upgrade.rules,
        manifest: upgrade.manifest.to_string(),
        notice: upgrade.notice,
        stake: units(&approves),
        all_stake: units(&|_| true),
        seats: seats.iter().filter(|member| approves(&member.account)).count(),
        seats_needed: rules_seats_needed(seats.len(), false),
        all_seats: seats.len(),
        awaited_since: awaited.map(|awaited| awaited.since),
        accounts: accounts.map(|one| one.account.to_string()).collect(),
    }
}

/// Why an operation of later rules is refused: from which height it counts.
pub fn rules_to_come(rules: &ChainRules, since: u32) -> String {
    let (agreed, _, acts) = rules.agreed();
    let when = match agreed >= since {
        true if rules.confirmed >= since => format!("act from height {acts}: send it then"),
        true => format!("act from height {acts} if they are confirmed: /v1/upgrade says when"),
        false => "nobody has agreed on yet: /v1/upgrade says who approves of them".into(),
    };
    format!("the operation belongs to rules {since}, which {when}")
}

#[cfg(test)]
mod tests {
    use primitives::Digest;

    use super::*;

    #[test]
    fn an_operation_of_rules_to_come_is_refused_with_their_height() {
        let meant = Digest([1; 32]);
        let mut rules = ChainRules::new(11, meant);
        assert!(rules_to_come(&rules, 12).contains("rules 12, which nobody has agreed on yet"));
        let upgrade = Upgrade { rules: 12, manifest: meant, notice: 9 };
        rules.coming = Some(ComingRules { upgrade, acts: 25, tries: 0, is_patient: false });
        assert!(rules_to_come(&rules, 12).contains("from height 25 if they are confirmed"));
        rules = ChainRules { confirmed: 12, since: 35, coming: None, ..rules };
        assert!(rules_to_come(&rules, 12).contains("act from height 35: send it then"));
    }
}
