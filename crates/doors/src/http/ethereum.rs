//! Submits Ethereum transactions, and returns their receipts. Ethereum's own tools use JSON-RPC; this intake accepts
//! the same bytes.

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Extension, Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use ledger::contracts::{EthereumReceipt, EthereumTransaction};
use primitives::{Digest, TransactionId};
use replica::EthereumReject;
use serde::Deserialize;

use super::blocks::receipts;
use super::transactions::decode;
use super::unsigned::whole;
use super::{Api, Page, parse, proof_bytes};
use crate::client::AskedBy;
use crate::door::Visitor;
use crate::json::{self, ErrorBody};
use crate::kit::{Answered, Failure, transaction_at};
use readers::views::executed;

/// Maximum bytes of an output in an answer: a revert reason is text for people.
const OUTPUT_BYTES_MAX: usize = 4_096;

/// Which details of an Ethereum transaction to return.
#[derive(Deserialize)]
pub(super) struct EthereumAsked {
    #[serde(default)]
    proof: bool,
}

fn raw(bytes: &[u8]) -> Result<Vec<u8>, String> {
    Ok(bytes.to_vec())
}

/// Submits transactions. Whoever sends one that counts has paid, and keeps the connection.
async fn submit_ethereum(
    api: &Api,
    visitor: &Visitor,
    transactions: Vec<Vec<u8>>,
) -> Result<Vec<Result<TransactionId, EthereumReject>>, Failure> {
    api.check_intake()?;
    let client = visitor.client();
    let taken = api.blocking(move |api| api.backend.submit_ethereum(client, transactions)).await??;
    if taken.is_new {
        visitor.visit.recognize();
    }
    Ok(taken.answers)
}

/// The place of an Ethereum transaction; `None` if it is neither pending nor indexed.
fn ethereum_body(api: &Api, id: &TransactionId, proof: bool) -> Result<Option<json::EthereumBody>, Failure> {
    let place = match api.look_up(id, || api.published().views().ethereum().receipt(id)) {
        None => return Ok(None),
        Some(None) => {
            let waiting = api.backend.ethereum_waiting(id);
            let transaction = waiting.and_then(|(bytes, sender)| json::ethereum_transaction(&bytes, &sender));
            return Ok(Some(json::EthereumBody { transaction, ..json::ethereum_pending(id) }));
        }
        Some(Some(place)) => place,
    };
    let proven = receipts(api, place.height)?;
    let receipt = &proven.receipts.contracts.receipts[place.receipt as usize];
    let mut body = json::ethereum_committed(place.height, receipt);
    if let (Some(position), Some(block)) = (receipt.position, api.backend.block(place.height)?) {
        let found = transaction_at(&block, position);
        body.transaction = found.and_then(|(_, bytes)| json::ethereum_transaction(bytes, &receipt.sender));
    }
    if proof {
        body.receipts_root = Some(proven.root.to_string());
        body.proof = Some(proof_bytes(&proven.prove_ethereum(id)));
    }
    Ok(Some(body))
}

/// The place of an Ethereum transaction, and its result.
#[utoipa::path(get, path = "/v1/ethereum/{hash}", params(("hash" = String, Path), ("proof" = Option<bool>, Query)),
    responses((status = 200, body = json::EthereumBody), (status = 404, body = ErrorBody)))]
pub(super) async fn ethereum_receipt(
    State(api): State<Api>,
    Path(hash): Path<String>,
    Query(asked): Query<EthereumAsked>,
) -> Answered<json::EthereumBody> {
    let id: Digest = parse("hash", &hash)?;
    let (body, dropped) =
        api.blocking(move |api| (ethereum_body(api, &id, asked.proof), api.backend.ethereum_dropped(&id))).await?;
    let unknown = || match dropped {
        Some(why) => Failure::new(StatusCode::NOT_FOUND, "dropped", format!("the transaction was dropped: {why}")),
        None => Failure::not_found("the transaction is neither pending nor among those indexed"),
    };
    body?.map(Json).ok_or_else(unknown)
}

/// What an executed Ethereum transaction returned, or why it reverted: it is executed again, as long as the state
/// before it is kept.
#[utoipa::path(get, path = "/v1/ethereum/{hash}/output", params(("hash" = String, Path)),
    responses((status = 200, body = json::EthereumOutputBody), (status = 404, body = ErrorBody)))]
