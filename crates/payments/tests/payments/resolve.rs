//! Protocol R: the losses of naive rules, and the course of a case.

use kernel::RemainderDice;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::lane::ledger::*;
use crate::lane::*;
use payments::*;
use primitives::{Address, Digest};

/// The first naive rule: complete the only reported transaction.
fn complete_the_only_one(votes: &[Option<Arc<PaymentBody>>]) -> Option<Arc<PaymentBody>> {
    let reported: BTreeMap<Digest, &Arc<PaymentBody>> =
        votes.iter().flatten().map(|body| (body.digest, body)).collect();
    (reported.len() == 1).then(|| reported.into_values().next().expect("one").clone())
}

/// n = 4: X = {a, b} reaches one validator, Z = {b} is certified by the other three; a is resolved. No validator is
/// faulty.
#[test]
fn completing_the_only_reported_payment_spends_an_output_twice_and_ours_does_not() {
    let coins = [genesis(0, 1, 10), genesis(1, 1, 10)];
    let mut sorted = coins.to_vec();
    sorted.sort_by_key(|coin| coin.id);
    let (a, b) = (&coins[0], &coins[1]);
    let mut nodes = nodes(4, 1, &coins);
    let x = pay(1, &sorted, vec![output(owner(2).public(), 20)]);
    let z = pay(1, std::slice::from_ref(b), vec![output(owner(3).public(), 10)]);
    nodes[0].ask(&x.request).expect("X reaches one validator");
    let committee = nodes[0].settings.committee.clone();
    let mut collector = AnswerCollector::new(StatementKind::Confirmation, body(&z).payment.summary());
    let answers: Vec<_> =
        nodes[1..].iter_mut().map(|node| node.ask(&z.request).expect("Z reaches the others")).collect();
    let z_is_certified = answers
        .into_iter()
        .filter_map(|answer| collector.add(&committee, &mut RootCache::new(0), answer).expect("a correct answer"));
    assert_eq!(z_is_certified.count(), 1);
    // The naive rule asks every validator for the payment that spends a.
    let reported = [Some(body(&x)), None, None, None];
    let completed = complete_the_only_one(&reported).expect("one is reported");
    let spends_b = |body: &PaymentBody| body.input_ids().any(|id| id == b.id);
    assert!(spends_b(&completed) && spends_b(&body(&z)), "b is spent twice: by X, completed, and by Z, certified");
    // The real protocol.
    let mut bridge = bridge(&coins, &[4, 4]);
    let case = contested(a, 0, 1);
    block(&mut bridge, vec![open(case)]);
    let mut ops = Vec::new();
    for (validator, node) in (0..).zip(&mut nodes) {
        let mut effects = node.step(LaneInput::CaseOpened(case));
        effects.extend(node.step(LaneInput::Tick));
        effects.extend(node.sync());
        let payment = effects.into_iter().find_map(|effect| match effect {
            LaneEffect::Vote { payment, .. } => Some(payment),
            _ => None,
        });
        let payment = Arc::new(PaymentBody::parse(&payment.expect("each votes")).unwrap());
        assert_eq!(payment.digest == body(&x).digest, validator == 0);
        ops.push(vote(a, validator, &payment));
    }
    let events = block(&mut bridge, ops);
    let exit = exit_of(&case).digest;
    assert_eq!(verdicts(&events), [(a.id, Verdict::Confirmed(exit, ConfirmedBy::Votes))]);
    assert_eq!(credits(&events), [(owner(1).public().address(), 10)], "a is credited in full");
    let redeemed = block(&mut bridge, vec![BridgeFact::Redeem(body(&z))]);
    assert!(redeemed.iter().all(|event| !matches!(event, BridgeEvent::Case(CaseEvent::Alarm(_)))), "Z stands");
    // X has no certificate. If it had one, more than f validators would be Byzantine, and it would not be paid.
    let events = block(&mut bridge, vec![BridgeFact::Redeem(body(&x))]);
    assert_eq!(events, [BridgeEvent::Case(CaseEvent::Alarm(x.digest))]);
}

