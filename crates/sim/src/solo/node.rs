//! One node: the life of its blocks ([`replica::life`]), with the jobs of each worker performed one at a time, on the
//! same engines and a disk with faults.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use kernel::{Dice, FaultDisk};
use ledger::contracts::ContractReceipts;
use ledger::{BlockReceipts, Changes, Genesis, Ledger, Outcome, Quota, Refusal, Roots, Signatures, outcomes_by_id};
use primitives::{Height, Superblock, Transaction, TransactionId, verify_transactions};
use replica::life::Durable;
use replica::{
    BlockJob, BlockLife, BlockWorker, EthereumReject, Foundation, LifeInput, LifeMistake, LifeSettings, LifeStart,
    Mempool, PoolEntry, Reject, ReplicaError, Restored,
};
use store::{CheckpointWriter, Options, Store, StoreError};

use super::distorted::{execute, forget_timers};
use super::mistaken::see;
use super::oracle::Oracle;
use super::{mislisted, misvoted};
use crate::world::{EngineMistake, Mistake};

/// Bytes of Ethereum transactions in a block.
const SECTION_BYTES: usize = 4_000;

/// The settings of a node.
#[derive(Clone, Copy)]
pub(crate) struct Setup {
    pub mempool: usize,
    pub block: usize,
    pub interval_ms: u64,
    pub checkpoint_every: u64,
    /// Blocks that are kept behind a checkpoint; 0 for all.
    pub keep_blocks: u64,
    /// Whether a checkpoint is begun before the receipts up to it are archived: the store must tolerate it.
    pub checkpoint_early: bool,
    pub segment_bytes: u64,
    pub mistake: Option<Mistake>,
}

impl Setup {
    /// The mistake in the life of blocks.
    fn mistake_of_life(&self) -> Option<LifeMistake> {
        let early = self.checkpoint_early.then_some(LifeMistake::CheckpointBeforeReceipts);
        self.mistake.and_then(Mistake::of_life).or(early)
    }
}

/// The reason why a step ends a node's process.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The disk failed, and the node stopped itself.
    Disk(String),
    /// An error that no disk fault explains.
    Broken(String),
}

impl From<String> for Stop {
    fn from(what: String) -> Stop {
        Stop::Broken(what)
    }
}

/// The answer to a submission.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer {
    Waits,
    Committed(Height, Outcome),
    Full,
    Refused(Refusal),
}

/// What jobs work with besides the node: the reference, the dice and the time.
pub(crate) struct Around<'a> {
    pub oracle: &'a mut Oracle,
    pub dice: &'a mut Dice,
    pub now_ms: u64,
    pub wall_ms: u64,
}

pub(crate) struct SimNode {
    setup: Setup,
    disk: FaultDisk,
    pub ledger: Ledger,
    roots: Roots,
    mempool: Mempool,
    store: Store<FaultDisk>,
    index: HashMap<TransactionId, (Height, Outcome)>,
    /// Transactions in the pool that a mistaken ledger sees otherwise, as they came.
    came: HashMap<TransactionId, Transaction>,
    life: BlockLife,
    jobs: Vec<BlockJob>,
    /// Whether a block is due or in progress.
    is_making: bool,
    /// Whether a block is applied and not shown: nobody reads the ledger meanwhile.
    pub is_locked: bool,
    /// The block in progress, with the ids of its transactions.
    block: Option<(Arc<Superblock>, Vec<TransactionId>)>,
    /// Blocks to be logged.
    unlogged: VecDeque<Arc<Superblock>>,
    contracts: ContractReceipts,
    made: BTreeMap<Height, BlockReceipts>,
    /// The block whose clients have their answers, until its receipts are archived.
    answered: Option<BlockReceipts>,
    changes: BTreeMap<Height, Changes>,
    /// The state to be checkpointed.
    state: Option<Ledger>,
    /// A checkpoint that was begun and is not finished.
    writer: Option<CheckpointWriter<FaultDisk>>,
}

