//! Markets.

use axum::Json;
use axum::extract::{Path, Query, State};
use primitives::{Height, Price};
use serde::Deserialize;

use super::{Api, PAGE, parse};
use crate::backend::OffersRead;
use crate::json::{self, ErrorBody};
use crate::kit::{Answered, Failure};
use crate::markets::{self, HistoryOfMarket};
use readers::Sides;
use readers::candles::{Candle, Interval};

/// Every market with its last traded price.
#[utoipa::path(get, path = "/v1/markets", responses((status = 200, body = json::MarketsBody)))]
pub(super) async fn markets_list(State(api): State<Api>) -> Answered<json::MarketsBody> {
    api.blocking(|api| {
        let views = api.published().views();
        Json(markets::markets(&views, &api.published().candles(), &api.symbols()))
    })
    .await
}

/// The ticker of every market: last price, best limits, and the last 24 hours.
#[utoipa::path(get, path = "/v1/tickers", responses((status = 200, body = json::TickersBody)))]
pub(super) async fn tickers(State(api): State<Api>) -> Answered<json::TickersBody> {
    api.blocking(|api| {
        let views = api.published().views();
        let tickers = markets::tickers(&views, &api.published().candles(), &api.symbols());
        Json(json::TickersBody { height: views.height(), tickers })
    })
    .await
}

/// The ticker of a market.
#[utoipa::path(get, path = "/v1/markets/{base}/{quote}/ticker",
    params(("base" = String, Path), ("quote" = String, Path)),
    responses((status = 200, body = json::TickerBody), (status = 404, body = ErrorBody)))]
pub(super) async fn market_ticker(
    State(api): State<Api>,
    Path((base, quote)): Path<(String, String)>,
) -> Answered<json::TickerBody> {
    api.blocking(move |api| ticker(api, &base, &quote)).await?.map(Json)
}

/// The ticker of a market.
pub(super) fn ticker(api: &Api, base: &str, quote: &str) -> Result<json::TickerBody, Failure> {
    let sides = api.sides(base, quote)?;
    let views = api.published().views();
    Ok(markets::ticker(&views, &api.published().candles(), &api.symbols(), sides))
}

/// The requested number of levels or points.
#[derive(Deserialize)]
pub(super) struct Detail {
    levels: Option<usize>,
    points: Option<usize>,
    limit: Option<usize>,
    before: Option<Height>,
    since_ms: Option<u64>,
}

/// The resting offers of a market by price.
#[utoipa::path(get, path = "/v1/markets/{base}/{quote}/book",
    params(("base" = String, Path), ("quote" = String, Path), ("levels" = Option<usize>, Query)),
    responses((status = 200, body = json::BookBody), (status = 404, body = ErrorBody)))]
pub(super) async fn market_book(
    State(api): State<Api>,
    Path((base, quote)): Path<(String, String)>,
    Query(detail): Query<Detail>,
) -> Answered<json::BookBody> {
    let sides = api.sides(&base, &quote)?;
    let levels = detail.levels.unwrap_or(50).min(PAGE);
    api.blocking(move |api| {
        let views = api.published().views();
        Json(markets::book(&views, &api.published().candles(), &api.symbols(), sides, levels))
    })
    .await
}

/// Supply and demand of a market in the last batch, before it traded.
#[utoipa::path(get, path = "/v1/markets/{base}/{quote}/curves",
    params(("base" = String, Path), ("quote" = String, Path), ("points" = Option<usize>, Query)),
    responses((status = 200, body = json::Curves), (status = 404, body = ErrorBody)))]
pub(super) async fn market_curves(
    State(api): State<Api>,
    Path((base, quote)): Path<(String, String)>,
    Query(detail): Query<Detail>,
) -> Answered<json::Curves> {
    let sides = api.sides(&base, &quote)?;
    let points = detail.points.unwrap_or(200).min(PAGE);
    let curves = api.blocking(move |api| markets::curves(&api.published().views(), &api.symbols(), sides, points));
    curves.await?.map(Json).ok_or_else(|| Failure::not_found("no batch has cleared yet"))
}

/// A market's price in recent batches: the last ones, or with `since_ms` the first ones from a time on.
#[utoipa::path(get, path = "/v1/markets/{base}/{quote}/history",
    params(("base" = String, Path), ("quote" = String, Path), ("limit" = Option<usize>, Query),
        ("before" = Option<u64>, Query, description = "only batches below this height"),
        ("since_ms" = Option<u64>, Query, description = "the first `limit` batches of this time and later")),
    responses((status = 200, body = json::HistoryBody), (status = 404, body = ErrorBody)))]
