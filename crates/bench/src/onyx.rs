//! Tables and figures of Onyx (Haseeb et al., SIGCOMM 2025), each with the label of how its numbers came about.
//!
//! *Measured*: the nodes of the edge on sockets of this machine. *Monte Carlo*: the paper's own models, drawn again.
//! *Simulated*: the cores of `fairnet` on one event queue, or the matching engine behind both kinds of queue.
//! *Arithmetic*: counted from a plan. *Quoted*: from the paper.
//!
//! The simulator is calibrated on two cells of the paper, the median and the 99th percentile of table 2 without
//! receiver hedging (139 and 248 µs, taken as H = 0), which therefore are no results here. What it says rests on the
//! validations (a) to (f): (a) to (c) run whenever one of its figures is shown, the others when they are asked for, as
//! by `--all`. A figure one of whose validations fails is withdrawn.

mod chart;
mod engine;
mod incast;
mod inflow;
mod lateness;
mod models;
mod orders;
mod rates;
mod sockets;
mod speeds;
mod trees;
mod validations;

use std::path::Path;

use serde_json::{Value, json};

pub use chart::{Chart, ChartLabel, ChartSeries};

/// What to show, and how long it may take.
#[derive(Clone, Copy, Debug)]
pub struct OnyxOptions {
    /// Seed of everything that is drawn.
    pub seed: u64,
    /// A tenth of the draws and packets.
    pub is_quick: bool,
}

impl OnyxOptions {
    fn of(&self, full: u32) -> u32 {
        if self.is_quick { full.div_ceil(10) } else { full }
    }
}

/// A table or figure of the paper.
pub struct Exhibit {
    /// `table-3`, `figure-15`.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// How its numbers came about.
    pub label: ChartLabel,
    run: fn(&OnyxOptions) -> Chart,
}

/// What figures of the tree's simulator rest on, and how many of these run with each of them.
const VALIDATIONS: [&str; 6] =
    ["validation-a", "validation-b", "validation-c", "validation-d", "validation-e", "validation-f"];
const ALWAYS: usize = 3;
const RESTING: [&str; 8] =
    ["table-1", "table-2", "table-3", "figure-3", "figure-6", "figure-7", "figure-14", "figure-21"];

