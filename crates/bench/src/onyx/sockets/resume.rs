//! A proxy and a gateway of an edge on loopback are killed while it trades: how long until everybody else trades.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use edge::{EdgeClock, EdgeCommand, EdgeHost, EdgeObserver, HostHandle, HostOptions};
use fairnet::*;

use super::measure::{GATEWAY, member};

/// Two layers of proxies, and gateways below them.
const PROXIES: u64 = 6;
const GATEWAYS: u64 = 8;
/// Between two packets, and between two orders of each gateway.
const PAUSE: Duration = Duration::from_millis(2);
/// Before the kill, and the longest that is waited after it.
const CALM: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(20);

/// Milliseconds from the kill of both until the last gateway that lives...
#[derive(Clone, Copy, Debug)]
pub struct Resumed {
    /// ... has had an order executed that it made after the kill.
    pub orders_ms: f64,
    /// ... was shown a packet that was published after it.
    pub data_ms: f64,
}

/// What observers saw since the kill.
#[derive(Default)]
struct Since {
    killed: Option<Nanos>,
    ordered: BTreeMap<MemberId, Nanos>,
    shown: BTreeMap<MemberId, Nanos>,
}

fn observer(own: MemberId, since: Arc<Mutex<Since>>) -> EdgeObserver {
    Box::new(move |now, effect, _| {
        let (of, made) = match effect {
            EdgeEffect::Engine(order) => (order.item.participant, order.restamped.unwrap_or(order.key).stamp),
            EdgeEffect::Show(packet) => match packet.payload[..].try_into() {
                Ok(published) => (own, Nanos::from_be_bytes(published)),
                Err(_) => return,
            },
            _ => return,
        };
        let mut since = since.lock().expect("no panic");
        if since.killed.is_some_and(|killed| made > killed) {
            let seen = if own == ROOT_MEMBER { &mut since.ordered } else { &mut since.shown };
            seen.entry(of).or_insert(now);
        }
    })
}

struct Running {
    handle: HostHandle,
    thread: std::thread::JoinHandle<io::Result<()>>,
}

/// Kills a proxy of the first layer and a gateway, each a thread with sockets of its own, while all gateways send
/// orders and market data flows; infinite where something did not resume.
///
/// # Errors
/// If sockets are refused.
pub fn resume() -> io::Result<Resumed> {
    let rules = EdgeRules { shape: SeatingShape { layers: Some(2), hedging: 1 }, ..EdgeRules::shared_machine() };
    let since = Arc::new(Mutex::new(Since::default()));
    let mut clock = EdgeClock::system(Some(0));
    let mut running = BTreeMap::new();
    let mut root = None;
    for number in std::iter::once(ROOT_MEMBER).chain(1..=PROXIES).chain(GATEWAY..GATEWAY + GATEWAYS) {
        let (station, place) = member(number, rules, root, observer(number, since.clone()))?;
        root = root.or(Some(place.streams));
        let (host, handle) = EdgeHost::new(HostOptions { clock, spin: 0 }, vec![station])?;
        running.insert(number, Running { handle, thread: std::thread::spawn(move || host.run()) });
    }
    let status = |running: &BTreeMap<MemberId, Running>| running[&ROOT_MEMBER].handle.status(0)?.root;
    let is_whole =
        |root: edge::RootStatus| root.proxies.len() as u64 == PROXIES && root.gateways.len() as u64 == GATEWAYS;
    while !status(&running).is_some_and(is_whole) {
        std::thread::sleep(Duration::from_millis(20));
    }
    running[&ROOT_MEMBER].handle.send(0, EdgeCommand::Ready(u64::MAX));

    let mut trade = |running: &BTreeMap<MemberId, Running>| {
        let published = clock.now().to_be_bytes().to_vec();
        running[&ROOT_MEMBER].handle.send(0, EdgeCommand::Publish(published));
        for (_, gateway) in running.range(GATEWAY..) {
            let order = NewEdgeOrder { class: OrderClass::Critical, body: vec![7; 64], made: None };
            gateway.handle.send(0, EdgeCommand::Order(order));
        }
        std::thread::sleep(PAUSE);
        clock.now()
    };
    let begun = Instant::now();
    let mut killed = 0;
    while begun.elapsed() < CALM {
        killed = trade(&running);
    }
    since.lock().expect("no panic").killed = Some(killed);
    for number in [1, GATEWAY] {
        let Running { handle, thread } = running.remove(&number).expect("it runs");
        drop(handle);
        drop(thread.join());
    }
    let living: BTreeSet<MemberId> = running.range(GATEWAY..).map(|(number, _)| *number).collect();
    let begun = Instant::now();
    let has_all = |seen: &BTreeMap<MemberId, Nanos>| living.iter().all(|number| seen.contains_key(number));
    let resumed = |since: &Since| has_all(&since.ordered) && has_all(&since.shown);
    while !resumed(&since.lock().expect("no panic")) && begun.elapsed() < PATIENCE {
        trade(&running);
    }
    let since = since.lock().expect("no panic");
    let last = |seen: &BTreeMap<MemberId, Nanos>| {
        let times = living.iter().map(|number| seen.get(number).map(|at| (at - killed) as f64 / 1e6));
        times.map(|time| time.unwrap_or(f64::INFINITY)).fold(0.0, f64::max)
    };
    let found = Resumed { orders_ms: last(&since.ordered), data_ms: last(&since.shown) };
    drop(since);
    for (_, Running { handle, thread }) in running {
        drop(handle);
        drop(thread.join());
    }
    Ok(found)
}
