//! What is measured on loopback: a proxy against the raw loop, a release to a hundred receivers, a tree against direct
//! sends, and whole edges on emulated links.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use edge::{
    DatagramSocket, EdgeClock, EdgeCommand, EdgeHost, EdgeObserver, EdgeSockets, EmulatedLinks, HostOptions, Station,
};
use fairnet::*;
use kernel::{DatagramFaults, DelayLaw};

const SECRET: [u8; 32] = [5; 32];
const SESSION: [u8; 10] = *b"0000000001";
/// Bytes of a datagram, and children of the proxy: the paper's.
pub const DATAGRAM: usize = 466;
pub const CHILDREN: u64 = 10;
/// The first gateway's number.
pub const GATEWAY: MemberId = 1_000;

fn any() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

/// Sockets that nobody but the measurement reads.
struct Children(Vec<DatagramSocket>);

impl Children {
    fn new(count: u64) -> io::Result<Children> {
        Ok(Children((0..count).map(|_| DatagramSocket::bind(any())).collect::<io::Result<_>>()?))
    }

    fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.0.iter().map(DatagramSocket::address).collect()
    }

    /// Reads everything; how many datagrams that were.
    fn drain(&mut self) -> io::Result<usize> {
        let mut count = 0;
        for child in &mut self.0 {
            loop {
                match child.receive()? {
                    0 => break,
                    received => count += received,
                }
            }
        }
        Ok(count)
    }
}

fn seat(member: MemberId, datagrams: SocketAddr) -> Seat {
    Seat { member, place: EdgePlace { datagrams, streams: datagrams } }
}

/// A proxy that works by a tree of one proxy and these children.
fn proxy(own: SocketAddr, children: &[SocketAddr]) -> ProxyNode {
    let gateways: Vec<Seat> = (GATEWAY..).zip(children).map(|(member, at)| seat(member, *at)).collect();
    let shape = SeatingShape { layers: Some(1), hedging: 0 };
    let seating =
        Seating::new(1, shape, seat(ROOT_MEMBER, own), &[seat(1, own)], &gateways).expect("a tree of one proxy");
    let mut proxy = ProxyNode::new(0, 1, seat(1, own).place, SECRET, EdgeRules::default());
    let message = LinkMessage::Configure(Box::new(seating), SESSION);
    proxy.step(0, EdgeInput::Message(LinkEnd::control(ROOT_MEMBER), message), &mut Vec::new());
    proxy
}

fn sealed(sequence: u64, key: &PacketKey) -> Arc<[u8]> {
    let header = PacketHeader { epoch: 1, session: SESSION, tree: 0, sequence, deadline: 0, sent: 0, is_unfair: false };
    let mut bytes = Vec::with_capacity(DATAGRAM);
    header.seal(key, &[0x55; DATAGRAM - ENVELOPE_BYTES], &mut bytes);
    bytes.into()
}

/// Datagrams a second that left: by the raw loop, and by a proxy with its MAC.
#[derive(Clone, Copy, Debug)]
pub struct ProxyRate {
    /// Packets that were waiting each time.
    pub batch: usize,
    /// `recvmmsg`, `sendmmsg` (or segmented messages) and nothing else.
    pub raw: f64,
    /// With the node between them.
    pub proxy: f64,
}

/// Alternates the raw loop and a proxy over the same sockets, `rounds` times each; medians. Only the turn is timed:
/// filling its socket and draining the children are not.
///
/// # Errors
/// If sockets are refused.
pub fn proxy_rate(batch: usize, rounds: usize) -> io::Result<ProxyRate> {
    let (mut children, mut own, mut feeder) =
        (Children::new(CHILDREN)?, DatagramSocket::bind(any())?, DatagramSocket::bind(any())?);
    let (addresses, to) = (children.addresses()?, own.address()?);
    let mut proxy = proxy(to, &addresses);
    let key = PacketKey::of_epoch(&SECRET, 1);
    let (mut effects, mut times, mut sequence) = (Vec::new(), [Vec::new(), Vec::new()], 0);
    for round in 0..2 * rounds {
        for _ in 0..batch {
            sequence += 1;
            feeder.send(to, sealed(sequence, &key));
        }
        feeder.flush();
        let is_raw = round % 2 == 0;
        let begun = Instant::now();
        let count = own.receive()?;
        for number in 0..count {
            if is_raw {
                addresses.iter().for_each(|to| own.forward(*to, number));
                continue;
            }
            let (from, bytes) = own.datagram(number);
            proxy.step(sequence, EdgeInput::Datagram(from, bytes), &mut effects);
            for effect in effects.drain(..) {
                if let EdgeEffect::Forward(to) = effect {
                    own.forward(to, number);
                }
            }
        }
        own.flush();
        let taken = begun.elapsed().as_secs_f64();
        times[usize::from(!is_raw)].push((count as u64 * CHILDREN) as f64 / taken);
        children.drain()?;
    }
    let [raw, proxy] = times.map(|times| fairnet::sim::Spread::new(times).at(0.5));
    Ok(ProxyRate { batch, raw, proxy })
}

