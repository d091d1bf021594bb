//! A bridge of FIX that gathers, and its journal.

use std::collections::VecDeque;

use primitives::venue::MarketId;
use protocols::fix::journal::FixJournal;
use protocols::fix::session::{FixEffect, FixSession};
use protocols::fix::{FixBody, FixDecimal, FixHeader, FixLogon, FixMessage, FixNewOrder, FixReplaceRequest, FixTime};
use protocols::ouch::{OuchAccepted, OuchMessage, OuchOutbound, OuchRejected};
use protocols::soup::SoupSession;

use super::*;
use crate::bridge::GATHER_US_MAX;
use crate::bridge::translator::tests::{news, settings};
use crate::ouch::{OuchList, symbol_of};

const NOW_MS: u64 = 20_000 * 86_400_000 + 5;
const SESSION: SoupSession = *b"0FFK002000";
const MARKET: MarketId = 3;

fn text(text: &str) -> FixText {
    FixText::new(text).expect("a text without separators")
}

fn moment(after_us: u64) -> BridgeMoment {
    BridgeMoment { now_us: NOW_MS * 1_000 + after_us, news: Some(news(true)) }
}

fn opened(entries: &[FixEntry]) -> (FixMachine, Vec<FixEntry>) {
    let names = (text("WALRAS"), text("ADA"));
    FixMachine::open(&settings(GATHER_US_MAX), FixLimits::default(), names, 0, entries.to_vec(), NOW_MS)
        .expect("own names")
}

/// What the bridge's journal has of an order that the participant asked for.
fn asked(number: u64, body: FixBody) -> FixEntry {
    let header = FixHeader {
        sender: text("ADA"),
        target: text("WALRAS"),
        number,
        is_possible_duplicate: None,
        is_possible_resend: None,
        sent: FixTime::of_ms(NOW_MS),
        first_sent: None,
    };
    FixEntry::Asked(FixMessage { header, body }.encode())
}

fn order(name: &str) -> FixBody {
    FixNewOrder {
        client_order: text(name),
        account: None,
        instructions: None,
        symbol: text("M3"),
        side: b'1',
        time: FixTime::of_ms(NOW_MS),
        quantity: 5.into(),
        order_type: b'2',
        price: FixDecimal::new(77, 4),
        time_in_force: Some(b'0'),
        least_quantity: None,
        displayed_most: None,
        text: None,
    }
    .into()
}

/// A participant that is logged on, and what it has sent.
struct Participant {
    session: FixSession,
    journal: FixJournal,
}

impl Participant {
    fn logged_on(machine: &mut FixMachine, entries: &mut Vec<FixEntry>) -> Participant {
        let logon =
            FixLogon { encryption: 0, heartbeat_s: 30, data: None, is_reset: None, username: None, password: None };
        machine.connect(NOW_MS);
        let mut participant = Participant {
            session: FixSession::open(FixLimits::default(), logon, NOW_MS),
            journal: FixJournal::new(text("ADA"), text("WALRAS")),
        };
        entries.extend(participant.say(machine, 0, FixInput::Wake).entries);
        participant
    }

    /// What the participant's side does reaches the machine.
    fn say(&mut self, machine: &mut FixMachine, after_us: u64, input: FixInput<'_>) -> FixTurn {
        let mut all = FixTurn::default();
        let mut effects = VecDeque::from(self.session.step(NOW_MS, input, &mut self.journal));
        while let Some(effect) = effects.pop_front() {
            match effect {
                FixEffect::Send(bytes) => {
                    let turn = machine.step(&moment(after_us), FixInput::Received(&bytes));
                    all.entries.extend(turn.entries);
                    all.to_venue.extend(turn.to_venue);
                    let answer = FixInput::Received(&turn.to_participant);
                    effects.extend(self.session.step(NOW_MS, answer, &mut self.journal));
                }
                FixEffect::Authorize(_) => {
                    effects.extend(self.session.step(NOW_MS, FixInput::Verdict(true), &mut self.journal));
                }
                _ => {}
            }
        }
        all
    }
}

fn message(body: OuchOutbound) -> Vec<u8> {
    let mut bytes = Vec::new();
    OuchMessage::plain(body).encode(&mut bytes).expect("it has no options");
    bytes
}

