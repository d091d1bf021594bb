//! Who is admitted to a shard's socket.

use super::*;

#[test]
fn an_address_has_so_many_connections_and_no_more() {
    let mut network = Network::new(1, 1, 1);
    network.limits.connections_of_address = 3;
    network.start(0, 0).expect("starts");
    let address = network.directory.addresses[0][0];
    let mut held: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(address).expect("it listens")).collect();
    // Three are served: each gets a reply.
    for stream in &mut held {
        let mut frame = Vec::new();
        write_frame(&mut frame, 1, &[0]);
        stream.write_all(&frame).expect("sent");
        assert!(stream.read(&mut [0; 64]).expect("a reply") > 0);
    }
    let mut fourth = TcpStream::connect(address).expect("it listens");
    assert!(matches!(fourth.read(&mut [0; 1]), Ok(0) | Err(_)), "it is closed");
    drop(held);
    network.client().confirm(&pay(&coin(0), 0, 1), PATIENCE).expect("there is room again");
}

/// A shard behind a proxy on loopback, which names its clients, so that a test has any address.
fn behind_a_proxy(coins: usize, limits: ShardLimits) -> Network {
    let mut network = Network::new(1, 1, coins);
    network.limits = limits;
    let proxies = Networks::parse(&["127.0.0.1".into()]).expect("an address");
    network.known = Acquaintances { proxies, proxy_protocol: true, known: Networks::default() };
    network.start(0, 0).expect("starts");
    network
}

/// A connection of a client with this address.
fn of_client(network: &Network, address: &str) -> TcpStream {
    let mut stream = TcpStream::connect(network.directory.addresses[0][0]).expect("it listens");
    let header = format!("PROXY TCP4 {address} 192.0.2.1 4000 7100\r\n");
    stream.write_all(header.as_bytes()).expect("sent");
    stream
}

/// Whether a request is answered, by a reply or a refusal.
fn is_served(stream: &mut TcpStream, body: &[u8]) -> bool {
    let mut frame = Vec::new();
    write_frame(&mut frame, 1, body);
    stream.write_all(&frame).is_ok() && stream.read(&mut [0; 4_096]).is_ok_and(|count| count > 0)
}

fn is_closed(stream: &mut TcpStream) -> bool {
    matches!(stream.read(&mut [0; 4_096]), Ok(0) | Err(_))
}

#[test]
fn sixteen_addresses_do_not_close_the_lane() {
    let limits = ShardLimits { connections: 32, connections_of_address: 2, ..ShardLimits::default() };
    let network = behind_a_proxy(0, limits);
    // Sixteen addresses of two networks hold all connections and send nothing.
    let swarm: Vec<TcpStream> =
        (0..32).map(|at| of_client(&network, &format!("198.51.{}.{}", at % 2, at / 4))).collect();
    let counts = network.shards[0][0].as_ref().expect("started").counts();
    while counts.connections.load(Ordering::Acquire) < 32 {
        std::thread::yield_now();
    }
    let mut honest: Vec<TcpStream> = (0..8).map(|at| of_client(&network, &format!("203.0.113.{at}"))).collect();
    assert!(honest.iter_mut().all(|stream| is_served(stream, &[0])), "everybody of another network is served");
    let let_go = swarm.iter().filter(|stream| {
        stream.set_nonblocking(true).expect("a socket");
        matches!((&**stream).read(&mut [0; 1]), Ok(0))
    });
    assert_eq!(let_go.count(), 8, "each took the place of one of the most numerous");
}

#[test]
fn a_request_that_trickles_is_given_up_and_an_idle_connection_is_not() {
    let limits = ShardLimits { request: Duration::from_millis(50), ..ShardLimits::default() };
    let network = behind_a_proxy(0, limits);
    let mut idle = of_client(&network, "203.0.113.1");
    let mut trickling = of_client(&network, "198.51.100.1");
    assert!(is_served(&mut idle, &[0]) && is_served(&mut trickling, &[0]));
    // A head that announces a byte, which does not come.
    trickling.write_all(&[5, 0, 0, 0, 1, 0, 0, 0]).expect("sent");
    assert!(is_closed(&mut trickling));
    assert!(is_served(&mut idle, &[0]), "between requests there is time");
}

#[test]
fn whoever_paid_keeps_its_connection_while_strangers_come_and_go() {
    let limits = ShardLimits { connections: 4, connections_of_address: 4, ..ShardLimits::default() };
    let network = behind_a_proxy(1, limits);
    let mut payer = of_client(&network, "198.51.100.1");
    assert!(is_served(&mut payer, &pay(&coin(0), 0, 1).request));
    // Its own network is the most numerous, and it is the slowest there.
    let mut others: Vec<TcpStream> = (2..5).map(|at| of_client(&network, &format!("198.51.100.{at}"))).collect();
    assert!(others.iter_mut().all(|stream| is_served(stream, &[0])));
    for at in 1..4 {
        assert!(is_served(&mut of_client(&network, &format!("203.0.113.{at}")), &[0]));
    }
    assert!(is_served(&mut payer, &[0]), "it is still there");
}

/// Payments are no secrets: who repeats one of another has not paid.
#[test]
fn whoever_repeats_the_payment_of_another_keeps_no_connection_for_it() {
    let limits = ShardLimits { connections: 5, connections_of_address: 4, ..ShardLimits::default() };
    let network = behind_a_proxy(1, limits);
    let payment = pay(&coin(0), 0, 1).request;
    let mut payer = of_client(&network, "192.0.2.50");
    assert!(is_served(&mut payer, &payment));
    let mut repeats = of_client(&network, "198.51.100.1");
    assert!(is_served(&mut repeats, &payment), "it is answered like any other");
    let mut others: Vec<TcpStream> = (2..5).map(|at| of_client(&network, &format!("198.51.100.{at}"))).collect();
    assert!(others.iter_mut().all(|stream| is_served(stream, &[0])));
    assert!(is_served(&mut of_client(&network, "203.0.113.1"), &[0]));
    assert!(is_closed(&mut repeats), "the slowest of the most numerous network makes room");
    assert!(is_served(&mut payer, &[0]));
}

#[test]
fn a_trusted_proxy_that_sends_no_header_is_not_served() {
    let network = behind_a_proxy(0, ShardLimits::default());
    let mut stream = TcpStream::connect(network.directory.addresses[0][0]).expect("it listens");
    let mut frame = Vec::new();
    write_frame(&mut frame, 1, &[0; 600]);
    stream.write_all(&frame).expect("sent");
    assert!(is_closed(&mut stream));
}
