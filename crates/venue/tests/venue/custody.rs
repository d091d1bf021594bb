//! Nothing that is matched busts, as long as it is settled in time, whatever traders do and proposers hold back.

use kernel::FaultDisk;
use primitives::venue::{Mandate, MarketMandate, OrderLife, VenueOperation, VenueOrder};
use venue::{
    FillFate, MarketSettings, OrderEnd, OrderRefusal, ReportKind, SettlingTerms, Steering, VenueInput, VenueLimits,
    VenueMistake, VenueOptions, VenuePause, VenueRoot, VenueSettings,
};

use crate::world::*;

type Mistake = Option<VenueMistake>;

fn limits() -> VenueLimits {
    VenueLimits { quiet_ms: QUIET, ..VenueLimits::default() }
}

/// Unsettled units buy nothing: Ann has ten lots, buys ten more, and sells fifteen.
pub fn credits(mistake: Mistake) -> Result<(), String> {
    let mut world = World::new(mistake);
    world.block(vec![(ANN, collect(EUR, DEPOSIT - 10 * LOT))]);
    world.certify();
    world.trade(BEN, ANN, 100, 10);
    let sell = world.sell(100, 15);
    let refused = refusal(&world.place(ANN, sell));
    let wanted = OrderRefusal::Funds { asset: EUR, available: 10 * LOT, needed: 15 * LOT };
    expect("an order that unsettled units would pay", refused, Some(wanted))?;
    world.settle_all()?;
    let sell = world.sell(100, 15);
    expect("the same after the settle", refusal(&world.place(ANN, sell)), None)?;
    world.check()
}

/// Units that leave cover what was matched before, and nothing new.
pub fn leaving(mistake: Mistake) -> Result<(), String> {
    let mut world = World::new(mistake);
    world.trade(ANN, BEN, 100, 5);
    world.block(vec![(ANN, collect(EUR, DEPOSIT))]);
    world.certify();
    world.settle_all()?;
    world.trade(ANN, BEN, 100, 5);
    world.settle_late()
}

/// Open orders end, the newest first, when the deposit does not cover all of them any more.
pub fn uncovered(mistake: Mistake) -> Result<(), String> {
    let mut world = World::new(mistake);
    let orders = [0, 1].map(|_| world.sell(100, 10));
    orders.iter().for_each(|order| drop(world.place(ANN, *order)));
    world.block(vec![(ANN, collect(EUR, DEPOSIT - 15 * LOT))]);
    world.pass(1);
    if mistake.is_none() {
        expect("the newest ends", world.ended(ANN, orders[1].number), Some(OrderEnd::Uncovered))?;
        expect("the older one stays", world.open(ANN, orders[0].number), Some(10))?;
    }
    let buy = world.buy(100, 20);
    world.place(BEN, buy);
    world.settle_late()
}

/// A key that may lose little: what is unsettled counts.
pub fn drawdown(mistake: Mistake) -> Result<(), String> {
    let of_cleo = Mandate { caps: vec![(USD, 1_000), (EUR, 0)], ..mandate() };
    let mut world = World::with(mistake, of_cleo, limits());
    world.trade(ANN, CLEO, 100, 4);
    world.trade(ANN, CLEO, 100, 2);
    world.settle_late()?;
    expect("fills", world.leaves.len(), 1)
}

/// A revocation that is known is obeyed, although the ledger waits.
pub fn revocation(mistake: Mistake) -> Result<(), String> {
    let mut world = World::new(mistake);
    let sell = world.sell(100, 5);
    world.place(ANN, sell);
    world.block(vec![(ANN, VenueOperation::Revoke { venue: VENUE, key: public(ANN) })]);
    world.pass(1);
    let buy = world.buy(100, 5);
    world.place(BEN, buy);
    world.settle_late()
}

/// So is a raise of a floor.
pub fn raise(mistake: Mistake) -> Result<(), String> {
    let mut world = World::new(mistake);
    let sell = world.sell(100, 5);
    world.place(ANN, sell);
    let floor = number(sell.number.reference + 1);
    world.block(vec![(ANN, VenueOperation::RaiseFloor { venue: VENUE, key: public(ANN), floor })]);
    world.pass(1);
    let buy = world.buy(100, 5);
    world.place(BEN, buy);
    world.settle_late()
}

