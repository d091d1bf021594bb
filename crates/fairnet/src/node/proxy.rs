//! A proxy: forwards first copies, answers rewinds, sequences the orders of its children.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use super::presence::Presence;
use super::probes::Prober;
use super::upward::{Upward, UpwardEffect};
use super::{EdgeCounters, EdgeEffect, EdgeInput, EdgeRules, LinkEnd};
use crate::Nanos;
use crate::hop::HopEffect;
use crate::key::Sequenced;
use crate::link::{EdgeOrder, LinkMessage, LinkPurpose};
use crate::packet::{PacketKey, RewindRequest};
use crate::relay::{Relay, RelayEffect, RelayInput};
use crate::roster::{FairnessEvent, MemberRole};
use crate::seating::{EdgePlace, MemberId, ROOT_MEMBER, Seat, Seating};

/// A proxy's state.
#[derive(Debug)]
pub struct ProxyNode {
    rules: EdgeRules,
    secret: [u8; 32],
    presence: Presence,
    prober: Prober,
    relay: Option<(Relay, Seatings)>,
    upward: Upward,
    parent: Option<Seat>,
    is_parent_open: bool,
    counters: EdgeCounters,
    next_tick: Nanos,
    effects: Vec<RelayEffect>,
}

/// The seatings by which packets may still be forwarded: a place of an older tree has an older address.
#[derive(Debug)]
pub(super) struct Seatings {
    current: Seating,
    previous: Option<Seating>,
    registered: BTreeSet<MemberId>,
}

impl Seatings {
    pub(super) fn new(current: Seating) -> Seatings {
        Seatings { current, previous: None, registered: BTreeSet::new() }
    }

    pub(super) fn current(&self) -> &Seating {
        &self.current
    }

    pub(super) fn install(&mut self, seating: Seating) {
        self.previous = Some(std::mem::replace(&mut self.current, seating));
    }

    /// Whether a child may send this order: a gateway sends its own participant's alone.
    pub(super) fn is_own(&self, child: MemberId, order: &Sequenced<EdgeOrder>) -> bool {
        let (depth, spot) = (self.current.plan().depth(), self.current.spot_of(child));
        let is_gateway = spot.is_some_and(|spot| spot.layer == depth);
        !is_gateway
            || (MemberId::from(order.restamped.unwrap_or(order.key).source) == child && order.item.participant == child)
    }

    pub(super) fn of(&self, epoch: u32) -> &Seating {
        self.previous.as_ref().filter(|seating| seating.epoch() == epoch).unwrap_or(&self.current)
    }

    /// Lets exactly the present members ask for packets.
    pub(super) fn register(&mut self, now: Nanos, relay: &mut Relay) {
        let present: BTreeSet<MemberId> = self.current.members().map(|seat| seat.member).collect();
        for gone in self.registered.difference(&present) {
            relay.step(now, RelayInput::Forget(*gone), &mut Vec::new());
        }
        present.iter().for_each(|member| relay.step(now, RelayInput::Register(*member), &mut Vec::new()));
        self.registered = present;
    }
}

/// The epoch in an envelope; another if it is none.
fn epoch_of(bytes: &[u8]) -> u32 {
    bytes.get(4..8).map_or(0, |epoch| u32::from_be_bytes(std::array::from_fn(|at| epoch[at])))
}

/// A step of a relay for a datagram, as a node of a seating.
pub(super) fn relay_datagram(
    now: Nanos,
    (relay, seatings): (&mut Relay, &Seatings),
    (from, bytes): (SocketAddr, &[u8]),
    effects: &mut Vec<RelayEffect>,
    counters: &mut EdgeCounters,
    out: &mut Vec<EdgeEffect>,
) {
    let Some(request) = RewindRequest::decode(bytes) else {
        let seating = seatings.of(epoch_of(bytes));
        let taken = relay.packet(now, bytes, |spot| {
            counters.sent += 1;
            out.extend(seating.seat(spot).map(|seat| EdgeEffect::Forward(seat.place.datagrams)));
        });
        match taken {
            Ok(()) => counters.packets += 1,
            Err(why) => counters.dropped(why),
        }
        return;
    };
    // A stranger's number belongs to no member.
    let member = seatings.current.member_at(&from).unwrap_or(MemberId::MAX);
    relay.step(now, RelayInput::Rewind(member, request), effects);
    for effect in effects.drain(..) {
        match effect {
            RelayEffect::Resend(_, sequence) => {
                counters.resent += 1;
                out.extend(relay.kept(sequence).map(|kept| EdgeEffect::Datagram(from, Arc::from(kept))));
            }
            RelayEffect::Forward(_) | RelayEffect::Dropped(_) => {}
            RelayEffect::Refused(why) => counters.refused(why),
        }
    }
}

