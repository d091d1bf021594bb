//! What a start finds on its disks: each kind of damage is named with the remedy, and nothing is started from it.

use crate::chain::{block, genesis, pay};
use consensus::{Benches, Certificate, Chain, Committee, Finality, Frame, Statement};
use kernel::FaultDisk;
use ledger::{Genesis, Ledger, ReceiptsTrie, Schedule};
use primitives::{Digest, Height};
use replica::{
    Home, Lineage, Past, Replay, ReplicaError, begin_again, encode, log, receipts, recover_state, restore,
    write_checkpoint, write_state,
};
use store::{CheckpointReader, Options, Store, StoreError};

const OPTIONS: Options = Options { segment_bytes: 1 << 20 };

/// Blocks of one payment each on a disk, with their receipts; a checkpoint after the height given, if any.
struct Lived {
    disk: FaultDisk,
    roots: Vec<Digest>,
    receipts: Vec<Digest>,
}

impl Lived {
    fn through(blocks: Height, checkpoint: Option<Height>) -> Lived {
        let disk = FaultDisk::new(1);
        let mut store = Store::open(disk.clone(), OPTIONS).expect("empty").0;
        let mut replay = Replay::new(Ledger::new(&genesis()).expect("sound"));
        let (mut roots, mut receipt_roots) = (vec![replay.root], vec![Digest::default()]);
        for height in 1..=blocks {
            let next = block(&replay, vec![pay(&replay.ledger, height, 50)]);
            log(&mut store, &next).expect("logged");
            let (next, applied) = replay.step(height, &next.to_bytes(), None).expect("applies");
            let archived = receipts(&next, &applied);
            store.append_receipts(height, &encode(&archived)).expect("archived");
            roots.push(replay.root);
            receipt_roots.push(ReceiptsTrie::new(&archived).root());
            if checkpoint == Some(height) {
                write_checkpoint(&replay.ledger, store.begin_checkpoint(height).expect("begun")).expect("written");
            }
        }
        Lived { disk, roots, receipts: receipt_roots }
    }

    fn recover(&self, genesis: &Genesis) -> Result<replica::Restored<FaultDisk>, ReplicaError> {
        recover_state(self.disk.clone(), OPTIONS, genesis)
    }

    fn past(&self) -> Past<FaultDisk> {
        let blocks = Store::open(self.disk.clone(), OPTIONS).expect("opens").0.archive();
        let certificates = Store::open(FaultDisk::new(2), OPTIONS).expect("opens").0.archive();
        Past { blocks, certificates, begins: 0 }
    }
}

#[test]
fn a_start_replays_what_follows_the_newest_checkpoint() {
    for (checkpoint, from) in [(None, 0), (Some(1), 1), (Some(3), 3), (Some(5), 5)] {
        let lived = Lived::through(5, checkpoint);
        let restored = lived.recover(&genesis()).expect("recovers");
        assert_eq!((restored.from, restored.ledger.height()), (from, 5));
        assert_eq!(restored.root, lived.roots[5], "from the checkpoint {checkpoint:?}");
        assert_eq!(restored.store.receipts_height(), 5);
        assert!(restored.repairs.is_empty());
    }
}

#[test]
fn a_home_of_another_chain_is_named_and_left_alone() {
    let other = Genesis { chain: 8, ..genesis() };
    let with_state = Lived::through(3, Some(2));
    let points = with_state.disk.points();
    let error = with_state.recover(&other).err().expect("another chain");
    assert!(matches!(error, ReplicaError::OtherChain { stored: 7, genesis: 8 }), "{error}");
    assert!(error.to_string().contains("give the right home"), "{error}");
    assert_eq!(with_state.recover(&genesis()).expect("recovers").root, with_state.roots[3]);
    assert!(with_state.disk.points() >= points);
    // Without a checkpoint the first block shows it: the genesis has another root.
    let error = Lived::through(3, None).recover(&other).err().expect("another chain");
    assert!(matches!(error, ReplicaError::Diverged { height: 0, .. }), "{error}");
}

