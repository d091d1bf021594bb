//! Figures of whole blocks.

use serde_json::{Value, json};

use crate::consensus::{ConsensusLinks, ConsensusOptions};
use crate::exchange::{BlockMode, ExchangeOptions};
use crate::paper::chart::Chart;
use crate::paper::exhibit::{ExhibitError, ExhibitSteps, PaperOptions, listed};

/// Blocks on a book that fills in four steps. The size of a small run is what ends within seconds.
fn filling(options: &PaperOptions, modes: &[BlockMode], signed_and_logged: bool) -> ExchangeOptions {
    ExchangeOptions {
        accounts: vec![options.pick(10_000, 10_000_000)],
        transactions: vec![options.pick(4_000, 500_000)],
        blocks: options.pick(5, 9),
        assets: options.pick(10, 50),
        resting: 0,
        signed_transactions: 0,
        fill: Some(options.pick(40_000, 20_000_000)),
        pools: 0,
        ends: Vec::new(),
        modes: modes.to_vec(),
        fill_signed: signed_and_logged,
        fill_logged: signed_and_logged,
        threads: options.threads.clone(),
    }
}

/// A row for each step of the book, and each kind of block.
fn rows(measured: &ExchangeOptions, say: &mut ExhibitSteps) -> Result<Vec<Value>, ExhibitError> {
    let directory = tempfile::tempdir()?;
    let report = crate::exchange::run(measured, directory.path(), say)?;
    let mut rows = Vec::new();
    for (number, step) in listed(&report["runs"][0], "steps")?.iter().enumerate() {
        for mut run in listed(step, "runs")? {
            (run["offers"], run["step"]) = (step["offers"].clone(), number.into());
            run["transactions"] = measured.transactions[0].into();
            rows.push(run);
        }
    }
    Ok(rows)
}

const COLUMNS: [(&str, &str); 8] = [
    ("step", "/step"),
    ("offers", "/offers"),
    ("mode", "/mode"),
    ("threads", "/threads"),
    ("tx/s", "/transactions_per_second"),
    ("p10 tx/s", "/p10_per_second"),
    ("p90 tx/s", "/p90_per_second"),
    ("ms", "/block_ms"),
];

fn method(measured: &ExchangeOptions) -> String {
    let text = if measured.fill_signed { "signed and logged" } else { "neither signed nor logged" };
    format!(
        "the workload of §7: {} accounts, {} assets, blocks of {} transactions, {text}; the tries of the block before \
         are hashed meanwhile; medians of {} blocks, all kinds in turn. No consensus",
        measured.accounts[0], measured.assets, measured.transactions[0], measured.blocks
    )
}

pub(super) fn figure_3(options: &PaperOptions, say: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    let measured = filling(options, &[BlockMode::Propose], true);
    Ok(Chart::of(&method(&measured), &COLUMNS, &rows(&measured, say)?))
}

pub(super) fn figure_4(options: &PaperOptions, say: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    let measured = filling(options, &[BlockMode::Propose], false);
    Ok(Chart::of(&method(&measured), &COLUMNS, &rows(&measured, say)?))
}

pub(super) fn figure_5(options: &PaperOptions, say: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    let measured = filling(options, &BlockMode::ALL, false);
    let mut rows = rows(&measured, say)?;
    let proposed: Vec<Value> = rows.iter().filter(|row| row["mode"] == "propose").cloned().collect();
    for row in rows.iter_mut().filter(|row| row["mode"] == "replay") {
        let same = |other: &&Value| other["step"] == row["step"] && other["threads"] == row["threads"];
        row["proposed"] = proposed.iter().find(same).map_or(Value::Null, |of| of["transactions_per_second"].clone());
    }
    for step in 0..rows.iter().filter_map(|row| row["step"].as_u64()).max().map_or(0, |last| last + 1) {
        let gain = |mode: &str| {
            let of = rows.iter().filter(|row| row["step"] == step && row["mode"] == mode);
            let rates: Vec<f64> = of.filter_map(|row| row["transactions_per_second"].as_f64()).collect();
            Some(rates.last()? / rates.first()?)
        };
        let Some(gain) = gain("replay").zip(gain("propose")).map(|(replay, propose)| replay / propose) else {
            continue;
        };
        let of = rows.iter_mut().rev().find(|row| row["step"] == step && row["mode"] == "replay");
        of.into_iter().for_each(|row| row["gain"] = gain.into());
    }
    let columns: Vec<(&str, &str)> =
        COLUMNS.into_iter().chain([("proposed tx/s", "/proposed"), ("scales over proposing", "/gain")]).collect();
    let method = format!(
        "{}. `validate` finds prices again, as validators here do; `replay` checks those of the proposal, as the \
         paper's do (K.3)",
        method(&measured)
    );
    Ok(Chart::of(&method, &columns, &rows))
}

pub(super) fn figure_6(options: &PaperOptions, say: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    let sizes: &[usize] = options.pick(&[500, 2_000, 8_000], &[10_000, 50_000, 100_000, 250_000, 500_000]);
    let mut all = Vec::new();
    let mut text = String::new();
    for &size in sizes {
        let base = filling(options, &[BlockMode::Propose], true);
        let threads = vec![options.threads_most()];
        let blocks = options.pick(5, 9);
        let measured = ExchangeOptions { transactions: vec![size], threads, blocks, ..base };
        text = method(&measured);
        all.extend(rows(&measured, say)?);
    }
    // By offers, and within them by size, as the claim reads them.
    all.sort_by_key(|row| (row["step"].as_u64(), row["transactions"].as_u64()));
    let columns = [
        ("step", "/step"),
        ("offers", "/offers"),
        ("transactions", "/transactions"),
        ("threads", "/threads"),
        ("p10 tx/s", "/p10_per_second"),
        ("p50 tx/s", "/transactions_per_second"),
        ("p90 tx/s", "/p90_per_second"),
    ];
    Ok(Chart::of(&format!("{text}; the last size is named, others alike"), &columns, &all))
}

pub(super) fn figure_10(options: &PaperOptions, say: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    let mut rows = Vec::new();
    let rate = options.pick(500, 2_000);
    for &resting in options.pick(&[0, 10_000][..], &[0, 100_000, 200_000, 400_000]) {
        let measured = ConsensusOptions {
            validators: vec![options.pick(4, 10)],
            rate,
            seconds: options.pick(2, 10),
            resting,
            rules: consensus::Rules::default(),
            links: Some(ConsensusLinks::Loopback),
        };
        rows.extend(listed(&crate::consensus::run(&measured, say)?, "runs")?);
    }
    for run in &mut rows {
        let number = |name: &str| run[name].as_f64().unwrap_or(f64::NAN);
        run["share"] = json!(100.0 * number("committed") / number("offered").max(1.0));
        run["rate"] = rate.into();
        let spent = run["processor_us_per_transaction_and_validator"].as_object().into_iter().flatten();
        run["spent"] = json!(spent.filter_map(|(_, us)| us.as_f64()).sum::<f64>());
    }
    let columns = [
        ("validators", "/validators"),
        ("open offers", "/open_offers"),
        ("offered/s", "/rate"),
        ("tx/s", "/transactions_per_second"),
        ("committed, %", "/share"),
        ("p50 ms", "/commit_ms/p50"),
        ("p99 ms", "/commit_ms/p99"),
        ("processor µs/tx", "/spent"),
    ];
    let method = "validators with disks and sockets in one process, which divide its cores among them; the book is \
                  filled through consensus before, and the load is the same with each number of open offers; \
                  processor time of a transaction at one validator";
    Ok(Chart::of(method, &columns, &rows))
}
