//! Clocks that are wrong are found by probes over sockets.

use crate::support::{Edge, GATEWAY, patient};
#[allow(dead_code)]
use edge::RootStatus;
use fairnet::*;

const MS: i64 = 1_000_000;

#[test]
fn probes_find_how_far_clocks_are_apart_and_are_right_within_their_bounds() {
    // Some clocks are wrong; the orders of nobody are refused for it.
    let ahead = [(1, 7 * MS), (GATEWAY, 30 * MS), (GATEWAY + 1, -20 * MS)];
    let probes = ProbeRules { period: 5_000_000, ..EdgeRules::shared_machine().probes };
    let rules = EdgeRules { ahead: 1_000_000_000, probes, ..patient() };
    let edge = Edge::with_clocks((2, 4), rules, &ahead);
    let truth = |member: MemberId| ahead.iter().find(|(own, _)| *own == member).map_or(0, |(_, ahead)| *ahead);
    // Until all clocks are known, and better than the largest difference between them.
    let estimates = loop {
        let RootStatus { at, clocks, .. } = edge.root();
        let found = clocks.estimates(at);
        if found.len() == 7 && found.values().all(|clock| clock.bound < 3.0 * MS as f64) {
            break found;
        }
        std::thread::yield_now();
    };
    for (member, clock) in estimates {
        let error = (clock.offset - truth(member) as f64).abs();
        assert!(error <= clock.bound, "{member}: {clock:?}, in truth {} ns", truth(member));
        assert!(clock.pure > 0.0 && clock.pure <= 1.0, "{member}: {clock:?}");
    }
}
