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

use consensus::Index;
use kernel::Links;
use primitives::SecretKey;

use super::host::Host;
use super::{Event, Faults, SimNetwork};

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
