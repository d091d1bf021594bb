//! The HTTP interface's data about contracts, as the page shows it.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::door::*;
use ledger::contracts::{EthereumRequest, contract_address};
use serde_json::{Value, json};

/// The status and body of a call.
fn get(server: Server, path: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(server.http).expect("listens");
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

fn found(server: Server, path: &str) -> Value {
    let (status, body) = get(server, path);
    assert_eq!(status, 200, "{path}: {body}");
    body
}

#[test]
fn contracts_tokens_and_executions_are_told() {
    let dir = tempfile::tempdir().expect("a directory");
    with_node(config(), &dir.path().join("data"), |server| {
        let tokens: Vec<Value> = (0..2).map(|at| found(server, "/v1/assets")["assets"][at]["token"].clone()).collect();
        let token = |number: u8| format!("0x57616c7261730000000000000000000000000{number:03}");
        assert_eq!(tokens, [json!(token(0)), json!(token(1))]);
        // A key's account, before and after its first transaction.
        let (owner, counter) = (key(1).address(), contract_address(&key(1).address(), 0));
        let path = format!("/v1/accounts/{owner}");
        assert_eq!(found(server, &path)["ethereum"], json!({"nonce": "0", "wei": "0", "is_contract": false}));
        let created = receipt(server, &send(server, &key(1).sign(&creation(0))));
        let hash = created["transactionHash"].as_str().expect("a hash");
        let account = found(server, &path);
        assert_eq!(account["ethereum"]["nonce"], "1");
        let wei = number(&ask(server, "eth_getBalance", json!([owner.to_string(), "latest"])));
        assert_eq!(account["ethereum"]["wei"], (wei % 1_000_000_000_000).to_string());
        // The contract.
        let contract = found(server, &format!("/v1/accounts/{counter}"))["ethereum"].clone();
        let code = ask(server, "eth_getProof", json!([counter.to_string(), [], "latest"]))["codeHash"].clone();
        assert_eq!(contract["code"], json!({"hash": code, "bytes": COUNTER.len()}), "{contract}");
        assert_eq!((&contract["is_contract"], &contract["nonce"]), (&json!(true), &json!("1")));
        // The transaction itself, while the block is kept.
        let told = found(server, &format!("/v1/ethereum/{hash}"));
        let asked = &told["transaction"];
        assert_eq!((&asked["sender"], asked.get("to")), (&json!(owner.to_string()), None), "{told}");
        assert_eq!((&asked["type"], &asked["input"]), (&json!(2), &json!(hex(&creation(0).data))));
        // The revert data is returned, shortened if it is long; none of it was stored.
        let fails = |nonce, length| EthereumRequest {
            data: vec![0xab; length],
            value: 0,
            gas_limit: 1_000_000,
            ..payment(nonce, Some(counter))
        };
        for (nonce, length) in [(1, 5), (2, 5_000)] {
            let failed = receipt(server, &send(server, &key(1).sign(&fails(nonce, length))));
            let hash = failed["transactionHash"].as_str().expect("a hash");
            let output = found(server, &format!("/v1/ethereum/{hash}/output"));
            let expected = json!({
                "hash": hash, "result": "reverted", "output": hex(&vec![0xab; length.min(4_096)]),
                "output_bytes": length
            });
            assert_eq!(output, expected);
        }
        let short = EthereumRequest { gas_limit: 30_000, ..payment(3, Some(counter)) };
        let halted = receipt(server, &send(server, &key(1).sign(&short)));
        let path = format!("/v1/ethereum/{}/output", halted["transactionHash"].as_str().expect("a hash"));
        let output = found(server, &path);
        assert_eq!((&output["result"], &output["halt"]), (&json!("halted"), &json!("out of gas")), "{output}");
        let (status, unknown) = get(server, &format!("/v1/ethereum/0x{:064x}/output", 1));
        assert_eq!((status, &unknown["error"]["code"]), (404, &json!("not_found")));
        // The block contains them.
        let height = number(&created["blockNumber"]);
        let block = found(server, &format!("/v1/blocks/{height}/ethereum"));
        assert_eq!((&block["executed"], &block["skipped"], &block["more"]), (&json!(1), &json!(0), &json!(false)));
        let one = &block["transactions"][0];
        assert_eq!((&one["hash"], &one["contract"]), (&json!(hash), &json!(counter.to_string())));
        assert_eq!((&one["selector"], &one["gas_used"]), (&json!(hex(&creation(0).data[..4])), &block["gas_used"]));
        assert_eq!(found(server, &format!("/v1/blocks/{height}/ethereum?offset=1"))["transactions"], json!([]));
        assert_eq!(found(server, &format!("/v1/blocks/{height}"))["ethereum"], 1);
        assert_eq!(get(server, "/v1/blocks/99999/ethereum").0, 404);
    });
}
