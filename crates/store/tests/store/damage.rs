//! Whatever a disk does to its data: damage is detected, named, and never returned as sound data.

use std::io::{Read, Write};

use kernel::{DiskFault, FaultDisk, Surviving};
use proptest::prelude::*;
use store::{DiskFile, Options, Store, StoreError, inspect};

const OPTIONS: Options = Options { segment_bytes: 700 };
const HEIGHTS: u64 = 14;

fn block(height: u64) -> Vec<u8> {
    (0..height * 5).map(|i| (height * 31 + i) as u8).collect()
}

fn receipts(height: u64) -> Vec<u8> {
    (0..height * 3).map(|i| (height * 17 + i) as u8).collect()
}

fn state(height: u64) -> Vec<u8> {
    (0..40 + height).map(|i| (height * 7 + i) as u8).collect()
}

fn checkpoint(store: &mut Store<FaultDisk>, height: u64) {
    let mut writer = store.begin_checkpoint(height).expect("begun");
    writer.write_all(&state(height)).expect("written");
    writer.finish().expect("finished");
}

/// Several files of each log, two checkpoints, and some blocks after them.
fn filled() -> FaultDisk {
    let disk = FaultDisk::new(3);
    let (mut store, _) = Store::open(disk.clone(), OPTIONS).expect("a new store opens");
    for height in 1..=HEIGHTS {
        store.append(height, &block(height)).expect("appended");
        store.sync().expect("synced");
        store.append_receipts(height, &receipts(height)).expect("receipts put");
        if height == 5 || height == 11 {
            checkpoint(&mut store, height);
        }
    }
    drop(store);
    disk
}

/// Opens and reads everything; the first error or repair, as text.
fn read_all(disk: FaultDisk) -> Result<(), String> {
    let (store, mut recovery) = Store::open(disk, OPTIONS).map_err(|error| error.to_string())?;
    let checkpoint = recovery.checkpoint.as_mut().expect("there is a checkpoint");
    let mut payload = Vec::new();
    checkpoint.read_to_end(&mut payload).map_err(|error| error.to_string())?;
    assert_eq!(payload, state(checkpoint.height()));
    for replayed in recovery.blocks {
        let (height, payload) = replayed.map_err(|error| error.to_string())?;
        assert_eq!(payload, block(height));
    }
    for height in 1..=HEIGHTS {
        let archived = store.block(height).map_err(|error| error.to_string())?;
        assert_eq!(archived, Some(block(height)));
        let archived = store.receipts(height).map_err(|error| error.to_string())?;
        assert!(archived.is_none_or(|archived| archived == receipts(height)));
    }
    recovery.repairs.first().map_or(Ok(()), |repair| Err(repair.to_string()))
}

#[test]
fn an_undamaged_store_reads_well() {
    assert_eq!(read_all(filled()), Ok(()));
    let inspection = inspect(filled()).expect("readable");
    assert_eq!(inspection.damage().count(), 0);
    assert!(inspection.blocks.segments.len() > 2 && inspection.receipts.segments.len() > 2);
    assert_eq!(inspection.blocks.segments.last().expect("a file").last, HEIGHTS);
    assert!(inspection.blocks.segments.iter().all(|segment| segment.tail_bytes == 0));
    let checkpoints: Vec<_> = inspection.checkpoints.iter().map(|it| (it.height, it.payload_bytes)).collect();
    assert_eq!(checkpoints, [(5, 45), (11, 51)]);
}

#[test]
fn every_flipped_byte_is_noticed_and_named() {
    let disk = filled();
    for (name, length) in disk.list().expect("listed") {
        for offset in 0..length {
            let damaged = disk.after_crash(Surviving::Everything);
            damaged.flip(&name, offset, 1 << (offset % 8));
            let inspection = inspect(damaged.clone()).expect("readable");
            let named = inspection.damage().any(|damage| damage.to_string().contains(&name));
            let segments = inspection.blocks.segments.iter().chain(&inspection.receipts.segments);
            let tail = segments.into_iter().any(|segment| segment.file.ends_with(&name) && segment.tail_bytes > 0);
            assert!(named || tail, "{name}, byte {offset}: not seen by inspection");
            // The older checkpoint is a reserve that only inspection reads.
            if name != "checkpoint-00000000000000000005.ckpt" {
                let error = read_all(damaged).expect_err(&format!("{name}, byte {offset}: not noticed"));
                assert!(error.contains(&name), "{name}, byte {offset}: {error}");
                let at = error.split("byte ").nth(1).and_then(|rest| rest.split([':', ';']).next()?.parse().ok());
                let at: u64 = at.unwrap_or_else(|| panic!("no offset in {error}"));
                let end_of_frame = name.ends_with("ckpt");
                assert!(at <= offset || end_of_frame, "{name}, byte {offset}: named byte {at}");
            }
        }
    }
}

