//! Hold and release: a receiver shows each packet at its deadline and not before (Onyx §4, appendix B).
//!
//! Upon a packet, it is held until its deadline; upon a tick, everything due is released in the order (deadline, tree,
//! sequence). A packet whose deadline has passed is released at once. One [`Hold`] serves all logical receivers of a
//! process, so that one thread wakes for them.
//!
//! # Properties
//!
//! - Nothing is released before its deadline.
//! - Of one step, releases are in the order (deadline, tree, sequence, receiver).
//! - A release without a flag was made within the tolerance of its deadline by a clock whose error is within the
//!   target.
//!
//! # Deviations from the paper
//!
//! - *The flag.* The paper counts messages within 1 µs afterwards. Here each release says whether it can have been
//!   fair: late, a clock error above the target, a clock that is not synchronised, or the root's own word.
//!
//! # Structure
//!
//! A timing wheel of 4,096 slots of 1,024 ns; later deadlines wait in a tree. Inserting costs O(1), a tick O(slots that
//! passed + releases).

use std::collections::BTreeMap;

use crate::Nanos;

const SLOT_BITS: u32 = 10;
const SLOTS: u64 = 4_096;

/// What a held packet is ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HoldKey {
    /// When it is due, ns.
    pub deadline: Nanos,
    /// Its tree.
    pub tree: u16,
    /// Its sequence in the tree.
    pub sequence: u64,
    /// Which logical receiver of this process.
    pub receiver: u32,
}

/// Why a release may not have been fair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfair {
    /// Released this many nanoseconds after the deadline, beyond the tolerance.
    Late(Nanos),
    /// The clock's error may be as large as this, beyond the target.
    Clock(Nanos),
    /// The clock is not synchronised.
    Unsynchronised,
    /// The root said so.
    Root,
}

/// What this process's clock promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockState {
    /// Largest possible error, ns; `None` if the clock is not synchronised.
    pub error_bound: Option<Nanos>,
}

/// Bounds of a fair release.
#[derive(Clone, Copy, Debug)]
pub struct HoldRules {
    /// Lateness that still counts as simultaneous, ns.
    pub tolerance: Nanos,
    /// Largest clock error with which fairness may be claimed, ns.
    pub clock_target: Nanos,
}

impl Default for HoldRules {
    /// A microsecond between any two receivers: half of it for each clock.
    fn default() -> HoldRules {
        HoldRules { tolerance: 1_000, clock_target: 500 }
    }
}

/// What a hold is told.
#[derive(Clone, Debug)]
pub enum HoldInput<T> {
    /// A packet, and whether the root calls it unfair.
    Packet(HoldKey, T, bool),
    /// The clock changed its promise.
    Clock(ClockState),
    /// Time passed.
    Tick,
}

/// A packet that is shown to its receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Released<T> {
    /// Its order.
    pub key: HoldKey,
    /// The packet.
    pub item: T,
    /// Why it may not be fair.
    pub unfair: Option<Unfair>,
}

/// Packets that wait for their deadlines.
#[derive(Clone, Debug)]
pub struct Hold<T> {
    rules: HoldRules,
    clock: ClockState,
    slots: Vec<Vec<(HoldKey, T, bool)>>,
    /// Which slots are not empty.
    used: [u64; SLOTS as usize / 64],
    /// Deadlines beyond the wheel.
    far: BTreeMap<HoldKey, (T, bool)>,
    /// The slot, counted from time 0, up to which everything was released.
    at: u64,
    due: Vec<(HoldKey, T, bool)>,
    /// The earliest deadline that is held; the end of time if none is.
    earliest: Nanos,
}

impl<T> Hold<T> {
    /// An empty hold.
    pub fn new(now: Nanos, rules: HoldRules, clock: ClockState) -> Hold<T> {
        let slots = std::iter::repeat_with(Vec::new).take(SLOTS as usize).collect();
        let used = [0; SLOTS as usize / 64];
        let (at, earliest) = (now >> SLOT_BITS, Nanos::MAX);
        Hold { rules, clock, slots, used, far: BTreeMap::new(), at, due: Vec::new(), earliest }
    }

