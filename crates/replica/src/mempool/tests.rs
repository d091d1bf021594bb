//! The pool, transaction by transaction.

use super::*;
use ledger::{CharterTerms, Genesis, Listing, Signatures};
use primitives::venue::{
    OrderLife, OrderNumber, OrderSignature, SelfTradeRule, Settle, SettledFill, SettledOrder, VenueOperation,
    VenueOperator, VenueOrder, VenueSide,
};
use primitives::{
    AssetId, Body, Fraction, MAX_ISSUED, Operation, Parameter, Price, ProposedChange, PublicKey, SecretKey, SubBlock,
    Superblock,
};

fn key() -> SecretKey {
    SecretKey::from_seed([1; 32])
}

fn ledger(fee: Amount) -> Ledger {
    let me = key().public().address();
    let assets = vec![Listing::new("USD", 2, me), Listing::new("EUR", 2, Address([5; 20]))];
    let balances = vec![(me, AssetId(0), 1_000), (me, AssetId(1), 1_000)];
    let (epsilon, mu) = (Fraction::ZERO, Fraction::power_of_two(10));
    Ledger::new(&Genesis { chain: 1, fee, epsilon, mu, assets, balances, ..Genesis::default() }).expect("sound")
}

fn entry(sequence: Sequence, operation: Operation) -> PoolEntry {
    entry_of(&key(), sequence, operation)
}

fn entry_of(key: &SecretKey, sequence: Sequence, operation: Operation) -> PoolEntry {
    let body = Body { chain: 1, account: key.public().address(), sequence, until: 50_000, operation };
    let transaction = body.sign(&primitives::Digest::default(), key);
    PoolEntry::new(transaction.id(), sequence, transaction)
}

fn pay(sequence: Sequence, asset: u32, amount: Amount) -> PoolEntry {
    entry(sequence, Operation::Pay { to: Address([9; 20]), asset: AssetId(asset), amount })
}

fn refused(refusal: Refusal) -> Result<(), Reject> {
    Err(Reject::Refused(refusal))
}

#[test]
fn what_waits_is_reserved_and_released() {
    let ledger = ledger(1);
    let mut pool = Mempool::new(100);
    assert_eq!(pool.admit(pay(1, 0, 900), &ledger), Ok(()));
    assert_eq!(pool.admit(pay(2, 0, 99), &ledger), refused(Refusal::OVERDRAFT), "900 + 99 and two fees");
    assert_eq!(pool.admit(pay(2, 0, 98), &ledger), Ok(()));
    assert_eq!(pool.admit(pay(3, 1, 5), &ledger), refused(Refusal::OVERDRAFT), "nothing is left for a fee");
    let taken = pool.take(10);
    assert_eq!((taken.len(), pool.len(), pool.ready()), (2, 2, 0));
    assert_eq!(
        pool.admit(pay(3, 1, 5), &ledger),
        refused(Refusal::OVERDRAFT),
        "still reserved while the block is applied"
    );
    pool.settle(taken.iter().map(|entry| (entry.id, &entry.transaction)));
    assert!(pool.is_empty() && pool.reserved.is_empty() && pool.sequences.is_empty());
    assert_eq!(pool.admit(pay(3, 1, 5), &ledger), Ok(()));
}

/// It would wait for ever at the head of the queue, and hold up all behind it.
#[test]
fn what_alone_exceeds_a_sub_block_or_a_quota_is_refused_at_admission() {
    let ledger = ledger(0);
    let mut pool = Mempool::new(8);
    let bytes = borsh::object_length(&pay(1, 0, 1).transaction).expect("plain data");
    pool.set_room(bytes - 1, 4);
    assert_eq!(pool.admit(pay(1, 0, 1), &ledger), refused(Refusal::LARGER_THAN_SUB_BLOCK));
    pool.set_room(bytes, 4);
    assert_eq!(pool.admit(pay(1, 0, 1), &ledger), Ok(()));
    let post = |first: u8| entry(2, Operation::Lane(vec![first; 200].into()));
    let post_bytes = borsh::object_length(&post(1).transaction).expect("plain data");
    pool.set_room(post_bytes, 4);
    assert_eq!(pool.admit(post(1), &ledger), refused(Refusal::NO_LANE), "it fits");
    assert_eq!(
        pool.admit(post(primitives::LANE_DUTY), &ledger),
        refused(Refusal::LARGER_THAN_SUB_BLOCK),
        "a duty has half"
    );
}

