//! What a submitter is told: pending, committed or refused; at once, or when the block is durable; and nothing while
//! the operator drains the node.

use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use crate::fake::Fake;
use crate::open::{call, loopback, send, with_node};
use doors::{Answer, Awaited, Http};
use ledger::{Outcome, Refusal};
use primitives::{AssetId, Body, Operation, PublicKey, Sequence, Signature, Transaction};
use readers::FoundTransaction;
use serde_json::Value;
use tokio::sync::oneshot;

const OWNER: PublicKey = PublicKey([1; 32]);
const BYTES: &str = "application/octet-stream";
const TOKEN: &str = "the operator's token, long enough to count";

fn pay(sequence: Sequence) -> Transaction {
    let operation = Operation::Pay { to: PublicKey([2; 32]).address(), asset: AssetId(0), amount: 5 };
    let body = Body { chain: 1, account: OWNER.address(), sequence, until: 50_000, operation };
    Transaction::by_key(body, OWNER, Signature([0; 64]))
}

fn applied(height: u64) -> FoundTransaction {
    FoundTransaction { height, outcome: Outcome::Applied }
}

fn submit(server: SocketAddr, path: &str, body: &[u8]) -> (u16, Value) {
    send(server, "POST", path, BYTES, body)
}

#[test]
fn a_pending_transaction_is_accepted_and_a_committed_one_is_found() {
    let node = Arc::new(Fake::new());
    let (one, other) = (pay(1), pay(2));
    node.answers([Answer::Pending(one.id(), None), Answer::Committed(other.id(), applied(7))]);
    with_node(loopback(), node, move |server| {
        let (status, answer) = submit(server, "/v1/transactions", &replica::encode(&one));
        assert_eq!((status, &answer["status"]), (202, &"pending".into()));
        assert_eq!((&answer["id"], &answer["height"]), (&one.id().to_string().into(), &Value::Null));
        let (status, answer) = submit(server, "/v1/transactions", &replica::encode(&other));
        assert_eq!((status, &answer["status"], &answer["height"]), (200, &"committed".into(), &7.into()));
        assert_eq!(answer["outcome"]["result"], "applied", "{answer}");
    });
}

#[test]
fn who_waits_is_told_when_the_block_is_durable() {
    let node = Arc::new(Fake::new());
    let (one, lost) = (pay(1), pay(2));
    let (durable, told) = oneshot::channel();
    let (gone, never) = oneshot::channel();
    node.answers([Answer::Pending(one.id(), Some(told)), Answer::Pending(lost.id(), Some(never))]);
    with_node(loopback(), node, move |server| {
        assert!(durable.send(Awaited::Committed(applied(3))).is_ok(), "somebody will wait");
        let (status, answer) = submit(server, "/v1/transactions?wait=committed", &replica::encode(&one));
        assert_eq!((status, &answer["status"], &answer["height"]), (200, &"committed".into(), &3.into()));
        // The node stops before the block: neither an answer that it counts, nor one that it does not.
        drop(gone);
        let (status, answer) = submit(server, "/v1/transactions?wait=committed", &replica::encode(&lost));
        assert_eq!((status, &answer["error"]["code"]), (503, &"not_ready".into()), "{answer}");
    });
}

#[test]
fn who_waits_for_a_transaction_that_another_one_displaces_is_told_at_once() {
    let node = Arc::new(Fake::new());
    let (one, other) = (pay(1), pay(2));
    let (displaced, told) = oneshot::channel();
    node.answers([Answer::Pending(one.id(), Some(told))]);
    with_node(loopback(), node, move |server| {
        assert!(displaced.send(Awaited::Displaced(other.id())).is_ok(), "somebody will wait");
        let (status, answer) = submit(server, "/v1/transactions?wait=committed", &replica::encode(&one));
        let by = serde_json::json!(other.id().to_string());
        assert_eq!((status, &answer["status"], &answer["displaced_by"]), (202, &"pending".into(), &by), "{answer}");
    });
}

