//! `walras inspect`: shows what is in a node's store, and whether it is sound.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use ledger::{BlockReceipts, EvmRecord, Ledger};
use primitives::{Address, Digest};
use serde_json::json;
use store::{CheckpointSummary, Inspection, LogSummary, RealDisk, SegmentSummary, StoreError, View};

/// Inspects a node's store, running or stopped, and checks every digest.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  walras inspect --home ./exchange
  walras inspect --home ./exchange --json
  walras inspect --home ./exchange --contracts  # nonces, code, storage, receipts and logs
  walras inspect --home ./exchange --salvage    # how much of a damaged store is intact")]
pub struct Inspect {
    /// Directory that `walras init` made.
    #[arg(long, env = "WALRAS_HOME", default_value = "walras-home")]
    home: PathBuf,
    /// Show for each damaged log how many records before the damage are intact. Nothing is changed.
    #[arg(long)]
    salvage: bool,
    /// Replay the newest state and show nonce, code and storage of each account that Ethereum knows. Counts receipts
    /// and logs.
    #[arg(long)]
    contracts: bool,
}

impl Inspect {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let data = self.home.join("data");
        anyhow::ensure!(data.exists(), "{} holds no store yet; a node makes it when it starts", data.display());
        let disk = RealDisk::existing(&data).with_context(|| data.display().to_string())?;
        let found = store::inspect(disk)?;
        let intact = if self.salvage { Some(Intact::of(&found)?) } else { None };
        let contracts = if self.contracts { Some(OfContracts::of(&self.home, &data)?) } else { None };
        match json {
            true => println!("{}", as_json(&data, &found, intact.as_ref(), contracts.as_ref())),
            false => {
                print(&data, &found);
                intact.iter().for_each(Intact::print);
                contracts.iter().for_each(OfContracts::print);
            }
        }
        Ok(if found.damage().next().is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

/// A store's data of contracts: the newest state, and totals over the archived blocks.
struct OfContracts {
    height: u64,
    receipts: usize,
    skipped: usize,
    logs: usize,
    codes: usize,
    accounts: Vec<(Address, EvmRecord, u64)>,
}

impl OfContracts {
    fn of(home: &Path, data: &Path) -> anyhow::Result<OfContracts> {
        let genesis = ::founding::genesis_file::read(&home.join("genesis.json"))?;
        let view = || Ok::<_, anyhow::Error>(store::view(RealDisk::existing(data).context("cannot open the store")?)?);
        let ledger = node::snapshot::state_of(view()?, &genesis, |_| ())?.ledger;
        let (accounts, codes) = (evm_accounts(&ledger), ledger.contracts().codes());
        let mut found = OfContracts { height: ledger.height(), receipts: 0, skipped: 0, logs: 0, codes, accounts };
        let View { archive, first, .. } = view()?;
        for height in first..=found.height {
            let Some(bytes) = archive.receipts(height)? else { continue };
            let receipts: BlockReceipts = borsh::from_slice(&bytes).with_context(|| format!("receipts {height}"))?;
            found.receipts += receipts.contracts.receipts.len();
            found.skipped += receipts.contracts.skipped.len();
            found.logs += receipts.contracts.receipts.iter().map(|receipt| receipt.logs.len()).sum::<usize>();
        }
        Ok(found)
    }

    fn slots(&self) -> u64 {
        self.accounts.iter().map(|(_, _, slots)| slots).sum()
    }

    fn as_json(&self) -> serde_json::Value {
        let account = |(address, evm, slots): &(Address, EvmRecord, u64)| {
            let code = (evm.code != Digest::default()).then(|| evm.code.to_string());
            json!({
                "account": address.to_string(), "nonce": evm.nonce.to_string(), "code_hash": code, "slots": slots,
                "is_contract": evm.is_contract, "wei_below_a_unit": evm.remainder.to_string(),
            })
        };
        json!({
            "height": self.height, "receipts": self.receipts, "skipped": self.skipped, "logs": self.logs,
            "codes": self.codes, "slots": self.slots(),
            "accounts": self.accounts.iter().map(account).collect::<Vec<_>>(),
        })
    }

    fn print(&self) {
        let OfContracts { height, receipts, skipped, logs, codes, accounts } = self;
        println!("\nEthereum at height {height}: {receipts} receipts with {logs} logs, {skipped} skipped;");
        println!("{} accounts, {codes} codes, {} slots", accounts.len(), self.slots());
        for (address, evm, slots) in accounts {
            let code = if evm.code == Digest::default() { "no code".into() } else { format!("code {}", evm.code) };
            println!("{}  nonce {:>8}  slots {slots:>8}  {code}", address.checked(), evm.nonce);
        }
    }
}

/// The parts of a store that are intact.
struct Intact {
    /// The first and the last block of the range without a gap; empty if the second is below the first.
    blocks: (u64, u64),
    /// The same of receipts.
    receipts: (u64, u64),
    /// The newest intact checkpoint; 0 is the genesis.
    checkpoint: u64,
}

impl Intact {
    fn of(found: &Inspection) -> anyhow::Result<Intact> {
        let sound = found.checkpoints.iter().filter(|checkpoint| checkpoint.damage.is_none());
        let checkpoint = sound.map(|checkpoint| checkpoint.height).max().unwrap_or(0);
        Ok(Intact { blocks: intact(&found.blocks)?, receipts: intact(&found.receipts)?, checkpoint })
    }

    /// The last height whose state can be rebuilt.
    fn state(&self) -> u64 {
        let (first, last) = self.blocks;
        if first <= self.checkpoint + 1 { last.max(self.checkpoint) } else { self.checkpoint }
    }

    fn print(&self) {
        for (name, (first, last)) in [("blocks", self.blocks), ("receipts", self.receipts)] {
            match first <= last {
                true => println!("intact {name:<9} heights {first} to {last}, without a gap"),
                false => println!("intact {name:<9} none"),
            }
        }
        match self.checkpoint {
            0 => println!("intact checkpoint none but the genesis"),
            height => println!("intact checkpoint of height {height}"),
        }
        println!("The state can be rebuilt up to height {}; later blocks are lost here.", self.state());
    }
}

/// The first height of a log, and the last before the first damage.
fn intact(log: &LogSummary) -> anyhow::Result<(u64, u64)> {
    let first = log.segments.first().map_or(1, |segment| segment.first);
    let mut last = first - 1;
    for segment in &log.segments {
        match &segment.damage {
            None if segment.first == last + 1 => last = segment.last,
            Some(StoreError::Damaged { offset, .. }) if segment.first == last + 1 => {
                return Ok((first, last_before(segment, *offset)?.max(last)));
            }
            _ => break,
        }
    }
    Ok((first, last))
}

/// The last record of a file that ends before an offset, found in a copy that is cut off there.
fn last_before(segment: &SegmentSummary, offset: u64) -> anyhow::Result<u64> {
    let file = Path::new(&segment.file);
    // Only its owner may access a store.
    let permissions = std::fs::Permissions::from_mode(0o700);
    let folder =
        tempfile::Builder::new().permissions(permissions).tempdir().context("cannot make a folder for a copy")?;
    let name = file.file_name().context("the log has no file name")?;
    let mut sound = std::fs::File::open(file).with_context(|| segment.file.clone())?.take(offset);
    let mut copy = std::fs::File::create(folder.path().join(name)).context("a copy")?;
    std::io::copy(&mut sound, &mut copy).with_context(|| segment.file.clone())?;
    let found = store::inspect(RealDisk::existing(folder.path()).context("a copy")?)?;
    let copied = found.blocks.segments.iter().chain(&found.receipts.segments).next();
    Ok(copied.filter(|segment| segment.damage.is_none()).map_or(segment.first - 1, |segment| segment.last))
}

fn as_json(
    data: &Path,
    found: &Inspection,
    intact: Option<&Intact>,
    contracts: Option<&OfContracts>,
) -> serde_json::Value {
    let log = |log: &LogSummary| {
        let segment = |segment: &SegmentSummary| {
            json!({
                "file": segment.file, "first": segment.first, "last": segment.last,
                "bytes": segment.bytes, "unfinished_bytes": segment.tail_bytes,
            })
        };
        log.segments.iter().map(segment).collect::<Vec<_>>()
    };
    let checkpoint = |summary: &CheckpointSummary| json!({"height": summary.height, "bytes": summary.payload_bytes});
    json!({
        "store": data,
        "blocks": log(&found.blocks),
        "receipts": log(&found.receipts),
        "checkpoints": found.checkpoints.iter().map(checkpoint).collect::<Vec<_>>(),
        "intact": intact.map(|intact| json!({
            "blocks": [intact.blocks.0, intact.blocks.1], "receipts": [intact.receipts.0, intact.receipts.1],
            "checkpoint": intact.checkpoint, "state": intact.state(),
        })),
        "contracts": contracts.map(OfContracts::as_json),
        "damage": found.damage().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn print(data: &Path, found: &Inspection) {
    for (name, log) in [("blocks", &found.blocks), ("receipts", &found.receipts)] {
        for segment in &log.segments {
            let tail =
                if segment.tail_bytes > 0 { format!(", {} unfinished", segment.tail_bytes) } else { String::new() };
            let heights = match (segment.last >= segment.first, &segment.damage) {
                (true, _) => format!("heights {:>8} to {:>8}", segment.first, segment.last),
                (false, None) => format!("empty, from height {:>8} on", segment.first),
                (false, Some(_)) => format!("damaged, from height {:>6} on", segment.first),
            };
            println!("{name:<11} {heights:<28}  {:>14} bytes{tail}  {}", segment.bytes, segment.file);
        }
    }
    for checkpoint in &found.checkpoints {
        println!("checkpoint  height  {:>8}              {:>14} bytes", checkpoint.height, checkpoint.payload_bytes);
    }
    let damage: Vec<String> = found.damage().map(ToString::to_string).collect();
    match damage.as_slice() {
        [] => println!("\n{}: every record and checkpoint matches its digest", data.display()),
        damage => damage.iter().for_each(|damage| println!("\nDAMAGED: {damage}")),
    }
}

/// Accounts with Ethereum data beside their balance, by address, with the number of their slots.
pub fn evm_accounts(ledger: &Ledger) -> Vec<(Address, EvmRecord, u64)> {
    let slots = ledger.contracts().slots_by_account();
    let accounts = ledger.accounts().shards().iter().flat_map(|shard| shard.sorted());
    let known = accounts.map(|account| {
        let address = account.address();
        (address, account.evm(), slots.get(&address).copied().unwrap_or(0))
    });
    known.filter(|(_, evm, slots)| *evm != EvmRecord::default() || *slots > 0).collect()
}
