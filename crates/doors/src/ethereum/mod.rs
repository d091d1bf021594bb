//! Ethereum's JSON-RPC, for wallets and libraries that do not know Walras: over HTTP and WebSocket, on a separate
//! port.
//!
//! ```text
//!  POST /  ─► body (a request, or a batch) ─► methods, one after another ─► answers
//!  GET  /  ─► WebSocket: the same, and subscriptions (newHeads, logs, newPendingTransactions)
//! ```
//!
//! - Blocks, receipts and logs are those that the node has published; `latest`, `safe`, `finalized` and `pending` all
//!   name the newest of them. A block shown here never changes: its hash is the digest of the superblock, its state
//!   root is the lagged one that the block names, and its miner is zero.
//! - Past states are answered by point reads, for the last 256 heights. Calls and traces also use such reads, so that
//!   none of them holds the ledger.
//! - Blocks contain only executed Ethereum transactions, not native ones, so `Transfer` logs alone do not add up to
//!   balances.
//!
//! **Limits**, each with its own error (-32005): a body has at most `BODY_BYTES_MAX` bytes and the door's limit, a
//! batch `wire::BATCH_MAX` requests. A body's calls share `GAS_MAX`, each has at most `CALL_GAS_MAX`, its answers share
//! `ANSWER_BYTES_MAX`, and its waits for receipts `sync::WAIT_MAX`. As many requests that execute or scan run at a time
//! as the machine has cores. Others wait, and the addresses that ask have their turns one after another, so none of
//! them can crowd out the rest. Filters are bounded, in all and by address, and expire; a subscriber that does not read
//! is disconnected.
//!
//! **Nothing is left out without a sign.** A filter's poll or a subscription that cannot report everything at once goes
//! on with the next page. Where it cannot go on it says so, by an error or by the reason of a closed connection.
//!
//! `METHODS` is the table for dispatching requests and for generating `docs/openrpc.json`.

mod accounts;
mod blocks;
mod calls;
mod chain;
mod developer;
mod eip712;
mod filters;
mod flat;
mod forks;
mod logs;
mod method;
mod methods;
mod overrides;
mod params;
mod past_state;
mod replays;
mod signing;
mod simulate;
mod state_file;
mod subscriptions;
mod sync;
mod touched;
mod traces;
mod txpool;
mod values;
mod wire;

pub use developer::DEVELOPERS;
pub use methods::openrpc;
pub use signing::DEVELOPER_KEYS;
pub(crate) use traces::replay;

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Extension, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use ledger::contracts::TRANSACTION_GAS_MAX;
use primitives::Height;
use replica::{LOG_ALTERNATIVES_MAX, LOG_HEIGHTS_MAX, LOG_RESULTS_MAX};
use serde_json::Value;
use sockets::{Client, Gate};

use crate::client::AskedBy;
use crate::door::Visitor;
use crate::json::EthereumLimitsBody;
use crate::kit::{Failure, HEAVY_WAITING_OF_ONE, Kit, guard};
use crate::roles::Role;
use developer::{Impersonated, find_developers};
use filters::Filters;
use methods::find;
use params::Params;
use readers::outline::{ContractsOutline, Outline};
use sync::send_and_wait;
use wire::{Answer, Body, Refused, Request, RpcError, envelope};

/// Maximum bytes of a body, whatever the configuration allows.
const BODY_BYTES_MAX: usize = 5 << 20;
/// Approximate maximum bytes of the answers to one body.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// Maximum gas of all calls of one body.
const GAS_MAX: u64 = 16 * TRANSACTION_GAS_MAX;
/// Maximum gas of one call. A call is no transaction, so neither the cap of a transaction nor the gas of a block bounds
/// it.
const CALL_GAS_MAX: u64 = GAS_MAX / 2;

/// Maximum number of waiting bodies of one address without requests that execute or scan.
const LIGHT_WAITING_OF_ONE: usize = 4_096;