#[test]
fn a_block_that_builds_on_another_state_is_named_with_both_roots() {
    let disk = FaultDisk::new(1);
    let mut store = Store::open(disk.clone(), OPTIONS).expect("empty").0;
    let mut replay = Replay::new(Ledger::new(&genesis()).expect("sound"));
    let first = block(&replay, vec![pay(&replay.ledger, 1, 50)]);
    log(&mut store, &first).expect("logged");
    replay.step(1, &first.to_bytes(), None).expect("applies");
    let mut second = block(&replay, Vec::new());
    second.parent_root = Digest([5; 32]);
    log(&mut store, &second).expect("logged");
    drop(store);
    let ours = replay.root;
    match recover_state(disk, OPTIONS, &genesis()) {
        Err(ReplicaError::Diverged { height: 1, ours: found, logged }) => {
            assert_eq!((found, logged), (ours, Digest([5; 32])));
        }
        other => panic!("it is named: {:?}", other.map(|restored| restored.root)),
    }
}

#[test]
fn bytes_in_the_log_that_are_no_block_are_named_by_height() {
    let disk = FaultDisk::new(1);
    let mut store = Store::open(disk.clone(), OPTIONS).expect("empty").0;
    store.append(1, b"no block").expect("the store does not look inside");
    store.sync().expect("durable");
    drop(store);
    let error = recover_state(disk, OPTIONS, &genesis()).err().expect("no block");
    assert!(matches!(error, ReplicaError::Undecodable(1, _)), "{error}");
}

/// A checkpoint under a wrong height would let a node sign for a state that it does not have.
#[test]
fn a_checkpoint_under_another_height_is_refused() {
    let state = Lived::through(2, None).recover(&genesis()).expect("recovers").ledger;
    let (directory, labelled) = (tempfile::tempdir().expect("a directory"), 9);
    let path = directory.path().join("snapshot");
    let mut writer = store::SnapshotWriter::create(&path, labelled).expect("created");
    write_state(&state, &mut writer).expect("written");
    writer.finish().expect("whole");
    let reader = CheckpointReader::<store::RealDisk>::of_snapshot(&path).expect("a snapshot");
    let error = restore(reader).err().expect("another height");
    assert!(matches!(error, ReplicaError::OtherHeight(9, 2)), "{error}");
    assert!(error.to_string().contains("take another copy"), "{error}");
}

/// Chunks that a writer cut in the wrong places, or that are no chunks.
#[test]
fn a_checkpoint_of_other_bytes_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let payloads: [&[u8]; 4] = [&[9], &u32::MAX.to_le_bytes(), &[4, 0, 0, 0, 1, 2], &[2, 0, 0, 0, 0xff, 0xff]];
    for (number, payload) in payloads.into_iter().enumerate() {
        let path = directory.path().join(number.to_string());
        let mut writer = store::SnapshotWriter::create(&path, 1).expect("created");
        std::io::Write::write_all(&mut writer, payload).expect("written");
        writer.finish().expect("whole");
        let reader = CheckpointReader::<store::RealDisk>::of_snapshot(&path).expect("a snapshot");
        let error = restore(reader).err().expect("no state");
        assert!(matches!(error, ReplicaError::Unreadable(1, _) | ReplicaError::Checkpoint(1, _)), "{error}");
    }
}

#[test]
fn outcomes_of_the_past_are_those_of_the_first_run() {
    let lived = Lived::through(5, None);
    let past = lived.past();
    let newest = (5, lived.roots[5]);
    for height in 0..=5 {
        let at = height as usize;
        let outcome = past.outcome(height, newest).expect("readable");
        assert_eq!(outcome, Some((lived.roots[at], lived.receipts[at])), "height {height}");
    }
    assert_eq!(past.outcome(6, newest).expect("readable"), None);
    assert_eq!(past.outcome(Height::MAX, newest).expect("readable"), None);
    assert!(past.block(6).expect("readable").is_none() && past.receipts(6).expect("readable").is_none());
}

