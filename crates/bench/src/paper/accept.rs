//! Accept (Mathys, Schmid, Sliwinski, Wattenhofer): payments without consensus, by validators that are sharded.
//!
//! The paper's machines have 32 threads each, one machine for each shard. Here all shards and the clients share one
//! machine. So what shows whether shards scale is the processor time and the bytes of a payment: they should not depend
//! on the number of shards while each has the same load. Shards are run *together*, and each *alone*, as if it had the
//! machine for itself. The mean rate of those alone, times the shards, is what as many machines would do.

mod claims;

use serde_json::{Value, json};

use super::chart::{Chart, ChartPlot};
use super::exhibit::ExhibitKind::{Computed, Measured};
use super::exhibit::{Exhibit, ExhibitError, ExhibitRun, ExhibitSteps, Paper, PaperOptions};
use crate::lane_rows;
use crate::payments_lane::PaymentsLaneOptions;

const QUOTED: &str = "§5, table 2";

/// Payments a second of four validators, by shards.
const FOUR: &[(f64, f64)] = &[(1.0, 48_667.0), (2.0, 92_115.0), (4.0, 183_380.0)];

pub(super) const EXHIBITS: &[Exhibit] = &[
    Exhibit {
        paper: Paper::Accept,
        id: "figure-1",
        section: "§5",
        title: "throughput and processor time by shards, four validators",
        kind: Measured,
        seconds: (30, 500),
        plot: Some(ChartPlot { x: "shards", y: "payments/s", by: &["how"], log: (true, true) }),
        says: &[
            ("1, 2, 4 shards, payments/s", "48,667; 92,115; 183,380", QUOTED),
            ("37 shards, payments/s", "1,449,847 at 71.9 % of the processors", "§5, figure 1"),
        ],
        claims: claims::FIGURE_1,
        unmet: &[],
        points: &[
            ("the paper, a machine of 32 threads a shard", FOUR),
            ("the paper, 37 shards", &[(37.0, 1_449_847.0)]),
        ],
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
        plot: Some(ChartPlot { x: "operation", y: "ns", by: &["scheme"], log: (false, true) }),
        says: &[
            ("naive: sign, verify, verify in a batch of 64", "29,967; 100,663; 51,247 ns", "table 1"),
            ("Merkle: sign, verify a new root, a known root", "2,709; 106,771; 6,473 ns", "table 1"),
            ("BLS: sign, verify", "640,205; 1,918,578 ns", "table 1"),
        ],
        claims: claims::TABLE_1,
        unmet: &[],
        points: &[
            ("the paper, scheme naive", &[(0.0, 29_967.0), (1.0, 100_663.0), (2.0, 51_247.0)]),
            ("the paper, scheme merkle", &[(0.0, 2_709.0), (1.0, 6_473.0), (3.0, 106_771.0)]),
            ("the paper, scheme bls", &[(0.0, 640_205.0), (1.0, 1_918_578.0)]),
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
        seconds: (60, 600),
        plot: Some(ChartPlot { x: "shards", y: "payments/s", by: &["validators", "how"], log: (true, true) }),
        says: &[
            ("4 validators, 1, 2, 4 shards, payments/s", "48,667; 92,115; 183,380", QUOTED),
            ("10 validators", "34,451; 72,079; 141,767", QUOTED),
            ("28 validators", "22,015; 44,764; 80,917", QUOTED),
        ],
        claims: claims::TABLE_2,
        unmet: claims::TABLE_2_UNMET,
        points: &[
            ("the paper, validators 4", FOUR),
            ("the paper, validators 10", &[(1.0, 34_451.0), (2.0, 72_079.0), (4.0, 141_767.0)]),
            ("the paper, validators 28", &[(1.0, 22_015.0), (2.0, 44_764.0), (4.0, 80_917.0)]),
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
        claims: claims::TREES,
        unmet: claims::TREES_UNMET,
        points: &[],
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
        claims: claims::BLS,
        unmet: &[],
        points: &[],
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
        claims: claims::SPENT,
        unmet: &[],
        points: &[],
        rests_on: &[],
        run: ExhibitRun::Run(spent),
    },
];

/// The sum over runs of what is at `pointer`.
fn sum(runs: &[Value], pointer: &str) -> f64 {
    runs.iter().filter_map(|run| run.pointer(pointer)?.as_f64()).sum()
}

/// The most shards that are measured alone, of any number.
const ALONE: u16 = 4;

/// What one number of shards shows: `runs` has the run of all together, or one for each shard that was run alone. Those
/// stand for all shards: their mean rate counts once for each shard. Costs of a payment are those of the mean shard.
fn sharded_row(how: &str, runs: &[Value]) -> Value {
    let phase = |field: &str| sum(runs, &format!("/runs/0/from_certificates/{field}"));
    let mean = |field: &str| phase(field) / runs.len() as f64;
    let shards = runs[0]["shards"].as_f64().unwrap_or(1.0);
    let all = |rate: f64| if how == "alone" { rate / runs.len() as f64 * shards } else { rate };
    let processor = |part: &str| mean(&format!("processor_us_per_payment/{part}"));
    let bytes = |part: &str| mean(&format!("bytes_per_payment/{part}"));
    let parts = ["machine", "syncer", "sockets", "pool"].map(|part| processor(&format!("{part}_of_each_validator")));
    json!({
        "validators": runs[0]["validators"],
        "shards": runs[0]["shards"],
        "how": how,
        "payments": all(phase("payments_per_second")),
        "of_a_shard": all(phase("payments_per_second")) / shards,
        "settlements": all(sum(runs, "/runs/0/settlement/payments_per_second")),
        "validator": parts.iter().sum::<f64>(),
        "machine": parts[0] + parts[3],
        "client": processor("client"),
        "bytes": bytes("request") + bytes("answer_of_each_validator"),
    })
}

/// Two rows for each number of shards: all of them together, and some alone, evenly spread among them.
fn sharded(
    options: &PaperOptions,
    (validators, shards): (&[usize], &[u16]),
    say: &mut ExhibitSteps,
) -> Result<Chart, ExhibitError> {
    let mut rows = Vec::new();
    for (&validators, &shards) in validators.iter().flat_map(|n| shards.iter().map(move |shards| (n, shards))) {
        let mut run = |only| {
            let measured = PaymentsLaneOptions {
                validators,
                shards,
                only,
                payments: options.pick(1_500, 4_000),
                window: options.pick(750, 2_048),
                leaves: vec![64],
                variants: Vec::new(),
                from_settled: false,
                rows: None,
            };
            let directory = tempfile::tempdir()?;
            crate::payments_lane::run(&measured, directory.path(), say)
        };
        let together = [run(None)?];
        let spread = shards.div_ceil(ALONE);
        let alone = (0..shards).step_by(spread.into()).map(|shard| run(Some(shard))).collect::<Result<Vec<_>, _>>()?;
        rows.extend([sharded_row("together", &together), sharded_row("alone", &alone)]);
    }
    let columns = [
        ("validators", "/validators"),
        ("shards", "/shards"),
        ("how", "/how"),
        ("payments/s", "/payments"),
        ("of a shard/s", "/of_a_shard"),
        ("settlements/s", "/settlements"),
        ("validator µs", "/validator"),
        ("machine µs", "/machine"),
        ("client µs", "/client"),
        ("bytes", "/bytes"),
    ];
    let method = "payments whose inputs are proved by certificates, trees of 64, durable logs, loopback; every shard has \
                  its own threads, socket, log and key, and the same load, however many there are. *Together*, all \
                  shards and the client share this machine's cores. *Alone*, one shard of each validator runs at a \
                  time, and their mean rate is multiplied by the number of shards: what as many machines would do. Of \
                  more than four shards, four run alone. `validator` is the processor time of a \
                  payment at one validator, in which its machine has the part `machine`; `bytes` is a request and an \
                  answer";
    Ok(Chart::of(method, &columns, &rows))
}

fn figure_1(options: &PaperOptions, say: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    sharded(options, (&[4], options.pick(&[1, 2, 4], &[1, 2, 4, 16, 64])), say)
}

fn table_2(options: &PaperOptions, say: &mut ExhibitSteps) -> Result<Chart, ExhibitError> {
    sharded(options, (options.pick(&[4, 10], &[4, 10, 28]), &[1, 2, 4]), say)
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
    let rows: Vec<Value> = lane_rows::tree_sizes(10, &leaves, options.pick(2_048, 4_096))
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
        .map(|threads| lane_rows::spent_sets(options.pick(2_000_000, 10_000_000), *threads))
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
