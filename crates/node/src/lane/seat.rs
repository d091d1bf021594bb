//! A validator's membership in the payment lane, and the errors when it cannot take part.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use lane::{LogError, ShardError};
use ledger::{LaneBls, LaneBridge, LaneTerms};
use payments::{BLS_SHARDS_MAX, HomeEpoch, SHARDS_MAX};
use primitives::{PublicKey, SecretKey};
use sockets::Acquaintances;

use super::keys::LaneKeySafe;

/// A shard of home epoch h listens on the port of its address plus h modulo this.
pub const HOME_PORTS: u16 = api::HOME_PORTS;
const _: () = assert!(HOME_PORTS as u64 == payments::HOME_PORTS, "a shard listens where clients look for it");

/// A validator's seat in the lane's committee, as its operator has set it up.
#[derive(Clone)]
pub struct LaneSeat {
    /// Its index in the committee.
    pub index: u8,
    /// The keys of its shards, or what registers them.
    pub keys: LaneKeys,
    /// The addresses of all shards of the committee, by member and shard. Each takes [`HOME_PORTS`] ports.
    pub addresses: Vec<Vec<SocketAddr>>,
    /// How many of its own shards it registers for epochs to come: the first ones.
    pub registers: u16,
    /// The IP address at which its own shards listen, if not that of their address.
    pub bind: Option<IpAddr>,
    /// Whether they all speak TLS.
    pub tls: bool,
    /// Whom its operator knows.
    pub known: Acquaintances,
    /// The key of the account that posts votes and views.
    pub account: SecretKey,
    /// How the node encrypts the keys that it creates; `None` if it does not.
    pub safe: Option<LaneKeySafe>,
    /// Its shards that run in processes of their own.
    pub apart: BTreeMap<u16, ApartSeat>,
}

/// A shard that runs in a process of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApartSeat {
    /// Where the node dials it.
    pub address: String,
    /// The key that it shows there.
    pub key: PublicKey,
}

/// Where the keys of a member's shards come from.
#[derive(Clone)]
pub enum LaneKeys {
    /// These keys serve in every epoch: the genesis has no registrars.
    Fixed(Vec<SecretKey>),
    /// The node creates fresh keys for each epoch, and this key of the genesis registers them.
    Registrar(Box<SecretKey>),
}

/// Why a validator cannot take part in the lane.
#[derive(Debug, thiserror::Error)]
pub enum LaneStartError {
    /// The chain has no lane.
    #[error("the genesis has no `lane` section: this chain has no payment lane")]
    NoLane,
    /// The lane is running already.
    #[error("this node takes part in the lane already: start it only once")]
    Running,
    /// The genesis does not name a key.
    #[error(
        "lane.members[{member}] in the genesis does not name the keys {keys:?}: use the keys of this member's shards"
    )]
    Keys {
        /// The index.
        member: u8,
        /// The keys given.
        keys: Vec<PublicKey>,
    },
    /// The genesis does not name the registrar, or names registrars where shard keys are given.
    #[error("lane.registrars[{0}] in the genesis does not match the key given: use this member's lane-key.json")]
    Registrar(u8),
    /// The addresses do not match the committee.
    #[error("[lane] addresses: {0}")]
    Addresses(String),
    /// The number of own shards cannot be registered.
    #[error("[lane] shards: {0}")]
    Registers(String),
    /// A shard has a home, and no address.
    #[error(
        "[lane] addresses does not list shard {shard} of this member, which lane epoch {home} still has: list it until \
         that epoch's money has been spent or has come home"
    )]
    NoAddress {
        /// The home epoch.
        home: HomeEpoch,
        /// The shard.
        shard: u16,
    },
    /// Shards that run apart are set up wrongly.
    #[error("[lane] apart: {0}")]
    Apart(String),
    /// A setting does not list networks.
    #[error("[lane] {key}: {text:?} is neither an address nor a network such as 10.0.0.0/8")]
    Network {
        /// The setting.
        key: &'static str,
        /// What it says.
        text: String,
    },
    /// The network restarts without this home.
    #[error(
        "the lane of this home is closed for restart {0} of the network: run the home that `walras restart` made instead"
    )]
    Closed(u32),
    /// A directory or a log failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A directory cannot be used.
    #[error("{0}: {1}")]
    Directory(String, std::io::Error),
    /// A thread could not be started.
    #[error("{0}")]
    Thread(String),
    /// A shard cannot start.
    #[error(transparent)]
    Shard(#[from] ShardError),
}

