//! Session keys: when their offers end, by timers, stops and revocations, and how many of them may.

use ledger::{EndReason, Outcome, Refusal, SESSION_ENDS_PER_SUB_BLOCK, SLOT_OFFERS_MAX};
use primitives::{Amount, ClientId, Life, Operation, Price, SessionTerms, Transaction, slot_sequence};

use crate::sessions::{
    ALICE, BOB, SELL_EUR, alive, authorize, bot, buys, by, cancel, caps, ended, exact, of_alice, refusals, refused,
    resting, revoke, sells, session, terms, used, with_bot, world,
};
use crate::world::{EUR, FEE, START, USD, World, address, key};

#[test]
fn offers_end_with_the_timer_after_the_batch_and_trades_are_refused_until_it_is_raised() {
    let mut world = with_bot();
    let raise = |world: &World, number, through| by(world, 1, number, alive(1, through));
    let offer = by(&world, 1, 1, sells(50_000));
    world.run(vec![vec![offer]]);
    world.block(vec![(ALICE, sells(20_000))]);
    let own = world.sequences[&ALICE];
    for (through, refusal) in
        [(50, Refusal::SESSION_THROUGH), (3, Refusal::SESSION_THROUGH), (61, Refusal::SESSION_THROUGH)]
    {
        let transaction = raise(&world, 2, through);
        assert_eq!(refused(&mut world, transaction), Some(refusal), "{through}");
    }
    while world.ledger.height() < 49 {
        world.empty_blocks(1);
    }
    assert_eq!(resting(&world), [own, slot_sequence(1, 1)]);
    // Block 50: the batch comes first, and an offer of this very block ends with it, too.
    let (bob, new) = (world.sign(BOB, buys(15_000)), by(&world, 1, 3, sells(30_000)));
    let applied = world.run(vec![vec![new, bob]]);
    let Outcome::Offered(met) = applied.outcomes[0] else { panic!("it is placed") };
    assert_eq!((met.left, met.returned + met.sold), (0, 30_000), "the receipt of the new offer says it");
    let left = |id| applied.batch.fills.iter().find(|fill| fill.place.id == id).map_or(0, |fill| fill.sold);
    let [first, second] = [slot_sequence(1, 1), slot_sequence(1, 3)];
    let of = |id, amount| ended(id, amount - left(id), EndReason::Lapsed);
    assert_eq!(of_alice(&applied), [of(first, 50_000), of(second, 30_000)]);
    assert!(left(own) + left(first) + left(second) > 10_000);
    let sold = (left(first) + left(second)) as i64;
    assert_eq!((resting(&world).len() <= 1, used(&world, 1)[1]), (true, sold));
    // From now on it only cancels, until its timer is raised, by itself or by the owner.
    for (operation, refusal) in [
        (sells(20_000), Some(Refusal::SESSION_LAPSED)),
        (exact(20_000), Some(Refusal::SESSION_LAPSED)),
        (alive(1, 0), Some(Refusal::SESSION_LAPSED)),
        (cancel(own), None),
    ] {
        let transaction = by(&world, 1, 4, operation);
        assert_eq!(refused(&mut world, transaction), refusal);
    }
    let heartbeat = raise(&world, 5, 58);
    let offer = by(&world, 1, 6, sells(20_000));
    assert_eq!(refusals(&world.run(vec![vec![heartbeat, offer.clone()]])), [None, Some(Refusal::SESSION_LAPSED)]);
    assert_eq!(refused(&mut world, offer), None, "it is judged by the state before the block");
    assert_eq!(world.outcome(ALICE, alive(1, 59)), None);
    while world.ledger.height() < 59 {
        world.empty_blocks(1);
    }
    assert!(resting(&world).is_empty());
    let transaction = raise(&world, 7, 60);
    assert_eq!(refused(&mut world, transaction), Some(Refusal::SESSION_THROUGH), "not for the block itself");
    let transaction = by(&world, 1, 7, cancel(own));
    assert_eq!(refused(&mut world, transaction), Some(Refusal::SESSION_ENDED));
}

