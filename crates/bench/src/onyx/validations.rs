//! What a simulated figure rests on: closed forms, queueing theory, direct sampling, seeds, ablations. Each row is a
//! check with what it allows; an exhibit whose validation fails is withdrawn.

use fairnet::Plan;
use fairnet::sim::{Spread, TreeCosts, TreeFigures, TreeRun, TreeSetup, interval, kolmogorov_smirnov};
use kernel::{DelayLaw, Spikes, Xoshiro};
use serde_json::Value;

use super::trees::{COSTS, plan, setup};
use crate::paper::chart::{Chart, rounded};
use crate::paper::exhibit::PaperOptions;

const LINK: f64 = 22_600.0;
const CONSTANT: TreeCosts = TreeCosts {
    process: 10_000,
    occupancy: 3_200,
    link: DelayLaw::Constant(LINK),
    stragglers: None,
    slow_receivers: None,
    loss: 0.0,
    ..COSTS
};

/// Rows of checks.
struct Checks {
    rows: Vec<Vec<Value>>,
    hold: bool,
}

impl Checks {
    fn new() -> Checks {
        Checks { rows: Vec::new(), hold: true }
    }

    fn add(&mut self, what: String, found: f64, expected: f64, is_right: bool) {
        self.hold &= is_right;
        self.rows.push(vec![what.into(), rounded(found), rounded(expected), is_right.into()]);
    }

    fn chart(self, method: &str) -> Chart {
        let columns = vec!["check", "found", "expected", "holds"];
        Chart { method: method.into(), columns, table: self.rows, holds: Some(self.hold), ..Chart::default() }
    }
}

fn tree(plan: Plan, packets: u32, rate: f64, options: &PaperOptions) -> TreeSetup {
    let mut tree = setup(plan, packets, options);
    tree.costs = CONSTANT;
    tree.sent.rate = rate;
    tree
}

fn figures(tree: TreeSetup) -> TreeFigures {
    TreeRun::new(tree).run()
}

/// (a) Constant delays: the closed form, exactly.
pub(crate) fn validation_a(options: &PaperOptions) -> Chart {
    let mut checks = Checks::new();
    for (receivers, depth, hedging) in [(10, 1, 0), (100, 1, 0), (100, 2, 0), (100, 2, 3), (1_000, 3, 0), (1_000, 3, 2)]
    {
        let plan = plan(receivers, Some(depth), hedging);
        let fan_out: u32 = (0..depth).map(|layer| plan.fan_out(layer)).sum();
        let expected = f64::from(depth) * 32.6 + 3.2 * f64::from(fan_out);
        let found = figures(tree(plan, 20, 100.0, options));
        let is_exact = found.oml.sorted().iter().all(|oml| (oml - expected).abs() < 1e-9) && found.incomplete == 0;
        let what = format!("latency in µs, N = {receivers}, D = {depth}, H = {hedging}");
        checks.add(what, found.oml.at(1.0), expected, is_exact);
    }
    checks.chart("(a) constant delays against the sum over hops of work, link and copies: exact for every packet")
}

/// (b) One egress queue: M/D/1, within 2 %.
pub(crate) fn validation_b(options: &PaperOptions) -> Chart {
    let mut checks = Checks::new();
    for load in [0.3, 0.7, 0.9] {
        // A mean near saturation needs many packets, also in a quick run.
        let mut queue = tree(plan(1, Some(1), 0), 1_500_000, load / 10e-6, options);
        queue.costs =
            TreeCosts { process: 0, copy: 10_000, occupancy: 10_000, link: DelayLaw::Constant(0.0), ..CONSTANT };
        queue.sent.is_poisson = true;
        let (found, expected) = (figures(queue).oml.mean(), 10.0 + 10.0 * load / (2.0 * (1.0 - load)));
        checks.add(
            format!("mean latency in µs at load {load}"),
            found,
            expected,
            (found / expected - 1.0).abs() < 0.02,
        );
    }
    checks.chart("(b) one receiver, packets at random, each occupies the root for 10 µs: M/D/1, within 2 %")
}

/// Latency to the last receiver of an unhedged tree: each link is drawn once.
fn drawn(receivers: usize, fan_out: usize, law: DelayLaw, dice: &mut Xoshiro) -> f64 {
    let mut layer = vec![0.0];
    while layer.len() < receivers {
        let mut child = |place: usize| {
            let wait = 10_000.0 + 3_200.0 * (place % fan_out + 1) as f64;
            layer[place / fan_out] + wait + law.draw(dice)
        };
        layer = (0..layer.len() * fan_out).map(&mut child).collect();
    }
    layer.into_iter().fold(0.0, f64::max) / 1e3
}

