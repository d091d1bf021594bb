//! One side of a FIX session alone: logons, beats, gaps, exact resends, and what ends a connection.

use protocols::fix::journal::{FixJournal, FixRecord};
use protocols::fix::session::{ASKED_MOST, FixClose, FixEffect, FixInput, FixLimits, FixSession};
use protocols::fix::{
    FixBody, FixHeader, FixHeartbeat, FixLogon, FixLogout, FixMessage, FixResendRequest, FixSequenceReset,
    FixStatusRequest, FixTestRequest, FixText, FixTime, MESSAGE_MAX, frame::FixReader,
};

const LIMITS: FixLimits = FixLimits {
    message_max: MESSAGE_MAX,
    unsent_max: 1_000,
    queued_max: 2_000,
    heartbeat_s_max: 60,
    patience_ms: 10_000,
    cancel_after_ms: Some(30_000),
};

pub fn text(text: &str) -> FixText {
    FixText::new(text).expect("a text")
}

pub fn logon() -> FixLogon {
    let (encryption, heartbeat_s) = (0, 10);
    FixLogon { encryption, heartbeat_s, data: None, is_reset: None, username: None, password: None }
}

fn status(client_order: &str) -> FixBody {
    FixStatusRequest { order: None, client_order: text(client_order), symbol: text("W"), side: b'1' }.into()
}

/// A message of the participant.
fn message(number: u64, body: impl Into<FixBody>) -> FixMessage {
    let header = FixHeader {
        sender: text("ADA"),
        target: text("VENUE"),
        number,
        is_possible_duplicate: None,
        is_possible_resend: None,
        sent: FixTime::of_ms(0),
        first_sent: None,
    };
    FixMessage { header, body: body.into() }
}

fn duplicate(number: u64, body: impl Into<FixBody>) -> FixMessage {
    let mut message = message(number, body);
    (message.header.is_possible_duplicate, message.header.first_sent) = (Some(true), Some(FixTime::of_ms(0)));
    message
}

/// A venue's connection, its journal, and the time.
struct Venue {
    session: FixSession,
    journal: FixJournal,
    now_ms: u64,
}

impl Venue {
    fn new() -> Venue {
        Venue::with(FixJournal::new(text("VENUE"), text("ADA")))
    }

    fn with(journal: FixJournal) -> Venue {
        Venue { session: FixSession::accept(LIMITS, 0), journal, now_ms: 0 }
    }

    /// One whose participant is logged on; what was sent until then is forgotten.
    fn open() -> Venue {
        let mut venue = Venue::new();
        venue.hear(&[message(1, logon())]);
        venue.step(FixInput::Verdict(true));
        assert!(venue.session.is_open());
        venue
    }

    /// The effects of a step; the socket takes everything at once.
    fn step(&mut self, input: FixInput<'_>) -> Vec<FixEffect> {
        let effects = self.session.step(self.now_ms, input, &mut self.journal);
        let bytes: usize =
            effects.iter().map(|effect| if let FixEffect::Send(bytes) = effect { bytes.len() } else { 0 }).sum();
        if bytes > 0 {
            self.session.step(self.now_ms, FixInput::Sent(bytes), &mut self.journal);
        }
        effects
    }

    fn hear(&mut self, messages: &[FixMessage]) -> Vec<FixEffect> {
        let bytes: Vec<u8> = messages.iter().flat_map(FixMessage::encode).collect();
        self.step(FixInput::Received(&bytes))
    }

    fn wake(&mut self, now_ms: u64) -> Vec<FixEffect> {
        self.now_ms = now_ms;
        self.step(FixInput::Wake)
    }
}

/// The messages that are sent.
fn sent(effects: &[FixEffect]) -> Vec<FixMessage> {
    let sends =
        effects.iter().filter_map(|effect| if let FixEffect::Send(bytes) = effect { Some(bytes) } else { None });
    let decoded = |bytes: &Vec<u8>| {
        let (mut reader, mut stream) = (FixReader::new(MESSAGE_MAX), &bytes[..]);
        FixMessage::decode(reader.take(&mut stream).expect("a frame").expect("whole")).expect("a message")
    };
    sends.map(decoded).collect()
}

fn bodies(effects: &[FixEffect]) -> Vec<FixBody> {
    sent(effects).into_iter().map(|message| message.body).collect()
}

