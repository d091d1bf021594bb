//! A scripted run, crashed at every write point in every way: the recovered blocks are a prefix that includes
//! everything acknowledged.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use kernel::{FaultDisk, Surviving};
use store::{Options, Store};

const HEIGHTS: u64 = 320;
const OPTIONS: Options = Options { segment_bytes: 24_000 };

fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 31).wrapping_mul(0x7fb5_d329_728e_a185);
    (x ^ x >> 27).wrapping_mul(0x81da_def4_bc2d_d44d)
}

fn bytes(kind: u64, height: u64, length: u64) -> Vec<u8> {
    (0..length).map(|i| mix(kind << 60 ^ height << 32 ^ i) as u8).collect()
}

/// Mostly small, some of several sectors, a few empty.
fn block(height: u64) -> Vec<u8> {
    bytes(1, height, mix(height) % if height.is_multiple_of(7) { 3000 } else { 300 })
}

fn receipts(height: u64) -> Vec<u8> {
    bytes(2, height, mix(height + 1000) % 500)
}

fn state(height: u64) -> Vec<u8> {
    bytes(3, height, 2000 + height * 8)
}

/// Height up to which blocks, and height at which a checkpoint, have been acknowledged.
#[derive(Clone, Default)]
struct Acknowledged {
    blocks: Arc<AtomicU64>,
    checkpoint: Arc<AtomicU64>,
}

/// The run: groups of one to four blocks per sync; receipts up to seven blocks late; a checkpoint every 13 heights,
/// whose writing is spread over the next ones.
fn run(disk: FaultDisk, acknowledged: &Acknowledged) {
    let (mut store, _) = Store::open(disk, OPTIONS).expect("a new store opens");
    let (mut checkpoint, mut finished) = (None, 0);
    for height in 1..=HEIGHTS {
        store.append(height, &block(height)).expect("appended");
        if mix(height).is_multiple_of(4) {
            acknowledged.blocks.store(store.sync().expect("synced"), Ordering::SeqCst);
        }
        let late = if mix(height / 16).is_multiple_of(3) { 7 } else { 0 };
        for due in store.receipts_height() + 1..=height.saturating_sub(late) {
            store.append_receipts(due, &receipts(due)).expect("receipts put");
        }
        if let Some((at, writer)) = checkpoint.take_if(|(at, _)| height == *at + 5) {
            let writer: store::CheckpointWriter<FaultDisk> = writer;
            writer.finish().expect("finished");
            finished = at;
        }
        if store.receipts_height() >= finished {
            acknowledged.checkpoint.store(finished, Ordering::SeqCst);
        }
        if height.is_multiple_of(13) {
            store.sync().expect("synced");
            let mut writer = store.begin_checkpoint(height).expect("begun");
            writer.write_all(&state(height)).expect("written");
            checkpoint = Some((height, writer));
        }
    }
    acknowledged.blocks.store(store.sync().expect("synced"), Ordering::SeqCst);
}

