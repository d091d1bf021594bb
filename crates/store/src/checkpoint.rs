//! Checkpoints: each is one stream of bytes, written while the node runs and read back in pieces, so that neither
//! needs a second copy of the state in memory.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kernel::Planted;

use crate::disk::{Disk, DiskFile};
use crate::error::{Remedy, StoreError};
use crate::health::Health;
use crate::mistake::StoreMistake;
use crate::real::RealDisk;
use crate::record::{DIGEST_BYTES, Digest, Fields, other_version};
use crate::segment::{Syncer, path};

const MAGIC: [u8; 8] = *b"walrasck";
/// The version of the format of checkpoint files.
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 88;
/// Bytes of every chunk except the last.
pub const CHUNK_BYTES: usize = 1 << 20;
const CHUNK_OVERHEAD_BYTES: usize = 4 + DIGEST_BYTES;
const END_COUNTS_BYTES: usize = 20;
const END_BYTES: usize = END_COUNTS_BYTES + DIGEST_BYTES;
const KEPT: usize = 2;
pub(crate) const TEMPORARY: &str = ".tmp";

pub(crate) fn name(height: u64) -> String {
    format!("checkpoint-{height:020}.ckpt")
}

/// Heights of the existing checkpoints, oldest first.
pub(crate) fn list(disk: &impl Disk) -> Result<Vec<u64>, StoreError> {
    let listed = disk.list().map_err(StoreError::io("list", &disk.place()))?;
    let mut heights: Vec<u64> = listed.iter().filter_map(|(name, _)| height_of(name)).collect();
    heights.sort_unstable();
    Ok(heights)
}

fn height_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("checkpoint-")?.strip_suffix(".ckpt")?;
    (digits.len() == 20 && digits.bytes().all(|digit| digit.is_ascii_digit())).then(|| digits.parse().ok())?
}

/// The header of a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) height: u64,
    /// Digest of the block's record; zeros if this store never held the block.
    pub(crate) block: Digest,
}

impl Header {
    /// The height up to which blocks and receipts had been durable here.
    pub(crate) fn archived(&self) -> u64 {
        if self.block == [0; DIGEST_BYTES] { 0 } else { self.height }
    }

    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let fields = [&MAGIC[..], &VERSION.to_le_bytes(), &[0; 4], &self.height.to_le_bytes(), &self.block];
        let mut bytes = fields.concat();
        bytes.extend_from_slice(blake3::hash(&bytes).as_bytes());
        bytes.try_into().expect("the fields add up")
    }

    fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Header, String> {
        let (checked, digest) = bytes.split_at(HEADER_BYTES - DIGEST_BYTES);
        let mut fields = Fields(checked);
        if fields.next() != MAGIC {
            return Err("not a checkpoint".into());
        }
        if blake3::hash(checked).as_bytes() != digest {
            return Err("the header does not match its digest".into());
        }
        match (fields.u32(), fields.u32()) {
            (VERSION, 0) => Ok(Header { height: fields.u64(), block: fields.next() }),
            (VERSION, _) => Err("the header is not of this format".into()),
            (version, _) => Err(other_version(version, VERSION)),
        }
    }
}

/// The digest of a chunk by its number.
pub(crate) fn chunk_digest(number: u64, payload: &[u8]) -> Digest {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&number.to_le_bytes()).update(&(payload.len() as u32).to_le_bytes());
    hasher.update(payload).finalize().into()
}

/// Numbers of chunks and of payload bytes, as in the end of the file.
pub(crate) fn end_counts(chunks: u64, payload_bytes: u64) -> [u8; END_COUNTS_BYTES] {
    let counts = [&[0; 4][..], &chunks.to_le_bytes(), &payload_bytes.to_le_bytes()].concat();
    counts.try_into().expect("the counts add up")
}

