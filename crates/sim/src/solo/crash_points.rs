//! A scripted run, crashed at every change of the disk in every way.
//!
//! A script of blocks is made once, with the state root after each. A node's steps then write it to a disk: several
//! blocks may share a sync, receipts come late, checkpoints are written while blocks are applied. After every change
//! of the disk the machine could crash: with unsynced writes lost, kept, torn at each sector of the last one, or
//! surviving one by one in any order. Each time a node recovers from the remaining data. It must find every
//! acknowledged block, have the script's state root at its height, and reach the end with the rest of the script.
//!
//! The run of the paper's appendix K.2 is the case in which offers and balances are stored separately; here one
//! checkpoint holds both, and the log everything after it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kernel::{Dice, FaultDisk, Surviving};
use ledger::{Genesis, Ledger, Roots, Signatures};
use primitives::{Digest, Height, SubBlock, Superblock};
use rayon::prelude::*;
use replica::{Restored, recover_state, write_checkpoint};
use store::{CheckpointWriter, Options, Store};

use super::clients::Clients;

/// Blocks between checkpoints, and the number of blocks after which one is finished.
const CHECKPOINT_EVERY: u64 = 9;
const CHECKPOINT_TAKES: u64 = 3;
/// Every n-th recovery continues to the end of the script; the others continue for [`GO_ON`] blocks.
const TO_THE_END: u64 = 50;
const GO_ON: u64 = 2;
const OPTIONS: Options = Options { segment_bytes: 60_000 };

/// The counters of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CrashReport {
    /// Blocks of the script.
    pub blocks: u64,
    /// Changes of the disk.
    pub points: u64,
    /// Crashes, each recovered from.
    pub crashes: u64,
    /// Number of those that continued to the end of the script.
    pub to_the_end: u64,
}

/// The blocks, with the expected results.
struct Script {
    genesis: Genesis,
    /// By height; at 0 the genesis.
    blocks: Vec<Vec<u8>>,
    receipts: Vec<Vec<u8>>,
    roots: Vec<Digest>,
}

impl Script {
    fn new(seed: u64, blocks: u64) -> Script {
        let mut dice = Dice::new(seed);
        let mut clients = Clients::new(10, 4, &mut dice);
        let genesis = clients.genesis(3);
        let mut ledger = Ledger::new(&genesis).expect("a sound genesis");
        let mut roots = Roots::of(&ledger);
        let first = roots.parts().root();
        let mut script = Script { genesis, blocks: vec![vec![]], receipts: vec![vec![]], roots: vec![first] };
        for height in 1..=blocks {
            let block = Superblock {
                height,
                parent: ledger.last_block(),
                time_ms: 1_800_000_000_000 + height,
                parent_root: script.roots[height as usize - 1],
                sub_blocks: vec![SubBlock { native: some(&mut clients, &ledger, &mut dice), ..SubBlock::default() }],
                ..Superblock::default()
            };
            let applied = ledger.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("a block on top");
            script.roots.push(roots.apply(&applied.changes));
            script.receipts.push(borsh::to_vec(&replica::receipts(&block, &applied)).expect("encodes"));
            script.blocks.push(block.to_bytes());
        }
        script
    }

    fn last(&self) -> Height {
        self.blocks.len() as u64 - 1
    }
}

/// A few transactions that the ledger accepts, as they come from a mempool.
fn some(clients: &mut Clients, ledger: &Ledger, dice: &mut Dice) -> Vec<primitives::Transaction> {
    let drawn: Vec<_> = (0..1 + dice.below(12)).map(|_| clients.draw(ledger, dice).transaction).collect();
    let valid = primitives::verify_transactions(&ledger.network(), &drawn.iter().collect::<Vec<_>>());
    drawn.into_iter().zip(valid).filter(|(_, valid)| *valid).map(|(transaction, _)| transaction).collect()
}

/// Runs a script of `blocks` blocks and crashes at every point; `each` is called with each height.
///
/// # Errors
/// The crash and the problem after it.
pub fn crash_points(seed: u64, blocks: u64, each: impl FnMut(u64)) -> Result<CrashReport, String> {
    let script = Arc::new(Script::new(seed, blocks));
    let acknowledged = Arc::new(AtomicU64::new(0));
    let found = Arc::new(Mutex::new((CrashReport { blocks, ..CrashReport::default() }, None)));
    let disk = FaultDisk::new(seed);
    disk.watch({
        let (script, acknowledged, found) = (script.clone(), acknowledged.clone(), found.clone());
        move |disk| {
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            let (report, failure) = &mut *found;
            if failure.is_none() {
                let tried = crash(disk, &script, acknowledged.load(Ordering::SeqCst), report.crashes);
                report.points += 1;
                report.crashes += tried.crashes;
                report.to_the_end += tried.to_the_end;
                *failure = tried.failure;
            }
        }
    });
    run(disk, &script, &acknowledged, each);
    let (report, failure) = &*found.lock().unwrap_or_else(PoisonError::into_inner);
    match failure {
        None => Ok(*report),
        Some(what) => Err(what.clone()),
    }
}

