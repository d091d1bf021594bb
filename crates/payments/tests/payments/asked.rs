//! Shards answer under the scheme that a client asks for.

use crate::lane::*;
use payments::*;

/// A client that asks for an answer in a tree gets it from a shard with a BLS key, too. A shard without one refuses a
/// BLS answer.
#[test]
fn a_shard_answers_under_the_scheme_that_is_asked_for() {
    let coins = [genesis(0, 1, 100)];
    let mut nodes = bls_nodes(4, &coins);
    let payment = pay(1, &coins, vec![output(owner(2).public(), 100)]);
    let sum = bls_certify(&mut nodes, StatementKind::Confirmation, &payment, &payment.request);
    let answers = certify(&mut nodes, StatementKind::Confirmation, &payment, &payment.request);
    let committee = nodes[0].settings.committee.clone();
    for certificate in [sum, answers] {
        let receipt = receipts(&payment, &certificate).remove(0);
        receipt.verify(&committee, &mut RootCache::new(0)).expect("both hold");
    }
    let refused = |node: &mut Node, scheme: AnswerScheme| refusals(&effects(node, &scheme.ask(&payment.request)));
    assert_eq!(refused(&mut nodes[0], AnswerScheme::Share), [LaneRefusal::NoGroupKey]);
    let plain = LaneSettings { committee: committee_of(NETWORK, 0, 4, 1), ..nodes[0].settings.clone() };
    let mut plain = Node::new(plain, &coins);
    for scheme in [AnswerScheme::Bls, AnswerScheme::Share] {
        assert_eq!(refused(&mut plain, scheme).len(), 1);
        let twice = scheme.ask(&scheme.ask(&payment.request));
        assert!(matches!(refusals(&effects(&mut plain, &twice))[..], [_]), "nothing is signed");
    }
    assert_eq!(plain.validator.entries(), 0, "a refused request reserves nothing");
    let malformed = refusals(&effects(&mut nodes[0], &[5, 4, 1]));
    assert!(matches!(malformed[..], [LaneRefusal::Malformed(_)]), "{malformed:?}");
}

/// A BLS signature costs as much as some checks, also for a retry: a client that asks for many must wait.
#[test]
fn asking_for_bls_signatures_uses_up_the_budget_of_checks() {
    let coins = [genesis(0, 1, 100)];
    let committee = bls_committee(0, 4);
    let bounded = LaneSettings { checks_per_peer: 404, checks_per_tick: 404, ..settings(&committee, 0, 512) };
    let mut node = Node::new(bounded, &coins).with_bls();
    let request = AnswerScheme::Bls.ask(&pay(1, &coins, vec![output(owner(2).public(), 100)]).request);
    let refused = (0..103).find(|_| refusals(&node.request(&request)).contains(&LaneRefusal::Busy));
    assert_eq!(refused, Some(102), "the first is its address's, and 404 checks of the proved key are 101 signatures");
}
