//! Who gets in: foreign pages, greedy addresses, and clients behind proxies.

use crate::fake;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;

use crate::open::{call, exchange, loopback, with_doors, with_node};
use doors::roles::ENDPOINTS;
use doors::{Answer, Bound, Http};
use primitives::{AssetId, Body, Operation, PublicKey, Signature, Transaction};

/// A connection from one of the addresses of this machine.
fn from(source: [u8; 4], server: SocketAddr) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a thread");
    let stream = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.bind(SocketAddr::from((source, 0))).expect("an address of this machine");
        socket.connect(server).await.expect("listens").into_std().expect("a socket")
    });
    stream.set_nonblocking(false).expect("set");
    stream
}

/// Opens a WebSocket; returns the status of the answer and the connection.
fn open_stream(mut stream: TcpStream, headers: &[(&str, &str)]) -> (u16, TcpStream) {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!(
        "GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}\r\n"
    );
    stream.write_all(head.as_bytes()).expect("sent");
    let mut begun = [0; 12];
    stream.read_exact(&mut begun).expect("an answer");
    let status = std::str::from_utf8(&begun[9..]).ok().and_then(|code| code.parse().ok()).expect("a status");
    (status, stream)
}

#[test]
fn a_foreign_page_reaches_nothing_in_any_way() {
    with_doors(loopback(), |server| {
        for (method, route, _) in ENDPOINTS {
            let (status, answer) =
                call(server, method, &route.replace(['{', '}'], ""), &[("Origin", "https://page.example")]);
            // Whoever lacks a token is told so first.
            let is_refused = status == 401 || (status == 403 && answer.contains("[http] origins"));
            assert!(is_refused, "{method} {route}: {answer}");
        }
        let connect = || TcpStream::connect(server).expect("listens");
        for origin in ["https://page.example", "null", "http://127.0.0.1:1", "http://localhost.page.example"] {
            assert_eq!(open_stream(connect(), &[("Origin", origin)]).0, 403, "{origin}");
        }
        // The node's own page, and clients that are no browsers.
        assert_eq!(open_stream(connect(), &[("Origin", "http://localhost")]).0, 101);
        assert_eq!(open_stream(connect(), &[]).0, 101);
        assert_eq!(call(server, "GET", "/v1/status", &[("Origin", "http://localhost")]).0, 200);
    });
}

