//! Receipts: checks them, adds them to the purse, and settles everything.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use client::purse::{
    Asking, HeldOutput, Lanes, ProvedSlip, Purse, PurseError, ReceiptFault, Slip, checked, read_network,
    resolve_deposits, spend,
};
use payments::{AnswerScheme, HomeEpoch, OutputId, Recipient};
use serde_json::json;

use super::address::Shown;
use super::advice::advised;
use super::deposit::CERTIFIED_PATIENCE;
use super::founded::of_genesis;
use super::send::session;
use super::{PursePlace, Reach, show};

pub(super) fn receive(
    json: bool,
    file: &Path,
    settles: bool,
    place: &PursePlace,
    reach: &Reach,
) -> anyhow::Result<ExitCode> {
    let purse = place.open()?;
    let slips = Slip::read_file(file, &purse.network.id).with_context(|| file.display().to_string())?;
    let lanes = settles.then(|| Lanes::new(&reach.server.node(), &purse.network, reach.patience()));
    let now = lanes.as_ref().and_then(|lanes| Some(lanes.as_ref().ok()?.now.epoch));
    // All receipts of a file, or none.
    let taken = slips.iter().map(|slip| checked(&purse, slip, now)).collect::<Result<Vec<_>, _>>();
    let taken = taken.map_err(|fault| of_fault(&purse, file, fault))?;
    let mut rows = Vec::new();
    for (receipt, holding) in &taken {
        let is_new = purse.keep_receipt(&holding.id, receipt)?;
        rows.push((holding, is_new));
    }
    let failed = match lanes {
        Some(lanes) => settle_received(&purse, lanes),
        None => vec!["--no-settle was given".into()],
    };
    let now_held = purse.contents()?.held;
    let is_settled =
        |id: &OutputId| now_held.iter().find(|held| held.holding.id == *id).is_none_or(|held| held.is_settled);
    if json {
        let row = |(holding, is_new): &(&payments::Holding, bool)| {
            json!({
                "output": holding.id.to_string(),
                "asset": purse.network.symbol(holding.output.asset),
                "amount": holding.output.amount.to_string(),
                "new": is_new,
                "settled": is_settled(&holding.id),
            })
        };
        println!("{}", json!({"received": rows.iter().map(row).collect::<Vec<_>>()}));
        return Ok(ExitCode::SUCCESS);
    }
    for (holding, is_new) in &rows {
        let again = if *is_new { "" } else { " (it was here already)" };
        println!("received {}{again}", purse.network.money(holding.output.asset, holding.output.amount));
    }
    if rows.iter().all(|(holding, _)| is_settled(&holding.id)) {
        println!("Settled: {}", show::SETTLED);
    } else {
        println!("Fast: {}", show::FAST);
        println!("Not settled yet ({}): walras pay settle", failed.join("; "));
    }
    Ok(ExitCode::SUCCESS)
}

/// Why a receipt is not ours, in words.
fn of_fault(purse: &Purse, file: &Path, fault: ReceiptFault) -> anyhow::Error {
    let file = file.display();
    match fault {
        ReceiptFault::PaysAccounts => {
            anyhow!("{file}: this receipt pays ledger accounts: use walras pay redeem --key KEY {file}")
        }
        ReceiptFault::OtherOwner(to) => {
            let to = Shown(&purse.network.id, to);
            anyhow!("{file}: the receipt pays {to}, which does not belong to this purse")
        }
        fault => anyhow::Error::from(fault).context(file.to_string()),
    }
}

/// Settles received receipts; returns why some are not settled.
fn settle_received(purse: &Purse, lanes: Result<Lanes, PurseError>) -> Vec<String> {
    match lanes.and_then(|mut lanes| spend::settle_all(purse, &mut lanes)) {
        Ok((_, unsettled)) => unsettled.iter().map(ToString::to_string).collect(),
        Err(error) => vec![terminal::in_words(&error.into())],
    }
}

