//! Contested outputs: what a vote proves, who posts certificates, and what a late verdict leaves.

use std::sync::Arc;

use crate::lane::ledger::*;
use crate::lane::*;
use payments::*;
use primitives::{Address, Signature};

fn verify(operation: &BridgeOperation) -> Result<BridgeFact, LaneRefusal> {
    let operation = BridgeOperation::parse(&operation.encode()).expect("one encoding");
    let committee = committee(4);
    let of = |epoch| (epoch == 0).then_some(&committee);
    let budget = &mut CheckBudget(operation.cost());
    operation.verify(&NETWORK, Address([1; 20]), of, &[], &mut RootCache::new(0), budget)
}

/// A Byzantine member cannot vote for a payment that nobody made: its owner has not signed it.
#[test]
fn a_vote_for_a_payment_carries_its_owners_signature() {
    let coins = [genesis(0, 1, 10)];
    let paid = pay(1, &coins, vec![output(owner(2).public(), 10)]);
    let exit = exit_of(&contested(&coins[0], 0, 1));
    let vote = |payment: &[u8], signature| {
        let body = PaymentBody::parse(payment).expect("well-formed");
        let answer = forge(&committee(4), 1, StatementKind::Confirmation, &owner(1).public(), body.digest);
        BridgeOperation::Vote { case: coins[0].id, payment: payment.to_vec(), signature, answer }
    };
    assert!(verify(&vote(&paid.payment, Some(paid.signature))).is_ok());
    assert!(verify(&vote(&exit.payment.encode(), None)).is_ok(), "anybody may ask for an exit");
    for signature in [None, Some(Signature([0; 64]))] {
        assert_eq!(verify(&vote(&paid.payment, signature)), Err(LaneRefusal::WrongOwnerSignature));
    }
    // A shard votes with the signature that its log has.
    let mut node = nodes(1, 1, &coins).remove(0);
    node.ask(&paid.request).expect("signed");
    node.step(LaneInput::CaseOpened(contested(&coins[0], 0, 1)));
    let voted = node.step(LaneInput::Tick).into_iter().find_map(|effect| match effect {
        LaneEffect::Vote { signature, .. } => Some(signature),
        _ => None,
    });
    assert_eq!(voted, Some(Some(paid.signature)));
}

fn shown(effects: &[LaneEffect]) -> Vec<&CertifiedPayment> {
    let shown = effects.iter().filter_map(|effect| match effect {
        LaneEffect::Shown(certified) => Some(certified.as_ref()),
        _ => None,
    });
    shown.collect()
}

/// Who bars a payment and is shown its certificate, to settle it or as the proof of an input, reports it: once between
/// two ticks, and only if it holds.
#[test]
fn the_certificate_of_a_barred_payment_is_reported() {
    let coins = [genesis(0, 1, 10)];
    let mut all = nodes(5, 1, &coins);
    let payment = pay(1, &coins, vec![output(owner(2).public(), 10)]);
    let certificate = certify(&mut all[..4], StatementKind::Confirmation, &payment, &payment.request);
    let mut node = all.remove(4);
    node.step(LaneInput::CandidatesFixed(coins[0].id, vec![body(&payment)]));
    let committee = node.settings.committee.clone();
    let holding = receipts(&payment, &certificate)[0].verify(&committee, &mut RootCache::new(0)).unwrap();
    let child = pay(2, &[holding], vec![output(owner(3).public(), 10)]);
    let settle = receipts(&payment, &certificate)[0].settle_request();
    let mut forged = certificate.clone();
    list(&mut forged)[0].signature = Signature([1; 64]);
    let false_one = receipts(&payment, &forged)[0].settle_request();
    let effects = node.request(&false_one);
    assert_eq!((shown(&effects).len(), refusals(&effects).len()), (0, 1));
    for request in [settle, child.request] {
        let effects = node.request(&request);
        assert_eq!(refusals(&effects), [LaneRefusal::Barred(payment.digest)]);
        let expected = CertifiedPayment { summary: summary(&payment), certificate: certificate.clone() };
        assert_eq!(shown(&effects), [&expected]);
        assert!(shown(&node.request(&request)).is_empty(), "once between two ticks");
        node.step(LaneInput::Tick);
    }
}

/// The state in which a payment {a, b} into a key is contested through a, in the third epoch of its home, and stands by
/// votes that come an epoch before the case would expire. Nobody has a certificate of it.
fn late_verdict(coins: &[Holding], x: &Arc<PaymentBody>) -> (Bridge, Vec<BridgeEvent>) {
    let mut bridge = bridge(coins, &[4; 9]);
    pass_to(&mut bridge, 2);
    block(&mut bridge, vec![open(contested(&coins[0], 0, 1))]);
    pass_to(&mut bridge, 4);
    let votes = (0..3).map(|validator| vote(&coins[0], validator, x)).collect();
    let events = block(&mut bridge, votes);
    (bridge, events)
}

fn pass_to(bridge: &mut Bridge, epoch: HomeEpoch) {
    while bridge.clock().epoch() < epoch {
        block(bridge, Vec::new());
    }
}

