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
    components(schemas(api::ErrorBody, api::VenueSaid, api::VenueMessage))
)]
struct Description;

/// The calls, with their description.
pub(super) fn calls() -> OpenApiRouter<Api> {
    OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(super::status))
        .routes(routes!(books::markets))
        .routes(routes!(books::book))
        .routes(routes!(books::image))
        .routes(routes!(books::trades))
        .routes(routes!(orders::place))
        .routes(routes!(orders::place_lists))
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
            // A response has a description, also where its handler gives none.
            for (status, response) in operation["responses"].as_object_mut().expect("an object") {
                if response["description"].as_str().is_none_or(str::is_empty) {
                    response["description"] = sentence(status).into();
                }
            }
        }
    }
    api::flatten_unions(document["components"]["schemas"].as_object_mut().expect("there are schemas"));
    document["components"]["securitySchemes"] = json!({
        "operator": {"type": "http", "scheme": "bearer", "description": "the token of [http] operator_token_file"},
    });
    document["paths"]["/v1/venue/operator"]["post"]["security"] = json!([{"operator": []}]);
    document
}

/// The meaning of a status here.
fn sentence(status: &str) -> &'static str {
    match status {
        "200" => "The answer.",
        "400" => "Something in the request is malformed; the message names it.",
        "401" => "This call requires a token, as `Authorization: Bearer TOKEN`.",
        "404" => "It does not exist, or is not open.",
        "503" => "The venue cannot serve this now; the code says why.",
        _ => "See the code and the message.",
    }
}

