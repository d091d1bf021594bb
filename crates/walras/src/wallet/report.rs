//! How the fate of a transaction is reported.

use std::process::ExitCode;

use api::{OperationBody, OutcomeBody, TransactionBody, TransactionOutcome};
use client::Assets;
pub(crate) use client::wallet::Fate;
use primitives::TransactionId;
use serde_json::{Value, json};

/// The transaction is pending.
const WAITING: u8 = 3;
/// The node does not know the transaction.
const UNKNOWN: u8 = 4;

fn word(fate: &Fate) -> &'static str {
    match fate {
        Fate::Committed(_) => "committed",
        Fate::Refused(_) | Fate::TurnedAway(_) => "refused",
        Fate::Waiting(_) => "waiting",
        Fate::Unknown(_) => "unknown",
    }
}

fn code(fate: &Fate) -> ExitCode {
    match fate {
        // It is in a block, and what was asked for did not happen.
        Fate::Committed(body) if body.outcome == Some(OutcomeBody::Void) => ExitCode::FAILURE,
        Fate::Committed(body) if is_unfilled(body) || is_worthless(body) => ExitCode::FAILURE,
        Fate::Committed(_) => ExitCode::SUCCESS,
        Fate::Refused(_) | Fate::TurnedAway(_) => ExitCode::FAILURE,
        Fate::Waiting(_) => WAITING.into(),
        Fate::Unknown(_) => UNKNOWN.into(),
    }
}

/// Whether it is an exact order that was not filled.
fn is_unfilled(body: &TransactionBody) -> bool {
    matches!(&body.outcome, Some(OutcomeBody::Exact { why, .. }) if why != "filled")
}

/// Whether it is an envelope of which nothing counts.
fn is_worthless(body: &TransactionBody) -> bool {
    matches!(&body.outcome, Some(OutcomeBody::Sealed { became, .. }) if became != "opened")
}

/// Whether it is in a block, and an exact order that was not filled.
pub(super) fn is_unfilled_order(fate: &Fate) -> bool {
    matches!(fate, Fate::Committed(body) if is_unfilled(body))
}

/// Why an exact order was not filled.
fn unfilled(why: &str) -> &'static str {
    match why {
        "no_price" => "there is no price between the two assets",
        "beyond_bound" => "the rate of the batch was beyond the bound",
        "group_not_full" => "not all offers that had to trade could",
        _ => "there was no room for it beside the offers",
    }
}

/// The user's next step, if there is one.
fn advice(fate: &Fate) -> Option<&'static str> {
    match fate {
        Fate::Waiting(_) => Some(
            "It is not lost; no action is needed: ask again with `walras wallet status`. Do not pay again. To send it \
             to another node, use `walras wallet retry`, which sends it unchanged; it takes effect once.",
        ),
        Fate::TurnedAway(_) => Some(
            "It is not pending at this node and has no effect now. Remove the reason and give the command again: it \
             sends the same bytes, which count once, until they end.",
        ),
        Fate::Unknown(_) => Some(
            "If the command that sent it ended with an error of the node, it was refused and has no effect: give the \
             command again once the reason is removed. If no answer was seen, it may be pending elsewhere: ask another \
             --server, or send it again unchanged with `walras wallet retry`, which is safe: it takes effect once. Do \
             not pay again before.",
        ),
        Fate::Refused(body) if body.sealed_by.is_some() => Some(
            "It used no number, and its bytes count in no other envelope. Remove the reason and give the command again.",
        ),
        Fate::Refused(_) => Some(
            "It used no number, and everybody has its bytes: they may count until their last height. Remove the reason \
             and give the command again: it sends the same bytes, which count once.",
        ),
        Fate::Committed(_) => None,
    }
}

/// Prints a fate; the exit code reports the same.
pub fn print(fate: &Fate, json: bool, id: &TransactionId, assets: &Assets) -> ExitCode {
    if json {
        println!("{}", body(fate, id));
    } else {
        println!("{}", sentence(fate, assets));
        if let Some(advice) = advice(fate) {
            println!("{advice}");
        }
    }
    code(fate)
}

fn body(fate: &Fate, id: &TransactionId) -> Value {
    let uncommitted = |reason: Option<&str>| {
        let (id, status) = (id.to_string(), word(fate));
        json!({"id": id, "status": status, "reason": reason, "advice": advice(fate)})
    };
    match fate {
        Fate::Committed(body) | Fate::Refused(body) => {
            let body = TransactionBody { status: word(fate).into(), ..(**body).clone() };
            serde_json::to_value(body).expect("a body is JSON")
        }
        Fate::TurnedAway(reason) => uncommitted(Some(reason)),
        Fate::Waiting(reason) | Fate::Unknown(reason) => uncommitted(reason.as_deref()),
    }
}

fn sentence(fate: &Fate, assets: &Assets) -> String {
    let height = |body: &TransactionBody| body.height.unwrap_or_default();
    match fate {
        Fate::Committed(body) => format!("committed in block {}: {}", height(body), in_words(body, assets)),
        Fate::Refused(body) => match &body.outcome {
            Some(OutcomeBody::Refused { message, .. }) => format!("refused in block {}: {message}", height(body)),
            _ => format!("refused in block {}", height(body)),
        },
        Fate::TurnedAway(reason) => format!("refused: {reason}"),
        Fate::Waiting(None) => "is pending".into(),
        Fate::Waiting(Some(reason)) => format!("is pending. {reason}"),
        Fate::Unknown(None) => "unknown to this node".into(),
        Fate::Unknown(Some(reason)) => format!("unknown: {reason}"),
    }
}

