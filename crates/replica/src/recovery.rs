//! Recovery at start: the newest checkpoint, the log after it, and the archive.
//!
//! A replay follows the batches that are archived with their blocks: it checks each one instead of solving (SPEEDEX
//! §K.3). The next block names the state root that the replay must reach. The last block has no next one, and a block
//! without archived receipts has no batch: these are solved. If a replay that follows fails, a second one solves
//! every block; if that fails too, the error names both.

use std::io::{Read, Write};

use ledger::{Applied, Batch, BlockReceipts, Genesis, Ledger, Restore, Roots, Snapshot};
use primitives::{Digest, Height, Superblock, Transaction, TransactionId};
use rayon::prelude::*;
use store::{Blocks, CheckpointReader, CheckpointWriter, Disk, Options, Repair, Store};

use crate::{ReplicaError, apply, encode, follow, hash};

/// The state restored from a store.
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
    /// Incomplete ends that a crash had left and that were cut off.
    pub repairs: Vec<Repair>,
}

/// Opens a store and restores its state up to its last block: the checkpoint, then the log after it. The root after
/// each block is compared with the one that the next block names, and its receipts with the archived ones.
///
/// # Errors
/// [`ReplicaError`] names the damage, or the block at which the replay differs from the first run.
pub fn recover_state<D: Disk>(disk: D, options: Options, genesis: &Genesis) -> Result<Restored<D>, ReplicaError> {
    let (mut store, recovery) = Store::open(disk, options)?;
    let ledger = begin(recovery.checkpoint, genesis)?;
    let from = ledger.height();
    let mut replay = Replay::new(ledger);
    match replay.run(&mut store, recovery.blocks.clone(), true) {
        Err(followed) if followed.is_of_replay() => {
            replay = Replay::new(begin(store.archive().newest_checkpoint()?, genesis)?);
            let solved = replay.run(&mut store, recovery.blocks, false);
            solved.map_err(|solved| ReplicaError::both(followed, solved))?;
        }
        done => done?,
    }
    let Replay { ledger, roots, root } = replay;
    Ok(Restored { ledger, roots, root, store, from, repairs: recovery.repairs })
}

/// The state that a replay begins with.
///
/// # Errors
/// [`ReplicaError`] if the checkpoint is damaged or of another chain, or the genesis is invalid.
pub fn begin<D: Disk>(checkpoint: Option<CheckpointReader<D>>, genesis: &Genesis) -> Result<Ledger, ReplicaError> {
    let ledger = match checkpoint {
        None => Ledger::new(genesis)?,
        Some(checkpoint) => restore(checkpoint)?.under(genesis),
    };
    if ledger.chain() != genesis.chain {
        return Err(ReplicaError::OtherChain { stored: ledger.chain(), genesis: genesis.chain });
    }
    Ok(ledger)
}

/// A state to which logged blocks are applied again.
pub struct Replay {
    /// The state after the last replayed block.
    pub ledger: Ledger,
    /// Its tries.
    pub roots: Roots,
    /// Their root.
    pub root: Digest,
}

impl Replay {
    /// A replay from this state.
    pub fn new(ledger: Ledger) -> Replay {
        let mut roots = Roots::of(&ledger);
        Replay { root: roots.parts().root(), ledger, roots }
    }

    /// Applies logged blocks and archives their receipts; receipts that are archived already are compared. If
    /// `follows` is set, archived batches are checked instead of solved.
    ///
    /// # Errors
    /// [`ReplicaError`] names the block that does not apply, or whose receipts differ.
    pub fn run<D: Disk>(
        &mut self,
        store: &mut Store<D>,
        mut blocks: Blocks<D>,
        follows: bool,
    ) -> Result<(), ReplicaError> {
        while let Some(logged) = blocks.next() {
            let (height, bytes) = logged?;
            let is_followed = follows && blocks.remaining() > 0;
            let batch = if is_followed { archived_batch(store, height)? } else { None };
            let (block, applied) = self.step(height, &bytes, batch.as_ref())?;
            store.append_receipts(height, &encode(&receipts(&block, &applied)))?;
        }
        Ok(())
    }