/// The document of the stream, of a document that is not served.
#[cfg(test)]
pub(super) fn streamed() -> Value {
    super::described_stream::document(&document(&calls().split_for_parts().1))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use api::{
        AnswerBody, BookImageBody, OperatorBody, OwnFillsBody, PlaceBody, PlaceListsBody, PlacedBody, PlacedResult,
        PositionBody, ReportsBody, VenueBookBody, VenueMessage, VenueSaid, VenueTold,
    };
    use primitives::venue::{
        FillReport, ListEntry, OrderLife, OrderList, OrderNumber, SelfTradeRule, SignedOrder, VenueOrder, VenueReport,
        VenueSide,
    };
    use primitives::{Address, Digest, PublicKey, SecretKey};
    use venue::{
        Acceptance, FillFate, MarketEvent, OrderEnd, OrderExecution, OrderRefusal, OrderStanding, ReportKind,
        RequestScope, TradeReport, TraderAsk, TraderRequest,
    };

    use super::super::bodies::{event_body, list_body, order_body, report_body, request_body, top_body};
    use super::*;
    use crate::events::BookTop;

    /// The fields of each form of a schema whose forms have one key, which names them.
    fn named_forms(schemas: &Value, union: &str) -> Vec<(String, Vec<String>)> {
        let forms = schemas[union]["oneOf"].as_array().expect("forms");
        let form = |form: &Value| {
            let (name, of) = form["properties"].as_object().expect("an object").iter().next().expect("one key");
            let path = of["$ref"].as_str().expect("an object has a name");
            let of = &schemas[path.rsplit('/').next().expect("a name")];
            let fields = of["properties"].as_object().into_iter().flat_map(|of| of.keys().cloned());
            (name.clone(), fields.collect())
        };
        forms.iter().map(form).collect()
    }

    /// The rows of the table below a heading of the page: its first two columns.
    fn rows(heading: &str) -> Vec<(String, String)> {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/venue-api.md");
        let page = std::fs::read_to_string(path).expect("docs/venue-api.md");
        let part = page.split(heading).nth(1).unwrap_or_else(|| panic!("{heading} is not on the page"));
        let table = part.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
        let row = |line: &str| {
            let mut cells = line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_string());
            (cells.next().expect("a cell"), cells.next().unwrap_or_default())
        };
        table.take_while(|line| line.starts_with('|')).map(row).collect()
    }

    /// Words in a character.
    fn words(text: &str, mark: char) -> Vec<String> {
        text.split(mark).skip(1).step_by(2).map(str::to_string).collect()
    }

    fn sorted(mut names: Vec<String>) -> Vec<String> {
        names.sort();
        names
    }

    fn served() -> Value {
        document(&calls().split_for_parts().1)
    }

    /// The forms that a value of a schema may have, each as the parts that it has all of.
    fn forms<'a>(document: &'a Value, schema: &'a Value) -> Vec<Vec<&'a Value>> {
        if let Some(name) = schema["$ref"].as_str() {
            let schema = document.pointer(name.trim_start_matches('#')).expect("a reference leads to a schema");
            return forms(document, schema);
        }
        if let Some(all) = schema["oneOf"].as_array() {
            return all.iter().flat_map(|form| forms(document, form)).collect();
        }
        let Some(parts) = schema["allOf"].as_array() else { return vec![vec![schema]] };
        parts.iter().fold(vec![Vec::new()], |found, part| {
            let of_part = forms(document, part);
            found.iter().flat_map(|before| of_part.iter().map(|more| [&before[..], more].concat())).collect()
        })
    }

    /// The first place at which a value is not what a schema describes; objects have no field that it does not name.
    fn mismatch(document: &Value, schema: &Value, value: &Value, place: &str) -> Option<String> {
        let forms = forms(document, schema);
        let mut found = forms.iter().map(|parts| differs(document, parts, value, place));
        match forms.len() {
            1 => found.next().flatten(),
            _ => found.all(|of| of.is_some()).then(|| format!("{place} has none of the forms: {value}")),
        }
    }

    /// Where a value is not of a form.
    fn differs(document: &Value, parts: &[&Value], value: &Value, place: &str) -> Option<String> {
        // Anything at all.
        if parts.iter().all(|part| part["type"].is_null() && part["properties"].is_null()) {
            return None;
        }
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
            Value::Array(items) => {
                let schema = &parts[0]["items"];
                items.iter().find_map(|item| mismatch(document, schema, item, place))
            }
            other => {
                let schema = parts[0];
                let kind = match other {
                    Value::Null => "null",
                    Value::Bool(_) => "boolean",
                    Value::Number(_) => "integer",
                    _ => "string",
                };
                let is_kind = schema["type"] == kind
                    || schema["type"].as_array().is_some_and(|kinds| kinds.iter().any(|one| one == kind));
                let is_value = schema["enum"].as_array().is_none_or(|all| all.contains(other));
                (!is_kind || !is_value).then(|| format!("{place} is {other}, and described as {schema}"))
            }
        }
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
            ReportKind::Executed(Box::new(execution), Box::new(VenueReport::Single(signed))),
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
        let table = page.split("## HTTP").nth(1).and_then(|rest| rest.split("\n##").next()).expect("a section");
        let listed = table.lines().filter_map(|line| line.strip_prefix("| `")?.split(['`', '?']).next());
        let mut listed: Vec<String> = listed.map(str::to_string).collect();
        let document = served();
        let mut described: Vec<String> =
            ["openapi", "asyncapi"].iter().map(|name| format!("GET /v1/venue/{name}.json")).collect();
        for (path, item) in document["paths"].as_object().expect("paths") {
            let methods = item.as_object().expect("operations").keys();
            described.extend(methods.map(|method| format!("{} {path}", method.to_uppercase())));
        }
        listed.sort();
        described.sort();
        assert_eq!(listed, described);
    }

    #[test]
    fn bodies_that_a_venue_is_asked_with_have_the_shape_that_its_document_gives() {
        let scope = RequestScope { network: Digest([1; 32]), venue: 0, incarnation: 1 };
        let key = SecretKey::from_seed([4; 32]);
        let number = OrderNumber { incarnation: 1, day: 2, reference: 3 };
        let asks = [
            TraderAsk::Attach { session: 1, ends_orders: true, dead_man_ms: Some(5_000) },
            TraderAsk::Cancel { number, keeps: 2 },
            TraderAsk::CancelAll { market: Some(0), side: Some(VenueSide::Buy) },
            TraderAsk::CancelAll { market: None, side: None },
            TraderAsk::Replace { old: number, new: number },
            TraderAsk::Status(number),
            TraderAsk::Fills(7),
            TraderAsk::Watch,
        ];
        let requests = asks.map(|ask| request_body(&TraderRequest::sign(&scope, &key, 9, ask)));
        requests.iter().for_each(|request| check("RequestBody", request));
        let order = VenueOrder {
            market: 0,
            number,
            floor: number,
            side: VenueSide::Sell,
            life: OrderLife::PostOnly,
            self_trade: SelfTradeRule::ExpireBoth,
            tick: 100,
            lots: 5,
            expiry: 40,
            until_ms: Some(8),
            fee_cap_ppm: 10,
        };
        let signed = SignedOrder::sign(&scope.network, 0, &key, order);
        let orders = vec![order_body(&signed, None), order_body(&signed, Some(requests[4].clone()))];
        check("PlaceBody", PlaceBody { orders: orders.clone() });
        let entries = vec![ListEntry { order, replaces: Some(number) }];
        let list = OrderList::sign(&scope.network, 0, [5; 32], entries, &key).expect("plain");
        let lists = vec![list_body(&list)];
        check("PlaceListsBody", PlaceListsBody { lists: lists.clone() });
        let said = VenueSaid {
            id: 3.into(),
            attach: Some(requests[0].clone()),
            orders: Some(orders),
            lists: Some(lists),
            request: Some(requests[1].clone()),
            books: Some(vec![0]),
            heartbeat: true,
        };
        check("VenueSaid", &said);
        check("VenueSaid", VenueSaid::default());
    }

    /// A message of each type.
    fn told() -> Vec<VenueTold> {
        let report = report_body(&reports()[0]);
        let error = super::super::orders::error_body(&super::super::Failure::malformed("a field"));
        let top = || top_body(&BookTop { bids: vec![(99, 5, 1)], asks: Vec::new() });
        let image = BookImageBody { market: 0, event: 1, phase: "call".into(), orders: Vec::new(), checksum: 2 };
        let (id, side, trade) = (9, VenueSide::Buy, 4);
        let events = [
            MarketEvent::Added { id, side, tick: 99, lots: 5 },
            MarketEvent::Executed { id, lots: 1, tick: 99, trade },
            MarketEvent::Reduced { id, lots: 1 },
            MarketEvent::Deleted { id },
            MarketEvent::Renamed { id, to: 10, lots: 3 },
            MarketEvent::Phase(matching::Phase::Call),
            MarketEvent::Auction { tick: None, lots: 0 },
            MarketEvent::Auction { tick: Some(99), lots: 7 },
            MarketEvent::Collar { low: 1, high: 200 },
        ];
        let events = events.iter().zip(1..).map(|(event, number)| event_body(number, event)).collect();
        let reports = ReportsBody { reports: vec![report.clone()], position: None };
        vec![
            VenueTold::Attached { id: Value::Null },
            VenueTold::Results { id: 1.into(), results: vec![PlacedResult::Reports(vec![report.clone()])] },
            VenueTold::Answer { id: "mine".into(), answer: AnswerBody::Reports(reports) },
            VenueTold::Error { id: json!({"any": [1]}), error },
            VenueTold::Image { id: Value::Null, image },
            VenueTold::Report { report: report.clone(), own_session: true },
            VenueTold::DropCopy { account: Address([3; 20]).to_string(), report },
            VenueTold::Book { market: 0, events, top: top() },
            VenueTold::Pause { paused: Some("late".into()) },
            VenueTold::Stopped { message: "fenced".into() },
            VenueTold::Heartbeat { paused: None, height: Some(4) },
        ]
    }

    #[test]
    fn messages_of_a_venues_stream_have_the_shape_that_its_document_gives() {
        let document = streamed();
        for told in told() {
            let message = VenueMessage { sequence: 5, told };
            check("VenueMessage", &message);
            let value = serde_json::to_value(&message).expect("plain data");
            let kind = value["type"].as_str().expect("a type");
            let payload = &document["components"]["messages"][kind]["payload"];
            assert_eq!(mismatch(&document, payload, &value, kind), None);
            assert_eq!(serde_json::from_value::<VenueMessage>(value).expect("it is read"), message);
        }
    }

    /// What the page says of orders, requests and messages is what their documents say.
    #[test]
    fn the_page_names_every_field_of_orders_requests_and_messages() {
        let document = served();
        let schemas = &document["components"]["schemas"];
        let keys = |schema: &Value| -> Vec<String> {
            schema["properties"].as_object().expect("an object").keys().cloned().collect()
        };
        let order = rows("### An order");
        let fields = order.iter().flat_map(|(name, _)| words(name, '`')).collect();
        assert_eq!(sorted(fields), sorted(keys(&schemas["OrderBody"])));
        for (field, schema) in [("side", "SideBody"), ("life", "LifeBody"), ("self_trade", "SelfTradeBody")] {
            let (_, says) = order.iter().find(|(name, _)| *name == format!("`{field}`")).expect("a row");
            let forms = schemas[schema]["oneOf"].as_array().map(|all| all.iter().map(|of| &of["enum"][0]).collect());
            let all: Vec<&Value> =
                forms.unwrap_or_else(|| schemas[schema]["enum"].as_array().expect("words").iter().collect());
            let all: Vec<String> = all.iter().map(|word| word.as_str().expect("a word").to_string()).collect();
            assert_eq!(words(says, '`'), all, "{field}");
        }
        let asks: Vec<(String, Vec<String>)> = rows("A **request** is signed")
            .iter()
            .map(|(ask, _)| words(ask, '"'))
            .map(|names| (names[0].clone(), sorted(names[1..].to_vec())))
            .collect();
        let described = named_forms(schemas, "AskBody").into_iter().map(|(name, fields)| (name, sorted(fields)));
        assert_eq!(asks, described.collect::<Vec<_>>());
        let said: Vec<String> = rows("### What a client says").iter().flat_map(|(name, _)| words(name, '`')).collect();
        assert_eq!(sorted(said), sorted(keys(&schemas["VenueSaid"])));
        let messages: Vec<(String, Vec<String>)> = rows("### What it is told")
            .iter()
            .map(|(name, fields)| (words(name, '`').remove(0), sorted(words(fields, '`'))))
            .collect();
        let form = |form: &Value| {
            let fields = keys(form).into_iter().filter(|name| name != "type").collect();
            (form["properties"]["type"]["enum"][0].as_str().expect("a type").to_string(), sorted(fields))
        };
        let described: Vec<_> = schemas["VenueTold"]["oneOf"].as_array().expect("forms").iter().map(form).collect();
        assert_eq!(messages, described);
    }
}
