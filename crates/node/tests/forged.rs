//! Forged transactions at a node's doors: they note nothing in the name of an account, and cost whoever sends them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use ledger::{Genesis, Ledger, Listing};
use node::{Config, Node};
use primitives::{
    Address, AssetId, Body, ClientId, Fraction, Height, Life, Operation, Price, SecretKey, Sequence, Signature,
    Transaction,
};
use serde_json::{Value, json};

const HONEST: &str = "203.0.113.7";
const FORGER: &str = "203.0.113.8";

fn owner() -> SecretKey {
    SecretKey::from_seed([1; 32])
}

fn account() -> Address {
    owner().public().address()
}

fn genesis() -> Genesis {
    let (epsilon, mu) = (Fraction::power_of_two(15), Fraction::power_of_two(10));
    let assets = vec![Listing::new("USD", 2, account()), Listing::new("EUR", 2, account())];
    let balances = vec![(account(), AssetId(0), 1_000_000), (account(), AssetId(1), 1_000_000)];
    Genesis { chain: 7, fee: 1, epsilon, mu, assets, balances, ..Genesis::default() }
}

/// An order with a client id.
fn order(sequence: Sequence, until: Height, client: u8) -> Body {
    let (sell, buy, limit) = (AssetId(0), AssetId(1), Price::ONE);
    let client = ClientId([client; 16]);
    let operation = Operation::CreateOffer { sell, buy, amount: 20_000, limit, life: Life::Rests, client };
    Body { chain: 7, account: account(), sequence, until, operation }
}

fn signed(body: Body) -> Transaction {
    body.sign(&Ledger::new(&genesis()).expect("sound").network(), &owner())
}

/// What anybody can make who knows an address and a key.
fn forged(body: Body) -> Transaction {
    Transaction::by_key(body, owner().public(), Signature([7; 64]))
}

/// Runs a test against a node behind a proxy that names its clients. It makes no block while the test runs.
fn with_node(test: impl FnOnce(SocketAddr) + Send + 'static) {
    let mut config = Config::default();
    config.http.listen.set_port(0);
    config.ethereum.listen.set_port(0);
    config.http.trusted_proxies = vec!["127.0.0.1".into()];
    config.blocks.interval_ms = 3_600_000;
    let dir = tempfile::tempdir().expect("a directory");
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    runtime.block_on(async {
        let node = Node::start(config, &genesis(), &dir.path().join("data"), None).await.expect("starts");
        let address = node.address();
        tokio::task::spawn_blocking(move || test(address)).await.expect("the test passes");
        node.stop().await;
    });
}

fn call(server: SocketAddr, client: &str, method: &str, path: &str, body: &[u8]) -> (u16, Value) {
    let mut stream = TcpStream::connect(server).expect("listens");
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Forwarded-For: {client}\r\n\
         Content-Type: application/octet-stream\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body].concat()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    (status, serde_json::from_str(body).unwrap_or_default())
}

fn send(server: SocketAddr, client: &str, transaction: &Transaction) -> (u16, Value) {
    call(server, client, "POST", "/v1/transactions", &borsh(transaction))
}

fn send_all(server: SocketAddr, client: &str, transactions: &Vec<Transaction>) -> (u16, Vec<Value>) {
    let (status, mut body) = call(server, client, "POST", "/v1/transactions/batch", &borsh(transactions));
    let results = body["results"].take();
    (status, results.as_array().cloned().unwrap_or_default())
}

fn borsh(of: &impl borsh::BorshSerialize) -> Vec<u8> {
    borsh::to_vec(of).expect("memory")
}

fn order_of_client(server: SocketAddr, client: u8) -> Value {
    let path = format!("/v1/accounts/{}/clients/{}", account(), ClientId([client; 16]));
    call(server, HONEST, "GET", &path, b"").1
}

/// Two forged transactions in one batch once erased a victim's pending order from the door.
#[test]
fn forged_copies_erase_no_pending_order_and_free_no_client_id() {
    with_node(|server| {
        let own = signed(order(1, 500, 7));
        assert_eq!(send(server, HONEST, &own).0, 202);
        let (status, results) = send_all(server, FORGER, &vec![forged(order(1, 600, 8)), forged(order(1, 700, 9))]);
        assert_eq!(status, 200);
        assert!(results.iter().all(|result| result["error"]["code"] == "bad_signature"), "{results:?}");
        let found = order_of_client(server, 7);
        assert_eq!((&found["status"], &found["id"]), (&json!("pending"), &json!(own.id().to_string())), "{found}");
        let (status, second) = send(server, HONEST, &signed(order(2, 500, 7)));
        assert_eq!((status, &second["error"]["code"]), (409, &json!("client_id_used")), "{second}");
        // Nothing that was forged is shown, and its client ids are free.
        assert_eq!(order_of_client(server, 8)["error"]["code"], "order_unknown");
        assert_eq!(send(server, HONEST, &signed(order(2, 500, 8))).0, 202);
    });
}

/// A forged order once blocked its client id for ever.
#[test]
fn forged_orders_without_an_end_block_no_client_id() {
    with_node(|server| {
        let endless = || forged(order(1, Height::MAX, 7));
        let (status, results) = send_all(server, FORGER, &vec![endless(), endless()]);
        assert_eq!((status, results.len()), (200, 2));
        assert_eq!(order_of_client(server, 7)["error"]["code"], "order_unknown", "nothing is shown either");
        // A signed one without an end is refused, and blocks nothing.
        assert_eq!(send(server, HONEST, &signed(order(1, Height::MAX, 7))).0, 422);
        assert_eq!(send(server, HONEST, &signed(order(2, 500, 7))).0, 202);
    });
}

/// The doors use the turns: an address that forges is told when to come back, and others are not.
#[test]
fn an_address_that_forges_is_told_when_to_come_back_and_others_are_served() {
    with_node(|server| {
        let flood: Vec<Transaction> = (1..=2_500).map(|sequence| forged(order(sequence, 500, 0))).collect();
        let (status, results) = send_all(server, FORGER, &flood);
        let count = |code: &str| results.iter().filter(|result| result["error"]["code"] == code).count();
        let (judged, busy) = (count("bad_signature"), count("too_much_was_false"));
        assert!(status == 200 && judged + busy == 2_500 && busy > 0, "{status}: {judged} and {busy}");
        let (status, answer) = send(server, HONEST, &signed(order(1, 500, 7)));
        assert_eq!(status, 202, "{answer}");
        // Ten thousand more are looked at no faster than the budget of their address refills.
        let (_, results) = send_all(server, FORGER, &flood);
        assert!(results.iter().filter(|result| result["error"]["code"] == "bad_signature").count() < 2_500);
    });
}
