//! Sorted runs: an index of rows that are added in order of heights and found by key.
//!
//! A row is written once and never changes, so no tree is needed that is edited in place. Rows of new heights are in
//! memory. When they are many they become a *run*, a file of rows sorted by key, and eight runs of one level become one
//! run of the next. A row is thus written a few times in its life and always sequentially, and a question looks into a
//! few runs. (This is a log-structured merge tree without deletions: O'Neil et al., Acta Informatica 1996.)
//!
//! *Properties.* The rows of a height are there as a whole or not at all. What is in memory is lost in a crash: whoever
//! adds the rows can make them again from the heights above [`Runs::durable`]. Runs have consecutive heights; a gap
//! never appears, and what is below one is removed. Each byte that is read was verified against a digest.
//!
//! Keys of one prefix must ascend with heights (a height in big-endian bytes behind the prefix). Then the rows of a
//! prefix in newer runs follow those in older ones, and no merge is needed to read them.
//!
//! # Files, byte by byte
//!
//! `run-FIRST-LAST.run` has the rows of these heights (20 digits each). Integers are little-endian. A header of 64
//! bytes: `walrasrn`, version (4), level (4), first and last height (8 each), tag (32). Then pages: length `n` of the
//! payload (4), payload, and BLAKE3 of the page's number (8) and the payload (32). A payload is rows: lengths of key
//! (2) and value (4), key, value. Then the index: offset (8), length of the key (2) and first key of each page. Then
//! the footer of 60 bytes: offset and length of the index (8 each), number of pages (4), number of rows (8), and BLAKE3
//! of header, index and the 28 bytes before (32).
//!
//! A run is written under a name ending in `.tmp`, synced and renamed. The run of a merge has the heights of all its
//! parts; a crash may leave both, and then the parts are removed.

mod file;

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::disk::Disk;
use crate::error::StoreError;
use crate::health::Health;
use crate::segment::path;
pub use file::KeyedRow;
use file::{KEY_BYTES_MAX, Run, RunHeader, VALUE_BYTES_MAX, heights_of, write};

/// So many runs of one level become one of the next.
const FANOUT: usize = 8;
/// A merged run has at most this many bytes.
const RUN_BYTES_MAX: u64 = 1 << 30;

/// See the module text. One thread adds rows, any number of threads reads.
#[derive(Debug)]
pub struct Runs<D: Disk> {
    disk: Arc<D>,
    _lock: D::Lock,
    health: Health,
    tag: [u8; 32],
    known: RwLock<Known<D>>,
}

/// What is known, oldest first.
#[derive(Debug)]
struct Known<D: Disk> {
    runs: Vec<Arc<Run<D>>>,
    /// Rows above the runs.
    fresh: BTreeMap<Vec<u8>, Vec<u8>>,
    fresh_bytes: usize,
    /// The first height whose rows are known, and the last one.
    first: u64,
    last: u64,
}

impl<D: Disk> Runs<D> {
    /// Opens the runs in a directory. Runs with another tag (of another chain, or with rows of another form) are
    /// removed, and so is what is below a gap.
    ///
    /// # Errors
    /// [`StoreError::Locked`] if they are open elsewhere, [`StoreError::Damaged`], or [`StoreError::Io`].
    pub fn open(disk: D, tag: [u8; 32]) -> Result<Runs<D>, StoreError> {
        let disk = Arc::new(disk);
        let place = disk.place();
        let lock = disk.lock().map_err(StoreError::io("lock", &place))?.ok_or(StoreError::Locked(place))?;
        let mut runs: Vec<Arc<Run<D>>> = Vec::new();
        let mut removed = false;
        for (first, last, name) in found(&*disk)? {
            let run = Run::open(&disk, &name)?;
            let (header, place) = (run.header, runs.last().map(|before: &Arc<Run<D>>| before.header));
            let heights = (header.first, header.last);
            if heights != (first, last) || first > last {
                return Err(file::damaged(&*disk, &name, 0, "the heights in its name are not those in its header"));
            }
            let is_part = place.is_some_and(|before| before.last >= last);
            if header.tag != tag || is_part {
                remove(&*disk, &name)?;
                removed = true;
                continue;
            }
            if place.is_some_and(|before| before.last + 1 != first) {
                for below in runs.drain(..) {
                    remove(&*disk, &below.header.file_name())?;
                }
                removed = true;
            }
            runs.push(Arc::new(run));
        }
        if removed {
            disk.sync_directory().map_err(StoreError::io("sync the directory", &disk.place()))?;
        }
        let (first, last) = runs.first().zip(runs.last()).map_or((1, 0), |(a, b)| (a.header.first, b.header.last));
        let known = Known { runs, fresh: BTreeMap::new(), fresh_bytes: 0, first, last };
        Ok(Runs { disk, _lock: lock, health: Health::default(), tag, known: RwLock::new(known) })
    }

