//! The worst Ethereum transactions within a block's gas: nanoseconds for a unit of gas, found by search, and blocks
//! whose transactions conflict.
//!
//! The programs are those of [`gas`]. The search draws the kind of program and the size of its data, and climbs from
//! the slowest known program. The gas of a block should be chosen by the worst result.
//!
//! Blocks of conflicts run sequentially and by Block-STM on two threads: a chain in which every transaction reads
//! what the one before wrote, one slot that all write, slots that nobody has read before, and nonces in the wrong
//! order. An offer that contracts place pays in advance for the batches that it meets, as a native one does.

use std::time::Instant;

use kernel::Dice;
use ledger::contracts::ethereum::{Bytes, TxKind, U256};
use ledger::contracts::{EvmJob, EvmProgram, evm_tuning, evm_workers, parallel_tuning};
use serde_json::{Value, json};

use crate::scaling::median;
use gas::{EvmFixture, KERNELS, Kernel, Load, measure};

/// Gas of a transaction in the search: the maximum that one may declare.
const GAS: u64 = 1 << 24;
/// Default gas of a block, for which the worst time is reported.
const BLOCK_GAS: f64 = 120e6;
/// Maximum bytes that a program works on.
const SIZE: usize = 8_192;
/// Transactions of a block of conflicts.
const CONFLICTS: usize = 400;

/// The slowest programs that `tries` attempts find, by kind; `say` is called with each that is slower than all
/// before.
fn search(tries: usize, seed: u64, say: &mut (dyn FnMut(&str) + Send)) -> Value {
    let mut random = Dice::new(seed);
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

/// Rounds of a block of conflicts; medians are told.
const ROUNDS: usize = 15;

/// Blocks of conflicts, microseconds for a transaction: sequentially, and on two threads as a ledger runs them and
/// always in parallel.
fn conflict_row(name: &str) -> Value {
    let load = conflicts(name);
    let clone = || EvmProgram { state: load.state.clone(), jobs: load.jobs.clone() };
    let tunings = [evm_tuning(&load.jobs), parallel_tuning()];
    let mut workers = tunings.map(|_| evm_workers(2));
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let expected = clone().execute_sequentially();
        times[0].push(begun.elapsed().as_secs_f64());
        for (at, (tuning, workers)) in tunings.iter().zip(&mut workers).enumerate() {
            let program = clone();
            let begun = Instant::now();
            let (found, ..) = program.execute(workers, tuning);
            times[1 + at].push(begun.elapsed().as_secs_f64());
            assert_eq!(found, expected, "{name}");
        }
    }
    let [alone, used, parallel] = times.map(|times| median(times) * 1e6 / CONFLICTS as f64);
    json!({
        "block": name,
        "us_sequential": alone,
        "us_two_threads": used,
        "times_sequential": alone / used,
        "always_parallel_times_sequential": alone / parallel,
    })
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
