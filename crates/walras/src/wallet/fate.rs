//! The fate of a transaction, and how it is reported.

use std::process::ExitCode;

use primitives::TransactionId;
use serde_json::{Value, json};

use super::server::{Assets, Server, text};

/// The transaction is pending.
const WAITING: u8 = 3;
/// The node does not know the transaction.
const UNKNOWN: u8 = 4;

/// What is known of a transaction.
pub(crate) enum Fate {
    /// It is in a block. The node's answer.
    Committed(Value),
    /// It is in a block without effect. The node's answer.
    Refused(Value),
    /// It is pending, with the problem if there is one.
    Waiting(Option<String>),
    /// The node refused it when it was submitted, with the reason, and knows of no other copy.
    TurnedAway(String),
    /// The node does not know it or does not answer, with the reason if it is known.
    Unknown(Option<String>),
}

impl Fate {
    /// What a node knows about a transaction.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn of(server: &Server, id: &TransactionId) -> anyhow::Result<Fate> {
        let answered = server.ask(&format!("/v1/transactions/{id}"))?;
        if answered.status == 404 && answered.body["error"]["code"] == "refused" {
            return Ok(Fate::TurnedAway(text(&answered.body["error"]["message"]).into()));
        }
        if answered.status == 404 {
            return Ok(Fate::Unknown(None));
        }
        let body = answered.sound()?;
        Ok(match (text(&body["status"]), text(&body["outcome"]["result"])) {
            ("pending", _) => Fate::Waiting(server.get("/v1/status")?["stalled"].as_str().map(Into::into)),
            (_, "refused") => Fate::Refused(body),
            _ => Fate::Committed(body),
        })
    }

    /// Whether the fate is final.
    pub fn is_final(&self) -> bool {
        matches!(self, Fate::Committed(_) | Fate::Refused(_))
    }

    fn word(&self) -> &'static str {
        match self {
            Fate::Committed(_) => "committed",
            Fate::Refused(_) | Fate::TurnedAway(_) => "refused",
            Fate::Waiting(_) => "waiting",
            Fate::Unknown(_) => "unknown",
        }
    }

    fn code(&self) -> ExitCode {
        match self {
            Fate::Committed(_) => ExitCode::SUCCESS,
            Fate::Refused(_) | Fate::TurnedAway(_) => ExitCode::FAILURE,
            Fate::Waiting(_) => WAITING.into(),
            Fate::Unknown(_) => UNKNOWN.into(),
        }
    }

    /// The user's next step, if there is one.
    fn advice(&self) -> Option<&'static str> {
        match self {
            Fate::Waiting(_) => Some(
                "It is not lost; no action is needed: ask again with `walras wallet status`. Do not pay again. To send \
                 it to another node, use `walras wallet retry`, which sends it unchanged; it takes effect once.",
            ),
            Fate::TurnedAway(_) => Some(
                "It is not pending at this node and has no effect. Remove the reason and give the command again, which \
                 makes a new transaction.",
            ),
            Fate::Unknown(_) => Some(
                "If the command that sent it ended with an error of the node, it was refused and has no effect: give \
                 the command again once the reason is removed. If no answer was seen, it may be pending elsewhere: ask \
                 another --server, or send it again unchanged with `walras wallet retry`, which is safe: it takes \
                 effect once. Do not pay again before.",
            ),
            Fate::Committed(_) | Fate::Refused(_) => None,
        }
    }

    /// Prints it; the exit code reports the same.
    pub fn print(&self, json: bool, id: &TransactionId, assets: &Assets) -> ExitCode {
        if json {
            println!("{}", self.body(id));
        } else {
            println!("{}", self.sentence(assets));
            if let Some(advice) = self.advice() {
                println!("{advice}");
            }
        }
        self.code()
    }

    fn body(&self, id: &TransactionId) -> Value {
        match self {
            Fate::Committed(body) | Fate::Refused(body) => {
                let mut body = body.clone();
                body["status"] = self.word().into();
                body
            }
            Fate::TurnedAway(reason) => self.uncommitted(id, Some(reason)),
            Fate::Waiting(reason) | Fate::Unknown(reason) => self.uncommitted(id, reason.as_deref()),
        }
    }

    fn uncommitted(&self, id: &TransactionId, reason: Option<&str>) -> Value {
        json!({"id": id.to_string(), "status": self.word(), "reason": reason, "advice": self.advice()})
    }

    fn sentence(&self, assets: &Assets) -> String {
        match self {
            Fate::Committed(body) => format!("committed in block {}: {}", body["height"], in_words(body, assets)),
            Fate::Refused(body) => {
                format!("refused in block {}: {}", body["height"], text(&body["outcome"]["message"]))
            }
            Fate::TurnedAway(reason) => format!("refused: {reason}"),
            Fate::Waiting(None) => "is pending".into(),
            Fate::Waiting(Some(reason)) => format!("is pending. {reason}"),
            Fate::Unknown(None) => "unknown to this node".into(),
            Fate::Unknown(Some(reason)) => format!("unknown: {reason}"),
        }
    }
}

/// The effect of a committed transaction, in decimals of its assets.
fn in_words(body: &Value, assets: &Assets) -> String {
    let (operation, outcome) = (&body["operation"], &body["outcome"]);
    let money = |units: &Value, symbol: &str| assets.money(units, &operation[symbol]);
    let amount = || money(&operation["amount"], "asset");
    match text(&operation["type"]) {
        "pay" => format!("paid {} to {}", amount(), text(&operation["to"])),
        "issue" => format!("issued {} to {}", amount(), text(&operation["to"])),
        "burn" => format!("burnt {}", amount()),
        "create_offer" => format!(
            "sold {} for {}; {} rests, {} returned ({})",
            money(&outcome["sold"], "sell"),
            money(&outcome["bought"], "buy"),
            money(&outcome["left"], "sell"),
            money(&outcome["returned"], "sell"),
            text(&outcome["why"]).replace('_', " ")
        ),
        other => format!("{} applied", other.replace('_', " ")),
    }
}
