//! The payment lane end to end: shards on sockets with durable logs, and a client that pays as fast as they answer.
//!
//! All validators and the client share this machine, so the figure is that of all together. It is compared with a
//! *ceiling*: the rate of the same cores if only signatures and hashes cost time, computed from their costs measured
//! in the same run. Each output is paid three times: from an output of the genesis; by its recipient, who proves the
//! input by a certificate; and once more after all of the second payments are settled, so that shards have verified the
//! certificates already. A wallet settles in the background, so the third is how money moves that was not just paid.
//!
//! With several shards, a validator's outputs are divided among them by their owners. Each shard has its own thread,
//! log, socket and key, and the same load as a single one. All share one machine here, so what shows whether shards
//! scale is the processor time and the bytes of a payment: they should be the same with any number of shards. One shard
//! of each validator may also be run alone, as if each had a machine (`only`).
//!
//! A *variant* changes one thing: shards and client use TLS; the client signs requests as it sends them and not
//! beforehand; validators keep no verified roots, so that each is cold, and is verified once for the requests that are
//! taken together. In trees of one payment each root is cold. There are also rows without sockets (`lane_rows.rs`).

use std::collections::BTreeMap;
use std::hint::black_box;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use lane::{FileLog, LaneShard, ShardLimits, ShardSetup};
use payments::{
    AssetRule, Holding, LaneCommittee, LaneRules, LaneSettings, LogOwner, Output, OutputId, OutputProof, PaymentView,
    Recipient, SchemeCosts, SignedPayment, StatementKind, settle_request,
};
use primitives::{Digest, SecretKey, verify_all};
use rayon::prelude::*;
use serde_json::{Value, json};
use store::RealDisk;

use crate::exchange::Error;
use crate::lane_attacks::{LaneAttack, LaneAttackOptions};
use crate::lane_rows::{self, Item, LaneRowsOptions};
use crate::measurement::{BenchFolder, BenchResult, BenchSteps, Measurement, count};

mod load;
mod owners;
mod share;

use load::{LoadNetwork, loads};
use owners::{Owners, holdings_of};

/// What to measure.
#[derive(Clone, Debug, clap::Args)]
pub struct PaymentsLaneOptions {
    /// Validators.
    #[arg(long, default_value_t = 4, value_parser = count(1..=255))]
    pub validators: usize,
    /// Shards of each validator, all on this machine.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub shards: u16,
    /// Run the shard of this number of each validator, without the others.
    #[arg(skip)]
    pub only: Option<u16>,
    /// Payments of each shard in each phase.
    #[arg(long, default_value_t = 20_000, value_parser = count(1..))]
    pub payments: usize,
    /// Maximum number of payments in flight, of each shard.
    #[arg(long, default_value_t = 4_096, value_parser = count(1..))]
    pub window: usize,
    /// Leaves of a tree, for each run; 1 is the naive scheme.
    #[arg(long, value_delimiter = ',', default_values_t = [1usize, 64, 256])]
    pub leaves: Vec<usize>,
    /// Variants to run with the last of `leaves`; plain runs come first.
    #[arg(skip)]
    pub variants: Vec<LaneVariant>,
    /// Whether the payments that were settled are paid on.
    #[arg(skip = true)]
    pub from_settled: bool,
    /// The measurements without sockets, if there are to be any.
    #[arg(skip)]
    pub rows: Option<LaneRowsOptions>,
}

/// With TLS, without it, or both.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum TlsRuns {
    /// With it.
    On,
    /// Without it.
    Off,
    /// One after the other.
    Both,
}

/// The payment lane: shards on sockets with durable logs, compared with what signatures and hashes alone allow.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  walras-lab bench payments-lane --json
  walras-lab bench payments-lane --validators 4 --payments 50000 --leaves 256
  walras-lab bench payments-lane --quick --tls on
  walras-lab bench payments-lane --attack frames --json       # a running network, while it is attacked")]
