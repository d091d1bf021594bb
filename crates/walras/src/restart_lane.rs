//! The payment lane's part of a restart: logs are closed and published, then all operators compute one list from all
//! parts. See [`payments::LaneCarryOver`] for the rules.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use ledger::{BlockReceipts, LaneBridge, Ledger, Restart, RestartedLane, Snapshot};
use node::{Config, LaneKeySafe};
use payments::{
    BridgeOperation, CertifiedPayment, LaneCarryOver, LaneRegistration, PostedCertificates, Quorums, RestartPart,
    ShownPayment,
};
use primitives::{Address, Digest, Operation, SecretKey, Superblock};
use serde_json::{Value, json};
use store::{RealDisk, View};

use crate::keystore::{self, Passphrase};
use crate::lane::{self, LANE_KEY_FILE};
use crate::pay::ListFile;
use client::durable::write_durable;
use client::purse::Slip;

/// The old home, and what is known of the restart.
pub struct LaneRestart<'a> {
    pub from: &'a Path,
    pub home: &'a Path,
    pub snapshot: &'a Ledger,
    /// The identity of the network when it was founded.
    pub first: Digest,
    pub number: u32,
    /// The accounts that take the seats of the committee; empty if the drawn one stays.
    pub committee: Vec<Address>,
    /// The rules that it begins with, if not with those of the state.
    pub rules: Option<u32>,
}

/// The member that the operator of a home answers for, and the key that signs for it.
struct Operator {
    index: u8,
    shards: u16,
    key: SecretKey,
    safe: LaneKeySafe,
}

