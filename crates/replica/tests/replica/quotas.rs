//! What quotas bound keeps nothing else waiting, accounts have turns, and session keys give way to their owners.

use std::time::Duration;

use ledger::{Applied, Genesis, Ledger, Listing, Outcome, Refusal, Signatures};
use primitives::{
    Address, Amount, AssetControl, AssetId, Body, ClientId, Digest, ExactSide, Fraction, HolderState, Life, Operation,
    Price, Reference, ReferenceKind, SecretKey, Sequence, SessionCap, SessionOperation, SessionScope, SessionSlot,
    SessionTerms, SubBlock, Superblock, Transaction, session_possession_bytes, slot_sequence,
};
use proptest::prelude::*;
use replica::{Input, Mempool, Now, PoolEntry, PoolJob, Proposals, Reject};
use sealing::{EnvelopeTerms, SealedText, SealingKey, seal};

const USD: AssetId = AssetId(0);
const EUR: AssetId = AssetId(1);
const PEOPLE: u8 = 40;
const START: Amount = 1_000_000_000;
/// A size that every rule of least sizes permits.
const LEAST: Amount = 100_000;
/// Stops and revocations of a sub-block, by the rules.
const STOPS: usize = 16;

/// A chain, its pool, and the worker that proposes.
struct World {
    ledger: Ledger,
    pool: Mempool,
    worker: Proposals,
    now_ms: u64,
}

fn key(person: u8) -> SecretKey {
    SecretKey::from_seed([person + 1; 32])
}

fn address(person: u8) -> Address {
    key(person).public().address()
}

fn bot(person: u8, slot: SessionSlot) -> SecretKey {
    SecretKey::from_seed([100 + 3 * person + slot as u8; 32])
}

impl World {
    fn new() -> World {
        World::controlled(Vec::new())
    }

    /// One whose issuers control these assets.
    fn controlled(controls: Vec<(AssetId, AssetControl)>) -> World {
        let assets = ["USD", "EUR"].map(|symbol| Listing::new(symbol, 2, address(0))).to_vec();
        let held = |person| [(address(person), USD, START), (address(person), EUR, START)];
        let balances = (0..PEOPLE).flat_map(held).collect();
        let mu = Fraction::power_of_two(10);
        let genesis = Genesis { chain: 1, fee: 1, mu, assets, balances, controls, ..Genesis::default() };
        let ledger = Ledger::new(&genesis).expect("sound");
        World { ledger, pool: Mempool::new(100_000), worker: Proposals::new(None), now_ms: 1_000 }
    }

    fn sign(&self, secret: &SecretKey, person: u8, sequence: Sequence, operation: Operation) -> Transaction {
        let until = self.ledger.height() + 256;
        Body { chain: 1, account: address(person), sequence, until, operation }.sign(&self.ledger.network(), secret)
    }

    fn admit(&mut self, transaction: Transaction) -> Result<(), Reject> {
        let entry = PoolEntry::new(transaction.id(), self.now_ms, transaction);
        self.pool.admit(entry, &self.ledger)
    }

    fn owner(&mut self, person: u8, sequence: Sequence, operation: Operation) -> Result<(), Reject> {
        self.admit(self.sign(&key(person), person, sequence, operation))
    }

    fn bot(&mut self, person: u8, slot: SessionSlot, number: u64, operation: Operation) -> Result<(), Reject> {
        let sequence = slot_sequence(slot, number);
        self.admit(self.sign(&bot(person, slot), person, sequence, operation))
    }

    /// The next sub-block.
    fn assemble(&mut self) -> Vec<Transaction> {
        self.now_ms += 500;
        let now = Now { since: Duration::from_millis(self.now_ms), wall_ms: self.now_ms };
        let height = self.ledger.height() + 1;
        let job = PoolJob::Assemble { height, proposer: 0, room: Some(4 << 20), count: 100_000, ahead_ms: 0 };
        let Some(Input::Assembled { payload, .. }) = self.worker.perform(job, &mut self.pool, None, now) else {
            panic!("a sub-block")
        };
        self.worker.perform(PoolJob::Decided(height), &mut self.pool, None, now);
        SubBlock::from_payload(0, &payload).expect("well-formed").native
    }

    /// Applies a block of these, and tells the pool.
    fn apply(&mut self, native: Vec<Transaction>) -> Applied {
        let ids: Vec<_> = native.iter().map(Transaction::id).collect();
        let (height, parent) = (self.ledger.height() + 1, self.ledger.last_block());
        let sub_blocks = vec![SubBlock { native, ..SubBlock::default() }];
        let block = Superblock { height, parent, time_ms: height, sub_blocks, ..Superblock::default() };
        let applied = self.ledger.apply(&block, Signatures::Valid, &mut |_| {}).expect("applies");
        replica::settle(&mut self.pool, &self.ledger, &block, &ids, &applied.contracts);
        applied
    }

