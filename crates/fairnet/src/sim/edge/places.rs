//! Who is where in a simulated edge, and sums of what happened.

use std::net::SocketAddr;

use crate::node::EdgeCounters;
use crate::packet::PacketHeader;
use crate::seating::{EdgePlace, MemberId, ROOT_MEMBER};

pub(super) fn address(member: MemberId) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], member as u16 + 1))
}

pub(super) fn member_at(address: &SocketAddr) -> MemberId {
    MemberId::from(address.port() - 1)
}

/// A packet as the root has sealed it.
pub(super) fn sealed(member: MemberId, bytes: &[u8]) -> Option<PacketHeader> {
    PacketHeader::open(bytes).ok().map(|(header, _)| header).filter(|_| member == ROOT_MEMBER)
}

pub(super) fn place(member: MemberId) -> EdgePlace {
    EdgePlace { datagrams: address(member), streams: address(member) }
}

pub(super) fn add(sums: &mut Vec<(&'static str, u64)>, counters: &EdgeCounters) {
    let named = counters.named();
    if sums.is_empty() {
        sums.extend(named.iter().map(|(name, _)| (*name, 0)));
    }
    sums.iter_mut().zip(named).for_each(|(sum, (_, count))| sum.1 = sum.1.saturating_add(count));
}
