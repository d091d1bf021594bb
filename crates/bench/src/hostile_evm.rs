//! The worst Ethereum transactions within a block's gas: nanoseconds for a unit of gas, found by search, and blocks
//! whose transactions conflict.
//!
//! A program repeats a few opcodes, or calls a precompile, until a transaction's gas is used up. The search draws the
//! kind of program and the size of its data, and climbs from the slowest known program. The gas of a block should be
//! chosen by the worst result.
//!
//! Blocks of conflicts run sequentially and by Block-STM on two threads: a chain in which every transaction reads
//! what the one before wrote, one slot that all write, slots that nobody has read before, and nonces in the wrong
//! order. An offer that contracts place pays in advance for the batches that it meets, as a native one does.

use std::time::Instant;

use ledger::contracts::ethereum::{Bytes, TxKind, U256, keccak256};
use ledger::contracts::{EvmJob, EvmOutcome, EvmProgram, OFFERS, evm_workers, parallel_tuning, token_address};
use primitives::AssetId;
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

/// The repeated part of a program, for a number of bytes: its opcodes, and the input in memory.
type Kernel = fn(usize) -> (Vec<u8>, Vec<u8>);

const KERNELS: [(&str, Kernel); 25] = [
    ("jumps", |_| (Vec::new(), Vec::new())),
    ("mulmod", |_| (vec![0x5f, 0x19, 0x5f, 0x19, 0x5f, 0x19, 0x09, 0x50], Vec::new())),
    ("division", |_| (vec![0x60, 3, 0x5f, 0x19, 0x04, 0x50, 0x60, 7, 0x5f, 0x19, 0x07, 0x50], Vec::new())),
    ("exponents", |_| (vec![0x5f, 0x19, 0x5f, 0x19, 0x0a, 0x50], Vec::new())),
    ("keccak", |size| (with_size(size, &[], &[0x5f, 0x20, 0x50]), vec![7; size])),
    ("copies in memory", |size| (with_size(size, &[], &[0x60, 32, 0x5f, 0x5e]), vec![7; size])),
    ("logs", |size| (with_size(size, &[], &[0x5f, 0xa0]), vec![7; size])),
    ("cold slots", |_| (vec![0x5a, 0x54, 0x50], Vec::new())),
    ("new slots", |_| (vec![0x60, 1, 0x5a, 0x55], Vec::new())),
    ("slots again", |_| (vec![0x5a, 0x5f, 0x55], Vec::new())),
    ("placed offers", |_| offers("place(address,address,uint64,uint64)", &[token(1), token(0), 5_000, 5_000])),
    ("refused offers", |_| offers("place(address,address,uint64,uint64)", &[token(1), token(0), 5, 5])),
    ("offers asked for", |_| offers("amountOf(address,bytes32)", &[5, 1 << 63])),
    ("rates of the batch", |_| offers("rate(address,address)", &[token(1), token(0)])),
    ("transient slots", |_| (vec![0x60, 1, 0x5a, 0x5d], Vec::new())),
    ("cold balances", |_| (vec![0x5a, 0x31, 0x50], Vec::new())),
    ("block hashes", |_| (vec![0x5f, 0x40, 0x50], Vec::new())),
    ("creations", |_| (vec![0x5f, 0x5f, 0x5f, 0xf0, 0x50], Vec::new())),
    ("calls of itself", |_| (vec![0x5f, 0x5f, 0x5f, 0x5f, 0x5f, 0x30, 0x61, 0x02, 0x58, 0xf1, 0x50], Vec::new())),
    ("recovery", |_| calls(1, recovery())),
    ("sha256", |size| calls(2, vec![7; size])),
    ("ripemd", |size| calls(3, vec![7; size])),
    ("modexp", |size| calls(5, modexp(size))),
    ("curve multiplication", |size| calls(7, curve(size))),
    ("blake2f", |size| calls(9, blake(size))),
];

/// Opcodes around a size of two bytes on the stack.
fn with_size(size: usize, before: &[u8], after: &[u8]) -> Vec<u8> {
    let [high, low] = (size as u16).to_be_bytes();
    [before, &[0x61, high, low], after].concat()
}

/// A call of a precompile with an input.
fn calls(precompile: u8, input: Vec<u8>) -> (Vec<u8>, Vec<u8>) {
    let call = [0x5f, 0x60, precompile, 0x5a, 0xfa, 0x50];
    (with_size(input.len(), &[0x5f, 0x5f], &call), input)
}

/// A call of the offers; its arguments have at most sixteen bytes, and those of tokens begin as their addresses do.
fn offers(function: &str, arguments: &[u128]) -> (Vec<u8>, Vec<u8>) {
    let word = |argument: &u128| match argument.checked_sub(TOKEN) {
        Some(asset) => U256::from_be_slice(&token_address(AssetId(asset as u32)).0).to_be_bytes::<32>(),
        None => U256::from(*argument).to_be_bytes(),
    };
    let input = [&keccak256(function)[..4], &arguments.iter().flat_map(word).collect::<Vec<u8>>()].concat();
    let call = [&[0x5f, 0x5f, 0x73][..], &OFFERS.0, &[0x5a, 0xf1, 0x50]].concat();
    (with_size(input.len(), &[0x5f, 0x5f], &call), input)
}

/// Represents the token of an asset among arguments.
const TOKEN: u128 = 1 << 100;

fn token(asset: u128) -> u128 {
    TOKEN + asset
}

/// A hash and a signature of it.
fn recovery() -> Vec<u8> {
    let key = ledger::contracts::EthereumKey::from_seed([7; 32]).expect("a key");
    let hash = keccak256([1]);
    let signature = key.sign_hash(hash);
    let parity = U256::from(27 + u8::from(signature.v()));
    [hash.0, parity.to_be_bytes(), signature.r().to_be_bytes(), signature.s().to_be_bytes()].concat()
}

/// Base, exponent and modulus of this size.
fn modexp(size: usize) -> Vec<u8> {
    let size = size.clamp(1, 1_024);
    let length = U256::from(size).to_be_bytes::<32>();
    [&length[..], &length, &length, &vec![0xff; 3 * size]].concat()
}

/// The generator of BN254 and a scalar with this many bits.
fn curve(size: usize) -> Vec<u8> {
    let scalar = U256::MAX >> (size % 256);
    [U256::from(1), U256::from(2), scalar].map(|word| word.to_be_bytes::<32>()).concat()
}

/// This many rounds.
fn blake(size: usize) -> Vec<u8> {
    let mut input = vec![0; 213];
    input[..4].copy_from_slice(&(size as u32 * 16).to_be_bytes());
    input
}

/// Code that copies its input into memory and repeats a kernel until its gas is used up.
fn program(kernel: &[u8]) -> Vec<u8> {
    let jump = [0x60, 4, 0x56];
    [&[0x36, 0x5f, 0x5f, 0x37, 0x5b], kernel, &jump].concat()
}

/// Nanoseconds for a unit of gas, and the gas.
fn measure(kernel: Kernel, size: usize) -> (f64, u64) {
    let (body, input) = kernel(size);
    let mut fixture = EvmFixture::new(1);
    let target = fixture.place(program(&body));
    fixture.fund(target, 1 << 62);
    let job = fixture.job(0, TxKind::Call(target), input.into(), 0, GAS);
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
        let (time, gas) = measure(kernel, size);
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
