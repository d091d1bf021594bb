//! Lists of orders: each order by itself, under one signature, from the rules on that count them.

use kernel::{FaultDisk, Surviving};
use ledger::{CharterTerms, Genesis, VenueTerms, manifest};
use primitives::venue::{
    LIST_ORDERS_MAX, ListEntry, ListFault, ORDER_LISTS_RULES, OrderList, OrderNumber, Settle, VenueOperation,
    VenueOrder,
};
use primitives::{Operation, Upgrade};
use venue::{
    CheckedOrderList, MarketSettings, OrderEnd, OrderRefusal, OrderStanding, ReportKind, VenueEffect, VenueInput,
    VenueLimits, VenueMistake, check_lists,
};

use crate::world::*;

type Mistake = Option<VenueMistake>;

/// A chain whose settles have room for lists.
fn roomy(genesis: Genesis) -> Genesis {
    Genesis { venues: Some(VenueTerms { settle_bytes: 1 << 15, entries_max: 4_096, ..terms() }), ..genesis }
}

fn limits() -> VenueLimits {
    VenueLimits { quiet_ms: QUIET, numbers_of_key: 4_096, entries_of_key: 1_024, ..VenueLimits::default() }
}

fn world(mistake: Mistake) -> World {
    let markets = MarketSettings { orders_of_account: 256, ..market_settings() };
    World::founded(&roomy(genesis()), FaultDisk::new(1), mistake, mandate(), (limits(), markets))
}

/// The orders with those that they replace, under one signature.
fn signed(world: &World, person: u8, entries: Vec<(VenueOrder, Option<OrderNumber>)>) -> OrderList {
    let entries = entries.into_iter().map(|(order, replaces)| ListEntry { order, replaces }).collect();
    OrderList::sign(&world.ledger.network(), VENUE, [person; 32], entries, &trading(person)).expect("plain")
}

fn checked(world: &World, list: OrderList) -> Result<CheckedOrderList, ListFault> {
    check_lists(&world.ledger.network(), VENUE, vec![list]).remove(0)
}

fn list(world: &World, person: u8, entries: Vec<(VenueOrder, Option<OrderNumber>)>) -> VenueInput {
    let list = checked(world, signed(world, person, entries)).expect("signed");
    VenueInput::List(person.into(), list)
}

fn ladder(world: &mut World, size: u32) -> Vec<(VenueOrder, Option<OrderNumber>)> {
    (0..size).map(|at| (world.sell(100 + at, 2), None)).collect()
}

fn settles(world: &World) -> Vec<Settle> {
    let settle = |body: &Operation| match body {
        Operation::Venue(operation) => match &**operation {
            VenueOperation::Settle(settle) => Some(settle.clone()),
            _ => None,
        },
        _ => None,
    };
    world.sent.iter().filter_map(|sent| settle(&sent.body.operation)).collect()
}

fn is_accepted(effects: &[VenueEffect]) -> usize {
    let is_accepted = |effect: &&VenueEffect| match effect {
        VenueEffect::Report(report) => matches!(report.what, ReportKind::Accepted(_)),
        _ => false,
    };
    effects.iter().filter(is_accepted).count()
}

#[test]
fn a_ladder_rests_fills_and_settles_under_one_signature() {
    let mut world = self::world(None);
    let orders = ladder(&mut world, 64);
    let input = list(&world, ANN, orders.clone());
    assert_eq!(is_accepted(&world.step(&[input])), LIST_ORDERS_MAX);
    let buy = world.buy(104, 9);
    world.place(BEN, buy);
    world.settle_all().expect("it settles");
    let settle = settles(&world).pop().expect("one");
    assert_eq!((settle.orders.len(), settle.signatures(), settle.has_lists()), (6, 2, true));
    // What has an entry needs nothing any more; what fills anew brings the same signature.
    let buy = world.buy(105, 2);
    world.place(BEN, buy);
    world.settle_all().expect("it settles");
    let later = settles(&world).pop().expect("one");
    assert_eq!((later.orders.len(), later.signatures()), (3, 2));
}

#[test]
fn a_list_that_is_sent_again_gets_its_first_answers() {
    let mut world = self::world(None);
    let orders = ladder(&mut world, 5);
    let input = list(&world, ANN, orders);
    let (first, again) = (world.step(std::slice::from_ref(&input)), world.step(&[input]));
    assert_eq!((is_accepted(&first), is_accepted(&again)), (5, 5));
    world.check().expect("an order has one id");
}

