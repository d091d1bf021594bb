//! The byte layout of the streams of a connection.
//!
//! The votes stream carries messages: a kind (1 byte), the length of the body (4 bytes, little-endian), the body.
//!
//! | kind | body |
//! |---|---|
//! | 0 hello | 85 bytes, the first message each way and never again: version (4), network (32), sender's incarnation (16), sender's clock in milliseconds since 1970 (8), zeros (25) |
//! | 1 votes | a frame, at most [`VOTE_FRAME_BYTES_MAX`] |
//! | 2 ping | 8 bytes to send back |
//! | 3 pong | the 8 bytes of the newest ping |
//!
//! A bulk stream carries one frame: its length (4 bytes, little-endian), the frame, and the end of the stream.

use bytes::{Buf, Bytes};
use primitives::Digest;

use super::LinkReason;

/// The version of this layout.
pub(crate) const VERSION: u32 = 3;
/// The longest vote frame: the votes of 256 validators on 256 slots in one turn are shorter.
pub const VOTE_FRAME_BYTES_MAX: usize = 1 << 20;
pub(crate) const HELLO_BYTES: usize = 85;
const HEADER_BYTES: usize = 5;
/// Memory for a body is allocated as it arrives, at first at most this much.
const FIRST_ROOM_BYTES: usize = 16 << 10;

/// A number that distinguishes the runs of a process.
pub(crate) type Incarnation = [u8; 16];

/// The caller's greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) version: u32,
    pub(crate) network: Digest,
    pub(crate) incarnation: Incarnation,
    pub(crate) clock_ms: u64,
}

/// A message of the votes stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Hello(Hello),
    Votes(Vec<u8>),
    Ping([u8; 8]),
    Pong([u8; 8]),
}

const HELLO: u8 = 0;
const VOTES: u8 = 1;
const PING: u8 = 2;
const PONG: u8 = 3;

impl Hello {
    fn encode(&self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..4].copy_from_slice(&self.version.to_le_bytes());
        bytes[4..36].copy_from_slice(&self.network.0);
        bytes[36..52].copy_from_slice(&self.incarnation);
        bytes[52..60].copy_from_slice(&self.clock_ms.to_le_bytes());
        bytes
    }

    /// A later version may use the zeros, so they are checked only in this one.
    fn decode(bytes: &[u8]) -> Option<Hello> {
        let bytes: &[u8; HELLO_BYTES] = bytes.try_into().ok()?;
        let version = u32::from_le_bytes(bytes[..4].try_into().ok()?);
        if version == VERSION && bytes[60..] != [0; HELLO_BYTES - 60] {
            return None;
        }
        Some(Hello {
            version,
            network: Digest(bytes[4..36].try_into().ok()?),
            incarnation: bytes[36..52].try_into().ok()?,
            clock_ms: u64::from_le_bytes(bytes[52..60].try_into().ok()?),
        })
    }
}

/// The header of a message of votes, before its frame.
pub(crate) fn votes_header(bytes: usize) -> Bytes {
    Bytes::copy_from_slice(&header(VOTES, bytes))
}

/// The header of a bulk stream, before its frame.
pub(crate) fn bulk_header(bytes: usize) -> Bytes {
    Bytes::copy_from_slice(&length(bytes).to_le_bytes())
}

/// A whole message other than votes.
pub(crate) fn control(message: &Message) -> Bytes {
    let (kind, body) = match message {
        Message::Hello(hello) => (HELLO, hello.encode().to_vec()),
        Message::Votes(frame) => (VOTES, frame.clone()),
        Message::Ping(nonce) => (PING, nonce.to_vec()),
        Message::Pong(nonce) => (PONG, nonce.to_vec()),
    };
    [&header(kind, body.len())[..], &body].concat().into()
}

fn header(kind: u8, bytes: usize) -> [u8; HEADER_BYTES] {
    let length = length(bytes).to_le_bytes();
    [kind, length[0], length[1], length[2], length[3]]
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("frames are below 4 GiB")
}