fn handed_on(effects: &[FixEffect]) -> Vec<u64> {
    let number = |effect: &FixEffect| match effect {
        FixEffect::Message(message) => Some(message.header.number),
        _ => None,
    };
    effects.iter().filter_map(number).collect()
}

fn closed(effects: &[FixEffect]) -> Option<&FixClose> {
    match effects.last() {
        Some(FixEffect::Close(reason)) => Some(reason),
        _ => None,
    }
}

fn resend(begin: u64, end: u64) -> FixBody {
    FixResendRequest { begin, end }.into()
}

fn fill(next: u64) -> FixBody {
    FixSequenceReset { is_gap_fill: Some(true), next }.into()
}

#[test]
fn a_fix_logon_is_answered_once_it_is_authorized_and_not_before() {
    let mut venue = Venue::new();
    let effects = venue.hear(&[message(1, logon()), message(2, status("a"))]);
    assert_eq!(effects, [FixEffect::Authorize(logon())]);
    let effects = venue.step(FixInput::Verdict(true));
    assert_eq!((bodies(&effects), handed_on(&effects)), (vec![logon().into()], vec![2]));
    assert!(effects.contains(&FixEffect::KeepOrders));
    assert_eq!((venue.journal.next(), venue.journal.expected()), (2, 3));
}

#[test]
fn a_stranger_uses_up_no_fix_number() {
    for verdict in [Some(false), None] {
        let mut venue = Venue::new();
        let mut stranger = message(1, logon());
        stranger.header.sender = text(if verdict.is_some() { "ADA" } else { "EVE" });
        let mut effects = venue.hear(&[stranger]);
        if verdict.is_some() {
            effects = venue.step(FixInput::Verdict(false));
        }
        assert!(matches!(effects[..], [FixEffect::Close(_)]), "{effects:?}");
        assert_eq!((venue.journal.next(), venue.journal.expected()), (1, 1));
    }
}

#[test]
fn a_first_fix_message_that_is_no_logon_or_none_in_time_ends_the_connection() {
    let effects = Venue::new().hear(&[message(1, status("a"))]);
    assert_eq!(effects, [FixEffect::Close(FixClose::OutOfPlace("H".into()))]);
    let mut venue = Venue::new();
    assert_eq!((venue.session.deadline_ms(), venue.wake(9_999)), (Some(10_000), vec![]));
    assert_eq!(venue.wake(10_000), [FixEffect::Close(FixClose::LogonLate)]);
}

#[test]
fn fix_numbers_go_on_after_a_restart_and_no_logon_resets_them() {
    let mut venue = Venue::open();
    venue.step(FixInput::Send(&status("b")));
    let mut records = [
        FixRecord::Sent(venue.journal.get(1).expect("kept").clone()),
        FixRecord::Sent(venue.journal.get(2).expect("kept").clone()),
        FixRecord::Expects(venue.journal.expected()),
    ];
    let mut journal = FixJournal::new(text("VENUE"), text("ADA"));
    assert!(records.iter().all(|record| journal.apply(record)));
    assert_eq!(journal, venue.journal);
    let mut again = Venue::with(journal.clone());
    again.hear(&[message(2, FixLogon { is_reset: Some(true), ..logon() })]);
    let effects = again.step(FixInput::Verdict(true));
    assert!(matches!(closed(&effects), Some(FixClose::Logon(_))), "{effects:?}");
    let mut again = Venue::with(journal);
    again.hear(&[message(2, logon())]);
    let effects = again.step(FixInput::Verdict(true));
    assert_eq!(sent(&effects)[0].header.number, 3);
    records.reverse();
    assert!(!FixJournal::new(text("A"), text("B")).apply(&records[1]), "a number is missing before it");
}

#[test]
fn a_fix_number_that_was_used_ends_the_session_unless_it_is_a_duplicate() {
    let mut venue = Venue::open();
    assert_eq!(handed_on(&venue.hear(&[message(2, status("a")), duplicate(2, status("a"))])), [2]);
    let effects = venue.hear(&[message(2, status("a"))]);
    assert_eq!(closed(&effects), Some(&FixClose::TooLow { needs: 3, has: 2 }));
    let said = Some(text("MsgSeqNum (34) is too low: expected 3, received 2"));
    assert_eq!(bodies(&effects), [FixLogout { text: said }.into()]);
    let at = effects.iter().position(|effect| *effect == FixEffect::CancelOrdersAt(30_000));
    assert!(at.is_some(), "{effects:?}");
}