pub struct PaymentsLaneArgs {
    /// Instead: latency of payers of a running network before, during and after an attack.
    #[arg(long, value_enum)]
    attack: Option<LaneAttack>,
    #[command(flatten)]
    options: PaymentsLaneOptions,
    /// Runs with TLS, without it, or both.
    #[arg(long, value_enum, default_value = "both")]
    tls: TlsRuns,
    /// Few payments: only a check that everything runs.
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    folder: BenchFolder,
}

impl Measurement for PaymentsLaneArgs {
    fn measured(self, say: &mut BenchSteps) -> BenchResult {
        let PaymentsLaneArgs { attack, mut options, tls, quick, folder } = self;
        if let Some(attack) = attack {
            let attack = LaneAttackOptions::of(attack, options.validators, quick);
            return folder.with(|folder| crate::lane_attacks::run(&attack, folder, say));
        }
        options.variants = match tls {
            TlsRuns::On => vec![LaneVariant::Tls],
            TlsRuns::Off => vec![LaneVariant::Live, LaneVariant::ColdRoots],
            TlsRuns::Both => vec![LaneVariant::Tls, LaneVariant::Live, LaneVariant::ColdRoots],
        };
        options.rows = Some(if quick { LaneRowsOptions::QUICK } else { LaneRowsOptions::FULL });
        options.payments = if quick { options.payments.min(256) } else { options.payments };
        folder.with(|folder| run(&options, folder, say))
    }
}

/// The change of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneVariant {
    /// Nothing.
    Plain,
    /// Shards and client use TLS.
    Tls,
    /// The client builds and signs requests as it sends them.
    Live,
    /// Validators keep no verified roots.
    ColdRoots,
}

const NETWORK: Digest = Digest([7; 32]);
fn key(kind: u8, number: usize) -> SecretKey {
    let mut seed = [kind; 32];
    seed[..8].copy_from_slice(&(number as u64).to_le_bytes());
    SecretKey::from_seed(seed)
}

fn rules() -> LaneRules {
    LaneRules { network: NETWORK, assets: BTreeMap::new(), other: AssetRule { least_units: 1, fee: 0 } }
}

