//! The root: the venue's end of the tree, and the configuration manager.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use super::facts::{FeedFacts, resealed};
use super::probes::{ClockMesh, Prober};
use super::proxy::{Seatings, relay_datagram, tick_period};
use super::sessions::Sessions;
use super::upward::{Upward, UpwardEffect};
use super::{EdgeCounters, EdgeEffect, EdgeInput, EdgeMistake, EdgeRules, LinkEnd};
use crate::Nanos;
use crate::bundles::{ClosedBundle, Collector};
use crate::deadlines::Deadlines;
use crate::fairness::Windows;
use crate::hop::HopEffect;
use crate::key::Sequenced;
use crate::link::{EdgeOrder, LinkMessage, LinkPurpose};
use crate::packet::{PacketHeader, PacketKey};
use crate::plan::Spot;
use crate::relay::{Relay, RelayEffect, RelayInput};
use crate::roster::{FairnessEvent, MemberRole, Roster, RosterEffect, RosterInput};
use crate::seating::{EdgePlace, MemberId, ROOT_MEMBER, Seat, Seating};
use crate::tokens::{Admission, OrderToken};

/// A tree that members were sent.
#[derive(Debug)]
struct NextTree {
    seating: Seating,
    since: Nanos,
    ready: BTreeSet<MemberId>,
}

/// The root's state.
#[derive(Debug)]
pub struct RootNode {
    rules: EdgeRules,
    secret: [u8; 32],
    session: [u8; 10],
    place: EdgePlace,
    roster: Roster,
    /// Whose control streams are open, and what they said they are.
    members: BTreeMap<MemberId, Option<(MemberRole, EdgePlace)>>,
    /// Since when members have changed.
    changed: Option<Nanos>,
    next: Option<NextTree>,
    relay: Option<(Relay, Seatings)>,
    deadlines: Deadlines,
    sequence: u64,
    published: Nanos,
    facts: FeedFacts,
    prober: Prober,
    mesh: ClockMesh,
    upward: Upward,
    sessions: Sessions,
    taken: BTreeMap<(MemberId, u32), Vec<OrderToken>>,
    /// Orders for the batch market, if there is one.
    collector: Option<Collector>,
    /// When the sequencer had somebody to wait for.
    attended: Nanos,
    windows: Windows,
    counters: EdgeCounters,
    next_tick: Nanos,
}

impl RootNode {
    /// The root of a session, on a machine that has the venue's secret. `epoch` is above every epoch of earlier roots.
    pub fn new(
        now: Nanos,
        place: EdgePlace,
        (session, epoch): ([u8; 10], u32),
        secret: [u8; 32],
        rules: EdgeRules,
    ) -> RootNode {
        RootNode {
            rules,
            secret,
            session,
            place,
            roster: Roster::new(epoch, rules.roster),
            members: BTreeMap::new(),
            changed: None,
            next: None,
            relay: None,
            deadlines: Deadlines::new(rules.deadlines),
            sequence: 0,
            published: now,
            facts: FeedFacts::new(now),
            prober: Prober::new(now, ROOT_MEMBER, rules.probes),
            mesh: ClockMesh::new(rules.probes.estimator),
            upward: Upward::new(now, &rules),
            sessions: Sessions::new(),
            taken: BTreeMap::new(),
            collector: rules.bundles.map(|bundles| Collector::new(now, &bundles)),
            attended: now,
            windows: Windows::default(),
            counters: EdgeCounters::default(),
            next_tick: now,
        }
    }

    /// What happened so far.
    pub fn counters(&self) -> &EdgeCounters {
        &self.counters
    }

    /// Members, epochs and the log of fairness.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// What gateways said of sampled packets.
    pub fn windows(&self) -> &Windows {
        &self.windows
    }

    /// What members' probes say of their clocks.
    pub fn clocks(&self) -> &ClockMesh {
        &self.mesh
    }

    /// The tree that packets are sent by.
    pub fn seating(&self) -> Option<&Seating> {
        self.relay.as_ref().map(|(_, seatings)| seatings.current())
    }

    /// Present headroom of deadlines, ns.
    pub fn headroom(&self) -> Nanos {
        self.deadlines.headroom()
    }

