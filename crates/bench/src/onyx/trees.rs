//! Figures of market data on its way down, on the simulator of `fairnet`.

use fairnet::sim::{ReceiverClocks, SentPackets, Spread, TreeCosts, TreeFigures, TreeRun, TreeSetup};
use fairnet::{DeadlineRules, Plan, PlanRequest, TreeCost};
use kernel::{DelayLaw, Spikes};
use serde_json::Value;

use crate::paper::chart::{Chart, ChartSeries, PERCENTILES, distribution, percentiles, rounded};
use crate::paper::exhibit::PaperOptions;

/// Costs fitted on table 3 (3.2 µs for each child), occupancy from the paper's 3.5 million packets a second, link and
/// stragglers calibrated on the two cells that the module names. That receivers are slow twenty times more rarely than
/// proxies, which carry ten times their load, is an assumption; figure 14 says that hedging proxies removes most of
/// the tail.
pub(super) const COSTS: TreeCosts = TreeCosts {
    process: 5_000,
    copy: 3_200,
    occupancy: 290,
    link: DelayLaw::LogNormal(24_440.0, 0.3),
    link_spikes: None,
    stragglers: Some(Spikes { apart: 1.35e9, length: 2e6, extra: 150_000.0 }),
    slow_receivers: Some(Spikes { apart: 27e9, length: 2e6, extra: 150_000.0 }),
    loss: 5e-5,
};

/// The paper's usual load, messages a second.
const RATE: f64 = 5_000.0;

pub(super) fn plan(receivers: u32, depth: Option<u32>, hedging: u32) -> Plan {
    let request = PlanRequest { epoch: 1, receivers, depth, hedging, trees: 1 };
    Plan::new(&request).expect("a tree of the paper")
}

pub(super) fn setup(plan: Plan, packets: u32, options: &PaperOptions) -> TreeSetup {
    let sent = SentPackets { packets, rate: RATE, is_poisson: false, burst: None };
    TreeSetup { plan, is_sprayed: true, costs: COSTS, sent, hold: None, replicas: 1, warm_up: 0, seed: options.seed }
}

fn simulated(receivers: u32, depth: Option<u32>, hedging: u32, options: &PaperOptions) -> TreeFigures {
    // A run of the wider trees has as many arrivals as one of the others.
    let packets = if receivers > 200 { 20_000 } else { 100_000 };
    TreeRun::new(setup(plan(receivers, depth, hedging), options.of(packets), options)).run()
}

/// Laws of slow links, and what spraying gains under each.
pub(crate) fn table_1(options: &PaperOptions) -> Chart {
    let slow = |length: f64| Some(Spikes { apart: 136.0 * length, length, extra: 100_000.0 });
    let laws = [("none", None), ("for 1 ms", slow(1e6)), ("for 10 ms", slow(1e7)), ("for 1 s", slow(1e9))];
    let run = |link_spikes, is_sprayed, seed| {
        let packets = options.of(80_000);
        let mut tree = setup(plan(125, Some(2), 0), packets, options);
        // Bursts of 15 times the rate, in the second half of each fifth of a second.
        tree.sent = SentPackets { packets, rate: 10_000.0, is_poisson: false, burst: Some((200_000_000, 15.0)) };
        (tree.is_sprayed, tree.seed) = (is_sprayed, seed);
        tree.costs = TreeCosts { link_spikes, stragglers: None, slow_receivers: None, ..COSTS };
        TreeRun::new(tree).run().oml
    };
    let row = |(name, spikes): &(&'static str, Option<Spikes>)| {
        let seeds = options.seed..options.seed + 5;
        let pairs: Vec<(Spread, Spread)> =
            seeds.map(|seed| (run(*spikes, true, seed), run(*spikes, false, seed))).collect();
        let gain = |share: f64| {
            let gains: Vec<f64> =
                pairs.iter().map(|(sprayed, fixed)| 100.0 * (1.0 - sprayed.at(share) / fixed.at(share))).collect();
            let spread = Spread::new(gains);
            [spread.mean(), spread.at(0.0), spread.at(1.0)].map(rounded)
        };
        std::iter::once(Value::from(*name)).chain(gain(0.5)).chain(gain(0.9)).collect()
    };
    let columns = vec!["slow links", "p50 %", "p50 least", "p50 most", "p90 %", "p90 least", "p90 most"];
    let method = "latency saved by spraying in per cent, mean and range of five seeds; each link is slow 1/137 of \
                  the time, then adds 100 µs on average. As many links in use are slow with spraying as without: it \
                  frees those who would be stuck for long and spreads their loss over all, so it can also cost. The \
                  paper: 15.1 and 69.4 % on AWS, 9.8 and 9.2 % on GCP";
    Chart { method: method.into(), columns, table: laws.iter().map(row).collect(), ..Chart::default() }
}

