//! Members' duties in the lane have a share of the pool and of each sub-block that no paid flood takes.

use std::time::Duration;

use ledger::{Genesis, LaneAsset, LaneBls, LaneTerms, Ledger, Listing, Refusal};
use payments::{BridgeOperation, Claim, LaneAnswer, LaneCommittee, StatementKind, halt_digest};
use primitives::{
    Address, AssetId, Body, Fraction, Operation, SecretKey, Sequence, Signature, SubBlock, Transaction, is_lane_duty,
};
use replica::{Input, Mempool, Now, PoolEntry, PoolJob, Proposals, Reject, encode};

const ROOM: usize = 4_096;
/// Transactions that a pool holds.
const LIMIT: usize = 60;

fn key(number: u8) -> SecretKey {
    SecretKey::from_seed([number; 32])
}

/// One member, whose account is that of its first key, with some money; and a payer.
fn ledger() -> Ledger {
    let lane = LaneTerms {
        epoch_heights: 10,
        halt_heights: 3,
        case_deposit: 1,
        lapse_penalty: 0,
        members: vec![vec![key(1).public()]],
        registrars: Vec::new(),
        bls: LaneBls::None,
        accounts: Vec::new(),
        assets: vec![LaneAsset { asset: AssetId(0), least_units: 1, fee: 0, outflow: None }],
        outputs: Vec::new(),
    };
    let assets = vec![Listing::new("USD", 2, key(8).public().address())];
    let balances = [1, 2].map(|person| (key(person).public().address(), AssetId(0), 1_000_000)).to_vec();
    let (lane, mu) = (Some(lane), Fraction::power_of_two(10));
    Ledger::new(&Genesis { chain: 7, fee: 1, mu, assets, balances, lane, ..Genesis::default() }).expect("sound")
}

fn entry(ledger: &Ledger, person: u8, sequence: Sequence, operation: Operation) -> PoolEntry {
    let body = Body { chain: 7, account: key(person).public().address(), sequence, until: 50_000, operation };
    let transaction = body.sign(&ledger.network(), &key(person));
    PoolEntry::new(transaction.id(), 1, transaction)
}

/// A payment, or another one of the same size for each sequence number.
fn pay(ledger: &Ledger, sequence: Sequence) -> PoolEntry {
    entry(ledger, 2, sequence, Operation::Pay { to: Address([9; 20]), asset: AssetId(0), amount: 1 })
}

/// The member's vote to halt.
fn halt(ledger: &Ledger) -> Vec<u8> {
    let lane = ledger.lane().expect("there is one");
    let (network, owner, digest) = (lane.network(), key(3).public(), halt_digest(0, 0));
    let signature = Signature([0; 64]);
    let mut answer = LaneAnswer { validator: 0, size: 1, index: 0, position: 1, signature, path: Vec::new() };
    let committee = LaneCommittee::new(network, 0, vec![vec![key(1).public()]]);
    let claim = Claim { kind: StatementKind::Halt, owner: &owner, digest: &digest };
    answer.signature = key(1).sign(&answer.header(&committee, &claim).expect("one leaf").bytes());
    BridgeOperation::Halt { epoch: 0, round: 0, owner, answer }.encode_duty()
}

fn duty(ledger: &Ledger, person: u8, sequence: Sequence) -> PoolEntry {
    entry(ledger, person, sequence, Operation::Lane(halt(ledger).into()))
}

fn assembled(pool: &mut Mempool) -> Vec<Transaction> {
    let job = PoolJob::Assemble { height: 1, proposer: 0, room: Some(ROOM), count: LIMIT, ahead_ms: 0 };
    let now = Now { since: Duration::from_secs(1), wall_ms: 1_000 };
    let made = Proposals::new(None).perform(job, pool, None, now);
    let Some(Input::Assembled { payload, .. }) = made else { panic!("a sub-block is assembled") };
    SubBlock::from_payload(0, &payload).expect("well-formed").native
}

