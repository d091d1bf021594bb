//! A participant's end of a link to the venue: the request that attaches its session, and then Soup.

use pit::ouch::HELLO;
use primitives::SecretKey;
use protocols::soup::client::{SoupClient, SoupClientEffect, SoupClientInput};
use protocols::soup::{ANY_SESSION, SoupClose, SoupLimits, SoupLogin, SoupPacket, SoupReject, SoupSession};
use venue::{TraderAsk, TraderRequest};

use super::WireMoment;

/// What the venue said.
pub(super) enum Heard {
    /// The session is there.
    Opened(SoupSession),
    /// A message with its number.
    Message(u64, Vec<u8>),
    /// The link is gone.
    Closed,
}

pub(super) struct Uplink {
    trading: SecretKey,
    client: SoupClient,
    /// The number of the link.
    pub link: Option<u64>,
    /// Whether the session hears.
    pub is_open: bool,
    unsent: Vec<u8>,
    stamp_ms: u64,
}

fn client(session: SoupSession, next: u64) -> SoupClient {
    let (username, password) = (*b"SIM   ", *b"          ");
    SoupClient::new(SoupLogin { username, password, session, next, timeout_ms: None }, SoupLimits::default())
}

impl Uplink {
    pub fn new(trading: SecretKey) -> Uplink {
        Uplink { trading, client: client(ANY_SESSION, 1), link: None, is_open: false, unsent: Vec::new(), stamp_ms: 0 }
    }

    /// Goes on with this message of a session at the next call.
    pub fn resume(&mut self, session: SoupSession, next: u64) {
        (self.client, self.link, self.is_open) = (client(session, next), None, false);
        self.unsent.clear();
    }

    /// Session and number of the next message.
    pub fn position(&self) -> (SoupSession, u64) {
        (self.client.session(), self.client.next())
    }

    /// Calls the venue; the first bytes.
    pub fn call(&mut self, at: &WireMoment, link: u64) -> Vec<u8> {
        self.link = Some(link);
        self.unsent.clear();
        self.stamp_ms = at.now_ms.max(self.stamp_ms + 1);
        let ask = TraderAsk::Attach { session: 1, ends_orders: false, dead_man_ms: None };
        let request = TraderRequest::sign(&at.scope, &self.trading, self.stamp_ms, ask);
        let text = [HELLO, &borsh::to_vec(&request).expect("writing to memory cannot fail")].concat();
        let mut bytes = Vec::new();
        SoupPacket::Debug(&text).encode(&mut bytes).expect("it is short");
        // Nothing but a login follows.
        self.step(at, SoupClientInput::Connected);
        bytes
    }

    pub fn receive(&mut self, at: &WireMoment, bytes: &[u8]) -> Vec<Heard> {
        self.step(at, SoupClientInput::Received(bytes))
    }

    pub fn wake(&mut self, at: &WireMoment) -> Vec<Heard> {
        self.step(at, SoupClientInput::Wake)
    }

    /// Sends a message; false if the link does not take it.
    pub fn send(&mut self, at: &WireMoment, message: &[u8]) -> bool {
        let before = self.unsent.len();
        self.step(at, SoupClientInput::Send(message));
        self.unsent.len() > before
    }

    /// The link broke.
    pub fn lose(&mut self, at: &WireMoment) {
        if self.link.take().is_some() {
            self.step(at, SoupClientInput::Lost);
        }
        self.is_open = false;
        self.unsent.clear();
    }

    /// Bytes that enter the link now.
    pub fn take_unsent(&mut self) -> Vec<u8> {
        let bytes = std::mem::take(&mut self.unsent);
        self.client.step(0, SoupClientInput::Sent(bytes.len()));
        bytes
    }

    fn step(&mut self, at: &WireMoment, input: SoupClientInput<'_>) -> Vec<Heard> {
        let mut heard = Vec::new();
        for effect in self.client.step(at.now_ms, input) {
            match effect {
                SoupClientEffect::Send(bytes) => self.unsent.extend(bytes),
                SoupClientEffect::Accepted { session, .. } => {
                    self.is_open = true;
                    heard.push(Heard::Opened(session));
                }
                SoupClientEffect::Message { number, message } => heard.push(Heard::Message(number, message)),
                SoupClientEffect::Unsequenced(_) | SoupClientEffect::Unsent(_) => {}
                SoupClientEffect::Close(why) => {
                    let is_over = matches!(
                        why,
                        SoupClose::Ended | SoupClose::Refused(SoupReject::NoSession) | SoupClose::Mismatch { .. }
                    );
                    if is_over {
                        self.client = client(ANY_SESSION, 1);
                    }
                    (self.link, self.is_open) = (None, false);
                    heard.push(Heard::Closed);
                }
            }
        }
        heard
    }
}
