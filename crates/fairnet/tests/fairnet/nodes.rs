//! Root, proxies and gateways as a whole, in the simulator, under seeded faults.

use fairnet::sim::{EdgeFaults, EdgeReport, EdgeSetup, run_edge};
use fairnet::*;
use kernel::DatagramFaults;

fn setup(seed: u64, faults: EdgeFaults) -> EdgeSetup {
    let rules = EdgeRules { shape: SeatingShape { layers: Some(2), hedging: 1 }, ..EdgeSetup::rules() };
    EdgeSetup { seed, proxies: 6, gateways: 12, payloads: 600, orders: 200, engine: None, faults, rules, lie: None }
}

fn check(setup: &EdgeSetup) -> EdgeReport {
    let report = run_edge(setup);
    assert_eq!(report.violations, Vec::<String>::new(), "seed {}", setup.seed);
    report
}

const CALM: EdgeFaults = EdgeFaults { datagrams: DatagramFaults::NONE, proxy_deaths: 0, gateway_deaths: 0 };

/// Seeds in which two children lock each other out if what a sequencer holds back uses up their credit: each waits for
/// orders that the other may not send.
#[test]
fn edge_orders_of_two_classes_do_not_lock_each_other_out() {
    for seed in [51, 228] {
        let report = run_edge(&EdgeSetup::drawn(seed));
        assert_eq!(report.violations, Vec::<String>::new(), "seed {seed}");
    }
}

#[test]
fn nodes_without_faults_show_everything_fairly_and_restamp_nothing() {
    let report = check(&setup(1, CALM));
    let count = |name| report.count(name);
    assert_eq!((count("shown"), count("restamped"), count("skips")), (7_200, 0, 0));
    // Deadlines cover 95 % of each gateway's delays.
    assert!(count("unfair") * 20 < count("shown"), "{} late", count("unfair"));
    assert_eq!(count("misplaced") + count("forged") + count("orders_refused") + count("orders_resent"), 0);
}

#[test]
fn nodes_refuse_forged_replayed_and_cut_datagrams_and_recover_losses() {
    let faults = EdgeFaults {
        datagrams: DatagramFaults { loss: 0.05, copies: 0.05, forged: 0.2, replayed: 0.1, cut: 0.05 },
        ..CALM
    };
    for seed in 1..=2 {
        let report = check(&setup(seed, faults));
        for name in ["forged", "duplicates", "malformed", "rewinds", "resent", "rewinds_refused"] {
            assert!(report.count(name) > 0, "no {name}");
        }
    }
}

#[test]
fn nodes_resume_within_a_second_after_a_proxy_and_a_gateway_die() {
    let faults = EdgeFaults {
        datagrams: DatagramFaults { loss: 0.01, ..DatagramFaults::NONE },
        proxy_deaths: 2,
        gateway_deaths: 1,
    };
    for seed in 1..=2 {
        let report = check(&EdgeSetup { payloads: 2_600, orders: 400, ..setup(seed, faults) });
        assert!(report.pause < 1_000_000_000, "a gateway saw nothing for {} ms", report.pause / 1_000_000);
        assert!(report.epoch > 18, "nobody was evicted or came back: epoch {}", report.epoch);
    }
}

/// The tree of one gateway has room for one proxy; the other one is a spare then. It has no children, so it can promise
/// nothing, and a parent that still had its stream would wait for it.
#[test]
fn spare_proxy_ends_its_stream_so_that_nobody_waits_for_it() {
    let place = |port| EdgePlace { datagrams: ([127, 0, 0, 1], port).into(), streams: ([127, 0, 0, 1], port).into() };
    let seat = |member: MemberId| Seat { member, place: place(member as u16 + 1) };
    let rules = EdgeSetup::rules();
    let mut proxy = ProxyNode::new(0, 2, seat(2).place, [7; 32], rules);
    let mut parents = Vec::new();
    for (epoch, gateways) in [(1, vec![seat(1_000), seat(1_001)]), (2, vec![seat(1_000)])] {
        let shape = SeatingShape { layers: Some(1), hedging: 0 };
        let seating = Seating::new(epoch, shape, seat(ROOT_MEMBER), &[seat(1), seat(2)], &gateways).expect("a tree");
        let message = LinkMessage::Configure(Box::new(seating), *b"0000000001");
        let mut out = Vec::new();
        proxy.step(0, EdgeInput::Message(LinkEnd::control(ROOT_MEMBER), message), &mut out);
        parents.extend(out.into_iter().filter_map(|effect| match effect {
            EdgeEffect::Parent(parent) => Some(parent.map(|seat| seat.member)),
            _ => None,
        }));
    }
    assert_eq!(parents, [Some(ROOT_MEMBER), None]);
}

