//! Members of the lane that contradict themselves: the stake that answers for them is slashed, once, and no other
//! stake.

use std::collections::BTreeSet;

use crate::world::*;
use ledger::{Genesis, LaneTerms, Member, Membership, Outcome, Refusal, Schedule, Terms};
use payments::{
    BridgeEvent, BridgeOperation, EvidenceFinder, LaneAnswer, LaneEvidence, LaneRegistration, Payment, PaymentBody,
    PaymentCertificate, StatementKind, view_digest,
};
use primitives::{Address, Digest, Fraction, Operation, Stake, ValidatorPost, ValidatorSays};

const STAKE: u64 = 1_000;
const POOL: u64 = 100;
const REWARD: u64 = 5;
const UNSTAKED_FROM: u64 = 8;

/// People 1 to 4 are the validators, and members 0 to 3 of the lane. A committee is drawn every second block.
fn with_stakes(lane: LaneTerms) -> Genesis {
    let terms = Terms {
        network: Digest([42; 32]),
        schedule: Schedule { epoch_heights: 2, delay: 0 },
        committee: 4,
        minimum_stake: 100,
        unbonding_epochs: 1,
        reward: REWARD,
        slash: Fraction::power_of_two(2),
    };
    let founder = |person: u8| {
        let (account, key) = (address(person), key(100 + person).public());
        Member { account, key, address: "v.example:1".into(), stake: STAKE }
    };
    let membership = Some(Membership { terms, reward_pool: POOL, founders: (1..=4).map(founder).collect() });
    Genesis { membership, ..genesis(Some(lane)) }
}

fn answering() -> LaneTerms {
    LaneTerms { accounts: (1..=4).map(address).collect(), ..terms() }
}

fn confirm(world: &World, payment: &Payment, member: usize) -> LaneAnswer {
    let digest = PaymentBody::new(payment.clone()).digest;
    world.answer(payment.home, member, StatementKind::Confirmation, &payment.owner, digest)
}

/// Evidence that a member confirmed both payments; it may be wrong.
fn accusation(world: &World, payments: [&Payment; 2], members: [usize; 2]) -> Operation {
    let mut pair = [0, 1].map(|at| {
        let signed = PaymentCertificate::Answers(vec![confirm(world, payments[at], members[at])]);
        (payments[at].encode(), signed)
    });
    pair.sort_by_key(|(bytes, _)| PaymentBody::parse(bytes).expect("a payment").digest);
    let (home, validator) = (payments[0].home, members[0] as u8);
    let evidence = LaneEvidence::Payments { home, validator, pair: Box::new(pair) };
    post(&BridgeOperation::Accuse { evidence })
}

fn staked(world: &World) -> Vec<u64> {
    let one = |person| world.ledger.validators().get(&address(person)).map_or(0, |one| one.bonded());
    (1..=4).map(one).collect()
}

/// Person 4 unstakes, and person 5 takes its seat: who has left is paid back when somebody else serves.
fn replace_person_four(world: &mut World) {
    let stake = Stake::new(100, "v.example:1".into(), 1, &address(5), &key(105));
    let applied = world.block(vec![(4, Operation::Unstake { units: STAKE }), (5, Operation::Stake(Box::new(stake)))]);
    assert_eq!(applied.outcomes, [Outcome::Applied; 2]);
    let presence = |person: u8| {
        let (network, account) = (world.ledger.network(), address(person));
        let says = ValidatorSays::Present { epoch: 2 };
        let presence = ValidatorPost { network, chain: 1, account, until: 50_000, says };
        presence.sign(&key(100 + person)).expect("the key is here")
    };
    let applied = world.run(vec![[1, 2, 3, 5].map(presence).to_vec()]);
    assert_eq!(applied.outcomes, [Outcome::Applied; 4]);
}

/// Two payments of one output.
fn contradictory(world: &World, coin: &Coin) -> [Payment; 2] {
    [2, 3].map(|to| world.pay(coin, &[(to, coin.amount)]))
}

