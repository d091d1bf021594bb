//! Ethereum's JSON-RPC over real sockets: the usual requests of libraries, and the answers to bad input.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;

use crate::door::*;
use ledger::contracts::{EthereumRequest, contract_address};
use primitives::{AssetId, Body, Operation};
use serde_json::{Value, json};
use tungstenite::Message;

#[test]
fn an_ordinary_day_of_a_library() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let (created, called) = with_node(config(), &data, |server| {
        assert_eq!(ask(server, "eth_chainId", json!([])), "0x7");
        assert_eq!(ask(server, "net_version", json!([])), "7");
        assert_eq!(ask(server, "eth_blockNumber", json!([])), "0x0");
        assert_eq!(ask(server, "eth_syncing", json!([])), false);
        assert_eq!(ask(server, "eth_accounts", json!([])), json!([]));
        let empty = "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470";
        assert_eq!(ask(server, "web3_sha3", json!(["0x"])), empty);
        assert!(ask(server, "web3_clientVersion", json!([])).as_str().is_some_and(|name| name.starts_with("Walras/")));
        let genesis = ask(server, "eth_getBlockByNumber", json!(["latest", true]));
        assert_eq!((&genesis["number"], &genesis["transactions"]), (&json!("0x0"), &json!([])));
        assert_eq!(ask(server, "eth_getBlockByHash", json!([genesis["hash"], false])), genesis);
        let owner = key(1).address();
        assert_eq!(number(&ask(server, "eth_getBalance", json!([owner.to_string(), "latest"]))), 1_000 * ETHER);
        // A contract is created.
        let hash = send(server, &key(1).sign(&creation(0)));
        let created = receipt(server, &hash);
        let counter = contract_address(&owner, 0).to_string();
        assert_eq!((&created["status"], &created["contractAddress"]), (&json!("0x1"), &json!(counter)), "{created}");
        assert_eq!((&created["to"], &created["type"]), (&Value::Null, &json!("0x2")));
        assert_eq!(ask(server, "eth_getCode", json!([counter, "latest"])), hex(COUNTER));
        let transaction = ask(server, "eth_getTransactionByHash", json!([hash]));
        assert_eq!(transaction["blockHash"], created["blockHash"]);
        assert_eq!(transaction["from"], owner.to_string());
        let by_number = "eth_getTransactionByBlockNumberAndIndex";
        assert_eq!(ask(server, by_number, json!([created["blockNumber"], "0x0"])), transaction);
        assert_eq!(ask(server, by_number, json!([created["blockNumber"], "0x1"])), Value::Null);
        let by_hash = "eth_getTransactionByBlockHashAndIndex";
        assert_eq!(ask(server, by_hash, json!([created["blockHash"], "0x0"])), transaction);
        let block = ask(server, "eth_getBlockByHash", json!([created["blockHash"], true]));
        assert_eq!(block["transactions"], json!([transaction]));
        assert_eq!(block["parentHash"], genesis["hash"]);
        assert_eq!(ask(server, "eth_getBlockReceipts", json!([created["blockNumber"]])), json!([created]));
        assert_eq!(ask(server, "eth_getBlockReceipts", json!([created["blockHash"]])), json!([created]));
        let count = "eth_getBlockTransactionCountByNumber";
        assert_eq!(ask(server, count, json!([created["blockNumber"]])), "0x1");
        assert_eq!(ask(server, "eth_getBlockTransactionCountByHash", json!([created["blockHash"]])), "0x1");
        // It is called, first without a transaction, then with the estimated gas.
        let call = json!({"from": owner.to_string(), "to": counter});
        assert_eq!(ask(server, "eth_call", json!([call, "latest"])), "0x");
        let gas = number(&ask(server, "eth_estimateGas", json!([call]))) as u64;
        let request = EthereumRequest { gas_limit: gas, ..payment(1, Some(contract_address(&owner, 0))) };
        let called = receipt(server, &send(server, &key(1).sign(&request)));
        assert_eq!((&called["status"], number(&called["gasUsed"])), (&json!("0x1"), gas.into()), "the least gas");
        let second = number(&ask(server, "eth_estimateGas", json!([call]))) as u64;
        let short = EthereumRequest { gas_limit: second - 1, ..payment(2, request.to) };
        assert_eq!(receipt(server, &send(server, &key(1).sign(&short)))["status"], "0x0", "one less is too little");
        assert_eq!(number(&ask(server, "eth_getStorageAt", json!([counter, "0x0", "latest"]))), 1);
        assert_eq!(number(&ask(server, "eth_getStorageAt", json!([counter, "0x0", created["blockNumber"]]))), 0);
        assert_eq!(ask(server, "eth_getTransactionCount", json!([owner.to_string(), created["blockNumber"]])), "0x1");
        let by_hash = json!([owner.to_string(), {"blockHash": created["blockHash"]}]);
        assert_eq!(ask(server, "eth_getTransactionCount", by_hash), "0x1");
        let by_hash = json!([owner.to_string(), created["blockHash"]]);
        assert_eq!(ask(server, "eth_getTransactionCount", by_hash), "0x1", "a bare hash is accepted, too");
        let nowhere = json!([owner.to_string(), format!("0x{:064x}", 1)]);
        assert_eq!(refused(server, "eth_getBalance", nowhere), (-32_000, "header not found".into()));
        assert_eq!(transaction["blockTimestamp"], block["timestamp"]);
        // Its log is found by each criterion.
        let topic = format!("0x{:064x}", 7);
        for filter in [
            json!({"fromBlock": "earliest"}),
            json!({"fromBlock": "0x0", "toBlock": "latest", "address": counter}),
            json!({"fromBlock": "0x0", "address": [counter], "topics": [[topic]]}),
            json!({"fromBlock": "0x0", "topics": [null]}),
            json!({"blockHash": called["blockHash"], "topics": [topic]}),
        ] {
            assert_eq!(ask(server, "eth_getLogs", json!([filter])), called["logs"], "{filter}");
        }
        let other = json!({"fromBlock": "0x0", "topics": [format!("0x{:064x}", 8)]});
        assert_eq!(ask(server, "eth_getLogs", json!([other])), json!([]));
        assert_eq!(called["logs"][0]["data"], format!("0x{:064x}", 1));
        // Fees.
        let history = ask(server, "eth_feeHistory", json!(["0x2", "latest", [25.0, 75.0]]));
        assert_eq!(history["baseFeePerGas"].as_array().map(Vec::len), Some(3));
        assert_eq!(history["reward"], json!([[hex_of(GWEI), hex_of(GWEI)], [hex_of(GWEI), hex_of(GWEI)]]));
        assert!(number(&ask(server, "eth_gasPrice", json!([]))) >= 5 * GWEI);
        assert_eq!(ask(server, "eth_maxPriorityFeePerGas", json!([])), "0x0");
        // A proof in this chain's own format, which leads to the state root.
        let proof = ask(server, "eth_getProof", json!([counter, ["0x0"], "latest"]));
        assert_eq!((&proof["storageProof"][0]["value"], &proof["nonce"]), (&json!("0x1"), &json!("0x1")));
        let bytes = |value: &Value| -> Vec<u8> {
            let digits = value.as_str().expect("text").as_bytes()[2..].chunks(2);
            digits.map(|pair| u8::from_str_radix(str::from_utf8(pair).expect("digits"), 16).expect("digits")).collect()
        };
        let slot: ledger::SlotProof =
            borsh::from_slice(&bytes(&proof["storageProof"][0]["proof"][0])).expect("decodes");
        let root = proof["stateRoot"].as_str().expect("text").parse().expect("a root");
        let value = slot.verify(&root, &contract_address(&owner, 0), &[0; 32]).expect("holds").expect("a value");
        assert_eq!(value[31], 1);
        (created, called)
    });
    // After a restart: blocks and receipts are the same, from the disk.
    with_node(config(), &data, move |server| {
        assert_eq!(receipt(server, &created["transactionHash"]), created);
        assert_eq!(receipt(server, &called["transactionHash"]), called);
        let block = ask(server, "eth_getBlockByHash", json!([created["blockHash"], false]));
        assert_eq!(block["transactions"], json!([created["transactionHash"]]));
    });
}

