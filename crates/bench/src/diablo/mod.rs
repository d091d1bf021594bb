//! The loads of the Diablo benchmark (EuroSys 2023), with which Smart Red Belly is measured (§5), on validators in
//! this process with real sockets and disks.
//!
//! A load gives the number of contract calls that clients send in each second, as a step function of time. Clients
//! follow their plan whatever the chain does: a call is *sent* at its planned time, and its latency ends when its
//! validator publishes the block with its receipt, which is final. A call for which a validator has no room yet waits
//! at the client, and its latency still counts from the plan: nothing is dropped.
//!
//! Every sender uses one validator, as clients do, and signs in advance (at most 65,536 calls for each validator, so
//! a load of millions does not need memory for all of them). Its calls are admitted as the node's binary intake
//! admits them: each validator recovers the senders of its own clients' calls.
//!
//! The contracts are our own, written from the descriptions of Diablo's: see `contracts/`.

mod loads;

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ledger::Limits;
use ledger::contracts::ethereum::hex;
use ledger::contracts::{EthereumKey, EthereumRequest, EvmStatus, contract_address};
use node::{EthereumReject, Exchange, ExchangeError};
use primitives::{Address, TransactionId};
use rayon::prelude::*;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::TryRecvError;

use self::loads::{Plan, Program, program};
use crate::cluster::{Cluster, ClusterSettings};
use crate::consensus::wait_until;
use crate::measurement::{self, BenchEngine, BenchResult, BenchShown, BenchSteps, Measurement};
use crate::transaction_management::{in_seconds, quantiles};

/// All loads, by the names of their files.
pub const LOADS: [&str; 10] =
    ["gafam", "apple", "google", "microsoft", "amazon", "facebook", "dota", "football", "uber", "youtube"];

/// Calls that are signed in advance for each validator.
const SIGNED_AHEAD: usize = 65_536;
/// Calls that are admitted together.
const BATCH: usize = 500;
/// Time without a block after which the rest counts as lost. A block of heavy calls takes a minute on a busy machine.
const PATIENCE: Duration = Duration::from_secs(600);
/// Gas of a block: so much that the base fee does not change, as on Diablo's networks, whose gas costs nothing.
const BLOCK_GAS: u64 = 8_000_000_000;
const GWEI: u128 = 1_000_000_000;

/// What to measure.
#[derive(Clone, Debug, clap::Args)]
pub struct DiabloOptions {
    /// Names of loads, separated by commas, or all.
    #[arg(long = "workload", value_delimiter = ',', default_value = "gafam")]
    pub loads: Vec<String>,
    /// Folder with workload-NAME.yaml.
    #[arg(long, default_value = "../shared/data/diablo")]
    pub data: PathBuf,
    /// Validators.
    #[arg(long, default_value_t = 4, value_parser = measurement::validators())]
    pub validators: usize,
    /// Accounts that send.
    #[arg(long, default_value_t = 2_048, value_parser = clap::value_parser!(u64).range(1..))]
    pub senders: u64,
    /// Maximum number of calls of each load; the first ones count.
    #[arg(long, default_value_t = u64::MAX, hide_default_value = true)]
    pub most: u64,
    /// Run each load again with each measure of transaction management switched off.
    #[arg(long)]
    pub variants: bool,
    /// The rules that all validators follow.
    #[arg(skip)]
    pub rules: consensus::Rules,
}

/// The loads of the Diablo benchmark: contract calls by a plan, on validators in this process.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  walras-lab bench diablo --workload gafam --validators 4
  walras-lab bench diablo --workload gafam --variants --json     # also without each measure of transaction management
  walras-lab bench diablo --workload football,dota --most 200000 # the first calls of two larger loads
  walras-lab bench diablo --workload all --most 100000 --json")]
pub struct DiabloArgs {
    #[command(flatten)]
    options: DiabloOptions,
    /// How validators agree on blocks.
    #[arg(long, value_enum, default_value_t = BenchEngine::Dbft)]
    engine: BenchEngine,
}

