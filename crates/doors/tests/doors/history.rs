//! The history of accounts as clients see it: pages and their cursors, definite answers about orders, and what is said
//! about what is not there.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::fake::Fake;
use crate::open::{get, loopback, send, with_node};
use doors::Answer;
use primitives::{
    Address, AssetId, Body, ClientId, ExactSide, Life, OfferPlace, OfferReplacement, Operation, PublicKey, Reference,
    ReferenceKind, Sequence, Signature, Transaction,
};
use serde_json::{Value, json};

const OWNER: PublicKey = PublicKey([1; 32]);
const OTHER: PublicKey = PublicKey([2; 32]);
/// The last height of every transaction but those of [`ending`].
const UNTIL: u64 = 50_000;

fn signed(by: PublicKey, sequence: Sequence, until: u64, operation: Operation) -> Transaction {
    let body = Body { chain: 1, account: by.address(), sequence, until, operation };
    Transaction::by_key(body, by, Signature([0; 64]))
}

fn client(byte: u8) -> ClientId {
    ClientId([byte; 16])
}

/// The owner's offer of USD at 90 EUR units, or the other's of EUR at a price that meets it.
fn offer(by: PublicKey, sequence: Sequence, amount: u64, named: u8, life: Life) -> Transaction {
    let (sell, buy, limit) = if by == OWNER { (0, 1, "90") } else { (1, 0, "0.009") };
    let limit = limit.parse().expect("a price");
    let operation =
        Operation::CreateOffer { sell: AssetId(sell), buy: AssetId(buy), amount, limit, life, client: client(named) };
    signed(by, sequence, UNTIL, operation)
}

fn place(sequence: Sequence) -> OfferPlace {
    OfferPlace { sell: AssetId(0), buy: AssetId(1), limit: "90".parse().expect("a price"), offer: sequence }
}

fn cancel(sequence: Sequence, offer: Sequence) -> Transaction {
    signed(OWNER, sequence, UNTIL, Operation::Cancel(Box::new([place(offer)])))
}

fn replace(sequence: Sequence, old: Sequence, remains: u64, amount: u64) -> Transaction {
    let limit = "90".parse().expect("a price");
    let replacement =
        OfferReplacement { old: place(old), remains, amount, limit, life: Life::Rests, client: ClientId::NONE };
    signed(OWNER, sequence, UNTIL, Operation::Replace(Box::new(replacement)))
}

fn pay(sequence: Sequence, to: Address, amount: u64) -> Transaction {
    signed(OWNER, sequence, UNTIL, Operation::Pay { to, asset: AssetId(0), amount })
}

/// An exact order of the owner to buy EUR units for at most so many USD units.
fn exact(sequence: Sequence, units: u64, bound: u64) -> Transaction {
    let (sell, buy, side, client) = (AssetId(0), AssetId(1), ExactSide::Buy, client(9));
    signed(OWNER, sequence, UNTIL, Operation::Exact { sell, buy, side, units, bound, client })
}

fn node() -> Arc<Fake> {
    let mut genesis = Fake::genesis();
    genesis.balances.push((OTHER.address(), AssetId(1), 500_000_000));
    Arc::new(Fake::of(genesis))
}

fn path(of: &str) -> String {
    format!("/v1/accounts/{}/{of}", OWNER.address())
}

fn of_client(server: SocketAddr, named: u8) -> Value {
    get(server, &path(&format!("clients/{}", client(named))))
}

fn refused(server: SocketAddr, of: &str) -> (u16, String, String) {
    let (status, body) = send(server, "GET", &path(of), "", &[]);
    let text = |field: &str| body["error"][field].as_str().unwrap_or_default().to_string();
    (status, text("code"), text("message"))
}

