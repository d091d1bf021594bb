//! The BLS scheme and shared batch trees, end to end; evidence, watchers and the audit over real logs.

use std::collections::{BTreeMap, BTreeSet};

use crate::lane::*;
use payments::*;
use primitives::{Address, Digest};

#[test]
fn money_moves_and_settles_under_the_bls_scheme() {
    for n in [4, 7] {
        let coins = [genesis(0, 1, 100)];
        let mut nodes = bls_nodes(n, &coins);
        let committee = nodes[0].settings.committee.clone();
        let first = pay(1, &coins, vec![output(owner(2).public(), 60), output(owner(1).public(), 40)]);
        // The collector drops a wrong signature when the sum fails, so that the next answer completes it.
        let certificate = bls_certify(&mut nodes, StatementKind::Confirmation, &first, &first.request);
        let receipt = receipts(&first, &certificate).remove(0);
        assert_eq!(FastReceipt::parse(&receipt.encode()), Ok(receipt.clone()));
        let mut roots = RootCache::new(0);
        let holding = receipt.verify(&committee, &mut roots).expect("offline, with keys alone");
        let request = receipt.settle_request();
        let acknowledgement = bls_certify(&mut nodes, StatementKind::Acknowledgement, &first, &request);
        let settled = SettledReceipt { fast: receipt, acknowledgement };
        assert_eq!(settled.verify(&committee, &mut roots), Ok(holding.clone()));
        let second = pay(2, &[holding], vec![output(owner(3).public(), 60)]);
        bls_certify(&mut nodes, StatementKind::Confirmation, &second, &second.request);
        let plain = committee_of(NETWORK, 0, n, 1);
        assert_eq!(settled.verify(&plain, &mut roots), Err(LaneRefusal::WrongBlsKey), "no BLS keys are registered");
    }
}

/// Where a generation gave a group key, q shares make the certificate; where too few members sign with a share, the
/// aggregate is used. Both can be spent.
#[test]
fn money_moves_under_the_group_key_and_falls_back_to_the_aggregate() {
    let coins = [genesis(0, 1, 100)];
    let plain = bls_committee(0, 4);
    let mut board = KeyGeneration::new(DkgTerms::of(&plain).expect("keys"));
    (0..4).for_each(|dealer| board.deal(dealing(board.terms(), dealer, &[dealer; 32])).expect("correct"));
    board.close_dealing();
    board.finish().expect("a group key");
    let committee = plain.with_threshold(&board).expect("its own");
    for with_share in [4, 2] {
        let node = |validator: usize| {
            let mut node = Node::new(settings(&committee, validator, 4), &coins).with_bls();
            let share = board.share(validator as u8, &bls_key(0, validator)).filter(|_| validator < with_share);
            if let Some(share) = share {
                node.validator = node.validator.with_share(share);
            }
            node
        };
        let mut nodes: Vec<Node> = (0..4).map(node).collect();
        let first = pay(1, &coins, vec![output(owner(2).public(), 100)]);
        let kind = StatementKind::Confirmation;
        let threshold = certify_under(AnswerScheme::Share, &mut nodes, kind, &first, &first.request);
        assert_eq!(threshold.is_some(), with_share == 4, "{with_share} shares");
        assert!(threshold.iter().all(|of| matches!(of, PaymentCertificate::Threshold(_))));
        let certificate = threshold.unwrap_or_else(|| bls_certify(&mut nodes, kind, &first, &first.request));
        let receipt = receipts(&first, &certificate).remove(0);
        let holding = receipt.verify(&committee, &mut RootCache::new(0)).expect("offline, with keys alone");
        let second = pay(2, &[holding], vec![output(owner(3).public(), 100)]);
        bls_certify(&mut nodes, kind, &second, &second.request);
    }
}