#[test]
fn conflicts_stop_at_the_door() {
    let ledger = ledger(0);
    let mut pool = Mempool::new(8);
    let first = pay(1, 0, 1);
    assert_eq!(pool.admit(first.clone(), &ledger), Ok(()));
    assert_eq!(pool.admit(first, &ledger), Err(Reject::Waiting));
    assert_eq!(pool.admit(pay(1, 0, 2), &ledger), refused(Refusal::SEQUENCE_CONFLICT));
    let me = key().public().address();
    let rotate = |sequence| entry(sequence, Operation::CreateAccount { account: me, key: PublicKey([7; 32]) });
    assert_eq!(pool.admit(rotate(2), &ledger), Ok(()));
    assert_eq!(pool.admit(rotate(3), &ledger), refused(Refusal::KEY_CONFLICT));
    let new_key = SecretKey::from_seed([3; 32]).public();
    let create = |sequence| entry(sequence, Operation::CreateAccount { account: new_key.address(), key: new_key });
    assert_eq!(pool.admit(create(4), &ledger), Ok(()));
    assert_eq!(pool.admit(create(5), &ledger), Ok(()), "the account is the same, whoever creates it");
    let issue = |sequence| entry(sequence, Operation::Issue { to: me, asset: AssetId(0), amount: MAX_ISSUED / 2 });
    assert_eq!(pool.admit(issue(6), &ledger), Ok(()));
    assert_eq!(pool.admit(issue(7), &ledger), refused(Refusal::ISSUE_TOO_LARGE));
    let nothing = entry(8, Operation::cancel(AssetId(0), AssetId(1), Price::ONE, 1));
    assert_eq!(pool.admit(nothing, &ledger), refused(Refusal::UNKNOWN_OFFER));
}

#[test]
fn the_pool_is_bounded_and_first_in_first_out() {
    let ledger = ledger(0);
    let mut pool = Mempool::new(3);
    for sequence in [3, 1, 2] {
        assert_eq!(pool.admit(pay(sequence, 0, 1), &ledger), Ok(()));
    }
    assert_eq!(pool.admit(pay(4, 0, 1), &ledger), Err(Reject::Full));
    assert_eq!(pool.oldest_ms(), Some(3));
    assert_eq!(pool.highest(&key().public().address(), 0), Some(3));
    let order: Vec<u64> = pool.take(2).iter().map(|entry| entry.transaction.body.sequence).collect();
    assert_eq!(order, [3, 1]);
}

#[test]
fn what_is_handed_over_is_given_again_only_when_it_is_late() {
    let ledger = ledger(0);
    let mut pool = Mempool::new(8);
    for sequence in 1..=4 {
        assert_eq!(pool.admit(pay(sequence, 0, 1), &ledger), Ok(()));
    }
    let (first, second) = (pool.take(2), pool.take(1));
    pool.mark_forwarded(first.clone(), 10);
    pool.mark_forwarded(second, 20);
    assert_eq!((pool.len(), pool.ready(), pool.reclaim(10, None)), (4, 1, 0));
    assert_eq!(pool.admit(first[0].clone(), &ledger), Err(Reject::Waiting));
    // The first of them is in a block; the second one is late.
    pool.settle(first[..1].iter().map(|entry| (entry.id, &entry.transaction)));
    assert_eq!(pool.reclaim(15, None), 1);
    let sequences = |entries: Vec<PoolEntry>| entries.iter().map(|e| e.transaction.body.sequence).collect::<Vec<_>>();
    assert_eq!(sequences(pool.take(9)), [2, 4]);
    assert_eq!(pool.reclaim(100, None), 1);
    assert_eq!(sequences(pool.take(9)), [3]);
}

