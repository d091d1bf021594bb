//! TLS with the key of the shard, as an option of the clients' socket: see [`sockets::raw_keys`].
//!
//! Answers authenticate themselves. So TLS only prevents someone on the network path from reading who pays whom, or
//! dropping selected payments.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use primitives::{PublicKey, SecretKey};
use rustls::{ClientConnection, Connection, Error, ServerConnection};
use sockets::raw_keys::{self, Callers, Identity};
use tokio_rustls::TlsAcceptor;

/// The name of the protocol of clients in the handshake.
const PROTOCOL: &[u8] = b"walras-lane";
/// The name of the protocol between a node and a shard that runs apart, who both show their keys.
const APART: &[u8] = b"walras-shard";
/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(2);
/// How long a handshake between a node and its shard may take, and a frame to leave.
const HANDSHAKE: Duration = Duration::from_secs(20);
/// Bytes of TLS records that are read at once.
const RECORDS: usize = 64 << 10;

/// The server side: the shard proves that it has the key.
pub(crate) fn acceptor(key: &SecretKey) -> Result<TlsAcceptor, Error> {
    let config = raw_keys::server(&Identity::new(key)?, Callers::Anybody, PROTOCOL)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn client(expected: PublicKey) -> Result<ClientConnection, Error> {
    let config = raw_keys::client(None, expected, PROTOCOL)?;
    ClientConnection::new(Arc::new(config), raw_keys::server_name())
}

/// The state of a TLS connection, which its sending and its receiving end share.
type Secured = Arc<Mutex<Connection>>;

fn lock(secured: &Secured) -> MutexGuard<'_, Connection> {
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
    connect_over(TcpStream::connect_timeout(&address, CONNECT)?, key)
}

/// Like [`connect`], over a connection that is open already.
///
/// # Errors
/// As for [`connect`].
pub fn connect_over(stream: TcpStream, key: Option<PublicKey>) -> io::Result<(LaneSender, LaneReceiver)> {
    let secured = key.map(client).transpose().map_err(io::Error::other)?;
    over(stream, secured.map(Connection::from), CONNECT)
}

/// Connects a node to a shard of its member that runs apart: each shows its key, and the shard must have the expected
/// one.
///
/// # Errors
/// If no one listens there, or either end does not have its key.
pub fn dial_shard(address: SocketAddr, own: &SecretKey, expected: PublicKey) -> io::Result<(LaneSender, LaneReceiver)> {
    let config = Identity::new(own).and_then(|own| raw_keys::client(Some(&own), expected, APART));
    let connection = config.and_then(|config| ClientConnection::new(Arc::new(config), raw_keys::server_name()));
    let stream = TcpStream::connect_timeout(&address, CONNECT)?;
    over(stream, Some(connection.map_err(io::Error::other)?.into()), HANDSHAKE)
}

/// The other end of [`dial_shard`]: only the holder of the node's key gets past the handshake.
///
/// # Errors
/// As for [`dial_shard`].
pub fn answer_node(stream: TcpStream, own: &SecretKey, node: PublicKey) -> io::Result<(LaneSender, LaneReceiver)> {
    let callers = Callers::Keys(vec![node]);
    let config = Identity::new(own).and_then(|own| raw_keys::server(&own, callers, APART));
    let connection = config.and_then(|config| ServerConnection::new(Arc::new(config)));
    over(stream, Some(connection.map_err(io::Error::other)?.into()), HANDSHAKE)
}

fn over(
    mut stream: TcpStream,
    secured: Option<Connection>,
    patience: Duration,
) -> io::Result<(LaneSender, LaneReceiver)> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(patience))?;
    let secure = |mut connection: Connection| {
        stream.set_read_timeout(Some(patience))?;
        while connection.is_handshaking() {
            connection.complete_io(&mut stream)?;
        }
        stream.set_read_timeout(None)?;
        io::Result::Ok(Arc::new(Mutex::new(connection)))
    };
    let secured = secured.map(secure).transpose()?;
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

fn flush(connection: &mut Connection, stream: &mut TcpStream) -> io::Result<()> {
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
