//! The QUIC endpoint: one UDP socket, windows and timers.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use primitives::{PublicKey, SecretKey};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::crypto::{CryptoError, HmacKey};
use quinn::{ConnectionId, ConnectionIdGenerator, TransportConfig, VarInt};

use sockets::raw_keys::{self, Callers, Identity};

use super::TransportError;

/// Time without any packet after which a peer counts as gone.
const IDLE_MS: u32 = 2_000;
/// Interval of keep-alives of an idle side: four within the above.
const KEEP_ALIVE: Duration = Duration::from_millis(450);
/// Maximum number of bulk frames in flight, each on its own stream.
pub(crate) const BULK_STREAMS: u32 = 8;
/// Maximum bytes in flight on one stream: a sub-block within one round trip around the world at 20 MB/s.
const STREAM_BYTES: u32 = 4 << 20;
/// Maximum bytes in flight on a connection. Every bulk stream may have filled its window because nobody reads it, and
/// votes must get through all the same.
const CONNECTION_BYTES: u32 = STREAM_BYTES * (BULK_STREAMS + 1);
/// Bytes sent before the first acknowledgement. Links between validators are known to carry more than the ten packets
/// with which unknown links begin: a sub-block of 1 MB must not need seven round trips to reach its rate.
const INITIAL_WINDOW_BYTES: u64 = 256 << 10;
/// The assumed round-trip time until it is measured. If too low, a first packet is repeated; if too high, a lost one
/// is repeated late.
const INITIAL_RTT: Duration = Duration::from_millis(150);
/// The name of the protocol in the handshake.
const PROTOCOL: &[u8] = b"walras";
/// Requested buffer size for each direction of the socket; the system may give less.
const SOCKET_BYTES: usize = 4 << 20;
/// Largest datagram that is tried: the UDP payload of an Ethernet packet over IPv6.
const DATAGRAM_BYTES_MAX: u16 = 1_452;
/// Maximum number of queued handshakes; further ones are dropped, and genuine callers repeat them.
const INCOMING_MAX: usize = 256;
const CONNECTION_ID_BYTES: usize = 8;

/// Binds the socket and starts to listen, on the current runtime.
pub(crate) fn bind(
    listen: SocketAddr,
    identity: &Identity,
    allowed: Vec<PublicKey>,
    secret: &SecretKey,
) -> Result<quinn::Endpoint, TransportError> {
    let failed = |error| TransportError::Listen(listen, error);
    let socket = UdpSocket::bind(listen).map_err(failed)?;
    enlarge(&socket).map_err(failed)?;
    let crypto = raw_keys::server(identity, Callers::Keys(allowed), PROTOCOL).map_err(TransportError::tls)?;
    let crypto = QuicServerConfig::try_from(crypto).expect("TLS 1.3 with the cipher that QUIC begins with");
    let mut server = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    // Validators do not migrate; one whose address changes opens a new connection.
    server.transport_config(transport()).migration(false).max_incoming(INCOMING_MAX);
    let mut config = quinn::EndpointConfig::new(Arc::new(ResetKey::new(secret)));
    config.cid_generator(|| Box::new(RandomIds));
    quinn::Endpoint::new(config, Some(server), socket, Arc::new(quinn::TokioRuntime)).map_err(failed)
}

/// The configuration for a connection to the holder of this key.
pub(crate) fn client(identity: &Identity, expected: PublicKey) -> Result<quinn::ClientConfig, TransportError> {
    let crypto = raw_keys::client(Some(identity), expected, PROTOCOL).map_err(TransportError::tls)?;
    let crypto = QuicClientConfig::try_from(crypto).expect("TLS 1.3 with the cipher that QUIC begins with");
    let mut client = quinn::ClientConfig::new(Arc::new(crypto));
    client.transport_config(transport());
    Ok(client)
}

fn transport() -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    let mut congestion = quinn::congestion::CubicConfig::default();
    congestion.initial_window(INITIAL_WINDOW_BYTES);
    let mut datagrams = quinn::MtuDiscoveryConfig::default();
    datagrams.upper_bound(DATAGRAM_BYTES_MAX);
    config
        .max_idle_timeout(Some(VarInt::from_u32(IDLE_MS).into()))
        .keep_alive_interval(Some(KEEP_ALIVE))
        .initial_rtt(INITIAL_RTT)
        .max_concurrent_bidi_streams(VarInt::from_u32(1))
        .max_concurrent_uni_streams(VarInt::from_u32(BULK_STREAMS))
        .stream_receive_window(VarInt::from_u32(STREAM_BYTES))
        .receive_window(VarInt::from_u32(CONNECTION_BYTES))
        .send_window(CONNECTION_BYTES.into())
        .datagram_receive_buffer_size(None)
        .mtu_discovery_config(Some(datagrams))
        .congestion_controller_factory(Arc::new(congestion));
    Arc::new(config)
}

/// Makes room for a burst from every peer at once; with a smaller buffer packets are repeated.
fn enlarge(socket: &UdpSocket) -> std::io::Result<()> {
    let state = quinn::udp::UdpSocketState::new(socket.into())?;
    let set = [
        state.set_recv_buffer_size(socket.into(), SOCKET_BYTES),
        state.set_send_buffer_size(socket.into(), SOCKET_BYTES),
    ];
    for error in set.into_iter().filter_map(Result::err) {
        tracing::warn!(%error, "cannot enlarge the socket's buffer; keeping the system's");
    }
    Ok(())
}

/// Signs *stateless resets*: a process that was killed and restarted answers the first packet that it does not
/// understand with a reset, so that its peer knows that the connection is gone, instead of waiting until it is idle.
/// The key must therefore be the same in both runs.
struct ResetKey([u8; 32]);

impl ResetKey {
    fn new(secret: &SecretKey) -> ResetKey {
        let seed = zeroize::Zeroizing::new(secret.to_seed());
        ResetKey(blake3::derive_key("walras 2026 stateless reset v1", &*seed))
    }
}

impl HmacKey for ResetKey {
    fn sign(&self, data: &[u8], signature: &mut [u8]) {
        signature.copy_from_slice(blake3::keyed_hash(&self.0, data).as_bytes());
    }

    fn signature_len(&self) -> usize {
        blake3::OUT_LEN
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        // Comparing with a hash takes the same time wherever the first difference is.
        let signature: [u8; blake3::OUT_LEN] = signature.try_into().map_err(|_| CryptoError)?;
        (blake3::keyed_hash(&self.0, data) == signature).then_some(()).ok_or(CryptoError)
    }
}

/// Connection ids without a mark of the process that made them, so that another run answers them with a reset.
struct RandomIds;

impl ConnectionIdGenerator for RandomIds {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut id = [0; CONNECTION_ID_BYTES];
        getrandom::fill(&mut id).expect("the system gives random numbers");
        ConnectionId::new(&id)
    }

    fn cid_len(&self) -> usize {
        CONNECTION_ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}
