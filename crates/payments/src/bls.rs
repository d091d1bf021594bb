//! The BLS scheme (§3.4) on BLS12-381: keys in G2, signatures in G1 (`min-sig`).
//!
//! A certificate is one aggregated signature and a bitmap of its signers: 49 bytes and n/8. It verifies as fast as a
//! threshold signature and needs no key generation. All signers sign the same bytes, so these name neither validator
//! nor shard: the verifier adds the keys of the shards that the owner belongs to.
//!
//! ```text
//! signed by a validator  "walras-lane\x01" · network 32 · home 8 · kind 1 · scheme 1 (2) · digest 32
//! proof of possession    "walras-lane\x01" · network 32 · account 20 · scheme 1 (2) · key 96, under a tag of its own
//! aggregate              bytes of the bitmap 1 · bitmap · signature 48
//! ```
//!
//! Keys are checked when they are registered: in the subgroup, not the identity, with a proof of possession that is
//! bound to network, account and scheme. So no one can construct a key from others' keys that cancels them. A
//! signature is checked for the subgroup, and the identity is refused. A bitmap has exactly the bytes that the
//! committee needs, no bit beyond it, and at least q bits. Weights of a batch come from a hash of the whole batch.

use blst::min_sig::{
    AggregatePublicKey, AggregateSignature, PublicKey as Point, SecretKey as Scalar, Signature as Curve,
};
use blst::{BLST_ERROR, blst_scalar};
use primitives::{Address, Digest, PublicKey, SecretKey};

use crate::layout::Reader;
use crate::statement::TAG;
use crate::{AGGREGATE_COST, CheckBudget, Claim, HomeEpoch, LaneCommittee, LaneRefusal, StatementKind};

const SIGNATURE_TAG: &[u8] = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_";
const POSSESSION_TAG: &[u8] = b"BLS_POP_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_";
const SHARD_KEY_CONTEXT: &str = "walras 2026 lane bls key of a shard v1";
const WEIGHTS_CONTEXT: &str = "walras 2026 lane bls weights v1";
const SCHEME: u8 = 2;
/// The prefix of every signed byte string of the lane.
pub(crate) const TAG_BYTES: &[u8] = TAG;
const WEIGHT_BITS: usize = 128;

/// A BLS signature as transmitted: 48 bytes, validated when it is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlsSignature(pub [u8; 48]);

/// A checked BLS public key: in the subgroup, and not the identity.
#[derive(Clone, Copy)]
pub struct BlsPublicKey {
    bytes: [u8; 96],
    point: Point,
}

/// A BLS signing key. Its memory is wiped when it is dropped; it has no `Debug` text.
#[derive(Clone)]
pub struct BlsSecretKey(Scalar);

impl PartialEq for BlsPublicKey {
    fn eq(&self, other: &BlsPublicKey) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for BlsPublicKey {}

impl std::fmt::Debug for BlsPublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "0x{}", primitives::to_hex(&self.bytes))
    }
}

impl BlsSecretKey {
    /// The key that the standard derives from a 32-byte seed.
    pub fn from_seed(seed: [u8; 32]) -> BlsSecretKey {
        BlsSecretKey(Scalar::key_gen(&seed, &[]).expect("32 bytes are enough"))
    }

    /// The BLS key of a shard whose other key is this one. A holder of one can derive both, and destroys both
    /// together.
    pub fn of_shard(key: &SecretKey) -> BlsSecretKey {
        BlsSecretKey::from_seed(blake3::derive_key(SHARD_KEY_CONTEXT, &key.to_seed()))
    }

    /// The public half.
    pub fn public(&self) -> BlsPublicKey {
        let point = self.0.sk_to_pk();
        BlsPublicKey { bytes: point.compress(), point }
    }

    /// Signs a digest as a validator of an epoch.
    pub fn sign(&self, network: &Digest, epoch: HomeEpoch, kind: StatementKind, digest: &Digest) -> BlsSignature {
        self.sign_as(SCHEME, network, epoch, kind, digest)
    }

    pub(crate) fn sign_as(
        &self,
        scheme: u8,
        network: &Digest,
        epoch: HomeEpoch,
        kind: StatementKind,
        digest: &Digest,
    ) -> BlsSignature {
        let message = message_as(scheme, network, epoch, kind, digest);
        BlsSignature(self.0.sign(&message, SIGNATURE_TAG, &[]).compress())
    }

