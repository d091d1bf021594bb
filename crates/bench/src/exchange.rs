//! Whole blocks of the paper's workload (SPEEDEX §7): proposed, validated and replayed, on one thread and on
//! several, with and without signatures and persistence; and how throughput changes while the book fills (figure 3).
//!
//! Consecutive measured blocks differ in how they are run and not in what they are, so compared figures are measured
//! within seconds. A block is *proposed* from pending transactions: each is reserved (K.6), the block is logged if
//! persistence is requested, and applied with the solver. It is *validated* as every validator does: applied with the
//! solver. It is *replayed* with its batch, which is computed beforehand on a clone and only checked (K.3). At the
//! same time, on the same threads, the tries of the block before are hashed, as in a node, where the root of a block
//! is signed with the next. If signatures are requested, as many as the block has are checked, as those of the next
//! block are in a node. Times include all of this: every block's time contains one block's worth of all work, and
//! nothing is deferred.

mod ends;
mod samples;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use ledger::{Applied, Attached, Changes, Ledger, Reservations, Roots, Signatures};
use primitives::{Price, Superblock, Transaction};
use rayon::prelude::*;
use serde_json::{Value, json};
use store::{RealDisk, Store};

use self::samples::{Clock, Kind, Sample, Samples, milliseconds};
use crate::measurement::{BenchFolder, BenchResult, BenchSteps, Measurement, ascending, count, threads};
use crate::population::{Population, block};
use crate::scaling::{ByThreads, amdahl, pools, resident_json};
use crate::trading::Trading;

pub use self::samples::BlockMode;

/// What to measure.
#[derive(Clone, Debug, clap::Args)]
pub struct ExchangeOptions {
    /// Numbers of accounts.
    #[arg(long, value_delimiter = ',', default_values_t = [100_000usize, 1_000_000])]
    pub accounts: Vec<usize>,
    /// Numbers of transactions in a block.
    #[arg(long, value_delimiter = ',', default_values_t = [10_000usize, 50_000, 100_000, 500_000])]
    pub transactions: Vec<usize>,
    /// Measured blocks of each kind.
    #[arg(long, default_value_t = 5, value_parser = count(1..))]
    pub blocks: usize,
    /// Assets.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(3..=1_000))]
    pub assets: u32,
    /// Offers that rest before anything is measured.
    #[arg(long, default_value_t = 500_000)]
    pub resting: usize,
    /// Blocks with more transactions are measured without signatures only, because signing takes long.
    #[arg(long, default_value_t = 100_000)]
    pub signed_transactions: usize,
    /// Fill the book to this number of offers in four steps and measure at each, instead of the runs on a small book.
    #[arg(long)]
    pub fill: Option<usize>,
    /// Pools that trade in each batch, at most as many as there are pairs of assets; without one the chain has none.
    #[arg(long, default_value_t = 0)]
    pub pools: usize,
    /// Numbers of offers that end in one block, at most 500,000, each measured on the book after the runs.
    #[arg(long, value_delimiter = ',', default_values_t = [100_000usize])]
    pub ends: Vec<usize>,
    /// How blocks are processed.
    #[arg(skip = BlockMode::ALL.to_vec())]
    pub modes: Vec<BlockMode>,
    /// Whether blocks on a book that fills are signed.
    #[arg(skip)]
    pub fill_signed: bool,
    /// Whether blocks on a book that fills are logged.
    #[arg(skip)]
    pub fill_logged: bool,
    /// Numbers of threads, ascending; logged blocks, and those of a book that fills, use the last.
    #[arg(long, value_delimiter = ',', default_values_t = [1usize, 2], value_parser = threads())]
    pub threads: Vec<usize>,
}

/// The paper's workload: blocks proposed, validated, replayed; and how throughput changes while the book fills.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  walras-lab bench exchange --json
  walras-lab bench exchange --accounts 1000000 --transactions 100000 --blocks 9
  walras-lab bench exchange --accounts 10000000 --transactions 500000 --fill 20000000 --json")]
pub struct ExchangeArgs {
    #[command(flatten)]
    options: ExchangeOptions,
    #[command(flatten)]
    folder: BenchFolder,
}