#[test]
fn each_transaction_of_a_batch_has_its_own_answer_in_order() {
    let node = Arc::new(Fake::new());
    let all: Vec<Transaction> = (1..=4).map(pay).collect();
    node.answers([
        Answer::Pending(all[0].id(), None),
        Answer::Refused(Refusal::OVERDRAFT),
        Answer::Committed(all[2].id(), applied(9)),
    ]);
    with_node(loopback(), node, move |server| {
        let (status, answer) = submit(server, "/v1/transactions/batch", &replica::encode(&all));
        assert_eq!(status, 200, "{answer}");
        let results = answer["results"].as_array().expect("results");
        let told: Vec<&str> = results
            .iter()
            .map(|one| one["status"].as_str().or(one["error"]["code"].as_str()).unwrap_or_else(|| panic!("{one}")))
            .collect();
        assert_eq!(told, ["pending", "overdraft", "committed", "mempool_full"]);
        assert_eq!(results[2]["id"], all[2].id().to_string());
        let (status, answer) = submit(server, "/v1/transactions/batch", &replica::encode(&Vec::<Transaction>::new()));
        assert_eq!((status, answer["results"].as_array().map(Vec::len)), (200, Some(0)));
    });
}

#[test]
fn an_answer_to_try_again_says_when() {
    with_node(loopback(), Arc::new(Fake::new()), |server| {
        let body = replica::encode(&pay(1));
        let mut stream = std::net::TcpStream::connect(server).expect("listens");
        let length = body.len();
        write!(stream, "POST /v1/transactions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n").expect("sent");
        write!(stream, "Content-Type: {BYTES}\r\nContent-Length: {length}\r\n\r\n").expect("sent");
        stream.write_all(&body).expect("sent");
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut stream, &mut answer).expect("answered");
        let head = answer.split("\r\n\r\n").next().expect("a head").to_lowercase();
        assert!(head.starts_with("http/1.1 429") && head.contains("retry-after: 1"), "{head}");
    });
}

fn with_token(folder: &Path) -> Http {
    let path = folder.join("operator");
    std::fs::write(&path, TOKEN).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("set");
    Http { operator_token_file: Some(path), ..loopback() }
}

fn operate(server: SocketAddr, method: &str, path: &str) -> (u16, Value) {
    let bearer = format!("Bearer {TOKEN}");
    let (status, answer) = call(server, method, path, &[("Authorization", &bearer), ("Content-Length", "0")]);
    let body = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
    (status, serde_json::from_str(body).unwrap_or_default())
}

#[test]
fn a_drained_node_reads_and_takes_nothing_until_it_resumes() {
    let folder = tempfile::tempdir().expect("a folder");
    let node = Arc::new(Fake::new());
    node.commit(&[pay(1)]);
    let one = pay(2);
    node.answers([Answer::Pending(one.id(), None)]);
    with_node(with_token(folder.path()), node, move |server| {
        let (status, doors) = operate(server, "GET", "/v1/operator/doors");
        assert_eq!((status, &doors["draining"], &doors["tls"]), (200, &false.into(), &false.into()), "{doors}");
        assert_eq!(operate(server, "POST", "/v1/operator/drain").1["draining"], true);
        for path in ["/v1/transactions", "/v1/ethereum"] {
            let (status, answer) = submit(server, path, &replica::encode(&one));
            assert_eq!((status, &answer["error"]["code"]), (503, &"draining".into()), "{path}: {answer}");
            assert!(answer["error"]["message"].as_str().is_some_and(|told| told.contains("submit to another node")));
        }
        assert_eq!(call(server, "GET", "/v1/blocks/1", &[]).0, 200, "it still reads");
        assert_eq!(call(server, "GET", "/healthz", &[]).0, 200, "it lives");
        assert_eq!(call(server, "GET", "/readyz", &[]).0, 503, "and takes nothing");
        assert_eq!(operate(server, "POST", "/v1/operator/drain").1["draining"], true, "twice is once");
        assert_eq!(operate(server, "POST", "/v1/operator/resume").1["draining"], false);
        assert_eq!(call(server, "GET", "/readyz", &[]).0, 200);
        assert_eq!(submit(server, "/v1/transactions", &replica::encode(&one)).0, 202);
    });
}

#[test]
fn an_ethereum_transaction_at_a_node_without_contracts_is_told_so() {
    with_node(loopback(), Arc::new(Fake::new()), |server| {
        let (status, answer) = submit(server, "/v1/ethereum", &[0x02, 0xc0]);
        assert_eq!(status, 422, "{answer}");
        assert!(answer["error"]["message"].as_str().is_some_and(|told| told.contains("contracts")), "{answer}");
        let batch = replica::encode(&vec![vec![0x02u8, 0xc0], vec![0x01]]);
        let (status, answer) = submit(server, "/v1/ethereum/batch", &batch);
        assert_eq!((status, answer["results"].as_array().map(Vec::len)), (200, Some(2)), "{answer}");
        let codes: Vec<&Value> =
            answer["results"].as_array().expect("results").iter().map(|one| &one["error"]["code"]).collect();
        assert_eq!(codes[0], codes[1]);
    });
}
