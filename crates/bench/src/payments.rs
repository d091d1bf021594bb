//! Blocks of payments of one asset only, between few accounts and between many (SPEEDEX figure 7).
//!
//! Payments go between two random accounts. A block holds at most 50 transactions of one sender, because the ledger
//! accepts 64 numbers ahead. If a block needs more senders than there are accounts, other accounts send and these
//! accounts receive: with two accounts, every transaction pays one of them. Times are of applying the block,
//! including digests of the changes, without tries.

use std::time::Instant;

use ledger::{Ledger, Signatures};
use primitives::Operation;
use serde_json::{Value, json};

use crate::population::{Population, block};
use crate::scaling::{amdahl, median};
use ::clearing::workload::Seeded;

/// What to measure.
#[derive(Clone, Debug)]
pub struct PaymentsOptions {
    /// Numbers of accounts.
    pub accounts: Vec<usize>,
    /// Numbers of transactions in a block.
    pub transactions: Vec<usize>,
    /// Measured blocks of each kind.
    pub blocks: usize,
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
            results.push((accounts, transactions, measure(accounts, transactions, options.blocks)));
        }
    }
    let contention: Vec<Value> = options.transactions.iter().filter_map(|size| contention(&results, *size)).collect();
    let runs = results.iter().map(|(accounts, transactions, [one, two])| {
        let per_second = |ms: f64| (*transactions as f64 * 1_000.0 / ms).round();
        json!({
            "accounts": accounts,
            "transactions_per_block": transactions,
            "transactions_per_second": { "1": per_second(*one), "2": per_second(*two) },
            "block_ms": { "1": one, "2": two },
            "amdahl": amdahl(*one, *two),
        })
    });
    json!({ "blocks_of_each_kind": options.blocks, "runs": runs.collect::<Vec<_>>(), "contention": contention })
}

/// Relative time of a block between the fewest accounts, compared with one without much contention: between the
/// smallest of these numbers of accounts that is not below the number of transactions.
fn contention(results: &[(usize, usize, [f64; 2])], transactions: usize) -> Option<Value> {
    let of_size = || results.iter().filter(|(_, size, _)| *size == transactions);
    let (fewest, _, contended) = of_size().min_by_key(|(accounts, ..)| *accounts)?;
    let enough = of_size().filter(|(accounts, ..)| *accounts >= transactions);
    let (many, _, free) = enough.min_by_key(|(accounts, ..)| *accounts)?;
    Some(json!({
        "transactions_per_block": transactions,
        "accounts": [fewest, many],
        "time_over_none": { "1": contended[0] / free[0], "2": contended[1] / free[1] },
    }))
}

/// Median milliseconds of a block on one and on two threads, whose blocks alternate.
fn measure(accounts: usize, transactions: usize, blocks: usize) -> [f64; 2] {
    let senders = accounts.max(transactions.div_ceil(OF_ONE_SENDER));
    let mut population = Population::new(senders, 1, false);
    let mut ledger = Ledger::new(&population.genesis()).expect("a sound genesis");
    let mut random = Seeded::new(3);
    let pools = [1, 2].map(|n| rayon::ThreadPoolBuilder::new().num_threads(n).build().expect("threads"));
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..=blocks {
        for (pool, times) in pools.iter().zip(&mut times) {
            let payments = payments(&mut population, accounts, transactions, &mut random);
            let block = block(&ledger, population.sign(payments, None));
            let begun = Instant::now();
            let applied = pool.install(|| ledger.apply(&block, Signatures::Valid, &mut |_| {})).expect("applies");
            times.push(begun.elapsed().as_secs_f64() * 1_000.0);
            assert!(applied.outcomes.iter().all(|outcome| outcome.refusal().is_none()), "every payment counts");
        }
    }
    times.map(|times| median(times[1..].to_vec()))
}

fn payments(
    population: &mut Population,
    accounts: usize,
    transactions: usize,
    random: &mut Seeded,
) -> Vec<crate::population::Unsigned> {
    let senders = population.len() as u64;
    let mut payments = Vec::with_capacity(transactions);
    while payments.len() < transactions {
        let (from, to) = (random.below(senders) as usize, random.below(accounts as u64) as usize);
        if from != to && population.may_act(from) {
            let (to, asset) = (population.address(to), population.asset(0));
            payments.push(population.act(from, Operation::Pay { to, asset, amount: random.below(1_000) + 1 }));
        }
    }
    payments
}
