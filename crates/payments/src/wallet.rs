//! The client's side, as pure functions: build a payment, collect answers, verify receipts offline.

use std::collections::BTreeMap;

use primitives::{Digest, SecretKey, Signature};

use crate::layout::Reader;
use crate::request::{PaidProof, verify_claim};
use crate::{
    BlsAggregate, BlsSignature, CheckBudget, Claim, HomeEpoch, LaneAnswer, LaneCommittee, LaneRefusal, LaneRules,
    Output, OutputId, OutputProof, Payment, PaymentCertificate, PaymentSummary, PaymentView, RootCache, SpentOutput,
    StatementKind, owner_message, settle_request, spend_request,
};

/// An output that a wallet can spend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding {
    /// Its id.
    pub id: OutputId,
    /// The output.
    pub output: Output,
    /// The proof that it exists.
    pub proof: OutputProof,
}

/// A payment with its owner's signature. The wallet syncs `request` to its own disk before it sends it, and repeats
/// exactly these bytes: two payments of one output freeze it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedPayment {
    /// The payment's encoding.
    pub payment: Vec<u8>,
    /// The digest that validators sign.
    pub digest: Digest,
    /// The owner's signature.
    pub signature: Signature,
    /// The bytes sent to the owner's shard of each validator.
    pub request: Vec<u8>,
}

/// Builds and signs a payment that spends `holdings` whole. Change is an output like any other.
///
/// # Errors
/// The refusal that a validator would return.
pub fn build_payment(
    rules: &LaneRules,
    key: &SecretKey,
    home: HomeEpoch,
    into: HomeEpoch,
    mut holdings: Vec<Holding>,
    outputs: Vec<Output>,
) -> Result<SignedPayment, LaneRefusal> {
    holdings.sort_by_key(|holding| holding.id);
    let spent =
        |holding: &Holding| SpentOutput { id: holding.id, asset: holding.output.asset, amount: holding.output.amount };
    let inputs = holdings.iter().map(spent).collect();
    let payment = Payment { network: rules.network, home, into, owner: key.public(), inputs, outputs }.encode();
    let view = PaymentView::parse(&payment)?;
    view.check(rules)?;
    let digest = view.digest();
    let signature = key.sign(&owner_message(&rules.network, home, &digest));
    let proofs: Vec<OutputProof> = holdings.into_iter().map(|holding| holding.proof).collect();
    let request = spend_request(&payment, &signature, &proofs);
    Ok(SignedPayment { payment, digest, signature, request })
}

/// Collects answers to one payment until there is a quorum. An answer that does not verify is refused and changes
/// nothing.
#[derive(Clone, Debug)]
pub struct AnswerCollector {
    kind: StatementKind,
    summary: PaymentSummary,
    answers: BTreeMap<u8, LaneAnswer>,
}

impl AnswerCollector {
    /// A collector of confirmations or acknowledgements of a payment.
    pub fn new(kind: StatementKind, summary: PaymentSummary) -> AnswerCollector {
        AnswerCollector { kind, summary, answers: BTreeMap::new() }
    }

    /// Adds an answer; returns the certificate once there are enough. `roots` may be shared by many collectors.
    ///
    /// # Errors
    /// The reason why the answer does not count.
    pub fn add(
        &mut self,
        committee: &LaneCommittee,
        roots: &mut RootCache,
        answer: LaneAnswer,
    ) -> Result<Option<PaymentCertificate>, LaneRefusal> {
        let digest = self.summary.digest(&committee.network());
        let claim = Claim { kind: self.kind, owner: &self.summary.owner, digest: &digest };
        roots.verify(committee, &claim, &answer, &mut CheckBudget(1))?;
        self.answers.insert(answer.validator, answer);
        let needed = committee.quorums().certificate;
        let enough = self.answers.len() >= needed;
        Ok(enough.then(|| PaymentCertificate::Answers(self.answers.values().take(needed).cloned().collect())))
    }
}

/// Collects BLS signatures on one payment until there is a quorum: of validators' own keys, or of their shares of the
/// group's key.
#[derive(Clone, Debug)]
pub struct BlsCollector {
    kind: StatementKind,
    summary: PaymentSummary,
    /// Whether these are signatures of shares, each verified, or of own keys.
    of_shares: bool,
    parts: BTreeMap<u8, BlsSignature>,
}

impl BlsCollector {
    /// A collector of confirmations or acknowledgements of a payment, signed with validators' own keys.
    pub fn new(kind: StatementKind, summary: PaymentSummary) -> BlsCollector {
        BlsCollector { kind, summary, of_shares: false, parts: BTreeMap::new() }
    }

    /// A collector of those signed with shares of the group's key.
    pub fn of_shares(kind: StatementKind, summary: PaymentSummary) -> BlsCollector {
        BlsCollector { of_shares: true, ..BlsCollector::new(kind, summary) }
    }

