//! The facts that a root gets from the ledger: records of its venue that changed from one state to the next. The node's
//! host and the simulator read them here.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::{FillBust, FillFate, FreezableAsset, KeyStanding, OperatorStanding, VenueFact, VenueStanding};
use ledger::{BustReason, Controls, FillVerdict, HolderStanding, SettledFills, VenueRecordId, Venues};
use primitives::venue::{OrderNumber, VenueId};
use primitives::{Address, Amount, AssetControl, AssetId};

/// The state after a block, as far as a venue needs it. It is shared with the ledger and costs next to nothing.
#[derive(Clone)]
pub struct ChainState {
    /// All venues, with height and time.
    pub venues: Arc<Venues>,
    /// What issuers control, and what they have said of holders.
    pub controls: Arc<Controls>,
    /// The account of the operator, if it exists.
    pub operator: Option<OperatorStanding>,
    /// The rules of the next block.
    pub rules: u32,
    /// What a unit of weight costs at most, now or under what has passed: a pool reserves as much.
    pub fee: Amount,
}

impl ChainState {
    /// The state of a ledger, with the standing of an account; `None` on a chain without venues.
    pub fn of(ledger: &ledger::Ledger, operator: &Address) -> Option<ChainState> {
        let (operator, rules, fee) = (operator_of(ledger, operator), ledger.next_rules(), ledger.dearest_fee());
        let controls = ledger.shared_controls();
        Some(ChainState { venues: ledger.shared_venues()?, controls, operator, rules, fee })
    }

    /// The height.
    pub fn height(&self) -> u64 {
        self.venues.horizon().height()
    }

    /// The block's time.
    pub fn time_ms(&self) -> u64 {
        self.venues.horizon().time_ms()
    }
}

/// What an account can spend, and which of its numbers are used.
fn operator_of(ledger: &ledger::Ledger, account: &Address) -> Option<OperatorStanding> {
    let of = ledger.accounts().get(account)?;
    let (balance, highest) = (of.balance(AssetId(0)), of.window().highest());
    let is_used = |behind: &u64| highest.checked_sub(*behind).is_some_and(|number| of.window().check(number).is_err());
    let used = (0..64).filter(is_used).fold(0, |used, behind| used | 1 << behind);
    Some(OperatorStanding { account: *account, balance, highest, used })
}

/// What a state says of a venue, as far as it differs from an earlier one; all of it if there is none.
pub fn facts_since(state: &ChainState, before: Option<&ChainState>, venue: VenueId) -> Vec<VenueFact> {
    let venues = &state.venues;
    let ids = match before {
        Some(before) => venues.changes_since(&before.venues, venue),
        None => all_of(venues, venue),
    };
    let mut facts: Vec<VenueFact> = ids.iter().filter_map(|id| fact(venues, id)).collect();
    let known = before.and_then(|before| before.operator);
    facts.extend(state.operator.filter(|operator| known != Some(*operator)).map(VenueFact::Operator));
    // A root that an older program ran does not know them, whatever changed.
    facts.extend([VenueFact::Rules(state.rules), VenueFact::Fee(state.fee)]);
    if !state.controls.is_empty() {
        facts.extend(controls_since(state, before, (venue, &ids)));
    }
    facts
}

/// What a state says of the venue's owner, of controlled assets and of their holders, as far as an earlier one does
/// not; `changed` are the venue's records that are not those of the earlier state.
fn controls_since(
    state: &ChainState,
    before: Option<&ChainState>,
    (venue, changed): (VenueId, &[VenueRecordId]),
) -> Vec<VenueFact> {
    let (controls, venues) = (&state.controls, &state.venues);
    let Some(owner) = venues.get(venue).map(|of| of.owner) else { return Vec::new() };
    // A root that heard of a chain without controls knows nothing of them.
    let told = before.filter(|before| !before.controls.is_empty());
    let is_told = |asset: AssetId| told.is_some_and(|told| told.controls.issuer(asset).is_some());
    let asset = |(asset, control): (AssetId, AssetControl)| {
        let issuer = controls.issuer(asset).filter(|_| !is_told(asset))?;
        Some(VenueFact::Controlled(asset, FreezableAsset { issuer, admits: control.admits() }))
    };
    let mut facts: Vec<VenueFact> = controls.assets().into_iter().filter_map(asset).collect();
    if told.is_none() || changed.contains(&VenueRecordId::Venue(venue)) {
        facts.push(VenueFact::Owner(owner));
    }
    let holders = match told {
        None => holders_here(controls, venues.keys_of(venue).map(|(_, key)| key.owner).chain([owner]).collect()),
        Some(told) => {
            let new_owner = |id: &VenueRecordId| match id {
                VenueRecordId::Key((of, key)) if told.venues.key(*of, key).is_none() => venues.key(*of, key),
                _ => None,
            };
            let new = changed.iter().filter_map(new_owner).map(|key| key.owner).collect();
            [controls.changes_since(&told.controls), holders_here(controls, new)].concat()
        }
    };
    facts.extend(holders.into_iter().map(|(asset, account)| {
        let is_open = controls.standing(asset, &account) == HolderStanding::Open;
        VenueFact::Holder { asset, account, is_open }
    }));
    facts
}

