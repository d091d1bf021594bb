//! A network of validators under load, on real sockets and disks: throughput, latency to commitment and to certificate,
//! bytes, syncs and processor time, healthy and with one validator dead, far away or Byzantine.
//!
//! All validators run in this process, each with its own store; processor time is separated by the names of threads.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use node::{Exchange, ExchangeError};
use primitives::{Transaction, TransactionId};
use readers::CommittedBlock;
use serde_json::{Value, json};

use crate::cluster::{Cluster, ClusterSettings, resting, transactions};
use crate::impostor::Impostor;
use crate::measurement::{BenchEngine, BenchResult, BenchShown, BenchSteps, Measurement, validators};
use crate::switch::{SwitchLink, between_regions};

/// What to measure.
#[derive(Clone, Debug, clap::Args)]
pub struct ConsensusOptions {
    /// Numbers of validators; faults are tried with the first.
    #[arg(long, value_delimiter = ',', default_values_t = [4usize, 7, 10], value_parser = validators())]
    pub validators: Vec<usize>,
    /// Transactions offered per second, to all validators together.
    #[arg(long, default_value_t = 4_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub rate: u64,
    /// Seconds of load in each run.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub seconds: u64,
    /// Offers that rest in the book before each run.
    #[arg(long, default_value_t = 0)]
    pub resting: u64,
    /// The rules that all validators follow.
    #[arg(skip)]
    pub rules: consensus::Rules,
    /// Only healthy runs with these links, instead of all links and faults.
    #[arg(skip)]
    pub links: Option<ConsensusLinks>,
}

/// A network of validators under load: throughput, latency to commitment and certificate, bytes, syncs, processor time;
/// healthy, and with one validator dead, slow or Byzantine.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  walras-lab bench consensus --json
  walras-lab bench consensus --validators 4 --rate 15000 --seconds 10")]
pub struct ConsensusArgs {
    #[command(flatten)]
    options: ConsensusOptions,
    /// How validators agree on blocks.
    #[arg(long, value_enum, default_value_t = BenchEngine::Dbft)]
    engine: BenchEngine,
    /// Count ready votes as the estimates of the first round.
    #[arg(long)]
    fast: bool,
}

impl Measurement for ConsensusArgs {
    fn measured(self, say: &mut BenchSteps) -> BenchResult {
        let rules = consensus::Rules { fast: self.fast, ..self.engine.rules() };
        Ok(BenchShown::Figures(run(&ConsensusOptions { rules, ..self.options }, say)?))
    }
}

/// Offers that are sent together to fill the book.
const FILL: u64 = 4_000;

/// The fault of one validator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    None,
    Dead,
    Slow,
    /// An [`Impostor`] in its place.
    Byzantine,
}

/// The properties of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsensusLinks {
    /// Those of one machine.
    Loopback,
    /// This many milliseconds one way between any two.
    Even(u64),
    /// The delays between ten regions of the world.
    Regions,
}

/// Runs all measurements.
///
/// # Errors
/// [`ExchangeError`] if a validator does not start.
pub fn run(options: &ConsensusOptions, say: &mut dyn FnMut(&str)) -> Result<Value, ExchangeError> {
    let mut rows = Vec::new();
    for &validators in &options.validators {
        let mut scenarios = vec![(ConsensusLinks::Loopback, Trouble::None), (ConsensusLinks::Even(25), Trouble::None)];
        if validators == options.validators[0] {
            scenarios.extend([
                (ConsensusLinks::Loopback, Trouble::Dead),
                (ConsensusLinks::Loopback, Trouble::Slow),
                (ConsensusLinks::Loopback, Trouble::Byzantine),
                (ConsensusLinks::Regions, Trouble::None),
            ]);
        }
        if let Some(links) = options.links {
            scenarios = vec![(links, Trouble::None)];
        }
        for (place, trouble) in scenarios {
            say(&format!("{validators} validators, {place:?}, trouble: {trouble:?}"));
            rows.push(measure(options, validators, place, trouble)?);
        }
    }
    Ok(json!({"rate": options.rate, "seconds": options.seconds, "engine": options.rules.protocol.name(),
            "fast_path": options.rules.fast, "runs": rows}))
}