/// A cache line.
type Line = [u64; 8];

/// Nanoseconds from the first to the last of `receivers` writes: of a plain loop, and of a hold that releases one
/// packet to each. Medians over `rounds`.
pub fn release_span(receivers: usize, rounds: usize) -> (f64, f64) {
    let mut lines: Vec<Line> = vec![[0; 8]; receivers];
    let mut hold: Hold<Line> = Hold::new(0, HoldRules::default(), ClockState { error_bound: Some(100) });
    let (mut plain, mut released, mut out) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds as u64 {
        let item: Line = std::array::from_fn(|word| round + word as u64);
        let begun = Instant::now();
        std::hint::black_box(&mut lines).iter_mut().for_each(|line| *line = item);
        std::hint::black_box(&lines);
        plain.push(begun.elapsed().as_nanos() as f64);
        let deadline = 1_000_000 * (round + 1);
        for receiver in 0..receivers as u32 {
            let key = HoldKey { deadline, tree: 0, sequence: round + 1, receiver };
            hold.step(deadline - 1, HoldInput::Packet(key, item, false), &mut out);
        }
        hold.step(deadline, HoldInput::Tick, &mut out);
        let begun = Instant::now();
        let receivers = std::hint::black_box(&mut lines);
        for shown in out.drain(..) {
            receivers[shown.key.receiver as usize] = shown.item;
        }
        std::hint::black_box(&lines);
        released.push(begun.elapsed().as_nanos() as f64);
    }
    let median = |samples| fairnet::sim::Spread::new(samples).at(0.5);
    (median(plain), median(released))
}

/// Microseconds until the last of 100 receivers has a packet: sent directly, and through ten proxies of this machine.
/// Each by one thread, so work adds up as it does on one core.
///
/// # Errors
/// If sockets are refused.
pub fn direct_and_tree(rounds: usize) -> io::Result<[Vec<f64>; 2]> {
    let (mut children, mut root) = (Children::new(100)?, DatagramSocket::bind(any())?);
    let addresses = children.addresses()?;
    let mut proxies = Vec::new();
    for part in addresses.chunks(10) {
        let socket = DatagramSocket::bind(any())?;
        proxies.push((proxy(socket.address()?, part), socket));
    }
    let key = PacketKey::of_epoch(&SECRET, 1);
    let (mut found, mut effects) = ([Vec::new(), Vec::new()], Vec::new());
    for sequence in 1..=rounds as u64 {
        let bytes = sealed(sequence, &key);
        let begun = Instant::now();
        addresses.iter().for_each(|to| root.send(*to, bytes.clone()));
        root.flush();
        found[0].push(begun.elapsed().as_secs_f64() * 1e6);
        children.drain()?;
        let begun = Instant::now();
        for (_, socket) in &proxies {
            root.send(socket.address()?, bytes.clone());
        }
        root.flush();
        for (proxy, socket) in &mut proxies {
            relay(sequence, proxy, socket, &mut effects)?;
        }
        found[1].push(begun.elapsed().as_secs_f64() * 1e6);
        children.drain()?;
    }
    Ok(found)
}

fn relay(
    now: Nanos,
    proxy: &mut ProxyNode,
    socket: &mut DatagramSocket,
    effects: &mut Vec<EdgeEffect>,
) -> io::Result<()> {
    for number in 0..socket.receive()? {
        let (from, bytes) = socket.datagram(number);
        proxy.step(now, EdgeInput::Datagram(from, bytes), effects);
        for effect in effects.drain(..) {
            if let EdgeEffect::Forward(to) = effect {
                socket.forward(to, number);
            }
        }
    }
    socket.flush();
    Ok(())
}

