//! `walras venue show` and `keys`.

use std::process::ExitCode;

use anyhow::Context;
use api::{VenueBody, VenueMarketBody, VenueTermsBody};
use client::{Assets, Ticks};
use primitives::format_units;
use primitives::venue::VenueId;
use serde_json::json;

use crate::wallet::server::Server;

/// Prints the venues, or one with its markets.
pub(super) fn show(json: bool, venue: Option<VenueId>, server: &Server) -> anyhow::Result<ExitCode> {
    let (node, assets) = (server.node(), server.node().assets()?);
    let all = node.venues()?;
    let Some(number) = venue else {
        if json {
            println!("{}", serde_json::to_value(&all)?);
            return Ok(ExitCode::SUCCESS);
        }
        println!("{}", terms_in_words(&all.terms, &assets)?);
        println!("{} venues; the next free number is {}", all.venues.len(), all.venues.len());
        for venue in &all.venues {
            println!("{}", in_words(venue, &assets)?);
        }
        return Ok(ExitCode::SUCCESS);
    };
    let (found, markets) = (node.venue(number)?, node.venue_markets(number)?);
    if json {
        println!("{}", json!({"venue": found, "markets": markets, "terms": all.terms}));
        return Ok(ExitCode::SUCCESS);
    }
    println!("{}", in_words(&found, &assets)?);
    for market in &markets {
        println!("{}", market_in_words(market, &assets)?);
    }
    println!("{}", terms_in_words(&all.terms, &assets)?);
    Ok(ExitCode::SUCCESS)
}

fn terms_in_words(terms: &VenueTermsBody, assets: &Assets) -> anyhow::Result<String> {
    let first = assets.first()?;
    let money = |units: &str| assets.money(units, &first.symbol);
    Ok(format!(
        "Money leaves a deposit {} blocks and {} s after it is asked for. A venue settles with a bond of at least {}.",
        terms.delay_heights,
        terms.delay_ms / 1_000,
        money(&terms.bond_min)
    ))
}

fn in_words(venue: &VenueBody, assets: &Assets) -> anyhow::Result<String> {
    let first = assets.first()?;
    let money = |units: &str| assets.money(units, &first.symbol);
    let leaving = venue.leaving.as_ref().map(|leaving| format!(" (+ {} that leave)", money(&leaving.units)));
    let convicted = if venue.is_convicted { ", convicted: it settles nothing before a fence" } else { "" };
    Ok(format!(
        "venue {}: incarnation {}, {} fills settled, {} markets{convicted}\n  owner {}\n  operator {}\n  bond {}{}, \
         fees of at most {}%",
        venue.venue,
        venue.incarnation,
        venue.fills.count,
        venue.markets,
        venue.owner,
        venue.operator.account,
        money(&venue.bond),
        leaving.unwrap_or_default(),
        format_units(venue.fee_cap_ppm.into(), 4),
    ))
}

fn market_in_words(market: &VenueMarketBody, assets: &Assets) -> anyhow::Result<String> {
    let terms = &market.terms;
    let (base, quote) = (assets.find(&terms.base)?, assets.find(&terms.quote)?);
    let number = |text: &str| text.parse::<u64>().context("the node's terms have no number");
    let ticks = Ticks {
        lot_units: number(&terms.lot_units)?,
        tick_units: number(&terms.tick_units)?,
        decimals: [base.decimals, quote.decimals],
    };
    Ok(format!(
        "  market {} {}/{}: lots of {} {}, ticks of {} {}, at most {} lots an order, fees of at most {}%, {} a lot for a \
         bust\n    in OUCH and FIX M{}: a quantity of 1 is {} {}, a price of 1 in OUCH or 0.0001 in FIX is {} {} for each {}",
        market.market,
        base.symbol,
        quote.symbol,
        ticks.lots(1),
        base.symbol,
        ticks.price(1),
        quote.symbol,
        terms.lots_max,
        format_units(terms.fee_cap_ppm.into(), 4),
        assets.money(&terms.penalty, &assets.first()?.symbol),
        market.market,
        ticks.lots(1),
        base.symbol,
        ticks.price(1),
        quote.symbol,
        base.symbol,
    ))
}

/// Prints the report keys of all incarnations.
pub(super) fn keys(json: bool, number: VenueId, server: &Server) -> anyhow::Result<ExitCode> {
    let node = server.node();
    let venue = node.venue(number)?;
    // A restart of the network ends incarnations, too, and no block of the new network says so. All of them are judged.
    let are_judged = venue.judged >= venue.incarnation && venue.incarnation > 0;
    let ended = match node.ended(&venue) {
        Err(client::ClientError::Foreign { .. }) if are_judged => None,
        ended => Some(ended?),
    };
    let keys = |keys: &[primitives::PublicKey]| keys.iter().map(ToString::to_string).collect::<Vec<_>>();
    if json {
        let row = |of: &primitives::venue::EndedIncarnation| {
            json!({"incarnation": of.incarnation, "report_keys": keys(&of.report_keys), "fence_height": of.height,
                "fills": of.tree.count().to_string()})
        };
        let ended: Option<Vec<_>> = ended.as_ref().map(|ended| ended.iter().map(row).collect());
        let present = json!({"incarnation": venue.incarnation, "report_keys": venue.report_keys,
            "operator": venue.operator});
        println!("{}", json!({"venue": number, "present": present, "ended": ended}));
        return Ok(ExitCode::SUCCESS);
    }
    println!("venue {number}, incarnation {} (present): {}", venue.incarnation, venue.report_keys.join(", "));
    if ended.is_none() {
        println!("the {} incarnations before are judged, and this node has not all of their blocks", venue.incarnation);
    }
    for of in ended.iter().flatten().rev() {
        println!(
            "incarnation {}: {}; fenced in block {} after {} fills",
            of.incarnation,
            keys(&of.report_keys).join(", "),
            of.height,
            of.tree.count()
        );
    }
    Ok(ExitCode::SUCCESS)
}
