//! Engines that decide by rounds, joined by perfect links: known answers, restarts, evidence, encodings.

use std::collections::BTreeMap;
use std::sync::Arc;

use consensus::tendermint::{Kind, Message, Messages, Value, Vote};
use consensus::{
    ALL_HEIGHTS, Chain, Contents, Engine, Evidence, Frame, Index, LogEntry, Payload, Proposal, Rules, Setup, Start,
    Timer, payload_digest,
};
use primitives::{Digest, SecretKey, Signature};
use proptest::prelude::*;

fn secret(index: Index) -> SecretKey {
    SecretKey::from_seed([index + 1; 32])
}

fn chain(size: Index) -> Chain {
    let keys = (0..size).map(|index| secret(index).public()).collect();
    Chain { genesis: Digest([4; 32]), epoch: 0, heights: ALL_HEIGHTS, keys }
}

/// Payloads in these tests are empty of meaning, or begin with a time.
fn contents(bytes: &[u8]) -> Option<Contents> {
    let time_ms = bytes.strip_prefix(b"at ").and_then(|rest| Some(u64::from_le_bytes(rest.try_into().ok()?)));
    Some(Contents { transactions: bytes.len(), time_ms, ..Contents::default() })
}

fn payload_at(time_ms: u64) -> Payload {
    [&b"at "[..], &time_ms.to_le_bytes()].concat().into()
}

fn engine(size: Index, me: Index) -> Engine {
    let (chain, rules) = (chain(size), Rules::tendermint());
    let benches = Engine::first_benches(&chain.committee(), &rules);
    let setup = Setup { chain, rules, followers: 0, me, signer: Arc::new(secret(me)), check: Arc::new(contents) };
    let roots = vec![(0, Digest([1; 32]))];
    Engine::new(setup, Start { height: 0, superblock: Digest::default(), benches, applied: 0, roots })
}

/// Engines whose messages arrive in the order in which they are sent.
struct Network {
    engines: Vec<Engine>,
    queue: Vec<(Index, Index, Frame)>,
    /// Number of sent messages by kind.
    sent: BTreeMap<&'static str, usize>,
    logs: Vec<Vec<(u64, LogEntry)>>,
    decided: Vec<Vec<(Index, Payload)>>,
    /// The round in which the first validator saw each height decided.
    rounds: Vec<u32>,
    timers: Vec<(usize, u64, Timer)>,
}

fn kinds(frame: &Frame) -> Vec<&'static str> {
    let of = |message: &Message| match message {
        Message::Proposal(_) => "proposal",
        Message::Vote(Vote { kind: Kind::Prevote, .. }) => "prevote",
        Message::Vote(_) => "precommit",
        _ => "other",
    };
    match frame {
        Frame::Proposal(..) => vec!["payload"],
        Frame::Commit(_) => vec!["commit"],
        Frame::Rounds(Messages { messages, .. }) => messages.iter().map(of).collect(),
        _ => vec![],
    }
}

impl Network {
    fn new(size: Index) -> Network {
        let engines = (0..size).map(|me| engine(size, me)).collect();
        let logs = vec![Vec::new(); usize::from(size)];
        let mut network = Network {
            engines,
            queue: Vec::new(),
            sent: BTreeMap::new(),
            logs,
            decided: Vec::new(),
            rounds: Vec::new(),
            timers: Vec::new(),
        };
        for a in 0..size {
            (0..size).filter(|b| *b != a).for_each(|b| network.engines[usize::from(a)].on_up(b));
        }
        network.run();
        network
    }

    /// Performs turns until nothing is in flight.
    fn run(&mut self) {
        loop {
            for from in 0..self.engines.len() {
                let turn = self.engines[from].finish_turn();
                self.logs[from].extend(turn.entries);
                self.timers.extend(turn.timers.into_iter().map(|(height, timer)| (from, height, timer)));
                for (to, frame) in turn.sends {
                    kinds(&frame).into_iter().for_each(|kind| *self.sent.entry(kind).or_default() += to.len());
                    self.queue.extend(to.iter().map(|to| (from as Index, to, frame.clone())));
                }
                for superblock in turn.decided {
                    self.engines[from].on_applied(superblock.height);
                    self.engines[from].on_root(superblock.height, superblock.digest);
                    if from == 0 {
                        self.rounds.extend(superblock.rounds.iter().map(|(_, round)| *round));
                        self.decided.push(superblock.sub_blocks);
                    }
                }
                assert!(turn.refused.is_empty(), "{:?}", turn.refused);
            }
            if self.queue.is_empty() {
                return;
            }
            for (from, to, frame) in std::mem::take(&mut self.queue) {
                let frame = Frame::from_bytes(&frame.to_bytes()).expect("sent frames decode");
                self.engines[usize::from(to)].on_frame(from, frame);
            }
        }
    }
}