#[test]
fn every_missing_file_is_noticed() {
    let disk = filled();
    let mut names: Vec<String> = disk.list().expect("listed").into_iter().map(|(name, _)| name).collect();
    names.sort();
    for name in &names {
        let damaged = disk.after_crash(Surviving::Everything);
        damaged.remove(name).expect("removed");
        // Losing a checkpoint only makes the replay longer; the replay produces the last receipts again. The loss of
        // the last blocks looks like a crash before they were written, as long as no checkpoint is newer.
        let last_of = |stem: &str| names.iter().rfind(|name| name.starts_with(stem));
        let tolerable =
            name.starts_with("checkpoint") || [last_of("blocks"), last_of("receipts")].contains(&Some(name));
        if !tolerable {
            let error = read_all(damaged).expect_err(&format!("{name}: not missed"));
            assert!(error.contains("missing"), "{error}");
        }
    }
}

#[test]
fn blocks_before_the_checkpoint_cannot_be_cut_off() {
    let disk = filled();
    for (name, length) in disk.list().expect("listed") {
        let is_log = name.ends_with(".log");
        let first: u64 = name.split(['-', '.']).nth(1).and_then(|digits| digits.parse().ok()).expect("a height");
        if !is_log || first > 11 {
            continue;
        }
        for length in (0..length).step_by(11) {
            let damaged = disk.after_crash(Surviving::Everything);
            truncate(&damaged, &name, length);
            let error = read_all(damaged).expect_err(&format!("{name} cut to {length}: not noticed"));
            assert!(error.contains(&name) || error.contains("missing"), "{error}");
        }
    }
}

#[test]
fn a_damaged_checkpoint_can_be_removed() {
    let disk = filled();
    disk.flip("checkpoint-00000000000000000011.ckpt", 120, 1);
    let error = read_all(disk.clone()).expect_err("damaged");
    assert!(error.contains("checkpoint-00000000000000000011.ckpt") && error.contains("remove this file"), "{error}");
    disk.remove("checkpoint-00000000000000000011.ckpt").expect("removed");
    let (_, recovery) = Store::open(disk, OPTIONS).expect("opens");
    assert_eq!(recovery.checkpoint.expect("the one before").height(), 5);
    assert_eq!(recovery.blocks.map(|block| block.expect("sound").0).collect::<Vec<_>>(), (6..=14).collect::<Vec<_>>());
}

/// A store with blocks 1 to 4 durable, and `points` counted so far.
fn started() -> (FaultDisk, Store<FaultDisk>) {
    let disk = FaultDisk::new(5);
    let (mut store, _) = Store::open(disk.clone(), Options::default()).expect("a new store opens");
    for height in 1..=4 {
        store.append(height, &block(height)).expect("appended");
        store.append_receipts(height, &receipts(height)).expect("put");
    }
    assert_eq!(store.sync().expect("synced"), 4);
    (disk, store)
}

/// The store refuses every call, and reopening finds a prefix with at least four blocks.
fn refuses_and_recovers(disk: &FaultDisk, mut store: Store<FaultDisk>) {
    let refused = |result: Result<(), StoreError>| assert!(matches!(result, Err(StoreError::Failed(_))), "{result:?}");
    refused(store.append(store.last_height() + 1, b"more"));
    refused(store.sync().map(drop));
    refused(store.block(1).map(drop));
    refused(store.append_receipts(5, b"more"));
    refused(store.receipts(1).map(drop));
    refused(store.begin_checkpoint(4).map(drop));
    drop(store);
    for surviving in [Surviving::Nothing, Surviving::Everything, Surviving::Some(1), Surviving::Some(2)] {
        let (store, recovery) = Store::open(disk.after_crash(surviving), Options::default()).expect("recovers");
        let recovered: Vec<_> = recovery.blocks.map(|block| block.expect("sound")).collect();
        assert!(recovered.len() >= 4 && store.last_height() == recovered.len() as u64, "{surviving:?}");
        assert!(recovered.iter().all(|(height, payload)| *payload == block(*height)), "{surviving:?}");
    }
}

