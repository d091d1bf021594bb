//! What is timed on one core: a sequencer with its queue against the matching engine behind it, and a strategy as a
//! module against the same in Rust.

use std::hint::black_box;
use std::time::Instant;

use edge::{Strategy, StrategyLimits, sample_quotes_of_packet};
use fairnet::{
    Hop, HopEffect, HopInput, MergeInput, MergeKey, MergeRules, OrderClass, QueuePolicy, Sequenced, ShownPacket,
};
use serde_json::Value;

use crate::matching::{FlowPrices, MatchingOptions};
use crate::paper::chart::{Chart, rounded};
use crate::paper::exhibit::PaperOptions;
use crate::scaling::median;

const MARKET_MAKER: &[u8] = include_bytes!("../../../edge/strategies/market_maker.wat");
/// Children of a sequencer.
const CHILDREN: u32 = 10;
/// Orders of all children between two ticks.
const TOGETHER: u32 = 100;
/// Runs; medians are shown.
const RUNS: usize = 5;
/// Orders that are timed at once: less than a millisecond, so that a busy machine seldom interrupts.
const TIMED: u32 = 10_000;

/// How orders of children come between two ticks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Coming {
    /// One of each child in turn.
    InTurn,
    /// All of a child, then all of the next one: a busy connection is read so.
    Together,
}

/// Orders a second through one sequencer and queue, of each ten thousand.
fn hop_rates(policy: QueuePolicy, coming: Coming, orders: u32) -> Vec<f64> {
    let mut hop: Hop<[u64; 4]> = Hop::new(0, CHILDREN as usize, MergeRules::default(), policy);
    let mut out = Vec::new();
    (0..CHILDREN).for_each(|child| hop.step(0, HopInput::Child(MergeInput::Join(child)), &mut out));
    hop.step(0, HopInput::Ready(u64::MAX), &mut out);
    let each = TOGETHER / CHILDREN;
    let (mut released, mut rates, mut begun) = (0, Vec::new(), Instant::now());
    for first in (0..orders).step_by(TOGETHER as usize) {
        if first > 0 && first.is_multiple_of(TIMED) {
            rates.push(f64::from(TIMED) / begun.elapsed().as_secs_f64());
            begun = Instant::now();
        }
        let end = u64::from(first + TOGETHER) * 1_000;
        for at in 0..TOGETHER {
            let (source, turn) = match coming {
                Coming::InTurn => (at % CHILDREN, at / CHILDREN),
                Coming::Together => (at / each, at % each),
            };
            let stamp = u64::from(first + turn * CHILDREN + source) * 1_000;
            let class = OrderClass::ALL[turn as usize % 2];
            let key = MergeKey { mid: 0, stamp, source, sub: 0 };
            let order = Sequenced { class, key, restamped: None, item: [stamp; 4] };
            hop.step(stamp, HopInput::Child(MergeInput::Order(source, order)), &mut out);
        }
        for child in 0..CHILDREN {
            for class in OrderClass::ALL {
                let promise = MergeInput::Watermark(child, class, MergeKey::at(0, end));
                hop.step(end, HopInput::Child(promise), &mut out);
            }
        }
        hop.step(end, HopInput::Child(MergeInput::Tick), &mut out);
        released += out.drain(..).filter(|effect| matches!(effect, HopEffect::Order(_))).count();
    }
    assert_eq!(released, orders.next_multiple_of(TOGETHER) as usize, "each order leaves, none is skipped");
    rates
}

/// The sequencer must never be what a venue waits for.
pub(crate) fn sequencer_rate(options: &PaperOptions) -> Chart {
    let columns = vec![
        "queue",
        "orders come",
        "sequencer and queue, orders/s",
        "matching engine, commands/s",
        "ratio",
        "at least 2",
    ];
    let method = "one core, medians of five runs, each ten thousand orders timed: ten children, half of the orders \
                  critical, promises of all after each 100 orders; the engine alone at a book of 1,000 orders (`walras \
                  bench matching`), the same run";
    let mut chart = Chart { method: method.into(), columns, holds: Some(true), ..Chart::default() };
    let commands = options.of(500_000) as usize;
    let engine = crate::matching::run(
        &MatchingOptions { prices: FlowPrices::Near, depths: vec![1_000], commands, runs: RUNS },
        &mut |_| {},
    );
    let engine = engine["rows"][0]["commands_per_second"].as_f64().unwrap_or(f64::NAN);
    for (name, policy) in [("by stamp", QueuePolicy::ByStamp), ("by class", QueuePolicy::ByClass)] {
        for (how, coming) in [("in turn", Coming::InTurn), ("ten of a child", Coming::Together)] {
            let runs = (0..RUNS).flat_map(|_| hop_rates(policy, coming, options.of(1_000_000)));
            let rate = median(runs.collect());
            let is_fast = rate >= 2.0 * engine;
            chart.holds = Some(chart.holds == Some(true) && is_fast);
            let numbers = [rate, engine, rate / engine].map(rounded);
            let row = [Value::from(name), Value::from(how)].into_iter().chain(numbers);
            chart.table.push(row.chain([is_fast.into()]).collect());
        }
    }
    chart
}

/// A packet of the feed with so many prices.
fn prices(count: u64) -> Vec<u8> {
    let mut bytes = [&b"0000000001"[..], &1u64.to_be_bytes(), &(count as u16).to_be_bytes()].concat();
    for asset in 1..=count {
        let message = format!("{{\"height\":123456,\"asset\":{asset},\"price\":{asset}.000123456}}");
        bytes.extend_from_slice(&(message.len() as u16).to_be_bytes());
        bytes.extend_from_slice(message.as_bytes());
    }
    bytes
}

fn nanos_of(calls: u32, mut call: impl FnMut() -> usize) -> f64 {
    let times = (0..calls)
        .map(|_| {
            let begun = Instant::now();
            black_box(call());
            begun.elapsed().as_nanos() as f64
        })
        .collect();
    median(times)
}

/// The sample market maker in the gateway, and the same in Rust.
pub(crate) fn strategy_call(options: &PaperOptions) -> Chart {
    let columns = vec!["prices in a packet", "module, ns", "Rust, ns", "ratio", "at most 20"];
    let method = "the sample market maker as an interpreted module with fuel and bounds, and the same function \
                  compiled; medians of calls in turn, on one core";
    let mut chart = Chart { method: method.into(), columns, holds: Some(true), ..Chart::default() };
    let mut sample = Strategy::new(MARKET_MAKER, StrategyLimits::default()).expect("the sample is a module");
    for count in [1, 5, 19] {
        let packet = ShownPacket { sequence: 1, deadline: 1, unfair: None, payload: prices(count) };
        let calls = options.of(5_000);
        let mut call = || sample.on_packet(&packet).expect("the sample runs").orders.len();
        assert_eq!(call(), 2 * count as usize);
        let module = nanos_of(calls, call);
        let native = nanos_of(calls, || sample_quotes_of_packet(black_box(&packet.payload)).len());
        let is_fast = module <= 20.0 * native;
        chart.holds = Some(chart.holds == Some(true) && is_fast);
        let numbers = [module, native, module / native].map(rounded);
        chart.table.push(std::iter::once(Value::from(count)).chain(numbers).chain([is_fast.into()]).collect());
    }
    chart
}