/// Recovers as a node does when it starts.
pub(crate) fn recover(disk: &FaultDisk, setup: &Setup, genesis: &Genesis) -> Result<Restored<FaultDisk>, ReplicaError> {
    replica::recover_state(disk.clone(), Options { segment_bytes: setup.segment_bytes }, genesis)
}

impl SimNode {
    pub fn new(mut restored: Restored<FaultDisk>, disk: FaultDisk, setup: Setup) -> SimNode {
        let mut index = HashMap::new();
        let archive = restored.store.archive();
        for height in 1..=restored.ledger.height() {
            // The oracle has just read and compared those that are not forgotten.
            let Some(receipts) = archive.receipts(height).ok().flatten() else { continue };
            remember(&mut index, &borsh::from_slice(&receipts).expect("receipts"));
        }
        if let Some(mistake) = setup.mistake.and_then(Mistake::of_store) {
            restored.store.plant(mistake.into());
        }
        if setup.mistake == Some(Mistake::Engine(EngineMistake::TimersForgotten)) {
            forget_timers(&mut restored.ledger);
        }
        let (every, keep) = (setup.checkpoint_every, setup.keep_blocks);
        let settings =
            LifeSettings { checkpoint_blocks: every, keep_blocks: keep, mistake: setup.mistake_of_life().into() };
        let start = LifeStart { height: restored.ledger.height(), handover: None, certified: Height::MAX };
        SimNode {
            setup,
            disk,
            ledger: restored.ledger,
            roots: restored.roots,
            mempool: Mempool::new(setup.mempool),
            store: restored.store,
            index,
            came: HashMap::new(),
            life: BlockLife::new(settings, start),
            jobs: Vec::new(),
            is_making: false,
            is_locked: false,
            block: None,
            unlogged: VecDeque::new(),
            contracts: ContractReceipts::default(),
            made: BTreeMap::new(),
            answered: None,
            changes: BTreeMap::new(),
            state: None,
            writer: None,
        }
    }

    fn has(&self, mistake: EngineMistake) -> bool {
        self.setup.mistake == Some(Mistake::Engine(mistake))
    }

    /// The intake's step.
    pub fn submit(&mut self, transaction: Transaction, now_ms: u64) -> Answer {
        let id = transaction.id();
        let valid = verify_transactions(&self.ledger.network(), &[&transaction])[0]
            || self.has(EngineMistake::SignaturesUnchecked);
        match self.index.get(&id) {
            _ if !valid => Answer::Refused(Refusal::BAD_SIGNATURE),
            Some((height, outcome)) if outcome.refusal().is_none() => Answer::Committed(*height, *outcome),
            _ => match self.admit(PoolEntry::new(id, now_ms, transaction)) {
                Ok(()) | Err(Reject::Waiting) => Answer::Waits,
                Err(Reject::Full) => Answer::Full,
                Err(Reject::Refused(refusal)) => Answer::Refused(refusal),
            },
        }
    }

    /// Into the pool, as a ledger with a mistake sees it; blocks have it as it came.
    fn admit(&mut self, mut entry: PoolEntry) -> Result<(), Reject> {
        let Some(mistake) = self.setup.mistake.and_then(Mistake::of_engine) else {
            return self.mempool.admit(entry, &self.ledger);
        };
        let (mut ledger, came) = (self.ledger.clone(), entry.transaction.clone());
        mislisted::look(mistake, &mut ledger);
        misvoted::look(mistake, &mut ledger);
        see(mistake, &mut ledger, &mut entry.transaction);
        if entry.transaction != came {
            self.came.insert(entry.id, came);
        }
        self.mempool.admit(entry, &ledger)
    }

