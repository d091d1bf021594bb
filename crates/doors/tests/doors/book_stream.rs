//! The book and the ticker of a batch market on the stream: what a reader makes of snapshot and changes is the book
//! that a call shows, and after a broken connection it goes on where it was.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use crate::fake::Fake;
use crate::open::{get, loopback, with_node};
use primitives::{AssetId, Body, ClientId, Life, OfferPlace, Operation, PublicKey, Sequence, Signature, Transaction};
use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

const OWNER: PublicKey = PublicKey([1; 32]);
const OTHER: PublicKey = PublicKey([2; 32]);

fn signed(by: PublicKey, sequence: Sequence, operation: Operation) -> Transaction {
    let body = Body { chain: 1, account: by.address(), sequence, until: 50_000, operation };
    Transaction::by_key(body, by, Signature([0; 64]))
}

fn offer(by: PublicKey, sequence: Sequence, sell: u32, amount: u64, limit: &str) -> Transaction {
    let limit = limit.parse().expect("a price");
    let (sell, buy) = (AssetId(sell), AssetId(1 - sell));
    let (life, client) = (Life::Rests, ClientId::NONE);
    signed(by, sequence, Operation::CreateOffer { sell, buy, amount, limit, life, client })
}

fn cancel(sequence: Sequence, offer: Sequence, limit: &str) -> Transaction {
    let limit = limit.parse().expect("a price");
    let place = OfferPlace { sell: AssetId(0), buy: AssetId(1), limit, offer };
    signed(OWNER, sequence, Operation::Cancel(Box::new([place])))
}

fn node() -> Arc<Fake> {
    let mut genesis = Fake::genesis();
    genesis.balances.push((OTHER.address(), AssetId(1), 500_000_000));
    Arc::new(Fake::of(genesis))
}

struct Reader(WebSocket<TcpStream>);

impl Reader {
    fn new(server: SocketAddr, request: &Value) -> Reader {
        let stream = TcpStream::connect(server).expect("listens");
        let socket = tungstenite::client(format!("ws://localhost:{}/v1/stream", server.port()), stream);
        let mut reader = Reader(socket.expect("a stream").0);
        reader.0.send(Message::text(request.to_string())).expect("sent");
        reader
    }

    /// The next message that is no heartbeat. A hundred heartbeats without one say that none is coming.
    fn hear(&mut self) -> Value {
        let mut any = || {
            let message = self.0.read().expect("a message").into_text().expect("text");
            serde_json::from_str::<Value>(&message).expect("JSON")
        };
        let found = (0..100).map(|_| any()).find(|message| message["type"] != "heartbeat");
        found.expect("a message besides heartbeats")
    }
}

/// A reader's own book.
#[derive(Clone, Debug, Default, PartialEq)]
struct Book {
    sells: Vec<Value>,
    buys: Vec<Value>,
}

impl Book {
    fn of(body: &Value) -> Book {
        let side = |name: &str| body[name].as_array().expect("levels").clone();
        Book { sells: side("sells"), buys: side("buys") }
    }

    fn apply(&mut self, change: &Value) {
        let price =
            |level: &Value| level["price_units"].as_str().and_then(|text| text.parse::<f64>().ok()).expect("one");
        for (side, name, sign) in [(&mut self.sells, "sells", 1.0), (&mut self.buys, "buys", -1.0)] {
            for level in change[name].as_array().expect("levels") {
                side.retain(|known| known["price_units"] != level["price_units"]);
                if level["offers"] != 0 {
                    side.push(level.clone());
                }
            }
            side.sort_by(|a, b| (sign * price(a)).total_cmp(&(sign * price(b))));
        }
    }
}

#[test]
fn snapshot_and_changes_make_the_book_that_a_call_shows() {
    let node = node();
    node.commit(&[offer(OTHER, 1, 1, 2_000_000, "0.012"), offer(OWNER, 1, 0, 20_000, "110")]);
    let late = node.clone();
    with_node(loopback(), node, move |server| {
        let mut reader = Reader::new(server, &json!({"subscribe": ["book:EUR/USD"]}));
        let snapshot = reader.hear();
        assert_eq!((&snapshot["type"], &snapshot["height"]), (&json!("snapshot"), &json!(1)), "{snapshot}");
        let (mut book, mut height) = (Book::of(&snapshot), 1);
        assert_eq!((book.sells.len(), book.buys.len()), (1, 1));
        let blocks = [
            vec![offer(OTHER, 2, 1, 3_000_000, "0.013"), offer(OWNER, 2, 0, 30_000, "120")],
            vec![],
            vec![cancel(3, 1, "110")],
            vec![offer(OWNER, 4, 0, 50_000, "70")],
        ];
        for block in blocks {
            late.commit(&block);
            if block.is_empty() {
                continue;
            }
            let change = reader.hear();
            assert_eq!((&change["type"], &change["market"]), (&json!("book"), &json!("EUR/USD")), "{change}");
            assert!(change["previous"].as_u64().is_some_and(|previous| previous >= height), "{change}");
            height = change["height"].as_u64().expect("a height");
            book.apply(&change);
            let shown = get(server, "/v1/markets/EUR/USD/book");
            assert_eq!((&shown["height"], &book), (&json!(height), &Book::of(&shown)), "{change}");
            let again = Reader::new(server, &json!({"subscribe": ["book:EUR/USD"]})).hear();
            assert_eq!((Book::of(&again), &again["checksum"]), (book.clone(), &change["checksum"]));
        }
        // From the height of any change a reader goes on; what it is told leads to the same book.
        late.commit(&[offer(OTHER, 3, 1, 1_000_000, "0.014")]);
        let last = reader.hear();
        let from = json!({"subscribe": ["book:EUR/USD"], "resume": {"book:EUR/USD": height}});
        let mut resumed = Reader::new(server, &from);
        let (begun, told) = (resumed.hear(), resumed.hear());
        // Heartbeats are numbered, too.
        let number = told["sequence"].as_u64().expect("a number");
        assert_eq!((&begun["type"], told), (&json!("resumed"), with_sequence(&last, number)));
        let mut lost = Reader::new(server, &json!({"subscribe": ["book:EUR/USD"], "resume": {"book:EUR/USD": 77}}));
        let said = lost.hear();
        assert_eq!((&said["type"], &said["code"]), (&json!("error"), &json!("resume_gone")));
        assert!(said["message"].as_str().is_some_and(|text| text.contains("snapshot that follows is whole")), "{said}");
        assert_eq!(lost.hear()["type"], "snapshot");
    });
}