fn hex_of(number: u128) -> String {
    format!("{number:#x}")
}

/// Traces show transactions step by step and call by call, also where a native payment of the same block changed the
/// sender.
#[test]
fn transactions_are_traced_as_they_were() {
    let dir = tempfile::tempdir().expect("a directory");
    with_node(config(), &dir.path().join("data"), |server| {
        receipt(server, &send(server, &key(1).sign(&creation(0))));
        let counter = contract_address(&key(1).address(), 0);
        let body = Body {
            chain: 7,
            account: holder().public().address(),
            sequence: 1,
            until: 50_000,
            operation: Operation::Pay { to: key(1).address(), asset: AssetId(0), amount: 5 },
        };
        let native = borsh::to_vec(&body.sign(&genesis().digest(), &holder())).expect("in memory");
        let kind = "Content-Type: application/octet-stream\r\n";
        assert_eq!(post_to(server.http, "/v1/transactions", kind, &native).0, 202);
        let call = key(1).sign(&payment(1, Some(counter)));
        let fails = EthereumRequest { data: vec![0xab; 5], ..payment(2, Some(counter)) };
        let fails = key(1).sign(&fails);
        let batch = json!([
            request("eth_sendRawTransaction", json!([hex(&call)])),
            request("eth_sendRawTransaction", json!([hex(&fails)])),
        ]);
        let (_, answers) = post(server, &batch.to_string());
        let (called, failed) = (receipt(server, &answers[0]["result"]), receipt(server, &answers[1]["result"]));
        let trace = |receipt: &Value, options: Value| {
            ask(server, "debug_traceTransaction", json!([receipt["transactionHash"], options]))
        };
        let steps = trace(&called, json!({"enableMemory": true}));
        assert_eq!(number(&called["gasUsed"]) as u64, steps["gas"], "{steps}");
        assert_eq!(steps["failed"], false);
        let all = steps["structLogs"].as_array().expect("steps");
        let stored = all.iter().find(|step| step["op"] == "SSTORE").expect("it stores");
        assert_eq!(stored["storage"], json!({ format!("{:064x}", 0): format!("{:064x}", 1) }));
        assert_eq!(stored["stack"].as_array().map(Vec::len), Some(3));
        let few = trace(&called, json!({"limit": 3, "disableStack": true, "disableStorage": true}));
        assert_eq!(few["structLogs"].as_array().map(Vec::len), Some(3));
        let tree = trace(&called, json!({"tracer": "callTracer", "tracerConfig": {"withLog": true}}));
        assert_eq!((&tree["type"], &tree["to"]), (&json!("CALL"), &json!(counter.to_string())));
        assert_eq!((&tree["gas"], &tree["gasUsed"]), (&json!("0x30d40"), &called["gasUsed"]));
        assert_eq!(tree["logs"].as_array().map(Vec::len), Some(1));
        let tree = trace(&failed, json!({"tracer": "callTracer"}));
        assert_eq!((&tree["error"], &tree["output"]), (&json!("execution reverted"), &json!("0xababababab")));
        let call = json!({"to": counter.to_string()});
        let called = ask(server, "debug_traceCall", json!([call, "latest", {"tracer": "callTracer"}]));
        assert_eq!(called["type"], "CALL");
        let unknown = refused(server, "debug_traceTransaction", json!([format!("0x{:064x}", 1)]));
        assert_eq!(unknown, (-32_000, "transaction not found".into()));
        let (code, message) =
            refused(server, "debug_traceTransaction", json!([failed["transactionHash"], {"tracer": "x"}]));
        assert!(code == -32_602 && message.contains("callTracer"));
    });
}

