//! A program that trades over plain OUCH, and knows nothing of keys.

use std::io::{Read, Write};
use std::net::TcpStream;

use protocols::ouch::{OuchInbound, OuchMessage, OuchOutbound};
use protocols::soup::client::{SoupClient, SoupClientEffect, SoupClientInput};
use protocols::soup::{ANY_SESSION, SoupLimits, SoupLogin};

use super::now_ms;

/// A plain OUCH participant, which knows nothing of keys.
pub struct Ouch {
    client: SoupClient,
    stream: TcpStream,
    heard: Vec<OuchMessage<OuchOutbound>>,
}

impl Ouch {
    pub fn connect(address: &str) -> Ouch {
        let login = SoupLogin {
            username: *b"ALICE ",
            password: *b"x         ",
            session: ANY_SESSION,
            next: 1,
            timeout_ms: None,
        };
        let stream = TcpStream::connect(address).expect("the bridge listens");
        let mut ouch = Ouch { client: SoupClient::new(login, SoupLimits::default()), stream, heard: Vec::new() };
        ouch.step(SoupClientInput::Connected);
        while ouch.client.session() == ANY_SESSION {
            ouch.read();
        }
        ouch
    }

    fn step(&mut self, input: SoupClientInput<'_>) -> bool {
        let mut is_closed = false;
        for effect in self.client.step(now_ms(), input) {
            match effect {
                SoupClientEffect::Send(bytes) => {
                    self.stream.write_all(&bytes).expect("the bridge reads");
                    self.client.step(now_ms(), SoupClientInput::Sent(bytes.len()));
                }
                SoupClientEffect::Message { message, .. } => {
                    self.heard.push(OuchMessage::decode(&message).expect("plain OUCH"));
                }
                SoupClientEffect::Close(_) => is_closed = true,
                _ => {}
            }
        }
        is_closed
    }

    pub fn send(&mut self, message: OuchInbound) {
        let mut bytes = Vec::new();
        OuchMessage::plain(message).encode(&mut bytes).expect("it has no options");
        assert!(!self.step(SoupClientInput::Send(&bytes)));
    }

    /// The next message that is asked for.
    pub fn next(&mut self, is_wanted: impl Fn(&OuchOutbound) -> bool) -> OuchOutbound {
        loop {
            if let Some(at) = self.heard.iter().position(|message| is_wanted(&message.body)) {
                let found = self.heard.remove(at);
                assert!(found.options.unwrap_or_default().is_empty(), "plain OUCH has no signed reports");
                return found.body;
            }
            self.read();
        }
    }

    fn read(&mut self) {
        let mut buffer = [0; 4_096];
        let bytes = self.stream.read(&mut buffer).expect("the bridge speaks");
        assert!(bytes > 0, "the bridge hung up: {:?}", self.heard);
        assert!(!self.step(SoupClientInput::Received(&buffer[..bytes])), "{:?}", self.heard);
    }
}
