//! The contract phase's executor compared with the best sequential loop over revm: payments, transfers of a token,
//! swaps in pools, and one slot that all transactions write.
//!
//! In each round every way of running a block runs for a while, one after another, so a ratio compares measurements
//! within seconds. The medians over the rounds are reported. The *sequential* loop keeps one EVM, executes a
//! transaction, and writes its changes into maps. It does nothing else; neither way credits a fee to a proposer.
//!
//! `parallel` says of each way how many of a block's transactions the last block ran by the parallel machinery. With
//! none, more threads only pay for their choice not to use them. `processor_us_per_transaction` is the processor time
//! that all threads spent on it. `written_in_1` and `written_in_4` are the executor including the writing of its
//! results: in one run over the superblock, and sub-block by sub-block.

use std::collections::BTreeMap;
use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gas::{EvmFixture, Load, Maps, RICH, SharedMaps, account};
use kernel::Dice;
use ledger::contracts::ethereum::{Address, Bytes, TxKind, U256, keccak256};
use ledger::contracts::{EvmJob, EvmOutcome, EvmProgram, TxEnv, evm_tuning, evm_workers, parallel_tuning};
use revm::context::{Context, ContextSetters, ContextTr, JournalTr};
use revm::handler::{EvmTr, ExecuteEvm, MainBuilder, MainContext};
use serde_json::{Value, json};
use stm::{Tuning, Workers};

use crate::consensus::processor;
use crate::measurement::{BenchResult, BenchShown, BenchSteps, Measurement, count, of_file, threads};
use crate::scaling::median;

/// What to measure.
#[derive(Clone, Debug, clap::Args)]
pub struct EvmOptions {
    /// Numbers of threads.
    #[arg(long, value_delimiter = ',', default_values_t = [1usize, 2], value_parser = threads())]
    pub threads: Vec<usize>,
    /// Transactions in a block.
    #[arg(long, default_value_t = 10_000, value_parser = count(1..))]
    pub transactions: usize,
    /// Accounts that send them.
    #[arg(long, default_value_t = 10_000, value_parser = count(2..))]
    pub accounts: usize,
    /// Pools that swaps use.
    #[arg(long, default_value_t = 100, value_parser = count(1..))]
    pub pools: usize,
    /// Measured rounds; medians are reported.
    #[arg(long, default_value_t = 5, value_parser = count(1..))]
    pub rounds: usize,
    /// Names of loads, out of [`EvmOptions::LOADS`].
    #[arg(skip = EvmOptions::LOADS.to_vec())]
    pub loads: Vec<&'static str>,
}

