//! What a trader sees: first answers, queues, replacements, and refusals that name the next valid value.

use primitives::venue::{OrderLife, OrderNumber, SelfTradeRule, VenueOrder};
use venue::{
    MarketEvent, OrderEnd, OrderRefusal, OrderStanding, ReportKind, TradeCommand, VenueEffect, VenueInput, VenueLimits,
    VenueMistake,
};

use crate::world::*;

type Mistake = Option<VenueMistake>;

/// A retry gets the first answer, and places nothing.
pub fn retry(mistake: Mistake) -> Result<(), String> {
    let mut world = World::new(mistake);
    let (sell, dear) = (world.sell(100, 5), world.sell(100, 1_001));
    let first = world.place(ANN, sell);
    expect("a retry", world.place(ANN, sell), first)?;
    let refused = world.place(ANN, dear);
    expect("a refused one", refusal(&refused), Some(OrderRefusal::Lots(1_000)))?;
    expect("a retry of it", world.place(ANN, dear), refused)?;
    let other = VenueOrder { lots: 6, ..sell };
    expect("another order", refusal(&world.place(ANN, other)), Some(OrderRefusal::NumberTaken))?;
    let depth: Vec<_> = world.root().book(MARKET).expect("open").depth(matching::Side::Sell).collect();
    expect("the book", depth, vec![(100, 5, 1)])?;
    world.check()
}

/// A replacement states total lots: what was executed counts.
pub fn replacement(mistake: Mistake) -> Result<(), String> {
    let mut world = World::new(mistake);
    let (sell, buy) = (world.sell(100, 10), world.buy(100, 4));
    world.place(ANN, sell);
    world.place(BEN, buy);
    let next = world.sell(100, 12);
    world.replace(ANN, sell.number, next);
    expect("open lots", world.open(ANN, next.number), Some(8))?;
    expect("the old one", world.ended(ANN, sell.number), Some(OrderEnd::Replaced(next.number)))?;
    let sweep = world.buy(100, 20);
    expect("what can be bought", executed(&world.place(BEN, sweep)), 8)?;
    world.settle_all()
}

#[test]
fn a_retry_gets_the_first_answer() {
    retry(None).expect("holds");
}

#[test]
fn a_replacement_states_total_lots() {
    replacement(None).expect("holds");
}

#[test]
fn a_replacement_of_what_is_executed_ends_the_order() {
    let mut world = World::new(None);
    let (sell, buy) = (world.sell(100, 10), world.buy(100, 4));
    world.place(ANN, sell);
    world.place(BEN, buy);
    let (less, other) = (world.sell(100, 4), world.buy(100, 10));
    assert_eq!(refusal(&world.replace(ANN, sell.number, other)), Some(OrderRefusal::Differs));
    assert_eq!(refusal(&world.replace(ANN, sell.number, less)), Some(OrderRefusal::NothingLeft(4)));
    assert_eq!(world.ended(ANN, sell.number), Some(OrderEnd::Asked));
    let again = world.sell(100, 10);
    assert_eq!(refusal(&world.replace(ANN, sell.number, again)), Some(OrderRefusal::NotOpen));
    world.settle_all().expect("holds");
}

#[test]
fn a_replacement_that_is_refused_leaves_the_order_and_its_cover() {
    let mut world = World::new(None);
    let sell = world.sell(100, 10);
    world.place(ANN, sell);
    let buy = world.buy(90, 10);
    world.place(BEN, buy);
    let passive = VenueOrder { life: OrderLife::PostOnly, ..world.sell(95, 10) };
    world.place(ANN, passive);
    let taking = VenueOrder { life: OrderLife::PostOnly, ..world.sell(90, 10) };
    assert_eq!(refusal(&world.replace(ANN, passive.number, taking)), Some(OrderRefusal::WouldTake(91)));
    assert_eq!(world.open(ANN, passive.number), Some(10));
    // The lots of the replaced order pay for those of the new one.
    let all = DEPOSIT / LOT;
    let most = world.sell(100, 1_000);
    (0..all / 1_000 - 1).for_each(|_| {
        let order = world.sell(100, 1_000);
        assert_eq!(refusal(&world.place(ANN, order)), None);
    });
    let left = OrderRefusal::Funds { asset: EUR, available: (1_000 - 20) * LOT, needed: 1_000 * LOT };
    assert_eq!(refusal(&world.place(ANN, most)), Some(left));
    let more = world.sell(100, 1_000 - 10);
    assert_eq!(refusal(&world.replace(ANN, sell.number, more)), None);
}

