//! Probes and metrics. They are answered however many requests are being served.

use std::collections::BTreeMap;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
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

/// OpenMetrics for who accepts it, as Prometheus does; otherwise the older text format.
const OPEN_METRICS: &str = "application/openmetrics-text";

async fn metrics(State(kit): State<Kit>, headers: HeaderMap) -> Response {
    let text = kit.backend.metrics().encode();
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    if accepted.into_iter().any(|value| value.contains(OPEN_METRICS)) {
        let kind = format!("{OPEN_METRICS}; version=1.0.0; charset=utf-8");
        return ([(header::CONTENT_TYPE, kind)], text).into_response();
    }
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], in_text_format(&text)).into_response()
}

/// OpenMetrics in the text format of Prometheus: there a family has the name of its samples, and there are neither
/// units nor an end.
fn in_text_format(metrics: &str) -> String {
    let described = |line: &str| {
        let (key, rest) = line.strip_prefix("# ")?.split_once(' ')?;
        let (name, text) = rest.split_once(' ')?;
        Some((key.to_string(), name.to_string(), text.to_string()))
    };
    let types = metrics.lines().filter_map(described).filter(|(key, ..)| key == "TYPE");
    let types: BTreeMap<String, String> = types.map(|(_, name, kind)| (name, kind)).collect();
    let mut text = String::with_capacity(metrics.len());
    for line in metrics.lines() {
        let Some((key, name, rest)) = described(line) else {
            if !line.starts_with('#') {
                text.extend([line, "\n"]);
            }
            continue;
        };
        let (suffix, kind) = match types.get(&name).map(String::as_str) {
            Some("counter") => ("_total", "counter"),
            Some("info") => ("_info", "gauge"),
            Some("unknown") => ("", "untyped"),
            other => ("", other.unwrap_or("untyped")),
        };
        match key.as_str() {
            "TYPE" => text.push_str(&format!("# TYPE {name}{suffix} {kind}\n")),
            "HELP" => text.push_str(&format!("# HELP {name}{suffix} {rest}\n")),
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_text_format_names_families_as_their_samples() {
        let metrics = "# HELP a Blocks.\n# TYPE a counter\na_total 3\n# HELP b_seconds Time.\n# TYPE b_seconds histogram\n\
            # UNIT b_seconds seconds\nb_seconds_bucket{le=\"+Inf\"} 1\nb_seconds_sum 0.5\nb_seconds_count 1\n\
            # HELP w Build.\n# TYPE w info\nw_info{v=\"1\"} 1\n# TYPE g gauge\ng 7\n# EOF\n";
        let expected = "# HELP a_total Blocks.\n# TYPE a_total counter\na_total 3\n# HELP b_seconds Time.\n\
            # TYPE b_seconds histogram\nb_seconds_bucket{le=\"+Inf\"} 1\nb_seconds_sum 0.5\nb_seconds_count 1\n\
            # HELP w_info Build.\n# TYPE w_info gauge\nw_info{v=\"1\"} 1\n# TYPE g gauge\ng 7\n";
        assert_eq!(in_text_format(metrics), expected);
    }
}
