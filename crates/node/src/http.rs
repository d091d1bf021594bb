//! The HTTP interface; `docs/api.md` says what it offers, `/v1/openapi.json` says it to machines.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use futures_util::StreamExt;
use ledger::{Pair, Place, SEQUENCE_WINDOW};
use primitives::{Address, AssetId, Digest, Price, Transaction, TransactionId, to_hex};
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::cache::ProvenReceipts;
use crate::candles::Interval;
use crate::door::Limits;
use crate::exchange::{Answer, Closed, Exchange, Shared};
use crate::json::{self, ErrorBody, ErrorText};
use crate::markets::{self, Sides};
use crate::views::Found;
use crate::{page, stream};

/// Most entries in one page of a list.
const PAGE: usize = 1_000;
/// How long a call with `wait=committed` waits before it answers that the transaction is pending.
const WAIT: Duration = Duration::from_secs(30);

/// What every call can reach.
#[derive(Clone)]
pub struct Api {
    /// The pipeline.
    pub exchange: Arc<Exchange>,
    /// Symbols of the assets.
    pub symbols: Arc<json::Symbols>,
    /// Permits for requests.
    requests: Arc<Semaphore>,
    /// Permits for bytes of bodies.
    body_room: Arc<Semaphore>,
    /// Permits for connections of the stream.
    pub(crate) streams: Arc<Semaphore>,
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Walras",
        description = "One price per batch: the exchange's HTTP interface. Amounts and prices are exact decimal strings.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    components(schemas(ErrorBody))
)]
struct Description;

/// An error on its way out.
pub struct Failure(StatusCode, ErrorText);

impl Failure {
    fn malformed(message: impl Into<String>) -> Failure {
        Failure(StatusCode::BAD_REQUEST, ErrorText { code: "malformed", message: message.into() })
    }

    fn not_found(message: impl Into<String>) -> Failure {
        Failure(StatusCode::NOT_FOUND, ErrorText { code: "not_found", message: message.into() })
    }

    fn stopping() -> Failure {
        let message = "the node is recovering or stopping; try another, or again shortly".into();
        Failure(StatusCode::SERVICE_UNAVAILABLE, ErrorText { code: "not_ready", message })
    }

    fn follows() -> Failure {
        let message = "this node follows and is no validator now; submit to one that is, see /v1/validators".into();
        Failure(StatusCode::SERVICE_UNAVAILABLE, ErrorText { code: "follows", message })
    }

    fn too_large() -> Failure {
        let message = "the body is larger than this node takes; see `body_bytes` under /v1/limits".into();
        Failure(StatusCode::PAYLOAD_TOO_LARGE, ErrorText { code: "too_large", message })
    }

    fn slow(seconds: u64) -> Failure {
        let message = format!("the body did not arrive within {seconds} s; send it at once, or in smaller batches");
        Failure(StatusCode::REQUEST_TIMEOUT, ErrorText { code: "too_slow", message })
    }