impl Measurement for DiabloArgs {
    fn measured(self, say: &mut BenchSteps) -> BenchResult {
        let options = DiabloOptions { rules: self.engine.rules(), ..self.options };
        Ok(BenchShown::Figures(run(&options, say)?))
    }
}

/// The reason why a load was not run.
#[derive(Debug, thiserror::Error)]
pub enum DiabloError {
    /// There is no such file, or it cannot be read.
    #[error("{path}: {reason}; Diablo's loads are expected there (choose another folder with `--data`)")]
    Unreadable {
        /// The file.
        path: String,
        /// The reason.
        reason: String,
    },
    /// The file is not a load.
    #[error("{path}: {reason}; a load has `txs`, a map from second to calls per second")]
    Malformed {
        /// The file.
        path: String,
        /// The reason.
        reason: &'static str,
    },
    /// No load has this name.
    #[error("there is no load {0:?}; there are {known}", known = LOADS.join(", "))]
    Unknown(String),
    /// A validator failed.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// The contract was not created.
    #[error("the contract was not created within a minute")]
    NotCreated,
}

/// A call that its sender has signed.
struct Signed {
    at: Duration,
    bytes: Vec<u8>,
}

/// A call as its client observed it.
#[derive(Clone, Copy)]
struct Seen {
    sent: Duration,
    told: Duration,
    succeeded: bool,
    gas: u64,
}

/// A switch of §4.
struct Variant {
    name: &'static str,
    check_ahead: bool,
    bodies: bool,
    receipts: bool,
}

const ALL: Variant = Variant { name: "all measures", check_ahead: true, bodies: true, receipts: true };
const VARIANTS: [Variant; 3] = [
    Variant { name: "superblock at once", check_ahead: false, ..ALL },
    Variant { name: "no body cache", bodies: false, ..ALL },
    Variant { name: "no receipt cache", receipts: false, ..ALL },
];

/// Runs the loads, one after the other.
///
/// # Errors
/// [`DiabloError`].
pub fn run(options: &DiabloOptions, say: &mut dyn FnMut(&str)) -> Result<Value, DiabloError> {
    let named = options.loads.iter().map(String::as_str);
    let loads: Vec<&str> = named.flat_map(|load| if load == "all" { LOADS.to_vec() } else { vec![load] }).collect();
    let known = |load: &&str| program(load).map(|_| ()).ok_or_else(|| DiabloError::Unknown((*load).into()));
    loads.iter().try_for_each(known)?;
    let mut rows = Vec::new();
    for load in loads {
        let plan = Plan::read(&options.data, load)?;
        let variants = VARIANTS.iter().filter(|_| options.variants);
        for variant in std::iter::once(&ALL).chain(variants) {
            rows.push(measure(options, load, &plan, variant, say)?);
        }
    }
    Ok(json!({"validators": options.validators, "senders": options.senders, "loads": rows, "quoted": quoted()}))
}

/// Published figures of others, on other machines: quoted, not measured here.
fn quoted() -> Value {
    let nasdaq = [
        ("Smart Red Belly", 100),
        ("Quorum", 88),
        ("Algorand", 87),
        ("Solana", 62),
        ("Avalanche", 55),
        ("Diem", 27),
        ("Ethereum", 16),
    ];
    let rows: Vec<Value> = nasdaq.iter().map(|(chain, share)| json!({"chain": chain, "committed": share})).collect();
    json!({
        "source": "Smart Red Belly, 5.2: gafam on 200 machines in ten regions, percent committed",
        "gafam": rows,
        "smart_red_belly_average_s": 5.35,
    })
}

