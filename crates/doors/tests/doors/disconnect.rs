//! What a connection of the stream leaves is submitted when it ends, and nothing else is.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::fake::Fake;
use crate::open::{loopback, with_node};
use crate::subscriber::Subscriber;
use doors::Answer;
use primitives::{
    Address, AssetId, Body, ClientId, Digest, Height, Life, OfferPlace, Operation, Price, SecretKey, Sequence,
    SessionCap, SessionOperation, SessionScope, SessionSlot, SessionTerms, Transaction, session_possession_bytes,
    slot_sequence, to_hex,
};
use serde_json::{Value, json};

fn key() -> SecretKey {
    SecretKey::from_seed([7; 32])
}

/// The session key of a slot.
fn bot(slot: SessionSlot) -> SecretKey {
    SecretKey::from_seed([40 + u8::try_from(slot).expect("few slots"); 32])
}

fn owner() -> Address {
    key().public().address()
}

fn session(operation: SessionOperation) -> Operation {
    Operation::Session(Box::new(operation))
}

fn stop(slot: SessionSlot) -> Operation {
    session(SessionOperation::Alive { slot, through: 0 })
}

fn offer() -> Operation {
    let (sell, buy, limit) = (AssetId(0), AssetId(1), "90".parse().expect("a price"));
    Operation::CreateOffer { sell, buy, amount: 20_000, limit, life: Life::Rests, client: ClientId::NONE }
}

fn cancel() -> Operation {
    let place = OfferPlace { sell: AssetId(0), buy: AssetId(1), limit: Price::ONE, offer: 1 };
    Operation::Cancel(Box::new([place]))
}

fn signed(by: &SecretKey, sequence: Sequence, until: Height, operation: Operation) -> Transaction {
    Body { chain: 1, account: owner(), sequence, until, operation }.sign(&network(), by)
}

/// What the session key of a slot signs under its n-th number.
fn of_bot(slot: SessionSlot, n: u64, until: Height, operation: Operation) -> Transaction {
    signed(&bot(slot), slot_sequence(slot, n), until, operation)
}

fn network() -> Digest {
    let node = Fake::of(genesis());
    node.network()
}

fn genesis() -> ledger::Genesis {
    let mut genesis = Fake::genesis();
    genesis.balances = vec![(owner(), AssetId(0), 10_000_000)];
    genesis
}

/// A node whose account has session keys in the slots 1 and 2, which live long.
fn node() -> Arc<Fake> {
    let node = Arc::new(Fake::of(genesis()));
    for slot in 1..=2 {
        let public = bot(slot).public();
        let possession = bot(slot).sign(&session_possession_bytes(&network(), &owner(), slot, &public));
        let caps = [SessionCap { asset: AssetId(0), units: 1_000_000 }].into();
        let terms = SessionTerms { slot, key: public, scope: SessionScope::Trade, until: 5_000, alive: 4_000, caps };
        let authorize = session(SessionOperation::Authorize { possession, terms });
        node.commit(&[signed(&key(), slot.into(), 1_000, authorize)]);
    }
    assert!(node.has_sessions(&owner(), 2), "the keys are authorised");
    node
}

fn left(transaction: &Transaction) -> Value {
    json!({"on_disconnect": format!("0x{}", to_hex(&borsh::to_vec(transaction).expect("memory")))})
}

impl Subscriber {
    fn of_bot(server: SocketAddr, slot: SessionSlot) -> Subscriber {
        let mut one = Subscriber::new(server);
        one.log_in(&bot(slot), owner(), slot);
        one
    }

    fn leaves(&mut self, transaction: &Transaction) {
        let answer = self.ask(&left(transaction));
        let (id, until) = (transaction.id().to_string(), transaction.body.until.to_string());
        assert_eq!(
            (&answer["type"], &answer["id"], &answer["until"]),
            (&json!("on_disconnect"), &json!(id), &json!(until))
        );
    }

    /// The node's answer to the connection: it holds nothing for its end any more.
    fn lost(&mut self, code: &str) {
        let told = self.hear();
        let expected = (&json!("on_disconnect"), &json!(null), &json!(code));
        assert_eq!((&told["type"], &told["id"], &told["code"]), expected, "{told}");
    }

    /// The connection is cut: nobody says goodbye.
    fn cut(self) {
        self.0.get_ref().shutdown(std::net::Shutdown::Both).expect("it was open");
    }
}

fn pending(transaction: &Transaction) -> Answer {
    Answer::Pending(transaction.id(), None)
}