pub(super) async fn market_history(
    State(api): State<Api>,
    Path((base, quote)): Path<(String, String)>,
    Query(detail): Query<Detail>,
) -> Answered<json::HistoryBody> {
    let sides = api.sides(&base, &quote)?;
    let part = HistoryOfMarket {
        below: detail.before.unwrap_or(u64::MAX),
        since_ms: detail.since_ms,
        limit: detail.limit.unwrap_or(500).min(PAGE),
    };
    api.blocking(move |api| Json(markets::history(&api.published().views(), &api.symbols(), sides, part))).await
}

/// The requested range of offers.
#[derive(Deserialize)]
pub(super) struct Range {
    from: Option<String>,
    to: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
}

/// The resting offers that sell base for quote, one by one in order of execution, with limits in a range.
#[utoipa::path(get, path = "/v1/markets/{base}/{quote}/offers",
    params(("base" = String, Path), ("quote" = String, Path),
        ("from" = Option<String>, Query, description = "lowest limit"),
        ("to" = Option<String>, Query, description = "highest limit"),
        ("limit" = Option<usize>, Query, description = "at most 1,000"),
        ("cursor" = Option<String>, Query, description = "`next` of the page before")),
    responses((status = 200, body = json::RestingOffers), (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody)))]
pub(super) async fn market_offers(
    State(api): State<Api>,
    Path((base, quote)): Path<(String, String)>,
    Query(range): Query<Range>,
) -> Answered<json::RestingOffers> {
    let sides = api.sides(&base, &quote)?;
    let bound = |name, text: Option<String>| text.map(|text| parse::<Price>(name, &text)).transpose();
    let (from, to) = (bound("from", range.from)?, bound("to", range.to)?);
    let wrong = || Failure::malformed("cursor: give the `next` of the page before, unchanged");
    let cursor = range.cursor.map(|cursor| markets::place_of(&cursor).ok_or_else(wrong)).transpose()?;
    let count = range.limit.unwrap_or(100).min(PAGE);
    api.blocking(move |api| {
        let read = match markets::places(from, to, cursor) {
            Some((first, last)) => api.backend.offers(sides.supply(), first, last, count + 1),
            // An inverted range is an empty one.
            None => OffersRead { height: api.published().views().height(), offers: Vec::new() },
        };
        Json(markets::offers(read, &api.symbols(), sides.supply(), count))
    })
    .await
}

/// The requested candles.
#[derive(Deserialize)]
pub(super) struct CandleQuery {
    interval: Option<String>,
    limit: Option<usize>,
    before_ms: Option<u64>,
    since_ms: Option<u64>,
}

/// A market's candles: first, highest, lowest and last batch price of each interval with a trade. They are the last
/// ones, or with `since_ms` the first ones from a time on.
#[utoipa::path(get, path = "/v1/markets/{base}/{quote}/candles",
    params(("base" = String, Path), ("quote" = String, Path),
        ("interval" = Option<String>, Query, description = "1m (default), 5m, 15m, 1h, 4h or 1d"),
        ("limit" = Option<usize>, Query),
        ("before_ms" = Option<u64>, Query, description = "only candles that begin before this time"),
        ("since_ms" = Option<u64>, Query, description = "the first `limit` candles that begin at this time or later")),
    responses((status = 200, body = json::CandlesBody), (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody)))]
pub(super) async fn market_candles(
    State(api): State<Api>,
    Path((base, quote)): Path<(String, String)>,
    Query(query): Query<CandleQuery>,
) -> Answered<json::CandlesBody> {
    let sides = api.sides(&base, &quote)?;
    let interval: Interval = parse("interval", query.interval.as_deref().unwrap_or("1m"))?;
    let times = (query.since_ms, query.before_ms.unwrap_or(u64::MAX));
    let limit = query.limit.unwrap_or(500).min(PAGE);
    api.blocking(move |api| Json(candles_body(api, sides, interval, times, limit))).await
}

/// The last candles of a market before a time, or the first ones since a time.
pub(crate) fn candles_body(
    api: &Api,
    sides: Sides,
    interval: Interval,
    (since_ms, before_ms): (Option<u64>, u64),
    limit: usize,
) -> json::CandlesBody {
    let views = api.published().views();
    let now_ms = views.blocks(u64::MAX).next().map_or(0, |block| block.time_ms);
    let known = api.published().candles();
    let candles = match since_ms {
        Some(since_ms) => known.since_time(sides, interval, since_ms..before_ms, limit),
        None => known.of(sides, interval, before_ms, limit),
    };
    drop(known);
    drop(views);
    let body = |candle: &Candle| {
        let is_over = candle.time_ms.saturating_add(interval.milliseconds()) <= now_ms;
        json::candle(candle, is_over, &api.symbols(), sides)
    };
    json::CandlesBody {
        market: api.symbols().market(sides.base, sides.quote),
        interval: interval.name().into(),
        candles: candles.iter().map(body).collect(),
    }
}
