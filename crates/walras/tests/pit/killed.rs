//! A node that is killed while its venue trades: what was told stands, and a retry is no second order.

use api::{OrderBody, OrderNumberBody};
use pit::door::bodies::{list_body, order_body};
use primitives::venue::{ListEntry, OrderList, OrderNumber, SignedOrder, VenueSide};
use serde_json::{Value, json};
use venue::TraderAsk;

use super::{Market, kinds, past};

/// The same orders under one signature.
pub(crate) fn list(market: &Market, person: &str, orders: &[SignedOrder]) -> Value {
    let entries = orders.iter().map(|signed| ListEntry { order: signed.order, replaces: None }).collect();
    let list = OrderList::sign(&market.scope.network, 0, [7; 32], entries, &market.trading(person)).expect("plain");
    json!({ "lists": [list_body(&list)] })
}

pub(crate) fn while_trading(market: &mut Market) {
    // Orders that trade with each other, and a kill before their fills can be settled.
    let sells: Vec<SignedOrder> = (0..20).map(|at| market.order("bob", VenueSide::Sell, 101 + at % 5, 2)).collect();
    let buys: Vec<SignedOrder> = (0..20).map(|_| market.order("alice", VenueSide::Buy, 105, 2)).collect();
    let bodies = |orders: &[SignedOrder]| {
        let bodies: Vec<OrderBody> = orders.iter().map(|order| order_body(order, None)).collect();
        json!({ "orders": bodies })
    };
    // The ladder is under one signature.
    let ladder = list(market, "bob", &sells);
    let (status, rests) = market.post("/v1/venue/lists", &ladder);
    assert_eq!((status, rests["results"].as_array().map(Vec::len)), (200, Some(20)), "{rests}");
    let mut forged = ladder.clone();
    forged["lists"][0]["orders"][3]["lots"] = json!(3);
    let (status, refused) = market.post("/v1/venue/lists", &forged);
    assert!(status == 400 && refused.to_string().contains("lists[0]: the signature of the list"), "{refused}");
    let (status, first) = market.post("/v1/venue/orders", &bodies(&buys));
    assert_eq!(status, 200);
    let past = past::is_whole(market, 25);
    drop(market.node.take());
    market.start();
    market.until(|status| status.standing == "runs" && status.paused.is_none());
    past::is_as_before(market, &past);
    // A retry after the crash is no second order.
    let (_, again) = market.post("/v1/venue/lists", &ladder);
    for at in 0..sells.len() {
        let [retried, accepted] = [&again, &rests].map(|answer| &answer["results"][at]["reports"][0]["accepted"]);
        assert!(retried.is_object() && retried == accepted, "{again}");
    }
    let (_, again) = market.post("/v1/venue/orders", &bodies(&buys));
    for at in 0..buys.len() {
        let [retried, accepted] = [&again, &first].map(|answer| &answer["results"][at]["reports"][0]["accepted"]);
        assert_eq!(retried, accepted, "{again}");
    }
    market.settled(25);
    let fills = market.ask("alice", TraderAsk::Fills(0));
    assert_eq!(fills["fills"].as_array().map(Vec::len), Some(25), "{fills}");
    let OrderNumber { incarnation, day, reference } = buys[0].order.number;
    let number = OrderNumberBody { incarnation, day, reference };
    let told = &fills["fills"]
        .as_array()
        .expect("fills")
        .iter()
        .find(|fill| fill["number"] == json!(number))
        .expect("hers")["report"];
    assert_eq!(told, &first["results"][0]["reports"][1]["executed"]["report"], "the same bytes as before the crash");
    // And it trades on.
    let (sell, buy) = (market.order("bob", VenueSide::Sell, 101, 1), market.order("alice", VenueSide::Buy, 101, 1));
    market.place(&sell);
    assert_eq!(kinds(&market.place(&buy)), ["accepted", "executed"]);
    market.settled(26);
}
