//! Ethereum's subscriptions: every block once, in order, as a client of another project reads them; and the ends of a
//! connection.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use crate::fake::Fake;
use crate::open::{ended, loopback};
use doors::{Bound, Http};
use ledger::{Genesis, Limits};
use serde_json::{Value, json};
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Message, WebSocket};

fn with_rpc(settings: Http, test: impl FnOnce(SocketAddr, Arc<Fake>) + Send + 'static) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads");
    runtime.block_on(async {
        let limits = Limits::default().with_block_gas(1, 30_000_000);
        let node = Arc::new(Fake::of(Genesis { limits, ..Fake::genesis() }));
        let bound = Bound::new(settings).await.expect("a free port");
        let bound = bound.with_ethereum(loopback().listen).await.expect("a free port");
        let doors = bound.open(node.clone());
        let address = doors.ethereum_address().expect("it was bound");
        tokio::task::spawn_blocking(move || test(address, node)).await.expect("the test passes");
        doors.close().await;
    });
}

struct Client {
    socket: WebSocket<TcpStream>,
    /// Notifications that arrived before the answer that was waited for.
    noted: Vec<Value>,
}

impl Client {
    fn new(server: SocketAddr) -> Client {
        let stream = TcpStream::connect(server).expect("listens");
        let socket = tungstenite::client(format!("ws://localhost:{}/", server.port()), stream).expect("a socket").0;
        Client { socket, noted: Vec::new() }
    }

    fn read(&mut self) -> Value {
        loop {
            if let Message::Text(text) = self.socket.read().expect("a message") {
                return serde_json::from_str(&text).expect("JSON");
            }
        }
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": 5, "method": method, "params": params});
        self.socket.send(Message::text(request.to_string())).expect("sent");
        loop {
            let message = self.read();
            if message["method"] == "eth_subscription" {
                self.noted.push(message);
            } else {
                assert_eq!(message["id"], 5, "{message}");
                return message;
            }
        }
    }

    /// The id of a new subscription.
    fn subscribe(&mut self, params: Value) -> String {
        let answer = self.call("eth_subscribe", params);
        answer["result"].as_str().unwrap_or_else(|| panic!("{answer}")).to_string()
    }

    /// The next notification: its subscription and its content.
    fn hear(&mut self) -> (String, Value) {
        let message = if self.noted.is_empty() { self.read() } else { self.noted.remove(0) };
        assert_eq!(message["method"], "eth_subscription", "{message}");
        let params = &message["params"];
        (params["subscription"].as_str().expect("a subscription").into(), params["result"].clone())
    }
}

#[test]
fn every_new_block_is_told_once_in_order_with_its_parent() {
    with_rpc(loopback(), |server, node| {
        let mut client = Client::new(server);
        let heads = client.subscribe(json!(["newHeads"]));
        let mut parent = Value::Null;
        for height in 1..=5u64 {
            node.commit(&[]);
            let (subscription, head) = client.hear();
            assert_eq!((&subscription, &head["number"]), (&heads, &json!(format!("0x{height:x}"))));
            assert!(parent.is_null() || head["parentHash"] == parent, "{head}");
            parent = head["hash"].clone();
            // It is the block that is answered to whoever asks.
            let asked = client.call("eth_getBlockByHash", json!([parent, false]));
            assert_eq!(asked["result"]["number"], head["number"], "{asked}");
        }
    });
}

