//! The HTTP interface; `docs/api.md` describes it, `/v1/openapi.json` does so for machines.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware;
use primitives::{AssetId, TransactionId, to_hex};
use serde::Deserialize;
use sockets::{Gate, Shares};
use tower_http::compression::CompressionLayer;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::backend::Backend;
use crate::book_feed::BookFeeds;
use crate::json::{self, ErrorBody};
use crate::page;
use crate::pages::Pages;
use crate::roles::{Access, Role};
use crate::settings::Http;
use parameters::Parameters;
use readers::Published;
use readers::Sides;

mod accounts;
mod asyncapi;
mod batch_news;
mod blocks;
mod chain;
mod channel_news;
mod channels;
mod description;
mod disconnect;
mod ethereum;
mod failure;
pub(crate) mod guard;
mod history;
mod lane;
mod login;
mod markets;
mod operations;
mod operator;
mod own_orders;
mod parameters;
mod pools;
mod prepare;
mod probes;
mod rate_limits;
mod record_proof;
#[cfg(test)]
mod reference;
mod refused;
mod shared_news;
pub(crate) mod stream;
mod transactions;
mod typed_data;
mod unsigned;
mod validators;
mod venue_fills;
mod venue_proofs;
mod venue_words;
mod venues;

pub(crate) use accounts::OffersPage;
pub(crate) use failure::Failure;
pub(crate) use probes::probes;
use rate_limits::RateLimits;

/// Maximum number of entries in one page of a list.
const PAGE: usize = 1_000;

/// Maximum number of waiting requests of one address that execute contracts or scan.
pub(crate) const HEAVY_WAITING_OF_ONE: usize = 256;

/// The state shared by all calls.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) settings: Arc<Http>,
    /// Symbols of the assets.
    pub(crate) symbols: Arc<json::Symbols>,
    /// What requests share.
    rates: RateLimits,
    /// Connections of the stream.
    pub(crate) streams: Shares,
    /// Books as they change, for the stream.
    pub(crate) books: Arc<BookFeeds>,
    shared_news: Arc<shared_news::SharedNews>,
    /// Turns of requests that execute contracts or scan, as many as the machine has cores; both doors share them.
    pub(crate) heavy: Arc<Gate>,
    access: Arc<Access>,
    /// Which pages may use the doors.
    pub(crate) pages: Arc<Pages>,
    refused: Arc<refused::Refused>,
    /// What connections of the stream have left for their ends.
    holders: Arc<disconnect::Holders>,
    /// Whether the operator has stopped the intake.
    drains: Arc<AtomicBool>,
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Walras",
        description = "One price per batch: the exchange's HTTP interface. Amounts and prices are decimal strings.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    components(schemas(
        ErrorBody,
        json::AccountIncrement,
        json::AccountSnapshot,
        json::BookChangeBody,
        json::BookSnapshotBody,
        json::MarketCandleBody,
        json::MarketTradeBody,
        json::OwnOrdersBody
    ))
)]
struct Description;

impl Api {
    /// The interface to a node.
    pub(crate) fn new(backend: Arc<dyn Backend>, settings: Http, access: Access) -> Api {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let symbols = json::Symbols::of(&backend.published().views().outline().assets);
        let pages = Arc::new(Pages::of(&settings, backend.is_developers()));
        Api {
            pages,
            symbols: Arc::new(symbols),
            rates: RateLimits::new(&settings),
            streams: Shares::new(settings.stream_connections as u64),
            heavy: Gate::new(cores, HEAVY_WAITING_OF_ONE, None),
            settings: Arc::new(settings),
            access: Arc::new(access),
            books: Arc::default(),
            shared_news: Arc::default(),
            refused: Arc::default(),
            holders: Arc::default(),
            drains: Arc::default(),
            backend,
        }
    }

    /// The same for the address of probes.
    pub(crate) fn for_probes(&self) -> Api {
        Api { access: Arc::new(self.access.of_probes()), ..self.clone() }
    }

    /// The same for another door with the same limits: what one door uses is not available at the other.
    pub(crate) fn for_ethereum(&self) -> Api {
        let Api { settings, .. } = self;
        Api {
            rates: RateLimits::new(settings),
            streams: Shares::new(settings.stream_connections as u64),
            ..self.clone()
        }
    }

    /// Whether a request may make calls of a role.
    pub(crate) fn admits(&self, role: Role, headers: &HeaderMap) -> bool {
        self.access.admits(role, headers)
    }