impl Measurement for ExchangeArgs {
    fn measured(self, say: &mut BenchSteps) -> BenchResult {
        ascending(&self.options.threads)?;
        self.folder.with(|folder| run(&self.options, folder, say))
    }
}

/// Blocks that are not measured.
const WARM_UP: usize = 2;
const FILL_STEPS: usize = 4;
const FILL_BLOCK: usize = 500_000;
const FIRST_BLOCK: usize = 10_000;

/// The reason why nothing can be measured.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// Runs everything; `say` is called with each step. Logs are written below `directory`.
///
/// # Errors
/// If the store cannot be opened or written.
///
/// # Panics
/// If the system cannot start threads.
pub fn run(options: &ExchangeOptions, directory: &Path, say: &mut dyn FnMut(&str)) -> Result<Value, Error> {
    let mut runs = Vec::new();
    for &accounts in &options.accounts {
        let run = match options.fill {
            Some(offers) => fill(options, accounts, offers, directory, say)?,
            None => sizes(options, accounts, directory, say)?,
        };
        runs.push(run);
    }
    Ok(json!({ "assets": options.assets, "blocks_of_each_kind": options.blocks, "pools": options.pools, "runs": runs }))
}

/// The state that blocks are applied to, and the sources of blocks.
struct ExchangeFixture {
    trading: Trading,
    ledger: Ledger,
    roots: Roots,
    store: Store<RealDisk>,
    pools: ByThreads<rayon::ThreadPool>,
    reservations: Reservations,
}

impl ExchangeFixture {
    fn new(
        options: &ExchangeOptions,
        accounts: usize,
        signs: bool,
        directory: &Path,
    ) -> Result<ExchangeFixture, Error> {
        let assets = options.assets;
        let population = Population::new(accounts, assets, signs);
        let pooled = (options.pools > 0).then(ledger::PoolTerms::default);
        let ledger = Ledger::new(&ledger::Genesis { pools: pooled, ..population.genesis() })?;
        let mut roots = Roots::of(&ledger);
        roots.parts();
        let trading = Trading::new(population, assets, 7);
        let log = directory.join(format!("exchange-{accounts}"));
        let (store, _) = Store::open(RealDisk::new(log)?, store::Options::default())?;
        let pools = pools(&options.threads);
        Ok(ExchangeFixture { trading, ledger, roots, store, pools, reservations: Reservations::default() })
    }

    /// Opens pools; a batch after that trades with them.
    ///
    /// # Errors
    /// If the ledger refuses one, or there are too few pairs or accounts.
    fn open_pools(&mut self, count: usize) -> Result<(), Error> {
        if count == 0 {
            return Ok(());
        }
        let opened = self.trading.pools(count);
        if opened.len() < count {
            return Err(format!("only {} pools have an account with both assets: give fewer", opened.len()).into());
        }
        let native = self.trading.population.sign(opened, None);
        let applied = self.ledger.apply(&block(&self.ledger, native), Signatures::Valid, &mut |_| {})?;
        if let Some(refusal) = applied.outcomes.iter().find_map(|outcome| outcome.refusal()) {
            return Err(format!("a pool is refused: {refusal:?}").into());
        }
        self.roots.apply(&applied.changes);
        Ok(())
    }

    /// Adds resting offers until there are `offers`.
    fn fill(&mut self, offers: usize) {
        while self.ledger.book().len() < offers {
            let count = (offers - self.ledger.book().len()).min(FILL_BLOCK);
            let resting = self.trading.resting(&self.ledger, count);
            let native = self.trading.population.sign(resting, None);
            let block = block(&self.ledger, native);
            self.roots.apply(&rest(&mut self.ledger, &block));
        }
    }

    /// The next block's transactions.
    fn native(&mut self, transactions: usize, signs: bool) -> Vec<Transaction> {
        let unsigned = self.trading.block(&self.ledger, transactions);
        let network = signs.then(|| self.ledger.network());
        self.trading.population.sign(unsigned, network.as_ref())
    }

    /// Applies a block that is not measured; returns its changes.
    fn before(&mut self, transactions: usize) -> Result<Changes, Error> {
        let native = self.native(transactions, false);
        let block = block(&self.ledger, native);
        let ledger = &mut self.ledger;
        let apply = || ledger.apply(&block, Signatures::Valid, &mut |_| {});
        let (_, pool) = self.pools.last_key_value().expect("a number of threads");
        Ok(pool.install(apply)?.changes)
    }