#[test]
fn of_raises_and_stops_in_one_block_the_stop_counts_and_else_the_highest_raise() {
    let mut world = with_bot();
    let offers = [by(&world, 1, 1, sells(20_000)), by(&world, 1, 9, sells(20_000))];
    world.run(vec![offers.to_vec()]);
    let raises = [(2, 53), (3, 57), (4, 55)].map(|(number, through)| by(&world, 1, number, alive(1, through)));
    assert_eq!(refusals(&world.run(vec![raises.to_vec()])), [None; 3]);
    assert_eq!(session(&world, 1).alive, 57);
    // A stop and what follows it in the same block: the offers end, and lower numbers are void.
    let block = [(6, sells(25_000)), (7, alive(1, 0)), (8, alive(1, 58))];
    let block = block.map(|(number, operation)| by(&world, 1, number, operation));
    let applied = world.run(vec![block.to_vec()]);
    assert_eq!(refusals(&applied), [None; 3]);
    let lapsed = |number, amount| ended(slot_sequence(1, number), amount, EndReason::Lapsed);
    assert_eq!(of_alice(&applied), [lapsed(1, 20_000), lapsed(6, 25_000), lapsed(9, 20_000)]);
    assert_eq!((session(&world, 1).alive, used(&world, 1)[1]), (world.ledger.height(), 0));
    for number in [5, 6] {
        let transaction = by(&world, 1, number, alive(1, 58));
        assert_eq!(refused(&mut world, transaction), Some(Refusal::SEQUENCE_USED), "signed before the stop");
    }
    let transaction = by(&world, 1, 10, alive(1, 58));
    assert_eq!(refused(&mut world, transaction), None);
    // Who stops another's slot voids all that may be on its way there.
    assert_eq!(world.outcome(ALICE, alive(1, 0)), None);
    for (number, refusal) in
        [(10, Refusal::SEQUENCE_TOO_OLD), (11, Refusal::SEQUENCE_USED), (74, Refusal::SEQUENCE_USED)]
    {
        let transaction = by(&world, 1, number, alive(1, 59));
        assert_eq!(refused(&mut world, transaction), Some(refusal));
    }
    let transaction = by(&world, 1, 75, alive(1, 59));
    assert_eq!(refused(&mut world, transaction), None);
}

#[test]
fn a_revocation_ends_offers_after_the_batch_and_the_slot_never_returns() {
    let mut world = with_bot();
    let offer = by(&world, 1, 1, sells(50_000));
    world.run(vec![vec![offer]]);
    // An order of the same block is in its batch.
    let (order, bob) = (by(&world, 1, 2, sells(20_000)), world.sign(BOB, buys(60_000)));
    let gone = world.sign(ALICE, revoke(1));
    let applied = world.run(vec![vec![gone, order, bob]]);
    assert_eq!(refusals(&applied), [None; 3]);
    let sold: Amount = applied.batch.fills.iter().filter(|fill| fill.pair == SELL_EUR).map(|fill| fill.sold).sum();
    let returned: Amount = of_alice(&applied).iter().map(|ended| ended.returned).sum();
    assert!(sold > 50_000 && sold + returned == 70_000);
    assert_eq!((resting(&world).len(), world.balance(ALICE, EUR)), (0, START - sold));
    let transaction = by(&world, 1, 3, sells(20_000));
    assert_eq!(refused(&mut world, transaction), Some(Refusal::UNKNOWN_SESSION));
    assert_eq!(world.outcome(ALICE, revoke(1)), Some(Refusal::UNKNOWN_SESSION));
    let operation = authorize(&world, ALICE, terms(1, 60, 50));
    assert_eq!(world.outcome(ALICE, operation), Some(Refusal::SESSION_SLOT));
    // The key itself may have another slot.
    let again = SessionTerms { key: bot(1).public(), ..terms(2, 60, 50) };
    let operation = authorize(&world, ALICE, again);
    assert_eq!(world.outcome(ALICE, operation), None);
}

