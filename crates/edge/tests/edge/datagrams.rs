//! Datagrams in batches on loopback: under backlog they leave as segmented messages, and arrive as they were.

use std::net::SocketAddr;
use std::sync::Arc;

use edge::DatagramSocket;

fn bound() -> (DatagramSocket, SocketAddr) {
    let socket = DatagramSocket::bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port");
    let address = socket.address().expect("bound");
    (socket, address)
}

/// Runs of one length with a shorter and a longer one behind, none at all, and the longest that is taken.
fn datagrams() -> Vec<Arc<[u8]>> {
    let lengths = [[466; 12].as_slice(), &[80, 466, 466, 500, 0, 1, 1], &[466; 9], &[2_048, 2_048, 3]].concat();
    let of = |(number, length): (usize, &usize)| (0..*length).map(|at| (at ^ number) as u8).collect();
    lengths.iter().enumerate().map(of).collect()
}

/// The next so many datagrams.
fn received(socket: &mut DatagramSocket, count: usize) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while all.len() < count {
        let batch = socket.receive().expect("a sound socket");
        all.extend((0..batch).map(|number| socket.datagram(number).1.to_vec()));
    }
    all
}

#[test]
fn datagrams_that_leave_segmented_under_backlog_arrive_as_they_were_and_in_order() {
    let sent = datagrams();
    for is_segmenting in [true, false] {
        let ((mut own, to), (mut feeder, _)) = (bound(), bound());
        let mut children = [bound(), bound(), bound()];
        own.set_segmenting(is_segmenting);
        // Loopback delivers before a call returns: all of these are one batch, and a backlog.
        sent.iter().for_each(|bytes| feeder.send(to, bytes.clone()));
        feeder.flush();
        let count = own.receive().expect("a sound socket");
        assert_eq!(count, sent.len());
        for number in 0..count {
            children.iter().for_each(|(_, to)| own.forward(*to, number));
        }
        own.flush();
        for (child, _) in &mut children {
            let arrived = received(child, sent.len());
            assert!(arrived.iter().zip(&sent).all(|(one, other)| one[..] == other[..]), "segmenting: {is_segmenting}");
            assert_eq!(child.receive().expect("a sound socket"), 0, "and nothing else");
        }
        assert_eq!(own.losses(), edge::DatagramLosses::default());
    }
}

#[test]
fn datagrams_beyond_the_longest_are_dropped_and_counted() {
    let ((mut own, to), (mut feeder, _)) = (bound(), bound());
    feeder.send(to, vec![1; edge::DATAGRAM_BYTES + 1].into());
    feeder.send(to, vec![2; edge::DATAGRAM_BYTES].into());
    feeder.flush();
    assert_eq!(received(&mut own, 2), [Vec::new(), vec![2; edge::DATAGRAM_BYTES]]);
    assert_eq!(own.losses(), edge::DatagramLosses { long: 1, unsent: 0 });
}
