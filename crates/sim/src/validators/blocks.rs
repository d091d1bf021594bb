//! The life of a validator's blocks: [`replica::life`] says which job may begin, and each takes a time that the seed
//! determines.

use consensus::{Index, payload_digest};
use ledger::{ReceiptsTrie, outcome_root};
use primitives::{Digest, Height, SubBlock, Transaction, verify_transactions};
use replica::life::Durable;
use replica::unsealing::SealState;
use replica::{BlockJob, Foundation, Input, LifeInput};

use super::contracts::trust_own;
use super::host::due_handover;
use super::jobs::Due;
use super::{SimNetwork, ledgers};
use crate::world::Mistake;

impl SimNetwork {
    /// Tells the life of a validator's blocks what has happened, and schedules the jobs that may begin.
    pub(super) fn tell(&mut self, of: Index, input: LifeInput) {
        for job in self.process(of).expect("it runs").life.step(input) {
            let delay = self.duration(of, job);
            if let BlockJob::Checkpoint { height, forgets } = job {
                let process = self.process(of).expect("it runs");
                let begun = replica::begin_checkpoint(&mut process.store, height, forgets);
                process.writer = begun.expect("a disk without faults");
            }
            self.later(of, delay, Due::Block(job));
        }
    }

    /// How long a job takes, in microseconds.
    fn duration(&mut self, of: Index, job: BlockJob) -> u64 {
        let (least, range) = match job {
            BlockJob::Log(_) | BlockJob::Apply { .. } if self.slow == Some(of) => (60_000, 1_000),
            BlockJob::Log(_) | BlockJob::Apply { .. } => (500, 2_500),
            BlockJob::Hash(_) => (500, 3_000),
            BlockJob::Publish(_) => (300, 3_000),
            BlockJob::Checkpoint { .. } => (1_000, 20_000),
            BlockJob::Keep { .. } | BlockJob::Forget { .. } => (100, 500),
            BlockJob::Build(_) | BlockJob::Compare(_) | BlockJob::Show(_) | BlockJob::End => (0, 100),
        };
        least + self.dice.below(range)
    }

    pub(super) fn work_on_block(&mut self, of: Index, job: BlockJob) {
        self.check_durable(of, job);
        let done = match job {
            BlockJob::Compare(height) => self.compare(of, height),
            BlockJob::Keep { epoch, height } => self.keep_handover(of, epoch, height),
            BlockJob::Build(height) => self.build(of, height),
            BlockJob::Log(height) => self.log(of, height),
            BlockJob::Apply { height, keeps_state } => self.apply(of, height, keeps_state),
            BlockJob::Show(height) => self.show(of, height),
            BlockJob::Publish(height) => self.publish(of, height),
            BlockJob::Hash(height) => self.hash(of, height),
            BlockJob::Checkpoint { height, .. } => self.write_checkpoint(of, height),
            BlockJob::Forget { checkpoint, below } => {
                let store = &mut self.process(of).expect("it runs").store;
                store.forget_below(below).expect("a disk without faults");
                LifeInput::Forgotten(checkpoint)
            }
            BlockJob::End => unreachable!("a simulated validator is killed and does not stop"),
        };
        self.tell(of, done);
        self.nudge(of);
    }

    /// What a job needs on the disk is there.
    fn check_durable(&mut self, of: Index, job: BlockJob) {
        if self.mistake.and_then(Mistake::of_life).is_none() {
            let durable = Durable::of(&self.process(of).expect("it runs").store).expect("readable");
            assert!(durable.covers(&job.needs()), "{of}: {job:?} came before what it needs was durable: {durable:?}");
        }
    }

    fn compare(&mut self, of: Index, height: Height) -> LifeInput {
        let process = self.process(of).expect("it runs");
        let agreed = process.agreed.pop_front().expect("one for each height");
        agreed.is_logged(&process.past).expect("the same superblock is decided again");
        process.inbox.push(Input::Applied { height, time_ms: None });
        LifeInput::Compared(height)
    }

    fn keep_handover(&mut self, of: Index, epoch: u64, height: Height) -> LifeInput {
        let process = self.process(of).expect("it runs");
        let receipts = process.past.receipts(height).expect("readable").expect("it was published");
        let root = ReceiptsTrie::new(&receipts).root();
        process.handovers.keep(epoch, &process.ledger, &mut process.roots, root).expect("a disk without faults");
        LifeInput::Kept(epoch)
    }

