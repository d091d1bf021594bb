//! Reads what the logs and checkpoints hold, from any thread.

use std::sync::Arc;

use crate::checkpoint::{self, CheckpointReader};
use crate::disk::Disk;
use crate::error::StoreError;
use crate::segment::LogFiles;

/// Reads blocks, receipts and checkpoints in parallel with the [`crate::Store`], from any thread, even after the
/// store failed.
#[derive(Debug)]
pub struct Archive<D: Disk> {
    pub(crate) blocks: Arc<LogFiles<D>>,
    pub(crate) receipts: Arc<LogFiles<D>>,
}

impl<D: Disk> Clone for Archive<D> {
    fn clone(&self) -> Self {
        Archive { blocks: self.blocks.clone(), receipts: self.receipts.clone() }
    }
}

impl<D: Disk> Archive<D> {
    /// The block of this height, even if it is not durable yet; `None` if there is none.
    ///
    /// # Errors
    /// If it cannot be read or is damaged.
    pub fn block(&self, height: u64) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.blocks.read(height)?.map(|record| record.payload))
    }

    /// The receipts of the block of this height; `None` if there are none.
    ///
    /// # Errors
    /// If they cannot be read or are damaged.
    pub fn receipts(&self, height: u64) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.receipts.read(height)?.map(|record| record.payload))
    }

    /// The newest finished checkpoint, for a peer that requests a snapshot; `None` if there is none. It can be read
    /// to its end even if the store removes it in the meantime.
    ///
    /// # Errors
    /// If it cannot be read or is damaged.
    pub fn newest_checkpoint(&self) -> Result<Option<CheckpointReader<D>>, StoreError> {
        let newest = checkpoint::list(&*self.blocks.disk)?.pop();
        newest.map(|height| CheckpointReader::open(self.blocks.disk.clone(), height)).transpose()
    }

    /// The heights of the finished checkpoints, oldest first.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn checkpoints(&self) -> Result<Vec<u64>, StoreError> {
        checkpoint::list(&*self.blocks.disk)
    }

    /// The finished checkpoint of this height; `None` if there is none.
    ///
    /// # Errors
    /// As for [`Archive::newest_checkpoint`].
    pub fn checkpoint(&self, height: u64) -> Result<Option<CheckpointReader<D>>, StoreError> {
        let there = checkpoint::list(&*self.blocks.disk)?.contains(&height);
        there.then(|| CheckpointReader::open(self.blocks.disk.clone(), height)).transpose()
    }
}

/// The blocks to replay, one in memory at a time.
#[derive(Debug)]
pub struct Blocks<D: Disk> {
    pub(crate) files: Arc<LogFiles<D>>,
    pub(crate) next: u64,
    pub(crate) last: u64,
}

impl<D: Disk> Clone for Blocks<D> {
    fn clone(&self) -> Blocks<D> {
        Blocks { files: self.files.clone(), next: self.next, last: self.last }
    }
}

impl<D: Disk> Blocks<D> {
    /// The number of remaining blocks.
    pub fn remaining(&self) -> u64 {
        (self.last + 1).saturating_sub(self.next)
    }
}

impl<D: Disk> Iterator for Blocks<D> {
    type Item = Result<(u64, Vec<u8>), StoreError>;

    /// The next height and its block; nothing after an error.
    fn next(&mut self) -> Option<Self::Item> {
        if self.next > self.last {
            return None;
        }
        let height = self.next;
        self.next += 1;
        let read = self.files.read(height);
        let record = read.and_then(|record| record.ok_or(StoreError::Forgotten(height)));
        if record.is_err() {
            self.next = u64::MAX;
        }
        Some(record.map(|record| (height, record.payload)))
    }
}
