//! Nine defects of published implementations of payment lanes. Each test excludes one of them.

use crate::lane::*;
use payments::*;
use primitives::{Digest, MAX_ISSUED, Signature};

fn one(to: u64, amount: u64) -> Vec<Output> {
    vec![output(owner(to).public(), amount)]
}

#[test]
fn payer_chosen_ids_cannot_freeze_a_victims_money() {
    let coins = [genesis(0, 1, 10), genesis(1, 2, 10)];
    let mut nodes = nodes(4, 1, &coins);
    let victims = pay(1, &coins[..1], one(3, 10));
    let certificate = certify(&mut nodes, StatementKind::Confirmation, &victims, &victims.request);
    let committee = nodes[0].settings.committee.clone();
    let victim = receipts(&victims, &certificate)[0].verify(&committee, &mut RootCache::new(0)).unwrap();
    // The attacker pays itself and claims that the result has the victim's id.
    let attackers = pay(2, &coins[1..], one(2, 10));
    let certificate = certify(&mut nodes, StatementKind::Confirmation, &attackers, &attackers.request);
    let mut own = receipts(&attackers, &certificate)[0].verify(&committee, &mut RootCache::new(0)).unwrap();
    assert_ne!(own.id, victim.id);
    own.id = victim.id;
    let freeze = pay(2, &[own], one(2, 10));
    assert_eq!(nodes[0].ask(&freeze.request), Err(LaneRefusal::ProofOfAnother(victim.id)));
    nodes[0].ask(&pay(3, &[victim], one(1, 10)).request).expect("the victim spends");
}

#[test]
fn wrapping_sums_cannot_inflate() {
    let coin = genesis(0, 1, 10);
    // Modulo 2^64 these outputs are 10.
    let outputs = [MAX_ISSUED, MAX_ISSUED, 12].map(|amount| output(owner(1).public(), amount)).to_vec();
    let result = build_payment(&rules(), &owner(1), 0, 0, vec![coin], outputs);
    let outputs = (1 << 64) + 10;
    assert_eq!(result, Err(LaneRefusal::WrongSum { asset: ASSET, inputs: 10, outputs }));
}

#[test]
fn a_resent_payment_is_no_double_spend() {
    let coins = [genesis(0, 1, 10)];
    let mut node = nodes(4, 1, &coins).remove(0);
    let payment = pay(1, &coins, one(2, 10));
    let answer = node.ask(&payment.request);
    assert!(answer.is_ok());
    assert_eq!(node.ask(&payment.request), answer);
    // Another valid signature of the owner, or none: the digest is the same, so the payment is the same.
    let other = spend_request(&payment.payment, &Signature([0; 64]), &[OutputProof::Ledger]);
    assert_eq!(node.ask(&other), answer);
    assert_eq!(node.validator.entries(), 1);
}

#[test]
fn a_refused_payment_locks_none_of_its_inputs() {
    let coins = [genesis(0, 1, 10), genesis(1, 1, 10), genesis(2, 1, 10)];
    for spent in 0..3 {
        let mut node = nodes(4, 1, &coins).remove(0);
        node.ask(&pay(1, &coins[spent..=spent], one(2, 10)).request).unwrap();
        let refused = node.ask(&pay(1, &coins, one(3, 30)).request);
        assert!(matches!(refused, Err(LaneRefusal::Conflict { output, .. }) if output == coins[spent].id));
        for free in (0..3).filter(|free| *free != spent) {
            node.ask(&pay(1, &coins[free..=free], one(4, 10)).request).expect("a half-locked input");
        }
    }
}

#[test]
fn what_is_signed_survives_a_power_cut() {
    let coins = [genesis(0, 1, 10)];
    let mut node = nodes(4, 1, &coins).remove(0);
    let payment = pay(1, &coins, one(2, 10));
    node.ask(&payment.request).unwrap();
    let mut node = node.crash(0, &[]);
    let by = payment.digest;
    assert_eq!(node.ask(&pay(1, &coins, one(3, 10)).request), Err(LaneRefusal::Conflict { output: coins[0].id, by }));
}

#[test]
fn a_tick_closes_a_tree_that_nobody_fills() {
    let coins = [genesis(0, 1, 10)];
    let mut node = nodes(4, LEAVES_MAX, &coins).remove(0);
    assert_eq!(node.request(&pay(1, &coins, one(2, 10)).request), []);
    assert!(matches!(node.step(LaneInput::Tick)[..], [LaneEffect::Append(_), LaneEffect::Sync(_)]));
    assert_eq!(answers(node.sync()).len(), 1);
}

