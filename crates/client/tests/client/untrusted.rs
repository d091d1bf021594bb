//! A light client tells a node that does not answer from one that has no certificate yet, and from one that lies.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

use client::light::{Beginning, LightClient, LightError, LightRemedy};
use client::{ClientError, NodeClient};
use primitives::{Address, Digest, SecretKey};
use proofs::{AccountProof, Certificate, Chain, Lineage, RootPart, RootParts, Schedule, Statement, outcome_root};

const NETWORK: Digest = Digest([9; 32]);
const ALICE: Address = Address([7; 20]);
const LAG: u64 = 2;

fn founders() -> Chain {
    let keys = vec![SecretKey::from_seed([1; 32]).public()];
    Chain { genesis: NETWORK, epoch: 0, heights: proofs::ALL_HEIGHTS, keys }
}

fn light(server: &str) -> LightClient {
    let lineage = Lineage { schedule: Schedule::default(), lag: LAG, begins: 0, chain: founders() };
    LightClient::trusting(NodeClient::at(server), lineage, Beginning::Genesis, 0)
}

/// A node that gives these answers, one to each request, and then is gone. Returns the paths that were asked for.
fn node(answers: Vec<(u16, String)>) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let serve = move || {
        let answer = |(status, body): (u16, String)| {
            let (mut stream, _) = listener.accept().expect("a client");
            let path = asked(&mut stream);
            let head = format!("HTTP/1.1 {status} x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
            stream.write_all((head + &body).as_bytes()).expect("written");
            path
        };
        answers.into_iter().map(answer).collect()
    };
    (url, std::thread::spawn(serve))
}

/// The path of a request.
fn asked(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a request");
        bytes.push(byte[0]);
    }
    let text = String::from_utf8(bytes).expect("text");
    text.split(' ').nth(1).expect("a path").to_string()
}

fn waiting() -> (u16, String) {
    (404, r#"{"error":{"code":"not_certified","message":"not yet"}}"#.into())
}

fn hexadecimal(value: &impl borsh::BorshSerialize) -> String {
    primitives::to_hex(&borsh::to_vec(value).expect("encodes"))
}

/// A proof of an account with a certificate that this key signed.
fn answer(secret: &SecretKey) -> (u16, String) {
    let parts = RootParts::new(vec![RootPart { tag: RootPart::BALANCES, root: Digest([3; 32]) }]);
    let (state, receipts) = (parts.root(), Digest([2; 32]));
    let root = outcome_root(&state, &receipts);
    let statement = Statement { height: 5 + LAG, superblock: Digest([1; 32]), root };
    let signature = secret.sign(&statement.signed(&founders()).0);
    let certificate = Certificate { epoch: 0, statement, signatures: vec![(0, signature)] };
    let proof = AccountProof { parts, account: None, path: Vec::new() };
    let body = format!(
        r#"{{"height":5,"root":"{state}","proof":"{}","certificate":{{"height":5,"state_root":"{state}",
        "receipts_root":"{receipts}","signers":[0],"certificate":"{}"}}}}"#,
        hexadecimal(&proof),
        hexadecimal(&certificate)
    );
    (200, body)
}

#[test]
fn silence_is_not_a_missing_certificate() {
    // Nobody listens at the port of a listener that is gone.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    drop(listener);
    let error = light(&url).account(&ALICE).expect_err("nobody answers");
    assert!(matches!(&error, LightError::Node(ClientError::NoAnswer { .. })), "{error:?}");
    assert!(error.is_silence() && error.to_string().contains(&url), "{error}");

    // A node that says that the block is not certified yet is asked again; when it is gone then, that is said.
    let (url, node) = node(vec![waiting(), waiting()]);
    let error = light(&url).account(&ALICE).expect_err("it is gone");
    assert!(error.is_silence(), "{error:?}");
    assert_eq!(node.join().expect("served").len(), 2);
}

#[test]
fn what_the_trusted_validators_have_not_signed_is_named() {
    let (url, served) = node(vec![waiting(), answer(&SecretKey::from_seed([8; 32]))]);
    let error = light(&url).account(&ALICE).expect_err("another key signed");
    assert!(matches!(&error, LightError::Unsigned { .. }) && !error.is_silence(), "{error:?}");
    assert_eq!(error.remedy(), LightRemedy::AnotherNode);
    let path = format!("/v1/accounts/{ALICE}/proof?certified=true");
    assert_eq!(served.join().expect("served"), [path.clone(), path]);

    // The right key signed; the next question is about the block's time, and the node is gone.
    let (url, served) = node(vec![answer(&SecretKey::from_seed([1; 32]))]);
    let error = light(&url).account(&ALICE).expect_err("no time of the block");
    assert!(error.is_silence(), "{error:?}");
    served.join().expect("served");
}
