//! Controls in batches, pools and payments, and who may say what.

use primitives::{
    AssetControl, HolderState, Life, Operation, PoolKey, PoolOperation, SecretKey, SessionCap, SessionOperation,
    SessionScope, SessionTerms, Signature, SubBlock, Superblock, Transaction, slot_sequence,
};
use proofs::{EndReason, HolderRecord, Outcome, Pair, Place, Refusal};

use super::super::{FREEZE_ENDS_PER_SUB_BLOCK, HELD_OFFERS_MAX, HolderStanding, RECOVERY_WAIT};
use super::world::*;
use crate::{Ledger, Signatures};

const POOL: PoolKey = PoolKey { a: USD, b: CTL, class: 0 };
const LARGE: u64 = 1 << 26;

fn pool(operation: PoolOperation) -> Operation {
    Operation::Pool(Box::new(operation))
}

fn sells(amount: u64) -> Operation {
    offer(CTL, EUR, amount, 90, Life::Rests)
}

fn buys(amount: u64) -> Operation {
    offer(EUR, CTL, amount, 90, Life::OneBatch)
}

#[test]
fn a_freeze_changes_no_fill_of_its_block() {
    let mut world = World::new(AssetControl::Freezable);
    world.done(vec![(ANN, sells(40_000)), (ANN, offer(USD, CTL, 9_000, 1_000, Life::Rests))]);
    let mut without = world.clone();
    let trades = || vec![(BOB, buys(20_000)), (ANN, sells(8_000))];
    let frozen = world.done([(ISSUER, freeze(ANN))].into_iter().chain(trades()).collect());
    let open = without.done(trades());
    assert!(!frozen.batch.fills.is_empty());
    assert_eq!((&frozen.batch.fills, &frozen.batch.valuations), (&open.batch.fills, &open.batch.valuations));
    let ended: Vec<_> = frozen.batch.ended.iter().filter(|ended| ended.why == EndReason::Frozen).collect();
    assert_eq!((ended.len(), without.rests(CTL, EUR), without.rests(USD, CTL)), (3, 2, 1));
    assert_eq!((world.rests(CTL, EUR), world.rests(USD, CTL)), (0, 0));
    // All that rested is home; a unit of an offer that was new in the block is told to have returned.
    assert!(world.units(ANN, CTL) > without.units(ANN, CTL) && world.units(ANN, USD) == START - 3);
    let Outcome::Offered(met) = frozen.outcomes[2] else { panic!("{:?}", frozen.outcomes) };
    assert_eq!((met.left, met.sold + met.returned), (0, 8_000));
}

#[test]
fn a_frozen_holder_neither_spends_nor_buys_nor_receives() {
    let mut world = World::new(AssetControl::Freezable);
    world.done(vec![(ANN, sells(9_000)), (ANN, offer(EUR, USD, 9_000, 9_000, Life::Rests))]);
    world.done(vec![(BOB, pool(PoolOperation::Open { pool: POOL, x: LARGE, y: LARGE }))]);
    world.done(vec![(ISSUER, freeze(ANN))]);
    let replace = primitives::OfferReplacement {
        old: primitives::OfferPlace { sell: EUR, buy: USD, limit: primitives::Price::ONE, offer: 2 },
        remains: 9_000,
        amount: 9_000,
        limit: primitives::Price::ONE,
        life: Life::Rests,
        client: primitives::ClientId::NONE,
    };
    for refused in [
        pay(BOB, CTL, 1),
        sells(9_000),
        buys(9_000),
        offer(CTL, USD, 9_000, 90, Life::OneBatch),
        Operation::exact(CTL, EUR, primitives::ExactSide::Sell, 9_000, 1),
        Operation::exact(EUR, CTL, primitives::ExactSide::Buy, 9_000, 10_000),
        pool(PoolOperation::Provide { pool: POOL, shares: 1, most_a: 10, most_b: 10 }),
        Operation::Venue(Box::new(primitives::venue::VenueOperation::Deposit { venue: 0, asset: CTL, units: 1 })),
    ] {
        let is_unknown_venue = matches!(refused, Operation::Venue(_));
        let why = world.refused(ANN, refused.clone());
        let expected = if is_unknown_venue { Refusal::UNKNOWN_VENUE } else { Refusal::FROZEN };
        assert_eq!(why, Some(expected), "{refused:?}");
    }
    assert_eq!(world.refused(BOB, pay(ANN, CTL, 1)), Some(Refusal::RECEIVER_FROZEN));
    let issue = Operation::Issue { to: account(ANN), asset: CTL, amount: 1 };
    assert_eq!(world.refused(ISSUER, issue), Some(Refusal::RECEIVER_FROZEN));
    // Other assets, and what rests in them, are untouched.
    assert_eq!(world.refused(ANN, pay(BOB, EUR, 1)), None);
    assert_ne!(world.refused(ANN, Operation::Replace(Box::new(replace))), Some(Refusal::FROZEN));
    assert_eq!(world.rests(EUR, USD), 1);
    world.done(vec![(ISSUER, unfreeze(ANN))]);
    assert_eq!(world.refused(ANN, pay(BOB, CTL, 1)), None);
}

