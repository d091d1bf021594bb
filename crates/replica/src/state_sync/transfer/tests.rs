//! A transfer from validators with every kind of behaviour, without sockets.

use std::io::{Read, Write};

use consensus::{Benches, Certificate, Commit, Committee, Finality, Link, Statement};
use ledger::{ReceiptsParts, Schedule, outcome_root};
use primitives::{Digest, SecretKey};
use store::{CheckpointReader, RealDisk, SnapshotWriter};

use super::*;

const LAG: u64 = 2;
const HEIGHT: u64 = 40;
/// Seven chunks, the last one short.
const BYTES: usize = 6_500_000;

fn secret(index: u8) -> SecretKey {
    SecretKey::from_seed([index + 1; 32])
}

fn chain() -> Chain {
    let keys = (0..4).map(|index| secret(index).public()).collect();
    Chain { genesis: Digest([7; 32]), epoch: 0, heights: consensus::ALL_HEIGHTS, keys }
}

fn certificate(statement: Statement) -> Certificate {
    let sign = |index| (index, Commit::sign(&chain(), statement, index, &secret(index)).signature);
    Certificate { epoch: 0, statement, signatures: (0..3).map(sign).collect() }
}

fn base(height: u64) -> Base {
    let benches = Benches::new(&Committee::new(4), 3, 8);
    let (parent, sub_blocks) = (Digest([1; 32]), vec![(0, Digest([2; 32])), (2, Digest([3; 32]))]);
    let link = Link { height, parent, sub_blocks: sub_blocks.clone(), benches: benches.digest() };
    let own = certificate(Statement { height, superblock: link.digest(&chain()), root: Digest([4; 32]) });
    let receipts = ReceiptsParts {
        outcomes: Digest([5; 32]),
        modified: Digest([6; 32]),
        batch: Digest([8; 32]),
        contracts: Digest([7; 32]),
        block: Digest([9; 32]),
    };
    let state = Digest([10; 32]);
    let root = outcome_root(&state, &receipts.root());
    let outcome = certificate(Statement { height: height + LAG, superblock: Digest([11; 32]), root });
    Base { height, finality: Finality { certificate: own, parent, benches }, sub_blocks, outcome, state, receipts }
}

/// How a validator answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Honest,
    /// Offers a state that is five heights older.
    Older,
    Silent,
    /// Has no state.
    Empty,
    FalseChunks,
    /// Offers and then stops answering.
    Stalls,
    /// Has removed what it offered.
    Forgets,
    /// Offers a base whose outcome nobody signed.
    FalseBase,
    /// Offers wrong digests under a valid base.
    FalseDigests,
    /// Offers more chunks than bytes.
    Impossible,
}

struct World {
    directory: tempfile::TempDir,
    reader: CheckpointReader<RealDisk>,
    payload: Vec<u8>,
}

