//! What a host reads from the ledger for a root.

use ledger::{BustReason, FillVerdict, HolderStanding, Ledger};
use primitives::venue::OrderNumber;
use venue::{FillBust, FillFate, FreezableAsset, KeyStanding, OperatorStanding, VenueFact, VenueStanding};

use crate::terms::*;

/// All standings of the ledger, as a host reads them.
pub fn standings(ledger: &Ledger) -> Vec<VenueFact> {
    let venues = ledger.venues().expect("the chain has venues");
    let mut facts = Vec::new();
    if let Some(venue) = venues.get(VENUE) {
        facts.push(VenueFact::Venue(VenueStanding {
            incarnation: venue.incarnation,
            operator: venue.operator,
            is_convicted: venue.judged > venue.incarnation,
            fee_cap_ppm: venue.fee_cap_ppm,
            settled: venue.fills.count(),
            bond: venue.bond,
            entries: venue.entries,
        }));
    }
    let listed = [MARKET, FINE].into_iter().filter_map(|market| Some((market, *venues.market(VENUE, market)?)));
    facts.extend(listed.map(|(market, terms)| VenueFact::Market(market, terms)));
    let operator = venues.get(VENUE).map_or(operator(), |venue| venue.operator);
    let account = ledger.accounts().get(&operator.account).expect("it has units");
    let (balance, highest) = (account.balance(USD), account.window().highest());
    let is_used = |behind: &u64| highest.checked_sub(*behind).is_some_and(|of| account.window().check(of).is_err());
    let used = (0..64).filter(is_used).fold(0, |used, behind| used | 1 << behind);
    facts.push(VenueFact::Operator(OperatorStanding { account: operator.account, balance, highest, used }));
    facts.extend([VenueFact::Rules(ledger.next_rules()), VenueFact::Fee(ledger.dearest_fee())]);
    facts.extend(controls(ledger));
    for person in 1..=8 {
        for asset in [USD, EUR] {
            let of = venues.deposit(VENUE, &address(person), asset);
            let leaving = of.leaving.map_or(0, |leaving| leaving.units);
            facts.push(VenueFact::Deposit { account: address(person), asset, free: of.free, leaving });
        }
        if let Some(of) = venues.key(VENUE, &public(person)) {
            let in_force = of.raises.iter().filter(|(since, _)| venues.horizon().is_past(*since));
            let floor = in_force.map(|(_, floor)| *floor).fold(of.floor, OrderNumber::max);
            facts.push(VenueFact::Key(
                public(person),
                KeyStanding {
                    owner: of.owner,
                    mandate: of.mandate.clone(),
                    net: of.net.clone(),
                    is_revoked: of.revoked.is_some(),
                    floor,
                    raised: of.raises.iter().map(|(_, floor)| *floor).fold(floor, OrderNumber::max),
                },
            ));
        }
    }
    facts
}

/// What issuers control, and what they have said of the people.
fn controls(ledger: &Ledger) -> Vec<VenueFact> {
    let controls = ledger.controls();
    let asset = |(asset, control): (primitives::AssetId, primitives::AssetControl)| {
        let issuer = controls.issuer(asset).expect("it is controlled");
        VenueFact::Controlled(asset, FreezableAsset { issuer, admits: control.admits() })
    };
    let owner = ledger.venues().and_then(|venues| venues.get(VENUE)).map(|venue| VenueFact::Owner(venue.owner));
    // A host tells it of who has a key, or owns the venue.
    let venues = ledger.venues().expect("the chain has venues");
    let is_here = |person: &u8| *person == OWNER || venues.key(VENUE, &public(*person)).is_some();
    let people = (1..=8).filter(is_here).map(address);
    let all = people.flat_map(|account| controls.assets().into_iter().map(move |(asset, _)| (asset, account)));
    // Who was frozen and is as others again has no record: that it is open is told, too.
    let said =
        all.filter(|(asset, account)| controls.record(*asset, account).is_some() || !controls.control(*asset).admits());
    let holder = |(asset, account): (primitives::AssetId, primitives::Address)| {
        let is_open = controls.standing(asset, &account) == HolderStanding::Open;
        VenueFact::Holder { asset, account, is_open }
    };
    controls.assets().into_iter().map(asset).chain(owner).chain(said.map(holder)).collect()
}

pub fn fate(verdict: &FillVerdict) -> FillFate {
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
