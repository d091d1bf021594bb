//! Cancels of many offers: what rests before the block is cancelled once, and what does not rest is counted.

use ledger::{Applied, Cancelled, EndReason, EndedOffer, Outcome, Pair, Place, Refusal};
use primitives::{Amount, OfferPlace, Operation, Price, Sequence};

use crate::world::{EUR, FEE, START, USD, World, address, genesis};

const ALICE: u8 = 1;
const BOB: u8 = 2;
const SIZE: Amount = 5_000;

fn offer(amount: Amount) -> Operation {
    Operation::offer(EUR, USD, amount, Price::ONE)
}

fn place(offer: Sequence) -> OfferPlace {
    OfferPlace { sell: EUR, buy: USD, limit: Price::ONE, offer }
}

fn cancel(ids: impl IntoIterator<Item = Sequence>) -> Operation {
    Operation::Cancel(ids.into_iter().map(place).collect())
}

fn found(found: u8, missing: u8) -> Outcome {
    Outcome::Cancelled(Cancelled { found, missing })
}

fn ended(id: Sequence, returned: Amount) -> EndedOffer {
    let place = Place { limit: Price::ONE, account: address(ALICE), id };
    EndedOffer { pair: Pair { sell: EUR, buy: USD }, place, returned, why: EndReason::Cancelled }
}

/// Alice's offers 1 to `count` rest.
fn world(count: u64) -> World {
    let mut world = World::of(&genesis(None));
    world.block((0..count).map(|_| (ALICE, offer(SIZE))).collect());
    world
}

fn outcomes(applied: &Applied) -> &[Outcome] {
    &applied.outcomes
}

#[test]
fn absent_places_of_a_cancel_are_skipped_and_counted() {
    let mut world = world(2);
    let before = world.balance(ALICE, USD);
    let applied = world.block(vec![(ALICE, cancel([40, 1].into_iter().chain(41..71)))]);
    assert_eq!(outcomes(&applied), [found(1, 31)]);
    assert_eq!(applied.batch.ended, [ended(1, SIZE)]);
    assert_eq!((world.balance(ALICE, EUR), world.ledger.book().len()), (START - SIZE, 1));
    assert_eq!(world.balance(ALICE, USD), before - 5 * FEE, "one fee, and one for each eight");
    assert_eq!(world.outcome(ALICE, cancel(40..72)), Some(Refusal::UNKNOWN_OFFER), "none of them rests");
}

#[test]
fn a_place_in_two_lists_is_credited_once() {
    let mut world = world(3);
    let applied = world.block(vec![(ALICE, cancel([1, 2])), (ALICE, cancel([2, 9])), (ALICE, cancel([2]))]);
    assert_eq!(outcomes(&applied), [found(2, 0), found(1, 1), found(1, 0)]);
    assert_eq!(applied.batch.ended, [ended(1, SIZE), ended(2, SIZE)]);
    assert_eq!(world.balance(ALICE, EUR), START - SIZE);
}

/// What a list finds is what rested before the block: an offer of this very block stays.
#[test]
fn a_cancel_does_not_reach_an_offer_of_its_block() {
    let mut world = world(1);
    let applied = world.block(vec![(ALICE, offer(SIZE)), (ALICE, cancel([1, 2]))]);
    assert_eq!(outcomes(&applied)[1], found(1, 1));
    assert_eq!(applied.batch.ended, [ended(1, SIZE)]);
    assert_eq!((world.balance(ALICE, EUR), world.ledger.book().len()), (START - SIZE, 1));
}

#[test]
fn a_cancel_returns_what_a_fill_left_and_misses_what_filled() {
    let mut world = world(2);
    let buys = Operation::offer(USD, EUR, 12_000, "0.9".parse().expect("a price"));
    // The fill is in the block of the cancel of the other offer, which leaves first.
    let applied = world.block(vec![(BOB, buys.clone()), (ALICE, cancel([2]))]);
    assert_eq!((outcomes(&applied)[1], applied.batch.ended.as_slice()), (found(1, 0), [ended(2, SIZE)].as_slice()));
    assert_eq!(applied.batch.fills.iter().filter(|fill| fill.place.account == address(ALICE)).count(), 1);
    assert_eq!(world.outcome(ALICE, cancel([1, 2])), Some(Refusal::UNKNOWN_OFFER));
    let third = world.sequences[&ALICE] + 1;
    world.block(vec![(ALICE, offer(20_000))]);
    let left: Amount = world.ledger.book().iter().flat_map(|(_, offers)| offers.iter()).map(|offer| offer.amount).sum();
    assert!(left < 20_000, "a part is filled");
    let applied = world.block(vec![(ALICE, cancel([third, 1]))]);
    assert_eq!((outcomes(&applied), &applied.batch.ended[..]), (&[found(1, 1)][..], &[ended(third, left)][..]));
}

#[test]
fn a_list_that_is_none_is_refused_by_name() {
    let mut world = world(1);
    for wrong in [cancel([]), cancel(1..34), cancel([1, 5, 1])] {
        assert_eq!(world.outcome(ALICE, wrong), Some(Refusal::CANCEL_LIST));
    }
    let signed = world.sign(BOB, cancel([1]));
    assert_eq!(world.ledger.admit(&signed), Err(Refusal::NOT_YOUR_OFFER));
}

/// Four accounts cancel 4,096 offers each, in two blocks of 64 numbers with 32 places.
#[test]
fn a_block_cancels_sixteen_thousand_offers() {
    let mut whole = genesis(None);
    whole.balances.iter_mut().for_each(|(_, _, amount)| *amount = 1 << 40);
    let mut world = World::of(&whole);
    let people = 1..=4;
    for _ in 0..64 {
        world.block(people.clone().flat_map(|person| (0..64).map(move |_| (person, offer(SIZE)))).collect());
    }
    assert_eq!(world.ledger.book().len(), 4 * 4_096);
    for from in [1, 2_049] {
        let lists = |person| (0..64).map(move |list| (person, cancel(from + 32 * list..from + 32 * (list + 1))));
        let applied = world.block(people.clone().flat_map(lists).collect());
        assert!(outcomes(&applied).iter().all(|outcome| *outcome == found(32, 0)));
        assert_eq!(applied.batch.ended.len(), 4 * 2_048);
    }
    assert!(world.ledger.book().is_empty());
    assert_eq!(world.balance(1, EUR), 1 << 40);
}
