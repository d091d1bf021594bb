//! `walras-lab sim`: the whole system under seeded faults.

use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::sync::Mutex;

use ::sim::validators::{self, run_sealed, run_twins, run_validators, run_versions};
use ::sim::{
    Failure, FoundMistake, LaneOptions, LaneReport, MarketOptions, MarketReport, SimOptions, SimReport, crash_points,
    found, run, run_lane, run_market,
};
use bench::measurement::BenchEngine;
use consensus::Protocol;
use fairnet::sim::{EdgeReport, EdgeSetup, run_edge};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

/// Simulates the whole system under faults: crashes, torn writes, disk errors, bad clients. A seed determines
/// everything.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  walras-lab sim --seeds 200           # seeds 0 to 199
  walras-lab sim --seed 17             # that one again
  walras-lab sim --seeds 200 --json
  walras-lab sim --consensus --seeds 200   # a network of validators: broken links, kills, lost logs, Byzantine ones
  walras-lab sim --consensus --engine tendermint --seeds 200   # the same, with the other engine
  walras-lab sim --consensus --twins --seeds 200   # as many of them as may be faulty run as two instances of one key
  walras-lab sim --consensus --mixed-versions --seeds 200   # two programs of neighbouring rules; the newer act by vote
  walras-lab sim --consensus --sealed --seeds 200   # all with a sealing key, and clients who seal orders
  walras-lab sim --consensus --regions 50  # how long certificates take among 50 validators in ten regions
  walras-lab sim --lane --seeds 200    # the payment lane: crashes, a Byzantine validator, an owner who spends twice
  walras-lab sim --lane --shards 4 --seeds 200     # the same with four shards a member, half of them apart
  walras-lab sim --market --seeds 200  # a continuous market: its venue crashes or cheats, its traders forge and replay
  walras-lab sim --edge --seeds 200    # the market edge: lost and forged datagrams, proxies and gateways that die
  walras-lab sim --mistakes            # every mistake that the simulation can make, each with the seed that finds it
  walras-lab sim --crash-points 500    # a script of 500 blocks, crashed at every change of the disk in every way

