//! `walras edge proxy` and `walras edge gateway`: members of a venue's edge, each a process.

use std::io::BufRead;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, ensure};
use edge::{
    DoorLimits, EdgeClock, EdgeCommand, EdgeObserver, EdgeSockets, HostHandle, ParticipantDoor, Station, StreamTls,
};
use fairnet::{
    EdgeEffect, EdgeNode, EdgePlace, EdgeRules, GatewayNode, MemberId, Nanos, NewEdgeOrder, ORDER_BYTES_MAX,
    OrderClass, ProxyNode, ShownPacket,
};
use primitives::to_hex;
use protocols::mold::MoldPacket;
use serde_json::json;

use super::strategy::run_strategy;
use super::{Machines, read_secret, start};
use crate::demo::stop_flag;
use client::hexadecimal::hex_bytes;

/// Where no root is: until etcd names one.
const NOBODY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9);
/// How long etcd may take for an answer.
#[cfg(feature = "etcd")]
const ETCD_PATIENCE: Duration = Duration::from_secs(2);
/// How often a process looks whether it shall stop.
const LOOK: Duration = Duration::from_millis(50);

/// What every member needs.
#[derive(clap::Args)]
struct MemberArgs {
    /// Where the venue's root takes streams.
    #[arg(long, required_unless_present = "etcd")]
    root: Option<SocketAddr>,
    /// Find the root by the etcd at this URL, for example http://10.0.0.9:2379, and follow it when another one takes
    /// its place. May be given several times.
    #[arg(long, value_name = "URL")]
    etcd: Vec<String>,
    /// The prefix of the edge's keys there.
    #[arg(long, value_name = "KEY", default_value = "/walras/edge")]
    etcd_prefix: String,
    /// File with the authorities (PEM) that vouch for an etcd at https.
    #[arg(long, value_name = "FILE", requires = "etcd")]
    etcd_ca: Option<PathBuf>,
    /// Certificate (PEM) to show to etcd.
    #[arg(long, value_name = "FILE", requires_all = ["etcd_ca", "etcd_key"])]
    etcd_cert: Option<PathBuf>,
    /// Key (PEM) of the certificate.
    #[arg(long, value_name = "FILE", requires = "etcd_cert")]
    etcd_key: Option<PathBuf>,
    /// User at etcd. Give it over https only.
    #[arg(long, value_name = "NAME", requires_all = ["etcd", "etcd_password_file"])]
    etcd_user: Option<String>,
    /// File whose first line is that user's password.
    #[arg(long, value_name = "FILE", requires = "etcd_user")]
    etcd_password_file: Option<PathBuf>,
    /// File with the venue's secret.
    #[arg(long)]
    secret: PathBuf,
    /// Address for datagrams and streams, one port for each; with port 0 the system chooses.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// What the members of this edge run on; the same for all of them.
    #[arg(long, value_enum, default_value_t = Machines::Own)]
    machines: Machines,
    /// How wrong this machine's clock can be, in nanoseconds; without it no release is called fair.
    #[arg(long)]
    clock_error_ns: Option<u64>,
    /// Encrypt the streams between members; the same for all of them.
    #[arg(long)]
    tls: bool,
}

impl MemberArgs {
    /// Sockets of the n-th member of this process.
    fn sockets(&self, number: u16) -> anyhow::Result<EdgeSockets> {
        let port = self.listen.port();
        let own = |offset: u16| match port {
            0 => Some(0),
            _ => number.checked_mul(2).and_then(|first| port.checked_add(first + offset)),
        };
        let at = |offset| Some(SocketAddr::new(self.listen.ip(), own(offset)?));
        let (datagrams, streams) = at(0).zip(at(1)).context("there are no such ports: choose a lower --listen")?;
        EdgeSockets::bind(datagrams, streams).with_context(|| format!("cannot listen at {datagrams} and {streams}"))
    }
}

