//! Streams over TLS: what a network between members sees, and who is let in.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use edge::{MemberStream, StreamError, StreamEvent, StreamTls};
use fairnet::*;

const SECRET: [u8; 32] = [9; 32];
const BODY: &[u8] = b"an order that nobody else may read";

/// A network that remembers every byte.
fn wiretap(to: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (address, heard) = (listener.local_addr().expect("bound"), Arc::<Mutex<Vec<u8>>>::default());
    let tape = heard.clone();
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a member");
        let onward = TcpStream::connect(to).expect("a member");
        let (back, forth) = (onward.try_clone().expect("a socket"), stream.try_clone().expect("a socket"));
        let other = tape.clone();
        std::thread::spawn(move || copy(stream, onward, &tape));
        copy(back, forth, &other);
    });
    (address, heard)
}

fn copy(mut from: TcpStream, mut to: TcpStream, tape: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 4_096];
    while let Ok(count) = from.read(&mut buffer)
        && count > 0
    {
        tape.lock().expect("no panic").extend_from_slice(&buffer[..count]);
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    drop((from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both)));
}

/// What the two ends of a stream say until the order is there, or one of them ends it; and what the network heard.
fn talk(
    ours: ([u8; 32], Option<StreamTls>),
    theirs: ([u8; 32], Option<StreamTls>),
) -> (Result<Vec<LinkMessage>, StreamError>, Vec<u8>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (network, heard) = wiretap(listener.local_addr().expect("bound"));
    let opened = MemberStream::open(7, ours.0, (ROOT_MEMBER, network), LinkPurpose::Orders, ours.1.as_ref());
    let mut opened = opened.expect("it connects");
    let (socket, _) = listener.accept().expect("it connects");
    let mut accepted = MemberStream::accept(ROOT_MEMBER, theirs.0, socket, theirs.1.as_ref()).expect("a socket");
    let token = OrderToken { reference: 1, token: [1; 16] };
    let item = EdgeOrder { participant: 7, session: 1, token, md_seq: 0, body: BODY.to_vec() };
    let key = MergeKey { mid: 0, stamp: 5, source: 7, sub: 0 };
    let order = LinkMessage::Order(Box::new(Sequenced { class: OrderClass::Critical, key, restamped: None, item }));
    let (mut messages, mut is_said) = (Vec::new(), false);
    let outcome = loop {
        let (mut at_root, mut at_member) = (Vec::new(), Vec::new());
        let turn = opened.write().and_then(|()| accepted.write());
        let turn = turn.and_then(|()| opened.read(&mut at_member)).and_then(|()| accepted.read(&mut at_root));
        if let Err(error) = turn {
            break Err(error);
        }
        if !is_said && opened.end().is_some() {
            is_said = true;
            opened.say(&order);
        }
        messages.extend(at_root.into_iter().filter_map(|event| match event {
            StreamEvent::Message(_, message) => Some(message),
            StreamEvent::Opened(_) => None,
        }));
        if messages.contains(&order) {
            break Ok(messages);
        }
        std::thread::yield_now();
    };
    let heard = heard.lock().expect("no panic").clone();
    (outcome, heard)
}

fn has_body(heard: &[u8]) -> bool {
    heard.windows(BODY.len()).any(|window| window == BODY)
}

fn tls(secret: &[u8; 32]) -> Option<StreamTls> {
    Some(StreamTls::of_secret(secret).expect("TLS"))
}

#[test]
fn encrypted_streams_carry_orders_that_the_network_cannot_read() {
    let (said, heard) = talk((SECRET, None), (SECRET, None));
    assert!(said.is_ok() && has_body(&heard), "plain streams are readable, so the wiretap hears");
    let (said, heard) = talk((SECRET, tls(&SECRET)), (SECRET, tls(&SECRET)));
    assert_eq!(said.expect("the order comes").len(), 1);
    assert!(!has_body(&heard) && heard.len() > BODY.len(), "{} bytes", heard.len());
}

#[test]
fn encrypted_streams_let_nobody_in_who_has_another_secret_or_speaks_plainly() {
    let other = [8; 32];
    for (ours, theirs) in [
        ((other, tls(&other)), (SECRET, tls(&SECRET))),
        // Whoever got hold of the key of streams alone is no member: frames have MACs of their own.
        ((other, tls(&SECRET)), (SECRET, tls(&SECRET))),
        ((SECRET, None), (SECRET, tls(&SECRET))),
        ((SECRET, tls(&SECRET)), (SECRET, None)),
    ] {
        let (said, heard) = talk(ours, theirs);
        assert!(said.is_err() && !has_body(&heard), "{said:?}");
    }
}