    /// Runs a block, and at the same time hashes the tries of the one before.
    fn sample(&mut self, transactions: usize, kind: Kind) -> Result<Sample, Error> {
        let before = self.before(transactions)?;
        let native = self.native(transactions, kind.signed);
        let others: Vec<Transaction> = if kind.signed { native.clone() } else { Vec::new() };
        let pool = &self.pools[&kind.threads];
        let network = self.ledger.network();
        let (ledger, roots, store) = (&mut self.ledger, &mut self.roots, &mut self.store);
        let reservations = &mut self.reservations;
        pool.install(|| {
            let block = (kind.mode != BlockMode::Propose).then(|| block(ledger, native.clone()));
            let replayed = block.as_ref().filter(|_| kind.mode == BlockMode::Replay);
            let attached = replayed.map(|block| attach(ledger, block)).transpose()?;
            let begun = Instant::now();
            let run = || match &block {
                Some(block) => validate(ledger, store, block, attached.as_ref(), kind),
                None => propose(ledger, store, reservations, native, kind),
            };
            let tries = || {
                let begun = Instant::now();
                roots.apply(&before);
                milliseconds(begun)
            };
            let ((done, valid), tries_ms) =
                rayon::join(|| rayon::join(run, || primitives::verify_transactions(&network, &others)), tries);
            let total_ms = milliseconds(begun);
            assert!(valid.iter().all(|valid| *valid), "every signature is good");
            let (mut sample, changes) = done?;
            roots.apply(&changes);
            sample.stages_ms.push(("tries", tries_ms));
            Ok(Sample { total_ms, ..sample })
        })
    }
}

/// The clearing that the solver finds for a block.
fn attach(ledger: &Ledger, block: &Superblock) -> Result<Attached, Error> {
    let solved = ledger.clone().apply(block, Signatures::Valid, &mut |_| {})?;
    Ok(Attached::of(&solved.batch))
}

/// Applies a block whose offers should rest: at the prices of the batch before, usually nothing trades, and then no
/// other prices need be computed.
fn rest(ledger: &mut Ledger, block: &Superblock) -> Changes {
    let valuations = ledger.assets().iter().map(|asset| asset.valuation.unwrap_or(Price::ONE)).collect();
    let nothing = Attached { valuations, trades: Vec::new(), ..Attached::default() };
    let applied = ledger
        .apply_attached(block, &nothing, Signatures::Valid, &mut |_| {})
        .or_else(|_| ledger.apply(block, Signatures::Valid, &mut |_| {}));
    applied.expect("applies").changes
}

fn propose(
    ledger: &mut Ledger,
    store: &mut Store<RealDisk>,
    reservations: &mut Reservations,
    native: Vec<Transaction>,
    kind: Kind,
) -> Result<(Sample, Changes), Error> {
    let mut clock = Clock::start();
    reservations.make_room(native.len());
    let admits = |transaction: &Transaction| reservations.admit(transaction, ledger).is_ok();
    let admitted: Vec<bool> = native.par_iter().map(admits).collect();
    let mut admitted = admitted.into_iter();
    let mut native = native;
    native.retain(|_| admitted.next().expect("one for each"));
    let block = block(ledger, native);
    clock.end("assembly");
    let applied = execute(store, &block, kind, &mut clock, |clock| {
        let applied = ledger.apply(&block, Signatures::Valid, &mut |stage| clock.end(stage.name()))?;
        assert!(
            applied.outcomes.iter().all(|outcome| outcome.refusal().is_none()),
            "a reserved transaction is not refused"
        );
        Ok(applied)
    })?;
    let native = &block.sub_blocks[0].native;
    native.par_iter().for_each(|transaction| reservations.release(transaction, ledger.fee()));
    clock.end("release");
    Ok(clock.sample(native.len(), applied))
}