/// An edge on emulated links, in two threads of this process.
#[derive(Clone, Copy, Debug)]
pub struct EmulatedEdge {
    /// Proxies, all in one layer; none for a tree of depth 1.
    pub proxies: u64,
    /// Gateways.
    pub gateways: u64,
    /// Hedging factor.
    pub hedging: u32,
    /// Law of each link, ns.
    pub law: DelayLaw,
    /// Packets, and the time between two of them.
    pub packets: u64,
    pub pause: Duration,
    /// Seed of the links.
    pub seed: u64,
}

const MS: Nanos = 1_000_000;

/// Limits under which nothing but the links matters.
fn rules(hedging: u32) -> EdgeRules {
    let rules = EdgeRules::shared_machine();
    let gaps = GapRules { reorder: 500 * MS, round_trip: 500 * MS, ..rules.gaps };
    let deadlines = DeadlineRules { ceiling: 400 * MS, ..rules.deadlines };
    // No heartbeat comes between two packets: each packet is a sample of its own. What members say otherwise is little.
    let roster = RosterRules { silence: 20_000 * MS, ..rules.roster };
    EdgeRules {
        shape: SeatingShape { layers: Some(1), hedging },
        gaps,
        deadlines,
        heartbeat: 2_000 * MS,
        watermark: 500 * MS,
        beat: 500 * MS,
        roster,
        sample: 1,
        children: 256,
        ..rules
    }
}

/// A member with sockets of its own, and where it is.
///
/// # Errors
/// If sockets are refused.
pub fn member(
    member: MemberId,
    rules: EdgeRules,
    root: Option<SocketAddr>,
    observer: EdgeObserver,
) -> io::Result<(Station, EdgePlace)> {
    let sockets = EdgeSockets::bind(any(), any())?;
    let (place, now) = (sockets.place()?, EdgeClock::system(None).now());
    let node = match member {
        ROOT_MEMBER => EdgeNode::Root(RootNode::new(now, place, (SESSION, 0), SECRET, rules)),
        GATEWAY.. => EdgeNode::Gateway(GatewayNode::new(now, member, place, SECRET, rules)),
        _ => EdgeNode::Proxy(ProxyNode::new(now, member, place, SECRET, rules)),
    };
    Ok((Station::new(member, SECRET, node, sockets, root, observer), place))
}

impl EmulatedEdge {
    /// Sends the packets and returns the latency to the last gateway of each, in microseconds.
    ///
    /// # Errors
    /// If sockets are refused.
    pub fn run(&self) -> io::Result<Vec<f64>> {
        let rules = rules(self.hedging);
        let links = |member| EmulatedLinks::new(self.seed ^ member, self.law, DatagramFaults::NONE);
        let (mut root, place) = member(ROOT_MEMBER, rules, None, Box::new(|_, _, _| {}))?;
        root.emulate(links(ROOT_MEMBER).into());
        let mut others = Vec::new();
        for number in (1..=self.proxies).chain(GATEWAY..GATEWAY + self.gateways) {
            let (mut station, _) = member(number, rules, Some(place.streams), Box::new(|_, _, _| {}))?;
            if number < GATEWAY {
                station.emulate(links(number).into());
            }
            others.push(station);
        }
        let options = HostOptions { clock: EdgeClock::system(Some(0)), spin: 0 };
        let (root_host, root) = EdgeHost::new(options, vec![root])?;
        let (other_host, others) = EdgeHost::new(options, others)?;
        let threads = [root_host, other_host].map(|host| std::thread::spawn(move || host.run()));
        let ready = |root: &edge::RootStatus| {
            let members: u64 = root.widths.iter().skip(1).map(|width| u64::from(*width)).sum();
            members == self.proxies + self.gateways
        };
        while !root.status(0).and_then(|status| status.root).is_some_and(|root| ready(&root)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        for _ in 0..self.packets {
            root.send(0, EdgeCommand::Publish(vec![1; DATAGRAM - ENVELOPE_BYTES]));
            std::thread::sleep(self.pause);
        }
        std::thread::sleep(Duration::from_secs(1));
        let measured = root.status(0).and_then(|status| status.root);
        drop((root, others));
        threads.into_iter().for_each(|thread| drop(thread.join()));
        let delays = measured.ok_or_else(|| io::Error::other("the root of the emulated edge has ended"))?.delays;
        Ok(delays.into_iter().map(|delay| delay as f64 / 1e3).collect())
    }
}
