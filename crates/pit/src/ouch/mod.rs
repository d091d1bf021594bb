//! Orders over OUCH 5.0 and SoupBinTCP.
//!
//! A session is a session of a trading key. Before its login a participant sends one debug packet, which others skip:
//! [`HELLO`] and a signed request to attach a session ([`venue::TraderRequest`]). It stands for name and password,
//! whose sixteen letters could not. Messages are numbered from one in a session of a day; a participant
//! that comes back gets what it missed.
//!
//! Orders must be signed, and OUCH has no field for that. A new order and a replacement carry the signed order as an
//! option with the tag [`SIGNED_ORDER`]; what the message's own fields say must be the same. *Plain* OUCH is spoken
//! with a [bridge](crate::bridge), which a participant runs: it has the trading key, and adds the option.
//!
//! | OUCH | here |
//! |---|---|
//! | user reference | the reference of the order's number; its day is that of the session, its incarnation the venue's |
//! | symbol | `M` and the number of the market |
//! | price | ticks |
//! | quantity | lots |
//! | time in force `0`, with the option post-only | rests; post-only |
//! | time in force `3`; with a least quantity of all | immediate or cancel; fill or kill |
//! | number of a match | the fill's index in the tree of the incarnation |
//! | broken trade | the fill is bust |
//! | restated, `S` | the fill is settled: option [`SETTLED`] has its index and height |
//! | executed | option [`FILL_REPORT`] has the signed report: keep it |
//!
//! # Deviations from OUCH
//!
//! - A session's numbers are kept in memory. After a restart of the node the session of the day has another name, and
//!   a participant logs in to it from number 1. Which orders are open, and what they executed, is asked over HTTP.
//! - A message to disable or enable a participant is rejected: revoke the key on the ledger.
//! - At midnight (UTC) a session's connection ends without an end of session, and the next one begins with message 1.
//! - A rejection has the number of [`refusal_name`](crate::words::refusal_name).

pub(crate) mod door;
mod inbound;
mod outbound;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use primitives::venue::{MarketId, OrderNumber};
use protocols::ouch::{OuchInbound, OuchMessage, OuchOutbound, OuchUserRefs};
use protocols::soup::SoupSession;
use protocols::soup::server::SoupLog;
use tokio::sync::watch;
use venue::SessionNumber;

use crate::clock::clock_ms;
use crate::events::StepEvents;

pub use door::read_hello;
pub use inbound::{SignedFault, enter_of, life_of};

/// What a debug packet before the login begins with.
pub const HELLO: &[u8] = b"walras ";
/// The option with a signed order.
pub const SIGNED_ORDER: u8 = 200;
/// The option with a signed report of a fill.
pub const FILL_REPORT: u8 = 201;
/// The option with index and height of a settled fill.
pub const SETTLED: u8 = 202;

/// Messages that a session keeps for a participant that comes back.
const MESSAGES: u64 = 65_536;
/// Orders of which a session remembers what they said.
const ORDERS: usize = 65_536;
const DAY_MS: u64 = 86_400_000;

/// The day of a time, counted from 1970.
pub fn day_of(time_ms: u64) -> u16 {
    (time_ms / DAY_MS) as u16
}

/// The symbol of a market.
pub fn symbol_of(market: MarketId) -> [u8; 8] {
    let mut symbol = [b' '; 8];
    // Seven digits: numbers of markets are given one after the other.
    let text = format!("M{market}");
    symbol.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from);
    symbol
}

/// The market of a symbol.
pub fn market_of(symbol: &[u8; 8]) -> Option<MarketId> {
    let text = str::from_utf8(symbol).ok()?.trim_end_matches(' ');
    let market = text.strip_prefix('M')?.parse().ok()?;
    (symbol_of(market) == *symbol).then_some(market)
}

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
pub(crate) struct OuchSession {
    pub log: SoupLog,
    pub day: u16,
    pub incarnation: u32,
    pub refs: OuchUserRefs,
    pub orders: BTreeMap<u32, Entered>,
    /// The link that it has, told whenever there is something new for it.
    pub link: watch::Sender<u64>,
}

