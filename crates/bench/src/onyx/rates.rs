//! Figures of orders on their way in: what the tree, the sequencer and the queue by class gain and cost, against the
//! baselines.

use fairnet::{MergeRules, QueuePolicy};
use serde_json::Value;

use super::inflow::{Inflow, Outcome, PATIENT, Sequencing, outcome, run};
use crate::paper::chart::{Chart, ChartSeries, rounded};
use crate::paper::exhibit::PaperOptions;

/// The paper states no timeout of CloudEx.
const CLOUDEX_WAIT: u64 = 1_000_000;

/// What is compared.
#[derive(Clone, Copy)]
struct Design {
    name: &'static str,
    is_tree: bool,
    sequencing: Sequencing,
    is_paced: bool,
}

impl Design {
    const fn tree(name: &'static str, sequencing: Sequencing) -> Design {
        Design { name, is_tree: true, sequencing, is_paced: false }
    }

    const fn direct(name: &'static str, sequencing: Sequencing) -> Design {
        Design { is_tree: false, ..Design::tree(name, sequencing) }
    }

    const fn paced(self, name: &'static str) -> Design {
        Design { name, is_paced: true, ..self }
    }

    fn inflow(self, options: &PaperOptions) -> Inflow {
        let (period, periods) = if options.is_small() { (120_000_000, 1) } else { (1_000_000_000, 4) };
        let Design { is_tree, sequencing, is_paced, .. } = self;
        Inflow { is_tree, sequencing, is_paced, levels: (1, 7), period, periods }
    }
}

fn by_watermarks(policy: QueuePolicy) -> Sequencing {
    Sequencing::Watermarks(policy, MergeRules::default())
}

const METHOD: &str = "100 gateways, 100,000 orders/s in all, 20 times as many in the last fifth of each second; \
                      machines that receive a million packets/s and keep 16 more (there is no incast on loopback, so \
                      this is simulated); connections as TCP with tail loss probes after 8 ms; an engine that takes \
                      800,000 orders/s; one of seven price levels trades. Neither rates of machines nor of the engine \
                      are stated by the paper";

const COLUMNS: [&str; 11] = [
    "design",
    "trades/s",
    "in bursts",
    "received/s",
    "received in bursts",
    "latency p50 ms",
    "latency p99 ms",
    "drained after s",
    "overtaken orders",
    "packets dropped",
    "orders made",
];

/// Runs designs and draws what each does over time: trades, or orders received.
fn compare(designs: &[Design], method: String, is_received: bool, options: &PaperOptions) -> (Chart, Vec<Outcome>) {
    const SLICE: u64 = 10_000_000;
    let axes = ("ms", if is_received { "thousand orders/s" } else { "thousand trades/s" });
    let mut chart = Chart { method, columns: COLUMNS.to_vec(), axes, ..Chart::default() };
    let mut outcomes = Vec::new();
    for design in designs {
        let (name, inflow) = (design.name, design.inflow(options));
        let arrived = run(&inflow, options.seed);
        let found = outcome(&inflow, &arrived);
        let numbers = [found.rate, found.burst_rate, found.received, found.burst_received];
        let times = [found.latency[0], found.latency[1], found.drain];
        let counts = [arrived.overtaken, arrived.dropped, arrived.made].map(Value::from);
        let row = numbers.into_iter().chain(times).map(rounded).chain(counts);
        chart.table.push(std::iter::once(Value::from(name)).chain(row).collect());
        let mut slices = vec![0.0; (2 * inflow.end() / SLICE) as usize];
        let mut count = |at: u64| slices[((at / SLICE) as usize).min(2 * (inflow.end() / SLICE) as usize - 1)] += 1.0;
        match is_received {
            true => arrived.received.iter().for_each(|at| count(*at)),
            false => arrived.traded.iter().for_each(|order| count(order.1)),
        }
        let points = slices.iter().enumerate().map(|(at, count)| (at as f64 * 10.0, count / 10.0)).collect();
        chart.series.push(ChartSeries { name: name.into(), points, ..ChartSeries::default() });
        outcomes.push(found);
    }
    (chart, outcomes)
}

fn onyx() -> Design {
    Design::tree("Onyx", by_watermarks(QueuePolicy::ByClass))
}

