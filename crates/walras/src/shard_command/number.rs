//! How many shards a member has: `walras shard add`, `drain`, `remove` and `list`.
//!
//! The number is a fact of each lane epoch: that of the keys which the member's node registers for it. These commands
//! write the settings that the node reads when it starts, and no others: who pays follows the registered keys.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, ensure};
use api::{LaneBody, LaneShardBody};
use node::HOME_PORTS;
use payments::HomeEpoch;
use serde_json::json;

use super::settings::OwnShards;
use crate::keystore::Passphrase;
use crate::lane;

/// Changes and shows the number of a member's shards.
#[derive(clap::Subcommand)]
pub enum NumberCommand {
    /// Add a shard, from the next lane epoch on for which this member has registered no keys yet.
    #[command(after_help = "Examples:
  walras shard add --home ./validator-0                                # in the node, at the next free ports
  walras shard add --home ./validator-0 --address 10.0.0.7:7100 --apart 10.0.0.7:6800

A shard that is drained comes back first, at its address. Restart the node afterwards.")]
    Add {
        /// The node's home.
        #[arg(long, env = "WALRAS_HOME", default_value = "walras-home")]
        home: PathBuf,
        /// Where it listens for clients, on eight ports from this one on. By default at the next free ones above this
        /// member's last shard.
        #[arg(long, value_name = "ADDRESS")]
        address: Option<SocketAddr>,
        /// Run it in a process of its own (walras shard), which listens for the node at this host and port.
        #[arg(long, value_name = "HOST:PORT")]
        apart: Option<String>,
        #[command(flatten)]
        passphrase: Passphrase,
    },
    /// Give the last shard no part in lane epochs for which this member has registered no keys yet.
    ///
    /// It serves on for the money of earlier epochs; `walras shard remove` takes it out when that is over.
    #[command(after_help = "Example:\n  walras shard drain --home ./validator-0    # and restart the node")]
    Drain {
        /// The node's home.
        #[arg(long, env = "WALRAS_HOME", default_value = "walras-home")]
        home: PathBuf,
    },
    /// Take the last shard out of the settings, once it is drained and no lane epoch has it any more.
    #[command(after_help = "Example:\n  walras shard remove --home ./validator-0    # and restart the node")]
    Remove {
        /// The node's home.
        #[arg(long, env = "WALRAS_HOME", default_value = "walras-home")]
        home: PathBuf,
        /// Address of a node, if not this home's.
        #[arg(long, value_name = "URL")]
        server: Option<String>,
    },
    /// List this member's shards, the lane epochs that have them, and how they stand.
    ///
    /// A shard is up if it runs and is reached; of one that runs apart that means: its node is connected. Counts are
    /// those since it started.
    #[command(after_help = "Example:\n  walras shard list --home ./validator-0")]
    List {
        /// The node's home.
        #[arg(long, env = "WALRAS_HOME", default_value = "walras-home")]
        home: PathBuf,
        /// Address of another node, which knows the epochs and not how these shards stand.
        #[arg(long, value_name = "URL")]
        server: Option<String>,
    },
}

impl NumberCommand {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        match self {
            NumberCommand::Add { home, address, apart, passphrase } => {
                add(OwnShards::open(&home)?, address, apart, &passphrase, json)
            }
            NumberCommand::Drain { home } => drain(OwnShards::open(&home)?, json),
            NumberCommand::Remove { home, server } => remove(OwnShards::open(&home)?, server, json),
            NumberCommand::List { home, server } => list(&OwnShards::open(&home)?, server, json),
        }?;
        Ok(ExitCode::SUCCESS)
    }
}

