//! Room on the disk. A node stops taking transactions before the disk is full, so that what it took can be written.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// For so long an answer of the system is believed.
const BELIEVED: Duration = Duration::from_secs(1);

/// Watches the file system of a directory.
pub(crate) struct Room {
    directory: PathBuf,
    least: u64,
    /// When the system was asked, and whether there was too little.
    asked: Mutex<Option<(Instant, bool)>>,
}

impl Room {
    /// Of a directory on whose file system so many bytes shall stay free.
    pub(crate) fn new(directory: &Path, least: u64) -> Room {
        Room { directory: directory.into(), least, asked: Mutex::new(None) }
    }

    /// Whether less is free than shall be. Where the system does not say, there is room: writing will tell.
    pub(crate) fn is_full(&self) -> bool {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        match *asked {
            Some((when, full)) if when.elapsed() < BELIEVED => full,
            before => {
                let free = free_bytes(&self.directory);
                let full = free.is_some_and(|free| free < self.least);
                if full && before.is_none_or(|(_, full)| !full) {
                    let (directory, least) = (self.directory.display(), self.least);
                    tracing::error!(%directory, free, least, "no transactions are taken: the disk fills up");
                }
                *asked = Some((Instant::now(), full));
                full
            }
        }
    }
}

/// Bytes that an ordinary user may still write.
pub fn free_bytes(directory: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(directory).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_what_the_system_says() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(free_bytes(folder.path()).is_some_and(|free| free > 0));
        assert!(!Room::new(folder.path(), 0).is_full());
        assert!(Room::new(folder.path(), u64::MAX).is_full());
        assert!(!Room::new(&folder.path().join("nowhere"), u64::MAX).is_full(), "writing will tell");
    }
}
