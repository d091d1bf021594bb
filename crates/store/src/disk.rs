//! What the store needs from a disk: one flat directory of files.

use std::fmt::Debug;
use std::io;

/// A directory of files. Written bytes are durable once [`DiskFile::sync`] has returned, and the names of files once
/// [`Disk::sync_directory`] has.
pub trait Disk: Debug + Send + Sync + 'static {
    /// An open file.
    type File: DiskFile;
    /// Excludes other users while it exists.
    type Lock: Debug + Send + Sync;

    /// The location of this directory, for messages.
    fn place(&self) -> String;

    /// Locks the directory against every other user; `None` if it is in use.
    ///
    /// # Errors
    /// As the operating system reports.
    fn lock(&self) -> io::Result<Option<Self::Lock>>;

    /// Names and lengths of all files, in no order.
    ///
    /// # Errors
    /// As the operating system reports.
    fn list(&self) -> io::Result<Vec<(String, u64)>>;

    /// Creates a file, open for reading and writing, that did not exist.
    ///
    /// # Errors
    /// If it exists, or as the operating system reports.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// Opens a file for reading and writing, or only for reading if `writable` is false.
    ///
    /// # Errors
    /// If it does not exist, or as the operating system reports.
    fn open(&self, name: &str, writable: bool) -> io::Result<Self::File>;

    /// Renames a file; replaces a file that had the new name.
    ///
    /// # Errors
    /// As the operating system reports.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// As the operating system reports.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes the names of files durable.
    ///
    /// # Errors
    /// As the operating system reports.
    fn sync_directory(&self) -> io::Result<()>;

    /// Bytes that no one can predict.
    ///
    /// # Errors
    /// As the operating system reports.
    fn entropy(&self) -> io::Result<[u8; 32]>;
}

/// An open file; readers and one writer may share it.
pub trait DiskFile: Debug + Send + Sync + 'static {
    /// Its length in bytes.
    ///
    /// # Errors
    /// As the operating system reports.
    fn length(&self) -> io::Result<u64>;

    /// Fills the buffer from this offset on.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] if the file is too short, or as the operating system reports.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Writes all bytes at this offset; extends the file if needed.
    ///
    /// # Errors
    /// As the operating system reports; some of the bytes may then have been written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Truncates the file to this length.
    ///
    /// # Errors
    /// As the operating system reports.
    fn truncate(&self, length: u64) -> io::Result<()>;

    /// Makes content and length durable.
    ///
    /// # Errors
    /// As the operating system reports. Data that was not durable before may then be lost, whatever a later call
    /// returns.
    fn sync(&self) -> io::Result<()>;
}
