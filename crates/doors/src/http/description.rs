//! The OpenAPI document: generated from the handlers, and completed here with what applies to all of them.

use ledger::Refusal;
use primitives::REFERENCE_KINDS;
use serde_json::{Map, Value, json};
use utoipa::openapi::OpenApi;

use crate::roles::{Role, role_of};

/// Answers that any call may get.
const ANY: [&str; 8] = ["400", "404", "408", "413", "421", "429", "500", "503"];
/// Larger integers are malformed; indices beyond the end of a list are allowed.
const INTEGER_MAX: u64 = u64::MAX;
const ADDRESS: &str = "^0x[0-9a-f]{40}$";
const DIGEST: &str = "^0x[0-9a-f]{64}$";
const SYMBOL: &str = "^[A-Za-z0-9][A-Za-z0-9._-]*$";
/// Prices with up to 16 digits; the ledger accepts 17, over 36 decades.
const PRICE: &str = r"^(0\.[0-9]{0,6}[1-9][0-9]{0,8}|[1-9][0-9]{0,7}(\.[0-9]{1,8})?)$";
/// A place in the book: limit, account and id.
const PLACE: &str = r"^[1-9][0-9]{0,7}:0x[0-9a-f]{40}:[0-9]{1,19}$";
/// A deposit of a venue: account and symbol.
const DEPOSIT: &str = "^0x[0-9a-f]{40}:[A-Za-z0-9][A-Za-z0-9._-]*$";
/// An order of a key: day and reference.
const ORDER: &str = "^[0-9]{1,4}-[0-9]{1,9}$";
/// A row of a history: height and position.
const HISTORY: &str = "^(0|[1-9][0-9]{0,14})-(0|[1-9][0-9]{0,8})$";
const CLIENT: &str = "^0x[0-9a-f]{32}$";
/// A reference of a payment as people write it: printable, and no longer than a hash with its prefix.
const REFERENCE: &str = "^[ -~]{1,66}$";
/// The histories of an account.
const ACCOUNT: &str = "/v1/accounts/{address}";
const HISTORIES: [&str; 4] = ["/orders", "/fills", "/transfers", "/balances"];
const TRANSACTION: &str = "^0x([0-9a-f]{2})+$";
const PREPARE: &str = "/v1/transactions/prepare";
/// The calls that lay out a transaction, and the names of their bodies.
const ASKED: [(&str, &str); 2] = [("/v1/typed-data", "TypedDataRequest"), (PREPARE, "PrepareRequest")];

/// The document as served.
pub(super) fn document(description: &OpenApi) -> Value {
    let mut document = serde_json::to_value(description).expect("the description is plain data");
    document["components"]["securitySchemes"] = json!({
        "operator": {"type": "http", "scheme": "bearer", "description": "the token of [http] operator_token_file"},
        "submit": {"type": "http", "scheme": "bearer", "description": "the token of [http] submit_token_file, if set"},
    });
    let schemas = &mut document["components"]["schemas"];
    schemas["Refusal"] = refusals();
    for (path, name) in ASKED {
        schemas[name] = asked(path);
    }
    api::flatten_unions(schemas.as_object_mut().expect("there are schemas"));
    for (path, item) in document["paths"].as_object_mut().expect("there are paths") {
        for (method, operation) in item.as_object_mut().expect("a path has operations") {
            complete(path, method, operation);
        }
    }
    document
}

/// The codes of refusals by the ledger, with what each says.
fn refusals() -> Value {
    let all = || Refusal::all().map(|refusal| (refusal.code(), refusal.to_string()));
    let lines: String = all().map(|(code, text)| format!("- `{code}`: {text}\n")).collect();
    let codes: Vec<&str> = all().map(|(code, _)| code).collect();
    let description = format!("Why the ledger refuses a transaction; `code` of an error or outcome.\n\n{lines}");
    json!({"type": "string", "enum": codes, "description": description})
}

fn complete(path: &str, method: &str, operation: &mut Value) {
    let responses = operation["responses"].as_object_mut().expect("every operation has responses");
    for status in ANY {
        responses.entry(status).or_insert_with(error);
    }
    if method == "post" {
        responses.entry("401").or_insert_with(error);
    }
    for (status, response) in responses.iter_mut() {
        if response["description"].as_str().is_none_or(str::is_empty) {
            response["description"] = sentence(status).into();
        }
    }
    for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap_or_default().to_string();
        narrow(path, &name, parameter["schema"].as_object_mut().expect("every parameter has a schema"));
    }
    if let Some(content) = operation.pointer_mut("/requestBody/content").and_then(Value::as_object_mut) {
        describe_body(path, content);
        if role_of(&method.to_uppercase(), path) == Role::Submit {
            let open: [Value; 2] = [json!({}), json!({"submit": []})];
            operation["security"] = json!(open);
        }
    }
}