pub(super) fn settle(json: bool, place: &PursePlace, reach: &Reach) -> anyhow::Result<ExitCode> {
    let mut purse = place.open()?;
    let node = reach.server.node();
    resolve_deposits(&purse, &node, CERTIFIED_PATIENCE)?;
    let mut lanes = Lanes::new(&node, &purse.network, reach.patience())?;
    let mut failed = Vec::new();
    let mut finished = 0;
    for payment in purse.outbox.unfinished()? {
        let is_contested = purse.is_contested(&payment.digest);
        match spend::confirm(&purse, &mut lanes, payment) {
            Ok(_) => finished += 1,
            // The ledger decides.
            Err(_) if is_contested => {}
            Err(error) => failed.push(terminal::in_words(&advised(error.into()))),
        }
    }
    let (settled, unsettled) = spend::settle_all(&purse, &mut lanes)?;
    failed.extend(unsettled.iter().map(ToString::to_string));
    let (mut renewed, mut sent_home) = (0, 0);
    let now = lanes.now.epoch;
    let is_old = |held: &HeldOutput| held.home + 1 == now || held.home + 2 == now;
    if purse.contents()?.held.iter().any(is_old) {
        let asking = Asking { patience: reach.patience(), scheme: AnswerScheme::Tree };
        let mut session = session(&mut purse, place, &reach.server, asking)?;
        renewed = spend::renew(session.purse, &session.seed, &mut session.lanes)?;
        sent_home = spend::send_home(session.purse, &session.seed, &mut session.lanes)?;
    }
    let forgotten = purse.forget_old(now)?;
    let unposted: Vec<_> = purse.contents()?.sent.into_iter().filter(|sent| show::is_unposted(&purse, sent)).collect();
    if json {
        println!(
            "{}",
            json!({"finished": finished, "settled": settled, "renewed": renewed, "sent_home": sent_home,
                "forgotten": forgotten,
                "unposted": unposted.iter().map(|sent| sent.payment.digest.to_string()).collect::<Vec<_>>(),
                "failed": failed})
        );
    } else {
        println!("finished {finished}, settled {settled}, renewed {renewed}, returned to the ledger {sent_home}");
        if !unposted.is_empty() {
            println!("{} payments to accounts are not redeemed yet: use walras pay redeem --key KEY", unposted.len());
        }
        failed.iter().for_each(|reason| eprintln!("not done: {reason}"));
    }
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

pub(super) fn verify(
    json: bool,
    file: &Path,
    genesis: Option<PathBuf>,
    place: &PursePlace,
) -> anyhow::Result<ExitCode> {
    let network = match genesis {
        Some(path) => of_genesis(&path)?,
        None => read_network(&place.purse).context("give --purse, or --genesis")?,
    };
    let slips = Slip::read_file(file, &network.id).with_context(|| file.display().to_string())?;
    let mut proved = Vec::new();
    for slip in &slips {
        let verified = slip.verify(&network);
        match verified.with_context(|| format!("{}: this receipt proves nothing", file.display()))? {
            ProvedSlip::Output(holding) => {
                let home = match slip {
                    Slip::Receipt(receipt) => Some(receipt.proof.summary.into),
                    _ => None,
                };
                proved.push((holding.output, holding.id.to_string(), home));
            }
            ProvedSlip::Payment(body) => {
                let outputs = body.payment.outputs.iter().zip(body.output_ids());
                let to_account =
                    |(output, _): &(&payments::Output, OutputId)| matches!(output.to, Recipient::Account(_));
                proved.extend(outputs.filter(to_account).map(|(output, id)| (*output, id.to_string(), None)));
            }
        }
    }
    if json {
        let row = |(output, id, home): &(payments::Output, String, Option<HomeEpoch>)| {
            json!({
                "output": id,
                "home": home,
                "to": Shown(&network.id, output.to).to_string(),
                "asset": network.symbol(output.asset),
                "amount": output.amount.to_string(),
                "proves": "fast",
            })
        };
        println!("{}", json!({"receipts": proved.iter().map(row).collect::<Vec<_>>(), "promise": show::FAST}));
        return Ok(ExitCode::SUCCESS);
    }
    for (output, _, home) in &proved {
        let money = network.money(output.asset, output.amount);
        let when = home.map_or_else(String::new, |home| format!(", to be spent in lane epoch {home} or {}", home + 1));
        println!("{money} for {}{when}", Shown(&network.id, output.to));
    }
    println!("Fast: {}", show::FAST);
    println!("An offline check proves fast only. `walras pay receive` settles it.");
    Ok(ExitCode::SUCCESS)
}
