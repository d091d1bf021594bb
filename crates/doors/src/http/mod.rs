//! The HTTP interface; `docs/api.md` describes it, `/v1/openapi.json` does so for machines.

use std::ops::{Deref, Range};
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{StatusCode, header};
use axum::middleware;
use ledger::contracts::EvmCalled;
use primitives::{AssetId, TransactionId, to_hex};
use serde::Deserialize;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::book_feed::BookFeeds;
use crate::json::{self, ErrorBody};
use crate::kit::{Failure, Kit, blocking, compression, guard};
use crate::page;
use parameters::Parameters;
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
mod history;
mod lane;
mod lane_relay;
mod login;
mod markets;
mod operations;
mod operator;
mod own_orders;
mod parameters;
mod pools;
mod prepare;
mod probes;
mod quote;
mod record_proof;
#[cfg(test)]
mod reference;
mod refused;
mod sealed;
mod shared_news;
mod stream;
mod transactions;
mod typed_data;
mod unsigned;
mod validators;
mod venue_fills;
mod venue_proofs;
mod venue_words;
mod venues;

pub(crate) use probes::probes;

/// Maximum number of entries in one page of a list.
const PAGE: usize = 1_000;

/// The state shared by all calls: what both interfaces have, and what only this one has.
#[derive(Clone)]
pub(crate) struct Api {
    kit: Kit,
    /// Books as they change, for the stream.
    books: Arc<BookFeeds>,
    shared_news: Arc<shared_news::SharedNews>,
    refused: Arc<refused::Refused>,
    /// What connections of the stream have left for their ends.
    holders: Arc<disconnect::Holders>,
    /// What requests to the payment lane's shards share.
    relayed: lane_relay::Relayed,
    /// What Ethereum's interface does for this one.
    of_ethereum: OfEthereum,
}

/// What Ethereum's interface does for this one.
#[derive(Clone, Copy)]
pub(crate) struct OfEthereum {
    /// Its limits, with bodies of so many bytes.
    pub limits: fn(usize) -> json::EthereumLimitsBody,
    /// The result of an executed transaction, with its output and why it was halted; it is executed again for this.
    pub replay: fn(&Kit, &TransactionId) -> Result<EvmCalled, Failure>,
}

impl Deref for Api {
    type Target = Kit;

    fn deref(&self) -> &Kit {
        &self.kit
    }
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
    pub(crate) fn new(kit: Kit, of_ethereum: OfEthereum) -> Api {
        Api {
            kit,
            books: Arc::default(),
            shared_news: Arc::default(),
            refused: Arc::default(),
            holders: Arc::default(),
            relayed: lane_relay::Relayed::default(),
            of_ethereum,
        }
    }

    /// Symbols of the assets, those that were listed in the last block included.
    pub(crate) fn symbols(&self) -> json::Symbols {
        json::Symbols::published(self.published().names())
    }

    /// Runs a call that may block, off the threads that serve connections.
    async fn blocking<T: Send + 'static>(&self, run: impl FnOnce(&Api) -> T + Send + 'static) -> Result<T, Failure> {
        blocking(self.clone(), run).await
    }

    fn asset(&self, symbol: &str) -> Result<AssetId, Failure> {
        self.symbols().find(symbol).ok_or_else(|| Failure::not_found(format!("no asset {symbol:?}; see /v1/assets")))
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
        .routes(routes!(chain::upgrade))
        .routes(routes!(chain::parameters))
        .routes(routes!(chain::parameters_proof))
        .routes(routes!(chain::seal))
        .routes(routes!(chain::seal_proof))
        .routes(routes!(chain::assets))
        .routes(routes!(chain::asset_proof))
        .routes(routes!(chain::holder))
        .routes(routes!(chain::holder_proof))
        .routes(routes!(accounts::account))
        .routes(routes!(accounts::account_offers))
        .routes(routes!(accounts::account_proof))
        .routes(routes!(accounts::keys_proof))
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
        .routes(routes!(quote::quote))
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
        .routes(routes!(lane_relay::relay))
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
        .layer(middleware::from_fn_with_state(api.kit.clone(), guard::guard));
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
        .layer(middleware::from_fn_with_state(api.kit.clone(), guard::guard))
        .layer(middleware::from_fn_with_state(api.kit.clone(), guard::check_role))
        .with_state(api.clone())
        .merge(probes(api.kit.clone()))
        .merge(beside)
        .layer(middleware::from_fn_with_state(api.kit, guard::cors))
        .layer(compression())
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
