//! The state of one peer: what is queued for it, its connection, and its behaviour.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::PeerIndex;
use bytes::Bytes;
use primitives::PublicKey;
use quinn::Connection;
use tokio::sync::{Notify, Semaphore, watch};

use super::wire::{self, Incarnation, Message};
use super::{Counters, LinkReason, LinkStream};

/// Maximum number of vote frames queued for a connected peer. A peer that does not read this many is slower than
/// consensus; it gets what it needs when it reconnects.
const VOTE_FRAMES_WAITING_MAX: usize = 4_096;
const VOTE_BYTES_WAITING_MAX: usize = 16 << 20;
/// Maximum number of queued bulk frames, in addition to the bound on their bytes.
const BULK_FRAMES_WAITING_MAX: usize = 4_096;
/// Maximum number of frames of maximum length, per stream, that are held here from one peer, including arriving ones:
/// as many as there are concurrent heights.
pub(crate) const LONG_FRAMES_HELD: usize = 4;
/// If only short frames are allowed, a few of them must fit all the same.
const SHORT_FRAME_BYTES: usize = 64 << 10;
/// Maximum number of connections that one peer may be opening at a time.
const CALLS_MAX: usize = 2;
/// How long a peer is limited after its first offence; each further offence doubles the time.
const LIMITED_FIRST: Duration = Duration::from_secs(1);
const LIMITED_LONGEST: Duration = Duration::from_secs(60);
/// After a connection of this length without an offence, earlier offences are forgotten.
const FORGIVEN_AFTER: Duration = Duration::from_secs(60);

/// One peer, seen from this side.
pub(crate) struct Link {
    pub(crate) index: PeerIndex,
    pub(crate) key: PublicKey,
    pub(crate) address: String,
    pub(crate) client: quinn::ClientConfig,
    bulk_bytes_waiting_max: usize,
    outgoing: Mutex<Outgoing>,
    pub(crate) votes_waiting: Notify,
    pub(crate) bulk_waiting: Notify,
    counters: Mutex<Counters>,
    conduct: Mutex<Conduct>,
    live: Mutex<Option<Live>>,
    /// Whether there is a live connection; the newest ping that was answered.
    pub(crate) up: watch::Sender<bool>,
    pub(crate) pong: watch::Sender<[u8; 8]>,
    /// Held by the task that decides whether a new connection may replace the old one.
    pub(crate) turn: tokio::sync::Mutex<()>,
    /// Held by the running connection until its end has been reported.
    pub(crate) seat: tokio::sync::Mutex<()>,
    pub(crate) calls: Arc<Semaphore>,
    /// Room for bytes of frames that were passed on and are still held.
    pub(crate) votes_room: Arc<Semaphore>,
    pub(crate) bulk_room: Arc<Semaphore>,
}

/// The queues; `None` while there is no connection.
#[derive(Default)]
struct Outgoing {
    connection: Option<Connection>,
    votes: Queue,
    bulk: Queue,
    ping: Option<[u8; 8]>,
    pong: Option<[u8; 8]>,
}

#[derive(Default)]
struct Queue {
    frames: VecDeque<Arc<[u8]>>,
    bytes: usize,
}

/// The running connection.
#[derive(Clone)]
pub(crate) struct Live {
    pub(crate) connection: Connection,
    pub(crate) incarnation: Incarnation,
    /// Whether this side opened it.
    pub(crate) called: bool,
    /// How far the peer's clock was ahead of this machine's.
    pub(crate) ahead_ms: i64,
}

#[derive(Default)]
struct Conduct {
    offences: u32,
    limited_until: Option<Instant>,
}

impl Queue {
    fn push(&mut self, frame: Arc<[u8]>) {
        self.bytes += frame.len();
        self.frames.push_back(frame);
    }

    fn pop(&mut self) -> Option<Arc<[u8]>> {
        let frame = self.frames.pop_front()?;
        self.bytes -= frame.len();
        Some(frame)
    }
}

