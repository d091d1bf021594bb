//! Smart Red Belly (Tennakoon, Hua, Gramoli): transaction management, scalability and the trace of NASDAQ.
//!
//! All validators, their disks and their clients share one machine, with delays between ten regions where an exhibit
//! says so. The paper has 200 machines, so ratios within a run count and absolute numbers do not.

mod claims;

use serde_json::{Value, json};

use super::chart::{Chart, ChartPlot, ChartSeries};
use super::exhibit::ExhibitKind::Measured;
use super::exhibit::{Exhibit, ExhibitError, ExhibitRun, ExhibitSteps, Paper, PaperOptions, listed};
use crate::consensus::{ConsensusLinks, ConsensusOptions};
use crate::diablo::DiabloOptions;
use crate::hashes;
use crate::superblock_parts::SuperblockPartsOptions;
use crate::transaction_management::TransactionManagementOptions;

const PLOT: ChartPlot = ChartPlot { x: "measures", y: "tx/s", by: &[], log: (false, false) };

const fn red_belly(id: &'static str, section: &'static str, title: &'static str, run: Run) -> Exhibit {
    let (paper, kind, run) = (Paper::RedBelly, Measured, ExhibitRun::Run(run));
    let seconds = (20, 180);
    Exhibit {
        paper,
        id,
        section,
        title,
        kind,
        seconds,
        plot: None,
        says: &[],
        claims: &[],
        unmet: &[],
        points: &[],
        rests_on: &[],
        run,
    }
}

type Run = fn(&PaperOptions, &mut ExhibitSteps) -> Result<Chart, ExhibitError>;

pub(super) const EXHIBITS: &[Exhibit] = &[
    Exhibit {
        plot: Some(PLOT),
        says: &[
            ("cache of bodies", "+28 to +45 %", "§4.1"),
            ("cache of receipts", "+35 to +200 %", "§4.1"),
            ("BLAKE3 instead of Keccak", "+6 to +7 %", "§4.1; here figure-3-hash"),
        ],
        claims: claims::FIGURE_3,
        ..red_belly("figure-3", "§4.1", "throughput without each cache", figure_3)
    },
    Exhibit {
        seconds: (2, 10),
        plot: Some(ChartPlot { x: "bytes", y: "ns", by: &["hash"], log: (true, true) }),
        says: &[("BLAKE3 instead of Keccak, of the whole throughput", "+6 to +7 %", "§4.1")],
        claims: claims::FIGURE_3_HASH,
        ..red_belly("figure-3-hash", "§3.4, §4.1", "BLAKE3 against Keccak on the same messages", figure_3_hash)
    },
    Exhibit {
        plot: Some(PLOT),
        says: &[("sub-block by sub-block against the superblock at once", "1,546 TPS, +39.7 %", "§4.2")],
        claims: claims::FIGURE_4,
        unmet: claims::FIGURE_4_UNMET,
        ..red_belly("figure-4", "§4.2", "a superblock by its sub-blocks, or at once", figure_4)
    },
    Exhibit {
        seconds: (5, 30),
        plot: Some(ChartPlot { x: "parts", y: "tx/s", by: &[], log: (false, false) }),
        says: &[("persisting a superblock of 15,000 transactions at once", "leads to high I/O congestion", "§4.2")],
        claims: claims::FIGURE_4_WRITES,
        unmet: claims::FIGURE_4_WRITES_UNMET,
        ..red_belly("figure-4-writes", "§3.3, §4.2", "where a superblock's time goes, by its parts", figure_4_writes)
    },
    Exhibit {
        seconds: (25, 200),
        plot: None,
        says: &[
            ("latency of all measures", "below 20 s for 60,000 transactions", "§4.4"),
            ("average throughput, without and with", "612 and 1,935 TPS: 3.2 times", "§4.4"),
            ("peak throughput, without and with", "about 3,000 and 4,000 TPS", "§4.4"),
        ],
        claims: claims::FIGURE_5,
        ..red_belly("figure-5", "§4.4", "latency and throughput with and without all measures", figure_5)
    },
    Exhibit {
        seconds: (40, 240),
        plot: Some(ChartPlot { x: "offered/s", y: "tx/s", by: &[], log: (false, false) }),
        says: &[
            (
                "200 nodes in ten regions, 15,000 to 35,000 TPS offered",
                "2,000 TPS on average, peak about 4,000",
                "§4.5",
            ),
            ("at 15,000 TPS offered", "all committed within 10 s", "§4.5"),
        ],
        points: &[("the paper, 200 nodes, average", &[(15_000.0, 2_000.0), (35_000.0, 2_000.0)])],
        claims: claims::FIGURE_6,
        ..red_belly("figure-6", "§4.5", "rates offered, four validators with the delays of ten regions", figure_6)
    },
    Exhibit {
        seconds: (30, 240),
        plot: None,
        says: &[
            ("committed: Smart Red Belly", "100 %, 5.35 s on average", "§4.6"),
            ("committed: Quorum, Algorand, Solana", "88, 87, 62 %", "§4.6"),
            ("committed: Avalanche, Diem, Ethereum", "55, 27, 16 %", "§4.6"),
        ],
        claims: claims::FIGURE_7,
        ..red_belly("figure-7", "§4.6", "calls of the NASDAQ trace: latency and throughput", figure_7)
    },
    Exhibit {
        plot: Some(PLOT),
        says: &[
            ("gain of validation by one, n = 4", "21 to 32 %, by machine", "§4.3, table 1"),
            ("the same as n grows without bound", "31 to 48 %", "§4.3, table 1"),
        ],
        claims: claims::TABLE_1,
        ..red_belly("table-1", "§4.3", "validation by one validator or by all, n = 4", table_1)
    },
];

