//! `walras clear`: prices and trades for a file of offers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clearing::{Book, Clearing, Obstacle, Params, Report, RowFill, Solver};
use indicatif::{ProgressBar, ProgressStyle};
use primitives::{AssetId, Fraction, Price};
use serde::{Deserialize, Serialize};

use crate::files::batch::{BatchFiles, BatchInput, read_batch};
use crate::files::explained::{ExplainSubject, Explained, explained, explanation_of};
use crate::files::parquet_files::Table;

/// Clears a batch of offers at one price vector.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  walras clear --offers offers.csv --json > clearing.json
  walras clear --offers offers.parquet --fills fills.parquet
  walras clear --offers offers.csv --explain 3
  walras clear --offers offers.csv --pools pools.csv --buys buys.csv --explain buys:1")]
pub struct ClearArgs {
    #[command(flatten)]
    pub files: BatchFiles,
    /// Commission that the auctioneer keeps, such as 2^-15, 0 or 0.0001
    #[arg(long, default_value = "2^-15")]
    pub epsilon: Fraction,
    /// How far below the rate a limit price must lie for its offer to execute in full; must be more than epsilon
    #[arg(long, default_value = "2^-10")]
    pub mu: Fraction,
    /// Price computation
    #[arg(long, default_value = "newton", value_parser = solver_parser())]
    pub solver: Solver,
    /// Also write the fills, columns row,sold,bought, to this .csv or .parquet file
    #[arg(long, value_name = "FILE", value_parser = fills_path)]
    pub fills: Option<PathBuf>,
    /// Explain why the offer of this row, counted from 1, does or does not trade; pools:ROW and buys:ROW explain
    /// those rows; may be repeated
    #[arg(long, value_name = "ROW")]
    pub explain: Vec<ExplainSubject>,
}

/// A file whose extension determines its format.
fn fills_path(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let known = path.extension().is_some_and(|extension| extension == "csv" || extension == "parquet");
    if known { Ok(path) } else { Err("the name must end in .csv or .parquet".into()) }
}

fn solver_parser() -> impl TypedValueParser<Value = Solver> {
    let all = [Solver::Newton, Solver::Tatonnement];
    PossibleValuesParser::new(all.map(Solver::name))
        .map(move |name| all.into_iter().find(|solver| solver.name() == name).expect("a possible value"))
}

/// The printed form of a clearing. Amounts and prices are exact decimal strings.
#[derive(Debug, Serialize, Deserialize)]
pub struct ClearingJson {
    /// Valuation by asset symbol. An asset to which no chain of offers leads back has no price, and is absent.
    pub prices: BTreeMap<String, String>,
    /// The amount sold on each pair that trades.
    pub trades: Vec<TradeJson>,
    /// What each offer that trades gives and receives, by row.
    pub fills: Vec<FillJson>,
    /// The trades of pools, by row.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<PoolJson>,
    /// The orders for exact amounts that are filled, by row.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buys: Vec<BuyJson>,
    /// Commission.
    pub epsilon: String,
    /// Band.
    pub mu: String,
    /// Whether every offer that must execute does.
    pub full: bool,
    /// The groups in which some does not, each by the symbol of its lowest asset, in the order of the offers' file. A
    /// clearing that is not full and names none claims nothing of any group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub short: Vec<String>,
    /// Unrealized utility divided by realized utility; null when nothing is realized.
    pub unrealized_utility_ratio: Option<f64>,
    /// The obstacle to a full clearing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<String>,
    /// Short names of the reasons why the clearing is not full: units, range, prices, amounts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// Proofs that no whole units follow any prices, which `walras verify` checks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proofs: Vec<ProofJson>,
    /// Explanations of the offers in --explain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub explanations: Vec<Explained>,
    /// Explanations of the pools and orders for exact amounts in --explain, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// How the prices were computed.
    pub solver: SolverJson,
}

/// One pair of [`ClearingJson`].
#[derive(Debug, Serialize, Deserialize)]
pub struct TradeJson {
    /// Symbol of the asset sold.
    pub sell: String,
    /// Symbol of the asset bought.
    pub buy: String,
    /// Units sold.
    pub sold: String,
}

