//! Order pacing: a burst of one participant waits at its gateway, and not in the queues of the tree (Jasper, the
//! authors' other version of Onyx, arXiv 2402.09527 v8).
//!
//! Machines of a tree take a limited number of packets and keep a few more. When many participants react to one packet
//! of market data, a burst overflows them. What is lost then costs time-outs of connections that carry the orders of
//! many. So each gateway sends its participant's orders no faster than the participant's share.
//!
//! - Upon *an order*: it leaves at once if none waits and the allowance has room. Otherwise it waits behind the others.
//!   If [`PaceRules::waiting`] orders wait already, it is refused.
//! - Upon *a tick*: of the orders that wait, those leave whose slots have come. Slots are [`PaceRules::interval`]
//!   apart, and those of the gateways of one tree are spread over the interval ([`Pace::place`]): orders that all
//!   began to wait at the same packet do not leave together again and again.
//! - *An order gets its stamp when it leaves.* So whoever waits promises nothing, and nobody waits for it.
//!
//! # Properties
//!
//! - In any span of t ns at most `2 · burst + t / interval` orders leave: an allowance at its beginning, and slots for
//!   which a late tick made up.
//! - Orders leave in the order in which they came, each once.
//! - An order within the allowance leaves at once. Of those that wait, the k-th leaves after at most k + 1 intervals.
//! - When an order leaves depends on the rules and on this participant's orders alone.
//! - At most `waiting` orders are kept. A refused one has changed nothing.
//!
//! # Attacks
//!
//! Tests are in `tests/fairnet/pace.rs`.
//!
//! | attack | what holds, and why | test |
//! |---|---|---|
//! | a participant floods | its own orders wait and are refused; each participant has a pace of its own, and sends at most its share | `a_flood_takes_no_more_than_its_share_and_delays_nobody_else` |
//! | a participant waits on purpose, so that sequencers wait for its stamps | what waits has no stamp: its gateway promises the present time | `a_flood_takes_no_more_than_its_share_and_delays_nobody_else` |
//! | a participant saves its share up for one burst | the allowance does not grow beyond `burst` | `what_leaves_is_within_the_share_in_order_and_on_time` |
//! | the pace tells who trades | it does not depend on what others do: shares are fixed by the plan, and unused ones are lent to nobody | `a_flood_takes_no_more_than_its_share_and_delays_nobody_else` |
//! | a stamp from before the wait | none exists: a participant cannot have an early stamp and see more of the market | the same |
//!
//! # Deviations from the paper
//!
//! - The text of that version says that gateways pace orders, and not how. This is our design of it.
//! - *The pace is before the stamp.* Behind the stamp, the sequencer would wait for the orders that wait: whoever sends
//!   too much would delay all others, by as much as [`crate::MergeRules::max_wait`] allows. The price: an order beyond
//!   its participant's allowance counts from when it leaves. Inbound fairness (definition 3.2) holds for all others.
//! - *Cancels wait in the same line.* One that overtook the order that it cancels would find nothing.

use std::collections::VecDeque;

use kernel::Planted;
use strum::VariantArray;

use crate::Nanos;

/// The share of a participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaceRules {
    /// Between two orders of a long burst, ns; at least 1.
    pub interval: Nanos,
    /// Orders that leave at once, after a time in which fewer came; at least 1.
    pub burst: u64,
    /// Orders that may wait.
    pub waiting: usize,
    /// The mistake that a test plants.
    pub mistake: Planted<PaceMistake>,
}

/// A mistake that a test plants: a check that never fires proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub enum PaceMistake {
    /// The allowance grows with the time in which nothing came.
    AllowanceSaved,
    /// A new order leaves before those that wait.
    NewFirst,
    /// A tick that comes late makes up for all slots that it missed.
    LateTickFlushes,
}

impl PaceMistake {
    /// All of them.
    pub const ALL: &[PaceMistake] = PaceMistake::VARIANTS;
}

