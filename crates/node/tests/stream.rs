//! The stream as a client receives it.

use std::net::TcpStream;

use ledger::{Genesis, Listing};
use node::{Config, Node};
use primitives::{AssetId, Body, Fraction, Operation, SecretKey};
use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

fn key(person: u8) -> SecretKey {
    SecretKey::from_seed([person; 32])
}

fn genesis() -> Genesis {
    let issuer = key(9).public().address();
    let assets = vec![Listing::new("USD", 2, issuer), Listing::new("EUR", 2, issuer)];
    let balances =
        (1..=2).flat_map(|p| (0..2).map(move |a| (key(p).public().address(), AssetId(a), 1_000_000))).collect();
    Genesis {
        chain: 7,
        fee: 0,
        epsilon: Fraction::ZERO,
        mu: Fraction::power_of_two(10),
        assets,
        balances,
        ..Genesis::default()
    }
}

/// The next message that is not a heartbeat; sequence numbers must not have gaps.
fn hear(socket: &mut WebSocket<TcpStream>, expected: &mut u64) -> Value {
    loop {
        if let Message::Text(text) = socket.read().expect("a message") {
            let message: Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(message["sequence"], *expected, "no gap");
            *expected += 1;
            if message["type"] != "heartbeat" {
                return message;
            }
        }
    }
}

#[test]
fn snapshot_then_increments() {
    let dir = tempfile::tempdir().expect("a directory");
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    runtime.block_on(async {
        let mut config = Config::default();
        config.http.listen.set_port(0);
        config.blocks.interval_ms = 10;
        let node = Node::start(config, &genesis(), &dir.path().join("data"), None).await.expect("starts");
        let (address, exchange) = (node.address(), node.exchange().clone());
        let client = tokio::task::spawn_blocking(move || {
            let tcp = TcpStream::connect(address).expect("listens");
            let (mut socket, _) = tungstenite::client(format!("ws://{address}/v1/stream"), tcp).expect("upgrades");
            let mut sequence = 0;
            let me = key(1).public().address();
            let say = |socket: &mut WebSocket<TcpStream>, value: Value| {
                socket.send(Message::text(value.to_string())).expect("sent");
            };
            say(
                &mut socket,
                json!({"subscribe": ["blocks", "batches", "trades:EUR/USD", "candles:USD/EUR:1h",
                format!("account:{me}")]}),
            );
            for channel in ["blocks", "batches", "trades:EUR/USD", "candles:USD/EUR:1h", &format!("account:{me}")] {
                let snapshot = hear(&mut socket, &mut sequence);
                assert_eq!((&snapshot["type"], &snapshot["channel"]), (&json!("snapshot"), &json!(channel)));
            }
            for (bad, code) in [
                ("nonsense".to_string(), "malformed"),
                (json!({"subscribe": ["weather"]}).to_string(), "unknown_channel"),
                (json!({"subscribe": ["trades:EUR"]}).to_string(), "unknown_channel"),
                (json!({"subscribe": ["candles:EUR/USD:2h"]}).to_string(), "unknown_channel"),
                (json!({"subscribe": ["account:0x1"]}).to_string(), "unknown_channel"),
                (json!({"subcribe": []}).to_string(), "malformed"),
            ] {
                socket.send(Message::text(bad)).expect("sent");
                assert_eq!(hear(&mut socket, &mut sequence)["code"], code);
            }
            let limit = |text: &str| text.parse().expect("a price");
            let sell = |sell, buy, amount, price| Operation::offer(AssetId(sell), AssetId(buy), amount, limit(price));
            let offers = [(1, sell(1, 0, 10_000, "1.05")), (2, sell(0, 1, 11_000, "0.9"))];
            let offers = offers.map(|(person, operation)| {
                Body { chain: 7, account: key(person).public().address(), sequence: 1, until: 50_000, operation }
                    .sign(&genesis().digest(), &key(person))
            });
            drop(exchange.submit(offers.to_vec(), false).expect("taken"));
            let kinds: Vec<Value> = (0..5).map(|_| hear(&mut socket, &mut sequence)).collect();
            let of = |kind: &str| kinds.iter().find(|message| message["type"] == kind).expect("told");
            assert_eq!(of("block")["transactions"], 2);
            assert_eq!(of("batch")["trades"].as_array().map(Vec::len), Some(2));
            assert_eq!(of("trade")["market"], "EUR/USD");
            assert_eq!((&of("candle")["interval"], &of("candle")["candle"]["batches"]), (&json!("1h"), &json!(1)));
            let account = of("account");
            assert_eq!(account["outcomes"][0]["outcome"]["result"], "offered");
            assert_eq!(account["fills"][0]["sell"], "EUR");
            assert_eq!(account["balances"].as_array().map(Vec::len), Some(2));
            say(&mut socket, json!({"unsubscribe": ["blocks", "batches", "trades:EUR/USD", "candles:USD/EUR:1h"]}));
        });
        client.await.expect("the client succeeds");
        node.stop().await;
    });
}