fn is_duty(transaction: &Transaction) -> bool {
    matches!(&transaction.body.operation, Operation::Lane(post) if is_lane_duty(post))
}

/// The pool is full of transactions that pay, and they fill the block: a duty enters the pool and is in the next
/// sub-block.
#[test]
fn a_paid_flood_keeps_no_duty_out_of_the_pool_and_the_block() {
    let ledger = ledger();
    let mut pool = Mempool::new(LIMIT);
    for sequence in 1..=LIMIT as Sequence {
        assert_eq!(pool.admit(pay(&ledger, sequence), &ledger), Ok(()));
    }
    let more = LIMIT as Sequence + 1;
    assert_eq!(pool.admit(pay(&ledger, more), &ledger), Err(Reject::Full));
    assert_eq!(pool.admit(duty(&ledger, 1, 1), &ledger), Ok(()));
    assert!(matches!(pool.admit(duty(&ledger, 2, more), &ledger), Err(Reject::Refused(_))), "no member");
    assert_eq!(pool.admit(pay(&ledger, more), &ledger), Err(Reject::Full), "a duty makes no room for others");
    let native = assembled(&mut pool);
    assert!(native.first().is_some_and(is_duty));
    let bytes: usize = native.iter().map(|transaction| encode(transaction).len()).sum();
    assert!(bytes <= ROOM && bytes + encode(&native[1]).len() > ROOM, "what duties leave is for others: {bytes}");
    // What is in no block comes first again.
    let entries = native.into_iter().map(|transaction| PoolEntry::new(transaction.id(), 1, transaction));
    pool.restore(entries.collect());
    let again = assembled(&mut pool);
    assert!(again.first().is_some_and(is_duty));
    pool.settle(again.iter().map(|transaction| (transaction.id(), transaction)));
    assert_eq!(pool.admit(pay(&ledger, more), &ledger), Ok(()));
}

/// Duties fill half of a sub-block and no more, so that they keep nobody else out.
#[test]
fn duties_leave_half_of_a_block_to_others() {
    let ledger = ledger();
    let mut pool = Mempool::new(LIMIT);
    for sequence in 1..=20 {
        assert_eq!(pool.admit(duty(&ledger, 1, sequence), &ledger), Ok(()));
        assert_eq!(pool.admit(pay(&ledger, sequence), &ledger), Ok(()));
    }
    let native = assembled(&mut pool);
    let bytes = |of_duties: bool| -> usize {
        native.iter().filter(|of| is_duty(of) == of_duties).map(|transaction| encode(transaction).len()).sum()
    };
    assert!(bytes(true) > ROOM / 4 && bytes(true) <= ROOM / 2, "{}", bytes(true));
    assert!(bytes(false) > ROOM / 4, "{}", bytes(false));
}

/// What alone exceeds a sub-block is refused: it would wait at the head of the pool for ever, and all others behind it.
#[test]
fn what_no_sub_block_has_room_for_does_not_enter_the_pool() {
    let ledger = ledger();
    let mut pool = Mempool::new(LIMIT);
    let most = encode(&duty(&ledger, 1, 1).transaction).len();
    let refused = Err(Reject::Refused(Refusal::LARGER_THAN_SUB_BLOCK));
    // A duty has half of the room.
    for (room, admitted) in [(2 * most - 2, refused), (2 * most - 1, Ok(())), (2 * most, Err(Reject::Waiting))] {
        pool.set_room(room, 4);
        assert_eq!(pool.admit(duty(&ledger, 1, 1), &ledger), admitted, "{room}");
    }
    let large = entry(&ledger, 2, 1, Operation::Lane(vec![2; 4_096].into()));
    pool.set_room(ROOM, 4);
    assert_eq!(pool.admit(large, &ledger), refused);
    assert_eq!(pool.admit(pay(&ledger, 1), &ledger), Ok(()));
    assert_eq!(assembled(&mut pool).len(), 2);
}
