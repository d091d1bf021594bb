//! Order entry as banks know it: FIX 4.4, for a side that accepts connections and one that opens them.
//!
//! A message is a list of fields, `tag=value` and a byte 0x01 after each. The first three are the version (8), the
//! length of what follows (9) and the kind (35); the last is a checksum (10). Each side numbers its messages from one,
//! across connections. Who gets a number above the one that it expects asks for those between ([`FixResendRequest`]).
//! The other side sends the orders and reports among them again, marked as possible duplicates. It skips what only
//! concerned the connection ([`FixSequenceReset`]).
//!
//! ```text
//! participant                                   venue
//!   A  logon: number n, heartbeat interval ───►
//!      ◄──────────────── A  logon: number m
//!   D  new order ─────────────────────────────►
//!      ◄──────────────── 8  execution report: new
//!      ◄──────────────── 8  execution report: trade
//!   2  resend request: from k on ─────────────►       (a number is missing)
//!      ◄──────────────── 4  gap fill, or the report again with PossDup
//!   5  logout ────────────────────────────────►
//!      ◄──────────────── 5  logout
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`frame`] | a reader of a stream of bytes, and the fields of a message |
//! | [`value`] | values of fields: decimals, times, texts |
//! | [`message`] | the messages |
//! | [`orders`] | orders and reports as those of [`ouch`](crate::ouch) |
//! | [`reports`] | the orders of a session: requests to a venue of OUCH, and its messages as reports |
//! | [`journal`] | what a session remembers across connections and restarts |
//! | [`session`] | one connection of either side, as steps |
//!
//! # Properties
//!
//! - `decode` and `encode` are inverse to each other on all messages; what a stream is cut into does not matter.
//! - A reader keeps at most one message, and refuses one that is longer than it admits when its length is there.
//! - A machine has no clock: the caller says the time, in milliseconds since 1970. What it has told to send and the
//!   socket has not taken is bounded.
//! - Every change of a journal is an effect *before* the messages that it numbers. If the caller makes it durable
//!   before it sends them, no number is used twice, and after any crash reports are sent again as they were.
//! - Of the messages of the other side each is handed on once and in order.
//! - No two sides that follow these rules send resend requests for ever: a number is asked for
//!   [`ASKED_MOST`](session::ASKED_MOST) times, and the same range is sent again as often.
//!
//! # Deviations from the specification
//!
//! - A wrong checksum makes a message skipped, as garbled. A wrong beginning or length ends the connection, because
//!   nothing in the stream can be trusted then.
//! - Fields that a message does not have here are skipped, whatever they are; those that it has must not be repeated.
//! - Numbers never begin again at a logon: a logon with `ResetSeqNumFlag` is refused unless both sides are at one.
//! - Messages above the expected number are not kept: the answer to the resend request has them all.
//! - The other side's clock is not checked, and nothing is encrypted here (TLS is below).

pub mod frame;
pub mod journal;
pub mod message;
pub mod orders;
pub mod reports;
pub mod session;
pub mod value;

pub use message::*;
pub use value::{FixData, FixDecimal, FixText, FixTime};

/// The version.
pub const BEGIN_STRING: &str = "FIX.4.4";
/// The most bytes of a message that a reader should admit, of orders.
pub const MESSAGE_MAX: usize = 8_192;

/// Why bytes are no message, or a message has no bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FixError {
    /// The stream does not go on with version and length.
    #[error("byte {at} of a FIX message is not of 8=FIX.4.4, 9=LENGTH, 35=: close the connection")]
    Begin {
        /// The byte, from zero.
        at: usize,
    },
    /// The message is longer than the reader admits.
    #[error("a FIX message has at most {most} bytes here, not {has}: send smaller ones")]
    Long {
        /// The most.
        most: usize,
        /// What its length says.
        has: usize,
    },
    /// The checksum is not where the length says.
    #[error("tag 10 is not after the {says} bytes that tag 9 says: count the bytes from 35= up to 10=")]
    Length {
        /// Bytes of the body.
        says: usize,
    },
    /// The checksum is wrong.
    #[error("tag 10 says {says:03}, the bytes before it add up to {is:03}: the message is skipped")]
    Checksum {
        /// What it says.
        says: u8,
        /// What it should.
        is: u8,
    },
    /// A field has no tag, or no value where one must be.
    #[error("field {at} of the message is not TAG=VALUE with a tag of 1 to 99999")]
    Tag {
        /// Which field, counted from one at the kind.
        at: usize,
    },
    /// A field has no value.
    #[error("field {at}: tag {tag} has no value: leave it out")]
    Empty {
        /// The tag.
        tag: u32,
        /// Which field.
        at: usize,
    },
    /// A field of data is cut, or has another length than the field before it says.
    #[error("field {at}: the data of tag {tag} do not have the bytes that the field before says")]
    Data {
        /// The tag of the length.
        tag: u32,
        /// Which field.
        at: usize,
    },
    /// A field that must be there is not.
    #[error("a FIX message of kind {kind} needs tag {tag}")]
    Missing {
        /// The tag.
        tag: u32,
        /// The kind.
        kind: String,
    },
    /// A value cannot be read.
    #[error("field {at}: the value of tag {tag} is not {needs}")]
    Value {
        /// The tag.
        tag: u32,
        /// Which field.
        at: usize,
        /// What it should be.
        needs: &'static str,
    },
    /// A value is none that is supported.
    #[error("the value of tag {tag} is not {needs}")]
    Unsupported {
        /// The tag.
        tag: u32,
        /// What it should be.
        needs: &'static str,
    },
    /// A field is there more than once.
    #[error("field {at}: tag {tag} is there before: send it once")]
    Repeated {
        /// The tag.
        tag: u32,
        /// Which field.
        at: usize,
    },
    /// A group has another number of entries than it says.
    #[error("a group has {has} entries, not the {says} of tag {tag}, or an entry does not begin with its first tag")]
    Group {
        /// The tag of the count.
        tag: u32,
        /// What it says.
        says: u64,
        /// The entries that are there.
        has: usize,
    },
    /// The kind is not supported.
    #[error("FIX messages of kind {kind} (tag 35) are not supported")]
    Kind {
        /// The kind.
        kind: String,
    },
}

impl FixError {
    /// The tag that is wrong.
    pub fn tag(&self) -> Option<u32> {
        match self {
            FixError::Empty { tag, .. }
            | FixError::Data { tag, .. }
            | FixError::Missing { tag, .. }
            | FixError::Value { tag, .. }
            | FixError::Unsupported { tag, .. }
            | FixError::Repeated { tag, .. }
            | FixError::Group { tag, .. } => Some(*tag),
            FixError::Kind { .. } => Some(35),
            _ => None,
        }
    }

    /// The `SessionRejectReason` (tag 373).
    pub fn reject_reason(&self) -> u32 {
        match self {
            FixError::Missing { .. } => 1,
            FixError::Empty { .. } => 4,
            FixError::Unsupported { .. } => 5,
            FixError::Value { .. } | FixError::Data { .. } => 6,
            FixError::Kind { .. } => 11,
            FixError::Repeated { .. } => 13,
            FixError::Group { .. } => 16,
            _ => 0,
        }
    }
}
