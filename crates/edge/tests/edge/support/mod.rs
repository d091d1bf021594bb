//! An edge on loopback, one thread a member, with an audit of everything that comes out.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

use edge::*;
use fairnet::sim::{EdgeAudit, EdgeFaults};
use fairnet::*;
use kernel::DelayLaw;

pub const SECRET: [u8; 32] = [11; 32];
const SESSION: [u8; 10] = *b"0000000001";
/// Gateways' numbers begin here.
pub const GATEWAY: MemberId = 1_000;

/// What all threads report to.
#[derive(Default)]
pub struct Seen {
    pub audit: EdgeAudit,
    /// The last packet of the feed that was recorded.
    sequence: u64,
    /// Orders that each gateway has stamped.
    pub stamped: BTreeMap<MemberId, u64>,
    /// Gateways that have shown a heartbeat or more.
    pub showing: BTreeMap<MemberId, u64>,
    pub acknowledged: BTreeMap<MemberId, u64>,
    /// What the engine has heard of participants.
    pub heard: Vec<FromParticipant>,
}

pub struct Watch {
    seen: Mutex<Seen>,
    changed: Condvar,
}

impl Watch {
    fn change(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.seen.lock().expect("no thread has panicked"));
        self.changed.notify_all();
    }

    /// Waits until something has happened, for as long as it takes.
    pub fn until(&self, mut is: impl FnMut(&mut Seen) -> bool) -> MutexGuard<'_, Seen> {
        let seen = self.seen.lock().expect("no thread has panicked");
        self.changed.wait_while(seen, |seen| !is(seen)).expect("no thread has panicked")
    }
}

struct Running {
    handle: HostHandle,
    thread: JoinHandle<std::io::Result<()>>,
    place: EdgePlace,
    door: Option<SocketAddr>,
}

pub struct Edge {
    pub watch: Arc<Watch>,
    rules: EdgeRules,
    faults: EdgeFaults,
    /// What the first gateway pretends; then nothing is expected of it.
    lie: Option<EdgeLie>,
    /// What doors of gateways take, if there are any; then their participants make all orders.
    doors: Option<DoorLimits>,
    /// By how much clocks are ahead, ns.
    ahead: BTreeMap<MemberId, i64>,
    root: SocketAddr,
    members: BTreeMap<MemberId, Running>,
    published: u64,
}

pub fn body(gateway: MemberId, number: u64) -> Vec<u8> {
    [gateway.to_be_bytes(), number.to_be_bytes()].concat()
}

pub fn payload(number: u64) -> Vec<u8> {
    let head = number.to_be_bytes();
    [&head[..], blake3::hash(&head).as_bytes()].concat()
}

fn any() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

/// Limits under which no scheduler's mood makes a member slow: nobody is skipped.
pub fn patient() -> EdgeRules {
    const SECOND: Nanos = 1_000_000_000;
    let rules = EdgeRules::shared_machine();
    let merge = MergeRules { max_wait: 600 * SECOND, short_wait: 600 * SECOND, patience: 600 * SECOND, ..rules.merge };
    let gaps = GapRules { tries: u16::MAX, ..rules.gaps };
    EdgeRules { shape: SeatingShape { layers: Some(2), hedging: 1 }, merge, gaps, ..rules }
}

impl Edge {
    /// A root, proxies and gateways, all of them in the tree.
    pub fn new(proxies: u64, gateways: u64, rules: EdgeRules, faults: EdgeFaults) -> Edge {
        Edge::with_liar((proxies, gateways), rules, faults, None)
    }

    /// The same, with a first gateway that lies.
    pub fn with_liar(
        (proxies, gateways): (u64, u64),
        rules: EdgeRules,
        faults: EdgeFaults,
        lie: Option<EdgeLie>,
    ) -> Edge {
        Edge::begin((proxies, gateways), Edge { lie, ..Edge::none(rules, faults) })
    }

    /// The same, with doors for participants.
    pub fn with_doors((proxies, gateways): (u64, u64), rules: EdgeRules, doors: DoorLimits) -> Edge {
        Edge::begin((proxies, gateways), Edge { doors: Some(doors), ..Edge::none(rules, EdgeFaults::default()) })
    }

