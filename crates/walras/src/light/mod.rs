//! `walras light`: verifies what a quorum of validators has signed, with only the genesis file.
//!
//! The checks are [`client::light::LightClient`]'s; here are its arguments, and its facts and errors in words. With
//! `--remember` it stores how far it has come, and starts there the next time; with `--trust HEIGHT:DIGEST` it starts
//! from a pinned state.

mod arguments;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use client::NodeClient;
use client::light::{Beginning, LightClient, Pin, recall_fresh};
use ledger::Genesis;
use primitives::venue::VenueId;
use primitives::{Address, AssetId, TransactionId};

pub use self::arguments::pin;
use self::arguments::span;
use self::report::LightReport;
pub use self::report::{advice, advised};

/// Verifies an account or a receipt of an untrusted node with only certificates and the genesis file.
#[derive(clap::Subcommand)]
pub enum Light {
    /// Prove an account's balances.
    #[command(after_help = "Examples:
  walras light account --genesis genesis.json --server http://127.0.0.1:8080 0x1111111111111111111111111111111111111111
  walras light account --genesis genesis.json --server https://a.example --witness https://b.example \\
    --trust 1200:0x6e0b… --remember committee.json 0x1111111111111111111111111111111111111111")]
    Account {
        #[command(flatten)]
        source: Source,
        /// The account.
        address: Address,
    },
    /// Prove who signs for an account: its policy, and the change of it that waits.
    #[command(after_help = "Example:
  walras light keys --genesis genesis.json --server http://127.0.0.1:8080 0x1111111111111111111111111111111111111111")]
    Keys {
        #[command(flatten)]
        source: Source,
        /// The account.
        address: Address,
    },
    /// Prove the fate of a transaction.
    #[command(after_help = "Example:
  walras light transaction --genesis genesis.json --server http://127.0.0.1:8080 0x6e0b…")]
    Transaction {
        #[command(flatten)]
        source: Source,
        /// Its id.
        id: TransactionId,
    },
    /// Prove an account's deposit at a venue of continuous markets.
    #[command(after_help = "Example:
  walras light deposit --genesis genesis.json --venue 0 --asset USD 0x1111111111111111111111111111111111111111")]
    Deposit {
        #[command(flatten)]
        source: Source,
        /// The account.
        address: Address,
        /// The venue's number.
        #[arg(long)]
        venue: VenueId,
        /// The asset.
        #[arg(long)]
        asset: String,
    },
    /// Prove an asset: its name, issuer and supply, how it was listed and when it closes.
    #[command(after_help = "Example:\n  walras light asset --genesis genesis.json --number 17")]
    Asset {
        #[command(flatten)]
        source: Source,
        /// Its number: what stands behind the point of `EUR.17`.
        #[arg(long)]
        number: u32,
    },
    /// Prove a venue: its owner, operator and bond, and the tree of the fills that it settled.
    #[command(after_help = "Example:\n  walras light venue --genesis genesis.json --venue 0")]
    Venue {
        #[command(flatten)]
        source: Source,
        /// The venue's number.
        #[arg(long)]
        venue: VenueId,
    },
    /// Prove the parameters of the chain: those in force, and those that validators have voted.
    #[command(after_help = "Example:\n  walras light parameters --genesis genesis.json --server http://127.0.0.1:8080")]
    Parameters {
        #[command(flatten)]
        source: Source,
    },
    /// Print the HEIGHT:DIGEST that others who trust you can give as --trust.
    #[command(after_help = "Example:
  walras light pin --genesis genesis.json --server http://127.0.0.1:8080 --own-node")]
    Pin {
        #[command(flatten)]
        source: Source,
        /// You run this node: trust the newest committee that it shows, without a proof.
        #[arg(long, conflicts_with = "trust")]
        own_node: bool,
    },
}

