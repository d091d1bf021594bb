//! Files written by an earlier version: a small log with its receipts and a checkpoint, and a snapshot.
//!
//! These files are kept. If you change a format, give it a new version, keep the code that reads these files or
//! rejects them by name, and add new ones: `cargo test -p node --test formats -- --ignored` writes them.

use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use founding::genesis_file;
use ledger::contracts::{EthereumKey, EthereumRequest, contract_address, recover_senders};
use ledger::{BlockReceipts, Genesis, Ledger, Limits, Listing, RULES_FLOOR, RULES_NEWEST, Roots, Signatures, Snapshot};
use primitives::{Address, AssetId, Body, Digest, Fraction, Operation, Price, SecretKey, SubBlock, Superblock};
use store::{CheckpointReader, Options, RealDisk, SnapshotWriter, Store};

const HEIGHTS: u64 = 6;
const CHECKPOINT: u64 = 3;

fn fixtures(format: u8) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/formats-{format}"))
}

/// The current format.
const FORMAT: u8 = 4;

fn key(person: u8) -> SecretKey {
    SecretKey::from_seed([person + 1; 32])
}

fn genesis() -> Genesis {
    let account = |person: u8| key(person).public().address();
    Genesis {
        // Whatever rules later programs know, they open these files.
        rules: 11,
        chain: 7,
        fee: 100,
        epsilon: Fraction::power_of_two(15),
        mu: Fraction::power_of_two(10),
        assets: ["USD", "EUR"].map(|symbol| Listing::new(symbol, 6, Address([9; 20]))).to_vec(),
        balances: (0..4)
            .flat_map(|one| (0..2).map(move |asset| (account(one), AssetId(asset), 1_000_000_000)))
            .chain([(EthereumKey::from_seed([77; 32]).expect("a key").address(), AssetId(0), 1_000_000)])
            .collect(),
        limits: Limits { block_gas: 1 << 25, sub_block_gas: 1 << 24, least_base_fee: 1_000, ..Limits::default() },
        ..Genesis::default()
    }
}

/// Creates a contract that stores its creation's NUMBER in slot 0 and logs nothing, then sends it value.
fn ethereum(height: u64) -> Vec<u8> {
    let key = EthereumKey::from_seed([77; 32]).expect("a key");
    let (to, data, value) = match height % 2 {
        1 => (None, vec![0x43, 0x5f, 0x55], 0),
        _ => (Some(contract_address(&key.address(), height - 2)), Vec::new(), 5),
    };
    let (gas_limit, max_fee) = (100_000, 100_000);
    key.sign(&EthereumRequest {
        chain: 7,
        nonce: height - 1,
        to,
        value,
        gas_limit,
        max_fee,
        max_tip: 1,
        data,
        ..Default::default()
    })
}

/// Offers that trade and rest, a payment, a cancellation, and a rejected transaction.
fn block(ledger: &Ledger, parent_root: Digest) -> Superblock {
    let height = ledger.height() + 1;
    let sign = |person: u8, sequence: u64, operation: Operation| {
        let account = key(person).public().address();
        Body { chain: 7, account, sequence, until: 50_000, operation }.sign(&ledger.network(), &key(person))
    };
    let offer = |sell: u32, limit: &str| {
        Operation::offer(AssetId(sell), AssetId(1 - sell), 1_000_000 + height, limit.parse().expect("a price"))
    };
    let (first, asset) = (2 * height, AssetId(1));
    let cancel = Operation::cancel(AssetId(0), asset, Price::ONE, first - 1);
    let first_part = vec![sign(0, first, offer(0, "0.9")), sign(1, first, offer(1, "0.9"))];
    let second_part = vec![
        sign(0, first + 1, offer(0, "1.5")),
        sign(2, first, Operation::Pay { to: Address([8; 20]), asset, amount: height }),
        sign(3, first, cancel),
    ];
    let time_ms = 1_800_000_000_000 + height;
    let sub_blocks = [first_part, second_part];
    let sub = |(proposer, native)| SubBlock { proposer, time_ms, native, ..SubBlock::default() };
    let mut sub_blocks: Vec<SubBlock> = (0..).zip(sub_blocks).map(sub).collect();
    sub_blocks[1].ethereum = vec![ethereum(height)];
    sub_blocks[1].senders = recover_senders(&sub_blocks[1].ethereum);
    Superblock { height, parent: ledger.last_block(), time_ms, parent_root, sub_blocks, ..Superblock::default() }
}

fn make(path: &Path) {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).expect("made");
}

#[test]
#[ignore = "writes the files that the other test reads"]
fn write_fixtures() {
    let (folder, data) = (fixtures(FORMAT), tempfile::tempdir().expect("a folder"));
    std::fs::create_dir_all(&folder).expect("made");
    let genesis = genesis();
    genesis_file::write(&folder.join("genesis.json"), &genesis).expect("written");
    let mut ledger = Ledger::new(&genesis).expect("sound");
    let mut roots = Roots::of(&ledger);
    let data = data.path().join("data");
    let (mut store, _) = Store::open(RealDisk::new(&data).expect("a directory"), Options::default()).expect("opens");
    for height in 1..=HEIGHTS {
        let block = block(&ledger, roots.parts().root());
        let applied = ledger.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies");
        roots.apply(&applied.changes);
        store.append(height, &block.to_bytes()).expect("appended");
        store.sync().expect("synced");
        let receipts = node::receipts(&block, &applied);
        store.append_receipts(height, &borsh::to_vec(&receipts).expect("encodes")).expect("put");
        if height == CHECKPOINT {
            node::write_checkpoint(&ledger, store.begin_checkpoint(height).expect("begun")).expect("written");
        }
    }
    drop(store);
    for entry in std::fs::read_dir(&data).expect("there").flatten().filter(|entry| entry.file_name() != "lock") {
        std::fs::copy(entry.path(), folder.join(entry.file_name())).expect("copied");
    }
    let snapshot = folder.join("state.snapshot");
    let _ = std::fs::remove_file(&snapshot);
    let mut writer = SnapshotWriter::create(&snapshot, HEIGHTS).expect("begun");
    for chunk in Snapshot::of(&ledger) {
        writer.write_all(&(chunk.len() as u32).to_le_bytes()).expect("written");
        writer.write_all(&chunk).expect("written");
    }
    writer.finish().expect("finished");
    std::fs::write(folder.join("root.txt"), roots.parts().root().to_string()).expect("written");
}

