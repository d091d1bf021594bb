//! The door: who may be connected, for how long, and with how many bytes.
//!
//! Upon a connection, the door counts it, in all and for its address, and closes it at once if either is full. Upon
//! silence (no head of a request within [`DoorLimits::head`]) it closes the connection. A body is read, within its own
//! limit of time, before the request counts among those that are served, and its bytes count as they arrive, so that
//! slow senders cost a connection each and nothing else.
//!
//! **Properties.** At most [`DoorLimits::connections`] are open, [`DoorLimits::connections_of_one`] from one address,
//! and bodies hold at most [`DoorLimits::body_bytes_waiting`]. One address cannot keep another one out.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::settings::Http;

/// What a door lets in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DoorLimits {
    /// Connections in all.
    pub(crate) connections: usize,
    /// Connections from one address.
    pub(crate) connections_of_one: usize,
    /// From the opening of a connection, or the end of the last answer, to the end of the next request's head.
    pub(crate) head: Duration,
    /// Bytes of all bodies that are here.
    pub(crate) body_bytes_waiting: usize,
}

/// Before the door looks again, when the system gives no more descriptors.
const PAUSE: Duration = Duration::from_millis(50);

impl DoorLimits {
    /// The configured limits, and no more connections than the system's descriptors allow: half of them are for files
    /// and peers.
    pub(crate) fn new(http: &Http) -> DoorLimits {
        let connections = http.connections.min(descriptors() / 2).max(1);
        DoorLimits {
            connections,
            connections_of_one: http.connections_of_one.min(connections.div_ceil(2)),
            head: Duration::from_secs(http.head_seconds),
            body_bytes_waiting: http.body_bytes_waiting.max(http.body_bytes),
        }
    }
}

/// How many files and sockets the process may have open.
fn descriptors() -> usize {
    const UNKNOWN: usize = 1_024;
    let Ok(limits) = std::fs::read_to_string("/proc/self/limits") else { return UNKNOWN };
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(UNKNOWN)
}

/// Connections by address.
#[derive(Clone, Default)]
struct Visitors(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// A connection that is counted as long as this is held.
struct Visit(Visitors, IpAddr);

impl Visitors {
    fn admit(&self, address: IpAddr, most: usize) -> Option<Visit> {
        let mut visitors = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = visitors.entry(address).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Visit(self.clone(), address))
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let mut visitors = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = visitors.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                visitors.remove(&self.1);
            }
        }
    }
}

/// Serves `router` until told to stop; then it waits for the requests that are being served.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
    limits: DoorLimits,
    mut stopped: watch::Receiver<bool>,
) {
    let all = Arc::new(Semaphore::new(limits.connections));
    let (visitors, mut open) = (Visitors::default(), JoinSet::new());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.wait_for(|stop| *stop) => break,
            // Connections that have ended are forgotten.
            Some(_) = open.join_next() => continue,
        };
        let Ok((stream, from)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (permit, visit) = (all.clone().try_acquire_owned(), visitors.admit(from.ip(), limits.connections_of_one));
        let (Ok(permit), Some(visit)) = (permit, visit) else { continue };
        let (router, stopped, tls) = (router.clone(), stopped.clone(), tls.clone());
        open.spawn(async move {
            match tls {
                None => answer(stream, router, limits.head, stopped).await,
                Some(tls) => {
                    // Who does not come to terms in time is a silent connection.
                    if let Ok(Ok(stream)) = tokio::time::timeout(limits.head, tls.accept(stream)).await {
                        answer(stream, router, limits.head, stopped).await;
                    }
                }
            }
            drop((permit, visit));
        });
    }
    while open.join_next().await.is_some() {}
}

/// Answers the requests of one connection.
async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    head: Duration,
    mut stopped: watch::Receiver<bool>,
) {
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(head);
    let connection = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)).with_upgrades();
    tokio::pin!(connection);
    tokio::select! {
        // What goes wrong on a connection is its client's affair.
        _ = connection.as_mut() => return,
        _ = stopped.wait_for(|stop| *stop) => connection.as_mut().graceful_shutdown(),
    }
    drop(connection.await);
}
