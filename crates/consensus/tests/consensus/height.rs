//! Committees of state machines over a simulated network: known answers, faults, and invariants that must hold in all
//! runs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use consensus::{
    Broadcast, Committee, Decision, Height, HeightEffect, HeightSettings, Index, Mask, Members, Record, Timer, Vote,
};
use kernel::RemainderDice;
use primitives::Digest;

/// The behaviour of faulty validators.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Faults {
    None,
    /// They send nothing.
    Silent,
    /// They answer every message with random votes, different ones to each validator, and make different proposals to
    /// each.
    Random,
}

/// The behaviour of the network. A unit is a thousand ticks; timers use the same unit.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Network {
    /// 50 to 200 ticks.
    Timely,
    /// Arbitrary delays for 20 units, then timely.
    TimelyAfter20,
    /// Heavy tails forever.
    HeavyTailed,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// From its proposer, or fetched.
    Proposal {
        slot: Index,
        digest: Digest,
        from_proposer: bool,
    },
    Vote {
        from: Index,
        vote: Vote,
    },
    Timer(Timer),
    /// The process is killed and restarts with its records.
    Restart,
}

struct Run {
    committee: Committee,
    settings: HeightSettings,
    network: Network,
    faults: Faults,
    /// Ticks of a timer's unit; 0 lets all timers fire at once.
    unit: u64,
    nodes: Vec<Height>,
    records: Vec<Vec<Record>>,
    /// What each validator has sent since it started, to be sent again on a new connection.
    sent: Vec<Vec<Vote>>,
    faulty: BTreeSet<Index>,
    /// One side of a partition before the network becomes timely.
    side: BTreeSet<Index>,
    queue: BinaryHeap<Reverse<(u64, u64, Index, Event)>>,
    now: u64,
    events: u64,
    messages: u64,
    dice: RemainderDice,
    /// Votes of correct validators that may be sent only once: by sender, and the vote without its content.
    said: BTreeMap<(Index, Vote), Vote>,
    /// Votes to which the faulty ones have reacted.
    reacted: BTreeSet<(Index, Vote)>,
    equivocations: u64,
    /// After how many events all processes stop at once, and which of them restarts without its records.
    blackout: Option<(u64, Index)>,
    /// What a validator decided before the blackout.
    decided_before: Option<Decision>,
}

#[derive(Debug)]
struct Outcome {
    decision: Decision,
    messages: u64,
    /// The highest round that a correct validator reached.
    round: u32,
    time: u64,
    equivocations: u64,
}

fn digest(of: &str) -> Digest {
    Digest::of("walras 2026 consensus test", of.as_bytes())
}

impl Run {
    fn new(size: usize, network: Network, faults: Faults, seed: u64) -> Run {
        let committee = Committee::new(size);
        let mut dice = RemainderDice::new(seed);
        let mut some = |count: usize| {
            let mut chosen = BTreeSet::new();
            while chosen.len() < count {
                chosen.insert(dice.below(size as u64) as Index);
            }
            chosen
        };
        let faulty = if faults == Faults::None { BTreeSet::new() } else { some(committee.faulty) };
        let side = some(size / 2);
        let settings = HeightSettings::new(&committee);
        Run {
            committee,
            settings,
            network,
            faults,
            unit: 1_000,
            nodes: Vec::new(),
            records: vec![Vec::new(); size],
            sent: vec![Vec::new(); size],
            faulty,
            side,
            queue: BinaryHeap::new(),
            now: 0,
            events: 0,
            messages: 0,
            dice,
            said: BTreeMap::new(),
            reacted: BTreeSet::new(),
            equivocations: 0,
            blackout: None,
            decided_before: None,
        }
    }

    fn node(&self, index: Index) -> Height {
        Height::new(self.committee, self.settings, 1, index, &Members::default())
    }

    fn delay(&mut self, from: Index, to: Index) -> u64 {
        let timely = 50 + self.dice.below(150);
        match self.network {
            Network::Timely => timely,
            Network::TimelyAfter20 if self.now >= 20_000 => timely,
            Network::TimelyAfter20 => {
                let parted = self.side.contains(&from) != self.side.contains(&to);
                if parted && self.dice.unit() < 0.7 {
                    return 20_000 - self.now + self.dice.below(500);
                }
                let scale = [50, 200, 1_000, 4_000][self.dice.below(4) as usize];
                (scale as f64 * 3.0 * self.dice.unit()) as u64
            }
            Network::HeavyTailed => {
                let normal = (0..12).map(|_| self.dice.unit()).sum::<f64>() - 6.0;
                ((50.0 * (2.2 * normal).exp()) as u64).min(60_000)
            }
        }
    }

