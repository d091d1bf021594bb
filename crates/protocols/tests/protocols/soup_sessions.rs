//! Each side of a SoupBinTCP session alone: beats, patience, logins, bounds, and what is out of place.

use protocols::soup::client::{SoupClient, SoupClientEffect, SoupClientInput, SoupUnsent};
use protocols::soup::server::{SoupLog, SoupServer, SoupServerEffect, SoupServerInput};
use protocols::soup::{ANY_SESSION, SoupClose, SoupError, SoupLimits, SoupLogin, SoupPacket, SoupReject, TIMEOUT_MS};

const SESSION: [u8; 10] = *b"    DAY001";
const LIMITS: SoupLimits = SoupLimits { packet_max: 60, unsent_max: 80, timeout_ms: TIMEOUT_MS };

pub fn login(next: u64) -> SoupLogin {
    let (username, password) = (*b"ADA   ", *b"secret    ");
    SoupLogin { username, password, session: ANY_SESSION, next, timeout_ms: None }
}

pub fn encoded(packets: &[SoupPacket<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    packets.iter().for_each(|packet| packet.encode(&mut bytes).expect("encodes"));
    bytes
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
