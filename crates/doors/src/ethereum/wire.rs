//! JSON-RPC 2.0: requests, answers, and errors by the codes of Ethereum's execution-apis.

use axum::http::StatusCode;
use ledger::contracts::{EthereumFault, UndoError};
use replica::{EthereumReject, LogsError};
use serde_json::{Value, json};
use sockets::NoTurn;

use super::values::data;
use crate::backend::{Closed, ReadError};
use crate::kit::Failure;

/// Maximum number of requests of a batch.
pub(super) const BATCH_MAX: usize = 1_000;

/// How methods of other nodes begin that this one does not have, and what does the same here.
const INSTEAD: [(&str, &str); 11] = [
    ("trace_filter", "use trace_block of each block; eth_getLogs searches many at once"),
    ("trace_call", "use debug_traceCall with the flatCallTracer"),
    ("trace_", "use trace_transaction or trace_block"),
    ("ots_", "use eth_ and debug_ methods; the node has a page of its own"),
    ("erigon_", "use eth_ methods"),
    ("engine_", "blocks are agreed on by validators, and no other client drives this one"),
    ("admin_", "operators use the file walras.toml and `walras status`"),
    ("miner_", "blocks are agreed on, not mined"),
    ("eth_sign", "the node has no keys: sign in the wallet, and use eth_sendRawTransaction"),
    ("eth_sendTransaction", "the node has no keys: sign in the wallet, and use eth_sendRawTransaction"),
    ("eth_getUncle", "blocks have no uncles"),
];

/// The answer to a request.
pub(super) type Answer = Result<Value, RpcError>;

/// An error for a client.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RpcError {
    pub code: i64,
    pub message: String,
    pub data: Option<Value>,
}

impl RpcError {
    fn new(code: i64, message: impl Into<String>) -> RpcError {
        RpcError { code, message: message.into(), data: None }
    }

    pub fn parse(message: impl std::fmt::Display) -> RpcError {
        RpcError::new(-32_700, format!("not JSON: {message}"))
    }

    pub fn invalid_request(message: impl Into<String>) -> RpcError {
        RpcError::new(-32_600, message)
    }

    pub fn unknown_method(name: &str) -> RpcError {
        let name: String = name.chars().take(100).collect();
        let instead = INSTEAD.iter().find(|(begin, _)| name.starts_with(begin));
        let instead = instead.map_or(String::new(), |(_, words)| format!(": {words}"));
        RpcError::new(-32_601, format!("the method {name} does not exist or is not available{instead}"))
    }

    pub fn invalid_params(message: impl Into<String>) -> RpcError {
        RpcError::new(-32_602, message)
    }

    pub fn internal(message: impl Into<String>) -> RpcError {
        RpcError::new(-32_603, message)
    }

    /// Something that the state or the node does not permit.
    pub fn server(message: impl Into<String>) -> RpcError {
        RpcError::new(-32_000, message)
    }

    /// Something that exceeds a limit of the node.
    pub fn limit(message: impl Into<String>) -> RpcError {
        RpcError::new(-32_005, message)
    }

    /// The same error with data for programs.
    pub fn with_data(self, data: Value) -> RpcError {
        RpcError { data: Some(data), ..self }
    }

    /// A call that reverted, with its reason.
    pub fn reverted(output: &[u8]) -> RpcError {
        let message = match reason(output) {
            Some(reason) => format!("execution reverted: {reason}"),
            None => "execution reverted".into(),
        };
        RpcError { code: 3, message, data: Some(data(output)) }
    }

    pub fn to_json(&self) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        error
    }
}

/// The text of `Error(string)`, or the number of `Panic(uint256)`, as Solidity encodes them.
pub(super) fn reason(output: &[u8]) -> Option<String> {
    let (selector, rest) = output.split_at_checked(4)?;
    let word = |at: usize| rest.get(32 * at..32 * at + 32);
    let small = |word: &[u8]| {
        let (high, low) = word.split_at(28);
        high.iter().all(|byte| *byte == 0).then(|| u32::from_be_bytes(low.try_into().expect("four bytes")) as usize)
    };
    match selector {
        [0x08, 0xc3, 0x79, 0xa0] if small(word(0)?)? == 32 => {
            let length = small(word(1)?)?;
            let text = rest.get(64..64usize.checked_add(length)?)?;
            Some(String::from_utf8_lossy(text).into_owned())
        }
        [0x4e, 0x48, 0x7b, 0x71] => Some(format!("panic code 0x{:02x}", small(word(0)?)?)),
        _ => None,
    }
}

