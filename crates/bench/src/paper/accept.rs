//! Accept (Mathys, Schmid, Sliwinski, Wattenhofer): payments without consensus, by validators that are sharded.
//!
//! The paper's machines have 32 threads each, one for each shard. Here all shards and the clients share one machine. So
//! what shows whether shards scale is the processor time of a payment, which should not depend on their number.

use serde_json::{Value, json};

use super::chart::{Chart, ChartPlot};
use super::claim::{ClaimShape, ShapeClaim};
use super::exhibit::ExhibitKind::{Computed, Measured};
use super::exhibit::{Exhibit, ExhibitError, ExhibitRun, ExhibitSteps, Paper, PaperOptions};
use crate::lane_rows;
use crate::payments_lane::PaymentsLaneOptions;

const QUOTED: &str = "§5, table 2";

pub(super) const EXHIBITS: &[Exhibit] = &[
    Exhibit {
        paper: Paper::Accept,
        id: "figure-1",
        section: "§5",
        title: "throughput and processor time by shards, four validators",
        kind: Measured,
        seconds: (12, 120),
        plot: Some(ChartPlot { x: "shards", y: "payments/s", by: &[], log: (true, true) }),
        says: &[
            ("1, 2, 4 shards, payments/s", "48,667; 92,115; 183,380", QUOTED),
            ("37 shards, payments/s", "1,449,847 at 71.9 % of the processors", "§5, figure 1"),
        ],
        claims: &[SCALES],
        rests_on: &[],
        run: ExhibitRun::Run(figure_1),
    },
    Exhibit {
        paper: Paper::Accept,
        id: "table-1",
        section: "§4.1",
        title: "cost of signatures by scheme, trees of 64",
        kind: Measured,
        seconds: (2, 10),
        plot: Some(ChartPlot { x: "operation", y: "ns", by: &["scheme"], log: (false, false) }),
        says: &[
            ("naive: sign, verify, verify in a batch of 64", "29,967; 100,663; 51,247 ns", "table 1"),
            ("Merkle: sign, verify a new root, a known root", "2,709; 106,771; 6,473 ns", "table 1"),
            ("BLS: sign, verify", "640,205; 1,918,578 ns", "table 1"),
        ],
        claims: &[
            ShapeClaim {
                says: "a tree signs for a fifth or less of the naive cost",
                only: &[("operation", "sign"), ("scheme", "naive")],
                by: &[],
                shape: ClaimShape::RatioAtLeast { over: "ns", under: "merkle ns", least: 5.0 },
            },
            ShapeClaim {
                says: "a known root verifies for a fifth or less of a signature",
                only: &[("operation", "verify"), ("scheme", "naive")],
                by: &[],
                shape: ClaimShape::RatioAtLeast { over: "ns", under: "merkle ns", least: 5.0 },
            },
        ],
        rests_on: &[],
        run: ExhibitRun::Run(table_1),
    },
    Exhibit {
        paper: Paper::Accept,
        id: "table-2",
        section: "§5",
        title: "throughput by validators and shards",
        kind: Measured,
        seconds: (40, 400),
        plot: Some(ChartPlot { x: "shards", y: "payments/s", by: &["validators"], log: (false, false) }),
        says: &[
            ("4 validators, 1, 2, 4 shards, payments/s", "48,667; 92,115; 183,380", QUOTED),
            ("10 validators", "34,451; 72,079; 141,767", QUOTED),
            ("28 validators", "22,015; 44,764; 80,917", QUOTED),
        ],
        claims: &[
            SCALES,
            ShapeClaim {
                says: "a payment costs more processor time with more validators",
                only: &[("shards", "1")],
                by: &[],
                shape: ClaimShape::Rises { column: "machine µs", slack: 0.1 },
            },
        ],
        rests_on: &[],
        run: ExhibitRun::Run(table_2),
    },
    Exhibit {
        paper: Paper::Accept,
        id: "section-3.3-trees",
        section: "§3.3",
        title: "cost of a payment by the size of a tree, ten validators",
        kind: Measured,
        seconds: (15, 60),
        plot: Some(ChartPlot { x: "leaves", y: "µs", by: &["how"], log: (true, true) }),
        says: &[("the best size of ten validators", "80.4 by the formula, 64 to 128 measured", "§3.3, §4")],
        claims: &[
            ShapeClaim {
                says: "a tree of 64 costs a third or less of none, measured and by the formula",
                only: &[("up to 64", "true")],
                by: &["how"],
                shape: ClaimShape::LastOverFirst { column: "µs", least: 0.0, most: 0.34 },
            },
            ShapeClaim {
                says: "beyond 64 leaves little is gained or lost: within half of it",
                only: &[("from 64", "true")],
                by: &["how"],
                shape: ClaimShape::LastOverFirst { column: "µs", least: 0.5, most: 1.5 },
            },
        ],
        rests_on: &[],
        run: ExhibitRun::Run(trees),
    },
    Exhibit {
        paper: Paper::Accept,
        id: "section-4.1-bls",
        section: "§4.1",
        title: "validators from which on BLS verifies faster",
        kind: Computed,
        seconds: (2, 6),
        plot: Some(ChartPlot { x: "validators", y: "ns", by: &["scheme"], log: (true, true) }),
        says: &[("BLS is faster than naive, than Merkle, from", "n > 37 and n > 475", "§4.1")],
        claims: &[
            ShapeClaim {
                says: "BLS overtakes the naive scheme between 4 and 100 validators",
                only: &[("scheme", "bls")],
                by: &[],
                shape: ClaimShape::Crosses {
                    x: "validators",
                    falling: "bls ns",
                    rising: "naive ns",
                    least: 4.0,
                    most: 100.0,
                },
            },
            ShapeClaim {
                says: "BLS overtakes trees between 100 and 2,000 validators",
                only: &[("scheme", "bls")],
                by: &[],
                shape: ClaimShape::Crosses {
                    x: "validators",
                    falling: "bls ns",
                    rising: "merkle ns",
                    least: 100.0,
                    most: 2_000.0,
                },
            },
        ],
        rests_on: &[],
        run: ExhibitRun::Run(bls),
    },
    Exhibit {
        paper: Paper::Accept,
        id: "section-4.2-spent",
        section: "§4.2",
        title: "inserts into the set of spent outputs",
        kind: Measured,
        seconds: (3, 20),
        plot: None,
        says: &[("one thread a processor of 32, inserts/s: sync.Map, their map", "704,000; 33,000,000", "§4.2")],
        claims: &[ShapeClaim {
            says: "a set for each shard takes at least twice the inserts of one map behind a lock",
            only: &[],
            by: &[],
            shape: ClaimShape::RatioAtLeast { over: "sets, inserts/s", under: "one map, inserts/s", least: 2.0 },
        }],
        rests_on: &[],
        run: ExhibitRun::Run(spent),
    },
];

