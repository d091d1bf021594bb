//! Shared batch trees: an untrusted broker puts payments of many clients into one tree that all validators sign.
//!
//! A certificate of one payment is then one path and q root signatures, instead of q paths and q signatures. The
//! broker cannot forge, change or hide anything but its own service: the leaves are digests that owners signed, and
//! each validator signs the list of leaves that it does *not* confirm together with the root. All payments of a batch
//! belong to one shard of each validator.
//!
//! ```text
//! batch request   3 · count 2 · (length 4 · request)[]       each a request to confirm a payment
//! excluded        count 2 · place 2 each                     places ascend strictly
//! shared digest   H(root 32 · size 4 · excluded)             stands as the root in the signed header, kind 6
//! batch answer    validator 1 · position 8 · excluded · signature 64
//! certificate     0 · 2 · size 4 · index 4 · path 32 each · count 1 · answer[]      exactly q, validators ascend
//!                 0 · 3 · size 4 · index 4 · path 32 each · excluded · aggregate    the same list for all signers
//! ```

use primitives::merkle::{self, Family};
use primitives::{Digest, PublicKey, Signature};

use crate::layout::Reader;
use crate::{
    BlsAggregate, BlsSignature, CheckBudget, Claim, LaneCommittee, LaneRefusal, RootCache, RootHeader, StatementKind,
};

const SHARED_CONTEXT: &str = "walras 2026 lane shared tree v1";

/// The digest that a validator signs in place of the root of a shared tree.
pub fn shared_digest(root: &Digest, size: u32, excluded: &[u16]) -> Digest {
    let mut bytes = [&root.0[..], &size.to_le_bytes()].concat();
    write_excluded(excluded, &mut bytes);
    Digest::of(SHARED_CONTEXT, &bytes)
}

fn write_excluded(excluded: &[u16], to: &mut Vec<u8>) {
    to.extend((excluded.len() as u16).to_le_bytes());
    excluded.iter().for_each(|place| to.extend(place.to_le_bytes()));
}

fn read_excluded(reader: &mut Reader<'_>) -> Result<Vec<u16>, LaneRefusal> {
    let count = u16::from_le_bytes(reader.array()?);
    let excluded: Vec<u16> =
        (0..count).map(|_| reader.array().map(u16::from_le_bytes)).collect::<Result<_, LaneRefusal>>()?;
    let ascend = excluded.windows(2).all(|pair| pair[0] < pair[1]);
    if ascend { Ok(excluded) } else { Err(LaneRefusal::Malformed("excluded places do not ascend strictly")) }
}

/// How a validator signs a shared tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedSignature {
    /// ed25519, on the header.
    Lane(Signature),
    /// BLS, on the shared digest.
    Bls(BlsSignature),
}

/// One validator's answer to a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchAnswer {
    /// The signer's index.
    pub validator: u8,
    /// Length of the signer's log when it closed the batch.
    pub position: u64,
    /// Leaves that it does not confirm, ascending.
    pub excluded: Vec<u16>,
    /// The signature.
    pub signature: SharedSignature,
}

impl BatchAnswer {
    /// Writes it: `scheme 1 (2 ed25519, 3 BLS) · validator 1 · position 8 · excluded · signature`.
    pub fn write(&self, to: &mut Vec<u8>) {
        to.push(if matches!(self.signature, SharedSignature::Lane(_)) { 2 } else { 3 });
        to.push(self.validator);
        to.extend(self.position.to_le_bytes());
        write_excluded(&self.excluded, to);
        match &self.signature {
            SharedSignature::Lane(signature) => to.extend(signature.0),
            SharedSignature::Bls(signature) => to.extend(signature.0),
        }
    }

    /// Parses an answer that fills `bytes`.
    ///
    /// # Errors
    /// [`LaneRefusal::Malformed`] for anything that [`BatchAnswer::write`] does not write.
    pub fn parse(bytes: &[u8]) -> Result<BatchAnswer, LaneRefusal> {
        let mut reader = Reader::new(bytes);
        let (scheme, validator, position) = (reader.u8()?, reader.u8()?, reader.u64()?);
        let excluded = read_excluded(&mut reader)?;
        let signature = match scheme {
            2 => SharedSignature::Lane(reader.signature()?),
            3 => SharedSignature::Bls(BlsSignature(reader.array()?)),
            _ => return Err(LaneRefusal::Malformed("a batch is signed by ed25519 (2) or BLS (3)")),
        };
        reader.end()?;
        Ok(BatchAnswer { validator, position, excluded, signature })
    }
}

