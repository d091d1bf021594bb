//! Frames between validators: one QUIC connection per pair, authenticated by their ed25519 keys, on which votes never
//! wait for bulk.
//!
//! # The protocol
//!
//! Each validator listens on one UDP socket. Of a pair, the one with the lower key opens the connection, and reopens
//! it, after growing pauses, forever. If it has not done so for three seconds, the other one tries too. This helps
//! when only one address is right, and lets a second process detect that its key is in use.
//!
//! *Handshake* ([`sockets::raw_keys`]). TLS 1.3; both sides present raw public keys (RFC 7250). The caller expects the
//! key of the peer that it calls, the callee accepts any key on the list. Unknown keys are rejected here.
//!
//! *Greeting* (`wire`). The caller opens the votes stream, the only bidirectional one, with a *hello*: version,
//! network (the digest of the genesis, which names the founders), and the *incarnation*, a random number drawn when
//! the process started. The callee checks it, finds out whether another connection is live already, and answers with
//! its own hello. After both hellos the connection is *up*. Indices are not sent: each side has its own, and two
//! validators in different epochs may number each other differently.
//!
//! *One connection per pair, one process per key* (`session`). A hello may arrive while a connection is live. If it has
//! the same incarnation, the new connection replaces the old one if both were opened from the same side or the new one
//! from the lower key. Otherwise it is rejected as a duplicate. If it has another incarnation, either two processes use
//! one key, or the first is dead: the live connection is pinged, and if a pong arrives within a second the new one is
//! rejected with *key in use*. The new process's shell gets [`Event::Refused`], and stops when more than f peers report
//! this (a single one may lie).
//!
//! *Votes* are sent on the votes stream in order, with a priority above every other stream. *Bulk* frames are each
//! sent on their own unidirectional stream, up to eight at once, so that a long one does not delay a short one. The
//! windows are such that unread streams cannot use up what the votes stream needs.
//!
//! # Properties
//!
//! - *Loss*: a frame is delivered once, or the connection ends: after every [`Event::Up`] the shell sends again
//!   everything that may matter, and asks again for what it lacks. Bulk frames may also be dropped from the queue,
//!   the oldest first.
//! - *Order*: votes of one connection arrive in order; bulk in any order. For each peer the shell sees Up, frames,
//!   Down, Up, ….
//! - *Bounded memory*: each queue to a peer is bounded in frames and bytes. Of a peer's frames, only a bounded number
//!   of bytes is read into [`ReceivedFrame`]s until the shell has dropped some. If a shell does not take events,
//!   reading stops, QUIC's windows fill, and the peer waits. Nothing is queued for a peer that is not connected.
//! - *Offences* (an undecodable or oversized message, a hello of another network) end the connection with a
//!   [`LinkReason`], are counted, and limit only that peer: its connections are rejected for a second, then two,
//!   four, … up to a minute.
//! - A dead peer is detected after two seconds of silence, and one that was killed and restarted at once, by a
//!   stateless reset.
//!
//! No key is ever logged, no session is resumed and there is no early data.

mod endpoint;
mod link;

mod session;
#[cfg(test)]
mod tests;
mod wire;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use primitives::{Digest, PublicKey, SecretKey};
use quinn::{Connection, VarInt};
use sockets::raw_keys::Identity;
use tokio::runtime::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use link::Link;
pub use wire::VOTE_FRAME_BYTES_MAX;

/// A peer's position in the list of peers; each side has its own list.
pub type PeerIndex = u8;

/// Maximum number of peers, this process included.
pub const PEERS_MAX: usize = 256;

/// Number of threads of the transport: one can send while another receives.
const THREADS: usize = 2;
/// Maximum number of connections being opened by others at a time, authenticated or not.
const HANDSHAKES_MAX: usize = 64;
/// How long [`Transport::stop`] waits until its peers are notified.
const FAREWELL: Duration = Duration::from_millis(500);
/// The longest time for which dropping a [`Transport`] waits for its threads. They end at once, but late on a busy
/// machine; only a lookup of a host name can take longer.
const ENDING: Duration = Duration::from_secs(60);

/// A validator as the others see it.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The key with which it authenticates.
    pub key: PublicKey,
    /// Host and port, resolved for each call.
    pub address: String,
}

/// The settings of a transport.
pub struct TransportSettings {
    /// The digest that all must share: of genesis, validators and settings.
    pub network: Digest,
    /// The index of this validator.
    pub me: PeerIndex,
    /// Where to listen (UDP).
    pub listen: SocketAddr,
    /// All validators by index, this one included.
    pub peers: Vec<Peer>,
    /// The secret half of this validator's key.
    pub secret: SecretKey,
    /// Maximum length of a bulk frame.
    pub frame_bytes_max: usize,
    /// Maximum bytes of bulk frames queued for each connected peer; beyond that the oldest are dropped.
    pub bulk_bytes_waiting_max: usize,
    /// Milliseconds since 1970, sent to each peer upon connecting and used for nothing else.
    pub clock: fn() -> u64,
}