/// X, to the owner's own ledger account, was certified and redeemed; no one posts it in the window.
#[test]
fn refunding_what_has_no_certificate_after_an_epoch_pays_twice_and_ours_does_not() {
    for redeemed_first in [true, false] {
        let coins = [genesis(0, 1, 10), genesis(1, 7, 10)];
        let a = &coins[0];
        let home = Output { to: Recipient::Account(owner(1).public().address()), asset: ASSET, amount: 10 };
        let x = body(&pay(1, std::slice::from_ref(a), vec![home]));
        let case = contested(a, 0, 1);
        // The naive rule sees a case, an epoch, and no certificate posted in it.
        let posted_in_the_window = false;
        let naive_escrow = 20 - 10 - if posted_in_the_window { 0 } else { 10 };
        assert_eq!(naive_escrow, 0, "the money of the other output is gone");
        // The real protocol.
        let mut bridge = bridge(&coins, &[4, 4]);
        let mut paid = Vec::new();
        if redeemed_first {
            paid.extend(credits(&block(&mut bridge, vec![BridgeFact::Redeem(x.clone())])));
        }
        let events = block(&mut bridge, vec![open(case)]);
        paid.extend(credits(&events));
        let confirmed = (a.id, Verdict::Confirmed(x.digest, ConfirmedBy::Certificate));
        if redeemed_first {
            assert_eq!(verdicts(&events), [confirmed]);
            assert!(events.contains(&BridgeEvent::KeepDeposit(3)), "the case was needless");
        } else {
            let events = block(&mut bridge, vec![BridgeFact::Redeem(x.clone())]);
            assert_eq!(verdicts(&events), [confirmed]);
            paid.extend(credits(&events));
        }
        for _ in 0..3 * HEIGHTS {
            paid.extend(credits(&block(&mut bridge, vec![BridgeFact::Redeem(x.clone())])));
        }
        assert_eq!((paid.len(), bridge.escrow(ASSET)), (1, 10), "paid once, and the other output is backed");
    }
}

#[test]
fn an_output_without_any_payment_goes_home_by_votes_and_the_deposit_comes_back() {
    let coins = [genesis(0, 1, 10)];
    let mut bridge = bridge(&coins, &[4, 4]);
    let case = contested(&coins[0], 0, 1);
    // Two accounts open the same case in one block: one pays its bid.
    let events = block(&mut bridge, vec![open(case), open(case)]);
    let returned =
        |events: &[BridgeEvent]| events.iter().filter(|e| matches!(e, BridgeEvent::ReturnDeposit(..))).count();
    assert_eq!((returned(&events), bridge.case_deposits()), (1, 3));
    let exit = exit_of(&case);
    let events = block(&mut bridge, (0..3).map(|validator| vote(&coins[0], validator, &exit)).collect());
    assert_eq!(credits(&events), [(owner(1).public().address(), 10)]);
    assert!(events.contains(&BridgeEvent::KeepDeposit(3)), "the case has used up its bid");
    assert_eq!((returned(&events), bridge.case_deposits(), bridge.escrow(ASSET)), (0, 0, 0));
    // Its certificate is a copy of a finished operation.
    assert_eq!(credits(&block(&mut bridge, vec![BridgeFact::Redeem(exit)])), []);
}

/// One case of a lapse, and what is void after it.
#[test]
fn a_lapse_needs_views_and_time_and_makes_candidates_void() {
    let coins = [genesis(0, 1, 10)];
    let a = &coins[0];
    let [x, y] = [2, 3].map(|to| body(&pay(1, &coins, vec![output(owner(to).public(), 10)])));
    let mut bridge = bridge(&coins, &[4, 4]);
    block(&mut bridge, vec![open(contested(a, 0, 1))]);
    let exit = exit_of(&contested(a, 0, 1));
    let view = |validator| BridgeFact::View { case: a.id, committee: 0, validator, paid: None };
    assert_eq!(verdicts(&block(&mut bridge, vec![view(0), vote(a, 0, &x), vote(a, 1, &x)])), []);
    let events = block(&mut bridge, vec![vote(a, 2, &y), vote(a, 9, &exit)]);
    let fixed = events.iter().find_map(|event| match event {
        BridgeEvent::Case(CaseEvent::Fixed(id, bodies)) => Some((*id, bodies.len())),
        _ => None,
    });
    assert_eq!(fixed, Some((a.id, 2)));
    let unknown = BridgeFact::View { case: a.id, committee: 0, validator: 3, paid: Some((0, Digest([0; 32]))) };
    assert_eq!(bridge.check(&unknown), Err(BridgeRefusal::NoCase), "nobody voted for it");
    block(&mut bridge, vec![view(0), view(1), view(4)]);
    block(&mut bridge, vec![vote(a, 2, &exit), view(1)]);
    for _ in 0..2 * HEIGHTS {
        assert_eq!(verdicts(&block(&mut bridge, vec![])), [], "time alone credits nothing");
    }
    let events = block(&mut bridge, vec![view(3)]);
    assert_eq!(verdicts(&events), [(a.id, Verdict::Lapsed)]);
    assert_eq!(credits(&events), [(owner(1).public().address(), 9)], "less a tenth");
    for late in [&x, &y, &exit] {
        assert!(bridge.check(&BridgeFact::Redeem(late.clone())).is_err());
        assert_eq!(block(&mut bridge, vec![BridgeFact::Redeem(late.clone())]), []);
    }
    assert_eq!(bridge.escrow(ASSET), 1, "the penalty stays");
}

