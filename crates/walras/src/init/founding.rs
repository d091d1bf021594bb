//! `walras init --validators`: the homes of the validators that found a network.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use ::founding::{Founder, Founding, FoundingEngine};
use anyhow::{Context, ensure};
use ledger::{Genesis, SealTerms};
use primitives::{Address, AssetId, PublicKey, is_network_address, to_hex};
use serde_json::json;
use store::RealDisk;
use zeroize::Zeroizing;

use crate::init::venue::FoundedVenue;
use crate::init::{Init, make_home};
use crate::keystore::{self, Passphrase};
use crate::lane;
use crate::validator_keys::{self, MadeKeys};

/// Number of fees that the account of a validator can pay at the start: a proposal, which costs 1,000, in each month of
/// a year (a parameter rests for one), and votes, accusations and registrations beside them.
pub const FOUNDER_FEES: u64 = 20_000;

/// A network's homes.
pub struct Founded {
    genesis: Genesis,
    founding: Founding,
    made: Vec<Made>,
    issuer: Address,
    venue: Option<FoundedVenue>,
}

/// A newly made home of a validator.
struct Made {
    /// Its name in the network's folder.
    name: String,
    keys: MadeKeys,
    /// Its place in the payment lane, if there is one.
    lane: Option<lane::FoundingMember>,
    address: String,
    http: SocketAddr,
}

/// Writes the homes `validator-0` to `validator-(N-1)`, the genesis that they share, and the issuer's key.
pub fn found(init: &Init, engine: FoundingEngine, size: u8) -> anyhow::Result<Founded> {
    ensure!(
        init.addresses.is_empty() || init.addresses.len() == usize::from(size),
        "--address is given {} times for {size} validators: give one for each, or none",
        init.addresses.len()
    );
    node::config::tolerance_warning(size.into()).iter().for_each(|warning| eprintln!("warning: {warning}"));
    let folder = &init.home;
    // Asked for once: each operator receives a home and may change the passphrase.
    let passphrase = init.passphrase.read_new()?;
    let issuer = keystore::create_under(&folder.join("issuer-key.json"), &passphrase)?.public().address();
    let mut genesis = init.make(issuer)?;
    genesis.issued_assets()?;
    let decimals = genesis.assets[0].decimals;
    let stake = init.founders_stake(decimals)?;
    let shards = init.shards()?;
    let lanes = match init.lane {
        true => lane::addresses(&init.addresses, usize::from(size), shards)?,
        false => Vec::new(),
    };
    let mut made =
        (0..size).map(|index| make(init, index, &lanes, &passphrase)).collect::<anyhow::Result<Vec<Made>>>()?;
    // A validator pays for what its operator proposes, and for the accusations that it makes automatically.
    let fees = genesis.fee.saturating_mul(FOUNDER_FEES);
    genesis.balances.extend(made.iter().map(|one| (one.keys.account.address(), AssetId(0), fees)));
    let first = folder.join(&made[0].name);
    let venue = init.venue.then(|| FoundedVenue::make(&first, &mut genesis, fees, &passphrase)).transpose()?;
    let founder = |one: &Made| {
        let (key, account) = (one.keys.votes, one.keys.account.address());
        let address = validator_keys::address_of(&one.keys.links, &one.address);
        Founder { key, address, account, stake }
    };
    if init.lane {
        let members: Vec<lane::FoundingMember> = made.iter_mut().filter_map(|one| one.lane.take()).collect();
        genesis.lane = Some(lane::terms(&genesis, init.lane_epoch_heights, init.lane_bls.into(), &members));
    }
    genesis.seals = init.seals.as_deref().and_then(SealTerms::named);
    let founding = Founding::new(engine, made.iter().map(founder).collect());
    let succession = init.succession.over(founding.succession, decimals)?;
    let founding = Founding { succession, interval: Duration::from_millis(init.interval_ms), ..founding };
    let genesis = founding.found(genesis);
    genesis.issued_assets()?;
    for (member, one) in (0..).zip(&made).filter(|_| init.lane) {
        shards.make_first_logs(&folder.join(&one.name), member, &genesis)?;
    }
    for home in made.iter().map(|one| folder.join(&one.name)).chain([folder.clone()]) {
        ::founding::genesis_file::write_with_founding(&home.join("genesis.json"), &genesis, Some(&founding))?;
    }
    Ok(Founded { genesis, founding, made, issuer, venue })
}

