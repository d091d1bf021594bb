//! What a venue's door is asked: orders and requests with signed bodies, and the operator's commands.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{OrderNumberBody, SideBody};

/// How an order trades.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LifeBody {
    /// It rests.
    #[default]
    Rests,
    /// It rests and never takes.
    PostOnly,
    /// It takes at once what it can.
    ImmediateOrCancel,
    /// It takes all at once, or nothing.
    FillOrKill,
}

/// What happens if it meets its owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SelfTradeBody {
    /// The resting order expires.
    ExpireMaker,
    /// The incoming order expires.
    #[default]
    ExpireTaker,
    /// Both expire.
    ExpireBoth,
}

/// A signed order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OrderBody {
    /// The trading key.
    pub key: String,
    /// The market.
    pub market: u32,
    /// Its number.
    pub number: OrderNumberBody,
    /// Lower numbers are dead once it is filled; by default the lowest of its incarnation.
    #[serde(default)]
    pub floor: Option<OrderNumberBody>,
    /// The side.
    pub side: SideBody,
    /// How it trades.
    #[serde(default)]
    pub life: LifeBody,
    /// What it does if it meets its owner.
    #[serde(default)]
    pub self_trade: SelfTradeBody,
    /// Its limit price in ticks.
    pub tick: u32,
    /// Its size in lots.
    pub lots: u32,
    /// The last height of its life.
    pub expiry: u64,
    /// The last block time of its life, if it has one.
    #[serde(default)]
    pub until_ms: Option<u64>,
    /// The most that it pays in fees, in millionths.
    pub fee_cap_ppm: u32,
    /// The key's signature of the order.
    pub signature: String,
    /// The signed request to put it into the place of another order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<RequestBody>,
}

// The fields of `OrderBody` anew: serde joins no bodies that refuse unknown fields.
/// An order of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListedOrderBody {
    /// The market.
    pub market: u32,
    /// Its number, above that of the order before.
    pub number: OrderNumberBody,
    /// Lower numbers are dead once it is filled; by default the lowest of its incarnation.
    #[serde(default)]
    pub floor: Option<OrderNumberBody>,
    /// The side.
    pub side: SideBody,
    /// How it trades.
    #[serde(default)]
    pub life: LifeBody,
    /// What it does if it meets its owner.
    #[serde(default)]
    pub self_trade: SelfTradeBody,
    /// Its limit price in ticks.
    pub tick: u32,
    /// Its size in lots.
    pub lots: u32,
    /// The last height of its life.
    pub expiry: u64,
    /// The last block time of its life, if it has one.
    #[serde(default)]
    pub until_ms: Option<u64>,
    /// The most that it pays in fees, in millionths.
    pub fee_cap_ppm: u32,
    /// The open order in whose place it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<OrderNumberBody>,
}

/// Orders under one signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListBody {
    /// The trading key.
    pub key: String,
    /// 32 bytes that were drawn for this list alone, in hexadecimal.
    pub seed: String,
    /// 1 to 64 orders by ascending number.
    pub orders: Vec<ListedOrderBody>,
    /// The key's signature of the list.
    pub signature: String,
}

/// Lists of orders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlaceListsBody {
    /// Up to 4.
    pub lists: Vec<ListBody>,
}

/// What a request asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum AskBody {
    /// Attach a session.
    Attach {
        /// Its number among the sessions of the key; 0 is that of requests without one.
        session: u32,
        /// Whether its open orders end when its link breaks.
        #[serde(default)]
        ends_orders: bool,
        /// Its open orders end if it says nothing for this long.
        #[serde(default)]
        dead_man_ms: Option<u64>,
    },
    /// End an order, or lower its total lots.
    Cancel {
        /// Its number.
        number: OrderNumberBody,
        /// Its total lots from now on; zero ends it.
        #[serde(default)]
        keeps: u32,
    },
    /// End many orders.
    CancelAll {
        /// Only of this market.
        #[serde(default)]
        market: Option<u32>,
        /// Only of this side.
        #[serde(default)]
        side: Option<SideBody>,
    },
    /// Replace an order; stands with the new one.
    Replace {
        /// The open order.
        old: OrderNumberBody,
        /// The new one.
        new: OrderNumberBody,
    },
    /// How an order stands.
    Status {
        /// Its number.
        number: OrderNumberBody,
    },
    /// Fills of the key, with their reports.
    Fills {
        /// The first index.
        from: u64,
    },
    /// A drop copy of the account.
    Watch {},
}

/// A signed request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestBody {
    /// The trading key.
    pub key: String,
    /// Milliseconds since 1970 by the trader's clock; each is used once.
    pub stamp_ms: u64,
    /// What is asked.
    pub ask: AskBody,
    /// The key's signature.
    pub signature: String,
}

/// One order, or many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlaceBody {
    /// Up to 256.
    pub orders: Vec<OrderBody>,
}

/// A command of the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum OperatorBody {
    /// Stop trading in a market: orders may only be cancelled.
    Halt {
        /// The market.
        market: u32,
    },
    /// Go on after a halt.
    Resume {
        /// The market.
        market: u32,
    },
    /// Begin a call.
    Call {
        /// The market.
        market: u32,
    },
    /// End a call by an auction.
    Uncross {
        /// The market.
        market: u32,
        /// The tick that decides between equally good ones.
        reference: u32,
        /// Whether the market is halted afterwards.
        #[serde(default)]
        then_halts: bool,
    },
    /// Set the range of ticks at which trades take place.
    Collar {
        /// The market.
        market: u32,
        /// The lowest.
        low: u32,
        /// The highest.
        high: u32,
    },
    /// End all orders of an account, and refuse new ones.
    Kill {
        /// The account.
        account: String,
    },
    /// Let an account trade again.
    Revive {
        /// The account.
        account: String,
    },
}
