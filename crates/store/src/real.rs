//! A directory of the operating system.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::disk::{Disk, DiskFile};

const LOCK_NAME: &str = "lock";
const ONLY_OWNER_DIRECTORY: u32 = 0o700;
const ONLY_OWNER_FILE: u32 = 0o600;

/// A directory on a real disk; clones are the same directory.
#[derive(Clone, Debug)]
pub struct RealDisk {
    directory: PathBuf,
}

impl RealDisk {
    /// The directory at this path, created if it does not exist (readable only by its owner).
    ///
    /// # Errors
    /// If it cannot be created or is not a directory, or [`io::ErrorKind::PermissionDenied`] if others than its owner
    /// have access to it.
    pub fn new(directory: impl AsRef<Path>) -> io::Result<RealDisk> {
        let directory = directory.as_ref().to_path_buf();
        if !directory.exists() {
            DirBuilder::new().recursive(true).mode(ONLY_OWNER_DIRECTORY).create(&directory)?;
            // The directory's own name must survive a crash, too.
            let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty());
            File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
        }
        RealDisk::existing(directory)
    }

    /// The directory at this path, which must exist.
    ///
    /// # Errors
    /// If it does not exist, or [`io::ErrorKind::PermissionDenied`] if others than its owner have access to it.
    pub fn existing(directory: impl AsRef<Path>) -> io::Result<RealDisk> {
        let directory = directory.as_ref().to_path_buf();
        let mode = std::fs::metadata(&directory)?.permissions().mode();
        if mode & 0o077 != 0 {
            let text = format!("{}: open to others than its owner: chmod 700 it", directory.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        Ok(RealDisk { directory })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

impl Disk for RealDisk {
    type File = File;
    type Lock = File;

    fn place(&self) -> String {
        self.directory.display().to_string()
    }

    fn lock(&self) -> io::Result<Option<File>> {
        let path = self.path(LOCK_NAME);
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(ONLY_OWNER_FILE).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn list(&self) -> io::Result<Vec<(String, u64)>> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&self.directory)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if let (true, Ok(name)) = (metadata.is_file(), entry.file_name().into_string()) {
                files.push((name, metadata.len()));
            }
        }
        Ok(files)
    }

    fn create(&self, name: &str) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).create_new(true).mode(ONLY_OWNER_FILE).open(self.path(name))
    }

    fn open(&self, name: &str, writable: bool) -> io::Result<File> {
        OpenOptions::new().read(true).write(writable).open(self.path(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path(name))
    }

    fn sync_directory(&self) -> io::Result<()> {
        File::open(&self.directory)?.sync_all()
    }

    fn entropy(&self) -> io::Result<[u8; 32]> {
        let mut bytes = [0; 32];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

impl DiskFile for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.set_len(length)?;
        // Some file systems do not count a shorter length among what `sync_data` has to write.
        self.sync_all()
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}
