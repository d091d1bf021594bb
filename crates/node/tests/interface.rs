//! The interface over a real socket: its answers to valid requests, and that every kind of bad input gets its code
//! and a message, and changes nothing.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use ledger::contracts::{EthereumKey, EthereumRequest, contract_address};
use ledger::{AccountProof, EthereumReceiptProof, Genesis, Listing, ModifiedProof, Outcome, ReceiptProof, Refusal};
use node::{Answer, Config, Node};
use primitives::{
    Address, AssetId, Body, Digest, Fraction, Operation, Price, PublicKey, SecretKey, Sequence, SignedBy, Transaction,
    from_hex, to_hex,
};
use serde_json::{Value, json};

fn key(person: u8) -> SecretKey {
    SecretKey::from_seed([person; 32])
}

fn address(person: u8) -> Address {
    key(person).public().address()
}

fn genesis() -> Genesis {
    let assets = vec![
        Listing::new("USD", 2, address(9)),
        Listing::new("EUR", 2, address(9)),
        Listing::new("BTC", 8, address(9)),
    ];
    let holders = (1..=4).flat_map(|p| (0..3).map(move |asset| (address(p), AssetId(asset), 1_000_000)));
    let (epsilon, mu) = (Fraction::power_of_two(15), Fraction::power_of_two(10));
    Genesis {
        chain: 7,
        fee: 1,
        epsilon,
        mu,
        assets,
        balances: holders.chain([(address(9), AssetId(0), 100)]).collect(),
        ..Genesis::default()
    }
}

fn config() -> Config {
    let mut config = Config::default();
    config.http.listen.set_port(0);
    config.ethereum.listen.set_port(0);
    config.http.body_bytes = 64 << 10;
    config.http.batch_transactions = 100;
    config.blocks.interval_ms = 10;
    config.mempool.transactions = 50;
    config
}

/// Runs `test` against a node over a directory; it runs in its own thread, as clients do.
fn with_node<T: Send + 'static>(config: Config, data: &Path, test: impl FnOnce(SocketAddr) -> T + Send + 'static) -> T {
    with_node_of(genesis(), config, data, test)
}

/// As [`with_node`], on a chain of another genesis.
fn with_node_of<T: Send + 'static>(
    genesis: Genesis,
    config: Config,
    data: &Path,
    test: impl FnOnce(SocketAddr) -> T + Send + 'static,
) -> T {
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    runtime.block_on(async {
        let node = Node::start(config, &genesis, data, None).await.expect("starts");
        let address = node.address();
        let result = tokio::task::spawn_blocking(move || test(address)).await.expect("the test passes");
        node.stop().await;
        result
    })
}

/// Between the execution of a block and its publication, the number of a transaction is used and no view has the
/// transaction.
#[test]
fn bytes_are_never_refused_for_the_number_that_they_have_used_themselves() {
    let dir = tempfile::tempdir().expect("a directory");
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    runtime.block_on(async {
        let node = Node::start(config(), &genesis(), &dir.path().join("data"), None).await.expect("starts");
        for sequence in 1..=60 {
            let transaction = pay(1, sequence, 1);
            loop {
                let answers = node.exchange().submit(vec![transaction.clone()], false).expect("open").await;
                match &answers.expect("an answer")[..] {
                    [Answer::Pending(..)] => {}
                    [Answer::Committed(_, found)] if found.outcome == Outcome::Applied => break,
                    other => panic!("{sequence}: {other:?}"),
                }
            }
        }
        node.stop().await;
    });
}

/// A chain with contracts, and a key that holds a thousand of asset 0.
fn with_contracts() -> (Genesis, EthereumKey) {
    let key = EthereumKey::from_seed([77; 32]).expect("a key");
    let mut genesis = genesis();
    genesis.limits = genesis.limits.with_contracts(1);
    genesis.balances.push((key.address(), AssetId(0), 100_000));
    (genesis, key)
}

fn exchange(server: SocketAddr, request: &[u8]) -> (u16, String, Vec<u8>) {
    let mut stream = TcpStream::connect(server).expect("listens");
    stream.write_all(request).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("answered");
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8(answer[..end].to_vec()).expect("text");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    (status, head, answer[end + 4..].to_vec())
}