/// Marks that a checkpoint is being written; no other is begun while this exists.
#[derive(Debug)]
struct Running(Arc<AtomicBool>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// A checkpoint that is complete and synced, but still under its temporary name.
#[derive(Debug)]
struct Complete {
    header: Header,
    _running: Running,
}

/// Synchronizes the writer of receipts and the writer of a checkpoint. A checkpoint gets its final name only when the
/// receipts up to its height are durable, because the replay after it will not produce them again. The later of the two
/// does the renaming.
#[derive(Debug)]
pub(crate) struct CheckpointGate<D: Disk> {
    disk: Arc<D>,
    running: Arc<AtomicBool>,
    state: Mutex<GateState<D>>,
}

#[derive(Debug)]
struct GateState<D: Disk> {
    /// Receipts have been appended up to this height.
    appended: u64,
    syncer: Option<Syncer<D>>,
    waiting: Option<Complete>,
    mistake: Planted<StoreMistake>,
}

impl<D: Disk> CheckpointGate<D> {
    pub(crate) fn new(disk: Arc<D>, appended: u64, syncer: Option<Syncer<D>>) -> CheckpointGate<D> {
        let state = Mutex::new(GateState { appended, syncer, waiting: None, mistake: Planted::NOTHING });
        CheckpointGate { disk, running: Arc::default(), state }
    }

    /// Plants a mistake, which only a simulation has.
    pub(crate) fn plant(&self, mistake: Planted<StoreMistake>) {
        self.state().mistake = mistake;
    }

    /// A panic cannot leave the state half changed, so a poisoned lock is still usable.
    fn state(&self) -> MutexGuard<'_, GateState<D>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Receipts have been appended up to this height.
    pub(crate) fn receipts_appended(&self, appended: u64, syncer: Option<Syncer<D>>) -> Result<(), StoreError> {
        let mut state = self.state();
        (state.appended, state.syncer) = (appended, syncer);
        self.publish(state)
    }

    fn complete(&self, complete: Complete) -> Result<(), StoreError> {
        let mut state = self.state();
        state.waiting = Some(complete);
        self.publish(state)
    }

    /// Gives a complete checkpoint its final name, if the receipts are durable.
    fn publish(&self, mut state: MutexGuard<'_, GateState<D>>) -> Result<(), StoreError> {
        let hurries = state.mistake.is(StoreMistake::CheckpointBeforeReceipts);
        let appended = if hurries { u64::MAX } else { state.appended };
        let Some(complete) = state.waiting.take_if(|waiting| waiting.header.archived() <= appended) else {
            return Ok(());
        };
        let syncer = state.syncer.clone().filter(|_| !hurries);
        drop(state);
        syncer.map_or(Ok(()), |syncer| syncer.sync())?;
        let name = name(complete.header.height);
        let temporary = format!("{name}{TEMPORARY}");
        let at = path(&*self.disk, &temporary);
        self.disk.rename(&temporary, &name).map_err(StoreError::io("rename", &at))?;
        self.disk.sync_directory().map_err(StoreError::io("sync the directory of", &at))?;
        self.remove_old()
    }

    fn remove_old(&self) -> Result<(), StoreError> {
        let heights = list(&*self.disk)?;
        for height in heights.iter().rev().skip(KEPT) {
            let name = name(*height);
            self.disk.remove(&name).map_err(StoreError::io("remove", &path(&*self.disk, &name)))?;
        }
        Ok(())
    }
}

/// The bytes of a checkpoint as they are written to a file: header, chunks, end.
#[derive(Debug)]
struct Framing<F> {
    file: F,
    /// The file's name with its directory, for messages.
    at: String,
    offset: u64,
    chunk: Vec<u8>,
    chunks: u64,
    payload_bytes: u64,
    /// Hash over the header and the chunk digests.
    total: blake3::Hasher,
}

impl<F: DiskFile> Framing<F> {
    fn begin(file: F, at: String, header: &Header) -> Result<Framing<F>, StoreError> {
        let (bytes, mut total) = (header.encode(), blake3::Hasher::new());
        file.write_at(0, &bytes).map_err(StoreError::io("write", &at))?;
        total.update(&bytes);
        let chunk = Vec::with_capacity(CHUNK_BYTES);
        Ok(Framing { file, at, offset: HEADER_BYTES as u64, chunk, chunks: 0, payload_bytes: 0, total })
    }

    /// Whether the chunk must be written before the next byte.
    fn is_full(&self) -> bool {
        self.chunk.len() == CHUNK_BYTES
    }

    /// Takes as many bytes as fit into the chunk.
    fn fill(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(CHUNK_BYTES - self.chunk.len());
        self.chunk.extend_from_slice(&bytes[..taken]);
        taken
    }

    fn write_chunk(&mut self) -> Result<(), StoreError> {
        let digest = chunk_digest(self.chunks, &self.chunk);
        let bytes = [&(self.chunk.len() as u32).to_le_bytes()[..], &self.chunk, &digest].concat();
        self.file.write_at(self.offset, &bytes).map_err(StoreError::io("write", &self.at))?;
        self.total.update(&digest);
        self.offset += bytes.len() as u64;
        self.chunks += 1;
        self.payload_bytes += self.chunk.len() as u64;
        self.chunk.clear();
        Ok(())
    }

    /// Writes the rest and the end; makes everything durable.
    fn end(&mut self) -> Result<(), StoreError> {
        if !self.chunk.is_empty() {
            self.write_chunk()?;
        }
        let counts = end_counts(self.chunks, self.payload_bytes);
        let total = self.total.update(&counts).finalize();
        let end = [&counts[..], total.as_bytes()].concat();
        self.file.write_at(self.offset, &end).map_err(StoreError::io("write", &self.at))?;
        self.file.sync().map_err(StoreError::io("sync", &self.at))
    }
}

/// Writes one checkpoint, from any thread. The written bytes are the state; [`CheckpointWriter::finish`] makes the
/// checkpoint valid. If it is dropped unfinished, the store is unchanged.
#[derive(Debug)]
pub struct CheckpointWriter<D: Disk> {
    disk: Arc<D>,
    health: Arc<Health>,
    /// Keeps the directory locked if the store is dropped first.
    _lock: Arc<D::Lock>,
    gate: Arc<CheckpointGate<D>>,
    /// Taken by `finish`.
    running: Option<Running>,
    header: Header,
    temporary: String,
    framing: Framing<D::File>,
}

impl<D: Disk> CheckpointWriter<D> {
    pub(crate) fn begin(
        disk: Arc<D>,
        health: Arc<Health>,
        lock: Arc<D::Lock>,
        gate: Arc<CheckpointGate<D>>,
        header: Header,
    ) -> Result<CheckpointWriter<D>, StoreError> {
        if gate.running.swap(true, Ordering::AcqRel) {
            return Err(StoreError::CheckpointRunning);
        }
        let running = Some(Running(gate.running.clone()));
        let temporary = format!("{}{TEMPORARY}", name(header.height));
        let at = path(&*disk, &temporary);
        let file = disk.create(&temporary).map_err(StoreError::io("create", &at))?;
        let framing = Framing::begin(file, at, &header)?;
        Ok(CheckpointWriter { disk, health, _lock: lock, gate, running, header, temporary, framing })
    }

    /// Completes the checkpoint. Once this has returned and the receipts up to its height have been appended, in either
    /// order, recovery begins at it, and checkpoints older than the one before it are removed.
    ///
    /// # Errors
    /// If writing or syncing failed, now or before; the checkpoint is then invalid, and the store refuses from here
    /// on.
    pub fn finish(mut self) -> Result<(), StoreError> {
        self.health.check()?;
        let written = self.framing.end();
        self.health.note(written)?;
        let running = self.running.take().expect("only this takes it");
        let complete = Complete { header: self.header.clone(), _running: running };
        self.health.note(self.gate.complete(complete))
    }
}

impl<D: Disk> Write for CheckpointWriter<D> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.framing.is_full() {
            self.health.check()?;
            let written = self.framing.write_chunk();
            self.health.note(written)?;
        }
        Ok(self.framing.fill(bytes))
    }

    /// Does nothing: only [`CheckpointWriter::finish`] makes anything durable.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<D: Disk> Drop for CheckpointWriter<D> {
    fn drop(&mut self) {
        if self.running.is_some() && self.health.check().is_ok() {
            // If this fails the file is removed when the store is next opened.
            let _ = self.disk.remove(&self.temporary);
        }
    }
}

