//! Sessions over TCP: SoupBinTCP 3.00, and the login of 4.10.
//!
//! A session is a stream of messages that a server numbers from one. A client logs in ([`SoupLogin`]) and names a
//! session and the number that it expects; upon acceptance the server sends the messages from that number on, in
//! packets that carry no number, because both sides count. After a lost connection the client logs in again and gets
//! what it missed: so every message of the server arrives once and in order. Messages of the client have no number
//! and may be lost. Who has sent nothing for a second sends a heartbeat; who hears nothing for fifteen gives up.
//!
//! A packet is two bytes of length, big endian, a type and a payload; the length counts the type. Numbers in packets
//! are digits, padded with spaces on the left.
//!
//! ```text
//! client                                        server
//!   L  login: session, number n ──────────────►
//!      ◄──────────────── A  accepted: session, n      or J: A not authorized, S no such session
//!      ◄──────────────── S  message n
//!      ◄──────────────── S  message n + 1
//!   U  message ───────────────────────────────►
//!   R  heartbeat ─────────────────────────────►
//!      ◄──────────────── H  heartbeat
//!   O  logout ────────────────────────────────►       or, from the server, Z  end of session
//! ```
//!
//! | module | what |
//! |---|---|
//! | here | packets, and a reader of a stream of bytes |
//! | [`server`] | one connection of a server, as steps; the messages of a session |
//! | [`client`] | a client, as steps, across its connections |
//!
//! # Properties
//!
//! - What is encoded is decoded to the same packet. Other paddings of numbers are read, too.
//! - A reader keeps at most one packet; a length above its limit is refused when its two bytes are there.
//! - A machine is silent until it gets an input: it has no clock, and the caller says the time, in milliseconds of
//!   any clock that does not go back.
//! - What a machine has told to send and the socket has not taken is bounded ([`SoupLimits`]).
//!
//! # Decisions
//!
//! - A session is the same with spaces on either side.
//! - A number above the next one is refused as no such session; so is one whose messages the server has forgotten.
//! - The heartbeat timeout that a login of 4.10 asks for counts if it is shorter than the server's own, and is at least
//!   two heartbeats. A client cannot hold half-open connections longer than others can.
//!
//! ```
//! use protocols::soup::client::{SoupClient, SoupClientEffect, SoupClientInput};
//! use protocols::soup::{ANY_SESSION, SoupLimits, SoupLogin};
//!
//! let (username, password) = (*b"ADA   ", *b"secret    ");
//! let login = SoupLogin { username, password, session: ANY_SESSION, next: 1, timeout_ms: None };
//! let mut client = SoupClient::new(login, SoupLimits::default());
//! let effects = client.step(0, SoupClientInput::Connected);
//! assert!(matches!(&effects[..], [SoupClientEffect::Send(bytes)] if bytes.len() == 49 && bytes[2] == b'L'));
//! ```

pub mod client;
mod link;
pub mod server;

pub use link::{SoupClose, SoupLimits};

use crate::field::{Field, take};

/// The name of a session, or spaces for the one that is active.
pub type SoupSession = [u8; 10];

/// The session of a client that has none yet.
pub const ANY_SESSION: SoupSession = [b' '; 10];
/// The longest payload, in bytes.
pub const PAYLOAD_MAX: usize = u16::MAX as usize - 1;
/// Who has sent nothing for so long sends a heartbeat.
pub const HEARTBEAT_MS: u64 = 1_000;
/// Who hears nothing for so long gives up.
pub const TIMEOUT_MS: u64 = 15_000;
/// The largest timeout that a login can ask for, of five digits.
pub const ASKED_TIMEOUT_MS_MAX: u32 = 99_999;

/// Bytes of a login's payload in 3.00.
const LOGIN: usize = 46;
/// Digits of the timeout that 4.10 adds.
const TIMEOUT_DIGITS: usize = 5;

/// Why bytes are no packet, or a packet cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SoupError {
    /// There is no type.
    #[error("a SoupBinTCP packet has no type")]
    Empty,
    /// The packet is longer than the reader admits.
    #[error("a SoupBinTCP packet has at most {most} bytes after its length here, not {has}")]
    Length {
        /// The most.
        most: u16,
        /// The length that the packet states.
        has: u16,
    },
    /// The type is none.
    #[error("no SoupBinTCP packet is of type {0:#04x}")]
    Kind(u8),
    /// The payload has another length than its type.
    #[error("the payload of a SoupBinTCP packet of type {} has {needs} bytes, not {has}", char::from(*kind))]
    Payload {
        /// The type.
        kind: u8,
        /// The bytes of its payload.
        needs: usize,
        /// The bytes that are there.
        has: usize,
    },
    /// A number has other characters than digits and spaces around them, or more than 64 bits.
    #[error("a number in a SoupBinTCP packet of type {} is not of digits, or above 64 bits", char::from(*kind))]
    Number {
        /// The type.
        kind: u8,
    },
    /// A login is refused for a reason that is none.
    #[error("a SoupBinTCP login is refused for A or S, not {0:#04x}")]
    Reason(u8),
    /// A payload to encode is too long.
    #[error("the payload of a SoupBinTCP packet has at most 65,534 bytes, not {0}")]
    TooLong(usize),
    /// A timeout to encode has more than five digits.
    #[error("a SoupBinTCP login asks for a timeout of at most 99,999 ms, not {0}")]
    Timeout(u32),
    /// The type is known and has no place in this state.
    #[error("a SoupBinTCP packet of type {} is out of place {state}", char::from(*kind))]
    OutOfPlace {
        /// The type.
        kind: u8,
        /// When.
        state: &'static str,
    },
}

