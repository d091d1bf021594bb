//! Explores every way in which three correct validators and a faulty one can pass one round, and by induction all
//! rounds.
//!
//! The states are those of the code itself. The messages of a correct validator follow from its state. The faulty
//! one, which is also the round's coordinator, may send anything to anybody at any time, and every message and every
//! timer may take any time. An odd and an even round represent all rounds: the timers of round 1 fire at once, as the
//! timers here may, and entering a round late is like having a slow timer. The checked properties of each round are
//! the preconditions of the next: if a validator decides a value, all correct validators leave with that estimate;
//! and if all enter with one estimate, all leave with it.
//!
//! To keep the number of states small, messages are delivered only when they make a difference. Estimates come in
//! groups that reach the next threshold. A suggestion, or the timer that ends the wait for it, comes when it makes a
//! validator send its auxiliary vote. Any subset of the auxiliary votes that were sent comes together with the timer
//! that ends the round. Earlier deliveries would change nothing that others can see. States are distinguished by what
//! can still matter: the number of counted votes, not their senders, and what each validator knows, not which validator
//! it is.

use std::hash::{DefaultHasher, Hash, Hasher};

use stateright::{Checker, Model, Property};

use super::*;

const CORRECT: usize = 3;
const FAULTY: Index = 3;

/// A round of a committee whose thresholds a test may weaken.
#[derive(Clone)]
struct OneRound {
    round: Round,
    committee: Committee,
}

/// The correct validators, and the estimates with which they enter the round.
#[derive(Clone, Debug)]
struct State {
    estimates: [bool; CORRECT],
    nodes: [Binary; CORRECT],
    round: Round,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Estimates {
        to: usize,
        value: bool,
        enough: usize,
    },
    /// A validator sends its auxiliary vote: the coordinator's value, or all values after the wait.
    Say {
        at: usize,
        suggestion: Option<bool>,
    },
    /// A validator ends the round with the votes of some of the others.
    End {
        at: usize,
        votes: [Option<(Index, Mask)>; CORRECT],
    },
}

impl State {
    fn known(&self, at: usize) -> RoundState {
        self.nodes[at].rounds.get(&self.round).cloned().unwrap_or_default()
    }

    /// The part of a validator's knowledge that can still make a difference, to itself or to others.
    fn digest(&self, at: usize) -> u64 {
        let (node, known) = (&self.nodes[at], self.known(at));
        let over = known.ended && node.round != self.round;
        let level = |value: usize| known.estimates[value].len().saturating_sub(1).min(if over { 0 } else { 2 });
        let values = (!over).then_some(known.values);
        let said = (known.sent, known.auxiliary, known.ended);
        let mut hasher = DefaultHasher::new();
        let own = (node.round, node.estimate, node.decided, self.estimates[at]);
        (own, [level(0), level(1)], values, said).hash(&mut hasher);
        hasher.finish()
    }

    /// The estimate with which a validator has left the round.
    fn left_with(&self, at: usize) -> Option<bool> {
        self.known(at).ended.then_some(self.nodes[at].estimate)
    }

    fn decisions(&self) -> impl Iterator<Item = bool> + '_ {
        self.nodes.iter().filter_map(|node| node.decided).map(|(value, _)| value)
    }
}

impl Hash for State {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut digests = [0, 1, 2].map(|at| self.digest(at));
        digests.sort_unstable();
        digests.hash(state);
    }
}

impl PartialEq for State {
    fn eq(&self, other: &State) -> bool {
        (&self.estimates, &self.nodes) == (&other.estimates, &other.nodes)
    }
}

impl OneRound {
    /// Performs effects as a height does: a validator's own votes are counted at once.
    fn settle(&self, node: &mut Binary, mut effects: Vec<HeightEffect>) {
        let (me, committee) = (node.me, &self.committee);
        while !effects.is_empty() {
            for effect in std::mem::take(&mut effects) {
                match effect {
                    HeightEffect::Send(Vote::Estimate { round, value, .. }) => {
                        node.on_estimate(me, round, value, committee, &mut effects);
                    }
                    HeightEffect::Send(Vote::Auxiliary { round, values, .. }) => {
                        node.on_auxiliary(me, round, values, committee, &mut effects);
                    }
                    _ => {}
                }
            }
        }
    }

    /// The validators that have sent an estimate which `to` has not counted yet; the faulty one always has.
    fn senders(&self, state: &State, to: usize, value: bool) -> Vec<Index> {
        let heard = state.known(to).estimates[usize::from(value)];
        let sent = (0..CORRECT).filter(|from| *from != to && state.known(*from).sent[usize::from(value)]);
        sent.map(|from| from as Index).chain([FAULTY]).filter(|from| !heard.contains(*from)).collect()
    }

    fn estimates(&self, state: &State, to: usize, steps: &mut Vec<Step>) {
        let known = state.known(to);
        for value in [false, true] {
            let heard = known.estimates[usize::from(value)].len();
            let next = [self.committee.one_correct, self.committee.deliver].into_iter().find(|enough| *enough > heard);
            if let Some(enough) = next.filter(|enough| heard + self.senders(state, to, value).len() >= *enough) {
                steps.push(Step::Estimates { to, value, enough });
            }
        }
    }

    /// All choices of the others' votes that a validator may have when its round ends.
    fn ends(&self, state: &State, at: usize, steps: &mut Vec<Step>) {
        let mut others = (0..CORRECT).filter(|from| *from != at);
        let mut said = || {
            let from = others.next().expect("two others are correct");
            [None, state.known(from).auxiliary.map(|values| (from as Index, values))]
        };
        let (one, other) = (said(), said());
        let faulty = [None].into_iter().chain(Mask::ALL.map(|values| Some((FAULTY, values))));
        for (one, other) in one.into_iter().flat_map(|one| other.map(|other| (one, other))) {
            steps.extend(faulty.clone().map(|faulty| Step::End { at, votes: [one, other, faulty] }));
        }
    }
}