    /// Applies the next logged block, which names the root that the replay must have reached. If its batch is known,
    /// the batch is checked instead of solved.
    ///
    /// # Errors
    /// [`ReplicaError`] if the block cannot be decoded, the batch does not belong to it, or the state is not the one
    /// that it builds on.
    pub fn step(
        &mut self,
        height: Height,
        bytes: &[u8],
        batch: Option<&Batch>,
    ) -> Result<(Superblock, Applied), ReplicaError> {
        let block: Superblock = borsh::from_slice(bytes).map_err(|error| ReplicaError::Undecodable(height, error))?;
        if block.parent_root != self.root {
            return Err(ReplicaError::Diverged { height: height - 1, ours: self.root, logged: block.parent_root });
        }
        let applied = match batch {
            Some(batch) => follow(&mut self.ledger, &block, batch)?,
            None => apply(&mut self.ledger, &block, &mut |_| {})?,
        };
        self.root = hash(&mut self.roots, height, &applied.changes)?;
        Ok((block, applied))
    }
}

/// The batch archived with a block; `None` if there is none.
fn archived_batch<D: Disk>(store: &Store<D>, height: Height) -> Result<Option<Batch>, ReplicaError> {
    let Some(bytes) = store.receipts(height)? else { return Ok(None) };
    let receipts: Result<BlockReceipts, _> = borsh::from_slice(&bytes);
    receipts.map(|receipts| Some(receipts.batch)).map_err(|error| ReplicaError::Undecodable(height, error))
}

/// Writes a checkpoint that [`restore`] reads.
///
/// # Errors
/// The store's error.
pub fn write_checkpoint<D: Disk>(state: &Ledger, mut writer: CheckpointWriter<D>) -> Result<(), ReplicaError> {
    write_state(state, &mut writer)?;
    Ok(writer.finish()?)
}

/// Writes the state in chunks, each preceded by its length.
///
/// # Errors
/// The writer's error.
pub fn write_state(state: &Ledger, writer: &mut impl Write) -> Result<(), ReplicaError> {
    for chunk in Snapshot::of(state) {
        let length = u32::try_from(chunk.len()).expect("chunks are small").to_le_bytes();
        let written = writer.write_all(&length).and_then(|()| writer.write_all(&chunk));
        written.map_err(|error| ReplicaError::Unreadable(state.height(), error))?;
    }
    Ok(())
}

/// Reads a checkpoint: chunks of the state, each preceded by its length.
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

/// The receipts of an applied block, as archived.
pub fn receipts(block: &Superblock, applied: &Applied) -> BlockReceipts {
    let transactions: Vec<&Transaction> = block.sub_blocks.iter().flat_map(|sub| &sub.native).collect();
    let ids: Vec<TransactionId> = transactions.par_iter().map(|transaction| transaction.id()).collect();
    receipts_with(applied, &ids)
}