#[test]
fn a_cut_in_size_keeps_the_place_in_the_queue_and_a_rise_or_another_price_loses_it() {
    let mut world = World::new(None);
    let orders: Vec<VenueOrder> = (0..3).map(|_| world.sell(100, 10)).collect();
    world.place(ANN, orders[0]);
    world.place(BEN, orders[1]);
    world.place(CLEO, orders[2]);
    let ahead = |world: &mut World, person, number: &OrderNumber| {
        world.root().position(&public(person), number).map(|of| (of.orders_ahead, of.lots_ahead))
    };
    assert_eq!(ahead(&mut world, CLEO, &orders[2].number), Some((2, 20)));
    world.step(&[cancel(ANN, orders[0].number, 6)]);
    assert_eq!(world.open(ANN, orders[0].number), Some(6));
    let cut = world.sell(100, 4);
    world.replace(BEN, orders[1].number, cut);
    assert_eq!(ahead(&mut world, BEN, &cut.number), Some((1, 6)), "a cut keeps the place");
    assert_eq!(ahead(&mut world, CLEO, &orders[2].number), Some((2, 10)));
    let more = world.sell(100, 5);
    world.replace(BEN, cut.number, more);
    assert_eq!(ahead(&mut world, BEN, &more.number), Some((2, 16)), "a rise loses it");
    let away = world.sell(101, 10);
    world.replace(CLEO, orders[2].number, away);
    let back = world.sell(100, 10);
    world.replace(CLEO, away.number, back);
    assert_eq!(ahead(&mut world, CLEO, &back.number), Some((2, 11)));
    let buy = world.buy(100, 7);
    world.place(BEN, VenueOrder { self_trade: SelfTradeRule::ExpireTaker, ..buy });
    assert_eq!(world.open(ANN, orders[0].number), None, "the first in the queue traded first");
    world.settle_all().expect("holds");
}

#[test]
fn a_passive_market_never_trades_and_names_the_next_valid_price() {
    let mut world = World::new(None);
    let passive = |order: VenueOrder| VenueOrder { life: OrderLife::PostOnly, ..order };
    let (sell, crossing, buy) = (world.sell(100, 5), world.buy(103, 5), world.buy(99, 5));
    world.place(ANN, passive(sell));
    assert_eq!(refusal(&world.place(BEN, passive(crossing))), Some(OrderRefusal::WouldTake(99)));
    assert_eq!(refusal(&world.place(BEN, passive(buy))), None);
    let low = world.sell(98, 5);
    assert_eq!(refusal(&world.place(CLEO, passive(low))), Some(OrderRefusal::WouldTake(100)));
    assert_eq!(world.root().counts(), (0, 0));
}

#[test]
fn a_fill_or_kill_order_is_one_group_in_one_settle() {
    let mut world = World::new(None);
    // The fills before leave too little room for the group in one settle.
    (0..20).for_each(|_| world.trade(ANN, BEN, 100, 1));
    group_of(&mut world, 30);
    world.settle_all().expect("holds");
    assert_eq!((world.leaves.len(), world.sent.len()), (50, 2));
    let most = (terms().settle_bytes - 24 - 153) / (153 + 29);
    for _ in 0..=most {
        let sell = world.sell(100, 1);
        world.place(CLEO, sell);
    }
    let kill = VenueOrder { life: OrderLife::FillOrKill, ..world.buy(100, most + 1) };
    assert_eq!(refusal(&world.place(BEN, kill)), Some(OrderRefusal::TooManyMakers(most)), "no settle holds its fills");
}

/// A fill-or-kill order that meets so many makers.
fn group_of(world: &mut World, makers: u32) {
    for _ in 0..makers {
        let sell = world.sell(100, 1);
        world.place(ANN, sell);
    }
    let kill = VenueOrder { life: OrderLife::FillOrKill, ..world.buy(100, makers) };
    assert_eq!(executed(&world.place(BEN, kill)), makers);
}

/// A group that does not fit beside earlier fills waits for the next settle.
pub fn group(mistake: Mistake) -> Result<(), String> {
    let mut world = World::new(mistake);
    (0..20).for_each(|_| world.trade(ANN, BEN, 100, 1));
    group_of(&mut world, 30);
    world.settle_all()
}