const CLOUDEX: Design = Design::direct("CloudEx", Sequencing::Timeout(CLOUDEX_WAIT));
const DBO: Design = Design::direct("DBO", Sequencing::Responses);

fn gain(ours: f64, theirs: f64) -> f64 {
    (100.0 * (ours / theirs - 1.0)).round()
}

pub(crate) fn figure_8(options: &PaperOptions) -> Chart {
    let (mut chart, found) = compare(&[onyx(), CLOUDEX], METHOD.into(), false, options);
    chart.method += &format!(
        ". CloudEx, rebuilt: direct connections, each order waits until 1 ms after its stamp. Latency of the median \
         order: {} % against CloudEx, trades in bursts {} %. The paper: −97 %, and an order of magnitude more trades",
        gain(found[0].latency[0], found[1].latency[0]),
        gain(found[0].burst_rate, found[1].burst_rate)
    );
    chart
}

pub(crate) fn figure_31(options: &PaperOptions) -> Chart {
    let twin = Design::tree("Onyx, SimplePQ", by_watermarks(QueuePolicy::ByStamp));
    let (mut chart, _) = compare(&[onyx(), twin, CLOUDEX, DBO], METHOD.into(), false, options);
    chart.method += ". DBO, rebuilt: direct connections; market data each 200 µs to one participant after the other; \
                     orders by (last message, response time), released once every participant has passed, however \
                     long that takes; orders that its own order puts behind later stamps count as overtaken. The \
                     paper: Onyx above CloudEx above DBO";
    chart
}

pub(crate) fn figure_11(options: &PaperOptions) -> Chart {
    let (tree, direct) = (Design::tree("tree", Sequencing::Arrival), Design::direct("direct", Sequencing::Arrival));
    let designs = [tree, direct, tree.paced("tree, gateways paced"), direct.paced("direct, gateways paced")];
    let (mut chart, found) = compare(&designs, METHOD.into(), true, options);
    chart.method += &format!(
        ". Neither sequencer nor queue by class. *Paced*: a gateway sends no faster than its share, a hundredth of \
         95 % of what the exchange receives, in slots of its own; what is more waits there. Orders received through \
         the tree against direct connections: {} % and in bursts {} %; through the tree from paced gateways against \
         direct connections without: {} and {} %. The paper: +22 and +75 %",
        gain(found[0].received, found[1].received),
        gain(found[0].burst_received, found[1].burst_received),
        gain(found[2].received, found[1].received),
        gain(found[2].burst_received, found[1].burst_received)
    );
    chart
}

pub(crate) fn figure_12(options: &PaperOptions) -> Chart {
    let patient = Sequencing::Watermarks(QueuePolicy::ByStamp, PATIENT);
    let designs = [
        Design::tree("no sequencer", Sequencing::Arrival),
        Design::tree("sequencer of bounded waits", by_watermarks(QueuePolicy::ByStamp)),
        Design::tree("sequencer that waits for ever", patient),
    ];
    let (mut chart, found) = compare(&designs, METHOD.into(), true, options);
    chart.method += &format!(
        ". Queues by stamp. Orders received while they are made, against none: {} % with bounded waits, {} % as the \
         paper waits. The paper: −25 %",
        gain(found[1].received, found[0].received),
        gain(found[2].received, found[0].received)
    );
    chart
}

/// The longest wait for a stream, from none to ten tail loss probes.
pub(crate) fn max_wait(options: &PaperOptions) -> Chart {
    const MS: u64 = 1_000_000;
    let by_wait = |max_wait: u64| {
        // As many long waits in a row as by default.
        let rules = MergeRules { max_wait, patience: 5 * max_wait, ..MergeRules::default() };
        Sequencing::Watermarks(QueuePolicy::ByStamp, rules)
    };
    let waits = [("0.5 ms", MS / 2), ("2 ms", 2 * MS), ("5 ms", 5 * MS), ("12 ms", 12 * MS), ("40 ms", 40 * MS)];
    let designs = waits.map(|(name, wait)| Design::tree(name, by_wait(wait)));
    let (mut chart, _) = compare(&designs, METHOD.into(), true, options);
    chart.method +=
        ". Queues by stamp; the tree; orders that a later stamp overtook are those whose wait was cut short";
    chart
}
