//! Orders over HTTP and WebSocket; `docs/venue-api.md` describes it.
//!
//! | call | what |
//! |---|---|
//! | `GET /v1/venue` | how the venue stands, and what requests are signed for |
//! | `GET /v1/venue/markets` | markets with their terms, ticks and phases |
//! | `GET /v1/venue/markets/{market}/book` | levels, with the number of the last event and a checksum |
//! | `GET /v1/venue/markets/{market}/image` | resting orders by id, to begin a book that increments keep |
//! | `GET /v1/venue/markets/{market}/trades` | what executed of late, the newest first |
//! | `POST /v1/venue/orders` | places signed orders; each answer has the immediate reports |
//! | `POST /v1/venue/lists` | places lists of orders, each under one signature |
//! | `POST /v1/venue/requests` | a signed request: cancel, cancel all, status, fills |
//! | `POST /v1/venue/operator` | halts, calls, auctions, collars, kills: with the operator's token |
//! | `GET /v1/venue/stream` | WebSocket: orders, requests, own reports, books |
//! | `GET /v1/venue/openapi.json`, `GET /v1/venue/asyncapi.json` | these calls, and the stream, for machines |
//! | `GET /v1/fairness` | how the venue's market edge is, and its log of fairness; `null` without one |

pub mod bodies;
mod books;
mod described;
mod described_stream;
pub(crate) mod feed;
mod operator;
mod orders;
pub(crate) mod ouch;
pub(crate) mod snapshots;
mod stream;

use std::sync::Arc;

use api::{ErrorBody, ErrorText};
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use doors::{OperatorCheck, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sockets::{NoTurn, Shares};
use utoipa::ToSchema;

use crate::clock::clock_ms;
use crate::codes::pause_code;
use crate::edge::fairness_body;
use crate::shared::{PitRefusal, PitShared, PitStanding, PitView};

/// The most connections of the stream.
const STREAMS: u64 = 1_024;
/// The most requests that are served at once.
const REQUESTS: u64 = 1_024;

/// What all calls share.
#[derive(Clone)]
pub(crate) struct Api {
    pub shared: Arc<PitShared>,
    operator: OperatorCheck,
    streams: Shares,
    requests: Shares,
}

/// The calls of the table above.
pub(crate) fn calls(shared: Arc<PitShared>, operator: OperatorCheck) -> Router {
    let api = Api { shared, operator, streams: Shares::new(STREAMS), requests: Shares::new(REQUESTS) };
    let (described, description) = described::calls().split_for_parts();
    let document = described::document(&description);
    let served = |document: &Value| {
        let text: Arc<str> = document.to_string().into();
        get(async move || ([(CONTENT_TYPE, "application/json")], text.to_string()))
    };
    let limited = described
        .route("/v1/venue/openapi.json", served(&document))
        .route("/v1/venue/asyncapi.json", served(&described_stream::document(&document)))
        .layer(axum::middleware::from_fn_with_state(api.clone(), limit));
    limited.route("/v1/venue/stream", get(stream::open)).with_state(api)
}

/// The venue's own door.
pub(crate) fn router(calls: Router) -> Router {
    calls.fallback(async || {
        Failure::new(StatusCode::NOT_FOUND, "not_found", "there is no such call; see docs/venue-api.md")
    })
}

/// Serves so many requests at once, of one address at most what it leaves.
async fn limit(
    State(api): State<Api>,
    Extension(visitor): Extension<Visitor>,
    request: axum::extract::Request,
    next: axum::middleware::Next,
) -> Response {
    let Some(share) = api.requests.take(visitor.address, 1) else {
        let message = "too many requests at once, of all or of this address: send them again shortly";
        return Failure::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", message).into_response();
    };
    let answer = next.run(request).await;
    drop(share);
    answer
}

/// A refusal over HTTP.
#[derive(Debug)]
pub(crate) struct Failure(StatusCode, &'static str, String);

impl Failure {
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Failure {
        Failure(status, code, message.into())
    }

    pub fn malformed(message: impl Into<String>) -> Failure {
        Failure::new(StatusCode::BAD_REQUEST, "malformed", message)
    }

    pub fn code(&self) -> &'static str {
        self.1
    }

    pub fn message(&self) -> &str {
        &self.2
    }
}

impl From<PitRefusal> for Failure {
    fn from(why: PitRefusal) -> Failure {
        let (status, code) = match &why {
            PitRefusal::NotRunning(_) => (StatusCode::SERVICE_UNAVAILABLE, "not_running"),
            PitRefusal::Busy => (StatusCode::TOO_MANY_REQUESTS, "busy"),
            PitRefusal::BeginsAgain => (StatusCode::SERVICE_UNAVAILABLE, "begins_again"),
            PitRefusal::DiskFull => (StatusCode::INSUFFICIENT_STORAGE, "disk_full"),
            PitRefusal::NeedsRules { .. } => (StatusCode::SERVICE_UNAVAILABLE, "needs_rules"),
            PitRefusal::Signature => (StatusCode::BAD_REQUEST, "signature"),
            PitRefusal::UnknownKey => (StatusCode::NOT_FOUND, "unknown_key"),
            PitRefusal::NoWatcher => (StatusCode::FORBIDDEN, "no_watcher"),
            PitRefusal::Turn(NoTurn::OverBudget { .. }) => (StatusCode::TOO_MANY_REQUESTS, "too_much_was_false"),
            PitRefusal::Turn(NoTurn::Crowded) => (StatusCode::TOO_MANY_REQUESTS, "too_many_requests"),
            PitRefusal::Turn(NoTurn::Stopping) => (StatusCode::SERVICE_UNAVAILABLE, "not_running"),
            PitRefusal::Stamp(_) => (StatusCode::CONFLICT, "stamp"),
        };
        Failure(status, code, why.to_string())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let Failure(status, code, message) = self;
        let error = ErrorText { code: code.into(), message };
        (status, Json(ErrorBody { error })).into_response()
    }
}

/// How a venue stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VenueStatusBody {
    /// `runs`, `waits`, `failed` or `stopped`.
    pub standing: String,
    /// Why it does not run.
    pub why: Option<String>,
    /// The identity of the network, which orders and requests sign.
    pub network: Option<String>,
    /// The venue's number.
    pub venue: u32,
    /// Its incarnation.
    pub incarnation: Option<u32>,
    /// The day of order numbers now.
    pub day: u16,
    /// Milliseconds since 1970 by the venue's clock.
    pub clock_ms: u64,
    /// Why matching pauses.
    pub paused: Option<PauseBody>,
    /// The last certified height that the root knows.
    pub height: Option<u64>,
    /// Fills of the incarnation.
    pub fills: u64,
    /// Those of them that are settled or bust.
    pub settled: u64,
    /// Fills that became bust since the node started.
    pub busts: u64,
    /// The settle that waits for a block.
    pub in_flight: Option<InFlightBody>,
    /// Units of the bond, without those that leave.
    pub bond: Option<String>,
    /// Units of the first asset that the operator's account has for fees.
    pub operator_balance: Option<String>,
    /// Records of the journal.
    pub records: u64,
    /// Whether lists of orders are taken: the certified height counts them.
    #[serde(default)]
    pub takes_lists: bool,
    /// Open markets.
    pub markets: Vec<u32>,
    /// Sessions with a link.
    pub sessions: usize,
}

