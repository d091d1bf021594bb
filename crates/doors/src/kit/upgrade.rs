//! Requests that become WebSockets.

use axum::extract::FromRequestParts;
use axum::extract::ws::WebSocketUpgrade;
use axum::http::request::Parts;

use super::Failure;

/// A request for a WebSocket. Any other is told what it lacks: a proxy with its usual settings passes no upgrade on.
pub(crate) struct Upgrade(pub(crate) WebSocketUpgrade);

impl<S: Send + Sync> FromRequestParts<S> for Upgrade {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Upgrade, Failure> {
        let upgrade = WebSocketUpgrade::from_request_parts(parts, state).await.map_err(|lacks| {
            Failure::malformed(format!(
                "a WebSocket is here, at ws:// or wss://, and the request asks for none ({}): a proxy in front has to pass \
                 on `Upgrade` and `Connection` over HTTP/1.1 (nginx: `proxy_http_version 1.1; proxy_set_header Upgrade \
                 $http_upgrade; proxy_set_header Connection $connection_upgrade`, as in deploy/proxy/nginx.conf)",
                lacks.body_text()
            ))
        })?;
        Ok(Upgrade(upgrade))
    }
}