/// A validator that lags gets heights in order, as many as fit but at least one, and none beyond a gap.
#[test]
fn an_answer_to_one_that_lags_ends_at_its_bytes_and_at_the_first_gap() {
    let lived = Lived::through(5, None);
    let mut certificates = Store::open(FaultDisk::new(2), OPTIONS).expect("opens").0;
    for height in 1..=4 {
        let statement = Statement { height, superblock: Digest([1; 32]), root: Digest([2; 32]) };
        let certificate = Certificate { epoch: 0, statement, signatures: Vec::new() };
        let (parent, benches) = (Digest([3; 32]), Benches::new(&Committee::new(4), 2, 1));
        let finality = Finality { certificate, parent, benches };
        certificates.append(height, &encode(&finality)).expect("kept");
    }
    certificates.sync().expect("durable");
    let past = Past { certificates: certificates.archive(), ..lived.past() };
    let answered = |from, to, bytes| match past.answer(from, to, bytes).expect("readable") {
        Frame::Sync(heights) => heights.iter().map(|one| one.certificate.statement.height).collect::<Vec<_>>(),
        other => panic!("heights: {other:?}"),
    };
    let one: usize = match past.answer(2, 2, 0).expect("readable") {
        Frame::Sync(heights) => heights[0].sub_blocks.iter().map(|(_, payload)| payload.len()).sum(),
        other => panic!("a height: {other:?}"),
    };
    assert_eq!(answered(1, 9, usize::MAX), [1, 2, 3, 4], "there is no certificate of height 5");
    assert_eq!(answered(2, 3, usize::MAX), [2, 3]);
    assert_eq!(answered(2, 9, 0), [2], "at least one");
    assert_eq!(answered(2, 9, 2 * one), [2, 3]);
    assert_eq!(answered(2, 9, 3 * one - 1), [2, 3]);
    assert_eq!(answered(5, 9, usize::MAX), [] as [Height; 0]);
    assert_eq!(answered(9, 2, usize::MAX), [] as [Height; 0]);
}

fn lineage(state: &Ledger) -> Lineage {
    let chain = Chain { genesis: state.network(), epoch: 0, heights: 1..=u64::MAX, keys: Vec::new() };
    Lineage { schedule: Schedule::default(), lag: 2, begins: state.height(), chain }
}

fn empty_home() -> Home<FaultDisk> {
    let [blocks, votes, certificates, handovers, incoming] = [1, 2, 3, 4, 5].map(FaultDisk::new);
    Home { blocks, votes, certificates, handovers, incoming }
}

/// A network begins again only where nothing is: the log of votes keeps a validator from voting twice.
#[test]
fn a_home_that_holds_anything_does_not_begin_again() {
    let state = Lived::through(2, None).recover(&genesis()).expect("recovers").ledger;
    let home = empty_home();
    begin_again(&home, &state, lineage(&state)).expect("an empty home");
    let again = recover_state(home.blocks.clone(), OPTIONS, &genesis()).expect("recovers").ledger;
    assert_eq!((again.height(), again.last_block()), (2, state.last_block()));
    let error = begin_again(&home, &state, lineage(&state)).expect_err("it holds a state");
    assert!(matches!(error, ReplicaError::NotEmpty(_)), "{error}");
    // Blocks alone, and votes alone.
    let with_blocks = Home { blocks: Lived::through(1, None).disk, ..empty_home() };
    let error = begin_again(&with_blocks, &state, lineage(&state)).expect_err("it holds blocks");
    assert!(matches!(error, ReplicaError::NotEmpty(_)), "{error}");
    let with_votes = empty_home();
    replica::create_votes(&with_votes.votes).expect("created");
    let error = begin_again(&with_votes, &state, lineage(&state)).expect_err("it holds votes");
    assert!(matches!(error, ReplicaError::Store(StoreError::VotesExist(_))), "{error}");
}
