//! Frames between validators: one QUIC connection for each pair, authenticated by their ed25519 keys, on which votes
//! never wait for bulk.
//!
//! # The protocol
//!
//! Each validator listens on one UDP socket. Of a pair, the one with the lower key opens the connection, and opens it
//! again, after growing pauses, for ever. If it has not for three seconds, the other tries too, which helps when only
//! one address is right, and lets a second process with a key that is in use find out.
//!
//! *Handshake* (`tls`). TLS 1.3, both sides show raw public keys (RFC 7250) and are accepted if the key is on the
//! list: the caller expects the key of the one it calls, the called any on the list. Unknown keys end there.
//!
//! *Greeting* (`wire`). The caller opens the votes stream, the only one that carries both ways, with a *hello*:
//! version, network (the digest of the genesis, which names the founders), and the *incarnation*, a number
//! drawn when the process started. The called checks it, finds out whether a connection is live already, and answers
//! with its own. Upon both hellos the connection is *up*. Indices are not spoken of: they are each side's own, and two
//! validators in different epochs may number each other differently.
//!
//! *One connection a pair, one process a key* (`session`). Upon a hello while a connection is live: with the same
//! incarnation, the new one takes its place if both were opened from the same side or the new one from the lower key,
//! else it is refused as a duplicate. With another incarnation there are two processes with one key, or the first is
//! dead: the live connection is pinged, and if a pong comes within a second the newcomer is refused with *key in use*.
//! The newcomer's shell hears so by [`Event::Refused`], and stops when more than f peers say it (one alone may lie).
//!
//! *Votes* travel on the votes stream in order, with a priority above every other stream. *Bulk* frames travel each on
//! a unidirectional stream of its own, up to eight at once, so that a long one does not hold up a short one. Windows
//! are such that streams that nobody reads cannot use up what the votes stream needs.
//!
//! # Properties
//!
//! - *Loss*: a frame is delivered once, or the connection ends: after every [`Event::Up`] the shell sends again
//!   whatever may matter, and asks again for what it misses. Bulk frames may in addition be dropped while they wait,
//!   the oldest first.
//! - *Order*: votes of one connection arrive in order; bulk in any. Of each peer the shell sees Up, frames, Down, Up,
//!   ….
//! - *Bounded memory*: each queue to a peer is bounded in frames and bytes; of what a peer sends, no more is read than
//!   [`ReceivedFrame`]s of a bounded number of bytes, until the shell has dropped some. A shell that does not take
//!   events stops the reading, QUIC's windows fill, and the peer waits. Nothing is kept for a peer that is not
//!   connected.
//! - *Offences* (an undecodable or oversized message, a hello of another network) end the connection with a
//!   [`LinkReason`], are counted, and limit that peer alone: for a second, then two, four, … up to a minute nothing of
//!   it is listened to.
//! - A dead peer is noticed after two seconds without a sign, and one that was killed and started again at once, by a
//!   stateless reset.
//!
//! No key is ever logged, no session is resumed and there is no early data.

mod endpoint;
mod link;

mod session;
#[cfg(test)]
mod tests;
mod tls;
mod wire;

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use primitives::{Digest, PublicKey, SecretKey};
use quinn::{Connection, VarInt};
use tokio::runtime::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use link::Link;
pub use wire::VOTE_FRAME_BYTES_MAX;

/// A peer's place in the list that both sides were given, each its own.
pub type PeerIndex = u8;

/// Most peers of a list, this process included.
pub const PEERS_MAX: usize = 256;

/// Threads of the transport: one can send while another receives.
const THREADS: usize = 2;
/// Connections that are being opened by others at a time, authenticated or not.
const HANDSHAKES_MAX: usize = 64;
/// How long [`Transport::stop`] waits for peers to hear of it.
const FAREWELL: Duration = Duration::from_millis(500);
/// How long dropping a [`Transport`] waits for its threads at most. They end at once, but on a busy machine late; only a
/// lookup of a host name can take longer.
const ENDING: Duration = Duration::from_secs(60);

/// A validator as the others see it.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The key that it authenticates itself by.
    pub key: PublicKey,
    /// Host and port, looked up each time it is called.
    pub address: String,
}

/// What a transport is started with.
pub struct TransportSettings {
    /// What everybody must agree on: the digest of genesis, validators and settings.
    pub network: Digest,
    /// The own index.
    pub me: PeerIndex,
    /// Where to listen (UDP).
    pub listen: SocketAddr,
    /// All validators by index, this one included.
    pub peers: Vec<Peer>,
    /// The secret half of the own key.
    pub secret: SecretKey,
    /// The longest bulk frame.
    pub frame_bytes_max: usize,
    /// Bytes of bulk frames that may wait for each connected peer; the oldest above that are dropped.
    pub bulk_bytes_waiting_max: usize,
    /// Milliseconds since 1970, told to each peer upon connecting and used for nothing else.
    pub clock: fn() -> u64,
}

/// An address on loopback that nobody listens at, for networks on one machine: [`free_ports`] for one port.
///
/// # Errors
/// If none is free.
pub fn free_address() -> io::Result<SocketAddr> {
    free_ports(1)
}

