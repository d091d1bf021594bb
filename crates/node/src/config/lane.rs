//! Settings of the payment lane.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use ledger::LaneTerms;
use primitives::{PublicKey, SecretKey};
use serde::{Deserialize, Serialize};
use sockets::Acquaintances;

use crate::lane::keys::LaneKeySafe;
use crate::lane::seat::{ApartSeat, LaneKeys, LaneSeat, LaneStartError, check_apart, check_places};

/// The payment lane, on a chain that has one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LaneConfig {
    /// For each member, in the order of the genesis, the addresses of its shards. If empty, the node takes no part in
    /// the lane.
    pub addresses: Vec<MemberShards>,
    /// How many of its own shards this node registers for lane epochs to come; 0 for all that `addresses` lists.
    pub shards: u16,
    /// The IP address at which own shards listen, if not that of their address in `addresses`.
    pub bind: Option<IpAddr>,
    /// Whether the shards of all members speak TLS with clients, under their registered keys.
    pub tls: bool,
    /// This node's index among the members.
    pub member: u8,
    /// Proxies, as addresses or networks, whose PROXY header names the client.
    pub trusted_proxies: Vec<String>,
    /// Whether the trusted proxies send a PROXY header (version 1 or 2) before everything else.
    pub proxy_protocol: bool,
    /// Networks whose connections are never shut out; the members' addresses belong to them.
    pub known: Vec<String>,
    /// Shards of this member that run in processes of their own (`walras shard`).
    pub apart: Vec<ApartShard>,
}

/// The addresses of a member's shards, by shard, as one text with blanks between them. Each shard takes eight ports,
/// from this one on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MemberShards(pub Vec<SocketAddr>);

impl TryFrom<String> for MemberShards {
    type Error = String;

    fn try_from(text: String) -> Result<MemberShards, String> {
        let address = |word: &str| {
            let wrong =
                |_| format!("{word:?} is no address of a shard: write an IP address and a port, such as 10.0.0.7:7100");
            word.parse().map_err(wrong)
        };
        text.split_whitespace().map(address).collect::<Result<_, _>>().map(MemberShards)
    }
}

impl From<MemberShards> for String {
    fn from(shards: MemberShards) -> String {
        let texts: Vec<String> = shards.0.iter().map(SocketAddr::to_string).collect();
        texts.join(" ")
    }
}

/// A shard that runs in a process of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApartShard {
    /// Its number among the member's shards, from 0.
    pub shard: u16,
    /// Where it listens for its node, host and port.
    pub address: String,
    /// The key that it shows its node, in hexadecimal: the public half of its `shard-NUMBER-key.json`.
    pub key: String,
}

impl Default for LaneConfig {
    fn default() -> LaneConfig {
        LaneConfig {
            addresses: Vec::new(),
            shards: 0,
            bind: None,
            tls: true,
            member: 0,
            trusted_proxies: Vec::new(),
            proxy_protocol: false,
            known: Vec::new(),
            apart: Vec::new(),
        }
    }
}

impl LaneConfig {
    /// The addresses of the shards of each member, in the order of the genesis.
    pub fn addresses_by_member(&self) -> Vec<Vec<SocketAddr>> {
        self.addresses.iter().map(|shards| shards.0.clone()).collect()
    }

    /// Number of this member's shards that `addresses` lists.
    pub fn own_shards(&self) -> usize {
        self.addresses.get(usize::from(self.member)).map_or(0, |shards| shards.0.len())
    }

    /// How many of its shards this member registers for epochs to come.
    pub fn registered_shards(&self) -> u16 {
        if self.shards == 0 { self.own_shards().try_into().unwrap_or(u16::MAX) } else { self.shards }
    }

    /// What keeps this node from taking part in the lane of this chain.
    pub fn warnings(&self, terms: Option<&LaneTerms>) -> Vec<String> {
        let (Some(terms), false) = (terms, self.addresses.is_empty()) else { return Vec::new() };
        let placed = || {
            let apart = self.shards_apart()?;
            check_places(terms, &self.addresses_by_member(), self.member, self.registered_shards())?;
            check_apart(terms, self.own_shards(), apart.keys())
        };
        placed().err().iter().map(LaneStartError::to_string).collect()
    }

    /// Whom its operator knows.
    ///
    /// # Errors
    /// [`LaneStartError::Network`] if a listed network is none.
    pub fn acquaintances(&self) -> Result<Acquaintances, LaneStartError> {
        Acquaintances::parse(&self.trusted_proxies, self.proxy_protocol, &self.known)
            .map_err(|(key, text)| LaneStartError::Network { key, text })
    }

    /// The shards that run apart.
    ///
    /// # Errors
    /// [`LaneStartError::Apart`] if a key is none, or a shard is listed twice.
    pub fn shards_apart(&self) -> Result<BTreeMap<u16, ApartSeat>, LaneStartError> {
        let mut apart = BTreeMap::new();
        for ApartShard { shard, address, key } in &self.apart {
            let wrong = |what: &str| LaneStartError::Apart(format!("shard {shard}: {what}"));
            let bytes = primitives::from_hex::<32>(key).ok();
            let known = bytes.map(PublicKey).ok_or_else(|| {
                wrong(
                    "write `key` as 0x and 64 hexadecimal digits, as `walras init --apart` and `walras shard --new` print it",
                )
            })?;
            let seat = ApartSeat { address: address.clone(), key: known };
            if !primitives::is_network_address(address) {
                return Err(wrong("write `address` as host:port"));
            }
            if apart.insert(*shard, seat).is_some() {
                return Err(wrong("it is listed twice"));
            }
        }
        Ok(apart)
    }

    /// The lane membership of the node with this key: its registrar key, or where keys do not change the key of its
    /// one shard.
    ///
    /// # Errors
    /// [`LaneStartError::Network`] if a listed network is none, [`LaneStartError::Apart`] if shards that run apart are
    /// not set up.
    pub fn member(
        &self,
        terms: &LaneTerms,
        key: SecretKey,
        account: SecretKey,
        safe: Option<LaneKeySafe>,
    ) -> Result<LaneSeat, LaneStartError> {
        let (addresses, registers, apart) =
            (self.addresses_by_member(), self.registered_shards(), self.shards_apart()?);
        let keys =
            if terms.registrars.is_empty() { LaneKeys::Fixed(vec![key]) } else { LaneKeys::Registrar(Box::new(key)) };
        let known = self.acquaintances()?;
        Ok(LaneSeat {
            index: self.member,
            keys,
            addresses,
            registers,
            bind: self.bind,
            tls: self.tls,
            known,
            account,
            safe,
            apart,
        })
    }
}