    /// The same, with clocks that are ahead by so much, ns.
    pub fn with_clocks((proxies, gateways): (u64, u64), rules: EdgeRules, ahead: &[(MemberId, i64)]) -> Edge {
        let ahead = ahead.iter().copied().collect();
        Edge::begin((proxies, gateways), Edge { ahead, ..Edge::none(rules, EdgeFaults::default()) })
    }

    fn none(rules: EdgeRules, faults: EdgeFaults) -> Edge {
        let watch = Arc::new(Watch { seen: Mutex::new(Seen::default()), changed: Condvar::new() });
        Edge {
            watch,
            rules,
            faults,
            lie: None,
            doors: None,
            ahead: BTreeMap::new(),
            root: any(),
            members: BTreeMap::new(),
            published: 0,
        }
    }

    fn begin((proxies, gateways): (u64, u64), mut edge: Edge) -> Edge {
        edge.start(ROOT_MEMBER);
        edge.root = edge.members[&ROOT_MEMBER].place.streams;
        (1..=proxies).chain(GATEWAY..GATEWAY + gateways).for_each(|member| edge.start(member));
        edge.until_showing();
        edge
    }

    pub fn gateways(&self) -> Vec<MemberId> {
        let first = GATEWAY + u64::from(self.lie.is_some());
        self.members.range(first..).map(|(member, _)| *member).collect()
    }

    /// Waits until every gateway shows packets.
    pub fn until_showing(&self) {
        let gateways = self.gateways();
        drop(self.watch.until(|seen| gateways.iter().all(|gateway| seen.showing.contains_key(gateway))));
    }

    pub fn start(&mut self, member: MemberId) {
        let sockets = EdgeSockets::bind(any(), any()).expect("free ports");
        let place = sockets.place().expect("bound");
        let ahead = self.ahead.get(&member).copied().unwrap_or(0);
        let mut clock = EdgeClock::system(Some(0)).ahead_by(ahead);
        let lie = self.lie.filter(|_| member == GATEWAY);
        let (now, rules) = (clock.now(), EdgeRules { lie: lie.into(), ..self.rules });
        let node = match member {
            ROOT_MEMBER => EdgeNode::Root(RootNode::new(now, place, (SESSION, 0), SECRET, rules)),
            GATEWAY.. => EdgeNode::Gateway(GatewayNode::new(now, member, place, SECRET, rules)),
            _ => EdgeNode::Proxy(ProxyNode::new(now, member, place, SECRET, rules)),
        };
        let root = (member != ROOT_MEMBER).then_some(self.root);
        let mut station = Station::new(
            member,
            SECRET,
            node,
            sockets,
            root,
            observer(member, self.watch.clone(), lie, self.doors.is_some()),
        );
        let mut door = None;
        if let Some(limits) = self.doors.filter(|_| member >= GATEWAY) {
            let own = ParticipantDoor::bind(any(), limits).expect("a port");
            door = own.address().ok();
            station.serve(own);
        }
        if self.faults.datagrams.loss + self.faults.datagrams.forged > 0.0 && member < GATEWAY {
            let law = DelayLaw::Exponential(300_000.0);
            station.emulate(EmulatedLinks::new(member, law, self.faults.datagrams).into());
        }
        let (host, handle) = EdgeHost::new(HostOptions { clock, spin: 0 }, vec![station]).expect("a host");
        let thread = std::thread::spawn(move || host.run());
        self.members.insert(member, Running { handle, thread, place, door });
    }

    /// Ends a member's thread and closes its sockets, without a word to anybody.
    pub fn kill(&mut self, member: MemberId) {
        let Running { handle, thread, .. } = self.members.remove(&member).expect("a member that runs");
        drop(handle);
        thread.join().expect("no panic").expect("sound sockets");
        self.watch.change(|seen| {
            if member >= GATEWAY {
                seen.audit.died(member);
                seen.showing.remove(&member);
                seen.stamped.remove(&member);
            }
        });
    }

    pub fn send(&self, member: MemberId, command: EdgeCommand) {
        self.members[&member].handle.send(0, command);
    }

    pub fn status(&self, member: MemberId) -> EdgeStatus {
        self.members[&member].handle.status(0).expect("a member that runs")
    }

    pub fn root(&self) -> RootStatus {
        self.status(ROOT_MEMBER).root.expect("the root")
    }

    pub fn place(&self, member: MemberId) -> EdgePlace {
        self.members[&member].place
    }

