//! `walras pay deposit`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use client::purse::{Deposit, LaneNow, Purse, resolve_deposits};
use primitives::{Address, Amount, AssetId, Operation};
use serde_json::json;

use super::{PursePlace, show};
use crate::wallet::report::{self, Fate};
use crate::wallet::send::Sender;

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
    // The node must be of the purse's lane; otherwise the money would go to another lane. It also tells the terms.
    let node = sender.server().node();
    let now = LaneNow::ask(&node, &purse.network)?;
    let (asset, amount) = purse.network.units(asset, amount)?;
    purse.network.check_deposit(asset, amount, now.epoch)?;
    resolve_deposits(&purse, &node, Duration::ZERO)?;
    let account = sender.account()?;
    if !sender.is_again() {
        refuse_a_second(&purse, asset, amount, &account)?;
    }
    let seed = place.seed(&purse)?;
    let to = purse.keys.make(&seed)?.public();
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
        resolve_deposits(&purse, &node, Duration::ZERO)?;
        return Ok(report::print(&fate, json, &transaction.id(), &node.assets()?));
    };
    resolve_deposits(&purse, &node, CERTIFIED_PATIENCE)?;
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

/// Refuses a deposit that was sent before and whose result is unknown.
fn refuse_a_second(purse: &Purse, asset: AssetId, amount: Amount, account: &Address) -> anyhow::Result<()> {
    let mut waiting = purse.contents()?.deposits.into_iter();
    let same = waiting.find(|one| (one.asset, one.amount) == (asset.0, amount) && one.account == account.to_string());
    let Some(same) = same else { return Ok(()) };
    bail!(
        "the same deposit was sent before as {0}, and its result is unknown: `walras wallet status {0}` shows it, \
         `walras pay settle` takes it into the purse. To do it twice, add --again",
        same.transaction
    )
}
