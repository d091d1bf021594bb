//! A trader of the demo's venue behind its edge: signed orders over OUCH through a gateway, and through the next one
//! when that is gone.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use pit::clock_ms;
use pit::ouch::{HELLO, enter_of};
use primitives::SecretKey;
use primitives::venue::SignedOrder;
use protocols::ouch::{OuchInbound, OuchMassCancel, OuchMessage, OuchOutbound};
use protocols::soup::client::{SoupClient, SoupClientEffect, SoupClientInput};
use protocols::soup::{ANY_SESSION, SoupClose, SoupLimits, SoupLogin, SoupPacket, SoupReject};
use venue::{RequestScope, TraderAsk, TraderRequest};

/// How long a door may take to answer; all are on this machine.
const CONNECTING: Duration = Duration::from_millis(200);
/// Between two tries of all doors.
const AGAIN: Duration = Duration::from_millis(200);
/// The number of the trader's session.
const SESSION: u32 = 1;

/// What a session was told, and how often it went to another gateway.
#[derive(Clone, Copy, Debug, Default)]
pub struct OuchTally {
    pub accepted: u64,
    pub executed: u64,
    pub rejected: u64,
    pub connections: u64,
}

/// A session of a trading key, and its connection.
pub struct DemoOuch {
    doors: Vec<SocketAddr>,
    /// The door that is called next.
    door: usize,
    client: SoupClient,
    stream: Option<TcpStream>,
    is_open: bool,
    unsent: Vec<u8>,
    called: Option<Instant>,
    tally: OuchTally,
}

fn client() -> SoupClient {
    let (username, password) = (*b"DEMO  ", [b' '; 10]);
    SoupClient::new(
        SoupLogin { username, password, session: ANY_SESSION, next: 1, timeout_ms: None },
        SoupLimits::default(),
    )
}

/// Whether the session is over, as at midnight: the next login is to another one.
fn is_of_session(why: &SoupClose) -> bool {
    matches!(why, SoupClose::Ended | SoupClose::Refused(SoupReject::NoSession) | SoupClose::Mismatch { .. })
}

impl DemoOuch {
    /// A trader that calls this door first.
    pub fn new(doors: Vec<SocketAddr>, door: usize) -> DemoOuch {
        DemoOuch {
            doors,
            door,
            client: client(),
            stream: None,
            is_open: false,
            unsent: Vec::new(),
            called: None,
            tally: OuchTally::default(),
        }
    }

    /// The reports that the session received, counted.
    pub fn tally(&self) -> OuchTally {
        self.tally
    }

    /// Whether orders can be sent.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Calls a door if there is no connection, and takes what came.
    pub fn tend(&mut self, scope: &RequestScope, trading: &SecretKey) {
        if self.stream.is_none() && self.called.is_none_or(|called| called.elapsed() >= AGAIN) {
            self.called = Some(Instant::now());
            // Whoever answers first.
            if let Some(stream) = (0..self.doors.len()).find_map(|_| self.call(scope, trading)) {
                self.stream = Some(stream);
                self.tally.connections += 1;
                self.step(SoupClientInput::Connected);
            }
        }
        self.read();
        self.step(SoupClientInput::Wake);
        self.write();
    }

    /// Ends all orders of the session.
    pub fn cancel_all(&mut self, user_ref: u32) {
        let cancel = OuchMassCancel { user_ref, firm: [b' '; 4], symbol: [b' '; 8] };
        self.send(&OuchMessage::plain(OuchInbound::MassCancel(cancel)));
    }

    /// Sends an order. What is lost with a connection is quoted anew.
    pub fn enter(&mut self, order: &SignedOrder) {
        self.send(&enter_of(order));
    }

    fn send(&mut self, message: &OuchMessage<OuchInbound>) {
        let mut bytes = Vec::new();
        if self.is_open && message.encode(&mut bytes).is_ok() {
            self.step(SoupClientInput::Send(&bytes));
            self.write();
        }
    }

    /// A connection to the next door, with the request that stands before the login.
    fn call(&mut self, scope: &RequestScope, trading: &SecretKey) -> Option<TcpStream> {
        let door = *self.doors.get(self.door)?;
        self.door = (self.door + 1) % self.doors.len();
        let mut stream = TcpStream::connect_timeout(&door, CONNECTING).ok()?;
        // Its orders end with its gateway: nobody is left to withdraw them.
        let ask = TraderAsk::Attach { session: SESSION, ends_orders: true, dead_man_ms: None };
        let request = TraderRequest::sign(scope, trading, clock_ms(), ask);
        let text = [HELLO, &borsh::to_vec(&request).expect("writing to memory cannot fail")].concat();
        let mut hello = Vec::new();
        SoupPacket::Debug(&text).encode(&mut hello).expect("it is short");
        stream.write_all(&hello).ok()?;
        stream.set_nodelay(true).ok()?;
        stream.set_nonblocking(true).ok()?;
        Some(stream)
    }

    fn read(&mut self) {
        let mut buffer = [0; 16 << 10];
        while let Some(stream) = &mut self.stream {
            match stream.read(&mut buffer) {
                Ok(0) => self.lose(),
                Ok(count) => self.step(SoupClientInput::Received(&buffer[..count])),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.lose(),
            }
        }
    }

    fn write(&mut self) {
        while !self.unsent.is_empty()
            && let Some(stream) = &mut self.stream
        {
            match stream.write(&self.unsent) {
                Ok(count) if count > 0 => {
                    self.unsent.drain(..count);
                    self.step(SoupClientInput::Sent(count));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => self.lose(),
            }
        }
    }

    fn lose(&mut self) {
        self.step(SoupClientInput::Lost);
        self.hang_up();
    }

    fn hang_up(&mut self) {
        (self.stream, self.is_open) = (None, false);
        self.unsent.clear();
    }

    fn step(&mut self, input: SoupClientInput<'_>) {
        for effect in self.client.step(clock_ms(), input) {
            match effect {
                SoupClientEffect::Send(bytes) => self.unsent.extend(bytes),
                SoupClientEffect::Accepted { .. } => self.is_open = true,
                SoupClientEffect::Message { message, .. } => self.hear(&message),
                SoupClientEffect::Close(why) => {
                    if is_of_session(&why) {
                        self.client = client();
                    }
                    self.hang_up();
                }
                SoupClientEffect::Unsequenced(_) | SoupClientEffect::Unsent(_) => {}
            }
        }
    }

    fn hear(&mut self, message: &[u8]) {
        match OuchMessage::decode(message).map(|message| message.body) {
            Ok(OuchOutbound::Accepted(_)) => self.tally.accepted += 1,
            Ok(OuchOutbound::Executed(_)) => self.tally.executed += 1,
            Ok(OuchOutbound::Rejected(_)) => self.tally.rejected += 1,
            _ => {}
        }
    }
}
