//! The connections of a shard: requests in, replies out, with a bounded number per address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use payments::LanePeer;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

use crate::shard::{Event, Link, ShardCounts, ShardLimits};
use crate::wire::{HEAD_BYTES, read_head};

/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;
/// How long a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Chunks of replies that may be queued for one connection.
const CHUNKS: usize = 1_024;

/// Connections by address.
#[derive(Default)]
struct Addresses(Mutex<HashMap<IpAddr, usize>>);

impl Addresses {
    fn count(&self, address: IpAddr, most: usize) -> bool {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(address).or_default();
        let has_room = *count < most;
        *count += usize::from(has_room);
        has_room
    }

    fn forget(&self, address: IpAddr) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&address);
            }
        }
    }
}

/// Serves incoming connections.
pub(crate) async fn accept(
    listener: TcpListener,
    events: mpsc::Sender<Event>,
    counts: Arc<ShardCounts>,
    tls: Option<TlsAcceptor>,
    limits: ShardLimits,
    body_max: usize,
) {
    let addresses = Arc::new(Addresses::default());
    let mut next: LanePeer = 0;
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            // No file descriptor is free: another connection has to close first.
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let address = canonical(from.ip());
        let has_room = counts.connections.load(Ordering::Acquire) < limits.connections;
        if !has_room || !addresses.count(address, limits.connections_of_address) {
            counts.closed.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        counts.connections.fetch_add(1, Ordering::AcqRel);
        next += 1;
        let (peer, events, counts, addresses) = (next, events.clone(), counts.clone(), addresses.clone());
        let tls = tls.clone();
        tokio::spawn(async move {
            // A reply must not be delayed to fill a packet.
            let _ = stream.set_nodelay(true);
            match tls {
                None => {
                    let (read, write) = stream.into_split();
                    serve(read, write, peer, &events, limits, body_max).await;
                }
                Some(tls) => {
                    let secured = tokio::time::timeout(limits.idle.min(HANDSHAKE), tls.accept(stream)).await;
                    if let Ok(Ok(secured)) = secured {
                        let (read, write) = tokio::io::split(secured);
                        serve(read, write, peer, &events, limits, body_max).await;
                    }
                }
            }
            // If no one receives this, the machine has stopped.
            drop(events.send(Event::Closed(peer)).await);
            counts.connections.fetch_sub(1, Ordering::AcqRel);
            addresses.forget(address);
        });
    }
}

/// The address that counts: the first half of an IPv6 address, which is what one subscriber gets.
fn canonical(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) >> 64 << 64).into()),
        address => address,
    }
}

async fn serve(
    read: impl AsyncRead + Unpin,
    write: impl AsyncWrite + Unpin,
    peer: LanePeer,
    events: &mpsc::Sender<Event>,
    limits: ShardLimits,
    body_max: usize,
) {
    let (replies, chunks) = mpsc::channel(CHUNKS);
    let waiting = Arc::new(AtomicUsize::new(0));
    let link = Link { replies, waiting: waiting.clone() };
    if events.send(Event::Opened(peer, link)).await.is_err() {
        return;
    }
    tokio::select! {
        () = read_requests(read, peer, events, limits.idle, body_max) => {}
        () = write_replies(write, chunks, &waiting, limits.idle) => {}
    }
}

async fn read_requests(
    mut from: impl AsyncRead + Unpin,
    peer: LanePeer,
    events: &mpsc::Sender<Event>,
    idle: Duration,
    body_max: usize,
) {
    let mut bytes = BytesMut::with_capacity(READ_BYTES);
    loop {
        bytes.reserve(READ_BYTES);
        match tokio::time::timeout(idle, from.read_buf(&mut bytes)).await {
            Ok(Ok(count)) if count > 0 => {}
            _ => return,
        }
        let mut requests = Vec::new();
        loop {
            match read_head(&bytes, body_max) {
                Ok(Some((body, number))) if bytes.len() >= HEAD_BYTES + body => {
                    bytes.advance(HEAD_BYTES);
                    requests.push((number, bytes.split_to(body).freeze()));
                }
                Ok(_) => break,
                Err(_) => return,
            }
        }
        if !requests.is_empty() && events.send(Event::Requests(peer, requests)).await.is_err() {
            return;
        }
    }
}

/// Ends when the machine closes the connection, or when the client reads nothing for too long.
async fn write_replies(
    mut to: impl AsyncWrite + Unpin,
    mut chunks: mpsc::Receiver<Vec<u8>>,
    waiting: &AtomicUsize,
    idle: Duration,
) {
    while let Some(chunk) = chunks.recv().await {
        let write = async {
            to.write_all(&chunk).await?;
            to.flush().await
        };
        let written = tokio::time::timeout(idle, write).await;
        waiting.fetch_sub(chunk.len(), Ordering::AcqRel);
        match written {
            Ok(Ok(())) => {}
            _ => return,
        }
    }
}
