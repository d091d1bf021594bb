//! Packets of numbered messages: MoldUDP64 1.00.
//!
//! A packet names its session, the number of its first message and how many messages follow, each after its length. So
//! a receiver knows at once what it missed, and asks for it with a request. A packet of no messages is a heartbeat,
//! which tells the number of the next message; one of [`END`] messages ends the session.

use crate::field::{Field, take};

/// The count in the packets that end a session.
pub const END: u16 = u16::MAX;
/// Bytes before the messages.
pub const HEADER: usize = 20;

/// The name of a session.
pub type MoldSession = [u8; 10];

/// Why bytes are no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoldError {
    /// The header is cut.
    #[error("a MoldUDP64 packet has at least 20 bytes, not {0}")]
    Header(usize),
    /// A message is cut.
    #[error("message {at} of a MoldUDP64 packet is cut: {has} of {needs} bytes are there")]
    Cut {
        /// Its position.
        at: usize,
        /// The bytes that are there, with its length.
        has: usize,
        /// The bytes that it needs.
        needs: usize,
    },
    /// Bytes follow the last message.
    #[error("{0} bytes follow the last message of a MoldUDP64 packet")]
    Trailing(usize),
    /// The numbers of its messages exceed 64 bits.
    #[error("a MoldUDP64 packet has {count} messages from number {first}: too many")]
    Numbers {
        /// The number of the first.
        first: u64,
        /// How many follow.
        count: u16,
    },
}

/// A packet, or a request for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoldPacket<'a> {
    /// The session.
    pub session: MoldSession,
    /// The number of the first message; of a heartbeat, that of the next one.
    pub first: u64,
    /// The messages.
    pub messages: Vec<&'a [u8]>,
    /// Whether the session ends here.
    pub is_end: bool,
}

/// A request to send messages again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoldRequest {
    /// The session.
    pub session: MoldSession,
    /// The number of the first message.
    pub first: u64,
    /// How many.
    pub count: u16,
}

/// The fields of a header.
fn header(bytes: &[u8]) -> Result<(MoldRequest, &[u8]), MoldError> {
    if bytes.len() < HEADER {
        return Err(MoldError::Header(bytes.len()));
    }
    let mut rest = bytes;
    let header = MoldRequest { session: take(&mut rest), first: take(&mut rest), count: take(&mut rest) };
    Ok((header, rest))
}

impl<'a> MoldPacket<'a> {
    /// The packet that `bytes` are.
    ///
    /// # Errors
    /// [`MoldError`] if they are none.
    pub fn decode(bytes: &'a [u8]) -> Result<MoldPacket<'a>, MoldError> {
        let (MoldRequest { session, first, count }, mut rest) = header(bytes)?;
        let is_end = count == END;
        let messages = if is_end { 0 } else { count };
        first.checked_add(u64::from(messages)).ok_or(MoldError::Numbers { first, count })?;
        let messages: Result<Vec<&[u8]>, MoldError> =
            (0..usize::from(messages)).map(|at| message(at, &mut rest)).collect();
        let messages = messages?;
        if rest.is_empty() {
            Ok(MoldPacket { session, first, messages, is_end })
        } else {
            Err(MoldError::Trailing(rest.len()))
        }
    }

    /// The bytes of the packet; `None` if there are 65,535 messages or more, or one is longer than 65,535 bytes.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let count = u16::try_from(self.messages.len()).ok().filter(|count| *count < END)?;
        let mut bytes =
            Vec::with_capacity(HEADER + self.messages.iter().map(|message| 2 + message.len()).sum::<usize>());
        let count = if self.is_end { END } else { count };
        bytes.extend(MoldRequest { session: self.session, first: self.first, count }.encode());
        for message in self.messages.iter().filter(|_| !self.is_end) {
            u16::try_from(message.len()).ok()?.put(&mut bytes);
            bytes.extend_from_slice(message);
        }
        Some(bytes)
    }
}

/// Takes the message at position `at` of a packet.
fn message<'a>(at: usize, rest: &mut &'a [u8]) -> Result<&'a [u8], MoldError> {
    let has = rest.len();
    if has < 2 {
        return Err(MoldError::Cut { at, has, needs: 2 });
    }
    let needs = 2 + usize::from(u16::get(rest));
    let (message, after) = rest.split_at_checked(needs).ok_or(MoldError::Cut { at, has, needs })?;
    *rest = after;
    Ok(&message[2..])
}

impl MoldRequest {
    /// The request that `bytes` are.
    ///
    /// # Errors
    /// [`MoldError`] if they are none.
    pub fn decode(bytes: &[u8]) -> Result<MoldRequest, MoldError> {
        let (request, rest) = header(bytes)?;
        if rest.is_empty() { Ok(request) } else { Err(MoldError::Trailing(rest.len())) }
    }

    /// The bytes of the request.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER);
        self.session.put(&mut bytes);
        self.first.put(&mut bytes);
        self.count.put(&mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_heartbeat_and_an_end_have_no_messages() {
        let session = *b"0000000001";
        for (is_end, count) in [(false, 0), (true, END)] {
            let packet = MoldPacket { session, first: 9, messages: vec![], is_end };
            let bytes = packet.encode().expect("short");
            assert_eq!(MoldRequest::decode(&bytes), Ok(MoldRequest { session, first: 9, count }));
            assert_eq!(MoldPacket::decode(&bytes), Ok(packet));
        }
    }

    #[test]
    fn a_mold_error_says_which_message_is_cut() {
        let bytes = MoldPacket { session: [0; 10], first: 1, messages: vec![b"ab", b"cd"], is_end: false };
        let bytes = bytes.encode().expect("short");
        assert_eq!(MoldPacket::decode(&bytes[..19]), Err(MoldError::Header(19)));
        assert_eq!(MoldPacket::decode(&bytes[..27]), Err(MoldError::Cut { at: 1, has: 3, needs: 4 }));
        assert_eq!(MoldPacket::decode(&[&bytes[..], &[0]].concat()), Err(MoldError::Trailing(1)));
        let last = MoldPacket { session: [0; 10], first: u64::MAX, messages: vec![b"ab"], is_end: false };
        let last = last.encode().expect("short");
        assert_eq!(MoldPacket::decode(&last), Err(MoldError::Numbers { first: u64::MAX, count: 1 }));
    }

    proptest! {
        #[test]
        fn mold_packets_are_encoded_as_they_were(
            session in any::<[u8; 10]>(),
            first in 0..u64::MAX / 2,
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..9),
        ) {
            let messages = messages.iter().map(|message| &message[..]).collect();
            let packet = MoldPacket { session, first, messages, is_end: false };
            let bytes = packet.encode().expect("short");
            prop_assert_eq!(MoldPacket::decode(&bytes), Ok(packet));
        }

        #[test]
        fn mold_decodes_any_bytes_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = (MoldPacket::decode(&bytes), MoldRequest::decode(&bytes));
        }
    }
}
