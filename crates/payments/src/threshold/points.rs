//! Arithmetic in the scalar field and the two groups, over `blst`'s constant-time operations.

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use group::ff::Field;
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};

use crate::BlsSignature;

/// A point of G2 in the subgroup that is not the identity.
pub(super) fn parse(bytes: &[u8; 96]) -> Option<G2Projective> {
    let point: Option<G2Affine> = G2Affine::from_compressed(bytes).into();
    point.filter(|point| !bool::from(point.is_identity())).map(G2Projective::from)
}

/// A point that was checked before.
pub(super) fn parse_unchecked(bytes: &[u8; 96]) -> Option<G2Projective> {
    let point: Option<G2Affine> = G2Affine::from_compressed_unchecked(bytes).into();
    point.map(G2Projective::from)
}

pub(super) fn bytes(point: &G2Projective) -> [u8; 96] {
    point.to_affine().to_compressed()
}

pub(super) fn generator() -> G2Projective {
    G2Projective::generator()
}

/// A scalar below the order of the group that is not zero, from a stream of bytes.
pub(super) fn scalar(stream: &mut blake3::OutputReader) -> Scalar {
    loop {
        let mut bytes = [0; 32];
        stream.fill(&mut bytes);
        // The order has 255 bits: about half of all tries succeed.
        bytes[31] &= 0x7f;
        let scalar: Option<Scalar> = Scalar::from_bytes_le(&bytes).into();
        if let Some(scalar) = scalar.filter(|scalar| !bool::from(scalar.is_zero())) {
            return scalar;
        }
    }
}

pub(super) fn read_scalar(bytes: &[u8; 32]) -> Option<Scalar> {
    Scalar::from_bytes_le(bytes).into()
}

/// The point of the polynomial where a member's share is: never zero, where the secret is.
pub(super) fn place(member: u8) -> Scalar {
    Scalar::from(u64::from(member) + 1)
}

/// The value of a polynomial at a member's place.
pub(super) fn evaluate(coefficients: &[Scalar], member: u8) -> Scalar {
    coefficients.iter().rev().fold(Scalar::ZERO, |sum, coefficient| sum * place(member) + coefficient)
}

/// The same in the exponent.
pub(super) fn evaluate_points(commitments: &[G2Projective], member: u8) -> G2Projective {
    commitments.iter().rev().fold(G2Projective::identity(), |sum, point| sum * place(member) + point)
}

/// The signature under the polynomial's value at zero, from those under its values at the members' places.
pub(super) fn interpolate(parts: &[(u8, BlsSignature)]) -> Option<BlsSignature> {
    let mut sum = G1Projective::identity();
    for (member, signature) in parts {
        let point: Option<G1Affine> = G1Affine::from_compressed(&signature.0).into();
        sum += G1Projective::from(point?) * weight(*member, parts.iter().map(|(other, _)| *other))?;
    }
    Some(BlsSignature(sum.to_affine().to_compressed()))
}

/// The same of the keys of shares.
pub(super) fn interpolate_keys(parts: &[(u8, G2Projective)]) -> Option<G2Projective> {
    let mut sum = G2Projective::identity();
    for (member, key) in parts {
        sum += key * weight(*member, parts.iter().map(|(other, _)| *other))?;
    }
    Some(sum)
}

/// What a member's value counts at zero, among values of these members.
fn weight(member: u8, all: impl Iterator<Item = u8>) -> Option<Scalar> {
    let others = all.filter(|other| *other != member);
    let (over, under) = others.fold((Scalar::ONE, Scalar::ONE), |(over, under), other| {
        (over * place(other), under * (place(other) - place(member)))
    });
    let inverse: Option<Scalar> = under.invert().into();
    Some(over * inverse?)
}