/// Writes a checkpoint to a separate file, outside any store: a *snapshot*. It gets its final name when it is
/// complete.
#[derive(Debug)]
pub struct SnapshotWriter {
    framing: Framing<File>,
    to: PathBuf,
    temporary: tempfile::TempPath,
}

impl SnapshotWriter {
    /// Begins the snapshot of the state after the block of this height.
    ///
    /// # Errors
    /// [`StoreError::Io`] if there is a file at `to` already, or none can be created.
    pub fn create(to: &Path, height: u64) -> Result<SnapshotWriter, StoreError> {
        let at = to.display().to_string();
        let io = |action: &'static str| StoreError::io(action, &at);
        if to.exists() {
            return Err(io("create")(io::ErrorKind::AlreadyExists.into()));
        }
        let (file, temporary) = tempfile::NamedTempFile::new_in(folder(to)).map_err(io("create"))?.into_parts();
        let framing = Framing::begin(file, at, &Header { height, ..Header::default() })?;
        Ok(SnapshotWriter { framing, to: to.to_path_buf(), temporary })
    }

    /// Completes the snapshot: it is durable under its final name.
    ///
    /// # Errors
    /// [`StoreError::Io`]; then there is no snapshot.
    pub fn finish(mut self) -> Result<(), StoreError> {
        self.framing.end()?;
        let at = self.framing.at;
        let io = |action: &'static str| StoreError::io(action, &at);
        self.temporary.persist_noclobber(&self.to).map_err(|error| io("rename")(error.error))?;
        File::open(folder(&self.to)).and_then(|folder| folder.sync_all()).map_err(io("sync the directory of"))
    }
}

