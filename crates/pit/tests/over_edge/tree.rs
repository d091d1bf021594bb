//! Two proxies and two gateways, a thread each, and what their shells see.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use edge::{
    EdgeClock, EdgeHost, EdgeObserver, EdgeSockets, HostHandle, HostOptions, ParticipantDoor, Station, StreamTls,
};
use fairnet::*;

use crate::chain::SECRET;
use crate::relay::{Gate, relay};

pub const GATEWAYS: [MemberId; 2] = [1_000, 1_001];
const PROXIES: [MemberId; 2] = [1, 2];

/// Limits under which no scheduler's mood makes a member slow: nobody is skipped or evicted.
pub fn patient() -> EdgeRules {
    const LONG: Nanos = 3_600_000_000_000;
    let rules = EdgeRules::shared_machine();
    let merge = MergeRules { max_wait: LONG, short_wait: LONG, patience: LONG, ..rules.merge };
    let gaps = GapRules { tries: u16::MAX, ..rules.gaps };
    let roster = RosterRules { silence: LONG, ..rules.roster };
    EdgeRules { shape: SeatingShape { layers: Some(1), hedging: 1 }, merge, gaps, roster, ..rules }
}

/// A packet that a gateway showed.
#[derive(Debug)]
pub struct ShownAt {
    /// Which of those of its gateway, from 1.
    pub number: usize,
    pub sequence: u64,
    pub deadline: Nanos,
    pub at: Nanos,
    pub payload: Vec<u8>,
}

/// What shells saw.
#[derive(Default)]
pub struct Seen {
    shown: BTreeMap<MemberId, Vec<ShownAt>>,
    /// Heartbeats and packets that each gateway showed.
    showing: BTreeMap<MemberId, u64>,
    /// How many packets were shown before each report.
    reports: BTreeMap<MemberId, Vec<(usize, Vec<u8>)>>,
    parents: BTreeMap<MemberId, MemberId>,
    /// New orders of participants that a member sent up, by stamp.
    entered: BTreeMap<MemberId, Vec<Nanos>>,
    epoch: u32,
}

impl Seen {
    pub fn shown(&self, gateway: MemberId) -> impl Iterator<Item = &ShownAt> {
        self.shown.get(&gateway).into_iter().flatten()
    }

    /// Packets and heartbeats that a gateway has shown.
    pub fn beats(&self, gateway: MemberId) -> u64 {
        self.showing.get(&gateway).copied().unwrap_or(0)
    }

    /// Stamps of the new orders that a member has sent up.
    pub fn entered(&self, member: MemberId) -> &[Nanos] {
        self.entered.get(&member).map_or(&[], Vec::as_slice)
    }

    /// How many packets were shown before the first report of a message of OUCH.
    pub fn first_report(&self, gateway: MemberId, kind: u8) -> Option<usize> {
        let is_of = |bytes: &Vec<u8>| messages(bytes).any(|message| message.first() == Some(&kind));
        self.reports.get(&gateway)?.iter().find(|(_, bytes)| is_of(bytes)).map(|(shown, _)| *shown)
    }
}

/// The sequenced messages in bytes for a participant.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        loop {
            let (length, rest) = bytes.split_first_chunk::<2>()?;
            let (packet, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
            bytes = rest;
            if let Some((b'S', message)) = packet.split_first() {
                return Some(message);
            }
        }
    })
}

struct Watch {
    seen: Mutex<Seen>,
    changed: Condvar,
}

impl Watch {
    fn change(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.seen.lock().expect("no panic"));
        self.changed.notify_all();
    }
}

pub struct Tree {
    watch: Arc<Watch>,
    members: BTreeMap<MemberId, (HostHandle, JoinHandle<std::io::Result<()>>)>,
    doors: Vec<SocketAddr>,
    gate: Arc<Gate>,
}

impl Tree {
    /// Starts all members, and waits until each gateway shows packets of a tree with all of them.
    pub fn new(root: SocketAddr, rules: EdgeRules, feed_to: SocketAddr) -> Tree {
        let watch = Arc::new(Watch { seen: Mutex::default(), changed: Condvar::new() });
        let mut tree = Tree { watch, members: BTreeMap::new(), doors: Vec::new(), gate: Arc::default() };
        PROXIES.iter().chain(&GATEWAYS).for_each(|member| tree.start(*member, root, rules, feed_to));
        tree.until(|seen| {
            let all = GATEWAYS.map(|gateway| seen.parents.get(&gateway));
            all[0] != all[1]
                && all.iter().all(Option::is_some)
                && GATEWAYS.iter().all(|of| seen.showing.contains_key(of))
        });
        tree
    }

