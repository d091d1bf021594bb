//! The performance of a node for Ethereum's tools: transfers through JSON-RPC and through the binary intake, calls
//! under that load, and logs. One node with both interfaces on loopback; the clients run on the same cores.
//!
//! Transfers are signed and encoded beforehand. *End to end* is until the last of them is executed and durable. The
//! *ceiling* is the rate at which all cores recover the senders and do nothing else, in the same run: no intake can
//! be faster. The report gives, beside the time of calls, how late the same thread woke up between them, which is the
//! machine's share, and how long blocks held the state: a read borrows it between two of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ledger::contracts::ethereum::{hex, keccak256};
use ledger::contracts::{EthereumKey, EthereumRequest, EthereumTransaction, contract_address};
use ledger::{Genesis, Limits, Listing};
use node::{Config, Node};
use primitives::{Address, AssetId, Fraction};
use rayon::prelude::*;
use readers::CommittedBlock;
use serde_json::{Value, json};
use ureq::Agent;

use crate::consensus::percentiles;
use crate::measurement::{BenchResult, BenchShown, BenchSteps, Measurement, count};
use crate::scaling::median;

/// A node's Ethereum interfaces: transfers through JSON-RPC and the binary intake, calls under load, logs.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  walras-lab bench evm-rpc --json
  walras-lab bench evm-rpc --transfers 100000 --connections 8 --batch 1000")]
pub struct EvmRpcOptions {
    /// Transfers through each interface.
    #[arg(long, default_value_t = 40_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub transfers: u64,
    /// Accounts that send them.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub senders: u64,
    /// Connections.
    #[arg(long, default_value_t = 4, value_parser = count(1..=255))]
    pub connections: usize,
    /// Transfers in one request.
    #[arg(long, default_value_t = 200, value_parser = count(1..=1_000))]
    pub batch: usize,
    /// Logs requested at once.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub logs: u64,
}

impl Measurement for EvmRpcOptions {
    fn measured(self, say: &mut BenchSteps) -> BenchResult {
        Ok(BenchShown::Figures(run(&self, say)?))
    }
}

/// The reason why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum EvmRpcError {
    /// The node or its files failed.
    #[error("the node does not start: {0}")]
    Start(String),
    /// A request failed.
    #[error("{0}")]
    Request(#[from] Box<ureq::Error>),
    /// An answer is invalid.
    #[error("{method} was answered with {answer}")]
    Answer {
        /// The request.
        method: &'static str,
        /// The answer.
        answer: Value,
    },
}

impl From<ureq::Error> for EvmRpcError {
    fn from(error: ureq::Error) -> EvmRpcError {
        EvmRpcError::Request(Box::new(error))
    }
}

const CHAIN: u64 = 1;
const GWEI: u128 = 1_000_000_000;
/// So much that the base fee does not change.
const BLOCK_GAS: u64 = 8_000_000_000;
const BALANCE: u64 = 1 << 30;
const EXCHANGE: &str = include_str!("../contracts/Exchange.hex");
/// Pause between two calls under load.
const PAUSE: Duration = Duration::from_millis(5);
/// Number of requests for logs, and of calls of an idle node.
const ROUNDS: usize = 21;

/// Milliseconds, for a client that calls repeatedly.
#[derive(Default)]
struct Calls {
    took: Vec<f64>,
    /// The excess time of a pause: no call can be faster, whichever node serves it.
    late: Vec<f64>,
    /// Time that blocks took to apply and to log. A read that arrives meanwhile waits for the end.
    blocks: Vec<f64>,
}

/// A node and its clients.
struct Fixture<'a> {
    node: &'a Node,
    rpc: String,
    intake: String,
    options: &'a EvmRpcOptions,
    keys: Vec<EthereumKey>,
}

