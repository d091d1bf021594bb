//! Blocks that live on a disk with faults. Whatever the order of the jobs and wherever the machine crashes, a restart
//! comes to the state of a plain loop that applies one block after another. Nobody was told of a block that is lost.

use std::collections::BTreeMap;

use kernel::{Crash, Dice, FaultDisk, Planted, Surviving};
use ledger::{Applied, BlockReceipts, Changes, Genesis, Ledger, Listing, Roots};
use primitives::{Address, AssetId, Body, Digest, Fraction, Operation, SecretKey, SubBlock, Superblock};
use store::{Options, Store};

use super::*;
use crate::{Foundation, Replay, Restored, archive, encode, receipts, recover_state, write_checkpoint};

const BLOCKS: Height = 9;
const OPTIONS: Options = Options { segment_bytes: 2_000 };
const SETTINGS: LifeSettings = LifeSettings { checkpoint_blocks: 2, keep_blocks: 2, mistake: Planted::NOTHING };

fn genesis(key: &SecretKey) -> Genesis {
    let (epsilon, mu) = (Fraction::power_of_two(15), Fraction::power_of_two(10));
    let balances = vec![(key.public().address(), AssetId(0), 1_000_000)];
    let assets = vec![Listing::new("A", 2, Address([9; 20]))];
    Genesis { chain: 1, fee: 1, epsilon, mu, assets, balances, ..Genesis::default() }
}

/// The next block: a payment, of another amount in every block.
fn block(key: &SecretKey, ledger: &Ledger, root: Digest) -> Superblock {
    let height = ledger.height() + 1;
    let operation = Operation::Pay { to: Address([3; 20]), asset: AssetId(0), amount: 10 + height };
    let body = Body { chain: 1, account: key.public().address(), sequence: height, until: 50_000, operation };
    let native = vec![body.sign(&ledger.network(), key)];
    let Foundation { parent, parent_root, .. } = Foundation::of(ledger, root);
    let sub_blocks = vec![SubBlock { native, ..SubBlock::default() }];
    Superblock { height, parent, time_ms: height, parent_root, sub_blocks, ..Superblock::default() }
}

/// What a plain loop comes to, by height.
struct Reference {
    key: SecretKey,
    roots: Vec<Digest>,
    receipts: Vec<Vec<u8>>,
}

impl Reference {
    fn new() -> Reference {
        let key = SecretKey::from_seed([1; 32]);
        let mut replay = Replay::new(Ledger::new(&genesis(&key)).expect("sound"));
        let (mut roots, mut archived) = (vec![replay.root], vec![Vec::new()]);
        for height in 1..=BLOCKS {
            let bytes = block(&key, &replay.ledger, replay.root).to_bytes();
            let (block, applied) = replay.step(height, &bytes, None).expect("applies");
            roots.push(replay.root);
            archived.push(encode(&receipts(&block, &applied)));
        }
        Reference { key, roots, receipts: archived }
    }

    /// A disk as a crash leaves it holds a state of the plain loop, no older than what somebody was told.
    fn recover(&self, disk: &FaultDisk, told: Height) -> Restored<FaultDisk> {
        let restored = recover_state(disk.clone(), OPTIONS, &genesis(&self.key)).expect("a crash is recovered from");
        let height = restored.ledger.height();
        assert!(height >= told, "block {told} was told and is lost: {height}");
        assert_eq!(restored.root, self.roots[height as usize], "another state at height {height}");
        for at in 1..=height {
            let archived = restored.store.receipts(at).expect("readable");
            let is_kept = at + SETTINGS.keep_blocks > restored.from;
            assert!(archived.is_some() || !is_kept, "the receipts of block {at} are missing");
            assert!(archived.is_none_or(|archived| archived == self.receipts[at as usize]), "other receipts: {at}");
        }
        restored
    }
}

/// A shell that performs jobs one at a time, in an order that is drawn.
struct Shell<'a> {
    reference: &'a Reference,
    disk: FaultDisk,
    life: BlockLife,
    out: Vec<BlockJob>,
    ledger: Ledger,
    roots: Roots,
    root: Digest,
    store: Store<FaultDisk>,
    block: Option<Superblock>,
    applied: Option<Applied>,
    made: BTreeMap<Height, BlockReceipts>,
    changes: BTreeMap<Height, Changes>,
    state: Option<Ledger>,
    told: Height,
}