/// Two votes and silence: nothing is decided, and the case does not stay open for ever.
#[test]
fn an_undecided_case_expires_and_a_certificate_still_confirms_its_payment() {
    let coins = [genesis(0, 1, 10)];
    let account = Output { to: Recipient::Account(Address([7; 20])), asset: ASSET, amount: 10 };
    let x = body(&pay(1, &coins, vec![account]));
    let mut bridge = bridge(&coins, &[4, 4]);
    block(&mut bridge, vec![open(contested(&coins[0], 0, 1))]);
    block(&mut bridge, vec![vote(&coins[0], 0, &x), vote(&coins[0], 1, &x)]);
    let mut ruled = Vec::new();
    while ruled.is_empty() {
        bridge.register(bridge.clock().epoch() + 2, Quorums::new(4));
        assert!(bridge.needs(0) && bridge.needs(1), "members need their keys while the case is open");
        let events = block(&mut bridge, vec![]);
        assert_eq!(credits(&events), []);
        ruled = verdicts(&events);
    }
    assert_eq!((ruled, bridge.clock().epoch()), (vec![(coins[0].id, Verdict::Expired)], 3));
    assert_eq!((bridge.case_deposits(), bridge.resolver().expired().count()), (0, 1));
    assert!(bridge.check(&open(contested(&coins[0], 0, 1))).is_err(), "not opened again");
    assert_eq!(bridge.check(&BridgeFact::Redeem(x.clone())), Ok(()));
    assert_eq!(credits(&block(&mut bridge, vec![BridgeFact::Redeem(x)])), [(Address([7; 20]), 10)]);
    assert_eq!(bridge.resolver().expired().count(), 0);
}

/// Lane time stands still: registrars register nothing, or the lane is halted again and again.
#[test]
fn a_case_expires_by_block_heights_while_lane_time_stands_still() {
    let coins = [genesis(0, 1, 10)];
    let mut bridge = bridge(&coins, &[4, 4]);
    block(&mut bridge, vec![open(contested(&coins[0], 0, 1))]);
    let halt =
        |bridge: &Bridge, validator| BridgeFact::Halt { epoch: 0, round: bridge.clock().halt_round(), validator };
    let mut heights = 0;
    while bridge.resolver().open_cases() > 0 {
        let halts = (0..3).map(|validator| halt(&bridge, validator)).collect();
        block(&mut bridge, halts);
        heights += 1;
    }
    assert_eq!((heights, bridge.clock().epoch()), (8 * HEIGHTS, 0));
}

