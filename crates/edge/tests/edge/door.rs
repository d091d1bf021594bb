//! Participants who flood a gateway's door, or hold its places: refused, logged, and nobody else's concern.

#[allow(dead_code)]
use crate::support;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::os::fd::AsRawFd;

use crate::support::{Edge, GATEWAY, patient};
use edge::DoorLimits;
use fairnet::*;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, socket};

const LIMITS: DoorLimits = DoorLimits { burst: 50, per_second: 0, patience_ms: 0, silence: u64::MAX };

/// A connection from another machine, as far as addresses tell.
fn from(machine: u8, to: SocketAddr) -> TcpStream {
    let SocketAddr::V4(to) = to else { panic!("an address of four bytes") };
    let own = socket(AddressFamily::Inet, SockType::Stream, SockFlag::empty(), None).expect("a socket");
    let source = SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, machine), 0);
    bind(own.as_raw_fd(), &SockaddrIn::from(source)).expect("an address of this machine");
    connect(own.as_raw_fd(), &SockaddrIn::from(to)).expect("a door");
    TcpStream::from(own)
}

fn packets(count: usize, text: &[u8]) -> Vec<u8> {
    let one = [&(text.len() as u16).to_be_bytes()[..], text].concat();
    one.repeat(count)
}

/// Whether the door has ended the connection.
fn is_cut(mut stream: TcpStream) -> bool {
    !matches!(stream.read(&mut [0; 16]), Ok(1..))
}

fn heard(edge: &Edge, text: &[u8]) -> usize {
    let is_text = |said: &&FromParticipant| said.what == ParticipantEvent::Packet(text.to_vec());
    edge.watch.until(|_| true).heard.iter().filter(is_text).count()
}

fn until_heard(edge: &Edge, text: &[u8], count: usize) {
    let is_text = |said: &&FromParticipant| said.what == ParticipantEvent::Packet(text.to_vec());
    drop(edge.watch.until(|seen| seen.heard.iter().filter(is_text).count() >= count));
}

#[test]
fn participant_that_floods_is_cut_and_logged_and_the_others_trade_on() {
    let edge = Edge::with_doors((2, 2), patient(), LIMITS);
    edge.send(0, edge::EdgeCommand::Ready(u64::MAX));
    let door = edge.door(GATEWAY);
    let (mut flood, mut calm) = (from(2, door), from(3, door));
    // The door may end the connection before all is written.
    drop(flood.write_all(&packets(10_000, b"flood")));
    assert!(is_cut(flood));
    calm.write_all(&packets(20, b"calm")).expect("an open door");
    until_heard(&edge, b"calm", 20);
    let is_flood = |entry: &FairnessEntry| matches!(entry.event, FairnessEvent::Flooded(GATEWAY, 50));
    while !edge.root().log.iter().any(is_flood) {
        std::thread::yield_now();
    }
    // Whoever comes back, and by however many connections, has no other budget.
    for _ in 0..100 {
        let mut again = from(2, door);
        drop(again.write_all(&packets(100, b"flood")));
        assert!(is_cut(again));
    }
    calm.write_all(&packets(20, b"calm")).expect("an open door");
    until_heard(&edge, b"calm", 40);
    assert_eq!(heard(&edge, b"flood"), 50);
    assert!(edge.root().log.iter().filter(|entry| is_flood(entry)).count() == 1);
}

#[test]
fn half_open_connections_make_room_for_whoever_speaks() {
    let edge = Edge::with_doors((2, 2), patient(), LIMITS);
    edge.send(0, edge::EdgeCommand::Ready(u64::MAX));
    let door = edge.door(GATEWAY);
    // More than there are places; half of them say half of a packet.
    let idle: Vec<TcpStream> = (0..200u8)
        .map(|number| {
            let mut stream = from(2, door);
            if number % 2 == 0 {
                drop(stream.write_all(&[0, 9, 1]));
            }
            stream
        })
        .collect();
    let mut calm = from(3, door);
    calm.write_all(&packets(20, b"calm")).expect("an open door");
    until_heard(&edge, b"calm", 20);
    drop(idle);
    assert_eq!(edge.status(GATEWAY).counters.orders_refused, 0);
}

#[test]
fn participant_that_goes_in_the_middle_of_an_order_has_made_none() {
    let edge = Edge::with_doors((2, 2), patient(), LIMITS);
    edge.send(0, edge::EdgeCommand::Ready(u64::MAX));
    let door = edge.door(GATEWAY);
    let mut cut = from(2, door);
    cut.write_all(&[&packets(1, b"whole")[..], &[0, 9, b'h', b'a', b'l', b'f']].concat()).expect("an open door");
    until_heard(&edge, b"whole", 1);
    drop(cut);
    let has_ended = |seen: &mut support::Seen| seen.heard.iter().any(|said| said.what == ParticipantEvent::Ended);
    let heard = edge.watch.until(has_ended).heard.clone();
    let packets_of = |said: &FromParticipant| matches!(said.what, ParticipantEvent::Packet(_));
    assert_eq!(heard.iter().filter(|said| packets_of(said)).count(), 1, "{heard:?}");
    // Another connection of the same place begins anew, not with the rest of that order.
    let mut calm = from(2, door);
    calm.write_all(&packets(1, b"calm")).expect("an open door");
    until_heard(&edge, b"calm", 1);
}