/// The HTTP interface's error for an execution that cannot be repeated.
impl From<RpcError> for Failure {
    fn from(error: RpcError) -> Failure {
        let (status, code) = match error.code {
            -32_603 => (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
            _ => (StatusCode::NOT_FOUND, "not_replayed"),
        };
        Failure::new(status, code, error.message)
    }
}

impl From<UndoError> for RpcError {
    fn from(error: UndoError) -> RpcError {
        RpcError::server(error.to_string())
    }
}

impl From<ReadError> for RpcError {
    fn from(error: ReadError) -> RpcError {
        if let ReadError::Archive(_) = error {
            tracing::error!(%error, "cannot read the archive for a client's request");
            return RpcError::internal("the archive cannot be read; the node's log says why");
        }
        RpcError::server(error.to_string())
    }
}

impl From<Closed> for RpcError {
    fn from(closed: Closed) -> RpcError {
        RpcError::server(closed.to_string())
    }
}

impl From<NoTurn> for RpcError {
    fn from(none: NoTurn) -> RpcError {
        match none {
            NoTurn::Crowded | NoTurn::OverBudget { .. } => RpcError::limit(none.to_string()),
            NoTurn::Stopping => RpcError::server(none.to_string()),
        }
    }
}

impl From<LogsError> for RpcError {
    fn from(error: LogsError) -> RpcError {
        match error {
            LogsError::Forgotten { .. } => RpcError::server(error.to_string()),
            _ => RpcError::limit(format!("query returned more than the limit: {error}")),
        }
    }
}

/// With the messages that Ethereum's libraries look for.
impl From<EthereumReject> for RpcError {
    fn from(reject: EthereumReject) -> RpcError {
        let words = match &reject {
            EthereumReject::NonceTooLow { .. } => "nonce too low",
            EthereumReject::NonceTooHigh { .. } => "nonce too high",
            EthereumReject::Funds => "insufficient funds for gas * price + value",
            EthereumReject::Price { .. } => "max fee per gas less than block base fee",
            EthereumReject::Replacement { .. } => "replacement transaction underpriced",
            EthereumReject::Delegated => "in-flight transaction limit reached for delegated accounts",
            EthereumReject::DelegatedGap { .. } => "gapped-nonce tx from delegated accounts",
            EthereumReject::SenderHasCode => "sender not an eoa",
            EthereumReject::Proposed => "already proposed",
            EthereumReject::Oversized { .. } => "oversized data",
            EthereumReject::Full => return RpcError::limit("txpool is full; try again shortly"),
            EthereumReject::Waiting => "already known",
            EthereumReject::NoContracts => "no contracts",
            EthereumReject::Fault(EthereumFault::IntrinsicGas { .. }) => "intrinsic gas too low",
            EthereumReject::Fault(EthereumFault::GasCap(_)) => "exceeds block gas limit",
            EthereumReject::Fault(EthereumFault::Unprotected(_)) => {
                "only replay-protected (EIP-155) transactions allowed over RPC"
            }
            EthereumReject::Fault(EthereumFault::Chain { .. }) => "invalid chain id for signer",
            EthereumReject::Fault(EthereumFault::Blob) => "transaction type not supported",
            EthereumReject::Fault(EthereumFault::Signature) => "invalid sender",
            EthereumReject::Fault(EthereumFault::Undecodable) => return RpcError::invalid_params(reject.to_string()),
            EthereumReject::Fault(_) => "invalid transaction",
        };
        RpcError::server(format!("{words}: {reject}"))
    }
}

/// A request as it was received.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Request {
    /// The id of the answer; `None` if no answer is wanted.
    pub id: Option<Value>,
    pub method: String,
    pub params: Vec<Value>,
}

/// The content of a body.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Body {
    One(Result<Request, Refused>),
    Batch(Vec<Result<Request, Refused>>),
}

/// A request that cannot be parsed, with its id if it has one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Refused(pub Value, pub RpcError);

impl Body {
    /// Parses a body.
    ///
    /// # Errors
    /// [`RpcError`] if the body as a whole cannot be answered.
    pub fn read(bytes: &[u8]) -> Result<Body, RpcError> {
        match serde_json::from_slice(bytes).map_err(RpcError::parse)? {
            Value::Array(batch) if batch.is_empty() => Err(RpcError::invalid_request("an empty batch")),
            Value::Array(batch) if batch.len() > BATCH_MAX => {
                let count = batch.len();
                Err(RpcError::limit(format!("{count} requests in a batch; send at most {BATCH_MAX} at a time")))
            }
            Value::Array(batch) => Ok(Body::Batch(batch.into_iter().map(request).collect())),
            one => Ok(Body::One(request(one))),
        }
    }

    #[cfg(test)]
    pub fn requests(&self) -> impl Iterator<Item = &Request> {
        let all = match self {
            Body::One(one) => std::slice::from_ref(one),
            Body::Batch(batch) => batch,
        };
        all.iter().flatten()
    }
}