/// A message as another connection has it.
fn with_sequence(message: &Value, sequence: u64) -> Value {
    let mut message = message.clone();
    message["sequence"] = sequence.into();
    message
}

#[test]
fn blocks_batches_and_trades_go_on_from_a_height() {
    let node = node();
    for sequence in 1..=3 {
        let (sell, buy) = (offer(OWNER, sequence, 0, 20_000, "90"), offer(OTHER, sequence, 1, 2_000_000, "0.009"));
        node.commit(&[sell, buy]);
    }
    with_node(loopback(), node, |server| {
        let request = |channel: &str, from: u64| json!({"subscribe": [channel], "resume": {channel: from}});
        for (channel, kind) in [("blocks", "block"), ("batches", "batch"), ("trades:EUR/USD", "trade")] {
            let mut reader = Reader::new(server, &request(channel, 1));
            let begun = reader.hear();
            assert_eq!((&begun["type"], &begun["height"]), (&json!("resumed"), &json!(1)), "{channel}");
            for height in [2, 3] {
                let message = reader.hear();
                assert_eq!((&message["type"], &message["height"]), (&json!(kind), &json!(height)), "{channel}");
            }
            assert_eq!(Reader::new(server, &request(channel, 3)).hear()["type"], "resumed");
            assert_eq!(Reader::new(server, &request(channel, 9)).hear()["code"], "resume_gone", "{channel}");
        }
        let mut account = Reader::new(server, &request(&format!("account:{}", OWNER.address()), 1));
        assert_eq!(account.hear()["code"], "resume_gone", "its snapshot is whole");
        assert_eq!(account.hear()["type"], "snapshot");
    });
}

#[test]
fn a_ticker_tells_of_trades_and_of_the_best_limits() {
    let node = node();
    let late = node.clone();
    with_node(loopback(), node, move |server| {
        let mut reader = Reader::new(server, &json!({"subscribe": ["ticker:EUR/USD"]}));
        let first = reader.hear();
        assert_eq!((&first["ticker"]["price"], &first["ticker"]["day"]), (&json!(null), &json!(null)));
        late.commit(&[offer(OTHER, 1, 1, 20_000_000, "0.012")]);
        let limits = reader.hear();
        assert_eq!((&limits["type"], &limits["best_sell"]), (&json!("ticker"), &json!("1.2")), "{limits}");
        late.commit(&[]);
        late.commit(&[offer(OWNER, 1, 0, 20_000, "70")]);
        let traded = reader.hear();
        assert_eq!(
            (&traded["height"], &traded["price_height"]),
            (&json!(3), &json!(3)),
            "a block without news says nothing"
        );
        let day = &traded["day"];
        assert_eq!(
            (&day["open"], &day["change_percent"], &day["batches"]),
            (&traded["price"], &json!("0.00"), &json!(1))
        );
        assert_eq!(day["complete"], true);
        let body = get(server, "/v1/markets/EUR/USD/ticker");
        assert_eq!((&body["day"], &body["price"]), (day, &traded["price"]));
        assert_eq!(get(server, "/v1/tickers")["tickers"], json!([body]));
    });
}

#[test]
fn a_batch_lists_what_ended_and_limits_say_how_long_offers_may_live() {
    let node = node();
    node.commit(&[offer(OWNER, 1, 0, 20_000, "110"), offer(OWNER, 2, 0, 30_000, "110")]);
    node.commit(&[cancel(3, 1, "110"), cancel(4, 2, "110")]);
    with_node(loopback(), node, |server| {
        let batch = get(server, "/v1/blocks/2/batch");
        assert_eq!(batch["ended_count"], 2);
        let expected = json!({
            "sell": "USD", "buy": "EUR", "limit": "110", "account": OWNER.address().to_string(), "id": "1",
            "returned": "20000", "why": "cancelled",
        });
        assert_eq!(batch["ended"][0], expected);
        let page = get(server, "/v1/blocks/2/ended?limit=1");
        assert_eq!((&page["ended"], &page["next"]), (&json!([expected]), &json!("1")));
        assert_eq!(get(server, "/v1/blocks/2/ended?cursor=1")["ended"], json!([batch["ended"][1]]));
        let limits = get(server, "/v1/limits");
        assert_eq!((&limits["life_max"], &limits["ends_max"]), (&json!(1 << 22), &json!(1 << 19)));
        assert_eq!(limits["stream_book_levels"], 100);
    });
}
