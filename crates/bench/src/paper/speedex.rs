//! SPEEDEX (Ramseyer, Goel, Mazières, NSDI 2023): prices, whole blocks, payments, the filter, and what it is compared
//! with.
//!
//! Figures of whole blocks are of one replica, with as many threads as are asked for; the paper's machines have 48
//! cores. A small run has a small exchange, where fixed costs hide what a book of millions shows.

mod blocks;
mod claims;
mod prices;

use serde_json::{Value, json};

use super::chart::{Chart, ChartPlot, ChartSeries, unrolled};
use super::exhibit::ExhibitKind::{self, Measured, Simulated};
use super::exhibit::{Exhibit, ExhibitError, ExhibitRun, ExhibitSteps, Paper, PaperOptions, listed};
use crate::evm::EvmOptions;
use crate::filter::FilterOptions;
use crate::last_look::{Blind, last_look};
use crate::order_book::OrderBookOptions;
use crate::payments::PaymentsOptions;

type Run = fn(&PaperOptions, &mut ExhibitSteps) -> Result<Chart, ExhibitError>;

const fn speedex(
    id: &'static str,
    section: &'static str,
    title: &'static str,
    seconds: (u32, u32),
    run: Run,
) -> Exhibit {
    const KIND: ExhibitKind = Measured;
    let (paper, run) = (Paper::Speedex, ExhibitRun::Run(run));
    Exhibit {
        paper,
        id,
        section,
        title,
        kind: KIND,
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

const fn plot(x: &'static str, y: &'static str, by: &'static [&'static str], log: (bool, bool)) -> Option<ChartPlot> {
    Some(ChartPlot { x, y, by, log })
}

pub(super) const EXHIBITS: &[Exhibit] = &[
    Exhibit {
        plot: plot("-log2 μ", "Newton, Tâtonnement", &["ε"], (false, true)),
        says: &[("offers at μ = 2^-10, ε = 2^-15", "a few hundred; read off the plot", "§6.1")],
        claims: claims::FIGURE_2,
        ..speedex("figure-2", "§6.1", "the fewest offers with prices within 0.25 s", (40, 900), prices::figure_2)
    },
    Exhibit {
        plot: plot("offers", "tx/s", &["threads"], (false, false)),
        says: &[
            ("10 million accounts, 48 threads", "over 200,000 tx/s", "abstract, §7"),
            ("6 to 12, 12 to 24, 24 to 48 threads", "1.9, 1.8, 1.4 times", "§7"),
            ("from no offers to tens of millions", "about 10 % slower", "§7"),
        ],
        claims: claims::FIGURE_3,
        ..speedex("figure-3", "§7", "whole blocks, signed and logged, as the book fills", (15, 900), blocks::figure_3)
    },
    Exhibit {
        plot: plot("offers", "ms", &["threads"], (false, false)),
        says: &[("proposing", "scales with threads, less than validating", "§7")],
        claims: claims::FIGURE_4,
        ..speedex(
            "figure-4",
            "§7",
            "time to propose and execute a block, without signatures",
            (10, 600),
            blocks::figure_4,
        )
    },
    Exhibit {
        plot: plot("offers", "ms", &["threads", "mode"], (false, false)),
        says: &[("validating", "substantially faster than proposing", "§7")],
        claims: claims::FIGURE_5,
        ..speedex("figure-5", "§7", "time to validate and execute a proposal", (20, 900), blocks::figure_5)
    },
    Exhibit {
        plot: plot("transactions", "p50 tx/s", &["step"], (true, false)),
        says: &[("grid", "larger blocks are faster; offers cost little", "§7")],
        claims: claims::FIGURE_6,
        ..speedex(
            "figure-6",
            "§7",
            "rate by block size and open offers, with percentiles",
            (30, 1_200),
            blocks::figure_6,
        )
    },
    Exhibit {
        plot: plot("transactions", "tx/s", &["accounts", "threads"], (true, true)),
        says: &[
            ("large blocks", "largely independent of the number of accounts", "§7.1"),
            ("more threads", "near-linear on large blocks", "§7.1"),
        ],
        claims: claims::FIGURE_7,
        ..speedex("figure-7", "§7.1", "blocks of payments by accounts, size and threads", (8, 300), figure_7)
    },
    Exhibit {
        plot: plot("offers", "ms", &["assets", "solver"], (true, true)),
        says: &[("1,000 offers against 100", "about ten times as long", "appendix F.1")],
        claims: claims::FIGURE_8,
        ..speedex(
            "figure-8",
            "appendix F.1",
            "the convex program by a public solver, and ours",
            (15, 300),
            prices::figure_8,
        )
    },
    Exhibit {
        plot: plot("threads", "tx/s", &["accounts"], (false, false)),
        says: &[("Block-STM on their hardware", "reaches its maximum at 16 to 24 threads", "appendix J")],
        claims: claims::FIGURE_9,
        ..speedex("figure-9", "appendix J", "Block-STM on this machine", (20, 240), super::block_stm::figure_1)
    },
    Exhibit {
        plot: plot("open offers", "tx/s", &["validators"], (false, false)),
        says: &[("ten replicas of 32 cores", "the trend of figure 3, on weaker hardware", "appendix L")],
        claims: claims::FIGURE_10,
        ..speedex("figure-10", "appendix L", "several replicas on this machine's cores", (25, 200), blocks::figure_10)
    },
    Exhibit {
        says: &[
            ("days solved quickly", "350 of 500", "§6.2"),
            ("unrealized over realized utility, quick days, mean and most", "0.71 %, 4.7 %", "§6.2"),
            ("the other days", "0.42 %, 3.8 %", "§6.2"),
        ],
        claims: claims::DAYS,
        ..speedex("section-6.2-days", "§6.2", "daily batches of 50 crypto assets", (15, 900), prices::days)
    },
    Exhibit {
        plot: plot("accounts", "tx/s", &[], (true, false)),
        says: &[("100 accounts", "1.7 million/s", "§7.1"), ("10 million accounts", "210,000/s: 8 times fewer", "§7.1")],
        points: &[("the paper", &[(1e2, 1.7e6), (1e7, 2.1e5)])],
        claims: claims::ORDER_BOOK,
        ..speedex("section-7.1-orderbook", "§7.1", "a serial exchange with one order book", (5, 60), orderbook)
    },
    Exhibit {
        plot: plot("threads", "tx/s", &[], (false, false)),
        says: &[
            ("48, 24, 12, 6 threads", "375,000; 215,000; 114,000; 60,000/s", "§7.1"),
            ("over one thread", "34.8, 20.0, 10.6, 5.6 times", "§7.1"),
        ],
        points: &[("the paper", &[(6.0, 6e4), (12.0, 1.14e5), (24.0, 2.15e5), (48.0, 3.75e5)])],
        claims: claims::PAYMENTS,
        ..speedex("section-7.1-payments", "§7.1", "payments in 50 assets", (5, 300), payments)
    },
    Exhibit {
        says: &[("Geth 1.10, UniswapV2", "about 3,000/s", "§7.1"), ("Stellar's order book", "about 4,000/s", "§7.1")],
        claims: claims::EVM,
        ..speedex("section-7.1-evm", "§7.1", "swaps in the EVM, executed alone", (12, 60), swaps)
    },
    Exhibit {
        plot: plot("threads", "ms", &["accounts", "block"], (false, false)),
        says: &[
            ("500,000 transactions, 24 and 48 threads", "0.13 and 0.07 s: 21.0 and 38.4 times", "appendix I"),
            ("contested, 10,000 accounts", "0.10 s: at most 5.3 times", "appendix I"),
        ],
        points: &[("the paper, 500,000 transactions", &[(24.0, 130.0), (48.0, 70.0)])],
        claims: claims::FILTER,
        ..speedex("appendix-i-filter", "appendix I", "the deterministic filter, and a contested one", (6, 200), filter)
    },
    Exhibit {
        kind: Simulated,
        says: &[("commit-reveal", "orders hidden until their batch is fixed: named, not built", "§8")],
        claims: claims::LAST_LOOK,
        ..speedex("section-8-last-look", "§8", "a validator that trades on what it reads", (3, 20), last_looks)
    },
];

/// Runs with the same values, and a copycat that reads, guesses or follows.
fn last_looks(options: &PaperOptions, say: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    let batches = options.pick(200, 2_000);
    let runs = [
        ("plain", "copies what it reads", None),
        ("sealed", "guesses", Some(Blind::Guesses)),
        ("sealed", "copies the batch before", Some(Blind::Follows)),
    ];
    let mut chart = Chart {
        method: format!(
            "{batches} batches on one ledger; an informed trader knows the next value, and a validator sees what is \
             pending before it adds its own order, worth 1,000,000; gains at the next value, fees included"
        ),
        columns: vec!["orders", "copycat", "batches", "same way, %", "its gain", "gain of the informed"],
        axes: ("batch", "gain of the copycat"),
        ..Chart::default()
    };
    for (orders, copycat, blind) in runs {
        say(&format!("{orders} orders, a copycat that {copycat}"));
        let run = last_look(options.seed, batches, blind);
        let share = 100.0 * run.right as f64 / batches as f64;
        let gain = run.profits.last().copied().unwrap_or(0.0);
        let row = [json!(orders), json!(copycat), json!(batches), json!(share), json!(gain), json!(run.informed)];
        chart.table.push(row.to_vec());
        let points = (1..).map(f64::from).zip(run.profits).collect();
        chart.series.push(ChartSeries { name: format!("{orders}: {copycat}"), points, ..ChartSeries::default() });
    }
    Ok(chart)
}

fn figure_7(options: &PaperOptions, say: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    let measured = PaymentsOptions {
        accounts: options.pick(vec![2, 100, 10_000], vec![2, 100, 1_000, 10_000]),
        transactions: options.pick(vec![1_000, 100_000], vec![1_000, 10_000, 100_000]),
        blocks: options.pick(9, 100),
        assets: 1,
        threads: options.threads.clone(),
    };
    payments_chart(&measured, say)
}

fn payments(options: &PaperOptions, say: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    let measured = PaymentsOptions {
        accounts: vec![options.pick(20_000, 10_000_000)],
        transactions: vec![options.pick(10_000, 100_000)],
        blocks: options.pick(9, 20),
        assets: 50,
        threads: options.threads.clone(),
    };
    payments_chart(&measured, say)
}

fn payments_chart(measured: &PaymentsOptions, say: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    let report = crate::payments::run(measured, say);
    let rows = unrolled(&listed(&report, "runs")?, "transactions_per_second", "threads");
    let columns = [
        ("accounts", "/accounts"),
        ("transactions", "/transactions_per_block"),
        ("threads", "/threads"),
        ("tx/s", "/transactions_per_second"),
    ];
    let method = "blocks applied in memory, digests of the changes included, tries and signatures not; medians, blocks \
                  of all numbers of threads in turn";
    Ok(Chart::of(method, &columns, &rows))
}

fn orderbook(options: &PaperOptions, say: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    let measured = OrderBookOptions {
        accounts: options.pick(vec![100, 10_000, 1_000_000], vec![100, 10_000, 1_000_000, 10_000_000]),
        transactions: options.pick(200_000, 1_000_000),
        runs: options.pick(1, 5),
        seed: options.seed,
    };
    let rows = crate::order_book::run(&measured, say);
    let columns = [("accounts", "/accounts"), ("tx/s", "/transactions_per_second"), ("trades", "/trades")];
    let method = "two assets, one thread; the matching engine of continuous markets and a hash map of accounts, which \
                  the paper's tries replace";
    Ok(Chart::of(method, &columns, &rows))
}

fn swaps(options: &PaperOptions, say: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    let measured = EvmOptions {
        threads: options.threads.clone(),
        transactions: options.pick(500, 10_000),
        accounts: options.pick(500, 10_000),
        pools: options.pick(20, 100),
        rounds: options.pick(1, 5),
        loads: vec!["swaps"],
    };
    let report = crate::evm::run(&measured, say);
    let times = report["runs"]["swaps"]["us_per_transaction"].clone();
    let per_second = |us: &Value| us.as_f64().map(|us| (1e6 / us).round());
    let ours = options.threads.iter().map(|threads| {
        json!({ "how": "the ledger's executor", "threads": threads, "rate": per_second(&times[threads.to_string()]) })
    });
    let sequential = json!({ "how": "a loop over revm", "threads": 1, "rate": per_second(&times["sequential"]) });
    let rows: Vec<Value> = std::iter::once(sequential).chain(ours).collect();
    let columns = [("how", "/how"), ("threads", "/threads"), ("swaps/s", "/rate")];
    let method = "execution alone: no signatures, tries or consensus, which the paper's Geth has; swaps of a pool by the \
                  constant product in Solidity";
    Ok(Chart::of(method, &columns, &rows))
}

fn filter(options: &PaperOptions, say: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    let mut rows = Vec::new();
    let transactions = options.pick(20_000, 500_000);
    let blocks = [
        ("ordinary", options.pick(20_000, 10_000_000), FilterOptions::OVERDRAWN),
        ("contested", options.pick(1_000, 10_000), 4),
    ];
    for (block, accounts, overdrawn) in blocks {
        let measured = FilterOptions {
            accounts: vec![accounts],
            transactions: vec![transactions],
            runs: options.pick(5, 50),
            assets: 50,
            threads: options.threads.clone(),
            overdrawn,
        };
        let report = crate::filter::run(&measured, say);
        for mut row in unrolled(&listed(&report, "runs")?, "ms", "threads") {
            row["block"] = block.into();
            row["rate"] = row["transactions_per_second"][row["threads"].to_string()].clone();
            rows.push(row);
        }
    }
    let columns = [
        ("block", "/block"),
        ("accounts", "/accounts"),
        ("transactions", "/transactions_per_block"),
        ("removed", "/removed"),
        ("threads", "/threads"),
        ("ms", "/ms"),
        ("tx/s", "/rate"),
    ];
    Ok(Chart::of("a fifth of the transactions are copies; medians, all numbers of threads in turn", &columns, &rows))
}
