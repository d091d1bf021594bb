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

use blst::BLST_ERROR;
use blst::min_sig::{PublicKey as Point, SecretKey as Scalar, Signature as Curve};
use primitives::{Address, Digest, SecretKey};

use crate::message::TAG;
use crate::{Claim, HomeEpoch, LaneHome, LaneRefusal, StatementKind};

pub(crate) const SIGNATURE_TAG: &[u8] = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_";
const POSSESSION_TAG: &[u8] = b"BLS_POP_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_";
const SHARD_KEY_CONTEXT: &str = "walras 2026 lane bls key of a shard v1";
const SCHEME: u8 = 2;
/// The prefix of every signed byte string of the lane.
pub(crate) const TAG_BYTES: &[u8] = TAG;

/// A BLS signature as transmitted: 48 bytes, validated when it is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlsSignature(pub [u8; 48]);

/// A checked BLS public key: in the subgroup, and not the identity.
#[derive(Clone, Copy)]
pub struct BlsPublicKey {
    bytes: [u8; 96],
    pub(crate) point: Point,
}

/// A BLS signing key. Its memory is wiped when it is dropped; it has no `Debug` text.
#[derive(Clone)]
pub struct BlsSecretKey(pub(crate) Scalar);

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

pub(crate) fn message(network: &Digest, epoch: HomeEpoch, kind: StatementKind, digest: &Digest) -> Vec<u8> {
    message_as(SCHEME, network, epoch, kind, digest)
}

fn message_as(scheme: u8, network: &Digest, epoch: HomeEpoch, kind: StatementKind, digest: &Digest) -> Vec<u8> {
    [&TAG[..], &network.0, &epoch.to_le_bytes(), &[kind as u8, scheme], &digest.0].concat()
}

/// Whether the holder of a key signed a message under the tag of proofs of possession.
pub(crate) fn possesses(key: &BlsPublicKey, message: &[u8], proof: &BlsSignature) -> bool {
    holds(proof, message, POSSESSION_TAG, &key.point)
}

pub(crate) fn possession(network: &Digest, account: &Address, key: &BlsPublicKey) -> Vec<u8> {
    [&TAG[..], &network.0, &account.0, &[SCHEME], &key.bytes].concat()
}

/// A signature in the subgroup that is not the identity.
pub(crate) fn parse_signature(signature: &BlsSignature) -> Option<Curve> {
    Curve::sig_validate(&signature.0, true).ok()
}

pub(crate) fn holds(signature: &BlsSignature, message: &[u8], tag: &[u8], key: &Point) -> bool {
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

    pub(crate) fn verify_as(&self, scheme: u8, home: &LaneHome, claim: &Claim<'_>, signature: &BlsSignature) -> bool {
        let message = message_as(scheme, &home.network, home.epoch, claim.kind, claim.digest);
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
