//! BLS keys and group keys of the lane, through blocks. The state goes through a snapshot after each of them, so that
//! every key generation here is restarted at each of its heights.

use crate::world::*;
use ledger::{Applied, LaneBls, LaneTerms, Ledger, Outcome, Refusal};
use payments::{
    AnswerScheme, BlsAggregate, BlsCollector, BlsSecretKey, BlsSignature, BridgeEvent, BridgeOperation,
    CertifiedPayment, Dealing, HomeEpoch, KeyGeneration, LaneCommittee, LaneRegistration, Output, Payment, PaymentBody,
    PaymentCertificate, Recipient, RestartPart, ShownPayment, StatementKind, dealing_of_shard, false_dealing,
    with_told_board,
};
use primitives::{Digest, Operation, SecretKey};

const EPOCH_HEIGHTS: u64 = 32;
const MEMBERS: u8 = 4;

fn registrar(member: u8) -> SecretKey {
    key(150 + member)
}

/// The key of a member's shard in an epoch after the first.
fn fresh(member: u8, epoch: HomeEpoch) -> SecretKey {
    let mut seed = [77; 32];
    seed[..2].copy_from_slice(&[member, epoch as u8]);
    SecretKey::from_seed(seed)
}

fn secret(member: u8, epoch: HomeEpoch) -> BlsSecretKey {
    BlsSecretKey::of_shard(&fresh(member, epoch))
}

fn with(bls: LaneBls) -> LaneTerms {
    let registrars = (0..MEMBERS).map(|member| registrar(member).public()).collect();
    LaneTerms { epoch_heights: EPOCH_HEIGHTS, registrars, bls, ..terms() }
}

/// A member registers its key of the next epoch, and these BLS keys.
fn registration(world: &World, member: u8, bls: &[BlsSecretKey]) -> Operation {
    let (epoch, keys) = (world.epoch() + 1, [fresh(member, world.epoch() + 1)]);
    let (registration, proofs) =
        LaneRegistration::make_with_bls(&world.network(), epoch, member, &keys, bls, &registrar(member));
    post(&BridgeOperation::Register { registration, proofs })
}

/// These members register for the next epoch, in one block.
fn register(world: &mut World, members: impl Iterator<Item = u8>) {
    let next = world.epoch() + 1;
    let operation = |member| (1 + member, registration(world, member, &[secret(member, next)]));
    let operations: Vec<(u8, Operation)> = members.map(operation).collect();
    assert!(world.block(operations).outcomes.iter().all(|outcome| *outcome == Outcome::Applied));
}

fn bridge(world: &World) -> &payments::Bridge {
    world.ledger.lane().expect("there is one").bridge()
}

fn committee(world: &World, epoch: HomeEpoch) -> LaneCommittee {
    world.ledger.lane().and_then(|lane| lane.committee(epoch)).expect("it counts").clone()
}

fn board(world: &World, epoch: HomeEpoch) -> &KeyGeneration {
    bridge(world).generation(epoch).expect("the board is open")
}

fn deal(world: &World, dealing: Dealing, by: &SecretKey) -> Operation {
    let epoch = world.epoch() + 1;
    let signature = dealing.sign(&world.network(), epoch, by);
    post(&BridgeOperation::Deal { epoch, dealing: Box::new(dealing), signature })
}

fn deals(world: &World, dealer: u8) -> Operation {
    let key = fresh(dealer, world.epoch() + 1);
    deal(world, dealing_of_shard(board(world, world.epoch() + 1).terms(), dealer, &key), &key)
}

/// A complaint, or a needless reveal of a share.
fn complains(world: &World, member: u8, dealer: u8, reveals: bool) -> Option<Operation> {
    let (epoch, generation) = (world.epoch() + 1, board(world, world.epoch() + 1));
    let secret = secret(member, epoch);
    let complaint = match reveals {
        true => generation.reveal(member, &secret, dealer),
        false => generation.complaint(member, &secret, dealer),
    };
    complaint.map(|complaint| post(&BridgeOperation::Complain { epoch, complaint: Box::new(complaint) }))
}

