//! The stream as a subscriber sees it: a snapshot, then increments that continue it, every message numbered.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use crate::fake::Fake;
use crate::open::{ended, get, loopback, with_node};
use primitives::{Address, AssetId, Body, Operation, PublicKey, Sequence, Signature, Transaction};
use serde_json::{Value, json};
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Message, WebSocket};

const OWNER: PublicKey = PublicKey([1; 32]);
const OTHER: PublicKey = PublicKey([2; 32]);

fn signed(by: PublicKey, sequence: Sequence, operation: Operation) -> Transaction {
    let body = Body { chain: 1, account: by.address(), sequence, until: 50_000, operation };
    Transaction::by_key(body, by, Signature([0; 64]))
}

fn pay(sequence: Sequence, to: Address, amount: u64) -> Transaction {
    signed(OWNER, sequence, Operation::Pay { to, asset: AssetId(0), amount })
}

/// Both sides of a market, at limits that cross.
fn node_with_two_holders() -> Arc<Fake> {
    let mut genesis = Fake::genesis();
    genesis.balances.push((OTHER.address(), AssetId(1), 50_000_000));
    Arc::new(Fake::of(genesis))
}

fn crossing(sequence: Sequence) -> [Transaction; 2] {
    let offer = |sell, buy, amount, limit: &str| {
        Operation::offer(AssetId(sell), AssetId(buy), amount, limit.parse().expect("a price"))
    };
    [signed(OWNER, sequence, offer(0, 1, 50_000, "90")), signed(OTHER, sequence, offer(1, 0, 5_000_000, "0.009"))]
}

struct Subscriber {
    socket: WebSocket<TcpStream>,
    next: u64,
}

impl Subscriber {
    fn new(server: SocketAddr) -> Subscriber {
        let stream = TcpStream::connect(server).expect("listens");
        let socket = tungstenite::client(format!("ws://localhost:{}/v1/stream", server.port()), stream);
        Subscriber { socket: socket.expect("a stream").0, next: 0 }
    }

    fn say(&mut self, request: &Value) {
        self.socket.send(Message::text(request.to_string())).expect("sent");
    }

    /// The next message of whatever kind; its number continues the last one's.
    fn any(&mut self) -> Value {
        let message = self.socket.read().expect("a message").into_text().expect("text");
        let event: Result<api::StreamMessage, _> = serde_json::from_str(&message);
        let message: Value = serde_json::from_str(&message).expect("JSON");
        assert!(event.is_ok(), "clients read {message}: {event:?}");
        assert_eq!(message["sequence"], self.next, "{message}");
        self.next += 1;
        message
    }

    /// The next message that is no heartbeat. A hundred heartbeats without one say that none is coming.
    fn hear(&mut self) -> Value {
        let mut messages = (0..100).map(|_| self.any());
        messages.find(|message| message["type"] != "heartbeat").expect("a message besides heartbeats")
    }

    fn snapshot(&mut self, channel: &str) -> Value {
        self.say(&json!({"subscribe": [channel]}));
        let message = self.hear();
        assert_eq!((&message["type"], &message["channel"]), (&"snapshot".into(), &channel.into()), "{message}");
        message
    }
}

#[test]
fn blocks_and_batches_continue_their_snapshots() {
    let node = node_with_two_holders();
    node.commit(&[pay(1, OTHER.address(), 5)]);
    let committing = node.clone();
    with_node(loopback(), node, move |server| {
        let mut subscriber = Subscriber::new(server);
        let blocks = subscriber.snapshot("blocks");
        assert_eq!(blocks["blocks"].as_array().map(Vec::len), Some(1));
        assert_eq!(blocks["blocks"][0]["height"], 1);
        let batches = subscriber.snapshot("batches");
        assert_eq!(batches["batch"]["height"], 1);
        for height in 2..=4u64 {
            committing.commit(&[pay(height, OTHER.address(), 5)]);
            let block = subscriber.hear();
            assert_eq!((&block["type"], &block["height"]), (&"block".into(), &height.into()));
            let batch = subscriber.hear();
            assert_eq!((&batch["type"], &batch["height"]), (&"batch".into(), &height.into()));
        }
        let again = subscriber.snapshot("blocks");
        assert_eq!(again["blocks"].as_array().map(Vec::len), Some(4), "newest first: {again}");
        assert_eq!(again["blocks"][0]["height"], 4);
        subscriber.say(&json!({"unsubscribe": ["blocks"]}));
        // A request is answered in order: what comes after this snapshot was decided after the unsubscription.
        subscriber.snapshot("trades");
        committing.commit(&[]);
        assert_eq!(subscriber.hear()["type"], "batch", "and no block");
    });
}

