//! Venues of continuous markets in JSON.

use std::collections::BTreeMap;

use api::{
    EndedBody, FillTreeBody, FilledOrderBody, LeavingBondBody, LeavingDepositBody, NetBody, RaiseBody, SettledBody,
    SettledFillBody, TradingKeyBody, VenueBody, VenueCustodyBody, VenueDepositBody, VenueTermsBody,
};
use ledger::{
    BustGuilt, BustReason, DepositId, FillVerdict, FilledOrder, SettledFills, TradingKey, TradingKeyId, VenueDeposit,
    VenueRecord, VenueTerms, Venues,
};
use primitives::venue::{FillTree, OrderNumber, VenueId};
use primitives::{AssetId, Digest};
use readers::venues::EndedHistory;

use super::Symbols;
use super::operations::{order_number, venue_operator};

/// The terms of all venues.
pub fn venue_terms(terms: &VenueTerms) -> VenueTermsBody {
    VenueTermsBody {
        delay_heights: terms.delay.heights,
        delay_ms: terms.delay.ms,
        bond_min: terms.bond_min.to_string(),
        bond_delay_heights: terms.bond_delay.heights,
        bond_delay_ms: terms.bond_delay.ms,
        settle_bytes: terms.settle_bytes,
        entries_max: terms.entries_max.to_string(),
        penalty_min: terms.penalty_min.to_string(),
        venues_max: terms.venues_max,
        life_max_heights: terms.life_max,
    }
}

fn tree(tree: &FillTree) -> FillTreeBody {
    FillTreeBody { count: tree.count().to_string(), peaks: tree.peaks().iter().map(Digest::to_string).collect() }
}

/// A venue.
pub fn venue(number: VenueId, record: &VenueRecord) -> VenueBody {
    let leaving = record.leaving.map(|leaving| LeavingBondBody {
        units: leaving.units.to_string(),
        since_height: leaving.since.height,
        since_ms: leaving.since.time_ms,
    });
    VenueBody {
        venue: number,
        owner: record.owner.to_string(),
        operator: venue_operator(&record.operator),
        fee_cap_ppm: record.fee_cap_ppm,
        incarnation: record.incarnation,
        judged: record.judged,
        is_convicted: record.judged > record.incarnation,
        report_keys: record.report_keys.iter().map(ToString::to_string).collect(),
        fills: tree(&record.fills),
        finals: tree(&record.finals),
        bond: record.bond.to_string(),
        leaving,
        markets: record.markets,
        entries: record.entries.to_string(),
    }
}

/// What is filled of an order.
pub fn filled_order(number: &OrderNumber, filled: &FilledOrder) -> FilledOrderBody {
    FilledOrderBody {
        number: order_number(number),
        digest: filled.digest.to_string(),
        lots: filled.lots,
        quote: filled.quote.to_string(),
        fee: filled.fee.to_string(),
        expiry: filled.expiry.to_string(),
    }
}

/// The verdict of a fill.
pub fn settled_fill(index: u64, leaf: &Digest, verdict: &FillVerdict) -> SettledFillBody {
    let (verdict, why) = match verdict {
        FillVerdict::Applied => ("applied", None),
        FillVerdict::Bust(reason, guilt) => ("bust", Some((reason_name(*reason), guilt_name(*guilt)))),
    };
    let (reason, guilt) = why.map(|(reason, guilt)| (reason.into(), guilt.into())).unzip();
    SettledFillBody { index: index.to_string(), leaf: leaf.to_string(), verdict: verdict.into(), reason, guilt }
}

fn reason_name(reason: BustReason) -> &'static str {
    match reason {
        BustReason::Parties => "parties",
        BustReason::Dead => "dead",
        BustReason::Expired => "expired",
        BustReason::Outside => "outside",
        BustReason::Size => "size",
        BustReason::Deposit => "deposit",
        BustReason::Drawdown => "drawdown",
        BustReason::Frozen => "frozen",
    }
}

fn guilt_name(guilt: BustGuilt) -> &'static str {
    match guilt {
        BustGuilt::Nobody => "nobody",
        BustGuilt::Buyer => "buyer",
        BustGuilt::Seller => "seller",
        BustGuilt::Both => "both",
    }
}

/// A settle that counted.
pub fn settled(settled: &SettledFills) -> SettledBody {
    let fills = (settled.from..).zip(settled.leaves.iter().zip(&settled.verdicts));
    SettledBody {
        venue: settled.venue,
        incarnation: settled.incarnation,
        fills: fills.map(|(index, (leaf, verdict))| settled_fill(index, leaf, verdict)).collect(),
    }
}

/// An ended incarnation.
pub fn ended(ended: &EndedHistory) -> EndedBody {
    EndedBody {
        incarnation: ended.incarnation,
        report_keys: ended.report_keys.iter().map(ToString::to_string).collect(),
        fence_height: ended.fence.height,
        fence_ms: ended.fence.time_ms,
    }
}

impl Symbols {
    /// What all venues hold in custody; only assets of which they hold some.
    pub fn venue_custody(&self, venues: &Venues) -> Vec<VenueCustodyBody> {
        let mut held: BTreeMap<AssetId, (u128, u128)> =
            venues.deposited().iter().map(|(asset, units)| (*asset, (*units, 0))).collect();
        held.entry(AssetId(0)).or_default().1 = venues.bonds();
        let some = held.into_iter().filter(|(_, (deposits, bonds))| deposits + bonds > 0);
        some.map(|(asset, (deposits, bonds))| VenueCustodyBody {
            asset: self.name(asset),
            deposits: deposits.to_string(),
            bonds: bonds.to_string(),
        })
        .collect()
    }

    /// A deposit; `venues` say whether what leaves is owed.
    pub fn venue_deposit(&self, id: &DepositId, deposit: &VenueDeposit, venues: &Venues) -> VenueDepositBody {
        let leaving = deposit.leaving.map(|leaving| LeavingDepositBody {
            units: leaving.units.to_string(),
            since_height: leaving.since,
            is_owed: venues.horizon().is_past(leaving.since),
        });
        let (venue, account, asset) = *id;
        VenueDepositBody {
            venue,
            account: account.to_string(),
            asset: self.name(asset),
            free: deposit.free.to_string(),
            leaving,
        }
    }

    /// A trading key.
    pub fn trading_key(&self, (venue, public): &TradingKeyId, key: &TradingKey, venues: &Venues) -> TradingKeyBody {
        let net = key.net.iter().map(|(asset, units)| NetBody { asset: self.name(*asset), units: units.to_string() });
        let raise =
            |(since, floor): &(u64, OrderNumber)| RaiseBody { since_height: *since, floor: order_number(floor) };
        TradingKeyBody {
            venue: *venue,
            key: public.to_string(),
            account: key.owner.to_string(),
            mandate: self.mandate(&key.mandate),
            net: net.collect(),
            revoked_height: key.revoked,
            is_dead: key.revoked.is_some_and(|since| venues.horizon().is_past(since)),
            floor: order_number(&key.floor),
            raises: key.raises.iter().map(raise).collect(),
        }
    }
}
