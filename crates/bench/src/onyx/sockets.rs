//! Tables and figures that are measured on sockets, on loopback of this machine.

mod measure;
mod resume;

use std::time::Duration;

use fairnet::Plan;
use fairnet::sim::{SentPackets, Spread, TreeCosts, TreeRun, TreeSetup};
use kernel::DelayLaw;
use serde_json::Value;

use crate::paper::chart::{Chart, PERCENTILES, distribution, percentiles, rounded};
use crate::paper::exhibit::PaperOptions;
use measure::{CHILDREN, DATAGRAM, EmulatedEdge, direct_and_tree, proxy_rate, release_span};
use resume::{Resumed, resume};

/// A chart that says why there is nothing to show.
fn without(error: &std::io::Error) -> Chart {
    Chart { method: format!("not measured: {error}"), columns: vec!["error"], ..Chart::default() }
}

/// A proxy with its MAC against a loop of the same system calls, with and without backlog.
pub(crate) fn proxy_rates(options: &PaperOptions) -> Chart {
    let columns = vec!["packets waiting", "raw loop, packets/s", "proxy, packets/s", "ratio"];
    let method = format!(
        "{DATAGRAM}-byte datagrams to {CHILDREN} children on loopback, one thread, drained receivers; from 8 packets \
         on, segmented messages; raw loop and proxy in turn, medians"
    );
    let mut chart = Chart { method, columns, axes: ("packets waiting", "packets/s"), ..Chart::default() };
    for batch in [1, 4, 16, 32, 64] {
        let rate = match proxy_rate(batch, options.of(4_000) as usize) {
            Ok(rate) => rate,
            Err(error) => return without(&error),
        };
        let numbers = [rate.raw, rate.proxy, rate.proxy / rate.raw].map(rounded);
        chart.table.push(std::iter::once(Value::from(rate.batch)).chain(numbers).collect());
    }
    chart
}

/// One thread releases to a hundred receivers.
pub(crate) fn release_spans(options: &PaperOptions) -> Chart {
    let columns = vec!["receivers", "plain loop, ns", "release, ns", "ratio"];
    let method = "one thread writes a cache line for each receiver; the time from the first to the last".into();
    let mut chart = Chart { method, columns, axes: ("receivers", "ns"), ..Chart::default() };
    for receivers in [10, 100, 1_000] {
        let (plain, released) = release_span(receivers, options.of(20_000) as usize);
        let numbers = [plain, released, released / plain].map(rounded);
        chart.table.push(std::iter::once(Value::from(receivers)).chain(numbers).collect());
    }
    chart
}

/// Direct sends against a tree, on this machine; what the paper says beside it.
pub(crate) fn figure_5(options: &PaperOptions) -> Chart {
    let method = "100 receivers, 466 bytes, loopback, one thread; all ten proxies run on the same core, so the tree \
                  can only add work here: what it saves is the sender's time, which is the row of one sender. The \
                  paper: medians of 129 µs (tree), 254 µs (direct), 228 µs (AWS transit gateway), quoted";
    let mut chart =
        Chart { method: method.into(), columns: PERCENTILES.to_vec(), axes: ("µs", "share"), ..Chart::default() };
    match direct_and_tree(options.of(5_000) as usize) {
        Ok([direct, tree]) => {
            let busiest: Vec<f64> = direct.iter().map(|all| all / 10.0).collect();
            for (name, samples) in
                [("direct", direct), ("tree, all on one core", tree), ("one sender of ten copies", busiest)]
            {
                let spread = Spread::new(samples);
                chart.table.push(percentiles(name, &spread));
                chart.series.push(distribution(name, &spread));
            }
            chart
        }
        Err(error) => without(&error),
    }
}