/// The directory that a file is in.
fn folder(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

impl Write for SnapshotWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.framing.is_full() {
            self.framing.write_chunk()?;
        }
        Ok(self.framing.fill(bytes))
    }

    /// Does nothing: only [`SnapshotWriter::finish`] makes anything durable.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a checkpoint or snapshot from its beginning; each returned byte has been verified. Ends at the end of the
/// payload.
#[derive(Debug)]
pub struct CheckpointReader<D: Disk> {
    file: D::File,
    /// The file's name with its directory, for messages.
    at: String,
    remedy: Remedy,
    pub(crate) header: Header,
    payload_bytes: u64,
    /// Digests of all chunks, verified against the digest at the end.
    digests: Vec<Digest>,
    next: usize,
    chunk: Vec<u8>,
    taken: usize,
}

impl<D: Disk> CheckpointReader<D> {
    /// Height of the block after which this was the state.
    pub fn height(&self) -> u64 {
        self.header.height
    }

    /// Length of the payload in bytes.
    pub fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }

    /// Opens a checkpoint and verifies everything but the payload.
    pub(crate) fn open(disk: Arc<D>, height: u64) -> Result<CheckpointReader<D>, StoreError> {
        let name = name(height);
        let at = path(&*disk, &name);
        let file = disk.open(&name, false).map_err(StoreError::io("open", &at))?;
        let reader = CheckpointReader::of_file(file, at, Remedy::RemoveCheckpoint)?;
        if reader.header.height != height {
            return Err(reader.damaged(0, format!("the checkpoint of height {}", reader.header.height)));
        }
        Ok(reader)
    }

    /// Opens a snapshot on a disk under this name, and verifies everything but the payload.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], or [`StoreError::Io`].
    pub fn open_snapshot(disk: &D, name: &str) -> Result<CheckpointReader<D>, StoreError> {
        let at = path(disk, name);
        let file = disk.open(name, false).map_err(StoreError::io("open", &at))?;
        CheckpointReader::of_file(file, at, Remedy::OtherCopy)
    }

    fn of_file(file: D::File, at: String, remedy: Remedy) -> Result<CheckpointReader<D>, StoreError> {
        let length = file.length().map_err(StoreError::io("read the length of", &at))?;
        match read_frame(&file, length).map_err(StoreError::io("read", &at))? {
            Ok((header, payload_bytes, digests)) => {
                let (chunk, next, taken) = (Vec::new(), 0, 0);
                Ok(CheckpointReader { file, at, remedy, header, payload_bytes, digests, next, chunk, taken })
            }
            Err((offset, what)) => Err(StoreError::Damaged { file: at, offset, what, remedy }),
        }
    }

    fn damaged(&self, offset: u64, what: String) -> StoreError {
        StoreError::Damaged { file: self.at.clone(), offset, what, remedy: self.remedy }
    }

    /// The digests of its chunks: stores with the same state after the same block have the same digests.
    pub fn digests(&self) -> &[Digest] {
        &self.digests
    }

    /// A verified chunk, independent of the reader's position; `None` if the number does not exist.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], or [`StoreError::Io`].
    pub fn chunk(&self, number: usize) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(digest) = self.digests.get(number) else { return Ok(None) };
        let (offset, bytes) = chunk_extent(number as u64, self.payload_bytes);
        let mut chunk = vec![0; bytes];
        self.file.read_at(offset + 4, &mut chunk).map_err(StoreError::io("read", &self.at))?;
        if chunk_digest(number as u64, &chunk) != *digest {
            return Err(self.damaged(offset, "the chunk does not match its digest".into()));
        }
        Ok(Some(chunk))
    }

    fn read_chunk(&mut self) -> Result<(), StoreError> {
        (self.chunk, self.taken) = (Vec::new(), 0);
        self.chunk = self.chunk(self.next)?.expect("the chunk exists");
        self.next += 1;
        Ok(())
    }
}

