//! Controls at venues: a freeze counts once it is past, and nobody is guilty of what it busts.

use primitives::venue::{
    Mandate, MarketMandate, MarketTerms, OrderLife, OrderNumber, OrderSignature, SelfTradeRule, Settle, SettledFill,
    SettledOrder, VenueOperation, VenueOperator, VenueOrder, VenueSide,
};
use primitives::{AssetControl, AssetId, Operation, SecretKey, Signature};
use proofs::{BustGuilt, BustReason, FillVerdict, LeavingDeposit, Refusal, VenueDeposit};

use super::super::RECOVERY_WAIT;
use super::world::*;
use crate::places::venues::VenueMistake;

const OWNER: u8 = CY;
const DEPOSITED: u64 = 100_000;

fn at(operation: VenueOperation) -> Operation {
    Operation::Venue(Box::new(operation))
}

fn trading(person: u8) -> SecretKey {
    SecretKey::from_seed([100 + person; 32])
}

fn market() -> MarketTerms {
    MarketTerms {
        base: CTL,
        quote: USD,
        lot_units: 10,
        tick_units: 2,
        lots_max: 1_000,
        fee_cap_ppm: 10_000,
        penalty: 5,
    }
}

fn deposit(asset: AssetId, units: u64) -> Operation {
    at(VenueOperation::Deposit { venue: 0, asset, units })
}

fn recall(person: u8) -> Operation {
    at(VenueOperation::Recall { venue: 0, asset: CTL, account: account(person) })
}

fn collect(asset: AssetId) -> Operation {
    at(VenueOperation::Collect { venue: 0, asset, units: DEPOSITED })
}

/// A venue of one market, whose owner settles, and two traders with deposits.
fn opened(control: AssetControl) -> World {
    let mut world = World::new(control);
    let operator = VenueOperator { account: account(OWNER), report_key: trading(9).public() };
    world.done(vec![(OWNER, at(VenueOperation::Open { venue: 0, operator, fee_cap_ppm: 10_000, bond: 50_000 }))]);
    world.done(vec![(OWNER, at(VenueOperation::List { venue: 0, market: 0, terms: market() }))]);
    let all = [ANN, BOB].into_iter().flat_map(|person| [CTL, USD].map(|asset| (person, deposit(asset, DEPOSITED))));
    world.done(all.collect());
    let of = MarketMandate { market: 0, tick_min: 1, tick_max: 1_000 };
    let mandate = Mandate { markets: vec![of], caps: vec![(USD, START), (CTL, START)], ..Mandate::default() };
    let (venue, possession) = (0, Signature([0; 64]));
    let authorize = |person| {
        let (key, mandate) = (trading(person).public(), mandate.clone());
        (person, at(VenueOperation::Authorize { venue, key, mandate, possession }))
    };
    world.done([ANN, BOB].map(authorize).to_vec());
    world
}

fn order(world: &World, person: u8, side: VenueSide, reference: u32) -> SettledOrder {
    let number = |reference| OrderNumber { incarnation: 0, day: 1, reference };
    let order = VenueOrder {
        market: 0,
        number: number(reference),
        floor: number(0),
        side,
        life: OrderLife::Rests,
        self_trade: SelfTradeRule::ExpireBoth,
        tick: 100,
        lots: 10,
        expiry: world.ledger.height() + 20,
        until_ms: None,
        fee_cap_ppm: 10_000,
    };
    SettledOrder { key: trading(person).public(), order, signature: OrderSignature::Own(Signature([0; 64])) }
}

/// Settles a lot that Ann sells to Bob; returns the verdict.
fn settle(world: &mut World, reference: u32) -> FillVerdict {
    let (buy, sell) = (order(world, BOB, VenueSide::Buy, reference), order(world, ANN, VenueSide::Sell, reference));
    let buyer = buy.key;
    let mut orders = vec![buy, sell];
    orders.sort_by_key(|order| order.key);
    let buys = u16::from(orders[0].key != buyer);
    let fills = vec![SettledFill {
        buy: buys,
        sell: 1 - buys,
        lots: 1,
        tick: 100,
        fee_buy: 1,
        fee_sell: 0,
        taker: VenueSide::Buy,
    }];
    let from = world.ledger.venues().and_then(|venues| venues.get(0)).expect("open").fills.count();
    let settle = Settle { venue: 0, incarnation: 0, from, orders, fills };
    let applied = world.done(vec![(OWNER, at(VenueOperation::Settle(settle)))]);
    applied.venues[0].verdicts[0]
}

fn held(world: &World, person: u8) -> VenueDeposit {
    world.ledger.venues().expect("venues").deposit(0, &account(person), CTL)
}

const FROZEN: FillVerdict = FillVerdict::Bust(BustReason::Frozen, BustGuilt::Nobody);

/// Whether a freeze of the seller counts at the venue when it is past, and no block before.
fn counts_when_past(mistake: VenueMistake) -> bool {
    let mut world = opened(AssetControl::Freezable);
    let venues = world.ledger.places.venues.as_mut().map(std::sync::Arc::make_mut).expect("venues");
    venues.plant(mistake);
    world.done(vec![(ISSUER, freeze(ANN))]);
    let early = settle(&mut world, 1);
    world.pass(DELAY.heights + 1);
    (early, settle(&mut world, 2)) == (FillVerdict::Applied, FROZEN)
}

