//! Nobody can keep an account's transactions from counting by submitting what the account has signed before.

use ledger::{Applied, LEAST_UNITS, Refusal};
use primitives::{Amount, Body, Operation, Price, Transaction};

use crate::world::{EUR, FEE, START, USD, World, address, genesis, key};

const ALICE: u8 = 1;
const BOB: u8 = 2;

fn pay(amount: Amount) -> Operation {
    Operation::Pay { to: address(BOB), asset: USD, amount }
}

fn offer(amount: Amount) -> Operation {
    Operation::offer(EUR, USD, amount, Price::ONE)
}

fn cancel(offer: u64) -> Operation {
    Operation::cancel(EUR, USD, Price::ONE, offer)
}

fn ending(world: &World, sequence: u64, until: u64, operation: Operation) -> Transaction {
    Body { chain: 1, account: address(ALICE), sequence, until, operation }.sign(&world.ledger.network(), &key(ALICE))
}

fn numbered(world: &World, sequence: u64, operation: Operation) -> Transaction {
    ending(world, sequence, 50_000, operation)
}

fn refusals(applied: &Applied) -> Vec<Option<Refusal>> {
    applied.outcomes.iter().map(|outcome| outcome.refusal()).collect()
}

/// Alice's payment 7 was refused once, and everybody has its bytes. She signs another 7, and 8 and 9.
#[test]
fn an_old_body_of_a_number_removes_nothing_but_one_of_the_two() {
    let made = |world: &World| {
        let [old, new] = [pay(400), pay(500)].map(|operation| numbered(world, 7, operation));
        (old, new, numbered(world, 8, pay(1)), numbered(world, 9, pay(2)))
    };
    let mut seen = Vec::new();
    for order in 0..3 {
        let mut world = World::of(&genesis(None));
        let (old, new, eight, nine) = made(&world);
        let counts = if old.id() > new.id() { 400 } else { 500 };
        let parts = match order {
            0 => vec![vec![old, new, eight, nine]],
            1 => vec![vec![nine, new, eight], vec![old]],
            _ => vec![vec![old.clone()], vec![old], vec![eight, new, nine]],
        };
        let applied = world.run(parts);
        let lost = refusals(&applied).into_iter().flatten().filter(|refusal| *refusal != Refusal::DUPLICATE).count();
        assert!(lost >= 1 && applied.outcomes.iter().filter(|outcome| outcome.refusal().is_none()).count() == 3);
        assert_eq!(world.balance(BOB, USD), START + counts + 3);
        assert_eq!(world.balance(ALICE, USD), START - counts - 3 - 3 * FEE);
        seen.push(world.ledger.accounts().get(&address(ALICE)).expect("there").balance(USD));
    }
    assert!(seen.windows(2).all(|two| two[0] == two[1]), "order decides nothing");
}

/// Sums are taken of what counts: a body that is not the one of its number spends nothing.
#[test]
fn what_does_not_count_for_its_number_overdraws_nothing() {
    let mut world = World::of(&genesis(None));
    let bodies = [pay(START - 100), pay(START - 200)].map(|operation| numbered(&world, 1, operation));
    let counts = bodies.iter().max_by_key(|one| one.id()).expect("two").clone();
    let applied = world.run(vec![bodies.to_vec()]);
    let told = refusals(&applied);
    let lost = bodies.iter().position(|one| *one != counts).expect("one of them");
    assert_eq!((told[lost], told[1 - lost]), (Some(Refusal::SEQUENCE_CONFLICT), None));
}

#[test]
fn cancels_stand_where_the_rest_of_the_account_overdraws() {
    let mut world = World::of(&genesis(None));
    world.run(vec![vec![numbered(&world, 1, offer(10_000)), numbered(&world, 2, offer(20_000))]]);
    let block = vec![numbered(&world, 3, cancel(1)), numbered(&world, 4, pay(2 * START)), numbered(&world, 5, pay(1))];
    let applied = world.run(vec![block]);
    let overdraft = Some(Refusal::OVERDRAFT);
    assert_eq!(refusals(&applied), [None, overdraft, overdraft]);
    assert_eq!(world.balance(ALICE, EUR), START - 20_000);
    // What is refused has used no number.
    let applied = world.run(vec![vec![numbered(&world, 4, pay(1)), numbered(&world, 6, cancel(2))]]);
    assert_eq!(refusals(&applied), [None, None]);
    assert_eq!(world.balance(ALICE, EUR), START);
}

