//! The vote log: synced votes are never lost, whatever the disk and a crash do; a missing log is never mistaken for
//! an empty one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use kernel::{DiskFault, FaultDisk, Surviving};
use proptest::prelude::*;
use store::{FoundVotes, StoreError, VoteLog, VoteOptions};

const OPTIONS: VoteOptions = VoteOptions { segment_bytes: 2_000, bytes_max: 1 << 20 };

type Said = Vec<(u64, Vec<u8>)>;

fn record(number: u64) -> Vec<u8> {
    (0..number * 37 % 400).map(|i| (number * 31 + i) as u8).collect()
}

fn open(disk: FaultDisk) -> Result<(VoteLog<FaultDisk>, FoundVotes), StoreError> {
    VoteLog::open(disk, OPTIONS)
}

/// The records of each height from a floor on.
fn by_height(said: &[(u64, Vec<u8>)], floor: u64) -> BTreeMap<u64, Vec<Vec<u8>>> {
    let mut heights: BTreeMap<u64, Vec<Vec<u8>>> = BTreeMap::new();
    for (height, bytes) in said.iter().filter(|(height, _)| *height >= floor) {
        heights.entry(*height).or_default().push(bytes.clone());
    }
    heights
}

/// Heights rise, four at a time: record `number` belongs to one of them.
fn height_of(number: u64) -> u64 {
    1 + number / 8 + number % 4
}

/// A run: groups of one to three records per sync; records four heights below the newest are forgotten.
fn run(log: &mut VoteLog<FaultDisk>, records: u64, mut synced: impl FnMut(u64)) -> Said {
    let mut said = Said::new();
    for number in 0..records {
        let height = height_of(number);
        log.append(height, &record(number)).expect("appended");
        said.push((height, record(number)));
        if number % 5 != 1 {
            log.sync().expect("synced");
            synced(number + 1);
        }
        if number % 16 == 15 {
            log.forget((number / 8).saturating_sub(3)).expect("forgotten");
        }
    }
    log.sync().expect("synced");
    synced(records);
    said
}

#[test]
fn what_is_synced_comes_back_by_height_and_what_is_forgotten_is_gone() {
    let disk = FaultDisk::new(1);
    let mut log = VoteLog::create(disk.clone(), OPTIONS).expect("created");
    let said = run(&mut log, 400, |_| {});
    let (floor, bytes) = (log.floor(), log.bytes());
    assert!(floor > 40 && bytes < 25_000, "{floor} {bytes}");
    drop(log);
    let (log, votes) = open(disk.clone()).expect("opened");
    assert!(votes.repairs.is_empty() && votes.floor <= floor && votes.floor + 20 > floor);
    assert_eq!((votes.records, log.floor()), (by_height(&said, votes.floor), votes.floor));
    let files = disk.list().expect("listed").into_iter().filter(|(name, _)| name.starts_with("votes-")).count();
    assert!(files <= 10, "{files} files are left");
    assert!(log.bytes().abs_diff(bytes) <= 64, "but for a mark: {} and {bytes}", log.bytes());
}

#[test]
fn a_missing_log_is_not_an_empty_one() {
    let disk = FaultDisk::new(1);
    let error = open(disk.clone()).expect_err("there is none");
    assert!(matches!(error, StoreError::VotesLost(_)) && error.to_string().contains("must not vote"), "{error}");
    drop(VoteLog::create(disk.clone(), OPTIONS).expect("created"));
    let (log, votes) = open(disk.clone()).expect("opened");
    assert_eq!((log.floor(), votes.floor, votes.records.len()), (1, 1, 0));
    assert!(matches!(open(disk.clone()), Err(StoreError::Locked(_))));
    drop(log);
    assert!(matches!(VoteLog::create(disk.clone(), OPTIONS), Err(StoreError::VotesExist(_))));
    // Rejoining takes effect at once and permanently.
    drop(VoteLog::rejoin(disk.clone(), OPTIONS, 77).expect("begun anew"));
    let (mut log, votes) = open(disk.after_crash(Surviving::Nothing)).expect("opened");
    assert_eq!(votes.floor, 77);
    assert!(matches!(log.append(76, b"x"), Err(StoreError::OutOfOrder { expected: 77, .. })));
    log.append(77, b"x").expect("appended");
}