#[test]
fn two_signatures_on_one_output_cost_a_quarter_of_the_stake_once() {
    let mut world = World::of(&with_stakes(answering()));
    let coin = world.withdraw(5, USD, 1_000);
    let [first, second] = contradictory(&world, &coin);
    let evidence = accusation(&world, [&first, &second], [2, 2]);
    let pool = world.ledger.validators().pool;
    // Everyone who sees it sends it, in one block and later.
    let applied = world.block((1..=3).map(|person| (person, evidence.clone())).collect());
    assert_eq!(applied.outcomes, [Outcome::Applied; 3]);
    let convicted = applied.lane.iter().filter(|event| matches!(event, BridgeEvent::Convicted(2))).count();
    assert_eq!((convicted, staked(&world)), (1, vec![1_000, 1_000, 750, 1_000]));
    // The sub-block's proposer is paid from the pool, too.
    assert_eq!(world.ledger.validators().pool, pool + 250 - REWARD);
    assert!(world.ledger.validators().get(&address(3)).expect("there").excluded);
    assert_eq!(world.ledger.lane().expect("there").bridge().convicted(), &BTreeSet::from([2]));
    let before = world.balance(6, USD);
    assert_eq!(world.outcome(6, evidence), None, "a later copy");
    assert_eq!((staked(&world)[2], world.balance(6, USD)), (750, before - FEE), "it pays its fee and does nothing");
}

#[test]
fn two_views_of_one_case_convict_and_two_of_the_same_do_not() {
    let mut world = World::of(&with_stakes(answering()));
    let coin = world.withdraw(5, USD, 1_000);
    let owner = key(5).public();
    let mut finder = EvidenceFinder::new(10);
    let [none, some] = [None, Some(Digest([3; 32]))];
    let mut view = |world: &World, member, paid: &Option<Digest>| {
        let answer = world.answer(0, member, StatementKind::View, &owner, view_digest(&coin.id, paid.as_ref()));
        finder.note_view(0, coin.id, owner, *paid, &answer)
    };
    assert_eq!(view(&world, 1, &none), None);
    assert_eq!(view(&world, 1, &none), None);
    assert_eq!(view(&world, 3, &some), None);
    let evidence = view(&world, 1, &some).expect("two views");
    assert_eq!(world.outcome(6, post(&BridgeOperation::Accuse { evidence })), None);
    assert_eq!(staked(&world), [1_000, 750, 1_000, 1_000]);
}

#[test]
fn false_evidence_convicts_nobody_and_costs_its_proposer_the_reward() {
    let mut world = World::of(&with_stakes(answering()));
    let coins = [world.withdraw(5, USD, 1_000), world.withdraw(5, USD, 2_000)];
    let [first, second] = contradictory(&world, &coins[0]);
    let apart = world.pay(&coins[1], &[(2, 2_000)]);
    let mut future = [first.clone(), second.clone()];
    future.iter_mut().for_each(|payment| (payment.home, payment.into) = (9, 9));
    for wrong in [
        accusation(&world, [&first, &first], [2, 2]),
        accusation(&world, [&first, &apart], [2, 2]),
        accusation(&world, [&first, &second], [2, 1]),
        accusation(&world, [&future[0], &future[1]], [2, 2]),
    ] {
        assert_eq!(world.outcome(6, wrong), Some(Refusal::BAD_EVIDENCE));
    }
    // Members beyond the committee, and certificates that name others besides the accused.
    let crowd = |validator: u8| {
        let mut pair = [&first, &second].map(|payment| {
            let signed = (0..3).map(|member| confirm(&world, payment, member)).collect();
            (payment.encode(), PaymentCertificate::Answers(signed))
        });
        pair.sort_by_key(|(bytes, _)| PaymentBody::parse(bytes).expect("a payment").digest);
        let evidence = LaneEvidence::Payments { home: 0, validator, pair: Box::new(pair) };
        post(&BridgeOperation::Accuse { evidence })
    };
    let crowds = [crowd(1), crowd(200)];
    for wrong in crowds {
        assert_eq!(world.outcome(6, wrong), Some(Refusal::BAD_EVIDENCE));
    }
    assert_eq!(staked(&world), [1_000; 4]);
    let good = accusation(&world, [&first, &second], [2, 2]);
    let bad = accusation(&world, [&first, &apart], [1, 1]);
    let parts = vec![vec![world.sign(5, bad)], vec![world.sign(6, good)]];
    let seats: Vec<Address> = world
        .ledger
        .committee(world.ledger.schedule().epoch_of(world.ledger.height() + 1))
        .expect("known")
        .iter()
        .map(|member| member.account)
        .collect();
    let person = |seat: usize| (1..=4).find(|person| address(*person) == seats[seat]).expect("a validator");
    let before = [0, 1].map(|seat| world.balance(person(seat), USD));
    let applied = world.run(parts);
    assert_eq!(applied.outcomes, [Outcome::Refused(Refusal::BAD_EVIDENCE), Outcome::Applied]);
    let earned = [0, 1].map(|seat| world.balance(person(seat), USD) - before[seat]);
    assert_eq!(earned, [0, REWARD]);
}