/// A node's writes, in one of the possible orders.
fn run(disk: FaultDisk, script: &Script, acknowledged: &AtomicU64, mut each: impl FnMut(u64)) {
    let mut dice = Dice::new(script.last());
    let Restored { mut ledger, mut store, .. } = recover_state(disk, OPTIONS, &script.genesis).expect("an empty disk");
    let mut checkpoint: Option<(Height, Ledger, CheckpointWriter<FaultDisk>)> = None;
    for height in 1..=script.last() {
        store.append(height, &script.blocks[height as usize]).expect("the disk is sound");
        if !dice.once_in(3) {
            acknowledged.store(store.sync().expect("the disk is sound"), Ordering::SeqCst);
        }
        let late = if dice.once_in(3) { 4 } else { 0 };
        for due in store.receipts_height() + 1..=height.saturating_sub(late) {
            store.append_receipts(due, &script.receipts[due as usize]).expect("the disk is sound");
        }
        let block: Superblock = borsh::from_slice(&script.blocks[height as usize]).expect("our own");
        ledger.apply(&block, Signatures::Valid, &mut |_| {}).expect("applied before");
        if let Some((_, state, writer)) = checkpoint.take_if(|(begun, ..)| height == *begun + CHECKPOINT_TAKES) {
            write_checkpoint(&state, writer).expect("the disk is sound");
        }
        if height.is_multiple_of(CHECKPOINT_EVERY) {
            acknowledged.store(store.sync().expect("the disk is sound"), Ordering::SeqCst);
            let writer = store.begin_checkpoint(height).expect("none is running");
            checkpoint = Some((height, Ledger::clone(&ledger), writer));
        }
        each(height);
    }
    acknowledged.store(store.sync().expect("the disk is sound"), Ordering::SeqCst);
}

/// The results of the crashes at one point.
#[derive(Default)]
struct Tried {
    crashes: u64,
    to_the_end: u64,
    failure: Option<String>,
}

/// Crashes now, in every way.
fn crash(disk: &FaultDisk, script: &Script, acknowledged: Height, before: u64) -> Tried {
    let ways = [Surviving::Nothing, Surviving::Everything, Surviving::Some(before), Surviving::Some(before + 1)];
    let sectors = disk.last_sectors();
    let ways: Vec<Surviving> = ways.into_iter().chain((0..sectors).map(Surviving::Torn)).collect();
    let results: Vec<Result<(), String>> = ways
        .par_iter()
        .enumerate()
        .map(|(at, way)| {
            let go_on = if (before + at as u64).is_multiple_of(TO_THE_END) { u64::MAX } else { GO_ON };
            let context = format!("crash at point {} ({way:?}, {acknowledged} acknowledged)", disk.points());
            recover(disk.after_crash(*way), script, acknowledged, go_on).map_err(|what| format!("{context}: {what}"))
        })
        .collect();
    Tried {
        crashes: results.len() as u64,
        to_the_end: (0..ways.len() as u64).filter(|at| (before + at).is_multiple_of(TO_THE_END)).count() as u64,
        failure: results.into_iter().find_map(Result::err),
    }
}

/// Recovers, compares the recovered data with the script, and continues.
fn recover(disk: FaultDisk, script: &Script, acknowledged: Height, go_on: u64) -> Result<(), String> {
    let restored = recover_state(disk, OPTIONS, &script.genesis).map_err(|error| error.to_string())?;
    let Restored { mut ledger, mut roots, root, mut store, .. } = restored;
    let height = ledger.height();
    if height < acknowledged {
        return Err(format!("only {height} blocks are left"));
    }
    hold(&ledger, &store, root, script)?;
    for next in height + 1..=script.last().min(height.saturating_add(go_on)) {
        let bytes = &script.blocks[next as usize];
        let block: Superblock = borsh::from_slice(bytes).expect("our own");
        store.append(next, bytes).map_err(|error| error.to_string())?;
        let applied = ledger.apply(&block, Signatures::Valid, &mut |_| {}).map_err(|error| error.to_string())?;
        let root = roots.apply(&applied.changes);
        store.sync().map_err(|error| error.to_string())?;
        store.append_receipts(next, &script.receipts[next as usize]).map_err(|error| error.to_string())?;
        hold(&ledger, &store, root, script)?;
    }
    Ok(())
}

/// Compares state, block and receipts of the last height with the script.
fn hold(ledger: &Ledger, store: &Store<FaultDisk>, root: Digest, script: &Script) -> Result<(), String> {
    let height = ledger.height();
    let at = height as usize;
    if root != script.roots[at] {
        return Err(format!("the state root after block {height} is {root}, not {}", script.roots[at]));
    }
    ledger.audit().map_err(|error| format!("after block {height}: {error}"))?;
    let block = store.block(height).map_err(|error| error.to_string())?;
    let receipts = store.receipts(height).map_err(|error| error.to_string())?;
    let held =
        height == 0 || (block.as_ref(), receipts.as_ref()) == (Some(&script.blocks[at]), Some(&script.receipts[at]));
    if held { Ok(()) } else { Err(format!("block {height} or its receipts differ from the script")) }
}