#[test]
fn a_signature_serves_for_one_network_epoch_kind_and_place() {
    let root = Digest([1; 32]);
    let base = RootHeader {
        network: NETWORK,
        epoch: 1,
        validator: 2,
        shard: 3,
        kind: StatementKind::Confirmation,
        size: 4,
        position: 5,
        root,
    };
    let others = [
        RootHeader { network: Digest([8; 32]), ..base },
        RootHeader { epoch: 2, ..base },
        RootHeader { validator: 3, ..base },
        RootHeader { shard: 2, ..base },
        RootHeader { kind: StatementKind::Acknowledgement, ..base },
        RootHeader { size: 5, ..base },
        RootHeader { position: 4, ..base },
        RootHeader { root: Digest([2; 32]), ..base },
    ];
    assert!(others.iter().all(|other| other.bytes() != base.bytes()));
    let owners = owner_message(&NETWORK, 1, &root);
    for bytes in [base.bytes(), owners.clone()] {
        assert!(bytes.starts_with(b"walras-lane\x01"));
        assert_eq!(bytes[12..44], NETWORK.0);
        assert_eq!(bytes[44..52], 1u64.to_le_bytes());
    }
    assert_ne!(base.bytes()[52], owners[52], "what an owner signs is never what a validator signs");
    // A bare signature on the digest, as in the paper, is invalid.
    let coins = [genesis(0, 1, 10)];
    let payment = pay(1, &coins, one(2, 10));
    let bare = spend_request(&payment.payment, &owner(1).sign(&payment.digest.0), &[OutputProof::Ledger]);
    assert_eq!(nodes(4, 1, &coins)[0].ask(&bare), Err(LaneRefusal::WrongOwnerSignature));
}

/// Chains `count` payments of different owners through `nodes`, two leaves a tree, and returns their receipts.
fn chained(nodes: &mut [Node], coins: &[Holding], count: usize) -> Vec<Holding> {
    let committee = nodes[0].settings.committee.clone();
    let receipt = |number: usize| {
        let payment = pay(number as u64, &coins[number..=number], one(number as u64, 10));
        let mut collector =
            AnswerCollector::new(StatementKind::Confirmation, PaymentView::parse(&payment.payment).unwrap().summary());
        let mut certificate = None;
        for node in &mut *nodes {
            node.request(&payment.request);
            node.request(&payment.request);
            let answer = answers(node.sync()).remove(0).3;
            certificate = collector.add(&committee, &mut RootCache::new(0), answer).unwrap().or(certificate);
        }
        receipts(&payment, &certificate.unwrap())[0].verify(&committee, &mut RootCache::new(0)).unwrap()
    };
    (0..count).map(receipt).collect()
}

#[test]
fn caches_and_budgets_are_bounded() {
    let coins: Vec<Holding> = (0..12).map(|index| genesis(index, index.into(), 10)).collect();
    let mut nodes = nodes(4, 2, &coins);
    let holdings = chained(&mut nodes, &coins, 12);
    let committee = nodes[0].settings.committee.clone();
    let limits = |checks_per_peer| LaneSettings {
        checks_per_peer,
        roots_per_validator: 3,
        entries_max: 11,
        ..settings(&committee, 3, 1)
    };
    let mut node = Node::new(limits(64), &[]);
    let spend = |number: usize| pay(number as u64, &holdings[number..=number], one(99, 10)).request;
    for number in 0..11 {
        node.ask(&spend(number)).expect("each takes three checks, and each tick refills the budget");
        assert!(node.validator.roots().len() <= 4 * 3, "at most three roots of each validator, its own too");
    }
    assert_eq!(node.ask(&spend(11)), Err(LaneRefusal::Full), "the spent set has a bound");
    // Uncached roots: a peer uses up its own budget, not another's.
    let mut node = Node::new(limits(64), &[]);
    let mut refused = None;
    for turn in 0..30 {
        let mut bytes = spend(turn % 12);
        let last = bytes.len() - 1;
        // A wrong signature of the last signer: the first two are verified in vain.
        bytes[last - 32 - 63] ^= 1;
        refused = refusals(&node.step(LaneInput::Request { peer: 666, bytes: &bytes })).pop();
        assert!(refused.is_some());
    }
    assert_eq!((refused, node.validator.entries()), (Some(LaneRefusal::Busy), 0));
    assert_eq!(refusals(&node.request(&spend(0))), []);
    node.step(LaneInput::Tick);
    let again = node.step(LaneInput::Request { peer: 666, bytes: &spend(1) });
    assert_eq!(refusals(&again), [], "a tick refills the budget");
}

