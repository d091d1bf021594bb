//! Typed data of native transactions, for Ethereum wallets (EIP-712).

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use primitives::{
    Address, Body, PublicKey, SignedBy, Transaction, TypedData, UNTIL_USUAL, WalletSignature, slot_sequence, to_hex,
};
use serde::Deserialize;

use super::unsigned::{SIGNATURE, unsigned, whole};
use super::{Api, number, parse};
use crate::json::{self, ErrorBody, OperationBody, TypedDataBody};
use crate::kit::{Answered, Failure};

/// The form of a body.
const FORM: &str = r#"{"account":"0x…","operation":{"type":"pay","to":"0x…","asset":"EUR","amount":"1250"}}"#;

/// A transaction to be signed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    account: String,
    /// The ed25519 key that signs; a wallet signs where it is missing.
    pub(super) key: Option<String>,
    /// By default the next one of the account, or of its session key.
    sequence: Option<Number>,
    /// The last height at which it may count.
    until: Option<Number>,
    operation: OperationBody,
}

/// A number of 64 bits: decimal text, as the interface writes it, or a JSON number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Text(String),
    Json(u64),
}

impl Number {
    fn read(&self, name: &str) -> Result<u64, Failure> {
        match self {
            Number::Text(text) => number(name, text),
            Number::Json(value) => Ok(*value),
        }
    }
}

/// The body of a transaction, with the account's next number and the usual end where none are given; and the
/// identity of the network.
pub(super) fn wanted_body(
    api: &Api,
    wanted: Wanted,
    key: Option<&PublicKey>,
) -> Result<(Body, primitives::Digest), Failure> {
    let account: Address = parse("account", &wanted.account)?;
    let sequence = wanted.sequence.map(|asked| asked.read("sequence")).transpose()?;
    let sequence = sequence.unwrap_or_else(|| next_sequence(api, &account, key));
    let operation = api.operation(&wanted.operation)?;
    let views = api.published().views();
    let (chain, network) = (views.outline().chain, views.outline().validators.terms.network);
    let until = wanted.until.map(|asked| asked.read("until")).transpose()?;
    let until = until.unwrap_or_else(|| views.height().saturating_add(UNTIL_USUAL));
    Ok((Body { chain, account, sequence, until, operation }, network))
}

/// The next number of an account, or of its session key if this is one.
fn next_sequence(api: &Api, account: &Address, key: Option<&PublicKey>) -> u64 {
    let state = api.backend.account(account).account;
    let sessions = state.as_ref().and_then(|state| state.sessions.as_ref());
    let session = key.and_then(|key| sessions?.records.iter().find(|record| record.key == *key));
    let (slot, highest) = match (session, &state) {
        (Some(session), _) => (session.slot, slot_sequence(session.slot, session.window.highest())),
        (None, state) => (0, state.as_ref().map_or(0, |state| state.window.highest())),
    };
    highest.max(api.backend.pending_sequence(account, slot)).saturating_add(1)
}

/// The typed data in the form of `eth_signTypedData_v4`, and the transaction up to its signature.
pub(super) fn described(body: &Body, network: primitives::Digest) -> TypedDataBody {
    let data = TypedData::of(body);
    let signed_by = SignedBy::TypedData { network, signature: WalletSignature([0; SIGNATURE]) };
    let transaction = Transaction { body: body.clone(), signed_by };
    TypedDataBody {
        sequence: body.sequence.to_string(),
        until: body.until.to_string(),
        unsigned: unsigned(&transaction),
        hash: format!("0x{}", to_hex(&data.hash(body.chain, &network))),
        typed_data: json::typed_data(&data, body.chain, &network),
    }
}

/// The data that an Ethereum wallet signs for a native transaction.
#[utoipa::path(post, path = "/v1/typed-data",
    request_body(content = String, content_type = "application/json",
        description = "`{\"account\":\"0x…\",\"operation\":{\"type\":\"pay\",…}}`, with `sequence`, `until`"),
    responses((status = 200, body = TypedDataBody), (status = 400, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 413, body = ErrorBody)))]
pub(super) async fn typed_data(State(api): State<Api>, body: Result<Bytes, BytesRejection>) -> Answered<TypedDataBody> {
    let wanted: Wanted = serde_json::from_slice(&whole(body)?)
        .map_err(|error| Failure::malformed(format!("the body is not JSON such as {FORM}: {error}")))?;
    if wanted.key.is_some() {
        let told = "key: a wallet signs typed data; ask /v1/transactions/prepare for the bytes that another key signs";
        return Err(Failure::malformed(told));
    }
    api.blocking(move |api| {
        let (body, network) = wanted_body(api, wanted, None)?;
        Ok(Json(described(&body, network)))
    })
    .await?
}
