//! Ethereum's JSON-RPC against the document that describes it (`docs/openrpc.json`): each method refuses what the
//! document does not allow, by the codes of Ethereum's execution-apis, and names the argument.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use crate::fake::{Fake, zeros};
use crate::open::loopback;
use doors::Bound;
use ledger::{Genesis, Limits};
use primitives::{AssetId, Body, Operation, PublicKey, Signature, Transaction};
use serde_json::{Value, json};

const OWNER: PublicKey = PublicKey([1; 32]);
const INVALID_REQUEST: i64 = -32_600;
const UNKNOWN_METHOD: i64 = -32_601;
const INVALID_PARAMS: i64 = -32_602;
const NOT_JSON: i64 = -32_700;
const LIMIT: i64 = -32_005;
const SERVER: i64 = -32_000;

fn with_rpc(test: impl FnOnce(SocketAddr) + Send + 'static) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads");
    runtime.block_on(async {
        let limits = Limits::default().with_block_gas(1, 30_000_000);
        let node = Fake::of(Genesis { limits, ..Fake::genesis() });
        for sequence in 1..=3 {
            let operation = Operation::Pay { to: PublicKey([2; 32]).address(), asset: AssetId(0), amount: 5 };
            let body = Body { chain: 1, account: OWNER.address(), sequence, until: 50_000, operation };
            node.commit(&[Transaction::by_key(body, OWNER, Signature([0; 64]))]);
        }
        let bound = Bound::new(loopback()).await.expect("a free port");
        let bound = bound.with_ethereum(loopback().listen).await.expect("a free port");
        let doors = bound.open(Arc::new(node));
        let address = doors.ethereum_address().expect("it was bound");
        tokio::task::spawn_blocking(move || test(address)).await.expect("the test passes");
        doors.close().await;
    });
}

/// Status and body of the answer to bytes.
fn post(server: SocketAddr, body: &[u8]) -> (u16, Vec<u8>) {
    let mut stream = TcpStream::connect(server).expect("listens");
    let length = body.len();
    let head = format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("sent");
    // A body that is refused is not read to its end.
    let _ = stream.write_all(body);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    (status, answer.split_off(end + 4))
}

fn asked(server: SocketAddr, body: &Value) -> Value {
    let (status, answer) = post(server, body.to_string().as_bytes());
    assert_eq!(status, 200, "{body}");
    serde_json::from_slice(&answer).unwrap_or_else(|_| panic!("{body}: {}", String::from_utf8_lossy(&answer)))
}

fn call(server: SocketAddr, method: &str, params: Value) -> Value {
    asked(server, &json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
}

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_default()
}

fn message(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_default()
}

fn document() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openrpc.json");
    serde_json::from_str(&std::fs::read_to_string(path).expect("the document is there")).expect("JSON")
}

struct Described {
    name: String,
    /// Name, schema and whether it is required.
    params: Vec<(String, String, bool)>,
}

/// The methods of the document that this chain, which is no developers' one, has.
fn methods(server: SocketAddr) -> Vec<Described> {
    let param = |param: &Value| {
        let schema = param["schema"]["$ref"].as_str().expect("a schema").rsplit('/').next().expect("a name");
        (param["name"].as_str().expect("a name").into(), schema.into(), param["required"] == true)
    };
    let described = |method: &Value| Described {
        name: method["name"].as_str().expect("a name").into(),
        params: method["params"].as_array().expect("parameters").iter().map(param).collect(),
    };
    let document = document();
    let all = document["methods"].as_array().expect("methods").iter().map(described);
    let found: Vec<_> = all.filter(|of| code(&call(server, &of.name, json!([]))) != UNKNOWN_METHOD).collect();
    let present = |name: &str| found.iter().any(|of| of.name == name);
    assert!(found.len() > 40 && present("eth_call") && !present("anvil_mine"), "{}", found.len());
    found
}

/// A value that the schema allows.
fn sound(schema: &str) -> Value {
    match schema {
        "address" => json!(OWNER.address().to_string()),
        "hash32" => json!(format!("0x{}", zeros().trim_start_matches("0x"))),
        "uint" => json!("0x1"),
        "uint256" => json!("0x0"),
        "blockNumberOrTag" | "blockNumberTagOrHash" => json!("latest"),
        "bytes" => json!("0x00"),
        "boolean" => json!(true),
        "list" => json!([]),
        "string" => json!("0x1"),
        "call" => json!({"to": OWNER.address().to_string()}),
        "filter" | "object" | "overrides" => json!({}),
        "number" => json!(7),
        "simulation" => json!({"blockStateCalls": [{}]}),
        other => panic!("no value of {other}"),
    }
}

