//! Settings of the payment lane.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use ledger::LaneTerms;
use primitives::{PublicKey, SecretKey};
use serde::{Deserialize, Serialize};
use sockets::Acquaintances;

use crate::lane::keys::LaneKeySafe;
use crate::lane::seat::{ApartSeat, LaneKeys, LaneSeat, LaneStartError};

/// The payment lane, on a chain that has one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LaneConfig {
    /// The addresses of the shards of all members, in the order of the genesis; each shard takes eight ports, from
    /// this one on. If empty, the node takes no part in the lane.
    pub addresses: Vec<SocketAddr>,
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
    /// The addresses of all shards by member, in the order of the genesis.
    pub fn addresses_of(&self, terms: &LaneTerms) -> Vec<Vec<SocketAddr>> {
        let mut rest = self.addresses.as_slice();
        let mut of_member = |shards: &Vec<_>| {
            let (own, others) = rest.split_at(shards.len().min(rest.len()));
            rest = others;
            own.to_vec()
        };
        let mut addresses: Vec<Vec<SocketAddr>> = terms.members.iter().map(&mut of_member).collect();
        // One address too many is rejected like one too few.
        addresses.extend(rest.iter().map(|one| vec![*one]));
        addresses
    }

    /// What is wrong with the shards that run apart, on a chain with this lane.
    pub fn warnings(&self, terms: Option<&LaneTerms>) -> Vec<String> {
        let own = terms.map_or(0, |terms| self.addresses_of(terms).get(usize::from(self.member)).map_or(0, Vec::len));
        let apart = match self.shards_apart() {
            Ok(apart) => apart,
            Err(error) => return vec![error.to_string()],
        };
        let unknown = apart.keys().filter(|shard| usize::from(**shard) >= own);
        let told = |shard| format!("[lane] apart lists shard {shard}: [lane] addresses has {own} of this member");
        unknown.map(told).collect()
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
        let (addresses, apart) = (self.addresses_of(terms), self.shards_apart()?);
        let keys =
            if terms.registrars.is_empty() { LaneKeys::Fixed(vec![key]) } else { LaneKeys::Registrar(Box::new(key)) };
        let known = self.acquaintances()?;
        Ok(LaneSeat { index: self.member, keys, addresses, tls: self.tls, known, account, safe, apart })
    }
}