#[test]
fn cancels_fall_with_the_rest_where_their_own_fees_are_not_covered() {
    let mut world = World::of(&genesis(None));
    world.run(vec![vec![numbered(&world, 1, offer(LEAST_UNITS)), numbered(&world, 2, offer(LEAST_UNITS))]]);
    let rest = world.balance(ALICE, USD);
    world.run(vec![vec![numbered(&world, 3, pay(rest - 2 * FEE))]]);
    assert_eq!(world.balance(ALICE, USD), FEE);
    let block = vec![numbered(&world, 4, cancel(1)), numbered(&world, 5, cancel(2)), numbered(&world, 6, pay(1))];
    let applied = world.run(vec![block]);
    assert_eq!(refusals(&applied), [Some(Refusal::OVERDRAFT); 3]);
    let applied = world.run(vec![vec![numbered(&world, 4, cancel(1)), numbered(&world, 6, pay(1))]]);
    assert_eq!(refusals(&applied), [None, Some(Refusal::OVERDRAFT)]);
}

#[test]
fn two_cancels_of_one_offer_are_one_and_both_pay() {
    let mut world = World::of(&genesis(None));
    world.run(vec![vec![numbered(&world, 1, offer(LEAST_UNITS))]]);
    let block = vec![numbered(&world, 3, cancel(1)), numbered(&world, 2, cancel(1)), numbered(&world, 4, pay(5))];
    let applied = world.run(vec![block]);
    assert_eq!(refusals(&applied), [None, None, None]);
    assert_eq!(world.balance(ALICE, EUR), START);
    assert_eq!(world.balance(ALICE, USD), START - 5 - 4 * FEE);
    assert_eq!(world.ledger.book().len(), 0);
}

/// Ana's offer of 100 is refused for lack of money. She deposits and sells 100 under another number; whoever resubmits
/// the first offer would sell 100 more.
#[test]
fn a_refused_transaction_is_dead_after_its_last_height() {
    let mut world = World::of(&genesis(None));
    let refused = ending(&world, 7, 1, pay(2 * START));
    assert_eq!(refusals(&world.run(vec![vec![refused.clone()]])), [Some(Refusal::OVERDRAFT)]);
    world.block(vec![(BOB, Operation::Pay { to: address(ALICE), asset: USD, amount: START - FEE })]);
    let before = world.balance(ALICE, USD);
    assert_eq!(
        refusals(&world.run(vec![vec![refused.clone(), numbered(&world, 8, pay(1))]])),
        [Some(Refusal::ENDED), None]
    );
    assert_eq!(world.balance(ALICE, USD), before - 1 - FEE);
    assert_eq!(world.ledger.admit(&refused), Err(Refusal::ENDED));
}

/// A substitute ends later, and counts whatever the ids are.
#[test]
fn of_two_bodies_of_a_number_the_one_that_ends_later_counts() {
    for amount in 1..20 {
        let mut world = World::of(&genesis(None));
        let old = ending(&world, 1, 40, pay(2 * amount));
        let substitute = ending(&world, 1, 41, pay(2 * amount + 1));
        let parts = if amount % 2 == 0 { vec![vec![old, substitute]] } else { vec![vec![substitute], vec![old]] };
        world.run(parts);
        assert_eq!(world.balance(BOB, USD), START + 2 * amount + 1);
    }
}

#[test]
fn a_transaction_may_end_no_later_than_the_genesis_permits() {
    let mut world = World::of(&genesis(None));
    let most = world.ledger.limits().until_max;
    let block =
        vec![ending(&world, 1, 1 + most, pay(1)), ending(&world, 2, 2 + most, pay(1)), ending(&world, 3, 1, pay(1))];
    assert_eq!(refusals(&world.run(vec![block])), [None, Some(Refusal::ENDS_TOO_LATE), None]);
}
