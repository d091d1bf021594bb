//! The stream's channel of own orders: who may have it, and what it tells.

use std::sync::Arc;

use crate::fake::Fake;
use crate::open::{get, loopback, send, with_node};
use crate::subscriber::{Challenge, Subscriber};
use doors::Answer;
use primitives::{
    Address, AssetId, Body, ClientId, Digest, ExactSide, Life, OfferPlace, Operation, PublicKey, SecretKey, Sequence,
    Signature, Transaction, WalletKey,
};
use serde_json::{Value, json};
use tungstenite::Message;

const OTHER: PublicKey = PublicKey([2; 32]);

fn key() -> SecretKey {
    SecretKey::from_seed([7; 32])
}

fn owner() -> Address {
    key().public().address()
}

fn node() -> Arc<Fake> {
    let mut genesis = Fake::genesis();
    genesis.balances = vec![(owner(), AssetId(0), 1_000_000), (OTHER.address(), AssetId(1), 500_000_000)];
    Arc::new(Fake::of(genesis))
}

fn signed(by: PublicKey, sequence: Sequence, operation: Operation) -> Transaction {
    let body = Body { chain: 1, account: by.address(), sequence, until: 50_000, operation };
    Transaction::by_key(body, by, Signature([0; 64]))
}

fn offer(by: PublicKey, sequence: Sequence, amount: u64, life: Life) -> Transaction {
    let (sell, buy, limit) = if by == OTHER { (1, 0, "0.009") } else { (0, 1, "90") };
    let (limit, client) = (limit.parse().expect("a price"), ClientId::NONE);
    let (sell, buy) = (AssetId(sell), AssetId(buy));
    signed(by, sequence, Operation::CreateOffer { sell, buy, amount, limit, life, client })
}

fn own(sequence: Sequence, amount: u64, life: Life) -> Transaction {
    offer(key().public(), sequence, amount, life)
}

fn channel(of: Address) -> Value {
    json!({"subscribe": [format!("orders:{of}")]})
}

