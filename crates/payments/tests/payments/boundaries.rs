//! Cases at the boundaries of epochs, of shards, of limits, and of a validator's log.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::lane::*;
use payments::*;
use primitives::{Address, Digest, SecretKey};

const HEIGHTS: u64 = 6;

fn body(payment: &SignedPayment) -> Arc<PaymentBody> {
    Arc::new(PaymentBody::parse(&payment.payment).expect("well-formed"))
}

fn contested(coin: &Holding, home: HomeEpoch, number: u64) -> ContestedOutput {
    let output = SpentOutput { id: coin.id, asset: coin.output.asset, amount: coin.output.amount };
    ContestedOutput { output, home, owner: owner(number).public() }
}

fn rules_of_bridge(outflow: BTreeMap<primitives::AssetId, OutflowLimit>) -> BridgeRules {
    BridgeRules {
        network: NETWORK,
        schedule: LaneSchedule { epoch_heights: HEIGHTS, halt_heights: 4 },
        case_deposit: 1,
        lapse_penalty: 0,
        outflow,
        registrars: Vec::new(),
        bls: LaneBls::None,
    }
}

fn bridge(coins: &[Holding], outflow: BTreeMap<primitives::AssetId, OutflowLimit>) -> Bridge {
    let outputs: Vec<Output> = coins.iter().map(|coin| coin.output).collect();
    let (mut bridge, _) = Bridge::new(rules_of_bridge(outflow), &outputs);
    (0..10).for_each(|epoch| bridge.register(epoch, Quorums::new(4)));
    bridge
}

fn credited(events: &[BridgeEvent]) -> u64 {
    let credit = |event: &BridgeEvent| if let BridgeEvent::Credit { amount, .. } = event { *amount } else { 0 };
    events.iter().map(credit).sum()
}

fn account_payment(coin: &Holding, number: u64, to: u8) -> Arc<PaymentBody> {
    let output = Output { to: Recipient::Account(Address([to; 20])), asset: ASSET, amount: coin.output.amount };
    body(&pay(number, std::slice::from_ref(coin), vec![output]))
}

/// Two of four validators sign before a boundary and their signatures are withheld over two boundaries. No other
/// payment of the output can ever be certified, and the late signatures complete the one payment.
#[test]
fn withheld_signatures_over_two_boundaries_complete_the_one_payment() {
    let coins = [genesis(0, 1, 10)];
    let mut nodes = nodes(4, 1, &coins);
    let committee = nodes[0].settings.committee.clone();
    let to = |number: u64| vec![output(owner(number).public(), 10)];
    let build = |into, number| build_payment(&rules(), &owner(1), 0, into, coins.to_vec(), to(number)).unwrap();
    let first = build(0, 2);
    // Validator 0 is Byzantine and signs anything; 1 and 2 sign in epoch 0.
    let withheld: Vec<LaneAnswer> = nodes[1..3].iter_mut().map(|node| node.ask(&first.request).unwrap()).collect();
    for now in 1..=2 {
        nodes.iter_mut().for_each(|node| drop(node.step(LaneInput::Epoch(now))));
        let other = build(1, 3);
        for node in &mut nodes[1..3] {
            assert!(node.ask(&other.request).is_err(), "bound forever");
            assert!(node.ask(&first.request).is_ok(), "and to the same answer");
        }
        assert!(nodes[3].ask(&first.request).is_err(), "who had not signed signs it no more");
    }
    let byzantine = forge(&committee, 0, StatementKind::Confirmation, &owner(1).public(), first.digest);
    let mut collector = AnswerCollector::new(StatementKind::Confirmation, body(&first).payment.summary());
    let mut late = withheld.into_iter().chain([byzantine]);
    let done = late.find_map(|answer| collector.add(&committee, &mut RootCache::new(0), answer).unwrap());
    let receipt = receipts(&first, &done.expect("three of four")).remove(0);
    let holding = receipt.verify(&committee, &mut RootCache::new(0)).expect("certified late");
    // In epoch 2 the output of home 0 is sent home, and the exit of the spent one finds no quorum.
    let exit = Payment::exit(NETWORK, 0, owner(1).public(), contested(&coins[0], 0, 1).output);
    let request = spend_request(&exit.encode(), &primitives::Signature([0; 64]), &[OutputProof::Ledger]);
    let answered = nodes[1..].iter_mut().filter_map(|node| node.ask(&request).ok()).count();
    assert!(answered + 1 < committee.quorums().certificate);
    let exit = Payment::exit(NETWORK, 0, owner(2).public(), contested(&holding, 0, 2).output);
    let request = spend_request(&exit.encode(), &primitives::Signature([0; 64]), std::slice::from_ref(&holding.proof));
    assert!(nodes[1..].iter_mut().all(|node| node.ask(&request).is_ok()));
}

