//! One node: the steps of the exchange's threads, taken one at a time, on the same engines and a disk with faults.

use std::collections::{HashMap, VecDeque};

use ledger::{BlockReceipts, Changes, Genesis, Ledger, Outcome, Refusal, Roots, Signatures, outcomes_by_id};
use primitives::{Height, Superblock, Transaction, TransactionId, verify_transactions};
use replica::{EthereumReject, Foundation, Mempool, PoolEntry, Reject, ReplicaError, Restored};
use store::{CheckpointWriter, Disk, DiskFile, FaultDisk, Options, Store, StoreError};

use crate::bugs::{Bug, execute};
use crate::dice::Dice;
use crate::oracle::Oracle;

/// Bytes of Ethereum transactions in a block.
const LANE_BYTES: usize = 4_000;
/// Maximum number of blocks queued for the publisher and for the tries, as in the exchange.
const QUEUE: usize = 2;

/// The settings of a node.
#[derive(Clone, Copy)]
pub(crate) struct Setup {
    pub mempool: usize,
    pub block: usize,
    pub interval_ms: u64,
    pub checkpoint_every: u64,
    /// Whether a checkpoint is begun before the receipts up to it are archived: the store must tolerate it.
    pub checkpoint_early: bool,
    pub segment_bytes: u64,
    pub bug: Option<Bug>,
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

struct Made {
    height: Height,
    receipts: BlockReceipts,
    /// The state to be checkpointed once the receipts are archived.
    checkpoint: Option<Ledger>,
}

/// A checkpoint that was begun and is not finished.
struct Checkpoint {
    state: Ledger,
    writer: CheckpointWriter<FaultDisk>,
}

pub(crate) struct SimNode {
    setup: Setup,
    disk: FaultDisk,
    pub ledger: Ledger,
    roots: Roots,
    mempool: Mempool,
    store: Store<FaultDisk>,
    index: HashMap<TransactionId, (Height, Outcome)>,
    made: VecDeque<Made>,
    changes: VecDeque<(Height, Changes)>,
    checkpoint: Option<Checkpoint>,
}

/// Recovers as a node does when it starts.
pub(crate) fn recover(disk: &FaultDisk, setup: &Setup, genesis: &Genesis) -> Result<Restored<FaultDisk>, ReplicaError> {
    replica::recover_state(disk.clone(), Options { segment_bytes: setup.segment_bytes }, genesis)
}

impl SimNode {
    pub fn new(restored: Restored<FaultDisk>, disk: FaultDisk, setup: Setup) -> SimNode {
        let mut index = HashMap::new();
        let archive = restored.store.archive();
        for height in 1..=restored.ledger.height() {
            let receipts = archive.receipts(height).ok().flatten().expect("the oracle has just read them");
            let receipts: BlockReceipts = borsh::from_slice(&receipts).expect("and compared them");
            remember(&mut index, &receipts);
        }
        SimNode {
            setup,
            disk,
            ledger: restored.ledger,
            roots: restored.roots,
            mempool: Mempool::new(setup.mempool),
            store: restored.store,
            index,
            made: VecDeque::new(),
            changes: VecDeque::new(),
            checkpoint: None,
        }
    }

    fn has(&self, bug: Bug) -> bool {
        self.setup.bug == Some(bug)
    }

    /// The intake's step.
    pub fn submit(&mut self, transaction: Transaction, now_ms: u64) -> Answer {
        let id = transaction.id();
        let valid =
            verify_transactions(&self.ledger.network(), &[&transaction])[0] || self.has(Bug::SignaturesUnchecked);
        match self.index.get(&id) {
            _ if !valid => Answer::Refused(Refusal::BadSignature),
            Some((height, outcome)) if outcome.refusal().is_none() => Answer::Committed(*height, *outcome),
            _ => match self.mempool.admit(PoolEntry { id, arrived_ms: now_ms, transaction }, &self.ledger) {
                Ok(()) | Err(Reject::Waiting) => Answer::Waits,
                Err(Reject::Full) => Answer::Full,
                Err(Reject::Refused(refusal)) => Answer::Refused(refusal),
            },
        }
    }

    /// The intake's step for an Ethereum transaction.
    pub fn submit_ethereum(&mut self, bytes: Vec<u8>, now_ms: u64) -> Result<TransactionId, EthereumReject> {
        self.mempool.ethereum.admit(bytes, now_ms, &self.ledger)
    }