/// The place of a payment in a shared tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedPlace {
    /// Number of leaves.
    pub size: u32,
    /// The place of the payment.
    pub index: u32,
    /// Siblings from the leaf to the root.
    pub path: Vec<Digest>,
}

impl SharedPlace {
    fn write(&self, to: &mut Vec<u8>) {
        to.extend(self.size.to_le_bytes());
        to.extend(self.index.to_le_bytes());
        self.path.iter().for_each(|digest| to.extend(digest.0));
    }

    fn read(reader: &mut Reader<'_>) -> Result<SharedPlace, LaneRefusal> {
        let (size, index) = (reader.u32()?, reader.u32()?);
        let length =
            merkle::path_length(Family::LaneSigned, size as usize, index as usize).ok_or(LaneRefusal::WrongPath)?;
        let path = (0..length).map(|_| reader.digest()).collect::<Result<_, _>>()?;
        Ok(SharedPlace { size, index, path })
    }

    fn root(&self, digest: &Digest) -> Result<Digest, LaneRefusal> {
        let leaf = merkle::leaf(Family::LaneSigned, &digest.0);
        let (size, index) = (self.size as usize, self.index as usize);
        merkle::root_of(Family::LaneSigned, leaf, size, index, &self.path).ok_or(LaneRefusal::WrongPath)
    }

    /// The shared digest under this root, if this place is not excluded.
    fn digest(&self, root: &Digest, excluded: &[u16]) -> Result<Digest, LaneRefusal> {
        if excluded.iter().any(|place| u32::from(*place) == self.index) {
            return Err(LaneRefusal::WrongPath);
        }
        Ok(shared_digest(root, self.size, excluded))
    }
}

/// The header that a validator signs for a batch.
pub(crate) fn batch_header(
    committee: &LaneCommittee,
    validator: u8,
    owner: &PublicKey,
    (size, position): (u32, u64),
    digest: Digest,
) -> Result<RootHeader, LaneRefusal> {
    Ok(RootHeader {
        network: committee.network(),
        epoch: committee.epoch(),
        validator,
        shard: committee.shard_of(validator, owner)?,
        kind: StatementKind::SharedConfirmation,
        size,
        position,
        root: digest,
    })
}

/// A certificate from a shared tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SharedCertificate {
    /// ed25519 signatures of exactly q validators, ascending, none of which excludes the payment.
    Answers(SharedPlace, Vec<BatchAnswer>),
    /// One aggregated signature of validators that exclude the same leaves.
    Aggregate(SharedPlace, Vec<u16>, BlsAggregate),
}