impl Shell<'_> {
    fn start(reference: &Reference, disk: FaultDisk, told: Height) -> Shell<'_> {
        let Restored { ledger, roots, root, store, .. } = reference.recover(&disk, told);
        let start = LifeStart { height: ledger.height(), handover: None, certified: Height::MAX };
        let life = BlockLife::new(SETTINGS, start);
        let (made, changes) = (BTreeMap::new(), BTreeMap::new());
        let (block, applied, state, out) = (None, None, None, Vec::new());
        Shell { reference, disk, life, out, ledger, roots, root, store, block, applied, made, changes, state, told }
    }

    fn tell(&mut self, input: LifeInput) {
        let jobs = self.life.step(input);
        self.out.extend(jobs);
    }

    fn perform(&mut self, job: BlockJob) {
        assert!(Durable::of(&self.store).expect("readable").covers(&job.needs()), "{job:?} came too early");
        let input = match job {
            BlockJob::Build(height) => {
                self.block = Some(block(&self.reference.key, &self.ledger, self.root));
                LifeInput::Built(height)
            }
            BlockJob::Log(height) => {
                crate::log(&mut self.store, self.block.as_ref().expect("built")).expect("a sound disk");
                LifeInput::Logged(height)
            }
            BlockJob::Apply { height, keeps_state } => {
                let block = self.block.as_ref().expect("built");
                self.applied = Some(crate::apply(&mut self.ledger, block, &mut |_| {}).expect("applies"));
                self.state = keeps_state.then(|| self.ledger.clone()).or(self.state.take());
                LifeInput::Applied(height)
            }
            BlockJob::Show(height) => {
                let (block, mut applied) = (self.block.take().expect("built"), self.applied.take().expect("applied"));
                self.changes.insert(height, std::mem::take(&mut applied.changes));
                self.made.insert(height, receipts(&block, &applied));
                self.told = height;
                LifeInput::Shown { height, handover: None }
            }
            BlockJob::Publish(height) => {
                let receipts = self.made.remove(&height).expect("shown");
                archive(&mut self.store, &receipts).expect("a sound disk");
                LifeInput::Published(height)
            }
            BlockJob::Hash(height) => {
                let changes = self.changes.remove(&height).expect("shown");
                self.root = crate::hash(&mut self.roots, height, &changes).expect("takes any block");
                LifeInput::Hashed(height)
            }
            BlockJob::Checkpoint { height, forgets } => {
                let begun = crate::begin_checkpoint(&mut self.store, height, forgets).expect("a sound disk");
                write_checkpoint(&self.state.take().expect("kept"), begun.expect("none runs")).expect("a sound disk");
                LifeInput::Checkpointed(height)
            }
            BlockJob::Forget { checkpoint, below } => {
                self.store.forget_below(below).expect("a sound disk");
                LifeInput::Forgotten(checkpoint)
            }
            BlockJob::Compare(_) | BlockJob::Keep { .. } | BlockJob::End => unreachable!("{job:?} was not asked for"),
        };
        self.tell(input);
    }

    /// Runs to the last block, or until a crash; returns the disk that the crash leaves.
    fn run(&mut self, crash: Option<(u64, Surviving)>, dice: &mut Dice) -> Option<FaultDisk> {
        let armed = Crash::default();
        if let Some((points, surviving)) = crash {
            let disk = self.disk.clone();
            armed.arm(&[&self.disk], points, move || disk.after_crash(surviving));
        }
        let mut next = self.life.height() + 1;
        loop {
            if next <= BLOCKS && (self.out.is_empty() || dice.below(4) == 0) {
                self.tell(LifeInput::Decided(next));
                next += 1;
            }
            if self.out.is_empty() && next > BLOCKS {
                return None;
            }
            if !self.out.is_empty() {
                let job = self.out.remove(dice.below(self.out.len() as u64) as usize);
                self.perform(job);
            }
            if let Some(left) = armed.take() {
                return Some(left);
            }
        }
    }
}

#[test]
fn a_crash_at_any_point_in_the_life_of_a_block_restarts_to_the_same_state() {
    let reference = Reference::new();
    let mut crashes = 0;
    for seed in 0..200 {
        let mut dice = Dice::new(seed);
        let (mut disk, mut told) = (FaultDisk::new(seed), 0);
        loop {
            let surviving = Surviving::drawn(&mut dice);
            let crash = (dice.below(8) != 0).then(|| (dice.below(40), surviving));
            let mut shell = Shell::start(&reference, disk, told);
            let left = shell.run(crash, &mut dice);
            told = shell.told.max(told);
            let Some(left) = left else { break };
            crashes += 1;
            disk = left;
        }
    }
    assert!(crashes > 200, "only {crashes} crashes");
}
