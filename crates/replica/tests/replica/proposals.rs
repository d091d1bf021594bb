//! What the worker on the pool gives out and takes back: no transaction is in two places, and none is lost.

use crate::chain;
use std::time::Duration;

use crate::chain::{entry, genesis, pay};
use ledger::{Ledger, Signatures};
use primitives::{Digest, Evidence, Height, SecretKey, Sequence, SubBlock, Superblock};
use replica::{Input, Mempool, Now, PoolJob, Proposals, Reject};

const ROOM: usize = 100_000;

fn now(milliseconds: u64) -> Now {
    Now { since: Duration::from_millis(milliseconds), wall_ms: 1_000_000 + milliseconds }
}

/// A pool with the payer's first transactions, which end with the blocks given.
fn pool_of(ledger: &Ledger, ends: &[Height]) -> Mempool {
    let mut pool = Mempool::new(100);
    for (sequence, until) in (1..).zip(ends) {
        assert_eq!(pool.admit(entry(ledger, sequence, *until), ledger), Ok(()));
    }
    pool
}

fn ledger() -> Ledger {
    Ledger::new(&genesis()).expect("sound")
}

fn sequences(payload: &[u8]) -> Vec<Sequence> {
    let sub_block = SubBlock::from_payload(0, payload).expect("well-formed");
    sub_block.native.iter().map(|transaction| transaction.body.sequence).collect()
}

fn assembled(worker: &mut Proposals, pool: &mut Mempool, height: Height, count: usize) -> Vec<Sequence> {
    let job = PoolJob::Assemble { height, proposer: 0, room: Some(ROOM), count, ahead_ms: 0 };
    match worker.perform(job, pool, None, now(5)) {
        Some(Input::Assembled { height: of, payload }) => {
            assert_eq!(of, height);
            sequences(&payload)
        }
        other => panic!("a sub-block: {other:?}"),
    }
}

fn forwarded(worker: &mut Proposals, pool: &mut Mempool, at_ms: u64, count: usize) -> Vec<Sequence> {
    let job = PoolJob::Forward { to: 2, proposer: 1, room: ROOM, count, ahead_ms: 0 };
    match worker.perform(job, pool, None, now(at_ms)) {
        Some(Input::HandedOver { to: 2, payload, count }) => {
            let given = sequences(&payload);
            assert_eq!(given.len(), count);
            given
        }
        other => panic!("transactions for another: {other:?}"),
    }
}

#[test]
fn what_is_assembled_is_given_once_until_it_is_restored() {
    let ledger = ledger();
    let (mut pool, mut worker) = (pool_of(&ledger, &[50; 5]), Proposals::new(None));
    assert_eq!(assembled(&mut worker, &mut pool, 1, 3), [1, 2, 3]);
    assert_eq!(assembled(&mut worker, &mut pool, 2, 3), [4, 5]);
    assert_eq!(assembled(&mut worker, &mut pool, 3, 3), [] as [Sequence; 0]);
    assert_eq!((pool.len(), pool.ready()), (5, 0), "all are still pending");
    assert!(worker.perform(PoolJob::Restore(1), &mut pool, None, now(6)).is_none());
    assert_eq!(assembled(&mut worker, &mut pool, 4, 9), [1, 2, 3], "in their order, before later ones");
    worker.perform(PoolJob::Restore(1), &mut pool, None, now(7));
    assert_eq!(pool.ready(), 0, "nothing is restored twice");
}

#[test]
fn what_is_decided_cannot_be_restored() {
    let ledger = ledger();
    let (mut pool, mut worker) = (pool_of(&ledger, &[50; 2]), Proposals::new(None));
    assembled(&mut worker, &mut pool, 1, 9);
    assert!(worker.perform(PoolJob::Decided(1), &mut pool, None, now(6)).is_none());
    worker.perform(PoolJob::Restore(1), &mut pool, None, now(7));
    assert_eq!(pool.ready(), 0);
}

/// A committee that changes may ask for a height again: what the first answer holds goes back before the second.
#[test]
fn a_height_that_is_asked_for_twice_gives_its_transactions_back() {
    let ledger = ledger();
    let (mut pool, mut worker) = (pool_of(&ledger, &[50; 3]), Proposals::new(None));
    assert_eq!(assembled(&mut worker, &mut pool, 1, 2), [1, 2]);
    assert_eq!(assembled(&mut worker, &mut pool, 1, 2), [3]);
    assert_eq!(assembled(&mut worker, &mut pool, 2, 9), [1, 2]);
}

#[test]
fn a_sub_block_is_empty_without_room_and_keeps_to_its_room() {
    let ledger = ledger();
    let (mut pool, mut worker) = (pool_of(&ledger, &[50; 5]), Proposals::new(None));
    let job = |room| PoolJob::Assemble { height: 1, proposer: 3, room, count: 9, ahead_ms: -40 };
    let Some(Input::Assembled { payload, .. }) = worker.perform(job(None), &mut pool, None, now(5)) else {
        panic!("it is answered")
    };
    let empty = SubBlock::from_payload(3, &payload).expect("well-formed");
    assert_eq!((empty.native.len(), empty.time_ms), (0, 1_000_005 - 40), "by the committee's clocks");
    let one = replica::encode(&pay(&ledger, 1, 50)).len();
    for (room, expected) in [(one - 1, 0), (one, 1), (2 * one, 2), (4 * one - 1, 3)] {
        let Some(Input::Assembled { payload, .. }) = worker.perform(job(Some(room)), &mut pool, None, now(6)) else {
            panic!("it is answered")
        };
        let given = sequences(&payload);
        assert_eq!(given.len(), expected, "{room} bytes for transactions of {one}");
        worker.perform(PoolJob::Restore(1), &mut pool, None, now(7));
    }
    assert_eq!(pool.ready(), 5);
}

