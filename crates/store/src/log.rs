//! One log: appending, syncing, and finding its end after a crash.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::disk::{Disk, DiskFile};
use crate::error::StoreError;
use crate::health::Repair;
use crate::record::{
    Digest, FILE_HEADER_BYTES, FileHeader, PART_BYTES_MAX, PartKind, RECORD_HEADER_BYTES, RecordHeader, attests_durable,
};
use crate::retention;
use crate::segment::{Kind, LogFiles, Record, Segment, Syncer, list, read_header, read_record, remove};

/// The maximum length of a part of a record is the intended length of a file, divided by this.
const PARTS_IN_FILE: u64 = 16;
/// Every part of a record except the last has at least this length.
const PART_BYTES_MIN: u64 = 1 << 10;
/// Bytes read at a time in search of evidence after a bad record.
const SEARCH_BYTES: usize = 1 << 20;

/// The writer of one log.
#[derive(Debug)]
pub(crate) struct Log<D: Disk> {
    pub(crate) files: Arc<LogFiles<D>>,
    segment_bytes: u64,
    tail: Option<Tail<D>>,
    /// Height of the last record, or of the one before the first.
    last: u64,
    /// Shared with the thread of the checkpoint, which syncs receipts too.
    durable: Arc<AtomicU64>,
    buffer: Vec<u8>,
}

/// The file that is written to.
#[derive(Debug)]
struct Tail<D: Disk> {
    file: Arc<D::File>,
    first: u64,
    number: u32,
    salt: [u8; 32],
    /// The offset of the next record.
    end: u64,
    /// Digest of the last record.
    digest: Digest,
}

/// What the rest of the store knows about a log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// Records up to this height were durable: a bad one among them is damage.
    pub(crate) durable: u64,
    /// Records above this height are not kept.
    pub(crate) limit: u64,
}

impl Known {
    pub(crate) const NOTHING: Known = Known { durable: 0, limit: u64::MAX - 1 };
}

impl<D: Disk> Log<D> {
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    pub(crate) fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Whether there has never been a record.
    pub(crate) fn is_empty(&self) -> bool {
        self.first().is_none_or(|first| self.last < first)
    }

    /// Height of the first record, or of the next one if there is a file but no record.
    pub(crate) fn first(&self) -> Option<u64> {
        self.files.segments().first().map(|segment| segment.header.first)
    }

    /// An error at the end of the last file.
    pub(crate) fn damaged_at_end(&self, what: String) -> StoreError {
        let (first, offset) = self.tail.as_ref().map_or((self.next(), 0), |tail| (tail.first, tail.end));
        self.files.damaged(first, offset, what)
    }

    /// Begins an empty log after this height.
    pub(crate) fn start_after(&mut self, height: u64) {
        self.last = height;
        self.durable.store(height, Ordering::Release);
    }

    pub(crate) fn next(&self) -> u64 {
        self.last + 1
    }

