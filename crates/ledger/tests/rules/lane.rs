//! The bridge to the payment lane on the ledger: money goes into escrow and comes out once, whatever a block
//! contains.

use std::collections::BTreeMap;

use crate::world::*;
use ledger::{
    Genesis, GenesisError, LANE_CHECKS_PER_SUB_BLOCK, Ledger, Outcome, RULES_FLOOR, Refusal, Restore, RootPart, Roots,
    Snapshot,
};
use payments::{BridgeEvent, BridgeOperation, CaseEvent, ConfirmedBy, PaymentCertificate, Verdict};
use primitives::{Amount, Operation};
use proptest::prelude::*;

/// The rules of late verdicts are those of rules 5, which no release had: a chain that began under older ones, with
/// homes that are alive under them, is refused by its number, from its genesis and from a snapshot.
#[test]
fn a_lane_of_older_rules_is_refused_by_number() {
    let older = RULES_FLOOR - 1;
    let genesis = Genesis { rules: older, ..genesis(Some(terms())) };
    assert_eq!(Ledger::new(&genesis).map(drop), Err(GenesisError::Rules(older)));
    let world = World::new(terms());
    let mut head = Snapshot::of(&world.ledger).next().expect("a head");
    // Kind, format, and then the number of the rules.
    head[2..6].copy_from_slice(&older.to_le_bytes());
    let refused = Restore::default().push(&head).expect_err("another number");
    assert!(refused.to_string().contains(&format!("the chain follows rules {older}")), "{refused}");
}

#[test]
fn money_goes_into_the_lane_and_comes_back() {
    let mut world = World::new(terms());
    let coin = world.withdraw(1, USD, 1_000);
    assert_eq!((world.balance(1, USD), world.escrow(USD)), (START - 1_000 - FEE, 1_000));
    let payment = world.pay(&coin, &[(2, 600), (3, 400)]);
    let redemption = world.redemption(&payment);
    // Anyone may submit it.
    let applied = world.block(vec![(4, redemption.clone())]);
    assert_eq!(applied.outcomes, [Outcome::Applied]);
    assert_eq!((world.balance(2, USD), world.balance(3, USD)), (START + 600, START + 400));
    assert_eq!((world.escrow(USD), world.balance(4, USD)), (0, START - FEE));
    // A later copy pays its fee and does nothing.
    assert_eq!(world.outcome(5, redemption), None);
    assert_eq!((world.balance(2, USD), world.balance(5, USD), world.escrow(USD)), (START + 600, START - FEE, 0));
}

#[test]
fn a_post_costs_a_fee_for_each_kibibyte_begun() {
    let mut world = World::new(terms());
    let coin = world.withdraw(1, USD, 960);
    let redemption = world.redemption(&world.pay(&coin, &[(2, 60); 16]));
    let Operation::Lane(bytes) = &redemption else { panic!("a post") };
    let fees = FEE * (1 + (bytes.len() as Amount - 1) / 1_024);
    assert!(fees > FEE, "{} bytes are too few for this test", bytes.len());
    // Whoever has less is refused, though it could pay one fee.
    let poor = world.balance(5, USD) - fees;
    world.block(vec![(5, Operation::Pay { to: address(6), asset: USD, amount: poor })]);
    assert_eq!(world.outcome(5, redemption.clone()), Some(Refusal::OVERDRAFT));
    assert_eq!(world.outcome(4, redemption), None);
    assert_eq!((world.balance(4, USD), world.balance(2, USD)), (START - fees, START + 960));
    world.ledger.audit().expect("conserved");
}

#[test]
fn genesis_outputs_are_backed_by_genesis_escrow() {
    let mut world = World::new(with_output(terms(), 1, 500));
    assert_eq!(world.escrow(USD), 500);
    world.ledger.audit().expect("conserved");
    let id = payments::OutputId::of_genesis(&world.network(), 0, 0);
    let coin = Coin { id, home: 0, owner: 1, asset: USD, amount: 500 };
    let redemption = world.redemption(&world.pay(&coin, &[(2, 500)]));
    world.block(vec![(2, redemption)]);
    assert_eq!((world.balance(2, USD), world.escrow(USD)), (START + 500 - FEE, 0));
}

