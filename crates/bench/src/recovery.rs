//! The cost of checkpoints while blocks are executed, and the time of a recovery (SPEEDEX §9 and K.2).
//!
//! A ledger of the requested size executes and logs blocks; then a checkpoint begins, and further blocks are executed
//! while another thread writes it. Execution stops only while the state is shared with that thread. The additional
//! time of later blocks is the copying of what they change, and the writer's share of the machine. Then everything is
//! dropped and recovered: the checkpoint is read, every digest checked, the tries built, the log replayed.

use std::path::Path;
use std::time::Instant;

use ledger::{Ledger, Roots, Signatures};
use node::{Replay, receipts, restore, write_checkpoint};
use primitives::Superblock;
use serde_json::{Value, json};
use store::{RealDisk, Store};

use crate::exchange::Error;
use crate::measurement::{BenchFolder, BenchResult, BenchSteps, Measurement, count};
use crate::population::{Population, block};
use crate::scaling::{median, resident_json};
use crate::trading::Trading;

/// What to measure.
#[derive(Clone, Debug, clap::Args)]
pub struct RecoveryOptions {
    /// Accounts, each with two assets.
    #[arg(long, default_value_t = 1_000_000)]
    pub accounts: usize,
    /// Resting offers.
    #[arg(long, default_value_t = 2_000_000)]
    pub offers: usize,
    /// Assets.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(3..=1_000))]
    pub assets: u32,
    /// Transactions in a block.
    #[arg(long, default_value_t = 50_000)]
    pub transactions: usize,
    /// Minimum number of blocks before the checkpoint, and during or after it.
    #[arg(long, default_value_t = 10, value_parser = count(1..))]
    pub blocks: usize,
}

/// Checkpoints during execution, and recovery from them.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  walras-lab bench recovery
  walras-lab bench recovery --accounts 10000000 --offers 20000000 --json")]
pub struct RecoveryArgs {
    #[command(flatten)]
    options: RecoveryOptions,
    #[command(flatten)]
    folder: BenchFolder,
}

impl Measurement for RecoveryArgs {
    fn measured(self, say: &mut BenchSteps) -> BenchResult {
        self.folder.with(|folder| run(&self.options, folder, say))
    }
}

/// Offers in a block that fills the book.
const FILL_BLOCK: usize = 500_000;

struct RecoveryFixture {
    trading: Trading,
    ledger: Ledger,
    roots: Roots,
    store: Store<RealDisk>,
}

impl RecoveryFixture {
    fn new(options: &RecoveryOptions, data: &Path) -> Result<RecoveryFixture, Error> {
        let population = Population::new(options.accounts, options.assets, false);
        let ledger = Ledger::new(&population.genesis())?;
        let roots = Roots::of(&ledger);
        let (store, _) = Store::open(RealDisk::new(data)?, store::Options::default())?;
        Ok(RecoveryFixture { trading: Trading::new(population, options.assets, 11), ledger, roots, store })
    }

    fn fill(&mut self, offers: usize) -> Result<(), Error> {
        while self.ledger.book().len() < offers {
            let count = (offers - self.ledger.book().len()).min(FILL_BLOCK);
            let resting = self.trading.resting(&self.ledger, count);
            let native = self.trading.population.sign(resting, None);
            let block = block(&self.ledger, native);
            self.execute(block)?;
        }
        Ok(())
    }

    fn trade(&mut self, transactions: usize) -> Result<f64, Error> {
        let unsigned = self.trading.block(&self.ledger, transactions);
        let native = self.trading.population.sign(unsigned, None);
        let block = block(&self.ledger, native);
        self.execute(block)
    }

