//! Answers of a venue's door: how orders stand, executions, books.
//!
//! Ids, indices of fills and units are decimal strings; numbers of events count what has happened and stay small.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ErrorText, OrderNumberBody};

/// A side of a market.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SideBody {
    /// It buys.
    Buy,
    /// It sells.
    Sell,
}

/// A level of a book: tick, lots, orders.
pub type VenueLevel = (u32, u64, u32);

/// The markets of a venue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DoorMarketsBody {
    /// By number.
    pub markets: Vec<DoorMarketBody>,
}

/// A market, with what a trader must know of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DoorMarketBody {
    /// Its number.
    pub market: u32,
    /// Its symbol in OUCH and ITCH.
    pub symbol: String,
    /// The number of the base asset.
    pub base: u32,
    /// The number of the quote asset.
    pub quote: u32,
    /// Base units of a lot.
    pub lot_units: String,
    /// Quote units of a tick and lot.
    pub tick_units: String,
    /// The most lots of a fill.
    pub lots_max: u32,
    /// The most fees of an order, in millionths.
    pub fee_cap_ppm: u32,
    /// What the venue takes of a maker, in millionths; a rebate is negative.
    pub maker_ppm: Option<i32>,
    /// What the venue takes of a taker.
    pub taker_ppm: Option<u32>,
    /// The fewest lots of an order.
    pub lots_min: Option<u32>,
    /// What an order must be worth, in quote units, at the worst price that it may get: its tick, for a buy also the
    /// best sale that it meets. So its fees pay for its entry on the ledger.
    pub least_quote_units: Option<String>,
    /// `trading`, `call`, `halted`, or `closed` where the root has not opened it.
    pub phase: String,
    /// The best buy, in ticks.
    pub bid: Option<u32>,
    /// The best sale.
    pub ask: Option<u32>,
    /// The last trade, in ticks, as far back as this node knows.
    pub last: Option<u32>,
    /// The last 24 hours; null if nothing traded in them.
    pub day: Option<VenueDayBody>,
}

/// What a market of a venue traded in the last 24 hours, of which minutes count as a whole. Prices are ticks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VenueDayBody {
    /// The first minute of them that traded, milliseconds since 1970.
    pub since_ms: u64,
    /// Whether this node knows all of the 24 hours.
    pub complete: bool,
    /// The first price.
    pub open: u32,
    /// The highest.
    pub high: u32,
    /// The lowest.
    pub low: u32,
    /// The last.
    pub close: u32,
    /// Change from the first to the last price, in per cent.
    pub change_percent: String,
    /// Lots.
    pub lots: String,
    /// Base units.
    pub base_volume: String,
    /// Quote units.
    pub quote_volume: String,
    /// Executions.
    pub trades: u64,
}

/// Executions of a market, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VenueTradesBody {
    /// The market.
    pub market: u32,
    /// The executions. They are told before they are settled, and stay if they become bust.
    pub trades: Vec<VenueTradeBody>,
    /// The `cursor` of the next page, if there may be one. The venue keeps the newest 4,096 of a market.
    pub next: Option<String>,
}

/// An execution, without its parties.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VenueTradeBody {
    /// The fill's index in the tree of the incarnation.
    pub index: String,
    /// The venue's clock, milliseconds since 1970.
    pub time_ms: u64,
    /// The side that took.
    pub side: SideBody,
    /// The price.
    pub tick: u32,
    /// Lots.
    pub lots: u32,
}

/// The best levels of a book.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BookTopBody {
    /// Buys, the best first: tick, lots, orders.
    #[schema(value_type = Vec<Vec<u64>>)]
    pub bids: Vec<VenueLevel>,
    /// Sells, the best first.
    #[schema(value_type = Vec<Vec<u64>>)]
    pub asks: Vec<VenueLevel>,
    /// CRC-32 of the ten best levels as `tick:lots:orders;`, buys and then sells.
    pub checksum: u32,
}

/// The levels of a book.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VenueBookBody {
    /// The market.
    pub market: u32,
    /// The number of the last event that they contain.
    pub event: u64,
    /// The phase.
    pub phase: String,
    /// The levels.
    #[serde(flatten)]
    pub top: BookTopBody,
}

/// The resting orders of a market: a reader that begins takes them, and then the events above the one named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BookImageBody {
    /// The market.
    pub market: u32,
    /// The number of the last event that it contains.
    pub event: u64,
    /// The phase.
    pub phase: String,
    /// Buys and then sells, each in the order in which they trade.
    pub orders: Vec<RestingOrderBody>,
    /// The checksum of the ten best levels.
    pub checksum: u32,
}

