//! One validator: a replica with its disks, its ledger and its pool, and the queued jobs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use consensus::Index;
use kernel::{Crash, FaultDisk, Planted, Surviving};
use ledger::{Applied, BlockReceipts, Changes, Genesis, Ledger, Roots};
use primitives::{Digest, Height, PublicKey, Superblock};
use replica::{
    Agreed, BlockLife, HandoverLog, Home, Input, LifeMistake, LifeSettings, LifeStart, Mempool, Network as Epoch,
    Opened, Own, Past, PoolJob, Proposals, Replica, ReplicaError, ReplicaSettings, SeatSecrets, StateSync,
    ValidatorStatus,
};
use store::{CheckpointWriter, Options, Store};

use crate::world::Mistake;

/// Transactions of a pool.
const POOL: usize = 10_000;

/// Settings for what validators keep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keeping {
    /// Blocks between two checkpoints; 0 for none.
    pub checkpoint_blocks: u64,
    /// Blocks that are kept behind a checkpoint; 0 for all.
    pub keep_blocks: u64,
    /// A validator that is further behind than this many heights fetches a state; 0: only when it cannot get the
    /// blocks.
    pub state_behind: u64,
    /// A mistake in the life of blocks, to be caught.
    pub mistake: Planted<LifeMistake>,
    /// The newest rules that the program knows, and those that its operator approves.
    pub known: u32,
    pub approve: Option<u32>,
}

/// The process's memory.
pub(super) struct Process {
    pub replica: Replica<FaultDisk>,
    pub ledger: Ledger,
    pub roots: Roots,
    /// The height of the tries, with their root.
    pub newest: (Height, Digest),
    pub store: Store<FaultDisk>,
    pub pool: Mempool,
    pub proposals: Proposals,
    pub past: Past<FaultDisk>,
    pub handovers: HandoverLog<FaultDisk>,
    pub states: StateSync<FaultDisk>,
    pub certified_durably: Height,
    pub inbox: Vec<Input>,
    /// The life of the blocks.
    pub life: BlockLife,
    /// Decided superblocks that are not built yet, in order.
    pub agreed: VecDeque<Agreed>,
    /// The block in progress, and what applying it gave.
    pub block: Option<Superblock>,
    pub applied: Option<(Ledger, Applied)>,
    /// Jobs on the pool, in order.
    pub pool_jobs: VecDeque<PoolJob>,
    /// Changes that are not in the tries yet, and receipts that are not archived yet.
    pub changes: BTreeMap<Height, Changes>,
    pub made: BTreeMap<Height, BlockReceipts>,
    /// The state of a checkpoint that is due, and the checkpoint that is being written.
    pub state: Option<Ledger>,
    pub writer: Option<CheckpointWriter<FaultDisk>>,
    /// The time at which the last effects of a step are released: later effects are not released before.
    pub released_at: u64,
    /// Validators by their index among the peers of the present links, and the number of these peers.
    pub order: Vec<Index>,
    pub generation: u64,
    /// The network of the links before the present ones.
    pub before: Option<Epoch>,
    /// The network of the present links.
    pub links: Epoch,
}

impl Process {
    /// The steps that every shell takes when it starts.
    pub fn open(
        home: &Home<FaultDisk>,
        genesis: &Genesis,
        network: &Epoch,
        settings: ReplicaSettings,
        keeping: Keeping,
    ) -> Result<Process, ReplicaError> {
        replica::state_sync::finish(home)?;
        let options = Options { segment_bytes: 20_000 };
        let restored = replica::recover_state(home.blocks.clone(), options, genesis)?;
        let ledger = restored.ledger.up_to_rules(keeping.known);
        let (height, rules) = (ledger.height(), ledger.rules_at(ledger.height()));
        assert!(
            rules <= keeping.known,
            "the state of height {height} follows rules {rules}, which the program does not"
        );
        let newest = (ledger.height(), restored.root);
        let opened = Replica::open(home, network, settings, &ledger, newest, restored.store.archive())?;
        let Opened { replica, past, handovers, unproved, certified_durably } = opened;
        let held = handovers.held.clone();
        let states = StateSync::new(network.clone(), home, unproved, keeping.state_behind, past.clone(), held);
        let links = replica.network().clone();
        let height = ledger.height();
        let Keeping { checkpoint_blocks, keep_blocks, mistake, .. } = keeping;
        let life = LifeSettings { checkpoint_blocks, keep_blocks, mistake };
        let handover = due_handover(&ledger, &handovers, &past);
        let start = LifeStart { height, handover, certified: certified_durably };
        Ok(Process {
            replica,
            ledger,
            roots: restored.roots,
            newest,
            store: restored.store,
            pool: pool_of(network, settings.defect),
            proposals: Proposals::new(network.own.account.clone())
                .attending(network.own.votes.clone(), keeping.approve)
                .with_defect(settings.defect),
            past,
            handovers,
            states,
            certified_durably,
            inbox: Vec::new(),
            life: BlockLife::new(life, start),
            agreed: VecDeque::new(),
            block: None,
            applied: None,
            pool_jobs: VecDeque::new(),
            changes: BTreeMap::new(),
            made: BTreeMap::new(),
            state: None,
            writer: None,
            released_at: 0,
            order: Vec::new(),
            generation: 0,
            before: None,
            links,
        })
    }