#[test]
fn a_failed_write_stops_the_store() {
    for fault in [DiskFault::Error, DiskFault::Half] {
        let (disk, mut store) = started();
        disk.inject(disk.points(), fault);
        assert!(matches!(store.append(5, &block(5)), Err(StoreError::Io { .. })));
        refuses_and_recovers(&disk, store);
    }
}

#[test]
fn a_failed_sync_is_not_tried_again() {
    for fault in [DiskFault::Error, DiskFault::Half] {
        let (disk, mut store) = started();
        store.append(5, &block(5)).expect("appended");
        disk.inject(disk.points(), fault);
        assert!(matches!(store.sync(), Err(StoreError::Io { .. })));
        assert_eq!(store.durable_height(), 4);
        refuses_and_recovers(&disk, store);
    }
}

/// A restarted node returns blocks that a failed sync has left only in memory: it must make them durable first.
#[test]
fn a_block_that_a_restart_reads_survives_a_power_cut() {
    let (disk, mut store) = started();
    store.append(5, &block(5)).expect("appended");
    disk.inject(disk.points(), DiskFault::Half);
    assert!(matches!(store.sync(), Err(StoreError::Io { .. })));
    drop(store);
    let (store, _) = Store::open(disk.clone(), Options::default()).expect("opens");
    assert_eq!(store.last_height(), 5);
    let (after, _) = Store::open(disk.after_crash(Surviving::Nothing), Options::default()).expect("opens again");
    assert_eq!(after.last_height(), 5);
}

#[test]
fn a_full_disk_stops_the_store_and_loses_nothing() {
    for room in 0..120 {
        let (disk, mut store) = started();
        let used: u64 = disk.list().expect("listed").iter().map(|(_, length)| length).sum();
        disk.set_capacity(Some(used + room));
        // The record overwrites the mark of 64 bytes.
        let fits = room + 64 >= 64 + 25 + 32;
        assert_eq!(store.append(5, &block(5)).is_ok(), fits, "{room} bytes");
        if !fits {
            refuses_and_recovers(&disk, store);
        }
    }
}

#[test]
fn a_failed_checkpoint_stops_the_store_and_leaves_the_one_before() {
    let points = {
        let (disk, mut store) = started();
        checkpoint(&mut store, 3);
        let before = disk.points();
        checkpoint(&mut store, 4);
        disk.points() - before
    };
    for point in 0..points {
        let (disk, mut store) = started();
        checkpoint(&mut store, 3);
        disk.inject(disk.points() + point, DiskFault::Error);
        let written = store.begin_checkpoint(4).and_then(|mut writer| {
            writer.write_all(&state(4)).expect("buffered");
            writer.finish()
        });
        assert!(matches!(written, Err(StoreError::Io { .. })), "point {point}");
        assert!(matches!(store.sync(), Err(StoreError::Failed(_))), "point {point}");
        drop(store);
        let (_, recovery) = Store::open(disk.after_crash(Surviving::Nothing), Options::default()).expect("recovers");
        assert!(recovery.checkpoint.expect("there is one").height() >= 3, "point {point}");
    }
}

/// A write that lands elsewhere without an error is reported as damage and not mistaken for a torn tail.
#[test]
fn a_misdirected_write_is_found() {
    for further in [512, 1024, 4096] {
        let (disk, mut store) = started();
        disk.inject(disk.points(), DiskFault::Misdirected(further));
        for height in 5..=8 {
            store.append(height, &block(height)).expect("appended");
            store.sync().expect("synced");
        }
        drop(store);
        let error = Store::open(disk, Options::default()).map(drop).expect_err("damaged");
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    }
}

