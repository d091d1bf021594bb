//! Forgetting and replacing: by whole files, never anything that is needed, and whole after a crash at any point.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use kernel::{FaultDisk, Surviving};
use store::{Assembly, CHUNK_BYTES, CheckpointReader, Options, SnapshotWriter, Store, StoreError};

const OPTIONS: Options = Options { segment_bytes: 1 << 20 };
const EVERY: u64 = 10;
const KEPT: u64 = 12;
const LAST: u64 = 60;
/// Height of the state from elsewhere.
const REPLACED: u64 = 100;

fn block(height: u64) -> Vec<u8> {
    (0..50 + height).map(|at| (at * height) as u8).collect()
}

fn receipts(height: u64) -> Vec<u8> {
    (0..height % 40).map(|at| (at + height) as u8).collect()
}

fn state(height: u64) -> Vec<u8> {
    (0..1_000 + height).map(|at| (at ^ height) as u8).collect()
}

fn extend(store: &mut Store<FaultDisk>, height: u64) {
    store.append(height, &block(height)).expect("appended");
    store.sync().expect("synced");
    store.append_receipts(height, &receipts(height)).expect("put");
    if height.is_multiple_of(EVERY) {
        store.begin_files().expect("begun");
        let mut writer = store.begin_checkpoint(height).expect("begun");
        writer.write_all(&state(height)).expect("written");
        writer.finish().expect("finished");
        store.forget_below((height + 1).saturating_sub(KEPT)).expect("forgotten");
    }
}

/// A store that forgets while it is filled up to a height.
fn forgetful(disk: &FaultDisk, last: u64) -> Store<FaultDisk> {
    let (mut store, _) = Store::open(disk.clone(), OPTIONS).expect("a new store opens");
    (1..=last).for_each(|height| extend(&mut store, height));
    store
}

/// Opens, and checks that the newest checkpoint with everything after it, and everything from the older checkpoint
/// on, exists.
fn recover(disk: FaultDisk, context: &str) -> u64 {
    let (mut store, mut recovery) = Store::open(disk, OPTIONS).unwrap_or_else(|error| panic!("{context}: {error}"));
    let mut at = 0;
    if let Some(checkpoint) = &mut recovery.checkpoint {
        at = checkpoint.height();
        let mut payload = Vec::new();
        checkpoint.read_to_end(&mut payload).unwrap_or_else(|error| panic!("{context}: {error}"));
        assert_eq!(payload, state(at), "{context}");
    }
    let base = at;
    for replayed in recovery.blocks {
        let (height, payload) = replayed.unwrap_or_else(|error| panic!("{context}: {error}"));
        at += 1;
        assert_eq!((height, payload), (at, block(at)), "{context}");
        store.append_receipts(height, &receipts(height)).unwrap_or_else(|error| panic!("{context}: {error}"));
    }
    let held = store.archive().checkpoints().expect("listed");
    let needed = if held.len() == 2 && base != REPLACED { held[0].min(at.saturating_sub(KEPT) + 1) } else { base + 1 };
    for height in needed..=at {
        assert_eq!(store.block(height).expect("archived"), Some(block(height)), "{context}, block {height}");
        assert_eq!(store.receipts(height).expect("archived"), Some(receipts(height)), "{context}, receipts {height}");
    }
    extend(&mut store, at + 1);
    at
}

#[test]
fn old_blocks_are_forgotten_and_no_others() {
    let disk = FaultDisk::new(1);
    let mut store = forgetful(&disk, LAST + 5);
    // The last blocks exist, and so does the block of the older checkpoint.
    let first = (1..).find(|height| store.block(*height).expect("readable").is_some()).expect("some are kept");
    assert!((LAST + 5 - KEPT - 2 * EVERY..=LAST - EVERY).contains(&first), "{first}");
    assert!((first..=LAST + 5).all(|height| store.receipts(height).expect("readable") == Some(receipts(height))));
    assert_eq!(store.block(first - 1).expect("readable"), None);
    // Whatever height is to be forgotten, the two checkpoints stay usable.
    let kept = store.forget_below(u64::MAX).expect("forgotten");
    assert!(kept <= LAST - EVERY);
    assert_eq!(store.block(LAST - EVERY).expect("readable"), Some(block(LAST - EVERY)));
    drop(store);
    let viewed = store::view(disk.after_crash(Surviving::Everything)).expect("readable");
    assert_eq!((viewed.first, viewed.last), (kept, LAST + 5));
    assert_eq!(recover(disk.after_crash(Surviving::Nothing), "stopped"), LAST + 5);
    // Anything more that is missing is damage.
    let mut logs: Vec<String> = disk.list().expect("listed").into_iter().map(|(name, _)| name).collect();
    logs.retain(|name| name.starts_with("blocks-"));
    logs.sort();
    for name in &logs[..logs.len() - 1] {
        let damaged = disk.after_crash(Surviving::Everything);
        damaged.remove(name).expect("removed");
        let error = Store::open(damaged, OPTIONS).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("missing") || error.contains("begins at height"), "{name}: {error}");
    }
}

#[test]
fn without_two_checkpoints_nothing_is_forgotten() {
    let disk = FaultDisk::new(2);
    let mut store = forgetful(&disk, EVERY + 5);
    assert_eq!(store.forget_below(u64::MAX).expect("nothing to do"), 1);
    assert_eq!(store.block(1).expect("readable"), Some(block(1)));
}

