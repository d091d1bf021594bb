//! The state of a bridge of FIX, without socket and disk: the session, orders under both numbers, and what waits for
//! the venue.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use protocols::fix::frame::FixReader;
use protocols::fix::journal::{FixJournal, FixRecord, FixSent};
use protocols::fix::reports::{FixOrders, FixRouted};
use protocols::fix::session::{FixClose, FixEffect, FixInput, FixLimits, FixSession};
use protocols::fix::{FixBody, FixBusinessReject, FixMessage, FixText, FixTime, MESSAGE_MAX};
use protocols::ouch::{OuchCancel, OuchInbound, OuchMessage, OuchOption, OuchOutbound};
use protocols::soup::{ANY_SESSION, SoupSession};

use super::super::gather::{Gather, Passed};
use super::super::translator::rejection;
use super::super::{BridgeMoment, BridgeSettings};
use super::journal::FixEntry;
use crate::codes::NOT_TAKEN;
use crate::ouch::{OuchRefusal, SETTLED, words_of};

/// Messages that are kept for a participant that missed them.
const MESSAGES: u64 = 65_536;

/// What a turn came to. The entries are made durable before the rest leaves.
#[derive(Debug, Default)]
pub struct FixTurn {
    /// For the journal.
    pub entries: Vec<FixEntry>,
    /// Bytes for the participant.
    pub to_participant: Vec<u8>,
    /// Messages for the venue.
    pub to_venue: Vec<Vec<u8>>,
    /// The participant's connection ends, after the bytes.
    pub close: Option<FixClose>,
    /// A session of the venue begins: the journal may be replaced by [`FixMachine::entries`].
    pub begins_session: bool,
}

/// The state of a bridge of FIX.
pub struct FixMachine {
    limits: FixLimits,
    gather: Gather,
    names: (FixText, FixText),
    journal: FixJournal,
    orders: FixOrders,
    /// The participant's connection.
    session: Option<FixSession>,
    venue: SoupSession,
    next: u64,
    /// What the venue was sent and has not answered, by its first number; numbers that wait for an answer.
    unanswered: BTreeMap<u32, (BTreeSet<u32>, Vec<u8>)>,
    /// Orders of the journal that were not signed when it ended.
    unsigned: BTreeMap<u32, OuchInbound>,
    /// When open orders end, because the participant is gone.
    cancel_at_ms: Option<u64>,
}

impl FixMachine {
    /// A machine with the entries of its journal; without any it begins, and numbers orders above `last`. Where it
    /// cancels on disconnect it does so after a restart, too, since nobody is connected. `None` if the entries are of
    /// sessions with other names. The entries that it returns are for the journal.
    pub fn open(
        settings: &BridgeSettings,
        limits: FixLimits,
        names: (FixText, FixText),
        last: u32,
        entries: Vec<FixEntry>,
        now_ms: u64,
    ) -> Option<(FixMachine, Vec<FixEntry>)> {
        let mut machine = FixMachine {
            limits,
            gather: Gather::new(settings),
            journal: FixJournal::new(names.0.clone(), names.1.clone()),
            names,
            orders: FixOrders::after(last),
            session: None,
            venue: ANY_SESSION,
            next: 1,
            unanswered: BTreeMap::new(),
            unsigned: BTreeMap::new(),
            cancel_at_ms: limits.cancel_after_ms.map(|after| now_ms.saturating_add(after)),
        };
        let begins = if entries.is_empty() { vec![machine.begins()] } else { Vec::new() };
        if !entries.into_iter().all(|entry| machine.replay(entry)) {
            return None;
        }
        let refused = machine.refuse_unsigned(now_ms);
        Some((machine, begins.into_iter().chain(refused).collect()))
    }

    /// Orders that waited for others when the process ended never left, and their limits may be old.
    fn refuse_unsigned(&mut self, now_ms: u64) -> Vec<FixEntry> {
        let at = BridgeMoment { now_us: now_ms.saturating_mul(1_000), news: None };
        let words = "the bridge ended before it signed this order: send it again under another name";
        let refusal = OuchRefusal::new(NOT_TAKEN, words);
        let mut turn = FixTurn::default();
        for body in std::mem::take(&mut self.unsigned).into_values() {
            self.report(&at, 0, rejection(&body, &refusal, now_ms), &mut turn);
        }
        turn.entries
    }

