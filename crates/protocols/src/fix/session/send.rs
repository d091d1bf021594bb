//! What goes out: messages under new numbers, messages sent again, and beats.

use super::{ASKED_MOST, FixClose, FixEffect, FixSession, State, Turn};
use crate::fix::journal::FixRecord;
use crate::fix::{FixBody, FixError, FixHeartbeat, FixResendRequest, FixSequenceReset, FixTestRequest, FixText};

impl FixSession {
    /// Whether nothing waits to be sent.
    pub(super) fn is_idle(&self) -> bool {
        self.unsent == 0 && self.queue.is_empty() && self.again.is_none()
    }

    /// Gives a message the next number.
    pub(super) fn emit(&mut self, body: &FixBody, turn: &mut Turn) {
        let sent = turn.journal.record(body, turn.now_ms);
        let number = sent.number;
        turn.record(FixRecord::Sent(sent));
        self.queue.push_back((number, turn.header(number).message(body.kind(), &body.bytes())));
    }

    /// Sends what is to be sent again, and then what waits, as far as there is room.
    pub(super) fn pump(&mut self, turn: &mut Turn) -> Result<(), FixClose> {
        while self.unsent < self.limits.unsent_max {
            let bytes = match self.again {
                Some((number, last)) => self.duplicate(number, last, turn)?,
                None => match self.queue.pop_front() {
                    Some((_, bytes)) => bytes,
                    None => break,
                },
            };
            if self.unsent == 0 {
                self.took_ms = turn.now_ms;
            }
            (self.unsent, self.spoke_ms) = (self.unsent + bytes.len(), turn.now_ms);
            turn.effects.push(FixEffect::Send(bytes));
        }
        let queued: usize = self.queue.iter().map(|(_, bytes)| bytes.len()).sum();
        if queued > self.limits.queued_max { Err(FixClose::Slow(self.unsent + queued)) } else { Ok(()) }
    }

    /// The message `number` once more, or the gap fill of it and those after it that concerned a connection.
    fn duplicate(&mut self, number: u64, last: u64, turn: &Turn) -> Result<Vec<u8>, FixClose> {
        let (journal, first) = (&turn.journal, turn.journal.first());
        let sent = journal.get(number).ok_or(FixClose::Unknown { asked: number, first, last: journal.next() - 1 })?;
        let is_kept = |number: &u64| journal.get(*number).is_some_and(|sent| sent.body.is_some());
        let next = match &sent.body {
            Some(_) => number + 1,
            None => (number..=last).find(is_kept).unwrap_or(last + 1),
        };
        self.again = (next <= last).then_some((next, last));
        Ok(match &sent.body {
            Some((kind, body)) => turn.duplicate(sent, kind, body),
            None => {
                let fill = FixBody::from(FixSequenceReset { is_gap_fill: Some(true), next });
                turn.duplicate(sent, fill.kind(), &fill.bytes())
            }
        })
    }

    /// Begins to send again what `request` asks for.
    pub(super) fn repeat(&mut self, number: u64, request: &FixResendRequest, turn: &mut Turn) -> Result<(), FixClose> {
        let FixResendRequest { begin, end } = *request;
        let (first, next) = (turn.journal.first(), turn.journal.next());
        if begin == 0 || end != 0 && end < begin {
            let error = FixError::Unsupported { tag: if begin == 0 { 7 } else { 16 }, needs: "a number in order" };
            self.reject(number, &error, "2", turn);
            return Ok(());
        }
        if begin < first || begin > next {
            return Err(FixClose::Unknown { asked: begin, first, last: next - 1 });
        }
        let times = if self.requests.0 == begin { self.requests.1 + 1 } else { 1 };
        self.requests = (begin, times);
        if times > ASKED_MOST {
            return Err(FixClose::Loop(begin));
        }
        // What waits comes after it, under its own number.
        let waits = self.queue.front().map_or(next, |(number, _)| *number);
        let last = if end == 0 { waits - 1 } else { end.min(waits - 1) };
        self.again = (begin <= last).then_some((begin, last));
        Ok(())
    }

    /// Beats and asks for a heartbeat when it is time to, and gives up a side that is late, silent or slow.
    pub(super) fn keep_alive(&mut self, turn: &mut Turn) -> Result<(), FixClose> {
        let now_ms = turn.now_ms;
        let is_over = |since_ms: u64, limit_ms: u64| now_ms.saturating_sub(since_ms) >= limit_ms;
        let silent_ms = self.silent_ms();
        match self.state {
            State::Waits { since_ms, .. } if is_over(since_ms, self.limits.patience_ms) => {
                return Err(FixClose::LogonLate);
            }
            State::Leaves { since_ms } if is_over(since_ms, self.limits.patience_ms) => {
                return Err(FixClose::LogoutLate);
            }
            State::Open => {}
            _ => return Ok(()),
        }
        if is_over(self.heard_ms, 2 * silent_ms) {
            return Err(FixClose::Silent(now_ms.saturating_sub(self.heard_ms)));
        }
        if self.unsent > 0 && is_over(self.took_ms, 2 * silent_ms) {
            return Err(FixClose::Slow(self.unsent));
        }
        if is_over(self.heard_ms, silent_ms) && !std::mem::replace(&mut self.is_tested, true) {
            let test = FixText::said(&now_ms.to_string());
            self.emit(&FixTestRequest { test }.into(), turn);
        } else if self.is_idle() && is_over(self.spoke_ms, self.heartbeat_ms) {
            self.emit(&FixHeartbeat { test: None }.into(), turn);
        }
        match self.gap {
            Some(gap) if is_over(gap.asked_ms, 2 * silent_ms) => self.ask(gap.until, turn),
            _ => Ok(()),
        }
    }
}