fn add(
    mut of: OwnShards,
    address: Option<SocketAddr>,
    apart: Option<String>,
    passphrase: &Passphrase,
    json: bool,
) -> anyhow::Result<()> {
    let number = of.lane.registered_shards();
    let is_back = usize::from(number) < of.lane.own_shards();
    if is_back {
        ensure!(
            address.is_none() && apart.is_none(),
            "shard {number} is drained and comes back first, where it was: leave --address and --apart out, or take it \
             out with walras shard remove"
        );
        of.set_number(number + 1)?;
        of.write()?;
    } else {
        let address = address.map_or_else(|| free_address(&of), Ok)?;
        of.add_address(address)?;
        of.set_number(number + 1)?;
        if let Some(place) = &apart {
            // Before its key is made: what is refused leaves nothing behind.
            of.check_with(number, place)?;
            let key = lane::link_key(&of.home, number, &passphrase.known()?)?;
            of.add_apart(number, place, &key)?;
        }
        of.write()?;
    }
    let place = of.own_address(number);
    let line = String::from(of.lane.addresses[usize::from(of.lane.member)].clone());
    if json {
        println!("{}", json!({"shard": number, "address": place, "registers": number + 1, "addresses": line}));
        return Ok(());
    }
    println!("shard {number} listens for clients at {place}, from the next lane epoch on without registered keys");
    if apart.is_some() {
        println!("start it:                   walras shard --home {} --shard {number}", of.home.display());
    }
    println!("restart this node. In [lane] addresses of the other nodes, member {} is", of.lane.member);
    println!("  \"{line}\"");
    Ok(())
}

/// The ports above the member's last shard that no shard at the same host has.
fn free_address(of: &OwnShards) -> anyhow::Result<SocketAddr> {
    let last = of.own_address(of.lane.own_shards() as u16 - 1);
    let free = |port: u16| {
        let address = SocketAddr::new(last.ip(), port);
        of.neighbour(&address).is_none().then_some(address)
    };
    let ports = (last.port()..=u16::MAX - HOME_PORTS).step_by(HOME_PORTS.into()).skip(1);
    ports.into_iter().find_map(free).context("no ports are left above this member's last shard: give --address")
}

fn drain(mut of: OwnShards, json: bool) -> anyhow::Result<()> {
    let number = of.lane.registered_shards();
    ensure!(number > 1, "this member registers one shard, and a member has at least one");
    of.set_number(number - 1)?;
    of.write()?;
    let shard = number - 1;
    if json {
        println!("{}", json!({"shard": shard, "registers": number - 1}));
        return Ok(());
    }
    println!("shard {shard} has no part in lane epochs without registered keys; it serves on for the earlier ones");
    println!("restart this node. walras shard list tells which epochs have it");
    Ok(())
}

fn remove(mut of: OwnShards, server: Option<String>, json: bool) -> anyhow::Result<()> {
    let shard = of.lane.own_shards() as u16 - 1;
    ensure!(shard >= of.lane.registered_shards(), "shard {shard} is in use: drain it first (walras shard drain)");
    let epochs = ShardCounts::of(&of.ask(server)?, of.lane.member).epochs_with(shard);
    ensure!(
        epochs.is_empty(),
        "shard {shard} has a part in lane {}: without it nobody spends their money. Try again later",
        listed(&epochs)
    );
    of.remove_last()?;
    of.write()?;
    match json {
        true => println!("{}", json!({"shard": shard})),
        false => println!("shard {shard} is out of the settings: restart this node, and end its process if it has one"),
    }
    Ok(())
}

fn list(of: &OwnShards, server: Option<String>, json: bool) -> anyhow::Result<()> {
    let standing = if server.is_none() { of.shards()? } else { Vec::new() };
    let (lane, member) = (of.ask(server)?, of.lane.member);
    let counts = ShardCounts::of(&lane, member);
    let row = |shard: u16| {
        let apart = of.lane.apart.iter().find(|apart| apart.shard == shard);
        json!({
            "shard": shard,
            "clients": of.own_address(shard),
            "node": apart.map_or("here".into(), |apart| apart.address.clone()),
            "registers": shard < of.lane.registered_shards(),
            "epochs": counts.epochs_with(shard),
            "standing": standing.iter().find(|of| of.shard == shard),
        })
    };
    let rows: Vec<_> = (0..of.lane.own_shards() as u16).map(row).collect();
    let report = json!({"member": member, "epoch": lane.epoch, "heights_left": lane.heights_left, "shards": rows});
    if json {
        println!("{report}");
        return Ok(());
    }
    println!("member {member}, lane epoch {}, {} heights left", lane.epoch, lane.heights_left);
    for (shard, row) in rows.iter().enumerate() {
        let epochs = counts.epochs_with(shard as u16);
        let state = match (row["registers"] == true, epochs.is_empty()) {
            (true, true) => "in no epoch yet".into(),
            (true, false) => listed(&epochs),
            (false, false) => format!("drained: {}", listed(&epochs)),
            (false, true) => "drained, and over: walras shard remove".into(),
        };
        let (clients, node) = (of.own_address(shard as u16), row["node"].as_str().unwrap_or_default());
        let place = if node == "here" { "in the node".into() } else { format!("apart, at {node}") };
        println!("shard {shard:<3} {clients:<21} {place:<28} {state}");
        let standing = standing.iter().find(|of| usize::from(of.shard) == shard);
        standing.into_iter().for_each(|of| println!("          {}", told(of, clock_ms())));
    }
    Ok(())
}

