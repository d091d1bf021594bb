//! Reports of steps: one signature for all of a step, from the rules on that judge them, and never two of one step.

use kernel::{FaultDisk, Surviving};
use ledger::{CharterTerms, Genesis, manifest};
use primitives::venue::{
    Contradicting, STEP_REPORTS_RULES, SignedReport, StepReport, VenueEvidence, VenueOperation, VenueReport, VenueSide,
};
use primitives::{Operation, Upgrade};
use venue::{ReportKind, TradeReport, VenueEffect, VenueInput, VenueLimits, VenueMistake, VenueOptions, VenueRoot};

use crate::world::*;

fn reports_of(effects: &[VenueEffect]) -> Vec<VenueReport> {
    let report = |effect: &VenueEffect| match effect {
        VenueEffect::Report(TradeReport { what: ReportKind::Executed(_, report), .. }) => Some((**report).clone()),
        _ => None,
    };
    effects.iter().filter_map(report).collect()
}

fn of_step(report: &VenueReport) -> &StepReport {
    match report {
        VenueReport::Step(report) => report,
        VenueReport::Single(_) => panic!("it has a signature of its own"),
    }
}

/// A sale, and so many buys that trade with it, in one step.
fn trades(world: &mut World, buys: u32) -> Vec<VenueInput> {
    let sell = world.sell(100, buys);
    let mut inputs = vec![world.new_order(ANN, sell)];
    for person in [BEN, CLEO].into_iter().cycle().take(buys as usize) {
        let buy = world.buy(100, 1);
        inputs.push(world.new_order(person, buy));
    }
    inputs
}

#[test]
fn all_reports_of_a_step_are_under_one_signature_with_the_records_number_and_clock() {
    let mut world = World::new(None);
    for buys in [1, 2, 7, 20] {
        let inputs = trades(&mut world, buys);
        let told = reports_of(&world.step(&inputs));
        assert_eq!(told.len(), 2 * buys as usize);
        let (record, time_ms, network) = (world.root().last_record(), world.time_ms, world.ledger.network());
        for report in &told {
            let report = of_step(report);
            assert_eq!((report.step, report.clock_ms, report.size), (record, time_ms, 2 * buys));
            assert!(report.is_signed(&network));
            assert_eq!((report.signature, report.header()), (of_step(&told[0]).signature, told[0].header()));
        }
        let mut places: Vec<u32> = told.iter().map(|report| of_step(report).place).collect();
        places.sort_unstable();
        assert_eq!(places, (0..2 * buys).collect::<Vec<_>>(), "each side of each fill has a leaf");
        world.pass(1);
        world.settle_all().expect("holds");
    }
}

/// A chain of one node whose operator may vote for the rules of steps.
fn before_the_rules() -> World {
    let charter = CharterTerms { operator: address(OWNER), notice_min: 3, ..CharterTerms::default() };
    let genesis = Genesis { rules: STEP_REPORTS_RULES - 1, charter, ..genesis() };
    let limits = VenueLimits { quiet_ms: QUIET, ..VenueLimits::default() };
    World::founded(&genesis, FaultDisk::new(1), None, mandate(), (limits, market_settings()))
}

/// The attack: a venue that signs steps where nobody is convicted by them, or forgets after a restart how a step was
/// signed.
#[test]
fn single_reports_are_signed_before_the_rules_and_steps_after_through_a_vote_and_restarts() {
    let mut world = before_the_rules();
    let inputs = trades(&mut world, 2);
    let told = reports_of(&world.step(&inputs));
    assert!(told.len() == 4 && told.iter().all(|report| matches!(report, VenueReport::Single(_))));
    let upgrade = Upgrade {
        rules: STEP_REPORTS_RULES,
        manifest: manifest(STEP_REPORTS_RULES).expect("this program knows them"),
        notice: 3,
    };
    let approve = Operation::Approve { upgrade, at: world.height() };
    let approve = world.sign_any(OWNER, approve);
    world.block_with(Vec::new(), vec![approve]);
    while world.ledger.next_rules() < STEP_REPORTS_RULES {
        // The ledger has the rules at the next block; the root knows of none before it is certified.
        let inputs = trades(&mut world, 1);
        assert!(reports_of(&world.step(&inputs)).iter().all(|report| matches!(report, VenueReport::Single(_))));
        world.settling_block();
        world.certify();
    }
    world.crash(Surviving::Nothing).expect("it opens");
    world.pass(1);
    let inputs = trades(&mut world, 3);
    let told = reports_of(&world.step(&inputs));
    assert!(told.len() == 6 && told.iter().all(|report| of_step(report).size == 6));
    world.settle_all().expect("holds");
    // Both forms are fetched as they were told, whatever was restored from: the journal, or a snapshot.
    for restores in [false, true] {
        if restores {
            world.root().snapshot().expect("the disk works");
        }
        world.crash(Surviving::Nothing).expect("it opens");
        let mut fetched = 0;
        for step in world.root().reported(0, 1_000).expect("they are in the journal") {
            for (at, fill) in step.fills().iter().enumerate() {
                for side in [VenueSide::Buy, VenueSide::Sell] {
                    assert!(world.told[&fill.index].contains(&step.report(at, side)), "fill {}", fill.index);
                    fetched += 1;
                }
            }
        }
        assert_eq!(fetched, world.told.values().map(Vec::len).sum::<usize>());
        world.pass(1);
        let inputs = trades(&mut world, 1);
        assert!(reports_of(&world.step(&inputs)).iter().all(|report| of_step(report).size == 2), "it knows the rules");
        world.settle_all().expect("holds");
    }
}

