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
//! Sorting is excluded, as the ledger never does it. `sum_up` is the work of the book's owner between batches: the sums
//! of every run of offers. `prepare` is the work that each batch needs before it is solved. Sums inside a run are made
//! when a solver first reads there, and count as its time. `cold` is a price computation without earlier prices, `warm`
//! starts from those of the book before. Every clearing is verified; an invalid one stops the run.

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
use crate::measurement::{BenchResult, BenchShown, BenchSteps, Measurement, count, threads};

/// A set of books.
#[derive(Clone, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Suite {
    /// Random books of 50 assets, from 100 to 10^7 offers.
    Scaling,
    /// Random books of 200,000 and 10^6 offers, from 10 to 200 assets.
    Assets,
    /// Hard books: one-sided and disconnected assets, giant offers, prices 10^±12 apart; some cannot be full.
    Hard,
    /// Books made to break a clearing or to make it slow.
    Hostile,
    /// The same, within the minimum sizes.
    Minimum,
    /// Thin books of 2 to 50 assets and 2 to 10,000 offers: meshes, trees, cycles, hubs, two clusters.
    Thin,
    /// The daily batches of SPEEDEX §6.2, the book carried over from day to day.
    Coingecko,
    /// 10,000 assets against 20 numeraires, on one thread and on two; many small markets that trade separately.
    Decomposition,
    /// The fewest offers that a solver needs to be fast, by epsilon and mu: SPEEDEX figure 2.
    Figure2,
    /// The convex program by a public solver beside ours, by assets and offers: SPEEDEX figure 8.
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
            Suite::Coingecko => 500,
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
            Suite::Coingecko => "coingecko",
            Suite::Decomposition => "decomposition",
            Suite::Figure2 => "figure2",
            Suite::Figure8 => "figure8",
        }
    }
}

/// Prices and amounts by both solvers on the same books, one thread, cold.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  walras-lab bench clearing
  walras-lab bench clearing --suite assets --json
  walras-lab bench clearing --suite hostile --books 1000000
  walras-lab bench clearing --suite thin --books 1000000 --threads 2
  walras-lab bench clearing --suite coingecko --data ../shared/data/coingecko --json")]
pub struct ClearingOptions {
    /// What to clear.
    #[arg(long, value_enum, default_value_t = Suite::Scaling)]
    pub suite: Suite,
    /// Books of each size, or days, instead of the suite's default; of large books there are fewer.
    #[arg(long, value_parser = count(1..))]
    pub books: Option<usize>,
    /// Skip books with more offers than this, in suites with several sizes.
    #[arg(long, default_value_t = 10_000_000, value_parser = count(100..))]
    pub most: usize,
    /// Threads of the suites hostile, minimum and thin, each with books of its own; others run on one.
    #[arg(long, default_value_t = 1, value_parser = threads())]
    pub threads: usize,
    /// Folder of the daily prices, for the suite that needs them.
    #[arg(long, default_value = "../shared/data/coingecko")]
    pub data: PathBuf,
}

impl Measurement for ClearingOptions {
    fn measured(self, say: &mut BenchSteps) -> BenchResult {
        // Of many books a tenth is a step.
        let mut told = (String::new(), 0);
        let report = run(&self, &mut |what, done, of| {
            let now = (what.to_owned(), 10 * done / of.max(1));
            if now != told {
                say(&format!("{what}: {done} of {of}"));
                told = now;
            }
        })?;
        Ok(BenchShown::Rows(report))
    }
}

/// Called with what is being measured, the number of books done, and the total.
pub type ProgressStep<'a> = dyn FnMut(&str, usize, usize) + Send + 'a;

/// Runs a suite. The answer contains the suite, its parameters and a list of `rows`. Each row says what was measured
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
        Suite::Coingecko => {
            let history = history(&options.data, books)?;
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
