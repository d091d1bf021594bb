//! Deposits, collections and payouts, and what traders do at each height around a match.

use ledger::{FillVerdict, Outcome, Refusal};
use primitives::venue::{KeyScope, Mandate, VenueOperation, VenueOrder};
use primitives::{Closing, Operation};

use crate::world::*;

#[test]
fn a_collection_is_owed_at_the_first_height_past_its_request_whatever_the_venue_does() {
    for units in [60_000, 100_000, 999_999] {
        let mut world = World::new();
        let before = world.balance(BUYER, USD);
        world.done(vec![(BUYER, collect(USD, units))]);
        let requested = world.height();
        assert_eq!(world.refusal(BUYER, collect(USD, 1)), Some(Refusal::COLLECTING), "one at a time");
        while world.balance(BUYER, USD) < before {
            world.empty_blocks(1);
        }
        assert_eq!(world.height(), requested + DELAY.heights + 1);
        let paid = units.min(100_000);
        assert!((before + paid - 20..=before + paid).contains(&world.balance(BUYER, USD)));
        assert_eq!(world.deposit(BUYER, USD).units(), 100_000 - paid);
    }
}

#[test]
fn a_collection_waits_while_the_clock_stands() {
    let mut world = World::new();
    world.done(vec![(BUYER, collect(USD, 5))]);
    let (requested, time) = (world.height(), world.time_ms);
    for passed in 1..20 {
        world.run_at(time + passed, vec![]);
        assert!(world.deposit(BUYER, USD).leaving.is_some());
    }
    world.run_at(time + DELAY.ms, vec![]);
    assert!(world.deposit(BUYER, USD).leaving.is_some());
    let applied = world.run_at(time + DELAY.ms + 1, vec![]);
    assert!(world.deposit(BUYER, USD).leaving.is_none() && world.height() > requested + 20);
    assert_eq!(applied.modified, [address(BUYER)]);
}

#[test]
fn payouts_are_queued_and_pay_the_oldest_first() {
    let mut terms = terms();
    (terms.per_block, terms.settle_bytes, terms.venues_max) = (8, 1_024, 1);
    let mut world = World::of(terms);
    let people = [BUYER, SELLER, 5, 6];
    for asset in [USD, EUR, GLD] {
        world.done(people.map(|person| (person, collect(asset, 10))).to_vec());
    }
    // The first two requests are owed, and the clock lets all of them be past at once.
    let waiting = |world: &World| {
        let leaving = |person| [USD, EUR, GLD].map(|asset| u64::from(world.deposit(person, asset).leaving.is_some()));
        people.iter().flat_map(|person| leaving(*person)).sum::<u64>()
    };
    for _ in 0..10 {
        world.run_at(world.time_ms + 1, vec![]);
    }
    assert_eq!(waiting(&world), 12);
    world.run_at(world.time_ms + 10_000, vec![]);
    assert_eq!(waiting(&world), 4);
    assert!(people.iter().all(|person| world.deposit(*person, GLD).leaving.is_some()), "the last ones wait");
    world.empty_blocks(1);
    assert_eq!(waiting(&world), 0, "and is paid with the next block");
}

#[test]
fn what_leaves_pays_for_fills_after_what_is_free_until_it_is_past() {
    let mut world = World::new();
    let all = |order: VenueOrder| VenueOrder { lots: 1_000, tick: 1, ..order };
    let of = |lots| Match { tick: 1, ..fill(all(buy(1)), all(sell(1)), lots) };
    world.done(vec![(BUYER, collect(USD, 99_900))]);
    let requested = world.height();
    assert_eq!(world.settles(&[of(60)]), [FillVerdict::Applied], "100 are free, and 20 leave");
    let deposit = world.deposit(BUYER, USD);
    assert_eq!((deposit.free, deposit.leaving.map(|leaving| leaving.units)), (0, Some(99_880)));
    let before = world.balance(BUYER, USD);
    while world.height() < requested + DELAY.heights - 1 {
        world.empty_blocks(1);
    }
    assert_eq!(world.settles(&[of(10)]), [FillVerdict::Applied], "at the last height that is not past");
    world.settles(&[of(10)]);
    assert_eq!(world.verdicts.len(), 1);
    assert!(world.balance(BUYER, USD) > before + 99_000, "what is left of it is paid");
}

