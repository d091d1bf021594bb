//! A root that takes the place of another one: without a store, and elected by a real etcd.
//!
//! The test of etcd needs its binary: `WALRAS_ETCD`, or `etcd` on the path. Without it the test says so and ends. It
//! can be built from Go's module `go.etcd.io/etcd/server/v3` (see docs/fairnet.md).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use edge::*;
use fairnet::*;

const SECRET: [u8; 32] = [4; 32];
const GATEWAYS: [MemberId; 2] = [1_000, 1_001];

/// What gateways showed and roots took.
#[derive(Default)]
struct Seen {
    /// By gateway: the last payload.
    shown: BTreeMap<MemberId, Vec<u8>>,
    /// By session of a root: bodies of orders, and whether they were stamped anew.
    taken: BTreeMap<[u8; 10], Vec<(Vec<u8>, bool)>>,
    acknowledged: u64,
    /// Sessions of roots that lead, in their order.
    led: Vec<[u8; 10]>,
}

#[derive(Default)]
struct Watch(Mutex<Seen>, Condvar);

impl Watch {
    fn change(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.0.lock().expect("no panic"));
        self.1.notify_all();
    }

    fn until(&self, is: impl Fn(&Seen) -> bool) {
        drop(self.1.wait_while(self.0.lock().expect("no panic"), |seen| !is(seen)).expect("no panic"));
    }
}

fn any() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

/// Patient in all but the choice of roots.
fn rules() -> EdgeRules {
    const LONG: Nanos = 3_600_000_000_000;
    let rules = EdgeRules::shared_machine();
    let merge = MergeRules { max_wait: LONG, short_wait: LONG, patience: LONG, ..rules.merge };
    let gaps = GapRules { tries: u16::MAX, ..rules.gaps };
    let roster = RosterRules { silence: LONG, ..rules.roster };
    EdgeRules { shape: SeatingShape { layers: Some(1), hedging: 0 }, merge, gaps, roster, resend: 5_000_000, ..rules }
}

struct Running {
    handle: HostHandle,
    thread: JoinHandle<std::io::Result<()>>,
}

impl Running {
    fn start(
        member: MemberId,
        sockets: EdgeSockets,
        root: Option<SocketAddr>,
        of: RootOf,
        watch: Arc<Watch>,
    ) -> Running {
        let (place, mut clock) = (sockets.place().expect("bound"), EdgeClock::system(Some(0)));
        let now = clock.now();
        let node = match member {
            ROOT_MEMBER => EdgeNode::Root(RootNode::new(now, place, of, SECRET, rules())),
            1_000.. => EdgeNode::Gateway(GatewayNode::new(now, member, place, SECRET, rules())),
            _ => EdgeNode::Proxy(ProxyNode::new(now, member, place, SECRET, rules())),
        };
        let station = Station::new(member, SECRET, node, sockets, root, observer(member, of.0, watch));
        let (host, handle) = EdgeHost::new(HostOptions { clock, spin: 0 }, vec![station]).expect("a host");
        Running { handle, thread: std::thread::spawn(move || host.run()) }
    }

    /// Without a word to anybody.
    fn kill(self) {
        drop(self.handle);
        self.thread.join().expect("no panic").expect("sound sockets");
    }
}

/// Session and last epoch of a root before.
type RootOf = ([u8; 10], u32);

fn observer(member: MemberId, session: [u8; 10], watch: Arc<Watch>) -> EdgeObserver {
    Box::new(move |_, effect, _| match effect {
        EdgeEffect::Show(packet) if !packet.payload.is_empty() => {
            watch.change(|seen| drop(seen.shown.insert(member, packet.payload.clone())));
        }
        EdgeEffect::Engine(order) => {
            let taken = (order.item.body.clone(), order.restamped.is_some());
            watch.change(|seen| seen.taken.entry(session).or_default().push(taken));
        }
        EdgeEffect::Acknowledged(_) => watch.change(|seen| seen.acknowledged += 1),
        _ => {}
    })
}

