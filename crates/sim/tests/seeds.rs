//! The invariants hold for some seeds, and the same seed gives the same run.

use sim::{ControlCounts, ListingCounts, PolicyCounts, ProposalCounts, SessionCounts, SimOptions, crash_points, run};

#[test]
fn seeds_hold() {
    let (mut crashes, mut beyond_caps, mut sessions) = (0, 0, SessionCounts::default());
    let (mut policies, mut listings) = (PolicyCounts::default(), ListingCounts::default());
    let mut proposals = ProposalCounts::default();
    let mut controls = ControlCounts::default();
    let options = SimOptions { blocks: 45, ..SimOptions::default() };
    for seed in 0..64 {
        let report = run(seed, options).unwrap_or_else(|failure| panic!("{failure}"));
        assert!(report.acknowledged > 0 && report.blocks >= options.blocks);
        crashes += report.crashes + report.crashes_in_recovery;
        beyond_caps += report.beyond_caps;
        sessions += report.sessions;
        policies += report.policies;
        listings += report.listings;
        proposals += report.proposals;
        controls += report.controls;
    }
    assert!(crashes > 100, "only {crashes} crashes");
    let SessionCounts { authorized, raised, stopped, revoked, orders, replaced, fills, lapsed } = sessions;
    let each = [authorized, raised, stopped, revoked, orders, replaced, fills, lapsed, beyond_caps];
    assert!(
        each.iter().all(|count| *count >= 10),
        "session keys do too little: {sessions:?}, {beyond_caps} beyond caps"
    );
    let PolicyCounts { set, waited, recovered, completed, requests, referenced } = policies;
    let each = [set, waited, recovered, completed, requests, referenced];
    assert!(each.iter().all(|count| *count >= 20), "accounts of institutions do too little: {policies:?}");
    let ListingCounts { listed, together, announced, revoked, returned, fills, pooled } = listings;
    let each = [listed, together, announced, revoked, returned, fills];
    assert!(
        pooled > 0 && each.iter().all(|count| *count >= 10),
        "assets are listed and close too little: {listings:?}"
    );
    let ProposalCounts { proposed, replaced, words, passed, over, changed, listed, closed } = proposals;
    let each = [proposed, replaced, words, passed];
    let rare = [over, changed];
    let is_enough = each.iter().all(|count| *count >= 10) && rare.iter().all(|count| *count >= 5);
    assert!(is_enough && listed > 0 && closed > 0, "validators vote too little: {proposals:?}");
    let ControlCounts { frozen, opened, ended, expelled, transfers } = controls;
    let each = [frozen, opened, transfers];
    assert!(
        ended > 0 && expelled > 0 && each.iter().all(|count| *count >= 10),
        "issuers control too little: {controls:?}"
    );
}

#[test]
fn a_seed_decides_everything() {
    let (one, again) = (run(7, SimOptions::default()), run(7, SimOptions::default()));
    assert_eq!(one, again);
    assert_ne!(one.expect("holds").trace, run(8, SimOptions::default()).expect("holds").trace);
}

/// The full script has 500 blocks: `walras-lab sim --crash-points 500`.
#[test]
fn a_crash_at_every_point_of_a_script_is_recovered_from() {
    let report = crash_points(1, 40, |_| {}).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(report.points > 150 && report.crashes > 1_000 && report.to_the_end > 20, "{report:?}");
}
