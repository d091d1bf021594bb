//! Calls of who runs the node: how its doors stand, and turning submissions away before it is stopped.

use std::sync::atomic::Ordering;

use axum::Json;
use axum::extract::State;

use super::Api;
use super::failure::Answered;
use crate::json::{self, ErrorBody};

/// How the doors of this node stand.
#[utoipa::path(get, path = "/v1/operator/doors", security(("operator" = [])),
    responses((status = 200, body = json::DoorsBody), (status = 401, body = ErrorBody)))]
pub(super) async fn doors(State(api): State<Api>) -> Answered<json::DoorsBody> {
    Ok(Json(body(&api)))
}

/// Takes no more transactions; `/readyz` says so, and reads go on. What was taken before is committed.
#[utoipa::path(post, path = "/v1/operator/drain", security(("operator" = [])),
    responses((status = 200, body = json::DoorsBody), (status = 401, body = ErrorBody)))]
pub(super) async fn drain(State(api): State<Api>) -> Answered<json::DoorsBody> {
    set(&api, true)
}

/// Takes transactions again.
#[utoipa::path(post, path = "/v1/operator/resume", security(("operator" = [])),
    responses((status = 200, body = json::DoorsBody), (status = 401, body = ErrorBody)))]
pub(super) async fn resume(State(api): State<Api>) -> Answered<json::DoorsBody> {
    set(&api, false)
}

fn set(api: &Api, drains: bool) -> Answered<json::DoorsBody> {
    api.drains.store(drains, Ordering::Release);
    tracing::warn!(drains, "the operator has set whether transactions are taken");
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
        requests: http.concurrent_requests.saturating_sub(api.requests.available_permits()),
        streams: http.stream_connections.saturating_sub(api.streams.available_permits()),
    }
}
