//! The sessions of a day, shared: connections say what came, and the root's thread makes it durable and tells them.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use store::RealDisk;
use venue::{MatchingStage, SessionNumber, VenueInput};

use super::journal::SessionJournalError;
use super::session::OuchSession;
use super::sessions::OuchSessions;
use crate::clock::clock_ms;
use crate::events::StepEvents;

/// The sessions of the present day and incarnation.
#[derive(Default)]
pub(crate) struct OuchHub(Mutex<OuchSessions<RealDisk>>);

impl OuchHub {
    fn lock(&self) -> MutexGuard<'_, OuchSessions<RealDisk>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the sessions are those of this day and incarnation.
    pub fn is_of(&self, day: u16, incarnation: u32) -> bool {
        self.lock().is_of(day, incarnation)
    }

    /// Begins the sessions of a day and an incarnation, or goes on with them after a restart; those of others are
    /// forgotten. How many effects of the root they have been told of; `None` if they begin now.
    pub fn open(&self, folder: &Path, day: u16, incarnation: u32) -> Result<Option<u64>, SessionJournalError> {
        let mut of = self.lock();
        *of = OuchSessions::default();
        let directory = folder.join(format!("{incarnation}-{day}"));
        let failed = |error| SessionJournalError::Directory(directory.display().to_string(), error);
        let disk = RealDisk::new(&directory).map_err(failed)?;
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path != directory {
                std::fs::remove_dir_all(path).map_err(failed)?;
            }
        }
        of.open(disk, day, incarnation, clock_ms())
    }

    /// Does something to a session.
    pub fn with<T>(&self, session: SessionNumber, with: impl FnOnce(&mut OuchSession) -> T) -> T {
        self.lock().with(session, with)
    }

    /// Ends all sessions, and so their connections: whether what they said last has happened is not known.
    pub fn end_all(&self) {
        *self.lock() = OuchSessions::default();
    }

    /// Writes what came, before the root takes it: a process that is killed then knows its orders again.
    pub fn write(&self, effects: u64) -> Result<(), SessionJournalError> {
        self.lock().write(effects)
    }

    /// What a root is to be given about numbers that a restart finds without an answer.
    pub fn void_lost(&self, root: &MatchingStage) -> Vec<VenueInput> {
        self.lock().void_lost(clock_ms(), root)
    }

    /// Tells sessions what a step told about their orders, and what waits for them, once it is durable.
    pub fn tell(&self, events: &StepEvents, effects: u64) -> Result<(), SessionJournalError> {
        self.lock().tell(&events.reports, effects, clock_ms())
    }
}
