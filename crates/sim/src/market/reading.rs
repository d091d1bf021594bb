//! What a host reads from the ledger for a root.

use std::sync::Arc;

use ledger::{BustReason, FillVerdict, Ledger, SettledFills, VenueRecordId, Venues};
use primitives::venue::OrderNumber;
use primitives::{Address, PublicKey};
use venue::{FillBust, FillFate, KeyStanding, OperatorStanding, VenueFact, VenueStanding};

use super::people::{OPERATOR, USD, VENUE, address};

/// What the state says, as far as it differs from an earlier one; all of it if there is none.
pub(super) fn facts_since(ledger: &Ledger, before: Option<&Venues>) -> Vec<VenueFact> {
    let venues = of(ledger);
    let ids = before.map_or_else(|| all(&venues), |before| venues.changes_since(before, VENUE));
    ids.iter().filter_map(|id| fact(&venues, id)).chain([operator(ledger)]).collect()
}

/// The venues of a ledger.
pub(super) fn of(ledger: &Ledger) -> Arc<Venues> {
    ledger.shared_venues().expect("the chain has venues")
}

fn all(venues: &Venues) -> Vec<VenueRecordId> {
    let markets = venues.markets_from(VENUE, 0).map(|(market, _)| VenueRecordId::Market(VENUE, market));
    let deposits = venues.deposits_from(VENUE, (Address([0; 20]), USD)).map(|(id, _)| VenueRecordId::Deposit(*id));
    let keys = venues.keys_of(VENUE).map(|(key, _)| VenueRecordId::Key((VENUE, *key)));
    [VenueRecordId::Venue(VENUE)].into_iter().chain(markets).chain(deposits).chain(keys).collect()
}

fn fact(venues: &Venues, id: &VenueRecordId) -> Option<VenueFact> {
    Some(match id {
        VenueRecordId::Venue(venue) => VenueFact::Venue(venue_of(venues.get(*venue)?)),
        VenueRecordId::Market(venue, market) => VenueFact::Market(*market, *venues.market(*venue, *market)?),
        VenueRecordId::Deposit((venue, account, asset)) => {
            let of = venues.deposit(*venue, account, *asset);
            let leaving = of.leaving.map_or(0, |leaving| leaving.units);
            VenueFact::Deposit { account: *account, asset: *asset, free: of.free, leaving }
        }
        VenueRecordId::Key((_, key)) => VenueFact::Key(*key, key_of(venues, key)?),
        VenueRecordId::Filled(_) | VenueRecordId::Claimed(_) => return None,
    })
}

fn venue_of(of: &ledger::VenueRecord) -> VenueStanding {
    VenueStanding {
        incarnation: of.incarnation,
        operator: of.operator,
        is_convicted: of.judged > of.incarnation,
        fee_cap_ppm: of.fee_cap_ppm,
        settled: of.fills.count(),
        bond: of.bond,
        entries: of.entries,
    }
}

fn key_of(venues: &Venues, key: &PublicKey) -> Option<KeyStanding> {
    let of = venues.key(VENUE, key)?;
    let in_force = of.raises.iter().filter(|(since, _)| venues.horizon().is_past(*since));
    let floor = in_force.map(|(_, floor)| *floor).fold(of.floor, OrderNumber::max);
    let raised = of.raises.iter().map(|(_, floor)| *floor).fold(floor, OrderNumber::max);
    let (mandate, net) = (of.mandate.clone(), of.net.clone());
    Some(KeyStanding { owner: of.owner, mandate, net, is_revoked: of.revoked.is_some(), floor, raised })
}

fn operator(ledger: &Ledger) -> VenueFact {
    let account = address(OPERATOR);
    let of = ledger.accounts().get(&account).expect("it has units");
    let highest = of.window().highest();
    let is_used = |behind: &u64| highest.checked_sub(*behind).is_some_and(|number| of.window().check(number).is_err());
    let used = (0..64).filter(is_used).fold(0, |used, behind| used | 1 << behind);
    VenueFact::Operator(OperatorStanding { account, balance: of.balance(USD), highest, used })
}

/// A settle that counted.
pub(super) fn settled(of: &SettledFills) -> VenueFact {
    VenueFact::Settled {
        incarnation: of.incarnation,
        from: of.from,
        leaves: of.leaves.clone(),
        fates: of.verdicts.iter().map(fate).collect(),
    }
}

/// What became of a fill.
pub(super) fn fate(verdict: &FillVerdict) -> FillFate {
    match verdict {
        FillVerdict::Applied => FillFate::Applied,
        FillVerdict::Bust(reason, _) => FillFate::Bust(match reason {
            BustReason::Parties => FillBust::Parties,
            BustReason::Dead => FillBust::Dead,
            BustReason::Expired => FillBust::Expired,
            BustReason::Outside => FillBust::Outside,
            BustReason::Size => FillBust::Size,
            BustReason::Deposit => FillBust::Deposit,
            BustReason::Drawdown => FillBust::Drawdown,
        }),
    }
}
