//! Contested outputs: what a member asks its shards, and what it tells them.

use payments::{
    CertifiedPayment, Claim, Holding, Output, PaymentCertificate, Recipient, Resolver, SignedPayment, StatementKind,
    build_payment,
};

use crate::*;

/// The shell loses a vote, because its queue is full: the shards are asked again until the ledger has it.
#[test]
fn a_vote_that_was_lost_is_asked_for_again() {
    let mut world = World::new(false);
    let case = world.contest();
    let told = |world: &mut World| {
        let told = world.told(|fact| matches!(fact, LaneInput::CaseOpened(of) if of.output.id == case));
        told.into_iter().filter(|(home, _)| *home == 0).count()
    };
    assert_eq!(told(&mut world), 2, "both shards of its home");
    world.pass(ASK_BLOCKS - 1);
    assert_eq!(told(&mut world), 0, "it is not asked for with each block");
    world.pass(1);
    assert_eq!(told(&mut world), 2, "the ledger lacks its vote");
    let vote = vote(&world, case);
    world.give(MemberInput::Reported(0, 0, vote));
    assert_eq!(world.posted(), [(BridgeKey::Vote(case, 0), world.ledger.height() + POST_BLOCKS)]);
    world.pass(ASK_BLOCKS);
    assert_eq!(told(&mut world), 0, "the post has it");
}

/// The shard that signs for the owner posts the view once both shards bar the candidates; if a report was lost, they
/// are asked again.
#[test]
fn a_view_waits_for_the_bars_of_all_shards() {
    let mut world = World::new(false);
    let case = world.contest();
    world.taken();
    let barred = || LaneEffect::Barred { case, paid: None };
    let is_it = move |fact: &LaneInput<'static>| matches!(fact, LaneInput::AllBarred(of, None) if *of == case);
    world.give(MemberInput::Reported(0, 1, barred()));
    assert_eq!(world.told(is_it), []);
    world.give(MemberInput::Reported(0, 0, barred()));
    let committee = world.ledger.lane().and_then(|lane| lane.committee(0)).expect("it counts");
    let posting = committee.shard_of(0, &key(1).public()).expect("a member");
    assert_eq!(world.told(is_it), [(0, posting)]);
    world.give(MemberInput::Reported(0, 0, barred()));
    assert_eq!(world.told(is_it), [(0, posting)], "a report that is repeated has the same result");
    world.give(MemberInput::Reported(0, posting, LaneEffect::View { case, paid: None, answer: answer() }));
    assert_eq!(world.posted().iter().map(|(key, _)| *key).collect::<Vec<_>>(), [BridgeKey::View(case, 0, 0)]);
}

/// A case keeps the keys of its homes until its verdict.
#[test]
fn keys_outlast_their_epochs_while_a_case_needs_them() {
    let mut world = World::new(false);
    let (id, home) = world.withdraw();
    while world.epoch() < 2 {
        world.pass(1);
    }
    world.contest_output(id, home);
    while world.epoch() < 4 {
        world.pass(1);
    }
    world.pass(HEIGHTS - 1);
    assert!(world.keys.contains(&0) && world.keys.contains(&1));
    // The case has expired, and its homes sign in the epoch of the verdict.
    while world.epoch() < 6 {
        world.pass(1);
    }
    assert!(!world.keys.contains(&0) && !world.keys.contains(&1), "{:?}", world.keys);
}

/// The answer of another member.
fn signed(world: &World, validator: u8, owner: &SecretKey, digest: &Digest) -> LaneAnswer {
    let committee = world.ledger.lane().and_then(|lane| lane.committee(0)).expect("it counts");
    let claim = Claim { kind: StatementKind::Confirmation, owner: &owner.public(), digest };
    let mut answer = LaneAnswer { validator, ..answer() };
    let header = answer.header(committee, &claim).expect("a tree of one leaf");
    answer.signature = other_key(validator, header.shard).sign(&header.bytes());
    answer
}

/// The case of a barred payment expires, and the payment's certificate is shown afterwards: shards that run are told.
#[test]
fn a_certificate_that_is_shown_after_its_case_has_expired_lifts_the_bar() {
    assert!(is_bar_lifted(None));
    assert!(!is_bar_lifted(Some(MemberMistake::LateCertificateNotTold)), "the mistake is not found");
}

fn resolver(world: &World) -> &Resolver {
    world.ledger.lane().expect("there is one").bridge().resolver()
}

/// The certificate of a payment by three other members.
fn certificate(world: &World, digest: &Digest) -> PaymentCertificate {
    PaymentCertificate::Answers([1, 2, 3].map(|member| signed(world, member, &key(1), digest)).to_vec())
}