fn call(server: SocketAddr, method: &str, path: &str, kind: &str, body: &[u8]) -> (u16, Value) {
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: {kind}\r\n\
         Content-Length: {length}\r\n\r\n"
    );
    let (status, _, body) = exchange(server, &[head.as_bytes(), body].concat());
    (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

fn get(server: SocketAddr, path: &str) -> Value {
    let (status, value) = call(server, "GET", path, "", b"");
    assert_eq!(status, 200, "{path}: {value}");
    value
}

fn code(server: SocketAddr, path: &str) -> (u16, String) {
    let (status, value) = call(server, "GET", path, "", b"");
    (status, value["error"]["code"].as_str().unwrap_or("no code").into())
}

fn signed(person: u8, sequence: Sequence, operation: Operation) -> Transaction {
    Body { chain: 7, account: address(person), sequence, until: 50_000, operation }
        .sign(&genesis().digest(), &key(person))
}

fn pay(person: u8, sequence: Sequence, amount: u64) -> Transaction {
    signed(person, sequence, Operation::Pay { to: address(8), asset: AssetId(0), amount })
}

fn offer(person: u8, sequence: Sequence, sell: u32, buy: u32, amount: u64, limit: &str) -> Transaction {
    let limit: Price = limit.parse().expect("a price");
    signed(person, sequence, Operation::offer(AssetId(sell), AssetId(buy), amount, limit))
}

fn send(server: SocketAddr, transaction: &Transaction) -> (u16, Value) {
    let body = borsh::to_vec(transaction).expect("in memory");
    call(server, "POST", "/v1/transactions?wait=committed", "application/octet-stream", &body)
}

#[test]
fn a_day_at_the_exchange() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let (before, id) = with_node(config(), &data, |server| {
        assert_eq!(get(server, "/v1/limits")["fee"], "1");
        let btc = &get(server, "/v1/assets")["assets"][2];
        assert_eq!((&btc["symbol"], &btc["least_units"]), (&json!("BTC"), &json!("4096")));
        // A payment creates an account.
        let (status, paid) = send(server, &pay(1, 1, 500));
        assert_eq!(
            (status, &paid["status"], &paid["outcome"]["result"]),
            (200, &json!("committed"), &json!("applied"))
        );
        let received = get(server, &format!("/v1/accounts/{}", address(8)));
        assert_eq!(received["balances"], json!([{"asset": "USD", "available": "500", "locked": "0"}]));
        // Two crossing offers trade at one price; the batch is shown in full.
        let crossing = [offer(1, 2, 1, 0, 10_000, "1.05"), offer(2, 1, 0, 1, 11_000, "0.9")];
        let bytes = borsh::to_vec(&crossing.to_vec()).expect("in memory");
        let (status, both) =
            call(server, "POST", "/v1/transactions/batch?wait=committed", "application/octet-stream", &bytes);
        assert_eq!(status, 200);
        assert_eq!(both["results"][0]["height"], both["results"][1]["height"], "{both}");
        assert_ne!(both["results"][0]["outcome"]["sold"], "0", "{both}");
        let height = both["results"][0]["height"].as_u64().expect("a height");
        let batch = get(server, &format!("/v1/blocks/{height}/batch"));
        assert_eq!(batch["trades"].as_array().map(Vec::len), Some(2), "{batch}");
        let market = &get(server, "/v1/markets")["markets"][0];
        assert_eq!((&market["market"], &market["base"]), (&json!("EUR/USD"), &json!("EUR")));
        assert!(!get(server, "/v1/markets/EUR/USD/curves")["supply"].as_array().expect("points").is_empty());
        let candles = get(server, "/v1/markets/EUR/USD/candles?interval=1d");
        assert_eq!((&candles["interval"], candles["candles"].as_array().map(Vec::len)), (&json!("1d"), Some(1)));
        assert_eq!(candles["candles"][0]["open"], market["price"]);
        assert_eq!(market["price_height"], json!(height));
        assert_eq!(code(server, "/v1/markets/EUR/USD/candles?interval=2d").0, 400);
        assert_eq!(get(server, "/v1/markets/EUR/USD/history")["points"].as_array().map(Vec::len), Some(1));
        // A resting offer is shown in the book and with its owner, and can be cancelled.
        let (_, resting) = send(server, &offer(3, 1, 2, 0, 7_000, "5"));
        assert_eq!(resting["outcome"]["left"], "7000", "{resting}");
        assert_eq!(get(server, &format!("/v1/accounts/{}/offers", address(3)))["offers"][0]["amount"], "7000");
        let book = get(server, "/v1/markets/BTC/USD/book");
        assert_eq!(book["sells"][0]["amount"], "7000");
        // A single untraded offer makes no price.
        let markets = get(server, "/v1/markets");
        let untraded = markets["markets"].as_array().and_then(|all| all.iter().find(|one| one["base"] == "BTC"));
        for body in [&book, untraded.expect("it has an offer")] {
            assert!(["price", "price_height", "indicative"].iter().all(|field| body[field].is_null()), "{body}");
        }
        assert_eq!(get(server, "/v1/markets/BTC/USD/history")["points"], json!([]));
        let in_range = |range: &str| {
            get(server, &format!("/v1/markets/BTC/USD/offers?{range}"))["offers"].as_array().map(Vec::len)
        };
        assert_eq!(get(server, "/v1/markets/BTC/USD/offers")["offers"][0]["account"], address(3).to_string());
        assert_eq!(
            [in_range("from=5&to=5"), in_range("from=5.01"), in_range("to=4.99"), in_range("from=6&to=4")],
            [Some(1), Some(0), Some(0), Some(0)]
        );
        assert_eq!(code(server, "/v1/markets/BTC/USD/offers?from=cheap").0, 400);
        let limit = "5".parse().expect("a price");
        let cancel = Operation::cancel(AssetId(2), AssetId(0), limit, 1);
        let (_, cancelled) = send(server, &signed(3, 2, cancel));
        assert_eq!(cancelled["outcome"], json!({"result": "cancelled", "found": 1, "missing": 0}));
        assert_eq!(get(server, &format!("/v1/accounts/{}/offers", address(3)))["offers"], json!([]));
        // The same bytes again name the one transaction.
        let (status, again) = send(server, &pay(1, 1, 500));
        assert_eq!((status, &again["id"]), (200, &paid["id"]));
        let id = paid["id"].as_str().expect("an id").to_string();
        check_proofs(server, &id);
        (get(server, &format!("/v1/accounts/{}", address(1))), id)
    });
    // After a stop everything is still there, and the transaction is found by its id.
    let after = with_node(config(), &data, move |server| {
        assert_eq!(get(server, &format!("/v1/transactions/{id}"))["status"], "committed");
        check_proofs(server, &id);
        // Candles are rebuilt in the background.
        while get(server, "/v1/markets/USD/EUR/candles")["candles"] == json!([]) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        get(server, &format!("/v1/accounts/{}", address(1)))
    });
    assert_eq!(before, after);
}