fn measure(
    options: &DiabloOptions,
    load: &str,
    plan: &Plan,
    variant: &Variant,
    say: &mut dyn FnMut(&str),
) -> Result<Value, DiabloError> {
    let Program { code, gas, input } = program(load).expect("checked before");
    let times: Vec<Duration> = plan.times().take(options.most as usize).collect();
    say(&format!("{load}, {}: {} calls in {} s", variant.name, times.len(), times.last().map_or(0, Duration::as_secs)));
    let keys: Vec<EthereumKey> = (0..options.senders).into_par_iter().map(key).collect();
    let directory = tempfile::tempdir().map_err(|error| ExchangeError::directory("a temporary one", error))?;
    let cluster = Cluster::start(settings(options, &keys, variant), directory.path())?;
    let others = options.validators - 1;
    wait_until(|| cluster.running().all(|node| node.status().is_some_and(|status| status.connected == others)));
    let nodes: Vec<&Exchange> = cluster.running().collect();
    let contract = create(&nodes, &keys[0], code)?;
    let sign = |number: u64, nonce: u64| {
        let key = &keys[(number % options.senders) as usize];
        let (max_fee, data) = (1_000 * GWEI, input(number));
        let request = EthereumRequest {
            chain: 1,
            nonce,
            to: Some(contract),
            gas_limit: gas,
            max_fee,
            data,
            ..Default::default()
        };
        key.sign(&request)
    };
    let seen = drive(&nodes, &times, options.senders, &sign);
    Ok(report(load, variant.name, &times, &seen, nodes[0].read(ledger::Ledger::height)))
}

fn key(number: u64) -> EthereumKey {
    let seed = std::array::from_fn(|place| if place < 8 { number.to_be_bytes()[place] } else { 0x2d });
    EthereumKey::from_seed(seed).expect("a key")
}

fn settings(options: &DiabloOptions, keys: &[EthereumKey], variant: &Variant) -> ClusterSettings {
    let mut settings = ClusterSettings::local(options.validators);
    settings.rules = options.rules;
    settings.traders = 1;
    settings.config.blocks.check_ahead = variant.check_ahead;
    let store = &mut settings.config.store;
    let kept = |keep: bool, default: usize| if keep { default } else { 0 };
    store.cached_bodies = kept(variant.bodies, store.cached_bodies);
    store.cached_receipts = kept(variant.receipts, store.cached_receipts);
    let limits = Limits::default().with_contracts(options.validators as u32);
    let sub_block_gas = BLOCK_GAS / options.validators as u64;
    settings.limits = Limits { block_gas: BLOCK_GAS, sub_block_gas, ..limits };
    settings.rich = keys.par_iter().map(EthereumKey::address).collect();
    settings
}

/// Creates the contract of a load, and waits until every validator has it.
fn create(nodes: &[&Exchange], key: &EthereumKey, code: &str) -> Result<Address, DiabloError> {
    let data = hex::decode(code.trim()).expect("kept beside the source");
    let (gas_limit, max_fee) = (3_000_000, 1_000 * GWEI);
    let request = EthereumRequest { chain: 1, gas_limit, max_fee, data, ..Default::default() };
    let sent = nodes[0].submit_ethereum(vec![key.sign(&request)]);
    let is_sent = sent.is_ok_and(|answers| answers.iter().all(Result::is_ok));
    let me = key.address();
    let created = || nodes.iter().all(|node| node.read(|ledger| ledger.ethereum_nonce(&me)) == 1);
    if is_sent && wait_until(created) { Ok(contract_address(&me, 0)) } else { Err(DiabloError::NotCreated) }
}

