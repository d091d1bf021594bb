//! Fair admission to the sockets that strangers reach: HTTP, Ethereum's JSON-RPC, streams and the payment lane.
//!
//! A socket has two kinds of limits, and neither may be used up by a few addresses:
//!
//! - *Places* ([`Places`]) are held for as long as a connection is open. When all are taken, a newcomer displaces the
//!   slowest connection of the prefix (/24, /48) that holds most of them.
//! - *Shares* ([`Shares`]) are held for one request: a slot, bytes of bodies, a filter. An address may hold as much as
//!   it leaves free, so k greedy addresses leave 1/(k+1) of everything to the next one.
//!
//! A worker behind sockets, which checks signatures or scans, has a third kind: *turns* ([`Turns`]). Clients are served
//! one after another, a slice each, and what proves false is charged to its client ([`Budgets`]). All doors use this
//! one scheduler: the intake of transactions, questions that execute, the venue's orders and questions, the payment
//! lane.
//! [`Gate`] is the form in which a door awaits a turn.
//!
//! All ask who is at the other end. Behind a proxy that the operator trusts, this is not the proxy ([`Networks`]).
//! [`Visitors`] are the places of one running socket: its clock, and what tells a connection that it is displaced.
//!
//! [`raw_keys`] is the authentication that links between validators and the lane's clients share.
//!
//! **Properties.** No limit is exceeded. With P prefixes of which one wants at most 1/P of the places, that one is
//! admitted, and stays as long as it makes progress. Whoever pays, or is a validator, is *known*: a few connections
//! of a known prefix are never displaced, however many prefixes a stranger has.
//!
//! **Invariant**: [`Places`], [`Shares`], [`Turns`] and [`Budgets`] have no clock and no socket; callers pass the time.

mod budgets;
mod client;
mod gate;
mod places;
mod ports;
mod proxies;
pub mod raw_keys;
mod shares;
mod turns;
mod visitors;

pub use budgets::{BudgetLimits, Budgets};
pub use client::Client;
pub use gate::{Gate, Pass};
pub use places::{Acquaintance, Entry, PlaceId, PlaceLimits, Places, Prefix};
pub use ports::{free_address, free_ports, reserve_door};
pub use proxies::{Networks, ProxyError, read_proxy_header};
pub use shares::{Holder, Share, Shares};
pub use turns::{NoTurn, Slice, TurnLimits, Turns};
pub use visitors::{Acquaintances, Visit, Visitors};
