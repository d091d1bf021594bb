//! What a call cannot take is refused with a code, and a sentence that names the field and the remedy.

use crate::open;
use std::net::SocketAddr;

use crate::fake::{Fake, zeros};
use crate::open::{loopback, send, with_doors};
use doors::Http;
use primitives::{AssetId, Body, Operation, PublicKey, Signature, Transaction, to_hex};
use serde_json::Value;

const OWNER: PublicKey = PublicKey([1; 32]);
const JSON: &str = "application/json";
const BYTES: &str = "application/octet-stream";

fn told(body: &Value) -> (&str, &str) {
    let text = |field: &str| body["error"][field].as_str().unwrap_or_default();
    (text("code"), text("message"))
}

/// Status, code and words of the answer to a body of JSON.
fn refused(server: SocketAddr, path: &str, body: &str, expected: (u16, &str), words: &str) {
    let (status, answer) = send(server, "POST", path, JSON, body.as_bytes());
    let (code, message) = told(&answer);
    assert_eq!((status, code), expected, "{path} {body}: {message}");
    assert!(message.contains(words), "{path} {body}: {message:?} lacks {words:?}");
}

fn payment(sequence: u64) -> Transaction {
    let operation = Operation::Pay { to: PublicKey([2; 32]).address(), asset: AssetId(0), amount: 5 };
    let body = Body { chain: 1, account: OWNER.address(), sequence, until: 50_000, operation };
    Transaction::by_key(body, OWNER, Signature([0; 64]))
}

#[test]
fn what_does_not_exist_is_named_with_the_place_to_look() {
    with_doors(loopback(), |server| {
        let nobody = PublicKey([7; 32]).address();
        let cases = [
            ("/v1/markets/USD/GBP/book", "no asset \"GBP\"; see /v1/assets"),
            ("/v1/markets/usd/EUR/book", "no asset \"usd\""),
            ("/v1/markets/USD/USD/curves", "a market needs two different assets"),
            ("/v1/markets/EUR/XAU/history", "no asset \"XAU\""),
            ("/v1/markets/XAU/EUR/candles", "no asset \"XAU\""),
            ("/v1/markets/XAU/EUR/offers", "no asset \"XAU\""),
            ("/v1/blocks/1", "this node has no block 1: it does not exist yet, or is no longer kept"),
            ("/v1/blocks/7/batch", "this node has no block 7"),
            ("/v1/blocks/7/raw", "this node has no block 7"),
            ("/v1/blocks/7/ethereum", "this node has no receipts of block 7"),
            ("/v1/blocks/7/settles", "block 7"),
            ("/v1/blocks/7/certificate", "a solo node has none at all"),
            ("/v1/validator", "this is a solo node"),
            ("/v1/handovers", "a solo node has no committees"),
            ("/v1/lane", "this chain has no payment lane"),
            ("/v1/lane/registrations/proof", "this chain has no payment lane"),
            ("/v1/lane/boards/0", "no group key"),
            ("/v1/lane/outputs/ID", "no such output"),
            ("/v1/transactions/ID", "neither pending nor among those indexed"),
            ("/v1/ethereum/ID", "neither pending nor among those indexed"),
            ("/v1/accounts/NOBODY", "a payment to it creates it"),
            ("/v1/accounts/NOBODY/proof?certified=true", "no block is made yet"),
        ];
        for (path, words) in cases {
            let path = path.replace("ID", &zeros()).replace("NOBODY", &nobody.to_string());
            let (status, answer) = send(server, "GET", &path, "", &[]);
            let (code, message) = told(&answer);
            let expected = if path.contains("certified") { (503, "not_certified") } else { (404, "not_found") };
            assert_eq!((status, code), expected, "{path}: {message}");
            assert!(message.contains(words), "{path}: {message:?} lacks {words:?}");
        }
    });
}

