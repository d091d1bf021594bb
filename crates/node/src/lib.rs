//! The shell around the replica: threads, channels, real time and configuration.
//!
//! [`Exchange`] runs the pipeline on its own threads; [`Node`] opens the `doors` in front of it, which read it
//! through `reads`. No decisions are made here: that is the part of `replica`, and below it of `ledger` and
//! `consensus`.

mod admission;
mod block_jobs;
mod candles;
mod chain_clock;
pub mod config;
mod developer;
mod empty_blocks;
pub mod exchange;
mod execution;
mod executor;
mod free_disk;
mod history;
mod inbox;
mod intake;
mod intake_queue;
mod known_lists;
mod laggards;
mod lane;
pub mod links;
mod locks;
mod pipeline;
mod pool;
mod producer;
mod publisher;
mod reads;
mod recovery;
mod seal_keys;
mod shared;
pub mod snapshot;
mod unsealer;
pub mod validator;
mod venue;
mod verified;

pub use self::lane::keys::{LaneKeySafe, make_first_lane_key_secrets, make_first_lane_keys};
pub use self::lane::process::{ShardProcess, ShardSeat};
pub use self::lane::restart::{close_lane, lane_closed_for, make_first_lane_logs};
pub use self::lane::seat::{ApartSeat, HOME_PORTS, LaneKeys, LaneSeat, LaneStartError, home_address};
pub use self::venue::chain::VenueLineError;
pub use config::Config;
pub use doors::{Answer, Awaited, Closed};
pub use exchange::Exchange;
pub use free_disk::free_bytes;
pub use history::index::HistoryIndexError;
pub use replica::{
    EthereumReject, EthereumSection, Handover, HandoverError, Lineage, Network, OwnKeys, PeerAddress, Replay,
    ReplicaError, Restored, begin, receipts, recover_state, restore, write_checkpoint,
};
pub use shared::ExchangeError;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use doors::{Bound, Doors, ListenError};
use ledger::Genesis;

use reads::Reads;

/// A running node with open doors.
pub struct Node {
    exchange: Arc<Exchange>,
    doors: Doors,
}

/// Why a node does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The pipeline cannot start.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// The doors of a developers' chain would be open to strangers.
    #[error(
        "{0}: everybody at this address could change any account of this developers' chain: listen on loopback, or set \
         [http] submit_token_file"
    )]
    Developers(SocketAddr),
    /// A door cannot listen on its address.
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
        Node::start_beside(config, genesis, data, network, doors::Router::new()).await
    }

    /// Like [`Node::start`], and answers the calls of another part of this process at the node's address.
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn start_beside(
        config: Config,
        genesis: &Genesis,
        data: &Path,
        network: Option<Network>,
        calls: doors::Router,
    ) -> Result<Node, StartError> {
        Node::check(&config, genesis)?;
        let bound = Bound::new(config.http.clone()).await?;
        let bound = match genesis.limits.has_contracts() {
            true => bound.with_ethereum(config.ethereum.listen).await?,
            false => bound,
        };
        let exchange = Arc::new(tokio::task::block_in_place(|| Exchange::start(config, genesis, data, network))?);
        let doors = bound.beside(calls).open(Arc::new(Reads::new(exchange.clone(), data)));
        Ok(Node { exchange, doors })
    }

    /// Refuses the settings of doors and of the history that a start would refuse. Nothing is bound or reached.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn check(config: &Config, genesis: &Genesis) -> Result<(), StartError> {
        let is_open = |listen: &SocketAddr| config.http.behind_proxy || !listen.ip().is_loopback();
        let own = [config.http.listen, config.ethereum.listen];
        if let Some(listen) = own.into_iter().find(is_open)
            && genesis.is_developers
            && config.http.submit_token_file.is_none()
        {
            return Err(StartError::Developers(listen));
        }
        history::check(&config.history, &genesis.digest()).map_err(ExchangeError::from)?;
        let has_contracts = genesis.limits.has_contracts();
        Ok(doors::check(&config.http, own.into_iter().take(1 + usize::from(has_contracts)))?)
    }

    /// The address of the HTTP interface.
    pub fn address(&self) -> SocketAddr {
        self.doors.address()
    }

    /// The address of Ethereum's JSON-RPC, if the chain has contracts.
    pub fn ethereum_address(&self) -> Option<SocketAddr> {
        self.doors.ethereum_address()
    }

    /// The pipeline.
    pub fn exchange(&self) -> &Arc<Exchange> {
        &self.exchange
    }

    /// Stops in order: accepts nothing new, commits and answers what is pending, closes connections.
    pub async fn stop(self) {
        let exchange = self.exchange.clone();
        // Waiting for the threads of the pipeline must not delay the connections.
        drop(tokio::task::spawn_blocking(move || exchange.stop()).await);
        self.doors.close().await;
    }
}

#[cfg(test)]
mod states_tests;
