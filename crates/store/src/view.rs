//! Reads a store, whether another process has it open or not: nothing is locked, repaired or written.

use std::sync::Arc;

use crate::archive::{Archive, Blocks};
use crate::checkpoint::{self, CheckpointReader};
use crate::disk::Disk;
use crate::error::StoreError;
use crate::log::{self, Known};
use crate::segment::{Kind, LogFiles};

/// How often a log that seems damaged is read again: a record that is being written looks torn for a moment.
const LOOKS: u32 = 3;

/// A store at one moment, for as long as the caller reads.
#[derive(Debug)]
pub struct View<D: Disk> {
    /// The newest checkpoint; `None` for the state before the first block.
    pub checkpoint: Option<CheckpointReader<D>>,
    /// The durable blocks after it.
    pub blocks: Blocks<D>,
    /// All blocks and receipts.
    pub archive: Archive<D>,
    /// Height of the first stored block; above `last` if there is none.
    pub first: u64,
    /// Height of the last block that is known to be durable.
    pub last: u64,
}

/// Opens a view of a store, whether a node has it open or not. Of blocks that are being written, only those are
/// included that the log itself marks as durable.
///
/// # Errors
/// [`StoreError::Damaged`], or [`StoreError::Io`] if the directory cannot be read.
pub fn view<D: Disk>(disk: D) -> Result<View<D>, StoreError> {
    let disk = Arc::new(disk);
    // The checkpoint first: a log that is read later reaches at least as far.
    let newest = checkpoint::list(&*disk)?.pop();
    let checkpoint = newest.map(|height| CheckpointReader::open(disk.clone(), height)).transpose()?;
    let base = checkpoint.as_ref().map_or(0, CheckpointReader::height);
    let (blocks, attested) = settled(&disk, Kind::Blocks)?;
    let (receipts, _) = settled(&disk, Kind::Receipts)?;
    let first = blocks.segments().first().map_or(base + 1, |segment| segment.header.first);
    let last = attested.max(base);
    if first > base + 1 {
        let what = format!("the log begins at height {first}, but the newest checkpoint is at {base}");
        return Err(blocks.damaged(first, 0, what));
    }
    let (blocks, receipts) = (Arc::new(blocks), Arc::new(receipts));
    let replay = Blocks { files: blocks.clone(), next: base + 1, last };
    Ok(View { checkpoint, blocks: replay, archive: Archive { blocks, receipts }, first, last })
}

/// The files of a log with the records of the last one, and the height up to which the log itself records that it is
/// durable.
fn settled<D: Disk>(disk: &Arc<D>, kind: Kind) -> Result<(LogFiles<D>, u64), StoreError> {
    let mut looks = 1;
    loop {
        match look(disk, kind) {
            Err(StoreError::Damaged { .. }) if looks < LOOKS => looks += 1,
            looked => return looked,
        }
    }
}

fn look<D: Disk>(disk: &Arc<D>, kind: Kind) -> Result<(LogFiles<D>, u64), StoreError> {
    let files = LogFiles::new(disk.clone(), kind, Vec::new());
    let mut found = crate::segment::list(&**disk, kind)?;
    if let Some(&(first, length)) = found.last()
        && log::unfinished(&files, first, length)?
    {
        found.pop();
    }
    let mut segments = log::segments(&files, &found)?;
    let mut durable = 0;
    if let Some(last) = segments.last_mut() {
        let file = files.open(last.header.first, false)?;
        let scan = log::scan(&files, &file, &last.header, Known::NOTHING)?;
        // All earlier files were synced before this one was created.
        durable = scan.attested.max(last.header.first - 1);
        last.offsets = Some(scan.offsets);
    }
    *files.segments_mut() = segments;
    Ok((files, durable))
}
