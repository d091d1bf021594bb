//! Shows accounts: once, or as they change.

use std::process::ExitCode;

use anyhow::bail;
use api::{
    AccountBody, AccountIncrement, BalanceBody, ChannelState, ExactTradeBody, OfferBody, OwnFillBody, StreamMessage,
};
use client::{Assets, Channel, Stream, Told};
use primitives::Address;
use serde_json::json;

use super::server::Server;

/// Prints an account's balances and offers.
pub(super) fn show(json: bool, address: Address, server: &Server) -> anyhow::Result<ExitCode> {
    let node = server.node();
    let account: AccountBody = node.get(&format!("/v1/accounts/{address}"))?;
    let offers = node.offers(&address)?;
    if json {
        println!("{}", json!({"account": account, "offers": offers}));
        return Ok(ExitCode::SUCCESS);
    }
    let assets = node.assets()?;
    println!("{} at height {}", address.checked(), account.height);
    if account.needs_reference {
        println!("  payments to it need a reference");
    }
    for balance in &account.balances {
        let money = |units: &str| assets.money(units, &balance.asset);
        println!("  {:>36}  (+ {} in offers)", money(&balance.available), money(&balance.locked));
    }
    for offer in &offers {
        println!("  offer {:<6} {}", offer.id, rests(offer, &assets));
    }
    Ok(ExitCode::SUCCESS)
}

/// What rests of an offer, as an order of its market.
fn rests(offer: &OfferBody, assets: &Assets) -> String {
    match &offer.asked {
        Some(asked) => {
            let side = if asked.side == "buy" { "buys" } else { "sells" };
            format!("{side} {} at {} {}", assets.money(&asked.amount, &asked.base), asked.price, asked.quote)
        }
        // A node of an earlier version says what is sold.
        None => {
            let amount = assets.money(&offer.amount, &offer.sell);
            format!("sells {amount}, limit {} {} for one {}", offer.price, offer.buy, offer.sell)
        }
    }
}

/// Follows an account.
pub(super) fn watch(json: bool, address: Address, server: &Server) -> anyhow::Result<ExitCode> {
    let node = server.node();
    let assets = node.assets()?;
    let mut stream = Stream::open(&node, &[(Channel::Account(address), None)])?;
    loop {
        let Told { text, event } = stream.wait()?;
        match event {
            StreamMessage::Error { message, .. } => bail!("{message}"),
            StreamMessage::Heartbeat { .. } => {}
            _ if json => println!("{text}"),
            StreamMessage::Snapshot(snapshot) => {
                if let ChannelState::Account(snapshot) = snapshot.state {
                    let balances = snapshot.account.map_or(Vec::new(), |account| account.balances);
                    println!("{} holds {}", address.checked(), held(&balances, &assets));
                }
            }
            StreamMessage::Account(block) => {
                let (what, held) = (happened(&block, &assets), held(&block.balances, &assets));
                println!("block {}: {what}; holds {held}", block.height);
            }
            // Nothing else was asked for.
            _ => {}
        }
        if terminal::output::takes_no_more() {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

fn held(balances: &[BalanceBody], assets: &Assets) -> String {
    let balance = |BalanceBody { asset, available, locked }: &BalanceBody| match locked.as_str() {
        "0" => assets.money(available, asset),
        _ => format!("{} (+ {} in offers)", assets.money(available, asset), assets.money(locked, asset)),
    };
    let all: Vec<String> = balances.iter().map(balance).collect();
    if all.is_empty() { "nothing".into() } else { all.join(", ") }
}

fn happened(block: &AccountIncrement, assets: &Assets) -> String {
    let fill = |fill: &OwnFillBody| sold(assets, &fill.sell, &fill.sold, &fill.buy, &fill.bought);
    let exact = |fill: &ExactTradeBody| sold(assets, &fill.sell, &fill.sold, &fill.buy, &fill.bought);
    let own = format!("{} own transactions", block.outcomes.len());
    let fills = block.fills.iter().map(fill).chain(block.exacts.iter().map(exact));
    [own].into_iter().chain(fills).collect::<Vec<_>>().join(", ")
}

fn sold(assets: &Assets, sell: &str, sold: &str, buy: &str, bought: &str) -> String {
    format!("sold {} for {}", assets.money(sold, sell), assets.money(bought, buy))
}