/// The recipient spends in another shard while a case opens; that shard had accepted before it barred, and reports
/// it.
#[test]
fn a_child_certified_while_a_case_opens_in_another_shard_is_seen() {
    let shards = 4;
    let committee = committee_of(NETWORK, 0, 4, shards);
    let shard = |number: u64| committee.shard_of(0, &owner(number).public()).unwrap();
    let alice = 1;
    let bob = (2..).find(|number| shard(*number) != shard(alice)).expect("another shard");
    let coins = [genesis(0, alice, 10)];
    let new = |validator, number| {
        Node::new(LaneSettings { shard: shard(number), ..settings(&committee, validator, 1) }, &coins)
    };
    let mut alices: Vec<Node> = (0..4).map(|validator| new(validator, alice)).collect();
    let mut bobs: Vec<Node> = (0..4).map(|validator| new(validator, bob)).collect();
    let payment = pay(alice, &coins, vec![output(owner(bob).public(), 10)]);
    let certificate = certify(&mut alices, StatementKind::Confirmation, &payment, &payment.request);
    let holding = receipts(&payment, &certificate)[0].verify(&committee, &mut RootCache::new(0)).unwrap();
    let child = pay(bob, std::slice::from_ref(&holding), vec![output(owner(9).public(), 10)]);
    let case = contested(&coins[0], 0, alice);
    let bodies = [body(&payment)];
    // Bob's shards of two validators accept before they bar; those of the others bar first.
    let mut reported = Vec::new();
    for (validator, node) in bobs.iter_mut().enumerate() {
        node.step(LaneInput::CaseOpened(case));
        if validator < 2 {
            node.ask(&child.request).expect("accepted before it barred");
        }
        let mut effects = node.step(LaneInput::CandidatesFixed(case.output.id, bodies.to_vec()));
        assert!(effects.is_empty(), "nothing is reported before it is durable");
        effects.extend(node.step(LaneInput::Tick));
        assert!(effects.iter().all(|effect| !matches!(effect, LaneEffect::Barred { .. })));
        effects.extend(node.sync());
        let barred = effects.into_iter().find_map(|effect| match effect {
            LaneEffect::Barred { paid, .. } => Some(paid),
            _ => None,
        });
        reported.push(barred.expect("it reports what it accepted"));
        let again = node.ask(&child.request);
        assert_eq!(again.is_ok(), validator < 2, "a barred payment's output is no input");
        assert!(validator < 2 || again == Err(LaneRefusal::Barred(payment.digest)));
        let settle = receipts(&payment, &certificate)[0].settle_request();
        assert!(node.ask(&settle).is_err(), "another shard");
        assert!(alices[validator].ask(&settle).is_ok(), "Alice's shard has not barred yet");
    }
    let summary = bodies[0].payment.summary();
    let paid = Some(Box::new(CertifiedPayment { summary, certificate: certificate.clone() }));
    assert_eq!(reported, [paid.clone(), paid.clone(), None, None]);
    // The validator's view combines its shards: Alice's acknowledged it, so each view names it.
    for (node, other) in alices.iter_mut().zip(reported) {
        node.step(LaneInput::CandidatesFixed(case.output.id, bodies.to_vec()));
        node.step(LaneInput::Tick);
        let effects = node.sync();
        let mine = effects.into_iter().find_map(|effect| match effect {
            LaneEffect::Barred { paid, .. } => Some(paid),
            _ => None,
        });
        let mut parts = ViewParts::new(2);
        assert_eq!(parts.add(1, other), None, "a shard is missing");
        assert_eq!(parts.add(0, mine.expect("barred")), Some(paid.as_deref()));
    }
    // One view brings its certificate: it stands, and the bar is lifted.
    let mut bridge = bridge(&coins, BTreeMap::new());
    bridge.begin();
    bridge.apply(vec![BridgeFact::Resolve { opener: Address([1; 20]), bid: 3, cases: vec![(case, None)] }]);
    let vote = |validator| BridgeFact::Vote { case: case.output.id, validator, payment: bodies[0].clone() };
    let exit = Arc::new(PaymentBody::new(case.exit(NETWORK)));
    let other = |validator| BridgeFact::Vote { case: case.output.id, validator, payment: exit.clone() };
    bridge.apply(vec![vote(0), other(1), vote(2)]);
    let view = |paid| BridgeFact::View { case: case.output.id, committee: 0, validator: 0, paid };
    assert_eq!(bridge.check(&view(Some((0, exit.digest)))), Ok(()));
    let view = view(Some((0, payment.digest)));
    assert_eq!(bridge.check(&view), Ok(()));
    let events = bridge.apply(vec![view]);
    let verdict = Verdict::Confirmed(payment.digest, ConfirmedBy::Certificate);
    let all = BTreeSet::from([payment.digest]);
    assert!(events.contains(&BridgeEvent::Case(CaseEvent::Ruled(case, verdict))));
    // Two shards stop before the verdict. One is told what the ledger confirms after its restart, the other is not.
    let [informed, forgotten] = [bobs.remove(2), bobs.remove(2)].map(|node| node.crash(0, &[]));
    let [mut informed, mut forgotten] = [informed, forgotten];
    for node in [&mut informed, &mut forgotten] {
        assert_eq!(node.validator.barred(), all);
        assert_eq!(node.ask(&child.request), Err(LaneRefusal::Barred(payment.digest)), "a bar survives a restart");
    }
    for payment in informed.validator.barred().into_iter().filter(|payment| bridge.resolver().confirms(payment)) {
        informed.step(LaneInput::Confirmed(payment));
    }
    forgotten.step(LaneInput::Confirmed(Digest([0; 32])));
    assert!(forgotten.ask(&child.request).is_err());
    forgotten.step(LaneInput::CaseRuled(case.output.id, verdict));
    [informed, forgotten].iter_mut().for_each(|node| drop(node.ask(&child.request).expect("the bar is lifted")));
}