/// A floor that an order states acts at once, in the venue's order.
pub fn floor_of_an_order(mistake: Mistake) -> Result<(), String> {
    let mut world = World::new(mistake);
    let (old, new) = (world.sell(100, 5), world.sell(99, 5));
    world.place(ANN, old);
    world.place(ANN, VenueOrder { floor: new.number, ..new });
    for tick in [99, 100] {
        let buy = world.buy(tick, 5);
        world.place(BEN, buy);
    }
    world.settle_late()
}

/// An order is matched up to its last height, and its fills may settle D heights later.
pub fn expiry(mistake: Mistake) -> Result<(), String> {
    let mut world = World::new(mistake);
    let last = VenueOrder { expiry: world.height(), ..world.sell(100, 5) };
    world.place(ANN, last);
    let buy = world.buy(100, 2);
    world.place(BEN, buy);
    world.settle_late()?;
    expect("fills at the last height", world.leaves.len(), 1)?;
    let next = VenueOrder { expiry: world.height() + 1, ..world.sell(100, 5) };
    world.place(ANN, next);
    world.pass(DELAY.heights / 2);
    let buy = world.buy(100, 5);
    world.place(BEN, buy);
    world.settle_late()
}

/// A better price than the limit may be outside of the key's band.
pub fn band(mistake: Mistake) -> Result<(), String> {
    let of_cleo = Mandate { markets: vec![MarketMandate { market: MARKET, tick_min: 90, tick_max: 110 }], ..mandate() };
    let mut world = World::with(mistake, of_cleo, limits());
    let (cheap, buy) = (world.sell(80, 5), world.buy(100, 5));
    world.place(ANN, cheap);
    let refused = refusal(&world.place(CLEO, buy));
    if mistake.is_none() {
        expect("a price below the band", refused, Some(OrderRefusal::Band(79)))?;
    }
    let (far, worse) = (world.buy(111, 5), world.sell(85, 5));
    expect("the limit", refusal(&world.place(CLEO, far)), Some(OrderRefusal::Band(110)))?;
    expect("a sell below", refusal(&world.place(CLEO, worse)), Some(OrderRefusal::Band(90)))?;
    world.settle_late()
}

/// The bond covers two backlogs, or nothing is matched.
pub fn bond(mistake: Mistake) -> Result<(), String> {
    let mut world = World::new(mistake);
    let covered = (BOND - BOND_MIN) / PENALTY / 2 / 1_000;
    (0..covered).for_each(|_| world.trade(ANN, BEN, 1, 1_000));
    expect("fills", world.root().counts().0, covered)?;
    let (sell, buy) = (world.sell(1, 1_000), world.buy(1, 1_000));
    world.place(ANN, sell);
    expect("one more", refusal(&world.place(BEN, buy)), Some(OrderRefusal::Paused(VenuePause::Bond)))?;
    world.settle_all()?;
    let buy = world.buy(1, 1_000);
    expect("it goes on by itself", executed(&world.place(BEN, buy)), 1_000)?;
    world.settle_all()
}

#[test]
fn unsettled_credits_buy_nothing_and_settled_ones_do() {
    credits(None).expect("holds");
}

#[test]
fn units_that_leave_cover_only_what_was_matched_before() {
    leaving(None).expect("holds");
    uncovered(None).expect("holds");
}

#[test]
fn what_a_key_may_lose_bounds_open_orders_and_unsettled_fills() {
    drawdown(None).expect("holds");
}

#[test]
fn revocations_raises_and_floors_of_orders_are_obeyed_at_once() {
    revocation(None).expect("holds");
    raise(None).expect("holds");
    floor_of_an_order(None).expect("holds");
}

#[test]
fn an_order_is_matched_up_to_its_last_height() {
    expiry(None).expect("holds");
}