/// A part of a step is fetched with the paths of the whole.
#[test]
fn fills_in_the_middle_of_a_step_are_fetched_with_their_paths() {
    let mut world = World::new(None);
    let inputs = trades(&mut world, 9);
    world.step(&inputs);
    world.pass(1);
    let steps = world.root().reported(3, 4).expect("they are in the journal");
    assert_eq!(steps.iter().flat_map(|step| step.fills()).map(|fill| fill.index).collect::<Vec<_>>(), [3, 4, 5, 6]);
    for (at, fill) in steps[0].fills().iter().enumerate() {
        for side in [VenueSide::Buy, VenueSide::Sell] {
            assert!(world.told[&fill.index].contains(&steps[0].report(at, side)));
        }
    }
}

/// The attack: the process dies when its record is on the disk and nobody was told. What it tells after the restart is
/// what it would have told; if the record is lost, the next step has its number, and nobody has a report of the first.
#[test]
fn a_crash_between_sync_and_sending_tells_the_same_step_again() {
    for loses in [false, true] {
        let mut world = World::new(None);
        let inputs = trades(&mut world, 3);
        let before = world.disk.after_crash(Surviving::Everything);
        let from = world.root().effects_told();
        let swallowed = reports_of(&world.root().step(1, &inputs).expect("the disk works"));
        let disk = if loses { before } else { world.disk.after_crash(Surviving::Nothing) };
        let options = VenueOptions { again_from: Some(from), ..VenueOptions::default() };
        let (root, found) = VenueRoot::open(disk, keys(), options).expect("it opens");
        let again: Vec<VenueEffect> = found.again.into_iter().map(|(_, effect)| effect).collect();
        assert_eq!(reports_of(&again), if loses { Vec::new() } else { swallowed.clone() });
        drop(root);
    }
}

/// Kills between trades, and what was told of all steps.
pub fn restart(mistake: Option<VenueMistake>) -> Result<(), String> {
    let mut world = World::new(None);
    world.options.mistake = mistake.into();
    for lots in 1..4 {
        world.crash(Surviving::Nothing).map_err(|error| error.to_string())?;
        world.pass(1);
        world.trade(ANN, BEN, 100, lots);
        world.check()?;
    }
    world.settle_all()
}

#[test]
fn a_restart_signs_no_step_twice() {
    restart(None).expect("holds");
}

/// The attack on oneself: a root and its copy both trade. Before anything settles, each trader who hears of the other's
/// report convicts, although the two have no fill in common.
#[test]
fn two_roots_of_one_journal_convict_by_the_first_step_that_both_sign() {
    let mut world = World::new(None);
    let disk = world.disk.after_crash(Surviving::Everything);
    let (mut copy, _) = VenueRoot::open(disk, keys(), VenueOptions::default()).expect("it opens");
    world.crash(Surviving::Everything).expect("it opens");
    world.pass(1);
    let blocks: Vec<VenueInput> = world.facts.iter().cloned().map(VenueInput::Certified).collect();
    copy.step(world.time_ms, &blocks).expect("the disk works");
    assert_eq!(copy.last_record(), world.root().last_record());
    let (inputs, others) = (trades(&mut world, 1), trades(&mut world, 2));
    let told = reports_of(&world.step(&inputs));
    let others = reports_of(&copy.step(world.time_ms, &others).expect("the disk works"));
    let mut both = [told[0].clone(), others[3].clone()];
    assert_ne!(both[0].fill().index, both[1].fill().index);
    both.sort_by_key(SignedReport::rank);
    let [report, other] = both;
    let evidence = VenueEvidence { report, contradicting: Contradicting::Report(other), ended: None };
    world.block(vec![(CLEO, VenueOperation::AccuseStep(Box::new(evidence)))]);
    assert_eq!(world.venue().map(|of| (of.bond, of.is_convicted)), Some((0, true)));
}