    /// Where the participants of a gateway connect.
    pub fn door(&self, gateway: MemberId) -> SocketAddr {
        self.members[&gateway].door.expect("a gateway with a door")
    }

    /// The sum of a counter over all members that run.
    pub fn sum(&self, count: fn(&EdgeCounters) -> u64) -> u64 {
        self.members.keys().map(|member| count(&self.status(*member).counters)).sum()
    }

    pub fn publish(&mut self, count: u64) {
        for _ in 0..count {
            self.published += 1;
            self.send(ROOT_MEMBER, EdgeCommand::Publish(payload(self.published)));
        }
    }

    /// The next orders of a gateway.
    pub fn order(&self, gateway: MemberId, numbers: std::ops::Range<u64>) {
        for number in numbers {
            let order = NewEdgeOrder { class: OrderClass::Critical, body: body(gateway, number), made: None };
            self.send(gateway, EdgeCommand::Order(order));
        }
    }

    /// Waits until everybody has shown everything, or something is wrong.
    pub fn until_shown(&self) {
        let (gateways, published) = (self.gateways(), self.published);
        drop(self.watch.until(|seen| {
            let is_shown = |gateway: &MemberId| seen.audit.shown_by(*gateway) == published;
            gateways.iter().all(is_shown) || !seen.audit.violations().is_empty()
        }));
    }

    /// Waits until every order was handed on and acknowledged, or something is wrong.
    pub fn until_taken(&self, orders: usize) {
        drop(self.watch.until(|seen| {
            let acknowledged: u64 = seen.acknowledged.values().sum();
            let is_done = seen.audit.orders() >= orders && acknowledged as usize >= orders;
            is_done || !seen.audit.violations().is_empty()
        }));
    }

    /// Waits until so many orders are in bundles, or something is wrong.
    pub fn until_bundled(&self, orders: usize) {
        drop(self.watch.until(|seen| seen.audit.bundled() >= orders || !seen.audit.violations().is_empty()));
    }

    /// What was wrong.
    pub fn finish(self) -> Vec<String> {
        let gateways = self.gateways();
        let mut seen = self.watch.until(|_| true);
        if self.lie.is_some() {
            seen.audit.died(GATEWAY);
        }
        seen.audit.finish(gateways.into_iter());
        seen.audit.violations().to_vec()
    }

    pub fn violations(&self) -> Vec<String> {
        self.watch.until(|_| true).audit.violations().to_vec()
    }
}

fn observer(member: MemberId, watch: Arc<Watch>, lie: Option<EdgeLie>, has_doors: bool) -> EdgeObserver {
    Box::new(move |now, effect, _| match effect {
        // Whoever lies is evicted again and again: what it is shown has gaps.
        EdgeEffect::Show(_) | EdgeEffect::Lost(..) if lie.is_some() => {}
        EdgeEffect::Stamped(..) | EdgeEffect::Acknowledged(_) if has_doors => {}
        EdgeEffect::Engine(order) if has_doors => {
            watch.change(|seen| seen.heard.extend(FromParticipant::decode(&order.item.body)));
        }
        EdgeEffect::Datagram(_, bytes) if member == ROOT_MEMBER => {
            let Ok((header, payload)) = PacketHeader::open(bytes) else { return };
            watch.change(|seen| {
                if header.sequence > seen.sequence {
                    seen.sequence = header.sequence;
                    seen.audit.sealed(header.sequence, header.deadline);
                    if !payload.is_empty() {
                        seen.audit.published(payload, header.deadline);
                    }
                }
            });
        }
        EdgeEffect::Show(packet) => watch.change(|seen| {
            seen.audit.shown(now, member, packet);
            *seen.showing.entry(member).or_default() += 1;
        }),
        EdgeEffect::Lost(first, count) => watch.change(|seen| seen.audit.lost(member, *first, *count)),
        EdgeEffect::Stamped(_, stamp) => watch.change(|seen| {
            let number = seen.stamped.entry(member).or_default();
            *number += 1;
            seen.audit.made(member, *stamp, &body(member, *number));
        }),
        EdgeEffect::Acknowledged(_) => watch.change(|seen| *seen.acknowledged.entry(member).or_default() += 1),
        EdgeEffect::Bundle(bundle) => watch.change(|seen| seen.audit.closed(bundle)),
        EdgeEffect::Engine(order) => watch.change(|seen| seen.audit.handed_on(order)),
        _ => {}
    })
}
