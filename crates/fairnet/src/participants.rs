//! What a gateway and the venue tell each other of a participant's connection.
//!
//! A participant talks to its gateway as it would to the venue: packets, each with its length in two bytes before it.
//! The gateway looks into none. Each packet climbs as an order of its own, stamped when it was complete. What the venue
//! answers comes down the control stream as a *report*, and is passed on once the packet of the feed that it may refer
//! to was shown ([`crate::EdgeInput::Report`]).
//!
//! | bytes, up | field |
//! |---|---|
//! | 0–3 | the connection, numbered by the gateway |
//! | 4–7 | which of its messages, from 1 |
//! | 8 | 0 a packet, 1 bytes that the participant has taken, 2 the connection ended |
//! | 9 … | the packet; or how many bytes, four |
//!
//! | bytes, down | field |
//! |---|---|
//! | 0–3 | the connection |
//! | 4 | 0 bytes, 1 the connection is to end |
//! | 5 … | the bytes |
//!
//! # Properties
//!
//! - *A connection's messages are heard in their order* ([`ParticipantOrder`]). After a change of the tree a gateway
//!   sends again what may be lost, so a later message can come first. It waits for the earlier ones.
//! - What is on its way to a participant is bounded: the venue sends [`PARTICIPANT_WINDOW`] bytes ahead of what was
//!   taken.

use std::collections::BTreeMap;

use crate::bytes::ByteReader;
use crate::link::ORDER_BYTES_MAX;

const HEAD: usize = 9;
/// Most bytes of a participant's packet.
pub const PARTICIPANT_PACKET_MAX: usize = ORDER_BYTES_MAX - HEAD;
/// Bytes that are on their way to one participant at most.
pub const PARTICIPANT_WINDOW: usize = 1 << 16;
/// Messages of one connection that wait for an earlier one at most.
const AHEAD_MAX: usize = 8_192;
/// Bytes of them at most, each counted with what it takes to keep it.
const AHEAD_BYTES_MAX: usize = 1 << 21;
/// What a message takes besides its packet.
const AHEAD_OVERHEAD: usize = 64;

/// What a gateway says of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FromParticipant {
    /// Which connection of the gateway.
    pub link: u32,
    /// Which of its messages, from 1.
    pub number: u32,
    /// What happened.
    pub what: ParticipantEvent,
}

/// What happened on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParticipantEvent {
    /// A packet came, without its length.
    Packet(Vec<u8>),
    /// The participant took so many bytes.
    Taken(u32),
    /// The connection ended.
    Ended,
}

/// What the venue tells a participant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToParticipant {
    /// Which connection of the gateway.
    pub link: u32,
    /// The next bytes; `None`: the connection is to end.
    pub bytes: Option<Vec<u8>>,
}

impl FromParticipant {
    /// As the body of an order.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = [self.link.to_be_bytes(), self.number.to_be_bytes()].concat();
        match &self.what {
            ParticipantEvent::Packet(bytes) => {
                out.push(0);
                out.extend_from_slice(bytes);
            }
            ParticipantEvent::Taken(bytes) => {
                out.push(1);
                out.extend_from_slice(&bytes.to_be_bytes());
            }
            ParticipantEvent::Ended => out.push(2),
        }
        out
    }

    /// What the body of an order says; `None` if it is something else.
    pub fn decode(bytes: &[u8]) -> Option<FromParticipant> {
        let mut rest = ByteReader(bytes);
        let (link, number, kind) = (rest.u32()?, rest.u32()?, rest.u8()?);
        let what = match kind {
            0 => ParticipantEvent::Packet(std::mem::take(&mut rest.0).to_vec()),
            1 => ParticipantEvent::Taken(rest.u32()?),
            2 => ParticipantEvent::Ended,
            _ => return None,
        };
        rest.0.is_empty().then_some(FromParticipant { link, number, what })
    }
}

impl ToParticipant {
    /// As the bytes of a report.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.link.to_be_bytes().to_vec();
        out.push(u8::from(self.bytes.is_none()));
        self.bytes.iter().for_each(|bytes| out.extend_from_slice(bytes));
        out
    }

    /// What a report says; `None` if it is something else.
    pub fn decode(bytes: &[u8]) -> Option<ToParticipant> {
        let mut rest = ByteReader(bytes);
        let (link, kind) = (rest.u32()?, rest.u8()?);
        match kind {
            0 => Some(ToParticipant { link, bytes: Some(rest.0.to_vec()) }),
            1 if rest.0.is_empty() => Some(ToParticipant { link, bytes: None }),
            _ => None,
        }
    }
}