#[test]
fn a_fix_gap_is_asked_for_once_and_closed_by_what_comes() {
    let mut venue = Venue::open();
    let effects = venue.hear(&[message(4, status("c")), message(5, status("d"))]);
    assert_eq!((bodies(&effects), handed_on(&effects)), (vec![resend(2, 0)], vec![]));
    let answer = [duplicate(2, fill(4)), duplicate(4, status("c")), duplicate(5, status("d")), message(6, status("e"))];
    let effects = venue.hear(&answer);
    assert_eq!((bodies(&effects), handed_on(&effects)), (vec![], vec![4, 5, 6]));
    let effects = venue.hear(&[message(8, status("g"))]);
    assert_eq!(bodies(&effects), [resend(7, 0)], "a later gap is another one");
}

#[test]
fn a_fix_side_that_never_sends_what_is_missing_is_left_after_three_requests() {
    let mut venue = Venue::open();
    let mut asked = bodies(&venue.hear(&[message(9, status("x"))])).len();
    for _ in 1..ASKED_MOST {
        // A hole in the answer.
        asked += bodies(&venue.hear(&[duplicate(9, status("x"))])).len();
    }
    assert_eq!(asked, ASKED_MOST as usize);
    let effects = venue.hear(&[duplicate(9, status("x"))]);
    assert_eq!(closed(&effects), Some(&FixClose::Gap(2)));
}

#[test]
fn an_unanswered_fix_resend_request_is_sent_again_in_time() {
    let mut venue = Venue::open();
    venue.hear(&[message(9, status("x"))]);
    let mut requests = 0;
    for beat in 1..20 {
        venue.now_ms = beat * 5_000;
        let effects = venue.hear(&[message(9 + beat, FixHeartbeat { test: None })]);
        requests += bodies(&effects).iter().filter(|body| **body == resend(2, 0)).count();
        if closed(&effects).is_some() {
            assert_eq!((closed(&effects), requests), (Some(&FixClose::Gap(2)), 2));
            return;
        }
    }
    panic!("the session goes on without what is missing");
}

#[test]
fn fix_messages_are_sent_again_as_they_were_and_those_of_a_connection_are_skipped() {
    let mut venue = Venue::open();
    venue.step(FixInput::Send(&status("b")));
    venue.wake(20_000);
    venue.hear(&[message(2, FixTestRequest { test: text("t") })]);
    venue.step(FixInput::Send(&status("c")));
    assert_eq!(venue.journal.next(), 6);
    venue.now_ms = 21_000;
    let effects = venue.hear(&[message(3, resend(1, 0))]);
    let again = sent(&effects);
    let numbers: Vec<u64> = again.iter().map(|message| message.header.number).collect();
    assert_eq!(numbers, [1, 2, 3, 5]);
    let all: Vec<FixBody> = again.iter().map(|message| message.body.clone()).collect();
    assert_eq!(all, [fill(2), status("b"), fill(5), status("c")]);
    for message in &again {
        assert_eq!(message.header.is_possible_duplicate, Some(true));
        assert_eq!(message.header.sent, FixTime::of_ms(21_000));
    }
    assert_eq!(again[1].header.first_sent, Some(FixTime::of_ms(0)));
    assert_eq!(again[3].header.first_sent, Some(FixTime::of_ms(20_000)));
    assert_eq!(venue.journal.next(), 6, "a resend uses up no number");
    let effects = venue.hear(&[message(4, resend(2, 2))]);
    assert_eq!(bodies(&effects), [status("b")]);
}

#[test]
fn a_fix_resend_request_that_comes_again_and_again_ends_the_session() {
    let mut venue = Venue::open();
    venue.step(FixInput::Send(&status("b")));
    for number in 2..2 + u64::from(ASKED_MOST) {
        assert!(closed(&venue.hear(&[message(number, resend(1, 0))])).is_none());
    }
    let effects = venue.hear(&[message(2 + u64::from(ASKED_MOST), resend(1, 0))]);
    assert_eq!(closed(&effects), Some(&FixClose::Loop(1)));
}

