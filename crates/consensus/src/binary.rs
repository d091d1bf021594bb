//! Binary consensus on whether a slot's proposal is in (Crain, Gramoli, Larrea and Raynal 2018; the part without timers
//! and coordinator was model-checked by Bertrand et al. 2022).
//!
//! Safety properties, asserted in tests:
//!
//! - A value enters a correct validator's bin values only if a correct validator had it as its estimate of that round.
//! - In one round no two correct validators can end with {0} and {1}: two sets of n−f auxiliary votes share a correct
//!   sender, who sends one.
//! - If a correct validator decides v in round r, every correct one leaves r with estimate v: either it ends with
//!   {v}, or with both, and then takes the parity of r, which is v. From then on no other value can enter any
//!   validator's bin values.
//!
//! Timers and the coordinator only help rounds to end alike: with every timer at zero these properties still hold.

use std::collections::BTreeMap;

use proofs::{Committee, Index};

use crate::members::Members;
use crate::message::{HeightEffect, Mask, Record, Round, Timer, Vote};

#[cfg(test)]
mod exhaustive;

/// How far ahead of its own round a validator accepts votes. A validator that is farther behind needs a certificate.
pub const ROUNDS_AHEAD: Round = 64;

/// Values in order of arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Values {
    first: Option<bool>,
    both: bool,
}

impl Values {
    fn contains(&self, value: bool) -> bool {
        self.both || self.first == Some(value)
    }

    fn insert(&mut self, value: bool) {
        match self.first {
            None => self.first = Some(value),
            Some(first) => self.both |= first != value,
        }
    }

    fn mask(&self) -> Option<Mask> {
        self.first.map(|first| if self.both { Mask::Both } else { Mask::of(first) })
    }
}

/// A timer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Alarm {
    #[default]
    Unset,
    Armed,
    Fired,
}

/// State of one round.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct RoundState {
    /// By value: the validators that estimate it.
    estimates: [Members; 2],
    /// By value: whether this validator has sent the estimate.
    sent: [bool; 2],
    values: Values,
    /// By mask: the validators whose first auxiliary vote it is.
    auxiliaries: [Members; 3],
    heard: Members,
    auxiliary: Option<Mask>,
    suggestion: Option<bool>,
    suggested: bool,
    coordinator: Alarm,
    others: Alarm,
    /// Whether the estimate for the next round is fixed.
    ended: bool,
}

impl RoundState {
    fn auxiliaries_of(&self, mask: Mask) -> usize {
        self.auxiliaries[mask as usize].len()
    }

    /// Whether these values can end the round, given `enough` auxiliary votes.
    fn may_end_with(&self, mask: Mask, enough: usize) -> bool {
        let Some(values) = self.values.mask() else { return false };
        match mask.single() {
            Some(_) => mask.is_within(values) && self.auxiliaries_of(mask) >= enough,
            None => {
                let votes: usize = Mask::ALL.iter().map(|mask| self.auxiliaries_of(*mask)).sum();
                let alike = [Mask::Zero, Mask::One].iter().any(|mask| self.auxiliaries_of(*mask) == votes);
                values == Mask::Both && votes >= enough && !alike
            }
        }
    }
}

/// One slot's consensus at one validator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Binary {
    slot: Index,
    me: Index,
    /// Added to the round to find its coordinator.
    rotation: usize,
    round: Round,
    estimate: bool,
    rounds: BTreeMap<Round, RoundState>,
    decided: Option<(bool, Round)>,
    halted: bool,
}

impl Binary {
    /// The consensus of a slot at validator `me`; `rotation` spreads coordinators over slots and heights.
    pub fn new(slot: Index, me: Index, rotation: usize) -> Binary {
        Binary { slot, me, rotation, round: 0, estimate: false, rounds: BTreeMap::new(), decided: None, halted: false }
    }

    /// The decided value and its round.
    pub fn decided(&self) -> Option<(bool, Round)> {
        self.decided
    }

    /// The current estimate and its round; `None` before there is an input.
    pub fn estimate(&self) -> Option<(bool, Round)> {
        (self.round > 0).then_some((self.estimate, self.round))
    }

    /// Whether there is an input.
    pub fn is_started(&self) -> bool {
        self.round > 0
    }

    /// Whether it will send nothing more.
    pub fn is_halted(&self) -> bool {
        self.halted
    }

    fn coordinator(&self, round: Round, committee: &Committee) -> Index {
        ((round as usize - 1 + self.rotation) % committee.size) as Index
    }

    fn state(&mut self, round: Round) -> &mut RoundState {
        self.rounds.entry(round).or_default()
    }