#[test]
fn a_trade_is_told_to_its_market_and_to_those_who_follow_all() {
    let node = node_with_two_holders();
    let committing = node.clone();
    with_node(loopback(), node, move |server| {
        let (mut one, mut all) = (Subscriber::new(server), Subscriber::new(server));
        assert!(one.snapshot("trades:EUR/USD")["trades"].as_array().expect("trades").is_empty());
        assert!(all.snapshot("trades")["trades"].as_array().expect("trades").is_empty());
        let mut candles = Subscriber::new(server);
        assert!(candles.snapshot("candles:EUR/USD:1m")["candles"].as_array().expect("candles").is_empty());
        committing.commit(&crossing(1));
        let trade = one.hear();
        assert_eq!(
            (&trade["type"], &trade["market"], &trade["height"]),
            (&"trade".into(), &"EUR/USD".into(), &1.into())
        );
        let volume = |side: &str| trade[side].as_str().and_then(|text| text.parse::<u64>().ok()).expect("units");
        assert!(volume("base_volume") > 0 && volume("quote_volume") > 0, "{trade}");
        let price: f64 = trade["price"].as_str().and_then(|text| text.parse().ok()).expect("a price");
        assert!((0.9..=1.0 / 0.9).contains(&price), "a EUR is about a USD: {trade}");
        let of_all = all.hear();
        assert_eq!(of_all["type"], "trade");
        assert_eq!(of_all["height"], 1);
        let candle = candles.hear();
        assert_eq!(
            (&candle["type"], &candle["market"], &candle["interval"]),
            (&"candle".into(), &"EUR/USD".into(), &"1m".into())
        );
        assert_eq!(candle["candle"]["close"], trade["price"], "{candle}");
        // Who comes later finds the trade in his snapshot, and the candle in the list.
        let late = Subscriber::new(server).snapshot("trades:EUR/USD");
        assert_eq!(late["trades"][0]["price"], trade["price"]);
        let listed = get(server, "/v1/markets/EUR/USD/candles");
        assert_eq!(listed["candles"][0]["close"], trade["price"]);
        committing.commit(&[]);
        committing.commit(&crossing(2));
        assert_eq!(one.hear()["height"], 3, "a block without a trade says nothing");
    });
}

#[test]
fn an_account_is_told_what_concerns_it_and_nothing_else() {
    let node = node_with_two_holders();
    let committing = node.clone();
    with_node(loopback(), node, move |server| {
        let (mut owner, mut other) = (Subscriber::new(server), Subscriber::new(server));
        let stranger = Address([0x33; 20]);
        let mut third = Subscriber::new(server);
        assert_eq!(third.snapshot(&format!("account:{stranger}"))["account"], Value::Null);
        let begun = owner.snapshot(&format!("account:{}", OWNER.address()));
        assert_eq!(begun["account"]["balances"][0]["available"], "1000000");
        other.snapshot(&format!("account:{}", OTHER.address()));
        committing.commit(&[pay(1, OTHER.address(), 250)]);
        let sent = owner.hear();
        assert_eq!(sent["outcomes"].as_array().map(Vec::len), Some(1), "{sent}");
        assert_eq!(sent["balances"][0]["available"], "999750");
        let received = other.hear();
        assert!(received["outcomes"].as_array().expect("outcomes").is_empty(), "it sent nothing: {received}");
        assert_eq!(received["balances"][0]["available"], "250");
        committing.commit(&crossing(2));
        for subscriber in [&mut owner, &mut other] {
            let filled = subscriber.hear();
            assert_eq!(filled["fills"].as_array().map(Vec::len), Some(1), "{filled}");
            let fill = &filled["fills"][0];
            let units = |name: &str| fill[name].as_str().and_then(|text| text.parse::<u64>().ok()).expect("units");
            assert!(units("sold") > 0 && units("bought") > 0, "{fill}");
        }
        committing.commit(&[pay(3, stranger, 9)]);
        let third_hears = third.hear();
        assert_eq!((&third_hears["height"], &third_hears["balances"][0]["available"]), (&3.into(), &"9".into()));
        let told = owner.hear();
        assert_eq!(told["height"], 3);
        committing.commit(&[]);
        committing.commit(&[pay(4, stranger, 1)]);
        assert_eq!(owner.hear()["height"], 5, "an empty block concerns nobody");
    });
}

