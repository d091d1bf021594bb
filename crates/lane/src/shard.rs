//! A shard at work: its socket, its log and the threads between them.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use payments::{
    BlsSecretKey, ContestedOutput, HomeEpoch, KeyShare, LaneEffect, LaneLog, LanePeer, LaneSettings, LaneValidator,
    LogOwner, MuteReason, Output, OutputId, PaymentBody, Verdict, request_bytes_max,
};
use primitives::{Digest, SecretKey};
use store::Disk;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::client::{LaneDirectory, highest_told};
use crate::door::listen as listen_at;
use crate::log::{FileLog, LogError};
use crate::machine::{Machine, sync};
use crate::sockets::accept;
use crate::tls::acceptor;

/// Batches of requests that wait for the machine; readers wait when there are so many.
const BATCHES: usize = 256;
/// How long connections may take to close.
const CLOSE: Duration = Duration::from_secs(2);
/// Bytes of the largest batch of a broker.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// What a shard allows.
#[derive(Clone, Copy, Debug)]
pub struct ShardLimits {
    /// Connections in all.
    pub connections: usize,
    /// Connections of one address.
    pub connections_of_address: usize,
    /// How long a connection may say nothing.
    pub idle: Duration,
    /// Bytes of replies that may wait for one connection; it is closed if it does not read.
    pub reply_bytes: usize,
    /// An open tree is closed after this time.
    pub tick: Duration,
}

impl Default for ShardLimits {
    /// 1,024 connections, 64 of one address, 60 s, 4 MiB, 2 ms.
    fn default() -> ShardLimits {
        ShardLimits {
            connections: 1_024,
            connections_of_address: 64,
            idle: Duration::from_secs(60),
            reply_bytes: 4 << 20,
            tick: Duration::from_millis(2),
        }
    }
}

/// What a shard hears of the ledger, from certified blocks.
#[derive(Clone, Debug)]
pub enum ShardNews {
    /// The lane epoch.
    Epoch(HomeEpoch),
    /// The ledger created an output with this shard's home.
    Backed(OutputId, Output),
    /// Whether the lane is halted.
    Halted(bool),
    /// A case about an output is open.
    CaseOpened(ContestedOutput),
    /// The candidates of an open case are fixed.
    CandidatesFixed(OutputId, Vec<Arc<PaymentBody>>),
    /// All shards of this validator have barred the candidates; see [`payments::ViewParts`].
    AllBarred(OutputId, BTreeSet<Digest>),
    /// A case is closed.
    CaseRuled(OutputId, Verdict),
}

/// What a shard is started with.
pub struct ShardSetup {
    /// Its rules, committee and place.
    pub settings: LaneSettings,
    /// Its registered key.
    pub key: SecretKey,
    /// Its registered BLS key, for clients who ask for such answers.
    pub bls_key: Option<BlsSecretKey>,
    /// The validator's share of the group's key of this home, for the same.
    pub share: Option<KeyShare>,
    /// Where it listens.
    pub listen: SocketAddr,
    /// Whether it speaks TLS there, under its key.
    pub tls: bool,
    /// What the ledger created with this home so far.
    pub backed: Vec<(OutputId, Output)>,
    /// The committee's shards, to be asked how far this one had signed; `None` if there is nobody to ask.
    pub peers: Option<LaneDirectory>,
    /// What it allows.
    pub limits: ShardLimits,
    /// Hears what is to be posted to the ledger ([`LaneEffect::Vote`], [`LaneEffect::View`]), told to the other shards
    /// ([`LaneEffect::Barred`]) or done with the shard ([`LaneEffect::Destroy`]). It must not wait.
    pub post: Box<dyn FnMut(LaneEffect) + Send>,
}

/// Why a shard cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ShardError {
    /// Its log.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The directory.
    #[error("{0}: {1}")]
    Directory(String, std::io::Error),
    /// Another process has the directory.
    #[error("{0} is used by another process: one process a log")]
    InUse(String),
    /// The log does not allow it to sign.
    #[error("{place}: {reason}. The shard stays mute until its next lane epoch; the others go on without it")]
    Mute {
        /// The log.
        place: String,
        /// Why.
        reason: MuteReason,
    },
    /// The key does not serve TLS.
    #[error("the key of the shard: {0}")]
    Tls(#[from] rustls::Error),
    /// A thread or a runtime.
    #[error("no thread: {0}")]
    Thread(std::io::Error),
}

