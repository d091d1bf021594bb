//! Venues of continuous markets: what the ledger keeps of them now.

use axum::Json;
use axum::extract::{Path, Query, State};
use ledger::{DepositId, VenueDeposit, VenueRecord, Venues};
use primitives::venue::{OrderNumber, VenueId};
use primitives::{Address, AssetId, PublicKey};
use serde::Deserialize;

use super::{Api, PAGE, Page, parse};
use crate::backend::VenuesRead;
use crate::json::{self, ErrorBody};
use crate::kit::{Answered, Failure};

/// The venues as they are now.
pub(super) fn read_venues(api: &Api) -> Result<VenuesRead, Failure> {
    api.backend.venues().ok_or_else(no_venues)
}

pub(super) fn no_venues() -> Failure {
    Failure::not_found("this chain has no venues of continuous markets; see `venues` in the genesis")
}

fn no_venue(venue: VenueId) -> Failure {
    Failure::not_found(format!("no venue has the number {venue}; see /v1/venues"))
}

pub(super) fn record(venues: &Venues, venue: VenueId) -> Result<&VenueRecord, Failure> {
    venues.get(venue).ok_or_else(|| no_venue(venue))
}

/// A page of rows from an iterator that begins at the page, and the row behind it.
fn page_of<T>(rows: impl Iterator<Item = T>, limit: Option<usize>) -> (Vec<T>, Option<T>) {
    let limit = limit.unwrap_or(Page::ENTRIES).clamp(1, PAGE);
    let mut rows: Vec<T> = rows.take(limit + 1).collect();
    let next = if rows.len() > limit { rows.pop() } else { None };
    (rows, next)
}

/// The requested part of a list with numbered rows.
#[derive(Deserialize)]
pub(super) struct Numbered {
    limit: Option<usize>,
    cursor: Option<u32>,
}

/// The venues, and the terms that apply to all of them.
#[utoipa::path(get, path = "/v1/venues",
    params(("limit" = Option<usize>, Query, description = "at most 1,000"),
        ("cursor" = Option<u32>, Query, description = "`next` of the page before")),
    responses((status = 200, body = json::VenuesBody), (status = 404, body = ErrorBody)))]
pub(super) async fn venues(State(api): State<Api>, Query(page): Query<Numbered>) -> Answered<json::VenuesBody> {
    api.blocking(move |api| {
        let VenuesRead { height, venues } = read_venues(api)?;
        let from = page.cursor.unwrap_or(0);
        let (rows, next) = page_of(venues.iter().filter(|(venue, _)| *venue >= from), page.limit);
        Ok(Json(json::VenuesBody {
            height,
            terms: json::venue_terms(venues.terms()),
            custody: api.symbols().venue_custody(&venues),
            venues: rows.into_iter().map(|(venue, record)| json::venue(venue, record)).collect(),
            more: next.is_some(),
            next: next.map(|(venue, _)| venue.to_string()),
        }))
    })
    .await?
}

/// A venue: owner, operator, incarnation, report keys, settled fills, bond.
#[utoipa::path(get, path = "/v1/venues/{venue}", params(("venue" = u32, Path)),
    responses((status = 200, body = json::VenueAtBody), (status = 404, body = ErrorBody)))]
pub(super) async fn venue(State(api): State<Api>, Path(number): Path<u32>) -> Answered<json::VenueAtBody> {
    api.blocking(move |api| {
        let VenuesRead { height, venues } = read_venues(api)?;
        Ok(Json(json::VenueAtBody { height, venue: json::venue(number, record(&venues, number)?) }))
    })
    .await?
}

/// The markets of a venue.
#[utoipa::path(get, path = "/v1/venues/{venue}/markets",
    params(("venue" = u32, Path), ("limit" = Option<usize>, Query, description = "at most 1,000"),
        ("cursor" = Option<u32>, Query, description = "`next` of the page before")),
    responses((status = 200, body = json::VenueMarketsBody), (status = 404, body = ErrorBody)))]
