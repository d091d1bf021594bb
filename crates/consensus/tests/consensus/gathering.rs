//! Votes of a large committee travel together: how many frames a validator can be made to send, and that no vote is
//! lost with a link, a crash or a silent validator.

use std::collections::BTreeSet;
use std::sync::Arc;

use consensus::{
    ALL_HEIGHTS, Chain, Contents, Engine, Frame, Index, LogEntry, Members, Rules, Setup, Start, Status, Timer, Turn,
    Vote, Votes,
};
use primitives::{Digest, SecretKey};

const SIZE: Index = 10;
const ME: Index = 0;
/// f+1 of ten: this many equal estimates are relayed.
const RELAYED: Index = 4;

fn engine(size: Index) -> Engine {
    let keys = (0..size).map(|index| SecretKey::from_seed([index + 1; 32]).public()).collect();
    let chain = Chain { genesis: Digest([4; 32]), epoch: 0, heights: ALL_HEIGHTS, keys };
    let rules = Rules::default();
    let benches = Engine::first_benches(&chain.committee(), &rules);
    let signer = Arc::new(SecretKey::from_seed([ME + 1; 32]));
    let check = Arc::new(|_: &[u8]| Some(Contents::default()));
    let setup = Setup { chain, rules, followers: 0, me: ME, signer, check };
    let roots = vec![(0, Digest([1; 32]))];
    let mut engine = Engine::new(setup, Start { height: 0, superblock: Digest::default(), benches, applied: 0, roots });
    (1..size).for_each(|peer| engine.on_up(peer));
    (1..size).for_each(|peer| engine.on_frame(peer, Frame::Status(Status::default())));
    engine.finish_turn();
    engine
}

fn estimate(slot: Index) -> Vote {
    Vote::Estimate { slot, round: 1, value: false }
}

fn votes_in(turn: &Turn) -> Vec<(Members, BTreeSet<Vote>)> {
    let votes = turn.sends.iter().filter_map(|(to, frame)| match frame {
        Frame::Votes(votes) => Some((*to, votes.unpack().into_iter().collect())),
        _ => None,
    });
    votes.collect()
}

/// Gives the engine an estimate in a frame of its own, and ends the turn.
fn hear(engine: &mut Engine, from: Index, vote: Vote) -> Turn {
    engine.on_frame(from, Frame::Votes(Votes::pack(0, 1, [vote])));
    engine.finish_turn()
}

/// f+1 validators send the estimates of these slots, each in a frame of its own; returns the turns.
fn hear_all(engine: &mut Engine, slots: std::ops::Range<Index>) -> Vec<Turn> {
    slots
        .flat_map(|slot| (1..=RELAYED).map(move |from| (from, slot)))
        .map(|(f, s)| hear(engine, f, estimate(s)))
        .collect()
}

#[test]
fn who_sends_a_vote_a_frame_gets_no_frame_for_each() {
    let mut engine = engine(SIZE);
    let turns = hear_all(&mut engine, 0..SIZE - 1);
    assert!(turns.iter().all(|turn| votes_in(turn).is_empty()), "a slot is missing, and the window is not over");
    // What waits is in the log already: a crash now loses nothing.
    let logged = turns.iter().flat_map(|turn| &turn.entries).filter(|(_, entry)| matches!(entry, LogEntry::Voted(_)));
    assert_eq!(logged.count(), usize::from(SIZE) - 1);
    let turns = hear_all(&mut engine, SIZE - 1..SIZE);
    let sent: Vec<_> = turns.iter().flat_map(votes_in).collect();
    let all: BTreeSet<Vote> = (0..SIZE).map(estimate).collect();
    assert_eq!(sent, [((1..SIZE).collect(), all)], "the last slot of the step takes all along, in one frame to all");
}

#[test]
fn what_waits_travels_when_the_window_is_over_and_once() {
    let mut engine = engine(SIZE);
    let turns = hear_all(&mut engine, 0..3);
    let timers: Vec<_> = turns.iter().flat_map(|turn| turn.timers.clone()).collect();
    let [(1, timer @ Timer::Votes { .. })] = timers[..] else { panic!("one window: {timers:?}") };
    engine.on_timer(1, timer);
    let sent = votes_in(&engine.finish_turn());
    assert_eq!(sent, [((1..SIZE).collect(), (0..3).map(estimate).collect())]);
    // The next votes have a window of their own: that one's timer ends nothing, though it fires again.
    let turns = hear_all(&mut engine, 3..4);
    engine.on_timer(1, timer);
    assert!(votes_in(&engine.finish_turn()).is_empty());
    let next = turns.iter().find_map(|turn| turn.timers.first().copied()).expect("a window has begun");
    engine.on_timer(next.0, next.1);
    assert_eq!(votes_in(&engine.finish_turn())[0].1, [estimate(3)].into());
}

#[test]
fn a_link_that_comes_up_is_sent_what_waits() {
    let mut engine = engine(SIZE);
    hear_all(&mut engine, 0..3);
    engine.on_down(5);
    engine.on_up(5);
    engine.on_frame(5, Frame::Status(Status::default()));
    let sent = votes_in(&engine.finish_turn());
    assert_eq!(sent, [(Members::from_iter([5]), (0..3).map(estimate).collect())]);
}

#[test]
fn a_small_committee_waits_for_nothing() {
    let mut engine = engine(4);
    let sent: Vec<_> = (1..=2).flat_map(|from| votes_in(&hear(&mut engine, from, estimate(3)))).collect();
    assert_eq!(sent, [((1..4).collect(), [estimate(3)].into())]);
}
