//! What a root is told. All of it is journaled in its place.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::venue::{MarketId, OrderNumber, VenueOperator, VenueSide};
use primitives::{Address, PublicKey};

use crate::checked::{CheckedOrder, CheckedOrderList};
use crate::facts::CertifiedFacts;
use crate::settings::MarketSettings;

/// A session, by a number that its host chooses.
pub type SessionNumber = u64;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum VenueInput {
    /// A session says something.
    Trade(SessionNumber, TradeCommand),
    /// A session begins, or begins again after its link broke; its host has authenticated it for these keys.
    Attach {
        /// The session.
        session: SessionNumber,
        /// Keys whose orders it may place and end.
        keys: Vec<PublicKey>,
        /// Whether its open orders end when it detaches.
        ends_orders: bool,
        /// Its open orders end if it says nothing for this long; at most a day counts.
        dead_man_ms: Option<u64>,
    },
    /// A session's link broke, or it said goodbye.
    Detach(SessionNumber),
    /// A session shows that it lives.
    Heartbeat(SessionNumber),
    /// A certified block.
    Certified(CertifiedFacts),
    /// Nothing happened, but time went on.
    Tick,
    /// Opens the book of a market that the venue has listed.
    OpenMarket(MarketId, MarketSettings),
    /// Steers a market.
    Steer(MarketId, Steering),
    /// The root has the keys of this operator from now on; a root says so itself.
    Operate(VenueOperator),
    /// Ends all orders of an account and refuses new ones.
    Kill(Address),
    /// Lets an account trade again.
    Revive(Address),
    /// The root was opened: matching pauses until a certified block comes. A root says so itself.
    Opened,
    /// A session places the orders of a list, in their order.
    List(SessionNumber, CheckedOrderList),
}

/// What a session says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum TradeCommand {
    /// Places an order.
    New(CheckedOrder),
    /// Places an order in the stead of an open one of the same key, market and side. It states the *total* lots: those
    /// that the replaced one has executed count.
    Replace(OrderNumber, CheckedOrder),
    /// Ends an order, or lowers its total lots and keeps its place in the queue.
    Cancel {
        /// The key.
        key: PublicKey,
        /// The order's number.
        number: OrderNumber,
        /// Its total lots from now on; with those executed or fewer it ends.
        keeps: u32,
    },
    /// Ends the open orders of a key: of one market, of one side, or all.
    CancelAll {
        /// The key.
        key: PublicKey,
        /// Only of this market.
        market: Option<MarketId>,
        /// Only of this side.
        side: Option<VenueSide>,
    },
    /// Asks how an order stands.
    Status(PublicKey, OrderNumber),
}

/// What the operator does to a market.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Steering {
    /// Stops trading: orders may only be cancelled.
    Halt,
    /// Goes on after a halt.
    Resume,
    /// Begins a call: orders rest without trading.
    Call,
    /// Ends a call by an auction.
    Uncross {
        /// The tick that decides between equally good ones.
        reference: u32,
        /// Whether the market is halted afterwards.
        then_halts: bool,
    },
    /// Sets the lowest and the highest tick at which trades may take place.
    SetCollar {
        /// The lowest.
        low: u32,
        /// The highest.
        high: u32,
    },
}
