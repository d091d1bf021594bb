//! Who causes work in the lane pays for it: cases cost bids, and members' duties are free.

use crate::world::*;
use ledger::{LANE_CHECKS_PER_SUB_BLOCK, Outcome, Refusal};
use payments::{
    BridgeOperation, ContestClaim, OutputId, OutputProof, PaidProof, PaymentBody, PaymentCertificate, PaymentSummary,
    StatementKind, case_weight, cases_per_block, contests, owner_message,
};
use primitives::{Amount, Digest, Operation, is_lane_duty};

/// Person whose account is that of a member: where keys do not change, of its first key.
const MEMBER: u8 = 200;

/// Members have accounts without any money.
fn with_accounts() -> World {
    let mut world = World::new(terms());
    for person in MEMBER..MEMBER + 4 {
        let (account, key) = (address(person), key(person).public());
        world.block(vec![(6, Operation::CreateAccount { account, key })]);
    }
    world
}

fn duty(operation: &Operation) -> Operation {
    let Operation::Lane(bytes) = operation else { panic!("a post") };
    let marked = BridgeOperation::parse(bytes).expect("a post").encode_duty();
    assert!(is_lane_duty(&marked) && BridgeOperation::parse(&marked) == BridgeOperation::parse(bytes));
    Operation::Lane(marked.into())
}

/// A case that anybody opens in the name of its owner: the signature is on the exit, not on the bid.
fn resolve(world: &World, coin: &Coin, bid: Amount) -> Operation {
    post(&BridgeOperation::Resolve { bid, outputs: vec![claim(world, coin)] })
}

fn claim(world: &World, coin: &Coin) -> ContestClaim {
    let contested = contested(coin);
    let exit = PaymentBody::new(contested.exit(world.network()));
    let signature = key(coin.owner).sign(&owner_message(&world.network(), coin.home, &exit.digest));
    ContestClaim { contested, signature, proof: OutputProof::Ledger }
}

fn burnt_balance(world: &World) -> u64 {
    world.ledger.audit().expect("conserved")[0].issued
}

#[test]
fn members_duties_are_free_with_an_empty_account() {
    let mut world = with_accounts();
    let coin = world.withdraw(1, USD, 1_000);
    world.block(vec![(1, resolve(&world, &coin, CASE_DEPOSIT))]);
    let exit = contested(&coin).exit(world.network());
    let vote = |world: &World, member: usize| world.vote(&coin, member, &exit);
    assert_eq!(world.outcome(MEMBER, vote(&world, 0)), Some(Refusal::OVERDRAFT), "what is not marked costs its fee");
    // Nobody else has it for free: a copy in another's name neither costs the member nor counts as free.
    assert_eq!(world.outcome(2, duty(&vote(&world, 0))), Some(Refusal::NO_LANE_DUTY));
    assert_eq!(world.outcome(MEMBER + 1, duty(&vote(&world, 0))), Some(Refusal::NO_LANE_DUTY));
    assert_eq!(world.outcome(MEMBER, duty(&vote(&world, 0))), None);
    // What changes nothing is not free.
    assert_eq!(world.outcome(MEMBER, duty(&vote(&world, 0))), Some(Refusal::NO_LANE_DUTY));
    for member in 1..3 {
        assert_eq!(world.outcome(MEMBER + member as u8, duty(&vote(&world, member))), None);
    }
    assert_eq!(world.balance(1, USD), START - 2 * FEE - CASE_DEPOSIT, "the exit stands, and the bid is used up");
    for halt in 0..3 {
        assert_eq!(world.outcome(MEMBER + halt as u8, duty(&world.halt(halt))), None);
    }
    assert_eq!((MEMBER..MEMBER + 4).map(|person| world.balance(person, USD)).sum::<u64>(), 0);
}

#[test]
fn a_redemption_is_no_duty() {
    let mut world = with_accounts();
    let coin = world.withdraw(1, USD, 1_000);
    let redemption = world.redemption(&world.pay(&coin, &[(2, 1_000)]));
    assert_eq!(world.outcome(MEMBER, duty(&redemption)), Some(Refusal::NO_LANE_DUTY));
    assert_eq!(world.outcome(3, redemption), None);
}

