//! What a member does with its secrets: it deals, decrypts, complains and takes its share.

use blstrs::{G2Projective, Scalar};
use group::ff::Field;
use primitives::SecretKey;

use super::board::{Complaint, Dealing, KeyGeneration};
use super::cipher::{challenge, pad, xor};
use super::{DkgTerms, KeyShare, points};
use crate::bls::BlsSecretKey;

const SEED_CONTEXT: &str = "walras 2026 lane dkg seed of a shard v1";

/// A dealing of `dealer`. The seed is random, fresh and secret: everything that the dealing hides is derived from it.
///
/// # Panics
/// If the dealer is not a member.
pub fn dealing(terms: &DkgTerms, dealer: u8, seed: &[u8; 32]) -> Dealing {
    assert!(usize::from(dealer) < terms.keys.len(), "only members deal");
    let key = blake3::derive_key(terms.purpose.contexts().deal, seed);
    let mut stream = blake3::Hasher::new_keyed(&key).update(&terms.context(dealer)).finalize_xof();
    let mut coefficients: Vec<Scalar> = (0..terms.needed()).map(|_| points::scalar(&mut stream)).collect();
    let ephemeral = points::scalar(&mut stream);
    let committed = coefficients.iter().map(|of| points::bytes(&(points::generator() * of))).collect();
    let encrypt = |(member, key): (u8, &crate::BlsPublicKey)| {
        let to = points::parse(&key.to_bytes()).expect("a registered key is a point of the subgroup");
        let share = points::evaluate(&coefficients, member).to_bytes_le();
        xor(share, &pad(terms, dealer, member, &points::bytes(&(to * ephemeral))))
    };
    let shares = (0..).zip(&terms.keys).map(encrypt).collect();
    let mut dealing = Dealing {
        dealer,
        commitments: committed,
        ephemeral: points::bytes(&(points::generator() * ephemeral)),
        shares,
        possession: crate::BlsSignature([0; 48]),
        ephemeral_possession: crate::BlsSignature([0; 48]),
    };
    prove(terms, &mut dealing, [&coefficients[0], &ephemeral]);
    coefficients.fill(Scalar::ZERO);
    dealing
}

/// A dealing derived from the dealer's other key of the epoch, which is random, fresh and secret. A dealer that
/// restarts makes the same dealing again.
///
/// # Panics
/// If the dealer is not a member.
pub fn dealing_of_shard(terms: &DkgTerms, dealer: u8, key: &SecretKey) -> Dealing {
    dealing(terms, dealer, &blake3::derive_key(SEED_CONTEXT, &key.to_seed()))
}

/// A dealing with a wrong share for one member, and valid proofs, as a Byzantine dealer may post it.
///
/// # Panics
/// If the dealer is not a member.
pub fn false_dealing(terms: &DkgTerms, dealer: u8, seed: &[u8; 32], wronged: u8) -> Dealing {
    let mut dealing = dealing(terms, dealer, seed);
    if let Some(share) = dealing.shares.get_mut(usize::from(wronged)) {
        share[0] ^= 1;
    }
    prove_again(terms, &mut dealing, seed);
    dealing
}

/// Proves that the dealer knows the constant coefficient and the secret of the ephemeral point.
fn prove(terms: &DkgTerms, dealing: &mut Dealing, secrets: [&Scalar; 2]) {
    let covered = dealing.covered(terms);
    let [constant, ephemeral] = secrets.map(|secret| {
        let key = BlsSecretKey::from_scalar(&secret.to_bytes_be());
        key.expect("a scalar out of a wide hash is not zero").possess(&covered)
    });
    (dealing.possession, dealing.ephemeral_possession) = (constant, ephemeral);
}

/// Renews the proofs of possession of a dealing whose shares were changed, with the seed that it was made of.
pub(super) fn prove_again(terms: &DkgTerms, dealing: &mut Dealing, seed: &[u8; 32]) {
    let key = blake3::derive_key(terms.purpose.contexts().deal, seed);
    let mut stream = blake3::Hasher::new_keyed(&key).update(&terms.context(dealing.dealer)).finalize_xof();
    let scalars: Vec<Scalar> = (0..=terms.needed()).map(|_| points::scalar(&mut stream)).collect();
    prove(terms, dealing, [&scalars[0], &scalars[terms.needed()]]);
}

fn secret_scalar(secret: &BlsSecretKey) -> Scalar {
    let scalar: Option<Scalar> = Scalar::from_bytes_be(&secret.to_bytes()).into();
    scalar.expect("a secret key is below the order of the group")
}

impl KeyGeneration {
    /// A member's complaint, if a dealing on the board gives it a wrong share.
    pub fn complaint(&self, member: u8, secret: &BlsSecretKey, dealer: u8) -> Option<Complaint> {
        let ephemeral = points::parse(&self.dealing_of(dealer)?.ephemeral)?;
        let shared = points::bytes(&(ephemeral * secret_scalar(secret)));
        let is_right = self.share_under(dealer, member, &shared).is_some();
        if is_right { None } else { self.reveal(member, secret, dealer) }
    }

    /// A complaint, needed or not. A needless one reveals the member's share of this dealing and has the member
    /// struck: a Byzantine member may post it, a correct one never does.
    pub fn reveal(&self, member: u8, secret: &BlsSecretKey, dealer: u8) -> Option<Complaint> {
        let dealing = self.dealing_of(dealer)?;
        let (terms, key) = (self.terms(), secret_scalar(secret));
        let ephemeral = points::parse(&dealing.ephemeral)?;
        let shared = points::bytes(&(ephemeral * key));
        // The nonce is derived from the secret and from what is proved, so that no two proofs share one.
        let mut nonce = blake3::Hasher::new_derive_key(terms.purpose.contexts().nonce);
        nonce.update(&secret.to_bytes()).update(&terms.context(dealer)).update(&[member]).update(&dealing.ephemeral);
        let nonce = points::scalar(&mut nonce.finalize_xof());
        let first: G2Projective = points::generator() * nonce;
        let commitments = [points::bytes(&first), points::bytes(&(ephemeral * nonce))];
        let of = [&dealing.ephemeral, &shared, &commitments[0], &commitments[1]];
        let challenge = challenge(terms, dealer, member, of);
        let response = nonce + challenge * key;
        let (challenge, response) = (challenge.to_bytes_le(), response.to_bytes_le());
        Some(Complaint { member, dealer, shared, challenge, response })
    }

    /// A member's share of the group's secret, once the generation is finished; `None` if it has none that fits.
    pub fn share(&self, member: u8, secret: &BlsSecretKey) -> Option<KeyShare> {
        let group = self.outcome()?;
        let key = secret_scalar(secret);
        let mut sum = Scalar::ZERO;
        for dealer in self.standing() {
            let ephemeral = points::parse(&self.dealing_of(dealer)?.ephemeral)?;
            sum += self.share_under(dealer, member, &points::bytes(&(ephemeral * key)))?;
        }
        let share = KeyShare { member, secret: BlsSecretKey::from_scalar(&sum.to_bytes_be())? };
        let fits = group.shares.get(usize::from(member)) == Some(&share.secret.public());
        (fits && !group.struck.contains(&member)).then_some(share)
    }
}
