//! How the ledger changes the records of venues, and which of them can be.

use primitives::venue::{EndedIncarnation, FillTree, KeyScope, Mandate, OrderNumber, VenueId};
use primitives::{Address, Amount, AssetId, PublicKey};
use proofs::{FilledId, TradingKey, VenueMoment, VenueRecord};

/// The most raises of a key that are not in force yet.
pub(super) const RAISES_MAX: usize = 4;

/// The id of the entry of an order.
pub(super) fn filled_id(venue: VenueId, key: &PublicKey, number: &OrderNumber) -> FilledId {
    (venue, number.incarnation, *key, number.day, number.reference)
}

/// The number of the order of an entry.
pub(super) fn number_of(id: &FilledId) -> OrderNumber {
    OrderNumber { incarnation: id.1, day: id.3, reference: id.4 }
}

/// The present incarnation of a venue, as a fence in this block ends it.
pub(super) fn ended(venue: &VenueRecord, now: VenueMoment) -> EndedIncarnation {
    EndedIncarnation {
        incarnation: venue.incarnation,
        tree: venue.fills.clone(),
        report_keys: venue.report_keys.clone(),
        height: now.height,
        time_ms: now.time_ms,
    }
}

/// Takes up to this many units from the bond of a venue, and then from what leaves; returns how many.
pub(super) fn forfeit(venue: &mut VenueRecord, units: Amount) -> Amount {
    let from_bond = units.min(venue.bond);
    venue.bond -= from_bond;
    let Some(leaving) = &mut venue.leaving else { return from_bond };
    let from_leaving = (units - from_bond).min(leaving.units);
    leaving.units -= from_leaving;
    if leaving.units == 0 {
        venue.leaving = None;
    }
    from_bond + from_leaving
}

/// Whether a venue that was read can be.
pub(super) fn is_sound_venue(venue: &VenueRecord) -> bool {
    let of = |tree: &FillTree| FillTree::of(tree.count(), tree.peaks().to_vec()).is_some();
    let keys = &venue.report_keys;
    of(&venue.fills)
        && of(&venue.finals)
        && venue.finals.count() == u64::from(venue.incarnation)
        && (1..=primitives::venue::REPORT_KEYS_MAX).contains(&keys.len())
        && keys.contains(&venue.operator.report_key)
        && venue.judged <= venue.incarnation.saturating_add(1)
        && venue.leaving.is_none_or(|leaving| leaving.units > 0)
}

/// A key that has not traded.
pub(super) fn new_key(owner: Address, mandate: Mandate) -> TradingKey {
    let floor = OrderNumber { incarnation: 0, day: 0, reference: 0 };
    TradingKey { owner, mandate, net: Vec::new(), revoked: None, floor, raises: Vec::new() }
}

/// Sets what a key has gained of an asset.
pub(super) fn set_net(key: &mut TradingKey, asset: AssetId, net: i128) {
    match key.net.binary_search_by_key(&asset, |(of, _)| *of) {
        Ok(at) if net == 0 => drop(key.net.remove(at)),
        Ok(at) => key.net[at].1 = net,
        Err(_) if net == 0 => {}
        Err(at) => key.net.insert(at, (asset, net)),
    }
}

/// Whether a key that was read can be.
pub(super) fn is_sound_key(key: &TradingKey) -> bool {
    key.mandate.is_plain()
        && key.mandate.scope == KeyScope::Venue
        && key.net.is_sorted_by(|a, b| a.0 < b.0)
        && key.net.iter().all(|(asset, net)| *net != 0 && *net >= -i128::from(key.mandate.cap(*asset)))
        && key.raises.len() <= RAISES_MAX
        && key.raises.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1)
}