/// A verdict proves the payment's outputs: they can be contested and sent home without its certificate, in the next
/// epoch too, and the exit is redeemed with the whole output in the epoch after that.
#[test]
fn outputs_that_a_late_verdict_proves_go_home_whole() {
    let coins = [genesis(0, 1, 10), genesis(1, 1, 7)];
    let paid = pay(1, &coins, vec![output(owner(2).public(), 12), output(owner(1).public(), 5)]);
    let x = body(&paid);
    let (mut bridge, events) = late_verdict(&coins, &x);
    let verdict = Verdict::Confirmed(x.digest, ConfirmedBy::Votes);
    assert_eq!(verdicts(&events), [(coins[0].id, verdict)]);
    let proven: Vec<(OutputId, Output)> = bridge.proven(0).map(|(id, output)| (*id, *output)).collect();
    let mut expected: Vec<_> = x.output_ids().zip(x.payment.outputs.iter().copied()).collect();
    expected.sort_by_key(|(id, _)| *id);
    assert_eq!(proven, expected);
    assert_eq!(bridge.backed(0).count(), 2, "what brought the units is counted once");
    // The shards of their home sign an exit, and only an exit, without another proof.
    let holding = |index: usize| {
        let (id, output) = (x.output_ids().nth(index).expect("it has two"), x.payment.outputs[index]);
        Holding { id, output, proof: OutputProof::Ledger }
    };
    let change = contested(&holding(0), 0, 2);
    let exit = exit_of(&change);
    let request = spend_request(&exit.payment.encode(), &Signature([0; 64]), &[OutputProof::Ledger]);
    let mut all = nodes(4, 1, &coins);
    for node in &mut all {
        node.step(LaneInput::SignsThrough(5));
        node.step(LaneInput::Epoch(5));
        assert_eq!(node.ask(&request), Err(LaneRefusal::UnknownOutput(change.output.id)));
        proven.iter().for_each(|(id, output)| drop(node.step(LaneInput::Proven(*id, *output))));
    }
    let mut own = Node::new(settings(&committee(4), 0, 1), &coins);
    proven.iter().for_each(|(id, output)| drop(own.step(LaneInput::Proven(*id, *output))));
    let spent = pay(2, &[holding(0)], vec![output(owner(3).public(), 12)]);
    assert_eq!(own.ask(&spent.request), Err(LaneRefusal::UnknownOutput(change.output.id)), "only exits");
    let view = exit.payment.encode();
    let signed = SignedPayment { payment: view, digest: exit.digest, signature: Signature([0; 64]), request };
    let certificate = certify(&mut all, StatementKind::Confirmation, &signed, &signed.request);
    let redeem = BridgeOperation::Redeem { payment: signed.payment.clone(), certificate };
    pass_to(&mut bridge, 6);
    let fact = verify(&redeem).expect("the committee has signed");
    assert_eq!(bridge.check(&fact), Ok(()), "redeemable for one epoch after the last in which exits are signed");
    let events = block(&mut bridge, vec![fact.clone()]);
    assert_eq!(credits(&events), [(owner(2).public().address(), 12)]);
    pass_to(&mut bridge, 7);
    assert_eq!(bridge.check(&fact), Err(BridgeRefusal::NotRedeemable(0)));
    assert_eq!(bridge.proven(0).count(), 0, "they are dropped with their epoch");
}

/// An output that a verdict proves can be contested in its turn, without a certificate.
#[test]
fn an_output_that_a_verdict_proves_is_contested_without_a_certificate() {
    let coins = [genesis(0, 1, 10)];
    let x = body(&pay(1, &coins, vec![output(owner(2).public(), 10)]));
    let mut bridge = bridge(&coins, &[4; 4]);
    let child = Holding { id: x.output_ids().next().expect("one"), output: x.payment.outputs[0], ..coins[0].clone() };
    assert_eq!(bridge.check(&open(contested(&child, 0, 2))), Err(BridgeRefusal::UnknownOutput));
    block(&mut bridge, vec![open(contested(&coins[0], 0, 1))]);
    block(&mut bridge, (0..3).map(|validator| vote(&coins[0], validator, &x)).collect());
    assert_eq!(bridge.check(&open(contested(&child, 0, 2))), Ok(()));
    assert_eq!(bridge.check(&open(contested(&child, 0, 3))), Err(BridgeRefusal::UnknownOutput), "another owner");
}

/// What is redeemed without a case is not noted: an ordinary redemption costs no entries for its change.
#[test]
fn only_verdicts_prove_outputs() {
    let coins = [genesis(0, 1, 10)];
    let to = Output { to: Recipient::Account(Address([9; 20])), ..output(owner(2).public(), 4) };
    let x = body(&pay(1, &coins, vec![to, output(owner(1).public(), 6)]));
    let mut bridge = bridge(&coins, &[4; 4]);
    block(&mut bridge, vec![BridgeFact::Redeem(x)]);
    assert_eq!(bridge.proven(0).count(), 0);
}
