//! Strategies inside the gateway: the sample market maker against its twin in Rust, and modules that mean harm.

use edge::{Strategy, StrategyError, StrategyLimits, sample_quotes_of_packet};
use fairnet::{OrderClass, ShownPacket};

const MARKET_MAKER: &[u8] = include_bytes!("../../strategies/market_maker.wat");

type Orders = Vec<(OrderClass, Vec<u8>)>;

fn packet(sequence: u64, payload: Vec<u8>) -> ShownPacket {
    ShownPacket { sequence, deadline: 1_000 * sequence, unfair: None, payload }
}

/// Prices as the demo's edge publishes them.
fn prices(height: u64, assets: u64) -> Vec<u8> {
    let line = |asset: u64| format!("{{\"height\":{height},\"asset\":{asset},\"price\":{asset}.{height:09}}}");
    let messages: Vec<String> = (1..=assets).map(line).collect();
    let mut bytes = [&b"0000000001"[..], &height.to_be_bytes(), &(assets as u16).to_be_bytes()].concat();
    for message in &messages {
        bytes.extend_from_slice(&(message.len() as u16).to_be_bytes());
        bytes.extend_from_slice(message.as_bytes());
    }
    bytes
}

/// The sample in Rust.
fn native(payload: &[u8]) -> Orders {
    sample_quotes_of_packet(payload).into_iter().map(|body| (OrderClass::Critical, body)).collect()
}

fn strategy(text: &str) -> Result<Strategy, StrategyError> {
    Strategy::new(text.as_bytes(), StrategyLimits::default())
}

