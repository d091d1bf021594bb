//! `walras pay trust`: shows whom the purse believes about the ledger, or chooses it anew.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;
use client::light::Pin;
use client::purse::{LedgerTrust, Purse, PurseError};
use primitives::Digest;
use proofs::Chain;
use serde_json::json;

use super::PursePlace;
use super::founded::of_genesis;
use crate::wallet::server::Server;

/// From where the purse follows the chain's validators.
pub(super) enum Start {
    /// From where it has come.
    Kept,
    Genesis(PathBuf),
    Pin(Pin),
    OwnNode,
}

impl Start {
    pub(super) fn of(genesis: Option<PathBuf>, pin: Option<Pin>, own_node: bool) -> Start {
        match (genesis, pin) {
            (Some(path), _) => Start::Genesis(path),
            (None, Some(pin)) => Start::Pin(pin),
            (None, None) if own_node => Start::OwnNode,
            (None, None) => Start::Kept,
        }
    }
}

pub(super) fn trust(json: bool, start: Start, place: &PursePlace, server: &Server) -> anyhow::Result<ExitCode> {
    let mut purse = place.open()?;
    if let Some(chosen) = chosen(&purse, &start, server)? {
        purse.trust(chosen)?;
    }
    if purse.network.ledger == LedgerTrust::SoloNode {
        print_solo(json);
        return Ok(ExitCode::SUCCESS);
    }
    let mut client = purse.network.ledger.client(&purse.network.id, &server.node(), Some(purse.folder()))?;
    client.follow_newest().map_err(PurseError::from)?;
    client.remember().map_err(PurseError::from)?;
    print(json, client.newest());
    Ok(ExitCode::SUCCESS)
}

/// The trust that the payer chooses; `None` to keep it.
fn chosen(purse: &Purse, start: &Start, server: &Server) -> anyhow::Result<Option<LedgerTrust>> {
    let network = &purse.network;
    Ok(Some(match start {
        Start::Kept => return Ok(None),
        Start::Genesis(path) => {
            let given = of_genesis(path)?;
            ensure!(given == *network, "{} is of another lane than the purse", path.display());
            given.ledger
        }
        Start::Pin(pin) => network.ledger.begin_at(&network.id, &server.node(), pin)?,
        Start::OwnNode => LedgerTrust::of_node(&server.node(), &network.id)?,
    }))
}

/// A short digest of a committee, for people to compare.
fn fingerprint(chain: &Chain) -> String {
    let mut bytes = [&chain.genesis.0[..], &chain.epoch.to_le_bytes()].concat();
    chain.keys.iter().for_each(|key| bytes.extend(key.0));
    Digest::of("walras 2026 committee fingerprint v1", &bytes).to_string()[2..18].into()
}

fn print(json: bool, chain: &Chain) {
    let (epoch, validators, fingerprint) = (chain.epoch, chain.keys.len(), fingerprint(chain));
    if json {
        println!("{}", json!({"epoch": epoch, "validators": validators, "fingerprint": fingerprint}));
    } else {
        println!("Epoch        {epoch} of the chain's validators, proved");
        println!("Fingerprint  {fingerprint} of their {validators} keys");
    }
}

fn print_solo(json: bool) {
    if json {
        println!("{}", json!({"epoch": null, "validators": 0, "fingerprint": null}));
    } else {
        println!("The chain has one node and no validators: it proves nothing, and the purse trusts it.");
    }
}
