//! Checks the whole state from scratch: the invariants that each block asserts of its changes, here for all balances
//! and offers.

use primitives::{Amount, AssetId, MAX_ISSUED};
use proofs::Asset;

use crate::places::controls::HeldOffers;
use crate::places::unsound::AuditError;
use crate::places::{Audited, Places};
use crate::sessions::{SlotId, SlotOffers};

/// All existing units of one asset, by where they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// The places of custody, each with what it holds. Spendable balances and units that resting offers lock come
    /// first. Then come whole units that remainders of wei add up to (burnt wei that are carried included), and escrow
    /// of the payment lane with deposits of its open cases. Stakes with units being paid back and the pool of rewards,
    /// deposits at venues, and bonds are the last.
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

/// Sums what every place holds, and compares the sums with what is issued; one entry per asset. The index of session
/// keys' offers is compared with what accounts and offers make of it, that of controlled offers with controls and
/// offers.
pub(crate) fn audit(
    places: &Places,
    slots: &SlotOffers,
    held_offers: &HeldOffers,
    audited: &Audited<'_>,
) -> Result<Vec<Audit>, AuditError> {
    let held = places.held(audited)?;
    if !slots_of(places)?.is_same(slots) {
        return Err(AuditError::Sessions);
    }
    if !HeldOffers::of(&places.controls, &places.book).is_same(held_offers) {
        return Err(AuditError::HeldOffers);
    }
    let of_asset = |number: usize| held.iter().map(move |(name, sums)| (*name, sums[number])).collect();
    let asset = |(number, asset): (usize, &Asset)| audit_asset(AssetId(number as u32), of_asset(number), asset.issued);
    audited.assets.iter().enumerate().map(asset).collect()
}

/// The offers of session keys, from accounts and offers.
///
/// # Errors
/// [`AuditError::Book`] names the pair with an offer of a slot that its account does not have.
pub(crate) fn slots_of(places: &Places) -> Result<SlotOffers, AuditError> {
    let alive = |(account, slot): SlotId| Some(places.accounts.get(&account)?.session(slot)?.alive);
    SlotOffers::of(&places.book, alive).map_err(AuditError::Book)
}

fn audit_asset(asset: AssetId, places: Vec<(&'static str, u128)>, issued: Amount) -> Result<Audit, AuditError> {
    let held = places.iter().try_fold(0u128, |sum, (_, units)| sum.checked_add(*units));
    if held != Some(issued.into()) || issued > MAX_ISSUED {
        return Err(AuditError::Conservation { asset, places, issued });
    }
    Ok(Audit { places: places.into_iter().map(|(name, units)| (name, units as Amount)).collect(), issued })
}
