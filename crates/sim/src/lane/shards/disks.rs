//! What validators have on their disks: logs and keys, which are made, opened and removed. Disks are full at times.

use super::*;

impl SimValidator {
    pub(super) fn prepare(&mut self, home: HomeEpoch, makes_keys: bool) -> MemberInput {
        if self.fails(3) {
            return MemberInput::Prepared(home, false);
        }
        let own: Vec<u16> = self.own().collect();
        for shard in own {
            self.make((home, shard), true, makes_keys);
        }
        self.made.extend(makes_keys.then_some(home));
        let preparation = self.preparation(home);
        self.order_all(&preparation);
        MemberInput::Prepared(home, true)
    }

    pub(super) fn preparation(&self, home: HomeEpoch) -> ShardOrder {
        let lane = lane(&self.ledger);
        ShardOrder::Prepare { home, network: lane.network(), bls: lane.terms().bls }
    }

    /// How many shards it registers for a home.
    pub(super) fn registered(&self, home: HomeEpoch) -> u16 {
        crate::lane::registered(self.index, home, self.count)
    }

    /// The shards in the member's own process.
    pub(super) fn own(&self) -> impl Iterator<Item = u16> + use<> {
        let apart: BTreeSet<u16> = self.lines.keys().copied().collect();
        (0..self.count).filter(move |shard| !apart.contains(shard))
    }

    /// Makes a log and a key, unless they exist.
    pub(super) fn make(&mut self, place: Place, makes_log: bool, makes_key: bool) {
        let (home, shard) = place;
        if makes_log && !self.logs.contains_key(&place) && !self.shards.contains_key(&place) {
            let network = lane(&self.ledger).network();
            let owner = LogOwner { network, home, validator: self.index, shard };
            self.logs.insert(place, new_disk(&owner, &mut self.dice));
        }
        if makes_key {
            self.keys.entry(place).or_insert_with(|| shard_key(self.index, home, shard));
        }
    }

    /// Opens a shard of a home from its log.
    pub(super) fn start(&mut self, place: Place, term: &ShardTerm) -> ShardStart {
        if self.fails(10) {
            return ShardStart::Failed;
        }
        let secrets = self.keys.get(&place).and_then(|key| term.secrets(self.index, place.1, key.clone()));
        // A member that registered too late signs nothing in this epoch.
        let (Some(secrets), Some(disk)) = (secrets, self.logs.remove(&place)) else { return ShardStart::Mute };
        let shard = self.opened(place.1, term, secrets, disk);
        if let Some(reason) = shard.machine.muted() {
            self.broken = Some(format!("validator {} home {} shard {}: {reason}", self.index, place.0, place.1));
            self.logs.insert(place, shard.disk);
            return ShardStart::Mute;
        }
        let barred = shard.machine.barred();
        self.shards.insert(place, shard);
        term.backed.iter().for_each(|(id, output)| self.step(place, LaneInput::Backed(*id, *output)));
        term.proven.iter().for_each(|(id, output)| self.step(place, LaneInput::Proven(*id, *output)));
        ShardStart::Runs(barred)
    }

    /// Stops a shard: its log stays.
    pub(super) fn stop(&mut self, place: Place) {
        let stopped = self.shards.remove(&place);
        self.logs.extend(stopped.map(|shard| (place, shard.disk)));
    }

    pub(super) fn opened(
        &mut self,
        number: u16,
        term: &ShardTerm,
        secrets: ShardSecrets,
        mut disk: LogDisk,
    ) -> SimShard {
        let settings = LaneSettings {
            rules: self.rules_of(term),
            previous: term.previous.clone(),
            committee: term.committee.clone(),
            validator: self.index,
            shard: number,
            now: term.now,
            leaves: 1 + self.dice.index(4),
            entries_max: 1 << 20,
            trees_waiting_max: 64,
            checks_per_peer: 1_000,
            checks_per_tick: 10_000,
            roots_per_validator: 64,
        };
        let ShardSecrets { key, bls, share } = secrets;
        let (mut machine, intact) = LaneValidator::open(settings, key, drawn_key(&mut self.dice), Some(&disk.bytes));
        if let Some(bls) = bls {
            machine = machine.with_bls(bls);
        }
        if let Some(share) = share {
            machine = machine.with_share(share);
        }
        intact.into_iter().for_each(|intact| disk.bytes.truncate(intact as usize));
        // The shell has made everything durable before it opens the log.
        disk.durable = disk.bytes.len();
        let life = self.lines.get(&number).map_or(0, SimLine::life);
        SimShard { machine, disk, syncs: VecDeque::new(), told: BTreeSet::new(), life }
    }

    pub(super) fn remove(&mut self, home: HomeEpoch) -> MemberInput {
        if self.fails(3) {
            self.stuck.insert(home, self.known.height());
            return MemberInput::Removed(home, false);
        }
        let own: Vec<u16> = self.own().collect();
        own.into_iter().for_each(|shard| drop(self.keys.remove(&(home, shard))));
        MemberInput::Removed(home, true)
    }
}
