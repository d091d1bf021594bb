//! Replacements: whatever was sold before they counted, a chain of them never sells more than was stated.

use ledger::{Applied, EndReason, FillReason, Outcome, Refusal, Replaced};
use primitives::{Amount, ClientId, Life, OfferPlace, OfferReplacement, Operation, Price, Sequence};

use crate::world::{EUR, FEE, START, USD, World, address, genesis};

const ALICE: u8 = 1;
const BOB: u8 = 2;

fn price(text: &str) -> Price {
    text.parse().expect("a price")
}

/// Alice sells euros for at least as many dollars.
fn sells(amount: Amount) -> Operation {
    Operation::offer(EUR, USD, amount, Price::ONE)
}

/// Bob buys euros for up to so many dollars, in this batch.
fn buys(amount: Amount) -> Operation {
    let life = Life::OneBatch;
    Operation::CreateOffer { sell: USD, buy: EUR, amount, limit: price("0.9"), life, client: ClientId::NONE }
}

fn replace(offer: Sequence, remains: Amount, amount: Amount) -> Operation {
    let old = OfferPlace { sell: EUR, buy: USD, limit: Price::ONE, offer };
    let (limit, life, client) = (Price::ONE, Life::Rests, ClientId([3; 16]));
    Operation::Replace(Box::new(OfferReplacement { old, remains, amount, limit, life, client }))
}

fn cancel(offer: Sequence) -> Operation {
    Operation::cancel(EUR, USD, Price::ONE, offer)
}

/// Ids and amounts that rest.
fn resting(world: &World) -> Vec<(Sequence, Amount)> {
    let offers = world.ledger.book().iter().flat_map(|(_, offers)| offers.iter().collect::<Vec<_>>());
    offers.map(|offer| (offer.place.id, offer.amount)).collect()
}

fn world() -> World {
    World::of(&genesis(None))
}

fn replaced(applied: &Applied, at: usize) -> Replaced {
    match applied.outcomes[at] {
        Outcome::Replaced(replaced) => replaced,
        other => panic!("{other:?}"),
    }
}

fn sold_by_alice(applied: &Applied) -> Amount {
    applied.batch.fills.iter().filter(|fill| fill.place.account == address(ALICE)).map(|fill| fill.sold).sum()
}

/// The race of the order form: 100 rest, a replacement by 100 is signed, and 60 are sold first. 40 rest.
#[test]
fn what_was_sold_before_a_replacement_is_not_sold_again() {
    let mut world = world();
    world.block(vec![(ALICE, sells(100_000))]);
    let sold = sold_by_alice(&world.block(vec![(BOB, buys(60_000))]));
    assert!(sold > 50_000 && resting(&world) == [(1, 100_000 - sold)]);
    let applied = world.block(vec![(ALICE, replace(1, 100_000, 100_000))]);
    assert_eq!(resting(&world), [(2, 100_000 - sold)]);
    let told = replaced(&applied, 0);
    assert_eq!((told.remained, told.met.left), (100_000 - sold, 100_000 - sold));
    assert_eq!((applied.batch.ended[0].returned, applied.batch.ended[0].why), (0, EndReason::Replaced));
    assert_eq!(world.balance(ALICE, EUR), START - 100_000);
}

/// 150 for 100 that were 40: 50 are debited, 90 rest, nothing is credited. And 20 for them: the rest goes back.
#[test]
fn a_replacement_debits_what_it_adds_and_credits_what_it_frees() {
    let mut world = world();
    world.block(vec![(ALICE, sells(100_000))]);
    let sold = sold_by_alice(&world.block(vec![(BOB, buys(60_000))]));
    world.block(vec![(ALICE, replace(1, 100_000, 150_000))]);
    assert_eq!(resting(&world), [(2, 150_000 - sold)]);
    assert_eq!(world.balance(ALICE, EUR), START - 150_000);
    let applied = world.block(vec![(ALICE, replace(2, 150_000 - sold, 20_000))]);
    assert_eq!(resting(&world), [(3, 20_000)]);
    assert_eq!(applied.batch.ended[0].returned, 130_000 - sold);
    assert_eq!(world.balance(ALICE, EUR), START - sold - 20_000);
    // More was sold than the new offer would have: nothing is placed, everything goes back.
    let applied = world.block(vec![(ALICE, replace(3, 60_000, 40_000))]);
    let told = replaced(&applied, 0);
    assert_eq!((told.remained, told.met.why, told.met.left), (20_000, FillReason::NotPlaced, 0));
    assert!(world.ledger.book().is_empty());
    assert_eq!(world.balance(ALICE, EUR), START - sold);
}

