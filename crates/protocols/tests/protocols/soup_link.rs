//! Both sides of a SoupBinTCP session, over a link that cuts the stream anywhere and loses connections.

use std::collections::VecDeque;

use proptest::prelude::*;
use protocols::soup::client::{SoupClient, SoupClientEffect, SoupClientInput};
use protocols::soup::server::{SoupLog, SoupServer, SoupServerEffect, SoupServerInput};
use protocols::soup::{SoupClose, SoupLimits, SoupPacket, TIMEOUT_MS};

use crate::soup_sessions::{encoded, login};

const SESSION: [u8; 10] = *b"    DAY001";
const LIMITS: SoupLimits = SoupLimits { packet_max: 60, unsent_max: 80, timeout_ms: TIMEOUT_MS };
/// The longest packet of the tests, with its length.
const PACKET_MAX: usize = 62;

/// A client, a server's connection where there is one, and the bytes between them.
struct World {
    now_ms: u64,
    log: SoupLog,
    client: SoupClient,
    server: Option<SoupServer>,
    is_connected: bool,
    up: VecDeque<u8>,
    down: VecDeque<u8>,
    got: Vec<(u64, Vec<u8>)>,
    heard: Vec<Vec<u8>>,
    closed: Vec<SoupClose>,
}

impl World {
    fn new() -> World {
        let (log, client) = (SoupLog::new(SESSION), SoupClient::new(login(1), LIMITS));
        let (up, down, got) = (VecDeque::new(), VecDeque::new(), Vec::new());
        let (heard, closed) = (Vec::new(), Vec::new());
        World { now_ms: 0, log, client, server: None, is_connected: false, up, down, got, heard, closed }
    }

    fn connect(&mut self) {
        if !self.is_connected && !self.client.is_over() {
            self.server = Some(SoupServer::new(LIMITS, self.now_ms));
            self.is_connected = true;
            self.client(SoupClientInput::Connected);
        }
    }

    /// Loses the connection and the bytes on it.
    fn cut(&mut self) {
        (self.server, self.is_connected) = (None, false);
        self.up.clear();
        self.down.clear();
        self.client(SoupClientInput::Lost);
    }

    fn client(&mut self, input: SoupClientInput<'_>) {
        for effect in self.client.step(self.now_ms, input) {
            match effect {
                SoupClientEffect::Send(bytes) => self.up.extend(bytes),
                SoupClientEffect::Message { number, message } => self.got.push((number, message)),
                SoupClientEffect::Close(reason) => {
                    self.closed.push(reason);
                    self.cut();
                }
                SoupClientEffect::Accepted { session, .. } => assert_eq!(session, SESSION),
                SoupClientEffect::Unsent(_) | SoupClientEffect::Unsequenced(_) => {}
            }
        }
    }

    fn server(&mut self, input: SoupServerInput<'_>) {
        let Some(server) = &mut self.server else { return };
        for effect in server.step(self.now_ms, input, &self.log) {
            match effect {
                SoupServerEffect::Send(bytes) => self.down.extend(bytes),
                SoupServerEffect::Message(message) => self.heard.push(message),
                SoupServerEffect::Authorize(_) => return self.server(SoupServerInput::Verdict(true)),
                SoupServerEffect::Close(reason) => {
                    self.closed.push(reason);
                    self.server = None;
                }
            }
        }
        assert!(self.down.len() < LIMITS.unsent_max + 2 * PACKET_MAX, "{} bytes wait", self.down.len());
    }

    /// Carries at most `count` bytes to the server.
    fn up(&mut self, count: usize) {
        let bytes: Vec<u8> = self.up.drain(..count.min(self.up.len())).collect();
        self.client(SoupClientInput::Sent(bytes.len()));
        self.server(SoupServerInput::Received(&bytes));
    }

    /// Carries at most `count` bytes to the client, and then the end of a connection that the server closed.
    fn down(&mut self, count: usize) {
        let bytes: Vec<u8> = self.down.drain(..count.min(self.down.len())).collect();
        self.server(SoupServerInput::Sent(bytes.len()));
        self.client(SoupClientInput::Received(&bytes));
        if self.is_connected && self.server.is_none() && self.down.is_empty() {
            self.cut();
        }
    }

    fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        self.client(SoupClientInput::Wake);
        self.server(SoupServerInput::Wake);
    }

    /// Carries everything over a link that works, for as long as `count` messages need.
    fn settle(&mut self, count: usize) {
        for _ in 0..20 + 4 * count {
            self.connect();
            self.up(usize::MAX);
            self.down(usize::MAX);
        }
    }
}