/// Recovers and checks all guarantees, then continues. Returns the last recovered height.
fn recover(disk: FaultDisk, acknowledged: (u64, u64), context: &str) -> u64 {
    let (mut store, mut recovery) =
        Store::open(disk.clone(), OPTIONS).unwrap_or_else(|error| panic!("{context}: {error}"));
    let left_over = disk.list().expect("listed").into_iter().find(|(name, _)| name.ends_with(".tmp"));
    assert_eq!(left_over, None, "{context}");
    let mut at = 0;
    if let Some(checkpoint) = &mut recovery.checkpoint {
        at = checkpoint.height();
        let mut payload = Vec::new();
        checkpoint.read_to_end(&mut payload).unwrap_or_else(|error| panic!("{context}: {error}"));
        assert_eq!(payload, state(at), "{context}");
    }
    assert!(at >= acknowledged.1, "{context}: checkpoint {at} of {acknowledged:?}");
    for replayed in recovery.blocks {
        let (height, payload) = replayed.unwrap_or_else(|error| panic!("{context}: {error}"));
        at += 1;
        assert_eq!((height, payload), (at, block(at)), "{context}");
        store.append_receipts(height, &receipts(height)).unwrap_or_else(|error| panic!("{context}: {error}"));
    }
    assert!(at >= acknowledged.0, "{context}: recovered {at} of {acknowledged:?}");
    assert_eq!((store.last_height(), store.durable_height(), store.receipts_height()), (at, at, at), "{context}");
    for height in [1, at / 2, at].into_iter().filter(|height| (1..=at).contains(height)) {
        assert_eq!(store.block(height).expect("archived"), Some(block(height)), "{context}");
        assert_eq!(store.receipts(height).expect("archived"), Some(receipts(height)), "{context}");
    }
    for height in at + 1..=at + 3 {
        store.append(height, &block(height)).unwrap_or_else(|error| panic!("{context}: {error}"));
        store.append_receipts(height, &receipts(height)).unwrap_or_else(|error| panic!("{context}: {error}"));
    }
    assert_eq!(store.sync().expect("synced"), at + 3, "{context}");
    let mut writer = store.begin_checkpoint(at + 3).unwrap_or_else(|error| panic!("{context}: {error}"));
    writer.write_all(&state(at + 3)).expect("written");
    writer.finish().unwrap_or_else(|error| panic!("{context}: {error}"));
    drop(store);
    let (store, recovery) = Store::open(disk, OPTIONS).unwrap_or_else(|error| panic!("{context}: {error}"));
    assert_eq!((recovery.repairs, store.last_height()), (Vec::new(), at + 3), "{context}");
    assert_eq!(recovery.checkpoint.map(|checkpoint| checkpoint.height()), Some(at + 3), "{context}");
    at
}

