//! The AsyncAPI document of the stream: channels and messages, with the schemas of the OpenAPI document.

use serde_json::{Map, Value, json};

/// Each kind of channel: its form, what its snapshot has besides `type`, `channel` and `height`, and the type and the
/// schema of its increments.
const CHANNELS: [(&str, &str, &str, &str); 9] = [
    ("blocks", "`blocks`: the last 20", "block", "BlockBody"),
    ("batches", "`batch`: the last one", "batch", "BatchBody"),
    ("trades", "`trades` of the last batch, of all markets", "trade", "MarketTradeBody"),
    ("trades:BASE/QUOTE", "`trades` of the last batch", "trade", "MarketTradeBody"),
    ("book:BASE/QUOTE", "the fields of a BookSnapshotBody", "book", "BookChangeBody"),
    ("ticker:BASE/QUOTE", "`ticker`: a TickerBody", "ticker", "TickerBody"),
    ("candles:BASE/QUOTE:INTERVAL", "`candles`: the last 500", "candle", "MarketCandleBody"),
    ("account:ADDRESS", "the fields of an AccountSnapshot", "account", "AccountIncrement"),
    ("orders:ADDRESS", "the fields of an OwnOrdersBody, after a login", "orders", "OwnOrdersBody"),
];

/// The bodies that the stream tells.
#[cfg(test)]
pub(super) fn bodies() -> impl Iterator<Item = &'static str> {
    CHANNELS.into_iter().map(|(.., schema)| schema).chain(["BookSnapshotBody", "AccountSnapshot"])
}

/// The document, with these schemas.
pub(super) fn document(openapi: &Value) -> Value {
    let mut messages = Map::new();
    let names: Vec<&str> = CHANNELS.iter().map(|(name, ..)| *name).collect();
    for (_, _, kind, schema) in CHANNELS {
        messages.insert(kind.into(), message(kind, json!([{"$ref": format!("#/components/schemas/{schema}")}])));
    }
    let number = json!({"type": "integer"});
    let text = json!({"type": "string"});
    let fixed = [
        ("snapshot", json!({"channel": text, "height": number}), "What a channel begins with."),
        ("resumed", json!({"channel": text, "height": number}), "A channel goes on from this height."),
        ("heartbeat", json!({"height": number, "time_ms": number}), "Every second."),
        (
            "challenge",
            json!({"nonce": text, "server": text, "network": text}),
            "What a login signs; it counts once, on this connection.",
        ),
        (
            "login",
            json!({"account": text, "slot": number}),
            "The connection may have the account's own channels; the slot is that of the key, 0 of the account's own.",
        ),
        ("error", json!({"code": text, "message": text}), "A request is refused; the stream goes on."),
    ];
    for (kind, properties, says) in fixed {
        let required: Vec<&String> = properties.as_object().expect("an object").keys().collect();
        let fields = json!([{"type": "object", "required": required, "properties": properties}]);
        let mut told = message(kind, fields);
        told["summary"] = says.into();
        messages.insert(kind.into(), told);
    }
    messages.insert("on_disconnect".into(), on_disconnect());
    messages.insert("request".into(), request(&names));
    let refs = |kinds: &mut dyn Iterator<Item = &String>| -> Vec<Value> {
        kinds.map(|kind| json!({"$ref": format!("#/channels/stream/messages/{kind}")})).collect()
    };
    let told = refs(&mut messages.keys().filter(|kind| *kind != "request"));
    let asked = refs(&mut messages.keys().filter(|kind| *kind == "request"));
    let of_channel: Map<String, Value> =
        messages.keys().map(|kind| (kind.clone(), json!({"$ref": format!("#/components/messages/{kind}")}))).collect();
    json!({
        "asyncapi": "3.0.0",
        "info": {"title": "Walras: the stream", "version": openapi["info"]["version"], "description": described()},
        "defaultContentType": "application/json",
        "channels": {"stream": {"address": "/v1/stream", "messages": of_channel}},
        "operations": {
            "subscribe": {"action": "receive", "channel": {"$ref": "#/channels/stream"}, "messages": asked},
            "tell": {"action": "send", "channel": {"$ref": "#/channels/stream"}, "messages": told},
        },
        "components": {"messages": messages, "schemas": openapi["components"]["schemas"]},
    })
}

/// A message of the node: its type, its number, and these schemas.
fn message(kind: &str, mut all: Value) -> Value {
    let own = json!({
        "type": "object",
        "required": ["type", "sequence"],
        "properties": {"type": {"const": kind}, "sequence": {"type": "integer", "minimum": 0}},
    });
    all.as_array_mut().expect("a list").insert(0, own);
    json!({"name": kind, "payload": {"allOf": all}})
}

fn request(channels: &[&str]) -> Value {
    let names = json!({"type": "array", "items": {"type": "string"}, "description": channels.join(", ")});
    let heights = json!({"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}});
    let text = json!({"type": "string"});
    let login = json!({
        "type": "object", "additionalProperties": false, "required": ["account", "signature"],
        "properties": {"account": text, "key": text, "signature": text},
    });
    let asks = json!({"type": "boolean", "description": "whether a challenge is asked for"});
    let left =
        json!({"type": "string", "description": "a signed stop or cancel in hexadecimal, for the connection's end"});
    let takes_back = json!({"type": "boolean", "description": "whether what was left is taken back"});
    let properties = json!({
        "subscribe": names, "unsubscribe": names, "resume": heights, "challenge": asks, "login": login,
        "on_disconnect": left, "withdraw": takes_back,
    });
    let payload = json!({"type": "object", "additionalProperties": false, "properties": properties});
    let summary = "Begins and ends channels, logs in, and leaves what is submitted when the connection ends.";
    json!({"name": "request", "summary": summary, "payload": payload})
}

/// What the node says of what was left with it.
fn on_disconnect() -> Value {
    let text = json!({"type": "string"});
    let id = json!({"type": ["string", "null"], "description": "its id, or null where nothing is held any more"});
    let properties = json!({"id": id, "until": text, "code": text, "message": text});
    let mut told = message("on_disconnect", json!([{"type": "object", "required": ["id"], "properties": properties}]));
    told["summary"] =
        "What is submitted when this connection ends: with its last block, or with the reason why nothing is.".into();
    told
}

fn described() -> String {
    let row = |(name, snapshot, kind, _): &(&str, &str, &str, &str)| {
        format!("- `{name}`: a snapshot with {snapshot}, then messages of type `{kind}`\n")
    };
    let rows: String = CHANNELS.iter().map(row).collect();
    format!("Market data and accounts over a WebSocket; docs/api.md describes it. Channels:\n\n{rows}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every `$ref` in a document.
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str));
                fields.values().for_each(|value| references(value, found));
            }
            Value::Array(all) => all.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_somewhere_and_every_channel_has_its_message() {
        let openapi = crate::http::description::document(&crate::http::described().into_openapi());
        let document = document(&openapi);
        let mut found = Vec::new();
        references(&document, &mut found);
        for reference in &found {
            let place = reference.strip_prefix('#').unwrap_or_else(|| panic!("{reference} leads elsewhere"));
            assert!(document.pointer(place).is_some(), "{reference} leads nowhere");
        }
        assert!(found.len() > 50, "{}", found.len());
        for (name, _, kind, schema) in CHANNELS {
            let payload = &document["components"]["messages"][kind]["payload"]["allOf"];
            assert_eq!(payload[0]["properties"]["type"]["const"], kind, "{name}");
            assert_eq!(payload[1]["$ref"], format!("#/components/schemas/{schema}"), "{name}");
        }
    }
}
