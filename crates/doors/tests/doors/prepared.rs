//! Transactions that a node lays out for those who sign without a library: what it says is what the bytes do, and what
//! it cannot lay out it refuses with the field.

use std::net::SocketAddr;

use crate::open::{bytes, get, loopback, send, with_doors};
use primitives::{Body, Digest, Operation, PublicKey, SecretKey, Transaction, verify_transactions};
use serde_json::{Value, json};

fn key() -> SecretKey {
    SecretKey::from_seed([42; 32])
}

fn owner() -> String {
    PublicKey([1; 32]).address().to_string()
}

fn asked(server: SocketAddr, path: &str, body: &Value) -> (u16, Value) {
    send(server, "POST", path, "application/json", body.to_string().as_bytes())
}

fn prepared(server: SocketAddr, operation: &Value) -> Value {
    let account = key().public().address().to_string();
    let body = json!({"account": account, "key": key().public().to_string(), "operation": operation});
    let (status, answer) = asked(server, "/v1/transactions/prepare", &body);
    assert_eq!(status, 200, "{operation}: {answer}");
    answer
}

/// Operations as people write them, with the words that a person reads before he signs.
fn operations() -> Vec<(Value, Vec<String>)> {
    let (to, digest) = (PublicKey([3; 32]).address(), PublicKey([3; 32]));
    let words = |all: &[&str]| all.iter().map(|one| one.to_string()).collect::<Vec<_>>();
    vec![
        (
            json!({"type": "pay", "to": to.to_string(), "asset": "EUR", "amount": "12345"}),
            vec!["pays 1.2345 EUR to".into(), to.checked()],
        ),
        (
            json!({"type": "issue", "to": to.to_string(), "asset": "USD", "amount": "100"}),
            words(&["creates 1 USD for"]),
        ),
        (json!({"type": "burn", "asset": "USD", "amount": "1"}), words(&["destroys 0.01 USD"])),
        (
            json!({"type": "create_account", "account": to.to_string(), "key": digest.to_string()}),
            vec!["registers".into(), to.checked(), digest.to_string()],
        ),
        (
            // 5 units of EUR for a unit of USD: a ten-thousandth and a hundredth.
            json!({"type": "create_offer", "sell": "USD", "buy": "EUR", "amount": "5000", "limit": "5"}),
            words(&["sells 50 USD for at least 0.05 EUR each", "until it is cancelled"]),
        ),
        (
            json!({"type": "exact", "side": "buy", "sell": "USD", "buy": "EUR", "units": "5000", "bound": "7000"}),
            words(&["buys exactly 0.5 EUR for at most 70 USD", "or nothing happens, and what it locked returns"]),
        ),
        (
            json!({"type": "exact", "side": "sell", "sell": "EUR", "buy": "USD", "units": "5000", "bound": "7000"}),
            words(&["sells exactly 0.5 EUR for at least 70 USD"]),
        ),
        (json!({"type": "revoke_session", "slot": 3}), words(&["ends the session key in slot 3, and its offers"])),
        (
            json!({"type": "session_alive", "slot": 3, "through": "700"}),
            words(&["keeps offers of the session key in slot 3 until the end of block 700"]),
        ),
        (
            json!({"type": "session_alive", "slot": 3, "through": "0"}),
            words(&["ends all offers of the session key in slot 3"]),
        ),
        (
            json!({"type": "create_offer", "sell": "EUR", "buy": "USD", "amount": "5000", "limit": "0.5",
                "life": "one batch"}),
            words(&["sells 0.5 EUR for at least 50 USD each", "returns after the batch of its block"]),
        ),
        (
            json!({"type": "cancel", "offers": [
                {"sell": "USD", "buy": "EUR", "limit": "5", "offer": "3"},
                {"sell": "EUR", "buy": "USD", "limit": "1", "offer": "9"}]}),
            words(&["cancels offer 3, which sells USD for at least 0.05 EUR each; offer 9, which sells EUR"]),
        ),
        (
            json!({"type": "replace", "sell": "USD", "buy": "EUR", "old_limit": "5", "offer": "3", "remains": "4000",
                "amount": "6000", "limit": "4"}),
            words(&["replaces offer 3, of which 40 USD or less rests", "sells 60 USD", "0.04 EUR each"]),
        ),
        (json!({"type": "unstake", "units": "250"}), words(&["withdraws 2.5 USD of its stake"])),
        (
            json!({"type": "withdraw", "to": digest.to_string(), "asset": "USD", "amount": "700"}),
            words(&["moves 7 USD into the payment lane"]),
        ),
    ]
}

#[test]
fn the_words_of_a_transaction_are_those_of_its_bytes() {
    with_doors(loopback(), |server| {
        for (operation, words) in operations() {
            let answer = prepared(server, &operation);
            let says = answer["says"].as_str().expect("words");
            for expected in &words {
                assert!(says.contains(expected), "{operation}: {says:?} lacks {expected:?}");
            }
            assert!(says.contains("It has number 1, counts once, and in no block after"), "{says}");
        }
    });
}

