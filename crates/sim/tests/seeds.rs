//! The invariants hold for some seeds, and the same seed gives the same run.

use sim::{SimOptions, crash_points, run};

#[test]
fn seeds_hold() {
    let mut crashes = 0;
    for seed in 0..50 {
        let report = run(seed, SimOptions::default()).unwrap_or_else(|failure| panic!("{failure}"));
        assert!(report.acknowledged > 0 && report.blocks >= SimOptions::default().blocks);
        crashes += report.crashes + report.crashes_in_recovery;
    }
    assert!(crashes > 100, "only {crashes} crashes");
}

#[test]
fn a_seed_decides_everything() {
    let (one, again) = (run(7, SimOptions::default()), run(7, SimOptions::default()));
    assert_eq!(one, again);
    assert_ne!(one.expect("holds").trace, run(8, SimOptions::default()).expect("holds").trace);
}

/// The full script has 500 blocks: `walras sim --crash-points 500`.
#[test]
fn a_crash_at_every_point_of_a_script_is_recovered_from() {
    let report = crash_points(1, 40, |_| {}).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(report.points > 150 && report.crashes > 1_000 && report.to_the_end > 20, "{report:?}");
}