/// As [`receipts`], with the ids of the block's transactions given.
pub fn receipts_with(applied: &Applied, ids: &[TransactionId]) -> BlockReceipts {
    let opened = applied.opened.iter().map(|one| (one.id, one.outcome));
    BlockReceipts {
        height: applied.height,
        block: applied.block,
        outcomes: ids.iter().copied().zip(applied.outcomes.iter().copied()).chain(opened).collect(),
        modified: applied.modified.clone(),
        batch: applied.batch.clone(),
        contracts: applied.contracts.clone(),
        venues: applied.venues.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log;
    use ledger::{Listing, Outcome};
    use primitives::{Address, AssetId, Body, Fraction, Operation, Price, SecretKey, SubBlock};
    use store::{RealDisk, StoreError};

    fn genesis(keys: &[SecretKey]) -> Genesis {
        let assets = (0..3).map(|asset| Listing::new(format!("A{asset}"), 2, Address([9; 20]))).collect();
        let holding = |key: &SecretKey, asset| (key.public().address(), AssetId(asset), 1_000_000);
        let balances = keys.iter().flat_map(|key| (0..3).map(move |asset| holding(key, asset))).collect();
        let (epsilon, mu) = (Fraction::power_of_two(15), Fraction::power_of_two(10));
        Genesis { chain: 1, fee: 1, epsilon, mu, assets, balances, ..Genesis::default() }
    }

    /// Offers of three people around a ring of assets.
    fn block(keys: &[SecretKey], replay: &Replay) -> Superblock {
        let (ledger, height) = (&replay.ledger, replay.ledger.height() + 1);
        let offer = |(person, key): (usize, &SecretKey)| {
            let (sell, buy) = (AssetId(person as u32), AssetId((person as u32 + 1) % 3));
            let limit = Price::from_f64(0.9 + height as f64 / 100.0).expect("in range");
            let operation = Operation::offer(sell, buy, 5_000 * height, limit);
            Body { chain: 1, account: key.public().address(), sequence: height, until: 50_000, operation }
                .sign(&ledger.network(), key)
        };
        let native = keys.iter().enumerate().map(offer).collect();
        let sub_blocks = vec![SubBlock { native, ..SubBlock::default() }];
        let (parent, parent_root) = (ledger.last_block(), replay.root);
        Superblock { height, parent, time_ms: height, parent_root, sub_blocks, ..Superblock::default() }
    }

    /// Logs three blocks, spoils the receipts of the second, then recovers.
    fn started_again(spoiled: impl Fn(&mut BlockReceipts)) -> Result<Height, ReplicaError> {
        let keys: Vec<SecretKey> = (0..3).map(|seed| SecretKey::from_seed([seed; 32])).collect();
        let genesis = genesis(&keys);
        let directory = tempfile::tempdir().expect("a directory");
        let disk = || RealDisk::new(directory.path().join("blocks")).expect("a directory");
        let Restored { ledger, mut store, .. } = recover_state(disk(), Options::default(), &genesis)?;
        let mut replay = Replay::new(ledger);
        for height in 1..=3 {
            let block = block(&keys, &replay);
            log(&mut store, &block)?;
            let (block, applied) = replay.step(height, &block.to_bytes(), None)?;
            assert!(!applied.batch.fills.is_empty(), "block {height} trades");
            let mut receipts = receipts(&block, &applied);
            if height == 2 {
                spoiled(&mut receipts);
            }
            store.append_receipts(height, &encode(&receipts))?;
        }
        drop(store);
        recover_state(disk(), Options::default(), &genesis).map(|restored| restored.ledger.height())
    }

    #[test]
    fn a_batch_that_is_known_is_checked_and_not_solved_again() {
        let keys: Vec<SecretKey> = (0..3).map(|seed| SecretKey::from_seed([seed; 32])).collect();
        let begun = || Replay::new(Ledger::new(&genesis(&keys)).expect("sound"));
        let (mut solves, mut follows) = (begun(), begun());
        let bytes = block(&keys, &solves).to_bytes();
        let (_, solved) = solves.step(1, &bytes, None).expect("applies");
        let (_, followed) = follows.step(1, &bytes, Some(&solved.batch)).expect("follows");
        assert!(solved.report.is_some() && followed.report.is_none(), "only one of them solves");
        assert_eq!((&followed.outcomes, &followed.batch), (&solved.outcomes, &solved.batch));
        assert_eq!(follows.root, solves.root);
    }

    #[test]
    fn a_restart_follows_what_is_archived() {
        assert_eq!(started_again(|_| ()).expect("recovers"), 3);
    }

    /// Whatever is wrong with the receipts, the replay then solves, and finds that the receipts differ.
    #[test]
    fn archived_receipts_that_lie_are_named_and_blocks_are_not() {
        let half = |price: &Price| Price::from_f64(price.to_f64() / 2.0).expect("in range");
        let lies: [&dyn Fn(&mut BlockReceipts); 4] = [
            &|receipts| receipts.batch.valuations[1] = half(&receipts.batch.valuations[1]),
            &|receipts| receipts.batch.fills.clear(),
            &|receipts| receipts.batch.trades.clear(),
            &|receipts| receipts.outcomes[0].1 = Outcome::Applied,
        ];
        for lie in lies {
            let error = started_again(lie).expect_err("the receipts differ");
            assert!(matches!(error, ReplicaError::Store(StoreError::ReceiptsDiffer(2))), "{error}");
        }
    }
}
