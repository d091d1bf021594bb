//! Files that are whole whenever somebody reads them, also while another command writes them, and after a crash; and
//! files whose place is held before something is done that they will tell of.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::{NamedTempFile, TempPath};

use crate::error::ClientError;

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Replaces a file at once and durably; only its owner may read it.
///
/// # Errors
/// [`ClientError::File`] with the error of the disk; the file is as it was.
pub fn write_durable(path: &Path, bytes: &[u8]) -> Result<(), ClientError> {
    let folder = folder_of(path);
    let write = || {
        // Every command has an unfinished file of its own.
        let mut unfinished = tempfile::Builder::new().prefix(".").suffix(".unfinished").tempfile_in(folder)?;
        unfinished.write_all(bytes)?;
        unfinished.as_file().sync_all()?;
        unfinished.persist(path).map_err(|error| error.error)?;
        File::open(folder)?.sync_all()
    };
    write().map_err(|cause: io::Error| {
        let what = cause.to_string();
        ClientError::file(path, what, cause)
    })
}

/// A new file that is empty of meaning, with room on the disk: what it will tell of can be done now. Unless it is kept,
/// it is removed.
pub struct HeldFile(NamedTempFile);

impl HeldFile {
    /// Holds a name that nothing has.
    ///
    /// # Errors
    /// [`ClientError::File`] if something has the name, or the disk does not take `room` bytes.
    pub fn named(path: &Path, room: usize) -> Result<HeldFile, ClientError> {
        let open = OpenOptions::new().write(true).create_new(true).open(path);
        let open = open.and_then(|file| Ok(NamedTempFile::from_parts(file, TempPath::try_from_path(path)?)));
        open.and_then(|file| HeldFile(file).with(room)).map_err(|cause| match cause.kind() {
            io::ErrorKind::AlreadyExists => {
                ClientError::file(path, "exists already, and is not overwritten: give another name", cause)
            }
            _ => ClientError::file(path, format!("cannot be written: {cause}"), cause),
        })
    }

    /// Holds a place in a folder for a file that gets its name later.
    ///
    /// # Errors
    /// [`ClientError::File`] if the folder or the disk does not take `room` bytes.
    pub fn nameless(folder: &Path, room: usize) -> Result<HeldFile, ClientError> {
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix(".").suffix(".unfinished").permissions(Permissions::from_mode(0o644));
        let held = builder.tempfile_in(folder).and_then(|file| HeldFile(file).with(room));
        held.map_err(|cause| ClientError::file(folder, format!("cannot be written: {cause}"), cause))
    }

    fn with(mut self, room: usize) -> io::Result<HeldFile> {
        self.0.write_all(&vec![b' '; room])?;
        self.0.as_file().sync_all()?;
        Ok(self)
    }

    /// Writes the file durably. A nameless one gets `path`, which nothing has.
    ///
    /// # Errors
    /// [`ClientError::File`]; then there is no such file.
    pub fn keep(mut self, path: &Path, bytes: &[u8]) -> Result<(), ClientError> {
        let is_named = std::path::absolute(path).is_ok_and(|path| path == self.0.path());
        let mut keep = || {
            self.0.rewind()?;
            self.0.write_all(bytes)?;
            self.0.as_file().set_len(bytes.len() as u64)?;
            self.0.as_file().sync_all()
        };
        let kept = keep().and_then(|()| match is_named {
            true => self.0.keep().map(drop).map_err(|error| error.error),
            false => self.0.persist_noclobber(path).map(drop).map_err(|error| error.error),
        });
        let kept = kept.and_then(|()| File::open(folder_of(path))?.sync_all());
        kept.map_err(|cause| ClientError::file(path, format!("cannot be written: {cause}"), cause))
    }
}

/// Writes a new file durably; one with the same bytes may be there already.
///
/// # Errors
/// [`ClientError::File`]; what was there is as it was.
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<(), ClientError> {
    if std::fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    HeldFile::named(path, 0)?.keep(path, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_file_is_removed_unless_it_is_kept_and_overwrites_nothing() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let (path, other) = (folder.path().join("receipt"), folder.path().join("other"));
        drop(HeldFile::named(&path, 100).expect("held"));
        assert!(!path.exists());
        let held = HeldFile::named(&path, 100).expect("held");
        let twice = HeldFile::named(&path, 100).err().expect("it is held").to_string();
        assert!(twice.contains("is not overwritten"), "{twice}");
        held.keep(&path, b"one").expect("kept");
        assert_eq!(std::fs::read(&path).expect("there"), b"one");
        let nameless = HeldFile::nameless(folder.path(), 100).expect("held");
        assert!(nameless.keep(&path, b"two").is_err());
        HeldFile::nameless(folder.path(), 100).expect("held").keep(&other, b"two").expect("kept");
        write_new(&other, b"two").expect("the same bytes");
        assert!(write_new(&other, b"three").is_err() && HeldFile::named(Path::new("/dev/full"), 1).is_err());
        assert!(HeldFile::named(&folder.path().join("none/receipt"), 1).is_err());
        assert_eq!(
            (std::fs::read(&path).expect("there"), std::fs::read(&other).expect("there")),
            ("one".into(), "two".into())
        );
        assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 2, "nothing unfinished is left");
    }

    #[test]
    fn a_file_is_whole_whenever_it_is_read_while_others_write_it() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("file");
        let text = |writer: u8| vec![b'a' + writer; 100_000];
        write_durable(&path, &text(0)).expect("written");
        std::thread::scope(|scope| {
            let writers = [1, 2].map(|writer| {
                let path = &path;
                scope.spawn(move || (0..20).for_each(|_| write_durable(path, &text(writer)).expect("written")))
            });
            while writers.iter().any(|writer| !writer.is_finished()) {
                let read = std::fs::read(&path).expect("it is there");
                assert!((0..3).any(|writer| read == text(writer)), "{} bytes", read.len());
            }
        });
        assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 1, "nothing unfinished is left");
        let mode = std::fs::metadata(&path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