#[test]
fn an_aggregate_costs_its_share_of_the_budget() {
    let coins = [genesis(0, 1, 100)];
    let mut nodes = bls_nodes(4, &coins);
    let payment = pay(1, &coins, vec![output(owner(2).public(), 100)]);
    let certificate = bls_certify(&mut nodes, StatementKind::Confirmation, &payment, &payment.request);
    let claim = Claim { kind: StatementKind::Confirmation, owner: &owner(1).public(), digest: &payment.digest };
    let (committee, mut roots) = (nodes[0].settings.committee.clone(), RootCache::new(8));
    let mut check = |budget: &mut CheckBudget| roots.verify_certificate(&committee, &claim, &certificate, budget);
    assert_eq!(check(&mut CheckBudget(AGGREGATE_COST - 1)), Err(LaneRefusal::Busy));
    let mut budget = CheckBudget(AGGREGATE_COST);
    assert_eq!((check(&mut budget), budget.0), (Ok(()), 0));
}

fn batch(payments: &[SignedPayment], committee: &LaneCommittee) -> LaneBroker {
    LaneBroker::new(committee, payments.iter().map(|payment| payment.request.clone()).collect()).expect("one shard")
}

/// The request of a broker that wants BLS signatures, or others.
fn batch_request(broker: &LaneBroker, bls: bool) -> Vec<u8> {
    if bls { AnswerScheme::Bls.ask(&broker.request()) } else { broker.request() }
}

fn batch_answer(node: &mut Node, request: &[u8]) -> Option<BatchAnswer> {
    effects(node, request).into_iter().find_map(|effect| match effect {
        LaneEffect::BatchAnswer(7, answer) => Some(answer),
        _ => None,
    })
}

#[test]
fn one_tree_confirms_payments_of_many_clients_under_both_schemes() {
    for bls in [false, true] {
        let coins: Vec<Holding> = (0..5).map(|i| genesis(i, i.into(), 10)).collect();
        let mut nodes = if bls { bls_nodes(4, &coins) } else { nodes(4, 1, &coins) };
        let committee = nodes[0].settings.committee.clone();
        let payments: Vec<SignedPayment> =
            (0..5u64).map(|i| pay(i, &coins[i as usize..][..1], vec![output(owner(9).public(), 10)])).collect();
        // The owner of the third has already paid someone else at one validator.
        let other = pay(2, &coins[2..3], vec![output(owner(8).public(), 10)]);
        effects(&mut nodes[0], &other.request);
        let mut broker = batch(&payments, &committee);
        let mut roots = RootCache::new(8);
        let answers: Vec<BatchAnswer> =
            nodes.iter_mut().map(|node| batch_answer(node, &batch_request(&broker, bls)).expect("an answer")).collect();
        assert_eq!(
            answers.iter().map(|answer| answer.excluded.clone()).collect::<Vec<_>>(),
            [vec![2], vec![], vec![], vec![]]
        );
        let mut lie = answers[0].clone();
        lie.excluded.clear();
        assert!(broker.add(&committee, &mut roots, lie).is_err(), "the list is under the signature");
        for answer in &answers[..3] {
            broker.add(&committee, &mut roots, answer.clone()).expect("a correct answer");
        }
        let excluded_by_one = broker.certificate(&committee, 2);
        assert!(excluded_by_one.is_none(), "two of four confirm the third so far");
        broker.add(&committee, &mut roots, answers[3].clone()).expect("a correct answer");
        for index in 0..5u32 {
            let certificate = broker.certificate(&committee, index).expect("three confirm each");
            let payment = &payments[index as usize];
            let receipt = receipts(payment, &certificate).remove(0);
            assert_eq!(FastReceipt::parse(&receipt.encode()), Ok(receipt.clone()));
            let holding = receipt.verify(&committee, &mut RootCache::new(0)).expect("it verifies like any other");
            let next = pay(9, &[holding], vec![output(owner(1).public(), 10)]);
            assert!(!effects(&mut nodes[3], &next.request).iter().any(|e| matches!(e, LaneEffect::Refuse { .. })));
            // The certificate of another place is not valid here.
            let wrong = broker.certificate(&committee, (index + 1) % 5).expect("three confirm each");
            assert!(receipts(payment, &wrong)[0].verify(&committee, &mut RootCache::new(0)).is_err());
        }
        let retry = batch_answer(&mut nodes[1], &batch_request(&broker, bls)).expect("a retry is answered");
        assert_eq!((retry.signature, retry.excluded), (answers[1].signature, vec![]), "with the same signature");
        // A payment that a quorum excludes is never certified, whatever the broker does.
        assert!(!bls || matches!(broker.certificate(&committee, 0), Some(PaymentCertificate::Shared(_))));
    }
}