#[test]
fn votes_bars_and_views_survive_a_crash_at_every_point() {
    let coins = [genesis(0, 1, 10), genesis(1, 1, 10)];
    let payment = pay(1, &coins[..1], vec![output(owner(2).public(), 10)]);
    let bodies = [body(&payment)];
    let (signed, empty) = (contested(&coins[0], 0, 1), contested(&coins[1], 0, 1));
    let mut full = nodes(4, 1, &coins);
    let certificate = certify(&mut full, StatementKind::Confirmation, &payment, &payment.request);
    let settle = receipts(&payment, &certificate)[0].settle_request();
    let run = |node: &mut Node, stop: usize| -> Vec<LaneEffect> {
        type Act<'a> = &'a dyn Fn(&mut Node) -> Vec<LaneEffect>;
        let steps: [Act<'_>; 9] = [
            &|node| node.step(LaneInput::CaseOpened(signed)),
            &|node| node.step(LaneInput::CaseOpened(empty)),
            &|node| node.step(LaneInput::Tick),
            &Node::sync,
            &|node| node.step(LaneInput::CandidatesFixed(signed.output.id, bodies.to_vec())),
            &|node| node.step(LaneInput::Tick),
            &Node::sync,
            &|node| {
                let mut effects = node.step(LaneInput::AllBarred(signed.output.id, None));
                effects.extend(node.step(LaneInput::Tick));
                effects
            },
            &Node::sync,
        ];
        steps[..stop].iter().flat_map(|step| step(node)).collect()
    };
    type Named = Option<Box<CertifiedPayment>>;
    let said = |effects: &[LaneEffect]| -> (Vec<Vec<u8>>, Vec<Named>) {
        let vote = |effect: &LaneEffect| {
            if let LaneEffect::Vote { payment, .. } = effect { Some(payment.clone()) } else { None }
        };
        let view =
            |effect: &LaneEffect| if let LaneEffect::View { paid, .. } = effect { Some(paid.clone()) } else { None };
        (effects.iter().filter_map(vote).collect(), effects.iter().filter_map(view).collect())
    };
    for stop in 0..=9 {
        for torn in [0, 1, 30, 1_000] {
            let mut node = nodes(4, 1, &coins).remove(0);
            node.ask(&payment.request).unwrap();
            let before = said(&run(&mut node, stop));
            let kept = torn.min(node.disk.bytes.len() - node.disk.durable);
            let mut node = node.crash(kept, &[]);
            assert_eq!(node.validator.muted(), None);
            if before.1.len() == 1 {
                assert!(node.ask(&settle).is_err(), "a view was posted: the bar holds after the restart");
            }
            // The shell feeds the facts of the ledger again.
            let (votes, views) = said(&run(&mut node, 9));
            assert_eq!(votes, [payment.payment.clone(), empty.exit(NETWORK).encode()], "the same votes");
            assert_eq!(views, [None], "the same view");
            // Another view is never signed.
            let summary = bodies[0].payment.summary();
            let paid = Box::new(CertifiedPayment { summary, certificate: certificate.clone() });
            node.step(LaneInput::AllBarred(signed.output.id, Some(paid)));
            node.step(LaneInput::Tick);
            assert_eq!(said(&node.sync()).1, []);
            assert_eq!(node.ask(&settle), Err(LaneRefusal::Barred(payment.digest)));
            let other = pay(1, &coins[1..], vec![output(owner(3).public(), 10)]);
            assert!(matches!(node.ask(&other.request), Err(LaneRefusal::Conflict { .. })), "locked to the exit");
        }
    }
}

