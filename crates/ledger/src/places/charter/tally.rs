//! What a boundary does to the charter: lock, patience, confirmation. Pure functions of the state before its block, and
//! of the committee that the block draws.

use std::collections::{BTreeMap, BTreeSet};

use primitives::{Address, Height, Upgrade};
use proofs::{AwaitedRules, ChainRules, Charter, ComingRules, Committee, RulesReadiness, Schedule, Validators};

use super::{consent_of, stakes};

/// How often a confirmation may be missing before a lock is dropped.
const TRIES: u8 = 3;

/// A boundary, as the charter sees it.
pub(crate) struct Boundary<'a> {
    /// The registry before the block; its last committee is that of the epoch before.
    pub registered: &'a Validators,
    /// The accounts of the committee that the block draws.
    pub drawn: &'a [Address],
    pub height: Height,
    /// Heights for which approvals of accounts that have left are remembered: until then they could be posted again.
    pub memory: Height,
}

/// Seats of so many that must approve; fewer once most of the stake has waited for long.
pub fn seats_needed(seats: usize, is_patient: bool) -> usize {
    if is_patient { seats - Committee::new(seats.max(1)).faulty } else { (5 * seats).div_ceil(6) }
}

impl Boundary<'_> {
    /// Applies the boundary to the charter before its block.
    pub(crate) fn apply(&self, charter: &mut Charter) {
        self.await_most(charter);
        match charter.rules.coming {
            // However long its notice is, a lock that most no longer want stands in the way of nothing.
            Some(coming) if !self.has_stake(charter, &coming.upgrade, 2, 3) => charter.rules.coming = None,
            Some(coming) if coming.acts == self.schedule().first_height(self.epoch()) => self.try_to(charter, coming),
            Some(_) => {}
            None => self.lock(charter),
        }
        self.forget(charter);
    }

    fn schedule(&self) -> Schedule {
        self.registered.terms.schedule
    }

    /// The epoch whose committee is drawn.
    fn epoch(&self) -> u64 {
        self.schedule().last_drawn(self.height)
    }

    /// Counts for how long most of the stake has approved the same.
    fn await_most(&self, charter: &mut Charter) {
        let most = self.approved_by_most(charter);
        let goes_on = |before: &AwaitedRules| most == Some(before.upgrade);
        let begins = most.map(|upgrade| AwaitedRules { upgrade, since: self.height });
        charter.awaited = charter.awaited.filter(goes_on).or(begins);
    }

    /// What accounts with two thirds of all stake approve. One pass, since every account may approve something else.
    fn approved_by_most(&self, charter: &Charter) -> Option<Upgrade> {
        let (mut approving, mut all) = (BTreeMap::<Upgrade, u128>::new(), 0);
        for one in self.registered.registry.iter().filter(|one| one.is_staked()) {
            let next = charter.consent(&one.member.account).and_then(|own| own.next);
            next.into_iter().for_each(|upgrade| *approving.entry(upgrade).or_default() += u128::from(one.member.stake));
            all += u128::from(one.member.stake);
        }
        approving.into_iter().find(|(_, units)| units * 3 >= all * 2).map(|(upgrade, _)| upgrade)
    }

    /// Confirms rules whose epoch is drawn, or tries again at the next one.
    fn try_to(&self, charter: &mut Charter, coming: ComingRules) {
        if self.agree(charter, &coming.upgrade, self.drawn, coming.is_patient) {
            let staked = self.registered.registry.iter().filter(|one| one.is_staked());
            let stakers = staked.map(|one| (one.member.account, one.is_present_for(self.epoch())));
            return confirm(charter, stakers.collect(), &coming);
        }
        let acts = self.schedule().first_height(self.epoch() + 1);
        let again = ComingRules { acts, tries: coming.tries + 1, ..coming };
        charter.rules.coming = Some(again).filter(|again| again.tries < TRIES);
    }

    /// Locks what enough seats of both committees and enough of the stake approve.
    fn lock(&self, charter: &mut Charter) {
        if charter.rules.since > self.height {
            return;
        }
        let before: Vec<Address> =
            self.registered.committees.last().into_iter().flatten().map(|member| member.account).collect();
        let both = |upgrade: &Upgrade, is_patient: bool| {
            [&before[..], self.drawn].iter().all(|seats| self.agree(charter, upgrade, seats, is_patient))
        };
        // Once most have waited for long they need no more seats than that: whoever approves for the lock, and
        // withdraws before the confirmation, would otherwise have a veto.
        let locked = approved(charter).into_iter().find_map(|upgrade| {
            let is_patient = self.was_awaited(charter, &upgrade) && both(&upgrade, true);
            (is_patient || both(&upgrade, false)).then_some((upgrade, is_patient))
        });
        let Some((upgrade, is_patient)) = locked else { return };
        let acts = first_from(self.schedule(), self.epoch() + 1, self.height.saturating_add(upgrade.notice));
        charter.rules.coming = Some(ComingRules { upgrade, acts, tries: 0, is_patient });
    }

    /// Whether most of the stake has waited for these rules as long as it must.
    fn was_awaited(&self, charter: &Charter, upgrade: &Upgrade) -> bool {
        let long = |awaited: &AwaitedRules| self.height.saturating_sub(awaited.since) >= charter.terms.patience;
        charter.awaited.is_some_and(|awaited| awaited.upgrade == *upgrade && long(&awaited))
    }

    /// Whether enough of these seats and of all stake approve. A seat whose holder has unstaked, or was convicted,
    /// approves nothing: whatever it said last, its node may be gone.
    fn agree(&self, charter: &Charter, upgrade: &Upgrade, seats: &[Address], is_patient: bool) -> bool {
        let approves = |account: &&Address| self.registered.is_staked(account) && charter.approves(account, upgrade);
        let approving = seats.iter().filter(approves).count();
        let (part, of) = if is_patient { (2, 3) } else { (5, 6) };
        approving >= seats_needed(seats.len(), is_patient) && self.has_stake(charter, upgrade, part, of)
    }

    /// Whether accounts with a part of all stake approve.
    fn has_stake(&self, charter: &Charter, upgrade: &Upgrade, part: u128, of: u128) -> bool {
        let (approving, all) = stakes(self.registered, |account| charter.approves(account, upgrade));
        all > 0 && approving * of >= all * part
    }

    /// Drops what accounts have said that are registered no more, once nobody can post it again.
    fn forget(&self, charter: &mut Charter) {
        let is_old = |said: Height| said.saturating_add(self.memory) < self.height;
        charter.consents.retain(|one| self.registered.get(&one.account).is_some() || !is_old(one.said));
    }
}