/// How a shard stands, in a line.
fn told(of: &LaneShardBody, now_ms: u64) -> String {
    let LaneShardBody { up, since_ms, epoch, facts_height, signed, refused, log_bytes, .. } = of;
    let state = if *up { "up" } else { "DOWN" };
    let epoch = epoch.map_or("in no epoch".into(), |epoch| format!("in epoch {epoch}"));
    let since = span(now_ms.saturating_sub(*since_ms));
    format!(
        "{state} for {since}, {epoch}, knows block {facts_height}; {signed} signed, {refused} refused, log {log_bytes} \
         bytes"
    )
}

fn span(ms: u64) -> String {
    match ms / 1_000 {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ ..7_200 => format!("{} min", seconds / 60),
        seconds @ ..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

fn clock_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

fn listed(epochs: &[HomeEpoch]) -> String {
    let texts: Vec<String> = epochs.iter().map(HomeEpoch::to_string).collect();
    format!("epoch{} {}", if epochs.len() == 1 { "" } else { "s" }, texts.join(", "))
}

/// How many shards a member has in the lane epochs that count, and in the next one.
struct ShardCounts {
    /// In the first epoch, whose keys are in the genesis, if it counts.
    founded: usize,
    registered: Vec<(HomeEpoch, usize)>,
}

impl ShardCounts {
    fn of(lane: &LaneBody, member: u8) -> ShardCounts {
        // The first epoch counts at least as long as no registration of a later one is forgotten.
        let counts = lane.registrations.iter().map(|of| of.epoch).min().is_none_or(|oldest| oldest <= 1);
        let founded = lane.members.get(usize::from(member)).filter(|_| counts).map_or(0, Vec::len);
        let own = lane.registrations.iter().filter(|of| of.member == member && of.epoch > 0);
        ShardCounts { founded, registered: own.map(|of| (of.epoch, of.keys.len())).collect() }
    }

    /// The epochs in which the member has a shard.
    fn epochs_with(&self, shard: u16) -> Vec<HomeEpoch> {
        let all = std::iter::once((0, self.founded)).chain(self.registered.iter().copied());
        all.filter(|(_, count)| *count > usize::from(shard)).map(|(epoch, _)| epoch).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_long_a_shard_is_down_and_what_it_knows() {
        let of = LaneShardBody {
            shard: 1,
            apart: true,
            up: false,
            since_ms: 1_000_000,
            epoch: Some(4),
            facts_height: 77,
            signed: 12,
            refused: 3,
            log_bytes: 4_096,
        };
        let line = "DOWN for 15 min, in epoch 4, knows block 77; 12 signed, 3 refused, log 4096 bytes";
        assert_eq!(told(&of, 1_900_000), line);
        let new = LaneShardBody { up: true, epoch: None, facts_height: 0, signed: 0, refused: 0, log_bytes: 0, ..of };
        // Clocks of two machines differ.
        assert_eq!(told(&new, 0), "up for 0 s, in no epoch, knows block 0; 0 signed, 0 refused, log 0 bytes");
    }

    #[test]
    fn a_shard_is_over_once_no_epoch_that_counts_has_it() {
        let counts =
            |founded, registered: &[(HomeEpoch, usize)]| ShardCounts { founded, registered: registered.into() };
        assert_eq!(counts(2, &[]).epochs_with(1), [0]);
        assert_eq!(counts(1, &[(1, 2), (2, 1), (3, 2)]).epochs_with(1), [1, 3]);
        assert_eq!(counts(2, &[(1, 1)]).epochs_with(1), [0], "the genesis has its key");
        assert_eq!(counts(0, &[(4, 1), (5, 1)]).epochs_with(1), [] as [HomeEpoch; 0]);
        assert_eq!(counts(0, &[(4, 1), (5, 1)]).epochs_with(0), [4, 5]);
    }
}
