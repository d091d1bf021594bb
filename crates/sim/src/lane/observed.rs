//! The knowledge of an observer of every signature, and the invariants over it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use payments::{OutputId, PaymentBody, Quorums, StatementKind};
use primitives::Digest;

use super::MEMBERS;

/// Every signature that was ever made, wherever it was sent.
#[derive(Default)]
pub(super) struct Observed {
    pub bodies: BTreeMap<Digest, Arc<PaymentBody>>,
    confirmed: BTreeMap<Digest, BTreeSet<u8>>,
    acknowledged: BTreeMap<Digest, BTreeSet<u8>>,
    pub freed: BTreeSet<OutputId>,
    pub lapsed: BTreeSet<OutputId>,
}

impl Observed {
    pub fn note(&mut self, kind: StatementKind, digest: Digest, validator: u8) {
        let signers = match kind {
            StatementKind::Confirmation => &mut self.confirmed,
            StatementKind::Acknowledgement => &mut self.acknowledged,
            _ => return,
        };
        signers.entry(digest).or_default().insert(validator);
    }

    /// Whether a quorum can have signed: the Byzantine validator signs everything.
    fn is_quorum(signers: Option<&BTreeSet<u8>>) -> bool {
        let honest = signers.map_or(0, |signers| signers.iter().filter(|index| **index + 1 < MEMBERS).count());
        honest + 1 >= Quorums::new(MEMBERS.into()).certificate
    }

    pub fn is_settled(&self, digest: &Digest) -> bool {
        Observed::is_quorum(self.confirmed.get(digest)) && Observed::is_quorum(self.acknowledged.get(digest))
    }

    /// Whether a payment spends an output that can be certified.
    pub fn is_spent(&self, output: &OutputId) -> bool {
        self.certifiable().any(|body| body.input_ids().any(|input| input == *output))
    }

    /// Whether a payment that can be certified creates an output.
    pub fn is_created(&self, output: &OutputId) -> bool {
        self.certifiable().any(|body| body.output_ids().any(|created| created == *output))
    }

    fn certifiable(&self) -> impl Iterator<Item = &Arc<PaymentBody>> {
        let can_be = |digest: &Digest| Observed::is_quorum(self.confirmed.get(digest));
        self.bodies.iter().filter(move |(digest, _)| can_be(digest)).map(|(_, body)| body)
    }

    /// The invariants over the signers of a certificate; `named` are those of a bitmap.
    pub fn check_signers(&self, kind: StatementKind, digest: &Digest, named: &[u8]) -> Result<(), String> {
        let signers = match kind {
            StatementKind::Acknowledgement => self.acknowledged.get(digest),
            _ => self.confirmed.get(digest),
        };
        if !Observed::is_quorum(signers) {
            return Err("no quorum has signed it".into());
        }
        let is_foreign = |member: &&u8| **member + 1 < MEMBERS && signers.is_none_or(|of| !of.contains(*member));
        named.iter().find(is_foreign).map_or(Ok(()), |member| Err(format!("validator {member} did not sign it")))
    }

    pub fn check(&self) -> Result<(), String> {
        let mut spent: BTreeMap<OutputId, Digest> = BTreeMap::new();
        for (digest, body) in &self.bodies {
            if !Observed::is_quorum(self.confirmed.get(digest)) {
                continue;
            }
            // Once an input has lapsed, a payment is void although it can be certified: its other inputs are freed.
            let is_void = body.input_ids().any(|input| self.lapsed.contains(&input));
            for input in body.input_ids() {
                if let Some(other) = spent.insert(input, *digest) {
                    return Err(format!("output {input} is certified twice, by {other} and {digest}"));
                }
                if self.freed.contains(&input) && !is_void && !self.is_exit_of_case(body) {
                    return Err(format!("output {input} was freed, but payment {digest} of it can be certified"));
                }
                if self.lapsed.contains(&input) && self.is_settled(digest) && !self.is_exit_of_case(body) {
                    return Err(format!("output {input} lapsed, but payment {digest} of it is settled"));
                }
            }
        }
        Ok(())
    }

    /// The exit of a contested output is what a verdict credits: its certificate pays nothing a second time.
    fn is_exit_of_case(&self, body: &PaymentBody) -> bool {
        body.payment.is_exit()
    }
}
