//! The payment lane under faults: invariants hold for the seeds, the same seed gives the same run, and every seeded
//! mistake is detected.

use sim::{LaneBug, LaneOptions, LaneReport, run_lane};

#[test]
fn seeds_hold_over_two_boundaries() {
    let mut sum = LaneReport::default();
    for seed in 0..40 {
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
    }
    let rare = [sum.certified, sum.settled, sum.credits, sum.verdicts, sum.crashes, sum.came_home];
    assert!(rare.iter().all(|count| *count > 50), "{sum:?}");
    // Some of these runs make group keys, and some more have BLS keys.
    assert!(sum.group_keys > 0 && sum.aggregates > 20 && sum.thresholds > 20, "{sum:?}");
    // In about half of the runs contradictions are posted, and in few of those the Byzantine validator never
    // contradicts itself.
    assert!((6..=24).contains(&sum.convicted), "{sum:?}");
}

/// A payment of three inputs can be certified and is not settled. One input lapses, which makes the payment void, and
/// so the others are freed.
#[test]
fn inputs_of_a_void_payment_are_freed() {
    run_lane(231, LaneOptions::default()).unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn a_seed_decides_everything() {
    let options = LaneOptions::default();
    assert_eq!(run_lane(3, options), run_lane(3, options));
    assert_ne!(run_lane(3, options).expect("holds").trace, run_lane(4, options).expect("holds").trace);
}

#[test]
fn every_seeded_mistake_is_caught() {
    for bug in LaneBug::ALL {
        let options = LaneOptions { bug: Some(bug), ..LaneOptions::default() };
        let caught = (0..60).find_map(|seed| run_lane(seed, options).err());
        let failure = caught.unwrap_or_else(|| panic!("{bug:?} is not detected"));
        println!("{bug:?}: {failure}");
        let expected: &[&str] = match bug {
            LaneBug::OthersAnswer => &["is liable for no faulty member"],
            LaneBug::NeedlessComplaints => &["is correct, but the generation"],
            LaneBug::ForeignSigner => &["a certificate of payment"],
            LaneBug::ForgottenVerdict => &["which is confirmed", "does not return to the ledger"],
            // Whichever comes first: two certificates, or a block with both signatures.
            LaneBug::NewLogOnRestart | LaneBug::AnswerBeforeSync => {
                &["certified twice", "is correct, but was convicted"]
            }
        };
        let by = expected.iter().any(|what| failure.what.contains(what));
        assert!(by, "{bug:?} was detected by another check: {failure}");
    }
}