    /// The intake's step for an Ethereum transaction.
    pub fn submit_ethereum(&mut self, bytes: Vec<u8>, now_ms: u64) -> Result<TransactionId, EthereumReject> {
        self.mempool.ethereum.admit(bytes, now_ms, &self.ledger)
    }

    fn tell(&mut self, input: LifeInput) {
        let jobs = self.life.step(input);
        self.jobs.extend(jobs);
    }

    /// Asks for a block, if one is due.
    pub fn produce(&mut self, now_ms: u64) -> bool {
        let old =
            self.mempool.oldest_ms().is_some_and(|arrived| now_ms.saturating_sub(arrived) >= self.setup.interval_ms);
        let is_due = !self.is_making && (old || self.mempool.ready() >= self.setup.block);
        if is_due {
            self.is_making = true;
            self.tell(LifeInput::Decided(self.life.height() + 1));
        }
        is_due
    }

    /// One job of a worker; returns a number for the trace, 0 if the worker has nothing to do.
    pub fn work(&mut self, worker: BlockWorker, around: &mut Around) -> Result<u64, Stop> {
        let Some(at) = self.jobs.iter().position(|job| job.worker() == Some(worker)) else { return Ok(0) };
        let job = self.jobs.remove(at);
        if self.setup.mistake_of_life().is_none() && self.setup.mistake.is_none() {
            self.check_order(job)?;
        }
        match self.perform(job, around)? {
            Some(input) => self.tell(input),
            // The rest of the job follows in another step.
            None => self.jobs.insert(0, job),
        }
        Ok(1 + around.oracle.height())
    }

    /// What a job needs on the disk is there.
    fn check_order(&self, job: BlockJob) -> Result<(), Stop> {
        let is_there = Durable::of(&self.store).is_ok_and(|durable| durable.covers(&job.needs()));
        if is_there { Ok(()) } else { Err(Stop::Broken(format!("{job:?} came before what it needs was durable"))) }
    }

    fn perform(&mut self, job: BlockJob, around: &mut Around) -> Result<Option<LifeInput>, Stop> {
        Ok(Some(match job {
            BlockJob::Build(height) => {
                self.build(height, around)?;
                LifeInput::Built(height)
            }
            BlockJob::Log(height) => {
                self.log()?;
                LifeInput::Logged(height)
            }
            BlockJob::Apply { height, keeps_state } => {
                self.apply(keeps_state, around.oracle)?;
                LifeInput::Applied(height)
            }
            BlockJob::Show(height) => {
                self.show();
                around.oracle.show(height);
                LifeInput::Shown { height, handover: None }
            }
            BlockJob::Publish(height) => {
                if !self.publish(height, around.oracle)? {
                    return Ok(None);
                }
                LifeInput::Published(height)
            }
            BlockJob::Hash(height) => {
                self.hash(height, around.oracle)?;
                LifeInput::Hashed(height)
            }
            BlockJob::Checkpoint { height, forgets } => {
                if !self.write_checkpoint(height, forgets)? {
                    return Ok(None);
                }
                LifeInput::Checkpointed(height)
            }
            BlockJob::Forget { checkpoint, below } => {
                let forgotten = self.store.forget_below(below).map(drop);
                around.oracle.forget(below);
                self.disk_said(forgotten)?;
                LifeInput::Forgotten(checkpoint)
            }
            BlockJob::Compare(_) | BlockJob::Keep { .. } | BlockJob::End => {
                return Err(Stop::Broken(format!("{job:?} in a node that makes blocks alone")));
            }
        }))
    }

    /// What waits, as far as the quotas of a sub-block go.
    fn take_pending(&mut self, now_ms: u64) -> Vec<PoolEntry> {
        let (pool, most, mut quota) = (&mut self.mempool, self.setup.block, Quota::default());
        let mut admits = |entry: &PoolEntry| entry.fits(&mut quota);
        let mut entries = pool.take_duties(most, &mut admits);
        entries.extend(pool.take_settles(most - entries.len(), &mut admits));
        entries.extend(pool.take_bounded(most - entries.len(), now_ms, &mut admits));
        entries.extend(pool.take_while(most - entries.len(), admits));
        entries
    }