#[test]
fn a_shared_certificate_is_small() {
    let coins: Vec<Holding> = (0..256).map(|i| genesis(i, i.into(), 10)).collect();
    let payments: Vec<SignedPayment> =
        (0..256u64).map(|i| pay(i, &coins[i as usize..][..1], vec![output(owner(9).public(), 10)])).collect();
    let lengths = [false, true].map(|bls| {
        let mut nodes = if bls { bls_nodes(4, &coins) } else { nodes(4, 1, &coins) };
        let committee = nodes[0].settings.committee.clone();
        let mut broker = batch(&payments, &committee);
        for node in &mut nodes {
            let answer = batch_answer(node, &batch_request(&broker, bls)).expect("an answer");
            broker.add(&committee, &mut RootCache::new(0), answer).expect("correct");
        }
        let mut bytes = Vec::new();
        broker.certificate(&committee, 77).expect("all confirm it").write(&mut bytes);
        bytes.len()
    });
    // One path of 8; then q times 75 bytes, or one aggregate.
    assert_eq!(lengths, [2 + 8 + 256 + 1 + 3 * (1 + 8 + 2 + 64), 2 + 8 + 256 + 2 + (1 + 1 + 48)]);
}

#[test]
fn batches_that_are_no_batches_are_refused() {
    let coins = [genesis(0, 1, 10)];
    let mut node = nodes(4, 1, &coins).remove(0);
    let committee = committee(4);
    let payment = pay(1, &coins, vec![output(owner(2).public(), 10)]);
    assert!(LaneBroker::new(&committee, vec![]).is_err());
    assert!(LaneBroker::new(&committee, vec![vec![2]]).is_err());
    let good = batch(std::slice::from_ref(&payment), &committee).request();
    let nested = [&[3, 1, 0][..], &(good.len() as u32).to_le_bytes(), &good].concat();
    let long = [&[3, 1, 0][..], &u32::MAX.to_le_bytes(), &payment.request].concat();
    for bytes in [&[3, 0, 0][..], &[3, 1][..], &nested, &long, &good[..good.len() - 1]] {
        assert_eq!(refusals(&effects(&mut node, bytes)).len(), 1);
        assert_eq!(node.validator.entries(), 0);
    }
    assert!(batch_answer(&mut node, &good).is_some());
    // All of a batch is refused: there is no tree.
    let other = pay(1, &coins, vec![output(owner(3).public(), 10)]);
    let conflicting = batch(&[other], &committee).request();
    assert_eq!(refusals(&effects(&mut node, &conflicting)).len(), 1);
    // Owners of two shards do not fit into one tree.
    let sharded = committee_of(NETWORK, 0, 4, 8);
    let requests =
        (0..8u64).map(|number| pay(number, &[genesis(0, number, 1)], vec![output(owner(9).public(), 1)]).request);
    assert!(matches!(LaneBroker::new(&sharded, requests.collect()), Err(LaneRefusal::ForeignShard(_))));
}

