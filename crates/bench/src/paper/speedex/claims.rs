//! What SPEEDEX says of its figures, as claims that rows can break, and the reason where one is not met. What the paper
//! does not say begins with *ours*.

use super::super::circumstances::ClaimNeeds::{Full, FullAndQuiet, Quiet};
use super::super::claim::{ClaimShape, ShapeClaim};

const fn claim(says: &'static str, shape: ClaimShape) -> ShapeClaim {
    ShapeClaim::of(says, shape)
}

const fn within(says: &'static str, column: &'static str, least: f64, most: f64) -> ShapeClaim {
    claim(says, ClaimShape::Within { column, least, most })
}

/// The last row of each group has so much of the first.
const fn keeps(says: &'static str, column: &'static str, least: f64, most: f64) -> ShapeClaim {
    claim(says, ClaimShape::LastOverFirst { column, least, most })
}

/// Each number of threads, which double, gains at least this over the one before.
const fn doubling(says: &'static str, least: f64) -> ShapeClaim {
    claim(says, ClaimShape::Steps { column: "tx/s", least, most: f64::INFINITY }).needs(Quiet)
}

/// The rate of so many threads over that of fewer, in a run that has both.
const fn threads(says: &'static str, over: &'static str, under: &'static str, least: f64) -> ShapeClaim {
    let shape = ClaimShape::At { column: "tx/s", x: "threads", over, under, least, most: f64::INFINITY };
    claim(says, shape).needs(FullAndQuiet)
}

pub(super) const FIGURE_2: &[ShapeClaim] = &[
    claim(
        "appendix C.2: prices are harder to find as μ falls: it takes more offers, at ε = 2^-12",
        ClaimShape::Rises { column: "Tâtonnement", slack: 0.0 },
    )
    .only(&[("ε", "2^-12")]),
    claim("§6.1: the same at ε = 2^-16", ClaimShape::Rises { column: "Tâtonnement", slack: 0.0 })
        .only(&[("ε", "2^-16")]),
    within("§6.1, figure 2: a few hundred offers at μ = 2^-10, ε = 2^-16: 100 to 1,600", "Tâtonnement", 100.0, 1_600.0)
        .only(&[("ε", "2^-16"), ("-log2 μ", "10")]),
    claim(
        "ours: Newton needs no more offers than Tâtonnement, in every cell",
        ClaimShape::RatioAtLeast { over: "Tâtonnement", under: "Newton", least: 1.0 },
    ),
];

pub(super) const FIGURE_3: &[ShapeClaim] = &[
    keeps("§7: from no offers to a full book throughput falls by only about 10 %", "tx/s", 0.9, 1.2)
        .by(&["threads"])
        .needs(Quiet),
    doubling("§7: the speedup is near-linear: a doubling of threads gains at least 1.4 times", 1.4).by(&["step"]),
    threads("§7: from 6 to 12 threads about 1.9 times", "12", "6", 1.7).by(&["step"]),
    threads("§7: from 12 to 24 threads about 1.8 times", "24", "12", 1.6).by(&["step"]),
    threads("§7: from 24 to 48 threads about 1.4 times", "48", "24", 1.25).by(&["step"]),
    within("abstract: over 200,000 transactions a second with 48 threads", "tx/s", 200_000.0, f64::INFINITY)
        .only(&[("threads", "48")])
        .needs(FullAndQuiet),
];

pub(super) const FIGURE_4: &[ShapeClaim] =
    &[doubling("§7: proposal scales with the number of threads", 1.1).by(&["step"])];

pub(super) const FIGURE_5: &[ShapeClaim] = &[
    doubling("§7: validation scales with the number of threads", 1.1).by(&["step", "mode"]),
    within("§7: validation scales better than proposal", "scales over proposing", 1.0, f64::INFINITY)
        .needs(FullAndQuiet),
    claim(
        "§7: to validate and execute a proposal is substantially faster than to propose: by a tenth",
        ClaimShape::RatioAtLeast { over: "tx/s", under: "proposed tx/s", least: 1.1 },
    )
    .needs(Quiet),
    claim(
        "ours: to check a proposal with its prices is faster than to find them",
        ClaimShape::RatioAtLeast { over: "tx/s", under: "proposed tx/s", least: 1.0 },
    )
    .needs(Quiet),
];

pub(super) const FIGURE_6: &[ShapeClaim] = &[
    claim(
        "§7, figure 6: larger blocks are faster, at each number of offers",
        ClaimShape::Rises { column: "p50 tx/s", slack: 0.1 },
    )
    .by(&["step"])
    .needs(Quiet),
    keeps("§7, figure 6: open offers cost about 10 %, at each size of a block", "p50 tx/s", 0.85, 1.2)
        .by(&["transactions"])
        .needs(FullAndQuiet),
];

pub(super) const FIGURE_7: &[ShapeClaim] = &[
    doubling("§7.1: near-linear on large batches: a doubling of threads gains at least 1.4 times", 1.4)
        .only(&[("transactions", "100,000")])
        .by(&["accounts"]),
    keeps(
        "§7.1: on large batches the rate is largely independent of the number of accounts, though with two of them \
         every payment contends: within a half",
        "tx/s",
        0.5,
        2.0,
    )
    .only(&[("transactions", "100,000")])
    .by(&["threads"])
    .needs(Quiet),
    keeps("§7.1: on small batches a large number of accounts slows payments down", "tx/s", 0.0, 0.95)
        .only(&[("transactions", "1,000")])
        .by(&["threads"])
        .needs(Quiet),
];

