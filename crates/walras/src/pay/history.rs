//! The payments of a purse, oldest first: deposits, received receipts, and what it paid.

use std::process::ExitCode;

use chrono::DateTime;
use client::purse::{Deposit, HeldOutput, Purse};
use lane::SentPayment;
use payments::{PaymentView, Recipient};
use primitives::{Amount, AssetId};
use serde_json::{Value, json};

use super::PursePlace;
use super::address::Shown;
use super::show::short;

/// One line of the history.
struct Entry {
    /// When its file was written here, milliseconds since 1970; a copied purse may have lost it.
    time_ms: Option<u64>,
    kind: &'static str,
    asset: AssetId,
    amount: Amount,
    /// The recipient of what was sent; `None` where it stays in the purse.
    to: Option<String>,
    state: &'static str,
    /// The transaction of a deposit, the output of a receipt, the digest of a payment.
    id: String,
}

pub(super) fn history(json: bool, place: &PursePlace) -> anyhow::Result<ExitCode> {
    let purse = place.open()?;
    let entries = entries(&purse)?;
    if json {
        let rows: Vec<Value> = entries.iter().map(|entry| entry.body(&purse)).collect();
        println!("{}", json!({"history": rows}));
        return Ok(ExitCode::SUCCESS);
    }
    if entries.is_empty() {
        println!("The purse has no payments.");
    }
    entries.iter().for_each(|entry| println!("{}", entry.line(&purse)));
    Ok(ExitCode::SUCCESS)
}

fn entries(purse: &Purse) -> anyhow::Result<Vec<Entry>> {
    let contents = purse.contents()?;
    let received = contents.held.iter().chain(contents.spent.values()).filter(|held| held.is_received);
    let mut entries: Vec<Entry> = received.map(|held| of_receipt(purse, held)).collect();
    entries.extend(purse.deposits()?.iter().map(|deposit| of_deposit(purse, deposit)));
    for sent in &contents.sent {
        entries.extend(of_payment(purse, sent)?);
    }
    entries.sort_by_key(|entry| entry.time_ms);
    Ok(entries)
}

fn of_receipt(purse: &Purse, held: &HeldOutput) -> Entry {
    let id = held.holding.id.to_string();
    let state = if held.is_settled { "settled" } else { "fast" };
    let (asset, amount) = (held.holding.output.asset, held.holding.output.amount);
    Entry { time_ms: purse.written_ms("received", &id), kind: "received", asset, amount, to: None, state, id }
}

fn of_deposit(purse: &Purse, deposit: &Deposit) -> Entry {
    Entry {
        time_ms: purse.written_ms("deposits", &deposit.transaction),
        kind: "deposited",
        asset: AssetId(deposit.asset),
        amount: deposit.amount,
        to: None,
        state: if deposit.home.is_some() { "settled" } else { "pending" },
        id: deposit.transaction.clone(),
    }
}

/// What a payment pays others, an entry for each output; what moves within the purse is one entry.
fn of_payment(purse: &Purse, sent: &SentPayment) -> anyhow::Result<Vec<Entry>> {
    let (view, id) = (PaymentView::parse(&sent.payment.payment)?, sent.payment.digest.to_string());
    let time_ms = purse.written_ms("outbox", &id);
    let state = match (&sent.certificate, sent.is_settled) {
        (None, _) if purse.is_contested(&sent.payment.digest) => "contested",
        (None, _) => "not confirmed",
        (Some(_), false) => "fast",
        (Some(_), true) => "settled",
    };
    let is_own = |to: &Recipient| matches!(to, Recipient::Key(key) if purse.keys.owns(key));
    let outputs: Vec<_> = view.outputs().collect();
    let abroad: Vec<_> = outputs.iter().filter(|output| !is_own(&output.to)).collect();
    let chosen = if abroad.is_empty() { outputs.iter().take(1).collect() } else { abroad };
    let entry = |output: &payments::Output| Entry {
        time_ms,
        kind: if is_own(&output.to) { "moved" } else { "sent" },
        asset: output.asset,
        amount: output.amount,
        to: (!is_own(&output.to)).then(|| Shown(&purse.network.id, output.to).to_string()),
        state,
        id: id.clone(),
    };
    Ok(chosen.into_iter().map(entry).collect())
}

impl Entry {
    fn body(&self, purse: &Purse) -> Value {
        json!({
            "time_ms": self.time_ms,
            "kind": self.kind,
            "asset": purse.network.symbol(self.asset),
            "amount": self.amount.to_string(),
            "to": self.to,
            "state": self.state,
            "id": self.id,
        })
    }

    fn line(&self, purse: &Purse) -> String {
        let time = self.time_ms.and_then(|ms| DateTime::from_timestamp_millis(i64::try_from(ms).ok()?));
        let time = time.map_or_else(|| "?".into(), |time| time.format("%Y-%m-%d %H:%M:%S").to_string());
        let money = purse.network.money(self.asset, self.amount);
        let to = self.to.as_ref().map(|to| format!(" to {to}")).unwrap_or_default();
        let id = self.id.parse().map_or_else(|_| self.id.clone(), |id| short(&id));
        format!("{time:<19}  {:<9}  {money}{to}, {} ({id})", self.kind, self.state)
    }
}