#[test]
fn evidence_convicts_whoever_signed_twice_and_nobody_else() {
    let coins = [genesis(0, 1, 10), genesis(1, 1, 10)];
    let committee = committee(4);
    let bodies = [2, 3].map(|to| {
        let payment = pay(1, &coins[..1], vec![output(owner(to).public(), 10)]);
        PaymentBody::parse(&payment.payment).unwrap()
    });
    let sign = |validator, body: &PaymentBody| {
        forge(&committee, validator, StatementKind::Confirmation, &body.payment.owner, body.digest)
    };
    let mut finder = EvidenceFinder::new(100);
    assert_eq!(finder.note(&bodies[0], &sign(1, &bodies[0])), None);
    assert_eq!(finder.note(&bodies[0], &sign(1, &bodies[0])), None, "twice the same is no offence");
    assert_eq!(finder.note(&bodies[1], &sign(2, &bodies[1])), None, "another validator");
    let evidence = finder.note(&bodies[1], &sign(1, &bodies[1])).expect("two payments of one output");
    assert_eq!(evidence.verify(&committee), Ok(Convicted { epoch: 0, validator: 1 }));
    assert_eq!(LaneEvidence::parse(&evidence.encode()), Ok(evidence.clone()));
    assert!(evidence.verify(&committee_of(NETWORK, 1, 4, 1)).is_err());
    let LaneEvidence::Payments { home, validator, pair } = evidence.clone() else { panic!("of payments") };
    let with = |first: (Vec<u8>, PaymentCertificate), second: (Vec<u8>, PaymentCertificate)| {
        LaneEvidence::Payments { home, validator, pair: Box::new([first, second]) }.verify(&committee)
    };
    let sign = |validator, body| PaymentCertificate::Answers(vec![sign(validator, body)]);
    let [a, b] = *pair;
    assert!(with(b.clone(), a.clone()).is_err(), "one pair has one encoding");
    assert!(with(a.clone(), a.clone()).is_err());
    let ordered = if bodies[0].digest < bodies[1].digest { [&bodies[0], &bodies[1]] } else { [&bodies[1], &bodies[0]] };
    let two = (b.0.clone(), sign(2, ordered[1]));
    assert!(with(a.clone(), two).is_err(), "two validators");
    let unsigned = (b.0.clone(), sign(1, ordered[0]));
    assert!(with(a.clone(), unsigned).is_err(), "a signature on something else");
    let apart = PaymentBody::parse(&pay(1, &coins[1..], vec![output(owner(3).public(), 10)]).payment).unwrap();
    let apart = (apart.payment.encode(), sign(1, &apart));
    assert!(with(a.clone(), apart.clone()).is_err() && with(apart, a).is_err(), "no shared input");
    // Two views of one case.
    let (case, payer) = (coins[0].id, owner(1).public());
    let view = |validator, paid: &Option<Digest>| {
        forge(&committee, validator, StatementKind::View, &payer, view_digest(&case, paid.as_ref()))
    };
    let [none, some] = [None, Some(bodies[0].digest)];
    let views = |first: (Option<Digest>, LaneAnswer), second| LaneEvidence::Views {
        committee: 0,
        case,
        owner: payer,
        pair: Box::new([first, second]),
    };
    let both = views((none, view(3, &none)), (some, view(3, &some)));
    assert_eq!(both.verify(&committee), Ok(Convicted { epoch: 0, validator: 3 }));
    assert_eq!(LaneEvidence::parse(&both.encode()), Ok(both));
    assert!(views((none, view(3, &none)), (some, view(2, &some))).verify(&committee).is_err());
    assert!(views((none, view(3, &none)), (none, view(3, &none))).verify(&committee).is_err());
}

