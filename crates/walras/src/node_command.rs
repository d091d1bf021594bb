//! `walras node`: runs the node of a home until it is told to stop.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ::founding::Founding;
use anyhow::Context;
use ledger::Genesis;
use node::{Config, ExchangeError, LaneSeat, Network, Node, ReplicaError, StartError};
use store::StoreError;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::keystore::Passphrase;
use crate::lane;
use crate::validator_keys::{self, KEY_FILE};
use crate::venue::run::HostedVenue;

/// Time for a restarting node to answer the requests in progress and to write a checkpoint.
const CONNECTIONS_END: Duration = Duration::from_secs(120);

/// Runs the node of a home.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  walras node --home ./exchange
  WALRAS_BLOCKS__INTERVAL_MS=250 walras node --home ./exchange --listen 127.0.0.1:9000
  walras node --home ./network/validator-0 --passphrase-file passphrase    # a validator opens its key

The first Ctrl-C (or SIGTERM) stops in order: pending transactions are committed and answered. A second one stops at
once. In both cases nothing that was answered is lost.")]
pub struct NodeCommand {
    /// Directory that `walras init` made.
    #[arg(long, env = "WALRAS_HOME", default_value = "walras-home")]
    home: PathBuf,
    /// Where to listen, instead of the configured address.
    #[arg(long)]
    listen: Option<SocketAddr>,
    /// Where to serve Ethereum's JSON-RPC, instead of the configured address.
    #[arg(long)]
    ethereum_listen: Option<SocketAddr>,
    #[command(flatten)]
    passphrase: Passphrase,
}

impl NodeCommand {
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let genesis_path = self.home.join("genesis.json");
        let missing =
            || format!("{} is no home; make one with: walras init --home {}", self.home.display(), self.home.display());
        anyhow::ensure!(genesis_path.exists(), missing());
        let (genesis, founding) = ::founding::genesis_file::read_with_founding(&genesis_path)?;
        let config = self.config()?;
        print_retention(&config, &self.home);
        let validators = founding.as_ref().map(|founding| founding.validators.len());
        // A developers' chain makes a block of every transaction on purpose.
        let warnings = if genesis.is_developers { Vec::new() } else { config.warnings(validators) };
        warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        let network = founding.map(|founding| self.network(&config, &genesis, &founding)).transpose()?;
        let account = network.as_ref().and_then(|network| network.own.account.as_ref());
        let member = lane::member(&self.home, &config, &genesis, account, &self.passphrase)?;
        let runtime = tokio::runtime::Runtime::new().context("threads")?;
        runtime.block_on(self.serve(config, &genesis, network, member))
    }

    /// The home's settings, with the addresses of the command line.
    fn config(&self) -> anyhow::Result<Config> {
        let path = self.home.join("walras.toml");
        let mut config = Config::load(path.exists().then_some(path.as_path()), std::env::vars())?;
        if let Some(listen) = self.listen {
            config.http.listen = listen;
        }
        if let Some(listen) = self.ethereum_listen {
            config.ethereum.listen = listen;
        }
        Ok(config.within(&self.home))
    }

    /// Runs the node until it is stopped. It begins again where its pipeline asks for that.
    async fn serve(
        &self,
        mut config: Config,
        genesis: &Genesis,
        network: Option<Network>,
        member: Option<LaneSeat>,
    ) -> anyhow::Result<ExitCode> {
        let data = self.home.join("data");
        let mut patience = Duration::ZERO;
        let mut stop = None;
        // Its markets survive when the pipeline begins again.
        let venue = HostedVenue::start(&self.home, &config, &self.passphrase).await?;
        loop {
            let calls = || venue.as_ref().map(HostedVenue::calls).unwrap_or_default();
            let start = || Node::start_beside(config.clone(), genesis, &data, network.clone(), calls());
            let node = start_within(patience, start).await?;
            lane::start(&node, member.as_ref(), &data);
            venue.iter().for_each(|venue| venue.connect(&node, &data));
            // Scripts wait for this line, and may stop the node as soon as they see it.
            let stop = match &mut stop {
                Some(stop) => stop,
                none => none.insert(StopSignals::new().context("signals")?),
            };
            println!("listening on http://{}", node.address());
            if let Some(address) = node.ethereum_address() {
                println!("Ethereum JSON-RPC on http://{address}");
                config.ethereum.listen = address;
            }
            venue.iter().for_each(HostedVenue::greet);
            let failed = tokio::select! {
                () = stop.next() => None,
                reason = node.exchange().failed() => Some(reason),
            };
            let again = failed.is_some() && node.exchange().is_to_begin_again();
            if !again {
                venue.iter().for_each(HostedVenue::stop);
            }
            // If the system chose the port, a restart keeps the printed address.
            config.http.listen = node.address();
            tokio::select! {
                _ = tokio::spawn(node.stop()) => {}
                () = stop.next() => std::process::exit(130),
            }
            match failed {
                None => return Ok(ExitCode::SUCCESS),
                Some(_) if again => patience = CONNECTIONS_END,
                Some(reason) => anyhow::bail!("the node stopped itself: {reason}"),
            }
        }
    }
}

/// Logs how many blocks the node keeps, and the free disk space.
fn print_retention(config: &Config, home: &Path) {
    let kept = match config.store.keep_blocks {
        0 => "all blocks are kept; [store] keep_blocks bounds them".to_string(),
        blocks => format!("at least {blocks} blocks are kept behind the newest checkpoint"),
    };
    let free_mib = node::free_bytes(home).map(|bytes| bytes >> 20);
    tracing::info!(kept, free_mib, least_free_mib = config.store.free_bytes >> 20, "disk space");
}

/// Starts a node; retries for this long, because the node before may still be releasing its resources.
async fn start_within<F: Future<Output = Result<Node, StartError>>>(
    patience: Duration,
    start: impl Fn() -> F,
) -> Result<Node, StartError> {
    let begun = Instant::now();
    loop {
        match start().await {
            Err(
                StartError::Listen(..)
                | StartError::Exchange(ExchangeError::Replica(ReplicaError::Store(StoreError::Locked(_)))),
            ) if begun.elapsed() < patience => {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            started => return started,
        }
    }
}

impl NodeCommand {
    /// The network from the point of view of the validator whose home this is.
    fn network(&self, config: &Config, genesis: &Genesis, founding: &Founding) -> anyhow::Result<Network> {
        let path = self.home.join(KEY_FILE);
        anyhow::ensure!(
            path.exists() || config.network.signer.is_some(),
            "{} names validators, but {} is not the home of one: its {KEY_FILE} is missing",
            self.home.join("genesis.json").display(),
            self.home.display()
        );
        let own = validator_keys::open(&self.home, config, &self.passphrase)?;
        let key = own.votes.public();
        anyhow::ensure!(
            founding.succession.epoch_heights > 0 || founding.index_of(&key).is_some(),
            "{}: the key {key} is not that of a validator in the genesis, and the validators of this network never \
             change: this home belongs to another network",
            self.home.display()
        );
        if let (0, Some(index)) = (founding.succession.epoch_heights, founding.index_of(&key)) {
            let address = &founding.validators[usize::from(index)].address;
            validator_keys::check(address, &key, &own.links.public())?;
        }
        Ok(founding.network(genesis, own, config.network.listen))
    }
}

/// Receives Ctrl-C and SIGTERM. Once this exists, neither signal ends the process by itself, and none is lost.
pub struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    /// Must be called within a runtime.
    pub fn new() -> std::io::Result<StopSignals> {
        Ok(StopSignals { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
