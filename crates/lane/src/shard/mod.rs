//! A running shard: its socket, its log and the threads between them.

mod door;
mod machine;
mod sockets;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use ::sockets::{Acquaintances, Visit};
use bytes::Bytes;
use payments::{
    BlsSecretKey, KeyShare, LaneEffect, LaneFact, LaneLog, LanePeer, LaneSettings, LaneValidator, LogOwner, MuteReason,
    Output, OutputId, request_bytes_max,
};
use primitives::{Digest, SecretKey};
use store::Disk;
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::client::{LaneDirectory, highest_told};
use crate::log::{FileLog, LogError};
use crate::tls::acceptor;
use door::listen as listen_at;
use machine::{Machine, sync};
use sockets::Server;

/// Batches of requests that may be queued for the machine; readers wait when the queue is full.
const BATCHES: usize = 256;
/// How long connections may take to close.
const CLOSE: Duration = Duration::from_secs(2);
/// Bytes of a broker's largest batch.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// The limits of a shard.
#[derive(Clone, Copy, Debug)]
pub struct ShardLimits {
    /// Total connections.
    pub connections: usize,
    /// Connections of one address that is not known.
    pub connections_of_address: usize,
    /// How long a connection may be idle between two requests.
    pub idle: Duration,
    /// How long a request may take to arrive.
    pub request: Duration,
    /// Bytes of replies that may be pending for one connection; it is closed if it does not read.
    pub reply_bytes: usize,
    /// An open tree is closed after this time.
    pub tick: Duration,
}

impl Default for ShardLimits {
    /// 1,024 connections, 64 of one address, 60 s, 10 s, 4 MiB, 2 ms.
    fn default() -> ShardLimits {
        ShardLimits {
            connections: 1_024,
            connections_of_address: 64,
            idle: Duration::from_secs(60),
            request: Duration::from_secs(10),
            reply_bytes: 4 << 20,
            tick: Duration::from_millis(2),
        }
    }
}

/// What a shard is started with.
pub struct ShardSetup {
    /// Its rules, committee and index.
    pub settings: LaneSettings,
    /// Its registered key.
    pub key: SecretKey,
    /// Its registered BLS key, for clients that ask for such answers.
    pub bls_key: Option<BlsSecretKey>,
    /// The validator's share of the group's key of this home, for clients that ask for such answers.
    pub share: Option<KeyShare>,
    /// The address on which it listens.
    pub listen: SocketAddr,
    /// Whether it uses TLS there, under its key.
    pub tls: bool,
    /// The outputs that the ledger has created with this home so far.
    pub backed: Vec<(OutputId, Output)>,
    /// Outputs with this home that verdicts of certified blocks have proved.
    pub proven: Vec<(OutputId, Output)>,
    /// The committee's shards, which are asked how far this one had signed; `None` if there is no one to ask.
    pub peers: Option<LaneDirectory>,
    /// Its limits.
    pub limits: ShardLimits,
    /// Proxies whose word on their clients counts, and networks that are never shut out. The committee's addresses
    /// belong to them without being listed.
    pub known: Acquaintances,
    /// Receives effects to post to the ledger ([`LaneEffect::Vote`], [`LaneEffect::View`]), to send to the other
    /// shards ([`LaneEffect::Barred`]), and [`LaneEffect::Destroy`]. It must not block. If it loses one, the shard
    /// makes it again when it is told of the case again.
    pub post: Box<dyn FnMut(LaneEffect) + Send>,
}

