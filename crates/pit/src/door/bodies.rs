//! Bodies of orders, requests and reports over HTTP and WebSocket.

use primitives::venue::{MarketId, OrderLife, OrderNumber, SelfTradeRule, SettledOrder, VenueOrder, VenueSide};
use primitives::{PublicKey, Signature, to_hex};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use venue::{MarketEvent, OrderStanding, ReportKind, TradeReport, TraderAsk, TraderRequest, VenueFill};

use crate::events::BookTop;
use crate::words::{end_code, fate_code, refusal_name};

/// The number of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// A side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SideBody {
    /// It buys.
    Buy,
    /// It sells.
    Sell,
}

impl From<SideBody> for VenueSide {
    fn from(side: SideBody) -> VenueSide {
        match side {
            SideBody::Buy => VenueSide::Buy,
            SideBody::Sell => VenueSide::Sell,
        }
    }
}

fn side_body(side: VenueSide) -> SideBody {
    match side {
        VenueSide::Buy => SideBody::Buy,
        VenueSide::Sell => SideBody::Sell,
    }
}

/// How an order trades.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
            side: self.side.into(),
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
            AskBody::CancelAll { market, side } => TraderAsk::CancelAll { market, side: side.map(VenueSide::from) },
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

fn number(number: OrderNumber) -> Value {
    json!(NumberBody::from(number))
}

/// A report.
pub fn report_body(report: &TradeReport) -> Value {
    let mut body = json!({ "key": report.key.to_string(), "number": number(report.number) });
    let (kind, what) = match &report.what {
        ReportKind::Accepted(of) => (
            "accepted",
            json!({ "id": of.id.to_string(), "lots": of.lots, "replaces": of.replaces.map(number),
                "keeps_place": of.keeps_place }),
        ),
        ReportKind::Refused(why) => ("refused", json!({ "code": refusal_name(why).1, "message": why.to_string() })),
        ReportKind::Executed(of, report) => {
            let signed = borsh::to_vec(&**report).expect("writing to memory cannot fail");
            (
                "executed",
                json!({ "index": of.index.to_string(), "market": of.market, "side": side_body(of.side),
                "lots": of.lots, "tick": of.tick, "fee": of.fee.to_string(), "is_taker": of.is_taker, "left": of.left,
                "report": hex(&signed) }),
            )
        }
        ReportKind::Reduced { lots } => ("reduced", json!({ "lots": lots })),
        ReportKind::Ended { lots, why } => ("ended", json!({ "lots": lots, "why": end_code(why) })),
        ReportKind::Overtaken => ("overtaken", json!({})),
        ReportKind::Settled { index, height, fate } => {
            ("settled", json!({ "index": index.to_string(), "height": height.to_string(), "fate": fate_code(fate) }))
        }
        ReportKind::Status(standing) => {
            ("status", standing.as_ref().map_or(json!({ "standing": "unknown" }), standing_body))
        }
    };
    body["type"] = kind.into();
    body[kind] = what;
    body
}

fn standing_body(standing: &OrderStanding) -> Value {
    match standing {
        OrderStanding::Taken { accepted, ended, open, executed, settled, bust } => json!({
            "standing": if ended.is_some() { "ended" } else { "open" },
            "id": accepted.id.to_string(), "why": ended.as_ref().map(end_code),
            "open": open, "executed": executed, "settled": settled, "bust": bust,
        }),
        OrderStanding::Refused(why) => {
            json!({ "standing": "refused", "code": refusal_name(why).1, "message": why.to_string() })
        }
        OrderStanding::Overtaken => json!({ "standing": "overtaken" }),
    }
}

/// The sides of a fill that belong to a key, with the signed report of each.
pub(super) fn fill_body(fill: &VenueFill, side: VenueSide, report: &primitives::venue::FillReport) -> Value {
    let (of, party) = (fill.execution(side), fill.party(side));
    json!({ "index": of.index.to_string(), "number": number(party.number), "market": of.market,
        "side": side_body(side), "lots": of.lots, "tick": of.tick, "fee": of.fee.to_string(), "is_taker": of.is_taker,
        "quote": fill.quote.to_string(), "base": fill.base.to_string(), "matched": fill.matched.to_string(),
        "report": hex(&borsh::to_vec(report).expect("writing to memory cannot fail")) })
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
pub(super) fn top_body(top: &BookTop) -> Value {
    let levels = |levels: &[(u32, u64, u32)]| -> Vec<Value> {
        levels.iter().map(|(tick, lots, orders)| json!([tick, lots, orders])).collect()
    };
    json!({ "bids": levels(&top.bids), "asks": levels(&top.asks), "checksum": top.checksum() })
}