const SCALES: ShapeClaim = ShapeClaim {
    says: "shards do not cost: a payment takes the same processor time with 4 shards as with one, within 35 %",
    only: &[],
    by: &["validators"],
    shape: ClaimShape::LastOverFirst { column: "machine µs", least: 0.65, most: 1.35 },
};

/// One row for each number of shards.
fn sharded(options: &PaperOptions, validators: &[usize], say: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    let mut rows = Vec::new();
    for &validators in validators {
        for shards in [1, 2, 4] {
            let measured = PaymentsLaneOptions {
                validators,
                shards,
                payments: options.pick(2_000, 20_000),
                window: options.pick(1_000, 4_096),
                leaves: vec![64],
                variants: Vec::new(),
                rows: None,
            };
            let directory = tempfile::tempdir()?;
            let report = crate::payments_lane::run(&measured, directory.path(), say)?;
            let mut run = report["runs"][0].clone();
            (run["validators"], run["shards"]) = (validators.into(), shards.into());
            rows.push(run);
        }
    }
    let cost = |part: &str| format!("/from_certificates/processor_us_per_payment/{part}");
    let columns = [
        ("validators", "/validators"),
        ("shards", "/shards"),
        ("payments/s", "/from_certificates/payments_per_second"),
        ("settlements/s", "/settlement/payments_per_second"),
        ("machine µs", &cost("machine_of_each_validator")),
        ("client µs", &cost("client")),
        ("syncs", "/syncs"),
    ];
    let method = "payments whose inputs are proved by certificates, trees of 64, durable logs, loopback; every shard has \
                  its own thread, socket, log and key, and owners are divided among them. All share this machine's \
                  cores: `machine` is the processor time of a payment at one validator, all its shards together";
    Ok(Chart::of(method, &columns, &rows))
}

fn figure_1(options: &PaperOptions, say: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    sharded(options, &[4], say)
}

fn table_2(options: &PaperOptions, say: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    sharded(options, options.pick(&[4, 10], &[4, 10, 28]), say)
}

/// A row of table 1; `tree` is what the same costs with trees, where it is comparable.
fn cost(scheme: &str, operation: &str, ns: &Value, tree: Value) -> Value {
    json!({ "scheme": scheme, "operation": operation, "ns": ns, "merkle": tree })
}

