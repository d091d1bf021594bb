//! The journal of a day's sessions: what their participants ordered, and what they were told, in order.
//!
//! It is a [`store::Store`] in a directory of its own. A record has all that one turn of the root's thread brought, and
//! how many effects of the root are in it. Nothing of it is sent before it is synced. After a restart the sessions are
//! as they were, and the effects that are not in it are told.
//!
//! All integers are little-endian, in borsh. The first record is 0, a byte with the version of the format and the name
//! of the day's sessions. Others are 1, the count of effects, and entries.

use borsh::{BorshDeserialize, BorshSerialize};
use protocols::soup::SoupSession;
use store::{Disk, Options, Store, StoreError};
use venue::SessionNumber;

/// The version of the format.
const VERSION: u8 = 1;

/// What happened in a session.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) enum SessionEntry {
    /// A number is used.
    Claimed { session: SessionNumber, user_ref: u32 },
    /// An order or a replacement came, with symbol and side.
    Entered { session: SessionNumber, message: Vec<u8>, symbol: [u8; 8], side: u8 },
    /// The participant is told the next message.
    Told { session: SessionNumber, message: Vec<u8> },
    /// A session begins.
    Opened { session: SessionNumber },
}

#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
enum SessionRecord {
    Begins(u8, SoupSession),
    Entries(u64, Vec<SessionEntry>),
}

/// Why the journal of sessions cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SessionJournalError {
    /// The disk failed, or its bytes are not what was written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The directory cannot be made or removed.
    #[error("{0}: {1}")]
    Directory(String, std::io::Error),
    /// A record is none.
    #[error(
        "record {0} of the journal of sessions cannot be read: {1}; move its directory away, and participants begin anew"
    )]
    Format(u64, String),
    /// Another version of this program wrote it.
    #[error(
        "the journal of sessions has format {0}, and this program reads {VERSION}; move its directory away, and \
         participants begin anew"
    )]
    Version(u8),
}

/// The journal.
pub(super) struct SessionJournal<D: Disk> {
    store: Store<D>,
    record: Vec<u8>,
}

/// What a journal has from before.
#[derive(Debug, Default)]
pub(super) struct FoundSessions {
    /// The name of the day's sessions.
    pub name: SoupSession,
    /// How many effects of the root are in it; `None` if it begins now.
    pub effects: Option<u64>,
    /// Everything that happened, in order.
    pub entries: Vec<SessionEntry>,
}

impl<D: Disk> SessionJournal<D> {
    /// Opens the journal, or begins it with sessions of this name.
    pub fn open(disk: D, name: SoupSession) -> Result<(SessionJournal<D>, FoundSessions), SessionJournalError> {
        let (store, recovery) = Store::open(disk, Options::default())?;
        let mut journal = SessionJournal { store, record: Vec::new() };
        let mut found = FoundSessions { name, ..FoundSessions::default() };
        for block in recovery.blocks {
            let (number, bytes) = block?;
            match borsh::from_slice(&bytes).map_err(|error| SessionJournalError::Format(number, error.to_string()))? {
                SessionRecord::Begins(VERSION, name) => found.name = name,
                SessionRecord::Begins(version, _) => return Err(SessionJournalError::Version(version)),
                SessionRecord::Entries(effects, entries) => {
                    found.effects = Some(effects);
                    found.entries.extend(entries);
                }
            }
        }
        if journal.store.last_height() == 0 {
            journal.write(&SessionRecord::Begins(VERSION, name))?;
            journal.sync()?;
        }
        Ok((journal, found))
    }

    /// Adds what happened; it is durable after [`SessionJournal::sync`].
    pub fn append(&mut self, effects: u64, entries: &[SessionEntry]) -> Result<(), SessionJournalError> {
        self.write(&SessionRecord::Entries(effects, entries.to_vec()))
    }

    fn write(&mut self, record: &SessionRecord) -> Result<(), SessionJournalError> {
        self.record.clear();
        record.serialize(&mut self.record).expect("writing to memory cannot fail");
        Ok(self.store.append(self.store.last_height() + 1, &self.record)?)
    }

    /// Makes everything durable.
    pub fn sync(&mut self) -> Result<(), SessionJournalError> {
        self.store.sync()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use kernel::FaultDisk;

    use super::*;

    #[test]
    fn sessions_of_another_version_are_refused_by_number() {
        let disk = FaultDisk::new(1);
        let (mut store, _) = Store::open(disk.clone(), Options::default()).expect("a new store");
        let first = SessionRecord::Begins(VERSION + 1, SoupSession::default());
        store.append(1, &borsh::to_vec(&first).expect("plain data")).expect("room");
        store.sync().expect("a sound disk");
        drop(store);
        let error = SessionJournal::open(disk, SoupSession::default()).err().expect("another version");
        let told = error.to_string();
        assert!(told.starts_with("the journal of sessions has format 2, and this program reads 1;"), "{told}");
    }
}