/// Each block opens as many cases as its reserved share has room for, those with the highest bids; all other bids
/// return, and nothing waits.
#[test]
fn the_highest_bids_open_cases_and_the_others_return() {
    let mut world = World::new(terms());
    let most = cases_per_block(payments::Quorums::new(4));
    world.block((0..most + 3).map(|_| (1, withdrawal(1, EUR, 100))).collect());
    let coins: Vec<Coin> = (1..=most as u64 + 3).map(|number| world.coin(1, number, 0, EUR, 100)).collect();
    let before = world.balance(2, USD);
    // Person 2 bids for many; the owner's own bid is the highest and comes last.
    let mut bids: Vec<(u8, Operation)> =
        coins[..most + 2].iter().map(|coin| (2, resolve(&world, coin, CASE_DEPOSIT))).collect();
    bids.push((1, resolve(&world, &coins[most + 2], CASE_DEPOSIT + 1)));
    world.block(bids);
    let resolver = world.ledger.lane().expect("there is one").bridge().resolver();
    assert_eq!(resolver.open_cases(), most);
    assert!(resolver.is_open(&coins[most + 2].id), "the highest bid is among them");
    let (fees, opened) = (FEE * (most as u64 + 2), most as u64 - 1);
    assert_eq!(world.balance(2, USD), before - fees - opened * CASE_DEPOSIT, "three bids return");
}

/// A copy of the owner's request with a lower bid, whatever its id, displaces nobody.
#[test]
fn of_two_bids_for_one_output_the_highest_counts() {
    for bids in [[CASE_DEPOSIT, 3 * CASE_DEPOSIT], [3 * CASE_DEPOSIT, CASE_DEPOSIT]] {
        let mut world = World::new(terms());
        let coin = world.withdraw(1, EUR, 100);
        let before = [2, 3].map(|person| world.balance(person, USD));
        world.block(vec![(2, resolve(&world, &coin, bids[0])), (3, resolve(&world, &coin, bids[1]))]);
        let paid: Vec<u64> = [2, 3].iter().zip(before).map(|(of, before)| before - world.balance(*of, USD)).collect();
        let taken = |bid| FEE + if bid == 3 * CASE_DEPOSIT { bid } else { 0 };
        assert_eq!(paid, bids.map(taken));
    }
    let mut world = World::new(terms());
    let coin = world.withdraw(1, EUR, 100);
    assert_eq!(world.outcome(2, resolve(&world, &coin, CASE_DEPOSIT - 1)), Some(Refusal::WRONG_CASE_DEPOSIT));
}

/// A second bid for an open case returns, also in the block that closes the case.
#[test]
fn a_bid_for_an_open_case_returns() {
    let mut world = World::new(terms());
    let coin = world.withdraw(1, EUR, 1_000);
    world.block(vec![(1, resolve(&world, &coin, CASE_DEPOSIT))]);
    let exit = contested(&coin).exit(world.network());
    let before = world.balance(2, USD);
    let votes = (0..3).map(|member| (3 + member as u8, world.vote(&coin, member, &exit)));
    let block: Vec<_> = votes.chain([(2, resolve(&world, &coin, 2 * CASE_DEPOSIT))]).collect();
    world.block(block);
    assert_eq!(world.balance(2, USD), before - FEE);
    assert_eq!(world.escrow(EUR), 0, "the case is closed");
}

/// Of an expired case the part returns that no vote and no view used.
#[test]
fn an_expired_case_returns_what_it_did_not_use() {
    let mut world = World::new(terms());
    let coin = world.withdraw(1, USD, 1_000);
    world.block(vec![(2, resolve(&world, &coin, 120))]);
    let exit = contested(&coin).exit(world.network());
    world.block(vec![(3, world.vote(&coin, 0, &exit))]);
    let (before, issued) = (world.balance(2, USD), burnt_balance(&world));
    let mut blocks = 0;
    while world.ledger.lane().expect("there is one").bridge().resolver().open_cases() > 0 {
        world.empty_blocks(1);
        blocks += 1;
        assert!(blocks < 20, "the case does not expire");
    }
    // One of 4 votes and 8 views: a twelfth is used.
    assert_eq!((world.balance(2, USD) - before, issued - burnt_balance(&world)), (110, 10));
}

