//! The layouts of what a node and a shard that runs apart say.

use fuzz::Target;
use member::apart::{ShardAnswer, ShardFigures, ShardOrder, ShardPins};
use payments::{Output, Recipient, ShardOffer};

use crate::apart::start;
use crate::*;

/// A new node opens its homes with its first step: what it knows is kept for shards that are back later.
#[test]
fn a_shard_that_is_back_after_the_first_step_is_told_what_the_genesis_says() {
    let mut terms = genesis(false, 0);
    let output = ledger::LaneOutput { to: key(1).public(), asset: USD, amount: 50 };
    terms.lane.as_mut().expect("there is one").outputs = vec![output; 3];
    let ledger = Ledger::new(&terms).expect("sound");
    let (member, first) = LaneMember::new(settings(false, 0, None), &ledger, []);
    let mut world = World::new(false);
    (world.ledger, world.member) = (ledger, member.with_apart([1]));
    world.perform_all(first);
    world.give(MemberInput::Certified(0));
    world.taken();
    world.give(MemberInput::Back(1));
    let started = |effect: MemberEffect| match effect {
        MemberEffect::Start { home: 0, shard: 1, term } => Some(term.backed.len()),
        _ => None,
    };
    assert_eq!(world.taken().into_iter().find_map(started), Some(3));
}

/// One of each order and answer.
fn samples(world: &mut World) -> (Vec<ShardOrder>, Vec<ShardAnswer>) {
    let case = world.contest();
    let resolver = world.ledger.lane().expect("there is one").bridge().resolver();
    let contested = resolver.cases().map(|(of, _)| *of).next().expect("it is open");
    let network = world.ledger.lane().expect("there is one").network();
    let exit = std::sync::Arc::new(PaymentBody::new(contested.exit(network)));
    let certificate = payments::PaymentCertificate::Answers(vec![answer()]);
    let paid = Box::new(payments::CertifiedPayment { summary: exit.payment.summary(), certificate });
    let output = Output { to: Recipient::Key(key(1).public()), asset: USD, amount: 100 };
    let facts = [
        LaneInput::Epoch(3),
        LaneInput::Backed(case, output),
        LaneInput::Proven(case, Output { to: Recipient::Account(key(1).public().address()), ..output }),
        LaneInput::Halted(true),
        LaneInput::CaseOpened(contested),
        LaneInput::CandidatesFixed(case, vec![exit.clone()]),
        LaneInput::AllBarred(case, Some(paid.clone())),
        LaneInput::AllBarred(case, None),
        LaneInput::CaseRuled(case, payments::Verdict::Confirmed(exit.digest, payments::ConfirmedBy::Child)),
        LaneInput::CaseRuled(case, payments::Verdict::Lapsed),
        LaneInput::SignsThrough(9),
        LaneInput::Confirmed(exit.digest),
    ];
    let mut orders = vec![
        ShardOrder::Prepare { home: 4, network, bls: LaneBls::Aggregate },
        start(world, 0),
        ShardOrder::StopListening(1),
        ShardOrder::Stop(2),
        ShardOrder::Remove(3),
        ShardOrder::Forget(4),
        ShardOrder::Keep(5, BTreeSet::from([3, 4, 5])),
    ];
    orders.extend(facts.into_iter().map(|fact| ShardOrder::Tell(7, fact)));
    let offer = |bls| ShardOffer::make(&network, (4, 0, 1), &shard_key(4, 1), bls, &key(9).public());
    let reports = [
        vote(world, case),
        LaneEffect::Shown(paid.clone()),
        LaneEffect::Barred { case, paid: Some(paid.clone()) },
        LaneEffect::View { case, paid: None, answer: answer() },
    ];
    let mut answers = vec![
        ShardAnswer::Prepared(4, None),
        ShardAnswer::Prepared(4, Some(offer(LaneBls::None))),
        ShardAnswer::Prepared(4, Some(offer(LaneBls::Aggregate))),
        ShardAnswer::Counted(4, ShardFigures { signed: 1, refused: 2, log_bytes: 3 }),
        ShardAnswer::Started(5, ShardStart::Failed),
        ShardAnswer::Started(5, ShardStart::Mute),
        ShardAnswer::Started(5, ShardStart::Runs(BTreeSet::from([exit.digest]))),
    ];
    answers.extend(reports.into_iter().map(|report| ShardAnswer::Reported(6, report)));
    (orders, answers)
}

/// Whatever the other end sends: it is what it encodes, or it is nothing.
#[test]
fn orders_and_answers_have_one_encoding_and_no_bytes_are_a_panic() {
    let (orders, answers) = samples(&mut World::new(false));
    let orders = orders.iter().map(|order| order.encode().expect("it has bytes")).collect();
    let answers = answers.iter().map(|answer| answer.encode().expect("it has bytes")).collect();
    Target::new("shard-order", orders).run(|bytes| {
        let order = ShardOrder::parse(bytes).ok_or("no order")?;
        assert_eq!(order.encode().as_deref(), Some(bytes), "a second encoding");
        Ok(format!("{:?}", std::mem::discriminant(&order)))
    });
    Target::new("shard-answer", answers).run(|bytes| {
        let answer = ShardAnswer::parse(bytes).ok_or("no answer")?;
        assert_eq!(answer.encode().as_deref(), Some(bytes), "a second encoding");
        Ok(format!("{:?}", std::mem::discriminant(&answer)))
    });
}

/// What a shard reads of its own disk when it starts.
#[test]
fn pins_have_one_encoding_and_no_bytes_are_a_panic() {
    let pins = [&b"walras-lane-pin\x01"[..], &[7; 40 + 40]].concat();
    assert_eq!(ShardPins::parse(&pins).map(|pins| pins.encode()), Some(pins.clone()));
    assert!((17..pins.len()).filter(|at| *at != 56).all(|at| ShardPins::parse(&pins[..at]).is_none()));
    Target::new("shard-pins", vec![pins]).run(|bytes| {
        let pins = ShardPins::parse(bytes).ok_or("no pins")?;
        assert_eq!(pins.encode(), bytes, "a second encoding");
        Ok("pins".into())
    });
}