#[derive(Clone, Debug)]
enum Event {
    Connect,
    Cut,
    Publish(Vec<u8>),
    Say(Vec<u8>),
    Up(usize),
    Down(usize),
    Pass(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let message = || prop::collection::vec(any::<u8>(), 0..30);
    prop_oneof![
        3 => Just(Event::Connect),
        1 => Just(Event::Cut),
        4 => message().prop_map(Event::Publish),
        2 => message().prop_map(Event::Say),
        6 => (1..70usize).prop_map(Event::Up),
        6 => (1..70usize).prop_map(Event::Down),
        2 => (0..20_000u64).prop_map(Event::Pass),
    ]
}

impl World {
    fn meet(&mut self, event: &Event) {
        match event {
            Event::Connect => self.connect(),
            Event::Cut => self.cut(),
            Event::Publish(message) => {
                self.log.publish(message.clone()).expect("open");
                self.server(SoupServerInput::Wake);
            }
            Event::Say(message) => self.client(SoupClientInput::Send(message)),
            Event::Up(count) => self.up(*count),
            Event::Down(count) => self.down(*count),
            Event::Pass(ms) => self.pass(*ms),
        }
    }
}

fn is_subsequence(of: &[Vec<u8>], part: &[Vec<u8>]) -> bool {
    let mut of = of.iter();
    part.iter().all(|one| of.any(|other| other == one))
}

proptest! {
    #[test]
    fn every_sequenced_soup_message_arrives_once_and_in_order(events in prop::collection::vec(event(), 0..120)) {
        let mut world = World::new();
        events.iter().for_each(|event| world.meet(event));
        world.settle(events.len());
        world.log.end();
        world.server(SoupServerInput::Wake);
        world.settle(1);

        let pick = |event: &Event| match event { Event::Publish(message) => Some(message.clone()), _ => None };
        let sent: Vec<(u64, Vec<u8>)> = (1..).zip(events.iter().filter_map(pick)).collect();
        prop_assert_eq!(&world.got, &sent);
        prop_assert!(world.client.is_over());
        let pick = |event: &Event| match event { Event::Say(message) => Some(message.clone()), _ => None };
        let said: Vec<Vec<u8>> = events.iter().filter_map(pick).collect();
        prop_assert!(is_subsequence(&said, &world.heard));
        let is_wrong = |reason: &SoupClose| matches!(reason, SoupClose::Invalid(_) | SoupClose::Mismatch { .. });
        prop_assert!(!world.closed.iter().any(is_wrong), "{:?}", world.closed);
    }

    #[test]
    fn soup_machines_take_any_bytes_without_panic_and_stay_closed(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..8),
        is_logged_in: bool,
    ) {
        let (mut server, mut client) = (SoupServer::new(LIMITS, 0), SoupClient::new(login(1), LIMITS));
        let log = SoupLog::new(SESSION);
        client.step(0, SoupClientInput::Connected);
        if is_logged_in {
            server.step(0, SoupServerInput::Received(&encoded(&[SoupPacket::LoginRequest(login(1))])), &log);
            server.step(0, SoupServerInput::Verdict(true), &log);
            let accepted = encoded(&[SoupPacket::LoginAccepted { session: SESSION, next: 1 }]);
            client.step(0, SoupClientInput::Received(&accepted));
        }
        let mut is_closed = false;
        for piece in &pieces {
            client.step(1, SoupClientInput::Received(piece));
            let effects = server.step(1, SoupServerInput::Received(piece), &log);
            prop_assert!(!is_closed || effects.is_empty());
            is_closed |= matches!(effects.last(), Some(SoupServerEffect::Close(_)));
            prop_assert!(!is_closed || server.deadline_ms().is_none());
        }
    }

    #[test]
    fn a_soup_machine_woken_at_its_deadline_has_a_later_one(events in prop::collection::vec(event(), 0..60)) {
        let mut world = World::new();
        for event in &events {
            world.meet(event);
            let server = world.server.as_ref().and_then(SoupServer::deadline_ms);
            let Some(deadline_ms) = server.into_iter().chain(world.client.deadline_ms()).min() else { continue };
            prop_assert!(deadline_ms > world.now_ms, "{deadline_ms} at {}", world.now_ms);
            if world.now_ms.is_multiple_of(3) {
                world.pass(deadline_ms - world.now_ms);
            }
        }
    }
}
