//! The little that the store asks of a disk: one flat directory of files.

use std::fmt::Debug;
use std::io;

/// A directory of files. What is written is durable once [`DiskFile::sync`] has returned, and the names of files once
/// [`Disk::sync_directory`] has.
pub trait Disk: Debug + Send + Sync + 'static {
    /// An open file.
    type File: DiskFile;
    /// Keeps others out while it lives.
    type Lock: Debug + Send + Sync;

    /// Where this is, for messages.
    fn place(&self) -> String;

    /// Locks the directory against every other user of it; `None` if one is there.
    ///
    /// # Errors
    /// As the operating system says.
    fn lock(&self) -> io::Result<Option<Self::Lock>>;

    /// Names and lengths of all files, in no order.
    ///
    /// # Errors
    /// As the operating system says.
    fn list(&self) -> io::Result<Vec<(String, u64)>>;

    /// Makes a file, open for reading and writing, that did not exist.
    ///
    /// # Errors
    /// If it exists, or as the operating system says.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// Opens a file for reading and writing, or if `writable` is false for reading.
    ///
    /// # Errors
    /// If it does not exist, or as the operating system says.
    fn open(&self, name: &str, writable: bool) -> io::Result<Self::File>;

    /// Gives a file another name, in place of a file that had it.
    ///
    /// # Errors
    /// As the operating system says.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// As the operating system says.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes the names of files durable.
    ///
    /// # Errors
    /// As the operating system says.
    fn sync_directory(&self) -> io::Result<()>;

    /// Bytes that nobody can foresee.
    ///
    /// # Errors
    /// As the operating system says.
    fn entropy(&self) -> io::Result<[u8; 32]>;
}

/// An open file; readers and one writer may share it.
pub trait DiskFile: Debug + Send + Sync + 'static {
    /// Its length in bytes.
    ///
    /// # Errors
    /// As the operating system says.
    fn length(&self) -> io::Result<u64>;

    /// Fills the buffer from this offset on.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] if the file is too short, or as the operating system says.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Writes all bytes at this offset, making the file longer if need be.
    ///
    /// # Errors
    /// As the operating system says; some of the bytes may then have been written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts the file to this length.
    ///
    /// # Errors
    /// As the operating system says.
    fn truncate(&self, length: u64) -> io::Result<()>;

    /// Makes content and length durable.
    ///
    /// # Errors
    /// As the operating system says. What was not durable before may then be lost, whatever a later call returns.
    fn sync(&self) -> io::Result<()>;
}