impl SharedCertificate {
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        match self {
            SharedCertificate::Answers(place, answers) => {
                to.push(2);
                place.write(to);
                to.push(u8::try_from(answers.len()).expect("q is at most 171"));
                for answer in answers {
                    let SharedSignature::Lane(signature) = answer.signature else { continue };
                    to.push(answer.validator);
                    to.extend(answer.position.to_le_bytes());
                    write_excluded(&answer.excluded, to);
                    to.extend(signature.0);
                }
            }
            SharedCertificate::Aggregate(place, excluded, aggregate) => {
                to.push(3);
                place.write(to);
                write_excluded(excluded, to);
                aggregate.write(to);
            }
        }
    }

    pub(crate) fn read(kind: u8, reader: &mut Reader<'_>) -> Result<SharedCertificate, LaneRefusal> {
        let place = SharedPlace::read(reader)?;
        if kind == 3 {
            return Ok(SharedCertificate::Aggregate(place, read_excluded(reader)?, BlsAggregate::read(reader)?));
        }
        let count = reader.u8()?;
        let answer = |reader: &mut Reader<'_>| {
            let (validator, position, excluded) = (reader.u8()?, reader.u64()?, read_excluded(reader)?);
            let signature = SharedSignature::Lane(reader.signature()?);
            Ok(BatchAnswer { validator, position, excluded, signature })
        };
        let answers = (0..count).map(|_| answer(reader)).collect::<Result<_, LaneRefusal>>()?;
        Ok(SharedCertificate::Answers(place, answers))
    }

    pub(crate) fn verify(
        &self,
        committee: &LaneCommittee,
        claim: &Claim<'_>,
        roots: &mut RootCache,
        budget: &mut CheckBudget,
    ) -> Result<(), LaneRefusal> {
        let needed = committee.quorums().certificate;
        if claim.kind != StatementKind::Confirmation {
            return Err(LaneRefusal::WrongSigners { needed });
        }
        match self {
            SharedCertificate::Aggregate(place, excluded, aggregate) => {
                let digest = place.digest(&place.root(claim.digest)?, excluded)?;
                let kind = StatementKind::SharedConfirmation;
                roots.verify_aggregate(committee, &Claim { kind, digest: &digest, ..*claim }, aggregate, budget)
            }
            SharedCertificate::Answers(place, answers) => {
                let ascend = answers.windows(2).all(|pair| pair[0].validator < pair[1].validator);
                if answers.len() != needed || !ascend {
                    return Err(LaneRefusal::WrongSigners { needed });
                }
                answers.iter().try_for_each(|answer| verify_answer(place, answer, committee, claim, roots, budget))
            }
        }
    }

    /// The validators that it names as signers.
    pub(crate) fn signers(&self) -> Vec<u8> {
        match self {
            SharedCertificate::Answers(_, answers) => answers.iter().map(|answer| answer.validator).collect(),
            SharedCertificate::Aggregate(_, _, aggregate) => aggregate.named(),
        }
    }

    /// The smallest part of the certificate from which it follows that this validator signed.
    pub(crate) fn of_signer(&self, validator: u8) -> Option<SharedCertificate> {
        match self {
            SharedCertificate::Answers(place, answers) => {
                let answer = answers.iter().find(|answer| answer.validator == validator)?;
                Some(SharedCertificate::Answers(place.clone(), vec![answer.clone()]))
            }
            SharedCertificate::Aggregate(..) => Some(self.clone()),
        }
    }

    /// As for [`PaymentCertificate::verify_signer`].
    pub(crate) fn verify_signer(
        &self,
        committee: &LaneCommittee,
        claim: &Claim<'_>,
        validator: u8,
        roots: &mut RootCache,
        budget: &mut CheckBudget,
    ) -> Result<(), LaneRefusal> {
        match self {
            SharedCertificate::Answers(place, answers) => match &answers[..] {
                [answer] if answer.validator == validator => {
                    verify_answer(place, answer, committee, claim, roots, budget)
                }
                _ => Err(LaneRefusal::WrongSigners { needed: 1 }),
            },
            SharedCertificate::Aggregate(place, excluded, aggregate) => {
                let digest = place.digest(&place.root(claim.digest)?, excluded)?;
                let kind = StatementKind::SharedConfirmation;
                aggregate.verify_signer(committee, &Claim { kind, digest: &digest, ..*claim }, validator, budget)
            }
        }
    }
}

/// Verifies that a validator signed a shared tree with the claim's payment in it, and did not exclude it.
fn verify_answer(
    place: &SharedPlace,
    answer: &BatchAnswer,
    committee: &LaneCommittee,
    claim: &Claim<'_>,
    roots: &mut RootCache,
    budget: &mut CheckBudget,
) -> Result<(), LaneRefusal> {
    let digest = place.digest(&place.root(claim.digest)?, &answer.excluded)?;
    let numbers = (place.size, answer.position);
    let header = batch_header(committee, answer.validator, claim.owner, numbers, digest)?;
    match answer.signature {
        SharedSignature::Lane(signature) => roots.verify_header(committee, header, signature, budget),
        SharedSignature::Bls(_) => Err(LaneRefusal::WrongSigners { needed: committee.quorums().certificate }),
    }
}