#[test]
fn orders_of_one_account_never_trade_and_the_rest_never_rests() {
    let mut world = World::new(None);
    let (sell, buy) = (world.sell(100, 5), world.buy(100, 8));
    world.place(ANN, sell);
    world.place(ANN, VenueOrder { self_trade: SelfTradeRule::ExpireBoth, ..buy });
    assert_eq!(world.ended(ANN, sell.number), Some(OrderEnd::SelfTrade));
    assert_eq!(world.ended(ANN, buy.number), Some(OrderEnd::SelfTrade));
    assert_eq!(world.root().counts(), (0, 0));
}

#[test]
fn a_cancel_that_overtakes_its_order_kills_it() {
    let mut world = World::new(None);
    let sell = world.sell(100, 5);
    assert_eq!(world.cancel(ANN, sell.number), [ReportKind::Overtaken]);
    let known = ReportKind::Status(Some(OrderStanding::Overtaken));
    assert_eq!(world.cancel(ANN, sell.number), [known], "a retry of the cancel");
    assert_eq!(refusal(&world.place(ANN, sell)), Some(OrderRefusal::Overtaken));
    assert_eq!(world.standing(ANN, sell.number), Some(OrderStanding::Refused(OrderRefusal::Overtaken)));
    assert_eq!(refusal(&world.place(ANN, sell)), Some(OrderRefusal::Overtaken), "a retry of the order");
}

#[test]
fn a_cancel_that_overtakes_a_replacement_ends_what_that_would_have_replaced() {
    let mut world = World::new(None);
    let (first, next, other) = (world.sell(100, 5), world.sell(101, 5), world.sell(102, 5));
    world.place(ANN, first);
    assert_eq!(world.cancel(ANN, next.number), [ReportKind::Overtaken]);
    let told = world.replace(ANN, first.number, next);
    assert_eq!(refusal(&told), Some(OrderRefusal::Overtaken));
    assert_eq!(world.ended(ANN, first.number), Some(OrderEnd::Asked));
    world.place(ANN, other);
    world.replace(ANN, other.number, next);
    assert_eq!(world.open(ANN, other.number), Some(5), "it ends nothing a second time");
}

#[test]
fn a_session_that_cancels_the_order_of_another_one_is_answered() {
    let mut world = World::new(None);
    let (sell, next) = (world.sell(100, 5), world.sell(100, 5));
    world.place(ANN, sell);
    world.place(ANN, next);
    let other = VenueInput::Attach { session: 33, keys: vec![public(ANN)], ends_orders: false, dead_man_ms: None };
    world.step(&[other]);
    let asks = |keeps| TradeCommand::Cancel { key: public(ANN), number: sell.number, keeps };
    let all = TradeCommand::CancelAll { key: public(ANN), market: None, side: None };
    let mut told = |command| {
        let effects = world.step(&[VenueInput::Trade(33, command)]);
        let sessions = effects.into_iter().filter_map(|effect| match effect {
            VenueEffect::Report(report) => Some((report.session, report.what)),
            _ => None,
        });
        sessions.collect::<Vec<_>>()
    };
    let both = |what: ReportKind| vec![(ANN.into(), what.clone()), (33, what)];
    assert_eq!(told(asks(3)), both(ReportKind::Reduced { lots: 3 }));
    assert_eq!(told(asks(3)), both(ReportKind::Reduced { lots: 3 }), "nothing to do");
    assert_eq!(told(asks(0)), both(ReportKind::Ended { lots: 3, why: OrderEnd::Asked }));
    assert_eq!(told(all), both(ReportKind::Ended { lots: 5, why: OrderEnd::Asked }));
}

#[test]
fn numbers_that_are_forgotten_are_never_placed_again() {
    let limits = VenueLimits { entries_of_key: 4, numbers_of_key: 8, quiet_ms: QUIET, ..VenueLimits::default() };
    let mut world = World::with(None, mandate(), limits);
    let open = world.sell(100, 5);
    world.place(ANN, open);
    let orders: Vec<VenueOrder> = (0..9).map(|_| world.sell(100, 5)).collect();
    for order in &orders {
        world.place(ANN, *order);
        world.cancel(ANN, order.number);
    }
    let stale = OrderRefusal::NumberStale(orders[1].number);
    assert_eq!(refusal(&world.place(ANN, orders[0])), Some(stale));
    assert_eq!(refusal(&world.place(ANN, orders[1])), Some(stale));
    assert!(matches!(world.place(ANN, orders[2])[..], [ReportKind::Accepted(_)]), "its first answer is known");
    assert_eq!(world.open(ANN, open.number), Some(5), "what is open is never forgotten");
    world.check().expect("holds");
}