/// One fill of [`ClearingJson`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FillJson {
    /// Data row of the offer, counted from 1.
    pub row: u32,
    /// Units given.
    pub sold: String,
    /// Units received.
    pub bought: String,
}

/// The trade of one pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolJson {
    /// Data row of the pool, counted from 1.
    pub row: u32,
    /// Symbol of the asset that it gives.
    pub sell: String,
    /// Symbol of the asset that it receives.
    pub buy: String,
    /// Units that it gives.
    pub sold: String,
    /// Units that it receives.
    pub bought: String,
}

/// One order for an exact amount that is filled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuyJson {
    /// Data row of the order, counted from 1.
    pub row: u32,
    /// Units paid.
    pub paid: String,
}

/// A proof that no clearing is full, see [`clearing::UnitsProof`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProofJson {
    /// Symbols of the assets whose conservation is used, in the order of the offers' file.
    pub assets: Vec<String>,
    /// The divisions of cases.
    pub divisions: Vec<DivisionJson>,
}

/// One division of [`ProofJson`]: an offer sells, or is paid, at most so many units, or more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DivisionJson {
    /// The offer by its position, from 0, among the offers between these assets, in the order of pairs and limits.
    pub offer: u32,
    /// Whether the units are those paid.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_paid: bool,
    /// Units.
    pub most: String,
}

/// The solver's part of [`ClearingJson`].
#[derive(Debug, Serialize, Deserialize)]
pub struct SolverJson {
    /// `newton` or `tatonnement`.
    pub name: String,
    /// Newton steps or Tâtonnement rounds.
    pub iterations: u32,
    /// Evaluations of demand.
    pub demand_queries: u32,
    /// Parts of the market for which the interior-point method ran.
    #[serde(default)]
    pub interior_parts: u32,
    /// Time of the whole clearing, without reading.
    pub seconds: f64,
    /// The largest relative imbalance of the smoothed demand.
    pub imbalance: f64,
    /// The work done.
    #[serde(default)]
    pub amounts: SpendingJson,
}

/// The work done, as [`SolverJson`] prints it.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SpendingJson {
    /// Looks at pairs by the price computation; expensive ones count more.
    pub price_looks: u64,
    /// Looks at edges by the amount step; expensive ones count more.
    pub amount_looks: u64,
    /// Price vectors tried.
    pub tries: u32,
    /// Shortest-path searches from shortages to surpluses.
    pub rounds: u32,
    /// Paths along which a shortage was moved.
    pub augmentations: u32,
    /// Shortages moved unit by unit.
    pub repairs: u32,
}

impl From<clearing::Spending> for SpendingJson {
    fn from(spending: clearing::Spending) -> SpendingJson {
        let clearing::Spending { price_looks, amount_looks, tries, rounds, augmentations, repairs } = spending;
        SpendingJson { price_looks, amount_looks, tries, rounds, augmentations, repairs }
    }
}