impl CheckpointReader<RealDisk> {
    /// Opens a snapshot and verifies everything but the payload.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], or [`StoreError::Io`].
    pub fn of_snapshot(from: &Path) -> Result<CheckpointReader<RealDisk>, StoreError> {
        let at = from.display().to_string();
        let file = File::open(from).map_err(StoreError::io("open", &at))?;
        CheckpointReader::of_file(file, at, Remedy::OtherCopy)
    }
}

impl<D: Disk> Read for CheckpointReader<D> {
    /// # Errors
    /// An [`io::Error`] around [`StoreError::Damaged`] if the checkpoint is damaged.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.chunk.len() && self.next < self.digests.len() {
            self.read_chunk()?;
        }
        let ready = &self.chunk[self.taken..];
        let count = ready.len().min(buffer.len());
        buffer[..count].copy_from_slice(&ready[..count]);
        self.taken += count;
        Ok(count)
    }
}

/// The offset of the end.
pub(crate) fn end_offset(chunks: u64, payload_bytes: u64) -> u64 {
    HEADER_BYTES as u64 + payload_bytes + chunks * CHUNK_OVERHEAD_BYTES as u64
}

/// The offset of a chunk, and the length of its payload.
pub(crate) fn chunk_extent(number: u64, payload_bytes: u64) -> (u64, usize) {
    let before = number * CHUNK_BYTES as u64;
    let offset = HEADER_BYTES as u64 + before + number * CHUNK_OVERHEAD_BYTES as u64;
    (offset, (payload_bytes - before).min(CHUNK_BYTES as u64) as usize)
}

type Frame = (Header, u64, Vec<Digest>);

/// Header, length of the payload and chunk digests, or a fault and its offset.
fn read_frame(file: &impl DiskFile, length: u64) -> io::Result<Result<Frame, (u64, String)>> {
    if length < (HEADER_BYTES + END_BYTES) as u64 {
        return Ok(Err((length, "the file is cut off".into())));
    }
    let mut header_bytes = [0; HEADER_BYTES];
    file.read_at(0, &mut header_bytes)?;
    let header = match Header::decode(&header_bytes) {
        Ok(header) => header,
        Err(what) => return Ok(Err((0, what))),
    };
    let end_offset = length - END_BYTES as u64;
    let mut end = [0; END_BYTES];
    file.read_at(end_offset, &mut end)?;
    let (counts, total) = end.split_at(END_COUNTS_BYTES);
    let mut fields = Fields(counts);
    let (zeros, chunks, payload_bytes) = (fields.u32(), fields.u64(), fields.u64());
    let between = end_offset - HEADER_BYTES as u64;
    let fits = chunks.checked_mul(CHUNK_OVERHEAD_BYTES as u64).and_then(|bytes| bytes.checked_add(payload_bytes));
    if zeros != 0 || chunks != payload_bytes.div_ceil(CHUNK_BYTES as u64) || fits != Some(between) {
        return Ok(Err((end_offset, "the end does not fit the length of the file".into())));
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update(&header_bytes);
    let mut digests = Vec::with_capacity(chunks as usize);
    for number in 0..chunks {
        let (offset, bytes) = chunk_extent(number, payload_bytes);
        let (mut stated, mut digest) = ([0; 4], [0; DIGEST_BYTES]);
        file.read_at(offset, &mut stated)?;
        if u32::from_le_bytes(stated) as usize != bytes {
            return Ok(Err((offset, "the chunk has a wrong length".into())));
        }
        file.read_at(offset + 4 + bytes as u64, &mut digest)?;
        hasher.update(&digest);
        digests.push(digest);
    }
    if hasher.update(counts).finalize().as_bytes() != total {
        return Ok(Err((end_offset, "the digest over all chunks does not match".into())));
    }
    Ok(Ok((header, payload_bytes, digests)))
}
