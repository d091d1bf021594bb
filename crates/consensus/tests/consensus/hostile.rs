//! What one faulty validator cannot do to another one: crash it, exhaust its memory, provoke a storm of answers, or
//! make it believe a false claim.

use consensus::tendermint::{self, Kind, Message, Messages, Value};
use consensus::{
    ALL_HEIGHTS, Certificate, Chain, Commit, Contents, Engine, Frame, HEIGHT_MAX, Index, Members, Payload, Proposal,
    Refused, Rules, Setup, Start, Statement, Status, Turn, Vote, Votes, payload_digest,
};
use primitives::{Digest, SecretKey, Signature};
use std::sync::Arc;

const ME: Index = 0;
const LIAR: Index = 3;

fn secret(index: Index) -> SecretKey {
    SecretKey::from_seed([index + 1; 32])
}

fn chain() -> Chain {
    let keys = (0..4).map(|index| secret(index).public()).collect();
    Chain { genesis: Digest([4; 32]), epoch: 0, heights: ALL_HEIGHTS, keys }
}

fn engine(rules: Rules) -> Engine {
    let chain = chain();
    let benches = Engine::first_benches(&chain.committee(), &rules);
    let setup = Setup {
        chain,
        rules,
        followers: 1,
        me: ME,
        signer: Arc::new(secret(ME)),
        check: std::sync::Arc::new(|bytes| Some(Contents { transactions: bytes.len(), ..Contents::default() })),
    };
    let roots = vec![(0, Digest([1; 32]))];
    let mut engine = Engine::new(setup, Start { height: 0, superblock: Digest::default(), benches, applied: 0, roots });
    (1..4).for_each(|peer| engine.on_up(peer));
    engine.finish_turn();
    engine
}

fn status(decided: u64, certified: u64) -> Frame {
    Frame::Status(Status { decided, certified, live: decided, ..Status::default() })
}

/// Bytes of a turn that go to one validator.
fn bytes_to(turn: &Turn, peer: Index) -> usize {
    let to = |(to, _): &&(Members, Frame)| to.contains(peer);
    turn.sends.iter().filter(to).map(|(_, frame)| frame.to_bytes().len()).sum()
}

#[test]
fn an_impossible_status_crashes_nobody() {
    for rules in [Rules::default(), Rules::tendermint()] {
        let lies = [(u64::MAX, u64::MAX), (u64::MAX, 0), (HEIGHT_MAX + 1, 0), (5, 6), (0, u64::MAX)];
        for (decided, certified) in lies {
            for live in [0, decided, u64::MAX] {
                let mut engine = engine(rules);
                let lie = Status { decided, certified, live, waits: true, asks: true, epoch: 0 };
                engine.on_frame(LIAR, Frame::Status(lie));
                assert_eq!(engine.finish_turn().refused, [(LIAR, Refused::Status)], "{lie:?}");
                // Everything that aggregates what others reported.
                engine.substitute(0);
                engine.on_tick();
                engine.on_frame(LIAR, Frame::SyncRequest { from: 1, to: u64::MAX });
                engine.on_frame(LIAR, Frame::SyncRequest { from: u64::MAX, to: u64::MAX });
                engine.on_frame(LIAR, Frame::Fetch { height: u64::MAX, slot: 255, digest: Digest::default() });
                assert_eq!(engine.certified_anywhere(), 0);
            }
        }
        // A possible status is accepted, and does no harm either.
        let mut engine = engine(rules);
        engine.rejoin();
        let most = Status { decided: HEIGHT_MAX, certified: HEIGHT_MAX, live: HEIGHT_MAX, ..Status::default() };
        (1..4).for_each(|peer| engine.on_frame(peer, Frame::Status(most)));
        (0..50).for_each(|_| engine.on_tick());
        engine.substitute(1);
        assert!(engine.finish_turn().refused.is_empty() && engine.is_silent());
    }
}

#[test]
fn one_liar_makes_nobody_believe_that_it_lags() {
    let mut engine = engine(Rules::default());
    engine.on_frame(LIAR, status(1_000_000, 1_000_000));
    assert_eq!(engine.certified_anywhere(), 0, "one of four may lie");
    (0..400).for_each(|_| engine.on_tick());
    assert!(!engine.is_stranded(), "no state is fetched because of a false claim");
    engine.on_frame(1, status(7, 7));
    assert_eq!(engine.certified_anywhere(), 7, "one of two is correct, so the lower height is surely reached");
    engine.on_frame(4, status(9, 9));
    assert_eq!(engine.certified_anywhere(), 7, "a follower does not count");
    engine.on_down(1);
    assert_eq!(engine.certified_anywhere(), 0, "nor does a disconnected one");
}

