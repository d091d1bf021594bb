//! The doors of a node: HTTP and WebSocket for people and programs, Ethereum's JSON-RPC for its tools, probes and
//! metrics for operators.
//!
//! ```text
//!  node ── a delta for each block ──► readers ──► views, offers by price, candles ──► answers, stream
//!       ◄── point reads, submissions ── Backend ◄── calls
//! ```
//!
//! The doors see only what the node *publishes* ([`readers`]), *point reads* and an *intake* ([`Backend`]). Every
//! scan uses published data, or works page by page.
//!
//! **Invariant**: a question never holds the ledger for longer than a point read takes, and an answer refers to one
//! height.

pub mod backend;
mod book_feed;
mod client;
mod door;
pub mod ethereum;
mod http;
pub mod json;
mod kit;
mod listen;
pub mod markets;
mod page;
pub mod roles;
mod settings;
mod side_door;
mod taken;
mod tls;
mod unnumbered;

pub use axum::Router;
pub use backend::{
    Answer, Awaited, Backend, Closed, DeveloperCommand, DeveloperRefusal, EthereumTaken, Mining, NextBlock, ReadError,
};
pub use door::Visitor;
pub use listen::{ListenError, check};
pub use page::is_embedded as page_is_embedded;
pub use roles::SecretError;
pub use settings::Http;
pub use side_door::{OperatorCheck, SideDoor};
pub use taken::{Noted, PlacedOrder, TakenOrders};
pub use tls::TlsError;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use kit::Kit;
use listen::{Listening, Terms};

/// How long connections may take to end after the door is closed. Stream connections stay open until their clients
/// leave.
const CLOSING: Duration = Duration::from_secs(1);

/// Addresses that are bound, but not answered at yet.
pub struct Bound {
    settings: Http,
    door: Listening,
    probes: Option<TcpListener>,
    ethereum: Option<TcpListener>,
    beside: Router,
}

/// Open doors.
pub struct Doors {
    address: SocketAddr,
    ethereum: Option<SocketAddr>,
    stop: watch::Sender<bool>,
    servers: Vec<JoinHandle<()>>,
}

impl Bound {
    /// Binds the addresses, before the node behind them has recovered.
    ///
    /// # Errors
    /// [`ListenError`] names the address and the setting.
    pub async fn new(settings: Http) -> Result<Bound, ListenError> {
        let door = Listening::bind(&settings, settings.listen).await?;
        let probes = match settings.probes {
            Some(listen) => {
                Some(TcpListener::bind(listen).await.map_err(|error| ListenError::ListenForProbes(listen, error))?)
            }
            None => None,
        };
        Ok(Bound { settings, door, probes, ethereum: None, beside: Router::new() })
    }

    /// Also binds an address for Ethereum's JSON-RPC, under the same rules and limits.
    ///
    /// # Errors
    /// [`ListenError`] names the address and the setting.
    pub async fn with_ethereum(self, listen: SocketAddr) -> Result<Bound, ListenError> {
        check(&self.settings, [listen])?;
        let failed = |error| ListenError::ListenForEthereum(listen, error);
        Ok(Bound { ethereum: Some(TcpListener::bind(listen).await.map_err(failed)?), ..self })
    }

    /// Also answers the calls of another part of this process, such as a venue, so that the page reaches it at the
    /// node's own address. They are guarded like the node's calls; who may make them they decide themselves. They
    /// have no fallback.
    pub fn beside(self, calls: Router) -> Bound {
        Bound { beside: calls, ..self }
    }

    /// Opens the doors.
    pub fn open(self, backend: Arc<dyn Backend>) -> Doors {
        let Bound { settings, door, probes, ethereum, beside } = self;
        let Listening { listener, address, terms: Terms { access, known, tls } } = door;
        let (stop, stopped) = watch::channel(false);
        let limits = door::DoorLimits::new(&settings);
        let kit = Kit::new(backend, settings, access);
        if let Some(listener) = probes {
            let router = http::probes(kit.for_probes());
            tokio::spawn(door::serve(listener, None, router, limits, known.clone(), stopped.clone()));
        }
        let mut servers = Vec::new();
        let ethereum = ethereum.and_then(|listener| {
            let address = listener.local_addr().ok()?;
            let router = ethereum::router(kit.for_ethereum()).layer(kit::compression());
            let (known, stopped) = (known.clone(), stopped.clone());
            servers.push(tokio::spawn(door::serve(listener, tls.clone(), router, limits, known, stopped)));
            tracing::info!(%address, "listening for Ethereum's tools");
            Some(address)
        });
        let is_tls = tls.is_some();
        let of_ethereum = http::OfEthereum { limits: ethereum::limits, replay: ethereum::replay };
        let api = http::Api::new(kit, of_ethereum);
        servers.push(tokio::spawn(door::serve(listener, tls, http::router(api, beside), limits, known, stopped)));
        tracing::info!(%address, tls = is_tls, page = page::is_embedded(), "listening");
        Doors { address, ethereum, stop, servers }
    }
}

impl Doors {
    /// The address for clients.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address for Ethereum's tools, if there is one.
    pub fn ethereum_address(&self) -> Option<SocketAddr> {
        self.ethereum
    }

    /// Accepts no more connections, and waits briefly for the open ones.
    pub async fn close(self) {
        self.stop.send_replace(true);
        let all = async {
            for server in self.servers {
                drop(server.await);
            }
        };
        drop(tokio::time::timeout(CLOSING, all).await);
    }
}
