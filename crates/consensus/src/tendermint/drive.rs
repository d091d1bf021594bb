//! The engine of a validator where heights are decided by rounds: what it begins, proposes, fetches and answers.

use primitives::Digest;
use proofs::Index;

use super::instance::{Instance, Outcome};
use super::message::{Message, Messages, Round, RoundRecord, Step, Value};
use super::types::proposer;
use crate::engine::{Engine, LogEntry, Opening, Protocol};
use crate::frame::Frame;
use crate::live::Agreement;
use crate::proposal::{Evidence, Payload, Proposal};
use crate::refused::Refused;

impl Engine {
    /// The next height, if this validator can propose there.
    pub(crate) fn round_opening(&self) -> Option<Opening> {
        let height = self.decided.0 + 1;
        if height <= self.silent_to || !self.can_propose() {
            return None;
        }
        let live = self.live.get(&height);
        let asked = match live.map(|live| &live.height) {
            Some(Agreement::Rounds(instance)) if instance.is_begun() => Some(instance.is_asked()),
            _ => None,
        };
        let first = proposer(height, 0, self.committee.size) == self.me;
        let proposed = live.is_some_and(|live| live.proposal_of(self.me).is_some());
        let opens = !proposed && asked.unwrap_or(first);
        opens.then_some(Opening { height, urgent: asked == Some(true), nudged: self.must_end(height) })
    }

    /// Whether the ledger has progressed far enough to propose the next height, where one validator proposes at a
    /// time. A validator that waits for its own ledger does not ask others for heights: they would run ahead of it,
    /// and its turn would never come.
    pub(crate) fn can_propose(&self) -> bool {
        let may = self.decided.0 < (self.applied + self.rules.window).min(*self.chain.heights.end());
        self.rules.protocol == Protocol::Dbft || may
    }

    /// The proposer of the first round of a height.
    pub fn first_proposer(&self, height: u64) -> Index {
        proposer(height, 0, self.committee.size)
    }

    /// The round of the next height; `None` if it has not begun or heights have no rounds.
    pub fn round(&self) -> Option<Round> {
        match &self.live.get(&(self.decided.0 + 1))?.height {
            Agreement::Rounds(instance) if instance.is_begun() => Some(instance.round()),
            _ => None,
        }
    }

    /// Begins the next height if some validator has something to propose, or at a tick (`nudged`) if the height is
    /// needed anyway. Then the height waits for its proposer, and moves to another one if it is silent.
    pub(crate) fn begin_next(&mut self, nudged: bool) {
        let height = self.decided.0 + 1;
        if height <= self.silent_to || self.rests || !self.can_propose() {
            return;
        }
        let others = self.peers[..self.committee.size].iter().any(|peer| peer.is_known && peer.status.waits);
        if self.waits || others || (nudged && self.must_end(height)) {
            self.advance_rounds(height, Instance::begin);
        }
    }

    /// Gives the instance of a height an input, and performs its effects.
    pub(crate) fn advance_rounds(&mut self, height: u64, input: impl FnOnce(&mut Instance)) {
        if let Agreement::Rounds(instance) = &mut self.open(height).height {
            input(instance);
        }
        self.settle_rounds(height);
    }

    /// Performs the effects of the instance of a height until there are none.
    fn settle_rounds(&mut self, height: u64) {
        let me = self.me;
        let live = self.live.get_mut(&height).expect("it is open");
        let mine = live.proposal_of(me).map(|(proposal, _)| Value { slot: me, digest: proposal.digest });
        let Agreement::Rounds(instance) = &mut live.height else { return };
        if let Some(value) = mine.filter(|_| instance.is_asked()) {
            instance.propose(value);
        }
        let Outcome { records, sends, timers, evidence } = instance.drain_outcome();
        let decided = instance.decision().is_some();
        self.turn.entries.extend(records.into_iter().map(|record| (height, LogEntry::Round(record))));
        self.turn.timers.extend(timers.into_iter().map(|timer| (height, timer)));
        self.turn.evidence.extend(evidence);
        if !sends.is_empty() {
            self.rounds_outbox.entry(height).or_default().extend(sends);
        }
        if decided && height == self.decided.0 + 1 {
            self.output();
        }
    }

    /// Sends the messages of all instances since the last turn.
    pub(crate) fn send_rounds(&mut self) {
        for (height, messages) in std::mem::take(&mut self.rounds_outbox) {
            let frame = Messages { epoch: self.chain.epoch, height, messages };
            self.send(self.takers(height), Frame::Rounds(frame));
        }
    }

    /// Proposes this validator's payload for the next height.
    pub(crate) fn propose_payload(&mut self, height: u64, digest: Digest) {
        let value = Value { slot: self.me, digest };
        self.advance_rounds(height, |instance| {
            instance.begin();
            instance.propose(value);
        });
    }