    /// The session of the venue, and the number of its next message.
    pub fn position(&self) -> (SoupSession, u64) {
        (self.venue, self.next)
    }

    /// When a turn is due although nothing happens.
    pub fn deadline_ms(&self) -> Option<u64> {
        let of_session = self.session.as_ref().and_then(FixSession::deadline_ms);
        of_session.into_iter().chain(self.cancel_at_ms).min()
    }

    /// When orders that wait for others leave, in microseconds since 1970.
    pub fn gathered_us(&self) -> Option<u64> {
        self.gather.deadline_us()
    }

    /// Messages that the venue was sent and that have a number without an answer.
    pub fn waiting(&self) -> usize {
        self.unanswered.len()
    }

    /// Whether a participant is connected.
    pub fn is_connected(&self) -> bool {
        self.session.is_some()
    }

    /// A participant connects.
    pub fn connect(&mut self, now_ms: u64) {
        self.session = Some(FixSession::accept(self.limits, now_ms));
    }

    /// Something happens to the participant's connection, or time passed.
    pub fn step(&mut self, at: &BridgeMoment, input: FixInput<'_>) -> FixTurn {
        let mut turn = FixTurn::default();
        let due = self.gather.wake(at);
        self.pass(at, due, &mut turn);
        self.feed(at, input, &mut turn);
        if at.news.is_some() && self.cancel_at_ms.is_some_and(|due| due <= at.now_ms()) {
            self.cancel_at_ms = None;
            let waiting = self.gather.flush(at);
            self.pass(at, waiting, &mut turn);
            turn.to_venue.extend(self.orders.open().map(cancel));
        }
        turn
    }

    /// The venue's link is there, for a session.
    pub fn opened(&mut self, at: &BridgeMoment, session: SoupSession) -> FixTurn {
        let mut turn = FixTurn::default();
        if session != self.venue {
            let expired = self.orders.expire();
            expired.into_iter().for_each(|body| self.tell(at, &body, &mut turn));
            let entry = FixEntry::Session(session);
            self.replay(entry.clone());
            turn.entries.push(entry);
            turn.begins_session = true;
        }
        // The venue ignores what it has, and its answers are among its messages.
        turn.to_venue.extend(self.unanswered.values().map(|(_, message)| message.clone()));
        let waiting = self.gather.flush(at);
        self.pass(at, waiting, &mut turn);
        turn.to_venue.extend(self.orders.cancels().map(cancel));
        turn
    }

    /// A message of the venue.
    pub fn hear(&mut self, at: &BridgeMoment, number: u64, message: &[u8]) -> FixTurn {
        let mut turn = FixTurn::default();
        if number == self.next {
            self.report(at, number, message.to_vec(), &mut turn);
        }
        turn
    }

    /// All that a journal must have for this state, if the venue has told nothing in its session.
    pub fn entries(&self) -> Vec<FixEntry> {
        let sent = self.journal.kept().map(sent_entry);
        [self.begins()].into_iter().chain(sent).chain([FixEntry::Session(self.venue)]).collect()
    }

    fn begins(&self) -> FixEntry {
        FixEntry::Begins {
            sender: self.names.0.as_bytes().to_vec(),
            target: self.names.1.as_bytes().to_vec(),
            first: self.journal.first(),
            expected: self.journal.expected(),
            last: self.orders.last(),
        }
    }

    /// Gives the connection an input, and follows what it comes to.
    fn feed(&mut self, at: &BridgeMoment, input: FixInput<'_>, turn: &mut FixTurn) {
        let Some(session) = &mut self.session else { return };
        let mut effects: VecDeque<FixEffect> = session.step(at.now_ms(), input, &mut self.journal).into();
        let mut messages = Vec::new();
        while let Some(effect) = effects.pop_front() {
            match effect {
                FixEffect::Record(record) => turn.entries.push(entry(&record)),
                FixEffect::Send(bytes) => turn.to_participant.extend(bytes),
                // Whoever reaches this machine's loopback trades with the key; but not into nothing.
                FixEffect::Authorize(_) => {
                    let verdict = FixInput::Verdict(at.news.is_some());
                    if let Some(session) = &mut self.session {
                        effects.extend(session.step(at.now_ms(), verdict, &mut self.journal));
                    }
                }
                FixEffect::Message(message) => messages.push(message),
                FixEffect::Unsent => {}
                FixEffect::KeepOrders => self.cancel_at_ms = None,
                FixEffect::CancelOrdersAt(due_ms) => self.cancel_at_ms = Some(due_ms),
                FixEffect::Close(why) => (self.session, turn.close) = (None, Some(why)),
            }
        }
        // Their answers have later numbers than what is sent already.
        messages.into_iter().for_each(|message| self.ask(at, &message, turn));
    }