/// (c) An unhedged tree: direct sampling, Kolmogorov–Smirnov distance below 0.02.
pub(crate) fn validation_c(options: &PaperOptions) -> Chart {
    let mut checks = Checks::new();
    for law in [DelayLaw::LogNormal(LINK, 0.3), DelayLaw::Exponential(20_000.0), DelayLaw::Uniform(0.0, 50_000.0)] {
        let mut run = tree(plan(100, Some(2), 0), 40_000, 500.0, options);
        run.costs.link = law;
        let mut dice = Xoshiro::new(options.seed ^ 0x99);
        let direct = Spread::new((0..40_000).map(|_| drawn(100, 10, law, &mut dice)).collect());
        let distance = kolmogorov_smirnov(&figures(run).oml, &direct);
        checks.add(format!("distance of distributions, {law:?}"), distance, 0.0, distance < 0.02);
    }
    checks.chart("(c) the tree without hedging against drawing each link once: distance below 0.02")
}

/// (e) Ten seeds and their interval.
pub(crate) fn validation_e(options: &PaperOptions) -> Chart {
    let median = |seed: u64| {
        let packets = options.of(40_000);
        let mut run = tree(plan(100, Some(2), 2), packets, 5_000.0, options);
        (run.costs, run.seed) = (COSTS, options.seed + seed);
        figures(run).oml.at(0.5)
    };
    let medians: Vec<f64> = (0..10).map(median).collect();
    let (mean, half) = interval(&medians);
    let mut checks = Checks::new();
    checks.add(
        format!("half interval of the mean of ten medians, {mean:.1} µs: at most 1 %"),
        half,
        mean / 100.0,
        half < mean / 100.0,
    );
    let is_same = median(3) == medians[3];
    checks.add("one seed again is the same run".into(), f64::from(u8::from(is_same)), 1.0, is_same);
    checks.chart("(e) ten seeds of a hedged tree with all laws: 95 % interval of the median within 1 %")
}

/// (f) Each law switched on adds its effect to the closed form, and off takes it away.
pub(crate) fn validation_f(options: &PaperOptions) -> Chart {
    const CLOSED: f64 = 2.0 * (32.6 + 32.0);
    let spikes = |apart, length| Some(Spikes { apart, length, extra: 500_000.0 });
    let run = |change: &dyn Fn(&mut TreeSetup)| {
        let mut run = tree(plan(100, Some(2), 0), 4_000, 5_000.0, options);
        change(&mut run);
        figures(run)
    };
    let mut checks = Checks::new();
    let most = run(&|_| ()).oml.at(1.0);
    checks.add("all laws off: largest latency in µs".into(), most, CLOSED, most == CLOSED);
    let jitter = run(&|run| run.costs.link = DelayLaw::LogNormal(LINK, 0.3)).oml.at(0.5);
    checks.add("jitter: median above".into(), jitter, CLOSED + 5.0, jitter > CLOSED + 5.0);
    let mut rare = |name: &str, share: f64, oml: &Spread| {
        let is_rare = oml.at(0.5) == CLOSED && oml.at(share) > CLOSED + 100.0;
        checks.add(
            format!("{name}: p{} above, median the same", share * 100.0),
            oml.at(share),
            CLOSED + 100.0,
            is_rare,
        );
    };
    rare("slow links", 0.99, &run(&|run| run.costs.link_spikes = spikes(2e9, 1e6)).oml);
    rare("slow proxies", 0.999, &run(&|run| run.costs.stragglers = spikes(1e9, 2e6)).oml);
    rare("slow receivers", 0.999, &run(&|run| run.costs.slow_receivers = spikes(5e9, 2e6)).oml);
    let lost = f64::from(run(&|run| run.costs.loss = 1e-3).incomplete) / 4_000.0;
    // Of 110 copies one is lost or more.
    let expected = 1.0 - 0.999f64.powi(110);
    checks.add("losses: share of packets".into(), lost, expected, (lost - expected).abs() < 0.02);
    let queued = run(&|run| (run.sent.rate, run.sent.is_poisson) = (28_000.0, true)).oml.at(0.9);
    checks.add("load: p90 above".into(), queued, CLOSED + 20.0, queued > CLOSED + 20.0);
    checks.chart("(f) 100 receivers, D = 2: the closed form with all laws off, and what each law alone adds")
}
