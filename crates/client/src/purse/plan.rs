//! What is left to do to follow a network over a restart: durable before anything is moved.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::deposit::Deposit;
use super::files::{
    BOARDS, CONTESTED, DEPOSITS, EPOCHS, LANE, OUTBOX, POSTED, PROVED, RECEIVED, TERMS, make_folder, of, read_json,
    write_json,
};
use super::pinned::PinnedLane;
use crate::error::ClientError;

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
pub(super) fn finish(folder: &Path) -> Result<(), ClientError> {
    let path = folder.join(PLAN);
    if !path.exists() {
        return Ok(());
    }
    let plan: Plan = read_json(&path)?;
    let before = folder.join(&plan.before);
    make_folder(&before)?;
    for part in [DEPOSITS, RECEIVED, POSTED, CONTESTED, OUTBOX, EPOCHS, PROVED, BOARDS, TERMS] {
        let (from, to) = (folder.join(part), before.join(part));
        if from.exists() && !to.exists() {
            std::fs::rename(&from, &to).map_err(of(&from))?;
        }
    }
    for part in [DEPOSITS, RECEIVED, POSTED, CONTESTED, OUTBOX] {
        make_folder(&folder.join(part))?;
    }
    for deposit in &plan.deposits {
        write_json(&folder.join(DEPOSITS).join(format!("{}.json", deposit.transaction)), deposit)?;
    }
    write_json(&folder.join(LANE), &plan.lane)?;
    std::fs::remove_file(&path).map_err(of(&path))
}