    /// Orders that wait for the engine.
    pub fn queued(&self) -> usize {
        self.upward.queued()
    }

    /// The last sequence that was sent, heartbeats included.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// When the next tick is needed.
    pub fn due(&self) -> Nanos {
        let heartbeat = if self.relay.is_some() { self.published + self.rules.heartbeat } else { Nanos::MAX };
        let probe = if self.relay.is_some() { self.prober.due() } else { Nanos::MAX };
        self.next_tick.min(heartbeat).min(probe)
    }

    /// One step.
    pub fn step(&mut self, now: Nanos, input: EdgeInput<'_>, out: &mut Vec<EdgeEffect>) {
        let mut up = Vec::new();
        match input {
            EdgeInput::Publish(payload) if !payload.is_empty() => self.publish(now, payload, out),
            EdgeInput::Datagram(from, bytes) => self.on_datagram(now, from, bytes, out),
            EdgeInput::Opened(end) if end.purpose == LinkPurpose::Control => {
                self.members.insert(end.member, None);
            }
            EdgeInput::Closed(end) if end.purpose == LinkPurpose::Control => {
                self.members.remove(&end.member);
            }
            EdgeInput::Opened(end) => {
                self.counters.misplaced += u64::from(!self.upward.opened(now, end.member, &mut up));
            }
            EdgeInput::Closed(end) => self.upward.closed(now, end.member, &mut up),
            EdgeInput::Message(end, message) if end.purpose == LinkPurpose::Control => {
                self.on_control(now, end.member, message, out);
            }
            EdgeInput::Message(end, LinkMessage::Order(order)) => self.on_order(now, end.member, *order, &mut up, out),
            EdgeInput::Message(end, message) => {
                self.counters.misplaced += u64::from(!self.upward.message(now, end.member, message, &mut up));
            }
            // Whoever has no place sees no packets, so it can wait for none.
            EdgeInput::Report(gateway, bytes) if self.seating().is_some_and(|tree| tree.spot_of(gateway).is_some()) => {
                self.say(gateway, LinkMessage::Report(self.sequence, bytes), out);
            }
            EdgeInput::Ready(orders) => self.upward.ready(now, orders, &mut up),
            EdgeInput::Tick => self.tick(now, &mut up, out),
            _ => self.counters.misplaced += 1,
        }
        self.arrive(now, up, out);
    }

    /// An order of a child, if it is one that it may send and that can be.
    fn on_order(
        &mut self,
        now: Nanos,
        child: MemberId,
        order: Sequenced<EdgeOrder>,
        up: &mut Vec<UpwardEffect>,
        out: &mut Vec<EdgeEffect>,
    ) {
        let is_own = self.relay.as_ref().is_some_and(|(_, seats)| seats.is_own(child, &order));
        let is_blind = self.rules.mistake.is(EdgeMistake::LiesBelieved);
        let lie = self.facts.contradiction(&order).filter(|_| !is_blind);
        match lie {
            None if is_own => return self.upward.order(now, child, order, &mut self.counters, up),
            Some(by) if is_own => self.expel(now, order.item.participant, by, up, out),
            _ => {}
        }
        self.upward.refused(child);
        self.counters.orders_refused += 1;
    }

    /// A member is found out: nobody hears it any more, and it is evicted.
    fn expel(&mut self, now: Nanos, member: MemberId, by: u64, up: &mut Vec<UpwardEffect>, out: &mut Vec<EdgeEffect>) {
        self.manage(now, RosterInput::Expel(FairnessEvent::Implausible(member, by)), out);
        match self.seating().and_then(|tree| tree.parent(member)).map(|seat| seat.member) {
            Some(ROOT_MEMBER) => {
                self.upward.expel(now, member, by, up);
                out.push(EdgeEffect::End(LinkEnd::orders(member)));
            }
            Some(parent) => self.say(parent, LinkMessage::Expelled(member, by), out),
            None => {}
        }
    }

