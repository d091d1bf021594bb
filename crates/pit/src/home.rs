//! The directory of a venue: a directory for each incarnation, with the journal of its root.
//!
//! A journal that is lost is never made anew: what it had reported would be reported again otherwise, and the bond
//! would be forfeited. So a root is created only where its operator has said that the incarnation has reported nothing:
//! the directory then has a file `prepared`, which goes when the journal is there.

use std::fs::DirBuilder;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

const PREPARED: &str = "prepared";

/// The directory of an incarnation of a venue.
pub fn incarnation_directory(venues: &Path, venue: u32, incarnation: u32) -> PathBuf {
    venues.join(venue.to_string()).join(incarnation.to_string())
}

/// The directory of the journals of a venue's sessions, a directory for each day.
pub(crate) fn sessions_directory(venues: &Path, venue: u32) -> PathBuf {
    venues.join(venue.to_string()).join("sessions")
}

/// Prepares the directory of an incarnation that has reported nothing.
///
/// # Errors
/// If there is one already, or the disk fails.
pub fn prepare_incarnation(venues: &Path, venue: u32, incarnation: u32) -> Result<PathBuf> {
    let directory = incarnation_directory(venues, venue, incarnation);
    if directory.exists() {
        let why = format!(
            "{}: incarnation {incarnation} of venue {venue} is prepared, or has a journal already, which is never made anew",
            directory.display()
        );
        return Err(Error::new(ErrorKind::AlreadyExists, why));
    }
    let parent = directory.parent().expect("it is below the directory of its venue");
    let unfinished = parent.join(format!("{incarnation}.unfinished"));
    DirBuilder::new().recursive(true).mode(0o700).create(&unfinished)?;
    std::fs::File::create(unfinished.join(PREPARED))?.sync_all()?;
    std::fs::File::open(&unfinished)?.sync_all()?;
    std::fs::rename(&unfinished, &directory)?;
    std::fs::File::open(parent)?.sync_all()?;
    Ok(directory)
}

/// Whether the root of an incarnation is to be created.
pub(crate) fn is_prepared(directory: &Path) -> bool {
    directory.join(PREPARED).exists()
}

/// The root is created: it is opened from now on.
pub(crate) fn begun(directory: &Path) -> Result<()> {
    match std::fs::remove_file(directory.join(PREPARED)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => std::fs::File::open(directory)?.sync_all(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incarnation_is_prepared_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let directory = prepare_incarnation(folder.path(), 3, 1).expect("prepared");
        assert_eq!(directory, incarnation_directory(folder.path(), 3, 1));
        assert!(is_prepared(&directory));
        assert_eq!(prepare_incarnation(folder.path(), 3, 1).expect_err("there").kind(), ErrorKind::AlreadyExists);
        begun(&directory).expect("begun");
        begun(&directory).expect("nothing is left to do");
        assert!(!is_prepared(&directory));
        assert!(prepare_incarnation(folder.path(), 3, 1).is_err(), "a journal is never made anew");
        assert!(prepare_incarnation(folder.path(), 3, 2).is_ok());
    }
}
