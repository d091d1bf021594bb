//! What a client makes of answers: the node's word, another server's, and none at all.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use client::wallet::{Fate, Numbering, Pending, Wallet};
use client::{ClientError, HistoryPage, NodeClient};
use primitives::{Address, AssetId, Body, ClientId, Digest, Operation, SecretKey};

/// A server that answers these statuses and bodies, one to each connection.
fn serve(answers: &[(u16, &'static str)]) -> NodeClient {
    let answers = answers.to_vec();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for (status, body) in answers {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut asked = [0; 4_096];
            assert!(stream.read(&mut asked).expect("a request") > 0);
            let length = body.len();
            let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
            stream.write_all(format!("{head}{body}").as_bytes()).expect("sent");
        }
    });
    NodeClient::at(format!("http://{address}"))
}

const ID: Digest = Digest([7; 32]);

#[test]
fn no_answer_is_told_apart_from_absence_and_from_a_foreign_server() {
    let nobody = NodeClient::at("http://127.0.0.1:9");
    let error = nobody.account(&Address([1; 20])).expect_err("nobody listens there");
    assert!(matches!(error, ClientError::NoAnswer { .. }) && error.leaves_doubt() && !error.is_absence(), "{error}");
    assert!(error.to_string().contains("http://127.0.0.1:9"), "{error}");

    let absent = serve(&[(404, r#"{"error":{"code":"not_found","message":"there is no such account"}}"#)]);
    assert_eq!(absent.account(&Address([1; 20])).expect("an answer"), None);

    let other = serve(&[(404, "<html>nginx</html>"), (200, r#"{"hello":1}"#), (503, "")]);
    for _ in 0..3 {
        let error = other.status().expect_err("no node");
        assert!(matches!(&error, ClientError::Foreign { .. }) && error.to_string().contains(other.url()), "{error}");
    }
}

#[test]
fn a_node_without_a_history_is_told_apart_from_one_that_knows_of_no_order() {
    let node = serve(&[
        (404, r#"{"error":{"code":"order_unknown","message":"none"}}"#),
        (404, r#"{"error":{"code":"no_history","message":"this node keeps none"}}"#),
        (200, r#"{"height":9,"known_from":1,"orders":[],"next":null}"#),
        (410, r#"{"error":{"code":"history_gone","message":"it begins at block 5"}}"#),
    ]);
    let account = Address([1; 20]);
    assert_eq!(node.order_fate(&account, 7).expect("an answer"), None);
    let error = node.order_fate_of_client(&account, &ClientId([1; 16])).expect_err("it does not know");
    assert_eq!(error.code(), Some("no_history"));
    let page = HistoryPage { limit: Some(2), ..HistoryPage::NEWEST };
    assert_eq!(node.history_orders(&account, &page).expect("an answer").known_from, 1);
    let old = HistoryPage { cursor: Some("3-1".into()), ..HistoryPage::NEWEST };
    assert_eq!(node.history_fills(&account, Some(3), &old).expect_err("gone").code(), Some("history_gone"));
}

#[test]
fn a_fate_is_what_the_node_says_and_never_guessed_from_silence() {
    let node = serve(&[
        (404, r#"{"error":{"code":"not_found","message":"unknown"}}"#),
        (404, r#"{"error":{"code":"refused","message":"overdraft: has 1, needs 2"}}"#),
        (200, r#"{"id":"0x07","status":"committed","height":5,"outcome":{"result":"applied"},"added_later":1}"#),
        (
            200,
            r#"{"id":"0x07","status":"committed","height":5,
                "outcome":{"result":"refused","code":"overdraft","message":"m"}}"#,
        ),
        (503, r#"{"error":{"code":"stopping","message":"the node is stopping"}}"#),
        (200, r#"{"id":"0x07","status":"parked","height":5,"outcome":{"result":"applied"}}"#),
    ]);
    let fate = || Fate::of(&node, &ID);
    assert_eq!(fate().expect("an answer"), Fate::Unknown(None));
    assert_eq!(fate().expect("an answer"), Fate::TurnedAway("overdraft: has 1, needs 2".into()));
    assert!(matches!(fate().expect("an answer"), Fate::Committed(body) if body.height == Some(5)));
    assert!(matches!(fate().expect("an answer"), Fate::Refused(_)));
    let error = fate().expect_err("it is stopping");
    assert!(error.leaves_doubt() && error.code() == Some("stopping"), "{error}");
    let error = fate().expect_err("a status of another version");
    assert!(matches!(error, ClientError::Foreign { .. }) && error.to_string().contains("parked"), "{error}");
    assert!(Fate::of(&NodeClient::at("http://127.0.0.1:9"), &ID).is_err());
}

#[test]
fn a_follower_says_for_certain_that_nothing_was_sent() {
    let node = serve(&[(503, r#"{"error":{"code":"follows","message":"submit to a validator"}}"#)]);
    let error = node.post::<serde_json::Value>("/v1/transactions", b"x").expect_err("refused");
    assert!(!error.leaves_doubt() && !error.is_absence(), "{error}");
}

/// While another transaction with the number waits, either may take effect: nothing else may be signed.
#[test]
fn a_number_that_another_transaction_waits_with_is_not_given_up() {
    const CONTESTED: (u16, &str) =
        (409, r#"{"error":{"code":"sequence_conflict","message":"another transaction has this number"}}"#);
    const USED: (u16, &str) = (409, r#"{"error":{"code":"sequence_used","message":"this number is used"}}"#);
    let folder = tempfile::TempDir::new().expect("a folder");
    let key_file = folder.path().join("key.json");
    let wallet = |answers, seconds| Wallet {
        node: serve(answers),
        key_file: key_file.clone(),
        numbering: Numbering::default(),
        patience: Duration::from_secs(seconds),
    };
    let operation = Operation::Pay { to: Address([2; 20]), asset: AssetId(0), amount: 1 };
    let key = SecretKey::from_seed([1; 32]);
    let body = Body { chain: 1, account: key.public().address(), sequence: 1, until: 9, operation };
    let transaction = body.sign(&ID, &key);
    let pending = Pending::of(&key_file);
    let kept = || pending.all().expect("readable").len();
    pending.keep(&transaction).expect("kept");

    let fate = wallet(&[CONTESTED], 0).deliver(&transaction, &mut |_| ()).expect("no refusal");
    assert!(matches!(fate, Fate::Unknown(Some(_))) && kept() == 1, "{fate:?}");
    // Once the number is used by the other one, this one never counts: it may be signed under another number.
    let refused = wallet(&[CONTESTED, CONTESTED, USED], 600).deliver(&transaction, &mut |_| ());
    assert_eq!((refused.expect_err("decided").code(), kept()), (Some("sequence_used"), 0));
}

/// Another wallet's transaction of the same number, which ends later, displaces what the node had taken.
#[test]
fn a_transaction_that_was_taken_and_displaced_is_signed_anew() {
    const TAKEN: (u16, &str) = (202, r#"{"id":"00","status":"pending"}"#);
    const LIMITS: (u16, &str) = (503, r#"{"error":{"code":"starting","message":"later"}}"#);
    const GONE: (u16, &str) = (404, r#"{"error":{"code":"not_found","message":"another one has taken its place"}}"#);
    const REFUSED: (u16, &str) = (404, r#"{"error":{"code":"refused","message":"its number is used"}}"#);
    const USED: (u16, &str) = (422, r#"{"error":{"code":"sequence_used","message":"this number is used"}}"#);
    let folder = tempfile::TempDir::new().expect("a folder");
    let key_file = folder.path().join("key.json");
    let key = SecretKey::from_seed([1; 32]);
    let operation = Operation::Pay { to: Address([2; 20]), asset: AssetId(0), amount: 1 };
    let body = Body { chain: 1, account: key.public().address(), sequence: 1, until: 9, operation };
    let transaction = body.sign(&ID, &key);
    let pending = Pending::of(&key_file);
    for asked in [GONE, REFUSED] {
        pending.keep(&transaction).expect("kept");
        let wallet = Wallet {
            node: serve(Vec::leak(vec![TAKEN, LIMITS, asked, USED])),
            key_file: key_file.clone(),
            numbering: Numbering::default(),
            patience: Duration::from_secs(600),
        };
        let refused = wallet.deliver(&transaction, &mut |_| ()).expect_err("it can never count");
        assert_eq!((refused.code(), pending.all().expect("readable").len()), (Some("sequence_used"), 0));
    }
}
