//! Onyx (Haseeb et al., SIGCOMM 2025): every table and figure, those without numbers of their own included.
//!
//! The simulator is calibrated on two cells of the paper, the median and the 99th percentile of table 2 without
//! receiver hedging (139 and 248 µs, taken as H = 0), which therefore are no results here. What it says rests on the
//! validations (a) to (f): (a) to (c) run before every figure of the tree, the others when they are asked for.

mod claims;

use super::chart::Chart;
use super::claim::{ClaimShape, ShapeClaim};
use super::exhibit::ExhibitKind::{self, Computed, Measured, MonteCarlo, Quoted, Simulated};
use super::exhibit::{Exhibit, ExhibitRun, Paper, PaperOptions};
use crate::onyx::{lateness, models, orders, rates, sockets, speeds, trees, validations};

/// What figures of the tree rest on.
const TREE: &[&str] = &["validation-a", "validation-b", "validation-c"];

const CHECKS: &[ShapeClaim] = &[ShapeClaim::of("every check of the validation holds", ClaimShape::True("holds"))];

const fn onyx(
    id: &'static str,
    section: &'static str,
    title: &'static str,
    kind: ExhibitKind,
    draw: fn(&PaperOptions) -> Chart,
) -> Exhibit {
    let seconds = match kind {
        Simulated => (20, 200),
        Measured => (6, 40),
        MonteCarlo => (2, 15),
        Computed | Quoted => (1, 1),
    };
    let (paper, run) = (Paper::Onyx, ExhibitRun::Drawn(draw));
    Exhibit {
        paper,
        id,
        section,
        title,
        kind,
        seconds,
        plot: None,
        says: &[],
        claims: &[],
        unmet: &[],
        points: &[],
        rests_on: &[],
        run,
    }
}

