//! Both sides of a SoupBinTCP session, over a link that cuts the stream anywhere and loses connections.

use std::collections::VecDeque;

use proptest::prelude::*;
use protocols::soup::client::{SoupClient, SoupClientEffect, SoupClientInput, SoupUnsent};
use protocols::soup::server::{SoupLog, SoupServer, SoupServerEffect, SoupServerInput};
use protocols::soup::{ANY_SESSION, SoupClose, SoupError, SoupLimits, SoupLogin, SoupPacket, SoupReject, TIMEOUT_MS};

const SESSION: [u8; 10] = *b"    DAY001";
const LIMITS: SoupLimits = SoupLimits { packet_max: 60, unsent_max: 80, timeout_ms: TIMEOUT_MS };
/// The longest packet of the tests, with its length.
const PACKET_MAX: usize = 62;

fn login(next: u64) -> SoupLogin {
    let (username, password) = (*b"ADA   ", *b"secret    ");
    SoupLogin { username, password, session: ANY_SESSION, next, timeout_ms: None }
}

fn encoded(packets: &[SoupPacket<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    packets.iter().for_each(|packet| packet.encode(&mut bytes).expect("encodes"));
    bytes
}

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

/// A server's connection with a client that is logged in, at time zero.
fn open_server(log: &SoupLog, login: SoupLogin) -> SoupServer {
    let mut server = SoupServer::new(LIMITS, 0);
    let request = encoded(&[SoupPacket::LoginRequest(login)]);
    assert_eq!(server.step(0, SoupServerInput::Received(&request), log), [SoupServerEffect::Authorize(login)]);
    let effects = server.step(0, SoupServerInput::Verdict(true), log);
    assert!(matches!(&effects[0], SoupServerEffect::Send(bytes) if bytes[2] == b'A'), "{effects:?}");
    server.step(0, SoupServerInput::Sent(usize::MAX), log);
    server
}

#[test]
fn a_soup_server_beats_each_second_and_gives_a_silent_client_up_after_fifteen() {
    let log = SoupLog::new(SESSION);
    let mut server = open_server(&log, login(1));
    let beat = SoupServerEffect::Send(encoded(&[SoupPacket::ServerHeartbeat]));
    for second in 1..15 {
        assert_eq!(server.step(second * 1_000 - 1, SoupServerInput::Wake, &log), []);
        assert_eq!(server.step(second * 1_000, SoupServerInput::Wake, &log), std::slice::from_ref(&beat));
        assert_eq!(server.step(second * 1_000, SoupServerInput::Sent(3), &log), []);
    }
    let silent = [SoupServerEffect::Close(SoupClose::Silent(15_000))];
    assert_eq!(server.step(15_000, SoupServerInput::Wake, &log), silent);
    assert_eq!(server.step(16_000, SoupServerInput::Received(b"\0\x01R"), &log), []);
}

#[test]
fn a_byte_of_a_soup_packet_now_and_then_is_silence() {
    let log = SoupLog::new(SESSION);
    let mut server = open_server(&log, login(1));
    for (second, byte) in (1..15).zip(b"\0\x14Uaaaaaaaaaaaaa") {
        server.step(second * 1_000, SoupServerInput::Received(&[*byte]), &log);
        server.step(second * 1_000, SoupServerInput::Sent(3), &log);
    }
    let effects = server.step(15_000, SoupServerInput::Received(b"a"), &log);
    assert_eq!(effects, [SoupServerEffect::Close(SoupClose::Silent(15_000))]);
}

#[test]
fn a_soup_client_without_a_login_is_cut_in_time() {
    let log = SoupLog::new(SESSION);
    let mut server = SoupServer::new(LIMITS, 0);
    assert_eq!(server.step(14_999, SoupServerInput::Received(b"\0\x02+x"), &log), []);
    let late = [SoupServerEffect::Close(SoupClose::LoginLate(15_000))];
    assert_eq!(server.step(15_000, SoupServerInput::Received(b"\0\x02+x"), &log), late);
}

#[test]
fn a_soup_login_may_ask_for_a_shorter_timeout_and_not_for_a_longer_one() {
    let log = SoupLog::new(SESSION);
    for (asked_ms, timeout_ms) in [(5_000, 5_000), (0, 2_000), (99_999, 15_000)] {
        let mut server = open_server(&log, SoupLogin { timeout_ms: Some(asked_ms), ..login(1) });
        let is_closed = |effects: &[SoupServerEffect]| matches!(effects, [SoupServerEffect::Close(_)]);
        assert!(!is_closed(&server.step(timeout_ms - 1, SoupServerInput::Wake, &log)), "{asked_ms}");
        assert!(is_closed(&server.step(timeout_ms, SoupServerInput::Wake, &log)), "{asked_ms}");
    }
}

#[test]
fn a_soup_login_is_served_from_a_number_that_is_kept_or_refused() {
    let mut log = SoupLog::new(SESSION);
    (0..5).for_each(|byte| assert_eq!(log.publish(vec![byte]), Ok(u64::from(byte) + 1)));
    log.forget_before(3);
    for (next, start) in [(0, Some(5)), (2, None), (3, Some(3)), (6, Some(6)), (7, None)] {
        let mut server = SoupServer::new(LIMITS, 0);
        let request = encoded(&[SoupPacket::LoginRequest(login(next))]);
        server.step(0, SoupServerInput::Received(&request), &log);
        let effects = server.step(0, SoupServerInput::Verdict(true), &log);
        let answer = match start {
            Some(next) => SoupPacket::LoginAccepted { session: SESSION, next },
            None => SoupPacket::LoginRejected(SoupReject::NoSession),
        };
        assert_eq!(effects[0], SoupServerEffect::Send(encoded(&[answer])), "{next}");
        let refused = SoupServerEffect::Close(SoupClose::Refused(SoupReject::NoSession));
        assert_eq!(effects.contains(&refused), start.is_none(), "{next}");
    }
}

#[test]
fn a_soup_login_of_another_session_or_without_a_right_is_refused() {
    let log = SoupLog::new(SESSION);
    let padded = SoupLogin { session: *b"DAY001    ", ..login(1) };
    open_server(&log, padded);
    let other = SoupLogin { session: *b"    DAY002", ..login(1) };
    for (login, verdict, reject) in [(other, true, SoupReject::NoSession), (login(1), false, SoupReject::NotAuthorized)]
    {
        let mut server = SoupServer::new(LIMITS, 0);
        server.step(0, SoupServerInput::Received(&encoded(&[SoupPacket::LoginRequest(login)])), &log);
        let effects = server.step(0, SoupServerInput::Verdict(verdict), &log);
        let sent = SoupServerEffect::Send(encoded(&[SoupPacket::LoginRejected(reject)]));
        assert_eq!(effects, [sent, SoupServerEffect::Close(SoupClose::Refused(reject))]);
    }
}

#[test]
fn a_soup_client_that_does_not_read_is_sent_a_bounded_number_of_bytes_and_then_cut() {
    let mut log = SoupLog::new(SESSION);
    let mut server = open_server(&log, login(1));
    (0..100).for_each(|_| assert!(log.publish(vec![7; 17]).is_ok()));
    let effects = server.step(1, SoupServerInput::Wake, &log);
    let four = encoded(&[SoupPacket::Sequenced(&[7; 17]); 4]);
    assert_eq!(effects, [SoupServerEffect::Send(four)]);
    assert_eq!(server.step(2, SoupServerInput::Wake, &log), []);
    assert_eq!(server.step(15_000, SoupServerInput::Received(b"\0\x01R"), &log), []);
    let stalled = SoupClose::Stalled { ms: 15_000, unsent: 80 };
    assert_eq!(server.step(15_001, SoupServerInput::Wake, &log), [SoupServerEffect::Close(stalled)]);
}

#[test]
fn the_last_messages_of_an_ended_soup_session_are_sent_before_its_end() {
    let mut log = SoupLog::new(SESSION);
    let mut server = open_server(&log, login(1));
    (0..6).for_each(|_| assert!(log.publish(vec![7; 17]).is_ok()));
    log.end();
    let message = SoupPacket::Sequenced(&[7; 17]);
    let four = SoupServerEffect::Send(encoded(&[message; 4]));
    assert_eq!(server.step(1, SoupServerInput::Wake, &log), [four]);
    let rest = SoupServerEffect::Send(encoded(&[message, message, SoupPacket::EndOfSession]));
    let effects = server.step(2, SoupServerInput::Sent(80), &log);
    assert_eq!(effects, [rest, SoupServerEffect::Close(SoupClose::Ended)]);
}

#[test]
fn a_soup_deadline_is_the_next_beat_or_the_end_of_patience() {
    let mut log = SoupLog::new(SESSION);
    let mut server = open_server(&log, login(1));
    assert_eq!(server.deadline_ms(), Some(1_000));
    assert!(log.publish(vec![]).is_ok());
    server.step(400, SoupServerInput::Wake, &log);
    server.step(900, SoupServerInput::Received(b"\0\x01R"), &log);
    assert_eq!(server.deadline_ms(), Some(15_400), "the socket has taken nothing since 400");
    server.step(950, SoupServerInput::Sent(3), &log);
    assert_eq!(server.deadline_ms(), Some(1_400));
}

#[test]
fn a_soup_server_that_was_not_woken_does_not_take_its_own_silence_for_a_stall() {
    let log = SoupLog::new(SESSION);
    let mut server = open_server(&log, login(1));
    let effects = server.step(20_000, SoupServerInput::Received(b"\0\x01R"), &log);
    assert_eq!(effects, [SoupServerEffect::Send(encoded(&[SoupPacket::ServerHeartbeat]))]);
}

#[test]
fn a_soup_verdict_that_takes_long_is_not_the_silence_of_the_client() {
    let log = SoupLog::new(SESSION);
    let mut server = SoupServer::new(LIMITS, 0);
    server.step(0, SoupServerInput::Received(&encoded(&[SoupPacket::LoginRequest(login(1))])), &log);
    assert_eq!((server.step(16_000, SoupServerInput::Wake, &log), server.deadline_ms()), (vec![], None));
    let accepted = encoded(&[SoupPacket::LoginAccepted { session: SESSION, next: 1 }]);
    let effects = server.step(17_000, SoupServerInput::Verdict(true), &log);
    assert_eq!(effects, [SoupServerEffect::Send(accepted)]);
    assert_eq!(server.deadline_ms(), Some(32_000));
}

#[test]
fn a_soup_client_behind_what_is_kept_is_cut_with_the_number() {
    let mut log = SoupLog::new(SESSION);
    let mut server = open_server(&log, login(1));
    (0..3).for_each(|_| assert!(log.publish(vec![]).is_ok()));
    log.forget_before(3);
    let behind = SoupClose::Behind { next: 1, first: 3 };
    assert_eq!(server.step(1, SoupServerInput::Wake, &log), [SoupServerEffect::Close(behind)]);
}

#[test]
fn soup_packets_out_of_place_close_the_connection() {
    let log = SoupLog::new(SESSION);
    let out_of_place = |effects: &[SoupServerEffect], kind| {
        let [SoupServerEffect::Close(SoupClose::Invalid(error))] = effects else { return false };
        matches!(error, SoupError::OutOfPlace { kind: at, .. } if *at == kind)
    };
    for packet in [SoupPacket::Unsequenced(b"x"), SoupPacket::ClientHeartbeat, SoupPacket::Logout] {
        let mut server = SoupServer::new(LIMITS, 0);
        let effects = server.step(0, SoupServerInput::Received(&encoded(&[packet])), &log);
        assert!(out_of_place(&effects, packet.kind()), "{effects:?}");
    }
    for packet in [SoupPacket::LoginRequest(login(1)), SoupPacket::Sequenced(b"x"), SoupPacket::ServerHeartbeat] {
        let mut server = open_server(&log, login(1));
        let effects = server.step(0, SoupServerInput::Received(&encoded(&[packet])), &log);
        assert!(out_of_place(&effects, packet.kind()), "{effects:?}");
    }
}

#[test]
fn a_soup_logout_and_a_message_before_it_are_heard() {
    let log = SoupLog::new(SESSION);
    let mut server = open_server(&log, login(1));
    let bytes = encoded(&[SoupPacket::Unsequenced(b"order"), SoupPacket::Logout, SoupPacket::Unsequenced(b"late")]);
    let effects = server.step(1, SoupServerInput::Received(&bytes), &log);
    let message = SoupServerEffect::Message(b"order".to_vec());
    assert_eq!(effects, [message, SoupServerEffect::Close(SoupClose::Logout)]);
}

#[test]
fn a_soup_client_beats_once_it_is_accepted_and_gives_a_silent_server_up() {
    let mut client = SoupClient::new(login(1), LIMITS);
    client.step(0, SoupClientInput::Connected);
    client.step(0, SoupClientInput::Sent(49));
    assert_eq!(client.step(5_000, SoupClientInput::Wake), []);
    let accepted = encoded(&[SoupPacket::LoginAccepted { session: SESSION, next: 1 }]);
    client.step(6_000, SoupClientInput::Received(&accepted));
    client.step(6_000, SoupClientInput::Sent(3));
    let beat = SoupClientEffect::Send(encoded(&[SoupPacket::ClientHeartbeat]));
    assert_eq!((client.deadline_ms(), client.step(6_999, SoupClientInput::Wake)), (Some(7_000), vec![]));
    assert_eq!(client.step(7_000, SoupClientInput::Wake), [beat]);
    client.step(20_999, SoupClientInput::Sent(3));
    let silent = [SoupClientEffect::Close(SoupClose::Silent(15_000))];
    assert_eq!(client.step(21_000, SoupClientInput::Wake), silent);
    assert_eq!(client.deadline_ms(), None);
}

#[test]
fn a_soup_client_says_which_message_it_does_not_send() {
    let mut client = SoupClient::new(login(1), LIMITS);
    let unsent = |reason| vec![SoupClientEffect::Unsent(reason)];
    assert_eq!(client.step(0, SoupClientInput::Send(b"x")), unsent(SoupUnsent::NotOpen));
    client.step(0, SoupClientInput::Connected);
    assert_eq!(client.step(0, SoupClientInput::Send(b"x")), unsent(SoupUnsent::NotOpen));
    let accepted = encoded(&[SoupPacket::LoginAccepted { session: SESSION, next: 1 }]);
    client.step(0, SoupClientInput::Received(&accepted));
    client.step(0, SoupClientInput::Sent(49));
    for _ in 0..4 {
        let sent = vec![SoupClientEffect::Send(encoded(&[SoupPacket::Unsequenced(&[1; 17])]))];
        assert_eq!(client.step(0, SoupClientInput::Send(&[1; 17])), sent);
    }
    assert_eq!(client.step(0, SoupClientInput::Send(b"x")), unsent(SoupUnsent::Full));
    client.step(0, SoupClientInput::Sent(80));
    let long = client.step(0, SoupClientInput::Send(&[0; 65_535]));
    assert_eq!(long, unsent(SoupUnsent::TooLong(SoupError::TooLong(65_535))));
}

#[test]
fn a_soup_client_refuses_an_answer_for_another_number_or_session() {
    let mut client = SoupClient::new(SoupLogin { session: SESSION, ..login(4) }, LIMITS);
    for (session, next) in [(SESSION, 5), (SESSION, 3), (*b"    DAY002", 4)] {
        client.step(0, SoupClientInput::Connected);
        let bytes = encoded(&[SoupPacket::LoginAccepted { session, next }]);
        let mismatch = SoupClose::Mismatch { needs: 4, has: next };
        assert_eq!(client.step(0, SoupClientInput::Received(&bytes)), [SoupClientEffect::Close(mismatch)]);
        assert_eq!((client.session(), client.next()), (SESSION, 4));
    }
}

#[test]
fn a_soup_client_of_the_latest_message_takes_its_number_from_the_answer() {
    let mut client = SoupClient::new(login(0), LIMITS);
    client.step(0, SoupClientInput::Connected);
    let bytes = encoded(&[
        SoupPacket::LoginAccepted { session: SESSION, next: 9 },
        SoupPacket::Sequenced(b"a"),
        SoupPacket::EndOfSession,
    ]);
    let effects = client.step(0, SoupClientInput::Received(&bytes));
    let message = SoupClientEffect::Message { number: 9, message: b"a".to_vec() };
    assert_eq!(effects[1..], [message, SoupClientEffect::Close(SoupClose::Ended)]);
    assert!(client.is_over());
    assert_eq!(client.step(1, SoupClientInput::Connected), [SoupClientEffect::Close(SoupClose::Ended)]);
}

#[test]
fn a_soup_log_takes_nothing_after_its_end() {
    let mut log = SoupLog::new(SESSION);
    assert_eq!(log.publish(vec![0; 65_535]), Err(SoupError::TooLong(65_535)));
    log.end();
    assert!(matches!(log.publish(vec![]), Err(SoupError::OutOfPlace { kind: b'S', .. })));
    assert_eq!((log.first(), log.next(), log.get(1)), (1, 1, None));
}
