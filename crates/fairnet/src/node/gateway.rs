//! A gateway: shows the feed to one participant, and sends its orders in.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use super::presence::Presence;
use super::probes::Prober;
use super::{EdgeCounters, EdgeEffect, EdgeInput, EdgeMistake, EdgeRules, LinkEnd, NewEdgeOrder, ShownPacket};
use crate::Nanos;
use crate::classes::Stamps;
use crate::deadlines::DelayMeter;
use crate::gaps::{GapEffect, GapInput, Gaps};
use crate::hold::{ClockState, Hold, HoldInput, HoldKey, Released};
use crate::hop::{Hop, HopEffect, HopInput};
use crate::key::{MergeKey, OrderClass, Sequenced};
use crate::link::{EdgeOrder, LinkMessage, LinkPurpose, ShownSample};
use crate::merge::{MergeEffect, MergeInput};
use crate::pace::{Pace, PaceInput};
use crate::packet::{PacketHeader, PacketKey, RewindRequest};
use crate::relay::FirstCopy;
use crate::roster::{FairnessEvent, MemberRole};
use crate::seating::{EdgePlace, MemberId, ROOT_MEMBER, Seat, Seating};
use crate::tokens::{OrderToken, Tokens};

/// A packet in sequence: when the root sent it, when it came, whether the root calls it unfair, and its payload.
#[derive(Clone, Debug)]
struct Arrived {
    sent: Nanos,
    at: Nanos,
    is_unfair: bool,
    payload: Vec<u8>,
}

/// The feed of a gateway, once it has a place in a tree.
#[derive(Debug)]
struct GatewayFeed {
    seating: Seating,
    first: FirstCopy,
    /// `None` until the root has said where to begin; packets wait in `early`.
    gaps: Option<Gaps<Arrived>>,
    early: Vec<(u64, Nanos, Arrived)>,
}

/// The merge of a gateway has one stream.
pub(super) const OWN: u32 = 0;

/// An order that has its token, and no stamp yet.
#[derive(Debug)]
pub(super) struct UnstampedOrder {
    pub(super) order: NewEdgeOrder,
    pub(super) token: OrderToken,
    /// The last packet that its participant had been shown.
    pub(super) md_seq: u64,
    pub(super) at: Nanos,
    /// For the mistake of stamping before the pace.
    pub(super) early: Option<Nanos>,
}

/// Packets that a newcomer keeps until it knows where to begin.
const EARLY_MAX: usize = 1 << 14;
/// A gateway's state.
#[derive(Debug)]
pub struct GatewayNode {
    pub(super) rules: EdgeRules,
    secret: [u8; 32],
    pub(super) presence: Presence,
    prober: Prober,
    clock: ClockState,
    feed: Option<GatewayFeed>,
    hold: Hold<Arrived>,
    meter: DelayMeter,
    pub(super) hop: Hop<EdgeOrder>,
    pub(super) stamps: Stamps,
    pub(super) tokens: Tokens,
    /// The epoch in which this gateway joined; 0 before.
    pub(super) session: u32,
    /// The last epoch that it worked by.
    epoch: u32,
    pub(super) mid: u64,
    pub(super) shown: u64,
    /// Reports, each with the packet that it waits for, in their order.
    reports: VecDeque<(u64, Vec<u8>)>,
    parent: Option<Seat>,
    is_parent_open: bool,
    /// Of its participant's orders, if they are paced.
    pub(super) pace: Option<Pace<UnstampedOrder>>,
    /// By reference.
    pub(super) unacknowledged: BTreeMap<u32, Sequenced<EdgeOrder>>,
    resend_at: Nanos,
    next_watermark: Nanos,
    /// The latest release of the second, and when the second ends.
    worst: (Nanos, Nanos),
    pub(super) counters: EdgeCounters,
}

/// How often lateness is reported, ns.
const LATE_REPORT: Nanos = 1_000_000_000;

