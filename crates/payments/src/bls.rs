//! The BLS scheme (§3.4) on BLS12-381: keys in G2, signatures in G1 (`min-sig`).
//!
//! A certificate is one aggregated signature and a bitmap of its signers: 49 bytes and n/8. It verifies as fast as a
//! threshold signature and needs no key generation. All signers sign the same bytes, which therefore name neither
//! validator nor shard: the verifier adds the keys of the shards that the owner belongs to.
//!
//! ```text
//! signed by a validator  "walras-lane\x01" · network 32 · home 8 · kind 1 · scheme 1 (2) · digest 32
//! proof of possession    "walras-lane\x01" · network 32 · account 20 · scheme 1 (2) · key 96, under a tag of its own
//! aggregate              bytes of the bitmap 1 · bitmap · signature 48
//! ```
//!
//! Keys are checked when they are registered: in the subgroup, not the identity, with a proof of possession that is
//! bound to network, account and scheme. So no key can be made out of others' keys to cancel them. A signature is
//! checked for the subgroup, and the identity is refused. A bitmap has exactly the bytes that the committee needs, no
//! bit above it, and at least q bits. Weights of a batch come from a hash of the whole batch.

use blst::min_sig::{
    AggregatePublicKey, AggregateSignature, PublicKey as Point, SecretKey as Scalar, Signature as Curve,
};
use blst::{BLST_ERROR, blst_scalar};
use primitives::{Address, Digest, PublicKey};

use crate::layout::Reader;
use crate::statement::TAG;
use crate::{Claim, HomeEpoch, LaneCommittee, LaneRefusal, StatementKind};

const SIGNATURE_TAG: &[u8] = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_";
const POSSESSION_TAG: &[u8] = b"BLS_POP_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_";
const WEIGHTS_CONTEXT: &str = "walras 2026 lane bls weights v1";
const SCHEME: u8 = 2;
/// What every signed byte string of the lane begins with.
pub(crate) const TAG_BYTES: &[u8] = TAG;
const WEIGHT_BITS: usize = 128;

/// A BLS signature as it travels: 48 bytes, checked when it is verified.
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

    /// Proves that whoever registers the key for an account has it.
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

/// Whether whoever has a key signed a message under the tag of proofs of possession.
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
    /// Reads a key: compressed, in the subgroup, not the identity.
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
    /// Adds up signatures of distinct validators of a committee of `validators`. It does not verify them.
    ///
    /// # Errors
    /// [`LaneRefusal::WrongSigners`] if one is no member or signs twice, [`LaneRefusal::WrongSignature`] if one is not
    /// a point of the subgroup.
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

    /// The signers by ascending index, if the bitmap is canonical and they are a quorum.
    ///
    /// # Errors
    /// [`LaneRefusal::WrongSigners`].
    pub fn members(&self, committee: &LaneCommittee) -> Result<Vec<u8>, LaneRefusal> {
        let (validators, needed) = (committee.quorums().validators, committee.quorums().certificate);
        let set = |index: &usize| self.signers[index / 8] >> (index % 8) & 1 == 1;
        let bits: u32 = self.signers.iter().map(|byte| byte.count_ones()).sum();
        if self.signers.len() != validators.div_ceil(8) || (bits as usize) < needed {
            return Err(LaneRefusal::WrongSigners { needed });
        }
        let members: Vec<u8> = (0..validators).filter(set).map(|index| index as u8).collect();
        if members.len() == bits as usize { Ok(members) } else { Err(LaneRefusal::WrongSigners { needed }) }
    }

    fn key(&self, committee: &LaneCommittee, owner: &PublicKey) -> Result<Point, LaneRefusal> {
        let members = self.members(committee)?;
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
    /// What is wrong with it.
    pub fn verify(&self, committee: &LaneCommittee, claim: &Claim<'_>) -> Result<(), LaneRefusal> {
        let key = self.key(committee, claim.owner)?;
        let message = message(&committee.network(), committee.epoch(), claim.kind, claim.digest);
        if holds(&self.signature, &message, SIGNATURE_TAG, &key) { Ok(()) } else { Err(LaneRefusal::WrongAggregate) }
    }
}

