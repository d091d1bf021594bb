//! Deposits: a withdrawal from the ledger becomes an output of the purse once its block is certified.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use api::LaneOutputBody;
use payments::{HomeEpoch, OutputId};
use primitives::{Address, Operation};
use serde_json::json;

use super::deposit_file::Deposit;
use super::network::LaneNow;
use super::purse::Purse;
use super::{PursePlace, show};
use crate::wallet::fate::{self, Fate};
use crate::wallet::send::Sender;
use crate::wallet::server::Server;

/// Maximum time for a deposit's block to be certified.
pub(super) const CERTIFIED_PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn deposit(
    json: bool,
    asset: &str,
    amount: &str,
    sender: &Sender,
    place: &PursePlace,
) -> anyhow::Result<ExitCode> {
    let mut purse = place.open()?;
    let (asset, amount) = purse.network.units(asset, amount)?;
    let least = purse.network.rules().assets.get(&asset).map_or(1, |rule| rule.least_units);
    ensure!(amount >= least, "a deposit of this asset has at least {}", purse.network.money(asset, least));
    // The node must be of the purse's lane; otherwise the money would go to another lane.
    LaneNow::ask(sender.server(), &purse.network)?;
    resolve_deposits(&purse, sender.server(), Duration::ZERO)?;
    let account = sender.account()?;
    let mut waiting = purse.contents()?.deposits.into_iter();
    let same = waiting.find(|one| (one.asset, one.amount) == (asset.0, amount) && one.account == account.to_string());
    if let Some(same) = same.filter(|_| !sender.is_again()) {
        bail!(
            "the same deposit was sent before as {0}, and its result is unknown: `walras wallet status {0}` shows it, \
             `walras pay settle` takes it into the purse. To do it twice, add --again",
            same.transaction
        );
    }
    let seed = purse.seed(&place.passphrase())?;
    let to = purse.new_key(&seed)?.public();
    let (transaction, _) = sender.sign(|_, _, _| Ok(Operation::Withdraw { to, asset, amount }))?;
    let deposit = Deposit {
        transaction: transaction.id().to_string(),
        account: account.to_string(),
        sequence: transaction.body.sequence,
        to: to.to_string(),
        asset: asset.0,
        amount,
        home: None,
        carried: None,
    };
    purse.keep_deposit(&deposit)?;
    let fate = match sender.commit(json, &transaction) {
        Ok(fate) => fate,
        Err(error) => {
            purse.forget_deposit(&deposit)?;
            return Err(error);
        }
    };
    let Fate::Committed(_) = &fate else {
        resolve_deposits(&purse, sender.server(), Duration::ZERO)?;
        return Ok(fate::print(&fate, json, &transaction.id(), &sender.server().node().assets()?));
    };
    resolve_deposits(&purse, sender.server(), CERTIFIED_PATIENCE)?;
    let is_in = !purse.contents()?.deposits.iter().any(|one| one.transaction == deposit.transaction);
    if json {
        println!(
            "{}",
            json!({"transaction": deposit.transaction, "asset": purse.network.symbol(asset),
                "amount": amount.to_string(), "spendable": is_in})
        );
    } else if is_in {
        println!("deposited {}: settled, {}", purse.network.money(asset, amount), show::SETTLED);
    } else {
        println!("deposited {}: spendable once its block is certified", purse.network.money(asset, amount));
    }
    Ok(ExitCode::SUCCESS)
}

/// Checks the results of deposits; waits up to `patience` for blocks to be certified.
pub(super) fn resolve_deposits(purse: &Purse, server: &Server, patience: Duration) -> anyhow::Result<()> {
    let begun = Instant::now();
    for mut deposit in purse.contents()?.deposits {
        let id = deposit.transaction.parse().context("invalid transaction id of a deposit")?;
        let height = match Fate::of(&server.node(), &id)? {
            Fate::Refused(_) => {
                purse.forget_deposit(&deposit)?;
                continue;
            }
            Fate::Committed(body) => body.height.context("the answer has no height of the deposit")?,
            Fate::Waiting(_) | Fate::TurnedAway(_) | Fate::Unknown(_) => continue,
        };
        while !is_certified(server, height)? {
            if begun.elapsed() >= patience {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        if !is_certified(server, height)? {
            continue;
        }
        if let Some(home) = home_of(purse, server, &deposit)? {
            deposit.home = Some(home);
            purse.keep_deposit(&deposit)?;
        }
    }
    Ok(())
}

/// Whether validators of the lane accept outputs of the block at this height.
fn is_certified(server: &Server, height: u64) -> anyhow::Result<bool> {
    // A single node certifies nothing.
    Ok(server.node().validator()?.is_none_or(|status| status.certified_anywhere >= height))
}

/// The home of a deposit: the epoch in which the ledger knows its output. The output's id is computed here.
fn home_of(purse: &Purse, server: &Server, deposit: &Deposit) -> anyhow::Result<Option<HomeEpoch>> {
    let now = LaneNow::ask(server, &purse.network)?.epoch;
    let account: Address = deposit.account.parse()?;
    for home in (now.saturating_sub(payments::REDEEM_EPOCHS)..=now).rev() {
        let id = OutputId::of_deposit(&purse.network.id, home, &account, deposit.sequence);
        let found: Option<LaneOutputBody> = server.node().find(&format!("/v1/lane/outputs/{id}"))?;
        let Some(output) = found else { continue };
        let is_same = output.to == deposit.to && output.amount == deposit.amount.to_string();
        ensure!(is_same, "the node's output {id} differs from the deposit; give another --server");
        return Ok(Some(home));
    }
    Ok(None)
}
