//! The whole edge under seeded faults: root, proxies and gateways, market data out and orders in, on one event queue.
//!
//! The nodes are those that run on sockets. Datagrams are lost, copied, delayed, reordered, cut, forged and replayed;
//! strangers ask for packets; proxies and gateways die and come back. [`EdgeAudit`] looks at everything that comes out.

mod places;
mod setup;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use super::{EdgeAudit, payload_number};
use crate::Nanos;
use crate::hold::ClockState;
use crate::key::OrderClass;
use crate::link::{LinkMessage, LinkPurpose};
use crate::node::{
    EdgeCounters, EdgeEffect, EdgeInput, EdgeNode, EdgeRules, GatewayNode, LinkEnd, NewEdgeOrder, ProxyNode, RootNode,
};
use crate::packet::{PacketHeader, PacketKey, RewindRequest};
use crate::seating::{MemberId, ROOT_MEMBER, Seat};

use kernel::{Calendar, Xoshiro};
use places::{add, address, member_at, place, sealed};
pub use setup::{EdgeFaults, EdgeReport, EdgeSetup};

const MS: Nanos = 1_000_000;
const SECRET: [u8; 32] = [7; 32];
const SESSION: [u8; 10] = *b"0000000001";
/// Gateways' numbers begin here.
const GATEWAY: MemberId = 1_000;
/// How long a member that died stays away.
const AWAY: Nanos = 700 * MS;
/// Between the moments in which both ends know of a new stream.
const OPENING: Nanos = 50_000;
/// The mid moves with every so many payloads.
const MID_EVERY: u64 = 20;
/// The feed and the orders begin when everybody has joined.
const BEGIN: Nanos = 100 * MS;

enum Event {
    Datagram(MemberId, SocketAddr, Vec<u8>),
    /// A message on a stream that was opened as this one.
    Message(MemberId, LinkEnd, u64, LinkMessage),
    Opened(MemberId, LinkEnd, u64),
    Closed(MemberId, LinkEnd, u64),
    Tick(MemberId),
    Publish,
    Order(MemberId),
    Engine,
    Die(MemberId),
    Revive(MemberId),
    /// Opens a stream of orders again, if it is still wanted.
    Retry(MemberId, MemberId),
}

/// One end of a stream.
struct End {
    stream: u64,
    /// When the last message arrives at the other end: streams keep their order.
    last: Nanos,
}

struct Machine {
    node: EdgeNode,
    due: Nanos,
    ends: BTreeMap<LinkEnd, End>,
    /// To whom it opened a stream of orders.
    parent: Option<MemberId>,
    seen: (u64, Nanos),
    /// Orders that have no stamp yet.
    unstamped: VecDeque<Vec<u8>>,
    is_alive: bool,
}

struct World {
    setup: EdgeSetup,
    dice: Xoshiro,
    queue: Calendar<Event>,
    machines: BTreeMap<MemberId, Machine>,
    audit: EdgeAudit,
    streams: u64,
    left: BTreeMap<MemberId, u64>,
    /// Copies that a stranger may send again.
    old: Vec<Vec<u8>>,
    pause: Nanos,
    counters: Vec<(&'static str, u64)>,
    trace: blake3::Hasher,
}

/// Runs one edge until everything has come to rest.
pub fn run_edge(setup: &EdgeSetup) -> EdgeReport {
    World::new(*setup).run()
}

impl World {
    fn new(setup: EdgeSetup) -> World {
        let mut world = World {
            setup,
            dice: Xoshiro::new(setup.seed),
            queue: Calendar::new(14, 12),
            machines: BTreeMap::new(),
            audit: EdgeAudit::default(),
            streams: 0,
            left: BTreeMap::new(),
            old: Vec::new(),
            pause: 0,
            counters: Vec::new(),
            trace: blake3::Hasher::new(),
        };
        world.start(0, ROOT_MEMBER);
        world.members().into_iter().for_each(|member| world.start(0, member));
        world
    }

    fn members(&self) -> Vec<MemberId> {
        (1..=u64::from(self.setup.proxies)).chain(self.gateways()).collect()
    }

    fn gateways(&self) -> std::ops::Range<MemberId> {
        GATEWAY..GATEWAY + u64::from(self.setup.gateways)
    }