/// What accounts approve to come next, each once.
fn approved(charter: &Charter) -> BTreeSet<Upgrade> {
    charter.consents.iter().filter_map(|one| one.next).collect()
}

/// The coming rules are the confirmed ones. `stakers` are the accounts with a stake, and whether each is present.
pub(crate) fn confirm(charter: &mut Charter, stakers: BTreeMap<Address, bool>, coming: &ComingRules) {
    let ComingRules { upgrade, acts, is_patient, .. } = *coming;
    for account in stakers.keys() {
        consent_of(charter, *account);
    }
    for one in &mut charter.consents {
        let is_present = stakers.get(&one.account) == Some(&true);
        one.readiness = match one.next == Some(upgrade) {
            true => RulesReadiness::Ready,
            false if is_present || one.readiness == RulesReadiness::Stopped => RulesReadiness::Stopped,
            false => RulesReadiness::Unready,
        };
        one.next = None;
    }
    let ChainRules { confirmed: before, manifest: manifest_before, .. } = charter.rules;
    let Upgrade { rules: confirmed, manifest, .. } = upgrade;
    charter.rules = ChainRules { confirmed, manifest, since: acts, before, manifest_before, coming: None };
    (charter.is_patient, charter.awaited) = (is_patient, None);
}

/// The first height of an epoch, of this one or a later one, that is not below a height.
fn first_from(schedule: Schedule, epoch: u64, least: Height) -> Height {
    let first = schedule.first_height(schedule.epoch_of(least).max(epoch));
    if first >= least { first } else { schedule.first_height(schedule.epoch_of(least) + 1) }
}
