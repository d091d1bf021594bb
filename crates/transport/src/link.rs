//! What is kept about one peer: what waits to be sent to it, its connection, and how it behaves.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::PeerIndex;
use bytes::Bytes;
use primitives::PublicKey;
use quinn::Connection;
use tokio::sync::{Notify, Semaphore, watch};

use super::wire::{self, Incarnation, Message};
use super::{Counters, Lane, LinkReason};

/// Frames of votes that may wait for a connected peer. One that does not take so many is slower than consensus; it gets
/// what it needs when it connects again.
const VOTE_FRAMES_WAITING_MAX: usize = 4_096;
const VOTE_BYTES_WAITING_MAX: usize = 16 << 20;
/// Bulk frames that may wait, besides the bound on their bytes.
const BULK_FRAMES_WAITING_MAX: usize = 4_096;
/// Longest frames of either lane that may be held here of what one peer sent, arriving ones included: as many as there
/// are heights at a time.
pub(crate) const LONG_FRAMES_HELD: usize = 4;
/// Where only short frames are allowed, a few of them must fit nevertheless.
const SHORT_FRAME_BYTES: usize = 64 << 10;
/// Connections that one peer may be opening at a time.
const CALLS_MAX: usize = 2;
/// How long a peer is limited after its first offence; twice as long after each further one.
const LIMITED_FIRST: Duration = Duration::from_secs(1);
const LIMITED_LONGEST: Duration = Duration::from_secs(60);
/// After a connection of such length without an offence the earlier ones are forgotten.
const FORGIVEN_AFTER: Duration = Duration::from_secs(60);

/// One peer, from this side.
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
    /// Whether there is a live connection; the newest ping that came back.
    pub(crate) up: watch::Sender<bool>,
    pub(crate) pong: watch::Sender<[u8; 8]>,
    /// Held by who asks whether a new connection may take the place of the old one.
    pub(crate) turn: tokio::sync::Mutex<()>,
    /// Held by the connection that runs, until its end has been told.
    pub(crate) seat: tokio::sync::Mutex<()>,
    pub(crate) calls: Arc<Semaphore>,
    /// Bytes of frames that were handed out and are still held.
    pub(crate) votes_room: Arc<Semaphore>,
    pub(crate) bulk_room: Arc<Semaphore>,
}

/// What waits to be sent; nothing while there is no connection.
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

/// The connection that runs.
#[derive(Clone)]
pub(crate) struct Live {
    pub(crate) connection: Connection,
    pub(crate) incarnation: Incarnation,
    /// Whether this side opened it.
    pub(crate) called: bool,
    /// How far the peer's clock was ahead of the own one.
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

/// A panic cannot leave what these locks guard half changed.
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

    /// Puts a frame into its queue. Never waits: what does not fit is dropped, as `send` promises.
    pub(crate) fn push(&self, lane: Lane, frame: Arc<[u8]>) {
        let mut outgoing = lock(&self.outgoing);
        let Some(connection) = &outgoing.connection else {
            return self.count(|counters| counters.unsent.add(frame.len()));
        };
        match lane {
            Lane::Votes => {
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
            Lane::Bulk => {
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

    /// Everything that waits for the votes stream, as it goes onto it: first what keeps the connection, then votes.
    pub(crate) fn take_votes(&self) -> Vec<Bytes> {
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

    /// The bulk frame that has waited longest.
    pub(crate) fn take_bulk(&self) -> Option<Arc<[u8]>> {
        let mut outgoing = lock(&self.outgoing);
        let frame = outgoing.bulk.pop()?;
        if !outgoing.bulk.frames.is_empty() {
            // A notice wakes one writer; another may be free as well.
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

    /// Answers a ping; if the peer sends more than can be answered, the newest.
    pub(crate) fn answer(&self, nonce: [u8; 8]) {
        lock(&self.outgoing).pong = Some(nonce);
        self.votes_waiting.notify_one();
    }

    pub(crate) fn live(&self) -> Option<Live> {
        lock(&self.live).clone()
    }

    /// From now on this is the connection.
    pub(crate) fn begin(&self, live: Live) {
        *lock(&self.outgoing) = Outgoing { connection: Some(live.connection.clone()), ..Outgoing::default() };
        *lock(&self.live) = Some(live);
        self.count(|counters| counters.connections += 1);
        self.up.send_replace(true);
    }

    /// The connection has ended; what waited is dropped.
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

    /// Notes an offence: for a while, longer each time, the peer is not listened to.
    pub(crate) fn offend(&self, reason: LinkReason) {
        let mut conduct = lock(&self.conduct);
        let pause = LIMITED_FIRST.saturating_mul(1 << conduct.offences.min(16)).min(LIMITED_LONGEST);
        conduct.offences += 1;
        conduct.limited_until = Some(Instant::now() + pause);
        self.count(|counters| counters.offences += 1);
        tracing::warn!(peer = self.index, %reason, pause_s = pause.as_secs(), "peer limited");
    }

    /// How long the peer is still limited.
    pub(crate) fn limited(&self) -> Option<Duration> {
        let until = lock(&self.conduct).limited_until?;
        until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut Counters)) {
        change(&mut lock(&self.counters));
    }

    /// What was counted, the bytes of the live connection included.
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
    /// Ends a pause, so that a test need not wait for it.
    pub(crate) fn forgive(&self) {
        lock(&self.conduct).limited_until = None;
    }
}
