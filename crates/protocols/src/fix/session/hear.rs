//! What comes in.

use super::{ASKED_MOST, FixClose, FixEffect, FixGap, FixSession, NUMBER_MAX, State, Turn};
use crate::fix::journal::FixRecord;
use crate::fix::{
    FixBody, FixBusinessReject, FixError, FixHeader, FixHeartbeat, FixLogon, FixLogout, FixMessage, FixReject,
    FixResendRequest, FixSequenceReset, FixTestRequest, FixText,
};

impl FixSession {
    pub(super) fn receive(&mut self, mut bytes: &[u8], turn: &mut Turn) -> Result<(), FixClose> {
        loop {
            if matches!(self.state, State::Asked { .. }) {
                self.held.extend_from_slice(bytes);
                return if self.held.len() > self.limits.unsent_max { Err(FixClose::Flood) } else { Ok(()) };
            }
            let message = match self.reader.take(&mut bytes) {
                Ok(Some(message)) => message.to_vec(),
                Ok(None) => return Ok(()),
                Err(FixError::Checksum { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            self.hear(&message, turn)?;
        }
    }

    /// Takes one message.
    fn hear(&mut self, bytes: &[u8], turn: &mut Turn) -> Result<(), FixClose> {
        (self.heard_ms, self.is_tested) = (turn.now_ms, false);
        let (header, body) = FixMessage::split(bytes)?;
        check_bounds(header.number, &body)?;
        if (&header.sender, &header.target) != (&turn.journal.target, &turn.journal.sender) {
            return Err(FixClose::Names { sender: header.sender.to_string(), target: header.target.to_string() });
        }
        match self.state {
            State::Waits { is_acceptor, .. } => self.hear_logon(&header, body, is_acceptor, turn),
            _ => {
                self.hear_in_session(header, body, turn)?;
                self.gap = self.gap.filter(|gap| turn.journal.expected() <= gap.until);
                Ok(())
            }
        }
    }

    fn hear_logon(
        &mut self,
        header: &FixHeader,
        body: Result<FixBody, (FixError, String)>,
        is_acceptor: bool,
        turn: &mut Turn,
    ) -> Result<(), FixClose> {
        let logon = match body.map_err(|(error, _)| error)? {
            FixBody::Logon(logon) => logon,
            // Of an acceptor: the answer to a logon that it refuses.
            FixBody::Logout(FixLogout { text }) if !is_acceptor => return Err(FixClose::Logout(said(text.as_ref()))),
            other => return Err(FixClose::OutOfPlace(other.kind().to_string())),
        };
        if is_acceptor {
            turn.effects.push(FixEffect::Authorize(logon.clone()));
            self.state = State::Asked { number: header.number, logon };
            return Ok(());
        }
        self.state = State::Open;
        self.begin(header.number, &logon, turn)
    }

    /// Answers a logon.
    pub(super) fn judge(&mut self, is_authorized: bool, turn: &mut Turn) -> Result<(), FixClose> {
        let State::Asked { number, logon } = self.state.clone() else { return Ok(()) };
        if !is_authorized {
            return Err(FixClose::Refused);
        }
        // From here on the other side is known: a refusal has a number, and says why.
        self.state = State::Open;
        // The wait for the verdict was this side's.
        self.heard_ms = turn.now_ms;
        self.check_logon(number, &logon, turn)?;
        let answer = FixLogon { data: None, username: None, password: None, ..logon.clone() };
        self.emit(&answer.into(), turn);
        self.begin(number, &logon, turn)?;
        let held = std::mem::take(&mut self.held);
        self.receive(&held, turn)
    }

    fn check_logon(&self, number: u64, logon: &FixLogon, turn: &Turn) -> Result<(), FixClose> {
        let is_new = turn.journal.expected() == 1 && turn.journal.next() == 1;
        if !(1..=self.limits.heartbeat_s_max).contains(&logon.heartbeat_s) {
            return Err(FixClose::Logon("HeartBtInt (108) is zero, or longer than is allowed here"));
        }
        if logon.encryption != 0 {
            return Err(FixClose::Logon("EncryptMethod (98) must be 0"));
        }
        if logon.is_reset == Some(true) && !is_new {
            return Err(FixClose::Logon("ResetSeqNumFlag (141) is Y: numbers go on here, ask for what is missing"));
        }
        check_number(number, turn)
    }

    /// Begins the session with the number of the other side's logon.
    fn begin(&mut self, number: u64, logon: &FixLogon, turn: &mut Turn) -> Result<(), FixClose> {
        check_number(number, turn)?;
        self.heartbeat_ms = u64::from(logon.heartbeat_s.max(1)) * 1_000;
        if self.limits.cancel_after_ms.is_some() {
            turn.effects.push(FixEffect::KeepOrders);
        }
        if number > turn.journal.expected() {
            return self.miss(number, false, turn);
        }
        turn.record(FixRecord::Expects(number + 1));
        Ok(())
    }

    fn hear_in_session(
        &mut self,
        header: FixHeader,
        body: Result<FixBody, (FixError, String)>,
        turn: &mut Turn,
    ) -> Result<(), FixClose> {
        let (number, needs) = (header.number, turn.journal.expected());
        let is_duplicate = header.is_possible_duplicate == Some(true);
        match body {
            Ok(FixBody::SequenceReset(reset)) if reset.is_gap_fill != Some(true) => self.reset(number, &reset, turn),
            _ if number < needs && is_duplicate => {}
            _ if number < needs => return Err(FixClose::TooLow { needs, has: number }),
            Ok(FixBody::Logout(FixLogout { text })) => {
                if number == needs {
                    turn.record(FixRecord::Expects(number + 1));
                }
                return Err(FixClose::Logout(said(text.as_ref())));
            }
            // Answered at once, wherever it stands: if both sides waited for the other's answer, neither would get one.
            Ok(FixBody::ResendRequest(request)) => {
                self.repeat(number, &request, turn)?;
                match number == needs {
                    true => turn.record(FixRecord::Expects(number + 1)),
                    false => self.miss(number, is_duplicate, turn)?,
                }
            }
            _ if number > needs => self.miss(number, is_duplicate, turn)?,
            Ok(FixBody::SequenceReset(fill)) if fill.next > number => turn.record(FixRecord::Expects(fill.next)),
            body => {
                turn.record(FixRecord::Expects(number + 1));
                self.hear_next(header, body, turn)?;
            }
        }
        Ok(())
    }

    /// Takes a message of the number that is expected.
    fn hear_next(
        &mut self,
        header: FixHeader,
        body: Result<FixBody, (FixError, String)>,
        turn: &mut Turn,
    ) -> Result<(), FixClose> {
        let number = header.number;
        if header.is_possible_duplicate == Some(true) && header.first_sent.is_none() {
            let error = FixError::Missing { tag: 122, kind: "with PossDupFlag (43)".to_string() };
            let kind = body.map_or_else(|(_, kind)| kind, |body| body.kind().to_string());
            self.reject(number, &error, &kind, turn);
            return Ok(());
        }
        match body {
            Ok(FixBody::Heartbeat(_) | FixBody::Reject(_)) => {}
            Ok(FixBody::TestRequest(FixTestRequest { test })) => {
                self.emit(&FixHeartbeat { test: Some(test) }.into(), turn);
            }
            Ok(FixBody::SequenceReset(_)) => {
                self.reject(number, &FixError::Unsupported { tag: 36, needs: "above MsgSeqNum (34)" }, "4", turn);
            }
            Ok(FixBody::Logon(_)) => return Err(FixClose::OutOfPlace("A".to_string())),
            Ok(body) => turn.effects.push(FixEffect::Message(Box::new(FixMessage { header, body }))),
            Err((error @ FixError::Kind { .. }, kind)) => {
                let (kind, text) = (FixText::said(&kind), Some(FixText::said(&error.to_string())));
                let reject = FixBusinessReject { number: Some(number), kind, reference: None, reason: 3, text };
                self.emit(&reject.into(), turn);
            }
            Err((error, kind)) => self.reject(number, &error, &kind, turn),
        }
        Ok(())
    }

    pub(super) fn reject(&mut self, number: u64, error: &FixError, kind: &str, turn: &mut Turn) {
        let (text, kind) = (Some(FixText::said(&error.to_string())), Some(FixText::said(kind)));
        let reason = Some(error.reject_reason());
        self.emit(&FixReject { number, tag: error.tag(), kind, reason, text }.into(), turn);
    }

    /// Follows the other side to a number, upwards only.
    fn reset(&mut self, number: u64, reset: &FixSequenceReset, turn: &mut Turn) {
        if reset.next >= turn.journal.expected() {
            turn.record(FixRecord::Expects(reset.next));
        } else {
            let error = FixError::Unsupported { tag: 36, needs: "the number that is expected, or above" };
            self.reject(number, &error, "4", turn);
        }
    }

    /// Notes that numbers are missing, and asks for them unless they are on their way.
    fn miss(&mut self, number: u64, is_duplicate: bool, turn: &mut Turn) -> Result<(), FixClose> {
        if let Some(gap) = self.gap.as_mut().filter(|_| !is_duplicate) {
            gap.until = gap.until.max(number);
            return Ok(());
        }
        self.ask(number, turn)
    }

    pub(super) fn ask(&mut self, number: u64, turn: &mut Turn) -> Result<(), FixClose> {
        let begin = turn.journal.expected();
        let (asked, until) = match self.gap {
            Some(gap) if gap.begin == begin => (gap.asked + 1, gap.until.max(number)),
            Some(gap) => (1, gap.until.max(number)),
            None => (1, number),
        };
        if asked > ASKED_MOST {
            return Err(FixClose::Gap(begin));
        }
        self.gap = Some(FixGap { begin, asked, asked_ms: turn.now_ms, until });
        self.emit(&FixResendRequest { begin, end: 0 }.into(), turn);
        Ok(())
    }
}

/// Refuses a logon whose number was used before.
fn check_number(number: u64, turn: &Turn) -> Result<(), FixClose> {
    let needs = turn.journal.expected();
    if number < needs { Err(FixClose::TooLow { needs, has: number }) } else { Ok(()) }
}

/// Refuses numbers above [`NUMBER_MAX`].
fn check_bounds(number: u64, body: &Result<FixBody, (FixError, String)>) -> Result<(), FixError> {
    let tag = match body {
        _ if number > NUMBER_MAX => 34,
        Ok(FixBody::SequenceReset(reset)) if reset.next > NUMBER_MAX => 36,
        _ => return Ok(()),
    };
    Err(FixError::Unsupported { tag, needs: "at most 999999999999999" })
}

fn said(text: Option<&FixText>) -> String {
    text.map_or_else(|| "without a reason".to_string(), FixText::to_string)
}