impl EvmOptions {
    /// Payments in ether, transfers of a token, swaps in pools, and one slot that all transactions write.
    pub const LOADS: [&'static str; 4] = ["payments", "token_transfers", "swaps", "hot_slot"];
}

/// Contracts: payments, transfers of a token, swaps and a hot slot, compared with the best sequential loop over revm.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  walras-lab bench evm --json
  walras-lab bench evm --threads 1,2,16 --pools 1000")]
pub struct EvmArgs {
    #[command(flatten)]
    options: EvmOptions,
    /// Write the blocks and the states before them into this folder for another executor, and measure nothing.
    #[arg(long)]
    flow: Option<PathBuf>,
}

impl Measurement for EvmArgs {
    fn measured(self, say: &mut BenchSteps) -> BenchResult {
        let Some(folder) = self.flow else { return Ok(BenchShown::Figures(run(&self.options, say))) };
        write_loads(&self.options, &folder).map_err(of_file(&folder))?;
        Ok(BenchShown::Files(vec![folder]))
    }
}

const TOKEN: &str = include_str!("../contracts/Token.hex");
const POOL: &str = include_str!("../contracts/Pool.hex");
const EXCHANGE: &str = include_str!("../contracts/Exchange.hex");
/// Number of sub-blocks that a superblock is cut into, to be executed and written one by one.
const SUB_BLOCKS: usize = 4;
/// Each way runs repeatedly for this long in each round, and the best block counts.
const SETTLING: Duration = Duration::from_millis(300);

/// The input of a call.
fn input(signature: &str, arguments: &[U256]) -> Bytes {
    let mut data = keccak256(signature)[..4].to_vec();
    arguments.iter().for_each(|argument| data.extend_from_slice(&argument.to_be_bytes::<32>()));
    data.into()
}

fn word(address: Address) -> U256 {
    U256::from_be_bytes(address.into_word().0)
}

fn two(random: &mut Dice, accounts: usize) -> (u64, u64) {
    let from = random.below(accounts as u64);
    (from, (from + 1 + random.below(accounts as u64 - 1)) % accounts as u64)
}

fn payments(options: &EvmOptions) -> Load {
    let (mut fixture, mut random) = (EvmFixture::new(options.accounts), Dice::new(1));
    let jobs = (0..options.transactions)
        .map(|_| {
            let (from, to) = two(&mut random, options.accounts);
            fixture.job(from, TxKind::Call(account(to)), Bytes::new(), 5, 21_000)
        })
        .collect();
    fixture.load(jobs)
}

fn token(options: &EvmOptions) -> Load {
    let (mut fixture, mut random) = (EvmFixture::new(options.accounts), Dice::new(2));
    let token = fixture.create(TOKEN, &[]);
    let mint = input("mint(uint256)", &[U256::from(RICH)]);
    let jobs = (0..options.accounts as u64)
        .map(|one| fixture.job(one, TxKind::Call(token), mint.clone(), 0, 200_000))
        .collect();
    fixture.settle(jobs);
    let jobs = (0..options.transactions)
        .map(|_| {
            let (from, to) = two(&mut random, options.accounts);
            let data = input("transfer(address,uint256)", &[word(account(to)), U256::from(3)]);
            fixture.job(from, TxKind::Call(token), data, 0, 100_000)
        })
        .collect();
    fixture.load(jobs)
}

fn swaps(options: &EvmOptions) -> Load {
    let (mut fixture, mut random) = (EvmFixture::new(options.accounts), Dice::new(3));
    let mint = input("mint(uint256)", &[U256::from(RICH)]);
    let pools: Vec<Address> = (0..options.pools)
        .map(|_| {
            let tokens = [fixture.create(TOKEN, &[]), fixture.create(TOKEN, &[])];
            let pool = fixture.create(POOL, &tokens);
            let fund = input("transfer(address,uint256)", &[word(pool), U256::from(RICH / 2)]);
            let approve = input("approve(address,uint256)", &[word(pool), U256::MAX >> 1]);
            let mut jobs = Vec::new();
            for token in tokens {
                jobs.push(fixture.job(0, TxKind::Call(token), mint.clone(), 0, 200_000));
                jobs.push(fixture.job(0, TxKind::Call(token), fund.clone(), 0, 200_000));
            }
            jobs.push(fixture.job(0, TxKind::Call(pool), input("sync()", &[]), 0, 200_000));
            for trader in 0..options.accounts.min(TRADERS) as u64 {
                for token in tokens {
                    jobs.push(fixture.job(trader, TxKind::Call(token), mint.clone(), 0, 200_000));
                    jobs.push(fixture.job(trader, TxKind::Call(token), approve.clone(), 0, 200_000));
                }
            }
            fixture.settle(jobs);
            pool
        })
        .collect();
    let jobs = (0..options.transactions)
        .map(|_| {
            let trader = random.below(options.accounts.min(TRADERS) as u64);
            let pool = pools[random.below(pools.len() as u64) as usize];
            let arguments = [U256::from(random.below(2)), U256::from(1_000 + random.below(1_000)), U256::ZERO];
            fixture.job(trader, TxKind::Call(pool), input("swap(bool,uint256,uint256)", &arguments), 0, 400_000)
        })
        .collect();
    fixture.load(jobs)
}

/// Accounts that hold tokens of every pool.
const TRADERS: usize = 200;

fn hot_slot(options: &EvmOptions) -> Load {
    let (mut fixture, mut random) = (EvmFixture::new(options.accounts), Dice::new(4));
    let exchange = fixture.create(EXCHANGE, &[]);
    let data = input("buyApple()", &[]);
    let jobs = (0..options.transactions)
        .map(|_| fixture.job(random.below(options.accounts as u64), TxKind::Call(exchange), data.clone(), 0, 100_000))
        .collect();
    fixture.load(jobs)
}

fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let begun = Instant::now();
    let result = work();
    (begun.elapsed().as_secs_f64() * 1e6, result)
}

