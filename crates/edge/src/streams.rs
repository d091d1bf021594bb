//! One stream between members over TCP, or over TLS: the greeting, then frames with MACs.
//!
//! | bytes of the greeting | field |
//! |---|---|
//! | 0–3 | `WEDG` |
//! | 4 | version, 1 |
//! | 5 | purpose: 0 control, 1 orders |
//! | 6–13 | who opens the stream |
//! | 14–29 | nonce of the opener |
//!
//! The other end answers with its own nonce. Then each sends a *hello*, sealed: who cannot is a stranger. A stream that
//! has more than [`UNSENT_BYTES`] unsent ends, so that nobody who does not read takes memory.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};

use fairnet::{LinkEnd, LinkError, LinkMessage, LinkPurpose, LinkSeal, LinkTerms, MemberId};
use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, SockaddrStorage, connect, socket};

use crate::wire::{StreamTls, Wire};

const MAGIC: [u8; 5] = *b"WEDG\x01";
const GREETING: usize = 30;
const NONCE: usize = 16;
/// Unsent bytes at which a stream ends.
pub const UNSENT_BYTES: usize = 8 << 20;

/// Why a stream ended.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The other end closed it, or the network did.
    #[error("the stream ended: {0}")]
    Io(#[from] io::Error),
    /// A frame was not acceptable.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The greeting is of another version.
    #[error("no member of this version opened the stream")]
    Greeting,
    /// The other end does not read.
    #[error("{0} bytes are unsent: the other end does not read")]
    Unread(usize),
}

/// What this end knows of the other.
enum Stage {
    /// As the opener: waits for the other end's nonce.
    Opening { purpose: LinkPurpose, to: MemberId, nonce: [u8; NONCE] },
    /// As the other end: waits for the greeting.
    Accepting,
    /// Both nonces are known; `is_open` once the other end's hello came.
    Sealed { end: LinkEnd, seal: LinkSeal, is_open: bool },
}

/// A stream and what is on its way through it.
pub struct MemberStream {
    wire: Wire,
    own: MemberId,
    secret: [u8; 32],
    stage: Stage,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
}

/// What a stream says.
#[derive(Debug)]
pub enum StreamEvent {
    /// The other end has proved that it is a member.
    Opened(LinkEnd),
    /// It says this.
    Message(LinkEnd, LinkMessage),
}

fn nonce() -> io::Result<[u8; NONCE]> {
    let mut nonce = [0; NONCE];
    getrandom::fill(&mut nonce).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(nonce)
}

/// Begins to connect, without waiting.
fn begin_connect(to: SocketAddr) -> io::Result<TcpStream> {
    let family = if to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket: OwnedFd = socket(family, SockType::Stream, flags, SockProtocol::Tcp)?;
    match connect(socket.as_raw_fd(), &SockaddrStorage::from(to)) {
        Ok(()) | Err(Errno::EINPROGRESS) => Ok(TcpStream::from(socket)),
        Err(error) => Err(error.into()),
    }
}

impl MemberStream {
    /// Opens a stream to a member. Its greeting leaves as soon as it is connected.
    ///
    /// # Errors
    /// If the address cannot be reached.
    pub fn open(
        own: MemberId,
        secret: [u8; 32],
        (to, address): (MemberId, SocketAddr),
        purpose: LinkPurpose,
        tls: Option<&StreamTls>,
    ) -> io::Result<MemberStream> {
        let (wire, nonce) = (Wire::opened(begin_connect(address)?, tls)?, nonce()?);
        let mut outgoing = MAGIC.to_vec();
        outgoing.push(purpose as u8);
        outgoing.extend_from_slice(&own.to_be_bytes());
        outgoing.extend_from_slice(&nonce);
        let stage = Stage::Opening { purpose, to, nonce };
        Ok(MemberStream { wire, own, secret, stage, incoming: Vec::new(), outgoing })
    }

    /// Takes a stream that somebody opened.
    ///
    /// # Errors
    /// If the socket is broken.
    pub fn accept(
        own: MemberId,
        secret: [u8; 32],
        socket: TcpStream,
        tls: Option<&StreamTls>,
    ) -> io::Result<MemberStream> {
        socket.set_nonblocking(true)?;
        let (wire, incoming, outgoing) = (Wire::accepted(socket, tls)?, Vec::new(), Vec::new());
        Ok(MemberStream { wire, own, secret, stage: Stage::Accepting, incoming, outgoing })
    }