    /// What a message of the participant comes to.
    fn ask(&mut self, at: &BridgeMoment, message: &FixMessage, turn: &mut FixTurn) {
        turn.entries.push(FixEntry::Asked(message.encode()));
        match self.orders.route(&message.body) {
            FixRouted::Venue(plain) => self.sign(at, &plain, turn),
            FixRouted::Answer(body) => self.tell(at, &body, turn),
            FixRouted::Other => {
                let (kind, text) =
                    (FixText::new(message.body.kind()), FixText::new("this is nothing that a venue does"));
                let (number, reference) = (Some(message.header.number), None);
                if let Some(kind) = kind {
                    self.tell(at, &FixBusinessReject { number, kind, reference, reason: 3, text }.into(), turn);
                }
            }
        }
    }

    /// Signs a message to the venue, or lets it wait for others, or refuses it. A cancel waits for its answer, and is
    /// sent again whenever the link is there again.
    fn sign(&mut self, at: &BridgeMoment, plain: &OuchMessage<OuchInbound>, turn: &mut FixTurn) {
        let Some(bytes) = encoded(plain) else { return };
        let passed = self.gather.take(at, &bytes);
        self.pass(at, passed, turn);
    }

    fn pass(&mut self, at: &BridgeMoment, passed: Vec<Passed>, turn: &mut FixTurn) {
        for passed in passed {
            match passed {
                Passed::On(numbers, message) => {
                    match numbers[..] {
                        [] => {}
                        [number] => turn.entries.push(FixEntry::Signed(number, message.clone())),
                        _ => turn.entries.push(FixEntry::Listed(numbers.clone(), message.clone())),
                    }
                    self.signed(numbers, message.clone());
                    turn.to_venue.push(message);
                }
                Passed::Refused(refusal) => self.report(at, 0, refusal, turn),
            }
        }
    }

    /// A message is signed for these numbers: it is sent until each is answered.
    fn signed(&mut self, numbers: Vec<u32>, message: Vec<u8>) {
        for number in &numbers {
            self.unsigned.remove(number);
        }
        if let Some(first) = numbers.first() {
            self.unanswered.insert(*first, (numbers.iter().copied().collect(), message));
        }
    }

    /// The venue, or this bridge, has answered a number. Numbers ascend, so those of a message lie before all of the
    /// next one's.
    fn answered(&mut self, number: u32) {
        self.unsigned.remove(&number);
        if let Some((first, (waiting, _))) = self.unanswered.range_mut(..=number).next_back() {
            let first = *first;
            waiting.remove(&number);
            if waiting.is_empty() {
                self.unanswered.remove(&first);
            }
        }
    }

    /// Reports a message of the venue, or a refusal of the bridge's own.
    fn report(&mut self, at: &BridgeMoment, number: u64, message: Vec<u8>, turn: &mut FixTurn) {
        let body = self.take(number, &message);
        turn.entries.push(FixEntry::Heard(number, message));
        if let Some(body) = body {
            self.tell(at, &body, turn);
        }
    }

    /// What a message of the venue changes; the report of it.
    fn take(&mut self, number: u64, message: &[u8]) -> Option<FixBody> {
        self.next = self.next.max(number.saturating_add(1));
        let message = OuchMessage::<OuchOutbound>::decode(message).ok()?;
        match &message.body {
            OuchOutbound::Restated(of) => {
                let (trade, height) = settled(message.options.as_deref()?)?;
                return self.orders.settled(of.user_ref, trade, height);
            }
            OuchOutbound::Accepted(of) => self.answered(of.user_ref),
            OuchOutbound::Replaced(of) => self.answered(of.user_ref),
            OuchOutbound::Rejected(of) => self.answered(of.user_ref),
            OuchOutbound::MassCancelResponse(of) => self.answered(of.user_ref),
            _ => {}
        }
        self.orders.report(&message.body, words_of(message.options.as_deref()).as_deref())
    }