impl LaneRestart<'_> {
    fn lane(&self) -> anyhow::Result<&LaneBridge> {
        self.snapshot.lane().context("this network has no payment lane: restart it without --close and --part")
    }

    fn base(&self) -> Digest {
        let (snapshot, committee) = (Snapshot::digest(self.snapshot), self.committee.clone());
        Restart { number: self.number, snapshot, committee, lane: None, rules: self.rules }.base(&self.first)
    }

    fn operator(&self, passphrase: &Passphrase) -> anyhow::Result<Operator> {
        let path = self.from.join("walras.toml");
        let config = Config::load(path.exists().then_some(path.as_path()), std::iter::empty())?;
        let passphrase = passphrase.known()?;
        let key = keystore::open_under(&self.from.join(LANE_KEY_FILE), &passphrase)?;
        let index = config.lane.member;
        let lane = self.lane()?;
        ensure!(
            lane.signer(index) == Some(key.public()),
            "{}: {LANE_KEY_FILE} is not the key of member {index}: set [lane] member",
            self.from.display()
        );
        let founded = lane.terms().members.get(usize::from(index)).map_or(0, |shards| shards.len() as u16);
        // Their number may have changed since.
        let shards = if config.lane.own_shards() == 0 { founded } else { config.lane.registered_shards() };
        Ok(Operator { index, shards, key, safe: lane::safe(&passphrase) })
    }

    /// Closes the lane of the old home, makes the first keys in the new one, and writes the operator's part.
    pub fn close(&self, to: &Path, receipts: &[PathBuf], passphrase: &Passphrase) -> anyhow::Result<Value> {
        let (lane, operator) = (self.lane()?, self.operator(passphrase)?);
        ensure!(!to.exists(), "{} exists already: choose another --close", to.display());
        let (data, network) = (self.from.join("data"), lane.network());
        let latest = latest_state(&data, self.snapshot)?;
        let (logs, damaged) = node::close_lane(&data, network, operator.index, self.number)?;
        damaged.iter().for_each(|error| eprintln!("{error}: it is no evidence"));
        let after = lane.bridge().clock().epoch() + 1;
        let registrations = latest.lane().into_iter().flat_map(|lane| lane.bridge().all_registrations());
        let boards = latest.lane().into_iter().flat_map(|lane| {
            let board = |epoch| Some((epoch, lane.bridge().board_bytes(epoch)?));
            lane.group_keys().filter(|epoch| *epoch >= after).filter_map(board)
        });
        let mut shown = posted_certificates(&data, network, lane.terms().members.len())?;
        shown.extend(shown_receipts(receipts, &network)?);
        let part = RestartPart {
            network,
            restart: self.number,
            snapshot: Snapshot::digest(self.snapshot),
            member: operator.index,
            first: self.first_keys(&operator)?,
            logs,
            shown,
            registrations: registrations.filter(|of| of.epoch >= after).cloned().collect(),
            boards: boards.collect(),
        };
        let bytes = part.sign(&operator.key);
        write_durable(to, &bytes)?;
        Ok(json!({
            "part": to, "member": operator.index, "restart": self.number, "logs": part.logs.len(),
            "damaged": damaged.len(), "shown": part.shown.len(),
            "digest": Digest::of("walras 2026 lane restart part file v1", &bytes).to_string(),
        }))
    }

    fn first_keys(
        &self,
        operator: &Operator,
    ) -> anyhow::Result<Option<(LaneRegistration, Vec<primitives::Signature>)>> {
        if self.lane()?.terms().registrars.is_empty() {
            return Ok(None);
        }
        let data = self.home.join("data");
        RealDisk::new(&data).with_context(|| data.display().to_string())?;
        let keys = node::make_first_lane_key_secrets(&data, operator.shards, Some(&operator.safe))
            .with_context(|| data.display().to_string())?;
        Ok(Some(LaneRegistration::make(&self.base(), 0, operator.index, &keys, &operator.key)))
    }

    /// Computes from all parts what the lane begins with.
    pub fn carry(&self, parts: &[PathBuf], receipts: &[PathBuf]) -> anyhow::Result<(LaneCarryOver, RestartedLane)> {
        let lane = self.lane()?;
        ensure!(
            !parts.is_empty(),
            "this network has a payment lane: every operator closes it with --close FILE, and then restarts with all \
             operators' files, each as --part FILE"
        );
        let snapshot = Snapshot::digest(self.snapshot);
        let read = |path: &PathBuf| -> anyhow::Result<RestartPart> {
            let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
            let part = RestartPart::parse(&bytes, |member| lane.signer(member));
            let part = part.with_context(|| path.display().to_string())?;
            let (found, agreed) =
                ((part.network, part.restart, part.snapshot), (lane.network(), self.number, snapshot));
            ensure!(found == agreed, "{} is of another restart, or of another snapshot", path.display());
            Ok(part)
        };
        let mut parts = parts.iter().map(read).collect::<anyhow::Result<Vec<_>>>()?;
        let needed = Quorums::new(lane.terms().members.len()).certificate;
        ensure!(
            parts.len() >= needed || lane.terms().registrars.is_empty(),
            "{} parts are given and {needed} are needed: in the first epoch fewer members sign nothing",
            parts.len()
        );
        parts[0].shown.extend(shown_receipts(receipts, &lane.network())?);
        Ok(lane.carry(&self.base(), &parts)?)
    }

    /// Makes the logs of the first epoch in the new home.
    pub fn make_logs(&self, network: Digest, passphrase: &Passphrase) -> anyhow::Result<()> {
        let operator = self.operator(passphrase)?;
        Ok(node::make_first_lane_logs(&self.home.join("data"), network, operator.index, operator.shards)?)
    }
}