#[test]
fn trees_that_wait_for_the_disk_are_bounded() {
    let coins: Vec<Holding> = (0..12).map(|index| genesis(index, 1, 10)).collect();
    let committee = committee(4);
    let mut node = Node::new(LaneSettings { trees_waiting_max: 2, ..settings(&committee, 0, 1) }, &coins);
    for number in 0..3 {
        let effects = node.request(&pay(1, &coins[number..=number], one(2, 10)).request);
        assert_eq!(refusals(&effects), if number < 2 { vec![] } else { vec![LaneRefusal::Busy] });
    }
    assert_eq!(answers(node.sync()).len(), 2);
    node.ask(&pay(1, &coins[2..3], one(2, 10)).request).expect("the disk is back");
}

#[test]
fn the_layout_is_fixed_and_has_no_names_or_slack() {
    let coins = [genesis(0, 1, 10)];
    let payment = pay(1, &coins, [one(2, 4), one(1, 6)].concat());
    assert_eq!(payment.payment.len(), 83 + 44 + 2 * 45);
    assert_eq!(payment.request.len(), 1 + payment.payment.len() + 64 + 1);
    for at in 0..payment.payment.len() {
        let mut bytes = payment.payment.clone();
        bytes[at] ^= 1;
        assert!(
            PaymentView::parse(&bytes).is_ok_and(|view| view.digest() != payment.digest)
                || PaymentView::parse(&bytes).is_err()
        );
        assert!(PaymentView::parse(&payment.payment[..at]).is_err());
    }
    for value in u8::MIN..=u8::MAX {
        let mut bytes = payment.payment.clone();
        bytes[0] = value;
        assert_eq!(PaymentView::parse(&bytes).is_ok(), value == PAYMENT_VERSION);
    }
}

#[test]
fn layouts_and_contexts_are_those_that_were_released() {
    let coins = [genesis(0, 1, 10)];
    let payment = pay(1, &coins, [one(2, 4), one(1, 6)].concat());
    let mut nodes = nodes(4, 1, &coins);
    let certificate = certify(&mut nodes, StatementKind::Confirmation, &payment, &payment.request);
    let receipt = receipts(&payment, &certificate).remove(1);
    let committee = &nodes[0].settings.committee;
    let holding = receipt.verify(committee, &mut RootCache::new(0)).unwrap();
    let header = RootHeader {
        network: NETWORK,
        epoch: 1,
        validator: 2,
        shard: 3,
        kind: StatementKind::Acknowledgement,
        size: 4,
        position: 5,
        root: payment.digest,
    };
    let shards = committee_of(NETWORK, 0, 1, 1_000).shard_of(0, &owner(1).public()).unwrap();
    let hash = |bytes: &[u8]| Digest::of("walras lane golden", bytes);
    let lines = [
        format!("payment {}", hash(&payment.payment)),
        format!("digest {}", payment.digest),
        format!("request {}", hash(&payment.request)),
        format!("output {}", holding.id),
        format!("deposit {}", OutputId::of_deposit(&NETWORK, 1, &primitives::Address([2; 20]), 3)),
        format!("owner message {}", hash(&owner_message(&NETWORK, 1, &payment.digest))),
        format!("root header {}", hash(&header.bytes())),
        format!("receipt {}", hash(&receipt.encode())),
        format!("settlement {}", hash(&receipt.settle_request())),
        format!("log {}", hash(&nodes[0].disk.bytes)),
        format!("shard {shards}"),
    ];
    assert_eq!(lines.join("\n"), include_str!("golden/layouts.txt").trim());
}

