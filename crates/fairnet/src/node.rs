//! The three kinds of members as steps around the cores: root, proxy, gateway.
//!
//! A shell gives a node what it received, and does what the node says. Nodes have no clock, socket or thread; the
//! shell of sockets and the simulator drive the same ones.
//!
//! 1. A member opens a control stream to the root and says *join*. The root collects changes of members and sends
//!    everybody the tree of the next epoch. It sends by that tree once all have said that they work by it, or after
//!    [`EdgeRules::switch`]. One tree is on its way at a time, so members never need more than two.
//! 2. The root seals what the venue publishes; proxies forward first authentic copies; gateways put them in sequence,
//!    hold them until their deadlines and show them.
//! 3. A gateway stamps orders and sends them to its parent, no faster than its participant's share
//!    ([`crate::Pace`]). Parents grant credit, and tell their sequencer of whom they take nothing at present. The
//!    root takes each order once, acknowledges it to its gateway, and hands it on. For a batch market it also
//!    collects them, and closes a bundle at each cut-off that its sequencer's promises pass.
//! 4. What the venue has to say to one participant comes down the control stream of its gateway as a *report*, which
//!    waits there until the last packet before it was shown. Nobody learns of a trade from its own report before all
//!    others can.
//! 5. When the tree changes, or its parent is gone, a gateway sends orders without acknowledgement again. They keep
//!    their tokens, so none counts twice, and their stamps, so what came too late says so.
//!
//! 6. A root that takes the place of another one has a session of its own and epochs above all of the other's
//!    ([`crate::RootSuccession`] says when it may). Members that join it forget the numbers of the one before;
//!    gateways send it what is not acknowledged, with the first stamps.
//!
//! 7. Who gets an order or a promise compares its stamp with its own clock. The root also compares each order with what
//!    it says its participant was shown. A member that says what cannot be is not heard any more, and is evicted. A
//!    gateway that is only slow, or stamps low without saying that it saw more, gains nothing: see [`crate::Merge`].
//!
//! 8. Members probe each other's clocks, and the root keeps what they say ([`ClockMesh`]).
//!
//! # Properties
//!
//! - While one path is left, every packet is shown once, in sequence, and not before its deadline, or reported lost.
//! - Every order of a living gateway reaches the engine once; those that are not restamped in the order of their keys.
//! - Bytes that no venue machine sealed change nothing but counters.

mod facts;
mod gateway;
mod presence;
mod probes;
mod proxy;
mod root;
mod sessions;
mod stamping;
mod upward;

use std::net::SocketAddr;
use std::sync::Arc;

use kernel::Planted;
use strum::VariantArray;

use crate::Nanos;
use crate::bundles::{BundleRules, ClosedBundle};
use crate::deadlines::DeadlineRules;
use crate::gaps::GapRules;
use crate::hold::{ClockState, HoldRules, Unfair};
use crate::key::QueuePolicy;
use crate::key::{OrderClass, Sequenced};
use crate::link::{EdgeOrder, LinkMessage, LinkPurpose};
use crate::merge::MergeRules;
use crate::pace::PaceRules;
use crate::relay::{PacketDrop, RelayLimits, RewindRefusal};
use crate::roster::{FairnessEntry, FairnessEvent, RosterRules};
use crate::seating::{MemberId, Seat, SeatingShape};

pub use gateway::GatewayNode;
pub use probes::{ClockMesh, ProbeRules};
pub use proxy::ProxyNode;
pub use root::RootNode;

/// A mistake that a node makes if a simulation plants it: a check that never fires proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub enum EdgeMistake {
    /// Gateways do not verify the MAC of packets.
    MacUnchecked,
    /// Gateways show packets when they arrive.
    ShownEarly,
    /// Gateways pass reports on when they arrive.
    ReportedEarly,
    /// The root takes copies of an order that was sent again.
    CopiesTaken,
    /// Hops do not say which member they refuse, so a burst looks like slowness.
    HoldForgotten,
    /// The root closes bundles by its clock, whatever may still come.
    BundleCutEarly,
    /// Whoever gets an order believes what it says of times and of what was seen.
    LiesBelieved,
    /// Gateways stamp orders before their pace: they promise the present, and then send what is older.
    StampedEarly,
}