/// The nodes to ask, and the sources to trust.
#[derive(Clone, clap::Args)]
pub struct Source {
    /// The genesis file, from somebody you trust.
    #[arg(long, value_name = "FILE")]
    genesis: PathBuf,
    /// Any node of the network.
    #[arg(long, env = "WALRAS_SERVER", default_value = "http://127.0.0.1:8080")]
    server: String,
    /// Another node, of another operator, that must show the same; can be repeated.
    #[arg(long = "witness", value_name = "URL")]
    witnesses: Vec<String>,
    /// Start from this state, which somebody you trust gave you: `walras light pin` prints it.
    #[arg(long, value_name = "HEIGHT:DIGEST", value_parser = pin)]
    trust: Option<Pin>,
    /// A file that stores the last proved committee; the next run starts there instead of at the genesis.
    #[arg(long, value_name = "FILE")]
    remember: Option<PathBuf>,
    /// Maximum age of the stored committee: less than the time until a stake is paid back.
    #[arg(long, value_name = "SPAN", default_value = "7d", value_parser = span)]
    trust_period: Duration,
    /// Maximum age of the newest block.
    #[arg(long, value_name = "SPAN", default_value = "10m", value_parser = span)]
    max_age: Duration,
}

impl Source {
    /// The client, and the genesis that it starts from.
    fn client(&self) -> anyhow::Result<(LightClient, Genesis)> {
        let (genesis, founding) = ::founding::genesis_file::read_with_founding(&self.genesis)?;
        let founding = founding.with_context(|| {
            format!("{}: the genesis names no validators, so nobody signs blocks of this chain", self.genesis.display())
        })?;
        let mut lineage = founding.lineage(&genesis);
        let mut base = Beginning::Genesis;
        if let Some(path) = self.remember.as_ref().filter(|path| path.exists() && self.trust.is_none()) {
            base = recall_fresh(path, &mut lineage, self.trust_period).map_err(advised)?;
        }
        let node = NodeClient::at(&self.server);
        let mut client = LightClient::trusting(node, lineage, base, founding.succession.unbonding_epochs)
            .witnessed_by(self.witnesses.iter().map(NodeClient::at).collect())
            .remembering(self.remember.clone())
            .no_older_than(self.max_age);
        if let Some(pin) = &self.trust {
            client.begin_at(pin).map_err(advised)?;
        }
        Ok((client, genesis))
    }
}

impl Light {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let (Light::Account { source, .. }
        | Light::Keys { source, .. }
        | Light::Transaction { source, .. }
        | Light::Deposit { source, .. }
        | Light::Asset { source, .. }
        | Light::Venue { source, .. }
        | Light::Parameters { source }
        | Light::Pin { source, .. }) = &self;
        let (mut client, genesis) = source.client()?;
        let said = self.ask(&mut client, &genesis)?;
        client.remember().map_err(advised)?;
        if json {
            println!("{}", said.json);
        } else {
            println!("{}", said.words);
        }
        Ok(ExitCode::SUCCESS)
    }

    fn ask(&self, client: &mut LightClient, genesis: &Genesis) -> anyhow::Result<LightReport> {
        Ok(match self {
            Light::Account { address, .. } => {
                report::account(address, &client.account(address).map_err(advised)?, genesis)
            }
            Light::Keys { address, .. } => report::keys(address, &client.keys(address).map_err(advised)?),
            Light::Transaction { id, .. } => report::transaction(id, &client.transaction(id).map_err(advised)?),
            Light::Deposit { address, venue, asset: symbol, .. } => {
                let asset =
                    numbered(genesis, symbol).with_context(|| format!("the genesis has no asset {symbol:?}"))?;
                let proved = client.deposit(address, *venue, (asset, symbol)).map_err(advised)?;
                report::deposit(address, *venue, asset, &proved, genesis)
            }
            Light::Asset { number, .. } => {
                let asset = AssetId(*number);
                report::asset(asset, &client.asset(asset).map_err(advised)?)
            }
            Light::Venue { venue, .. } => report::venue(*venue, &client.venue(*venue).map_err(advised)?, genesis),
            Light::Parameters { .. } => report::parameters(&client.parameters().map_err(advised)?),
            Light::Pin { own_node, .. } => {
                if *own_node && !client.is_fixed() {
                    client.believe_newest().map_err(advised)?;
                }
                report::pinned(&client.pin().map_err(advised)?)
            }
        })
    }
}

/// The asset with a name: one of the genesis, or one that was listed after it, whose number ends its name.
fn numbered(genesis: &Genesis, name: &str) -> Option<AssetId> {
    let founded = genesis.assets.iter().position(|asset| asset.symbol == name);
    let listed = || name.rsplit_once('.')?.1.parse().ok().filter(|number| *number >= genesis.assets.len());
    founded.or_else(listed).and_then(|number| u32::try_from(number).ok()).map(AssetId)
}