    fn read(&self) -> RwLockReadGuard<'_, Known<D>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Known<D>> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first and the last height whose rows are known; the first is above the last if there is none.
    pub fn span(&self) -> (u64, u64) {
        let known = self.read();
        (known.first, known.last)
    }

    /// The last height whose rows survive a crash; the one below the first if there is none.
    pub fn durable(&self) -> u64 {
        let known = self.read();
        known.runs.last().map_or(known.first - 1, |run| run.header.last)
    }

    /// Bytes of rows in memory.
    pub fn fresh_bytes(&self) -> usize {
        self.read().fresh_bytes
    }

    /// Forgets everything, and begins above a height.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn begin_after(&self, height: u64) -> Result<(), StoreError> {
        self.cut_above(0)?;
        let mut known = self.write();
        (known.first, known.last) = (height + 1, height);
        Ok(())
    }

    /// Adds the rows of the next height. Keys are unique.
    ///
    /// # Errors
    /// [`StoreError::OutOfOrder`], also for a row that is too long.
    pub fn add(&self, height: u64, rows: Vec<KeyedRow>) -> Result<(), StoreError> {
        let mut known = self.write();
        if height != known.last + 1 {
            return Err(StoreError::OutOfOrder { what: "rows of height", height, expected: known.last + 1 });
        }
        if let Some(long) = rows.iter().find(|(key, value)| key.len() > KEY_BYTES_MAX || value.len() > VALUE_BYTES_MAX)
        {
            let (what, height, expected) = ("bytes of a row", long.1.len() as u64, VALUE_BYTES_MAX as u64);
            return Err(StoreError::OutOfOrder { what, height, expected });
        }
        for (key, value) in rows {
            known.fresh_bytes += key.len() + value.len();
            known.fresh.insert(key, value);
        }
        known.last = height;
        Ok(())
    }

    /// At most `count` rows from `from` to below `to`, the last ones, in descending order. Both have one prefix up to
    /// the height.
    ///
    /// # Errors
    /// If a run cannot be read or is damaged.
    pub fn last_rows(&self, from: &[u8], to: &[u8], count: usize) -> Result<Vec<KeyedRow>, StoreError> {
        if from >= to || count == 0 {
            return Ok(Vec::new());
        }
        let (mut found, runs) = {
            let known = self.read();
            let fresh = known.fresh.range::<[u8], _>((std::ops::Bound::Included(from), std::ops::Bound::Excluded(to)));
            let fresh: Vec<KeyedRow> =
                fresh.rev().take(count).map(|(key, value)| (key.clone(), value.clone())).collect();
            (fresh, known.runs.clone())
        };
        for run in runs.iter().rev() {
            if found.len() == count {
                break;
            }
            match run.last_rows(from, to, count - found.len()) {
                Ok(rows) => found.extend(rows),
                // A merge or a removal has taken the file away from under this reader.
                Err(StoreError::Io { .. }) if !self.is_known(run) => return self.last_rows(from, to, count),
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    fn is_known(&self, run: &Arc<Run<D>>) -> bool {
        self.read().runs.iter().any(|known| Arc::ptr_eq(known, run))
    }

    /// Makes all rows durable as a run, if there are new heights; then merges runs.
    ///
    /// # Errors
    /// If runs cannot be read or written; what was known before is still known, and nothing more is written.
    pub fn flush(&self) -> Result<(), StoreError> {
        self.health.check()?;
        self.health.note(self.write_fresh())?;
        while self.health.note(self.merge())? {}
        Ok(())
    }

    fn write_fresh(&self) -> Result<(), StoreError> {
        let (header, rows) = {
            let known = self.read();
            let first = known.runs.last().map_or(known.first, |run| run.header.last + 1);
            if known.last < first {
                return Ok(());
            }
            let rows: Vec<KeyedRow> = known.fresh.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
            (RunHeader { level: 0, first, last: known.last, tag: self.tag }, rows)
        };
        let run = write(&self.disk, header, rows.into_iter().map(Ok))?;
        let mut known = self.write();
        known.runs.push(Arc::new(run));
        known.fresh.clear();
        known.fresh_bytes = 0;
        Ok(())
    }

    /// Merges the newest runs of one level, if they are enough.
    fn merge(&self) -> Result<bool, StoreError> {
        let parts: Vec<Arc<Run<D>>> = {
            let known = self.read();
            let Some(newest) = known.runs.last() else { return Ok(false) };
            let of_level = known.runs.iter().rev().take_while(|run| run.header.level == newest.header.level);
            let mut parts: Vec<_> = of_level.take(FANOUT).cloned().collect();
            parts.reverse();
            parts
        };
        let bytes: u64 = parts.iter().map(|run| run.bytes).sum();
        if parts.len() < FANOUT || bytes > RUN_BYTES_MAX {
            return Ok(false);
        }
        let (first, last) = (parts[0].header, parts[FANOUT - 1].header);
        let header = RunHeader { level: first.level + 1, first: first.first, last: last.last, tag: self.tag };
        let merged = write(&self.disk, header, Merge(parts.iter().map(|run| run.clone().rows().peekable()).collect()))?;
        {
            let mut known = self.write();
            let kept = known.runs.len() - FANOUT;
            known.runs.truncate(kept);
            known.runs.push(Arc::new(merged));
        }
        parts.iter().try_for_each(|run| remove(&*self.disk, &run.header.file_name()))?;
        Ok(true)
    }

    /// Forgets rows of heights below this one, by whole runs.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn forget_below(&self, height: u64) -> Result<(), StoreError> {
        self.health.check()?;
        loop {
            let gone = {
                let mut known = self.write();
                if known.runs.first().is_none_or(|run| run.header.last >= height) {
                    return Ok(());
                }
                let gone = known.runs.remove(0);
                known.first = gone.header.last + 1;
                gone
            };
            self.health.note(remove(&*self.disk, &gone.header.file_name()))?;
        }
    }

    /// Forgets rows of heights above this one, and by whole runs some below: those above [`Runs::span`] are to be added
    /// again.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn cut_above(&self, height: u64) -> Result<(), StoreError> {
        self.health.check()?;
        let gone: Vec<Arc<Run<D>>> = {
            let mut known = self.write();
            if known.last <= height {
                return Ok(());
            }
            let kept = known.runs.partition_point(|run| run.header.last <= height);
            let gone = known.runs.split_off(kept);
            known.fresh.clear();
            known.fresh_bytes = 0;
            known.last = known.runs.last().map_or(known.first - 1, |run| run.header.last);
            gone
        };
        // The newest first: a crash leaves no gap.
        let mut newest_first = gone.iter().rev();
        self.health.note(newest_first.try_for_each(|run| {
            remove(&*self.disk, &run.header.file_name())?;
            self.disk.sync_directory().map_err(StoreError::io("sync the directory", &self.disk.place()))
        }))
    }
}

