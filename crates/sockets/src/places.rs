//! The places of a socket: who is admitted, and who makes room.
//!
//! - With a place free, everybody is admitted; of one address, as long as it is unknown, at most
//!   [`PlaceLimits::of_address`] connections.
//! - With none free, the newcomer is counted in its prefix, and the *most numerous* prefixes are those with the most
//!   connections then. Of their connections the slowest makes room: the one whose last progress is longest ago.
//! - The newcomer itself is turned away if nobody there has been idle for [`PlaceLimits::patience_ms`]. A known
//!   newcomer does not wait for anybody's idleness.
//! - Of a prefix that has at most [`PlaceLimits::kept`] known connections, these are never displaced.
//!
//! Progress is a whole request that was served, so bytes that trickle are none.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

/// What one subscriber may have: a /24 of IPv4, a /48 of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix(IpAddr);

impl Prefix {
    /// The prefix of an address.
    pub fn of(address: IpAddr) -> Prefix {
        Prefix(masked(address, 24, 48))
    }
}

/// An address without the bits that one subscriber chooses freely.
pub(crate) fn masked(address: IpAddr, v4_bits: u32, v6_bits: u32) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4((u32::from(address) & u32::MAX << (32 - v4_bits)).into()),
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) & u128::MAX << (128 - v6_bits)).into()),
    }
}

/// The limits of a socket.
#[derive(Clone, Copy, Debug)]
pub struct PlaceLimits {
    /// Connections in total.
    pub total: usize,
    /// Connections of one address that is not known.
    pub of_address: usize,
    /// Known connections of a prefix that are never displaced.
    pub kept: usize,
    /// How long a connection must have been idle before a stranger displaces it, in milliseconds.
    pub patience_ms: u64,
}

/// What is known about the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquaintance {
    /// Anybody.
    Stranger,
    /// A validator, an operator, or somebody whose request was paid for.
    Known,
}

/// The number of a connection.
pub type PlaceId = u64;

/// The answer to a newcomer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It has a place. The connection `displaced` must be closed; it holds no place any more.
    Admitted {
        /// Its number.
        place: PlaceId,
        /// The connection that made room.
        displaced: Option<PlaceId>,
    },
    /// It must be closed.
    TurnedAway,
}

#[derive(Clone, Copy, Debug)]
struct Visitor {
    address: IpAddr,
    standing: Acquaintance,
    progressed_ms: u64,
}

/// The connections of a socket. See the module's text.
#[derive(Debug)]
pub struct Places {
    limits: PlaceLimits,
    visitors: BTreeMap<PlaceId, Visitor>,
    next: PlaceId,
}

/// Connections of a prefix.
#[derive(Clone, Copy, Default)]
struct PrefixConnections {
    all: usize,
    known: usize,
}

impl Places {
    /// An empty socket.
    pub fn new(limits: PlaceLimits) -> Places {
        Places { limits, visitors: BTreeMap::new(), next: 0 }
    }

    /// Admits a newcomer, or turns it away.
    pub fn enter(&mut self, address: IpAddr, standing: Acquaintance, now_ms: u64) -> Entry {
        let address = address.to_canonical();
        let of_address = || self.visitors.values().filter(|visitor| visitor.address == address).count();
        if standing == Acquaintance::Stranger && of_address() >= self.limits.of_address {
            return Entry::TurnedAway;
        }
        let displaced = match self.visitors.len() < self.limits.total {
            true => None,
            false => match self.slowest_of_most_numerous(address, standing, now_ms) {
                None => return Entry::TurnedAway,
                some => some,
            },
        };
        if let Some(place) = displaced {
            self.leave(place);
        }
        self.next += 1;
        self.visitors.insert(self.next, Visitor { address, standing, progressed_ms: now_ms });
        Entry::Admitted { place: self.next, displaced }
    }

    fn slowest_of_most_numerous(&self, newcomer: IpAddr, standing: Acquaintance, now_ms: u64) -> Option<PlaceId> {
        let mut held: HashMap<Prefix, PrefixConnections> = HashMap::new();
        for visitor in self.visitors.values() {
            let held = held.entry(Prefix::of(visitor.address)).or_default();
            held.all += 1;
            held.known += usize::from(visitor.standing == Acquaintance::Known);
        }
        let is_kept = |visitor: &Visitor| {
            visitor.standing == Acquaintance::Known && held[&Prefix::of(visitor.address)].known <= self.limits.kept
        };
        let newcomers = Prefix::of(newcomer);
        let count = |prefix: Prefix| held[&prefix].all + usize::from(prefix == newcomers);
        let candidates = || self.visitors.iter().filter(|(_, visitor)| !is_kept(visitor));
        let most = candidates().map(|(_, visitor)| count(Prefix::of(visitor.address))).max()?;
        let of_most = candidates().filter(|(_, visitor)| count(Prefix::of(visitor.address)) == most);
        let (place, slowest) = of_most.min_by_key(|(_, visitor)| visitor.progressed_ms)?;
        // A newcomer of a less numerous prefix waits for nobody: the others hold more than their share.
        let is_due = standing == Acquaintance::Known
            || held.get(&newcomers).map_or(1, |held| held.all + 1) < most
            || now_ms.saturating_sub(slowest.progressed_ms) >= self.limits.patience_ms;
        is_due.then_some(*place)
    }

    /// A whole request of the connection was served.
    pub fn progress(&mut self, place: PlaceId, now_ms: u64) {
        if let Some(visitor) = self.visitors.get_mut(&place) {
            visitor.progressed_ms = now_ms;
        }
    }

    /// The connection is known from now on: somebody paid for what it asked, or it has shown a key that counts.
    pub fn recognize(&mut self, place: PlaceId) {
        if let Some(visitor) = self.visitors.get_mut(&place) {
            visitor.standing = Acquaintance::Known;
        }
    }

    /// The connection has ended; one that was displaced holds no place any more.
    pub fn leave(&mut self, place: PlaceId) {
        self.visitors.remove(&place);
    }

    /// Number of open connections.
    pub fn len(&self) -> usize {
        self.visitors.len()
    }

    /// Whether none is open.
    pub fn is_empty(&self) -> bool {
        self.visitors.is_empty()
    }
}