/// A payment of a contested output that shards bar.
fn barred(world: &mut World) -> (Vec<u8>, Digest) {
    let (id, home) = world.withdraw();
    let lane = world.ledger.lane().expect("there is one");
    let output = Output { to: Recipient::Key(key(1).public()), asset: USD, amount: 100 };
    let (rules, coin) = (lane.rules(home), Holding { id, output, proof: OutputProof::Ledger });
    let outputs = vec![Output { to: Recipient::Key(key(3).public()), ..output }];
    let paid = build_payment(&rules, &key(1), home, home, vec![coin], outputs).expect("correct");
    let SignedPayment { payment, digest, signature, .. } = paid;
    world.contest_output(id, home);
    let LaneEffect::Vote { payment: exit, .. } = vote(world, id) else { unreachable!("it is a vote") };
    let exit_digest = PaymentBody::parse(&exit).expect("an exit").digest;
    for (member, payment, digest) in [(1, &payment, &digest), (2, &exit, &exit_digest), (3, &exit, &exit_digest)] {
        let answer = signed(world, member, &key(1), digest);
        let vote = BridgeOperation::Vote {
            case: id,
            payment: payment.clone(),
            signature: (member == 1).then_some(signature),
            answer,
        };
        world.apply(vec![Operation::Lane(vote.encode().into())]);
    }
    world.certify();
    let barring = world.told(|fact| matches!(fact, LaneInput::CandidatesFixed(..)));
    assert!(barring.starts_with(&[(0, 0), (0, 1)]), "{barring:?}");
    (payment, digest)
}

fn is_bar_lifted(mistake: Option<MemberMistake>) -> bool {
    let mut world = World::among(false, 3, mistake);
    let (payment, digest) = barred(&mut world);
    while world.epoch() < 3 {
        world.pass(1);
    }
    world.pass(1);
    assert!(resolver(&world).open_cases() == 0 && !resolver(&world).confirms(&digest), "it has expired");
    world.taken();
    let redeem = BridgeOperation::Redeem { payment, certificate: certificate(&world, &digest) };
    world.apply(vec![Operation::Lane(redeem.encode().into())]);
    assert!(resolver(&world).confirms(&digest) && world.taken().is_empty(), "it is not certified");
    world.certify();
    let lifted = world.told(|fact| matches!(fact, LaneInput::Confirmed(payment) if *payment == digest));
    lifted.starts_with(&[(0, 0), (0, 1)])
}

/// A shard is shown the certificate of a payment that it bars: its member posts it, while the case is open and when it
/// has expired, until the ledger has it.
#[test]
fn a_member_posts_the_certificate_of_a_payment_that_it_bars() {
    let forgetful = Some(MemberMistake::ShownNotPosted);
    for (is_expired, mistake) in [(false, None), (true, None), (false, forgetful)] {
        let mut world = World::among(false, 3, mistake);
        let (payment, digest) = barred(&mut world);
        while is_expired && resolver(&world).open_cases() > 0 {
            world.pass(1);
        }
        let posts = |world: &mut World| -> Vec<BridgeKey> {
            world.pass(1);
            let posted = world.posted().into_iter().map(|(key, _)| key);
            posted.filter(|key| matches!(key, BridgeKey::Payment(_))).collect()
        };
        assert!(posts(&mut world).is_empty());
        let certificate = certificate(&world, &digest);
        let summary = PaymentBody::parse(&payment).expect("well-formed").payment.summary();
        let shown = CertifiedPayment { summary, certificate: certificate.clone() };
        for shard in 0..SHARDS {
            world.give(MemberInput::Reported(0, shard, LaneEffect::Shown(Box::new(shown.clone()))));
        }
        if mistake.is_some() {
            assert!(posts(&mut world).is_empty(), "the mistake is not found");
            continue;
        }
        assert_eq!(posts(&mut world), [BridgeKey::Payment(digest)], "expired: {is_expired}");
        // Of an expired case the home may not be kept for so long.
        if !is_expired {
            world.pass(POST_BLOCKS - 1);
            assert_eq!(posts(&mut world), [BridgeKey::Payment(digest)], "again, until the ledger has it");
        }
        let redeem = BridgeOperation::Redeem { payment, certificate };
        world.apply(vec![Operation::Lane(redeem.encode().into())]);
        world.certify();
        assert!(resolver(&world).confirms(&digest));
        world.pass(POST_BLOCKS);
        world.taken();
        assert!(posts(&mut world).is_empty(), "the ledger has it");
    }
}
