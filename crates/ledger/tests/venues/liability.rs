//! Accusations and claims: who is convicted, what it costs, and whom it is paid.

use ledger::{Outcome, Refusal};
use primitives::Digest;
use primitives::venue::{Contradicting, FillTree, ProvenEnd, VenueEvidence, VenueOperation};

use crate::world::*;

/// A venue that has settled three fills, and reported another leaf at index 1 to the buyer.
fn lying() -> (World, primitives::venue::FillReport) {
    let mut world = World::new();
    world.settles(&[fill(buy(1), sell(1), 1), fill(buy(1), sell(1), 2), fill(buy(1), sell(1), 3)]);
    let lie = world.report(1, Digest([7; 32]), BUYER, 0);
    (world, lie)
}

fn accuse(
    report: primitives::venue::FillReport,
    contradicting: Contradicting,
    ended: Option<ProvenEnd>,
) -> VenueOperation {
    VenueOperation::Accuse(Box::new(VenueEvidence { report, contradicting, ended }))
}

#[test]
fn a_report_that_the_tree_contradicts_costs_the_whole_bond_and_pays_its_trader_a_tenth() {
    let (mut world, lie) = lying();
    let (before, issued) = (world.balance(BUYER, USD), world.issued());
    world.done(vec![(7, world.accusation(lie))]);
    assert_eq!(world.balance(BUYER, USD), before + BOND / 10, "whoever submits it");
    assert!((issued - BOND * 9 / 10 - 20..issued - BOND * 9 / 10).contains(&world.issued()));
    let venue = world.venue();
    assert_eq!((venue.bond, venue.liable(), venue.judged), (0, 0, 1));
    assert_eq!(world.refusal(7, world.accusation(lie)), Some(Refusal::NOTHING_BONDED));
}

#[test]
fn a_true_report_convicts_nobody_nor_does_a_foreign_key_or_a_wrong_path() {
    let (mut world, lie) = lying();
    let truth = world.report(1, world.leaves[1], BUYER, 0);
    assert_eq!(world.refusal(7, world.accusation(truth)), Some(Refusal::VENUE_BOUNDS));
    let foreign = world.report(1, Digest([7; 32]), BUYER, 5);
    assert_eq!(world.refusal(7, world.accusation(foreign)), Some(Refusal::BAD_VENUE_EVIDENCE));
    let path = FillTree::path(&world.leaves, 0).expect("there");
    let wrong = accuse(lie, Contradicting::Tree(world.leaves[0], path), None);
    assert_eq!(world.refusal(7, wrong), Some(Refusal::BAD_VENUE_EVIDENCE));
    let mut forged = lie;
    forged.account = address(7);
    let applied = world.block(vec![(7, world.accusation(forged))]);
    assert_eq!(applied.outcomes, [Outcome::Refused(Refusal::BAD_SIGNATURE)]);
    assert_eq!(world.venue().bond, BOND);
}

#[test]
fn two_reports_of_one_index_with_different_leaves_convict_before_anything_settles() {
    let mut world = World::new();
    let mut both = [3, 9].map(|leaf| world.report(40, Digest([leaf; 32]), if leaf == 3 { BUYER } else { SELLER }, 0));
    both.sort_by_key(|report| report.leaf);
    let reversed = accuse(both[1], Contradicting::Report(both[0]), None);
    assert_eq!(world.refusal(7, reversed), Some(Refusal::VENUE_BOUNDS), "one pair has one encoding");
    let before = [BUYER, SELLER].map(|person| world.balance(person, USD));
    world.done(vec![(7, accuse(both[0], Contradicting::Report(both[1]), None))]);
    assert_eq!([BUYER, SELLER].map(|person| world.balance(person, USD)), before.map(|units| units + BOND / 20));
}

#[test]
fn a_change_of_operator_a_withdrawal_and_seventeen_fences_after_a_false_report_still_convict() {
    let (mut world, lie) = lying();
    let leaves = world.leaves.clone();
    let (from, to) = (operator(OPERATOR, 0), operator(5, 1));
    world.done(vec![(OWNER, VenueOperation::ChangeOperator { venue: VENUE, from, to })]);
    world.done(vec![(OWNER, VenueOperation::Unbond { venue: VENUE, units: BOND })]);
    for _ in 0..17 {
        world.fence();
    }
    assert_eq!(world.refusal(7, world_accusation(&world, lie, &leaves, None)), Some(Refusal::BAD_VENUE_EVIDENCE));
    let before = world.balance(BUYER, USD);
    world.done(vec![(7, world_accusation(&world, lie, &leaves, Some(world.proven(0))))]);
    assert_eq!(world.balance(BUYER, USD), before + BOND / 10, "what leaves is liable");
    assert_eq!(world.venue().liable(), 0);
}