#[test]
fn a_freeze_that_counts_at_venues_at_once_or_never_is_found() {
    assert!(counts_when_past(VenueMistake::None));
    assert!(!counts_when_past(VenueMistake::FreezeAtOnce) && !counts_when_past(VenueMistake::FrozenTrade));
}

#[test]
fn a_freeze_is_no_option() {
    for frozen in [ANN, BOB, OWNER] {
        let mut world = opened(AssetControl::Freezable);
        assert_eq!(settle(&mut world, 1), FillVerdict::Applied);
        world.done(vec![(ISSUER, freeze(frozen))]);
        let since = world.ledger.height();
        let issued = |world: &World| world.ledger.assets()[0].issued;
        let (mut reference, mut fees) = (1, 0);
        // Blocks are a second apart: D heights are past before τ is not.
        while world.ledger.height() < since + DELAY.heights {
            (reference, fees) = (reference + 1, issued(&world));
            assert_eq!(settle(&mut world, reference), FillVerdict::Applied, "it is not past");
            fees -= issued(&world);
        }
        let before = issued(&world);
        assert_eq!(settle(&mut world, 90), FROZEN);
        // The penalty is burnt, as fees are: nobody is paid for it.
        assert_eq!(before - issued(&world), fees + 5);
        world.done(vec![(ISSUER, unfreeze(frozen))]);
        assert_eq!(settle(&mut world, 91), FillVerdict::Applied);
    }
}

#[test]
fn who_was_never_admitted_is_frozen_at_venues_at_once_and_stays_so_when_that_is_said() {
    let mut world = opened(AssetControl::Admitted);
    assert_eq!(settle(&mut world, 1), FillVerdict::Applied);
    // As if the trader had never been admitted.
    std::sync::Arc::make_mut(&mut world.ledger.places.controls).holders.remove(&(CTL, account(ANN)));
    world.roots = crate::Roots::of(&world.ledger);
    assert_eq!(settle(&mut world, 2), FROZEN);
    world.done(vec![(ISSUER, freeze(ANN))]);
    assert_eq!(settle(&mut world, 3), FROZEN);
}

#[test]
fn an_owner_lists_no_market_in_an_asset_in_which_it_is_frozen() {
    let mut world = opened(AssetControl::Freezable);
    world.done(vec![(ISSUER, freeze(OWNER)), (ISSUER, freeze(ANN))]);
    let list =
        |base, quote| at(VenueOperation::List { venue: 0, market: 1, terms: MarketTerms { base, quote, ..market() } });
    assert_eq!(world.refused(OWNER, list(CTL, EUR)), Some(Refusal::FROZEN));
    assert_eq!(world.refused(OWNER, list(EUR, CTL)), Some(Refusal::FROZEN));
    assert_eq!(world.refused(OWNER, list(EUR, USD)), None);
    assert_eq!(world.refused(ANN, deposit(CTL, 1)), Some(Refusal::FROZEN));
    assert_eq!(world.refused(ANN, deposit(USD, 1)), None);
    // What is there comes home.
    world.done(vec![(ANN, collect(CTL))]);
    world.pass(DELAY.heights + 2);
    assert_eq!((held(&world, ANN), world.units(ANN, CTL)), (VenueDeposit::default(), START));
}

#[test]
fn an_issuer_recalls_what_a_frozen_holder_has_at_venues() {
    let mut world = opened(AssetControl::Recoverable);
    assert_eq!(world.refused(ISSUER, recall(ANN)), Some(Refusal::NOT_FROZEN_LONG));
    world.done(vec![(ISSUER, freeze(ANN))]);
    world.age(ANN, RECOVERY_WAIT);
    assert_eq!(world.refused(BOB, recall(ANN)), Some(Refusal::NOT_ISSUER));
    assert_eq!(world.refused(ISSUER, recall(CY)), Some(Refusal::NOT_FROZEN_LONG));
    let part = at(VenueOperation::Collect { venue: 0, asset: CTL, units: 7 });
    world.done(vec![(ANN, part)]);
    world.pass(1);
    // The holder's collection begins anew with it, and a collection beside it adds nothing.
    let (said, _) = world.said(vec![(ISSUER, recall(ANN)), (ANN, collect(CTL))]);
    assert!(said[0] == proofs::Outcome::Applied, "{said:?}");
    let (free, since) = (0, world.ledger.height());
    let leaving = Some(LeavingDeposit { units: DEPOSITED, since });
    assert_eq!(held(&world, ANN), VenueDeposit { free, leaving });
    world.pass(DELAY.heights + 2);
    assert_eq!((held(&world, ANN), world.units(ANN, CTL)), (VenueDeposit::default(), START));
    assert_eq!(world.refused(ISSUER, recall(ANN)), Some(Refusal::NO_DEPOSIT));
    world.done(vec![(ISSUER, recover(ANN, ISSUER, START))]);
    assert_eq!(world.units(ANN, CTL), 0);
}