#[test]
fn what_was_handed_over_and_has_become_void_is_forgotten() {
    let mut ledger = ledger(1);
    let mut pool = Mempool::new(8);
    let (void, sound) = (pay(1, 0, 5), pay(2, 0, 5));
    for entry in [&void, &sound] {
        assert_eq!(pool.admit(entry.clone(), &ledger), Ok(()));
    }
    // The account sends another transaction with the same number to another validator, and that one is committed
    // first.
    let other = pay(1, 1, 7);
    let sub_blocks = vec![SubBlock { native: vec![other.transaction.clone()], ..SubBlock::default() }];
    let block = Superblock { height: 1, parent: ledger.last_block(), sub_blocks, ..Superblock::default() };
    ledger.apply(&block, Signatures::Valid, &mut |_| {}).expect("applies");
    pool.settle([(other.id, &other.transaction)].into_iter());
    let taken = pool.take(2);
    pool.mark_forwarded(taken, 10);
    assert_eq!((pool.reclaim(20, Some(&ledger)), pool.len(), pool.ready()), (1, 1, 1));
    assert!(pool.contains(&sound.id) && !pool.contains(&void.id));
    pool.settle([(sound.id, &sound.transaction)].into_iter());
    assert!(pool.is_empty() && pool.reserved.is_empty() && pool.sequences.is_empty());
}

#[test]
fn many_enter_at_once() {
    let ledger = ledger(1);
    let mut pool = Mempool::new(70);
    // 60 payments of 20 units each, and a copy of each; 1,000 units pay for 47 of them with their fees.
    let entries: Vec<PoolEntry> = (1..=60).flat_map(|sequence| [pay(sequence, 0, 20), pay(sequence, 0, 20)]).collect();
    let answers = pool.admit_all(entries, &ledger);
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1_000 / 21);
    assert_eq!(pool.len(), 1_000 / 21);
    let known = [Ok(()), Err(Reject::Waiting), refused(Refusal::OVERDRAFT), refused(Refusal::SEQUENCE_CONFLICT)];
    assert!(answers.iter().all(|answer| known.contains(answer)), "{answers:?}");
    let entries: Vec<PoolEntry> = (61..=64).chain(1..=64).map(|sequence| pay(sequence, 1, 1)).collect();
    let answers = pool.admit_all(entries, &ledger);
    let (ok, full) = (answers.iter().filter(|a| a.is_ok()).count(), answers.contains(&Err(Reject::Full)));
    assert_eq!((ok, full), (1_000 % 21, false), "fees: 1,000 - 47 * 21 units are left");
    let taken = pool.take(100);
    pool.settle(taken.iter().map(|entry| (entry.id, &entry.transaction)));
    assert!(pool.is_empty() && pool.reserved.is_empty());
}

/// A payment under a number, which ends at a height.
fn ending(sequence: Sequence, until: Height, amount: Amount) -> PoolEntry {
    let operation = Operation::Pay { to: Address([5; 20]), asset: AssetId(0), amount };
    let body = Body { chain: 1, account: key().public().address(), sequence, until, operation };
    let transaction = body.sign(&ledger(0).network(), &key());
    PoolEntry::new(transaction.id(), 0, transaction)
}

#[test]
fn transactions_leave_the_pool_after_their_last_height_with_what_they_reserved() {
    let (mut pool, ledger) = (Mempool::new(10), ledger(0));
    for (sequence, until) in [(1, 3), (2, 5), (3, 3)] {
        assert_eq!(pool.admit(ending(sequence, until, 300), &ledger), Ok(()));
    }
    pool.end(2);
    assert_eq!((pool.len(), pool.ready()), (3, 3));
    // One is in a proposal when it ends: it comes back, and leaves with the next block.
    let taken = pool.take(1);
    pool.end(3);
    assert_eq!((pool.len(), pool.ready()), (2, 1));
    pool.restore(taken);
    pool.end(4);
    assert_eq!(pool.take(9).iter().map(|entry| entry.transaction.body.sequence).collect::<Vec<_>>(), [2]);
    assert_eq!(pool.admit(ending(1, 9, 700), &ledger), Ok(()), "nothing is reserved for those that ended");
    assert_eq!(pool.highest(&key().public().address(), 0), Some(2));
}

