//! What entries cost the operator, and what traders pay for them.

use kernel::FaultDisk;
use primitives::Amount;
use primitives::venue::{OrderLife, VenueOrder, VenueSide};
use venue::{MarketSettings, OrderRefusal, ReportKind, VenueLimits};

use crate::world::*;

const TICK_PRICE: u32 = 100;

/// A market whose least order covers entries, at a venue that pays so many fees a day for smaller ones; the chain's fee
/// is a unit of the quote asset.
fn covering(small_order_fees: u64) -> (World, Amount, u32) {
    let limits = VenueLimits { quiet_ms: QUIET, small_order_fees, ..VenueLimits::default() };
    let quote_min = World::new(None).settings(limits).covering(&market_settings(), 1).expect("there are fees");
    let market = MarketSettings { quote_min, ..market_settings() };
    let lots = quote_min.div_ceil(u64::from(TICK_PRICE) * TICK);
    (World::run(FaultDisk::new(1), None, mandate(), (limits, market)), quote_min, lots as u32)
}

/// Units of the fee asset that the venue has: its operator pays the ledger, traders pay its owner's deposit.
fn purse(world: &World) -> i128 {
    let operator = world.ledger.accounts().get(&address(OPERATOR)).map_or(0, |of| of.balance(USD));
    let owner = world.ledger.venues().map_or(0, |venues| venues.deposit(VENUE, &address(OWNER), USD).free);
    i128::from(operator) + i128::from(owner)
}

#[test]
fn orders_too_small_to_pay_for_their_entries_are_refused_on_both_sides() {
    let (mut world, least, lots) = covering(0);
    let (one, few) = (world.sell(TICK_PRICE, 1), world.sell(TICK_PRICE, lots - 1));
    for small in [one, few] {
        assert_eq!(refusal(&world.place(ANN, small)), Some(OrderRefusal::TooSmall(least)));
    }
    // A buy is worth what the sales are that it meets, however much it offers.
    let cheap = world.sell(TICK_PRICE / 10, 10 * lots);
    assert_eq!(refusal(&world.place(ANN, cheap)), None);
    let dear = world.buy(TICK_PRICE, lots);
    assert_eq!(refusal(&world.place(BEN, dear)), Some(OrderRefusal::TooSmall(least)));
    let enough = world.buy(TICK_PRICE / 5, 10 * lots);
    assert_eq!(executed(&world.place(BEN, enough)), 10 * lots);
    world.settle_all().expect("holds");
}

/// An account has a 32nd of what the operator pays for small orders in a day. What ends without a trade takes none of
/// it.
#[test]
fn small_orders_are_spared_so_many_fees_a_day() {
    let cost = World::new(None).settings(VenueLimits::default()).entry_fees();
    // Two small orders of each of 32 accounts.
    let (mut world, least, _) = covering(32 * 2 * cost);
    let is_small = |told: &[ReportKind]| refusal(told) == Some(OrderRefusal::TooSmall(least));
    for _ in 0..3 {
        let (sell, buy) = (world.sell(TICK_PRICE, 1), world.buy(TICK_PRICE - 1, 1));
        assert!(!is_small(&world.place(ANN, sell)) && !is_small(&world.place(BEN, buy)));
        world.cancel(ANN, sell.number);
        world.cancel(BEN, buy.number);
    }
    for _ in 0..2 {
        let (sell, buy) = (world.sell(TICK_PRICE, 1), world.buy(TICK_PRICE, 1));
        assert!(!is_small(&world.place(ANN, sell)));
        assert_eq!(executed(&world.place(BEN, buy)), 1);
    }
    let third = world.sell(TICK_PRICE, 1);
    assert!(is_small(&world.place(ANN, third)), "its day's share is used up");
    world.settle_all().expect("holds");
    let others = world.sell(TICK_PRICE, 1);
    assert!(!is_small(&world.place(CLEO, others)), "each account has its own");
}

/// Two accounts trade what they can, and a third takes remainders and goes: each order is new.
#[test]
fn a_thousand_trades_of_least_orders_pay_the_venue_what_their_entries_cost() {
    let (mut world, _, lots) = covering(0);
    let before = purse(&world);
    let mut trades = 0;
    while trades < 1_000 {
        let people = if trades % 4 == 0 { [ANN, BEN] } else { [BEN, ANN] };
        trades += meet(&mut world, people, lots);
        world.settle_all().expect("holds");
        world.pass(DELAY.heights + 4);
    }
    assert!(purse(&world) >= before, "{before} became {}", purse(&world));
    assert!(world.busts.is_empty());
}

/// A sale of one lot more than a buy takes; the last lot goes to another least order, whose rest is cancelled.
fn meet(world: &mut World, [seller, buyer]: [u8; 2], lots: u32) -> u64 {
    let short = |order: VenueOrder, world: &World| VenueOrder { expiry: world.height() + 6, ..order };
    let sell = world.order(VenueSide::Sell, TICK_PRICE, lots + 1);
    let buys = [world.order(VenueSide::Buy, TICK_PRICE, lots), world.order(VenueSide::Buy, TICK_PRICE, lots)];
    let sell = short(sell, world);
    assert_eq!(refusal(&world.place(seller, sell)), None);
    let first = short(buys[0], world);
    assert_eq!(executed(&world.place(buyer, first)), lots);
    let last = VenueOrder { life: OrderLife::ImmediateOrCancel, ..short(buys[1], world) };
    assert_eq!(executed(&world.place(buyer, last)), 1);
    2
}
