//! The connections of a shard: requests in, replies out.
//!
//! Each has a place ([`sockets::Places`]): when all are taken, the slowest connection of the most numerous prefix is
//! closed. The other members of the committee are known, and so is a connection on which somebody paid: a signed
//! answer is proof of money.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use payments::LanePeer;
use sockets::{Acquaintances, PlaceLimits, Visit, Visitors};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use crate::shard::{Event, Link, ShardCounts, ShardLimits, Turn};
use crate::wire::{HEAD_BYTES, read_head};

/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;
/// How long a PROXY header, and how long a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Chunks of replies that may be queued for one connection.
const CHUNKS: usize = 1_024;

/// Known connections of a prefix that are never displaced.
const KEPT: usize = 16;
/// How long a connection must be idle before one of the same prefix displaces it.
const PATIENCE_MS: u64 = 1_000;

/// What a connection waits for, and when it last got something.
struct Service {
    /// Shared with each batch that waits for its turn.
    pending: Arc<()>,
    replied: Mutex<Instant>,
}

impl Service {
    fn new() -> Service {
        Service { pending: Arc::new(()), replied: Mutex::new(Instant::now()) }
    }

    fn reply_written(&self) {
        *self.replied.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Until when the connection may bring nothing more: as long as the shard owes it turns, and `idle` after a reply.
    fn idle_until(&self, idle: Duration) -> Instant {
        match Arc::strong_count(&self.pending) > 1 {
            true => Instant::now() + idle,
            false => *self.replied.lock().unwrap_or_else(PoisonError::into_inner) + idle,
        }
    }
}

/// What all connections of a shard share.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) events: mpsc::Sender<Event>,
    pub(crate) counts: Arc<ShardCounts>,
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) known: Arc<Acquaintances>,
    pub(crate) limits: ShardLimits,
    /// Bytes of the largest request.
    pub(crate) body_max: usize,
}

impl Server {
    /// Serves incoming connections.
    pub(crate) async fn accept(self, listener: TcpListener) {
        let ShardLimits { connections: total, connections_of_address: of_address, .. } = self.limits;
        let limits = PlaceLimits { total, of_address, kept: KEPT, patience_ms: PATIENCE_MS };
        let visitors = Visitors::new(limits, self.known.clone());
        loop {
            let Ok((stream, from)) = listener.accept().await else {
                // No file descriptor is free: another connection has to close first.
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            };
            match visitors.admit(from.ip()) {
                None => drop(self.counts.closed.fetch_add(1, Ordering::Relaxed)),
                Some(visit) => {
                    let (server, visitors) = (self.clone(), visitors.clone());
                    tokio::spawn(async move {
                        server.counts.connections.store(visitors.count(), Ordering::Release);
                        server.welcome(stream, visit).await;
                        server.counts.connections.store(visitors.count(), Ordering::Release);
                    });
                }
            }
        }
    }

    async fn welcome(&self, mut stream: TcpStream, visit: Visit) {
        // A reply must not be delayed to fill a packet.
        let _ = stream.set_nodelay(true);
        let Some(visit) = visit.of_client(&mut stream, HANDSHAKE).await else { return };
        let visit = Arc::new(visit);
        let peer = visit.place();
        tokio::select! {
            () = self.secure(stream, &visit) => {}
            () = visit.displaced() => drop(self.counts.closed.fetch_add(1, Ordering::Relaxed)),
        }
        // If no one receives this, the machine has stopped.
        drop(self.events.send(Event::Closed(peer)).await);
    }

    async fn secure(&self, stream: TcpStream, visit: &Arc<Visit>) {
        match &self.tls {
            None => {
                let (read, write) = stream.into_split();
                self.serve(read, write, visit).await;
            }
            Some(tls) => {
                let secured = tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await;
                if let Ok(Ok(secured)) = secured {
                    let (read, write) = tokio::io::split(secured);
                    self.serve(read, write, visit).await;
                }
            }
        }
    }

    async fn serve(&self, read: impl AsyncRead + Unpin, write: impl AsyncWrite + Unpin, visit: &Arc<Visit>) {
        let (replies, chunks) = mpsc::channel(CHUNKS);
        let room = Arc::new(Semaphore::new(1));
        let waiting = Arc::new(AtomicUsize::new(0));
        let link = {
            let (waiting, visit, room) = (waiting.clone(), visit.clone(), room.clone());
            Link { replies, waiting, visit, room, has_brought: false, has_paid: false }
        };
        if self.events.send(Event::Opened(visit.place(), link)).await.is_err() {
            return;
        }
        let service = Service::new();
        tokio::select! {
            () = self.read_requests(read, visit.place(), room, &service) => {}
            () = write_replies(write, chunks, (&waiting, &service), self.limits.idle, visit) => {}
        }
    }