/// Ten gateways send faster than the engine takes, so credit runs out at every hop.
fn burst(policy: QueuePolicy) -> EdgeSetup {
    let calm = setup(3, CALM);
    EdgeSetup { engine: Some(6), orders: 400, rules: EdgeRules { policy, credit: 8, ..calm.rules }, ..calm }
}

#[test]
fn held_burst_beyond_the_engine_restamps_nothing() {
    for policy in [QueuePolicy::ByStamp, QueuePolicy::ByClass] {
        let report = check(&burst(policy));
        assert_eq!((report.count("restamped"), report.count("skips")), (0, 0), "{policy:?}");
    }
}

/// Gateways that send their participants' orders half as fast as these are made.
fn paced() -> EdgeSetup {
    let calm = setup(6, CALM);
    let pace = PaceRules { interval: 2_000_000, burst: 2, waiting: 512, mistake: Default::default() };
    EdgeSetup { payloads: 1_000, rules: EdgeRules { pace: Some(pace), ..calm.rules }, ..calm }
}

#[test]
fn paced_orders_wait_at_their_gateways_and_nobody_waits_for_them() {
    let report = check(&paced());
    assert_eq!((report.count("restamped"), report.count("skips"), report.count("orders_refused")), (0, 0, 0));
}

/// An edge of a batch market whose proxies and gateways die and whose links lose.
fn batches(mistake: Option<EdgeMistake>) -> EdgeSetup {
    let faults = EdgeFaults {
        datagrams: DatagramFaults { loss: 0.02, ..DatagramFaults::NONE },
        proxy_deaths: 2,
        gateway_deaths: 1,
    };
    let edge = EdgeSetup { payloads: 2_600, orders: 400, ..setup(2, faults) };
    let bundles = Some(BundleRules { edge: 1, period: 10_000_000, most: 64 });
    EdgeSetup { rules: EdgeRules { bundles, mistake: mistake.into(), ..edge.rules }, ..edge }
}

#[test]
fn bundles_of_an_edge_cut_off_in_stamp_order_and_flag_what_came_late() {
    let report = check(&batches(None));
    assert!(report.count("bundles") > 100, "{} bundles", report.count("bundles"));
    assert!(report.count("bundled_late") <= report.count("restamped"));
    let calm = check(&EdgeSetup { faults: CALM, ..batches(None) });
    assert_eq!(calm.count("bundled_late"), 0);
}

#[test]
fn drawn_edges_hold_under_whatever_faults() {
    for seed in 0..4 {
        check(&EdgeSetup { payloads: 2_600, orders: 200, ..EdgeSetup::drawn(seed) });
    }
}

/// An edge whose first gateway lies.
fn liar(lie: EdgeLie) -> EdgeSetup {
    EdgeSetup { lie: Some(lie), payloads: 2_600, orders: 400, ..setup(4, CALM) }
}

#[test]
fn gateways_that_lie_about_time_are_evicted_and_logged_and_nobody_else_suffers() {
    for lie in [EdgeLie::Ahead(40_000_000), EdgeLie::Behind(1_000_000), EdgeLie::Unseen(1_000)] {
        let report = check(&liar(lie));
        let count = |wanted: fn(&FairnessEvent) -> bool| report.log.iter().filter(|event| wanted(event)).count();
        let lies = count(|event| matches!(event, FairnessEvent::Implausible(..)));
        let evictions = count(|event| matches!(event, FairnessEvent::Evicted(1_000, _)));
        assert!(lies > 1 && lies == evictions, "{lie:?}: found out {lies} times, evicted {evictions} times");
        let others = |event: &&FairnessEvent| event.words()[1] != 1_000;
        let harm = |wanted: fn(&&FairnessEvent) -> bool| report.log.iter().filter(others).filter(wanted).count();
        assert_eq!(harm(|event| matches!(event, FairnessEvent::Skipped(..))), 0, "{lie:?}");
        // Of 4,400 orders those that were on their way when the tree changed.
        let restamped = harm(|event| matches!(event, FairnessEvent::Restamped(..)));
        assert!(restamped <= 10, "{lie:?}: {restamped} orders of others were stamped anew");
        // The wait to come back doubles: in 2.6 seconds it comes back once, or twice.
        assert!(lies <= 3, "{lie:?}: {lies}");
    }
}

