//! Blocks of payments only, between few accounts and between many: of one asset (SPEEDEX figure 7), or of several
//! (§7.1).
//!
//! Payments go between two random accounts. A block holds at most 50 transactions of one sender, because the ledger
//! accepts 64 numbers ahead. If a block needs more senders than there are accounts, other accounts send and these
//! accounts receive: with two accounts, every transaction pays one of them. Times are of applying the block,
//! including digests of the changes, without tries.

use std::time::Instant;

use kernel::Dice;
use ledger::{Ledger, Signatures};
use primitives::Operation;
use serde_json::{Value, json};

use crate::measurement::{BenchResult, BenchShown, BenchSteps, Measurement, ascending, count, threads};
use crate::population::{Population, block};
use crate::scaling::{ByThreads, amdahl_of, median, pools};

/// Blocks of payments only, between two accounts and between millions.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  walras-lab bench payments --json
  walras-lab bench payments --accounts 2,10000 --transactions 100000")]
pub struct PaymentsOptions {
    /// Numbers of accounts.
    #[arg(long, value_delimiter = ',', default_values_t = [2usize, 100, 10_000, 1_000_000, 10_000_000])]
    pub accounts: Vec<usize>,
    /// Numbers of transactions in a block.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000usize, 10_000, 100_000])]
    pub transactions: Vec<usize>,
    /// Measured blocks of each kind.
    #[arg(long, default_value_t = 20, value_parser = count(1..))]
    pub blocks: usize,
    /// Assets; each account pays in one of them.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub assets: u32,
    /// Numbers of threads, ascending.
    #[arg(long, value_delimiter = ',', default_values_t = [1usize, 2], value_parser = threads())]
    pub threads: Vec<usize>,
}

impl Measurement for PaymentsOptions {
    fn measured(self, say: &mut BenchSteps) -> BenchResult {
        ascending(&self.threads)?;
        Ok(BenchShown::Figures(run(&self, say)))
    }
}

/// Maximum number of transactions of one sender in a block.
const OF_ONE_SENDER: usize = 50;

/// Runs everything; `say` is called with each step.
///
/// # Panics
/// If the system cannot start threads.
pub fn run(options: &PaymentsOptions, say: &mut dyn FnMut(&str)) -> Value {
    let mut results = Vec::new();
    for &accounts in &options.accounts {
        say(&format!("payments between {accounts} accounts"));
        for &transactions in &options.transactions {
            results.push((accounts, transactions, measure(options, accounts, transactions)));
        }
    }
    let contention: Vec<Value> = options.transactions.iter().filter_map(|size| contention(&results, *size)).collect();
    let runs = results.iter().map(|(accounts, transactions, ms)| {
        let per_second = ms.iter().map(|(threads, ms)| (*threads, (*transactions as f64 * 1_000.0 / ms).round()));
        json!({
            "accounts": accounts,
            "transactions_per_block": transactions,
            "transactions_per_second": per_second.collect::<ByThreads<f64>>(),
            "block_ms": ms,
            "amdahl": amdahl_of(ms),
        })
    });
    let (blocks, assets) = (options.blocks, options.assets);
    let runs: Vec<Value> = runs.collect();
    json!({ "blocks_of_each_kind": blocks, "assets": assets, "runs": runs, "contention": contention })
}

/// Relative time of a block between the fewest accounts, compared with one without much contention: between the
/// smallest of these numbers of accounts that is not below the number of transactions.
fn contention(results: &[(usize, usize, ByThreads<f64>)], transactions: usize) -> Option<Value> {
    let of_size = || results.iter().filter(|(_, size, _)| *size == transactions);
    let (fewest, _, contended) = of_size().min_by_key(|(accounts, ..)| *accounts)?;
    let enough = of_size().filter(|(accounts, ..)| *accounts >= transactions);
    let (many, _, free) = enough.min_by_key(|(accounts, ..)| *accounts)?;
    let ratios: ByThreads<f64> = contended.iter().map(|(threads, ms)| (*threads, ms / free[threads])).collect();
    Some(json!({
        "transactions_per_block": transactions,
        "accounts": [fewest, many],
        "time_over_none": ratios,
    }))
}

/// Median milliseconds of a block by numbers of threads, whose blocks alternate.
fn measure(options: &PaymentsOptions, accounts: usize, transactions: usize) -> ByThreads<f64> {
    let senders = accounts.max(transactions.div_ceil(OF_ONE_SENDER));
    let mut population = Population::new(senders, options.assets, false);
    let mut ledger = Ledger::new(&population.genesis()).expect("a sound genesis");
    let mut random = Dice::new(3);
    let pools = pools(&options.threads);
    let mut times: ByThreads<Vec<f64>> = ByThreads::new();
    for _ in 0..=options.blocks {
        for (threads, pool) in &pools {
            let payments = payments(&mut population, accounts, transactions, &mut random);
            let block = block(&ledger, population.sign(payments, None));
            let begun = Instant::now();
            let applied = pool.install(|| ledger.apply(&block, Signatures::Valid, &mut |_| {})).expect("applies");
            times.entry(*threads).or_default().push(begun.elapsed().as_secs_f64() * 1_000.0);
            assert!(applied.outcomes.iter().all(|outcome| outcome.refusal().is_none()), "every payment counts");
        }
    }
    times.into_iter().map(|(threads, times)| (threads, median(times[1..].to_vec()))).collect()
}

pub(crate) fn payments(
    population: &mut Population,
    accounts: usize,
    transactions: usize,
    random: &mut Dice,
) -> Vec<crate::population::Unsigned> {
    let senders = population.len() as u64;
    let mut payments = Vec::with_capacity(transactions);
    while payments.len() < transactions {
        let (from, to) = (random.below(senders) as usize, random.below(accounts as u64) as usize);
        if from != to && population.may_act(from) {
            let (to, asset) = (population.address(to), population.asset(from));
            payments.push(population.act(from, Operation::Pay { to, asset, amount: random.below(1_000) + 1 }));
        }
    }
    payments
}