fn check_proofs(server: SocketAddr, id: &str) {
    let decode = |value: &Value| {
        let text = value["proof"].as_str().expect("a proof").trim_start_matches("0x");
        (0..text.len() / 2)
            .map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hexadecimal"))
            .collect::<Vec<_>>()
    };
    for person in [1, 8, 77] {
        let shown = get(server, &format!("/v1/accounts/{}/proof", address(person)));
        let root: Digest = shown["root"].as_str().expect("a root").parse().expect("a digest");
        let proof: AccountProof = borsh::from_slice(&decode(&shown)).expect("decodes");
        let account = proof.verify(&root, &address(person)).expect("holds");
        assert_eq!(account.is_some(), person != 77);
    }
    let height = get(server, &format!("/v1/transactions/{id}"))["height"].clone();
    for (person, changed) in [(1, true), (8, true), (3, false), (77, false)] {
        let shown = get(server, &format!("/v1/blocks/{height}/accounts/{}", address(person)));
        let root: Digest = shown["receipts_root"].as_str().expect("a root").parse().expect("a digest");
        assert_eq!(get(server, &format!("/v1/blocks/{height}"))["receipts_root"], shown["receipts_root"]);
        let proof: ModifiedProof = borsh::from_slice(&decode(&shown)).expect("decodes");
        assert_eq!((proof.verify(&root, &address(person)), &shown["changed"]), (Ok(changed), &json!(changed)));
    }
    let shown = get(server, &format!("/v1/transactions/{id}?proof=true"));
    let root: Digest = shown["receipts_root"].as_str().expect("a root").parse().expect("a digest");
    let proof: ReceiptProof = borsh::from_slice(&decode(&shown)).expect("decodes");
    assert_eq!(proof.verify(&root, &id.parse().expect("an id")), Ok(Some(Outcome::Applied)));
    let other = Digest(from_hex(&to_hex(&[7; 32])).expect("32 bytes"));
    assert!(proof.verify(&root, &other).is_err());
    let place = format!("/v1/offers/BTC/USD/5/{}/1/proof", address(3));
    assert_eq!(get(server, &place)["amount"], Value::Null);
}

