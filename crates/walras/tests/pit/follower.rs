//! A reader of the venue's market data that loses packets: it takes a snapshot, asks the rewinder, and has the book. It
//! builds a second book by a parser that others wrote, `itchy`, and another one by MeatPy, if there is an interpreter
//! that has it. All must be the engine's. Its packets are dissected by tshark, if there is one.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::Command;

use protocols::glimpse::read_snapshot_end;
use protocols::itch::{ItchBody, ItchMessage};
use protocols::mold::{MoldPacket, MoldRequest, MoldSession};
use protocols::soup::client::{SoupClient, SoupClientEffect, SoupClientInput};
use protocols::soup::{ANY_SESSION, SoupLimits, SoupLogin};
use serde_json::{Value, json};

use super::over_quickfix::interpreter;
use super::{by_tshark, now_ms};

/// Heartbeats, of one a second, within which the book must be there.
const BEATS: u32 = 60;

/// A resting order: side, tick, lots.
type Resting = (u8, u32, u32);
type Book = BTreeMap<u64, Resting>;

pub struct Follower {
    socket: UdpSocket,
    rewinder: SocketAddr,
    snapshots: SocketAddr,
    session: MoldSession,
    next: u64,
    orders: Book,
    /// The same by another parser.
    theirs: Book,
    /// The messages since the snapshot, as a file of a day has them.
    day: Vec<u8>,
    /// The last packets, as they came.
    heard: Vec<Vec<u8>>,
    packets: u64,
    rewound: u64,
}

impl Follower {
    pub fn new() -> Follower {
        Follower {
            socket: UdpSocket::bind("127.0.0.1:0").expect("a socket"),
            rewinder: sockets::free_address().expect("a free port"),
            snapshots: sockets::free_address().expect("a free port"),
            session: [0; 10],
            next: 1,
            orders: Book::new(),
            theirs: Book::new(),
            day: Vec::new(),
            heard: Vec::new(),
            packets: 0,
            rewound: 0,
        }
    }

    /// Where it is told, where it asks, and where it takes snapshots.
    pub fn addresses(&self) -> [String; 3] {
        [self.socket.local_addr().expect("bound"), self.rewinder, self.snapshots].map(|address| address.to_string())
    }

    /// Reads until its book has these levels.
    pub fn until(&mut self, levels: &Value) {
        let (mut buffer, mut beats) = ([0; 2_048], 0);
        while beats < BEATS {
            let (bytes, from) = self.socket.recv_from(&mut buffer).expect("a packet");
            assert_eq!(from, self.rewinder);
            self.heard.push(buffer[..bytes].to_vec());
            let is_beat = self.hear(&buffer[..bytes]);
            beats += u32::from(is_beat);
            if is_beat && levels_of(&self.orders) == *levels {
                assert_eq!(levels_of(&self.theirs), *levels, "the other parser reads the same book");
                assert!(self.rewound > 0, "it lost packets, and got them again");
                by_tshark::reads(&std::mem::take(&mut self.heard));
                if let Some(read) = by_meatpy(&self.day) {
                    assert_eq!(read, *levels, "MeatPy reads the same book");
                }
                return;
            }
        }
        panic!("{} is not {levels}", levels_of(&self.orders));
    }

    /// Takes a packet, or loses it; whether it has everything.
    fn hear(&mut self, bytes: &[u8]) -> bool {
        let packet = MoldPacket::decode(bytes).expect("MoldUDP64");
        if packet.session != self.session {
            if !packet.is_end {
                self.take_snapshot();
                // What a reader has lost is there again.
                self.ask(1, 3);
            }
            return false;
        }
        self.packets += 1;
        if !packet.messages.is_empty() && self.packets.is_multiple_of(3) {
            return false;
        }
        if packet.first > self.next {
            self.ask(self.next, packet.first - self.next);
            return false;
        }
        self.rewound += u64::from(packet.first < self.next && !packet.messages.is_empty());
        for (number, message) in (packet.first..).zip(&packet.messages) {
            if number == self.next {
                self.apply(message);
                self.next += 1;
            }
        }
        packet.messages.is_empty()
    }

    fn ask(&self, first: u64, count: u64) {
        let request = MoldRequest { session: self.session, first, count: count.min(60_000) as u16 };
        self.socket.send_to(&request.encode(), self.rewinder).expect("sent");
    }