/// Content types of requests: JSON's, and those of the old proposal for JSON-RPC over HTTP. A browser asks before its
/// page may send any of them to another site.
const CONTENT_TYPES: [&str; 3] = ["application/json", "application/json-rpc", "application/jsonrequest"];

/// A request of a body, or why it is none.
type Asked = Result<Request, Refused>;

/// The limits of this interface, for clients.
pub(crate) fn limits(body_bytes: usize) -> EthereumLimitsBody {
    EthereumLimitsBody {
        body_bytes: body_bytes.min(BODY_BYTES_MAX),
        batch_requests: wire::BATCH_MAX,
        answer_bytes: ANSWER_BYTES_MAX,
        calls_gas: GAS_MAX.to_string(),
        call_gas: CALL_GAS_MAX.to_string(),
        waiting_of_one: HEAVY_WAITING_OF_ONE,
        logs: LOG_RESULTS_MAX,
        log_heights: LOG_HEIGHTS_MAX,
        log_alternatives: LOG_ALTERNATIVES_MAX,
        filters: filters::FILTERS_MAX,
        filters_of_one: filters::FILTERS_OF_ONE,
        subscriptions: subscriptions::SUBSCRIPTIONS_MAX,
    }
}

/// The state shared by all requests.
#[derive(Clone)]
pub(crate) struct Rpc {
    api: Kit,
    filters: Arc<Filters>,
    /// Accounts for which a developers' chain sends.
    impersonated: Arc<Impersonated>,
    /// Turns of requests that neither execute nor scan.
    light: Arc<Gate>,
}

/// Who asks.
#[derive(Clone, Copy, Debug, Default)]
struct Caller {
    client: Client,
    may_submit: bool,
}

/// A body in progress.
struct Session<'a> {
    rpc: &'a Rpc,
    caller: Caller,
    /// Gas left for calls.
    gas: Cell<u64>,
    /// Bytes left for answers.
    bytes: Cell<usize>,
    /// Whether a transaction that it sends was accepted, and nobody had sent it before.
    has_paid: Cell<bool>,
    /// Time left to wait for blocks.
    wait: Cell<Duration>,
}

impl Rpc {
    /// The interface to a node.
    pub(crate) fn new(api: Kit) -> Rpc {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let (filters, impersonated) = (Arc::default(), Arc::default());
        Rpc { api, filters, impersonated, light: Gate::new(4 * cores, LIGHT_WAITING_OF_ONE, None) }
    }

    fn outline(&self) -> Arc<Outline> {
        self.api.published().views().outline().clone()
    }

    /// Answers a body; `None` if no answer is wanted.
    async fn answer(&self, bytes: Bytes, caller: Caller, visitor: &Visitor) -> Option<Value> {
        let mut session = Session::new(self, caller);
        let answer = match Body::read(&bytes) {
            Err(error) => Some(envelope(Value::Null, Err(error))),
            Ok(Body::One(one)) => session.answer_all(vec![one]).await.pop(),
            Ok(Body::Batch(batch)) => in_batch(session.answer_all(batch).await),
        };
        session.recognize(visitor);
        answer
    }
}

/// The answer to a batch; `None` if no answer is wanted.
fn in_batch(answers: Vec<Value>) -> Option<Value> {
    (!answers.is_empty()).then_some(Value::Array(answers))
}

fn is_heavy(one: &Asked) -> bool {
    one.as_ref().is_ok_and(|one| find(&one.method).is_some_and(|method| method.is_heavy))
}

/// Whether it waits for a block.
fn is_waiting(one: &Asked) -> bool {
    one.as_ref().is_ok_and(|one| one.method == sync::SEND_SYNC)
}

fn is_sent(one: &Asked) -> bool {
    one.as_ref().is_ok_and(|one| one.method == accounts::SEND)
}

