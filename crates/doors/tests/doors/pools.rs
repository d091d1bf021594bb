//! What the doors tell of constant-product pools: lists, holdings, trades of batches, and proofs that need only the
//! state root.

use std::sync::Arc;

use crate::fake::Fake;
use crate::open::{bytes, get, loopback, send, with_doors, with_node};
use ledger::{Genesis, PoolProof, PoolRecord, PoolTerms, SHARES_NEW, SHARES_OF_NOBODY};
use primitives::{
    AssetId, Body, Digest, Operation, PoolKey, PoolOperation, Price, PublicKey, Sequence, Signature, Transaction,
};

const OWNER: PublicKey = PublicKey([1; 32]);
const POOL: PoolKey = PoolKey { a: AssetId(0), b: AssetId(1), class: 1 };

fn signed(sequence: Sequence, operation: Operation) -> Transaction {
    let body = Body { chain: 1, account: OWNER.address(), sequence, until: 50_000, operation };
    Transaction::by_key(body, OWNER, Signature([0; 64]))
}

/// A pool that has traded, and one that sleeps since all have left it.
fn node() -> Arc<Fake> {
    let mut genesis = Fake::genesis();
    genesis.balances = vec![(OWNER.address(), AssetId(0), 1 << 40), (OWNER.address(), AssetId(1), 1 << 40)];
    let node = Fake::of(Genesis { pools: Some(PoolTerms::default()), ..genesis });
    let on = |operation| Operation::Pool(Box::new(operation));
    let asleep = PoolKey { class: 0, ..POOL };
    let opens = [POOL, asleep].map(|pool| on(PoolOperation::Open { pool, x: 1 << 20, y: 1 << 21 }));
    let [first, second] = opens;
    node.commit(&[signed(1, first), signed(2, second)]);
    let (shares, limit) = (SHARES_NEW - SHARES_OF_NOBODY, Price::parse_rounding_up("0.1").expect("a price"));
    let leave = on(PoolOperation::Leave { pool: asleep, shares, least_a: 0, least_b: 0 });
    node.commit(&[signed(3, leave), signed(4, Operation::offer(AssetId(1), AssetId(0), 100_000, limit))]);
    Arc::new(node)
}

#[test]
fn pools_holdings_and_trades_are_told_and_proved() {
    with_node(loopback(), node(), |server| {
        let all = get(server, "/v1/pools");
        assert_eq!((&all["height"], all["fees"].as_array().map(Vec::len)), (&2.into(), Some(2)));
        let pools = all["pools"].as_array().expect("a list");
        let [asleep, awake] = &pools[..] else { panic!("{all}") };
        assert_eq!(
            (&asleep["class"], &asleep["asleep"], &asleep["reserve_a"]),
            (&0.into(), &true.into(), &"4096".into())
        );
        assert_eq!((&awake["a"], &awake["b"], &awake["asleep"]), (&"USD".into(), &"EUR".into(), &false.into()));
        let held = get(server, &format!("/v1/accounts/{}/pools", OWNER.address()));
        let held = held["holdings"].as_array().expect("a list");
        assert_eq!((held.len(), &held[0]["shares"]), (1, &(SHARES_NEW - SHARES_OF_NOBODY).to_string().into()));
        let batch = get(server, "/v1/blocks/2/batch");
        assert_eq!((&batch["pools"][0]["sell"], &batch["short"]), (&"USD".into(), &serde_json::json!([])), "{batch}");
        let outcomes = get(server, "/v1/blocks/2");
        let left = &outcomes["outcomes"][0];
        assert_eq!((&left["operation"]["type"], &left["outcome"]["result"]), (&"leave".into(), &"pooled".into()));

        let proved = get(server, "/v1/pools/EUR/USD/1/proof");
        let root: Digest = proved["root"].as_str().expect("a root").parse().expect("a digest");
        let proof: PoolProof = borsh::from_slice(&bytes(&proved["proof"])).expect("a proof");
        let number = |text: &serde_json::Value| text.as_str().expect("a number").parse::<u64>().expect("a number");
        let (a, b) = (number(&awake["reserve_a"]), number(&awake["reserve_b"]));
        assert_eq!(proof.verify_pool(&root, POOL), Ok(Some(PoolRecord { a, b, shares: SHARES_NEW })));
        let path = format!("/v1/accounts/{}/pools/USD/EUR/1/proof", OWNER.address());
        let proof: PoolProof = borsh::from_slice(&bytes(&get(server, &path)["proof"])).expect("a proof");
        let holding = (POOL, OWNER.address());
        assert_eq!(proof.verify_holding(&root, holding), Ok(Some(SHARES_NEW - SHARES_OF_NOBODY)));
        let path = format!("/v1/accounts/{}/pools/USD/EUR/0/proof", OWNER.address());
        let absent = get(server, &path);
        assert_eq!(absent["exists"], false);
        assert_eq!(send(server, "GET", "/v1/pools/USD/YEN/1/proof", "", &[]).0, 404);
    });
}

#[test]
fn whoever_provides_to_a_pool_that_sleeps_is_told_so_before_signing() {
    with_node(loopback(), node(), |server| {
        let pools = get(server, "/v1/pools");
        let least = get(server, "/v1/assets")["assets"][0]["least_units"].as_str().map(str::to_owned);
        let awake = least.and_then(|least| least.parse::<u64>().ok()).expect("units") * ledger::AWAKE;
        assert_eq!(pools["pools"][0]["awake_a"], awake.to_string());
        let says = |class: u8| {
            let mut operation =
                serde_json::json!({"a": "USD", "b": "EUR", "class": class, "most_a": "1000", "most_b": "1000"});
            operation["type"] = "provide".into();
            operation["shares"] = "10".into();
            let body = serde_json::json!({"account": OWNER.address().to_string(), "operation": operation}).to_string();
            let kind = "application/json";
            let (status, answer) = send(server, "POST", "/v1/transactions/prepare", kind, body.as_bytes());
            assert_eq!(status, 200, "{answer}");
            answer["says"].as_str().expect("words").to_owned()
        };
        let words = says(0);
        assert!(words.contains("The pool sleeps: with 40.96 USD and "), "{words}");
        assert!(words.contains("its shares earn nothing until it has 163.84 USD and "), "{words}");
        assert!(!says(1).contains("sleeps"), "{}", says(1));
    });
}

#[test]
fn a_chain_without_pools_says_so() {
    with_doors(loopback(), |server| {
        for path in
            ["/v1/pools".into(), format!("/v1/accounts/{}/pools", OWNER.address()), "/v1/pools/USD/EUR/0/proof".into()]
        {
            let (status, body) = send(server, "GET", &path, "", &[]);
            assert!(status == 404 && body.to_string().contains("no pools"), "{path}: {status} {body}");
        }
    });
}
