//! Assembles a snapshot from chunks that arrive in any order, from any peer.

use crate::checkpoint::{CHUNK_BYTES, Header, chunk_digest, chunk_extent, end_counts, end_offset};
use crate::disk::{Disk, DiskFile};
use crate::error::StoreError;
use crate::record::Digest;
use crate::segment::path;

/// Writes a snapshot from chunks, each of which is verified against its digest.
#[derive(Debug)]
pub struct Assembly<D: Disk> {
    file: D::File,
    at: String,
    header: Header,
    payload_bytes: u64,
    digests: Vec<Digest>,
    held: Vec<bool>,
}

impl<D: Disk> Assembly<D> {
    /// Begins the snapshot of the state after a height, in a new file of a disk. `None` if this number of chunks
    /// cannot hold this number of bytes.
    ///
    /// # Errors
    /// [`StoreError::Io`] if there is a file of that name, or none can be created.
    pub fn create(
        disk: &D,
        name: &str,
        height: u64,
        payload_bytes: u64,
        digests: Vec<Digest>,
    ) -> Result<Option<Assembly<D>>, StoreError> {
        if digests.len() as u64 != payload_bytes.div_ceil(CHUNK_BYTES as u64) {
            return Ok(None);
        }
        let at = path(disk, name);
        let file = disk.create(name).map_err(StoreError::io("create", &at))?;
        let header = Header { height, ..Header::default() };
        file.write_at(0, &header.encode()).map_err(StoreError::io("write", &at))?;
        let held = vec![false; digests.len()];
        Ok(Some(Assembly { file, at, header, payload_bytes, digests, held }))
    }

    /// Total number of chunks.
    pub fn chunks(&self) -> usize {
        self.digests.len()
    }

    /// Whether a chunk has been written.
    pub fn holds(&self, number: usize) -> bool {
        self.held.get(number).copied().unwrap_or(false)
    }

    /// Whether all chunks have been written.
    pub fn is_complete(&self) -> bool {
        self.held.iter().all(|held| *held)
    }

    /// Writes a chunk; false if it is not the one with this number.
    ///
    /// # Errors
    /// [`StoreError::Io`] if it cannot be written.
    pub fn insert(&mut self, number: usize, chunk: &[u8]) -> Result<bool, StoreError> {
        let Some(digest) = self.digests.get(number) else { return Ok(false) };
        let (offset, bytes) = chunk_extent(number as u64, self.payload_bytes);
        if chunk.len() != bytes || chunk_digest(number as u64, chunk) != *digest {
            return Ok(false);
        }
        if !self.held[number] {
            let record = [&(bytes as u32).to_le_bytes()[..], chunk, digest].concat();
            self.file.write_at(offset, &record).map_err(StoreError::io("write", &self.at))?;
            self.held[number] = true;
        }
        Ok(true)
    }

    /// Completes the file and makes its content durable, but not its name; it is then a snapshot.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    ///
    /// # Panics
    /// If chunks are missing.
    pub fn finish(self) -> Result<(), StoreError> {
        assert!(self.is_complete(), "chunks are missing");
        let counts = end_counts(self.digests.len() as u64, self.payload_bytes);
        let mut total = blake3::Hasher::new();
        total.update(&self.header.encode());
        total.update(self.digests.as_flattened());
        let total = total.update(&counts).finalize();
        let end = end_offset(self.digests.len() as u64, self.payload_bytes);
        let bytes = [&counts[..], total.as_bytes()].concat();
        self.file.write_at(end, &bytes).map_err(StoreError::io("write", &self.at))?;
        self.file.sync().map_err(StoreError::io("sync", &self.at))
    }
}
