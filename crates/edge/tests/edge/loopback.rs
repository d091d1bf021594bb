//! The edge on loopback: what the simulator checks, on sockets. What the clock decides here is only how long it takes.

#[allow(dead_code)]
use std::net::UdpSocket;

use crate::support::{Edge, GATEWAY, SECRET, patient};
use edge::EdgeCommand;
use fairnet::sim::{EdgeFaults, EdgeSetup, run_edge};
use fairnet::*;
use kernel::DatagramFaults;

const CALM: EdgeFaults = EdgeFaults { datagrams: DatagramFaults::NONE, proxy_deaths: 0, gateway_deaths: 0 };
const HOSTILE: EdgeFaults = EdgeFaults {
    datagrams: DatagramFaults { loss: 0.05, copies: 0.05, forged: 0.2, replayed: 0.1, cut: 0.05 },
    ..CALM
};
const FINE: Vec<String> = Vec::new();

#[test]
fn every_message_reaches_every_receiver_once_in_order_at_its_deadline_and_orders_come_back_by_stamp() {
    let bundles = Some(BundleRules { edge: 1, period: 10_000_000, most: 64 });
    let mut edge = Edge::new(6, 8, EdgeRules { bundles, ..patient() }, CALM);
    edge.send(0, EdgeCommand::Ready(u64::MAX));
    for round in 0..10 {
        edge.publish(20);
        edge.gateways().into_iter().for_each(|gateway| edge.order(gateway, 5 * round + 1..5 * round + 6));
        edge.until_shown();
    }
    edge.until_taken(8 * 50);
    edge.until_bundled(8 * 50);
    assert_eq!(edge.sum(|counters| counters.restamped) + edge.sum(|counters| counters.orders_resent), 0);
    assert_eq!(edge.root().widths, [1, 2, 4, 8]);
    assert_eq!(edge.finish(), FINE);
}

#[test]
fn forged_duplicated_reordered_and_truncated_datagrams_are_refused_and_counted_and_losses_recovered() {
    let mut edge = Edge::new(6, 6, patient(), HOSTILE);
    for _ in 0..10 {
        edge.publish(30);
        edge.until_shown();
    }
    for (name, count) in [
        ("forged", edge.sum(|counters| counters.forged)),
        ("duplicates", edge.sum(|counters| counters.duplicates)),
        ("malformed", edge.sum(|counters| counters.malformed)),
        ("rewinds", edge.sum(|counters| counters.rewinds)),
        ("resent", edge.sum(|counters| counters.resent)),
    ] {
        assert!(count > 0, "no {name}");
    }
    assert_eq!(edge.finish(), FINE);
}

#[test]
fn spoofed_rewinds_are_refused_and_answered_to_nobody() {
    let mut edge = Edge::new(2, 2, patient(), CALM);
    edge.publish(5);
    edge.until_shown();
    let stranger = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let epoch = edge.root().epoch;
    let by = |secret| RewindRequest::seal(epoch, 0, (1, 5), GATEWAY, &PacketKey::of_epoch(secret, epoch)).encode();
    // By another secret, and with the right one from an address that is nobody's.
    for request in [by(&[1; 32]), by(&SECRET)] {
        stranger.send_to(&request, edge.place(0).datagrams).expect("sent");
    }
    while edge.status(0).counters.rewinds_refused < 2 {
        edge.publish(1);
        edge.until_shown();
    }
    assert_eq!(edge.status(0).counters.resent, 0);
    stranger.set_nonblocking(true).expect("a socket");
    assert!(stranger.recv(&mut [0; 2_048]).is_err(), "a stranger was answered");
    assert_eq!(edge.finish(), FINE);
}

#[test]
fn old_epoch_replayed_is_refused() {
    let mut edge = Edge::new(2, 2, patient(), CALM);
    edge.publish(5);
    edge.until_shown();
    let stale = |edge: &Edge| edge.status(GATEWAY).counters.stale;
    let before = stale(&edge);
    let stranger = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let epoch = 1_000_000;
    let header =
        PacketHeader { epoch, session: *b"0000000001", tree: 0, sequence: 6, deadline: 0, sent: 0, is_unfair: false };
    let mut bytes = Vec::new();
    header.seal(&PacketKey::of_epoch(&SECRET, epoch), b"a payload", &mut bytes);
    stranger.send_to(&bytes, edge.place(GATEWAY).datagrams).expect("sent");
    while stale(&edge) == before {
        edge.publish(1);
        edge.until_shown();
    }
    assert_eq!(edge.finish(), FINE);
}

#[test]
fn trading_resumes_after_a_proxy_and_a_gateway_are_killed() {
    let mut edge = Edge::new(4, 6, EdgeRules { resend: 5_000_000, ..patient() }, CALM);
    edge.send(0, EdgeCommand::Ready(u64::MAX));
    edge.publish(20);
    edge.gateways().into_iter().for_each(|gateway| edge.order(gateway, 1..11));
    edge.until_taken(60);
    let epoch = edge.root().epoch;
    // In the first layer of proxies, and a gateway; both without a word.
    edge.kill(1);
    edge.kill(GATEWAY);
    edge.publish(20);
    edge.gateways().into_iter().for_each(|gateway| edge.order(gateway, 11..21));
    edge.until_shown();
    edge.until_taken(110);
    while edge.root().epoch == epoch {
        edge.publish(1);
        edge.until_shown();
    }
    edge.start(1);
    edge.start(GATEWAY);
    edge.until_showing();
    edge.publish(20);
    edge.order(GATEWAY, 1..11);
    edge.until_shown();
    edge.until_taken(120);
    assert!(edge.root().log.iter().any(|entry| entry.event.words()[..2] == [0, 1]), "no eviction was logged");
    assert_eq!(edge.finish(), FINE);
}

