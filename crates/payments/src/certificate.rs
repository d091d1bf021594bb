//! Certificates: answers of a quorum in one of their forms.

use crate::layout::Reader;
use crate::{
    AGGREGATE_COST, BlsAggregate, BlsSignature, CheckBudget, Claim, LaneAnswer, LaneCommittee, LaneRefusal, RootCache,
    RootHeader, SharedCertificate,
};

/// Proof that a quorum signed a claim. All forms count equally, and all rest on the same reservations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PaymentCertificate {
    /// Answers of exactly q distinct validators, by ascending index.
    Answers(Vec<LaneAnswer>),
    /// One aggregated BLS signature.
    Aggregate(BlsAggregate),
    /// One signature under the group's key.
    Threshold(BlsSignature),
    /// A certificate from a broker's shared tree.
    Shared(Box<SharedCertificate>),
}

impl PaymentCertificate {
    /// The cost of verifying it, in verifications of ed25519 signatures.
    pub fn cost(&self) -> u32 {
        match self {
            PaymentCertificate::Answers(answers) => answers.len() as u32,
            PaymentCertificate::Aggregate(_) | PaymentCertificate::Threshold(_) => AGGREGATE_COST,
            PaymentCertificate::Shared(shared) => match shared.as_ref() {
                SharedCertificate::Answers(_, answers) => answers.len() as u32,
                SharedCertificate::Aggregate(..) => AGGREGATE_COST,
            },
        }
    }

    /// The validators that it names as signers. Nothing is verified.
    pub(crate) fn signers(&self) -> Vec<u8> {
        match self {
            PaymentCertificate::Answers(answers) => answers.iter().map(|answer| answer.validator).collect(),
            PaymentCertificate::Aggregate(aggregate) => aggregate.named(),
            PaymentCertificate::Threshold(_) => Vec::new(),
            PaymentCertificate::Shared(shared) => shared.signers(),
        }
    }

    /// The smallest part of the certificate from which it follows that this validator signed. Evidence contains it.
    pub(crate) fn of_signer(&self, validator: u8) -> Option<PaymentCertificate> {
        match self {
            PaymentCertificate::Answers(answers) => {
                let answer = answers.iter().find(|answer| answer.validator == validator)?;
                Some(PaymentCertificate::Answers(vec![answer.clone()]))
            }
            PaymentCertificate::Aggregate(_) => Some(self.clone()),
            PaymentCertificate::Threshold(_) => None,
            PaymentCertificate::Shared(shared) => {
                Some(PaymentCertificate::Shared(Box::new(shared.of_signer(validator)?)))
            }
        }
    }

    /// Verifies that one validator signed the claim, whoever else did. Evidence needs no quorum.
    ///
    /// # Errors
    /// [`LaneRefusal::WrongSigners`] if it is more or less than the smallest part that proves this; otherwise as for
    /// [`RootCache::verify_certificate`].
    pub(crate) fn verify_signer(
        &self,
        committee: &LaneCommittee,
        claim: &Claim<'_>,
        validator: u8,
        roots: &mut RootCache,
        budget: &mut CheckBudget,
    ) -> Result<(), LaneRefusal> {
        match self {
            PaymentCertificate::Answers(answers) => match &answers[..] {
                [answer] if answer.validator == validator => roots.verify(committee, claim, answer, budget),
                _ => Err(LaneRefusal::WrongSigners { needed: 1 }),
            },
            PaymentCertificate::Aggregate(aggregate) => aggregate.verify_signer(committee, claim, validator, budget),
            PaymentCertificate::Threshold(_) => Err(LaneRefusal::WrongSigners { needed: 1 }),
            PaymentCertificate::Shared(shared) => shared.verify_signer(committee, claim, validator, roots, budget),
        }
    }