/// Assembles the messages of a votes stream from pieces of any size.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    header: [u8; HEADER_BYTES],
    /// Number of header bytes that have arrived.
    begun: usize,
    body: Vec<u8>,
}

impl Decoder {
    /// Takes from `input` the bytes of the next message; returns the message once it is complete.
    pub(crate) fn next(&mut self, input: &mut Bytes) -> Result<Option<Message>, LinkReason> {
        if self.begun < HEADER_BYTES {
            let taken = input.len().min(HEADER_BYTES - self.begun);
            input.copy_to_slice(&mut self.header[self.begun..self.begun + taken]);
            self.begun += taken;
            if self.begun < HEADER_BYTES {
                return Ok(None);
            }
            self.body = Vec::with_capacity(self.length()?.min(FIRST_ROOM_BYTES));
        }
        let length = self.length()?;
        let taken = input.len().min(length - self.body.len());
        self.body.extend_from_slice(&input[..taken]);
        input.advance(taken);
        if self.body.len() < length {
            return Ok(None);
        }
        self.begun = 0;
        message(self.header[0], std::mem::take(&mut self.body)).map(Some)
    }

    /// The length in the header, if it is allowed for its kind.
    fn length(&self) -> Result<usize, LinkReason> {
        let [kind, length @ ..] = self.header;
        let length = u32::from_le_bytes(length) as usize;
        match kind {
            HELLO if length == HELLO_BYTES => Ok(length),
            PING | PONG if length == 8 => Ok(length),
            VOTES if length <= VOTE_FRAME_BYTES_MAX => Ok(length),
            VOTES => Err(LinkReason::TooLarge),
            _ => Err(LinkReason::Malformed),
        }
    }
}

