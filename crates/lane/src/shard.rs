//! A shard at work: its socket, its log and the threads between them.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use payments::{
    BlsSecretKey, ContestedOutput, HomeEpoch, LaneEffect, LaneInput, LaneLog, LanePeer, LaneRefusal, LaneSettings,
    LaneValidator, LogOwner, MuteReason, Output, OutputId, PaymentBody, Verdict, request_bytes_max,
};
use primitives::{Digest, SecretKey};
use store::{Disk, DiskFile};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::client::{LaneDirectory, highest_told};
use crate::log::{FileLog, LogError, REWRITTEN};
use crate::wire::{
    HEAD_BYTES, PositionQuery, read_head, write_answer, write_batch_answer, write_bls_answer, write_position,
    write_refusal,
};

/// Batches of requests that wait for the machine; readers wait when there are so many.
const BATCHES: usize = 256;
/// Batches that the machine takes before it answers.
const BATCHES_OF_A_STEP: usize = 64;
/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;
/// Bytes of the largest batch of a broker.
const BATCH_BYTES_MAX: usize = 1 << 20;
/// Chunks of replies that wait for one connection.
const CHUNKS: usize = 1_024;
/// Bytes that may be written and not synced; above, requests are refused as busy. A log is written again as far as this
/// when it is opened.
const UNSYNCED_MAX: u64 = REWRITTEN / 2;

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
    /// Its registered BLS key, for that scheme.
    pub bls_key: Option<BlsSecretKey>,
    /// Where it listens.
    pub listen: SocketAddr,
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
    /// The address.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
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
enum Event {
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
struct Link {
    replies: mpsc::Sender<Vec<u8>>,
    waiting: Arc<AtomicUsize>,
}

impl LaneShard {
    /// Opens the log of a shard, listens, and begins to sign once enough of its peers have told how far the shard had
    /// signed; at once where there are none to ask. Not to be called, nor the shard dropped, inside an asynchronous
    /// runtime.
    ///
    /// # Errors
    /// [`ShardError`] says what keeps it from starting.
    ///
    /// # Panics
    /// If the settings do not fit together, or a key is not the registered one.
    pub fn start<D: Disk>(setup: ShardSetup, disk: &D) -> Result<LaneShard, ShardError> {
        let ShardSetup { settings, key, bls_key, listen, backed, peers, limits, post } = setup;
        let directory = |error| ShardError::Directory(disk.place(), error);
        let lock = disk.lock().map_err(directory)?.ok_or_else(|| ShardError::InUse(disk.place()))?;
        let fingerprint_key = disk.entropy().map_err(directory)?;
        let owner = owner(&settings);
        let body_max = request_bytes_max(settings.largest_quorum()).max(BATCH_BYTES_MAX);
        let log = FileLog::open(disk, &owner)?.ok_or_else(|| ShardError::missing(disk, &owner))?;
        let opened = LaneValidator::open(settings, key, fingerprint_key, Some(&log));
        let (machine, query) = Machine::new(opened, bls_key, log, &owner, post)?;
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
        let listener =
            sockets.block_on(TcpListener::bind(listen)).map_err(|error| ShardError::Listen(listen, error))?;
        let address = listener.local_addr().map_err(|error| ShardError::Listen(listen, error))?;
        sockets.spawn(accept(listener, events.clone(), counts.clone(), limits, body_max));
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
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
        if let Some(sockets) = self.sockets.take() {
            sockets.shutdown_background();
        }
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

/// The thread that makes the log durable. What waits meanwhile is served by one sync.
fn sync(
    file: &impl DiskFile,
    wanted: &std::sync::mpsc::Receiver<u64>,
    synced: &mpsc::Sender<Event>,
    counts: &ShardCounts,
) {
    while let Ok(first) = wanted.recv() {
        let position = wanted.try_iter().last().unwrap_or(first);
        let result = file.sync().map(|()| position);
        counts.syncs.fetch_add(1, Ordering::Relaxed);
        let failed = result.is_err();
        if synced.blocking_send(Event::Synced(result)).is_err() || failed {
            return;
        }
    }
}

/// Whoever drives the validator.
struct Machine<D: Disk> {
    post: Box<dyn FnMut(LaneEffect) + Send>,
    index: u8,
    validator: LaneValidator,
    log: FileLog<D>,
    links: HashMap<LanePeer, Link>,
    /// Replies of this step, by connection.
    out: HashMap<LanePeer, Vec<u8>>,
    has_begun: bool,
    durable: u64,
    counts: Arc<ShardCounts>,
}

impl<D: Disk> Machine<D> {
    fn new(
        (mut validator, intact): (LaneValidator, Option<u64>),
        bls_key: Option<BlsSecretKey>,
        mut log: FileLog<D>,
        owner: &LogOwner,
        post: Box<dyn FnMut(LaneEffect) + Send>,
    ) -> Result<(Machine<D>, PositionQuery), ShardError> {
        let Some(intact) = intact else {
            let reason = validator.muted().unwrap_or(MuteReason::MissingLog);
            return Err(ShardError::Mute { place: log.place().into(), reason });
        };
        log.cut(intact)?;
        if let Some(key) = bls_key {
            validator = validator.with_bls(key);
        }
        let query = PositionQuery { home: owner.home, validator: owner.validator, shard: owner.shard };
        let machine = Machine {
            post,
            index: owner.validator,
            validator,
            log,
            links: HashMap::new(),
            out: HashMap::new(),
            has_begun: false,
            durable: intact,
            counts: Arc::new(ShardCounts::default()),
        };
        Ok((machine, query))
    }

    fn run(
        mut self,
        mut heard: mpsc::Receiver<Event>,
        positions: std::sync::mpsc::Sender<u64>,
        backed: Vec<(OutputId, Output)>,
        tick: Duration,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a timer");
        backed.into_iter().for_each(|(id, output)| self.step(LaneInput::Backed(id, output), &positions));
        runtime.block_on(async {
            let mut events = Vec::new();
            // Trees are closed, and budgets refilled, only while requests come.
            let mut next_tick: Option<Instant> = None;
            loop {
                events.clear();
                let deadline = next_tick.unwrap_or_else(|| Instant::now() + Duration::from_secs(3_600));
                tokio::select! {
                    biased;
                    () = tokio::time::sleep_until(deadline), if next_tick.is_some() => {
                        next_tick = None;
                        self.step(LaneInput::Tick, &positions);
                    }
                    count = heard.recv_many(&mut events, BATCHES_OF_A_STEP) => if count == 0 { return },
                }
                let together = events.iter().filter_map(|event| match event {
                    Event::Requests(_, requests) => Some(requests.iter().map(|(_, body)| &body[..])),
                    _ => None,
                });
                self.validator.verify_together(together.flatten());
                for event in events.drain(..) {
                    match event {
                        Event::Stop => return,
                        Event::Requests(peer, requests) => {
                            next_tick.get_or_insert_with(|| Instant::now() + tick);
                            self.on_requests(peer, &requests, &positions);
                        }
                        event => self.on_event(event, &positions),
                    }
                }
                self.flush();
            }
        });
    }

    fn on_event(&mut self, event: Event, positions: &std::sync::mpsc::Sender<u64>) {
        match event {
            Event::Opened(peer, link) => drop(self.links.insert(peer, link)),
            Event::Closed(peer) => drop(self.links.remove(&peer)),
            Event::Synced(Ok(position)) => {
                self.durable = self.durable.max(position);
                self.step(LaneInput::Synced(position), positions);
            }
            Event::Synced(Err(error)) => {
                tracing::error!(%error, log = self.log.place(), "the lane log cannot be synced");
                self.step(LaneInput::SyncFailed, positions);
            }
            Event::News(news) => match news {
                ShardNews::Epoch(epoch) => self.step(LaneInput::Epoch(epoch), positions),
                ShardNews::Backed(id, output) => self.step(LaneInput::Backed(id, output), positions),
                ShardNews::Halted(halted) => self.step(LaneInput::Halted(halted), positions),
                ShardNews::CaseOpened(contested) => self.step(LaneInput::CaseOpened(contested), positions),
                ShardNews::CandidatesFixed(case, all) => self.step(LaneInput::CandidatesFixed(case, &all), positions),
                ShardNews::AllBarred(case, seen) => self.step(LaneInput::AllBarred(case, seen), positions),
                ShardNews::CaseRuled(case, verdict) => self.step(LaneInput::CaseRuled(case, verdict), positions),
            },
            Event::Begin(None) => self.has_begun = true,
            Event::Begin(Some(reason)) => {
                tracing::error!(%reason, log = self.log.place(), "this shard signs nothing until its next lane epoch");
            }
            Event::Requests(..) | Event::Stop => unreachable!("taken by the loop"),
        }
    }

    fn on_requests(&mut self, peer: LanePeer, requests: &[(u32, Bytes)], positions: &std::sync::mpsc::Sender<u64>) {
        self.counts.requests.fetch_add(requests.len() as u64, Ordering::Relaxed);
        for (number, body) in requests {
            if let Some(PositionQuery { home, validator, shard }) = PositionQuery::parse(body) {
                let highest = self.validator.roots().highest(home, validator, shard);
                write_position(self.out.entry(peer).or_default(), *number, highest);
            } else if !self.has_begun || self.log.length() > self.durable + UNSYNCED_MAX {
                self.refuse(peer, *number, &LaneRefusal::Busy);
            } else {
                let effects = self.validator.step(&self.log, LaneInput::Request { peer, bytes: body });
                self.perform(effects, *number, positions);
            }
        }
    }

    fn step(&mut self, input: LaneInput<'_>, positions: &std::sync::mpsc::Sender<u64>) {
        let effects = self.validator.step(&self.log, input);
        self.perform(effects, 0, positions);
    }

    /// Performs effects in order; refusals are of the request with this number.
    fn perform(&mut self, effects: Vec<LaneEffect>, number: u32, positions: &std::sync::mpsc::Sender<u64>) {
        for effect in effects {
            match effect {
                LaneEffect::Append(bytes) => {
                    if let Err(error) = self.log.append(&bytes) {
                        tracing::error!(%error, log = self.log.place(), "the lane log cannot be written");
                        return self.step(LaneInput::SyncFailed, positions);
                    }
                }
                // The syncer ends only after a failed sync, which it has told.
                LaneEffect::Sync(position) => drop(positions.send(position)),
                LaneEffect::Answer { peer, kind, digest, answer } => {
                    self.counts.answers.fetch_add(1, Ordering::Relaxed);
                    write_answer(self.out.entry(peer).or_default(), kind, &digest, &answer);
                }
                LaneEffect::BlsAnswer { peer, kind, digest, signature } => {
                    self.counts.answers.fetch_add(1, Ordering::Relaxed);
                    write_bls_answer(self.out.entry(peer).or_default(), kind, &digest, self.index, &signature);
                }
                LaneEffect::BatchAnswer(peer, answer) => {
                    self.counts.answers.fetch_add(1, Ordering::Relaxed);
                    write_batch_answer(self.out.entry(peer).or_default(), &answer);
                }
                LaneEffect::Refuse { peer, refusal } => self.refuse(peer, number, &refusal),
                LaneEffect::Vote { .. } | LaneEffect::Barred { .. } | LaneEffect::View { .. } | LaneEffect::Destroy => {
                    (self.post)(effect)
                }
                LaneEffect::Mute(reason) => {
                    tracing::error!(%reason, log = self.log.place(), "this shard signs nothing until its next lane epoch");
                }
            }
        }
    }

    fn refuse(&mut self, peer: LanePeer, number: u32, refusal: &LaneRefusal) {
        self.counts.refusals.fetch_add(1, Ordering::Relaxed);
        write_refusal(self.out.entry(peer).or_default(), number, refusal);
    }

    /// Gives replies to the writers. Who does not read is let go: its client sends the same bytes again.
    fn flush(&mut self) {
        for (peer, bytes) in self.out.drain() {
            let Some(link) = self.links.get(&peer) else { continue };
            link.waiting.fetch_add(bytes.len(), Ordering::AcqRel);
            if link.replies.try_send(bytes).is_err() {
                self.links.remove(&peer);
                self.counts.closed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Connections by address.
#[derive(Default)]
struct Addresses(Mutex<HashMap<IpAddr, usize>>);

impl Addresses {
    fn count(&self, address: IpAddr, most: usize) -> bool {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(address).or_default();
        let has_room = *count < most;
        *count += usize::from(has_room);
        has_room
    }

    fn forget(&self, address: IpAddr) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&address);
            }
        }
    }
}

async fn accept(
    listener: TcpListener,
    events: mpsc::Sender<Event>,
    counts: Arc<ShardCounts>,
    limits: ShardLimits,
    body_max: usize,
) {
    let addresses = Arc::new(Addresses::default());
    let mut next: LanePeer = 0;
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            // No descriptor is free: others have to go first.
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let address = canonical(from.ip());
        let has_room = counts.connections.load(Ordering::Acquire) < limits.connections;
        if !has_room || !addresses.count(address, limits.connections_of_address) {
            counts.closed.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        counts.connections.fetch_add(1, Ordering::AcqRel);
        next += 1;
        let (peer, events, counts, addresses) = (next, events.clone(), counts.clone(), addresses.clone());
        tokio::spawn(async move {
            serve(stream, peer, &events, limits, body_max).await;
            // The machine has stopped if nobody listens.
            drop(events.send(Event::Closed(peer)).await);
            counts.connections.fetch_sub(1, Ordering::AcqRel);
            addresses.forget(address);
        });
    }
}

/// One address: the first half of an IPv6 address, which is what one subscriber is given.
fn canonical(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) >> 64 << 64).into()),
        address => address,
    }
}

