//! What is left to do to follow a network over a restart: durable before anything is moved.

use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use store::RealDisk;

use super::deposit_file::Deposit;
use super::files::{CONTESTED, DEPOSITS, LANE, OUTBOX, POSTED, RECEIVED, read_json, write_json};
use super::ledger_trust::PROVED;
use super::network::EPOCHS;
use super::pinned::PinnedLane;

pub(super) const PLAN: &str = "follow.json";

/// What is to be done.
#[derive(Serialize, Deserialize)]
pub(super) struct Plan {
    pub lane: PinnedLane,
    /// The folder for what is of the network before.
    pub before: String,
    pub deposits: Vec<Deposit>,
}

/// Does what is left to do, if a purse began to follow a restart.
pub(super) fn finish(folder: &Path) -> anyhow::Result<()> {
    let path = folder.join(PLAN);
    if !path.exists() {
        return Ok(());
    }
    let plan: Plan = read_json(&path)?;
    let before = folder.join(&plan.before);
    RealDisk::new(&before).with_context(|| before.display().to_string())?;
    for part in [DEPOSITS, RECEIVED, POSTED, CONTESTED, OUTBOX, EPOCHS, PROVED, "boards.json"] {
        let (from, to) = (folder.join(part), before.join(part));
        if from.exists() && !to.exists() {
            std::fs::rename(&from, &to).with_context(|| from.display().to_string())?;
        }
    }
    for part in [DEPOSITS, RECEIVED, POSTED, CONTESTED, OUTBOX] {
        RealDisk::new(folder.join(part)).with_context(|| folder.join(part).display().to_string())?;
    }
    for deposit in &plan.deposits {
        write_json(&folder.join(DEPOSITS).join(format!("{}.json", deposit.transaction)), deposit)?;
    }
    write_json(&folder.join(LANE), &plan.lane)?;
    std::fs::remove_file(&path).with_context(|| path.display().to_string())
}
