//! What the archive holds, as clients read and check it: with nothing but a root.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::fake::Fake;
use crate::open::{bytes, get, loopback, send, with_node};
use ledger::{AccountProof, BlockReceipts, KeysProof, ModifiedProof, OfferProof, Pair, Place, ReceiptProof};
use primitives::{Address, AssetId, Body, Digest, Operation, PublicKey, Sequence, Signature, Superblock, Transaction};
use serde_json::Value;

const OWNER: PublicKey = PublicKey([1; 32]);
const OTHER: Address = Address([8; 20]);

fn signed(sequence: Sequence, operation: Operation) -> Transaction {
    let body = Body { chain: 1, account: OWNER.address(), sequence, until: 50_000, operation };
    Transaction::by_key(body, OWNER, Signature([0; 64]))
}

fn pay(sequence: Sequence, amount: u64) -> Transaction {
    signed(sequence, Operation::Pay { to: OTHER, asset: AssetId(0), amount })
}

fn offer(sequence: Sequence, limit: &str) -> Transaction {
    let operation = Operation::offer(AssetId(0), AssetId(1), 5_000, limit.parse().expect("a price"));
    signed(sequence, operation)
}

/// There is no such offer.
fn vain(sequence: Sequence) -> Transaction {
    signed(sequence, Operation::cancel(AssetId(0), AssetId(1), "7".parse().expect("a price"), 99))
}

/// Three blocks: a payment and a cancel that is refused; two offers; nothing.
fn lived() -> Arc<Fake> {
    let node = Fake::new();
    node.commit(&[pay(1, 250), vain(2)]);
    node.commit(&[offer(3, "2"), offer(4, "3")]);
    node.commit(&[]);
    Arc::new(node)
}

fn digest(body: &Value, field: &str) -> Digest {
    body[field].as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{field} of {body}"))
}

fn proof<P: borsh::BorshDeserialize>(body: &Value) -> P {
    borsh::from_slice(&bytes(&body["proof"])).expect("a proof")
}

fn with_lived(test: impl FnOnce(SocketAddr) + Send + 'static) {
    with_node(loopback(), lived(), test);
}

#[test]
fn a_block_shows_its_transactions_with_their_outcomes() {
    with_lived(|server| {
        let block = get(server, "/v1/blocks/1");
        let outcomes = block["outcomes"].as_array().expect("outcomes");
        assert_eq!(outcomes.len(), 2);
        assert_eq!(outcomes[0]["id"], pay(1, 250).id().to_string());
        assert_eq!(outcomes[0]["operation"]["type"], "pay");
        assert_eq!(outcomes[0]["operation"]["amount"], "250");
        assert_eq!(outcomes[0]["sequence"], "1");
        assert_ne!(outcomes[0]["outcome"], outcomes[1]["outcome"]);
        assert!(outcomes[1]["outcome"]["result"] == "refused", "{}", outcomes[1]["outcome"]);
        let listed = get(server, "/v1/blocks");
        let heights: Vec<u64> =
            listed["blocks"].as_array().expect("blocks").iter().filter_map(|one| one["height"].as_u64()).collect();
        assert_eq!(heights, [3, 2, 1]);
        assert_eq!(get(server, "/v1/blocks?before=3&limit=1")["blocks"][0]["height"], 2);
        assert!(get(server, "/v1/blocks/3")["outcomes"].as_array().expect("outcomes").is_empty());
    });
}

#[test]
fn the_transactions_of_a_block_come_in_pages() {
    with_lived(|server| {
        let first = get(server, "/v1/blocks/1?limit=1");
        assert_eq!((&first["more"], &first["next"]), (&true.into(), &"1".into()));
        let second = get(server, &format!("/v1/blocks/1?limit=1&cursor={}", first["next"].as_str().expect("more")));
        assert_eq!((&second["more"], &second["next"]), (&false.into(), &Value::Null));
        assert_eq!(second["outcomes"][0]["id"], vain(2).id().to_string());
        for beyond in ["cursor=2", "offset=99", "cursor=18446744073709551615"] {
            let page = get(server, &format!("/v1/blocks/1?{beyond}"));
            assert_eq!((page["outcomes"].as_array().map(Vec::len), &page["more"]), (Some(0), &false.into()));
        }
        assert_eq!(get(server, "/v1/blocks/1?limit=0")["more"], true);
    });
}

