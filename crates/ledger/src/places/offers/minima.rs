//! The least size of an offer, by the rule of [`clearing::Minima`].
//!
//! The least units of an asset never change on a chain. A genesis needs `least · (μ − ε) ≥ 2` for each asset
//! ([`clearing::least_units`]). Then the band between the two limits of a rate is wider than the two roundings of a
//! fill.

use clearing::TooSmall;
use proofs::Refusal;

/// The reason that the sender of a small offer is told.
pub(crate) fn too_small(small: TooSmall) -> Refusal {
    match small {
        TooSmall::Sells => Refusal::SELLS_TOO_LITTLE,
        TooSmall::Asks => Refusal::ASKS_TOO_LITTLE,
    }
}