/// What a shard has done since it started.
#[derive(Debug, Default)]
pub struct ShardCounts {
    /// Requests that came.
    pub requests: AtomicU64,
    /// Answers sent.
    pub answers: AtomicU64,
    /// Refusals sent.
    pub refusals: AtomicU64,
    /// Syncs of the log.
    pub syncs: AtomicU64,
    /// Connections now.
    pub connections: AtomicUsize,
    /// Connections that were closed because nobody read the replies, or refused because there were too many.
    pub closed: AtomicU64,
    /// Times that it could not have its address.
    pub listen_failures: AtomicU64,
    /// Whether it has had its address.
    pub is_listening: AtomicBool,
}

/// A shard at work. It stops when it is dropped.
#[derive(Debug)]
pub struct LaneShard {
    address: SocketAddr,
    events: mpsc::Sender<Event>,
    counts: Arc<ShardCounts>,
    sockets: Option<tokio::runtime::Runtime>,
    threads: Vec<JoinHandle<()>>,
}

/// What the machine hears.
pub(crate) enum Event {
    Opened(LanePeer, Link),
    Requests(LanePeer, Vec<(u32, Bytes)>),
    Closed(LanePeer),
    Synced(std::io::Result<u64>),
    News(ShardNews),
    /// Enough validators have told how far this shard had signed: nowhere beyond its log, or it is mute.
    Begin(Option<MuteReason>),
    Stop,
}

/// The machine's end of a connection.
pub(crate) struct Link {
    pub(crate) replies: mpsc::Sender<Vec<u8>>,
    pub(crate) waiting: Arc<AtomicUsize>,
}

impl LaneShard {
    /// Opens the log of a shard, listens, and begins to sign once enough of its peers have told how far the shard had
    /// signed; at once where there are none to ask. If its address cannot be had it hears of the ledger, votes, and
    /// tries again for as long as it runs. Not to be called, nor the shard dropped, inside an asynchronous runtime.
    ///
    /// # Errors
    /// [`ShardError`] says what keeps it from starting.
    ///
    /// # Panics
    /// If the settings do not fit together, or a key is not the registered one.
    pub fn start<D: Disk>(setup: ShardSetup, disk: &D) -> Result<LaneShard, ShardError> {
        let ShardSetup { settings, key, bls_key, share, listen, tls, backed, peers, limits, post } = setup;
        let tls = if tls { Some(acceptor(&key)?) } else { None };
        let directory = |error| ShardError::Directory(disk.place(), error);
        let lock = disk.lock().map_err(directory)?.ok_or_else(|| ShardError::InUse(disk.place()))?;
        let fingerprint_key = disk.entropy().map_err(directory)?;
        let owner = owner(&settings);
        let body_max = request_bytes_max(settings.largest_quorum()).max(BATCH_BYTES_MAX);
        let log = FileLog::open(disk, &owner)?.ok_or_else(|| ShardError::missing(disk, &owner))?;
        let opened = LaneValidator::open(settings, key, fingerprint_key, Some(&log));
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
        let address = first.as_ref().ok().and_then(|listener| listener.local_addr().ok()).unwrap_or(listen);
        let (served, counted) = (events.clone(), counts.clone());
        sockets.spawn(async move {
            let listener = listen_at(first, listen, &counted).await;
            accept(listener, served, counted, tls, limits, body_max).await;
        });
        let spawn = |name: &str, run: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new().name(name.into()).spawn(run).map_err(ShardError::Thread)
        };
        let mut threads = vec![
            spawn("lane-syncer", Box::new(move || sync(&*file, &wanted, &synced, &syncs)))?,
            spawn(
                "lane-machine",
                Box::new(move || {
                    machine.run(heard, positions, backed, limits.tick);
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
        Ok(LaneShard { address, events, counts, sockets: Some(sockets), threads })
    }

    /// Where it listens, or will once it can.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether it still tries to have its address.
    pub fn awaits_address(&self) -> bool {
        self.sockets.is_some() && !self.counts.is_listening.load(Ordering::Acquire)
    }

    /// Lets go of its address and of all connections. What it hears of the ledger it still answers there.
    pub fn stop_listening(&mut self) {
        if let Some(sockets) = self.sockets.take() {
            sockets.shutdown_timeout(CLOSE);
        }
    }

    /// What it has done.
    pub fn counts(&self) -> &ShardCounts {
        &self.counts
    }

    /// Tells it what a certified block says.
    pub fn tell(&self, news: ShardNews) {
        // It has stopped if nobody listens.
        drop(self.events.blocking_send(Event::News(news)));
    }
}

impl Drop for LaneShard {
    fn drop(&mut self) {
        drop(self.events.blocking_send(Event::Stop));
        // Whoever starts the shard again finds its address free.
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

fn owner(settings: &LaneSettings) -> LogOwner {
    LogOwner {
        network: settings.rules.network,
        home: settings.committee.epoch(),
        validator: settings.validator,
        shard: settings.shard,
    }
}
