//! What a node finds when it starts: the newest checkpoint, the log after it, and the archive.

use std::io::{Read, Write};
use std::path::Path;
use std::time::Instant;

use ledger::{Applied, Batch, BlockReceipts, Genesis, Ledger, ReceiptsTrie, Restore, Roots, Signatures, Snapshot};
use primitives::{Digest, Height, Superblock, Transaction, TransactionId};
use rayon::prelude::*;
use store::{CheckpointReader, CheckpointWriter, Disk, Options, RealDisk, Repair, Store};

use crate::config::Config;
use crate::exchange::ExchangeError;
use doors::CommittedBlock;
use doors::views::{RECENT_BLOCKS, Views};

/// What was committed, as it was found.
pub(crate) struct Recovered {
    pub ledger: Ledger,
    pub roots: Roots,
    pub store: Store<RealDisk>,
    pub views: Views,
}

/// The state that a store holds.
pub struct Restored<D: Disk> {
    /// The state after the last logged block.
    pub ledger: Ledger,
    /// Its tries.
    pub roots: Roots,
    /// Their root.
    pub root: Digest,
    /// The store, ready for the next block; it has the receipts of every block.
    pub store: Store<D>,
    /// Height of the checkpoint that the replay began at; 0 for genesis.
    pub from: Height,
    /// What was cut off because a crash had left it unfinished.
    pub repairs: Vec<Repair>,
}

pub(crate) fn recover(config: &Config, genesis: &Genesis, data: &Path) -> Result<Recovered, ExchangeError> {
    let begun = Instant::now();
    let directory = |error| ExchangeError::Directory(data.display().to_string(), error);
    let disk = RealDisk::new(data).map_err(directory)?;
    let Restored { ledger, roots, root, store, from, repairs } = recover_state(disk, Options::default(), genesis)?;
    for repair in &repairs {
        tracing::warn!(
            file = repair.file,
            offset = repair.offset,
            bytes = repair.bytes,
            "cut off what a crash left unfinished"
        );
    }
    let views = recover_views(config, &ledger, &store, root)?;
    tracing::info!(
        height = ledger.height(),
        from_checkpoint = from,
        replayed = ledger.height() - from,
        accounts = ledger.accounts().len(),
        offers = ledger.book().len(),
        ms = begun.elapsed().as_millis() as u64,
        "recovered"
    );
    Ok(Recovered { ledger, roots, store, views })
}

/// Opens a store and brings its state up to its last block: checkpoint, then the log after it, each block held against
/// the root that the next one names, and its receipts against those archived.
///
/// # Errors
/// [`ExchangeError`] names what is damaged, or where the replay went another way than the first run.
pub fn recover_state<D: Disk>(disk: D, options: Options, genesis: &Genesis) -> Result<Restored<D>, ExchangeError> {
    let (mut store, recovery) = Store::open(disk, options)?;
    let ledger = begin(recovery.checkpoint, genesis)?;
    let from = ledger.height();
    let mut replay = Replay::new(ledger);
    for logged in recovery.blocks {
        let (height, bytes) = logged?;
        let (block, applied) = replay.step(height, &bytes)?;
        // Receipts that are archived already are compared with these.
        store.put_receipts(height, &encode(&receipts(&block, &applied)))?;
    }
    let Replay { ledger, roots, root } = replay;
    Ok(Restored { ledger, roots, root, store, from, repairs: recovery.repairs })
}

/// The state that a replay begins with.
pub(crate) fn begin<D: Disk>(
    checkpoint: Option<CheckpointReader<D>>,
    genesis: &Genesis,
) -> Result<Ledger, ExchangeError> {
    let ledger = match checkpoint {
        None => Ledger::new(genesis)?,
        Some(checkpoint) => restore(checkpoint)?,
    };
    if ledger.chain() != genesis.chain {
        return Err(ExchangeError::OtherChain { stored: ledger.chain(), genesis: genesis.chain });
    }
    Ok(ledger)
}

/// A state that logged blocks are applied to once more.
pub struct Replay {
    /// The state after the last of them.
    pub ledger: Ledger,
    /// Its tries.
    pub roots: Roots,
    /// Their root.
    pub root: Digest,
}

impl Replay {
    /// From this state on.
    pub fn new(ledger: Ledger) -> Replay {
        let mut roots = Roots::of(&ledger);
        Replay { root: roots.parts().root(), ledger, roots }
    }

    /// Applies the next logged block, which names the root that we must have reached.
    ///
    /// # Errors
    /// [`ExchangeError`] if it is no block, or the state is not the one that it builds on.
    pub fn step(&mut self, height: Height, bytes: &[u8]) -> Result<(Superblock, Applied), ExchangeError> {
        let block: Superblock = borsh::from_slice(bytes).map_err(|error| ExchangeError::Undecodable(height, error))?;
        if block.parent_root != self.root {
            return Err(ExchangeError::Diverged { height: height - 1, ours: self.root, logged: block.parent_root });
        }
        // Every signature was checked before the block was logged, and the false ones are listed in it.
        let known = block.signatures();
        let signatures = known.as_ref().map_or(Signatures::Valid, |valid| Signatures::Known(valid));
        let applied = crate::exchange::apply(&mut self.ledger, &block, signatures, &mut |_| {})?;
        self.root = self.roots.apply(&applied.changes);
        Ok((block, applied))
    }
}

