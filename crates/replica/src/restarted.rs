//! The home of a validator in a network that restarts from a state (`ledger::Restart`).

use ledger::Ledger;
use proofs::Lineage;
use store::{Disk, Options, Store};

use crate::recovery::write_checkpoint;
use crate::{HandoverLog, Home, ReplicaError, create_votes};

/// Writes the disks of a home: the state, archives that begin above it, and the vote log of a validator that has
/// never voted in this network. The state already has the network's identity, and `lineage` is that of the network.
///
/// # Errors
/// [`ReplicaError::NotEmpty`] if the home holds anything: a vote log must never be replaced. [`ReplicaError`] if a
/// disk fails; then the home must not be used.
pub fn begin_again<D: Disk + Clone>(home: &Home<D>, state: &Ledger, lineage: Lineage) -> Result<(), ReplicaError> {
    let height = state.height();
    let open = |disk: &D| -> Result<Store<D>, ReplicaError> {
        let (store, recovery) = Store::open(disk.clone(), Options::default())?;
        let is_empty = recovery.checkpoint.is_none() && store.last_height() == 0;
        if is_empty { Ok(store) } else { Err(ReplicaError::NotEmpty(disk.place())) }
    };
    let (mut blocks, mut certificates) = (open(&home.blocks)?, open(&home.certificates)?);
    drop(open(&home.handovers)?);
    create_votes(&home.votes)?;
    certificates.begin_after(height)?;
    let mut handovers = HandoverLog::open(home.handovers.clone(), lineage, certificates.archive())?;
    handovers.keep_first(state)?;
    // The state is written last: without it the node does not start.
    write_checkpoint(state, blocks.begin_checkpoint(height)?)
}