Exits with 1 if an invariant is violated, and prints the seed that shows it.")]
pub struct Sim {
    /// Run this seed.
    #[arg(long, conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Number of seeds to run, starting at --from.
    #[arg(long, default_value_t = 20)]
    seeds: u64,
    /// First seed.
    #[arg(long, default_value_t = 0, conflicts_with = "seed")]
    from: u64,
    /// Blocks made under faults in each run.
    #[arg(long, default_value_t = SimOptions::default().blocks)]
    blocks: u64,
    /// Instead: crash a script of this many blocks at every point.
    #[arg(long, conflicts_with_all = ["seeds", "from", "blocks"])]
    crash_points: Option<u64>,
    /// Instead: a network of validators, with faults drawn from each seed.
    #[arg(long, conflicts_with_all = ["crash_points", "blocks"])]
    consensus: bool,
    /// Instead: the payment lane, shards and payers with the ledger's blocks.
    #[arg(long, conflicts_with_all = ["consensus", "crash_points", "blocks"])]
    lane: bool,
    /// With --lane: shards of each member. Those with odd numbers run apart from their nodes, over lines that break.
    #[arg(long, requires = "lane", value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=16))]
    shards: u16,
    /// Instead: the market edge, root, proxies and gateways; market data out and orders in.
    #[arg(long, conflicts_with_all = ["consensus", "lane", "crash_points", "blocks"])]
    edge: bool,
    /// Instead: a continuous market, the root of its venue and the ledger's custody, with hostile traders and venues.
    #[arg(long, conflicts_with_all = ["consensus", "lane", "edge", "crash_points", "blocks"])]
    market: bool,
    /// Instead: run every mistake that can be made on purpose with the seed that finds it.
    #[arg(long, conflicts_with_all =
        ["consensus", "lane", "edge", "market", "crash_points", "seeds", "seed", "from", "blocks"])]
    mistakes: bool,
    /// With --consensus: how validators agree on blocks.
    #[arg(long, requires = "consensus", value_enum, default_value_t = BenchEngine::Dbft)]
    engine: BenchEngine,
    /// With --consensus: as many validators as may be faulty run as two instances of one key, and links go up and
    /// down.
    #[arg(long, requires = "consensus", conflicts_with_all = ["regions", "even"])]
    twins: bool,
    /// With --consensus: validators run programs of two versions, and change to the newer rules by vote.
    #[arg(long, requires = "consensus", conflicts_with_all = ["twins", "regions", "even"])]
    mixed_versions: bool,
    /// With --consensus: every network has a sealing key, and clients who seal orders.
    #[arg(long, requires = "consensus", conflicts_with_all = ["twins", "mixed_versions", "regions", "even"])]
    sealed: bool,
    /// With --consensus: instead, this many correct validators in ten regions of the world; measures how long
    /// certificates take.
    #[arg(long, requires = "consensus", value_name = "N", value_parser = clap::value_parser!(u8).range(1..=200))]
    regions: Option<u8>,
    /// With --consensus: this many correct validators, with the same delay (--delay) between any two.
    #[arg(long, requires = "consensus", value_name = "N", conflicts_with = "regions",
        value_parser = clap::value_parser!(u8).range(1..=200))]
    even: Option<u8>,
    /// One-way delay for --even, in milliseconds.
    #[arg(long, default_value_t = 50, requires = "even", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    delay: u64,
    /// With --regions or --even: count ready votes as the estimates of the first round.
    #[arg(long, requires = "consensus")]
    fast: bool,
    /// With --regions or --even: nanoseconds that a frame costs the processor of its sender and of its receiver.
    #[arg(long, default_value_t = 0, requires = "consensus",
        value_parser = clap::value_parser!(u64).range(..=1_000_000_000))]
    frame_ns: u64,
    /// With --regions or --even: nanoseconds that each byte of a frame costs its receiver.
    #[arg(long, default_value_t = 0, requires = "consensus",
        value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    byte_ns: u64,
    /// With --regions or --even: transactions given to each validator.
    #[arg(long, default_value_t = 20, requires = "consensus")]
    each: u64,
}