    /// Whether the operator has stopped the intake.
    pub(crate) fn is_draining(&self) -> bool {
        self.drains.load(Ordering::Acquire)
    }

    pub(crate) fn published(&self) -> &Published {
        self.backend.published()
    }

    /// The published place of a transaction; `Some(None)` while it is pending, and `None` if it is unknown.
    pub(crate) fn look_up<T>(&self, id: &TransactionId, find: impl Fn() -> Option<T>) -> Option<Option<T>> {
        if let Some(found) = find() {
            return Some(Some(found));
        }
        if self.backend.is_pending(id) {
            return Some(None);
        }
        // It may have left the pool and been published meanwhile.
        find().map(Some)
    }

    /// Runs a call that may block, off the threads that serve connections. The call is boxed with its answer, so that
    /// the runtime's task is compiled once and not for each of some sixty calls.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        run: impl FnOnce(&Api) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let api = self.clone();
        let call: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send> = Box::new(move || Box::new(run(&api)));
        let answer = tokio::task::spawn_blocking(call).await.map_err(|_| Failure::stopping())?;
        Ok(*answer.downcast().expect("a call answers with the type that it was boxed with"))
    }

    fn asset(&self, symbol: &str) -> Result<AssetId, Failure> {
        self.symbols.find(symbol).ok_or_else(|| Failure::not_found(format!("no asset {symbol:?}; see /v1/assets")))
    }

    pub(crate) fn sides(&self, base: &str, quote: &str) -> Result<Sides, Failure> {
        let sides = Sides { base: self.asset(base)?, quote: self.asset(quote)? };
        if sides.base == sides.quote {
            return Err(Failure::not_found("a market needs two different assets"));
        }
        Ok(sides)
    }
}

/// The calls of the interface, with their description.
fn described() -> OpenApiRouter<Api> {
    OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(chain::status))
        .routes(routes!(chain::limits))
        .routes(routes!(chain::assets))
        .routes(routes!(accounts::account))
        .routes(routes!(accounts::account_offers))
        .routes(routes!(accounts::account_proof))
        .routes(routes!(history::orders))
        .routes(routes!(history::order))
        .routes(routes!(history::order_of_client))
        .routes(routes!(history::fills))
        .routes(routes!(history::transfers))
        .routes(routes!(history::balances))
        .routes(routes!(markets::markets_list))
        .routes(routes!(markets::tickers))
        .routes(routes!(markets::market_ticker))
        .routes(routes!(markets::market_book))
        .routes(routes!(markets::market_curves))
        .routes(routes!(markets::market_history))
        .routes(routes!(markets::market_candles))
        .routes(routes!(markets::market_offers))
        .routes(routes!(blocks::blocks))
        .routes(routes!(blocks::block))
        .routes(routes!(blocks::batch))
        .routes(routes!(blocks::ended))
        .routes(routes!(ethereum::ethereum_block))
        .routes(routes!(blocks::raw_block))
        .routes(routes!(blocks::raw_receipts))
        .routes(routes!(validators::certificate))
        .routes(routes!(validators::validator))
        .routes(routes!(validators::validators))
        .routes(routes!(validators::validators_proof))
        .routes(routes!(validators::handovers))
        .routes(routes!(lane::lane))
        .routes(routes!(lane::output))
        .routes(routes!(lane::board))
        .routes(routes!(lane::cases))
        .routes(routes!(lane::registrations_proof))
        .routes(routes!(blocks::block_account))
        .routes(routes!(transactions::transaction))
        .routes(routes!(accounts::offer_proof))
        .routes(routes!(transactions::send))
        .routes(routes!(transactions::send_batch))
        .routes(routes!(typed_data::typed_data))
        .routes(routes!(prepare::prepare))
        .routes(routes!(ethereum::ethereum_receipt))
        .routes(routes!(ethereum::ethereum_output))
        .routes(routes!(ethereum::send_ethereum))
        .routes(routes!(ethereum::send_ethereum_batch))
        .routes(routes!(venues::venues))
        .routes(routes!(venues::venue))
        .routes(routes!(venues::venue_markets))
        .routes(routes!(venues::venue_deposits))
        .routes(routes!(venues::account_deposits))
        .routes(routes!(venues::account_keys))
        .routes(routes!(venues::trading_key))
        .routes(routes!(venues::filled_orders))
        .routes(routes!(venue_fills::venue_settles))
        .routes(routes!(venue_fills::block_settles))
        .routes(routes!(venue_fills::fill_proof))
        .routes(routes!(venue_fills::incarnations))
        .routes(routes!(venue_proofs::venue_proof))
        .routes(routes!(venue_proofs::market_proof))
        .routes(routes!(venue_proofs::deposit_proof))
        .routes(routes!(venue_proofs::key_proof))
        .routes(routes!(venue_proofs::filled_proof))
        .routes(routes!(venue_proofs::claim_proof))
        .routes(routes!(pools::pools))
        .routes(routes!(pools::account_pools))
        .routes(routes!(pools::pool_proof))
        .routes(routes!(pools::holding_proof))
        .routes(routes!(operator::doors))
        .routes(routes!(operator::drain))
        .routes(routes!(operator::resume))
}

