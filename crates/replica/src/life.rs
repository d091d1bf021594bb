//! The life of a block: from the decision, or from the wish of a node that makes blocks alone, until the block is
//! forgotten.
//!
//! # The protocol
//!
//! A [`BlockLife`] knows heights, and where the state is. Its inputs are a height that is decided and the results of
//! jobs; its outputs are jobs. The shell performs a job wherever it likes, keeps what one job leaves for the next (the
//! block, what applying it gave, the changes of its state), and returns the result.
//!
//! ```text
//!              ┌──────────── ledger lent ─────────────┐
//!  Decided ──► Build ──► Log ───────────► Show ───────┴─► Publish ──► Checkpoint ──► Forget
//!     │          ▲  └──► Apply ──────────►│                  │
//!     │          │                        └─► Hash ──────────┼─► the next height builds on this root
//!     └► Compare └──────────────── Keep ◄──── tries, receipts┘
//! ```
//!
//! - Upon *decided(h)*: if the block of h is logged already, because the engine decides again after a restart what it
//!   had no certificate for, give out `Compare(h)`. Otherwise h waits for its turn; heights come in order.
//! - When the ledger is at home, the tries have the root after h − 1, no handover is due, and at most
//!   [`UNPUBLISHED_MAX`] blocks are not published yet: lend the ledger, and give out `Build(h)`.
//! - Upon *built(h)*: give out `Log(h)` and `Apply(h)` together. They overlap: neither needs the other.
//! - When h is both logged and applied: give out `Show(h)`. Until then nobody reads the new state. It settles the
//!   pool, gives the ledger back to its readers, and tells the engine that h is applied.
//! - Upon *shown(h)*: the ledger is at home. Give out `Hash(h)`, and `Publish(h)` when h − 1 is published. Publishing
//!   answers clients and archives the receipts.
//! - If the registry after h belongs to a handover, *shown(h)* says so. When h is published and hashed, give out
//!   `Keep`, before the block h + 1 is built.
//! - If a checkpoint is due after h and none is in progress, `Apply(h)` keeps the state. Upon *published(h)*, give out
//!   `Checkpoint(h)`; when it is durable, `Forget` what is more than `keep_blocks` below it, but nothing from the last
//!   durable certificate on.
//! - Upon *stop*: no further block begins. When the one in progress is published and hashed, give out `End`. A
//!   checkpoint in progress ends with its worker; what is behind it is forgotten after the next one.
//!
//! # Properties
//!
//! - *Order*: the blocks are built, logged, applied, shown, published and hashed in the order of their heights, each
//!   once, whatever the order in which jobs end.
//! - *Durable first*: [`BlockJob::needs`] says what must be on the disk before a job begins. In particular no client,
//!   reader, engine or trie gets to know of a block that is not durable.
//! - *One borrower*: the ledger is at home or lent to one block; the tries are written by one job; one checkpoint is
//!   in progress.
//! - *Bounded*: one block is executed and at most [`UNPUBLISHED_MAX`] + 1 are not published. At most one job of each
//!   worker is out, so queues of [`JOBS_MAX`] jobs never block. The engine's window bounds the heights that wait.
//! - *Deterministic*: a pure function of its inputs. No data, clock, thread or disk.
//!
//! # What a crash leaves
//!
//! A restart takes the newest checkpoint, applies the logged blocks above it, archives their receipts, and begins a
//! new `BlockLife` at the last logged height ([`recover_state`](crate::recover_state)). A crash
//!
//! | after | leaves |
//! |---|---|
//! | Build(h), before Log(h) ends | the state after h − 1, or after h if the block reached the disk whole. Nobody was told of h. The engine decides it again; a node alone has lost transactions that nobody was told are committed |
//! | Log(h), before Show(h) | the state after h: the restart applies it |
//! | Show(h), before Publish(h) ends | the state after h; the restart archives its receipts. Clients that got no answer ask again, and find it |
//! | Publish(h), before Checkpoint(h) ends | the checkpoint before it; the replay is longer |
//! | Checkpoint(h), before Forget ends | old files, which the next Forget removes |
//! | Show(h), before Keep ends | the registry in the state after h: the handover is due again at the start, since h + 1 is not logged |
//!
//! # Drivers
//!
//! A validator and a node that makes blocks alone (`node`, with threads), a developers' chain (`node`, all jobs on one
//! thread), one node under faults and networks of validators (`sim`, jobs in the order of a seed).
//!
//! *Deviation*: when a developer orders many blocks at once, empty ones before the last count as logged when they are
//! appended. The log is synced with the last, before the order is answered: such a chain promises nothing else.