fn validate(
    ledger: &mut Ledger,
    store: &mut Store<RealDisk>,
    block: &Superblock,
    attached: Option<&Attached>,
    kind: Kind,
) -> Result<(Sample, Changes), Error> {
    let mut clock = Clock::start();
    let applied = execute(store, block, kind, &mut clock, |clock| {
        let mut stage = |stage: ledger::Stage| clock.end(stage.name());
        Ok(match attached {
            Some(attached) => ledger.apply_attached(block, attached, Signatures::Valid, &mut stage)?,
            None => ledger.apply(block, Signatures::Valid, &mut stage)?,
        })
    })?;
    Ok(clock.sample(block.native_len(), applied))
}

/// Logs a block, if requested, and applies it at the same time.
fn execute(
    store: &mut Store<RealDisk>,
    block: &Superblock,
    kind: Kind,
    clock: &mut Clock,
    apply: impl FnOnce(&mut Clock) -> Result<Applied, Error>,
) -> Result<Applied, Error> {
    if !kind.persists {
        return apply(clock);
    }
    std::thread::scope(|scope| {
        let log = scope.spawn(|| {
            store.append(store.last_height() + 1, &block.to_bytes())?;
            store.sync()
        });
        let applied = apply(clock)?;
        log.join().expect("the log does not panic")?;
        clock.end("waiting for the log");
        Ok(applied)
    })
}

/// All kinds of run, in turn, each `blocks` times; before each the book is refilled to `offers`.
fn measure(
    fixture: &mut ExchangeFixture,
    offers: usize,
    transactions: usize,
    kinds: &[Kind],
    blocks: usize,
) -> Result<BTreeMap<Kind, Samples>, Error> {
    let mut samples: BTreeMap<Kind, Samples> = BTreeMap::new();
    for _ in 0..blocks {
        for &kind in kinds {
            fixture.fill(offers);
            let sample = fixture.sample(transactions, kind)?;
            samples.entry(kind).or_default().add(sample);
        }
    }
    Ok(samples)
}

fn kinds(options: &ExchangeOptions, signed: bool) -> Vec<Kind> {
    let mut kinds = Vec::new();
    for &mode in &options.modes {
        let kind = |signed, persists, threads| Kind { mode, signed, persists, threads };
        kinds.extend(options.threads.iter().map(|threads| kind(false, false, *threads)));
        kinds.extend(options.threads.last().map(|threads| kind(false, true, *threads)));
        kinds.extend(options.threads.iter().filter(|_| signed).map(|threads| kind(true, false, *threads)));
    }
    kinds
}

fn sizes(
    options: &ExchangeOptions,
    accounts: usize,
    directory: &Path,
    say: &mut dyn FnMut(&str),
) -> Result<Value, Error> {
    let signs = options.transactions.iter().any(|transactions| *transactions <= options.signed_transactions);
    say(&format!("making {accounts} accounts and {} resting offers", options.resting));
    let mut fixture = ExchangeFixture::new(options, accounts, signs, directory)?;
    let threads = threads_most(options);
    fixture.open_pools(options.pools)?;
    // The first batch finds the prices for the following ones.
    fixture.sample(FIRST_BLOCK, Kind { mode: BlockMode::Propose, signed: false, persists: false, threads })?;
    fixture.fill(options.resting);
    let mut runs = Vec::new();
    for &transactions in &options.transactions {
        let kinds = kinds(options, transactions <= options.signed_transactions);
        say(&format!("{accounts} accounts, blocks of {transactions}: {} kinds of run", kinds.len()));
        for kind in kinds.iter().cycle().take(WARM_UP) {
            fixture.sample(transactions, *kind)?;
        }
        let samples = measure(&mut fixture, options.resting, transactions, &kinds, options.blocks)?;
        runs.push(json!({
            "transactions_per_block": transactions,
            "runs": samples.iter().map(|(kind, samples)| samples.as_json(*kind)).collect::<Vec<_>>(),
            "scaling": scaling(&samples),
        }));
    }
    let mut ended = Vec::new();
    for &count in &options.ends {
        say(&format!("{accounts} accounts, {count} offers end at once"));
        ended.extend(ends::ends(&fixture, count, options.blocks)?);
    }
    Ok(json!({ "accounts": accounts, "sizes": runs, "ends": ended, "memory": weight(&mut fixture) }))
}