/// Measures everything.
///
/// # Errors
/// [`EvmRpcError`].
pub fn run(options: &EvmRpcOptions, say: &mut dyn FnMut(&str)) -> Result<Value, EvmRpcError> {
    let start = |error: &dyn std::fmt::Display| EvmRpcError::Start(error.to_string());
    let keys: Vec<EthereumKey> = (0..options.senders).into_par_iter().map(key).collect();
    let directory = tempfile::tempdir().map_err(|error| start(&error))?;
    let runtime = tokio::runtime::Runtime::new().map_err(|error| start(&error))?;
    let mut config = Config::default();
    config.http.listen.set_port(0);
    config.ethereum.listen.set_port(0);
    config.blocks.interval_ms = 50;
    let node = runtime.block_on(Node::start(config, &genesis(&keys), &directory.path().join("data"), None));
    let node = node.map_err(|error| start(&error))?;
    let address = node.ethereum_address().expect("the genesis has contracts");
    let (rpc, intake) = (format!("http://{address}/"), format!("http://{}/v1/ethereum/batch", node.address()));
    let figures = Fixture { node: &node, rpc, intake, options, keys }.measure(say);
    runtime.block_on(node.stop());
    figures
}

fn key(number: u64) -> EthereumKey {
    let seed = std::array::from_fn(|place| if place < 8 { number.to_be_bytes()[place] } else { 0x2e });
    EthereumKey::from_seed(seed).expect("a key")
}

fn genesis(keys: &[EthereumKey]) -> Genesis {
    let limits = Limits::default().with_contracts(1);
    Genesis {
        chain: CHAIN,
        mu: Fraction::power_of_two(10),
        assets: vec![Listing::new("USD", 2, Address([1; 20]))],
        balances: keys.iter().map(|key| (key.address(), AssetId(0), BALANCE)).collect(),
        limits: Limits { block_gas: BLOCK_GAS, sub_block_gas: BLOCK_GAS, ..limits },
        ..Genesis::default()
    }
}

fn agent() -> Agent {
    Agent::new_with_config(Agent::config_builder().http_status_as_error(false).build())
}

