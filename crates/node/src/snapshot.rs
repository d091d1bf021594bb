//! Snapshots: the state after one block in one file, to begin a node with, or to keep.
//!
//! A snapshot is taken from a store that a node may have open at the same time: the newest checkpoint, brought up to
//! the last durable block. Whoever restores one holds the state root against a root that they trust: the one that the
//! chain's next block names, or that another node tells.

use std::path::Path;

use ledger::{Genesis, Ledger};
use replica::{Home, Lineage, Replay, ReplicaError, begin, restore, write_checkpoint, write_state};
use store::{CheckpointReader, Disk, Options, RealDisk, SnapshotWriter, Store, View};

/// Brings the state of a store up to its last durable block, and leaves the store as it is. `each` hears of every block
/// that is replayed: how many are left.
///
/// # Errors
/// [`ReplicaError`] names what is damaged, or where the replay went another way than the first run.
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

/// Writes a state into a file of its own; it gets its name when it is complete and durable.
///
/// # Errors
/// [`ReplicaError`] if there is such a file already, or it cannot be written.
pub fn write_snapshot(state: &Ledger, to: &Path) -> Result<(), ReplicaError> {
    let mut writer = SnapshotWriter::create(to, state.height())?;
    write_state(state, &mut writer)?;
    Ok(writer.finish()?)
}

/// Reads a snapshot; every digest is checked, and that money is conserved in it.
///
/// # Errors
/// [`ReplicaError`] names what is damaged.
pub fn read_snapshot(from: &Path) -> Result<Ledger, ReplicaError> {
    restore(CheckpointReader::of_snapshot(from)?)
}

/// Puts a state into an empty store, where a node will begin with it.
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

/// Makes the data directory of a validator in a network that begins again with a state.
///
/// # Errors
/// [`ReplicaError::NotEmpty`] if it holds anything, or it cannot be written.
pub fn begin_again(state: &Ledger, data: &Path, lineage: Lineage) -> Result<(), ReplicaError> {
    let directory = |error| ReplicaError::Directory(data.display().to_string(), error);
    replica::begin_again(&Home::at(data).map_err(directory)?, state, lineage)
}