    fn busy(code: &'static str, message: &str) -> Failure {
        Failure(StatusCode::TOO_MANY_REQUESTS, ErrorText { code, message: message.into() })
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let later = matches!(self.0, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        let mut response = (self.0, Json(ErrorBody { error: self.1 })).into_response();
        if later {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

type Answered<T> = Result<Json<T>, Failure>;

impl Api {
    /// Over a running pipeline.
    pub fn new(exchange: Arc<Exchange>) -> Api {
        let http = &exchange.shared.config.http;
        Api {
            symbols: Arc::new(exchange.read(json::Symbols::of)),
            requests: Arc::new(Semaphore::new(http.concurrent_requests)),
            body_room: Arc::new(Semaphore::new(Limits::new(http).body_bytes_waiting)),
            streams: Arc::new(Semaphore::new(http.stream_connections)),
            exchange,
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.exchange.shared
    }

    /// Runs what may wait for a lock away from the threads that serve connections.
    async fn blocking<T: Send + 'static>(&self, run: impl FnOnce(&Api) -> T + Send + 'static) -> Result<T, Failure> {
        let api = self.clone();
        tokio::task::spawn_blocking(move || run(&api)).await.map_err(|_| Failure::stopping())
    }

    fn asset(&self, symbol: &str) -> Result<AssetId, Failure> {
        self.symbols.find(symbol).ok_or_else(|| Failure::not_found(format!("no asset {symbol:?}; see /v1/assets")))
    }

    pub(crate) fn sides(&self, base: &str, quote: &str) -> Result<Sides, Failure> {
        let sides = Sides { base: self.asset(base)?, quote: self.asset(quote)? };
        if sides.base == sides.quote {
            return Err(Failure::not_found("a market has two different assets"));
        }
        Ok(sides)
    }
}

/// Every route, with the page at the root.
pub fn router(api: Api) -> Router {
    let (router, description) = OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(status))
        .routes(routes!(limits))
        .routes(routes!(assets))
        .routes(routes!(account))
        .routes(routes!(account_offers))
        .routes(routes!(account_proof))
        .routes(routes!(markets_list))
        .routes(routes!(market_book))
        .routes(routes!(market_curves))
        .routes(routes!(market_history))
        .routes(routes!(market_candles))
        .routes(routes!(market_offers))
        .routes(routes!(blocks))
        .routes(routes!(block))
        .routes(routes!(batch))
        .routes(routes!(raw_block))
        .routes(routes!(raw_receipts))
        .routes(routes!(certificate))
        .routes(routes!(validator))
        .routes(routes!(validators))
        .routes(routes!(validators_proof))
        .routes(routes!(handovers))
        .routes(routes!(block_account))
        .routes(routes!(transaction))
        .routes(routes!(offer_proof))
        .routes(routes!(send))
        .routes(routes!(send_batch))
        .split_for_parts();
    let body_bytes = api.shared().config.http.body_bytes;
    let description = described(description);
    let description = Arc::new(description.to_json().expect("the description is plain data"));
    let openapi = move || {
        let description = description.clone();
        async move { ([(header::CONTENT_TYPE, "application/json")], description.as_str().to_owned()) }
    };
    router
        .route("/v1/openapi.json", axum::routing::get(openapi))
        .route("/v1/stream", axum::routing::get(stream::open))
        .fallback(page::serve)
        .method_not_allowed_fallback(async || {
            let message = "this address answers to another method; see /v1/openapi.json".into();
            Failure(StatusCode::METHOD_NOT_ALLOWED, ErrorText { code: "method_not_allowed", message })
        })
        .layer(DefaultBodyLimit::max(body_bytes))
        .layer(middleware::from_fn_with_state(api.clone(), guard))
        .with_state(api.clone())
        .merge(probes(api))
}

/// The description with a sentence for each response, which the format demands.
fn described(mut description: utoipa::openapi::OpenApi) -> utoipa::openapi::OpenApi {
    let sentence = |status: &str| match status {
        "200" => "The answer.",
        "202" => "Taken, and not committed yet: ask for the transaction again.",
        "400" => "Something in the request is malformed; the message names it.",
        "404" => "There is no such thing, or this node no longer has it.",
        "408" => "The body did not arrive in time.",
        "413" => "The body is too large, or holds too many transactions.",
        "415" => "The body is of a kind that is not taken.",
        "422" => "The transaction is refused; the code names the reason.",
        "429" => "Too much at once; try again after the time in `Retry-After`.",
        "503" => "The node cannot serve this now; try again after the time in `Retry-After`.",
        _ => "See the message.",
    };
    for item in description.paths.paths.values_mut() {
        for operation in [&mut item.get, &mut item.post].into_iter().flatten() {
            for (status, response) in &mut operation.responses.responses {
                if let utoipa::openapi::RefOr::T(response) = response
                    && response.description.is_empty()
                {
                    response.description = sentence(status).into();
                }
            }
        }
    }
    description
}

/// What says how the node is. It is answered however many requests are being served.
pub fn probes(api: Api) -> Router {
    Router::new()
        .route("/healthz", axum::routing::get(async || "alive\n"))
        .route("/readyz", axum::routing::get(ready))
        .route("/metrics", axum::routing::get(metrics))
        .layer(middleware::from_fn_with_state(api.clone(), check_host))
        .with_state(api)
}

/// Turns away names that are not ours: a page of another site may have been pointed here.
async fn check_host(State(api): State<Api>, request: Request, next: Next) -> Response {
    if is_own_host(request.headers(), &api.shared().config.http.hosts) {
        return next.run(request).await;
    }
    let message = "this node is not called by that name; list it under [http] hosts".into();
    Failure(StatusCode::MISDIRECTED_REQUEST, ErrorText { code: "wrong_host", message }).into_response()
}

/// Turns away names that are not ours, and floods. The body is read first, so that a slow sender keeps nobody from
/// being served.
async fn guard(State(api): State<Api>, request: Request, next: Next) -> Response {
    if !is_own_host(request.headers(), &api.shared().config.http.hosts) {
        return check_host(State(api), request, next).await;
    }
    let (request, _room) = match read_body(&api, request).await {
        Ok(read) => read,
        Err(failure) => return failure.into_response(),
    };
    let Ok(_permit) = api.requests.clone().try_acquire_owned() else {
        return Failure::busy("too_many_requests", "too many requests at once; try again shortly").into_response();
    };
    let mut response = in_our_words(next.run(request).await).await;
    response.headers_mut().insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}

/// Reads the body of a request. Its bytes count, as they arrive, against what all bodies may have.
async fn read_body(api: &Api, request: Request) -> Result<(Request, OwnedSemaphorePermit), Failure> {
    let http = &api.shared().config.http;
    let mut room = api.body_room.clone().try_acquire_many_owned(0).expect("nothing can be had");
    let (head, body) = request.into_parts();
    let (mut body, mut bytes) = (body.into_data_stream(), Vec::new());
    let read = async {
        while let Some(part) = body.next().await {
            let part = part.map_err(|error| Failure::malformed(format!("the body did not arrive whole: {error}")))?;
            if bytes.len() + part.len() > http.body_bytes {
                return Err(Failure::too_large());
            }
            let more = api.body_room.clone().try_acquire_many_owned(part.len() as u32);
            room.merge(more.map_err(|_| Failure::busy("too_many_bytes", "too many bytes at once; try again shortly"))?);
            bytes.extend_from_slice(&part);
        }
        Ok(())
    };
    let limit = Duration::from_secs(http.body_seconds);
    tokio::time::timeout(limit, read).await.map_err(|_| Failure::slow(http.body_seconds))??;
    Ok((Request::from_parts(head, bytes.into()), room))
}

/// Puts what the library says of a request into the form of all other errors.
async fn in_our_words(response: Response) -> Response {
    const LONGEST: usize = 4 << 10;
    let status = response.status();
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
    if !status.is_client_error() || !kind.starts_with("text/plain") {
        return response;
    }
    let text = axum::body::to_bytes(response.into_body(), LONGEST).await.unwrap_or_default();
    let message = String::from_utf8_lossy(&text).trim().to_string();
    let code = match status {
        StatusCode::NOT_FOUND => "not_found",
        StatusCode::PAYLOAD_TOO_LARGE => "too_large",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "unsupported_media_type",
        _ => "malformed",
    };
    Failure(status, ErrorText { code, message }).into_response()
}

fn is_own_host(headers: &HeaderMap, hosts: &[String]) -> bool {
    let Some(host) = headers.get(header::HOST).and_then(|host| host.to_str().ok()) else { return true };
    let name = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or(""),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name == "localhost" || name.parse::<std::net::IpAddr>().is_ok() || hosts.iter().any(|known| known == name)
}

async fn ready(State(api): State<Api>) -> Response {
    if !api.shared().is_ready() {
        return Failure::stopping().into_response();
    }
    match api.exchange.status() {
        Some(status) if status.stall().is_some() => {
            let message = status.stall().expect("there is one");
            let error = ErrorText { code: "no_quorum", message };
            Failure(StatusCode::SERVICE_UNAVAILABLE, error).into_response()
        }
        Some(status) if !status.is_caught_up() => {
            let message = format!(
                "height {} of {}, {} of {} other validators connected{}",
                status.decided,
                status.certified_anywhere,
                status.connected,
                status.validators - 1,
                if status.silent { ", listening without voting" } else { "" }
            );
            let error = ErrorText { code: "catching_up", message };
            Failure(StatusCode::SERVICE_UNAVAILABLE, error).into_response()
        }
        _ => "ready\n".into_response(),
    }
}

async fn metrics(State(api): State<Api>) -> Response {
    let text = api.shared().metrics.encode();
    ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text).into_response()
}

fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(name: &str, text: &str) -> Result<T, Failure> {
    text.parse().map_err(|error: T::Err| Failure::malformed(format!("{name}: {error}")))
}

/// The node in numbers.
#[utoipa::path(get, path = "/v1/status", responses((status = 200, body = json::NodeStatus)))]
async fn status(State(api): State<Api>) -> Answered<json::NodeStatus> {
    api.blocking(|api| {
        let shared = api.shared();
        let (height, block, accounts, offers, chain) = api.exchange.read(|ledger| {
            (ledger.height(), ledger.last_block(), ledger.accounts().len(), ledger.book().len(), ledger.chain())
        });
        let (time_ms, rate, totals) = {
            let views = shared.read_views();
            let last = views.blocks(u64::MAX).next().map_or(0, |block| block.time_ms);
            (last, views.rate_per_second(), views.totals)
        };
        let state = shared.newest_root();
        Json(json::NodeStatus {
            version: env!("CARGO_PKG_VERSION"),
            chain,
            engine: api.exchange.status().map_or("solo", |status| status.engine),
            stalled: api.exchange.status().and_then(|status| status.stall()),
            height,
            block: block.to_string(),
            time_ms,
            state: json::StateRoot { height: state.0, root: state.1.to_string() },
            accounts,
            offers,
            mempool: json::MempoolStatus {
                transactions: shared.lock_mempool().len(),
                limit: shared.config.mempool.transactions,
            },
            uptime_ms: shared.now_ms(),
            transactions_per_second: rate,
            committed: totals.0,
            refused: totals.1,
        })
    })
    .await
}

/// Constants of the chain and limits of this node.
#[utoipa::path(get, path = "/v1/limits", responses((status = 200, body = json::Limits)))]
async fn limits(State(api): State<Api>) -> Answered<json::Limits> {
    api.blocking(|api| {
        let config = &api.shared().config;
        api.exchange.read(|ledger| {
            Json(json::Limits {
                chain: ledger.chain(),
                fee: ledger.fee().to_string(),
                fee_asset: api.symbols.get(AssetId(0)).into(),
                epsilon: ledger.epsilon().to_string(),
                mu: ledger.mu().to_string(),
                sequence_window: SEQUENCE_WINDOW,
                body_bytes: config.http.body_bytes,
                batch_transactions: config.http.batch_transactions,
                block_transactions: config.blocks.transactions,
                block_interval_ms: config.blocks.interval_ms,
                mempool_transactions: config.mempool.transactions,
                stream_connections: config.http.stream_connections,
            })
        })
    })
    .await
}

/// The assets.
#[utoipa::path(get, path = "/v1/assets", responses((status = 200, body = json::Assets)))]
async fn assets(State(api): State<Api>) -> Answered<json::Assets> {
    api.blocking(|api| api.exchange.read(|ledger| Json(json::assets(ledger.assets())))).await
}

impl Api {
    /// An account as it stands, or `None`.
    pub(crate) fn account_body(&self, ledger: &ledger::Ledger, address: &Address) -> Option<json::AccountBody> {
        let account = ledger.accounts().get(address)?;
        let state = account.state();
        let mut locked: std::collections::BTreeMap<AssetId, u64> = Default::default();
        let shared = self.shared();
        let waiting = shared.lock_mempool().highest(address).unwrap_or(0);
        for (id, pair, limit) in shared.read_views().offers(address) {
            let place = Place { limit, account: *address, id };
            if let Some(amount) = ledger.book().get(pair).and_then(|offers| offers.get(&place)) {
                *locked.entry(pair.sell).or_default() += amount;
            }
        }
        for (asset, _) in &state.balances {
            locked.entry(*asset).or_default();
        }
        let balances = locked.into_iter().map(|(asset, locked)| json::BalanceBody {
            asset: self.symbols.get(asset).into(),
            available: account.balance(asset).to_string(),
            locked: locked.to_string(),
        });
        let highest = state.window.highest();
        Some(json::AccountBody {
            address: address.to_string(),
            height: ledger.height(),
            key: state.key.map(|key| key.to_string()),
            sequence: json::SequenceBody { highest, next: highest.max(waiting) + 1 },
            balances: balances.collect(),
        })
    }

    /// Resting offers of an account, at most `limit`, and whether there are more.
    pub(crate) fn offer_bodies(
        &self,
        ledger: &ledger::Ledger,
        address: &Address,
        limit: usize,
    ) -> (Vec<json::OfferBody>, bool) {
        let views = self.shared().read_views();
        let resting = views.offers(address).filter_map(|(id, pair, limit)| {
            let offers = ledger.book().get(pair)?;
            let amount = offers.get(&Place { limit, account: *address, id })?;
            Some(json::OfferBody {
                sell: self.symbols.get(pair.sell).into(),
                buy: self.symbols.get(pair.buy).into(),
                limit: limit.to_string(),
                id,
                amount: amount.to_string(),
            })
        });
        let mut offers: Vec<_> = resting.take(limit + 1).collect();
        let more = offers.len() > limit;
        offers.truncate(limit);
        (offers, more)
    }
}

/// An account: balances, key, sequence numbers.
#[utoipa::path(get, path = "/v1/accounts/{address}", params(("address" = String, Path, description = "0x and 40 digits")),
    responses((status = 200, body = json::AccountBody), (status = 404, body = ErrorBody)))]