    /// Seals a packet and sends it to the first layer.
    fn publish(&mut self, now: Nanos, payload: &[u8], out: &mut Vec<EdgeEffect>) {
        let Some((relay, seatings)) = &mut self.relay else { return };
        let epoch = seatings.current().epoch();
        self.sequence += 1;
        self.published = now;
        let (session, sequence) = (self.session, self.sequence);
        let deadline = self.deadlines.next(now);
        self.facts.sent(sequence, deadline);
        let header = PacketHeader { epoch, session, tree: 0, sequence, deadline, sent: now, is_unfair: false };
        let mut bytes = Vec::with_capacity(crate::ENVELOPE_BYTES + payload.len());
        header.seal(&PacketKey::of_epoch(&self.secret, epoch), payload, &mut bytes);
        let mut effects = Vec::new();
        relay.step(now, RelayInput::Packet(&bytes), &mut effects);
        let bytes: Arc<[u8]> = bytes.into();
        for effect in effects {
            if let RelayEffect::Forward(spot) = effect
                && let Some(seat) = seatings.current().seat(spot)
            {
                self.counters.sent += 1;
                out.push(EdgeEffect::Datagram(seat.place.datagrams, bytes.clone()));
            }
        }
        self.counters.packets += 1;
    }

    /// Requests are answered with the packets of this session, those of earlier epochs under the present key.
    fn on_datagram(&mut self, now: Nanos, from: SocketAddr, bytes: &[u8], out: &mut Vec<EdgeEffect>) {
        // Packets come from the root alone; whatever else claims to be one is a copy or a forgery.
        match &mut self.relay {
            Some((_, seatings))
                if self.prober.hear(now, bytes, (seatings.current(), &self.secret), |from, pair| {
                    self.mesh.add(from, ROOT_MEMBER, pair);
                }) => {}
            Some((relay, seatings)) => {
                let before = out.len();
                relay_datagram(now, (relay, seatings), (from, bytes), &mut Vec::new(), &mut self.counters, out);
                let epoch = seatings.current().epoch();
                for effect in &mut out[before..] {
                    if let EdgeEffect::Datagram(_, bytes) = effect {
                        *bytes = resealed(bytes, epoch, &self.secret).unwrap_or_else(|| bytes.clone());
                    }
                }
            }
            None => self.counters.stale += 1,
        }
    }

    fn on_control(&mut self, now: Nanos, member: MemberId, message: LinkMessage, out: &mut Vec<EdgeEffect>) {
        let input = match message {
            LinkMessage::Join(role, place) => return self.on_join(now, member, (role, place), out),
            LinkMessage::Alive(epoch) => {
                if let Some(next) = self.next.as_mut().filter(|next| next.seating.epoch() == epoch) {
                    next.ready.insert(member);
                }
                RosterInput::Heartbeat(member, epoch)
            }
            // Whoever was evicted fills no log.
            LinkMessage::Event(_) if !self.roster.has(member) => return,
            // A parent says that its child cheats.
            LinkMessage::Event(event @ FairnessEvent::Implausible(child, _)) => {
                let parent = self.seating().and_then(|tree| tree.parent(child)).map(|seat| seat.member);
                if parent != Some(member) {
                    return;
                }
                RosterInput::Expel(event)
            }
            LinkMessage::Event(event) => RosterInput::Report(event),
            LinkMessage::Probed(from, pair) => {
                let is_seated =
                    self.seating().is_some_and(|tree| [from, member].iter().all(|at| tree.spot_of(*at).is_some()));
                if is_seated {
                    self.mesh.add(from, member, pair);
                }
                return;
            }
            LinkMessage::Shown(sample) => {
                let gateways = self.seating().map_or(0, |seating| seating.gateways().len());
                return self.windows.add(&sample, gateways);
            }
            _ => {
                self.counters.misplaced += 1;
                return;
            }
        };
        self.manage(now, input, out);
    }

    fn on_join(&mut self, now: Nanos, member: MemberId, own: (MemberRole, EdgePlace), out: &mut Vec<EdgeEffect>) {
        let Some(known) = self.members.get_mut(&member) else { return };
        // Until the next tree is made, a newcomer asks again and again: that is a sign of life.
        let is_waiting = *known == Some(own) && self.roster.has(member);
        *known = Some(own);
        if is_waiting {
            let epoch = self.roster.epoch();
            return self.manage(now, RosterInput::Heartbeat(member, epoch), out);
        }
        self.manage(now, RosterInput::Join(member, own.0), out);
    }

