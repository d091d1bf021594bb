//! Answers to validators that lag: the queue of what they asked for, and the thread that reads the archive.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Condvar, Mutex};

use consensus::Index;
use primitives::Height;
use replica::Past;
use store::RealDisk;
use transport::LinkStream;

use crate::locks::poisoned;
use crate::shared::Shared;

/// Heights that a lagging validator asked for.
pub(crate) struct Request {
    pub generation: u64,
    pub peer: Index,
    pub from: Height,
    pub to: Height,
}

/// Requests queued for the archive thread: the newest of each peer. Peers take turns, so that none crowds out others.
#[derive(Default)]
pub(crate) struct Requests {
    state: Mutex<RequestsWaiting>,
    came: Condvar,
}

#[derive(Default)]
struct RequestsWaiting {
    by_peer: BTreeMap<Index, Request>,
    /// The peer of the last request.
    last: Index,
    closed: bool,
}

impl Requests {
    pub fn enqueue(&self, request: Request) {
        poisoned(self.state.lock()).by_peer.insert(request.peer, request);
        self.came.notify_one();
    }

    /// Accepts no more requests; waiting threads end.
    pub fn close(&self) {
        poisoned(self.state.lock()).closed = true;
        self.came.notify_all();
    }

    /// The next request, by turns of peers; waits for one. `None` once closed.
    fn next(&self) -> Option<Request> {
        let mut waiting = poisoned(self.state.lock());
        loop {
            if waiting.closed {
                return None;
            }
            let (last, peers) = (waiting.last, &waiting.by_peer);
            let next = peers.range((Bound::Excluded(last), Bound::Unbounded)).next().or_else(|| peers.iter().next());
            if let Some(peer) = next.map(|(peer, _)| *peer) {
                waiting.last = peer;
                return waiting.by_peer.remove(&peer);
            }
            waiting = poisoned(self.came.wait(waiting));
        }
    }
}

/// The archive thread.
pub(crate) fn answer_laggards(shared: &Arc<Shared>, past: &Past<RealDisk>, bytes_max: usize, asked: &Requests) {
    while let Some(Request { generation, peer, from, to }) = asked.next() {
        match past.answer(from, to, bytes_max) {
            Ok(frame) => shared.seat.send(generation, peer, LinkStream::Bulk, frame.to_bytes().into()),
            Err(error) => return shared.fail(&error),
        }
    }
}