/// A payment that is confirmed at the last moment: exits of its outputs are redeemed through the sixth epoch after the
/// home, and one predicate says so of certificates and evidence.
#[test]
fn a_late_verdict_keeps_its_epochs_until_exits_are_redeemed() {
    let coins = [genesis(0, 1, 10)];
    let x = body(&pay(1, &coins, vec![output(owner(2).public(), 10)]));
    let mut bridge = bridge(&coins, &[4, 4]);
    let pass_to = |bridge: &mut Bridge, epoch| {
        while bridge.clock().epoch() < epoch {
            bridge.register(bridge.clock().epoch() + 2, Quorums::new(4));
            block(bridge, vec![]);
        }
    };
    pass_to(&mut bridge, 2);
    block(&mut bridge, vec![open(contested(&coins[0], 0, 1))]);
    pass_to(&mut bridge, 4);
    let events = block(&mut bridge, vec![BridgeFact::Redeem(x.clone())]);
    assert_eq!(verdicts(&events), [(coins[0].id, Verdict::Confirmed(x.digest, ConfirmedBy::Certificate))]);
    let child = Holding { id: x.output_ids().next().expect("it has one"), ..coins[0].clone() };
    let exit = exit_of(&contested(&child, 0, 2));
    for (epoch, needs, is_kept) in [(4, true, true), (5, true, true), (6, false, true), (7, false, false)] {
        pass_to(&mut bridge, epoch);
        assert_eq!((bridge.needs(0), bridge.is_kept(0)), (needs, is_kept), "epoch {epoch}");
        assert_eq!(bridge.check(&BridgeFact::Redeem(exit.clone())).is_ok(), is_kept, "epoch {epoch}");
        assert_eq!(bridge.oldest() == 0, is_kept, "epoch {epoch}");
    }
}

/// A certificate of a void payment that appears as the origin of another contested output confirms nothing: the bars
/// on it stay.
#[test]
fn a_void_payment_is_not_confirmed_by_its_certificate() {
    let coins = [genesis(0, 1, 10)];
    let a = &coins[0];
    let x = body(&pay(1, &coins, vec![output(owner(2).public(), 10)]));
    let case = contested(a, 0, 1);
    for is_void in [true, false] {
        let mut bridge = bridge(&coins, &[4, 4]);
        block(&mut bridge, vec![open(case)]);
        block(&mut bridge, vec![vote(a, 0, &x), vote(a, 1, &x), vote(a, 2, &exit_of(&case))]);
        let view = |validator| BridgeFact::View { case: a.id, committee: 0, validator, paid: None };
        block(&mut bridge, (0..3).take_while(|_| is_void).map(view).collect());
        let ruled: Vec<_> = (0..2 * HEIGHTS).flat_map(|_| verdicts(&block(&mut bridge, vec![]))).collect();
        assert_eq!(ruled, [(a.id, Verdict::Lapsed)][..usize::from(is_void)]);
        let child = Holding { id: x.output_ids().next().expect("it has one"), ..a.clone() };
        let cases = vec![(contested(&child, 0, 2), Some((0, x.digest)))];
        block(&mut bridge, vec![BridgeFact::Resolve { opener: Address([1; 20]), bid: 3, cases }]);
        assert!(bridge.resolver().certified().any(|digest| *digest == x.digest));
        assert_eq!(bridge.resolver().confirms(&x.digest), !is_void);
    }
}

#[test]
fn the_order_of_a_block_changes_nothing() {
    let coins = [genesis(0, 1, 10), genesis(1, 1, 20)];
    let [x, y] = [2, 3].map(|to| body(&pay(1, &coins[..1], vec![output(owner(to).public(), 10)])));
    let account = Output { to: Recipient::Account(Address([7; 20])), asset: ASSET, amount: 20 };
    let z = body(&pay(1, &coins[1..], vec![account]));
    let withdraw =
        |sequence| BridgeFact::Withdraw { account: Address([4; 20]), sequence, output: output(owner(5).public(), 8) };
    let mut facts = vec![
        open(contested(&coins[0], 0, 1)),
        vote(&coins[0], 0, &x),
        vote(&coins[0], 0, &y),
        vote(&coins[0], 1, &x),
        vote(&coins[0], 3, &y),
        vote(&coins[0], 2, &y),
        BridgeFact::Redeem(z.clone()),
        BridgeFact::Redeem(z),
        withdraw(1),
        withdraw(2),
    ];
    let mut start = bridge(&coins, &[4, 4]);
    block(&mut start, vec![open(contested(&coins[0], 0, 1))]);
    let run = |facts: &[BridgeFact]| {
        let mut bridge = start.clone();
        let events = bridge.apply(facts.to_vec());
        (bridge.encode(), events)
    };
    let first = run(&facts);
    let mut random = RemainderDice::new(1);
    for _ in 0..50 {
        (1..facts.len()).for_each(|place| facts.swap(place, random.index(place + 1)));
        assert_eq!(run(&facts), first);
    }
}
