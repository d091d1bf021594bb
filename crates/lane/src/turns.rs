//! Whose requests are next at a shard: the keys of its queue ([`sockets::Turns`]).
//!
//! Connections of one address share a queue, in which they take turns too. A connection on which a payment was signed
//! has a queue of its own. So a client that sends much, or over many connections, waits for itself.

use std::net::IpAddr;

use payments::{LaneAddress, LanePeer};
use sockets::TurnLimits;

/// Permits of connections bound what waits, and a shard meters false signatures itself ([`payments`]).
pub(crate) const LIMITS: TurnLimits = TurnLimits { units: u64::MAX, of_one: u64::MAX, budget: None };

/// The number of an address: an IPv4 address, or the /56 of an IPv6 address.
pub(crate) fn lane_address(of: IpAddr) -> LaneAddress {
    const IPV6: u64 = 1 << 63;
    match of.to_canonical() {
        IpAddr::V4(address) => u64::from(u32::from(address)),
        // The highest 56 bits, without the one that the mark takes the place of: no assigned prefix differs in it.
        IpAddr::V6(address) => IPV6 | (u128::from(address) >> 72) as u64,
    }
}

/// A queue: of an address, or of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LaneQueue {
    Address(LaneAddress),
    Paid(LanePeer),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_counted_by_its_network() {
        let number = |text: &str| lane_address(text.parse().expect("an address"));
        assert_ne!(number("10.0.0.1"), number("10.0.0.2"));
        assert_eq!(number("::ffff:10.0.0.1"), number("10.0.0.1"));
        assert_eq!(number("2001:db8:0:1::1"), number("2001:db8:0:ff::9"), "one /56");
        assert_ne!(number("2001:db8:0:100::1"), number("2001:db8:0:1::1"));
    }
}
