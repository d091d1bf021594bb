//! What must hold of a correct validator.

use super::*;

/// A member that has acted between so many blocks of an epoch, and has not crashed meanwhile, has registered for the
/// next.
const REGISTERED_WITHIN: u64 = 12;

impl SimValidator {
    /// Checks that a shard is told of an epoch only when a certified block has begun it.
    pub(super) fn check_told(&mut self, fact: &LaneFact) {
        let LaneInput::Epoch(epoch) = fact else { return };
        if *epoch > now(&self.known) {
            let (index, known) = (self.index, now(&self.known));
            self.broken = Some(format!("validator {index} begins epoch {epoch}, and certified is epoch {known}"));
        }
    }

    /// Checks that it holds the keys that it needs at the time it knows, and no others. What could not be removed is
    /// tried again with each block.
    pub fn check_keys(&self) -> Result<(), String> {
        let (index, now, bridge) = (self.index, now(&self.known), lane(&self.known).bridge());
        let is_needed = |home: &HomeEpoch| home + SPEND_EPOCHS >= now || bridge.needs(*home);
        let known = self.known.height();
        let is_stuck = |home: &HomeEpoch| known < self.begun || self.stuck.get(home) == Some(&known);
        // A shard that runs apart wipes its keys when it hears of that.
        let mut own = self.keys.keys().filter(|(_, shard)| !self.lines.contains_key(shard)).map(|(home, _)| home);
        if let Some(home) = own.find(|home| !is_needed(home) && !is_stuck(home)) {
            return Err(format!("validator {index} holds the key of epoch {home} in epoch {now}"));
        }
        match self.made.iter().find(|home| is_needed(home) && !self.keys.contains_key(&(**home, 0))) {
            Some(home) => Err(format!("validator {index} has destroyed the key of epoch {home} in epoch {now}")),
            None => Ok(()),
        }
    }

    /// Whether a shard has performed everything that its member has ordered.
    fn hears(&self, shard: u16) -> bool {
        self.lines.get(&shard).is_none_or(SimLine::is_quiet)
    }

    /// Whether the shard that an owner's money is in signs: one that runs apart and offered no key in time does not,
    /// which counts as its member's fault.
    pub fn serves(&self, home: HomeEpoch, owner: &PublicKey) -> bool {
        let shard = lane(&self.ledger).committee(home).and_then(|of| of.shard_of(self.index, owner).ok());
        shard.is_none_or(|shard| !self.lines.contains_key(&shard) || self.shards.contains_key(&(home, shard)))
    }

    /// Whether all shards of a home run.
    fn runs(&self, home: HomeEpoch) -> bool {
        (0..self.registered(home)).all(|shard| self.shards.contains_key(&(home, shard)))
    }

    /// Checks that each shard that runs was told of the outputs that certified blocks have created with its home or
    /// proved, and of the open cases that concern it.
    pub fn check_facts(&self) -> Result<(), String> {
        let bridge = lane(&self.known).bridge();
        let cases: Vec<&ContestedOutput> = bridge.resolver().cases().map(|(contested, _)| contested).collect();
        for ((home, number), shard) in self.shards.iter().filter(|((_, shard), _)| self.hears(*shard)) {
            let concerns = |of: &&&ContestedOutput| (of.home..=of.home + 1).contains(home);
            let contested = cases.iter().filter(concerns).map(|of| of.output.id);
            let known = bridge.backed(*home).chain(bridge.proven(*home)).map(|(id, _)| *id);
            let mut facts = known.chain(contested);
            if let Some(id) = facts.find(|id| !shard.told.contains(id)) {
                return Err(format!("shard {number} of home {home} of validator {} was not told of {id}", self.index));
            }
        }
        Ok(())
    }

    /// Checks that it has registered for the next epoch once it has had the time.
    pub fn check_registration(&self, newest: &Ledger) -> Result<(), String> {
        let (next, bridge) = (now(&self.known) + 1, lane(newest).bridge());
        let is_registered = bridge.registrations(next).any(|of| of.member == self.index);
        let is_late = self.acted.0 >= REGISTERED_WITHIN && now(newest) + 1 == next;
        // One that waits for keys of shards that run apart registers in the last quarter.
        if is_late && !is_registered && self.lines.is_empty() {
            return Err(format!("validator {} has not registered for epoch {next}", self.index));
        }
        Ok(())
    }

    /// Checks that no shard bars a payment that the ledger confirms, if everything that is applied is certified.
    pub fn check_bars(&self) -> Result<(), String> {
        let resolver = lane(&self.known).bridge().resolver();
        if self.known.height() < self.ledger.height() {
            return Ok(());
        }
        let of_home = |((home, number), shard): (&Place, &SimShard)| {
            if !self.hears(*number) {
                return None;
            }
            let barred = shard.machine.barred().into_iter().find(|payment| resolver.confirms(payment));
            barred.map(|payment| (*home, payment))
        };
        match self.shards.iter().find_map(of_home) {
            Some((home, payment)) => {
                Err(format!("validator {} of home {home} still bars payment {payment}, which is confirmed", self.index))
            }
            None => Ok(()),
        }
    }

    /// Checks that the ledger has what this member has to say in the cases that it was told of long ago.
    pub fn check_statements(&self, resolver: &Resolver, is_old: impl Fn(&OutputId) -> bool) -> Result<(), String> {
        for (contested, candidates) in resolver.cases().filter(|(contested, _)| is_old(&contested.output.id)) {
            let (case, home) = (contested.output.id, contested.home);
            if self.runs(home) && !resolver.has_vote(&case, self.index) {
                return Err(format!("the vote of validator {} in case {} is lost", self.index, Digest(case.0)));
            }
            let mut homes = [home, home + 1].into_iter().filter(|home| self.runs(*home));
            let lacks = homes.find(|home| candidates.is_some() && !resolver.has_view(&case, *home, self.index));
            if let Some(home) = lacks {
                let index = self.index;
                return Err(format!("the view of validator {index} of home {home} in case {} is lost", Digest(case.0)));
            }
        }
        Ok(())
    }
}
