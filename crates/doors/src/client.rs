//! The client of a request, as far as fairness between clients needs to know it.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use sockets::Client;

/// Who sends a request, from the extension that the door puts into each. Requests without an address, as in tests, are
/// those of one client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AskedBy(pub(crate) Client);

impl<S: Sync> FromRequestParts<S> for AskedBy {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<AskedBy, Self::Rejection> {
        Ok(AskedBy(parts.extensions.get::<Client>().copied().unwrap_or_default()))
    }
}
