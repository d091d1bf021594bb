//! Bodies of orders, requests and reports over HTTP and WebSocket.

use api::{
    AcceptedBody, BookTopBody, ErrorText, ExecutedBody, FillFateBody, OrderEndedBody, OrderNumberBody, OvertakenBody,
    OwnVenueFillBody, ReducedBody, ReportBody, SideBody, StandingBody,
};
use primitives::venue::{
    FillReport, MarketId, OrderLife, OrderNumber, SelfTradeRule, SettledOrder, VenueOrder, VenueSide,
};
use primitives::{PublicKey, Signature, to_hex};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use venue::{
    MarketEvent, OrderExecution, OrderRefusal, OrderStanding, ReportKind, TradeReport, TraderAsk, TraderRequest,
    VenueFill,
};

use crate::events::BookTop;
use crate::words::{end_code, fate_code, refusal_name};

/// The number of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NumberBody {
    /// The incarnation of the venue.
    pub incarnation: u32,
    /// The day.
    pub day: u16,
    /// The client's reference.
    pub reference: u32,
}

impl From<OrderNumber> for NumberBody {
    fn from(OrderNumber { incarnation, day, reference }: OrderNumber) -> NumberBody {
        NumberBody { incarnation, day, reference }
    }
}

impl From<NumberBody> for OrderNumber {
    fn from(NumberBody { incarnation, day, reference }: NumberBody) -> OrderNumber {
        OrderNumber { incarnation, day, reference }
    }
}

fn venue_side(side: SideBody) -> VenueSide {
    match side {
        SideBody::Buy => VenueSide::Buy,
        SideBody::Sell => VenueSide::Sell,
    }
}

pub(super) fn side_body(side: VenueSide) -> SideBody {
    match side {
        VenueSide::Buy => SideBody::Buy,
        VenueSide::Sell => SideBody::Sell,
    }
}

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
    pub market: MarketId,
    /// Its number.
    pub number: NumberBody,
    /// Lower numbers are dead once it is filled; by default the lowest of its incarnation.
    #[serde(default)]
    pub floor: Option<NumberBody>,
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

impl OrderBody {
    /// The body of a signed order.
    pub fn of(signed: &SettledOrder, replaces: Option<RequestBody>) -> OrderBody {
        let order = signed.order;
        OrderBody {
            key: signed.key.to_string(),
            market: order.market,
            number: order.number.into(),
            floor: Some(order.floor.into()),
            side: side_body(order.side),
            life: match order.life {
                OrderLife::Rests => LifeBody::Rests,
                OrderLife::PostOnly => LifeBody::PostOnly,
                OrderLife::ImmediateOrCancel => LifeBody::ImmediateOrCancel,
                OrderLife::FillOrKill => LifeBody::FillOrKill,
            },
            self_trade: match order.self_trade {
                SelfTradeRule::ExpireMaker => SelfTradeBody::ExpireMaker,
                SelfTradeRule::ExpireTaker => SelfTradeBody::ExpireTaker,
                SelfTradeRule::ExpireBoth => SelfTradeBody::ExpireBoth,
            },
            tick: order.tick,
            lots: order.lots,
            expiry: order.expiry,
            until_ms: order.until_ms,
            fee_cap_ppm: order.fee_cap_ppm,
            signature: hex(&signed.signature.map_or([0; 64], |signature| signature.0)),
            replaces,
        }
    }

    /// The order that it says.
    ///
    /// # Errors
    /// The field that is no key or no signature.
    pub fn signed(&self) -> Result<SettledOrder, String> {
        let number: OrderNumber = self.number.into();
        let lowest = OrderNumber { incarnation: number.incarnation, day: 0, reference: 0 };
        let order = VenueOrder {
            market: self.market,
            number,
            floor: self.floor.map_or(lowest, OrderNumber::from),
            side: venue_side(self.side),
            life: match self.life {
                LifeBody::Rests => OrderLife::Rests,
                LifeBody::PostOnly => OrderLife::PostOnly,
                LifeBody::ImmediateOrCancel => OrderLife::ImmediateOrCancel,
                LifeBody::FillOrKill => OrderLife::FillOrKill,
            },
            self_trade: match self.self_trade {
                SelfTradeBody::ExpireMaker => SelfTradeRule::ExpireMaker,
                SelfTradeBody::ExpireTaker => SelfTradeRule::ExpireTaker,
                SelfTradeBody::ExpireBoth => SelfTradeRule::ExpireBoth,
            },
            tick: self.tick,
            lots: self.lots,
            expiry: self.expiry,
            until_ms: self.until_ms,
            fee_cap_ppm: self.fee_cap_ppm,
        };
        Ok(SettledOrder { key: key(&self.key)?, order, signature: Some(signature(&self.signature)?) })
    }
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
        number: NumberBody,
        /// Its total lots from now on; zero ends it.
        #[serde(default)]
        keeps: u32,
    },
    /// End many orders.
    CancelAll {
        /// Only of this market.
        #[serde(default)]
        market: Option<MarketId>,
        /// Only of this side.
        #[serde(default)]
        side: Option<SideBody>,
    },
    /// Replace an order; stands with the new one.
    Replace {
        /// The open order.
        old: NumberBody,
        /// The new one.
        new: NumberBody,
    },
    /// How an order stands.
    Status {
        /// Its number.
        number: NumberBody,
    },
    /// Fills of the key, with their reports.
    Fills {
        /// The first index.
        from: u64,
    },
    /// A drop copy of the account.
    Watch {},
}

