//! Smart Red Belly's transaction management, each of its measures switched off in turn (figures 3 to 5, table 1).
//!
//! All transactions are offered at once to validators in this process, with real sockets and disks. Each client uses
//! one validator. When that validator publishes a block, the client asks it for each of its transactions there: for
//! the transaction itself out of the block's body, and for its receipt with the proof. A transaction counts once its
//! client has both.
//!
//! Measures that can be switched off:
//!
//! - *one validator validates* (§3.2, table 1): otherwise each transaction is given to all validators, as gossip does.
//!   So all check its signature, reserve what it spends, and propose it;
//! - *sub-block by sub-block* (§3.3, figure 4): otherwise the signatures of a superblock are checked at once after it
//!   is decided, instead of those of each sub-block when it arrives. Blocks are applied as one batch either way,
//!   since a batch auction needs the whole block;
//! - *bodies* and *receipts* kept when written (§3.4, figure 3): otherwise each query reads the archive.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use node::{Exchange, ExchangeError};
use primitives::{Transaction, TransactionId};
use readers::CommittedBlock;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::TryRecvError;

use crate::cluster::{Cluster, ClusterSettings, transactions};
use crate::consensus::{percentiles, wait_until, wire};
use crate::measurement::{BenchResult, BenchShown, BenchSteps, Measurement, count};
use crate::scaling::median;

/// Transaction management with each of its measures switched off in turn: one validator validates, sub-block by
/// sub-block, bodies and receipts are cached when written.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  walras-lab bench transaction-management --json
  walras-lab bench transaction-management --validators 7 --transactions 10000")]
pub struct TransactionManagementOptions {
    /// Number of validators.
    #[arg(long, default_value_t = 4, value_parser = count(2..=64))]
    pub validators: usize,
    /// Transactions, offered at once.
    #[arg(long, default_value_t = 15_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub transactions: u64,
    /// Runs of each variant; medians are reported.
    #[arg(long, default_value_t = 5, value_parser = count(1..))]
    pub runs: usize,
    /// Names of variants, out of [`TransactionManagementOptions::VARIANTS`]; `all` runs in any case.
    #[arg(skip = TransactionManagementOptions::VARIANTS.to_vec())]
    pub variants: Vec<&'static str>,
}

