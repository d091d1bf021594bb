//! The shell around the replica: threads, channels, real time and configuration.
//!
//! [`Exchange`] runs the pipeline on threads of its own; [`Node`] opens the `doors` before it, which read it through
//! `reads`. Nothing here decides: that is `replica`, and below it `ledger` and `consensus`.

mod candles;
pub mod config;
mod developer;
pub mod exchange;
pub mod founding;
pub mod genesis_file;
mod inbox;
mod intake;
mod lane_evidence;
mod lane_home;
mod lane_keys;
mod lane_member;
mod lane_part;
pub mod links;
mod payment_lane;
mod pipeline;
mod reads;
mod recovery;
mod room;
mod shared;
pub mod snapshot;
pub mod validator;
mod verified;

pub use config::Config;
pub use doors::{Answer, Closed};
pub use exchange::Exchange;
pub use lane_keys::{LaneKeySafe, make_first_lane_keys};
pub use lane_member::{HOME_PORTS, LaneKeys, LaneMember, LaneStartError, home_address};
pub use replica::{
    EthereumLane, EthereumReject, Handover, HandoverError, Lineage, Network, OwnKeys, PeerAddress, Replay,
    ReplicaError, Restored, receipts, recover_state, restore, write_checkpoint,
};
pub use room::free_bytes;
pub use shared::ExchangeError;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use doors::{Bound, Doors, ListenError};
use ledger::Genesis;

use reads::Reads;

/// A node that serves.
pub struct Node {
    exchange: Arc<Exchange>,
    doors: Doors,
}

/// Why a node does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The pipeline.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// Doors of a developers' chain that strangers could come through.
    #[error(
        "{0}: everybody at this address could change any account of this developers' chain: listen on loopback, or set \
         [http] submit_token_file"
    )]
    Developers(SocketAddr),
    /// An address that the doors should listen on.
    #[error(transparent)]
    Listen(#[from] ListenError),
}

impl Node {
    /// Recovers, starts the pipeline and opens the doors.
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn start(
        config: Config,
        genesis: &Genesis,
        data: &Path,
        network: Option<Network>,
    ) -> Result<Node, StartError> {
        let is_open = |listen: &SocketAddr| config.http.behind_proxy || !listen.ip().is_loopback();
        if let Some(listen) = [config.http.listen, config.ethereum.listen].into_iter().find(is_open)
            && genesis.is_developers
            && config.http.submit_token_file.is_none()
        {
            return Err(StartError::Developers(listen));
        }
        let bound = Bound::new(config.http.clone()).await?;
        let bound = match genesis.limits.has_contracts() {
            true => bound.with_ethereum(config.ethereum.listen).await?,
            false => bound,
        };
        let exchange = Arc::new(tokio::task::block_in_place(|| Exchange::start(config, genesis, data, network))?);
        let doors = bound.open(Arc::new(Reads::new(exchange.clone(), data)));
        Ok(Node { exchange, doors })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.doors.address()
    }

    /// Where Ethereum's tools are answered, if the chain has contracts.
    pub fn ethereum_address(&self) -> Option<SocketAddr> {
        self.doors.ethereum_address()
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
        self.doors.close().await;
    }
}

#[cfg(test)]
mod states_tests;
