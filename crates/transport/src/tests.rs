//! Transports on loopback, and hostile peers.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::mpsc::{Receiver, sync_channel};

use super::*;
use sockets::{free_address, raw_keys};

/// The validators of a test network: keys by seed, and ports that were free a moment ago.
struct Net {
    ports: Vec<u16>,
    network: Digest,
}

/// A running transport and its events.
struct Running {
    transport: Transport,
    events: Receiver<Event>,
}

fn secret(index: usize) -> SecretKey {
    SecretKey::from_seed([index as u8 + 1; 32])
}

const FRAME_MAX: usize = 4 << 20;

impl Net {
    fn new(size: usize) -> Net {
        Net {
            ports: (0..size).map(|_| free_address().expect("a free port").port()).collect(),
            network: Digest([5; 32]),
        }
    }

    fn settings(&self, me: usize) -> TransportSettings {
        let peer =
            |(index, port): (usize, &u16)| Peer { key: secret(index).public(), address: format!("localhost:{port}") };
        TransportSettings {
            network: self.network,
            me: me as PeerIndex,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, self.ports[me])),
            peers: self.ports.iter().enumerate().map(peer).collect(),
            secret: secret(me),
            frame_bytes_max: FRAME_MAX,
            bulk_bytes_waiting_max: 64 << 20,
            clock: || 1_000,
        }
    }

    fn start(&self, me: usize) -> Running {
        run(self.settings(me), 1024)
    }

    fn address(&self, of: usize) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.ports[of]))
    }
}

fn run(settings: TransportSettings, events_max: usize) -> Running {
    let (events, taken) = sync_channel(events_max);
    Running { transport: Transport::start(settings, events).expect("starts"), events: taken }
}

impl Running {
    fn next(&self) -> Event {
        self.events.recv().expect("the transport runs")
    }

    /// Waits until the last event of each of `peers` peers is that it is up; no other kind of event may come
    /// meanwhile.
    fn all_up(&self, peers: usize) {
        let mut up = BTreeMap::new();
        while up.values().filter(|up| **up).count() < peers {
            match self.next() {
                Event::Up { peer, .. } => assert_ne!(up.insert(peer, true), Some(true), "up twice"),
                Event::Down { peer } => drop(up.insert(peer, false)),
                other => panic!("{other:?}"),
            }
        }
    }