/// If the mark is lost, too, the checkpoint shows that the last block had been durable. Nothing is cut.
#[test]
fn a_checkpoint_is_evidence() {
    let (disk, mut store) = started();
    checkpoint(&mut store, 4);
    drop(store);
    let (name, length) = last_log(&disk);
    truncate(&disk, &name, length - 64);
    disk.flip(&name, length - 64 - 40, 1);
    let before = disk.content(&name);
    let error = Store::open(disk.clone(), Options::default()).map(drop).expect_err("damaged");
    assert!(matches!(&error, StoreError::Damaged { file, .. } if file.ends_with(&name)), "{error}");
    assert_eq!(disk.content(&name), before);
}

/// Evidence is found wherever it begins, also across the pieces of the search.
#[test]
fn evidence_is_found_everywhere() {
    for shorter in 0..130 {
        let disk = FaultDisk::new(6);
        let (mut store, _) = Store::open(disk.clone(), Options::default()).expect("a new store opens");
        store.append(1, &vec![1; (1 << 20) - 30 - shorter]).expect("appended");
        store.sync().expect("synced");
        store.append(2, b"tells that 1 was durable").expect("appended");
        drop(store);
        let name = last_log(&disk).0;
        disk.flip(&name, 97, 1);
        let error = Store::open(disk, Options::default()).map(drop).expect_err("damaged");
        assert!(matches!(error, StoreError::Damaged { offset: 96, .. }), "{shorter}: {error}");
    }
}

#[test]
fn a_log_that_does_not_reach_the_checkpoint_is_noticed() {
    let disk = filled();
    let mut names: Vec<String> = disk.list().expect("listed").into_iter().map(|(name, _)| name).collect();
    names.retain(|name| name.starts_with("blocks"));
    names.sort();
    for name in names.iter().rev() {
        disk.remove(name).expect("removed");
        let first: u64 = name.split(['-', '.']).nth(1).and_then(|digits| digits.parse().ok()).expect("a height");
        if first <= 11 {
            let error = read_all(disk.after_crash(Surviving::Everything)).expect_err(name);
            assert!(error.contains("blocks-") && error.contains("newest checkpoint, at 11"), "{error}");
        }
    }
}

#[test]
fn a_log_that_begins_after_the_checkpoint_is_noticed() {
    let disk = FaultDisk::new(6);
    let (mut store, _) = Store::open(disk.clone(), Options::default()).expect("a new store opens");
    checkpoint(&mut store, 1000);
    drop(store);
    let (mut store, _) = Store::open(disk.clone(), Options::default()).expect("opens");
    store.append(1001, b"next").expect("appended");
    drop(store);
    disk.remove("checkpoint-00000000000000001000.ckpt").expect("removed");
    let error = Store::open(disk, Options::default()).map(drop).expect_err("nothing to replay on");
    assert!(error.to_string().contains("begins at height 1001"), "{error}");
}

#[test]
fn files_of_two_stores_do_not_mix() {
    let ((ours, mut store), (other, mut theirs)) = (started(), started());
    drop(store.begin_checkpoint(3));
    theirs.append(5, b"another block").expect("appended");
    store.append(5, b"a block").expect("appended");
    for store in [&mut store, &mut theirs] {
        store.sync().expect("synced");
        store.append_receipts(5, b"").expect("put");
        checkpoint(store, 5);
    }
    drop(store);
    let name = "checkpoint-00000000000000000005.ckpt";
    ours.remove(name).expect("removed");
    let file = ours.create(name).expect("created");
    DiskFile::write_at(&file, 0, &other.content(name)).expect("written");
    let error = Store::open(ours, Options::default()).map(drop).expect_err("not of one run");
    assert!(error.to_string().contains("block 5 is not the one"), "{error}");
}

/// A valid record in the place of another, under a running store.
#[test]
fn a_record_in_the_place_of_another_is_noticed() {
    let disk = FaultDisk::new(6);
    let (mut store, _) = Store::open(disk.clone(), Options::default()).expect("a new store opens");
    for height in 1..=3 {
        store.append(height, &[height as u8; 10]).expect("appended");
    }
    let (name, _) = last_log(&disk);
    let (record, content) = (64 + 10 + 32, disk.content(&name));
    let file = disk.open(&name, true).expect("opened");
    DiskFile::write_at(&file, 96 + record, &content[96..96 + record as usize]).expect("written");
    assert_eq!(store.block(1).expect("sound"), Some(vec![1; 10]));
    assert!(matches!(store.block(2), Err(StoreError::Damaged { offset, .. }) if offset == 96 + record));
}