/// No option: a trader who revokes, raises or collects at the worst height makes no fill bust that is settled in time.
#[test]
fn rotate_revoke_raise_collect_at_each_height_around_a_match_is_no_option() {
    let acts: [fn() -> VenueOperation; 4] =
        [|| revoke(BUYER), || raise(BUYER, 9), || collect(USD, 100_000), || collect(EUR, 100_000)];
    for act in acts {
        for wait in 0..DELAY.heights + 2 {
            let mut world = World::new();
            let person = if act() == collect(EUR, 100_000) { SELLER } else { BUYER };
            world.done(vec![(person, act())]);
            let acted = world.height();
            world.empty_blocks(wait);
            let verdicts = world.settles(&[fill(buy(1), sell(1), 1)]);
            let is_past = world.height() > acted + DELAY.heights;
            assert_eq!(verdicts == [FillVerdict::Applied], !is_past, "{:?} after {wait} heights", act());
        }
    }
}

#[test]
fn an_expired_order_fills_until_its_expiry_is_past_and_its_entry_lives_as_long() {
    for late in 0..DELAY.heights + 3 {
        let mut world = World::new();
        let expiry = world.height() + 2;
        let order = VenueOrder { expiry, ..buy(1) };
        world.settles(&[fill(order, sell(1), 1)]);
        world.empty_blocks(late);
        let has_entry = world.ledger.venues().expect("there").filled(VENUE, &key_of(BUYER), &order.number).is_some();
        let is_past = world.height() + 1 > expiry + DELAY.heights;
        assert_eq!(has_entry, world.height() <= expiry + DELAY.heights);
        assert_eq!(world.settles(&[fill(order, sell(1), 1)]) == [FillVerdict::Applied], !is_past, "{late}");
    }
}

#[test]
fn what_helps_acts_in_the_next_block() {
    let mut world = World::new();
    let authorize = world.authorize(7, &trading(7), mandate());
    let of = Match { buyer: (7, buy(1)), ..fill(buy(1), sell(1), 1) };
    let settle = VenueOperation::Settle(world.settle(&[of]));
    let applied = world.block(vec![(7, authorize), (7, deposit(USD, 500)), (OPERATOR, settle)]);
    assert_eq!(applied.outcomes, [Outcome::Applied; 3]);
    assert_ne!(world.verdicts, [FillVerdict::Applied], "markets, keys and deposits are those before the block");
    assert_eq!(world.settles(&[of]), [FillVerdict::Applied]);
}

#[test]
fn an_authorisation_needs_the_key_and_is_never_repeated() {
    let mut world = World::new();
    let theirs = world.authorize(7, &trading(8), mandate());
    // The same bytes from another account: the possession names account 7.
    let applied = world.block(vec![(8, theirs.clone())]);
    assert_eq!(applied.outcomes, [Outcome::Refused(Refusal::BAD_SIGNATURE)]);
    *world.sequences.get_mut(&8).expect("signed") -= 1;
    assert_eq!(world.refusal(7, theirs.clone()), None);
    assert_eq!(world.refusal(7, theirs.clone()), Some(Refusal::KEY_TAKEN));
    let revoke = |key| VenueOperation::Revoke { venue: VENUE, key };
    assert_eq!(world.refusal(8, revoke(key_of(8))), Some(Refusal::NOT_YOUR_KEY));
    assert_eq!(world.refusal(7, revoke(key_of(8))), None);
    world.empty_blocks(10);
    assert_eq!(world.refusal(7, theirs), Some(Refusal::KEY_TAKEN), "a tombstone stays");
    assert_eq!(world.refusal(7, revoke(key_of(8))), Some(Refusal::NOT_YOUR_KEY));
}

#[test]
fn only_the_scope_of_a_venue_is_authorised() {
    let mut world = World::new();
    for scope in [KeyScope::Batch, KeyScope::Cancel] {
        let other = world.authorize(7, &trading(8), Mandate { scope, ..mandate() });
        assert_eq!(world.refusal(7, other), Some(Refusal::KEY_SCOPE), "{}", scope.name());
    }
    let own = world.authorize(7, &trading(8), mandate());
    assert_eq!(world.refusal(7, own), None);
}

