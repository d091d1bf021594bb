//! Submits transactions, and returns their status.

use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Extension, Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use borsh::BorshDeserialize;
use ledger::Refusal;
use primitives::{Address, Amount, AssetId, Body, Digest, Transaction, TransactionId, slot_of};
use serde::Deserialize;
use sockets::NoTurn;

use super::blocks::receipts;
use super::sealed::{FoundBody, transaction_of};
use super::unsigned::{bytes_of_hex, whole, with_signature};
use super::validators::certificate_of;
use super::{Api, parse, proof_bytes};
use crate::PlacedOrder;
use crate::backend::{Answer, Awaited};
use crate::door::Visitor;
use crate::json::{self, ErrorBody, ErrorText};
use crate::kit::{Answered, Failure};

/// How long a call with `wait=committed` waits before it answers that the transaction is pending.
const WAIT: Duration = Duration::from_secs(30);

/// Which details of a transaction to return.
#[derive(Deserialize)]
pub(super) struct TransactionDetails {
    #[serde(default)]
    proof: bool,
    /// The certificate of its block too: then the answer waits for it.
    #[serde(default)]
    certified: bool,
    wait: Option<String>,
}

impl TransactionDetails {
    fn waits(&self) -> Result<bool, Failure> {
        match self.wait.as_deref() {
            None => Ok(false),
            Some("committed") => Ok(true),
            Some(other) => Err(Failure::malformed(format!("wait: {other:?} is unknown; use wait=committed"))),
        }
    }
}

fn pending(id: TransactionId) -> json::TransactionBody {
    json::TransactionBody {
        id: id.to_string(),
        status: "pending".into(),
        displaced_by: None,
        account: None,
        sequence: None,
        until: None,
        operation: None,
        sealed_by: None,
        inside: Vec::new(),
        height: None,
        outcome: None,
        receipts_root: None,
        proof: None,
        certificate: None,
    }
}

/// Another transaction has the place of this one. It is told as pending: another node may have it, and whoever took it
/// for committed or refused would be wrong.
fn displaced(id: TransactionId, by: TransactionId) -> json::TransactionBody {
    json::TransactionBody { displaced_by: Some(by.to_string()), ..pending(id) }
}

fn committed(id: TransactionId, found: readers::FoundTransaction) -> json::TransactionBody {
    let (height, outcome) = (Some(found.height), Some(json::outcome(&found.outcome)));
    json::TransactionBody { status: "committed".into(), height, outcome, ..pending(id) }
}

/// The place of a transaction, and its outcome.
#[utoipa::path(get, path = "/v1/transactions/{id}",
    params(("id" = String, Path), ("proof" = Option<bool>, Query), ("certified" = Option<bool>, Query)),
    responses((status = 200, body = json::TransactionBody), (status = 404, body = ErrorBody)))]
pub(super) async fn transaction(
    State(api): State<Api>,
    Path(id): Path<String>,
    Query(asked): Query<TransactionDetails>,
) -> Answered<json::TransactionBody> {
    let id: Digest = parse("id", &id)?;
    let certified = asked.certified;
    let mut body = api.blocking(move |api| api.transaction_body(id, asked.proof)).await??;
    if let Some(height) = body.height.filter(|_| certified) {
        body.certificate = Some(certificate_of(&api, height).await?);
    }
    Ok(Json(body))
}

impl Api {
    fn transaction_body(&self, id: TransactionId, with_proof: bool) -> Result<json::TransactionBody, Failure> {
        let found = match self.look_up(&id, || self.published().find(&id)) {
            None => return Err(self.unknown(&id)),
            Some(None) => return Ok(pending(id)),
            Some(Some(found)) => found,
        };
        let mut body = committed(id, found);
        if let Some(found) = transaction_of(self, found.height, &id)? {
            let FoundBody { transaction: Transaction { body: of, .. }, sealed_by, inside } = found;
            body.account = Some(of.account.to_string());
            body.sequence = Some(of.sequence.to_string());
            body.until = Some(of.until.to_string());
            body.operation = Some(self.symbols().operation(&of.operation));
            (body.sealed_by, body.inside) = (sealed_by.map(|id| id.to_string()), inside);
        }
        if with_proof {
            let proven = receipts(self, found.height)?;
            body.receipts_root = Some(proven.root.to_string());
            body.proof = Some(proof_bytes(&proven.prove(&id)));
        }
        Ok(body)
    }
}

/// Transactions in a JSON body.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sent {
    transaction: Option<String>,
    transactions: Option<Vec<String>>,
    /// The signature of a wallet, for a transaction without one.
    signature: Option<String>,
}