    fn start(&mut self, member: MemberId, root: SocketAddr, rules: EdgeRules, feed_to: SocketAddr) {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let sockets = EdgeSockets::bind(any, any).expect("free ports");
        let mut place = sockets.place().expect("bound");
        let mut clock = EdgeClock::system(Some(0));
        let now = clock.now();
        let node = match member {
            1_000.. => EdgeNode::Gateway(GatewayNode::new(now, member, place, SECRET, rules)),
            _ => {
                place.streams = relay(place.streams, member, self.gate.clone());
                EdgeNode::Proxy(ProxyNode::new(now, member, place, SECRET, rules))
            }
        };
        let mut station = Station::new(member, SECRET, node, sockets, Some(root), observer(member, self.watch.clone()));
        station.encrypt(StreamTls::of_secret(&SECRET).expect("TLS"));
        if member >= GATEWAYS[0] {
            let door = ParticipantDoor::bind(any, edge::DoorLimits::default()).expect("a port");
            self.doors.push(door.address().expect("bound"));
            station.serve(door);
            station.show_to(if member == GATEWAYS[0] { vec![feed_to] } else { Vec::new() });
        }
        let (host, handle) = EdgeHost::new(HostOptions { clock, spin: 0 }, vec![station]).expect("a host");
        self.members.insert(member, (handle, std::thread::spawn(move || host.run())));
    }

    /// Where the participant of a gateway connects.
    pub fn door(&self, gateway: usize) -> SocketAddr {
        self.doors[gateway]
    }

    /// Holds what a gateway sends to its parent.
    pub fn hold(&self, gateway: MemberId) {
        self.gate.set(self.with(|seen| seen.parents.get(&gateway).copied()));
    }

    pub fn release(&self) {
        self.gate.set(None);
    }

    /// Ends a member without a word.
    pub fn kill(&mut self, member: MemberId) {
        let (handle, thread) = self.members.remove(&member).expect("it runs");
        drop(handle);
        thread.join().expect("no panic").expect("sound sockets");
    }

    pub fn with<T>(&self, with: impl FnOnce(&Seen) -> T) -> T {
        with(&self.watch.seen.lock().expect("no panic"))
    }

    /// Waits until something was seen, for as long as it takes.
    pub fn until(&self, is: impl Fn(&Seen) -> bool) {
        let seen = self.watch.seen.lock().expect("no panic");
        drop(self.watch.changed.wait_while(seen, |seen| !is(seen)).expect("no panic"));
    }

    /// The proxy that a gateway sends its orders to.
    pub fn parent(&self, gateway: MemberId) -> MemberId {
        self.with(|seen| seen.parents[&gateway])
    }
}

fn observer(member: MemberId, watch: Arc<Watch>) -> EdgeObserver {
    Box::new(move |now, effect, _| match effect {
        EdgeEffect::Parent(Some(seat)) => watch.change(|seen| {
            seen.parents.insert(member, seat.member);
        }),
        EdgeEffect::Epoch(epoch) => watch.change(|seen| seen.epoch = seen.epoch.max(*epoch)),
        EdgeEffect::Show(packet) => watch.change(|seen| {
            *seen.showing.entry(member).or_default() += 1;
            if !packet.payload.is_empty() {
                let shown = seen.shown.entry(member).or_default();
                let ShownPacket { sequence, deadline, payload, .. } = (**packet).clone();
                shown.push(ShownAt { number: shown.len() + 1, sequence, deadline, at: now, payload });
            }
        }),
        EdgeEffect::Report(report) => watch.change(|seen| {
            let shown = seen.shown.get(&member).map_or(0, Vec::len);
            let bytes = ToParticipant::decode(report).and_then(|told| told.bytes).unwrap_or_default();
            seen.reports.entry(member).or_default().push((shown, bytes));
        }),
        EdgeEffect::Message(_, LinkMessage::Order(order)) => {
            let said = FromParticipant::decode(&order.item.body).map(|said| said.what);
            // An unsequenced packet with a new order.
            if matches!(said, Some(ParticipantEvent::Packet(packet)) if packet.starts_with(b"UO")) {
                let stamp = order.restamped.unwrap_or(order.key).stamp;
                watch.change(|seen| seen.entered.entry(member).or_default().push(stamp));
            }
        }
        _ => {}
    })
}
