//! Points, and the bytes of a pairing.

use blst::blst_fp12;
use blst::min_sig::{PublicKey, SecretKey, Signature};

/// The tag under which labels are hashed to the curve; nothing else is signed under it.
pub const SEALING_TAG: &[u8] = b"WALRAS_SEALED_BLS12381G1_XMD:SHA-256_SSWU_RO_V1_";

const COEFFICIENT: usize = 48;
/// Where each coefficient stands in `blst`'s bytes, which have those of the two halves in turns.
const ORDER: [usize; 12] = [0, 1, 4, 5, 8, 9, 2, 3, 6, 7, 10, 11];

/// The scalar of a stream of bytes: the first 32 that are, little-endian without the top bit, below the order and not
/// zero.
pub(crate) fn scalar(mut stream: blake3::OutputReader) -> SecretKey {
    loop {
        let mut bytes = [0; 32];
        stream.fill(&mut bytes);
        bytes[31] &= 0x7f;
        bytes.reverse();
        if let Ok(scalar) = SecretKey::from_bytes(&bytes) {
            return scalar;
        }
    }
}

/// e(left, right) as it is hashed: twelve coefficients of 48 bytes, big-endian, c0.c0.c0 first.
pub(crate) fn pairing(left: Signature, right: PublicKey) -> [u8; 12 * COEFFICIENT] {
    let from = blst_fp12::miller_loop(&right.into(), &left.into()).final_exp().to_bendian();
    let coefficients = ORDER.map(|at| &from[at * COEFFICIENT..][..COEFFICIENT]);
    coefficients.concat().try_into().expect("twelve coefficients")
}
