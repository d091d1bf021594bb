//! A bridge's link to the venue: OUCH over SoupBinTCP, called again whenever it breaks.

use std::time::Duration;

use protocols::soup::client::{SoupClient, SoupClientEffect, SoupClientInput};
use protocols::soup::{ANY_SESSION, SoupClose, SoupLimits, SoupLogin, SoupPacket, SoupReject, SoupSession};
use tokio::net::TcpStream;
use tokio::sync::watch;
use venue::{TraderAsk, TraderRequest};

use super::pipe::{Pipe, PipeTurn};
use super::{BridgeNews, BridgeSettings};
use crate::clock::clock_ms;
use crate::ouch::HELLO;

/// How long to wait before the venue is called again.
const AGAIN: Duration = Duration::from_secs(1);
/// How long a connection may take, the packet before the login included.
const CONNECTING: Duration = Duration::from_secs(2);

/// The link.
pub(super) struct Upstream {
    settings: BridgeSettings,
    news: watch::Receiver<Option<BridgeNews>>,
    pub pipe: Option<Pipe>,
    client: SoupClient,
    is_open: bool,
    call_at: tokio::time::Instant,
}

/// What the link says.
pub(super) enum FromVenue {
    /// It is there, for this session.
    Opened(SoupSession),
    /// A message of the venue, with its number in the session.
    Message(u64, Vec<u8>),
    /// It is gone.
    Closed,
}

impl Upstream {
    /// A link that goes on with message `next` of a session.
    pub fn new(
        settings: BridgeSettings,
        news: watch::Receiver<Option<BridgeNews>>,
        (session, next): (SoupSession, u64),
    ) -> Upstream {
        let (client, call_at) = (client(session, next), tokio::time::Instant::now());
        Upstream { settings, news, pipe: None, client, is_open: false, call_at }
    }

    /// Whether the venue hears.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// What is known of the venue.
    pub fn news(&self) -> Option<BridgeNews> {
        *self.news.borrow()
    }

    /// When the client wants a step.
    pub fn deadline_ms(&self) -> Option<u64> {
        self.client.deadline_ms()
    }

    /// Connects to the venue, if it is time.
    pub async fn call(&mut self) {
        let Some(news) = self.news().filter(|_| self.pipe.is_none() && tokio::time::Instant::now() >= self.call_at)
        else {
            return;
        };
        self.call_at = tokio::time::Instant::now() + AGAIN;
        let request = self.hello(&news);
        let connected = tokio::time::timeout(CONNECTING, connect(self.settings.venue, request)).await;
        if let Ok(Some(pipe)) = connected {
            self.pipe = Some(pipe);
            // Nothing but a login follows.
            drop(self.step(SoupClientInput::Connected));
        }
    }

    /// The packet before the login.
    fn hello(&self, news: &BridgeNews) -> Vec<u8> {
        let BridgeSettings { session, ends_orders, dead_man_ms, .. } = self.settings;
        let ask = TraderAsk::Attach { session, ends_orders, dead_man_ms };
        let request = TraderRequest::sign(&news.scope, &self.settings.trading, clock_ms(), ask);
        let text = [HELLO, &borsh::to_vec(&request).expect("writing to memory cannot fail")].concat();
        let mut bytes = Vec::new();
        SoupPacket::Debug(&text).encode(&mut bytes).expect("it is short");
        bytes
    }

    /// What the socket did.
    pub fn on_pipe(&mut self, done: &PipeTurn, buffer: &[u8]) -> Vec<FromVenue> {
        match done {
            PipeTurn::Read(bytes) => self.step(SoupClientInput::Received(&buffer[..*bytes])),
            PipeTurn::Wrote(bytes) => self.step(SoupClientInput::Sent(*bytes)),
            PipeTurn::Lost => {
                let mut said = self.step(SoupClientInput::Lost);
                said.push(self.hang_up());
                said
            }
            PipeTurn::Nothing => Vec::new(),
        }
    }

    /// Time passed.
    pub fn wake(&mut self) -> Vec<FromVenue> {
        self.step(SoupClientInput::Wake)
    }

    /// Sends a message; false if the venue does not hear it.
    pub fn send(&mut self, message: &[u8]) -> bool {
        let mut is_sent = false;
        for effect in self.client.step(clock_ms(), SoupClientInput::Send(message)) {
            if let SoupClientEffect::Send(bytes) = effect {
                is_sent = true;
                self.pipe.iter_mut().for_each(|pipe| pipe.unsent.extend(&bytes));
            }
        }
        is_sent
    }

    /// Gives up the connection.
    pub fn hang_up(&mut self) -> FromVenue {
        (self.pipe, self.is_open) = (None, false);
        FromVenue::Closed
    }

    fn step(&mut self, input: SoupClientInput<'_>) -> Vec<FromVenue> {
        let mut said = Vec::new();
        for effect in self.client.step(clock_ms(), input) {
            match effect {
                SoupClientEffect::Send(bytes) => self.pipe.iter_mut().for_each(|pipe| pipe.unsent.extend(&bytes)),
                SoupClientEffect::Accepted { session, .. } => {
                    self.is_open = true;
                    said.push(FromVenue::Opened(session));
                }
                SoupClientEffect::Message { number, message } => said.push(FromVenue::Message(number, message)),
                SoupClientEffect::Unsequenced(_) | SoupClientEffect::Unsent(_) => {}
                SoupClientEffect::Close(why) => {
                    tracing::warn!(%why, "the link to the venue ended");
                    if is_of_session(&why) {
                        self.client = client(ANY_SESSION, 1);
                    }
                    said.push(self.hang_up());
                }
            }
        }
        said
    }
}

/// Whether the session is over, so that the next login is to another one.
fn is_of_session(why: &SoupClose) -> bool {
    matches!(why, SoupClose::Ended | SoupClose::Refused(SoupReject::NoSession) | SoupClose::Mismatch { .. })
}

fn client(session: SoupSession, next: u64) -> SoupClient {
    let (username, password) = (*b"BRIDGE", *b"          ");
    SoupClient::new(SoupLogin { username, password, session, next, timeout_ms: None }, SoupLimits::default())
}

/// A connection on which the packet before the login was written: its bytes are not the client's.
async fn connect(venue: std::net::SocketAddr, hello: Vec<u8>) -> Option<Pipe> {
    let mut pipe = Pipe::new(TcpStream::connect(venue).await.ok()?);
    pipe.unsent = hello;
    while !pipe.unsent.is_empty() {
        pipe.stream.writable().await.ok()?;
        if matches!(pipe.write(), PipeTurn::Lost) {
            return None;
        }
    }
    Some(pipe)
}
