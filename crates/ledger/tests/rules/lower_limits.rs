//! What a vote that lowers a limit leaves: what there is stays, and new things wait for room.

use ledger::{Genesis, Limits, Refusal};
use primitives::{AssetId, Operation, Parameter, Price};

use crate::charter::World;
use crate::proposals::{ask, genesis, replay, sets, want};

const USD: AssetId = AssetId(0);
const EUR: AssetId = AssetId(1);
const TRADER: u8 = 5;

fn offers(world: &mut World, count: usize) -> Vec<Option<Refusal>> {
    let offer = Operation::offer(EUR, USD, 5_000, Price::from_f64(2.0).expect("in range"));
    let native = (0..count).map(|_| world.sign(TRADER, offer.clone())).collect();
    world.apply(native)
}

/// Six offers rest where a vote lets four rest. They stay, from the first height on no other comes, and a state that
/// is fetched meanwhile says the same.
#[test]
fn a_lower_limit_leaves_what_rests() {
    let limits = Limits { resting_offers: 8, open_pairs: 2, ..genesis().limits };
    let founded = Genesis { limits, ..genesis() };
    let mut world = World::new(&founded);
    world.until(2);
    assert_eq!(offers(&mut world, 5), [None; 5]);
    let ids = ask(&mut world, &[(0, sets(Parameter::RestingOffers, 4))]);
    want(&mut world, &[0, 1, 2], &ids);
    world.until(23);
    assert_eq!((world.ledger.limits().resting_offers, world.ledger.book().len()), (8, 5));
    assert_eq!(offers(&mut world, 1), [None], "the last block under the old limit");
    assert_eq!((world.ledger.limits().resting_offers, world.ledger.book().len()), (4, 6));
    assert_eq!(offers(&mut world, 2), [Some(Refusal::BOOK_FULL); 2]);
    world.until(30);
    assert_eq!(world.ledger.book().len(), 6);
    replay(&founded, &world);
}
