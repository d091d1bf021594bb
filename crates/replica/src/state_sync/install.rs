//! Replaces the stored state with a fetched one at a restart. A crash at any moment leaves one of the two, whole.
//!
//! | file on the disk `incoming` | holds |
//! |---|---|
//! | `state` | chunks as they arrive |
//! | `proof` | base and handovers, once the state is complete and checked |
//! | `arrived` | nothing; once it is durable, the fetched state is the valid one |
//!
//! The marker `arrived` is the moment at which the fetched state replaces the old one. A start that finds the marker
//! copies the files into the stores, one after the other, each of them repeatable. Then it removes the marker, durably,
//! and the rest. A start without the marker removes the incomplete files.

use std::io;

use borsh::{BorshDeserialize, BorshSerialize};
use proofs::Handover;
use store::{CheckpointReader, Disk, DiskFile, Options, Store};

use super::STATE;
use crate::handover;
use crate::home::names;
use crate::state_sync::base::Base;
use crate::{Home, ReplicaError, encode};

const PROOF: &str = "proof";
const ARRIVED: &str = "arrived";

/// The proof of a state.
#[derive(BorshSerialize, BorshDeserialize)]
struct Proof {
    base: Base,
    /// The epoch of the first handover: the one after that of the genesis.
    first_epoch: u64,
    handovers: Vec<Handover>,
}

fn failed<D: Disk>(disk: &D) -> impl Fn(io::Error) -> ReplicaError {
    let place = disk.place();
    move |error| ReplicaError::Directory(place.clone(), error)
}

/// Removes every file of a disk, to make room for new ones.
pub(crate) fn clear<D: Disk>(disk: &D) -> Result<(), ReplicaError> {
    let remove = || -> io::Result<()> {
        names(disk)?.iter().try_for_each(|name| disk.remove(name))?;
        disk.sync_directory()
    };
    remove().map_err(failed(disk))
}

/// Makes a checked state replace the present one at the node's next start; durable when this returns.
pub(crate) fn commit<D: Disk>(
    incoming: &D,
    base: &Base,
    first_epoch: u64,
    handovers: Vec<Handover>,
) -> Result<(), ReplicaError> {
    let bytes = encode(&Proof { base: base.clone(), first_epoch, handovers });
    let write = || -> io::Result<()> {
        let proof = incoming.create(PROOF)?;
        proof.write_at(0, &bytes)?;
        proof.sync()?;
        // The marker must not become durable before the files that it refers to.
        incoming.sync_directory()?;
        incoming.create(ARRIVED)?.sync()?;
        incoming.sync_directory()
    };
    write().map_err(failed(incoming))
}

/// Copies a complete fetched state into the stores of a home, if there is one, and removes incomplete files.
///
/// # Errors
/// [`ReplicaError`]; the next start continues.
pub fn finish<D: Disk + Clone>(home: &Home<D>) -> Result<(), ReplicaError> {
    let incoming = &home.incoming;
    let there = names(incoming).map_err(failed(incoming))?;
    if there.iter().any(|name| name == ARRIVED) {
        let Proof { base, first_epoch, handovers } = read(incoming).map_err(failed(incoming))?;
        tracing::info!(height = base.height, state = %base.state, "a fetched state takes the place of what was here");
        // Without a state file, the state is here already and only its proof was fetched.
        if there.iter().any(|name| name == STATE) {
            install_state(home, base.height)?;
        }
        install_certificate(&home.certificates, &base)?;
        // The present handovers refer to certificates that are gone now; the proof contains all of them.
        clear(&home.handovers)?;
        handover::write_all(home.handovers.clone(), first_epoch, handovers)?;
        incoming.remove(ARRIVED).and_then(|()| incoming.sync_directory()).map_err(failed(incoming))?;
    }
    clear(incoming)
}

fn read<D: Disk>(incoming: &D) -> io::Result<Proof> {
    let file = incoming.open(PROOF, false)?;
    let mut bytes = vec![0; usize::try_from(file.length()?).map_err(|_| io::ErrorKind::InvalidData)?];
    file.read_at(0, &mut bytes)?;
    borsh::from_slice(&bytes)
}

fn install_state<D: Disk + Clone>(home: &Home<D>, height: u64) -> Result<(), ReplicaError> {
    let (mut store, recovery) = Store::open(home.blocks.clone(), Options::default())?;
    let held = recovery.checkpoint.as_ref().map_or(0, CheckpointReader::height).max(store.last_height());
    if held >= height {
        return Ok(());
    }
    let mut writer = store.begin_replacement(height)?;
    let mut reader = CheckpointReader::open_snapshot(&home.incoming, STATE)?;
    io::copy(&mut reader, &mut writer).map_err(|error| ReplicaError::Unreadable(height, error))?;
    writer.finish()?;
    drop((store, recovery));
    // Opening the store removes what the checkpoint has replaced.
    Store::open(home.blocks.clone(), Options::default())?;
    Ok(())
}

/// Makes the certificates continue from the base.
fn install_certificate<D: Disk + Clone>(certificates: &D, base: &Base) -> Result<(), ReplicaError> {
    let open = || -> Result<Store<D>, ReplicaError> { Ok(Store::open(certificates.clone(), Options::default())?.0) };
    let mut store = open()?;
    if store.last_height() >= base.height {
        return Ok(());
    }
    if store.last_height() + 1 < base.height {
        store.begin_replacement(base.height - 1)?.finish()?;
        drop(store);
        store = open()?;
    }
    store.append(base.height, &encode(&base.finality))?;
    store.sync()?;
    Ok(())
}