/// Nothing but a key and a way to send bytes: the node lays out what is signed, and says what it does.
#[test]
fn a_prepared_transaction_is_signed_without_a_library() {
    let folder = tempfile::tempdir().expect("a folder");
    with_node(config(), &folder.path().join("data"), |server| {
        let asked = |more: Value| {
            let mut body = json!({"account": address(1).to_string(), "operation":
                {"type": "create_offer", "sell": "EUR", "buy": "BTC", "amount": "125000", "limit": "400"}});
            body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            call(server, "POST", "/v1/transactions/prepare", "application/json", body.to_string().as_bytes())
        };
        let (status, prepared) = asked(json!({"key": key(1).public().to_string()}));
        assert_eq!(status, 200, "{prepared}");
        let says = prepared["says"].as_str().expect("words");
        // 400 units of BTC for one of EUR are 0.0004 whole ones.
        assert!(
            says.contains("sells 1250 EUR for at least 0.0004 BTC each") && says.contains("fee is 0.01 USD"),
            "{says}"
        );
        assert!(says.starts_with(&address(1).checked()) && says.contains("number 1,"), "{says}");
        let hex = prepared["signing_bytes"].as_str().expect("bytes").trim_start_matches("0x").to_owned();
        let bytes: Vec<u8> =
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect();
        let send = |signature: &[u8]| {
            let body = json!({"transaction": prepared["unsigned"], "signature": format!("0x{}", to_hex(signature))});
            let path = "/v1/transactions?wait=committed";
            call(server, "POST", path, "application/json", body.to_string().as_bytes())
        };
        let (status, short) = send(&[1; 63]);
        assert!(status == 400 && short["error"]["message"].as_str().is_some_and(|m| m.contains("64 bytes")), "{short}");
        assert_eq!(send(&key(2).sign(&bytes).0).1["error"]["code"], "bad_signature");
        let (status, sent) = send(&key(1).sign(&bytes).0);
        assert_eq!((status, &sent["id"], &sent["status"]), (200, &prepared["id"], &json!("committed")), "{sent}");
        assert_eq!(sent["outcome"]["left"], "125000");
        // Without a key it is laid out for a wallet; typed data is nothing for another key.
        let (_, for_wallet) = asked(json!({"sequence": "2"}));
        assert!(for_wallet["typed_data"].is_object() && for_wallet["signing_bytes"].is_null(), "{for_wallet}");
        let (account, wallet) = (address(1).to_string(), key(1).public().to_string());
        let wrong = json!({"account": account, "key": wallet, "operation": {"type": "unstake", "units": "1"}});
        let (status, refused) =
            call(server, "POST", "/v1/typed-data", "application/json", wrong.to_string().as_bytes());
        assert!(
            status == 400 && refused["error"]["message"].as_str().is_some_and(|m| m.contains("prepare")),
            "{refused}"
        );
    });
}

#[test]
fn every_refusal_has_its_code_and_changes_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    with_node(config(), &dir.path().join("data"), |server| {
        send(server, &offer(2, 1, 0, 1, 5_000, "3"));
        send(server, &pay(1, 1, 1));
        // Roots lag behind blocks.
        let state = loop {
            let status = get(server, "/v1/status");
            if status["state"]["height"] == status["height"] {
                break status["state"].clone();
            }
        };
        let mut bad_signature = pay(1, 2, 1);
        if let SignedBy::Key { signature, .. } = &mut bad_signature.signed_by {
            signature.0[0] ^= 1;
        }
        let other_chain = Body { chain: 8, ..pay(1, 2, 1).body }.sign(&genesis().digest(), &key(1));
        let other_signer = pay(1, 2, 1).body.sign(&genesis().digest(), &key(2));
        let new_key = key(50).public();
        let cancel = |person, sequence, id| {
            let limit = "3".parse().expect("a price");
            let operation = Operation::cancel(AssetId(0), AssetId(1), limit, id);
            signed(person, sequence, operation)
        };
        let create = |account, key: PublicKey| signed(1, 2, Operation::CreateAccount { account, key });
        let cases: Vec<(Transaction, Refusal)> = vec![
            (bad_signature, Refusal::BAD_SIGNATURE),
            (other_chain, Refusal::WRONG_CHAIN),
            (other_signer, Refusal::WRONG_SIGNER),
            (pay(60, 1, 1), Refusal::UNKNOWN_ACCOUNT),
            (pay(1, 1, 2), Refusal::SEQUENCE_USED),
            (pay(1, 0, 2), Refusal::SEQUENCE_TOO_OLD),
            (pay(1, 66, 2), Refusal::SEQUENCE_TOO_FAR),
            (pay(1, 2, 1_000_000), Refusal::OVERDRAFT),
            (pay(1, 2, 0), Refusal::ZERO_AMOUNT),
            (pay(1, 2, 1 << 63), Refusal::AMOUNT_TOO_LARGE),
            (signed(1, 2, Operation::Pay { to: address(1), asset: AssetId(0), amount: 1 }), Refusal::SELF_PAYMENT),
            (offer(1, 2, 0, 9, 1, "1"), Refusal::UNKNOWN_ASSET),
            (offer(1, 2, 1, 1, 1, "1"), Refusal::SAME_ASSET),
            (offer(1, 2, 1, 0, 4_095, "5"), Refusal::SELLS_TOO_LITTLE),
            (offer(1, 2, 1, 0, 4_096, "0.9"), Refusal::ASKS_TOO_LITTLE),
            (cancel(1, 2, 1), Refusal::NOT_YOUR_OFFER),
            (cancel(2, 2, 9), Refusal::UNKNOWN_OFFER),
            (create(address(4), key(4).public()), Refusal::ACCOUNT_EXISTS),
            (create(address(50), key(51).public()), Refusal::ADDRESS_NOT_OF_KEY),
            (signed(1, 2, Operation::Issue { to: address(1), asset: AssetId(0), amount: 1 }), Refusal::NOT_ISSUER),
            (signed(1, 2, Operation::Burn { asset: AssetId(0), amount: 1 }), Refusal::NOT_ISSUER),
            (
                signed(9, 1, Operation::Issue { to: address(1), asset: AssetId(0), amount: (1 << 63) - 1 }),
                Refusal::ISSUE_TOO_LARGE,
            ),
        ];
        for (transaction, refusal) in cases {
            let (status, answer) = send(server, &transaction);
            assert_eq!((status, answer["error"]["code"].as_str()), (422, Some(refusal.code())), "{answer}");
            let sentence = match refusal {
                // The fee is one cent, and account 1 has spent 2.
                Refusal::OVERDRAFT => {
                    "the account cannot pay for this: it needs 10000.01 USD with its fee of 0.01 USD and \
                                       has 9999.98 USD; pay it what is missing, or cancel offers"
                        .to_string()
                }
                _ => refusal.to_string(),
            };
            assert_eq!(answer["error"]["message"], sentence);
        }
        assert_eq!(get(server, "/v1/status")["state"], state, "nothing changed");
        // The account itself is unaffected, and its next number is free.
        assert_eq!(send(server, &create(new_key.address(), new_key)).0, 200);
    });
}

