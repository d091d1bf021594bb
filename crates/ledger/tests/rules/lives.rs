//! Lives of offers: they rest, end with a block, or are for one batch; what ends goes back once.

use ledger::{Applied, EndReason, EndedOffer, LIFE_MAX, Offer, Outcome, Pair, Place, Refusal};
use primitives::{Amount, ClientId, Life, Operation, Price, Sequence};

use crate::world::{EUR, FEE, START, USD, World, address, genesis};

const ALICE: u8 = 1;
const BOB: u8 = 2;
const SELL_EUR: Pair = Pair { sell: EUR, buy: USD };

fn price(text: &str) -> Price {
    text.parse().expect("a price")
}

/// Alice sells euros for at least as many dollars.
fn sells(amount: Amount, life: Life) -> Operation {
    let client = ClientId([7; 16]);
    Operation::CreateOffer { sell: EUR, buy: USD, amount, limit: Price::ONE, life, client }
}

/// Bob buys euros for up to so many dollars, in this batch.
fn buys(amount: Amount) -> Operation {
    let (limit, life) = (price("0.9"), Life::OneBatch);
    Operation::CreateOffer { sell: USD, buy: EUR, amount, limit, life, client: ClientId::NONE }
}

fn ended(id: Sequence, returned: Amount, why: EndReason) -> EndedOffer {
    EndedOffer { pair: SELL_EUR, place: Place { limit: Price::ONE, account: address(ALICE), id }, returned, why }
}

fn of_alice(applied: &Applied) -> Vec<EndedOffer> {
    applied.batch.ended.iter().filter(|ended| ended.place.account == address(ALICE)).copied().collect()
}

fn resting(world: &World) -> Vec<Offer> {
    world.ledger.book().iter().flat_map(|(_, offers)| offers.iter().collect::<Vec<_>>()).collect()
}

fn world() -> World {
    World::of(&genesis(None))
}

#[test]
fn an_offer_for_one_batch_trades_there_and_never_rests() {
    let mut world = world();
    let applied = world.block(vec![(ALICE, sells(20_000, Life::OneBatch))]);
    let Outcome::Offered(met) = applied.outcomes[0] else { panic!("it is placed") };
    assert_eq!((met.sold, met.left, met.returned), (0, 0, 20_000));
    assert_eq!(of_alice(&applied), [ended(1, 20_000, EndReason::OneBatch)]);
    assert_eq!((world.balance(ALICE, EUR), world.balance(ALICE, USD)), (START, START - FEE));
    assert!(world.ledger.book().is_empty());
    // A part of it trades.
    let applied = world.block(vec![(ALICE, sells(20_000, Life::OneBatch)), (BOB, buys(9_000))]);
    let Outcome::Offered(met) = applied.outcomes[0] else { panic!("it is placed") };
    assert!(met.sold > 0 && met.left == 0 && met.returned == 20_000 - met.sold, "{met:?}");
    assert_eq!(of_alice(&applied), [ended(2, met.returned, EndReason::OneBatch)]);
    assert_eq!(world.balance(ALICE, EUR), START - met.sold);
    assert!(world.ledger.book().is_empty());
}

#[test]
fn an_offer_with_an_end_is_in_the_batch_of_its_last_height_and_in_no_later_one() {
    let mut world = world();
    let before = world.balance(ALICE, USD);
    world.block(vec![(ALICE, sells(30_000, Life::Until(3)))]);
    assert_eq!(world.balance(ALICE, USD), before - 2 * FEE, "its end is prepaid");
    assert_eq!((resting(&world)[0].until, world.ledger.book().ending_at(3)), (3, 1));
    assert!(of_alice(&world.block(vec![])).is_empty());
    let applied = world.block(vec![(BOB, buys(9_000))]);
    let sold = applied.batch.fills.iter().find(|fill| fill.place.account == address(ALICE)).expect("it trades").sold;
    assert_eq!(of_alice(&applied), [ended(1, 30_000 - sold, EndReason::Expired)]);
    assert_eq!((world.balance(ALICE, EUR), world.ledger.book().ending_at(3)), (START - sold, 0));
    let applied = world.block(vec![(BOB, buys(9_000))]);
    assert!(applied.batch.fills.is_empty() && of_alice(&applied).is_empty());
}

/// What a fill leaves of it is too small to rest: the fill returns it, and nothing is left to end.
#[test]
fn a_remainder_below_the_least_size_goes_back_once() {
    for life in [Life::Until(1), Life::OneBatch] {
        let mut world = world();
        let applied = world.block(vec![(ALICE, sells(12_000, life)), (BOB, buys(9_000))]);
        let fill = *applied.batch.fills.iter().find(|fill| fill.place.account == address(ALICE)).expect("it trades");
        assert!(fill.returned > 0 && fill.left == 0, "{fill:?}");
        assert!(of_alice(&applied).is_empty());
        assert_eq!(world.balance(ALICE, EUR), START - fill.sold);
    }
}

#[test]
fn a_cancel_in_the_last_block_comes_before_the_end() {
    let mut world = world();
    world.block(vec![(ALICE, sells(20_000, Life::Until(2))), (ALICE, sells(30_000, Life::Until(2)))]);
    let applied = world.block(vec![(ALICE, Operation::cancel(EUR, USD, Price::ONE, 1)), (BOB, buys(9_000))]);
    let fill = *applied.batch.fills.iter().find(|fill| fill.place.account == address(ALICE)).expect("it trades");
    assert_eq!(fill.place.id, 2);
    assert_eq!(of_alice(&applied), [ended(1, 20_000, EndReason::Cancelled), ended(2, fill.left, EndReason::Expired)]);
    assert_eq!(world.balance(ALICE, EUR), START - fill.sold);
}

#[test]
fn a_life_that_is_over_or_too_long_is_refused_by_name() {
    let mut world = world();
    world.block(vec![]);
    let offer = |until| sells(20_000, Life::Until(until));
    assert_eq!(world.outcome(ALICE, offer(1)), Some(Refusal::LIFE_ENDED));
    assert_eq!(world.outcome(ALICE, offer(2)), Some(Refusal::LIFE_ENDED));
    let next = world.ledger.height() + 1;
    assert_eq!(world.outcome(ALICE, offer(next + LIFE_MAX + 1)), Some(Refusal::LIFE_TOO_LONG));
    assert_eq!(world.outcome(ALICE, offer(next + 1 + LIFE_MAX)), None);
    let next = world.ledger.height() + 1;
    assert_eq!(world.outcome(ALICE, offer(next)), None, "the batch of the next block");
    assert_eq!(resting(&world).len(), 1, "and it ended with that block");
}
