//! Two sides of a FIX session with journals, over a link that keeps order, cuts the stream anywhere, garbles bytes and
//! loses connections, while both sides crash and restart: every message arrives once and in order.

use std::collections::VecDeque;

use proptest::prelude::*;
use protocols::fix::journal::FixJournal;
use protocols::fix::session::{FixClose, FixEffect, FixInput, FixLimits, FixSession};
use protocols::fix::{FixBody, FixStatusRequest, MESSAGE_MAX};

use crate::fix_sessions::{logon, text};

const LIMITS: FixLimits = FixLimits {
    message_max: MESSAGE_MAX,
    unsent_max: 600,
    queued_max: 100_000,
    heartbeat_s_max: 60,
    patience_ms: 10_000,
    cancel_after_ms: Some(30_000),
};

/// A message that says its number.
fn numbered(number: usize) -> FixBody {
    let client_order = text(&number.to_string());
    FixStatusRequest { order: None, client_order, symbol: text("W"), side: b'1' }.into()
}

/// What one side keeps: the journal as it is on disk, what it wants to send, and what it has taken.
struct Side {
    durable: FixJournal,
    session: Option<FixSession>,
    /// How many messages it was told to send; those that found no session are given again after the next logon.
    sent: usize,
    wanted: usize,
    got: Vec<String>,
    orders_end_ms: Option<u64>,
}

struct World {
    now_ms: u64,
    sides: [Side; 2],
    /// Bytes on their way from each side.
    wires: [VecDeque<u8>; 2],
    closed: Vec<FixClose>,
    messages: usize,
    /// The side that crashes after so many more of its effects.
    crash: Option<(usize, usize)>,
    /// Whether a byte of this connection was changed: one always shows in a checksum, two need not.
    is_garbled: bool,
}

impl World {
    fn new() -> World {
        let side = |one: &str, other: &str| Side {
            durable: FixJournal::new(text(one), text(other)),
            session: None,
            sent: 0,
            wanted: 0,
            got: Vec::new(),
            orders_end_ms: None,
        };
        let sides = [side("ADA", "VENUE"), side("VENUE", "ADA")];
        World {
            now_ms: 0,
            sides,
            wires: Default::default(),
            closed: Vec::new(),
            messages: 0,
            crash: None,
            is_garbled: false,
        }
    }

    fn connect(&mut self) {
        if self.sides.iter().all(|side| side.session.is_none()) {
            self.is_garbled = false;
            self.sides[0].session = Some(FixSession::open(LIMITS, logon(), self.now_ms));
            self.sides[1].session = Some(FixSession::accept(LIMITS, self.now_ms));
            self.step(0, FixInput::Wake);
        }
    }

    /// Loses the connection and the bytes on it.
    fn cut(&mut self) {
        self.wires = Default::default();
        for side in 0..2 {
            self.step(side, FixInput::Lost);
            self.sides[side].session = None;
        }
    }

    /// A side loses all but its disk; what it has sent is what its journal has.
    fn crash(&mut self, at: usize) {
        let side = &mut self.sides[at];
        side.session = None;
        let is_kept = |number: &u64| side.durable.get(*number).is_some_and(|sent| sent.body.is_some());
        side.sent = (1..side.durable.next()).filter(is_kept).count();
        self.cut();
    }

    fn step(&mut self, at: usize, input: FixInput<'_>) {
        let side = &mut self.sides[at];
        let Some(session) = &mut side.session else { return };
        // The machine works on a copy, and each record is made durable when its turn comes.
        let mut journal = side.durable.clone();
        let effects = session.step(self.now_ms, input, &mut journal);
        for effect in effects {
            // A message is durable together with the record that it has come.
            if !matches!(effect, FixEffect::Message(_)) && self.is_crashing(at) {
                return self.crash(at);
            }
            let side = &mut self.sides[at];
            match effect {
                FixEffect::Record(record) => assert!(side.durable.apply(&record), "{record:?}"),
                FixEffect::Send(bytes) => {
                    self.messages += 1;
                    self.wires[at].extend(bytes);
                }
                FixEffect::Authorize(_) => return self.step(at, FixInput::Verdict(true)),
                FixEffect::Message(message) => {
                    let FixBody::StatusRequest(status) = message.body else { panic!("{message:?}") };
                    side.got.push(status.client_order.to_string());
                }
                FixEffect::Unsent => side.sent -= 1,
                FixEffect::KeepOrders => side.orders_end_ms = None,
                FixEffect::CancelOrdersAt(ms) => side.orders_end_ms = Some(ms),
                FixEffect::Close(reason) => {
                    self.closed.push(reason);
                    side.session = None;
                }
            }
        }
        assert_eq!(journal, self.sides[at].durable, "what is not recorded has not happened");
    }

    /// Whether a side crashes before its next effect.
    fn is_crashing(&mut self, at: usize) -> bool {
        match &mut self.crash {
            Some((side, left)) if *side == at && *left > 0 => *left -= 1,
            Some((side, _)) if *side == at => {
                self.crash = None;
                return true;
            }
            _ => {}
        }
        false
    }