fn accepted(user_ref: u32) -> Vec<u8> {
    message(OuchOutbound::Accepted(OuchAccepted {
        nanoseconds: 1,
        user_ref,
        side: b'B',
        quantity: 5,
        symbol: symbol_of(MARKET),
        price: 77,
        time_in_force: b'0',
        display: b'Y',
        order: 50 + u64::from(user_ref),
        capacity: b'P',
        sweep: b'N',
        cross: b'N',
        state: b'L',
        client_order: [b' '; 14],
    }))
}

fn rejected(user_ref: u32) -> Vec<u8> {
    message(OuchOutbound::Rejected(OuchRejected { nanoseconds: 1, user_ref, reason: 25, client_order: [b' '; 14] }))
}

#[test]
fn a_bridge_of_fix_repeats_its_list_until_each_order_is_answered() {
    let (mut machine, mut entries) = opened(&[]);
    entries.extend(machine.opened(&moment(0), SESSION).entries);
    let mut participant = Participant::logged_on(&mut machine, &mut entries);
    for (at, name) in ["a", "b", "c"].into_iter().enumerate() {
        let turn = participant.say(&mut machine, at as u64, FixInput::Send(&order(name)));
        assert!(turn.to_venue.is_empty() && !turn.entries.is_empty(), "it waits, and is in the journal");
        entries.extend(turn.entries);
    }
    let waiting = entries.clone();
    assert_eq!(machine.gathered_us(), Some(NOW_MS * 1_000 + GATHER_US_MAX));
    let turn = machine.step(&moment(GATHER_US_MAX), FixInput::Wake);
    let [list] = &turn.to_venue[..] else { panic!("one message for all") };
    assert_eq!(OuchList::decode(list).map(|list| list.messages().count()), Some(3));
    entries.extend(turn.entries);

    // It is killed before the list leaves, and after some answers: the same bytes follow.
    for answers in [&[][..], &[accepted(2)], &[accepted(1), rejected(3)]] {
        let (mut again, more) = opened(&entries);
        assert_eq!((more, again.position().0), (Vec::new(), SESSION));
        let mut heard = entries.clone();
        for answer in answers {
            heard.extend(again.hear(&moment(0), again.position().1, answer).entries);
        }
        for mut again in [again, opened(&heard).0] {
            assert_eq!(again.opened(&moment(0), SESSION).to_venue, std::slice::from_ref(list));
        }
    }
    let (mut again, _) = opened(&entries);
    for answer in [accepted(1), rejected(2), accepted(3)] {
        again.hear(&moment(0), again.position().1, &answer);
    }
    assert!(again.opened(&moment(0), SESSION).to_venue.is_empty());

    // Killed while they waited: nobody signed them, and each is refused once.
    let (mut again, refused) = opened(&waiting);
    let count = |entries: &[FixEntry]| entries.iter().filter(|entry| matches!(entry, FixEntry::Heard(0, _))).count();
    assert_eq!(count(&refused), 3);
    assert!(again.opened(&moment(0), SESSION).to_venue.is_empty());
    assert!(opened(&[waiting, refused].concat()).1.is_empty());
}

#[test]
fn an_order_from_before_a_restart_can_be_replaced() {
    let (mut machine, mut entries) = opened(&[]);
    entries.extend(machine.opened(&moment(0), SESSION).entries);
    entries.push(asked(2, order("a")));
    entries.push(FixEntry::Signed(1, b"signed".to_vec()));
    let (mut again, _) = opened(&entries);
    entries.extend(again.hear(&moment(0), 1, &accepted(1)).entries);
    let mut participant = Participant::logged_on(&mut again, &mut entries);
    let FixBody::NewOrder(first) = order("a") else { panic!("an order") };
    let replace = FixReplaceRequest {
        original: text("a"),
        client_order: text("b"),
        order: None,
        instructions: None,
        symbol: first.symbol,
        side: first.side,
        time: first.time,
        quantity: 7.into(),
        order_type: b'2',
        price: first.price,
        time_in_force: Some(b'0'),
    };
    participant.say(&mut again, 0, FixInput::Send(&replace.into()));
    let turn = again.step(&moment(GATHER_US_MAX), FixInput::Wake);
    assert_eq!(turn.to_venue.len(), 1, "it is signed");
}