async fn account(State(api): State<Api>, Path(address): Path<String>) -> Answered<json::AccountBody> {
    let address: Address = parse("address", &address)?;
    let body = api.blocking(move |api| api.exchange.read(|ledger| api.account_body(ledger, &address))).await?;
    body.map(Json).ok_or_else(|| Failure::not_found("the account does not exist; a payment to it brings it into being"))
}

/// How much of a list to give.
#[derive(Deserialize, utoipa::IntoParams)]
struct Page {
    /// How many entries at most.
    limit: Option<usize>,
    /// How many entries to skip.
    offset: Option<usize>,
    /// Only blocks below this height.
    before: Option<u64>,
}

impl Page {
    fn limit(&self, default: usize) -> usize {
        self.limit.unwrap_or(default).min(PAGE)
    }
}

/// Resting offers of an account.
#[utoipa::path(get, path = "/v1/accounts/{address}/offers", params(("address" = String, Path), ("limit" = Option<usize>, Query)),
    responses((status = 200, body = json::Offers), (status = 400, body = ErrorBody)))]
async fn account_offers(
    State(api): State<Api>,
    Path(address): Path<String>,
    Query(page): Query<Page>,
) -> Answered<json::Offers> {
    let address: Address = parse("address", &address)?;
    api.blocking(move |api| {
        api.exchange.read(|ledger| {
            let (offers, more) = api.offer_bodies(ledger, &address, page.limit(100));
            Json(json::Offers { height: ledger.height(), offers, more })
        })
    })
    .await
}