/// The loop over one EVM; returns microseconds and the gas of all transactions.
fn sequential(load: &Load) -> (f64, u64) {
    let context = &load.jobs[0].context;
    let built = Context::mainnet().with_db(Maps::clone(&load.state.0)).with_block(context.block.clone());
    let mut evm = built.with_cfg(context.rules.clone()).build_mainnet();
    timed(|| {
        let mut gas = 0;
        let mut results = Vec::with_capacity(load.jobs.len());
        for job in &load.jobs {
            evm.set_tx(TxEnv::clone(&job.transaction));
            let result = evm.replay().expect("the workload is sound");
            gas += result.result.tx_gas_used();
            results.push(result.result);
            let maps = evm.ctx().journal_mut().db_mut();
            for (address, account) in result.state.into_iter().filter(|(_, account)| account.is_touched()) {
                for (slot, value) in account.changed_storage_slots() {
                    maps.slots.insert((address, *slot), value.present_value);
                }
                maps.accounts.insert(address, account.info);
            }
        }
        black_box(results);
        gas
    })
}

/// A block by the executor; returns microseconds and the gas of all transactions.
fn block(workers: &mut Workers, load: &Load, tuning: &Tuning) -> (f64, u64, stm::Tally) {
    let program = EvmProgram { state: load.state.clone(), jobs: load.jobs.clone() };
    let (time, (block, tally)) = timed(|| {
        let (block, _, tally) = program.execute(workers, tuning);
        (block, tally)
    });
    (time, block.outcomes.iter().map(gas_of).sum(), tally)
}

fn gas_of(outcome: &EvmOutcome) -> u64 {
    match outcome {
        EvmOutcome::Executed(execution) => execution.gas_used,
        EvmOutcome::Skipped(why) => panic!("a transaction of the workload was skipped: {why:?}"),
    }
}

/// A block cut into `parts` sub-blocks, each executed and written before the next one begins, as in Smart Red Belly
/// §3.3; returns microseconds and the gas of all transactions.
fn by_sub_blocks(workers: &mut Workers, load: &Load, parts: usize) -> (f64, u64) {
    let mut maps = Maps::clone(&load.state.0);
    let lanes: Vec<Vec<EvmJob>> = load.jobs.chunks(load.jobs.len().div_ceil(parts)).map(<[_]>::to_vec).collect();
    timed(|| {
        let mut gas = 0;
        for jobs in lanes {
            let tuning = evm_tuning(&jobs);
            let (block, state, _) = EvmProgram { state: SharedMaps(Arc::new(maps)), jobs }.execute(workers, &tuning);
            maps = Arc::into_inner(state.0).expect("there is no other reference");
            maps.write(block.writes);
            gas += block.outcomes.iter().map(gas_of).sum::<u64>();
        }
        gas
    })
}

/// Processor time of all threads.
fn processor_seconds() -> f64 {
    processor().values().sum()
}

fn best_of(mut block: impl FnMut() -> f64) -> f64 {
    let begun = Instant::now();
    let mut best = block();
    while begun.elapsed() < SETTLING {
        best = best.min(block());
    }
    best
}

/// The loads that are asked for, made when it is their turn.
fn loads(options: &EvmOptions) -> impl Iterator<Item = (&'static str, Load)> {
    type Make = fn(&EvmOptions) -> Load;
    let loads: [(&str, Make); 4] =
        [("payments", payments), ("token_transfers", token), ("swaps", swaps), ("hot_slot", hot_slot)];
    loads.into_iter().filter(|(name, _)| options.loads.contains(name)).map(|(name, load)| (name, load(options)))
}

/// Writes each load into a file of this folder, for another executor. Its first line is `block NUMBER TIME BASE_FEE
/// GAS_LIMIT PROPOSER`. The state before the block follows: lines `code HASH CODE`, `account ADDRESS NONCE BALANCE
/// CODE_HASH` and `slot ADDRESS KEY VALUE`. The transactions come last, in order: `call SENDER NONCE TO VALUE GAS_LIMIT
/// GAS_PRICE DATA`.
///
/// # Errors
/// If a file cannot be written.
///
/// # Panics
/// If a transaction creates a contract: no load has such.
pub fn write_loads(options: &EvmOptions, folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for (name, load) in loads(options) {
        let mut file = BufWriter::new(File::create(folder.join(format!("{name}.txt")))?);
        let block = &load.jobs[0].context.block;
        let (number, time, fee) = (block.number, block.timestamp, block.basefee);
        writeln!(file, "block {number} {time} {fee} {} {}", block.gas_limit, block.beneficiary)?;
        let maps = &load.state.0;
        for (hash, code) in &maps.codes {
            writeln!(file, "code {hash} {}", code.original_bytes())?;
        }
        for (address, info) in &maps.accounts {
            writeln!(file, "account {address} {} {} {}", info.nonce, info.balance, info.code_hash)?;
        }
        for ((address, key), value) in &maps.slots {
            writeln!(file, "slot {address} {key} {value}")?;
        }
        for job in &load.jobs {
            let TxEnv { caller, nonce, kind, value, gas_limit, gas_price, data, .. } = &*job.transaction;
            let to = kind.to().expect("loads only call");
            writeln!(file, "call {caller} {nonce} {to} {value} {gas_limit} {gas_price} {data}")?;
        }
        file.flush()?;
    }
    Ok(())
}

