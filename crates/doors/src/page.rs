//! The page for people, embedded in the binary if it was built beforehand.

use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use rust_embed::RustEmbed;

/// The build result of `web/`; empty if Node was missing at build time.
#[derive(RustEmbed)]
#[folder = "../../web/dist"]
#[allow_missing = true]
struct Files;

const POLICY: &str = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; \
     frame-ancestors 'none'";

const MISSING: &str = "<!doctype html><html lang=en><meta charset=utf-8><title>Walras</title>\
    <h1>Walras is running</h1>\
    <p>This binary was built without its page, because Node.js was missing. Install Node.js 20 or later and run \
    <code>make page</code>, then build again. The exchange itself is complete: see \
    <a href=/v1/status>/v1/status</a> and <a href=/v1/openapi.json>/v1/openapi.json</a>.</p></html>";

/// Whether this binary contains the page.
pub fn is_embedded() -> bool {
    Files::get("index.html").is_some()
}

/// Serves a file of the page, or an error if there is none with that name.
pub(crate) async fn serve(uri: Uri) -> Response {
    let path = uri.path().trim_start_matches('/');
    if path.is_empty() && !is_embedded() {
        return html(MISSING.into());
    }
    let path = if path.is_empty() { "index.html" } else { path };
    match Files::get(path) {
        Some(file) if path.ends_with(".html") => html(file.data.into_owned()),
        Some(file) => {
            let kind = file.metadata.mimetype().to_string();
            // Vite names assets by their content.
            let cache = if path.starts_with("assets/") { "public, max-age=31536000, immutable" } else { "no-cache" };
            ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, cache.to_string())], file.data.into_owned())
                .into_response()
        }
        None => {
            let error = crate::json::ErrorText {
                code: "not_found".into(),
                message: "there is nothing at this address; /v1/openapi.json lists all addresses".into(),
            };
            (StatusCode::NOT_FOUND, axum::Json(crate::json::ErrorBody { error })).into_response()
        }
    }
}

fn html(body: Vec<u8>) -> Response {
    let mut response = ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
