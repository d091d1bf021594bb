//! What a book tells.

use crate::{Phase, Side};

/// The id of an order, never used again in the same book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OrderId {
    /// Its slot of the arena.
    pub slot: u32,
    /// How many orders had the slot before.
    pub generation: u32,
}

/// An order and its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Party {
    /// The order.
    pub order: OrderId,
    /// Whose it is.
    pub owner: u32,
    /// The owner's name for it.
    pub reference: u32,
}

/// Why a command is refused. The book is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BookRefusal {
    /// The market is halted.
    #[error("the market is halted: only cancels are taken")]
    Halted,
    /// The owner is not below the limit.
    #[error("no such owner")]
    UnknownOwner,
    /// The owner's kill switch is on.
    #[error("the owner's kill switch is on: revive it first")]
    Killed,
    /// The tick is zero or too large.
    #[error("a tick is 1 to 2,000,000,000")]
    BadTick,
    /// The size is zero.
    #[error("an order has at least one lot")]
    NoLots,
    /// The limit is beyond the collar.
    #[error("the limit is beyond the collar: the furthest is {nearest}")]
    Collar {
        /// The furthest permitted tick of this side.
        nearest: u32,
    },
    /// Only good-till-cancelled orders, not post-only, take part in a call.
    #[error("a call takes good-till-cancelled orders without post-only")]
    NotInCall,
    /// Another open order of the owner has this reference.
    #[error("an open order of the owner has this reference")]
    Duplicate,
    /// No open order of the owner has this reference.
    #[error("no open order of the owner has this reference")]
    Unknown,
    /// The owner has as many open orders as it may have.
    #[error("the owner has too many open orders: cancel some")]
    TooManyOrders,
    /// The book holds as many orders as it can.
    #[error("the book is full")]
    BookFull,
    /// A post-only order would trade.
    #[error("a post-only order would trade at {best}")]
    WouldTake {
        /// The best tick of the other side.
        best: u32,
    },
    /// A fill-or-kill order cannot trade whole within its limit, or meets an order of its owner.
    #[error("the order cannot be filled whole")]
    NotFillable,
    /// A fill-or-kill order would meet more orders than one may.
    #[error("the order would meet more than {most} orders")]
    TooManyMakers {
        /// The most that it may meet.
        most: u32,
    },
    /// The command does not fit the phase.
    #[error("not in this phase")]
    WrongPhase,
    /// Trading cannot go on: the book is crossed.
    #[error("the book is crossed: end the call by an auction")]
    Crossed,
    /// The collar is empty or out of range.
    #[error("a collar is a range of ticks")]
    BadCollar,
}

/// Why an open order, or its rest, ended without a trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Its owner asked for it.
    Asked,
    /// It was immediate-or-cancel.
    Immediate,
    /// It met an order of its owner.
    SelfTrade,
    /// The owner's kill switch.
    Killed,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BookEvent {
    /// An order is taken.
    Accepted {
        /// The order.
        party: Party,
        /// Its side.
        side: Side,
        /// Its limit.
        tick: u32,
        /// Its size.
        lots: u32,
    },
    /// A command about an order is refused.
    Refused {
        /// Whose command.
        owner: u32,
        /// The reference that it names.
        reference: u32,
        /// Why.
        why: BookRefusal,
    },
    /// A command about the market is refused.
    MarketRefused(BookRefusal),
    /// A trade.
    Executed {
        /// The order that rested, or of an auction the earlier one.
        maker: Party,
        /// The other one.
        taker: Party,
        /// The taker's side.
        side: Side,
        /// The price.
        tick: u32,
        /// The size.
        lots: u32,
        /// What is left of the maker.
        maker_left: u32,
        /// What is left of the taker.
        taker_left: u32,
    },
    /// An order ended.
    Cancelled {
        /// The order.
        party: Party,
        /// The lots that were open.
        lots: u32,
        /// Why.
        why: Ended,
    },
    /// An order has another price, size or reference.
    Replaced {
        /// The order, under its new reference.
        party: Party,
        /// Its limit.
        tick: u32,
        /// Its open lots.
        lots: u32,
        /// Whether it kept its place in the queue.
        kept: bool,
    },
    /// The phase changed.
    Phase(Phase),
    /// The result of an auction; its trades precede it. Nothing, if no price lets anything trade within the collar.
    Auction {
        /// The price, if anything traded.
        tick: Option<u32>,
        /// The lots traded.
        lots: u64,
    },
}

/// Takes events.
pub trait Sink {
    /// The next event.
    fn event(&mut self, event: BookEvent);
}

impl Sink for Vec<BookEvent> {
    fn event(&mut self, event: BookEvent) {
        self.push(event);
    }
}

/// Counts nothing and keeps nothing.
impl Sink for () {
    fn event(&mut self, _: BookEvent) {}
}
