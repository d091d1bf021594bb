//! What is done at a venue, as typed data.
//!
//! | operation | structure |
//! |---|---|
//! | open | `VenueOpen(address account,uint64 sequence,uint64 until,uint32 venue,address operator,bytes32 reportKey,uint32 feeCapPpm,uint64 bond)` |
//! | list | `VenueList(address account,uint64 sequence,uint64 until,uint32 venue,uint32 market,uint32 base,uint32 quote,uint64 lotUnits,uint64 tickUnits,uint32 lotsMax,uint32 feeCapPpm,uint64 penalty)` |
//! | fence | `VenueFence(address account,uint64 sequence,uint64 until,uint32 venue,uint32 incarnation)` |
//! | change the operator | `VenueChangeOperator(address account,uint64 sequence,uint64 until,uint32 venue,address from,bytes32 fromReportKey,address to,bytes32 toReportKey)` |
//! | bond | `VenueBond(address account,uint64 sequence,uint64 until,uint32 venue,uint64 units)` |
//! | withdraw from the bond | `VenueUnbond(address account,uint64 sequence,uint64 until,uint32 venue,uint64 units)` |
//! | deposit | `VenueDeposit(address account,uint64 sequence,uint64 until,uint32 venue,uint32 asset,uint64 units)` |
//! | collect | `VenueCollect(address account,uint64 sequence,uint64 until,uint32 venue,uint32 asset,uint64 units)` |
//! | authorise | `VenueAuthorize(address account,uint64 sequence,uint64 until,uint32 venue,bytes32 key,string scope,VenueMarket[] markets,VenueCap[] caps,bytes possession)VenueCap(uint32 asset,uint64 units)VenueMarket(uint32 market,uint32 lowest,uint32 highest)` |
//! | revoke | `VenueRevoke(address account,uint64 sequence,uint64 until,uint32 venue,bytes32 key)` |
//! | raise a floor | `VenueRaiseFloor(address account,uint64 sequence,uint64 until,uint32 venue,bytes32 key,uint32 incarnation,uint32 day,uint32 reference)` |
//! | settle | `VenueSettle(address account,uint64 sequence,uint64 until,uint32 venue,uint32 incarnation,uint64 from,uint32 fills,bytes32 digest)` |
//! | accuse | `VenueAccuse(address account,uint64 sequence,uint64 until,uint32 venue,uint32 incarnation,uint64 index,address reported,bytes32 digest)` |
//! | claim | `VenueClaim(address account,uint64 sequence,uint64 until,uint32 venue,uint32 incarnation,uint64 index,address reported,bytes32 digest)` |
//!
//! A *scope* is the name of [`crate::venue::KeyScope`]. A *digest* is the Keccak hash of the operation's bytes: settles
//! have up to a megabyte, and evidence has reports, orders and paths that no person reads; what they are about is
//! shown.

use super::{TypedList, TypedValue};
use crate::hash::keccak256;
use crate::venue::{FillReport, Mandate, Settle, VenueId, VenueOperation, VenueOperator};
use crate::{AssetId, PublicKey};

