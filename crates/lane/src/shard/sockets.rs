//! The connections of a shard: requests in, replies out.
//!
//! Each has a place ([`sockets::Places`]): when all are taken, the slowest connection of the most numerous prefix is
//! closed. The other members of the committee are known, and so is a connection on which somebody paid: a signed
//! answer is proof of money.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use payments::LanePeer;
use sockets::{Acquaintances, PlaceLimits, Visit, Visitors};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use crate::shard::{Event, Link, ShardCounts, ShardLimits};
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
        tokio::select! {
            () = self.read_requests(read, visit.place(), room) => {}
            () = write_replies(write, chunks, &waiting, self.limits.idle, visit) => {}
        }
    }

    /// A connection may be idle between two requests; a request that has begun has a deadline of its own, so bytes
    /// that trickle hold nothing.
    async fn read_requests(&self, mut from: impl AsyncRead + Unpin, peer: LanePeer, room: Arc<Semaphore>) {
        let mut bytes = BytesMut::with_capacity(READ_BYTES);
        let mut deadline = Instant::now() + self.limits.idle;
        loop {
            bytes.reserve(READ_BYTES);
            let was_idle = bytes.is_empty();
            match tokio::time::timeout_at(deadline, from.read_buf(&mut bytes)).await {
                Ok(Ok(count)) if count > 0 => {}
                _ => return,
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
            let Ok(turn) = room.clone().acquire_owned().await else { return };
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
    waiting: &AtomicUsize,
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
            Ok(Ok(())) => visit.progress(),
            _ => return,
        }
    }
}