    fn push(&mut self, delay: u64, to: Index, event: Event) {
        self.events += 1;
        self.queue.push(Reverse((self.now + delay, self.events, to, event)));
    }

    /// To all, including the sender; the sender has already counted its own votes.
    fn broadcast(&mut self, from: Index, event: &Event) {
        for to in self.committee.members() {
            self.messages += 1;
            if to != from {
                let delay = self.delay(from, to);
                self.push(delay, to, event.clone());
            }
        }
    }

    fn start(&mut self) {
        self.nodes = self.committee.members().map(|index| self.node(index)).collect();
        for index in self.committee.members() {
            if !self.faulty.contains(&index) {
                let proposal =
                    Event::Proposal { slot: index, digest: digest(&format!("{index}")), from_proposer: true };
                self.broadcast(index, &proposal);
                self.push(1, index, proposal);
            } else if self.faults == Faults::Random {
                for to in self.committee.members() {
                    let which = self.dice.below(3);
                    if which > 0 {
                        let proposal = digest(&format!("{index}, as {which}"));
                        let delay = self.delay(index, to);
                        self.push(delay, to, Event::Proposal { slot: index, digest: proposal, from_proposer: true });
                    }
                }
            }
        }
    }

    fn correct(&self) -> impl Iterator<Item = Index> + '_ {
        self.committee.members().filter(|index| !self.faulty.contains(index))
    }

    /// Runs until every correct validator has decided the height.
    fn run(mut self) -> Outcome {
        self.start();
        let mut handled = 0;
        while self.correct().any(|index| self.nodes[usize::from(index)].decision().is_none()) {
            handled += 1;
            if let Some((_, forgetful)) = self.blackout.take_if(|(after, _)| *after < handled) {
                self.restart_all(forgetful);
            }
            let Some(Reverse((time, _, to, event))) = self.queue.pop() else { panic!("stuck") };
            self.now = time;
            assert!(self.events < 3_000_000, "no end");
            if self.faulty.contains(&to) {
                self.react(to, &event);
            } else {
                self.deliver(to, event);
            }
            self.check_agreement();
        }
        let correct: Vec<Index> = self.correct().collect();
        let decisions: BTreeSet<_> = correct
            .iter()
            .map(|index| self.nodes[usize::from(*index)].decision().cloned().expect("decided"))
            .map(|d| d.sub_blocks)
            .collect();
        assert_eq!(decisions.len(), 1, "different superblocks");
        let before = self.decided_before.map(|decision| decision.sub_blocks);
        assert!(before.is_none_or(|before| decisions.contains(&before)), "another superblock than before the blackout");
        let rounds = correct.iter().flat_map(|node| {
            let node = &self.nodes[usize::from(*node)];
            self.committee.members().filter_map(move |slot| node.binary(slot)?.decided()).map(|(_, round)| round)
        });
        Outcome {
            round: rounds.max().unwrap_or(0),
            decision: Decision { sub_blocks: decisions.into_iter().next().expect("one") },
            messages: self.messages,
            time: self.now,
            equivocations: self.equivocations,
        }
    }

    fn deliver(&mut self, to: Index, event: Event) {
        let mut effects = Vec::new();
        let node = &mut self.nodes[usize::from(to)];
        match event {
            Event::Proposal { slot, digest, from_proposer } => {
                node.on_proposal(slot, digest, from_proposer, &mut effects);
            }
            Event::Vote { from, vote } => node.on_vote(from, vote, &mut effects),
            Event::Timer(timer) => node.on_timer(timer, &mut effects),
            Event::Restart => {
                self.nodes[usize::from(to)] = self.node(to);
                self.sent[usize::from(to)].clear();
                let records = self.records[usize::from(to)].clone();
                self.nodes[usize::from(to)].restore(&records, &mut effects);
                self.resend_to(to);
            }
        }
        self.carry_out(to, effects);
    }

    /// All processes stop at once, and what is on its way is lost. One has lost its records too, and stays silent; the
    /// others restart with theirs.
    fn restart_all(&mut self, forgetful: Index) {
        self.queue.clear();
        let before = std::mem::take(&mut self.nodes);
        let decided = self.correct().find_map(|index| before[usize::from(index)].decision().cloned());
        self.decided_before = decided;
        self.nodes = self.committee.members().map(|index| self.node(index)).collect();
        self.sent.iter_mut().for_each(Vec::clear);
        self.faulty.insert(forgetful);
        let running: Vec<Index> = self.correct().collect();
        for index in &running {
            let mut effects = Vec::new();
            let node = &mut self.nodes[usize::from(*index)];
            node.restore(&self.records[usize::from(*index)].clone(), &mut effects);
            let held = |slot: &Index| before[usize::from(*index)].broadcast(*slot).is_some_and(Broadcast::has_echoed);
            for slot in self.committee.members().filter(held) {
                node.on_proposal(slot, digest(&format!("{slot}")), true, &mut effects);
            }
            self.carry_out(*index, effects);
        }
        for index in running {
            let own = Event::Proposal { slot: index, digest: digest(&format!("{index}")), from_proposer: true };
            self.broadcast(index, &own);
            self.push(1, index, own);
        }
    }

    /// On a new connection every validator sends again what it has sent.
    fn resend_to(&mut self, to: Index) {
        let correct: Vec<Index> = self.correct().filter(|index| *index != to).collect();
        for from in correct {
            let digest = digest(&format!("{from}"));
            self.push(60, to, Event::Proposal { slot: from, digest, from_proposer: true });
            for vote in self.sent[usize::from(from)].clone() {
                self.push(60, to, Event::Vote { from, vote });
            }
        }
        let own = digest(&format!("{to}"));
        self.push(1, to, Event::Proposal { slot: to, digest: own, from_proposer: true });
    }

    fn carry_out(&mut self, node: Index, effects: Vec<HeightEffect>) {
        for effect in effects {
            match effect {
                HeightEffect::Record(record) => self.records[usize::from(node)].push(record),
                HeightEffect::Send(vote) => {
                    self.check_once(node, vote);
                    self.sent[usize::from(node)].push(vote);
                    self.broadcast(node, &Event::Vote { from: node, vote });
                }
                HeightEffect::Arm(timer) => {
                    let delay = u64::from(timer.units()) * self.unit;
                    // The model has no grace period.
                    let delay = if timer == Timer::Grace { 0 } else { delay };
                    self.push(delay, node, Event::Timer(timer));
                }
                HeightEffect::Fetch { slot, digest, holders } => {
                    let holds = |index: &Index| {
                        let height = &self.nodes[usize::from(*index)];
                        height.broadcast(slot).is_some_and(|broadcast| broadcast.holds(&digest))
                    };
                    let correct: Vec<Index> = self.correct().filter(holds).collect();
                    assert!(correct.len() > self.committee.faulty, "too few hold what is agreed on");
                    if correct.iter().any(|index| holders.contains(*index)) {
                        self.push(300, node, Event::Proposal { slot, digest, from_proposer: false });
                    }
                }
                HeightEffect::Equivocation { slot, digests } => {
                    assert!(self.faulty.contains(&slot) && digests[0] != digests[1]);
                    self.equivocations += 1;
                }
                HeightEffect::Decide(_) => {}
            }
        }
    }

    /// Checks that votes that may be sent only once are.
    fn check_once(&mut self, node: Index, vote: Vote) {
        let without = match vote {
            Vote::Echo { slot, .. } => Vote::Echo { slot, digest: Digest::default() },
            Vote::Ready { slot, .. } => Vote::Ready { slot, digest: Digest::default() },
            Vote::Coordinate { slot, round, .. } => Vote::Coordinate { slot, round, value: false },
            Vote::Auxiliary { slot, round, .. } => Vote::Auxiliary { slot, round, values: Mask::Both },
            Vote::Estimate { .. } => return,
        };
        let said = *self.said.entry((node, without)).or_insert(vote);
        assert_eq!(said, vote, "validator {node} contradicts itself");
    }

    /// No two correct validators decide a bit, or deliver a proposal, differently.
    fn check_agreement(&self) {
        for slot in self.committee.members() {
            let nodes = || self.correct().map(|index| &self.nodes[usize::from(index)]);
            let bits: BTreeSet<bool> = nodes().filter_map(|node| node.binary(slot)?.decided()).map(|d| d.0).collect();
            assert!(bits.len() <= 1, "slot {slot} is decided both ways");
            let delivered: BTreeSet<Digest> = nodes().filter_map(|node| node.broadcast(slot)?.delivered()).collect();
            assert!(delivered.len() <= 1, "slot {slot} is delivered twice");
        }
    }

    /// A faulty validator answers at random, each validator differently.
    fn react(&mut self, me: Index, event: &Event) {
        let vote = match (self.faults, event) {
            (Faults::Random, Event::Vote { vote, .. }) => *vote,
            (Faults::Random, Event::Proposal { slot, digest, .. }) => Vote::Echo { slot: *slot, digest: *digest },
            _ => return,
        };
        if !self.reacted.insert((me, vote)) {
            return;
        }
        for to in self.committee.members() {
            for answer in self.answers(vote) {
                let delay = self.delay(me, to);
                self.push(delay, to, Event::Vote { from: me, vote: answer });
            }
        }
    }

    fn answers(&mut self, vote: Vote) -> Vec<Vote> {
        let dice = &mut self.dice;
        match vote {
            Vote::Estimate { round, .. } if round > 40 => Vec::new(),
            Vote::Estimate { slot, round, .. } => {
                let estimate = |value| Vote::Estimate { slot, round, value };
                let mut answers = match dice.below(4) {
                    0 => vec![estimate(false)],
                    1 => vec![estimate(true)],
                    2 => vec![estimate(false), estimate(true)],
                    _ => Vec::new(),
                };
                answers.push(Vote::Coordinate { slot, round, value: dice.below(2) == 1 });
                answers
            }
            Vote::Auxiliary { slot, round, .. } => {
                let auxiliary = |values| vec![Vote::Auxiliary { slot, round, values }];
                match dice.below(4) {
                    0 => auxiliary(Mask::Zero),
                    1 => auxiliary(Mask::One),
                    2 => auxiliary(Mask::Both),
                    _ => Vec::new(),
                }
            }
            Vote::Echo { slot, digest } => {
                let echo = (dice.unit() < 0.7).then_some(Vote::Echo { slot, digest });
                let ready = (dice.unit() < 0.5).then_some(Vote::Ready { slot, digest });
                echo.into_iter().chain(ready).collect()
            }
            _ => Vec::new(),
        }
    }
}