#[test]
fn a_flood_of_redemptions_leaves_room_for_duties() {
    let mut world = with_accounts();
    let coins = [world.withdraw(1, USD, 1_000), world.withdraw(1, USD, 1_000)];
    world.block(vec![(1, resolve(&world, &coins[1], CASE_DEPOSIT))]);
    let redemption = world.redemption(&world.pay(&coins[0], &[(2, 1_000)]));
    // An account has 64 numbers at a time.
    let copies = LANE_CHECKS_PER_SUB_BLOCK as usize / 3 + 1;
    let senders: Vec<u8> = (1..=PEOPLE).flat_map(|person| [person; 60]).take(copies).collect();
    let mut part: Vec<_> = senders.into_iter().map(|person| world.sign(person, redemption.clone())).collect();
    assert!(part.len() == copies, "the flood exhausts its share");
    let exit = contested(&coins[1]).exit(world.network());
    part.push(world.sign(MEMBER, duty(&world.vote(&coins[1], 0, &exit))));
    let applied = world.run(vec![part]);
    let refused = applied.outcomes.iter().filter(|of| of.refusal() == Some(Refusal::OVER_QUOTA)).count();
    assert_eq!((refused, applied.outcomes.last()), (1, Some(&Outcome::Applied)));
}

/// A post that no sub-block carries is refused before it waits in a pool, and says why.
#[test]
fn a_post_that_costs_more_checks_than_a_sub_block_has_is_refused_at_admission() {
    let mut world = World::new(terms());
    let coin = world.withdraw(1, USD, 1_000);
    let payment = world.pay(&coin, &[(2, 1_000)]);
    let answer =
        world.answer(0, 0, StatementKind::Confirmation, &payment.owner, PaymentBody::new(payment.clone()).digest);
    let certificate = |signers| PaymentCertificate::Answers(vec![answer.clone(); signers]);
    let summary = PaymentSummary {
        home: 0,
        into: 0,
        owner: key(1).public(),
        inputs: Digest::default(),
        outputs: 1,
        outputs_root: Digest::default(),
    };
    // As many signers as a quorum of 96 members has, for the parent of each of 16 outputs.
    let outputs = |signers| -> Vec<ContestClaim> {
        let proof = PaidProof { summary, index: 0, path: Vec::new(), certificate: certificate(signers) };
        let mut one = ContestClaim { proof: OutputProof::Payment(Box::new(proof)), ..claim(&world, &coin) };
        let mut output = |number| {
            one.contested.output.id = OutputId([number; 32]);
            one.clone()
        };
        (0..16).map(&mut output).collect()
    };
    let (fits, exceeds) = (outputs(63), outputs(64));
    let admitted = |world: &mut World, outputs: Vec<ContestClaim>| {
        let transaction = world.sign(1, post(&BridgeOperation::Resolve { bid: CASE_DEPOSIT, outputs }));
        world.ledger.admit(&transaction)
    };
    assert_eq!(admitted(&mut world, exceeds.clone()), Err(Refusal::LANE_POST_OVER_QUOTA));
    assert_ne!(admitted(&mut world, fits), Err(Refusal::LANE_POST_OVER_QUOTA));
    // The wallet sends as many posts as it needs.
    let posts = contests(CASE_DEPOSIT, exceeds.into_iter().rev().collect());
    let cost: Vec<u32> = posts.iter().map(BridgeOperation::cost).collect();
    assert_eq!(cost, [15 * 65, 65]);
    assert!(posts.iter().all(|of| BridgeOperation::parse(&of.encode()).as_ref() == Ok(of)));
}

/// What the posts of a case would cost, and how many cases a block opens, for every size of a committee.
#[test]
fn a_case_costs_its_work_at_every_size() {
    let weights: Vec<u64> = [1, 4, 7, 28].map(case_weight).to_vec();
    assert_eq!(weights, [7, 28, 63, 644]);
    let cases: Vec<usize> = [1, 4, 28, 256].map(|n| cases_per_block(payments::Quorums::new(n))).to_vec();
    assert_eq!(cases, [16, 16, 16, 2]);
}

