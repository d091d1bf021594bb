//! A superblock that is executed and made durable at once, or sub-block by sub-block (Smart Red Belly §3.3, figure 4),
//! without consensus, signatures and clients: what remains is what the paper says makes the difference, the writes.
//!
//! The same number of payments goes through one block, or through as many blocks as there are parts. Each block is
//! appended to the log and synced, applied, its tries are hashed, and its receipts are appended, as in a node, but one
//! after the other, so that each can be timed.

use std::path::Path;
use std::time::Instant;

use kernel::Dice;
use ledger::{Ledger, Roots, Signatures};
use node::receipts;
use primitives::{Superblock, Transaction};
use serde_json::{Value, json};
use store::{RealDisk, Store};

use crate::exchange::Error;
use crate::payments::payments;
use crate::population::{Population, block};
use crate::scaling::median;

/// What to measure.
#[derive(Clone, Debug)]
pub struct SuperblockPartsOptions {
    /// Payments in a superblock.
    pub transactions: usize,
    /// Accounts, which pay each other.
    pub accounts: usize,
    /// Into how many blocks a superblock is divided.
    pub parts: Vec<usize>,
    /// Superblocks of each kind, in turn.
    pub rounds: usize,
}

/// Milliseconds of a superblock by stage: log, application, tries, receipts.
type Stages = [f64; 4];

struct PartsFixture {
    ledger: Ledger,
    roots: Roots,
    store: Store<RealDisk>,
}

impl PartsFixture {
    /// Executes payments in this many blocks.
    fn superblock(&mut self, payments: &[Transaction], parts: usize) -> Result<Stages, Error> {
        let mut all = Stages::default();
        for part in payments.chunks(payments.len().div_ceil(parts.max(1)).max(1)) {
            let stages = self.block(block(&self.ledger, part.to_vec()))?;
            all.iter_mut().zip(stages).for_each(|(sum, stage)| *sum += stage);
        }
        Ok(all)
    }

    fn block(&mut self, block: Superblock) -> Result<Stages, Error> {
        let block = Superblock { parent_root: self.roots.parts().root(), ..block };
        let mut last = Instant::now();
        let mut stage = || {
            let (begun, now) = (last, Instant::now());
            last = now;
            (now - begun).as_secs_f64() * 1e3
        };
        self.store.append(block.height, &block.to_bytes())?;
        self.store.sync()?;
        let logged = stage();
        let applied = self.ledger.apply(&block, Signatures::Valid, &mut |_| {})?;
        assert!(applied.outcomes.iter().all(|outcome| outcome.refusal().is_none()), "every payment counts");
        let executed = stage();
        self.roots.apply(&applied.changes);
        let hashed = stage();
        self.store.append_receipts(block.height, &borsh::to_vec(&receipts(&block, &applied))?)?;
        Ok([logged, executed, hashed, stage()])
    }
}

/// One row for each number of parts, with medians of the rounds. The log is made below `directory`.
///
/// # Errors
/// If the store cannot be opened or written.
pub fn run(options: &SuperblockPartsOptions, directory: &Path) -> Result<Vec<Value>, Error> {
    let mut population = Population::new(options.accounts, 2, false);
    let ledger = Ledger::new(&population.genesis())?;
    let (store, _) = Store::open(RealDisk::new(directory.join("log"))?, store::Options::default())?;
    let mut fixture = PartsFixture { roots: Roots::of(&ledger), ledger, store };
    let mut random = Dice::new(4);
    let mut times: Vec<Vec<Stages>> = vec![Vec::new(); options.parts.len()];
    // The first round is not counted: it makes the log's files.
    for _ in 0..=options.rounds {
        for (parts, times) in options.parts.iter().zip(&mut times) {
            let unsigned = payments(&mut population, options.accounts, options.transactions, &mut random);
            let signed = population.sign(unsigned, None);
            times.push(fixture.superblock(&signed, *parts)?);
        }
    }
    let rows: Vec<(usize, Stages, f64)> = options
        .parts
        .iter()
        .zip(times)
        .map(|(parts, times)| {
            let of = |value: &dyn Fn(&Stages) -> f64| median(times[1..].iter().map(value).collect());
            let stages = [0, 1, 2, 3].map(|stage| of(&|times: &Stages| times[stage]));
            (*parts, stages, of(&|times: &Stages| times.iter().sum()))
        })
        .collect();
    let at_once = rows.first().map_or(f64::NAN, |(.., ms)| *ms);
    let row = |(parts, [log, execution, tries, receipts], ms): (usize, Stages, f64)| {
        json!({
            "parts": parts, "log_ms": log, "execution_ms": execution, "tries_ms": tries, "receipts_ms": receipts,
            "superblock_ms": ms, "transactions_per_second": options.transactions as f64 / ms * 1e3,
            "over_at_once": at_once / ms,
        })
    };
    Ok(rows.into_iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_blocks_as_parts_are_logged_and_their_stages_make_up_the_time() {
        let directory = tempfile::tempdir().expect("a folder");
        let options = SuperblockPartsOptions { transactions: 60, accounts: 50, parts: vec![1, 4], rounds: 2 };
        let rows = run(&options, directory.path()).expect("runs");
        let disk = RealDisk::new(directory.path().join("log")).expect("opens");
        let (store, _) = Store::open(disk, store::Options::default()).expect("opens");
        assert_eq!(store.last_height(), 3 * (1 + 4), "rounds and one that is not counted");
        for row in rows {
            let number = |name: &str| row[name].as_f64().expect("a number");
            for stage in ["log_ms", "execution_ms", "tries_ms", "receipts_ms"] {
                assert!(number(stage) > 0.0 && number(stage) < number("superblock_ms") * 1.5, "{stage}: {row}");
            }
            assert!((number("transactions_per_second") * number("superblock_ms") - 60e3).abs() < 1e-6);
        }
    }
}
