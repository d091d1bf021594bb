//! The file of one sorted run; [`super`] describes the format.

use std::sync::Arc;

use crate::disk::{Disk, DiskFile};
use crate::error::{Remedy, StoreError};
use crate::record::{Fields, other_version};
use crate::segment::path;

const MAGIC: [u8; 8] = *b"walrasrn";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 64;
const FOOTER_BYTES: usize = 60;
/// A page is closed when it holds this many bytes.
const PAGE_BYTES: usize = 16 << 10;
/// The longest key, and the longest value.
pub(super) const KEY_BYTES_MAX: usize = 1 << 10;
pub(super) const VALUE_BYTES_MAX: usize = 1 << 20;
/// Bytes that are gathered before they are written.
const WRITE_BYTES: usize = 1 << 20;
/// The most bytes of a page: one row may follow when it is almost full.
const PAGE_BYTES_MAX: usize = PAGE_BYTES + KEY_BYTES_MAX + VALUE_BYTES_MAX + 6;

/// A row.
pub type KeyedRow = (Vec<u8>, Vec<u8>);

/// What a run is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RunHeader {
    /// How often its rows were merged.
    pub level: u32,
    /// The first and the last height of its rows.
    pub first: u64,
    pub last: u64,
    /// Whose rows they are.
    pub tag: [u8; 32],
}

impl RunHeader {
    fn encode(&self) -> Vec<u8> {
        let fields = [
            &MAGIC[..],
            &VERSION.to_le_bytes(),
            &self.level.to_le_bytes(),
            &self.first.to_le_bytes(),
            &self.last.to_le_bytes(),
            &self.tag,
        ];
        fields.concat()
    }

    fn decode(bytes: &[u8]) -> Result<RunHeader, String> {
        let mut fields = Fields(bytes);
        if fields.next() != MAGIC {
            return Err("not a run".into());
        }
        let version = fields.u32();
        if version != VERSION {
            return Err(other_version(version, VERSION));
        }
        let (level, first, last) = (fields.u32(), fields.u64(), fields.u64());
        Ok(RunHeader { level, first, last, tag: fields.next() })
    }

    /// The name of its file.
    pub fn file_name(&self) -> String {
        format!("run-{:020}-{:020}.run", self.first, self.last)
    }
}

/// The heights in the name of a run's file.
pub(super) fn heights_of(name: &str) -> Option<(u64, u64)> {
    let (first, last) = name.strip_prefix("run-")?.strip_suffix(".run")?.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?))
}

/// A finished run, with the place of each page.
#[derive(Debug)]
pub(super) struct Run<D: Disk> {
    disk: Arc<D>,
    pub header: RunHeader,
    pub bytes: u64,
    /// The first key and the offset of each page.
    pages: Vec<(Vec<u8>, u64)>,
}

impl<D: Disk> Run<D> {
    /// Opens a run and checks its header, its index and its footer.
    pub fn open(disk: &Arc<D>, name: &str) -> Result<Run<D>, StoreError> {
        let file = disk.open(name, false).map_err(StoreError::io("open", &path(&**disk, name)))?;
        let bytes = file.length().map_err(StoreError::io("read", &path(&**disk, name)))?;
        let damaged = |offset, what: &str| damaged(&**disk, name, offset, what);
        let read = |offset, length| read(&**disk, name, &file, offset, length);
        if bytes < (HEADER_BYTES + FOOTER_BYTES) as u64 {
            return Err(damaged(0, "the file is shorter than a run"));
        }
        let head = read(0, HEADER_BYTES)?;
        let foot_at = bytes - FOOTER_BYTES as u64;
        let foot = read(foot_at, FOOTER_BYTES)?;
        let mut fields = Fields(&foot);
        let (index_at, index_bytes) = (fields.u64(), fields.u64());
        let pages = fields.u32();
        let (_rows, digest): (u64, [u8; 32]) = (fields.u64(), fields.next());
        let ends = index_at.checked_add(index_bytes) == Some(foot_at);
        if index_at < HEADER_BYTES as u64 || !ends {
            return Err(damaged(foot_at, "the footer names an index that is not there"));
        }
        let index = read(index_at, usize::try_from(index_bytes).unwrap_or(usize::MAX))?;
        if seal(&head, &index, &foot[..FOOTER_BYTES - 32]) != digest {
            return Err(damaged(foot_at, "header, index and footer do not match their digest"));
        }
        let header = RunHeader::decode(&head).map_err(|what| damaged(0, &what))?;
        let pages = index_of(&index, pages).ok_or_else(|| damaged(index_at, "the index is malformed"))?;
        Ok(Run { disk: disk.clone(), header, bytes, pages })
    }