    /// A secret that is not zero, from its 32 bytes, big-endian.
    pub(crate) fn from_scalar(bytes: &[u8; 32]) -> Option<BlsSecretKey> {
        Scalar::from_bytes(bytes).ok().map(BlsSecretKey)
    }

    pub(crate) fn to_bytes(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// Signs under the tag of proofs of possession.
    pub(crate) fn possess(&self, message: &[u8]) -> BlsSignature {
        BlsSignature(self.0.sign(message, POSSESSION_TAG, &[]).compress())
    }

    /// Proves that the registrant of the key for an account has it.
    pub fn prove_possession(&self, network: &Digest, account: &Address) -> BlsSignature {
        let message = possession(network, account, &self.public());
        BlsSignature(self.0.sign(&message, POSSESSION_TAG, &[]).compress())
    }
}

fn message(network: &Digest, epoch: HomeEpoch, kind: StatementKind, digest: &Digest) -> Vec<u8> {
    message_as(SCHEME, network, epoch, kind, digest)
}

fn message_as(scheme: u8, network: &Digest, epoch: HomeEpoch, kind: StatementKind, digest: &Digest) -> Vec<u8> {
    [&TAG[..], &network.0, &epoch.to_le_bytes(), &[kind as u8, scheme], &digest.0].concat()
}

/// Whether the holder of a key signed a message under the tag of proofs of possession.
pub(crate) fn possesses(key: &BlsPublicKey, message: &[u8], proof: &BlsSignature) -> bool {
    holds(proof, message, POSSESSION_TAG, &key.point)
}

fn possession(network: &Digest, account: &Address, key: &BlsPublicKey) -> Vec<u8> {
    [&TAG[..], &network.0, &account.0, &[SCHEME], &key.bytes].concat()
}

/// A signature in the subgroup that is not the identity.
fn parse_signature(signature: &BlsSignature) -> Option<Curve> {
    Curve::sig_validate(&signature.0, true).ok()
}

fn holds(signature: &BlsSignature, message: &[u8], tag: &[u8], key: &Point) -> bool {
    let verify = |parsed: Curve| parsed.verify(false, message, tag, &[], key, false) == BLST_ERROR::BLST_SUCCESS;
    parse_signature(signature).is_some_and(verify)
}

impl BlsPublicKey {
    /// Parses a key: compressed, in the subgroup, not the identity.
    ///
    /// # Errors
    /// [`LaneRefusal::WrongBlsKey`].
    pub fn parse(bytes: &[u8; 96]) -> Result<BlsPublicKey, LaneRefusal> {
        let point = Point::key_validate(bytes).map_err(|_| LaneRefusal::WrongBlsKey)?;
        Ok(BlsPublicKey { bytes: *bytes, point })
    }

    /// Its 96 bytes.
    pub fn to_bytes(&self) -> [u8; 96] {
        self.bytes
    }

    /// Checks a proof of possession for this account.
    ///
    /// # Errors
    /// [`LaneRefusal::WrongBlsKey`].
    pub fn check_possession(
        &self,
        network: &Digest,
        account: &Address,
        proof: &BlsSignature,
    ) -> Result<(), LaneRefusal> {
        let message = possession(network, account, self);
        if holds(proof, &message, POSSESSION_TAG, &self.point) { Ok(()) } else { Err(LaneRefusal::WrongBlsKey) }
    }

    pub(crate) fn verify_as(
        &self,
        scheme: u8,
        committee: &LaneCommittee,
        claim: &Claim<'_>,
        signature: &BlsSignature,
    ) -> bool {
        let message = message_as(scheme, &committee.network(), committee.epoch(), claim.kind, claim.digest);
        holds(signature, &message, SIGNATURE_TAG, &self.point)
    }

    /// Whether one validator signed a digest.
    pub fn verify(
        &self,
        network: &Digest,
        epoch: HomeEpoch,
        kind: StatementKind,
        digest: &Digest,
        signature: &BlsSignature,
    ) -> bool {
        holds(signature, &message(network, epoch, kind, digest), SIGNATURE_TAG, &self.point)
    }
}

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