/// Why matching pauses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PauseBody {
    /// For programs.
    pub code: String,
    /// For people.
    pub message: String,
}

/// A settle in flight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InFlightBody {
    /// Its number.
    pub sequence: u64,
    /// Its last height.
    pub until: u64,
}

/// How the venue's market edge is, and its log of fairness; `null` without one. A look at it waits for its thread,
/// which is awake each millisecond.
#[utoipa::path(get, path = "/v1/fairness",
    responses((status = 200, body = serde_json::Value), (status = 503, body = ErrorBody)))]
async fn fairness(State(api): State<Api>) -> Result<Json<Value>, Failure> {
    let Some(edge) = api.shared.edge.get().cloned() else { return Ok(Json(Value::Null)) };
    let status = tokio::task::spawn_blocking(move || edge.status(0)).await.ok().flatten();
    let ended = || Failure::new(StatusCode::SERVICE_UNAVAILABLE, "edge_ended", "the edge has ended: restart the node");
    Ok(Json(fairness_body(&status.ok_or_else(ended)?)))
}

/// How the venue stands, and what requests are signed for.
#[utoipa::path(get, path = "/v1/venue", responses((status = 200, body = VenueStatusBody)))]
async fn status(State(api): State<Api>) -> Json<VenueStatusBody> {
    let view = api.shared.view.borrow().clone();
    let newest = api.shared.heard(|heard| heard.newest.clone());
    let bond = newest.as_ref().and_then(|state| Some(state.venues.get(api.shared.venue)?.bond.to_string()));
    let balance = newest.and_then(|state| Some(state.operator?.balance.to_string()));
    Json(VenueStatusBody { bond, operator_balance: balance, ..status_body(api.shared.venue, view) })
}

fn status_body(venue: u32, view: PitView) -> VenueStatusBody {
    let (standing, why) = match view.standing {
        PitStanding::Runs => ("runs", None),
        PitStanding::Waits(why) => ("waits", Some(why)),
        PitStanding::Failed(why) => ("failed", Some(why)),
        PitStanding::Stopped(why) => ("stopped", Some(why.to_string())),
    };
    let clock_ms = clock_ms();
    VenueStatusBody {
        standing: standing.into(),
        why,
        network: view.scope.map(|scope| scope.network.to_string()),
        venue,
        incarnation: view.scope.map(|scope| scope.incarnation),
        day: crate::ouch::day_of(clock_ms),
        clock_ms,
        paused: view.paused.map(|why| PauseBody { code: pause_code(&why).into(), message: why.to_string() }),
        height: view.height,
        fills: view.fills,
        settled: view.settled,
        busts: view.busts,
        in_flight: view.in_flight.map(|of| InFlightBody { sequence: of.sequence, until: of.until }),
        bond: None,
        operator_balance: None,
        records: view.record,
        takes_lists: view.takes_lists,
        markets: view.markets,
        sessions: view.links,
    }
}