impl Fixture<'_> {
    fn measure(&self, say: &mut dyn FnMut(&str)) -> Result<Value, EvmRpcError> {
        let each = self.options.transfers.div_ceil(self.options.senders);
        let contract = self.create_contract()?;
        say("calls of an idle node");
        let mut idle = (0..ROUNDS).map(|_| self.time_call(&agent(), contract)).collect::<Result<Vec<f64>, _>>()?;
        say("transfers through JSON-RPC");
        // The first account has created the contract.
        let first = |sender: usize| u64::from(sender == 0);
        let signed = self.transfers(&first, each);
        let (by_rpc, mut calls) =
            self.under_load(contract, || self.send(&signed, &|agent, batch| self.by_rpc(agent, batch)))?;
        say("transfers through the binary intake");
        let signed = self.transfers(&|sender| first(sender) + each, each);
        let ceiling = ceiling(&signed);
        let (by_intake, mut calls_then) =
            self.under_load(contract, || self.send(&signed, &|agent, batch| self.by_intake(agent, batch)))?;
        calls.took.append(&mut calls_then.took);
        calls.late.append(&mut calls_then.late);
        calls.blocks.append(&mut calls_then.blocks);
        say("logs");
        let logs = self.logs(contract, &|sender| first(sender) + 2 * each)?;
        Ok(json!({
            "connections": self.options.connections,
            "batch": self.options.batch,
            "json_rpc": by_rpc,
            "binary": by_intake,
            "recovery_per_second": ceiling,
            "binary_over_recovery": by_intake["end_to_end_per_second"].as_f64().unwrap_or(0.0) / ceiling,
            "call_ms": percentiles(&mut calls.took),
            "woken_late_ms": percentiles(&mut calls.late),
            "block_ms": percentiles(&mut calls.blocks),
            "call_idle_ms": percentiles(&mut idle),
            "logs": logs,
            "quoted": {"anvil_batches_per_second": 7_810, "geth_per_second": 3_720,
                "source": "end to end, four connections, on a machine of this kind"},
        }))
    }

    fn create_contract(&self) -> Result<Address, EvmRpcError> {
        let data = hex::decode(EXCHANGE.trim()).expect("kept beside the source");
        let request =
            EthereumRequest { chain: CHAIN, gas_limit: 3_000_000, max_fee: 100 * GWEI, data, ..Default::default() };
        let bytes = self.keys[0].sign(&request);
        let left = self.by_intake(&agent(), std::slice::from_ref(&bytes))?;
        assert!(left.is_empty(), "an empty pool has room");
        self.wait(&|sender| u64::from(sender == 0));
        Ok(contract_address(&self.keys[0].address(), 0))
    }

    /// For each connection, the transfers of its senders: all of their first nonce, then all of their second.
    fn transfers(&self, first: &(impl Fn(usize) -> u64 + Sync), each: u64) -> Vec<Vec<Vec<u8>>> {
        let to = Some(Address([9; 20]));
        let sign = |sender: usize, number: u64| {
            let nonce = first(sender) + number;
            let request = EthereumRequest {
                chain: CHAIN,
                nonce,
                to,
                value: 1,
                gas_limit: 21_000,
                max_fee: 100 * GWEI,
                ..Default::default()
            };
            self.keys[sender].sign(&request)
        };
        self.by_connection(each, &sign)
    }

    fn by_connection(&self, each: u64, sign: &(impl Fn(usize, u64) -> Vec<u8> + Sync)) -> Vec<Vec<Vec<u8>>> {
        let of = |connection: usize| {
            let senders: Vec<usize> = (connection..self.keys.len()).step_by(self.options.connections).collect();
            let numbered: Vec<(usize, u64)> =
                (0..each).flat_map(|number| senders.iter().map(move |sender| (*sender, number))).collect();
            numbered.into_par_iter().map(|(sender, number)| sign(sender, number)).collect()
        };
        (0..self.options.connections).map(of).collect()
    }

    /// Sends all, each connection its own batches in turn; rejected transfers are sent again.
    fn send(
        &self,
        signed: &[Vec<Vec<u8>>],
        post: &(impl Fn(&Agent, &[Vec<u8>]) -> Result<Vec<Vec<u8>>, EvmRpcError> + Sync),
    ) -> Result<Value, EvmRpcError> {
        let count: usize = signed.iter().map(Vec::len).sum();
        let before: u64 = self.nonces();
        let begun = Instant::now();
        let one = |own: &Vec<Vec<u8>>| {
            let agent = agent();
            for batch in own.chunks(self.options.batch) {
                let mut left = post(&agent, batch)?;
                while !left.is_empty() {
                    std::thread::sleep(PAUSE);
                    left = post(&agent, &left)?;
                }
            }
            Ok::<(), EvmRpcError>(())
        };
        std::thread::scope(|scope| {
            let clients: Vec<_> = signed.iter().map(|own| scope.spawn(|| one(own))).collect();
            clients.into_iter().try_for_each(|client| client.join().expect("no client panics"))
        })?;
        let submitted = begun.elapsed().as_secs_f64();
        while self.nonces() < before + count as u64 {
            std::thread::sleep(Duration::from_millis(2));
        }
        let ended = begun.elapsed().as_secs_f64();
        Ok(json!({"transfers": count, "submitted_per_second": count as f64 / submitted,
            "end_to_end_per_second": count as f64 / ended}))
    }

    fn nonces(&self) -> u64 {
        self.node.exchange().read(|ledger| self.keys.iter().map(|key| ledger.ethereum_nonce(&key.address())).sum())
    }

    /// Waits until every account has used this many nonces.
    fn wait(&self, used: &dyn Fn(usize) -> u64) {
        let all: u64 = (0..self.keys.len()).map(used).sum();
        while self.nonces() < all {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits until the blocks that the ledger has executed are published: earlier, their logs are not found.
    fn wait_until_published(&self, agent: &Agent) -> Result<(), EvmRpcError> {
        let method = "eth_blockNumber";
        let executed = self.node.exchange().read(|ledger| ledger.height());
        loop {
            let answer = self.ask(agent, method, json!([]))?;
            let digits = answer.as_str().and_then(|text| text.strip_prefix("0x"));
            match digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
                None => return Err(EvmRpcError::Answer { method, answer }),
                Some(published) if published >= executed => return Ok(()),
                Some(_) => std::thread::sleep(PAUSE),
            }
        }
    }

    /// The result of `act` while one client calls a contract repeatedly, the times of these calls, and how late the
    /// machine woke the client up between them, in milliseconds.
    fn under_load(
        &self,
        contract: Address,
        load: impl FnOnce() -> Result<Value, EvmRpcError>,
    ) -> Result<(Value, Calls), EvmRpcError> {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let caller = scope.spawn(|| {
                let (agent, mut calls) = (agent(), Calls::default());
                let mut feed = self.node.exchange().subscribe();
                while !done.load(Ordering::Acquire) {
                    calls.took.push(self.time_call(&agent, contract)?);
                    let begun = Instant::now();
                    std::thread::sleep(PAUSE);
                    calls.late.push((begun.elapsed() - PAUSE).as_secs_f64() * 1_000.0);
                    calls.blocks.extend(std::iter::from_fn(|| feed.try_recv().ok()).map(|block| held_ms(&block)));
                }
                Ok::<_, EvmRpcError>(calls)
            });
            let figures = load();
            done.store(true, Ordering::Release);
            let calls = caller.join().expect("no client panics");
            Ok((figures?, calls?))
        })
    }

    fn ask(&self, agent: &Agent, method: &'static str, params: Value) -> Result<Value, EvmRpcError> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut answer: Value =
            agent.post(&self.rpc).send_json(body)?.body_mut().with_config().limit(1 << 30).read_json()?;
        match answer["result"].take() {
            Value::Null => Err(EvmRpcError::Answer { method, answer }),
            result => Ok(result),
        }
    }

    /// Milliseconds of a call that reads one slot.
    fn time_call(&self, agent: &Agent, contract: Address) -> Result<f64, EvmRpcError> {
        let data = format!("0x{}", hex::encode(&keccak256("apple()")[..4]));
        let begun = Instant::now();
        self.ask(agent, "eth_call", json!([{"to": named(&contract), "data": data}, "latest"]))?;
        Ok(begun.elapsed().as_secs_f64() * 1_000.0)
    }

    /// Sends a batch to the JSON-RPC interface; returns what was rejected for lack of room.
    fn by_rpc(&self, agent: &Agent, batch: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, EvmRpcError> {
        let request = |(id, bytes): (usize, &Vec<u8>)| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"eth_sendRawTransaction","params":["0x{}"]}}"#,
                hex::encode(bytes)
            )
        };
        let body = format!("[{}]", batch.iter().enumerate().map(request).collect::<Vec<_>>().join(","));
        let post = agent.post(&self.rpc).header("Content-Type", "application/json");
        let answers: Value = post.send(body)?.body_mut().read_json()?;
        let Some(answers) = answers.as_array().filter(|answers| answers.len() == batch.len()) else {
            return Err(EvmRpcError::Answer { method: "eth_sendRawTransaction", answer: answers });
        };
        left(batch, answers, "eth_sendRawTransaction", |answer| answer.get("result").is_some())
    }

    /// Sends a batch to the binary intake; returns what was rejected for lack of room.
    fn by_intake(&self, agent: &Agent, batch: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, EvmRpcError> {
        let body = borsh::to_vec(batch).expect("writing to memory cannot fail");
        let post = agent.post(&self.intake).header("Content-Type", "application/octet-stream");
        let answer: Value = post.send(&body[..])?.body_mut().with_config().limit(1 << 30).read_json()?;
        let Some(results) = answer["results"].as_array().filter(|results| results.len() == batch.len()) else {
            return Err(EvmRpcError::Answer { method: "POST /v1/ethereum/batch", answer });
        };
        left(batch, results, "POST /v1/ethereum/batch", |result| result.get("error").is_none())
    }

    /// Makes the exchange contract log, and requests all of its logs at once.
    fn logs(&self, contract: Address, first: &(impl Fn(usize) -> u64 + Sync)) -> Result<Value, EvmRpcError> {
        let data = keccak256("buyApple()")[..4].to_vec();
        let each = self.options.logs.div_ceil(self.options.senders);
        let sign = |sender: usize, number: u64| {
            let (nonce, to, data) = (first(sender) + number, Some(contract), data.clone());
            let request = EthereumRequest {
                chain: CHAIN,
                nonce,
                to,
                gas_limit: 60_000,
                max_fee: 100 * GWEI,
                data,
                ..Default::default()
            };
            self.keys[sender].sign(&request)
        };
        let wanted = self.options.logs as usize;
        let mut signed = self.by_connection(each, &sign);
        let share = wanted.div_ceil(self.options.connections);
        signed.iter_mut().for_each(|own| own.truncate(share));
        let count: usize = signed.iter().map(Vec::len).sum();
        self.send(&signed, &|agent, batch| self.by_intake(agent, batch))?;
        let (agent, mut times, mut found) = (agent(), Vec::new(), 0);
        self.wait_until_published(&agent)?;
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            let filter = json!([{"address": named(&contract), "fromBlock": "0x1", "toBlock": "latest"}]);
            let logs = self.ask(&agent, "eth_getLogs", filter)?;
            times.push(begun.elapsed().as_secs_f64() * 1_000.0);
            found = logs.as_array().map_or(0, Vec::len);
        }
        Ok(json!({"sent": count, "found": found, "median_ms": median(times)}))
    }
}