    /// What to wait for.
    pub fn socket(&self) -> &TcpStream {
        &self.wire.socket
    }

    /// Whether it wants to write.
    pub fn is_writing(&self) -> bool {
        !self.outgoing.is_empty() || self.wire.wants_write()
    }

    /// Who is at the other end, once both know the secret.
    pub fn end(&self) -> Option<LinkEnd> {
        match &self.stage {
            Stage::Sealed { end, is_open: true, .. } => Some(*end),
            _ => None,
        }
    }

    /// Will say something.
    pub fn say(&mut self, message: &LinkMessage) {
        if let Stage::Sealed { seal, .. } = &mut self.stage {
            seal.seal(message, &mut self.outgoing);
        }
    }

    /// Writes what the kernel takes.
    ///
    /// # Errors
    /// If the stream has ended, or the other end does not read.
    pub fn write(&mut self) -> Result<(), StreamError> {
        self.wire.write(&mut self.outgoing)?;
        let unsent = self.outgoing.len();
        if unsent > UNSENT_BYTES { Err(StreamError::Unread(unsent)) } else { Ok(()) }
    }

    /// Reads what has come, one buffer of it.
    ///
    /// # Errors
    /// If the stream has ended or the other end is no member.
    pub fn read(&mut self, out: &mut Vec<StreamEvent>) -> Result<(), StreamError> {
        self.wire.read(&mut self.incoming)?;
        self.advance(out)
    }

    fn advance(&mut self, out: &mut Vec<StreamEvent>) -> Result<(), StreamError> {
        match &self.stage {
            Stage::Opening { purpose, to, nonce } => {
                let Some(theirs) = self.incoming.first_chunk::<NONCE>().copied() else { return Ok(()) };
                let terms = LinkTerms { from: self.own, to: *to, purpose: *purpose, nonces: [*nonce, theirs] };
                let end = LinkEnd { member: *to, purpose: *purpose };
                self.incoming.drain(..NONCE);
                self.agree(end, &terms, true);
            }
            Stage::Accepting => {
                let Some(greeting) = self.incoming.first_chunk::<GREETING>().copied() else { return Ok(()) };
                let (end, theirs) = greeted(&greeting).ok_or(StreamError::Greeting)?;
                let own = nonce()?;
                self.incoming.drain(..GREETING);
                self.outgoing.extend_from_slice(&own);
                let LinkEnd { member, purpose } = end;
                let terms = LinkTerms { from: member, to: self.own, purpose, nonces: [theirs, own] };
                self.agree(end, &terms, false);
            }
            Stage::Sealed { .. } => {}
        }
        self.unseal(out)
    }

    fn agree(&mut self, end: LinkEnd, terms: &LinkTerms, is_opener: bool) {
        let seal = LinkSeal::new(&self.secret, terms, is_opener);
        self.stage = Stage::Sealed { end, seal, is_open: false };
        self.say(&LinkMessage::Hello);
        // Frames are small and each is awaited.
        drop(self.wire.socket.set_nodelay(true));
    }

    fn unseal(&mut self, out: &mut Vec<StreamEvent>) -> Result<(), StreamError> {
        let Stage::Sealed { end, seal, is_open } = &mut self.stage else { return Ok(()) };
        let mut used = 0;
        while let Some((message, bytes)) = seal.open(&self.incoming[used..])? {
            used += bytes;
            match (message, *is_open) {
                (LinkMessage::Hello, false) => {
                    *is_open = true;
                    out.push(StreamEvent::Opened(*end));
                }
                (LinkMessage::Hello, true) => {}
                (_, false) => return Err(StreamError::Greeting),
                (message, true) => out.push(StreamEvent::Message(*end, message)),
            }
        }
        self.incoming.drain(..used);
        Ok(())
    }
}

/// Who opens a stream, and its nonce.
fn greeted(greeting: &[u8; GREETING]) -> Option<(LinkEnd, [u8; NONCE])> {
    let purpose = match greeting[5] {
        0 => LinkPurpose::Control,
        1 => LinkPurpose::Orders,
        _ => return None,
    };
    let member = u64::from_be_bytes(std::array::from_fn(|at| greeting[6 + at]));
    let nonce = std::array::from_fn(|at| greeting[14 + at]);
    greeting.starts_with(&MAGIC).then_some((LinkEnd { member, purpose }, nonce))
}