/// Makes the home of one validator, without the genesis.
fn make(init: &Init, index: u8, lanes: &[Vec<SocketAddr>], passphrase: &Zeroizing<String>) -> anyhow::Result<Made> {
    let name = format!("validator-{index}");
    let home = init.home.join(&name);
    let shards = init.shards()?;
    let (ports, local) = (shards.ports, |port| SocketAddr::from(([127, 0, 0, 1], port)));
    make_home(&home)?;
    let keys = validator_keys::make(&home, passphrase)?;
    let address = match init.addresses.get(usize::from(index)) {
        Some(address) => address.clone(),
        None => local(ports.network + u16::from(index)).to_string(),
    };
    ensure!(is_network_address(&address), "--address {address:?}: write host:port, such as a.example:9100");
    let http = local(ports.http + u16::from(index));
    let registrar = || keystore::create_under(&home.join(lane::LANE_KEY_FILE), passphrase);
    let registrar = init.lane.then(registrar).transpose()?;
    let own = lanes.get(usize::from(index)).map_or(&[][..], Vec::as_slice);
    let apart = shards.set_apart(&home, own, passphrase)?;
    let template = lane::configure(node::config::TEMPLATE, index.into(), lanes, &apart);
    let ethereum = local(ports.ethereum + u16::from(index));
    let mut listens = vec![http, ethereum, listen(&address)?];
    listens.extend(ports.venue(index).into_iter().flatten().map(local));
    write_config(&home, &template, &listens)?;
    let data = home.join("data");
    RealDisk::new(&data).with_context(|| data.display().to_string())?;
    node::validator::create_votes(&data)?;
    let account = Some(keys.account.address());
    let member = |registrar: primitives::SecretKey| {
        let shards = lane::make_first_keys(&home, shards.count, passphrase)?;
        Ok(lane::FoundingMember { registrar: registrar.public(), shards, account })
    };
    let lane = registrar.map(member).transpose().map_err(|error: anyhow::Error| error)?;
    Ok(Made { name, keys, lane, address, http })
}

/// Makes the keys and the empty vote log of a node that is not a founder.
pub fn make_newcomer(home: &Path, passphrase: &Passphrase) -> anyhow::Result<PublicKey> {
    let keys = validator_keys::make(home, &passphrase.read_new()?)?;
    node::validator::create_votes(&home.join("data"))?;
    Ok(keys.votes)
}

/// The listening address of a validator with a given public address: the same address if it is numeric, every
/// interface if it is a host name.
fn listen(address: &str) -> anyhow::Result<SocketAddr> {
    if let Ok(address) = address.parse() {
        return Ok(address);
    }
    let port = address.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    Ok(SocketAddr::from(([0, 0, 0, 0], port.context("the address has no port")?)))
}

/// Writes the commented configuration with this validator's addresses: of HTTP, Ethereum's JSON-RPC, the other
/// validators, and of a venue, its OUCH and its feed. Those that are left out stay as they are.
fn write_config(home: &Path, template: &str, own: &[SocketAddr]) -> anyhow::Result<()> {
    let node::Config { http, ethereum, network, venue, .. } = node::Config::default();
    let listens =
        [http.listen, ethereum.listen, network.listen, venue.listen, venue.ouch_listen, venue.feed_listen].into_iter();
    let changed: Vec<_> = listens.zip(own).map(|(default, own)| (quoted(&default), quoted(own))).collect();
    // Line by line: a new address may be what another one was.
    let line = |line: &str| match changed.iter().find(|(default, _)| line.ends_with(default)) {
        Some((default, own)) => line.replace(default, own) + "\n",
        None => line.to_string() + "\n",
    };
    let text: String = template.lines().map(line).collect();
    std::fs::write(home.join("walras.toml"), text).with_context(|| home.display().to_string())
}

fn quoted(address: &SocketAddr) -> String {
    format!("listen = \"{address}\"")
}

impl Founded {
    /// Tells what is in the network's folder.
    pub fn report(&self, folder: &Path, json: bool) {
        let Founded { genesis, founding, made, issuer, venue } = self;
        let key = folder.join("issuer-key.json");
        let network = founding.digest(genesis).to_string();
        if json {
            let validator = |one: &Made| {
                json!({
                    "home": folder.join(&one.name),
                    "key": format!("0x{}", to_hex(&one.keys.votes.0)),
                    "account": one.keys.account.address().to_string(),
                    "address": one.address,
                    "http": format!("http://{}", one.http),
                })
            };
            let founded = json!({
                "home": folder,
                "chain": genesis.chain,
                "genesis": genesis.digest().to_string(),
                "network": network,
                "issuer": issuer.to_string(),
                "validators": made.iter().map(validator).collect::<Vec<_>>(),
                "venue": venue.as_ref().map(|venue| venue.to_json(&key)),
            });
            println!("{founded}");
            return;
        }
        println!("Network    {network}");
        println!("Chain      {}", genesis.chain);
        println!("Issuer     {issuer} (key in {})", key.display());
        for (index, one) in made.iter().enumerate() {
            let home = folder.join(&one.name);
            let (key, address, http) = (one.keys.votes, &one.address, one.http);
            println!("Validator  {index}: {key} at {address}, http://{http} ({})", home.display());
        }
        println!("\nGive each home to its operator. Start each:");
        println!("  WALRAS_PASSPHRASE=… walras node --home {}", folder.join("validator-0").display());
        venue.iter().for_each(|venue| venue.report(&key));
    }
}

/// The engines that can be chosen on the command line.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum EngineName {
    /// Superblocks of all validators' sub-blocks.
    Dbft,
    /// Blocks of one proposer each.
    Tendermint,
    /// One node that agrees with itself.
    Solo,
}

impl EngineName {
    /// The engine of a network; `None` for a single node.
    pub fn engine(self) -> Option<FoundingEngine> {
        match self {
            EngineName::Dbft => Some(FoundingEngine::Dbft),
            EngineName::Tendermint => Some(FoundingEngine::Tendermint),
            EngineName::Solo => None,
        }
    }
}
