//! A client, as steps. It outlives its connections: the next login asks for what it has not heard.

use super::link::SoupLink;
use super::{
    ANY_SESSION, SoupClose, SoupError, SoupLimits, SoupLogin, SoupPacket, SoupReader, SoupSession, is_same_session,
};

/// What happens to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoupClientInput<'a> {
    /// A connection is there.
    Connected,
    /// Bytes came.
    Received(&'a [u8]),
    /// A message is to be sent.
    Send(&'a [u8]),
    /// The socket took so many of the bytes to send.
    Sent(usize),
    /// Time passed.
    Wake,
    /// The client leaves.
    Logout,
    /// The connection is gone.
    Lost,
}

/// What a client wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SoupClientEffect {
    /// These bytes are to be sent, after those before.
    Send(Vec<u8>),
    /// The client is logged in.
    Accepted {
        /// The session.
        session: SoupSession,
        /// The number of the next message.
        next: u64,
    },
    /// A message of the server.
    Message {
        /// Its number.
        number: u64,
        /// The message.
        message: Vec<u8>,
    },
    /// A message of the server without a number.
    Unsequenced(Vec<u8>),
    /// The message that was to be sent was not.
    Unsent(SoupUnsent),
    /// The connection is to be closed, after what is to be sent.
    Close(SoupClose),
}

