//! The shell around the engines: the pipeline that makes and commits blocks, and everything that talks.
//!
//! [`Exchange`] runs the pipeline on threads of its own; [`Node`] puts the HTTP interface before it. Nothing here
//! decides what a block does: that is `ledger`.

pub mod cache;
mod candles;
pub mod config;
mod door;
pub mod exchange;
pub mod founding;
pub mod genesis_file;
mod http;
pub mod json;
pub mod links;
mod markets;
mod metrics;
mod page;
mod pipeline;
mod recovery;
pub mod snapshot;
mod stream;
pub mod validator;
mod verified;
pub mod views;

pub use config::Config;
pub use exchange::{Answer, Closed, Exchange, ExchangeError};
pub use page::is_embedded as page_is_embedded;
pub use replica::{
    Handover, HandoverError, Lineage, Network, PeerAddress, Replay, ReplicaError, Restored, receipts, recover_state,
    restore, write_checkpoint,
};

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use ledger::Genesis;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// A node that serves.
pub struct Node {
    exchange: Arc<Exchange>,
    address: SocketAddr,
    stop: watch::Sender<bool>,
    server: tokio::task::JoinHandle<()>,
}

/// Why a node does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The pipeline.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// The address cannot be listened on.
    #[error("cannot listen on {0}: {1}; choose another with --listen or [http] listen")]
    Listen(SocketAddr, std::io::Error),
    /// The address for probes cannot be listened on.
    #[error("cannot listen for probes on {0}: {1}; choose another with [http] probes")]
    ListenForProbes(SocketAddr, std::io::Error),
}

impl Node {
    /// Recovers, starts the pipeline and serves.
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn start(
        config: Config,
        genesis: &Genesis,
        data: &Path,
        network: Option<Network>,
    ) -> Result<Node, StartError> {
        let listen = config.http.listen;
        let listener = TcpListener::bind(listen).await.map_err(|error| StartError::Listen(listen, error))?;
        let address = listener.local_addr().map_err(|error| StartError::Listen(listen, error))?;
        let probes = match config.http.probes {
            Some(listen) => {
                Some(TcpListener::bind(listen).await.map_err(|error| StartError::ListenForProbes(listen, error))?)
            }
            None => None,
        };
        let exchange = Arc::new(tokio::task::block_in_place(|| Exchange::start(config, genesis, data, network))?);
        let (stop, stopped) = watch::channel(false);
        let api = http::Api::new(exchange.clone());
        let limits = door::Limits::new(&exchange.shared.config.http);
        if let Some(listener) = probes {
            tokio::spawn(door::serve(listener, http::probes(api.clone()), limits, stopped.clone()));
        }
        let server = tokio::spawn(door::serve(listener, http::router(api), limits, stopped));
        tracing::info!(%address, page = page::is_embedded(), "listening");
        Ok(Node { exchange, address, stop, server })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The pipeline.
    pub fn exchange(&self) -> &Arc<Exchange> {
        &self.exchange
    }

    /// Stops in order: nothing new is taken, what waits is committed and answered, connections are closed.
    pub async fn stop(self) {
        let exchange = self.exchange.clone();
        // The threads of the pipeline end on their own; to wait for them must not hold up connections.
        drop(tokio::task::spawn_blocking(move || exchange.stop()).await);
        self.stop.send_replace(true);
        // A connection of the stream lives on until its client goes; a second is enough for the others.
        drop(tokio::time::timeout(std::time::Duration::from_secs(1), self.server).await);
    }
}

#[cfg(test)]
mod states_tests;
