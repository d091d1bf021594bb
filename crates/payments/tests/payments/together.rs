//! Signatures on roots that are verified with those of other requests.

use payments::*;

use crate::lane::*;

const PAYMENTS: u32 = 24;

/// Payments, each from an output of the genesis, with their certificates from trees of one leaf: no root is cached.
fn certified() -> (Vec<Node>, Vec<(SignedPayment, PaymentCertificate)>) {
    let coins: Vec<Holding> = (0..PAYMENTS).map(|i| genesis(i, u64::from(i), 10)).collect();
    let mut nodes = nodes(4, 1, &coins);
    let certify = |(coin, number): (&Holding, u64)| {
        let payment = pay(number, std::slice::from_ref(coin), vec![output(owner(number).public(), 10)]);
        let certificate = certify(&mut nodes, StatementKind::Confirmation, &payment, &payment.request);
        (payment, certificate)
    };
    let certified = coins.iter().zip(0..).map(certify).collect();
    (nodes, certified)
}

/// The payment of what `number` received, as far as the certificate holds.
fn paid_on(number: u64, payment: &SignedPayment, certificate: PaymentCertificate) -> SignedPayment {
    let receipt = receipts(payment, &certificate).remove(0);
    let id = receipt.proof.id_of(&NETWORK, &receipt.output).expect("its own");
    let holding = Holding { id, output: receipt.output, proof: OutputProof::Payment(Box::new(receipt.proof)) };
    pay(number, &[holding], vec![output(owner(90).public(), 10)])
}

fn falsified(certificate: &PaymentCertificate, place: usize) -> PaymentCertificate {
    let mut certificate = certificate.clone();
    list(&mut certificate)[place].signature.0[3] ^= 1;
    certificate
}

fn settle(payment: &SignedPayment, certificate: &PaymentCertificate) -> Vec<u8> {
    settle_request(&summary(payment), certificate)
}

/// A fresh validator that has the genesis, whose addresses may cause so many checks.
fn fresh(nodes: &[Node], checks: u32) -> Node {
    let settings = LaneSettings { checks_per_peer: checks, checks_per_tick: 4 * checks, ..nodes[0].settings.clone() };
    Node::new(LaneSettings { validator: 3, ..settings }, &nodes[0].backed)
}

/// What becomes of requests that arrive together.
fn told(node: &mut Node, requests: &[Vec<u8>], together: bool) -> Vec<Result<(), LaneRefusal>> {
    if together {
        node.validator.verify_together(requests.iter().map(|bytes| (7, &bytes[..])));
    }
    requests.iter().map(|bytes| node.ask_now(bytes)).collect()
}

impl Node {
    fn ask_now(&mut self, bytes: &[u8]) -> Result<(), LaneRefusal> {
        refusals(&self.request(bytes)).pop().map_or(Ok(()), Err)
    }
}

#[test]
fn requests_that_are_verified_together_get_the_same_answers() {
    let (nodes, certified) = certified();
    let mut requests = Vec::new();
    for (number, (payment, certificate)) in (0..).zip(&certified) {
        let false_one = falsified(certificate, number as usize % 3);
        requests.push(match number % 6 {
            0 => settle(payment, certificate),
            1 => settle(payment, &false_one),
            2 => paid_on(number, payment, certificate.clone()).request,
            3 => paid_on(number, payment, false_one).request,
            // Another's certificate.
            4 => settle(payment, &certified[0].1),
            _ => [settle(payment, certificate), vec![0]].concat(),
        });
    }
    let all = [requests.clone(), requests].concat();
    let [alone, together] = [false, true].map(|together| told(&mut fresh(&nodes, 1_000), &all, together));
    assert_eq!(alone, together);
    let holds = |of: &[Result<(), LaneRefusal>]| of.iter().filter(|told| told.is_ok()).count();
    assert_eq!(holds(&together), 2 * 2 * PAYMENTS as usize / 6, "settlements and payments, sent twice");
    let wrong = |told: &&Result<(), LaneRefusal>| matches!(told, Err(LaneRefusal::WrongSignature(_)));
    assert!(together.iter().filter(wrong).count() >= 2 * 2 * PAYMENTS as usize / 6);
}

