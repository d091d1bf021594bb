//! Sessions that end, and dead men's timers.

use venue::{OrderEnd, OrderRefusal, TradeCommand, VenueInput, VenueMistake};

use crate::world::*;

/// A second session of Ann.
const OTHER: u64 = 33;

fn with_two_sessions(mistake: Option<VenueMistake>, ends_orders: bool, dead_man_ms: Option<u64>) -> World {
    let mut world = World::new(mistake);
    let keys = vec![public(ANN)];
    let other = VenueInput::Attach { session: OTHER, keys, ends_orders: false, dead_man_ms: None };
    world.step(&[attach(ANN, ends_orders, dead_man_ms), other]);
    world
}

/// The timer of a session ends its own orders, and only when it said nothing for long enough.
pub fn dead_man(mistake: Option<VenueMistake>) -> Result<(), String> {
    let mut world = with_two_sessions(mistake, false, Some(3 * STEP));
    let (own, others) = (world.sell(100, 5), world.sell(101, 5));
    world.place(ANN, own);
    let input = VenueInput::Trade(OTHER, TradeCommand::New(world.checked(ANN, others)));
    world.step(&[input]);
    world.time_ms += 2 * STEP;
    world.step(&[VenueInput::Heartbeat(ANN.into())]);
    world.time_ms += 2 * STEP;
    world.step(&[VenueInput::Tick]);
    expect("a session that lives", world.open(ANN, own.number), Some(5))?;
    world.time_ms += STEP;
    world.step(&[VenueInput::Tick]);
    expect("the timer fires", world.ended(ANN, own.number), Some(OrderEnd::DeadMan))?;
    expect("the other session", world.open(ANN, others.number), Some(5))
}

#[test]
fn a_dead_mans_timer_ends_the_orders_of_its_own_session() {
    dead_man(None).expect("holds");
}

#[test]
fn a_dead_mans_timer_runs_on_when_the_link_is_gone() {
    let mut world = with_two_sessions(None, false, Some(2 * STEP));
    let own = world.sell(100, 5);
    world.place(ANN, own);
    world.step(&[VenueInput::Detach(ANN.into())]);
    assert_eq!(world.open(ANN, own.number), Some(5), "cancel on disconnect is a choice");
    assert_eq!(world.root().wants_step_at_ms(), Some(world.time_ms + 2 * STEP));
    world.time_ms += 2 * STEP;
    world.step(&[VenueInput::Tick]);
    assert_eq!(world.ended(ANN, own.number), Some(OrderEnd::DeadMan));
}

#[test]
fn a_session_that_detaches_ends_its_own_orders_if_it_chose_so() {
    let mut world = with_two_sessions(None, true, None);
    let (own, others) = (world.sell(100, 5), world.sell(101, 5));
    world.place(ANN, own);
    let input = VenueInput::Trade(OTHER, TradeCommand::New(world.checked(ANN, others)));
    world.step(&[input]);
    world.step(&[VenueInput::Detach(ANN.into())]);
    assert_eq!(world.ended(ANN, own.number), Some(OrderEnd::Disconnected));
    assert_eq!(world.open(ANN, others.number), Some(5));
    let late = world.sell(100, 5);
    assert_eq!(refusal(&world.place(ANN, late)), Some(OrderRefusal::NotAttached));
}

#[test]
fn a_session_that_takes_other_keys_still_ends_what_it_placed() {
    let mut world = with_two_sessions(None, true, None);
    let own = world.sell(100, 5);
    world.place(ANN, own);
    let keys = vec![public(BEN)];
    world.step(&[VenueInput::Attach { session: ANN.into(), keys, ends_orders: true, dead_man_ms: None }]);
    assert_eq!(refusal(&world.cancel(ANN, own.number)), Some(OrderRefusal::NotAttached));
    world.step(&[VenueInput::Detach(ANN.into())]);
    assert_eq!(world.ended(ANN, own.number), Some(OrderEnd::Disconnected));
}

#[test]
fn a_session_trades_for_its_own_keys_alone() {
    let mut world = World::new(None);
    let (sell, stolen) = (world.sell(100, 5), world.sell(100, 5));
    world.place(ANN, sell);
    let through_ben = VenueInput::Trade(BEN.into(), TradeCommand::New(world.checked(ANN, stolen)));
    assert_eq!(refusal(&reports(world.step(&[through_ben]))), Some(OrderRefusal::NotAttached));
    let cancels = TradeCommand::Cancel { key: public(ANN), number: sell.number, keeps: 0 };
    world.step(&[VenueInput::Trade(BEN.into(), cancels)]);
    assert_eq!(world.open(ANN, sell.number), Some(5));
}
