//! The OpenAPI document of the venue's calls, generated from their handlers and bodies.

use serde_json::{Value, json};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Api, books, operator, orders};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Walras: a venue",
        description = "Continuous markets: signed orders, requests and books. docs/venue-api.md says what is signed.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    components(schemas(api::ErrorBody))
)]
struct Description;

/// The calls, with their description.
pub(super) fn calls() -> OpenApiRouter<Api> {
    OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(super::status))
        .routes(routes!(books::markets))
        .routes(routes!(books::book))
        .routes(routes!(books::image))
        .routes(routes!(orders::place))
        .routes(routes!(orders::request))
        .routes(routes!(operator::operate))
        .routes(routes!(super::fairness))
}

/// The document as served: answers that any call may get are in none of the handlers.
pub(super) fn document(description: &utoipa::openapi::OpenApi) -> Value {
    let mut document = serde_json::to_value(description).expect("the description is plain data");
    let error = json!({"description": "Too much at once, of all or of this address.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}}});
    for item in document["paths"].as_object_mut().expect("there are paths").values_mut() {
        for operation in item.as_object_mut().expect("a path has operations").values_mut() {
            operation["responses"]["429"] = error.clone();
        }
    }
    document["components"]["securitySchemes"] = json!({
        "operator": {"type": "http", "scheme": "bearer", "description": "the token of [http] operator_token_file"},
    });
    document["paths"]["/v1/venue/operator"]["post"]["security"] = json!([{"operator": []}]);
    document
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use api::{AnswerBody, OwnFillsBody, PlacedBody, PlacedResult, PositionBody, ReportsBody, VenueBookBody};
    use primitives::venue::{FillReport, OrderNumber, VenueSide};
    use primitives::{Address, Digest, PublicKey, SecretKey};
    use venue::{Acceptance, FillFate, OrderEnd, OrderExecution, OrderRefusal, OrderStanding, ReportKind, TradeReport};

    use super::super::bodies::{report_body, top_body};
    use super::super::operator::OperatorBody;
    use super::*;
    use crate::events::BookTop;

    fn served() -> Value {
        document(&calls().split_for_parts().1)
    }

    /// The first place at which a value is not what a schema describes; objects have no field that it does not name.
    fn mismatch(document: &Value, schema: &Value, value: &Value, place: &str) -> Option<String> {
        if let Some(name) = schema["$ref"].as_str() {
            let schema = document.pointer(name.trim_start_matches('#')).expect("a reference leads to a schema");
            return mismatch(document, schema, value, place);
        }
        if let Some(forms) = schema["oneOf"].as_array() {
            let fits = forms.iter().any(|form| mismatch(document, form, value, place).is_none());
            return (!fits).then(|| format!("{place} has none of the forms: {value}"));
        }
        let parts: Vec<&Value> =
            schema["allOf"].as_array().map_or_else(|| vec![schema], |parts| parts.iter().collect());
        let parts: Vec<&Value> = parts.into_iter().map(|part| resolved(document, part)).collect();
        match value {
            Value::Object(fields) => {
                let known = |name: &str| parts.iter().find_map(|part| part["properties"].get(name));
                let required = parts.iter().flat_map(|part| part["required"].as_array().into_iter().flatten());
                let missing = required.filter_map(Value::as_str).find(|name| !fields.contains_key(*name));
                if let Some(name) = missing {
                    return Some(format!("{place}.{name} is missing"));
                }
                fields.iter().find_map(|(name, value)| match known(name) {
                    Some(schema) => mismatch(document, schema, value, &format!("{place}.{name}")),
                    None => Some(format!("{place}.{name} is not described")),
                })
            }
            Value::Array(items) => items.iter().find_map(|item| mismatch(document, &schema["items"], item, place)),
            other => {
                let kind = match other {
                    Value::Null => "null",
                    Value::Bool(_) => "boolean",
                    Value::Number(_) => "integer",
                    _ => "string",
                };
                let is_kind = schema["type"] == kind
                    || schema["type"].as_array().is_some_and(|kinds| kinds.iter().any(|one| one == kind));
                (!is_kind).then(|| format!("{place} is {other}, and described as {schema}"))
            }
        }
    }

    fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
        schema["$ref"].as_str().map_or(schema, |name| {
            document.pointer(name.trim_start_matches('#')).expect("a reference leads to a schema")
        })
    }

    fn check(name: &str, value: impl serde::Serialize) {
        let (document, value) = (served(), serde_json::to_value(value).expect("plain data"));
        let schema = &document["components"]["schemas"][name];
        assert!(schema.is_object(), "{name} is not described");
        assert_eq!(mismatch(&document, schema, &value, name), None, "{value}");
    }

    /// A report of each kind.
    fn reports() -> Vec<TradeReport> {
        let number = OrderNumber { incarnation: 1, day: 2, reference: 3 };
        let accepted = Acceptance { id: 9, lots: 5, replaces: Some(number), keeps_place: true };
        let signed = FillReport::new(
            &Digest([1; 32]),
            (0, 1, 7),
            Digest([2; 32]),
            Address([3; 20]),
            &SecretKey::from_seed([4; 32]),
        );
        let (side, index) = (VenueSide::Sell, 7);
        let execution = OrderExecution { index, market: 0, side, lots: 5, tick: 100, fee: -3, is_taker: true, left: 0 };
        let ended = Some(OrderEnd::Filled);
        let taken = OrderStanding::Taken { accepted, ended, open: 0, executed: 2, settled: 2, bust: 1 };
        let kinds = vec![
            ReportKind::Accepted(accepted),
            ReportKind::Accepted(Acceptance { replaces: None, ..accepted }),
            ReportKind::Refused(OrderRefusal::UnknownKey),
            ReportKind::Executed(Box::new(execution), Box::new(signed)),
            ReportKind::Reduced { lots: 4 },
            ReportKind::Ended { lots: 3, why: OrderEnd::Expired },
            ReportKind::Overtaken,
            ReportKind::Settled { index: 7, height: 40, fate: FillFate::Applied },
            ReportKind::Status(Some(taken)),
            ReportKind::Status(Some(OrderStanding::Refused(OrderRefusal::UnknownKey))),
            ReportKind::Status(Some(OrderStanding::Overtaken)),
            ReportKind::Status(None),
        ];
        kinds.into_iter().map(|what| TradeReport { session: 1, key: PublicKey([5; 32]), number, what }).collect()
    }

    #[test]
    fn answers_of_a_venue_have_the_shape_that_its_document_gives() {
        let bodies: Vec<_> = reports().iter().map(report_body).collect();
        for body in &bodies {
            let value = serde_json::to_value(body).expect("plain data");
            assert!(value[&body.kind].is_object(), "a report has the part that its type names: {value}");
            check("ReportBody", body);
        }
        let error = super::super::orders::error_body(&super::super::Failure::malformed("a field"));
        check(
            "PlacedBody",
            PlacedBody { results: vec![PlacedResult::Reports(bodies.clone()), PlacedResult::Error(error)] },
        );
        let position = Some(PositionBody { orders_ahead: 1, lots_ahead: "5".into(), lots: 2 });
        check("AnswerBody", AnswerBody::Reports(ReportsBody { reports: bodies, position }));
        let fills = OwnFillsBody { fills: Vec::new(), next: "0".into(), settled: "0".into() };
        check("AnswerBody", AnswerBody::Fills(fills));
        let top = BookTop { bids: vec![(99, 5, 1)], asks: vec![(101, 3, 1)] };
        check("VenueBookBody", VenueBookBody { market: 0, event: 4, phase: "trading".into(), top: top_body(&top) });
        check("OperatorBody", OperatorBody::Uncross { market: 0, reference: 100, then_halts: false });
    }

    #[test]
    fn a_body_that_is_not_described_is_noticed() {
        let document = served();
        let schema = &document["components"]["schemas"]["PositionBody"];
        let of = |value: Value| mismatch(&document, schema, &value, "position");
        assert_eq!(of(json!({"orders_ahead": 1, "lots_ahead": "5", "lots": 2})), None);
        assert!(of(json!({"orders_ahead": 1, "lots_ahead": 5, "lots": 2})).is_some());
        assert!(of(json!({"orders_ahead": 1, "lots_ahead": "5"})).is_some());
        assert!(of(json!({"orders_ahead": 1, "lots_ahead": "5", "lots": 2, "more": 1})).is_some());
    }

    /// The page of the interface lists the calls that exist, and no others.
    #[test]
    fn the_page_of_the_venues_interface_lists_its_calls() {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/venue-api.md");
        let page = std::fs::read_to_string(path).expect("docs/venue-api.md");
        let table = page.split("## HTTP").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("a section");
        let listed = table.lines().filter_map(|line| line.strip_prefix("| `")?.split(['`', '?']).next());
        let mut listed: Vec<String> = listed.map(str::to_string).collect();
        let document = served();
        let mut described: Vec<String> = vec!["GET /v1/venue/openapi.json".into()];
        for (path, item) in document["paths"].as_object().expect("paths") {
            let methods = item.as_object().expect("operations").keys();
            described.extend(methods.map(|method| format!("{} {path}", method.to_uppercase())));
        }
        listed.sort();
        described.sort();
        assert_eq!(listed, described);
    }
}