#[test]
fn what_is_left_is_submitted_when_the_connection_is_cut_or_closed_and_not_when_it_is_withdrawn() {
    let node = node();
    let late = node.clone();
    with_node(loopback(), node, move |server| {
        let (first, second, closing) =
            (of_bot(1, 1, 90, stop(1)), of_bot(1, 2, 95, stop(1)), of_bot(1, 3, 95, cancel()));
        late.answers([pending(&second), pending(&closing)]);
        let mut one = Subscriber::of_bot(server, 1);
        one.leaves(&first);
        one.leaves(&second);
        one.cut();
        assert_eq!(late.next_submitted(), second, "the newest counts");
        let mut one = Subscriber::of_bot(server, 1);
        one.leaves(&closing);
        one.0.close(None).expect("open");
        assert_eq!(late.next_submitted(), closing, "a regular close says nothing about the offers");
        let mut one = Subscriber::of_bot(server, 1);
        one.leaves(&first);
        one.say(&json!({"withdraw": true}));
        one.lost("withdrawn");
        one.cut();
        // The next one shows that nothing came before it.
        let mut one = Subscriber::of_bot(server, 2);
        let last = of_bot(2, 1, 90, stop(2));
        one.leaves(&last);
        one.cut();
        assert_eq!(late.next_submitted(), last);
    });
}

#[test]
fn a_full_pool_is_asked_again_until_the_end_of_what_was_left() {
    let node = node();
    let late = node.clone();
    with_node(loopback(), node, move |server| {
        let ends = of_bot(1, 1, 4, stop(1));
        let mut one = Subscriber::of_bot(server, 1);
        one.leaves(&ends);
        one.cut();
        for _ in 0..3 {
            assert_eq!(late.next_submitted(), ends, "the pool is full");
        }
        late.commit(&[]);
        late.commit(&[]);
        let mut one = Subscriber::of_bot(server, 2);
        let last = of_bot(2, 1, 90, stop(2));
        one.leaves(&last);
        one.cut();
        // Of the first one there are at most those tries that were under way.
        while late.next_submitted() != last {}
        for _ in 0..5 {
            assert_eq!(late.next_submitted(), last, "that of a block that is past is not tried any more");
        }
        late.answers([pending(&last)]);
        while late.has_answers() {
            late.next_submitted();
        }
    });
}

#[test]
fn only_who_signed_a_stop_or_a_cancel_leaves_it() {
    let node = node();
    with_node(loopback(), node.clone(), |server| {
        let mut one = Subscriber::new(server);
        one.refuses(&left(&of_bot(1, 1, 90, stop(1))), "login_required", "the session key in slot 1");
        one.log_in(&bot(1), owner(), 1);
        one.refuses(&left(&of_bot(2, 1, 90, stop(2))), "login_required", "the session key in slot 2");
        one.refuses(&left(&signed(&key(), 3, 90, cancel())), "login_required", "the key of");
        let raised = session(SessionOperation::Alive { slot: 1, through: 900 });
        let revoked = session(SessionOperation::Revoke { slot: 1 });
        for other in [offer(), raised, revoked] {
            one.refuses(&left(&of_bot(1, 1, 90, other)), "leave_refused", "only a stop");
        }
        let forged = |seed: u8| signed(&SecretKey::from_seed([seed; 32]), slot_sequence(1, 1), 90, stop(1));
        one.refuses(&left(&forged(9)), "leave_refused", "wrong_session_key");
        let other_network = of_bot(1, 1, 90, stop(1)).body.sign(&Digest([9; 32]), &bot(1));
        one.refuses(&left(&other_network), "leave_refused", "the signature is wrong");
        let other_chain = Body { chain: 2, ..of_bot(1, 1, 90, stop(1)).body }.sign(&network(), &bot(1));
        one.refuses(&left(&other_chain), "leave_refused", "other_network");
        one.refuses(&left(&of_bot(1, 1, 2, stop(1))), "leave_refused", "(ended)");
        one.refuses(&left(&of_bot(1, 1, u64::MAX, stop(1))), "leave_refused", "(ends_too_late)");
        one.refuses(&left(&of_bot(1, 65, 90, stop(1))), "leave_refused", "(sequence_too_far)");
        one.refuses(&json!({"on_disconnect": "0xq"}), "leave_refused", "not hexadecimal");
        one.refuses(&json!({"on_disconnect": "0x00"}), "leave_refused", "not a transaction");
        // A key of one slot may stop another, and the owner leaves what it signed itself.
        one.leaves(&of_bot(1, 1, 90, stop(2)));
        one.log_in(&key(), owner(), 0);
        one.leaves(&signed(&key(), 3, 90, stop(1)));
        one.say(&json!({"withdraw": true}));
        one.lost("withdrawn");
        one.cut();
    });
    assert!(node.submitted_nothing());
}

