//! The guarantees of the store, on a real disk where that matters; and the pinned format.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use kernel::{FaultDisk, Surviving};
use store::{Options, RealDisk, Store, StoreError, inspect};

/// A path for a test's store, where nothing exists.
fn directory(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    match std::fs::remove_dir_all(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("{error}"),
        _ => path,
    }
}

fn open(path: &PathBuf) -> Result<(Store<RealDisk>, store::Recovery<RealDisk>), StoreError> {
    Store::open(RealDisk::new(path).expect("a directory"), Options { segment_bytes: 5000 })
}

fn block(height: u64) -> Vec<u8> {
    vec![height as u8; 700]
}

#[test]
fn a_real_directory_keeps_what_was_synced() {
    let path = directory("keeps");
    let (mut store, recovery) = open(&path).expect("a new store opens");
    assert!(recovery.checkpoint.is_none() && recovery.blocks.remaining() == 0 && recovery.repairs.is_empty());
    for height in 1..=30 {
        store.append(height, &block(height)).expect("appended");
        store.append_receipts(height, &[height as u8]).expect("put");
    }
    // A full file is synced before the next one is begun.
    assert!(store.durable_height() < 30);
    assert_eq!((store.sync().expect("synced"), store.durable_height()), (30, 30));
    // Another thread writes the checkpoint, and a third reads the archive, while blocks are appended.
    let mut writer = store.begin_checkpoint(20).expect("begun");
    let checkpoint = std::thread::spawn(move || {
        for part in 0..3000u32 {
            writer.write_all(&[part as u8; 1000]).expect("written");
        }
        writer.finish()
    });
    let archive = store.archive();
    let reader = std::thread::spawn(move || {
        (1..=30).all(|height| archive.block(height).expect("readable").as_deref() == Some(&block(height)))
    });
    for height in 31..=60 {
        store.append(height, &block(height)).expect("appended");
        store.sync().expect("synced");
    }
    assert!(reader.join().expect("no panic"));
    checkpoint.join().expect("no panic").expect("finished");
    let newest = store.archive().newest_checkpoint().expect("readable").expect("there is one");
    assert_eq!((newest.height(), newest.payload_bytes()), (20, 3_000_000));
    drop(store);

    let (store, recovery) = open(&path).expect("opens again");
    let mut checkpoint = recovery.checkpoint.expect("there is one");
    assert_eq!((checkpoint.height(), checkpoint.payload_bytes()), (20, 3_000_000));
    let mut payload = Vec::new();
    checkpoint.read_to_end(&mut payload).expect("sound");
    assert!(payload.chunks(1000).enumerate().all(|(part, bytes)| *bytes == [part as u8; 1000]));
    let heights: Vec<u64> = recovery.blocks.map(|block| block.expect("sound").0).collect();
    assert_eq!(heights, (21..=60).collect::<Vec<_>>());
    assert_eq!((store.last_height(), store.receipts_height()), (60, 30));
    let inspection = inspect(RealDisk::existing(&path).expect("a directory")).expect("a live store can be inspected");
    assert_eq!((inspection.damage().count(), inspection.checkpoints.len()), (0, 1));
}

#[test]
fn only_one_may_open_it() {
    let path = directory("locked");
    let (mut store, _) = open(&path).expect("a new store opens");
    assert!(matches!(open(&path), Err(StoreError::Locked(place)) if place == path.display().to_string()));
    let writer = store.begin_checkpoint(1).expect("begun");
    drop(store);
    assert!(matches!(open(&path), Err(StoreError::Locked(_))), "its checkpoint is still being written");
    drop(writer);
    open(&path).expect("opens once it is free");
}

#[test]
fn only_its_owner_may_read_it() {
    let path = directory("private");
    let missing = RealDisk::existing(&path).expect_err("not there");
    assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
    drop(open(&path).expect("a new store opens"));
    let mode = std::fs::metadata(&path).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o750)).expect("changed");
    let error = RealDisk::new(&path).expect_err("open to others");
    assert!(error.to_string().contains("chmod 700"), "{error}");
}

#[test]
fn order_is_kept() {
    let (mut store, _) = Store::open(FaultDisk::new(1), Options::default()).expect("a new store opens");
    let out_of_order = |result: Result<(), StoreError>, next| {
        assert!(matches!(result, Err(StoreError::OutOfOrder { expected, .. }) if expected == next), "{result:?}");
    };
    out_of_order(store.append(2, b"two"), 1);
    store.append(1, b"one").expect("appended");
    out_of_order(store.append(1, b"one"), 2);
    out_of_order(store.append_receipts(2, b"two"), 1);
    store.append_receipts(1, b"one").expect("put");
    out_of_order(store.append_receipts(2, b"two"), 1);
    store.append_receipts(1, b"one").expect("the same again");
    assert!(matches!(store.append_receipts(1, b"won"), Err(StoreError::ReceiptsDiffer(1))));
    assert!(matches!(store.begin_checkpoint(1), Err(StoreError::NotDurable { height: 1, durable: 0 })));
    store.sync().expect("none of this stops the store");
    let first = store.begin_checkpoint(1).expect("begun");
    out_of_order(store.begin_checkpoint(1).map(drop), 2);
    store.append(2, b"").expect("appended");
    store.sync().expect("synced");
    assert!(matches!(store.begin_checkpoint(2), Err(StoreError::CheckpointRunning)));
    drop(first);
    store.begin_checkpoint(2).expect("begun").finish().expect("an empty state is a state");
    assert_eq!((store.block(1).unwrap(), store.block(2).unwrap()), (Some(b"one".to_vec()), Some(Vec::new())));
    assert_eq!((store.block(0).unwrap(), store.block(3).unwrap()), (None, None));
    assert_eq!((store.receipts(1).unwrap(), store.receipts(2).unwrap()), (Some(b"one".to_vec()), None));
}