/// One redemption in all sub-blocks from different accounts, next to a transaction of one of these accounts that
/// fails: it is credited once, and never blocked.
#[test]
fn one_redemption_in_all_sub_blocks_is_credited_once() {
    let mut world = World::new(terms());
    let coin = world.withdraw(1, USD, 1_000);
    let redemption = world.redemption(&world.pay(&coin, &[(6, 1_000)]));
    let mut parts: Vec<Vec<_>> = (1..=4).map(|person| vec![world.sign(person, redemption.clone())]).collect();
    // Person 5 overdraws, so that both of its transactions are removed.
    let overdraws = Operation::Pay { to: address(1), asset: USD, amount: 2 * START };
    parts[0].push(world.sign(5, redemption.clone()));
    parts[1].push(world.sign(5, overdraws));
    // The same transaction is in two sub-blocks.
    let copy = parts[0][0].clone();
    parts[3].push(copy);
    let applied = world.run(parts);
    assert_eq!(applied.outcomes.iter().filter(|outcome| **outcome == Outcome::Applied).count(), 4);
    assert_eq!((world.balance(6, USD), world.escrow(USD)), (START + 1_000, 0));
    let paid = |person| START - world.balance(person, USD);
    assert_eq!([paid(1), paid(2), paid(3), paid(4), paid(5)], [1_000 + 2 * FEE, FEE, FEE, FEE, 0]);
}

/// A certificate of committee c pays at the last height of epoch c+3 and not at the next, with a restart and pruning
/// in between. A redeemed certificate is not paid again after its epoch is dropped.
#[test]
fn the_last_height_of_an_epoch_is_the_last_to_redeem() {
    let mut world = World::new(terms());
    let first = world.withdraw(1, USD, 1_000);
    let second = world.withdraw(1, USD, 2_000);
    assert_eq!((first.home, second.home), (0, 0));
    let redemptions = [first, second].map(|coin| world.redemption(&world.pay(&coin, &[(2, coin.amount)])));
    // The next block is of the last height of epoch 3.
    while world.ledger.height() + 1 < 4 * HEIGHTS - 1 {
        world.empty_blocks(1);
    }
    assert_eq!(world.epoch(), 3);
    assert_eq!(world.outcome(3, redemptions[0].clone()), None);
    assert_eq!((world.balance(2, USD), world.epoch()), (START + 1_000, 4));
    for redemption in redemptions {
        assert_eq!(world.outcome(3, redemption), Some(Refusal::NOT_REDEEMABLE));
    }
    assert_eq!((world.balance(2, USD), world.escrow(USD)), (START + 1_000, 2_000), "it stays in escrow");
    assert_eq!(world.ledger.lane().expect("there is one").bridge().oldest(), 1, "epoch 0 is dropped");
}

/// A halt, an outflow limit and the expiry of certificates at once: each claim is paid in full.
#[test]
fn a_halt_a_limit_and_an_expiry_lose_no_claim() {
    let mut world = World::new(with_outflow(terms(), 100, 40));
    let coin = world.withdraw(1, USD, 1_000);
    let redemption = world.redemption(&world.pay(&coin, &[(2, 700), (3, 300)]));
    while world.ledger.height() + 1 < 4 * HEIGHTS - 1 {
        world.empty_blocks(1);
    }
    let votes: Vec<Operation> = (0..3).map(|member| world.halt(member)).collect();
    let mut operations = vec![(4, redemption)];
    operations.extend((1..).zip(votes));
    let applied = world.block(operations);
    assert!(applied.lane.contains(&BridgeEvent::Halted(true)), "{:?}", applied.lane);
    let credited = |world: &World| u128::from(world.balance(2, USD) + world.balance(3, USD) + 2 * FEE - 2 * START);
    assert_eq!(credited(&world), 100, "the bucket is full after the deposit");
    let mut heights = 0;
    while world.escrow(USD) > 0 {
        assert_eq!(credited(&world) + world.escrow(USD), 1_000);
        world.empty_blocks(1);
        heights += 1;
    }
    assert_eq!((credited(&world), heights), (1_000, 23), "900 units at 40 a height");
    assert!(world.epoch() > 4, "the certificate's time is long over");
}