#[test]
fn at_most_four_raises_wait_and_each_counts_once_it_is_past() {
    let mut world = World::new();
    // Blocks of a millisecond: nothing is past by the clock.
    let raised = |world: &mut World, floor| {
        let transaction = world.sign(BUYER, raise(BUYER, floor));
        world.run_at(world.time_ms + 1, vec![transaction]).outcomes[0]
    };
    for floor in [2, 4, 6, 8] {
        assert_eq!(raised(&mut world, floor), Outcome::Applied);
    }
    assert_eq!(raised(&mut world, 10), Outcome::Refused(Refusal::FLOOR_NOT_RAISED));
    *world.sequences.get_mut(&BUYER).expect("signed") -= 1;
    world.empty_blocks(10);
    let floor =
        |world: &World| world.ledger.venues().expect("there").key(VENUE, &key_of(BUYER)).cloned().expect("there");
    assert_eq!(floor(&world).raises.len(), 4, "raises are merged when they are touched");
    assert_ne!(world.settles(&[fill(buy(7), sell(7), 1)]), [FillVerdict::Applied]);
    assert_eq!(world.settles(&[fill(buy(8), sell(8), 1)]), [FillVerdict::Applied]);
    assert_eq!((floor(&world).floor, floor(&world).raises.len()), (buy(8).number, 0));
    assert_eq!(world.refusal(BUYER, raise(BUYER, 8)), Some(Refusal::FLOOR_NOT_RAISED));
}

#[test]
fn traders_whose_deposits_change_are_among_the_modified_accounts() {
    let mut world = World::new();
    let settle = VenueOperation::Settle(world.settle(&[Match { fees: (1, 0), ..fill(buy(1), sell(1), 1) }]));
    let applied = world.block(vec![(OPERATOR, settle)]);
    let mut expected = [OWNER, OPERATOR, BUYER, SELLER].map(address);
    expected.sort_unstable();
    assert_eq!(applied.modified, expected);
}

#[test]
fn a_deposit_is_the_senders_own_and_needs_its_units_and_a_venue() {
    let mut world = World::new();
    let elsewhere = VenueOperation::Deposit { venue: 9, asset: USD, units: 1 };
    assert_eq!(world.refusal(BUYER, elsewhere), Some(Refusal::UNKNOWN_VENUE));
    assert_eq!(world.refusal(BUYER, deposit(USD, 0)), Some(Refusal::ZERO_AMOUNT));
    assert_eq!(world.refusal(BUYER, deposit(primitives::AssetId(9), 1)), Some(Refusal::UNKNOWN_ASSET));
    assert_eq!(world.refusal(BUYER, deposit(USD, START)), Some(Refusal::OVERDRAFT));
    assert_eq!(world.refusal(7, collect(USD, 1)), Some(Refusal::NO_DEPOSIT));
}

/// What was deposited before its asset closed trades at venues and comes home; nothing more comes in. A fill in flight
/// at the last height settles as at every other.
#[test]
fn what_was_deposited_trades_and_comes_home_after_its_asset_closed() {
    const ISSUER: u8 = 9;
    let mut world = World::new();
    let gift = world.sign_native(BUYER, Operation::Pay { to: address(ISSUER), asset: USD, amount: 10 });
    world.run(vec![gift]);
    let close = world.sign_native(ISSUER, Operation::CloseAsset { asset: EUR, closing: Closing::Announce });
    assert_eq!(world.run(vec![close]).outcomes, [Outcome::Applied]);
    let last = world.ledger.listings().closes(EUR).expect("it closes");
    assert_eq!(world.refusal(SELLER, deposit(EUR, 10)), None);
    world.empty_blocks(last - world.height());
    assert_eq!(world.refusal(SELLER, deposit(EUR, 10)), Some(Refusal::ASSET_CLOSED));
    assert_eq!(world.settles(&[fill(buy(1), sell(1), 1)]), [FillVerdict::Applied], "a fill in flight settles");
    let before = world.balance(SELLER, EUR);
    world.done(vec![(SELLER, collect(EUR, 1_000))]);
    while world.balance(SELLER, EUR) == before {
        world.empty_blocks(1);
    }
    assert_eq!(world.balance(SELLER, EUR), before + 1_000);
}
