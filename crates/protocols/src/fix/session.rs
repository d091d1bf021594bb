//! One connection of a session, as steps. What outlives the connection is in the [`FixJournal`].
//!
//! A connection begins with a logon each way. From then on the machine beats when it has been silent for the interval
//! of the logon. It asks a side that is silent for [`SILENT`] of it for a heartbeat, and gives it up after twice as
//! long. Bytes that are no whole message do not count, so a half-open connection ends in time.
//!
//! Upon receiving a message whose number is
//!
//! - the one expected: it is handed on, or answered if it is of the session;
//! - above: it is dropped, and all from the expected one on are asked for, once. More are dropped until the answer has
//!   come; a hole in the answer, or none within the time, makes the machine ask again, up to [`ASKED_MOST`] times;
//! - below: it is ignored if it is marked as a possible duplicate. Otherwise the session has come apart: the machine
//!   logs out and says which number it expects.
//!
//! Messages are sent again exactly as they were, with the mark and the time of the first sending. The numbers of
//! messages that concerned a connection are skipped by a gap fill. What is sent meanwhile comes after them.
//!
//! With cancel-on-disconnect, the end of a connection is a [`FixEffect::CancelOrdersAt`]: the caller cancels the orders
//! of this session then, unless a logon is accepted before ([`FixEffect::KeepOrders`]). That is at once if the other
//! side logs out by itself, and later if the connection is lost or this side logs out.
//!
//! A logon that is not authorized gets no answer: an answer has a number, and strangers must not use up numbers.

mod hear;
mod send;
mod step;

use std::collections::VecDeque;

use super::frame::FixReader;
use super::journal::{FixJournal, FixRecord, FixSent};
use super::{FixHeader, FixLogon, FixLogout, FixText, FixTime};

pub use step::{FixClose, FixEffect, FixInput, FixLimits};

/// How often messages from the same number on are asked for, or sent again.
pub const ASKED_MOST: u32 = 3;
/// A side is asked for a heartbeat after so many tenths of the interval, and given up after twice as many.
pub const SILENT: u64 = 12;

/// The largest number of a message.
pub const NUMBER_MAX: u64 = 999_999_999_999_999;

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// A logon is to be sent.
    Begins(FixLogon),
    /// A logon is to come, since when.
    Waits {
        since_ms: u64,
        is_acceptor: bool,
    },
    /// A logon waits for its verdict.
    Asked {
        number: u64,
        logon: FixLogon,
    },
    Open,
    /// A logout was sent.
    Leaves {
        since_ms: u64,
    },
    Closed,
}

/// Messages that were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FixGap {
    /// The first that was missing when they were last asked for, how often since, and when.
    begin: u64,
    asked: u32,
    asked_ms: u64,
    /// The last that is known to be missing.
    until: u64,
}

/// One connection of either side.
#[derive(Clone, Debug)]
pub struct FixSession {
    limits: FixLimits,
    reader: FixReader,
    state: State,
    heartbeat_ms: u64,
    /// Bytes that came before the verdict.
    held: Vec<u8>,
    gap: Option<FixGap>,
    /// Numbers to be sent again, the first and the last.
    again: Option<(u64, u64)>,
    /// The first number of the last request to send again, and how often it came.
    requests: (u64, u32),
    /// Messages that wait, by their numbers.
    queue: VecDeque<(u64, Vec<u8>)>,
    unsent: usize,
    heard_ms: u64,
    spoke_ms: u64,
    took_ms: u64,
    is_tested: bool,
}

/// One step.
struct Turn<'a> {
    now_ms: u64,
    journal: &'a mut FixJournal,
    effects: Vec<FixEffect>,
}

impl Turn<'_> {
    fn record(&mut self, record: FixRecord) {
        let is_next = self.journal.apply(&record);
        debug_assert!(is_next, "a machine makes the records that its journal takes");
        self.effects.push(FixEffect::Record(record));
    }

    fn header(&self, number: u64) -> FixHeader {
        FixHeader {
            sender: self.journal.sender.clone(),
            target: self.journal.target.clone(),
            number,
            is_possible_duplicate: None,
            is_possible_resend: None,
            sent: FixTime::of_ms(self.now_ms),
            first_sent: None,
        }
    }

    /// The message of a record, sent again.
    fn duplicate(&self, sent: &FixSent, kind: &str, body: &[u8]) -> Vec<u8> {
        let first_sent = Some(sent.sent);
        let header = FixHeader { is_possible_duplicate: Some(true), first_sent, ..self.header(sent.number) };
        header.message(kind, body)
    }
}

impl FixSession {
    /// A connection that the other side opened now.
    pub fn accept(limits: FixLimits, now_ms: u64) -> FixSession {
        FixSession::new(limits, now_ms, State::Waits { since_ms: now_ms, is_acceptor: true })
    }

    /// A connection that this side opened now; it sends the logon at its first step.
    pub fn open(limits: FixLimits, logon: FixLogon, now_ms: u64) -> FixSession {
        FixSession::new(limits, now_ms, State::Begins(logon))
    }