/// Sends a transaction over a connection that stays, and reads the answer.
fn submit(stream: &mut TcpStream, transaction: &Transaction) -> bool {
    let body = replica::encode(transaction);
    let head = format!(
        "POST /v1/transactions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), &body].concat()).is_ok()
        && stream.read(&mut [0; 4_096]).is_ok_and(|read| read > 0)
}

/// Whether a connection that stays is served.
fn is_served(stream: &mut TcpStream) -> bool {
    let asked = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    asked.is_ok() && stream.read(&mut [0; 4_096]).is_ok_and(|read| read > 0)
}

/// What is in a block anybody can send again: it is nobody's payment for a place.
#[test]
fn whoever_repeats_a_committed_transaction_keeps_no_connection_for_it() {
    let owner = PublicKey([1; 32]);
    let operation = Operation::Pay { to: PublicKey([2; 32]).address(), asset: AssetId(0), amount: 5 };
    let body = Body { chain: 1, account: owner.address(), sequence: 1, until: 50_000, operation };
    let own = Transaction::by_key(body, owner, Signature([0; 64]));
    let node = Arc::new(fake::Fake::new());
    let found = readers::FoundTransaction { height: 1, outcome: ledger::Outcome::Applied };
    node.answers([Answer::Pending(own.id(), None), Answer::Committed(own.id(), found)]);
    let settings = Http { connections: 5, connections_of_one: 4, ..loopback() };
    with_node(settings, node, move |server| {
        let mut payer = from([127, 0, 1, 1], server);
        assert!(submit(&mut payer, &own));
        let mut repeats = from([127, 0, 2, 1], server);
        assert!(submit(&mut repeats, &own));
        let mut others: Vec<TcpStream> = (2..5).map(|at| from([127, 0, 2, at], server)).collect();
        assert!(others.iter_mut().all(is_served));
        assert!(is_served(&mut from([127, 0, 3, 1], server)));
        assert!((0..1_000).any(|_| !is_served(&mut repeats)), "the slowest of the most numerous network makes room");
        assert!(is_served(&mut payer), "whoever paid is still there");
    });
}

/// The door of a venue once served every page of a browser that could reach it.
#[test]
fn a_foreign_page_reaches_nothing_at_a_side_door() {
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let listen = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let door = runtime.block_on(doors::SideDoor::bind(&loopback(), listen)).expect("bound");
    let server = door.address();
    let router = doors::Router::new().route("/v1/venue", axum::routing::get(async || "served"));
    let served = runtime.spawn(door.serve(router, stopped));
    let (status, answer) = call(server, "GET", "/v1/venue", &[("Origin", "https://page.example")]);
    assert!(status == 403 && answer.contains("[http] origins"), "{answer}");
    let (status, answer) = exchange_as(server, "rebound.example", "/v1/venue");
    assert!(status == 421 && answer.contains("[http] hosts"), "{answer}");
    assert_eq!(call(server, "GET", "/v1/venue", &[("Origin", "http://localhost")]).0, 200);
    assert_eq!(call(server, "GET", "/v1/venue", &[]).0, 200);
    stop.send_replace(true);
    runtime.block_on(served).expect("it ends");
}

/// Asks under the name of a host.
fn exchange_as(server: std::net::SocketAddr, host: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(server).expect("listens");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    (answer.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status"), answer)
}

#[test]
fn four_addresses_that_trickle_do_not_close_the_door() {
    let settings = Http { connections: 64, connections_of_one: 64, ..loopback() };
    with_doors(settings, |server| {
        let trickle = |at: u8| {
            let mut stream = from([127, 0, 1 + at % 4, 1], server);
            stream.write_all(b"GET").expect("sent");
            stream
        };
        let mut held: Vec<TcpStream> = (0..64).map(trickle).collect();
        for round in 0..20 {
            let (status, answer) = exchange(&mut from([127, 0, 99, 1], server), "GET", "/v1/status", &[]);
            assert_eq!(status, 200, "round {round}: {answer}");
            held.extend((0..4).map(trickle));
        }
    });
}

#[test]
fn streams_count_as_connections_and_are_told_why_they_make_room() {
    let settings = Http { connections: 8, connections_of_one: 8, stream_connections: 1_000, ..loopback() };
    with_doors(settings, |server| {
        let streams: Vec<TcpStream> =
            (0..8).map(|at| open_stream(from([127, 0, 1, at % 2 + 1], server), &[]).1).collect();
        assert_eq!(exchange(&mut from([127, 0, 2, 1], server), "GET", "/v1/status", &[]).0, 200);
        // Exactly one of them is closed, with a reason: only that one ends.
        let (sender, ended) = std::sync::mpsc::channel();
        for mut stream in streams {
            let sender = sender.clone();
            std::thread::spawn(move || {
                let mut all = Vec::new();
                let _ = stream.read_to_end(&mut all);
                let _ = sender.send(String::from_utf8_lossy(&all).into_owned());
            });
        }
        let told = ended.recv().expect("one of them ends");
        assert!(told.contains("connect again later"), "{told:?}");
    });
}

#[test]
fn clients_behind_a_trusted_proxy_are_counted_one_by_one() {
    let behind = |trusted: &[&str]| Http {
        stream_connections: 4,
        trusted_proxies: trusted.iter().map(|one| one.to_string()).collect(),
        ..loopback()
    };
    let statuses = |server: SocketAddr, clients: &[&str]| {
        let streams = clients
            .iter()
            .map(|client| open_stream(TcpStream::connect(server).expect("listens"), &[("X-Forwarded-For", *client)]));
        let streams: Vec<(u16, TcpStream)> = streams.collect();
        streams.iter().map(|(status, _)| *status).collect::<Vec<_>>()
    };
    with_doors(behind(&["127.0.0.0/8"]), move |server| {
        assert_eq!(
            statuses(server, &["198.51.100.1", "198.51.100.1", "198.51.100.1", "203.0.113.7"]),
            [101, 101, 429, 101]
        );
    });
    // Whoever is not listed names nobody.
    with_doors(behind(&["192.0.2.1"]), move |server| {
        assert_eq!(statuses(server, &["198.51.100.1", "198.51.100.2", "198.51.100.3"]), [101, 101, 429]);
    });
}

#[test]
fn a_trusted_proxy_may_name_its_client_by_a_header_of_the_proxy_protocol() {
    let settings = Http {
        trusted_proxies: vec!["127.0.0.1".into()],
        proxy_protocol: true,
        connections_of_one: 2,
        head_seconds: 2,
        ..loopback()
    };
    with_doors(settings, |server| {
        let named = |client: &str| {
            let mut stream = TcpStream::connect(server).expect("listens");
            stream.write_all(format!("PROXY TCP4 {client} 192.0.2.1 5000 8080\r\n").as_bytes()).expect("sent");
            stream
        };
        // Of another client: that this connection has ended may be noticed later.
        assert_eq!(exchange(&mut named("198.51.100.8"), "GET", "/v1/status", &[]).0, 200);
        let held = [open_stream(named("198.51.100.1"), &[]), open_stream(named("198.51.100.1"), &[])];
        assert!(held.iter().all(|(status, _)| *status == 101));
        let mut third = named("198.51.100.1");
        let _ = third.write_all(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let mut answer = Vec::new();
        let _ = third.read_to_end(&mut answer);
        assert!(answer.is_empty(), "a third connection of one client");
        assert_eq!(exchange(&mut named("203.0.113.7"), "GET", "/v1/status", &[]).0, 200);
        // A proxy that sends no such header is misconfigured.
        let mut silent = TcpStream::connect(server).expect("listens");
        let _ = silent.write_all(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let _ = silent.read_to_end(&mut answer);
        assert!(answer.is_empty(), "{answer:?}");
        // From elsewhere such a header is no request.
        let mut stranger = from([127, 0, 5, 1], server);
        stranger.write_all(b"PROXY TCP4 198.51.100.9 192.0.2.1 5000 8080\r\nGET / HTTP/1.1\r\n\r\n").expect("sent");
        let _ = stranger.read_to_end(&mut answer);
        assert!(answer.starts_with(b"HTTP/1.1 400"), "{answer:?}");
    });
}

/// The value of a header field of an answer.
fn field<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let head = answer.split("\r\n\r\n").next()?;
    head.lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(is, _)| is.eq_ignore_ascii_case(name))
        .map(|(_, is)| is)
}

#[test]
fn every_answer_says_how_much_may_be_asked_at_once() {
    let settings = Http { concurrent_requests: 8, origins: vec!["https://desk.example".into()], ..loopback() };
    with_doors(settings, |server| {
        for path in ["/v1/status", "/v1/nothing", "/v1/blocks?limit=x", "/"] {
            let (_, answer) = call(server, "GET", path, &[]);
            let policy = r#""requests";q=4;qu="concurrent-requests", "bytes";q=134217728;qu="content-bytes""#;
            assert_eq!(field(&answer, "ratelimit-policy"), Some(policy), "{path}");
            assert_eq!(field(&answer, "ratelimit"), Some(r#""requests";r=4, "bytes";r=134217728"#), "{path}");
        }
        let (_, answer) = call(server, "GET", "/v1/limits", &[]);
        for told in [r#""requests_of_one":4,"#, r#""body_bytes_of_one":134217728,"#, r#""streams_of_one":512,"#] {
            assert!(answer.contains(told), "{told} is not in {answer}");
        }
        let (_, answer) = call(server, "GET", "/v1/status", &[("Origin", "https://desk.example")]);
        let exposed = field(&answer, "access-control-expose-headers");
        assert_eq!(exposed, Some("ratelimit, ratelimit-policy, retry-after"));
    });
    // Nothing is left: a refusal says when to come again.
    with_doors(Http { concurrent_requests: 0, ..loopback() }, |server| {
        let (status, answer) = call(server, "GET", "/v1/status", &[]);
        assert_eq!((status, field(&answer, "retry-after")), (429, Some("1")), "{answer}");
        assert_eq!(field(&answer, "ratelimit"), Some(r#""requests";r=0, "bytes";r=134217728"#));
    });
}

#[test]
fn a_setting_that_is_no_network_is_named() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a thread");
    let of = |settings: Http| runtime.block_on(Bound::new(settings)).err().map(|error| error.to_string());
    let told = of(Http { trusted_proxies: vec!["my-proxy".into()], ..loopback() }).expect("refused");
    assert!(told.contains("trusted_proxies") && told.contains("my-proxy"), "{told}");
    let told = of(Http { known: vec!["10.0.0.0/99".into()], ..loopback() }).expect("refused");
    assert!(told.contains("known") && told.contains("10.0.0.0/99"), "{told}");
    assert_eq!(of(Http { known: vec![IpAddr::from([10, 0, 0, 1]).to_string()], ..loopback() }), None);
}