/// Three members are bound to the exit: the owner gets the money back; the bid has paid for the work.
#[test]
fn a_contested_output_goes_home_and_the_bid_is_used_up() {
    let mut world = World::new(terms());
    let coin = world.withdraw(1, USD, 1_000);
    let before = world.balance(1, USD);
    let resolve = world.resolve(&coin, CASE_DEPOSIT);
    assert_eq!(world.outcome(1, world.resolve(&coin, CASE_DEPOSIT - 1)), Some(Refusal::WRONG_CASE_DEPOSIT));
    assert_eq!(world.outcome(1, resolve), None);
    assert_eq!(
        (world.balance(1, USD), world.escrow(USD)),
        (before - CASE_DEPOSIT - FEE, 1_000 + u128::from(CASE_DEPOSIT))
    );
    let exit = contested(&coin).exit(world.network());
    let lane = [0, 1, 2].map(|member| (2 + member as u8, world.vote(&coin, member, &exit)));
    let applied = world.block(lane.to_vec());
    let ruled =
        BridgeEvent::Case(CaseEvent::Ruled(contested(&coin), Verdict::Confirmed(digest(&exit), ConfirmedBy::Votes)));
    assert!(applied.lane.contains(&ruled), "{:?}", applied.lane);
    assert_eq!((world.balance(1, USD), world.escrow(USD)), (before + 1_000 - CASE_DEPOSIT - FEE, 0));
}

/// The output was spent by a certified payment: the payment stands, and the deposit is burnt.
#[test]
fn a_needless_case_costs_the_deposit() {
    let mut world = World::new(terms());
    let coin = world.withdraw(1, USD, 1_000);
    let issued = world.ledger.assets()[0].issued;
    let (resolve, redemption) =
        (world.resolve(&coin, CASE_DEPOSIT), world.redemption(&world.pay(&coin, &[(2, 1_000)])));
    world.block(vec![(1, resolve), (3, redemption)]);
    assert_eq!((world.balance(2, USD), world.escrow(USD)), (START + 1_000, 0));
    assert_eq!(world.ledger.assets()[0].issued, issued - CASE_DEPOSIT - 2 * FEE);
}

fn digest(payment: &payments::Payment) -> primitives::Digest {
    payments::PaymentBody::new(payment.clone()).digest
}

#[test]
fn what_does_not_hold_is_refused_by_name() {
    let mut without = World::of(&genesis(None));
    assert_eq!(without.outcome(1, withdrawal(1, USD, 100)), Some(Refusal::NO_LANE));
    assert_eq!(without.outcome(1, Operation::Lane(vec![2].into())), Some(Refusal::NO_LANE));
    let mut only_usd = terms();
    only_usd.assets.truncate(1);
    assert_eq!(World::new(only_usd).outcome(1, withdrawal(1, EUR, 100)), Some(Refusal::NOT_IN_LANE));

    let mut world = World::new(terms());
    assert_eq!(world.outcome(1, withdrawal(1, USD, 9)), Some(Refusal::WITHDRAWS_TOO_LITTLE));
    assert_eq!(world.outcome(1, withdrawal(1, USD, START)), Some(Refusal::OVERDRAFT), "the fee is missing");
    assert_eq!(world.outcome(1, Operation::Lane(vec![].into())), Some(Refusal::BAD_LANE_POST));
    assert_eq!(world.outcome(1, Operation::Lane(vec![2; 131_073].into())), Some(Refusal::LANE_POST_TOO_LONG));
    let coin = world.withdraw(1, USD, 1_000);
    let payment = world.pay(&coin, &[(2, 1_000)]);
    let Operation::Lane(bytes) = world.redemption(&payment) else { panic!("a post") };
    let BridgeOperation::Redeem { payment: encoded, certificate } = BridgeOperation::parse(&bytes).expect("a post")
    else {
        panic!("a redemption")
    };
    let PaymentCertificate::Answers(answers) = certificate else { panic!("answers") };
    let redeem = |answers: Vec<payments::LaneAnswer>| {
        let certificate = PaymentCertificate::Answers(answers);
        post(&BridgeOperation::Redeem { payment: encoded.clone(), certificate })
    };
    let mut forged = answers.clone();
    forged[2].signature.0[5] ^= 1;
    let twice = [&answers[0], &answers[0], &answers[1]].map(Clone::clone).to_vec();
    for wrong in [answers[..2].to_vec(), forged, twice] {
        assert_eq!(world.outcome(3, redeem(wrong)), Some(Refusal::UNPROVEN_LANE_POST));
    }
    let mut foreign = payment.clone();
    foreign.network.0[0] ^= 1;
    assert_eq!(world.outcome(3, world.redemption(&foreign)), Some(Refusal::BAD_LANE_POST));
    let mut early = payment.clone();
    early.home = world.epoch() + 1;
    early.into = early.home;
    assert_eq!(world.outcome(3, world.redemption(&early)), Some(Refusal::NOT_REDEEMABLE));
    assert_eq!(world.outcome(3, world.vote(&coin, 0, &payment)), Some(Refusal::NO_CASE));
    let mut unknown = coin;
    unknown.amount += 1;
    assert_eq!(world.outcome(3, world.resolve(&unknown, CASE_DEPOSIT)), Some(Refusal::UNKNOWN_OUTPUT));
    assert_eq!(world.outcome(3, redeem(answers)), None);
}