fn request(value: Value) -> Result<Request, Refused> {
    let Value::Object(mut fields) = value else {
        return Err(Refused(Value::Null, RpcError::invalid_request("a request is an object")));
    };
    let id = fields.remove("id");
    let wrong = |id: Option<Value>, message: &str| {
        let id = id.filter(is_id).unwrap_or(Value::Null);
        Err(Refused(id, RpcError::invalid_request(message)))
    };
    if id.as_ref().is_some_and(|id| !is_id(id)) {
        return wrong(None, "the id of a request is a string or a number");
    }
    if fields.get("jsonrpc").is_none_or(|version| version != "2.0") {
        return wrong(id, "\"jsonrpc\" must be \"2.0\"");
    }
    let Some(Value::String(method)) = fields.remove("method") else {
        return wrong(id, "a request names its method");
    };
    match fields.remove("params").unwrap_or(Value::Null) {
        Value::Array(params) => Ok(Request { id, method, params }),
        Value::Null => Ok(Request { id, method, params: Vec::new() }),
        _ => Err(Refused(id.unwrap_or(Value::Null), RpcError::invalid_params("parameters are given by position"))),
    }
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_number() || id.is_null()
}

/// An answer in its envelope.
pub(super) fn envelope(id: Value, answer: Answer) -> Value {
    match answer {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error.to_json()}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fuzz::Target;

    fn codes(body: &str) -> Vec<i64> {
        match Body::read(body.as_bytes()) {
            Err(error) => vec![error.code],
            Ok(Body::One(one)) => vec![one.map_or_else(|Refused(_, error)| error.code, |_| 0)],
            Ok(Body::Batch(all)) => {
                all.into_iter().map(|one| one.map_or_else(|Refused(_, error)| error.code, |_| 0)).collect()
            }
        }
    }

    #[test]
    fn a_method_of_other_nodes_is_refused_with_what_does_the_same() {
        let message = |name: &str| RpcError::unknown_method(name).message;
        assert!(message("trace_filter").contains("trace_block") && message("trace_get").contains("trace_transaction"));
        assert!(message("trace_callMany").contains("debug_traceCall with the flatCallTracer"));
        assert!(message("eth_signTransaction").contains("eth_sendRawTransaction"));
        assert_eq!(message("eth_mining"), "the method eth_mining does not exist or is not available");
    }

    #[test]
    fn requests_are_told_apart_from_what_is_none() {
        assert_eq!(codes(r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#), [0]);
        assert_eq!(codes("{"), [-32_700]);
        assert_eq!(codes("[]"), [-32_600]);
        assert_eq!(codes(r#"[1,{"jsonrpc":"2.0","method":"a","params":[]}]"#), [-32_600, 0]);
        assert_eq!(codes(r#"{"id":1,"method":"a"}"#), [-32_600]);
        assert_eq!(codes(r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#), [-32_600]);
        assert_eq!(codes(r#"{"jsonrpc":"2.0","id":1}"#), [-32_600]);
        assert_eq!(codes(r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":1}}"#), [-32_602]);
        assert_eq!(codes(&format!("[{}0]", "0,".repeat(BATCH_MAX))), [-32_005]);
    }

    #[test]
    fn reasons_are_read_and_lies_about_lengths_are_not_followed() {
        let mut said = vec![0x08, 0xc3, 0x79, 0xa0];
        let word = |number: u8| std::array::from_fn::<u8, 32, _>(|at| if at == 31 { number } else { 0 });
        said.extend([word(32), word(3)].concat());
        said.extend(b"no!");
        assert_eq!(reason(&said).as_deref(), Some("no!"));
        said[4 + 63] = 200;
        assert_eq!(reason(&said), None);
        said[4 + 32..4 + 64].fill(255);
        assert_eq!(reason(&said), None);
        let panic = [&[0x4e, 0x48, 0x7b, 0x71][..], &word(0x11)].concat();
        assert_eq!(reason(&panic).as_deref(), Some("panic code 0x11"));
        assert_eq!(reason(&[]), None);
        assert_eq!(RpcError::reverted(&panic).to_json()["code"], 3);
    }

    /// Any bytes are a request, a batch of requests, or an error of the standard.
    #[test]
    fn bodies_of_strangers() {
        let call = br#"{"jsonrpc":"2.0","id":"a","method":"eth_call","params":[{"to":"0x00"},"latest"]}"#;
        let batch = [&b"["[..], call, b",", call, b"]"].concat();
        let seeds = vec![call.to_vec(), batch, br#"{"jsonrpc":"2.0","method":"x"}"#.to_vec()];
        let words = ["[[[[[[", "{\"id\":", "null", "1e999", "\"jsonrpc\":\"2.0\"", "\\ud800", "\"params\":", "0x"];
        // Other tests allocate at the same time.
        Target { words: &words, room: None, ..Target::new("json_rpc", seeds) }.run(|bytes| match Body::read(bytes) {
            Err(error) if [-32_700, -32_600, -32_005].contains(&error.code) => Err(error.code.to_string()),
            Err(error) => panic!("{error:?}"),
            Ok(body) => match body.requests().next() {
                Some(_) => Ok(format!("requests {}", matches!(body, Body::Batch(_)))),
                None => Err("no request".into()),
            },
        });
    }
}