#[cfg(test)]
mod crashes;
#[cfg(test)]
mod interleavings;
mod job;
mod mistake;

use std::collections::VecDeque;

use kernel::Planted;
use primitives::Height;

pub use job::{BlockJob, BlockWorker, Durable};
pub use mistake::LifeMistake;

/// Number of blocks that may be unpublished when the next one is built: the publisher works on one, and two wait.
pub const UNPUBLISHED_MAX: u64 = 3;
/// The most jobs that are out at a time: one for each worker, and the end.
pub const JOBS_MAX: usize = 6;

/// What a life is told once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LifeSettings {
    /// Blocks between two checkpoints; 0 for none.
    pub checkpoint_blocks: u64,
    /// Blocks that are kept behind a checkpoint; 0 for all.
    pub keep_blocks: u64,
    /// The mistake that a simulation plants.
    pub mistake: Planted<LifeMistake>,
}

/// Where a life begins: at a state whose block is durable, whose receipts are archived, and whose tries are complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LifeStart {
    /// The height of the state.
    pub height: Height,
    /// The epoch whose handover needs the registry after this height, if one does.
    pub handover: Option<u64>,
    /// The last height whose certificate is durable; the highest height for a node that needs none.
    pub certified: Height,
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LifeInput {
    /// The superblock of this height is decided, or a block is due in a node that makes blocks alone.
    Decided(Height),
    /// The decided superblock is the logged one.
    Compared(Height),
    /// The handover to this epoch is durable.
    Kept(u64),
    /// The block is made.
    Built(Height),
    /// The block is durable.
    Logged(Height),
    /// The block is applied; its state is kept if that was asked for.
    Applied(Height),
    /// The new state is given to its readers, and the pool is settled.
    Shown {
        /// The height.
        height: Height,
        /// The epoch whose handover needs the registry after this height, if one does.
        handover: Option<u64>,
    },
    /// Clients have their answers, and the receipts are archived.
    Published(Height),
    /// The tries have the changes of the block.
    Hashed(Height),
    /// The checkpoint is durable, or could not be begun.
    Checkpointed(Height),
    /// Older blocks are forgotten.
    Forgotten(Height),
    /// Certificates up to this height are durable.
    Certified(Height),
    /// The node stops.
    Stop,
}

/// Where the ledger is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum LedgerAt {
    Home,
    Comparing(Height),
    Keeping(u64),
    Building(Height),
    Executing { height: Height, is_applied: bool },
    Showing(Height),
}

/// The checkpoint in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum CheckpointAt {
    None,
    /// Its state is kept until the receipts are archived.
    Kept(Height),
    Writing(Height),
    Forgetting(Height),
}

/// The state machine; see the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BlockLife {
    settings: LifeSettings,
    /// Decided heights that have not begun, in order.
    decided: VecDeque<Height>,
    ledger: LedgerAt,
    logged: Height,
    shown: Height,
    published: Height,
    publishing: Option<Height>,
    hashed: Height,
    hashing: Option<Height>,
    handover: Option<u64>,
    checkpoint: CheckpointAt,
    certified: Height,
    is_stopping: bool,
    has_ended: bool,
}

impl BlockLife {
    /// The life of the blocks above a state.
    pub fn new(settings: LifeSettings, start: LifeStart) -> BlockLife {
        let LifeStart { height, handover, certified } = start;
        BlockLife {
            settings,
            decided: VecDeque::new(),
            ledger: LedgerAt::Home,
            logged: height,
            shown: height,
            published: height,
            publishing: None,
            hashed: height,
            hashing: None,
            handover,
            checkpoint: CheckpointAt::None,
            certified,
            is_stopping: false,
            has_ended: false,
        }
    }

    /// Takes an input; returns the jobs that may begin now.
    ///
    /// # Panics
    /// If it is not the result of a job that is out, or a height is decided out of order.
    pub fn step(&mut self, input: LifeInput) -> Vec<BlockJob> {
        let mut jobs = self.take(input);
        while let Some(job) = self.next() {
            jobs.push(job);
        }
        jobs
    }

    /// The height of the state that readers see.
    pub fn height(&self) -> Height {
        self.shown
    }

