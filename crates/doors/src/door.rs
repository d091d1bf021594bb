//! The door: limits connections, their idle time, and the bytes of their requests.
//!
//! The door counts each new connection, in total and per address, and closes it at once if either limit is reached.
//! It closes a connection that sends no request head within [`DoorLimits::head`]. A body is read, within its own time
//! limit, before the request counts among those being served, and its bytes count as they arrive, so that slow
//! senders cost a connection each and nothing else.
//!
//! **Properties.** At most [`DoorLimits::connections`] are open, [`DoorLimits::connections_of_one`] from one address,
//! and bodies hold at most [`DoorLimits::body_bytes_waiting`] bytes. One address cannot lock out another one.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::client::Client;
use crate::settings::Http;

/// The limits of a door.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DoorLimits {
    /// Maximum number of connections.
    pub(crate) connections: usize,
    /// Maximum number of connections from one address.
    pub(crate) connections_of_one: usize,
    /// Time from the opening of a connection, or the end of the last answer, to the end of the next request's head.
    pub(crate) head: Duration,
    /// Maximum bytes of all bodies held at once.
    pub(crate) body_bytes_waiting: usize,
}

/// Pause before the door tries again when the system is out of descriptors.
const PAUSE: Duration = Duration::from_millis(50);

impl DoorLimits {
    /// The configured limits, with connections capped at half of the system's descriptors: the rest is for files and
    /// peers.
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

/// Maximum number of files and sockets that the process may have open.
fn descriptors() -> usize {
    const UNKNOWN: usize = 1_024;
    let Ok(limits) = std::fs::read_to_string("/proc/self/limits") else { return UNKNOWN };
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(UNKNOWN)
}

/// Connections by address.
#[derive(Clone, Default)]
struct Visitors(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// A connection; it counts while this is held.
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

/// Serves `router` until told to stop; then waits for the requests in progress.
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
            // Ended connections are removed from the set.
            Some(_) = open.join_next() => continue,
        };
        let Ok((stream, from)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (permit, visit) = (all.clone().try_acquire_owned(), visitors.admit(from.ip(), limits.connections_of_one));
        let (Ok(permit), Some(visit)) = (permit, visit) else { continue };
        let (router, stopped, tls) = (router.clone(), stopped.clone(), tls.clone());
        let client = Client::at(from.ip());
        open.spawn(async move {
            match tls {
                None => answer(stream, router, client, limits.head, stopped).await,
                Some(tls) => {
                    // A connection without a timely TLS handshake counts as silent.
                    if let Ok(Ok(stream)) = tokio::time::timeout(limits.head, tls.accept(stream)).await {
                        answer(stream, router, client, limits.head, stopped).await;
                    }
                }
            }
            drop((permit, visit));
        });
    }
    while open.join_next().await.is_some() {}
}

/// Answers the requests of one connection. Each request carries its client.
async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    client: Client,
    head: Duration,
    mut stopped: watch::Receiver<bool>,
) {
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(head);
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(client);
        router.call(request)
    });
    let connection = http.serve_connection(TokioIo::new(stream), service).with_upgrades();
    tokio::pin!(connection);
    tokio::select! {
        // Errors on a connection concern only its client.
        _ = connection.as_mut() => return,
        _ = stopped.wait_for(|stop| *stop) => connection.as_mut().graceful_shutdown(),
    }
    drop(connection.await);
}