#[test]
fn a_fix_resend_of_what_is_forgotten_or_was_never_sent_is_refused() {
    let mut venue = Venue::open();
    (0..3).for_each(|_| drop(venue.step(FixInput::Send(&status("b")))));
    assert!(venue.journal.apply(&FixRecord::Forgets(3)));
    let mut other = Venue { session: venue.session.clone(), journal: venue.journal.clone(), now_ms: 0 };
    let unknown = |asked| FixClose::Unknown { asked, first: 3, last: 4 };
    assert_eq!(closed(&venue.hear(&[message(2, resend(2, 0))])), Some(&unknown(2)));
    assert_eq!(closed(&other.hear(&[message(2, resend(6, 0))])), Some(&unknown(6)));
}

#[test]
fn what_is_sent_during_a_fix_resend_comes_after_it_and_both_are_bounded() {
    let mut venue = Venue::open();
    (0..40).for_each(|_| drop(venue.step(FixInput::Send(&status("b")))));
    let request = message(2, resend(2, 0)).encode();
    let mut effects = venue.session.step(0, FixInput::Received(&request), &mut venue.journal);
    let first = sent(&effects).len();
    assert!((5..20).contains(&first), "{first}");
    effects.extend(venue.session.step(0, FixInput::Send(&status("live")), &mut venue.journal));
    while sent(&effects).len() < 41 {
        let before = effects.len();
        effects.extend(venue.session.step(0, FixInput::Sent(1_000), &mut venue.journal));
        assert!(effects.len() > before);
    }
    let numbers: Vec<u64> = sent(&effects).iter().map(|message| message.header.number).collect();
    assert_eq!(numbers, (2..=42).collect::<Vec<u64>>());
    let mut slow = None;
    for _ in 0..60 {
        slow =
            slow.or_else(|| closed(&venue.session.step(0, FixInput::Send(&status("b")), &mut venue.journal)).cloned());
    }
    assert!(matches!(slow, Some(FixClose::Slow(_))), "{slow:?}");
}

#[test]
fn fix_beats_in_time_and_gives_a_half_open_connection_up() {
    let mut venue = Venue::open();
    assert_eq!((venue.session.deadline_ms(), venue.wake(9_999)), (Some(10_000), vec![]));
    assert_eq!(bodies(&venue.wake(10_000)), [FixHeartbeat { test: None }.into()]);
    assert_eq!(bodies(&venue.wake(12_000)), [FixTestRequest { test: text("12000") }.into()]);
    // Single bytes of a message are no sign of life.
    for (second, byte) in (13..24).zip(message(2, status("a")).encode()) {
        venue.now_ms = second * 1_000;
        assert!(closed(&venue.step(FixInput::Received(&[byte]))).is_none(), "{second}");
    }
    let effects = venue.wake(24_000);
    assert_eq!(effects, [FixEffect::CancelOrdersAt(54_000), FixEffect::Close(FixClose::Silent(24_000))]);
    assert_eq!(venue.wake(99_000), []);
}

#[test]
fn a_fix_test_request_is_answered_and_an_answer_is_life() {
    let mut venue = Venue::open();
    let effects = venue.hear(&[message(2, FixTestRequest { test: text("x") })]);
    assert_eq!(bodies(&effects), [FixHeartbeat { test: Some(text("x")) }.into()]);
    venue.wake(12_000);
    venue.hear(&[message(3, FixHeartbeat { test: Some(text("12000")) })]);
    assert!(closed(&venue.wake(23_999)).is_none());
}

#[test]
fn fix_messages_that_break_a_rule_are_rejected_by_tag_and_count() {
    let mut venue = Venue::open();
    let bytes = String::from_utf8(message(2, status("a")).encode()).expect("ASCII").replace("\u{1}54=1", "\u{1}53=1");
    // The sum of the bytes is one less.
    let (start, sum) = bytes.split_at(bytes.len() - 4);
    let sum: u8 = sum[..3].parse().expect("digits");
    let bytes = format!("{start}{:03}\u{1}", sum.wrapping_sub(1));
    let effects = venue.step(FixInput::Received(bytes.as_bytes()));
    let [FixBody::Reject(reject)] = &bodies(&effects)[..] else { panic!("{effects:?}") };
    assert_eq!((reject.number, reject.tag, reject.reason), (2, Some(54), Some(1)));
    let unnamed =
        FixMessage { header: FixHeader { first_sent: None, ..duplicate(3, status("a")).header }, body: status("a") };
    let effects = venue.hear(&[unnamed]);
    assert!(matches!(&bodies(&effects)[..], [FixBody::Reject(reject)] if reject.tag == Some(122)), "{effects:?}");
    assert_eq!((handed_on(&effects), venue.journal.expected()), (vec![], 4));
}