    /// The producer's step: makes a block, if one is due. Returns the number of its transactions.
    pub fn produce(&mut self, now_ms: u64, wall_ms: u64, oracle: &mut Oracle, dice: &mut Dice) -> Result<usize, Stop> {
        let old =
            self.mempool.oldest_ms().is_some_and(|arrived| now_ms.saturating_sub(arrived) >= self.setup.interval_ms);
        if self.made.len() >= QUEUE || !(old || self.mempool.ready() >= self.setup.block) {
            return Ok(0);
        }
        let entries = self.mempool.take(self.setup.block);
        while !self.changes.is_empty() {
            self.follow(oracle)?;
        }
        let native = entries.iter().map(|entry| entry.transaction.clone()).collect();
        let foundation = Foundation::of(&self.ledger, self.roots.parts().root());
        let ethereum = self.mempool.ethereum.take(LANE_BYTES, now_ms);
        let block = foundation.own_block(self.ledger.height() + 1, native, ethereum, wall_ms);
        oracle.extend(&block, dice)?;
        if self.has(Bug::AnswerBeforeSync) {
            let receipts: BlockReceipts = borsh::from_slice(oracle.receipts(block.height)).expect("receipts");
            acknowledge_all(&receipts, oracle)?;
        }
        let before = self.ledger.height();
        self.log(&block)?;
        let applied =
            execute(&mut self.ledger, &block, Signatures::Valid, self.setup.bug).map_err(|e| e.to_string())?;
        let ids: Vec<TransactionId> = entries.iter().map(|entry| entry.id).collect();
        replica::settle(&mut self.mempool, &self.ledger, &block, &ids, &applied.contracts.skipped);
        let receipts = replica::receipts(&block, &applied);
        if borsh::to_vec(&receipts).expect("encodes") != oracle.receipts(block.height) {
            return Err(Stop::Broken(format!("the receipts of block {} differ from the replay's", block.height)));
        }
        oracle.hold(&self.ledger)?;
        let due = block.height.is_multiple_of(self.setup.checkpoint_every);
        let mut checkpoint = due.then(|| self.ledger.clone());
        if self.setup.checkpoint_early
            && let Some(state) = checkpoint.take()
        {
            self.begin_checkpoint(state)?;
        }
        self.made.push_back(Made { height: before + 1, receipts, checkpoint });
        self.changes.push_back((block.height, applied.changes));
        Ok(entries.len())
    }

    fn log(&mut self, block: &Superblock) -> Result<(), Stop> {
        if self.has(Bug::SyncSkipped) {
            let appended = self.store.append(block.height, &block.to_bytes());
            return self.disk_said(appended);
        }
        let synced = replica::log(&mut self.store, block);
        if self.has(Bug::DiskErrorIgnored) { Ok(()) } else { self.disk_said(synced) }
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

    /// The publisher's step: answers, then the archive, then a checkpoint if one is due.
    pub fn publish(&mut self, oracle: &mut Oracle) -> Result<usize, Stop> {
        let Some(Made { height, receipts, checkpoint }) = self.made.pop_front() else { return Ok(0) };
        acknowledge_all(&receipts, oracle)?;
        remember(&mut self.index, &receipts);
        let mut archived = receipts.clone();
        if self.has(Bug::ReceiptsChanged) && height.is_multiple_of(5) {
            archived.outcomes.pop();
        }
        if !(self.has(Bug::ReceiptsSkipped) && height.is_multiple_of(5)) {
            let put = replica::archive(&mut self.store, &archived);
            self.disk_said(put)?;
        }
        if let Some(state) = checkpoint {
            self.begin_checkpoint(state)?;
        }
        Ok(receipts.outcomes.len())
    }

    fn begin_checkpoint(&mut self, state: Ledger) -> Result<(), Stop> {
        match replica::begin_checkpoint(&mut self.store, state.height(), false) {
            Ok(writer) => {
                self.checkpoint = writer.map(|writer| Checkpoint { state, writer }).or(self.checkpoint.take())
            }
            Err(error) => return self.disk_said(Err(error)),
        }
        Ok(())
    }

    /// The checkpoint thread's step.
    pub fn finish_checkpoint(&mut self) -> Result<bool, Stop> {
        let Some(Checkpoint { state, writer }) = self.checkpoint.take() else { return Ok(false) };
        let state = if self.has(Bug::CheckpointOfLaterState) { &self.ledger } else { &state };
        match replica::write_checkpoint(state, writer) {
            Ok(()) => {}
            Err(ReplicaError::Store(error)) => self.disk_said(Err(error))?,
            Err(error) => return Err(Stop::Disk(error.to_string())),
        }
        if self.has(Bug::CheckpointInPlace) {
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

    /// The roots thread's step.
    pub fn follow(&mut self, oracle: &Oracle) -> Result<bool, Stop> {
        let Some((height, changes)) = self.changes.pop_front() else { return Ok(false) };
        if self.has(Bug::RootsSkipped) && height.is_multiple_of(5) {
            return Ok(true);
        }
        let root = replica::hash(&mut self.roots, height, &changes).map_err(|error| Stop::Broken(error.to_string()))?;
        if root != oracle.root(height) {
            return Err(Stop::Broken(format!("the tries after block {height} differ from rebuilt ones")));
        }
        Ok(true)
    }

    /// Whether everything admitted is published, and the tries and the checkpoint are done.
    pub fn is_idle(&self) -> bool {
        self.mempool.ready() == 0
            && self.mempool.ethereum.waits_since_ms().is_none()
            && self.made.is_empty()
            && self.changes.is_empty()
            && self.checkpoint.is_none()
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
