//! The files of a log, and the records in them: finds records, and checks that they are what was written.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::disk::{Disk, DiskFile};
use crate::error::{Remedy, StoreError};
use crate::record::{
    DIGEST_BYTES, Digest, FILE_HEADER_BYTES, FileHeader, PART_BYTES_MAX, PartKind, RECORD_HEADER_BYTES, RecordHeader,
};

/// The kinds of log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Blocks,
    Receipts,
    /// The "heights" of this log are the numbers of its records, and the log itself records which first files were
    /// removed.
    Votes,
}

impl Kind {
    fn stem(self) -> &'static str {
        match self {
            Kind::Blocks => "blocks",
            Kind::Receipts => "receipts",
            Kind::Votes => "votes",
        }
    }

    pub(crate) fn file_name(self, first: u64) -> String {
        format!("{}-{first:020}.log", self.stem())
    }

    /// The first height of the file with this name, if it is one of this log.
    pub(crate) fn first_height(self, name: &str) -> Option<u64> {
        let digits = name.strip_prefix(self.stem())?.strip_prefix('-')?.strip_suffix(".log")?;
        (digits.len() == 20 && digits.bytes().all(|digit| digit.is_ascii_digit())).then(|| digits.parse().ok())?
    }
}

/// One file of a log.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) header: FileHeader,
    /// Where its records begin, by height; `None` until they are first needed.
    pub(crate) offsets: Option<Vec<u32>>,
}

/// The files of one log, shared by its writer and all readers.
#[derive(Debug)]
pub(crate) struct LogFiles<D: Disk> {
    pub(crate) disk: Arc<D>,
    pub(crate) kind: Kind,
    segments: RwLock<Vec<Segment>>,
}

/// A whole record, with all its parts.
pub(crate) struct Record {
    pub(crate) height: u64,
    /// The height that was durable when its last part was appended.
    pub(crate) durable: u64,
    pub(crate) payload: Vec<u8>,
    /// Digest of its last part.
    pub(crate) digest: Digest,
    /// Where it ends.
    pub(crate) end: u64,
}

impl<D: Disk> LogFiles<D> {
    pub(crate) fn new(disk: Arc<D>, kind: Kind, segments: Vec<Segment>) -> LogFiles<D> {
        LogFiles { disk, kind, segments: RwLock::new(segments) }
    }

    /// A panic cannot leave the list half changed, so a poisoned lock is still usable.
    pub(crate) fn segments(&self) -> RwLockReadGuard<'_, Vec<Segment>> {
        self.segments.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn segments_mut(&self) -> RwLockWriteGuard<'_, Vec<Segment>> {
        self.segments.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of a file with its directory, for messages.
    pub(crate) fn path(&self, first: u64) -> String {
        path(&*self.disk, &self.kind.file_name(first))
    }

    pub(crate) fn damaged(&self, first: u64, offset: u64, what: impl Into<String>) -> StoreError {
        let remedy = if self.kind == Kind::Votes { Remedy::Rejoin } else { Remedy::Restore };
        StoreError::Damaged { file: self.path(first), offset, what: what.into(), remedy }
    }

    pub(crate) fn open(&self, first: u64, writable: bool) -> Result<D::File, StoreError> {
        let name = self.kind.file_name(first);
        self.disk.open(&name, writable).map_err(StoreError::io("open", &self.path(first)))
    }

    /// The verified record of this height; `None` if there is none.
    pub(crate) fn read(&self, height: u64) -> Result<Option<Record>, StoreError> {
        let Some((first, salt, offset)) = self.locate(height)? else { return Ok(None) };
        let Some(file) = self.open_unless_forgotten(first)? else { return Ok(None) };
        let length = file.length().map_err(StoreError::io("read the length of", &self.path(first)))?;
        let record = read_record(&file, length, offset, &salt);
        let record = record.map_err(StoreError::io("read", &self.path(first)))?;
        match record {
            Ok(record) if record.height == height => Ok(Some(record)),
            Ok(record) => Err(self.damaged(first, offset, format!("a record of height {}", record.height))),
            Err(what) => Err(self.damaged(first, offset, what)),
        }
    }

