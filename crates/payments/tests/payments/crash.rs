//! The log at every write point: power cuts, torn tails, failed syncs, retries in flight, lost and old logs.

use crate::lane;
use crate::lane::*;
use payments::*;
use primitives::Digest;
use proptest::prelude::*;

fn coins() -> Vec<Holding> {
    (0..6).map(|index| genesis(index, 1, 10)).collect()
}

fn spend(coins: &[Holding], to: u64) -> SignedPayment {
    let amount = coins.iter().map(|coin| coin.output.amount).sum();
    pay(1, coins, vec![output(owner(to).public(), amount)])
}

fn verify(node: &Node, payment: &SignedPayment, answer: &LaneAnswer) {
    let owner = owner(1).public();
    let claim = Claim { kind: StatementKind::Confirmation, owner: &owner, digest: &payment.digest };
    let mut roots = RootCache::new(0);
    roots.verify(&node.settings.committee, &claim, answer, &mut CheckBudget(1)).expect("a signature on the digest");
}

#[test]
fn nothing_is_signed_before_it_is_durable_also_for_a_retry_in_flight() {
    let coins = coins();
    let mut node = nodes(4, 8, &coins).remove(0);
    let payment = spend(&coins[..2], 2);
    let quiet = |effects: Vec<LaneEffect>| assert!(answers(effects).is_empty(), "signed before it was durable");
    quiet(node.request(&payment.request));
    quiet(node.request(&payment.request));
    quiet(node.step(LaneInput::Tick));
    quiet(node.request(&payment.request));
    quiet(node.step(LaneInput::Tick));
    let first = node.disk.bytes.len() as u64;
    let second = spend(&coins[2..3], 2);
    quiet(node.request(&second.request));
    quiet(node.step(LaneInput::Tick));
    let answered = answers(node.step(LaneInput::Synced(first)));
    assert_eq!(answered.len(), 3, "the payment and both its retries, in two trees");
    for (_, _, digest, answer) in &answered {
        assert_eq!((*digest, answer.position), (payment.digest, first));
        verify(&node, &payment, answer);
    }
    let conflicting = spend(&coins[1..3], 3);
    assert!(matches!(refusals(&node.request(&conflicting.request))[..], [LaneRefusal::Conflict { .. }]));
    let late = answers(node.sync());
    assert_eq!((late.len(), late[0].2), (1, second.digest));
    assert!(late[0].3.position > first, "positions rise");
    assert_eq!(node.validator.entries(), 3);
}

#[test]
fn a_retry_in_flight_then_a_power_cut_signs_one_payment_only() {
    let coins = coins();
    let (one, other) = (spend(&coins[..2], 2), spend(&coins[1..3], 3));
    let full = {
        let mut node = nodes(4, 1, &coins).remove(0);
        node.request(&one.request);
        node.disk.bytes.len() - node.disk.durable
    };
    for kept in 0..=full {
        let mut node = nodes(4, 1, &coins).remove(0);
        assert!(answers(node.request(&one.request)).is_empty());
        assert!(answers(node.request(&one.request)).is_empty(), "a retry while the sync is in flight");
        let mut node = node.crash(kept, &[]);
        // No one got an answer to `one`. If its record survived, it stands; otherwise another may take its place.
        let (first, second) = if kept == full { (&one, &other) } else { (&other, &one) };
        let answer = node.ask(&first.request).expect("no output is frozen");
        verify(&node, first, &answer);
        assert!(matches!(node.ask(&second.request), Err(LaneRefusal::Conflict { .. })), "kept {kept}");
    }
}

#[test]
fn a_failed_sync_stops_signing_for_good() {
    let coins = coins();
    let mut node = nodes(4, 1, &coins).remove(0);
    let payment = spend(&coins[..1], 2);
    node.request(&payment.request);
    assert_eq!(node.step(LaneInput::SyncFailed), [LaneEffect::Mute(MuteReason::SyncFailed)]);
    assert_eq!(node.step(LaneInput::SyncFailed), [], "said once");
    let later = LaneInput::Synced(node.disk.bytes.len() as u64);
    assert_eq!(node.step(later), [], "a later success proves nothing about the lost pages");
    let refused = refusals(&node.request(&payment.request));
    assert_eq!(refused, [LaneRefusal::Muted(MuteReason::SyncFailed)]);
    // After a restart only what reached the disk counts.
    let mut node = node.crash(0, &[]);
    node.ask(&spend(&coins[..1], 3).request).expect("no one got an answer to the first payment");
}