impl Sim {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        if let Some(blocks) = self.crash_points {
            return run_crash_points(self.seed.unwrap_or(1), blocks, json);
        }
        if self.mistakes {
            return Ok(run_mistakes(json));
        }
        let options = SimOptions { blocks: self.blocks, ..SimOptions::default() };
        let seeds = match self.seed {
            Some(seed) => seed..=seed,
            None if self.seeds == 0 => anyhow::bail!("--seeds 0: nothing to run"),
            None => self.from..=self.from.saturating_add(self.seeds - 1),
        };
        if let Some(validators) = self.regions.or(self.even) {
            return self.measure_consensus(validators, json);
        }
        if self.lane {
            return run_lanes(seeds, self.shards, json);
        }
        if self.edge {
            return Ok(run_edges(seeds, json));
        }
        if self.market {
            return Ok(run_markets(seeds, json));
        }
        if self.consensus {
            let world = match (self.twins, self.mixed_versions, self.sealed) {
                (true, ..) => (" --twins", run_twins as NetworkRun),
                (_, true, _) => (" --mixed-versions", run_versions as NetworkRun),
                (.., true) => (" --sealed", run_sealed as NetworkRun),
                _ => ("", run_validators as NetworkRun),
            };
            return run_consensus(seeds, self.engine.rules().protocol, world, json);
        }
        let results = run_all(seeds, |seed| run(seed, options));
        let failures: Vec<&Failure> = results.iter().filter_map(|result| result.as_ref().err()).collect();
        let reports: Vec<&SimReport> = results.iter().filter_map(|result| result.as_ref().ok()).collect();
        if json {
            println!("{}", as_json(&reports, &failures));
        } else {
            print(&reports, &failures, self.seed.is_some());
        }
        Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

impl Sim {
    /// Latency to the certificate among correct validators, compared with the delays between them.
    fn measure_consensus(&self, count: u8, json: bool) -> anyhow::Result<ExitCode> {
        let size = usize::from(count);
        let delays: Vec<Vec<u64>> =
            (0..size).map(|from| (0..size).map(|to| self.delay_between(from, to)).collect()).collect();
        let longest = delays.iter().flatten().copied().max().unwrap_or(0);
        let mut network = validators::SimNetwork::of(self.engine.rules().protocol, size, self.seed.unwrap_or(0));
        network.rules.fast = self.fast;
        (network.unit, network.grace) = (4 * longest, longest);
        // Messages that arrive within a millisecond make one turn, as in a node; the interval is longer if there are
        // very many validators.
        network.quantum = if size > 20 { 5_000 } else { 500 };
        // That of a node; other simulations have a shorter one, so that more happens in less time.
        network.tick = 200_000;
        network.tails = false;
        network.delays = Some(delays);
        network.frame_cost = validators::FrameCost { frame: self.frame_ns, byte: self.byte_ns };
        network.submit_everywhere(self.each);
        network.run_until_settled();
        let counts = counts_of(&network.check(), count, longest);
        if json {
            let fields: serde_json::Map<String, Value> =
                counts.into_iter().map(|(name, count)| (name, count.into())).collect();
            println!("{}", Value::from(fields));
        } else {
            counts.iter().for_each(|(name, count)| println!("{:<42} {count:>13.1}", name.replace('_', " ")));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The one-way delay between two validators, in microseconds.
    fn delay_between(&self, from: usize, to: usize) -> u64 {
        match self.even {
            Some(_) => self.delay * 1_000,
            None => bench::switch::between_regions(from, to).as_micros() as u64,
        }
    }
}

/// What is reported of a measured run: times in milliseconds, and costs of a superblock, in sum and by kind of frame.
fn counts_of(report: &validators::NetworkReport, validators: u8, longest: u64) -> Vec<(String, f64)> {
    let ms = |share: f64| report.latency(share) as f64 / 1_000.0;
    let each = |count: u64| count as f64 / report.heights.max(1) as f64;
    let counts = [
        ("validators", f64::from(validators)),
        ("transactions", report.transactions as f64),
        ("superblocks", report.heights as f64),
        ("longest_delay_ms", longest as f64 / 1_000.0),
        ("certificate_ms_p50", ms(0.5)),
        ("certificate_ms_p99", ms(0.99)),
        ("certificate_delays_p50", ms(0.5) * 1_000.0 / longest as f64),
        ("frames_per_superblock", each(report.frames)),
        ("bytes_per_superblock", each(report.bytes)),
        ("busiest_processor_ms_per_superblock", each(report.busiest) / 1_000.0),
    ];
    let of_kinds = report.kinds.iter().flat_map(|(kind, (frames, bytes))| {
        [
            (format!("{kind}_frames_per_superblock"), each(*frames)),
            (format!("{kind}_bytes_per_superblock"), each(*bytes)),
        ]
    });
    counts.into_iter().map(|(name, count)| (name.to_owned(), count)).chain(of_kinds).collect()
}

/// Runs a network drawn from a seed.
type NetworkRun = fn(u64, Protocol) -> Result<validators::NetworkReport, Failure>;

fn run_consensus(
    seeds: RangeInclusive<u64>,
    protocol: Protocol,
    (option, run): (&str, NetworkRun),
    json: bool,
) -> anyhow::Result<ExitCode> {
    // The failure is reported with its seed below.
    std::panic::set_hook(Box::new(|_| {}));
    let results = run_all(seeds, |seed| run(seed, protocol));
    let failures: Vec<&Failure> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    let sum = |count: fn(&validators::NetworkReport) -> u64| results.iter().flatten().map(count).sum::<u64>();
    let counts = [
        ("seeds", results.len() as u64),
        ("superblocks", sum(|report| report.heights)),
        ("transactions", sum(|report| report.transactions)),
        ("frames", sum(|report| report.frames)),
        ("restarts", sum(|report| report.restarts)),
        ("evidence", sum(|report| report.evidence)),
        ("synced_heights", sum(|report| report.synced)),
        ("opened_envelopes", sum(|report| report.opened)),
        ("sealed_orders", sum(|report| report.sealed_orders)),
    ];
    let engine = if protocol == Protocol::Dbft { "" } else { " --engine tendermint" };
    Ok(print_report(&counts, &failures, &format!("walras-lab sim --consensus{engine}{option}"), json))
}

fn run_lanes(seeds: RangeInclusive<u64>, shards: u16, json: bool) -> anyhow::Result<ExitCode> {
    // The failure is reported with its seed below.
    std::panic::set_hook(Box::new(|_| {}));
    let results = run_all(seeds, |seed| run_lane(seed, LaneOptions { shards, ..LaneOptions::default() }));
    let failures: Vec<&Failure> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    let sum = |count: fn(&LaneReport) -> u64| results.iter().flatten().map(count).sum::<u64>();
    let counts = [
        ("seeds", results.len() as u64),
        ("blocks", sum(|report| report.blocks)),
        ("steps", sum(|report| report.steps)),
        ("payments", sum(|report| report.payments)),
        ("certified", sum(|report| report.certified)),
        ("settled", sum(|report| report.settled)),
        ("credits", sum(|report| report.credits)),
        ("verdicts", sum(|report| report.verdicts)),
        ("crashes", sum(|report| report.crashes)),
        ("convicted", sum(|report| report.convicted)),
        ("came_home", sum(|report| report.came_home)),
        ("group_keys", sum(|report| report.group_keys)),
        ("aggregates", sum(|report| report.aggregates)),
        ("thresholds", sum(|report| report.thresholds)),
        ("cases", sum(|report| report.cases)),
        ("expired", sum(|report| report.expired)),
        ("proven", sum(|report| report.proven)),
        ("withheld", sum(|report| report.withheld)),
        ("shown", sum(|report| report.shown)),
        ("stripped", sum(|report| report.stripped)),
        ("unregistered", sum(|report| report.unregistered)),
        ("poor", sum(|report| report.poor)),
        ("restarts", sum(|report| report.restarts)),
        ("carried", sum(|report| report.carried)),
        ("aside", sum(|report| report.aside)),
        ("outdated", sum(|report| report.outdated)),
        ("terms", sum(|report| report.terms)),
        ("late_deposits", sum(|report| report.late_deposits)),
        ("no_way_in", sum(|report| report.no_way_in)),
        ("ways_out", sum(|report| report.ways_out)),
    ];
    let option = if shards == 1 { String::new() } else { format!(" --shards {shards}") };
    Ok(print_report(&counts, &failures, &format!("walras-lab sim --lane{option}"), json))
}

fn run_markets(seeds: RangeInclusive<u64>, json: bool) -> ExitCode {
    // The failure is reported with its seed below.
    std::panic::set_hook(Box::new(|_| {}));
    let results = run_all(seeds, |seed| run_market(seed, MarketOptions::default()));
    let failures: Vec<&Failure> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    let sum = |count: fn(&MarketReport) -> u64| results.iter().flatten().map(count).sum::<u64>();
    let counts = [
        ("seeds", results.len() as u64),
        ("blocks", sum(|report| report.blocks)),
        ("steps", sum(|report| report.steps)),
        ("orders", sum(|report| report.orders)),
        ("orders_refused", sum(|report| report.refused)),
        ("orders_forged", sum(|report| report.forged)),
        ("reports", sum(|report| report.reports)),
        ("settled", sum(|report| report.settled)),
        ("busts", sum(|report| report.busts)),
        ("void_settles", sum(|report| report.voids)),
        ("refused_in_blocks", sum(|report| report.unpaid)),
        ("restarts", sum(|report| report.restarts)),
        ("fences", sum(|report| report.fences)),
        ("hostile_venues", sum(|report| report.hostile)),
        ("convicted", sum(|report| report.convicted)),
        ("claimed", sum(|report| report.claimed)),
        ("unproved", sum(|report| report.unproved)),
        ("told_by_sessions", sum(|report| report.told)),
        ("frozen", sum(|report| report.frozen)),
        ("recalled", sum(|report| report.recalled)),
        ("recovered", sum(|report| report.recovered)),
        ("links_cut", sum(|report| report.cuts)),
    ];
    print_report(&counts, &failures, "walras-lab sim --market", json)
}

fn run_edges(seeds: RangeInclusive<u64>, json: bool) -> ExitCode {
    let results = run_all(seeds, |seed| {
        let report = run_edge(&EdgeSetup::drawn(seed));
        let what = report.violations.join("; ");
        if what.is_empty() { Ok(report) } else { Err(Failure { seed, height: 0, what }) }
    });
    let failures: Vec<&Failure> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    let sum = |count: &dyn Fn(&EdgeReport) -> u64| results.iter().flatten().map(count).sum::<u64>();
    let mut counts = vec![("seeds", results.len() as u64), ("events", sum(&|report| report.events))];
    let names = results.iter().flatten().next().map(|report| report.counters.clone()).unwrap_or_default();
    counts.extend(names.iter().map(|(name, _)| (*name, sum(&|report| report.count(name)))));
    print_report(&counts, &failures, "walras-lab sim --edge", json)
}

/// Runs each mistake with the seed that finds it, and prints what the check says.
fn run_mistakes(json: bool) -> ExitCode {
    // The failure is reported with its mistake below.
    std::panic::set_hook(Box::new(|_| {}));
    let all: Vec<FoundMistake> = found().collect();
    let rows = run_all(0..=all.len() as u64 - 1, |at| {
        let one = all[at as usize];
        let says = one.with_mistake().err().map(|failure| failure.what).filter(|what| what.contains(one.says));
        Ok((one, says))
    });
    let rows: Vec<_> = rows.into_iter().flatten().collect();
    for (one, says) in &rows {
        let (name, world) = (format!("{:?}", one.mistake), format!("{:?}", one.scene));
        if json {
            println!("{}", json!({"mistake": name, "world": world, "seed": one.seed, "found": says}));
        } else {
            let says = says.as_deref().unwrap_or("NOT FOUND").lines().next().unwrap_or_default().to_owned();
            println!("{name:<40} {world:<12} seed {:>3}  {says}", one.seed);
        }
    }
    if rows.iter().all(|(_, says)| says.is_some()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints the totals and the failed seeds: each is replayed with `command --seed N`.
fn print_report(counts: &[(&str, u64)], failures: &[&Failure], command: &str, json: bool) -> ExitCode {
    if json {
        let mut fields: serde_json::Map<String, Value> =
            counts.iter().map(|(name, count)| ((*name).into(), (*count).into())).collect();
        let failure =
            |failure: &&Failure| json!({"seed": failure.seed, "height": failure.height, "what": failure.what});
        fields.insert("failures".into(), failures.iter().map(failure).collect());
        println!("{}", Value::from(fields));
    } else {
        counts.iter().for_each(|(name, count)| println!("{:<20} {count:>10}", name.replace('_', " ")));
        for failure in failures {
            println!("\nBROKEN: {failure}\nreplay it with: {command} --seed {}", failure.seed);
        }
        if failures.is_empty() {
            println!("\nevery invariant held");
        }
    }
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_crash_points(seed: u64, blocks: u64, json: bool) -> anyhow::Result<ExitCode> {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} blocks, {eta} left").expect("a sound template");
    let progress = ProgressBar::new(blocks).with_style(style);
    let report = crash_points(seed, blocks, |height| progress.set_position(height));
    progress.finish_and_clear();
    let report = match report {
        Ok(report) => report,
        Err(failure) => {
            println!("BROKEN: {failure}\nreplay it with: walras-lab sim --crash-points {blocks} --seed {seed}");
            return Ok(ExitCode::FAILURE);
        }
    };
    let counts = [
        ("blocks", report.blocks),
        ("points", report.points),
        ("crashes", report.crashes),
        ("to_the_end", report.to_the_end),
    ];
    if json {
        let fields: serde_json::Map<String, Value> =
            counts.into_iter().map(|(name, count)| (name.into(), count.into())).collect();
        println!("{}", Value::from(fields));
    } else {
        counts.iter().for_each(|(name, count)| println!("{:<20} {count:>10}", name.replace('_', " ")));
        println!("\nevery crash was recovered from");
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs are independent: as many run at once as there are cores.
fn run_all<R: Send>(
    seeds: RangeInclusive<u64>,
    run: impl Fn(u64) -> Result<R, Failure> + Sync,
) -> Vec<Result<R, Failure>> {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} seeds, {eta} left").expect("a sound template");
    let progress = ProgressBar::new((seeds.end() - seeds.start()).saturating_add(1)).with_style(style);
    let seeds = Mutex::new(seeds);
    let next = || seeds.lock().expect("runs do not panic").next();
    let one = |seed| {
        let result = (seed, run(seed));
        progress.inc(1);
        result
    };
    let work = || std::iter::from_fn(next).map(one).collect::<Vec<_>>();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut results = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("runs do not panic")).collect::<Vec<_>>()
    });
    progress.finish_and_clear();
    results.sort_by_key(|(seed, _)| *seed);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Names and totals of the counters of all runs.
fn sums(reports: &[&SimReport]) -> [(&'static str, u64); 10] {
    let sum = |count: fn(&SimReport) -> u64| reports.iter().map(|report| count(report)).sum();
    [
        ("blocks", sum(|report| report.blocks)),
        ("submitted", sum(|report| report.submitted)),
        ("refused", sum(|report| report.refused)),
        ("acknowledged", sum(|report| report.acknowledged)),
        ("restarts", sum(|report| report.restarts)),
        ("crashes", sum(|report| report.crashes)),
        ("crashes_in_recovery", sum(|report| report.crashes_in_recovery)),
        ("disk_errors", sum(|report| report.disk_errors)),
        ("flips", sum(|report| report.flips)),
        ("flips_named", sum(|report| report.flips_named)),
    ]
}

fn as_json(reports: &[&SimReport], failures: &[&Failure]) -> Value {
    let failure = |failure: &&Failure| json!({"seed": failure.seed, "height": failure.height, "what": failure.what});
    let trace = |report: &&SimReport| json!({"seed": report.seed, "trace": report.trace});
    let mut result = json!({
        "seeds": reports.len() + failures.len(),
        "failures": failures.iter().map(failure).collect::<Vec<_>>(),
        "traces": reports.iter().map(trace).collect::<Vec<_>>(),
    });
    for (name, sum) in sums(reports) {
        result[name] = sum.into();
    }
    result
}

fn print(reports: &[&SimReport], failures: &[&Failure], one: bool) {
    println!("{:<20} {:>10}", "seeds", reports.len() + failures.len());
    for (name, sum) in sums(reports) {
        println!("{:<20} {sum:>10}", name.replace('_', " "));
    }
    if let (true, [report]) = (one, reports) {
        println!("{:<20} {}", "trace", report.trace);
    }
    for failure in failures {
        println!("\nBROKEN: {failure}");
    }
    if failures.is_empty() {
        println!("\nevery invariant held");
    }
}
