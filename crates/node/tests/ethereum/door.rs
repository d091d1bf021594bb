//! A node with contracts and both of its doors, for requests by hand.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use ledger::contracts::{EthereumKey, EthereumRequest};
use ledger::{Genesis, Listing};
use node::{Config, Node};
use primitives::{Address, AssetId, Fraction, SecretKey, to_hex};
use serde_json::{Value, json};

pub const GWEI: u128 = 1_000_000_000;
pub const ETHER: u128 = GWEI * GWEI;
/// Adds one to slot 0 and logs the sum under topic 7; with input it reverts with the input, and all changes are
/// undone.
pub const COUNTER: &[u8] = &[
    0x36, 0x60, 0x15, 0x57, // with input, on to 0x15
    0x5f, 0x54, 0x60, 1, 0x01, 0x80, 0x5f, 0x55, // slot 0 is one more
    0x5f, 0x52, 0x60, 7, 0x60, 32, 0x5f, 0xa1, 0x00, // and is logged
    0x5b, 0x36, 0x5f, 0x5f, 0x37, 0x36, 0x5f, 0xfd, // reverts with the input
];

pub fn key(person: u8) -> EthereumKey {
    EthereumKey::from_seed([person; 32]).expect("a key")
}

pub fn holder() -> SecretKey {
    SecretKey::from_seed([4; 32])
}

pub fn genesis() -> Genesis {
    let owner = holder().public().address();
    let assets = vec![Listing::new("USD", 6, owner), Listing::new("EUR", 6, owner)];
    let mut balances = vec![(owner, AssetId(0), 1_000_000_000)];
    balances.extend((1..5).map(|person| (key(person).address(), AssetId(0), 1_000_000_000)));
    let genesis = Genesis { chain: 7, fee: 1, mu: Fraction::power_of_two(10), assets, balances, ..Genesis::default() };
    Genesis { limits: genesis.limits.with_contracts(1), ..genesis }
}

pub fn config() -> Config {
    let mut config = Config::default();
    config.http.listen.set_port(0);
    config.ethereum.listen.set_port(0);
    config.blocks.interval_ms = 10;
    config
}

/// Both doors of a node.
#[derive(Clone, Copy)]
pub struct Server {
    pub http: SocketAddr,
    pub ethereum: SocketAddr,
}

pub fn with_node<T: Send + 'static>(config: Config, data: &Path, test: impl FnOnce(Server) -> T + Send + 'static) -> T {
    with_node_of(&genesis(), config, data, test)
}

pub fn with_node_of<T: Send + 'static>(
    genesis: &Genesis,
    config: Config,
    data: &Path,
    test: impl FnOnce(Server) -> T + Send + 'static,
) -> T {
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    runtime.block_on(async {
        let node = Node::start(config, genesis, data, None).await.expect("starts");
        let server = Server { http: node.address(), ethereum: node.ethereum_address().expect("there are contracts") };
        let result = tokio::task::spawn_blocking(move || test(server)).await.expect("the test passes");
        node.stop().await;
        result
    })
}

pub fn post_to(address: SocketAddr, path: &str, head: &str, body: &[u8]) -> (u16, Vec<u8>) {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{head}Content-Length: {length}\r\n\r\n"
    );
    let mut stream = TcpStream::connect(address).expect("listens");
    stream.write_all(&[head.as_bytes(), body].concat()).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("answered");
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    let status = String::from_utf8_lossy(&answer).split(' ').nth(1).and_then(|code| code.parse().ok());
    (status.expect("a status"), answer[end + 4..].to_vec())
}

pub const JSON: &str = "Content-Type: application/json\r\n";

pub fn post(server: Server, body: &str) -> (u16, Value) {
    let (status, body) = post_to(server.ethereum, "/", JSON, body.as_bytes());
    (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

pub fn request(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// The result of a call.
pub fn ask(server: Server, method: &str, params: Value) -> Value {
    let (status, answer) = post(server, &request(method, params).to_string());
    assert!(status == 200 && answer.get("error").is_none(), "{method}: {answer}");
    answer["result"].clone()
}

/// The error of a call.
pub fn refused(server: Server, method: &str, params: Value) -> (i64, String) {
    let (status, answer) = post(server, &request(method, params).to_string());
    assert_eq!(status, 200, "{answer}");
    let error = &answer["error"];
    (error["code"].as_i64().expect("a code"), error["message"].as_str().expect("a message").to_string())
}

pub fn hex(bytes: &[u8]) -> String {
    format!("0x{}", to_hex(bytes))
}

pub fn number(value: &Value) -> u128 {
    let digits = value.as_str().and_then(|text| text.strip_prefix("0x")).expect("a number");
    u128::from_str_radix(digits, 16).expect("a number")
}

pub fn payment(nonce: u64, to: Option<Address>) -> EthereumRequest {
    EthereumRequest { chain: 7, nonce, to, gas_limit: 200_000, max_fee: 20 * GWEI, max_tip: GWEI, ..Default::default() }
}

/// Creates the counter.
pub fn creation(nonce: u64) -> EthereumRequest {
    let data = [&[0x60, COUNTER.len() as u8, 0x80, 0x60, 9, 0x5f, 0x39, 0x5f, 0xf3], COUNTER].concat();
    EthereumRequest { data, ..payment(nonce, None) }
}

pub fn send(server: Server, bytes: &[u8]) -> Value {
    ask(server, "eth_sendRawTransaction", json!([hex(bytes)]))
}

/// Waits for the receipt of a transaction.
pub fn receipt(server: Server, hash: &Value) -> Value {
    loop {
        let found = ask(server, "eth_getTransactionReceipt", json!([hash]));
        if !found.is_null() {
            return found;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
