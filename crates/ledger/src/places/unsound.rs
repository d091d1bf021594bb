//! The invariants of a state that an audit can find violated.

use primitives::{Amount, AssetId};
use proofs::Pair;

/// An invariant that is violated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuditError {
    /// Units appeared or vanished.
    #[error("asset {asset}: the places hold {places:?}, which is not the issue of {issued}")]
    Conservation {
        /// The asset.
        asset: AssetId,
        /// The places, each with what it holds.
        places: Vec<(&'static str, u128)>,
        /// Issued units.
        issued: Amount,
    },
    /// Remainders of wei do not add up to whole units, or one of them is a whole unit by itself.
    #[error("{0} wei in remainders: with carried wei they are not whole units, or one remainder is too large")]
    Wei(u128),
    /// Code is stored that no account has, code is missing, or there are contracts on a chain without them.
    #[error("the stored code of contracts is not the code that accounts name")]
    Code,
    /// A balance or an offer is in an asset that is not listed.
    #[error("asset {0} is held or offered, but not listed")]
    UnknownAsset(AssetId),
    /// The offers of a pair are out of order, or one is empty or larger than can exist.
    #[error(
        "the book of {0:?} is out of order, contains an offer of zero units or of more than can exist, or one of no session key"
    )]
    Book(Pair),
    /// The derived index of session keys' offers is not what accounts and offers make of it.
    #[error("the index of session keys' offers is wrong: start again from a snapshot and report this as a bug")]
    Sessions,
    /// The registry of validators violates an invariant.
    #[error("the registry of validators violates an invariant: {0}")]
    Validators(&'static str),
    /// The payment lane violates an invariant.
    #[error("the bridge to the payment lane violates an invariant: {0}")]
    Lane(&'static str),
    /// The pools violate an invariant.
    #[error("the pools violate an invariant: {0}")]
    Pools(&'static str),
    /// The charter violates an invariant.
    #[error("the charter violates an invariant: {0}")]
    Charter(&'static str),
    /// The policies of accounts violate an invariant.
    #[error("the keys of accounts violate an invariant: {0}")]
    Keys(&'static str),
    /// The listings violate an invariant.
    #[error("the terms of assets violate an invariant: {0}")]
    Listings(&'static str),
    /// The controls of assets violate an invariant.
    #[error("the controls of assets violate an invariant: {0}")]
    Controls(&'static str),
    /// The sealing keys violate an invariant.
    #[error("the sealing keys violate an invariant: {0}")]
    Seals(&'static str),
    /// The derived index of offers of controlled assets is not what controls and offers make of it.
    #[error("the index of controlled offers is wrong: start again from a snapshot and report this as a bug")]
    HeldOffers,
    /// The venues violate an invariant.
    #[error("the venues violate an invariant: {0}")]
    Venues(&'static str),
}
