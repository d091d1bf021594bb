//! Limits: places of accounts and keys, and settings that are refused.

use kernel::FaultDisk;
use venue::{OrderRefusal, VenueInput, VenueLimits, VenueOptions, VenueRoot, VenueSettings, VenueSettingsError};

use crate::world::*;

fn limits() -> VenueLimits {
    VenueLimits { quiet_ms: QUIET, ..VenueLimits::default() }
}

#[test]
fn an_account_without_open_orders_gives_its_place_to_another_one() {
    let mut world = World::with(None, mandate(), VenueLimits { accounts: 2, ..limits() });
    let orders = TRADERS.map(|person| (person, world.sell(100, 5)));
    let [(_, of_ann), (_, of_ben), (_, of_cleo)] = orders;
    world.place(ANN, of_ann);
    world.place(BEN, of_ben);
    assert_eq!(refusal(&world.place(CLEO, of_cleo)), Some(OrderRefusal::TooManyAccounts));
    world.cancel(ANN, of_ann.number);
    assert_eq!(refusal(&world.place(CLEO, of_cleo)), None, "the first refusal was no answer");
    world.cancel(BEN, of_ben.number);
    let stale = OrderRefusal::NumberStale(of_ann.number);
    assert_eq!(refusal(&world.place(ANN, of_ann)), Some(stale), "it is forgotten, and never placed again");
    let again = world.sell(101, 5);
    assert_eq!(refusal(&world.place(ANN, again)), None);
    let (buy, more) = (world.buy(101, 7), world.buy(101, 7));
    assert_eq!(refusal(&world.place(BEN, buy)), Some(OrderRefusal::TooManyAccounts));
    world.cancel(ANN, again.number);
    assert_eq!(executed(&world.place(BEN, more)), 5, "what rests is that of Cleo");
    world.settle_all().expect("holds");
    world.crash(kernel::Surviving::Nothing).expect("it opens");
}

#[test]
fn an_account_trades_with_so_many_keys_at_once() {
    let mut world = World::with(None, mandate(), VenueLimits { keys_of_account: 1, ..limits() });
    // A second key of Ann, with a session of its own.
    let second = 6;
    let authorize = world.authorize(ANN, &trading(second), mandate());
    world.block(vec![(ANN, authorize)]);
    world.certify();
    world.step(&[attach(second, false, None)]);
    let (first, next) = (world.sell(100, 5), world.sell(100, 5));
    world.place(ANN, first);
    assert_eq!(refusal(&world.place(second, next)), Some(OrderRefusal::TooManyKeys(1)));
    assert_eq!(refusal(&world.cancel(second, next.number)), Some(OrderRefusal::TooManyKeys(1)));
    world.cancel(ANN, first.number);
    assert_eq!(refusal(&world.place(second, next)), None);
    assert_eq!(refusal(&world.place(ANN, first)), Some(OrderRefusal::NumberStale(first.number)));
}

#[test]
fn an_account_is_killed_before_the_root_knows_it() {
    let mut world = World::new(None);
    let settings = world.settings(limits());
    let root = VenueRoot::create(FaultDisk::new(2), settings, keys(), VenueOptions::default());
    let mut inputs = vec![VenueInput::Kill(address(ANN))];
    inputs.extend(world.facts.iter().cloned().map(VenueInput::Certified));
    inputs.push(VenueInput::OpenMarket(MARKET, market_settings()));
    inputs.push(attach(ANN, false, None));
    let sell = world.sell(100, 5);
    inputs.push(world.new_order(ANN, sell));
    let effects = root.expect("an empty disk").step(world.time_ms, &inputs).expect("the disk works");
    assert_eq!(refusal(&reports(effects)), Some(OrderRefusal::Killed));
}

#[test]
fn a_dead_mans_timer_is_a_day_at_most() {
    let mut world = World::new(None);
    world.step(&[attach(ANN, false, Some(u64::MAX))]);
    world.time_ms += QUIET;
    world.step(&[VenueInput::Tick]);
    assert_eq!(world.root().wants_step_at_ms(), Some(world.time_ms - QUIET + 86_400_000));
}

#[test]
fn limits_that_make_a_root_useless_or_unbounded_are_refused() {
    let world = World::new(None);
    let settings = world.settings(limits());
    let refused = |limits: VenueLimits| match (VenueSettings { limits, ..settings }).check() {
        Err(VenueSettingsError(name, _)) => name,
        Ok(()) => "none",
    };
    assert_eq!(refused(limits()), "none");
    assert_eq!(refused(VenueLimits { accounts: u32::MAX, ..limits() }), "accounts");
    assert_eq!(refused(VenueLimits { keys_of_account: 0, ..limits() }), "keys_of_account");
    assert_eq!(refused(VenueLimits { numbers_of_key: 65_537, ..limits() }), "numbers_of_key");
    assert_eq!(refused(VenueLimits { settle_heights: 257, ..limits() }), "settle_heights");
    assert_eq!(refused(VenueLimits { backlog_settles: 4, ..limits() }), "backlog_settles");
}
