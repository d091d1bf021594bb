//! The committee's key, and the keys that open envelopes.

use blst::BLST_ERROR;
use blst::min_sig::{PublicKey as Curve2, Signature as Curve1};
use blstrs::{G1Affine, G1Projective, Scalar};
use borsh::{BorshDeserialize, BorshSerialize};
use group::Curve;

use crate::label::Label;
use crate::{SEALING_TAG, SealFault};

const WEIGHT_CONTEXT: &str = "walras 2026 sealed check of keys v1";

/// The key of a committee, to which texts are sealed: a point of G2 in the subgroup, and not the identity.
#[derive(Clone, Copy)]
pub struct SealingKey {
    bytes: [u8; 96],
    pub(crate) point: Curve2,
}

/// What opens one envelope: the committee's signature on its label, as 48 bytes. It is checked before it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct OpeningKey(pub [u8; 48]);

impl std::fmt::Debug for SealingKey {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "0x{}", primitives::to_hex(&self.bytes))
    }
}

impl PartialEq for SealingKey {
    fn eq(&self, other: &SealingKey) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for SealingKey {}

impl SealingKey {
    /// The key of these bytes.
    ///
    /// # Errors
    /// [`SealFault::Point`].
    pub fn parse(bytes: &[u8; 96]) -> Result<SealingKey, SealFault> {
        let point = Curve2::key_validate(bytes).map_err(|_| SealFault::Point)?;
        Ok(SealingKey { bytes: *bytes, point })
    }

    /// Its bytes, compressed.
    pub fn to_bytes(&self) -> [u8; 96] {
        self.bytes
    }

    /// Whether a key opens the envelope of a label. A share is checked the same way, under the key of its holder.
    pub fn opens(&self, label: &Label, key: &OpeningKey) -> bool {
        let verify = |point: Curve1| point.verify(false, &label.0.0, SEALING_TAG, &[], &self.point, false);
        key.parse().is_ok_and(|point| verify(point) == BLST_ERROR::BLST_SUCCESS)
    }
}

impl OpeningKey {
    /// A point in the subgroup that is not the identity.
    pub(crate) fn parse(&self) -> Result<Curve1, SealFault> {
        Curve1::sig_validate(&self.0, true).map_err(|_| SealFault::Point)
    }
}

/// Whether each key opens the envelope of its label, by one pairing of weighted sums. The weights are a hash of all
/// labels and keys: nobody chooses keys that are wrong one by one and right in sum. If it is false, some are wrong;
/// [`SealingKey::opens`] says which.
pub fn check_keys(of: &SealingKey, keys: &[(Label, OpeningKey)]) -> bool {
    if keys.len() < 2 {
        return keys.iter().all(|(label, key)| of.opens(label, key));
    }
    let parsed = |key: &OpeningKey| key.parse().ok().and_then(|_| G1Affine::from_compressed_unchecked(&key.0).into());
    let Some(signed) = keys.iter().map(|(_, key)| parsed(key)).collect::<Option<Vec<G1Affine>>>() else {
        return false;
    };
    let weights = weights(of, keys);
    let hashed: Vec<G1Projective> =
        keys.iter().map(|(label, _)| G1Projective::hash_to_curve(&label.0.0, SEALING_TAG, &[])).collect();
    let signed: Vec<G1Projective> = signed.into_iter().map(G1Projective::from).collect();
    let [signed, hashed] = [signed, hashed].map(|points| G1Projective::multi_exp(&points, &weights).to_affine());
    let key = Option::from(blstrs::G2Affine::from_compressed_unchecked(&of.bytes)).expect("the key was parsed");
    blstrs::pairing(&signed, &generator()) == blstrs::pairing(&hashed, &key)
}

fn generator() -> blstrs::G2Affine {
    group::prime::PrimeCurveAffine::generator()
}

/// Weights of 128 bits, none zero.
fn weights(of: &SealingKey, keys: &[(Label, OpeningKey)]) -> Vec<Scalar> {
    let mut hasher = blake3::Hasher::new_derive_key(WEIGHT_CONTEXT);
    hasher.update(&of.bytes);
    for (label, key) in keys {
        hasher.update(&label.0.0).update(&key.0);
    }
    let mut stream = hasher.finalize_xof();
    let weight = |_| {
        let mut bytes = [0; 32];
        stream.fill(&mut bytes[..16]);
        bytes[0] |= 1;
        Option::from(Scalar::from_bytes_le(&bytes)).expect("128 bits are below the order")
    };
    keys.iter().map(weight).collect()
}