    fn apply(&mut self, message: &[u8]) {
        apply_theirs(&mut self.theirs, message);
        self.day.extend((message.len() as u16).to_be_bytes());
        self.day.extend(message);
        let orders = &mut self.orders;
        match ItchMessage::decode(message).expect("ITCH").body {
            ItchBody::Add(of) => assert_eq!(orders.insert(of.order, (of.side, of.price, of.shares)), None),
            ItchBody::Executed(of) => lower(orders, of.order, of.shares),
            ItchBody::ExecutedAt(of) => lower(orders, of.order, of.shares),
            ItchBody::Cancelled(of) => lower(orders, of.order, of.shares),
            ItchBody::Delete(of) => assert!(orders.remove(&of.order).is_some()),
            ItchBody::Replaced(of) => rename(orders, of.before, of.order, of.price, of.shares),
            _ => {}
        }
    }

    /// Begins with the books as they stand.
    fn take_snapshot(&mut self) {
        let (username, password) = (*b"READER", [b' '; 10]);
        let login = SoupLogin { username, password, session: ANY_SESSION, next: 1, timeout_ms: None };
        let mut client = SoupClient::new(login, SoupLimits::default());
        let mut stream = TcpStream::connect(self.snapshots).expect("snapshots are there");
        let mut effects = client.step(now_ms(), SoupClientInput::Connected);
        self.orders.clear();
        self.theirs.clear();
        self.day.clear();
        let mut buffer = [0; 4_096];
        loop {
            for effect in effects {
                match effect {
                    SoupClientEffect::Send(bytes) => stream.write_all(&bytes).expect("it reads"),
                    SoupClientEffect::Accepted { session, .. } => self.session = session,
                    SoupClientEffect::Message { message, .. } => match read_snapshot_end(&message) {
                        Some(next) => {
                            self.next = next;
                            return;
                        }
                        None => self.apply(&message),
                    },
                    other => panic!("{other:?}"),
                }
            }
            let bytes = stream.read(&mut buffer).expect("it speaks");
            assert!(bytes > 0, "it hung up");
            effects = client.step(now_ms(), SoupClientInput::Received(&buffer[..bytes]));
        }
    }
}

/// Follows a message as another parser reads it.
fn apply_theirs(book: &mut Book, message: &[u8]) {
    let frame = [&(message.len() as u16).to_be_bytes()[..], message].concat();
    let read = itchy::MessageStream::from_reader(&frame[..]).next().expect("a message").expect("ITCH 5.0");
    match read.body {
        itchy::Body::AddOrder(of) => {
            let side = if of.side == itchy::Side::Buy { b'B' } else { b'S' };
            assert_eq!(book.insert(of.reference, (side, of.price.raw(), of.shares)), None);
        }
        itchy::Body::OrderExecuted { reference, executed, .. } => lower(book, reference, executed),
        itchy::Body::OrderExecutedWithPrice { reference, executed, .. } => lower(book, reference, executed),
        itchy::Body::OrderCancelled { reference, cancelled } => lower(book, reference, cancelled),
        itchy::Body::DeleteOrder { reference } => assert!(book.remove(&reference).is_some()),
        itchy::Body::ReplaceOrder(of) => rename(book, of.old_reference, of.new_reference, of.price.raw(), of.shares),
        _ => {}
    }
}

/// The book as MeatPy reads it; `None` if no interpreter has it.
fn by_meatpy(day: &[u8]) -> Option<Value> {
    let Some(python) = interpreter("meatpy") else {
        eprintln!("no MeatPy: install it for sdk/python, or name an interpreter in WALRAS_TEST_PYTHON");
        return None;
    };
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(day).expect("written");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pit/meatpy_book.py");
    let output = Command::new(python).arg(script).arg(file.path()).arg("M0").output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

fn lower(book: &mut Book, order: u64, lots: u32) {
    let (_, _, left) = book.get_mut(&order).expect("it rests");
    *left -= lots;
    if *left == 0 {
        book.remove(&order);
    }
}

fn rename(book: &mut Book, before: u64, order: u64, tick: u32, lots: u32) {
    let (side, ..) = book.remove(&before).expect("it rests");
    book.insert(order, (side, tick, lots));
}

/// Levels as the venue's book has them: tick, lots, orders; buys and sells, the best first.
fn levels_of(book: &Book) -> Value {
    let side = |letter| {
        let mut levels: BTreeMap<u32, (u64, u32)> = BTreeMap::new();
        for (_, tick, lots) in book.values().filter(|order| order.0 == letter) {
            let level = levels.entry(*tick).or_default();
            (level.0, level.1) = (level.0 + u64::from(*lots), level.1 + 1);
        }
        levels.into_iter().map(|(tick, (lots, orders))| json!([tick, lots, orders])).collect::<Vec<_>>()
    };
    let (mut bids, asks) = (side(b'B'), side(b'S'));
    bids.reverse();
    json!([bids, asks])
}