/// How often a node with children ticks although nothing happens, ns.
pub(super) fn tick_period(rules: &EdgeRules) -> Nanos {
    (rules.merge.short_wait / 2).max(rules.watermark / 2).max(20_000)
}

impl ProxyNode {
    /// A proxy on a machine that has the venue's secret.
    pub fn new(now: Nanos, member: MemberId, place: EdgePlace, secret: [u8; 32], rules: EdgeRules) -> ProxyNode {
        ProxyNode {
            rules,
            secret,
            presence: Presence::new(member, MemberRole::Proxy, place, rules.beat),
            prober: Prober::new(now, member, rules.probes),
            relay: None,
            upward: Upward::new(now, &rules),
            parent: None,
            is_parent_open: false,
            counters: EdgeCounters::default(),
            next_tick: now,
            effects: Vec::new(),
        }
    }

    /// What happened so far.
    pub fn counters(&self) -> &EdgeCounters {
        &self.counters
    }

    /// When the next tick is needed.
    pub fn due(&self) -> Nanos {
        let probe = if self.relay.is_some() { self.prober.due() } else { Nanos::MAX };
        self.presence.due().min(self.next_tick).min(probe)
    }

    /// One step.
    pub fn step(&mut self, now: Nanos, input: EdgeInput<'_>, out: &mut Vec<EdgeEffect>) {
        let mut up = Vec::new();
        match input {
            EdgeInput::Datagram(from, bytes) => return self.on_datagram(now, from, bytes, out),
            EdgeInput::Opened(end) if end.purpose == LinkPurpose::Control => self.presence.opened(),
            EdgeInput::Closed(end) if end.purpose == LinkPurpose::Control => self.presence.closed(),
            EdgeInput::Opened(end) if self.is_parent(end) => {
                self.is_parent_open = true;
                self.upward.parent(now, &mut up);
            }
            EdgeInput::Closed(end) if self.is_parent(end) => {
                self.is_parent_open = false;
                self.upward.parent(now, &mut up);
            }
            EdgeInput::Opened(end) => {
                self.counters.misplaced += u64::from(!self.upward.opened(now, end.member, &mut up));
            }
            EdgeInput::Closed(end) => self.upward.closed(now, end.member, &mut up),
            EdgeInput::Message(end, message) => self.on_message(now, end, message, &mut up, out),
            EdgeInput::Tick => {
                self.presence.tick(now, out);
                if let Some((_, seatings)) = &self.relay {
                    self.prober.tick(now, (seatings.current(), &self.secret), out);
                }
                self.next_tick = now.saturating_add(tick_period(&self.rules));
                self.upward.tick(now, &mut up, out);
            }
            _ => self.counters.misplaced += 1,
        }
        self.climb(up, out);
    }

    fn is_parent(&self, end: LinkEnd) -> bool {
        self.parent.is_some_and(|parent| parent.member == end.member)
    }

    fn on_datagram(&mut self, now: Nanos, from: SocketAddr, bytes: &[u8], out: &mut Vec<EdgeEffect>) {
        match &mut self.relay {
            Some((_, seatings)) if self.prober.hear_and_tell(now, bytes, (seatings.current(), &self.secret), out) => {}
            Some((relay, seatings)) => {
                relay_datagram(now, (relay, seatings), (from, bytes), &mut self.effects, &mut self.counters, out);
            }
            None => self.counters.stale += 1,
        }
    }

