//! What entries cost the operator, also when the chain's fee changes, and what traders pay for them.

use kernel::{FaultDisk, Surviving};
use ledger::{CharterTerms, Genesis};
use primitives::venue::{OrderLife, VenueOrder, VenueSide};
use primitives::{Amount, Operation, Parameter, ProposedChange};
use venue::{ChainState, MarketSettings, OrderRefusal, ReportKind, VenueLimits, VenuePause};

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

/// Heights from a change of the chain's fee to the first one at which it acts.
const NOTICE: u64 = 4;

/// A venue on a chain with this fee, which its owner changes. The operator has enough for two fills at a fee of one,
/// and one unit less than one fill needs at a fee of two.
fn changing(fee: Amount) -> World {
    let cost = World::new(None).settings(VenueLimits::default()).entry_fees();
    let charter = CharterTerms { operator: address(OWNER), notice_min: NOTICE, ..CharterTerms::default() };
    let mut genesis = Genesis { fee, charter, ..genesis() };
    for (account, asset, units) in &mut genesis.balances {
        if (*account, *asset) == (address(OPERATOR), USD) {
            *units = 2 * 2 * cost - 1;
        }
    }
    let limits = VenueLimits { quiet_ms: QUIET, ..VenueLimits::default() };
    World::founded(&genesis, FaultDisk::new(1), None, mandate(), (limits, market_settings()))
}

/// The owner changes the fee in the next block; the root hears of it.
fn change_fee(world: &mut World, value: u64) {
    let change = ProposedChange::Parameter { parameter: Parameter::Fee, value };
    let asked = world.sign_any(OWNER, Operation::Propose(Box::new(change)));
    world.block_with(Vec::new(), vec![asked]);
    world.certify();
}

/// Whether a sale, and a buy that meets it, are refused for want of fees.
fn is_refused(world: &mut World) -> bool {
    let (sell, buy) = (world.sell(100, 5), world.buy(100, 5));
    let told = [world.place(ANN, sell), world.place(BEN, buy)].concat();
    let is_refused = refusal(&told) == Some(OrderRefusal::Paused(VenuePause::Fees));
    assert_eq!(executed(&told), if is_refused { 0 } else { 5 }, "{told:?}");
    world.cancel(ANN, sell.number);
    is_refused
}

/// The reserve is twice what is matched costs, and a fee at most doubles at one time: so it pays after a change, too.
#[test]
fn a_dearer_fee_pauses_matching_before_it_acts_and_strands_no_fill() {
    let mut world = changing(1);
    assert!(!is_refused(&mut world));
    change_fee(&mut world, 2);
    let told = ChainState::of(&world.ledger, &address(OPERATOR)).expect("the chain has venues").fee;
    assert_eq!((world.ledger.fee(), told), (1, 2), "a host tells what has passed");
    assert!(is_refused(&mut world));
    world.pass(NOTICE);
    assert_eq!(world.ledger.fee(), 2, "proposers held the settle back until then");
    world.crash(Surviving::Nothing).expect("it opens");
    world.settle_all().expect("holds");
    let pay = world.sign_any(OWNER, Operation::Pay { to: address(OPERATOR), asset: USD, amount: START / 2 });
    world.block_with(Vec::new(), vec![pay]);
    world.certify();
    assert!(!is_refused(&mut world));
    world.settle_all().expect("holds");
}

/// Until the lower fee acts, blocks ask for the one in force.
#[test]
fn a_lower_fee_lets_matching_go_on_once_it_acts() {
    let mut world = changing(2);
    assert!(is_refused(&mut world));
    change_fee(&mut world, 1);
    assert!(is_refused(&mut world));
    world.pass(NOTICE);
    assert_eq!(world.ledger.fee(), 1);
    assert!(!is_refused(&mut world));
    world.settle_all().expect("holds");
}
