//! An order system that trades over plain FIX 4.4, and knows nothing of keys.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use protocols::fix::journal::FixJournal;
use protocols::fix::session::{FixEffect, FixInput, FixLimits, FixSession};
use protocols::fix::{
    FixBody, FixCancelRequest, FixDecimal, FixExecution, FixLogon, FixMassCancelRequest, FixMessage, FixNewOrder,
    FixReplaceRequest, FixStatusRequest, FixText, FixTime,
};

use super::now_ms;

/// How long an answer may take.
const PATIENCE_MS: u64 = 60_000;

/// A FIX session with what outlives its connections.
pub struct Fix {
    journal: FixJournal,
    session: FixSession,
    stream: TcpStream,
    heard: Vec<FixMessage>,
}

fn text(text: &str) -> FixText {
    FixText::new(text).expect("a text")
}

/// A price of ticks.
fn price(tick: u64) -> Option<FixDecimal> {
    FixDecimal::new(tick, 4)
}

fn logon() -> FixLogon {
    FixLogon { encryption: 0, heartbeat_s: 30, data: None, is_reset: None, username: None, password: None }
}

fn reach(address: &str) -> TcpStream {
    for _ in 0..1_000 {
        if let Ok(stream) = TcpStream::connect(address) {
            // A wait that does not end is a failure that says what came instead.
            stream.set_read_timeout(Some(Duration::from_secs(1))).expect("a timeout");
            return stream;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("nobody listens on {address}");
}

impl Fix {
    pub fn connect(address: &str) -> Fix {
        let journal = FixJournal::new(text("ALICE"), text("WALRAS"));
        let session = FixSession::open(FixLimits::default(), logon(), now_ms());
        let mut fix = Fix { journal, session, stream: reach(address), heard: Vec::new() };
        assert!(fix.log_on());
        fix
    }

    /// Logs on again, once the bridge lets it: it does when the venue is there.
    pub fn reconnect(&mut self, address: &str) {
        for _ in 0..1_000 {
            self.session = FixSession::open(FixLimits::default(), logon(), now_ms());
            self.stream = reach(address);
            if self.log_on() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the bridge never takes the logon");
    }

    fn log_on(&mut self) -> bool {
        let mut is_on = self.step(FixInput::Wake);
        while is_on && !self.session.is_open() {
            is_on = self.read();
        }
        is_on
    }

    /// False if the connection is closed.
    fn step(&mut self, input: FixInput<'_>) -> bool {
        let mut effects = self.session.step(now_ms(), input, &mut self.journal);
        while !effects.is_empty() {
            let mut more = Vec::new();
            for effect in effects {
                match effect {
                    FixEffect::Send(bytes) => {
                        if self.stream.write_all(&bytes).is_err() {
                            return false;
                        }
                        more.extend(self.session.step(now_ms(), FixInput::Sent(bytes.len()), &mut self.journal));
                    }
                    FixEffect::Message(message) => self.heard.push(*message),
                    FixEffect::Close(_) => return false,
                    _ => {}
                }
            }
            effects = more;
        }
        true
    }

    fn read(&mut self) -> bool {
        let mut buffer = [0; 4_096];
        match self.stream.read(&mut buffer) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => self.step(FixInput::Wake),
            Ok(0) | Err(_) => self.step(FixInput::Lost),
            Ok(bytes) => self.step(FixInput::Received(&buffer[..bytes])),
        }
    }

    /// Reads until the connection ends.
    pub fn until_closed(&mut self) {
        while self.read() {}
    }

    pub fn send(&mut self, body: &FixBody) {
        assert!(self.step(FixInput::Send(body)));
    }

    /// The next message that is asked for, and whether it may have been sent before.
    pub fn next(&mut self, is_wanted: impl Fn(&FixBody) -> bool) -> (FixBody, bool) {
        let begun = now_ms();
        loop {
            assert!(now_ms() - begun < PATIENCE_MS, "it does not come: {:?}", self.heard);
            if let Some(at) = self.heard.iter().position(|message| is_wanted(&message.body)) {
                let found = self.heard.remove(at);
                return (found.body, found.header.is_possible_duplicate == Some(true));
            }
            assert!(self.read(), "the bridge hung up: {:?}", self.heard);
        }
    }

    /// The next report of a kind about an order: its status, and lots that are left and filled.
    pub fn report(&mut self, name: &str, kind: u8) -> (FixExecution, bool) {
        let is_wanted = |body: &FixBody| {
            matches!(body, FixBody::Execution(of)
                if of.exec_type == kind && of.client_order.as_ref() == Some(&text(name)))
        };
        let (FixBody::Execution(report), is_again) = self.next(is_wanted) else { unreachable!("it was asked for") };
        (report, is_again)
    }
}

pub fn new(name: &str, side: u8, tick: u64, lots: u32) -> FixBody {
    FixNewOrder {
        client_order: text(name),
        account: None,
        instructions: None,
        symbol: text("M0"),
        side,
        time: FixTime::of_ms(now_ms()),
        quantity: lots.into(),
        order_type: b'2',
        price: price(tick),
        time_in_force: None,
        least_quantity: None,
        displayed_most: None,
        text: None,
    }
    .into()
}

pub fn replace(original: &str, name: &str, side: u8, tick: u64, lots: u32) -> FixBody {
    FixReplaceRequest {
        original: text(original),
        client_order: text(name),
        order: None,
        instructions: None,
        symbol: text("M0"),
        side,
        time: FixTime::of_ms(now_ms()),
        quantity: lots.into(),
        order_type: b'2',
        price: price(tick),
        time_in_force: None,
    }
    .into()
}

pub fn cancel(original: &str, name: &str, side: u8) -> FixBody {
    let (original, client_order, symbol, time) = (text(original), text(name), text("M0"), FixTime::of_ms(now_ms()));
    FixCancelRequest { original, client_order, order: None, symbol, side, time, quantity: None }.into()
}

pub fn status(name: &str, side: u8) -> FixBody {
    FixStatusRequest { order: None, client_order: text(name), symbol: text("M0"), side }.into()
}

pub fn cancel_all(name: &str) -> FixBody {
    let time = FixTime::of_ms(now_ms());
    FixMassCancelRequest { client_order: text(name), scope: b'7', symbol: None, side: None, time }.into()
}
