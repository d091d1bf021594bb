//! An envelope, and how it is sealed and opened.

use blst::min_sig::{PublicKey as Curve2, SecretKey as Scalar};
use primitives::{BoxSize, EnvelopeBytes};

use crate::keys::{OpeningKey, SealingKey};
use crate::label::{EnvelopeTerms, Label};
use crate::text::SealedText;
use crate::{SEALING_TAG, SealFault, curve};

const SCALAR_CONTEXT: &str = "walras 2026 sealed r v1";
const SECRET_CONTEXT: &str = "walras 2026 sealed key v1";

/// A sealed text: a point of G2, and a box of one of three sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    size: BoxSize,
    point: [u8; 96],
    sealed: Vec<u8>,
}

impl Envelope {
    /// An envelope as it came: its point is checked, and its box is as long as its size says.
    ///
    /// # Errors
    /// [`SealFault::Point`] or [`SealFault::Box`].
    pub fn new(size: BoxSize, point: [u8; 96], sealed: Vec<u8>) -> Result<Envelope, SealFault> {
        if sealed.len() != size.bytes() {
            return Err(SealFault::Box);
        }
        Curve2::key_validate(&point).map_err(|_| SealFault::Point)?;
        Ok(Envelope { size, point, sealed })
    }

    /// The envelope of a block's bytes.
    ///
    /// # Errors
    /// [`SealFault::Point`].
    pub fn parse(bytes: &EnvelopeBytes) -> Result<Envelope, SealFault> {
        Envelope::new(bytes.size(), bytes.point, bytes.sealed().to_vec())
    }

    /// Its bytes in a block, under the number of the key that it is sealed to.
    pub fn to_bytes(&self, key: u64) -> EnvelopeBytes {
        EnvelopeBytes::new(key, self.point, self.sealed.clone().into()).expect("its box has one of the sizes")
    }

    /// The size of its box.
    pub fn size(&self) -> BoxSize {
        self.size
    }

    /// Its point, compressed.
    pub fn point(&self) -> &[u8; 96] {
        &self.point
    }

    /// Its box.
    pub fn sealed(&self) -> &[u8] {
        &self.sealed
    }

    /// Its label under these terms.
    pub fn label(&self, terms: &EnvelopeTerms) -> Label {
        terms.label(self.size, &self.point)
    }

    /// The text, by a key that was checked ([`crate::check_keys`]).
    ///
    /// # Errors
    /// [`SealFault::Garbage`] if what is in it is no text, and [`SealFault::Point`] if the key is no point.
    pub fn open(&self, label: &Label, key: &OpeningKey) -> Result<SealedText, SealFault> {
        let point = Curve2::uncompress(&self.point).map_err(|_| SealFault::Point)?;
        let secret = secret(&curve::pairing(key.parse()?, point), label);
        SealedText::unpadded(&crossed(&self.sealed, &secret))
    }
}

/// Seals a text to a committee. The 32 bytes are drawn for this envelope alone, and are secret.
///
/// # Errors
/// [`SealFault::TooMany`] or [`SealFault::TooLong`].
pub fn seal(
    to: &SealingKey,
    terms: &EnvelopeTerms,
    text: &SealedText,
    drawn: &[u8; 32],
) -> Result<Envelope, SealFault> {
    let (size, padded) = text.padded()?;
    let hash = blake3::Hasher::new_derive_key(SCALAR_CONTEXT).update(drawn).update(&padded).finalize_xof();
    let scalar: Scalar = curve::scalar(hash);
    let point = scalar.sk_to_pk().compress();
    let label = terms.label(size, &point);
    // e(r·H₁(L), P): what is signed with r is r·H₁(L).
    let shared = scalar.sign(&label.0.0, SEALING_TAG, &[]);
    let secret = secret(&curve::pairing(shared, to.point), &label);
    Ok(Envelope { size, point, sealed: crossed(&padded, &secret) })
}

fn secret(pairing: &[u8], label: &Label) -> [u8; 32] {
    *blake3::Hasher::new_derive_key(SECRET_CONTEXT).update(pairing).update(&label.0.0).finalize().as_bytes()
}

/// The bytes XOR the stream of a secret.
fn crossed(bytes: &[u8], secret: &[u8; 32]) -> Vec<u8> {
    let mut stream = vec![0; bytes.len()];
    blake3::Hasher::new_keyed(secret).finalize_xof().fill(&mut stream);
    stream.iter_mut().zip(bytes).for_each(|(to, byte)| *to ^= byte);
    stream
}
