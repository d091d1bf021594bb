//! The payment lane under faults: invariants hold for the seeds, and the same seed gives the same run.

use sim::{LaneOptions, LaneReport, run_lane};

#[test]
fn seeds_hold_over_two_boundaries() {
    let mut sum = LaneReport::default();
    for seed in 0..60 {
        let report = run_lane(seed, LaneOptions::default()).unwrap_or_else(|failure| panic!("{failure}"));
        assert!(report.epoch >= 2, "{report:?}");
        sum.certified += report.certified;
        sum.settled += report.settled;
        sum.credits += report.credits;
        sum.verdicts += report.verdicts;
        sum.crashes += report.crashes;
        sum.came_home += report.came_home;
        sum.convicted += report.convicted;
        sum.group_keys += report.group_keys;
        sum.aggregates += report.aggregates;
        sum.thresholds += report.thresholds;
        sum.cases += report.cases;
        sum.expired += report.expired;
        sum.proven += report.proven;
        sum.withheld += report.withheld;
        sum.shown += report.shown;
        sum.stripped += report.stripped;
        sum.unregistered += report.unregistered;
        sum.poor += report.poor;
        sum.restarts += report.restarts;
        sum.carried += report.carried;
        sum.aside += report.aside;
        sum.outdated += report.outdated;
        sum.terms += report.terms;
        sum.late_deposits += report.late_deposits;
        sum.no_way_in += report.no_way_in;
        sum.ways_out += report.ways_out;
    }
    // In a third of the runs terms of assets are voted.
    let voted = [sum.terms, sum.late_deposits, sum.no_way_in, sum.ways_out];
    assert!(voted.iter().all(|count| *count > 20), "{sum:?}");
    let rare = [sum.certified, sum.settled, sum.credits, sum.verdicts, sum.crashes, sum.came_home];
    assert!(rare.iter().all(|count| *count > 50), "{sum:?}");
    // Every condition occurs: cases by the hundred, some of which expire, certificates that are withheld or shown to
    // members alone, views without theirs, epochs without a member's keys, members without money.
    let conditions = [sum.expired, sum.withheld, sum.shown, sum.stripped, sum.unregistered, sum.poor];
    assert!(conditions.iter().all(|count| *count > 0) && sum.cases > 500 && sum.proven > 50, "{sum:?}");
    // Some of these runs make group keys, and some more have BLS keys.
    assert!(sum.group_keys > 0 && sum.aggregates > 20 && sum.thresholds > 20, "{sum:?}");
    // In a quarter of the runs the network restarts; certificates of before are tried again and mean nothing.
    assert!(sum.restarts > 6 && sum.carried > 100 && sum.aside > 0 && sum.outdated > 50, "{sum:?}");
    // In many runs contradictions are posted. In few of these the Byzantine validator never
    // contradicts itself.
    assert!((8..=48).contains(&sum.convicted), "{sum:?}");
}

/// A payment of three inputs can be certified and is not settled. One input lapses, which makes the payment void, and
/// so the others are freed.
#[test]
fn inputs_of_a_void_payment_are_freed() {
    run_lane(158, LaneOptions::default()).unwrap_or_else(|failure| panic!("{failure}"));
}

/// Members have four shards each, two of which run apart from them: connections break, and both ends of them crash.
#[test]
fn seeds_hold_with_shards_that_run_apart() {
    let options = LaneOptions { shards: 4, ..LaneOptions::default() };
    let mut sum = LaneReport::default();
    for seed in 0..40 {
        let report = run_lane(seed, options).unwrap_or_else(|failure| panic!("{failure}"));
        sum.certified += report.certified;
        sum.settled += report.settled;
        sum.verdicts += report.verdicts;
        sum.came_home += report.came_home;
        sum.restarts += report.restarts;
    }
    let common = [sum.certified, sum.settled, sum.verdicts, sum.came_home];
    assert!(common.iter().all(|count| *count > 50) && sum.restarts > 3, "{sum:?}");
    assert_eq!(run_lane(3, options), run_lane(3, options));
}

#[test]
fn a_seed_decides_everything() {
    let options = LaneOptions::default();
    assert_eq!(run_lane(3, options), run_lane(3, options));
    assert_ne!(run_lane(3, options).expect("holds").trace, run_lane(4, options).expect("holds").trace);
}
