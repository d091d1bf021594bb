//! Whose requests are next: queues by address, served in turn.
//!
//! Connections of one address share a queue, in which they take turns too. A connection on which a payment was signed
//! has a queue of its own. So a client that sends much, or over many connections, waits for itself.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use payments::{LaneAddress, LanePeer};

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
pub(crate) enum Turn {
    Address(LaneAddress),
    Paid(LanePeer),
}

/// The requests that wait, by queue and connection.
#[derive(Debug)]
pub(crate) struct Turns<R> {
    queues: BTreeMap<Turn, Ring<R>>,
    order: VecDeque<Turn>,
}

/// The connections of one queue, in turn.
#[derive(Debug)]
struct Ring<R> {
    waiting: BTreeMap<LanePeer, VecDeque<R>>,
    order: VecDeque<LanePeer>,
}

impl<R> Default for Turns<R> {
    fn default() -> Turns<R> {
        Turns { queues: BTreeMap::new(), order: VecDeque::new() }
    }
}

impl<R> Turns<R> {
    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    pub(crate) fn push(&mut self, turn: Turn, peer: LanePeer, requests: R) {
        let ring = self.queues.entry(turn).or_insert_with(|| {
            self.order.push_back(turn);
            Ring { waiting: BTreeMap::new(), order: VecDeque::new() }
        });
        let waiting = ring.waiting.entry(peer).or_insert_with(|| {
            ring.order.push_back(peer);
            VecDeque::new()
        });
        waiting.push_back(requests);
    }

    /// Takes the next requests: of the next queue the next connection's first.
    pub(crate) fn next(&mut self) -> Option<(LanePeer, R)> {
        let turn = self.order.pop_front()?;
        let ring = self.queues.get_mut(&turn)?;
        let peer = ring.order.pop_front()?;
        let waiting = ring.waiting.get_mut(&peer)?;
        let requests = waiting.pop_front()?;
        if waiting.is_empty() {
            ring.waiting.remove(&peer);
        } else {
            ring.order.push_back(peer);
        }
        if ring.waiting.is_empty() {
            self.queues.remove(&turn);
        } else {
            self.order.push_back(turn);
        }
        Some((peer, requests))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_over_many_connections_of_one_address_takes_one_turn_in_two() {
        let mut turns = Turns::default();
        for number in 0..300 {
            turns.push(Turn::Address(1), 100 + number % 3, number);
        }
        turns.push(Turn::Address(2), 7, 1_000);
        turns.push(Turn::Paid(8), 8, 2_000);
        turns.push(Turn::Address(2), 7, 1_001);
        let served: Vec<(LanePeer, u64)> = std::iter::from_fn(|| turns.next()).collect();
        assert_eq!(
            served[..8],
            [(100, 0), (7, 1_000), (8, 2_000), (101, 1), (7, 1_001), (102, 2), (100, 3), (101, 4)],
            "addresses in turn, and connections of an address in turn"
        );
        assert!(served.len() == 303 && turns.is_empty());
        // Each connection's requests keep their order.
        let of_one: Vec<u64> = served.iter().filter(|(peer, _)| *peer == 101).map(|(_, number)| *number).collect();
        assert!(of_one.is_sorted() && of_one.len() == 100);
    }

    #[test]
    fn an_address_is_counted_by_its_network() {
        let number = |text: &str| lane_address(text.parse().expect("an address"));
        assert_ne!(number("10.0.0.1"), number("10.0.0.2"));
        assert_eq!(number("::ffff:10.0.0.1"), number("10.0.0.1"));
        assert_eq!(number("2001:db8:0:1::1"), number("2001:db8:0:ff::9"), "one /56");
        assert_ne!(number("2001:db8:0:100::1"), number("2001:db8:0:1::1"));
    }
}