#[test]
fn only_admitted_holders_hold_an_asset_that_admits() {
    let mut world = World::of(&genesis(AssetControl::Admitted));
    assert_eq!(world.refused(ANN, pay(BOB, CTL, 1)), Some(Refusal::NOT_ADMITTED));
    assert_eq!(world.refused(ISSUER, pay(ANN, CTL, 1)), Some(Refusal::RECEIVER_NOT_ADMITTED));
    world.done(vec![(ISSUER, unfreeze(ANN))]);
    assert_eq!(world.refused(ANN, pay(BOB, CTL, 1)), Some(Refusal::RECEIVER_NOT_ADMITTED));
    world.done(vec![(ISSUER, unfreeze(BOB)), (ISSUER, pay(ANN, CTL, 5))]);
    world.done(vec![(ANN, pay(BOB, CTL, 1)), (ANN, pay(ISSUER, CTL, 1))]);
    world.done(vec![(ISSUER, freeze(BOB)), (ISSUER, freeze(CY))]);
    let record = |person| *world.ledger.controls().record(CTL, &account(person)).expect("said");
    let since = world.ledger.height();
    assert_eq!(record(BOB), HolderRecord { is_open: false, since, was_open: true });
    assert_eq!(record(CY), HolderRecord { is_open: false, since, was_open: false });
    assert_eq!(world.refused(BOB, pay(ANN, CTL, 1)), Some(Refusal::FROZEN));
}

#[test]
fn a_frozen_share_is_not_sold() {
    let mut world = World::new(AssetControl::Freezable);
    world.done(vec![(BOB, pool(PoolOperation::Open { pool: POOL, x: LARGE, y: LARGE }))]);
    let provide = |most| pool(PoolOperation::Provide { pool: POOL, shares: 1 << 20, most_a: most, most_b: most });
    world.done(vec![(ANN, provide(LARGE)), (CY, provide(LARGE))]);
    let (before, cy) = (world.units(ANN, CTL), world.units(CY, CTL));
    // In the block of the freeze it provides once more, and half of it leaves.
    let leave = pool(PoolOperation::Leave { pool: POOL, shares: 1 << 19, least_a: 0, least_b: 0 });
    world.done(vec![(ANN, provide(LARGE)), (ANN, leave.clone()), (ISSUER, freeze(ANN)), (CY, leave.clone())]);
    let pools = world.ledger.pools().expect("pools");
    assert_eq!((pools.shares(POOL, account(ANN)), pools.shares(POOL, account(CY))), (0, 1 << 19));
    assert_eq!(world.units(ANN, CTL), START);
    assert_eq!((before, cy), (START - (1 << 22), START - (1 << 22)));
    assert_eq!(world.refused(ANN, leave), Some(Refusal::SHARES_NOT_HELD));
    // A friend buys only what others provide, and a frozen holder who never left finds its shares paid out.
    assert_eq!(world.units(ANN, USD), START - 3);
}

#[test]
fn custody_comes_home() {
    let mut world = World::new(AssetControl::Freezable);
    world.done(vec![(ANN, sells(9_000)), (ANN, offer(EUR, USD, 9_000, 9_000, Life::Rests))]);
    world.done(vec![(ISSUER, freeze(ANN))]);
    assert_eq!(world.units(ANN, CTL), START);
    let limit = primitives::Price::ratio_rounding_up(9_000, 100).expect("a price");
    world.done(vec![(ANN, Operation::cancel(EUR, USD, limit, 2))]);
    assert_eq!((world.units(ANN, EUR), world.ledger.book().len()), (START, 0));
}