#[test]
fn edge_mistakes_are_found() {
    let faults =
        EdgeFaults { datagrams: DatagramFaults { forged: 0.2, ..DatagramFaults::NONE }, proxy_deaths: 2, ..CALM };
    for mistake in EdgeMistake::ALL.iter().copied() {
        let report = match mistake {
            EdgeMistake::HoldForgotten => run_edge(&burst(QueuePolicy::ByClass).with(mistake)),
            EdgeMistake::StampedEarly => run_edge(&paced().with(mistake)),
            EdgeMistake::BundleCutEarly => run_edge(&batches(Some(mistake))),
            EdgeMistake::LiesBelieved => run_edge(&liar(EdgeLie::Behind(2_000_000)).with(mistake)),
            _ => run_edge(&EdgeSetup { payloads: 1_000, orders: 400, ..setup(1, faults) }.with(mistake)),
        };
        let is_found = match mistake {
            EdgeMistake::HoldForgotten | EdgeMistake::StampedEarly => report.count("restamped") > 0,
            _ => !report.violations.is_empty(),
        };
        assert!(is_found, "{mistake:?} was not found");
    }
}

#[test]
fn edge_trace_is_a_function_of_the_seed() {
    let faults = EdgeFaults {
        datagrams: DatagramFaults { loss: 0.05, forged: 0.1, ..DatagramFaults::NONE },
        proxy_deaths: 1,
        ..CALM
    };
    let trace = |seed| check(&setup(seed, faults)).trace;
    assert_eq!(trace(5), trace(5));
    assert_ne!(trace(5), trace(6));
}

/// Joins a gateway at a root, and lets it work by whatever tree the root sends.
fn join(root: &mut RootNode, now: &mut Nanos, gateway: MemberId) -> u32 {
    let end = LinkEnd::control(gateway);
    let at = ([127, 0, 0, 1], gateway as u16).into();
    let place = EdgePlace { datagrams: at, streams: at };
    let mut out = Vec::new();
    root.step(*now, EdgeInput::Opened(end), &mut out);
    root.step(*now, EdgeInput::Message(end, LinkMessage::Join(MemberRole::Gateway, place)), &mut out);
    for _ in 0..2 {
        *now += 60_000_000;
        root.step(*now, EdgeInput::Tick, &mut out);
    }
    root.seating().expect("a tree").epoch()
}

#[test]
fn rewound_packets_of_an_earlier_epoch_come_under_the_key_of_the_present_one() {
    let (secret, mut now) = ([5; 32], 1_000_000_000);
    let at = ([127, 0, 0, 1], 1).into();
    let place = EdgePlace { datagrams: at, streams: at };
    let roster = RosterRules { silence: u64::MAX, ..RosterRules::default() };
    let rules = EdgeRules { roster, heartbeat: u64::MAX / 2, ..EdgeRules::default() };
    let mut root = RootNode::new(now, place, (*b"0000000001", 0), secret, rules);
    let first = join(&mut root, &mut now, 1_000);
    let sequence = root.sequence() + 1;
    root.step(now, EdgeInput::Publish(b"a price"), &mut Vec::new());
    let last = (1_001..1_004).map(|gateway| join(&mut root, &mut now, gateway)).last().expect("an epoch");
    assert!(last > first + 1, "the gateway has forgotten that key");
    let key = PacketKey::of_epoch(&secret, last);
    let request = RewindRequest::seal(last, 0, (sequence, 1), 1_000, &key).encode();
    let mut out = Vec::new();
    root.step(now, EdgeInput::Datagram(([127, 0, 0, 1], 1_000).into(), &request), &mut out);
    let sent: Vec<_> = out
        .iter()
        .filter_map(|effect| if let EdgeEffect::Datagram(_, bytes) = effect { Some(bytes) } else { None })
        .collect();
    assert_eq!(sent.len(), 1, "{:?}", root.counters());
    let (header, payload) = PacketHeader::open(sent[0]).expect("an envelope");
    assert_eq!((header.epoch, header.sequence, payload), (last, sequence, &b"a price"[..]));
    assert!(PacketHeader::is_authentic(sent[0], &key));
}