/// A proxy and two gateways that look for the root at an address.
fn members(root: SocketAddr, watch: &Arc<Watch>) -> Vec<Running> {
    let start = |member| {
        let sockets = EdgeSockets::bind(any(), any()).expect("free ports");
        Running::start(member, sockets, Some(root), ([0; 10], 0), watch.clone())
    };
    [1, GATEWAYS[0], GATEWAYS[1]].map(start).into()
}

/// Publishes until every gateway shows what this root has published.
fn publish_until_shown(root: &HostHandle, name: &str, watch: &Watch) {
    let payload = name.as_bytes().to_vec();
    let is_shown = |seen: &Seen| GATEWAYS.iter().all(|gateway| seen.shown.get(gateway) == Some(&payload));
    // What is published before a gateway has a place is not for it.
    while !is_shown(&watch.0.lock().expect("no panic")) {
        root.send(0, EdgeCommand::Publish(payload.clone()));
        std::thread::yield_now();
        drop(root.status(0));
    }
}

fn order(handle: &HostHandle, body: &str) {
    let order = NewEdgeOrder { class: OrderClass::Critical, body: body.into(), made: None };
    handle.send(0, EdgeCommand::Order(order));
}

#[test]
fn members_go_on_with_a_root_that_takes_the_place_of_another_and_no_order_is_lost() {
    let watch = Arc::<Watch>::default();
    let sockets = [(); 2].map(|()| EdgeSockets::bind(any(), any()).expect("free ports"));
    let places = sockets.each_ref().map(|sockets| sockets.place().expect("bound").streams);
    let [first, second] = sockets;
    let first = Running::start(ROOT_MEMBER, first, None, (*b"one       ", 0), watch.clone());
    let members = members(places[0], &watch);
    publish_until_shown(&first.handle, "by the first root", &watch);
    // The engine of the first root takes one order; the others wait there when it dies.
    first.handle.send(0, EdgeCommand::Ready(1));
    for number in 0..10 {
        order(&members[1].handle, &format!("order {number}"));
    }
    watch.until(|seen| seen.acknowledged == 1);
    first.kill();
    let second = Running::start(ROOT_MEMBER, second, None, (*b"two       ", EPOCHS), watch.clone());
    second.handle.send(0, EdgeCommand::Ready(u64::MAX));
    members.iter().for_each(|member| member.handle.send(0, EdgeCommand::Root(places[1])));
    publish_until_shown(&second.handle, "by the second root", &watch);
    watch.until(|seen| seen.acknowledged == 10);
    let seen = watch.0.lock().expect("no panic");
    let expected: Vec<Vec<u8>> = (0..10).map(|number| format!("order {number}").into_bytes()).collect();
    let taken = &seen.taken[b"two       "];
    let mut all: Vec<&Vec<u8>> = taken.iter().map(|(body, _)| body).collect();
    // Copies that waited at the proxy may come before those that are sent again, which then say that they are late.
    let timely: Vec<&Vec<u8>> = taken.iter().filter(|(_, is_late)| !is_late).map(|(body, _)| body).collect();
    assert!(timely.is_sorted(), "{taken:?}");
    all.sort();
    assert_eq!(all, expected[1..].iter().collect::<Vec<_>>(), "each once");
    assert_eq!(seen.taken[b"one       "], [(expected[0].clone(), false)]);
    drop(seen);
    members.into_iter().chain([second]).for_each(Running::kill);
}

