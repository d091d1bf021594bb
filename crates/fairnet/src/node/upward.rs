//! The way in at a node with children: streams, credit, sequencer, delays.

use std::collections::BTreeMap;

use kernel::Planted;

use super::{EdgeCounters, EdgeEffect, EdgeMistake, EdgeRules, LinkEnd};
use crate::Nanos;
use crate::deadlines::{DelayFold, FoldEffect};
use crate::hop::{Hop, HopEffect, HopInput};
use crate::key::{MergeKey, Sequenced};
use crate::link::{EdgeOrder, LinkMessage};
use crate::merge::{MergeEffect, MergeInput};
use crate::roster::FairnessEvent;
use crate::seating::{MemberId, Seating};

/// How many times its credit a child's orders may wait in the sequencer.
const HELD_BACK: u64 = 16;

/// What comes out at the top.
#[derive(Debug)]
pub(super) enum UpwardEffect {
    /// An order or a watermark.
    Hop(HopEffect<EdgeOrder>),
    /// The largest delay below.
    Delay(Nanos),
    /// Something impaired fairness.
    Event(FairnessEvent),
    /// A child said what cannot be, by this much; its stream counts for nothing any more.
    Cheat(MemberId, Nanos),
}

#[derive(Debug)]
pub(super) struct Upward {
    hop: Hop<EdgeOrder>,
    fold: DelayFold,
    /// Who uses which stream of the sequencer.
    slots: Vec<Option<MemberId>>,
    /// Orders that each may still send.
    granted: Vec<u64>,
    /// Whose silence is our doing.
    held: Vec<bool>,
    credit: u64,
    mistake: Planted<EdgeMistake>,
    /// Who cheated, and by how much, until it has a place in a later tree.
    expelled: BTreeMap<MemberId, u64>,
    /// How far stamps may be ahead of the clock; `Nanos::MAX` if everything is believed.
    ahead: Nanos,
    /// Events since the last tick are reported once each: a burst of restamped orders is one line in the log.
    restamped: BTreeMap<MemberId, Nanos>,
}

impl Upward {
    pub(super) fn new(now: Nanos, rules: &EdgeRules) -> Upward {
        Upward {
            hop: Hop::new(now, rules.children, rules.merge, rules.policy),
            fold: DelayFold::new(now, rules.children, rules.deadlines),
            slots: vec![None; rules.children],
            granted: vec![0; rules.children],
            held: vec![false; rules.children],
            credit: rules.credit,
            mistake: rules.mistake,
            expelled: BTreeMap::new(),
            ahead: if rules.mistake.is(EdgeMistake::LiesBelieved) { Nanos::MAX } else { rules.ahead },
            restamped: BTreeMap::new(),
        }
    }

    pub(super) fn queued(&self) -> usize {
        self.hop.queued()
    }

    /// Whether somebody's orders are waited for.
    pub(super) fn has_children(&self) -> bool {
        self.slots.iter().any(Option::is_some)
    }

    fn slot(&self, child: MemberId) -> Option<usize> {
        self.slots.iter().position(|slot| *slot == Some(child))
    }

    /// A child's stream begins; false if there are too many. Of one that was expelled the root hears again.
    pub(super) fn opened(&mut self, now: Nanos, child: MemberId, out: &mut Vec<UpwardEffect>) -> bool {
        self.closed(now, child, out);
        if let Some(by) = self.expelled.get(&child) {
            out.push(UpwardEffect::Cheat(child, *by));
            return true;
        }
        let is_free = |slot: &usize| self.slots[*slot].is_none() && self.hop.waiting(*slot as u32) == 0;
        let Some(slot) = (0..self.slots.len()).find(is_free) else { return false };
        (self.slots[slot], self.granted[slot], self.held[slot]) = (Some(child), 0, false);
        self.child(now, MergeInput::Join(slot as u32), out);
        true
    }