#[test]
fn a_malformed_part_of_an_address_is_named() {
    with_doors(loopback(), |server| {
        let digest = zeros();
        let owner = OWNER.address().to_string();
        let mut wrong = owner.clone();
        wrong.pop();
        let cases = [
            ("/v1/accounts/OWNE".to_string(), "address: "),
            (format!("/v1/accounts/{wrong}"), "address: "),
            (format!("/v1/accounts/{owner}0"), "address: "),
            (format!("/v1/accounts/{wrong}/offers"), "address: "),
            (format!("/v1/accounts/{wrong}/proof"), "address: "),
            (format!("/v1/accounts/{owner}/offers?after=-3"), "after: \"-3\" is not a whole number"),
            (format!("/v1/accounts/{owner}/offers?cursor=x"), "cursor: \"x\" is not a whole number"),
            (format!("/v1/transactions/{}", &digest[..10]), "id: "),
            ("/v1/transactions/zz".into(), "id: "),
            (format!("/v1/ethereum/{}", &digest[..10]), "hash: "),
            ("/v1/ethereum/zz/output".into(), "hash: "),
            (format!("/v1/blocks/1/accounts/{wrong}"), "address: "),
            (format!("/v1/offers/USD/EUR/dear/{owner}/1/proof"), "limit: "),
            (format!("/v1/offers/USD/EUR/-1/{owner}/1/proof"), "limit: "),
            (format!("/v1/offers/USD/EUR/1/{wrong}/1/proof"), "account: "),
            (format!("/v1/offers/USD/EUR/1/{owner}/one/proof"), "id: \"one\" is not a whole number"),
            ("/v1/markets/USD/EUR/candles?interval=2m".into(), "interval: "),
            ("/v1/markets/USD/EUR/offers?from=cheap".into(), "from: "),
            ("/v1/markets/USD/EUR/offers?to=0".into(), "to: "),
            ("/v1/markets/USD/EUR/offers?cursor=1".into(), "give the `next` of the page before, unchanged"),
            ("/v1/lane/outputs/12".into(), "id: "),
            ("/v1/blocks/18446744073709551616".into(), "height: "),
            ("/v1/transactions/1?wait=".into(), "it has proof, certified"),
        ];
        for (path, words) in cases {
            let (status, answer) = send(server, "GET", &path, "", &[]);
            let (_, message) = told(&answer);
            assert_eq!(status, 400, "{path}: {answer}");
            assert!(message.contains(words), "{path}: {message:?} lacks {words:?}");
        }
    });
}