#[test]
fn without_faults_the_counts_are_known() {
    for (size, messages) in [(1, 6), (4, 288), (7, 1_470), (10, 4_200)] {
        let outcome = Run::new(size, Network::Timely, Faults::None, 1).run();
        assert_eq!((outcome.round, outcome.decision.sub_blocks.len()), (1, size));
        assert_eq!(outcome.messages, messages, "4n³+2n²");
        let proposals: Vec<_> = (0..size as Index).map(|index| (index, digest(&format!("{index}")))).collect();
        assert_eq!(outcome.decision.sub_blocks, proposals);
    }
}

#[test]
fn a_silent_validator_is_left_out_in_round_two() {
    for seed in 0..60 {
        let outcome = Run::new(4, Network::Timely, Faults::Silent, seed).run();
        assert_eq!((outcome.round, outcome.decision.sub_blocks.len()), (2, 3));
        let outcome = Run::new(7, Network::Timely, Faults::Silent, seed).run();
        assert_eq!((outcome.round, outcome.decision.sub_blocks.len()), (2, 5));
    }
}

#[test]
fn every_height_ends_alike_whatever_faulty_validators_and_the_network_do() {
    let mut equivocations = 0;
    for seed in 0..200 {
        for faults in [Faults::None, Faults::Silent, Faults::Random] {
            for network in [Network::Timely, Network::TimelyAfter20, Network::HeavyTailed] {
                let size = [4, 4, 5, 7][seed as usize % 4];
                let run = Run::new(size, network, faults, seed);
                let committee = run.committee;
                let outcome = run.run();
                assert!(outcome.decision.sub_blocks.len() >= committee.round, "{seed} {faults:?} {network:?}");
                equivocations += outcome.equivocations;
            }
        }
    }
    assert!(equivocations > 50, "only {equivocations} equivocations were seen");
}

