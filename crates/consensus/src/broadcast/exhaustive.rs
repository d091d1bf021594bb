//! Explores every way in which three correct validators and a faulty one can pass one broadcast.
//!
//! The proposer is correct, or it is the faulty validator and gives two proposals to whom it likes. The faulty one may
//! send any votes to anybody at any time, and every message may take any time. The states are those of the code itself.
//! As in the model of a round of the binary consensus, votes are delivered in groups that reach the next threshold,
//! since fewer change nothing that others can see. The faulty one's come last, which leaves it more choices. States are
//! distinguished by how many votes were counted, not by whose they are.

use std::hash::{DefaultHasher, Hash, Hasher};

use stateright::{Checker, Model, Property};

use super::*;

const CORRECT: usize = 3;
const FAULTY: Index = 3;
const DIGESTS: [Digest; 2] = [Digest([1; 32]), Digest([2; 32])];

/// A broadcast of a committee whose thresholds a test may weaken.
#[derive(Clone)]
struct OneBroadcast {
    committee: Committee,
    is_proposer_correct: bool,
}

/// The correct validators, and the digest that each of them has been asked to fetch.
#[derive(Clone, Debug, PartialEq)]
struct State {
    nodes: [Broadcast; CORRECT],
    fetching: [Option<Digest>; CORRECT],
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// The proposer's own message.
    Propose { to: usize, digest: Digest },
    /// The proposal that was asked for, by a correct validator that has echoed it.
    Fetched { to: usize },
    /// The votes that are missing until there are `enough`.
    Votes { to: usize, kind: VoteOf, digest: Digest, enough: usize },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum VoteOf {
    Echo,
    Ready,
}

impl VoteOf {
    fn kind(self) -> Kind {
        match self {
            VoteOf::Echo => Kind::Echo,
            VoteOf::Ready => Kind::Ready,
        }
    }
}

impl State {
    fn counted(&self, at: usize, kind: VoteOf, digest: &Digest) -> Members {
        self.nodes[at].votes.get(digest).map_or_else(Members::default, |votes| votes[kind.kind() as usize])
    }

    /// What a validator has sent.
    fn sent(&self, from: usize, kind: VoteOf) -> Option<Digest> {
        match kind {
            VoteOf::Echo => self.nodes[from].echoed,
            VoteOf::Ready => self.nodes[from].readied,
        }
    }

    /// What others can see of a validator, and whether it waits.
    fn seen(&self, at: usize) -> impl PartialEq + Hash + use<> {
        let node = &self.nodes[at];
        let held = DIGESTS.map(|digest| node.holds(&digest));
        (held, node.echoed, node.readied, node.delivered, self.fetching[at])
    }

    /// The part of a validator's knowledge that can still make a difference.
    fn digest(&self, at: usize) -> u64 {
        let of = |kind| {
            let faulty = self.nodes[at].senders[kind as usize].contains(FAULTY);
            let kind = if matches!(kind, Kind::Echo) { VoteOf::Echo } else { VoteOf::Ready };
            (DIGESTS.map(|digest| self.counted(at, kind, &digest).len()), faulty)
        };
        let mut hasher = DefaultHasher::new();
        (self.seen(at), of(Kind::Echo), of(Kind::Ready)).hash(&mut hasher);
        hasher.finish()
    }

    fn delivered(&self) -> impl Iterator<Item = Digest> + '_ {
        self.nodes.iter().filter_map(Broadcast::delivered)
    }
}

impl Hash for State {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut digests = [0, 1, 2].map(|at| self.digest(at));
        digests.sort_unstable();
        digests.hash(state);
    }
}

impl OneBroadcast {
    /// Performs effects as a height does: a validator's own votes are counted at once.
    fn settle(&self, state: &mut State, at: usize, mut effects: Vec<HeightEffect>) {
        while !effects.is_empty() {
            for effect in std::mem::take(&mut effects) {
                let (kind, digest) = match effect {
                    HeightEffect::Send(Vote::Echo { digest, .. }) => (Kind::Echo, digest),
                    HeightEffect::Send(Vote::Ready { digest, .. }) => (Kind::Ready, digest),
                    HeightEffect::Fetch { digest, .. } => {
                        state.fetching[at] = Some(digest);
                        continue;
                    }
                    _ => continue,
                };
                state.nodes[at].count(kind, at as Index, digest);
                state.nodes[at].advance(0, &self.committee, &mut effects);
            }
        }
    }

    /// The validators whose vote `to` has not counted yet, the correct ones first; the faulty one sends any vote, even
    /// if it has sent another.
    fn senders(&self, state: &State, step: (usize, VoteOf, Digest), with_faulty: bool) -> Vec<Index> {
        let (to, kind, digest) = step;
        let counted = state.counted(to, kind, &digest);
        let sent = (0..CORRECT).filter(|from| state.sent(*from, kind) == Some(digest)).map(|from| from as Index);
        sent.chain(with_faulty.then_some(FAULTY)).filter(|from| !counted.contains(*from)).collect()
    }

    fn steps(&self, state: &State, with_faulty: bool) -> Vec<Step> {
        let mut steps = Vec::new();
        for to in 0..CORRECT {
            let proposals = if self.is_proposer_correct { &DIGESTS[..1] } else { &DIGESTS[..] };
            if with_faulty || self.is_proposer_correct {
                steps.extend(proposals.iter().map(|digest| Step::Propose { to, digest: *digest }));
            }
            if state.fetching[to].is_some() {
                steps.push(Step::Fetched { to });
            }
            for digest in DIGESTS {
                let Committee { echoes, one_correct, deliver, .. } = self.committee;
                let thresholds = [(VoteOf::Echo, echoes), (VoteOf::Ready, one_correct), (VoteOf::Ready, deliver)];
                for (kind, enough) in thresholds {
                    let counted = state.counted(to, kind, &digest).len();
                    let more = self.senders(state, (to, kind, digest), with_faulty).len();
                    if counted < enough && counted + more >= enough {
                        steps.push(Step::Votes { to, kind, digest, enough });
                    }
                }
            }
        }
        steps
    }

