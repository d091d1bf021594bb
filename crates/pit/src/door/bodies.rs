//! Bodies of orders, requests and reports over HTTP and WebSocket.

use api::{
    AcceptedBody, AskBody, BookChange, BookEventBody, BookTopBody, ErrorText, ExecutedBody, FillFateBody, LifeBody,
    ListBody, ListedOrderBody, OrderBody, OrderEndedBody, OrderNumberBody, OvertakenBody, OwnVenueFillBody,
    ReducedBody, ReportBody, RequestBody, SelfTradeBody, SideBody, StandingBody,
};
use primitives::venue::{
    ListEntry, OrderLife, OrderList, OrderNumber, SelfTradeRule, SignedOrder, VenueOrder, VenueReport, VenueSide,
};
use primitives::{PublicKey, Signature, to_hex};
use venue::{
    MarketEvent, OrderExecution, OrderRefusal, OrderStanding, ReportKind, TradeReport, TraderAsk, TraderRequest,
    VenueFill,
};

use crate::codes::{end_code, fate_code, refusal_name};
use crate::events::BookTop;

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

fn order_number(OrderNumberBody { incarnation, day, reference }: OrderNumberBody) -> OrderNumber {
    OrderNumber { incarnation, day, reference }
}

/// The body of a signed order.
pub fn order_body(signed: &SignedOrder, replaces: Option<RequestBody>) -> OrderBody {
    let ListedOrderBody {
        market,
        number,
        floor,
        side,
        life,
        self_trade,
        tick,
        lots,
        expiry,
        until_ms,
        fee_cap_ppm,
        replaces: _,
    } = listed_body(&signed.order, None);
    let (key, signature) = (signed.key.to_string(), hex(&signed.signature.0));
    OrderBody {
        key,
        market,
        number,
        floor,
        side,
        life,
        self_trade,
        tick,
        lots,
        expiry,
        until_ms,
        fee_cap_ppm,
        signature,
        replaces,
    }
}

fn listed_body(order: &VenueOrder, replaces: Option<OrderNumber>) -> ListedOrderBody {
    ListedOrderBody {
        market: order.market,
        number: number(order.number),
        floor: Some(number(order.floor)),
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
        replaces: replaces.map(number),
    }
}

/// The body of a list.
pub fn list_body(list: &OrderList) -> ListBody {
    let order = |entry: &ListEntry| listed_body(&entry.order, entry.replaces);
    ListBody {
        key: list.key.to_string(),
        seed: hex(&list.seed),
        orders: list.entries.iter().map(order).collect(),
        signature: hex(&list.signature.0),
    }
}

/// The order that it says.
///
/// # Errors
/// The field that is no key or no signature.
pub fn signed_order(body: &OrderBody) -> Result<SignedOrder, String> {
    let OrderBody { market, number, floor, side, life, self_trade, tick, lots, expiry, until_ms, fee_cap_ppm, .. } =
        *body;
    let order = order_of(&ListedOrderBody {
        market,
        number,
        floor,
        side,
        life,
        self_trade,
        tick,
        lots,
        expiry,
        until_ms,
        fee_cap_ppm,
        replaces: None,
    });
    Ok(SignedOrder { key: key(&body.key)?, order, signature: signature(&body.signature)? })
}

fn order_of(body: &ListedOrderBody) -> VenueOrder {
    let number = order_number(body.number);
    let lowest = OrderNumber { incarnation: number.incarnation, day: 0, reference: 0 };
    VenueOrder {
        market: body.market,
        number,
        floor: body.floor.map_or(lowest, order_number),
        side: venue_side(body.side),
        life: match body.life {
            LifeBody::Rests => OrderLife::Rests,
            LifeBody::PostOnly => OrderLife::PostOnly,
            LifeBody::ImmediateOrCancel => OrderLife::ImmediateOrCancel,
            LifeBody::FillOrKill => OrderLife::FillOrKill,
        },
        self_trade: match body.self_trade {
            SelfTradeBody::ExpireMaker => SelfTradeRule::ExpireMaker,
            SelfTradeBody::ExpireTaker => SelfTradeRule::ExpireTaker,
            SelfTradeBody::ExpireBoth => SelfTradeRule::ExpireBoth,
        },
        tick: body.tick,
        lots: body.lots,
        expiry: body.expiry,
        until_ms: body.until_ms,
        fee_cap_ppm: body.fee_cap_ppm,
    }
}

/// The list that it says.
///
/// # Errors
/// The field that is no key, no seed or no signature.
pub fn order_list(body: &ListBody) -> Result<OrderList, String> {
    let entry = |of: &ListedOrderBody| ListEntry { order: order_of(of), replaces: of.replaces.map(order_number) };
    Ok(OrderList {
        key: key(&body.key)?,
        seed: primitives::from_hex(&body.seed).map_err(|error| format!("seed: {error}"))?,
        entries: body.orders.iter().map(entry).collect(),
        signature: signature(&body.signature)?,
    })
}