    /// First height and salt of the file that holds this height, and the offset in it.
    fn locate(&self, height: u64) -> Result<Option<(u64, [u8; 32], u64)>, StoreError> {
        let segments = self.segments();
        let Some(index) = segments.partition_point(|segment| segment.header.first <= height).checked_sub(1) else {
            return Ok(None);
        };
        if segments[index].offsets.is_none() {
            let first = segments[index].header.first;
            drop(segments);
            self.load(first)?;
            return self.locate(height);
        }
        let Segment { header, offsets } = &segments[index];
        let offset = offsets.as_ref().and_then(|offsets| offsets.get((height - header.first) as usize));
        Ok(offset.map(|&offset| (header.first, header.salt, u64::from(offset))))
    }

    /// Opens a file for reading; `None` if it was removed.
    fn open_unless_forgotten(&self, first: u64) -> Result<Option<D::File>, StoreError> {
        match self.open(first, false) {
            Err(StoreError::Io { reason, .. })
                if reason.kind() == std::io::ErrorKind::NotFound && self.position(first).is_none() =>
            {
                Ok(None)
            }
            opened => opened.map(Some),
        }
    }

    /// The index in the list of the file that begins at this height.
    fn position(&self, first: u64) -> Option<usize> {
        self.segments().iter().position(|segment| segment.header.first == first)
    }

    /// Finds the records of a file that is not the last, following their headers; checks that they are linked. Does
    /// nothing if the file was removed.
    fn load(&self, first: u64) -> Result<(), StoreError> {
        let (header, next) = {
            let segments = self.segments();
            let Some(index) = segments.iter().position(|segment| segment.header.first == first) else { return Ok(()) };
            (segments[index].header.clone(), segments[index + 1].header.clone())
        };
        let Some(file) = self.open_unless_forgotten(first)? else { return Ok(()) };
        let length = file.length().map_err(StoreError::io("read the length of", &self.path(first)))?;
        let (mut offsets, mut offset, mut previous) = (Vec::new(), FILE_HEADER_BYTES as u64, header.previous);
        // Headers have their own checksums: the record or part before is the damaged one.
        let mut before = offset;
        let not_followed =
            |at: u64| self.damaged(first, at, "the digest is not the one that the next record, or file, names");
        for height in first..next.first {
            offsets.push(u32::try_from(offset).expect("records begin below 4 GiB"));
            loop {
                let link = read_link(&file, length, offset, &header.salt);
                let (record, digest, end) = link
                    .map_err(StoreError::io("read", &self.path(first)))?
                    .map_err(|what| self.damaged(first, offset, what))?;
                if record.height != height {
                    let what = format!("a record of height {} instead of {height}", record.height);
                    return Err(self.damaged(first, offset, what));
                }
                if record.previous != previous {
                    return Err(not_followed(before));
                }
                before = offset;
                (offset, previous) = (end, digest);
                if matches!(record.kind, PartKind::Last(_)) {
                    break;
                }
            }
        }
        if next.previous != previous {
            return Err(not_followed(before));
        }
        if offset != length {
            return Err(self.damaged(first, offset, "the file continues where the next one should"));
        }
        if let Some(segment) = self.segments_mut().iter_mut().find(|segment| segment.header.first == first) {
            segment.offsets = Some(offsets);
        }
        Ok(())
    }
}

pub(crate) fn path(disk: &impl Disk, name: &str) -> String {
    format!("{}/{name}", disk.place())
}

type Checked<T> = std::io::Result<Result<T, String>>;

/// The record at this offset of a file of this length, or its fault.
pub(crate) fn read_record(file: &impl DiskFile, length: u64, offset: u64, salt: &[u8; 32]) -> Checked<Record> {
    let (mut payload, mut offset, mut before) = (Vec::new(), offset, None);
    loop {
        let (header, digest, end) = match read_part(file, length, offset, salt, &mut payload)? {
            Ok(part) => part,
            Err(what) => return Ok(Err(what)),
        };
        let RecordHeader { kind, height, durable, previous } = header;
        if before.is_some_and(|before| before != (height, previous)) {
            return Ok(Err("a part of another record".into()));
        }
        if matches!(kind, PartKind::Last(_)) {
            return Ok(Ok(Record { height, durable, payload, digest, end }));
        }
        (offset, before) = (end, Some((height, digest)));
    }
}

