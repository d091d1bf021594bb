//! Honest payments beside floods of what quotas, turns and pace bound: four validators on loopback, and one flood after
//! another at one of them.
//!
//! Eight clients of addresses of their own pay one after the other, two at each validator, and wait until each payment
//! is committed. A flood comes from one other address. What is measured is how long an honest payment takes, and how
//! many heights there are in an interval: neither may depend on what others send.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use node::{Answer, Awaited, Exchange, ExchangeError};
use primitives::{
    Address, AssetId, ClientId, Digest, ExactSide, Life, OfferPlace, Operation, Price, Sequence, SessionCap,
    SessionOperation, SessionScope, SessionTerms, Signature, SignedBy, Transaction, session_possession_bytes,
};
use serde_json::{Value, json};
use sockets::Client;

use crate::cluster::{Cluster, ClusterSettings, signed, trader};
use crate::measurement::{BenchResult, BenchShown, BenchSteps, Measurement};

/// Honest clients.
const CLIENTS: u64 = 8;
/// Pause of a client between two payments.
const PAUSE: Duration = Duration::from_millis(10);
/// Milliseconds between two heights.
const INTERVAL_MS: u64 = 100;
/// The first account of the flood, and how many it has.
const FLOODERS: (u64, u64) = (1_000, 128);
/// Forged copies in a batch.
const FORGED: u64 = 10_000;

/// What is sent beside the payments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flood {
    /// Nothing.
    Quiet,
    /// Stops of session keys, by the hundred.
    Stops,
    /// Orders for an exact amount that nothing meets.
    Exacts,
    /// Offers, and cancels of each.
    Cancels,
    /// Batches of copies whose signatures are false.
    Forged,
}

impl Flood {
    /// All of them, the quiet one first.
    const ALL: [Flood; 5] = [Flood::Quiet, Flood::Stops, Flood::Exacts, Flood::Cancels, Flood::Forged];

    /// Its name in a table.
    fn name(self) -> &'static str {
        match self {
            Flood::Quiet => "none",
            Flood::Stops => "stops of session keys",
            Flood::Exacts => "exact orders",
            Flood::Cancels => "offers and cancels",
            Flood::Forged => "forged copies",
        }
    }
}

/// Honest payments beside floods of what quotas, turns and pace bound, at four validators.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  walras-lab bench floods --seconds 20 --json")]
pub struct FloodsOptions {
    /// Seconds of each flood.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
}

impl Measurement for FloodsOptions {
    fn measured(self, say: &mut BenchSteps) -> BenchResult {
        let directory = tempfile::tempdir()?;
        Ok(BenchShown::Figures(run(directory.path(), self.seconds, say)?))
    }
}

/// Runs each flood for so many seconds. For each: transactions that it sent, honest payments that were committed, the
/// median and the 99th percentile of milliseconds until one is, and heights for each interval that passed.
///
/// # Errors
/// [`ExchangeError`] if a validator does not start.
pub fn run(directory: &Path, seconds: u64, say: &mut dyn FnMut(&str)) -> Result<Value, ExchangeError> {
    let mut settings = ClusterSettings::local(4);
    settings.config.blocks.interval_ms = INTERVAL_MS;
    let cluster = Cluster::start(settings, directory)?;
    let mut sequences = Sequences { honest: vec![0; CLIENTS as usize], flood: vec![0; FLOODERS.1 as usize] };
    open_sessions(&cluster, &mut sequences);
    let mut figures = serde_json::Map::new();
    for flood in Flood::ALL {
        say(&format!("{} for {seconds} s", flood.name()));
        figures.insert(flood.name().into(), measure(&cluster, flood, Duration::from_secs(seconds), &mut sequences));
    }
    Ok(Value::Object(figures))
}

/// The last number of each account.
struct Sequences {
    honest: Vec<Sequence>,
    flood: Vec<Sequence>,
}

fn client(number: u8) -> Client {
    Client::at(IpAddr::V4(Ipv4Addr::new(127, 0, 1, number)))
}

fn measure(cluster: &Cluster, flood: Flood, time: Duration, sequences: &mut Sequences) -> Value {
    let over = AtomicBool::new(false);
    let network = cluster.identity();
    let height = || cluster.running().next().map_or(0, |node| node.read(ledger::Ledger::height));
    let (begun, first) = (Instant::now(), height());
    let (mut latencies, sent) = std::thread::scope(|scope| {
        let payers: Vec<_> = (0..CLIENTS)
            .zip(&mut sequences.honest)
            .map(|(number, sequence)| (number, sequence, &over))
            .map(|(number, sequence, over)| scope.spawn(move || pay_until(cluster, number, sequence, over)))
            .collect();
        let flooder = scope.spawn(|| flood_until(cluster, flood, &network, &mut sequences.flood, &over));
        std::thread::sleep(time);
        over.store(true, Ordering::Release);
        let latencies: Vec<f64> = payers.into_iter().flat_map(|payer| payer.join().expect("it pays")).collect();
        (latencies, flooder.join().expect("it floods"))
    });
    let intervals = begun.elapsed().as_secs_f64() * 1_000.0 / INTERVAL_MS as f64;
    latencies.sort_unstable_by(f64::total_cmp);
    let at = |part: f64| latencies.get((latencies.len() as f64 * part) as usize).copied().unwrap_or(f64::NAN);
    let heights = (height() - first) as f64 / intervals;
    json!({
        "sent": sent,
        "payments": latencies.len(),
        "p50_ms": at(0.5),
        "p99_ms": at(0.99),
        "heights_per_interval": heights,
    })
}