#[test]
fn an_order_is_matched_up_to_its_block_time() {
    let mut world = World::new(None);
    let until_ms = Some(world.time_ms + STEP);
    let sell = VenueOrder { until_ms, ..world.sell(100, 5) };
    world.place(ANN, sell);
    world.pass(1);
    let buy = world.buy(100, 2);
    assert_eq!(executed(&world.place(BEN, buy)), 2, "its time is that of the block");
    world.settle_late().expect("holds");
    assert_eq!(world.ended(ANN, sell.number), Some(OrderEnd::Expired));
    let late = VenueOrder { until_ms: Some(world.time_ms - 1), ..world.sell(100, 5) };
    assert_eq!(refusal(&world.place(ANN, late)), Some(OrderRefusal::UntilPassed(world.time_ms)));
    let long = VenueOrder { expiry: world.height() + terms().life_max + 1, ..world.sell(100, 5) };
    let latest = world.height() + terms().life_max;
    assert_eq!(refusal(&world.place(ANN, long)), Some(OrderRefusal::ExpiresTooLate(latest)));
}

#[test]
fn an_operator_bounds_the_life_and_the_size_of_orders() {
    let mut world = World::with(None, mandate(), VenueLimits { life_heights: 20, ..limits() });
    let latest = world.height() + 20;
    let long = VenueOrder { expiry: latest + 1, ..world.sell(100, 5) };
    assert_eq!(refusal(&world.place(ANN, long)), Some(OrderRefusal::ExpiresTooLate(latest)));
    let market = MarketSettings { lots_min: 5, ..market_settings() };
    let (settings, small) = (world.settings(limits()), world.sell(100, 4));
    assert_eq!(refused_by(&world, settings, market, &[(ANN, small)]), Some(OrderRefusal::TooFewLots(5)));
}

#[test]
fn a_full_book_a_full_venue_and_too_many_accounts_are_refused() {
    let mut world = World::new(None);
    let settings = world.settings(limits());
    let orders = [ANN, BEN].map(|person| (person, world.sell(100, 5)));
    let narrow = MarketSettings { orders: 1, ..market_settings() };
    assert_eq!(refused_by(&world, settings, narrow, &orders), Some(OrderRefusal::BookFull));
    let small = VenueSettings { terms: SettlingTerms { entries_max: 1, ..settings.terms }, ..settings };
    assert_eq!(refused_by(&world, small, market_settings(), &orders), Some(OrderRefusal::VenueFull));
    let few = VenueSettings { limits: VenueLimits { accounts: 1, ..settings.limits }, ..settings };
    assert_eq!(refused_by(&world, few, market_settings(), &orders), Some(OrderRefusal::TooManyAccounts));
    assert_eq!(refused_by(&world, settings, market_settings(), &orders), None);
}

/// What another root with these settings first refuses of orders.
fn refused_by(
    world: &World,
    settings: VenueSettings,
    market: MarketSettings,
    orders: &[(u8, VenueOrder)],
) -> Option<OrderRefusal> {
    let root = VenueRoot::create(FaultDisk::new(2), settings, keys(), VenueOptions::default());
    let mut inputs: Vec<VenueInput> = world.facts.iter().cloned().map(VenueInput::Certified).collect();
    inputs.push(VenueInput::OpenMarket(MARKET, market));
    inputs.extend(TRADERS.map(|person| attach(person, false, None)));
    inputs.extend(orders.iter().map(|(person, order)| world.new_order(*person, *order)));
    let effects = root.expect("an empty disk").step(world.time_ms, &inputs).expect("the disk works");
    refusal(&reports(effects))
}

#[test]
fn every_price_at_which_an_order_could_trade_is_inside_of_its_keys_band() {
    band(None).expect("holds");
}