pub(crate) fn table_2(options: &PaperOptions) -> Chart {
    let run = |receivers: u32, replicas: u32| {
        let mut tree = setup(plan(receivers, Some(2), 0), options.of(100_000), options);
        tree.replicas = replicas;
        TreeRun::new(tree).run().oml
    };
    let row = |(receivers, replicas, quoted): (u32, u32, (u32, u32))| {
        let oml = run(receivers, replicas);
        let hedged = if replicas > 1 { "yes" } else { "no" };
        let quoted = [quoted.0, quoted.1].map(Value::from);
        let ours = [oml.at(0.5), oml.at(0.99)].map(rounded);
        [Value::from(receivers / replicas), Value::from(hedged)].into_iter().chain(ours).chain(quoted).collect()
    };
    let rows = [(100, 1, (139, 248)), (200, 1, (141, 243)), (200, 2, (99, 146))];
    let method = "H = 0, 5,000 messages/s; two receivers a participant, at opposite ends of the tree, of which the \
                  earlier counts. The first row is what the simulator is calibrated on. The others do not agree in \
                  absolute terms: the paper's own model makes 200 receivers slower than its table says";
    let columns = vec!["N", "receiver hedging", "p50 µs", "p99 µs", "paper p50", "paper p99"];
    Chart { method: method.into(), columns, table: rows.into_iter().map(row).collect(), ..Chart::default() }
}

pub(crate) fn table_3(options: &PaperOptions) -> Chart {
    const CELLS: [(u32, u32, u32, u32); 8] = [
        (10, 1, 10, 66),
        (10, 2, 4, 88),
        (100, 1, 100, 351),
        (100, 2, 10, 139),
        (100, 3, 5, 141),
        (1_000, 2, 32, 282),
        (1_000, 3, 10, 217),
        (1_000, 4, 6, 226),
    ];
    let row = |(receivers, depth, fan_out, quoted): (u32, u32, u32, u32)| {
        let oml = simulated(receivers, Some(depth), 0, options).oml.at(0.5);
        let (paper, fitted) = (TreeCost::PAPER, TreeCost::FITTED);
        let off = |value: f64| rounded(100.0 * (value / f64::from(quoted) - 1.0));
        let whole = [receivers, depth, fan_out, quoted].map(Value::from);
        let costs = [paper, fitted].map(|cost| cost.latency_us(depth, fan_out));
        let ours = [rounded(oml), off(oml), rounded(costs[1]), off(costs[1]), rounded(costs[0]), off(costs[0])];
        whole.into_iter().chain(ours).collect()
    };
    let columns = vec![
        "N",
        "D",
        "F",
        "paper µs",
        "simulated µs",
        "simulated off %",
        "fitted µs",
        "fitted off %",
        "30 + 2.7 F µs",
        "30 + 2.7 F off %",
    ];
    let method = "median latency to the last receiver, H = 0; beside it D · (32.6 + 3.2 F), fitted on the cells with \
                  N ≤ 100, and the paper's own D · (30 + 2.7 F). The cell D = 2, N = 100 is what the simulator is \
                  calibrated on";
    Chart { method: method.into(), columns, table: CELLS.into_iter().map(row).collect(), ..Chart::default() }
}