#[test]
fn timers_are_not_needed_for_safety() {
    for seed in 0..100 {
        let mut run = Run::new(4, Network::HeavyTailed, Faults::Random, seed);
        run.unit = 0;
        run.run();
    }
}

#[test]
fn one_sub_block_is_enough_if_so_set() {
    let mut least = usize::MAX;
    for seed in 0..60 {
        let mut run = Run::new(4, Network::HeavyTailed, Faults::Silent, seed);
        run.settings.enough = 1;
        least = least.min(run.run().decision.sub_blocks.len());
    }
    assert_eq!(least, 1);
}

#[test]
fn the_fast_path_saves_a_delay() {
    let usual = Run::new(4, Network::Timely, Faults::None, 3).run();
    let mut run = Run::new(4, Network::Timely, Faults::None, 3);
    run.settings.fast = true;
    let fast = run.run();
    assert!(fast.time < usual.time && fast.messages == 288 - 64, "{fast:?} {usual:?}");
    for seed in 0..150 {
        for network in [Network::Timely, Network::TimelyAfter20, Network::HeavyTailed] {
            for faults in [Faults::Silent, Faults::Random] {
                let mut run = Run::new(4, network, faults, seed);
                run.settings.fast = true;
                assert!(run.run().decision.sub_blocks.len() >= 3);
            }
        }
    }
}