#[test]
fn false_roots_of_a_batch_are_charged_to_their_address() {
    let (nodes, certified) = certified();
    let mut node = fresh(&nodes, 100);
    node.step(LaneInput::Connected(7, 66));
    let flood = |node: &mut Node, seed: u8| {
        let strange = |(number, (payment, certificate)): (u8, &(SignedPayment, PaymentCertificate))| {
            let mut certificate = certificate.clone();
            for answer in list(&mut certificate) {
                answer.signature.0[..3].copy_from_slice(&[seed, number, answer.validator]);
            }
            settle(payment, &certificate)
        };
        let told = told(node, &(0..).zip(&certified).map(strange).collect::<Vec<_>>(), true);
        told.iter().filter(|of| **of == Err(LaneRefusal::Busy)).count()
    };
    // Each request has three false roots: the first flood costs 72 checks, of which a batch makes all.
    assert_eq!(flood(&mut node, 1), 0);
    // Of the second, nine fit into the batch, and one check more.
    assert_eq!(flood(&mut node, 2), PAYMENTS as usize - 10);
    assert_eq!(flood(&mut node, 3), PAYMENTS as usize, "nothing is left");
    // Somebody at another address is served.
    let (payment, certificate) = &certified[0];
    let bytes = settle(payment, certificate);
    assert_eq!(refusals(&node.step(LaneInput::Request { peer: 8, bytes: &bytes })), []);
}

/// A step refuses a payment without its owner's signature before it looks at roots, and so does a batch.
#[test]
fn roots_behind_a_false_signature_of_the_owner_are_not_verified() {
    let (nodes, certified) = certified();
    let mut node = fresh(&nodes, 64);
    node.step(LaneInput::Connected(7, 66));
    let stolen = |(number, (payment, certificate)): (u64, &(SignedPayment, PaymentCertificate))| {
        let payment = paid_on(number, payment, certificate.clone());
        let mut request = payment.request;
        request[1 + payment.payment.len() + 5] ^= 1;
        request
    };
    let requests: Vec<Vec<u8>> = (0..).zip(&certified).map(stolen).collect();
    let wrong = told(&mut node, &requests, true);
    assert!(wrong.iter().all(|of| *of == Err(LaneRefusal::WrongOwnerSignature)), "{wrong:?}");
    // Each cost one check of 64: roots would have cost three more each.
    let (payment, certificate) = &certified[0];
    assert_eq!(told(&mut node, &[settle(payment, certificate)], false), [Ok(())]);
    assert!(node.validator.roots().highest(0, 0, 0).is_some(), "the roots of that one");
}

#[test]
fn a_payment_whose_certificate_the_log_has_is_paid_on_without_another_one() {
    let (nodes, certified) = certified();
    let mut node = fresh(&nodes, 64);
    let (payment, certificate) = &certified[0];
    let without = paid_on(0, payment, falsified(certificate, 0)).request;
    assert!(matches!(node.ask_now(&without), Err(LaneRefusal::WrongSignature(_))), "the log has none yet");
    assert_eq!(node.ask(&settle(payment, certificate)).map(drop), Ok(()));
    assert_eq!(node.ask(&without).map(drop), Ok(()), "the payment is certified, whatever is shown");
    // It is so after a restart, and the log has one certificate.
    let mut again = node.crash(0, &[]);
    assert_eq!(again.ask(&without).map(drop), Ok(()), "a retry");
    let (other, of_other) = &certified[1];
    let foreign = paid_on(1, other, falsified(of_other, 0)).request;
    assert!(matches!(again.ask_now(&foreign), Err(LaneRefusal::WrongSignature(_))), "not for another payment");
}