pub(crate) fn table_4(_: &PaperOptions) -> Chart {
    const CENTS: u64 = 34;
    let row = |receivers: u32| -> Vec<Value> {
        let trees = |hedging: u32| {
            let trees = hedging as u16 + 1;
            let request = PlanRequest { epoch: 1, receivers, depth: None, hedging, trees };
            Plan::new(&request).expect("a tree of the paper").proxies()
        };
        let cost = trees(2) * CENTS;
        vec![receivers.into(), trees(0).into(), trees(2).into(), rounded(cost as f64 / 100.0)]
    };
    let method = "H + 1 parallel trees restore the rate that H copies cost; 0.34 dollars for a proxy and hour";
    let columns = vec!["N", "proxies H=0", "proxies H=2", "dollars/hour H=2"];
    Chart { method: method.into(), columns, table: [100, 1_000].map(row).into(), ..Chart::default() }
}

/// The same, drawn in a panel of its own.
fn curve_of_panel(chart: &mut Chart, name: &str, panel: &'static str, spread: &Spread) {
    chart.table.push(percentiles(&format!("{name} {panel}"), spread));
    chart.series.push(ChartSeries { panel, ..distribution(name, spread) });
}

fn curve(chart: &mut Chart, name: &str, spread: &Spread) {
    chart.table.push(percentiles(name, spread));
    chart.series.push(distribution(name, spread));
}

fn curves(method: &str) -> Chart {
    Chart { method: method.into(), columns: PERCENTILES.to_vec(), axes: ("µs", "share"), ..Chart::default() }
}

/// A tree with hold and release; deadlines follow the receivers' percentile.
fn held(plan: Plan, percentile: u8, packets: u32, options: &PaperOptions) -> TreeFigures {
    let rules = DeadlineRules { percentile, margin: 25_000, ..DeadlineRules::default() };
    let mut tree = setup(plan, packets, options);
    // Clocks within 100 ns at the 90th percentile.
    tree.hold = Some(ReceiverClocks { rules, error: 60.0 });
    tree.warm_up = packets / 10;
    TreeRun::new(tree).run()
}

pub(crate) fn figure_3(options: &PaperOptions) -> Chart {
    let method = "median latency to the last receiver, H = 0: direct sends, and the tree of the rule D = ⌈log10 N⌉. \
                  The cell N = 100 of the tree is what the simulator is calibrated on. Sockets on emulated links: \
                  validation-d";
    let columns = vec!["N", "direct µs", "tree µs"];
    let mut chart = Chart { method: method.into(), columns, axes: ("receivers", "µs"), ..Chart::default() };
    let mut curves = [Vec::new(), Vec::new()];
    for receivers in [10, 20, 50, 100, 200, 500, 1_000] {
        let tree = simulated(receivers, None, 0, options).oml.at(0.5);
        // A thousand copies take a sender longer than the time between two messages: its queue has no end.
        let direct = (receivers < 1_000).then(|| simulated(receivers, Some(1), 0, options).oml.at(0.5));
        chart.table.push(vec![receivers.into(), direct.map_or(Value::Null, rounded), rounded(tree)]);
        curves[0].extend(direct.map(|direct| (f64::from(receivers), direct)));
        curves[1].push((f64::from(receivers), tree));
    }
    let named = ["direct", "tree"].into_iter().zip(curves);
    let series = |(name, points): (&str, _)| ChartSeries { name: name.into(), points, ..ChartSeries::default() };
    chart.series = named.map(series).collect();
    chart
}

