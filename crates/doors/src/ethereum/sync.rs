//! A transaction that is sent and waited for: `eth_sendRawTransactionSync` (EIP-7966).
//!
//! *Properties.* A request that waits holds no turn, so that others are answered meanwhile. It ends after its own time,
//! and all those of a body together after [`WAIT_MAX`]. A transaction that was accepted stays so: an answer that no
//! block has it yet names its hash.

use std::time::{Duration, Instant};

use primitives::TransactionId;
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;

use super::Session;
use super::accounts::send_raw_transaction;
use super::params::{Param, Params, option, param};
use super::values::{read_digest, read_number};
use super::wire::{Answer, Request, RpcError, envelope};

/// The method, and its parameters.
pub(super) const SEND_SYNC: &str = "eth_sendRawTransactionSync";
pub(super) const SENT_SYNC: &[Param] = &[param("transaction", "bytes"), option("timeoutMs", "number")];

/// How long a request waits unless it says otherwise.
const WAIT_USUAL: Duration = Duration::from_secs(2);
/// How long all requests of a body wait at most.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(30);
/// The error of a transaction that no block has in time.
const NOT_IN_TIME: i64 = 4;

/// Submits a transaction; returns its receipt if a block has it already.
pub(super) fn send_raw_transaction_sync(session: &Session, params: &Params) -> Answer {
    wait_of(params)?;
    let sent = send_raw_transaction(session, params)?;
    match session.receipt(&read_digest(&sent).map_err(RpcError::internal)?)? {
        Value::Null => {
            let message = "the transaction was accepted, but no block has it in this time: ask for its receipt later";
            Err(RpcError { code: NOT_IN_TIME, ..RpcError::server(message) }.with_data(sent))
        }
        receipt => Ok(receipt),
    }
}

fn wait_of(params: &Params) -> Result<Duration, RpcError> {
    let named = params.read_if(1, read_number)?;
    Ok(named.map_or(WAIT_USUAL, |ms| Duration::from_millis(ms.saturating_to())))
}

/// The transaction that an answer tells to wait for.
fn pending_of(answer: &Answer) -> Option<TransactionId> {
    let error = answer.as_ref().err().filter(|error| error.code == NOT_IN_TIME)?;
    read_digest(error.data.as_ref()?).ok()
}

/// Submits a transaction, and waits for its block without holding a turn.
pub(super) async fn send_and_wait(session: &mut Session<'_>, request: Request) -> Option<Value> {
    let mut blocks = session.rpc.api.published().subscribe();
    let mut answer = in_turn(session, &request).await;
    if let Some(id) = pending_of(&answer) {
        let wait = Params::new(&request.params, SENT_SYNC).and_then(|params| wait_of(&params)).unwrap_or_default();
        let (begun, end) = (Instant::now(), wait.min(session.wait.get()));
        loop {
            // Whether it is a new block or that some were missed: the transaction is looked for.
            let next = tokio::time::timeout(end.saturating_sub(begun.elapsed()), blocks.recv()).await;
            match tokio::task::block_in_place(|| session.receipt(&id)) {
                Ok(Value::Null) if matches!(next, Err(_) | Ok(Err(RecvError::Closed))) => break,
                Ok(Value::Null) => {}
                found => {
                    answer = found;
                    break;
                }
            }
        }
        session.wait.set(session.wait.get().saturating_sub(begun.elapsed()));
    }
    request.id.map(|id| envelope(id, answer))
}

async fn in_turn(session: &mut Session<'_>, request: &Request) -> Answer {
    let turn = session.rpc.light.take(session.caller.client).await?;
    let answer = tokio::task::block_in_place(|| session.call(&request.method, &request.params));
    drop(turn);
    answer
}