fn proof_bytes<T: borsh::BorshSerialize>(proof: &T) -> String {
    format!("0x{}", to_hex(&borsh::to_vec(proof).expect("writing to memory cannot fail")))
}

/// An account, or its absence, with a proof that needs the state root alone.
#[utoipa::path(get, path = "/v1/accounts/{address}/proof", params(("address" = String, Path)),
    responses((status = 200, body = json::AccountProofBody), (status = 400, body = ErrorBody)))]
async fn account_proof(State(api): State<Api>, Path(address): Path<String>) -> Answered<json::AccountProofBody> {
    let address: Address = parse("address", &address)?;
    let proved = api.blocking(move |api| {
        api.shared().with_roots(|ledger, roots| {
            let proof = roots.prove_account(ledger, &address);
            json::AccountProofBody {
                height: ledger.height(),
                root: proof.parts.root().to_string(),
                account: api.account_body(ledger, &address),
                proof: proof_bytes(&proof),
            }
        })
    });
    proved.await?.map(Json).ok_or_else(Failure::stopping)
}

/// A resting offer, or its absence, with a proof that needs the state root alone.
#[utoipa::path(get, path = "/v1/offers/{sell}/{buy}/{limit}/{account}/{id}/proof",
    params(("sell" = String, Path), ("buy" = String, Path), ("limit" = String, Path), ("account" = String, Path), ("id" = u64, Path)),
    responses((status = 200, body = json::OfferProofBody), (status = 400, body = ErrorBody)))]
async fn offer_proof(
    State(api): State<Api>,
    Path((sell, buy, limit, account, id)): Path<(String, String, String, String, u64)>,
) -> Answered<json::OfferProofBody> {
    let Sides { base, quote } = api.sides(&sell, &buy)?;
    let pair = Pair { sell: base, buy: quote };
    let place = Place { limit: parse::<Price>("limit", &limit)?, account: parse("account", &account)?, id };
    let proved = api.blocking(move |api| {
        api.shared().with_roots(|ledger, roots| {
            let proof = roots.prove_offer(ledger, pair, &place);
            json::OfferProofBody {
                height: ledger.height(),
                root: proof.parts.root().to_string(),
                amount: proof.amount.map(|amount| amount.to_string()),
                proof: proof_bytes(&proof),
            }
        })
    });
    proved.await?.map(Json).ok_or_else(Failure::stopping)
}

/// Every market with the price at which it last traded.
#[utoipa::path(get, path = "/v1/markets", responses((status = 200, body = json::Markets)))]
async fn markets_list(State(api): State<Api>) -> Answered<json::Markets> {
    api.blocking(|api| {
        let shared = api.shared();
        api.exchange.read(|ledger| {
            let (views, candles) = (shared.read_views(), shared.read_candles());
            Json(markets::markets(ledger, &views, &candles, &api.symbols))
        })
    })
    .await
}

/// How finely to draw.
#[derive(Deserialize)]
struct Detail {
    levels: Option<usize>,
    points: Option<usize>,
    limit: Option<usize>,
}

/// The resting offers of a market by price.
#[utoipa::path(get, path = "/v1/markets/{base}/{quote}/book",
    params(("base" = String, Path), ("quote" = String, Path), ("levels" = Option<usize>, Query)),
    responses((status = 200, body = json::BookBody), (status = 404, body = ErrorBody)))]
async fn market_book(
    State(api): State<Api>,
    Path((base, quote)): Path<(String, String)>,
    Query(detail): Query<Detail>,
) -> Answered<json::BookBody> {
    let sides = api.sides(&base, &quote)?;
    let levels = detail.levels.unwrap_or(50).min(PAGE);
    api.blocking(move |api| {
        let shared = api.shared();
        api.exchange.read(|ledger| Json(markets::book(ledger, &shared.read_candles(), &api.symbols, sides, levels)))
    })
    .await
}

/// Supply and demand of a market in the last batch, before it traded.
#[utoipa::path(get, path = "/v1/markets/{base}/{quote}/curves",
    params(("base" = String, Path), ("quote" = String, Path), ("points" = Option<usize>, Query)),
    responses((status = 200, body = json::Curves), (status = 404, body = ErrorBody)))]
