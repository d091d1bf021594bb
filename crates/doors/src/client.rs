//! The client of a request, as far as fairness between clients needs to know it.

use std::net::IpAddr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use sockets::Holder;

/// The client of a request: whoever holds the address of its connection. Requests without an address, as in tests, are
/// those of one client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Client(Option<Holder>);

impl Client {
    /// The client at an address.
    pub(crate) fn at(address: IpAddr) -> Client {
        Client(Some(Holder::at(address)))
    }
}

/// From the extension that the door puts into each request.
impl<S: Sync> FromRequestParts<S> for Client {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Client, Self::Rejection> {
        Ok(parts.extensions.get::<Client>().copied().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_one_client_is_one_client() {
        let at = |text: &str| Client::at(text.parse().expect("an address"));
        assert_eq!(at("2001:db8:1:2:3:4:5:6"), at("2001:db8:1:2::"));
        assert_eq!(at("2001:db8:1:2::"), at("2001:db8:1:ff::"));
        assert_ne!(at("2001:db8:1:2::"), at("2001:db8:1:102::"));
        assert_eq!(at("::ffff:192.0.2.1"), at("192.0.2.1"));
        assert_ne!(at("192.0.2.1"), at("192.0.2.2"));
    }
}