fn world_accusation(
    _: &World,
    report: primitives::venue::FillReport,
    leaves: &[Digest],
    ended: Option<ProvenEnd>,
) -> VenueOperation {
    let path = FillTree::path(leaves, report.index).expect("settled");
    accuse(report, Contradicting::Tree(leaves[report.index as usize], path), ended)
}

/// Otherwise one stolen report key would end a venue, whatever it bonds.
#[test]
fn judged_evidence_convicts_no_new_bond_and_a_convicted_venue_stands_still_until_a_fence() {
    let (mut world, lie) = lying();
    let leaves = world.leaves.clone();
    world.done(vec![(7, world.accusation(lie))]);
    world.done(vec![(OWNER, VenueOperation::Bond { venue: VENUE, units: BOND })]);
    assert_eq!(world.refusal(7, world.accusation(lie)), Some(Refusal::VENUE_CONVICTED));
    let settle = VenueOperation::Settle(world.settle(&[fill(buy(2), sell(2), 1)]));
    assert_eq!(world.refusal(OPERATOR, settle), Some(Refusal::VENUE_CONVICTED));
    world.fence();
    let again = world_accusation(&world, lie, &leaves, Some(world.proven(0)));
    assert_eq!(world.refusal(7, again), Some(Refusal::VENUE_CONVICTED));
    assert_eq!(world.venue().bond, BOND);
    let settle = VenueOperation::Settle(world.settle(&[fill(buy(2), sell(2), 1)]));
    assert_eq!(world.refusal(OPERATOR, settle), None);
}

#[test]
fn a_block_convicts_a_venue_once() {
    let (mut world, lie) = lying();
    let other = world.report(2, Digest([8; 32]), SELLER, 0);
    let before = world.balance(BUYER, USD) + world.balance(SELLER, USD);
    let applied = world.block(vec![(7, world.accusation(lie)), (8, world.accusation(other))]);
    assert!(applied.outcomes.contains(&Outcome::Applied) && applied.outcomes.contains(&Outcome::Void));
    assert_eq!(world.balance(BUYER, USD) + world.balance(SELLER, USD), before + BOND / 10);
}

#[test]
fn a_claim_of_an_unsettled_fill_costs_its_penalty_once_until_the_delay_is_over() {
    let mut world = World::new();
    world.settles(&[fill(buy(1), sell(1), 1)]);
    let unsettled = fill(buy(2), sell(2), 6);
    world.fence();
    let fenced = world.height();
    let claim = world.claim(0, 1, &unsettled, 0);
    assert_eq!(world.refusal(7, world.claim(0, 0, &unsettled, 0)), Some(Refusal::BAD_CLAIM), "index 0 is settled");
    assert_eq!(world.refusal(7, world.claim(0, 1, &unsettled, 3)), Some(Refusal::BAD_VENUE_EVIDENCE));
    let balances = [BUYER, SELLER, 8].map(|person| world.balance(person, USD));
    world.done(vec![(8, claim.clone())]);
    assert_eq!(world.venue().bond, BOND - 6 * PENALTY);
    assert_eq!(world.balance(BUYER, USD) + world.balance(SELLER, USD), balances[0] + balances[1], "it is burnt");
    assert_eq!(world.refusal(7, claim), Some(Refusal::BAD_CLAIM), "once an index");
    let mut late = world.clone();
    while late.height() < fenced + terms().bond_delay.heights {
        late.empty_blocks(1);
    }
    let mut over = late.clone();
    assert_eq!(late.refusal(7, late.claim(0, 2, &unsettled, 0)), None);
    over.empty_blocks(1);
    assert_eq!(over.refusal(7, over.claim(0, 2, &unsettled, 0)), Some(Refusal::BAD_CLAIM));
}

#[test]
fn claims_reach_what_leaves_the_bond() {
    let mut world = World::new();
    world.done(vec![(OWNER, VenueOperation::Unbond { venue: VENUE, units: BOND })]);
    world.fence();
    world.done(vec![(7, world.claim(0, 0, &fill(buy(2), sell(2), 6), 0))]);
    assert_eq!((world.venue().bond, world.venue().liable()), (0, BOND - 6 * PENALTY));
}

/// Whoever stole a report key could otherwise burn the bond of the venue after it was convicted with it once.
#[test]
fn reports_of_judged_incarnations_claim_nothing() {
    let (mut world, lie) = lying();
    world.done(vec![(7, world.accusation(lie))]);
    world.done(vec![(OWNER, VenueOperation::Bond { venue: VENUE, units: BOND })]);
    world.fence();
    let claim = world.claim(0, 9, &fill(buy(2), sell(2), 6), 0);
    assert_eq!(world.refusal(7, claim), Some(Refusal::VENUE_CONVICTED));
    assert_eq!(world.venue().bond, BOND);
}