/// The replay after a checkpoint does not produce earlier receipts again, so the checkpoint counts only once they are
/// archived.
#[test]
fn a_checkpoint_waits_for_the_receipts() {
    let disk = FaultDisk::new(1);
    let (mut store, _) = Store::open(disk.clone(), Options::default()).expect("a new store opens");
    for height in 1..=4 {
        store.append(height, &block(height)).expect("appended");
    }
    store.sync().expect("synced");
    store.append_receipts(1, b"one").expect("put");
    store.begin_checkpoint(3).expect("begun").finish().expect("finished");
    let found = |disk: &FaultDisk| {
        let (_, recovery) = Store::open(disk.after_crash(Surviving::Nothing), Options::default()).expect("recovers");
        recovery.checkpoint.map(|checkpoint| checkpoint.height())
    };
    for height in 2..=3 {
        assert_eq!(found(&disk), None);
        assert!(matches!(store.begin_checkpoint(4), Err(StoreError::CheckpointRunning)));
        store.append_receipts(height, b"more").expect("put");
    }
    assert_eq!(found(&disk), Some(3));
    drop(store.begin_checkpoint(4).expect("begun"));
}

#[test]
fn a_snapshot_begins_a_store() {
    let disk = FaultDisk::new(1);
    let (mut store, _) = Store::open(disk.clone(), Options::default()).expect("a new store opens");
    let mut writer = store.begin_checkpoint(1000).expect("any height");
    writer.write_all(b"the state from elsewhere").expect("written");
    writer.finish().expect("finished");
    drop(store);
    for _ in 0..2 {
        let (mut store, recovery) = Store::open(disk.clone(), Options::default()).expect("opens");
        assert_eq!(recovery.checkpoint.expect("there is one").height(), 1000);
        let next = store.last_height() + 1;
        assert!(matches!(store.append(1, b"one"), Err(StoreError::OutOfOrder { expected, .. }) if expected == next));
        store.append(next, b"next").expect("appended");
        store.append_receipts(next, b"next").expect("put");
        store.sync().expect("synced");
        assert_eq!(recovery.blocks.remaining(), next - 1001);
    }
}

/// The bytes on the disk, including the salts from the seed.
#[test]
fn the_format_stays() {
    let disk = FaultDisk::new(42);
    let (mut store, _) = Store::open(disk.clone(), Options { segment_bytes: 2000 }).expect("a new store opens");
    for height in 1..=5 {
        store.append(height, &block(height)).expect("appended");
        store.sync().expect("synced");
        store.append_receipts(height, &[height as u8; 3]).expect("put");
    }
    let mut writer = store.begin_checkpoint(4).expect("begun");
    writer.write_all(&vec![7; (1 << 20) + 5]).expect("written");
    writer.finish().expect("finished");
    let mut files = disk.list().expect("listed");
    files.sort();
    let found: Vec<_> = files
        .into_iter()
        .map(|(name, length)| (blake3::hash(&disk.content(&name)).to_hex()[..16].to_owned(), length, name))
        .collect();
    let expected = [
        ("7d15d588a06c62c5", 2484, "blocks-00000000000000000001.log"),
        ("ae9b8ebdfb1ea962", 1752, "blocks-00000000000000000004.log"),
        ("ffc531e97a45affb", 1048793, "checkpoint-00000000000000000004.ckpt"),
        ("25dc238078141a5f", 591, "receipts-00000000000000000001.log"),
    ];
    let found: Vec<_> = found.iter().map(|(digest, length, name)| (&**digest, *length, &**name)).collect();
    assert_eq!(found, expected);
}

/// A file of another version is refused by name, with the remedy.
#[test]
fn another_format_version_is_refused_by_name() {
    let path = directory("another_version");
    let open = |path: &PathBuf| Store::open(RealDisk::new(path).expect("a directory"), Options::default());
    let (mut store, _) = open(&path).expect("a new store opens");
    store.append(1, b"one").expect("appended");
    store.sync().expect("synced");
    drop(store);
    let file = path.join("blocks-00000000000000000001.log");
    let mut bytes = std::fs::read(&file).expect("there");
    for (version, remedy) in [(9u32, "start the newer version"), (1, "start the older one")] {
        bytes[8..12].copy_from_slice(&version.to_le_bytes());
        let check = blake3::hash(&bytes[..88]);
        bytes[88..96].copy_from_slice(&check.as_bytes()[..8]);
        std::fs::write(&file, &bytes).expect("written");
        let error = open(&path).expect_err("refused").to_string();
        assert!(error.contains(&format!("format version {version}")) && error.contains(remedy), "{error}");
    }
}