    fn on_message(
        &mut self,
        now: Nanos,
        end: LinkEnd,
        message: LinkMessage,
        up: &mut Vec<UpwardEffect>,
        out: &mut Vec<EdgeEffect>,
    ) {
        match (end.purpose, message) {
            (LinkPurpose::Control, LinkMessage::Configure(seating, session)) => {
                self.configure(now, *seating, session, out);
            }
            // Where to begin matters to gateways alone, and acknowledgements go to them.
            (LinkPurpose::Control, LinkMessage::Begin(_)) => {}
            (LinkPurpose::Control, LinkMessage::Expelled(child, by)) => {
                self.upward.expel(now, child, by, up);
                out.push(EdgeEffect::End(LinkEnd::orders(child)));
            }
            (LinkPurpose::Control, LinkMessage::Unknown) => self.presence.unknown(),
            (LinkPurpose::Control, LinkMessage::TooSoon(until)) => self.presence.too_soon(until),
            (LinkPurpose::Orders, LinkMessage::Credit(orders)) if self.is_parent(end) => {
                self.upward.ready(now, orders, up);
            }
            (LinkPurpose::Orders, LinkMessage::Order(order)) => {
                let is_own = self.relay.as_ref().is_some_and(|(_, seats)| seats.is_own(end.member, &order));
                if !is_own {
                    self.upward.refused(end.member);
                    self.counters.orders_refused += 1;
                    return;
                }
                self.counters.orders += 1;
                self.upward.order(now, end.member, *order, &mut self.counters, up);
            }
            (LinkPurpose::Orders, message) => {
                self.counters.misplaced += u64::from(!self.upward.message(now, end.member, message, up));
            }
            _ => self.counters.misplaced += 1,
        }
    }

    fn configure(&mut self, now: Nanos, seating: Seating, session: [u8; 10], out: &mut Vec<EdgeEffect>) {
        let (epoch, member) = (seating.epoch(), self.presence.member);
        // A proxy without a place waits as a spare; the root counts it as working by the tree.
        let Some(spot) = seating.spot_of(member) else {
            self.presence.installed(epoch);
            return self.change_parent(now, None, out);
        };
        let (plan, key) = (seating.plan().clone(), PacketKey::of_epoch(&self.secret, epoch));
        let parent = seating.parent(member).copied();
        // A root that has taken the place of another one has a session of its own, and higher epochs.
        if let Some((_, seatings)) = self.relay.as_ref().filter(|(relay, _)| relay.session() != session) {
            if epoch <= seatings.current.epoch() {
                return;
            }
            self.relay = None;
        }
        match &mut self.relay {
            Some((relay, seatings)) => {
                relay.step(now, RelayInput::Install(spot, plan, key), &mut Vec::new());
                seatings.install(seating);
            }
            None => {
                let relay = Relay::new((0, spot), plan, session, key, self.rules.limits);
                self.relay = Some((relay, Seatings::new(seating)));
            }
        }
        if let Some((relay, seatings)) = &mut self.relay {
            seatings.register(now, relay);
            self.prober.configured(seatings.current());
            self.upward.configured(seatings.current());
        }
        self.presence.installed(epoch);
        self.change_parent(now, parent, out);
        out.push(EdgeEffect::Epoch(epoch));
    }

    /// A spare has no parent: nobody must wait for what it has no children to promise for.
    fn change_parent(&mut self, now: Nanos, parent: Option<Seat>, out: &mut Vec<EdgeEffect>) {
        if parent != self.parent {
            (self.parent, self.is_parent_open) = (parent, false);
            self.upward.parent(now, &mut Vec::new());
            out.push(EdgeEffect::Parent(parent));
        }
    }

    /// Sends to the parent what came out at the top.
    fn climb(&mut self, up: Vec<UpwardEffect>, out: &mut Vec<EdgeEffect>) {
        let parent = self.parent.filter(|_| self.is_parent_open).map(|seat| LinkEnd::orders(seat.member));
        for effect in up {
            let message = match effect {
                UpwardEffect::Hop(HopEffect::Order(order)) => LinkMessage::Order(Box::new(order)),
                UpwardEffect::Hop(HopEffect::Watermark(class, key)) => LinkMessage::Watermark(class, key),
                UpwardEffect::Hop(HopEffect::Event(_)) => continue,
                UpwardEffect::Delay(delay) => LinkMessage::Delay(delay),
                UpwardEffect::Cheat(child, by) => {
                    let event = FairnessEvent::Implausible(child, by);
                    out.push(EdgeEffect::Message(LinkEnd::control(ROOT_MEMBER), LinkMessage::Event(event)));
                    out.push(EdgeEffect::End(LinkEnd::orders(child)));
                    continue;
                }
                UpwardEffect::Event(event) => {
                    self.counters.count(&event);
                    out.push(EdgeEffect::Message(LinkEnd::control(ROOT_MEMBER), LinkMessage::Event(event)));
                    continue;
                }
            };
            out.extend(parent.map(|end| EdgeEffect::Message(end, message)));
        }
    }
}
