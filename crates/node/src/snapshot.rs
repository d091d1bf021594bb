//! Snapshots: the state after one block in one file, to start a node from or to keep.
//!
//! A snapshot is taken from a store that a node may have open at the same time: the newest checkpoint, brought up to
//! the last durable block. When restoring one, compare the state root with a trusted root: the one that the chain's
//! next block names, or one from another node.

use std::path::Path;

use ledger::{Genesis, Ledger};
use replica::{Home, Lineage, Replay, ReplicaError, begin, restore, write_checkpoint, write_state};
use store::{CheckpointReader, Disk, Options, RealDisk, SnapshotWriter, Store, View};

/// Computes the state after the last durable block of a store, without changing the store. `each` is called for every
/// replayed block with the number of blocks left.
///
/// # Errors
/// [`ReplicaError`] names the damage, or where the replay differs from the first run.
pub fn state_of<D: Disk>(view: View<D>, genesis: &Genesis, mut each: impl FnMut(u64)) -> Result<Replay, ReplicaError> {
    let mut replay = Replay::new(begin(view.checkpoint, genesis)?);
    let mut blocks = view.blocks;
    while let Some(logged) = blocks.next() {
        let (height, bytes) = logged?;
        replay.step(height, &bytes, None)?;
        each(blocks.remaining());
    }
    Ok(replay)
}

/// Writes a state into a new file; the file gets its name when it is complete and durable.
///
/// # Errors
/// [`ReplicaError`] if the file exists already, or cannot be written.
pub fn write_snapshot(state: &Ledger, to: &Path) -> Result<(), ReplicaError> {
    let mut writer = SnapshotWriter::create(to, state.height())?;
    write_state(state, &mut writer)?;
    Ok(writer.finish()?)
}

/// Reads a snapshot; checks every digest, and that it conserves money.
///
/// # Errors
/// [`ReplicaError`] names the damage.
pub fn read_snapshot(from: &Path) -> Result<Ledger, ReplicaError> {
    restore(CheckpointReader::of_snapshot(from)?)
}

/// Writes a state into an empty store, for a node to start from.
///
/// # Errors
/// [`ReplicaError::NotEmpty`] if the store holds anything, or it cannot be written.
pub fn install(state: &Ledger, data: &Path) -> Result<(), ReplicaError> {
    let directory = |error| ReplicaError::Directory(data.display().to_string(), error);
    let disk = RealDisk::new(data).map_err(directory)?;
    let (mut store, recovery) = Store::open(disk, Options::default())?;
    if recovery.checkpoint.is_some() || store.last_height() > 0 {
        return Err(ReplicaError::NotEmpty(data.display().to_string()));
    }
    write_checkpoint(state, store.begin_checkpoint(state.height())?)
}

/// Creates the data directory of a validator in a network that restarts from a state.
///
/// # Errors
/// [`ReplicaError::NotEmpty`] if it holds anything, or it cannot be written.
pub fn begin_again(state: &Ledger, data: &Path, lineage: Lineage) -> Result<(), ReplicaError> {
    let directory = |error| ReplicaError::Directory(data.display().to_string(), error);
    replica::begin_again(&Home::at(data).map_err(directory)?, state, lineage)
}