/// Decodes a transaction of some kind, or says why the bytes are invalid.
type Reader<T> = fn(&[u8]) -> Result<T, String>;

fn native(bytes: &[u8]) -> Result<Transaction, String> {
    borsh::from_slice(bytes).map_err(|error| error.to_string())
}

fn decode_hex<T>(place: &str, text: &str, read: Reader<T>) -> Result<T, Failure> {
    read_named(place, &bytes_of_hex(place, text)?, read)
}

fn read_named<T>(place: &str, bytes: &[u8], read: Reader<T>) -> Result<T, Failure> {
    read(bytes).map_err(|error| Failure::malformed(format!("{place}: not a transaction: {error}")))
}

/// The JSON form of a body.
fn form(several: bool) -> &'static str {
    if several { r#"{"transactions":["0x…"]}"# } else { r#"{"transaction":"0x…"}"# }
}

/// Reads one or several transactions from a body of either content type.
pub(super) fn decode<T: BorshDeserialize>(
    headers: &HeaderMap,
    body: &[u8],
    several: bool,
    read: Reader<T>,
) -> Result<Vec<T>, Failure> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
    match kind.split(';').next().unwrap_or("").trim() {
        "application/octet-stream" => {
            let decoded = match several {
                true => borsh::from_slice(body).map_err(|error| error.to_string()),
                false => read(body).map(|one| vec![one]),
            };
            let form = "the body does not decode as docs/specification.md describes it";
            decoded.map_err(|error| Failure::malformed(format!("{form}: {error}")))
        }
        "application/json" => {
            let sent: Sent = serde_json::from_slice(body).map_err(|error| {
                Failure::malformed(format!("the body is not JSON such as {}: {error}", form(several)))
            })?;
            let numbered = |(i, one): (usize, &String)| decode_hex(&format!("transactions[{i}]"), one, read);
            match (sent, several) {
                (Sent { transaction: Some(one), transactions: None, signature: None }, false) => {
                    Ok(vec![decode_hex("transaction", &one, read)?])
                }
                (Sent { transaction: Some(one), transactions: None, signature: Some(signature) }, false) => {
                    Ok(vec![read_named("transaction", &with_signature(&one, &signature)?, read)?])
                }
                (Sent { transaction: None, transactions: Some(all), signature: None }, true) => {
                    all.iter().enumerate().map(numbered).collect()
                }
                (_, false) => {
                    Err(Failure::malformed("the body needs the field `transaction`, and at most `signature` besides"))
                }
                (_, true) => Err(Failure::malformed("the body needs the field `transactions`, and no other")),
            }
        }
        _ => {
            let message = "set Content-Type: application/octet-stream or application/json";
            Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message))
        }
    }
}

impl Api {
    /// Whether the operator accepts transactions.
    pub(super) fn check_intake(&self) -> Result<(), Failure> {
        if self.is_draining() { Err(Failure::draining()) } else { Ok(()) }
    }