#[test]
fn a_body_that_is_no_transaction_is_named() {
    with_doors(loopback(), |server| {
        for (path, body, words) in [
            ("/v1/transactions", "", "the body is not JSON such as {\"transaction\":\"0x…\"}"),
            ("/v1/transactions", "{}", "the body needs the field `transaction`"),
            ("/v1/transactions", r#"{"transaction":5}"#, "invalid type: integer"),
            ("/v1/transactions", r#"{"transaction":"0x0"}"#, "transaction: not hexadecimal"),
            ("/v1/transactions", r#"{"transaction":"0xzz"}"#, "transaction: not hexadecimal"),
            ("/v1/transactions", r#"{"transaction":"0x"}"#, "transaction: not a transaction"),
            ("/v1/transactions", r#"{"transaction":"0x00","wallet":1}"#, "unknown field `wallet`"),
            ("/v1/transactions", r#"{"transactions":["0x00"]}"#, "the body needs the field `transaction`"),
            ("/v1/transactions", r#"{"transaction":"0x00","signature":"00"}"#, "signature: "),
            ("/v1/transactions", r#"{"transaction":"0x00","signature":"q"}"#, "signature: not hexadecimal"),
            ("/v1/transactions/batch", "[]", "the body is not JSON such as {\"transactions\":[\"0x…\"]}"),
            ("/v1/transactions/batch", r#"{"transaction":"0x00"}"#, "the body needs the field `transactions`"),
            ("/v1/transactions/batch", r#"{"transactions":["0x00"]}"#, "transactions[0]: not a transaction"),
            ("/v1/ethereum", r#"{"transaction":"0x1"}"#, "transaction: not hexadecimal"),
            ("/v1/ethereum/batch", r#"{"transactions":["0x","0xq"]}"#, "transactions[1]: not hexadecimal"),
        ] {
            refused(server, path, body, (400, "malformed"), words);
        }
        let whole = replica::encode(&payment(1));
        let sent = |kind: &str, bytes: &[u8]| send(server, "POST", "/v1/transactions", kind, bytes);
        for (bytes, words) in [
            (&whole[..whole.len() - 1], "as docs/specification.md describes it"),
            (&[whole.as_slice(), &[0]].concat(), "as docs/specification.md describes it"),
            (&[], "as docs/specification.md describes it"),
        ] {
            let (status, answer) = sent(BYTES, bytes);
            assert_eq!((status, told(&answer).0), (400, "malformed"), "{answer}");
            assert!(told(&answer).1.contains(words), "{answer}");
        }
        for kind in ["", "text/plain", "application/x-www-form-urlencoded", "application/jsonp"] {
            let (status, answer) = sent(kind, &whole);
            assert_eq!((status, told(&answer).0), (415, "unsupported_media_type"), "{kind}: {answer}");
        }
        // A parameter of the type is no other type, and what is sound reaches the pool, which is full.
        for (kind, body) in [
            (format!("{BYTES}; charset=binary"), whole.clone()),
            (format!("{JSON};charset=utf-8"), format!("{{\"transaction\":\"0x{}\"}}", to_hex(&whole)).into_bytes()),
        ] {
            let (status, answer) = sent(&kind, &body);
            assert_eq!((status, told(&answer).0), (429, "mempool_full"), "{kind}: {answer}");
        }
    });
}

#[test]
fn a_signature_that_is_sent_beside_its_transaction_is_checked_by_length() {
    with_doors(loopback(), |server| {
        let whole = replica::encode(&payment(1));
        let unsigned = to_hex(&whole[..whole.len() - 64]);
        let body = |signature: &str| format!(r#"{{"transaction":"0x{unsigned}","signature":"{signature}"}}"#);
        refused(server, "/v1/transactions", &body("0x00"), (400, "malformed"), "an ed25519 signature has 64 bytes");
        let long = "00".repeat(65);
        refused(server, "/v1/transactions", &body(&long), (400, "malformed"), "this one 65");
        refused(server, "/v1/transactions", &body(&"00".repeat(64)), (429, "mempool_full"), "try again shortly");
    });
}

#[test]
fn limits_of_a_call_are_named_before_its_work_is_done() {
    let settings = Http { body_bytes: 2_000, batch_transactions: 3, ..loopback() };
    with_doors(settings, |server| {
        let all: Vec<Transaction> = (1..=4).map(payment).collect();
        let (status, answer) = send(server, "POST", "/v1/transactions/batch", BYTES, &replica::encode(&all));
        assert_eq!((status, told(&answer)), (413, ("too_large", "4 transactions in one call; send at most 3")));
        let (status, answer) =
            send(server, "POST", "/v1/transactions/batch", BYTES, &replica::encode(&all[..3].to_vec()));
        assert_eq!(status, 200, "{answer}");
        let codes: Vec<&str> = answer["results"].as_array().expect("results").iter().map(|one| told(one).0).collect();
        assert_eq!(codes, ["mempool_full"; 3]);
        for path in ["/v1/transactions", "/v1/transactions/batch", "/v1/typed-data", "/v1/transactions/prepare"] {
            let (status, answer) = send(server, "POST", path, JSON, &[b' '; 2_001]);
            assert_eq!((status, told(&answer).0), (413, "too_large"), "{path}: {answer}");
            assert!(told(&answer).1.contains("`body_bytes` under /v1/limits"), "{answer}");
        }
    });
}

#[test]
fn other_methods_and_other_paths_are_told_apart() {
    with_doors(loopback(), |server| {
        for (method, path) in [("PUT", "/v1/status"), ("DELETE", "/v1/transactions"), ("POST", "/v1/markets")] {
            let (status, answer) = send(server, method, path, "", &[]);
            assert_eq!((status, told(&answer).0), (405, "method_not_allowed"), "{method} {path}: {answer}");
            assert!(told(&answer).1.contains("/v1/openapi.json"), "{answer}");
        }
        for path in ["/v1", "/v1/", "/v1/account/0", "/v2/status", "/v1/status/"] {
            let (status, answer) = send(server, "GET", path, "", &[]);
            assert_eq!(status, 404, "{path}: {answer}");
        }
        // Whoever misspells `wait` would believe that he waits.
        let (status, answer) = send(server, "POST", "/v1/transactions?wait=commited", JSON, b"{}");
        assert_eq!((status, told(&answer).0), (400, "malformed"));
        assert!(told(&answer).1.contains("\"commited\" is unknown; use wait=committed"), "{answer}");
    });
}

/// A disk that fails is the node's fault and no absence.
#[test]
fn an_archive_that_cannot_be_read_is_no_missing_block() {
    with_doors(loopback(), |server| {
        let (status, answer) = send(server, "GET", "/v1/blocks/1/receipts", "", &[]);
        assert_eq!((status, told(&answer).0), (500, "archive_failed"), "{answer}");
        assert!(!told(&answer).1.contains("this disk is a test"), "what the disk says is for the operator: {answer}");
    });
}

#[test]
fn an_operator_without_a_token_reaches_nothing() {
    with_doors(loopback(), |server| {
        for (method, path) in
            [("GET", "/v1/operator/doors"), ("POST", "/v1/operator/drain"), ("POST", "/v1/operator/resume")]
        {
            let (status, answer) = send(server, method, path, "", &[]);
            assert_eq!((status, told(&answer).0), (401, "unauthorized"), "{path}");
            assert!(told(&answer).1.contains("[http] operator_token_file"), "{answer}");
        }
    });
}

#[test]
fn a_refused_transaction_is_remembered_with_its_reason() {
    let node = std::sync::Arc::new(Fake::new());
    let refusal = ledger::Refusal::OVERDRAFT;
    node.answers([doors::Answer::Refused(refusal), doors::Answer::Full]);
    open::with_node(loopback(), node, |server| {
        let transaction = payment(1);
        let bytes = replica::encode(&transaction);
        let (status, answer) = send(server, "POST", "/v1/transactions", BYTES, &bytes);
        assert_eq!((status, told(&answer).0), (422, "overdraft"), "{answer}");
        // It has the money: what it lacks is what pending transactions spend.
        let words = ["needs 0.05 USD and has 10000 USD", "wait until they are committed"];
        for words in words {
            assert!(told(&answer).1.contains(words), "{answer} lacks {words:?}");
        }
        let (status, asked) = send(server, "GET", &format!("/v1/transactions/{}", transaction.id()), "", &[]);
        assert_eq!((status, told(&asked).0), (404, "refused"));
        assert!(told(&asked).1.contains("refused it when it was submitted (overdraft)"), "{asked}");
        let (status, answer) = send(server, "POST", "/v1/transactions", BYTES, &bytes);
        assert_eq!((status, told(&answer).0), (429, "mempool_full"));
    });
}

/// Who chose a height at which too many offers end already learns what to do.
#[test]
fn an_offer_that_ends_in_a_crowd_is_refused_with_the_limit_and_the_remedy() {
    let node = std::sync::Arc::new(Fake::new());
    node.answers([doors::Answer::Refused(ledger::Refusal::ENDS_CROWDED)]);
    open::with_node(loopback(), node, |server| {
        let limit = primitives::Price::parse_rounding_up("1.1").expect("a price");
        let mut operation = Operation::offer(AssetId(0), AssetId(1), 100_000, limit);
        if let Operation::CreateOffer { life, .. } = &mut operation {
            *life = primitives::Life::Until(49_000);
        }
        let body = Body { chain: 1, account: OWNER.address(), sequence: 1, until: 40_000, operation };
        let transaction = Transaction::by_key(body, OWNER, Signature([0; 64]));
        let bytes = replica::encode(&transaction);
        let (status, answer) = send(server, "POST", "/v1/transactions", BYTES, &bytes);
        assert_eq!((status, told(&answer).0), (422, "ends_crowded"), "{answer}");
        let (_, limits) = send(server, "GET", "/v1/limits", "", &[]);
        let most = limits["ends_max"].as_u64().expect("a number");
        for words in
            [format!("{most} offers end at that height already"), "another height, such as the next one".into()]
        {
            assert!(told(&answer).1.contains(&words), "{answer} lacks {words:?}");
        }
        // Whoever asks later is told the same.
        let (status, asked) = send(server, "GET", &format!("/v1/transactions/{}", transaction.id()), "", &[]);
        assert_eq!((status, told(&asked).0), (404, "refused"), "{asked}");
        assert!(told(&asked).1.contains("(ends_crowded)"), "{asked}");
        let described = open::get(server, "/v1/openapi.json");
        let codes = described["components"]["schemas"]["Refusal"]["enum"].as_array().expect("codes");
        assert!(codes.len() > 50 && codes.contains(&"ends_crowded".into()), "{codes:?}");
        let unique: std::collections::BTreeSet<_> = codes.iter().filter_map(Value::as_str).collect();
        assert_eq!(unique.len(), codes.len(), "each code is one reason");
    });
}
