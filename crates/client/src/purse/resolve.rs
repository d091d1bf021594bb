//! What became of deposits: a withdrawal becomes an output of the purse once its block is certified.

use std::time::{Duration, Instant};

use api::LaneOutputBody;
use payments::{HomeEpoch, OutputId, REDEEM_EPOCHS};
use primitives::Height;

use super::deposit::Deposit;
use super::error::{Invalid, PurseError};
use super::folder::Purse;
use super::now::LaneNow;
use crate::error::ClientError;
use crate::node::NodeClient;
use crate::wallet::Fate;

/// Time between two looks for a certificate.
const PAUSE: Duration = Duration::from_millis(50);

/// Asks a node for the results of deposits; waits up to `patience` for blocks to be certified.
///
/// # Errors
/// [`PurseError`]; deposits that were asked about before are recorded.
pub fn resolve_deposits(purse: &Purse, node: &NodeClient, patience: Duration) -> Result<(), PurseError> {
    let begun = Instant::now();
    for mut deposit in purse.contents()?.deposits {
        let id = deposit.transaction.parse().map_err(|_| Invalid("transaction of a deposit"))?;
        let height = match Fate::of(node, &id)? {
            Fate::Refused(_) => {
                purse.forget_deposit(&deposit)?;
                continue;
            }
            Fate::Committed(body) => {
                body.height.ok_or_else(|| node.foreign("its answer has no height of the deposit"))?
            }
            Fate::Waiting(_) | Fate::TurnedAway(_) | Fate::Unknown(_) => continue,
        };
        let is_late = || begun.elapsed() >= patience;
        if is_certified(node, height, is_late)?
            && let Some(home) = home_of(purse, node, &deposit)?
        {
            deposit.home = Some(home);
            purse.keep_deposit(&deposit)?;
        }
    }
    Ok(())
}

/// Whether validators of the lane accept outputs of the block at this height, now or before it is late.
fn is_certified(node: &NodeClient, height: Height, is_late: impl Fn() -> bool) -> Result<bool, ClientError> {
    loop {
        // A single node certifies nothing.
        if node.validator()?.is_none_or(|status| status.certified_anywhere >= height) {
            return Ok(true);
        }
        if is_late() {
            return Ok(false);
        }
        std::thread::sleep(PAUSE);
    }
}

/// The home of a deposit: the epoch in which the ledger knows its output. The output's id is computed here.
fn home_of(purse: &Purse, node: &NodeClient, deposit: &Deposit) -> Result<Option<HomeEpoch>, PurseError> {
    let now = LaneNow::ask(node, &purse.network)?.epoch;
    let account = deposit.account()?;
    for home in (now.saturating_sub(REDEEM_EPOCHS)..=now).rev() {
        let id = OutputId::of_deposit(&purse.network.id, home, &account, deposit.sequence);
        let found: Option<LaneOutputBody> = node.find(&format!("/v1/lane/outputs/{id}"))?;
        let Some(output) = found else { continue };
        if output.to != deposit.to || output.amount != deposit.amount.to_string() {
            return Err(PurseError::OtherOutput { server: node.url().into(), output: id });
        }
        return Ok(Some(home));
    }
    Ok(None)
}
