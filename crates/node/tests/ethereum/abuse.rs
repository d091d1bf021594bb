//! Ethereum's door withstands clients that ask for too much, or do not read the answers.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::door::*;
use ledger::contracts::EthereumRequest;
use serde_json::{Value, json};
use tungstenite::Message;
use tungstenite::stream::MaybeTlsStream;

/// Code that jumps to its own beginning until its gas is used up.
const LOOPS: [u8; 3] = [0x5b, 0x5f, 0x56];
/// The same with 32 KiB of memory, which each step of a trace would show.
const LOOPS_WITH_MEMORY: [u8; 10] = [0x60, 0x01, 0x61, 0x7f, 0xe0, 0x52, 0x5b, 0x60, 0x06, 0x56];

/// A client that asks for much over a WebSocket and reads nothing is disconnected after a while; others are answered
/// meanwhile.
#[test]
fn a_subscriber_that_does_not_read_is_cut() {
    const REQUESTS: usize = 40;
    let dir = tempfile::tempdir().expect("a directory");
    with_node(config(), &dir.path().join("data"), |server| {
        let mut socket = tungstenite::connect(format!("ws://{}/", server.ethereum)).expect("connects").0;
        let MaybeTlsStream::Plain(stream) = socket.get_ref() else { panic!("it is plain TCP") };
        let stream = stream.try_clone().expect("a handle");
        stream.set_write_timeout(Some(Duration::from_millis(100))).expect("set");
        socket.send(Message::text(request("eth_subscribe", json!(["newHeads"])).to_string())).expect("sent");
        // Each answer has about a MiB, together more than the system buffers for a connection.
        let batch = json!(vec![request("eth_getBlockByNumber", json!(["0x0", false])); 1_000]).to_string();
        let sent = (0..REQUESTS).take_while(|_| socket.send(Message::text(batch.clone())).is_ok()).count();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(8) {
            assert_eq!(ask(server, "eth_chainId", json!([])), "0x7");
            std::thread::sleep(Duration::from_millis(200));
        }
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
        let (mut answers, mut is_cut) = (0, false);
        while !is_cut {
            match socket.read() {
                Ok(Message::Text(text)) => answers += usize::from(text.len() > 100_000),
                Ok(Message::Close(_)) => is_cut = true,
                Ok(_) => {}
                Err(tungstenite::Error::Io(error)) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    panic!("the client neither receives anything nor is disconnected, after {answers} answers");
                }
                Err(_) => is_cut = true,
            }
        }
        assert!(answers < sent.min(REQUESTS), "{answers} of {sent} answers: nothing was limited");
    });
}

/// A connection that sends half a frame and then nothing delays nobody.
#[test]
fn half_a_message_holds_up_nobody() {
    let dir = tempfile::tempdir().expect("a directory");
    with_node(config(), &dir.path().join("data"), |server| {
        let silent: Vec<TcpStream> = (0..8)
            .map(|_| {
                let socket = tungstenite::connect(format!("ws://{}/", server.ethereum)).expect("connects").0;
                let MaybeTlsStream::Plain(stream) = socket.get_ref() else { panic!("it is plain TCP") };
                let mut stream = stream.try_clone().expect("a handle");
                // A masked text of 4 MiB, of which ten bytes arrive.
                stream.write_all(&[0x81, 0xff, 0, 0, 0, 0, 0, 0x40, 0, 0, 1, 2, 3, 4, b'{']).expect("sent");
                stream
            })
            .collect();
        for _ in 0..20 {
            assert_eq!(ask(server, "eth_chainId", json!([])), "0x7");
        }
        drop(silent);
    });
}

/// Traces are bounded in steps and bytes, whatever a transaction does; many traces of one body share its gas budget.
#[test]
fn traces_of_heavy_transactions_are_bounded() {
    let dir = tempfile::tempdir().expect("a directory");
    with_node(config(), &dir.path().join("data"), |server| {
        let heavy = EthereumRequest { data: LOOPS.to_vec(), gas_limit: 2_000_000, ..payment(0, None) };
        let halted = receipt(server, &send(server, &key(1).sign(&heavy)));
        assert_eq!(halted["status"], "0x0");
        let options = json!({"disableStack": true});
        let trace = ask(server, "debug_traceTransaction", json!([halted["transactionHash"], options]));
        assert_eq!(trace["structLogs"].as_array().map(Vec::len), Some(100_000), "of half a million");
        assert_eq!((&trace["gas"], &trace["failed"]), (&json!(2_000_000), &json!(true)));
        assert_eq!(trace["truncated"], true, "a trace says that it is not whole");
        let large = json!({"data": hex(&LOOPS_WITH_MEMORY), "gas": "0x1e8480"});
        let (code, message) = refused(server, "debug_traceCall", json!([large, "latest", {"enableMemory": true}]));
        assert!(code == -32_005 && message.contains("16 MiB"), "{code} {message}");
        // Each uses the maximum gas of a transaction.
        let call = json!([{"data": hex(&LOOPS), "gas": "0x1000000"}, "latest", {"limit": 1}]);
        let (_, answers) = post(server, &json!(vec![request("debug_traceCall", call); 20]).to_string());
        let mut codes = BTreeMap::new();
        for answer in answers.as_array().expect("a batch") {
            *codes.entry(answer["error"]["code"].as_i64().unwrap_or(0)).or_insert(0) += 1;
        }
        assert_eq!(codes, BTreeMap::from([(-32_005, 4), (0, 16)]));
    });
}

/// A search ends at the newest block, whatever range is asked for, and is rejected if it names too many alternatives.
#[test]
fn searches_for_logs_are_bounded() {
    let dir = tempfile::tempdir().expect("a directory");
    with_node(config(), &dir.path().join("data"), |server| {
        for to in ["latest", "0x2710", "0xffffffffffffffff"] {
            assert_eq!(ask(server, "eth_getLogs", json!([{"fromBlock": "0x0", "toBlock": to}])), json!([]));
        }
        let many: Vec<Value> = (0..60_000).map(|one| json!(format!("0x{one:040x}"))).collect();
        for method in ["eth_getLogs", "eth_newFilter"] {
            let (code, message) = refused(server, method, json!([{"fromBlock": "0x0", "address": many}]));
            assert!(code == -32_005, "{method}: {code} {message}");
        }
    });
}