/// The variants of transaction management, as rows.
fn managed(
    options: &PaperOptions,
    variants: &[&'static str],
    say: &mut ExhibitSteps,
) -> Result<Vec<Value>, ExhibitError> {
    let report = crate::transaction_management::run(
        &TransactionManagementOptions {
            validators: 4,
            transactions: options.pick(1_500, 15_000),
            runs: options.pick(1, 3),
            variants: variants.to_vec(),
        },
        say,
    )?;
    listed(&report, "variants")
}

const METHOD: &str = "four validators in one process, transactions offered at once; clients ask for each transaction \
                      and its receipt as soon as its block is published";

fn variants(options: &PaperOptions, names: &[&'static str], say: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    let columns = [
        ("measures", "/measures"),
        ("tx/s", "/transactions_per_second"),
        ("all over this", "/all_over_this"),
        ("the paper", "/published_all_over_this"),
        ("p50 ms", "/latency_ms/p50"),
        ("p99 ms", "/latency_ms/p99"),
        ("wire bytes/tx", "/wire_bytes_per_transaction"),
        ("processor µs/tx", "/processor_us_per_transaction"),
    ];
    Ok(Chart::of(METHOD, &columns, &managed(options, names, say)?))
}

fn figure_3(options: &PaperOptions, say: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    variants(options, &["no body cache", "no receipt cache"], say)
}

fn figure_3_hash(options: &PaperOptions, _: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    let rows: Vec<Value> = hashes::run(options.pick(3, 15))
        .into_iter()
        .flat_map(|row| {
            [("BLAKE3", "blake3_ns", json!(1)), ("Keccak", "keccak_ns", row["keccak_over_blake3"].clone())].map(
                |(hash, field, over)| {
                    json!({ "message": row["message"], "bytes": row["bytes"], "hash": hash, "ns": row[field],
                        "over": over })
                },
            )
        })
        .collect();
    let columns =
        [("message", "/message"), ("bytes", "/bytes"), ("hash", "/hash"), ("ns", "/ns"), ("over BLAKE3", "/over")];
    let method = "one thread, messages as the ledger hashes them, both hashes in turn, medians; what a hash gains of a \
                  block's time is its share of it times this, not this";
    Ok(Chart::of(method, &columns, &rows))
}

fn figure_4(options: &PaperOptions, say: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    variants(options, &["superblock at once"], say)
}

fn figure_4_writes(options: &PaperOptions, _: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    let measured = SuperblockPartsOptions {
        transactions: options.pick(3_000, 15_000),
        accounts: options.pick(2_000, 20_000),
        parts: vec![1, 4, 10, 50],
        rounds: options.pick(5, 15),
    };
    let directory = tempfile::tempdir()?;
    let rows = crate::superblock_parts::run(&measured, directory.path())?;
    let columns = [
        ("parts", "/parts"),
        ("tx/s", "/transactions_per_second"),
        ("over at once", "/over_at_once"),
        ("ms", "/superblock_ms"),
        ("log ms", "/log_ms"),
        ("execution ms", "/execution_ms"),
        ("tries ms", "/tries_ms"),
        ("receipts ms", "/receipts_ms"),
    ];
    let method = format!(
        "{} payments among {} accounts in one block or in several, each logged with a sync, executed, hashed and \
         archived, one after the other; without consensus, signatures and clients; medians of {} rounds in turn",
        measured.transactions, measured.accounts, measured.rounds
    );
    Ok(Chart::of(&method, &columns, &rows))
}

fn table_1(options: &PaperOptions, say: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    variants(options, &["all validate"], say)
}

/// Numbers of a list.
fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
}

/// The distribution of latencies as a curve: a twentieth of the transactions in each step.
fn latency_curve(name: &str, quantiles: &Value, unit: f64) -> ChartSeries {
    let points = (0..).zip(numbers(quantiles)).map(|(step, latency)| (latency * unit, f64::from(step) / 20.0));
    ChartSeries { name: name.into(), points: points.collect(), ..ChartSeries::default() }
}

