//! Sends payments and writes receipts. Money moves only once the place for its receipt is held.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use client::durable::{HeldFile, write_new};
use client::purse::spend::{self, Confirmed};
use client::purse::{Asking, DepositSlip, HeldOutput, Paid, Purse, Session, Slip};
use payments::{FastReceipt, OutputProof, PaidProof, PaymentBody, Recipient};
use serde_json::{Value, json};

use super::address::{Payee, Shown};
use super::qr::qr;
use super::{PursePlace, Reach, Scheme, show, watch};
use crate::wallet::server::Server;

/// An amount to be sent to a payee.
pub(super) struct Order {
    pub to: Payee,
    /// Asset and amount, as they were typed.
    pub given: Option<(String, String)>,
    pub receipt: Option<PathBuf>,
    pub settles: bool,
    pub scheme: Scheme,
}

pub(super) fn send(json: bool, order: &Order, place: &PursePlace, reach: &Reach) -> anyhow::Result<ExitCode> {
    let mut purse = place.open()?;
    let to = order.to.on(&purse.network.id)?;
    let given = order.given.as_ref().map(|(asset, amount)| purse.network.units(asset, amount)).transpose()?;
    let quantity = order.to.quantity(given, &purse.network)?;
    let asking = Asking { patience: reach.patience(), scheme: order.scheme.into() };
    let held = match &order.receipt {
        Some(file) => HeldFile::named(file, RECEIPT_ROOM),
        None => HeldFile::nameless(Path::new("."), RECEIPT_ROOM),
    };
    let held = held.context("nothing was paid: the receipt")?;
    let mut session = session(&mut purse, place, &reach.server, asking)?;
    let confirmed = told(session.pay(to, quantity, order.settles)?);
    let first = confirmed.first().context("nothing was paid")?;
    let file = keep_slips(&purse, &confirmed, held, order.receipt.as_deref()).with_context(|| {
        let (paid, payment) = (purse.network.money(quantity.0, quantity.1), show::short(&first.payment.digest));
        format!(
            "{paid} was paid, so do not repeat the command: `walras pay export {payment} --file FILE` writes the \
             receipt of this payment (`walras pay history` lists all); it was not written"
        )
    })?;
    let shown = Shown(&purse.network.id, to).to_string();
    let is_account = matches!(to, Recipient::Account(_));
    if json {
        let payments: Vec<Value> = confirmed.iter().map(show::confirmed_body).collect();
        println!(
            "{}",
            json!({"to": shown, "asset": purse.network.symbol(quantity.0), "amount": quantity.1.to_string(),
                "payments": payments, "receipt": file, "promises": {"fast": show::FAST, "settled": show::SETTLED}})
        );
        return Ok(ExitCode::SUCCESS);
    }
    println!("paid {} to {shown}", purse.network.money(quantity.0, quantity.1));
    confirmed.iter().for_each(show::print_confirmed);
    let Some(file) = file else {
        println!("{OWN}");
        return Ok(ExitCode::SUCCESS);
    };
    println!("Receipt  {}", file.display());
    match is_account {
        true => println!("Anybody can redeem it:  walras pay redeem --key KEY {}", file.display()),
        false => println!("The recipient runs:  walras pay receive {}", file.display()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Said of a payment to the payer's own purse.
const OWN: &str = "The address is one of this purse: its money stays here, and there is no receipt to hand on.";

/// Bytes for which the disk has room before money moves: more than receipts of a payment have.
const RECEIPT_ROOM: usize = 256 << 10;

fn text_of(slips: &[String]) -> Vec<u8> {
    (slips.join("\n") + "\n").into_bytes()
}

/// Writes the receipts of payments for their recipients. What stays in the purse has none.
fn keep_slips(
    purse: &Purse,
    confirmed: &[Confirmed],
    held: HeldFile,
    name: Option<&Path>,
) -> anyhow::Result<Option<PathBuf>> {
    let mut slips = Vec::new();
    for one in confirmed {
        slips.extend(slips_of(purse, &one.payment, &one.certificate)?);
    }
    let Some(first) = confirmed.first().filter(|_| !slips.is_empty()) else { return Ok(None) };
    let default = || PathBuf::from(format!("receipt-{}.txt", &show::short(&first.payment.digest)[2..]));
    let file = name.map_or_else(default, Path::to_path_buf);
    held.keep(&file, &text_of(&slips))?;
    Ok(Some(file))
}

fn slips_of(
    purse: &Purse,
    payment: &payments::SignedPayment,
    certificate: &payments::PaymentCertificate,
) -> anyhow::Result<Vec<String>> {
    let mut slips: Vec<Slip> = spend::receipts(purse, payment, certificate)?.into_iter().map(Slip::Receipt).collect();
    if !spend::to_accounts(payment)?.is_empty() {
        slips.push(Slip::ToAccounts(PaymentBody::parse(&payment.payment)?, certificate.clone()));
    }
    Ok(slips.iter().map(|slip| slip.encode(&purse.network.id)).collect())
}

/// A purse that is about to spend; tells of payments that a copied purse did not know.
pub(super) fn session<'a>(
    purse: &'a mut Purse,
    place: &PursePlace,
    server: &Server,
    asking: Asking,
) -> anyhow::Result<Session<'a>> {
    let seed = place.seed(purse)?;
    let session = Session::begin(purse, seed, &server.node(), asking)?;
    if let Some(found) = session.found {
        eprintln!(
            "the purse was copied or restored: a quorum reported its spending, and {found} lost payments were found"
        );
    }
    Ok(session)
}

/// The payments; tells why some are not settled.
pub(super) fn told(paid: Paid) -> Vec<Confirmed> {
    for error in paid.unsettled {
        eprintln!("not settled yet: {}", terminal::in_words(&error.into()));
    }
    paid.confirmed
}

pub(super) fn export(
    json: bool,
    name: &str,
    file: Option<PathBuf>,
    codes: bool,
    place: &PursePlace,
) -> anyhow::Result<ExitCode> {
    let purse = place.open()?;
    let sent = spend::find(&purse, name)?;
    let waits = "the payment is not confirmed yet: use walras pay settle";
    let slips = slips_of(&purse, &sent.payment, sent.certificate.as_ref().context(waits)?)?;
    ensure!(!slips.is_empty(), "{OWN}");
    file.iter().try_for_each(|file| write_new(file, &text_of(&slips)))?;
    if json {
        println!("{}", json!({"payment": sent.payment.digest.to_string(), "receipts": slips, "file": file}));
        return Ok(ExitCode::SUCCESS);
    }
    for slip in &slips {
        if codes {
            let long = || format!("a receipt of {} characters does not fit into a QR code: use a file", slip.len());
            println!("{}", qr(slip).with_context(long)?);
        } else if file.is_none() {
            println!("{slip}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn leave(json: bool, folder: &PathBuf, place: &PursePlace) -> anyhow::Result<ExitCode> {
    let purse = place.open()?;
    let slip = |held: &HeldOutput| match &held.holding.proof {
        OutputProof::Payment(proof) => {
            Slip::Receipt(FastReceipt { output: held.holding.output, proof: PaidProof::clone(proof) })
        }
        OutputProof::Ledger => Slip::Deposit(DepositSlip {
            home: held.home,
            id: held.holding.id,
            owner: held.owner,
            asset: held.holding.output.asset,
            amount: held.holding.output.amount,
        }),
    };
    let slips: Vec<Slip> = purse.contents()?.held.iter().map(slip).collect();
    let count = watch::leave(&slips, &purse.network, folder)?;
    if json {
        println!("{}", json!({"left": count, "folder": folder}));
    } else {
        println!("left {count} receipts in {}; leave them again when the purse has changed", folder.display());
    }
    Ok(ExitCode::SUCCESS)
}