/// Runs a proxy of a venue's edge.
#[derive(clap::Args)]
#[command(after_help = "Example:
  walras edge proxy --member 1 --root 10.0.0.1:9400 --secret edge-secret --listen 10.0.0.2:9400")]
pub struct ProxyCommand {
    /// Its number, 1 or above, unique among all members.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    member: u32,
    #[command(flatten)]
    args: MemberArgs,
}

impl ProxyCommand {
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let ProxyCommand { member, args } = self;
        let make =
            |now, member, place, secret, rules| EdgeNode::Proxy(ProxyNode::new(now, member, place, secret, rules));
        let station = station(&args, (member.into(), 0), make, Box::new(|_, _, _| {}))?;
        run(vec![station], &args, None)
    }
}

/// Runs gateways of a venue's edge: each shows the feed to one participant, and sends its orders in.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  walras edge gateway --member 1000 --root 10.0.0.1:9400 --secret edge-secret --feed
  walras edge gateway --member 1000 --root 10.0.0.1:9400 --secret edge-secret --orders < orders.txt
  walras edge gateway --member 1000 --root 10.0.0.1:9400 --secret edge-secret --strategy market_maker.wat
  walras edge gateway --member 1000 --root 10.0.0.1:9400 --secret edge-secret --ouch 127.0.0.1:8071 \
    --feed-to 127.0.0.1:8073
  walras edge gateway --member 1000 --count 10 --root 127.0.0.1:9400 --secret edge-secret --machines shared --sample")]
pub struct GatewayCommand {
    /// Number of the first gateway, unique among all members.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=u32::MAX as i64 - 1_000))]
    member: u32,
    /// Gateways in this process, with successive numbers.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100))]
    count: u16,
    /// Print each packet that the first gateway shows, as a line of JSON.
    #[arg(long)]
    feed: bool,
    /// Read orders from standard input, a line each, and send them through the gateways in turn. A line that begins
    /// with 0x is bytes in hexadecimal: for the batch market, an encoded transaction.
    #[arg(long)]
    orders: bool,
    /// Take a participant's orders at this address as the venue does over OUCH: signed, or plain through `walras
    /// bridge` with this address as its --ouch. The next gateway of this process has the next port.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "orders")]
    ouch: Option<SocketAddr>,
    /// Send what the venue has published to this address when the first gateway shows it: MoldUDP64 packets, for a
    /// continuous market with ITCH. May be given several times.
    #[arg(long, value_name = "ADDRESS")]
    feed_to: Vec<SocketAddr>,
    /// Whether a proxy with TLS is in front of --ouch, or its network is private: otherwise it is on loopback.
    #[arg(long, requires = "ouch")]
    behind_proxy: bool,
    /// Run a sample strategy at each gateway: it answers each packet with one order.
    #[arg(long, conflicts_with = "orders")]
    sample: bool,
    /// Run this strategy at each gateway: a WebAssembly module, binary or as text, that is called with each packet.
    #[arg(long, conflicts_with_all = ["orders", "sample"])]
    strategy: Option<PathBuf>,
    #[command(flatten)]
    args: MemberArgs,
}

impl GatewayCommand {
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let GatewayCommand { member, count, feed, orders, ouch, feed_to, behind_proxy, sample, strategy, args } = self;
        let is_exposed = ouch.is_some_and(|at| !at.ip().is_loopback()) && !behind_proxy;
        ensure!(!is_exposed, "--ouch: OUCH has no TLS, so it listens on loopback, or with --behind-proxy");
        let module =
            strategy.map(|path| std::fs::read(&path).with_context(|| path.display().to_string())).transpose()?;
        let make =
            |now, member, place, secret, rules| EdgeNode::Gateway(GatewayNode::new(now, member, place, secret, rules));
        let stations = (0..count).map(|number| {
            let own = MemberId::from(member) + MemberId::from(number);
            let observer = participant(feed && number == 0, sample);
            let observer = match &module {
                Some(module) => run_strategy(module, own, observer).context("--strategy")?,
                None => observer,
            };
            let mut station = station(&args, (own, number), make, observer)?;
            if let Some(address) = ouch {
                station.serve(participants(address, number)?);
            }
            if number == 0 {
                station.show_to(feed_to.clone());
            }
            Ok(station)
        });
        run(stations.collect::<anyhow::Result<_>>()?, &args, orders.then_some(count))
    }
}