/// Mean of a second and those before and after it, as the paper smooths its series.
fn smoothed(per_second: &[f64]) -> Vec<f64> {
    let at = |second: usize| {
        let window = &per_second[second.saturating_sub(1)..(second + 2).min(per_second.len())];
        window.iter().sum::<f64>() / window.len() as f64
    };
    (0..per_second.len()).map(at).collect()
}

fn figure_5(options: &PaperOptions, say: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    let mut rows = managed(options, &["none"], say)?;
    let mut series = Vec::new();
    for row in &mut rows {
        let name = row["measures"].as_str().unwrap_or_default().to_owned();
        series.push(latency_curve(&name, &row["latency_quantiles_ms"], 1e-3));
        let peak = smoothed(&numbers(&row["confirmed_in_each_second_of_the_last_run"]));
        row["peak"] = peak.into_iter().fold(0.0, f64::max).round().into();
    }
    let columns = [
        ("measures", "/measures"),
        ("tx/s", "/transactions_per_second"),
        ("all over this", "/all_over_this"),
        ("peak tx/s over 3 s", "/peak"),
        ("p50 ms", "/latency_ms/p50"),
        ("p99 ms", "/latency_ms/p99"),
        ("in each second", "/confirmed_in_each_second_of_the_last_run"),
    ];
    let axes = ("latency, s", "share of transactions");
    Ok(Chart { series, axes, ..Chart::of(METHOD, &columns, &rows) })
}

fn figure_6(options: &PaperOptions, say: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    let rates: &[u64] = options.pick(&[200, 800], &[2_000, 4_000, 8_000, 12_000]);
    let mut rows = Vec::new();
    for &rate in rates {
        let measured = ConsensusOptions {
            validators: vec![4],
            rate,
            seconds: options.pick(2, 8),
            resting: 0,
            rules: consensus::Rules::default(),
            links: Some(ConsensusLinks::Regions),
        };
        let report = crate::consensus::run(&measured, say)?;
        for run in report["runs"].as_array().into_iter().flatten() {
            let mut run = run.clone();
            let number = |name: &str| run[name].as_f64().unwrap_or(0.0);
            let share = 100.0 * number("committed") / number("offered").max(1.0);
            (run["rate"], run["share"]) = (rate.into(), share.into());
            rows.push(run);
        }
    }
    let columns = [
        ("offered/s", "/rate"),
        ("tx/s", "/transactions_per_second"),
        ("committed, %", "/share"),
        ("p50 ms", "/commit_ms/p50"),
        ("p99 ms", "/commit_ms/p99"),
        ("superblocks", "/superblocks"),
    ];
    let method = "four validators in one process, links with the delays between ten regions; the paper's 200 machines \
                  need an owner of 200 machines. `walras-lab sim --consensus --regions 200` has the delays of 200";
    Ok(Chart::of(method, &columns, &rows))
}

fn figure_7(options: &PaperOptions, say: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    let measured = DiabloOptions {
        loads: vec!["gafam".into()],
        data: options.data.join("diablo"),
        validators: 4,
        senders: options.pick(64, 2_048),
        most: options.pick(400, u64::MAX),
        variants: false,
        rules: consensus::Rules::default(),
    };
    let report = crate::diablo::run(&measured, say)?;
    let mut rows = listed(&report, "loads")?;
    let mut series = Vec::new();
    for row in &mut rows {
        series.push(latency_curve("gafam", &row["latency"]["quantiles_s"], 1.0));
        row["percent"] = (100.0 * row["committed_share"].as_f64().unwrap_or(f64::NAN)).into();
    }
    let columns = [
        ("load", "/load"),
        ("calls", "/sent"),
        ("committed, %", "/percent"),
        ("average s", "/latency/average_s"),
        ("p50 s", "/latency/p50_s"),
        ("p99 s", "/latency/p99_s"),
        ("peak calls/s", "/peak_per_second"),
        ("in each second", "/committed_in_each_second"),
    ];
    let method = "four validators in one process without delays, the first calls of the trace in a small run; other \
                  chains are quoted, on 200 machines in ten regions";
    Ok(Chart { series, axes: ("latency, s", "share of calls"), ..Chart::of(method, &columns, &rows) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_means_of_three_seconds_and_curves_end_at_all() {
        assert_eq!(smoothed(&[3.0, 0.0, 6.0, 0.0]), [1.5, 3.0, 2.0, 3.0]);
        assert!(smoothed(&[]).is_empty());
        let quantiles: Vec<u64> = (0..=20).collect();
        let curve = latency_curve("all", &quantiles.into(), 1e-3);
        assert_eq!((curve.points[0], curve.points[20]), ((0.0, 0.0), (0.02, 1.0)));
    }
}