/// The urgency of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkStream {
    /// Small, in order, never behind bulk, never dropped while the connection is live.
    Votes,
    /// Large; may be dropped from the queue.
    Bulk,
}

/// An event for the shell.
#[derive(Debug)]
pub enum Event {
    /// A peer is connected: send again everything that it may have missed.
    Up {
        /// The peer.
        peer: PeerIndex,
        /// How far its clock was ahead of this machine's, in milliseconds.
        ahead_ms: i64,
    },
    /// The connection has ended; it will be reopened.
    Down {
        /// The peer.
        peer: PeerIndex,
    },
    /// A frame has arrived.
    Frame {
        /// The sender.
        peer: PeerIndex,
        /// The stream on which it was sent.
        stream: LinkStream,
        /// The frame.
        bytes: ReceivedFrame,
    },
    /// The peer reports, or this side found, that the two cannot work together. The connection is tried again at
    /// growing intervals. [`LinkReason::KeyInUse`] is only reported by the peer, about this side's key.
    Refused {
        /// The peer.
        peer: PeerIndex,
        /// Why.
        reason: LinkReason,
    },
}

/// The bytes of a frame. While it is held, it counts against the bytes that its sender may have here.
pub struct ReceivedFrame {
    bytes: Vec<u8>,
    _room: OwnedSemaphorePermit,
}

impl ReceivedFrame {
    /// The bytes; they no longer count.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl std::ops::Deref for ReceivedFrame {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for ReceivedFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.bytes.len())
    }
}

/// Why a connection was ended or rejected; sent as the error code of QUIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkReason {
    /// The process is stopping.
    Stopping,
    /// A newer connection replaces it.
    Replaced,
    /// There is another connection between the same two processes.
    Duplicate,
    /// Another process with the same key is connected and alive.
    KeyInUse,
    /// The genesis, the list of validators or the settings differ.
    OtherNetwork,
    /// The protocol version differs.
    OtherVersion,
    /// The bytes are not a message.
    Malformed,
    /// A frame exceeds the maximum length.
    TooLarge,
    /// Votes were not read as fast as they were sent.
    Slow,
    /// The peer is limited after earlier offences.
    Limited,
    /// No hello arrived in time.
    Silent,
    /// Too many frames that no correct validator sends.
    Abusive,
}

const REASONS: [(LinkReason, &str); 12] = [
    (LinkReason::Stopping, "the process is stopping"),
    (LinkReason::Replaced, "a newer connection replaces it"),
    (LinkReason::Duplicate, "there is another connection already"),
    (LinkReason::KeyInUse, "another process with the same key is connected"),
    (LinkReason::OtherNetwork, "another network: genesis, validators or settings differ"),
    (LinkReason::OtherVersion, "another version of the protocol"),
    (LinkReason::Malformed, "the bytes are not a message"),
    (LinkReason::TooLarge, "a frame that is too long"),
    (LinkReason::Slow, "votes were not read as fast as they arrived"),
    (LinkReason::Limited, "limited after earlier offences"),
    (LinkReason::Silent, "no hello arrived in time"),
    (LinkReason::Abusive, "too many frames that no correct validator sends"),
];

impl LinkReason {
    fn code(self) -> u32 {
        REASONS.iter().position(|(reason, _)| *reason == self).expect("every reason is listed") as u32
    }

    fn from_code(code: VarInt) -> Option<LinkReason> {
        REASONS.get(usize::try_from(code.into_inner()).ok()?).map(|(reason, _)| *reason)
    }

    fn close(self, connection: &Connection) {
        connection.close(VarInt::from_u32(self.code()), self.to_string().as_bytes());
    }

    /// Whether the side that receives it is at fault.
    fn is_offence(self) -> bool {
        use LinkReason::{Abusive, Malformed, OtherNetwork, OtherVersion, Silent, TooLarge};
        matches!(self, Abusive | Malformed | OtherNetwork | OtherVersion | Silent | TooLarge)
    }
}

impl fmt::Display for LinkReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REASONS[self.code() as usize].1)
    }
}

/// Frames and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Number of frames.
    pub frames: u64,
    /// Number of bytes, without headers.
    pub bytes: u64,
}

impl Traffic {
    fn add(&mut self, bytes: usize) {
        self.frames += 1;
        self.bytes += bytes as u64;
    }
}

