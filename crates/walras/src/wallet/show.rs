//! Shows accounts: once, or as they change.

use std::process::ExitCode;

use anyhow::{Context, bail};
use api::{AccountBody, OfferBody};
use client::Assets;
use primitives::Address;
use serde_json::{Value, json};

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
    for balance in &account.balances {
        let money = |units: &str| assets.money(units, &balance.asset);
        println!("  {:>36}  (+ {} in offers)", money(&balance.available), money(&balance.locked));
    }
    for offer in &offers {
        let amount = assets.money(&offer.amount, &offer.sell);
        println!("  offer {:<6} sells {amount}, limit {}", offer.id, limit(offer));
    }
    Ok(ExitCode::SUCCESS)
}

/// A limit price in whole assets bought per whole asset sold.
fn limit(offer: &OfferBody) -> String {
    format!("{} {} for one {}", offer.price, offer.buy, offer.sell)
}

/// Follows an account.
pub(super) fn watch(json: bool, address: Address, server: &Server) -> anyhow::Result<ExitCode> {
    let assets = server.node().assets()?;
    let url = format!("{}/v1/stream", server.url.replacen("http", "ws", 1));
    let (mut socket, _) = tungstenite::connect(&url).with_context(|| format!("no node answers at {}", server.url))?;
    let request = json!({"subscribe": [format!("account:{address}")]});
    socket.send(tungstenite::Message::text(request.to_string()))?;
    loop {
        let message = match socket.read()? {
            tungstenite::Message::Text(text) => text,
            tungstenite::Message::Close(frame) => {
                let reason = frame.map_or("no reason given".into(), |frame| frame.reason.to_string());
                bail!("the node closed the stream: {reason}; start again")
            }
            _ => continue,
        };
        let event: Value = serde_json::from_str(&message).context("the node's message is not JSON")?;
        match event["type"].as_str() {
            Some("heartbeat") => {}
            _ if json => println!("{event}"),
            Some("error") => bail!("{}", text(&event["message"])),
            Some("snapshot") => {
                println!("{} holds {}", address.checked(), held(&event["account"]["balances"], &assets))
            }
            _ => println!(
                "block {}: {}; holds {}",
                event["height"],
                happened(&event, &assets),
                held(&event["balances"], &assets)
            ),
        }
        if crate::output::reader_is_gone() {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}

fn held(balances: &Value, assets: &Assets) -> String {
    let balance = |balance: &Value| {
        let money = |name: &str| assets.money(text(&balance[name]), text(&balance["asset"]));
        match text(&balance["locked"]) {
            "0" => money("available"),
            _ => format!("{} (+ {} in offers)", money("available"), money("locked")),
        }
    };
    let all: Vec<String> = balances.as_array().into_iter().flatten().map(balance).collect();
    if all.is_empty() { "nothing".into() } else { all.join(", ") }
}

fn happened(event: &Value, assets: &Assets) -> String {
    let outcomes = event["outcomes"].as_array().map_or(0, Vec::len);
    let fill = |fill: &Value| {
        format!(
            "sold {} for {}",
            assets.money(text(&fill["sold"]), text(&fill["sell"])),
            assets.money(text(&fill["bought"]), text(&fill["buy"]))
        )
    };
    let fills = event["fills"].as_array().into_iter().flatten().map(fill);
    [format!("{outcomes} own transactions")].into_iter().chain(fills).collect::<Vec<_>>().join(", ")
}