#[test]
fn raw_blocks_and_receipts_are_what_the_archive_holds() {
    let node = lived();
    with_node(loopback(), node, |server| {
        use std::io::{Read, Write};
        let raw = |path: &str| {
            let mut stream = std::net::TcpStream::connect(server).expect("listens");
            write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").expect("sent");
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).expect("answered");
            let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
            assert!(String::from_utf8_lossy(&answer[..end]).contains("application/octet-stream"), "{path}");
            answer.split_off(end + 4)
        };
        let block: Superblock = borsh::from_slice(&raw("/v1/blocks/1/raw")).expect("a block");
        assert_eq!((block.height, block.sub_blocks[0].native.len()), (1, 2));
        let receipts: BlockReceipts = borsh::from_slice(&raw("/v1/blocks/1/receipts")).expect("receipts");
        assert_eq!((receipts.height, receipts.outcomes.len()), (1, 2));
        assert_eq!(receipts.block, Superblock::digest(&block.to_bytes()));
    });
}

#[test]
fn a_receipt_is_checked_with_nothing_but_the_receipts_root() {
    with_lived(|server| {
        for (transaction, is_applied) in [(pay(1, 250), true), (vain(2), false)] {
            let body = get(server, &format!("/v1/transactions/{}?proof=true", transaction.id()));
            assert_eq!((&body["status"], &body["height"]), (&"committed".into(), &1.into()));
            assert_eq!(body["account"], OWNER.address().to_string());
            let root = digest(&body, "receipts_root");
            let shown: ReceiptProof = proof(&body);
            let found = shown.verify(&root, &transaction.id()).expect("proven").expect("in the block");
            assert_eq!(found.refusal().is_none(), is_applied);
            assert!(shown.verify(&Digest([1; 32]), &transaction.id()).is_err(), "another root");
            assert_ne!(shown.verify(&root, &pay(3, 1).id()), Ok(Some(found)), "another transaction");
        }
        let without = get(server, &format!("/v1/transactions/{}", pay(1, 250).id()));
        assert!(without["proof"].is_null() && without["receipts_root"].is_null());
    });
}

#[test]
fn accounts_and_offers_are_checked_with_nothing_but_the_state_root() {
    with_lived(|server| {
        let body = get(server, &format!("/v1/accounts/{}/proof", OWNER.address()));
        let root = digest(&body, "root");
        let state = proof::<AccountProof>(&body);
        state.verify(&root, &OWNER.address()).expect("proven");
        assert!(state.verify(&Digest([9; 32]), &OWNER.address()).is_err());
        assert!(state.verify(&root, &OTHER).is_err(), "a proof of one account says nothing about another");
        let absent = Address([0x77; 20]);
        let body = get(server, &format!("/v1/accounts/{absent}/proof"));
        proof::<AccountProof>(&body).verify(&root, &absent).expect("its absence is proven");
        let body = get(server, &format!("/v1/accounts/{}/keys/proof", OWNER.address()));
        assert_eq!((digest(&body, "root"), &body["exists"]), (root, &serde_json::json!(false)));
        let shown: KeysProof = proof(&body);
        assert_eq!(shown.verify(&root, &OWNER.address()).expect("proven"), None, "its own key signs alone");
        assert!(shown.verify(&Digest([9; 32]), &OWNER.address()).is_err(), "another root");
        for (id, limit, amount) in [(3, "2", Some("5000")), (3, "3", None), (5, "2", None)] {
            let path = format!("/v1/offers/USD/EUR/{limit}/{}/{id}/proof", OWNER.address());
            let body = get(server, &path);
            assert_eq!(body["amount"].as_str(), amount, "{path}");
            assert_eq!(digest(&body, "root"), root);
            let shown: OfferProof = proof(&body);
            let (pair, account) = (Pair { sell: AssetId(0), buy: AssetId(1) }, OWNER.address());
            let place = Place { limit: limit.parse().expect("a price"), account, id };
            let rest = shown.verify(&root, pair, &place).expect("proven");
            assert_eq!(rest.map(|rest| rest.amount.to_string()).as_deref(), amount);
            let elsewhere = Pair { sell: AssetId(1), buy: AssetId(0) };
            assert!(amount.is_none() || shown.verify(&root, elsewhere, &place).is_err());
        }
    });
}

