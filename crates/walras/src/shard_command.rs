//! `walras shard`: runs one shard of a member of the payment lane in a process of its own, and changes how many there
//! are.

mod number;
mod settings;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, ensure};
use node::{Config, ShardProcess, ShardSeat};
use zeroize::Zeroizing;

use crate::keystore::{self, Passphrase};
use crate::lane;
use crate::node_command::StopSignals;
use number::NumberCommand;

/// Runs one shard of a member of the payment lane, apart from its node. Its commands change how many shards there are.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:
  walras shard --home ./validator-0 --shard 1 --new    # makes the key that the shard shows its node, and prints it
  walras shard --home ./validator-0 --shard 1
  walras shard add --home ./validator-0                # one more, from the next lane epoch on

The home is that of the node, or a folder on another machine with its walras.toml and genesis.json, the shard's
shard-1-key.json, and, if it ran before, its folders of data/lane: EPOCH/1 of each epoch, and apart-1. The node's
walras.toml lists the shard in [lane] apart. Who pays sees no difference.

The shard's folders are the log of what it signed. Never run a copy of them, and never restore an older one."
)]
pub struct ShardCommand {
    #[command(subcommand)]
    number: Option<NumberCommand>,
    /// The home: the node's, or one with the files of this shard.
    #[arg(long, env = "WALRAS_HOME", default_value = "walras-home")]
    home: PathBuf,
    /// The number of the shard among its member's shards, from 0.
    #[arg(long, value_name = "NUMBER", required = true)]
    shard: Option<u16>,
    /// Where to listen for the node, instead of the address in [lane] apart.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Make the key that the shard shows its node, print its entry for [lane] apart, and end.
    #[arg(long)]
    new: bool,
    #[command(flatten)]
    passphrase: Passphrase,
}

impl ShardCommand {
    pub fn run(mut self, json: bool) -> anyhow::Result<ExitCode> {
        match (self.number.take(), self.shard) {
            (Some(number), _) => number.run(json),
            (None, shard) => {
                let shard = shard.context("--shard NUMBER is missing")?;
                if self.new { self.make(shard) } else { self.serve(shard) }
            }
        }
    }

    /// Runs the shard until a signal ends it.
    fn serve(&self, shard: u16) -> anyhow::Result<ExitCode> {
        let passphrase = self.passphrase.known()?;
        let process = ShardProcess::start(self.seat(shard, &passphrase)?, &self.home.join("data"))?;
        let stop = Arc::new(AtomicBool::new(false));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.context("threads")?;
        let mut signals = runtime.block_on(async { StopSignals::new() }).context("signals")?;
        let stopped = stop.clone();
        runtime.spawn(async move {
            signals.next().await;
            stopped.store(true, Ordering::Release);
            signals.next().await;
            std::process::exit(130);
        });
        // Scripts wait for this line.
        println!("shard {shard} waits for its node at {}", process.address());
        process.run(&stop)?;
        Ok(ExitCode::SUCCESS)
    }

    fn make(&self, shard: u16) -> anyhow::Result<ExitCode> {
        let key = lane::make_link_key(&self.home, shard, &self.passphrase.read_new()?)?;
        println!("{}", lane::apart_entry(shard, "HOST:PORT", &key));
        Ok(ExitCode::SUCCESS)
    }

    fn seat(&self, shard: u16, passphrase: &Zeroizing<String>) -> anyhow::Result<ShardSeat> {
        let home = &self.home;
        let config = Config::load(Some(home.join("walras.toml").as_path()), std::env::vars())?.lane;
        let (genesis, _) = ::founding::genesis_file::read_with_founding(&home.join("genesis.json"))?;
        let terms =
            genesis.lane.as_ref().context("the genesis has no `lane` section: this chain has no payment lane")?;
        let member = config.member;
        let registrar = terms.registrars.get(usize::from(member)).copied().with_context(|| {
            format!("[lane] member = {member}: the genesis has no registrar of this number, so no shard can run apart")
        })?;
        let (addresses, own) = (config.addresses_by_member(), config.own_shards());
        ensure!(
            usize::from(shard) < own,
            "--shard {shard}: [lane] addresses has {own} shards of this member, which are numbered from 0"
        );
        let link = keystore::open_under(&home.join(lane::link_key_file(shard)), passphrase)?;
        let apart = config.shards_apart()?;
        let entry = apart.get(&shard).with_context(|| {
            format!(
                "[lane] apart does not list shard {shard}: add {}",
                lane::apart_entry(shard, "HOST:PORT", &link.public())
            )
        })?;
        ensure!(
            entry.key == link.public(),
            "[lane] apart lists another key of shard {shard} than {} has: {}",
            lane::link_key_file(shard),
            lane::apart_entry(shard, &entry.address, &link.public())
        );
        let listen = self.listen.map_or_else(|| listen(&entry.address), Ok)?;
        let (tls, known, safe) = (config.tls, config.acquaintances()?, Some(lane::safe(passphrase)));
        Ok(ShardSeat { member, shard, addresses, bind: config.bind, tls, known, safe, link, registrar, listen })
    }
}

/// Where a shard listens whose node dials this address: the same if it is numeric, every interface if it is a name.
fn listen(address: &str) -> anyhow::Result<SocketAddr> {
    if let Ok(address) = address.parse() {
        return Ok(address);
    }
    let port = address.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    Ok(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port.context("[lane] apart: the address has no port")?)))
}