    /// Starts a machine, and a control stream to the root.
    fn start(&mut self, now: Nanos, member: MemberId) {
        let lie = self.setup.lie.filter(|_| member == GATEWAY);
        let (own, rules) = (place(member), EdgeRules { lie: lie.into(), ..self.setup.rules });
        let node = match member {
            ROOT_MEMBER => EdgeNode::Root(RootNode::new(now, own, (SESSION, 0), SECRET, rules)),
            GATEWAY.. => EdgeNode::Gateway(GatewayNode::new(now, member, own, SECRET, rules)),
            _ => EdgeNode::Proxy(ProxyNode::new(now, member, own, SECRET, rules)),
        };
        let seen = (0, Nanos::MAX);
        let (ends, parent) = (BTreeMap::new(), None);
        self.machines.insert(
            member,
            Machine { node, due: Nanos::MAX, ends, parent, seen, unstamped: VecDeque::new(), is_alive: true },
        );
        self.queue.push(now + 1, Event::Tick(member));
        if member != ROOT_MEMBER {
            self.open(now, member, ROOT_MEMBER, LinkPurpose::Control);
        }
        if member >= GATEWAY {
            self.step(now, member, EdgeInput::Clock(ClockState { error_bound: Some(100) }));
        }
    }

    fn run(mut self) -> EdgeReport {
        self.queue.push(BEGIN, Event::Publish);
        self.queue.push(BEGIN, Event::Engine);
        for gateway in self.gateways() {
            self.left.insert(gateway, self.setup.orders);
            self.queue.push(BEGIN, Event::Order(gateway));
        }
        self.plan_deaths();
        let end = BEGIN + self.setup.payloads * MS + 3_000 * MS;
        let mut events = 0;
        while let Some((now, event)) = self.queue.pop().filter(|(now, _)| *now < end) {
            events += 1;
            self.on_event(now, event);
        }
        self.finish(end, events)
    }

    fn plan_deaths(&mut self) {
        let EdgeFaults { proxy_deaths, gateway_deaths, .. } = self.setup.faults;
        let first = self.dice.bits();
        for death in 0..u64::from(proxy_deaths) {
            let member = 1 + (first + death) % u64::from(self.setup.proxies);
            let at = BEGIN + (150 + 400 * death) * MS + self.dice.bits() % (100 * MS);
            self.queue.push(at, Event::Die(member));
        }
        for death in 0..u64::from(gateway_deaths) {
            let member = GATEWAY + (first + death) % u64::from(self.setup.gateways);
            let at = BEGIN + (300 + 400 * death) * MS + self.dice.bits() % (100 * MS);
            self.queue.push(at, Event::Die(member));
        }
    }

    fn finish(mut self, end: Nanos, events: u64) -> EdgeReport {
        if self.setup.lie.is_some() {
            self.audit.died(GATEWAY);
        }
        let gateways: Vec<MemberId> = self.gateways().filter(|gateway| !self.is_liar(*gateway)).collect();
        self.audit.finish(gateways.into_iter());
        let all: Vec<EdgeCounters> = self.machines.values().map(|machine| *machine.node.counters()).collect();
        all.iter().for_each(|counters| add(&mut self.counters, counters));
        let EdgeNode::Root(root) = &self.machines[&ROOT_MEMBER].node else { unreachable!("member 0 is the root") };
        // All machines of this world have one clock.
        self.audit.clocks(&root.clocks().estimates(end), |_| 0);
        EdgeReport {
            violations: self.audit.violations().to_vec(),
            epoch: root.roster().epoch(),
            counters: self.counters,
            pause: self.pause,
            events,
            log: root.roster().log().entries().map(|entry| entry.event).collect(),
            trace: self.trace.finalize().into(),
        }
    }