/// A chain of one node continues from a snapshot in another home: its lane starts again, with the money that the logs
/// of the home before prove. Without them all of it stays aside, and nobody signs in the first epoch.
///
/// # Errors
/// If a file cannot be read or written, or no list is safe.
pub fn restore_solo(
    snapshot: Ledger,
    home: &Path,
    before: Option<&Path>,
    passphrase: &Passphrase,
) -> anyhow::Result<(Ledger, Value)> {
    let first = snapshot.network();
    let number = match before {
        Some(before) => node::lane_closed_for(&before.join("data"))?.map_or(1, |last| last.saturating_add(1)),
        None => 1,
    };
    let (from, committee) = (before.unwrap_or(home), Vec::new());
    let restart =
        LaneRestart { from, home, snapshot: &snapshot, first, number, committee: committee.clone(), rules: None };
    let (carried, lane) = match before {
        Some(_) => {
            let part = home.join("lane-part");
            restart.close(&part, &[], passphrase)?;
            restart.carry(&[part], &[])?
        }
        None => restart.lane()?.carry(&restart.base(), &[])?,
    };
    let begun =
        Restart { number, snapshot: Snapshot::digest(&snapshot), committee, lane: Some(lane.clone()), rules: None };
    let mut ledger = snapshot.clone();
    let network = ledger.begin_again(&first, &begun, Some(&carried))?;
    if before.is_some() {
        restart.make_logs(network, passphrase)?;
    }
    ListFile::new(&first, &begun, &carried).write(home)?;
    let mut described = described(&carried, &lane);
    described["network"] = network.to_string().into();
    Ok((ledger, described))
}

/// The last state of a home; the snapshot if the home's store is empty.
fn latest_state(data: &Path, snapshot: &Ledger) -> anyhow::Result<Ledger> {
    let genesis = data.parent().map(|home| ::founding::genesis_file::read(&home.join("genesis.json")));
    let genesis = genesis.context("the data directory has no home")??;
    let disk = RealDisk::existing(data).with_context(|| data.display().to_string())?;
    let latest = node::snapshot::state_of(store::view(disk)?, &genesis, |_| ())?.ledger;
    Ok(if latest.height() > snapshot.height() { latest } else { snapshot.clone() })
}

/// Certificates in applied posts of the blocks that a home keeps.
fn posted_certificates(data: &Path, network: Digest, members: usize) -> anyhow::Result<Vec<ShownPayment>> {
    let disk = RealDisk::existing(data).with_context(|| data.display().to_string())?;
    let View { archive, first, .. } = store::view(disk)?;
    let mut posted = PostedCertificates::default();
    for height in first.. {
        let (Some(block), Some(receipts)) = (archive.block(height)?, archive.receipts(height)?) else { break };
        let block: Superblock = borsh::from_slice(&block).with_context(|| format!("block {height}"))?;
        let receipts: BlockReceipts = borsh::from_slice(&receipts).with_context(|| format!("receipts {height}"))?;
        let applied: std::collections::BTreeSet<_> =
            receipts.outcomes.iter().filter(|(_, outcome)| outcome.refusal().is_none()).map(|(id, _)| *id).collect();
        for transaction in block.sub_blocks.iter().flat_map(|sub| &sub.native) {
            if let Operation::Lane(bytes) = &transaction.body.operation
                && applied.contains(&transaction.id())
                && let Ok(post) = BridgeOperation::parse(bytes)
            {
                posted.see(&network, &post);
            }
        }
    }
    Ok(posted.shown(members))
}

/// Receipts that were shown in the claim period.
fn shown_receipts(files: &[PathBuf], network: &Digest) -> anyhow::Result<Vec<ShownPayment>> {
    let mut shown = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let slips = Slip::read(&text, network).with_context(|| path.display().to_string())?;
        shown.extend(slips.into_iter().filter_map(shown_slip));
    }
    Ok(shown)
}

fn shown_slip(slip: Slip) -> Option<ShownPayment> {
    match slip {
        Slip::Receipt(receipt) => {
            let (summary, certificate) = (receipt.proof.summary, receipt.proof.certificate);
            Some(ShownPayment { body: None, certified: CertifiedPayment { summary, certificate } })
        }
        Slip::ToAccounts(body, certificate) => {
            let certified = CertifiedPayment { summary: body.payment.summary(), certificate };
            Some(ShownPayment { body: Some(body), certified })
        }
        Slip::Deposit(_) => None,
    }
}

/// What the list contains, for people and scripts.
pub fn described(carried: &LaneCarryOver, lane: &RestartedLane) -> Value {
    json!({
        "list": lane.list.to_string(), "outputs": carried.outputs.len(), "claims": carried.claims.len(),
        "aside": carried.aside.keys().map(ToString::to_string).collect::<Vec<_>>(),
    })
}