fn round_proposal(round: u32, digest: Digest) -> Message {
    let value = Value { slot: LIAR, digest };
    let unsigned = tendermint::Proposal {
        height: 1,
        round,
        value,
        valid_round: None,
        signer: LIAR,
        signature: Signature([0; 64]),
    };
    Message::Proposal(unsigned.sign(&chain(), &secret(LIAR)))
}

fn in_rounds(messages: Vec<Message>) -> Frame {
    Frame::Rounds(Messages { epoch: 0, height: 1, messages })
}

#[test]
fn proposals_of_rounds_to_come_fill_neither_memory_nor_log() {
    let mut engine = engine(Rules::tendermint());
    (1..4).for_each(|peer| engine.on_frame(peer, status(0, 0)));
    engine.finish_turn();
    // The faulty validator proposes in rounds 2, 6, 10, … of height 1: two values each, with votes for every round.
    let (mut entries, mut bytes) = (0, 0);
    for turn in 0..500u32 {
        let round = 2 + 4 * turn;
        for of in [0u8, 1] {
            let payload: Payload = [&round.to_le_bytes()[..], &[of; 5_000]].concat().into();
            let digest = payload_digest(&payload);
            let vote = tendermint::Vote {
                height: 1,
                round,
                kind: Kind::Prevote,
                value: Some(Value { slot: LIAR, digest }),
                signer: LIAR,
                signature: Signature([0; 64]),
            };
            let vote = Message::Vote(vote.sign(&chain(), &secret(LIAR)));
            engine.on_frame(LIAR, in_rounds(vec![round_proposal(round, digest), vote]));
            let proposal = Proposal::sign(&chain(), 1, LIAR, &payload, &secret(LIAR));
            engine.on_frame(LIAR, Frame::Proposal(proposal, payload));
        }
        let turn = engine.finish_turn();
        entries += turn.entries.len();
        bytes += turn.entries.iter().map(|entry| borsh::to_vec(entry).expect("encodes").len()).sum::<usize>();
    }
    assert!(entries < 30 && bytes < 40_000, "{entries} entries of {bytes} bytes");
}

#[test]
fn who_lags_by_many_rounds_follows_a_certificate() {
    let mut engine = engine(Rules::tendermint());
    (1..4).for_each(|peer| engine.on_frame(peer, status(0, 0)));
    let vote = |signer: Index, round: u32| {
        let (kind, signature) = (Kind::Prevote, Signature([0; 64]));
        let vote = tendermint::Vote { height: 1, round, kind, value: None, signer, signature };
        vote.sign(&chain(), &secret(signer))
    };
    engine.set_waiting(true);
    engine.finish_turn();
    for signer in 1..3 {
        engine.on_frame(signer, in_rounds(vec![Message::Vote(vote(signer, 70))]));
    }
    assert_eq!(engine.round(), Some(0), "votes of rounds far ahead are not kept");
    let entry = tendermint::EntryProof { round: 70, skips: true, votes: vec![vote(1, 70), vote(2, 70)] };
    engine.on_frame(1, in_rounds(vec![Message::Entry(entry)]));
    assert_eq!(engine.round(), Some(70));
}

#[test]
fn answers_on_demand_are_metered() {
    let rules = Rules { payload_bytes: 50_000, ..Rules::default() };
    let mut engine = engine(rules);
    (1..4).for_each(|peer| engine.on_frame(peer, status(0, 0)));
    for height in 1..=4 {
        engine.propose(height, vec![height as u8; 50_000].into());
    }
    engine.finish_turn();
    let digest = payload_digest(&[1; 50_000]);
    let (mut fetched, mut replayed) = (0, 0);
    for _ in 0..2_000 {
        engine.on_frame(LIAR, Frame::Fetch { height: 1, slot: ME, digest });
        fetched += bytes_to(&engine.finish_turn(), LIAR);
    }
    for flip in 0..2_000u64 {
        engine.on_frame(2, Frame::Status(Status { epoch: flip % 2, ..Status::default() }));
        replayed += bytes_to(&engine.finish_turn(), 2);
    }
    let allowance = 16 * (50_000 + (64 << 10));
    assert!(fetched > 500_000 && fetched <= allowance, "{fetched} bytes for 84 kB of requests");
    assert!(replayed > 200_000 && replayed <= allowance, "{replayed} bytes for 58 kB of statuses");
    // A peer that waits gets more; a peer that asked for nothing gets everything.
    (0..8).for_each(|_| engine.on_tick());
    engine.finish_turn();
    engine.on_frame(LIAR, Frame::Fetch { height: 1, slot: ME, digest });
    assert!(bytes_to(&engine.finish_turn(), LIAR) > 50_000);
}