/// All tables and figures that can be shown.
pub static EXHIBITS: [Exhibit; 46] = {
    use ChartLabel::{Arithmetic, Measured, MonteCarlo, Quoted, Simulated};
    const fn exhibit(
        name: &'static str,
        title: &'static str,
        label: ChartLabel,
        run: fn(&OnyxOptions) -> Chart,
    ) -> Exhibit {
        Exhibit { name, title, label, run }
    }
    [
        exhibit("table-1", "latency gained by spraying, 125 receivers, bursts", Simulated, trees::table_1),
        exhibit("table-2", "receiver hedging, 100 participants", Simulated, trees::table_2),
        exhibit("table-3", "latency by depth and fan-out", Simulated, trees::table_3),
        exhibit("table-4", "proxies of a hedged tree", Arithmetic, trees::table_4),
        exhibit("figure-1", "latency between two machines over time", Quoted, models::figure_1),
        exhibit("figure-2", "overview of Onyx", Quoted, models::figure_2),
        exhibit("figure-3", "a tree scales", Simulated, trees::figure_3),
        exhibit("figure-4", "a limit order book", Quoted, models::figure_4),
        exhibit("figure-5", "a tree against direct sends", Measured, sockets::figure_5),
        exhibit("figure-6", "delivery window, latency and holding time", Simulated, trees::figure_6),
        exhibit("figure-7", "latency of 100 and 1,000 receivers", Simulated, trees::figure_7),
        exhibit("figure-8", "orders matched over time, Onyx and CloudEx", Simulated, rates::figure_8),
        exhibit("figure-9", "bursts of orders, with and without classes", Simulated, orders::figure_9),
        exhibit("figure-10", "gain of classes by book depth", Simulated, orders::figure_10),
        exhibit("figure-11", "orders received with and without a tree", Simulated, rates::figure_11),
        exhibit("figure-12", "what a sequencer costs", Simulated, rates::figure_12),
        exhibit("figure-13", "lateness by loss, 100 participants", Simulated, lateness::figure_13),
        exhibit("figure-14", "latency and delivery window by H, rare stragglers", Simulated, trees::figure_14),
        exhibit("figure-15", "latency of a receiver by depth and H", MonteCarlo, models::figure_15),
        exhibit("figure-16", "hedging with correlated links", MonteCarlo, models::figure_16),
        exhibit("figure-17", "correlated links, by H", MonteCarlo, models::figure_17),
        exhibit("figure-18", "packet losses in public clouds", Quoted, models::figure_18),
        exhibit("figure-19", "trust models", Quoted, models::figure_19),
        exhibit("figure-20", "jitter between a machine and its enclave", Quoted, models::figure_20),
        exhibit("figure-21", "one-way delay of each receiver", Simulated, trees::figure_21),
        exhibit("figure-22", "spraying, independent links", MonteCarlo, models::figure_22),
        exhibit("figure-23", "spraying, dependent links", MonteCarlo, models::figure_23),
        exhibit("figure-24", "place among on-premises systems", Quoted, models::figure_24),
        exhibit("figure-25", "lateness by loss, 10 participants", Simulated, lateness::figure_25),
        exhibit("figure-26", "lateness by loss, 100 participants at 10,000/s", Simulated, lateness::figure_26),
        exhibit("figure-27", "lateness, 1 of 10 loses", Simulated, lateness::figure_27),
        exhibit("figure-28", "lateness, 2 of 10 lose", Simulated, lateness::figure_28),
        exhibit("figure-29", "lateness, 5 of 10 lose", Simulated, lateness::figure_29),
        exhibit("figure-30", "lateness, all of 10 lose", Simulated, lateness::figure_30),
        exhibit("figure-31", "orders matched: Onyx, SimplePQ, CloudEx, DBO", Simulated, rates::figure_31),
        exhibit("proxy-rate", "a proxy against the raw loop", Measured, sockets::proxy_rates),
        exhibit("release-span", "one thread releases to many receivers", Measured, sockets::release_spans),
        exhibit(
            "max-wait",
            "how long a sequencer waits for a stream, where packets are lost",
            Simulated,
            rates::max_wait,
        ),
        exhibit("sequencer-rate", "sequencer and queue against the matching engine", Measured, speeds::sequencer_rate),
        exhibit("strategy-call", "a strategy as a module against the same in Rust", Measured, speeds::strategy_call),
        exhibit("validation-a", "constant delays against the closed form", Simulated, validations::validation_a),
        exhibit("validation-b", "an egress queue against M/D/1", Simulated, validations::validation_b),
        exhibit("validation-c", "the tree against direct sampling", Simulated, validations::validation_c),
        exhibit("validation-d", "sockets against the simulator on emulated links", Measured, sockets::validation_d),
        exhibit("validation-e", "ten seeds and their interval", Simulated, validations::validation_e),
        exhibit("validation-f", "each law of the simulator switched off", Simulated, validations::validation_f),
    ]
};

/// There is no such table or figure.
#[derive(Debug, thiserror::Error)]
#[error("no {0}: `walras bench onyx --list` lists what there is")]
pub struct NoExhibit(String);

/// The tables and figures of these numbers, exhibits of these names, or all.
///
/// # Errors
/// If one does not exist.
pub fn chosen(
    figures: &[u32],
    tables: &[u32],
    names: &[String],
    all: bool,
) -> Result<Vec<&'static Exhibit>, NoExhibit> {
    if all {
        return Ok(EXHIBITS.iter().collect());
    }
    let names = names.iter().cloned().chain(tables.iter().map(|number| format!("table-{number}")));
    let names = names.chain(figures.iter().map(|number| format!("figure-{number}")));
    let find = |name: String| EXHIBITS.iter().find(|exhibit| exhibit.name == name).ok_or(NoExhibit(name));
    names.map(find).collect()
}

/// Name, title and label of each.
pub fn list() -> Value {
    let entry =
        |exhibit: &Exhibit| (exhibit.name.into(), format!("{} ({})", exhibit.title, exhibit.label.name()).into());
    Value::Object(EXHIBITS.iter().map(entry).collect())
}

