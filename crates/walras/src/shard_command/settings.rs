//! The settings of a member's shards, in the file of a home: they are read, changed and checked as its node does it.
//! Comments and everything else in the file stay.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use api::{LaneBody, LaneShardBody};
use client::NodeClient;
use ledger::LaneTerms;
use node::config::{ApartShard, LaneConfig};
use node::{Config, HOME_PORTS};
use primitives::PublicKey;
use toml_edit::{DocumentMut, Value};

use crate::lane;

/// See the module text.
pub struct OwnShards {
    /// The home.
    pub home: PathBuf,
    /// The settings, as changed so far.
    pub lane: LaneConfig,
    terms: LaneTerms,
    http: String,
    document: DocumentMut,
}

impl OwnShards {
    /// Those of a home.
    ///
    /// # Errors
    /// If they cannot be read, its node takes no part in a lane, or the environment overrides them.
    pub fn open(home: &Path) -> anyhow::Result<OwnShards> {
        let path = home.join("walras.toml");
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let (genesis, _) = ::founding::genesis_file::read_with_founding(&home.join("genesis.json"))?;
        let terms = genesis.lane.context("the genesis has no `lane` section: this chain has no payment lane")?;
        let config = Config::load(Some(&path), std::iter::empty())?;
        let in_force = Config::load(Some(&path), std::env::vars())?;
        ensure!(
            in_force.lane == config.lane,
            "the environment sets [lane] (WALRAS_LANE__…), so that the file does not count: change it there"
        );
        ensure!(config.lane.own_shards() > 0, "{}: [lane] addresses lists no shard of this member", path.display());
        let scheme = if config.http.certificate.is_some() { "https" } else { "http" };
        let http = format!("{scheme}://{}", config.http.listen);
        let document = text.parse::<DocumentMut>().with_context(|| path.display().to_string())?;
        Ok(OwnShards { home: home.into(), lane: config.lane, terms, http, document })
    }

    /// What a node says of the lane; by default this home's.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn ask(&self, server: Option<String>) -> anyhow::Result<LaneBody> {
        Ok(NodeClient::at(server.unwrap_or_else(|| self.http.clone())).get("/v1/lane")?)
    }

    /// How the shards of this member stand, by its node.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn shards(&self) -> anyhow::Result<Vec<LaneShardBody>> {
        Ok(NodeClient::at(self.http.clone()).status()?.lane_shards)
    }

    /// Where a shard of this member listens for clients.
    pub fn own_address(&self, shard: u16) -> SocketAddr {
        self.lane.addresses[usize::from(self.lane.member)].0[usize::from(shard)]
    }

    /// A shard of the committee some of whose ports are among those of a shard here.
    pub fn neighbour(&self, address: &SocketAddr) -> Option<SocketAddr> {
        let shares = |of: &&SocketAddr| of.ip() == address.ip() && of.port().abs_diff(address.port()) < HOME_PORTS;
        self.lane.addresses.iter().flat_map(|of| &of.0).find(shares).copied()
    }

    /// Lists another shard of this member.
    ///
    /// # Errors
    /// If it shares ports with one that is listed.
    pub fn add_address(&mut self, address: SocketAddr) -> anyhow::Result<()> {
        if let Some(of) = self.neighbour(&address) {
            anyhow::bail!("--address {address}: the shard at {of} has some of these {HOME_PORTS} ports");
        }
        self.lane.addresses[usize::from(self.lane.member)].0.push(address);
        self.write_addresses()
    }

    /// Takes this member's last shard out of the lists.
    ///
    /// # Errors
    /// If the file has no such lists.
    pub fn remove_last(&mut self) -> anyhow::Result<()> {
        let number = self.lane.registered_shards();
        self.lane.addresses[usize::from(self.lane.member)].0.pop();
        self.write_addresses()?;
        let last = self.lane.own_shards();
        if let Some(at) = self.lane.apart.iter().position(|of| usize::from(of.shard) == last) {
            self.lane.apart.remove(at);
            self.list("apart")?.remove(at);
        }
        self.set_number(number)
    }

    fn write_addresses(&mut self) -> anyhow::Result<()> {
        let member = usize::from(self.lane.member);
        let line = String::from(self.lane.addresses[member].clone());
        self.list("addresses")?.replace(member, line);
        Ok(())
    }

    /// Sets how many shards this member registers for epochs to come.
    ///
    /// # Errors
    /// If the file has no section of the lane.
    pub fn set_number(&mut self, number: u16) -> anyhow::Result<()> {
        let is_all = usize::from(number) == self.lane.own_shards();
        self.lane.shards = if is_all { 0 } else { number };
        let written = i64::from(self.lane.shards);
        self.section()?.insert("shards", toml_edit::value(written));
        Ok(())
    }

    /// Lists a shard as one that runs in a process of its own.
    ///
    /// # Errors
    /// If the file has no such list.
    pub fn add_apart(&mut self, shard: u16, address: &str, key: &PublicKey) -> anyhow::Result<()> {
        self.lane.apart.push(ApartShard { shard, address: address.into(), key: key.to_string() });
        let entry = lane::apart_entry(shard, address, key).parse::<Value>();
        let entry = entry.with_context(|| format!("--apart {address}"))?;
        self.list("apart")?.push(entry);
        Ok(())
    }

    fn section(&mut self) -> anyhow::Result<&mut dyn toml_edit::TableLike> {
        let section = self.document.get_mut("lane").and_then(toml_edit::Item::as_table_like_mut);
        section.context("walras.toml has no section [lane]")
    }

    fn list(&mut self, name: &str) -> anyhow::Result<&mut toml_edit::Array> {
        let entry = self.section()?.entry(name).or_insert(toml_edit::value(toml_edit::Array::new()));
        entry.as_array_mut().with_context(|| format!("walras.toml: [lane] {name} is no list"))
    }

    /// Checks them with another shard that runs apart.
    ///
    /// # Errors
    /// What would be wrong.
    pub fn check_with(&self, shard: u16, address: &str) -> anyhow::Result<()> {
        let mut lane = self.lane.clone();
        lane.apart.push(ApartShard { shard, address: address.into(), key: PublicKey([0; 32]).to_string() });
        check(&lane, &self.terms)
    }

    /// Writes the file, if a node would start with it.
    ///
    /// # Errors
    /// What a node would say of it, or why it cannot be written.
    pub fn write(&self) -> anyhow::Result<()> {
        check(&self.lane, &self.terms)?;
        let (path, beside) = (self.home.join("walras.toml"), self.home.join("walras.toml.new"));
        let written = std::fs::write(&beside, self.document.to_string());
        written.and_then(|()| std::fs::rename(&beside, &path)).with_context(|| path.display().to_string())
    }
}

/// Checks settings as a node would.
fn check(lane: &LaneConfig, terms: &LaneTerms) -> anyhow::Result<()> {
    let warnings = lane.warnings(Some(terms));
    ensure!(warnings.is_empty(), "{}", warnings.join("; "));
    Ok(())
}
