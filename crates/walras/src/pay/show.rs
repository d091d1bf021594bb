//! Balances and payments for people and for scripts.

use std::collections::BTreeMap;
use std::time::Duration;

use client::purse::spend::{Confirmed, to_accounts};
use client::purse::{HeldOutput, LaneNetwork, Purse, PurseContents};
use payments::{HomeEpoch, HomePhase, PaymentView, Recipient};
use primitives::{AssetId, Digest};
use serde_json::{Value, json};

/// The guarantees of the two receipts.
pub const FAST: &str = "no other payment of this money can be confirmed. If the payer contests it you have at least \
     one epoch to settle; after that it can lapse, and so it can at a restart of the network if nobody shows it.";
pub const SETTLED: &str = "final, also if the network restarts: only what was deposited after the snapshot goes back.";

/// Units of one asset, by what can be done with them.
#[derive(Clone, Copy, Default)]
struct Row {
    settled: u128,
    fast: u128,
    pending: u128,
    home_only: u128,
    lost: u128,
}

fn rows(purse: &Purse, contents: &PurseContents, now: Option<HomeEpoch>) -> anyhow::Result<BTreeMap<AssetId, Row>> {
    let mut rows: BTreeMap<AssetId, Row> = BTreeMap::new();
    for held in &contents.held {
        let row = rows.entry(held.holding.output.asset).or_default();
        let part = match now.map(|now| HomePhase::of(held.home, now)) {
            Some(HomePhase::Exit) => &mut row.home_only,
            Some(HomePhase::Ended) => &mut row.lost,
            _ if held.is_settled => &mut row.settled,
            _ => &mut row.fast,
        };
        *part += u128::from(held.holding.output.amount);
    }
    for deposit in &contents.deposits {
        rows.entry(AssetId(deposit.asset)).or_default().pending += u128::from(deposit.amount);
    }
    for sent in contents.sent.iter().filter(|sent| is_pending(purse, sent)) {
        for output in PaymentView::parse(&sent.payment.payment)?.outputs() {
            if matches!(output.to, Recipient::Key(key) if purse.keys.owns(&key)) {
                rows.entry(output.asset).or_default().pending += u128::from(output.amount);
            }
        }
    }
    Ok(rows)
}

pub(super) fn money(network: &LaneNetwork, asset: AssetId, units: u128) -> String {
    // Of no asset are there more units.
    network.money(asset, u64::try_from(units).unwrap_or(u64::MAX))
}

/// Prints the contents of the purse. `now` is the current lane epoch, if a node returned it.
pub fn balance(purse: &Purse, now: Option<HomeEpoch>, json: bool) -> anyhow::Result<()> {
    let contents = purse.contents()?;
    let rows = rows(purse, &contents, now)?;
    match json {
        true => println!("{}", as_json(purse, &contents, now, &rows)),
        false => in_words(purse, &contents, &rows),
    }
    Ok(())
}

fn as_json(purse: &Purse, of: &PurseContents, now: Option<HomeEpoch>, rows: &BTreeMap<AssetId, Row>) -> Value {
    let network = &purse.network;
    let row = |(asset, row): (&AssetId, &Row)| {
        let money = network.get(*asset);
        json!({
            "asset": network.symbol(*asset),
            "decimals": money.map(|money| money.decimals),
            "settled": row.settled.to_string(),
            "fast": row.fast.to_string(),
            "pending": row.pending.to_string(),
            "home_only": row.home_only.to_string(),
            "lost": row.lost.to_string(),
        })
    };
    let output = |held: &HeldOutput| {
        json!({
            "output": held.holding.id.to_string(),
            "asset": network.symbol(held.holding.output.asset),
            "amount": held.holding.output.amount.to_string(),
            "home": held.home,
            "settled": held.is_settled,
        })
    };
    let payment = |sent: &lane::SentPayment| {
        json!({
            "payment": sent.payment.digest.to_string(),
            "confirmed": sent.certificate.is_some(),
            "settled": sent.is_settled,
        })
    };
    let unposted = of.sent.iter().filter(|sent| is_unposted(purse, sent));
    json!({
        "epoch": now,
        "balances": rows.iter().map(row).collect::<Vec<_>>(),
        "outputs": of.held.iter().map(output).collect::<Vec<_>>(),
        "payments": of.sent.iter().map(payment).collect::<Vec<_>>(),
        "unposted": unposted.map(|sent| sent.payment.digest.to_string()).collect::<Vec<_>>(),
        "copied": purse.is_copy(),
    })
}

fn in_words(purse: &Purse, of: &PurseContents, rows: &BTreeMap<AssetId, Row>) {
    if rows.is_empty() {
        println!("The purse is empty. Fill it:  walras pay deposit --key KEY --asset SYMBOL --amount AMOUNT");
    }
    for (asset, row) in rows {
        let shown = |units| money(&purse.network, *asset, units);
        println!("{}", shown(row.settled + row.fast));
        let parts = [
            ("settled: final", row.settled),
            ("fast: `walras pay settle` makes it final", row.fast),
            ("pending: a deposit or payment that is not confirmed yet", row.pending),
            ("can only be returned to the ledger: walras pay settle", row.home_only),
            ("lost: its epoch is over, it stays in escrow", row.lost),
        ];
        for (words, units) in parts.into_iter().filter(|(_, units)| *units > 0) {
            println!("  {:<24} {words}", shown(units));
        }
    }
    let unfinished = of.sent.iter().filter(|sent| is_pending(purse, sent)).count();
    if unfinished > 0 {
        println!("Payments that are not confirmed: {unfinished}. `walras pay settle` finishes them.");
    }
    for sent in of.sent.iter().filter(|sent| is_unposted(purse, sent)) {
        println!("Payment {} is not redeemed yet: walras pay redeem --key KEY", sent.payment.digest);
    }
    if purse.is_copy() {
        println!("This purse was copied or restored: it asks a quorum what it has spent before it spends again.");
    }
}

/// Whether a payment is not confirmed yet and may still be. A contested one is excluded: its money returns to the
/// ledger, or it is confirmed there.
fn is_pending(purse: &Purse, sent: &lane::SentPayment) -> bool {
    sent.certificate.is_none() && !purse.is_contested(&sent.payment.digest)
}

/// Whether a payment pays accounts and the ledger has not received its certificate from this purse.
pub fn is_unposted(purse: &Purse, sent: &lane::SentPayment) -> bool {
    let pays = to_accounts(&sent.payment).is_ok_and(|sums| !sums.is_empty());
    pays && sent.certificate.is_some() && !purse.is_posted(&sent.payment.digest)
}

/// The short printed form of a payment's digest.
pub fn short(digest: &Digest) -> String {
    digest.to_string()[..10].into()
}

fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 10_000.0).round() / 10.0
}

/// A confirmed payment as JSON.
pub fn confirmed_body(confirmed: &Confirmed) -> Value {
    json!({
        "payment": confirmed.payment.digest.to_string(),
        "fast_ms": milliseconds(confirmed.fast),
        "settled_ms": confirmed.settled.map(milliseconds),
    })
}

/// Prints how far a payment has come, and what that guarantees.
pub fn print_confirmed(confirmed: &Confirmed) {
    println!("Payment {}", confirmed.payment.digest);
    println!("Fast     {:>6.1} ms: {FAST}", milliseconds(confirmed.fast));
    match confirmed.settled {
        Some(time) => println!("Settled  {:>6.1} ms more: {SETTLED}", milliseconds(time)),
        None => println!("Settled  not yet: `walras pay settle` makes it final, here or at the recipient's."),
    }
}
