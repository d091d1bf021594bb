//! Certificates with one aggregated BLS signature and a bitmap of its signers: see `bls`.

use blst::min_sig::{AggregatePublicKey, AggregateSignature, PublicKey as Point, Signature as Curve};
use blst::{BLST_ERROR, blst_scalar};
use primitives::PublicKey;

use crate::bls::{SIGNATURE_TAG, holds, message, parse_signature};
use crate::layout::Reader;
use crate::{AGGREGATE_COST, BlsPublicKey, BlsSignature, CheckBudget, Claim, LaneCommittee, LaneRefusal};

const WEIGHTS_CONTEXT: &str = "walras 2026 lane bls weights v1";
const WEIGHT_BITS: usize = 128;

/// One signature of at least q validators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlsAggregate {
    /// Bit i of byte i/8, from the lowest: validator i signed.
    pub signers: Vec<u8>,
    /// The sum of their signatures.
    pub signature: BlsSignature,
}

impl BlsAggregate {
    /// Adds up signatures of distinct validators of a committee. It does not verify them.
    ///
    /// # Errors
    /// [`LaneRefusal::WrongSigners`] if a signer is not a member or signs twice, [`LaneRefusal::WrongSignature`] if a
    /// signature is not a point of the subgroup.
    pub fn of(committee: &LaneCommittee, parts: &[(u8, BlsSignature)]) -> Result<BlsAggregate, LaneRefusal> {
        let wrong = LaneRefusal::WrongSigners { needed: committee.quorums().certificate };
        let mut signers = vec![0; committee.quorums().validators.div_ceil(8)];
        let mut points = Vec::with_capacity(parts.len());
        for (validator, signature) in parts {
            let byte = signers.get_mut(usize::from(validator / 8)).ok_or(wrong.clone())?;
            let bit = 1 << (validator % 8);
            if usize::from(*validator) >= committee.quorums().validators || *byte & bit != 0 {
                return Err(wrong);
            }
            *byte |= bit;
            points.push(parse_signature(signature).ok_or(LaneRefusal::WrongSignature(*validator))?);
        }
        let points: Vec<&Curve> = points.iter().collect();
        let sum = AggregateSignature::aggregate(&points, false).map_err(|_| wrong)?;
        Ok(BlsAggregate { signers, signature: BlsSignature(sum.to_signature().compress()) })
    }

    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        to.push(u8::try_from(self.signers.len()).expect("256 validators are 32 bytes"));
        to.extend(&self.signers);
        to.extend(self.signature.0);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<BlsAggregate, LaneRefusal> {
        let length = reader.u8()?;
        Ok(BlsAggregate { signers: reader.bytes(length.into())?.to_vec(), signature: BlsSignature(reader.array()?) })
    }

    /// The validators that the bitmap names, ascending.
    pub(crate) fn named(&self) -> Vec<u8> {
        let bits = 0..self.signers.len() * 8;
        bits.filter(|index| self.signers[index / 8] >> (index % 8) & 1 == 1).map(|index| index as u8).collect()
    }

    /// The signers by ascending index, if the bitmap is canonical and they are a quorum.
    ///
    /// # Errors
    /// [`LaneRefusal::WrongSigners`].
    pub fn members(&self, committee: &LaneCommittee) -> Result<Vec<u8>, LaneRefusal> {
        self.at_least(committee, committee.quorums().certificate)
    }

    fn at_least(&self, committee: &LaneCommittee, needed: usize) -> Result<Vec<u8>, LaneRefusal> {
        let validators = committee.quorums().validators;
        let members = self.named();
        let is_canonical = self.signers.len() == validators.div_ceil(8)
            && members.last().is_none_or(|last| usize::from(*last) < validators);
        if is_canonical && members.len() >= needed { Ok(members) } else { Err(LaneRefusal::WrongSigners { needed }) }
    }

