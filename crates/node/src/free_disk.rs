//! Free disk space. A node stops accepting transactions before the disk is full, so that it can write those it has
//! accepted.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a reading of the free space stays valid.
const BELIEVED: Duration = Duration::from_secs(1);

/// Watches the file system of a directory.
pub(crate) struct FreeDisk {
    directory: PathBuf,
    least: u64,
    /// The time of the last reading, and whether there was too little space.
    asked: Mutex<Option<(Instant, bool)>>,
}

impl FreeDisk {
    /// Watches the file system of a directory on which `least` bytes should stay free.
    pub(crate) fn new(directory: &Path, least: u64) -> FreeDisk {
        FreeDisk { directory: directory.into(), least, asked: Mutex::new(None) }
    }

    /// Whether less than that is free. If the system cannot tell, false: a write will fail then.
    pub(crate) fn is_full(&self) -> bool {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        match *asked {
            Some((when, full)) if when.elapsed() < BELIEVED => full,
            before => {
                let free = free_bytes(&self.directory);
                let full = free.is_some_and(|free| free < self.least);
                if full && before.is_none_or(|(_, full)| !full) {
                    let (directory, least) = (self.directory.display(), self.least);
                    tracing::error!(%directory, free, least, "the disk is nearly full: accepting no transactions");
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
    fn free_disk_is_what_the_system_says() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(free_bytes(folder.path()).is_some_and(|free| free > 0));
        assert!(!FreeDisk::new(folder.path(), 0).is_full());
        assert!(FreeDisk::new(folder.path(), u64::MAX).is_full());
        assert!(
            !FreeDisk::new(&folder.path().join("nowhere"), u64::MAX).is_full(),
            "an unknown directory counts as not full"
        );
    }
}