async fn market_curves(
    State(api): State<Api>,
    Path((base, quote)): Path<(String, String)>,
    Query(detail): Query<Detail>,
) -> Answered<json::Curves> {
    let sides = api.sides(&base, &quote)?;
    let points = detail.points.unwrap_or(200).min(PAGE);
    let curves = api.blocking(move |api| {
        api.exchange.read(|ledger| {
            let views = api.shared().read_views();
            let batch = views.batches().next_back()?;
            Some(Json(markets::curves(ledger, batch, &api.symbols, sides, points)))
        })
    });
    curves.await?.ok_or_else(|| Failure::not_found("no batch has cleared yet"))
}

/// A market's price in recent batches.
#[utoipa::path(get, path = "/v1/markets/{base}/{quote}/history",
    params(("base" = String, Path), ("quote" = String, Path), ("limit" = Option<usize>, Query)),
    responses((status = 200, body = json::History), (status = 404, body = ErrorBody)))]
async fn market_history(
    State(api): State<Api>,
    Path((base, quote)): Path<(String, String)>,
    Query(detail): Query<Detail>,
) -> Answered<json::History> {
    let sides = api.sides(&base, &quote)?;
    let limit = detail.limit.unwrap_or(500).min(PAGE);
    api.blocking(move |api| Json(markets::history(&api.shared().read_views(), &api.symbols, sides, limit))).await
}

/// Which offers.
#[derive(Deserialize)]
struct Range {
    from: Option<String>,
    to: Option<String>,
    limit: Option<usize>,
}

/// The resting offers that sell base for quote, one by one in order of execution, with limits from one price to
/// another.
#[utoipa::path(get, path = "/v1/markets/{base}/{quote}/offers",
    params(("base" = String, Path), ("quote" = String, Path),
        ("from" = Option<String>, Query, description = "lowest limit"),
        ("to" = Option<String>, Query, description = "highest limit"),
        ("limit" = Option<usize>, Query)),
    responses((status = 200, body = json::RestingOffers), (status = 400, body = ErrorBody), (status = 404, body = ErrorBody)))]
async fn market_offers(
    State(api): State<Api>,
    Path((base, quote)): Path<(String, String)>,
    Query(range): Query<Range>,
) -> Answered<json::RestingOffers> {
    let sides = api.sides(&base, &quote)?;
    let bound = |name, text: Option<String>| text.map(|text| parse::<Price>(name, &text)).transpose();
    let (from, to) = (bound("from", range.from)?, bound("to", range.to)?);
    let count = range.limit.unwrap_or(100).min(PAGE);
    api.blocking(move |api| {
        api.exchange.read(|ledger| Json(markets::offers(ledger, &api.symbols, sides, (from, to), count)))
    })
    .await
}

/// Which candles.
#[derive(Deserialize)]
struct CandleQuery {
    interval: Option<String>,
    limit: Option<usize>,
    before_ms: Option<u64>,
}

/// A market's candles: first, highest, lowest and last batch price of each interval in which it traded.
#[utoipa::path(get, path = "/v1/markets/{base}/{quote}/candles",
    params(("base" = String, Path), ("quote" = String, Path),
        ("interval" = Option<String>, Query, description = "1m (default), 5m, 15m, 1h, 4h or 1d"),
        ("limit" = Option<usize>, Query),
        ("before_ms" = Option<u64>, Query, description = "only candles that begin before this time")),
    responses((status = 200, body = json::CandlesBody), (status = 400, body = ErrorBody), (status = 404, body = ErrorBody)))]
async fn market_candles(
    State(api): State<Api>,
    Path((base, quote)): Path<(String, String)>,
    Query(query): Query<CandleQuery>,
) -> Answered<json::CandlesBody> {
    let sides = api.sides(&base, &quote)?;
    let interval: Interval = parse("interval", query.interval.as_deref().unwrap_or("1m"))?;
    let (before_ms, limit) = (query.before_ms.unwrap_or(u64::MAX), query.limit.unwrap_or(500).min(PAGE));
    api.blocking(move |api| Json(api.candles_body(sides, interval, before_ms, limit))).await
}

impl Api {
    /// The last candles of a market before a time.
    pub(crate) fn candles_body(
        &self,
        sides: Sides,
        interval: Interval,
        before_ms: u64,
        limit: usize,
    ) -> json::CandlesBody {
        let candles = self.shared().read_candles().of(sides, interval, before_ms, limit);
        json::CandlesBody {
            market: self.symbols.market(sides.base, sides.quote),
            interval: interval.name(),
            candles: candles.iter().map(json::CandleBody::from).collect(),
        }
    }
}

/// Recent blocks, newest first.
#[utoipa::path(get, path = "/v1/blocks", params(("limit" = Option<usize>, Query), ("before" = Option<u64>, Query)),
    responses((status = 200, body = json::Blocks)))]
async fn blocks(State(api): State<Api>, Query(page): Query<Page>) -> Answered<json::Blocks> {
    api.blocking(move |api| {
        let views = api.shared().read_views();
        let recent = views.blocks(page.before.unwrap_or(u64::MAX)).take(page.limit(20));
        Json(json::Blocks { blocks: recent.map(json::block).collect() })
    })
    .await
}

fn no_block(height: u64) -> Failure {
    Failure::not_found(format!("no block {height} is kept in memory; /v1/blocks/{height}/raw reads the archive"))
}

fn archive_failed(error: &dyn std::fmt::Display) -> Failure {
    tracing::error!(%error, "the archive cannot be read");
    let message = "the archive cannot be read; the node's log says why".into();
    Failure(StatusCode::INTERNAL_SERVER_ERROR, ErrorText { code: "archive_failed", message })
}

impl Api {
    fn receipts(&self, height: u64) -> Result<Arc<ProvenReceipts>, Failure> {
        let receipts = self.shared().receipts(height).map_err(|error| archive_failed(&error))?;
        receipts.ok_or_else(|| Failure::not_found(format!("no receipts of block {height} are there yet")))
    }
}

