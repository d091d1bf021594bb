//! Logs that are closed for a restart, and the parts that operators publish.

use std::collections::BTreeMap;

use crate::lane::*;
use payments::*;
use primitives::Digest;

fn log_owner(node: &Node) -> LogOwner {
    let LaneSettings { rules, committee, validator, shard, .. } = &node.settings;
    LogOwner { network: rules.network, home: committee.epoch(), validator: *validator, shard: *shard }
}

/// Four validators that have confirmed and acknowledged a payment.
fn settled() -> (Vec<Node>, SignedPayment) {
    let coin = genesis(0, 1, 100);
    let mut nodes = nodes(4, 1, std::slice::from_ref(&coin));
    let payment = pay(1, &[coin], vec![output(owner(2).public(), 100)]);
    let certificate = certify(&mut nodes, StatementKind::Confirmation, &payment, &payment.request);
    let settle = settle_request(&summary(&payment), &certificate);
    certify(&mut nodes, StatementKind::Acknowledgement, &payment, &settle);
    (nodes, payment)
}

#[test]
fn a_closed_log_has_certificates_and_opens_no_shard() {
    let (mut nodes, payment) = settled();
    let node = &mut nodes[0];
    let owner = log_owner(node);
    assert_eq!(ClosedLog::read(&node.disk.bytes, owner), Ok(None), "it is not closed");
    // A torn write at its end is cut off, as when a shard opens it.
    let intact = node.disk.bytes.len() as u64;
    node.disk.bytes.extend([7; 40]);
    let (length, closing_bytes) = closing(&node.disk.bytes, &owner, 3).expect("readable");
    assert_eq!(length, intact);
    node.disk.bytes.truncate(length as usize);
    node.disk.bytes.extend(closing_bytes);
    let closed = ClosedLog::read(&node.disk.bytes, owner).expect("readable").expect("closed");
    assert_eq!((closed.restart, closed.payments.len(), closed.certificates.len()), (3, 1, 1));
    assert!(closed.payments.contains_key(&payment.digest) && closed.certificates.contains_key(&payment.digest));
    assert!(closed.length >= intact);
    let (again, nothing) = closing(&node.disk.bytes, &owner, 4).expect("readable");
    assert_eq!((again, nothing), (node.disk.bytes.len() as u64, Vec::new()), "it is closed once");
    let (validator, intact) =
        LaneValidator::open(node.settings.clone(), validator_key(0, 0, 0), [9; 32], Some(&node.disk.bytes));
    assert_eq!((validator.muted(), intact), (Some(MuteReason::ClosedLog), None));
}

#[test]
fn a_part_is_of_one_member_and_signed_by_it() {
    let (nodes, payment) = settled();
    let closed = |node: &Node| {
        let (length, bytes) = closing(&node.disk.bytes, &log_owner(node), 1).expect("readable");
        let mut disk = node.disk.clone();
        disk.bytes.truncate(length as usize);
        disk.bytes.extend(bytes);
        ClosedLog::read(&disk.bytes, log_owner(node)).expect("readable").expect("closed")
    };
    let (own, other) = (closed(&nodes[0]), closed(&nodes[1]));
    let certified = own.certificates[&payment.digest].clone();
    let shown = vec![
        ShownPayment { body: Some(own.payments[&payment.digest].clone()), certified: certified.clone() },
        ShownPayment { body: None, certified },
    ];
    let (registrar, keys) = (secret(5, 0), [secret(6, 0), secret(6, 1)]);
    let first = Some(LaneRegistration::make(&NETWORK, 0, 0, &keys, &registrar));
    let later = LaneRegistration::make(&NETWORK, 4, 2, &keys, &secret(5, 2)).0;
    let (network, snapshot) = (NETWORK, Digest([3; 32]));
    let logs = vec![own];
    let (registrations, boards) = (vec![later], BTreeMap::from([(4, vec![1, 2, 3]), (5, Vec::new())]));
    let part = RestartPart { network, restart: 1, snapshot, member: 0, first, logs, shown, registrations, boards };
    let parse = |bytes: &[u8]| RestartPart::parse(bytes, |member| Some(secret(5, member.into()).public()));
    let bytes = part.sign(&registrar);
    assert_eq!(parse(&bytes), Ok(part.clone()));
    assert_eq!(parse(&part.sign(&secret(5, 1))), Err(LaneRefusal::WrongRegistration));
    for at in (0..bytes.len()).step_by(97) {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert!(parse(&changed).is_err(), "byte {at}");
    }
    // Nobody puts records into another member's log.
    let foreign = RestartPart { logs: vec![other], ..part };
    assert!(matches!(parse(&foreign.sign(&registrar)), Err(LaneRefusal::Malformed(_))));
}

/// The votes of a quorum in blocks are a certificate; those of fewer are none.
#[test]
fn certificates_in_blocks_are_evidence() {
    let (nodes, payment) = settled();
    let (committee, case) = (nodes[0].settings.committee.clone(), OutputId([1; 32]));
    let posted = |votes: usize| {
        let mut posted = PostedCertificates::default();
        for member in 0..votes {
            let answer = forge(&committee, member, StatementKind::Confirmation, &owner(1).public(), payment.digest);
            let payment = payment.payment.clone();
            posted.see(&NETWORK, &BridgeOperation::Vote { case, payment, signature: None, answer });
        }
        posted.shown(4)
    };
    assert!(posted(2).is_empty());
    let shown = posted(3);
    let mut evidence = RestartEvidence::new(NETWORK, [(0, committee.clone())].into());
    assert_eq!((shown.len(), evidence.show(&shown[0].certified)), (1, Ok(())));
}