#[test]
fn a_replacement_that_cannot_be_is_refused_by_name() {
    let mut world = world();
    world.block(vec![(ALICE, sells(20_000))]);
    assert_eq!(world.outcome(ALICE, replace(9, 20_000, 20_000)), Some(Refusal::UNKNOWN_OFFER));
    assert_eq!(world.outcome(ALICE, replace(1, 19_999, 20_000)), Some(Refusal::REMAINS_TOO_FEW));
    assert_eq!(world.outcome(ALICE, replace(1, 20_000, 4_000)), Some(Refusal::SELLS_TOO_LITTLE));
    assert_eq!(world.outcome(ALICE, replace(1, 20_000, START + 1)), Some(Refusal::OVERDRAFT));
    assert_eq!(world.outcome(BOB, replace(1, 20_000, 20_000)), Some(Refusal::UNKNOWN_OFFER));
    assert_eq!(world.outcome(ALICE, replace(1, 20_000, START)), None, "with what rests it is the whole balance");
    assert_eq!(world.balance(ALICE, EUR), 0);
    // Two bodies for one offer, where one is of this block: it cannot be replaced yet.
    let next = world.sequences[&ALICE] + 1;
    let applied = world.block(vec![(ALICE, replace(2, START, START)), (ALICE, replace(next, START, START))]);
    assert_eq!(applied.outcomes[1].refusal(), Some(Refusal::UNKNOWN_OFFER));
}

/// All orders of a cancel and two replacements of one offer, beside an order that fills it: one state, one counts.
#[test]
fn a_cancel_and_two_replacements_come_to_one_state_in_every_order() {
    for (kept, counts) in
        [(vec![0, 1, 2], None), (vec![1, 2], Some(150_000)), (vec![1], Some(90_000)), (vec![0, 2], None)]
    {
        let mut states = Vec::new();
        for turn in 0..kept.len() {
            for flip in [false, true] {
                let mut world = world();
                world.block(vec![(ALICE, sells(100_000))]);
                let all = [cancel(1), replace(1, 100_000, 90_000), replace(1, 100_000, 150_000)];
                // Their numbers are the same in every order.
                let signed: Vec<_> = all.into_iter().map(|one| world.sign(ALICE, one)).collect();
                let mut block: Vec<_> = kept.iter().map(|at| signed[*at].clone()).collect();
                block.rotate_left(turn);
                if flip {
                    block.reverse();
                }
                let names: Vec<_> = block.iter().map(|one| one.body.sequence).collect();
                block.insert(turn, world.sign(BOB, buys(30_000)));
                let applied = world.run(vec![block[..1].to_vec(), block[1..].to_vec()]);
                let voids = applied.outcomes.iter().filter(|outcome| **outcome == Outcome::Void).count();
                assert_eq!(voids, kept.len() - 1, "one counts, whatever the order: {names:?}");
                let left: Amount = resting(&world).iter().map(|(_, amount)| *amount).sum();
                let sold = sold_by_alice(&applied);
                assert_eq!(sold + left, counts.unwrap_or(0));
                assert_eq!(world.balance(ALICE, EUR), START - sold - left, "an idle replacement takes no debit");
                let spent = kept.len() as Amount * FEE + FEE;
                let got = applied.batch.fills.iter().filter(|fill| fill.place.account == address(ALICE));
                assert_eq!(world.balance(ALICE, USD), START - spent + got.map(|fill| fill.bought).sum::<Amount>());
                states.push((resting(&world), world.roots.parts().root()));
            }
        }
        assert!(states.windows(2).all(|two| two[0].0 == two[1].0), "{states:?}");
    }
}

/// A maker replaces without looking, again and again, while others buy. What it sold and what rests is never more than
/// the last amount that it stated, counted from the first offer on.
#[test]
fn a_chain_of_replacements_never_sells_more_than_stated() {
    for seed in 0..40u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut draw = move |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let mut world = world();
        let mut stated = 50_000 + draw(100_000);
        world.block(vec![(ALICE, sells(stated))]);
        let (mut sold, mut last) = (0, world.sequences[&ALICE]);
        for _ in 0..12 {
            let next = 20_000 + draw(150_000);
            // Each replacement says what the one before stated, whatever was sold since.
            let (order, bid) = (draw(2), 5_000 + draw(60_000));
            let mut block = vec![(ALICE, replace(last, stated, next)), (BOB, buys(bid))];
            block.rotate_left(order as usize);
            let applied = world.block(block);
            sold += sold_by_alice(&applied);
            let refused = applied.outcomes.iter().any(|outcome| outcome.refusal().is_some());
            if refused {
                // Nothing rests any more: the chain has ended.
                break;
            }
            (last, stated) = (world.sequences[&ALICE], next);
            let left: Amount = resting(&world).iter().map(|(_, amount)| *amount).sum();
            assert!(sold + left <= stated.max(sold), "seed {seed}: sold {sold}, {left} rest, stated {stated}");
            assert_eq!(world.balance(ALICE, EUR), START - sold - left);
        }
    }
}