    /// One step.
    pub fn step(&mut self, now: Nanos, input: HoldInput<T>, out: &mut Vec<Released<T>>) {
        match input {
            HoldInput::Packet(key, item, is_unfair) => self.insert(key, item, is_unfair),
            HoldInput::Clock(clock) => self.clock = clock,
            HoldInput::Tick => {}
        }
        self.release(now, out);
    }

    /// When the next tick is needed: the earliest deadline.
    pub fn due(&self) -> Option<Nanos> {
        (self.earliest != Nanos::MAX).then_some(self.earliest)
    }

    fn find_earliest(&self) -> Nanos {
        let near = self.first_used().and_then(|slot| self.slots[slot].iter().map(|held| held.0.deadline).min());
        let far = || self.far.first_key_value().map(|(key, _)| key.deadline);
        near.or_else(far).unwrap_or(Nanos::MAX)
    }

    /// The first slot from now on that is not empty.
    fn first_used(&self) -> Option<usize> {
        let (start, words) = ((self.at % SLOTS) as usize, self.used.len());
        let from = u64::MAX << (start % 64);
        // The first word is looked at twice: from the present slot on, and at the end up to it.
        let word = |step: usize| {
            let at = (start / 64 + step) % words;
            let mask = if step == 0 {
                from
            } else if step == words {
                !from
            } else {
                u64::MAX
            };
            (at, self.used[at] & mask)
        };
        let (at, bits) = (0..=words).map(word).find(|(_, bits)| *bits != 0)?;
        Some(at * 64 + bits.trailing_zeros() as usize)
    }

    fn is_used(&self, slot: usize) -> bool {
        self.used[slot / 64] & 1 << (slot % 64) != 0
    }

    fn insert(&mut self, key: HoldKey, item: T, is_unfair: bool) {
        self.earliest = self.earliest.min(key.deadline);
        let slot = (key.deadline >> SLOT_BITS).max(self.at);
        if slot - self.at >= SLOTS {
            self.far.insert(key, (item, is_unfair));
            return;
        }
        let slot = (slot % SLOTS) as usize;
        self.slots[slot].push((key, item, is_unfair));
        self.used[slot / 64] |= 1 << (slot % 64);
    }

    fn release(&mut self, now: Nanos, out: &mut Vec<Released<T>>) {
        let until = (now >> SLOT_BITS).max(self.at);
        if now < self.earliest {
            // Slots that pass are empty.
            self.at = until;
            return self.approach(now);
        }
        for slot in self.at..=until.min(self.at + SLOTS - 1) {
            self.collect((slot % SLOTS) as usize, now);
        }
        self.at = until;
        self.approach(now);
        self.due.sort_unstable_by_key(|held| held.0);
        for (key, item, by_root) in std::mem::take(&mut self.due) {
            let unfair = self.unfair(now, key.deadline, by_root);
            out.push(Released { key, item, unfair });
        }
        self.earliest = self.find_earliest();
    }

    /// Moves what the wheel now reaches out of the tree.
    fn approach(&mut self, now: Nanos) {
        let at = self.at;
        let is_near = |key: &HoldKey| (key.deadline >> SLOT_BITS).saturating_sub(at) < SLOTS;
        while self.far.first_key_value().is_some_and(|(key, _)| is_near(key))
            && let Some((key, (item, by_root))) = self.far.pop_first()
        {
            if key.deadline <= now { self.due.push((key, item, by_root)) } else { self.insert(key, item, by_root) }
        }
    }

    /// Moves what is due out of a slot.
    fn collect(&mut self, slot: usize, now: Nanos) {
        if self.is_used(slot) {
            self.due.extend(self.slots[slot].extract_if(.., |held| held.0.deadline <= now));
            if self.slots[slot].is_empty() {
                self.used[slot / 64] &= !(1 << (slot % 64));
            }
        }
    }

    fn unfair(&self, now: Nanos, deadline: Nanos, by_root: bool) -> Option<Unfair> {
        let late = now.saturating_sub(deadline);
        match self.clock.error_bound {
            _ if by_root => Some(Unfair::Root),
            _ if late > self.rules.tolerance => Some(Unfair::Late(late)),
            None => Some(Unfair::Unsynchronised),
            Some(bound) => (bound > self.rules.clock_target).then_some(Unfair::Clock(bound)),
        }
    }
}
