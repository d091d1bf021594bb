//! What a bridge signs: each order by itself, or those that come within a moment as one list.
//!
//! # The protocol
//!
//! - Upon *an order or a replacement*, where gathering is on and the venue takes lists: it waits with those before it.
//!   The first one waits at most [`BridgeSettings::gather_us`]. A list that is full leaves at once.
//! - Upon *any other message*: what waits leaves before it.
//! - When *what waits leaves*: one order has a signature of its own, several have one together
//!   ([`crate::ouch::OuchList`]). Terms are those of that moment.
//! - Without a link to the venue, what waits is refused.
//!
//! # Properties
//!
//! 1. *Order*: messages leave in the sequence in which they came, however they are gathered.
//! 2. *Once*: an order that came leaves once or is refused once.
//! 3. *No longer*: nothing waits beyond its time, also if the clock steps back.
//!
//! # Attacks
//!
//! | attack | why it fails |
//! |---|---|
//! | a cancel overtakes its order, which then rests for ever | what waits leaves before any other message |
//! | a used number begins a list, whose new numbers the venue then rejects | an order whose number is not above all in use leaves alone; after a restart the venue's messages say which are |
//! | messages with long options make a list too long for a packet | its bytes are counted; a message too long for any list leaves alone |
//! | the clock steps back by an hour | a time before the first order's is the end of its wait |
//! | midnight or another incarnation comes while orders wait | terms are of the moment in which they leave; the venue compares numbers with the session |
//! | the venue's height counts no lists yet | its status says so, and each order has a signature of its own |
//!
//! # Deviations
//!
//! - An order alone waits, too: whether another one follows is not known. So gathering is off by default.

mod mistake;

use kernel::Planted;
use primitives::venue::LIST_ORDERS_MAX;
use protocols::ouch::{OuchInbound, OuchMessage};

use super::translator::{Translator, away, rejection};
use super::{BridgeMoment, BridgeNews, BridgeSettings};
use crate::ouch::{LIST_BYTES_MAX, LIST_HEAD_MAX, OuchOrder};
use mistake::GatherMistake;

/// The longest time that an order waits for others, in microseconds.
pub const GATHER_US_MAX: u64 = 1_000;

/// What a message comes to.
#[derive(Debug)]
pub(super) enum Passed {
    /// The venue is sent this. An answer follows for each of these new numbers.
    On(Vec<u32>, Vec<u8>),
    /// The bridge refuses it with this.
    Refused(Vec<u8>),
}

/// Orders that wait to be signed.
pub(super) struct Gather {
    pub translator: Translator,
    gather_us: u64,
    waiting: Vec<OuchOrder>,
    /// When the first of them came.
    since_us: u64,
    /// Bytes of their list.
    bytes: usize,
    /// The largest number that is in use.
    last: u32,
    mistake: Planted<GatherMistake>,
}

impl Gather {
    /// Nothing waits.
    pub fn new(settings: &BridgeSettings) -> Gather {
        let (translator, gather_us) = (Translator::new(settings), settings.gather_us.min(GATHER_US_MAX));
        let (waiting, mistake) = (Vec::new(), Planted::NOTHING);
        Gather { translator, gather_us, waiting, since_us: 0, bytes: 0, last: 0, mistake }
    }

    /// When what waits leaves, in microseconds since 1970.
    pub fn deadline_us(&self) -> Option<u64> {
        (!self.waiting.is_empty()).then(|| self.since_us.saturating_add(self.gather_us))
    }

    /// Takes a plain message.
    pub fn take(&mut self, at: &BridgeMoment, bytes: &[u8]) -> Vec<Passed> {
        let Ok(message) = OuchMessage::<OuchInbound>::decode(bytes) else { return Vec::new() };
        let is_order = matches!(message.body, OuchInbound::Enter(_) | OuchInbound::Replace(_));
        let news = at.news.filter(|_| is_order);
        let Some(news) = news else {
            let overtakes = self.mistake.is(GatherMistake::CancelOvertakes);
            let mut passed = if overtakes { Vec::new() } else { self.flush(at) };
            message.body.new_user_ref().into_iter().for_each(|number| self.use_number(number));
            passed.push(match (at.news, message.body.new_user_ref()) {
                (None, Some(_)) => Passed::Refused(rejection(&message.body, &away(), at.now_ms())),
                (_, number) => Passed::On(number.into_iter().collect(), bytes.to_vec()),
            });
            return passed;
        };
        match self.translator.read(message, at.now_ms()) {
            Ok(order) => self.take_order(at, &news, order),
            Err(refused) => vec![Passed::Refused(refused)],
        }
    }