/// An order that rests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RestingOrderBody {
    /// Its id.
    pub id: String,
    /// Its side.
    pub side: SideBody,
    /// Its price.
    pub tick: u32,
    /// Its open lots.
    pub lots: u32,
}

/// The results of a call that places orders, in their order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlacedBody {
    /// One for each order.
    pub results: Vec<PlacedResult>,
}

/// What one order came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlacedResult {
    /// The reports that it caused at once.
    Reports(Vec<ReportBody>),
    /// It was not taken to the venue's root.
    Error(ErrorText),
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum AnswerBody {
    /// To `fills`.
    Fills(OwnFillsBody),
    /// To all others.
    Reports(ReportsBody),
}

/// What a request caused at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReportsBody {
    /// The reports.
    pub reports: Vec<ReportBody>,
    /// Where an open order stands in its queue, if its status was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<PositionBody>,
}

/// Where an order stands in its queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PositionBody {
    /// Orders of the same tick that came earlier.
    pub orders_ahead: u32,
    /// Their lots.
    pub lots_ahead: String,
    /// The order's own open lots.
    pub lots: u32,
}

/// Own fills from an index on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OwnFillsBody {
    /// The sides of fills that belong to the key.
    pub fills: Vec<OwnVenueFillBody>,
    /// The index to go on with.
    pub next: String,
    /// How many fills of the incarnation are settled or bust.
    pub settled: String,
}

/// A side of a fill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OwnVenueFillBody {
    /// The number of the order.
    pub number: OrderNumberBody,
    /// What was executed, with its signed report.
    #[serde(flatten)]
    pub executed: ExecutedBody,
    /// Quote units, without fees.
    pub quote: String,
    /// Base units.
    pub base: String,
    /// The certified height that it was matched on.
    pub matched: String,
}

/// A report about an order. It has the part that its type names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReportBody {
    /// The trading key.
    pub key: String,
    /// The order's number.
    pub number: OrderNumberBody,
    /// `accepted`, `refused`, `executed`, `reduced`, `ended`, `overtaken`, `settled` or `status`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The order was taken; a retry gets the same answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<AcceptedBody>,
    /// It was not, or something about it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<ErrorText>,
    /// It traded: not settled yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executed: Option<ExecutedBody>,
    /// It has fewer lots, and its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduced: Option<ReducedBody>,
    /// It is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<OrderEndedBody>,
    /// Its cancel came before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overtaken: Option<OvertakenBody>,
    /// A fill of it has its fate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<FillFateBody>,
    /// How it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<StandingBody>,
}

/// An order was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AcceptedBody {
    /// Its id in market data.
    pub id: String,
    /// The lots that were open when it came.
    pub lots: u32,
    /// The order that it replaces.
    pub replaces: Option<OrderNumberBody>,
    /// Whether it has that one's place in the queue.
    pub keeps_place: bool,
}

/// A side of a fill, as it was executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExecutedBody {
    /// The fill's index in the tree of the incarnation.
    pub index: String,
    /// The market.
    pub market: u32,
    /// The side.
    pub side: SideBody,
    /// Lots.
    pub lots: u32,
    /// The price.
    pub tick: u32,
    /// Quote units that this side pays; below zero what it is paid.
    pub fee: String,
    /// Whether it took.
    pub is_taker: bool,
    /// Open lots that are left; not among fills.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<u32>,
    /// The report with the venue's signature: keep it.
    pub report: String,
}

/// An order has fewer lots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReducedBody {
    /// Its open lots.
    pub lots: u32,
}

/// An order is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OrderEndedBody {
    /// Open lots that were left.
    pub lots: u32,
    /// Why: `filled`, `cancelled`, `replaced`, `immediate`, `self_trade`, `killed`, `expired`, `revoked`,
    /// `below_floor`, `uncovered`, `disconnected`, `dead_man`, `band_in_call`, `stopped` or `frozen`.
    pub why: String,
}

/// A cancel came before its order: the order will be refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OvertakenBody {}

/// A fill has its fate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FillFateBody {
    /// Its index.
    pub index: String,
    /// The height of its settle.
    pub height: String,
    /// `applied`, or the rule that the fill broke: `parties`, `dead`, `expired`, `outside`, `size`, `deposit`,
    /// `drawdown` or `fenced`.
    pub fate: String,
}

/// How an order stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StandingBody {
    /// `open`, `ended`, `refused`, `overtaken`, or `unknown`.
    pub standing: String,
    /// Its id, if it was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Why it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Open lots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<u32>,
    /// Executed lots that wait for their settle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executed: Option<u32>,
    /// Executed lots that are settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<u32>,
    /// Executed lots that are bust.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bust: Option<u32>,
    /// The code of its refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The sentence of its refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The operator's command is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DoneBody {
    /// Always.
    pub done: bool,
}
