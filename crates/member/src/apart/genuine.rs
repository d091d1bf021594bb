//! Whether a report of a shard that runs apart is what it says: what is not is never posted, and costs no fee.

use payments::{
    CertifiedPayment, CheckBudget, Claim, ContestedOutput, LaneAnswer, LaneCommittee, LaneEffect, OutputId,
    PaymentBody, RootCache, StatementKind, owner_message, view_digest,
};
use primitives::{Digest, Signature};

use crate::ShardTerm;

/// The shard that reports: its member and number, and the terms of its home.
pub(crate) struct Reporter<'a> {
    pub member: u8,
    pub shard: u16,
    pub term: &'a ShardTerm,
}

/// Whether a report is genuine. `contested` is the case that it names, if that is open.
pub(crate) fn is_genuine(of: &Reporter<'_>, report: &LaneEffect, contested: Option<&ContestedOutput>) -> bool {
    match (report, contested) {
        (LaneEffect::Vote { payment, signature, answer, .. }, Some(contested)) => {
            let body = PaymentBody::parse(payment).ok();
            body.is_some_and(|body| {
                is_spend(of, &body, signature.as_ref(), contested)
                    && is_signed(of, StatementKind::Confirmation, contested, &body.digest, answer)
            })
        }
        (LaneEffect::View { case, paid, answer }, Some(contested)) => {
            is_paid(of, paid.as_deref()) && is_viewed(of, case, paid.as_deref(), contested, answer)
        }
        (LaneEffect::Barred { paid, .. }, Some(_)) => is_paid(of, paid.as_deref()),
        (LaneEffect::Shown(shown), _) => is_paid(of, Some(shown)),
        _ => false,
    }
}

/// Whether a payment spends the contested output, signed by its owner or as its exit.
fn is_spend(of: &Reporter<'_>, body: &PaymentBody, signature: Option<&Signature>, contested: &ContestedOutput) -> bool {
    let (network, payment) = (of.term.rules.network, &body.payment);
    let spends = payment.home == contested.home && payment.owner == contested.owner;
    let message = || owner_message(&network, contested.home, &body.digest);
    let is_allowed = match signature {
        None => *payment == contested.exit(network),
        Some(signature) => contested.owner.verify(&message(), signature),
    };
    spends && body.input_ids().any(|id| id == contested.output.id) && is_allowed
}

fn is_viewed(
    of: &Reporter<'_>,
    case: &OutputId,
    paid: Option<&CertifiedPayment>,
    contested: &ContestedOutput,
    answer: &LaneAnswer,
) -> bool {
    let named = paid.map(|paid| paid.digest(&of.term.rules.network));
    is_signed(of, StatementKind::View, contested, &view_digest(case, named.as_ref()), answer)
}

/// Whether this shard has signed the statement, in its own place.
fn is_signed(
    of: &Reporter<'_>,
    kind: StatementKind,
    contested: &ContestedOutput,
    digest: &Digest,
    answer: &LaneAnswer,
) -> bool {
    let claim = Claim { kind, owner: &contested.owner, digest };
    let header = answer.header(&of.term.committee, &claim).ok();
    let own = header.filter(|header| (header.validator, header.shard) == (of.member, of.shard));
    let key = of.term.committee.key(of.member, of.shard);
    own.zip(key.ok()).is_some_and(|(header, key)| key.verify(&header.bytes(), &answer.signature))
}

/// Whether the certificate of a payment holds, if there is one.
fn is_paid(of: &Reporter<'_>, paid: Option<&CertifiedPayment>) -> bool {
    let Some(CertifiedPayment { summary, certificate }) = paid else { return true };
    let committees = [Some(&of.term.committee), of.term.previous.as_ref()];
    let committee = committees.into_iter().flatten().find(|committee| committee.epoch() == summary.home);
    let digest = summary.digest(&of.term.rules.network);
    let claim = Claim { kind: StatementKind::Confirmation, owner: &summary.owner, digest: &digest };
    let holds = |committee: &LaneCommittee| {
        RootCache::new(1).verify_certificate(committee, &claim, certificate, &mut CheckBudget(u32::MAX))
    };
    committee.is_some_and(|committee| holds(committee).is_ok())
}
