//! Orders over the WebSocket stream, the books that it tells, and a drop copy.

use std::net::TcpStream;

use pit::door::bodies::order_body;
use primitives::venue::{SignedOrder, VenueSide};
use serde_json::{Value, json};
use tungstenite::Message;
use venue::TraderAsk;

use super::killed::list;
use super::{Market, kinds};

type Socket = tungstenite::WebSocket<tungstenite::stream::MaybeTlsStream<TcpStream>>;

fn say(socket: &mut Socket, said: &Value) {
    socket.send(Message::text(said.to_string())).expect("said");
}

/// The next message of a kind.
fn until(socket: &mut Socket, wanted: &str) -> Value {
    loop {
        let Message::Text(text) = socket.read().expect("it speaks") else { continue };
        let message: Value = serde_json::from_str(&text).expect("JSON");
        let typed = serde_json::from_str::<api::VenueMessage>(&text);
        assert!(typed.is_ok(), "{message} is of no type: {typed:?}");
        assert_ne!(message["type"], "error", "{message}");
        if message["type"] == wanted {
            return message;
        }
    }
}

/// A client that asks for more and more and reads nothing is cut, and its session ends; others trade meanwhile.
pub fn unread(market: &mut Market) {
    const ASKED: usize = 1_000;
    let url = format!("{}/v1/venue/stream", market.venue.replacen("http", "ws", 1));
    let (mut socket, _) = tungstenite::connect(&url).expect("a stream");
    let attach = market.request("alice", TraderAsk::Attach { session: 9, ends_orders: true, dead_man_ms: None });
    say(&mut socket, &json!({ "attach": attach }));
    until(&mut socket, "attached");
    market.until(|status| status.sessions == 1);
    let too_many = vec![0; 65];
    say(&mut socket, &json!({ "books": too_many }));
    let refused = loop {
        let Message::Text(text) = socket.read().expect("it speaks") else { continue };
        let message: Value = serde_json::from_str(&text).expect("JSON");
        if message["type"] == "error" {
            break message;
        }
    };
    assert!(refused.to_string().contains("books: a message names at most 64"), "{refused}");
    let books = vec![0; 64];
    for _ in 0..ASKED {
        say(&mut socket, &json!({ "books": &books }));
    }
    market.until(|status| status.sessions == 0);
    let mut images = 0;
    while let Ok(message) = socket.read() {
        images += usize::from(message.into_text().is_ok_and(|text| text.contains("\"image\"")));
    }
    assert!(images < ASKED * 64, "everything was sent to a client that did not read");
    let bid = market.order("bob", VenueSide::Buy, 51, 1);
    assert_eq!(kinds(&market.place(&bid)), ["accepted"]);
}

pub fn orders(market: &mut Market) {
    let url = format!("{}/v1/venue/stream", market.venue.replacen("http", "ws", 1));
    let (mut socket, _) = tungstenite::connect(&url).expect("a stream");
    let (mut copy, _) = tungstenite::connect(&url).expect("a stream");
    let attach = market.request("alice", TraderAsk::Attach { session: 7, ends_orders: true, dead_man_ms: None });
    say(&mut socket, &json!({ "attach": attach, "books": [0] }));
    until(&mut socket, "attached");
    // A drop copy needs a key that cannot trade.
    say(&mut copy, &json!({ "attach": market.request("bob", TraderAsk::Watch) }));
    let refused = loop {
        let Message::Text(text) = copy.read().expect("it speaks") else { continue };
        let message: Value = serde_json::from_str(&text).expect("JSON");
        if message["type"] == "error" {
            break message;
        }
    };
    assert_eq!(refused["error"]["code"], "no_watcher", "{refused}");
    say(&mut copy, &json!({ "attach": market.request("alice-watch", TraderAsk::Watch) }));
    until(&mut copy, "attached");
    assert_eq!(until(&mut socket, "image")["image"]["orders"], json!([]));
    let bid = market.order("alice", VenueSide::Buy, 100, 10);
    say(&mut socket, &json!({ "id": 3, "orders": [order_body(&bid, None)] }));
    let book = until(&mut socket, "book");
    assert_eq!(
        (&book["top"]["bids"], &book["events"][0]["added"]["tick"]),
        (&json!([[100, 10, 1]]), &100.into()),
        "{book}"
    );
    // Bob takes some of it over HTTP; Alice hears of her fill.
    let hit = market.order("bob", VenueSide::Sell, 100, 4);
    assert_eq!(kinds(&market.place(&hit)), ["accepted", "executed"]);
    loop {
        let report = until(&mut socket, "report");
        if report["report"]["type"] == "executed" {
            assert_eq!((&report["report"]["executed"]["lots"], &report["own_session"]), (&4.into(), &true.into()));
            break;
        }
    }
    loop {
        let report = until(&mut socket, "report");
        if report["report"]["type"] == "settled" {
            assert_eq!(report["report"]["settled"]["fate"], "applied");
            break;
        }
    }
    // The copy has the account's reports, and nobody else's.
    let copied: Vec<Value> = (0..3).map(|_| until(&mut copy, "drop_copy")["report"]["type"].clone()).collect();
    assert_eq!(copied, ["accepted", "executed", "settled"]);
    let fills = market.ask("alice-watch", TraderAsk::Fills(0));
    assert_eq!(fills["fills"].as_array().map(Vec::len), Some(2), "{fills}");
    market.settled(2);
    // A list is of her session, too.
    let ladder: Vec<SignedOrder> = [60, 61].map(|tick| market.order("alice", VenueSide::Buy, tick, 1)).into();
    let mut lists = list(market, "alice", &ladder);
    lists["id"] = json!(4);
    say(&mut socket, &lists);
    let placed = loop {
        let results = until(&mut socket, "results");
        if results["id"] == 4 {
            break results;
        }
    };
    assert_eq!(placed["results"][1]["reports"][0]["type"], "accepted", "{placed}");
    // The link breaks: her session asked for that to end its orders, and nobody else's.
    let ask = market.order("bob", VenueSide::Sell, 130, 5);
    assert_eq!(kinds(&market.place(&ask)), ["accepted"]);
    drop((socket, copy));
    market.until(|status| status.sessions == 0);
    for order in [&bid, &ladder[0], &ladder[1]] {
        let status = market.ask("alice", TraderAsk::Status(order.order.number));
        assert_eq!(status["reports"][0]["status"]["why"], "disconnected", "{status}");
    }
    let status = market.ask("bob", TraderAsk::Status(ask.order.number));
    assert_eq!(status["reports"][0]["status"]["standing"], "open", "{status}");
}