#[test]
fn each_end_of_an_order_is_answered() {
    let node = node();
    let long = |sequence, named| offer(OWNER, sequence, 20_000, named, Life::Rests);
    node.commit(&[long(1, 1), long(2, 2), long(3, 3), offer(OWNER, 4, 20_000, 4, Life::Until(3))]);
    node.commit(&[cancel(5, 2), replace(6, 3, 20_000, 30_000), offer(OWNER, 7, 20_000, 7, Life::OneBatch)]);
    node.commit(&[]);
    with_node(loopback(), node, |server| {
        let told = |named| {
            let fate = of_client(server, named);
            (fate["status"].clone(), fate["why"].clone(), fate["returned"].clone())
        };
        assert_eq!(told(1), (json!("resting"), json!(null), json!("0")));
        assert_eq!(told(2), (json!("ended"), json!("cancelled"), json!("20000")));
        assert_eq!(told(3), (json!("ended"), json!("replaced"), json!("0")));
        assert_eq!(told(4), (json!("ended"), json!("expired"), json!("20000")));
        assert_eq!(told(7), (json!("ended"), json!("one_batch"), json!("20000")));
        let replaced = get(server, &path("orders/6"));
        assert_eq!((&replaced["status"], &replaced["order"]["replaces"]), (&json!("resting"), &json!("3")));
        assert_eq!((&replaced["order"]["left"], &replaced["order"]["client"]), (&json!("30000"), &json!(null)));
        let orders = get(server, &path("orders"));
        let numbers: Vec<&str> = orders["orders"].as_array().expect("orders").iter().map(number_of).collect();
        assert_eq!(numbers, ["7", "6", "4", "3", "2", "1"]);
        assert_eq!((&orders["height"], &orders["known_from"]), (&json!(3), &json!(1)));
        for order in orders["orders"].as_array().expect("orders") {
            let fate = get(server, &path(&format!("orders/{}", number_of(order))));
            assert_eq!(fate["order"], *order, "the list and the single answer say the same");
        }
    });
}

fn number_of(order: &Value) -> &str {
    order["sequence"].as_str().expect("text")
}

#[test]
fn fills_add_up_over_batches_and_are_listed() {
    let node = node();
    node.commit(&[offer(OWNER, 1, 100_000, 1, Life::Rests)]);
    node.commit(&[offer(OTHER, 1, 2_000_000, 0, Life::Rests)]);
    node.commit(&[offer(OTHER, 2, 3_000_000, 0, Life::Rests)]);
    let late = node.clone();
    with_node(loopback(), node, move |server| {
        let units = |value: &Value| value.as_str().and_then(|text| text.parse::<u64>().ok()).expect("units");
        let part = of_client(server, 1);
        let fills = part["fills"].as_array().expect("fills");
        assert_eq!((&part["status"], fills.len()), (&json!("resting"), 2), "{part}");
        let sum = |field: &str| fills.iter().map(|fill| units(&fill[field])).sum::<u64>();
        assert_eq!((units(&part["sold"]), units(&part["bought"])), (sum("sold"), sum("bought")));
        assert_eq!(units(&part["sold"]) + units(&part["order"]["left"]), 100_000);
        assert_eq!((&part["order"]["sold"], &part["order"]["bought"]), (&part["sold"], &part["bought"]));
        assert_eq!(get(server, &path("orders"))["orders"][0], part["order"], "the list says what it moved, too");
        let listed = get(server, &path("fills"));
        assert_eq!(listed["fills"], part["fills"]);
        assert_eq!(get(server, &path("fills?offer=1"))["fills"], part["fills"]);
        assert_eq!(get(server, &path("fills?offer=2"))["fills"], json!([]));
        assert_eq!(get(server, &path("fills?since=3"))["fills"].as_array().map(Vec::len), Some(1));
        late.commit(&[offer(OTHER, 3, 40_000_000, 0, Life::Rests)]);
        let whole = of_client(server, 1);
        assert_eq!((&whole["status"], &whole["sold"]), (&json!("ended"), &json!("100000")), "{whole}");
        assert!(["filled", "returned"].contains(&whole["why"].as_str().expect("a reason")), "{whole}");
    });
}

