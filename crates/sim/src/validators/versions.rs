//! Validators whose programs know different rules: all begin with the older program, most install the newer one at
//! times of their own, and one only when it has stopped before the first height of the new rules.
//!
//! Beside the invariants of every run, all correct validators follow the same rules at each height, whenever they
//! install, restart or fetch a state. Nobody applies a block of rules that its program does not know. Who can follow
//! the new rules says so within [`SAID_WITHIN`] epochs of its first block under them, or of a state that it fetched.
//! They act in the end, and then everybody is ready for them.

use std::collections::BTreeMap;

use consensus::{Committee, Index, Protocol};
use kernel::Dice;
use ledger::{CharterTerms, Genesis, Ledger, RULES_NEWEST};
use primitives::Height;

use super::{Event, Faults, SimNetwork};

/// The rules that a network with programs of two versions begins with.
const OLDER: u32 = RULES_NEWEST - 1;
/// A short notice and a short patience, in heights.
const TERMS: (u64, u64) = (4, 25);
/// Epochs within which a validator has said that it can follow the rules of the chain.
const SAID_WITHIN: u64 = 8;

/// What the programs of a network know.
#[derive(Clone, Debug, Default)]
pub(super) struct Versions {
    /// The newest rules of each host's program; empty if all know all.
    known: Vec<u32>,
    /// Who installs only when it has stopped.
    late: Option<Index>,
    /// How far the chain was when each host installed the newer program.
    installed: BTreeMap<Index, Height>,
    /// The first height of the newer rules.
    acted: Option<Height>,
    /// From which height on each host has applied every block, up to which: a state that it fetches begins anew.
    applied: BTreeMap<Index, (Height, Height)>,
    /// The rules by height, as the first validator followed them.
    followed: BTreeMap<Height, u32>,
}

impl SimNetwork {
    /// A network of 5 to 7 validators with programs of two versions; the seed draws when each installs the newer one,
    /// who is late, and which are killed.
    pub fn drawn_with_versions(seed: u64, protocol: Protocol) -> SimNetwork {
        let mut dice = Dice::new(!seed ^ 0x0b9a_de00);
        let size = 5 + dice.index(3);
        let mut network = SimNetwork::of(protocol, size, seed);
        network.epoch_heights = Some(10 + dice.below(5));
        network.rules.fast = dice.once_in(3);
        (network.cuts, network.kills, network.tears) = (dice.below(6), dice.below(4), dice.below(3));
        network.trades = dice.once_in(3);
        if dice.once_in(2) {
            (network.checkpoint_blocks, network.keep_blocks) = (2 + dice.below(5), 1 + dice.below(4));
        }
        let who = dice.index(size) as Index;
        // Who is late and who is faulty are one together: a committee of four bears one of them.
        let late = dice.once_in(2).then_some(who);
        if late.is_none() && dice.once_in(2) {
            network.faults.insert(who, Faults::Silent);
        }
        network.mix_versions(late);
        network.institutions = dice.once_in(2);
        network
    }

    /// All begin with the older program; `late` installs the newer one only when it has stopped.
    pub fn mix_versions(&mut self, late: Option<Index>) {
        let known = vec![OLDER; self.hosts.len()];
        self.versions = Versions { known, late, ..Versions::default() };
    }

    pub(super) fn is_mixed(&self) -> bool {
        !self.versions.known.is_empty()
    }

    /// The newest rules that a host's program knows, and those that its operator approves.
    pub(super) fn program_of(&self, host: Index) -> (u32, Option<u32>) {
        let known = self.versions.known.get(usize::from(host)).copied().unwrap_or(RULES_NEWEST);
        (known, self.is_mixed().then_some(RULES_NEWEST))
    }

    /// The genesis of a network with programs of two versions.
    pub(super) fn with_older_rules(&self, genesis: Genesis) -> Genesis {
        let (notice_min, patience) = TERMS;
        let charter = CharterTerms { notice_min, patience, ..CharterTerms::default() };
        if self.is_mixed() { Genesis { rules: OLDER, charter, ..genesis } } else { genesis }
    }

    /// Draws when each host installs the newer program.
    pub(super) fn draw_installations(&mut self) {
        for host in self.running().into_iter().filter(|_| self.is_mixed()).collect::<Vec<_>>() {
            // One that lags when the others discard its blocks never comes to the height before which it would stop:
            // it reads that the others follow rules that it does not know, and its operator comes by in the end.
            let late = if self.versions.late == Some(host) { 30_000_000 } else { 0 };
            let when = late + self.dice.below(3_000_000);
            self.push(when, host, Event::Install);
        }
    }