/// Why a client does not send a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SoupUnsent {
    /// It is not logged in.
    #[error("the client is not logged in")]
    NotOpen,
    /// Too many bytes wait for the socket.
    #[error("the server reads too slowly: too many bytes wait")]
    Full,
    /// The message is too long.
    #[error(transparent)]
    TooLong(SoupError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientState {
    /// Without a connection.
    Down,
    /// Its login has no answer.
    Asked,
    Open,
    /// The session has ended.
    Over,
}

/// A client.
#[derive(Clone, Debug)]
pub struct SoupClient {
    /// What the next login asks for.
    login: SoupLogin,
    limits: SoupLimits,
    link: SoupLink,
    reader: SoupReader,
    state: ClientState,
}

impl SoupClient {
    /// A client that logs in with `login`, once it is connected.
    pub fn new(login: SoupLogin, limits: SoupLimits) -> SoupClient {
        let (link, reader) = (SoupLink::new(limits, 0), SoupReader::new(limits.packet_max));
        SoupClient { login, limits, link, reader, state: ClientState::Down }
    }

    /// The session; [`ANY_SESSION`] before one accepted it.
    pub fn session(&self) -> SoupSession {
        self.login.session
    }

    /// The number of the next message; zero if it asked for the latest and has no answer.
    pub fn next(&self) -> u64 {
        self.login.next
    }

    /// Whether the session has ended: the client does not log in again.
    pub fn is_over(&self) -> bool {
        self.state == ClientState::Over
    }

    /// When a [`SoupClientInput::Wake`] is due at the latest; `None` without a connection.
    pub fn deadline_ms(&self) -> Option<u64> {
        let give_up_ms = self.link.give_up_ms(self.limits.timeout_ms);
        match self.state {
            ClientState::Asked => Some(give_up_ms),
            ClientState::Open => Some(give_up_ms.min(self.link.beat_ms())),
            ClientState::Down | ClientState::Over => None,
        }
    }

    /// What follows from `input`. After [`SoupClientEffect::Close`] nothing does before the next connection.
    pub fn step(&mut self, now_ms: u64, input: SoupClientInput<'_>) -> Vec<SoupClientEffect> {
        let mut effects = Vec::new();
        if let Err(reason) = self.advance(now_ms, input, &mut effects) {
            self.state = if reason == SoupClose::Ended { ClientState::Over } else { ClientState::Down };
            effects.push(SoupClientEffect::Close(reason));
        }
        effects
    }

    fn advance(
        &mut self,
        now_ms: u64,
        input: SoupClientInput<'_>,
        effects: &mut Vec<SoupClientEffect>,
    ) -> Result<(), SoupClose> {
        match (self.state, input) {
            (ClientState::Over, SoupClientInput::Connected) => return Err(SoupClose::Ended),
            (_, SoupClientInput::Connected) => effects.push(self.connect(now_ms)?),
            (_, SoupClientInput::Send(message)) => effects.push(self.send(now_ms, message)),
            (ClientState::Down | ClientState::Over, _) => {}
            (_, SoupClientInput::Lost) => self.state = ClientState::Down,
            (_, SoupClientInput::Received(bytes)) => self.receive(now_ms, bytes, effects)?,
            (_, SoupClientInput::Sent(bytes)) => self.link.took(now_ms, bytes),
            (_, SoupClientInput::Wake) => {}
            (_, SoupClientInput::Logout) => return self.log_out(now_ms, effects),
        }
        self.keep_alive(now_ms, effects)
    }

    /// Logs in; of an earlier connection nothing counts.
    fn connect(&mut self, now_ms: u64) -> Result<SoupClientEffect, SoupClose> {
        self.link = SoupLink::new(self.limits, now_ms);
        self.reader = SoupReader::new(self.limits.packet_max);
        self.state = ClientState::Asked;
        Ok(SoupClientEffect::Send(self.link.packet(now_ms, &SoupPacket::LoginRequest(self.login))?))
    }

    fn send(&mut self, now_ms: u64, message: &[u8]) -> SoupClientEffect {
        if self.state != ClientState::Open {
            return SoupClientEffect::Unsent(SoupUnsent::NotOpen);
        }
        if !self.link.has_room(0) {
            return SoupClientEffect::Unsent(SoupUnsent::Full);
        }
        match self.link.packet(now_ms, &SoupPacket::Unsequenced(message)) {
            Ok(bytes) => SoupClientEffect::Send(bytes),
            Err(error) => SoupClientEffect::Unsent(SoupUnsent::TooLong(error)),
        }
    }

    fn log_out(&mut self, now_ms: u64, effects: &mut Vec<SoupClientEffect>) -> Result<(), SoupClose> {
        effects.push(SoupClientEffect::Send(self.link.packet(now_ms, &SoupPacket::Logout)?));
        Err(SoupClose::Logout)
    }

    fn receive(&mut self, now_ms: u64, mut bytes: &[u8], effects: &mut Vec<SoupClientEffect>) -> Result<(), SoupClose> {
        while let Some(packet) = self.reader.take(&mut bytes)? {
            self.link.hear(now_ms);
            effects.extend(hear(&mut self.state, &mut self.login, &packet)?);
        }
        Ok(())
    }

    /// Beats when it is time to, and gives up a server that is silent or stalled.
    fn keep_alive(&mut self, now_ms: u64, effects: &mut Vec<SoupClientEffect>) -> Result<(), SoupClose> {
        if !matches!(self.state, ClientState::Asked | ClientState::Open) {
            return Ok(());
        }
        self.link.check(now_ms, self.limits.timeout_ms)?;
        if self.state == ClientState::Open && self.link.is_beat_due(now_ms) {
            effects.push(SoupClientEffect::Send(self.link.packet(now_ms, &SoupPacket::ClientHeartbeat)?));
        }
        Ok(())
    }
}

/// What a packet of the server does.
fn hear(
    state: &mut ClientState,
    login: &mut SoupLogin,
    packet: &SoupPacket<'_>,
) -> Result<Option<SoupClientEffect>, SoupClose> {
    match (*state, *packet) {
        (_, SoupPacket::Debug(_)) => Ok(None),
        (ClientState::Asked, SoupPacket::LoginAccepted { session, next }) => {
            accept(login, session, next)?;
            *state = ClientState::Open;
            Ok(Some(SoupClientEffect::Accepted { session, next }))
        }
        (ClientState::Asked, SoupPacket::LoginRejected(reject)) => Err(SoupClose::Refused(reject)),
        (ClientState::Open, SoupPacket::Sequenced(message)) => {
            let number = login.next;
            login.next = number.checked_add(1).ok_or(SoupError::Number { kind: b'S' })?;
            Ok(Some(SoupClientEffect::Message { number, message: message.to_vec() }))
        }
        (ClientState::Open, SoupPacket::Unsequenced(message)) => {
            Ok(Some(SoupClientEffect::Unsequenced(message.to_vec())))
        }
        (ClientState::Open, SoupPacket::ServerHeartbeat) => Ok(None),
        (ClientState::Open, SoupPacket::EndOfSession) => Err(SoupClose::Ended),
        (ClientState::Open, packet) => Err(out_of_place(&packet, "from a server that accepted a login")),
        (_, packet) => Err(out_of_place(&packet, "before a server accepts a login")),
    }
}

/// Takes session and number from a server's answer, which must be those asked for.
fn accept(login: &mut SoupLogin, session: SoupSession, next: u64) -> Result<(), SoupClose> {
    let is_session = login.session == ANY_SESSION || is_same_session(&login.session, &session);
    let is_number = next > 0 && (login.next == 0 || login.next == next);
    if !(is_session && is_number) {
        return Err(SoupClose::Mismatch { needs: login.next, has: next });
    }
    (login.session, login.next) = (session, next);
    Ok(())
}

fn out_of_place(packet: &SoupPacket<'_>, state: &'static str) -> SoupClose {
    SoupClose::Invalid(SoupError::OutOfPlace { kind: packet.kind(), state })
}
