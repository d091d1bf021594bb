//! Verifies owners' signatures of many requests with one batch equation.
//!
//! A batch of 256 costs less than half of single checks. One invalid signature in it costs halving the batch, about
//! as much as single checks would; nothing else depends on how requests are grouped.

use primitives::{Digest, PublicKey, Signature, Signed, verify_all};

use super::LaneValidator;
use crate::request::RequestView;
use crate::{AnswerScheme, PaymentView, owner_message};

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
    /// effects. Requests that would be refused for a cheaper reason are left out, and so are likely retries.
    pub fn verify_together<'a>(&mut self, requests: impl Iterator<Item = &'a [u8]>) {
        self.signed.clear();
        if self.muted.is_some() {
            return;
        }
        let items: Vec<OwnerSignature> = requests.filter_map(|request| self.to_verify(request)).collect();
        if items.len() < 2 {
            return;
        }
        let valid = verify_all(&items).into_iter().zip(items);
        let signed = valid.filter(|(is_valid, _)| *is_valid).map(|(_, item)| (item.digest, item.signature));
        self.signed.extend(signed);
    }

    fn to_verify(&self, request: &[u8]) -> Option<OwnerSignature> {
        let (_, request) = AnswerScheme::split(request).ok()?;
        let RequestView::Spend { payment, signature, .. } = RequestView::parse(request).ok()? else { return None };
        let owner = payment.owner();
        payment.check(&self.settings.rules).ok()?;
        self.check_place(payment.home(), &owner).ok()?;
        let first = payment.inputs().next()?;
        if self.phase().sends_anyone_home() || !self.spent.candidates(&first.id.0).is_empty() {
            return None;
        }
        let digest = payment.digest();
        let message = owner_message(&self.settings.rules.network, payment.home(), &digest);
        Some(OwnerSignature { owner, message, digest, signature })
    }

    /// Whether the owner of a payment has signed it.
    pub(super) fn is_signed(&self, payment: &PaymentView<'_>, digest: &Digest, signature: &Signature) -> bool {
        let verify = || {
            let message = owner_message(&self.settings.rules.network, payment.home(), digest);
            payment.owner().verify(&message, signature)
        };
        self.signed.contains(&(*digest, *signature)) || verify()
    }
}