    /// The input; only the first counts.
    pub(crate) fn propose(&mut self, value: bool, committee: &Committee, effects: &mut Vec<HeightEffect>) {
        if !self.is_started() {
            self.enter(1, value, effects);
            self.advance(committee, effects);
        }
    }

    fn enter(&mut self, round: Round, estimate: bool, effects: &mut Vec<HeightEffect>) {
        (self.round, self.estimate) = (round, estimate);
        effects.push(HeightEffect::Record(Record::Entered { slot: self.slot, round, estimate }));
        self.send_estimate(round, estimate, effects);
    }

    fn send_estimate(&mut self, round: Round, value: bool, effects: &mut Vec<HeightEffect>) {
        let slot = self.slot;
        let sent = &mut self.state(round).sent[usize::from(value)];
        if !std::mem::replace(sent, true) {
            effects.push(HeightEffect::Send(Vote::Estimate { slot, round, value }));
        }
    }

    /// Relays an estimate that a correct validator has. The log retains it, like the own one: another validator may
    /// have counted it for its bin values, and if the log of the validator that had it first is lost, nobody else
    /// sends it.
    fn relay_estimate(&mut self, round: Round, value: bool, effects: &mut Vec<HeightEffect>) {
        if !self.state(round).sent[usize::from(value)] {
            let vote = Vote::Estimate { slot: self.slot, round, value };
            effects.push(HeightEffect::Record(Record::Sent(vote)));
            self.send_estimate(round, value, effects);
        }
    }

    /// Whether votes of this round are accepted.
    fn takes(&self, round: Round) -> bool {
        !self.halted && round >= 1 && round <= self.round.saturating_add(ROUNDS_AHEAD)
    }

    /// Counts an estimate of any round, even before there is an input.
    pub(crate) fn on_estimate(
        &mut self,
        from: Index,
        round: Round,
        value: bool,
        committee: &Committee,
        effects: &mut Vec<HeightEffect>,
    ) {
        if !self.takes(round) {
            return;
        }
        self.state(round).estimates[usize::from(value)].insert(from);
        let votes = self.state(round).estimates[usize::from(value)].len();
        if votes >= committee.one_correct {
            self.relay_estimate(round, value, effects);
        }
        if votes >= committee.deliver {
            self.state(round).values.insert(value);
        }
        self.advance(committee, effects);
    }

    /// Makes 1 a bin value of the first round, and the input if there is none: other votes are equivalent to the 2f+1
    /// estimates.
    pub(crate) fn accept(&mut self, committee: &Committee, effects: &mut Vec<HeightEffect>) {
        let state = self.state(1);
        state.sent[usize::from(true)] = true;
        state.values.insert(true);
        self.propose(true, committee, effects);
        self.advance(committee, effects);
    }

    /// Records the coordinator's suggestion.
    pub(crate) fn on_suggestion(
        &mut self,
        from: Index,
        round: Round,
        value: bool,
        committee: &Committee,
        effects: &mut Vec<HeightEffect>,
    ) {
        if self.takes(round) && from == self.coordinator(round, committee) {
            self.state(round).suggestion.get_or_insert(value);
            self.advance(committee, effects);
        }
    }

    /// Counts the sender's first auxiliary vote of a round, even if its values are not among the bin values yet.
    pub(crate) fn on_auxiliary(
        &mut self,
        from: Index,
        round: Round,
        values: Mask,
        committee: &Committee,
        effects: &mut Vec<HeightEffect>,
    ) {
        if self.takes(round) {
            let state = self.state(round);
            if state.heard.insert(from) {
                state.auxiliaries[values as usize].insert(from);
            }
            self.advance(committee, effects);
        }
    }

    /// A timer of a round fired.
    pub(crate) fn on_timer(&mut self, timer: Timer, committee: &Committee, effects: &mut Vec<HeightEffect>) {
        match timer {
            Timer::Coordinator { round, .. } => self.state(round).coordinator = Alarm::Fired,
            Timer::Auxiliaries { round, .. } => self.state(round).others = Alarm::Fired,
            Timer::Grace | Timer::Missing | Timer::Votes { .. } | Timer::Round { .. } => return,
        }
        self.advance(committee, effects);
    }

    /// Restores the votes in the log after a restart. They are sent again, and the current round begins anew.
    pub(crate) fn restore(&mut self, record: &Record) {
        match *record {
            Record::Entered { round, estimate, .. } if round > self.round => {
                (self.round, self.estimate) = (round, estimate);
                self.state(round).sent[usize::from(estimate)] = true;
            }
            Record::Sent(Vote::Estimate { round, value, .. }) => self.state(round).sent[usize::from(value)] = true,
            Record::Sent(Vote::Auxiliary { round, values, .. }) => self.state(round).auxiliary = Some(values),
            Record::Sent(Vote::Coordinate { round, .. }) => self.state(round).suggested = true,
            _ => {}
        }
    }