#[test]
fn what_is_forwarded_comes_back_when_nobody_includes_it() {
    let ledger = ledger();
    let (mut pool, mut worker) = (pool_of(&ledger, &[50; 4]), Proposals::new(None));
    assert_eq!(forwarded(&mut worker, &mut pool, 100, 2), [1, 2]);
    assert_eq!(forwarded(&mut worker, &mut pool, 200, 1), [3]);
    assert_eq!(assembled(&mut worker, &mut pool, 1, 9), [4], "what another has is not proposed here");
    let mut reclaim = |before_ms| worker.perform(PoolJob::Reclaim { before_ms }, &mut pool, Some(&ledger), now(900));
    assert!(reclaim(100).is_none(), "at that time and not before it");
    assert!(matches!(reclaim(101), Some(Input::TakenBack)));
    assert!(reclaim(101).is_none(), "once");
    assert_eq!(assembled(&mut worker, &mut pool, 2, 9), [1, 2]);
}

#[test]
fn what_others_have_included_does_not_come_back() {
    let mut ledger = ledger();
    let (mut pool, mut worker) = (pool_of(&ledger, &[50; 2]), Proposals::new(None));
    forwarded(&mut worker, &mut pool, 100, 2);
    let native = vec![pay(&ledger, 2, 50)];
    let included = [(native[0].id(), native[0].clone())];
    let sub_blocks = vec![SubBlock { native, ..SubBlock::default() }];
    let block = Superblock { height: 1, parent: ledger.last_block(), sub_blocks, ..Superblock::default() };
    ledger.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies");
    pool.settle(included.iter().map(|(id, transaction)| (*id, transaction)));
    let job = PoolJob::Reclaim { before_ms: 500 };
    assert!(worker.needs_ledger(&job));
    assert!(matches!(worker.perform(job, &mut pool, Some(&ledger), now(900)), Some(Input::TakenBack)));
    assert_eq!(assembled(&mut worker, &mut pool, 2, 9), [1]);
    assert_eq!(pool.len(), 1);
}

/// With the ledger at hand, what can no longer be valid is dropped instead of being proposed for ever.
#[test]
fn what_has_become_void_is_dropped_when_it_is_taken_back() {
    let ledger = ledger();
    let (mut pool, mut worker) = (pool_of(&ledger, &[1, 50]), Proposals::new(None));
    forwarded(&mut worker, &mut pool, 100, 2);
    let mut later = Ledger::new(&genesis()).expect("sound");
    for height in 1..=2 {
        let block = Superblock { height, parent: later.last_block(), ..Superblock::default() };
        later.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies");
    }
    worker.perform(PoolJob::Reclaim { before_ms: 500 }, &mut pool, Some(&later), now(900));
    assert_eq!(assembled(&mut worker, &mut pool, 3, 9), [2], "the first ended with block 1");
    assert_eq!(pool.len(), 1);
    assert!(matches!(pool.admit(entry(&later, 2, 50), &later), Err(Reject::Waiting)), "{}", pool.len());
}

#[test]
fn a_validator_without_an_account_accuses_nobody() {
    let ledger = ledger();
    let (mut pool, mut worker) = (pool_of(&ledger, &[]), Proposals::new(None));
    let signed = |byte: u8| primitives::Committed {
        superblock: Digest([byte; 32]),
        root: Digest([byte; 32]),
        signature: SecretKey::from_seed([byte; 32]).sign(&[byte]),
    };
    let contradiction = primitives::Contradiction::Commits([signed(1), signed(2)]);
    let evidence = Evidence { epoch: 0, member: 1, height: 5, contradiction };
    worker.perform(PoolJob::Note(Box::new(evidence)), &mut pool, None, now(1));
    assert!(worker.is_content() && !worker.needs_ledger(&PoolJob::Accuse));
    worker.perform(PoolJob::Accuse, &mut pool, Some(&ledger), now(2));
    assert!(pool.is_empty());
    // With an account it is noted, and found to be false by the ledger.
    let mut accuser = Proposals::new(Some(chain::payer()));
    accuser.perform(PoolJob::Note(Box::new(evidence)), &mut pool, None, now(3));
    assert!(!accuser.is_content() && accuser.needs_ledger(&PoolJob::Accuse));
    accuser.perform(PoolJob::Accuse, &mut pool, None, now(4));
    assert!(!accuser.is_content(), "without the ledger nothing is judged");
    accuser.perform(PoolJob::Accuse, &mut pool, Some(&ledger), now(5));
    assert!(accuser.is_content() && pool.is_empty());
}
