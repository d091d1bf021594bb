//! An account and the amounts that its offers lock are of the same height, also while the published state lags behind
//! the ledger.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use crate::fake::Fake;
use doors::{Bound, Http};
use primitives::{AssetId, Body, Operation, Price, PublicKey, Signature, Transaction};
use serde_json::{Value, json};
use tungstenite::Message;

const OWNER: PublicKey = PublicKey([1; 32]);

/// The owner's offer of 5,000 units.
fn offer(sequence: u64) -> Transaction {
    let (sell, buy, limit) = (AssetId(0), AssetId(1), Price::ONE);
    let operation = Operation::offer(sell, buy, 5_000, limit);
    let body = Body { chain: 1, account: OWNER.address(), sequence, until: 50_000, operation };
    Transaction::by_key(body, OWNER, Signature([0; 64]))
}

fn account(server: SocketAddr, more: &str) -> serde_json::Value {
    let mut stream = TcpStream::connect(server).expect("listens");
    let path = format!("/v1/accounts/{}{more}", OWNER.address());
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    serde_json::from_str(answer.split("\r\n\r\n").nth(1).expect("a body")).expect("JSON")
}

/// What the stream's channel of the account begins with.
fn snapshot(server: SocketAddr) -> Value {
    let stream = TcpStream::connect(server).expect("listens");
    let (mut socket, _) =
        tungstenite::client(format!("ws://localhost:{}/v1/stream", server.port()), stream).expect("a stream");
    let subscribe = json!({"subscribe": [format!("account:{}", OWNER.address())]});
    socket.send(Message::text(subscribe.to_string())).expect("sent");
    loop {
        let message = socket.read().expect("a message").into_text().expect("text");
        let message: Value = serde_json::from_str(&message).expect("JSON");
        if message["type"] == "snapshot" {
            return message;
        }
    }
}

#[test]
fn an_account_is_told_at_one_height() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads");
    runtime.block_on(async {
        let fake = Arc::new(Fake::new());
        let settings = Http { listen: SocketAddr::from(([127, 0, 0, 1], 0)), ..Http::default() };
        let doors = Bound::new(settings).await.expect("a free port").open(fake.clone());
        let server = doors.address();
        for (sequence, path) in [(1, ""), (2, "/proof"), (3, "")] {
            // The ledger is ahead of the published state for a while.
            let publish = fake.apply(offer(sequence));
            let asked = tokio::task::spawn_blocking(move || account(server, path));
            tokio::time::sleep(Duration::from_millis(100)).await;
            publish(&fake);
            let told = asked.await.expect("answered");
            let account = if path.is_empty() { &told } else { &told["account"] };
            let balance = &account["balances"][0];
            let units = |name: &str| balance[name].as_str().and_then(|units| units.parse::<u64>().ok()).expect("units");
            assert_eq!((account["height"].as_u64(), units("locked")), (Some(sequence), 5_000 * sequence), "{told}");
            assert_eq!(units("available") + units("locked"), 1_000_000, "{told}");
        }
        // So are its offers in the stream, and the height that news follow.
        let publish = fake.apply(offer(4));
        let asked = tokio::task::spawn_blocking(move || snapshot(server));
        tokio::time::sleep(Duration::from_millis(100)).await;
        publish(&fake);
        let told = asked.await.expect("answered");
        assert_eq!((&told["height"], &told["account"]["height"]), (&json!(4), &json!(4)), "{told}");
        assert_eq!(told["offers"].as_array().map(Vec::len), Some(4), "{told}");
        doors.close().await;
    });
}
