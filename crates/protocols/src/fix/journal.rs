//! What a session remembers across connections and restarts: the numbers of both directions, and what was sent.
//!
//! A machine changes the journal by [`FixRecord`]s, and tells the caller each of them as an effect before the effects
//! that rest on it. The caller makes them durable in that order; after a restart it gives them to
//! [`FixJournal::apply`] again.

use std::collections::VecDeque;

use super::{FixBody, FixText, FixTime};

/// A change of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FixRecord {
    /// A message goes out under the next number.
    Sent(FixSent),
    /// The next message of the other side has this number.
    Expects(u64),
    /// Messages before this number are forgotten.
    Forgets(u64),
}

/// A message that went out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixSent {
    /// Its number.
    pub number: u64,
    /// When.
    pub sent: FixTime,
    /// Its kind and its fields; `None` if it concerned the session alone, and is not sent again.
    pub body: Option<(String, Vec<u8>)>,
}

/// The memory of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixJournal {
    pub(super) sender: FixText,
    pub(super) target: FixText,
    expected: u64,
    first: u64,
    sent: VecDeque<FixSent>,
}

impl FixJournal {
    /// That of a session in which nothing has been sent; `sender` is this side's name, `target` the other's.
    pub fn new(sender: FixText, target: FixText) -> FixJournal {
        FixJournal { sender, target, expected: 1, first: 1, sent: VecDeque::new() }
    }

    /// That of a session of which the messages before `first` are forgotten, and nothing later has been sent.
    pub fn resume(sender: FixText, target: FixText, first: u64, expected: u64) -> FixJournal {
        FixJournal { first, expected, ..FixJournal::new(sender, target) }
    }

    /// The messages that are kept, in their order.
    pub fn kept(&self) -> impl Iterator<Item = &FixSent> {
        self.sent.iter()
    }

    /// Gives a message the next number while there is no connection: the other side finds at its next logon that it
    /// missed it, and asks for it.
    pub fn put(&mut self, body: &FixBody, now_ms: u64) -> FixRecord {
        let sent = self.record(body, now_ms);
        self.sent.push_back(sent.clone());
        FixRecord::Sent(sent)
    }

    /// The number of the next message that goes out.
    pub fn next(&self) -> u64 {
        self.first + self.sent.len() as u64
    }

    /// The number of the next message that comes in.
    pub fn expected(&self) -> u64 {
        self.expected
    }

    /// The number of the first message that is kept.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The message of this number, if it is kept.
    pub fn get(&self, number: u64) -> Option<&FixSent> {
        self.sent.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// Makes a change; false, and nothing is changed, if it does not follow on what is there.
    pub fn apply(&mut self, record: &FixRecord) -> bool {
        match record {
            FixRecord::Sent(sent) if sent.number == self.next() => self.sent.push_back(sent.clone()),
            FixRecord::Expects(number) if *number >= self.expected => self.expected = *number,
            FixRecord::Forgets(number) if *number <= self.next() => {
                let count = number.saturating_sub(self.first);
                self.first += self.sent.drain(..count as usize).len() as u64;
            }
            _ => return false,
        }
        true
    }

    /// The record of a body that goes out now.
    pub(super) fn record(&self, body: &FixBody, now_ms: u64) -> FixSent {
        let kept = (!body.is_of_session()).then(|| (body.kind().to_string(), body.bytes()));
        FixSent { number: self.next(), sent: FixTime::of_ms(now_ms), body: kept }
    }
}
