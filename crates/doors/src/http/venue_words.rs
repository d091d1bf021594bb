//! What an operation at a venue does, for the person who signs it.

use primitives::AssetId;
use primitives::venue::{Contradicting, Mandate, MarketTerms, SignedReport, VenueOperation};

use crate::json::Symbols;

/// The operation in words, without its subject.
pub(super) fn in_words(operation: &VenueOperation, symbols: &Symbols) -> String {
    let bonded = |units| symbols.money(AssetId(0), units);
    match operation {
        VenueOperation::Open { venue, operator, fee_cap_ppm, bond } => format!(
            "opens venue {venue} and owns it; {} settles, the key {} signs reports, fees are at most {}, and {} is its \
             bond, which is lost if a report is false",
            operator.account.checked(),
            operator.report_key,
            percent(*fee_cap_ppm),
            bonded(*bond),
        ),
        VenueOperation::List { venue, market, terms } => listed(*venue, *market, terms, symbols),
        VenueOperation::Fence { venue, incarnation } => {
            format!("ends incarnation {incarnation} of venue {venue}: all of its orders are void at once")
        }
        VenueOperation::ChangeOperator { venue, from, to } => format!(
            "makes {} with the report key {} the operator of venue {venue}, in place of {}",
            to.account.checked(),
            to.report_key,
            from.account.checked(),
        ),
        VenueOperation::Bond { venue, units } => format!("adds {} to the bond of venue {venue}", bonded(*units)),
        VenueOperation::Unbond { venue, units } => {
            format!("withdraws {} from the bond of venue {venue}; it stays liable until it is paid", bonded(*units))
        }
        VenueOperation::Settle(settle) => {
            format!("settles {} fills of venue {} from index {} on", settle.fills.len(), settle.venue, settle.from)
        }
        VenueOperation::Deposit { venue, asset, units } => format!(
            "deposits {} at venue {venue}, where orders of its trading keys can spend it",
            symbols.money(*asset, *units)
        ),
        VenueOperation::Collect { venue, asset, units } => format!(
            "asks for {}, or all that is free, of its deposit at venue {venue}; it is paid once fills of before cannot \
             spend it any more",
            symbols.money(*asset, *units)
        ),
        VenueOperation::Recall { venue, asset, account } => format!(
            "asks for all {} that the frozen holder {} has at venue {venue}, as the issuer; it is paid to the holder once \
             fills of before cannot spend it any more",
            symbols.name(*asset),
            account.checked()
        ),
        VenueOperation::Authorize { venue, key, mandate, .. } => {
            format!("lets the key {key} trade at venue {venue} {}", mandated(mandate, symbols))
        }
        VenueOperation::Revoke { venue, key } => format!("ends the trading key {key} at venue {venue} for ever"),
        VenueOperation::RaiseFloor { venue, key, floor } => format!(
            "voids the orders of the trading key {key} at venue {venue} that are numbered below {}",
            number(floor)
        ),
        VenueOperation::Accuse(evidence) => format!(
            "proves that venue {} reported another fill {} than it settled, which costs its bond",
            evidence.report.venue, evidence.report.index
        ),
        VenueOperation::Claim(claim) => format!(
            "proves that venue {} reported fill {} and never settled it, which costs its bond a penalty",
            claim.report.venue, claim.report.index
        ),
        VenueOperation::AccuseStep(evidence) => {
            let fill = evidence.report.fill();
            let what = match evidence.contradicting {
                Contradicting::Tree(..) => "is not the one that it settled",
                Contradicting::Report(_) => "contradicts another one",
            };
            let (venue, index) = (fill.venue, fill.index);
            format!("proves that what venue {venue} reported of fill {index} {what}, which costs its bond")
        }
        VenueOperation::ClaimStep(claim) => {
            let fill = claim.report.fill();
            format!(
                "proves that venue {} reported fill {} and never settled it, which costs its bond a penalty",
                fill.venue, fill.index
            )
        }
    }
}

fn listed(venue: u32, market: u32, terms: &MarketTerms, symbols: &Symbols) -> String {
    format!(
        "lists market {market} of venue {venue}, for ever: lots of {}, at {} a tick and lot, at most {} lots an order, \
         fees of at most {}, and a penalty of {} a lot for a bust",
        symbols.money(terms.base, terms.lot_units),
        symbols.money(terms.quote, terms.tick_units),
        terms.lots_max,
        percent(terms.fee_cap_ppm),
        symbols.money(AssetId(0), terms.penalty),
    )
}

fn mandated(mandate: &Mandate, symbols: &Symbols) -> String {
    let market = |of: &primitives::venue::MarketMandate| {
        format!("market {} from {} to {} ticks", of.market, of.tick_min, of.tick_max)
    };
    let markets: Vec<String> = mandate.markets.iter().map(market).collect();
    let caps: Vec<String> = mandate.caps.iter().map(|(asset, units)| symbols.money(*asset, *units)).collect();
    let losses = if caps.is_empty() { "nothing".into() } else { format!("at most {}", caps.join(" and ")) };
    format!("in {}, and lose {losses} on balance", markets.join(", "))
}

fn number(number: &primitives::venue::OrderNumber) -> String {
    format!("{}/{}/{}", number.incarnation, number.day, number.reference)
}

/// Millionths as a percentage.
fn percent(ppm: u32) -> String {
    format!("{}%", primitives::format_units(ppm.into(), 4))
}
