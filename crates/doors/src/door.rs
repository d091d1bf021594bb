//! The door: limits connections, their idle time, and the bytes of their requests.
//!
//! - Each connection has a place ([`sockets::Places`]). When all are taken, the slowest connection of the most
//!   numerous prefix is closed, so a few addresses cannot keep out the others.
//! - A connection that sends no whole request head within [`DoorLimits::head`] is closed.
//! - A body is read, within its own time limit, before the request counts among those being served, and its bytes
//!   count as they arrive, so that slow senders cost a connection each and nothing else.
//! - A proxy that the operator trusts names its client in `X-Forwarded-For`, or, with `proxy_protocol`, in the header
//!   that precedes everything else. The limits then count that client.
//!
//! **Properties.** At most [`DoorLimits::connections`] are open, [`DoorLimits::connections_of_one`] from one address,
//! and bodies hold at most [`DoorLimits::body_bytes_waiting`] bytes.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::HeaderMap;
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use sockets::{Acquaintances, Client, Networks, PlaceLimits, Visit, Visitors};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

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

/// Known connections of a prefix that are never displaced.
const KEPT: usize = 16;
/// The reason that a stream gets when it has to make room.
pub(crate) const DISPLACED: &str = "all connections are in use, and this address has most of them: connect again later";
/// How long a connection must be idle before one of the same prefix displaces it.
const PATIENCE_MS: u64 = 1_000;
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
            // An address holds at most what it leaves, and any body must fit.
            body_bytes_waiting: http.body_bytes_waiting.max(2 * http.body_bytes),
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

/// Who sends a request; every request of a door has this extension.
#[derive(Clone)]
pub struct Visitor {
    /// The client's address, behind a trusted proxy too.
    pub address: IpAddr,
    /// Its connection.
    pub visit: Arc<Visit>,
}

impl Visitor {
    /// Whose turn its requests have.
    pub fn client(&self) -> Client {
        Client::at(self.address)
    }
}

/// A door's settings and its connections.
#[derive(Clone)]
struct Door {
    tls: Option<TlsAcceptor>,
    router: Router,
    limits: DoorLimits,
    known: Arc<Acquaintances>,
    visitors: Visitors,
    stopped: watch::Receiver<bool>,
}

/// Serves `router` until told to stop; then waits for the requests in progress.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
    limits: DoorLimits,
    known: Arc<Acquaintances>,
    mut stopped: watch::Receiver<bool>,
) {
    let (total, of_address) = (limits.connections, limits.connections_of_one);
    let places = PlaceLimits { total, of_address, kept: KEPT, patience_ms: PATIENCE_MS };
    let visitors = Visitors::new(places, known.clone());
    let door = Door { tls, router, limits, known, visitors, stopped: stopped.clone() };
    let mut open = JoinSet::new();
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
        if let Some(visit) = door.visitors.admit(from.ip()) {
            // A small message behind another one would wait until the client has acknowledged that, up to 40 ms.
            drop(stream.set_nodelay(true));
            open.spawn(door.clone().welcome(stream, visit));
        }
    }
    while open.join_next().await.is_some() {}
}

impl Door {
    async fn welcome(self, mut stream: TcpStream, visit: Visit) {
        let head = self.limits.head;
        let Some(visit) = visit.of_client(&mut stream, head).await else { return };
        let visit = Arc::new(visit);
        match self.tls.clone() {
            None => self.answer(stream, visit).await,
            Some(tls) => {
                let secured = tokio::select! {
                    secured = tokio::time::timeout(head, tls.accept(stream)) => secured,
                    () = visit.displaced() => return,
                };
                // A connection without a timely TLS handshake counts as silent.
                if let Ok(Ok(stream)) = secured {
                    self.answer(stream, visit).await;
                }
            }
        }
    }

    /// Answers the requests of one connection.
    async fn answer(mut self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, visit: Arc<Visit>) {
        let mut http = hyper::server::conn::http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(self.limits.head);
        let (visitor, known) = (visit.clone(), self.known.clone());
        let router = TowerToHyperService::new(self.router.clone());
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            let visit = visitor.clone();
            let address = client_of(&known.proxies, visit.address(), request.headers());
            request.extensions_mut().insert(Visitor { address, visit: visit.clone() });
            request.extensions_mut().insert(Client::at(address));
            let answer = router.call(request);
            async move {
                let answer = answer.await;
                visit.progress();
                answer
            }
        });
        let connection = http.serve_connection(TokioIo::new(stream), service).with_upgrades();
        tokio::pin!(connection);
        tokio::select! {
            // Errors on a connection concern only its client.
            _ = connection.as_mut() => return,
            () = visit.displaced() => return,
            _ = self.stopped.wait_for(|stop| *stop) => connection.as_mut().graceful_shutdown(),
        }
        drop(connection.await);
    }
}

fn client_of(proxies: &Networks, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
    let forwarded = headers.get_all("x-forwarded-for").iter().collect::<Vec<_>>();
    proxies.client(peer, forwarded.iter().filter_map(|value| value.to_str().ok()))
}