    /// Assembles and applies; returns what was in the block.
    fn block(&mut self) -> (Vec<Transaction>, Vec<Outcome>) {
        let native = self.assemble();
        let outcomes = self.apply(native.clone()).outcomes;
        (native, outcomes)
    }

    /// Gives an account session keys in slots 1 and 2.
    fn open_sessions(&mut self, person: u8) {
        for slot in [1, 2] {
            let (of, key) = (address(person), bot(person, slot));
            let caps = [USD, EUR].map(|asset| SessionCap { asset, units: START }).into();
            let (until, scope, alive) = (50_000, SessionScope::Trade, 40_000);
            let terms = SessionTerms { slot, key: key.public(), scope, until, alive, caps };
            let bytes = session_possession_bytes(&self.ledger.network(), &of, slot, &terms.key);
            let operation = SessionOperation::Authorize { possession: key.sign(&bytes), terms };
            let sequence = u64::from(slot);
            let transaction = self.sign(&self::key(person), person, sequence, Operation::Session(Box::new(operation)));
            assert_eq!(self.apply(vec![transaction]).outcomes, [Outcome::Applied]);
        }
    }
}

fn session(operation: SessionOperation) -> Operation {
    Operation::Session(Box::new(operation))
}

fn stop(slot: SessionSlot) -> Operation {
    session(SessionOperation::Alive { slot, through: 0 })
}

fn pay(amount: Amount) -> Operation {
    Operation::Pay { to: address(39), asset: USD, amount }
}

fn exact() -> Operation {
    Operation::Exact { sell: EUR, buy: USD, side: ExactSide::Sell, units: LEAST, bound: 1, client: ClientId::NONE }
}

/// An offer for one batch, which asks for too much.
fn absurd(amount: Amount) -> Operation {
    let (limit, life, client) = ("1000000".parse::<Price>().expect("a price"), Life::OneBatch, ClientId::NONE);
    Operation::CreateOffer { sell: USD, buy: EUR, amount, limit, life, client }
}

fn is_payment(transaction: &Transaction) -> bool {
    matches!(transaction.body.operation, Operation::Pay { .. })
}

/// Thousands of stops and exact orders wait, and payments that come after them are in the next block, every time.
#[test]
fn a_full_quota_keeps_nothing_else_waiting() {
    let mut world = World::new();
    world.open_sessions(1);
    for (person, operation) in [(1, stop(1)), (2, exact())] {
        let others = if person == 1 { 1..2 } else { 2..25 };
        let held = others.flat_map(|person| (3..67).map(move |sequence| (person, sequence)));
        let taken: usize = held.map(|(of, at)| usize::from(world.owner(of, at, operation.clone()).is_ok())).sum();
        assert!(taken >= 48, "{taken} wait");
    }
    for round in 1..=3 {
        assert_eq!(world.owner(30, round, pay(round)), Ok(()));
        let (native, outcomes) = world.block();
        let payment = native.iter().position(is_payment).expect("it is in the next block");
        assert_eq!(outcomes[payment], Outcome::Applied);
        let stops = native.iter().filter(|one| matches!(one.body.operation, Operation::Session(_))).count();
        assert!(stops <= STOPS && (round > 1 || native.len() > 1_000), "{stops} of {}", native.len());
    }
}

fn freeze(person: u8) -> Operation {
    let reference = Reference::read(ReferenceKind::Text, "case 7").expect("plain");
    Operation::SetHolder { asset: EUR, account: address(person), state: HolderState::Frozen, reference }
}

/// Nine holders rest as many offers as an account may, and are frozen together. Eight use up the quota: the ninth waits
/// for the next sub-block instead of being refused, and those of holders without offers do not wait.
#[test]
fn a_freeze_waits_for_its_quota_and_one_that_ends_nothing_does_not() {
    let mut world = World::controlled(vec![(EUR, AssetControl::Freezable)]);
    let crowded = 1..=9;
    let limit: Price = "1000000".parse().expect("a price");
    for from in (1..).step_by(64).take((ledger::HELD_OFFERS_MAX / 64) as usize) {
        let offer =
            |person, sequence| world.sign(&key(person), person, sequence, Operation::offer(EUR, USD, LEAST, limit));
        let all = crowded.clone().flat_map(|person| (from..from + 64).map(move |sequence| (person, sequence)));
        let native: Vec<_> = all.map(|(person, sequence)| offer(person, sequence)).collect();
        assert!(world.apply(native).outcomes.iter().all(|outcome| outcome.refusal().is_none()));
    }
    for person in crowded.chain(20..30) {
        assert_eq!(world.owner(0, person.into(), freeze(person)), Ok(()));
    }
    let (native, outcomes) = world.block();
    assert_eq!((native.len(), outcomes), (18, vec![Outcome::Applied; 18]));
    let (native, outcomes) = world.block();
    assert_eq!((native.len(), outcomes), (1, vec![Outcome::Applied]), "the ninth");
    assert_eq!(world.ledger.book().pairs(), 0, "no offer of a frozen holder rests");
}

