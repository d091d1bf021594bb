//! Reports of steps before the ledger: what convicts, what claims, and from which rules on.

use ledger::{ACCUSATIONS_PER_SUB_BLOCK, Ledger, Outcome, Refusal, Roots};
use primitives::venue::{
    Contradicting, FillTree, STEP_REPORTS_RULES, SignedReport, StepReport, UnsettledFill, VenueEvidence,
    VenueOperation, VenueReport,
};
use primitives::{Digest, Transaction};

use crate::world::*;

const TIMES: (u64, u64) = (9, 70_000);

/// A venue that has settled three fills.
fn settled() -> World {
    let mut world = World::new();
    world.settles(&[fill(buy(1), sell(1), 1), fill(buy(1), sell(1), 2), fill(buy(1), sell(1), 3)]);
    world
}

/// What an honest venue told both sides of its three fills.
fn honest(world: &World) -> Vec<(u64, Digest, u8)> {
    (0..3).flat_map(|at| [BUYER, SELLER].map(|person| (at, world.leaves[at as usize], person))).collect()
}

fn by_tree(world: &World, report: VenueReport) -> VenueOperation {
    let index = report.fill().index;
    let path = FillTree::path(&world.leaves, index).expect("it is settled");
    let contradicting = Contradicting::Tree(world.leaves[index as usize], path);
    VenueOperation::AccuseStep(Box::new(VenueEvidence { report, contradicting, ended: None }))
}

/// An accusation by two reports, in their order.
fn by_two(one: VenueReport, other: VenueReport) -> VenueOperation {
    let mut both = [one, other];
    both.sort_by_key(SignedReport::rank);
    let [report, other] = both;
    let contradicting = Contradicting::Report(other);
    VenueOperation::AccuseStep(Box::new(VenueEvidence { report, contradicting, ended: None }))
}

#[test]
fn a_report_of_a_step_that_the_tree_contradicts_costs_the_bond_and_pays_its_trader_a_tenth() {
    let mut world = settled();
    let lie =
        VenueReport::Step(world.step_report(TIMES, &[(1, Digest([7; 32]), BUYER), (1, Digest([7; 32]), SELLER)], 0));
    let before = world.balance(BUYER, USD);
    let accusation = by_tree(&world, lie);
    world.done(vec![(7, accusation.clone())]);
    assert_eq!(world.balance(BUYER, USD), before + BOND / 10, "whoever submits it");
    assert_eq!((world.venue().liable(), world.venue().judged), (0, 1));
    assert_eq!(world.refusal(7, accusation), Some(Refusal::NOTHING_BONDED));
}

/// The attack: an honest venue is accused by what it told, with other paths, leaves, keys and accounts.
#[test]
fn a_true_report_of_a_step_convicts_nobody_whatever_is_done_to_it() {
    let mut world = settled();
    let told = honest(&world);
    let truth = world.step_report(TIMES, &told, 2);
    let refused = by_tree(&world, VenueReport::Step(truth.clone()));
    assert_eq!(world.refusal(7, refused), Some(Refusal::VENUE_BOUNDS), "it is what the tree has");
    let again = world.step_report(TIMES, &told, 3);
    let refused = by_two(VenueReport::Step(truth.clone()), VenueReport::Step(again));
    assert_eq!(world.refusal(7, refused), Some(Refusal::VENUE_BOUNDS), "two reports of one tree agree");
    let spoils: [fn(&mut StepReport); 6] = [
        |of| of.fill.leaf = Digest([7; 32]),
        |of| of.fill.index = 0,
        |of| of.step += 1,
        |of| of.clock_ms += 1,
        |of| of.place = 3,
        |of| of.path[1] = Digest([7; 32]),
    ];
    for (at, spoil) in spoils.into_iter().enumerate() {
        let mut forged = truth.clone();
        spoil(&mut forged);
        let forged = VenueReport::Step(forged);
        for accusation in [by_tree(&world, forged.clone()), by_two(forged, VenueReport::Step(truth.clone()))] {
            let outcome = world.block(vec![(7, accusation)]).outcomes[0];
            let is_nothing = matches!(outcome, Outcome::Refused(Refusal::BAD_SIGNATURE | Refusal::VENUE_BOUNDS));
            assert!(is_nothing, "spoil {at}: {outcome:?}");
        }
    }
    assert_eq!(world.venue().bond, BOND);
}

/// The attack: a trader sees one tree of the step, the other trader another one. Either brings it, before anything
/// settles, and although no index is in both.
#[test]
fn a_step_that_is_signed_twice_convicts_and_both_traders_are_paid() {
    let world = World::new();
    let shown = |index, person, place| {
        let leaves = [(index, Digest([3; 32]), person), (index, Digest([3; 32]), 5)];
        VenueReport::Step(world.step_report(TIMES, &leaves, place))
    };
    let (to_buyer, to_seller) = (shown(40, BUYER, 0), shown(41, SELLER, 0));
    for accuser in [BUYER, SELLER] {
        let mut world = world.clone();
        let before = [BUYER, SELLER].map(|person| world.balance(person, USD));
        world.done(vec![(accuser, by_two(to_buyer.clone(), to_seller.clone()))]);
        let fees = [BUYER, SELLER].map(|person| u64::from(person == accuser));
        let paid = [0, 1].map(|at| world.balance([BUYER, SELLER][at], USD) + fees[at] * 20 >= before[at] + BOND / 20);
        assert_eq!((paid, world.venue().liable()), ([true; 2], 0));
    }
}