/// Appends the payload of the part at this offset to `whole`; returns its header, its digest, and its end.
fn read_part(
    file: &impl DiskFile,
    length: u64,
    offset: u64,
    salt: &[u8; 32],
    whole: &mut Vec<u8>,
) -> Checked<(RecordHeader, Digest, u64)> {
    let header = match read_header(file, length, offset, salt)? {
        Ok(header) => header,
        Err(what) => return Ok(Err(what)),
    };
    let Some((payload_bytes, end)) = extent(&header, length, offset) else {
        return Ok(Err("the record is cut off".into()));
    };
    let begin = whole.len();
    whole.resize(begin + payload_bytes + DIGEST_BYTES, 0);
    file.read_at(offset + RECORD_HEADER_BYTES as u64, &mut whole[begin..])?;
    let (_, digest) = whole.split_last_chunk().expect("room for the digest");
    let digest = *digest;
    whole.truncate(begin + payload_bytes);
    if header.digest(salt, &whole[begin..]) != digest {
        return Ok(Err("the record does not match its digest".into()));
    }
    Ok(Ok((header, digest, end)))
}

/// The header of a record or a mark at this offset.
pub(crate) fn read_header(file: &impl DiskFile, length: u64, offset: u64, salt: &[u8; 32]) -> Checked<RecordHeader> {
    if length - offset < RECORD_HEADER_BYTES as u64 {
        return Ok(Err("too few bytes for a record".into()));
    }
    let mut header = [0; RECORD_HEADER_BYTES];
    file.read_at(offset, &mut header)?;
    Ok(RecordHeader::decode(&header, salt).ok_or("no record header, or one that does not match its checksum".into()))
}

/// The header of a record or part, its stored digest, and its end.
fn read_link(file: &impl DiskFile, length: u64, offset: u64, salt: &[u8; 32]) -> Checked<(RecordHeader, Digest, u64)> {
    let header = match read_header(file, length, offset, salt)? {
        Ok(header) => header,
        Err(what) => return Ok(Err(what)),
    };
    let Some((_, end)) = extent(&header, length, offset) else { return Ok(Err("the record is cut off".into())) };
    let mut digest = [0; DIGEST_BYTES];
    file.read_at(end - DIGEST_BYTES as u64, &mut digest)?;
    Ok(Ok((header, digest, end)))
}

/// Length of the payload and end of a record or part, if it lies within the file.
fn extent(header: &RecordHeader, length: u64, offset: u64) -> Option<(usize, u64)> {
    let payload = header.kind.payload()? as usize;
    let end = offset + (RECORD_HEADER_BYTES + payload + DIGEST_BYTES) as u64;
    (payload <= PART_BYTES_MAX && end <= length).then_some((payload, end))
}

/// First height and length of each file of a log, in order.
pub(crate) fn list(disk: &impl Disk, kind: Kind) -> Result<Vec<(u64, u64)>, StoreError> {
    let listed = disk.list().map_err(StoreError::io("list", &disk.place()))?;
    let mut found: Vec<(u64, u64)> =
        listed.iter().filter_map(|(name, length)| Some((kind.first_height(name)?, *length))).collect();
    found.sort_unstable();
    Ok(found)
}

/// Removes a file, durably.
pub(crate) fn remove(disk: &impl Disk, name: &str) -> Result<(), StoreError> {
    let path = path(disk, name);
    disk.remove(name).map_err(StoreError::io("remove", &path))?;
    disk.sync_directory().map_err(StoreError::io("sync the directory of", &path))
}

/// Makes everything appended so far durable, from another thread.
#[derive(Debug)]
pub(crate) struct Syncer<D: Disk> {
    pub(crate) file: Arc<D::File>,
    pub(crate) path: String,
    pub(crate) last: u64,
    pub(crate) durable: Arc<AtomicU64>,
}

impl<D: Disk> Clone for Syncer<D> {
    fn clone(&self) -> Self {
        let Syncer { file, path, last, durable } = self;
        Syncer { file: file.clone(), path: path.clone(), last: *last, durable: durable.clone() }
    }
}

impl<D: Disk> Syncer<D> {
    pub(crate) fn sync(&self) -> Result<(), StoreError> {
        self.file.sync().map_err(StoreError::io("sync", &self.path))?;
        self.durable.fetch_max(self.last, Ordering::AcqRel);
        Ok(())
    }
}