    /// Appends the record of the next height, in as many parts as it needs; not durable yet.
    pub(crate) fn append(&mut self, payload: &[u8]) -> Result<(), StoreError> {
        let (height, durable) = (self.next(), self.durable());
        if self.tail.as_ref().is_none_or(|tail| tail.end >= self.segment_bytes) {
            self.roll()?;
        }
        let part_bytes = self.part_bytes();
        let tail = self.tail.as_mut().expect("there is a current file");
        let path = self.files.path(tail.first);
        let begin = u32::try_from(tail.end).expect("records begin below 4 GiB");
        let mut rest = payload;
        loop {
            let (part, after) = rest.split_at(rest.len().min(part_bytes));
            let length = part.len() as u32;
            let kind = if after.is_empty() { PartKind::Last(length) } else { PartKind::Part(length) };
            let header = RecordHeader { kind, height, durable, previous: tail.digest };
            let digest = header.digest(&tail.salt, part);
            self.buffer.clear();
            self.buffer.extend_from_slice(&header.encode(&tail.salt));
            self.buffer.extend_from_slice(part);
            self.buffer.extend_from_slice(&digest);
            tail.file.write_at(tail.end, &self.buffer).map_err(StoreError::io("write", &path))?;
            (tail.end, tail.digest) = (tail.end + self.buffer.len() as u64, digest);
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        self.last = height;
        if let Some(offsets) = self.files.segments_mut().last_mut().and_then(|segment| segment.offsets.as_mut()) {
            offsets.push(begin);
        }
        Ok(())
    }

    /// The longest payload of a part.
    fn part_bytes(&self) -> usize {
        (self.segment_bytes / PARTS_IN_FILE).clamp(PART_BYTES_MIN, PART_BYTES_MAX as u64) as usize
    }

    /// Makes everything appended durable and records it in a mark; returns the last height.
    pub(crate) fn sync(&mut self) -> Result<u64, StoreError> {
        if let Some(syncer) = self.syncer().filter(|syncer| syncer.last > self.durable()) {
            syncer.sync()?;
            self.mark()?;
        }
        Ok(self.durable())
    }

    /// The handle with which a checkpoint makes the log durable; `None` if the log is empty.
    pub(crate) fn syncer(&self) -> Option<Syncer<D>> {
        let tail = self.tail.as_ref()?;
        let (path, durable) = (self.files.path(tail.first), self.durable.clone());
        Some(Syncer { file: tail.file.clone(), path, last: self.last, durable })
    }

    /// Writes a mark after the last record: it is durable. The mark itself is not synced: if it is lost, the next one
    /// replaces it.
    fn mark(&self) -> Result<(), StoreError> {
        let Some(tail) = &self.tail else { return Ok(()) };
        let mark = RecordHeader { kind: PartKind::Mark, height: self.last, durable: self.last, previous: tail.digest };
        let path = self.files.path(tail.first);
        tail.file.write_at(tail.end, &mark.encode(&tail.salt)).map_err(StoreError::io("write", &path))
    }

    /// Continues in a new file, unless the current one is empty.
    pub(crate) fn begin_file(&mut self) -> Result<(), StoreError> {
        let holds = self.tail.as_ref().is_some_and(|tail| self.last >= tail.first);
        if holds { self.roll() } else { Ok(()) }
    }

    /// The number of files, from the first on, that hold only records below this height.
    pub(crate) fn files_below(&self, height: u64) -> usize {
        let segments = self.files.segments();
        segments.iter().skip(1).take_while(|next| next.header.first <= height).count()
    }

    /// Removes this many of the first files, each removal durable before the next.
    pub(crate) fn remove_first(&mut self, files: usize) -> Result<(), StoreError> {
        for _ in 0..files {
            let header = self.files.segments_mut().remove(0).header;
            remove(&*self.files.disk, &self.files.kind.file_name(header.first))?;
        }
        Ok(())
    }

    /// Cuts off everything above this height, which is not before the first record. Readers find none of it any more
    /// once this begins.
    pub(crate) fn cut_above(&mut self, height: u64) -> Result<(), StoreError> {
        let kept = self.files.read(height)?;
        let gone: Vec<u64> = {
            let mut segments = self.files.segments_mut();
            let kept = segments.partition_point(|segment| segment.header.first <= height);
            let gone = segments.split_off(kept);
            if let Some(Segment { header, offsets: Some(offsets) }) = segments.last_mut() {
                offsets.truncate((height + 1 - header.first) as usize);
            }
            gone.into_iter().map(|segment| segment.header.first).collect()
        };
        self.tail = None;
        // The newest first, so that a crash leaves no gap.
        gone.iter().rev().try_for_each(|first| remove(&*self.files.disk, &self.files.kind.file_name(*first)))?;
        (self.last, self.durable) = (height, Arc::new(AtomicU64::new(height)));
        let header = self.files.segments().last().map(|segment| segment.header.clone());
        if let Some((FileHeader { first, number, salt, .. }, Record { end, digest, .. })) = header.zip(kept) {
            let file = self.files.open(first, true)?;
            let path = self.files.path(first);
            file.truncate(end).map_err(StoreError::io("truncate", &path))?;
            file.sync().map_err(StoreError::io("sync", &path))?;
            self.tail = Some(Tail { file: Arc::new(file), first, number, salt, end, digest });
        }
        self.mark()
    }

    /// Leaves the current file, durable and without a mark, and begins the next one.
    fn roll(&mut self) -> Result<(), StoreError> {
        let (mut number, mut previous) = (0, [0; 32]);
        if let Some(tail) = self.tail.take() {
            let path = self.files.path(tail.first);
            tail.file.truncate(tail.end).map_err(StoreError::io("truncate", &path))?;
            tail.file.sync().map_err(StoreError::io("sync", &path))?;
            self.durable.fetch_max(self.last, Ordering::AcqRel);
            (number, previous) = (tail.number + 1, tail.digest);
        }
        let (disk, first) = (&self.files.disk, self.next());
        let path = self.files.path(first);
        let salt = disk.entropy().map_err(StoreError::io("read random bytes for", &path))?;
        let header = FileHeader { number, first, previous, salt };
        let file = disk.create(&self.files.kind.file_name(first)).map_err(StoreError::io("create", &path))?;
        file.write_at(0, &header.encode()).map_err(StoreError::io("write", &path))?;
        file.sync().map_err(StoreError::io("sync", &path))?;
        disk.sync_directory().map_err(StoreError::io("sync the directory of", &path))?;
        let (file, end) = (Arc::new(file), FILE_HEADER_BYTES as u64);
        self.tail = Some(Tail { file, first, number, salt, end, digest: previous });
        self.files.segments_mut().push(Segment { header, offsets: Some(Vec::new()) });
        Ok(())
    }

    /// Opens a log from the existing files; cuts off a torn tail and makes the rest durable.
    pub(crate) fn open(
        disk: &Arc<D>,
        kind: Kind,
        known: Known,
        segment_bytes: u64,
        repairs: &mut Vec<Repair>,
    ) -> Result<Log<D>, StoreError> {
        let files = LogFiles::new(disk.clone(), kind, Vec::new());
        let segments = remaining_segments(&files, known.limit, repairs)?;
        let durable = Arc::new(AtomicU64::new(0));
        let buffer = Vec::new();
        let Some(last) = segments.last() else {
            return Ok(Log { files: Arc::new(files), segment_bytes, tail: None, last: 0, durable, buffer });
        };
        let (first, number, salt) = (last.header.first, last.header.number, last.header.salt);
        let file = files.open(first, true)?;
        let scan = scan(&files, &file, &last.header, known)?;
        let path = files.path(first);
        if scan.end + scan.kept_mark < scan.length {
            file.truncate(scan.end).map_err(StoreError::io("truncate", &path))?;
            let (offset, bytes) = (scan.end, scan.length - scan.end);
            repairs.push(Repair { file: path.clone(), offset, bytes, height: scan.next });
        }
        // After a kill of the process the operating system may still hold pages that were never synced, and after a
        // failed sync it may treat such pages as written. The next sync writes only what is written again.
        rewrite(&file, scan.end + scan.kept_mark).map_err(StoreError::io("rewrite the end of", &path))?;
        file.sync().map_err(StoreError::io("sync", &path))?;
        disk.sync_directory().map_err(StoreError::io("sync the directory of", &path))?;
        *files.segments_mut() = segments;
        if let Some(segment) = files.segments_mut().last_mut() {
            segment.offsets = Some(scan.offsets);
        }
        durable.store(scan.next - 1, Ordering::Release);
        let tail = Some(Tail { file: Arc::new(file), first, number, salt, end: scan.end, digest: scan.digest });
        let log = Log { files: Arc::new(files), segment_bytes, tail, last: scan.next - 1, durable, buffer };
        log.mark()?;
        Ok(log)
    }
}

/// Rewrites the first `length` bytes of a file in place.
fn rewrite(file: &impl DiskFile, length: u64) -> std::io::Result<()> {
    let mut buffer = vec![0; SEARCH_BYTES.min(length as usize)];
    for offset in (0..length).step_by(SEARCH_BYTES) {
        let part = &mut buffer[..SEARCH_BYTES.min((length - offset) as usize)];
        file.read_at(offset, part)?;
        file.write_at(offset, part)?;
    }
    Ok(())
}

/// The files of a log by their headers, without a file whose creation a crash interrupted, and without those above
/// `limit`.
fn remaining_segments<D: Disk>(
    files: &LogFiles<D>,
    limit: u64,
    repairs: &mut Vec<Repair>,
) -> Result<Vec<Segment>, StoreError> {
    let mut found = list(&*files.disk, files.kind)?;
    while let Some(&(first, bytes)) = found.last() {
        if !unfinished(files, first, bytes)? && first <= limit.saturating_add(1) {
            break;
        }
        let (path, name) = (files.path(first), files.kind.file_name(first));
        files.disk.remove(&name).map_err(StoreError::io("remove", &path))?;
        files.disk.sync_directory().map_err(StoreError::io("sync the directory of", &path))?;
        repairs.push(Repair { file: path, offset: 0, bytes, height: first });
        found.pop();
    }
    segments(files, &found)
}

/// Whether a file was left while it was being created: then it is empty.
pub(crate) fn unfinished<D: Disk>(files: &LogFiles<D>, first: u64, length: u64) -> Result<bool, StoreError> {
    Ok(length <= FILE_HEADER_BYTES as u64 && read_file_header(files, first, length)?.is_err())
}

/// The files of a log, given first height and length of each; none may be missing except first ones that were
/// forgotten.
pub(crate) fn segments<D: Disk>(files: &LogFiles<D>, found: &[(u64, u64)]) -> Result<Vec<Segment>, StoreError> {
    let mut segments: Vec<Segment> = Vec::with_capacity(found.len());
    let floor = retention::floor(&*files.disk)?;
    for (number, &(first, length)) in found.iter().enumerate() {
        let header = read_file_header(files, first, length)?.map_err(|what| files.damaged(first, 0, what))?;
        let forgotten = segments.first().map_or(header.number, |segment| segment.header.number) as usize;
        let may_lack = files.kind == Kind::Votes || found[0].0 <= floor;
        let before = if may_lack { forgotten + number } else { number };
        if header.number as usize != before {
            let what =
                format!("this is file {} of the log, but {before} come before it: files are missing", header.number);
            return Err(files.damaged(first, 0, what));
        }
        if header.first != first || (header.number == 0 && header.previous != [0; 32]) {
            return Err(files.damaged(first, 0, "the header is that of another file"));
        }
        segments.push(Segment { header, offsets: None });
    }
    Ok(segments)
}

fn read_file_header<D: Disk>(
    files: &LogFiles<D>,
    first: u64,
    length: u64,
) -> Result<Result<FileHeader, String>, StoreError> {
    if length < FILE_HEADER_BYTES as u64 {
        return Ok(Err(format!("only {length} bytes, too few for a header")));
    }
    let mut header = [0; FILE_HEADER_BYTES];
    let file = files.open(first, false)?;
    file.read_at(0, &mut header).map_err(StoreError::io("read", &files.path(first)))?;
    Ok(FileHeader::decode(&header))
}

/// The content of the last file of a log.
pub(crate) struct Scan {
    pub(crate) offsets: Vec<u32>,
    /// The offset where the records end.
    pub(crate) end: u64,
    /// Bytes of a valid mark after that, at the very end of the file.
    pub(crate) kept_mark: u64,
    pub(crate) length: u64,
    /// The height after the last record.
    pub(crate) next: u64,
    pub(crate) digest: Digest,
    /// The height up to which a record or a mark records that everything was durable.
    pub(crate) attested: u64,
}

enum Scanned {
    Record(Record),
    Mark,
}

/// Reads the last file to its end, to the first record above the limit, or to a torn tail.
pub(crate) fn scan<D: Disk>(
    files: &LogFiles<D>,
    file: &D::File,
    header: &FileHeader,
    known: Known,
) -> Result<Scan, StoreError> {
    let path = files.path(header.first);
    let length = file.length().map_err(StoreError::io("read the length of", &path))?;
    let (end, digest) = (FILE_HEADER_BYTES as u64, header.previous);
    let mut scan = Scan { offsets: Vec::new(), end, kept_mark: 0, length, next: header.first, digest, attested: 0 };
    while scan.end < length {
        match next_in(file, &scan, &header.salt).map_err(StoreError::io("read", &path))? {
            Ok(Scanned::Record(_)) | Err(_) if scan.next > known.limit => break,
            Ok(Scanned::Record(record)) => {
                scan.offsets.push(u32::try_from(scan.end).expect("records begin below 4 GiB"));
                scan.end = record.end;
                scan.next += 1;
                scan.digest = record.digest;
                scan.attested = scan.attested.max(record.durable);
            }
            Ok(Scanned::Mark) if scan.end + RECORD_HEADER_BYTES as u64 == length => {
                scan.attested = scan.next - 1;
                scan.kept_mark = RECORD_HEADER_BYTES as u64;
                break;
            }
            found => {
                // Bytes after a mark are an interrupted write over it, unless they record that this had been durable.
                let what = found.err().unwrap_or("a mark where the next record should be".into());
                let evidence = durable_after(file, scan.end + 1, length, &header.salt, scan.next);
                if scan.next <= known.durable || evidence.map_err(StoreError::io("read", &path))? {
                    return Err(files.damaged(header.first, scan.end, what));
                }
                break;
            }
        }
    }
    Ok(scan)
}

/// What follows the bytes read so far: the next record, a mark, or a fault.
fn next_in(file: &impl DiskFile, scan: &Scan, salt: &[u8; 32]) -> std::io::Result<Result<Scanned, String>> {
    let header = match read_header(file, scan.length, scan.end, salt)? {
        Ok(header) => header,
        Err(what) => return Ok(Err(what)),
    };
    let is_mark = header.kind == PartKind::Mark;
    let height = if is_mark { scan.next - 1 } else { scan.next };
    if header.height != height || header.previous != scan.digest {
        return Ok(Err(format!("not the record that follows height {}", scan.next - 1)));
    }
    if is_mark {
        return Ok(Ok(Scanned::Mark));
    }
    Ok(read_record(file, scan.length, scan.end, salt)?.map(Scanned::Record))
}

/// Whether any valid record or mark from this offset on records that `height` was durable.
fn durable_after(
    file: &impl DiskFile,
    mut offset: u64,
    length: u64,
    salt: &[u8; 32],
    height: u64,
) -> std::io::Result<bool> {
    let mut piece = vec![0; SEARCH_BYTES];
    while length.saturating_sub(offset) >= RECORD_HEADER_BYTES as u64 {
        let piece = &mut piece[..(length - offset).min(SEARCH_BYTES as u64) as usize];
        file.read_at(offset, piece)?;
        if attests_durable(piece, salt, height) {
            return Ok(true);
        }
        // The next piece begins with the possible start of a header.
        offset += (piece.len() - (RECORD_HEADER_BYTES - 1)) as u64;
    }
    Ok(false)
}