impl EdgeMistake {
    /// All of them.
    pub const ALL: &[EdgeMistake] = EdgeMistake::VARIANTS;
}

/// What a gateway pretends if a simulation plants it: members that lie must be found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeLie {
    /// Stamps and promises are this much ahead, ns.
    Ahead(Nanos),
    /// Stamps and promises are this much behind, ns: orders claim to be older than what they react to.
    Behind(Nanos),
    /// Orders say that so many more packets were shown.
    Unseen(u64),
}

/// Limits and times of an edge; the same at all its members.
#[derive(Clone, Copy, Debug)]
pub struct EdgeRules {
    /// Of relays.
    pub limits: RelayLimits,
    /// Of gaps.
    pub gaps: GapRules,
    /// Of releases.
    pub hold: HoldRules,
    /// Of deadlines.
    pub deadlines: DeadlineRules,
    /// Of sequencers.
    pub merge: MergeRules,
    /// Of membership.
    pub roster: RosterRules,
    /// How queues of orders sort.
    pub policy: QueuePolicy,
    /// What the tree looks like.
    pub shape: SeatingShape,
    /// Longest time without a packet; then the root sends an empty one, ns.
    pub heartbeat: Nanos,
    /// Between two signs of life of a member, ns.
    pub beat: Nanos,
    /// Between two watermarks of an idle gateway, ns.
    pub watermark: Nanos,
    /// Orders that a parent takes of each child ahead of need.
    pub credit: u64,
    /// How long after a change of the tree a gateway sends again what is not acknowledged, ns.
    pub resend: Nanos,
    /// How fast a gateway sends its participant's orders; as they come if absent.
    pub pace: Option<PaceRules>,
    /// Orders of a gateway without acknowledgement, or that wait for its pace; more are refused.
    pub unacknowledged: usize,
    /// How long the root waits until all members work by the next tree, ns.
    pub switch: Nanos,
    /// How long the root collects changes of members, ns.
    pub settle: Nanos,
    /// Children of a node at most.
    pub children: usize,
    /// Gateways report every so many packets when they showed it.
    pub sample: u64,
    /// Of probes of each other's clocks.
    pub probes: ProbeRules,
    /// At the root: orders are for the batch market, and are collected in bundles.
    pub bundles: Option<BundleRules>,
    /// How far a member's stamps may be ahead of the clock of whoever gets them, ns: more than the clocks' errors and
    /// the cost of a strategy's call together. Who goes beyond is evicted.
    pub ahead: Nanos,
    /// The mistake that a simulation plants.
    pub mistake: Planted<EdgeMistake>,
    /// What a gateway pretends in a simulation.
    pub lie: Planted<EdgeLie>,
}

impl Default for EdgeRules {
    /// For machines of their own in one data centre.
    fn default() -> EdgeRules {
        EdgeRules {
            limits: RelayLimits::default(),
            gaps: GapRules { tries: 40, ..GapRules::default() },
            hold: HoldRules::default(),
            deadlines: DeadlineRules::default(),
            merge: MergeRules::default(),
            roster: RosterRules::default(),
            policy: QueuePolicy::ByStamp,
            shape: SeatingShape { layers: None, hedging: 1 },
            heartbeat: 1_000_000,
            beat: 50_000_000,
            watermark: 250_000,
            credit: 64,
            pace: None,
            resend: 20_000_000,
            unacknowledged: 4_096,
            switch: 50_000_000,
            settle: 5_000_000,
            children: 64,
            sample: 16,
            probes: ProbeRules::default(),
            bundles: None,
            ahead: 5_000_000,
            mistake: Planted::NOTHING,
            lie: Planted::NOTHING,
        }
    }
}