/// A power cut at any byte leaves no acceptance without the certificate that proves it. A shard that answers again
/// reports the payment with its certificate, and one that does not has nothing to report.
#[test]
fn an_acceptance_is_never_without_its_certificate_after_a_crash() {
    let coins = [genesis(0, 1, 10)];
    let payment = pay(1, &coins, vec![output(owner(2).public(), 10)]);
    let case = contested(&coins[0], 0, 1);
    let certificate = certify(&mut nodes(4, 1, &coins), StatementKind::Confirmation, &payment, &payment.request);
    let receipt = receipts(&payment, &certificate).remove(0);
    let holding = receipt.verify(&committee(4), &mut RootCache::new(0)).unwrap();
    let child = pay(2, std::slice::from_ref(&holding), vec![output(owner(3).public(), 10)]);
    for request in [receipt.settle_request(), child.request.clone()] {
        let written = |request: &[u8]| {
            let mut node = nodes(4, 1, &coins).remove(0);
            node.ask(&payment.request).unwrap();
            node.request(request);
            node.step(LaneInput::Tick);
            node
        };
        let pending = |node: &Node| node.disk.bytes.len() - node.disk.durable;
        let all = pending(&written(&request));
        let mut accepted = 0;
        for kept in (0..=all).rev().step_by(9) {
            let mut node = written(&request).crash(kept, &[]);
            node.step(LaneInput::CaseOpened(case));
            node.step(LaneInput::CandidatesFixed(case.output.id, vec![body(&payment)]));
            node.step(LaneInput::Tick);
            let paid = node.sync().into_iter().find_map(|effect| match effect {
                LaneEffect::Barred { paid, .. } => Some(paid),
                _ => None,
            });
            let paid = paid.expect("it reports");
            assert_eq!(node.ask(&request).is_ok(), paid.is_some(), "{kept} of {all} bytes");
            assert!(paid.iter().all(|paid| paid.certificate == certificate && paid.digest(&NETWORK) == payment.digest));
            accepted += usize::from(paid.is_some());
        }
        assert_eq!(accepted, 1, "only the whole batch holds the acceptance");
    }
}

#[test]
fn keys_are_destroyed_after_the_third_epoch_unless_a_case_needs_them() {
    let coins = [genesis(0, 1, 10)];
    let case = contested(&coins[0], 0, 1);
    for home in [0, 1] {
        let committee = committee_of(NETWORK, home, 4, 1);
        let mut node = Node::new(settings(&committee, 0, 1), &[]);
        node.step(LaneInput::Epoch(home + 2));
        node.step(LaneInput::CaseOpened(case));
        let later = node.step(LaneInput::Epoch(home + 3));
        assert!(!later.contains(&LaneEffect::Destroy), "the case needs the set of committee {home}");
        assert_eq!(node.step(LaneInput::CaseRuled(case.output.id, Verdict::Freed)), [], "this epoch is its last");
        assert_eq!(node.step(LaneInput::Epoch(home + 4)), [LaneEffect::Destroy]);
        let request = pay(1, &coins, vec![output(owner(2).public(), 10)]).request;
        assert_eq!(node.ask(&request), Err(LaneRefusal::Ended(home)));
        assert_eq!(node.step(LaneInput::Epoch(home + 5)), [], "once");
    }
}

/// A verdict confirms a payment in the fifth epoch: its outputs are sent home in that epoch and the next, without their
/// owner. A shard that starts after the verdict is told how long it signs.
#[test]
fn after_a_late_verdict_exits_are_signed_through_the_next_epoch() {
    let coins = [genesis(0, 1, 10), genesis(1, 3, 10)];
    let mut all = nodes(4, 1, &coins);
    let payment = pay(1, &coins[..1], vec![output(owner(2).public(), 10)]);
    let certificate = certify(&mut all, StatementKind::Confirmation, &payment, &payment.request);
    let committee = all[0].settings.committee.clone();
    let holding = receipts(&payment, &certificate)[0].verify(&committee, &mut RootCache::new(0)).unwrap();
    let exit = Payment::exit(NETWORK, 0, owner(2).public(), contested(&holding, 0, 2).output);
    let request = spend_request(&exit.encode(), &primitives::Signature([0; 64]), std::slice::from_ref(&holding.proof));
    let case = contested(&coins[0], 0, 1);
    let mut node = all.remove(0);
    node.step(LaneInput::CaseOpened(case));
    node.step(LaneInput::CandidatesFixed(case.output.id, vec![body(&payment)]));
    for epoch in 1..=4 {
        assert_eq!(node.step(LaneInput::Epoch(epoch)), []);
    }
    assert!(node.ask(&request).is_err(), "barred, and its time is over");
    let verdict = Verdict::Confirmed(payment.digest, ConfirmedBy::Certificate);
    assert_eq!(node.step(LaneInput::CaseRuled(case.output.id, verdict)), [], "the keys stay");
    node.ask(&request).expect("signed in the epoch of the verdict");
    assert_eq!(node.step(LaneInput::Epoch(5)), []);
    node.ask(&request).expect("and in the next");
    assert!(node.step(LaneInput::Epoch(6)).contains(&LaneEffect::Destroy));
    let mut late = all.remove(0).crash(0, &[]);
    late.step(LaneInput::SignsThrough(5));
    assert_eq!(late.step(LaneInput::Epoch(5)), []);
    late.ask(&request).expect("it was told");
}