#[test]
fn a_missing_foreign_or_damaged_log_mutes() {
    let coins = coins();
    let committee = committee(4);
    let settings = settings(&committee, 0, 1);
    let key = || validator_key(0, 0, 0);
    let muted = |log: Option<&Vec<u8>>| LaneValidator::open(settings.clone(), key(), [0; 32], log).0.muted();
    assert_eq!(muted(None), Some(MuteReason::MissingLog));
    assert_eq!(muted(Some(&Vec::new())), Some(MuteReason::DamagedLog));
    assert_eq!(muted(Some(&fresh_log(&lane::settings(&committee, 1, 1)).bytes)), Some(MuteReason::ForeignLog));
    let (mut validator, _) = LaneValidator::open(settings.clone(), key(), [0; 32], None::<&Vec<u8>>);
    let request = spend(&coins[..1], 2).request;
    let effects = validator.step(&Vec::new(), LaneInput::Request { peer: 1, bytes: &request });
    assert_eq!(refusals(&effects), [LaneRefusal::Muted(MuteReason::MissingLog)]);
    // Each byte of a log whose later batches record that it was durable.
    let mut node = Node::new(settings.clone(), &coins);
    node.ask(&spend(&coins[..1], 2).request).unwrap();
    let first = node.disk.bytes.len();
    node.ask(&spend(&coins[1..2], 2).request).unwrap();
    for at in 0..first {
        let mut disk = node.disk.clone();
        disk.bytes[at] ^= 0x40;
        assert!(muted(Some(&disk.bytes)).is_some(), "byte {at} is damaged and not reported");
    }
    assert_eq!(muted(Some(&node.disk.bytes)), None);
}

#[test]
fn a_log_older_than_its_own_signatures_mutes() {
    let coins = coins();
    let mut nodes = nodes(4, 1, &coins);
    let backup = nodes[0].disk.clone();
    let payment = spend(&coins[..1], 1);
    let certificate = certify(&mut nodes, StatementKind::Confirmation, &payment, &payment.request);
    let receipt = receipts(&payment, &certificate).remove(0);
    assert!(nodes[1].ask(&receipt.settle_request()).is_ok());
    let highest = nodes[1].validator.roots().highest(0, 0, 0).expect("a peer has seen it").0;
    assert_eq!(highest.position, nodes[0].disk.durable as u64);
    nodes[0].disk = backup;
    let old = nodes.remove(0);
    let mut old = old.crash(0, &[]);
    let effects = old.request(&receipt.settle_request());
    assert!(effects.contains(&LaneEffect::Mute(MuteReason::RolledBackLog)), "{effects:?}");
    assert!(answers(effects).is_empty());
    let other = spend(&coins[..1], 3);
    assert_eq!(old.ask(&other.request), Err(LaneRefusal::Muted(MuteReason::RolledBackLog)));
}

#[test]
fn clients_cannot_write_bytes_that_pass_for_a_mark() {
    // The payload of a payment looks like a mark in everything but the key of its check.
    let coins = coins();
    let mut forged = [0; 32];
    forged[..5].copy_from_slice(&[8, 0, 0, 0, 1]);
    forged[5..13].copy_from_slice(&u64::MAX.to_le_bytes());
    let payment = pay(1, &coins[..1], vec![output(primitives::PublicKey(forged), 10)]);
    let mut node = nodes(4, 1, &coins).remove(0);
    node.request(&payment.request);
    let torn = node.disk.bytes.len() - node.disk.durable;
    let tail = node.disk.bytes[node.disk.durable..].to_vec();
    let mut torn_tail = tail[..torn].to_vec();
    torn_tail[0] ^= 1;
    let node = node.crash(0, &torn_tail);
    assert_eq!(node.validator.muted(), None, "a torn tail, not damage");
}

#[test]
fn the_same_payment_gets_the_same_answer_after_every_restart() {
    let coins = coins();
    let mut node = nodes(4, 1, &coins).remove(0);
    let payment = spend(&coins[..3], 2);
    let first = node.ask(&payment.request).unwrap();
    for _ in 0..3 {
        node = node.crash(0, &[]);
        assert_eq!(node.ask(&payment.request), Ok(first.clone()));
    }
}