pub(super) async fn venue_markets(
    State(api): State<Api>,
    Path(number): Path<u32>,
    Query(page): Query<Numbered>,
) -> Answered<json::VenueMarketsBody> {
    api.blocking(move |api| {
        let VenuesRead { height, venues } = read_venues(api)?;
        record(&venues, number)?;
        let (rows, next) = page_of(venues.markets_from(number, page.cursor.unwrap_or(0)), page.limit);
        let market = |(market, terms)| json::VenueMarketBody { market, terms: api.symbols().venue_market_terms(terms) };
        Ok(Json(json::VenueMarketsBody {
            height,
            markets: rows.into_iter().map(market).collect(),
            more: next.is_some(),
            next: next.map(|(market, _)| market.to_string()),
        }))
    })
    .await?
}

/// The requested part of the deposits of a venue.
#[derive(Deserialize)]
pub(super) struct AskedDeposits {
    limit: Option<usize>,
    cursor: Option<String>,
}

/// The deposits at a venue.
#[utoipa::path(get, path = "/v1/venues/{venue}/deposits",
    params(("venue" = u32, Path), ("limit" = Option<usize>, Query, description = "at most 1,000"),
        ("cursor" = Option<String>, Query, description = "`next` of the page before: account and symbol")),
    responses((status = 200, body = json::VenueDepositsBody), (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody)))]
pub(super) async fn venue_deposits(
    State(api): State<Api>,
    Path(number): Path<u32>,
    Query(asked): Query<AskedDeposits>,
) -> Answered<json::VenueDepositsBody> {
    api.blocking(move |api| {
        let VenuesRead { height, venues } = read_venues(api)?;
        record(&venues, number)?;
        let from = asked.cursor.as_deref().map(|cursor| deposit_place(api, cursor)).transpose()?;
        let from = from.unwrap_or((Address([0; 20]), AssetId(0)));
        let (rows, next) = page_of(venues.deposits_from(number, from), asked.limit);
        let next = next.map(|((_, account, asset), _)| format!("{account}:{}", api.symbols().get(*asset)));
        Ok(Json(deposits(api, height, &venues, &rows, next)))
    })
    .await?
}

fn deposit_place(api: &Api, cursor: &str) -> Result<(Address, AssetId), Failure> {
    let malformed = || Failure::malformed(format!("cursor: {cursor:?} is not an account and a symbol, as in 0x…:EUR"));
    let (account, symbol) = cursor.split_once(':').ok_or_else(malformed)?;
    Ok((parse("cursor", account)?, api.asset(symbol)?))
}

fn deposits(
    api: &Api,
    height: u64,
    venues: &Venues,
    rows: &[(&DepositId, &VenueDeposit)],
    next: Option<String>,
) -> json::VenueDepositsBody {
    let deposit = |(id, deposit): &(&DepositId, &VenueDeposit)| api.symbols().venue_deposit(id, deposit, venues);
    json::VenueDepositsBody { height, deposits: rows.iter().map(deposit).collect(), more: next.is_some(), next }
}

/// The deposits of an account at all venues.
#[utoipa::path(get, path = "/v1/accounts/{address}/deposits",
    params(("address" = String, Path), ("limit" = Option<usize>, Query, description = "at most 1,000"),
        ("offset" = Option<usize>, Query, description = "number of deposits to skip"),
        ("cursor" = Option<usize>, Query, description = "`next` of the page before")),
    responses((status = 200, body = json::VenueDepositsBody), (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody)))]
pub(super) async fn account_deposits(
    State(api): State<Api>,
    Path(address): Path<String>,
    Query(page): Query<Page>,
) -> Answered<json::VenueDepositsBody> {
    let account: Address = parse("address", &address)?;
    api.blocking(move |api| {
        let VenuesRead { height, venues } = read_venues(api)?;
        let (rows, next) = page.rows(venues.deposits_of(account));
        Ok(Json(deposits(api, height, &venues, &rows, next)))
    })
    .await?
}

