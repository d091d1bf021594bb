//! A program that trades over plain OUCH, and the bridge that signs for it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use pit::bridge::{self, BridgeNews, BridgeSettings};
use protocols::ouch::{OuchEnter, OuchInbound, OuchMessage, OuchOutbound};
use protocols::soup::client::{SoupClient, SoupClientEffect, SoupClientInput};
use protocols::soup::{ANY_SESSION, SoupLimits, SoupLogin};
use tokio::sync::watch;
use venue::RequestScope;

use crate::chain::{Chain, trading};

pub struct Trader {
    client: SoupClient,
    stream: TcpStream,
    heard: Vec<OuchOutbound>,
    bridge: tokio::task::JoinHandle<()>,
    address: SocketAddr,
    _news: watch::Sender<Option<BridgeNews>>,
}

impl Drop for Trader {
    fn drop(&mut self) {
        self.bridge.abort();
    }
}

impl Trader {
    /// A program behind a bridge that speaks to a door, once its session is open.
    pub fn new(
        runtime: &tokio::runtime::Runtime,
        chain: &Chain,
        person: u8,
        door: SocketAddr,
        ends_orders: bool,
    ) -> Trader {
        let settings = BridgeSettings {
            venue: door,
            trading: trading(person),
            session: 1,
            ends_orders,
            dead_man_ms: None,
            fee_cap_ppm: 10_000,
            life_heights: 5_000,
            gather_us: 500,
        };
        let scope = RequestScope { network: chain.network, venue: 0, incarnation: 0 };
        let (sender, news) = watch::channel(Some(BridgeNews { scope, height: chain.height(), takes_lists: true }));
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("bound");
        let bridge = runtime.spawn(async move {
            drop(bridge::run(settings, listener, news, Box::new(|_| Ok(()))).await);
        });
        // A bridge whose venue does not answer yet hangs up.
        loop {
            if let Some((client, stream, heard)) = log_in(address) {
                return Trader { client, stream, heard, bridge, address, _news: sender };
            }
        }
    }

    pub fn enter(&mut self, user_ref: u32, side: u8, price: u64, quantity: u32) {
        self.send(OuchInbound::Enter(OuchEnter {
            user_ref,
            side,
            quantity,
            symbol: pit::ouch::symbol_of(0),
            price,
            time_in_force: b'0',
            display: b'Y',
            capacity: b'P',
            sweep: b'N',
            cross: b'N',
            client_order: *b"mine          ",
        }));
    }

    pub fn send(&mut self, message: OuchInbound) {
        let mut bytes = Vec::new();
        OuchMessage::plain(message).encode(&mut bytes).expect("it has no options");
        for effect in self.client.step(pit::clock_ms(), SoupClientInput::Send(&bytes)) {
            let SoupClientEffect::Send(bytes) = effect else { panic!("{effect:?}") };
            self.stream.write_all(&bytes).expect("the bridge reads");
            self.client.step(pit::clock_ms(), SoupClientInput::Sent(bytes.len()));
        }
    }

    /// Connects again once the bridge has hung up, or at once; what its session has told before is heard again.
    pub fn again(&mut self) {
        self.heard.clear();
        loop {
            if let Some((client, stream, heard)) = log_in(self.address) {
                (self.client, self.stream, self.heard) = (client, stream, heard);
                return;
            }
        }
    }

    /// Reads until the bridge hangs up; false if it has not within a turn.
    pub fn has_ended(&mut self) -> bool {
        let mut buffer = [0; 4_096];
        self.stream.set_read_timeout(Some(std::time::Duration::from_millis(10))).expect("a socket");
        let ended = match self.stream.read(&mut buffer) {
            Ok(bytes) => {
                self.take(&buffer[..bytes]);
                bytes == 0
            }
            Err(error) => !matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut),
        };
        self.stream.set_read_timeout(None).expect("a socket");
        ended
    }

    /// What was heard and not asked for.
    pub fn heard(&self) -> &[OuchOutbound] {
        &self.heard
    }

    /// The next message that is asked for.
    pub fn next(&mut self, is_wanted: impl Fn(&OuchOutbound) -> bool) -> OuchOutbound {
        loop {
            if let Some(at) = self.heard.iter().position(&is_wanted) {
                return self.heard.remove(at);
            }
            let mut buffer = [0; 4_096];
            let bytes = self.stream.read(&mut buffer).expect("the bridge speaks");
            assert!(bytes > 0, "the bridge hung up: {:?}", self.heard);
            self.take(&buffer[..bytes]);
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        for effect in self.client.step(pit::clock_ms(), SoupClientInput::Received(bytes)) {
            match effect {
                SoupClientEffect::Message { message, .. } => {
                    self.heard.push(OuchMessage::decode(&message).expect("plain OUCH").body);
                }
                SoupClientEffect::Send(bytes) => {
                    self.stream.write_all(&bytes).expect("the bridge reads");
                    self.client.step(pit::clock_ms(), SoupClientInput::Sent(bytes.len()));
                }
                SoupClientEffect::Close(why) => panic!("{why}"),
                _ => {}
            }
        }
    }
}

/// Logs in; what the session has told before comes with the answer.
fn log_in(address: SocketAddr) -> Option<(SoupClient, TcpStream, Vec<OuchOutbound>)> {
    let (username, password) = (*b"TRADER", *b"x         ");
    let login = SoupLogin { username, password, session: ANY_SESSION, next: 1, timeout_ms: None };
    let mut stream = TcpStream::connect(address).expect("the bridge listens");
    let mut client = SoupClient::new(login, SoupLimits::default());
    let (mut inputs, mut heard) = (vec![Vec::new()], Vec::new());
    while client.session() == ANY_SESSION {
        let effects = match inputs.pop() {
            Some(bytes) if bytes.is_empty() => client.step(pit::clock_ms(), SoupClientInput::Connected),
            Some(bytes) => client.step(pit::clock_ms(), SoupClientInput::Received(&bytes)),
            None => {
                let mut buffer = [0; 4_096];
                let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
                inputs.push(buffer[..count].to_vec());
                continue;
            }
        };
        for effect in effects {
            match effect {
                SoupClientEffect::Send(bytes) => {
                    stream.write_all(&bytes).ok()?;
                    client.step(pit::clock_ms(), SoupClientInput::Sent(bytes.len()));
                }
                SoupClientEffect::Message { message, .. } => {
                    heard.push(OuchMessage::decode(&message).expect("plain OUCH").body);
                }
                SoupClientEffect::Close(_) => return None,
                _ => {}
            }
        }
    }
    Some((client, stream, heard))
}
