//! `walras pay audit`: proves from stores that the payment lane neither lost nor created money.
//!
//! From the ledger: escrow = genesis backing + deposits − redemptions − verdicts, for each asset, where escrow is the
//! issue minus what all accounts, offers, stakes and remainders hold. From validators' lane logs: every payment
//! conserves each asset and traces to a deposit or the genesis, and no output is certified twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use client::purse::LaneNetwork;
use ledger::{Audit as AssetAudit, BlockReceipts, Ledger};
use payments::{EscrowTotals, LaneAuditReport, LaneLog, LaneLogSummary, LedgerFacts, LogOwner, Quorums};
use primitives::{AssetId, Operation, Superblock};
use serde_json::{Value, json};
use store::{RealDisk, View};

use super::founded::of_genesis;
use super::show::money;

/// Proves from the ledger and from validators' lane logs that no money of the payment lane is lost or created.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  walras pay audit --home ./exchange
  walras pay audit --home network/validator-0 --home network/validator-1 --home network/validator-2

The ledger is read from the first home, the lane's logs from all; 2f+1 of 3f+1 validators are needed. Nodes may be
running. For homes of others, copies of `data/lane` suffice.")]
pub struct LaneAudit {
    /// A home, or a copy of one.
    #[arg(long, required = true, value_name = "DIR")]
    home: Vec<PathBuf>,
}

/// A log that may be in use: nothing is written.
struct ReadLog {
    file: File,
    length: u64,
}

impl LaneLog for ReadLog {
    fn length(&self) -> u64 {
        self.length
    }

    fn read(&self, offset: u64, length: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, offset).ok()?;
        Some(bytes)
    }
}