/// The files of runs, oldest first and the longest of one beginning first; what is unfinished is removed.
fn found<D: Disk>(disk: &D) -> Result<Vec<(u64, u64, String)>, StoreError> {
    let mut found = Vec::new();
    for (name, _) in disk.list().map_err(StoreError::io("list", &disk.place()))? {
        if name.ends_with(".tmp") {
            remove(disk, &name)?;
        } else if let Some((first, last)) = heights_of(&name) {
            found.push((first, last, name));
        }
    }
    found.sort_by_key(|(first, last, _)| (*first, std::cmp::Reverse(*last)));
    Ok(found)
}

fn remove<D: Disk>(disk: &D, name: &str) -> Result<(), StoreError> {
    disk.remove(name).map_err(StoreError::io("remove", &path(disk, name)))
}

/// The rows of several runs, by key.
struct Merge<I: Iterator<Item = Result<KeyedRow, StoreError>>>(Vec<Peekable<I>>);

impl<I: Iterator<Item = Result<KeyedRow, StoreError>>> Iterator for Merge<I> {
    type Item = Result<KeyedRow, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        // An error comes first, as the lowest key would.
        let key = |row: &Result<KeyedRow, StoreError>| row.as_ref().ok().map(|(key, _)| key.clone());
        let heads = self.0.iter_mut().enumerate().filter_map(|(at, rows)| rows.peek().map(|row| (key(row), at)));
        let (_, lowest) = heads.min()?;
        self.0[lowest].next()
    }
}

#[cfg(test)]
mod tests;
