//! Books of the venue's markets.

use api::{
    BookImageBody, DoorMarketBody, DoorMarketsBody, ErrorBody, RestingOrderBody, VenueBookBody, VenueDayBody,
    VenueTradeBody, VenueTradesBody,
};
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Extension, Path, Query, State};
use axum::http::StatusCode;
use doors::Visitor;
use primitives::venue::{MarketId, MarketTerms};
use serde::Deserialize;
use utoipa::IntoParams;
use venue::MarketImage;

use super::bodies::{phase_code, side_body, top_body};
use super::orders::{market, of_root};
use super::{Api, Failure};
use crate::clock::clock_ms;
use crate::events::BookTop;
use crate::ouch::symbol_of;
use crate::tape::{SeenTrade, TradedDay};

/// The most levels of a side in an answer.
const LEVELS: usize = 1_000;
/// Trades of a page: as many as are told without being asked for, and at most.
const TRADES: (usize, usize) = (100, 1_000);

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Depth {
    /// Levels of a side, 20 by default and 1,000 at most.
    #[param(maximum = 4_294_967_295_f64)]
    depth: Option<u32>,
}

fn not_open(market: MarketId) -> Failure {
    Failure::new(
        StatusCode::NOT_FOUND,
        "market_not_open",
        format!("market {market} is not open; see /v1/venue/markets"),
    )
}

/// Markets with what a trader must know of them.
#[utoipa::path(get, path = "/v1/venue/markets", responses((status = 200, body = DoorMarketsBody)))]
pub(super) async fn markets(
    State(api): State<Api>,
    Extension(visitor): Extension<Visitor>,
) -> Result<Json<DoorMarketsBody>, Failure> {
    let venue = api.shared.venue;
    let newest = api.shared.heard(|heard| heard.newest.clone());
    let now_ms = clock_ms();
    // The tape is read here: the thread that matches has no time for it.
    let past = |id: MarketId| api.shared.tape.day(id, now_ms);
    let terms = newest.iter().flat_map(|state| state.venues.markets_from(venue, 0));
    let listed: Vec<_> = terms.map(|(id, terms)| (id, *terms, past(id))).collect();
    let markets = of_root(&api.shared, visitor.client(), move |root| {
        let body = |(id, terms, (last, day)): &(MarketId, MarketTerms, (Option<u32>, Option<TradedDay>))| {
            let book = root.book(*id);
            let top = book.map(|book| BookTop::of(book, 1)).unwrap_or_default();
            let settings = root.market_settings(*id);
            DoorMarketBody {
                market: *id,
                symbol: String::from_utf8_lossy(&symbol_of(*id)).trim_end().into(),
                base: terms.base.0,
                quote: terms.quote.0,
                lot_units: terms.lot_units.to_string(),
                tick_units: terms.tick_units.to_string(),
                lots_max: terms.lots_max,
                fee_cap_ppm: terms.fee_cap_ppm,
                maker_ppm: settings.map(|of| of.maker_ppm),
                taker_ppm: settings.map(|of| of.taker_ppm),
                lots_min: settings.map(|of| of.lots_min),
                least_quote_units: settings.map(|of| of.quote_min.to_string()),
                phase: book.map_or("closed".into(), |book| phase_code(book.phase())),
                bid: top.bids.first().map(|level| level.0),
                ask: top.asks.first().map(|level| level.0),
                last: *last,
                day: day.as_ref().map(|day| day_body(day, terms)),
            }
        };
        listed.iter().map(body).collect::<Vec<_>>()
    });
    Ok(Json(DoorMarketsBody { markets: markets.await? }))
}

fn day_body(day: &TradedDay, terms: &MarketTerms) -> VenueDayBody {
    let change = day.change();
    let (sign, size) = (if change < 0 { "-" } else { "" }, change.unsigned_abs());
    VenueDayBody {
        since_ms: day.since_ms,
        complete: day.complete,
        open: day.open,
        high: day.high,
        low: day.low,
        close: day.close,
        change_percent: format!("{sign}{}.{:02}", size / 100, size % 100),
        lots: day.lots.to_string(),
        base_volume: day.lots.saturating_mul(terms.lot_units.into()).to_string(),
        quote_volume: day.value.saturating_mul(terms.tick_units.into()).to_string(),
        trades: day.trades,
    }
}

/// The part of a market's trades that is asked for.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct AskedTrades {
    /// At most so many, 100 by default and 1,000 at most.
    #[param(maximum = 4_294_967_295_f64)]
    limit: Option<u32>,
    /// `next` of the page before.
    cursor: Option<String>,
    /// None of before this time, milliseconds since 1970.
    since_ms: Option<String>,
}