    fn send(&mut self, at: usize) {
        self.sides[at].wanted += 1;
        self.offer(at);
    }

    /// Gives a side the messages that it has not sent yet.
    fn offer(&mut self, at: usize) {
        while self.sides[at].session.as_ref().is_some_and(FixSession::is_open)
            && self.sides[at].sent < self.sides[at].wanted
        {
            self.sides[at].sent += 1;
            let body = numbered(self.sides[at].sent);
            self.step(at, FixInput::Send(&body));
        }
    }

    /// Carries at most `count` bytes from a side to the other, and then the end of a connection that it closed.
    fn carry(&mut self, from: usize, count: usize) {
        let bytes: Vec<u8> = self.wires[from].drain(..count.min(self.wires[from].len())).collect();
        self.step(from, FixInput::Sent(bytes.len()));
        self.step(1 - from, FixInput::Received(&bytes));
        let is_half = self.sides.iter().filter(|side| side.session.is_none()).count() == 1;
        if is_half && self.wires.iter().all(VecDeque::is_empty) {
            self.cut();
        }
        (0..2).for_each(|at| self.offer(at));
    }

    fn garble(&mut self, from: usize, at: usize) {
        let length = self.wires[from].len();
        if length > 0 && !std::mem::replace(&mut self.is_garbled, true) {
            self.wires[from][at % length] ^= 0x20;
        }
    }

    fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        (0..2).for_each(|at| self.step(at, FixInput::Wake));
    }

    /// Lets a link that works carry everything.
    fn settle(&mut self) {
        for _ in 0..400 {
            self.connect();
            (0..2).for_each(|from| self.carry(from, usize::MAX));
            self.pass(500);
        }
    }
}

fn all(count: usize) -> Vec<String> {
    (1..=count).map(|number| number.to_string()).collect()
}

#[test]
fn fix_sides_that_both_miss_messages_find_them_without_a_loop() {
    let mut world = World::new();
    world.settle();
    // Both send, and the connection is lost with everything on it.
    (0..5).for_each(|_| (0..2).for_each(|at| world.send(at)));
    world.cut();
    assert!(world.sides[1].orders_end_ms.is_some());
    let before = world.messages;
    for _ in 0..10 {
        world.connect();
        (0..2).for_each(|from| world.carry(from, usize::MAX));
    }
    assert_eq!([&world.sides[0].got, &world.sides[1].got], [&all(5), &all(5)]);
    // Two logons, two requests, five messages each way, and few gap fills.
    assert!(world.messages - before <= 24, "{} messages", world.messages - before);
    assert_eq!(world.sides[1].orders_end_ms, None);
}

#[test]
fn a_garbled_fix_message_is_asked_for_again() {
    let mut world = World::new();
    world.settle();
    world.send(1);
    let length = world.wires[1].len();
    world.garble(1, length - 20);
    world.carry(1, usize::MAX);
    assert_eq!(world.sides[0].got, all(0));
    world.send(1);
    (0..6).for_each(|_| (0..2).for_each(|from| world.carry(from, usize::MAX)));
    assert_eq!((world.sides[0].got.clone(), world.closed.len()), (all(2), 0));
}

proptest! {
    #[test]
    fn every_fix_message_arrives_once_and_in_order(
        events in prop::collection::vec((0..10u8, any::<bool>(), 0usize..400), 1..120),
    ) {
        let mut world = World::new();
        for (event, is_venue, size) in events {
            let at = usize::from(is_venue);
            match event {
                0 | 1 => world.send(at),
                2 => world.connect(),
                3 if size < 100 => world.cut(),
                4 if size < 100 => world.crash(at),
                5 if size < 60 => world.garble(at, size),
                6 => world.pass(size as u64 * 100),
                7 => world.carry(at, 1),
                8 => world.crash = Some((at, size % 12)),
                _ => world.carry(at, size),
            }
        }
        world.crash = None;
        world.settle();
        for at in 0..2 {
            prop_assert_eq!(&world.sides[1 - at].got, &all(world.sides[at].wanted));
        }
        for reason in &world.closed {
            let is_expected = matches!(
                reason,
                FixClose::Lost | FixClose::LogonLate | FixClose::Silent(_) | FixClose::Slow(_) | FixClose::Invalid(_)
                    | FixClose::Logout(_) | FixClose::Gap(_) | FixClose::Names { .. } | FixClose::OutOfPlace(_)
            );
            prop_assert!(is_expected, "{reason:?}");
        }
        // In a session that works, only beats are sent: nobody asks for anything for ever.
        let before = world.messages;
        (0..40).for_each(|_| {
            (0..2).for_each(|from| world.carry(from, usize::MAX));
            world.pass(500);
        });
        prop_assert!(world.messages - before <= 6, "{} messages in 20 s", world.messages - before);
    }
}
