//! What happens to a connection, what it wants, and its bounds.

use crate::fix::journal::FixRecord;
use crate::fix::{FixBody, FixError, FixLogon, FixMessage, MESSAGE_MAX};

/// Bounds of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixLimits {
    /// The most bytes of a message from the other side.
    pub message_max: usize,
    /// No message is sent while so many bytes wait for the socket.
    pub unsent_max: usize,
    /// A side for which so many bytes wait behind those is cut.
    pub queued_max: usize,
    /// The longest interval of heartbeats, in seconds.
    pub heartbeat_s_max: u32,
    /// Milliseconds for a logon, and for the answer to a logout.
    pub patience_ms: u64,
    /// Milliseconds from the loss of a connection to the cancellation of its orders; `None` keeps them.
    pub cancel_after_ms: Option<u64>,
}

impl Default for FixLimits {
    fn default() -> FixLimits {
        FixLimits {
            message_max: MESSAGE_MAX,
            unsent_max: 262_144,
            queued_max: 1_048_576,
            heartbeat_s_max: 60,
            patience_ms: 10_000,
            cancel_after_ms: None,
        }
    }
}

/// Why a connection is closed, once the bytes before it are sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FixClose {
    /// The connection is gone.
    #[error("the connection is lost")]
    Lost,
    /// The other side logged out, or answered a logout.
    #[error("the other side logged out: {0}")]
    Logout(String),
    /// No answer to a logout came in time.
    #[error("the logout was not answered")]
    LogoutLate,
    /// No logon came in time.
    #[error("no logon arrived in time")]
    LogonLate,
    /// The first message is no logon, or one is sent again.
    #[error("a message of kind {0} (tag 35) is out of place: begin with one logon")]
    OutOfPlace(String),
    /// The names are not those of the session.
    #[error("SenderCompID (49) and TargetCompID (56) are {sender} and {target}, not those of this session")]
    Names {
        /// Who sends.
        sender: String,
        /// To whom.
        target: String,
    },
    /// The logon is not authorized.
    #[error("the logon is not authorized")]
    Refused,
    /// The logon asks for something that this side does not offer.
    #[error("the logon is refused: {0}")]
    Logon(&'static str),
    /// A number was used before.
    #[error("MsgSeqNum (34) is too low: expected {needs}, received {has}")]
    TooLow {
        /// What is expected.
        needs: u64,
        /// What came.
        has: u64,
    },
    /// The other side does not send what is missing.
    #[error("messages from number {0} on were asked for and did not arrive")]
    Gap(u64),
    /// The other side asks for the same messages again and again.
    #[error("messages from number {0} on were sent again as often as they may be")]
    Loop(u64),
    /// The other side asks for messages that are forgotten, or were never sent.
    #[error("messages from number {asked} on cannot be sent again: numbers {first} to {last} are here")]
    Unknown {
        /// The first that it asks for.
        asked: u64,
        /// The first that is kept.
        first: u64,
        /// The last that was sent.
        last: u64,
    },
    /// No whole message was heard.
    #[error("no message arrived for {0} ms")]
    Silent(u64),
    /// The socket took nothing, or too little.
    #[error("the other side reads too slowly: {0} bytes wait")]
    Slow(usize),
    /// Too many bytes came before the logon was answered.
    #[error("too much arrived before the logon was answered")]
    Flood,
    /// Bytes are no message.
    #[error(transparent)]
    Invalid(#[from] FixError),
}

impl FixClose {
    /// Whether the other side is told by a logout.
    pub(super) fn is_said(&self) -> bool {
        use FixClose::{Gap, Invalid, Logon, Logout, Loop, OutOfPlace, TooLow, Unknown};
        matches!(
            self,
            Logout(_) | Logon(_) | TooLow { .. } | Gap(_) | Loop(_) | Unknown { .. } | OutOfPlace(_) | Invalid(_)
        )
    }
}

/// What happens to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FixInput<'a> {
    /// Bytes came.
    Received(&'a [u8]),
    /// Whether the logon that was to be authorized is.
    Verdict(bool),
    /// A message is to be sent.
    Send(&'a FixBody),
    /// The session of this connection is to end, for this reason.
    Leave(&'a str),
    /// The socket took so many of the bytes to send.
    Sent(usize),
    /// Time passed.
    Wake,
    /// The connection is gone.
    Lost,
}

/// What a connection wants, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FixEffect {
    /// The journal has changed: this must be durable before what follows happens.
    Record(FixRecord),
    /// These bytes are to be sent, after those before.
    Send(Vec<u8>),
    /// A [`FixInput::Verdict`] on this logon.
    Authorize(FixLogon),
    /// A message of the other side, once and in order. The record before it says that it has come: what it causes must
    /// be durable together with that.
    Message(Box<FixMessage>),
    /// The message to be sent was not, and has no number: no session is open.
    Unsent,
    /// A logon is accepted: orders are not cancelled for the loss of an earlier connection.
    KeepOrders,
    /// The orders of this session are to be cancelled at this time, unless there is a [`FixEffect::KeepOrders`] before.
    CancelOrdersAt(u64),
    /// The connection is to be closed, after what is to be sent; nothing follows.
    Close(FixClose),
}