pub(super) async fn ethereum_output(
    State(api): State<Api>,
    Path(hash): Path<String>,
    AskedBy(client): AskedBy,
) -> Answered<json::EthereumOutputBody> {
    let id: Digest = parse("hash", &hash)?;
    let turn = api.heavy.take(client).await?;
    let called = api.blocking(move |api| {
        let called = (api.of_ethereum.replay)(api, &id);
        drop(turn);
        called
    });
    Ok(Json(json::ethereum_output(&id, called.await??, OUTPUT_BYTES_MAX)))
}

/// What the contract phase of a block executed.
#[utoipa::path(get, path = "/v1/blocks/{height}/ethereum",
    params(("height" = u64, Path), ("offset" = Option<usize>, Query), ("limit" = Option<usize>, Query),
        ("cursor" = Option<usize>, Query, description = "`next` of the page before")),
    responses((status = 200, body = json::EthereumBlockBody), (status = 404, body = ErrorBody)))]
pub(super) async fn ethereum_block(
    State(api): State<Api>,
    Path(height): Path<u64>,
    Query(page): Query<Page>,
) -> Answered<json::EthereumBlockBody> {
    api.blocking(move |api| {
        let proven = receipts(api, height)?;
        let contracts = &proven.receipts.contracts;
        let block = api.backend.block(height)?;
        let parts = |receipt: &EthereumReceipt| {
            let (_, bytes) = transaction_at(block.as_ref()?, receipt.position?)?;
            Some(EthereumTransaction::decode(bytes).ok()?.parts())
        };
        let (entries, next) = page.of(contracts.receipts.len());
        let asked = contracts.receipts[entries].iter();
        Ok(Json(json::EthereumBlockBody {
            height,
            base_fee: contracts.base_fee.to_string(),
            gas_used: contracts.gas_used().to_string(),
            burnt: contracts.burnt.to_string(),
            executed: executed(contracts),
            skipped: contracts.skipped.len(),
            transactions: asked.map(|receipt| json::ethereum_executed(receipt, parts(receipt))).collect(),
            more: next.is_some(),
            next,
        }))
    })
    .await?
}

/// Sends an Ethereum transaction in its EIP-2718 form.
#[utoipa::path(post, path = "/v1/ethereum",
    request_body(content = String, content_type = "application/octet-stream",
        description = "the signed transaction, or `{\"transaction\":\"0x…\"}` as JSON"),
    responses((status = 202, body = json::EthereumBody), (status = 200, body = json::EthereumBody),
        (status = 400, body = ErrorBody), (status = 413, body = ErrorBody), (status = 415, body = ErrorBody),
        (status = 422, body = ErrorBody), (status = 429, body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(super) async fn send_ethereum(
    State(api): State<Api>,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Failure> {
    let transactions = decode(&headers, &whole(body)?, false, raw)?;
    let id = submit_ethereum(&api, &visitor, transactions).await?.pop().ok_or_else(Failure::stopping)??;
    let body = taken(&api, id).await?;
    let status = if body.receipt.is_none() { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok((status, Json(body)).into_response())
}

/// Sends many Ethereum transactions.
#[utoipa::path(post, path = "/v1/ethereum/batch",
    request_body(content = String, content_type = "application/octet-stream",
        description = "the encoded sequence of transactions, or `{\"transactions\":[\"0x…\"]}` as JSON"),
    responses((status = 200, body = json::EthereumResults), (status = 400, body = ErrorBody),
        (status = 413, body = ErrorBody), (status = 415, body = ErrorBody), (status = 429, body = ErrorBody),
        (status = 503, body = ErrorBody)))]
pub(super) async fn send_ethereum_batch(
    State(api): State<Api>,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Answered<json::EthereumResults> {
    let transactions = decode(&headers, &whole(body)?, true, raw)?;
    api.check_batch(transactions.len())?;
    let result = |answer: Result<TransactionId, EthereumReject>| match answer {
        Ok(id) => json::EthereumResultBody::Taken(Box::new(json::ethereum_pending(&id))),
        Err(reject) => json::EthereumResultBody::Error(ErrorBody { error: Failure::from(reject).1 }),
    };
    let results = submit_ethereum(&api, &visitor, transactions).await?.into_iter().map(result).collect();
    Ok(Json(json::EthereumResults { results }))
}

/// The answer for an accepted transaction: if it was sent before, it may have been executed.
async fn taken(api: &Api, id: TransactionId) -> Result<json::EthereumBody, Failure> {
    let found = api.blocking(move |api| ethereum_body(api, &id, false)).await??;
    Ok(found.unwrap_or_else(|| json::ethereum_pending(&id)))
}
