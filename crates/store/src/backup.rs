//! Copies a store while another process may have it open.
//!
//! The copy is what a crash would leave: the newest checkpoint, then receipts, then blocks, each log up to a length
//! that it had. Receipts never run ahead of blocks, so their log is copied first. The end of a log may be torn; whoever
//! opens the copy cuts it there. If the other process forgets files meanwhile the copy begins again.
//!
//! *Property*: the copy opens, and holds every block that was durable when the copying began.

use std::io;

use crate::checkpoint;
use crate::disk::{Disk, DiskFile};
use crate::error::StoreError;
use crate::retention;
use crate::segment::{Kind, list, path, remove};
use crate::view::view;

/// How often a copy is begun.
const TRIES: u32 = 5;
/// Bytes that are copied at once.
const PIECE: u64 = 1 << 20;

/// Copies the store in `from` into the empty directory `to`; returns the height of the last block that the copy holds
/// for certain. `each` is called with the number of bytes of each piece.
///
/// # Errors
/// [`StoreError::Damaged`] if the copy does not open, even if it is made several times, or [`StoreError::Io`].
pub fn back_up<D: Disk, T: Disk + Clone>(from: &D, to: &T, each: &mut dyn FnMut(u64)) -> Result<u64, StoreError> {
    let mut tries = 1;
    loop {
        match copy(from, to, each).and_then(|()| Ok(view(to.clone())?.last)) {
            Err(error) if tries < TRIES && may_pass(&error) => tries += 1,
            done => return done,
        }
        for (name, _) in to.list().map_err(StoreError::io("list", &to.place()))? {
            remove(to, &name)?;
        }
    }
}

/// Whether files were missing: the other process has forgotten them.
fn may_pass(error: &StoreError) -> bool {
    match error {
        StoreError::Io { reason, .. } => reason.kind() == io::ErrorKind::NotFound,
        StoreError::Damaged { .. } => true,
        _ => false,
    }
}

fn copy(from: &impl Disk, to: &impl Disk, each: &mut dyn FnMut(u64)) -> Result<(), StoreError> {
    if let Some(height) = checkpoint::list(from)?.pop() {
        copy_file(from, to, &checkpoint::name(height), each)?;
    }
    for kind in [Kind::Receipts, Kind::Blocks] {
        for (first, _) in list(from, kind)? {
            copy_file(from, to, &kind.file_name(first), each)?;
        }
    }
    // Written last: it was durable before anything was removed that the copy lacks.
    match retention::floor(from)? {
        0 => to.sync_directory().map_err(StoreError::io("sync the directory of", &to.place())),
        height => retention::set_floor(to, height),
    }
}

/// Copies the present content of a file.
fn copy_file(from: &impl Disk, to: &impl Disk, name: &str, each: &mut dyn FnMut(u64)) -> Result<(), StoreError> {
    let (source_path, copy_path) = (path(from, name), path(to, name));
    let source = from.open(name, false).map_err(StoreError::io("open", &source_path))?;
    let length = source.length().map_err(StoreError::io("read", &source_path))?;
    let target = to.create(name).map_err(StoreError::io("create", &copy_path))?;
    let mut offset = 0;
    while offset < length {
        let mut piece = vec![0; PIECE.min(length - offset) as usize];
        source.read_at(offset, &mut piece).map_err(StoreError::io("read", &source_path))?;
        target.write_at(offset, &piece).map_err(StoreError::io("write", &copy_path))?;
        offset += piece.len() as u64;
        each(piece.len() as u64);
    }
    target.sync().map_err(StoreError::io("sync", &copy_path))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use kernel::FaultDisk;

    use super::*;
    use crate::{Options, Store};

    fn block(height: u64) -> Vec<u8> {
        vec![height as u8; 300]
    }

    /// One more block with its receipts; now and then a checkpoint, behind which all that may be forgotten is.
    fn go_on(store: &mut Store<FaultDisk>) {
        let height = store.last_height() + 1;
        store.append(height, &block(height)).expect("appended");
        store.sync().expect("synced");
        store.append_receipts(height, &[7; 40]).expect("archived");
        if height.is_multiple_of(5) {
            let mut writer = store.begin_checkpoint(height).expect("begun");
            std::io::Write::write_all(&mut writer, &[9; 100]).expect("written");
            writer.finish().expect("finished");
            store.forget_below(height).expect("forgotten");
        }
    }

    fn source(blocks: u64) -> (FaultDisk, Store<FaultDisk>) {
        let disk = FaultDisk::new(1);
        let (mut store, _) = Store::open(disk.clone(), Options { segment_bytes: 1_000 }).expect("a new store");
        (0..blocks).for_each(|_| go_on(&mut store));
        (disk, store)
    }

    #[test]
    fn a_backup_holds_what_was_durable_though_the_store_goes_on_and_forgets() {
        for before in [0, 3, 12, 23] {
            let (disk, store) = source(before);
            let store = Mutex::new(store);
            let copy = FaultDisk::new(2);
            // Whenever the copy changes the store has another block.
            copy.watch({
                let store = std::sync::Arc::new(store);
                let left = std::sync::atomic::AtomicU32::new(60);
                move |_| {
                    let spent = left.fetch_update(
                        std::sync::atomic::Ordering::SeqCst,
                        std::sync::atomic::Ordering::SeqCst,
                        |left| left.checked_sub(1),
                    );
                    if spent.is_ok() {
                        go_on(&mut store.lock().expect("one thread"));
                    }
                }
            });
            let last = back_up(&disk, &copy, &mut |_| ()).expect("a sound copy");
            assert!(last >= before, "{last} blocks of {before}");
            copy.watch(|_| ());
            let (opened, recovery) = Store::open(copy, Options { segment_bytes: 1_000 }).expect("a sound store");
            assert!(opened.last_height() >= last);
            let replayed: Vec<u64> = recovery.blocks.map(|block| block.expect("readable").0).collect();
            assert_eq!(replayed.last().copied().unwrap_or(opened.last_height()), opened.last_height());
            assert_eq!(opened.block(last).expect("readable"), (last > 0).then(|| block(last)));
        }
    }

    #[test]
    fn a_damaged_store_gives_no_backup() {
        let (disk, store) = source(12);
        drop(store);
        let name = Kind::Blocks.file_name(list(&disk, Kind::Blocks).expect("listed").last().expect("files").0);
        disk.flip(&name, 20, 1);
        let failed = back_up(&disk, &FaultDisk::new(2), &mut |_| ()).expect_err("a damaged header");
        assert!(matches!(failed, StoreError::Damaged { .. }), "{failed}");
    }
}