#[test]
fn each_order_of_a_list_is_taken_or_refused_alone() {
    let mut world = self::world(None);
    let mut orders = ladder(&mut world, 4);
    orders[1].0.expiry = 0;
    let input = list(&world, ANN, orders.clone());
    assert_eq!(is_accepted(&world.step(&[input])), 3);
    let standing = |world: &mut World, at: usize| world.standing(ANN, orders[at].0.number);
    assert!(matches!(standing(&mut world, 1), Some(OrderStanding::Refused(OrderRefusal::Expired(_)))));
    // A ladder moves by one signature: each order goes into the place of one before.
    let moved: Vec<_> = [0, 2, 3].map(|at| (world.sell(110 + at as u32, 2), Some(orders[at].0.number))).to_vec();
    let input = list(&world, ANN, moved.clone());
    assert_eq!(is_accepted(&world.step(&[input])), 3);
    assert_eq!(world.ended(ANN, orders[0].0.number), Some(OrderEnd::Replaced(moved[0].0.number)));
    let sell = world.sell(120, 1);
    let VenueInput::List(_, theirs) = list(&world, CLEO, vec![(sell, None)]) else { panic!("a list") };
    let through_ann = world.step(&[VenueInput::List(ANN.into(), theirs)]);
    assert_eq!(is_accepted(&through_ann), 0, "a session has its own keys");
}

#[test]
fn what_was_filled_settles_after_any_crash() {
    for snapshot in [false, true] {
        let mut world = self::world(None);
        let orders = ladder(&mut world, 7);
        let input = list(&world, ANN, orders);
        world.step(&[input]);
        let buy = world.buy(102, 5);
        world.place(BEN, buy);
        if snapshot {
            world.root().snapshot().expect("the disk works");
        }
        world.crash(Surviving::Nothing).expect("it opens");
        world.settle_all().expect("it settles");
        assert!(settles(&world).iter().any(Settle::has_lists), "the path is made again");
        let buy = world.buy(104, 3);
        world.place(BEN, buy);
        world.settle_all().expect("what rested settles, too");
    }
}

#[test]
fn a_list_that_its_key_did_not_sign_passes_no_gateway() {
    let mut world = self::world(None);
    let orders = ladder(&mut world, 3);
    let mut forged = signed(&world, ANN, orders.clone());
    forged.entries[1].order.tick += 1;
    assert_eq!(checked(&world, forged), Err(ListFault::Signature));
    let mut turned = signed(&world, ANN, orders);
    turned.entries.swap(0, 1);
    assert_eq!(checked(&world, turned), Err(ListFault::Numbers(1)));
}

/// Lists are refused until the block after the certified one counts them.
pub fn rules(mistake: Mistake) -> Result<(), String> {
    let charter = CharterTerms { operator: address(OWNER), notice_min: 3, ..CharterTerms::default() };
    let genesis = Genesis { rules: ORDER_LISTS_RULES - 1, charter, ..genesis() };
    let (genesis, markets) = (roomy(genesis), (limits(), market_settings()));
    let mut world = World::founded(&genesis, FaultDisk::new(1), mistake, mandate(), markets);
    let orders = ladder(&mut world, 3);
    let input = list(&world, ANN, orders);
    expect("orders that were taken early", is_accepted(&world.step(&[input])), 0)?;
    let (rules, notice) = (ORDER_LISTS_RULES, 3);
    let upgrade = Upgrade { rules, manifest: manifest(rules).ok_or("this program knows them")?, notice };
    let approve = world.sign_any(OWNER, Operation::Approve { upgrade, at: world.height() });
    world.block_with(Vec::new(), vec![approve]);
    while world.ledger.next_rules() < rules {
        world.settling_block();
        world.certify();
    }
    let orders = ladder(&mut world, 3);
    let input = list(&world, ANN, orders);
    expect("orders that are taken", is_accepted(&world.step(&[input])), 3)?;
    let buy = world.buy(100, 1);
    world.place(BEN, buy);
    world.settle_all()
}

/// A settle has room for the paths of what it fills.
pub fn room(mistake: Mistake) -> Result<(), String> {
    let mut world = self::world(mistake);
    for _ in 0..3 {
        let orders: Vec<_> = (0..64).map(|_| (world.sell(100, 1), None)).collect();
        let input = list(&world, ANN, orders);
        let effects = world.step(&[input]);
        expect(&format!("orders that are taken: {:?}", effects.last()), is_accepted(&effects), 64)?;
    }
    let buy = world.buy(100, 110);
    let told = world.place(BEN, buy);
    expect(&format!("fills: {:?}", told.first()), world.root().counts().0, 110)?;
    world.settle_all()
}

#[test]
fn lists_wait_for_their_rules_and_settles_have_room_for_them() {
    rules(None).expect("holds");
    room(None).expect("holds");
}
