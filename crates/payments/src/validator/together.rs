//! Verifies owners' signatures of many requests with one batch equation.
//!
//! A batch of 256 costs less than half of single checks. One invalid signature in it costs halving the batch, about
//! as much as single checks would; nothing else depends on how requests are grouped.

use std::collections::HashMap;

use primitives::{Digest, PublicKey, Signature, Signed, verify_all};

use super::{LaneAddress, LanePeer, LaneValidator};
use crate::request::{RequestView, SpendRequest};
use crate::{AnswerScheme, CheckBudget, LaneRefusal, owner_message};

/// An owner's signature on a payment.
struct OwnerSignature {
    owner: PublicKey,
    message: Vec<u8>,
    digest: Digest,
    signature: Signature,
    /// The bytes of payment and signature.
    signed: Vec<u8>,
}

/// A payment whose owner's signature was verified: neither it nor the digest is computed again.
#[derive(Clone, Copy, Debug)]
pub(super) struct CheckedPayment {
    digest: Digest,
    /// Whether the owner has signed it.
    holds: bool,
}

impl Signed for OwnerSignature {
    fn signature(&self) -> (PublicKey, Signature) {
        (self.owner, self.signature)
    }

    fn signed_bytes(&self) -> Vec<u8> {
        self.message.clone()
    }
}

impl LaneValidator {
    /// Records which of these next requests their owners have signed: each step is cheaper then, and has the same
    /// effects. Requests that would be refused for a cheaper reason are left out, and so are likely retries, and what
    /// an address sends beyond its budget: all of it may be false. No signature is verified a second time.
    pub fn verify_together<'a>(&mut self, requests: impl Iterator<Item = (LanePeer, &'a [u8])>) {
        self.signed.clear();
        if self.muted.is_some() {
            return;
        }
        let mut taken: HashMap<LaneAddress, u32> = HashMap::new();
        let mut fits = |peer: LanePeer, item: &OwnerSignature| {
            let address = self.address_of(peer);
            let taken = taken.entry(address).or_default();
            *taken += 1;
            *taken <= self.budgets.allowed(address, &item.owner)
        };
        let items = requests.filter_map(|(peer, request)| self.to_verify(request).filter(|item| fits(peer, item)));
        let items: Vec<OwnerSignature> = items.collect();
        if items.len() < 2 {
            return;
        }
        self.signatures_checked += items.len() as u64;
        let valid = verify_all(&items).into_iter().zip(items);
        let checked = |(holds, OwnerSignature { digest, signed, .. })| (signed, CheckedPayment { digest, holds });
        self.signed.extend(valid.map(checked));
    }

    fn to_verify(&self, request: &[u8]) -> Option<OwnerSignature> {
        let (_, request) = AnswerScheme::split(request).ok()?;
        let RequestView::Spend(SpendRequest { payment, signature, signed, proofs }) =
            RequestView::parse(request).ok()?
        else {
            return None;
        };
        let owner = payment.owner();
        payment.check(&self.settings.rules).ok()?;
        self.check_place(payment.home(), &owner).ok()?;
        let first = payment.inputs().next()?;
        if self.phase().sends_anyone_home() || !self.spent.candidates(&first.id.0).is_empty() {
            return None;
        }
        if proofs.begin_with_ledger() && self.known_output(&first.id, || payment.is_exit()).is_none() {
            return None;
        }
        let digest = payment.digest();
        let message = owner_message(&self.settings.rules.network, payment.home(), &digest);
        Some(OwnerSignature { owner, message, digest, signature, signed: signed.to_vec() })
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