    fn on_event(&mut self, now: Nanos, event: Event) {
        match event {
            Event::Datagram(to, from, bytes) => self.step(now, to, EdgeInput::Datagram(from, &bytes)),
            Event::Message(to, end, stream, message) => {
                if self.is_open(to, end, stream) {
                    self.step(now, to, EdgeInput::Message(end, message));
                }
            }
            Event::Opened(to, end, stream) => {
                if self.machines[&to].is_alive {
                    // Nothing arrives before the other end is open, too.
                    self.machine(to).ends.insert(end, End { stream, last: now + OPENING });
                    self.step(now, to, EdgeInput::Opened(end));
                }
            }
            Event::Closed(to, end, stream) => {
                if self.is_open(to, end, stream) {
                    self.machine(to).ends.remove(&end);
                    self.step(now, to, EdgeInput::Closed(end));
                    self.reopen(now, to, end);
                }
            }
            Event::Tick(member) => {
                if self.machines[&member].due <= now || self.machines[&member].due == Nanos::MAX {
                    self.machine(member).due = Nanos::MAX;
                    self.step(now, member, EdgeInput::Tick);
                }
            }
            Event::Publish => self.publish(now),
            Event::Order(gateway) => self.make_order(now, gateway),
            Event::Engine => self.feed_engine(now),
            Event::Die(member) => self.die(now, member),
            Event::Revive(member) => self.start(now, member),
            Event::Retry(member, parent) => {
                let is_wanted = self.machines[&member].parent == Some(parent) && self.machines[&member].is_alive;
                if is_wanted && self.machines[&parent].is_alive {
                    self.open(now, member, parent, LinkPurpose::Orders);
                }
            }
        }
    }

    /// Whoever lies is evicted again and again: what it is shown has gaps.
    fn is_liar(&self, member: MemberId) -> bool {
        self.setup.lie.is_some() && member == GATEWAY
    }

    fn machine(&mut self, member: MemberId) -> &mut Machine {
        self.machines.get_mut(&member).expect("a machine of this world")
    }

    fn is_open(&self, at: MemberId, end: LinkEnd, stream: u64) -> bool {
        let machine = &self.machines[&at];
        machine.is_alive && machine.ends.get(&end).is_some_and(|own| own.stream == stream)
    }

    /// A step of a living machine, and all that it does.
    fn step(&mut self, now: Nanos, member: MemberId, input: EdgeInput<'_>) {
        let bytes = if let EdgeInput::Datagram(_, bytes) = &input { Some(*bytes) } else { None };
        let machine = self.machines.get_mut(&member).expect("a machine of this world");
        if !machine.is_alive {
            return;
        }
        let mut out = Vec::new();
        machine.node.step(now, input, &mut out);
        // A shell ends each batch of inputs with a tick. Here each input is a batch; a datagram promises nothing.
        if bytes.is_none() {
            machine.node.step(now, EdgeInput::Tick, &mut out);
        }
        let due = machine.node.due().max(now + 1);
        if due < machine.due {
            machine.due = due;
            self.queue.push(due, Event::Tick(member));
        }
        out.into_iter().for_each(|effect| self.perform(now, member, effect, bytes));
    }

    fn perform(&mut self, now: Nanos, member: MemberId, effect: EdgeEffect, bytes: Option<&[u8]>) {
        match effect {
            EdgeEffect::Forward(to) => self.send(now, member, &to, bytes.unwrap_or_default()),
            EdgeEffect::Datagram(to, bytes) => {
                if let Some(header) = sealed(member, &bytes) {
                    self.audit.sealed(header.sequence, header.deadline);
                }
                self.send(now, member, &to, &bytes);
            }
            EdgeEffect::Message(end, message) => self.say(now, member, end, message),
            EdgeEffect::Parent(parent) => self.change_parent(now, member, parent),
            EdgeEffect::Show(packet) => {
                if !self.is_liar(member) {
                    self.audit.shown(now, member, &packet);
                }
                self.trace.update(&now.to_be_bytes()).update(&member.to_be_bytes()).update(&packet.payload);
                if !packet.payload.is_empty() {
                    let machine = self.machine(member);
                    let pause = now.saturating_sub(machine.seen.1);
                    machine.seen = (packet.sequence, now);
                    self.pause = self.pause.max(if self.is_liar(member) { 0 } else { pause });
                    let mid = payload_number(&packet.payload).unwrap_or(0) / MID_EVERY;
                    self.machine(member).node.step(now, EdgeInput::Mid(mid), &mut Vec::new());
                }
            }
            EdgeEffect::Lost(..) | EdgeEffect::Report(_) if self.is_liar(member) => {}
            EdgeEffect::End(end) => self.end(now, member, end),
            EdgeEffect::Lost(first, count) => self.audit.lost(member, first, count),
            EdgeEffect::Report(bytes) => self.audit.reported(member, payload_number(&bytes).unwrap_or(u64::MAX)),
            // A pace keeps the order in which they were made.
            EdgeEffect::Stamped(_, stamp) => {
                let body = self.machine(member).unstamped.pop_front().expect("a stamp is of an order that was made");
                self.audit.made(member, stamp, &body);
            }
            EdgeEffect::OrderRefused => drop(self.machine(member).unstamped.pop_back()),
            EdgeEffect::Engine(order) => {
                self.trace.update(&order.key.stamp.to_be_bytes()).update(&order.item.body);
                self.audit.handed_on(&order);
            }
            EdgeEffect::Bundle(bundle) => {
                self.trace.update(&bundle.bundle.digest());
                self.audit.closed(&bundle);
            }
            _ => {}
        }
    }