/// The fill of an exact order is in the lists of fills, with what returned; one that is not filled has none.
#[test]
fn a_fill_of_an_exact_order_is_listed_with_those_of_offers() {
    let node = node();
    let supply = offer(OTHER, 1, 5_000_000, 0, Life::Rests);
    let (met, missed) = (exact(2, 500_000, 10_000), exact(3, 500_000, 10));
    node.commit(&[offer(OWNER, 1, 20_000, 1, Life::Rests), supply, met, missed]);
    with_node(loopback(), node, |server| {
        let fate = get(server, &path("orders/2"));
        assert_eq!((&fate["status"], &fate["why"]), (&json!("ended"), &json!("filled")), "{fate}");
        let [fill] = &fate["fills"].as_array().expect("fills")[..] else { panic!("{fate}") };
        assert_eq!((&fill["bought"], &fill["left"], &fill["offer"]), (&json!("500000"), &json!("0"), &json!("2")));
        assert_eq!((&fill["sold"], &fill["returned"]), (&fate["sold"], &fate["returned"]));
        assert_eq!((&fate["bought"], &fill["limit"]), (&json!("500000"), &fate["order"]["limit"]));
        let listed = get(server, &path("fills"));
        let numbers: Vec<&Value> = listed["fills"].as_array().expect("fills").iter().map(|one| &one["offer"]).collect();
        assert_eq!(numbers, ["2", "1"], "the newest first");
        assert_eq!((&listed["fills"][0], &get(server, &path("fills?offer=2"))["fills"][0]), (fill, fill));
        let missed = get(server, &path("orders/3"));
        assert_eq!((&missed["why"], &missed["returned"]), (&json!("beyond_bound"), &json!("10")));
        assert_eq!((&missed["fills"], &missed["sold"]), (&json!([]), &json!("0")));
    });
}

