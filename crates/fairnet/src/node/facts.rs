//! The packets that the root has sent. With them the root finds members that lie about what they were shown.

use std::collections::VecDeque;
use std::sync::Arc;

use super::EdgeLie;
use crate::Nanos;
use crate::key::{MergeKey, Sequenced};
use crate::link::EdgeOrder;

use crate::packet::{PacketHeader, PacketKey};

/// Packets whose deadlines are remembered: eight seconds of heartbeats.
const PACKETS: usize = 1 << 13;

/// The deadlines of the last packets, and the mid.
#[derive(Debug)]
pub(super) struct FeedFacts {
    /// Orders of an earlier root's time say what that one has sent.
    since: Nanos,
    deadlines: VecDeque<Nanos>,
    /// The last sequence that was sent.
    last: u64,
}

impl FeedFacts {
    pub(super) fn new(now: Nanos) -> FeedFacts {
        FeedFacts { since: now, deadlines: VecDeque::new(), last: 0 }
    }

    /// The next packet of the feed.
    pub(super) fn sent(&mut self, sequence: u64, deadline: Nanos) {
        if self.deadlines.len() == PACKETS {
            self.deadlines.pop_front();
        }
        self.deadlines.push_back(deadline);
        self.last = sequence;
    }

    /// By how much an order contradicts what was sent; `None` if it can be. A gateway stamps no order below the
    /// deadline of the last packet that it has shown, and shows nothing that was not sent.
    pub(super) fn contradiction(&self, order: &Sequenced<EdgeOrder>) -> Option<u64> {
        let (key, seen) = (order.restamped.unwrap_or(order.key), order.item.md_seq);
        if key.stamp < self.since {
            return None;
        }
        let unseen = seen.saturating_sub(self.last);
        let deadline = self.last.checked_sub(seen).and_then(|back| {
            let at = (self.deadlines.len() as u64).checked_sub(back + 1)?;
            self.deadlines.get(at as usize)
        });
        let before = deadline.map_or(0, |deadline| deadline.saturating_sub(key.stamp));
        Some(unseen.max(before)).filter(|by| *by > 0)
    }
}

impl EdgeLie {
    /// Tells it in an order, or in a promise.
    pub(super) fn tell(self, key: &mut MergeKey, order: Option<&mut EdgeOrder>) {
        match (self, order) {
            (EdgeLie::Ahead(by), _) => key.stamp = key.stamp.saturating_add(by),
            (EdgeLie::Behind(by), _) => key.stamp = key.stamp.saturating_sub(by),
            (EdgeLie::Unseen(packets), Some(order)) => order.md_seq = order.md_seq.saturating_add(packets),
            (EdgeLie::Unseen(_), None) => {}
        }
    }
}

/// A packet of an earlier epoch under the key of this one: whoever was away has neither tree nor key of that time.
pub(super) fn resealed(bytes: &[u8], epoch: u32, secret: &[u8; 32]) -> Option<Arc<[u8]>> {
    let (header, payload) = PacketHeader::open(bytes).ok()?;
    if header.epoch == epoch {
        return None;
    }
    let mut again = Vec::with_capacity(bytes.len());
    PacketHeader { epoch, ..header }.seal(&PacketKey::of_epoch(secret, epoch), payload, &mut again);
    Some(again.into())
}
