//! The AsyncAPI document of the venue's stream: its messages, with the schemas of the OpenAPI document.

use serde_json::{Map, Value, json};

/// The document, with the schemas of the calls.
pub(super) fn document(openapi: &Value) -> Value {
    let mut messages = Map::new();
    let forms = openapi["components"]["schemas"]["VenueTold"]["oneOf"].as_array().expect("forms by their types");
    for (at, form) in forms.iter().enumerate() {
        let kind = form["properties"]["type"]["enum"][0].as_str().expect("a form has its type");
        let number = json!({
            "type": "object", "required": ["sequence"],
            "properties": {"sequence": {"type": "integer", "minimum": 0}},
        });
        let own = json!({"$ref": format!("#/components/schemas/VenueTold/oneOf/{at}")});
        let message = json!({"name": kind, "summary": form["description"], "payload": {"allOf": [number, own]}});
        messages.insert(kind.into(), message);
    }
    let reference = |kind: &String| json!({"$ref": format!("#/channels/stream/messages/{kind}")});
    let told: Vec<Value> = messages.keys().map(reference).collect();
    let said = json!({"$ref": "#/components/schemas/VenueSaid"});
    let summary = "Attaches a session, places orders, asks, and begins books; each part is answered by itself.";
    messages.insert("said".into(), json!({"name": "said", "summary": summary, "payload": said}));
    let of_channel: Map<String, Value> =
        messages.keys().map(|kind| (kind.clone(), json!({"$ref": format!("#/components/messages/{kind}")}))).collect();
    json!({
        "asyncapi": "3.0.0",
        "info": {
            "title": "Walras: the stream of a venue",
            "version": openapi["info"]["version"],
            "description": "Orders, own reports and books over a WebSocket; docs/venue-api.md describes it.",
        },
        "defaultContentType": "application/json",
        "channels": {"stream": {"address": "/v1/venue/stream", "messages": of_channel}},
        "operations": {
            "say": {"action": "receive", "channel": {"$ref": "#/channels/stream"},
                "messages": [{"$ref": "#/channels/stream/messages/said"}]},
            "tell": {"action": "send", "channel": {"$ref": "#/channels/stream"}, "messages": told},
        },
        "components": {"messages": messages, "schemas": openapi["components"]["schemas"]},
    })
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
    fn every_reference_of_the_streams_document_leads_somewhere() {
        let document = super::super::described::streamed();
        let mut found = Vec::new();
        references(&document, &mut found);
        for reference in &found {
            let place = reference.strip_prefix('#').unwrap_or_else(|| panic!("{reference} leads elsewhere"));
            assert!(document.pointer(place).is_some(), "{reference} leads nowhere");
        }
        assert!(found.len() > 40, "{}", found.len());
        assert_eq!(document["components"]["messages"].as_object().map(Map::len), Some(12));
    }
}