impl Model for OneRound {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        // It makes no difference which of them has which estimate.
        let inputs = [[false; 3], [false, false, true], [false, true, true], [true; 3]];
        // The faulty one is the coordinator.
        let rotation = usize::from(FAULTY) + 1 - self.round as usize;
        let state = |estimates: [bool; CORRECT]| {
            let enter = |me: usize| {
                let (mut node, mut effects) = (Binary::new(0, me as Index, rotation), Vec::new());
                node.enter(self.round, estimates[me], &mut effects);
                self.settle(&mut node, effects);
                node
            };
            State { estimates, nodes: [0, 1, 2].map(enter), round: self.round }
        };
        inputs.map(state).to_vec()
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        for at in 0..CORRECT {
            let known = state.known(at);
            self.estimates(state, at, steps);
            if known.values.first.is_some() && known.auxiliary.is_none() {
                steps.extend([None, Some(false), Some(true)].map(|suggestion| Step::Say { at, suggestion }));
            }
            if known.auxiliary.is_some() && !known.ended {
                self.ends(state, at, steps);
            }
        }
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        let mut next = state.clone();
        let (mut effects, committee, round) = (Vec::new(), &self.committee, self.round);
        let at = match step {
            Step::Estimates { to, value, enough } => {
                let missing = enough - state.known(to).estimates[usize::from(value)].len();
                for from in self.senders(state, to, value).into_iter().take(missing) {
                    next.nodes[to].on_estimate(from, round, value, committee, &mut effects);
                }
                to
            }
            Step::Say { at, suggestion: Some(value) } => {
                next.nodes[at].on_suggestion(FAULTY, round, value, committee, &mut effects);
                at
            }
            Step::Say { at, suggestion: None } => {
                next.nodes[at].on_timer(Timer::Coordinator { slot: 0, round }, committee, &mut effects);
                at
            }
            Step::End { at, votes } => {
                for (from, values) in votes.into_iter().flatten() {
                    next.nodes[at].on_auxiliary(from, round, values, committee, &mut effects);
                }
                next.nodes[at].on_timer(Timer::Auxiliaries { slot: 0, round }, committee, &mut effects);
                at
            }
        };
        self.settle(&mut next.nodes[at], effects);
        // A delivery without a visible effect is made later.
        let (said, ended) = (next.known(at).auxiliary.is_some(), next.known(at).ended);
        match step {
            Step::Say { .. } if !said => None,
            Step::End { .. } if !ended => None,
            _ => Some(next),
        }
    }

    fn properties(&self) -> Vec<Property<OneRound>> {
        vec![
            Property::always("a decided value is everybody's estimate afterwards", |_, state: &State| {
                let alike = |value| (0..CORRECT).filter_map(|at| state.left_with(at)).all(|left| left == value);
                state.decisions().all(alike)
            }),
            Property::always("a common estimate stays", |_, state: &State| {
                let common = state.estimates[0];
                let all = state.estimates == [common; CORRECT];
                !all || (0..CORRECT).filter_map(|at| state.left_with(at)).all(|left| left == common)
            }),
            Property::always("bin values are estimates of correct validators", |_, state: &State| {
                let entered = |value: bool| state.estimates.contains(&value);
                let held = |value: bool| (0..CORRECT).any(|at| state.known(at).values.contains(value));
                [false, true].into_iter().all(|value| !held(value) || entered(value))
            }),
            Property::always("only the round's parity is decided", |model, state: &State| {
                state.decisions().all(|value| value == (model.round % 2 == 1))
            }),
            Property::sometimes("all decide", |_, state: &State| state.decisions().count() == CORRECT),
            Property::sometimes("some decide, and others leave with both values", |_, state: &State| {
                let ended = (0..CORRECT).filter(|at| state.known(*at).ended).count();
                ended == CORRECT && (1..CORRECT).contains(&state.decisions().count())
            }),
        ]
    }
}

fn explore(round: Round, committee: Committee) -> impl Checker<OneRound> {
    OneRound { round, committee }.checker().threads(2).spawn_dfs().join()
}

#[test]
fn odd_and_even_rounds_keep_what_agreement_rests_on() {
    for round in [2, 3] {
        let explored = explore(round, Committee::new(4));
        explored.assert_properties();
        assert!(explored.is_done());
        eprintln!("round {round}: {} states", explored.unique_state_count());
    }
}

/// A check that cannot fail proves nothing.
#[test]
fn weaker_thresholds_are_caught() {
    let committee = Committee::new(4);
    let weaker = [
        Committee { round: committee.round - 1, ..committee },
        Committee { deliver: committee.one_correct, one_correct: 1, ..committee },
    ];
    for committee in weaker {
        let broken = explore(3, committee).discoveries();
        assert!(broken.keys().any(|name| !name.starts_with("all ") && !name.starts_with("some ")), "{committee:?}");
    }
}

#[test]
fn only_the_first_auxiliary_vote_of_a_sender_counts() {
    let (committee, mut effects) = (Committee::new(4), Vec::new());
    let mut node = Binary::new(0, 0, 0);
    node.propose(true, &committee, &mut effects);
    node.on_auxiliary(1, 1, Mask::One, &committee, &mut effects);
    let before = node.clone();
    for values in Mask::ALL {
        node.on_auxiliary(1, 1, values, &committee, &mut effects);
    }
    assert_eq!(node, before);
}