fn error() -> Value {
    json!({"content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}}})
}

/// Sets the permitted values of a parameter, by its name.
fn narrow(path: &str, name: &str, schema: &mut Map<String, Value>) {
    if schema["type"] == "integer" {
        let is_short = schema.get("format").is_some_and(|format| format == "int32");
        let most: Value = match name {
            "fee_class" => u8::MAX.into(),
            "day" => u16::MAX.into(),
            _ if is_short => u32::MAX.into(),
            _ => INTEGER_MAX.into(),
        };
        schema.insert("maximum".into(), most);
        // The maxima of `int32` and `int64` are half of that.
        schema.remove("format");
        return;
    }
    let pattern = match name {
        "address" | "account" => ADDRESS,
        "id" if path.starts_with("/v1/transactions") || path.starts_with("/v1/lane") => DIGEST,
        "hash" | "key" => DIGEST,
        "cursor" if HISTORIES.iter().any(|history| path.strip_prefix(ACCOUNT) == Some(history)) => HISTORY,
        "client" => CLIENT,
        "cursor" if path.ends_with("/deposits") => DEPOSIT,
        "cursor" if path.ends_with("/orders") => ORDER,
        "id" => NUMBER,
        "since" | "offer" | "amount" | "bound" => NUMBER,
        "exact" => return drop(schema.insert("enum".into(), json!(["buy", "sell"]))),
        "reference" => REFERENCE,
        "reference_kind" => return drop(schema.insert("enum".into(), json!(REFERENCE_KINDS))),
        "cursor" | "after" | "before" if path.starts_with("/v1/accounts") => NUMBER,
        "base" | "quote" | "sell" | "buy" | "asset" | "a" | "b" => SYMBOL,
        "limit" | "from" | "to" => PRICE,
        "cursor" => PLACE,
        "wait" => return drop(schema.insert("enum".into(), json!(["committed"]))),
        "interval" => return drop(schema.insert("enum".into(), json!(["1m", "5m", "15m", "1h", "4h", "1d"]))),
        _ => return,
    };
    schema.insert("pattern".into(), pattern.into());
}

/// The body of a call that lays out a transaction.
fn asked(path: &str) -> Value {
    let mut properties = json!({
        "account": {"type": "string", "pattern": ADDRESS, "description": "Who sends it."},
        "sequence": {"type": ["string", "null"], "pattern": NUMBER,
            "description": "Its sequence number; without it, the next free one of the account."},
        "until": {"type": ["string", "null"], "pattern": NUMBER,
            "description": "The last height at which it may be committed; without it, some blocks from now."},
        "operation": {"$ref": "#/components/schemas/OperationBody", "description": "What it does."},
    });
    if path == PREPARE {
        properties["key"] = json!({"type": ["string", "null"], "pattern": DIGEST,
            "description": "The key that signs it; without it, a wallet signs."});
    }
    json!({"type": "object", "required": ["account", "operation"], "properties": properties,
        "additionalProperties": false, "description": "A transaction to be laid out for its signer."})
}

/// The type of bodies that are bytes.
const BYTES: &str = "application/octet-stream";

/// Transactions are sent as bytes, or as hexadecimal in JSON; requests to the payment lane as bytes alone.
fn describe_body(path: &str, content: &mut Map<String, Value>) {
    if let Some((_, name)) = ASKED.iter().find(|(asked, _)| *asked == path) {
        let schema = json!({"$ref": format!("#/components/schemas/{name}")});
        content.insert("application/json".into(), json!({"schema": schema}));
        return;
    }
    let bytes =
        |page: &str| json!({"schema": {"type": "string", "format": "binary", "description": format!("see {page}")}});
    if path == "/v1/lane/relay" {
        content.insert(BYTES.into(), bytes("docs/lane-specification.md"));
        return;
    }
    let one = json!({"type": "string", "pattern": TRANSACTION, "description": "see docs/specification.md"});
    let (name, schema) = match path {
        // An invalid transaction gets an error in its place, and the others are accepted.
        "/v1/ethereum/batch" => ("transactions", json!({"type": "array", "items": {"type": "string"}})),
        path if path.ends_with("/batch") => ("transactions", json!({"type": "array", "items": one})),
        _ => ("transaction", one),
    };
    let mut properties = Map::new();
    properties.insert(name.into(), schema);
    if path == "/v1/transactions" {
        let description = "the signature, for an `unsigned` of /v1/transactions/prepare or /v1/typed-data";
        let signature = json!({"type": "string", "pattern": TRANSACTION, "description": description});
        properties.insert("signature".into(), signature);
    }
    let body = json!({
        "type": "object", "required": [name], "properties": properties, "additionalProperties": false,
    });
    content.insert("application/json".into(), json!({"schema": body}));
    content.insert(BYTES.into(), bytes("docs/specification.md"));
}

/// Numbers of 64 bits, as decimal strings; a JSON number is taken too.
const NUMBER: &str = "^(0|[1-9][0-9]{0,18})$";

/// The meaning of a status here.
fn sentence(status: &str) -> &'static str {
    match status {
        "200" => "The answer.",
        "202" => "Accepted, and not committed yet: ask for the transaction again.",
        "400" => "Something in the request is malformed; the message names it.",
        "401" => "This call requires a token, as `Authorization: Bearer TOKEN`.",
        "404" => "It does not exist, or this node no longer has it.",
        "408" => "The body did not arrive in time.",
        "409" => "It contradicts something that is known; the message names it.",
        "410" => "It is older than what this node keeps; the message says what it keeps.",
        "413" => "The body is too large, or holds too many transactions.",
        "415" => "The content type of the body is not supported.",
        "421" => "The host name is not one of this node's; see [http] hosts.",
        "422" => "The transaction is rejected; the code names the reason.",
        "429" => "Too much at once; try again after the time in `Retry-After`.",
        "500" => "The node's archive cannot be read; its log says why.",
        "502" => "A shard of the payment lane does not answer this node: ask the others, or another node.",
        "503" => "The node cannot serve this now; try again after the time in `Retry-After`.",
        _ => "See the message.",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    /// Numbers of 64 bits that count what exists, so that none reaches 2^53, by how their name begins or ends. They are
    /// heights and epochs that were decided or lie at most 400 days ahead, milliseconds, and numbers of things that a
    /// node or the network has seen. What a client or a contract chooses without such a bound is not among them.
    const COUNTED: &str = "age height heights heights_left ms epoch epochs group_keys boundary from last home decided \
        certified certified_anywhere committed refused batches rounds halt_round unbonding_epochs sequence_window \
        until_max life_max previous connected needed validators me since acts confirms notice notice_min patience \
        closes rests_until signed log_bytes number in_force ends again";

    fn is_counted(name: &str) -> bool {
        COUNTED.split_whitespace().any(|end| name == end || name.ends_with(&format!("_{end}")))
    }

    /// The names of all integers of 64 bits in a schema.
    fn long_integers(name: &str, schema: &Value, found: &mut Vec<String>) {
        match schema {
            Value::Object(fields) => {
                let is_integer = match &fields.get("type") {
                    Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "integer"),
                    Some(kind) => *kind == "integer",
                    None => false,
                };
                if is_integer && fields.get("format").is_some_and(|format| format == "int64") {
                    found.push(name.into());
                }
                for (key, value) in fields {
                    let is_keyword = ["properties", "items", "allOf", "oneOf", "anyOf"].contains(&key.as_str());
                    long_integers(if is_keyword { name } else { key }, value, found);
                }
            }
            Value::Array(all) => all.iter().for_each(|one| long_integers(name, one, found)),
            _ => {}
        }
    }

    #[test]
    fn no_integer_of_64_bits_that_may_exceed_a_double_is_a_json_number() {
        let document = super::document(&crate::http::described().into_openapi());
        let schemas = document["components"]["schemas"].as_object().expect("schemas");
        let (mut wrong, mut seen) = (Vec::new(), 0);
        for (schema, described) in schemas {
            let mut found = Vec::new();
            long_integers("", described, &mut found);
            seen += found.len();
            wrong.extend(found.into_iter().filter(|name| !is_counted(name)).map(|name| format!("{schema}.{name}")));
        }
        assert!(wrong.is_empty() && seen > 20, "make these decimal strings: {wrong:?}");
        // The numbers that clients and contracts choose.
        for (schema, field) in [
            ("OfferBody", "id"),
            ("SequenceBody", "next"),
            ("TransactionOutcome", "sequence"),
            ("AccountEthereumBody", "nonce"),
            ("LimitsBody", "chain"),
        ] {
            assert_eq!(schemas[schema]["properties"][field]["type"], "string", "{schema}.{field}");
        }
        let parameters = &document["paths"]["/v1/accounts/{address}/offers"]["get"]["parameters"];
        for parameter in parameters.as_array().expect("parameters") {
            let is_id = ["cursor", "after", "before"].iter().any(|id| parameter["name"] == *id);
            assert!(!is_id || parameter["schema"]["pattern"] == super::NUMBER, "{parameter}");
        }
    }
}