    /// Whether a validator's signature is present, and was not found wrong.
    pub fn has(&self, validator: u8) -> bool {
        self.parts.contains_key(&validator)
    }

    /// Adds a signature; returns the certificate once there are q and the result verifies. Signatures of shares are
    /// verified when they arrive, the others one by one only if their sum does not verify; wrong ones are dropped.
    pub fn add(
        &mut self,
        committee: &LaneCommittee,
        validator: u8,
        signature: BlsSignature,
    ) -> Option<PaymentCertificate> {
        let digest = self.summary.digest(&committee.network());
        let claim = Claim { kind: self.kind, owner: &self.summary.owner, digest: &digest };
        if self.of_shares {
            let group = committee.group().ok()?;
            group.verify_share(&committee.home(), &claim, validator, &signature).ok()?;
            self.parts.insert(validator, signature);
            let shares: Vec<(u8, BlsSignature)> = self.parts.iter().map(|(v, part)| (*v, *part)).collect();
            return group.combine(&committee.home(), &claim, &shares).ok().map(PaymentCertificate::Threshold);
        }
        if usize::from(validator) >= committee.quorums().validators {
            return None;
        }
        self.parts.insert(validator, signature);
        if self.parts.len() < committee.quorums().certificate {
            return None;
        }
        let parts: Vec<(u8, BlsSignature)> = self.parts.iter().map(|(v, part)| (*v, *part)).collect();
        let sum = BlsAggregate::of(committee, &parts);
        if let Some(sum) = sum.ok().filter(|sum| sum.verify(committee, &claim) == Ok(())) {
            return Some(PaymentCertificate::Aggregate(sum));
        }
        self.parts.retain(|validator, part| {
            let shard = committee.shard_of(*validator, claim.owner);
            let key = shard.and_then(|shard| committee.bls_key(*validator, shard));
            key.is_ok_and(|key| key.verify(&committee.network(), committee.epoch(), claim.kind, &digest, part))
        });
        None
    }
}

/// Proof for a recipient that no other payment of this money can be confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FastReceipt {
    /// The paid output.
    pub output: Output,
    /// The payment, and the validators that confirmed it.
    pub proof: PaidProof,
}

impl FastReceipt {
    /// The receipt of one output of a confirmed payment; `None` if the payment has no such output.
    pub fn of(payment: &PaymentView<'_>, index: u8, certificate: PaymentCertificate) -> Option<FastReceipt> {
        let output = payment.outputs().nth(index.into())?;
        let path = payment.output_path(index)?;
        Some(FastReceipt { output, proof: PaidProof { summary: payment.summary(), index, path, certificate } })
    }

    /// Verifies it with only the committee's keys.
    ///
    /// # Errors
    /// The first fault found.
    pub fn verify(&self, committee: &LaneCommittee, roots: &mut RootCache) -> Result<Holding, LaneRefusal> {
        let id = self.proof.id_of(&committee.network(), &self.output)?;
        self.proof.verify(committee, roots, &mut CheckBudget(u32::MAX))?;
        Ok(Holding { id, output: self.output, proof: OutputProof::Payment(Box::new(self.proof.clone())) })
    }

    /// The request that makes it a settled receipt.
    pub fn settle_request(&self) -> Vec<u8> {
        settle_request(&self.proof.summary, &self.proof.certificate)
    }

    /// Its layout, for files: `output 45 · proof`.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.output.write(&mut bytes);
        self.proof.write(&mut bytes);
        bytes
    }

    /// Parses a receipt that fills `bytes`.
    ///
    /// # Errors
    /// [`LaneRefusal::Malformed`] for anything that [`FastReceipt::encode`] does not write.
    pub fn parse(bytes: &[u8]) -> Result<FastReceipt, LaneRefusal> {
        let mut reader = Reader::new(bytes);
        let receipt = FastReceipt { output: Output::read(&mut reader)?, proof: PaidProof::read(&mut reader)? };
        reader.end()?;
        Ok(receipt)
    }
}

/// A fast receipt whose certificate q validators have durably acknowledged: it is final.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettledReceipt {
    /// The receipt.
    pub fast: FastReceipt,
    /// The certificate of acknowledgements.
    pub acknowledgement: PaymentCertificate,
}

impl SettledReceipt {
    /// Verifies both certificates with only the committee's keys.
    ///
    /// # Errors
    /// The first fault found.
    pub fn verify(&self, committee: &LaneCommittee, roots: &mut RootCache) -> Result<Holding, LaneRefusal> {
        let holding = self.fast.verify(committee, roots)?;
        let (kind, budget) = (StatementKind::Acknowledgement, &mut CheckBudget(u32::MAX));
        verify_claim(committee, kind, &self.fast.proof.summary, &self.acknowledgement, roots, budget)?;
        Ok(holding)
    }
}