/// A proxy and a gateway are killed while an edge trades.
pub(crate) fn resumes(options: &PaperOptions) -> Chart {
    let columns = vec!["run", "orders again after, ms", "market data again after, ms", "at most 1,000"];
    let method = "six proxies in two layers and eight gateways, a thread each, a packet and an order of each gateway \
                  every 2 ms; a proxy of the first layer and a gateway are killed at once; from then until the last \
                  gateway that lives has had an order executed that it made afterwards, and was shown a packet that \
                  was published afterwards";
    let mut chart =
        Chart { method: method.into(), columns, axes: ("run", "ms"), holds: Some(true), ..Chart::default() };
    for run in 1..=options.of(10).max(2) {
        let Resumed { orders_ms, data_ms } = match resume() {
            Ok(resumed) => resumed,
            Err(error) => return without(&error),
        };
        let is_soon = orders_ms.max(data_ms) <= 1_000.0;
        chart.holds = Some(chart.holds == Some(true) && is_soon);
        chart.table.push(vec![run.into(), rounded(orders_ms), rounded(data_ms), is_soon.into()]);
    }
    chart
}

/// Link law of validation (d), with this median in ms: so slow that what a scheduler adds is small beside it.
fn law(link_ms: u32) -> DelayLaw {
    DelayLaw::LogNormal(f64::from(link_ms) * 1e6, 0.4)
}

fn simulated(plan: Plan, link: DelayLaw, packets: u32, seed: u64) -> Spread {
    let costs = TreeCosts {
        process: 0,
        copy: 0,
        occupancy: 0,
        link,
        link_spikes: None,
        stragglers: None,
        slow_receivers: None,
        loss: 0.0,
    };
    let sent = SentPackets { packets, rate: 50.0, is_poisson: false, burst: None };
    let setup = TreeSetup { plan, is_sprayed: true, costs, sent, hold: None, replicas: 1, warm_up: 0, seed };
    TreeRun::new(setup).run().oml
}

/// Sockets on emulated links against the simulation of the same plan and law.
pub(crate) fn validation_d(options: &PaperOptions) -> Chart {
    let columns = vec![
        "receivers",
        "link, median ms",
        "percentile",
        "sockets, µs",
        "simulated, µs",
        "off, %",
        "allowed, %",
        "holds",
    ];
    let method = "log-normal links; the whole edge in two threads of this machine, which add a millisecond or two \
                  for 100 receivers, so that links are slower there; simulated with the same plan and law, nothing \
                  else. Beyond what is allowed, simulated latencies are withdrawn";
    let mut chart = Chart { method: method.into(), columns, axes: ("", ""), holds: Some(true), ..Chart::default() };
    // A packet to 100 receivers wakes the thread of all members some 400 times. So there are fewer of them: links have
    // no queue, and latencies do not depend on the rate.
    for (gateways, proxies, packets, pause, link_ms) in [(10u64, 4u64, 1_000, 10, 4), (100, 10, 500, 100, 16)] {
        let law = law(link_ms);
        let (packets, pause) = (u64::from(options.of(packets)), Duration::from_millis(pause));
        let edge = EmulatedEdge { proxies, gateways, hedging: 1, law, packets, pause, seed: options.seed };
        let found = match edge.run() {
            Ok(found) => Spread::new(found),
            Err(error) => return without(&error),
        };
        let widths = [proxies as u32, gateways as u32];
        let plan = Plan::with_widths(1, &widths, 1, 1).expect("a tree of one layer of proxies");
        let simulated = simulated(plan, law, options.of(100_000), options.seed);
        for (share, allowed) in [(0.5, 10), (0.99, 20)] {
            let (ours, theirs) = (found.at(share), simulated.at(share));
            let percentile = Value::from(format!("p{}", share * 100.0));
            let mut row = vec![Value::from(gateways), Value::from(link_ms), percentile];
            row.extend([ours, theirs, 100.0 * (ours / theirs - 1.0)].map(rounded));
            row.push(Value::from(allowed));
            let is_within = (ours / theirs - 1.0).abs() <= f64::from(allowed) / 100.0;
            row.push(Value::from(is_within));
            chart.holds = Some(chart.holds == Some(true) && is_within);
            chart.table.push(row);
        }
    }
    chart
}
