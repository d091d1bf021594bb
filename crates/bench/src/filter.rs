//! The deterministic filter alone (SPEEDEX §8, appendix I): blocks of the paper's workload, a fifth of them copies.
//! Some copies reuse a sequence number for another operation, and some accounts overdraw, so all of their
//! transactions are removed.

use std::time::Instant;

use ledger::{Ledger, Signatures};
use primitives::{AssetId, Operation};
use serde_json::{Value, json};

use crate::population::{Population, block};
use crate::scaling::{amdahl, median};
use crate::trading::Trading;
use ::clearing::workload::Seeded;

/// What to measure.
#[derive(Clone, Debug)]
pub struct FilterOptions {
    /// Numbers of accounts.
    pub accounts: Vec<usize>,
    /// Numbers of transactions in a block.
    pub transactions: Vec<usize>,
    /// Measured runs of each kind.
    pub runs: usize,
    /// Assets.
    pub assets: u32,
}

/// Every n-th transaction is a copy of another.
const COPIES: usize = 5;
/// Every n-th copy is changed, so that it conflicts with the original.
const CONFLICTS: usize = 100;
/// Every n-th transaction asks for more than the account has.
const OVERDRAWN: usize = 3_000;

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
            results.push(measure(&ledger, &mut trading, transactions, options.runs));
        }
    }
    json!({ "assets": options.assets, "runs": results })
}

fn measure(ledger: &Ledger, trading: &mut Trading, transactions: usize, runs: usize) -> Value {
    let pools = [1, 2].map(|n| rayon::ThreadPoolBuilder::new().num_threads(n).build().expect("threads"));
    let mut unsigned = trading.block(ledger, transactions - transactions / COPIES);
    for transaction in unsigned.iter_mut().step_by(OVERDRAWN) {
        if let Operation::CreateOffer { amount, .. } = &mut transaction.body.operation {
            *amount = i64::MAX as u64;
        }
    }
    let mut native = trading.population.sign(unsigned, None);
    let mut random = Seeded::new(11);
    for number in 0..transactions / COPIES {
        let mut copy = native[random.below(native.len() as u64) as usize].clone();
        if number % CONFLICTS == 0 {
            copy.body.operation = Operation::Burn { asset: AssetId(0), amount: 1 };
        }
        native.push(copy);
    }
    let block = block(ledger, native);
    let mut times = [Vec::new(), Vec::new()];
    let mut removed = 0;
    for _ in 0..=runs {
        for (pool, times) in pools.iter().zip(&mut times) {
            let begun = Instant::now();
            let refusals = pool.install(|| ledger.judge(&block, Signatures::Valid));
            times.push(begun.elapsed().as_secs_f64() * 1_000.0);
            removed = refusals.iter().flatten().count();
        }
    }
    let [one, two] = times.map(|times| median(times[1..].to_vec()));
    let per_second = |ms: f64| (transactions as f64 * 1_000.0 / ms).round();
    json!({
        "accounts": ledger.accounts().len(),
        "transactions_per_block": transactions,
        "removed": removed,
        "transactions_per_second": { "1": per_second(one), "2": per_second(two) },
        "ms": { "1": one, "2": two },
        "amdahl": amdahl(one, two),
    })
}
