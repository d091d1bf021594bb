//! Block-STM (Gelashvili et al.) and its authors' article: the executor against the sequential loop.

mod claims;

use serde_json::Value;

use super::chart::{Chart, ChartPlot, unrolled};
use super::exhibit::ExhibitKind::Measured;
use super::exhibit::{Exhibit, ExhibitError, ExhibitRun, ExhibitSteps, Paper, PaperOptions, listed};
use crate::evm::EvmOptions;
use crate::stm::StmOptions;

pub(super) const EXHIBITS: &[Exhibit] = &[
    Exhibit {
        paper: Paper::BlockStm,
        id: "figure-1",
        section: "evaluation",
        title: "throughput by threads and contention, against the sequential loop",
        kind: Measured,
        seconds: (20, 240),
        plot: Some(ChartPlot { x: "threads", y: "tx/s", by: &["accounts"], log: (false, false) }),
        says: &[
            ("32 threads, low contention", "16 times the sequential loop", "evaluation"),
            ("32 threads, high contention", "over 8 times", "evaluation"),
            ("an inherently sequential block", "a small overhead", "evaluation"),
            ("throughput of Move transactions, 8 reads and 5 writes", "over 160,000/s", "title"),
        ],
        claims: claims::FIGURE_1,
        unmet: &[],
        points: &[("the paper, Move, low contention", &[(32.0, 1.6e5)])],
        rests_on: &[],
        run: ExhibitRun::Run(figure_1),
    },
    Exhibit {
        paper: Paper::BlockStm,
        id: "contracts",
        section: "evaluation",
        title: "the ledger's EVM on the same executor, against the loop over revm",
        kind: Measured,
        seconds: (40, 300),
        plot: Some(ChartPlot { x: "load", y: "times the loop", by: &["threads"], log: (false, false) }),
        says: &[("the VM of the paper is Move's", "no numbers for the EVM", "evaluation")],
        claims: claims::CONTRACTS,
        unmet: &[],
        points: &[],
        rests_on: &[],
        run: ExhibitRun::Run(contracts),
    },
];

/// The plot of the article, and figure 9 of SPEEDEX, which runs the same: payments among few accounts and many.
pub(super) fn figure_1(options: &PaperOptions, say: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    let measured = StmOptions {
        accounts: options.pick(vec![2, 1_000], vec![2, 10, 100, 1_000, 10_000]),
        work_us: vec![options.pick(5, 20)],
        threads: options.threads.clone(),
        transactions: options.pick(5_000, 10_000),
        rounds: options.pick(1, 5),
    };
    let report = crate::stm::run(&measured, say);
    let runs = listed(&report, "runs")?;
    let flat = runs.into_iter().map(|mut run| {
        run["speed"] = run["figures"]["times_sequential"].clone();
        run
    });
    let mut rows = unrolled(&flat.collect::<Vec<Value>>(), "speed", "threads");
    for row in &mut rows {
        let threads = row["threads"].to_string();
        let us = row["figures"]["us_per_transaction"][&threads].as_f64().unwrap_or(f64::NAN);
        row["rate"] = (1e6 / us).round().into();
        row["aborts"] = row["figures"]["threads"][&threads]["aborts"].clone();
        row["contention"] = if row["accounts"].as_u64() >= Some(1_000) { "low" } else { "high" }.into();
    }
    let columns = [
        ("accounts", "/accounts"),
        ("contention", "/contention"),
        ("threads", "/threads"),
        ("tx/s", "/rate"),
        ("times the loop", "/speed"),
        ("aborts", "/aborts"),
    ];
    let method = format!(
        "blocks of {} payments of 8 reads, 5 writes and {} µs of work, the best of repeated blocks in each round; \
         relative to the sequential loop that leaves the state before the block unchanged",
        measured.transactions, measured.work_us[0]
    );
    Ok(Chart::of(&method, &columns, &rows))
}

fn contracts(options: &PaperOptions, say: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    let measured = EvmOptions {
        threads: options.threads.clone(),
        transactions: options.pick(2_000, 10_000),
        accounts: options.pick(2_000, 10_000),
        pools: options.pick(20, 100),
        rounds: options.pick(1, 5),
        loads: EvmOptions::LOADS.to_vec(),
    };
    let report = crate::evm::run(&measured, say);
    let mut rows = Vec::new();
    for (load, figures) in report["runs"].as_object().into_iter().flatten() {
        for threads in &options.threads {
            let name = threads.to_string();
            let parallel = figures["threads"][&name]["parallel"].as_f64().unwrap_or(0.0);
            rows.push(serde_json::json!({
                "load": load, "threads": threads,
                "loop": figures["us_per_transaction"]["sequential"],
                "us": figures["us_per_transaction"][&name],
                "speed": figures["times_sequential"][&name],
                "parallel": (100.0 * parallel / measured.transactions as f64).round(),
                "aborts": figures["threads"][&name]["aborts"],
            }));
        }
    }
    let columns = [
        ("load", "/load"),
        ("threads", "/threads"),
        ("loop, µs/tx", "/loop"),
        ("µs/tx", "/us"),
        ("times the loop", "/speed"),
        ("in parallel, %", "/parallel"),
        ("aborts", "/aborts"),
    ];
    let method = "a node chooses per block whether the parallel machinery pays; `in parallel` is the share of the last \
                  block's transactions that it ran: where it is 0, more threads say nothing about parallelism";
    Ok(Chart::of(method, &columns, &rows))
}