type Field = (&'static str, TypedValue);
type Structure = (&'static str, Vec<Field>);

fn uint32(name: &'static str, number: u32) -> Field {
    (name, TypedValue::Uint32(number))
}

fn uint64(name: &'static str, number: u64) -> Field {
    (name, TypedValue::Uint64(number))
}

fn key(name: &'static str, key: &PublicKey) -> Field {
    (name, TypedValue::Bytes32(key.0))
}

fn digest(operation: &VenueOperation) -> Field {
    let bytes = borsh::to_vec(operation).expect("writing to memory cannot fail");
    ("digest", TypedValue::Bytes32(keccak256(&bytes)))
}

/// The name and the fields of an operation's structure, without those that every transaction has.
pub(super) fn structure(operation: &VenueOperation) -> Structure {
    let (name, mut fields, venue) = match operation {
        VenueOperation::Open { venue, operator, fee_cap_ppm, bond } => {
            let mut fields = operated(["operator", "reportKey"], operator);
            fields.extend([uint32("feeCapPpm", *fee_cap_ppm), uint64("bond", *bond)]);
            ("VenueOpen", fields, *venue)
        }
        VenueOperation::List { venue, market, terms } => {
            let pair = [uint32("market", *market), uint32("base", terms.base.0), uint32("quote", terms.quote.0)];
            let sizes = [uint64("lotUnits", terms.lot_units), uint64("tickUnits", terms.tick_units)];
            let limits = [uint32("lotsMax", terms.lots_max), uint32("feeCapPpm", terms.fee_cap_ppm)];
            let fields = pair.into_iter().chain(sizes).chain(limits).chain([uint64("penalty", terms.penalty)]);
            ("VenueList", fields.collect(), *venue)
        }
        VenueOperation::Fence { venue, incarnation } => {
            ("VenueFence", vec![uint32("incarnation", *incarnation)], *venue)
        }
        VenueOperation::ChangeOperator { venue, from, to } => {
            let mut fields = operated(["from", "fromReportKey"], from);
            fields.extend(operated(["to", "toReportKey"], to));
            ("VenueChangeOperator", fields, *venue)
        }
        VenueOperation::Bond { venue, units } => ("VenueBond", vec![uint64("units", *units)], *venue),
        VenueOperation::Unbond { venue, units } => ("VenueUnbond", vec![uint64("units", *units)], *venue),
        VenueOperation::Deposit { venue, asset, units } => ("VenueDeposit", money(*asset, *units), *venue),
        VenueOperation::Collect { venue, asset, units } => ("VenueCollect", money(*asset, *units), *venue),
        VenueOperation::Authorize { venue, key: public, mandate, possession } => {
            let mut fields = vec![key("key", public)];
            fields.extend(mandated(mandate));
            fields.push(("possession", TypedValue::Bytes(possession.0.to_vec())));
            ("VenueAuthorize", fields, *venue)
        }
        VenueOperation::Revoke { venue, key: public } => ("VenueRevoke", vec![key("key", public)], *venue),
        VenueOperation::RaiseFloor { venue, key: public, floor } => {
            let day = uint32("day", floor.day.into());
            let number = [uint32("incarnation", floor.incarnation), day, uint32("reference", floor.reference)];
            ("VenueRaiseFloor", [key("key", public)].into_iter().chain(number).collect(), *venue)
        }
        VenueOperation::Settle(settle) => ("VenueSettle", settled(settle, operation), settle.venue),
        VenueOperation::Accuse(evidence) => {
            ("VenueAccuse", reported(&evidence.report, operation), evidence.report.venue)
        }
        VenueOperation::Claim(claim) => ("VenueClaim", reported(&claim.report, operation), claim.report.venue),
    };
    fields.insert(0, at(venue));
    (name, fields)
}

fn at(venue: VenueId) -> Field {
    uint32("venue", venue)
}

fn money(asset: AssetId, units: u64) -> Vec<Field> {
    vec![uint32("asset", asset.0), uint64("units", units)]
}

fn operated([account, report_key]: [&'static str; 2], operator: &VenueOperator) -> Vec<Field> {
    vec![(account, TypedValue::Address(operator.account)), key(report_key, &operator.report_key)]
}

fn mandated(mandate: &Mandate) -> [Field; 3] {
    use TypedValue::{Uint32, Uint64};
    let markets = mandate.markets.iter().map(|of| [of.market, of.tick_min, of.tick_max].map(Uint32).to_vec());
    let caps = mandate.caps.iter().map(|(asset, units)| vec![Uint32(asset.0), Uint64(*units)]);
    let markets = TypedList {
        structure: "VenueMarket",
        kind: "VenueMarket[]",
        fields: &[("market", "uint32"), ("lowest", "uint32"), ("highest", "uint32")],
        entries: markets.collect(),
    };
    let caps = TypedList {
        structure: "VenueCap",
        kind: "VenueCap[]",
        fields: &[("asset", "uint32"), ("units", "uint64")],
        entries: caps.collect(),
    };
    let scope = TypedValue::Text(mandate.scope.name().into());
    [("scope", scope), ("markets", TypedValue::List(markets)), ("caps", TypedValue::List(caps))]
}

fn settled(settle: &Settle, operation: &VenueOperation) -> Vec<Field> {
    let fills = u32::try_from(settle.fills.len()).unwrap_or(u32::MAX);
    let place = [uint32("incarnation", settle.incarnation), uint64("from", settle.from), uint32("fills", fills)];
    place.into_iter().chain([digest(operation)]).collect()
}

fn reported(report: &FillReport, operation: &VenueOperation) -> Vec<Field> {
    let to = ("reported", TypedValue::Address(report.account));
    vec![uint32("incarnation", report.incarnation), uint64("index", report.index), to, digest(operation)]
}