    /// A datagram on its way, and what strangers add to it.
    fn send(&mut self, now: Nanos, from: MemberId, to: &SocketAddr, bytes: &[u8]) {
        let (faults, to) = (self.setup.faults.datagrams, member_at(to));
        let mut push = |at: Nanos, bytes: Vec<u8>| self.queue.push(at, Event::Datagram(to, address(from), bytes));
        if self.dice.happens(faults.forged) && !bytes.is_empty() {
            let mut lie = bytes.to_vec();
            let at = self.dice.bits() as usize % lie.len();
            lie[at] ^= 1 << (self.dice.bits() % 8);
            push(now + 1, lie);
        }
        if self.dice.happens(faults.replayed) && !self.old.is_empty() {
            push(now + 1, self.old[self.dice.bits() as usize % self.old.len()].clone());
        }
        if self.dice.happens(faults.cut) {
            push(now + 1, bytes[..self.dice.bits() as usize % (bytes.len() + 1)].to_vec());
        }
        for _ in 0..1 + u32::from(self.dice.happens(faults.copies)) {
            if !self.dice.happens(faults.loss) {
                let delay = 20_000 + self.dice.exponential(15_000.0) as Nanos;
                push(now + delay, bytes.to_vec());
            }
        }
        if self.old.len() < 64 {
            self.old.push(bytes.to_vec());
        }
    }

    fn say(&mut self, now: Nanos, from: MemberId, end: LinkEnd, message: LinkMessage) {
        let delay = 30_000 + self.dice.exponential(20_000.0) as Nanos;
        let Some(own) = self.machine(from).ends.get_mut(&end) else { return };
        own.last = (now + delay).max(own.last + 1);
        let (at, stream) = (own.last, own.stream);
        let back = LinkEnd { member: from, purpose: end.purpose };
        self.queue.push(at, Event::Message(end.member, back, stream, message));
    }

    fn open(&mut self, now: Nanos, from: MemberId, to: MemberId, purpose: LinkPurpose) {
        self.streams += 1;
        let (there, back) = (LinkEnd { member: to, purpose }, LinkEnd { member: from, purpose });
        self.queue.push(now + 100_000, Event::Opened(to, back, self.streams));
        self.queue.push(now + 100_000 + OPENING, Event::Opened(from, there, self.streams));
    }

    fn close(&mut self, now: Nanos, from: MemberId, end: LinkEnd) {
        let Some(own) = self.machine(from).ends.remove(&end) else { return };
        let back = LinkEnd { member: from, purpose: end.purpose };
        self.queue.push((now + 50_000).max(own.last + 1), Event::Closed(end.member, back, own.stream));
    }

    /// The stream to the parent before ends; children keep theirs.
    fn change_parent(&mut self, now: Nanos, member: MemberId, parent: Option<Seat>) {
        let parent = parent.map(|seat| seat.member);
        if let Some(before) = std::mem::replace(&mut self.machine(member).parent, parent) {
            self.close(now, member, LinkEnd::orders(before));
        }
        if let Some(parent) = parent {
            self.open(now, member, parent, LinkPurpose::Orders);
        }
    }

    /// A parent that will not hear a child any more; its shell tries again.
    fn end(&mut self, now: Nanos, member: MemberId, end: LinkEnd) {
        self.close(now, member, end);
        self.step(now, member, EdgeInput::Closed(end));
        if self.machines[&end.member].parent == Some(member) {
            self.queue.push(now + 20 * MS, Event::Retry(end.member, member));
        }
    }

