//! What traders may choose: how often they replace, and the numbers of an order at the ends of their range.

use kernel::Surviving;
use primitives::venue::{Mandate, MarketMandate, MarketTerms, OrderNumber, VenueOperation, VenueOrder};
use venue::{OrderRefusal, VenueInput, VenueLimits, check_orders};

use crate::world::*;

/// Bytes of the newest snapshot.
fn snapshot_bytes(world: &mut World) -> u64 {
    world.root().snapshot().expect("the disk works");
    let files = world.disk.list().expect("the disk works");
    let snapshots = files.into_iter().filter(|(name, _)| name.ends_with(".ckpt"));
    snapshots.max().expect("one was written").1
}

/// Replaces an order of Ann again and again, at three prices and two sizes; the last one.
fn storm(world: &mut World, mut last: OrderNumber, count: u32) -> OrderNumber {
    for turn in 0..count {
        let next = world.sell(100 + turn % 3, 5 + turn % 2);
        assert_eq!(refusal(&world.replace(ANN, last, next)), None);
        last = next.number;
    }
    last
}

#[test]
fn a_storm_of_replacements_leaves_one_order_a_bounded_state_and_a_market_that_trades() {
    let limits = VenueLimits { entries_of_key: 8, numbers_of_key: 16, quiet_ms: QUIET, ..VenueLimits::default() };
    let mut world = World::with(None, mandate(), limits);
    let first = world.sell(100, 5);
    world.place(ANN, first);
    let last = storm(&mut world, first.number, 100);
    let before = snapshot_bytes(&mut world);
    // Somebody trades in the middle of it, and what Ann executed counts in all that follow.
    let buy = world.buy(102, 2);
    assert_eq!(executed(&world.place(BEN, buy)), 2);
    let last = storm(&mut world, last, 2_000);
    let after = snapshot_bytes(&mut world);
    assert!(after < before + 2_048, "{after} bytes instead of {before}");
    let book = world.root().book(MARKET).expect("it is open");
    assert_eq!((book.len(), book.depth(matching::Side::Sell).count()), (1, 1));
    assert_eq!(world.open(ANN, last), Some(4), "a replacement states total lots");
    let stale = refusal(&world.place(ANN, first));
    assert!(matches!(stale, Some(OrderRefusal::NumberStale(_))), "{stale:?}");
    world.settle_all().expect("it holds");
    let digest = world.opened_digest().expect("the disk works");
    world.crash(Surviving::Nothing).expect("it opens");
    assert_eq!(world.opened_digest().expect("the disk works"), digest, "a replay of the storm");
}

fn in_fine_market() -> Mandate {
    let market = |market| MarketMandate { market, tick_min: 1, tick_max: 2_000_000_000 };
    Mandate { markets: vec![market(MARKET), market(FINE)], ..mandate() }
}

/// Second keys of Ann and Cleo, which may trade there, with sessions of their own.
const SELLER: u8 = 6;
const BUYER: u8 = 7;

fn fine_world() -> World {
    let mut world = World::new(None);
    let terms = MarketTerms { lot_units: 1, tick_units: 1, lots_max: u32::MAX, ..market() };
    world.block(vec![(OWNER, VenueOperation::List { venue: VENUE, market: FINE, terms })]);
    let keys = [(ANN, SELLER), (CLEO, BUYER)];
    let authorize = keys.map(|(person, key)| (person, world.authorize(person, &trading(key), in_fine_market())));
    world.block(authorize.to_vec());
    world.certify();
    world.step(&[VenueInput::OpenMarket(FINE, market_settings())]);
    world.step(&keys.map(|(_, key)| attach(key, false, None)));
    world
}

#[test]
fn orders_at_the_limits_of_their_numbers_are_taken_or_refused_by_name() {
    let mut world = fine_world();
    let fine = |order: VenueOrder| VenueOrder { market: FINE, ..order };
    // More than anybody has: the refusal says how much it would take.
    let sell = fine(world.sell(2_000_000_000, u32::MAX));
    let short = OrderRefusal::Funds { asset: EUR, available: DEPOSIT, needed: u64::from(u32::MAX) };
    assert_eq!(refusal(&world.place(SELLER, sell)), Some(short));
    // Lots and ticks whose product is far above every amount.
    let buy = fine(world.buy(2_000_000_000, u32::MAX));
    assert!(matches!(refusal(&world.place(BUYER, buy)), Some(OrderRefusal::Size | OrderRefusal::Funds { .. })));
    let sell = VenueOrder { expiry: u64::MAX, ..fine(world.sell(1, 1)) };
    assert!(matches!(refusal(&world.place(SELLER, sell)), Some(OrderRefusal::ExpiresTooLate(_))));
    // The last number of a day, for ever and at the highest price: it rests, and trades.
    let last = OrderNumber { reference: u32::MAX, ..number(0) };
    let sell = VenueOrder { number: last, until_ms: Some(u64::MAX), ..fine(world.sell(90_000, 70_000)) };
    assert_eq!(refusal(&world.place(SELLER, sell)), None);
    let next_day = OrderNumber { day: last.day + 1, reference: 0, ..last };
    let sell = VenueOrder { number: next_day, floor: last, ..fine(world.sell(2_000_000_000, 20_000)) };
    assert_eq!(refusal(&world.place(SELLER, sell)), None);
    let buy = fine(world.buy(90_000, 1));
    assert_eq!(executed(&world.place(BUYER, buy)), 1);
    // The last day that a number can name.
    let end = OrderNumber { day: u16::MAX, reference: u32::MAX, ..last };
    let sell = VenueOrder { number: end, ..fine(world.sell(2_000_000_000, 1)) };
    assert_eq!(refusal(&world.place(SELLER, sell)), None);
    assert_eq!(world.open(SELLER, end), Some(1));
    world.settle_all().expect("it holds");
    world.crash(Surviving::Nothing).expect("it opens");
    assert_eq!(world.open(SELLER, last), Some(69_999));
}

/// No gateway forwards an order whose numbers no ledger would take.
#[test]
fn numbers_that_no_order_may_have_pass_no_gateway() {
    let mut world = fine_world();
    let mut passes = |change: fn(&mut VenueOrder)| {
        let mut order = world.sell(1, 1);
        change(&mut order);
        let network = world.ledger.network();
        let signed = primitives::venue::SignedOrder::sign(&network, VENUE, &trading(ANN), order);
        check_orders(&network, VENUE, &[signed])[0].is_some()
    };
    assert!(passes(|_| {}));
    let changes: [fn(&mut VenueOrder); 7] = [
        |order| order.tick = 0,
        |order| order.tick = 2_000_000_001,
        |order| order.tick = u32::MAX,
        |order| order.lots = 0,
        |order| order.fee_cap_ppm = 1_000_001,
        |order| order.floor.reference = order.number.reference + 1,
        |order| order.floor = OrderNumber { incarnation: u32::MAX, day: u16::MAX, reference: u32::MAX },
    ];
    for (at, change) in changes.into_iter().enumerate() {
        assert!(!passes(change), "change {at}");
    }
}
