//! `walras prune`: frees disk space at once, while a node is stopped.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use serde_json::json;
use store::{Options, RealDisk, Store};

/// Forgets old blocks and receipts of a stopped node. A running one does so by itself: `[store] keep_blocks`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  walras prune --home ./exchange --keep-blocks 100000

Kept in any case: what the older of two checkpoints needs, and blocks without a durable certificate. Whole files are
removed, so some more blocks may stay.")]
pub struct Prune {
    /// Directory that `walras init` made.
    #[arg(long, env = "WALRAS_HOME", default_value = "walras-home")]
    home: PathBuf,
    /// Blocks to keep behind the last one.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    keep_blocks: u64,
}

impl Prune {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let data = self.home.join("data");
        let (_, founding) = ::founding::genesis_file::read_with_founding(&self.home.join("genesis.json"))
            .with_context(|| format!("{} is no home", self.home.display()))?;
        let disk = RealDisk::existing(&data).with_context(|| format!("{} holds no store yet", data.display()))?;
        let before = bytes_of(&disk)?;
        let (mut store, _) = Store::open(disk.clone(), Options::default())?;
        let last = store.last_height();
        // Validators that lag get blocks with their certificates: both must outlast a crash.
        let certified = match founding {
            None => last,
            Some(_) => {
                let certificates = data.join("certificates");
                let disk = RealDisk::existing(&certificates).with_context(|| certificates.display().to_string())?;
                Store::open(disk, Options::default())?.0.durable_height()
            }
        };
        let below = (last + 1).saturating_sub(self.keep_blocks).min(certified);
        let first = store.forget_below(below)?;
        drop(store);
        let freed = before.saturating_sub(bytes_of(&disk)?);
        if json {
            println!("{}", json!({ "first": first, "last": last, "freed_bytes": freed }));
        } else {
            println!("{}: blocks {first} to {last} are kept, {freed} bytes are free now", data.display());
            if freed == 0 {
                println!("nothing could be removed: whole files go, and only behind the older of two checkpoints");
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn bytes_of(disk: &RealDisk) -> anyhow::Result<u64> {
    Ok(store::Disk::list(disk)?.iter().map(|(_, bytes)| bytes).sum())
}