/// What the files of an earlier format are refused with: by the genesis, the snapshot, a block and its receipts.
fn refused(format: u8) -> [String; 4] {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    make(&data);
    for entry in std::fs::read_dir(fixtures(format)).expect("the fixtures").flatten() {
        std::fs::copy(entry.path(), data.join(entry.file_name())).expect("copied");
    }
    let genesis = genesis_file::read(&data.join("genesis.json")).expect_err("other rules").to_string();
    let snapshot = CheckpointReader::of_snapshot(&data.join("state.snapshot")).expect("a snapshot");
    let state = node::restore(snapshot).err().map(|error| with_causes(&error)).unwrap_or_default();
    let (store, _) = Store::open(RealDisk::existing(&data).expect("a directory"), Options::default()).expect("opens");
    let block = borsh::from_slice::<Superblock>(&store.block(1).expect("sound").expect("there"));
    let receipts = borsh::from_slice::<BlockReceipts>(&store.receipts(1).expect("sound").expect("there"));
    let receipts = receipts.err().map(|error| error.to_string()).unwrap_or_default();
    [genesis, state, block.err().map(|error| error.to_string()).unwrap_or_default(), receipts]
}

#[test]
fn files_of_earlier_formats_are_refused_by_version() {
    let own = format!("this program rules {RULES_FLOOR} to {RULES_NEWEST}");
    let [genesis, state, block, receipts] = refused(1);
    assert!(genesis.contains(&format!("the chain follows rules 2, and {own}")), "{genesis}");
    assert!(state.contains("the snapshot is of format 1, and this program reads 4"), "{state}");
    assert!(block.contains("a block of format 1, and this program reads 5"), "{block}");
    assert!(receipts.contains("receipts of format 1, and this program reads 10"), "{receipts}");
    let [genesis, state, block, receipts] = refused(2);
    assert!(genesis.contains(&format!("the chain follows rules 4, and {own}")), "{genesis}");
    assert!(state.contains("the snapshot is of format 2, and this program reads 4"), "{state}");
    assert!(block.contains("a block of format 4, and this program reads 5"), "{block}");
    assert!(receipts.contains("receipts of format") && receipts.contains("this program reads 10"), "{receipts}");
    let [genesis, state, ..] = refused(3);
    assert!(genesis.contains(&format!("the chain follows rules 10, and {own}")), "{genesis}");
    assert!(state.contains("the snapshot is of format 3, and this program reads 4"), "{state}");
}

/// An error with its causes, on one line.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}

#[test]
fn files_of_the_present_format_open() {
    let (from, folder) = (fixtures(FORMAT), tempfile::tempdir().expect("a folder"));
    let data = folder.path().join("data");
    make(&data);
    for entry in std::fs::read_dir(&from).expect("the fixtures").flatten() {
        std::fs::copy(entry.path(), data.join(entry.file_name())).expect("copied");
    }
    let genesis = genesis_file::read(&from.join("genesis.json")).expect("a genesis");
    let root: Digest = std::fs::read_to_string(from.join("root.txt")).expect("there").parse().expect("a digest");
    // The log continues from the checkpoint, and each block names the root below it.
    let disk = RealDisk::existing(&data).expect("a directory");
    let restored = node::recover_state(disk, Options::default(), &genesis).expect("recovers");
    assert_eq!(restored.ledger.height(), HEIGHTS);
    assert_eq!(Roots::of(&restored.ledger).parts().root(), root);
    drop(restored);
    let (store, recovery) =
        Store::open(RealDisk::existing(&data).expect("a directory"), Options::default()).expect("opens");
    assert_eq!(recovery.checkpoint.expect("one").height(), CHECKPOINT);
    for height in 1..=HEIGHTS {
        let block: Superblock =
            borsh::from_slice(&store.block(height).expect("sound").expect("there")).expect("a block");
        let receipts = store.receipts(height).expect("sound").expect("there");
        let receipts: BlockReceipts = borsh::from_slice(&receipts).expect("receipts");
        assert_eq!((block.height, receipts.height, receipts.outcomes.len()), (height, height, 5));
        assert!(!receipts.batch.fills.is_empty() && receipts.contracts.receipts.len() == 1);
    }
    // A snapshot is the whole state.
    let snapshot = CheckpointReader::of_snapshot(&data.join("state.snapshot")).expect("a snapshot");
    let ledger = node::restore(snapshot).expect("a state");
    assert_eq!(Roots::of(&ledger).parts().root(), root);
    assert!(ledger.contracts().slots() == 3 && ledger.contracts().head().is_some());
}
