//! The worst Ethereum transactions within a block's gas: nanoseconds for a unit of gas, found by search, and blocks
//! whose transactions conflict.
//!
//! A program repeats a few opcodes, or calls a precompile or a reserved address, until a transaction's gas is used up.
//! The search draws the kind of program and the size of its data, and climbs from the slowest known program. The gas
//! of a block should be chosen by the worst result.
//!
//! Blocks of conflicts run sequentially and by Block-STM on two threads: a chain in which every transaction reads
//! what the one before wrote, one slot that all write, slots that nobody has read before, and nonces in the wrong
//! order. An offer that contracts place pays in advance for the batches that it meets, as a native one does.

mod kernels;

use std::time::Instant;

use kernels::{KERNELS, Kernel};
use ledger::contracts::ethereum::{Bytes, TxKind, U256};
use ledger::contracts::{EvmJob, EvmOutcome, EvmProgram, evm_workers, parallel_tuning};
use serde_json::{Value, json};

use crate::evm::{EvmFixture, Load};
use ::clearing::workload::Seeded;

/// Gas of a transaction in the search: the maximum that one may declare.
const GAS: u64 = 1 << 24;
/// Default gas of a block, for which the worst time is reported.
const BLOCK_GAS: f64 = 120e6;
/// Maximum bytes that a program works on.
const SIZE: usize = 8_192;
/// Transactions of a block of conflicts.
const CONFLICTS: usize = 400;

/// Code that copies its input into memory and repeats a kernel until its gas is used up.
fn program(kernel: &[u8]) -> Vec<u8> {
    let jump = [0x60, 4, 0x56];
    [&[0x36, 0x5f, 0x5f, 0x37, 0x5b], kernel, &jump].concat()
}

/// The slowest gas of this machine, found in about a second; for a search see `walras bench hostile`.
#[derive(Clone, Copy, Debug)]
pub struct SlowGas {
    /// What the program does that takes longest.
    pub program: &'static str,
    /// Nanoseconds for a unit of gas, on one thread.
    pub ns: f64,
}

/// Measures every program at two sizes, and the slowest ones again, because other work may have disturbed them.
pub fn slowest_gas() -> SlowGas {
    const QUICK: u64 = 1 << 20;
    let time = |(at, size): (usize, usize)| measure(KERNELS[at].1, size, QUICK).0;
    let all = (0..KERNELS.len()).flat_map(|at| [32, 1_024].map(|size| (at, size)));
    let mut timed: Vec<(f64, (usize, usize))> = all.map(|one| (time(one), one)).collect();
    timed.sort_by(|a, b| b.0.total_cmp(&a.0));
    let again = timed.iter().take(8).map(|(first, one)| (first.min(time(*one)).min(time(*one)), one.0));
    let (ns, at) = again.max_by(|a, b| a.0.total_cmp(&b.0)).expect("there are programs");
    SlowGas { program: KERNELS[at].0, ns }
}

/// Nanoseconds for a unit of gas, and the gas, of a transaction that declares `most`.
fn measure(kernel: Kernel, size: usize, most: u64) -> (f64, u64) {
    let (body, input) = kernel(size);
    let mut fixture = EvmFixture::new(1);
    let target = fixture.place(program(&body));
    fixture.fund(target, 1 << 62);
    let job = fixture.job(0, TxKind::Call(target), input.into(), 0, most);
    let load = fixture.load(vec![job]);
    let program = EvmProgram { state: load.state, jobs: load.jobs };
    let begun = Instant::now();
    let block = program.execute_sequentially();
    let time = begun.elapsed().as_secs_f64() * 1e9;
    let gas = gas_of(&block.outcomes);
    (time / gas as f64, gas)
}

fn gas_of(outcomes: &[EvmOutcome]) -> u64 {
    let gas = |outcome: &EvmOutcome| match outcome {
        EvmOutcome::Executed(execution) => execution.gas_used,
        EvmOutcome::Skipped(_) => 0,
    };
    outcomes.iter().map(gas).sum()
}

/// The slowest programs that `tries` attempts find, by kind; `say` is called with each that is slower than all
/// before.
fn search(tries: usize, seed: u64, say: &mut (dyn FnMut(&str) + Send)) -> Value {
    let mut random = Seeded::new(seed);
    let mut best = vec![(0.0f64, 0usize, 0u64); KERNELS.len()];
    let mut worst = 0.0f64;
    for attempt in 0..tries.max(KERNELS.len()) {
        let slowest = (0..KERNELS.len()).max_by(|a, b| best[*a].0.total_cmp(&best[*b].0)).expect("some");
        let (at, size) = match attempt {
            _ if attempt < KERNELS.len() => (attempt, 32),
            _ if random.below(2) == 0 => (slowest, (best[slowest].1 as f64 * random.between(0.5, 2.0)) as usize),
            _ => (random.below(KERNELS.len() as u64) as usize, 1 << random.below(14)),
        };
        let size = size.clamp(1, SIZE);
        let (name, kernel) = KERNELS[at];
        let (time, gas) = measure(kernel, size, GAS);
        if time > best[at].0 {
            best[at] = (time, size, gas);
        }
        if time > worst {
            worst = time;
            say(&format!("{name} of {size} bytes: {time:.2} ns for a unit of gas"));
        }
    }
    let row = |((name, _), (time, size, gas)): (&(&str, Kernel), &(f64, usize, u64))| {
        let seconds = time * BLOCK_GAS / 1e9;
        json!({ "program": name, "size": size, "gas": gas, "ns_per_gas": time, "block_seconds": seconds })
    };
    let rows: Vec<Value> = KERNELS.iter().zip(&best).map(row).collect();
    json!({ "worst_ns_per_gas": worst, "worst_block_seconds": worst * BLOCK_GAS / 1e9, "programs": rows })
}

