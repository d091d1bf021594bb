//! `walras inspect`: what is in a node's store, and whether it is sound.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::json;
use store::{CheckpointSummary, Inspection, LogSummary, RealDisk, SegmentSummary, StoreError};

use std::process::ExitCode;

/// Looks into a node's store, running or stopped, and checks every digest.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  walras inspect --home ./exchange
  walras inspect --home ./exchange --json
  walras inspect --home ./exchange --salvage    # how much of a damaged store is intact")]
pub struct Inspect {
    /// Directory that `walras init` made.
    #[arg(long, env = "WALRAS_HOME", default_value = "walras-home")]
    home: PathBuf,
    /// Say of each damaged log how many records before the damage are intact. Nothing is changed.
    #[arg(long)]
    salvage: bool,
}

impl Inspect {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let data = self.home.join("data");
        anyhow::ensure!(data.exists(), "{} holds no store yet; a node makes it when it starts", data.display());
        let disk = RealDisk::existing(&data).with_context(|| data.display().to_string())?;
        let found = store::inspect(disk)?;
        let intact = if self.salvage { Some(Intact::of(&found)?) } else { None };
        match json {
            true => println!("{}", as_json(&data, &found, intact.as_ref())),
            false => {
                print(&data, &found);
                intact.iter().for_each(Intact::print);
            }
        }
        Ok(if found.damage().next().is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

/// What of a store can be relied on.
struct Intact {
    /// Blocks from the first to the last that are there without a gap; none if the second is below the first.
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

    /// The last height whose state can be made again.
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
        println!("The state can be made again up to height {}; what came after it is lost here.", self.state());
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

/// The last record of a file that ends before an offset: that of a copy which is cut off there.
fn last_before(segment: &SegmentSummary, offset: u64) -> anyhow::Result<u64> {
    let file = Path::new(&segment.file);
    // A store is for its owner alone.
    let permissions = std::fs::Permissions::from_mode(0o700);
    let folder = tempfile::Builder::new().permissions(permissions).tempdir().context("a folder for a copy")?;
    let name = file.file_name().context("a log is a file")?;
    let mut sound = std::fs::File::open(file).with_context(|| segment.file.clone())?.take(offset);
    let mut copy = std::fs::File::create(folder.path().join(name)).context("a copy")?;
    std::io::copy(&mut sound, &mut copy).with_context(|| segment.file.clone())?;
    let found = store::inspect(RealDisk::existing(folder.path()).context("a copy")?)?;
    let copied = found.blocks.segments.iter().chain(&found.receipts.segments).next();
    Ok(copied.filter(|segment| segment.damage.is_none()).map_or(segment.first - 1, |segment| segment.last))
}

fn as_json(data: &Path, found: &Inspection, intact: Option<&Intact>) -> serde_json::Value {
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