#[test]
fn units_are_recovered_after_a_day_and_exactly() {
    let mut world = World::new(AssetControl::Recoverable);
    assert_eq!(world.refused(ISSUER, recover(ANN, CY, 1)), Some(Refusal::NOT_FROZEN_LONG));
    world.done(vec![(ISSUER, freeze(ANN)), (ISSUER, freeze(BOB))]);
    [ANN, BOB].into_iter().for_each(|person| world.age(person, RECOVERY_WAIT - 2));
    assert_eq!(world.refused(ISSUER, recover(ANN, CY, 1)), Some(Refusal::NOT_FROZEN_LONG));
    // To say it again, and to say it of somebody else, restarts nothing.
    world.done(vec![(ISSUER, freeze(ANN))]);
    for (wrong, why) in [
        (recover(ANN, BOB, 1), Refusal::RECEIVER_FROZEN),
        (recover(ANN, CY, START + 1), Refusal::RECOVERS_TOO_MUCH),
        (recover(CY, ANN, 1), Refusal::NOT_FROZEN_LONG),
    ] {
        assert_eq!(world.refused(ISSUER, wrong), Some(why));
    }
    assert_eq!(world.refused(BOB, recover(ANN, CY, 1)), Some(Refusal::NOT_ISSUER));
    let (said, _) = world.said(vec![
        (ISSUER, recover(ANN, CY, START)),
        (ISSUER, recover(ANN, ISSUER, 10)),
        (ISSUER, recover(BOB, CY, START)),
    ]);
    assert_eq!(said, [Outcome::Void, Outcome::Applied, Outcome::Applied]);
    assert_eq!((world.units(ANN, CTL), world.units(BOB, CTL), world.units(CY, CTL)), (START - 10, 0, 2 * START));
    world.done(vec![(ISSUER, unfreeze(ANN))]);
    assert_eq!(world.refused(ISSUER, recover(ANN, CY, 1)), Some(Refusal::NOT_FROZEN_LONG));
}

#[test]
fn an_issuer_says_only_what_it_controls_and_of_others() {
    let mut world = World::new(AssetControl::Freezable);
    let of = |asset, person| Operation::SetHolder {
        asset,
        account: account(person),
        state: HolderState::Frozen,
        reference: reference(),
    };
    assert_eq!(world.refused(ISSUER, of(EUR, ANN)), Some(Refusal::NOT_FREEZABLE));
    assert_eq!(world.refused(ISSUER, of(USD, ANN)), Some(Refusal::NOT_FREEZABLE));
    assert_eq!(world.refused(ISSUER, freeze(ISSUER)), Some(Refusal::HOLDER_EXEMPT));
    let token = crate::contracts::token_address(EUR);
    assert_eq!(world.refused(ISSUER, set(token, HolderState::Frozen)), Some(Refusal::HOLDER_EXEMPT));
    assert_eq!(world.refused(ANN, freeze(BOB)), Some(Refusal::NOT_ISSUER));
    assert_eq!(world.refused(ISSUER, recover(ANN, CY, 1)), Some(Refusal::NOT_RECOVERABLE));
    // Of two words in a block the later number counts, and an opening of who is open leaves no record.
    let (said, _) = world.said(vec![(ISSUER, unfreeze(ANN)), (ISSUER, freeze(ANN)), (ISSUER, unfreeze(ANN))]);
    assert_eq!(said, [Outcome::Void, Outcome::Void, Outcome::Applied]);
    assert_eq!(world.ledger.controls().holders().count(), 0);
    // What is proved is what stands.
    world.done(vec![(ISSUER, freeze(ANN))]);
    let root = world.roots.parts().root();
    for (person, is_open) in [(ANN, false), (BOB, true)] {
        let proof = world.roots.prove_holder(&world.ledger, CTL, &account(person));
        assert_eq!(proof.verify(&root, CTL, &account(person)), Ok((AssetControl::Freezable, is_open)));
        assert!(proof.verify(&root, CTL, &account(CY)).is_err() || person == BOB);
    }
    assert_eq!(world.ledger.controls().standing(CTL, &account(ANN)), HolderStanding::Frozen);
}

/// A block of these freezes by the issuer and by others, and why each is refused.
fn judge(ledger: &Ledger, native: Vec<Transaction>) -> Vec<Option<Refusal>> {
    let sub = SubBlock { proposer: 0, native, ..SubBlock::default() };
    let (height, parent) = (ledger.height() + 1, ledger.last_block());
    ledger.judge(&Superblock { height, parent, sub_blocks: vec![sub], ..Superblock::default() }, Signatures::Valid)
}

/// The ledger believes that accounts have many offers of an asset.
fn crowd(world: &mut World, person: u8, count: u64) {
    let controls = world.ledger.shared_controls();
    for id in 0..count {
        let place = Place { limit: primitives::Price::ONE, account: account(person), id: 1_000 + id };
        world.ledger.held.come(&controls, Pair { sell: CTL, buy: EUR }, &place);
    }
}

#[test]
fn strangers_delay_no_freeze() {
    let mut world = World::new(AssetControl::Freezable);
    crowd(&mut world, ANN, FREEZE_ENDS_PER_SUB_BLOCK.into());
    crowd(&mut world, BOB, 1);
    // Who may not say it counts for nothing; what ends nothing is not refused beside a freeze that ends all.
    let native = [(BOB, ANN), (ISSUER, ANN), (ISSUER, BOB), (ISSUER, CY), (CY, BOB)];
    let native = native.map(|(who, of)| world.signed(who, freeze(of))).to_vec();
    let refused = Some(Refusal::NOT_ISSUER);
    assert_eq!(judge(&world.ledger, native), [refused, None, Some(Refusal::OVER_QUOTA), None, refused]);
}

