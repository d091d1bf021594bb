//! Typed data of native transactions, for Ethereum wallets (EIP-712).

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use primitives::{
    Address, Body, Operation, SignedBy, TYPED_DATA_NAME, TYPED_DATA_VERSION, Transaction, TypedData, UNTIL_USUAL,
    WalletSignature, to_hex,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::failure::{Answered, Failure};
use super::unsigned::{SIGNATURE, bytes_of_hex, unsigned, whole};
use super::{Api, number, parse};
use crate::json::{ErrorBody, TypedDataBody};

/// The form of a body.
const FORM: &str = r#"{"account":"0x…","operation":{"type":"pay","to":"0x…","asset":"EUR","amount":"1250"}}"#;

/// A transaction to be signed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    account: String,
    /// The ed25519 key that signs; a wallet signs where it is missing.
    pub(super) key: Option<String>,
    /// By default the account's next one.
    sequence: Option<Number>,
    /// The last height at which it may count.
    until: Option<Number>,
    operation: WantedOperation,
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

/// Operations with symbols and decimal strings, as the interface shows them.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum WantedOperation {
    CreateAccount {
        account: String,
        key: String,
    },
    CreateOffer {
        sell: String,
        buy: String,
        amount: String,
        limit: String,
    },
    CancelOffer {
        sell: String,
        buy: String,
        limit: String,
        offer: Number,
    },
    Pay {
        to: String,
        asset: String,
        amount: String,
    },
    Issue {
        to: String,
        asset: String,
        amount: String,
    },
    Burn {
        asset: String,
        amount: String,
    },
    Unstake {
        units: String,
    },
    Withdraw {
        to: String,
        asset: String,
        amount: String,
    },
    /// Any operation in its wire encoding.
    Encoded {
        bytes: String,
    },
}

impl Api {
    fn wanted(&self, operation: WantedOperation) -> Result<Operation, Failure> {
        let asset = |symbol: &str| self.asset(symbol);
        let units = |text: &str| number("amount", text);
        Ok(match operation {
            WantedOperation::CreateAccount { account, key } => {
                Operation::CreateAccount { account: parse("account", &account)?, key: parse("key", &key)? }
            }
            WantedOperation::CreateOffer { sell, buy, amount, limit } => {
                let (sell, buy, amount) = (asset(&sell)?, asset(&buy)?, units(&amount)?);
                Operation::CreateOffer { sell, buy, amount, limit: parse("limit", &limit)? }
            }
            WantedOperation::CancelOffer { sell, buy, limit, offer } => {
                let (sell, buy, limit) = (asset(&sell)?, asset(&buy)?, parse("limit", &limit)?);
                Operation::CancelOffer { sell, buy, limit, offer: offer.read("offer")? }
            }
            WantedOperation::Pay { to, asset: of, amount } => {
                Operation::Pay { to: parse("to", &to)?, asset: asset(&of)?, amount: units(&amount)? }
            }
            WantedOperation::Issue { to, asset: of, amount } => {
                Operation::Issue { to: parse("to", &to)?, asset: asset(&of)?, amount: units(&amount)? }
            }
            WantedOperation::Burn { asset: of, amount } => {
                Operation::Burn { asset: asset(&of)?, amount: units(&amount)? }
            }
            WantedOperation::Unstake { units: text } => Operation::Unstake { units: number("units", &text)? },
            WantedOperation::Withdraw { to, asset: of, amount } => {
                Operation::Withdraw { to: parse("to", &to)?, asset: asset(&of)?, amount: units(&amount)? }
            }
            WantedOperation::Encoded { bytes } => borsh::from_slice(&bytes_of_hex("bytes", &bytes)?)
                .map_err(|error| Failure::malformed(format!("bytes: not an operation: {error}")))?,
        })
    }

    /// The body of a transaction, with the account's next number and the usual end where none are given; and the
    /// identity of the network.
    pub(super) fn wanted_body(&self, wanted: Wanted) -> Result<(Body, primitives::Digest), Failure> {
        let account: Address = parse("account", &wanted.account)?;
        let sequence = wanted.sequence.map(|asked| asked.read("sequence")).transpose()?;
        let sequence = sequence.unwrap_or_else(|| self.next_sequence(&account));
        let operation = self.wanted(wanted.operation)?;
        let views = self.published().views();
        let (chain, network) = (views.outline().chain, views.outline().validators.terms().network);
        let until = wanted.until.map(|asked| asked.read("until")).transpose()?;
        let until = until.unwrap_or_else(|| views.height().saturating_add(UNTIL_USUAL));
        Ok((Body { chain, account, sequence, until, operation }, network))
    }

    fn next_sequence(&self, account: &Address) -> u64 {
        let waiting = self.backend.pending_sequence(account);
        let highest = self.backend.account(account).account.map_or(0, |account| account.window.highest());
        highest.max(waiting).saturating_add(1)
    }
}

/// The typed data in the form of `eth_signTypedData_v4`, and the transaction up to its signature.
pub(super) fn described(body: &Body, network: primitives::Digest) -> TypedDataBody {
    let data = TypedData::of(body);
    let field = |name: &str, kind: &str| json!({"name": name, "type": kind});
    let domain = [("name", "string"), ("version", "string"), ("chainId", "uint256"), ("salt", "bytes32")];
    let domain: Vec<Value> = domain.iter().map(|(name, kind)| field(name, kind)).collect();
    let fields: Vec<Value> = data.fields.iter().map(|(name, value)| field(name, value.kind())).collect();
    let message: Map<String, Value> =
        data.fields.iter().map(|(name, value)| ((*name).into(), value.text().into())).collect();
    let signed_by = SignedBy::TypedData { network, signature: WalletSignature([0; SIGNATURE]) };
    let transaction = Transaction { body: body.clone(), signed_by };
    TypedDataBody {
        sequence: body.sequence.to_string(),
        until: body.until.to_string(),
        unsigned: unsigned(&transaction),
        hash: format!("0x{}", to_hex(&data.hash(body.chain, &network))),
        typed_data: json!({
            "types": {"EIP712Domain": domain, data.primary: fields},
            "primaryType": data.primary,
            "domain": {
                "name": TYPED_DATA_NAME,
                "version": TYPED_DATA_VERSION,
                "chainId": chain_number(body.chain),
                "salt": network.to_string(),
            },
            "message": message,
        }),
    }
}

/// The number of a chain as wallets expect it: a JSON number, and text where a double would change it.
fn chain_number(chain: u64) -> Value {
    const DOUBLES: u64 = 1 << 53;
    if chain < DOUBLES { chain.into() } else { chain.to_string().into() }
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
        let (body, network) = api.wanted_body(wanted)?;
        Ok(Json(described(&body, network)))
    })
    .await?
}