impl<'a> Session<'a> {
    fn new(rpc: &'a Rpc, caller: Caller) -> Session<'a> {
        let (gas, bytes, has_paid) = (Cell::new(GAS_MAX), Cell::new(ANSWER_BYTES_MAX), Cell::new(false));
        Session { rpc, caller, gas, bytes, has_paid, wait: Cell::new(sync::WAIT_MAX) }
    }

    /// Whoever sends a transaction that counts has paid, and keeps the connection.
    fn recognize(&self, visitor: &Visitor) {
        if self.has_paid.take() {
            visitor.visit.recognize();
        }
    }

    /// Answers requests in order. Each request that executes or scans has a turn of its own, so that a long batch
    /// delays other clients by one of them at a time.
    async fn answer_all(&mut self, requests: Vec<Asked>) -> Vec<Value> {
        let mut answers = Vec::with_capacity(requests.len());
        let (mut rest, rpc) = (VecDeque::from(requests), self.rpc);
        while let Some(next) = rest.front() {
            if is_waiting(next) {
                let Some(Ok(request)) = rest.pop_front() else { break };
                answers.extend(send_and_wait(self, request).await);
                continue;
            }
            let is_heavy = is_heavy(next);
            let turns = if is_heavy { &rpc.api.heavy } else { &rpc.light };
            match turns.take(self.caller.client).await {
                Err(none) => answers.extend(rest.drain(..).filter_map(|one| refuse(one, none.into()))),
                // Runs on this thread, while another one takes over its tasks: each change of threads may have to wait
                // for a core, and on a busy machine this would dominate the cost of a small question. Doors run on
                // several threads.
                Ok(turn) => tokio::task::block_in_place(|| {
                    match is_heavy {
                        true => answers.extend(rest.pop_front().and_then(|one| self.answer_one(one))),
                        false => self.answer_light(&mut rest, &mut answers),
                    }
                    drop(turn);
                }),
            }
        }
        answers
    }

    /// Answers requests in order up to one that executes or scans. Adjacent transactions are sent together, so that
    /// their senders are recovered in parallel.
    fn answer_light(&self, rest: &mut VecDeque<Asked>, answers: &mut Vec<Value>) {
        let next_if = |rest: &mut VecDeque<Asked>, is_next: fn(&Asked) -> bool| {
            if rest.front().is_some_and(is_next) { rest.pop_front() } else { None }
        };
        while let Some(one) = next_if(rest, |one| !is_heavy(one) && !is_waiting(one)) {
            if !is_sent(&one) {
                answers.extend(self.answer_one(one));
                continue;
            }
            let mut sent: Vec<Request> = one.into_iter().collect();
            while let Some(next) = next_if(rest, is_sent) {
                sent.extend(next);
            }
            let results = self.guarded(|| self.send_all(&sent)).unwrap_or_else(|error| vec![Err(error); sent.len()]);
            let answered = sent.into_iter().zip(results);
            answers.extend(answered.filter_map(|(request, answer)| Some(envelope(request.id?, answer))));
        }
    }

    fn answer_one(&self, one: Asked) -> Option<Value> {
        match one {
            Err(Refused(id, error)) => Some(envelope(id, Err(error))),
            Ok(Request { id, method, params }) => {
                let answer = self.call(&method, &params);
                id.map(|id| envelope(id, answer))
            }
        }
    }

    fn call(&self, name: &str, params: &[Value]) -> Answer {
        let own = || find_developers(name).filter(|_| self.rpc.api.backend.is_developers());
        let method = own().or_else(|| find(name)).ok_or_else(|| RpcError::unknown_method(name))?;
        self.check_role(method.role)?;
        let params = Params::new(params, method.params)?;
        let result = self.guarded(|| (method.run)(self, &params))??;
        self.pay_bytes(weight(&result))?;
        Ok(result)
    }

    fn check_role(&self, role: Role) -> Result<(), RpcError> {
        if role == Role::Submit && !self.caller.may_submit {
            return Err(RpcError::server("sending requires the token of [http] submit_token_file, as a bearer token"));
        }
        Ok(())
    }

    fn pay_bytes(&self, bytes: usize) -> Result<(), RpcError> {
        self.bytes.set(self.bytes_after(bytes)?);
        Ok(())
    }

    /// The bytes left after an answer.
    fn bytes_after(&self, bytes: usize) -> Result<usize, RpcError> {
        let too_much = || RpcError::limit(format!("the answer is longer than {ANSWER_BYTES_MAX} bytes; ask for less"));
        self.bytes.get().checked_sub(bytes).ok_or_else(too_much)
    }

    /// Before an execution: fails if no gas is left.
    fn check_gas(&self) -> Result<(), RpcError> {
        let too_much = || RpcError::limit(format!("the calls of one request use more than {GAS_MAX} gas together"));
        if self.gas.get() == 0 { Err(too_much()) } else { Ok(()) }
    }

    /// A request that panics has not paid: the other ones of the body get no gas any more.
    fn guarded<T>(&self, answer: impl FnOnce() -> T) -> Result<T, RpcError> {
        caught(answer).inspect_err(|_| self.gas.set(0))
    }

    fn pay_gas(&self, gas: u64) {
        self.gas.set(self.gas.get().saturating_sub(gas));
    }

    /// The newest published block.
    fn latest(&self) -> Height {
        self.rpc.api.published().views().height()
    }

    /// The chain parameters that contracts see.
    fn terms(&self) -> Result<ContractsOutline, RpcError> {
        self.rpc.outline().contracts.ok_or_else(|| RpcError::server("this chain has no contracts"))
    }
}

/// The answer to a request that is not looked at, for a reason.
fn refuse(one: Asked, why: RpcError) -> Option<Value> {
    match one {
        Err(Refused(id, error)) => Some(envelope(id, Err(error))),
        Ok(Request { id, .. }) => id.map(|id| envelope(id, Err(why))),
    }
}

/// A panic while a request is answered becomes an error of this request, and of transactions sent together with it.
fn caught<T>(answer: impl FnOnce() -> T) -> Result<T, RpcError> {
    catch_unwind(AssertUnwindSafe(answer))
        .map_err(|_| RpcError::internal("a defect of the node; its log says where. Please report it"))
}

/// Approximate bytes of a value as JSON.
fn weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 10,
        Value::String(text) => text.len() + 3,
        Value::Array(all) => 2 + all.iter().map(weight).sum::<usize>(),
        Value::Object(all) => 2 + all.iter().map(|(key, value)| key.len() + 4 + weight(value)).sum::<usize>(),
    }
}

