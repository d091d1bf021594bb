//! The log of a shard in a file.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use payments::{ClosedLog, LaneLog, LogOwner, MuteReason, closing, new_log};
use store::{Disk, DiskFile};

/// Bytes at the end of a log that are rewritten when it is opened. Never more than this is written and not synced:
/// see [`FileLog::open`].
pub(crate) const REWRITTEN: u64 = 64 << 20;
const PIECE: usize = 1 << 20;
/// The suffix of a log that is being created.
const UNFINISHED: &str = ".unfinished";

/// Why a log cannot be created or opened.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A disk error.
    #[error("the lane log {0}: {1}")]
    Disk(String, io::Error),
    /// The log exists already. A shard's log is created once, before its epoch begins.
    #[error("{0} exists already: a log is created once, when the shard's key is registered. Keep it")]
    Exists(String),
    /// The content of the log is no evidence.
    #[error("the lane log {0}: {1}")]
    Unreadable(String, MuteReason),
}

/// The log of a shard, open for reading and appending. One thread appends; others may read and sync.
#[derive(Debug)]
pub struct FileLog<D: Disk> {
    file: Arc<D::File>,
    name: String,
    /// Bytes of the file.
    length: AtomicU64,
    /// Bytes that follow those of the file and are not written yet.
    buffered: Vec<u8>,
}

fn name(owner: &LogOwner) -> String {
    format!("lane-{}-{}-{}", owner.home, owner.validator, owner.shard)
}

fn at<D: Disk>(disk: &D, name: &str) -> impl Fn(io::Error) -> LogError {
    let place = format!("{}/{name}", disk.place());
    move |error| LogError::Disk(place.clone(), error)
}

impl<D: Disk> FileLog<D> {
    /// Creates the log of a shard, durably, once: when its key is registered, before its epoch begins. The file gets
    /// its name once it is complete; if an error or a crash interrupts this, the next call starts again.
    ///
    /// # Errors
    /// [`LogError::Exists`] if there is one, or a disk error.
    pub fn create(disk: &D, owner: &LogOwner) -> Result<(), LogError> {
        let name = name(owner);
        let error = at(disk, &name);
        match disk.open(&name, false) {
            Ok(_) => return Err(LogError::Exists(format!("{}/{name}", disk.place()))),
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => {}
            Err(failed) => return Err(error(failed)),
        }
        write_new(disk, &name, owner).map_err(error)
    }

    /// Opens a log, and makes everything durable that is read from it: its last bytes are rewritten in place and
    /// synced, since a failed sync leaves pages that can be read but never reach the disk. `None` if there is none.
    ///
    /// # Errors
    /// A disk error.
    pub fn open(disk: &D, owner: &LogOwner) -> Result<Option<FileLog<D>>, LogError> {
        let name = name(owner);
        let error = at(disk, &name);
        let file = match disk.open(&name, true) {
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(&error)?,
        };
        let length = file.length().map_err(&error)?;
        rewrite(&file, length).map_err(&error)?;
        let name = format!("{}/{name}", disk.place());
        Ok(Some(FileLog { file: Arc::new(file), name, length: AtomicU64::new(length), buffered: Vec::new() }))
    }

    /// The location of the file.
    pub fn place(&self) -> &str {
        &self.name
    }

    /// Cuts off what a crash left unfinished, durably.
    ///
    /// # Errors
    /// A disk error.
    pub fn cut(&mut self, length: u64) -> Result<(), LogError> {
        let error = |error| LogError::Disk(self.name.clone(), error);
        if length < self.length() {
            self.file.truncate(length).and_then(|()| self.file.sync()).map_err(error)?;
            self.length.store(length, Ordering::Release);
        }
        Ok(())
    }

    /// Closes the log for a restart of the network, durably, and returns what is in it. No shard opens it again.
    ///
    /// # Errors
    /// [`LogError::Unreadable`] if the log is damaged, or a disk error.
    pub fn close(&mut self, owner: &LogOwner, restart: u32) -> Result<ClosedLog, LogError> {
        let unreadable = |reason| LogError::Unreadable(self.name.clone(), reason);
        let (intact, closing) = closing(self, owner, restart).map_err(unreadable)?;
        self.cut(intact)?;
        let error = |error| LogError::Disk(self.name.clone(), error);
        self.append(&closing).and_then(|()| self.file.sync()).map_err(error)?;
        let unreadable = |reason| LogError::Unreadable(self.name.clone(), reason);
        let closed = ClosedLog::read(self, *owner).map_err(unreadable)?;
        Ok(closed.expect("it ends with the record that closes it"))
    }

