//! What Smart Red Belly says of its figures, as claims that rows can break, and the reason where one is not met.
//! What the paper does not say begins with *ours*.

use super::super::circumstances::ClaimNeeds::{Full, FullAndQuiet, Quiet};
use super::super::claim::{ClaimShape, ShapeClaim};

/// All measures are at least so many times as fast as without this one.
const fn gain(says: &'static str, only: &'static [(&'static str, &'static str)], least: f64) -> ShapeClaim {
    within(says, "all over this", least, f64::INFINITY).only(only).needs(Quiet)
}

const fn within(says: &'static str, column: &'static str, least: f64, most: f64) -> ShapeClaim {
    ShapeClaim::of(says, ClaimShape::Within { column, least, most })
}

/// One variant's number is at least so many times another's.
const fn variant(says: &'static str, column: &'static str, [over, under]: [&'static str; 2], least: f64) -> ShapeClaim {
    ShapeClaim::of(says, ClaimShape::At { column, x: "measures", over, under, least, most: f64::INFINITY }).needs(Quiet)
}

pub(super) const FIGURE_3: &[ShapeClaim] = &[
    gain("§4.1: the cache of bodies yields 28 % and more", &[("measures", "no body cache")], 1.28),
    gain("§4.1: the cache of receipts yields 35 % and more", &[("measures", "no receipt cache")], 1.35),
];

pub(super) const FIGURE_3_HASH: &[ShapeClaim] =
    &[within("§3.4: BLAKE3 is the faster hash, on every message of a node", "over BLAKE3", 1.0, f64::INFINITY)
        .only(&[("hash", "Keccak")])];

pub(super) const FIGURE_4: &[ShapeClaim] = &[
    gain(SUB_BLOCKS, &[("measures", "superblock at once")], 1.397),
    gain("ours: sub-block by sub-block is not slower", &[("measures", "superblock at once")], 0.9),
];
const SUB_BLOCKS: &str = "§4.2: sub-block by sub-block is 39.7 % faster";
pub(super) const FIGURE_4_UNMET: &[(&str, &str)] = &[(
    SUB_BLOCKS,
    "what the paper gains is the congestion of writing a superblock into LevelDB, and here it is appended to a log once either way",
)];

pub(super) const FIGURE_4_WRITES: &[ShapeClaim] = &[
    ShapeClaim::of(
        CONGESTION,
        ClaimShape::At { column: "tx/s", x: "parts", over: "10", under: "1", least: 1.0, most: f64::INFINITY },
    ),
    within("ours: a superblock at once is not slower: one append and one sync", "over at once", 0.0, 1.1),
];
const CONGESTION: &str =
    "§4.2: to persist a large superblock at once leads to high I/O congestion: ten parts are faster";
pub(super) const FIGURE_4_WRITES_UNMET: &[(&str, &str)] =
    &[(CONGESTION, "each part has a sync of its own, and the log has no tables that a large write could congest")];

pub(super) const FIGURE_5: &[ShapeClaim] = &[
    gain("§4.4: all measures improve average throughput 3.2 times", &[("measures", "none")], 3.2),
    variant("§4.4: they halve the latency, here the median", "p50 ms", ["none", "all"], 2.0),
    variant("§4.4: they reduce the worst latency 4.6 times, here the 99th percentile", "p99 ms", ["none", "all"], 4.6),
    variant("§4.4: their peak throughput is higher", "peak tx/s over 3 s", ["all", "none"], 1.0),
];

pub(super) const FIGURE_6: &[ShapeClaim] = &[
    within("§4.5: everything offered is committed, at each rate", "committed, %", 100.0, 100.0),
    within("§4.5: at the lowest rate all is committed within 10 s, here at each", "p99 ms", 0.0, 10_000.0),
    ShapeClaim::of(
        "§4.5: throughput grows with the sending rate, but for a slight dip at the highest",
        ClaimShape::Rises { column: "tx/s", slack: 0.15 },
    ),
    // At rates that are far from what it can take, the delays of the links decide.
    ShapeClaim::of("§4.5: latency increases with the sending rate", ClaimShape::Rises { column: "p50 ms", slack: 0.1 })
        .needs(Full),
];

pub(super) const FIGURE_7: &[ShapeClaim] = &[
    within("§4.6: no request is lost", "committed, %", 100.0, 100.0),
    within("§4.6, figure 7: 5.35 s on average, or less", "average s", 0.0, 5.35).needs(FullAndQuiet),
];

pub(super) const TABLE_1: &[ShapeClaim] = &[gain(
    "§4.3, table 1: validation by one gains 21 % and more in a network of four",
    &[("measures", "all validate")],
    1.21,
)];
