//! One continuous market: a limit order book that matches by price and time, with call auctions.
//!
//! [`Book::apply`] takes one [`Command`] and tells a [`Sink`] what happened. There is no clock, no thread and no I/O,
//! and memory is allocated when a book is made and never after. The same commands give the same events, on any machine.
//!
//! # Rules
//!
//! **Priority.** Of resting orders the better price goes first, and of one price the earlier arrival. A trade takes
//! place at the price of the order that rested, the *maker*; the arriving order is the *taker*.
//!
//! **Time in force.** *Good till cancelled* rests. *Immediate or cancel* trades what it can and ends. *Fill or kill*
//! trades whole or is refused; it meets at most [`BookLimits::fill_or_kill_orders`] makers, so a refusal costs bounded
//! work. *Post only* is refused if it would trade.
//!
//! **Self-trade prevention.** An order never trades with one of its owner. The arriving order says what ends instead:
//! the maker, the rest of the taker, or both. The rest of a taker that ends so never rests. A fill-or-kill order that
//! would meet an order of its owner is refused.
//!
//! **Replace** states the new price and the *total* size, executed lots included. At the same price and no more open
//! lots the order keeps its place; otherwise it arrives anew, and may trade. A replace that is refused changes nothing.
//!
//! **Collar.** No trade takes place outside the collar. An order whose limit lies beyond it on the aggressive side is
//! refused. If the next trade would be outside all the same, trading is interrupted: the market turns to a call.
//!
//! **Phases.** *Continuous*; *halted*, in which orders may only be cancelled; *call*, in which orders rest without
//! trading, so that the book may be crossed. In a call an arriving order that crosses one of its owner is resolved at
//! once as a self-trade. So no owner is on both sides of any price. [`Command::Uncross`] ends a call by one auction.
//!
//! **Auction.** All trades take place at one tick: of the ticks with the largest volume those with the smallest
//! surplus. Among these it is the highest if buyers have the surplus at all of them, and the lowest if sellers have.
//! Otherwise it is the one closest to the reference tick. Orders are served by price and time on both sides. Then the
//! book is not crossed: served are the best buys. So with a volume of V the buys that are left are below every tick at
//! which sells are left, or a larger volume would have been possible. If the tick lies outside the collar nothing
//! trades and the call goes on.
//!
//! **Kill switch.** [`Command::Kill`] cancels all orders of an owner and refuses new ones until [`Command::Revive`].
//!
//! # Structure
//!
//! Orders are slots of an arena; a slot and its generation are the order's id, so an id is never used again. A level is
//! a queue of orders at one tick, linked through the slots. Levels within a window of ticks are found by their index
//! and ordered by a bitmap of three storeys; levels outside it are nodes of a treap, so no price makes an operation
//! slow. Client references are found by a hash table with a secret seed, which shows in no result.
//!
//! | operation | cost |
//! |---|---|
//! | rest, cancel, replace in place | O(1) within the window, O(log levels) outside |
//! | trade | O(1) for each maker |
//! | mass cancel, kill | O(1) for each order that ends |
//! | arrival in a call | O(orders of the owner), which are bounded |
//! | auction | O(levels that cross + trades) |
//!
//! **Invariant**: the book is crossed only in a call, or in a halt that interrupted one. The lots of a level are the
//! sum of its orders'. No order has zero lots.

mod auction;
mod bitmap;
mod book;
mod command;
mod event;
mod ladder;
mod orders;
mod references;
mod snapshot;
mod treap;
mod view;

pub use book::{Book, BookLimits, BookLimitsError};
pub use command::{Command, NewOrder, Phase, Replacement, SelfTrade, Side, TICK_MAX, TimeInForce};
pub use event::{BookEvent, BookRefusal, Ended, OrderId, Party, Sink};
pub use snapshot::BookSnapshotError;
pub use view::Position;