/// The times at which transactions were sent, committed and certified.
#[derive(Default)]
struct Times {
    sent: HashMap<TransactionId, Instant>,
    /// Milliseconds to commitment, and height and sending time of each transaction, by validator.
    committed: Vec<(f64, usize, u64, Instant)>,
    /// When it was first seen to be certified, by validator and height.
    certified: HashMap<(usize, u64), Instant>,
}

fn measure(
    options: &ConsensusOptions,
    validators: usize,
    place: ConsensusLinks,
    trouble: Trouble,
) -> Result<Value, ExchangeError> {
    let directory = tempfile::tempdir().map_err(|error| ExchangeError::directory("a temporary one", error))?;
    let mut settings = ClusterSettings::local(validators);
    settings.rules = options.rules;
    match place {
        ConsensusLinks::Loopback => {}
        ConsensusLinks::Even(ms) => settings.unit = Duration::from_millis(4 * ms),
        ConsensusLinks::Regions => {
            (settings.unit, settings.grace) = (Duration::from_millis(600), Duration::from_millis(150))
        }
    }
    let traders = settings.traders;
    let mut cluster = Cluster::start(settings, directory.path())?;
    cluster.switch.set_all(|from, to| match place {
        ConsensusLinks::Loopback => SwitchLink::PERFECT,
        ConsensusLinks::Even(ms) => SwitchLink::of(Duration::from_millis(ms)),
        ConsensusLinks::Regions => SwitchLink::of(between_regions(from, to)),
    });
    let last = validators - 1;
    if trouble == Trouble::Slow {
        for other in 0..last {
            cluster.switch.set(other, last, SwitchLink::of(Duration::from_millis(200)));
            cluster.switch.set(last, other, SwitchLink::of(Duration::from_millis(200)));
        }
    }
    wait_until(|| cluster.running().all(|node| node.status().is_some_and(|status| status.connected == last)));
    let is_away = matches!(trouble, Trouble::Dead | Trouble::Byzantine);
    if is_away {
        cluster.nodes[last] = None;
    }
    let impostor =
        (trouble == Trouble::Byzantine).then(|| Impostor::start(cluster.network(last).clone())).transpose()?;
    fill(&cluster, traders, options.resting);
    let open_offers = cluster.running().map(|node| node.read(|ledger| ledger.book().len())).max().unwrap_or(0);
    let total = options.rate * options.seconds;
    let sent = transactions(&cluster.identity(), traders, options.resting, total);
    let bytes: usize = sent.iter().map(|transaction| borsh::to_vec(transaction).map_or(0, |bytes| bytes.len())).sum();
    let (wire_before, processor_before, syncs_before) = (wire(&cluster), processor(), syncs(&cluster));
    let heights_before = height(&cluster);
    let begun = Instant::now();
    let times = load(&cluster, &sent, options.rate, is_away);
    let seconds = begun.elapsed().as_secs_f64();
    let heights = (height(&cluster) - heights_before).max(1);
    let processor: HashMap<String, f64> = processor()
        .into_iter()
        .map(|(name, s)| (name.clone(), s - processor_before.get(&name).unwrap_or(&0.0)))
        .collect();
    let per = 1e6 / total as f64 / cluster.running().count() as f64;
    let of = |names: &[&str]| {
        processor
            .iter()
            .filter(|(name, _)| names.iter().any(|n| name.starts_with(n)))
            .map(|(_, s)| s * per)
            .sum::<f64>()
    };
    let mut commit: Vec<f64> = times.committed.iter().map(|(ms, ..)| *ms).collect();
    let mut certificate: Vec<f64> = times
        .committed
        .iter()
        .filter_map(|(_, at, height, sent)| {
            let certified = times.certified.get(&(*at, *height))?;
            Some(certified.duration_since(*sent).as_secs_f64() * 1_000.0)
        })
        .collect();
    let copies = (validators - 1) as f64;
    let syncs = (syncs(&cluster) - syncs_before) as f64 / heights as f64 / cluster.running().count() as f64;
    let wire_bytes = (wire(&cluster) - wire_before) as f64;
    let frames_to_impostor = impostor.map(Impostor::stop);
    let rejoin = rejoin(&mut cluster, is_away)?;
    // A validator that is far away receives the last blocks a little later.
    let agree = wait_until(|| cluster.agrees());
    let result = json!({
        "validators": validators,
        "place": format!("{place:?}"),
        "trouble": format!("{trouble:?}"),
        "open_offers": open_offers,
        "offered": total,
        "committed": times.committed.len(),
        "transactions_per_second": times.committed.len() as f64 / seconds,
        "superblocks": heights,
        "commit_ms": percentiles(&mut commit),
        "certificate_ms": percentiles(&mut certificate),
        "wire_bytes_over_bound": wire_bytes / (bytes as f64 * copies),
        "vote_log_syncs_per_superblock": syncs,
        "processor_us_per_transaction_and_validator": {
            "consensus_and_transport": of(&["consensus", "transport", "links", "archive"]),
            "signatures": of(&["verifier", "intake"]),
            "execution": of(&["executor", "apply", "publisher", "roots"]),
        },
        "frames_to_impostor": frames_to_impostor,
        "rejoin": rejoin,
        "agree": agree,
    });
    Ok(result)
}