    /// A child's stream ended: what it sent goes on.
    pub(super) fn closed(&mut self, now: Nanos, child: MemberId, out: &mut Vec<UpwardEffect>) {
        if let Some(slot) = self.slot(child) {
            self.slots[slot] = None;
            self.child(now, MergeInput::Hold(slot as u32, false), out);
            self.child(now, MergeInput::Leave(slot as u32), out);
        }
    }

    fn child(&mut self, now: Nanos, input: MergeInput<EdgeOrder>, out: &mut Vec<UpwardEffect>) {
        self.step(now, HopInput::Child(input), out);
    }

    fn step(&mut self, now: Nanos, input: HopInput<EdgeOrder>, out: &mut Vec<UpwardEffect>) {
        let mut effects = Vec::new();
        // Whose it is: the source in the key of an order that was stamped anew before is the frontier's.
        let participant = match &input {
            HopInput::Child(MergeInput::Order(_, order)) => Some(order.item.participant),
            _ => None,
        };
        self.hop.step(now, input, &mut effects);
        for effect in effects {
            match effect {
                HopEffect::Event(MergeEffect::Restamped(_, key)) => {
                    self.restamped.entry(participant.unwrap_or(key.source.into())).or_insert(key.stamp);
                }
                HopEffect::Event(event) => out.extend(self.event(event).map(UpwardEffect::Event)),
                effect => out.push(UpwardEffect::Hop(effect)),
            }
        }
    }

    fn event(&self, event: MergeEffect<EdgeOrder>) -> Option<FairnessEvent> {
        let member = |slot: u32| self.slots.get(slot as usize).copied().flatten();
        match event {
            MergeEffect::Skipped(slot, waited) => Some(FairnessEvent::Skipped(member(slot)?, waited)),
            MergeEffect::Readmitted(slot) => Some(FairnessEvent::Readmitted(member(slot)?)),
            _ => None,
        }
    }

    /// An order of a child, if it has credit for it.
    pub(super) fn order(
        &mut self,
        now: Nanos,
        child: MemberId,
        order: Sequenced<EdgeOrder>,
        counters: &mut EdgeCounters,
        out: &mut Vec<UpwardEffect>,
    ) {
        let Some(slot) = self.slot(child).filter(|slot| self.granted[*slot] > 0) else {
            counters.orders_refused += 1;
            return;
        };
        self.granted[slot] -= 1;
        if self.is_ahead(now, child, order.key, out) {
            counters.orders_refused += 1;
            return;
        }
        self.child(now, MergeInput::Order(slot as u32, order), out);
    }

    /// An order of a child was refused; the child has spent its credit on it all the same.
    pub(super) fn refused(&mut self, child: MemberId) {
        let slot = self.slot(child);
        slot.into_iter().for_each(|slot| self.granted[slot] = self.granted[slot].saturating_sub(1));
    }

    /// A stamp that has not come yet: nobody is to wait for whoever promises so, nor believe it.
    fn is_ahead(&mut self, now: Nanos, child: MemberId, key: MergeKey, out: &mut Vec<UpwardEffect>) -> bool {
        let by = key.stamp.saturating_sub(now);
        if by > self.ahead {
            self.cheated(now, child, by, out);
        }
        by > self.ahead
    }

    /// A child lies: its stream is over.
    fn cheated(&mut self, now: Nanos, child: MemberId, by: u64, out: &mut Vec<UpwardEffect>) {
        self.expel(now, child, by, out);
        out.push(UpwardEffect::Cheat(child, by));
    }

    /// Nobody hears a child any more, nor waits for it, before it has a place in another tree.
    pub(super) fn expel(&mut self, now: Nanos, child: MemberId, by: u64, out: &mut Vec<UpwardEffect>) {
        self.expelled.insert(child, by);
        self.closed(now, child, out);
    }

    /// There is another tree.
    pub(super) fn configured(&mut self, seating: &Seating) {
        self.expelled.retain(|member, _| seating.spot_of(*member).is_none());
    }