    /// Handles messages of another validator.
    pub(crate) fn on_rounds(&mut self, from: Index, frame: &Messages) -> Result<(), Refused> {
        if frame.epoch != self.chain.epoch {
            // Late messages of the previous epoch are no offence.
            return if frame.epoch < self.chain.epoch { Ok(()) } else { Err(Refused::Epoch) };
        }
        let height = frame.height;
        self.note_late(from, height);
        if self.live_at(height)?.is_none() {
            return Ok(());
        }
        let mut refused = Ok(());
        for message in &frame.messages {
            let taken = self.on_round_message(from, height, message);
            refused = refused.and(taken);
        }
        refused
    }

    fn on_round_message(&mut self, from: Index, height: u64, message: &Message) -> Result<(), Refused> {
        let Some(live) = self.live.get_mut(&height) else { return Ok(()) };
        let Agreement::Rounds(instance) = &mut live.height else { return Err(Refused::Protocol) };
        if let Some(decision) = instance.decision_for(message) {
            let frame = Messages { epoch: self.chain.epoch, height, messages: vec![decision] };
            self.send([from].into_iter().collect(), Frame::Rounds(frame));
            return Ok(());
        }
        instance.on_message(message)?;
        let lacks = instance.lacks(message);
        self.settle_rounds(height);
        if let Some(value) = lacks {
            self.want_payload(from, height, value);
        }
        Ok(())
    }

    /// Asks for a missing payload that is proposed or decided. Its maker sends it unasked; others are asked for it.
    fn want_payload(&mut self, from: Index, height: u64, value: Value) {
        let Some(live) = self.live.get_mut(&height) else { return };
        let Agreement::Rounds(instance) = &live.height else { return };
        let mut holders = instance.holders(&value);
        holders.insert(from);
        let wanted = live.wanted.entry((value.slot, value.digest)).or_default();
        wanted.holders = wanted.holders.union(&holders);
        if from == value.slot {
            wanted.asked.insert(from);
        }
        self.want(height, value.slot, value.digest, &holders);
    }

    /// Handles a payload, from its maker or from a validator that was asked.
    pub(crate) fn on_payload(&mut self, proposal: Proposal, payload: Payload) -> Result<(), Refused> {
        let Proposal { height, slot, digest, .. } = proposal;
        if usize::from(slot) >= self.committee.size {
            return Err(Refused::Slot);
        }
        let Some(live) = self.live_at(height)? else { return Ok(()) };
        if live.held(slot, &digest).is_some() || !live.has_room(slot, &digest) {
            return Ok(());
        }
        self.check_payload(&proposal, &payload)?;
        let time_ms = self.contents_of(&payload).time_ms;
        self.turn.entries.push((height, LogEntry::Held(proposal, payload.clone())));
        if let Some(first) = self.open(height).hold(proposal, payload) {
            self.turn.evidence.push(Evidence::Proposals(first, proposal));
        }
        self.hold_payload(height, Value { slot, digest }, time_ms);
        Ok(())
    }

    fn hold_payload(&mut self, height: u64, value: Value, time_ms: Option<u64>) {
        let clock_ms = self.clock_ms;
        self.advance_rounds(height, |instance| {
            instance.on_held(value, time_ms);
            clock_ms.into_iter().for_each(|clock_ms| instance.judge(clock_ms));
        });
    }

    /// Compares payloads that arrived before the time was known with the clock.
    pub(crate) fn judge_payloads(&mut self, clock_ms: u64) {
        let unjudged = |live: &crate::live::Live| match &live.height {
            Agreement::Rounds(instance) => instance.is_to_judge(),
            Agreement::Slots(_) => false,
        };
        let heights: Vec<u64> =
            self.live.iter().filter(|(_, live)| unjudged(live)).map(|(height, _)| *height).collect();
        for height in heights {
            self.advance_rounds(height, |instance| instance.judge(clock_ms));
        }
    }

    /// Handles a timer that a turn has set.
    pub(crate) fn on_round_timer(&mut self, height: u64, step: Step, round: Round) {
        if self.live.contains_key(&height) {
            self.advance_rounds(height, |instance| {
                instance.on_timer(step, round);
            });
        }
    }

    /// Restores the log's records about a height. Records that are not in the log yet are written.
    pub(crate) fn restore_rounds(&mut self, height: u64, held: Vec<(Proposal, Payload)>, records: Vec<RoundRecord>) {
        let of = |(Proposal { slot, digest, .. }, payload): &(Proposal, Payload)| {
            (Value { slot: *slot, digest: *digest }, self.contents_of(payload).time_ms)
        };
        let values: Vec<(Value, Option<u64>)> = held.iter().map(of).collect();
        let (me, live) = (self.me, self.open(height));
        for (proposal, payload) in held {
            live.hold(proposal, payload);
        }
        self.advance_rounds(height, |instance| {
            instance.restore(records);
            for (value, time_ms) in values {
                instance.on_held(value, time_ms.filter(|_| value.slot != me));
            }
        });
    }

    /// Everything sent in the rounds of a height.
    pub(crate) fn sent_in_rounds(&self, height: u64) -> Option<Frame> {
        let Agreement::Rounds(instance) = &self.live.get(&height)?.height else { return None };
        let messages = instance.sent().to_vec();
        let epoch = self.chain.epoch;
        (!messages.is_empty()).then_some(Frame::Rounds(Messages { epoch, height, messages }))
    }
}