#[test]
fn an_acknowledgement_is_durable_before_it_is_signed_and_survives() {
    let coins = coins();
    let mut nodes = nodes(4, 8, &coins);
    let payment = spend(&coins[..1], 2);
    let certificate = certify(&mut nodes, StatementKind::Confirmation, &payment, &payment.request);
    let request = receipts(&payment, &certificate)[0].settle_request();
    let mut node = nodes.remove(3);
    assert!(node.request(&request).is_empty());
    assert!(answers(node.step(LaneInput::Tick)).is_empty(), "acknowledged before it was durable");
    let first = answers(node.sync());
    assert!(matches!(first[..], [(_, StatementKind::Acknowledgement, digest, _)] if digest == payment.digest));
    let length = node.disk.bytes.len();
    let mut node = node.crash(0, &[]);
    // Now nothing has to be written, so the answer needs no sync, and no certificate either.
    let summary = PaymentView::parse(&payment.payment).unwrap().summary();
    let mut one = certificate.clone();
    list(&mut one).truncate(1);
    node.request(&settle_request(&summary, &one));
    let again = answers(node.step(LaneInput::Tick));
    assert_eq!((again.len(), &again[0].3, node.disk.bytes.len()), (1, &first[0].3, length));
    let other = PaymentView::parse(&spend(&coins[1..2], 2).payment).unwrap().summary();
    let refused = refusals(&node.request(&settle_request(&other, &certificate)));
    assert!(matches!(refused[..], [LaneRefusal::WrongSignature(_)]), "a certificate of another payment");
}

/// An event of a node between two requests.
#[derive(Clone, Debug)]
enum Event {
    Request(usize),
    Tick,
    Sync,
    Crash { kept: usize, garbage: Vec<u8> },
    FailSync,
}

fn event() -> impl Strategy<Value = Event> {
    let crash = (0..2_000usize, prop::collection::vec(any::<u8>(), 0..40));
    prop_oneof![
        6 => (0..9usize).prop_map(Event::Request),
        3 => Just(Event::Tick),
        3 => Just(Event::Sync),
        2 => crash.prop_map(|(kept, garbage)| Event::Crash { kept, garbage }),
        1 => Just(Event::FailSync),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_output_is_signed_twice_whatever_crashes(
        events in prop::collection::vec(event(), 1..60), leaves in 1..4usize
    ) {
        let coins = coins();
        // Payments that overlap in every way; many of them conflict.
        let sets = [0..1, 0..2, 1..2, 1..3, 2..3, 2..5, 3..4, 4..6, 0..6];
        let payments: Vec<SignedPayment> = sets.into_iter().map(|set| spend(&coins[set], 2)).collect();
        let mut node = nodes(4, leaves, &coins).remove(0);
        let mut signed: std::collections::BTreeMap<OutputId, Digest> = Default::default();
        for event in events {
            let effects = match event {
                Event::Request(number) => node.request(&payments[number].request),
                Event::Tick => node.step(LaneInput::Tick),
                Event::Sync => node.sync(),
                Event::Crash { kept, garbage } => {
                    let kept = kept.min(node.disk.bytes.len() - node.disk.durable);
                    node = node.crash(kept, &garbage);
                    prop_assert_eq!(node.validator.muted(), None, "a torn tail is no damage");
                    vec![]
                }
                Event::FailSync => {
                    node.step(LaneInput::SyncFailed);
                    node = node.crash(0, &[]);
                    vec![]
                }
            };
            for (_, _, digest, answer) in answers(effects) {
                prop_assert!(answer.position <= node.disk.durable as u64, "signed above what is durable");
                let payment = payments.iter().find(|payment| payment.digest == digest).unwrap();
                for input in PaymentView::parse(&payment.payment).unwrap().inputs() {
                    let before = *signed.entry(input.id).or_insert(digest);
                    prop_assert_eq!(before, digest, "two spends of one output are signed");
                }
            }
        }
        // Every signed payment always gets the same answer.
        node = node.crash(0, &[]);
        for payment in &payments {
            let inputs: Vec<_> = PaymentView::parse(&payment.payment).unwrap().inputs().collect();
            if inputs.iter().all(|input| signed.get(&input.id) == Some(&payment.digest)) {
                prop_assert!(node.ask(&payment.request).is_ok());
            }
        }
    }
}