    fn take_order(&mut self, at: &BridgeMoment, news: &BridgeNews, order: OuchOrder) -> Vec<Passed> {
        let length = order.listed().map(|bytes| bytes.len()).filter(|length| LIST_HEAD_MAX + length <= LIST_BYTES_MAX);
        let number = order.fields.reference;
        let may_wait = self.gather_us > 0
            && news.takes_lists
            && (self.is_new(number) || self.mistake.is(GatherMistake::UsedNumberJoins));
        let overtakes = self.mistake.is(GatherMistake::ReplacementOvertakes) && order.fields.replaces.is_some();
        self.use_number(number);
        if overtakes {
            return vec![self.sign_alone(at, &order)];
        }
        let Some(length) = length.filter(|_| may_wait) else {
            let mut passed = self.flush(at);
            passed.push(self.sign_alone(at, &order));
            return passed;
        };
        let fits = self.bytes + length <= LIST_BYTES_MAX || self.mistake.is(GatherMistake::BytesUncounted);
        let mut passed = if fits { Vec::new() } else { self.flush(at) };
        if self.waiting.is_empty() {
            (self.since_us, self.bytes) = (at.now_us, LIST_HEAD_MAX);
        }
        self.bytes += length;
        self.waiting.push(order);
        if self.waiting.len() == LIST_ORDERS_MAX {
            passed.extend(self.flush(at));
        }
        passed
    }

    /// What waits, if its time is over.
    pub fn wake(&mut self, at: &BridgeMoment) -> Vec<Passed> {
        let steps_back = at.now_us < self.since_us && !self.mistake.is(GatherMistake::WaitsForClock);
        let waits = self.deadline_us().is_some_and(|due| at.now_us < due && !steps_back);
        if waits || self.mistake.is(GatherMistake::WaitsForever) { Vec::new() } else { self.flush(at) }
    }

    /// All that waits leaves.
    pub fn flush(&mut self, at: &BridgeMoment) -> Vec<Passed> {
        let orders = std::mem::take(&mut self.waiting);
        if self.mistake.is(GatherMistake::OutlivesSession) && at.news.is_none() {
            self.waiting.clone_from(&orders);
        }
        if self.mistake.is(GatherMistake::LeavesTwice) && orders.len() > 1 {
            self.waiting.extend(orders.last().cloned());
        }
        let list = at.news.filter(|news| orders.len() > 1 && news.takes_lists);
        if let Some(list) = list.and_then(|news| self.translator.sign_list(orders.clone(), &news, at.now_ms())) {
            let numbers = orders.iter().map(|order| order.fields.reference).collect();
            return vec![Passed::On(numbers, list)];
        }
        orders.iter().map(|order| self.sign_alone(at, order)).collect()
    }

    /// Whether a number is above all in use.
    pub fn is_new(&self, number: u32) -> bool {
        number > self.last
    }

    /// A number is in use.
    pub fn use_number(&mut self, number: u32) {
        self.last = self.last.max(number);
    }

    /// Forgets all orders: their day is over.
    pub fn forget(&mut self) {
        if !self.mistake.is(GatherMistake::OutlivesSession) {
            self.waiting.clear();
        }
        self.translator.forget();
        self.last = 0;
    }

    fn sign_alone(&self, at: &BridgeMoment, order: &OuchOrder) -> Passed {
        let Some(news) = at.news else {
            return Passed::Refused(rejection(&order.message.body, &away(), at.now_ms()));
        };
        match self.translator.sign(order, &news, at.now_ms()) {
            Ok(signed) => Passed::On(vec![order.fields.reference], signed),
            Err(refused) => Passed::Refused(refused),
        }
    }
}

#[cfg(test)]
mod tests;