fn message(kind: u8, body: Vec<u8>) -> Result<Message, LinkReason> {
    if kind == VOTES {
        return Ok(Message::Votes(body));
    }
    if kind == HELLO {
        return Hello::decode(&body).map(Message::Hello).ok_or(LinkReason::Malformed);
    }
    let nonce = body.try_into().map_err(|_| LinkReason::Malformed)?;
    Ok(if kind == PING { Message::Ping(nonce) } else { Message::Pong(nonce) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn messages() -> impl Strategy<Value = Message> {
        let parts = (any::<[u8; 32]>(), any::<[u8; 16]>(), any::<u32>(), any::<u64>());
        let hello = parts.prop_map(|(network, incarnation, version, clock_ms)| {
            Message::Hello(Hello { version, network: Digest(network), incarnation, clock_ms })
        });
        prop_oneof![
            hello,
            proptest::collection::vec(any::<u8>(), 0..300).prop_map(Message::Votes),
            any::<[u8; 8]>().prop_map(Message::Ping),
            any::<[u8; 8]>().prop_map(Message::Pong),
        ]
    }

    /// Feeds bytes in pieces; returns the messages and how decoding ended.
    fn decode(bytes: &[u8], pieces: &[usize]) -> (Vec<Message>, Result<(), LinkReason>) {
        let (mut decoder, mut out, mut rest) = (Decoder::default(), Vec::new(), bytes);
        let mut sizes = pieces.iter().copied().cycle();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(sizes.next().unwrap_or(rest.len()).clamp(1, rest.len()));
            rest = after;
            let mut input = Bytes::copy_from_slice(piece);
            while !input.is_empty() {
                match decoder.next(&mut input) {
                    Ok(Some(message)) => out.push(message),
                    Ok(None) => assert!(input.is_empty(), "bytes are left over without a message"),
                    Err(reason) => return (out, Err(reason)),
                }
            }
        }
        (out, Ok(()))
    }

    proptest! {
        #[test]
        fn what_is_encoded_comes_out_in_any_pieces(
            sent in proptest::collection::vec(messages(), 0..12),
            pieces in proptest::collection::vec(1usize..40, 1..20),
        ) {
            let bytes: Vec<u8> = sent.iter().flat_map(|message| control(message).to_vec()).collect();
            prop_assert_eq!(decode(&bytes, &pieces), (sent, Ok(())));
        }

        /// Every input that decodes encodes back to the same bytes, and nothing panics.
        #[test]
        fn garbage_is_refused_or_is_an_encoding(
            kind in 0u8..6,
            claimed in prop_oneof![Just(8u32), Just(85), 0u32..100, any::<u32>()],
            body in proptest::collection::vec(any::<u8>(), 0..100),
            pieces in proptest::collection::vec(1usize..40, 1..20),
        ) {
            let bytes = [&[kind][..], &claimed.to_le_bytes(), &body].concat();
            let (messages, _) = decode(&bytes, &pieces);
            // The rest of another version's hello, after the common beginning, is not preserved.
            let foreign = |message: &Message| matches!(message, Message::Hello(hello) if hello.version != VERSION);
            prop_assume!(!messages.iter().any(foreign));
            let again: Vec<u8> = messages.iter().flat_map(|message| control(message).to_vec()).collect();
            prop_assert!(bytes.starts_with(&again));
        }

        #[test]
        fn every_changed_byte_of_a_hello_changes_it(at in 0..HELLO_BYTES, bits in 1u8..) {
            let hello = Hello { version: VERSION, network: Digest([3; 32]), incarnation: [4; 16], clock_ms: 5 };
            let mut bytes = hello.encode();
            bytes[at] ^= bits;
            prop_assert_ne!(Hello::decode(&bytes), Some(hello));
        }
    }

    /// Other tests of this program allocate at the same time; the test above checks that a length alone allocates
    /// nothing.
    #[test]
    fn streams_of_strangers() {
        let hello = Hello { version: VERSION, network: Digest([3; 32]), incarnation: [4; 16], clock_ms: 5 };
        let sent = [Message::Hello(hello), Message::Votes(vec![1, 2, 3]), Message::Ping([7; 8]), Message::Pong([8; 8])];
        let stream: Vec<u8> = sent.iter().flat_map(|message| control(message).to_vec()).collect();
        fuzz::Target { room: None, ..fuzz::Target::new("wire", vec![stream]) }.run(|bytes| {
            let (whole, end) = decode(bytes, &[bytes.len().max(1)]);
            assert_eq!((&whole, &end), (&decode(bytes, &[1, 7, 3]).0, &decode(bytes, &[1, 7, 3]).1), "pieces matter");
            end.map(|()| format!("{} messages", whole.len())).map_err(|reason| format!("{reason:?}"))
        });
    }

    #[test]
    fn lengths_are_held_to_their_kinds() {
        let refused = |kind, bytes: usize| decode(&header(kind, bytes), &[]).1;
        assert_eq!(refused(VOTES, VOTE_FRAME_BYTES_MAX), Ok(()));
        assert_eq!(refused(VOTES, VOTE_FRAME_BYTES_MAX + 1), Err(LinkReason::TooLarge));
        for (kind, bytes) in [(HELLO, 84), (HELLO, 86), (PING, 7), (PONG, 9), (4, 0), (255, 8)] {
            assert_eq!(refused(kind, bytes), Err(LinkReason::Malformed), "{kind} {bytes}");
        }
    }

    /// The layout, so that it cannot change unnoticed.
    #[test]
    fn the_bytes_are_these() {
        let hello = Hello { version: 3, network: Digest([7; 32]), incarnation: [9; 16], clock_ms: 0x0201 };
        let clock = [1, 2, 0, 0, 0, 0, 0, 0];
        let expected = [&[0, 85, 0, 0, 0, 3, 0, 0, 0][..], &[7; 32], &[9; 16], &clock, &[0; 25]].concat();
        assert_eq!(control(&Message::Hello(hello)), expected);
        assert_eq!(control(&Message::Votes(vec![1, 2])), [1, 2, 0, 0, 0, 1, 2][..]);
        assert_eq!((&votes_header(258)[..], &bulk_header(258)[..]), (&[1, 2, 1, 0, 0][..], &[2, 1, 0, 0][..]));
    }
}
