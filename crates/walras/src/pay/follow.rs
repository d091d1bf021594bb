//! A purse follows its network over a restart: it takes from the agreed list what belongs to its keys.
//!
//! The identity of the restarted network contains the list's digest, so nothing else is taken from a node or from the
//! file. Everything of the network before is moved into a folder of its own, and kept: receipts in it are evidence for
//! a later restart.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use client::durable::write_durable;
use client::purse::LaneNetwork;
use ledger::{Restart, RestartedLane};
use payments::LaneCarryOver;
use primitives::{Address, Digest, PublicKey, to_hex};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::PursePlace;
use super::founded::lane_of;
use crate::wallet::server::Server;

/// The list of a restart, beside the genesis file.
pub const LIST_FILE: &str = "lane-list.json";

/// The list in a file, with what the identity of the restarted network is made of.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListFile {
    first: String,
    number: u32,
    snapshot: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    committee: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rules: Option<u32>,
    members: Vec<Vec<String>>,
    /// The list in hexadecimal.
    list: String,
}

impl ListFile {
    /// The file of a restart; `first` is the identity of the network when it was founded.
    pub fn new(first: &Digest, restart: &Restart, carried: &LaneCarryOver) -> ListFile {
        let members = restart.lane.iter().flat_map(|lane| &lane.members);
        ListFile {
            first: first.to_string(),
            number: restart.number,
            snapshot: restart.snapshot.to_string(),
            committee: restart.committee.iter().map(Address::to_string).collect(),
            rules: restart.rules,
            members: members.map(|shards| shards.iter().map(PublicKey::to_string).collect()).collect(),
            list: to_hex(&carried.encode()),
        }
    }

    /// Writes it into a home.
    pub fn write(&self, home: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        Ok(write_durable(&home.join(LIST_FILE), text.as_bytes())?)
    }

    /// The list, if it is the one of this network.
    fn list_of(&self, network: &LaneNetwork) -> anyhow::Result<LaneCarryOver> {
        let carried =
            LaneCarryOver::parse(&client::hexadecimal::hex_bytes(&self.list).context("the list is not hexadecimal")?)?;
        let lane = RestartedLane { list: carried.digest(), members: network.members.clone() };
        let committee = self.committee.iter().map(|account| account.parse()).collect::<Result<_, _>>()?;
        let restart = Restart {
            number: self.number,
            snapshot: self.snapshot.parse()?,
            committee,
            lane: Some(lane),
            rules: self.rules,
        };
        ensure!(restart.identity(&self.first.parse()?) == network.id, "the list is not that of network {}", network.id);
        Ok(carried)
    }
}

pub(super) fn follow(
    json: bool,
    genesis: Option<&Path>,
    list: &Path,
    place: &PursePlace,
    server: &Server,
) -> anyhow::Result<ExitCode> {
    let network = lane_of(genesis, server)?;
    let text = std::fs::read(list).with_context(|| list.display().to_string())?;
    let damaged = || format!("{} is damaged: get it from an operator again", list.display());
    let file: ListFile = serde_json::from_slice(&text).with_context(damaged)?;
    let carried = file.list_of(&network).with_context(|| list.display().to_string())?;
    let purse = place.open()?;
    ensure!(purse.network.id != network.id, "the purse is of this network already");
    let seed = place.seed(&purse)?;
    let (outputs, before) = purse.follow(&seed, &network, &carried)?;
    let fingerprint = network.fingerprint();
    if json {
        println!("{}", json!({"network": network.id.to_string(), "fingerprint": fingerprint, "outputs": outputs}));
    } else {
        println!("The purse is of network {} now; {outputs} outputs are carried over.", network.id);
        println!("Fingerprint {fingerprint}: compare it with an operator's.");
        println!("What it had before is in {}.", before.display());
    }
    Ok(ExitCode::SUCCESS)
}