/// Of two accounts that stop keys, the one that stops many keeps the other one waiting for one turn.
#[test]
fn accounts_have_turns_in_the_queue_of_a_quota() {
    let mut world = World::new();
    [1, 2].iter().for_each(|person| world.open_sessions(*person));
    (3..60).for_each(|at| assert_eq!(world.owner(1, at, stop(1)), Ok(())));
    assert_eq!(world.owner(2, 3, stop(2)), Ok(()));
    let first = world.assemble();
    assert_eq!(first.len(), STOPS);
    assert!(first.iter().any(|one| one.body.account == address(2)), "it came last and is in the first sub-block");
}

/// What a quota has held back could not have been in a block before: it makes no block due.
#[test]
fn age_counts_only_for_what_could_have_been_taken() {
    let mut world = World::new();
    world.open_sessions(1);
    (3..60).for_each(|at| assert_eq!(world.owner(1, at, stop(1)), Ok(())));
    assert_eq!(world.pool.oldest_ms(), Some(world.now_ms));
    world.assemble();
    assert_eq!(world.pool.oldest_ms(), Some(world.now_ms), "it counts from the last sub-block");
}

/// A key that stops itself has voided its other stops: they leave with the block, and pay nothing for their places.
#[test]
fn what_a_block_made_void_leaves_the_pool() {
    let mut world = World::new();
    world.open_sessions(1);
    (1..50).for_each(|number| assert_eq!(world.bot(1, 1, number, stop(1)), Ok(())));
    assert_eq!(world.owner(1, 3, pay(5)), Ok(()));
    let last = world.sign(&bot(1, 1), 1, slot_sequence(1, 60), stop(1));
    assert_eq!(world.apply(vec![last]).outcomes, [Outcome::Applied]);
    assert_eq!(world.pool.len(), 1, "the payment stays");
    // Another validator has proposed another transaction with its number.
    let rival = world.sign(&key(1), 1, 3, pay(6));
    assert_eq!(world.apply(vec![rival]).outcomes, [Outcome::Applied]);
    assert!(world.pool.is_empty() && world.assemble().is_empty());
}

/// A thief of a session key reserves all of the balance for each block. The owner's revocation is admitted and counts,
/// though the thief's last order is in the same block.
#[test]
fn what_a_session_key_reserves_keeps_no_transaction_of_the_owner_out() {
    let mut world = World::new();
    world.open_sessions(1);
    let all = |world: &World| world.ledger.accounts().get(&address(1)).expect("it exists").balance(USD);
    let most = all(&world) - 1;
    assert_eq!(world.bot(1, 1, 1, absurd(most)), Ok(()));
    let in_flight = world.assemble();
    assert_eq!(world.bot(1, 2, 1, absurd(LEAST)), Err(Reject::Refused(Refusal::OVERDRAFT)), "keys count each other");
    let revoke = session(SessionOperation::Revoke { slot: 1 });
    assert_eq!(world.owner(1, 3, revoke), Ok(()));
    let mut native = in_flight;
    native.extend(world.assemble());
    let outcomes = world.apply(native).outcomes;
    assert_eq!(outcomes, [Outcome::Refused(Refusal::OVERDRAFT), Outcome::Applied]);
    assert!(world.pool.is_empty());
}

/// Queued transactions of session keys leave the pool where an owner's needs their units: the latest first, and those
/// that only give units back last.
#[test]
fn queued_transactions_of_session_keys_give_way() {
    let mut world = World::new();
    world.open_sessions(1);
    let balance = world.ledger.accounts().get(&address(1)).expect("it exists").balance(USD);
    assert_eq!(world.bot(1, 1, 1, session(SessionOperation::Alive { slot: 1, through: 49_000 })), Ok(()));
    assert_eq!(world.bot(1, 1, 2, absurd(LEAST)), Ok(()));
    assert_eq!(world.bot(1, 1, 3, absurd(balance - 2 * LEAST)), Ok(()));
    assert_eq!(world.owner(1, 3, pay(balance - 20)), Ok(()));
    let (native, outcomes) = world.block();
    assert!(outcomes.iter().all(|outcome| outcome.refusal().is_none()), "{outcomes:?}");
    let by_keys: Vec<_> = native.iter().filter(|one| !is_payment(one)).map(|one| &one.body.operation).collect();
    assert!(by_keys.iter().all(|operation| matches!(operation, Operation::Session(_))), "{by_keys:?}");
}