#[test]
fn only_the_owner_of_an_account_has_its_channel() {
    with_node(loopback(), node(), |server| {
        let mut one = Subscriber::new(server);
        one.refuses(&channel(owner()), "login_required", r#"send {"challenge":true}, sign it"#);
        one.refuses(&json!({"login": {"account": "0x12", "signature": "0x"}}), "no_challenge", "counts for one login");
        one.log_in(&key(), owner(), 0);
        assert_eq!(one.ask(&channel(owner()))["type"], "snapshot");
        one.refuses(&channel(OTHER.address()), "login_required", &OTHER.address().to_string());

        // A challenge is of use once, on its connection, for its account and its server.
        let (mut two, mut three) = (Subscriber::new(server), Subscriber::new(server));
        let (challenge, theirs) = (two.challenge(), three.challenge());
        assert_eq!(challenge.server, format!("localhost:{}", server.port()));
        two.refuses(&theirs.by(&key(), owner()), "login_refused", "over this challenge");
        two.refuses(&challenge.by(&key(), owner()), "no_challenge", "");
        let elsewhere = Challenge { server: "walras.example".into(), ..two.challenge() };
        two.refuses(&elsewhere.by(&key(), owner()), "login_refused", &challenge.server);
        let other_network = Challenge { network: Digest([9; 32]), ..two.challenge() };
        two.refuses(&other_network.by(&key(), owner()), "login_refused", "it names network");
        let strange = SecretKey::from_seed([8; 32]);
        let login = two.challenge().by(&strange, owner());
        two.refuses(&login, "login_refused", &format!("it is that of {}", strange.public().address()));
        for (field, bad, words) in [
            ("account", json!("0x12"), "account: "),
            ("key", json!("q"), "key: "),
            ("signature", json!("0xq"), "signature: not hexadecimal"),
            ("signature", json!("0x00"), "an ed25519 signature has 64 bytes"),
        ] {
            let mut login = two.challenge().by(&key(), owner());
            login["login"][field] = bad;
            two.refuses(&login, "login_refused", words);
        }
        two.refuses(&channel(owner()), "login_required", "log in");
        two.log_in(&key(), owner(), 0);
    });
}

#[test]
fn wallets_log_in_by_typed_data_and_a_registered_key_replaces_that_of_the_address() {
    let (wallet, new) = (WalletKey::from_bytes([5; 32]).expect("a key"), SecretKey::from_seed([9; 32]));
    let node = node();
    let register = Operation::CreateAccount { account: owner(), key: new.public() };
    node.commit(&[signed(key().public(), 1, register)]);
    with_node(loopback(), node, move |server| {
        let mut one = Subscriber::new(server);
        let address = wallet.address();
        let login = one.challenge().by_wallet(&wallet, address, 1);
        assert_eq!(one.ask(&login)["account"], address.to_string());
        let begun = one.ask(&channel(address));
        assert_eq!((&begun["type"], &begun["orders"]), (&json!("snapshot"), &json!([])), "{begun}");
        let login = one.challenge().by_wallet(&wallet, owner(), 1);
        one.refuses(&login, "login_refused", "the signature is not");
        let login = one.challenge().by_wallet(&wallet, address, 2);
        one.refuses(&login, "login_refused", "the signature is not");
        let login = one.challenge().by(&key(), owner());
        one.refuses(&login, "login_refused", "has registered another one");
        let login = one.challenge().by(&new, owner());
        assert_eq!(one.ask(&login)["account"], owner().to_string());
    });
}

/// A key that the account has replaced, perhaps since it was stolen, hears nothing more.
#[test]
fn a_login_ends_when_the_accounts_key_changes() {
    let (new, node) = (SecretKey::from_seed([9; 32]), node());
    let chain = node.clone();
    with_node(loopback(), node, move |server| {
        let mut one = Subscriber::new(server);
        one.log_in(&key(), owner(), 0);
        assert_eq!(one.ask(&channel(owner()))["type"], "snapshot");
        let register = Operation::CreateAccount { account: owner(), key: new.public() };
        chain.commit(&[signed(key().public(), 1, register)]);
        let told = one.hear();
        assert_eq!((&told["type"], &told["code"]), (&json!("error"), &json!("login_ended")), "{told}");
        one.refuses(&channel(owner()), "login_required", "log in as this account first");
        one.log_in(&new, owner(), 0);
        assert_eq!(one.ask(&channel(owner()))["type"], "snapshot");
    });
}

#[test]
fn a_connection_has_a_number_of_tries() {
    with_node(loopback(), node(), |server| {
        let mut one = Subscriber::new(server);
        for _ in 0..16 {
            let login = Challenge { nonce: [0; 32], ..one.challenge() }.by(&key(), owner());
            one.refuses(&login, "login_refused", "");
        }
        let login = one.challenge().by(&key(), owner());
        one.refuses(&login, "too_many_logins", "connect again");
        Subscriber::new(server).log_in(&key(), owner(), 0);
    });
}

#[test]
fn own_orders_are_told_as_they_are_taken_placed_filled_and_ended() {
    let node = node();
    let (first, second) = (own(1, 100_000, Life::Rests), own(2, 20_000, Life::Until(4)));
    node.answers([&first, &second].map(|one| Answer::Pending(one.id(), None)));
    let late = node.clone();
    with_node(loopback(), node, move |server| {
        let submit = |transaction: &Transaction| {
            let bytes = borsh::to_vec(transaction).expect("memory");
            send(server, "POST", "/v1/transactions", "application/octet-stream", &bytes).0
        };
        let mut one = Subscriber::new(server);
        one.log_in(&key(), owner(), 0);
        assert_eq!(submit(&first), 202);
        let begun = one.ask(&channel(owner()));
        let pending = json!([{"id": first.id().to_string(), "sequence": "1", "until": "50000"}]);
        assert_eq!((&begun["pending"], &begun["orders"]), (&pending, &json!([])), "{begun}");
        assert_eq!(submit(&second), 202);
        let states = |told: &Value| {
            let of = |order: &Value| {
                let text = |name: &str| order[name].as_str().unwrap_or("").to_string();
                (text("sequence"), text("status"), text("why"))
            };
            told["orders"].as_array().expect("orders").iter().map(of).collect::<Vec<_>>()
        };
        let state = |sequence: &str, status: &str, why: &str| (sequence.into(), status.into(), why.into());

        late.commit(&[first]);
        let placed = one.hear();
        assert_eq!((&placed["type"], &placed["height"]), (&json!("orders"), &json!(1)), "{placed}");
        assert_eq!(states(&placed), [state("1", "resting", "")]);
        assert_eq!(placed["pending"][0]["sequence"], "2", "the other one waits");
        late.commit(&[second, offer(OTHER, 1, 2_000_000, Life::Rests)]);
        let filled = one.hear();
        assert_eq!(filled["pending"], json!([]));
        assert_eq!(states(&filled)[0], state("2", "resting", ""));
        let fills = filled["fills"].as_array().expect("fills");
        assert_eq!((fills.len(), &fills[0]["offer"]), (1, &json!("1")), "{filled}");
        assert_eq!(filled["orders"][1]["left"], fills[0]["left"]);
        // Each block is told with its own height, also where the next one is there already: first the fill by another's
        // offer, of an order that has gone meanwhile, then that end and the other.
        let Operation::CreateOffer { limit, .. } = own(1, 1, Life::Rests).body.operation else { unreachable!() };
        let place = OfferPlace { sell: AssetId(0), buy: AssetId(1), limit, offer: 1 };
        let cancel = signed(key().public(), 3, Operation::Cancel(Box::new([place])));
        late.commit_all(&[&[offer(OTHER, 2, 1_000_000, Life::OneBatch)], &[cancel]]);
        let filled = one.hear();
        assert_eq!((&filled["height"], &filled["fills"][0]["height"]), (&json!(3), &json!(3)), "{filled}");
        assert_eq!(states(&filled), [state("1", "ended", "cancelled")], "{filled}");
        let ended = one.hear();
        assert_eq!((&ended["height"], &ended["fills"]), (&json!(4), &json!([])), "{ended}");
        assert_eq!(states(&ended), [state("2", "ended", "expired"), state("1", "ended", "cancelled")], "{ended}");
        // Who comes later finds the same in the snapshot, and the histories say the same.
        let mut late_one = Subscriber::new(server);
        late_one.log_in(&key(), owner(), 0);
        let begun = late_one.ask(&channel(owner()));
        assert_eq!(states(&begun), states(&ended));
        let listed = get(server, &format!("/v1/accounts/{}/orders", owner()));
        assert_eq!(begun["orders"], listed["orders"]);
        let listed = get(server, &format!("/v1/accounts/{}/fills", owner()));
        assert_eq!(begun["fills"], listed["fills"]);
    });
}

/// Both channels of an account tell the fill of an exact order, and only the outcome of one that is not filled.
#[test]
fn exact_orders_are_told_with_their_fills() {
    let node = node();
    let exact = |sequence, bound| {
        let (sell, buy, side, units) = (AssetId(0), AssetId(1), ExactSide::Buy, 500_000);
        signed(key().public(), sequence, Operation::Exact { sell, buy, side, units, bound, client: ClientId::NONE })
    };
    let block = [own(1, 20_000, Life::Rests), offer(OTHER, 1, 5_000_000, Life::Rests), exact(2, 10_000), exact(3, 10)];
    let late = node.clone();
    with_node(loopback(), node, move |server| {
        let mut orders = Subscriber::new(server);
        orders.log_in(&key(), owner(), 0);
        orders.ask(&channel(owner()));
        let mut account = Subscriber::new(server);
        account.ask(&json!({"subscribe": [format!("account:{}", owner())]}));
        late.commit(&block);
        let (told, increment) = (orders.hear(), account.hear());
        let of: Vec<&Value> = told["fills"].as_array().expect("fills").iter().map(|fill| &fill["offer"]).collect();
        assert_eq!(of, ["2", "1"], "{told}");
        let whys: Vec<&Value> = told["orders"].as_array().expect("orders").iter().map(|order| &order["why"]).collect();
        assert_eq!(whys[..2], ["beyond_bound", "filled"]);
        let [filled] = &increment["exacts"].as_array().expect("exacts")[..] else { panic!("{increment}") };
        assert_eq!((&filled["id"], &filled["side"]), (&json!("2"), &json!("buy")));
        for field in ["sell", "buy", "sold", "bought"] {
            assert_eq!(filled[field], told["fills"][0][field], "{field}");
        }
        assert_eq!(increment["fills"].as_array().map(Vec::len), Some(1), "that of the offer: {increment}");
        assert_eq!(increment["outcomes"].as_array().map(Vec::len), Some(3));
    });
}

#[test]
fn an_index_that_falls_behind_is_told_by_a_snapshot_when_it_has_followed() {
    let node = node();
    let late = node.clone();
    with_node(loopback(), node, move |server| {
        let mut one = Subscriber::new(server);
        one.log_in(&key(), owner(), 0);
        assert_eq!(one.ask(&channel(owner()))["height"], 0);
        assert_eq!(one.ask(&json!({"subscribe": ["blocks"]}))["type"], "snapshot");
        late.stop_index(0);
        for (height, transactions) in [(1, vec![own(1, 100_000, Life::Rests)]), (2, Vec::new())] {
            late.commit(&transactions);
            let told = one.hear();
            assert_eq!((&told["type"], &told["height"]), (&json!("block"), &json!(height)), "{told}");
        }
        late.stop_index(u64::MAX);
        late.commit(&[]);
        assert_eq!(one.hear()["type"], "block");
        let told = one.hear();
        let expected = (&json!("snapshot"), &json!(format!("orders:{}", owner())), &json!(3));
        assert_eq!((&told["type"], &told["channel"], &told["height"]), expected, "{told}");
        assert_eq!(told["orders"][0]["sequence"], "1");
    });
    // Without an index there is no such channel.
    let node = self::node();
    node.forget_history(0);
    with_node(loopback(), node, |server| {
        let mut one = Subscriber::new(server);
        one.log_in(&key(), owner(), 0);
        one.refuses(&channel(owner()), "no_history", "[history] keep");
    });
}

/// Requests that are almost one: each is answered or ignored, and the connection goes on.
#[test]
fn requests_that_are_almost_logins_end_no_connection() {
    with_node(loopback(), node(), |server| {
        let mut one = Subscriber::new(server);
        let whole = one.challenge().by(&key(), owner()).to_string();
        let challenge = json!({"challenge": true}).to_string();
        let cut = |text: &str| (0..text.len()).step_by(3).map(|end| text[..end].to_string()).collect::<Vec<_>>();
        let swapped = |text: &str| {
            let with = |(at, by): (usize, char)| {
                let mut changed: Vec<char> = text.chars().collect();
                changed[at] = by;
                changed.into_iter().collect::<String>()
            };
            let places = (0..text.len()).step_by(5);
            let changed = places.flat_map(|at| ['"', '0', '{', '\u{fffd}'].map(|by| (at, by))).map(with);
            changed.filter(|changed| changed != text).collect::<Vec<_>>()
        };
        for text in [cut(&whole), cut(&challenge), swapped(&whole), swapped(&challenge)].concat() {
            one.0.send(Message::text(text.clone())).expect("sent");
            one.say(&json!({"unsubscribe": ["the end"]}));
            let mut answers = (0..3).map(|_| one.hear());
            let end = answers.find(|answer| answer["code"] == "unknown_channel");
            assert!(end.is_some(), "the connection goes on after {text}");
        }
        one.refuses(&channel(owner()), "login_required", "");
    });
}