/// What is signed is what the answer shows: the transaction with the signature attached verifies under the key, and
/// has the id that was told.
#[test]
fn signed_bytes_make_the_transaction_that_was_told() {
    with_doors(loopback(), |server| {
        let limits = get(server, "/v1/limits");
        let network: Digest = limits["network"].as_str().and_then(|text| text.parse().ok()).expect("a network");
        for (operation, _) in operations() {
            let answer = prepared(server, &operation);
            let signature = key().sign(&bytes(&answer["signing_bytes"]));
            let whole = [bytes(&answer["unsigned"]), signature.0.to_vec()].concat();
            let transaction: Transaction = borsh::from_slice(&whole).expect("a transaction");
            assert_eq!(verify_transactions(&network, &[&transaction]), [true], "{operation}");
            assert_eq!(answer["id"], transaction.id().to_string());
            assert_eq!(answer["until"], transaction.body.until.to_string());
            // The node that reads it shows what was asked for.
            let shown = json!({"transaction": answer["unsigned"], "signature": format!("0x{}", to_hex(&signature.0))});
            let (status, told) = asked(server, "/v1/transactions", &shown);
            assert_eq!((status, &told["error"]["code"]), (429, &"mempool_full".into()), "{operation}: {told}");
        }
    });
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_wallet_is_given_typed_data_of_the_same_body() {
    with_doors(loopback(), |server| {
        for (operation, _) in operations() {
            let body = json!({"account": owner(), "operation": operation, "sequence": "9", "until": 77});
            let (status, typed) = asked(server, "/v1/typed-data", &body);
            assert_eq!(status, 200, "{operation}: {typed}");
            assert_eq!((&typed["sequence"], &typed["until"]), (&"9".into(), &"77".into()));
            let (_, prepared) = asked(server, "/v1/transactions/prepare", &body);
            for field in ["hash", "typed_data", "unsigned", "sequence", "until"] {
                assert_eq!(typed[field], prepared[field], "{operation}: {field}");
            }
            assert!(prepared["signing_bytes"].is_null(), "a wallet signs typed data");
            let domain = &typed["typed_data"]["domain"];
            assert!(domain["name"].is_string() && domain["chainId"].is_number(), "{domain}");
            let primary = typed["typed_data"]["primaryType"].as_str().expect("a type");
            assert!(typed["typed_data"]["types"][primary].is_array(), "{typed}");
        }
    });
}

#[test]
fn numbers_are_read_as_text_and_as_json_and_nothing_else() {
    with_doors(loopback(), |server| {
        let (operation, _) = operations().swap_remove(0);
        let of = |sequence: Value, until: Value| {
            let body = json!({"account": owner(), "operation": operation, "sequence": sequence, "until": until});
            asked(server, "/v1/typed-data", &body)
        };
        let most = u64::MAX;
        for (sequence, until) in
            [(json!(5), json!("6")), (json!("5"), json!(6)), (json!(most), json!(most.to_string()))]
        {
            assert_eq!(of(sequence.clone(), until.clone()).0, 200, "{sequence} {until}");
        }
        for wrong in
            [json!("-1"), json!(-1), json!("1.5"), json!(1.5), json!(""), json!("1e3"), json!([1]), json!(true)]
        {
            let (status, answer) = of(wrong.clone(), json!(5));
            assert_eq!(status, 400, "{wrong}: {answer}");
        }
        let (status, answer) = of(json!("18446744073709551616"), json!(5));
        assert_eq!(status, 400);
        assert!(answer["error"]["message"].as_str().is_some_and(|told| told.starts_with("sequence: ")), "{answer}");
    });
}

#[test]
fn what_cannot_be_laid_out_is_refused_by_field() {
    with_doors(loopback(), |server| {
        let (account, to) = (owner(), PublicKey([3; 32]).address().to_string());
        let of = |operation: Value| json!({"account": account, "operation": operation});
        let pay = |field: &str, value: Value| {
            let mut operation = json!({"type": "pay", "to": to, "asset": "USD", "amount": "5"});
            operation[field] = value;
            of(operation)
        };
        let offer = |field: &str, value: Value| {
            let mut operation =
                json!({"type": "create_offer", "sell": "USD", "buy": "EUR", "amount": "5", "limit": "1"});
            operation[field] = value;
            of(operation)
        };
        let stake = |field: &str, value: Value| {
            let (key, possession) = (PublicKey([3; 32]).to_string(), "00".repeat(64));
            let mut operation =
                json!({"type": "stake", "units": "5", "key": key, "address": "a:1", "possession": possession});
            operation[field] = value;
            of(operation)
        };
        let cases: Vec<(Value, u16, &str)> = vec![
            (json!([]), 400, "the body is not JSON such as"),
            (json!({"operation": {}}), 400, "missing field"),
            (json!({"account": account}), 400, "missing field `operation`"),
            (json!({"account": "0x12", "operation": operations().swap_remove(0).0}), 400, "account: "),
            (json!({"account": account, "operation": operations().swap_remove(0).0, "nonce": 1}), 400, "`nonce`"),
            (of(json!({"type": "steal"})), 400, "unknown variant `steal`"),
            (of(json!({"type": "pay"})), 400, "missing field `to`"),
            (pay("to", json!("nobody")), 400, "to: "),
            (pay("asset", json!("GBP")), 404, "no asset \"GBP\""),
            (pay("asset", json!("usd")), 404, "no asset \"usd\""),
            (pay("amount", json!("-5")), 400, "amount: \"-5\" is not a whole number"),
            (pay("amount", json!("5.00")), 400, "amount: \"5.00\" is not a whole number"),
            (pay("amount", json!("18446744073709551616")), 400, "amount: "),
            (pay("memo", json!("rent")), 400, "operation.memo: there is no such field"),
            (offer("limit", json!("0")), 400, "limit: "),
            (offer("limit", json!("-1")), 400, "limit: "),
            (offer("limit", json!("dear")), 400, "limit: "),
            (offer("limit", json!("1e400")), 400, "limit: "),
            (offer("life", json!("forever")), 400, "life: "),
            (offer("client", json!("0x12")), 400, "client: "),
            (offer("buy", json!("XAU")), 404, "no asset \"XAU\""),
            (offer("limits", json!("1")), 400, "operation.limits: there is no such field"),
            (of(json!({"type": "cancel", "offers": [{"sell": "USD"}]})), 400, "missing field"),
            (
                of(json!({"type": "cancel", "offers":
                    [{"sell": "USD", "buy": "EUR", "limit": "1", "offer": "3", "note": 1}]})),
                400,
                "operation.offers[0].note: there is no such field",
            ),
            (stake("key", json!("x")), 400, "key: "),
            (stake("possession", json!("0x00")), 400, "possession: a signature has 64 bytes, this one 1"),
            (stake("units", json!("5.5")), 400, "units: \"5.5\" is not a whole number"),
            (of(json!({"type": "create_account", "account": to, "key": "12"})), 400, "key: "),
        ];
        for (body, status, words) in cases {
            for path in ["/v1/typed-data", "/v1/transactions/prepare"] {
                let (got, answer) = asked(server, path, &body);
                let message = answer["error"]["message"].as_str().unwrap_or_default();
                assert_eq!(got, status, "{path} {body}: {answer}");
                assert!(message.contains(words), "{path} {body}: {message:?} lacks {words:?}");
            }
        }
        let with_key = json!({"account": account, "key": PublicKey([3; 32]).to_string(),
            "operation": operations().swap_remove(0).0});
        let (status, answer) = asked(server, "/v1/typed-data", &with_key);
        assert_eq!(status, 400);
        assert!(answer["error"]["message"].as_str().is_some_and(|told| told.contains("/v1/transactions/prepare")));
        let mut bad = with_key;
        bad["key"] = json!("0x12");
        let (status, answer) = asked(server, "/v1/transactions/prepare", &bad);
        assert_eq!(status, 400);
        assert!(answer["error"]["message"].as_str().is_some_and(|told| told.starts_with("key: ")), "{answer}");
    });
}

/// Operations that only machines make are given as bytes, and those are read to their end.
#[test]
fn an_encoded_operation_is_laid_out_as_it_is() {
    with_doors(loopback(), |server| {
        let operation = Operation::Pay { to: PublicKey([3; 32]).address(), asset: primitives::AssetId(1), amount: 77 };
        let whole = borsh::to_vec(&operation).expect("memory");
        let encoded = |bytes: &[u8]| {
            let operation = json!({"type": "encoded", "bytes": format!("0x{}", to_hex(bytes))});
            let key = key().public();
            let account = key.address().to_string();
            asked(
                server,
                "/v1/transactions/prepare",
                &json!({"account": account, "key": key.to_string(),
                "operation": operation}),
            )
        };
        let (status, answer) = encoded(&whole);
        assert_eq!(status, 200, "{answer}");
        assert!(answer["says"].as_str().is_some_and(|says| says.contains("pays 0.0077 EUR")), "{answer}");
        let whole = [bytes(&answer["unsigned"]), vec![0; 64]].concat();
        let read: Transaction = borsh::from_slice(&whole).expect("a transaction");
        let Body { operation: found, .. } = read.body;
        assert_eq!(found, operation);
        for wrong in [&whole[..whole.len() - 1], &[whole.as_slice(), &[0]].concat(), &[0xff, 0xff], &[]] {
            let (status, answer) = encoded(wrong);
            assert_eq!(status, 400, "{wrong:?}: {answer}");
        }
    });
}