fn table_1(options: &PaperOptions, _: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    let costs = lane_rows::table_1(options.pick(256, 2_048));
    let merkle = |field: &str| costs["merkle_of_64_leaves"][field].clone();
    let (naive, tree, bls) = (&costs["naive"], &costs["merkle_of_64_leaves"], &costs["bls"]);
    let rows = [
        cost("naive", "sign", &naive["sign"], merkle("sign")),
        cost("naive", "verify", &naive["verify_single"], merkle("verify_warm_root")),
        cost("naive", "verify, batch of 64", &naive["verify_batch_of_64"], Value::Null),
        cost("merkle", "sign", &tree["sign"], Value::Null),
        cost("merkle", "verify, new root", &tree["verify_cold_root"], Value::Null),
        cost("merkle", "verify", &tree["verify_warm_root"], Value::Null),
        cost("bls", "sign", &bls["sign"], Value::Null),
        cost("bls", "verify", &bls["verify"], Value::Null),
    ];
    let columns = [("scheme", "/scheme"), ("operation", "/operation"), ("ns", "/ns"), ("merkle ns", "/merkle")];
    Ok(Chart::of("processor time of one thread for one signature", &columns, &rows))
}

fn trees(options: &PaperOptions, _: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    let leaves = options.pick(vec![1, 8, 64, 256], vec![1, 4, 16, 32, 64, 128, 256, 512]);
    let rows: Vec<Value> = lane_rows::tree_sizes(10, &leaves, options.pick(256, 4_096))
        .into_iter()
        .flat_map(|row| {
            let leaves = row["leaves"].as_u64().unwrap_or(0);
            [("measured", "cpu_us"), ("formula", "formula_us")].map(|(how, field)| {
                json!({ "leaves": leaves, "how": how, "us": row[field], "up": leaves <= 64, "from": leaves >= 64 })
            })
        })
        .collect();
    let columns = [("leaves", "/leaves"), ("how", "/how"), ("µs", "/us"), ("up to 64", "/up"), ("from 64", "/from")];
    let method = "one shard of one of ten validators without sockets: processor time of a payment whose input is proved \
                  by a certificate; beside it the paper's formula with this run's costs of hashes and signatures, \
                  without everything else that a payment costs";
    Ok(Chart::of(method, &columns, &rows))
}

fn bls(options: &PaperOptions, _: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    let costs = lane_rows::table_1(options.pick(256, 2_048));
    let cost = |at: &str| costs.pointer(at).and_then(Value::as_f64).ok_or("a cost is missing");
    let (naive, merkle) = (cost("/naive/verify_single")?, cost("/merkle_of_64_leaves/verify_warm_root")?);
    let bls = cost("/bls/verify")?;
    let validators = (2..=40).map(|step| 2f64.powf(f64::from(step) * 0.3).round() as u64).filter(|n| *n >= 4);
    let rows: Vec<Value> = validators
        .flat_map(|n| {
            // Beyond the 256 validators that a committee can have, the same formula.
            let quorum = ((n + (n - 1) / 3) / 2 + 1) as f64;
            let all = [quorum * naive, quorum * merkle, bls];
            [("naive", 0), ("merkle", 1), ("bls", 2)].map(|(scheme, at)| {
                json!({ "n": n, "scheme": scheme, "ns": all[at], "naive": all[0], "merkle": all[1], "bls": all[2] })
            })
        })
        .collect();
    let columns = [
        ("validators", "/n"),
        ("scheme", "/scheme"),
        ("ns", "/ns"),
        ("naive ns", "/naive"),
        ("merkle ns", "/merkle"),
        ("bls ns", "/bls"),
    ];
    let method = "verification of a certificate: the costs of table 1, measured in this run, times the quorum; trees of \
                  64 with known roots";
    Ok(Chart::of(method, &columns, &rows))
}

fn spent(options: &PaperOptions, _: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    let rows: Vec<Value> = options
        .threads
        .iter()
        .map(|threads| lane_rows::spent_sets(options.pick(200_000, 10_000_000), *threads))
        .collect();
    let columns = [
        ("threads", "/threads"),
        ("keys", "/keys"),
        ("sets, inserts/s", "/inserts_per_second"),
        ("one map, inserts/s", "/one_locked_map_inserts_per_second"),
        ("bytes an entry", "/bytes_an_entry"),
    ];
    let method = "a shard has a spent set and a thread of its own, so no lock; the paper shares one concurrent map among \
                  the threads of a machine (§4.2), of which one map behind a lock is the plain version";
    Ok(Chart::of(method, &columns, &rows))
}
