//! One height: all slots together, and the superblock that they produce (Smart Red Belly, appendix A).

use std::collections::VecDeque;

use primitives::Digest;
use proofs::{Committee, Index};

use crate::binary::Binary;
use crate::broadcast::{Broadcast, Kind};
use crate::members::Members;
use crate::message::{Decision, HeightEffect, Record, Round, Timer, Vote};

#[cfg(test)]
mod exhaustive;

/// The settings common to all validators of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeightSettings {
    /// Z: how many slots must be decided 1 before others are given up; n−f unless there is a reason.
    pub enough: usize,
    /// Whether the ready votes for one digest count as the estimates 1 of the first round, which saves a message
    /// delay.
    pub fast: bool,
}

impl HeightSettings {
    /// Z = n−f, and five message delays.
    pub fn new(committee: &Committee) -> HeightSettings {
        HeightSettings { enough: committee.round, fast: false }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Slot {
    broadcast: Broadcast,
    binary: Binary,
}

/// One height at one validator.
#[derive(Clone, Debug)]
pub struct Height {
    committee: Committee,
    settings: HeightSettings,
    me: Index,
    /// By slot; `None` for benched validators.
    slots: Vec<Option<Slot>>,
    grace: Grace,
    /// Whether 0 was proposed for all slots without a proposal.
    given_up: bool,
    decision: Option<Decision>,
    /// This validator's own votes that are still to be counted here.
    own: VecDeque<Vote>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grace {
    Unset,
    Running,
    Over,
}

impl Height {
    /// Height `number` at validator `me`, where `benched` have no slot.
    pub fn new(committee: Committee, settings: HeightSettings, number: u64, me: Index, benched: &Members) -> Height {
        let slot = |index: Index| {
            let rotation = ((u64::from(index) + number) % committee.size as u64) as usize;
            let binary = Binary::new(index, me, rotation);
            (!benched.contains(index)).then(|| Slot { broadcast: Broadcast::default(), binary })
        };
        Height {
            slots: committee.members().map(slot).collect(),
            committee,
            settings,
            me,
            grace: Grace::Unset,
            given_up: false,
            decision: None,
            own: VecDeque::new(),
        }
    }

    /// Takes a valid proposal of a slot, signed by its proposer: sent by the proposer (or made here), or fetched from
    /// another validator.
    pub fn on_proposal(&mut self, slot: Index, digest: Digest, from_proposer: bool, effects: &mut Vec<HeightEffect>) {
        self.turn(effects, |height, effects| {
            if let Some(Slot { broadcast, .. }) = height.slot(slot) {
                broadcast.hold(slot, digest, from_proposer, effects);
                height.advance_broadcast(slot, effects);
            }
        });
    }

    /// Counts a vote of another validator.
    pub fn on_vote(&mut self, from: Index, vote: Vote, effects: &mut Vec<HeightEffect>) {
        self.turn(effects, |height, effects| height.count(from, vote, effects));
    }

    /// Handles a timer.
    pub fn on_timer(&mut self, timer: Timer, effects: &mut Vec<HeightEffect>) {
        self.turn(effects, |height, effects| {
            let committee = height.committee;
            match timer {
                Timer::Grace => height.grace = Grace::Over,
                Timer::Coordinator { slot, .. } | Timer::Auxiliaries { slot, .. } => {
                    if let Some(slot) = height.slot(slot) {
                        slot.binary.on_timer(timer, &committee, effects);
                    }
                }
                Timer::Missing | Timer::Votes { .. } | Timer::Round { .. } => {}
            }
        });
    }

    /// Restores the log's records after a restart, and sends them again.
    pub fn restore(&mut self, records: &[Record], effects: &mut Vec<HeightEffect>) {
        self.turn(effects, |height, effects| {
            for record in records {
                match *record {
                    Record::Sent(vote) => {
                        height.restore_vote(vote, record);
                        effects.push(HeightEffect::Send(vote));
                    }
                    Record::Entered { slot, round, estimate } => {
                        if let Some(slot) = height.slot(slot) {
                            slot.binary.restore(record);
                        }
                        effects.push(HeightEffect::Send(Vote::Estimate { slot, round, value: estimate }));
                    }
                }
            }
        });
    }

    fn restore_vote(&mut self, vote: Vote, record: &Record) {
        let Some(Slot { broadcast, binary }) = self.slot(vote.slot()) else { return };
        match vote {
            Vote::Echo { digest, .. } => broadcast.restore(Kind::Echo, digest),
            Vote::Ready { digest, .. } => broadcast.restore(Kind::Ready, digest),
            _ => binary.restore(record),
        }
    }

    /// Number of slots: of validators that are not benched.
    pub(crate) fn slots(&self) -> usize {
        self.slots.iter().flatten().count()
    }

    /// Stops all voting: there is a certificate of this height.
    pub fn halt(&mut self) {
        self.slots.iter_mut().flatten().for_each(|slot| slot.binary.halt());
    }

    /// The decision, once there is one.
    pub fn decision(&self) -> Option<&Decision> {
        self.decision.as_ref()
    }

    /// The round of each decided slot.
    pub fn rounds(&self) -> Vec<(Index, Round)> {
        let round = |slot: &Option<Slot>| Some(slot.as_ref()?.binary.decided()?.1);
        self.slots.iter().enumerate().filter_map(|(index, slot)| Some((index as Index, round(slot)?))).collect()
    }

    /// The consensus of a slot; `None` for benched validators.
    pub fn binary(&self, slot: Index) -> Option<&Binary> {
        self.slots.get(usize::from(slot))?.as_ref().map(|slot| &slot.binary)
    }

    /// The broadcast of a slot; `None` for benched validators.
    pub fn broadcast(&self, slot: Index) -> Option<&Broadcast> {
        self.slots.get(usize::from(slot))?.as_ref().map(|slot| &slot.broadcast)
    }

    fn slot(&mut self, slot: Index) -> Option<&mut Slot> {
        self.slots.get_mut(usize::from(slot))?.as_mut()
    }

    /// Runs `input`, counts the own votes that it causes until there are none, and then checks for a decision.
    fn turn(&mut self, effects: &mut Vec<HeightEffect>, input: impl FnOnce(&mut Height, &mut Vec<HeightEffect>)) {
        let mut seen = effects.len();
        input(self, effects);
        loop {
            let sent = effects[seen..].iter().filter_map(|effect| match effect {
                HeightEffect::Send(vote) => Some(*vote),
                _ => None,
            });
            self.own.extend(sent);
            seen = effects.len();
            match self.own.pop_front() {
                Some(vote) => self.count(self.me, vote, effects),
                None if self.conclude(effects) => {}
                None => return,
            }
        }
    }

    fn count(&mut self, from: Index, vote: Vote, effects: &mut Vec<HeightEffect>) {
        let (committee, fast) = (self.committee, self.settings.fast);
        if usize::from(from) >= committee.size {
            return;
        }
        let Some(Slot { broadcast, binary }) = self.slot(vote.slot()) else { return };
        match vote {
            Vote::Echo { slot, digest } => {
                if broadcast.count(Kind::Echo, from, digest) {
                    self.advance_broadcast(slot, effects);
                }
            }
            Vote::Ready { slot, digest } => {
                if broadcast.count(Kind::Ready, from, digest) {
                    self.advance_broadcast(slot, effects);
                }
            }
            // On the fast path ready votes replace this vote, and no correct validator sends it.
            Vote::Estimate { round: 1, value: true, .. } if fast => {}
            Vote::Estimate { round, value, .. } => binary.on_estimate(from, round, value, &committee, effects),
            Vote::Coordinate { round, value, .. } => binary.on_suggestion(from, round, value, &committee, effects),
            Vote::Auxiliary { round, values, .. } => binary.on_auxiliary(from, round, values, &committee, effects),
        }
    }

    /// Advances a broadcast; when a proposal is delivered, proposes 1 for its slot. On the fast path it does so when
    /// the proposal is agreed on: its ready votes are relayed at f+1 and sufficient at 2f+1, exactly like estimates,
    /// and the proposal will be delivered.
    fn advance_broadcast(&mut self, slot: Index, effects: &mut Vec<HeightEffect>) {
        let (committee, fast) = (self.committee, self.settings.fast);
        let Some(Slot { broadcast, binary }) = self.slot(slot) else { return };
        broadcast.advance(slot, &committee, effects);
        if fast && broadcast.is_agreed(&committee) {
            binary.accept(&committee, effects);
        } else if broadcast.delivered().is_some() {
            binary.propose(true, &committee, effects);
        }
    }

    /// Gives up late slots once enough are in; ends the height when all are decided and all proposals are held.
    /// Returns true if something changed.
    fn conclude(&mut self, effects: &mut Vec<HeightEffect>) -> bool {
        if self.decision.is_some() {
            return false;
        }
        let live = self.slots.iter().flatten();
        let (mut ones, mut undecided) = (0, 0);
        for slot in live {
            match slot.binary.decided() {
                Some((true, _)) => ones += 1,
                Some((false, _)) => {}
                None => undecided += 1,
            }
        }
        if undecided > 0 {
            return ones >= self.enough() && self.give_up(effects);
        }
        let sub_blocks: Option<Vec<(Index, Digest)>> = self
            .committee
            .members()
            .zip(&self.slots)
            .filter_map(|(index, slot)| Some((index, slot.as_ref()?)))
            .filter(|(_, slot)| slot.binary.decided().is_some_and(|(value, _)| value))
            .map(|(index, slot)| Some((index, slot.broadcast.delivered()?)))
            .collect();
        let Some(sub_blocks) = sub_blocks else { return false };
        let decision = Decision { sub_blocks };
        self.decision = Some(decision.clone());
        effects.push(HeightEffect::Decide(decision));
        true
    }

    /// The number of slots that must be in: at most those that are sure to be delivered if f of the proposers with a
    /// slot are silent. Benched validators need not be among these f.
    fn enough(&self) -> usize {
        let sure = self.slots().saturating_sub(self.committee.faulty);
        self.settings.enough.min(sure.max(1))
    }

    /// Starts the grace period; when it is over, proposes 0 for all slots without a proposal.
    fn give_up(&mut self, effects: &mut Vec<HeightEffect>) -> bool {
        match self.grace {
            Grace::Unset => {
                self.grace = Grace::Running;
                effects.push(HeightEffect::Arm(Timer::Grace));
                false
            }
            Grace::Running => false,
            Grace::Over if self.given_up => false,
            Grace::Over => {
                self.given_up = true;
                let committee = self.committee;
                for slot in self.slots.iter_mut().flatten() {
                    slot.binary.propose(false, &committee, effects);
                }
                true
            }
        }
    }
}