    /// Whether the ledger may be read, and lent: no block is in progress.
    pub fn is_ledger_home(&self) -> bool {
        self.ledger == LedgerAt::Home
    }

    /// Whether no job is out and no height is waiting.
    pub fn is_idle(&self) -> bool {
        self.is_done() && self.decided.is_empty() && self.checkpoint == CheckpointAt::None
    }

    /// Whether every block that was begun is published and hashed.
    fn is_done(&self) -> bool {
        self.is_ledger_home() && self.published == self.shown && self.hashed == self.shown
    }

    fn has(&self, mistake: LifeMistake) -> bool {
        self.settings.mistake.is(mistake)
    }

    fn take(&mut self, input: LifeInput) -> Vec<BlockJob> {
        match input {
            LifeInput::Decided(height) => self.on_decided(height),
            LifeInput::Compared(height) => self.bring_home(LedgerAt::Comparing(height)),
            LifeInput::Kept(epoch) => {
                self.bring_home(LedgerAt::Keeping(epoch));
                self.handover = None;
            }
            LifeInput::Built(height) => return self.execute(height),
            LifeInput::Logged(height) => advance(&mut self.logged, height),
            LifeInput::Applied(height) => {
                self.expect(LedgerAt::Executing { height, is_applied: false });
                self.ledger = LedgerAt::Executing { height, is_applied: true };
            }
            LifeInput::Shown { height, handover } => {
                self.bring_home(LedgerAt::Showing(height));
                advance(&mut self.shown, height);
                self.handover = handover.filter(|_| !self.has(LifeMistake::HandoverNotAwaited));
            }
            LifeInput::Published(height) => {
                assert_eq!(self.publishing.take(), Some(height), "a block that was not to be published");
                self.published = self.published.max(height);
            }
            LifeInput::Hashed(height) => {
                assert_eq!(self.hashing.take(), Some(height), "a block that was not to be hashed");
                advance(&mut self.hashed, height);
            }
            LifeInput::Checkpointed(height) => return self.on_checkpointed(height).into_iter().collect(),
            LifeInput::Forgotten(height) => return self.on_forgotten(height).into_iter().collect(),
            LifeInput::Certified(height) => self.certified = self.certified.max(height),
            LifeInput::Stop => {
                self.is_stopping = true;
                self.decided.clear();
            }
        }
        Vec::new()
    }

    fn next(&mut self) -> Option<BlockJob> {
        self.show()
            .or_else(|| self.hash())
            .or_else(|| self.publish())
            .or_else(|| self.begin_checkpoint())
            .or_else(|| self.keep())
            .or_else(|| self.begin())
            .or_else(|| self.end())
    }

    fn on_decided(&mut self, height: Height) {
        let last = self.decided.back().copied().or(self.executing()).unwrap_or(self.shown);
        assert!(height <= last + 1, "height {height} is decided, and {} is not", last + 1);
        if !self.is_stopping {
            self.decided.push_back(height);
        }
    }

    /// The block that the ledger is lent to.
    fn executing(&self) -> Option<Height> {
        match self.ledger {
            LedgerAt::Building(height) | LedgerAt::Executing { height, .. } | LedgerAt::Showing(height) => Some(height),
            LedgerAt::Home | LedgerAt::Comparing(_) | LedgerAt::Keeping(_) => None,
        }
    }

    fn expect(&self, expected: LedgerAt) {
        assert_eq!(self.ledger, expected, "the result of a job that is not out");
    }

    fn bring_home(&mut self, from: LedgerAt) {
        self.expect(from);
        self.ledger = LedgerAt::Home;
    }

    fn execute(&mut self, height: Height) -> Vec<BlockJob> {
        self.expect(LedgerAt::Building(height));
        self.ledger = LedgerAt::Executing { height, is_applied: false };
        let every = self.settings.checkpoint_blocks;
        let keeps_state = every != 0 && height.is_multiple_of(every) && self.checkpoint == CheckpointAt::None;
        if keeps_state {
            self.checkpoint = CheckpointAt::Kept(height);
        }
        vec![BlockJob::Log(height), BlockJob::Apply { height, keeps_state }]
    }

    fn show(&mut self) -> Option<BlockJob> {
        let LedgerAt::Executing { height, is_applied: true } = self.ledger else { return None };
        let is_logged = self.logged >= height || self.has(LifeMistake::AnswersBeforeSync);
        is_logged.then(|| {
            self.ledger = LedgerAt::Showing(height);
            BlockJob::Show(height)
        })
    }