#[test]
fn a_substitute_displaces_what_ends_earlier_and_a_refused_one_does_not() {
    let (mut pool, ledger) = (Mempool::new(10), ledger(0));
    assert_eq!(pool.admit(ending(1, 5, 900), &ledger), Ok(()));
    let conflict = Err(Reject::Refused(Refusal::SEQUENCE_CONFLICT));
    assert_eq!(pool.admit(ending(1, 5, 1), &ledger), conflict, "it ends no later");
    assert_eq!(pool.admit(ending(1, 6, 1_001), &ledger), Err(Reject::Refused(Refusal::OVERDRAFT)));
    assert!(pool.contains(&ending(1, 5, 900).id));
    assert!(pool.take_displaced().is_empty(), "a refused one displaces nothing");
    assert_eq!(pool.admit(ending(1, 6, 950), &ledger), Ok(()));
    assert_eq!(pool.take_displaced(), [(ending(1, 5, 900).id, ending(1, 6, 950).id)]);
    assert_eq!((pool.len(), pool.contains(&ending(1, 5, 900).id)), (1, false));
    assert_eq!(pool.admit(ending(2, 9, 60), &ledger), Err(Reject::Refused(Refusal::OVERDRAFT)));
    pool.end(1);
    // One that is in a proposal stays.
    let taken = pool.take(1);
    assert_eq!(pool.admit(ending(1, 8, 1), &ledger), conflict);
    pool.restore(taken);
    assert_eq!(pool.admit(ending(1, 8, 1), &ledger), Ok(()));
    assert_eq!(pool.admit(ending(1, 500, 1), &ledger), conflict, "once between two blocks");
    pool.end(1);
    assert_eq!(pool.admit(ending(1, 500, 1), &ledger), Ok(()));
}
#[test]
fn a_substitute_takes_the_place_in_the_queue() {
    let (mut pool, ledger) = (Mempool::new(10), ledger(0));
    for sequence in 1..=4 {
        assert_eq!(pool.admit(ending(sequence, 5, 10), &ledger), Ok(()));
    }
    // The first one is proposed and comes back, and the second one ends.
    let first = pool.take(1);
    pool.restore(first);
    assert_eq!(pool.admit(ending(3, 9, 20), &ledger), Ok(()));
    let order = |pool: &mut Mempool| {
        let taken = pool.take(10);
        let bodies = taken.iter().map(|entry| (entry.transaction.body.sequence, entry.transaction.body.until));
        let order: Vec<_> = bodies.collect();
        pool.restore(taken);
        order
    };
    assert_eq!(order(&mut pool), [(1, 5), (2, 5), (3, 9), (4, 5)]);
    pool.end(5);
    assert_eq!(order(&mut pool), [(3, 9)]);
    assert_eq!(pool.admit(ending(3, 20, 30), &ledger), Ok(()));
    assert_eq!(order(&mut pool), [(3, 20)]);
}

#[test]
fn posts_of_the_own_account_get_the_next_free_numbers_until_64_are_pending() {
    let ledger = ledger(1);
    let mut pool = Mempool::new(100);
    let operation = |amount| Operation::Pay { to: Address([5; 20]), asset: AssetId(0), amount };
    let post = |pool: &mut Mempool, amount| pool.post(&key(), operation(amount), 9, &ledger, 0);
    assert_eq!(pool.admit(pay(2, 0, 1), &ledger), Ok(()), "another part of the node sent it");
    let first = post(&mut pool, 1).expect("it can pay");
    let taken = pool.take(2);
    assert_eq!(taken.iter().map(|entry| entry.transaction.body.sequence).collect::<Vec<_>>(), [2, 3]);
    assert!(taken[1].id == first && taken[1].transaction.body.until == 9);
    assert!((4..=64).all(|_| post(&mut pool, 1).is_ok()), "what is proposed is in flight, too");
    assert!(matches!(post(&mut pool, 1), Err(Reject::Refused(_))));
    pool.end(9);
    let next = post(&mut pool, 1).map(|id| pool.contains(&id));
    assert_eq!(next, Ok(true), "its number is free: the others have ended");
}