    /// Writes its layout.
    pub fn write(&self, to: &mut Vec<u8>) {
        match self {
            PaymentCertificate::Answers(answers) => {
                to.push(u8::try_from(answers.len()).expect("q of at most 256 validators is at most 171"));
                answers.iter().for_each(|answer| answer.write(to));
            }
            PaymentCertificate::Aggregate(aggregate) => {
                to.extend([0, 1]);
                aggregate.write(to);
            }
            PaymentCertificate::Threshold(signature) => {
                to.extend([0, 4]);
                to.extend(signature.0);
            }
            PaymentCertificate::Shared(shared) => {
                to.push(0);
                shared.write(to);
            }
        }
    }

    /// Parses a certificate that fills `bytes`.
    ///
    /// # Errors
    /// [`LaneRefusal::Malformed`] or [`LaneRefusal::WrongPath`] for anything that [`PaymentCertificate::write`] does
    /// not write.
    pub fn parse(bytes: &[u8]) -> Result<PaymentCertificate, LaneRefusal> {
        let mut reader = Reader::new(bytes);
        let certificate = PaymentCertificate::read(&mut reader)?;
        reader.end()?;
        Ok(certificate)
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<PaymentCertificate, LaneRefusal> {
        let count = reader.u8()?;
        if count > 0 {
            let answers = (0..count).map(|_| LaneAnswer::read(reader)).collect::<Result<_, _>>();
            return answers.map(PaymentCertificate::Answers);
        }
        match reader.u8()? {
            1 => BlsAggregate::read(reader).map(PaymentCertificate::Aggregate),
            kind @ (2 | 3) => SharedCertificate::read(kind, reader).map(Box::new).map(PaymentCertificate::Shared),
            4 => reader.array().map(|bytes| PaymentCertificate::Threshold(BlsSignature(bytes))),
            _ => Err(LaneRefusal::Malformed("a certificate has one of five forms")),
        }
    }
}

fn check_signers(answers: &[LaneAnswer], committee: &LaneCommittee) -> Result<(), LaneRefusal> {
    let needed = committee.quorums().certificate;
    let ascend = answers.windows(2).all(|pair| pair[0].validator < pair[1].validator);
    if answers.len() == needed && ascend { Ok(()) } else { Err(LaneRefusal::WrongSigners { needed }) }
}

impl RootCache {
    /// Verifies a certificate: signers first, then paths, then roots.
    ///
    /// # Errors
    /// The first fault found, or [`LaneRefusal::Busy`] if the budget does not suffice.
    pub fn verify_certificate(
        &mut self,
        committee: &LaneCommittee,
        claim: &Claim<'_>,
        certificate: &PaymentCertificate,
        budget: &mut CheckBudget,
    ) -> Result<(), LaneRefusal> {
        match certificate {
            PaymentCertificate::Answers(answers) => {
                check_signers(answers, committee)?;
                let header = |answer: &LaneAnswer| answer.header(committee, claim);
                let headers: Vec<RootHeader> = answers.iter().map(header).collect::<Result<_, _>>()?;
                let mut signed = headers.into_iter().zip(answers);
                signed.try_for_each(|(header, answer)| self.verify_header(committee, header, answer.signature, budget))
            }
            PaymentCertificate::Aggregate(aggregate) => self.verify_aggregate(committee, claim, aggregate, budget),
            PaymentCertificate::Threshold(signature) => {
                let group = committee.group()?;
                budget.spend(AGGREGATE_COST)?;
                group.verify(&committee.home(), claim, signature)
            }
            PaymentCertificate::Shared(shared) => shared.verify(committee, claim, self, budget),
        }
    }

    /// Verifies an aggregated signature. It is never cached, because it occurs only once.
    ///
    /// # Errors
    /// The first fault found, or [`LaneRefusal::Busy`] if the budget does not suffice.
    pub(crate) fn verify_aggregate(
        &mut self,
        committee: &LaneCommittee,
        claim: &Claim<'_>,
        aggregate: &BlsAggregate,
        budget: &mut CheckBudget,
    ) -> Result<(), LaneRefusal> {
        aggregate.members(committee)?;
        budget.spend(AGGREGATE_COST)?;
        aggregate.verify(committee, claim)
    }
}