/// What executed in a market of late, the newest first. An execution is told before it is settled.
#[utoipa::path(get, path = "/v1/venue/markets/{market}/trades", params(("market" = u32, Path), AskedTrades),
    responses((status = 200, body = VenueTradesBody), (status = 400, body = ErrorBody),
    (status = 404, body = ErrorBody)))]
pub(super) async fn trades(
    State(api): State<Api>,
    Path(text): Path<String>,
    asked: Result<Query<AskedTrades>, QueryRejection>,
) -> Result<Json<VenueTradesBody>, Failure> {
    let Query(AskedTrades { limit, cursor, since_ms }) =
        asked.map_err(|error| Failure::malformed(error.body_text()))?;
    let id = market(&text)?;
    let (below, since_ms) = (whole("cursor", cursor, u64::MAX)?, whole("since_ms", since_ms, 0)?);
    let most = limit.map_or(TRADES.0, |limit| limit as usize).clamp(1, TRADES.1);
    api.shared.scope()?;
    if !api.shared.view.borrow().markets.contains(&id) {
        return Err(not_open(id));
    }
    let page = api.shared.tape.page(id, below, since_ms, most);
    let next = page.trades.last().filter(|_| page.more).map(|last| last.index.to_string());
    Ok(Json(VenueTradesBody { market: id, trades: page.trades.iter().map(trade_body).collect(), next }))
}

fn whole(name: &str, text: Option<String>, missing: u64) -> Result<u64, Failure> {
    let Some(text) = text else { return Ok(missing) };
    text.parse().map_err(|_| Failure::malformed(format!("{name}: {text:?} is not a whole number below 2^64")))
}

fn trade_body(trade: &SeenTrade) -> VenueTradeBody {
    let SeenTrade { index, time_ms, tick, lots, taker } = *trade;
    VenueTradeBody { index: index.to_string(), time_ms, side: side_body(taker), tick, lots }
}

/// Levels of a book, with the number of the last event that they contain.
#[utoipa::path(get, path = "/v1/venue/markets/{market}/book", params(("market" = u32, Path), Depth),
    responses((status = 200, body = VenueBookBody), (status = 400, body = ErrorBody),
    (status = 404, body = ErrorBody)))]
pub(super) async fn book(
    State(api): State<Api>,
    Extension(visitor): Extension<Visitor>,
    Path(text): Path<String>,
    asked: Result<Query<Depth>, QueryRejection>,
) -> Result<Json<VenueBookBody>, Failure> {
    let Query(Depth { depth }) = asked.map_err(|error| Failure::malformed(error.body_text()))?;
    let (id, depth) = (market(&text)?, depth.map_or(20, |depth| depth as usize).min(LEVELS));
    let found = of_root(&api.shared, visitor.client(), move |root| {
        let (event, book) = (root.told(id)?, root.book(id)?);
        Some((event, phase_code(book.phase()), BookTop::of(book, depth)))
    });
    let (event, phase, top) = found.await?.ok_or_else(|| not_open(id))?;
    Ok(Json(VenueBookBody { market: id, event, phase, top: top_body(&top) }))
}

/// Resting orders by id, to begin a book that increments keep.
#[utoipa::path(get, path = "/v1/venue/markets/{market}/image", params(("market" = u32, Path)),
    responses((status = 200, body = BookImageBody), (status = 400, body = ErrorBody),
    (status = 404, body = ErrorBody)))]
pub(super) async fn image(State(api): State<Api>, Path(text): Path<String>) -> Result<Json<BookImageBody>, Failure> {
    let id = market(&text)?;
    let found = api.shared.image(id).await?.ok_or_else(|| not_open(id))?;
    let (image, top) = &*found;
    Ok(Json(image_body(id, image, top)))
}

/// An image of a market: a reader that begins takes it, and then the events above the one that it names.
pub(super) fn image_body(id: MarketId, image: &MarketImage, top: &BookTop) -> BookImageBody {
    let order = |of: &venue::RestingOrder| RestingOrderBody {
        id: of.id.to_string(),
        side: side_body(of.side),
        tick: of.tick,
        lots: of.lots,
    };
    BookImageBody {
        market: id,
        event: image.included,
        phase: phase_code(image.phase),
        orders: image.orders.iter().map(order).collect(),
        checksum: top.checksum(),
    }
}