/// The first of `count` ports in a row on loopback that nobody listens at, by UDP or TCP. They belong to this process
/// until it ends, also while nothing listens at them: no system gives them to a socket that asks for any port, because
/// they lie between 10,000 and 32,000, and (on Linux) no other process gets them from this function.
///
/// # Errors
/// If there are no such ports.
pub fn free_ports(count: u16) -> io::Result<SocketAddr> {
    const FIRST: u16 = 10_000;
    /// Of the first port. The last ones of a row may lie above.
    const PORTS: u32 = 21_000;
    /// Processes that run at a time begin far apart.
    const APART: u32 = 7_919;
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let begin = std::process::id().wrapping_mul(APART) % PORTS;
    for _ in 0..PORTS {
        let taken = u32::from(TAKEN.fetch_add(count, Ordering::Relaxed));
        let first = FIRST + ((begin + taken) % PORTS) as u16;
        if (first..first + count).all(|port| is_free(port) && reserve(port)) {
            return Ok((Ipv4Addr::LOCALHOST, first).into());
        }
    }
    Err(io::ErrorKind::AddrNotAvailable.into())
}

fn is_free(port: u16) -> bool {
    let address = (Ipv4Addr::LOCALHOST, port);
    UdpSocket::bind(address).is_ok() && TcpListener::bind(address).is_ok()
}

/// Reserves a port by a local socket with its name; false if another process has done so. A validator that restarts
/// leaves its port unused for a moment, in which another network on this machine must not take it.
#[cfg(target_os = "linux")]
fn reserve(port: u16) -> bool {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};
    use std::sync::Mutex;
    static RESERVED: Mutex<Vec<UnixDatagram>> = Mutex::new(Vec::new());
    let name = SocketAddr::from_abstract_name(format!("walras port {port}")).expect("a short name");
    let reserved = UnixDatagram::bind_addr(&name);
    let mut all = RESERVED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    reserved.map(|socket| all.push(socket)).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn reserve(_port: u16) -> bool {
    true
}

/// How urgent a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Small, in order, never behind bulk, never dropped while the connection lives.
    Votes,
    /// Large; may be dropped while it waits.
    Bulk,
}

/// What the transport tells its shell.
#[derive(Debug)]
pub enum Event {
    /// A peer is connected: everything that it may have missed is to be sent again.
    Up {
        /// The peer.
        peer: PeerIndex,
        /// How far its clock was ahead of the own one, in milliseconds.
        ahead_ms: i64,
    },
    /// The connection has ended; it will be opened again.
    Down {
        /// The peer.
        peer: PeerIndex,
    },
    /// A frame has come.
    Frame {
        /// From whom.
        peer: PeerIndex,
        /// As what it was sent.
        lane: Lane,
        /// The frame.
        bytes: ReceivedFrame,
    },
    /// The peer says, or this side found, that the two cannot work together. Tried again, ever more seldom.
    /// [`LinkReason::KeyInUse`] is only told of this side's key, by the peer.
    Refused {
        /// The peer.
        peer: PeerIndex,
        /// Why.
        reason: LinkReason,
    },
}

/// The bytes of a frame. As long as it is held, it counts against what its sender may have here.
pub struct ReceivedFrame {
    bytes: Vec<u8>,
    _room: OwnedSemaphorePermit,
}

impl ReceivedFrame {
    /// The bytes, no longer counted.
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

/// Why a connection was ended or refused; travels as the error code of QUIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkReason {
    /// The process stops.
    Stopping,
    /// A newer connection takes its place.
    Replaced,
    /// There is another connection of the same two processes.
    Duplicate,
    /// Another process with the same key is connected and answers.
    KeyInUse,
    /// Another genesis, list of validators or settings.
    OtherNetwork,
    /// Another version of the protocol.
    OtherVersion,
    /// Bytes that are no message.
    Malformed,
    /// A frame longer than may be.
    TooLarge,
    /// Votes were not taken as fast as they were sent.
    Slow,
    /// Earlier offences: not yet.
    Limited,
    /// No hello came.
    Silent,
    /// Frames that no correct validator sends, one after the other.
    Abusive,
}

const REASONS: [(LinkReason, &str); 12] = [
    (LinkReason::Stopping, "the process stops"),
    (LinkReason::Replaced, "a newer connection takes its place"),
    (LinkReason::Duplicate, "there is another connection already"),
    (LinkReason::KeyInUse, "another process with the same key is connected"),
    (LinkReason::OtherNetwork, "another network: genesis, validators or settings differ"),
    (LinkReason::OtherVersion, "another version of the protocol"),
    (LinkReason::Malformed, "bytes that are no message"),
    (LinkReason::TooLarge, "a frame that is too long"),
    (LinkReason::Slow, "votes were not taken as fast as they came"),
    (LinkReason::Limited, "limited after earlier offences"),
    (LinkReason::Silent, "no hello came"),
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

    /// Whether it is the fault of who is told.
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
    /// How many.
    pub frames: u64,
    /// Their bytes, headers not counted.
    pub bytes: u64,
}

