//! Orders over OUCH 5.0 and SoupBinTCP.
//!
//! A session is a session of a trading key. Before its login a participant sends one debug packet, which others skip:
//! [`HELLO`] and a signed request to attach a session ([`venue::TraderRequest`]). It stands for name and password,
//! whose sixteen letters could not. Messages are numbered from one in a session of a day; a participant
//! that comes back gets what it missed.
//!
//! Orders must be signed, and OUCH has no field for that. A new order and a replacement carry the signed order as an
//! option with the tag [`SIGNED_ORDER`]. What the message's own fields say must be the same. *Plain* OUCH is spoken
//! with a [bridge](crate::bridge), which a participant runs: it has the trading key, and adds the option. Many orders
//! under one signature are a message of their own ([`OuchList`]).
//!
//! What a session is told is in a journal of its day, synced before it is sent. A participant that logs in with the
//! number that it expects gets what it missed, also after a restart or a crash of the node. A cancel of an order that
//! has ended, or never came, is answered by a cancel reject. A number that the root never heard of, because the node
//! was killed in between, is rejected after the restart (`lost`).
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
//! | executed | option [`FILL_REPORT`], or options [`STEP_REPORT`] in parts, have the signed report: keep it |
//! | rejected, cancel rejected | option [`WORDS`] says why |
//!
//! Links and sessions are steps over an [`OuchHost`]: the doors of a pit drive them, and simulations.
//!
//! # Deviations from OUCH
//!
//! - After a crash of the machine an order whose entry was not on the disk yet is answered when it is sent again. Its
//!   executions may then stand before its acceptance.
//! - A session keeps its last 65,536 messages; who comes back later asks over HTTP what became of its orders.
//! - A message to disable or enable a participant is rejected: revoke the key on the ledger.
//! - At midnight (UTC) a session's connection ends without an end of session, and the next one begins with message 1.
//! - A rejection has the number of [`refusal_name`](crate::codes::refusal_name).

mod host;
mod hub;
mod inbound;
mod journal;
mod link;
mod list;
mod lost;
mod outbound;
mod refusing;
pub(crate) mod reports;
mod session;
mod sessions;

use primitives::venue::MarketId;
use protocols::soup::SoupPacket;
use venue::TraderRequest;

pub(crate) use hub::OuchHub;
#[cfg(test)]
pub(crate) use list::tests as list_tests;
pub(crate) use list::{LIST_HEAD_MAX, OuchOrder};
pub(crate) use refusing::{OuchRefusal, words_of};
pub(crate) use sessions::session_name;

pub use host::OuchHost;
pub use inbound::{SignedFault, enter_of, life_of};
pub use journal::SessionJournalError;
pub use link::{OuchLink, OuchParty, OuchTurn};
pub use list::{LIST, LIST_BYTES_MAX, OuchList, OuchTerms, REPLACED};
pub use session::OuchSession;
pub use sessions::OuchSessions;

/// What a debug packet before the login begins with.
pub const HELLO: &[u8] = b"walras ";
/// The option with a signed order.
pub const SIGNED_ORDER: u8 = 200;
/// The option with a signed report of a fill.
pub const FILL_REPORT: u8 = 201;
/// The options with the parts of a signed report of a step, in their order.
pub const STEP_REPORT: u8 = 204;
/// The option with index and height of a settled fill.
pub const SETTLED: u8 = 202;
/// The option with the words of a refusal.
pub const WORDS: u8 = 203;

pub(crate) const DAY_MS: u64 = 86_400_000;

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

/// The request that a debug packet has; `None` if it has none.
pub fn read_hello(packet: &[u8]) -> Option<TraderRequest> {
    let Ok(SoupPacket::Debug(text)) = SoupPacket::decode(packet) else { return None };
    borsh::from_slice(text.strip_prefix(HELLO)?).ok()
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
}