/// Signatures of nobody over outputs that do not exist cost no verification; over outputs that exist each costs one,
/// and an address has a budget of them.
#[test]
fn false_signatures_cost_look_ups_or_the_budget_of_their_address() {
    let coins: Vec<Holding> = (0..60).map(|i| genesis(i, u64::from(i), 10)).collect();
    let settings = LaneSettings { checks_per_peer: 65, checks_per_tick: 130, ..settings(&committee(4), 0, 256) };
    let mut node = Node::new(settings, &coins);
    let falsified = |coin: &Holding, number: u64| {
        let payment = pay(number, std::slice::from_ref(coin), one(99, 10));
        let mut request = payment.request;
        let at = request.len() - 1 - 20;
        request[at] ^= 1;
        request
    };
    let unknown: Vec<Vec<u8>> = (0..60).map(|i| falsified(&genesis(1_000 + i, 1, 10), 1)).collect();
    let known: Vec<Vec<u8>> = coins.iter().zip(0..).map(|(coin, number)| falsified(coin, number)).collect();
    node.step(LaneInput::Connected(1, 66));
    node.step(LaneInput::Connected(2, 66));
    let send = |node: &mut Node, peer: LanePeer, requests: &[Vec<u8>]| -> Vec<LaneRefusal> {
        node.validator.verify_together(requests.iter().map(|bytes| (peer, &bytes[..])));
        requests.iter().flat_map(|bytes| refusals(&node.step(LaneInput::Request { peer, bytes }))).collect()
    };
    let refused = send(&mut node, 1, &unknown);
    assert!(refused.iter().all(|refusal| matches!(refusal, LaneRefusal::UnknownOutput(_))), "{refused:?}");
    assert_eq!(node.validator.signatures_checked(), 0);
    let refused = send(&mut node, 1, &known);
    assert!(refused.iter().all(|refusal| *refusal == LaneRefusal::WrongOwnerSignature), "{refused:?}");
    assert_eq!(node.validator.signatures_checked(), 60, "each once");
    // Another connection of the same address has what is left of the budget.
    let refused = send(&mut node, 2, &known);
    assert_eq!(refused.iter().filter(|refusal| **refusal == LaneRefusal::Busy).count(), 55, "{refused:?}");
    assert_eq!(node.validator.signatures_checked(), 65);
    // The victims are at another address, and their keys cost them nothing.
    let honest = pay(3, &coins[3..4], one(98, 10)).request;
    assert_eq!(refusals(&node.request(&honest)), []);
    // A pair of address and key that has proved itself has its own budget, beside the flood of its address.
    node.step(LaneInput::Tick);
    let mut proved = Vec::new();
    for number in [4, 5] {
        let bytes = pay(number, &coins[number as usize..][..1], one(98, 10)).request;
        proved.push(refusals(&node.step(LaneInput::Request { peer: 2, bytes: &bytes })));
    }
    send(&mut node, 1, &[&known[..3], &known[6..], &known[..3], &known[6..]].concat());
    let own = Holding { id: coins[4].id, ..coins[4].clone() };
    let query = spender_request(&NETWORK, 0, &owner(4), &own.id);
    proved.push(refusals(&node.step(LaneInput::Request { peer: 2, bytes: &query })));
    assert_eq!(proved, [vec![], vec![], vec![]]);
    let stranger = spender_request(&NETWORK, 0, &owner(30), &coins[30].id);
    assert_eq!(refusals(&node.step(LaneInput::Request { peer: 2, bytes: &stranger })), [LaneRefusal::Busy]);
}

/// A batch that is sent again finds its payments in the open tree. The bytes behind each are not copied.
#[test]
fn a_repeated_batch_is_answered_in_time_for_what_it_changes() {
    let coins: Vec<Holding> = (0..400).map(|i| genesis(i, 1, 10)).collect();
    let mut node = Node::new(settings(&committee(4), 0, 4_096), &coins);
    let requests: Vec<Vec<u8>> =
        coins.iter().map(|coin| pay(1, std::slice::from_ref(coin), one(99, 10)).request).collect();
    for _ in 0..2 {
        let effects: Vec<LaneEffect> = requests.iter().flat_map(|bytes| node.request(bytes)).collect();
        assert_eq!(refusals(&effects), []);
    }
    let before = node.disk.bytes.len();
    node.step(LaneInput::Tick);
    assert_eq!((node.validator.entries(), answers(node.sync()).len()), (400, 800));
    let logged = node.disk.bytes.len() - before;
    assert!(logged < 400 * 300, "each payment is recorded once: {logged}");
}