fn scaling(samples: &BTreeMap<Kind, Samples>) -> Vec<Value> {
    let mut pairs = Vec::new();
    for (kind, many) in samples.iter().filter(|(kind, _)| kind.threads > 1) {
        if let Some(one) = samples.get(&Kind { threads: 1, ..*kind }) {
            let amdahl = amdahl(one.ms(), kind.threads, many.ms());
            pairs.push(json!({ "mode": kind.mode.name(), "signatures": kind.signed, "amdahl": amdahl }));
        }
    }
    pairs
}

fn weight(fixture: &mut ExchangeFixture) -> Value {
    let (accounts, offers) = (fixture.ledger.accounts().len(), fixture.ledger.book().len());
    let (account_tries, offer_tries) = fixture.roots.bytes();
    let each = |bytes: usize, count: usize| bytes as f64 / count.max(1) as f64;
    json!({
        "accounts": accounts,
        "offers": offers,
        "account_bytes": each(fixture.ledger.accounts().bytes(), accounts),
        "offer_bytes": each(fixture.ledger.book().bytes(), offers),
        "account_trie_bytes": each(account_tries, accounts),
        "offer_trie_bytes": each(offer_tries, offers),
        "resident": resident_json(),
    })
}

/// Throughput from an empty book to a full one.
fn fill(
    options: &ExchangeOptions,
    accounts: usize,
    offers: usize,
    directory: &Path,
    say: &mut dyn FnMut(&str),
) -> Result<Value, Error> {
    say(&format!("making {accounts} accounts"));
    let mut fixture = ExchangeFixture::new(options, accounts, options.fill_signed, directory)?;
    fixture.open_pools(options.pools)?;
    let transactions = options.transactions.first().copied().unwrap_or(100_000);
    let (signed, persists, most) = (options.fill_signed, options.fill_logged, threads_most(options));
    let of_mode = |mode: &BlockMode| options.threads.iter().map(|threads| (*mode, *threads)).collect::<Vec<_>>();
    let kind = |(mode, threads)| Kind { mode, signed, persists, threads };
    let kinds: Vec<Kind> = options.modes.iter().flat_map(of_mode).map(kind).collect();
    // With the largest number of threads.
    let by_mode = |of: &dyn Fn(Kind) -> Option<f64>| -> BTreeMap<&str, Option<f64>> {
        kinds.iter().filter(|kind| kind.threads == most).map(|kind| (kind.mode.name(), of(*kind))).collect()
    };
    let mut steps = Vec::new();
    for step in 0..=FILL_STEPS {
        let resting = offers * step / FILL_STEPS;
        say(&format!("filling the book up to {resting} offers"));
        measure(&mut fixture, resting, transactions, &kinds, WARM_UP)?;
        let samples = measure(&mut fixture, resting, transactions, &kinds, options.blocks)?;
        let checkpoint = checkpoint(&mut fixture, transactions, kinds[0], samples[&kinds[0]].ms())?;
        steps.push(json!({
            "offers": fixture.ledger.book().len(),
            "runs": samples.iter().map(|(kind, samples)| samples.as_json(*kind)).collect::<Vec<_>>(),
            "transactions_per_second": by_mode(&|kind| Some(samples[&kind].per_second())),
            "checkpoint": checkpoint,
            "resident": resident_json(),
        }));
    }
    let full_over_empty = by_mode(&|kind| {
        let at = |step: &Value| step["transactions_per_second"][kind.mode.name()].as_f64();
        Some(at(steps.last()?)? / at(steps.first()?)?)
    });
    Ok(json!({
        "accounts": accounts,
        "transactions_per_block": transactions,
        "steps": steps,
        "full_over_empty": full_over_empty,
        "memory": weight(&mut fixture),
    }))
}

/// The largest number of threads.
fn threads_most(options: &ExchangeOptions) -> usize {
    options.threads.last().copied().unwrap_or(1)
}

/// Delay of execution by a checkpoint: taking the state, and what the next block has to copy.
fn checkpoint(fixture: &mut ExchangeFixture, transactions: usize, kind: Kind, usual_ms: f64) -> Result<Value, Error> {
    let begun = Instant::now();
    let state = fixture.ledger.clone();
    let clone_ms = milliseconds(begun);
    let shared = fixture.sample(transactions, kind)?;
    drop(state);
    Ok(json!({ "clone_ms": clone_ms, "next_block_ms": shared.total_ms, "usual_block_ms": usual_ms }))
}