impl Traffic {
    fn add(&mut self, bytes: usize) {
        self.frames += 1;
        self.bytes += bytes as u64;
    }
}

/// What has passed between this validator and a peer since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Votes given to the network.
    pub votes_sent: Traffic,
    /// Votes received.
    pub votes_received: Traffic,
    /// Bulk given to the network.
    pub bulk_sent: Traffic,
    /// Bulk received.
    pub bulk_received: Traffic,
    /// Bulk dropped while it waited.
    pub bulk_dropped: Traffic,
    /// Frames for a peer that was not connected.
    pub unsent: Traffic,
    /// Connections ended because votes were not taken.
    pub overflows: u64,
    /// Connections that were up.
    pub connections: u64,
    /// What the peer did wrong.
    pub offences: u64,
    /// Connections or hellos of the peer that were refused.
    pub refusals: u64,
    /// Bytes of UDP payload sent, headers, repetitions and acknowledgements included.
    pub wire_sent: u64,
    /// Likewise received.
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
    /// The address cannot be listened on.
    #[error("cannot listen on {0} (UDP): {1}; choose another with [network] listen")]
    Listen(SocketAddr, std::io::Error),
    /// The key at the own index is not the public half of the secret one.
    #[error("validator {0} has another key in the genesis than this node: this is not its home")]
    OtherKey(PeerIndex),
    /// The own index is not on the list.
    #[error("there is no validator {0}: the list has {1}")]
    NoSuchValidator(PeerIndex, usize),
    /// More validators than can be numbered.
    #[error("{0} validators; at most {max} can be numbered", max = PEERS_MAX)]
    TooMany(usize),
    /// One key twice.
    #[error("validators {0} and {1} have the same key")]
    SameKey(usize, usize),
    /// The library of TLS refuses.
    #[error("TLS: {0}")]
    Tls(String),
    /// No threads.
    #[error("cannot start the threads of the transport: {0}")]
    Threads(std::io::Error),
}

impl TransportError {
    fn tls(error: rustls::Error) -> TransportError {
        TransportError::Tls(error.to_string())
    }
}

/// What all connections share.
pub(crate) struct Shared {
    key: PublicKey,
    network: Digest,
    incarnation: wire::Incarnation,
    clock: fn() -> u64,
    frame_bytes_max: usize,
    endpoint: quinn::Endpoint,
    events: SyncSender<Event>,
    /// By index; nothing at the own.
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
    /// Listens and begins to call. Everything that happens is told through `events`; whoever does not take them stops
    /// the reading from the network, not the sending.
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Gives a frame to a peer, or to nobody if it is not connected. Never waits. If votes pile up, the connection is
    /// ended; if bulk does, the oldest is dropped.
    ///
    /// # Panics
    /// If the frame is longer than [`VOTE_FRAME_BYTES_MAX`] or [`TransportSettings::frame_bytes_max`], or the peer does
    /// not exist.
    pub fn send(&self, to: PeerIndex, lane: Lane, frame: Arc<[u8]>) {
        let most = if lane == Lane::Votes { VOTE_FRAME_BYTES_MAX } else { self.shared.frame_bytes_max };
        assert!(frame.len() <= most, "a frame of {} bytes; at most {most} may be sent", frame.len());
        self.link(to).push(lane, frame);
    }

    /// Whether there is a peer of this index.
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

    /// What has passed between this validator and a peer.
    ///
    /// # Panics
    /// If there is no such peer.
    pub fn counters(&self, peer: PeerIndex) -> Counters {
        self.link(peer).counters()
    }

    /// The time to a connected peer and back, as its connection estimates it.
    ///
    /// # Panics
    /// If there is no such peer.
    pub fn round_trip(&self, peer: PeerIndex) -> Option<Duration> {
        self.link(peer).live().map(|live| live.connection.rtt())
    }

    /// Connections that were refused because the key is on no list, the handshake was none, or too many came at once.
    pub fn strangers(&self) -> u64 {
        self.shared.strangers.load(Ordering::Relaxed)
    }

    /// Ends the connection to a peer whose frames the shell refused too often. Nothing of it is listened to for a
    /// while, longer each time.
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

    /// Ends all connections, telling the peers.
    pub fn stop(&self) {
        let Some(runtime) = &self.runtime else { return };
        let (told, wait) = std::sync::mpsc::channel::<()>();
        let endpoint = self.shared.endpoint.clone();
        endpoint.close(VarInt::from_u32(LinkReason::Stopping.code()), LinkReason::Stopping.to_string().as_bytes());
        runtime.spawn(async move {
            endpoint.wait_idle().await;
            drop(told);
        });
        // The channel ends when all have been told.
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
            // On a thread of its own, because this one may belong to another runtime, which forbids waiting.
            let ending = std::thread::spawn(move || runtime.shutdown_timeout(ENDING));
            // It can only fail by a panic, and what panicked has ended.
            let _ = ending.join();
        }
    }
}

impl Shared {
    fn new(settings: TransportSettings, events: SyncSender<Event>) -> Result<Shared, TransportError> {
        let identity = tls::Identity::new(&settings.secret).map_err(TransportError::tls)?;
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

/// What must hold before anything is started.
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