impl EdgeRules {
    /// For a demo or a test in which all members share a few cores with other work. A member may be stopped for some
    /// milliseconds at any time, so everything waits longer.
    pub fn shared_machine() -> EdgeRules {
        const MS: Nanos = 1_000_000;
        let rules = EdgeRules::default();
        EdgeRules {
            gaps: GapRules { reorder: 2 * MS, round_trip: 10 * MS, tries: 60, ..rules.gaps },
            deadlines: DeadlineRules { period: 100 * MS, ceiling: 50 * MS, laggard: 20, ..rules.deadlines },
            merge: MergeRules { max_wait: 40 * MS, short_wait: 20 * MS, patience: 400 * MS, ..rules.merge },
            heartbeat: 10 * MS,
            watermark: 5 * MS,
            probes: ProbeRules { period: 50 * MS, ..rules.probes }.with_tolerance(50_000),
            ..rules
        }
    }
}

/// A stream, named by who is at its other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkEnd {
    /// Who.
    pub member: MemberId,
    /// What for.
    pub purpose: LinkPurpose,
}

impl LinkEnd {
    /// A control stream.
    pub fn control(member: MemberId) -> LinkEnd {
        LinkEnd { member, purpose: LinkPurpose::Control }
    }

    /// A stream of orders.
    pub fn orders(member: MemberId) -> LinkEnd {
        LinkEnd { member, purpose: LinkPurpose::Orders }
    }
}

/// An order that a participant makes.
#[derive(Clone, Debug)]
pub struct NewEdgeOrder {
    /// Its class, by the mid that the participant was shown.
    pub class: OrderClass,
    /// What the engine shall get.
    pub body: Vec<u8>,
    /// When it was made, if a gateway knows better than that it is made now: strategies that share a core.
    pub made: Option<Nanos>,
}

/// What a node is told.
#[derive(Clone, Debug)]
pub enum EdgeInput<'a> {
    /// A datagram and where it came from.
    Datagram(SocketAddr, &'a [u8]),
    /// A stream is open: both ends have proved that they are members.
    Opened(LinkEnd),
    /// A stream ended.
    Closed(LinkEnd),
    /// A message of a stream.
    Message(LinkEnd, LinkMessage),
    /// At the root: the next payload of the feed, not empty.
    Publish(&'a [u8]),
    /// At a gateway: an order.
    Order(NewEdgeOrder),
    /// At a gateway: the number of the mid, as of what was shown.
    Mid(u64),
    /// At a gateway: something that the root shall log.
    Noted(FairnessEvent),
    /// At the root: a report for the participants of a gateway, of what was published so far.
    Report(MemberId, Vec<u8>),
    /// At the root: the engine can take this many more orders.
    Ready(u64),
    /// At a gateway: the clock changed its promise.
    Clock(ClockState),
    /// Time passed, or a batch of inputs ends.
    Tick,
}

/// A packet that a gateway shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownPacket {
    /// Its sequence.
    pub sequence: u64,
    /// Its deadline.
    pub deadline: Nanos,
    /// Why it may not be fair.
    pub unfair: Option<Unfair>,
    /// What the venue published; empty for a heartbeat.
    pub payload: Vec<u8>,
}

/// What a node does.
#[derive(Clone, Debug)]
pub enum EdgeEffect {
    /// Sends on the datagram that it was given.
    Forward(SocketAddr),
    /// Sends a datagram.
    Datagram(SocketAddr, Arc<[u8]>),
    /// Says something on a stream.
    Message(LinkEnd, LinkMessage),
    /// From now on orders go to this member: the shell opens a stream, again whenever it ends.
    Parent(Option<Seat>),
    /// Ends a stream: whoever is at its other end cheats.
    End(LinkEnd),
    /// At a gateway: a packet is shown.
    Show(Box<ShownPacket>),
    /// At a gateway: these packets are given up; first and count.
    Lost(u64, u64),
    /// At a gateway: the next order has this reference and stamp. It may have waited for its pace.
    Stamped(u32, Nanos),
    /// At a gateway: an order is refused, because too many wait.
    OrderRefused,
    /// At a gateway: the root has this order.
    Acknowledged(u32),
    /// At a gateway: a report for its participants; what it may refer to was shown.
    Report(Vec<u8>),
    /// At the root: the next order for the engine.
    Engine(Box<Sequenced<EdgeOrder>>),
    /// At the root: the orders of a cut-off, for the batch market.
    Bundle(Box<ClosedBundle>),
    /// At the root: no order below this key comes any more in this class.
    Promise(OrderClass, crate::key::MergeKey),
    /// At the root: an entry of the log of fairness.
    Logged(FairnessEntry),
    /// A tree counts from now on.
    Epoch(u32),
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// How often what happened at a node.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct EdgeCounters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl EdgeCounters {
            /// Each count and its name.
            pub fn named(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)*]
            }
        }
    };
}