/// Runs everything; `say` is called with each step.
pub fn run(options: &EvmOptions, say: &mut dyn FnMut(&str)) -> Value {
    let mut pools: Vec<Workers> = options.threads.iter().map(|&threads| evm_workers(threads)).collect();
    let mut runs = BTreeMap::new();
    for (name, load) in loads(options) {
        say(name);
        runs.insert(name, measure(&load, options.rounds, &mut pools));
    }
    let EvmOptions { transactions, accounts, pools, .. } = options;
    json!({ "transactions_per_block": transactions, "accounts": accounts, "pools": pools, "runs": runs })
}

fn measure(load: &Load, rounds: usize, pools: &mut [Workers]) -> Value {
    let each = load.jobs.len() as f64;
    let mut times: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut ratios: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut tallies: BTreeMap<String, Value> = BTreeMap::new();
    let (_, gas) = sequential(load);
    for _ in 0..rounds {
        let best = best_of(|| sequential(load).0);
        let mut note = |name: String, time: f64| {
            ratios.entry(name.clone()).or_default().push(best / time);
            times.entry(name).or_default().push(time / each);
        };
        note("sequential".into(), best);
        for workers in pools.iter_mut() {
            let threads = workers.threads();
            for (name, tuning) in [("", evm_tuning(&load.jobs)), ("_always_parallel", parallel_tuning())] {
                let name = format!("{threads}{name}");
                let (mut told, mut blocks, before) = (Value::Null, 0, processor_seconds());
                let time = best_of(|| {
                    let (time, found, tally) = block(workers, load, &tuning);
                    assert_eq!(found, gas, "gas equals that of the loop");
                    let parallel = load.jobs.len().saturating_sub(tally.sequential as usize);
                    told = json!({ "executions": tally.executions, "aborts": tally.aborts,
                                   "blocked": tally.blocked, "sequential": tally.sequential,
                                   "parallel": parallel });
                    blocks += 1;
                    time
                });
                let spent = (processor_seconds() - before) * 1e6 / (f64::from(blocks) * each);
                told["processor_us_per_transaction"] = spent.into();
                tallies.insert(name.clone(), told);
                note(name, time);
            }
            for parts in [1, SUB_BLOCKS] {
                let time = best_of(|| {
                    let (time, found) = by_sub_blocks(workers, load, parts);
                    assert_eq!(found, gas, "gas equals that of the loop");
                    time
                });
                note(format!("{threads}_written_in_{parts}"), time);
            }
        }
    }
    let medians = |values: BTreeMap<String, Vec<f64>>| -> BTreeMap<String, f64> {
        values.into_iter().map(|(name, values)| (name, median(values))).collect()
    };
    let gas_each = gas as f64 / each;
    json!({ "gas_per_transaction": gas_each, "us_per_transaction": medians(times), "times_sequential": medians(ratios),
            "threads": tallies })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_loads_have_all_transactions_and_what_they_read() {
        let loads = EvmOptions::LOADS.to_vec();
        let options = EvmOptions { threads: vec![1], transactions: 20, accounts: 10, pools: 2, rounds: 1, loads };
        let folder = tempfile::tempdir().expect("a folder");
        write_loads(&options, folder.path()).expect("files are written");
        for name in EvmOptions::LOADS {
            let text = std::fs::read_to_string(folder.path().join(format!("{name}.txt"))).expect("a file");
            let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
            let of = |kind: &str| lines.iter().filter(|line| line[0] == kind).count();
            assert_eq!((of("block"), of("call")), (1, 20), "{name}");
            let accounts: Vec<&str> = lines.iter().filter(|line| line[0] == "account").map(|line| line[1]).collect();
            let calls = lines.iter().filter(|line| line[0] == "call");
            for call in calls {
                assert_eq!(call.len(), 8, "{call:?}");
                assert!(accounts.contains(&call[1]) && accounts.contains(&call[3]), "{name}: {call:?}");
                assert_eq!(call[7] == "0x", name == "payments", "{call:?}");
            }
            assert_eq!(of("code") > 0, name != "payments");
        }
    }
}