    fn hash(&mut self) -> Option<BlockJob> {
        let early = match self.ledger {
            LedgerAt::Executing { height, is_applied: true } if self.has(LifeMistake::RootBeforeBlock) => Some(height),
            _ => None,
        };
        let height = self.hashed + 1;
        (self.hashing.is_none() && height <= early.unwrap_or(self.shown)).then(|| {
            self.hashing = Some(height);
            BlockJob::Hash(height)
        })
    }

    fn publish(&mut self) -> Option<BlockJob> {
        let next = if self.has(LifeMistake::PublishesOutOfOrder) { self.shown } else { self.published + 1 };
        let is_due = self.publishing.is_none() && self.published < next && next <= self.shown;
        is_due.then(|| {
            self.publishing = Some(next);
            BlockJob::Publish(next)
        })
    }

    fn begin_checkpoint(&mut self) -> Option<BlockJob> {
        let CheckpointAt::Kept(height) = self.checkpoint else { return None };
        let hurries = self.has(LifeMistake::CheckpointBeforeReceipts) && self.shown >= height;
        if self.published < height && !hurries {
            return None;
        }
        if self.has(LifeMistake::ForgetsBeforeCheckpoint) {
            return self.forget(height);
        }
        Some(self.write(height))
    }

    fn write(&mut self, height: Height) -> BlockJob {
        self.checkpoint = CheckpointAt::Writing(height);
        BlockJob::Checkpoint { height, forgets: self.settings.keep_blocks > 0 }
    }

    /// Begins to forget, if anything is ever forgotten.
    fn forget(&mut self, checkpoint: Height) -> Option<BlockJob> {
        let keep = self.settings.keep_blocks;
        let needed = if self.has(LifeMistake::ForgetsUncertified) { Height::MAX } else { self.certified };
        self.checkpoint = if keep > 0 { CheckpointAt::Forgetting(checkpoint) } else { CheckpointAt::None };
        let below = (checkpoint + 1).saturating_sub(keep).min(needed);
        (keep > 0).then_some(BlockJob::Forget { checkpoint, below })
    }

    fn on_checkpointed(&mut self, height: Height) -> Option<BlockJob> {
        assert_eq!(self.checkpoint, CheckpointAt::Writing(height), "a checkpoint that was not begun");
        if self.has(LifeMistake::ForgetsBeforeCheckpoint) {
            self.checkpoint = CheckpointAt::None;
            return None;
        }
        self.forget(height)
    }

    fn on_forgotten(&mut self, checkpoint: Height) -> Option<BlockJob> {
        assert_eq!(self.checkpoint, CheckpointAt::Forgetting(checkpoint), "nothing was to be forgotten");
        self.checkpoint = CheckpointAt::None;
        self.has(LifeMistake::ForgetsBeforeCheckpoint).then(|| self.write(checkpoint))
    }

    fn keep(&mut self) -> Option<BlockJob> {
        let epoch = self.handover.filter(|_| self.is_done() && !self.is_stopping)?;
        self.ledger = LedgerAt::Keeping(epoch);
        Some(BlockJob::Keep { epoch, height: self.shown })
    }

    /// Begins the next decided height, if everything before it has come far enough.
    fn begin(&mut self) -> Option<BlockJob> {
        let height = *self.decided.front().filter(|_| self.is_ledger_home())?;
        let is_new = height > self.shown;
        let has_root = self.hashed == self.shown || self.has(LifeMistake::RootNotAwaited);
        let has_room = self.shown - self.published <= UNPUBLISHED_MAX;
        if is_new && !(has_root && has_room && self.handover.is_none()) {
            return None;
        }
        self.decided.pop_front();
        self.ledger = if is_new { LedgerAt::Building(height) } else { LedgerAt::Comparing(height) };
        Some(if is_new { BlockJob::Build(height) } else { BlockJob::Compare(height) })
    }

    fn end(&mut self) -> Option<BlockJob> {
        let ends = self.is_stopping && self.is_done() && !std::mem::replace(&mut self.has_ended, true);
        ends.then_some(BlockJob::End)
    }
}

/// Moves to the next height.
fn advance(at: &mut Height, height: Height) {
    assert_eq!(*at + 1, height, "a height out of order");
    *at = height;
}