    fn new(limits: FixLimits, now_ms: u64, state: State) -> FixSession {
        FixSession {
            limits,
            reader: FixReader::new(limits.message_max),
            state,
            heartbeat_ms: u64::from(limits.heartbeat_s_max) * 1_000,
            held: Vec::new(),
            gap: None,
            again: None,
            requests: (0, 0),
            queue: VecDeque::new(),
            unsent: 0,
            heard_ms: now_ms,
            spoke_ms: now_ms,
            took_ms: now_ms,
            is_tested: false,
        }
    }

    /// Whether messages can be sent.
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// When a [`FixInput::Wake`] is due at the latest; `None` if only another input changes anything.
    pub fn deadline_ms(&self) -> Option<u64> {
        match self.state {
            State::Begins(_) => Some(self.heard_ms),
            State::Waits { since_ms, .. } | State::Leaves { since_ms } => {
                Some(since_ms.saturating_add(self.limits.patience_ms))
            }
            State::Asked { .. } | State::Closed => None,
            State::Open => Some(self.open_deadline_ms()),
        }
    }

    fn open_deadline_ms(&self) -> u64 {
        let silent_ms = self.silent_ms();
        let limit_ms = if self.is_tested { 2 * silent_ms } else { silent_ms };
        let asked_ms = self.gap.map_or(u64::MAX, |gap| gap.asked_ms.saturating_add(2 * silent_ms));
        let own_ms = match self.unsent {
            0 => self.spoke_ms.saturating_add(self.heartbeat_ms),
            _ => self.took_ms.saturating_add(2 * silent_ms),
        };
        self.heard_ms.saturating_add(limit_ms).min(own_ms).min(asked_ms)
    }

    /// Silence after which a side is asked for a heartbeat.
    fn silent_ms(&self) -> u64 {
        self.heartbeat_ms * SILENT / 10
    }

    /// What follows from `input` at this time, in milliseconds since 1970. After [`FixEffect::Close`] nothing does.
    pub fn step(&mut self, now_ms: u64, input: FixInput<'_>, journal: &mut FixJournal) -> Vec<FixEffect> {
        let mut turn = Turn { now_ms, journal, effects: Vec::new() };
        if self.state == State::Closed {
            return turn.effects;
        }
        if let Err(reason) = self.advance(input, &mut turn) {
            self.end(reason, &mut turn);
        }
        turn.effects
    }

    fn advance(&mut self, input: FixInput<'_>, turn: &mut Turn) -> Result<(), FixClose> {
        if let State::Begins(logon) = &self.state {
            let logon = logon.clone();
            self.state = State::Waits { since_ms: turn.now_ms, is_acceptor: false };
            self.heartbeat_ms = u64::from(logon.heartbeat_s) * 1_000;
            self.emit(&logon.into(), turn);
        }
        match input {
            FixInput::Lost => return Err(FixClose::Lost),
            FixInput::Received(bytes) => self.receive(bytes, turn)?,
            FixInput::Verdict(is_authorized) => self.judge(is_authorized, turn)?,
            FixInput::Send(body) if self.is_open() => self.emit(body, turn),
            FixInput::Send(_) => turn.effects.push(FixEffect::Unsent),
            FixInput::Leave(text) => self.leave(text, turn),
            FixInput::Sent(bytes) => {
                self.unsent = self.unsent.saturating_sub(bytes);
                self.took_ms = turn.now_ms;
            }
            FixInput::Wake => {}
        }
        self.keep_alive(turn)?;
        self.pump(turn)
    }

    /// Ends the connection, with a logout where one is due.
    fn end(&mut self, reason: FixClose, turn: &mut Turn) {
        let was_on = matches!(self.state, State::Open | State::Leaves { .. });
        if self.is_open() && reason.is_said() {
            let text = match &reason {
                FixClose::Logout(_) => None,
                _ => Some(FixText::said(&reason.to_string())),
            };
            self.again = None;
            self.emit(&FixLogout { text }.into(), turn);
            let waiting = self.queue.drain(..).map(|(_, bytes)| FixEffect::Send(bytes));
            turn.effects.extend(waiting);
        }
        if let Some(after_ms) = self.limits.cancel_after_ms.filter(|_| was_on) {
            // The answer to this side's own logout says nothing about the other side's orders.
            let is_wanted = self.is_open() && matches!(reason, FixClose::Logout(_));
            let at_ms = turn.now_ms.saturating_add(if is_wanted { 0 } else { after_ms });
            turn.effects.push(FixEffect::CancelOrdersAt(at_ms));
        }
        self.state = State::Closed;
        turn.effects.push(FixEffect::Close(reason));
    }

    fn leave(&mut self, text: &str, turn: &mut Turn) {
        if self.is_open() {
            self.emit(&FixLogout { text: Some(FixText::said(text)) }.into(), turn);
            self.state = State::Leaves { since_ms: turn.now_ms };
        }
    }
}