/// A chain with two venues whose operator is the pool's account.
fn ledger_with_venues() -> Ledger {
    ledger_with(2, ledger::VenueTerms { bond_min: 5, ..Default::default() }, |_| key())
}

/// The account that settles for a venue where each has its own.
fn operator(venue: u32) -> SecretKey {
    let mut seed = [9; 32];
    seed[..4].copy_from_slice(&venue.to_le_bytes());
    SecretKey::from_seed(seed)
}

fn ledger_with(venues: u32, terms: ledger::VenueTerms, settles: fn(u32) -> SecretKey) -> Ledger {
    let me = key().public().address();
    let assets = vec![Listing::new("USD", 2, me)];
    let mut balances = vec![(me, AssetId(0), 10_000_000)];
    balances.extend((0..venues).map(|venue| (operator(venue).public().address(), AssetId(0), 10_000_000)));
    let genesis = Genesis {
        chain: 1,
        mu: Fraction::power_of_two(10),
        assets,
        balances,
        venues: Some(terms),
        ..Genesis::default()
    };
    let mut ledger = Ledger::new(&genesis).expect("sound");
    for venue in 0..venues {
        let operator = VenueOperator { account: settles(venue).public().address(), report_key: key().public() };
        let open = VenueOperation::Open { venue, operator, fee_cap_ppm: 0, bond: 5 };
        let sequence = u64::from(venue) + 1;
        let body = Body { chain: 1, account: me, sequence, until: 50_000, operation: Operation::Venue(Box::new(open)) };
        let native = vec![body.sign(&ledger.network(), &key())];
        let sub_blocks = vec![SubBlock { native, ..SubBlock::default() }];
        let (height, parent, time_ms) = (ledger.height() + 1, ledger.last_block(), ledger.height() + 1);
        let block = Superblock { height, parent, time_ms, sub_blocks, ..Superblock::default() };
        ledger.apply(&block, Signatures::Valid, &mut |_| {}).expect("applies");
    }
    ledger
}

/// A settle of one fill of orders that the ledger does not know; the pool does not look at them.
fn settle(sequence: Sequence, venue: u32) -> PoolEntry {
    settle_of(&key(), sequence, venue)
}

fn settle_of(sender: &SecretKey, sequence: Sequence, venue: u32) -> PoolEntry {
    let number = OrderNumber { incarnation: 0, day: 0, reference: 1 };
    let order = |side| VenueOrder {
        market: 0,
        number,
        floor: number,
        side,
        life: OrderLife::Rests,
        self_trade: SelfTradeRule::ExpireBoth,
        tick: 1,
        lots: 1,
        expiry: 9,
        until_ms: None,
        fee_cap_ppm: 0,
    };
    let signed = |key: u8, side| SettledOrder {
        key: PublicKey([key; 32]),
        order: order(side),
        signature: OrderSignature::Entered,
    };
    let orders = vec![signed(1, VenueSide::Buy), signed(2, VenueSide::Sell)];
    let fill = SettledFill { buy: 0, sell: 1, lots: 1, tick: 1, fee_buy: 0, fee_sell: 0, taker: VenueSide::Buy };
    let settle = Settle { venue, incarnation: 0, from: 0, orders, fills: vec![fill] };
    entry_of(sender, sequence, Operation::Venue(Box::new(VenueOperation::Settle(settle))))
}