#[test]
fn an_account_rests_no_more_offers_of_a_controlled_asset_than_a_freeze_ends() {
    let mut world = World::new(AssetControl::Freezable);
    crowd(&mut world, ANN, u64::from(HELD_OFFERS_MAX) - 1);
    assert_eq!(world.refused(ANN, sells(9_000)), None);
    crowd(&mut world, ANN, u64::from(HELD_OFFERS_MAX));
    assert_eq!(world.refused(ANN, sells(9_000)), Some(Refusal::CONTROLLED_OFFERS_FULL));
    let other = offer(EUR, CTL, 9_000, 90, Life::Rests);
    assert_eq!(world.refused(ANN, other), Some(Refusal::CONTROLLED_OFFERS_FULL));
    for free in [buys(9_000), offer(EUR, USD, 9_000, 90, Life::Rests)] {
        assert_eq!(world.refused(ANN, free), None);
    }
    assert_eq!(world.refused(BOB, sells(9_000)), None);
}

#[test]
fn a_session_key_of_scope_control_freezes_as_many_as_its_cap_and_opens_nobody() {
    let mut world = World::new(AssetControl::Freezable);
    let bot = SecretKey::from_seed([77; 32]);
    let caps = [(USD, 100), (CTL, 2)].map(|(asset, units)| SessionCap { asset, units }).into();
    let (scope, until) = (SessionScope::Control, BEGINS + 900);
    let terms = SessionTerms { slot: 1, key: bot.public(), scope, until, alive: until, caps };
    let possession = Signature([0; 64]);
    world.done(vec![(ISSUER, Operation::Session(Box::new(SessionOperation::Authorize { terms, possession })))]);
    let mut number = 0;
    let mut by_bot = |world: &mut World, operation: Operation| {
        number += 1;
        let mut one = world.signed(ISSUER, operation);
        one.body.sequence = slot_sequence(1, number);
        Transaction::by_key(one.body, bot.public(), Signature([0; 64]))
    };
    for (wrong, why) in [
        (unfreeze(ANN), Refusal::SESSION_SCOPE),
        (pay(ANN, USD, 1), Refusal::SESSION_SCOPE),
        (sells(9_000), Refusal::SESSION_SCOPE),
    ] {
        let one = by_bot(&mut world, wrong);
        assert_eq!(world.ledger.admit(&one), Err(why));
    }
    let three = [ANN, BOB, CY].map(|person| by_bot(&mut world, freeze(person)));
    let all = judge(&world.ledger, three.to_vec());
    assert_eq!(all, [Some(Refusal::SESSION_CAP); 3], "together they are more than the cap");
    world.block(three[..2].to_vec(), Vec::new());
    assert_eq!(world.ledger.controls().standing(CTL, &account(BOB)), HolderStanding::Frozen);
    assert_eq!(world.ledger.admit(&three[2]), Err(Refusal::SESSION_CAP));
}

/// How often a payment looks for records of holders when it is checked.
fn looks(world: &mut World, from: u8, asset: primitives::AssetId) -> u64 {
    let payment = world.signed(from, pay(BOB, asset, 1));
    let count = || super::super::LOOKS.with(std::cell::Cell::get);
    let before = count();
    assert_eq!(world.ledger.admit(&payment), Ok(()));
    count() - before
}

#[test]
fn a_payment_of_an_open_asset_looks_nobody_up_and_one_of_a_controlled_asset_two() {
    for control in [AssetControl::Freezable, AssetControl::AdmittedRecoverable] {
        let mut world = World::new(control);
        assert_eq!([USD, EUR].map(|asset| looks(&mut world, ANN, asset)), [0, 0]);
        assert_eq!(looks(&mut world, ANN, CTL), 2);
        // The issuer is exempt, whatever was said of it.
        assert_eq!(looks(&mut world, ISSUER, CTL), 1);
    }
}

#[test]
fn a_genesis_controls_what_it_names_and_no_first_asset() {
    let fault = |controls| Ledger::new(&crate::Genesis { controls, ..genesis(AssetControl::Freezable) }).err();
    let sound = vec![(CTL, AssetControl::Admitted), (EUR, AssetControl::Freezable)];
    assert_eq!(fault(sound.clone()), None);
    for wrong in [
        vec![(USD, AssetControl::Freezable)],
        vec![(CTL, AssetControl::Open)],
        vec![(primitives::AssetId(3), AssetControl::Freezable)],
        sound.into_iter().rev().collect(),
    ] {
        assert!(matches!(fault(wrong), Some(crate::GenesisError::Controls(_))));
    }
    let of = |controls| crate::Genesis { controls, ..genesis(AssetControl::Freezable) }.digest();
    assert_ne!(of(vec![(CTL, AssetControl::Freezable)]), of(vec![(CTL, AssetControl::Admitted)]));
}