/// The door of the n-th gateway of this process.
fn participants(first: SocketAddr, number: u16) -> anyhow::Result<ParticipantDoor> {
    let port = match first.port() {
        0 => 0,
        port => port.checked_add(number).context("there is no such port: choose a lower --ouch")?,
    };
    let at = SocketAddr::new(first.ip(), port);
    let door =
        ParticipantDoor::bind(at, DoorLimits::default()).with_context(|| format!("--ouch: cannot listen on {at}"))?;
    println!("OUCH on {}", door.address()?);
    Ok(door)
}

/// What the participant at a gateway does.
fn participant(is_printing: bool, is_sample: bool) -> EdgeObserver {
    Box::new(move |_, effect, commands| {
        let EdgeEffect::Show(packet) = effect else { return };
        if packet.payload.is_empty() {
            return;
        }
        if is_printing {
            println!("{}", shown(packet));
        }
        if is_sample {
            let body = format!("quote upon {}", packet.sequence).into_bytes();
            commands.push(EdgeCommand::Order(NewEdgeOrder { class: OrderClass::Critical, body, made: None }));
        }
    })
}

/// A packet as a line of JSON: messages as text where they are, otherwise in hexadecimal.
fn shown(packet: &ShownPacket) -> serde_json::Value {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap_or_else(|_| format!("0x{}", to_hex(bytes)));
    let decoded = MoldPacket::decode(&packet.payload);
    let messages = match &decoded {
        Ok(packet) => packet.messages.iter().map(|message| text(message)).collect(),
        Err(_) => vec![text(&packet.payload)],
    };
    json!({
        "sequence": packet.sequence,
        "deadline_ns": packet.deadline.to_string(),
        "unfair": packet.unfair.map(|why| format!("{why:?}")),
        "messages": messages,
    })
}

/// Orders that are sent before it is asked again whether there is room.
const TOGETHER: usize = 256;
/// Orders without acknowledgement at which reading stops. With those above still far below what a gateway refuses.
const UNACKNOWLEDGED: usize = 1_024;
/// Streams of a gateway that takes part: to the root and to its parent.
const STREAMS: usize = 2;

/// Sends each line of standard input as an order, through the gateways in turn, as fast as the root takes them.
fn read_orders(handle: &HostHandle, count: usize) -> anyhow::Result<()> {
    for (number, line) in std::io::stdin().lock().lines().enumerate() {
        let body = order_body(line.context("standard input")?)?;
        ensure!(body.len() <= ORDER_BYTES_MAX, "an order of {} bytes: at most {ORDER_BYTES_MAX} are taken", body.len());
        if number.is_multiple_of(TOGETHER) {
            (0..count).try_for_each(|gateway| wait_for_room(handle, gateway))?;
        }
        handle.send(number % count, EdgeCommand::Order(NewEdgeOrder { class: OrderClass::Critical, body, made: None }));
    }
    Ok(())
}

fn order_body(line: String) -> anyhow::Result<Vec<u8>> {
    match line.starts_with("0x") {
        true => hex_bytes(&line).with_context(|| format!("standard input: {line} is no even number of digits")),
        false => Ok(line.into_bytes()),
    }
}