#[test]
fn settles_have_one_place_a_venue_and_the_venue_that_waited_longest_comes_first() {
    let ledger = ledger_with_venues();
    let mut pool = Mempool::new(1);
    let numbers = |entries: &[PoolEntry]| entries.iter().map(|one| one.transaction.body.sequence).collect::<Vec<_>>();
    assert_eq!(pool.admit(pay(5, 0, 1), &ledger), Ok(()));
    assert_eq!(pool.admit(settle(4, 1), &ledger), Ok(()), "a full pool keeps no settle out");
    assert_eq!(pool.admit(settle(6, 1), &ledger), Err(Reject::Full), "one of a venue at a time");
    assert_eq!(pool.admit(settle(3, 0), &ledger), Ok(()));
    let taken = pool.take_settles(9, |_| true);
    assert_eq!(numbers(&taken), [3, 4]);
    assert_eq!(pool.admit(settle(6, 1), &ledger), Err(Reject::Full), "its place is kept while it is taken");
    pool.restore(taken);
    // The settle of venue 0 is in a block; another validator's was before.
    let first = pool.take_settles(1, |_| true);
    assert_eq!(numbers(&first), [3]);
    pool.settle(first.iter().map(|entry| (entry.id, &entry.transaction)));
    assert_eq!(pool.admit(settle(7, 0), &ledger), Ok(()));
    assert_eq!(numbers(&pool.take_settles(9, |_| true)), [4, 7], "venue 1 has waited longest");
    assert_eq!(numbers(&pool.take_while(9, |_| true)), [5]);
}

/// The genesis lets as many venues be as have room in four sub-blocks. All of the others pay for a settle before each
/// sub-block, and payments fill the pool.
#[test]
fn a_settle_among_a_thousand_other_venues_that_flood_a_full_pool_is_in_the_fourth_sub_block() {
    const VENUES: u32 = 1_001;
    const ROOM: usize = VENUES.div_ceil(4) as usize;
    let terms = ledger::VenueTerms { bond_min: 5, settle_bytes: 1_024, venues_max: VENUES, ..Default::default() };
    assert_eq!(terms.network_fault(1 << 20, 2, 4), None, "a genesis may say so");
    let ledger = ledger_with(VENUES, terms, operator);
    let mut pool = Mempool::new(8);
    let full = (1..9).map(|at| pool.admit(pay(u64::from(VENUES) + at, 0, 1), &ledger));
    assert!(full.into_iter().all(|admitted| admitted == Ok(())));
    assert_eq!(pool.admit(pay(u64::from(VENUES) + 9, 0, 1), &ledger), Err(Reject::Full));
    let flood = |pool: &mut Mempool, turn: u64| {
        let settles = (0..VENUES - 1).map(|venue| settle_of(&operator(venue), turn, venue));
        settles.map(|settle| pool.admit(settle, &ledger)).filter(|admitted| *admitted == Ok(())).count()
    };
    assert_eq!(flood(&mut pool, 1), 1_000);
    assert_eq!(flood(&mut pool, 2), 0, "a venue has one place, whatever it pays");
    let victim = settle_of(&operator(VENUES - 1), 1, VENUES - 1);
    assert_eq!(pool.admit(victim.clone(), &ledger), Ok(()));
    let mut sub_blocks = 0;
    let mut is_in = false;
    while !is_in {
        sub_blocks += 1;
        let taken = pool.take_settles(ROOM, |_| true);
        is_in = taken.iter().any(|entry| entry.id == victim.id);
        pool.settle(taken.iter().map(|entry| (entry.id, &entry.transaction)));
        assert_eq!(
            flood(&mut pool, 2 + sub_blocks),
            taken.len() - usize::from(is_in),
            "the others settle again at once"
        );
    }
    assert_eq!(sub_blocks, 4, "each of the others was first once");
}

