//! Frames between validators on loopback: throughput and processor time of bulk, round trips of votes alone and
//! concurrent with bulk, and the traffic of superblocks.
//!
//! All validators are in this process, so processor time is that of both ends: divided by the bytes sent, it is the
//! cost of sending a byte at one validator plus receiving it at another.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Instant;

use crate::measurement::{BenchResult, BenchShown, BenchSteps, Measurement, count};
use primitives::{Digest, SecretKey};
use serde_json::{Value, json};
use sockets::free_address;
use transport::{Event, LinkStream, Peer, Transport, TransportError, TransportSettings};

/// Frames between validators on loopback: bulk, votes alone and concurrent with bulk, superblocks.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  walras-lab bench transport --json
  walras-lab bench transport --frame-bytes 4000000 --validators 10")]
pub struct TransportOptions {
    /// Bytes of a bulk frame.
    #[arg(long, default_value_t = 750_000, value_parser = count(1..=64 << 20))]
    pub frame_bytes: usize,
    /// Bulk frames of a run.
    #[arg(long, default_value_t = 2_000, value_parser = count(1..))]
    pub frames: usize,
    /// Round trips of votes in a run.
    #[arg(long, default_value_t = 5_000, value_parser = count(1..))]
    pub round_trips: usize,
    /// Validators that exchange superblocks.
    #[arg(long, default_value_t = 4, value_parser = count(2..=64))]
    pub validators: usize,
    /// Superblocks.
    #[arg(long, default_value_t = 100, value_parser = count(1..))]
    pub heights: usize,
}

impl Measurement for TransportOptions {
    fn measured(self, say: &mut BenchSteps) -> BenchResult {
        Ok(BenchShown::Figures(run(&self, say)?))
    }
}

/// Bytes of a turn of votes.
const VOTE_BYTES: usize = 600;
/// Frames of votes that each validator sends to each other for a superblock.
const VOTES_PER_HEIGHT: usize = 5;
/// Bytes of a transaction, for figures per transaction.
const TRANSACTION_BYTES: f64 = 200.0;
/// Ticks per second of the kernel's accounting.
const TICKS: f64 = 100.0;

/// Transports that are connected with one another.
struct Net(Vec<(Transport, Receiver<Event>)>);

impl Net {
    fn connected(size: usize, frame_bytes: usize) -> Result<Net, TransportError> {
        let secret = |index: usize| SecretKey::from_seed([index as u8 + 1; 32]);
        let addresses: Vec<SocketAddr> = (0..size).map(|_| free_address().expect("loopback has free ports")).collect();
        let peer =
            |(index, address): (usize, &SocketAddr)| Peer { key: secret(index).public(), address: address.to_string() };
        let peers: Vec<Peer> = addresses.iter().enumerate().map(peer).collect();
        let start = |me: usize| {
            let (events, taken) = sync_channel(1024);
            let settings = TransportSettings {
                network: Digest([1; 32]),
                me: me as u8,
                listen: addresses[me],
                peers: peers.clone(),
                secret: secret(me),
                frame_bytes_max: frame_bytes,
                bulk_bytes_waiting_max: usize::MAX,
                clock: || 0,
            };
            Ok((Transport::start(settings, events)?, taken))
        };
        let net = Net((0..size).map(start).collect::<Result<_, TransportError>>()?);
        for (_, events) in &net.0 {
            let up = events.iter().filter(|event| matches!(event, Event::Up { .. }));
            up.take(size - 1).for_each(drop);
        }
        Ok(net)
    }

    fn send(&self, from: usize, to: usize, stream: LinkStream, frame: &Arc<[u8]>) {
        self.0[from].0.send(to as u8, stream, frame.clone());
    }

    /// Takes events of one transport until this many frames of a stream have arrived.
    fn receive(&self, at: usize, stream: LinkStream, frames: usize) {
        let of_class = |event: &Event| matches!(event, Event::Frame { stream: c, .. } if *c == stream);
        self.0[at].1.iter().filter(of_class).take(frames).for_each(drop);
    }
}

/// Processor seconds of this process.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |field: usize| fields.get(field).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / TICKS
}

/// Wall and processor seconds of an action.
fn timed(act: impl FnOnce()) -> (f64, f64) {
    let (begun, used) = (Instant::now(), processor_seconds());
    act();
    (begun.elapsed().as_secs_f64(), processor_seconds() - used)
}

