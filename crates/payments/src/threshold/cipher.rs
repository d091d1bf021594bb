//! How shares are hidden, and the challenge of the proof that opens one.

use blstrs::Scalar;

use super::{DkgTerms, points};

/// The pad of one share: derived from the point that dealer and member share, and bound to everything else.
pub(super) fn pad(terms: &DkgTerms, dealer: u8, member: u8, shared: &[u8; 96]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key(terms.purpose.contexts().pad);
    hasher.update(&terms.context(dealer)).update(&[member]).update(shared);
    *hasher.finalize().as_bytes()
}

pub(super) fn xor(mut left: [u8; 32], right: &[u8; 32]) -> [u8; 32] {
    left.iter_mut().zip(right).for_each(|(left, right)| *left ^= right);
    left
}

/// The challenge of a proof that two points have one discrete logarithm over two bases.
pub(super) fn challenge(terms: &DkgTerms, dealer: u8, member: u8, of: [&[u8; 96]; 4]) -> Scalar {
    let mut hasher = blake3::Hasher::new_derive_key(terms.purpose.contexts().proof);
    hasher.update(&terms.context(dealer)).update(&[member]);
    for point in of {
        hasher.update(point);
    }
    points::scalar(&mut hasher.finalize_xof())
}