impl Network {
    /// Fires all timers that were set.
    fn fire(&mut self) {
        for (of, height, timer) in std::mem::take(&mut self.timers) {
            self.engines[of].on_timer(height, timer);
        }
        self.run();
    }

    /// Proposes what is asked for, with the given clocks, and lets time pass until a height is decided.
    fn decide_by(&mut self, clock_ms: impl Fn(usize) -> u64) {
        for _ in 0..200 {
            for of in 0..self.engines.len() {
                self.engines[of].set_clock(clock_ms(of));
                let asked = self.engines[of].opening().filter(|opening| opening.urgent || self.timers.is_empty());
                if let Some(opening) = asked {
                    self.engines[of].propose(opening.height, payload_at(clock_ms(of)));
                }
            }
            self.run();
            if !self.decided.is_empty() {
                return;
            }
            self.fire();
        }
        panic!("nothing is decided");
    }
}

const NOON: u64 = 1_800_000_000_000;

#[test]
fn a_proposer_whose_clock_is_off_is_passed_by() {
    for off in [-2_001, 2_001, i64::MAX, -(NOON as i64)] {
        let mut network = Network::new(4);
        let first = network.engines[0].first_proposer(1);
        (0..4).for_each(|of| network.engines[of].set_clock(NOON));
        network.engines[usize::from(first)].propose(1, payload_at(NOON.saturating_add_signed(off)));
        network.run();
        assert!(network.decided.is_empty(), "{off}");
        network.fire();
        network.decide_by(|_| NOON);
        assert_eq!(network.rounds, [2], "{off}");
        assert_ne!(network.decided[0][0].0, first, "{off}");
    }
}

#[test]
fn a_clock_that_is_off_by_two_seconds_is_near_enough() {
    for off in [-2_000, 0, 2_000] {
        let mut network = Network::new(4);
        network.decide_by(|of| NOON.saturating_add_signed(if of == 1 { off } else { 0 }));
        assert_eq!(network.rounds, [1], "{off}");
    }
}

#[test]
fn clocks_an_hour_apart_still_decide() {
    let mut network = Network::new(4);
    network.decide_by(|of| NOON + of as u64 * 3_600_000);
    // Two seconds, doubled eleven times, are more than an hour.
    assert!((12..=15).contains(&network.rounds[0]), "{:?}", network.rounds);
}

/// A validator that finds a clock off does not keep the others from deciding, and accepts their decision.
#[test]
fn a_height_that_the_others_decided_is_taken_whatever_its_clock_says() {
    let mut network = Network::new(4);
    network.decide_by(|of| if of == 3 { NOON + 86_400_000 } else { NOON });
    assert_eq!(network.rounds, [1]);
    assert!(network.engines.iter().all(|engine| engine.certified() == 1));
}

#[test]
fn a_fault_free_height_costs_what_it_must() {
    for size in [4, 7] {
        let mut network = Network::new(size);
        let first = network.engines[0].first_proposer(1);
        let payload: Payload = b"a block".to_vec().into();
        let opening = network.engines[usize::from(first)].opening().expect("its turn");
        assert_eq!((opening.height, opening.urgent), (1, false));
        network.engines[usize::from(first)].propose(1, payload.clone());
        network.run();
        assert_eq!(network.decided, [vec![(first, payload)]]);
        assert!(network.engines.iter().all(|engine| engine.certified() == 1));
        let (n, all) = (usize::from(size), usize::from(size) * usize::from(size - 1));
        let expected = [("commit", all), ("payload", n - 1), ("precommit", all), ("prevote", all), ("proposal", n - 1)];
        assert_eq!(network.sent.into_iter().collect::<Vec<_>>(), expected);
    }
}

#[test]
fn who_waits_is_passed_the_turn() {
    let mut network = Network::new(4);
    let first = network.engines[0].first_proposer(1);
    let other = (first + 2) % 4;
    network.engines[usize::from(other)].set_waiting(true);
    network.run();
    // The proposer has nothing to propose, and is asked all the same.
    let opening = network.engines[usize::from(first)].opening().expect("its turn");
    assert!(opening.urgent && network.engines[usize::from(other)].opening().is_none());
}

