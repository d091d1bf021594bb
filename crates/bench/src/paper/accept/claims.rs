//! What Accept says of its figures, as claims that rows can break, and the reason where one is not met. What the paper
//! does not say begins with *ours*.

use super::super::circumstances::ClaimNeeds::{FullAndQuiet, Quiet};
use super::super::claim::{ClaimShape, ShapeClaim};

/// The number in one row over that in another is between these.
const fn at(
    says: &'static str,
    column: &'static str,
    (x, over, under): (&'static str, &'static str, &'static str),
    least: f64,
    most: f64,
) -> ShapeClaim {
    ShapeClaim::of(says, ClaimShape::At { column, x, over, under, least, most })
}

/// What is measured of a payment with the most shards, over the same with one.
const fn constant(says: &'static str, column: &'static str) -> ShapeClaim {
    ShapeClaim::of(says, ClaimShape::LastOverFirst { column, least: 0.0, most: 1.1 }).by(&["validators", "how"])
}

const PROCESSOR: ShapeClaim = constant(
    "abstract: perfect horizontal scaling: a payment takes a validator the same processor time with the most shards as \
     with one, within a tenth",
    "validator µs",
)
.needs(Quiet);

const BYTES: ShapeClaim = constant(
    "abstract: perfect horizontal scaling: a payment takes the same bytes with the most shards as with one, within a tenth",
    "bytes",
);

/// How many payments shards confirm that have a machine each, over one such shard.
const fn shards(says: &'static str, shards: &'static str, least: f64) -> ShapeClaim {
    at(says, "payments/s", ("shards", shards, "1"), least, f64::INFINITY)
        .only(&[("how", "alone")])
        .by(&["validators"])
        .needs(Quiet)
}

const TWO: ShapeClaim = shards("§5, table 2: two shards confirm 1.89 times as many payments as one", "2", 1.8);
const FOUR: ShapeClaim = shards("§5, table 2: four shards confirm 3.77 times as many", "4", 3.6);

pub(super) const FIGURE_1: &[ShapeClaim] = &[
    PROCESSOR,
    BYTES,
    TWO,
    FOUR,
    shards("§5, figure 1: 37 shards confirm 29.8 times as many; here 64 at least 51 times", "64", 51.0)
        .needs(FullAndQuiet),
];

pub(super) const TABLE_1: &[ShapeClaim] = &[
    ShapeClaim::of(
        "§4.1: trees are about a magnitude faster: to sign",
        ClaimShape::RatioAtLeast { over: "ns", under: "merkle ns", least: 8.0 },
    )
    .only(&[("operation", "sign"), ("scheme", "naive")]),
    ShapeClaim::of(
        "§4.1: and to verify with a known root",
        ClaimShape::RatioAtLeast { over: "ns", under: "merkle ns", least: 8.0 },
    )
    .only(&[("operation", "verify"), ("scheme", "naive")]),
    at(
        "§4.1: a batch of 64 is verified about twice as fast: 1.3 to 4 times",
        "ns",
        ("operation", "verify", "verify, batch of 64"),
        1.3,
        4.0,
    )
    .only(&[("scheme", "naive")]),
    at("§3.4: BLS signatures are relatively costly to produce", "ns", ("scheme", "bls", "naive"), 3.0, f64::INFINITY)
        .only(&[("operation", "sign")]),
    at("§3.4: and to verify", "ns", ("scheme", "bls", "naive"), 5.0, f64::INFINITY).only(&[("operation", "verify")]),
];

pub(super) const TABLE_2: &[ShapeClaim] = &[
    PROCESSOR,
    BYTES,
    TWO,
    FOUR,
    ShapeClaim::of(
        "§5, table 2: more validators confirm fewer payments: each costs more processor time",
        ClaimShape::Rises { column: "validator µs", slack: 0.1 },
    )
    .only(&[("shards", "1")])
    .by(&["how"]),
];

pub(super) const TABLE_2_UNMET: &[(&str, &str)] = &[(
    PROCESSOR.says,
    "28 validators of four shards together are 112 shards with their threads on these cores: 1.13; each alone costs what \
     one does",
)];

pub(super) const TREES: &[ShapeClaim] = &[
    ShapeClaim::of(
        "§3.3: with small trees signatures dominate: a tree of 64 costs a third or less of none",
        ClaimShape::LastOverFirst { column: "µs", least: 0.0, most: 0.34 },
    )
    .only(&[("up to 64", "true")])
    .by(&["how"]),
    at(SMALLEST, "µs", ("leaves", "256", "64"), 1.0, f64::INFINITY).by(&["how"]),
    ShapeClaim::of(
        "ours: beyond 64 leaves little is gained or lost: within half of it",
        ClaimShape::LastOverFirst { column: "µs", least: 0.5, most: 1.5 },
    )
    .only(&[("from 64", "true")])
    .by(&["how"]),
];
const SMALLEST: &str = "§4: the minimum is at 64 to 128 leaves: 256 cost more";
pub(super) const TREES_UNMET: &[(&str, &str)] = &[(
    SMALLEST,
    "a hash costs less of a signature here than the paper's 1 of 107, so larger trees still gain a little",
)];

pub(super) const BLS: &[ShapeClaim] = &[
    ShapeClaim::of(
        "§4.1: BLS is faster than the naive scheme from more than 37 validators; here from between 4 and 100",
        ClaimShape::Crosses { x: "validators", falling: "bls ns", rising: "naive ns", least: 4.0, most: 100.0 },
    )
    .only(&[("scheme", "bls")]),
    ShapeClaim::of(
        "§4.1: and than trees from more than 475; here from between 100 and 4,000",
        ClaimShape::Crosses { x: "validators", falling: "bls ns", rising: "merkle ns", least: 100.0, most: 4_000.0 },
    )
    .only(&[("scheme", "bls")]),
];

pub(super) const SPENT: &[ShapeClaim] = &[
    ShapeClaim::of(
        "§4.2: the built-in map suffers from locks: sets of two threads take at least twice the inserts of one map",
        ClaimShape::RatioAtLeast { over: "sets, inserts/s", under: "one map, inserts/s", least: 2.0 },
    )
    .only(&[("threads", "2")])
    .needs(Quiet),
    ShapeClaim::of(
        "§4.2: with 32 threads 47 times, here at least 20",
        ClaimShape::RatioAtLeast { over: "sets, inserts/s", under: "one map, inserts/s", least: 20.0 },
    )
    .only(&[("threads", "32")])
    .needs(FullAndQuiet),
];
