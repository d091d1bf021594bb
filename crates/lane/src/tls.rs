//! TLS with the key of the shard, as an option of the clients' socket.
//!
//! TLS 1.3 with the shard's raw ed25519 public key (RFC 7250), which the client pins: there are no certificates,
//! names or authorities. Answers authenticate themselves. So TLS only prevents someone on the network path from
//! reading who pays whom, or dropping selected payments. Bytes that TLS signs begin with 64 spaces and bytes that the
//! lane signs with its tag, so neither can be mistaken for the other.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use primitives::{PublicKey, SecretKey};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{CertificateError, ClientConnection, DigitallySignedStruct, Error, SignatureScheme};
use tokio_rustls::TlsAcceptor;
use zeroize::Zeroizing;

/// Both sides name this protocol in the handshake, so that no client uses a server of another protocol by mistake.
const PROTOCOL: &[u8] = b"walras-lane";
/// DER around the 32 bytes of an ed25519 public key (RFC 8410).
const PUBLIC_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// DER around the 32 bytes of an ed25519 seed (RFC 8410).
const SECRET_PREFIX: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(2);
/// Bytes of TLS records that are read at once.
const RECORDS: usize = 64 << 10;

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// The server side: the shard proves that it has the key.
pub(crate) fn acceptor(key: &SecretKey) -> Result<TlsAcceptor, Error> {
    let mut der = Zeroizing::new([0; SECRET_PREFIX.len() + 32]);
    der[..SECRET_PREFIX.len()].copy_from_slice(&SECRET_PREFIX);
    der[SECRET_PREFIX.len()..].copy_from_slice(&*Zeroizing::new(key.to_seed()));
    let signing = ring::sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(&der[..]))?;
    let public = [&PUBLIC_PREFIX[..], &key.public().0].concat();
    let identity = Arc::new(CertifiedKey::new(vec![public.into()], signing));
    let mut config = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(identity)));
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.alpn_protocols = vec![PROTOCOL.into()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn client(expected: PublicKey) -> Result<ClientConnection, Error> {
    let mut config = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Pinned::new(expected)))
        .with_no_client_auth();
    config.resumption = rustls::client::Resumption::disabled();
    config.enable_sni = false;
    config.alpn_protocols = vec![PROTOCOL.into()];
    let name = ServerName::try_from("shard").expect("a placeholder name, which is not checked");
    ClientConnection::new(Arc::new(config), name)
}

/// Accepts exactly one key.
#[derive(Debug)]
struct Pinned {
    key: PublicKey,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Pinned {
    fn new(key: PublicKey) -> Pinned {
        Pinned { key, algorithms: ring::default_provider().signature_verification_algorithms }
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let is_expected = shown.strip_prefix(&PUBLIC_PREFIX) == Some(&self.key.0);
        let refused = Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure);
        is_expected.then(ServerCertVerified::assertion).ok_or(refused)
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.2 is not spoken here".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(shown.as_ref());
        verify_tls13_signature_with_raw_key(message, &key, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

/// The state of a client's TLS connection, which both its ends share.
type Secured = Arc<Mutex<ClientConnection>>;

fn lock(secured: &Secured) -> MutexGuard<'_, ClientConnection> {
    secured.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The sending end of a connection to a shard.
#[derive(Debug)]
pub struct LaneSender {
    stream: TcpStream,
    secured: Option<Secured>,
}

/// The receiving end of a connection to a shard.
#[derive(Debug)]
pub struct LaneReceiver {
    stream: TcpStream,
    secured: Option<Secured>,
    /// Received records that are not decrypted yet.
    records: Vec<u8>,
}

/// Connects to a shard: with TLS if a key is given; the shard must prove that it has the key.
///
/// # Errors
/// If no one listens there, or the server does not have the key.
pub fn connect(address: SocketAddr, key: Option<PublicKey>) -> io::Result<(LaneSender, LaneReceiver)> {
    let mut stream = TcpStream::connect_timeout(&address, CONNECT)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(CONNECT))?;
    let secured = match key {
        None => None,
        Some(key) => {
            let mut connection = client(key).map_err(io::Error::other)?;
            stream.set_read_timeout(Some(CONNECT))?;
            while connection.is_handshaking() {
                connection.complete_io(&mut stream)?;
            }
            stream.set_read_timeout(None)?;
            Some(Arc::new(Mutex::new(connection)))
        }
    };
    let reading = stream.try_clone()?;
    let receiver = LaneReceiver { stream: reading, secured: secured.clone(), records: Vec::new() };
    Ok((LaneSender { stream, secured }, receiver))
}

impl LaneSender {
    /// Ends the connection; the receiver is notified.
    pub fn close(&self) {
        // It may already be closed.
        drop(self.stream.shutdown(std::net::Shutdown::Both));
    }

    /// Sends all bytes.
    ///
    /// # Errors
    /// If the connection is closed, or the peer does not read.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(secured) = &self.secured else { return self.stream.write_all(bytes) };
        let mut left = bytes;
        while !left.is_empty() {
            let mut connection = lock(secured);
            let taken = connection.writer().write(left)?;
            left = &left[taken..];
            flush(&mut connection, &mut self.stream)?;
        }
        Ok(())
    }
}

fn flush(connection: &mut ClientConnection, stream: &mut TcpStream) -> io::Result<()> {
    while connection.wants_write() {
        connection.write_tls(stream)?;
    }
    Ok(())
}

impl LaneReceiver {
    /// Waits no longer than this for bytes; without a timeout it waits forever.
    ///
    /// # Errors
    /// If the timeout is zero.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.stream.set_read_timeout(timeout)
    }

    /// Reads received bytes, at least one; none if the connection has ended.
    ///
    /// # Errors
    /// If the connection broke, or the timeout expired.
    pub fn receive(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let Some(secured) = &self.secured else { return self.stream.read(to) };
        loop {
            let mut connection = lock(secured);
            match connection.reader().read(to) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            if self.records.is_empty() {
                // Other threads may send in the meantime.
                drop(connection);
                let mut records = vec![0; RECORDS];
                let count = self.stream.read(&mut records)?;
                if count == 0 {
                    return Ok(0);
                }
                records.truncate(count);
                self.records = records;
                continue;
            }
            let mut unread = &self.records[..];
            connection.read_tls(&mut unread)?;
            let taken = self.records.len() - unread.len();
            self.records.drain(..taken);
            connection.process_new_packets().map_err(io::Error::other)?;
            flush(&mut connection, &mut self.stream)?;
        }
    }
}
