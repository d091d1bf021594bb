//! Verifies the signatures of many requests with one batch equation: those of owners, and those of validators on roots
//! that are not known.
//!
//! A batch of 256 costs less than half of single checks, and a sixth where few keys signed it, as with roots. One
//! invalid signature in it costs halving the batch, about as much as single checks would; nothing else depends on how
//! requests are grouped.

use std::collections::{HashMap, HashSet};

use primitives::{Digest, PublicKey, Signature, Signed, verify_all};

use super::{LaneAddress, LanePeer, LaneValidator};
use crate::request::{RequestView, ShownCertificate, SpendRequest};
use crate::{
    AnswerScheme, CheckBudget, Claim, HomeEpoch, LaneAnswer, LaneRefusal, OutputProof, PaymentCertificate, RootHeader,
    StatementKind, owner_message,
};

/// A signature to verify with others, and what is known once it is verified.
struct Check<T> {
    key: PublicKey,
    message: Vec<u8>,
    signature: Signature,
    of: T,
}

/// A payment whose owner's signature was verified: neither it nor the digest is computed again.
#[derive(Clone, Copy, Debug)]
pub(super) struct CheckedPayment {
    digest: Digest,
    /// Whether the owner has signed it.
    holds: bool,
}

/// A root that a request brought, and who pays for its check.
struct BroughtRoot {
    header: RootHeader,
    payer: (LaneAddress, PublicKey),
}

impl<T: Sync> Signed for Check<T> {
    fn signature(&self) -> (PublicKey, Signature) {
        (self.key, self.signature)
    }

    fn signed_bytes(&self) -> Vec<u8> {
        self.message.clone()
    }
}

/// The checks of each address in a batch.
#[derive(Default)]
struct Taken(HashMap<LaneAddress, u32>);

impl Taken {
    /// Takes as many checks more, if no more than `allowed` of its address are then taken.
    fn take(&mut self, address: LaneAddress, checks: usize, allowed: u32) -> bool {
        let taken = self.0.entry(address).or_default();
        *taken = taken.saturating_add(checks as u32);
        *taken <= allowed
    }
}

