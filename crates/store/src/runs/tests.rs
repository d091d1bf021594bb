use super::*;
use kernel::{DiskFault, FaultDisk, Surviving};
use proptest::prelude::*;

const TAG: [u8; 32] = [7; 32];

/// The rows of a height: of each of three prefixes one.
fn rows(height: u64) -> Vec<KeyedRow> {
    (0..3u8).map(|prefix| (key(prefix, height), vec![prefix; (height % 50) as usize])).collect()
}

fn key(prefix: u8, height: u64) -> Vec<u8> {
    [&[prefix][..], &height.to_be_bytes()].concat()
}

fn heights(runs: &Runs<FaultDisk>, prefix: u8, count: usize) -> Vec<u64> {
    let found = runs.last_rows(&key(prefix, 0), &key(prefix, u64::MAX), count).expect("readable");
    let height = |(key, value): KeyedRow| {
        let height = u64::from_be_bytes(key[1..].try_into().expect("a height"));
        assert_eq!(value, vec![prefix; (height % 50) as usize]);
        height
    };
    found.into_iter().map(height).collect()
}

fn filled(disk: FaultDisk, to: u64, each: u64) -> Runs<FaultDisk> {
    let runs = Runs::open(disk, TAG).expect("opens");
    for height in runs.span().1 + 1..=to {
        runs.add(height, rows(height)).expect("the next");
        if height % each == 0 {
            runs.flush().expect("written");
        }
    }
    runs
}

fn files(disk: &FaultDisk) -> Vec<String> {
    let mut names: Vec<String> = disk.list().expect("a directory").into_iter().map(|(name, _)| name).collect();
    names.retain(|name| name.starts_with("run-"));
    names.sort();
    names
}

#[test]
fn rows_are_found_newest_first_whatever_run_they_are_in() {
    let disk = FaultDisk::new(1);
    let runs = filled(disk.clone(), 1_000, 3);
    for count in [1, 7, 500, 5_000] {
        let expected: Vec<u64> = (1..=1_000).rev().take(count).collect();
        assert_eq!(heights(&runs, 1, count), expected);
    }
    let middle = runs.last_rows(&key(2, 10), &key(2, 20), 99).expect("readable");
    assert_eq!(middle.len(), 10);
    assert_eq!(middle[0].0, key(2, 19));
    assert!(files(&disk).len() < 3 * FANOUT, "runs are merged: {:?}", files(&disk));
}

#[test]
fn what_was_flushed_is_there_again_and_the_rest_is_to_be_added() {
    let disk = FaultDisk::new(2);
    drop(filled(disk.clone(), 100, 30));
    let runs = Runs::open(disk.after_crash(Surviving::Nothing), TAG).expect("opens");
    assert_eq!((runs.span(), runs.durable()), ((1, 90), 90));
    assert_eq!(heights(&runs, 0, 1_000), (1..=90).rev().collect::<Vec<_>>());
    assert!(matches!(runs.add(92, rows(92)), Err(StoreError::OutOfOrder { expected: 91, .. })));
}

#[test]
fn another_tag_begins_anew() {
    let disk = FaultDisk::new(3);
    drop(filled(disk.clone(), 10, 5));
    let runs = Runs::open(disk.clone(), [8; 32]).expect("opens");
    assert_eq!((runs.span(), files(&disk).len()), ((1, 0), 0));
    runs.begin_after(40).expect("empty");
    runs.add(41, rows(41)).expect("the next");
    assert_eq!((runs.span(), runs.durable()), ((41, 41), 40));
}

#[test]
fn heights_are_forgotten_below_and_cut_off_above_by_whole_runs() {
    let runs = filled(FaultDisk::new(4), 45, 10);
    runs.forget_below(25).expect("removed");
    assert_eq!((runs.span(), heights(&runs, 0, 1).len()), ((21, 45), 1));
    assert_eq!(heights(&runs, 0, 99).last(), Some(&21));
    runs.cut_above(45).expect("nothing");
    assert_eq!(runs.span(), (21, 45));
    runs.cut_above(37).expect("removed");
    assert_eq!((runs.span(), heights(&runs, 1, 99)), ((21, 30), (21..=30).rev().collect()));
    runs.begin_after(70).expect("removed");
    assert_eq!((runs.span(), heights(&runs, 1, 99)), ((71, 70), vec![]));
}

#[test]
fn what_is_below_a_gap_is_removed() {
    let disk = FaultDisk::new(5);
    drop(filled(disk.clone(), 40, 10));
    disk.remove(&files(&disk)[1]).expect("there");
    let runs = Runs::open(disk.clone(), TAG).expect("opens");
    assert_eq!((runs.span(), files(&disk).len()), ((21, 40), 2));
}

#[test]
fn every_flipped_bit_is_noticed() {
    let disk = FaultDisk::new(6);
    drop(filled(disk.clone(), 9, 9));
    let name = files(&disk)[0].clone();
    let sound = heights(&Runs::open(disk.clone(), TAG).expect("opens"), 1, 99);
    for offset in 0..disk.content(&name).len() as u64 {
        disk.flip(&name, offset, 0x10);
        let looked = Runs::open(disk.clone(), TAG).and_then(|runs| {
            let all = runs.last_rows(&key(0, 0), &key(9, 0), 99)?;
            Ok((runs.span(), all.len()))
        });
        match looked {
            Err(StoreError::Damaged { remedy, .. }) => assert!(remedy.to_string().contains("made from the blocks")),
            other => panic!("byte {offset}: {other:?}"),
        }
        disk.flip(&name, offset, 0x10);
    }
    assert_eq!(heights(&Runs::open(disk, TAG).expect("opens"), 1, 99), sound);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A crash or an error at any point of writing, merging and removing leaves the rows of a beginning of the heights.
    #[test]
    fn a_crash_at_any_point_leaves_no_gap(seed in any::<u64>(), point in 0u64..400, is_half in any::<bool>()) {
        let disk = FaultDisk::new(seed);
        disk.inject(point, if is_half { DiskFault::Half } else { DiskFault::Error });
        let crashes: Arc<std::sync::Mutex<Vec<(u64, FaultDisk)>>> = Arc::default();
        let flushed = Arc::new(std::sync::atomic::AtomicU64::new(0));
        let (kept, known) = (crashes.clone(), flushed.clone());
        disk.watch(move |disk| {
            if disk.points() % 13 == point % 13 {
                let crashed = disk.after_crash(Surviving::Some(point));
                kept.lock().expect("no panic").push((known.load(std::sync::atomic::Ordering::Relaxed), crashed));
            }
        });
        let runs = Runs::open(disk.clone(), TAG).expect("an empty directory");
        for height in 1..=80 {
            runs.add(height, rows(height)).expect("the next");
            if height % 4 == 0 && runs.flush().is_ok() {
                flushed.store(height, std::sync::atomic::Ordering::Relaxed);
            }
        }
        prop_assert_eq!(heights(&runs, 0, 999).len(), 80, "what was known is known");
        for (flushed, disk) in crashes.lock().expect("no panic").drain(..) {
            let runs = Runs::open(disk, TAG).expect("opens after a crash");
            let (first, last) = runs.span();
            prop_assert!(first == 1 && last >= flushed, "{first} {last} {flushed}");
            prop_assert_eq!(heights(&runs, 2, 999), (1..=last).rev().collect::<Vec<_>>());
        }
    }
}