#[test]
fn bad_requests_are_named() {
    let dir = tempfile::tempdir().expect("a directory");
    with_node(config(), &dir.path().join("data"), |server| {
        let post = |path: &str, kind: &str, body: &[u8]| {
            let (status, value) = call(server, "POST", path, kind, body);
            (
                status,
                value["error"]["code"].as_str().unwrap_or("").to_string(),
                value["error"]["message"].as_str().unwrap_or("").to_string(),
            )
        };
        let (octets, json) = ("application/octet-stream", "application/json");
        let sound = borsh::to_vec(&pay(1, 1, 1)).expect("in memory");
        for (path, kind, body, status, expected, words) in [
            ("/v1/transactions", octets, &sound[..sound.len() - 1], 400, "malformed", "does not decode"),
            ("/v1/transactions", octets, &[&sound[..], &[0]].concat()[..], 400, "malformed", "does not decode"),
            ("/v1/transactions", octets, &[], 400, "malformed", "does not decode"),
            ("/v1/transactions", octets, &vec![0; 65 << 10][..], 413, "too_large", "body_bytes"),
            ("/v1/transactions", "text/plain", &sound[..], 415, "unsupported_media_type", "Content-Type"),
            ("/v1/transactions", json, b"{", 400, "malformed", "line 1"),
            ("/v1/transactions", json, b"{", 400, "malformed", "such as {\"transaction\":\"0x…\"}"),
            ("/v1/typed-data", json, b"[]", 400, "malformed", "such as {\"account\":\"0x…\""),
            ("/v1/transactions/prepare", json, b"[]", 400, "malformed", "such as {\"account\":\"0x…\""),
            ("/v1/transactions", json, b"{\"transaction\":\"0x0\"}", 400, "malformed", "not hexadecimal"),
            (
                "/v1/transactions",
                json,
                b"{\"transaction\":\"0x00\"}",
                400,
                "malformed",
                "transaction: not a transaction",
            ),
            ("/v1/transactions", json, b"{\"transactions\":[]}", 400, "malformed", "`transaction`"),
            ("/v1/transactions", json, b"{\"transactoin\":\"\"}", 400, "malformed", "transactoin"),
            ("/v1/transactions/batch", json, b"{\"transactions\":[\"zz\"]}", 400, "malformed", "transactions[0]"),
            ("/v1/transactions/batch", octets, &[255, 255, 255, 255], 400, "malformed", "does not decode"),
            ("/v1/transactions?wait=for-ever", octets, &sound[..], 400, "malformed", "wait=committed"),
        ] {
            let (got, code, message) = post(path, kind, body);
            assert_eq!((got, code.as_str()), (status, expected), "{path} {message}");
            assert!(message.contains(words), "{message:?} lacks {words:?}");
        }
        let many = borsh::to_vec(&vec![pay(1, 1, 1); 101]).expect("in memory");
        assert_eq!(post("/v1/transactions/batch", octets, &many).1, "too_large");
        for (path, status, expected) in [
            ("/v1/accounts/0x12", 400, "malformed"),
            ("/v1/accounts/0x0000000000000000000000000000000000000000", 404, "not_found"),
            ("/v1/markets/EUR/XXX/book", 404, "not_found"),
            ("/v1/markets/EUR/EUR/book", 404, "not_found"),
            ("/v1/blocks/99", 404, "not_found"),
            ("/v1/blocks/99/raw", 404, "not_found"),
            ("/v1/transactions/0x00", 400, "malformed"),
            ("/v1/offers/EUR/USD/x/0x12/1/proof", 400, "malformed"),
            ("/v1/nothing", 404, "not_found"),
        ] {
            assert_eq!(code(server, path), (status, expected.into()), "{path}");
        }
        assert_eq!(call(server, "DELETE", "/v1/status", "", b"").0, 405);
        let foreign = b"GET /v1/status HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
        assert_eq!(exchange(server, foreign).0, 421, "a foreign host name");
        assert_eq!(exchange(server, b"nonsense\r\n\r\n").0, 400);
        assert_eq!(get(server, "/v1/status")["height"], 0, "nothing happened");
    });
}

