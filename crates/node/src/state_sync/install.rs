//! Putting a fetched state into the place of what is there, at a restart, so that a crash at any moment leaves either.
//!
//! ```text
//! data/incoming/state    chunks as they come; removed at every start
//!      incoming/proof    base and handovers, once the state is complete and checked
//! data/arrived/…         the same directory, renamed: from here on the state counts
//! ```
//!
//! The rename is the moment at which the fetched state takes the place of the old one. Whoever starts and finds
//! `arrived` puts what is in it into the stores, one after the other and each as often as it takes, and removes it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use borsh::{BorshDeserialize, BorshSerialize};
use store::{CheckpointReader, Options, RealDisk, Store};

use crate::exchange::ExchangeError;
use crate::handover::{self, Handover};
use crate::recovery::encode;
use crate::state_sync::base::Base;

const STATE: &str = "state";
const PROOF: &str = "proof";

/// What lies beside a state.
#[derive(BorshSerialize, BorshDeserialize)]
pub(super) struct Proof {
    pub(super) base: Base,
    /// The epoch of the first handover.
    pub(super) first_epoch: u64,
    pub(super) handovers: Vec<Handover>,
}

fn failed(path: &Path) -> impl Fn(io::Error) -> ExchangeError {
    let path = path.display().to_string();
    move |error| ExchangeError::Directory(path.clone(), error)
}

/// An empty directory for what comes in, and the file in it for the state.
pub(crate) fn begin(data: &Path) -> Result<PathBuf, ExchangeError> {
    let incoming = data.join("incoming");
    remove(&incoming)?;
    // Of its owner alone, like every directory of a store.
    RealDisk::new(&incoming).map_err(failed(&incoming))?;
    Ok(incoming.join(STATE))
}

/// What came in, checked, takes the place of what is here when the node starts next; durable when this returns.
pub(crate) fn commit(
    data: &Path,
    base: &Base,
    first_epoch: u64,
    handovers: Vec<Handover>,
) -> Result<(), ExchangeError> {
    let incoming = data.join("incoming");
    let proof = incoming.join(PROOF);
    let bytes = encode(&Proof { base: base.clone(), first_epoch, handovers });
    fs::write(&proof, bytes).map_err(failed(&proof))?;
    sync(&proof)?;
    sync(&incoming)?;
    fs::rename(&incoming, data.join("arrived")).map_err(failed(&incoming))?;
    sync(data)
}

/// Puts what has arrived into the stores below a data directory, if anything has, and removes what came in unfinished.
pub(crate) fn finish(data: &Path) -> Result<(), ExchangeError> {
    remove(&data.join("incoming"))?;
    let arrived = data.join("arrived");
    if !arrived.exists() {
        return Ok(());
    }
    let Proof { base, first_epoch, handovers } = read(&arrived)?;
    tracing::info!(height = base.height, state = %base.state, "a fetched state takes the place of what was here");
    let state = arrived.join(STATE);
    if state.exists() {
        put_state(data, &state, base.height)?;
    }
    put_certificate(&data.join("certificates"), &base)?;
    handover::put_all(data, first_epoch, handovers)?;
    // Under the other name it may be removed in pieces.
    fs::rename(&arrived, data.join("incoming")).map_err(failed(&arrived))?;
    sync(data)?;
    remove(&data.join("incoming"))
}

pub(super) fn read(arrived: &Path) -> Result<Proof, ExchangeError> {
    let path = arrived.join(PROOF);
    let bytes = fs::read(&path).map_err(failed(&path))?;
    borsh::from_slice(&bytes).map_err(failed(&path))
}

pub(super) fn put_state(data: &Path, state: &Path, height: u64) -> Result<(), ExchangeError> {
    let (mut store, recovery) = Store::open(RealDisk::new(data).map_err(failed(data))?, Options::default())?;
    let held = recovery.checkpoint.as_ref().map_or(0, CheckpointReader::height).max(store.last_height());
    if held >= height {
        return Ok(());
    }
    let mut writer = store.begin_replacement(height)?;
    let mut reader = CheckpointReader::of_snapshot(state)?;
    io::copy(&mut reader, &mut writer).map_err(|error| ExchangeError::Unreadable(height, error))?;
    writer.finish()?;
    drop(store);
    // To open it is to remove what it has taken the place of.
    Store::open(RealDisk::new(data).map_err(failed(data))?, Options::default())?;
    Ok(())
}

/// Lets the certificates go on from the base.
pub(super) fn put_certificate(directory: &Path, base: &Base) -> Result<(), ExchangeError> {
    let open = || -> Result<Store<RealDisk>, ExchangeError> {
        Ok(Store::open(RealDisk::new(directory).map_err(failed(directory))?, Options::default())?.0)
    };
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

fn remove(directory: &Path) -> Result<(), ExchangeError> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(directory)(error)),
        _ => Ok(()),
    }
}

fn sync(path: &Path) -> Result<(), ExchangeError> {
    File::open(path).and_then(|file| file.sync_all()).map_err(failed(path))
}
