//! What a root says: to sessions, to readers of market data, and to the ledger.

use borsh::{BorshDeserialize, BorshSerialize};
use matching::Phase;
use primitives::venue::{MarketId, OrderNumber, SettledFill, VenueReport, VenueSide};
use primitives::{Address, Amount, Digest, Height, PublicKey, Transaction};

use crate::facts::FillFate;
use crate::input::SessionNumber;
use crate::refusal::{OrderEnd, OrderRefusal, VenuePause, VenueStop};

/// What the host does, in this order. All of it is durable in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VenueEffect {
    /// Tell a session, if it is attached.
    Report(TradeReport),
    /// Tell readers of market data: the next event of a market, by its number from 1.
    Market(MarketId, u64, MarketEvent),
    /// Submit a settle to the pool, and to the pools of 2f + 1 validators. It is the same transaction each time.
    Submit(Box<Transaction>),
    /// Tell everybody that matching pauses, or goes on.
    Pause(Option<VenuePause>),
    /// Give the certified block of this height next; others are ignored.
    WantsBlock(Height),
    /// A command of the operator is refused.
    Refused(MarketId, OrderRefusal),
    /// Nothing is matched, reported or settled any more.
    Stopped(VenueStop),
}

/// A report about an order of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TradeReport {
    /// The session that placed the order, or that asked.
    pub session: SessionNumber,
    /// The key.
    pub key: PublicKey,
    /// The order's number.
    pub number: OrderNumber,
    /// What happened.
    pub what: ReportKind,
}

/// What happened to an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportKind {
    /// It is taken.
    Accepted(Acceptance),
    /// It is refused; nothing changed.
    Refused(OrderRefusal),
    /// It traded. *Executed is not settled.*
    Executed(Box<OrderExecution>, Box<VenueReport>),
    /// Its total lots are lower; it kept its place.
    Reduced {
        /// Its open lots.
        lots: u32,
    },
    /// It ended.
    Ended {
        /// Lots that were open.
        lots: u32,
        /// Why.
        why: OrderEnd,
    },
    /// A cancel came before its order, which will be refused.
    Overtaken,
    /// A fill of it is settled, or bust.
    Settled {
        /// The fill.
        index: u64,
        /// The height of the block.
        height: Height,
        /// Applied, or why it is bust.
        fate: FillFate,
    },
    /// How it stands; nothing if its number is unknown.
    Status(Option<OrderStanding>),
}

/// The first answer to an order that is taken; a retry gets it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Acceptance {
    /// The id that market data has for it; never issued twice.
    pub id: u64,
    /// The lots that were open when it arrived.
    pub lots: u32,
    /// The order whose stead it takes.
    pub replaces: Option<OrderNumber>,
    /// Whether it kept the place of the replaced one in the queue.
    pub keeps_place: bool,
}

/// A side of a fill, as its trader gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderExecution {
    /// The fill's index in the tree of the incarnation: the id of the trade.
    pub index: u64,
    /// The market.
    pub market: MarketId,
    /// The side of the order.
    pub side: VenueSide,
    /// Lots.
    pub lots: u32,
    /// Price.
    pub tick: u32,
    /// Quote units paid in fees; a rebate is negative.
    pub fee: i64,
    /// Whether the order took.
    pub is_taker: bool,
    /// Open lots that are left.
    pub left: u32,
}

/// How an order stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderStanding {
    /// It was taken.
    Taken {
        /// Its first answer.
        accepted: Acceptance,
        /// Why it ended, if it did.
        ended: Option<OrderEnd>,
        /// Open lots.
        open: u32,
        /// Lots that it executed itself.
        executed: u32,
        /// Executed lots that are settled.
        settled: u32,
        /// Executed lots that are bust.
        bust: u32,
    },
    /// It was refused.
    Refused(OrderRefusal),
    /// A cancel came before it.
    Overtaken,
}

/// One side of a fill in the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct FillParty {
    /// The trading key.
    pub key: PublicKey,
    /// The order's number.
    pub number: OrderNumber,
    /// The account.
    pub account: Address,
    /// The session that placed the order.
    pub session: SessionNumber,
    /// The order's id in market data.
    pub id: u64,
    /// Open lots that were left.
    pub left: u32,
}

/// A fill, as it was reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct VenueFill {
    /// Its index in the tree of the incarnation.
    pub index: u64,
    /// Its leaf.
    pub leaf: Digest,
    /// The market.
    pub market: MarketId,
    /// Who buys.
    pub buyer: FillParty,
    /// Who sells.
    pub seller: FillParty,
    /// Lots, price, fees and the taker's side; the positions of orders mean nothing here.
    pub terms: SettledFill,
    /// Quote units, without fees.
    pub quote: Amount,
    /// Base units.
    pub base: Amount,
    /// The certified height that it was matched on.
    pub matched: Height,
}

impl VenueFill {
    /// One side of it.
    pub fn party(&self, side: VenueSide) -> &FillParty {
        match side {
            VenueSide::Buy => &self.buyer,
            VenueSide::Sell => &self.seller,
        }
    }

    /// What the trader of a side is told.
    pub fn execution(&self, side: VenueSide) -> OrderExecution {
        let SettledFill { lots, tick, fee_buy, fee_sell, taker, .. } = self.terms;
        let fee = if side == VenueSide::Buy { fee_buy } else { fee_sell };
        let left = self.party(side).left;
        OrderExecution { index: self.index, market: self.market, side, lots, tick, fee, is_taker: taker == side, left }
    }
}

/// An order that rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestingOrder {
    /// Its id.
    pub id: u64,
    /// Its side.
    pub side: VenueSide,
    /// Its price.
    pub tick: u32,
    /// Its open lots.
    pub lots: u32,
}

/// A market at one moment, for readers that begin or missed something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarketImage {
    /// The number of the last event that it contains.
    pub included: u64,
    /// The phase.
    pub phase: Phase,
    /// Buys and then sells, each in the order in which they trade.
    pub orders: Vec<RestingOrder>,
}

/// Market data of one market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarketEvent {
    /// An order rests.
    Added {
        /// Its id.
        id: u64,
        /// Its side.
        side: VenueSide,
        /// Its price.
        tick: u32,
        /// Its open lots.
        lots: u32,
    },
    /// A resting order traded. An auction's trade is told for both of its orders.
    Executed {
        /// The order.
        id: u64,
        /// Lots.
        lots: u32,
        /// The price.
        tick: u32,
        /// The fill's index: the id of the trade.
        trade: u64,
    },
    /// A resting order has fewer lots, and its place.
    Reduced {
        /// The order.
        id: u64,
        /// Lots that are gone.
        lots: u32,
    },
    /// A resting order ended.
    Deleted {
        /// The order.
        id: u64,
    },
    /// A resting order took another id, and kept its place.
    Renamed {
        /// Its id until now.
        id: u64,
        /// Its id from now on.
        to: u64,
        /// Its open lots.
        lots: u32,
    },
    /// The phase changed.
    Phase(Phase),
    /// An auction took place, at a price if anything traded.
    Auction {
        /// The price.
        tick: Option<u32>,
        /// Lots.
        lots: u64,
    },
    /// Trades take place between these ticks only.
    Collar {
        /// The lowest.
        low: u32,
        /// The highest.
        high: u32,
    },
}
