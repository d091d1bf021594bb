//! Answers and certificates under each scheme: signatures of shards in a tree, of BLS keys, of shares of a group key.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use ledger::LaneBridge;
use payments::{
    AnswerCollector, AnswerScheme, BlsAggregate, BlsCollector, BlsSignature, CheckBudget, Claim, HomeEpoch, LaneAnswer,
    LaneCommittee, PaymentBody, PaymentCertificate, PaymentSummary, RootCache, StatementKind, with_told_board,
};

use super::observed::Observed;
use crate::world::{LaneMistake, Mistake};

/// An answer of a validator.
#[derive(Clone, Debug)]
pub(super) enum SimAnswer {
    Tree(LaneAnswer),
    Bls(u8, BlsSignature),
}

impl SimAnswer {
    pub fn validator(&self) -> u8 {
        match self {
            SimAnswer::Tree(answer) => answer.validator,
            SimAnswer::Bls(validator, _) => *validator,
        }
    }
}

/// The schemes under which the members of a committee may be asked.
pub(super) fn schemes_of(committee: &LaneCommittee) -> Vec<AnswerScheme> {
    let known = [(AnswerScheme::Bls, committee.has_bls()), (AnswerScheme::Share, committee.group().is_ok())];
    let known = known.into_iter().filter_map(|(scheme, is_known)| is_known.then_some(scheme));
    [AnswerScheme::Tree].into_iter().chain(known).collect()
}

/// The scheme that a client uses next when the members do not answer under this one: the aggregate if they lack
/// shares, and finally a tree.
pub(super) fn below(scheme: AnswerScheme) -> AnswerScheme {
    match scheme {
        AnswerScheme::Share => AnswerScheme::Bls,
        AnswerScheme::Bls | AnswerScheme::Tree => AnswerScheme::Tree,
    }
}

/// Collects the answers to one payment under the scheme that its client requested.
pub(super) enum SimCollector {
    Tree(AnswerCollector),
    Bls(BlsCollector),
    /// Makes the mistake [`LaneMistake::ForeignSigner`].
    Careless(BTreeMap<u8, BlsSignature>),
}

impl SimCollector {
    pub fn new(
        scheme: AnswerScheme,
        kind: StatementKind,
        summary: PaymentSummary,
        mistake: Option<Mistake>,
    ) -> SimCollector {
        match scheme {
            AnswerScheme::Tree => SimCollector::Tree(AnswerCollector::new(kind, summary)),
            AnswerScheme::Bls if mistake == Some(Mistake::Lane(LaneMistake::ForeignSigner)) => {
                SimCollector::Careless(BTreeMap::new())
            }
            AnswerScheme::Bls => SimCollector::Bls(BlsCollector::new(kind, summary)),
            AnswerScheme::Share => SimCollector::Bls(BlsCollector::of_shares(kind, summary)),
        }
    }

    /// Adds an answer; returns the certificate once there are enough. An answer under another scheme is dropped.
    pub fn add(
        &mut self,
        committee: &LaneCommittee,
        roots: &mut RootCache,
        answer: SimAnswer,
    ) -> Option<PaymentCertificate> {
        match (self, answer) {
            (SimCollector::Tree(of), SimAnswer::Tree(answer)) => of.add(committee, roots, answer).ok()?,
            (SimCollector::Bls(of), SimAnswer::Bls(validator, signature)) => of.add(committee, validator, signature),
            (SimCollector::Careless(parts), SimAnswer::Bls(validator, signature)) => {
                parts.insert(validator, signature);
                with_foreign_signer(committee, parts)
            }
            _ => None,
        }
    }
}

/// The sum of one signature too few, and the bit of a validator that did not sign.
fn with_foreign_signer(committee: &LaneCommittee, parts: &BTreeMap<u8, BlsSignature>) -> Option<PaymentCertificate> {
    let signed: Vec<(u8, BlsSignature)> = parts.iter().map(|(validator, part)| (*validator, *part)).collect();
    let foreign = (0..committee.quorums().validators as u8).find(|validator| !parts.contains_key(validator))?;
    let mut sum = BlsAggregate::of(committee, &signed).ok()?;
    sum.signers[usize::from(foreign / 8)] |= 1 << (foreign % 8);
    (parts.len() + 1 == committee.quorums().certificate).then_some(PaymentCertificate::Aggregate(sum))
}

/// A recipient of a certificate that knows only the ledger's public data.
#[derive(Default)]
pub(super) struct Stranger {
    /// Committees with group keys computed from a list of dealings.
    told: BTreeMap<HomeEpoch, LaneCommittee>,
}

impl Stranger {
    /// Verifies a certificate of a payment, and compares it with what validators really signed.
    pub fn check(
        &mut self,
        lane: &LaneBridge,
        observed: &Observed,
        kind: StatementKind,
        body: &PaymentBody,
        certificate: &PaymentCertificate,
    ) -> Result<(), String> {
        let of = |what: String| format!("a certificate of payment {}: {what}", body.digest);
        let committee = self.committee(lane, body.payment.home).map_err(of)?;
        let claim = Claim { kind, owner: &body.payment.owner, digest: &body.digest };
        let verified = RootCache::new(0).verify_certificate(committee, &claim, certificate, &mut CheckBudget(u32::MAX));
        verified.map_err(|refusal| of(refusal.to_string()))?;
        let named = match certificate {
            PaymentCertificate::Aggregate(sum) => sum.members(committee).map_err(|refusal| of(refusal.to_string()))?,
            _ => Vec::new(),
        };
        observed.check_signers(kind, &body.digest, &named).map_err(of)
    }

    fn committee(&mut self, lane: &LaneBridge, home: HomeEpoch) -> Result<&LaneCommittee, String> {
        Ok(match self.told.entry(home) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(committee_of(lane, home)?),
        })
    }
}

/// The committee of a home, with its group key computed from the dealings that the ledger lists.
fn committee_of(lane: &LaneBridge, home: HomeEpoch) -> Result<LaneCommittee, String> {
    let committee = lane.committee(home).ok_or("its committee is no longer known")?.clone();
    match lane.bridge().board_bytes(home).filter(|_| committee.group().is_ok()) {
        Some(board) => with_told_board(committee, &board).map_err(|refusal| refusal.to_string()),
        None => Ok(committee),
    }
}
