//! How the ledger changes the records of venues, and which of them can be.

use borsh::BorshSerialize;
use primitives::venue::{EndedIncarnation, FillTree, KeyScope, Mandate, OrderNumber, VenueId};
use primitives::{Address, Amount, AssetId, Height, PublicKey};
use proofs::{FilledId, TradingKey, VenueMoment, VenueRecord};
use smallvec::SmallVec;

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

/// A record by its key in the trie, with its value if it exists.
pub(super) type VenueRow = ([u8; 32], Option<[u8; 32]>);

/// What a key has gained of an asset.
pub(super) fn net_of(net: &[(AssetId, i128)], asset: AssetId) -> i128 {
    net.binary_search_by_key(&asset, |(of, _)| *of).map_or(0, |at| net[at].1)
}

/// What a key has gained, by asset; most keys trade one market.
pub(super) type Gains = SmallVec<[(AssetId, i128); 2]>;

/// Sets what a key has gained of an asset.
pub(super) fn set_net(net: &mut Gains, asset: AssetId, gained: i128) {
    match net.binary_search_by_key(&asset, |(of, _)| *of) {
        Ok(at) if gained == 0 => drop(net.remove(at)),
        Ok(at) => net[at].1 = gained,
        Err(_) if gained == 0 => {}
        Err(at) => net.insert(at, (asset, gained)),
    }
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

/// Encodes a key with other gains, floor and raises.
pub(super) fn encode_key_with(
    key: &TradingKey,
    net: &[(AssetId, i128)],
    floor: OrderNumber,
    raises: &[(Height, OrderNumber)],
    to: &mut Vec<u8>,
) {
    let TradingKey { owner, mandate, revoked, .. } = key;
    (owner, mandate, net, revoked, floor, raises).serialize(to).expect("writing to memory cannot fail");
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

#[cfg(test)]
mod tests {
    use primitives::venue::MarketMandate;

    use super::*;

    #[test]
    fn a_key_is_encoded_with_changes_as_the_changed_key_is() {
        let markets = vec![MarketMandate { market: 3, tick_min: 4, tick_max: 5 }];
        let mandate = Mandate { scope: KeyScope::Venue, markets, caps: vec![(AssetId(1), 9)] };
        let number = |reference| OrderNumber { incarnation: 1, day: 2, reference };
        let before = TradingKey { revoked: Some(8), ..new_key(Address([7; 20]), mandate) };
        let (net, floor, raises) = (vec![(AssetId(1), -4)], number(6), vec![(3, number(9))]);
        let mut bytes = Vec::new();
        encode_key_with(&before, &net, floor, &raises, &mut bytes);
        let after = TradingKey { net, floor, raises, ..before };
        assert_eq!(bytes, borsh::to_vec(&after).expect("memory"));
    }
}
