//! Measures clearing: both solvers on the same books, on one thread unless a suite says otherwise.
//!
//! | suite | what it measures |
//! |---|---|
//! | scaling | time by number of offers, 10^2 to 10^7, cold and from the prices of a half-changed book |
//! | assets | time by number of assets |
//! | hard | shares of hard books that are cleared full, by kind, and the obstacles of the others |
//! | hostile | books made to break a clearing or slow it: towers, stars, rings, meshes, 36 decades, dust and giants |
//! | minimum | hostile books within `least_units`: how many are full, and why others are not |
//! | thin | few offers for each asset: how many books of each pattern are full, and why others are not |
//! | coingecko | SPEEDEX §6.2: a batch a day of real prices and volumes, the book carried over |
//! | decomposition | 10,000 assets against 20 numeraires, which trade among themselves or not; many small markets |
//! | figure8 | SPEEDEX figure 8: time of the convex program of Devanur, Garg and Végh by a public solver, and ours |
//! | figure2 | SPEEDEX figure 2: the fewest offers at which prices are computed in a quarter of a second |
//!
//! Sorting is excluded, as the ledger never does it. `sum_up` is the work of the book's owner between batches: the
//! sums of every run of offers. `prepare` is the work that each batch needs before it is solved; sums inside a run
//! are made when a solver first reads there, and count as its time. `cold` is a price computation without earlier
//! prices, `warm` starts from those of the book before. Every clearing is verified; an invalid one stops the run.

mod adversarial;
mod days;
mod figure2;
mod figure8;
mod hard;
mod numeraires;
mod sample;
mod sizes;

use std::path::PathBuf;

use ::clearing::Params;
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde_json::{Value, json};

use crate::daily::{HistoryError, history};

/// What to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Suite {
    /// Random books of 50 assets, from 100 to 10^7 offers.
    Scaling,
    /// Random books of 200,000 and 10^6 offers, from 10 to 200 assets.
    Assets,
    /// Random hard books of 500 to 10^6 offers; see [`::clearing::workload::hard`].
    Hard,
    /// Books made to break a clearing; see [`::clearing::workload::hostile::hostile`].
    Hostile,
    /// The same within the minimum sizes; see [`::clearing::workload::hostile::within_minimum`].
    Minimum,
    /// Thin books; see [`::clearing::workload::thin::thin`].
    Thin,
    /// The daily batches of SPEEDEX §6.2, from the price files in this folder.
    Coingecko(PathBuf),
    /// 10,000 assets, 20 of them numeraires, and 5·10^6 offers, on one thread and on two; and many small separate
    /// markets, of which half are not full.
    Decomposition,
    /// The fewest offers that a solver needs to be fast, by ε and μ.
    Figure2,
    /// The convex program by a public solver beside ours, by assets and offers.
    Figure8,
}

impl Suite {
    /// Default number of books of each size, or of days.
    pub fn usual_books(&self) -> usize {
        match self {
            Suite::Scaling => 100,
            Suite::Assets => 20,
            Suite::Hard => 1_000,
            Suite::Hostile | Suite::Minimum | Suite::Thin => 10_000,
            Suite::Coingecko(_) => 500,
            Suite::Decomposition => 3,
            Suite::Figure2 | Suite::Figure8 => 5,
        }
    }

    /// The name on the command line.
    pub const fn name(&self) -> &'static str {
        match self {
            Suite::Scaling => "scaling",
            Suite::Assets => "assets",
            Suite::Hard => "hard",
            Suite::Hostile => "hostile",
            Suite::Minimum => "minimum",
            Suite::Thin => "thin",
            Suite::Coingecko(_) => "coingecko",
            Suite::Decomposition => "decomposition",
            Suite::Figure2 => "figure2",
            Suite::Figure8 => "figure8",
        }
    }
}

/// What to measure, and how thoroughly.
#[derive(Clone, Debug)]
pub struct ClearingOptions {
    /// The books.
    pub suite: Suite,
    /// Books of each size, or days; of books of more than 200,000 offers there are fewer. [`Suite::usual_books`] if
    /// `None`.
    pub books: Option<usize>,
    /// Books with more offers are not measured by the suites over sizes, including figure 2.
    pub most: usize,
    /// Threads of the suites of hostile, minimum and thin books, each with books of its own; others run on one.
    pub threads: usize,
}

/// Called with what is being measured, the number of books done, and the total.
pub type ProgressStep<'a> = dyn FnMut(&str, usize, usize) + Send + 'a;

/// Runs a suite. The answer contains the suite, its parameters and a list of `rows`; each row says what was measured
/// and the results of each solver, times in milliseconds.
///
/// # Errors
/// [`HistoryError`] if the suite reads prices and cannot.
pub fn run(options: &ClearingOptions, step: &mut ProgressStep) -> Result<Value, HistoryError> {
    let books = options.books.unwrap_or(options.suite.usual_books());
    let alone = pool(1);
    let extent = adversarial::Extent { books, threads: options.threads };
    let rows: Vec<Value> = match &options.suite {
        Suite::Scaling => alone.install(|| sizes::scaling(books, options.most, step)),
        Suite::Assets => alone.install(|| sizes::assets(books, options.most, step)),
        Suite::Hard => alone.install(|| hard::run(books, step)),
        Suite::Hostile => adversarial::hostile_books(extent, step),
        Suite::Minimum => adversarial::minimum_books(extent, step),
        Suite::Thin => adversarial::thin_books(extent, step),
        Suite::Coingecko(folder) => {
            let history = history(folder, books)?;
            alone.install(|| days::run(&history, step))
        }
        Suite::Decomposition => numeraires::run(books, step),
        Suite::Figure2 => alone.install(|| figure2::run(books, options.most, step)),
        Suite::Figure8 => alone.install(|| figure8::run(books, options.most, step)),
    };
    let Params { epsilon, mu, .. } = Params::default();
    let (suite, epsilon, mu) = (options.suite.name(), epsilon.to_string(), mu.to_string());
    let mut report = json!({ "suite": suite, "books": books, "rows": rows });
    // Figure 2 has its own in every row.
    if options.suite != Suite::Figure2 {
        (report["epsilon"], report["mu"]) = (epsilon.into(), mu.into());
    }
    Ok(report)
}

fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(threads).build().expect("threads start")
}
