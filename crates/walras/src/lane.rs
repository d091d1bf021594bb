//! The payment lane of a home: its key, its section of the genesis, and how a node takes part.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::{Context, ensure};
use ledger::{Genesis, LaneAsset, LaneBls, LaneTerms};
use node::{Config, HOME_PORTS, LaneKeySafe, LaneSeat, Node};
use primitives::{Address, AssetId, PublicKey, SecretKey};
use zeroize::Zeroizing;

use crate::init::ports::Ports;
use crate::keystore::{self, Passphrase};

/// The key in a member's home that registers the keys of its shard for each lane epoch.
pub const LANE_KEY_FILE: &str = "lane-key.json";
/// Heights of a lane epoch: a day of blocks each half second. Money can be spent in its own epoch and the next one.
pub const EPOCH_HEIGHTS: u64 = 172_800;
/// Heights of a halt.
const HALT_HEIGHTS: u64 = 100;
/// The part that a lapsed output loses: a hundredth.
const LAPSE_PENALTY: u32 = 10_000;

/// The kind of BLS keys of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum BlsKeys {
    /// None: certificates are answers in Merkle trees.
    None,
    /// One for each shard: certificates of constant size as well.
    Aggregate,
    /// The same, and a group key for each epoch, which the members make on the ledger.
    Threshold,
}

impl From<BlsKeys> for LaneBls {
    fn from(keys: BlsKeys) -> LaneBls {
        match keys {
            BlsKeys::None => LaneBls::None,
            BlsKeys::Aggregate => LaneBls::Aggregate,
            BlsKeys::Threshold => LaneBls::Threshold,
        }
    }
}

/// A member that founds a lane.
pub struct FoundingMember {
    /// The key that registers its keys of later lane epochs.
    pub registrar: PublicKey,
    /// The keys of its shards in the first lane epoch.
    pub shards: Vec<PublicKey>,
    /// The account whose stake is liable for it, if stakes exist.
    pub account: Option<Address>,
}

/// Makes the keys of a member's shards in the first lane epoch, each in a file of its own in the node's directory of a
/// home.
///
/// # Errors
/// If the disk fails.
pub fn make_first_keys(home: &Path, shards: u16, passphrase: &Zeroizing<String>) -> anyhow::Result<Vec<PublicKey>> {
    let made = node::make_first_lane_keys(&home.join("data"), shards, Some(&safe(passphrase)));
    made.with_context(|| home.display().to_string())
}

/// The file of a home with the key that a shard which runs apart shows its node.
pub fn link_key_file(shard: u16) -> String {
    format!("shard-{shard}-key.json")
}

/// Makes the key that a shard shows its node.
///
/// # Errors
/// If there is one, or the disk fails.
pub fn make_link_key(home: &Path, shard: u16, passphrase: &Zeroizing<String>) -> anyhow::Result<PublicKey> {
    Ok(keystore::create_under(&home.join(link_key_file(shard)), passphrase)?.public())
}

/// The key that a shard shows its node; it is made if there is none.
///
/// # Errors
/// If it cannot be opened or made.
pub fn link_key(home: &Path, shard: u16, passphrase: &Zeroizing<String>) -> anyhow::Result<PublicKey> {
    let path = home.join(link_key_file(shard));
    match path.exists() {
        true => Ok(keystore::open_under(&path, passphrase)?.public()),
        false => make_link_key(home, shard, passphrase),
    }
}

/// The entry of a shard in the list `[lane] apart`.
pub fn apart_entry(shard: u16, address: &str, key: &PublicKey) -> String {
    format!("{{ shard = {shard}, address = \"{address}\", key = \"{key}\" }}")
}

/// How the shards of a lane are founded.
#[derive(Clone, Copy)]
pub struct FoundingShards {
    /// Their number at each member.
    pub count: u16,
    /// Whether they run in processes of their own.
    pub apart: bool,
    /// Where the first ones listen.
    pub ports: Ports,
}

impl FoundingShards {
    /// Whether a lane with these BLS keys can have such shards.
    ///
    /// # Errors
    /// What to ask for instead.
    pub fn check(self, bls: BlsKeys) -> anyhow::Result<()> {
        let (is_group, is_bls) = (bls == BlsKeys::Threshold, bls != BlsKeys::None);
        ensure!(
            !is_group || self.count == 1 && !self.apart,
            "--lane-bls threshold: members make a group key with one shard each, in their nodes; leave --shards and \
             --apart out, or choose --lane-bls aggregate"
        );
        let most = if is_bls { payments::BLS_SHARDS_MAX } else { payments::SHARDS_MAX };
        ensure!(usize::from(self.count) <= most, "--shards {}: with these BLS keys at most {most}", self.count);
        Ok(())
    }

    /// Makes the keys with which a member's shards run apart, and returns their list for the configuration. `clients`
    /// are the addresses at which they listen for clients.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn set_apart(
        self,
        home: &Path,
        clients: &[SocketAddr],
        passphrase: &Zeroizing<String>,
    ) -> anyhow::Result<Vec<String>> {
        let entry = |(shard, client): (u16, &SocketAddr)| {
            let key = make_link_key(home, shard, passphrase)?;
            // Below it are the ports for clients, each of which takes several.
            let port = self.ports.link + (client.port() - self.ports.lane) / HOME_PORTS;
            Ok(apart_entry(shard, &SocketAddr::new(client.ip(), port).to_string(), &key))
        };
        (0..).zip(clients).filter(|_| self.apart).map(entry).collect()
    }

    /// Makes the logs of the first epoch of shards that run apart: nobody else can know that they never signed.
    ///
    /// # Errors
    /// If the disk fails, or the genesis is not sound.
    pub fn make_first_logs(self, home: &Path, member: u8, genesis: &Genesis) -> anyhow::Result<()> {
        if self.apart {
            let ledger = ledger::Ledger::new(genesis)?;
            let network = ledger.lane().context("the genesis has a lane")?.network();
            node::make_first_lane_logs(&home.join("data"), network, member, self.count)?;
        }
        Ok(())
    }
}