    /// Tells the participant something: now, or when it comes back and asks for what it missed.
    fn tell(&mut self, at: &BridgeMoment, body: &FixBody, turn: &mut FixTurn) {
        if self.session.as_ref().is_some_and(FixSession::is_open) {
            self.feed(at, FixInput::Send(body), turn);
        } else {
            turn.entries.push(entry(&self.journal.put(body, at.now_ms())));
        }
        if self.journal.next() - self.journal.first() > MESSAGES {
            let record = FixRecord::Forgets(self.journal.next() - MESSAGES);
            self.journal.apply(&record);
            turn.entries.push(entry(&record));
        }
    }

    /// A message of the journal for the venue, which may have been signed or refused.
    fn ask_again(&mut self, plain: OuchMessage<OuchInbound>) {
        if let Some(number) = plain.body.new_user_ref() {
            self.unsigned.insert(number, plain.body);
            // A refusal of it is in the journal, too.
            drop(self.gather.translator.read(plain, 0));
        }
    }

    /// Makes a change of the journal again; false if it is of sessions with other names.
    fn replay(&mut self, entry: FixEntry) -> bool {
        match entry {
            FixEntry::Begins { sender, target, first, expected, last } => {
                if (&sender[..], &target[..]) != (self.names.0.as_bytes(), self.names.1.as_bytes()) {
                    return false;
                }
                let (sender, target) = self.names.clone();
                self.journal = FixJournal::resume(sender, target, first, expected);
                self.orders = FixOrders::after(last);
            }
            FixEntry::Sent(number, sent_ms, body) => {
                self.journal.apply(&FixRecord::Sent(FixSent { number, sent: FixTime::of_ms(sent_ms), body }));
            }
            FixEntry::Expects(number) => drop(self.journal.apply(&FixRecord::Expects(number))),
            FixEntry::Forgets(number) => drop(self.journal.apply(&FixRecord::Forgets(number))),
            FixEntry::Asked(bytes) => {
                let routed = decoded(&bytes).map(|message| self.orders.route(&message.body));
                if let Some(FixRouted::Venue(plain)) = routed {
                    self.ask_again(plain);
                }
            }
            FixEntry::Signed(number, bytes) => self.signed(vec![number], bytes),
            FixEntry::Listed(numbers, bytes) => self.signed(numbers, bytes),
            FixEntry::Heard(number, message) => drop(self.take(number, &message)),
            FixEntry::Session(session) => {
                (self.venue, self.next) = (session, 1);
                self.orders = FixOrders::after(self.orders.last());
                self.unanswered.clear();
                self.unsigned.clear();
                self.gather.forget();
            }
        }
        true
    }
}

fn entry(record: &FixRecord) -> FixEntry {
    match record {
        FixRecord::Sent(sent) => sent_entry(sent),
        FixRecord::Expects(number) => FixEntry::Expects(*number),
        FixRecord::Forgets(number) => FixEntry::Forgets(*number),
    }
}

fn sent_entry(sent: &FixSent) -> FixEntry {
    FixEntry::Sent(sent.number, sent.sent.ms(), sent.body.clone())
}

/// The message that these bytes are, as they were sent.
fn decoded(mut bytes: &[u8]) -> Option<FixMessage> {
    let mut reader = FixReader::new(2 * MESSAGE_MAX);
    FixMessage::decode(reader.take(&mut bytes).ok()??).ok()
}

fn encoded(message: &OuchMessage<OuchInbound>) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes).ok()?;
    Some(bytes)
}

/// The cancellation of all of an order.
fn cancel(user_ref: u32) -> Vec<u8> {
    let cancel = OuchMessage::plain(OuchInbound::Cancel(OuchCancel { user_ref, quantity: 0 }));
    encoded(&cancel).expect("a cancel has no options")
}

/// Index and height of a settled fill.
fn settled(options: &[OuchOption]) -> Option<(u64, u64)> {
    let value = options.iter().find_map(|option| match option {
        OuchOption::Unknown { tag: SETTLED, value } => Some(value),
        _ => None,
    })?;
    let (index, height) = value.split_first_chunk()?;
    Some((u64::from_be_bytes(*index), u64::from_be_bytes(*height.first_chunk()?)))
}
