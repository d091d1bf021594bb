//! Putting a fetched state into the place of what is there, at a restart, so that a crash at any moment leaves either.
//!
//! | file on the disk `incoming` | holds |
//! |---|---|
//! | `state` | chunks as they come |
//! | `proof` | base and handovers, once the state is complete and checked |
//! | `arrived` | nothing; once it is durable the state counts |
//!
//! The marker `arrived` is the moment at which the fetched state takes the place of the old one. Whoever starts and
//! finds it puts what is there into the stores, one after the other and each as often as it takes; then it removes the
//! marker, durably, and the rest. Whoever starts without it removes what came in unfinished.

use std::io;

use borsh::{BorshDeserialize, BorshSerialize};
use store::{CheckpointReader, Disk, DiskFile, Options, Store};

use super::STATE;
use crate::handover::{self, Handover};
use crate::home::names;
use crate::state_sync::base::Base;
use crate::{Home, ReplicaError, encode};

const PROOF: &str = "proof";
const ARRIVED: &str = "arrived";

/// What lies beside a state.
#[derive(BorshSerialize, BorshDeserialize)]
struct Proof {
    base: Base,
    /// From the genesis on.
    handovers: Vec<Handover>,
}

fn failed<D: Disk>(disk: &D) -> impl Fn(io::Error) -> ReplicaError {
    let place = disk.place();
    move |error| ReplicaError::Directory(place.clone(), error)
}

/// Removes every file of a disk, for what comes.
pub(crate) fn clear<D: Disk>(disk: &D) -> Result<(), ReplicaError> {
    let remove = || -> io::Result<()> {
        names(disk)?.iter().try_for_each(|name| disk.remove(name))?;
        disk.sync_directory()
    };
    remove().map_err(failed(disk))
}

/// What came in, checked, takes the place of what is here when the node starts next; durable when this returns.
pub(crate) fn commit<D: Disk>(incoming: &D, base: &Base, handovers: Vec<Handover>) -> Result<(), ReplicaError> {
    let bytes = encode(&Proof { base: base.clone(), handovers });
    let write = || -> io::Result<()> {
        let proof = incoming.create(PROOF)?;
        proof.write_at(0, &bytes)?;
        proof.sync()?;
        // The marker counts only if what it speaks of is there.
        incoming.sync_directory()?;
        incoming.create(ARRIVED)?.sync()?;
        incoming.sync_directory()
    };
    write().map_err(failed(incoming))
}

/// Puts what has arrived into the stores of a home, if anything has, and removes what came in unfinished.
///
/// # Errors
/// [`ReplicaError`]; the next start goes on.
pub fn finish<D: Disk + Clone>(home: &Home<D>) -> Result<(), ReplicaError> {
    let incoming = &home.incoming;
    let there = names(incoming).map_err(failed(incoming))?;
    if there.iter().any(|name| name == ARRIVED) {
        let Proof { base, handovers } = read(incoming).map_err(failed(incoming))?;
        tracing::info!(height = base.height, state = %base.state, "a fetched state takes the place of what was here");
        // Without one the state is here already, and only its proof was fetched.
        if there.iter().any(|name| name == STATE) {
            put_state(home, base.height)?;
        }
        put_certificate(&home.certificates, &base)?;
        // Those that are here rest on certificates that are gone now; all of them are in the proof.
        clear(&home.handovers)?;
        handover::put_all(home.handovers.clone(), handovers)?;
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

fn put_state<D: Disk + Clone>(home: &Home<D>, height: u64) -> Result<(), ReplicaError> {
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
    // To open it is to remove what it has taken the place of.
    Store::open(home.blocks.clone(), Options::default())?;
    Ok(())
}

/// Lets the certificates go on from the base.
fn put_certificate<D: Disk + Clone>(certificates: &D, base: &Base) -> Result<(), ReplicaError> {
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