pub(super) const FIGURE_8: &[ShapeClaim] = &[
    claim(
        "appendix F.1: 1,000 offers take roughly ten times as long as 100: 5 to 20",
        ClaimShape::At { column: "convex ms", x: "offers", over: "1,000", under: "100", least: 5.0, most: 20.0 },
    )
    .only(&[("solver", "convex program")])
    .by(&["assets"]),
    claim(
        "appendix F.1: its time grows with the offers, at each number of assets",
        ClaimShape::Rises { column: "convex ms", slack: 0.2 },
    )
    .by(&["assets", "solver"]),
    claim(
        "ours: from 200 offers on ours is faster than the convex program",
        ClaimShape::RatioAtLeast { over: "convex ms", under: "ours at 200 ms", least: 1.0 },
    ),
];

pub(super) const FIGURE_9: &[ShapeClaim] = &[
    keeps("appendix J: contention costs: two threads gain at least 1.2 times from many accounts", "tx/s", 1.2, 4.0)
        .only(&[("threads", "2")])
        .needs(Quiet),
    claim(
        "appendix J: beyond 16 to 24 threads more hardware is not used",
        ClaimShape::At { column: "tx/s", x: "threads", over: "48", under: "24", least: 0.0, most: 1.2 },
    )
    .by(&["accounts"])
    .needs(FullAndQuiet),
];

pub(super) const FIGURE_10: &[ShapeClaim] = &[
    keeps("appendix L: the trend of figure 3: with open offers 0.9 of the rate, at this load", "tx/s", 0.9, 1.2)
        .by(&["validators"]),
    within("ours: everything offered is committed", "committed, %", 100.0, 100.0),
];

pub(super) const DAYS: &[ShapeClaim] = &[
    within("§6.2: 350 of 500 days are solved quickly: here at least 70 % are full", "full, %", 70.0, 100.0)
        .by(&["solver"]),
    within("§6.2: unrealized over realized utility is 0.71 % on average, or less", "unrealized mean, %", 0.0, 0.71)
        .by(&["solver"]),
    within("§6.2: and at most 4.7 %", "unrealized worst, %", 0.0, 4.7).by(&["solver"]),
];

pub(super) const ORDER_BOOK: &[ShapeClaim] = &[
    within("§7.1: 1.7 million a second with 100 accounts", "tx/s", 1.7e6, f64::INFINITY)
        .only(&[("accounts", "100")])
        .needs(Quiet),
    claim(
        "§7.1: every lookup becomes slower as the number of accounts grows",
        ClaimShape::Falls { column: "tx/s", slack: 0.0 },
    ),
    claim(
        "§7.1: 10 million accounts are 8 times slower than 100: 4 to 16 times",
        ClaimShape::At { column: "tx/s", x: "accounts", over: "10,000,000", under: "100", least: 0.0625, most: 0.25 },
    )
    .needs(Full),
];

pub(super) const PAYMENTS: &[ShapeClaim] = &[
    doubling("§7.1: payments in 50 assets: a doubling of threads gains at least 1.2 times", 1.2).by(&["transactions"]),
    threads("§7.1: 6 threads are 5.6 times one, within a fifth", "6", "1", 4.5).by(&["transactions"]),
    threads("§7.1: 24 threads are 20.0 times one, within a fifth", "24", "1", 16.0).by(&["transactions"]),
    threads("§7.1: 48 threads are 34.8 times one, within a fifth", "48", "1", 27.8).by(&["transactions"]),
];

pub(super) const EVM: &[ShapeClaim] = &[within(
    "§7.1: the EVM makes about 3,000 swaps a second; ours at least so many",
    "swaps/s",
    3_000.0,
    f64::INFINITY,
)];

pub(super) const FILTER: &[ShapeClaim] = &[
    within(
        "appendix I: in either setting the overhead is small: each row at least the paper's 183,000 a second of one thread",
        "tx/s",
        183_000.0,
        f64::INFINITY,
    ),
    doubling("appendix I: one parallel pass: a doubling of threads gains at least 1.2 times", 1.2)
        .only(&[("block", "ordinary")]),
    threads("appendix I: 24 threads are 21.0 times one, within a fifth", "24", "1", 16.8)
        .only(&[("block", "ordinary")]),
    threads("appendix I: 48 threads are 38.4 times one, within a fifth", "48", "1", 30.7)
        .only(&[("block", "ordinary")]),
];

pub(super) const LAST_LOOK: &[ShapeClaim] = &[
    within(
        "§8: who sees what is pending may estimate prices and gain: of plain orders",
        "its gain",
        1.0,
        f64::INFINITY,
    )
    .only(&[("orders", "plain")]),
    within("ours: of sealed orders it loses", "its gain", -1e12, 0.0).only(&[("orders", "sealed")]),
    within("ours: a direction that cannot be read is a coin: 40 to 60 %", "same way, %", 40.0, 60.0)
        .only(&[("orders", "sealed")]),
];