    /// A connection may be idle between two requests, and is not idle while it waits for the shard. A request that has
    /// begun has a deadline of its own, so bytes that trickle hold nothing.
    async fn read_requests(
        &self,
        mut from: impl AsyncRead + Unpin,
        peer: LanePeer,
        room: Arc<Semaphore>,
        service: &Service,
    ) {
        let mut bytes = BytesMut::with_capacity(READ_BYTES);
        let mut deadline = Instant::now() + self.limits.idle;
        loop {
            bytes.reserve(READ_BYTES);
            let was_idle = bytes.is_empty();
            match tokio::time::timeout_at(deadline, from.read_buf(&mut bytes)).await {
                Ok(Ok(count)) if count > 0 => {}
                Ok(_) => return,
                Err(_) => {
                    let until = if was_idle { service.idle_until(self.limits.idle) } else { deadline };
                    if until > Instant::now() {
                        deadline = until;
                        continue;
                    }
                    self.counts.late.fetch_add(1, Ordering::Relaxed);
                    return;
                }
            }
            let Ok(requests) = split_requests(&mut bytes, self.body_max) else { return };
            if bytes.is_empty() {
                deadline = Instant::now() + self.limits.idle;
            } else if was_idle || !requests.is_empty() {
                deadline = Instant::now() + self.limits.request;
            }
            if requests.is_empty() {
                continue;
            }
            // What this connection sent before must have been processed, but for a few batches if it has paid.
            let Ok(permit) = room.clone().acquire_owned().await else { return };
            let turn = Turn { _permit: permit, _pending: service.pending.clone() };
            if self.events.send(Event::Requests(peer, requests, turn)).await.is_err() {
                return;
            }
            // The time until it was its turn is not the client's.
            deadline =
                deadline.max(Instant::now() + if bytes.is_empty() { self.limits.idle } else { self.limits.request });
        }
    }
}

/// Takes all whole requests from the front of `bytes`.
fn split_requests(bytes: &mut BytesMut, body_max: usize) -> Result<Vec<(u32, Bytes)>, &'static str> {
    let mut requests = Vec::new();
    while let Some((body, number)) = read_head(bytes, body_max)?
        && bytes.len() >= HEAD_BYTES + body
    {
        bytes.advance(HEAD_BYTES);
        requests.push((number, bytes.split_to(body).freeze()));
    }
    Ok(requests)
}

/// Ends when the machine closes the connection, or when the client reads nothing for too long.
async fn write_replies(
    mut to: impl AsyncWrite + Unpin,
    mut chunks: mpsc::Receiver<Vec<u8>>,
    (waiting, service): (&AtomicUsize, &Service),
    idle: Duration,
    visit: &Visit,
) {
    while let Some(chunk) = chunks.recv().await {
        let write = async {
            to.write_all(&chunk).await?;
            to.flush().await
        };
        let written = tokio::time::timeout(idle, write).await;
        waiting.fetch_sub(chunk.len(), Ordering::AcqRel);
        match written {
            Ok(Ok(())) => {
                service.reply_written();
                visit.progress();
            }
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;
    use crate::wire::write_frame;

    const IDLE: Duration = Duration::from_millis(20);

    fn server(events: mpsc::Sender<Event>) -> Server {
        let limits = ShardLimits { idle: IDLE, ..ShardLimits::default() };
        Server { events, counts: Arc::default(), tls: None, known: Arc::default(), limits, body_max: 1_024 }
    }

    #[test]
    fn a_connection_that_waits_for_the_shard_is_not_idle_and_one_that_waits_for_nothing_is_closed() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let (events, mut heard) = mpsc::channel(4);
            let server = server(events);
            let limits = PlaceLimits { total: 4, of_address: 4, kept: 1, patience_ms: 1_000 };
            let visitors = Visitors::new(limits, Arc::default());
            let visit = Arc::new(visitors.admit(IpAddr::V4(Ipv4Addr::LOCALHOST)).expect("there is room"));
            let (mut client, served) = tokio::io::duplex(1_024);
            let counts = server.counts.clone();
            let serving = async {
                let (read, write) = tokio::io::split(served);
                server.serve(read, write, &visit).await;
            };
            let asking = async {
                let mut frame = Vec::new();
                write_frame(&mut frame, 7, &[9; 10]);
                client.write_all(&frame).await.expect("sent");
                let Some(Event::Opened(_, link)) = heard.recv().await else { panic!("no connection") };
                let Some(Event::Requests(_, _, turn)) = heard.recv().await else { panic!("no request") };
                // A busy shard: its queue takes many times as long as a connection may be idle.
                tokio::time::sleep(10 * IDLE).await;
                link.replies.send(vec![5; 8]).await.expect("the connection is open");
                let mut reply = [0; 8];
                client.read_exact(&mut reply).await.expect("the reply of a request that waited");
                assert_eq!(counts.late.load(Ordering::Relaxed), 0);
                drop(turn);
                assert_eq!(client.read(&mut reply).await.expect("an end"), 0, "it waits for nothing any more");
                assert_eq!(counts.late.load(Ordering::Relaxed), 1);
            };
            tokio::join!(serving, asking);
        });
    }
}