/// Runs everything; `say` is called with each step.
///
/// # Errors
/// If a transport does not start.
pub fn run(options: &TransportOptions, say: &mut dyn FnMut(&str)) -> Result<Value, TransportError> {
    say("bulk");
    let bulk = bulk(options)?;
    say("votes");
    let alone = round_trips(options, false)?;
    say("votes beside bulk");
    let beside = round_trips(options, true)?;
    say("superblocks");
    let superblocks = superblocks(options)?;
    Ok(json!({
        "bulk": bulk,
        "votes_round_trip_us": { "alone": alone, "beside_bulk": beside },
        "superblocks": superblocks,
    }))
}

fn bulk(options: &TransportOptions) -> Result<Value, TransportError> {
    let net = Net::connected(2, options.frame_bytes)?;
    let frame: Arc<[u8]> = vec![7; options.frame_bytes].into();
    let (seconds, used) = timed(|| {
        (0..options.frames).for_each(|_| net.send(0, 1, LinkStream::Bulk, &frame));
        net.receive(1, LinkStream::Bulk, options.frames);
    });
    let megabytes = (options.frames * options.frame_bytes) as f64 / 1e6;
    let wire = net.0[0].0.counters(1).wire_sent as f64 / 1e6;
    Ok(json!({
        "megabytes": megabytes,
        "megabytes_per_second": megabytes / seconds,
        "processor_ms_per_megabyte": used * 1e3 / megabytes,
        "wire_per_payload": wire / megabytes,
    }))
}

/// Microseconds from a vote to its answer: the median and the 99th percentile.
fn round_trips(options: &TransportOptions, beside_bulk: bool) -> Result<Value, TransportError> {
    let mut net = Net::connected(2, options.frame_bytes)?;
    let [(asking, answers), (answering, questions)] = &mut net.0[..] else { unreachable!("there are two") };
    let bulk: Arc<[u8]> = vec![7; options.frame_bytes].into();
    let vote: Arc<[u8]> = vec![1; VOTE_BYTES].into();
    let is_vote = |event: &Event| matches!(event, Event::Frame { stream: LinkStream::Votes, .. });
    let mut bulk_frames = 0;
    let mut times: Vec<f64> = Vec::with_capacity(options.round_trips);
    std::thread::scope(|scope| {
        let answer = vote.clone();
        scope.spawn(move || {
            let votes = questions.iter().filter(is_vote).take(options.round_trips);
            votes.for_each(|_| answering.send(0, LinkStream::Votes, answer.clone()));
        });
        for _ in 0..options.round_trips {
            // Some bulk is always in flight, and never much.
            while beside_bulk && asking.counters(1).bulk_sent.frames + 4 > bulk_frames {
                asking.send(1, LinkStream::Bulk, bulk.clone());
                bulk_frames += 1;
            }
            let begun = Instant::now();
            asking.send(1, LinkStream::Votes, vote.clone());
            answers.iter().find(is_vote).expect("the transport runs");
            times.push(begun.elapsed().as_secs_f64() * 1e6);
        }
    });
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    Ok(json!({ "p50": at(0.5), "p99": at(0.99) }))
}

/// Each validator sends its sub-block and its votes to all others, height by height.
fn superblocks(options: &TransportOptions) -> Result<Value, TransportError> {
    let net = Net::connected(options.validators, options.frame_bytes)?;
    let frame: Arc<[u8]> = vec![7; options.frame_bytes].into();
    let vote: Arc<[u8]> = vec![1; VOTE_BYTES].into();
    let others = |me: usize| (0..options.validators).filter(move |to| *to != me);
    let (seconds, used) = timed(|| {
        for _ in 0..options.heights {
            for me in 0..options.validators {
                others(me).for_each(|to| net.send(me, to, LinkStream::Bulk, &frame));
            }
            for _ in 0..VOTES_PER_HEIGHT {
                for me in 0..options.validators {
                    others(me).for_each(|to| net.send(me, to, LinkStream::Votes, &vote));
                }
            }
            let each = options.validators - 1;
            for me in 0..options.validators {
                let frames = net.0[me].1.iter().filter(|event| matches!(event, Event::Frame { .. }));
                frames.take(each * (1 + VOTES_PER_HEIGHT)).for_each(drop);
            }
        }
    });
    let payload = (options.heights * options.validators * options.frame_bytes) as f64;
    let transactions = payload / TRANSACTION_BYTES;
    Ok(json!({
        "validators": options.validators,
        "transactions": transactions,
        "transactions_per_second": transactions / seconds,
        "processor_us_per_transaction_and_validator": used * 1e6 / transactions / options.validators as f64,
    }))
}
