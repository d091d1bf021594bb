//! A session of a day: its orders, and the messages that it was told.

use std::collections::{BTreeMap, BTreeSet};

use primitives::PublicKey;
use primitives::venue::OrderNumber;
use protocols::ouch::{OuchEnter, OuchInbound, OuchMessage, OuchOutbound, OuchReplace, OuchUserRefs};
use protocols::soup::SoupSession;
use protocols::soup::server::SoupLog;
use tokio::sync::watch;
use venue::SessionNumber;

use super::journal::SessionEntry;

/// Messages that a session keeps for a participant that comes back.
const MESSAGES: u64 = 65_536;
/// Orders of which a session remembers what they said.
const ORDERS: usize = 65_536;
/// Gaps between used numbers that a session remembers.
const GAPS: usize = 65_536;

/// What an order said when it came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entered {
    pub message: OuchInbound,
    pub symbol: [u8; 8],
    pub side: u8,
    /// Whether it was answered.
    pub is_answered: bool,
    /// Its open lots, once it is taken.
    pub open: u32,
}

/// A session of a day.
pub struct OuchSession {
    number: SessionNumber,
    pub(super) log: SoupLog,
    day: u16,
    incarnation: u32,
    refs: OuchUserRefs,
    /// Numbers below the highest that never came: the first and the last one of each gap.
    gaps: BTreeMap<u32, u32>,
    pub(super) orders: BTreeMap<u32, Entered>,
    /// Its key, once a report has named it.
    pub(super) key: Option<PublicKey>,
    /// Numbers without an answer that were used before a restart.
    pub(super) lost: BTreeSet<u32>,
    /// The link that it has, told whenever there is something new for it.
    pub(super) link: watch::Sender<u64>,
    /// What is not in the journal yet.
    pub(super) unwritten: Vec<SessionEntry>,
}

impl OuchSession {
    pub(super) fn new(number: SessionNumber, name: SoupSession, day: u16, incarnation: u32) -> OuchSession {
        OuchSession {
            number,
            log: SoupLog::new(name),
            day,
            incarnation,
            refs: OuchUserRefs::default(),
            gaps: BTreeMap::new(),
            orders: BTreeMap::new(),
            key: None,
            lost: BTreeSet::new(),
            link: watch::Sender::new(0),
            unwritten: vec![SessionEntry::Opened { session: number }],
        }
    }

    /// The number of an order of this session.
    pub(super) fn number(&self, reference: u32) -> OrderNumber {
        OrderNumber { incarnation: self.incarnation, day: self.day, reference }
    }

    /// The next reference; the last one if none is left.
    pub(super) fn next_ref(&self) -> u32 {
        self.refs.next().unwrap_or(u32::MAX)
    }

    /// Uses a reference; false if it was used.
    pub(super) fn claim(&mut self, user_ref: u32) -> bool {
        let is_new = self.use_number(user_ref);
        if is_new {
            self.unwritten.push(SessionEntry::Claimed { session: self.number, user_ref });
        }
        is_new
    }

    /// A restart hears that the root took a number of which the journal knows nothing: it lacks its answer.
    pub(super) fn find(&mut self, user_ref: u32) {
        if self.claim(user_ref) {
            self.lost.insert(user_ref);
        }
    }

    /// A number is new that is above all in use, or was passed over.
    fn use_number(&mut self, user_ref: u32) -> bool {
        let next = self.next_ref();
        if self.refs.claim(user_ref).is_ok() {
            self.add_gap(next, user_ref - 1);
            return true;
        }
        let gap = self.gaps.range(..=user_ref).next_back().map(|(first, last)| (*first, *last));
        let Some((first, last)) = gap.filter(|(_, last)| user_ref <= *last) else { return false };
        self.gaps.remove(&first);
        self.add_gap(first, user_ref - 1);
        self.add_gap(user_ref + 1, last);
        true
    }

    /// Remembers numbers that never came. Of very many gaps the lowest are forgotten.
    fn add_gap(&mut self, first: u32, last: u32) {
        if first <= last {
            self.gaps.insert(first, last);
        }
        if self.gaps.len() > GAPS {
            self.gaps.pop_first();
        }
    }

    /// Remembers what an order said.
    pub(super) fn enter(&mut self, entered: Entered) {
        let (Entered { symbol, side, .. }, message) = (entered, encoded(&OuchMessage::plain(entered.message)));
        self.unwritten.push(SessionEntry::Entered { session: self.number, message, symbol, side });
        self.remember(entered);
    }

    /// The lowest references are forgotten.
    fn remember(&mut self, entered: Entered) {
        let (OuchInbound::Enter(OuchEnter { user_ref, .. }) | OuchInbound::Replace(OuchReplace { user_ref, .. })) =
            entered.message
        else {
            return;
        };
        self.orders.insert(user_ref, entered);
        if self.orders.len() > ORDERS {
            self.orders.pop_first();
        }
    }

    /// Tells the participant a message, once it is durable.
    pub(super) fn tell(&mut self, message: &OuchMessage<OuchOutbound>) {
        self.hear(&message.body);
        self.unwritten.push(SessionEntry::Told { session: self.number, message: encoded(message) });
    }

    /// What a message says of its order.
    fn hear(&mut self, body: &OuchOutbound) {
        let (user_ref, answered, open) = match body {
            OuchOutbound::Accepted(of) => (of.user_ref, true, Some(of.quantity)),
            OuchOutbound::Replaced(of) => (of.user_ref, true, Some(of.quantity)),
            OuchOutbound::Rejected(of) => (of.user_ref, true, None),
            OuchOutbound::Executed(of) => (of.user_ref, false, self.open(of.user_ref, of.quantity)),
            OuchOutbound::Canceled(of) => (of.user_ref, false, self.open(of.user_ref, of.quantity)),
            OuchOutbound::MassCancelResponse(of) => (of.user_ref, true, None),
            _ => return,
        };
        if answered {
            self.lost.remove(&user_ref);
        }
        if let Some(entered) = self.orders.get_mut(&user_ref) {
            entered.is_answered |= answered;
            entered.open = open.unwrap_or(entered.open);
        }
    }

    /// Open lots of an order without so many.
    fn open(&self, user_ref: u32, without: u32) -> Option<u32> {
        self.orders.get(&user_ref).map(|entered| entered.open.saturating_sub(without))
    }

    /// Adds a durable message to those that connections send.
    pub(super) fn publish(&mut self, message: Vec<u8>) {
        // It is short, and the session has not ended.
        self.log.publish(message).ok();
        self.log.forget_before(self.log.next().saturating_sub(MESSAGES));
        self.link.send_modify(|_| {});
    }

    /// An entry of the journal, read again.
    pub(super) fn replay(&mut self, entry: SessionEntry) {
        match entry {
            SessionEntry::Opened { .. } => {}
            SessionEntry::Claimed { user_ref, .. } => {
                if self.use_number(user_ref) {
                    self.lost.insert(user_ref);
                }
            }
            SessionEntry::Entered { message, symbol, side, .. } => {
                if let Ok(OuchMessage { body: message, .. }) = OuchMessage::<OuchInbound>::decode(&message) {
                    self.remember(Entered { message, symbol, side, is_answered: false, open: 0 });
                }
            }
            SessionEntry::Told { message, .. } => {
                if let Ok(of) = OuchMessage::<OuchOutbound>::decode(&message) {
                    self.hear(&of.body);
                }
                self.publish(message);
            }
        }
    }
}

fn encoded<B: protocols::ouch::OuchBody>(message: &OuchMessage<B>) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes).expect("its options suit its kind");
    bytes
}