#[test]
fn whether_a_block_changed_an_account_is_proven_both_ways() {
    with_lived(|server| {
        for (account, height, changed) in
            [(OWNER.address(), 1, true), (OTHER, 1, true), (OTHER, 2, false), (Address([0x55; 20]), 1, false)]
        {
            let body = get(server, &format!("/v1/blocks/{height}/accounts/{account}"));
            assert_eq!(body["changed"], changed, "{account} in block {height}");
            let root = digest(&body, "receipts_root");
            let shown: ModifiedProof = proof(&body);
            assert_eq!(shown.verify(&root, &account), Ok(changed), "{account} in block {height}");
        }
    });
}

#[test]
fn a_batch_is_told_with_symbols_and_without_prices_that_nobody_made() {
    with_lived(|server| {
        let batch = get(server, "/v1/blocks/2/batch");
        assert_eq!((&batch["height"], &batch["full"]), (&2.into(), &true.into()));
        assert!(batch["trades"].as_array().expect("trades").is_empty(), "both sell the same: {batch}");
        let limits = get(server, "/v1/limits");
        assert_eq!((&limits["chain"], &limits["fee_asset"]), (&"1".into(), &"USD".into()));
        let assets = get(server, "/v1/assets");
        let decimals = |at: usize| (assets["assets"][at]["symbol"].clone(), assets["assets"][at]["decimals"].clone());
        assert_eq!([decimals(0), decimals(1)], [("USD".into(), 2.into()), ("EUR".into(), 4.into())]);
        let status = get(server, "/v1/status");
        assert_eq!((&status["height"], &status["offers"], &status["engine"]), (&3.into(), &2.into(), &"solo".into()));
        assert_eq!((&status["committed"], &status["refused"]), (&3.into(), &1.into()));
    });
}

#[test]
fn an_account_is_told_with_what_its_offers_lock() {
    with_lived(|server| {
        let account = get(server, &format!("/v1/accounts/{}", OWNER.address()));
        let balance = &account["balances"][0];
        assert_eq!(
            (&balance["asset"], &balance["available"], &balance["locked"]),
            (&"USD".into(), &"989750".into(), &"10000".into())
        );
        assert_eq!(account["sequence"]["next"], "5", "a refused number is not used: {account}");
        assert_eq!(account["address"], OWNER.address().to_string());
        assert_eq!(account["checked_address"].as_str().map(str::to_lowercase), Some(OWNER.address().to_string()));
        let other = get(server, &format!("/v1/accounts/{OTHER}"));
        assert_eq!((&other["key"], &other["sequence"]["next"]), (&Value::Null, &"1".into()));
        let offers = get(server, &format!("/v1/accounts/{}/offers?after=3", OWNER.address()));
        assert_eq!(offers["offers"].as_array().map(Vec::len), Some(1));
        assert_eq!(offers["offers"][0]["id"], "4");
    });
}

/// Who waits for the certificate of a solo node would wait for ever.
#[test]
fn a_solo_node_says_at_once_that_nobody_certifies() {
    with_lived(|server| {
        for path in [
            format!("/v1/accounts/{}/proof?certified=true", OWNER.address()),
            format!("/v1/transactions/{}?certified=true", pay(1, 250).id()),
        ] {
            let (status, answer) = send(server, "GET", &path, "", &[]);
            assert_eq!(status, 404, "{path}: {answer}");
            assert!(
                answer["error"]["message"].as_str().is_some_and(|told| told.contains("nobody certifies")),
                "{answer}"
            );
        }
    });
}