/// A module with a function `on_packet` of this body.
fn module(body: &str) -> String {
    format!(
        "(module (import \"walras\" \"order\" (func $order (param i32 i32 i32) (result i32)))
         (memory (export \"memory\") 1) (func (export \"buffer\") (result i32) (i32.const 0))
         (func (export \"on_packet\") (param i64 i64 i32) {body}))"
    )
}

#[test]
fn strategy_of_the_sample_issues_what_its_twin_in_rust_does_on_two_machines() {
    let load = || Strategy::new(MARKET_MAKER, StrategyLimits::default()).expect("the sample");
    let (mut one, mut other) = (load(), load());
    for height in 1..50 {
        let mut payload = prices(height, height % 20);
        // Also of packets that are cut.
        payload.truncate(payload.len() - (height as usize % 3) * 7);
        let packet = packet(height, payload);
        let turn = one.on_packet(&packet).expect("it runs");
        assert_eq!(turn.orders, native(&packet.payload), "height {height}");
        assert_eq!(turn, other.on_packet(&packet).expect("it runs"), "orders and cost are the same everywhere");
    }
}

#[test]
fn strategy_is_stamped_by_its_release_and_its_own_cost() {
    let mut sample = Strategy::new(MARKET_MAKER, StrategyLimits::default()).expect("the sample");
    let turn = sample.on_packet(&packet(1, prices(1, 3))).expect("it runs");
    let cost = turn.cost;
    assert!(cost > 100 && cost < 100_000, "{cost}");
    let made: Vec<_> = turn.made_upon(5_000).collect();
    assert!(made.len() == 6 && made.iter().all(|order| order.made == Some(5_000 + cost)));
}

#[test]
fn strategy_that_never_ends_runs_out_of_fuel_and_its_orders_are_not_sent() {
    let order = "(drop (call $order (i32.const 0) (i32.const 0) (i32.const 8)))";
    let mut endless = strategy(&module(&format!("{order} (loop $for_ever (br $for_ever))"))).expect("a module");
    assert!(matches!(endless.on_packet(&packet(1, Vec::new())), Err(StrategyError::OutOfFuel)));
    assert!(matches!(endless.on_packet(&packet(2, Vec::new())), Err(StrategyError::Stopped)));
    let deep = "(module (memory (export \"memory\") 1) (func (export \"buffer\") (result i32) (i32.const 0))
        (func $on (export \"on_packet\") (param i64 i64 i32)
        (call $on (local.get 0) (local.get 1) (local.get 2))))";
    assert!(strategy(deep).expect("a module").on_packet(&packet(1, Vec::new())).is_err());
    let loops = "(module (memory (export \"memory\") 1)
        (func (export \"buffer\") (result i32) (loop $for_ever (br $for_ever)) (i32.const 0))
        (func (export \"on_packet\") (param i64 i64 i32)))";
    assert!(matches!(strategy(loops), Err(StrategyError::OutOfFuel)));
}

#[test]
fn strategy_that_grows_its_memory_is_refused_at_the_bound() {
    // Orders as many bytes as it has pages, at last: 64 of 64 KiB.
    let grow = "(loop $more (br_if $more (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
        (drop (call $order (i32.const 0) (i32.const 0) (memory.size)))";
    let mut greedy = strategy(&module(grow)).expect("a module");
    let turn = greedy.on_packet(&packet(1, Vec::new())).expect("it goes on with what it has");
    assert_eq!(turn.orders[0].1.len(), 64);
    let large = module("").replace("(memory (export \"memory\") 1)", "(memory (export \"memory\") 65)");
    assert!(matches!(strategy(&large), Err(StrategyError::Module(_))));
}

#[test]
fn strategy_orders_outside_of_its_memory_or_beyond_bounds_are_refused() {
    let refused =
        [(2, 0, 8), (-1, 0, 8), (0, -1, 8), (0, 65_530, 8), (0, 0, -1), (0, 0, 4_097), (0, i32::MAX, i32::MAX)];
    // Whoever has an order taken that must not be would have more than one.
    let calls = refused.map(|(class, at, length)| {
        format!("(drop (call $order (i32.const {class}) (i32.const {at}) (i32.const {length})))")
    });
    let last = "(drop (call $order (i32.const 1) (i32.const 0) (i32.const 4096)))";
    let mut strategy_of = strategy(&module(&(calls.concat() + last))).expect("a module");
    let turn = strategy_of.on_packet(&packet(1, Vec::new())).expect("it runs");
    assert!(turn.orders.len() == 1 && turn.orders[0].0 == OrderClass::Other);
    let one = "(drop (call $order (i32.const 0) (i32.const 0) (i32.const 1)))";
    let mut flooding = strategy(&module(&one.repeat(100))).expect("a module");
    assert_eq!(flooding.on_packet(&packet(1, Vec::new())).expect("it runs").orders.len(), 64);
}

#[test]
fn strategy_modules_with_floats_clocks_or_start_functions_are_refused() {
    let is_refused = |text: &str| matches!(strategy(text), Err(StrategyError::Module(_)));
    assert!(is_refused(&module("(drop (f64.add (f64.const 1) (f64.const 2)))")));
    assert!(is_refused(&module("(drop (f32.convert_i32_u (local.get 2)))")));
    let clock = module("").replace("\"walras\" \"order\"", "\"wasi_snapshot_preview1\" \"clock_time_get\"");
    assert!(is_refused(&clock));
    let start = "(module (memory (export \"memory\") 1) (func $start) (start $start)
        (func (export \"buffer\") (result i32) (i32.const 0)) (func (export \"on_packet\") (param i64 i64 i32)))";
    assert!(is_refused(start));
    assert!(is_refused("no module"));
    assert!(matches!(strategy("(module)"), Err(StrategyError::Missing(_))));
    let outside = module("").replace("(i32.const 0))", "(i32.const 65000))");
    assert!(matches!(strategy(&outside), Err(StrategyError::Buffer(65_000))));
    let most = StrategyLimits { module: 8, ..StrategyLimits::default() };
    assert!(matches!(Strategy::new(MARKET_MAKER, most), Err(StrategyError::TooLong(..))));
}