/// Puts the messages of one connection into their order.
#[derive(Clone, Debug, Default)]
pub struct ParticipantOrder {
    heard: u32,
    ahead: BTreeMap<u32, ParticipantEvent>,
    /// Bytes that wait.
    bytes: usize,
}

/// Bytes that a message takes while it waits.
fn weight(what: &ParticipantEvent) -> usize {
    match what {
        ParticipantEvent::Packet(bytes) => AHEAD_OVERHEAD + bytes.len(),
        _ => AHEAD_OVERHEAD,
    }
}

impl ParticipantOrder {
    /// A message came; `next` gets those that can be heard now. False if too many wait for one that does not come.
    pub fn take(&mut self, number: u32, what: ParticipantEvent, next: &mut Vec<ParticipantEvent>) -> bool {
        if number > self.heard {
            self.bytes += weight(&what);
            self.bytes -= self.ahead.insert(number, what).map_or(0, |before| weight(&before));
        }
        while let Some(what) = self.heard.checked_add(1).and_then(|number| self.ahead.remove(&number)) {
            self.heard += 1;
            self.bytes -= weight(&what);
            next.push(what);
        }
        self.ahead.len() <= AHEAD_MAX && self.bytes <= AHEAD_BYTES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn participants_messages_decode_to_what_was_said_and_nothing_else_decodes() {
        let events =
            [ParticipantEvent::Packet(b"U order".to_vec()), ParticipantEvent::Taken(7), ParticipantEvent::Ended];
        for what in events {
            let said = FromParticipant { link: 3, number: u32::MAX, what };
            assert_eq!(FromParticipant::decode(&said.encode()), Some(said));
        }
        for bytes in [Some(Vec::new()), Some(b"accepted".to_vec()), None] {
            let told = ToParticipant { link: u32::MAX, bytes };
            assert_eq!(ToParticipant::decode(&told.encode()), Some(told));
        }
        for bytes in [&[][..], &[0; 8], &[0, 0, 0, 0, 0, 0, 0, 0, 3], &[0, 0, 0, 0, 0, 0, 0, 0, 1, 1]] {
            assert_eq!(FromParticipant::decode(bytes), None, "{bytes:?}");
        }
        for bytes in [&[][..], &[0; 4], &[0, 0, 0, 0, 2], &[0, 0, 0, 0, 1, 9]] {
            assert_eq!(ToParticipant::decode(bytes), None, "{bytes:?}");
        }
        let longest =
            FromParticipant { link: 1, number: 1, what: ParticipantEvent::Packet(vec![0; PARTICIPANT_PACKET_MAX]) };
        assert_eq!(longest.encode().len(), ORDER_BYTES_MAX);
    }

    #[test]
    fn participants_messages_are_heard_in_their_order_however_they_come() {
        let (mut order, mut heard) = (ParticipantOrder::default(), Vec::new());
        for number in [2, 4, 1, 1, 2, 3, 5, 0] {
            assert!(order.take(number, ParticipantEvent::Taken(number), &mut heard));
        }
        assert_eq!(heard, (1..=5).map(ParticipantEvent::Taken).collect::<Vec<_>>());
        let mut is_taken = true;
        for number in 7..7 + AHEAD_MAX as u32 + 1 {
            is_taken = order.take(number, ParticipantEvent::Ended, &mut heard);
        }
        assert!(!is_taken && heard.len() == 5, "message 6 never comes");
    }

    /// A gateway that leaves out one message and sends the largest ones after it fills no memory of the venue.
    #[test]
    fn bytes_of_participants_that_wait_for_a_message_are_bounded() {
        let (mut order, mut heard) = (ParticipantOrder::default(), Vec::new());
        let packet = || ParticipantEvent::Packet(vec![0; PARTICIPANT_PACKET_MAX]);
        let fit = (2..).take_while(|number| order.take(*number, packet(), &mut heard)).count();
        assert_eq!(fit, AHEAD_BYTES_MAX / (PARTICIPANT_PACKET_MAX + AHEAD_OVERHEAD));
        // The same one again takes no more room, and those that are heard give theirs back.
        let (mut order, mut heard) = (ParticipantOrder::default(), Vec::new());
        assert!((0..2 * fit).all(|_| order.take(2, packet(), &mut heard)) && heard.is_empty());
        assert!((1..4 * fit as u32).all(|number| order.take(number, packet(), &mut heard)));
        assert_eq!((order.bytes, order.ahead.len()), (0, 0));
    }
}