/// Why a server refuses a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoupReject {
    /// Name and password are not known.
    NotAuthorized,
    /// The session is not there, or not from this number.
    NoSession,
}

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoupLogin {
    /// Its name, padded on the right; letters count alike in both cases.
    pub username: [u8; 6],
    /// Its password, padded on the right; letters count alike in both cases.
    pub password: [u8; 10],
    /// The session, or [`ANY_SESSION`].
    pub session: SoupSession,
    /// The number of the first message that it wants; zero is the latest.
    pub next: u64,
    /// The heartbeat timeout that it asks for, in ms, in 4.10; a login of 3.00 has none.
    pub timeout_ms: Option<u32>,
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoupPacket<'a> {
    /// A text that both sides skip.
    Debug(&'a [u8]),
    /// The client is logged in.
    LoginAccepted {
        /// The session.
        session: SoupSession,
        /// The number of the message that comes next.
        next: u64,
    },
    /// The client is not logged in.
    LoginRejected(SoupReject),
    /// A message of the server, numbered by its place.
    Sequenced(&'a [u8]),
    /// The server is there.
    ServerHeartbeat,
    /// The session has no further message.
    EndOfSession,
    /// The client logs in.
    LoginRequest(SoupLogin),
    /// A message without a number: of the client, and in 4.10 of the server.
    Unsequenced(&'a [u8]),
    /// The client is there.
    ClientHeartbeat,
    /// The client leaves.
    Logout,
}

impl<'a> SoupPacket<'a> {
    /// The packet of these bytes, which follow its length.
    ///
    /// # Errors
    /// [`SoupError`] if they are none.
    pub fn decode(bytes: &'a [u8]) -> Result<SoupPacket<'a>, SoupError> {
        let (&kind, payload) = bytes.split_first().ok_or(SoupError::Empty)?;
        match kind {
            b'+' => Ok(SoupPacket::Debug(payload)),
            b'S' => Ok(SoupPacket::Sequenced(payload)),
            b'U' => Ok(SoupPacket::Unsequenced(payload)),
            b'A' => accepted(payload),
            b'J' => rejected(payload),
            b'L' => login(payload).map(SoupPacket::LoginRequest),
            b'H' => sized(kind, 0, payload).map(|_| SoupPacket::ServerHeartbeat),
            b'Z' => sized(kind, 0, payload).map(|_| SoupPacket::EndOfSession),
            b'R' => sized(kind, 0, payload).map(|_| SoupPacket::ClientHeartbeat),
            b'O' => sized(kind, 0, payload).map(|_| SoupPacket::Logout),
            _ => Err(SoupError::Kind(kind)),
        }
    }

    /// The letter of the type.
    pub fn kind(&self) -> u8 {
        match self {
            SoupPacket::Debug(_) => b'+',
            SoupPacket::LoginAccepted { .. } => b'A',
            SoupPacket::LoginRejected(_) => b'J',
            SoupPacket::Sequenced(_) => b'S',
            SoupPacket::ServerHeartbeat => b'H',
            SoupPacket::EndOfSession => b'Z',
            SoupPacket::LoginRequest(_) => b'L',
            SoupPacket::Unsequenced(_) => b'U',
            SoupPacket::ClientHeartbeat => b'R',
            SoupPacket::Logout => b'O',
        }
    }

    /// Appends the packet, its length first.
    ///
    /// # Errors
    /// [`SoupError::TooLong`] or [`SoupError::Timeout`]; nothing is appended.
    pub fn encode(&self, to: &mut Vec<u8>) -> Result<(), SoupError> {
        let fields = self.fields()?;
        let payload = match self {
            SoupPacket::Debug(payload) | SoupPacket::Sequenced(payload) | SoupPacket::Unsequenced(payload) => payload,
            _ => &fields[..],
        };
        let length = u16::try_from(1 + payload.len()).map_err(|_| SoupError::TooLong(payload.len()))?;
        length.put(to);
        self.kind().put(to);
        to.extend_from_slice(payload);
        Ok(())
    }

    /// The payload of a packet that has fields.
    fn fields(&self) -> Result<Vec<u8>, SoupError> {
        let mut to = Vec::new();
        match self {
            SoupPacket::LoginAccepted { session, next } => {
                session.put(&mut to);
                to.extend(format!("{next:>20}").bytes());
            }
            SoupPacket::LoginRejected(SoupReject::NotAuthorized) => to.push(b'A'),
            SoupPacket::LoginRejected(SoupReject::NoSession) => to.push(b'S'),
            SoupPacket::LoginRequest(login) => login.put(&mut to)?,
            _ => {}
        }
        Ok(to)
    }
}

impl SoupLogin {
    fn put(&self, to: &mut Vec<u8>) -> Result<(), SoupError> {
        self.username.put(to);
        self.password.put(to);
        self.session.put(to);
        to.extend(format!("{:>20}", self.next).bytes());
        let Some(timeout_ms) = self.timeout_ms else { return Ok(()) };
        if timeout_ms > ASKED_TIMEOUT_MS_MAX {
            return Err(SoupError::Timeout(timeout_ms));
        }
        to.extend(format!("{timeout_ms:>TIMEOUT_DIGITS$}").bytes());
        Ok(())
    }
}

/// Whether two names are of one session.
pub fn is_same_session(one: &SoupSession, other: &SoupSession) -> bool {
    one.trim_ascii() == other.trim_ascii()
}

/// A payload that has as many bytes as its type needs.
fn sized(kind: u8, needs: usize, payload: &[u8]) -> Result<&[u8], SoupError> {
    if payload.len() == needs { Ok(payload) } else { Err(SoupError::Payload { kind, needs, has: payload.len() }) }
}

/// The number that `digits` are.
fn number(kind: u8, digits: &[u8]) -> Result<u64, SoupError> {
    let digits = digits.trim_ascii();
    let text = str::from_utf8(digits).ok().filter(|_| digits.iter().all(u8::is_ascii_digit));
    text.and_then(|text| text.parse().ok()).ok_or(SoupError::Number { kind })
}

fn accepted(payload: &[u8]) -> Result<SoupPacket<'_>, SoupError> {
    let mut rest = sized(b'A', 30, payload)?;
    let session = take(&mut rest);
    Ok(SoupPacket::LoginAccepted { session, next: number(b'A', rest)? })
}

fn rejected(payload: &[u8]) -> Result<SoupPacket<'_>, SoupError> {
    match sized(b'J', 1, payload)?[0] {
        b'A' => Ok(SoupPacket::LoginRejected(SoupReject::NotAuthorized)),
        b'S' => Ok(SoupPacket::LoginRejected(SoupReject::NoSession)),
        other => Err(SoupError::Reason(other)),
    }
}

fn login(payload: &[u8]) -> Result<SoupLogin, SoupError> {
    let has_timeout = payload.len() == LOGIN + TIMEOUT_DIGITS;
    let mut rest = if has_timeout { payload } else { sized(b'L', LOGIN, payload)? };
    let (username, password, session) = (take(&mut rest), take(&mut rest), take(&mut rest));
    let next = number(b'L', &take::<[u8; 20]>(&mut rest))?;
    let timeout_ms = if has_timeout { u32::try_from(number(b'L', rest)?).ok() } else { None };
    Ok(SoupLogin { username, password, session, next, timeout_ms })
}

/// A reader of a stream of bytes, which come in any pieces.
#[derive(Clone, Debug)]
pub struct SoupReader {
    /// The most bytes of a packet, its length not counted.
    most: u16,
    /// The packet so far, with its length.
    packet: Vec<u8>,
}

impl SoupReader {
    /// A reader that refuses packets of more than `most` bytes, type and payload.
    pub fn new(most: u16) -> SoupReader {
        SoupReader { most, packet: Vec::new() }
    }

    /// Takes bytes from `stream` until a packet is whole; `None` if they do not suffice.
    ///
    /// # Errors
    /// [`SoupError`]; the stream cannot be read any further.
    pub fn take(&mut self, stream: &mut &[u8]) -> Result<Option<SoupPacket<'_>>, SoupError> {
        if self.needs()? == 0 {
            self.packet.clear();
        }
        self.fill(stream)?;
        self.fill(stream)?;
        if self.needs()? == 0 { SoupPacket::decode(&self.packet[2..]).map(Some) } else { Ok(None) }
    }

    /// The bytes that the length lacks, and then the packet.
    fn needs(&self) -> Result<usize, SoupError> {
        let Some((length, rest)) = self.packet.split_first_chunk::<2>() else { return Ok(2 - self.packet.len()) };
        match u16::from_be_bytes(*length) {
            0 => Err(SoupError::Empty),
            has if has > self.most => Err(SoupError::Length { most: self.most, has }),
            has => Ok(usize::from(has) - rest.len()),
        }
    }

    /// Takes what [`SoupReader::needs`], as far as it is there.
    fn fill(&mut self, stream: &mut &[u8]) -> Result<(), SoupError> {
        let (taken, rest) = stream.split_at(self.needs()?.min(stream.len()));
        self.packet.extend_from_slice(taken);
        *stream = rest;
        Ok(())
    }
}