/// Verifies many aggregates together, cheaper than one by one. The weights of the equation come from a hash of the
/// whole batch, so that whoever chooses the signatures cannot choose the weights. If it fails, some aggregate is wrong.
///
/// # Errors
/// The first thing that is wrong, or [`LaneRefusal::WrongAggregate`] if the equation does not hold.
pub fn verify_aggregates(committee: &LaneCommittee, items: &[(Claim<'_>, &BlsAggregate)]) -> Result<(), LaneRefusal> {
    if items.is_empty() {
        return Ok(());
    }
    let mut transcript = blake3::Hasher::new_derive_key(WEIGHTS_CONTEXT);
    let (mut messages, mut keys, mut signatures) = (Vec::new(), Vec::new(), Vec::new());
    for (claim, aggregate) in items {
        let key = aggregate.key(committee, claim.owner)?;
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
        // Never zero, which would leave an item out.
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
mod tests {
    use super::*;

    const NETWORK: Digest = Digest([1; 32]);

    fn secret(number: u8) -> BlsSecretKey {
        BlsSecretKey::from_seed([number; 32])
    }

    fn committee(n: u8) -> LaneCommittee {
        let lane = |number: u8| primitives::SecretKey::from_seed([number; 32]).public();
        let account = |number: u8| Address([number; 20]);
        let register = |number: u8| {
            let key = secret(number);
            vec![(key.public(), account(number), key.prove_possession(&NETWORK, &account(number)))]
        };
        LaneCommittee::new(NETWORK, 3, (0..n).map(|number| vec![lane(number)]).collect())
            .with_bls((0..n).map(register).collect())
            .expect("proofs hold")
    }

    fn owner() -> PublicKey {
        PublicKey([9; 32])
    }

    fn aggregate(committee: &LaneCommittee, digest: &Digest, signers: impl Iterator<Item = u8>) -> BlsAggregate {
        let sign = |v: u8| (v, secret(v).sign(&NETWORK, 3, StatementKind::Confirmation, digest));
        BlsAggregate::of(committee, &signers.map(sign).collect::<Vec<_>>()).expect("distinct members")
    }

    fn claim(digest: &Digest) -> Claim<'_> {
        static OWNER: PublicKey = PublicKey([9; 32]);
        Claim { kind: StatementKind::Confirmation, owner: &OWNER, digest }
    }

    #[test]
    fn a_quorum_verifies_and_anything_else_does_not() {
        for n in [1, 4, 10] {
            let committee = committee(n);
            let quorum = committee.quorums().certificate as u8;
            let digest = Digest([7; 32]);
            let good = aggregate(&committee, &digest, 0..quorum);
            assert_eq!(good.verify(&committee, &claim(&digest)), Ok(()));
            assert_eq!(aggregate(&committee, &digest, 0..n).verify(&committee, &claim(&digest)), Ok(()), "all");
            let other = Digest([8; 32]);
            assert_eq!(good.verify(&committee, &claim(&other)), Err(LaneRefusal::WrongAggregate));
            let kind = Claim { kind: StatementKind::Acknowledgement, ..claim(&digest) };
            assert_eq!(good.verify(&committee, &kind), Err(LaneRefusal::WrongAggregate));
            let signers = Err(LaneRefusal::WrongSigners { needed: quorum.into() });
            let change = |edit: &dyn Fn(&mut BlsAggregate)| {
                let mut wrong = good.clone();
                edit(&mut wrong);
                wrong.verify(&committee, &claim(&digest))
            };
            assert_eq!(change(&|wrong| wrong.signers[0] &= !1), signers, "too few");
            assert_eq!(change(&|wrong| wrong.signers.push(0)), signers, "longer");
            assert_eq!(change(&|wrong| wrong.signers.truncate(usize::from(n) / 9)), signers, "shorter");
            assert_eq!(
                change(&|wrong| *wrong.signers.last_mut().unwrap() |= 0x80),
                signers,
                "a bit above the committee"
            );
            if quorum < n {
                let said = change(&|wrong| wrong.signers[0] |= 1 << quorum);
                assert_eq!(said, Err(LaneRefusal::WrongAggregate), "somebody who did not sign");
            }
            let mut identity = [0; 48];
            identity[0] = 0xc0;
            assert_eq!(change(&|wrong| wrong.signature.0 = identity), Err(LaneRefusal::WrongAggregate), "identity");
            assert_eq!(change(&|wrong| wrong.signature.0[1] ^= 1), Err(LaneRefusal::WrongAggregate));
            let twice = [(0, good.signature), (0, good.signature)];
            assert!(BlsAggregate::of(&committee, &twice).is_err(), "one validator signs once");
            assert!(BlsAggregate::of(&committee, &[(n, good.signature)]).is_err(), "a stranger");
            let mut bytes = Vec::new();
            good.write(&mut bytes);
            assert_eq!(BlsAggregate::read(&mut Reader::new(&bytes)), Ok(good.clone()));
            assert_eq!(bytes.len(), 1 + usize::from(n).div_ceil(8) + 48);
        }
    }

    #[test]
    fn a_rogue_key_is_refused() {
        // The attacker knows the others' keys and registers x·G − (sum of them): with it, it alone would sign for all.
        let others = [secret(0).public(), secret(1).public()];
        let mine = secret(77);
        let mut sum = AggregatePublicKey::from_public_key(&mine.public().point);
        let points = others.iter().map(|key| AggregatePublicKey::from_public_key(&key.point)).collect::<Vec<_>>();
        points.iter().for_each(|point| sum.sub_aggregate(point));
        let rogue = BlsPublicKey::parse(&sum.to_public_key().compress()).expect("it is a point of the subgroup");
        // Without proofs of possession the forgery works.
        let digest = Digest([7; 32]);
        let forged = mine.sign(&NETWORK, 3, StatementKind::Confirmation, &digest);
        let all = AggregatePublicKey::aggregate(&[&others[0].point, &others[1].point, &rogue.point], false).unwrap();
        let message = message(&NETWORK, 3, StatementKind::Confirmation, &digest);
        assert!(holds(&forged, &message, SIGNATURE_TAG, &all.to_public_key()), "the attack is real");
        // With them it cannot be registered: nobody knows its secret.
        let account = Address([5; 20]);
        for proof in [mine.prove_possession(&NETWORK, &account), forged] {
            assert_eq!(rogue.check_possession(&NETWORK, &account, &proof), Err(LaneRefusal::WrongBlsKey));
        }
    }

    #[test]
    fn a_proof_of_possession_is_bound_to_network_account_and_tag() {
        let (key, account) = (secret(1), Address([5; 20]));
        let proof = key.prove_possession(&NETWORK, &account);
        let public = key.public();
        assert_eq!(public.check_possession(&NETWORK, &account, &proof), Ok(()));
        let wrong = Err(LaneRefusal::WrongBlsKey);
        assert_eq!(public.check_possession(&Digest([2; 32]), &account, &proof), wrong);
        assert_eq!(public.check_possession(&NETWORK, &Address([6; 20]), &proof), wrong);
        assert_eq!(secret(2).public().check_possession(&NETWORK, &account, &proof), wrong);
        let message = possession(&NETWORK, &account, &public);
        let signature = BlsSignature(key.0.sign(&message, SIGNATURE_TAG, &[]).compress());
        assert_eq!(public.check_possession(&NETWORK, &account, &signature), wrong, "the tag of signatures");
    }

    #[test]
    fn keys_and_signatures_outside_the_subgroup_and_the_identity_are_refused() {
        let mut identity = [0; 96];
        identity[0] = 0xc0;
        assert_eq!(BlsPublicKey::parse(&identity), Err(LaneRefusal::WrongBlsKey));
        assert_eq!(BlsPublicKey::parse(&[0xff; 96]), Err(LaneRefusal::WrongBlsKey));
        // Points of the curve that are not in the subgroup: most small x coordinates that have a point at all.
        let mut outside = 0;
        for x in 1..=40u8 {
            let mut key = [0; 96];
            (key[0], key[95]) = (0x80, x);
            if Point::uncompress(&key).is_ok() {
                assert_eq!(BlsPublicKey::parse(&key), Err(LaneRefusal::WrongBlsKey), "key x = {x}");
                outside += 1;
            }
            let mut signature = [0; 48];
            (signature[0], signature[47]) = (0x80, x);
            if Curve::uncompress(&signature).is_ok() {
                assert!(parse_signature(&BlsSignature(signature)).is_none(), "signature x = {x}");
                outside += 1;
            }
        }
        assert!(outside > 20, "{outside}");
    }

    fn unhex<const N: usize>(text: &str) -> [u8; N] {
        primitives::from_hex(text).expect("hexadecimal")
    }

    /// RFC 9380, appendix J.9.1: points that hash to the curve, of the suite that signatures here use.
    #[test]
    fn hashing_to_the_curve_gives_the_points_of_the_standard() {
        let tag = b"QUUX-V01-CS02-with-BLS12381G1_XMD:SHA-256_SSWU_RO_";
        let vectors = [
            (
                &b""[..],
                "052926add2207b76ca4fa57a8734416c8dc95e24501772c814278700eed6d1e4e8cf62d9c09db0fac349612b759e79a1",
                "08ba738453bfed09cb546dbb0783dbb3a5f1f566ed67bb6be0e8c67e2e81a4cc68ee29813bb7994998f3eae0c9c6a265",
            ),
            (
                b"abc",
                "03567bc5ef9c690c2ab2ecdf6a96ef1c139cc0b2f284dca0a9a7943388a49a3aee664ba5379a7655d3c68900be2f6903",
                "0b9c15f3fe6e5cf4211f346271d7b01c8f3b28be689c8429c85b67af215533311f0b8dfaaa154fa6b88176c229f2885d",
            ),
        ];
        for (message, x, y) in vectors {
            let point = blstrs::G1Projective::hash_to_curve(message, tag, &[]);
            let expected = [unhex::<48>(x), unhex(y)].concat();
            assert_eq!(point.to_uncompressed().to_vec(), expected);
        }
    }

    /// Round 1,000 of the public randomness beacon quicknet (drand): the signature of a group of strangers, made by a
    /// threshold of them, with keys in G2 and signatures in G1 as here. Its message is SHA-256 of the round's number.
    #[test]
    fn a_published_threshold_signature_verifies() {
        let key = unhex::<96>(
            "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d1064510d1fec75\
             8c921cc22b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a",
        );
        let signature = BlsSignature(unhex(
            "b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39",
        ));
        let message: [u8; 32] = unhex("f652498d092acd949bad74e40683bf3824fb817980504a0c7e6722cfc5a9c0a3");
        let tag = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_";
        let key = BlsPublicKey::parse(&key).expect("a key");
        assert!(holds(&signature, &message, tag, &key.point));
        assert!(!holds(&signature, &message, SIGNATURE_TAG, &key.point), "the tag is part of the message");
    }

    #[test]
    fn batches_hold_exactly_if_each_item_holds() {
        let committee = committee(4);
        let digests: Vec<Digest> = (0..6).map(|i| Digest([i; 32])).collect();
        let mut aggregates: Vec<BlsAggregate> =
            digests.iter().map(|digest| aggregate(&committee, digest, 0..3)).collect();
        let check = |aggregates: &[BlsAggregate]| {
            let items: Vec<_> = digests.iter().map(claim).zip(aggregates).collect();
            verify_aggregates(&committee, &items)
        };
        assert_eq!(check(&aggregates), Ok(()));
        assert_eq!(check(&[]), Ok(()));
        // Two signatures whose errors cancel in a plain sum.
        aggregates.swap(1, 2);
        assert_eq!(check(&aggregates), Err(LaneRefusal::WrongAggregate), "weights keep errors apart");
        aggregates.swap(1, 2);
        aggregates[5] = aggregates[4].clone();
        assert_eq!(check(&aggregates), Err(LaneRefusal::WrongAggregate));
        assert_eq!(owner(), *claim(&digests[0]).owner);
    }
}