/// A block and what became of its transactions.
#[utoipa::path(get, path = "/v1/blocks/{height}",
    params(("height" = u64, Path), ("offset" = Option<usize>, Query), ("limit" = Option<usize>, Query)),
    responses((status = 200, body = json::BlockDetail), (status = 404, body = ErrorBody)))]
async fn block(
    State(api): State<Api>,
    Path(height): Path<u64>,
    Query(page): Query<Page>,
) -> Answered<json::BlockDetail> {
    api.blocking(move |api| {
        let block = api.shared().read_views().block(height).map(json::block).ok_or_else(|| no_block(height))?;
        let receipts = &api.receipts(height)?.receipts;
        let body = api.shared().body(height).map_err(|error| archive_failed(&error))?;
        let body = body.ok_or_else(|| no_block(height))?;
        let transactions = body.sub_blocks.iter().flat_map(|sub| &sub.native);
        let (offset, limit) = (page.offset.unwrap_or(0), page.limit(100));
        let outcome = |(transaction, (id, outcome)): (&Transaction, &(TransactionId, ledger::Outcome))| {
            json::TransactionOutcome {
                id: id.to_string(),
                account: transaction.body.account.to_string(),
                sequence: transaction.body.sequence,
                operation: api.symbols.operation(&transaction.body.operation),
                outcome: outcome.into(),
            }
        };
        let outcomes = transactions.zip(&receipts.outcomes).skip(offset).take(limit).map(outcome).collect();
        let more = receipts.outcomes.len() > offset.saturating_add(limit);
        Ok(Json(json::BlockDetail { block, outcomes, more }))
    })
    .await?
}

/// The batch of a block: valuations, trades, what was burnt.
#[utoipa::path(get, path = "/v1/blocks/{height}/batch", params(("height" = u64, Path)),
    responses((status = 200, body = json::BatchBody), (status = 404, body = ErrorBody)))]
async fn batch(State(api): State<Api>, Path(height): Path<u64>) -> Answered<json::BatchBody> {
    api.blocking(move |api| {
        let views = api.shared().read_views();
        let batch = views.batch(height).ok_or_else(|| no_block(height))?;
        Ok(Json(api.symbols.batch(batch)))
    })
    .await?
}

/// An encoded superblock from the archive.
#[utoipa::path(get, path = "/v1/blocks/{height}/raw", params(("height" = u64, Path)),
    responses((status = 200, content_type = "application/octet-stream"), (status = 404, body = ErrorBody)))]
async fn raw_block(State(api): State<Api>, Path(height): Path<u64>) -> Result<Response, Failure> {
    let bytes = api.blocking(move |api| api.shared().archive.block(height)).await?;
    let bytes = bytes.map_err(|error| archive_failed(&error))?;
    let bytes = bytes.ok_or_else(|| Failure::not_found(format!("no block {height}")))?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], bytes).into_response())
}

/// The encoded receipts of a block from the archive: every outcome, the batch, the accounts that changed.
#[utoipa::path(get, path = "/v1/blocks/{height}/receipts", params(("height" = u64, Path)),
    responses((status = 200, content_type = "application/octet-stream"), (status = 404, body = ErrorBody)))]
async fn raw_receipts(State(api): State<Api>, Path(height): Path<u64>) -> Result<Response, Failure> {
    let bytes = api.blocking(move |api| api.shared().archive.receipts(height)).await?;
    let bytes = bytes.map_err(|error| archive_failed(&error))?;
    let bytes = bytes.ok_or_else(|| Failure::not_found(format!("no receipts of block {height}")))?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], bytes).into_response())
}

/// What a quorum of validators has signed of a block's outcome.
#[utoipa::path(get, path = "/v1/blocks/{height}/certificate", params(("height" = u64, Path)),
    responses((status = 200, body = json::CertificateBody), (status = 404, body = ErrorBody)))]
async fn certificate(State(api): State<Api>, Path(height): Path<u64>) -> Answered<json::CertificateBody> {
    api.blocking(move |api| {
        let shared = api.shared();
        let none = || Failure::not_found(format!("no certificate of block {height} yet"));
        let (lag, certificates) =
            shared.certificates.get().ok_or_else(|| Failure::not_found("a solo node has no certificates"))?;
        let bytes = certificates.block(height.saturating_add(*lag)).map_err(|error| archive_failed(&error))?;
        let finality: consensus::Finality =
            borsh::from_slice(&bytes.ok_or_else(none)?).map_err(|error| archive_failed(&error))?;
        let outcome = crate::validator::outcome(shared, height).map_err(|error| archive_failed(&error))?;
        let (state, receipts) = outcome.ok_or_else(none)?;
        Ok(Json(json::CertificateBody {
            height,
            state_root: state.to_string(),
            receipts_root: receipts.to_string(),
            signers: finality.certificate.signatures.iter().map(|(index, _)| *index).collect(),
            certificate: proof_bytes(&finality.certificate),
        }))
    })
    .await?
}

/// How this validator stands among the others.
#[utoipa::path(get, path = "/v1/validator",
    responses((status = 200, body = crate::validator::ValidatorStatus), (status = 404, body = ErrorBody)))]
async fn validator(State(api): State<Api>) -> Answered<crate::validator::ValidatorStatus> {
    let status = api.blocking(|api| api.exchange.status()).await?;
    status.map(Json).ok_or_else(|| Failure::not_found("this is a solo node, or it has just started"))
}

/// Who has staked, who validates in this epoch and the next, and when committees change.
#[utoipa::path(get, path = "/v1/validators", responses((status = 200, body = json::ValidatorsBody)))]
async fn validators(State(api): State<Api>) -> Answered<json::ValidatorsBody> {
    api.blocking(|api| api.exchange.read(|ledger| Json(json::validators(ledger)))).await
}

