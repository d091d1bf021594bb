//! The recorded chain of rules 18: settles and a claim show orders of lists. How chains are recorded and replayed is
//! in [`crate::recorded`].

use ledger::{Genesis, Listing, Refusal, Snapshot, VenueTerms};
use primitives::venue::{
    Delay, EndedIncarnation, FillReport, FillTree, ListEntry, Mandate, MarketMandate, MarketTerms, ORDER_LISTS_RULES,
    OrderLife, OrderList, OrderNumber, OrderSignature, ProvenEnd, SelfTradeRule, Settle, SettledFill, SettledOrder,
    SignedOrder, UnsettledFill, VenueOperation, VenueOperator, VenueOrder, VenueSide, possession_bytes,
};
use primitives::{Amount, AssetId, Digest, Operation, SecretKey};

use crate::charter::{World, account, genesis as plain};
use crate::recorded::{History, Seen, upgrade};

/// Who owns and operates the venue, and two who trade there.
const OWNER: u8 = 4;
const BUYER: u8 = 1;
const SELLER: u8 = 2;
const VENUE: u32 = 0;
const USD: AssetId = AssetId(0);
const EUR: AssetId = AssetId(1);
const DEPOSIT: Amount = 100_000;

fn terms() -> VenueTerms {
    VenueTerms {
        delay: Delay { heights: 4, ms: 2_500 },
        bond_min: 10_000,
        bond_delay: Delay { heights: 20, ms: 20_000 },
        settle_bytes: 1 << 16,
        entries_max: 100,
        penalty_min: 1,
        venues_max: 3,
        per_block: 2_000,
        life_max: 500,
    }
}

fn genesis() -> Genesis {
    let plain = plain();
    let assets = vec![Listing::new("USD", 2, account(0)), Listing::new("EUR", 2, account(0))];
    let held = |person: u8| [USD, EUR].map(|asset| (account(person), asset, 10_000_000));
    let balances = (0..6).flat_map(held).collect();
    Genesis { rules: ORDER_LISTS_RULES - 1, assets, balances, venues: Some(terms()), ..plain }
}

fn trading(person: u8) -> SecretKey {
    SecretKey::from_seed([120 + person; 32])
}

fn reporting() -> SecretKey {
    SecretKey::from_seed([200; 32])
}

fn at(operation: VenueOperation) -> Operation {
    Operation::Venue(Box::new(operation))
}

/// One block with these operations, and what became of them.
fn block(world: &mut World, operations: &[(u8, VenueOperation)]) -> Vec<Option<Refusal>> {
    let native = operations.iter().map(|(person, operation)| world.sign(*person, at(operation.clone()))).collect();
    world.apply(native)
}

fn done(world: &mut World, operations: &[(u8, VenueOperation)]) {
    let refused = block(world, operations);
    assert!(refused.iter().all(Option::is_none), "{refused:?}");
}

/// A venue with a market, and two traders with deposits and keys.
fn founds(world: &mut World) {
    let operator = VenueOperator { account: account(OWNER), report_key: reporting().public() };
    let market = MarketTerms {
        base: EUR,
        quote: USD,
        lot_units: 10,
        tick_units: 2,
        lots_max: 1_000,
        fee_cap_ppm: 10_000,
        penalty: 5,
    };
    done(world, &[(OWNER, VenueOperation::Open { venue: VENUE, operator, fee_cap_ppm: 10_000, bond: 50_000 })]);
    done(world, &[(OWNER, VenueOperation::List { venue: VENUE, market: 0, terms: market })]);
    let network = world.ledger.network();
    let mandate = Mandate {
        markets: vec![MarketMandate { market: 0, tick_min: 1, tick_max: 1_000 }],
        caps: vec![(USD, DEPOSIT), (EUR, DEPOSIT)],
        ..Mandate::default()
    };
    for person in [BUYER, SELLER] {
        let key = trading(person).public();
        let possession = trading(person).sign(&possession_bytes(&network, VENUE, &account(person), &key));
        let deposit = |asset| (person, VenueOperation::Deposit { venue: VENUE, asset, units: DEPOSIT });
        let mandate = mandate.clone();
        let authorize = (person, VenueOperation::Authorize { venue: VENUE, key, mandate, possession });
        done(world, &[deposit(USD), deposit(EUR), authorize]);
    }
}

fn order(person: u8, incarnation: u32, reference: u32) -> VenueOrder {
    let number = |reference| OrderNumber { incarnation, day: 1, reference };
    VenueOrder {
        market: 0,
        number: number(reference),
        floor: number(0),
        side: if person == BUYER { VenueSide::Buy } else { VenueSide::Sell },
        life: OrderLife::Rests,
        self_trade: SelfTradeRule::ExpireBoth,
        tick: 100,
        lots: 10,
        expiry: 400,
        until_ms: None,
        fee_cap_ppm: 10_000,
    }
}