/// One sub-block cannot make others verify more signatures than its quota.
#[test]
fn posts_beyond_the_quota_of_a_sub_block_are_refused() {
    let mut world = World::new(terms());
    let coin = world.withdraw(1, USD, 1_000);
    let redemption = world.redemption(&world.pay(&coin, &[(2, 1_000)]));
    let copies = LANE_CHECKS_PER_SUB_BLOCK as usize / 3 + 2;
    let one = world.sign(3, redemption);
    let applied = world.run(vec![vec![one.clone(); copies], vec![one]]);
    let count = |refusal| applied.outcomes.iter().filter(|outcome| outcome.refusal() == Some(refusal)).count();
    assert_eq!((count(Refusal::OVER_QUOTA), count(Refusal::DUPLICATE)), (2, copies - 2));
    assert_eq!(world.balance(2, USD), START + 1_000);
}

/// A faulty committee certifies money that was never withdrawn: other funds are not touched, and the lane halts.
#[test]
fn a_broken_lane_takes_no_more_than_escrow_holds() {
    let mut world = World::new(terms());
    let coin = world.withdraw(1, USD, 1_000);
    let invented = Coin { id: payments::OutputId([7; 32]), amount: 5_000, ..coin };
    let redemptions = [invented, coin].map(|coin| world.redemption(&world.pay(&coin, &[(2, coin.amount)])));
    let applied = world.block(redemptions.map(|redemption| (3, redemption)).to_vec());
    assert!(applied.lane.contains(&BridgeEvent::Uncovered(USD)) && applied.lane.contains(&BridgeEvent::Halted(true)));
    assert_eq!((world.balance(2, USD), world.escrow(USD)), (START + 1_000, 0));
}

#[test]
fn a_snapshot_of_another_lane_is_refused() {
    let mut world = World::new(terms());
    world.withdraw(1, USD, 1_000);
    let chunks: Vec<Vec<u8>> = Snapshot::of(&world.ledger).collect();
    let load = |chunks: &[Vec<u8>]| {
        let mut restore = Restore::default();
        chunks.iter().try_for_each(|chunk| restore.push(chunk))?;
        restore.finish()
    };
    load(&chunks).expect("sound");
    let lane = chunks.iter().position(|chunk| chunk[0] == RootPart::ESCROW).expect("the terms");
    for order in [[lane + 1, lane, lane + 2], [lane, lane + 2, lane + 1], [lane, lane, lane + 2]] {
        let mut moved = chunks[..lane].to_vec();
        moved.extend(order.map(|at| chunks[at].clone()));
        assert!(load(&moved).is_err(), "{order:?}");
    }
    let state = &chunks[lane + 1];
    for at in (0..state.len()).step_by(7) {
        let mut changed = chunks.clone();
        changed[lane + 1][at] ^= 1;
        let other = load(&changed).map(|ledger| Roots::of(&ledger).parts().root());
        assert_ne!(other.ok(), Some(Roots::of(&world.ledger).parts().root()), "byte {at} has no effect");
    }
}