/// All routes, with the page at the root, and the calls of another part of this process.
pub(crate) fn router(api: Api, beside: Router) -> Router {
    let (router, description) = described().split_for_parts();
    let body_bytes = api.settings.body_bytes;
    let document = description::document(&description);
    let parameters = Arc::new(Parameters::of(&document));
    let served = |document: &serde_json::Value| {
        let text: Arc<str> = document.to_string().into();
        move || {
            let text = text.clone();
            async move { ([(header::CONTENT_TYPE, "application/json")], text.to_string()) }
        }
    };
    let (openapi, asyncapi) = (served(&document), served(&asyncapi::document(&document)));
    let beside = beside
        .layer(DefaultBodyLimit::max(body_bytes))
        .layer(middleware::from_fn_with_state(api.clone(), guard::guard));
    router
        .route("/v1/openapi.json", axum::routing::get(openapi))
        .route("/v1/asyncapi.json", axum::routing::get(asyncapi))
        .route("/v1/stream", axum::routing::get(stream::open))
        .fallback(page::serve)
        .method_not_allowed_fallback(async || {
            let message = "this address supports other methods; see /v1/openapi.json";
            Failure::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
        })
        .layer(middleware::from_fn_with_state(parameters, parameters::check))
        .layer(DefaultBodyLimit::max(body_bytes))
        .layer(middleware::from_fn_with_state(api.clone(), guard::guard))
        .layer(middleware::from_fn_with_state(api.clone(), guard::check_role))
        .with_state(api.clone())
        .merge(probes(api.clone()))
        .merge(beside)
        .layer(middleware::from_fn_with_state(api, guard::cors))
        .layer(compression())
}

/// Compresses answers for clients that accept it: JSON shrinks to a tenth.
pub(crate) fn compression() -> CompressionLayer {
    CompressionLayer::new()
}

/// The requested part of a list.
#[derive(Deserialize)]
pub(super) struct Page {
    limit: Option<usize>,
    /// Number of entries to skip.
    offset: Option<usize>,
    /// `next` of the page before: also the number of entries to skip.
    cursor: Option<usize>,
}

impl Page {
    const ENTRIES: usize = 100;

    /// The rows of the page from all rows, and the `next` of its answer if there are more.
    pub(super) fn rows<T>(&self, all: impl Iterator<Item = T>) -> (Vec<T>, Option<String>) {
        let first = self.cursor.or(self.offset).unwrap_or(0);
        let count = self.limit.unwrap_or(Page::ENTRIES).min(PAGE);
        let mut rows: Vec<T> = all.skip(first).take(count + 1).collect();
        let more = rows.len() > count;
        rows.truncate(count);
        (rows, more.then(|| first.saturating_add(count).to_string()))
    }

    /// The entries of the page, among `all`, and the `next` of its answer if there are more.
    pub(super) fn of(&self, all: usize) -> (Range<usize>, Option<String>) {
        let first = self.cursor.or(self.offset).unwrap_or(0).min(all);
        let last = first.saturating_add(self.limit.unwrap_or(Page::ENTRIES).min(PAGE)).min(all);
        (first..last, (last < all).then(|| last.to_string()))
    }
}

/// A whole number of 64 bits.
fn number(name: &str, text: &str) -> Result<u64, Failure> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let value = digits.then(|| text.parse().ok()).flatten();
    value.ok_or_else(|| Failure::malformed(format!("{name}: {text:?} is not a whole number from 0 to {}", u64::MAX)))
}

fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(name: &str, text: &str) -> Result<T, Failure> {
    text.parse().map_err(|error: T::Err| Failure::malformed(format!("{name}: {error}")))
}

/// The encoding of a proof as text.
fn proof_bytes<T: borsh::BorshSerialize>(proof: &T) -> String {
    format!("0x{}", to_hex(&borsh::to_vec(proof).expect("writing to memory cannot fail")))
}
