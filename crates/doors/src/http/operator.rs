//! The operator's calls: the status of the doors, and draining before the node is stopped.

use std::sync::atomic::Ordering;

use axum::Json;
use axum::extract::State;

use super::Api;
use crate::json::{self, ErrorBody};
use crate::kit::Answered;

/// The status of this node's doors.
#[utoipa::path(get, path = "/v1/operator/doors", security(("operator" = [])),
    responses((status = 200, body = json::DoorsBody), (status = 401, body = ErrorBody)))]
pub(super) async fn doors(State(api): State<Api>) -> Answered<json::DoorsBody> {
    Ok(Json(body(&api)))
}

/// Accepts no more transactions; `/readyz` reports this, and reads still work. Transactions accepted before are
/// committed.
#[utoipa::path(post, path = "/v1/operator/drain", security(("operator" = [])),
    responses((status = 200, body = json::DoorsBody), (status = 401, body = ErrorBody)))]
pub(super) async fn drain(State(api): State<Api>) -> Answered<json::DoorsBody> {
    set(&api, true)
}

/// Accepts transactions again.
#[utoipa::path(post, path = "/v1/operator/resume", security(("operator" = [])),
    responses((status = 200, body = json::DoorsBody), (status = 401, body = ErrorBody)))]
pub(super) async fn resume(State(api): State<Api>) -> Answered<json::DoorsBody> {
    set(&api, false)
}

fn set(api: &Api, drains: bool) -> Answered<json::DoorsBody> {
    api.drains.store(drains, Ordering::Release);
    tracing::warn!(drains, "the operator has changed whether transactions are accepted");
    Ok(Json(body(api)))
}

fn body(api: &Api) -> json::DoorsBody {
    let http = &api.settings;
    json::DoorsBody {
        listen: http.listen.to_string(),
        probes: http.probes.map(|probes| probes.to_string()),
        tls: http.certificate.is_some(),
        behind_proxy: http.behind_proxy,
        hosts: http.hosts.clone(),
        origins: http.origins.clone(),
        draining: api.drains.load(Ordering::Acquire),
        requests: http.concurrent_requests.saturating_sub(api.rates.requests.free() as usize),
        streams: http.stream_connections.saturating_sub(api.streams.free() as usize),
    }
}