impl TransactionManagementOptions {
    /// With all measures, without each of them, and without any.
    pub const VARIANTS: [&'static str; 6] =
        ["all", "all validate", "superblock at once", "no body cache", "no receipt cache", "none"];
}

impl Measurement for TransactionManagementOptions {
    fn measured(self, say: &mut BenchSteps) -> BenchResult {
        Ok(BenchShown::Figures(run(&self, say)?))
    }
}

/// The measures that are switched on.
#[derive(Clone, Copy, Debug)]
struct Measures {
    one_validates: bool,
    by_sub_block: bool,
    bodies: bool,
    receipts: bool,
}

const ALL: Measures = Measures { one_validates: true, by_sub_block: true, bodies: true, receipts: true };

/// Each variant with the paper's own gain of all measures over it: of validation, that of four validators.
const VARIANTS: [(&str, Measures, &str); 6] = [
    ("all", ALL, ""),
    ("all validate", Measures { one_validates: false, ..ALL }, "1.21 to 1.32 (table 1, n = 4)"),
    ("superblock at once", Measures { by_sub_block: false, ..ALL }, "1.40 (figure 4)"),
    ("no body cache", Measures { bodies: false, ..ALL }, "1.28 to 1.45 (figure 3)"),
    ("no receipt cache", Measures { receipts: false, ..ALL }, "1.35 to 3.00 (figure 3)"),
    ("none", Measures { one_validates: false, by_sub_block: false, bodies: false, receipts: false }, "3.2 (figure 5)"),
];

/// Transactions that are submitted together.
const BATCH: usize = 500;

/// The results of one run.
struct Run {
    per_second: f64,
    /// Milliseconds until each transaction's client had its answers.
    latencies: Vec<f64>,
    /// Seconds from the beginning to the same.
    confirmed: Vec<f64>,
    wire_bytes: f64,
    processor: f64,
}

/// When a client had its answers about a transaction: milliseconds since it was sent, seconds since the beginning.
type Confirmed = (f64, f64);

/// Runs the variants, one after the other, as often as requested.
///
/// # Errors
/// [`ExchangeError`] if a validator does not start, or its archive cannot be read.
pub fn run(options: &TransactionManagementOptions, say: &mut dyn FnMut(&str)) -> Result<Value, ExchangeError> {
    let is_asked = |name: &str| name == "all" || options.variants.contains(&name);
    let variants: Vec<_> = VARIANTS.iter().filter(|(name, ..)| is_asked(name)).collect();
    let mut runs: Vec<Vec<Run>> = variants.iter().map(|_| Vec::new()).collect();
    for round in 1..=options.runs {
        for ((name, measures, _), runs) in variants.iter().zip(&mut runs) {
            say(&format!("round {round} of {}: {name}", options.runs));
            runs.push(measure(options, measures)?);
        }
    }
    let rate = |runs: &[Run]| median(runs.iter().map(|run| run.per_second).collect());
    let all = rate(&runs[0]);
    let rows: Vec<Value> = variants
        .iter()
        .zip(&mut runs)
        .map(|((name, _, published), runs)| {
            let mut latencies: Vec<f64> = runs.iter_mut().flat_map(|run| std::mem::take(&mut run.latencies)).collect();
            let confirmed = runs.last().map(|run| in_seconds(&run.confirmed));
            json!({
                "measures": name,
                "transactions_per_second": rate(runs),
                "all_over_this": all / rate(runs),
                "published_all_over_this": published,
                "latency_ms": percentiles(&mut latencies),
                "latency_quantiles_ms": quantiles(&latencies),
                "confirmed_in_each_second_of_the_last_run": confirmed,
                "wire_bytes_per_transaction": median(runs.iter().map(|run| run.wire_bytes).collect()),
                "processor_us_per_transaction": median(runs.iter().map(|run| run.processor).collect()),
            })
        })
        .collect();
    Ok(json!({"validators": options.validators, "transactions": options.transactions, "runs": options.runs,
            "variants": rows}))
}

fn measure(options: &TransactionManagementOptions, measures: &Measures) -> Result<Run, ExchangeError> {
    let directory = tempfile::tempdir().map_err(|error| ExchangeError::directory("a temporary one", error))?;
    let mut settings = ClusterSettings::local(options.validators);
    settings.config.blocks.check_ahead = measures.by_sub_block;
    let kept = |keep: bool, default: usize| if keep { default } else { 0 };
    let store = &mut settings.config.store;
    store.cached_bodies = kept(measures.bodies, store.cached_bodies);
    store.cached_receipts = kept(measures.receipts, store.cached_receipts);
    let traders = settings.traders;
    let cluster = Cluster::start(settings, directory.path())?;
    let sent = transactions(&cluster.identity(), traders, 0, options.transactions);
    let others = options.validators - 1;
    wait_until(|| cluster.running().all(|node| node.status().is_some_and(|status| status.connected == others)));
    let (wire_before, processor_before) = (wire(&cluster), processor_seconds());
    let begun = Instant::now();
    let (latencies, confirmed): (Vec<f64>, Vec<f64>) =
        load(&cluster, &sent, measures.one_validates, begun)?.into_iter().unzip();
    let seconds = begun.elapsed().as_secs_f64();
    let count = sent.len() as f64;
    Ok(Run {
        per_second: latencies.len() as f64 / seconds,
        latencies,
        confirmed,
        wire_bytes: (wire(&cluster) - wire_before) as f64 / count,
        processor: (processor_seconds() - processor_before) * 1e6 / count,
    })
}

/// Processor time of this process, including threads that have ended.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit_once(") ").map_or("", |(_, tail)| tail).split(' ').collect();
    let ticks = |at: usize| fields.get(at).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

/// Sends everything and queries it.
fn load(
    cluster: &Cluster,
    sent: &[Transaction],
    one_validates: bool,
    begun: Instant,
) -> Result<Vec<Confirmed>, ExchangeError> {
    let nodes: Vec<&Exchange> = cluster.running().collect();
    let mine = |at: usize| sent.iter().skip(at).step_by(nodes.len()).cloned().collect::<Vec<Transaction>>();
    let nodes = &nodes;
    std::thread::scope(|scope| {
        let client = |at: usize| {
            let transactions = mine(at);
            let blocks = nodes[at].subscribe();
            scope.spawn(move || {
                let mut waiting = HashMap::new();
                for batch in transactions.chunks(BATCH) {
                    let to = if one_validates { &nodes[at..=at] } else { &nodes[..] };
                    to.iter().for_each(|node| drop(node.submit(batch.to_vec(), false)));
                    waiting.extend(batch.iter().map(|transaction| (transaction.id(), Instant::now())));
                }
                confirm(nodes[at], blocks, waiting, begun)
            })
        };
        let clients: Vec<_> = (0..nodes.len()).map(client).collect();
        let confirmed: Result<Vec<Vec<Confirmed>>, ExchangeError> =
            clients.into_iter().map(|client| client.join().expect("no client panics")).collect();
        Ok(confirmed?.concat())
    })
}

/// Receives blocks and queries the expected transactions, until all are found or no more blocks come.
fn confirm(
    node: &Exchange,
    mut blocks: tokio::sync::broadcast::Receiver<std::sync::Arc<CommittedBlock>>,
    mut waiting: HashMap<TransactionId, Instant>,
    begun: Instant,
) -> Result<Vec<Confirmed>, ExchangeError> {
    let mut confirmed = Vec::with_capacity(waiting.len());
    let mut last = begun;
    while !waiting.is_empty() && last.elapsed() < Duration::from_secs(60) {
        let block = match blocks.try_recv() {
            Ok(block) => block,
            Err(TryRecvError::Closed) => break,
            Err(_) => {
                std::thread::sleep(Duration::from_micros(500));
                continue;
            }
        };
        for (at, (_, id, outcome)) in block.outcomes.iter().enumerate() {
            if outcome.refusal().is_some() {
                continue;
            }
            let Some(sent) = waiting.remove(id) else { continue };
            ask(node, block.summary.height, at, id)?;
            last = Instant::now();
            let (latency, at) = (last.duration_since(sent), last.duration_since(begun));
            confirmed.push((latency.as_secs_f64() * 1_000.0, at.as_secs_f64()));
        }
    }
    Ok(confirmed)
}

/// How many of some times, in seconds, are in each second.
pub(crate) fn in_seconds(times: &[f64]) -> Vec<u64> {
    let last = times.iter().copied().fold(0.0, f64::max) as usize;
    let mut counts = vec![0; last + 1];
    times.iter().for_each(|at| counts[*at as usize] += 1);
    counts
}

/// The distribution of sorted numbers: 0, 5, 10 … 100 per cent of them are at most these.
pub(crate) fn quantiles(sorted: &[f64]) -> Vec<f64> {
    let at = |step: usize| sorted.get(((sorted.len().max(1) - 1) * step).div_ceil(20)).copied();
    (0..=20).filter_map(at).collect()
}

/// Reads a transaction out of its block, and its receipt with the proof.
fn ask(node: &Exchange, height: u64, at: usize, id: &TransactionId) -> Result<(), ExchangeError> {
    let body = node.body(height)?.expect("a published block is available");
    let transaction = body.sub_blocks.iter().flat_map(|sub_block| &sub_block.native).nth(at);
    assert_eq!(transaction.map(Transaction::id).as_ref(), Some(id), "the body is that of the block");
    loop {
        if let Some((_, receipts)) = node.receipt(id)? {
            std::hint::black_box(receipts.prove(id));
            return Ok(());
        }
        // Without a cache, receipts are available once they are archived, a little after the block is published.
        std::thread::sleep(Duration::from_micros(200));
    }
}