/// What a pace is told.
#[derive(Clone, Debug)]
pub enum PaceInput<T> {
    /// The participant made an order.
    Order(T),
    /// Time passed.
    Tick,
}

/// What a pace does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PaceEffect<T> {
    /// The order leaves: it is stamped and sent.
    Leave(T),
    /// Too many wait.
    Refuse(T),
}

/// The pace of one participant; see the module text.
#[derive(Clone, Debug)]
pub struct Pace<T> {
    rules: PaceRules,
    /// Where slots are in an interval.
    phase: Nanos,
    waiting: VecDeque<T>,
    /// When the whole allowance is there again.
    whole_at: Nanos,
    /// The next slot for what waits.
    slot: Nanos,
}

impl<T> Pace<T> {
    /// A pace with its whole allowance.
    pub fn new(rules: PaceRules) -> Pace<T> {
        let rules = PaceRules { interval: rules.interval.max(1), burst: rules.burst.max(1), ..rules };
        Pace { rules, phase: 0, waiting: VecDeque::new(), whole_at: 0, slot: 0 }
    }

    /// Slots are this far into each interval, ns, from the next burst on.
    pub fn place(&mut self, phase: Nanos) {
        self.phase = phase % self.rules.interval;
    }

    /// Whether an order would be refused that cannot leave at once.
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= self.rules.waiting
    }

    /// Orders that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// When the next tick is needed.
    pub fn due(&self) -> Option<Nanos> {
        (!self.waiting.is_empty()).then_some(self.slot)
    }

    /// One step.
    pub fn step(&mut self, now: Nanos, input: PaceInput<T>, out: &mut Vec<PaceEffect<T>>) {
        self.tick(now, out);
        let PaceInput::Order(order) = input else { return };
        let may_pass = self.waiting.is_empty() || self.rules.mistake.is(PaceMistake::NewFirst);
        if may_pass && self.has_allowance(now) {
            self.leave(now, order, out);
        } else if !self.is_full() {
            if self.waiting.is_empty() {
                self.slot = self.slot_after(now.max(self.whole_at.saturating_sub(self.reserve())));
            }
            self.waiting.push_back(order);
        } else {
            out.push(PaceEffect::Refuse(order));
        }
    }

    fn tick(&mut self, now: Nanos, out: &mut Vec<PaceEffect<T>>) {
        if self.waiting.is_empty() || self.slot > now {
            return;
        }
        if !self.rules.mistake.is(PaceMistake::LateTickFlushes) {
            // Of the slots that a late tick missed, no more than an allowance.
            let missed = ((now - self.slot) / self.rules.interval + 1).saturating_sub(self.rules.burst);
            self.slot += missed * self.rules.interval;
        }
        while self.slot <= now
            && let Some(order) = self.waiting.pop_front()
        {
            self.leave(self.slot, order, out);
            self.slot = self.slot.saturating_add(self.rules.interval);
        }
    }

    /// How far ahead of the share orders may leave.
    fn reserve(&self) -> Nanos {
        self.rules.interval.saturating_mul(self.rules.burst - 1)
    }

    fn has_allowance(&self, now: Nanos) -> bool {
        self.whole_at <= now.saturating_add(self.reserve())
    }

    /// An order leaves, in a slot or at once.
    fn leave(&mut self, at: Nanos, order: T, out: &mut Vec<PaceEffect<T>>) {
        let is_saved = self.rules.mistake.is(PaceMistake::AllowanceSaved);
        let from = if is_saved { self.whole_at } else { self.whole_at.max(at) };
        self.whole_at = from.saturating_add(self.rules.interval);
        out.push(PaceEffect::Leave(order));
    }

    /// The first slot at or after a time.
    fn slot_after(&self, at: Nanos) -> Nanos {
        let intervals = at.saturating_sub(self.phase).div_ceil(self.rules.interval);
        intervals.saturating_mul(self.rules.interval).saturating_add(self.phase)
    }
}
