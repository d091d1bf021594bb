//! The checks of every request: origins, host names, roles, sizes and numbers.

use std::time::Duration;

use axum::extract::{Extension, MatchedPath, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use sockets::{Share, Shares};

use super::failure::Failure;
use super::{Kit, rate_limits};
use crate::door::Visitor;
use crate::roles::{Role, role_of};

/// Rejects callers without the required role.
pub(crate) async fn check_role(State(kit): State<Kit>, request: Request, next: Next) -> Response {
    // A request that matches no route is for a file of the page.
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let role = route.map_or(Role::Read, |route| role_of(request.method().as_str(), route));
    if kit.access.admits(role, request.headers()) {
        next.run(request).await
    } else {
        Failure::unauthorized(role).into_response()
    }
}

/// Tells browsers which pages of other origins may read the answers, and answers their preflights.
pub(crate) async fn cors(State(kit): State<Kit>, request: Request, next: Next) -> Response {
    let origin = request.headers().get(header::ORIGIN).filter(|origin| kit.pages.is_listed(origin));
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
    } else {
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(rate_limits::EXPOSED));
    }
    response
}

/// Rejects foreign host names and origins, and limits concurrent requests, fairly by address. The body is read first,
/// so that a slow sender blocks nobody.
pub(crate) async fn guard(
    State(kit): State<Kit>,
    Extension(visitor): Extension<Visitor>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = guarded(&kit, &visitor, request, next).await;
    kit.rates.tell(visitor.address, &mut response);
    response
}

async fn guarded(kit: &Kit, visitor: &Visitor, request: Request, next: Next) -> Response {
    if let Err(failure) = kit.pages.check(request.headers()) {
        return failure.into_response();
    }
    let (request, _room) = match read_body(kit, visitor, request).await {
        Ok(read) => read,
        Err(failure) => return failure.into_response(),
    };
    let Some(_share) = kit.rates.requests.take(visitor.address, 1) else {
        let message = "too many requests at once, of all or of this address; try again shortly";
        return Failure::busy("too_many_requests", message).into_response();
    };
    let mut response = in_our_words(next.run(request).await).await;
    response.headers_mut().insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}

/// Reads the body of a request. Its bytes count towards the limit of all bodies as they arrive.
async fn read_body(kit: &Kit, visitor: &Visitor, request: Request) -> Result<(Request, Option<Share>), Failure> {
    let http = &kit.settings;
    let (head, body) = request.into_parts();
    let (mut body, mut bytes, mut room) = (body.into_data_stream(), Vec::new(), None);
    let read = async {
        while let Some(part) = body.next().await {
            let part = part.map_err(|error| Failure::malformed(format!("the body did not arrive whole: {error}")))?;
            if bytes.len() + part.len() > http.body_bytes {
                return Err(Failure::too_large());
            }
            if !take_more(&kit.rates.bytes, visitor, &mut room, part.len() as u64) {
                let message = "too many bytes at once, of all or of this address; try again shortly";
                return Err(Failure::busy("too_many_bytes", message));
            }
            bytes.extend_from_slice(&part);
        }
        Ok(())
    };
    let limit = Duration::from_secs(http.body_seconds);
    tokio::time::timeout(limit, read).await.map_err(|_| Failure::slow(http.body_seconds))??;
    Ok((Request::from_parts(head, bytes.into()), room))
}

fn take_more(shares: &Shares, visitor: &Visitor, held: &mut Option<Share>, units: u64) -> bool {
    match held {
        Some(share) => share.extend(units),
        None => {
            *held = shares.take(visitor.address, units);
            held.is_some()
        }
    }
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
