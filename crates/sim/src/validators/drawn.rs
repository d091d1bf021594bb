//! Networks whose faults are drawn from a seed, twins among them.
//!
//! Twins (Bano, Sonnino, Chursin, Perelman, Li, Ching and Malkhi 2020): two instances of one key, both of them correct
//! code.
//!
//! A *host* is a process with its disks, a *validator* is a key. A validator has one host, a twin has two: the second
//! hosts are numbered after all validators. Neither instance knows of the other; each is killed and restarted
//! separately. A link joins two hosts of different keys, and every host has at most one link to each key. A *partition*
//! determines the links: hosts form groups, links between groups are cut, and a host that could see both instances of
//! a twin sees one of them. The seed draws the partitions; the last one joins all groups.
//!
//! With at most f twins all invariants hold. With f+1 the checks must be able to fail.

use std::collections::BTreeSet;

use consensus::gather::GATHERED_FROM;
use consensus::{Index, Protocol};
use kernel::{Dice, Links};
use primitives::SecretKey;

use super::host::Host;
use super::{Event, Faults, NetworkReport, SimNetwork};
use crate::world::{self, Failure, World};

impl SimNetwork {
    /// A network of 4 to 7 validators, as many of which are twins as may be faulty; the seed draws the links, and
    /// which validators are killed, torn writes included.
    pub fn drawn_with_twins(seed: u64, protocol: Protocol) -> SimNetwork {
        let mut dice = Dice::new(!seed ^ 0x7717_0000);
        let size = 4 + dice.index(4);
        let mut network = SimNetwork::of(protocol, size, seed);
        network.rules.fast = dice.once_in(3);
        network.gather_from = gather_from(seed);
        network.draw_twins(&mut dice);
        network.cuts = dice.below(6);
        network.kills = dice.below(4);
        network.tears = dice.below(4);
        network.trades = dice.once_in(4);
        network.sessions = dice.once_in(2);
        // Where heights could follow each other faster than they may.
        if dice.once_in(3) {
            network.interval = 5_000 + dice.below(40_000);
        }
        network
    }

    /// Makes as many validators twins as may be faulty.
    fn draw_twins(&mut self, dice: &mut Dice) {
        self.make_twins(self.committee.faulty, dice.bits());
        (self.kills, self.tears) = (dice.below(4), dice.below(3));
    }

    /// Makes `count` validators twins, in partitions that mostly split the network.
    pub fn make_twins(&mut self, count: usize, seed: u64) {
        let mut who: Vec<Index> = self.committee.members().collect();
        Dice::new(seed).shuffle(&mut who);
        who.into_iter().take(count).for_each(|index| self.twin(index));
        self.partitions = 2 + Dice::new(!seed).below(9);
    }

    /// A network of 4 to 7 validators whose faults are drawn from the seed.
    pub fn drawn(seed: u64, protocol: Protocol) -> SimNetwork {
        let mut dice = Dice::new(!seed);
        let size = [4, 4, 5, 6, 7, 7][dice.index(6)];
        let mut network = SimNetwork::of(protocol, size, seed);
        network.rules.fast = dice.once_in(3);
        network.gather_from = gather_from(seed);
        if dice.once_in(6) {
            network.rules.enough = Some(1);
        }
        network.cuts = dice.below(20);
        network.tails = !dice.once_in(4);
        let who = dice.index(size) as Index;
        match dice.below(9) {
            0 => network.kills = 1 + dice.below(8),
            1 => network.blackouts = 1 + dice.below(3),
            2 => network.lost_logs = 1,
            3 => (network.late, network.liars) = (Some(1 + who % (size as Index - 1)), true),
            4 => network.slow = Some(who),
            5 | 6 => network.draw_twins(&mut dice),
            _ => {
                let faults = [Faults::Silent, Faults::Equivocating, Faults::Random, Faults::Garbage, Faults::Flood];
                network.faults.insert(who, faults[dice.index(5)]);
            }
        }
        // If one validator follows, at least four must still vote.
        if size > 4 && network.twins.len() < 2 && dice.once_in(2) {
            network.epoch_heights = Some(10 + dice.below(12));
        }
        network.trades = dice.once_in(3);
        network.tears = if dice.once_in(3) { 1 + dice.below(3) } else { 0 };
        network.hasty = dice.once_in(4).then(|| dice.index(size) as Index);
        if dice.once_in(2) {
            network.checkpoint_blocks = 2 + dice.below(8);
            network.keep_blocks = dice.below(8);
        }
        network.contracts = dice.once_in(2);
        network.blackout_loses_log = network.blackouts > 0 && dice.once_in(2);
        network.sessions = dice.once_in(2);
        network.institutions = !network.sessions;
        network.seals = dice.once_in(3);
        network
    }

    /// The same with a sealing key and envelopes. An epoch outlasts the making of a key, and sometimes a seat's shares
    /// are false. Faulty validators take part in making keys, since silence would take hundreds of heights.
    pub fn drawn_sealed(seed: u64, protocol: Protocol) -> SimNetwork {
        let mut network = SimNetwork::drawn(seed, protocol);
        let mut dice = Dice::new(!seed ^ 0x5ea1_0000);
        (network.seals, network.envelopes_within) = (true, 8_000_000);
        network.epoch_heights = network.epoch_heights.map(|_| 60 + dice.below(60));
        let correct = network.correct();
        network.false_seat = dice.once_in(3).then(|| correct[dice.index(correct.len())]);
        network
    }
}

/// Every other network gathers votes, however small it is.
fn gather_from(seed: u64) -> usize {
    if seed.is_multiple_of(2) { GATHERED_FROM } else { 1 }
}

/// A network, and the number of transactions that each validator is sent.
struct Sent(SimNetwork, u64);