    fn build(&mut self, height: Height, around: &mut Around) -> Result<(), Stop> {
        let entries = self.take_pending(around.now_ms);
        let ids = entries.iter().map(|entry| entry.id).collect();
        let came = |entry: PoolEntry| self.came.remove(&entry.id).unwrap_or(entry.transaction);
        let native = entries.into_iter().map(came).collect();
        let foundation = Foundation::of(&self.ledger, self.roots.parts().root());
        let ethereum = self.mempool.ethereum.take(SECTION_BYTES, around.now_ms);
        let block = foundation.own_block(height, native, ethereum, around.wall_ms);
        around.oracle.extend(&block, around.dice)?;
        let block = Arc::new(block);
        self.unlogged.push_back(block.clone());
        self.block = Some((block, ids));
        Ok(())
    }

    fn log(&mut self) -> Result<(), Stop> {
        let block = self.unlogged.pop_front().expect("it is built");
        if self.has(EngineMistake::SyncSkipped) {
            let appended = self.store.append(block.height, &block.to_bytes());
            return self.disk_said(appended);
        }
        let synced = replica::log(&mut self.store, &block);
        if self.has(EngineMistake::DiskErrorIgnored) { Ok(()) } else { self.disk_said(synced) }
    }

    /// An error stops the node; afterwards the store must refuse everything and never try again.
    fn disk_said(&mut self, result: Result<(), StoreError>) -> Result<(), Stop> {
        match result {
            Ok(()) => Ok(()),
            Err(error @ (StoreError::Io { .. } | StoreError::Failed(_))) => {
                let points = self.disk.points();
                let again = self.store.append(self.store.last_height() + 1, b"again").err();
                let synced = self.store.sync().err();
                let refuses = |error| matches!(error, Some(StoreError::Failed(_)));
                if refuses(again) && refuses(synced) && self.disk.points() == points {
                    return Err(Stop::Disk(error.to_string()));
                }
                Err(Stop::Broken(format!("the store continued after: {error}")))
            }
            Err(error) => Err(Stop::Broken(format!("the store refused: {error}"))),
        }
    }

    fn apply(&mut self, keeps_state: bool, oracle: &Oracle) -> Result<(), Stop> {
        let (block, _) = self.block.as_ref().expect("it is built");
        self.is_locked = true;
        let applied =
            execute(&mut self.ledger, block, Signatures::Valid, self.setup.mistake).map_err(|e| e.to_string())?;
        let receipts = replica::receipts(block, &applied);
        if borsh::to_vec(&receipts).expect("encodes") != oracle.receipts(block.height) {
            return Err(Stop::Broken(format!("the receipts of block {} differ from the replay's", block.height)));
        }
        oracle.hold(&self.ledger)?;
        self.made.insert(block.height, receipts);
        self.changes.insert(block.height, applied.changes);
        self.contracts = applied.contracts;
        if keeps_state {
            self.state = Some(self.ledger.clone());
        }
        Ok(())
    }

    fn show(&mut self) {
        let (block, ids) = self.block.take().expect("it is built");
        replica::settle(&mut self.mempool, &self.ledger, &block, &ids, &self.contracts);
        (self.is_locked, self.is_making) = (false, false);
    }

    /// Answers, and in a later step archives the receipts: the other workers go on meanwhile. Returns whether they are
    /// archived.
    fn publish(&mut self, height: Height, oracle: &mut Oracle) -> Result<bool, Stop> {
        if let Some(receipts) = self.made.remove(&height) {
            acknowledge_all(&receipts, oracle)?;
            remember(&mut self.index, &receipts);
            self.answered = Some(receipts);
            return Ok(false);
        }
        let mut archived = self.answered.take().expect("it is answered");
        if self.has(EngineMistake::ReceiptsChanged) && height.is_multiple_of(5) {
            archived.outcomes.pop();
        }
        if !(self.has(EngineMistake::ReceiptsSkipped) && height.is_multiple_of(5)) {
            let put = replica::archive(&mut self.store, &archived);
            self.disk_said(put)?;
        }
        Ok(true)
    }