pub(crate) fn percentiles(values: &mut [f64]) -> Value {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values.get(((values.len() as f64 * share) as usize).min(values.len().saturating_sub(1)));
    json!({"p50": at(0.5), "p99": at(0.99), "max": values.last()})
}

/// Waits for at most a minute; returns whether the condition was met.
pub(crate) fn wait_until(done: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(60) {
        if done() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

fn height(cluster: &Cluster) -> u64 {
    cluster.running().map(|node| node.read(ledger::Ledger::height)).max().unwrap_or(0)
}

/// Bytes of UDP payload that all validators have sent.
pub(crate) fn wire(cluster: &Cluster) -> u64 {
    let of = |node: &Exchange| {
        let me = node.status().map_or(0, |status| status.me);
        let peers = (0..cluster.nodes.len() as u8).filter(|peer| *peer != me);
        peers.filter_map(|peer| Some(node.transport()?.counters(peer).wire_sent)).sum::<u64>()
    };
    cluster.running().map(of).sum()
}

fn syncs(cluster: &Cluster) -> u64 {
    cluster.running().map(Exchange::vote_log_syncs).sum()
}

/// Sends offers that rest, each part when the one before is in the book.
fn fill(cluster: &Cluster, traders: u64, offers: u64) {
    let nodes: Vec<&Exchange> = cluster.running().collect();
    for from in (0..offers).step_by(FILL as usize) {
        let sent = resting(&cluster.identity(), traders, from, FILL.min(offers - from));
        for (node, part) in nodes.iter().zip(sent.chunks(sent.len().div_ceil(nodes.len()))) {
            drop(node.submit(part.to_vec(), false));
        }
        let filled = (from + sent.len() as u64) as usize;
        wait_until(|| nodes.iter().all(|node| node.read(|ledger| ledger.book().len()) >= filled));
    }
}

/// Sends all transactions at the rate, and waits until they are certified.
fn load(cluster: &Cluster, sent: &[Transaction], rate: u64, last_is_away: bool) -> Times {
    let nodes: Vec<&Exchange> = cluster.running().collect();
    let live = cluster.nodes.len() - usize::from(last_is_away);
    let times = Mutex::new(Times::default());
    let times = &times;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (index, node) in nodes.iter().enumerate() {
            let over = &over;
            let mut blocks = node.subscribe();
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    match blocks.try_recv() {
                        Ok(block) => note(times, index, &block),
                        Err(_) => std::thread::sleep(Duration::from_micros(500)),
                    }
                }
            });
            scope.spawn(move || {
                let mut seen = node.certified();
                while !over.load(Ordering::Relaxed) {
                    let now = node.certified();
                    let mut times = times.lock().expect("no thread panics");
                    times.certified.extend((seen + 1..=now).map(|height| ((index, height), Instant::now())));
                    drop(times);
                    seen = now;
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
        }
        send(&nodes[..live], sent, rate, times);
        wait_until(|| {
            let times = times.lock().expect("no thread panics");
            times.committed.len() >= sent.len()
                && times.committed.iter().all(|(_, at, height, _)| times.certified.contains_key(&(*at, *height)))
        });
        over.store(true, Ordering::Relaxed);
    });
    std::mem::take(&mut times.lock().expect("no thread panics"))
}