pub(super) const EXHIBITS: &[Exhibit] = &[
    Exhibit {
        claims: claims::TABLE_1,
        unmet: claims::TABLE_1_UNMET,
        says: &[
            ("latency saved by spraying in bursts, AWS, p50 and p90", "15.1 and 69.4 %", "§6.5.2"),
            ("the same, GCP", "9.8 and 9.2 %", "§6.5.2"),
        ],
        rests_on: TREE,
        ..onyx("table-1", "§6.5.2", "latency gained by spraying, 125 receivers, bursts", Simulated, trees::table_1)
    },
    Exhibit {
        claims: claims::TABLE_2,
        unmet: claims::TABLE_2_UNMET,
        says: &[
            ("without receiver hedging, p50 and p99", "139 and 248 µs", "§6.5.3"),
            ("with it", "99 and 146 µs", "§6.5.3"),
        ],
        rests_on: TREE,
        ..onyx("table-2", "§6.5.3", "receiver hedging, 100 participants", Simulated, trees::table_2)
    },
    Exhibit {
        claims: &[ShapeClaim::of(
            "every cell is within 13 % of the paper's",
            ClaimShape::Within { column: "simulated off %", least: -13.0, most: 13.0 },
        )],
        rests_on: TREE,
        ..onyx("table-3", "appendix A", "latency by depth and fan-out", Simulated, trees::table_3)
    },
    Exhibit {
        claims: &[ShapeClaim::of(
            "two hedges need three times the proxies",
            ClaimShape::RatioAtLeast { over: "proxies H=2", under: "proxies H=0", least: 3.0 },
        )],
        ..onyx("table-4", "appendix H", "proxies of a hedged tree", Computed, trees::table_4)
    },
    onyx("figure-1", "§1", "latency between two machines over time", Quoted, models::figure_1),
    onyx("figure-2", "§3", "overview of Onyx", Quoted, models::figure_2),
    Exhibit {
        claims: claims::FIGURE_3,
        points: &[
            ("the paper's table 3, direct", &[(10.0, 66.0), (100.0, 351.0)]),
            ("the paper's table 3, tree", &[(10.0, 66.0), (100.0, 139.0), (1_000.0, 217.0)]),
        ],
        rests_on: TREE,
        ..onyx("figure-3", "§4", "a tree scales", Simulated, trees::figure_3)
    },
    onyx("figure-4", "§2", "a limit order book", Quoted, models::figure_4),
    Exhibit {
        claims: claims::FIGURE_5,
        unmet: claims::FIGURE_5_UNMET,
        says: &[("medians: tree, direct, transit gateway", "129, 254, 228 µs", "§6.1")],
        points: &[("the paper, tree", &[(129.0, 0.5)]), ("the paper, direct", &[(254.0, 0.5)])],
        ..onyx("figure-5", "§6.1", "a tree against direct sends", Measured, sockets::figure_5)
    },
    Exhibit {
        claims: claims::FIGURE_6,
        says: &[("delivery windows within 1 µs, H = 2 and H = 0", "92 and 87 %", "§6.2")],
        points: &[("the paper, H=2", &[(1.0, 0.92)]), ("the paper, H=0", &[(1.0, 0.87)])],
        rests_on: TREE,
        ..onyx("figure-6", "§6.2", "delivery window, latency and holding time", Simulated, trees::figure_6)
    },
    Exhibit {
        claims: claims::FIGURE_7,
        says: &[("median of 1,000 receivers with hold", "at most 250 µs", "§6.3")],
        points: &[("the paper, N=1000 held, at most", &[(250.0, 0.5)])],
        rests_on: TREE,
        ..onyx("figure-7", "§6.3", "latency of 100 and 1,000 receivers", Simulated, trees::figure_7)
    },
    Exhibit {
        claims: claims::FIGURE_8,
        unmet: claims::FIGURE_8_UNMET,
        ..onyx("figure-8", "§6.4", "orders matched over time, Onyx and CloudEx", Simulated, rates::figure_8)
    },
    Exhibit {
        claims: claims::FIGURE_9,
        ..onyx("figure-9", "§6.4", "bursts of orders, with and without classes", Simulated, orders::figure_9)
    },
    Exhibit {
        claims: claims::FIGURE_10,
        says: &[("11 levels: trades in bursts, latency", "+137 %, -70 %", "§6.4")],
        points: &[("the paper", &[(11.0, 137.0)])],
        ..onyx("figure-10", "§6.4", "gain of classes by book depth", Simulated, orders::figure_10)
    },
    Exhibit {
        claims: claims::FIGURE_11,
        unmet: claims::FIGURE_11_UNMET,
        says: &[("orders received with a tree, in all and in bursts", "+22 %, +75 %", "§6.4")],
        ..onyx("figure-11", "§6.4", "orders received with and without a tree", Simulated, rates::figure_11)
    },
    Exhibit {
        claims: claims::FIGURE_12,
        unmet: claims::FIGURE_12_UNMET,
        says: &[("throughput with a sequencer", "-25 %", "§6.4")],
        ..onyx("figure-12", "§6.4", "what a sequencer costs", Simulated, rates::figure_12)
    },
    Exhibit {
        claims: claims::FIGURE_13,
        says: &[("0.005 % lost: median and p90 lateness", "0 and at most 3", "§6.6")],
        ..onyx("figure-13", "§6.6", "lateness by loss, 100 participants", Simulated, lateness::figure_13)
    },
    Exhibit {
        claims: claims::FIGURE_14,
        says: &[("p99 of the window, H = 0 and 1", "350 and 150 µs", "§6.5.1")],
        points: &[("the paper, H=0", &[(350.0, 0.99)]), ("the paper, H=1", &[(150.0, 0.99)])],
        rests_on: TREE,
        ..onyx("figure-14", "§6.5.1", "latency and delivery window by H, rare stragglers", Simulated, trees::figure_14)
    },
    Exhibit {
        claims: claims::FIGURE_15,
        ..onyx("figure-15", "appendix C", "latency of a receiver by depth and H", MonteCarlo, models::figure_15)
    },
    Exhibit {
        claims: claims::FIGURE_16,
        ..onyx("figure-16", "appendix C", "hedging with correlated links", MonteCarlo, models::figure_16)
    },
    Exhibit {
        claims: claims::FIGURE_17,
        ..onyx("figure-17", "appendix C", "correlated links, by H", MonteCarlo, models::figure_17)
    },
    onyx("figure-18", "appendix F", "packet losses in public clouds", Quoted, models::figure_18),
    onyx("figure-19", "appendix G", "trust models", Quoted, models::figure_19),
    onyx("figure-20", "appendix G", "jitter between a machine and its enclave", Quoted, models::figure_20),
    Exhibit {
        claims: claims::FIGURE_21,
        unmet: claims::FIGURE_21_UNMET,
        rests_on: TREE,
        ..onyx("figure-21", "appendix H", "one-way delay of each receiver", Simulated, trees::figure_21)
    },
    Exhibit {
        claims: claims::FIGURE_22,
        ..onyx("figure-22", "appendix K", "spraying, independent links", MonteCarlo, models::figure_22)
    },
    Exhibit {
        claims: claims::FIGURE_23,
        ..onyx("figure-23", "appendix K", "spraying, dependent links", MonteCarlo, models::figure_23)
    },
    onyx("figure-24", "appendix L", "place among on-premises systems", Quoted, models::figure_24),
    Exhibit {
        claims: claims::LATENESS,
        ..onyx("figure-25", "appendix N", "lateness by loss, 10 participants", Simulated, lateness::figure_25)
    },
    Exhibit {
        claims: claims::LATENESS,
        ..onyx(
            "figure-26",
            "appendix N",
            "lateness by loss, 100 participants at 10,000/s",
            Simulated,
            lateness::figure_26,
        )
    },
    Exhibit {
        claims: claims::LATENESS_OF_SOME,
        ..onyx("figure-27", "appendix N", "lateness, 1 of 10 loses", Simulated, lateness::figure_27)
    },
    Exhibit {
        claims: claims::LATENESS_OF_SOME,
        ..onyx("figure-28", "appendix N", "lateness, 2 of 10 lose", Simulated, lateness::figure_28)
    },
    Exhibit {
        claims: claims::LATENESS_OF_SOME,
        ..onyx("figure-29", "appendix N", "lateness, 5 of 10 lose", Simulated, lateness::figure_29)
    },
    Exhibit {
        claims: claims::LATENESS,
        ..onyx("figure-30", "appendix N", "lateness, all of 10 lose", Simulated, lateness::figure_30)
    },
    Exhibit {
        claims: claims::FIGURE_31,
        ..onyx("figure-31", "appendix P", "orders matched: Onyx, SimplePQ, CloudEx, DBO", Simulated, rates::figure_31)
    },
    Exhibit {
        claims: &[ShapeClaim::of(
            "a proxy forwards at 0.9 of the raw loop's rate",
            ClaimShape::RatioAtLeast { over: "proxy, packets/s", under: "raw loop, packets/s", least: 0.9 },
        )],
        unmet: claims::PROXY_UNMET,
        ..onyx("proxy-rate", "appendix D", "a proxy against the raw loop", Measured, sockets::proxy_rates)
    },
    Exhibit {
        claims: claims::RELEASE_SPAN,
        ..onyx("release-span", "appendix B", "one thread releases to many receivers", Measured, sockets::release_spans)
    },
    Exhibit {
        claims: &[ShapeClaim::of("each kill is over within a second", ClaimShape::True("at most 1,000"))],
        ..onyx("resume", "§5.1", "a proxy and a gateway are killed while all trade", Measured, sockets::resumes)
    },
    Exhibit {
        claims: claims::MAX_WAIT,
        ..onyx(
            "max-wait",
            "§5.1",
            "how long a sequencer waits for a stream, where packets are lost",
            Simulated,
            rates::max_wait,
        )
    },
    Exhibit {
        claims: claims::SEQUENCER_RATE,
        unmet: claims::SEQUENCER_UNMET,
        ..onyx(
            "sequencer-rate",
            "§5.1",
            "sequencer and queue against the matching engine",
            Measured,
            speeds::sequencer_rate,
        )
    },
    Exhibit {
        claims: claims::STRATEGY_CALL,
        ..onyx(
            "strategy-call",
            "appendix G",
            "a strategy as a module against the same in Rust",
            Measured,
            speeds::strategy_call,
        )
    },
    Exhibit {
        claims: CHECKS,
        ..onyx(
            "validation-a",
            "not in the paper",
            "constant delays against the closed form",
            Simulated,
            validations::validation_a,
        )
    },
    Exhibit {
        claims: CHECKS,
        ..onyx(
            "validation-b",
            "not in the paper",
            "an egress queue against M/D/1",
            Simulated,
            validations::validation_b,
        )
    },
    Exhibit {
        claims: CHECKS,
        ..onyx(
            "validation-c",
            "not in the paper",
            "the tree against direct sampling",
            Simulated,
            validations::validation_c,
        )
    },
    Exhibit {
        claims: CHECKS,
        ..onyx(
            "validation-d",
            "not in the paper",
            "sockets against the simulator on emulated links",
            Measured,
            sockets::validation_d,
        )
    },
    Exhibit {
        claims: CHECKS,
        ..onyx("validation-e", "not in the paper", "ten seeds and their interval", Simulated, validations::validation_e)
    },
    Exhibit {
        claims: CHECKS,
        ..onyx(
            "validation-f",
            "not in the paper",
            "each law of the simulator switched off",
            Simulated,
            validations::validation_f,
        )
    },
];