    fn step(&self, state: &State, step: Step, with_faulty: bool) -> Option<State> {
        let (mut next, mut effects) = (state.clone(), Vec::new());
        let at = match step {
            Step::Propose { to, digest } => {
                next.nodes[to].hold(0, digest, true, &mut effects);
                to
            }
            Step::Fetched { to } => {
                let digest = state.fetching[to].expect("it was asked for");
                let echo = VoteOf::Echo;
                let of = |from: &Index| state.nodes[usize::from(*from)].holds(&digest);
                // By then it has the echoes of all correct validators, so it asks them, too.
                let mut asked = self.senders(state, (to, echo, digest), false);
                asked.extend(state.counted(to, echo, &digest).iter().filter(|from| *from != FAULTY));
                if !asked.iter().any(of) {
                    return None;
                }
                next.nodes[to].hold(0, digest, false, &mut effects);
                next.fetching[to] = None;
                to
            }
            Step::Votes { to, kind, digest, enough } => {
                let missing = enough - state.counted(to, kind, &digest).len();
                for from in self.senders(state, (to, kind, digest), with_faulty).into_iter().take(missing) {
                    next.nodes[to].count(kind.kind(), from, digest);
                }
                to
            }
        };
        next.nodes[at].advance(0, &self.committee, &mut effects);
        self.settle(&mut next, at, effects);
        (next.seen(at) != state.seen(at)).then_some(next)
    }

    /// Whether the correct validators have sent and received all that they will, if the faulty one sends nothing more.
    fn is_quiet(&self, state: &State) -> bool {
        self.steps(state, false).into_iter().all(|step| self.step(state, step, false).is_none())
    }
}

impl Model for OneBroadcast {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State { nodes: Default::default(), fetching: [None; CORRECT] }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        steps.extend(self.steps(state, true));
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        self.step(state, step, true)
    }

    fn properties(&self) -> Vec<Property<OneBroadcast>> {
        vec![
            Property::always("correct validators deliver one digest", |_, state: &State| {
                state.delivered().all(|digest| state.delivered().all(|other| digest == other))
            }),
            Property::always("correct validators are ready for one digest", |_, state: &State| {
                let mut ready = state.nodes.iter().filter_map(|node| node.readied);
                let first = ready.next();
                ready.all(|digest| Some(digest) == first)
            }),
            Property::always("a correct proposer's digest is the only one", |model, state: &State| {
                !model.is_proposer_correct || state.delivered().all(|digest| digest == DIGESTS[0])
            }),
            Property::always("f+1 correct validators hold what is delivered, its deliverer too", |_, state: &State| {
                state.nodes.iter().filter_map(|node| Some((node, node.delivered?))).all(|(node, digest)| {
                    node.holds(&digest) && state.nodes.iter().filter(|node| node.holds(&digest)).count() >= 2
                })
            }),
            Property::always("if one delivers, all do", |model, state: &State| {
                let count = state.delivered().count();
                count == 0 || count == CORRECT || !model.is_quiet(state)
            }),
            Property::always("a correct proposer's proposal is delivered", |model, state: &State| {
                !model.is_proposer_correct || state.delivered().count() == CORRECT || !model.is_quiet(state)
            }),
            Property::sometimes("somebody fetches, and all deliver", |_, state: &State| {
                state.delivered().count() == CORRECT && state.nodes.iter().any(|node| node.echoed != node.delivered)
            }),
            Property::sometimes("all have echoed, and nobody will deliver", |model, state: &State| {
                let stuck = state.nodes.iter().all(Broadcast::has_echoed) && model.is_quiet(state);
                model.is_proposer_correct || (stuck && state.delivered().count() == 0)
            }),
        ]
    }
}

fn explore(committee: Committee, is_proposer_correct: bool) -> impl Checker<OneBroadcast> {
    OneBroadcast { committee, is_proposer_correct }.checker().threads(2).spawn_dfs().join()
}

#[test]
fn every_broadcast_of_four_keeps_agreement_totality_and_possession() {
    for is_proposer_correct in [true, false] {
        let explored = explore(Committee::new(4), is_proposer_correct);
        explored.assert_properties();
        assert!(explored.is_done());
        eprintln!("proposer correct: {is_proposer_correct}: {} states", explored.unique_state_count());
    }
}

/// A check that cannot fail proves nothing.
#[test]
fn weaker_thresholds_of_a_broadcast_are_caught() {
    let committee = Committee::new(4);
    let weaker = [
        (Committee { echoes: committee.echoes - 1, ..committee }, "correct validators are ready for one digest"),
        (Committee { one_correct: 1, ..committee }, "correct validators are ready for one digest"),
        (Committee { deliver: committee.deliver - 1, ..committee }, "if one delivers, all do"),
    ];
    for (committee, broken) in weaker {
        let found = [true, false].map(|is_proposer_correct| {
            let found = explore(committee, is_proposer_correct).discoveries();
            found.keys().any(|name| *name == broken)
        });
        assert!(found.contains(&true), "{committee:?}: {broken}");
    }
}