/// The registry of validators and the committees, with what shows that they stand in a state root.
#[utoipa::path(get, path = "/v1/validators/proof",
    responses((status = 200, body = json::ValidatorsProofBody)))]
async fn validators_proof(State(api): State<Api>) -> Answered<json::ValidatorsProofBody> {
    let proved = api.blocking(|api| {
        api.shared().with_roots(|ledger, roots| {
            let proof = roots.prove_validators(ledger);
            let root = proof.parts.root().to_string();
            json::ValidatorsProofBody { height: ledger.height(), root, proof: proof_bytes(&proof) }
        })
    });
    proved.await?.map(Json).ok_or_else(Failure::stopping)
}

/// From where on handovers are asked for.
#[derive(Deserialize)]
struct From {
    #[serde(default = "first_epoch")]
    from: u64,
}

fn first_epoch() -> u64 {
    1
}

/// What proves later committees to who trusts the founders, epoch by epoch; a page at a time.
#[utoipa::path(get, path = "/v1/handovers",
    params(("from" = Option<u64>, Query, description = "the first epoch; 1 if it is not given")),
    responses((status = 200, body = json::HandoversBody), (status = 404, body = ErrorBody)))]
async fn handovers(State(api): State<Api>, Query(From { from }): Query<From>) -> Answered<json::HandoversBody> {
    api.blocking(move |api| {
        let none = || Failure::not_found("a solo node has no committees");
        let held = api.shared().handovers.get().ok_or_else(none)?;
        let (from, last) = (from.max(1), held.last_certified().map_err(|error| archive_failed(&error))?);
        let page = held.page(from).map_err(|error| archive_failed(&error))?;
        if page.is_empty() && from <= last {
            let message = format!(
                "no handover to epoch {from}: this node began with a later state; ask another validator, see /v1/validators"
            );
            return Err(Failure::not_found(message));
        }
        let body = |(epoch, handover): (u64, &crate::Handover)| json::HandoverBody {
            epoch,
            height: handover.certificate.statement.height,
            handover: proof_bytes(handover),
        };
        Ok(Json(json::HandoversBody { from, last, handovers: (from..).zip(&page).map(body).collect() }))
    })
    .await?
}

/// What to say of a transaction.
#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    proof: bool,
    wait: Option<String>,
}

impl Asked {
    fn waits(&self) -> Result<bool, Failure> {
        match self.wait.as_deref() {
            None => Ok(false),
            Some("committed") => Ok(true),
            Some(other) => Err(Failure::malformed(format!("wait: {other:?} is unknown; say wait=committed"))),
        }
    }
}

fn pending(id: TransactionId) -> json::TransactionBody {
    let (height, outcome, receipts_root, proof) = (None, None, None, None);
    json::TransactionBody { id: id.to_string(), status: "pending", height, outcome, receipts_root, proof }
}

fn committed(id: TransactionId, found: Found) -> json::TransactionBody {
    let (height, outcome) = (Some(found.height), Some((&found.outcome).into()));
    json::TransactionBody { status: "committed", height, outcome, ..pending(id) }
}

/// Whether a block changed an account, with a proof that needs the block's receipts root alone.
#[utoipa::path(get, path = "/v1/blocks/{height}/accounts/{address}",
    params(("height" = u64, Path), ("address" = String, Path)),
    responses((status = 200, body = json::ModifiedBody), (status = 400, body = ErrorBody), (status = 404, body = ErrorBody)))]
async fn block_account(
    State(api): State<Api>,
    Path((height, address)): Path<(u64, String)>,
) -> Answered<json::ModifiedBody> {
    let address: Address = parse("address", &address)?;
    api.blocking(move |api| {
        let proven = api.receipts(height)?;
        Ok(Json(json::ModifiedBody {
            height,
            address: address.to_string(),
            changed: proven.receipts.modified.binary_search(&address).is_ok(),
            receipts_root: proven.root.to_string(),
            proof: proof_bytes(&proven.prove_modified(&address)),
        }))
    })
    .await?
}

/// Where a transaction is, and what became of it.
#[utoipa::path(get, path = "/v1/transactions/{id}", params(("id" = String, Path), ("proof" = Option<bool>, Query)),
    responses((status = 200, body = json::TransactionBody), (status = 404, body = ErrorBody)))]
async fn transaction(
    State(api): State<Api>,
    Path(id): Path<String>,
    Query(asked): Query<Asked>,
) -> Answered<json::TransactionBody> {
    let id: Digest = parse("id", &id)?;
    api.blocking(move |api| {
        let found = api.shared().read_views().find(&id);
        let Some(found) = found else {
            return if api.shared().lock_mempool().contains(&id) {
                Ok(Json(pending(id)))
            } else {
                Err(Failure::not_found("no such transaction waits or is among those indexed"))
            };
        };
        let mut body = committed(id, found);
        if asked.proof {
            let proven = api.receipts(found.height)?;
            body.receipts_root = Some(proven.root.to_string());
            body.proof = Some(proof_bytes(&proven.prove(&id)));
        }
        Ok(Json(body))
    })
    .await?
}

/// Transactions as JSON carries them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sent {
    transaction: Option<String>,
    transactions: Option<Vec<String>>,
}

fn decode_hex(place: &str, text: &str) -> Result<Transaction, Failure> {
    let digits = text.strip_prefix("0x").unwrap_or(text).as_bytes();
    let nibble = |digit: u8| (digit as char).to_digit(16).map(|value| value as u8);
    let pairs = digits.chunks(2).map(|pair| Some(nibble(pair[0])? << 4 | nibble(*pair.get(1)?)?));
    let bytes: Option<Vec<u8>> = pairs.collect();
    let bytes = bytes.ok_or_else(|| Failure::malformed(format!("{place}: not hexadecimal")))?;
    borsh::from_slice(&bytes).map_err(|error| Failure::malformed(format!("{place}: not a transaction: {error}")))
}