impl From<AskBody> for TraderAsk {
    fn from(ask: AskBody) -> TraderAsk {
        match ask {
            AskBody::Attach { session, ends_orders, dead_man_ms } => {
                TraderAsk::Attach { session, ends_orders, dead_man_ms }
            }
            AskBody::Cancel { number, keeps } => TraderAsk::Cancel { number: number.into(), keeps },
            AskBody::CancelAll { market, side } => TraderAsk::CancelAll { market, side: side.map(venue_side) },
            AskBody::Replace { old, new } => TraderAsk::Replace { old: old.into(), new: new.into() },
            AskBody::Status { number } => TraderAsk::Status(number.into()),
            AskBody::Fills { from } => TraderAsk::Fills(from),
            AskBody::Watch {} => TraderAsk::Watch,
        }
    }
}

impl From<TraderAsk> for AskBody {
    fn from(ask: TraderAsk) -> AskBody {
        match ask {
            TraderAsk::Attach { session, ends_orders, dead_man_ms } => {
                AskBody::Attach { session, ends_orders, dead_man_ms }
            }
            TraderAsk::Cancel { number, keeps } => AskBody::Cancel { number: number.into(), keeps },
            TraderAsk::CancelAll { market, side } => AskBody::CancelAll { market, side: side.map(side_body) },
            TraderAsk::Replace { old, new } => AskBody::Replace { old: old.into(), new: new.into() },
            TraderAsk::Status(number) => AskBody::Status { number: number.into() },
            TraderAsk::Fills(from) => AskBody::Fills { from },
            TraderAsk::Watch => AskBody::Watch {},
        }
    }
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

impl RequestBody {
    /// The body of a signed request.
    pub fn of(request: &TraderRequest) -> RequestBody {
        let (key, signature) = (request.key.to_string(), hex(&request.signature.0));
        RequestBody { key, stamp_ms: request.stamp_ms, ask: request.ask.into(), signature }
    }