#[test]
fn a_halt_stops_new_payments_and_nothing_else() {
    let coins = [genesis(0, 1, 10), genesis(1, 1, 10)];
    let mut nodes = nodes(4, 1, &coins);
    let payment = pay(1, &coins[..1], vec![output(owner(2).public(), 10)]);
    let certificate = certify(&mut nodes, StatementKind::Confirmation, &payment, &payment.request);
    let node = &mut nodes[0];
    node.step(LaneInput::Halted(true));
    let fresh = pay(1, &coins[1..], vec![output(owner(2).public(), 10)]);
    assert_eq!(node.ask(&fresh.request), Err(LaneRefusal::Halted));
    node.ask(&payment.request).expect("a known payment is answered");
    node.ask(&receipts(&payment, &certificate)[0].settle_request()).expect("and settled");
    node.step(LaneInput::CaseOpened(contested(&coins[1], 0, 1)));
    node.step(LaneInput::Tick);
    assert!(node.sync().iter().any(|effect| matches!(effect, LaneEffect::Vote { .. })), "votes go on");
    node.step(LaneInput::Halted(false));
    assert!(matches!(node.ask(&fresh.request), Err(LaneRefusal::Conflict { .. })), "the vote has locked it");
}

/// One redemption from ten accounts in one block, and again in each later one, with a restart in between.
#[test]
fn copies_of_a_redemption_are_credited_once() {
    let coins = [genesis(0, 1, 10)];
    let payment = account_payment(&coins[0], 1, 7);
    let mut bridge = bridge(&coins, BTreeMap::new());
    let mut total = 0;
    for _ in 0..5 {
        let fact = BridgeFact::Redeem(payment.clone());
        assert_eq!(bridge.check(&fact), Ok(()), "a copy is no fault");
        bridge.begin();
        total += credited(&bridge.apply(vec![fact; 10]));
        bridge = Bridge::parse(rules_of_bridge(BTreeMap::new()), &bridge.encode()).unwrap();
    }
    assert_eq!((total, bridge.escrow(ASSET)), (10, 0));
}

#[test]
fn the_last_height_of_the_third_epoch_after_redeems_and_the_next_does_not() {
    let coins = [genesis(0, 1, 10), genesis(1, 1, 10), genesis(2, 1, 10)];
    let payments: Vec<_> = (0..3).map(|i| account_payment(&coins[i], 1, 7)).collect();
    let mut bridge = bridge(&coins, BTreeMap::new());
    bridge.begin();
    assert_eq!(credited(&bridge.apply(vec![BridgeFact::Redeem(payments[0].clone())])), 10);
    // Facts are checked against the state before the block; the clock shows the last height of epoch 3.
    let last = 4 * HEIGHTS - 1;
    while bridge.clock().height() < last {
        bridge.begin();
        bridge.apply(vec![]);
    }
    assert_eq!(bridge.clock().epoch(), 3);
    let early = BridgeFact::Redeem(payments[1].clone());
    assert_eq!(bridge.check(&early), Ok(()));
    assert_eq!(credited(&bridge.apply(vec![early])), 10, "at the last height");
    assert_eq!(credited(&bridge.apply(vec![BridgeFact::Redeem(payments[0].clone())])), 0, "and no copy");
    let mut bridge = Bridge::parse(rules_of_bridge(BTreeMap::new()), &bridge.encode()).unwrap();
    bridge.begin();
    for payment in &payments {
        let late = BridgeFact::Redeem(payment.clone());
        assert_eq!(bridge.check(&late), Err(BridgeRefusal::NotRedeemable(0)));
        assert_eq!(bridge.apply(vec![late]), [], "pruned: neither the late nor the copies are paid");
    }
    assert_eq!(bridge.escrow(ASSET), 10, "unclaimed units stay in escrow");
}