/// Reads one transaction or several from a body of either kind.
fn decode(headers: &HeaderMap, body: &[u8], several: bool) -> Result<Vec<Transaction>, Failure> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
    match kind.split(';').next().unwrap_or("").trim() {
        "application/octet-stream" => {
            let decoded = if several { borsh::from_slice(body) } else { borsh::from_slice(body).map(|one| vec![one]) };
            decoded.map_err(|error| Failure::malformed(format!("the body does not decode: {error}")))
        }
        "application/json" => {
            let sent: Sent = serde_json::from_slice(body)
                .map_err(|error| Failure::malformed(format!("the body is not the JSON that is expected: {error}")))?;
            match (sent, several) {
                (Sent { transaction: Some(one), transactions: None }, false) => {
                    Ok(vec![decode_hex("transaction", &one)?])
                }
                (Sent { transaction: None, transactions: Some(all) }, true) => {
                    all.iter().enumerate().map(|(i, one)| decode_hex(&format!("transactions[{i}]"), one)).collect()
                }
                (_, false) => Err(Failure::malformed("the body needs the field `transaction`, and only it")),
                (_, true) => Err(Failure::malformed("the body needs the field `transactions`, and only it")),
            }
        }
        _ => {
            let message = "say Content-Type: application/octet-stream or application/json".into();
            Err(Failure(StatusCode::UNSUPPORTED_MEDIA_TYPE, ErrorText { code: "unsupported_media_type", message }))
        }
    }
}

impl Api {
    async fn submit(&self, transactions: Vec<Transaction>, wait: bool) -> Result<Vec<Answer>, Failure> {
        let receiver = self.exchange.submit(transactions, wait).map_err(|closed| match closed {
            Closed::Busy => Failure::busy("too_many_requests", "too many submissions wait; try again shortly"),
            Closed::Stopping => Failure::stopping(),
            Closed::Follows => Failure::follows(),
        })?;
        receiver.await.map_err(|_| Failure::stopping())
    }
}

/// What one answer becomes; waits for the block where that was asked for.
async fn respond(answer: Answer, deadline: tokio::time::Instant) -> Result<json::TransactionBody, Failure> {
    match answer {
        Answer::Pending(id, None) => Ok(pending(id)),
        Answer::Pending(id, Some(receiver)) => match tokio::time::timeout_at(deadline, receiver).await {
            Ok(Ok(found)) => Ok(committed(id, found)),
            Ok(Err(_)) => Err(Failure::stopping()),
            Err(_) => Ok(pending(id)),
        },
        Answer::Committed(id, found) => Ok(committed(id, found)),
        Answer::Full => Err(Failure::busy("mempool_full", "the mempool is full; try again shortly")),
        Answer::Refused(refusal) => Err(Failure(StatusCode::UNPROCESSABLE_ENTITY, refusal.into())),
    }
}

/// Sends a transaction.
#[utoipa::path(post, path = "/v1/transactions", params(("wait" = Option<String>, Query, description = "`committed` to wait for the block")),
    request_body(content = String, content_type = "application/octet-stream", description = "the encoded transaction, or `{\"transaction\":\"0x…\"}` as JSON"),
    responses((status = 202, body = json::TransactionBody), (status = 200, body = json::TransactionBody),
        (status = 400, body = ErrorBody), (status = 413, body = ErrorBody), (status = 415, body = ErrorBody),
        (status = 422, body = ErrorBody), (status = 429, body = ErrorBody), (status = 503, body = ErrorBody)))]
async fn send(
    State(api): State<Api>,
    Query(asked): Query<Asked>,
    headers: HeaderMap,
    body: Result<Bytes, axum::extract::rejection::BytesRejection>,
) -> Result<Response, Failure> {
    let wait = asked.waits()?;
    let transactions = decode(&headers, &whole(body)?, false)?;
    let answer = api.submit(transactions, wait).await?.pop().ok_or_else(Failure::stopping)?;
    let body = respond(answer, tokio::time::Instant::now() + WAIT).await?;
    let status = if body.status == "pending" { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok((status, Json(body)).into_response())
}

/// Sends many transactions.
#[utoipa::path(post, path = "/v1/transactions/batch", params(("wait" = Option<String>, Query)),
    request_body(content = String, content_type = "application/octet-stream", description = "the encoded sequence of transactions, or `{\"transactions\":[\"0x…\"]}` as JSON"),
    responses((status = 200, body = json::Results), (status = 400, body = ErrorBody), (status = 413, body = ErrorBody),
        (status = 415, body = ErrorBody), (status = 429, body = ErrorBody), (status = 503, body = ErrorBody)))]
async fn send_batch(
    State(api): State<Api>,
    Query(asked): Query<Asked>,
    headers: HeaderMap,
    body: Result<Bytes, axum::extract::rejection::BytesRejection>,
) -> Answered<json::Results> {
    let wait = asked.waits()?;
    let transactions = decode(&headers, &whole(body)?, true)?;
    let most = api.shared().config.http.batch_transactions;
    if transactions.len() > most {
        let message = format!("{} transactions in one call; send at most {most}", transactions.len());
        return Err(Failure(StatusCode::PAYLOAD_TOO_LARGE, ErrorText { code: "too_large", message }));
    }
    let deadline = tokio::time::Instant::now() + WAIT;
    let mut results = Vec::with_capacity(transactions.len());
    for answer in api.submit(transactions, wait).await? {
        results.push(match respond(answer, deadline).await {
            Ok(body) => json::ResultBody::Taken(body),
            Err(Failure(_, error)) => json::ResultBody::Error(ErrorBody { error }),
        });
    }
    Ok(Json(json::Results { results }))
}

fn whole(body: Result<Bytes, axum::extract::rejection::BytesRejection>) -> Result<Bytes, Failure> {
    body.map_err(|error| match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Failure::too_large(),
        _ => Failure::malformed(format!("the body did not arrive whole: {error}")),
    })
}
