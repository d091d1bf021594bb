//! What carries the bytes of a stream: TCP, or TLS over it.
//!
//! TLS is that of links between validators (raw ed25519 keys, pinned): the key of both ends follows from the venue's
//! secret. So whoever has the secret is a member and nobody else can complete a handshake. Frames keep their MACs,
//! which name the member; TLS hides orders and reports from the network between.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use primitives::SecretKey;
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};
use sockets::raw_keys::{Callers, Identity, client, server, server_name};

const PROTOCOL: &[u8] = b"walras-edge/1";
/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 16;

/// How the members of an edge encrypt their streams.
#[derive(Clone)]
pub struct StreamTls {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl StreamTls {
    /// The one that all members with this secret use.
    ///
    /// # Errors
    /// If the library has no TLS 1.3 with ed25519 keys.
    pub fn of_secret(secret: &[u8; 32]) -> Result<StreamTls, rustls::Error> {
        let own = SecretKey::from_seed(blake3::derive_key("walras fairnet stream key v1", secret));
        let (identity, public) = (Identity::new(&own)?, own.public());
        Ok(StreamTls {
            client: Arc::new(client(Some(&identity), public, PROTOCOL)?),
            server: Arc::new(server(&identity, Callers::Keys(vec![public]), PROTOCOL)?),
        })
    }
}

/// A socket, and TLS if it is spoken.
pub(crate) struct Wire {
    pub(crate) socket: TcpStream,
    tls: Option<Box<Connection>>,
}

impl Wire {
    /// A connection that this end opened.
    pub(crate) fn opened(socket: TcpStream, tls: Option<&StreamTls>) -> io::Result<Wire> {
        let connect = |tls: &StreamTls| ClientConnection::new(tls.client.clone(), server_name());
        let tls = tls.map(connect).transpose().map_err(io::Error::other)?;
        Ok(Wire { socket, tls: tls.map(|connection| Box::new(connection.into())) })
    }

    /// A connection that somebody else opened.
    pub(crate) fn accepted(socket: TcpStream, tls: Option<&StreamTls>) -> io::Result<Wire> {
        let accept = |tls: &StreamTls| ServerConnection::new(tls.server.clone());
        let tls = tls.map(accept).transpose().map_err(io::Error::other)?;
        Ok(Wire { socket, tls: tls.map(|connection| Box::new(connection.into())) })
    }

    /// Whether TLS has bytes of its own to write.
    pub(crate) fn wants_write(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Reads what has come, about one buffer of it.
    ///
    /// # Errors
    /// If the other end has closed the stream, or is no member of the edge.
    pub(crate) fn read(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        let Some(tls) = &mut self.tls else {
            let mut buffer = [0; READ_BYTES];
            return match self.socket.read(&mut buffer) {
                Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    into.extend_from_slice(&buffer[..count]);
                    Ok(())
                }
                Err(error) => unless_pending(error),
            };
        };
        match tls.read_tls(&mut self.socket) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error) => return unless_pending(error),
        }
        let came = tls.process_new_packets().map_err(io::Error::other)?.plaintext_bytes_to_read();
        let before = into.len();
        into.resize(before + came, 0);
        tls.reader().read_exact(&mut into[before..])
    }

    /// Writes what the kernel takes of these bytes.
    ///
    /// # Errors
    /// If the connection has ended.
    pub(crate) fn write(&mut self, from: &mut Vec<u8>) -> io::Result<()> {
        let Some(tls) = &mut self.tls else {
            while !from.is_empty() {
                match self.socket.write(from) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(written) => drop(from.drain(..written)),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return unless_pending(error),
                }
            }
            return Ok(());
        };
        // Before the handshake is done TLS keeps what it is given, up to its own bound.
        while tls.wants_write() || !from.is_empty() {
            let taken = tls.writer().write(from)?;
            from.drain(..taken);
            if !tls.wants_write() {
                break;
            }
            match tls.write_tls(&mut self.socket) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return unless_pending(error),
            }
        }
        Ok(())
    }
}

fn unless_pending(error: io::Error) -> io::Result<()> {
    if is_pending(&error) || error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) }
}

/// Whether a socket has only nothing to say yet.
pub(crate) fn is_pending(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected)
}