impl GatewayNode {
    /// The gateway of a participant, on a machine that has the venue's secret.
    pub fn new(now: Nanos, member: MemberId, place: EdgePlace, secret: [u8; 32], rules: EdgeRules) -> GatewayNode {
        let clock = ClockState { error_bound: None };
        let mut hop = Hop::new(now, 1, rules.merge, rules.policy);
        hop.step(now, HopInput::Child(MergeInput::Join(OWN)), &mut Vec::new());
        GatewayNode {
            rules,
            secret,
            presence: Presence::new(member, MemberRole::Gateway, place, rules.beat),
            prober: Prober::new(now, member, rules.probes),
            clock,
            feed: None,
            hold: Hold::new(now, rules.hold, clock),
            meter: DelayMeter::new(now, rules.deadlines),
            hop,
            stamps: Stamps::default(),
            tokens: Tokens::new(member, 0),
            session: 0,
            epoch: 0,
            mid: 0,
            shown: 0,
            reports: VecDeque::new(),
            parent: None,
            is_parent_open: false,
            pace: rules.pace.map(Pace::new),
            unacknowledged: BTreeMap::new(),
            resend_at: Nanos::MAX,
            next_watermark: now,
            worst: (0, now),
            counters: EdgeCounters::default(),
        }
    }

    /// What happened so far.
    pub fn counters(&self) -> &EdgeCounters {
        &self.counters
    }

    /// The last sequence that was shown.
    pub fn shown(&self) -> u64 {
        self.shown
    }

