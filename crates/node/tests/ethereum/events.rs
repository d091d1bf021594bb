//! Events over real sockets: none is missing without a sign, whatever others do.

use std::net::TcpStream;

use crate::developer::{create, mined, signed, with_developers};
use crate::door::*;
use ledger::contracts::EthereumRequest;
use primitives::Address;
use serde_json::{Value, json};
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};

/// Logs without topics and data as often as its input, a word, says.
const LOGGER: [u8; 18] = [0x60, 0, 0x35, 0x5b, 0x60, 0, 0x60, 0, 0xa0, 0x60, 1, 0x90, 0x03, 0x80, 0x60, 3, 0x57, 0];
/// Logs its own address as a topic, once.
const TELLER: [u8; 7] = [0x30, 0x5f, 0x5f, 0xa1, 0, 0, 0];

fn word(number: u64) -> Vec<u8> {
    [&[0; 24][..], &number.to_be_bytes()].concat()
}

/// Calls the logger; returns the height of its block.
fn emit(server: Server, nonce: u64, logger: Address, logs: u64) -> String {
    let call = EthereumRequest { data: word(logs), gas_limit: 8_000_000, ..payment(nonce, Some(logger)) };
    let receipt = mined(server, &signed(1, call));
    assert_eq!((&receipt["status"], receipt["logs"].as_array().map(Vec::len)), (&json!("0x1"), Some(logs as usize)));
    receipt["blockNumber"].as_str().expect("a number").into()
}

type Socket = WebSocket<MaybeTlsStream<TcpStream>>;

fn connect(server: Server) -> Socket {
    tungstenite::connect(format!("ws://{}/", server.ethereum)).expect("connects").0
}