#[test]
fn pages_follow_their_cursors_through_every_row_once() {
    let node = node();
    for block in 0..5 {
        node.commit(&[pay(3 * block + 1, OTHER.address(), 7), pay(3 * block + 2, OTHER.address(), 8)]);
    }
    with_node(loopback(), node, |server| {
        let whole = get(server, &path("transfers"));
        let whole = whole["transfers"].as_array().expect("transfers");
        assert_eq!((whole.len(), &whole[0]["direction"], &whole[0]["kind"]), (10, &json!("out"), &json!("payment")));
        let (mut paged, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = get(server, &path(&format!("transfers?limit=3{cursor}")));
            paged.extend(page["transfers"].as_array().expect("transfers").clone());
            let Some(next) = page["next"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(&paged, whole);
        let received = get(server, &format!("/v1/accounts/{}/transfers?limit=1", OTHER.address()));
        assert_eq!(received["transfers"][0]["direction"], "in");
        assert_eq!(received["transfers"][0]["with"], OWNER.address().to_string());
    });
}

/// A payment that says what for.
fn pay_for(sequence: Sequence, kind: ReferenceKind, value: &str) -> Transaction {
    let reference = Reference::read(kind, value).expect("a reference");
    signed(
        OWNER,
        sequence,
        UNTIL,
        Operation::PayReferenced { to: OTHER.address(), asset: AssetId(0), amount: 7, reference },
    )
}

#[test]
fn a_payment_is_found_by_its_reference_at_both_sides() {
    let uetr = "8a562c67-ca16-48ba-b074-65581be6f001";
    let node = node();
    // The second begins as the first does, and 12 more characters are as long as what follows in a key.
    let texts = ["INV 1", "INV 1 of 2 parts", "INV 1 of 2 parts", "A\"&#"];
    node.commit(&[1, 2, 3, 4].map(|at| pay_for(at, ReferenceKind::Text, texts[at as usize - 1])));
    node.commit(&[
        pay_for(5, ReferenceKind::Uuid, uetr),
        pay_for(6, ReferenceKind::Number, "1107"),
        pay(7, OTHER.address(), 7),
    ]);
    with_node(loopback(), node, move |server| {
        let found = |account: PublicKey, asked: &str| -> Vec<Value> {
            let body = get(server, &format!("/v1/accounts/{}/transfers{asked}", account.address()));
            body["transfers"].as_array().expect("transfers").iter().map(|row| row["reference"].clone()).collect()
        };
        let is = |kind: &str, value: &str| json!({"kind": kind, "value": value});
        let twice = vec![is("text", texts[1]); 2];
        for account in [OWNER, OTHER] {
            assert_eq!(found(account, "?reference=INV%201"), [is("text", "INV 1")]);
            assert_eq!(found(account, "?reference=INV%201%20of%202%20parts"), twice);
            assert_eq!(found(account, "?reference=A%22%26%23&reference_kind=text"), [is("text", "A\"&#")]);
            assert_eq!(found(account, &format!("?reference={uetr}&reference_kind=uuid")), [is("uuid", uetr)]);
            let upper = uetr.to_uppercase();
            assert_eq!(found(account, &format!("?reference={upper}&reference_kind=uuid")), [is("uuid", uetr)]);
            assert_eq!(found(account, "?reference=1107&reference_kind=number"), [is("number", "1107")]);
            assert_eq!(found(account, "?reference=1107"), [json!(null); 0]);
            assert_eq!(found(account, "").iter().filter(|said| said.is_null()).count(), 1);
        }
        let paged = get(server, &path("transfers?limit=1&reference=INV%201%20of%202%20parts"));
        let next = paged["next"].as_str().expect("one more");
        let rest = get(server, &path(&format!("transfers?limit=1&reference=INV%201%20of%202%20parts&cursor={next}")));
        assert_ne!(paged["transfers"][0]["id"], rest["transfers"][0]["id"]);
        assert_eq!((&rest["transfers"].as_array().map(Vec::len), &rest["next"]), (&Some(1), &json!(null)));
        for (asked, remedy) in [
            ("?reference=x&reference_kind=iban", "text, uuid, message or number"),
            ("?reference=x&reference_kind=uuid", "groups of 8, 4, 4, 4 and 12"),
            ("?reference_kind=uuid", "pass both"),
        ] {
            let (status, code, message) = refused(server, &format!("transfers{asked}"));
            assert_eq!((status, code.as_str()), (400, "malformed"), "{asked}");
            assert!(message.contains(remedy), "{message}");
        }
    });
}

#[test]
fn a_cursor_or_a_height_that_the_node_does_not_have_gets_a_code_and_a_remedy() {
    let node = node();
    (1..=4).for_each(|sequence| node.commit(&[pay(sequence, OTHER.address(), 7)]));
    let late = node.clone();
    with_node(loopback(), node, move |server| {
        let stale = get(server, &path("transfers?limit=3"))["next"].as_str().expect("more").to_string();
        late.forget_history(3);
        for asked in [format!("transfers?cursor={stale}"), "orders?since=2".into(), "fills?since=2&cursor=4-0".into()] {
            let (status, code, message) = refused(server, &asked);
            assert_eq!((status, code.as_str()), (410, "history_gone"), "{asked}");
            assert!(message.contains("begins at block 3") && message.contains("begin again"), "{message}");
        }
        let (status, code, message) = refused(server, "balances?cursor=99-0");
        assert_eq!((status, code.as_str()), (400, "cursor_ahead"));
        assert!(message.contains("ends at 4") && message.contains("without a cursor"), "{message}");
        for bad in ["7", "x-1", "7-", "+7-0", "7-0-0", "07-0"] {
            let (status, code, message) = refused(server, &format!("orders?cursor={bad}"));
            assert_eq!((status, code.as_str()), (400, "malformed"), "{bad}: {message}");
        }
        let (status, code, message) = refused(server, &format!("clients/{}", client(9)));
        assert_eq!((status, code.as_str()), (404, "order_unknown"));
        assert!(message.contains("blocks 3 to 4"), "it says what it knows: {message}");
        assert_eq!(refused(server, "orders/77").1, "order_unknown");
        assert_eq!(refused(server, &format!("clients/{}", client(0))).1, "malformed");
        assert_eq!(refused(server, "clients/0x12").1, "malformed");
        late.forget_history(0);
        let (status, code, message) = refused(server, "orders");
        assert_eq!((status, code.as_str()), (404, "no_history"));
        assert!(message.contains("[history] keep"), "{message}");
    });
}

fn submit(server: SocketAddr, transaction: &Transaction) -> (u16, Value) {
    let bytes = borsh::to_vec(transaction).expect("memory");
    send(server, "POST", "/v1/transactions", "application/octet-stream", &bytes)
}

#[test]
fn an_order_is_pending_until_it_is_in_a_block_or_its_last_height_has_passed() {
    let node = node();
    let ending = |sequence, until, named| {
        let Operation::CreateOffer { sell, buy, amount, limit, life, .. } =
            offer(OWNER, 1, 20_000, 0, Life::Rests).body.operation
        else {
            unreachable!("an offer")
        };
        let operation = Operation::CreateOffer { sell, buy, amount, limit, life, client: client(named) };
        signed(OWNER, sequence, until, operation)
    };
    let (short, other, lost) = (ending(1, 2, 1), ending(1, 9, 2), ending(3, 9, 3));
    node.answers([&short, &other, &lost].map(|one| Answer::Pending(one.id(), None)));
    let late = node.clone();
    with_node(loopback(), node, move |server| {
        assert_eq!(submit(server, &short).0, 202);
        let pending = of_client(server, 1);
        assert_eq!((&pending["status"], &pending["until"]), (&json!("pending"), &json!("2")));
        assert_eq!((&pending["order"], &pending["known_from"]), (&json!(null), &json!(1)));
        // Another body of the number takes its place in the pool, and counts; until then either may.
        assert_eq!(submit(server, &other).0, 202);
        assert_eq!(of_client(server, 1)["status"], "pending");
        assert_eq!(of_client(server, 2)["status"], "pending");
        assert_eq!(submit(server, &lost).0, 202);
        late.commit(&[other]);
        assert_eq!(of_client(server, 2)["status"], "resting");
        let replaced = of_client(server, 1);
        assert_eq!((&replaced["status"], &replaced["why"]), (&json!("void"), &json!("number_used")), "{replaced}");
        (0..8).for_each(|_| late.commit(&[]));
        let void = of_client(server, 3);
        assert_eq!((&void["status"], &void["why"]), (&json!("void"), &json!("ended")), "above its last height");
    });
}

#[test]
fn an_order_in_a_block_above_the_index_is_pending_and_never_void() {
    let node = node();
    let order = offer(OWNER, 1, 20_000, 1, Life::Rests);
    node.answers([Answer::Pending(order.id(), None)]);
    let late = node.clone();
    with_node(loopback(), node, move |server| {
        assert_eq!(submit(server, &order).0, 202);
        late.stop_index(0);
        // Its number is used in the state: by itself.
        late.commit(&[order]);
        assert_eq!(of_client(server, 1)["status"], "pending");
    });
}

#[test]
fn a_refused_order_may_return_until_its_last_height() {
    let node = node();
    let (first, copy) = (offer(OWNER, 1, 20_000, 1, Life::Rests), offer(OWNER, 2, 5_000_000, 2, Life::Rests));
    let mut short = copy.clone();
    short.body.until = 3;
    node.commit(&[first, short]);
    let late = node.clone();
    with_node(loopback(), node, move |server| {
        let refused = of_client(server, 2);
        assert_eq!((&refused["status"], &refused["until"]), (&json!("refused"), &json!("3")), "{refused}");
        assert_eq!(refused["why"], "overdraft");
        late.commit(&[]);
        late.commit(&[]);
        assert_eq!(of_client(server, 2)["status"], "void", "its bytes are dead");
    });
}

#[test]
fn a_second_order_with_a_client_id_is_not_submitted() {
    let node = node();
    let (first, second) = (offer(OWNER, 1, 20_000, 1, Life::Rests), offer(OWNER, 2, 20_000, 1, Life::Rests));
    let third = offer(OWNER, 3, 20_000, 3, Life::Rests);
    node.answers([Answer::Pending(first.id(), None), Answer::Pending(third.id(), None)]);
    with_node(loopback(), node, move |server| {
        assert_eq!(submit(server, &first).0, 202);
        let (status, body) = submit(server, &second);
        assert_eq!((status, &body["error"]["code"]), (409, &json!("client_id_used")), "{body}");
        assert!(body["error"]["message"].as_str().is_some_and(|text| text.contains("order 1")), "{body}");
        let both = borsh::to_vec(&vec![second, third]).expect("memory");
        let (status, body) = send(server, "POST", "/v1/transactions/batch", "application/octet-stream", &both);
        assert_eq!((status, &body["results"][0]["error"]["code"]), (200, &json!("client_id_used")), "{body}");
        assert_eq!(body["results"][1]["status"], "pending", "each answer stands at its place: {body}");
    });
}