/// A claim that the limit queues is paid in full, although the lane is halted and its certificate expires in the
/// meantime.
#[test]
fn halt_outflow_limit_and_expiry_together_lose_no_claim() {
    let coins = [genesis(0, 1, 1_000), genesis(1, 2, 50)];
    let limit = OutflowLimit { most: 100, per_height: 3 };
    let outflow = BTreeMap::from([(ASSET, limit)]);
    let mut bridge = bridge(&coins, outflow.clone());
    let (large, small) = (account_payment(&coins[0], 1, 7), account_payment(&coins[1], 2, 8));
    while bridge.clock().height() < 4 * HEIGHTS - 2 {
        bridge.begin();
        bridge.apply(vec![]);
    }
    bridge.begin();
    let mut facts = vec![BridgeFact::Redeem(large.clone()), BridgeFact::Redeem(small)];
    let (epoch, round) = (bridge.clock().epoch(), bridge.clock().halt_round());
    facts.extend((0..3).map(|validator| BridgeFact::Halt { epoch, round, validator }));
    facts.iter().for_each(|fact| assert_eq!(bridge.check(fact), Ok(())));
    let mut paid = credited(&bridge.apply(facts));
    assert_eq!(paid, 100, "in part, up to the limit");
    let mut halted = 0;
    let mut first = true;
    for height in 0.. {
        bridge = Bridge::parse(rules_of_bridge(outflow.clone()), &bridge.encode()).unwrap();
        let events = bridge.begin();
        assert_eq!(events.contains(&BridgeEvent::Halted(true)), std::mem::take(&mut first));
        halted += u64::from(bridge.clock().is_halted());
        // A deposit makes room: limits apply to net outflow.
        let output = output(owner(5).public(), 40);
        let deposit = BridgeFact::Withdraw { account: Address([4; 20]), sequence: 1, output };
        let now = credited(&bridge.apply(if height == 3 { vec![deposit] } else { vec![] }));
        assert!(now <= if height == 3 { 43 } else { 3 });
        paid += now;
        if bridge.queue().claims().next().is_none() {
            break;
        }
    }
    assert_eq!((paid, halted), (1_050, 4));
    assert!(bridge.clock().epoch() > 4, "long after the certificates expired");
    assert_eq!(bridge.escrow(ASSET), 40);
}

#[test]
fn claims_above_escrow_are_paid_by_id_and_halt_the_lane() {
    let coins = [genesis(0, 1, 30)];
    let forged: Vec<Arc<PaymentBody>> =
        (5..8).map(|index| account_payment(&genesis(index, 1, 20), 1, index as u8)).collect();
    let mut bridge = bridge(&coins, BTreeMap::new());
    bridge.begin();
    let events = bridge.apply(forged.iter().rev().map(|body| BridgeFact::Redeem(body.clone())).collect());
    assert_eq!((credited(&events), bridge.escrow(ASSET)), (30, 0), "not a unit more than escrow holds");
    assert!(events.contains(&BridgeEvent::Uncovered(ASSET)));
    let mut by_id: Vec<(OutputId, Address)> = forged
        .iter()
        .map(|body| {
            let Recipient::Account(to) = body.payment.outputs[0].to else { panic!("an account") };
            (body.output_ids().next().unwrap(), to)
        })
        .collect();
    by_id.sort_unstable();
    let paid: Vec<(Address, u64)> = events
        .iter()
        .filter_map(|event| match event {
            BridgeEvent::Credit { to, amount, .. } => Some((*to, *amount)),
            _ => None,
        })
        .collect();
    assert_eq!(paid, [(by_id[0].1, 20), (by_id[1].1, 10)]);
    assert!(bridge.begin().contains(&BridgeEvent::Halted(true)));
    assert_eq!(bridge.queue().claims().count(), 2);
}

/// Two certificates of one output: more than f validators are Byzantine.
#[test]
fn a_contradiction_is_not_paid_and_halts_the_lane() {
    let coins = [genesis(0, 1, 10)];
    let [first, second] = [7, 8].map(|to| account_payment(&coins[0], 1, to));
    let mut bridge = bridge(&coins, BTreeMap::new());
    bridge.begin();
    assert_eq!(credited(&bridge.apply(vec![BridgeFact::Redeem(first)])), 10);
    bridge.begin();
    let fact = BridgeFact::Redeem(second.clone());
    assert_eq!(bridge.check(&fact), Ok(()), "what proves the break reaches the ledger");
    let events = bridge.apply(vec![fact]);
    assert_eq!(events, [BridgeEvent::Case(CaseEvent::Alarm(second.digest))]);
    assert_eq!(bridge.escrow(ASSET), 0);
    assert!(bridge.begin().contains(&BridgeEvent::Halted(true)));
}