    /// Whether a call may carry this many transactions.
    pub(super) fn check_batch(&self, transactions: usize) -> Result<(), Failure> {
        let most = self.settings.batch_transactions;
        if transactions > most {
            let message = format!("{transactions} transactions in one call; send at most {most}");
            return Err(Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message));
        }
        Ok(())
    }

    /// Submits transactions; returns one answer for each, in order. Whoever sends one that counts has paid, and keeps
    /// the connection; what is in a block anybody can send again.
    async fn submit(
        &self,
        visitor: &Visitor,
        transactions: Vec<Transaction>,
        wait: bool,
    ) -> Result<Vec<Answer>, Failure> {
        self.check_intake()?;
        let receiver = self.backend.submit(visitor.client(), transactions, wait)?;
        let answers = receiver.await.map_err(|_| Failure::stopping())?;
        if answers.iter().any(|answer| matches!(answer, Answer::Pending(..))) {
            visitor.visit.recognize();
        }
        Ok(answers)
    }

    /// The answer about a transaction that is neither pending nor committed.
    fn unknown(&self, id: &TransactionId) -> Failure {
        match self.refused.reason(id) {
            Some(ErrorText { code, message }) => {
                let message = format!("this node refused it when it was submitted ({code}): {message}");
                Failure::new(StatusCode::NOT_FOUND, "refused", message)
            }
            None => match self.backend.displaced_by(id) {
                Some(by) => Failure::not_found(format!(
                    "the transaction is not pending here any more: {by}, which has its number and ends later, has taken \
                     its place; ask about that one"
                )),
                None => Failure::not_found("the transaction is neither pending nor among those indexed"),
            },
        }
    }

    /// The error of a refused transaction, which is remembered. An overdraft names what is missing.
    fn refusal(&self, transaction: &Transaction, refusal: Refusal) -> Failure {
        let mut text = json::refused(refusal);
        match refusal {
            Refusal::OVERDRAFT => text.message = self.overdraft(transaction),
            Refusal::RULES_TO_COME => {
                let since = transaction.since_rules();
                text.message = json::rules_to_come(&self.published().views().outline().charter.rules, since);
            }
            Refusal::SESSION_CAP => text.message = self.beyond_caps(transaction),
            _ => {}
        }
        text.message.extend(self.session_named(&transaction.body, refusal));
        self.refused.remember(transaction.id(), refusal, &text);
        Failure(StatusCode::UNPROCESSABLE_ENTITY, text)
    }

    /// The slot of a session key's transaction that is refused for its key, and the key that stands there.
    fn session_named(&self, body: &Body, refusal: Refusal) -> Option<String> {
        let slot = slot_of(body.sequence);
        if slot == 0 || !refusal.code().contains("session") {
            return None;
        }
        let account = self.backend.account(&body.account).account;
        let sessions = account.as_ref().and_then(|account| account.sessions.as_ref());
        let named = match sessions.and_then(|sessions| sessions.get(slot)) {
            Some(record) => format!("the key of slot {slot} is {}", record.key),
            None => format!("slot {slot} has no key"),
        };
        Some(format!("; {named}"))
    }

    /// What a session key's transaction would use of each asset, and what its caps leave.
    fn beyond_caps(&self, transaction: &Transaction) -> String {
        let body = &transaction.body;
        let account = self.backend.account(&body.account).account;
        let sessions = account.as_ref().and_then(|account| account.sessions.as_ref());
        let session = sessions.and_then(|sessions| sessions.get(slot_of(body.sequence)));
        let room = |asset: AssetId| session.map_or(0, |session| session.room(asset));
        let money = |asset, units| self.symbols().money(asset, units);
        let needs = ledger::spending(transaction, self.published().views().outline().fee);
        let beyond = needs.iter().filter(|(asset, units)| room(**asset) < **units);
        let beyond = beyond.map(|(asset, units)| {
            format!("needs {} and its cap leaves {}", money(*asset, *units), money(*asset, room(*asset)))
        });
        let beyond: Vec<String> = beyond.collect();
        match beyond.is_empty() {
            true => {
                "the pending transactions of this session key use up its caps: wait until they are committed".into()
            }
            false => format!(
                "the session key may not use so much, fees included: it {}; cancel its offers, or let the account \
                 authorise a key with higher caps",
                beyond.join(", ")
            ),
        }
    }

    /// What an overdrawing transaction needs of each asset, and what its account has.
    fn overdraft(&self, transaction: &Transaction) -> String {
        let rate = self.published().views().outline().fee;
        let fee = transaction.cost(rate);
        let account = self.backend.account(&transaction.body.account).account;
        let has = |asset: AssetId| {
            let balances = account.iter().flat_map(|account| &account.balances);
            balances.filter(|(held, _)| *held == asset).map(|(_, units)| *units).sum::<Amount>()
        };
        let money = |asset, units| self.symbols().money(asset, units);
        let of_asset = |(asset, needed): (AssetId, Amount)| {
            let fee = match asset == AssetId(0) && fee > 0 {
                true if needed == fee => " for its fee".into(),
                true => format!(" with its fee of {}", money(asset, fee)),
                false => String::new(),
            };
            format!("needs {}{fee} and has {}", money(asset, needed), money(asset, has(asset)))
        };
        let needs = ledger::spending(transaction, rate);
        let missing: Vec<_> = needs.iter().map(|(asset, units)| (*asset, *units)).collect();
        let short: Vec<_> = missing.iter().copied().filter(|(asset, units)| has(*asset) < *units).collect();
        let (named, remedy) = match short.is_empty() {
            false => (short, "pay it what is missing, or cancel offers"),
            true => (missing, "its pending transactions spend too much of that; wait until they are committed"),
        };
        let named = named.into_iter().map(of_asset).collect::<Vec<_>>().join(", ");
        format!("the account cannot pay for this: it {named}; {remedy}")
    }
}

