//! The pool of this node: `txpool_status`, `txpool_content`, `txpool_contentFrom`, `txpool_inspect`.
//!
//! *Pending* are transactions that the next blocks can execute, *queued* those above a nonce gap or below the base fee.

use serde_json::{Map, Value, json};

use super::Session;
use super::params::Params;
use super::values::{data, quantity};
use super::wire::{Answer, RpcError};
use crate::backend::PooledTransaction;

/// Maximum number of transactions in an answer.
const SHOWN_MAX: usize = 10_000;

/// The pool as an object of *pending* and *queued*, by sender and nonce, each transaction as `show` says.
fn content(session: &Session, show: impl Fn(&PooledTransaction) -> Answer) -> Answer {
    let (pooled, count) = session.rpc.api.backend.ethereum_pool(SHOWN_MAX);
    if count > pooled.len() {
        return Err(RpcError::limit(format!(
            "the pool has {count} transactions, and an answer at most {SHOWN_MAX}: ask for txpool_contentFrom"
        )));
    }
    let (mut pending, mut queued) = (Map::new(), Map::new());
    for one in &pooled {
        let part = if one.is_ready { &mut pending } else { &mut queued };
        let sender = part.entry(one.sender.checked().to_string()).or_insert_with(|| json!({}));
        sender[one.nonce.to_string()] = show(one)?;
    }
    Ok(json!({"pending": pending, "queued": queued}))
}

pub(super) fn status(session: &Session, _: &Params) -> Answer {
    let (pooled, count) = session.rpc.api.backend.ethereum_pool(usize::MAX);
    let pending = pooled.iter().filter(|one| one.is_ready).count();
    Ok(json!({"pending": quantity(pending), "queued": quantity(count - pending)}))
}

pub(super) fn whole_content(session: &Session, _: &Params) -> Answer {
    content(session, |one| session.pending_json(&one.id, &one.bytes, &one.sender))
}

pub(super) fn inspect(session: &Session, _: &Params) -> Answer {
    content(session, |one| {
        let whole = session.pending_json(&one.id, &one.bytes, &one.sender)?;
        let number = |name: &str| super::values::read_quantity(&whole[name]).unwrap_or_default();
        let to = whole["to"].as_str().unwrap_or("contract creation");
        Ok(format!("{to}: {} wei + {} gas × {} wei", number("value"), number("gas"), number("gasPrice")).into())
    })
}

pub(super) fn content_from(session: &Session, params: &Params) -> Answer {
    let sender = params.address(0)?;
    let (pooled, _) = session.rpc.api.backend.ethereum_pool(usize::MAX);
    let (mut pending, mut queued) = (Map::new(), Map::new());
    for one in pooled.iter().filter(|one| one.sender == sender) {
        let part = if one.is_ready { &mut pending } else { &mut queued };
        part.insert(one.nonce.to_string(), session.pending_json(&one.id, &one.bytes, &one.sender)?);
    }
    Ok(json!({"pending": pending, "queued": queued}))
}

/// The bytes of a transaction, executed or pending.
pub(super) fn raw_transaction(session: &Session, params: &Params) -> Answer {
    let id = params.digest(0)?;
    if let Some((bytes, _)) = session.rpc.api.backend.ethereum_waiting(&id) {
        return Ok(data(bytes));
    }
    let Some((block, at)) = session.block_of(&id)? else { return Ok(Value::Null) };
    Ok(block.transaction(&block.receipts()[at]).map_or(Value::Null, |(_, bytes)| data(bytes)))
}