/// What a signed request asks.
fn trader_ask(ask: AskBody) -> TraderAsk {
    match ask {
        AskBody::Attach { session, ends_orders, dead_man_ms } => {
            TraderAsk::Attach { session, ends_orders, dead_man_ms }
        }
        AskBody::Cancel { number, keeps } => TraderAsk::Cancel { number: order_number(number), keeps },
        AskBody::CancelAll { market, side } => TraderAsk::CancelAll { market, side: side.map(venue_side) },
        AskBody::Replace { old, new } => TraderAsk::Replace { old: order_number(old), new: order_number(new) },
        AskBody::Status { number } => TraderAsk::Status(order_number(number)),
        AskBody::Fills { from } => TraderAsk::Fills(from),
        AskBody::Watch {} => TraderAsk::Watch,
    }
}

fn ask_body(ask: TraderAsk) -> AskBody {
    match ask {
        TraderAsk::Attach { session, ends_orders, dead_man_ms } => {
            AskBody::Attach { session, ends_orders, dead_man_ms }
        }
        TraderAsk::Cancel { number, keeps } => AskBody::Cancel { number: self::number(number), keeps },
        TraderAsk::CancelAll { market, side } => AskBody::CancelAll { market, side: side.map(side_body) },
        TraderAsk::Replace { old, new } => AskBody::Replace { old: number(old), new: number(new) },
        TraderAsk::Status(number) => AskBody::Status { number: self::number(number) },
        TraderAsk::Fills(from) => AskBody::Fills { from },
        TraderAsk::Watch => AskBody::Watch {},
    }
}

/// The body of a signed request.
pub fn request_body(request: &TraderRequest) -> RequestBody {
    let (key, signature) = (request.key.to_string(), hex(&request.signature.0));
    RequestBody { key, stamp_ms: request.stamp_ms, ask: ask_body(request.ask), signature }
}

/// The request that it says.
///
/// # Errors
/// The field that is no key or no signature.
pub fn signed_request(body: &RequestBody) -> Result<TraderRequest, String> {
    let (key, signature) = (key(&body.key)?, signature(&body.signature)?);
    Ok(TraderRequest { key, stamp_ms: body.stamp_ms, ask: trader_ask(body.ask), signature })
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

fn executed_body(of: &OrderExecution, report: &VenueReport) -> ExecutedBody {
    ExecutedBody {
        index: of.index.to_string(),
        market: of.market,
        side: side_body(of.side),
        lots: of.lots,
        tick: of.tick,
        fee: of.fee.to_string(),
        is_taker: of.is_taker,
        left: None,
        report: hex(&report.to_bytes()),
    }
}

/// The side of a fill that belongs to a key, with its signed report.
pub(super) fn fill_body(fill: &VenueFill, side: VenueSide, report: &VenueReport) -> OwnVenueFillBody {
    OwnVenueFillBody {
        number: number(fill.party(side).number),
        executed: executed_body(&fill.execution(side), report),
        quote: fill.quote.to_string(),
        base: fill.base.to_string(),
        matched: fill.matched.to_string(),
    }
}

/// An event of market data.
pub(super) fn event_body(number: u64, event: &MarketEvent) -> BookEventBody {
    let text = |id: u64| id.to_string();
    let what = match *event {
        MarketEvent::Added { id, side, tick, lots } => {
            BookChange::Added { id: text(id), side: side_body(side), tick, lots }
        }
        MarketEvent::Executed { id, lots, tick, trade } => {
            BookChange::Executed { id: text(id), lots, tick, index: text(trade) }
        }
        MarketEvent::Reduced { id, lots } => BookChange::Reduced { id: text(id), lots },
        MarketEvent::Deleted { id } => BookChange::Deleted { id: text(id) },
        MarketEvent::Renamed { id, to, lots } => BookChange::Renamed { id: text(id), to: text(to), lots },
        MarketEvent::Phase(phase) => BookChange::Phase(phase_code(phase)),
        MarketEvent::Auction { tick, lots } => BookChange::Auction { tick, lots: lots.to_string() },
        MarketEvent::Collar { low, high } => BookChange::Collar { low, high },
    };
    BookEventBody { event: number, what }
}

/// The phase of a market.
pub(super) fn phase_code(phase: matching::Phase) -> String {
    format!("{phase:?}").to_lowercase()
}

/// The best levels of a book.
pub(super) fn top_body(top: &BookTop) -> BookTopBody {
    BookTopBody { bids: top.bids.clone(), asks: top.asks.clone(), checksum: top.checksum() }
}
