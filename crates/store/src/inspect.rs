//! Inspects a store without changing it: its content, with every digest verified.

use std::io::Read;
use std::sync::Arc;

use crate::checkpoint::{self, CheckpointReader};
use crate::disk::{Disk, DiskFile};
use crate::error::StoreError;
use crate::log::{self, Known};
use crate::record::FileHeader;
use crate::segment::{Kind, LogFiles, Segment};

/// The content of a store.
#[derive(Debug)]
pub struct Inspection {
    /// The block log.
    pub blocks: LogSummary,
    /// The receipt archive.
    pub receipts: LogSummary,
    /// Checkpoints, oldest first.
    pub checkpoints: Vec<CheckpointSummary>,
}

/// The content of a log.
#[derive(Debug, Default)]
pub struct LogSummary {
    /// Its files, in order.
    pub segments: Vec<SegmentSummary>,
    /// Files that are missing or do not belong together.
    pub damage: Option<StoreError>,
}

/// The content of a file of a log.
#[derive(Debug)]
pub struct SegmentSummary {
    /// The file, with its directory.
    pub file: String,
    /// Height of its first record.
    pub first: u64,
    /// Height of its last record; below `first` if it has none.
    pub last: u64,
    /// Its length.
    pub bytes: u64,
    /// Bytes after the last record and its mark: a record that is being written, or a torn tail.
    pub tail_bytes: u64,
    /// Its damage, if any.
    pub damage: Option<StoreError>,
}

/// A checkpoint.
#[derive(Debug)]
pub struct CheckpointSummary {
    /// The block after which it was the state.
    pub height: u64,
    /// Length of the payload.
    pub payload_bytes: u64,
    /// Its damage, if any.
    pub damage: Option<StoreError>,
}

impl Inspection {
    /// All damage.
    pub fn damage(&self) -> impl Iterator<Item = &StoreError> {
        let logs = [&self.blocks, &self.receipts].into_iter();
        let in_logs =
            logs.flat_map(|log| log.segments.iter().filter_map(|segment| segment.damage.as_ref()).chain(&log.damage));
        in_logs.chain(self.checkpoints.iter().filter_map(|checkpoint| checkpoint.damage.as_ref()))
    }
}

/// Reads a whole store, whether a node has it open or not, and changes nothing.
///
/// # Errors
/// [`StoreError::Io`] if the directory cannot be read; damage is part of the result.
pub fn inspect<D: Disk>(disk: D) -> Result<Inspection, StoreError> {
    let disk = Arc::new(disk);
    // In the reverse order of writing, so that a running node's store never seems incomplete.
    let checkpoints = checkpoint::list(&*disk)?.into_iter().filter_map(|height| checkpoint(&disk, height)).collect();
    Ok(Inspection { blocks: log(&disk, Kind::Blocks)?, receipts: log(&disk, Kind::Receipts)?, checkpoints })
}

fn log<D: Disk>(disk: &Arc<D>, kind: Kind) -> Result<LogSummary, StoreError> {
    let mut found = crate::segment::list(&**disk, kind)?;
    let files = LogFiles::new(disk.clone(), kind, Vec::new());
    if let Some(&(first, length)) = found.last()
        && log::unfinished(&files, first, length)?
    {
        found.pop();
    }
    let segments = match log::segments(&files, &found) {
        Ok(segments) => segments,
        Err(damage) => return Ok(LogSummary { segments: Vec::new(), damage: Some(damage) }),
    };
    let headers: Vec<FileHeader> = segments.into_iter().map(|segment: Segment| segment.header).collect();
    let mut summary = LogSummary::default();
    for (index, header) in headers.iter().enumerate() {
        summary.segments.push(segment(&files, header, headers.get(index + 1)));
    }
    Ok(summary)
}

fn segment<D: Disk>(files: &LogFiles<D>, header: &FileHeader, next: Option<&FileHeader>) -> SegmentSummary {
    let first = header.first;
    let mut summary =
        SegmentSummary { file: files.path(first), first, last: first - 1, bytes: 0, tail_bytes: 0, damage: None };
    let scanned = files.open(first, false).and_then(|file| {
        summary.bytes = file.length().map_err(StoreError::io("read the length of", &summary.file))?;
        log::scan(files, &file, header, Known::NOTHING)
    });
    match scanned {
        Ok(scan) => {
            summary.last = scan.next - 1;
            summary.tail_bytes = scan.length - scan.end - scan.kept_mark;
            let ends_well = next
                .is_none_or(|next| scan.end == scan.length && next.first == scan.next && next.previous == scan.digest);
            let what = "the file does not end where the next one continues";
            summary.damage = (!ends_well).then(|| files.damaged(first, scan.end, what));
        }
        Err(damage) => summary.damage = Some(damage),
    }
    summary
}

/// `None` if the node has removed it in the meantime.
fn checkpoint<D: Disk>(disk: &Arc<D>, height: u64) -> Option<CheckpointSummary> {
    let mut summary = CheckpointSummary { height, payload_bytes: 0, damage: None };
    match CheckpointReader::open(disk.clone(), height) {
        Ok(mut reader) => {
            summary.payload_bytes = reader.payload_bytes();
            summary.damage = read_through(&mut reader).err();
        }
        Err(StoreError::Io { reason, .. }) if reason.kind() == std::io::ErrorKind::NotFound => return None,
        Err(damage) => summary.damage = Some(damage),
    }
    Some(summary)
}

fn read_through<D: Disk>(reader: &mut CheckpointReader<D>) -> Result<(), StoreError> {
    let mut piece = vec![0; 1 << 16];
    loop {
        match reader.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) => return Err(error.downcast().unwrap_or_else(StoreError::io("read", "checkpoint"))),
        }
    }
}