impl World for Sent {
    type Report = NetworkReport;

    fn run(&mut self) -> Result<NetworkReport, String> {
        self.0.submit_everywhere(self.1);
        self.0.run_until_settled();
        Ok(self.0.check())
    }

    fn height(&self) -> u64 {
        self.0.applied.last_key_value().map_or(0, |(height, _)| *height)
    }
}

/// Runs a network until all is settled; each validator is sent this many transactions.
pub(crate) fn run_network(
    seed: u64,
    network: impl FnOnce() -> (SimNetwork, u64) + Send,
) -> Result<NetworkReport, Failure> {
    world::run(seed, || {
        let (network, each) = network();
        Sent(network, each)
    })
}

/// Runs the network drawn from a seed.
///
/// # Errors
/// The violated invariant.
pub fn run_validators(seed: u64, protocol: Protocol) -> Result<NetworkReport, Failure> {
    run_network(seed, || (SimNetwork::drawn(seed, protocol), 20))
}

/// Runs the network drawn from a seed, with a sealing key and envelopes.
///
/// # Errors
/// The violated invariant.
pub fn run_sealed(seed: u64, protocol: Protocol) -> Result<NetworkReport, Failure> {
    run_network(seed, || (SimNetwork::drawn_sealed(seed, protocol), 60))
}

/// Runs the network drawn from a seed, whose validators have programs of two versions.
///
/// # Errors
/// The violated invariant.
pub fn run_versions(seed: u64, protocol: Protocol) -> Result<NetworkReport, Failure> {
    run_network(seed, || (SimNetwork::drawn_with_versions(seed, protocol), 20))
}

/// Runs the network drawn from a seed, with as many twins as may be faulty.
///
/// # Errors
/// The violated invariant.
pub fn run_twins(seed: u64, protocol: Protocol) -> Result<NetworkReport, Failure> {
    run_network(seed, || (SimNetwork::drawn_with_twins(seed, protocol), 20))
}

/// Time between the end of one partition and the links of the next: longer than it takes to notice a broken link.
const CHANGE: u64 = 40_000;
/// How long a partition lasts.
const PARTITION: u64 = 150_000;

impl SimNetwork {
    /// Gives a validator a second instance.
    ///
    /// # Panics
    /// If the network has started.
    pub fn twin(&mut self, of: Index) {
        assert!(!self.started && self.faults.insert(of, Faults::Twins).is_none());
        let second = self.hosts.len() as Index;
        self.twins.insert(second, of);
        let secret: SecretKey = self.secrets[usize::from(of)].clone();
        self.secrets.push(secret);
        let seed = self.dice.bits();
        self.hosts.push(Host::new(seed));
    }

    /// The validator that a host is an instance of.
    pub(super) fn validator(&self, host: Index) -> Index {
        self.twins.get(&host).copied().unwrap_or(host)
    }

    pub(super) fn all_hosts(&self) -> std::ops::Range<Index> {
        0..self.hosts.len() as Index
    }

    /// Hosts that run correct code.
    pub(super) fn running(&self) -> Vec<Index> {
        let runs = |host: &Index| self.fault_of(*host).is_none();
        self.all_hosts().filter(runs).collect()
    }

    /// The fault of a host that does not run correct code.
    pub(super) fn fault_of(&self, host: Index) -> Option<Faults> {
        self.faults.get(&self.validator(host)).copied().filter(|faults| *faults != Faults::Twins)
    }

    pub(super) fn is_linked(&self, a: Index, b: Index) -> bool {
        self.links.is_joined(a, b)
    }

    /// The instance of a validator that a host has a link to.
    pub(super) fn facing(&self, from: Index, to: Index) -> Option<Index> {
        self.all_hosts().find(|host| self.validator(*host) == to && self.is_linked(from, *host))
    }

    /// Sets up the first partition, and schedules the others.
    pub(super) fn draw_partitions(&mut self) {
        let hosts: Vec<Index> = self.all_hosts().collect();
        self.links = Links::among(&hosts);
        let joined = self.draw_links(self.partitions == 0);
        self.links.join(joined.clone());
        for (a, b) in joined {
            self.connect(a, b, 100);
        }
        for number in 1..=self.partitions {
            let when = number * PARTITION + self.dice.below(PARTITION / 2);
            self.push(when, 0, Event::Partition { last: number == self.partitions });
        }
    }

    /// Changes to the next partition.
    pub(super) fn change_partition(&mut self, last: bool) {
        let after = self.draw_links(last);
        let before = self.links.join(after.clone());
        for (a, b) in before.difference(&after) {
            self.break_link(*a, *b, CHANGE / 2);
        }
        for (a, b) in after.difference(&before) {
            let delay = CHANGE + self.dice.below(20_000);
            self.connect(*a, *b, delay);
        }
    }

    /// Groups of hosts, and the links within them.
    fn draw_links(&mut self, joined: bool) -> BTreeSet<(Index, Index)> {
        let whole = joined || self.dice.once_in(4);
        let groups: Vec<bool> = self.all_hosts().map(|_| !whole && self.dice.once_in(2)).collect();
        let mut pairs = self.links.pairs();
        self.dice.shuffle(&mut pairs);
        let mut linked = BTreeSet::new();
        // Each end of a link, with the key at the other end.
        let mut taken = BTreeSet::new();
        for (a, b) in pairs {
            let (of_a, of_b) = (self.validator(a), self.validator(b));
            let meet = of_a != of_b && groups[usize::from(a)] == groups[usize::from(b)];
            if meet && !taken.contains(&(a, of_b)) && !taken.contains(&(b, of_a)) {
                taken.extend([(a, of_b), (b, of_a)]);
                linked.insert((a, b));
            }
        }
        linked
    }
}