/// Lane keys are encrypted like the other keys of a home, with the same passphrase.
pub fn safe(passphrase: &Zeroizing<String>) -> LaneKeySafe {
    LaneKeySafe {
        passphrase: passphrase.clone(),
        seal: |key, passphrase| keystore::sealed(key, passphrase).map_err(unusable),
        open: |bytes, passphrase| keystore::opened(bytes, passphrase).map_err(unusable),
    }
}

fn unusable(error: client::keystore::KeyError) -> std::io::Error {
    std::io::Error::other(format!("{error:#}"))
}

/// The lane section for a genesis: it carries all assets.
pub fn terms(genesis: &Genesis, epoch_heights: u64, bls: LaneBls, members: &[FoundingMember]) -> LaneTerms {
    let asset = |number| LaneAsset { asset: AssetId(number), least_units: 1, fee: 0, outflow: None };
    LaneTerms {
        epoch_heights,
        halt_heights: HALT_HEIGHTS,
        case_deposit: genesis.fee.max(1).saturating_mul(payments::case_weight(members.len())),
        lapse_penalty: LAPSE_PENALTY,
        members: members.iter().map(|member| member.shards.clone()).collect(),
        registrars: members.iter().map(|member| member.registrar).collect(),
        bls,
        accounts: members.iter().filter_map(|member| member.account).collect(),
        assets: (0..genesis.assets.len() as u32).map(asset).collect(),
        outputs: vec![],
    }
}

/// Where the shards of validators at these addresses listen: at the same hosts, or at consecutive ports on this
/// machine.
///
/// # Errors
/// If a validator's address is a host name: shards need numeric addresses.
pub fn addresses(validators: &[String], count: usize, shards: FoundingShards) -> anyhow::Result<Vec<Vec<SocketAddr>>> {
    let FoundingShards { count: shards, ports, .. } = shards;
    let at = |ip: IpAddr, first: usize| {
        let port = |shard: usize| u16::try_from(usize::from(ports.lane) + (first + shard) * usize::from(HOME_PORTS));
        let ports = (0..usize::from(shards)).map(|shard| port(shard).map(|port| SocketAddr::new(ip, port)));
        ports.collect::<Result<Vec<_>, _>>().context("--shards: there are too few ports for so many shards")
    };
    if validators.is_empty() {
        let own = |index: usize| at(IpAddr::from(Ipv4Addr::LOCALHOST), index * usize::from(shards));
        return (0..count).map(own).collect();
    }
    let address = |validator: &String| {
        let numbers: SocketAddr = validator
            .parse()
            .with_context(|| format!("--address {validator}: with --lane, write an IP address instead of a name"))?;
        at(numbers.ip(), 0)
    };
    validators.iter().map(address).collect()
}

/// The entries of `[lane] addresses`, one for each member.
pub fn listed(addresses: &[Vec<SocketAddr>]) -> Vec<String> {
    let shards = |of: &Vec<SocketAddr>| String::from(node::config::MemberShards(of.clone()));
    addresses.iter().map(|of| format!("\"{}\"", shards(of))).collect()
}

/// The configuration of a home whose validator is this member of the lane; unchanged if there is none.
pub fn configure(text: &str, member: usize, addresses: &[Vec<SocketAddr>], apart: &[String]) -> String {
    if addresses.is_empty() {
        return text.into();
    }
    let own = format!("addresses = [{}]", listed(addresses).join(", "));
    let text = text.replace("\naddresses = []", &format!("\n{own}"));
    let text = text.replace("\nmember = 0", &format!("\nmember = {member}"));
    text.replace("\napart = []", &format!("\napart = [{}]", apart.join(", ")))
}

/// The lane membership of a home's node; `None` if it takes no part. If the validator has no account, the account of
/// the lane key posts registrations and votes.
pub fn member(
    home: &Path,
    config: &Config,
    genesis: &Genesis,
    account: Option<&SecretKey>,
    passphrase: &Passphrase,
) -> anyhow::Result<Option<LaneSeat>> {
    if config.lane.addresses.is_empty() {
        return Ok(None);
    }
    let terms = genesis.lane.as_ref().context("[lane] addresses are set, but the genesis has no `lane` section")?;
    let passphrase = passphrase.known()?;
    let key = keystore::open_under(&home.join(LANE_KEY_FILE), &passphrase)?;
    let account = account.unwrap_or(&key).clone();
    // The node makes and opens the keys of each epoch by itself.
    Ok(Some(config.lane.member(terms, key, account, Some(safe(&passphrase)))?))
}

/// Takes part in the lane. If that fails, the node runs without it.
pub fn start(node: &Node, member: Option<&LaneSeat>, data: &Path) {
    let Some(member) = member else { return };
    match tokio::task::block_in_place(|| node.exchange().start_lane(member.clone(), data)) {
        Ok(()) => tracing::info!(member = member.index, "takes part in the payment lane"),
        Err(error) => tracing::error!(%error, "takes no part in the payment lane"),
    }
}