/// Values that it does not allow.
fn unsound(schema: &str) -> Vec<Value> {
    match schema {
        "address" => vec![json!("0x12"), json!(7), json!("nobody"), json!({})],
        "hash32" => vec![json!("0x12"), json!(7), json!([]), json!(format!("0x{}", "g".repeat(64)))],
        "uint" => vec![json!("one"), json!("-0x1"), json!([]), json!("0x1".repeat(40))],
        "uint256" => vec![json!("slot"), json!([]), json!(format!("0x{}", "1".repeat(65)))],
        "blockNumberOrTag" => vec![json!("newest"), json!([]), json!("0xzz")],
        "blockNumberTagOrHash" => vec![json!("newest"), json!([]), json!({"blockHash": "0x12"})],
        "bytes" => vec![json!("0x0"), json!("00zz"), json!(5), json!([])],
        "boolean" => vec![json!("yes"), json!(1), json!({})],
        "list" => vec![json!("none"), json!({}), json!(3)],
        "call" => vec![json!("0x12"), json!([]), json!({"to": "0x12"}), json!({"gas": "much"}), json!({"data": "0x0"})],
        "number" => vec![json!("soon"), json!(-1), json!([])],
        "simulation" => vec![json!(7), json!({}), json!({"blockStateCalls": 7}), json!({"blockStateCalls": [7]})],
        "filter" => {
            vec![json!("all"), json!({"fromBlock": "newest"}), json!({"blockHash": "0x1"}), json!({"topics": 5})]
        }
        _ => Vec::new(),
    }
}

#[test]
fn every_method_counts_and_names_its_arguments() {
    with_rpc(|server| {
        for Described { name, params } in methods(server) {
            let all: Vec<Value> = params.iter().map(|(_, schema, _)| sound(schema)).collect();
            let mut more = all.clone();
            more.push(json!(null));
            let answer = call(server, &name, json!(more));
            assert_eq!(code(&answer), INVALID_PARAMS, "{name}: {answer}");
            assert!(message(&answer).contains(&format!("want at most {}", all.len())), "{name}: {answer}");
            for (at, (param, _, _)) in params.iter().enumerate().filter(|(_, (_, _, required))| *required) {
                let answer = call(server, &name, json!(all[..at]));
                assert_eq!(code(&answer), INVALID_PARAMS, "{name} without {param}: {answer}");
                let words = format!("missing value for required argument {at} ({param})");
                assert!(message(&answer).contains(&words), "{name}: {answer}");
                let mut without = all.clone();
                without[at] = Value::Null;
                let answer = call(server, &name, json!(without));
                assert!(message(&answer).contains(&words), "{name} with null at {at}: {answer}");
            }
        }
    });
}

#[test]
fn every_method_refuses_what_its_schema_does_not_allow() {
    with_rpc(|server| {
        let mut tried = 0;
        for Described { name, params } in methods(server) {
            for (at, (param, schema, _)) in params.iter().enumerate() {
                for wrong in unsound(schema) {
                    let mut given: Vec<Value> = params.iter().map(|(_, schema, _)| sound(schema)).collect();
                    given[at] = wrong.clone();
                    let answer = call(server, &name, json!(given));
                    assert_eq!(code(&answer), INVALID_PARAMS, "{name}({param} = {wrong}): {answer}");
                    assert!(message(&answer).contains(param), "{name}({param} = {wrong}): {answer}");
                    tried += 1;
                }
            }
        }
        assert!(tried > 120, "{tried}");
    });
}

#[test]
fn what_is_sound_is_answered_with_the_id_of_its_request() {
    with_rpc(|server| {
        for (id, method, result) in [
            (json!(7), "eth_chainId", json!("0x1")),
            (json!("a"), "net_version", json!("1")),
            (json!(null), "eth_blockNumber", json!("0x3")),
            (json!(-1), "eth_syncing", json!(false)),
            (json!(1.5), "eth_accounts", json!([])),
            (json!(0), "net_listening", json!(true)),
            (json!(0), "net_peerCount", json!("0x0")),
            (json!(0), "eth_maxPriorityFeePerGas", json!("0x0")),
        ] {
            let answer = asked(server, &json!({"jsonrpc": "2.0", "id": id, "method": method}));
            assert_eq!(answer, json!({"jsonrpc": "2.0", "id": id, "result": result}), "{method}");
        }
        // Keccak-256 of nothing and of "abc", as published.
        for (data, hash) in [
            ("0x", "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"),
            ("0x616263", "0x4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45"),
        ] {
            assert_eq!(call(server, "web3_sha3", json!([data]))["result"], hash);
        }
    });
}