/// Aggregates of the BLS scheme and shared trees convict the validators that they name, and no others.
#[test]
fn certificates_of_every_form_convict_those_who_signed_both() {
    let coins = [genesis(0, 1, 10)];
    let committee = bls_committee(0, 4);
    let bodies = [2, 3].map(|to| {
        let payment = pay(1, &coins, vec![output(owner(to).public(), 10)]);
        PaymentBody::parse(&payment.payment).unwrap()
    });
    let sign = |signers: &[u8], body: &PaymentBody| {
        let part =
            |v: &u8| (*v, bls_key(0, usize::from(*v)).sign(&NETWORK, 0, StatementKind::Confirmation, &body.digest));
        let parts: Vec<_> = signers.iter().map(part).collect();
        PaymentCertificate::Aggregate(BlsAggregate::of(&committee, &parts).expect("distinct members"))
    };
    let mut finder = EvidenceFinder::new(100);
    assert_eq!(finder.note_certificate(&bodies[0], &sign(&[0, 1, 2], &bodies[0])), []);
    let found = finder.note_certificate(&bodies[1], &sign(&[1, 2, 3], &bodies[1]));
    let convicted: Vec<u8> = found.iter().map(|of| of.verify(&committee).expect("it holds").validator).collect();
    assert_eq!(convicted, [1, 2]);
    assert_eq!(LaneEvidence::parse(&found[0].encode()), Ok(found[0].clone()));
    assert_eq!(found[0].cost(), 2 * AGGREGATE_COST);
    // One signature alone is an aggregate of one.
    let mut finder = EvidenceFinder::new(100);
    assert_eq!(finder.note_certificate(&bodies[0], &sign(&[3], &bodies[0])), []);
    let [evidence] = &finder.note_certificate(&bodies[1], &sign(&[3], &bodies[1]))[..] else { panic!("one") };
    assert_eq!(evidence.verify(&committee), Ok(Convicted { epoch: 0, validator: 3 }));
    // A validator that is not named, or named without its signature, is not convicted.
    let LaneEvidence::Payments { home, pair, .. } = evidence.clone() else { panic!("of payments") };
    for (validator, second) in [(2, None), (3, Some(sign(&[3], &bodies[0]))), (2, Some(sign(&[2], &bodies[1])))] {
        let mut pair = pair.clone();
        pair[1].1 = second.unwrap_or(pair[1].1.clone());
        assert!(LaneEvidence::Payments { home, validator, pair }.verify(&committee).is_err());
    }
    let mut framed = pair.clone();
    for (_, signed) in framed.iter_mut() {
        let PaymentCertificate::Aggregate(aggregate) = signed else { panic!("an aggregate") };
        aggregate.signers[0] |= 1;
    }
    assert!(LaneEvidence::Payments { home, validator: 0, pair: framed }.verify(&committee).is_err());
}

#[test]
fn a_watcher_settles_posts_and_sends_home() {
    let coins = [genesis(0, 1, 100)];
    let mut nodes = nodes(4, 1, &coins);
    let committee = nodes[0].settings.committee.clone();
    let account = Output { to: Recipient::Account(Address([5; 20])), asset: ASSET, amount: 30 };
    let payment = pay(1, &coins, vec![output(owner(2).public(), 70), account]);
    let certificate = certify(&mut nodes, StatementKind::Confirmation, &payment, &payment.request);
    let mut watcher = LaneWatcher::new(NETWORK, 2);
    let ids: Vec<OutputId> = receipts(&payment, &certificate)
        .into_iter()
        .map(|receipt| {
            let holding = receipt.verify(&committee, &mut RootCache::new(0)).unwrap();
            watcher.watch(receipt, holding).expect("there is room")
        })
        .collect();
    let actions = watcher.actions(0);
    assert_eq!(actions.len(), 2);
    assert!(actions.contains(&WatchAction::Post(payment.digest)), "what pays an account is redeemed");
    let settle = actions.iter().find_map(|action| match action {
        WatchAction::Settle(0, request) => Some(request.clone()),
        _ => None,
    });
    let settle = settle.expect("the other one is settled");
    certify(&mut nodes, StatementKind::Acknowledgement, &payment, &settle);
    watcher.settled(&ids[0]);
    watcher.posted(&payment.digest);
    assert_eq!((watcher.actions(0), watcher.actions(1)), (vec![], vec![]));
    // The holder of the key stays offline until the last epoch in which its output can move.
    nodes.iter_mut().for_each(|node| drop(node.step(LaneInput::Epoch(2))));
    let [WatchAction::SendHome(0, request)] = &watcher.actions(2)[..] else { panic!("it is sent home") };
    let mut answers = Vec::new();
    for node in &mut nodes {
        answers.push(node.ask(request).expect("no signature of the owner is needed"));
    }
    let holding = receipts(&payment, &certificate)[0].verify(&committee, &mut RootCache::new(0)).unwrap();
    let spent = SpentOutput { id: holding.id, asset: ASSET, amount: 70 };
    let exit = PaymentBody::new(Payment::exit(NETWORK, 0, owner(2).public(), spent));
    let mut collector = AnswerCollector::new(StatementKind::Confirmation, exit.payment.summary());
    let added = answers.into_iter().filter_map(|a| collector.add(&committee, &mut RootCache::new(0), a).unwrap());
    let certificate = added.last().expect("a quorum");
    let (posted, _) = watcher.sent_home(&ids[0], certificate).expect("it posts the exit");
    assert_eq!(posted, exit.payment);
    assert_eq!(posted.outputs[0].to, Recipient::Account(owner(2).public().address()));
    assert_eq!(watcher.actions(2), []);
    watcher.actions(4);
    assert!(watcher.is_empty(), "receipts that cannot be saved are dropped");
}