#[test]
fn a_settle_that_ends_gives_its_place_free() {
    let ledger = ledger_with_venues();
    let mut pool = Mempool::new(9);
    assert_eq!(pool.admit(settle(4, 1), &ledger), Ok(()));
    pool.end(49_999);
    assert_eq!(pool.admit(settle(5, 1), &ledger), Err(Reject::Full));
    pool.end(50_000);
    assert!(pool.is_empty() && pool.reserved.is_empty());
    assert_eq!(pool.admit(settle(5, 1), &ledger), Ok(()));
}

/// The blocks of a chain of one node whose operator has asked for another fee, which acts at height 4.
fn ledgers_before_a_dearer_fee() -> [Ledger; 3] {
    let (me, operator) = (key().public().address(), SecretKey::from_seed([2; 32]));
    let assets = vec![Listing::new("USD", 2, me)];
    let balances = vec![(me, AssetId(0), 1_000), (operator.public().address(), AssetId(0), 2_000)];
    let charter = CharterTerms { operator: operator.public().address(), notice_min: 3, patience: 9 };
    let mu = Fraction::power_of_two(10);
    let genesis = Genesis { chain: 1, fee: 1, mu, assets, balances, charter, ..Genesis::default() };
    let founded = Ledger::new(&genesis).expect("sound");
    let mut ledger = founded.clone();
    let change = ProposedChange::Parameter { parameter: Parameter::Fee, value: 2 };
    let body = Body {
        chain: 1,
        account: operator.public().address(),
        sequence: 1,
        until: 50_000,
        operation: Operation::Propose(Box::new(change)),
    };
    let asked = body.sign(&ledger.network(), &operator);
    let mut block = |native: Vec<Transaction>| {
        let (height, parent) = (ledger.height() + 1, ledger.last_block());
        let sub_blocks = vec![SubBlock { native, ..SubBlock::default() }];
        let block = Superblock { height, parent, sub_blocks, ..Superblock::default() };
        let applied = ledger.apply(&block, Signatures::Valid, &mut |_| {}).expect("sound");
        assert!(applied.outcomes.iter().all(|outcome| outcome.refusal().is_none()));
        ledger.clone()
    };
    let waiting = block(vec![asked]);
    block(Vec::new());
    [founded, waiting, block(Vec::new())]
}

/// What was reserved at one fee is released at that fee, and what waits is judged again when a dearer one acts.
#[test]
fn a_pool_meets_a_dearer_fee() {
    let [founded, waiting, acting] = ledgers_before_a_dearer_fee();
    assert_eq!([&founded, &waiting, &acting].map(|one| (one.fee(), one.dearest_fee())), [(1, 1), (1, 2), (2, 2)]);
    let mut pool = Mempool::new(100);
    pool.judge_again(&founded);
    for (sequence, units) in [(1, 299), (2, 299), (3, 299)] {
        assert_eq!(pool.admit(pay(sequence, 0, units), &founded), Ok(()));
    }
    // A hundred are left; it will cost two.
    assert_eq!(pool.admit(pay(4, 0, 99), &waiting), refused(Refusal::OVERDRAFT));
    assert_eq!(pool.admit(pay(4, 0, 98), &waiting), Ok(()));
    let taken = pool.take(1);
    pool.judge_again(&waiting);
    assert_eq!(pool.len(), 4, "the same record acts");
    pool.judge_again(&acting);
    // The one that was taken keeps its 300. Of the others the last one finds 98 where it needs 100.
    let left: Vec<Sequence> = pool.take(9).iter().map(|entry| entry.transaction.body.sequence).collect();
    assert_eq!((left, pool.len()), (vec![2, 3], 3));
    assert_eq!(pool.admit(pay(4, 0, 97), &acting), refused(Refusal::OVERDRAFT));
    assert_eq!(pool.admit(pay(4, 0, 96), &acting), Ok(()));
    let others = [pay(2, 0, 299), pay(3, 0, 299), pay(4, 0, 96)];
    pool.settle(taken.iter().chain(&others).map(|entry| (entry.id, &entry.transaction)));
    assert!(pool.is_empty() && pool.reserved.is_empty() && pool.sequences.is_empty());
}
