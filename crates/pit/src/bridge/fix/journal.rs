//! What a bridge of FIX remembers over its restarts, in a directory: everything that its machine was told and did, in
//! order. A record has all of one turn, and nothing of a turn leaves the bridge before its record is synced.
//!
//! It is a [`store::Store`]; a record is a byte with the version of the format and the entries, in borsh. When a
//! session of the venue ends, the entries that still matter take the place of all before.

use std::io::{Read, Write};
use std::path::Path;

use borsh::{BorshDeserialize, BorshSerialize};
use protocols::soup::SoupSession;
use store::{Disk, Options, RealDisk, Store, StoreError};

/// The version of the format.
const VERSION: u8 = 1;

/// One thing that a machine was told, or did.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum FixEntry {
    /// The names of both sides, and where the numbers of both directions begin.
    Begins {
        /// This side.
        sender: Vec<u8>,
        /// The participant.
        target: Vec<u8>,
        /// The first number that goes out.
        first: u64,
        /// The number that is expected.
        expected: u64,
        /// The largest number of an order at the venue that is in use.
        last: u32,
    },
    /// A message goes out: its number, when, its kind and fields.
    Sent(u64, u64, Option<(String, Vec<u8>)>),
    /// The next message of the participant has this number.
    Expects(u64),
    /// Messages before this number are forgotten.
    Forgets(u64),
    /// A message of the participant.
    Asked(Vec<u8>),
    /// What the venue is sent under a number, until it answers.
    Signed(u32, Vec<u8>),
    /// A message of the venue; number 0 is a refusal of the bridge's own.
    Heard(u64, Vec<u8>),
    /// A session of the venue begins.
    Session(SoupSession),
    /// A list that the venue is sent under these numbers, until it has answered all of them.
    Listed(Vec<u32>, Vec<u8>),
}

/// Why the journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FixJournalError {
    /// The disk failed, or its bytes are not what was written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The directory cannot be used.
    #[error("{0}: {1}")]
    Directory(String, std::io::Error),
    /// A record is none.
    #[error(
        "record {0} of the FIX journal cannot be read: {1}; restore it from a copy, or begin with another directory"
    )]
    Format(u64, String),
}

/// The journal on a disk.
pub struct FixJournalFile<D: Disk + Clone> {
    disk: D,
    store: Option<Store<D>>,
    place: String,
}

impl FixJournalFile<RealDisk> {
    /// Opens the journal of a directory, which is made if it is not there; what it has.
    ///
    /// # Errors
    /// [`FixJournalError`].
    pub fn open(directory: &Path) -> Result<(FixJournalFile<RealDisk>, Vec<FixEntry>), FixJournalError> {
        let place = directory.display().to_string();
        let disk = RealDisk::new(directory).map_err(|error| FixJournalError::Directory(place, error))?;
        FixJournalFile::on(disk)
    }
}

impl<D: Disk + Clone> FixJournalFile<D> {
    /// Opens the journal of a disk; what it has.
    ///
    /// # Errors
    /// [`FixJournalError`].
    pub fn on(disk: D) -> Result<(FixJournalFile<D>, Vec<FixEntry>), FixJournalError> {
        let place = disk.place();
        let (store, recovery) = Store::open(disk.clone(), Options::default())?;
        let mut entries = Vec::new();
        if let Some(mut snapshot) = recovery.checkpoint {
            let (number, mut bytes) = (snapshot.height(), Vec::new());
            snapshot.read_to_end(&mut bytes).map_err(|error| FixJournalError::Format(number, error.to_string()))?;
            entries.extend(read(number, &bytes)?);
        }
        for block in recovery.blocks {
            let (number, bytes) = block?;
            entries.extend(read(number, &bytes)?);
        }
        Ok((FixJournalFile { disk, store: Some(store), place }, entries))
    }

    fn store(&mut self) -> Result<&mut Store<D>, FixJournalError> {
        let lost = || StoreError::Failed("the journal could not be replaced".into());
        Ok(self.store.as_mut().ok_or_else(lost)?)
    }

    /// Adds entries, durably.
    ///
    /// # Errors
    /// [`FixJournalError`]: nothing of the turn may leave the bridge.
    pub fn append(&mut self, entries: &[FixEntry]) -> Result<(), FixJournalError> {
        let bytes = record(entries);
        let store = self.store()?;
        store.append(store.last_height() + 1, &bytes)?;
        store.sync()?;
        Ok(())
    }

    /// Puts entries in the place of all before; a crash leaves these or those.
    ///
    /// # Errors
    /// [`FixJournalError`].
    pub fn replace(&mut self, entries: &[FixEntry]) -> Result<(), FixJournalError> {
        let bytes = record(entries);
        let place = self.place.clone();
        let store = self.store()?;
        let mut writer = store.begin_replacement(store.last_height() + 1)?;
        writer.write_all(&bytes).map_err(|error| FixJournalError::Directory(place, error))?;
        writer.finish()?;
        self.store = None;
        self.store = Some(Store::open(self.disk.clone(), Options::default())?.0);
        Ok(())
    }
}

fn record(entries: &[FixEntry]) -> Vec<u8> {
    borsh::to_vec(&(VERSION, entries)).expect("writing to memory cannot fail")
}

fn read(number: u64, bytes: &[u8]) -> Result<Vec<FixEntry>, FixJournalError> {
    let format = |why: String| FixJournalError::Format(number, why);
    match bytes {
        [VERSION, entries @ ..] => borsh::from_slice(entries).map_err(|error| format(error.to_string())),
        [version, ..] => Err(format(format!("its format has version {version}, and this program reads {VERSION}"))),
        [] => Err(format("it is empty".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_another_version_are_refused_by_number() {
        let entries = [FixEntry::Expects(7), FixEntry::Forgets(3)];
        let mut bytes = record(&entries);
        assert_eq!(read(1, &bytes).expect("a sound record"), entries);
        bytes[0] = VERSION + 1;
        let told = read(5, &bytes).expect_err("another version").to_string();
        assert!(told.contains("record 5") && told.contains("has version 2, and this program reads 1"), "{told}");
        assert!(read(1, &[]).is_err());
    }
}