impl LaneValidator {
    /// Verifies what these next requests were signed with: each step is cheaper then, and has the same effects.
    /// Requests that would be refused for a cheaper reason are left out, and so are likely retries, and what an address
    /// sends beyond its budget: all of it may be false. No signature is verified a second time.
    ///
    /// Owners' signatures come first. Only where they hold are roots verified, and each root is charged: a step may
    /// fail before it gets there.
    pub fn verify_together<'a>(&mut self, requests: impl Iterator<Item = (LanePeer, &'a [u8])>) {
        self.signed.clear();
        self.roots.forget_batch();
        if self.muted.is_some() {
            return;
        }
        let parse = |(peer, request): (LanePeer, &'a [u8])| {
            let (_, request) = AnswerScheme::split(request).ok()?;
            Some((self.address_of(peer), RequestView::parse(request).ok()?))
        };
        let requests: Vec<(LaneAddress, RequestView<'a>)> = requests.filter_map(parse).collect();
        if requests.len() < 2 {
            return;
        }
        self.verify_owners(&requests);
        self.verify_roots(&requests);
    }

    fn verify_owners(&mut self, requests: &[(LaneAddress, RequestView<'_>)]) {
        let mut taken = Taken::default();
        let mut check = |(address, request): &(LaneAddress, RequestView<'_>)| {
            let RequestView::Spend(spend) = request else { return None };
            let check = self.to_verify(spend)?;
            taken.take(*address, 1, self.budgets.allowed(*address, &check.key)).then_some(check)
        };
        let checks: Vec<Check<(Digest, Vec<u8>)>> = requests.iter().filter_map(&mut check).collect();
        self.signatures_checked += checks.len() as u64;
        let checked = |(holds, Check { of: (digest, signed), .. })| (signed, CheckedPayment { digest, holds });
        self.signed.extend(verify_all(&checks).into_iter().zip(checks).map(checked));
    }

    fn verify_roots(&mut self, requests: &[(LaneAddress, RequestView<'_>)]) {
        let mut taken = Taken::default();
        // Payments of one tree show the same roots.
        let mut seen = HashSet::new();
        let mut checks = Vec::new();
        for (address, request) in requests {
            let brought = self.roots_of(request, *address, &seen).unwrap_or_default();
            let Some(payer) = brought.first().map(|check| check.of.payer) else { continue };
            if taken.take(*address, brought.len(), self.budgets.allowed(*address, &payer.1)) {
                seen.extend(brought.iter().map(|check| check.signature));
                checks.extend(brought);
            }
        }
        let valid = verify_all(&checks);
        for (Check { signature, of: BroughtRoot { header, payer: (address, owner) }, .. }, holds) in
            checks.into_iter().zip(valid)
        {
            self.budgets.charge(address, &owner, 1, holds);
            self.roots.remember(signature, header, holds);
        }
    }

    /// The roots that the certificates of a request rest on and that are not known.
    fn roots_of(
        &self,
        request: &RequestView<'_>,
        address: LaneAddress,
        seen: &HashSet<Signature>,
    ) -> Option<Vec<Check<BroughtRoot>>> {
        match request {
            RequestView::Spend(SpendRequest { payment, signed, proofs, .. }) => {
                self.signed.get(*signed).filter(|checked| checked.holds)?;
                let proofs = proofs.read(payment.inputs().count()).ok()?;
                let is_cold = |proof: &OutputProof| match proof {
                    OutputProof::Ledger => false,
                    OutputProof::Payment(proof) => self.is_cold(proof.summary.home, &proof.certificate, seen),
                };
                if !proofs.iter().any(is_cold) {
                    return None;
                }
                let parents = self.check_ids(payment, payment.is_exit(), &proofs).ok()?;
                let payer = (address, payment.owner());
                let mut all = Vec::new();
                for parent in parents {
                    self.take_roots(&parent, payer, seen, &mut all);
                }
                Some(all)
            }
            RequestView::Settle { summary, certificate } => {
                self.check_place(summary.home, &summary.owner).ok()?;
                if !self.is_cold(summary.home, certificate, seen) {
                    return None;
                }
                let shown = ShownCertificate::new(&self.settings.rules.network, summary, certificate);
                let mut all = Vec::new();
                self.take_roots(&shown, (address, summary.owner), seen, &mut all);
                Some(all)
            }
            RequestView::Batch(_) | RequestView::Spender { .. } => None,
        }
    }

    /// Whether a certificate has a root that is neither known nor in this batch.
    fn is_cold(&self, home: HomeEpoch, certificate: &PaymentCertificate, seen: &HashSet<Signature>) -> bool {
        let PaymentCertificate::Answers(answers) = certificate else { return false };
        answers.iter().any(|answer| self.is_new(home, answer, seen))
    }

    fn is_new(&self, home: HomeEpoch, answer: &LaneAnswer, seen: &HashSet<Signature>) -> bool {
        !seen.contains(&answer.signature) && self.roots.is_cold(home, answer.validator, &answer.signature)
    }

    fn take_roots(
        &self,
        shown: &ShownCertificate<'_>,
        payer: (LaneAddress, PublicKey),
        seen: &HashSet<Signature>,
        to: &mut Vec<Check<BroughtRoot>>,
    ) {
        let (PaymentCertificate::Answers(answers), Some(committee)) =
            (shown.certificate, self.settings.committee_of(shown.summary.home))
        else {
            return;
        };
        // Likely the log has a certificate of this payment, and no other is verified.
        if !self.certificates.candidates(&shown.digest.0).is_empty() {
            return;
        }
        let claim = Claim { kind: StatementKind::Confirmation, owner: &shown.summary.owner, digest: &shown.digest };
        let check = |answer: &LaneAnswer| {
            let header = answer.header(committee, &claim).ok()?;
            let key = committee.key(header.validator, header.shard).ok()?;
            let (message, signature) = (header.bytes(), answer.signature);
            Some(Check { key, message, signature, of: BroughtRoot { header, payer } })
        };
        to.extend(answers.iter().filter(|answer| self.is_new(shown.summary.home, answer, seen)).filter_map(check));
    }

    fn to_verify(&self, spend: &SpendRequest<'_>) -> Option<Check<(Digest, Vec<u8>)>> {
        let SpendRequest { payment, signature, signed, proofs } = spend;
        let key = payment.owner();
        payment.check(&self.settings.rules).ok()?;
        self.check_place(payment.home(), &key).ok()?;
        let first = payment.inputs().next()?;
        if self.phase().sends_anyone_home() || !self.spent.candidates(&first.id.0).is_empty() {
            return None;
        }
        if proofs.begin_with_ledger() && self.known_output(&first.id, || payment.is_exit()).is_none() {
            return None;
        }
        let digest = payment.digest();
        let message = owner_message(&self.settings.rules.network, payment.home(), &digest);
        Some(Check { key, message, signature: *signature, of: (digest, signed.to_vec()) })
    }

    /// The payment's digest.
    pub(super) fn digest_of(&self, spend: &SpendRequest<'_>) -> Digest {
        self.signed.get(spend.signed).map_or_else(|| spend.payment.digest(), |checked| checked.digest)
    }

    /// Checks that the owner of a payment has signed it, once. What does not hold costs a check.
    pub(super) fn check_signed(
        &mut self,
        spend: &SpendRequest<'_>,
        digest: &Digest,
        budget: &mut CheckBudget,
    ) -> Result<(), LaneRefusal> {
        if budget.0 == 0 {
            return Err(LaneRefusal::Busy);
        }
        let holds = match self.signed.get(spend.signed) {
            Some(checked) => checked.holds,
            None => {
                self.signatures_checked += 1;
                let message = owner_message(&self.settings.rules.network, spend.payment.home(), digest);
                spend.payment.owner().verify(&message, &spend.signature)
            }
        };
        if holds {
            return Ok(());
        }
        budget.spend(1)?;
        Err(LaneRefusal::WrongOwnerSignature)
    }
}