/// An etcd that ends with the test.
struct Etcd(Child, String, #[expect(dead_code, reason = "it is removed with it")] tempfile::TempDir);

impl Drop for Etcd {
    fn drop(&mut self) {
        drop((self.0.kill(), self.0.wait()));
    }
}

impl Etcd {
    fn start() -> Option<Etcd> {
        let binary = std::env::var("WALRAS_ETCD").unwrap_or_else(|_| "etcd".into());
        let folder = tempfile::tempdir().expect("a folder");
        let [client, peer] = [(); 2].map(|()| format!("http://{}", sockets::free_address().expect("a port")));
        let mut command = Command::new(binary);
        command.arg("--data-dir").arg(folder.path()).args(["--name", "one", "--initial-cluster"]);
        command.arg(format!("one={peer}")).args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        let etcd = Etcd(child, client, folder);
        // It takes a moment until it answers.
        while etcd.roots().root().is_err() {
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(etcd)
    }

    fn roots(&self) -> EtcdRoots {
        EtcdRoots::new(vec![self.1.clone()], "/walras/edge/test", Duration::from_secs(5))
    }
}

/// A machine that stands for root: it runs one while it leads.
struct Candidate {
    stop: Arc<AtomicBool>,
    root: Arc<Mutex<Option<Running>>>,
    thread: JoinHandle<()>,
}

impl Candidate {
    fn new(roots: EtcdRoots, session: [u8; 10], watch: Arc<Watch>) -> Candidate {
        let (stop, root) = (Arc::new(AtomicBool::new(false)), Arc::<Mutex<Option<Running>>>::default());
        let (stopped, run) = (stop.clone(), root.clone());
        let sockets = EdgeSockets::bind(any(), any()).expect("free ports");
        let place = sockets.place().expect("bound");
        drop(sockets);
        let thread = std::thread::spawn(move || {
            let lead = |epoch| {
                let sockets = EdgeSockets::bind(place.datagrams, place.streams).expect("its own addresses");
                let root = Running::start(ROOT_MEMBER, sockets, None, (session, epoch), watch.clone());
                root.handle.send(0, EdgeCommand::Ready(u64::MAX));
                *run.lock().expect("no panic") = Some(root);
                watch.change(|seen| seen.led.push(session));
                Arc::new(AtomicU32::new(epoch + 10))
            };
            let rest = || {
                let root = run.lock().expect("no panic").take();
                root.into_iter().for_each(Running::kill);
            };
            roots.stand(place.streams, SuccessionRules::default(), &stopped, lead, rest);
        });
        Candidate { stop, root, thread }
    }

    fn handle(&self) -> HostHandle {
        self.root.lock().expect("no panic").as_ref().expect("it leads").handle.clone()
    }

    fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("no panic");
    }
}

#[test]
fn roots_behind_etcd_lead_one_after_the_other_and_members_follow() {
    let Some(etcd) = Etcd::start() else {
        eprintln!("NOT TESTED: there is no etcd. Set WALRAS_ETCD to its binary, or put it on the path");
        return;
    };
    let watch = Arc::<Watch>::default();
    let names = [*b"candidate1", *b"candidate2"];
    let one = Candidate::new(etcd.roots(), names[0], watch.clone());
    watch.until(|seen| seen.led.len() == 1);
    let two = Candidate::new(etcd.roots(), names[1], watch.clone());
    // Members know no root but by etcd: nobody listens at the address that they begin with.
    let members = members(([127, 0, 0, 1], 9).into(), &watch);
    let stop = Arc::new(AtomicBool::new(false));
    let following: Vec<JoinHandle<()>> = members
        .iter()
        .map(|member| {
            let (roots, handle, stop) = (etcd.roots(), member.handle.clone(), stop.clone());
            std::thread::spawn(move || roots.follow(&handle, 1, &stop))
        })
        .collect();
    publish_until_shown(&one.handle(), "by the first root", &watch);
    order(&members[1].handle, "to the first");
    watch.until(|seen| seen.acknowledged == 1);
    assert_eq!(watch.0.lock().expect("no panic").led, [names[0]], "the other one waits");

    one.stop();
    watch.until(|seen| seen.led.len() == 2);
    publish_until_shown(&two.handle(), "by the second root", &watch);
    order(&members[1].handle, "to the second");
    watch.until(|seen| seen.acknowledged == 2);
    {
        let seen = watch.0.lock().expect("no panic");
        assert_eq!((&seen.led[..], &seen.taken[&names[1]][0].0[..]), (&names[..], &b"to the second"[..]));
    }
    // etcd is gone: the root stops leading by its own clock, before anybody else could.
    drop(etcd);
    while two.root.lock().expect("no panic").is_some() {
        std::thread::yield_now();
    }
    stop.store(true, Ordering::Relaxed);
    following.into_iter().for_each(|thread| thread.join().expect("no panic"));
    two.stop();
    members.into_iter().for_each(Running::kill);
}