#[test]
fn an_auction_takes_only_keys_whose_band_reaches_to_the_collar() {
    let of_cleo = Mandate { markets: vec![MarketMandate { market: MARKET, tick_min: 90, tick_max: 110 }], ..mandate() };
    let mut world = World::with(None, of_cleo, limits());
    let (resting, inside) = (world.buy(100, 5), world.buy(105, 5));
    let passive = VenueOrder { life: OrderLife::PostOnly, ..world.sell(110, 5) };
    world.place(CLEO, resting);
    world.place(ANN, passive);
    world.step(&[VenueInput::Steer(MARKET, Steering::SetCollar { low: 50, high: 120 })]);
    world.step(&[VenueInput::Steer(MARKET, Steering::Call)]);
    assert_eq!(world.ended(CLEO, resting.number), Some(OrderEnd::BandInCall));
    assert_eq!(refusal(&world.place(CLEO, inside)), Some(OrderRefusal::BandInCall(50)));
    world.step(&[VenueInput::Steer(MARKET, Steering::SetCollar { low: 90, high: 120 })]);
    let (buy, sell) = (world.buy(105, 5), world.sell(95, 8));
    world.place(CLEO, buy);
    world.place(ANN, sell);
    assert_eq!(world.root().counts(), (0, 0), "orders of a call rest");
    let moved = VenueOrder { life: OrderLife::PostOnly, ..world.sell(104, 5) };
    let refused = refusal(&world.replace(ANN, passive.number, moved));
    assert_eq!(refused, Some(OrderRefusal::NotInCall), "it could take in the auction");
    world.step(&[VenueInput::Steer(MARKET, Steering::Uncross { reference: 100, then_halts: false })]);
    assert_eq!((world.root().counts().0, world.open(ANN, sell.number)), (1, Some(3)));
    world.settle_late().expect("holds");
}

#[test]
fn bond_and_fees_cover_two_backlogs_or_matching_halts() {
    bond(None).expect("holds");
}

#[test]
fn fees_stay_below_every_cap_over_all_fills_of_an_order() {
    let mut world = World::new(None);
    let capped = VenueOrder { fee_cap_ppm: 1_999, ..world.buy(100, 5) };
    assert_eq!(refusal(&world.place(BEN, capped)), Some(OrderRefusal::FeeCap(2_000)));
    // A thousand fills of one lot of 200 units: each fee rounds down to nothing.
    let sell = VenueOrder { fee_cap_ppm: 2_000, ..world.sell(100, 40) };
    world.place(ANN, sell);
    for _ in 0..40 {
        let buy = VenueOrder { fee_cap_ppm: 2_000, ..world.buy(100, 1) };
        world.place(BEN, buy);
    }
    world.trade(ANN, BEN, 500, 50);
    world.settle_all().expect("holds");
    assert_eq!(world.leaves.len(), 41);
}

#[test]
fn a_late_settle_busts_and_its_traders_are_told() {
    let mut world = World::new(None);
    world.trade(ANN, BEN, 100, 5);
    world.block(vec![(ANN, collect(EUR, DEPOSIT))]);
    world.certify();
    world.pass(DELAY.heights + 1);
    assert_eq!(world.root().paused(), Some(VenuePause::Late));
    world.settling_block();
    let told = reports(world.certify());
    let is_bust = |what: &&ReportKind| matches!(what, ReportKind::Settled { fate: FillFate::Bust(_), .. });
    assert_eq!(told.iter().filter(is_bust).count(), 2, "{told:?}");
    assert_eq!((world.root().paused(), world.busts.len()), (None, 1));
}

#[test]
fn a_key_has_no_more_entries_than_it_may() {
    let mut world = World::with(None, mandate(), VenueLimits { entries_of_key: 3, ..limits() });
    let orders: Vec<VenueOrder> = (0..3).map(|_| world.sell(100, 5)).collect();
    orders.iter().for_each(|order| drop(world.place(ANN, *order)));
    let fourth = world.sell(100, 5);
    assert_eq!(refusal(&world.place(ANN, fourth)), Some(OrderRefusal::TooManyEntries(3)));
    // A cancelled order that never traded is none; one that traded is, until its expiry is past or a floor is above.
    world.cancel(ANN, orders[2].number);
    let buy = VenueOrder { life: OrderLife::ImmediateOrCancel, ..world.buy(100, 5) };
    world.place(BEN, buy);
    world.settle_all().expect("holds");
    let (fifth, sixth) = (world.sell(100, 5), world.sell(100, 5));
    assert_eq!(refusal(&world.place(ANN, fifth)), None);
    assert_eq!(refusal(&world.place(ANN, sixth)), Some(OrderRefusal::TooManyEntries(3)));
    let floor = orders[1].number;
    world.block(vec![(ANN, VenueOperation::RaiseFloor { venue: VENUE, key: public(ANN), floor })]);
    world.certify();
    world.pass(DELAY.heights + 1);
    let seventh = world.sell(100, 5);
    assert_eq!(refusal(&world.place(ANN, seventh)), None, "the ledger has forgotten the first one");
}