/// Reads the slot in the input's first word, adds one, and stores it in the slot in its second word.
const MOVES: &[u8] = &[0x5f, 0x35, 0x54, 0x60, 1, 0x01, 0x60, 32, 0x35, 0x55, 0x00];
/// Reads a hundred slots, starting from the one in the input.
const READS: &[u8] = &[
    0x60, 100, 0x5f, 0x35, 0x5b, 0x80, 0x54, 0x50, 0x60, 1, 0x01, 0x90, 0x60, 1, 0x90, 0x03, 0x90, 0x81, 0x60, 4, 0x57,
    0x00,
];

fn words(values: [usize; 2]) -> Bytes {
    values.map(|value| U256::from(value).to_be_bytes::<32>()).concat().into()
}

fn conflicts(name: &str) -> Load {
    let mut fixture = EvmFixture::new(CONFLICTS);
    let target = fixture.place(if name == "cold slots" { READS } else { MOVES }.to_vec());
    let mut jobs: Vec<EvmJob> = (0..CONFLICTS)
        .map(|at| {
            let (from, data) = match name {
                "abort chain" => (at, words([at, at + 1])),
                "hot slot" => (at, words([0, 0])),
                "cold slots" => (at, words([at * 100, 0])),
                _ => (0, words([at, at])),
            };
            fixture.job(from as u64, TxKind::Call(target), data, 0, 1_000_000)
        })
        .collect();
    if name == "nonce storm" {
        jobs.reverse();
    }
    fixture.load(jobs)
}

/// Blocks of conflicts, sequentially and on two threads: microseconds for a transaction.
fn conflict_row(name: &str) -> Value {
    let load = conflicts(name);
    let clone = || EvmProgram { state: load.state.clone(), jobs: load.jobs.clone() };
    let mut workers = evm_workers(2);
    let mut times = [f64::MAX; 2];
    for _ in 0..5 {
        let begun = Instant::now();
        let expected = clone().execute_sequentially();
        times[0] = times[0].min(begun.elapsed().as_secs_f64());
        let program = clone();
        let begun = Instant::now();
        let (found, ..) = program.execute(&mut workers, &parallel_tuning());
        times[1] = times[1].min(begun.elapsed().as_secs_f64());
        assert_eq!(found, expected, "{name}");
    }
    let [alone, together] = times.map(|time| time * 1e6 / CONFLICTS as f64);
    json!({ "block": name, "us_sequential": alone, "us_two_threads": together, "times_sequential": alone / together })
}

/// Runs everything; `say` is called with each step.
pub fn run(tries: usize, seed: u64, say: &mut (dyn FnMut(&str) + Send)) -> Value {
    say("the slowest gas");
    let gas = search(tries, seed, say);
    say("blocks of conflicts");
    let conflicts: Vec<Value> = ["abort chain", "hot slot", "cold slots", "nonce storm"].map(conflict_row).into();
    json!({ "gas": gas, "conflicts": conflicts })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every program does what its name says until its gas is used up, or nearly so; none ends at once.
    #[test]
    fn programs_use_up_their_gas() {
        for (name, kernel) in KERNELS {
            let (body, input) = kernel(64);
            let mut fixture = EvmFixture::new(1);
            let target = fixture.place(program(&body));
            fixture.fund(target, 1 << 62);
            let job = fixture.job(0, TxKind::Call(target), input.into(), 0, 500_000);
            let load = fixture.load(vec![job]);
            let block = EvmProgram { state: load.state, jobs: load.jobs }.execute_sequentially();
            assert!(gas_of(&block.outcomes) > 490_000, "{name}");
        }
    }

    #[test]
    fn the_slowest_gas_has_a_name_and_a_time() {
        let slowest = slowest_gas();
        assert!(slowest.ns > 0.0 && KERNELS.iter().any(|(name, _)| *name == slowest.program), "{slowest:?}");
    }

    #[test]
    fn conflicts_come_to_the_same_in_parallel() {
        for name in ["abort chain", "hot slot", "cold slots", "nonce storm"] {
            let row = conflict_row(name);
            assert!(row["us_sequential"].as_f64().expect("a time") > 0.0, "{name}");
        }
        let load = conflicts("abort chain");
        let block = EvmProgram { state: load.state.clone(), jobs: load.jobs.clone() }.execute_sequentially();
        assert_eq!(block.writes.len(), 2 * CONFLICTS, "every sender, and every slot of the chain");
    }
}