/// A panic cannot leave the state under these locks half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    pub(crate) fn new(
        index: PeerIndex,
        peer: &super::Peer,
        client: quinn::ClientConfig,
        frame_bytes_max: usize,
        waiting_max: usize,
    ) -> Link {
        Link {
            index,
            key: peer.key,
            address: peer.address.clone(),
            client,
            bulk_bytes_waiting_max: waiting_max,
            outgoing: Mutex::default(),
            votes_waiting: Notify::new(),
            bulk_waiting: Notify::new(),
            counters: Mutex::default(),
            conduct: Mutex::default(),
            live: Mutex::default(),
            up: watch::Sender::new(false),
            pong: watch::Sender::new([0; 8]),
            turn: tokio::sync::Mutex::new(()),
            seat: tokio::sync::Mutex::new(()),
            calls: Arc::new(Semaphore::new(CALLS_MAX)),
            votes_room: Arc::new(Semaphore::new(LONG_FRAMES_HELD * wire::VOTE_FRAME_BYTES_MAX)),
            bulk_room: Arc::new(Semaphore::new(LONG_FRAMES_HELD * frame_bytes_max.max(SHORT_FRAME_BYTES))),
        }
    }

    /// Adds a frame to its queue. Never waits: frames that do not fit are dropped, see `send`.
    pub(crate) fn push(&self, stream: LinkStream, frame: Arc<[u8]>) {
        let mut outgoing = lock(&self.outgoing);
        let Some(connection) = &outgoing.connection else {
            return self.count(|counters| counters.unsent.add(frame.len()));
        };
        match stream {
            LinkStream::Votes => {
                let full = outgoing.votes.frames.len() >= VOTE_FRAMES_WAITING_MAX
                    || outgoing.votes.bytes + frame.len() > VOTE_BYTES_WAITING_MAX;
                if full {
                    LinkReason::Slow.close(connection);
                    outgoing.connection = None;
                    return self.count(|counters| counters.overflows += 1);
                }
                outgoing.votes.push(frame);
                drop(outgoing);
                self.votes_waiting.notify_one();
            }
            LinkStream::Bulk => {
                outgoing.bulk.push(frame);
                self.shorten(&mut outgoing.bulk);
                drop(outgoing);
                self.bulk_waiting.notify_one();
            }
        }
    }

    /// Drops the oldest bulk frames above the bounds, but never the newest.
    fn shorten(&self, bulk: &mut Queue) {
        while bulk.frames.len() > 1
            && (bulk.bytes > self.bulk_bytes_waiting_max || bulk.frames.len() > BULK_FRAMES_WAITING_MAX)
        {
            let dropped = bulk.pop().expect("there are two");
            self.count(|counters| counters.bulk_dropped.add(dropped.len()));
        }
    }

    /// Everything queued for the votes stream, encoded: first what keeps the connection alive, then votes.
    pub(crate) fn pop_votes(&self) -> Vec<Bytes> {
        let mut outgoing = lock(&self.outgoing);
        let mut out = Vec::with_capacity(2 * outgoing.votes.frames.len() + 2);
        out.extend(outgoing.pong.take().map(|nonce| wire::control(&Message::Pong(nonce))));
        out.extend(outgoing.ping.take().map(|nonce| wire::control(&Message::Ping(nonce))));
        while let Some(frame) = outgoing.votes.pop() {
            self.count(|counters| counters.votes_sent.add(frame.len()));
            out.push(wire::votes_header(frame.len()));
            out.push(Bytes::from_owner(frame));
        }
        out
    }

    /// The oldest queued bulk frame.
    pub(crate) fn pop_bulk(&self) -> Option<Arc<[u8]>> {
        let mut outgoing = lock(&self.outgoing);
        let frame = outgoing.bulk.pop()?;
        if !outgoing.bulk.frames.is_empty() {
            // A notification wakes one writer; another may be free as well.
            self.bulk_waiting.notify_one();
        }
        drop(outgoing);
        self.count(|counters| counters.bulk_sent.add(frame.len()));
        Some(frame)
    }

    /// Asks the peer for a sign of life.
    pub(crate) fn ping(&self, nonce: [u8; 8]) {
        lock(&self.outgoing).ping = Some(nonce);
        self.votes_waiting.notify_one();
    }

    /// Answers a ping; if the peer sends more pings than can be answered, the newest.
    pub(crate) fn answer(&self, nonce: [u8; 8]) {
        lock(&self.outgoing).pong = Some(nonce);
        self.votes_waiting.notify_one();
    }

    pub(crate) fn live(&self) -> Option<Live> {
        lock(&self.live).clone()
    }

    /// Makes this the running connection.
    pub(crate) fn begin(&self, live: Live) {
        *lock(&self.outgoing) = Outgoing { connection: Some(live.connection.clone()), ..Outgoing::default() };
        *lock(&self.live) = Some(live);
        self.count(|counters| counters.connections += 1);
        self.up.send_replace(true);
    }

    /// The connection has ended; drops the queues.
    pub(crate) fn end(&self, begun: Instant) {
        *lock(&self.outgoing) = Outgoing::default();
        if let Some(live) = lock(&self.live).take() {
            self.count(|counters| counters.add_wire(&live.connection));
        }
        if begun.elapsed() >= FORGIVEN_AFTER {
            lock(&self.conduct).offences = 0;
        }
        self.up.send_replace(false);
    }

    /// Records an offence: the peer's connections are rejected for a while, longer each time.
    pub(crate) fn offend(&self, reason: LinkReason) {
        let mut conduct = lock(&self.conduct);
        let pause = LIMITED_FIRST.saturating_mul(1 << conduct.offences.min(16)).min(LIMITED_LONGEST);
        conduct.offences += 1;
        conduct.limited_until = Some(Instant::now() + pause);
        self.count(|counters| counters.offences += 1);
        tracing::warn!(peer = self.index, %reason, pause_s = pause.as_secs(), "peer limited");
    }

    /// How much longer the peer is limited.
    pub(crate) fn limited(&self) -> Option<Duration> {
        let until = lock(&self.conduct).limited_until?;
        until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut Counters)) {
        change(&mut lock(&self.counters));
    }

    /// The counters, including the bytes of the live connection.
    pub(crate) fn counters(&self) -> Counters {
        let mut counters = lock(&self.counters).clone();
        if let Some(live) = self.live() {
            counters.add_wire(&live.connection);
        }
        counters
    }
}

#[cfg(test)]
impl Link {
    /// Ends the limit, so that a test need not wait for it.
    pub(crate) fn forgive(&self) {
        lock(&self.conduct).limited_until = None;
    }
}