#[test]
fn repeated_votes_are_fetched_for_once() {
    let mut engine = engine(Rules::default());
    (1..4).for_each(|peer| engine.on_frame(peer, status(0, 0)));
    let payload: Payload = b"first".to_vec().into();
    let proposal = Proposal::sign(&chain(), 1, 2, &payload, &secret(2));
    engine.on_frame(2, Frame::Proposal(proposal, payload));
    engine.finish_turn();
    let echoes = (0..10_000u32).map(|number| {
        let digest = payload_digest(&number.to_le_bytes());
        Vote::Echo { slot: 2, digest }
    });
    engine.on_frame(LIAR, Frame::Votes(Votes::pack(0, 1, echoes)));
    let fetches = engine.finish_turn().sends.iter().filter(|(_, frame)| matches!(frame, Frame::Fetch { .. })).count();
    assert!(fetches <= 1, "{fetches} fetches for one frame");
}

#[test]
fn a_thousand_contradictions_are_one_proof() {
    let mut engine = engine(Rules::default());
    let commit = |root: u64| {
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&root.to_le_bytes());
        let statement = Statement { height: 1, superblock: Digest([9; 32]), root: Digest(digest) };
        Frame::Commit(Commit::sign(&chain(), statement, LIAR, &secret(LIAR)))
    };
    (0..1_000).for_each(|root| engine.on_frame(LIAR, commit(root)));
    assert_eq!(engine.finish_turn().evidence.len(), 1);
}

/// A validator without others, which decides what it proposes at once.
fn lone() -> (Setup, Start) {
    let chain = Chain { keys: vec![secret(ME).public()], ..chain() };
    let rules = Rules::default();
    let benches = Engine::first_benches(&chain.committee(), &rules);
    let check = Arc::new(|bytes: &[u8]| Some(Contents { transactions: bytes.len(), ..Contents::default() }));
    let setup = Setup { chain, rules, followers: 1, me: ME, signer: Arc::new(secret(ME)), check };
    (setup, Start { height: 0, superblock: Digest::default(), benches, applied: 0, roots: vec![] })
}

/// Superblocks wait for the ledger in memory: others that decide faster must not fill it.
#[test]
fn a_validator_with_a_slow_ledger_decides_so_far_ahead_and_no_further() {
    let (setup, start) = lone();
    let horizon = setup.rules.horizon();
    let mut engine = Engine::new(setup, start);
    let propose = |engine: &mut Engine, height| {
        engine.propose(height, b"a block".to_vec().into());
        engine.finish_turn().decided.len()
    };
    let decided: usize = (1..=128 + horizon).map(|height| propose(&mut engine, height)).sum();
    assert_eq!((decided, engine.decided()), (128, 128));
    // Every height that the ledger applies makes room for another, and others hear of it.
    engine.on_applied(3);
    let turn = engine.finish_turn();
    assert_eq!(turn.decided.iter().map(|superblock| superblock.height).collect::<Vec<_>>(), [129, 130, 131]);
    assert_eq!(engine.decided(), 131);
}

/// With more than f faulty validators, a certificate can name a superblock other than the one decided here. The alarm
/// must be raised whichever arrives first.
#[test]
fn a_certificate_that_comes_before_the_decision_is_compared_with_it() {
    let (setup, start) = lone();
    let lone = setup.chain.clone();
    let statement = Statement { height: 1, superblock: Digest([9; 32]), root: Digest([1; 32]) };
    let commit = Commit::sign(&lone, statement, ME, &secret(ME));
    let certificate = Certificate { epoch: 0, statement, signatures: vec![(ME, commit.signature)] };
    for certificate_first in [true, false] {
        // The root is not known yet, so this validator does not commit.
        let mut engine = Engine::new(setup.clone(), start.clone());
        if certificate_first {
            engine.on_frame(1, Frame::Certificate(certificate.clone()));
        }
        engine.propose(1, b"ours".to_vec().into());
        if !certificate_first {
            engine.on_frame(1, Frame::Certificate(certificate.clone()));
        }
        let diverged = engine.finish_turn().diverged.expect("the alarm");
        assert_eq!((diverged.height, diverged.theirs), (1, statement));
        assert_ne!(diverged.ours.superblock, statement.superblock);
    }
}