#[test]
fn a_full_mempool_says_come_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut config = config();
    config.blocks.interval_ms = 60_000;
    config.mempool.transactions = 3;
    with_node(config, &dir.path().join("data"), |server| {
        let bytes = borsh::to_vec(&(1..=5).map(|i| pay(1, i, 1)).collect::<Vec<_>>()).expect("in memory");
        let (_, answer) = call(server, "POST", "/v1/transactions/batch", "application/octet-stream", &bytes);
        let codes: Vec<_> = answer["results"].as_array().expect("five").iter().map(|r| &r["error"]["code"]).collect();
        assert_eq!(codes, [&Value::Null, &Value::Null, &Value::Null, &json!("mempool_full"), &json!("mempool_full")]);
        let body = borsh::to_vec(&pay(2, 1, 1)).expect("in memory");
        let head = format!(
            "POST /v1/transactions HTTP/1.1\r\nHost: [::1]:80\r\nConnection: close\r\n\
             Content-Type: application/octet-stream\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let (status, head, _) = exchange(server, &[head.as_bytes(), &body].concat());
        assert_eq!(status, 429);
        assert!(head.to_lowercase().contains("retry-after: 1"), "{head}");
        assert_eq!(get(server, "/v1/status")["mempool"], json!({"transactions": 3, "limit": 3}));
    });
}

#[test]
fn machines_can_read_what_there_is() {
    let dir = tempfile::tempdir().expect("a directory");
    with_node(config(), &dir.path().join("data"), |server| {
        let description = get(server, "/v1/openapi.json");
        let paths: Vec<&String> = description["paths"].as_object().expect("paths").keys().collect();
        assert_eq!(paths.len(), 84, "{paths:?}");
        for path in
            ["/v1/status", "/v1/transactions", "/v1/markets/{base}/{quote}/curves", "/v1/validator", "/v1/validators"]
        {
            assert!(paths.iter().any(|known| *known == path), "{path}");
        }
        send(server, &pay(1, 1, 1));
        let request = b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
        let (status, _, body) = exchange(server, request);
        let text = String::from_utf8(body).expect("text");
        assert_eq!(status, 200);
        for line in [
            "walras_block_height 1",
            "walras_committed_transactions_total 1",
            "walras_submitted_transactions_total{code=\"pending\"} 1",
        ] {
            assert!(text.contains(line), "{line} is missing:\n{text}");
        }
        assert!(
            text.contains("# TYPE walras_committed_transactions_total counter\n") && !text.contains("# EOF"),
            "{text}"
        );
        let accepting = "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\
            Accept: application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.4\r\n\r\n";
        let (_, headers, body) = exchange(server, accepting.as_bytes());
        let text = String::from_utf8(body).expect("text");
        assert!(text.contains("# TYPE walras_committed_transactions counter\n") && text.ends_with("# EOF\n"), "{text}");
        assert!(headers.contains("application/openmetrics-text; version=1.0.0"), "{headers}");
        for (path, body) in [("/healthz", "alive\n"), ("/readyz", "ready\n")] {
            let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
            assert_eq!(exchange(server, request.as_bytes()).2, body.as_bytes());
        }
    });
}

/// A connection that has sent the head of a request but not its body.
fn slow_post(server: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(server).expect("listens");
    let head = "POST /v1/transactions HTTP/1.1\r\nHost: localhost\r\n\
                Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{";
    stream.write_all(head.as_bytes()).expect("sent");
    stream
}

fn look(server: SocketAddr, path: &str) -> (u16, Value) {
    call(server, "GET", path, "", b"")
}

#[test]
fn slow_senders_keep_nobody_from_being_served() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut config = config();
    (config.http.concurrent_requests, config.http.body_seconds) = (4, 2);
    with_node(config, &directory.path().join("data"), |server| {
        let mut slow: Vec<TcpStream> = (0..40).map(|_| slow_post(server)).collect();
        for path in ["/healthz", "/readyz", "/metrics", "/v1/status"] {
            assert_eq!(look(server, path).0, 200, "{path}");
        }
        let mut answer = String::new();
        slow[0].read_to_string(&mut answer).expect("it is closed");
        assert!(answer.starts_with("HTTP/1.1 408 ") && answer.contains("\"too_slow\""), "{answer}");
    });
}