fn last_log(disk: &FaultDisk) -> (String, u64) {
    disk.list().expect("listed").into_iter().filter(|(name, _)| name.starts_with("blocks")).max().expect("a log")
}

fn truncate(disk: &FaultDisk, name: &str, length: u64) {
    let file = disk.open(name, true).expect("opened");
    DiskFile::truncate(&file, length).expect("cut");
}

/// A block that contains what looks like records is not evidence: a torn one is cut like any other.
#[test]
fn a_block_cannot_pose_as_records() {
    let (disk, mut store) = started();
    let image = disk.content("blocks-00000000000000000001.log");
    store.append(5, &image).expect("appended");
    drop(store);
    let torn = disk.after_crash(Surviving::Torn(0));
    let file = torn.open("blocks-00000000000000000001.log", true).expect("opened");
    // All of the block but its header reached the disk, and in it records with durable heights up to 4.
    let all = disk.content("blocks-00000000000000000001.log");
    DiskFile::write_at(&file, image.len() as u64, &all[image.len()..]).expect("written");
    let (store, recovery) = Store::open(torn, Options::default()).expect("recovers");
    assert_eq!((store.last_height(), recovery.repairs.len()), (4, 1));
}

/// A modification of the bytes of a file.
#[derive(Clone, Debug)]
enum Harm {
    Overwrite(u64, Vec<u8>),
    CopyWithin(u64, u64, u64),
    Truncate(u64),
    Append(Vec<u8>),
}

fn harm() -> impl Strategy<Value = Harm> {
    let bytes = || proptest::collection::vec(prop_oneof![Just(0u8), Just(255), any::<u8>()], 1..200);
    prop_oneof![
        (any::<u64>(), bytes()).prop_map(|(at, bytes)| Harm::Overwrite(at, bytes)),
        (any::<u64>(), any::<u64>(), 1..300u64).prop_map(|(from, to, length)| Harm::CopyWithin(from, to, length)),
        any::<u64>().prop_map(Harm::Truncate),
        bytes().prop_map(Harm::Append),
    ]
}

fn do_harm(disk: &FaultDisk, name: &str, harm: &Harm) {
    let content = disk.content(name);
    let length = content.len() as u64;
    let file = disk.open(name, true).expect("opened");
    let done = match harm {
        Harm::Overwrite(at, bytes) => file.write_at(at % (length + 1), bytes),
        Harm::CopyWithin(from, to, count) => {
            let from = (from % (length + 1)) as usize;
            let to_copy = &content[from..content.len().min(from + *count as usize)];
            file.write_at(to % (length + 1), to_copy)
        }
        Harm::Truncate(to) => file.truncate(to % (length + 1)),
        Harm::Append(bytes) => file.write_at(length, bytes),
    };
    done.expect("done");
}

proptest! {
    /// Whatever happens to the files: an error, or the written data (`read_all` compares), and never a panic.
    #[test]
    fn harmed_files_give_the_truth_or_an_error(harms in proptest::collection::vec((any::<prop::sample::Index>(),
        harm()), 1..4)) {
        let disk = filled();
        let mut names: Vec<String> = disk.list().expect("listed").into_iter().map(|(name, _)| name).collect();
        names.sort();
        for (index, harm) in &harms {
            do_harm(&disk, index.get(&names).as_str(), harm);
        }
        inspect(disk.clone()).expect("readable");
        let (store, mut recovery) = match Store::open(disk, OPTIONS) {
            Ok(opened) => opened,
            Err(error) => {
                prop_assert!(matches!(error, StoreError::Damaged { .. }), "{}", error);
                return Ok(());
            }
        };
        if let Some(checkpoint) = &mut recovery.checkpoint {
            let mut payload = Vec::new();
            if checkpoint.read_to_end(&mut payload).is_ok() {
                prop_assert_eq!(payload, state(checkpoint.height()));
            }
        }
        for (height, payload) in recovery.blocks.flatten() {
            prop_assert_eq!(payload, block(height));
        }
        for height in 1..=HEIGHTS {
            prop_assert!(store.block(height).ok().flatten().is_none_or(|payload| payload == block(height)));
            prop_assert!(store.receipts(height).ok().flatten().is_none_or(|payload| payload == receipts(height)));
        }
    }
}
