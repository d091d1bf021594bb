//! Validators' connections over a network that delays, loses, reorders and partitions.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use bench::switch::{Switch, SwitchLink, between_regions};
use primitives::{Digest, SecretKey};
use sockets::free_address;
use transport::{Event, LinkStream, Peer, Transport, TransportSettings};

fn secret(index: usize) -> SecretKey {
    SecretKey::from_seed([index as u8 + 1; 32])
}

/// Transports that reach one another over a switch.
fn network(size: usize, link: impl Fn(usize, usize) -> SwitchLink) -> (Switch, Vec<(Transport, Receiver<Event>)>) {
    let addresses: Vec<SocketAddr> = (0..size).map(|_| free_address().expect("a free port")).collect();
    let switch = Switch::start(&addresses, 7).expect("starts");
    switch.set_all(link);
    let start = |me: usize| {
        let peer = |to: usize| Peer { key: secret(to).public(), address: switch.address(me, to).to_string() };
        let settings = TransportSettings {
            network: Digest([1; 32]),
            me: me as u8,
            listen: addresses[me],
            peers: (0..size).map(peer).collect(),
            secret: secret(me),
            frame_bytes_max: 1 << 20,
            bulk_bytes_waiting_max: 16 << 20,
            clock: || 0,
        };
        let (events, taken) = sync_channel(1024);
        (Transport::start(settings, events).expect("starts"), taken)
    };
    let validators = (0..size).map(start).collect();
    (switch, validators)
}

/// Takes events until this many peers are up.
fn all_up(events: &Receiver<Event>, peers: usize) {
    let mut up = std::collections::BTreeSet::new();
    while up.len() < peers {
        match events.recv().expect("it runs") {
            Event::Up { peer, .. } => drop(up.insert(peer)),
            Event::Down { peer } => drop(up.remove(&peer)),
            _ => {}
        }
    }
}

/// Delays around the world, two of a hundred datagrams lost and five reordered: votes arrive in order and bulk
/// complete.
#[test]
fn frames_survive_a_bad_network() {
    const VOTES: u32 = 100;
    let link = |from, to| SwitchLink { loss: 0.02, reordering: 0.05, ..SwitchLink::of(between_regions(from, to)) };
    let (switch, validators) = network(4, link);
    validators.iter().for_each(|(_, events)| all_up(events, 3));
    let others = |me: usize| (0..4usize).filter(move |to| *to != me);
    let bulk: Arc<[u8]> = (0..100_000u32).map(|i| i as u8).collect();
    for (me, (transport, _)) in validators.iter().enumerate() {
        for to in others(me) {
            transport.send(to as u8, LinkStream::Bulk, bulk.clone());
            (0..VOTES).for_each(|number| transport.send(to as u8, LinkStream::Votes, Arc::from(number.to_le_bytes())));
        }
    }
    for (_, events) in &validators {
        let (mut next, mut whole) = ([0; 4], 0);
        while next.iter().sum::<u32>() < 3 * VOTES || whole < 3 {
            match events.recv().expect("it runs") {
                Event::Frame { peer, stream: LinkStream::Votes, bytes } => {
                    assert_eq!(bytes[..], next[usize::from(peer)].to_le_bytes());
                    next[usize::from(peer)] += 1;
                }
                Event::Frame { bytes, .. } => {
                    assert_eq!(bytes[..], bulk[..]);
                    whole += 1;
                }
                other => panic!("{other:?}"),
            }
        }
    }
    let lost: u64 =
        (0..4).flat_map(|from| others(from).map(move |to| (from, to))).map(|(a, b)| switch.passed(a, b).lost).sum();
    assert!(lost > 0, "the network lost nothing");
}

/// A validator that is cut off is missed by the others and misses them; when the network heals all connect again.
#[test]
fn partitions_are_noticed_and_heal() {
    let (switch, validators) = network(3, |_, _| SwitchLink::of(Duration::from_millis(5)));
    validators.iter().for_each(|(_, events)| all_up(events, 2));
    switch.partition(&[&[0, 1], &[2]]);
    for me in [0, 1] {
        assert!(matches!(validators[me].1.recv(), Ok(Event::Down { peer: 2 })));
    }
    let alone: Vec<u8> = (0..2)
        .map(|_| match validators[2].1.recv() {
            Ok(Event::Down { peer }) => peer,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(alone == [0, 1] || alone == [1, 0]);
    validators[0].0.send(1, LinkStream::Votes, Arc::from(*b"inside"));
    assert!(matches!(validators[1].1.recv(), Ok(Event::Frame { peer: 0, .. })));
    switch.heal();
    all_up(&validators[2].1, 2);
    all_up(&validators[0].1, 1);
}