#[test]
fn the_bound_holds_and_forgetting_gives_room() {
    let options = VoteOptions { bytes_max: 10_000, ..OPTIONS };
    let disk = FaultDisk::new(1);
    let mut log = VoteLog::create(disk.clone(), options).expect("created");
    let mut height = 1;
    let full = loop {
        match log.append(height, &[1; 200]) {
            Ok(()) => height += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(full, StoreError::VotesFull(bytes) if bytes > 9_000 && bytes <= 10_000), "{full}");
    log.forget(height).expect("forgotten");
    assert!(log.bytes() < 3_000);
    log.append(height, &[1; 200]).expect("there is room again");
}

/// After a crash at any point, in any way: all synced records exist, possibly followed by more in order, and nothing
/// else; and the log continues.
#[test]
fn recovers_from_a_crash_at_every_point() {
    let disk = FaultDisk::new(5);
    let mut log = VoteLog::create(disk.clone(), OPTIONS).expect("created");
    let acknowledged = Arc::new(AtomicU64::new(0));
    let everything: Said = (0..200).map(|number| (height_of(number), record(number))).collect();
    disk.watch({
        let acknowledged = acknowledged.clone();
        move |disk| {
            let point = disk.points();
            let so_far = acknowledged.load(Ordering::SeqCst) as usize;
            let ways = [Surviving::Nothing, Surviving::Everything].into_iter();
            let torn = (0..3).map(Surviving::Torn);
            let some = (0..4).map(|way| Surviving::Some(point * 16 + way));
            for way in ways.chain(torn).chain(some) {
                let context = format!("point {point}, {way:?}, {so_far} synced");
                check(disk.after_crash(way), &everything, so_far, &context);
            }
        }
    });
    run(&mut log, 200, |synced| acknowledged.store(synced, Ordering::SeqCst));
    assert!(disk.points() > 300, "only {} points", disk.points());
}

/// Compares the recovered records with the written ones, of which the first `synced` were acknowledged.
fn check(disk: FaultDisk, everything: &Said, synced: usize, context: &str) {
    let (mut log, votes) = open(disk.clone()).unwrap_or_else(|error| panic!("{context}: {error}"));
    // The recovered records that were not acknowledged must be the first ones of them.
    let length = (synced..=everything.len()).find(|n| by_height(&everything[..*n], votes.floor) == votes.records);
    assert!(length.is_some(), "{context}: floor {}, {:?}", votes.floor, votes.records.keys());
    log.append(1_000, b"after").unwrap_or_else(|error| panic!("{context}: {error}"));
    log.sync().unwrap_or_else(|error| panic!("{context}: {error}"));
    drop(log);
    let (_, again) = open(disk.after_crash(Surviving::Nothing)).unwrap_or_else(|error| panic!("{context}: {error}"));
    assert_eq!(again.records.get(&1_000), Some(&vec![b"after".to_vec()]), "{context}");
    assert!(again.repairs.is_empty(), "{context}");
}

/// A crash while a lost log is replaced by a new one leaves no log, a damaged one, or the new one: never an older one
/// without its end, and never one without its floor.
#[test]
fn a_crash_in_rejoining_never_brings_back_a_part() {
    // In the shorter run nothing is forgotten, so its first file alone could be mistaken for a log.
    [30, 100].into_iter().for_each(crash_in_rejoining);
}

fn crash_in_rejoining(records: u64) {
    let disk = FaultDisk::new(6);
    let mut log = VoteLog::create(disk.clone(), OPTIONS).expect("created");
    let said = run(&mut log, records, |_| {});
    drop(log);
    let crashed = Arc::new(Mutex::new(Vec::new()));
    disk.watch({
        let crashed = crashed.clone();
        move |disk| {
            let ways = [Surviving::Nothing, Surviving::Everything].into_iter();
            let some = (0..8).map(|way| Surviving::Some(disk.points() * 16 + way));
            crashed.lock().expect("no panic").extend(ways.chain(some).map(|way| disk.after_crash(way)));
        }
    });
    drop(VoteLog::rejoin(disk, OPTIONS, 500).expect("begun anew"));
    let mut outcomes = [0; 4];
    for disk in crashed.lock().expect("no panic").drain(..) {
        let outcome = match open(disk.clone()) {
            Ok((_, votes)) if votes.floor == 500 => 0,
            // A crash before anything was removed.
            Ok((_, votes)) => {
                assert_eq!(votes.records, by_height(&said, votes.floor));
                1
            }
            Err(StoreError::VotesLost(_)) => 2,
            Err(StoreError::Damaged { .. }) => 3,
            Err(other) => panic!("{other}"),
        };
        outcomes[outcome] += 1;
        assert_eq!(VoteLog::rejoin(disk, OPTIONS, 600).expect("tried again").floor(), 600);
    }
    assert!(outcomes.iter().all(|times| *times > 0), "{outcomes:?}");
}

/// Any damaged byte is detected, unless nothing depends on it.
#[test]
fn damage_is_named_and_never_read_as_truth() {
    let disk = FaultDisk::new(2);
    let mut log = VoteLog::create(disk.clone(), OPTIONS).expect("created");
    let said = run(&mut log, 60, |_| {});
    drop(log);
    let (_, votes) = open(disk.clone()).expect("opened");
    let (mut named, mut repaired) = (0, 0);
    for (name, length) in disk.list().expect("listed").into_iter().filter(|(name, _)| name.starts_with("votes-")) {
        for offset in 0..length {
            let damaged = disk.after_crash(Surviving::Everything);
            damaged.flip(&name, offset, 1 << (offset % 8));
            match open(damaged) {
                Err(error @ StoreError::Damaged { .. }) => {
                    assert!(error.to_string().contains(&name) && error.to_string().contains("rejoin"), "{error}");
                    named += 1;
                }
                // The mark after the last record, which only says that it is durable.
                Ok((_, found)) => {
                    assert_eq!(found.records, by_height(&said, votes.floor), "{name}, byte {offset}");
                    repaired += found.repairs.len();
                }
                Err(other) => panic!("{name}, byte {offset}: {other}"),
            }
        }
    }
    assert!(named > 5_000 && repaired <= 64, "{named} {repaired}");
}

/// Missing files before the last one are detected, and so is a missing log.
#[test]
fn missing_files_are_noticed() {
    let disk = FaultDisk::new(2);
    let mut log = VoteLog::create(disk.clone(), OPTIONS).expect("created");
    run(&mut log, 60, |_| {});
    drop(log);
    let listed = disk.list().expect("listed").into_iter().map(|(name, _)| name);
    let mut files: Vec<String> = listed.filter(|name| name.starts_with("votes-")).collect();
    files.sort();
    assert!(files.len() > 3);
    for gone in &files[..files.len() - 1] {
        let disk = disk.after_crash(Surviving::Everything);
        disk.remove(gone).expect("removed");
        assert!(matches!(open(disk), Err(StoreError::Damaged { .. })), "{gone}");
    }
    files.iter().for_each(|name| disk.remove(name).expect("removed"));
    assert!(matches!(open(disk), Err(StoreError::VotesLost(_))));
}

/// A failed sync leaves pages that the system treats as written. A restarted node may send what it reads from them,
/// so it must make it durable first.
#[test]
fn a_vote_that_a_restart_reads_survives_a_power_cut() {
    let disk = FaultDisk::new(9);
    let mut log = VoteLog::create(disk.clone(), OPTIONS).expect("created");
    log.append(7, b"a vote").expect("appended");
    disk.inject(disk.points(), DiskFault::Half);
    assert!(matches!(log.sync(), Err(StoreError::Io { .. })));
    drop(log);
    let (log, votes) = open(disk.clone()).expect("opened");
    assert_eq!(votes.records[&7], [b"a vote"]);
    let (_, found) = open(disk.after_crash(Surviving::Nothing)).expect("opened after the power cut");
    assert_eq!(found.records, votes.records);
    drop(log);
}

proptest! {
    /// Whichever call fails, every later one refuses, and everything synced before is recovered.
    #[test]
    fn an_error_stops_the_log(point in 0u64..120, half in any::<bool>()) {
        let disk = FaultDisk::new(4);
        let mut log = VoteLog::create(disk.clone(), OPTIONS).expect("created");
        disk.inject(disk.points() + point, if half { DiskFault::Half } else { DiskFault::Error });
        let (mut synced, mut number) = (0, 0);
        let error = loop {
            let step = log.append(height_of(number), &record(number)).and_then(|()| log.sync());
            let step = step.and_then(|()| if number % 16 == 15 { log.forget(number / 8) } else { Ok(()) });
            match step {
                Ok(()) => (number, synced) = (number + 1, number + 1),
                Err(error) => break error,
            }
        };
        prop_assert!(matches!(error, StoreError::Io { .. }), "{}", error);
        prop_assert!(matches!(log.append(10_000, b"x"), Err(StoreError::Failed(_))));
        prop_assert!(matches!(log.sync(), Err(StoreError::Failed(_))));
        prop_assert!(matches!(log.forget(10_000), Err(StoreError::Failed(_))));
        drop(log);
        let said: Said = (0..=number).map(|number| (height_of(number), record(number))).collect();
        for way in [Surviving::Nothing, Surviving::Everything, Surviving::Some(point)] {
            let (_, votes) = open(disk.after_crash(way)).expect("opened");
            let found = (synced..=number + 1).find(|n| by_height(&said[..*n as usize], votes.floor) == votes.records);
            prop_assert!(found.is_some(), "{way:?}");
        }
    }
}