#[test]
fn a_restarted_validator_votes_as_before_whatever_it_hears_next() {
    let mut network = Network::new(4);
    let first = network.engines[0].first_proposer(1);
    let me = (first + 1) % 4;
    network.engines[usize::from(first)].propose(1, b"one".to_vec().into());
    let turn = network.engines[usize::from(first)].finish_turn();
    for (_, frame) in &turn.sends {
        network.engines[usize::from(me)].on_frame(first, frame.clone());
    }
    let before = network.engines[usize::from(me)].finish_turn();
    let votes = |frames: &[(consensus::Members, Frame)]| -> Vec<Vote> {
        let messages = frames.iter().filter_map(|(_, frame)| match frame {
            Frame::Rounds(messages) => Some(messages.messages.clone()),
            _ => None,
        });
        let vote = |message| if let Message::Vote(vote) = message { Some(vote) } else { None };
        messages.flatten().filter_map(vote).collect()
    };
    let said = votes(&before.sends);
    assert!(said.len() == 1 && said[0].kind == Kind::Prevote && said[0].value.is_some());

    let mut again = engine(4, me);
    again.restore(before.entries.clone());
    assert_eq!(again.finish_turn().entries, [], "all of it is in the log");
    // The proposer now sends another proposal: it is evidence, and no reason for another vote.
    let other: Payload = b"another".to_vec().into();
    let proposal = Proposal::sign(&chain(4), 1, first, &other, &secret(first));
    again.on_frame(first, Frame::Proposal(proposal, other.clone()));
    let value = Value { slot: first, digest: payload_digest(&other) };
    let second = consensus::tendermint::Proposal {
        height: 1,
        round: 0,
        value,
        valid_round: None,
        signer: first,
        signature: Signature([0; 64]),
    };
    let messages = vec![Message::Proposal(second.sign(&chain(4), &secret(first)))];
    again.on_frame(first, Frame::Rounds(Messages { epoch: 0, height: 1, messages }));
    again.on_up(0);
    let status = consensus::Status { asks: true, ..consensus::Status::default() };
    again.on_frame(if me == 0 { 1 } else { 0 }, Frame::Status(status));
    let turn = again.finish_turn();
    assert!(turn.evidence.iter().any(|evidence| evidence.convicts(&chain(4)) == Some(first)), "{:?}", turn.evidence);
    assert!(votes(&turn.sends).iter().all(|vote| *vote == said[0]), "it voted twice");
}

#[test]
fn evidence_convicts_who_signed_twice_and_nobody_else() {
    let chain = chain(4);
    let vote = |value: Option<u8>, round| {
        let value = value.map(|byte| Value { slot: 0, digest: Digest([byte; 32]) });
        let unsigned =
            Vote { height: 3, round, kind: Kind::Precommit, value, signer: 2, signature: Signature([0; 64]) };
        unsigned.sign(&chain, &secret(2))
    };
    assert_eq!(Evidence::Votes(vote(None, 0), vote(Some(1), 0)).convicts(&chain), Some(2));
    assert_eq!(Evidence::Votes(vote(Some(1), 0), vote(Some(1), 0)).convicts(&chain), None);
    assert_eq!(Evidence::Votes(vote(None, 0), vote(Some(1), 1)).convicts(&chain), None);
    let forged = Vote { value: None, ..vote(Some(1), 0) };
    assert_eq!(Evidence::Votes(forged, vote(Some(1), 0)).convicts(&chain), None);
}

proptest! {
    #[test]
    fn whatever_decodes_as_messages_encodes_back(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let bytes: Vec<u8> = std::iter::once(8).chain(bytes).collect();
        if let Ok(frame) = Frame::from_bytes(&bytes) {
            prop_assert_eq!(frame.to_bytes(), bytes);
        }
    }

    /// Whatever messages contain, an engine processes or rejects them.
    #[test]
    fn nothing_that_is_said_stops_an_engine(
        said in prop::collection::vec((0u8..4, any::<u32>(), any::<bool>(), any::<bool>(), 0u8..6, any::<bool>()),
            1..30)
    ) {
        let mut engine = engine(4, 0);
        for from in 1..4 {
            engine.on_up(from);
        }
        for (signer, round, prevotes, nil, slot, signs) in said {
            let round = if nil { round % 12 } else { round };
            let value = (!nil).then_some(Value { slot, digest: Digest([slot; 32]) });
            let kind = if prevotes { Kind::Prevote } else { Kind::Precommit };
            let vote = Vote { height: 1, round, kind, value, signer, signature: Signature([0; 64]) };
            let vote = if signs { vote.sign(&chain(4), &secret(signer)) } else { vote };
            let messages = vec![Message::Vote(vote)];
            engine.on_frame(1, Frame::Rounds(Messages { epoch: 0, height: 1, messages }));
            engine.on_tick();
        }
        let turn = engine.finish_turn();
        prop_assert!(turn.decided.is_empty() || turn.diverged.is_none());
    }
}
