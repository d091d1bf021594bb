//! How a member is, for whoever asks.

use fairnet::{ClockMesh, EdgeCounters, EdgeNode, FairnessEntry, MemberId, MemberRole, Nanos, RootNode, WindowFigures};

use crate::datagrams::DatagramLosses;

/// Entries of the fairness log in a status.
const ENTRIES: usize = 256;
/// Width of a delivery window within which packets count as simultaneous, ns.
pub const WINDOW_TARGET: Nanos = 1_000;

/// How a member is.
#[derive(Clone, Debug)]
pub struct EdgeStatus {
    /// Which.
    pub member: MemberId,
    /// What happened so far.
    pub counters: EdgeCounters,
    /// Datagrams that went wrong at its socket.
    pub losses: DatagramLosses,
    /// Streams whose other end is a member.
    pub streams: usize,
    /// At a gateway: orders that the root has not acknowledged.
    pub unacknowledged: usize,
    /// At the root: what it knows of the whole edge.
    pub root: Option<RootStatus>,
}

/// What the root knows of the whole edge.
#[derive(Clone, Debug)]
pub struct RootStatus {
    /// The epoch of the tree that packets are sent by; 0 before the first.
    pub epoch: u32,
    /// Nodes of each layer of that tree, the root's first.
    pub widths: Vec<u32>,
    /// Hedging factor of that tree.
    pub hedging: u32,
    /// Members now, in order.
    pub proxies: Vec<MemberId>,
    /// Members now, in order.
    pub gateways: Vec<MemberId>,
    /// Headroom of deadlines, ns.
    pub headroom: Nanos,
    /// Orders that wait for the engine.
    pub queued: usize,
    /// Packets so far, heartbeats included.
    pub sequence: u64,
    /// Delivery windows of sampled packets, by the target [`WINDOW_TARGET`].
    pub windows: WindowFigures,
    /// Delay to the last gateway of each of these windows, ns, oldest first.
    pub delays: Vec<Nanos>,
    /// The time by the root's clock, and what probes say of the other members' clocks then.
    pub at: Nanos,
    /// Estimates are computed by whoever wants them: see [`ClockMesh::estimates`].
    pub clocks: ClockMesh,
    /// The last entries of the fairness log, oldest first.
    pub log: Vec<FairnessEntry>,
    /// Hash of the whole log.
    pub log_head: [u8; 32],
}

impl RootStatus {
    /// What a root knows.
    pub(crate) fn of(now: Nanos, root: &RootNode) -> RootStatus {
        let (seating, roster) = (root.seating(), root.roster());
        let entries: Vec<FairnessEntry> = roster.log().entries().copied().collect();
        RootStatus {
            epoch: seating.map_or(0, |seating| seating.epoch()),
            widths: seating.map_or_else(Vec::new, |seating| seating.plan().widths().to_vec()),
            hedging: seating.map_or(0, |seating| seating.plan().hedging()),
            proxies: roster.members(MemberRole::Proxy).collect(),
            gateways: roster.members(MemberRole::Gateway).collect(),
            headroom: root.headroom(),
            queued: root.queued(),
            sequence: root.sequence(),
            windows: root.windows().figures(WINDOW_TARGET),
            delays: root.windows().complete().map(|window| window.delay).collect(),
            at: now,
            clocks: root.clocks().clone(),
            log: entries[entries.len().saturating_sub(ENTRIES)..].to_vec(),
            log_head: roster.log().head(),
        }
    }
}

impl EdgeStatus {
    /// How a member is whose socket lost so much, and which has so many streams.
    pub(crate) fn of(
        now: Nanos,
        member: MemberId,
        node: &EdgeNode,
        losses: DatagramLosses,
        streams: usize,
    ) -> EdgeStatus {
        let root = if let EdgeNode::Root(root) = node { Some(RootStatus::of(now, root)) } else { None };
        let unacknowledged = if let EdgeNode::Gateway(gateway) = node { gateway.unacknowledged() } else { 0 };
        EdgeStatus { member, counters: *node.counters(), losses, streams, unacknowledged, root }
    }
}
