//! Budgets of costly checks between two ticks, by address and by proved key.
//!
//! A key in a request is unproved: who sends false signatures in a victim's name must not use up what the victim has.
//! So everything is charged to the address that a request came from, until a pair of address and key has had one
//! request verified in this lane epoch. Such a pair has a budget of its own, apart from those of all others. What
//! proves false is charged to the address in any case. Pairs are bounded: of those that were not used for longest, by
//! ticks, one goes.

use std::collections::{BTreeSet, HashMap};

use primitives::PublicKey;

use super::LaneSettings;

/// An address, as the shell numbers them: of IPv4 each, of IPv6 each /56.
pub type LaneAddress = u64;

/// Pairs that are remembered.
const PAIRS_MAX: usize = 65_536;

type Pair = (LaneAddress, PublicKey);

/// See the module text.
pub(super) struct CheckBudgets {
    per_peer: u32,
    per_tick: u32,
    /// What is left of this tick: for unproved requests, and for proved pairs.
    left: [u32; 2],
    by_address: HashMap<LaneAddress, u32>,
    by_pair: HashMap<Pair, u32>,
    /// For each proved pair the tick in which it was last used; and the pairs in that order.
    proved: HashMap<Pair, u64>,
    used: BTreeSet<(u64, Pair)>,
    ticks: u64,
}

impl CheckBudgets {
    pub(super) fn new(settings: &LaneSettings) -> CheckBudgets {
        CheckBudgets {
            per_peer: settings.checks_per_peer,
            per_tick: settings.checks_per_tick,
            left: [settings.checks_per_tick; 2],
            by_address: HashMap::new(),
            by_pair: HashMap::new(),
            proved: HashMap::new(),
            used: BTreeSet::new(),
            ticks: 0,
        }
    }

    /// A tick refills all budgets.
    pub(super) fn refill(&mut self) {
        self.left = [self.per_tick; 2];
        self.by_address.clear();
        self.by_pair.clear();
        self.ticks += 1;
    }

    /// With a lane epoch all keys are unproved again.
    pub(super) fn begin_epoch(&mut self) {
        self.proved.clear();
        self.used.clear();
    }

    pub(super) fn is_proved(&self, address: LaneAddress, owner: &PublicKey) -> bool {
        self.proved.contains_key(&(address, *owner))
    }

    /// Checks that a request may cost.
    pub(super) fn allowed(&self, address: LaneAddress, owner: &PublicKey) -> u32 {
        let is_proved = self.is_proved(address, owner);
        let used = match is_proved {
            true => self.by_pair.get(&(address, *owner)),
            false => self.by_address.get(&address),
        };
        let left = self.left[usize::from(is_proved)];
        self.per_peer.saturating_sub(used.copied().unwrap_or(0)).min(left)
    }

    /// A request has cost this much, and proved true or false.
    pub(super) fn charge(&mut self, address: LaneAddress, owner: &PublicKey, spent: u32, holds: bool) {
        if spent == 0 {
            return;
        }
        let is_proved = self.is_proved(address, owner);
        let left = &mut self.left[usize::from(is_proved)];
        *left = left.saturating_sub(spent);
        if is_proved {
            let used = self.by_pair.entry((address, *owner)).or_default();
            *used = used.saturating_add(spent);
        }
        if !is_proved || !holds {
            let used = self.by_address.entry(address).or_default();
            *used = used.saturating_add(spent);
        }
    }

    /// A request with a signature of this owner was verified.
    pub(super) fn prove(&mut self, address: LaneAddress, owner: PublicKey) {
        let pair = (address, owner);
        match self.proved.insert(pair, self.ticks) {
            Some(last) if last == self.ticks => return,
            Some(last) => drop(self.used.remove(&(last, pair))),
            None => {}
        }
        self.used.insert((self.ticks, pair));
        if self.proved.len() > PAIRS_MAX
            && let Some((_, oldest)) = self.used.pop_first()
        {
            self.proved.remove(&oldest);
        }
    }

    #[cfg(test)]
    pub(super) fn left(&self) -> u32 {
        self.left.iter().sum()
    }
}
