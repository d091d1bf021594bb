//! The lane of a restarted network: what is carried over, and its first committee.

use super::*;
use crate::terms::{LaneTerms, RestartError, RestartedLane};
use payments::{LaneCarryOver, RestartEvidence, RestartPart, with_told_board};
use primitives::PublicKey;

/// Registrations of one member and epoch by their bytes, each with the number of parts that report it.
type Reported<'a> = BTreeMap<Vec<u8>, (usize, &'a LaneRegistration)>;

impl LaneBridge {
    /// The key that signs for a member outside the lane: its registrar, or the key of its first shard where keys do
    /// not change.
    pub fn signer(&self, member: u8) -> Option<PublicKey> {
        let at = usize::from(member);
        let fixed = || self.terms.members.get(at).and_then(|shards| shards.first());
        if self.terms.registrars.is_empty() { fixed() } else { self.terms.registrars.get(at) }.copied()
    }

    /// What the lane of the restarted network begins with, by the operators' parts: the list and the first committee.
    /// This is the lane's state in the snapshot; `base` is the identity that the first keys are registered for
    /// ([`crate::Restart::base`]). A member without a part keeps the key of its first epoch; it signs nothing before
    /// the second epoch of the restarted lane.
    ///
    /// # Errors
    /// [`RestartError`] if a part is of another network, keys do not hold, or no list is safe.
    pub fn carry(&self, base: &Digest, parts: &[RestartPart]) -> Result<(LaneCarryOver, RestartedLane), RestartError> {
        let members = self.first_committee(base, parts)?;
        let mut evidence = RestartEvidence::new(self.network, self.committees_after(parts));
        for part in parts {
            evidence.add_part(part).map_err(RestartError::Part)?;
        }
        let carried = evidence.carry(&self.bridge)?;
        let list = carried.digest();
        Ok((carried, RestartedLane { list, members }))
    }

    fn first_committee(&self, base: &Digest, parts: &[RestartPart]) -> Result<Vec<Vec<PublicKey>>, RestartError> {
        let mut members = self.terms.members.clone();
        if self.terms.registrars.is_empty() {
            return Ok(members);
        }
        let mut present = BTreeSet::new();
        for part in parts {
            let missing = RestartError::Committee("a part has no first keys");
            let (registration, proofs) = part.first.as_ref().ok_or(missing)?;
            let registrar = self.signer(part.member).ok_or(RestartError::Committee("a part is of no member"))?;
            let is_own = (registration.epoch, registration.member) == (0, part.member);
            let is_new = present.insert(part.member);
            let holds = registration.verify(base, &registrar).is_ok()
                && registration.check_possession(base, &registrar, proofs).is_ok();
            let place = members.get_mut(usize::from(part.member)).filter(|_| is_own && is_new && holds);
            let wrong = RestartError::Committee("a member's first keys do not hold, or it has two parts");
            place.ok_or(wrong)?.clone_from(&registration.keys);
        }
        Ok(members)
    }

    /// The committees of the epochs that count, and of those after them by the keys that most parts report.
    fn committees_after(&self, parts: &[RestartPart]) -> BTreeMap<HomeEpoch, LaneCommittee> {
        let now = self.bridge.clock().epoch();
        let kept = self.committees.range(..=now);
        let mut committees: BTreeMap<_, _> = kept.map(|(epoch, committee)| (*epoch, committee.clone())).collect();
        if self.terms.registrars.is_empty() {
            // Homes of the same keys, as far as a log was shown.
            for home in parts.iter().flat_map(|part| &part.logs).map(|log| log.owner.home) {
                let fixed = || LaneCommittee::new(self.network, home, self.terms.members.clone());
                committees.entry(home).or_insert_with(fixed);
            }
            return committees;
        }
        for registration in self.registered_after(parts) {
            let members = self.terms.members.len();
            let unregistered = || LaneCommittee::unregistered(self.network, registration.epoch, members);
            let committee = committees.entry(registration.epoch).or_insert_with(unregistered);
            // Keys that cannot be used sign nothing.
            drop(committee.seat(&registration));
        }
        self.give_group_keys(&mut committees, parts);
        committees
    }

    /// The group keys of later epochs follow from the boards that parts report: members have signed their dealings, so
    /// nobody invents one. Of boards that differ the one counts that most parts report.
    fn give_group_keys(&self, committees: &mut BTreeMap<HomeEpoch, LaneCommittee>, parts: &[RestartPart]) {
        let now = self.bridge.clock().epoch();
        for (epoch, committee) in committees.range_mut(now + 1..) {
            let mut boards: BTreeMap<&[u8], usize> = BTreeMap::new();
            for board in parts.iter().filter_map(|part| part.boards.get(epoch)) {
                *boards.entry(board).or_default() += 1;
            }
            let mut boards: Vec<(&[u8], usize)> = boards.into_iter().collect();
            boards.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            let with = boards.into_iter().find_map(|(board, _)| with_told_board(committee.clone(), board).ok());
            with.into_iter().for_each(|with| *committee = with);
        }
    }

    /// For each member and epoch after the snapshot's, the registration that most parts report; its registrar signed
    /// it. A faulty registrar may sign two, and only one of them is on the ledger.
    fn registered_after(&self, parts: &[RestartPart]) -> Vec<LaneRegistration> {
        let now = self.bridge.clock().epoch();
        let mut reported: BTreeMap<(HomeEpoch, u8), Reported<'_>> = BTreeMap::new();
        for part in parts {
            let later = part.registrations.iter().filter(|of| of.epoch > now);
            let each_once: BTreeMap<Vec<u8>, &LaneRegistration> = later.map(|of| (of.encode(), of)).collect();
            for (bytes, registration) in each_once {
                let of_member = reported.entry((registration.epoch, registration.member)).or_default();
                of_member.entry(bytes).or_insert((0, registration)).0 += 1;
            }
        }
        let holds = |of: &LaneRegistration| {
            self.signer(of.member).is_some_and(|registrar| of.verify(&self.network, &registrar).is_ok())
        };
        let most = reported.into_values().filter_map(|all| {
            let sound = all.into_values().filter(|(_, of)| holds(of));
            sound.max_by_key(|(count, _)| *count).map(|(_, of)| of.clone())
        });
        most.collect()
    }

    /// The lane of the network that takes the place of this one: with its own identity, the list that is carried over,
    /// and these keys in the first epoch. Also returns the deposits of open cases, which go back to their accounts.
    pub(crate) fn restarted(
        &self,
        network: Digest,
        members: &[Vec<PublicKey>],
        carried: &LaneCarryOver,
        assets: usize,
    ) -> Result<(LaneBridge, Vec<(Address, Amount)>), RestartError> {
        if members.len() != self.terms.members.len() {
            return Err(RestartError::Committee("it has another number of members"));
        }
        let terms = LaneTerms { members: members.to_vec(), outputs: Vec::new(), ..LaneTerms::clone(&self.terms) };
        if let Some(fault) = terms.fault(assets) {
            return Err(RestartError::Committee(fault));
        }
        let carries = self.assets.begin_again();
        let (bridge, returned) = self.bridge.restarted(terms.bridge_rules(network, carries.limits(0)), carried)?;
        let mut lane = LaneBridge::of(network, terms, carries, bridge);
        lane.seat_committees().map_err(|_| RestartError::Committee("a key is invalid"))?;
        Ok((lane, returned))
    }
}