#[derive(Clone, Debug)]
enum Move {
    Owner(u8, Amount),
    Bot(SessionSlot, u8, Amount),
    Block,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let amount = || prop_oneof![1..2_000_000u64, 200_000_000..900_000_000u64];
    let of_owner = (0..5u8, amount()).prop_map(|(kind, amount)| Move::Owner(kind, amount));
    let of_bot = (1..3u32, 0..4u8, amount()).prop_map(|(slot, kind, amount)| Move::Bot(slot, kind, amount));
    proptest::collection::vec(prop_oneof![3 => of_owner, 4 => of_bot, 1 => Just(Move::Block)], 1..60)
}

fn operation(kind: u8, amount: Amount, height: u64) -> Operation {
    match kind {
        0 => absurd(amount.max(LEAST)),
        1 => session(SessionOperation::Alive {
            slot: 1 + (amount % 2) as u32,
            through: height + 40_000 + amount % 5_000,
        }),
        2 => Operation::offer(USD, EUR, amount.max(LEAST), Price::ONE),
        3 => exact(),
        _ => pay(amount),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Over histories of an owner and its session keys. The filter removes nothing of what the pool gives, and the pool
    /// refuses no transaction of the owner for want of units that the filter would let stand beside the others.
    #[test]
    fn pool_and_filter_rank_alike(moves in moves()) {
        let mut world = World::new();
        world.open_sessions(1);
        let (mut own, mut numbers) = (3, [0, 1, 1]);
        for step in moves {
            match step {
                Move::Owner(kind, amount) => {
                    let operation = operation(kind, amount, world.ledger.height());
                    let transaction = world.sign(&key(1), 1, own, operation);
                    own += 1;
                    let answer = world.admit(transaction.clone());
                    if answer == Err(Reject::Refused(Refusal::OVERDRAFT)) {
                        let mut trial = World { ledger: world.ledger.clone(), ..World::new() };
                        let mut native = std::mem::replace(&mut world.pool, Mempool::new(10)).take(1_000);
                        native.retain(|entry| primitives::slot_of(entry.transaction.body.sequence) == 0);
                        let mut native: Vec<_> = native.into_iter().map(|entry| entry.transaction).collect();
                        native.push(transaction);
                        let outcomes = trial.apply(native).outcomes;
                        prop_assert!(outcomes.iter().any(|outcome| outcome.refusal().is_some()), "{outcomes:?}");
                        return Ok(());
                    }
                }
                Move::Bot(slot, kind, amount) => {
                    let number = &mut numbers[slot as usize];
                    *number += 1;
                    let (number, operation) = (*number, operation(kind, amount, world.ledger.height()));
                    world.bot(1, slot, number, operation).ok();
                }
                Move::Block => {
                    let (native, outcomes) = world.block();
                    for (one, outcome) in native.iter().zip(&outcomes) {
                        prop_assert!(outcome.refusal().is_none(), "{outcome:?} of {:?}", one.body);
                    }
                }
            }
        }
    }
}

/// An envelope of the smallest size, whose contents nobody can read: a pool looks at none.
fn envelope(drawn: u8) -> Operation {
    let to = SealingKey::parse(&group().sk_to_pk().compress()).expect("a point");
    let terms = EnvelopeTerms {
        network: Digest::default(),
        signer: key(1).public(),
        key: 1,
        payer: address(1),
        sequence: 1,
        until: 100,
    };
    let sealed = seal(&to, &terms, &SealedText(Vec::new()), &[drawn; 32]).expect("it fits");
    Operation::Sealed(Box::new(sealed.to_bytes(1)))
}

fn group() -> blst::min_sig::SecretKey {
    blst::min_sig::SecretKey::key_gen(&[7; 32], &[]).expect("32 bytes are enough")
}

/// The attack: one payer fills the room that a pool has for envelopes, which others then find full.
#[test]
fn a_payer_has_four_envelopes_waiting_and_keeps_nobody_out() {
    let mut world = World::new();
    for number in 1..=4 {
        assert_eq!(world.owner(1, number, envelope(number as u8)), Ok(()));
    }
    let enough = Err(Reject::Refused(Refusal::ENVELOPES_WAIT));
    for number in 5..=60 {
        assert_eq!(world.owner(1, number, envelope(number as u8)), enough);
    }
    assert!(Refusal::ENVELOPES_WAIT.to_string().contains("32 orders"), "it says what to do");
    assert_eq!(world.owner(1, 5, pay(1)), Ok(()), "its number is free, and other operations wait elsewhere");
    for person in 2..40 {
        assert_eq!(world.owner(person, 1, envelope(1)), Ok(()));
    }
    // What was taken gives its place to the next, also where it is put back.
    let taken = world.assemble();
    assert_eq!(taken.iter().filter(|one| matches!(one.body.operation, Operation::Sealed(_))).count(), 42);
    assert_eq!(world.owner(1, 6, envelope(6)), Ok(()));
}