/// Runs everything; `say` is called with each step. Logs are written below `directory`.
///
/// # Errors
/// If a shard cannot be started, or a connection breaks.
pub fn run(options: &PaymentsLaneOptions, directory: &Path, say: &mut dyn FnMut(&str)) -> Result<Value, Error> {
    say("signatures and hashes alone");
    let costs = Costs::measured();
    let mut runs = Vec::new();
    for &leaves in &options.leaves {
        say(&format!("{} validators, trees of {leaves}", options.validators));
        let plain = LaneVariant::Plain;
        runs.push(measure(options, (leaves, plain), &costs, &directory.join(format!("leaves-{leaves}")))?);
    }
    let leaves = options.leaves.last().copied().unwrap_or(1);
    for &variant in &options.variants {
        say(&format!("{} validators, trees of {leaves}, {variant:?}", options.validators));
        runs.push(measure(options, (leaves, variant), &costs, &directory.join(format!("{variant:?}")))?);
    }
    let rows = options.rows.map(|rows| lane_rows::run(&rows, directory, say)).transpose()?;
    let quorum = committee(options).quorums().certificate;
    Ok(json!({
        "validators": options.validators,
        "shards": options.shards,
        "quorum": quorum,
        "payments": options.all_payments(),
        "window": options.window * options.running().len(),
        "cores": cores(),
        "microseconds": costs.as_json(),
        "best_leaves": costs.scheme().best_leaves(quorum),
        "runs": runs,
        "without_sockets": rows,
    }))
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Microseconds of one thread.
struct Costs {
    sign: f64,
    verify: f64,
    verify_in_batch: f64,
    hash: f64,
}

impl Costs {
    fn measured() -> Costs {
        const ITEMS: usize = 2_048;
        let keys: Vec<SecretKey> = (0..ITEMS).map(|number| key(3, number)).collect();
        let timed = |count: usize, run: &mut dyn FnMut()| {
            let begun = Instant::now();
            run();
            begun.elapsed().as_secs_f64() * 1e6 / count as f64
        };
        let mut items = Vec::new();
        let message = |number: usize| {
            let mut message = [5; 96];
            message[..8].copy_from_slice(&(number as u64).to_le_bytes());
            message
        };
        let sign = timed(ITEMS, &mut || {
            let item =
                |(number, key): (usize, &SecretKey)| Item(key.public(), message(number), key.sign(&message(number)));
            items = keys.iter().enumerate().map(item).collect();
        });
        let verify = timed(ITEMS, &mut || {
            assert!(items.iter().all(|item| item.0.verify(&item.1, &item.2)), "they are valid");
        });
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
        let verify_in_batch = timed(ITEMS, &mut || {
            assert!(one.install(|| verify_all(&items)).into_iter().all(|valid| valid), "they are valid");
        });
        const HASHES: usize = 200_000;
        let hash = timed(HASHES, &mut || {
            let mut node = [1; 64];
            for _ in 0..HASHES {
                let digest = Digest::of("walras bench lane hash", &node);
                node[..32].copy_from_slice(&digest.0);
            }
            black_box(node);
        });
        Costs { sign, verify, verify_in_batch, hash }
    }

    fn scheme(&self) -> SchemeCosts {
        let nanoseconds = |microseconds: f64| (microseconds * 1e3) as u32;
        SchemeCosts { hash: nanoseconds(self.hash), sign: nanoseconds(self.sign), verify: nanoseconds(self.verify) }
    }

    /// Payments per second of all cores, if `validators` and a client did only cryptography: each validator checks the
    /// owner's signature in a batch and its share of roots and paths, and signs. The client checks answers.
    fn ceiling(&self, validators: usize, quorum: usize, leaves: usize) -> f64 {
        let (trees, path) = (1.0 / leaves as f64, f64::from(leaves.ilog2()) * self.hash);
        let certificate = quorum as f64 * (self.verify * trees + path);
        let validator = self.verify_in_batch + certificate + self.sign * trees + 2.0 * self.hash;
        let client = validators as f64 * (self.verify * trees + path);
        cores() as f64 * 1e6 / (validators as f64 * validator + client)
    }

    fn as_json(&self) -> Value {
        let Costs { sign, verify, verify_in_batch, hash } = self;
        json!({ "sign": sign, "verify": verify, "verify_in_a_batch_of_256": verify_in_batch, "hash": hash })
    }
}

/// The key of a validator's shard.
fn shard_key(validator: u8, shard: u16) -> SecretKey {
    key(2, usize::from(shard) << 8 | usize::from(validator))
}

fn committee(options: &PaymentsLaneOptions) -> LaneCommittee {
    let keys = |validator| (0..options.shards).map(|shard| shard_key(validator, shard).public()).collect();
    LaneCommittee::new(NETWORK, 0, (0..options.validators as u8).map(keys).collect())
}

impl PaymentsLaneOptions {
    /// Numbers of the shards that run.
    fn running(&self) -> Vec<u16> {
        self.only.map_or_else(|| (0..self.shards).collect(), |only| vec![only])
    }

    /// Payments of each phase, of all shards that run.
    fn all_payments(&self) -> usize {
        self.payments * self.running().len()
    }
}

/// The limits of the shards. Hundreds of them and their client may share a few cores here. Time-outs against slow
/// clients would end the measurement because of its own load.
fn limits() -> ShardLimits {
    const PATIENCE: Duration = Duration::from_secs(3_600);
    ShardLimits { reply_bytes: 256 << 20, idle: PATIENCE, request: PATIENCE, ..ShardLimits::default() }
}

/// A shard of a validator, as a client reaches it.
struct RunningShard {
    validator: u8,
    number: u16,
    shard: LaneShard,
}

fn start(
    options: &PaymentsLaneOptions,
    (leaves, variant): (usize, LaneVariant),
    coins: &[Holding],
    directory: &Path,
) -> Result<Vec<RunningShard>, Error> {
    let backed: Vec<(OutputId, Output)> = coins.iter().map(|coin| (coin.id, coin.output)).collect();
    let committee = committee(options);
    let start = |(validator, number): (u8, u16)| {
        let is_own = |(_, output): &&(OutputId, Output)| match output.to {
            Recipient::Key(owner) => committee.shard_of(validator, &owner) == Ok(number),
            _ => false,
        };
        let settings = LaneSettings {
            rules: rules(),
            committee: committee.clone(),
            previous: None,
            validator,
            shard: number,
            now: 0,
            leaves,
            entries_max: 1 << 26,
            // More than any window: a busy validator refuses, and the generator sends nothing twice.
            trees_waiting_max: 1 << 16,
            checks_per_peer: 1_000_000,
            checks_per_tick: 1_000_000,
            roots_per_validator: if variant == LaneVariant::ColdRoots { 0 } else { 1 << 16 },
        };
        let disk = RealDisk::new(directory.join(format!("{validator}-{number}")))?;
        FileLog::create(&disk, &LogOwner { network: NETWORK, home: 0, validator, shard: number })?;
        let setup = ShardSetup {
            settings,
            key: shard_key(validator, number),
            bls_key: None,
            share: None,
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            tls: variant == LaneVariant::Tls,
            proven: Vec::new(),
            backed: backed.iter().filter(is_own).copied().collect(),
            peers: None,
            limits: limits(),
            known: Default::default(),
            post: Box::new(drop),
        };
        Ok(RunningShard { validator, number, shard: LaneShard::start(setup, &disk)? })
    };
    let running = options.running();
    let all = (0..options.validators as u8).flat_map(|of| running.iter().map(move |shard| (of, *shard)));
    all.map(start).collect()
}

fn measure(
    options: &PaymentsLaneOptions,
    (leaves, variant): (usize, LaneVariant),
    costs: &Costs,
    directory: &Path,
) -> Result<Value, Error> {
    let committee = committee(options);
    let quorum = committee.quorums().certificate;
    let owners = Owners::new(options, &committee);
    let coin = |index: usize| {
        let id = OutputId::of_genesis(&NETWORK, 0, index as u32);
        Holding { id, output: owners.output(index, 0), proof: OutputProof::Ledger }
    };
    let coins: Vec<Holding> = (0..options.all_payments()).map(coin).collect();
    let shards = start(options, (leaves, variant), &coins, directory)?;
    let window = options.window;
    let network = LoadNetwork { shards: &shards, committee: &committee, window, leaves, variant, costs };
    let build = |index: usize| owners.pay(index, 0, coins[index].clone());
    let first: Vec<SignedPayment> = (0..coins.len()).into_par_iter().map(build).collect::<Result<_, String>>()?;
    let confirmation = StatementKind::Confirmation;
    let (phase_one, certificates) = network.pay_all(confirmation, &loads(&first)?, &build)?;
    let received = holdings_of(&committee, &first, &certificates)?;
    let build = |index: usize| owners.pay(index, 1, received[index].clone());
    let second: Vec<SignedPayment> = (0..coins.len()).into_par_iter().map(build).collect::<Result<_, String>>()?;
    let (phase_two, certificates) = network.pay_all(confirmation, &loads(&second)?, &build)?;
    let mut settlements = loads(&second)?;
    for (index, load) in settlements.iter_mut().enumerate() {
        let summary = PaymentView::parse(&second[index].payment)?.summary();
        load.request = settle_request(&summary, &certificates[index]);
    }
    // A settlement has no signature of the client.
    let unsigned = LoadNetwork { variant: LaneVariant::Plain.with_tls(variant), ..network };
    let (settled, _) = unsigned.pay_all(StatementKind::Acknowledgement, &settlements, &build)?;
    let from_settled = if options.from_settled {
        let received = holdings_of(&committee, &second, &certificates)?;
        let build = |index: usize| owners.pay(index, 2, received[index].clone());
        let third: Vec<SignedPayment> = (0..coins.len()).into_par_iter().map(build).collect::<Result<_, String>>()?;
        network.pay_all(confirmation, &loads(&third)?, &build)?.0
    } else {
        Value::Null
    };
    let rate = |phase: &Value| phase["payments_per_second"].as_f64().unwrap_or(0.0);
    let with_settlement = 1.0 / (1.0 / rate(&phase_two) + 1.0 / rate(&settled));
    let syncs: u64 = shards.iter().map(|running| running.shard.counts().syncs.load(Ordering::Relaxed)).sum();
    Ok(json!({
        "leaves": leaves,
        "tls": variant == LaneVariant::Tls,
        "load": if variant == LaneVariant::Live { "live" } else { "presigned" },
        "roots": if variant == LaneVariant::ColdRoots { "cold" } else { "warm" },
        "ceiling_payments_per_second": costs.ceiling(options.validators, quorum, leaves).round(),
        "from_genesis": phase_one,
        "from_certificates": phase_two,
        "settlement": settled,
        "from_settled": from_settled,
        "payments_per_second_settled_one_after_the_other": with_settlement.round(),
        "syncs": syncs,
    }))
}

impl LaneVariant {
    /// The plain run, with TLS if `other` has it.
    fn with_tls(self, other: LaneVariant) -> LaneVariant {
        if other == LaneVariant::Tls { other } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_payments_are_confirmed_and_settled_in_each_scheme_and_variant() {
        let options = PaymentsLaneOptions {
            validators: 4,
            shards: 3,
            only: None,
            payments: 70,
            window: 40,
            leaves: vec![1, 64],
            variants: vec![LaneVariant::Tls, LaneVariant::Live, LaneVariant::ColdRoots],
            from_settled: true,
            rows: Some(LaneRowsOptions { payments: 16, spent: 1_000, logged: 1_000 }),
        };
        let directory = tempfile::tempdir().expect("a directory");
        let report = run(&options, directory.path(), &mut |_| {}).expect("it ends well");
        let runs = report["runs"].as_array().expect("runs");
        assert_eq!(runs.len(), 5);
        for run in runs {
            for phase in ["from_genesis", "from_certificates", "settlement", "from_settled"] {
                assert!(run[phase]["payments_per_second"].as_f64().expect("a number") > 0.0, "{run}");
                let client = &run[phase]["processor_us_per_payment"]["client"];
                assert!(client.as_f64().expect("a number") > 0.0, "{run}");
            }
        }
    }
    #[test]
    fn a_shard_alone_gets_the_load_that_it_has_beside_others() {
        let options = PaymentsLaneOptions {
            validators: 4,
            shards: 3,
            only: Some(2),
            payments: 50,
            window: 40,
            leaves: vec![64],
            variants: vec![],
            from_settled: false,
            rows: None,
        };
        let directory = tempfile::tempdir().expect("a directory");
        let alone = run(&options, directory.path(), &mut |_| {}).expect("it ends well");
        let together = PaymentsLaneOptions { only: None, ..options };
        let directory = tempfile::tempdir().expect("a directory");
        let together = run(&together, directory.path(), &mut |_| {}).expect("it ends well");
        for phase in ["from_certificates", "settlement"] {
            let requests = |report: &Value| report["runs"][0][phase]["bytes_per_payment"]["request"].as_f64();
            assert!(requests(&alone).is_some_and(|bytes| bytes > 0.0), "{alone}");
        }
        assert_eq!(alone["payments"], 50);
        assert_eq!(together["payments"], 150);
    }
}
