//! Known clearings: the bytes of a clearing depend on nothing but the book, on any machine and in any build.

#[path = "../../bench/src/workload.rs"]
#[allow(dead_code)]
mod workload;

use clearing::{Clearing, Params, Solver, clear};
use primitives::Fraction;

/// FNV-1a of every number of a clearing.
fn digest(clearing: &Clearing) -> u64 {
    let valuations = clearing.valuations.iter().map(|value| value.to_bits());
    let trades = clearing.trades.iter().flat_map(|t| [u64::from(t.sell.0), u64::from(t.buy.0), t.sold]);
    let report = [
        u64::from(clearing.full),
        u64::from(clearing.report.iterations),
        u64::from(clearing.report.demand_queries),
        clearing.report.imbalance.to_bits(),
        clearing.report.unrealized_utility_ratio.to_bits(),
    ];
    let numbers = valuations.chain(trades).chain(report);
    numbers
        .flat_map(u64::to_be_bytes)
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[test]
fn clearings_are_as_they_were() {
    let mut got = String::from("# solver assets offers epsilon: FNV-1a of the clearing\n");
    for (assets, offers) in [(2, 20), (10, 100), (20, 2_000), (50, 5_000), (50, 60_000)] {
        for epsilon in [Fraction::ZERO, Fraction::power_of_two(15)] {
            for solver in [Solver::Newton, Solver::Tatonnement] {
                let sorted = workload::cycle_book(assets, offers, 1);
                let params = Params { solver, epsilon, ..Params::default() };
                let clearing = clear(&sorted.book(), &params, None).expect("a proper book");
                let digest = digest(&clearing);
                got += &format!("{} {assets} {offers} {epsilon}: {digest:016x}\n", solver.name());
            }
        }
    }
    let known = include_str!("golden/clearings.txt");
    assert!(got == known, "clearings changed; if that is meant, tests/golden/clearings.txt is now:\n{got}");
}
