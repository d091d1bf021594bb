//! Shares of opening keys, and how t of them make the keys.

use std::collections::BTreeSet;

use blst::min_sig::SecretKey as Scalar;
use blstrs::{G1Affine, G1Projective};
use group::ff::Field;
use group::{Curve, Group};

use crate::keys::OpeningKey;
use crate::label::Label;
use crate::{SEALING_TAG, SealFault};

/// A seat's share of the committee's secret. Its memory is wiped when it is dropped.
#[derive(Clone)]
pub struct SealShare(Scalar);

impl SealShare {
    /// The share with these bytes, big-endian.
    ///
    /// # Errors
    /// [`SealFault::Share`] if they are zero, or not below the order of the group.
    pub fn parse(bytes: &[u8; 32]) -> Result<SealShare, SealFault> {
        Scalar::from_bytes(bytes).map(SealShare).map_err(|_| SealFault::Share)
    }

    /// Its share of the key of an envelope.
    pub fn of(&self, label: &Label) -> OpeningKey {
        OpeningKey(self.0.sign(&label.0.0, SEALING_TAG, &[]).compress())
    }
}

/// The keys of some envelopes out of shares of t holders: of each holder its place, which counts from 0, and a share of
/// each key, in one order for all. `None` if a place stands twice, the numbers of shares differ, or a share is no point
/// of the curve.
///
/// What comes out is right if all shares are: [`crate::check_keys`] tells.
pub fn combine(parts: &[(u8, Vec<OpeningKey>)]) -> Option<Vec<OpeningKey>> {
    let (_, first) = parts.first()?;
    let places: BTreeSet<u8> = parts.iter().map(|(place, _)| *place).collect();
    if places.len() < parts.len() || parts.iter().any(|(_, shares)| shares.len() != first.len()) {
        return None;
    }
    let weights: Vec<blstrs::Scalar> = parts.iter().map(|(place, _)| weight(*place, &places)).collect();
    let key = |at: usize| {
        let points: Vec<G1Projective> = parts.iter().map(|(_, shares)| point(&shares[at])).collect::<Option<_>>()?;
        let sum = G1Projective::multi_exp(&points, &weights);
        Some(OpeningKey(sum.to_affine().to_compressed()))
    };
    (0..first.len()).map(key).collect()
}

/// A point of the curve; a wrong subgroup shows when the keys are checked.
fn point(share: &OpeningKey) -> Option<G1Projective> {
    let point: Option<G1Affine> = G1Affine::from_compressed_unchecked(&share.0).into();
    point.map(G1Projective::from).filter(|point| !bool::from(point.is_identity()))
}

/// What the share of a place counts in the value of the polynomial at zero. A place is at its number and one: the
/// secret is at zero.
fn weight(place: u8, places: &BTreeSet<u8>) -> blstrs::Scalar {
    let at = |place: u8| blstrs::Scalar::from(u64::from(place) + 1);
    let others = places.iter().filter(|other| **other != place);
    let (over, under) = others.fold((blstrs::Scalar::ONE, blstrs::Scalar::ONE), |(over, under), other| {
        (over * at(*other), under * (at(*other) - at(place)))
    });
    over * Option::<blstrs::Scalar>::from(under.invert()).expect("no two places are alike")
}