/// The traffic between this validator and a peer since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Votes passed to the network.
    pub votes_sent: Traffic,
    /// Votes received.
    pub votes_received: Traffic,
    /// Bulk passed to the network.
    pub bulk_sent: Traffic,
    /// Bulk received.
    pub bulk_received: Traffic,
    /// Bulk dropped from the queue.
    pub bulk_dropped: Traffic,
    /// Frames for a peer that was not connected.
    pub unsent: Traffic,
    /// Connections ended because the peer did not read votes.
    pub overflows: u64,
    /// Connections that were up.
    pub connections: u64,
    /// Offences of the peer.
    pub offences: u64,
    /// Rejected connections or hellos of the peer.
    pub refusals: u64,
    /// Bytes of UDP payload sent, including headers, retransmissions and acknowledgements.
    pub wire_sent: u64,
    /// Bytes of UDP payload received, likewise.
    pub wire_received: u64,
}

impl Counters {
    fn add_wire(&mut self, connection: &Connection) {
        let stats = connection.stats();
        self.wire_sent += stats.udp_tx.bytes;
        self.wire_received += stats.udp_rx.bytes;
    }
}

/// Why a transport does not start.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// It cannot listen on the address.
    #[error("cannot listen on {0} (UDP): {1}; choose another address with [network] listen")]
    Listen(SocketAddr, std::io::Error),
    /// The key at this validator's index is not the public half of its secret key.
    #[error("validator {0} has another key in the genesis than this node: this is not its home")]
    OtherKey(PeerIndex),
    /// This validator's index is not in the list.
    #[error("there is no validator {0}: the list has {1} validators")]
    NoSuchValidator(PeerIndex, usize),
    /// There are more validators than indices.
    #[error("there are {0} validators; at most {max} can be numbered", max = PEERS_MAX)]
    TooMany(usize),
    /// Two validators have the same key.
    #[error("validators {0} and {1} have the same key")]
    SameKey(usize, usize),
    /// The TLS library reports an error.
    #[error("TLS: {0}")]
    Tls(String),
    /// No threads could be started.
    #[error("cannot start the threads of the transport: {0}")]
    Threads(std::io::Error),
}

impl TransportError {
    fn tls(error: rustls::Error) -> TransportError {
        TransportError::Tls(error.to_string())
    }
}

/// The state shared by all connections.
pub(crate) struct Shared {
    key: PublicKey,
    network: Digest,
    incarnation: wire::Incarnation,
    clock: fn() -> u64,
    frame_bytes_max: usize,
    endpoint: quinn::Endpoint,
    events: SyncSender<Event>,
    /// By index; `None` for this validator.
    links: Vec<Option<Arc<Link>>>,
    handshakes: Arc<Semaphore>,
    strangers: AtomicU64,
}

/// Connections to all other validators.
pub struct Transport {
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
    address: SocketAddr,
}

impl Transport {
    /// Listens and begins to call the peers. Everything that happens is reported through `events`. If the shell does
    /// not take them, reading from the network stops, sending does not.
    ///
    /// # Errors
    /// [`TransportError`].
    pub fn start(settings: TransportSettings, events: SyncSender<Event>) -> Result<Transport, TransportError> {
        check(&settings)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("transport")
            .enable_all()
            .build()
            .map_err(TransportError::Threads)?;
        let shared = {
            let _runtime = runtime.enter();
            Arc::new(Shared::new(settings, events)?)
        };
        let address = shared.endpoint.local_addr().map_err(TransportError::Threads)?;
        runtime.spawn(session::answer_calls(shared.clone()));
        for link in shared.links.iter().flatten() {
            runtime.spawn(session::keep_calling(shared.clone(), link.clone()));
        }
        Ok(Transport { shared, runtime: Some(runtime), address })
    }

    /// The address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends a frame to a peer; drops it if the peer is not connected. Never waits. If too many votes are queued, the
    /// connection is ended; if too much bulk is, the oldest is dropped.
    ///
    /// # Panics
    /// If the frame is longer than [`VOTE_FRAME_BYTES_MAX`] or [`TransportSettings::frame_bytes_max`], or the peer does
    /// not exist.
    pub fn send(&self, to: PeerIndex, stream: LinkStream, frame: Arc<[u8]>) {
        let most = if stream == LinkStream::Votes { VOTE_FRAME_BYTES_MAX } else { self.shared.frame_bytes_max };
        assert!(frame.len() <= most, "a frame has {} bytes; at most {most} can be sent", frame.len());
        self.link(to).push(stream, frame);
    }

    /// Whether there is a peer with this index.
    pub fn has_peer(&self, index: PeerIndex) -> bool {
        self.shared.links.get(usize::from(index)).is_some_and(Option::is_some)
    }