    /// Logs and applies a block, hashes the tries and archives the receipts; returns milliseconds of the application.
    fn execute(&mut self, block: Superblock) -> Result<f64, Error> {
        let block = Superblock { parent_root: self.roots.parts().root(), ..block };
        self.store.append(block.height, &block.to_bytes())?;
        self.store.sync()?;
        let begun = Instant::now();
        let applied = self.ledger.apply(&block, Signatures::Valid, &mut |_| {})?;
        let taken = milliseconds(begun);
        self.roots.apply(&applied.changes);
        self.store.append_receipts(block.height, &borsh::to_vec(&receipts(&block, &applied))?)?;
        Ok(taken)
    }
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1_000.0
}

/// Runs everything; `say` is called with each step. The store is made below `directory`.
///
/// # Errors
/// If the store cannot be written or read, or the recovered state differs from the last one.
pub fn run(options: &RecoveryOptions, directory: &Path, say: &mut dyn FnMut(&str)) -> Result<Value, Error> {
    let data = directory.join("data");
    say("filling the ledger");
    let mut fixture = RecoveryFixture::new(options, &data)?;
    fixture.fill(options.offers)?;
    say("executing blocks");
    let before = (0..options.blocks).map(|_| fixture.trade(options.transactions)).collect::<Result<Vec<_>, _>>()?;
    say("executing blocks beside a checkpoint");
    let checkpoint = beside_checkpoint(&mut fixture, options)?;
    let (height, root, offers) = (fixture.ledger.height(), fixture.roots.parts().root(), fixture.ledger.book().len());
    let chain = fixture.ledger.chain();
    drop(fixture);
    say("recovering");
    let begun = Instant::now();
    let (mut store, found) = Store::open(RealDisk::new(&data)?, store::Options::default())?;
    let opened = milliseconds(begun);
    let reader = found.checkpoint.ok_or("the checkpoint is missing")?;
    let bytes = reader.payload_bytes();
    let ledger = restore(reader)?;
    let restored = milliseconds(begun);
    let mut replay = Replay::new(ledger);
    let hashed = milliseconds(begun);
    let blocks = found.blocks.remaining();
    replay.run(&mut store, found.blocks, true)?;
    let replayed = milliseconds(begun);
    if (replay.ledger.height(), replay.ledger.chain(), replay.root) != (height, chain, root) {
        return Err(format!(
            "recovered height {} and root {}, not {height} and {root}",
            replay.ledger.height(),
            replay.root
        )
        .into());
    }
    Ok(json!({
        "accounts": options.accounts,
        "offers": offers,
        "transactions": options.transactions,
        "threads": rayon::current_num_threads(),
        "block_ms": median(before),
        "checkpoint": checkpoint,
        "recovery": {
            "checkpoint_bytes": bytes,
            "replayed_blocks": blocks,
            "open_ms": opened,
            "restore_ms": restored - opened,
            "tries_ms": hashed - restored,
            "replay_ms": replayed - hashed,
            "total_s": replayed / 1_000.0,
            "same_root": true,
        },
        "resident": resident_json(),
    }))
}

/// Executes blocks until the checkpoint is written, but at least the requested number.
fn beside_checkpoint(fixture: &mut RecoveryFixture, options: &RecoveryOptions) -> Result<Value, Error> {
    let height = fixture.ledger.height();
    let writer = fixture.store.begin_checkpoint(height)?;
    let begun = Instant::now();
    let state = fixture.ledger.clone();
    let stopped = milliseconds(begun);
    std::thread::scope(|scope| {
        let writing = scope.spawn(move || {
            let begun = Instant::now();
            write_checkpoint(&state, writer)?;
            // Dropping the last reference to a copied state takes time.
            drop(state);
            Ok::<_, node::ExchangeError>(milliseconds(begun))
        });
        let mut during = Vec::new();
        while during.len() < options.blocks || !writing.is_finished() {
            during.push(fixture.trade(options.transactions)?);
        }
        let first = during[0];
        let written = writing.join().map_err(|_| "the writer panicked")??;
        Ok(json!({
            "stopped_ms": stopped,
            "first_block_ms": first,
            "block_ms": median(during),
            "written_s": written / 1_000.0,
        }))
    })
}