    /// Begins a checkpoint, and in a later step writes it: the other workers go on meanwhile. Returns whether it is
    /// written.
    fn write_checkpoint(&mut self, height: Height, forgets: bool) -> Result<bool, Stop> {
        let Some(writer) = self.writer.take() else {
            match replica::begin_checkpoint(&mut self.store, height, forgets) {
                Ok(writer) => self.writer = writer,
                Err(error) => self.disk_said(Err(error))?,
            }
            return Ok(self.writer.is_none());
        };
        let kept = self.state.take().expect("it is kept");
        let state = if self.has(EngineMistake::CheckpointOfLaterState) { &self.ledger } else { &kept };
        match replica::write_checkpoint(state, writer) {
            Ok(()) => {}
            Err(ReplicaError::Store(error)) => self.disk_said(Err(error))?,
            Err(error) => return Err(Stop::Disk(error.to_string())),
        }
        if self.has(EngineMistake::CheckpointInPlace) {
            self.overwrite_checkpoints().map_err(|error| Stop::Disk(error.to_string()))?;
        }
        Ok(true)
    }

    /// Writes the newest checkpoint again, over itself.
    fn overwrite_checkpoints(&self) -> std::io::Result<()> {
        let names = self.disk.list()?.into_iter().map(|(name, _)| name);
        let Some(name) = names.filter(|name| name.ends_with(".ckpt")).max() else { return Ok(()) };
        let content = self.disk.content(&name);
        let file = self.disk.open(&name, true)?;
        file.truncate(0)?;
        file.write_at(0, &content)?;
        file.sync()
    }

    fn hash(&mut self, height: Height, oracle: &mut Oracle) -> Result<(), Stop> {
        let changes = self.changes.remove(&height).expect("it is applied");
        if self.has(EngineMistake::RootsSkipped) && height.is_multiple_of(5) {
            return Ok(());
        }
        let root = replica::hash(&mut self.roots, height, &changes).map_err(|error| Stop::Broken(error.to_string()))?;
        if root != oracle.root(height) {
            return Err(Stop::Broken(format!("the tries after block {height} differ from rebuilt ones")));
        }
        oracle.show_root(height);
        Ok(())
    }

    /// Whether everything admitted is published, and the tries and the checkpoint are done.
    pub fn is_idle(&self) -> bool {
        self.mempool.ready() == 0 && self.mempool.ethereum.waits_since_ms().is_none() && self.life.is_idle()
    }

    /// Stops; nothing may be in progress.
    pub fn stop(&mut self) -> Result<(), String> {
        let jobs = self.life.step(LifeInput::Stop);
        if jobs == [BlockJob::End] { Ok(()) } else { Err(format!("an idle node does not stop: {jobs:?}")) }
    }
}

fn acknowledge_all(receipts: &BlockReceipts, oracle: &mut Oracle) -> Result<(), String> {
    let outcomes = outcomes_by_id(receipts.outcomes.iter().copied());
    outcomes.into_iter().try_for_each(|(id, outcome)| oracle.acknowledge(id, receipts.height, outcome))
}

/// Like the node's views: a copy that a later block refuses must not hide the transaction that counted.
fn remember(index: &mut HashMap<TransactionId, (Height, Outcome)>, receipts: &BlockReceipts) {
    for (id, outcome) in outcomes_by_id(receipts.outcomes.iter().copied()) {
        if outcome.refusal().is_none() || !index.contains_key(&id) {
            index.insert(id, (receipts.height, outcome));
        }
    }
}
