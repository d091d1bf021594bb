//! What may be missing: blocks and receipts that were forgotten, and those that another state has replaced.
//!
//! A log whose first files were removed on purpose looks like a damaged one, unless this was recorded before. So an
//! empty file `forgotten-HEIGHT` is made durable first: below this height anything may be missing at the front of the
//! logs. Only the highest such file counts.
//!
//! A *replacement* ([`crate::Store::begin_replacement`]) is a checkpoint that names no block, above everything in the
//! logs. Once it has its final name the logs below it are void: they are removed when the store is opened, however
//! often that is interrupted. In no other case is such a checkpoint above files that begin at it or below.
//!
//! A *cut* ([`crate::Store::cut_above`]) removes blocks and receipts from the end of the logs. An empty file
//! `cut-HEIGHT` is made durable first and removed last; opening a store that has one keeps nothing above that height.

use crate::checkpoint::{self, CheckpointReader};
use crate::disk::Disk;
use crate::error::StoreError;
use crate::segment::{Kind, list, path, remove};

const STEM: &str = "forgotten-";
const CUT_STEM: &str = "cut-";

fn name(height: u64) -> String {
    format!("{STEM}{height:020}")
}

fn cut_name(height: u64) -> String {
    format!("{CUT_STEM}{height:020}")
}

fn heights(disk: &impl Disk) -> Result<Vec<u64>, StoreError> {
    heights_of(disk, STEM)
}

/// The heights in the names of empty files with this prefix, in order.
fn heights_of(disk: &impl Disk, stem: &str) -> Result<Vec<u64>, StoreError> {
    let listed = disk.list().map_err(StoreError::io("list", &disk.place()))?;
    let height = |name: &str| name.strip_prefix(stem)?.parse().ok();
    let mut heights: Vec<u64> = listed.iter().filter_map(|(name, _)| height(name)).collect();
    heights.sort_unstable();
    Ok(heights)
}

/// Below this height anything may be missing at the front of the logs; 0 if nothing was forgotten.
pub(crate) fn floor(disk: &impl Disk) -> Result<u64, StoreError> {
    Ok(heights(disk)?.pop().unwrap_or(0))
}

/// Records durably that anything below this height may be missing.
pub(crate) fn set_floor(disk: &impl Disk, height: u64) -> Result<(), StoreError> {
    let before = heights(disk)?;
    if before.last().is_some_and(|last| *last >= height) {
        return Ok(());
    }
    let path = path(disk, &name(height));
    disk.create(&name(height)).map_err(StoreError::io("create", &path))?;
    disk.sync_directory().map_err(StoreError::io("sync the directory of", &path))?;
    before.into_iter().try_for_each(|old| remove(disk, &name(old)))
}

/// The height of a cut that was begun and not finished.
pub(crate) fn cut(disk: &impl Disk) -> Result<Option<u64>, StoreError> {
    Ok(heights_of(disk, CUT_STEM)?.first().copied())
}

/// Records durably that nothing above this height is kept.
pub(crate) fn set_cut(disk: &impl Disk, height: u64) -> Result<(), StoreError> {
    let path = path(disk, &cut_name(height));
    disk.create(&cut_name(height)).map_err(StoreError::io("create", &path))?;
    disk.sync_directory().map_err(StoreError::io("sync the directory of", &path))
}

/// Records that the cut is complete.
pub(crate) fn remove_cut(disk: &impl Disk, height: u64) -> Result<(), StoreError> {
    remove(disk, &cut_name(height))
}

/// Removes the logs that the newest checkpoint has replaced.
pub(crate) fn remove_replaced<D: Disk>(disk: &std::sync::Arc<D>) -> Result<(), StoreError> {
    let Some(height) = checkpoint::list(&**disk)?.pop() else { return Ok(()) };
    let header = CheckpointReader::open(disk.clone(), height)?.header;
    if header.archived() > 0 {
        return Ok(());
    }
    for kind in [Kind::Blocks, Kind::Receipts] {
        let void: Vec<u64> =
            list(&**disk, kind)?.into_iter().map(|(first, _)| first).filter(|first| *first <= height).collect();
        void.into_iter().try_for_each(|first| remove(&**disk, &kind.file_name(first)))?;
    }
    Ok(())
}