/// Sends the calls by their plan, and waits until all are in blocks; returns what their clients observed.
fn drive(
    nodes: &[&Exchange],
    times: &[Duration],
    senders: u64,
    sign: &(impl Fn(u64, u64) -> Vec<u8> + Sync),
) -> Vec<Seen> {
    let ready = AtomicU64::new(0);
    let begun = Mutex::new(None);
    let calls = times.len() as u64;
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..nodes.len())
            .map(|place| {
                let (to, from) = sync_channel::<Signed>(SIGNED_AHEAD);
                let (ready, begun) = (&ready, &begun);
                // The calls whose sender uses this validator. The first sender has created the contract.
                let mine = (0..calls).filter(move |number| (number % senders) as usize % nodes.len() == place);
                let count = mine.clone().count();
                scope.spawn(move || {
                    let mut ahead = 0;
                    for number in mine {
                        let nonce = number / senders + u64::from(number % senders == 0);
                        let signed = Signed { at: times[number as usize], bytes: sign(number, nonce) };
                        if to.send(signed).is_err() {
                            return;
                        }
                        ahead += 1;
                        if ahead == count.min(SIGNED_AHEAD) {
                            ready.fetch_add(1, Ordering::Release);
                        }
                    }
                    if count == 0 {
                        ready.fetch_add(1, Ordering::Release);
                    }
                });
                let node = nodes[place];
                scope.spawn(move || {
                    while ready.load(Ordering::Acquire) < nodes.len() as u64 {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    let begun = *begun.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(Instant::now);
                    client(node, from, count, begun)
                })
            })
            .collect();
        clients.into_iter().flat_map(|client| client.join().expect("no client panics")).collect()
    })
}