impl ClearArgs {
    /// Runs `walras clear`.
    ///
    /// # Errors
    /// If the file or the parameters are invalid.
    pub fn run(self, json: bool) -> Result<ExitCode> {
        let params = Params { epsilon: self.epsilon, mu: self.mu, solver: self.solver, ..Params::default() };
        if let Err(error) = params.check() {
            eprintln!("error: --mu, --epsilon: {error}");
            return Ok(ExitCode::from(2));
        }
        let batch = waiting("Reading offers", || read_batch(&self.files))?;
        let book = batch.book();
        if let Some(problem) = self.explain.iter().find_map(|asked| asked.outside(&book)) {
            eprintln!("error: {problem}");
            return Ok(ExitCode::from(2));
        }
        let task = format!("Clearing {} offers of {} assets", book.offers(), book.assets);
        let start = Instant::now();
        let clearing = waiting(&task, || clearing::clear(&book, &params, None))
            .with_context(|| format!("{}", self.files.offers.display()))?;
        let seconds = start.elapsed().as_secs_f64();
        let mut result = described(&batch, &book, &params, &clearing, seconds);
        for asked in &self.explain {
            match asked {
                ExplainSubject::Offer(row) => {
                    result.explanations.push(explained(&batch, &book, &params, &clearing, *row))
                }
                other => result.notes.push(explanation_of(&batch, &book, &params, &clearing, *other)),
            }
        }
        if !self.explain.is_empty() {
            result.notes.push(methods_in_words(&clearing.report));
        }
        if let Some(path) = &self.fills {
            write_fills(path, &result.fills)?;
        }
        if json {
            println!("{}", serde_json::to_string(&result)?);
        } else {
            print_tables(&result);
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Which methods found the prices.
fn methods_in_words(report: &Report) -> String {
    match (report.solver, report.interior_parts) {
        (Solver::Tatonnement, _) => "prices: Tâtonnement".into(),
        (Solver::Newton, 0) => "prices: Newton's method on smoothed demand, in every part of the market".into(),
        (Solver::Newton, parts) => {
            format!("prices: the interior-point method in {parts} parts of the market, Newton's method in the others")
        }
    }
}

/// The obstacles to a full clearing, in one sentence; `None` if there are none.
fn obstacles_in_words(obstacles: &[Obstacle], symbol: impl Fn(AssetId) -> String + Copy) -> Option<String> {
    let words: Vec<String> = obstacles.iter().map(|obstacle| obstacle.in_words(symbol)).collect();
    (!words.is_empty()).then(|| words.join("; "))
}

/// Runs `task` with a spinner on standard error, if that is a terminal and the task takes long enough to be seen.
fn waiting<T>(text: &str, task: impl FnOnce() -> T) -> T {
    let spinner = ProgressBar::new_spinner().with_message(text.to_owned());
    spinner.set_style(ProgressStyle::with_template("{spinner} {msg} {elapsed}").expect("a proper template"));
    spinner.enable_steady_tick(Duration::from_millis(200));
    let result = task();
    spinner.finish_and_clear();
    result
}

/// The printed form of `clearing`.
fn described(batch: &BatchInput, book: &Book, params: &Params, clearing: &Clearing, seconds: f64) -> ClearingJson {
    let symbol = |asset| batch.symbol(asset);
    let prices = batch.symbols.iter().zip(clearing.prices(book));
    let printed = |(symbol, price): (&String, Option<Price>)| Some((symbol.clone(), price?.to_string()));
    let trade = |t: &clearing::Trade| TradeJson { sell: symbol(t.sell), buy: symbol(t.buy), sold: t.sold.to_string() };
    let report = &clearing.report;
    let ratio = report.unrealized_utility_ratio;
    ClearingJson {
        prices: prices.filter_map(printed).collect(),
        trades: clearing.trades.iter().map(trade).collect(),
        fills: listed_fills(batch, book, params, clearing),
        pools: clearing.pools.iter().map(|trade| pool_json(batch, trade)).collect(),
        buys: clearing.exacts.iter().map(|p| BuyJson { row: p.order + 1, paid: p.other.to_string() }).collect(),
        epsilon: params.epsilon.to_string(),
        mu: params.mu.to_string(),
        full: clearing.full,
        short: clearing.short.iter().map(|asset| symbol(*asset)).collect(),
        unrealized_utility_ratio: ratio.is_finite().then_some(ratio),
        explanations: Vec::new(),
        notes: Vec::new(),
        obstacle: obstacles_in_words(&report.obstacles, symbol),
        reasons: report.obstacles.iter().map(|obstacle| obstacle.reason.name().to_owned()).collect(),
        proofs: report
            .obstacles
            .iter()
            .filter_map(|o| o.proof.as_ref())
            .map(|proof| proof_json(batch, proof))
            .collect(),
        solver: SolverJson {
            name: report.solver.name().into(),
            iterations: report.iterations,
            demand_queries: report.demand_queries,
            interior_parts: report.interior_parts,
            seconds,
            imbalance: report.imbalance,
            amounts: SpendingJson::from(report.spending),
        },
    }
}

fn proof_json(batch: &BatchInput, proof: &clearing::UnitsProof) -> ProofJson {
    let division = |&clearing::Division { offer, is_paid, most }: &clearing::Division| DivisionJson {
        offer,
        is_paid,
        most: most.to_string(),
    };
    ProofJson {
        assets: proof.assets.iter().map(|asset| batch.symbol(*asset)).collect(),
        divisions: proof.divisions.iter().map(division).collect(),
    }
}

fn pool_json(batch: &BatchInput, trade: &clearing::PoolTrade) -> PoolJson {
    PoolJson {
        row: trade.pool + 1,
        sell: batch.symbol(trade.sell),
        buy: batch.symbol(trade.buy),
        sold: trade.sold.to_string(),
        bought: trade.bought.to_string(),
    }
}

/// Every fill, by row.
pub fn listed_fills(batch: &BatchInput, book: &Book, params: &Params, clearing: &Clearing) -> Vec<FillJson> {
    let mut fills: Vec<RowFill> = clearing.fills(book, &batch.offers, params).collect();
    fills.sort_unstable_by_key(|fill| fill.row);
    let printed = |RowFill { row, sold, bought }: RowFill| FillJson {
        row: row + 1,
        sold: sold.to_string(),
        bought: bought.to_string(),
    };
    fills.into_iter().map(printed).collect()
}

/// Writes the fills in the format of the extension of `path`.
fn write_fills(path: &Path, fills: &[FillJson]) -> Result<()> {
    if path.extension().is_some_and(|extension| extension == "csv") {
        let mut writer = csv::Writer::from_path(path).with_context(|| format!("cannot write {}", path.display()))?;
        fills.iter().try_for_each(|fill| writer.serialize(fill))?;
        return writer.flush().with_context(|| format!("cannot write {}", path.display()));
    }
    let columns = ["required int64 row", "required int64 sold", "required int64 bought"];
    let mut table = Table::create(path, &columns)?;
    for FillJson { row, sold, bought } in fills {
        let amount = |text: &str| text.parse::<u64>().expect("a printed amount reads back");
        table.push([u64::from(*row).into(), amount(sold).into(), amount(bought).into()])?;
    }
    table.finish()
}

/// Maximum number of trades in a table.
const TRADES_SHOWN: usize = 40;

fn print_tables(result: &ClearingJson) {
    let width = result.prices.keys().map(|symbol| symbol.chars().count()).max().unwrap_or(0).max(5);
    println!("{:<width$}  price", "asset");
    result.prices.iter().for_each(|(symbol, price)| println!("{symbol:<width$}  {price}"));
    if !result.trades.is_empty() {
        println!("\n{:<width$}  {:<width$}  {:>20}", "sell", "buy", "sold");
    }
    for trade in result.trades.iter().take(TRADES_SHOWN) {
        println!("{:<width$}  {:<width$}  {:>20}", trade.sell, trade.buy, trade.sold);
    }
    if result.trades.len() > TRADES_SHOWN {
        println!("... and {} more pairs; --json lists all", result.trades.len() - TRADES_SHOWN);
    }
    print_others(result);
    let SolverJson { name, iterations, demand_queries, interior_parts, seconds, .. } = &result.solver;
    let ratio = result.unrealized_utility_ratio.map_or("none gained".into(), |ratio| format!("{:.4} %", 100.0 * ratio));
    println!("\n{} offers trade; full: {}; unrealized utility: {ratio}", result.fills.len(), result.full);
    println!("{name}: {iterations} iterations, {demand_queries} demand queries, {:.2} ms", 1e3 * seconds);
    if *interior_parts > 0 {
        println!("interior-point method: {interior_parts} parts of the market");
    }
    result.obstacle.iter().for_each(|obstacle| println!("not full: {obstacle}"));
    if !result.short.is_empty() {
        println!("groups that are not full, each by its first asset: {}; all others are", result.short.join(", "));
    }
    result.explanations.iter().for_each(|explained| println!("row {}: {}", explained.row, explained.text));
    result.notes.iter().for_each(|note| println!("{note}"));
}

/// Prints the trades of pools, and the filled orders for exact amounts.
fn print_others(result: &ClearingJson) {
    if !result.pools.is_empty() {
        println!();
    }
    for PoolJson { row, sell, buy, sold, bought } in &result.pools {
        println!("pool {row} gives {sold} {sell} for {bought} {buy}");
    }
    if !result.buys.is_empty() {
        println!("\n{} orders for exact amounts are filled", result.buys.len());
    }
}
