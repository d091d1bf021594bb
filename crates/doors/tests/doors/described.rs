//! The OpenAPI document against the node that it describes: the same calls, and answers of the shape that it gives.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::fake::Fake;
use crate::open::{get, loopback, send, with_node};
use doors::roles::ENDPOINTS;
use primitives::{AssetId, Body, Operation, PublicKey, Signature, Transaction};
use serde_json::Value;

const OWNER: PublicKey = PublicKey([1; 32]);

/// Calls that no schema describes: probes, the documents themselves, and the stream.
const UNDESCRIBED: [&str; 6] =
    ["/healthz", "/readyz", "/metrics", "/v1/openapi.json", "/v1/asyncapi.json", "/v1/stream"];

fn node() -> Arc<Fake> {
    let node = Fake::new();
    for sequence in 1..=2 {
        let limit = "2".parse().expect("a price");
        let operation = Operation::offer(AssetId(0), AssetId(1), 5_000, limit);
        let body = Body { chain: 1, account: OWNER.address(), sequence, until: 50_000, operation };
        node.commit(&[Transaction::by_key(body, OWNER, Signature([0; 64]))]);
    }
    Arc::new(node)
}

/// Follows a reference of a document.
fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(reference) => document.pointer(reference.trim_start_matches('#')).expect("the reference leads somewhere"),
        None => schema,
    }
}

/// Where a value is not of its schema; only what this document uses of JSON Schema. A field that is not described is a
/// mismatch.
fn mismatch(document: &Value, schema: &Value, value: &Value, place: &str) -> Option<String> {
    differs(document, schema, value, place, false)
}

/// As [`mismatch`]; the schema of a part allows fields of other parts.
fn differs(document: &Value, schema: &Value, value: &Value, place: &str, is_part: bool) -> Option<String> {
    let schema = resolved(document, schema);
    for several in ["oneOf", "anyOf"] {
        if let Some(all) = schema[several].as_array() {
            let none = all.iter().all(|one| differs(document, one, value, place, is_part).is_some());
            return none.then(|| format!("{place}: {value} is none of {several}"));
        }
    }
    if let Some(all) = schema["allOf"].as_array() {
        return all.iter().find_map(|one| differs(document, one, value, place, true));
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    let is = |kind: &&str| match *kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        _ => false,
    };
    if !kinds.iter().any(is) {
        return Some(format!("{place}: {value} is no {kinds:?}"));
    }
    if let Some(items) = value.as_array() {
        return items.iter().find_map(|item| mismatch(document, &schema["items"], item, &format!("{place}[]")));
    }
    let fields = value.as_object()?;
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    for name in required {
        if !fields.contains_key(name) {
            return Some(format!("{place}.{name} is missing"));
        }
    }
    let described = schema["properties"].as_object()?;
    fields.iter().find_map(|(name, value)| match described.get(name) {
        Some(schema) => mismatch(document, schema, value, &format!("{place}.{name}")),
        None => (!is_part).then(|| format!("{place}.{name} is not described")),
    })
}

#[test]
fn the_document_lists_the_calls_that_exist_and_no_other() {
    with_node(loopback(), node(), |server| {
        let document = get(server, "/v1/openapi.json");
        let mut described = BTreeSet::new();
        for (path, item) in document["paths"].as_object().expect("paths") {
            described
                .extend(item.as_object().expect("methods").keys().map(|method| (method.to_uppercase(), path.clone())));
        }
        let known = ENDPOINTS.iter().filter(|(_, path, _)| !UNDESCRIBED.contains(path));
        let known: BTreeSet<(String, String)> =
            known.map(|(method, path, _)| (method.to_string(), path.to_string())).collect();
        assert_eq!(described, known);
    });
}

#[test]
fn answers_have_the_shape_that_the_document_gives() {
    with_node(loopback(), node(), |server| {
        let document = get(server, "/v1/openapi.json");
        let owner = OWNER.address().to_string();
        let mut checked = 0;
        for (path, item) in document["paths"].as_object().expect("paths") {
            let Some(responses) = item["get"]["responses"].as_object() else { continue };
            let concrete = path
                .replace("{height}", "1")
                .replace("{base}", "USD")
                .replace("{quote}", "EUR")
                .replace("{sell}", "USD")
                .replace("{buy}", "EUR")
                .replace("{limit}", "2")
                .replace("{account}", &owner)
                .replace("{address}", &owner)
                .replace("{id}", "1");
            let (status, body) = send(server, "GET", &concrete, "", &[]);
            // What is refused has the shape of errors, whatever the call lists.
            let schema = match status {
                200 => &responses["200"]["content"]["application/json"]["schema"],
                _ => &document["components"]["schemas"]["ErrorBody"],
            };
            if !schema.is_null() {
                assert_eq!(mismatch(&document, schema, &body, &concrete), None, "{body}");
                checked += usize::from(status == 200);
            }
        }
        assert!(checked >= 18, "{checked} calls were answered");
    });
}