#[test]
fn keys_of_a_forgotten_epoch_convict_nobody() {
    let mut world = World::of(&with_stakes(answering()));
    let coin = world.withdraw(5, USD, 1_000);
    let [first, second] = contradictory(&world, &coin);
    let evidence = accusation(&world, [&first, &second], [2, 2]);
    while world.epoch() < 3 {
        world.empty_blocks(1);
    }
    let transaction = world.sign(6, evidence);
    assert_eq!(world.ledger.admit(&transaction), Ok(()), "as long as the ledger knows the keys");
    while world.epoch() < 4 {
        world.empty_blocks(1);
    }
    assert_eq!(world.ledger.admit(&transaction), Err(Refusal::EVIDENCE_TOO_OLD));
}

#[test]
fn nothing_is_paid_back_while_evidence_may_come() {
    let registrars: Vec<_> = (0..4).map(|member| key(150 + member)).collect();
    let lane = LaneTerms { registrars: registrars.iter().map(|key| key.public()).collect(), ..answering() };
    let mut world = World::of(&with_stakes(lane));
    // Person 4 unstakes; its member registers no keys after the first epoch.
    replace_person_four(&mut world);
    let mut paid_back = None;
    for _ in 0..6 * HEIGHTS {
        let next = world.epoch() + 1;
        let bridge = world.ledger.lane().expect("there is one").bridge();
        let missing = bridge.registrations(next).count() == 0;
        let register = |member: u8| {
            let fresh = primitives::SecretKey::from_seed([50 + 4 * next as u8 + member; 32]);
            let registrar = &registrars[usize::from(member)];
            let (registration, proofs) = LaneRegistration::make(&world.network(), next, member, &[fresh], registrar);
            (1 + member, post(&BridgeOperation::Register { registration, proofs }))
        };
        let operations = if missing { (0..3).map(register).collect() } else { Vec::new() };
        assert!(world.block(operations).outcomes.iter().all(|outcome| *outcome == Outcome::Applied));
        if staked(&world)[3] == 0 && paid_back.is_none() {
            paid_back = Some((world.ledger.height(), world.epoch()));
        }
    }
    let (height, epoch) = paid_back.expect("it is paid back in the end");
    assert!(height > UNSTAKED_FROM && epoch == 4, "paid back at height {height}, in lane epoch {epoch}");
}

/// Nobody registers, so lane time stands still, and evidence about the first epoch counts for ever. A stake waits a
/// bounded number of block heights for it.
#[test]
fn a_stake_does_not_wait_for_a_lane_that_stands_still() {
    let registrars = (0..4).map(|member| key(150 + member).public()).collect();
    let mut world = World::of(&with_stakes(LaneTerms { registrars, ..answering() }));
    replace_person_four(&mut world);
    let mut heights = 0;
    while staked(&world)[3] > 0 {
        world.empty_blocks(1);
        heights += 1;
        assert!(heights < 100, "it waits for ever");
    }
    // Eight lane epochs of block heights after the height from which it would be paid, at the next drawing.
    let (height, waits) = (world.ledger.height(), 8 * HEIGHTS);
    assert!((waits..waits + UNSTAKED_FROM).contains(&height), "paid back at height {height}");
    assert_eq!(world.epoch(), 0, "the first epoch goes on");
}

#[test]
fn accounts_are_founders_one_for_each_member() {
    let refused = |edit: &dyn Fn(&mut LaneTerms)| {
        let mut lane = answering();
        edit(&mut lane);
        ledger::Ledger::new(&with_stakes(lane)).is_err()
    };
    assert!(!refused(&|_| {}) && !refused(&|lane| lane.accounts.clear()));
    assert!(refused(&|lane| lane.accounts.truncate(3)));
    assert!(refused(&|lane| lane.accounts[1] = lane.accounts[0]));
    assert!(refused(&|lane| lane.accounts[1] = address(6)));
    assert!(ledger::Ledger::new(&genesis(Some(answering()))).is_err(), "a chain without validators");
}