    /// What else a child says; false if it makes no sense.
    pub(super) fn message(
        &mut self,
        now: Nanos,
        child: MemberId,
        message: LinkMessage,
        out: &mut Vec<UpwardEffect>,
    ) -> bool {
        let Some(slot) = self.slot(child) else { return false };
        match message {
            LinkMessage::Watermark(_, key) if self.is_ahead(now, child, key, out) => {}
            LinkMessage::Watermark(class, key) => {
                self.child(now, MergeInput::Watermark(slot as u32, class, key), out);
            }
            LinkMessage::Delay(delay) => self.delays(now, Some((slot as u32, delay)), out),
            _ => return false,
        }
        true
    }

    fn delays(&mut self, now: Nanos, report: Option<(u32, Nanos)>, out: &mut Vec<UpwardEffect>) {
        let mut effects = Vec::new();
        self.fold.step(now, report, &mut effects);
        let member = |slot: u32| self.slots.get(slot as usize).copied().flatten();
        out.extend(effects.into_iter().filter_map(|effect| match effect {
            FoldEffect::Report(delay) => Some(UpwardEffect::Delay(delay)),
            FoldEffect::Excluded(slot) => Some(UpwardEffect::Event(FairnessEvent::Excluded(member(slot)?))),
            FoldEffect::Included(slot) => Some(UpwardEffect::Event(FairnessEvent::Included(member(slot)?))),
        }));
    }

    /// The parent can take more orders.
    pub(super) fn ready(&mut self, now: Nanos, orders: u64, out: &mut Vec<UpwardEffect>) {
        self.step(now, HopInput::Ready(orders), out);
    }

    /// There is another parent.
    pub(super) fn parent(&mut self, now: Nanos, out: &mut Vec<UpwardEffect>) {
        self.step(now, HopInput::Parent, out);
    }

    /// The end of a batch of inputs: promises, delays, credit.
    pub(super) fn tick(&mut self, now: Nanos, out: &mut Vec<UpwardEffect>, effects: &mut Vec<EdgeEffect>) {
        self.child(now, MergeInput::Tick, out);
        self.delays(now, None, out);
        let restamped = std::mem::take(&mut self.restamped);
        let event = |(member, stamp)| UpwardEffect::Event(FairnessEvent::Restamped(member, stamp));
        out.extend(restamped.into_iter().map(event));
        (0..self.slots.len()).for_each(|slot| self.grant(now, slot, out, effects));
    }

    /// Lets a child send as many orders as there is room for, and tells the sequencer when there is none.
    fn grant(&mut self, now: Nanos, slot: usize, out: &mut Vec<UpwardEffect>, effects: &mut Vec<EdgeEffect>) {
        let Some(child) = self.slots[slot] else { return };
        let children = self.slots.iter().flatten().count().max(1) as u64;
        let queued = self.hop.queued() as u64 / children;
        let waiting = self.hop.waiting(slot as u32) as u64;
        // Orders that the sequencer holds back wait for others, which may wait for what their senders still have: the
        // two classes of two children can lock each other out. So they count only where they are very many.
        let held_back = if waiting < HELD_BACK * self.credit { 0 } else { waiting };
        let used = self.granted[slot] + held_back + queued;
        // Small grants are not worth a message.
        let more = self.credit.saturating_sub(used);
        if more > 0 && (more * 4 >= self.credit || self.granted[slot] == 0) {
            self.granted[slot] += more;
            effects.push(EdgeEffect::Message(LinkEnd::orders(child), LinkMessage::Credit(more)));
        }
        // Without a backlog of ours it is the sequencer that waits, and its clocks must run.
        let is_held = self.granted[slot] == 0 && self.hop.queued() > 0;
        if self.held[slot] != is_held && !self.mistake.is(EdgeMistake::HoldForgotten) {
            self.held[slot] = is_held;
            self.child(now, MergeInput::Hold(slot as u32, is_held), out);
        }
    }
}