    fn manage(&mut self, now: Nanos, input: RosterInput, out: &mut Vec<EdgeEffect>) {
        let mut effects = Vec::new();
        self.roster.step(now, input, &mut effects);
        for effect in effects {
            match effect {
                RosterEffect::Epoch(_) => self.changed = self.changed.or(Some(now)),
                RosterEffect::TooSoon(member, until) => self.say(member, LinkMessage::TooSoon(until), out),
                RosterEffect::Unknown(member) => self.say(member, LinkMessage::Unknown, out),
                RosterEffect::Logged(entry) => out.push(EdgeEffect::Logged(entry)),
                RosterEffect::Evicted(member) => {
                    self.counters.evictions += 1;
                    // Whoever comes back has to say again who it is.
                    self.members.entry(member).and_modify(|known| *known = None);
                }
                RosterEffect::Full(_) => self.counters.misplaced += 1,
            }
        }
    }

    fn say(&self, member: MemberId, message: LinkMessage, out: &mut Vec<EdgeEffect>) {
        out.push(EdgeEffect::Message(LinkEnd::control(member), message));
    }

    fn tick(&mut self, now: Nanos, up: &mut Vec<UpwardEffect>, out: &mut Vec<EdgeEffect>) {
        self.next_tick = now.saturating_add(tick_period(&self.rules));
        self.manage(now, RosterInput::Tick, out);
        self.switch(now, out);
        self.plan(now, out);
        if now.saturating_sub(self.published) >= self.rules.heartbeat {
            self.publish(now, &[], out);
        }
        if let Some((_, seatings)) = &self.relay {
            self.prober.tick(now, (seatings.current(), &self.secret), out);
        }
        self.upward.tick(now, up, out);
        self.attend(now, out);
        for ((member, session), tokens) in std::mem::take(&mut self.taken) {
            self.say(member, LinkMessage::Taken(session, tokens), out);
        }
    }

    fn seats(&self, role: MemberRole) -> Vec<Seat> {
        let place = |member| Some((member, self.members.get(&member).copied()??.1));
        let seats = self.roster.members(role).filter_map(place);
        seats.map(|(member, place)| Seat { member, place }).collect()
    }

    /// Sends everybody the next tree, if members have changed and no other tree is on its way.
    fn plan(&mut self, now: Nanos, out: &mut Vec<EdgeEffect>) {
        let is_due = self.changed.is_some_and(|since| now.saturating_sub(since) >= self.rules.settle);
        if !is_due || self.next.is_some() {
            return;
        }
        let (proxies, gateways) = (self.seats(MemberRole::Proxy), self.seats(MemberRole::Gateway));
        let root = Seat { member: ROOT_MEMBER, place: self.place };
        let Some(seating) = Seating::new(self.roster.epoch(), self.rules.shape, root, &proxies, &gateways) else {
            return;
        };
        self.changed = None;
        for seat in proxies.iter().chain(&gateways) {
            let message = LinkMessage::Configure(Box::new(seating.clone()), self.session);
            self.say(seat.member, message, out);
        }
        self.next = Some(NextTree { seating, since: now, ready: BTreeSet::new() });
    }

    /// Sends by the next tree from now on, if everybody works by it or has had the time to.
    fn switch(&mut self, now: Nanos, out: &mut Vec<EdgeEffect>) {
        let is_ready = |next: &NextTree| {
            let mut members = next.seating.members().filter(|seat| seat.member != ROOT_MEMBER);
            let is_late = now.saturating_sub(next.since) >= self.rules.switch;
            is_late || members.all(|seat| next.ready.contains(&seat.member))
        };
        let Some(NextTree { seating, .. }) = self.next.take_if(|next| is_ready(next)) else { return };
        let was_seated = |member| self.seating().is_some_and(|seating| seating.spot_of(member).is_some());
        let newcomers = seating.gateways().iter().map(|seat| seat.member).filter(|member| !was_seated(*member));
        newcomers.for_each(|member| self.say(member, LinkMessage::Begin(self.sequence + 1), out));
        out.push(EdgeEffect::Epoch(seating.epoch()));
        self.install(now, seating);
    }

