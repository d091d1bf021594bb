//! Records in several parts: read back whole, or not at all after a crash.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use kernel::{FaultDisk, Surviving};
use proptest::prelude::*;
use store::{Options, Store, inspect};

/// Parts of 1,024 bytes, as in every store of small files.
const OPTIONS: Options = Options { segment_bytes: 9_000 };
const PART: usize = 1_024;

fn payload(height: u64, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at as u64 * 31 + height * 7 + (at as u64 >> 8)) as u8).collect()
}

/// Lengths around whole numbers of parts, from none to many.
fn lengths() -> impl Strategy<Value = Vec<(usize, bool)>> {
    let length = (0usize..14, 0usize..5).prop_map(|(parts, more)| (parts * PART + more).saturating_sub(2));
    prop::collection::vec((length, any::<bool>()), 1..14)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn what_is_durable_is_there_and_the_rest_is_whole(records in lengths(), seed in any::<u64>(), crash in 0u64..600) {
        let disk = FaultDisk::new(seed);
        let crashes: Arc<Mutex<Option<FaultDisk>>> = Default::default();
        let durable = Arc::new(AtomicU64::new(0));
        let (keep, acknowledged) = (crashes.clone(), durable.clone());
        let at_crash = Arc::new(AtomicU64::new(0));
        let told = at_crash.clone();
        let calls = AtomicU64::new(0);
        disk.watch(move |disk| {
            if calls.fetch_add(1, SeqCst) == crash {
                *keep.lock().expect("one thread") = Some(disk.after_crash(Surviving::Some(seed)));
                told.store(acknowledged.load(SeqCst), SeqCst);
            }
        });
        let (mut store, _) = Store::open(disk.clone(), OPTIONS).expect("a new store opens");
        for (height, (length, sync)) in (1..).zip(&records) {
            store.append(height, &payload(height, *length)).expect("appended");
            store.append_receipts(height, &payload(height + 100, length / 2)).expect("put");
            if *sync {
                durable.store(store.sync().expect("synced"), SeqCst);
            }
        }
        let check = |disk: FaultDisk, least: u64| {
            let (store, recovery) = Store::open(disk.clone(), OPTIONS).expect("opens after a crash");
            let mut last = 0;
            for block in recovery.blocks {
                let (height, block) = block.expect("sound");
                assert_eq!(block, payload(height, records[height as usize - 1].0));
                last = height;
            }
            assert!(last >= least, "{last} of {least} durable");
            for height in 1..=store.receipts_height() {
                let expected = payload(height + 100, records[height as usize - 1].0 / 2);
                assert_eq!(store.receipts(height).expect("sound"), Some(expected));
            }
            drop(store);
            assert_eq!(inspect(disk).expect("readable").damage().count(), 0);
        };
        drop(store);
        check(disk.after_crash(Surviving::Nothing), durable.load(SeqCst));
        let crashed = crashes.lock().expect("one thread").take();
        if let Some(crashed) = crashed {
            check(crashed, at_crash.load(SeqCst));
        }
    }
}

/// A batch of 3.9 million fills, too long for a record of one part, in a store with ordinary files.
#[test]
fn the_receipts_of_a_whole_book_are_stored() {
    const FILL_BYTES: usize = 2 * 4 + 8 + 20 + 8 + 4 * 8;
    const FILLS: usize = 3_900_000;
    const { assert!(FILLS * FILL_BYTES > 1 << 28, "more than one part may hold") };
    let folder = tempfile::tempdir().expect("a folder");
    let disk = || store::RealDisk::new(folder.path().join("data")).expect("a directory");
    let receipts = vec![7; FILLS * FILL_BYTES];
    let (mut store, _) = Store::open(disk(), Options::default()).expect("opens");
    store.append(1, b"block").expect("appended");
    store.sync().expect("synced");
    store.append_receipts(1, &receipts).expect("put");
    drop(store);
    let (store, _) = Store::open(disk(), Options::default()).expect("opens again");
    assert!(store.receipts(1).expect("sound").is_some_and(|stored| stored == receipts));
}
