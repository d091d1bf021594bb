//! The way back to the ledger: redemptions, contested money, accounts to which money was returned.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use api::{BalanceBody, LaneBody};
use client::purse::{Asking, LaneNow, Purse, Slip, spend};
use payments::{
    BridgeOperation, ContestClaim, ContestedOutput, OutputId, PaymentBody, PaymentCertificate, PaymentView, Recipient,
    SpentOutput, contests, owner_message,
};
use primitives::{Address, TransactionId};
use serde_json::json;

use super::ledger_post::post;
use super::send::{session, told};
use super::{PursePlace, show};
use crate::keystore;
use crate::wallet::send::Sender;
use crate::wallet::server::Server;

pub(super) fn redeem(
    json: bool,
    files: &[PathBuf],
    quantity: Option<(String, String)>,
    sender: &Sender,
    place: &PursePlace,
    asking: Asking,
) -> anyhow::Result<ExitCode> {
    let mut purse = place.open()?;
    let mut certified = Vec::new();
    for file in files {
        purse.network.learn(&sender.server().node())?;
        certified.extend(redeemable(&purse, file)?);
    }
    if let Some((asset, amount)) = quantity {
        let quantity = purse.network.units(&asset, &amount)?;
        let to = Recipient::Account(sender.account()?);
        let mut session = session(&mut purse, place, sender.server(), asking)?;
        let confirmed = told(session.pay(to, quantity, true)?);
        if !json {
            confirmed.iter().for_each(show::print_confirmed);
        }
    }
    if files.is_empty() {
        for sent in purse.contents()?.sent.into_iter().filter(|sent| show::is_unposted(&purse, sent)) {
            let Some(certificate) = sent.certificate else { continue };
            certified.push((PaymentBody::parse(&sent.payment.payment)?, certificate));
        }
    }
    ensure!(!certified.is_empty(), "there is nothing to redeem: give --asset and --amount, or a file");
    let mut rows = Vec::new();
    for (body, certificate) in certified {
        let operation = BridgeOperation::Redeem { payment: body.payment.encode(), certificate };
        let Some(transaction) = post(json, sender, &operation)? else { return Ok(ExitCode::FAILURE) };
        purse.keep_posted(&body.digest, &transaction)?;
        rows.push((body, transaction));
    }
    let waiting = sender.server().node().get::<LaneBody>("/v1/lane")?.waiting_claims;
    if json {
        let row = |(body, transaction): &(PaymentBody, TransactionId)| {
            let (payment, transaction) = (body.digest.to_string(), transaction.to_string());
            json!({"payment": payment, "transaction": transaction})
        };
        println!("{}", json!({"redeemed": rows.iter().map(row).collect::<Vec<_>>(), "waiting_claims": waiting}));
        return Ok(ExitCode::SUCCESS);
    }
    for output in rows.iter().flat_map(|(body, _)| &body.payment.outputs) {
        if let Recipient::Account(account) = output.to {
            println!("redeemed {} to {}", purse.network.money(output.asset, output.amount), account.checked());
        }
    }
    if waiting > 0 {
        println!("{waiting} claims are delayed by the limit on outflow; they are paid in order and do not expire");
    }
    Ok(ExitCode::SUCCESS)
}

/// The payments to accounts that a file of receipts proves.
fn redeemable(purse: &Purse, file: &Path) -> anyhow::Result<Vec<(PaymentBody, PaymentCertificate)>> {
    let named = || file.display().to_string();
    let one = |slip: Slip| {
        slip.verify(&purse.network).with_context(|| format!("{}: the receipt proves nothing", named()))?;
        match slip {
            Slip::ToAccounts(body, certificate) => Ok((body, certificate)),
            Slip::Receipt(_) | Slip::Deposit(_) => {
                bail!("{}: this receipt pays a lane address: use walras pay receive {0}", file.display())
            }
        }
    };
    Slip::read_file(file, &purse.network.id).with_context(named)?.into_iter().map(one).collect()
}

