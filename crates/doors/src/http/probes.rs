//! Probes and metrics. They are answered however many requests are being served.

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::backend::{Closed, Standing};
use crate::kit::guard::check_role;
use crate::kit::{Failure, Kit, check_pages};
use replica::ValidatorStatus;

/// `/healthz`, `/readyz` and `/metrics`.
pub(crate) fn probes(kit: Kit) -> Router {
    Router::new()
        .route("/healthz", get(async || "alive\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .layer(middleware::from_fn_with_state(kit.clone(), check_role))
        .layer(middleware::from_fn_with_state(kit.pages.clone(), check_pages))
        .with_state(kit)
}

async fn ready(State(kit): State<Kit>) -> Response {
    if kit.is_draining() {
        return Failure::draining().into_response();
    }
    match kit.blocking(|kit| kit.backend.standing()).await {
        Ok(standing) if standing.disk_is_full => Failure::disk_full().into_response(),
        Ok(Standing { needs_rules: Some(rules), .. }) => Failure::from(Closed::NeedsRules(rules)).into_response(),
        Ok(standing) if standing.is_ready => match standing.validator.as_ref().and_then(unready) {
            Some((code, message)) => Failure::new(StatusCode::SERVICE_UNAVAILABLE, code, message).into_response(),
            None => "ready\n".into_response(),
        },
        _ => Failure::stopping().into_response(),
    }
}

/// Why a validator is not ready: code and sentence.
fn unready(status: &ValidatorStatus) -> Option<(&'static str, String)> {
    if let Some(stall) = status.stall() {
        return Some(("no_quorum", stall));
    }
    let message = || {
        format!(
            "height {} of {}, {} of {} other validators connected{}",
            status.decided,
            status.certified_anywhere,
            status.connected,
            status.validators - 1,
            if status.silent { ", not voting" } else { "" }
        )
    };
    (!status.is_caught_up()).then(|| ("catching_up", message()))
}

async fn metrics(State(kit): State<Kit>) -> Response {
    let text = kit.backend.metrics().encode();
    ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text).into_response()
}