impl OuchSession {
    pub(crate) fn new(day: u16, incarnation: u32) -> OuchSession {
        OuchSession {
            log: SoupLog::new(session_name(day, incarnation)),
            day,
            incarnation,
            refs: OuchUserRefs::default(),
            orders: BTreeMap::new(),
            link: watch::Sender::new(0),
        }
    }

    /// The number of an order of this session.
    pub fn number(&self, reference: u32) -> OrderNumber {
        OrderNumber { incarnation: self.incarnation, day: self.day, reference }
    }

    /// Remembers what an order said; the lowest references are forgotten.
    pub fn remember(&mut self, reference: u32, entered: Entered) {
        self.orders.insert(reference, entered);
        if self.orders.len() > ORDERS {
            self.orders.pop_first();
        }
    }

    pub fn publish(&mut self, message: &OuchMessage<OuchOutbound>) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes).expect("its options suit its kind");
        // A session that has ended is told nothing more.
        self.log.publish(bytes).ok();
        let next = self.log.next();
        self.log.forget_before(next.saturating_sub(MESSAGES));
        self.link.send_modify(|_| {});
    }
}

/// The name of a session: day and incarnation, and when this process made it.
fn session_name(day: u16, incarnation: u32) -> SoupSession {
    let mut name = [b'0'; 10];
    base36(u64::from(day), &mut name[..4]);
    base36(u64::from(incarnation), &mut name[4..7]);
    base36(clock_ms() / 1_000, &mut name[7..]);
    name
}

fn base36(mut number: u64, to: &mut [u8]) {
    for digit in to.iter_mut().rev() {
        *digit = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[(number % 36) as usize];
        number /= 36;
    }
}

/// The sessions of this process.
#[derive(Default)]
pub(crate) struct OuchHub(Mutex<HashMap<SessionNumber, OuchSession>>);

impl OuchHub {
    /// The session of this number, of this day and incarnation.
    pub fn with<T>(&self, session: SessionNumber, incarnation: u32, with: impl FnOnce(&mut OuchSession) -> T) -> T {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let day = day_of(clock_ms());
        let of = sessions.entry(session).or_insert_with(|| OuchSession::new(day, incarnation));
        if (of.day, of.incarnation) != (day, incarnation) {
            *of = OuchSession::new(day, incarnation);
        }
        with(of)
    }

    /// Ends all sessions, and so their connections: whether what they said last has happened is not known.
    pub fn end_all(&self) {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.clear();
    }

    /// Tells sessions what a step told about their orders.
    pub fn tell(&self, events: &StepEvents) {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.is_empty() {
            return;
        }
        let nanoseconds = clock_ms() % DAY_MS * 1_000_000;
        for report in &events.reports {
            if let Some(session) = sessions.get_mut(&report.session) {
                let number = session.number(report.number.reference);
                // Orders of another day have no reference in this session.
                if number == report.number {
                    outbound::messages(session, nanoseconds, report)
                        .iter()
                        .for_each(|message| session.publish(message));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_names_one_market() {
        for market in [0, 7, 42, 1_234_567] {
            assert_eq!(market_of(&symbol_of(market)), Some(market));
        }
        for foreign in [*b"M       ", *b"M01     ", *b"X1      ", *b"M1 1    ", *b" M1     ", [0xff; 8]] {
            assert_eq!(market_of(&foreign), None, "{foreign:?}");
        }
    }

    #[test]
    fn a_session_of_another_day_or_incarnation_has_another_name() {
        let names: std::collections::BTreeSet<_> = [(1, 0), (2, 0), (1, 1), (2, 1)]
            .map(|(day, incarnation)| session_name(day, incarnation)[..7].to_vec())
            .into();
        assert_eq!(names.len(), 4);
        assert_eq!(day_of(2 * DAY_MS - 1), 1);
    }
}
