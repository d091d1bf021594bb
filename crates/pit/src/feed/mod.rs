//! Market data for everybody: ITCH 5.0 in MoldUDP64, with a rewinder and snapshots.
//!
//! ```text
//!  root's thread ─► messages, numbered, the last ones kept ─► UDP to each address of the list (unicast, multicast)
//!                          ▲                     ▲
//!   UDP request ── rewinder, for subscribers     └── snapshots (GLIMPSE over SoupBinTCP): books, and the next number
//! ```
//!
//! # The protocol
//!
//! - A *session* begins with the root and has its name: day, incarnation and second. Its first messages build the books
//!   as they stand. It ends when the root fails or stops; then packets say so for some seconds.
//! - Upon *a step* of the root: each event is a message. Packets have as many as fit into 1,200 bytes; a heartbeat each
//!   second says the next number.
//! - Upon *a gap* a reader asks the rewinder, which answers with one packet, or takes a snapshot, which ends with the
//!   number of the next message.
//!
//! Lots are shares, ticks the four bytes of a price, and a security is a market: its symbol as in OUCH, its locate code
//! the market's place in the session. Terms of markets are served over HTTP.
//!
//! | event | message |
//! |---|---|
//! | a market | `R`, and `H` with its phase: `T` continuous, `Q` call, `H` halted |
//! | added, reduced, deleted | `A`, `X`, `D` |
//! | executed at the limit; at another price, or once more in an auction | `E`; `C`, printable `N` if it is told again |
//! | renamed: a replaced order that kept its place | `U` with the same price |
//! | an auction; a collar | `Q` with cross `O`; `J` |
//!
//! # Properties
//!
//! - *Bounded*: so many messages are kept, so many snapshots are read at once, a snapshot that is not read is cut.
//! - *No amplifier*: the rewinder answers an address only if it has taken a snapshot over TCP within the hour, which
//!   proves that it is there, with one packet a request and so many a second.
//! - *Never in the way*: a reader that is slow costs the root's thread nothing.
//!
//! # Deviations
//!
//! - A session does not outlive the root that tells it: numbers begin again under another name, and readers take a
//!   snapshot. Fills are in the journal, not here.
//! - Session `U` does not lose its place, as ITCH says it does: see `keeps_place` of an acceptance.

mod state;

pub(crate) use state::{FeedHub, NextPacket};