/// A client comes back while the node still takes its old connection for open: its end does not end the new orders.
#[test]
fn of_two_connections_with_one_key_the_one_that_left_last_holds_it() {
    let node = node();
    let late = node.clone();
    with_node(loopback(), node, move |server| {
        let (before, after) = (of_bot(1, 1, 90, stop(1)), of_bot(1, 2, 90, stop(1)));
        let (mut old, mut new) = (Subscriber::of_bot(server, 1), Subscriber::of_bot(server, 1));
        old.leaves(&before);
        new.leaves(&after);
        old.lost("taken_over");
        old.cut();
        // Another slot, and another key that stops the same one, are guards of their own.
        let (other, own) = (of_bot(2, 1, 90, stop(2)), signed(&key(), 3, 90, stop(1)));
        late.answers([pending(&own), pending(&other), pending(&after)]);
        let (mut of_other, mut of_owner) = (Subscriber::of_bot(server, 2), Subscriber::new(server));
        of_other.leaves(&other);
        of_owner.log_in(&key(), owner(), 0);
        of_owner.leaves(&own);
        of_owner.cut();
        assert_eq!(late.next_submitted(), own);
        of_other.cut();
        assert_eq!(late.next_submitted(), other);
        new.cut();
        assert_eq!(late.next_submitted(), after);
    });
}

#[test]
fn who_has_left_what_cannot_count_any_more_is_told() {
    let node = node();
    let late = node.clone();
    with_node(loopback(), node, move |server| {
        let mut one = Subscriber::of_bot(server, 1);
        one.leaves(&of_bot(1, 1, 3, stop(1)));
        late.commit(&[]);
        one.lost("ended");
        one.leaves(&of_bot(1, 1, 90, stop(1)));
        late.commit(&[of_bot(1, 1, 95, offer())]);
        one.lost("sequence_used");
        one.leaves(&of_bot(1, 2, 90, stop(1)));
        late.commit(&[signed(&key(), 3, 90, session(SessionOperation::Revoke { slot: 1 }))]);
        one.lost("session_ended");
        one.refuses(&json!({"subscribe": [format!("orders:{}", owner())]}), "login_required", "log in");
        let login = one.challenge().by(&bot(1), owner());
        one.refuses(&login, "login_refused", "it is that of");
        one.cut();
    });
}

/// A client that answers no ping is gone, although nothing closes its connection.
#[test]
fn a_client_that_vanishes_is_found_out() {
    let node = node();
    let late = node.clone();
    with_node(loopback(), node, move |server| {
        let guard = of_bot(1, 1, 90, stop(1));
        late.answers([pending(&guard)]);
        let mut one = Subscriber::of_bot(server, 1);
        one.leaves(&guard);
        assert_eq!(late.next_submitted(), guard, "nobody reads, so nobody answers");
        drop(one);
    });
}

/// A connection's signatures are checked a few times a second; the next second has room again.
#[test]
fn a_connection_leaves_a_few_in_a_second() {
    with_node(loopback(), node(), |server| {
        let mut one = Subscriber::of_bot(server, 1);
        let mut forged = of_bot(1, 1, 90, stop(1));
        forged.body.until = 91;
        let codes: Vec<Value> = (0..40).map(|_| one.ask(&left(&forged))["code"].clone()).collect();
        assert!(codes.iter().filter(|code| **code == "leave_refused").count() >= 16, "{codes:?}");
        assert!(codes.iter().any(|code| *code == "too_many_left"), "{codes:?}");
        while one.ask(&left(&of_bot(1, 1, 90, stop(1))))["type"] != "on_disconnect" {}
        one.say(&json!({"withdraw": true}));
        one.lost("withdrawn");
    });
}

/// Bytes that are almost a stop end no connection, and are not held.
#[test]
fn bytes_that_are_almost_a_stop_are_refused() {
    let node = node();
    with_node(loopback(), node.clone(), |server| {
        let mut one = Subscriber::of_bot(server, 1);
        let whole = borsh::to_vec(&of_bot(1, 1, 90, stop(1))).expect("memory");
        for end in 0..whole.len() {
            let request = json!({"on_disconnect": format!("0x{}", to_hex(&whole[..end]))});
            one.refuses(&request, "leave_refused", "not a transaction");
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1 << (at % 8);
            let answer = one.ask(&json!({"on_disconnect": format!("0x{}", to_hex(&changed))}));
            assert_eq!(answer["type"], "error", "byte {at}: {answer}");
        }
        one.cut();
    });
    assert!(node.submitted_nothing());
}

#[test]
fn a_session_key_has_the_channel_of_own_orders() {
    with_node(loopback(), node(), |server| {
        let mut one = Subscriber::of_bot(server, 1);
        assert_eq!(one.ask(&json!({"subscribe": [format!("orders:{}", owner())]}))["type"], "snapshot");
    });
}