#[test]
fn idle_connections_are_closed_and_one_address_has_its_share() {
    let directory = tempfile::tempdir().expect("a directory");
    let probes = sockets::free_address().expect("a free port");
    let mut config = config();
    (config.http.connections_of_one, config.http.head_seconds, config.http.probes) = (6, 2, Some(probes));
    with_node(config, &directory.path().join("data"), move |server| {
        let mut idle: Vec<TcpStream> = (0..6).map(|_| TcpStream::connect(server).expect("listens")).collect();
        // The door is full for this address; new connections are closed at once, and probes are answered elsewhere.
        let mut turned_away = TcpStream::connect(server).expect("listens");
        assert_eq!(turned_away.read(&mut [0; 1]).unwrap_or(0), 0);
        for path in ["/healthz", "/readyz", "/metrics"] {
            assert_eq!(look(probes, path).0, 200, "{path}");
        }
        assert_eq!(look(probes, "/v1/status").0, 404, "the probe address serves nothing else");
        for stream in &mut idle {
            // Closed without an answer, or with the answer that it was too slow.
            let _ = stream.read_to_end(&mut Vec::new());
        }
        assert_eq!(look(server, "/v1/status").0, 200);
    });
}

#[test]
fn bytes_of_bodies_are_bounded_together() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut config = config();
    (config.http.body_bytes, config.http.body_bytes_waiting) = (1_000, 1_000);
    with_node(config, &directory.path().join("data"), |server| {
        let head = "POST /v1/transactions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n";
        let mut held = None;
        let mut seen = (0, json!(null));
        for _ in 0..500 {
            // It may overlap with the previous request and be rejected itself: then another one is held.
            let mut stream = TcpStream::connect(server).expect("listens");
            stream.write_all(&[head.as_bytes(), &[b' '; 900]].concat()).expect("sent");
            held = Some(stream);
            std::thread::sleep(std::time::Duration::from_millis(10));
            seen = call(server, "POST", "/v1/transactions", "application/json", &[b' '; 200]);
            if seen.0 == 429 {
                break;
            }
        }
        assert_eq!((seen.0, &seen.1["error"]["code"]), (429, &json!("too_many_bytes")));
        drop(held);
    });
}

#[test]
fn whatever_the_library_refuses_has_the_form_of_all_errors() {
    let directory = tempfile::tempdir().expect("a directory");
    with_node(config(), &directory.path().join("data"), |server| {
        for path in ["/v1/blocks?limit=many", "/v1/blocks?limit=-1", "/v1/blocks/x", "/v1/accounts/%ff"] {
            let (status, body) = look(server, path);
            assert_eq!(status, 400, "{path}");
            assert_eq!(body["error"]["code"], "malformed", "{path}: {body}");
            assert!(body["error"]["message"].as_str().is_some_and(|message| !message.is_empty()), "{path}");
        }
    });
}

#[test]
fn a_node_takes_nothing_before_its_disk_is_full() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut config = config();
    config.store.free_bytes = u64::MAX >> 1;
    with_node(config, &directory.path().join("data"), |server| {
        let (status, answer) = send(server, &pay(1, 1, 1));
        assert_eq!((status, &answer["error"]["code"]), (503, &json!("disk_full")));
        let (status, answer) = look(server, "/readyz");
        assert_eq!((status, &answer["error"]["code"]), (503, &json!("disk_full")));
        assert!(answer["error"]["message"].as_str().is_some_and(|said| said.contains("keep_blocks")), "{answer}");
        assert_eq!(look(server, "/v1/status").0, 200, "reads still work");
    });
}

/// Every operation of the description.
fn operations(description: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let paths = description["paths"].as_object().expect("paths");
    paths.iter().flat_map(|(path, item)| item.as_object().expect("operations").values().map(move |of| (path, of)))
}

#[test]
fn the_description_says_what_each_response_is() {
    let directory = tempfile::tempdir().expect("a directory");
    with_node(config(), &directory.path().join("data"), |server| {
        let description = get(server, "/v1/openapi.json");
        let mut responses = 0;
        for (path, operation) in operations(&description) {
            for (status, response) in operation["responses"].as_object().expect("responses") {
                assert!(response["description"].as_str().is_some_and(|text| !text.is_empty()), "{path} {status}");
                responses += 1;
            }
        }
        assert!(responses > 50, "{responses}");
        let schemas = &description["components"]["schemas"];
        // One name, one meaning: the node's status is not its validator's.
        assert!(schemas["NodeStatus"]["properties"]["mempool"].is_object());
        assert!(schemas["ValidatorStatus"]["properties"]["peers"].is_object());
    });
}