/// How long a block held the state: its log is written while it is applied.
pub(crate) fn held_ms(block: &CommittedBlock) -> f64 {
    let of = |is_log: bool| block.summary.stages_ms.iter().filter(move |(stage, _)| (*stage == "log") == is_log);
    let sum = |is_log| of(is_log).map(|(_, ms)| ms).sum::<f64>();
    sum(true).max(sum(false))
}

fn named(address: &Address) -> String {
    format!("0x{}", hex::encode(address.0))
}

/// The part of a batch that was rejected for lack of room; any other refusal is an error.
fn left(
    batch: &[Vec<u8>],
    answers: &[Value],
    method: &'static str,
    is_taken: impl Fn(&Value) -> bool,
) -> Result<Vec<Vec<u8>>, EvmRpcError> {
    let mut left = Vec::new();
    for (bytes, answer) in batch.iter().zip(answers) {
        let has_no_room = || {
            let text = answer["error"].to_string();
            ["full", "too_high", "above"].iter().any(|word| text.contains(word))
        };
        if is_taken(answer) {
            continue;
        }
        if !has_no_room() {
            return Err(EvmRpcError::Answer { method, answer: answer.clone() });
        }
        left.push(bytes.clone());
    }
    Ok(left)
}

/// Senders that all cores recover per second.
fn ceiling(signed: &[Vec<Vec<u8>>]) -> f64 {
    let sample: Vec<&Vec<u8>> = signed.iter().flatten().take(20_000).collect();
    let begun = Instant::now();
    let recovered = sample.par_iter().filter(|bytes| {
        EthereumTransaction::decode(bytes).is_ok_and(|transaction| transaction.recover_sender().is_ok())
    });
    let count = recovered.count();
    count as f64 / begun.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_doors_take_what_is_sent() {
        let options = EvmRpcOptions { transfers: 200, senders: 10, connections: 2, batch: 16, logs: 30 };
        let figures = run(&options, &mut |_| ()).expect("it runs");
        let count = |door: &str| figures[door]["transfers"].as_u64();
        assert_eq!((count("json_rpc"), count("binary")), (Some(200), Some(200)), "{figures}");
        assert_eq!((&figures["logs"]["sent"], &figures["logs"]["found"]), (&json!(30), &json!(30)), "{figures}");
    }
}