/// A validation that has run.
type Validated = (&'static str, Chart);

/// The validations that are asked for, and those that what is asked for rests on.
fn due(exhibits: &[&Exhibit]) -> impl Iterator<Item = &'static Exhibit> {
    let is_resting = exhibits.iter().any(|exhibit| RESTING.contains(&exhibit.name));
    let is_due = move |(place, name): &(usize, &str)| {
        (is_resting && *place < ALWAYS) || exhibits.iter().any(|exhibit| exhibit.name == *name)
    };
    let names = VALIDATIONS.into_iter().enumerate().filter(is_due).map(|(_, name)| name);
    names.filter_map(|name| EXHIBITS.iter().find(|exhibit| exhibit.name == name))
}

/// An exhibit, unless a validation that it rests on has failed.
fn chart_of(exhibit: &Exhibit, options: &OnyxOptions, validated: &[Validated]) -> Chart {
    let failed: Vec<&str> =
        validated.iter().filter(|(_, chart)| chart.holds == Some(false)).map(|(name, _)| *name).collect();
    let is_withdrawn = !failed.is_empty() && RESTING.contains(&exhibit.name);
    if is_withdrawn { Chart::withdrawn(&failed) } else { (exhibit.run)(options) }
}

/// Shows some tables and figures; with a folder, writes NAME.csv and NAME.svg of each into it.
///
/// # Errors
/// If a file cannot be written.
pub fn run(
    exhibits: &[&Exhibit],
    options: &OnyxOptions,
    folder: Option<&Path>,
    say: &mut dyn FnMut(&str),
) -> std::io::Result<Value> {
    folder.map_or(Ok(()), std::fs::create_dir_all)?;
    let mut shown = Vec::new();
    let mut run = |exhibit: &'static Exhibit| {
        say(&format!("{}: {}", exhibit.name, exhibit.title));
        (exhibit.name, (exhibit.run)(options))
    };
    let validated: Vec<Validated> = due(exhibits).map(&mut run).collect();
    for exhibit in exhibits {
        if !VALIDATIONS.contains(&exhibit.name) {
            say(&format!("{}: {}", exhibit.name, exhibit.title));
        }
        let chart = match validated.iter().position(|(name, _)| *name == exhibit.name) {
            Some(place) => validated[place].1.clone(),
            None => chart_of(exhibit, options, &validated),
        };
        if let Some(folder) = folder {
            std::fs::write(folder.join(format!("{}.csv", exhibit.name)), chart.csv(exhibit.label))?;
            std::fs::write(folder.join(format!("{}.svg", exhibit.name)), chart.svg(exhibit.name, exhibit))?;
        }
        shown.push(json!({
            "name": exhibit.name, "title": exhibit.title, "label": exhibit.label.name(), "method": chart.method,
            "rows": chart.rows(), "holds": chart.holds,
        }));
    }
    Ok(json!({ "seed": options.seed, "quick": options.is_quick, "exhibits": shown }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_figures_are_withdrawn_if_a_validation_fails_and_say_so() {
        let options = OnyxOptions { seed: 1, is_quick: true };
        let find = |name: &str| EXHIBITS.iter().find(|exhibit| exhibit.name == name).expect("an exhibit");
        let failed = [("validation-d", Chart { holds: Some(false), ..Chart::default() })];
        let chart = chart_of(find("table-3"), &options, &failed);
        assert!(chart.table.is_empty() && chart.method.starts_with("withdrawn: in this run validation-d failed"));
        assert!(!chart_of(find("table-4"), &options, &failed).table.is_empty(), "it rests on nothing simulated");
        let held = [("validation-d", Chart { holds: Some(true), ..Chart::default() })];
        assert!(!chart_of(find("table-3"), &options, &held).table.is_empty());
        let names = |exhibits: &[&Exhibit]| due(exhibits).map(|exhibit| exhibit.name).collect::<Vec<_>>();
        assert_eq!(names(&[find("figure-3")]), VALIDATIONS[..ALWAYS]);
        assert_eq!(names(&[find("validation-d"), find("figure-9")]), ["validation-d"]);
        let known = VALIDATIONS.iter().chain(&RESTING);
        assert!(known.clone().all(|name| EXHIBITS.iter().any(|exhibit| exhibit.name == *name)));
    }
}