/// Waits for the receipt of an Ethereum transaction.
fn executed(server: SocketAddr, hash: &Value) -> Value {
    let path = format!("/v1/ethereum/{}?proof=true", hash.as_str().expect("a hash"));
    loop {
        let found = get(server, &path);
        if found["status"] == "committed" {
            return found;
        }
        assert_eq!(found["status"], "pending");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// A contract is deployed and called by raw bytes and by hexadecimal; receipts have logs and proofs, also after a
/// restart; and rejected transactions get a reason.
#[test]
fn ethereum_transactions_come_in_and_their_receipts_are_found() {
    const ETHER: u128 = 1_000_000_000_000_000_000;
    // Adds one to slot 0 and logs the sum.
    const COUNTER: &[u8] = &[0x5f, 0x54, 0x60, 1, 0x01, 0x80, 0x5f, 0x55, 0x5f, 0x52, 0x60, 32, 0x5f, 0xa0, 0x00];
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let (genesis, key) = with_contracts();
    let counter = contract_address(&key.address(), 0);
    let (gas_limit, max_fee) = (200_000, ETHER / 10_000_000);
    let request = move |nonce, to| EthereumRequest { chain: 7, nonce, to, gas_limit, max_fee, ..Default::default() };
    let creation = [&[0x60, COUNTER.len() as u8, 0x80, 0x60, 9, 0x5f, 0x39, 0x5f, 0xf3], COUNTER].concat();
    let creates = key.sign(&EthereumRequest { data: creation, ..request(0, None) });
    let calls: Vec<Vec<u8>> = (1..4).map(|nonce| key.sign(&request(nonce, Some(counter)))).collect();
    let hash = with_node_of(genesis.clone(), config(), &data, move |server| {
        let (status, sent) = call(server, "POST", "/v1/ethereum", "application/octet-stream", &creates);
        assert_eq!((status, &sent["status"]), (202, &json!("pending")), "{sent}");
        let created = executed(server, &sent["hash"]);
        assert_eq!(created["receipt"]["contract"], counter.to_string(), "{created}");
        let hex: Vec<String> = calls.iter().map(|bytes| format!("0x{}", to_hex(bytes))).collect();
        let body = json!({ "transactions": hex }).to_string();
        let (status, batch) = call(server, "POST", "/v1/ethereum/batch", "application/json", body.as_bytes());
        assert_eq!(status, 200, "{batch}");
        for (at, result) in batch["results"].as_array().expect("results").iter().enumerate() {
            let found = executed(server, &result["hash"]);
            let receipt = &found["receipt"];
            assert_eq!(
                (&receipt["result"], &receipt["sender"]),
                (&json!("succeeded"), &json!(key.address().to_string()))
            );
            let data = receipt["logs"][0]["data"].as_str().expect("a log");
            assert!(data.ends_with(&format!("{:02x}", at + 1)), "{found}");
            let text = found["proof"].as_str().expect("a proof");
            let pairs = text.as_bytes()[2..].chunks(2).map(|pair| str::from_utf8(pair).expect("digits"));
            let bytes: Vec<u8> = pairs.map(|pair| u8::from_str_radix(pair, 16).expect("digits")).collect();
            let proof: EthereumReceiptProof = borsh::from_slice(&bytes).expect("decodes");
            let digest = |field: &str| found[field].as_str().expect("text").parse::<Digest>().expect("a digest");
            let proved = proof.verify(&digest("receipts_root"), &digest("hash")).expect("holds");
            assert_eq!(proved.expect("there").gas_used.to_string(), receipt["gas_used"]);
        }
        // Sent again, the answer is its place.
        let (status, again) = call(server, "POST", "/v1/ethereum", "application/octet-stream", &calls[0]);
        assert_eq!((status, &again["status"]), (200, &json!("committed")), "{again}");
        let refused = |bytes: &[u8]| {
            let (status, said) = call(server, "POST", "/v1/ethereum", "application/octet-stream", bytes);
            (status, said["error"]["code"].as_str().unwrap_or_default().to_string())
        };
        let is = |status: u16, code: &str| (status, code.to_string());
        assert_eq!(refused(b"nonsense"), is(400, "malformed"));
        let other = key.sign(&EthereumRequest { chain: 8, ..request(4, Some(counter)) });
        assert_eq!(refused(&other), is(422, "wrong_chain"));
        assert_eq!(refused(&key.sign(&request(0, Some(counter)))), is(422, "nonce_too_low"));
        let dear = key.sign(&EthereumRequest { value: 1_000_000 * ETHER, ..request(4, Some(counter)) });
        assert_eq!(refused(&dear), is(422, "insufficient_funds"));
        assert_eq!(code(server, &format!("/v1/ethereum/{}", Digest([9; 32]))), is(404, "not_found"));
        again["hash"].clone()
    });
    with_node_of(genesis, config(), &data, move |server| {
        assert_eq!(executed(server, &hash)["receipt"]["logs"].as_array().map(Vec::len), Some(1));
    });
    let data = dir.path().join("without");
    with_node(config(), &data, |server| {
        let (_, key) = with_contracts();
        let bytes = key.sign(&EthereumRequest { chain: 7, ..Default::default() });
        let (status, said) = call(server, "POST", "/v1/ethereum", "application/octet-stream", &bytes);
        assert_eq!((status, &said["error"]["code"]), (422, &json!("no_contracts")), "{said}");
    });
}
