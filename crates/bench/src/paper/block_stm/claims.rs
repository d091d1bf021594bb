//! What the article of Block-STM's authors says of its figures, as claims that rows can break.
//! What the article does not say begins with *ours*.

use super::super::circumstances::ClaimNeeds::{FullAndQuiet, Quiet};
use super::super::claim::{ClaimShape, ShapeClaim};

/// Each number of these rows is at least this.
const fn least(
    says: &'static str,
    column: &'static str,
    only: &'static [(&'static str, &'static str)],
    least: f64,
) -> ShapeClaim {
    ShapeClaim::of(says, ClaimShape::Within { column, least, most: f64::INFINITY }).only(only)
}

/// More threads gain at least this, from the first to the last.
const fn gains(says: &'static str, column: &'static str, least: f64) -> ShapeClaim {
    ShapeClaim::of(says, ClaimShape::LastOverFirst { column, least, most: f64::INFINITY }).needs(Quiet)
}

pub(super) const FIGURE_1: &[ShapeClaim] = &[
    gains("evaluation: under low contention more threads are faster: 1.3 times from the first to the last", "tx/s", 1.3)
        .only(&[("contention", "low")])
        .by(&["accounts"]),
    least(
        "evaluation: an inherently sequential block (two accounts) has a small overhead: at least 0.8 of the loop's speed",
        "times the loop",
        &[("accounts", "2")],
        0.8,
    )
    .by(&["threads"])
    .needs(Quiet),
    least(
        "evaluation: under low contention 16 times the sequential loop with 32 threads",
        "times the loop",
        &[("accounts", "10,000"), ("threads", "32")],
        16.0,
    )
    .needs(FullAndQuiet),
    least(
        "evaluation: under high contention over 8 times with 32 threads",
        "times the loop",
        &[("accounts", "100"), ("threads", "32")],
        8.0,
    )
    .needs(FullAndQuiet),
    least(
        "title: over 160,000 transactions a second with 32 threads",
        "tx/s",
        &[("accounts", "10,000"), ("threads", "32")],
        160_000.0,
    )
    .needs(FullAndQuiet),
];

pub(super) const CONTRACTS: &[ShapeClaim] = &[
    gains(
        "evaluation: the parallelism of a load is extracted without hints: swaps in many pools gain from more threads",
        "times the loop",
        1.1,
    )
    .only(&[("load", "swaps")])
    .by(&["load"]),
    least(
        "evaluation: what is inherently sequential has a small overhead: at most a quarter of the loop",
        "times the loop",
        &[("in parallel, %", "0")],
        0.75,
    )
    .by(&["load"])
    .needs(Quiet),
];
