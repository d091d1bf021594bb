//! The checks of every request: origins, host names, roles, sizes and numbers.

use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use tokio::sync::OwnedSemaphorePermit;

use super::Api;
use super::failure::Failure;
use crate::roles::{Role, role_of};
/// Rejects host names that are not this node's: a page of another site may have been pointed here.
pub(super) async fn check_host(State(api): State<Api>, request: Request, next: Next) -> Response {
    if is_own_host(request.headers(), &api.settings.hosts) {
        return next.run(request).await;
    }
    let message = "the host name is not one of this node's; list it under [http] hosts";
    Failure::new(StatusCode::MISDIRECTED_REQUEST, "wrong_host", message).into_response()
}

/// Rejects callers without the required role.
pub(super) async fn check_role(State(api): State<Api>, request: Request, next: Next) -> Response {
    // A request that matches no route is for a file of the page.
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let role = route.map_or(Role::Read, |route| role_of(request.method().as_str(), route));
    if api.access.admits(role, request.headers()) {
        next.run(request).await
    } else {
        Failure::unauthorized(role).into_response()
    }
}

/// Tells browsers which pages of other origins may read the answers, and answers their preflights.
pub(crate) async fn cors(State(api): State<Api>, request: Request, next: Next) -> Response {
    let origin = request
        .headers()
        .get(header::ORIGIN)
        .filter(|origin| origin.to_str().is_ok_and(|origin| api.settings.origins.iter().any(|known| known == origin)));
    let Some(origin) = origin.cloned() else { return next.run(request).await };
    let asks = request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = match request.method() == Method::OPTIONS && asks {
        true => StatusCode::NO_CONTENT.into_response(),
        false => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    if asks {
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST"));
        let allowed = HeaderValue::from_static("authorization, content-type");
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    }
    response
}

/// Rejects foreign host names, and limits concurrent requests. The body is read first, so that a slow sender blocks
/// nobody.
pub(crate) async fn guard(State(api): State<Api>, request: Request, next: Next) -> Response {
    if !is_own_host(request.headers(), &api.settings.hosts) {
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

/// Reads the body of a request. Its bytes count towards the limit of all bodies as they arrive.
async fn read_body(api: &Api, request: Request) -> Result<(Request, OwnedSemaphorePermit), Failure> {
    let http = &api.settings;
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

/// Converts the library's error answers to the form of all other errors.
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
    Failure::new(status, code, message).into_response()
}

fn is_own_host(headers: &HeaderMap, hosts: &[String]) -> bool {
    let Some(host) = headers.get(header::HOST).and_then(|host| host.to_str().ok()) else { return true };
    let name = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or(""),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name == "localhost" || name.parse::<std::net::IpAddr>().is_ok() || hosts.iter().any(|known| known == name)
}
