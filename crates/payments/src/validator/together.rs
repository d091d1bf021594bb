//! Verifies owners' signatures of many requests with one batch equation.
//!
//! A batch of 256 costs less than half of single checks. One invalid signature in it costs halving the batch, about
//! as much as single checks would; nothing else depends on how requests are grouped.

use std::collections::HashMap;

use primitives::{Digest, PublicKey, Signature, Signed, verify_all};

use super::{LaneAddress, LanePeer, LaneValidator};
use crate::request::RequestView;
use crate::{AnswerScheme, CheckBudget, LaneRefusal, PaymentView, owner_message};

/// An owner's signature on a payment.
struct OwnerSignature {
    owner: PublicKey,
    message: Vec<u8>,
    digest: Digest,
    signature: Signature,
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
        self.signed.extend(valid.map(|(is_valid, item)| ((item.digest, item.signature), is_valid)));
    }

    fn to_verify(&self, request: &[u8]) -> Option<OwnerSignature> {
        let (_, request) = AnswerScheme::split(request).ok()?;
        let RequestView::Spend { payment, signature, proofs } = RequestView::parse(request).ok()? else { return None };
        let owner = payment.owner();
        payment.check(&self.settings.rules).ok()?;
        self.check_place(payment.home(), &owner).ok()?;
        let first = payment.inputs().next()?;
        if self.phase().sends_anyone_home() || !self.spent.candidates(&first.id.0).is_empty() {
            return None;
        }
        if proofs.begin_with_ledger() && self.known_output(&first.id, payment.is_exit()).is_none() {
            return None;
        }
        let digest = payment.digest();
        let message = owner_message(&self.settings.rules.network, payment.home(), &digest);
        Some(OwnerSignature { owner, message, digest, signature })
    }

    /// Checks that the owner of a payment has signed it, once. What does not hold costs a check.
    pub(super) fn check_signed(
        &mut self,
        payment: &PaymentView<'_>,
        digest: &Digest,
        signature: &Signature,
        budget: &mut CheckBudget,
    ) -> Result<(), LaneRefusal> {
        if budget.0 == 0 {
            return Err(LaneRefusal::Busy);
        }
        let holds = match self.signed.get(&(*digest, *signature)) {
            Some(holds) => *holds,
            None => {
                self.signatures_checked += 1;
                let message = owner_message(&self.settings.rules.network, payment.home(), digest);
                payment.owner().verify(&message, signature)
            }
        };
        if holds {
            return Ok(());
        }
        budget.spend(1)?;
        Err(LaneRefusal::WrongOwnerSignature)
    }
}