impl LaneAudit {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let first = &self.home[0];
        let network = of_genesis(&first.join("genesis.json"))?;
        // Logs are read first: their contents are then included in the state of the ledger, which is later.
        let mut logs = Vec::new();
        for home in &self.home {
            logs.extend(lane_logs(home)?);
        }
        let (state, assets) = ledger_of(first)?;
        let lane = state.lane().context("this chain has no payment lane")?;
        // Of older epochs the ledger does not know any more what it has created.
        logs.retain(|log| log.owner.home >= lane.bridge().oldest());
        let foreign = logs.iter().find(|log| log.owner.network != lane.network());
        ensure!(
            foreign.is_none(),
            "a log is of network {}, and the ledger is of {}: give homes of one network",
            foreign.map_or(lane.network(), |log| log.owner.network),
            lane.network()
        );
        let facts = facts(&state, &assets)?;
        let counted = deposits_in_blocks(first, state.height())?;
        counted.iter().try_for_each(|counted| check_deposits(&network, &facts, counted))?;
        let members = lane.terms().members.len();
        let verdict = payments::audit(&logs, |home| lane.rules(home), &facts, |_| Quorums::new(members));
        let found = Audited {
            height: state.height(),
            is_counted: counted.is_some(),
            logs: logs.len(),
            validators: logs.iter().map(|log| log.owner.validator).collect(),
            report: verdict.context("the audit found a fault")?,
        };
        match json {
            true => println!("{}", found.as_json(&network, &facts)),
            false => found.print(&network, &facts),
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Deposits are what blocks withdrew into the lane.
fn check_deposits(network: &LaneNetwork, facts: &LedgerFacts, counted: &BTreeMap<AssetId, u128>) -> anyhow::Result<()> {
    for (asset, totals) in &facts.totals {
        let in_blocks = counted.get(asset).copied().unwrap_or(0);
        ensure!(
            in_blocks == totals.deposits,
            "asset {}: blocks withdraw {in_blocks} units into the lane, the ledger counts {}",
            network.symbol(*asset),
            totals.deposits
        );
    }
    Ok(())
}

/// What an audit found, beside the ledger's sums.
struct Audited {
    height: u64,
    /// Whether deposits were counted in all blocks.
    is_counted: bool,
    logs: usize,
    validators: BTreeSet<u8>,
    report: LaneAuditReport,
}

impl Audited {
    fn as_json(&self, network: &LaneNetwork, facts: &LedgerFacts) -> Value {
        let row = |(asset, totals): (&AssetId, &EscrowTotals)| {
            json!({
                "asset": network.symbol(*asset),
                "backing": totals.backing.to_string(),
                "deposits": totals.deposits.to_string(),
                "redemptions": totals.redemptions.to_string(),
                "verdicts": totals.verdicts.to_string(),
                "escrow": facts.escrow.get(asset).copied().unwrap_or(0).to_string(),
            })
        };
        let rows: Vec<Value> = facts.totals.iter().map(row).collect();
        json!({"height": self.height, "sound": true, "escrow": rows, "logs": self.logs,
            "validators": self.validators, "payments": self.report.payments,
            "certified_at_most": self.report.certified, "inputs_from_ended_epochs": self.report.from_before,
            "deposits_counted_in_blocks": self.is_counted})
    }

    fn print(&self, network: &LaneNetwork, facts: &LedgerFacts) {
        println!("At height {}: escrow = genesis backing + deposits - redemptions - verdicts", self.height);
        for (asset, totals) in &facts.totals {
            let held = facts.escrow.get(asset).copied().unwrap_or(0);
            let [held, backing, deposits, redemptions, verdicts] =
                [held, totals.backing, totals.deposits, totals.redemptions, totals.verdicts]
                    .map(|units| money(network, *asset, units));
            println!("  {held} = {backing} + {deposits} - {redemptions} - {verdicts}");
        }
        match self.is_counted {
            true => println!("Deposits are those of the blocks, counted from the first."),
            false => println!("Deposits are those of the ledger's state, because not all blocks are kept here."),
        }
        if self.logs == 0 {
            println!("There are no lane logs here: payments in the lane were not checked.");
        } else {
            println!(
                "{} payments in {} logs of {} validators: each conserves every asset, traces to a deposit, and no \
                 output is certified twice.",
                self.report.payments,
                self.logs,
                self.validators.len()
            );
        }
        if self.report.from_before > 0 {
            println!("{} inputs were created in epochs whose logs have been destroyed.", self.report.from_before);
        }
    }
}

/// The newest state of a home's store, and where its whole issue is.
pub fn ledger_of(home: &Path) -> anyhow::Result<(Ledger, Vec<AssetAudit>)> {
    let genesis = ::founding::genesis_file::read(&home.join("genesis.json"))?;
    let data = home.join("data");
    let disk = RealDisk::existing(&data).with_context(|| data.display().to_string())?;
    let state = node::snapshot::state_of(store::view(disk)?, &genesis, |_| ())?.ledger;
    let assets = state.audit().context("the ledger does not conserve money")?;
    Ok((state, assets))
}

/// The ledger's facts about the lane. Escrow is measured as the part of the issue that is nowhere else.
fn facts(state: &Ledger, assets: &[AssetAudit]) -> anyhow::Result<LedgerFacts> {
    let bridge = state.lane().context("this chain has no payment lane")?.bridge();
    let mut facts = LedgerFacts {
        totals: bridge.totals().clone(),
        certified: bridge.resolver().certified().copied().collect(),
        credited: bridge.resolver().credited().copied().collect(),
        ..LedgerFacts::default()
    };
    for (number, asset) in (0..).zip(assets) {
        let elsewhere = asset.elsewhere("escrow");
        let deposits = if number == 0 { bridge.case_deposits() } else { 0 };
        let held = u128::from(asset.issued).checked_sub(elsewhere).and_then(|held| held.checked_sub(deposits));
        facts.escrow.insert(AssetId(number), held.context("the accounts hold more than was issued")?);
    }
    let epochs: Vec<_> = bridge.epochs().map(|(epoch, _)| epoch).collect();
    for home in epochs {
        facts.backed.extend(bridge.backed(home).map(|(id, output)| (*id, (home, *output))));
    }
    Ok(facts)
}

/// Units of each asset that blocks withdraw into the lane; `None` if not all blocks are kept.
fn deposits_in_blocks(home: &Path, height: u64) -> anyhow::Result<Option<BTreeMap<AssetId, u128>>> {
    let View { archive, first, .. } =
        store::view(RealDisk::existing(home.join("data")).context("cannot open the store")?)?;
    if first > 1 {
        return Ok(None);
    }
    let mut sums = BTreeMap::new();
    for at in 1..=height {
        let (Some(block), Some(receipts)) = (archive.block(at)?, archive.receipts(at)?) else { return Ok(None) };
        let block: Superblock = borsh::from_slice(&block).with_context(|| format!("block {at}"))?;
        let receipts: BlockReceipts = borsh::from_slice(&receipts).with_context(|| format!("receipts {at}"))?;
        let mut applied: BTreeSet<_> =
            receipts.outcomes.iter().filter(|(_, outcome)| outcome.refusal().is_none()).map(|(id, _)| *id).collect();
        for transaction in block.sub_blocks.iter().flat_map(|sub| &sub.native) {
            // A copy in the same block had no effect.
            if let Operation::Withdraw { asset, amount, .. } = transaction.body.operation
                && applied.remove(&transaction.id())
            {
                *sums.entry(asset).or_default() += u128::from(amount);
            }
        }
    }
    Ok(Some(sums))
}

/// All lane logs of a home.
fn lane_logs(home: &Path) -> anyhow::Result<Vec<LaneLogSummary>> {
    let folder = home.join("data/lane");
    let mut logs = Vec::new();
    for epoch in entries(&folder)? {
        for shard in entries(&epoch)? {
            for path in entries(&shard)? {
                if !is_log(&path) {
                    continue;
                }
                let file = File::open(&path).with_context(|| path.display().to_string())?;
                let length = file.metadata().with_context(|| path.display().to_string())?.len();
                let log = ReadLog { file, length };
                let owner = LogOwner::of(&log).with_context(|| format!("{} is damaged", path.display()))?;
                logs.push(
                    LaneLogSummary::read(&log, owner)
                        .map_err(|reason| anyhow::anyhow!("{}: {reason}", path.display()))?,
                );
            }
        }
    }
    Ok(logs)
}

fn entries(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    paths.sort_unstable();
    Ok(paths)
}

/// Whether a file is a log, by its name: `lane-HOME-VALIDATOR-SHARD`.
fn is_log(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix("lane-"));
    name.is_some_and(|numbers| numbers.split('-').filter(|part| part.parse::<u64>().is_ok()).count() == 3)
}