impl World {
    fn new() -> World {
        let directory = tempfile::tempdir().expect("a directory");
        let payload: Vec<u8> = (0..BYTES as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let path = directory.path().join("theirs");
        let mut writer = SnapshotWriter::create(&path, HEIGHT).expect("new");
        writer.write_all(&payload).expect("written");
        writer.finish().expect("finished");
        let reader = CheckpointReader::of_snapshot(&path).expect("sound");
        World { directory, reader, payload }
    }

    fn offer(&self, kind: Kind, bare: bool) -> StateOffer {
        let mut base = base(if kind == Kind::Older { HEIGHT - 5 } else { HEIGHT });
        if kind == Kind::FalseBase {
            base.state = Digest([99; 32]);
        }
        let mut digests = if bare { Vec::new() } else { self.reader.digests().to_vec() };
        match kind {
            Kind::FalseDigests => digests[3] = [1; 32],
            Kind::Impossible => digests.push([1; 32]),
            _ => {}
        }
        StateOffer { base, payload_bytes: if bare { 0 } else { self.reader.payload_bytes() }, digests }
    }

    fn answer(&self, kind: Kind, message: &StateMessage) -> Option<StateMessage> {
        match *message {
            _ if kind == Kind::Silent => None,
            StateMessage::AskOffer { .. } if kind == Kind::Empty => Some(StateMessage::StateOffer(None)),
            StateMessage::AskOffer { height, bare } => {
                let offer = self.offer(kind, bare);
                let has = height == 0 || offer.base.height == height;
                Some(StateMessage::StateOffer(has.then(|| Box::new(offer))))
            }
            _ if kind == Kind::Stalls => None,
            StateMessage::AskChunk { height, number } => {
                let mut bytes = self.reader.chunk(number as usize).expect("sound");
                if let (Kind::FalseChunks, Some(bytes)) = (kind, &mut bytes) {
                    bytes[7] ^= 1;
                }
                Some(StateMessage::Chunk { height, number, bytes: bytes.filter(|_| kind != Kind::Forgets) })
            }
            StateMessage::AskHandovers { from } => Some(StateMessage::Handovers { from, page: Vec::new() }),
            _ => None,
        }
    }

    /// Runs a transfer until it ends: its result, who was blamed, and how many chunks each was asked for.
    fn run(&self, goal: Goal, kinds: &[Kind]) -> Run {
        let lineage = Lineage { schedule: Schedule::default(), lag: LAG, begins: 0, chain: chain() };
        self.run_with(Trusted { chains: vec![lineage.chain.clone()], lineage }, goal, kinds)
    }

    fn run_with(&self, trusted: Trusted, goal: Goal, kinds: &[Kind]) -> Run {
        let peers: Vec<Index> = (0..kinds.len() as Index).collect();
        let incoming = RealDisk::new(self.directory.path().join("ours")).expect("a directory");
        let mut transfer = Transfer::new(goal, trusted, incoming, &peers, 0);
        let mut asked = vec![0; kinds.len()];
        for now in (0..).step_by(100).take(2_000) {
            for (peer, message) in transfer.drain_sends() {
                let kind = kinds[usize::from(peer)];
                asked[usize::from(peer)] += usize::from(matches!(message, StateMessage::AskChunk { .. }));
                if let Some(answer) = self.answer(kind, &message) {
                    transfer.on_answer(peer, answer).expect("a disk");
                }
            }
            let fetched = match transfer.step(now).expect("a disk") {
                Progress::Going => continue,
                Progress::Nothing => None,
                Progress::Done(fetched) => Some(*fetched),
            };
            let named = transfer.blamed.iter().map(|(peer, _)| kinds[usize::from(*peer)]).collect();
            return Run { fetched, named, asked };
        }
        panic!("it never ends with {kinds:?}");
    }

    fn fetched_bytes(&self) -> Vec<u8> {
        let mut reader = CheckpointReader::of_snapshot(&self.directory.path().join("ours").join(STATE)).expect("sound");
        assert_eq!(reader.height(), HEIGHT);
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).expect("sound");
        bytes
    }
}

struct Run {
    fetched: Option<Fetched>,
    named: Vec<Kind>,
    asked: Vec<usize>,
}

use Kind::*;

#[test]
fn chunks_come_from_all_who_have_them() {
    let world = World::new();
    let run = world.run(Goal::Above(10), &[Honest, Older, Honest, Empty, Honest]);
    let fetched = run.fetched.expect("fetched");
    assert_eq!((fetched.base, fetched.backers, run.named), (base(HEIGHT), vec![0, 2, 4], Vec::new()));
    assert_eq!(run.asked.iter().sum::<usize>(), 7);
    assert!([0, 2, 4].iter().all(|peer| run.asked[*peer] > 0), "{:?}", run.asked);
    assert!(world.fetched_bytes() == world.payload);
}

#[test]
fn liars_are_named_and_others_asked() {
    let world = World::new();
    for liar in [FalseChunks, Stalls, Forgets, FalseBase, FalseDigests, Impossible] {
        for kinds in [[liar, Honest, Honest], [Honest, liar, Honest], [Honest, Honest, liar]] {
            let run = world.run(Goal::Above(10), &kinds);
            let fetched = run.fetched.unwrap_or_else(|| panic!("{kinds:?}"));
            assert!(fetched.base == base(HEIGHT) && world.fetched_bytes() == world.payload);
            // A source in the minority is not asked for chunks.
            let alone = [FalseBase, FalseDigests, Impossible].contains(&liar);
            assert_eq!(run.named, if alone { vec![] } else { vec![liar] }, "{kinds:?}");
        }
    }
    // Where they are as many as the honest ones, they are detected one after the other.
    for liar in [FalseBase, Impossible] {
        let run = world.run(Goal::Above(10), &[Honest, liar, liar]);
        assert!(run.fetched.is_some_and(|fetched| fetched.backers == [0]));
        assert_eq!(run.named, [liar, liar]);
        assert!(world.fetched_bytes() == world.payload);
    }
}