/// Writes a checkpoint that [`restore`] reads.
///
/// # Errors
/// As the store says.
pub fn write_checkpoint<D: Disk>(state: &Ledger, mut writer: CheckpointWriter<D>) -> Result<(), ExchangeError> {
    write_state(state, &mut writer)?;
    Ok(writer.finish()?)
}

/// Writes chunks of the state, each after its length.
pub(crate) fn write_state(state: &Ledger, writer: &mut impl Write) -> Result<(), ExchangeError> {
    for chunk in Snapshot::of(state) {
        let length = u32::try_from(chunk.len()).expect("chunks are small").to_le_bytes();
        let written = writer.write_all(&length).and_then(|()| writer.write_all(&chunk));
        written.map_err(|error| ExchangeError::Unreadable(state.height(), error))?;
    }
    Ok(())
}

/// Reads a checkpoint: chunks of the state, each after its length.
pub fn restore<D: Disk>(mut checkpoint: CheckpointReader<D>) -> Result<Ledger, ExchangeError> {
    let height = checkpoint.height();
    let unreadable = |error| ExchangeError::Unreadable(height, error);
    let unsound = |error| ExchangeError::Checkpoint(height, error);
    let mut restore = Restore::default();
    let mut rest = checkpoint.payload_bytes();
    while rest > 0 {
        let mut length = [0; 4];
        checkpoint.read_exact(&mut length).map_err(unreadable)?;
        let length = u32::from_le_bytes(length);
        rest = rest
            .checked_sub(4 + u64::from(length))
            .ok_or_else(|| unreadable(std::io::ErrorKind::UnexpectedEof.into()))?;
        let mut chunk = vec![0; length as usize];
        checkpoint.read_exact(&mut chunk).map_err(unreadable)?;
        restore.push(&chunk).map_err(unsound)?;
    }
    let ledger = restore.finish().map_err(unsound)?;
    if ledger.height() == height { Ok(ledger) } else { Err(ExchangeError::OtherHeight(height, ledger.height())) }
}

/// Reads the newest archived receipts back, as many as the index holds. Of blocks too old to be shown, only where their
/// transactions went.
fn recover_views(
    config: &Config,
    ledger: &Ledger,
    store: &Store<RealDisk>,
    mut state_root: Digest,
) -> Result<Views, ExchangeError> {
    let limit = config.store.indexed_transactions;
    let mut views = Views::new(ledger, state_root, limit);
    let mut recent: Vec<CommittedBlock> = Vec::new();
    let mut transactions = 0;
    for height in (1..=ledger.height()).rev() {
        let (Some(bytes), Some(block)) = (store.receipts(height)?, store.block(height)?) else { break };
        let undecodable = |error| ExchangeError::Undecodable(height, error);
        let mut receipts: BlockReceipts = borsh::from_slice(&bytes).map_err(undecodable)?;
        let block: Superblock = borsh::from_slice(&block).map_err(undecodable)?;
        transactions += receipts.outcomes.len();
        let mut receipts_root = Digest::default();
        if recent.len() < RECENT_BLOCKS {
            receipts_root = ReceiptsTrie::new(&receipts).root();
        } else {
            receipts.batch = Batch::default();
        }
        let mut committed = CommittedBlock::from_archive(&block, receipts, receipts_root);
        committed.summary.state_root = Some(state_root);
        state_root = block.parent_root;
        recent.push(committed);
        if transactions >= limit {
            break;
        }
    }
    recent.iter().rev().for_each(|committed| views.remember(committed));
    Ok(views)
}

pub(crate) fn encode<T: borsh::BorshSerialize>(value: &T) -> Vec<u8> {
    borsh::to_vec(value).expect("writing to memory cannot fail")
}

/// The receipts of a block that was applied, as they are archived.
pub fn receipts(block: &Superblock, applied: &Applied) -> BlockReceipts {
    let transactions: Vec<&Transaction> = block.sub_blocks.iter().flat_map(|sub| &sub.native).collect();
    let ids: Vec<TransactionId> = transactions.par_iter().map(|transaction| transaction.id()).collect();
    receipts_with(applied, &ids)
}

pub(crate) fn receipts_with(applied: &Applied, ids: &[TransactionId]) -> BlockReceipts {
    BlockReceipts {
        height: applied.height,
        block: applied.block,
        outcomes: ids.iter().copied().zip(applied.outcomes.iter().copied()).collect(),
        modified: applied.modified.clone(),
        batch: applied.batch.clone(),
    }
}
