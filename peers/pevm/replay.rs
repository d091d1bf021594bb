//! Replays a block that `walras-lab bench evm --flow` wrote with pevm, and with its own sequential loop over revm.
//! usage: replay FILE ROUNDS THREADS...

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pevm::chain::PevmEthereum;
use pevm::{BlockHashes, Bytecodes, ChainState, EvmAccount, InMemoryStorage, Pevm, PevmResult, execute_revm_sequential};
use revm::bytecode::Bytecode;
use revm::context::{BlockEnv, TransactTo, TxEnv};
use revm::primitives::hardfork::SpecId;
use revm::primitives::{B256, Bytes, KECCAK_EMPTY, U256};

/// Each way runs repeatedly for this long in each round, and the best block counts, as in `walras-lab bench evm`.
const SETTLING: Duration = Duration::from_millis(300);

struct Load {
    block: BlockEnv,
    storage: InMemoryStorage,
    transactions: Vec<TxEnv>,
}

fn field<T: std::str::FromStr>(text: &str) -> T {
    text.parse().ok().unwrap_or_else(|| panic!("{text} is no {}", std::any::type_name::<T>()))
}

fn read(path: &str) -> Load {
    let (mut block, mut transactions) = (BlockEnv::default(), Vec::new());
    let (mut state, mut codes) = (ChainState::default(), Bytecodes::default());
    for line in std::fs::read_to_string(path).expect("a file of walras-lab bench evm --flow").lines() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["block", number, time, fee, limit, proposer] => {
                (block.number, block.timestamp) = (field(number), field(time));
                (block.basefee, block.gas_limit, block.beneficiary) = (field(fee), field(limit), field(proposer));
                block.prevrandao = Some(B256::ZERO);
            }
            ["code", hash, code] => {
                codes.insert(field(hash), Bytecode::new_raw(field::<Bytes>(code)).into());
            }
            ["account", address, nonce, balance, hash] => {
                let hash: B256 = field(hash);
                let account: &mut EvmAccount = state.entry(field(address)).or_default();
                (account.nonce, account.balance) = (field(nonce), field(balance));
                account.code_hash = (hash != KECCAK_EMPTY && hash != B256::ZERO).then_some(hash);
            }
            ["slot", address, key, value] => {
                state.entry(field(address)).or_default().storage.insert(field::<U256>(key), field(value));
            }
            ["call", caller, nonce, to, value, limit, price, data] => transactions.push(TxEnv {
                caller: field(caller),
                nonce: field(nonce),
                kind: TransactTo::Call(field(to)),
                value: field(value),
                gas_limit: field(limit),
                gas_price: field(price),
                data: field::<Bytes>(data),
                chain_id: Some(1),
                ..TxEnv::default()
            }),
            _ => panic!("unknown line: {line}"),
        }
    }
    // It credits the proposer, whose account must exist.
    state.entry(block.beneficiary).or_default();
    Load { block, storage: InMemoryStorage::new(state, Arc::new(codes), Arc::new(BlockHashes::default())), transactions }
}

/// The gas of all transactions, which must have succeeded.
fn gas(results: PevmResult<PevmEthereum>) -> u64 {
    let results = results.expect("the block executes");
    assert!(results.iter().all(|result| result.receipt.status.coerce_status()), "a transaction failed");
    results.last().map_or(0, |result| result.receipt.cumulative_gas_used)
}

/// Seconds of all threads of this process.
fn processor() -> f64 {
    let tasks = std::fs::read_to_string("/proc/self/stat").expect("Linux provides it");
    let fields: Vec<&str> = tasks.rsplit(')').next().expect("text").split_whitespace().collect();
    (field::<f64>(fields[11]) + field::<f64>(fields[12])) / 100.0
}

/// Microseconds of the best block, and processor time of a block in microseconds.
fn best_of(mut block: impl FnMut()) -> (f64, f64) {
    let (begun, before, mut best, mut blocks) = (Instant::now(), processor(), f64::MAX, 0u32);
    while begun.elapsed() < SETTLING || blocks == 0 {
        let one = Instant::now();
        block();
        best = best.min(one.elapsed().as_secs_f64() * 1e6);
        blocks += 1;
    }
    (best, (processor() - before) * 1e6 / f64::from(blocks))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (path, rounds) = (&arguments[0], field::<usize>(&arguments[1]));
    let threads: Vec<usize> = arguments[2..].iter().map(|text| field(text)).collect();
    let load = read(path);
    let (chain, spec, each) = (PevmEthereum::mainnet(), SpecId::OSAKA, load.transactions.len() as f64);
    let sequential = || {
        let transactions = load.transactions.clone();
        execute_revm_sequential(&chain, &load.storage, spec, load.block.clone(), transactions)
    };
    let used = gas(sequential());
    let mut pevm = Pevm::default();
    let names = std::iter::once("sequential".into()).chain(threads.iter().map(usize::to_string));
    let mut rows: Vec<(String, Vec<f64>, Vec<f64>)> = names.map(|name| (name, vec![], vec![])).collect();
    for _ in 0..rounds {
        for (place, (_, times, processors)) in rows.iter_mut().enumerate() {
            let (time, spent) = best_of(|| match place.checked_sub(1) {
                None => assert_eq!(gas(sequential()), used),
                Some(at) => {
                    let level = NonZeroUsize::new(threads[at]).expect("at least one thread");
                    let (block, transactions) = (load.block.clone(), load.transactions.clone());
                    let results = pevm.execute_revm_parallel(&chain, &load.storage, spec, block, transactions, level);
                    assert_eq!(gas(results), used, "gas equals that of the loop");
                }
            });
            times.push(time / each);
            processors.push(spent / each);
        }
    }
    let rows: Vec<String> = rows
        .into_iter()
        .map(|(name, times, spent)| {
            format!("\"{name}\":{{\"us\":{:.3},\"processor_us\":{:.3}}}", median(times), median(spent))
        })
        .collect();
    println!("{{\"gas_per_transaction\":{},{}}}", used as f64 / each, rows.join(","));
}