#[test]
fn a_case_is_opened_in_time_by_whoever_owns_an_output_that_exists() {
    let coins = [genesis(0, 1, 10)];
    let mut bridge = bridge(&coins, BTreeMap::new());
    let resolve =
        |contested, parent| BridgeFact::Resolve { opener: Address([1; 20]), bid: 3, cases: vec![(contested, parent)] };
    let case = contested(&coins[0], 0, 1);
    assert_eq!(bridge.check(&resolve(case, None)), Ok(()));
    let stolen = contested(&coins[0], 0, 2);
    assert_eq!(bridge.check(&resolve(stolen, None)), Err(BridgeRefusal::UnknownOutput));
    let mut more = case;
    more.output.amount += 1;
    assert_eq!(bridge.check(&resolve(more, None)), Err(BridgeRefusal::UnknownOutput));
    let future = ContestedOutput { home: 1, ..case };
    assert_eq!(bridge.check(&resolve(future, None)), Err(BridgeRefusal::TooLate(1)));
    // Signatures: the owner's on the exit.
    let exit = PaymentBody::new(case.exit(NETWORK));
    let sign = |number: u64| owner(number).sign(&owner_message(&NETWORK, 0, &exit.digest));
    let verify = |operation: &BridgeOperation| {
        let operation = BridgeOperation::parse(&operation.encode()).expect("one encoding");
        let committee = committee(4);
        let result = operation.verify(
            &NETWORK,
            Address([1; 20]),
            |epoch| (epoch == 0).then_some(&committee),
            &[],
            &mut RootCache::new(0),
            &mut CheckBudget(10),
        );
        result.map(drop)
    };
    let operation = |number| BridgeOperation::Resolve {
        bid: 3,
        outputs: vec![ContestClaim { contested: case, signature: sign(number), proof: OutputProof::Ledger }],
    };
    assert_eq!(verify(&operation(1)), Ok(()));
    assert_eq!(verify(&operation(2)), Err(LaneRefusal::WrongOwnerSignature));
    // A vote, a view and a halt need the validator's own signature.
    let payer = owner(1).public();
    let signed = |kind, digest| forge(&committee(4), 2, kind, &payer, digest);
    let vote = |answer| BridgeOperation::Vote {
        case: case.output.id,
        payment: exit.payment.encode(),
        signature: None,
        answer,
    };
    let viewed =
        |paid, answer| BridgeOperation::View { case: case.output.id, committee: 0, owner: payer, paid, answer };
    let view = |answer| viewed(None, answer);
    let halt = |answer| BridgeOperation::Halt { epoch: 0, round: 0, owner: payer, answer };
    let confirmation = signed(StatementKind::Confirmation, exit.digest);
    let seen_answer = signed(StatementKind::View, view_digest(&case.output.id, None));
    // A view that names a payment stands with its certificate, and not without it, or with another one.
    let naming = signed(StatementKind::View, view_digest(&case.output.id, Some(&exit.digest)));
    let certified = |signer: fn(usize) -> u64| {
        let answers = (0..3).map(|member| {
            let digest = if signer(member) == 0 { exit.digest } else { Digest([9; 32]) };
            forge(&committee(4), member, StatementKind::Confirmation, &payer, digest)
        });
        let certificate = PaymentCertificate::Answers(answers.collect());
        Some(Box::new(CertifiedPayment { summary: exit.payment.summary(), certificate }))
    };
    let halting = signed(StatementKind::Halt, halt_digest(0, 0));
    for (operation, valid) in [
        (vote(confirmation.clone()), true),
        (vote(seen_answer.clone()), false),
        (view(seen_answer.clone()), true),
        (view(confirmation.clone()), false),
        (view(naming.clone()), false),
        (viewed(certified(|_| 0), naming.clone()), true),
        (viewed(certified(|member| u64::from(member == 2)), naming), false),
        (viewed(certified(|_| 0), seen_answer.clone()), false),
        (halt(halting.clone()), true),
        (halt(confirmation), false),
        (BridgeOperation::Halt { epoch: 0, round: 1, owner: payer, answer: halting }, false),
    ] {
        assert_eq!(verify(&operation).is_ok(), valid, "{operation:?}");
    }
    let bytes = operation(1).encode();
    assert!((0..bytes.len()).all(|length| BridgeOperation::parse(&bytes[..length]).is_err()));
    while bridge.clock().may_open(0) {
        bridge.begin();
    }
    assert_eq!(bridge.clock().height(), 2 * HEIGHTS + HEIGHTS / 2);
    assert_eq!(bridge.check(&resolve(case, None)), Err(BridgeRefusal::TooLate(0)));
}