/// Orders that have reached the root and wait for the engine, when the proxies that sent them die.
fn resent_orders(mistake: Option<EdgeMistake>) -> Vec<String> {
    let mut edge = Edge::new(4, 4, EdgeRules { mistake: mistake.into(), resend: 5_000_000, ..patient() }, CALM);
    edge.gateways().into_iter().for_each(|gateway| edge.order(gateway, 1..6));
    while edge.root().queued < 20 {
        edge.publish(1);
        edge.until_shown();
    }
    edge.kill(1);
    while edge.root().queued <= 20 {
        edge.publish(1);
        edge.until_shown();
    }
    edge.send(0, EdgeCommand::Ready(u64::MAX));
    edge.until_taken(20);
    edge.publish(1);
    edge.until_shown();
    match edge.violations() {
        violations if violations.is_empty() => edge.finish(),
        violations => violations,
    }
}

fn fed(mistake: Option<EdgeMistake>, faults: EdgeFaults) -> Vec<String> {
    let mut edge = Edge::new(4, 4, EdgeRules { mistake: mistake.into(), ..patient() }, faults);
    for _ in 0..20 {
        edge.publish(20);
        edge.until_shown();
        if !edge.violations().is_empty() {
            return edge.violations();
        }
    }
    edge.finish()
}

/// The same nodes with the same mistake, simulated.
fn calm_edge(mistake: Option<EdgeMistake>) -> EdgeSetup {
    let rules = EdgeRules {
        mistake: mistake.into(),
        shape: SeatingShape { layers: Some(2), hedging: 1 },
        ..EdgeSetup::rules()
    };
    EdgeSetup {
        seed: 1,
        proxies: 6,
        gateways: 8,
        payloads: 800,
        orders: 400,
        engine: None,
        faults: CALM,
        rules,
        lie: None,
    }
}

fn simulated(mistake: Option<EdgeMistake>) -> Vec<String> {
    let faults =
        EdgeFaults { datagrams: DatagramFaults { forged: 0.2, ..DatagramFaults::NONE }, proxy_deaths: 2, ..CALM };
    run_edge(&EdgeSetup { engine: Some(4), faults, ..calm_edge(mistake) }).violations
}

#[test]
fn same_planted_bug_is_caught_in_the_simulator_and_on_sockets() {
    let forging = EdgeFaults { datagrams: DatagramFaults { forged: 0.2, ..DatagramFaults::NONE }, ..CALM };
    for mistake in
        [None, Some(EdgeMistake::MacUnchecked), Some(EdgeMistake::ShownEarly), Some(EdgeMistake::CopiesTaken)]
    {
        let on_sockets = match mistake {
            Some(EdgeMistake::CopiesTaken) => resent_orders(mistake),
            None => [resent_orders(None), fed(None, forging)].concat(),
            _ => fed(mistake, forging),
        };
        let in_simulator = simulated(mistake);
        assert_eq!(!on_sockets.is_empty(), mistake.is_some(), "on sockets, {mistake:?}: {on_sockets:?}");
        assert_eq!(!in_simulator.is_empty(), mistake.is_some(), "simulated, {mistake:?}: {in_simulator:?}");
    }
}

/// An edge of sockets whose first gateway lies; until it is found out or something is wrong.
fn lied_to(lie: EdgeLie, mistake: Option<EdgeMistake>) -> Vec<String> {
    let rules = EdgeRules { mistake: mistake.into(), ..patient() };
    let mut edge = Edge::with_liar((4, 5), rules, CALM, Some(lie));
    edge.send(0, EdgeCommand::Ready(u64::MAX));
    let is_found = |edge: &Edge| {
        let log = edge.root().log;
        let has = |kind| log.iter().any(|entry| entry.event.words()[..2] == [kind, GATEWAY]);
        // Found out, and evicted.
        has(11) && has(0)
    };
    let mut number = 0;
    while !is_found(&edge) && edge.violations().is_empty() {
        number += 1;
        edge.gateways().into_iter().for_each(|gateway| edge.order(gateway, number..number + 1));
        edge.order(GATEWAY, number..number + 1);
        edge.publish(1);
        edge.until_shown();
    }
    if edge.violations().is_empty() {
        // The market goes on without it.
        edge.gateways().into_iter().for_each(|gateway| edge.order(gateway, number + 1..number + 11));
        edge.publish(10);
        edge.until_shown();
        edge.until_taken(4 * (number as usize + 10));
    }
    edge.finish()
}

#[test]
fn same_lies_about_time_are_found_out_in_the_simulator_and_on_sockets() {
    const MS: Nanos = 1_000_000;
    for lie in [EdgeLie::Ahead(1_000 * MS), EdgeLie::Behind(50 * MS), EdgeLie::Unseen(1_000)] {
        assert_eq!(lied_to(lie, None), FINE, "on sockets, {lie:?}");
        let simulated = run_edge(&EdgeSetup { lie: Some(lie), ..calm_edge(None) });
        assert_eq!(simulated.violations, FINE, "simulated, {lie:?}");
        let events = |kind| simulated.log.iter().filter(|event| event.words()[..2] == [kind, GATEWAY]).count();
        assert!(events(11) > 0 && events(11) <= events(0), "simulated, {lie:?}: {} times", events(11));
    }
    let (lie, mistake) = (EdgeLie::Behind(50 * MS), Some(EdgeMistake::LiesBelieved));
    assert_ne!(lied_to(lie, mistake), FINE, "believed on sockets");
    let simulated = run_edge(&EdgeSetup { lie: Some(EdgeLie::Behind(MS)), ..calm_edge(mistake) });
    assert_ne!(simulated.violations, FINE, "believed in the simulator");
}
