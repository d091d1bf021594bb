//! A purse follows its network over a restart: it takes from the agreed list what belongs to its keys.
//!
//! The identity of the restarted network contains the list's digest, so nothing else is taken from a node or from the
//! file. Everything of the network before is moved into a folder of its own, and kept: receipts in it are evidence for
//! a later restart.
//!
//! What is to be done is durable in one file before anything is moved; a command that is interrupted is finished by
//! the next one.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use ledger::{Restart, RestartedLane};
use payments::{LaneCarryOver, Output, OutputId, Recipient};
use primitives::{Digest, PublicKey, to_hex};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::PursePlace;
use super::deposit_file::Deposit;
use super::files::{read_json, write_json};
use super::network::LaneNetwork;
use super::plan::{PLAN, Plan};
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
            members: members.map(|shards| shards.iter().map(PublicKey::to_string).collect()).collect(),
            list: to_hex(&carried.encode()),
        }
    }

    /// Writes it into a home.
    pub fn write(&self, home: &Path) -> anyhow::Result<()> {
        write_json(&home.join(LIST_FILE), self)
    }

    /// The list, if it is the one of this network.
    fn list_of(&self, network: &LaneNetwork) -> anyhow::Result<LaneCarryOver> {
        let carried =
            LaneCarryOver::parse(&crate::hexadecimal::hex_bytes(&self.list).context("the list is not hexadecimal")?)?;
        let lane = RestartedLane { list: carried.digest(), members: network.members.clone() };
        let restart = Restart { number: self.number, snapshot: self.snapshot.parse()?, lane: Some(lane) };
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
    let network = match genesis {
        Some(genesis) => LaneNetwork::of_genesis(genesis)?,
        None => LaneNetwork::of_server(server)?,
    };
    let file: ListFile = read_json(list)?;
    let carried = file.list_of(&network).with_context(|| list.display().to_string())?;
    let mut purse = place.open()?;
    ensure!(purse.network.id != network.id, "the purse is of this network already");
    let owner = |output: &Output| match output.to {
        Recipient::Key(key) => Some(key),
        Recipient::Account(_) => None,
    };
    let seed = purse.seed(&place.passphrase())?;
    let keys: Vec<PublicKey> = carried.outputs.values().filter_map(owner).collect();
    purse.find_lost_keys(&seed, &keys)?;
    let own = carried.outputs.iter().filter(|(_, output)| owner(output).is_some_and(|key| purse.owns(&key)));
    let deposits: Vec<Deposit> = own.filter_map(|(id, output)| carried_deposit(id, output)).collect();
    let before = format!("before-{}", &network.id.to_string()[2..10]);
    let plan = Plan { lane: network.encode(), before, deposits };
    write_json(&purse.folder().join(PLAN), &plan)?;
    let folder = purse.folder().to_path_buf();
    drop(purse);
    drop(place.open()?);
    let fingerprint = network.fingerprint();
    if json {
        let outputs = plan.deposits.len();
        println!("{}", json!({"network": network.id.to_string(), "fingerprint": fingerprint, "outputs": outputs}));
    } else {
        println!("The purse is of network {} now; {} outputs are carried over.", network.id, plan.deposits.len());
        println!("Fingerprint {fingerprint}: compare it with an operator's.");
        println!("What it had before is in {}.", folder.join(&plan.before).display());
    }
    Ok(ExitCode::SUCCESS)
}

fn carried_deposit(id: &OutputId, output: &Output) -> Option<Deposit> {
    let Recipient::Key(to) = output.to else { return None };
    Some(Deposit {
        transaction: id.to_string(),
        account: to.address().to_string(),
        sequence: 0,
        to: to.to_string(),
        asset: output.asset.0,
        amount: output.amount,
        home: Some(0),
        carried: Some(Digest(id.0).to_string()),
    })
}
