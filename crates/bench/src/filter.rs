//! The deterministic filter alone (SPEEDEX §8, appendix I): blocks of the paper's workload, a fifth of them copies.
//! Some copies reuse a sequence number for another operation, and some accounts overdraw, so all of their
//! transactions are removed. A *contested* block is of accounts of which almost all overdraw.

use std::time::Instant;

use kernel::Dice;
use ledger::{Ledger, Signatures};
use primitives::{AssetId, Operation};
use serde_json::{Value, json};

use crate::measurement::{BenchResult, BenchShown, BenchSteps, Measurement, ascending, count, threads};
use crate::population::{Population, block};
use crate::scaling::{ByThreads, amdahl_of, median, pools};
use crate::trading::Trading;

/// The deterministic filter alone.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  walras-lab bench filter --json")]
pub struct FilterOptions {
    /// Numbers of accounts.
    #[arg(long, value_delimiter = ',', default_values_t = [100_000usize, 1_000_000])]
    pub accounts: Vec<usize>,
    /// Numbers of transactions in a block.
    #[arg(long, value_delimiter = ',', default_values_t = [10_000usize, 100_000, 500_000])]
    pub transactions: Vec<usize>,
    /// Measured runs of each kind.
    #[arg(long, default_value_t = 9, value_parser = count(1..))]
    pub runs: usize,
    /// Assets.
    #[arg(skip = 50u32)]
    pub assets: u32,
    /// Numbers of threads, ascending.
    #[arg(long, value_delimiter = ',', default_values_t = [1usize, 2], value_parser = threads())]
    pub threads: Vec<usize>,
    /// Every n-th transaction asks for more than its account has: a few for a contested block.
    #[arg(long, default_value_t = FilterOptions::OVERDRAWN, value_parser = count(1..))]
    pub overdrawn: usize,
}

impl FilterOptions {
    /// In the paper's block, one or two hundred accounts of 500,000 transactions overdraw.
    pub const OVERDRAWN: usize = 3_000;
}

impl Measurement for FilterOptions {
    fn measured(self, say: &mut BenchSteps) -> BenchResult {
        ascending(&self.threads)?;
        Ok(BenchShown::Figures(run(&self, say)))
    }
}

/// Every n-th transaction is a copy of another.
const COPIES: usize = 5;
/// Every n-th copy is changed, so that it conflicts with the original.
const CONFLICTS: usize = 100;

/// Runs everything; `say` is called with each step.
///
/// # Panics
/// If the system cannot start threads.
pub fn run(options: &FilterOptions, say: &mut dyn FnMut(&str)) -> Value {
    let mut results = Vec::new();
    for &accounts in &options.accounts {
        say(&format!("the filter over {accounts} accounts"));
        let population = Population::new(accounts, options.assets, false);
        let mut ledger = Ledger::new(&population.genesis()).expect("a sound genesis");
        let mut trading = Trading::new(population, options.assets, 5);
        let resting = trading.resting(&ledger, accounts.min(500_000));
        let native = trading.population.sign(resting, None);
        ledger.apply(&block(&ledger, native), Signatures::Valid, &mut |_| {}).expect("applies");
        for &transactions in &options.transactions {
            results.push(measure(&ledger, &mut trading, transactions, options));
        }
    }
    json!({ "assets": options.assets, "runs": results })
}

fn measure(ledger: &Ledger, trading: &mut Trading, transactions: usize, options: &FilterOptions) -> Value {
    let pools = pools(&options.threads);
    let mut unsigned = trading.block(ledger, transactions - transactions / COPIES);
    for transaction in unsigned.iter_mut().step_by(options.overdrawn) {
        if let Operation::CreateOffer { amount, .. } = &mut transaction.body.operation {
            *amount = i64::MAX as u64;
        }
    }
    let mut native = trading.population.sign(unsigned, None);
    let mut random = Dice::new(11);
    for number in 0..transactions / COPIES {
        let mut copy = native[random.below(native.len() as u64) as usize].clone();
        if number % CONFLICTS == 0 {
            copy.body.operation = Operation::Burn { asset: AssetId(0), amount: 1 };
        }
        native.push(copy);
    }
    let block = block(ledger, native);
    let mut times: ByThreads<Vec<f64>> = ByThreads::new();
    let mut removed = 0;
    for _ in 0..=options.runs {
        for (threads, pool) in &pools {
            let begun = Instant::now();
            let refusals = pool.install(|| ledger.judge(&block, Signatures::Valid));
            times.entry(*threads).or_default().push(begun.elapsed().as_secs_f64() * 1_000.0);
            removed = refusals.iter().flatten().count();
        }
    }
    let ms: ByThreads<f64> = times.into_iter().map(|(threads, times)| (threads, median(times[1..].to_vec()))).collect();
    let per_second = ms.iter().map(|(threads, ms)| (*threads, (transactions as f64 * 1_000.0 / ms).round()));
    json!({
        "accounts": ledger.accounts().len(),
        "transactions_per_block": transactions,
        "removed": removed,
        "transactions_per_second": per_second.collect::<ByThreads<f64>>(),
        "ms": ms,
        "amdahl": amdahl_of(&ms),
    })
}