    /// The key of a peer.
    ///
    /// # Panics
    /// If there is no such peer.
    pub fn key_of(&self, peer: PeerIndex) -> PublicKey {
        self.link(peer).key
    }

    /// The traffic between this validator and a peer.
    ///
    /// # Panics
    /// If there is no such peer.
    pub fn counters(&self, peer: PeerIndex) -> Counters {
        self.link(peer).counters()
    }

    /// The round-trip time to a connected peer, as its connection estimates it.
    ///
    /// # Panics
    /// If there is no such peer.
    pub fn round_trip(&self, peer: PeerIndex) -> Option<Duration> {
        self.link(peer).live().map(|live| live.connection.rtt())
    }

    /// Number of connections rejected because the key is not in the list, the handshake failed, or too many came at
    /// once.
    pub fn strangers(&self) -> u64 {
        self.shared.strangers.load(Ordering::Relaxed)
    }

    /// Ends the connection to a peer that sent too many rejected frames. Its connections are rejected for a while,
    /// longer each time.
    ///
    /// # Panics
    /// If there is no such peer.
    pub fn limit(&self, peer: PeerIndex) {
        let link = self.link(peer);
        link.offend(LinkReason::Abusive);
        if let Some(live) = link.live() {
            LinkReason::Abusive.close(&live.connection);
        }
    }

    /// Ends all connections and notifies the peers.
    pub fn stop(&self) {
        let Some(runtime) = &self.runtime else { return };
        let (told, wait) = std::sync::mpsc::channel::<()>();
        let endpoint = self.shared.endpoint.clone();
        endpoint.close(VarInt::from_u32(LinkReason::Stopping.code()), LinkReason::Stopping.to_string().as_bytes());
        runtime.spawn(async move {
            endpoint.wait_idle().await;
            drop(told);
        });
        // The channel closes when all have been notified.
        let _ = wait.recv_timeout(FAREWELL);
    }

    fn link(&self, index: PeerIndex) -> &Link {
        let link = self.shared.links.get(usize::from(index)).and_then(Option::as_ref);
        link.unwrap_or_else(|| panic!("there is no peer {index}"))
    }
}

impl Drop for Transport {
    /// Ends everything; when it returns the port is free.
    fn drop(&mut self) {
        self.stop();
        if let Some(runtime) = self.runtime.take() {
            // On a separate thread, because this one may belong to another runtime, which forbids waiting.
            let ending = std::thread::spawn(move || runtime.shutdown_timeout(ENDING));
            // It can only fail by a panic, and then the thread has ended.
            let _ = ending.join();
        }
    }
}

impl Shared {
    fn new(settings: TransportSettings, events: SyncSender<Event>) -> Result<Shared, TransportError> {
        let identity = Identity::new(&settings.secret).map_err(TransportError::tls)?;
        let mut links = Vec::with_capacity(settings.peers.len());
        for (index, peer) in settings.peers.iter().enumerate() {
            let index = index as PeerIndex;
            links.push(if index == settings.me {
                None
            } else {
                let client = endpoint::client(&identity, peer.key)?;
                let (frame, waiting) = (settings.frame_bytes_max, settings.bulk_bytes_waiting_max);
                Some(Arc::new(Link::new(index, peer, client, frame, waiting)))
            });
        }
        let allowed = links.iter().flatten().map(|link: &Arc<Link>| link.key).collect();
        let endpoint = endpoint::bind(settings.listen, &identity, allowed, &settings.secret)?;
        let mut incarnation = [0; 16];
        getrandom::fill(&mut incarnation).map_err(|error| TransportError::Threads(error.into()))?;
        Ok(Shared {
            key: settings.secret.public(),
            network: settings.network,
            incarnation,
            clock: settings.clock,
            frame_bytes_max: settings.frame_bytes_max,
            endpoint,
            events,
            links,
            handshakes: Arc::new(Semaphore::new(HANDSHAKES_MAX)),
            strangers: AtomicU64::new(0),
        })
    }
}

/// Checks the settings before anything is started.
fn check(settings: &TransportSettings) -> Result<(), TransportError> {
    let peers = &settings.peers;
    if peers.len() > PEERS_MAX {
        return Err(TransportError::TooMany(peers.len()));
    }
    let me = peers.get(usize::from(settings.me));
    let me = me.ok_or(TransportError::NoSuchValidator(settings.me, peers.len()))?;
    if me.key != settings.secret.public() {
        return Err(TransportError::OtherKey(settings.me));
    }
    for (i, peer) in peers.iter().enumerate() {
        if let Some(j) = peers[..i].iter().position(|other| other.key == peer.key) {
            return Err(TransportError::SameKey(j, i));
        }
    }
    Ok(())
}
