//! The client of a request, as far as fairness between clients needs to know it.

use std::net::IpAddr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

/// The client of a request: the address of its connection, or the network of 64 bits of an IPv6 address, since one
/// client has all addresses of such a network. Requests without an address, as in tests, are those of one client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Client(Option<IpAddr>);

impl Client {
    /// The client at an address.
    pub(crate) fn at(address: IpAddr) -> Client {
        let network = match address.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                IpAddr::from([a, b, c, d, 0, 0, 0, 0])
            }
            v4 => v4,
        };
        Client(Some(network))
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
        assert_ne!(at("2001:db8:1:2::"), at("2001:db8:1:3::"));
        assert_eq!(at("::ffff:192.0.2.1"), at("192.0.2.1"));
        assert_ne!(at("192.0.2.1"), at("192.0.2.2"));
    }
}