pub(crate) fn figure_6(options: &PaperOptions) -> Chart {
    let method = "100 receivers, hold and release with deadlines from the 97th percentile of 10 ms and 25 µs more, \
                  clock errors of 100 ns at p90; CloudEx is direct unicast with the same hold. `fair` is the share \
                  of messages whose window is at most a microsecond. The paper: p92 with H = 2, p87 without hedging";
    let mut chart = curves(method);
    chart.columns.push("fair");
    let trees = [("H=2", plan(100, Some(2), 2)), ("H=0", plan(100, Some(2), 0)), ("CloudEx", plan(100, Some(1), 0))];
    for (name, plan) in trees {
        let figures = held(plan, 97, options.of(50_000), options);
        let fair = rounded(figures.window.share_up_to(1.0));
        for (what, spread) in [("window", &figures.window), ("latency", &figures.oml), ("held", &figures.held)] {
            curve_of_panel(&mut chart, name, what, spread);
            if let Some(row) = chart.table.last_mut() {
                row.push(fair.clone());
            }
        }
    }
    chart
}

pub(crate) fn figure_7(options: &PaperOptions) -> Chart {
    let method = "latency to the last receiver, H = 2, 5,000 messages/s. The paper: a median of at most 250 µs for \
                  1,000 receivers. Rows with `held` have hold and release: `fair` is P(F), in the paper p92 and p89";
    let mut chart = curves(method);
    chart.columns.push("fair");
    for (receivers, packets) in [(100, 50_000), (1_000, 10_000)] {
        let open = simulated(receivers, None, 2, options).oml;
        let held = held(plan(receivers, None, 2), 97, options.of(packets), options);
        let fair = rounded(held.window.share_up_to(1.0));
        for (name, spread, fair) in [("", &open, Value::Null), (" held", &held.oml, fair)] {
            curve(&mut chart, &format!("N={receivers}{name}"), spread);
            if let Some(row) = chart.table.last_mut() {
                row.push(fair);
            }
        }
    }
    chart
}

pub(crate) fn figure_14(options: &PaperOptions) -> Chart {
    let method = "100 receivers without hold; stragglers are rare: each proxy is slow for 2 ms about every 1.35 s, \
                  each receiver every 27 s. Medians of latency are taken over windows of 1,000 messages for the \
                  temporal variance";
    let mut chart = curves(method);
    for hedging in 0..=2 {
        let figures = simulated(100, Some(2), hedging, options);
        let medians = figures.oml_by_packet.chunks(1_000).map(|window| Spread::new(window.to_vec()).at(0.5)).collect();
        let panels = [("window", &figures.window), ("latency", &figures.oml), ("medians", &Spread::new(medians))];
        for (panel, spread) in panels {
            curve_of_panel(&mut chart, &format!("H={hedging}"), panel, spread);
        }
    }
    chart
}

/// The paper takes each receiver's 95th percentile for its deadlines, too (appendix B).
pub(crate) fn figure_21(options: &PaperOptions) -> Chart {
    let method = "one-way delay of each of 100 receivers, over up to 2,000 messages: percentiles over receivers of \
                  their medians, and of their 95th percentiles, which are drawn. With rare stragglers, on which the \
                  simulator is calibrated, neither changes: a proxy sends to its own children first, and copies of \
                  aunts come 32 µs later for each hedge. What hedging lowers is the delay behind a proxy that stays \
                  slow: of the other rows one proxy in ten adds 150 µs on average for a second";
    let mut chart = curves(method);
    chart.axes = ("receiver", "µs");
    let for_long = TreeCosts { stragglers: Some(Spikes { apart: 9e9, length: 1e9, extra: 150_000.0 }), ..COSTS };
    for (law, costs) in [("rare", COSTS), ("slow proxies", for_long)] {
        for hedging in [0, 2] {
            let mut tree = setup(plan(100, Some(2), hedging), options.of(100_000), options);
            tree.costs = costs;
            let receivers = TreeRun::new(tree).run().receivers;
            let at = |share: f64| receivers.iter().map(|delays| delays.at(share)).collect::<Vec<f64>>();
            let name = format!("{law}, H={hedging}");
            chart.table.push(percentiles(&format!("{name}, median"), &Spread::new(at(0.5))));
            chart.table.push(percentiles(&format!("{name}, p95"), &Spread::new(at(0.95))));
            let points = (0..).map(f64::from).zip(at(0.95)).collect();
            chart.series.push(ChartSeries { name, points, ..ChartSeries::default() });
        }
    }
    chart
}