    /// The operator installs the newer program, and starts it.
    pub(super) fn install(&mut self, host: Index) {
        self.versions.known[usize::from(host)] = RULES_NEWEST;
        let heights = self.hosts.iter().filter_map(|host| Some(host.process.as_ref()?.ledger.height()));
        let highest = heights.max().unwrap_or(0);
        self.versions.installed.insert(host, highest);
        self.kill(host, false);
    }

    /// A process has stopped before rules that it does not know: its operator is paged.
    pub(super) fn page_operator(&mut self, host: Index) {
        let process = self.process(host).expect("it runs");
        let (height, rules) = (process.ledger.height(), process.ledger.needs_rules());
        assert!(rules.is_some(), "{host} stops at height {height}, whose rules it knows");
        self.check_committee(host);
        let when = 200_000 + self.dice.below(3_000_000);
        self.push(when, host, Event::Install);
    }

    /// No more seats of the committee of the next height are empty than it bears: rules were confirmed for validators
    /// that can follow them.
    fn check_committee(&self, host: Index) {
        let ledger = &self.hosts[usize::from(host)].process.as_ref().expect("it runs").ledger;
        let next = ledger.height() + 1;
        let seats = ledger.committee(ledger.schedule().epoch_of(next)).expect("it is drawn");
        let is_empty = |host: &Index| {
            self.faults.contains_key(host) || self.versions.known[usize::from(*host)] < ledger.rules_at(next)
        };
        let empty = seats.iter().map(|member| self.by_key[&member.key.0]).filter(is_empty).count();
        let bears = Committee::new(seats.len()).faulty;
        assert!(empty <= bears, "{empty} of {} seats cannot follow rules that were confirmed", seats.len());
    }

    /// An epoch ends at this host: some are killed just then.
    pub(super) fn kill_at_turn(&mut self, host: Index) {
        if self.is_mixed() && !self.is_upgraded() && self.dice.once_in(4) {
            let when = self.dice.below(4_000);
            self.push(when, host, Event::Kill { loses_log: false });
        }
    }

    /// Every validator follows the same rules at a height, and knows them.
    pub(super) fn check_rules(&mut self, host: Index, height: Height) {
        let Some(process) = self.hosts[usize::from(host)].process.as_ref() else { return };
        let (rules, newest) = (process.ledger.rules_at(height), process.ledger.newest_rules());
        assert!(rules <= newest, "{host} has applied height {height} under rules {rules}, and knows up to {newest}");
        let first = *self.versions.followed.entry(height).or_insert(rules);
        assert_eq!(first, rules, "{host} follows other rules at height {height}");
        if rules == RULES_NEWEST {
            let acted = *self.versions.acted.get_or_insert(height);
            let (from, last) = self.versions.applied.entry(host).or_insert((height, height));
            *from = if height <= *last + 1 { *from } else { height };
            *last = height;
            let since = acted.max(*from);
            self.check_says_so(host, height, since);
        }
    }

    /// Who can follow the newer rules, and has done so for some epochs, has said so.
    fn check_says_so(&self, host: Index, height: Height, followed: Height) {
        let (Some(epoch), Some(installed)) = (self.epoch_heights, self.versions.installed.get(&host)) else { return };
        let since = followed.max(*installed);
        if height <= since + SAID_WITHIN * epoch || !self.correct().contains(&host) {
            return;
        }
        let ledger = &self.hosts[usize::from(host)].process.as_ref().expect("it runs").ledger;
        let account = self.secrets[usize::from(host)].public().address();
        let says_so = ledger.charter().is_ready(&account);
        assert!(says_so, "{host} follows the rules since height {since}, and has not said so at height {height}");
    }

    /// Whether the newer rules act everywhere and all are ready for them, if there are two versions.
    pub(super) fn is_upgraded(&self) -> bool {
        let correct = self.correct();
        let account = |host: &Index| self.secrets[usize::from(*host)].public().address();
        let is_done = |ledger: &Ledger| {
            let charter = ledger.charter();
            ledger.next_rules() == RULES_NEWEST && correct.iter().all(|host| charter.is_ready(&account(host)))
        };
        let ledger = |host: &Index| Some(&self.hosts[usize::from(*host)].process.as_ref()?.ledger);
        !self.is_mixed() || correct.iter().all(|host| ledger(host).is_some_and(is_done))
    }
}