    /// Checks each sub-block once, for all validators.
    pub(super) fn checked_once(&mut self, network: &Digest, slot: Index, payload: &[u8]) -> SubBlock {
        let known = self.checked.entry((slot, payload_digest(payload)));
        let verify = |transactions: &[&Transaction]| verify_transactions(network, transactions);
        known.or_insert_with(|| replica::checked(slot, payload, verify)).clone()
    }

    fn build(&mut self, of: Index, height: Height) -> LifeInput {
        let process = self.process(of).expect("it runs");
        let agreed = process.agreed.pop_front().expect("one for each height");
        let foundation = Foundation::of(&process.ledger, process.newest.1);
        let (network, applied_to) = (process.ledger.network(), process.ledger.height());
        let checked: Vec<SubBlock> =
            agreed.sub_blocks.iter().map(|(slot, payload)| self.checked_once(&network, *slot, payload)).collect();
        let mut checked = checked.into_iter().map(|mut sub_block| {
            trust_own(self, of, &mut sub_block);
            sub_block
        });
        let block = agreed.block(&foundation, |_, _| checked.next().expect("one for each"));
        assert_eq!(block.height, applied_to + 1, "{of} applies a block that does not follow");
        self.process(of).expect("it runs").block = Some(block);
        LifeInput::Built(height)
    }

    fn log(&mut self, of: Index, height: Height) -> LifeInput {
        let process = self.process(of).expect("it runs");
        let block = process.block.as_ref().expect("it is built");
        replica::log(&mut process.store, block).expect("a disk without faults");
        LifeInput::Logged(height)
    }

    /// Applies the block to a copy of the ledger: readers see the state before, until the block is shown.
    fn apply(&mut self, of: Index, height: Height, keeps_state: bool) -> LifeInput {
        let process = self.process(of).expect("it runs");
        let (block, mut ledger) = (process.block.as_ref().expect("it is built"), process.ledger.clone());
        let applied = replica::apply(&mut ledger, block, &mut |_| {}).expect("a decided block applies");
        ledger.audit().expect("sound");
        if keeps_state {
            process.state = Some(ledger.clone());
        }
        process.applied = Some((ledger, applied));
        LifeInput::Applied(height)
    }

    fn show(&mut self, of: Index, height: Height) -> LifeInput {
        let process = self.process(of).expect("it runs");
        let block = process.block.take().expect("it is built");
        let (ledger, mut applied) = process.applied.take().expect("it is applied");
        process.ledger = ledger;
        let ids = ledgers::ids(&block);
        replica::settle(&mut process.pool, &process.ledger, &block, &ids, &applied.contracts);
        process.changes.insert(height, std::mem::take(&mut applied.changes));
        process.made.insert(height, replica::receipts_with(&applied, &ids));
        let time_ms = Some(process.ledger.time_ms());
        process.inbox.extend(SealState::of(&process.ledger).map(|seals| Input::Seals(Box::new(seals))));
        process.inbox.push(Input::Applied { height, time_ms });
        let handover = due_handover(&process.ledger, &process.handovers, &process.past);
        self.check_applied(of, &block, &applied);
        self.check_rules(of, height);
        LifeInput::Shown { height, handover }
    }

    fn hash(&mut self, of: Index, height: Height) -> LifeInput {
        let wrong = self.wrong_ledger == Some(of);
        let process = self.process(of).expect("it runs");
        let changes = process.changes.remove(&height).expect("it is shown");
        let root = replica::hash(&mut process.roots, height, &changes).expect("tries take any block");
        process.newest = (height, root);
        let told = if wrong && height >= 5 { Digest([66; 32]) } else { root };
        process.inbox.push(Input::StateRoot(height, told));
        assert_eq!(*self.roots.entry(height).or_insert(root), root, "{of} has another state at height {height}");
        LifeInput::Hashed(height)
    }

    fn publish(&mut self, of: Index, height: Height) -> LifeInput {
        let process = self.process(of).expect("it runs");
        let receipts = process.made.remove(&height).expect("it is shown");
        replica::archive(&mut process.store, &receipts).expect("a disk without faults");
        let root = ReceiptsTrie::new(&receipts).root();
        process.inbox.push(Input::ReceiptsRoot(height, root));
        if let Some(state) = self.roots.get(&height) {
            self.outcomes.insert(height, outcome_root(state, &root));
        }
        LifeInput::Published(height)
    }

    fn write_checkpoint(&mut self, of: Index, height: Height) -> LifeInput {
        let process = self.process(of).expect("it runs");
        let state = process.state.take().expect("it is kept");
        if let Some(writer) = process.writer.take() {
            replica::write_checkpoint(&state, writer).expect("a disk without faults");
        }
        LifeInput::Checkpointed(height)
    }
}
