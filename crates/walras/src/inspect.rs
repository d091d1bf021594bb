//! `walras inspect`: what is in a node's store, and whether it is sound.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::json;
use store::{CheckpointSummary, Inspection, LogSummary, RealDisk, SegmentSummary};

use std::process::ExitCode;

/// Looks into a node's store, running or stopped, and checks every digest.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  walras inspect --home ./exchange
  walras inspect --home ./exchange --json")]
pub struct Inspect {
    /// Directory that `walras init` made.
    #[arg(long, env = "WALRAS_HOME", default_value = "walras-home")]
    home: PathBuf,
}

impl Inspect {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let data = self.home.join("data");
        anyhow::ensure!(data.exists(), "{} holds no store yet; a node makes it when it starts", data.display());
        let disk = RealDisk::existing(&data).with_context(|| data.display().to_string())?;
        let found = store::inspect(disk)?;
        if json {
            println!("{}", as_json(&data, &found));
        } else {
            print(&data, &found);
        }
        Ok(if found.damage().next().is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

fn as_json(data: &Path, found: &Inspection) -> serde_json::Value {
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
        "damage": found.damage().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn print(data: &Path, found: &Inspection) {
    for (name, log) in [("blocks", &found.blocks), ("receipts", &found.receipts)] {
        for segment in &log.segments {
            let tail =
                if segment.tail_bytes > 0 { format!(", {} unfinished", segment.tail_bytes) } else { String::new() };
            println!(
                "{name:<11} heights {:>8} to {:>8}  {:>14} bytes{tail}  {}",
                segment.first, segment.last, segment.bytes, segment.file
            );
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