/// The effect of a committed transaction, in decimals of its assets.
fn in_words(body: &TransactionBody, assets: &Assets) -> String {
    let Some(operation) = &body.operation else { return "applied".into() };
    let text = |name: &str| operation.text(name);
    let amount = || assets.money(&text("amount"), &text("asset"));
    match (text("type").as_str(), &body.outcome) {
        ("pay", _) => format!("paid {} to {}", amount(), text("to")),
        ("issue", _) => format!("issued {} to {}", amount(), text("to")),
        ("burn", _) => format!("burnt {}", amount()),
        (_, Some(OutcomeBody::Cancelled { found, missing: 0 })) => format!("{found} cancelled"),
        (_, Some(OutcomeBody::Cancelled { found, missing })) => {
            format!("{found} cancelled; {missing} had traded or ended before")
        }
        (_, Some(OutcomeBody::Listed { number })) => {
            format!("listed {}.{number}; use it once the block is certified", text("symbol"))
        }
        (_, Some(OutcomeBody::Sealed { became, operations, message, .. })) => {
            sealed(body, (became, *operations, message.as_deref()))
        }
        (_, Some(OutcomeBody::Void)) => {
            "it paid its fee and did nothing: another operation of the block counted (a cancel or a later replacement \
             of the offer, one at the venue, or another opening of the pool), or the venue's bond or its next \
             fill does not fit"
                .into()
        }
        ("venue", _) => at_venue(operation, assets),
        (name, outcome) => outcome
            .as_ref()
            .and_then(|outcome| traded(operation, outcome, assets))
            .unwrap_or_else(|| format!("{} applied", name.replace('_', " "))),
    }
}

/// What became of an envelope, and of each order in it.
fn sealed(body: &TransactionBody, (became, operations, unpaid): (&str, u8, Option<&str>)) -> String {
    let one = |order: &TransactionOutcome| match &order.outcome {
        OutcomeBody::Refused { message, .. } => format!("\n  {} is refused: {message}", order.id),
        _ => format!("\n  {} counts", order.id),
    };
    match became {
        "opened" => {
            let orders: String = body.inside.iter().map(one).collect();
            let count = if operations == 1 { "one order".into() } else { format!("{operations} orders") };
            format!("the envelope is open and held {count}{orders}")
        }
        "garbage" => "the envelope is open, has paid, and holds no signed orders: nothing else happened".into(),
        _ => format!("the envelope is open, and nothing in it counts: {}", unpaid.unwrap_or("it was not paid")),
    }
}

/// What an order or a pool brought; nothing is said of other operations.
fn traded(operation: &OperationBody, outcome: &OutcomeBody, assets: &Assets) -> Option<String> {
    let text = |name: &str| operation.text(name);
    let money = |units: &str, asset: &str| assets.money(units, &text(asset));
    Some(match outcome {
        OutcomeBody::Offered { sold, bought, left, returned, why } => format!(
            "sold {} for {}; {} rests, {} returned ({})",
            money(sold, "sell"),
            money(bought, "buy"),
            money(left, "sell"),
            money(returned, "sell"),
            why.replace('_', " ")
        ),
        OutcomeBody::Replaced { remained, sold, bought, left, returned, why } => format!(
            "replaced offer {}, of which {} rested; sold {} for {}; {} rests, {} returned ({})",
            text("offer"),
            money(remained, "sell"),
            money(sold, "sell"),
            money(bought, "buy"),
            money(left, "sell"),
            money(returned, "sell"),
            why.replace('_', " ")
        ),
        OutcomeBody::Exact { sold, bought, returned, why } => {
            let returned = money(returned, "sell");
            match why.as_ref() {
                "filled" => format!("sold {} for {}; {returned} returned", money(sold, "sell"), money(bought, "buy")),
                why => format!("not filled, since {}; {returned} returned", unfilled(why)),
            }
        }
        OutcomeBody::Pooled { a, b, shares } => {
            let does = if text("type") == "leave" { "received" } else { "paid" };
            format!("{does} {} and {} for {shares} shares of the pool", money(a, "a"), money(b, "b"))
        }
        _ => return None,
    })
}

fn at_venue(operation: &OperationBody, assets: &Assets) -> String {
    let text = |name: &str| operation.text(name);
    let venue = text("venue");
    match text("action").as_str() {
        "deposit" => format!("deposited {} at venue {venue}", assets.money(&text("units"), &text("asset"))),
        "collect" => {
            format!("the deposit at venue {venue} leaves; `walras wallet deposits` shows how much, and when it is owed")
        }
        "authorize" => format!("the key {} may trade at venue {venue}", text("key")),
        "revoke" => format!("the key {} is revoked at venue {venue}", text("key")),
        "raise_floor" => {
            let part = |name: &str| operation.get("floor").and_then(|floor| floor[name].as_u64()).unwrap_or_default();
            let floor = ["incarnation", "day", "reference"].map(|name| part(name).to_string()).join(":");
            format!("orders of the key {} below {floor} die at venue {venue} once the delay is past", text("key"))
        }
        "open" => format!("venue {venue} is open"),
        "list" => format!("market {} of venue {venue} is listed", text("market")),
        "fence" => format!("incarnation {} of venue {venue} has ended", text("incarnation")),
        "accuse" => format!("venue {venue} is convicted"),
        "claim" => format!("fill {} of venue {venue} is claimed", text("index")),
        other => format!("{} applied", other.replace('_', " ")),
    }
}