/// The holders among these accounts of whom issuers have said something.
fn holders_here(controls: &Controls, accounts: BTreeSet<Address>) -> Vec<(AssetId, Address)> {
    let assets = if accounts.is_empty() { Vec::new() } else { controls.assets() };
    let all = accounts.iter().flat_map(|account| assets.iter().map(|(asset, _)| (*asset, *account)));
    all.filter(|(asset, account)| controls.record(*asset, account).is_some()).collect()
}

/// The records of a venue.
fn all_of(venues: &Venues, venue: VenueId) -> Vec<VenueRecordId> {
    let markets = venues.markets_from(venue, 0).map(|(market, _)| VenueRecordId::Market(venue, market));
    let deposits = venues.deposits_from(venue, (Address([0; 20]), AssetId(0)));
    let deposits = deposits.map(|(id, _)| VenueRecordId::Deposit(*id));
    let keys = venues.keys_of(venue).map(|(key, _)| VenueRecordId::Key((venue, *key)));
    [VenueRecordId::Venue(venue)].into_iter().chain(markets).chain(deposits).chain(keys).collect()
}

fn fact(venues: &Venues, id: &VenueRecordId) -> Option<VenueFact> {
    Some(match id {
        VenueRecordId::Venue(venue) => {
            let of = venues.get(*venue)?;
            VenueFact::Venue(VenueStanding {
                incarnation: of.incarnation,
                operator: of.operator,
                is_convicted: of.judged > of.incarnation,
                fee_cap_ppm: of.fee_cap_ppm,
                settled: of.fills.count(),
                bond: of.bond,
                entries: of.entries,
            })
        }
        VenueRecordId::Market(venue, market) => VenueFact::Market(*market, *venues.market(*venue, *market)?),
        VenueRecordId::Deposit((venue, account, asset)) => {
            let of = venues.deposit(*venue, account, *asset);
            let leaving = of.leaving.map_or(0, |leaving| leaving.units);
            VenueFact::Deposit { account: *account, asset: *asset, free: of.free, leaving }
        }
        VenueRecordId::Key((venue, key)) => VenueFact::Key(*key, key_standing(venues, *venue, key)?),
        VenueRecordId::Filled(_) | VenueRecordId::Claimed(_) => return None,
    })
}

/// A key as a root sees it. A raise that comes into force changes no record; roots obey it from its request on.
fn key_standing(venues: &Venues, venue: VenueId, key: &primitives::PublicKey) -> Option<KeyStanding> {
    let of = venues.key(venue, key)?;
    let in_force = of.raises.iter().filter(|(since, _)| venues.horizon().is_past(*since));
    let floor = in_force.map(|(_, floor)| *floor).fold(of.floor, OrderNumber::max);
    let raised = of.raises.iter().map(|(_, floor)| *floor).fold(floor, OrderNumber::max);
    let (mandate, net) = (of.mandate.clone(), of.net.clone());
    Some(KeyStanding { owner: of.owner, mandate, net, is_revoked: of.revoked.is_some(), floor, raised })
}

/// The settles of a venue in a block.
pub fn settles_of(settles: &[SettledFills], venue: VenueId) -> Vec<VenueFact> {
    let of_venue = settles.iter().filter(|settled| settled.venue == venue);
    let fact = |settled: &SettledFills| VenueFact::Settled {
        incarnation: settled.incarnation,
        from: settled.from,
        leaves: settled.leaves.clone(),
        fates: settled.verdicts.iter().map(fate_of).collect(),
    };
    of_venue.map(fact).collect()
}

/// What the ledger's verdict on a fill is to a root.
pub fn fate_of(verdict: &FillVerdict) -> FillFate {
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
            BustReason::Frozen => FillBust::Frozen,
        }),
    }
}