async fn serve(stream: TcpStream, peer: LanePeer, events: &mpsc::Sender<Event>, limits: ShardLimits, body_max: usize) {
    // A reply that waits for others to fill a packet is late.
    let _ = stream.set_nodelay(true);
    let (read, write) = stream.into_split();
    let (replies, chunks) = mpsc::channel(CHUNKS);
    let waiting = Arc::new(AtomicUsize::new(0));
    let link = Link { replies, waiting: waiting.clone() };
    if events.send(Event::Opened(peer, link)).await.is_err() {
        return;
    }
    tokio::select! {
        () = read_requests(read, peer, events, limits.idle, body_max) => {}
        () = write_replies(write, chunks, &waiting, limits) => {}
    }
}

async fn read_requests(
    mut from: OwnedReadHalf,
    peer: LanePeer,
    events: &mpsc::Sender<Event>,
    idle: Duration,
    body_max: usize,
) {
    let mut bytes = BytesMut::with_capacity(READ_BYTES);
    loop {
        bytes.reserve(READ_BYTES);
        match tokio::time::timeout(idle, from.read_buf(&mut bytes)).await {
            Ok(Ok(count)) if count > 0 => {}
            _ => return,
        }
        let mut requests = Vec::new();
        loop {
            match read_head(&bytes, body_max) {
                Ok(Some((body, number))) if bytes.len() >= HEAD_BYTES + body => {
                    bytes.advance(HEAD_BYTES);
                    requests.push((number, bytes.split_to(body).freeze()));
                }
                Ok(_) => break,
                Err(_) => return,
            }
        }
        if !requests.is_empty() && events.send(Event::Requests(peer, requests)).await.is_err() {
            return;
        }
    }
}

/// Ends when the machine lets the connection go, or when too much waits.
async fn write_replies(
    mut to: OwnedWriteHalf,
    mut chunks: mpsc::Receiver<Vec<u8>>,
    waiting: &AtomicUsize,
    limits: ShardLimits,
) {
    while let Some(chunk) = chunks.recv().await {
        if waiting.fetch_sub(chunk.len(), Ordering::AcqRel) > limits.reply_bytes {
            return;
        }
        match tokio::time::timeout(limits.idle, to.write_all(&chunk)).await {
            Ok(Ok(())) => {}
            _ => return,
        }
    }
}
