//! Whose work it is, as far as fairness between clients needs to know.

use std::net::IpAddr;

use crate::Holder;

/// Who brings work. What proves false is charged to it, and never to a key or an account: those anybody can name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Client {
    /// This process, and requests without an address, as in tests.
    #[default]
    Own,
    /// Whoever holds an address.
    Address(Holder),
    /// Another validator, by its number.
    Validator(u32),
}

impl Client {
    /// The client at an address.
    pub fn at(address: IpAddr) -> Client {
        Client::Address(Holder::at(address))
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