#[test]
fn recovers_from_a_crash_at_every_point() {
    let acknowledged = Acknowledged::default();
    let disk = FaultDisk::new(7);
    let crashes = Arc::new(AtomicUsize::new(0));
    disk.watch({
        let (acknowledged, crashes) = (acknowledged.clone(), crashes.clone());
        move |disk| {
            let point = disk.points();
            let so_far = (acknowledged.blocks.load(Ordering::SeqCst), acknowledged.checkpoint.load(Ordering::SeqCst));
            let ways = [Surviving::Nothing, Surviving::Everything].into_iter();
            let torn = (0..5).map(Surviving::Torn);
            let some = (0..3).map(|way| Surviving::Some(point * 16 + way));
            for way in ways.chain(torn).chain(some) {
                recover(disk.after_crash(way), so_far, &format!("point {point}, {way:?}"));
                crashes.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    run(disk.clone(), &acknowledged);
    assert_eq!(acknowledged.blocks.load(Ordering::SeqCst), HEIGHTS);
    assert!(disk.points() > 1000, "only {} points", disk.points());
    println!("{} crashes at {} points", crashes.load(Ordering::Relaxed), disk.points());
}

/// A crash during recovery from a crash loses no more than the first.
#[test]
fn recovers_from_a_crash_during_recovery() {
    let acknowledged = Acknowledged::default();
    let disk = FaultDisk::new(8);
    disk.watch({
        let acknowledged = acknowledged.clone();
        move |disk| {
            let point = disk.points();
            if !point.is_multiple_of(37) {
                return;
            }
            let so_far = (acknowledged.blocks.load(Ordering::SeqCst), acknowledged.checkpoint.load(Ordering::SeqCst));
            let crashed = disk.after_crash(Surviving::Some(point));
            let left = Arc::new(Mutex::new(Vec::new()));
            crashed.watch({
                let left = left.clone();
                move |disk| {
                    let ways = [Surviving::Nothing, Surviving::Everything, Surviving::Some(disk.points() ^ point)];
                    left.lock().expect("no panic").extend(ways.map(|way| disk.after_crash(way)));
                }
            });
            drop(Store::open(crashed, OPTIONS).expect("recovered"));
            for (i, disk) in left.lock().expect("no panic").drain(..).enumerate() {
                recover(disk, so_far, &format!("point {point}, crash {i} in recovery"));
            }
        }
    });
    run(disk, &acknowledged);
}

/// After a mere kill the operating system still holds the written data. What recovery then calls durable must be
/// durable: the machine may crash next.
#[test]
fn what_survived_a_kill_survives_a_crash_after_it() {
    let disk = FaultDisk::new(9);
    let (mut store, _) = Store::open(disk.clone(), OPTIONS).expect("a new store opens");
    for height in 1..=3 {
        store.append(height, &block(height)).expect("appended");
    }
    drop(store);
    let (store, _) = Store::open(disk.clone(), OPTIONS).expect("opens again");
    assert_eq!(store.durable_height(), 3);
    assert_eq!(recover(disk.after_crash(Surviving::Nothing), (3, 0), "kill, recovery, crash"), 3);
}

/// A block of another history after a cut.
fn other_block(height: u64) -> Vec<u8> {
    bytes(4, height, 200)
}

/// A cut that a crash interrupts is made as a whole or not at all, over several files, in place and when reopened;
/// another history continues from there.
#[test]
fn a_cut_is_made_whole_or_not_at_all() {
    const BLOCKS: u64 = 90;
    let options = Options { segment_bytes: 4_000 };
    for to in [0, 1, 7, 40, 41, 89, 90] {
        let disk = FaultDisk::new(10 + to);
        let (mut store, _) = Store::open(disk.clone(), options).expect("a new store opens");
        for height in 1..=BLOCKS {
            store.append(height, &block(height)).expect("appended");
            store.sync().expect("synced");
            store.append_receipts(height, &receipts(height)).expect("put");
        }
        let archive = store.archive();
        let crashes = Arc::new(AtomicUsize::new(0));
        disk.watch({
            let crashes = crashes.clone();
            move |disk| {
                let torn = [Surviving::Torn(1), Surviving::Some(disk.points())];
                for way in [Surviving::Nothing, Surviving::Everything].into_iter().chain(torn) {
                    let (store, recovery) = Store::open(disk.after_crash(way), options).expect("opens");
                    let last = store.last_height();
                    assert!(last == to || last == BLOCKS, "{last} blocks, cut above {to} or not");
                    assert_eq!(recovery.blocks.map(|one| one.expect("sound").0).last().unwrap_or(0), last);
                    assert!(store.receipts_height() <= last);
                    crashes.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        store.cut_above(to).expect("cut");
        disk.watch(|_| {});
        assert!(crashes.load(Ordering::Relaxed) > 8);
        assert_eq!((store.last_height(), store.durable_height(), store.receipts_height()), (to, to, to));
        // Concurrent readers find what is left, and nothing that was cut.
        for height in 1..=BLOCKS {
            let kept = (height <= to).then(|| block(height));
            assert_eq!(archive.block(height).expect("sound"), kept);
            assert_eq!(archive.receipts(height).expect("sound").is_some(), height <= to);
        }
        for height in to + 1..=to + 30 {
            store.append(height, &other_block(height)).expect("appended");
            store.sync().expect("synced");
            store.append_receipts(height, &other_block(height)).expect("put");
        }
        drop(store);
        let (store, recovery) = Store::open(disk.after_crash(Surviving::Nothing), options).expect("opens");
        assert_eq!((recovery.repairs, store.last_height()), (Vec::new(), to + 30));
        for height in 1..=to + 30 {
            let held = if height <= to { block(height) } else { other_block(height) };
            assert_eq!(store.block(height).expect("sound"), Some(held), "{height} of {to}");
        }
    }
}

#[test]
fn a_cut_below_a_checkpoint_is_refused() {
    let (mut store, _) = Store::open(FaultDisk::new(11), OPTIONS).expect("a new store opens");
    for height in 1..=9 {
        store.append(height, &block(height)).expect("appended");
        store.append_receipts(height, &receipts(height)).expect("put");
    }
    store.sync().expect("synced");
    store.begin_checkpoint(5).expect("begun").finish().expect("finished");
    assert!(store.cut_above(10).is_err() && store.cut_above(4).is_err());
    assert_eq!(store.last_height(), 9);
    store.cut_above(5).expect("cut");
    assert_eq!(store.last_height(), 5);
}