#[test]
fn only_the_third_epoch_sends_home_without_the_owner_and_only_exits() {
    let coins = [genesis(0, 1, 100)];
    let spent = SpentOutput { id: coins[0].id, asset: ASSET, amount: 100 };
    let exit = Payment::exit(NETWORK, 0, owner(1).public(), spent);
    let none = primitives::Signature([0; 64]);
    let request = |payment: &Payment| spend_request(&payment.encode(), &none, &[OutputProof::Ledger]);
    for (now, allowed) in [(0, false), (1, false), (2, true)] {
        let mut node = nodes(4, 1, &coins).remove(0);
        node.step(LaneInput::Epoch(now));
        assert_eq!(node.ask(&request(&exit)).is_ok(), allowed, "epoch {now}");
        let mut node = nodes(4, 1, &coins).remove(0);
        node.step(LaneInput::Epoch(now));
        let mut elsewhere = exit.clone();
        elsewhere.outputs[0].to = Recipient::Account(Address([9; 20]));
        assert!(node.ask(&request(&elsewhere)).is_err(), "another's account");
        let mut part = exit.clone();
        part.outputs[0].amount = 99;
        assert!(node.ask(&request(&part)).is_err(), "a part");
    }
}

#[test]
fn the_audit_finds_what_is_wrong_and_nothing_else() {
    let coins = [genesis(0, 1, 100), genesis(1, 1, 50)];
    let mut nodes = nodes(4, 1, &coins);
    let committee = nodes[0].settings.committee.clone();
    let first = pay(1, &coins[..1], vec![output(owner(2).public(), 60), output(owner(1).public(), 40)]);
    let certificate = certify(&mut nodes, StatementKind::Confirmation, &first, &first.request);
    let holding = receipts(&first, &certificate)[0].verify(&committee, &mut RootCache::new(0)).unwrap();
    let second = pay(2, &[holding], vec![output(owner(3).public(), 60)]);
    certify(&mut nodes, StatementKind::Confirmation, &second, &second.request);
    // The other coin is contested: two payments, each at two validators.
    for (validator, node) in nodes.iter_mut().enumerate() {
        let to = 4 + validator as u64 % 2;
        node.ask(&pay(1, &coins[1..], vec![output(owner(to).public(), 50)]).request).unwrap();
    }
    let read = |node: &Node| {
        let owner = LogOwner { network: NETWORK, home: 0, validator: node.settings.validator, shard: 0 };
        LaneLogSummary::read(&node.disk.bytes, owner).expect("a log that is intact")
    };
    let logs: Vec<LaneLogSummary> = nodes.iter().map(read).collect();
    assert_eq!(logs[0].root(), logs[2].root());
    assert_ne!(logs[0].root(), logs[1].root(), "correct logs differ");
    let totals = EscrowTotals { backing: 150, ..EscrowTotals::default() };
    let facts = LedgerFacts {
        totals: BTreeMap::from([(ASSET, totals)]),
        escrow: BTreeMap::from([(ASSET, 150)]),
        backed: coins.iter().map(|coin| (coin.id, (0, coin.output))).collect(),
        certified: BTreeSet::new(),
        credited: BTreeSet::new(),
    };
    let quorums = |_| Quorums::new(4);
    let run = |logs: &[LaneLogSummary], facts: &LedgerFacts| audit(logs, |_| rules(), facts, quorums);
    let report = run(&logs, &facts).expect("nothing is wrong");
    assert_eq!((report.payments, report.certified), (4, 2));
    assert_eq!(report.unspent, BTreeMap::from([(ASSET, 150)]), "all of escrow has an owner");
    assert!(run(&logs[1..], &facts).is_ok(), "three of four are enough");
    assert_eq!(run(&logs[2..], &facts), Err(LaneAuditError::TooFewLogs { epoch: 0, logs: 2, needed: 3 }));
    let change = |edit: &dyn Fn(&mut LedgerFacts)| {
        let mut facts = facts.clone();
        edit(&mut facts);
        run(&logs, &facts)
    };
    let missing = change(&|facts| {
        facts.escrow.insert(ASSET, 149);
    });
    assert_eq!(missing, Err(LaneAuditError::Escrow { asset: ASSET, held: 149, expected: 150 }));
    let overpaid = change(&|facts| facts.totals.get_mut(&ASSET).unwrap().redemptions = 151);
    assert_eq!(overpaid, Err(LaneAuditError::Overpaid(ASSET)));
    let untraced = change(&|facts| {
        facts.backed.remove(&coins[0].id);
    });
    assert!(matches!(untraced, Err(LaneAuditError::Untraced { output, .. }) if output == coins[0].id));
    let larger = change(&|facts| facts.backed.get_mut(&coins[0].id).unwrap().1.amount = 101);
    assert!(matches!(larger, Err(LaneAuditError::Untraced { .. })));
    let credited = change(&|facts| {
        facts.credited.insert(coins[0].id);
    });
    assert_eq!(credited, Err(LaneAuditError::SpentTwice(coins[0].id)));
    let both = [4, 5].map(|to| pay(1, &coins[1..], vec![output(owner(to).public(), 50)]).digest);
    let twice = change(&|facts| facts.certified.extend(both));
    assert_eq!(twice, Err(LaneAuditError::SpentTwice(coins[1].id)));
}

