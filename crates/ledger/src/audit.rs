//! Checks the whole state from scratch: the invariants that each block asserts of its changes, here for all balances
//! and offers.

use primitives::{Amount, AssetId, MAX_ISSUED};

use crate::Ledger;
use crate::places::Audited;
use crate::places::offers::Pair;

/// All existing units of one asset, by where they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// The places of custody, each with what it holds: spendable balances, units that resting offers lock, whole units
    /// that remainders of wei add up to (burnt wei that are carried included), escrow of the payment lane and deposits
    /// of its open cases, and stakes with units being paid back and the pool of rewards.
    pub places: Vec<(&'static str, Amount)>,
    /// Issued units; equals the sum over the places.
    pub issued: Amount,
}

impl Audit {
    /// What all places hold but this one.
    pub fn elsewhere(&self, place: &str) -> u128 {
        self.places.iter().filter(|(name, _)| *name != place).map(|(_, units)| u128::from(*units)).sum()
    }
}

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
    #[error("the book of {0:?} is out of order, or contains an offer of zero units or of more than can exist")]
    Book(Pair),
    /// The registry of validators violates an invariant.
    #[error("the registry of validators violates an invariant: {0}")]
    Validators(&'static str),
    /// The payment lane violates an invariant.
    #[error("the bridge to the payment lane violates an invariant: {0}")]
    Lane(&'static str),
}

impl Ledger {
    /// Sums what every place of custody holds, and compares the sums with what is issued; one entry per asset.
    ///
    /// # Errors
    /// [`AuditError`] names the asset, pair or place.
    pub fn audit(&self) -> Result<Vec<Audit>, AuditError> {
        let (assets, accounts) = (self.assets.as_slice(), &self.places.accounts);
        let audited = Audited { assets, accounts, height: self.height, wei_per_unit: self.wei_per_unit() };
        let held = self.places.held(&audited)?;
        let of_asset = |number: usize| held.iter().map(move |(name, sums)| (*name, sums[number])).collect();
        (0..assets.len())
            .map(|number| audit_asset(AssetId(number as u32), of_asset(number), assets[number].issued))
            .collect()
    }
}

fn audit_asset(asset: AssetId, places: Vec<(&'static str, u128)>, issued: Amount) -> Result<Audit, AuditError> {
    let held = places.iter().try_fold(0u128, |sum, (_, units)| sum.checked_add(*units));
    if held != Some(issued.into()) || issued > MAX_ISSUED {
        return Err(AuditError::Conservation { asset, places, issued });
    }
    Ok(Audit { places: places.into_iter().map(|(name, units)| (name, units as Amount)).collect(), issued })
}