    /// The number of the page with the first row at or above a key, or the one before it.
    fn page_of(&self, key: &[u8]) -> usize {
        self.pages.partition_point(|(first, _)| first.as_slice() <= key).saturating_sub(1)
    }

    /// The rows of a page, by key.
    fn page(&self, at: usize) -> Result<Vec<KeyedRow>, StoreError> {
        let (name, offset) = (self.header.file_name(), self.pages[at].1);
        let file = self.disk.open(&name, false).map_err(StoreError::io("open", &path(&*self.disk, &name)))?;
        let head = read(&*self.disk, &name, &file, offset, 4)?;
        let length = Fields(&head).u32() as usize;
        if length > PAGE_BYTES_MAX {
            return Err(damaged(&*self.disk, &name, offset, "a page is longer than pages are"));
        }
        let whole = read(&*self.disk, &name, &file, offset + 4, length + 32)?;
        let (payload, digest) = whole.split_at(length);
        if page_digest(at, payload) != *digest {
            return Err(damaged(&*self.disk, &name, offset, "a page does not match its digest"));
        }
        rows_of(payload).ok_or_else(|| damaged(&*self.disk, &name, offset, "a page is malformed"))
    }

    /// At most `count` rows from `from` to below `to`, the last ones, in descending order.
    pub fn last_rows(&self, from: &[u8], to: &[u8], count: usize) -> Result<Vec<KeyedRow>, StoreError> {
        let mut found = Vec::new();
        if self.pages.is_empty() || from >= to {
            return Ok(found);
        }
        for at in (self.page_of(from)..=self.page_of(to)).rev() {
            let rows = self.page(at)?;
            let chosen = rows.into_iter().rev().filter(|(key, _)| (from..to).contains(&key.as_slice()));
            found.extend(chosen.take(count - found.len()));
            if found.len() == count {
                break;
            }
        }
        Ok(found)
    }

    /// All rows, by key; one page is in memory at a time.
    pub fn rows(self: Arc<Self>) -> impl Iterator<Item = Result<KeyedRow, StoreError>> {
        let pages = self.pages.len();
        (0..pages).flat_map(move |at| match self.page(at) {
            Ok(rows) => rows.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        })
    }
}

/// Writes a run from rows in ascending order of their keys, and gives it its name once it is durable.
pub(super) fn write<D: Disk>(
    disk: &Arc<D>,
    header: RunHeader,
    rows: impl IntoIterator<Item = Result<KeyedRow, StoreError>>,
) -> Result<Run<D>, StoreError> {
    let name = header.file_name();
    let temporary = format!("{name}.tmp");
    let file = disk.create(&temporary).map_err(StoreError::io("create", &path(&**disk, &temporary)))?;
    let mut writer = Writer { buffer: header.encode(), written: 0 };
    let mut pages: Vec<(Vec<u8>, u64)> = Vec::new();
    let (mut page, mut count) = (Vec::new(), 0u64);
    for row in rows {
        let (key, value) = row?;
        if page.is_empty() {
            pages.push((key.clone(), writer.offset()));
        }
        push_row(&mut page, &key, &value);
        count += 1;
        if page.len() >= PAGE_BYTES {
            writer.page(pages.len() - 1, &mut page);
        }
        writer.write(&**disk, &temporary, &file, WRITE_BYTES)?;
    }
    if !page.is_empty() {
        writer.page(pages.len() - 1, &mut page);
    }
    let (index_at, index) = (writer.offset(), index_bytes(&pages));
    let foot = [
        &index_at.to_le_bytes()[..],
        &(index.len() as u64).to_le_bytes(),
        &(pages.len() as u32).to_le_bytes(),
        &count.to_le_bytes(),
    ]
    .concat();
    let digest = seal(&header.encode(), &index, &foot);
    [&index[..], &foot, &digest].iter().for_each(|part| writer.buffer.extend_from_slice(part));
    writer.write(&**disk, &temporary, &file, 1)?;
    file.sync().map_err(StoreError::io("sync", &path(&**disk, &temporary)))?;
    disk.rename(&temporary, &name).map_err(StoreError::io("rename", &path(&**disk, &temporary)))?;
    disk.sync_directory().map_err(StoreError::io("sync the directory", &disk.place()))?;
    Ok(Run { disk: disk.clone(), header, bytes: writer.written, pages })
}