/// The other order of an account that has a client id.
fn client_id_used(account: &Address, other: &PlacedOrder) -> Failure {
    let message = format!(
        "client: order {number} of this account has this client id and may count until block {until}: ask \
         /v1/accounts/{account}/orders/{number} about it, and take another id for another order",
        number = other.sequence,
        until = other.until
    );
    Failure::new(StatusCode::CONFLICT, "client_id_used", message)
}

/// Converts one answer; waits for the block if requested.
async fn respond(
    api: &Api,
    transaction: Transaction,
    answer: Answer,
    deadline: tokio::time::Instant,
) -> Result<json::TransactionBody, Failure> {
    match answer {
        Answer::Pending(id, None) => Ok(pending(id)),
        Answer::Pending(id, Some(receiver)) => match tokio::time::timeout_at(deadline, receiver).await {
            Ok(Ok(Awaited::Committed(found))) => Ok(committed(id, found)),
            Ok(Ok(Awaited::Displaced(by))) => Ok(displaced(id, by)),
            Ok(Err(_)) => Err(Failure::stopping()),
            Err(_) => Ok(pending(id)),
        },
        Answer::Committed(id, found) => Ok(committed(id, found)),
        Answer::Full => Err(Failure::busy("mempool_full", "the mempool is full; try again shortly")),
        Answer::ClientIdUsed(other) => Err(client_id_used(&transaction.body.account, &other)),
        Answer::OverBudget { again_ms } => Err(NoTurn::OverBudget { again_ms }.into()),
        Answer::Refused(refusal) => {
            let api = api.clone();
            Err(api.blocking(move |api| api.refusal(&transaction, refusal)).await.unwrap_or_else(|stopping| stopping))
        }
    }
}

/// Submits a transaction.
#[utoipa::path(post, path = "/v1/transactions",
    params(("wait" = Option<String>, Query, description = "`committed` to wait for the block")),
    request_body(content = String, content_type = "application/octet-stream",
        description = "the encoded transaction, or as JSON `{\"transaction\":\"0x…\"}`, with `signature` of a wallet"),
    responses((status = 202, body = json::TransactionBody), (status = 200, body = json::TransactionBody),
        (status = 400, body = ErrorBody), (status = 409, body = ErrorBody), (status = 413, body = ErrorBody),
        (status = 415, body = ErrorBody), (status = 422, body = ErrorBody), (status = 429, body = ErrorBody),
        (status = 503, body = ErrorBody)))]
pub(super) async fn send(
    State(api): State<Api>,
    Extension(visitor): Extension<Visitor>,
    Query(asked): Query<TransactionDetails>,
    headers: HeaderMap,
    body: Result<Bytes, axum::extract::rejection::BytesRejection>,
) -> Result<Response, Failure> {
    let wait = asked.waits()?;
    let transactions = decode(&headers, &whole(body)?, false, native)?;
    let answer = api.submit(&visitor, transactions.clone(), wait).await?.pop();
    let (transaction, answer) = transactions.into_iter().next().zip(answer).ok_or_else(Failure::stopping)?;
    let body = respond(&api, transaction, answer, tokio::time::Instant::now() + WAIT).await?;
    let status = if body.status == "pending" { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok((status, Json(body)).into_response())
}

/// Submits many transactions.
#[utoipa::path(post, path = "/v1/transactions/batch", params(("wait" = Option<String>, Query)),
    request_body(content = String, content_type = "application/octet-stream",
        description = "the encoded sequence of transactions, or `{\"transactions\":[\"0x…\"]}` as JSON"),
    responses((status = 200, body = json::Results), (status = 400, body = ErrorBody), (status = 413, body = ErrorBody),
        (status = 415, body = ErrorBody), (status = 429, body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(super) async fn send_batch(
    State(api): State<Api>,
    Extension(visitor): Extension<Visitor>,
    Query(asked): Query<TransactionDetails>,
    headers: HeaderMap,
    body: Result<Bytes, axum::extract::rejection::BytesRejection>,
) -> Answered<json::Results> {
    let wait = asked.waits()?;
    let transactions = decode(&headers, &whole(body)?, true, native)?;
    api.check_batch(transactions.len())?;
    let deadline = tokio::time::Instant::now() + WAIT;
    let mut results = Vec::with_capacity(transactions.len());
    let answers = api.submit(&visitor, transactions.clone(), wait).await?;
    for (transaction, answer) in transactions.into_iter().zip(answers) {
        results.push(match respond(&api, transaction, answer, deadline).await {
            Ok(body) => json::ResultBody::Taken(Box::new(body)),
            Err(Failure(_, error)) => json::ResultBody::Error(ErrorBody { error }),
        });
    }
    Ok(Json(json::Results { results }))
}
