//! What a node that follows says of the committee it waits for.
//!
//! *Upon* a look at the ledger: the first epoch in which the key may vote, where that is drawn already; otherwise the
//! first one that is not drawn yet, and what is missing.
//!
//! *Deviations*: a node that no validator has connected to reads an old ledger. It says so, for others may be epochs
//! ahead.

use ledger::{Ledger, Validators};
use primitives::PublicKey;

/// Until when a key has no vote and why, in words for people; `None` if the validators never change.
pub(crate) fn admission(ledger: &Ledger, key: &PublicKey, epoch: u64, is_connected: bool) -> Option<String> {
    let said = waits(ledger.validators(), key, epoch)?;
    let height = ledger.height();
    Some(match is_connected {
        true => said,
        false => format!(
            "{said}; this is by block {height}, the newest here: no validator is connected, and they accept this key \
             from the epoch after its stake on"
        ),
    })
}

fn waits(validators: &Validators, key: &PublicKey, epoch: u64) -> Option<String> {
    let schedule = validators.terms.schedule;
    if schedule.is_fixed() {
        return None;
    }
    let members = |epoch: u64| validators.committee(epoch).unwrap_or_default();
    let last = validators.last_epoch();
    if let Some(next) = (epoch + 1..=last).find(|next| members(*next).iter().any(|member| member.key == *key)) {
        return Some(format!("not admitted until epoch {next}, from height {} on", schedule.first_height(next)));
    }
    let next = last + 1;
    let why = match validators.registry.iter().find(|one| one.member.key == *key) {
        Some(one) if one.excluded => return Some("not admitted any more: this key was convicted".into()),
        None => "no account has staked for this key",
        Some(one) if one.member.stake == 0 => "nothing is staked for this key any more",
        Some(one) if !one.is_present_for(next) => "it has staked, and has not yet posted that it is present",
        Some(_) => "it has staked and is present, and takes the first seat that is free",
    };
    let (drawn, first) = (schedule.boundary(next), schedule.first_height(next));
    Some(format!(
        "not admitted until epoch {next} at least, which is drawn at height {drawn} and begins at height {first}: {why}"
    ))
}

#[cfg(test)]
mod tests {
    use ledger::{Member, Schedule, Terms, Validator};
    use primitives::{Address, SecretKey};

    use super::*;

    fn key(seed: u8) -> PublicKey {
        SecretKey::from_seed([seed; 32]).public()
    }

    fn member(seed: u8, stake: u64) -> Member {
        Member { account: Address([seed; 20]), key: key(seed), address: String::new(), stake }
    }

    /// Epochs of 100 heights: those up to 2 are drawn, and the key of 7 has a seat in epoch 2.
    fn validators() -> Validators {
        let one = |seed, stake, present_for| Validator {
            member: member(seed, stake),
            unbonding: Vec::new(),
            excluded: seed == 9,
            present_for,
        };
        Validators {
            terms: Terms { schedule: Schedule { epoch_heights: 100, delay: 16 }, ..Terms::default() },
            pool: 0,
            registry: vec![one(1, 5, 3), one(2, 5, 2), one(3, 5, 3), one(4, 0, 3), one(7, 5, 3), one(9, 5, 3)],
            first_epoch: 0,
            committees: vec![vec![member(1, 5)], vec![member(1, 5)], vec![member(7, 5)]],
        }
    }

    #[test]
    fn a_newcomer_is_told_from_which_epoch_it_votes() {
        let seen = validators();
        let said = |seed: u8, epoch: u64| waits(&seen, &key(seed), epoch).expect("epochs");
        assert_eq!(said(7, 0), "not admitted until epoch 2, from height 217 on");
        let at_least = "not admitted until epoch 3 at least, which is drawn at height 300 and begins at height 317: ";
        for (seed, why) in [
            (5, "no account has staked for this key"),
            (4, "nothing is staked for this key any more"),
            (2, "it has staked, and has not yet posted that it is present"),
            (3, "it has staked and is present, and takes the first seat that is free"),
            // Its seat of epoch 2 is the one that it has.
            (7, "it has staked and is present, and takes the first seat that is free"),
        ] {
            assert_eq!(said(seed, 2), format!("{at_least}{why}"));
        }
        assert_eq!(said(9, 0), "not admitted any more: this key was convicted");
    }

    #[test]
    fn nobody_waits_where_validators_never_change() {
        let mut seen = validators();
        seen.terms.schedule.epoch_heights = 0;
        assert_eq!(waits(&seen, &key(5), 0), None);
    }
}
