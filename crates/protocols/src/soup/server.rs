//! One connection of a server, as steps, and the messages of a session.

use std::collections::VecDeque;

use super::link::SoupLink;
use super::{
    ANY_SESSION, HEARTBEAT_MS, PAYLOAD_MAX, SoupClose, SoupError, SoupLimits, SoupLogin, SoupPacket, SoupReader,
    SoupReject, SoupSession, is_same_session,
};

/// The messages of a session, numbered from one. All connections of the session send from it. It keeps what it is not
/// told to forget ([`SoupLog::forget_before`]), so the caller bounds it.
#[derive(Clone, Debug)]
pub struct SoupLog {
    session: SoupSession,
    first: u64,
    messages: VecDeque<Vec<u8>>,
    is_ended: bool,
}

impl SoupLog {
    /// A session without messages.
    pub fn new(session: SoupSession) -> SoupLog {
        SoupLog { session, first: 1, messages: VecDeque::new(), is_ended: false }
    }

    /// The number of the first message that is kept.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The number of the next message.
    pub fn next(&self) -> u64 {
        self.first + self.messages.len() as u64
    }

    /// The message of this number, if it is kept.
    pub fn get(&self, number: u64) -> Option<&[u8]> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.messages.get(at).map(Vec::as_slice)
    }

    /// Adds a message; its number. The connections send it at their next step.
    ///
    /// # Errors
    /// [`SoupError::TooLong`], and [`SoupError::OutOfPlace`] if the session has ended; nothing is added.
    pub fn publish(&mut self, message: Vec<u8>) -> Result<u64, SoupError> {
        if message.len() > PAYLOAD_MAX {
            return Err(SoupError::TooLong(message.len()));
        }
        if self.is_ended {
            return Err(SoupError::OutOfPlace { kind: b'S', state: "after the end of its session" });
        }
        self.messages.push_back(message);
        Ok(self.next() - 1)
    }

    /// Ends the session: no message follows.
    pub fn end(&mut self) {
        self.is_ended = true;
    }

    /// Forgets the messages before `number`. A connection that has not sent them is closed.
    pub fn forget_before(&mut self, number: u64) {
        let count = number.min(self.next()).saturating_sub(self.first);
        self.first += self.messages.drain(..count as usize).len() as u64;
    }

    /// The number from which a login is served.
    fn start(&self, login: &SoupLogin) -> Result<u64, SoupReject> {
        let is_here = login.session == ANY_SESSION || is_same_session(&login.session, &self.session);
        let start = match login.next {
            0 => self.next().saturating_sub(1).max(self.first),
            number => number,
        };
        let is_kept = (self.first..=self.next()).contains(&start);
        if is_here && is_kept { Ok(start) } else { Err(SoupReject::NoSession) }
    }
}

/// What happens to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoupServerInput<'a> {
    /// Bytes came.
    Received(&'a [u8]),
    /// Whether the login that was to be authorized is.
    Verdict(bool),
    /// The socket took so many of the bytes to send.
    Sent(usize),
    /// Time passed, or the log has new messages.
    Wake,
    /// The connection is gone.
    Lost,
}

/// What a connection wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SoupServerEffect {
    /// These bytes are to be sent, after those before.
    Send(Vec<u8>),
    /// A [`SoupServerInput::Verdict`] on name and password.
    Authorize(SoupLogin),
    /// A message of the client.
    Message(Vec<u8>),
    /// The connection is to be closed, after what is to be sent; nothing follows.
    Close(SoupClose),
}

#[derive(Clone, Copy, Debug)]
enum ServerState {
    /// No login yet, since when.
    Waiting(u64),
    /// A login waits for its verdict.
    Asked(SoupLogin),
    /// Messages from this number on are to be sent; the client's timeout.
    Open {
        next: u64,
        timeout_ms: u64,
    },
    Closed,
}

/// One connection of a server.
#[derive(Clone, Debug)]
pub struct SoupServer {
    link: SoupLink,
    reader: SoupReader,
    state: ServerState,
}

impl SoupServer {
    /// A connection that begins now.
    pub fn new(limits: SoupLimits, now_ms: u64) -> SoupServer {
        let reader = SoupReader::new(limits.packet_max);
        SoupServer { link: SoupLink::new(limits, now_ms), reader, state: ServerState::Waiting(now_ms) }
    }

    /// When a [`SoupServerInput::Wake`] is due at the latest; `None` if only another input changes anything.
    pub fn deadline_ms(&self) -> Option<u64> {
        match self.state {
            ServerState::Waiting(since_ms) => Some(since_ms.saturating_add(self.link.limits.timeout_ms)),
            ServerState::Open { timeout_ms, .. } => Some(self.link.give_up_ms(timeout_ms).min(self.link.beat_ms())),
            ServerState::Asked(_) | ServerState::Closed => None,
        }
    }

    /// What follows from `input`. After [`SoupServerEffect::Close`] nothing does.
    pub fn step(&mut self, now_ms: u64, input: SoupServerInput<'_>, log: &SoupLog) -> Vec<SoupServerEffect> {
        let mut effects = Vec::new();
        if let Err(reason) = self.advance(now_ms, input, log, &mut effects) {
            self.state = ServerState::Closed;
            effects.push(SoupServerEffect::Close(reason));
        }
        effects
    }