/// Forgets all the time, and is then replaced by a state from elsewhere.
#[test]
fn a_crash_at_any_point_leaves_the_one_or_the_other() {
    let disk = FaultDisk::new(3);
    let acknowledged = Arc::new(AtomicU64::new(0));
    disk.watch({
        let acknowledged = acknowledged.clone();
        move |disk| {
            let (point, least) = (disk.points(), acknowledged.load(Ordering::SeqCst));
            for way in [Surviving::Nothing, Surviving::Everything, Surviving::Torn(1), Surviving::Some(point)] {
                let at = recover(disk.after_crash(way), &format!("point {point}, {way:?}"));
                assert!(at >= least, "point {point}, {way:?}: {at} of {least}");
            }
        }
    });
    let mut store = forgetful(&disk, LAST);
    acknowledged.store(LAST, Ordering::SeqCst);
    assert!(matches!(store.begin_replacement(LAST), Err(StoreError::OutOfOrder { .. })), "it is not newer");
    let mut writer = store.begin_replacement(REPLACED).expect("begun");
    writer.write_all(&state(REPLACED)).expect("written");
    assert_eq!(store.block(LAST).expect("readable"), Some(block(LAST)), "nothing has changed yet");
    writer.finish().expect("finished");
    acknowledged.store(REPLACED, Ordering::SeqCst);
    drop(store);
    let (store, recovery) = Store::open(disk.clone(), OPTIONS).expect("opens");
    assert_eq!((store.last_height(), recovery.blocks.remaining()), (REPLACED, 0));
    assert_eq!(store.block(LAST).expect("readable"), None);
    drop(store);
    let logs = disk.list().expect("listed").into_iter().filter(|(name, _)| name.ends_with(".log")).count();
    assert_eq!(logs, 0);
    assert_eq!(recover(disk.clone(), "afterwards"), REPLACED);
    assert_eq!(recover(disk, "and again"), REPLACED + 1);
}

/// The removal of replaced files may itself be interrupted, repeatedly.
#[test]
fn what_is_replaced_is_removed_in_the_end() {
    let disk = FaultDisk::new(4);
    let mut store = forgetful(&disk, LAST);
    let mut writer = store.begin_replacement(REPLACED).expect("begun");
    writer.write_all(&state(REPLACED)).expect("written");
    writer.finish().expect("finished");
    drop(store);
    let left = Arc::new(Mutex::new(Vec::new()));
    disk.watch({
        let left = left.clone();
        move |disk| {
            let ways = [Surviving::Nothing, Surviving::Everything, Surviving::Some(disk.points())];
            left.lock().expect("no panic").extend(ways.map(|way| disk.after_crash(way)));
        }
    });
    drop(Store::open(disk, OPTIONS).expect("opens"));
    let left: Vec<FaultDisk> = left.lock().expect("no panic").drain(..).collect();
    assert!(left.len() > 6, "{} crashes", left.len());
    left.into_iter().for_each(|disk| assert_eq!(recover(disk, "cut short"), REPLACED));
}

#[test]
fn an_archive_may_begin_later() {
    let disk = FaultDisk::new(5);
    let (mut store, _) = Store::open(disk.clone(), OPTIONS).expect("a new store opens");
    store.begin_after(6).expect("begun");
    assert_eq!(store.last_height(), 6);
    assert!(matches!(store.append(6, b""), Err(StoreError::OutOfOrder { expected: 7, .. })));
    store.append(7, b"seven").expect("appended");
    store.sync().expect("synced");
    assert!(store.begin_after(9).is_err(), "it holds something");
    drop(store);
    let (store, _) = Store::open(disk.after_crash(Surviving::Nothing), OPTIONS).expect("opens");
    assert_eq!((store.block(6).expect("readable"), store.last_height()), (None, 7));
    assert_eq!(store.block(7).expect("readable").as_deref(), Some(&b"seven"[..]));
}

#[test]
fn chunks_in_any_order_make_the_same_file() {
    let folder = tempfile::tempdir().expect("a folder");
    for bytes in [0, 1, CHUNK_BYTES, 2 * CHUNK_BYTES + 77] {
        let (theirs, name) = (folder.path().join(format!("{bytes}")), format!("{bytes}-again"));
        let (disk, ours) = (FaultDisk::new(1), name.as_str());
        let mut writer = SnapshotWriter::create(&theirs, 9).expect("new");
        writer.write_all(&(0..bytes).map(|at| ((at * 7) >> 3) as u8).collect::<Vec<u8>>()).expect("written");
        writer.finish().expect("finished");
        let reader = CheckpointReader::of_snapshot(&theirs).expect("sound");
        let digests = reader.digests().to_vec();
        let longer = [digests.clone(), vec![[0; 32]]].concat();
        assert!(Assembly::create(&disk, ours, 9, reader.payload_bytes(), longer).expect("a disk").is_none());
        let assembly = Assembly::create(&disk, ours, 9, reader.payload_bytes(), digests).expect("a disk");
        let mut assembly = assembly.expect("the lengths fit");
        for number in (0..assembly.chunks()).rev() {
            let chunk = reader.chunk(number).expect("sound").expect("there");
            let mut wrong = chunk.clone();
            wrong[0] ^= 1;
            assert!(!assembly.insert(number, &wrong).expect("a disk"));
            assert!(!assembly.insert(number, &chunk[1..]).expect("a disk"));
            assert!(!assembly.is_complete());
            assert!(assembly.insert(number, &chunk).expect("a disk") && assembly.holds(number));
        }
        assert!(!assembly.insert(9, b"").expect("a disk") && reader.chunk(9).expect("no error").is_none());
        assembly.finish().expect("a disk");
        assert_eq!(disk.content(ours), std::fs::read(&theirs).expect("there"), "{bytes}");
    }
}
