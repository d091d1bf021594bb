//! The invariants hold for some seeds, the same seed gives the same run, and every seeded bug is detected.

use sim::{Bug, SimOptions, crash_points, run};

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

#[test]
fn every_seeded_bug_is_caught() {
    let is_of_life = |bug: &Bug| LIFE.iter().any(|(of_life, ..)| of_life == bug);
    for bug in Bug::ALL.into_iter().filter(|bug| !is_of_life(bug)) {
        let caught = (0..100).find_map(|seed| run(seed, SimOptions { bug: Some(bug), ..SimOptions::default() }).err());
        let failure = caught.unwrap_or_else(|| panic!("{bug:?} is not detected"));
        println!("{bug:?}: {failure}");
        assert!(
            expected(bug).iter().any(|part| failure.what.contains(part)),
            "{bug:?} was detected by another check: {failure}"
        );
    }
}

/// A seed that finds each mistake in the life of a block, and what the mistake costs.
const LIFE: [(Bug, u64, &str); 6] = [
    (Bug::AnswersBeforeSync, 1, "acknowledged and are lost"),
    (Bug::RootBeforeBlock, 0, "the root after block"),
    (Bug::RootNotAwaited, 0, "contains another state root than its parent has"),
    (Bug::PublishesOutOfOrder, 45, "the store refused: receipts"),
    (Bug::CheckpointWithoutReceipts, 1, "the receipts end at height"),
    (Bug::ForgetsBeforeCheckpoint, 0, "cannot be recovered"),
];

#[test]
fn each_mistake_in_the_life_of_a_block_is_found_by_its_seed() {
    for (bug, seed, cost) in LIFE {
        let failure = run(seed, SimOptions { bug: Some(bug), ..SimOptions::default() }).expect_err("a mistake");
        assert!(failure.what.contains(cost), "{bug:?}: {failure}");
        run(seed, SimOptions::default()).unwrap_or_else(|failure| panic!("without {bug:?}: {failure}"));
    }
}

/// The message of the check that must detect a bug.
fn expected(bug: Bug) -> &'static [&'static str] {
    match bug {
        Bug::DiskErrorIgnored => &["acknowledged and are lost", "was shown and is lost"],
        // The store itself refuses a checkpoint of a state that is not durable.
        Bug::SyncSkipped => &["acknowledged and are lost", "was shown and is lost", "durable: only"],
        Bug::ReceiptsSkipped => &["receipts"],
        Bug::ReceiptsChanged => &["the receipts of block", "were given wrong"],
        Bug::CheckpointOfLaterState => &["cannot be recovered", "the state after block"],
        Bug::CheckpointInPlace => &["cannot be recovered"],
        Bug::RootsSkipped => &["another state root", "the tries after block"],
        Bug::SignaturesUnchecked => &["was answered Waits"],
        Bug::SequenceNotMarked => &["used but still free"],
        Bug::RefundTwice => &["bookkeeping"],
        Bug::FeeNotBurnt => &["units were kept"],
        Bug::RoundedUp => &["clearing"],
        Bug::TradeOverstated => &["clearing"],
        Bug::AnswersBeforeSync
        | Bug::RootBeforeBlock
        | Bug::RootNotAwaited
        | Bug::PublishesOutOfOrder
        | Bug::CheckpointWithoutReceipts
        | Bug::ForgetsBeforeCheckpoint => unreachable!("found by its seed"),
        Bug::RewardTwice => &["bookkeeping"],
        // The next clearing meets an offer that no block placed.
        Bug::OfferOfARevertedCall => &["bookkeeping", "clearing"],
    }
}

/// The full script has 500 blocks: `walras sim --crash-points 500`.
#[test]
fn a_crash_at_every_point_of_a_script_is_recovered_from() {
    let report = crash_points(1, 40, |_| {}).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(report.points > 150 && report.crashes > 1_000 && report.to_the_end > 20, "{report:?}");
}