pub(super) fn contest(json: bool, name: &str, sender: &Sender, place: &PursePlace) -> anyhow::Result<ExitCode> {
    let purse = place.open()?;
    let sent = spend::find(&purse, name)?;
    ensure!(sent.certificate.is_none(), "the payment is confirmed: contesting it cannot succeed");
    let now = LaneNow::ask(&sender.server().node(), &purse.network)?;
    let (contents, seed) = (purse.contents()?, place.seed(&purse)?);
    let (mut claims, mut opened) = (Vec::new(), Vec::new());
    purse.keep_contested(&sent.payment.digest)?;
    for SpentOutput { id, asset, amount } in PaymentView::parse(&sent.payment.payment)?.inputs() {
        let held = contents.spent.get(&id).with_context(|| format!("the purse has lost the proof of output {id}"))?;
        let output = SpentOutput { id, asset, amount };
        let contested = ContestedOutput { output, home: held.home, owner: held.owner };
        let exit = PaymentBody::new(contested.exit(purse.network.id));
        let key = purse.keys.secret(&seed, &held.owner)?;
        let signature = key.sign(&owner_message(&purse.network.id, held.home, &exit.digest));
        claims.push(ContestClaim { contested, signature, proof: held.holding.proof.clone() });
        opened.push((id, held.owner.address()));
    }
    // All inputs at once: a payment can be stuck in one of them alone. Proofs of many signers need several posts.
    let mut posted: BTreeMap<OutputId, String> = BTreeMap::new();
    for operation in contests(now.case_deposit, claims) {
        let Some(transaction) = post(json, sender, &operation)? else { return Ok(ExitCode::FAILURE) };
        let BridgeOperation::Resolve { outputs, .. } = &operation else { continue };
        posted.extend(outputs.iter().map(|claim| (claim.contested.output.id, transaction.to_string())));
    }
    if json {
        let row = |(id, account): &(OutputId, Address)| {
            let (output, account) = (id.to_string(), account.to_string());
            json!({"output": output, "account": account, "transaction": posted.get(id)})
        };
        println!("{}", json!({"contested": opened.iter().map(row).collect::<Vec<_>>()}));
        return Ok(ExitCode::SUCCESS);
    }
    for (id, account) in &opened {
        println!("contested output {id}: if no payment of it is valid, it is paid to account {}", account.checked());
    }
    println!("`walras pay account-key` writes the key of such an account.");
    Ok(ExitCode::SUCCESS)
}

pub(super) fn accounts(json: bool, place: &PursePlace, server: &Server) -> anyhow::Result<ExitCode> {
    let purse = place.open()?;
    let (assets, mut rows) = (server.node().assets()?, Vec::new());
    for account in purse.keys.accounts() {
        let found = server.node().account(&account)?;
        let balances = found.map_or(Vec::new(), |found| found.balances);
        if balances.iter().any(|of| of.available != "0") {
            rows.push((account, balances));
        }
    }
    if json {
        let row = |(account, balances): &(Address, Vec<BalanceBody>)| {
            let account = account.to_string();
            json!({"account": account, "balances": balances})
        };
        println!("{}", json!({"accounts": rows.iter().map(row).collect::<Vec<_>>()}));
        return Ok(ExitCode::SUCCESS);
    }
    for (account, balances) in &rows {
        let held: Vec<String> = balances.iter().map(|of| assets.money(&of.available, &of.asset)).collect();
        println!("{}  {}", account.checked(), held.join(", "));
    }
    if !rows.is_empty() {
        println!("`walras pay account-key` writes the key of such an account. Its transactions pay their fees in the");
        println!("first asset: if it has none, send it a little first.");
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn account_key(
    json: bool,
    account: &Address,
    out: &PathBuf,
    place: &PursePlace,
) -> anyhow::Result<ExitCode> {
    let purse = place.open()?;
    let seed = place.seed(&purse)?;
    let key = purse.keys.secret_of_account(&seed, account)?;
    keystore::write(out, &key, &place.passphrase())?;
    if json {
        println!("{}", json!({"key": out, "address": account.to_string()}));
    } else {
        println!("{}: the key of {}", out.display(), account.checked());
    }
    Ok(ExitCode::SUCCESS)
}