counters! {
    /// Packets: first authentic copies.
    packets,
    /// Further copies.
    duplicates,
    /// Wrong MACs.
    forged,
    /// Another epoch, session or tree.
    stale,
    /// Neither packet nor request.
    malformed,
    /// Datagrams sent.
    sent,
    /// Packets sent again.
    resent,
    /// Requests to send again that were refused.
    rewinds_refused,
    /// Requests to send again that were made.
    rewinds,
    /// Packets that were given up.
    lost,
    /// Packets shown, without heartbeats.
    shown,
    /// Of them, those that may not be fair.
    unfair,
    /// Orders: made at a gateway, taken at a proxy, handed on at the root.
    orders,
    /// Orders stamped anew.
    restamped,
    /// Bundles that were closed.
    bundles,
    /// Orders that came after their cut-off, and are flagged in a later bundle.
    bundled_late,
    /// Copies of orders that were dropped.
    order_copies,
    /// Orders sent again.
    orders_resent,
    /// Orders beyond credit, under another member's name, or such as cannot be.
    orders_refused,
    /// Streams skipped by the sequencer.
    skips,
    /// At the root: members that were evicted.
    evictions,
    /// Messages that make no sense from whom they came.
    misplaced,
}

impl EdgeCounters {
    pub(crate) fn dropped(&mut self, why: PacketDrop) {
        *match why {
            PacketDrop::Malformed(_) => &mut self.malformed,
            PacketDrop::Stale => &mut self.stale,
            PacketDrop::Duplicate => &mut self.duplicates,
            PacketDrop::Forged => &mut self.forged,
        } += 1;
    }

    pub(crate) fn refused(&mut self, _: RewindRefusal) {
        self.rewinds_refused += 1;
    }

    pub(crate) fn count(&mut self, event: &FairnessEvent) {
        match event {
            FairnessEvent::Restamped(..) => self.restamped += 1,
            FairnessEvent::Skipped(..) => self.skips += 1,
            _ => {}
        }
    }
}

/// A member of any kind.
// A process has few, and each is used for as long as it runs.
#[allow(clippy::large_enum_variant)]
#[derive(Debug)]
pub enum EdgeNode {
    /// The root.
    Root(RootNode),
    /// A proxy.
    Proxy(ProxyNode),
    /// A gateway.
    Gateway(GatewayNode),
}

impl EdgeNode {
    /// One step.
    pub fn step(&mut self, now: Nanos, input: EdgeInput<'_>, out: &mut Vec<EdgeEffect>) {
        match self {
            EdgeNode::Root(root) => root.step(now, input, out),
            EdgeNode::Proxy(proxy) => proxy.step(now, input, out),
            EdgeNode::Gateway(gateway) => gateway.step(now, input, out),
        }
    }

    /// When the next tick is needed.
    pub fn due(&self) -> Nanos {
        match self {
            EdgeNode::Root(root) => root.due(),
            EdgeNode::Proxy(proxy) => proxy.due(),
            EdgeNode::Gateway(gateway) => gateway.due(),
        }
    }

    /// What happened so far.
    pub fn counters(&self) -> &EdgeCounters {
        match self {
            EdgeNode::Root(root) => root.counters(),
            EdgeNode::Proxy(proxy) => proxy.counters(),
            EdgeNode::Gateway(gateway) => gateway.counters(),
        }
    }
}