/// Whoever has had the account's key loses the sessions that he authorised with it, also those of the last block.
#[test]
fn a_new_key_of_the_account_closes_its_sessions() {
    let mut world = with_bot();
    let offer = by(&world, 1, 1, sells(50_000));
    world.run(vec![vec![offer]]);
    let rekey = Operation::CreateAccount { account: address(ALICE), key: key(77).public() };
    let second = authorize(&world, ALICE, terms(2, 60, 50));
    let applied = world.block(vec![(ALICE, rekey), (ALICE, second)]);
    assert_eq!(refusals(&applied), [None; 2]);
    for slot in [1, 2] {
        assert!(session(&world, slot).is_closed);
        for operation in [sells(20_000), cancel(slot_sequence(1, 1)), alive(slot, 55), alive(slot, 0)] {
            let transaction = by(&world, slot, 2, operation);
            assert_eq!(refused(&mut world, transaction), Some(Refusal::SESSION_ENDED));
        }
    }
    assert_eq!(resting(&world), [slot_sequence(1, 1)]);
    while world.ledger.height() < 50 {
        world.empty_blocks(1);
    }
    assert!(resting(&world).is_empty(), "its offers end with their timer");
}

#[test]
fn a_slot_has_at_most_4096_open_offers_and_a_sub_block_a_quota_of_stops() {
    let mut world = world();
    let rich = SessionTerms { caps: caps(1_000_000, i64::MAX as u64), ..terms(1, 300, 300) };
    let operation = authorize(&world, ALICE, rich);
    let fee = Operation::Pay { to: address(9), asset: USD, amount: FEE };
    world.block(vec![(ALICE, operation), (BOB, fee)]);
    let least = world.ledger.assets()[1].least_units;
    let issue = Operation::Issue { to: address(ALICE), asset: EUR, amount: 100 * 4_096 * least };
    let applied = world.block(vec![(9, issue)]);
    assert_eq!(refusals(&applied), [None]);
    let mut number = 0;
    let mut fill = |world: &mut World, count: u64| {
        let new = (number + 1..=number + count).map(|number| by(world, 1, number, sells(least * 2))).collect();
        number += count;
        refusals(&world.run(vec![new]))
    };
    for _ in 0..63 {
        assert!(fill(&mut world, 64).iter().all(Option::is_none));
    }
    assert!(fill(&mut world, 63).iter().all(Option::is_none));
    assert_eq!(world.ledger.open_in_slot(address(ALICE), 1), SLOT_OFFERS_MAX - 1);
    assert_eq!(fill(&mut world, 2), [Some(Refusal::SESSION_OFFERS); 2]);
    let one = by(&world, 1, 4_096, sells(least * 2));
    assert_eq!(refused(&mut world, one), None);
    let (amount, life, client) = (least * 2, Life::OneBatch, ClientId::NONE);
    let one_batch = Operation::CreateOffer { sell: EUR, buy: USD, amount, limit: Price::ONE, life, client };
    let one_batch = by(&world, 1, 4_097, one_batch);
    assert_eq!(refused(&mut world, one_batch), None, "what never rests takes no room");
    let one = by(&world, 1, 4_098, sells(least * 2));
    assert_eq!(refused(&mut world, one), Some(Refusal::SESSION_OFFERS));
    // Of the stops and revocations of one sub-block sixteen are processed.
    let stops: Vec<Transaction> = (0..17).map(|_| world.sign(BOB, revoke(1))).collect();
    let applied = world.run(vec![stops]);
    let (last, others) = applied.outcomes.split_last().expect("there are some");
    assert_eq!(others.len(), SESSION_ENDS_PER_SUB_BLOCK as usize);
    assert!(others.iter().all(|outcome| outcome.refusal() == Some(Refusal::UNKNOWN_SESSION)));
    assert_eq!(last.refusal(), Some(Refusal::OVER_QUOTA));
    let applied = world.block(vec![(ALICE, revoke(1))]);
    assert_eq!(applied.batch.ended.len(), 4_096);
    assert!(world.ledger.book().is_empty() && world.ledger.open_in_slot(address(ALICE), 1) == 0);
}