/// Runs empty blocks until this holds; returns all their events.
fn until(world: &mut World, holds: impl Fn(&World) -> bool) -> Vec<BridgeEvent> {
    let mut events = Vec::new();
    while !holds(world) {
        events.extend(world.run(vec![]).lane);
    }
    events
}

/// The group keys reported at the end of an epoch's generation.
fn group_keys(events: &[BridgeEvent]) -> Vec<(HomeEpoch, bool)> {
    let of = |event: &BridgeEvent| match event {
        BridgeEvent::GroupKey(epoch, made) => Some((*epoch, *made)),
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

/// The members' signatures on a payment, under either scheme.
fn parts(world: &World, scheme: AnswerScheme, payment: &Payment, members: &[u8]) -> Vec<(u8, BlsSignature)> {
    let (network, home, kind) = (world.network(), payment.home, StatementKind::Confirmation);
    let digest = PaymentBody::new(payment.clone()).digest;
    let sign = |member: u8| match scheme {
        AnswerScheme::Share => {
            let share = board(world, home).share(member, &secret(member, home)).expect("it has a share");
            share.sign(&network, home, kind, &digest)
        }
        _ => secret(member, home).sign(&network, home, kind, &digest),
    };
    members.iter().map(|member| (*member, sign(*member))).collect()
}

fn certified(world: &World, scheme: AnswerScheme, payment: &Payment, members: &[u8]) -> Option<PaymentCertificate> {
    let (kind, summary) = (StatementKind::Confirmation, PaymentBody::new(payment.clone()).payment.summary());
    let mut collector = match scheme {
        AnswerScheme::Share => BlsCollector::of_shares(kind, summary),
        _ => BlsCollector::new(kind, summary),
    };
    let committee = committee(world, payment.home);
    let parts = parts(world, scheme, payment, members);
    parts.into_iter().find_map(|(member, part)| collector.add(&committee, member, part))
}

fn redeem(payment: &Payment, certificate: PaymentCertificate) -> Operation {
    post(&BridgeOperation::Redeem { payment: payment.encode(), certificate })
}

/// Redeems a payment of a fresh deposit under this scheme; returns the refusal, if any.
fn redeemed(world: &mut World, scheme: AnswerScheme, members: &[u8]) -> Option<Refusal> {
    let coin = world.withdraw(5, USD, 1_000);
    let payment = world.pay(&coin, &[(6, 1_000)]);
    let certificate = certified(world, scheme, &payment, members).expect("q of one form");
    let before = world.balance(6, USD);
    let refusal = world.outcome(2, redeem(&payment, certificate));
    assert_eq!(world.balance(6, USD) - before, if refusal.is_none() { 1_000 } else { 0 });
    refusal
}

#[test]
fn aggregates_move_money_from_the_epoch_whose_members_registered_bls_keys() {
    let mut world = World::new(with(LaneBls::Aggregate));
    // A member that registers no BLS key, or one of another member, registers nothing.
    let wrong = registration(&world, 3, &[]);
    assert_eq!(world.outcome(1, wrong), Some(Refusal::WRONG_LANE_KEYS));
    let (network, keys) = (world.network(), [fresh(3, 1)]);
    let (mut stolen, proofs) = LaneRegistration::make_with_bls(&network, 1, 3, &keys, &[secret(2, 1)], &registrar(2));
    stolen.member = 3;
    let of_another = post(&BridgeOperation::Register { registration: stolen, proofs });
    assert_eq!(world.outcome(1, of_another), Some(Refusal::UNPROVEN_LANE_POST));
    register(&mut world, 0..MEMBERS);
    let again = registration(&world, 0, &[secret(0, 9)]);
    assert_eq!(world.outcome(1, again), Some(Refusal::WRONG_LANE_KEYS), "the first registration stands");
    assert!(bridge(&world).generation(1).is_none(), "no member deals on a chain with aggregates only");
    until(&mut world, |world| world.epoch() == 1);
    assert_eq!(redeemed(&mut world, AnswerScheme::Bls, &[0, 2, 3]), None);
    let coin = world.withdraw(5, USD, 1_000);
    let payment = world.pay(&coin, &[(6, 1_000)]);
    let few = parts(&world, AnswerScheme::Bls, &payment, &[1, 2]);
    let few = PaymentCertificate::Aggregate(BlsAggregate::of(&committee(&world, 1), &few).expect("members"));
    assert_eq!(world.outcome(2, redeem(&payment, few)), Some(Refusal::UNPROVEN_LANE_POST));
    let claimed = parts(&world, AnswerScheme::Bls, &payment, &[1, 2, 3]);
    let mut claimed = BlsAggregate::of(&committee(&world, 1), &claimed).expect("members");
    claimed.signers = vec![0b0111];
    let claimed = PaymentCertificate::Aggregate(claimed);
    assert_eq!(world.outcome(2, redeem(&payment, claimed)), Some(Refusal::UNPROVEN_LANE_POST));
}

#[test]
fn a_chain_without_bls_keys_knows_nothing_of_them() {
    let mut world = World::new(with(LaneBls::None));
    let registers = registration(&world, 0, &[secret(0, 1)]);
    assert_eq!(world.outcome(1, registers), Some(Refusal::BAD_LANE_POST));
    let mut other = World::new(with(LaneBls::Threshold));
    register(&mut other, 0..MEMBERS);
    let dealing = deals(&other, 0);
    assert_eq!(world.outcome(1, dealing), Some(Refusal::BAD_LANE_POST));
}

/// The whole generation, with a silent dealer and one that cheats.
#[test]
fn members_make_a_group_key_although_one_lies_and_one_is_silent() {
    let mut world = World::new(with(LaneBls::Threshold));
    register(&mut world, 0..3);
    assert!(bridge(&world).generation(1).is_none(), "one has not registered");
    register(&mut world, 3..4);
    assert!(board(&world, 1).awaits_dealings());

    // Member 0 deals, and its post is copied. No one can deal in its place, or twice.
    let dealing = deals(&world, 0);
    let own = board(&world, 1).terms().clone();
    let outcomes = world.block(vec![(1, dealing.clone()), (6, dealing.clone())]).outcomes;
    assert_eq!(outcomes, [Outcome::Applied; 2], "a copy does nothing");
    assert_eq!(world.outcome(6, dealing), None, "later, too");
    let other = dealing_of_shard(&own, 0, &fresh(0, 7));
    assert_eq!(world.outcome(1, deal(&world, other.clone(), &fresh(0, 1))), Some(Refusal::NOT_AWAITED));
    let for_another = Dealing { dealer: 1, ..other };
    assert_eq!(world.outcome(1, deal(&world, for_another, &fresh(1, 1))), Some(Refusal::UNPROVEN_LANE_POST));
    let in_its_place = dealing_of_shard(&own, 1, &fresh(0, 1));
    assert_eq!(world.outcome(1, deal(&world, in_its_place, &fresh(0, 1))), Some(Refusal::UNPROVEN_LANE_POST));
    // Member 1 deals, member 2 deals a wrong share to member 0, member 3 nothing.
    let lie = deal(&world, false_dealing(&own, 2, &[9; 32], 0), &fresh(2, 1));
    let honest = deals(&world, 1);
    assert_eq!(world.block(vec![(2, honest), (3, lie)]).outcomes, [Outcome::Applied; 2]);

    // Complaints count when the time to deal is over.
    let early = complains(&world, 0, 2, false).expect("a wrong share");
    assert_eq!(world.outcome(1, early), Some(Refusal::NOT_AWAITED));
    until(&mut world, |world| board(world, 1).awaits_complaints());
    let late = dealing_of_shard(&own, 3, &fresh(3, 1));
    assert_eq!(world.outcome(1, deal(&world, late, &fresh(3, 1))), Some(Refusal::NOT_AWAITED));
    for (member, dealer) in [(0, 0), (0, 1), (1, 0), (1, 2), (3, 0), (3, 1), (3, 2)] {
        assert!(complains(&world, member, dealer, false).is_none(), "{member} has a right share of {dealer}");
    }
    let complaint = complains(&world, 0, 2, false).expect("a wrong share");
    let slander = match BridgeOperation::parse(&posted(&complaint)).expect("a post") {
        BridgeOperation::Complain { epoch, mut complaint } => {
            complaint.member = 1;
            post(&BridgeOperation::Complain { epoch, complaint })
        }
        _ => unreachable!("it is a complaint"),
    };
    assert_eq!(world.outcome(1, slander), Some(Refusal::UNPROVEN_LANE_POST));
    let outcomes = world.block(vec![(1, complaint.clone()), (6, complaint)]).outcomes;
    assert_eq!(outcomes, [Outcome::Applied; 2], "anyone may post it, and a copy does nothing");
    assert_eq!(board(&world, 1).standing().collect::<Vec<u8>>(), [0, 1]);

    let told = until(&mut world, |world| world.epoch() == 1);
    assert_eq!(group_keys(&told), [(1, true)], "before the epoch begins");
    assert!(told.contains(&BridgeEvent::Epoch(1)));
    assert_eq!(world.ledger.height(), EPOCH_HEIGHTS - 1, "the epoch begins when it would have begun");
    let group = committee(&world, 1).group().expect("a group key").clone();
    // Anyone with the board derives the same key from it, and no key from a changed one.
    let bytes = bridge(&world).board_bytes(1).expect("a board");
    let mut plain = LaneCommittee::unregistered(world.network(), 1, MEMBERS.into());
    bridge(&world).registrations(1).for_each(|of| plain.seat(of).expect("sound"));
    let with = with_told_board(plain.clone(), &bytes).expect("it holds");
    assert_eq!(with.group(), Ok(&group));
    for at in (0..bytes.len()).step_by(41) {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        let with = with_told_board(plain.clone(), &changed);
        assert!(with.is_err(), "byte {at}");
    }
    // Members with shares, including the silent one and the cheating one, move money with q signatures.
    assert_eq!(redeemed(&mut world, AnswerScheme::Share, &[0, 1, 3]), None);
    assert_eq!(redeemed(&mut world, AnswerScheme::Share, &[1, 2, 3]), None);
    assert_eq!(redeemed(&mut world, AnswerScheme::Bls, &[0, 1, 3]), None, "aggregates still work");
    // The key of one epoch is not valid in another.
    let coin = world.withdraw(5, USD, 1_000);
    let payment = world.pay(&coin, &[(6, 1_000)]);
    let certificate = certified(&world, AnswerScheme::Share, &payment, &[0, 1, 3]).expect("q shares");
    let other = world.pay(&coin, &[(4, 1_000)]);
    assert_eq!(world.outcome(2, redeem(&other, certificate)), Some(Refusal::UNPROVEN_LANE_POST));
}

fn posted(operation: &Operation) -> Vec<u8> {
    match operation {
        Operation::Lane(bytes) => bytes.to_vec(),
        _ => unreachable!("it is a post"),
    }
}

/// Everyone deals for epoch 1; these members then reveal a share of member 0's dealing without need.
fn with_revealed(members: &[u8]) -> (World, Vec<BridgeEvent>) {
    let mut world = World::new(with(LaneBls::Threshold));
    register(&mut world, 0..MEMBERS);
    let operations = (0..MEMBERS).map(|dealer| (1 + dealer, deals(&world, dealer))).collect();
    assert_eq!(world.block(operations).outcomes, [Outcome::Applied; 4]);
    until(&mut world, |world| board(world, 1).awaits_complaints());
    let reveal = |member: &u8| (1 + member, complains(&world, *member, 0, true).expect("it reveals"));
    let operations: Vec<(u8, Operation)> = members.iter().map(reveal).collect();
    let applied: Applied = world.block(operations);
    assert!(applied.outcomes.iter().all(|outcome| *outcome == Outcome::Applied));
    let told = until(&mut world, |world| world.epoch() == 1);
    (world, told)
}

#[test]
fn a_revealed_share_makes_no_certificate_and_too_many_make_no_key() {
    let (mut world, told) = with_revealed(&[3]);
    assert_eq!(group_keys(&told), [(1, true)]);
    assert_eq!(board(&world, 1).struck().iter().copied().collect::<Vec<u8>>(), [3]);
    assert!(board(&world, 1).share(3, &secret(3, 1)).is_none(), "a struck member has no share that counts");
    assert_eq!(redeemed(&mut world, AnswerScheme::Share, &[0, 1, 2]), None, "the others are enough");
    let coin = world.withdraw(5, USD, 1_000);
    let payment = world.pay(&coin, &[(6, 1_000)]);
    assert!(certified(&world, AnswerScheme::Share, &payment, &[0, 1]).is_none(), "two and a revealed one are not");

    // More than f: no key, the epoch begins on time, and aggregates still work.
    let (mut world, told) = with_revealed(&[2, 3]);
    assert_eq!(group_keys(&told), [(1, false)]);
    assert!(committee(&world, 1).group().is_err());
    assert_eq!(world.ledger.height(), EPOCH_HEIGHTS - 1, "the epoch begins when it would have begun");
    let coin = world.withdraw(5, USD, 1_000);
    let payment = world.pay(&coin, &[(6, 1_000)]);
    let forged = PaymentCertificate::Threshold(parts(&world, AnswerScheme::Bls, &payment, &[0])[0].1);
    assert_eq!(world.outcome(2, redeem(&payment, forged)), Some(Refusal::UNPROVEN_LANE_POST));
    assert_eq!(redeemed(&mut world, AnswerScheme::Bls, &[0, 1, 2]), None);
}

#[test]
fn an_epoch_does_not_wait_for_a_group_key() {
    // No member deals, and one member does not even register.
    for registered in [MEMBERS, 3] {
        let mut world = World::new(with(LaneBls::Threshold));
        register(&mut world, 0..registered);
        let told = until(&mut world, |world| world.epoch() == 1);
        assert_eq!((group_keys(&told), world.ledger.height()), (vec![], EPOCH_HEIGHTS - 1));
        assert!(bridge(&world).generation(1).is_none() && committee(&world, 1).group().is_err());
        assert_eq!(redeemed(&mut world, AnswerScheme::Bls, &[0, 1, 2]), None);
    }
}

/// A state in the middle of a generation costs what is on its board, and a board is dropped with its epoch.
#[test]
fn boards_are_forgotten_with_their_epochs() {
    let mut world = World::new(with(LaneBls::Threshold));
    for epoch in 1..=6 {
        register(&mut world, 0..MEMBERS);
        let operations = (0..MEMBERS).map(|dealer| (1 + dealer, deals(&world, dealer))).collect();
        assert_eq!(world.block(operations).outcomes, [Outcome::Applied; 4]);
        until(&mut world, |world| world.epoch() == epoch);
        let known: Vec<HomeEpoch> = (0..=epoch).filter(|of| bridge(&world).generation(*of).is_some()).collect();
        assert_eq!(known, (bridge(&world).oldest().max(1)..=epoch).collect::<Vec<_>>());
    }
    assert!(bridge(&world).oldest() > 1);
}

#[test]
fn a_genesis_with_bls_keys_that_cannot_be_is_refused() {
    let refused = |bls, edit: &dyn Fn(&mut LaneTerms)| {
        let mut lane = with(bls);
        edit(&mut lane);
        Ledger::new(&genesis(Some(lane))).is_err()
    };
    for bls in [LaneBls::Aggregate, LaneBls::Threshold] {
        assert!(!refused(bls, &|_| {}));
        assert!(refused(bls, &|lane| lane.registrars.clear()));
    }
    let short = |lane: &mut LaneTerms| lane.epoch_heights = 15;
    assert!(refused(LaneBls::Threshold, &short) && !refused(LaneBls::Aggregate, &short));
    let shards = |lane: &mut LaneTerms| lane.members[0].push(key(199).public());
    assert!(refused(LaneBls::Threshold, &shards) && !refused(LaneBls::Aggregate, &shards));
    // Terms are encoded with the kind of BLS keys, and as before where there are none.
    let bytes = |bls| borsh::to_vec(&with(bls)).expect("written");
    for bls in [LaneBls::None, LaneBls::Aggregate, LaneBls::Threshold] {
        assert_eq!(borsh::from_slice::<LaneTerms>(&bytes(bls)).expect("one encoding"), with(bls));
        assert_eq!(bytes(bls)[..8], (EPOCH_HEIGHTS | (bls as u64) << 56).to_le_bytes());
        assert_eq!(bytes(bls)[8..], bytes(LaneBls::None)[8..]);
    }
    let mut unknown = bytes(LaneBls::None);
    unknown[7] = 3;
    assert!(borsh::from_slice::<LaneTerms>(&unknown).is_err());
}

/// An operator's part of a restart, without logs.
fn part(world: &World, base: &Digest, member: u8, shown: &[ShownPayment], boards: bool) -> RestartPart {
    let lane = world.ledger.lane().expect("there is one");
    let board = |epoch| Some((epoch, lane.bridge().board_bytes(epoch)?));
    RestartPart {
        network: world.network(),
        restart: 1,
        snapshot: Digest([0; 32]),
        member,
        first: Some(LaneRegistration::make(base, 0, member, &[fresh(member, 99)], &registrar(member))),
        logs: Vec::new(),
        shown: shown.to_vec(),
        registrations: lane.bridge().all_registrations().cloned().collect(),
        boards: lane.group_keys().filter_map(board).filter(|_| boards).collect(),
    }
}

/// Members make a group key after the snapshot from which the network restarts: parts bring its board, and what was
/// certified under the key counts.
#[test]
fn threshold_certificates_of_epochs_after_the_snapshot_count_at_a_restart() {
    let mut world = World::new(with(LaneBls::Threshold));
    let coin = world.withdraw(5, USD, 1_000);
    let snapshot = world.ledger.clone();
    register(&mut world, 0..MEMBERS);
    let dealt = (0..MEMBERS).map(|dealer| (1 + dealer, deals(&world, dealer))).collect();
    assert!(world.block(dealt).outcomes.iter().all(|outcome| *outcome == Outcome::Applied));
    until(&mut world, |world| world.epoch() == 1);
    // The first committee signs a payment into the second epoch, which signs the next one with its group key.
    let to = Output { to: Recipient::Key(key(6).public()), asset: USD, amount: 1_000 };
    let first = Payment { into: 1, outputs: vec![to], ..world.pay(&coin, &[(6, 1_000)]) };
    let body = PaymentBody::new(first.clone());
    let sign = |member| world.answer(0, member, StatementKind::Confirmation, &first.owner, body.digest);
    let answers = PaymentCertificate::Answers((0..3).map(sign).collect());
    let id = body.output_ids().next().expect("it has one");
    let held = Coin { id, home: 1, owner: 6, asset: USD, amount: 1_000 };
    let second = world.pay(&held, &[(7, 1_000)]);
    let group = certified(&world, AnswerScheme::Share, &second, &[0, 1, 2]).expect("q shares");
    let shown = [(&first, answers), (&second, group)].map(|(payment, certificate)| ShownPayment {
        body: Some(PaymentBody::new(payment.clone())),
        certified: CertifiedPayment { summary: payment.summary(), certificate },
    });
    let base = Digest([5; 32]);
    let claims = |boards: bool| {
        let parts: Vec<RestartPart> = (0..3).map(|member| part(&world, &base, member, &shown, boards)).collect();
        let (carried, _) = snapshot.lane().expect("there is one").carry(&base, &parts).expect("a sound list");
        carried.claims.into_values().collect::<Vec<Output>>()
    };
    assert_eq!(claims(true), second.outputs);
    assert_eq!(claims(false), [], "without the board nobody can verify it");
}