    /// A shell opens a stream again that it wants and that ended.
    fn reopen(&mut self, now: Nanos, member: MemberId, end: LinkEnd) {
        if end.purpose == LinkPurpose::Control && member != ROOT_MEMBER {
            self.open(now + 5 * MS, member, end.member, end.purpose);
        }
    }
}

impl World {
    fn publish(&mut self, now: Nanos) {
        let number = self.audit.count() + 1;
        let mut payload = number.to_be_bytes().to_vec();
        payload.extend_from_slice(blake3::hash(&payload).as_bytes());
        let root = &mut self.machine(ROOT_MEMBER).node;
        let mut out = Vec::new();
        root.step(now, EdgeInput::Publish(&payload), &mut out);
        let sealed = out.iter().find_map(|effect| match effect {
            EdgeEffect::Datagram(_, bytes) => Some(bytes.clone()),
            _ => None,
        });
        // Until there is a tree, nothing is published.
        let header = sealed.and_then(|bytes| PacketHeader::open(&bytes).ok().map(|(header, _)| header));
        if let Some(header) = header {
            self.audit.published(&payload, header.deadline);
            self.spoof(now, header.epoch, header.sequence);
            self.report(now, number, &mut out);
        }
        out.into_iter().for_each(|effect| self.perform(now, ROOT_MEMBER, effect, None));
        if number < self.setup.payloads {
            self.queue.push(now + MS, Event::Publish);
        }
    }

    /// The venue tells the participants of one gateway what the payload means to them.
    fn report(&mut self, now: Nanos, number: u64, out: &mut Vec<EdgeEffect>) {
        let gateway = GATEWAY + number % u64::from(self.setup.gateways);
        let input = EdgeInput::Report(gateway, number.to_be_bytes().to_vec());
        self.machine(ROOT_MEMBER).node.step(now, input, out);
    }

    /// A stranger asks somebody for packets in the name of a gateway, and with a MAC of another secret.
    fn spoof(&mut self, now: Nanos, epoch: u32, sequence: u64) {
        if self.dice.happens(self.setup.faults.datagrams.forged) {
            let to = self.dice.bits() % u64::from(self.setup.proxies + 1);
            let key = PacketKey::of_epoch(&[8; 32], epoch);
            let request = RewindRequest::seal(epoch, 0, (1, sequence.min(64) as u16), GATEWAY, &key);
            let from = if self.dice.happens(0.5) { address(GATEWAY) } else { address(60_000) };
            self.queue.push(now + 1, Event::Datagram(to, from, request.encode().to_vec()));
        }
    }

    fn make_order(&mut self, now: Nanos, gateway: MemberId) {
        let left = self.left.get_mut(&gateway).expect("a gateway's orders");
        let body = [gateway.to_be_bytes(), left.to_be_bytes()].concat();
        let is_critical = self.dice.happens(0.5);
        let class = if is_critical { OrderClass::Critical } else { OrderClass::Other };
        if self.machines[&gateway].is_alive {
            self.order(now, gateway, NewEdgeOrder { class, body, made: None });
        }
        let left = self.left.get_mut(&gateway).expect("a gateway's orders");
        *left -= 1;
        if *left > 0 {
            let pause = self.dice.exponential(1_000_000.0) as Nanos;
            self.queue.push(now + pause + 1, Event::Order(gateway));
        }
    }

    fn order(&mut self, now: Nanos, gateway: MemberId, order: NewEdgeOrder) {
        let mut out = Vec::new();
        let machine = self.machine(gateway);
        machine.unstamped.push_back(order.body.clone());
        machine.node.step(now, EdgeInput::Order(order), &mut out);
        out.into_iter().for_each(|effect| self.perform(now, gateway, effect, None));
    }

    fn feed_engine(&mut self, now: Nanos) {
        let ready = self.setup.engine.unwrap_or(1 << 20);
        self.step(now, ROOT_MEMBER, EdgeInput::Ready(ready));
        self.queue.push(now + MS, Event::Engine);
    }

    fn die(&mut self, now: Nanos, member: MemberId) {
        if !self.machines[&member].is_alive {
            return;
        }
        let ends: Vec<LinkEnd> = self.machines[&member].ends.keys().copied().collect();
        ends.into_iter().for_each(|end| self.close(now, member, end));
        let counters = *self.machines[&member].node.counters();
        add(&mut self.counters, &counters);
        self.machine(member).is_alive = false;
        if member >= GATEWAY {
            self.audit.died(member);
        }
        self.queue.push(now + AWAY, Event::Revive(member));
    }
}