    /// Whether no job is in progress.
    pub fn is_idle(&self) -> bool {
        self.life.is_idle() && self.pool_jobs.is_empty()
    }
}

/// The epoch whose handover needs the registry of this state, if its block is held.
pub(super) fn due_handover(ledger: &Ledger, handovers: &HandoverLog<FaultDisk>, past: &Past<FaultDisk>) -> Option<u64> {
    let is_held = || past.blocks.block(ledger.height()).expect("readable").is_some();
    handovers.held.due(ledger).filter(|_| is_held())
}

/// The data that state transfer reads.
pub(super) struct Seen<'a> {
    pub ledger: &'a Ledger,
    pub newest: (Height, Digest),
    pub replica: &'a Replica<FaultDisk>,
}

impl Own for Seen<'_> {
    fn read<T>(&self, of: impl FnOnce(&Ledger) -> T) -> T {
        of(self.ledger)
    }

    fn newest_root(&self) -> (Height, Digest) {
        self.newest
    }

    fn status(&self) -> Option<ValidatorStatus> {
        Some(self.replica.status())
    }

    fn generation(&self) -> u64 {
        self.replica.generation()
    }

    fn key_of(&self, peer: Index) -> Option<PublicKey> {
        self.replica.network().peers.get(usize::from(peer)).map(|peer| peer.key)
    }
}

/// A validator, running or not.
pub(super) struct Host {
    pub home: Home<FaultDisk>,
    /// The secrets of its seat for sealing keys, as its disk has them.
    pub secrets: SeatSecrets,
    pub process: Option<Process>,
    /// Counts starts; events of an earlier start are void.
    pub life: u64,
    /// Whether a step is in progress.
    pub steps: bool,
    /// Transactions that clients sent here and that are in no block.
    pub given: BTreeSet<u64>,
    /// The blocks that were applied here, by height.
    pub blocks: BTreeMap<Height, (Superblock, Digest)>,
    /// The last height whose certificate was reported.
    pub certified: Height,
    /// It stopped by itself, because its state differs.
    pub stopped: bool,
    /// When its processor has worked on all frames so far, in nanoseconds.
    pub busy_until: u64,
    /// Nanoseconds that it has worked on frames.
    pub busy: u64,
    crash: Crash<Home<FaultDisk>>,
}

impl Host {
    pub fn new(seed: u64) -> Host {
        Host {
            home: empty(seed),
            secrets: SeatSecrets::default(),
            process: None,
            life: 0,
            steps: false,
            given: BTreeSet::new(),
            blocks: BTreeMap::new(),
            certified: 0,
            stopped: false,
            busy_until: 0,
            busy: 0,
            crash: Crash::default(),
        }
    }

    /// Crashes after this many further changes of a disk.
    pub fn arm_crash(&self, points: u64, surviving: Surviving) {
        let home = self.home.clone();
        self.crash.arm(&disks(&self.home), points, move || after_crash(&home, surviving));
    }

    /// The disks, if an armed crash has occurred.
    pub fn crashed(&self) -> Option<Home<FaultDisk>> {
        self.crash.take()
    }

    /// Cancels an armed crash that did not occur.
    pub fn disarm(&self) {
        self.crash.disarm(&disks(&self.home));
    }
}

/// All disks of a process; a crash hits them at the same time.
fn disks(home: &Home<FaultDisk>) -> [&FaultDisk; 5] {
    [&home.blocks, &home.votes, &home.certificates, &home.handovers, &home.incoming]
}

/// The disks as they would be found if the machine crashed now.
pub(super) fn after_crash(home: &Home<FaultDisk>, surviving: Surviving) -> Home<FaultDisk> {
    Home {
        blocks: home.blocks.after_crash(surviving),
        votes: home.votes.after_crash(surviving),
        certificates: home.certificates.after_crash(surviving),
        handovers: home.handovers.after_crash(surviving),
        incoming: home.incoming.after_crash(surviving),
    }
}

fn empty(seed: u64) -> Home<FaultDisk> {
    let disk = |number: u64| FaultDisk::new(seed.wrapping_mul(31).wrapping_add(number));
    Home { blocks: disk(1), votes: disk(2), certificates: disk(3), handovers: disk(4), incoming: disk(5) }
}

/// The replica settings of every validator in a run, with the seeded mistake.
pub(super) fn settings(mistake: Option<Mistake>, tick: u64, gather_from: usize) -> ReplicaSettings {
    ReplicaSettings {
        transactions: 20,
        check_ahead: false,
        accuse: true,
        tick: std::time::Duration::from_micros(tick),
        gather_from,
        defect: mistake.and_then(Mistake::of_replica).into(),
        unsealing: mistake.and_then(Mistake::of_unsealing).into(),
    }
}

/// A pool that knows how much a sub-block carries, as a node's does.
fn pool_of(network: &replica::Network, defect: Planted<replica::Defect>) -> Mempool {
    let mut pool = Mempool::new(POOL);
    pool.plant(defect);
    pool.set_room(network.sub_block_room(), network.committee_max);
    pool
}