#[test]
fn a_fix_kind_that_no_venue_takes_is_a_business_reject() {
    let mut venue = Venue::open();
    let quote = String::from_utf8(message(2, status("a")).encode()).expect("ASCII").replace("35=H", "35=R");
    let (start, sum) = quote.split_at(quote.len() - 4);
    let sum: u8 = sum[..3].parse().expect("digits");
    let quote = format!("{start}{:03}\u{1}", sum.wrapping_add(b'R' - b'H'));
    let effects = venue.step(FixInput::Received(quote.as_bytes()));
    let [FixBody::BusinessReject(reject)] = &bodies(&effects)[..] else { panic!("{effects:?}") };
    assert_eq!((reject.number, &reject.kind, reject.reason), (Some(2), &text("R"), 3));
}

#[test]
fn a_fix_sequence_goes_up_by_resets_and_never_down() {
    let mut venue = Venue::open();
    let reset = |next| FixSequenceReset { is_gap_fill: None, next };
    venue.hear(&[message(77, reset(50))]);
    assert_eq!(venue.journal.expected(), 50);
    let effects = venue.hear(&[message(50, reset(49))]);
    assert!(matches!(&bodies(&effects)[..], [FixBody::Reject(reject)] if reject.tag == Some(36)), "{effects:?}");
    let effects = venue.hear(&[message(50, fill(50))]);
    assert!(matches!(&bodies(&effects)[..], [FixBody::Reject(reject)] if reject.tag == Some(36)), "{effects:?}");
    assert_eq!(venue.journal.expected(), 51);
    let effects = venue.hear(&[message(51, reset(u64::MAX))]);
    assert!(matches!(closed(&effects), Some(FixClose::Invalid(_))), "{effects:?}");
}

#[test]
fn a_fix_logout_is_answered_and_cancels_at_once_what_a_loss_cancels_later() {
    let mut venue = Venue::open();
    venue.now_ms = 5_000;
    let effects = venue.hear(&[message(2, FixLogout { text: Some(text("lunch")) })]);
    assert_eq!(bodies(&effects), [FixLogout { text: None }.into()]);
    assert!(effects.contains(&FixEffect::CancelOrdersAt(5_000)));
    assert_eq!(closed(&effects), Some(&FixClose::Logout("lunch".into())));
    let mut venue = Venue::open();
    let lost = [FixEffect::CancelOrdersAt(30_000), FixEffect::Close(FixClose::Lost)];
    assert_eq!(venue.step(FixInput::Lost), lost);
}

#[test]
fn a_fix_side_that_leaves_waits_for_the_answer_and_not_for_ever() {
    let mut venue = Venue::open();
    assert_eq!(bodies(&venue.step(FixInput::Leave("night"))), [FixLogout { text: Some(text("night")) }.into()]);
    assert_eq!(venue.step(FixInput::Send(&status("late"))), [FixEffect::Unsent]);
    assert_eq!(handed_on(&venue.hear(&[message(2, status("on its way"))])), [2]);
    let mut other = Venue { session: venue.session.clone(), journal: venue.journal.clone(), now_ms: 0 };
    let effects = venue.hear(&[message(3, FixLogout { text: None })]);
    assert_eq!((bodies(&effects), closed(&effects)), (vec![], Some(&FixClose::Logout("without a reason".into()))));
    // Nobody asked to cancel: the orders have the time of a lost connection.
    assert!(effects.contains(&FixEffect::CancelOrdersAt(30_000)), "{effects:?}");
    let effects = other.wake(10_000);
    assert_eq!(closed(&effects), Some(&FixClose::LogoutLate));
    assert!(effects.contains(&FixEffect::CancelOrdersAt(40_000)), "{effects:?}");
}

#[test]
fn each_fix_number_is_recorded_before_it_is_sent() {
    let mut venue = Venue::open();
    let effects = venue.step(FixInput::Send(&status("b")));
    let [FixEffect::Record(FixRecord::Sent(record)), FixEffect::Send(_)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((record.number, sent(&effects)[0].header.number), (2, 2));
    let effects = venue.hear(&[message(2, status("a"))]);
    assert!(matches!(effects[..], [FixEffect::Record(FixRecord::Expects(3)), FixEffect::Message(_)]), "{effects:?}");
}