/// The next message, as JSON.
fn heard(socket: &mut Socket) -> Value {
    loop {
        match socket.read().expect("connected") {
            Message::Text(text) => return serde_json::from_str(&text).expect("JSON"),
            Message::Ping(_) | Message::Pong(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

fn subscribe(socket: &mut Socket, params: Value) -> Value {
    socket.send(Message::text(request("eth_subscribe", params).to_string())).expect("sent");
    let answer = heard(socket);
    assert!(answer["result"].is_string(), "{answer}");
    answer["result"].clone()
}

fn indices(logs: &[Value]) -> Vec<u128> {
    logs.iter().map(|log| number(&log["logIndex"])).collect()
}

/// A stranger's block has more logs than an answer holds: subscribers and filters get all of them in parts, and a
/// listener to another address gets its own.
#[test]
fn a_block_with_more_logs_than_an_answer_is_reported_whole() {
    const MANY: u64 = 10_001;
    let dir = tempfile::tempdir().expect("a directory");
    with_developers(&dir.path().join("data"), |server| {
        let (logger, teller) = (create(server, 0, &LOGGER), create(server, 1, &TELLER));
        let (mut all, mut own) = (connect(server), connect(server));
        let of = |address: Address| json!(["logs", {"address": address.to_string()}]);
        subscribe(&mut all, of(logger));
        subscribe(&mut own, of(teller));
        let filter = ask(server, "eth_newFilter", json!([{"address": logger.to_string()}]));
        emit(server, 2, logger, 3);
        // One block with the spam and with the log of the other contract after it.
        ask(server, "evm_setAutomine", json!([false]));
        let spam = EthereumRequest { data: word(MANY), gas_limit: 8_000_000, ..payment(3, Some(logger)) };
        send(server, &signed(1, spam));
        let told = send(server, &signed(1, payment(4, Some(teller))));
        ask(server, "evm_mine", json!([]));
        ask(server, "evm_setAutomine", json!([true]));
        let told = ask(server, "eth_getTransactionReceipt", json!([told]));
        let logs: Vec<Value> = (0..3 + MANY).map(|_| heard(&mut all)["params"]["result"].clone()).collect();
        assert_eq!(indices(&logs[3..]), (0..u128::from(MANY)).collect::<Vec<_>>());
        assert_eq!(heard(&mut own)["params"]["result"], told["logs"][0]);
        assert_eq!(number(&told["logs"][0]["logIndex"]), MANY.into());
        let poll = || ask(server, "eth_getFilterChanges", json!([filter])).as_array().expect("a list").clone();
        let polled = [poll(), poll(), poll()];
        assert_eq!(polled.each_ref().map(Vec::len), [10_000, 4, 0]);
        assert_eq!(polled.concat(), logs, "the next poll goes on where an answer was full");
        // A search says where to go on, also inside the block.
        let height = told["blockNumber"].clone();
        let (_, answer) = post(server, &request("eth_getLogs", json!([{"fromBlock": "0x0"}])).to_string());
        let range = answer["error"]["data"].clone();
        assert_eq!((&answer["error"]["code"], &range["fromBlock"]), (&json!(-32_005), &json!("0x0")), "{answer}");
        assert_eq!(number(&range["toBlock"]), number(&height) - 1);
        assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("this block range [0x0, 0x")));
        assert_eq!(ask(server, "eth_getLogs", json!([range])).as_array().map(Vec::len), Some(3));
        let block = json!({"fromBlock": height, "toBlock": height});
        let (_, answer) = post(server, &request("eth_getLogs", json!([block])).to_string());
        let mut page = answer["error"]["data"].clone();
        assert_eq!((&page["maxLogs"], &page["fromLog"]), (&json!("0x3e8"), &json!("0x0")), "{answer}");
        let mut read = Vec::new();
        loop {
            let found = ask(server, "eth_getLogs", json!([page])).as_array().expect("a list").clone();
            let Some(last) = found.last() else { break };
            page["fromLog"] = json!(format!("{:#x}", number(&last["logIndex"]) + 1));
            read.extend(found);
        }
        assert_eq!(indices(&read), (0..=u128::from(MANY)).collect::<Vec<_>>());
        assert_eq!(refused(server, "eth_getLogs", json!([{"maxLogs": "0x2711"}])).0, -32_602);
    });
}

/// A poll whose answer does not fit fails, and the next one brings what it would have brought.
#[test]
fn a_filters_poll_that_fails_consumes_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    with_developers(&dir.path().join("data"), |server| {
        let logger = create(server, 0, &LOGGER);
        let filter = ask(server, "eth_newFilter", json!([{"address": logger.to_string()}]));
        emit(server, 1, logger, 9_000);
        // The answers of one body share 64 MiB: this one needs more before it comes to the filter.
        let logs = json!([{"fromBlock": "0x0", "address": logger.to_string()}]);
        let mut batch = vec![request("eth_getLogs", logs); 30];
        batch.push(request("eth_getFilterChanges", json!([filter])));
        let (_, answers) = post(server, &json!(batch).to_string());
        assert_eq!(answers[30]["error"]["code"], -32_005, "{}", answers[30]["error"]);
        let poll = || ask(server, "eth_getFilterChanges", json!([filter])).as_array().map(Vec::len);
        assert_eq!((poll(), poll()), (Some(9_000), Some(0)));
    });
}

/// `null` among the alternatives of a topic matches everything, as `null` alone and an empty list do; a position needs
/// a topic all the same.
#[test]
fn null_among_topics_matches_everything() {
    let dir = tempfile::tempdir().expect("a directory");
    with_developers(&dir.path().join("data"), |server| {
        let teller = create(server, 0, &TELLER);
        let told = mined(server, &signed(1, payment(1, Some(teller))));
        let other = format!("0x{}", "9".repeat(64));
        for (topics, found) in [
            (json!([null]), 1),
            (json!([[]]), 1),
            (json!([[other, null]]), 1),
            (json!([[other]]), 0),
            (json!([null, null, null, null]), 0),
        ] {
            let filter = json!([{"blockHash": told["blockHash"], "topics": topics}]);
            assert_eq!(ask(server, "eth_getLogs", filter).as_array().map(Vec::len), Some(found), "{topics}");
        }
    });
}

/// Subscriptions inside a batch are made, and a subscription to whole pending transactions brings them whole.
#[test]
fn subscriptions_in_a_batch_and_whole_pending_transactions() {
    let dir = tempfile::tempdir().expect("a directory");
    with_developers(&dir.path().join("data"), |server| {
        let mut socket = connect(server);
        let batch = json!([
            request("eth_chainId", json!([])),
            request("eth_subscribe", json!(["newPendingTransactions", true])),
            request("eth_subscribe", json!(["newPendingTransactions"])),
            request("eth_unsubscribe", json!(["0x1"])),
            request("eth_blockNumber", json!([])),
        ]);
        socket.send(Message::text(batch.to_string())).expect("sent");
        let answers = heard(&mut socket);
        assert_eq!(answers[0]["result"], "0x7a69");
        let (whole, hashes) = (answers[1]["result"].clone(), answers[2]["result"].clone());
        assert!(whole.is_string() && hashes.is_string(), "{answers}");
        assert_eq!((&answers[3]["error"]["code"], &answers[4]["result"]), (&json!(-32_000), &json!("0x0")));
        let hash = send(server, &signed(1, payment(0, Some(Address([0xaa; 20])))));
        let (one, other) = (heard(&mut socket)["params"].clone(), heard(&mut socket)["params"].clone());
        let of = |id: &Value| if one["subscription"] == *id { one["result"].clone() } else { other["result"].clone() };
        assert_eq!(of(&hashes), hash);
        assert_eq!((&of(&whole)["hash"], &of(&whole)["nonce"]), (&hash, &json!("0x0")));
        let wrong = request("eth_subscribe", json!(["newPendingTransactions", "yes"]));
        socket.send(Message::text(wrong.to_string())).expect("sent");
        assert_eq!(heard(&mut socket)["error"]["code"], -32_602);
    });
}

/// Each head of many blocks made at once is reported, whether the feed of blocks keeps them or not.
#[test]
fn every_head_of_many_blocks_is_reported() {
    const BLOCKS: u128 = 1_500;
    let dir = tempfile::tempdir().expect("a directory");
    with_developers(&dir.path().join("data"), |server| {
        let mut socket = connect(server);
        subscribe(&mut socket, json!(["newHeads"]));
        ask(server, "anvil_mine", json!([format!("{BLOCKS:#x}")]));
        for height in 1..=BLOCKS {
            assert_eq!(number(&heard(&mut socket)["params"]["result"]["number"]), height);
        }
    });
}

/// A message that is too long ends the connection with the code and the reason for it.
#[test]
fn a_message_that_is_too_long_is_refused_with_a_reason() {
    let dir = tempfile::tempdir().expect("a directory");
    with_developers(&dir.path().join("data"), |server| {
        for (url, bytes) in
            [(format!("ws://{}/v1/stream", server.http), 16 << 10), (format!("ws://{}/", server.ethereum), 5 << 20)]
        {
            let mut socket = tungstenite::connect(&url).expect("connects").0;
            // The node stops reading at some point; what it said until then arrives.
            drop(socket.send(Message::text("x".repeat(bytes + 1))));
            let frame = loop {
                match socket.read().expect("a reason comes before the end") {
                    Message::Close(frame) => break frame.expect("a reason"),
                    _ => continue,
                }
            };
            assert_eq!(u16::from(frame.code), 1_009, "{url}");
            assert!(frame.reason.contains(&bytes.to_string()), "{}", frame.reason);
        }
    });
}