    /// The request that it says.
    ///
    /// # Errors
    /// The field that is no key or no signature.
    pub fn request(&self) -> Result<TraderRequest, String> {
        let (key, signature) = (key(&self.key)?, signature(&self.signature)?);
        Ok(TraderRequest { key, stamp_ms: self.stamp_ms, ask: self.ask.into(), signature })
    }
}

fn key(text: &str) -> Result<PublicKey, String> {
    text.parse().map_err(|error| format!("key: {error}"))
}

fn signature(text: &str) -> Result<Signature, String> {
    primitives::from_hex(text).map(Signature).map_err(|error| format!("signature: {error}"))
}

fn hex(bytes: &[u8]) -> String {
    format!("0x{}", to_hex(bytes))
}

fn number(OrderNumber { incarnation, day, reference }: OrderNumber) -> OrderNumberBody {
    OrderNumberBody { incarnation, day, reference }
}

fn refused(why: &OrderRefusal) -> ErrorText {
    ErrorText { code: refusal_name(why).1.into(), message: why.to_string() }
}

/// A report.
pub fn report_body(report: &TradeReport) -> ReportBody {
    let mut body = ReportBody { key: report.key.to_string(), number: number(report.number), ..ReportBody::default() };
    let kind = match &report.what {
        ReportKind::Accepted(of) => {
            let (id, replaces) = (of.id.to_string(), of.replaces.map(number));
            body.accepted = Some(AcceptedBody { id, lots: of.lots, replaces, keeps_place: of.keeps_place });
            "accepted"
        }
        ReportKind::Refused(why) => {
            body.refused = Some(refused(why));
            "refused"
        }
        ReportKind::Executed(of, report) => {
            body.executed = Some(ExecutedBody { left: Some(of.left), ..executed_body(of, report) });
            "executed"
        }
        ReportKind::Reduced { lots } => {
            body.reduced = Some(ReducedBody { lots: *lots });
            "reduced"
        }
        ReportKind::Ended { lots, why } => {
            body.ended = Some(OrderEndedBody { lots: *lots, why: end_code(why).into() });
            "ended"
        }
        ReportKind::Overtaken => {
            body.overtaken = Some(OvertakenBody {});
            "overtaken"
        }
        ReportKind::Settled { index, height, fate } => {
            let (index, height) = (index.to_string(), height.to_string());
            body.settled = Some(FillFateBody { index, height, fate: fate_code(fate).into() });
            "settled"
        }
        ReportKind::Status(standing) => {
            body.status = Some(standing.as_ref().map_or_else(|| standing_of("unknown"), standing_body));
            "status"
        }
    };
    body.kind = kind.into();
    body
}

fn standing_of(standing: &str) -> StandingBody {
    StandingBody { standing: standing.into(), ..StandingBody::default() }
}

fn standing_body(standing: &OrderStanding) -> StandingBody {
    match standing {
        OrderStanding::Taken { accepted, ended, open, executed, settled, bust } => StandingBody {
            id: Some(accepted.id.to_string()),
            why: ended.as_ref().map(|why| end_code(why).into()),
            open: Some(*open),
            executed: Some(*executed),
            settled: Some(*settled),
            bust: Some(*bust),
            ..standing_of(if ended.is_some() { "ended" } else { "open" })
        },
        OrderStanding::Refused(why) => {
            let ErrorText { code, message } = refused(why);
            StandingBody { code: Some(code.into_owned()), message: Some(message), ..standing_of("refused") }
        }
        OrderStanding::Overtaken => standing_of("overtaken"),
    }
}

fn executed_body(of: &OrderExecution, report: &FillReport) -> ExecutedBody {
    ExecutedBody {
        index: of.index.to_string(),
        market: of.market,
        side: side_body(of.side),
        lots: of.lots,
        tick: of.tick,
        fee: of.fee.to_string(),
        is_taker: of.is_taker,
        left: None,
        report: hex(&borsh::to_vec(report).expect("writing to memory cannot fail")),
    }
}

/// The side of a fill that belongs to a key, with its signed report.
pub(super) fn fill_body(fill: &VenueFill, side: VenueSide, report: &FillReport) -> OwnVenueFillBody {
    OwnVenueFillBody {
        number: number(fill.party(side).number),
        executed: executed_body(&fill.execution(side), report),
        quote: fill.quote.to_string(),
        base: fill.base.to_string(),
        matched: fill.matched.to_string(),
    }
}

/// An event of market data.
pub(super) fn event_body(number: u64, event: &MarketEvent) -> Value {
    let mut body = match *event {
        MarketEvent::Added { id, side, tick, lots } => {
            json!({ "added": { "id": id.to_string(), "side": side_body(side), "tick": tick, "lots": lots } })
        }
        MarketEvent::Executed { id, lots, tick, trade } => {
            json!({ "executed": { "id": id.to_string(), "lots": lots, "tick": tick, "index": trade.to_string() } })
        }
        MarketEvent::Reduced { id, lots } => json!({ "reduced": { "id": id.to_string(), "lots": lots } }),
        MarketEvent::Deleted { id } => json!({ "deleted": { "id": id.to_string() } }),
        MarketEvent::Renamed { id, to, lots } => {
            json!({ "renamed": { "id": id.to_string(), "to": to.to_string(), "lots": lots } })
        }
        MarketEvent::Phase(phase) => json!({ "phase": phase_code(phase) }),
        MarketEvent::Auction { tick, lots } => json!({ "auction": { "tick": tick, "lots": lots.to_string() } }),
        MarketEvent::Collar { low, high } => json!({ "collar": { "low": low, "high": high } }),
    };
    body["event"] = number.into();
    body
}

/// The phase of a market.
pub(super) fn phase_code(phase: matching::Phase) -> String {
    format!("{phase:?}").to_lowercase()
}

/// The best levels of a book.
pub(super) fn top_body(top: &BookTop) -> BookTopBody {
    BookTopBody { bids: top.bids.clone(), asks: top.asks.clone(), checksum: top.checksum() }
}