/// Five orders of a person under one signature; those of these places.
fn listed(world: &World, person: u8, incarnation: u32, places: &[usize]) -> Vec<SettledOrder> {
    let entry = |reference| ListEntry { order: order(person, incarnation, reference), replaces: None };
    let (network, entries) = (world.ledger.network(), (1..6).map(entry).collect());
    let list = OrderList::sign(&network, VENUE, [person; 32], entries, &trading(person)).expect("plain");
    let checked = list.verify(&network, VENUE).expect("signed");
    let of = |place: &usize| SettledOrder {
        key: list.key,
        order: list.entries[*place].order,
        signature: OrderSignature::Listed(Box::new(checked.listed(*place))),
    };
    places.iter().map(of).collect()
}

fn fill(buy: u16, sell: u16) -> SettledFill {
    SettledFill { buy, sell, lots: 3, tick: 100, fee_buy: 1, fee_sell: 0, taker: VenueSide::Buy }
}

/// A settle in which each of the buyer's orders takes three lots of each of the seller's.
fn settle(world: &World, buys: Vec<SettledOrder>, sells: Vec<SettledOrder>) -> Settle {
    let mut orders = [buys, sells].concat();
    orders.sort_by_key(|order| (order.key, order.order.number));
    let on = |side| -> Vec<u16> {
        let at = orders.iter().enumerate().filter(|(_, order)| order.order.side == side);
        at.map(|(at, _)| at as u16).collect()
    };
    let (buys, sells) = (on(VenueSide::Buy), on(VenueSide::Sell));
    let fills = buys.iter().flat_map(|buy| sells.iter().map(|sell| fill(*buy, *sell))).collect();
    let venue = world.ledger.venues().and_then(|all| all.get(VENUE)).expect("open");
    Settle { venue: VENUE, incarnation: venue.incarnation, from: venue.fills.count(), orders, fills }
}

pub fn of_lists() -> History {
    let mut world = World::new(&genesis());
    let state = Snapshot::of(&world.ledger).collect();
    founds(&mut world);
    let both = |world: &World| settle(world, listed(world, BUYER, 0, &[0, 1]), listed(world, SELLER, 0, &[0, 1, 4]));
    let early = both(&world);
    assert_eq!(block(&mut world, &[(OWNER, VenueOperation::Settle(early))]), [Some(Refusal::RULES_TO_COME)]);
    upgrade(&mut world, ORDER_LISTS_RULES);
    let mut split = both(&world);
    split.orders[0].order.lots += 1;
    let own = settle(&world, alone(&world, BUYER), listed(&world, SELLER, 0, &[1]));
    assert_eq!(block(&mut world, &[(OWNER, VenueOperation::Settle(split))]), [Some(Refusal::VENUE_BOUNDS)]);
    let first = both(&world);
    done(&mut world, &[(OWNER, VenueOperation::Settle(first))]);
    let own = Settle { from: 6, ..own };
    done(&mut world, &[(OWNER, VenueOperation::Settle(own))]);
    claims(&mut world);
    let height = world.ledger.height();
    world.until(height + 40);
    (state, world.blocks)
}

/// An order with a signature of its own.
fn alone(world: &World, person: u8) -> Vec<SettledOrder> {
    vec![SignedOrder::sign(&world.ledger.network(), VENUE, &trading(person), order(person, 0, 9)).into()]
}

/// The venue reports a fill of two lists, ends its incarnation, and never settles it.
fn claims(world: &mut World) {
    let before = world.ledger.venues().and_then(|all| all.get(VENUE)).expect("open").clone();
    done(world, &[(OWNER, VenueOperation::Fence { venue: VENUE, incarnation: 0 })]);
    let ended = EndedIncarnation {
        incarnation: 0,
        tree: before.fills.clone(),
        report_keys: before.report_keys.clone(),
        height: world.ledger.height(),
        time_ms: world.ledger.height() * 1_000,
    };
    let path = FillTree::path(&[ended.leaf(VENUE)], 0).expect("one has ended");
    let [buy, sell] = [BUYER, SELLER].map(|person| listed(world, person, 0, &[3]).remove(0));
    let (network, fill) = (world.ledger.network(), fill(0, 1));
    let digest = |order: &SettledOrder| order.order.digest(&network, VENUE, &order.key);
    let leaf: Digest = fill.leaf(&digest(&buy), &digest(&sell));
    let report = FillReport::new(&network, (VENUE, 0, before.fills.count()), leaf, account(BUYER), &reporting());
    let claim = UnsettledFill { report, ended: ProvenEnd { ended, path }, buy, sell, fill };
    done(world, &[(BUYER, VenueOperation::Claim(Box::new(claim)))]);
}

#[test]
fn the_chain_of_rules_18_has_all_that_they_brought_and_crosses_their_first_height() {
    let refused = [Refusal::RULES_TO_COME, Refusal::VENUE_BOUNDS];
    Seen::of(ORDER_LISTS_RULES).has(&["settle in lists", "claim in lists"], &refused);
}