#[test]
fn a_restart_contradicts_nothing() {
    for seed in 0..200 {
        let mut run = Run::new(4, Network::TimelyAfter20, Faults::Silent, seed);
        run.settings.fast = seed % 2 == 1;
        let correct: Vec<Index> = run.correct().collect();
        for restart in 0..6 {
            let who = correct[run.dice.below(correct.len() as u64) as usize];
            let when = run.dice.below(25_000) + restart;
            run.push(when, who, Event::Restart);
        }
        assert_eq!(run.run().decision.sub_blocks.len(), 3);
    }
}

/// A vote that is counted anywhere may be needed everywhere: estimates that were relayed are among the records.
#[test]
fn all_stop_at_once_and_one_forgets_and_the_others_decide() {
    for seed in 0..3_000 {
        let size = [4, 4, 7][seed as usize % 3];
        let network = [Network::Timely, Network::TimelyAfter20, Network::HeavyTailed][seed as usize / 3 % 3];
        let mut run = Run::new(size, network, Faults::None, seed);
        run.settings.fast = seed % 2 == 1;
        let after = run.dice.below(5 * (size as u64).pow(3));
        run.blackout = Some((after, run.dice.below(size as u64) as Index));
        run.run();
    }
}

#[test]
fn the_benched_have_no_slot() {
    let committee = Committee::new(4);
    let benched: Members = [2].into_iter().collect();
    let mut nodes: Vec<Height> = committee
        .members()
        .map(|index| Height::new(committee, HeightSettings::new(&committee), 9, index, &benched))
        .collect();
    let mut votes: Vec<(Index, Vote)> = Vec::new();
    let mut effects = Vec::new();
    for slot in [0, 1, 3] {
        for to in [0, 1, 3] {
            nodes[usize::from(to)].on_proposal(slot, digest(&format!("{slot}")), true, &mut effects);
            votes.extend(effects.drain(..).filter_map(|effect| sent(to, &effect)));
        }
    }
    while let Some((from, vote)) = votes.pop() {
        for to in [0, 1, 3].into_iter().filter(|to| *to != from) {
            nodes[usize::from(to)].on_vote(from, vote, &mut effects);
            votes.extend(effects.drain(..).filter_map(|effect| sent(to, &effect)));
        }
    }
    for node in [0, 1, 3] {
        let decision = nodes[node].decision().expect("no timer is needed");
        assert_eq!(decision.sub_blocks.iter().map(|(slot, _)| *slot).collect::<Vec<_>>(), [0, 1, 3]);
    }
}

fn sent(from: Index, effect: &HeightEffect) -> Option<(Index, Vote)> {
    match effect {
        HeightEffect::Send(vote) => Some((from, *vote)),
        _ => None,
    }
}

/// How often runs with a changed rule end in a broken invariant.
fn caught(change: impl Fn(&mut Run) + std::panic::RefUnwindSafe) -> usize {
    let broken = |seed: u64| {
        let networks = [Network::Timely, Network::TimelyAfter20, Network::HeavyTailed];
        let attempt = || {
            let mut run = Run::new(4, networks[seed as usize % 3], Faults::Random, seed);
            change(&mut run);
            run.run()
        };
        std::panic::catch_unwind(attempt).is_err()
    };
    (0..600).filter(|seed| broken(*seed)).count()
}

/// A check that cannot fail proves nothing.
#[test]
fn lowered_thresholds_and_too_many_faulty_ones_are_caught() {
    assert_eq!(caught(|_| {}), 0);
    assert!(caught(|run| run.committee.round = 2) > 0, "auxiliary votes of n-f-1");
    assert!(caught(|run| run.committee.deliver = 2) > 0, "f+1 readies deliver");
    assert!(caught(|run| run.committee.echoes = 2) > 0, "two echo quorums need not share a correct validator");
    let one_more = |run: &mut Run| {
        let next = run.correct().next().expect("a correct one");
        run.faulty.insert(next);
    };
    assert!(caught(one_more) > 0, "f+1 faulty validators");
}