    /// Orders that the root has not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.unacknowledged.len()
    }

    /// When the next tick is needed.
    pub fn due(&self) -> Nanos {
        let gaps = self.feed.as_ref().and_then(|feed| feed.gaps.as_ref()?.due()).unwrap_or(Nanos::MAX);
        let hold = self.hold.due().unwrap_or(Nanos::MAX);
        let watermark = if self.is_parent_open { self.next_watermark } else { Nanos::MAX };
        let probe = if self.feed.is_some() { self.prober.due() } else { Nanos::MAX };
        let pace = self.pace.as_ref().and_then(Pace::due).unwrap_or(Nanos::MAX);
        [gaps, hold, watermark, probe, pace, self.presence.due(), self.resend_at]
            .into_iter()
            .min()
            .unwrap_or(Nanos::MAX)
    }

    /// One step.
    pub fn step(&mut self, now: Nanos, input: EdgeInput<'_>, out: &mut Vec<EdgeEffect>) {
        match input {
            EdgeInput::Datagram(_, bytes) => self.on_datagram(now, bytes, out),
            EdgeInput::Opened(end) | EdgeInput::Closed(end) if end.purpose == LinkPurpose::Control => {
                if matches!(input, EdgeInput::Opened(_)) { self.presence.opened() } else { self.presence.closed() }
            }
            EdgeInput::Opened(end) => self.on_parent(now, end.member, true),
            EdgeInput::Closed(end) => self.on_parent(now, end.member, false),
            EdgeInput::Message(end, message) => self.on_message(now, end, message, out),
            EdgeInput::Order(order) => self.on_order(now, order, out),
            EdgeInput::Clock(clock) => {
                self.clock = clock;
                self.hold(now, HoldInput::Clock(clock), out);
            }
            // A batch has one price and no mid. Cut-offs are stamps, and of a key only its mid's stamps ascend.
            EdgeInput::Mid(_) if self.rules.bundles.is_some() => {}
            EdgeInput::Mid(number) => self.mid = self.mid.max(number),
            EdgeInput::Noted(event) => {
                out.push(EdgeEffect::Message(LinkEnd::control(ROOT_MEMBER), LinkMessage::Event(event)));
            }
            EdgeInput::Publish(_) | EdgeInput::Ready(_) | EdgeInput::Report(..) => self.counters.misplaced += 1,
            EdgeInput::Tick => self.tick(now, out),
        }
    }

    fn on_datagram(&mut self, now: Nanos, bytes: &[u8], out: &mut Vec<EdgeEffect>) {
        let Some(feed) = &mut self.feed else {
            self.counters.stale += 1;
            return;
        };
        if self.prober.hear_and_tell(now, bytes, (&feed.seating, &self.secret), out) {
            return;
        }
        let Ok((header, payload)) = PacketHeader::open(bytes) else {
            self.counters.malformed += 1;
            return;
        };
        let is_checked = !self.rules.mistake.is(EdgeMistake::MacUnchecked);
        let is_authentic = |key: &PacketKey| !is_checked || PacketHeader::is_authentic(bytes, key);
        if let Err(why) = feed.first.take(now, &header, is_authentic) {
            return self.counters.dropped(why);
        }
        self.counters.packets += 1;
        let PacketHeader { sequence, deadline, sent, is_unfair, .. } = header;
        self.report_delay(now, Some(now.saturating_sub(sent)), out);
        let arrived = Arrived { sent, at: now, is_unfair, payload: payload.to_vec() };
        match &mut feed_of(&mut self.feed).gaps {
            Some(_) => self.gaps(now, GapInput::Packet(sequence, deadline, arrived), out),
            None => {
                let early = &mut feed_of(&mut self.feed).early;
                if early.len() < EARLY_MAX {
                    early.push((sequence, deadline, arrived));
                }
            }
        }
    }

    fn report_delay(&mut self, now: Nanos, delay: Option<Nanos>, out: &mut Vec<EdgeEffect>) {
        if let (Some(report), Some(parent)) = (self.meter.step(now, delay), self.open_parent()) {
            out.push(EdgeEffect::Message(LinkEnd::orders(parent), LinkMessage::Delay(report)));
        }
    }

    fn open_parent(&self) -> Option<MemberId> {
        self.parent.filter(|_| self.is_parent_open).map(|seat| seat.member)
    }

    fn gaps(&mut self, now: Nanos, input: GapInput<Arrived>, out: &mut Vec<EdgeEffect>) {
        let Some(gaps) = self.feed.as_mut().and_then(|feed| feed.gaps.as_mut()) else { return };
        let mut effects = Vec::new();
        gaps.step(now, input, &mut effects);
        for effect in effects {
            match effect {
                GapEffect::Deliver(sequence, deadline, arrived) => {
                    let is_early = self.rules.mistake.is(EdgeMistake::ShownEarly);
                    let due = if is_early { now.min(deadline) } else { deadline };
                    let key = HoldKey { deadline: due, tree: 0, sequence, receiver: 0 };
                    let is_unfair = arrived.is_unfair;
                    self.hold(now, HoldInput::Packet(key, arrived, is_unfair), out);
                }
                GapEffect::Rewind { first, count, attempt } => self.ask((first, count), attempt, out),
                GapEffect::Lost(first, count) => {
                    self.counters.lost += count;
                    out.push(EdgeEffect::Lost(first, count));
                }
            }
        }
    }

    /// Asks the parents of the packet in turn, then the root, and again.
    fn ask(&mut self, packets: (u64, u16), attempt: u16, out: &mut Vec<EdgeEffect>) {
        let Some(seating) = self.feed.as_ref().map(|feed| &feed.seating) else { return };
        let member = self.presence.member;
        let Some(spot) = seating.spot_of(member) else { return };
        let from: Vec<&Seat> =
            seating.plan().rewinders(spot, packets.0).filter_map(|spot| seating.seat(spot)).collect();
        let Some(target) = from.get(usize::from(attempt) % from.len().max(1)) else { return };
        let key = PacketKey::of_epoch(&self.secret, seating.epoch());
        let request = RewindRequest::seal(seating.epoch(), 0, packets, member, &key);
        self.counters.rewinds += 1;
        out.push(EdgeEffect::Datagram(target.place.datagrams, Arc::from(request.encode())));
    }

    fn hold(&mut self, now: Nanos, input: HoldInput<Arrived>, out: &mut Vec<EdgeEffect>) {
        let mut released = Vec::new();
        self.hold.step(now, input, &mut released);
        released.into_iter().for_each(|released| self.show(now, released, out));
    }

    fn show(&mut self, now: Nanos, released: Released<Arrived>, out: &mut Vec<EdgeEffect>) {
        let HoldKey { deadline, sequence, .. } = released.key;
        let Arrived { sent, at, payload, .. } = released.item;
        let late = now.saturating_sub(deadline);
        self.stamps.shown(deadline);
        self.shown = sequence;
        if !payload.is_empty() {
            self.counters.shown += 1;
            self.counters.unfair += u64::from(released.unfair.is_some());
        }
        self.worst.0 = self.worst.0.max(late);
        if sequence.is_multiple_of(self.rules.sample) {
            let (delay, held) = (at.saturating_sub(sent), now.saturating_sub(at));
            let sample = ShownSample { sequence, delay, held, late, error_bound: self.clock.error_bound };
            out.push(EdgeEffect::Message(LinkEnd::control(ROOT_MEMBER), LinkMessage::Shown(sample)));
        }
        let shown = ShownPacket { sequence, deadline, unfair: released.unfair, payload };
        out.push(EdgeEffect::Show(Box::new(shown)));
        self.release_reports(out);
    }

    /// Passes on the reports of what was shown.
    fn release_reports(&mut self, out: &mut Vec<EdgeEffect>) {
        let is_early = self.rules.mistake.is(EdgeMistake::ReportedEarly);
        let is_due = |(position, _): &&(u64, Vec<u8>)| is_early || *position <= self.shown;
        let due = self.reports.iter().take_while(is_due).count();
        out.extend(self.reports.drain(..due).map(|(_, bytes)| EdgeEffect::Report(bytes)));
    }

    fn on_message(&mut self, now: Nanos, end: LinkEnd, message: LinkMessage, out: &mut Vec<EdgeEffect>) {
        match (end.purpose, message) {
            (LinkPurpose::Control, LinkMessage::Configure(seating, session)) => {
                self.configure(now, *seating, session, out);
            }
            (LinkPurpose::Control, LinkMessage::Begin(next)) => self.begin(now, next, out),
            (LinkPurpose::Control, LinkMessage::Report(position, bytes)) => {
                self.reports.push_back((position, bytes));
                self.release_reports(out);
            }
            (LinkPurpose::Control, LinkMessage::Unknown) => self.presence.unknown(),
            (LinkPurpose::Control, LinkMessage::TooSoon(until)) => self.presence.too_soon(until),
            (LinkPurpose::Control, LinkMessage::Taken(session, tokens)) if session == self.session => {
                for token in tokens {
                    if self.unacknowledged.remove(&token.reference).is_some() {
                        out.push(EdgeEffect::Acknowledged(token.reference));
                    }
                }
            }
            // Of an earlier life.
            (LinkPurpose::Control, LinkMessage::Taken(..)) => {}
            (LinkPurpose::Orders, LinkMessage::Credit(orders)) if Some(end.member) == self.open_parent() => {
                self.climb(now, HopInput::Ready(orders), out);
            }
            _ => self.counters.misplaced += 1,
        }
    }

    fn configure(&mut self, now: Nanos, seating: Seating, session: [u8; 10], out: &mut Vec<EdgeEffect>) {
        let (epoch, member) = (seating.epoch(), self.presence.member);
        let Some(spot) = seating.spot_of(member) else { return };
        // A root that has taken the place of another one has a session of its own, and higher epochs.
        if self.feed.as_ref().is_some_and(|feed| feed.first.session() != session) {
            if epoch <= self.epoch {
                return;
            }
            self.forget_root(now);
        }
        let (plan, key) = (seating.plan().clone(), PacketKey::of_epoch(&self.secret, epoch));
        let gateways = plan.widths().last().copied().unwrap_or(1);
        match &mut self.feed {
            Some(feed) => {
                if !feed.first.install(now, plan, key) {
                    return;
                }
                feed.seating = seating;
            }
            None => {
                let limits = self.rules.limits;
                let first = FirstCopy::new(plan, session, key, limits.span, limits.overlap);
                self.feed = Some(GatewayFeed { seating, first, gaps: None, early: Vec::new() });
                if self.session == 0 {
                    self.session = epoch;
                }
            }
        }
        self.place_slots(spot.index, gateways);
        self.epoch = epoch;
        self.feed.iter().for_each(|feed| self.prober.configured(&feed.seating));
        self.presence.installed(epoch);
        self.resend_later(now);
        let parent = self.feed.as_ref().and_then(|feed| feed.seating.parent(member)).copied();
        if parent != self.parent {
            (self.parent, self.is_parent_open) = (parent, false);
            out.push(EdgeEffect::Parent(parent));
        }
        out.push(EdgeEffect::Epoch(epoch));
    }

    /// Another root: its numbers begin anew. It has none of the orders that the one before has not acknowledged, but
    /// copies of them may wait at proxies: session and tokens stay, so that each counts once.
    fn forget_root(&mut self, now: Nanos) {
        self.feed = None;
        self.hold = Hold::new(now, self.rules.hold, self.clock);
        self.meter = DelayMeter::new(now, self.rules.deadlines);
        (self.shown, self.worst) = (0, (0, now));
        self.reports.clear();
    }

    fn begin(&mut self, now: Nanos, next: u64, out: &mut Vec<EdgeEffect>) {
        let Some(feed) = self.feed.as_mut().filter(|feed| feed.gaps.is_none()) else { return };
        feed.gaps = Some(Gaps::new(next, self.rules.gaps));
        for (sequence, deadline, arrived) in std::mem::take(&mut feed.early) {
            self.gaps(now, GapInput::Packet(sequence, deadline, arrived), out);
        }
    }

    /// What is not acknowledged then may have been lost with a hop.
    fn resend_later(&mut self, now: Nanos) {
        if !self.unacknowledged.is_empty() {
            self.resend_at = now.saturating_add(self.rules.resend);
        }
    }

    fn on_parent(&mut self, now: Nanos, member: MemberId, is_open: bool) {
        if self.parent.is_none_or(|parent| parent.member != member) {
            return;
        }
        self.is_parent_open = is_open;
        self.hop.step(now, HopInput::Parent, &mut Vec::new());
        self.resend_later(now);
    }

    /// A step of the way in.
    pub(super) fn climb(&mut self, now: Nanos, input: HopInput<EdgeOrder>, out: &mut Vec<EdgeEffect>) {
        let mut effects = Vec::new();
        self.hop.step(now, input, &mut effects);
        let parent = self.open_parent();
        for effect in effects {
            let message = match effect {
                HopEffect::Order(order) => LinkMessage::Order(Box::new(order)),
                HopEffect::Watermark(class, key) => LinkMessage::Watermark(class, key),
                HopEffect::Event(MergeEffect::Restamped(_, key)) => {
                    self.counters.restamped += 1;
                    let event = FairnessEvent::Restamped(self.presence.member, key.stamp);
                    out.push(EdgeEffect::Message(LinkEnd::control(ROOT_MEMBER), LinkMessage::Event(event)));
                    continue;
                }
                HopEffect::Event(_) => continue,
            };
            out.extend(parent.map(|parent| EdgeEffect::Message(LinkEnd::orders(parent), message)));
        }
    }

    fn tick(&mut self, now: Nanos, out: &mut Vec<EdgeEffect>) {
        self.presence.tick(now, out);
        if let Some(feed) = &self.feed {
            self.prober.tick(now, (&feed.seating, &self.secret), out);
        }
        self.gaps(now, GapInput::Tick, out);
        self.hold(now, HoldInput::Tick, out);
        self.report_delay(now, None, out);
        self.pace(now, PaceInput::Tick, out);
        if now >= self.resend_at {
            self.resend(now, out);
        }
        if now >= self.next_watermark && self.is_parent_open {
            self.next_watermark = now.saturating_add(self.rules.watermark);
            let mut promise = MergeKey::at(self.mid, self.stamps.promise(now));
            self.rules.lie.get().iter().for_each(|lie| lie.tell(&mut promise, None));
            for class in OrderClass::ALL {
                self.climb(now, HopInput::Child(MergeInput::Watermark(OWN, class, promise)), out);
            }
        }
        self.climb(now, HopInput::Child(MergeInput::Tick), out);
        self.report_lateness(now, out);
    }

    /// Sends again what is not acknowledged, in the order of keys.
    fn resend(&mut self, now: Nanos, out: &mut Vec<EdgeEffect>) {
        self.resend_at = Nanos::MAX;
        let mut orders: Vec<Sequenced<EdgeOrder>> = self.unacknowledged.values().cloned().collect();
        orders.sort_by_key(|order| order.key);
        self.counters.orders_resent += orders.len() as u64;
        for order in orders {
            self.climb(now, HopInput::Child(MergeInput::Order(OWN, order)), out);
        }
    }

    /// Of each second the worst, if it was beyond what counts as simultaneous.
    fn report_lateness(&mut self, now: Nanos, out: &mut Vec<EdgeEffect>) {
        if now.saturating_sub(self.worst.1) < LATE_REPORT {
            return;
        }
        let worst = std::mem::replace(&mut self.worst, (0, now)).0;
        if worst > self.rules.hold.tolerance {
            let event = FairnessEvent::Late(self.presence.member, worst);
            out.push(EdgeEffect::Message(LinkEnd::control(ROOT_MEMBER), LinkMessage::Event(event)));
        }
    }

    /// Where this gateway receives datagrams in the tree that it works by.
    pub fn address(&self) -> Option<SocketAddr> {
        let seating = &self.feed.as_ref()?.seating;
        Some(seating.seat(seating.spot_of(self.presence.member)?)?.place.datagrams)
    }
}

/// A packet was taken by it a moment ago.
fn feed_of(feed: &mut Option<GatewayFeed>) -> &mut GatewayFeed {
    feed.as_mut().expect("a feed that took a packet")
}