    fn frame(&self) -> (PeerIndex, LinkStream, Vec<u8>) {
        loop {
            match self.next() {
                Event::Frame { peer, stream, bytes } => return (peer, stream, bytes.into_bytes()),
                Event::Up { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn votes(&self, to: PeerIndex, bytes: &[u8]) {
        self.transport.send(to, LinkStream::Votes, bytes.into());
    }

    fn bulk(&self, to: PeerIndex, bytes: Vec<u8>) {
        self.transport.send(to, LinkStream::Bulk, bytes.into());
    }

    /// Ends like a killed process: nobody is notified.
    fn kill(mut self) {
        let runtime = self.transport.runtime.take().expect("it runs");
        runtime.shutdown_timeout(Duration::from_secs(10));
    }
}

/// Pairs of validators exchange votes, in order, and bulk; each frame arrives once and at the right peer.
#[test]
fn four_validators_exchange_frames() {
    const VOTES: u8 = 50;
    let net = Net::new(4);
    let running: Vec<Running> = (0..4).map(|me| net.start(me)).collect();
    running.iter().for_each(|running| running.all_up(3));
    let others = |me: usize| (0..4usize).filter(move |to| *to != me);
    for (me, from) in running.iter().enumerate() {
        for to in others(me) {
            for number in 0..VOTES {
                from.votes(to as PeerIndex, &[me as u8, to as u8, number]);
            }
            for length in [0, 1, 70_000, FRAME_MAX] {
                from.bulk(to as PeerIndex, vec![(me * 4 + to) as u8; length]);
            }
        }
    }
    for (me, at) in running.iter().enumerate() {
        let (mut votes, mut bulk) = ([0; 4], vec![Vec::new(); 4]);
        for _ in 0..3 * (usize::from(VOTES) + 4) {
            let (peer, stream, bytes) = at.frame();
            let from = usize::from(peer);
            if stream == LinkStream::Votes {
                assert_eq!(bytes, [peer, me as u8, votes[from]]);
                votes[from] += 1;
            } else {
                assert!(bytes.iter().all(|byte| usize::from(*byte) == from * 4 + me));
                bulk[from].push(bytes.len());
            }
        }
        for from in others(me) {
            bulk[from].sort_unstable();
            assert_eq!((votes[from], &bulk[from][..]), (VOTES, &[0, 1, 70_000, FRAME_MAX][..]));
            let counters = at.transport.counters(from as PeerIndex);
            let total = Traffic { frames: 4, bytes: 70_001 + FRAME_MAX as u64 };
            assert_eq!((counters.bulk_sent, counters.bulk_received), (total, total));
            let total = Traffic { frames: VOTES.into(), bytes: u64::from(VOTES) * 3 };
            assert_eq!((counters.votes_sent, counters.votes_received), (total, total));
            assert_eq!((counters.offences, counters.bulk_dropped, counters.connections), (0, Traffic::default(), 1));
            assert!(counters.wire_received > FRAME_MAX as u64);
        }
    }
    // All frames have been received, so all have been sent.
    let wire = |from: usize, to: usize| running[from].transport.counters(to as PeerIndex).wire_sent;
    assert!((0..4).all(|me| others(me).all(|to| wire(me, to) > FRAME_MAX as u64)));
}

#[test]
fn a_validator_that_was_stopped_or_killed_comes_back() {
    let net = Net::new(4);
    let mut running: Vec<Running> = (0..4).map(|me| net.start(me)).collect();
    running.iter().for_each(|running| running.all_up(3));
    // 0 calls everybody, 3 nobody, 1 and 2 some: both sides of a connection are restarted.
    for (restarted, killed) in [(0, false), (3, false), (0, true), (3, true), (1, true)] {
        let old = running.remove(restarted);
        if killed {
            old.kill()
        } else {
            drop(old)
        }
        running.insert(restarted, net.start(restarted));
        running[restarted].all_up(3);
        for (me, other) in running.iter().enumerate().filter(|(me, _)| *me != restarted) {
            // Down and up, in this order.
            assert!(matches!(other.next(), Event::Down { peer } if usize::from(peer) == restarted), "{me}");
            assert!(matches!(other.next(), Event::Up { peer, .. } if usize::from(peer) == restarted), "{me}");
            other.votes(restarted as PeerIndex, &[me as u8]);
        }
        let mut heard: Vec<Vec<u8>> = (0..3).map(|_| running[restarted].frame().2).collect();
        heard.sort();
        let expected: Vec<Vec<u8>> = (0..4).filter(|me| *me != restarted).map(|me| vec![me as u8]).collect();
        assert_eq!(heard, expected);
    }
}

/// Only the last 32 bytes queued when a peer comes back can show whether old frames were kept for it.
#[test]
fn nothing_is_kept_for_a_peer_that_is_not_there() {
    let net = Net::new(2);
    let first = net.start(0);
    first.votes(1, b"lost");
    first.bulk(1, vec![1; 1000]);
    assert_eq!(first.transport.counters(1).unsent, Traffic { frames: 2, bytes: 1004 });
    let second = net.start(1);
    first.all_up(1);
    second.all_up(1);
    first.votes(1, b"heard");
    assert_eq!(second.frame(), (0, LinkStream::Votes, b"heard".to_vec()));
}

/// A vote sent behind sixty-four megabytes of bulk overtakes nearly all of it.
#[test]
fn votes_overtake_bulk() {
    const FRAMES: usize = 16;
    let net = Net::new(2);
    let (from, to) = (net.start(0), net.start(1));
    from.all_up(1);
    to.all_up(1);
    let frame: Arc<[u8]> = vec![7; FRAME_MAX].into();
    (0..FRAMES).for_each(|_| from.transport.send(1, LinkStream::Bulk, frame.clone()));
    from.votes(1, b"urgent");
    let order: Vec<LinkStream> = (0..=FRAMES).map(|_| to.frame().1).collect();
    let at = order.iter().position(|stream| *stream == LinkStream::Votes).expect("it came");
    assert!(at <= FRAMES / 4, "the vote came after {at} of {FRAMES} bulk frames");
}

/// A short bulk frame does not wait for a long one that was sent before it. One round proves nothing against that: a
/// thread that gets no processor for some milliseconds may send a short frame after the long one has arrived.
#[test]
fn a_long_frame_does_not_hold_up_a_short_one() {
    let net = Net::new(2);
    let (from, to) = (net.start(0), net.start(1));
    from.all_up(1);
    to.all_up(1);
    let frames = [FRAME_MAX, 1, FRAME_MAX, 1, FRAME_MAX, 1].map(|bytes| Arc::<[u8]>::from(vec![7; bytes]));
    let mut orders = (0..30).map(|_| {
        frames.iter().for_each(|frame| from.transport.send(1, LinkStream::Bulk, frame.clone()));
        frames.each_ref().map(|_| to.frame().2.len())
    });
    assert!(orders.any(|order| order[..3] == [1; 3]), "in each round a short frame came after a long one");
}

#[test]
fn each_side_hears_how_far_the_others_clock_is_off() {
    let net = Net::new(2);
    let first = net.start(0);
    let second = run(TransportSettings { clock: || 61_000, ..net.settings(1) }, 1024);
    assert!(matches!(first.next(), Event::Up { peer: 1, ahead_ms: 60_000 }));
    assert!(matches!(second.next(), Event::Up { peer: 0, ahead_ms: -60_000 }));
}

/// A shell that takes no events bounds what is read; frames that the sender cannot send are dropped, the oldest
/// first.
#[test]
fn a_slow_reader_bounds_both_sides() {
    const FRAMES: u8 = 200;
    let net = Net::new(2);
    let mut settings = net.settings(0);
    settings.bulk_bytes_waiting_max = 3 * FRAME_MAX;
    // There is room for more events than frames: the held frames are bounded by their bytes.
    let (from, to) = (run(settings, 16), run(net.settings(1), 1024));
    from.all_up(1);
    to.all_up(1);
    for number in 0..FRAMES {
        from.bulk(1, vec![number; FRAME_MAX]);
    }
    let counters = from.transport.counters(1);
    let (sent, dropped) = (counters.bulk_sent.frames, counters.bulk_dropped.frames);
    // At most three are queued, and fewer if the last of them are in flight already.
    let waiting = u64::from(FRAMES) - sent - dropped;
    assert!(dropped > 0 && waiting <= 3, "{counters:?}");
    // What the reader may hold, and what the streams may have in flight; the rest is queued at the sender.
    let most = link::LONG_FRAMES_HELD + endpoint::BULK_STREAMS as usize;
    assert!(sent as usize <= most, "{sent} frames were sent to a reader that takes none");
    assert!(to.transport.counters(0).bulk_received.frames <= link::LONG_FRAMES_HELD as u64);
    let mut heard: Vec<u8> = (0..sent + waiting).map(|_| to.frame().2[0]).collect();
    heard.sort_unstable();
    assert_eq!(heard[heard.len() - 3..], [FRAMES - 3, FRAMES - 2, FRAMES - 1], "the newest are kept");
    assert_eq!(from.transport.counters(1).bulk_dropped.frames, dropped);
}

/// Votes are never dropped one by one: the connection ends, and the shell is notified when it is up again.
#[test]
fn votes_that_pile_up_end_the_connection() {
    let net = Net::new(2);
    let (from, to) = (net.start(0), run(net.settings(1), 1));
    from.all_up(1);
    to.all_up(1);
    let frame: Arc<[u8]> = vec![0; VOTE_FRAME_BYTES_MAX].into();
    while from.transport.counters(1).overflows == 0 {
        from.transport.send(1, LinkStream::Votes, frame.clone());
    }
    assert!(matches!(from.next(), Event::Down { peer: 1 }));
    // The reader takes the frames that had arrived, then sees both events.
    while !matches!(to.next(), Event::Down { .. }) {}
    assert!(matches!(to.next(), Event::Up { .. }));
    assert!(matches!(from.next(), Event::Up { peer: 1, .. }));
}

/// A copy of a validator, whichever side calls, is told that its key is in use, and the validator is not affected.
#[test]
fn a_second_process_with_one_key_is_refused() {
    let net = Net::new(4);
    let running: Vec<Running> = (0..4).map(|me| net.start(me)).collect();
    running.iter().for_each(|running| running.all_up(3));
    for copied in [0, 3] {
        let mut settings = net.settings(copied);
        settings.listen.set_port(0);
        let copy = run(settings, 16);
        let mut refused_by = std::collections::BTreeSet::new();
        while refused_by.len() < 3 {
            match copy.next() {
                Event::Refused { peer, reason: LinkReason::KeyInUse } => drop(refused_by.insert(peer)),
                other => panic!("{other:?}"),
            }
        }
    }
    for (me, at) in running.iter().enumerate() {
        (0..4).filter(|to| *to != me).for_each(|to| at.votes(to as PeerIndex, b"still here"));
    }
    for at in &running {
        (0..3).for_each(|_| assert_eq!(at.frame().2, b"still here"));
    }
}

#[test]
fn another_network_is_refused_in_words() {
    let net = Net::new(2);
    let mut settings = net.settings(1);
    settings.network = Digest([6; 32]);
    let (first, second) = (net.start(0), run(settings, 16));
    for running in [&first, &second] {
        assert!(matches!(running.next(), Event::Refused { reason: LinkReason::OtherNetwork, .. }));
    }
    assert_eq!(first.transport.counters(1).connections + second.transport.counters(0).connections, 0);
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let net = Net::new(3);
    let refused = |change: fn(&mut TransportSettings)| {
        let mut settings = net.settings(1);
        change(&mut settings);
        Transport::start(settings, sync_channel(1).0).err().expect("refused").to_string()
    };
    assert!(refused(|settings| settings.me = 2).contains("not its home"));
    assert!(refused(|settings| settings.me = 3).contains("no validator 3"));
    assert!(refused(|settings| settings.peers[2].key = settings.peers[0].key).contains("same key"));
    let taken = UdpSocket::bind(net.address(1)).expect("free");
    assert!(refused(|_| ()).contains("[network] listen"));
    drop(taken);
}

/// A custom client: any key, any protocol.
struct Intruder {
    runtime: Runtime,
    endpoint: quinn::Endpoint,
}

impl Intruder {
    fn new() -> Intruder {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("threads");
        let _runtime = runtime.enter();
        let endpoint = quinn::Endpoint::client(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("binds");
        drop(_runtime);
        Intruder { runtime, endpoint }
    }

    fn connect(&self, to: SocketAddr, key: &SecretKey, expected: PublicKey) -> Result<Connection, String> {
        let identity = Identity::new(key).expect("a key");
        let client = endpoint::client(&identity, expected).expect("settings");
        self.connect_with(to, client)
    }

    fn connect_with(&self, to: SocketAddr, client: quinn::ClientConfig) -> Result<Connection, String> {
        self.runtime.block_on(async {
            let connecting = self.endpoint.connect_with(client, to, "walras").map_err(|error| error.to_string())?;
            connecting.await.map_err(|error| error.to_string())
        })
    }

    /// The reason that the other side finally gives.
    fn closed(&self, connection: &Connection) -> Option<LinkReason> {
        match self.runtime.block_on(connection.closed()) {
            quinn::ConnectionError::ApplicationClosed(close) => LinkReason::from_code(close.error_code),
            other => panic!("{other}"),
        }
    }

    /// Greets like a validator and sends `then` on the votes stream.
    fn greet(&self, connection: &Connection, hello: wire::Hello, then: &[u8]) -> quinn::SendStream {
        self.runtime.block_on(async {
            let (mut out, mut votes) = connection.open_bi().await.expect("open");
            out.write_all(&wire::control(&wire::Message::Hello(hello))).await.expect("sent");
            if !then.is_empty() {
                votes.read_exact(&mut [0; wire::HELLO_BYTES + 5]).await.expect("greeted");
                out.write_all(then).await.expect("sent");
            }
            out
        })
    }

    fn frame(&self, connection: &Connection, bytes: &[u8]) {
        self.runtime.block_on(async {
            let mut out = connection.open_uni().await.expect("open");
            // The receiver may stop reading half way.
            drop(out.write_all(bytes).await);
            drop(out.finish());
            drop(out.stopped().await);
        });
    }
}

#[test]
fn strangers_end_at_the_handshake() {
    let net = Net::new(2);
    let running = net.start(1);
    let intruder = Intruder::new();
    let (to, expected) = (net.address(1), secret(1).public());
    // Garbage that is not QUIC, and some that looks like its beginning.
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("binds");
    for length in [0, 1, 20, 1200, 9000] {
        for first in [0x00, 0x40, 0xc0, 0xff] {
            let mut bytes = vec![0xab; length];
            bytes.iter_mut().take(1).for_each(|byte| *byte = first);
            socket.send_to(&bytes, to).expect("sent");
        }
    }
    // A key that is not in the list. The caller finishes its part of the handshake before it is told.
    let connection = intruder.connect(to, &secret(7), expected);
    let refused = connection.map(|connection| intruder.runtime.block_on(connection.closed()).to_string());
    assert!(format!("{refused:?}").contains("cryptographic handshake failed"), "{refused:?}");
    // Another protocol.
    let crypto = raw_keys::client(Some(&Identity::new(&secret(0)).expect("a key")), expected, b"h3").expect("settings");
    let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(crypto).expect("TLS 1.3");
    let refused = intruder.connect_with(to, quinn::ClientConfig::new(Arc::new(crypto)));
    assert!(refused.expect_err("refused").contains("handshake failed"));
    // A server with the wrong key is not talked to either.
    assert!(intruder.connect(to, &secret(0), secret(5).public()).is_err());
    // After all that, a validator is accepted.
    let validator = net.start(0);
    running.all_up(1);
    validator.all_up(1);
    assert!(running.transport.strangers() >= 2, "{}", running.transport.strangers());
    assert_eq!(running.transport.counters(0).offences, 0);
}

/// An offence of a validator with a valid key ends its connection, is counted, and limits it for a while; others are
/// not affected.
#[test]
fn offences_limit_the_offender_alone() {
    let net = Net::new(3);
    let (victim, bystander) = (net.start(1), net.start(2));
    victim.all_up(1);
    bystander.all_up(1);
    let intruder = Intruder::new();
    let hello = wire::Hello { version: wire::VERSION, network: net.network, incarnation: [9; 16], clock_ms: 1_000 };
    let again = wire::control(&wire::Message::Hello(hello)).to_vec();
    let huge = [&[1][..], &u32::MAX.to_le_bytes()].concat();
    let too_long = (FRAME_MAX as u32 + 1).to_le_bytes();
    // A hello, what follows it on the votes stream, what is sent on a bulk stream, and the resulting reason.
    let acts: [(wire::Hello, &[u8], &[u8], LinkReason); 9] = [
        (wire::Hello { network: Digest([8; 32]), ..hello }, &[], &[], LinkReason::OtherNetwork),
        (wire::Hello { version: 99, ..hello }, &[], &[], LinkReason::OtherVersion),
        (hello, &[200, 1, 0, 0, 0], &[], LinkReason::Malformed),
        (hello, &again, &[], LinkReason::Malformed),
        (hello, &huge, &[], LinkReason::TooLarge),
        (hello, &[1, 0, 0, 0, 0], &too_long, LinkReason::TooLarge),
        (hello, &[1, 0, 0, 0, 0], &[9, 0, 0, 0, 1, 2, 3], LinkReason::Malformed),
        (hello, &[1, 0, 0, 0, 0], &[2, 0, 0, 0, 1, 2, 3], LinkReason::Malformed),
        (hello, &[1, 0, 0, 0, 0], &[2, 0], LinkReason::Malformed),
    ];
    let total = acts.len() as u64;
    let link = victim.transport.shared.links[0].as_ref().expect("a peer");
    let connect = || intruder.connect(net.address(1), &secret(0), secret(1).public()).expect("a good key");
    for (number, (hello, votes, bulk, expected)) in acts.into_iter().enumerate() {
        if number > 0 {
            assert_eq!(intruder.closed(&connect()), Some(LinkReason::Limited), "after act {number}");
            link.forgive();
        }
        let connection = connect();
        let out = intruder.greet(&connection, hello, votes);
        if !bulk.is_empty() {
            intruder.frame(&connection, bulk);
        }
        assert_eq!(intruder.closed(&connection), Some(expected), "act {number}");
        drop(out);
        while link.counters().offences <= number as u64 {
            std::thread::yield_now();
        }
    }
    assert_eq!(victim.transport.counters(0).offences, total);
    assert_eq!((victim.transport.counters(2).offences, victim.transport.counters(2).connections), (0, 1));
    bystander.votes(1, b"unmoved");
    loop {
        match victim.next() {
            Event::Frame { peer: 2, bytes, .. } => break assert_eq!(&bytes[..], b"unmoved"),
            Event::Frame { peer: 0, .. } | Event::Up { peer: 0, .. } | Event::Down { peer: 0 } => {}
            Event::Refused { peer: 0, .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn every_reason_has_a_code_of_its_own() {
    for (at, (reason, _)) in REASONS.iter().enumerate() {
        assert_eq!((reason.code() as usize, LinkReason::from_code(VarInt::from_u32(at as u32))), (at, Some(*reason)));
    }
    assert_eq!(LinkReason::from_code(VarInt::from_u32(99)), None);
}