/// A certificate of a contested payment is a duty of each member, once; any other redemption is not.
#[test]
fn the_certificate_of_a_contested_payment_is_a_duty() {
    let mut world = with_accounts();
    let coin = world.withdraw(1, USD, 1_000);
    let redemption = world.redemption(&world.pay(&coin, &[(2, 1_000)]));
    world.block(vec![(1, resolve(&world, &coin, CASE_DEPOSIT))]);
    assert_eq!(world.outcome(2, duty(&redemption)), Some(Refusal::NO_LANE_DUTY), "of members only");
    assert_eq!(world.outcome(MEMBER + 2, duty(&redemption)), None);
    assert_eq!(world.ledger.lane().expect("there is one").bridge().resolver().open_cases(), 0, "the payment stands");
    assert_eq!(world.outcome(MEMBER + 3, duty(&redemption)), Some(Refusal::NO_LANE_DUTY), "once");
}

/// The inputs of a stuck payment are contested by one operation. They come before the outputs of equal bids, and what
/// is not opened returns.
#[test]
fn inputs_are_contested_together() {
    let mut world = World::new(terms());
    let most = cases_per_block(payments::Quorums::new(4));
    world.block((0..most + 2).map(|_| (1, withdrawal(1, EUR, 100))).collect());
    let coins: Vec<Coin> = (1..=most as u64 + 2).map(|number| world.coin(1, number, 0, EUR, 100)).collect();
    let together = |world: &World, coins: &[&Coin], bid| {
        let mut outputs: Vec<ContestClaim> = coins.iter().map(|coin| claim(world, coin)).collect();
        outputs.sort_by_key(|of| of.contested.output.id);
        post(&BridgeOperation::Resolve { bid, outputs })
    };
    let all: Vec<&Coin> = coins[..3].iter().collect();
    assert_eq!(world.outcome(2, together(&world, &all, CASE_DEPOSIT - 1)), Some(Refusal::WRONG_CASE_DEPOSIT));
    assert_eq!(
        world.outcome(2, together(&world, &all, u64::MAX / 2)),
        Some(Refusal::WRONG_CASE_DEPOSIT),
        "no sum overflows"
    );
    let (before, refused) = (world.balance(2, USD), world.balance(3, USD));
    let single = |coin: &Coin| (3, together(&world, &[coin], CASE_DEPOSIT));
    let mut bids: Vec<(u8, Operation)> = coins[3..].iter().map(single).collect();
    bids.push((2, together(&world, &all, CASE_DEPOSIT + 1)));
    world.block(bids);
    let resolver = world.ledger.lane().expect("there is one").bridge().resolver();
    assert!(coins[..3].iter().all(|coin| resolver.is_open(&coin.id)) && resolver.open_cases() == most);
    assert_eq!(world.balance(2, USD), before - FEE - 3 * (CASE_DEPOSIT + 1));
    let opened = most as u64 - 3;
    assert_eq!(world.balance(3, USD), refused - (opened + 2) * FEE - opened * CASE_DEPOSIT, "two bids return");
}

/// Of outputs that are contested together only those are paid for that the block opens.
#[test]
fn what_a_higher_bid_has_opened_is_not_paid_for_twice() {
    let mut world = World::new(terms());
    let coins = [world.withdraw(1, EUR, 100), world.withdraw(1, EUR, 100)];
    let mut outputs = coins.iter().map(|coin| claim(&world, coin)).collect::<Vec<_>>();
    outputs.sort_by_key(|of| of.contested.output.id);
    let both = post(&BridgeOperation::Resolve { bid: CASE_DEPOSIT, outputs });
    let before = [2, 3].map(|person| world.balance(person, USD));
    let higher = resolve(&world, &coins[1], CASE_DEPOSIT + 1);
    world.block(vec![(2, both), (3, higher)]);
    let paid: Vec<u64> = [2, 3].iter().zip(before).map(|(of, before)| before - world.balance(*of, USD)).collect();
    assert_eq!(paid, [FEE + CASE_DEPOSIT, FEE + CASE_DEPOSIT + 1]);
}