/// The trading keys of an account at all venues, revoked ones included.
#[utoipa::path(get, path = "/v1/accounts/{address}/trading-keys",
    params(("address" = String, Path), ("limit" = Option<usize>, Query, description = "at most 1,000"),
        ("offset" = Option<usize>, Query, description = "number of keys to skip"),
        ("cursor" = Option<usize>, Query, description = "`next` of the page before")),
    responses((status = 200, body = json::TradingKeysBody), (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody)))]
pub(super) async fn account_keys(
    State(api): State<Api>,
    Path(address): Path<String>,
    Query(page): Query<Page>,
) -> Answered<json::TradingKeysBody> {
    let account: Address = parse("address", &address)?;
    api.blocking(move |api| {
        let (ids, next) = page.rows(api.published().views().venues().keys_of(&account));
        let VenuesRead { height, venues } = read_venues(api)?;
        let key = |id: &(VenueId, PublicKey)| Some(api.symbols().trading_key(id, venues.key(id.0, &id.1)?, &venues));
        let keys = ids.iter().filter_map(key).collect();
        Ok(Json(json::TradingKeysBody { height, keys, more: next.is_some(), next }))
    })
    .await?
}

/// A trading key: account, mandate, what it has gained and lost, floor.
#[utoipa::path(get, path = "/v1/venues/{venue}/keys/{key}", params(("venue" = u32, Path), ("key" = String, Path)),
    responses((status = 200, body = json::TradingKeyAtBody), (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody)))]
pub(super) async fn trading_key(
    State(api): State<Api>,
    Path((number, key)): Path<(u32, String)>,
) -> Answered<json::TradingKeyAtBody> {
    let public: PublicKey = parse("key", &key)?;
    api.blocking(move |api| {
        let VenuesRead { height, venues } = read_venues(api)?;
        record(&venues, number)?;
        let none = || Failure::not_found(format!("venue {number} has no key {public}: no account has authorised it"));
        let found = venues.key(number, &public).ok_or_else(none)?;
        Ok(Json(json::TradingKeyAtBody { height, key: api.symbols().trading_key(&(number, public), found, &venues) }))
    })
    .await?
}

/// The requested part of the filled orders of a key.
#[derive(Deserialize)]
pub(super) struct AskedOrders {
    limit: Option<usize>,
    cursor: Option<String>,
}

/// What is filled of the orders of a key, in the present incarnation. Orders that nothing can fill any more are
/// forgotten.
#[utoipa::path(get, path = "/v1/venues/{venue}/keys/{key}/orders",
    params(("venue" = u32, Path), ("key" = String, Path),
        ("limit" = Option<usize>, Query, description = "at most 1,000"),
        ("cursor" = Option<String>, Query, description = "`next` of the page before: day and reference")),
    responses((status = 200, body = json::FilledOrdersBody), (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody)))]
pub(super) async fn filled_orders(
    State(api): State<Api>,
    Path((number, key)): Path<(u32, String)>,
    Query(asked): Query<AskedOrders>,
) -> Answered<json::FilledOrdersBody> {
    let public: PublicKey = parse("key", &key)?;
    api.blocking(move |api| {
        let VenuesRead { height, venues } = read_venues(api)?;
        let incarnation = record(&venues, number)?.incarnation;
        let (day, reference) = asked.cursor.as_deref().map(order_place).transpose()?.unwrap_or((0, 0));
        let first = OrderNumber { incarnation, day, reference };
        let (rows, next) = page_of(venues.filled_from((number, public), first), asked.limit);
        Ok(Json(json::FilledOrdersBody {
            height,
            orders: rows.iter().map(|(number, filled)| json::filled_order(number, filled)).collect(),
            more: next.is_some(),
            next: next.map(|(number, _)| format!("{}-{}", number.day, number.reference)),
        }))
    })
    .await?
}

fn order_place(cursor: &str) -> Result<(u16, u32), Failure> {
    let read = cursor.split_once('-').and_then(|(day, reference)| Some((day.parse().ok()?, reference.parse().ok()?)));
    read.ok_or_else(|| Failure::malformed(format!("cursor: {cursor:?} is not a day and a reference, as in 19000-7")))
}