/// The clients of one validator: they send due calls and receive blocks.
fn client(node: &Exchange, calls: Receiver<Signed>, count: usize, begun: Instant) -> Vec<Seen> {
    let mut blocks = node.subscribe();
    let mut height = node.read(ledger::Ledger::height);
    let (mut queue, mut waiting, mut seen) = (VecDeque::new(), HashMap::new(), Vec::with_capacity(count));
    let (mut next, mut last, mut is_full) = (calls.recv().ok(), Instant::now(), false);
    while seen.len() < count && (last.elapsed() < PATIENCE || next.is_some()) {
        while let Some(due) = next.take_if(|call| call.at <= begun.elapsed()) {
            queue.push_back(due);
            next = calls.recv().ok();
        }
        // A validator without room has room again after a block.
        let is_sent = !is_full && submit(node, &mut queue, &mut waiting);
        is_full |= !is_sent && !queue.is_empty();
        match blocks.try_recv() {
            Ok(block) => {
                for number in height + 1..=block.summary.height {
                    on_block(node, number, begun, &mut waiting, &mut seen);
                }
                height = height.max(block.summary.height);
                (last, is_full) = (Instant::now(), false);
            }
            Err(TryRecvError::Closed) => break,
            // Missed blocks are read with the next block.
            Err(TryRecvError::Lagged(_)) => {}
            Err(TryRecvError::Empty) if is_sent => {}
            Err(TryRecvError::Empty) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    seen
}

/// Offers the due calls to the validator; those for which it has no room stay in the queue. Returns whether all were
/// accepted.
fn submit(node: &Exchange, queue: &mut VecDeque<Signed>, waiting: &mut HashMap<TransactionId, Duration>) -> bool {
    let count = queue.len().min(BATCH);
    if count == 0 {
        return false;
    }
    let batch: Vec<Signed> = queue.drain(..count).collect();
    let Ok(answers) = node.submit_ethereum(batch.iter().map(|call| call.bytes.clone()).collect()) else {
        batch.into_iter().rev().for_each(|call| queue.push_front(call));
        return false;
    };
    let mut back = Vec::new();
    for (call, answer) in batch.into_iter().zip(answers) {
        match answer {
            Ok(id) => drop(waiting.insert(id, call.at)),
            Err(EthereumReject::Full | EthereumReject::NonceTooHigh { .. }) => back.push(call),
            Err(why) => panic!("a valid call was refused: {why}"),
        }
    }
    let is_taken = back.is_empty();
    back.into_iter().rev().for_each(|call| queue.push_front(call));
    is_taken
}

/// Processes the receipts of a block.
fn on_block(
    node: &Exchange,
    height: u64,
    begun: Instant,
    waiting: &mut HashMap<TransactionId, Duration>,
    seen: &mut Vec<Seen>,
) {
    // Without a cache, receipts are available once they are archived, a little after the block is published.
    let receipts = loop {
        match node.receipts(height).expect("readable") {
            Some(receipts) => break receipts,
            None => std::thread::sleep(Duration::from_micros(200)),
        }
    };
    let told = begun.elapsed();
    for receipt in &receipts.receipts.contracts.receipts {
        if let Some(sent) = waiting.remove(&receipt.id) {
            let succeeded = receipt.status == EvmStatus::Succeeded;
            seen.push(Seen { sent, told, succeeded, gas: receipt.gas_used });
        }
    }
}

fn report(load: &str, variant: &str, times: &[Duration], seen: &[Seen], blocks: u64) -> Value {
    let latency = |seen: &mut dyn Iterator<Item = &Seen>| {
        let mut all: Vec<f64> = seen.map(|call| call.told.saturating_sub(call.sent).as_secs_f64()).collect();
        all.sort_by(f64::total_cmp);
        let share = |share: f64| all.get(((all.len() as f64 * share) as usize).min(all.len().saturating_sub(1)));
        let average = all.iter().sum::<f64>() / all.len().max(1) as f64;
        json!({"calls": all.len(), "average_s": average, "p50_s": share(0.5), "p90_s": share(0.9), "p99_s": share(0.99),
            "max_s": all.last(), "quantiles_s": quantiles(&all)})
    };
    let seconds = seen.iter().map(|call| call.told).max().unwrap_or_default().as_secs_f64();
    let told: Vec<f64> = seen.iter().map(|call| call.told.as_secs_f64()).collect();
    let in_second = in_seconds(&told);
    let succeeded = seen.iter().filter(|call| call.succeeded).count();
    // Until the burst of the first second is in blocks, later calls wait behind it.
    let burst = seen.iter().filter(|call| call.sent < Duration::from_secs(1)).map(|call| call.told).max();
    let drained = burst.unwrap_or_default();
    json!({
        "load": load,
        "measures": variant,
        "sent": times.len(),
        "committed": seen.len(),
        "committed_share": seen.len() as f64 / times.len().max(1) as f64,
        "succeeded": succeeded,
        "seconds": seconds,
        "blocks": blocks,
        "gas_per_second": seen.iter().map(|call| call.gas).sum::<u64>() as f64 / seconds.max(1e-9),
        "per_second": seen.len() as f64 / seconds.max(1e-9),
        "peak_per_second": in_second.iter().max(),
        "committed_in_each_second": in_second,
        "latency": latency(&mut seen.iter()),
        "first_second_drained_s": drained.as_secs_f64(),
        "latency_after_the_first_second": latency(&mut seen.iter().filter(|call| call.sent >= drained)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_load_commits_all_of_its_calls() {
        let data = tempfile::tempdir().expect("a directory");
        for load in ["gafam", "dota", "football", "uber", "youtube"] {
            let path = data.path().join(format!("workload-{load}.yaml"));
            std::fs::write(path, "txs:\n  0: 60\n  1: 20\n  2: 0\n").expect("written");
            let options = DiabloOptions {
                loads: vec![load.into()],
                data: data.path().into(),
                validators: 4,
                senders: 16,
                most: u64::MAX,
                variants: false,
                rules: consensus::Rules::default(),
            };
            let figures = run(&options, &mut |_| ()).expect("it runs");
            let row = &figures["loads"][0];
            assert_eq!(
                (&row["sent"], &row["committed"], &row["succeeded"]),
                (&json!(80), &json!(80), &json!(80)),
                "{row}"
            );
        }
        let unknown = DiabloOptions {
            loads: vec!["nasdaq".into()],
            data: data.path().into(),
            validators: 4,
            senders: 16,
            most: 1,
            variants: false,
            rules: consensus::Rules::default(),
        };
        let error = run(&unknown, &mut |_| ()).expect_err("there is none").to_string();
        assert!(error.starts_with("there is no load \"nasdaq\"; there are gafam,"), "{error}");
    }
}