#[test]
fn an_order_stands_as_it_is_told_past_the_end_of_its_session() {
    let mut world = World::new(None);
    let (sell, buy) = (world.sell(100, 5), world.buy(100, 2));
    world.place(ANN, sell);
    world.place(BEN, buy);
    world.step(&[VenueInput::Detach(ANN.into())]);
    world.settle_all().expect("holds");
    let Some(OrderStanding::Taken { open, executed, settled, bust, ended, .. }) = world.standing(ANN, sell.number)
    else {
        panic!("it is known")
    };
    assert_eq!((open, executed, settled, bust, ended), (3, 2, 2, 0, None));
    let input = VenueInput::Trade(ANN.into(), TradeCommand::Status(public(ANN), sell.number));
    assert_eq!(refusal(&reports(world.step(std::slice::from_ref(&input)))), Some(OrderRefusal::NotAttached));
    world.step(&[attach(ANN, false, None)]);
    assert!(matches!(reports(world.step(&[input]))[..], [ReportKind::Status(Some(_))]));
}

#[test]
fn market_data_makes_the_same_book() {
    use std::collections::BTreeMap;
    let mut world = World::new(None);
    let mut book: BTreeMap<u64, u32> = BTreeMap::new();
    let mut last = world.root().image(MARKET).expect("open").included;
    let orders: Vec<VenueOrder> = (0..4).map(|at| world.sell(100 + at, 10)).collect();
    let mut inputs: Vec<VenueInput> = orders.iter().map(|order| world.new_order(ANN, *order)).collect();
    let buy = world.buy(101, 15);
    inputs.push(world.new_order(BEN, buy));
    let (cut, moved) = (world.sell(101, 8), world.sell(104, 10));
    for (old, new) in [(orders[1].number, cut), (orders[2].number, moved)] {
        inputs.push(VenueInput::Trade(ANN.into(), TradeCommand::Replace(old, world.checked(ANN, new))));
    }
    inputs.push(cancel(ANN, orders[3].number, 0));
    inputs.push(cancel(ANN, cut.number, 6));
    for effect in world.step(&inputs) {
        let VenueEffect::Market(_, number, event) = effect else { continue };
        last += 1;
        assert_eq!(number, last, "events are numbered without a gap");
        match event {
            MarketEvent::Added { id, lots, .. } => assert_eq!(book.insert(id, lots), None),
            MarketEvent::Executed { id, lots, .. } | MarketEvent::Reduced { id, lots } => {
                *book.get_mut(&id).expect("shown") -= lots;
                book.retain(|_, lots| *lots > 0);
            }
            MarketEvent::Deleted { id } => drop(book.remove(&id).expect("shown")),
            MarketEvent::Renamed { id, to, lots } => {
                book.remove(&id).expect("shown");
                book.insert(to, lots);
            }
            MarketEvent::Phase(_) | MarketEvent::Auction { .. } | MarketEvent::Collar { .. } => {}
        }
    }
    let depth: Vec<_> = world.root().book(MARKET).expect("open").depth(matching::Side::Sell).collect();
    assert_eq!(depth, [(101, 1, 1), (104, 10, 1)]);
    assert_eq!(book.values().copied().collect::<Vec<_>>(), [1, 10]);
    let image = world.root().image(MARKET).expect("open");
    assert_eq!(image.included, last);
    assert_eq!(image.orders.iter().map(|of| (of.id, of.lots)).collect::<BTreeMap<_, _>>(), book);
}

#[test]
fn a_kill_ends_all_orders_of_an_account_and_refuses_new_ones() {
    let mut world = World::new(None);
    let (sell, other, again) = (world.sell(100, 5), world.sell(100, 5), world.sell(101, 5));
    world.place(ANN, sell);
    world.place(BEN, other);
    world.step(&[VenueInput::Kill(address(ANN))]);
    assert_eq!(world.ended(ANN, sell.number), Some(OrderEnd::Killed));
    assert_eq!(world.open(BEN, other.number), Some(5));
    assert_eq!(refusal(&world.place(ANN, again)), Some(OrderRefusal::Killed));
    world.step(&[VenueInput::Revive(address(ANN))]);
    let last = world.sell(101, 5);
    assert_eq!(refusal(&world.place(ANN, last)), None);
}
