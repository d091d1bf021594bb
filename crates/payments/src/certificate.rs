//! Answers of validators, the certificates made of them, and the cache of verified roots.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::LazyLock;

use primitives::{Digest, PublicKey, Signature};

use crate::layout::Reader;
use crate::merkle::{self, Family, LEAVES_MAX};
use crate::{
    BlsAggregate, BlsSignature, HomeEpoch, LaneCommittee, LaneRefusal, RootHeader, SharedCertificate, StatementKind,
};

const CACHE_CONTEXT: &str = "walras 2026 lane verified root v1";

/// One validator's signature on one digest: the signature of a root and the path to it. Under the naive scheme the
/// tree has one leaf and the path is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneAnswer {
    /// The signer's index.
    pub validator: u8,
    /// Number of leaves of its tree.
    pub size: u32,
    /// The index of the digest in it.
    pub index: u32,
    /// Length of the signer's log when it closed the tree.
    pub position: u64,
    /// Signature on the bytes of the [`RootHeader`].
    pub signature: Signature,
    /// Siblings from the leaf to the root.
    pub path: Vec<Digest>,
}

impl LaneAnswer {
    /// Writes its layout.
    pub fn write(&self, to: &mut Vec<u8>) {
        to.push(self.validator);
        to.extend(self.size.to_le_bytes());
        to.extend(self.index.to_le_bytes());
        to.extend(self.position.to_le_bytes());
        to.extend(self.signature.0);
        self.path.iter().for_each(|digest| to.extend(digest.0));
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<LaneAnswer, LaneRefusal> {
        let (validator, size, index) = (reader.u8()?, reader.u32()?, reader.u32()?);
        let (position, signature) = (reader.u64()?, reader.signature()?);
        let length = merkle::path_length(size as usize, index as usize).ok_or(LaneRefusal::WrongPath)?;
        let path = (0..length).map(|_| reader.digest()).collect::<Result<_, _>>()?;
        Ok(LaneAnswer { validator, size, index, position, signature, path })
    }

    /// Parses an answer that fills `bytes`.
    ///
    /// # Errors
    /// [`LaneRefusal::Malformed`] or [`LaneRefusal::WrongPath`] for anything that [`LaneAnswer::write`] does not write.
    pub fn parse(bytes: &[u8]) -> Result<LaneAnswer, LaneRefusal> {
        let mut reader = Reader::new(bytes);
        let answer = LaneAnswer::read(&mut reader)?;
        reader.end()?;
        Ok(answer)
    }

    /// The header that the validator must have signed for this to be its answer. The verifier computes network,
    /// epoch, kind and shard itself, so that a signature of another kind or place is invalid.
    ///
    /// # Errors
    /// [`LaneRefusal::WrongPath`] or [`LaneRefusal::WrongSigners`] if no such header exists.
    pub fn header(&self, committee: &LaneCommittee, claim: &Claim<'_>) -> Result<RootHeader, LaneRefusal> {
        let leaf = merkle::leaf(Family::Signed, &claim.digest.0);
        let (size, index) = (self.size as usize, self.index as usize);
        let root = merkle::root_of(Family::Signed, leaf, size, index, &self.path).ok_or(LaneRefusal::WrongPath)?;
        Ok(RootHeader {
            network: committee.network(),
            epoch: committee.epoch(),
            validator: self.validator,
            shard: committee.shard_of(self.validator, claim.owner)?,
            kind: claim.kind,
            size: self.size,
            position: self.position,
            root,
        })
    }
}

/// The claimed subject of answers.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// Confirmation or acknowledgement.
    pub kind: StatementKind,
    /// The owner of the payment's inputs, which determines the shard.
    pub owner: &'a PublicKey,
    /// The payment's digest.
    pub digest: &'a Digest,
}

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

    /// The smallest part of it that proves that one of its signers signed; used for evidence.
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

/// The cost of verifying an aggregated BLS signature, in verifications of ed25519 signatures.
pub const AGGREGATE_COST: u32 = 24;

/// The remaining number of costly checks: verifications of roots that are not cached, and reads of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckBudget(pub u32);

impl CheckBudget {
    pub(crate) fn spend(&mut self, checks: u32) -> Result<(), LaneRefusal> {
        self.0 = self.0.checked_sub(checks).ok_or(LaneRefusal::Busy)?;
        Ok(())
    }
}

/// Roots whose signatures were verified, a bounded number for each validator and epoch, so that a Byzantine validator
/// can evict only its own. Trees of one leaf are not kept: their root does not occur again.
#[derive(Clone, Debug)]
pub struct RootCache {
    per_validator: usize,
    verified: HashMap<(HomeEpoch, u8), Recent>,
    highest: HashMap<(HomeEpoch, u8, u16), (RootHeader, Signature)>,
}

#[derive(Clone, Debug, Default)]
struct Recent {
    order: VecDeque<Digest>,
    keys: HashSet<Digest>,
}

impl RootCache {
    /// A cache of at most `per_validator` roots for each validator and epoch.
    pub fn new(per_validator: usize) -> RootCache {
        RootCache { per_validator, verified: HashMap::new(), highest: HashMap::new() }
    }

    /// The number of roots.
    pub fn len(&self) -> usize {
        self.verified.values().map(|recent| recent.order.len()).sum()
    }