#[test]
fn an_envelope_that_is_none_is_told_by_the_published_codes() {
    with_rpc(|server| {
        let one = |body: &str| {
            let (status, answer) = post(server, body.as_bytes());
            assert_eq!(status, 200, "{body}");
            serde_json::from_slice::<Value>(&answer).expect("JSON")
        };
        for (body, expected, id) in [
            ("", NOT_JSON, json!(null)),
            ("{", NOT_JSON, json!(null)),
            ("nonsense", NOT_JSON, json!(null)),
            ("[]", INVALID_REQUEST, json!(null)),
            ("5", INVALID_REQUEST, json!(null)),
            (r#"{"id":3,"method":"eth_chainId"}"#, INVALID_REQUEST, json!(3)),
            (r#"{"jsonrpc":"1.0","id":3,"method":"eth_chainId"}"#, INVALID_REQUEST, json!(3)),
            (r#"{"jsonrpc":"2.0","id":3}"#, INVALID_REQUEST, json!(3)),
            (r#"{"jsonrpc":"2.0","id":3,"method":5}"#, INVALID_REQUEST, json!(3)),
            (r#"{"jsonrpc":"2.0","id":[3],"method":"eth_chainId"}"#, INVALID_REQUEST, json!(null)),
            (r#"{"jsonrpc":"2.0","id":3,"method":"eth_chainId","params":{}}"#, INVALID_PARAMS, json!(3)),
            (r#"{"jsonrpc":"2.0","id":3,"method":"eth_steal"}"#, UNKNOWN_METHOD, json!(3)),
            (r#"{"jsonrpc":"2.0","id":3,"method":""}"#, UNKNOWN_METHOD, json!(3)),
            // Only connections that stay can be told something later.
            (r#"{"jsonrpc":"2.0","id":3,"method":"eth_subscribe","params":["newHeads"]}"#, UNKNOWN_METHOD, json!(3)),
            (r#"{"jsonrpc":"2.0","id":3,"method":"anvil_mine"}"#, UNKNOWN_METHOD, json!(3)),
        ] {
            let answer = one(body);
            assert_eq!((code(&answer), &answer["id"]), (expected, &id), "{body}: {answer}");
        }
        let long = "m".repeat(5_000);
        let answer = call(server, &long, json!([]));
        assert!(message(&answer).len() < 300, "what was asked is not sent back whole: {}", message(&answer).len());
    });
}

#[test]
fn a_batch_is_answered_in_order_and_notifications_are_not() {
    with_rpc(|server| {
        let request = |id: u64, method: &str| json!({"jsonrpc": "2.0", "id": id, "method": method});
        let batch = json!([
            request(2, "eth_chainId"),
            {"jsonrpc": "2.0", "method": "eth_chainId"},
            request(1, "eth_steal"),
            7,
            request(3, "eth_blockNumber"),
        ]);
        let answers = asked(server, &batch);
        let ids: Vec<&Value> = answers.as_array().expect("answers").iter().map(|answer| &answer["id"]).collect();
        assert_eq!(ids, [&json!(2), &json!(1), &json!(null), &json!(3)]);
        assert_eq!(code(&answers[1]), UNKNOWN_METHOD);
        assert_eq!(code(&answers[2]), INVALID_REQUEST);
        // Notifications alone have no answer at all.
        for body in [json!({"jsonrpc": "2.0", "method": "eth_chainId"}), json!([{"jsonrpc": "2.0", "method": "x"}])] {
            let (_, answer) = post(server, body.to_string().as_bytes());
            assert!(answer.is_empty(), "{body}: {}", String::from_utf8_lossy(&answer));
        }
        let many = Value::Array((0..1_001).map(|id| request(id, "eth_chainId")).collect());
        let answer = asked(server, &many);
        assert_eq!(code(&answer), LIMIT);
        assert!(message(&answer).contains("send at most 1000 at a time"), "{answer}");
        let Value::Array(mut allowed) = many else { unreachable!("it is a list") };
        allowed.pop();
        assert_eq!(asked(server, &Value::Array(allowed)).as_array().map(Vec::len), Some(1_000));
    });
}

#[test]
fn blocks_are_told_alike_by_number_by_tag_and_by_hash() {
    with_rpc(|server| {
        let by_number = call(server, "eth_getBlockByNumber", json!(["0x2", false]))["result"].clone();
        assert_eq!(by_number["number"], "0x2");
        let by_hash = call(server, "eth_getBlockByHash", json!([by_number["hash"], false]))["result"].clone();
        assert_eq!(by_hash, by_number);
        let above = call(server, "eth_getBlockByNumber", json!(["0x3"]))["result"].clone();
        assert_eq!(above["parentHash"], by_number["hash"]);
        for tag in ["latest", "safe", "finalized", "pending"] {
            assert_eq!(call(server, "eth_getBlockByNumber", json!([tag]))["result"], above, "{tag}");
        }
        for (method, params) in [
            ("eth_getBlockByNumber", json!(["0x4"])),
            ("eth_getBlockByHash", json!([sound("hash32")])),
            ("eth_getTransactionByHash", json!([sound("hash32")])),
            ("eth_getTransactionReceipt", json!([sound("hash32")])),
            ("eth_getTransactionByBlockNumberAndIndex", json!(["0x2", "0x0"])),
            ("eth_getBlockReceipts", json!(["0x9"])),
        ] {
            assert_eq!(call(server, method, params)["result"], Value::Null, "{method}");
        }
        // Native transactions are none of Ethereum's.
        assert_eq!(by_number["transactions"], json!([]));
        assert_eq!(call(server, "eth_getBlockTransactionCountByNumber", json!(["0x2"]))["result"], "0x0");
        assert_eq!(call(server, "eth_getBlockReceipts", json!(["0x2"]))["result"], json!([]));
    });
}

#[test]
fn balances_are_those_of_the_ledger_at_the_height_that_is_asked_for() {
    with_rpc(|server| {
        let balance = |address: &str, at: &str| {
            let answer = call(server, "eth_getBalance", json!([address, at]));
            let text = answer["result"].as_str().unwrap_or_else(|| panic!("{answer}")).trim_start_matches("0x");
            u128::from_str_radix(text, 16).expect("hexadecimal")
        };
        let (owner, other) = (OWNER.address().to_string(), PublicKey([2; 32]).address().to_string());
        // A unit of USD is a hundredth of one, and one has 10^18 wei.
        let unit = 10u128.pow(16);
        for height in 0..=3u128 {
            let at = format!("0x{height:x}");
            assert_eq!(balance(&owner, &at), (1_000_000 - 5 * height) * unit, "at {height}");
            assert_eq!(balance(&other, &at), 5 * height * unit, "at {height}");
        }
        assert_eq!(balance(&owner, "latest"), 999_985 * unit);
        let answer = call(server, "eth_getBalance", json!([owner, "0x9"]));
        assert_eq!(code(&answer), SERVER, "a height to come: {answer}");
        let count =
            |address: &str| call(server, "eth_getTransactionCount", json!([address, "latest"]))["result"].clone();
        assert_eq!(
            (count(&owner), count(&other)),
            (json!("0x1"), json!("0x0")),
            "no contract is created over the first"
        );
        assert_eq!(call(server, "eth_getCode", json!([owner, "latest"]))["result"], "0x");
        let slot = call(server, "eth_getStorageAt", json!([owner, "0x0", "latest"]));
        assert_eq!(slot["result"], format!("0x{}", "0".repeat(64)), "{slot}");
    });
}

#[test]
fn filters_are_polled_until_they_are_left() {
    with_rpc(|server| {
        let filter = call(server, "eth_newBlockFilter", json!([]))["result"].clone();
        assert_eq!(call(server, "eth_getFilterChanges", json!([filter]))["result"], json!([]), "nothing since");
        assert_eq!(call(server, "eth_uninstallFilter", json!([filter]))["result"], true);
        assert_eq!(call(server, "eth_uninstallFilter", json!([filter]))["result"], false, "it is gone");
        let answer = call(server, "eth_getFilterChanges", json!([filter]));
        assert_eq!(code(&answer), SERVER, "{answer}");
        assert!(message(&answer).contains("filter not found"), "{answer}");
        let logs = call(server, "eth_newFilter", json!([{"fromBlock": "0x0"}]))["result"].clone();
        assert_eq!(call(server, "eth_getFilterLogs", json!([logs]))["result"], json!([]));
        assert_eq!(
            call(server, "eth_getLogs", json!([{"fromBlock": "0x0", "toBlock": "latest"}]))["result"],
            json!([])
        );
        let inverted = call(server, "eth_getLogs", json!([{"fromBlock": "0x3", "toBlock": "0x1"}]));
        assert!(code(&inverted) != 0, "{inverted}");
    });
}

#[test]
fn a_raw_transaction_that_is_none_is_refused_with_what_it_lacks() {
    with_rpc(|server| {
        for (raw, expected) in [("0x", INVALID_PARAMS), ("0x02", INVALID_PARAMS), ("0xc0", INVALID_PARAMS)] {
            let answer = call(server, "eth_sendRawTransaction", json!([raw]));
            // The intake of this node has no contracts, whatever the bytes are.
            let is_refused = code(&answer) == expected || message(&answer).contains("no contracts");
            assert!(is_refused, "{raw}: {answer}");
        }
    });
}