#[test]
fn an_index_with_two_leaves_convicts_in_one_tree_and_in_both_forms() {
    let world = World::new();
    let (one, other) = ((40, Digest([3; 32]), BUYER), (40, Digest([4; 32]), SELLER));
    let of_step = |place| VenueReport::Step(world.step_report(TIMES, &[one, other], place));
    let single = VenueReport::Single(world.report(40, Digest([4; 32]), SELLER, 0));
    for pair in [(of_step(0), of_step(1)), (of_step(0), single)] {
        let mut world = world.clone();
        world.done(vec![(7, by_two(pair.0, pair.1))]);
        assert_eq!(world.venue().liable(), 0);
    }
}

/// A claim by a report of a step costs what one by a single report does, and the two together cost it once.
#[test]
fn a_fill_is_claimed_once_by_reports_of_both_forms() {
    let mut world = settled();
    let unsettled = fill(buy(2), sell(2), 6);
    let VenueOperation::Claim(single) = ({
        let mut ended = world.clone();
        ended.fence();
        ended.claim(0, 3, &unsettled, 0)
    }) else {
        panic!("a claim")
    };
    let leaf = single.report.leaf;
    let report = world.step_report(TIMES, &[(3, leaf, BUYER), (3, leaf, SELLER)], 1);
    world.fence();
    let UnsettledFill { buy, sell, fill, .. } = *single;
    let claim = |world: &World, report| {
        let (buy, sell) = (buy.clone(), sell.clone());
        VenueOperation::ClaimStep(Box::new(UnsettledFill { report, ended: world.proven(0), buy, sell, fill }))
    };
    let mut forged = report.clone();
    forged.fill.index = 4;
    let outcome = world.block(vec![(8, claim(&world, forged))]).outcomes[0];
    assert_eq!(outcome, Outcome::Refused(Refusal::BAD_SIGNATURE));
    let by_step = claim(&world, report);
    world.done(vec![(8, by_step.clone())]);
    assert_eq!(world.venue().bond, BOND - 6 * PENALTY);
    assert_eq!(world.refusal(7, by_step), Some(Refusal::BAD_CLAIM));
    let by_single = world.claim(0, 3, &unsettled, 0);
    assert_eq!(world.refusal(7, by_single), Some(Refusal::BAD_CLAIM));
}

/// The attack: evidence that programs without these rules cannot decode would stop them. None counts before.
#[test]
fn no_ledger_counts_accusations_by_steps_before_the_rules_have_them() {
    let founded = |rules| {
        let ledger = Ledger::new(&ledger::Genesis { rules, ..genesis(Some(terms())) }).expect("sound");
        let mut world = World { roots: Roots::of(&ledger), ledger, ..World::empty(terms()) };
        let operator = operator(OPERATOR, 0);
        world.done(vec![(OWNER, VenueOperation::Open { venue: VENUE, operator, fee_cap_ppm: 10_000, bond: BOND })]);
        world
    };
    let accusation = |world: &World| {
        let of = |clock| {
            let leaves = [(0, Digest([3; 32]), BUYER), (0, Digest([3; 32]), SELLER)];
            VenueReport::Step(world.step_report((1, clock), &leaves, 0))
        };
        by_two(of(1), of(2))
    };
    let mut before = founded(STEP_REPORTS_RULES - 1);
    let operation = accusation(&before);
    let transaction: Transaction = before.sign(7, operation.clone());
    assert_eq!(transaction.body.operation.since_rules(), STEP_REPORTS_RULES);
    assert_eq!(before.refusal(7, operation), Some(Refusal::RULES_TO_COME));
    assert_eq!(before.venue().bond, BOND);
    let mut after = founded(STEP_REPORTS_RULES);
    let operation = accusation(&after);
    after.done(vec![(7, operation)]);
    assert_eq!(after.venue().bond, 0);
}

/// The attack: accusations that cost the ledger two checks each, and are refused for nothing.
#[test]
fn accusations_by_steps_count_in_the_quota_of_accusations() {
    let mut world = World::new();
    let of = |clock| {
        let leaves = [(0, Digest([3; 32]), BUYER), (0, Digest([3; 32]), SELLER)];
        VenueReport::Step(world.step_report((1, clock), &leaves, 0))
    };
    let accusation = by_two(of(1), of(2));
    let count = ACCUSATIONS_PER_SUB_BLOCK as usize + 3;
    let outcomes = world.block((0..count).map(|_| (7, accusation.clone())).collect()).outcomes;
    let beyond = outcomes.iter().filter(|outcome| outcome.refusal() == Some(Refusal::OVER_QUOTA)).count();
    assert_eq!(beyond, 3, "{outcomes:?}");
}