/// Both transports, at the root.
pub(crate) fn router(api: Kit) -> Router {
    let rpc = Rpc::new(api.clone());
    let limit = api.settings.body_bytes.min(BODY_BYTES_MAX);
    Router::new()
        .route("/", axum::routing::post(over_http).get(subscriptions::open))
        .method_not_allowed_fallback(async || {
            let message = "Ethereum's JSON-RPC is asked by POST, or over a WebSocket";
            Failure::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
        })
        .layer(DefaultBodyLimit::max(limit))
        .with_state(rpc)
        .layer(middleware::from_fn_with_state(api.clone(), guard::guard))
        .layer(middleware::from_fn_with_state(api, guard::cors))
}

async fn over_http(
    State(rpc): State<Rpc>,
    Extension(visitor): Extension<Visitor>,
    AskedBy(client): AskedBy,
    headers: HeaderMap,
    body: Result<Bytes, axum::extract::rejection::BytesRejection>,
) -> Response {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !CONTENT_TYPES.iter().any(|known| kind.eq_ignore_ascii_case(known)) {
        let message = format!("the content type of a request is {}", CONTENT_TYPES.join(" or "));
        return Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message).into_response();
    }
    let Ok(body) = body else { return Failure::too_large().into_response() };
    let caller = Caller { client, may_submit: rpc.api.admits(Role::Submit, &headers) };
    match rpc.answer(body, caller, &visitor).await {
        None => StatusCode::NO_CONTENT.into_response(),
        Some(answer) => ([(header::CONTENT_TYPE, "application/json")], answer.to_string()).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_of_its_request() {
        assert_eq!(caught(|| 7), Ok(7));
        let error = caught(|| panic!("a defect")).expect_err("an error");
        assert_eq!(error.code, -32_603);
    }
}