/// The address at which a shard of a home epoch listens.
pub fn home_address(of: SocketAddr, home: HomeEpoch) -> SocketAddr {
    SocketAddr::new(of.ip(), of.port() + (home % u64::from(HOME_PORTS)) as u16)
}

/// Checks a membership against the terms of the chain.
pub(crate) fn check(member: &LaneSeat, lane: &LaneBridge) -> Result<(), LaneStartError> {
    let (terms, at) = (lane.terms(), usize::from(member.index));
    match &member.keys {
        LaneKeys::Registrar(key) => {
            if terms.registrars.get(at) != Some(&key.public()) {
                return Err(LaneStartError::Registrar(member.index));
            }
        }
        LaneKeys::Fixed(keys) => {
            let keys: Vec<PublicKey> = keys.iter().map(SecretKey::public).collect();
            if !terms.registrars.is_empty() {
                return Err(LaneStartError::Registrar(member.index));
            }
            if terms.members.get(at) != Some(&keys) {
                return Err(LaneStartError::Keys { member: member.index, keys });
            }
        }
    }
    check_apart(terms, member.addresses.get(at).map_or(0, Vec::len), member.apart.keys())?;
    check_places(terms, &member.addresses, member.index, member.registers)
}

/// Checks the addresses of all shards, and how many of its own a member registers for epochs to come.
pub(crate) fn check_places(
    terms: &LaneTerms,
    addresses: &[Vec<SocketAddr>],
    index: u8,
    registers: u16,
) -> Result<(), LaneStartError> {
    let wrong = |text: String| Err(LaneStartError::Addresses(text));
    let members = terms.members.len();
    if addresses.len() != members {
        return wrong(format!(
            "it lists shards of {} members and the genesis names {members}: write one text for each, with the addresses \
             of its shards, from the first one on, and blanks between them",
            addresses.len()
        ));
    }
    if let Some(member) = addresses.iter().position(Vec::is_empty) {
        return wrong(format!("it lists no shard of member {member}"));
    }
    if let Some(of) = addresses.iter().flatten().find(|of| of.port().checked_add(HOME_PORTS - 1).is_none()) {
        return wrong(format!("{of} has no {} ports above it, which a shard needs", HOME_PORTS - 1));
    }
    let own = addresses.get(usize::from(index)).map_or(0, Vec::len);
    check_number(terms, own, terms.members.get(usize::from(index)).map_or(0, Vec::len), registers)
}

/// Checks how many of its `own` shards a member registers that was founded with so many.
fn check_number(terms: &LaneTerms, own: usize, founded: usize, registers: u16) -> Result<(), LaneStartError> {
    let wrong = |text: String| Err(LaneStartError::Registers(text));
    let number = usize::from(registers);
    if number == 0 || number > own {
        return wrong(format!("{number} are to be registered, and [lane] addresses lists {own} of this member"));
    }
    if terms.registrars.is_empty() && number != founded {
        return wrong(format!("the genesis has no registrars, so this member has {founded} shards for ever"));
    }
    let (most, keys) = match terms.bls {
        LaneBls::None => (SHARDS_MAX, "these keys"),
        LaneBls::Aggregate => (BLS_SHARDS_MAX, "BLS keys"),
        LaneBls::Threshold => (1, "group keys"),
    };
    if number > most { wrong(format!("a member with {keys} has at most {most}, not {number}")) } else { Ok(()) }
}

/// A shard apart has its own key of each epoch, so the chain must have registrars, and no group keys.
pub(crate) fn check_apart<'a>(
    terms: &LaneTerms,
    own: usize,
    mut apart: impl Iterator<Item = &'a u16>,
) -> Result<(), LaneStartError> {
    let wrong = |what: &str| Err(LaneStartError::Apart(what.into()));
    let Some(last) = apart.by_ref().max() else { return Ok(()) };
    if terms.registrars.is_empty() {
        return wrong("the genesis has no registrars, so shards cannot make their own keys: leave it empty");
    }
    if terms.bls == LaneBls::Threshold {
        return wrong("members of this lane make group keys, with one shard each, in their nodes: leave it empty");
    }
    if usize::from(*last) >= own {
        return wrong(&format!("this member has no shard {last}: [lane] addresses lists {own}, numbered from 0"));
    }
    Ok(())
}