/// Each account uses one validator.
fn send(nodes: &[&Exchange], sent: &[Transaction], rate: u64, times: &Mutex<Times>) {
    let begun = Instant::now();
    let mut next = 0;
    while next < sent.len() {
        let due = ((begun.elapsed().as_secs_f64() * rate as f64) as usize).min(sent.len());
        let mut parts: Vec<Vec<Transaction>> = vec![Vec::new(); nodes.len()];
        {
            let mut times = times.lock().expect("no thread panics");
            for (number, transaction) in sent.iter().enumerate().take(due).skip(next) {
                times.sent.insert(transaction.id(), Instant::now());
                parts[number % nodes.len()].push(transaction.clone());
            }
        }
        next = due;
        for (node, part) in nodes.iter().zip(parts).filter(|(_, part)| !part.is_empty()) {
            // Transactions that a full queue refuses count as not committed.
            drop(node.submit(part, false));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn note(times: &Mutex<Times>, index: usize, block: &CommittedBlock) {
    let mut times = times.lock().expect("no thread panics");
    let now = Instant::now();
    for (_, id, outcome) in block.outcomes.iter().filter(|(_, _, outcome)| outcome.refusal().is_none()) {
        let _ = outcome;
        // The first notification counts: all validators commit it.
        if let Some(sent) = times.sent.remove(id) {
            let ms = now.duration_since(sent).as_secs_f64() * 1_000.0;
            times.committed.push((ms, index, block.summary.height, sent));
        }
    }
}

/// Starts the validator that was down and waits until it has the height of the others.
fn rejoin(cluster: &mut Cluster, was_away: bool) -> Result<Value, ExchangeError> {
    if !was_away {
        return Ok(Value::Null);
    }
    let behind = height(cluster);
    let begun = Instant::now();
    cluster.start_one(cluster.nodes.len() - 1)?;
    wait_until(|| cluster.agrees());
    Ok(json!({"blocks": behind, "seconds": begun.elapsed().as_secs_f64()}))
}

/// Processor time of this process's threads by name, in seconds.
pub(crate) fn processor() -> HashMap<String, f64> {
    let mut times = HashMap::new();
    let Ok(tasks) = std::fs::read_dir(Path::new("/proc/self/task")) else { return times };
    for task in tasks.flatten() {
        let read = |file: &str| std::fs::read_to_string(task.path().join(file));
        let (Ok(name), Ok(spent)) = (read("comm"), read("schedstat")) else { continue };
        // Nanoseconds; `stat` counts in ticks of ten milliseconds, too coarse for a short run.
        let nanoseconds = spent.split(' ').next().and_then(|count| count.parse::<f64>().ok()).unwrap_or(0.0);
        *times.entry(name.trim_end().into()).or_insert(0.0) += nanoseconds * 1e-9;
    }
    times
}