    /// Whether it has no roots.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The verified root of this shard with the highest log position. A validator that starts asks its peers for it.
    pub fn highest(&self, epoch: HomeEpoch, validator: u8, shard: u16) -> Option<&(RootHeader, Signature)> {
        self.highest.get(&(epoch, validator, shard))
    }

    /// Verifies one answer. Whether a root is cached changes the cost, never the result.
    ///
    /// # Errors
    /// The first fault found, or [`LaneRefusal::Busy`] if the budget does not suffice.
    pub fn verify(
        &mut self,
        committee: &LaneCommittee,
        claim: &Claim<'_>,
        answer: &LaneAnswer,
        budget: &mut CheckBudget,
    ) -> Result<(), LaneRefusal> {
        self.verify_header(committee, answer.header(committee, claim)?, answer.signature, budget)
    }

    /// Verifies the signature of a header.
    ///
    /// # Errors
    /// As for [`RootCache::verify`].
    pub fn verify_header(
        &mut self,
        committee: &LaneCommittee,
        header: RootHeader,
        signature: Signature,
        budget: &mut CheckBudget,
    ) -> Result<(), LaneRefusal> {
        let bytes = header.bytes();
        // The key covers all signed bytes and the signature, so that an invalid signature on a cached root is
        // refused.
        static CACHE_KEY: LazyLock<[u8; 32]> = LazyLock::new(|| blake3::derive_key(CACHE_CONTEXT, &[]));
        let mut hasher = blake3::Hasher::new_keyed(&CACHE_KEY);
        let key = Digest(*hasher.update(&bytes).update(&signature.0).finalize().as_bytes());
        if self.verified.get(&(header.epoch, header.validator)).is_some_and(|recent| recent.keys.contains(&key)) {
            return Ok(());
        }
        budget.spend(1)?;
        if !committee.key(header.validator, header.shard)?.verify(&bytes, &signature) {
            return Err(LaneRefusal::WrongSignature(header.validator));
        }
        self.keep(header, signature, key);
        Ok(())
    }

    fn keep(&mut self, header: RootHeader, signature: Signature, key: Digest) {
        let place = (header.epoch, header.validator, header.shard);
        let highest = self.highest.entry(place).or_insert((header, signature));
        if highest.0.position < header.position {
            *highest = (header, signature);
        }
        if self.per_validator == 0 || header.size == 1 {
            return;
        }
        let recent = self.verified.entry((header.epoch, header.validator)).or_default();
        if recent.order.len() == self.per_validator
            && let Some(oldest) = recent.order.pop_front()
        {
            recent.keys.remove(&oldest);
        }
        recent.order.push_back(key);
        recent.keys.insert(key);
    }

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
                group.verify(committee, claim, signature)
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

/// Measured costs of one hash, one signature and one verification, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemeCosts {
    /// One hash of a node: c_h.
    pub hash: u32,
    /// One signature: c_s.
    pub sign: u32,
    /// One verification: c_v.
    pub verify: u32,
}

impl SchemeCosts {
    /// The cost of one payment under the Merkle scheme with 2^`height` leaves, times 2^`height`: the paper's C_merkle.
    fn merkle_times_leaves(&self, quorum: usize, height: u32) -> u128 {
        let [hash, sign, verify, q] = [self.hash.into(), self.sign.into(), self.verify.into(), quorum as u128];
        ((u128::from(height) * q * hash + 2 * hash) << height) + q * verify + sign
    }

    /// The number of leaves, a power of two, at which a payment costs least (§3.3). The paper's closed formula is the
    /// minimum over real numbers; this is the exact one over the trees that exist.
    pub fn best_leaves(&self, quorum: usize) -> usize {
        let top = LEAVES_MAX.ilog2();
        // Each cost is scaled to 2^top leaves, so that integers compare without division.
        let cost = |height: &u32| self.merkle_times_leaves(quorum, *height) << (top - height);
        1 << (0..=top).min_by_key(cost).expect("the range is not empty")
    }

    /// The real minimum of the paper: N = (q c_v + c_s) / (q c_h) · ln 2.
    pub fn optimum(&self, quorum: usize) -> f64 {
        let [hash, sign, verify, q] = [self.hash.into(), self.sign.into(), self.verify.into(), quorum as f64];
        (q * verify + sign) / (q * hash) * std::f64::consts::LN_2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_tree_is_the_papers_and_that_of_this_machine() {
        let paper = SchemeCosts { hash: 1, sign: 63, verify: 107 };
        assert!((paper.optimum(7) - 80.4).abs() < 0.05);
        assert!([64, 128].contains(&paper.best_leaves(7)));
        let here = SchemeCosts { hash: 97, sign: 23_500, verify: 51_000 };
        assert!([256, 512].contains(&here.best_leaves(3)));
    }

    #[test]
    fn extreme_costs_make_a_tree_within_bounds() {
        for (hash, sign, verify) in [(0, 0, 0), (u32::MAX, 0, 0), (0, u32::MAX, u32::MAX), (u32::MAX, 1, u32::MAX)] {
            for quorum in [1, 171] {
                assert!((1..=LEAVES_MAX).contains(&SchemeCosts { hash, sign, verify }.best_leaves(quorum)));
            }
        }
    }
}
