//! Measures clearing: prices by both solvers on the same books, and the amount step, on one thread and from cold.
//!
//! Preparing a book (checking it and summing it up) is measured apart, as is sorting it, which the ledger never does.

use std::fmt;
use std::path::PathBuf;
use std::time::Instant;

use ::clearing::{Market, Params, Solver, SortedOffers, verify};
use rayon::ThreadPoolBuilder;
use serde::Serialize;

use crate::daily::{History, HistoryError, history};
use crate::workload::{cycle_book, hard};

/// What to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Suite {
    /// Random books of 50 assets, from 10^4 to 10^6 offers.
    Scaling,
    /// Random books of 200,000 offers, from 10 to 200 assets.
    Assets,
    /// Random hard books of up to 100,000 offers; see [`crate::workload::hard`].
    Hard,
    /// The daily batches of SPEEDEX §6.2, from the price files in this folder.
    Coingecko(PathBuf),
}

/// What to measure, and how thoroughly.
#[derive(Clone, Debug)]
pub struct Options {
    /// The books.
    pub suite: Suite,
    /// Books, or days, of each size; books of a million offers are a tenth as many.
    pub books: usize,
}

/// One measured figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// What was measured, from the general to the particular.
    pub name: String,
    /// The value.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
    /// Threads that worked.
    pub threads: usize,
}

/// All figures of one run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// In the order they were measured.
    pub figures: Vec<Figure>,
}

impl fmt::Display for Report {
    /// One figure per line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Figure { name, value, unit, threads } in &self.figures {
            let plural = if *threads == 1 { "" } else { "s" };
            writeln!(f, "{name:<70} {value:>12.4} {unit:<6} {threads} thread{plural}")?;
        }
        Ok(())
    }
}

/// Runs a suite on one thread.
///
/// # Errors
/// [`HistoryError`] if the suite reads prices and cannot.
pub fn run(options: &Options) -> Result<Report, HistoryError> {
    let pool = ThreadPoolBuilder::new().num_threads(1).build().expect("one thread starts");
    let mut report = Report::default();
    match &options.suite {
        Suite::Scaling => {
            for offers in [10_000, 50_000, 200_000, 1_000_000] {
                let books = if offers < 1_000_000 { options.books } else { options.books.div_ceil(10) };
                let name = format!("clearing, 50 assets, {offers} offers");
                pool.install(|| measure(&mut report, &name, books, |seed| cycle_book(50, offers, seed)));
            }
        }
        Suite::Assets => {
            for assets in [10, 20, 50, 100, 200] {
                let name = format!("clearing, {assets} assets, 200000 offers");
                pool.install(|| measure(&mut report, &name, options.books, |seed| cycle_book(assets, 200_000, seed)));
            }
        }
        Suite::Hard => {
            let name = "clearing, hard books";
            pool.install(|| measure(&mut report, name, options.books, |seed| hard(100_000, seed)));
        }
        Suite::Coingecko(folder) => {
            let history = history(folder, options.books)?;
            for (offers, spread) in [(30_000, 0.02), (30_000, 0.005), (5_000, 0.05)] {
                let name = format!("clearing, {offers} offers a day within {} %", 100.0 * spread);
                pool.install(|| {
                    measure(&mut report, &name, history.days.len(), |day| daily(&history, day, offers, spread))
                });
            }
        }
    }
    Ok(report)
}

fn daily(history: &History, day: u64, offers: usize, spread: f64) -> SortedOffers {
    SortedOffers::new(history.symbols.len() as u32, &history.offers(day as usize, offers, spread, 1))
}

/// What one solver came to on a number of books.
#[derive(Default)]
struct Sample {
    prices_ms: Vec<f64>,
    amounts_ms: Vec<f64>,
    iterations: Vec<f64>,
    queries: Vec<f64>,
    utility: Vec<f64>,
    /// Books that end in a verified clearing that is full.
    full: usize,
}

/// Measures both solvers on books number 0 to `books`.
fn measure(report: &mut Report, name: &str, books: usize, make: impl Fn(u64) -> SortedOffers) {
    let mut prepare_ms = Vec::new();
    let mut samples = [Sample::default(), Sample::default()];
    for seed in 0..books as u64 {
        let sorted = make(seed);
        let book = sorted.book();
        let start = Instant::now();
        let market = Market::new(&book).expect("a proper book");
        prepare_ms.push(milliseconds(start));
        for (solver, sample) in [Solver::Newton, Solver::Tatonnement].into_iter().zip(&mut samples) {
            let params = Params { solver, ..Params::default() };
            sample.take(&market, &params);
            let clearing = market.clear(&params, None).expect("a proper book");
            verify(&book, &params, &clearing).expect("every clearing verifies");
            sample.full += usize::from(clearing.full);
            sample.utility.push(clearing.report.unrealized_utility_ratio);
        }
    }
    report.spread(name, "prepare", "ms", &mut prepare_ms);
    let [ours, theirs] = &mut samples;
    let faster = median(&mut theirs.prices_ms) / median(&mut ours.prices_ms);
    ours.report(report, name, Solver::Newton, books);
    theirs.report(report, name, Solver::Tatonnement, books);
    report.add(format!("{name}, newton faster than tatonnement"), faster, "times");
}

impl Sample {
    fn take(&mut self, market: &Market, params: &Params) {
        let start = Instant::now();
        let prices = market.prices(params, None).expect("proper parameters");
        self.prices_ms.push(milliseconds(start));
        let start = Instant::now();
        market.amounts(params, &prices.valuations).expect("proper parameters");
        self.amounts_ms.push(milliseconds(start));
        self.iterations.push(f64::from(prices.iterations));
        self.queries.push(f64::from(prices.demand_queries));
    }

    fn report(&mut self, report: &mut Report, name: &str, solver: Solver, books: usize) {
        let name = format!("{name}, {}", solver.name());
        report.add(format!("{name}, books solved and verified"), self.full as f64, "books");
        report.add(format!("{name}, of"), books as f64, "books");
        report.spread(&name, "prices", "ms", &mut self.prices_ms);
        report.spread(&name, "amounts", "ms", &mut self.amounts_ms);
        report.spread(&name, "iterations", "", &mut self.iterations);
        report.spread(&name, "demand queries, all instances", "", &mut self.queries);
        let mean = self.utility.iter().sum::<f64>() / books as f64;
        report.add(format!("{name}, unrealized/realized utility, mean"), 100.0 * mean, "%");
        let worst = self.utility.iter().copied().fold(0.0, f64::max);
        report.add(format!("{name}, unrealized/realized utility, worst"), 100.0 * worst, "%");
    }
}

impl Report {
    fn add(&mut self, name: String, value: f64, unit: &'static str) {
        self.figures.push(Figure { name, value, unit, threads: 1 });
    }

    /// Median, 99th percentile and worst of `values`.
    fn spread(&mut self, name: &str, what: &str, unit: &'static str, values: &mut [f64]) {
        self.add(format!("{name}, {what}, median"), median(values), unit);
        self.add(format!("{name}, {what}, p99"), values[values.len() * 99 / 100], unit);
        self.add(format!("{name}, {what}, worst"), values[values.len() - 1], unit);
    }
}

/// Sorts `values`; there must be some.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn milliseconds(since: Instant) -> f64 {
    1e3 * since.elapsed().as_secs_f64()
}