#[test]
fn terms_that_cannot_be_are_refused() {
    let faults: [fn(&mut ledger::LaneTerms); 9] = [
        |terms| terms.epoch_heights = 1,
        |terms| terms.halt_heights = 0,
        |terms| terms.lapse_penalty = 1_000_001,
        |terms| terms.members.clear(),
        |terms| terms.members[1] = vec![],
        |terms| terms.members[1] = terms.members[0].clone(),
        |terms| terms.assets.swap(0, 1),
        |terms| terms.assets[1].asset = primitives::AssetId(2),
        |terms| *terms = with_outflow(terms.clone(), 5, 0),
    ];
    let digest = genesis(Some(terms())).digest();
    assert_ne!(digest, genesis(None).digest());
    for (number, fault) in faults.iter().enumerate() {
        let mut wrong = terms();
        fault(&mut wrong);
        let wrong = genesis(Some(wrong));
        assert_ne!(wrong.digest(), digest, "{number}");
        assert!(matches!(Ledger::new(&wrong), Err(GenesisError::Lane(_))), "{number}");
    }
    assert!(matches!(Ledger::new(&genesis(Some(with_output(terms(), 1, 9)))), Err(GenesisError::Lane(_))));
}

/// A request in a block of the property test.
#[derive(Clone, Debug)]
enum Act {
    Withdraw {
        person: u8,
        amount: Amount,
    },
    /// The coin, its receiver, and a sender for each copy.
    Redeem {
        coin: usize,
        to: u8,
        senders: Vec<u8>,
    },
    Pass,
}

fn act() -> impl Strategy<Value = Act> {
    let person = || 1..=PEOPLE;
    prop_oneof![
        3 => (person(), 10u64..5_000).prop_map(|(person, amount)| Act::Withdraw { person, amount }),
        3 => (0usize..64, person(), prop::collection::vec(person(), 1..4))
            .prop_map(|(coin, to, senders)| Act::Redeem { coin, to, senders }),
        1 => Just(Act::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Withdrawals and redemptions in any order and with copies, compared with a plain model of the owners of the
    /// money.
    #[test]
    fn escrow_is_what_came_in_less_what_went_out(
        blocks in prop::collection::vec(prop::collection::vec(act(), 0..6), 1..24)
    ) {
        let mut world = World::new(terms());
        let mut balances = [START; PEOPLE as usize + 1];
        // A coin is paid to one receiver only, because committees are correct.
        let (mut escrow, mut coins, mut receivers) = (0u128, Vec::<Coin>::new(), BTreeMap::new());
        for acts in blocks {
            let epoch = world.epoch();
            let (mut parts, mut made) = (vec![vec![]; 3], vec![]);
            for (place, act) in acts.into_iter().enumerate() {
                match act {
                    Act::Withdraw { person, amount } => {
                        made.push((person, world.next_sequence(person), amount));
                        let transaction = world.sign(person, withdrawal(person, USD, amount));
                        parts[place % 3].push(transaction);
                        balances[usize::from(person)] -= amount + FEE;
                        escrow += u128::from(amount);
                    }
                    Act::Redeem { coin, to, senders } if !coins.is_empty() => {
                        let at = coin % coins.len();
                        let coin = coins[at];
                        let is_in_time = epoch - coin.home <= 3;
                        if !is_in_time {
                            continue;
                        }
                        let is_first = !receivers.contains_key(&at);
                        let to = *receivers.entry(at).or_insert(to);
                        let redemption = world.redemption(&world.pay(&coin, &[(to, coin.amount)]));
                        for (copy, sender) in senders.into_iter().enumerate() {
                            let transaction = world.sign(sender, redemption.clone());
                            parts[(place + copy) % 3].push(transaction);
                            balances[usize::from(sender)] -= FEE;
                        }
                        if is_first {
                            balances[usize::from(to)] += coin.amount;
                            escrow -= u128::from(coin.amount);
                        }
                    }
                    Act::Redeem { .. } | Act::Pass => {}
                }
            }
            let applied = world.run(parts);
            prop_assert!(applied.outcomes.iter().all(|outcome| *outcome == Outcome::Applied), "{:?}", applied.outcomes);
            let coin = |(owner, sequence, amount)| world.coin(owner, sequence, epoch, USD, amount);
            coins.extend(made.into_iter().map(coin));
            prop_assert_eq!(world.escrow(USD), escrow);
            for person in 1..=PEOPLE {
                prop_assert_eq!(world.balance(person, USD), balances[usize::from(person)]);
            }
        }
    }
}
