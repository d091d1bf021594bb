//! The payment lane of a home: its key, its section of the genesis, and how a node takes part.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Context;
use ledger::{Genesis, LaneAsset, LaneBls, LaneTerms};
use node::{Config, HOME_PORTS, LaneKeySafe, LaneSeat, Node};
use primitives::{Address, AssetId, PublicKey, SecretKey};
use zeroize::Zeroizing;

use crate::keystore::{self, Passphrase};

/// The key in a member's home that registers the keys of its shard for each lane epoch.
pub const LANE_KEY_FILE: &str = "lane-key.json";
/// Where the first member's shard listens on a machine of its own.
const LANE_PORT: u16 = 7100;
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

/// A member with one shard.
#[derive(Clone, Copy)]
pub struct FoundingMember {
    /// The key that registers its keys of later lane epochs.
    pub registrar: PublicKey,
    /// Its shard's key in the first lane epoch.
    pub shard: PublicKey,
    /// The account whose stake is liable for it, if stakes exist.
    pub account: Option<Address>,
}

/// Makes the key of a member's shard in the first lane epoch, in the node's own directory of a home.
///
/// # Errors
/// If the disk fails.
pub fn make_first_key(home: &Path, passphrase: &Zeroizing<String>) -> anyhow::Result<PublicKey> {
    let made = node::make_first_lane_keys(&home.join("data"), 1, Some(&safe(passphrase)));
    Ok(made.with_context(|| home.display().to_string())?[0])
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

/// The lane section for a genesis: it carries all assets and has one shard for each member.
pub fn terms(genesis: &Genesis, epoch_heights: u64, bls: LaneBls, members: &[FoundingMember]) -> LaneTerms {
    let asset = |number| LaneAsset { asset: AssetId(number), least_units: 1, fee: 0, outflow: None };
    LaneTerms {
        epoch_heights,
        halt_heights: HALT_HEIGHTS,
        case_deposit: genesis.fee.max(1).saturating_mul(payments::case_weight(members.len())),
        lapse_penalty: LAPSE_PENALTY,
        members: members.iter().map(|member| vec![member.shard]).collect(),
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
pub fn addresses(validators: &[String], count: usize) -> anyhow::Result<Vec<SocketAddr>> {
    if validators.is_empty() {
        let port = |index: usize| LANE_PORT + index as u16 * HOME_PORTS;
        return Ok((0..count).map(|index| SocketAddr::from(([127, 0, 0, 1], port(index)))).collect());
    }
    let address = |validator: &String| {
        let numbers: SocketAddr = validator
            .parse()
            .with_context(|| format!("--address {validator}: with --lane, write an IP address instead of a name"))?;
        Ok(SocketAddr::new(numbers.ip(), LANE_PORT))
    };
    validators.iter().map(address).collect()
}

/// The configuration of a home whose validator is this member of the lane; unchanged if there is none.
pub fn configure(text: &str, member: usize, addresses: &[SocketAddr]) -> String {
    if addresses.is_empty() {
        return text.into();
    }
    let quoted: Vec<String> = addresses.iter().map(|address| format!("\"{address}\"")).collect();
    let own = format!("addresses = [{}]", quoted.join(", "));
    text.replace("addresses = []", &own).replace("member = 0", &format!("member = {member}"))
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