    fn install(&mut self, now: Nanos, seating: Seating) {
        let (plan, key) = (seating.plan().clone(), PacketKey::of_epoch(&self.secret, seating.epoch()));
        match &mut self.relay {
            Some((relay, seatings)) => {
                relay.step(now, RelayInput::Install(Spot::ROOT, plan, key), &mut Vec::new());
                seatings.install(seating);
            }
            None => {
                let relay = Relay::new((0, Spot::ROOT), plan, self.session, key, self.rules.limits);
                self.relay = Some((relay, Seatings::new(seating)));
            }
        }
        if let Some((relay, seatings)) = &mut self.relay {
            seatings.register(now, relay);
            self.prober.configured(seatings.current());
            self.upward.configured(seatings.current());
            self.mesh.configured(seatings.current());
        }
    }

    /// What came out of the root's sequencer.
    fn arrive(&mut self, now: Nanos, up: Vec<UpwardEffect>, out: &mut Vec<EdgeEffect>) {
        for effect in up {
            match effect {
                UpwardEffect::Hop(HopEffect::Order(order)) => self.admit(now, order, out),
                UpwardEffect::Hop(HopEffect::Watermark(class, key)) => {
                    let mut closed = Vec::new();
                    self.collector.iter_mut().for_each(|collector| collector.promise(class, key, &mut closed));
                    self.close(closed, out);
                    out.push(EdgeEffect::Promise(class, key));
                }
                UpwardEffect::Hop(HopEffect::Event(_)) => {}
                UpwardEffect::Delay(delay) => self.deadlines.report(delay),
                UpwardEffect::Cheat(child, by) => {
                    self.expel(now, child, by, &mut Vec::new(), out);
                    out.push(EdgeEffect::End(LinkEnd::orders(child)));
                }
                UpwardEffect::Event(event) => {
                    self.counters.count(&event);
                    self.manage(now, RosterInput::Report(event), out);
                }
            }
        }
    }

    /// Without any stream a sequencer promises nothing, so what is collected would wait until somebody joins. After the
    /// silence that evicts a member the root closes it: what still comes is late, and says so.
    fn attend(&mut self, now: Nanos, out: &mut Vec<EdgeEffect>) {
        let silence = self.rules.roster.silence;
        if self.upward.has_children() {
            self.attended = now;
        }
        let is_alone = now.saturating_sub(self.attended) >= silence;
        let is_early = self.rules.mistake.is(EdgeMistake::BundleCutEarly);
        let Some(collector) = self.collector.as_mut().filter(|_| is_alone || is_early) else { return };
        let mut closed = Vec::new();
        collector.cut(if is_early { now } else { now.saturating_sub(silence) }, is_alone, &mut closed);
        self.close(closed, out);
    }

    fn close(&mut self, closed: Vec<ClosedBundle>, out: &mut Vec<EdgeEffect>) {
        for bundle in closed {
            self.counters.bundles += 1;
            let late = bundle.bundle.orders.iter().filter(|order| order.is_late);
            self.counters.bundled_late += late.count() as u64;
            out.push(EdgeEffect::Bundle(Box::new(bundle)));
        }
    }

    /// Hands an order on once, and acknowledges it in any case.
    fn admit(&mut self, now: Nanos, order: Sequenced<EdgeOrder>, out: &mut Vec<EdgeEffect>) {
        let EdgeOrder { participant, session, token, .. } = order.item;
        // Not the source in the key: that of an order that was stamped anew is the frontier's.
        let gateway: MemberId = participant;
        let is_blind = self.rules.mistake.is(EdgeMistake::CopiesTaken);
        let admission = if is_blind { Admission::First } else { self.sessions.admit(gateway, session, token) };
        self.taken.entry((gateway, session)).or_default().push(token);
        match admission {
            Admission::First => {
                self.counters.orders += 1;
                self.collector.iter_mut().for_each(|collector| collector.order(&order));
                out.push(EdgeEffect::Engine(Box::new(order)));
            }
            Admission::Duplicate => self.counters.order_copies += 1,
            Admission::Diverged => {
                self.counters.order_copies += 1;
                self.manage(now, RosterInput::Report(FairnessEvent::Diverged(participant)), out);
            }
        }
    }
}