    fn advance(
        &mut self,
        now_ms: u64,
        input: SoupServerInput<'_>,
        log: &SoupLog,
        effects: &mut Vec<SoupServerEffect>,
    ) -> Result<(), SoupClose> {
        match (self.state, input) {
            (ServerState::Closed, _) => return Ok(()),
            (_, SoupServerInput::Lost) => self.state = ServerState::Closed,
            (_, SoupServerInput::Received(bytes)) => self.receive(now_ms, bytes, effects)?,
            (ServerState::Asked(login), SoupServerInput::Verdict(is_authorized)) => {
                self.answer(now_ms, &login, is_authorized, log, effects)?;
            }
            (_, SoupServerInput::Sent(bytes)) => self.link.took(now_ms, bytes),
            (_, SoupServerInput::Verdict(_) | SoupServerInput::Wake) => {}
        }
        self.send_messages(now_ms, log, effects)?;
        self.keep_alive(now_ms, effects)
    }

    fn receive(&mut self, now_ms: u64, mut bytes: &[u8], effects: &mut Vec<SoupServerEffect>) -> Result<(), SoupClose> {
        while let Some(packet) = self.reader.take(&mut bytes)? {
            self.link.hear(now_ms);
            effects.extend(hear(&mut self.state, &packet)?);
        }
        Ok(())
    }

    /// Answers a login.
    fn answer(
        &mut self,
        now_ms: u64,
        login: &SoupLogin,
        is_authorized: bool,
        log: &SoupLog,
        effects: &mut Vec<SoupServerEffect>,
    ) -> Result<(), SoupClose> {
        let start = if is_authorized { log.start(login) } else { Err(SoupReject::NotAuthorized) };
        let packet = match start {
            Ok(next) => SoupPacket::LoginAccepted { session: log.session, next },
            Err(reject) => SoupPacket::LoginRejected(reject),
        };
        effects.push(SoupServerEffect::Send(self.link.packet(now_ms, &packet)?));
        let timeout_ms = login_timeout_ms(self.link.limits.timeout_ms, login);
        // The wait for the verdict was the server's, not the client's.
        self.link.hear(now_ms);
        self.state = ServerState::Open { next: start.map_err(SoupClose::Refused)?, timeout_ms };
        Ok(())
    }

    /// Sends the messages that are due, as far as there is room.
    fn send_messages(
        &mut self,
        now_ms: u64,
        log: &SoupLog,
        effects: &mut Vec<SoupServerEffect>,
    ) -> Result<(), SoupClose> {
        let ServerState::Open { next, .. } = &mut self.state else { return Ok(()) };
        if *next < log.first {
            return Err(SoupClose::Behind { next: *next, first: log.first });
        }
        let mut bytes = Vec::new();
        while self.link.has_room(bytes.len())
            && let Some(message) = log.get(*next)
        {
            SoupPacket::Sequenced(message).encode(&mut bytes)?;
            *next += 1;
        }
        let is_over = log.is_ended && *next == log.next();
        if is_over {
            SoupPacket::EndOfSession.encode(&mut bytes)?;
        }
        if !bytes.is_empty() {
            effects.push(SoupServerEffect::Send(self.link.speak(now_ms, bytes)));
        }
        if is_over { Err(SoupClose::Ended) } else { Ok(()) }
    }

    /// Beats when it is time to, and gives up a client that is late, silent or stalled.
    fn keep_alive(&mut self, now_ms: u64, effects: &mut Vec<SoupServerEffect>) -> Result<(), SoupClose> {
        let limit_ms = self.link.limits.timeout_ms;
        match self.state {
            ServerState::Waiting(since_ms) if now_ms.saturating_sub(since_ms) >= limit_ms => {
                return Err(SoupClose::LoginLate(now_ms.saturating_sub(since_ms)));
            }
            ServerState::Open { timeout_ms, .. } => self.link.check(now_ms, timeout_ms)?,
            _ => return Ok(()),
        }
        if self.link.is_beat_due(now_ms) {
            effects.push(SoupServerEffect::Send(self.link.packet(now_ms, &SoupPacket::ServerHeartbeat)?));
        }
        Ok(())
    }
}

/// The timeout of a client: what it asks for, if that is shorter than the server's and two heartbeats or more.
fn login_timeout_ms(limit_ms: u64, login: &SoupLogin) -> u64 {
    login.timeout_ms.map_or(limit_ms, |asked_ms| u64::from(asked_ms).max(2 * HEARTBEAT_MS).min(limit_ms))
}

/// What a packet of the client does.
fn hear(state: &mut ServerState, packet: &SoupPacket<'_>) -> Result<Option<SoupServerEffect>, SoupClose> {
    match (*state, packet) {
        (_, SoupPacket::Debug(_)) => Ok(None),
        (ServerState::Waiting(_), SoupPacket::LoginRequest(login)) => {
            *state = ServerState::Asked(*login);
            Ok(Some(SoupServerEffect::Authorize(*login)))
        }
        (ServerState::Asked(_) | ServerState::Open { .. }, SoupPacket::ClientHeartbeat) => Ok(None),
        (ServerState::Asked(_) | ServerState::Open { .. }, SoupPacket::Logout) => Err(SoupClose::Logout),
        (ServerState::Open { .. }, SoupPacket::Unsequenced(message)) => {
            Ok(Some(SoupServerEffect::Message(message.to_vec())))
        }
        (ServerState::Open { .. }, packet) => Err(out_of_place(packet, "from a client that is logged in")),
        (_, packet) => Err(out_of_place(packet, "before a login is accepted")),
    }
}

fn out_of_place(packet: &SoupPacket<'_>, state: &'static str) -> SoupClose {
    SoupClose::Invalid(SoupError::OutOfPlace { kind: packet.kind(), state })
}