#[test]
fn without_an_honest_validator_nothing_is_believed() {
    let world = World::new();
    for kinds in
        [&[Silent, Empty][..], &[FalseBase, FalseBase], &[FalseChunks, Stalls, Forgets], &[Impossible], &[Stalls]]
    {
        assert!(world.run(Goal::Above(10), kinds).fetched.is_none(), "{kinds:?}");
    }
    // A state that is not newer is not fetched.
    assert!(world.run(Goal::Above(HEIGHT), &[Honest, Honest]).fetched.is_none());
}

#[test]
fn a_state_that_is_held_is_proved_without_chunks() {
    let world = World::new();
    let run = world.run(Goal::Proof(HEIGHT), &[Silent, FalseBase, Honest, FalseBase]);
    assert_eq!(run.fetched.map(|fetched| fetched.base), Some(base(HEIGHT)));
    assert_eq!((run.named, run.asked.iter().sum::<usize>()), (vec![FalseBase, FalseBase], 0));
    assert!(world.run(Goal::Proof(HEIGHT - 1), &[Honest, Honest]).fetched.is_none());
}

#[test]
fn every_part_of_a_base_is_checked() {
    let verify = |change: fn(&mut Base)| {
        let mut changed = base(HEIGHT);
        change(&mut changed);
        changed.verify(&[chain()], LAG)
    };
    use crate::state_sync::base::BaseFault::*;
    assert_eq!(verify(|_| {}), Ok(()));
    assert_eq!(verify(|base| base.height += 1), Err(OtherHeight));
    assert_eq!(verify(|of| (of.height, of.outcome) = (HEIGHT + 1, base(HEIGHT + 1).outcome)), Err(OtherHeight));
    assert_eq!(verify(|base| base.outcome = base.finality.certificate.clone()), Err(OtherHeight));
    assert_eq!(verify(|base| base.outcome.epoch = 1), Err(Epoch(1)));
    assert!(matches!(verify(|base| base.outcome.signatures.truncate(2)), Err(Certificate(_))));
    assert!(matches!(verify(|base| base.finality.certificate.signatures.truncate(2)), Err(Certificate(_))));
    assert_eq!(verify(|base| base.finality.parent = Digest([0; 32])), Err(OtherSuperblock));
    assert_eq!(verify(|base| base.sub_blocks.truncate(1)), Err(OtherSuperblock));
    assert_eq!(verify(|base| base.finality.benches.note(41, &[0].into_iter().collect())), Err(OtherSuperblock));
    assert_eq!(verify(|base| base.state = Digest([0; 32])), Err(OtherOutcome));
    assert_eq!(verify(|base| base.receipts.block = Digest([0; 32])), Err(OtherOutcome));
}

#[test]
fn a_state_of_an_epoch_before_the_last_handover_is_proved() {
    let world = World::new();
    let later = Chain { epoch: 3, heights: 31..=40, keys: vec![secret(9).public()], ..chain() };
    let lineage = Lineage { schedule: Schedule::default(), lag: LAG, begins: 0, chain: later.clone() };
    let trusted = Trusted { chains: vec![chain(), later.clone()], lineage: lineage.clone() };
    let run = world.run_with(trusted, Goal::Above(10), &[Honest, Honest]);
    assert_eq!((run.fetched.expect("fetched").first_epoch, run.named), (4, Vec::new()));
    let run = world.run_with(Trusted { chains: vec![later], lineage }, Goal::Above(10), &[Honest]);
    assert_eq!((run.fetched.is_none(), run.named), (true, vec![Honest]), "its committee is unknown");
}