/// Errors have the standard's codes and the words that libraries look for, and change nothing.
#[test]
fn bad_input_is_answered_by_code() {
    let dir = tempfile::tempdir().expect("a directory");
    with_node(config(), &dir.path().join("data"), |server| {
        let code = |body: &str| post(server, body).1["error"]["code"].clone();
        assert_eq!(code("{"), -32_700);
        assert_eq!(code("[]"), -32_600);
        assert_eq!(code("7"), -32_600);
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":1,"method":"eth_coinbase"}"#), -32_601);
        let many = vec![request("eth_chainId", json!([])); 1_001];
        assert_eq!(code(&json!(many).to_string()), -32_005);
        let (status, _) = post_to(server.ethereum, "/", "Content-Type: text/plain\r\n", b"{}");
        assert_eq!(status, 415);
        let foreign = "POST / HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
        let mut stream = TcpStream::connect(server.ethereum).expect("listens");
        stream.write_all(foreign.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answered");
        assert!(answer.starts_with("HTTP/1.1 421"), "{answer}");
        let (status, _) = post(server, &format!("\"{}\"", "x".repeat(6 << 20)));
        assert_eq!(status, 413);
        // A notification gets no answer.
        let (status, answer) = post(server, r#"{"jsonrpc":"2.0","method":"eth_chainId"}"#);
        assert_eq!((status, answer), (204, Value::Null));
        let owner = key(1).address().to_string();
        for (method, params) in [
            ("eth_getBalance", json!([])),
            ("eth_getBalance", json!(["0x00", "latest"])),
            ("eth_getBalance", json!([owner, "newest"])),
            ("eth_getBalance", json!([owner, "0x01"])),
            ("eth_getBalance", json!([owner, "latest", 1])),
            ("eth_getTransactionByHash", json!(["0x12"])),
            ("eth_call", json!([{"to": "0x1"}])),
            ("eth_call", json!([{"to": owner, "data": "0x00", "input": "0x01"}])),
            ("eth_getLogs", json!([{"fromBlock": "0x5", "toBlock": "0x4"}])),
            ("eth_getLogs", json!([{"blockHash": format!("0x{:064x}", 0), "fromBlock": "0x0"}])),
            ("eth_getLogs", json!([{"topics": [[], [], [], [], []]}])),
            ("eth_feeHistory", json!(["0x1", "latest", [80, 20]])),
            ("eth_sendRawTransaction", json!(["0x0102"])),
            ("eth_getProof", json!([owner, vec!["0x0"; 101], "latest"])),
        ] {
            assert_eq!(refused(server, method, params.clone()).0, -32_602, "{method} {params}");
        }
        assert_eq!(refused(server, "eth_getBalance", json!([owner, "0x99"])), (-32_000, "header not found".into()));
        assert_eq!(ask(server, "eth_getBlockByNumber", json!(["0x99", false])), Value::Null);
        assert_eq!(ask(server, "eth_getTransactionReceipt", json!([format!("0x{:064x}", 1)])), Value::Null);
        assert_eq!(refused(server, "eth_getFilterChanges", json!(["0x1"])), (-32_000, "filter not found".into()));
        // Rejected transactions.
        let send =
            |request: &EthereumRequest| refused(server, "eth_sendRawTransaction", json!([hex(&key(1).sign(request))]));
        let begins = |(code, message): (i64, String), words: &str| code == -32_000 && message.starts_with(words);
        let to = Some(key(2).address());
        assert!(begins(send(&EthereumRequest { chain: 8, ..payment(0, to) }), "invalid chain id for signer"));
        assert!(begins(send(&EthereumRequest { gas_limit: 20_000, ..payment(0, to) }), "intrinsic gas too low"));
        assert!(begins(send(&EthereumRequest { value: 9_999 * ETHER, ..payment(0, to) }), "insufficient funds"));
        assert!(begins(
            send(&EthereumRequest { max_fee: 1, max_tip: 0, ..payment(0, to) }),
            "max fee per gas less than"
        ));
        assert!(begins(send(&payment(99, to)), "nonce too high"));
        // A transaction above a gap, and its replacement, which must offer ten percent more.
        let waits = key(1).sign(&payment(1, to));
        let hash = ask(server, "eth_sendRawTransaction", json!([hex(&waits)]));
        assert_eq!(ask(server, "eth_sendRawTransaction", json!([hex(&waits)])), hash, "sent again, it is the same");
        let little = EthereumRequest { max_fee: 21 * GWEI, ..payment(1, to) };
        assert!(begins(send(&little), "replacement transaction underpriced"));
        let more = key(1).sign(&EthereumRequest { max_fee: 22 * GWEI, ..payment(1, to) });
        let replaced = ask(server, "eth_sendRawTransaction", json!([hex(&more)]));
        assert_eq!(ask(server, "eth_getTransactionByHash", json!([hash])), Value::Null);
        let waiting = ask(server, "eth_getTransactionByHash", json!([replaced]));
        assert_eq!((&waiting["blockHash"], &waiting["nonce"]), (&Value::Null, &json!("0x1")));
        assert_eq!(ask(server, "eth_getTransactionCount", json!([owner, "pending"])), "0x0", "nonce 0 is missing");
        let first = ask(server, "eth_sendRawTransaction", json!([hex(&key(1).sign(&payment(0, to)))]));
        assert_eq!(receipt(server, &first)["status"], "0x1");
        assert_eq!(receipt(server, &replaced)["status"], "0x1");
        assert!(begins(send(&EthereumRequest { value: 1, ..payment(0, to) }), "nonce too low"));
        // Failing calls, with their messages.
        let created = receipt(server, &ask(server, "eth_sendRawTransaction", json!([hex(&key(1).sign(&creation(2)))])));
        let call = json!({"to": created["contractAddress"], "data": "0x08c379a0"});
        let (_, answer) = post(server, &request("eth_call", json!([call])).to_string());
        assert_eq!(answer["error"], json!({"code": 3, "message": "execution reverted", "data": "0x08c379a0"}));
        let reason = [
            &[0x08, 0xc3, 0x79, 0xa0][..],
            &std::array::from_fn::<u8, 32, _>(|at| if at == 31 { 32 } else { 0 }),
            &std::array::from_fn::<u8, 32, _>(|at| if at == 31 { 2 } else { 0 }),
            b"no",
        ];
        let call = json!({"to": created["contractAddress"], "input": hex(&reason.concat())});
        let (code, message) = refused(server, "eth_estimateGas", json!([call]));
        assert_eq!((code, message.as_str()), (3, "execution reverted: no"));
        let call = json!({"from": owner, "to": owner, "value": hex_of(5_000 * ETHER)});
        assert!(begins(refused(server, "eth_call", json!([call])), "insufficient funds"));
        let call = json!({"to": created["contractAddress"], "gas": "0x5300"});
        assert_eq!(refused(server, "eth_call", json!([call])), (-32_000, "out of gas".into()));
    });
}

/// Many calls of one body share a budget of gas; calls beyond it are rejected, and others are answered.
#[test]
fn a_body_cannot_ask_for_more_than_its_share() {
    let dir = tempfile::tempdir().expect("a directory");
    with_node(config(), &dir.path().join("data"), |server| {
        // Code that jumps to its own beginning until its gas is used up.
        let call = request("eth_call", json!([{"data": "0x5b5f56", "gas": "0x1000000"}]));
        let mut batch = vec![call; 20];
        batch.push(request("eth_chainId", json!([])));
        let (status, answers) = post(server, &json!(batch).to_string());
        assert_eq!(status, 200);
        let mut codes = BTreeMap::new();
        for answer in answers.as_array().expect("a batch") {
            *codes.entry(answer["error"]["code"].as_i64().unwrap_or(0)).or_insert(0) += 1;
        }
        assert_eq!(codes, BTreeMap::from([(-32_005, 4), (-32_000, 16), (0, 1)]));
    });
}

/// Filters are bounded: an address that creates too many is told so, and existing ones keep working.
#[test]
fn filters_by_thousands_are_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    with_node(config(), &dir.path().join("data"), |server| {
        let first = ask(server, "eth_newBlockFilter", json!([]));
        let batch = vec![request("eth_newBlockFilter", json!([])); 1_000];
        let made: usize = (0..5)
            .map(|_| {
                let (_, answers) = post(server, &json!(batch).to_string());
                let answers = answers.as_array().expect("a batch").clone();
                assert!(answers.iter().all(|one| one["result"].is_string() || one["error"]["code"] == -32_005));
                answers.iter().filter(|one| one["result"].is_string()).count()
            })
            .sum();
        assert_eq!(made, 255);
        let (_, why) = refused(server, "eth_newBlockFilter", json!([]));
        assert!(why.contains("your address has 256 filters"), "{why}");
        assert_eq!(ask(server, "eth_getFilterChanges", json!([first])), json!([]));
    });
}

type Socket = tungstenite::WebSocket<tungstenite::stream::MaybeTlsStream<TcpStream>>;

/// The next message.
fn heard(socket: &mut Socket) -> Value {
    loop {
        if let Message::Text(text) = socket.read().expect("told") {
            return serde_json::from_str(&text).expect("JSON");
        }
    }
}

/// The answer to a request; skips events that arrive before it.
fn ask_over(socket: &mut Socket, value: &Value) -> Value {
    socket.send(Message::text(value.to_string())).expect("sent");
    loop {
        let message = heard(socket);
        if message.get("id").is_some() {
            return message;
        }
    }
}

/// Filters report each change once; a WebSocket subscription reports it at once.
#[test]
fn changes_are_told_by_filters_and_subscriptions() {
    let dir = tempfile::tempdir().expect("a directory");
    with_node(config(), &dir.path().join("data"), |server| {
        receipt(server, &send(server, &key(1).sign(&creation(0))));
        let counter = contract_address(&key(1).address(), 0);
        let of_counter = json!({"address": counter.to_string()});
        let logs = ask(server, "eth_newFilter", json!([of_counter]));
        let blocks = ask(server, "eth_newBlockFilter", json!([]));
        let pending = ask(server, "eth_newPendingTransactionFilter", json!([]));
        let mut socket = tungstenite::connect(format!("ws://{}/", server.ethereum)).expect("connects").0;
        let mut say = |value: Value| ask_over(&mut socket, &value);
        let subscribed = |name: &str| json!([name]);
        let heads = say(request("eth_subscribe", subscribed("newHeads")))["result"].clone();
        let told = say(request("eth_subscribe", json!(["logs", of_counter])))["result"].clone();
        let waiting = say(request("eth_subscribe", subscribed("newPendingTransactions")))["result"].clone();
        assert_eq!(say(request("eth_subscribe", subscribed("syncing")))["error"]["code"], -32_602);
        assert_eq!(say(request("eth_chainId", json!([])))["result"], "0x7");
        let hash = send(server, &key(1).sign(&payment(1, Some(counter))));
        let called = receipt(server, &hash);
        let mut events: BTreeMap<String, Value> = BTreeMap::new();
        // The block before may be announced late.
        while events.len() < 3 || events[heads.as_str().expect("an id")]["hash"] != called["blockHash"] {
            let event = heard(&mut socket);
            assert_eq!(event["method"], "eth_subscription");
            let params = &event["params"];
            events.insert(params["subscription"].as_str().expect("an id").into(), params["result"].clone());
        }
        let of = |id: &Value| &events[id.as_str().expect("an id")];
        assert_eq!(*of(&told), called["logs"][0]);
        assert_eq!(*of(&waiting), hash);
        let mut say = |value: Value| ask_over(&mut socket, &value);
        assert_eq!(say(request("eth_unsubscribe", json!([heads])))["result"], true);
        assert_eq!(say(request("eth_unsubscribe", json!([heads])))["error"]["code"], -32_000);
        let changes = |id: &Value| ask(server, "eth_getFilterChanges", json!([id]));
        assert_eq!(changes(&logs), called["logs"]);
        assert_eq!(changes(&logs), json!([]), "each once");
        assert_eq!(
            ask(server, "eth_getFilterLogs", json!([logs])),
            called["logs"],
            "since the block at which the filter was made"
        );
        let found = changes(&blocks);
        assert!(found.as_array().is_some_and(|all| all.contains(&called["blockHash"])), "{found}");
        assert_eq!(changes(&pending), json!([hash]));
        assert_eq!(ask(server, "eth_uninstallFilter", json!([pending])), true);
        assert_eq!(ask(server, "eth_uninstallFilter", json!([pending])), false);
        assert_eq!(refused(server, "eth_getFilterLogs", json!([blocks])).0, -32_000);
    });
}

/// Sending requires the token of the configuration; reading does not.
#[test]
fn the_token_for_sending_holds_here_too() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().expect("a directory");
    let token = "0123456789abcdef0123456789abcdef";
    let file = dir.path().join("submit.token");
    std::fs::write(&file, token).expect("writable");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("set");
    let mut config = config();
    config.http.submit_token_file = Some(file);
    with_node(config, &dir.path().join("data"), move |server| {
        let bytes = hex(&key(1).sign(&payment(0, Some(key(2).address()))));
        let body = request("eth_sendRawTransaction", json!([bytes]));
        let (code, message) = refused(server, "eth_sendRawTransaction", json!([bytes]));
        assert!(code == -32_000 && message.contains("submit_token_file"), "{message}");
        assert_eq!(ask(server, "eth_chainId", json!([])), "0x7");
        let head = format!("{JSON}Authorization: Bearer {token}\r\n");
        let (_, answer) = post_to(server.ethereum, "/", &head, body.to_string().as_bytes());
        let answer: Value = serde_json::from_slice(&answer).expect("JSON");
        assert_eq!(receipt(server, &answer["result"])["status"], "0x1");
    });
}