    /// Advances as far as the votes allow.
    pub(crate) fn advance(&mut self, committee: &Committee, effects: &mut Vec<HeightEffect>) {
        while self.is_started() && !self.halted && self.advance_round(committee, effects) {}
    }

    /// Processes one round; returns true if the next was entered.
    fn advance_round(&mut self, committee: &Committee, effects: &mut Vec<HeightEffect>) -> bool {
        let Some(seen) = self.state(self.round).values.mask() else { return false };
        self.coordinate(committee, effects);
        if !self.send_auxiliary(seen, effects) {
            return false;
        }
        if !self.state(self.round).ended {
            let Some(values) = self.end_with(committee, effects) else { return false };
            self.end_round(values);
        }
        self.leave(effects)
    }

    /// Sets the timer for the coordinator, and suggests a value if this validator is the coordinator.
    fn coordinate(&mut self, committee: &Committee, effects: &mut Vec<HeightEffect>) {
        let (slot, round) = (self.slot, self.round);
        let coordinates = self.coordinator(round, committee) == self.me;
        let state = self.state(round);
        arm(&mut state.coordinator, Timer::Coordinator { slot, round }, effects);
        if coordinates && !state.suggested {
            state.suggested = true;
            let value = state.values.first.expect("there are bin values");
            let vote = Vote::Coordinate { slot, round, value };
            effects.extend([HeightEffect::Record(Record::Sent(vote)), HeightEffect::Send(vote)]);
        }
    }

    /// Sends the auxiliary vote, once: the coordinator's value if it is among those seen, or all values after the
    /// coordinator's timer.
    fn send_auxiliary(&mut self, seen: Mask, effects: &mut Vec<HeightEffect>) -> bool {
        let (slot, round) = (self.slot, self.round);
        let state = self.state(round);
        if state.auxiliary.is_some() {
            return true;
        }
        let values = match state.suggestion {
            Some(value) if state.values.contains(value) => Mask::of(value),
            _ if state.coordinator == Alarm::Fired => seen,
            _ => return false,
        };
        state.auxiliary = Some(values);
        let vote = Vote::Auxiliary { slot, round, values };
        effects.extend([HeightEffect::Record(Record::Sent(vote)), HeightEffect::Send(vote)]);
        true
    }

    /// The values that end the round. A validator's own vote is used at once if it is a single value. Any other
    /// result waits for the second timer, so that all correct votes have arrived once the network is timely.
    fn end_with(&mut self, committee: &Committee, effects: &mut Vec<HeightEffect>) -> Option<Mask> {
        let (slot, round, enough) = (self.slot, self.round, committee.round);
        let state = self.state(round);
        let own = state.auxiliary.expect("it was sent");
        let may = |mask: Mask| state.may_end_with(mask, enough);
        if own != Mask::Both && may(own) {
            return Some(own);
        }
        let found = [own, Mask::Zero, Mask::One, Mask::Both].into_iter().find(|mask| may(*mask))?;
        arm(&mut state.others, Timer::Auxiliaries { slot, round }, effects);
        (state.others == Alarm::Fired).then_some(found)
    }

    /// Fixes the estimate for the next round; decides if the value has the parity of this round.
    fn end_round(&mut self, values: Mask) {
        let parity = self.round % 2 == 1;
        let round = self.round;
        self.state(round).ended = true;
        self.estimate = values.single().unwrap_or(parity);
        if values.single() == Some(parity) && self.decided.is_none() {
            self.decided = Some((parity, round));
        }
    }

    /// Enters the next round, unless nobody can need it. After a decision the validator waits until another is seen to
    /// hold the other value, and two rounds after a decision everybody has decided.
    fn leave(&mut self, effects: &mut Vec<HeightEffect>) -> bool {
        if let Some((_, decided)) = self.decided {
            let alone = self.state(self.round).values.mask() != Some(Mask::Both);
            if decided == self.round && alone {
                return false;
            }
            if self.round >= decided + 2 {
                self.halted = true;
                return false;
            }
        }
        self.enter(self.round + 1, self.estimate, effects);
        true
    }

    /// Stops: there is a certificate of the height.
    pub(crate) fn halt(&mut self) {
        self.halted = true;
    }
}

/// Sets a timer once; a timer of length zero counts as fired.
fn arm(alarm: &mut Alarm, timer: Timer, effects: &mut Vec<HeightEffect>) {
    if *alarm == Alarm::Unset {
        *alarm = if timer.units() == 0 { Alarm::Fired } else { Alarm::Armed };
        if *alarm == Alarm::Armed {
            effects.push(HeightEffect::Arm(timer));
        }
    }
}
