//! One height: all slots together, and the superblock that they make (Smart Red Belly, appendix A).

use std::collections::VecDeque;

use primitives::Digest;

use crate::binary::Binary;
use crate::broadcast::{Broadcast, Kind};
use crate::committee::{Committee, Index, Members};
use crate::message::{HeightEffect, Record, Round, Timer, Vote};

/// What all validators of an epoch do alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeightSettings {
    /// Z: how many slots must be decided 1 before others are given up; n−f unless there is a reason.
    pub enough: usize,
    /// Whether the ready votes for one digest are the estimates 1 of the first round, which saves a message delay.
    pub fast: bool,
}

impl HeightSettings {
    /// Z = n−f, and five message delays.
    pub fn new(committee: &Committee) -> HeightSettings {
        HeightSettings { enough: committee.round, fast: false }
    }
}

/// What a height decided.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decision {
    /// The sub-blocks that are in: slot and digest of the proposal, by slot.
    pub sub_blocks: Vec<(Index, Digest)>,
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
    /// By slot; `None` for the benched.
    slots: Vec<Option<Slot>>,
    grace: Grace,
    /// Whether 0 was proposed wherever nothing had been.
    given_up: bool,
    decision: Option<Decision>,
    /// The own votes that are still to be counted here.
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

    /// A valid proposal of a slot is here, signed by its proposer: sent by it (or by oneself), or fetched from another.
    pub fn on_proposal(&mut self, slot: Index, digest: Digest, from_proposer: bool, effects: &mut Vec<HeightEffect>) {
        self.turn(effects, |height, effects| {
            if let Some(Slot { broadcast, .. }) = height.slot(slot) {
                broadcast.hold(slot, digest, from_proposer, effects);
                height.advance_broadcast(slot, effects);
            }
        });
    }

    /// A vote of another validator.
    pub fn on_vote(&mut self, from: Index, vote: Vote, effects: &mut Vec<HeightEffect>) {
        self.turn(effects, |height, effects| height.count(from, vote, effects));
    }

    /// A timer fired.
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
                Timer::Missing | Timer::Round { .. } => {}
            }
        });
    }

    /// Takes back what the log says of the time before a restart, and sends it all again.
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

    /// Stops all voting: a certificate of this height is there.
    pub fn halt(&mut self) {
        self.slots.iter_mut().flatten().for_each(|slot| slot.binary.halt());
    }

    /// What was decided.
    pub fn decision(&self) -> Option<&Decision> {
        self.decision.as_ref()
    }

    /// In which round each slot was decided that was.
    pub fn rounds(&self) -> Vec<(Index, Round)> {
        let round = |slot: &Option<Slot>| Some(slot.as_ref()?.binary.decided()?.1);
        self.slots.iter().enumerate().filter_map(|(index, slot)| Some((index as Index, round(slot)?))).collect()
    }

    /// The consensus of a slot; `None` for the benched.
    pub fn binary(&self, slot: Index) -> Option<&Binary> {
        self.slots.get(usize::from(slot))?.as_ref().map(|slot| &slot.binary)
    }

    /// The broadcast of a slot; `None` for the benched.
    pub fn broadcast(&self, slot: Index) -> Option<&Broadcast> {
        self.slots.get(usize::from(slot))?.as_ref().map(|slot| &slot.broadcast)
    }

    fn slot(&mut self, slot: Index) -> Option<&mut Slot> {
        self.slots.get_mut(usize::from(slot))?.as_mut()
    }

    /// Runs `input`, then counts the own votes that it led to, until there are none; then sees what is decided.
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
            // On the fast path the ready votes say this, and no correct validator does.
            Vote::Estimate { round: 1, value: true, .. } if fast => {}
            Vote::Estimate { round, value, .. } => binary.on_estimate(from, round, value, &committee, effects),
            Vote::Coordinate { round, value, .. } => binary.on_suggestion(from, round, value, &committee, effects),
            Vote::Auxiliary { round, values, .. } => binary.on_auxiliary(from, round, values, &committee, effects),
        }
    }

    /// Goes on with a broadcast; a delivered proposal is proposed to be in. On the fast path an agreed one is: its
    /// ready votes are relayed at f+1 and enough at 2f+1, exactly as estimates are, and the proposal will be delivered.
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

    /// Gives up what is late once enough is in; ends the height when all is decided and here. True if something
    /// changed.
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

    /// As many slots as must be in: at most those that are sure to be delivered though f of the proposers with a slot
    /// are silent. Who is benched need not be one of these f.
    fn enough(&self) -> usize {
        let sure = self.slots.iter().flatten().count().saturating_sub(self.committee.faulty);
        self.settings.enough.min(sure.max(1))
    }

    /// Starts the grace period, or proposes 0 wherever nothing was proposed when it is over.
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
