//! What a node finds when it starts: the newest checkpoint, the log after it, and the archive.

use std::io::{Read, Write};

use ledger::{Applied, BlockReceipts, Genesis, Ledger, Restore, Roots, Snapshot};
use primitives::{Digest, Height, Superblock, Transaction, TransactionId};
use rayon::prelude::*;
use store::{CheckpointReader, CheckpointWriter, Disk, Options, Repair, Store};

use crate::{ReplicaError, apply, encode};

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

/// Opens a store and brings its state up to its last block: checkpoint, then the log after it, each block held against
/// the root that the next one names, and its receipts against those archived.
///
/// # Errors
/// [`ReplicaError`] names what is damaged, or where the replay went another way than the first run.
pub fn recover_state<D: Disk>(disk: D, options: Options, genesis: &Genesis) -> Result<Restored<D>, ReplicaError> {
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
///
/// # Errors
/// [`ReplicaError`] if the checkpoint is damaged or of another chain, or the genesis makes no state.
pub fn begin<D: Disk>(checkpoint: Option<CheckpointReader<D>>, genesis: &Genesis) -> Result<Ledger, ReplicaError> {
    let ledger = match checkpoint {
        None => Ledger::new(genesis)?,
        Some(checkpoint) => restore(checkpoint)?,
    };
    if ledger.chain() != genesis.chain {
        return Err(ReplicaError::OtherChain { stored: ledger.chain(), genesis: genesis.chain });
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
    /// [`ReplicaError`] if it is no block, or the state is not the one that it builds on.
    pub fn step(&mut self, height: Height, bytes: &[u8]) -> Result<(Superblock, Applied), ReplicaError> {
        let block: Superblock = borsh::from_slice(bytes).map_err(|error| ReplicaError::Undecodable(height, error))?;
        if block.parent_root != self.root {
            return Err(ReplicaError::Diverged { height: height - 1, ours: self.root, logged: block.parent_root });
        }
        let applied = apply(&mut self.ledger, &block, &mut |_| {})?;
        self.root = self.roots.apply(&applied.changes);
        Ok((block, applied))
    }
}

/// Writes a checkpoint that [`restore`] reads.
///
/// # Errors
/// As the store says.
pub fn write_checkpoint<D: Disk>(state: &Ledger, mut writer: CheckpointWriter<D>) -> Result<(), ReplicaError> {
    write_state(state, &mut writer)?;
    Ok(writer.finish()?)
}

/// Writes chunks of the state, each after its length.
///
/// # Errors
/// As the writer says.
pub fn write_state(state: &Ledger, writer: &mut impl Write) -> Result<(), ReplicaError> {
    for chunk in Snapshot::of(state) {
        let length = u32::try_from(chunk.len()).expect("chunks are small").to_le_bytes();
        let written = writer.write_all(&length).and_then(|()| writer.write_all(&chunk));
        written.map_err(|error| ReplicaError::Unreadable(state.height(), error))?;
    }
    Ok(())
}

/// Reads a checkpoint: chunks of the state, each after its length.
pub fn restore<D: Disk>(mut checkpoint: CheckpointReader<D>) -> Result<Ledger, ReplicaError> {
    let height = checkpoint.height();
    let unreadable = |error| ReplicaError::Unreadable(height, error);
    let unsound = |error| ReplicaError::Checkpoint(height, error);
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
    if ledger.height() == height { Ok(ledger) } else { Err(ReplicaError::OtherHeight(height, ledger.height())) }
}

/// The receipts of a block that was applied, as they are archived.
pub fn receipts(block: &Superblock, applied: &Applied) -> BlockReceipts {
    let transactions: Vec<&Transaction> = block.sub_blocks.iter().flat_map(|sub| &sub.native).collect();
    let ids: Vec<TransactionId> = transactions.par_iter().map(|transaction| transaction.id()).collect();
    receipts_with(applied, &ids)
}

/// The same, where the ids of the block's transactions are known.
pub fn receipts_with(applied: &Applied, ids: &[TransactionId]) -> BlockReceipts {
    BlockReceipts {
        height: applied.height,
        block: applied.block,
        outcomes: ids.iter().copied().zip(applied.outcomes.iter().copied()).collect(),
        modified: applied.modified.clone(),
        batch: applied.batch.clone(),
        contracts: applied.contracts.clone(),
    }
}