/// Bytes on their way to a file.
struct Writer {
    buffer: Vec<u8>,
    written: u64,
}

impl Writer {
    fn offset(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    fn page(&mut self, at: usize, page: &mut Vec<u8>) {
        self.buffer.extend_from_slice(&(page.len() as u32).to_le_bytes());
        self.buffer.extend_from_slice(page);
        self.buffer.extend_from_slice(&page_digest(at, page));
        page.clear();
    }

    /// Writes what is buffered, if it is so many bytes.
    fn write<D: Disk>(&mut self, disk: &D, name: &str, file: &D::File, least: usize) -> Result<(), StoreError> {
        if self.buffer.len() >= least {
            file.write_at(self.written, &self.buffer).map_err(StoreError::io("write", &path(disk, name)))?;
            self.written += self.buffer.len() as u64;
            self.buffer.clear();
        }
        Ok(())
    }
}

fn read<D: Disk>(disk: &D, name: &str, file: &D::File, offset: u64, length: usize) -> Result<Vec<u8>, StoreError> {
    // A length that was read must not allocate more than the file has.
    let there = file.length().map_err(StoreError::io("read", &path(disk, name)))?;
    if offset.checked_add(length as u64).is_none_or(|end| end > there) {
        return Err(damaged(disk, name, offset, "the file is too short"));
    }
    let mut bytes = vec![0; length];
    file.read_at(offset, &mut bytes).map_err(StoreError::io("read", &path(disk, name)))?;
    Ok(bytes)
}

pub(super) fn damaged<D: Disk>(disk: &D, name: &str, offset: u64, what: &str) -> StoreError {
    StoreError::Damaged { file: path(disk, name), offset, what: what.into(), remedy: Remedy::RemoveRuns }
}

fn page_digest(at: usize, payload: &[u8]) -> [u8; 32] {
    *blake3::Hasher::new().update(&(at as u64).to_le_bytes()).update(payload).finalize().as_bytes()
}

fn seal(header: &[u8], index: &[u8], foot: &[u8]) -> [u8; 32] {
    *blake3::Hasher::new().update(header).update(index).update(foot).finalize().as_bytes()
}

fn push_row(page: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    page.extend_from_slice(&(key.len() as u16).to_le_bytes());
    page.extend_from_slice(&(value.len() as u32).to_le_bytes());
    page.extend_from_slice(key);
    page.extend_from_slice(value);
}

/// A number of `BYTES` bytes, and what follows.
fn split_number<const BYTES: usize>(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<BYTES>()?;
    let mut wide = [0; 8];
    wide[..BYTES].copy_from_slice(number);
    Some((u64::from_le_bytes(wide), rest))
}

fn rows_of(mut page: &[u8]) -> Option<Vec<KeyedRow>> {
    let mut rows = Vec::new();
    while !page.is_empty() {
        let (key_bytes, rest) = split_number::<2>(page)?;
        let (value_bytes, rest) = split_number::<4>(rest)?;
        let (key, rest) = rest.split_at_checked(key_bytes as usize)?;
        let (value, rest) = rest.split_at_checked(value_bytes as usize)?;
        rows.push((key.to_vec(), value.to_vec()));
        page = rest;
    }
    Some(rows)
}

fn index_bytes(pages: &[(Vec<u8>, u64)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (key, offset) in pages {
        bytes.extend_from_slice(&offset.to_le_bytes());
        bytes.extend_from_slice(&(key.len() as u16).to_le_bytes());
        bytes.extend_from_slice(key);
    }
    bytes
}

fn index_of(mut bytes: &[u8], pages: u32) -> Option<Vec<(Vec<u8>, u64)>> {
    let mut index = Vec::new();
    while !bytes.is_empty() {
        let (offset, rest) = split_number::<8>(bytes)?;
        let (key_bytes, rest) = split_number::<2>(rest)?;
        let (key, rest) = rest.split_at_checked(key_bytes as usize)?;
        index.push((key.to_vec(), offset));
        bytes = rest;
    }
    (index.len() == pages as usize).then_some(index)
}