#[test]
fn two_subscriptions_of_one_connection_are_told_apart() {
    with_rpc(loopback(), |server, node| {
        let mut client = Client::new(server);
        let ids = [client.subscribe(json!(["newHeads"])), client.subscribe(json!(["newHeads"]))];
        assert_ne!(ids[0], ids[1]);
        node.commit(&[]);
        let mut heard = [client.hear(), client.hear()];
        heard.sort_by_key(|(id, _)| *id != ids[0]);
        assert_eq!([&heard[0].0, &heard[1].0], [&ids[0], &ids[1]]);
        assert_eq!(heard[0].1, heard[1].1, "one block");
        assert_eq!(client.call("eth_unsubscribe", json!([ids[0]]))["result"], true);
        assert!(client.call("eth_unsubscribe", json!([ids[0]]))["error"].is_object(), "it is gone");
        node.commit(&[]);
        node.commit(&[]);
        let after = [client.hear(), client.hear()];
        assert!(after.iter().all(|(id, _)| *id == ids[1]), "{after:?}");
        assert_eq!([&after[0].1["number"], &after[1].1["number"]], [&json!("0x2"), &json!("0x3")]);
        // Another connection cannot end it.
        let mut other = Client::new(server);
        assert!(other.call("eth_unsubscribe", json!([ids[1]]))["error"].is_object());
    });
}

#[test]
fn what_cannot_be_subscribed_to_is_named() {
    with_rpc(loopback(), |server, _| {
        let mut client = Client::new(server);
        for params in [
            json!([]),
            json!([5]),
            json!(["newBlocks"]),
            json!(["syncing", {}, {}]),
            json!(["logs", "all"]),
            json!(["logs", {"address": "0x12"}]),
            json!(["logs", {"topics": 3}]),
        ] {
            let answer = client.call("eth_subscribe", params.clone());
            assert!(answer["error"]["code"].as_i64().is_some_and(|code| code <= -32_000), "{params}: {answer}");
            assert!(answer["error"]["message"].as_str().is_some_and(|told| !told.is_empty()), "{answer}");
        }
        for params in [json!([]), json!([5])] {
            assert!(client.call("eth_unsubscribe", params)["error"].is_object());
        }
        // The connection goes on, and answers what HTTP answers.
        assert_eq!(client.call("eth_chainId", json!([]))["result"], "0x1");
    });
}

#[test]
fn subscriptions_of_a_connection_are_bounded() {
    with_rpc(loopback(), |server, _| {
        let mut client = Client::new(server);
        let ids: Vec<String> = (0..64).map(|_| client.subscribe(json!(["newHeads"]))).collect();
        let answer = client.call("eth_subscribe", json!(["newHeads"]));
        assert_eq!(answer["error"]["code"], -32_005, "{answer}");
        assert_eq!(client.call("eth_unsubscribe", json!([ids[0]]))["result"], true);
        client.subscribe(json!(["newHeads"]));
    });
}

#[test]
fn a_batch_over_a_connection_is_answered_as_over_http() {
    with_rpc(loopback(), |server, _| {
        let mut client = Client::new(server);
        let request = |id: u64, method: &str| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": []});
        let batch = json!([request(1, "eth_chainId"), request(2, "eth_blockNumber"), request(3, "eth_none")]);
        client.socket.send(Message::text(batch.to_string())).expect("sent");
        let answers = client.read();
        let ids: Vec<u64> = answers.as_array().expect("a list").iter().filter_map(|one| one["id"].as_u64()).collect();
        assert_eq!(ids, [1, 2, 3]);
        assert_eq!(answers[2]["error"]["code"], -32_601);
        client.socket.send(Message::binary(request(9, "eth_chainId").to_string().into_bytes())).expect("sent");
        assert_eq!(client.read()["id"], 9, "bytes are text as well");
        client.socket.send(Message::text("{")).expect("sent");
        assert_eq!(client.read()["error"]["code"], -32_700);
    });
}

#[test]
fn a_message_that_is_too_long_ends_the_connection_with_a_reason() {
    with_rpc(Http { body_bytes: 4_096, ..loopback() }, |server, _| {
        let mut client = Client::new(server);
        client.socket.send(Message::text(" ".repeat(4_097))).expect("sent");
        let (code, reason) = ended(&mut client.socket);
        assert_eq!(code, CloseCode::Size);
        assert!(reason.contains("4096"), "{reason}");
    });
}