/// Registrations of four members: an epoch waits for a quorum, and each wrong one is refused.
#[test]
fn an_epoch_begins_once_a_quorum_has_registered_fresh_keys() {
    let registrar = |member: u8| secret(60, member.into());
    let fresh = |member: u8, epoch: u64| secret(61, epoch * 1_000 + u64::from(member));
    let registrars = (0..4).map(|member| registrar(member).public()).collect();
    let rules = BridgeRules { registrars, ..rules_of_bridge(BTreeMap::new()) };
    let (mut bridge, _) = Bridge::new(rules.clone(), &[]);
    (0..10).for_each(|epoch| bridge.register(epoch, Quorums::new(4)));
    let register = |member: u8, epoch: u64, key: SecretKey| {
        let (registration, proofs) = LaneRegistration::make(&NETWORK, epoch, member, &[key], &registrar(member));
        let operation = BridgeOperation::Register { registration, proofs };
        let operation = BridgeOperation::parse(&operation.encode()).expect("one encoding");
        let (roots, budget) = (&mut RootCache::new(0), &mut CheckBudget(operation.cost()));
        operation.verify(&NETWORK, Address([1; 20]), |_| None, &rules.registrars, roots, budget).expect("it holds")
    };
    let refused = |next| Err(BridgeRefusal::WrongRegistration(next));
    for height in 1..=3 * HEIGHTS {
        let epoch =
            bridge.begin().iter().find_map(|e| if let BridgeEvent::Epoch(epoch) = e { Some(*epoch) } else { None });
        assert_eq!(epoch, (height == 2 * HEIGHTS).then_some(1), "at height {height}");
        let facts: Vec<BridgeFact> = match height {
            1 => vec![register(0, 1, fresh(0, 1)), register(1, 1, fresh(1, 1))],
            // The previous epoch continues until the third one has registered.
            height if height + 1 == 2 * HEIGHTS => vec![register(3, 1, fresh(3, 1))],
            _ => vec![],
        };
        assert!(facts.iter().all(|fact| bridge.check(fact) == Ok(())));
        let (events, entries) = bridge.step(facts.clone());
        assert_eq!((events.len(), entries.len()), (facts.len(), facts.len()));
        if height == 1 {
            assert_eq!(bridge.check(&facts[0]), Ok(()), "a copy does nothing");
            assert!(bridge.step(facts).0.is_empty());
            assert_eq!(bridge.check(&register(0, 1, fresh(0, 7))), refused(1), "another key, too late");
            assert_eq!(bridge.check(&register(2, 2, fresh(2, 2))), refused(1), "not the next epoch");
            assert_eq!(bridge.check(&register(2, 0, fresh(2, 2))), refused(1), "an epoch that has begun");
        }
        assert_eq!(Bridge::parse(rules.clone(), &bridge.encode()), Ok(bridge.clone()));
    }
    assert_eq!(bridge.check(&register(0, 2, fresh(0, 1))), refused(2), "a key of the epoch before");
    assert_eq!(bridge.check(&register(2, 2, fresh(2, 2))), Ok(()), "a member that missed an epoch joins the next");
}

/// Three of four members have keys, and one of the three is silent: the other two decide a case, since who has no keys
/// counts as a vote for something else and as an empty view.
#[test]
fn a_member_without_keys_counts_as_an_empty_view_and_a_vote_for_something_else() {
    let registrars = (0..4).map(|member| secret(60, member).public()).collect();
    let rules = BridgeRules { registrars, ..rules_of_bridge(BTreeMap::new()) };
    let register = |member: u8, epoch: u64| {
        let key = secret(61, epoch * 1_000 + u64::from(member));
        let registrar = secret(60, member.into());
        BridgeFact::Register(LaneRegistration::make(&NETWORK, epoch, member, &[key], &registrar).0)
    };
    for registered in [3, 4] {
        let (mut bridge, _) = Bridge::new(rules.clone(), &[]);
        (0..10).for_each(|epoch| bridge.register(epoch, Quorums::new(4)));
        let mut step = |facts: Vec<BridgeFact>| {
            bridge.begin();
            assert!(facts.iter().all(|fact| bridge.check(fact) == Ok(())));
            let events = bridge.step(facts).0;
            assert_eq!(Bridge::parse(rules.clone(), &bridge.encode()), Ok(bridge.clone()));
            events
        };
        step((0..registered).map(|member| register(member, 1)).collect());
        (1..HEIGHTS).for_each(|_| drop(step(vec![])));
        let (account, output) = (Address([4; 20]), output(owner(1).public(), 10));
        step(vec![BridgeFact::Withdraw { account, sequence: 1, output }]);
        let id = OutputId::of_deposit(&NETWORK, 1, &account, 1);
        let coin = Holding { id, output, proof: OutputProof::Ledger };
        let to = vec![Output { to: Recipient::Key(owner(2).public()), ..output }];
        let x = body(&build_payment(&self::rules(), &owner(1), 1, 1, vec![coin.clone()], to).expect("correct"));
        let case = contested(&coin, 1, 1);
        let exit = Arc::new(PaymentBody::new(case.exit(NETWORK)));
        step(vec![BridgeFact::Resolve { opener: account, bid: 3, cases: vec![(case, None)] }]);
        let vote =
            |validator, payment: &Arc<PaymentBody>| BridgeFact::Vote { case: id, validator, payment: payment.clone() };
        let events = step(vec![vote(0, &x), vote(1, &exit)]);
        let fixed = |event: &BridgeEvent| matches!(event, BridgeEvent::Case(CaseEvent::Fixed(..)));
        assert_eq!(events.iter().any(fixed), registered == 3);
        let view = |validator| BridgeFact::View { case: id, committee: 1, validator, paid: None };
        step(vec![view(0), view(1)]);
        let mut ruled = Vec::new();
        for epoch in 2..=4 {
            ruled.extend(step((0..3).map(|member| register(member, epoch)).collect()));
            (1..HEIGHTS).for_each(|_| ruled.extend(step(vec![])));
        }
        let verdict = if registered == 3 { Verdict::Lapsed } else { Verdict::Expired };
        assert!(ruled.contains(&BridgeEvent::Case(CaseEvent::Ruled(case, verdict))), "{registered} registered");
    }
}