fn wait_for_room(handle: &HostHandle, gateway: usize) -> anyhow::Result<()> {
    loop {
        let status = handle.status(gateway).context("the gateway has ended")?;
        if status.streams >= STREAMS && status.unacknowledged < UNACKNOWLEDGED {
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
}

fn station(
    args: &MemberArgs,
    (member, number): (MemberId, u16),
    make: impl Fn(Nanos, MemberId, EdgePlace, [u8; 32], EdgeRules) -> EdgeNode,
    observer: EdgeObserver,
) -> anyhow::Result<Station> {
    let (secret, sockets) = (read_secret(&args.secret)?, args.sockets(number)?);
    let (place, now) = (sockets.place()?, EdgeClock::system(None).now());
    let node = make(now, member, place, secret, args.machines.rules());
    let root = args.root.unwrap_or(NOBODY);
    let mut station = Station::new(member, secret, node, sockets, Some(root), observer);
    if args.tls {
        station.encrypt(StreamTls::of_secret(&secret).context("--tls")?);
    }
    Ok(station)
}

/// The roots at etcd, with what it asks for.
#[cfg(feature = "etcd")]
fn roots(args: &MemberArgs) -> anyhow::Result<edge::EtcdRoots> {
    let mut roots = edge::EtcdRoots::new(args.etcd.clone(), &args.etcd_prefix, ETCD_PATIENCE);
    if let Some(authorities) = &args.etcd_ca {
        roots = roots.with_tls(authorities, args.etcd_cert.as_deref().zip(args.etcd_key.as_deref()))?;
    }
    let Some((user, file)) = args.etcd_user.as_ref().zip(args.etcd_password_file.as_ref()) else { return Ok(roots) };
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let password = text.lines().next().filter(|line| !line.is_empty());
    let password = password.with_context(|| format!("{}: its first line has no password", file.display()))?.to_string();
    Ok(roots.with_login(edge::EtcdLogin { user: user.clone(), password }))
}

/// Tells the members where the root is, in a thread of its own, if etcd is to be asked.
#[cfg(feature = "etcd")]
fn follow(args: &MemberArgs, handle: &HostHandle, stations: usize) -> anyhow::Result<()> {
    if args.etcd.is_empty() {
        return Ok(());
    }
    let roots = roots(args)?;
    let handle = handle.clone();
    // It ends with the process.
    let never = std::sync::atomic::AtomicBool::new(false);
    std::thread::Builder::new().name("etcd".into()).spawn(move || roots.follow(&handle, stations, &never))?;
    Ok(())
}

#[cfg(not(feature = "etcd"))]
fn follow(args: &MemberArgs, _: &HostHandle, _: usize) -> anyhow::Result<()> {
    ensure!(args.etcd.is_empty(), "--etcd: this binary was built without the feature `etcd`");
    Ok(())
}

/// Runs until a signal, or the end of standard input if orders are read from it and all of them are acknowledged.
fn run(stations: Vec<Station>, args: &MemberArgs, orders: Option<u16>) -> anyhow::Result<ExitCode> {
    let (stopped, count) = (stop_flag()?, stations.len());
    let handle = start(stations, args.machines, args.clock_error_ns)?;
    follow(args, &handle, count)?;
    // The end of a pipe tells whoever started this process that it runs.
    let of = args.root.map_or_else(|| format!("{} at etcd", args.etcd_prefix), |root| root.to_string());
    eprintln!("joining the edge of {of}");
    let gateways = orders.map_or(0, usize::from);
    let reading = orders.map(|_| {
        let handle = handle.clone();
        std::thread::spawn(move || read_orders(&handle, gateways))
    });
    // Also when nobody reads what it prints: others need it.
    while !stopped.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK);
        if reading.as_ref().is_some_and(std::thread::JoinHandle::is_finished) {
            break;
        }
    }
    match reading.filter(std::thread::JoinHandle::is_finished) {
        Some(reading) => reading.join().unwrap_or(Ok(()))?,
        None => return Ok(ExitCode::SUCCESS),
    }
    // What was read is on its way until the root has it.
    let is_waiting = |gateway| handle.status(gateway).is_some_and(|status| status.unacknowledged > 0);
    while !stopped.load(Ordering::Relaxed) && (0..gateways).any(is_waiting) {
        std::thread::sleep(LOOK);
    }
    Ok(ExitCode::SUCCESS)
}
