//! The paper's Monte Carlo models, and what is only quoted.

use fairnet::sim::{HedgeModel, SprayModel, Spread, hedged_delays, sprayed_delays};
use kernel::Xoshiro;
use serde_json::Value;

use crate::paper::chart::{Chart, PERCENTILES, distribution, percentiles};
use crate::paper::exhibit::PaperOptions;

/// Draws of the paper; of trees there are fewer, since each has a thousand receivers.
const DRAWS: u32 = 100_000;
const TREES: u32 = 1_000;

fn add(chart: &mut Chart, name: &str, samples: Vec<f64>) {
    let spread = Spread::new(samples);
    chart.table.push(percentiles(name, &spread));
    chart.series.push(distribution(name, &spread));
}

fn chart(method: &str, axis: &'static str) -> Chart {
    Chart { method: method.into(), columns: PERCENTILES.to_vec(), axes: (axis, "share"), ..Chart::default() }
}

fn receivers(model: &HedgeModel, options: &PaperOptions) -> Vec<f64> {
    let mut dice = Xoshiro::new(options.seed);
    let rounds = options.of(if model.is_tree { TREES } else { DRAWS });
    (0..rounds).flat_map(|_| hedged_delays(model, &mut dice)).collect()
}

fn model(depth: u32, hedging: u32, alpha: f64, is_tree: bool) -> HedgeModel {
    HedgeModel { depth, fan_out: 10, hedging, alpha, is_tree }
}

/// Three panels in one: depth without hedging, depth with H = 2, H at D = 3; the last also as a tree.
pub(crate) fn figure_15(options: &PaperOptions) -> Chart {
    let method = "latency of a receiver, links uniform on [0, 1); independent parents as in the paper, and a shared \
                  tree of 1,000 receivers with its last receiver";
    let mut chart = chart(method, "latency");
    for depth in 1..=4 {
        add(&mut chart, &format!("D={depth} H=0 independent"), receivers(&model(depth, 0, 0.0, false), options));
    }
    for depth in [2, 4] {
        add(&mut chart, &format!("D={depth} H=2 independent"), receivers(&model(depth, 2, 0.0, false), options));
    }
    for hedging in 1..=3 {
        add(&mut chart, &format!("D=3 H={hedging} independent"), receivers(&model(3, hedging, 0.0, false), options));
    }
    for hedging in 0..=3 {
        let all = receivers(&model(3, hedging, 0.0, true), options);
        let last = all.chunks(1_000).map(|tree| tree.iter().copied().fold(0.0, f64::max)).collect();
        add(&mut chart, &format!("D=3 H={hedging} tree"), all);
        add(&mut chart, &format!("D=3 H={hedging} tree, last"), last);
    }
    chart
}

pub(crate) fn figure_16(options: &PaperOptions) -> Chart {
    let method =
        "as figure 15, D = 3, H = 2, in a tree; a hedging link depends by alpha on a direct link of its sender";
    let mut chart = chart(method, "latency");
    for alpha in [0.0, 0.5, 1.0, 2.0, 4.0, 8.0] {
        add(&mut chart, &format!("alpha={:.0}%", alpha * 100.0), receivers(&model(3, 2, alpha, true), options));
    }
    add(&mut chart, "H=0", receivers(&model(3, 0, 0.0, true), options));
    chart
}

pub(crate) fn figure_17(options: &PaperOptions) -> Chart {
    let mut chart = chart("as figure 16, alpha = 100 %", "latency");
    for hedging in 0..=3 {
        add(&mut chart, &format!("H={hedging}"), receivers(&model(3, hedging, 1.0, true), options));
    }
    chart
}

fn sprayed(alpha: f64, beta: f64, options: &PaperOptions) -> (Vec<f64>, Vec<f64>) {
    let model = SprayModel { fan_out: 10, spiky: 10, alpha, beta, stick: 5 };
    sprayed_delays(&model, options.of(DRAWS), &mut Xoshiro::new(options.seed))
}

const SPRAY: &str = "latency to the last of 100 receivers behind 10 proxies, exponential links of mean 50 and, of one \
                     proxy's ten, 500, each of which stays for 5 rounds";

pub(crate) fn figure_22(options: &PaperOptions) -> Chart {
    let mut chart = chart(SPRAY, "latency");
    for alpha in [0.0, 0.25, 0.5, 0.75, 1.0] {
        add(&mut chart, &format!("alpha={:.0}%", alpha * 100.0), sprayed(alpha, 0.0, options).0);
    }
    add(&mut chart, "not sprayed", sprayed(0.5, 0.0, options).1);
    chart
}

pub(crate) fn figure_23(options: &PaperOptions) -> Chart {
    let mut chart = chart(SPRAY, "latency");
    for beta in [0.0, 0.25, 0.5, 0.75, 1.0] {
        add(&mut chart, &format!("alpha=50% beta={:.0}%", beta * 100.0), sprayed(0.5, beta, options).0);
    }
    add(&mut chart, "not sprayed", sprayed(0.5, 0.0, options).1);
    chart
}

fn quoted(rows: &[(&str, &str)]) -> Chart {
    let row = |(what, value): &(&str, &str)| vec![Value::from(*what), Value::from(*value)];
    let table = rows.iter().map(row).collect();
    Chart { method: "from the paper's text".into(), columns: vec!["what", "value"], table, ..Chart::default() }
}

pub(crate) fn figure_1(_: &PaperOptions) -> Chart {
    quoted(&[
        ("p90 latency between two machines of one region, by second", "varies over time"),
        ("spikes of latency", "rare, unpredictable, and several times the usual latency"),
    ])
}

/// The paper's drawings have no numbers of their own: what they show, and where it is here.
pub(crate) fn figure_2(_: &PaperOptions) -> Chart {
    quoted(&[
        ("tree of proxies from the exchange to gateways, both ways", "fairnet::Plan, Seating"),
        ("hedged copies from aunts", "fairnet::Relay, FirstCopy"),
        ("sequencer and LOQ at each hop", "fairnet::Hop, Merge, Loq"),
        ("gateway beside each trading algorithm", "fairnet::GatewayNode"),
    ])
}

pub(crate) fn figure_4(_: &PaperOptions) -> Chart {
    quoted(&[("bids and asks by price level, the mid between the best of both", "matching::Book, fairnet::MidHistory")])
}

pub(crate) fn figure_19(_: &PaperOptions) -> Chart {
    quoted(&[
        ("trust model 1: the exchange runs the participant's algorithm", "the strategy is loaded into the gateway"),
        ("trust model 2: the participant runs it elsewhere", "the gateway holds and releases, and stamps"),
        ("trust model 3: an enclave on the participant's machine", "not built"),
    ])
}

pub(crate) fn figure_18(_: &PaperOptions) -> Chart {
    quoted(&[
        ("total losses without redundancy, 175,000 messages/s, 60 minutes", "at most 0.005 %"),
        ("losses of the worst minute without redundancy", "about 0.045 %"),
        ("AWS at 10,000 messages/s", "0.008 %"),
        ("AWS at 100,000 messages/s", "1.7 %"),
    ])
}

pub(crate) fn figure_20(_: &PaperOptions) -> Chart {
    quoted(&[("jitter between a machine and its enclave (p90 − p50) after optimisation", "at most 10 µs")])
}

pub(crate) fn figure_24(_: &PaperOptions) -> Chart {
    quoted(&[
        ("on-premises: difference between receivers", "tens of nanoseconds"),
        ("Onyx: difference between receivers", "at most 1 µs"),
        ("Onyx: receivers", "1,000"),
    ])
}