#[test]
fn a_request_that_is_none_is_answered_and_the_stream_goes_on() {
    with_node(loopback(), node_with_two_holders(), |server| {
        let mut subscriber = Subscriber::new(server);
        let cases = [
            (json!("blocks"), "malformed", "send {\"subscribe\":[\"blocks\"]}"),
            (json!({"subscribe": "blocks"}), "malformed", "this is none"),
            (json!({"subscribe": [], "follow": []}), "malformed", "unknown field `follow`"),
            (json!({"subscribe": ["books"]}), "unknown_channel", "no channel \"books\"; there are blocks, batches"),
            (json!({"subscribe": ["trades:EURUSD"]}), "unknown_channel", "is not a market such as EUR/USD"),
            (json!({"subscribe": ["trades:EUR/GBP"]}), "unknown_channel", "no market \"EUR/GBP\"; see /v1/markets"),
            (json!({"subscribe": ["trades:EUR/EUR"]}), "unknown_channel", "no market \"EUR/EUR\""),
            (json!({"subscribe": ["candles:EUR/USD"]}), "unknown_channel", "a market and an interval such as"),
            (json!({"subscribe": ["candles:EUR/USD:2m"]}), "unknown_channel", "2m"),
            (json!({"subscribe": ["candles:EUR:1m"]}), "unknown_channel", "a market and an interval such as"),
            (json!({"subscribe": ["account:0x12"]}), "unknown_channel", ""),
            (json!({"unsubscribe": ["account"]}), "unknown_channel", "no channel \"account\""),
        ];
        for (request, code, words) in cases {
            subscriber.say(&request);
            let answer = subscriber.hear();
            assert_eq!((&answer["type"], &answer["code"]), (&"error".into(), &code.into()), "{request}: {answer}");
            assert!(answer["message"].as_str().is_some_and(|told| told.contains(words)), "{request}: {answer}");
        }
        subscriber.socket.send(Message::binary(vec![1, 2])).expect("sent");
        assert_eq!(subscriber.hear()["message"], "send text messages");
        subscriber.snapshot("blocks");
    });
}

#[test]
fn channels_of_a_connection_are_bounded_and_free_again_when_left() {
    with_node(loopback(), node_with_two_holders(), |server| {
        let mut subscriber = Subscriber::new(server);
        let account = |at: u8| format!("account:{}", Address([at; 20]));
        for at in 0..64 {
            subscriber.snapshot(&account(at));
        }
        subscriber.say(&json!({"subscribe": [account(64)]}));
        let answer = subscriber.hear();
        assert_eq!(answer["code"], "too_many_channels", "{answer}");
        subscriber.say(&json!({"unsubscribe": [account(0)], "subscribe": [account(64)]}));
        assert_eq!(subscriber.hear()["channel"], account(64), "one was left first");
        // A channel that is followed already is one channel.
        subscriber.say(&json!({"unsubscribe": [account(1)]}));
        subscriber.snapshot(&account(2));
        subscriber.snapshot(&account(3));
    });
}

#[test]
fn heartbeats_come_with_the_height_and_are_numbered_like_all() {
    let node = node_with_two_holders();
    node.commit(&[]);
    with_node(loopback(), node, |server| {
        let mut subscriber = Subscriber::new(server);
        for _ in 0..2 {
            let beat = subscriber.any();
            assert_eq!(
                (&beat["type"], &beat["height"], &beat["time_ms"]),
                (&"heartbeat".into(), &1.into(), &1_000.into())
            );
        }
    });
}

#[test]
fn a_message_that_is_too_long_ends_the_stream_with_the_limit() {
    with_node(loopback(), node_with_two_holders(), |server| {
        let limit = get(server, "/v1/limits")["stream_message_bytes"].as_u64().expect("bytes") as usize;
        let mut subscriber = Subscriber::new(server);
        subscriber.socket.send(Message::text(" ".repeat(limit))).expect("sent");
        assert_eq!(subscriber.hear()["code"], "malformed", "as long as allowed");
        subscriber.socket.send(Message::text(" ".repeat(limit + 1))).expect("sent");
        let (code, reason) = ended(&mut subscriber.socket);
        assert_eq!(code, CloseCode::Size);
        assert!(reason.contains(&format!("at most {limit} bytes, see /v1/limits")), "{reason}");
    });
}