    /// Appends bytes, which can be read at once.
    ///
    /// # Errors
    /// A disk error; nothing may be appended or signed from then on.
    pub(crate) fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let length = self.length.load(Ordering::Acquire);
        self.file.write_at(length, bytes)?;
        self.length.store(length + bytes.len() as u64, Ordering::Release);
        Ok(())
    }

    /// Appends bytes, which can be read at once, but which [`FileLog::write_buffered`] writes.
    pub(crate) fn buffer(&mut self, bytes: &[u8]) {
        self.buffered.extend(bytes);
    }

    /// Bytes that are not written yet.
    pub(crate) fn buffered(&self) -> usize {
        self.buffered.len()
    }

    /// Writes what is buffered.
    ///
    /// # Errors
    /// As for [`FileLog::append`].
    pub(crate) fn write_buffered(&mut self) -> io::Result<()> {
        let bytes = std::mem::take(&mut self.buffered);
        let written = self.append(&bytes);
        self.buffered = bytes;
        self.buffered.clear();
        written
    }

    /// The file, for the syncer.
    pub(crate) fn file(&self) -> Arc<D::File> {
        self.file.clone()
    }
}

fn write_new(disk: &impl Disk, name: &str, owner: &LogOwner) -> io::Result<()> {
    let unfinished = format!("{name}{UNFINISHED}");
    if disk.list()?.iter().any(|(other, _)| *other == unfinished) {
        disk.remove(&unfinished)?;
    }
    let file = disk.create(&unfinished)?;
    file.write_at(0, &new_log(owner, disk.entropy()?))?;
    file.sync()?;
    disk.rename(&unfinished, name)?;
    disk.sync_directory()
}

fn rewrite(file: &impl DiskFile, length: u64) -> io::Result<()> {
    let mut offset = length.saturating_sub(REWRITTEN);
    let mut piece = vec![0; PIECE];
    while offset < length {
        let part = &mut piece[..(length - offset).min(PIECE as u64) as usize];
        file.read_at(offset, part)?;
        file.write_at(offset, part)?;
        offset += part.len() as u64;
    }
    file.sync()
}

impl<D: Disk> LaneLog for FileLog<D> {
    fn length(&self) -> u64 {
        self.length.load(Ordering::Acquire) + self.buffered.len() as u64
    }

    fn read(&self, offset: u64, length: usize) -> Option<Vec<u8>> {
        let end = offset.checked_add(length as u64).filter(|end| *end <= self.length())?;
        let written = self.length.load(Ordering::Acquire);
        let mut bytes = vec![0; written.clamp(offset, end).checked_sub(offset)? as usize];
        self.file.read_at(offset, &mut bytes).ok()?;
        let of_buffer = |place: u64| place.saturating_sub(written) as usize;
        bytes.extend(&self.buffered[of_buffer(offset)..of_buffer(end)]);
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use primitives::Digest;
    use store::RealDisk;

    use super::*;

    #[test]
    fn what_is_buffered_is_read_before_it_is_written_and_after() {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = RealDisk::new(folder.path().join("log")).expect("a disk");
        let owner = LogOwner { network: Digest([1; 32]), home: 0, validator: 0, shard: 0 };
        FileLog::create(&disk, &owner).expect("it is new");
        let mut log = FileLog::open(&disk, &owner).expect("readable").expect("there is one");
        let head = log.length();
        log.append(b"written ").expect("a write");
        log.buffer(b"and ");
        log.buffer(b"buffered");
        let whole = |log: &FileLog<RealDisk>| log.read(head, 20);
        let is_read = |log: &FileLog<RealDisk>| {
            assert_eq!(whole(log).as_deref(), Some(&b"written and buffered"[..]));
            assert_eq!(log.read(head + 5, 5).as_deref(), Some(&b"en an"[..]), "of both");
            assert_eq!(log.read(head + 12, 8).as_deref(), Some(&b"buffered"[..]), "of what was buffered");
            assert_eq!(log.read(head, 21), None, "beyond the end");
            assert_eq!(log.length(), head + 20);
        };
        is_read(&log);
        assert_eq!(log.buffered(), 12);
        log.write_buffered().expect("a write");
        assert_eq!(log.buffered(), 0);
        is_read(&log);
        let again = FileLog::open(&disk, &owner).expect("readable").expect("there is one");
        is_read(&again);
    }
}
