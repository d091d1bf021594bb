//! `walras pay repair`: removes from a purse what nothing verifies, and asks the validators what is true instead.
//!
//! A payment in the outbox counts if its certificate holds, or if its owner's key, which is the purse's, signed it.
//! Anything else may come from a lie that was believed: it hides money, since it seems to spend it.

use std::process::ExitCode;

use client::purse::{Lanes, Purse, ask_spent};
use payments::{CheckBudget, Claim, PaymentCertificate, PaymentView, RootCache, StatementKind, owner_message};
use primitives::Digest;
use serde_json::json;

use super::{PursePlace, Reach};

pub(super) fn repair(json: bool, place: &PursePlace, reach: &Reach) -> anyhow::Result<ExitCode> {
    let mut purse = place.open()?;
    let seed = place.seed(&purse)?;
    let mut lanes = Lanes::new(&reach.server.node(), &purse.network, reach.patience())?;
    let mut removed: Vec<Digest> = Vec::new();
    for sent in purse.outbox.all()? {
        if !is_proved(&purse, &sent)? {
            purse.put_aside(&sent)?;
            removed.push(sent.payment.digest);
        }
    }
    let found = ask_spent(&mut purse, &seed, &mut lanes)?;
    if json {
        let removed: Vec<String> = removed.iter().map(Digest::to_string).collect();
        println!("{}", json!({"removed": removed, "found": found}));
    } else {
        println!("{} payments are removed, because nothing verifies them; they are kept in removed/.", removed.len());
        println!("{found} payments that the purse did not know were found at the validators.");
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether a payment is certified, or signed by a key of the purse.
fn is_proved(purse: &Purse, sent: &lane::SentPayment) -> anyhow::Result<bool> {
    let view = PaymentView::parse(&sent.payment.payment)?;
    let (owner, home) = (view.owner(), view.home());
    let message = owner_message(&purse.network.id, home, &sent.payment.digest);
    let is_own = purse.keys.owns(&owner) && view.is_of(&purse.network.id);
    let is_signed = owner.verify(&message, &sent.payment.signature);
    let is_certified = sent.certificate.as_ref().is_some_and(|of| holds(purse, &view, of));
    Ok(is_own && (is_signed && sent.certificate.is_none() || is_certified))
}

fn holds(purse: &Purse, view: &PaymentView<'_>, certificate: &PaymentCertificate) -> bool {
    // The keys of an epoch that ended long ago may be forgotten: its certificates were verified when they came.
    if !purse.network.knows(view.home()) {
        return true;
    }
    let (owner, digest) = (view.owner(), view.digest());
    let claim = Claim { kind: StatementKind::Confirmation, owner: &owner, digest: &digest };
    let (committee, budget) = (purse.network.committee(view.home()), &mut CheckBudget(u32::MAX));
    RootCache::new(0).verify_certificate(&committee, &claim, certificate, budget).is_ok()
}