    /// Verifies that one validator is among its signers, however many there are. Each signer that it names has
    /// signed: possession of all keys was proved.
    ///
    /// # Errors
    /// The first fault found.
    pub(crate) fn verify_signer(
        &self,
        committee: &LaneCommittee,
        claim: &Claim<'_>,
        validator: u8,
        budget: &mut CheckBudget,
    ) -> Result<(), LaneRefusal> {
        let members = self.at_least(committee, 1)?;
        if !members.contains(&validator) {
            return Err(LaneRefusal::WrongSigners { needed: 1 });
        }
        budget.spend(AGGREGATE_COST)?;
        self.verify_of(&members, committee, claim)
    }

    fn key(&self, members: &[u8], committee: &LaneCommittee, owner: &PublicKey) -> Result<Point, LaneRefusal> {
        let keys = members
            .iter()
            .map(|validator| committee.bls_key(*validator, committee.shard_of(*validator, owner)?))
            .collect::<Result<Vec<&BlsPublicKey>, _>>()?;
        let points: Vec<&Point> = keys.iter().map(|key| &key.point).collect();
        let sum = AggregatePublicKey::aggregate(&points, false).map_err(|_| LaneRefusal::WrongBlsKey)?;
        Ok(sum.to_public_key())
    }

    /// Verifies that its signers, a quorum, signed the claim.
    ///
    /// # Errors
    /// The first fault found.
    pub fn verify(&self, committee: &LaneCommittee, claim: &Claim<'_>) -> Result<(), LaneRefusal> {
        self.verify_of(&self.members(committee)?, committee, claim)
    }

    fn verify_of(&self, members: &[u8], committee: &LaneCommittee, claim: &Claim<'_>) -> Result<(), LaneRefusal> {
        let key = self.key(members, committee, claim.owner)?;
        let message = message(&committee.network(), committee.epoch(), claim.kind, claim.digest);
        if holds(&self.signature, &message, SIGNATURE_TAG, &key) { Ok(()) } else { Err(LaneRefusal::WrongAggregate) }
    }
}

/// Verifies many aggregates together, cheaper than one by one. The weights of the equation come from a hash of the
/// whole batch, so an attacker who chooses the signatures cannot choose the weights. If it fails, some aggregate is
/// wrong.
///
/// # Errors
/// The first fault found, or [`LaneRefusal::WrongAggregate`] if the equation does not hold.
pub fn verify_aggregates(committee: &LaneCommittee, items: &[(Claim<'_>, &BlsAggregate)]) -> Result<(), LaneRefusal> {
    if items.is_empty() {
        return Ok(());
    }
    let mut transcript = blake3::Hasher::new_derive_key(WEIGHTS_CONTEXT);
    let (mut messages, mut keys, mut signatures) = (Vec::new(), Vec::new(), Vec::new());
    for (claim, aggregate) in items {
        let key = aggregate.key(&aggregate.members(committee)?, committee, claim.owner)?;
        let message = message(&committee.network(), committee.epoch(), claim.kind, claim.digest);
        transcript.update(&message).update(&key.compress()).update(&aggregate.signature.0);
        signatures.push(parse_signature(&aggregate.signature).ok_or(LaneRefusal::WrongAggregate)?);
        messages.push(message);
        keys.push(key);
    }
    let mut weights = transcript.finalize_xof();
    let weight = |_: &Point| {
        let mut scalar = blst_scalar { b: [0; 32] };
        weights.fill(&mut scalar.b[..WEIGHT_BITS / 8]);
        // Never zero: that would leave an item out.
        scalar.b[0] |= 1;
        scalar
    };
    let weights: Vec<blst_scalar> = keys.iter().map(weight).collect();
    let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    let (keys, signatures): (Vec<&Point>, Vec<&Curve>) = (keys.iter().collect(), signatures.iter().collect());
    let result = Curve::verify_multiple_aggregate_signatures(
        &messages,
        SIGNATURE_TAG,
        &keys,
        false,
        &signatures,
        false,
        &weights,
        WEIGHT_BITS,
    );
    if result == BLST_ERROR::BLST_SUCCESS { Ok(()) } else { Err(LaneRefusal::WrongAggregate) }
}

#[cfg(test)]
mod tests;