#[test]
fn the_audit_counts_inputs_of_a_committee_whose_logs_are_gone() {
    // An output of home 1 that committee 0 created. The logs of committee 0 are destroyed when those of home 1 are
    // audited.
    let id = OutputId::of_payment(1, &Digest([6; 32]), 0);
    let coin = Holding { id, output: output(owner(1).public(), 10), proof: OutputProof::Ledger };
    let mut node = Node::new(settings_of(1), std::slice::from_ref(&coin));
    let paid = build_payment(&rules(), &owner(1), 1, 1, vec![coin], vec![output(owner(2).public(), 10)]);
    node.ask(&paid.expect("correct").request).expect("confirmed");
    let read =
        |home| LaneLogSummary::read(&node.disk.bytes, LogOwner { network: NETWORK, home, validator: 0, shard: 0 });
    let log = read(1).expect("a log that is intact");
    let audit = |logs: &[LaneLogSummary]| audit(logs, |_| rules(), &LedgerFacts::default(), |_| Quorums::new(1));
    assert_eq!(audit(std::slice::from_ref(&log)).map(|report| report.from_before), Ok(1));
    // With a log of the committee that should have created it, the output is untraced.
    let before = Node::new(settings_of(0), &[]);
    let owner = LogOwner { network: NETWORK, home: 0, validator: 0, shard: 0 };
    let before = LaneLogSummary::read(&before.disk.bytes, owner).expect("a log that is intact");
    assert!(matches!(audit(&[before, log]), Err(LaneAuditError::Untraced { output, .. }) if output == id));
    assert!(read(0).is_err(), "a log of another home");
}

fn settings_of(home: HomeEpoch) -> LaneSettings {
    settings(&committee_of(NETWORK, home, 1, 1), 0, 1)
}