/// Why a shard cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ShardError {
    /// An error of its log.
    #[error(transparent)]
    Log(#[from] LogError),
    /// An error of the directory.
    #[error("{0}: {1}")]
    Directory(String, std::io::Error),
    /// Another process uses the directory.
    #[error("{0} is used by another process: stop that one, a log belongs to one process")]
    InUse(String),
    /// Because of its log the shard may not sign.
    #[error("{place}: {reason}. The shard signs nothing until its next lane epoch; the other shards continue")]
    Mute {
        /// The log.
        place: String,
        /// The reason.
        reason: MuteReason,
    },
    /// The key cannot be used for TLS.
    #[error("the key of the shard: {0}")]
    Tls(#[from] rustls::Error),
    /// A thread or a runtime could not be started.
    #[error("no thread: {0}")]
    Thread(std::io::Error),
}

/// What a shard has done since it started.
#[derive(Debug, Default)]
pub struct ShardCounts {
    /// Requests received.
    pub requests: AtomicU64,
    /// Answers sent.
    pub answers: AtomicU64,
    /// Refusals sent.
    pub refusals: AtomicU64,
    /// Bytes of the log.
    pub log_bytes: AtomicU64,
    /// Syncs of the log.
    pub syncs: AtomicU64,
    /// Present connections.
    pub connections: AtomicUsize,
    /// Connections that were closed because the client did not read, or refused because there were too many.
    pub closed: AtomicU64,
    /// Connections that were closed because no request came, or one that had begun did not end, in time.
    pub late: AtomicU64,
    /// How often it could not bind its address.
    pub listen_failures: AtomicU64,
    /// Whether it has bound its address.
    pub is_listening: AtomicBool,
}

/// A running shard. It stops when it is dropped.
#[derive(Debug)]
pub struct LaneShard {
    address: SocketAddr,
    /// The payments that its log barred when it was opened.
    barred: BTreeSet<Digest>,
    events: mpsc::Sender<Event>,
    counts: Arc<ShardCounts>,
    sockets: Option<tokio::runtime::Runtime>,
    threads: Vec<JoinHandle<()>>,
}

/// An event for the machine.
pub(crate) enum Event {
    Opened(LanePeer, Link),
    /// Requests of a connection.
    Requests(LanePeer, Vec<(u32, Bytes)>, Turn),
    Closed(LanePeer),
    Synced(std::io::Result<u64>),
    Fact(LaneFact),
    /// Enough validators have reported how far this shard had signed: not beyond its log, or else it is mute.
    Begin(Option<MuteReason>),
    Stop,
}

/// The turn of a batch of requests. Once it is dropped, its connection may send more, and does not wait for it.
pub(crate) struct Turn {
    pub(crate) _permit: OwnedSemaphorePermit,
    pub(crate) _pending: Arc<()>,
}

/// The machine's end of a connection.
pub(crate) struct Link {
    pub(crate) replies: mpsc::Sender<Vec<u8>>,
    pub(crate) waiting: Arc<AtomicUsize>,
    pub(crate) visit: Arc<Visit>,
    /// Its batches of requests that may wait for their turn: one until it has paid.
    pub(crate) room: Arc<Semaphore>,
    /// Whether it has brought a payment that was not known.
    pub(crate) has_brought: bool,
    /// Whether such a payment was signed for it: whoever sent it has money.
    pub(crate) has_paid: bool,
}

impl LaneShard {
    /// Opens the log of a shard, listens, and begins to sign once enough of its peers have reported how far the shard
    /// had signed. At once if there are no peers to ask. If its address is not available, it follows the ledger, votes,
    /// and keeps trying as long as it runs. Do not call this, or drop the shard, inside an asynchronous runtime.
    ///
    /// # Errors
    /// [`ShardError`] gives the reason why it cannot start.
    ///
    /// # Panics
    /// If the settings do not fit together, or a key is not the registered one.
    pub fn start<D: Disk>(setup: ShardSetup, disk: &D) -> Result<LaneShard, ShardError> {
        let ShardSetup { settings, key, bls_key, share, listen, tls, backed, proven, peers, limits, known, post } =
            setup;
        let tls = if tls { Some(acceptor(&key)?) } else { None };
        let directory = |error| ShardError::Directory(disk.place(), error);
        let lock = disk.lock().map_err(directory)?.ok_or_else(|| ShardError::InUse(disk.place()))?;
        let fingerprint_key = disk.entropy().map_err(directory)?;
        let owner = owner(&settings);
        let body_max = request_bytes_max(settings.largest_quorum()).max(BATCH_BYTES_MAX);
        let log = FileLog::open(disk, &owner)?.ok_or_else(|| ShardError::missing(disk, &owner))?;
        let opened = LaneValidator::open(settings, key, fingerprint_key, Some(&log));
        let barred = opened.0.barred();
        let (machine, query) = Machine::new(opened, (bls_key, share), log, &owner, post, limits.reply_bytes)?;
        let length = machine.log.length();

        let (events, heard) = mpsc::channel(BATCHES);
        let (positions, wanted) = std::sync::mpsc::channel();
        let counts = machine.counts.clone();
        let (file, synced, syncs) = (machine.log.file(), events.clone(), counts.clone());
        let sockets = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .thread_name("lane-sockets")
            .build()
            .map_err(ShardError::Thread)?;
        let first = sockets.block_on(TcpListener::bind(listen));
        counts.is_listening.store(first.is_ok(), Ordering::Release);
        let address = first.as_ref().ok().and_then(|listener| listener.local_addr().ok()).unwrap_or(listen);
        let known = Arc::new(with_members(known, peers.as_ref()));
        let server = Server { events: events.clone(), counts: counts.clone(), tls, known, limits, body_max };
        sockets.spawn(async move {
            let listener = listen_at(first, listen, &server.counts).await;
            server.accept(listener).await;
        });
        let spawn = |name: &str, run: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new().name(name.into()).spawn(run).map_err(ShardError::Thread)
        };
        let mut threads = vec![
            spawn("lane-syncer", Box::new(move || sync(&*file, &wanted, &synced, &syncs)))?,
            spawn(
                "lane-machine",
                Box::new(move || {
                    machine.run(heard, positions, [backed, proven], limits.tick);
                    drop(lock);
                }),
            )?,
        ];
        match peers {
            None => drop(events.blocking_send(Event::Begin(None))),
            Some(peers) => {
                let begin = events.clone();
                threads.push(spawn(
                    "lane-positions",
                    Box::new(move || {
                        let highest = highest_told(&peers, query, || begin.is_closed());
                        let reason = highest.filter(|position| *position > length).map(|_| MuteReason::RolledBackLog);
                        drop(begin.blocking_send(Event::Begin(reason)));
                    }),
                )?);
            }
        }
        Ok(LaneShard { address, barred, events, counts, sockets: Some(sockets), threads })
    }

    /// The address on which it listens, or will listen once it can.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The payments that the shard's log bars. The caller must send [`payments::LaneInput::Confirmed`] for each of them
    /// that the ledger has confirmed; otherwise the shard refuses it for ever.
    pub fn barred(&self) -> &BTreeSet<Digest> {
        &self.barred
    }

    /// Whether it is still trying to bind its address.
    pub fn awaits_address(&self) -> bool {
        self.sockets.is_some() && !self.counts.is_listening.load(Ordering::Acquire)
    }

    /// Releases its address and all connections. It still acts on news of the ledger.
    pub fn stop_listening(&mut self) {
        if let Some(sockets) = self.sockets.take() {
            sockets.shutdown_timeout(CLOSE);
        }
    }

    /// Its counts.
    pub fn counts(&self) -> &ShardCounts {
        &self.counts
    }

    /// Passes it a fact of a certified block, or what its validator's other shards have done.
    pub fn tell(&self, fact: LaneFact) {
        // If no one receives this, the shard has stopped.
        drop(self.events.blocking_send(Event::Fact(fact)));
    }
}

impl Drop for LaneShard {
    fn drop(&mut self) {
        drop(self.events.blocking_send(Event::Stop));
        // A shard that is started again must find its address free.
        self.stop_listening();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of a lane shard panicked");
            }
        }
    }
}

impl ShardError {
    fn missing(disk: &impl Disk, owner: &LogOwner) -> ShardError {
        let place = format!("{}, shard {}", disk.place(), owner.shard);
        ShardError::Mute { place, reason: MuteReason::MissingLog }
    }
}

/// The addresses of the committee are known: a shard asks others how far it had signed before it begins.
fn with_members(known: Acquaintances, peers: Option<&LaneDirectory>) -> Acquaintances {
    let addresses = peers.into_iter().flat_map(|peers| peers.addresses.iter().flatten().map(SocketAddr::ip));
    // On loopback everybody has the members' address.
    let addresses = addresses.filter(|address| !address.is_loopback());
    Acquaintances { known: known.known.with(addresses), ..known }
}

fn owner(settings: &LaneSettings) -> LogOwner {
    LogOwner {
        network: settings.rules.network,
        home: settings.committee.epoch(),
        validator: settings.validator,
        shard: settings.shard,
    }
}