/// Pays until the time is over; returns how long each payment took, in milliseconds.
fn pay_until(cluster: &Cluster, number: u64, sequence: &mut Sequence, over: &AtomicBool) -> Vec<f64> {
    let node = cluster.nodes[number as usize % cluster.nodes.len()].as_ref().expect("it runs");
    let mut latencies = Vec::new();
    while !over.load(Ordering::Acquire) {
        *sequence += 1;
        let until = node.read(ledger::Ledger::height) + 10_000;
        let operation = Operation::Pay { to: Address([7; 20]), asset: AssetId(1), amount: *sequence };
        let payment = signed(&cluster.identity(), number, *sequence, until, operation);
        let begun = Instant::now();
        if is_durable(node, client(number as u8 + 1), payment) {
            latencies.push(begun.elapsed().as_secs_f64() * 1_000.0);
        }
        std::thread::sleep(PAUSE);
    }
    latencies
}

/// Sends a transaction, and waits until its block is durable; false if it is refused, or another one takes its place.
fn is_durable(node: &Exchange, from: Client, transaction: Transaction) -> bool {
    let answers = node.submit_of(from, vec![transaction], true).map(|answers| answers.blocking_recv());
    let Ok(Ok(answers)) = answers else { return false };
    match answers.into_iter().next() {
        Some(Answer::Committed(..)) => true,
        Some(Answer::Pending(_, Some(durable))) => matches!(durable.blocking_recv(), Ok(Awaited::Committed(..))),
        _ => false,
    }
}

/// Sends a flood to the first validator until the time is over; returns the number of its transactions.
fn flood_until(
    cluster: &Cluster,
    flood: Flood,
    network: &Digest,
    sequences: &mut [Sequence],
    over: &AtomicBool,
) -> u64 {
    let node = cluster.nodes[0].as_ref().expect("it runs");
    let mut sent = 0;
    while flood != Flood::Quiet && !over.load(Ordering::Acquire) {
        let height = node.read(ledger::Ledger::height);
        let wave = wave(flood, network, height, sequences);
        sent += wave.len() as u64;
        // What is refused was sent all the same.
        let answers = node.submit_of(client(99), wave, false).map(|answers| answers.blocking_recv());
        if answers.is_err() {
            std::thread::sleep(PAUSE);
        }
    }
    sent
}

/// The next transactions of a flood.
fn wave(flood: Flood, network: &Digest, height: u64, sequences: &mut [Sequence]) -> Vec<Transaction> {
    let until = height + 200;
    if flood == Flood::Forged {
        let operation = Operation::Pay { to: Address([9; 20]), asset: AssetId(1), amount: 1 };
        let mut copy = signed(network, FLOODERS.0, 1 << 20, until, operation);
        if let SignedBy::Key { signature, .. } = &mut copy.signed_by {
            *signature = Signature([7; 64]);
        }
        return (0..FORGED)
            .map(|at| {
                let mut one = copy.clone();
                one.body.sequence += at;
                one
            })
            .collect();
    }
    let mut made = Vec::new();
    for (number, last) in (FLOODERS.0..).zip(sequences) {
        for _ in 0..8 {
            *last += 1;
            made.push(signed(network, number, *last, until, operation_of(flood, *last)));
        }
    }
    made
}

fn operation_of(flood: Flood, sequence: Sequence) -> Operation {
    let (sell, buy) = (AssetId(2), AssetId(3));
    match flood {
        Flood::Stops => Operation::Session(Box::new(SessionOperation::Alive { slot: 1, through: 0 })),
        Flood::Exacts => Operation::exact(sell, buy, ExactSide::Sell, 5_000, 1 << 40),
        _ if sequence.is_multiple_of(2) => {
            let offer = OfferPlace { sell, buy, limit: far(), offer: sequence - 1 };
            Operation::Cancel(vec![offer].into())
        }
        _ => {
            Operation::CreateOffer { sell, buy, amount: 5_000, limit: far(), life: Life::Rests, client: ClientId::NONE }
        }
    }
}

/// A limit that nothing meets.
fn far() -> Price {
    Price::from_f64(1_000.0).expect("a price")
}

/// Gives each account of the flood a session key, and waits until all have it.
fn open_sessions(cluster: &Cluster, sequences: &mut Sequences) {
    let network = cluster.identity();
    let node = cluster.nodes[0].as_ref().expect("it runs");
    let opens = (FLOODERS.0..).zip(&mut sequences.flood).map(|(number, last)| {
        *last += 1;
        let (account, key) = (trader(number).public().address(), trader(number + (1 << 32)));
        let caps = [SessionCap { asset: AssetId(0), units: 1_000_000 }].into();
        let (slot, scope, until, alive) = (1, SessionScope::Trade, 1_000_000, 1_000_000);
        let terms = SessionTerms { slot, key: key.public(), scope, until, alive, caps };
        let possession = key.sign(&session_possession_bytes(&network, &account, slot, &terms.key));
        let operation = Operation::Session(Box::new(SessionOperation::Authorize { terms, possession }));
        signed(&network, number, *last, 200, operation)
    });
    let opens: Vec<Transaction> = opens.collect();
    // A key that is not opened makes its stops refused, which the figures show.
    let answers = node.submit_of(client(99), opens, true).map(|answers| answers.blocking_recv());
    for answer in answers.into_iter().flatten().flatten() {
        if let Answer::Pending(_, Some(durable)) = answer {
            drop(durable.blocking_recv());
        }
    }
}
