//! The pipeline of a developers' chain: one node, whose developer decides when blocks are made, what accounts hold,
//! what time it is, and which blocks are reverted.
//!
//! # Guarantees
//!
//! - *Only on developers' chains.* The genesis says that a chain is a developers' chain. That is part of its
//!   identity: it has the number 31337, one node and no validators, and its doors listen only on loopback or require
//!   tokens ([`StartError::Developers`](crate::StartError)). On every other chain the methods do not exist.
//! - *Blocks are the only source of state.* An edit of an account is a block of its own
//!   ([`ledger::contracts::DeveloperEdit`]); a chosen time is the time of a block. So a restart replays to the same
//!   root, and proofs and `walras inspect` work.
//! - *A reverted block leaves no trace.* The log is cut at the height of the snapshot, completely or not at all even
//!   if a crash intervenes ([`store::Store::cut_above`]). Then ledger, tries, pool, views and caches restart from
//!   there, while the doors stay open. Pending transactions are dropped. Filters continue from that height.
//! - *Blocks outlive the process, not the machine.* A block is written to the log before it is applied. The log is
//!   synced when the node stops and before the chain reverts, not for each block: whoever sends a transaction waits for
//!   it. A machine that fails may lose the newest blocks.
//! - *Commands are performed one at a time*, between two blocks, on the thread that makes blocks. An answer is sent
//!   after the command's effect is visible.
//!
//! # Implementation
//!
//! One thread is producer, publisher and roots, so that nothing is in flight when the chain reverts. It makes a block
//! as soon as transactions are pending ([`Mining::Instant`], where `[blocks] interval_ms` is 0), at an interval, or
//! when it is told to. A transaction is answered after the block that was due has been made.
//!
//! A snapshot is a copy of the ledger, which shares memory with the present one; the newest [`SNAPSHOTS_MAX`] are
//! kept. Their numbers are invalid after a restart. There are no checkpoints, because the chain may revert to below
//! them: a restart replays every block.
//!
//! *Time* is the machine's clock plus an offset. The developer's time commands change the offset; unlike on other
//! chains, a block may be more than a minute after its parent, but time never goes back. A block of an edit comes one
//! millisecond after its parent, so that a time chosen for the next block stays possible.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use doors::{Closed, DeveloperCommand, DeveloperRefusal, Mining, NextBlock};
use ledger::contracts::{DeveloperBlock, DeveloperEdit, OfferEvent};
use ledger::{Genesis, Ledger, Roots};
use primitives::{Height, Superblock};
use replica::{BlockJob, BlockLife, LifeInput, LifeSettings, LifeStart, Mempool, PoolEntry, ProposedSection};
use store::StoreError;

use crate::candles::remember_candles;
use crate::chain_clock::ChainClock;
use crate::executor::{Executor, milliseconds};
use crate::pipeline::follow_one;
use crate::pool::Answered;
use crate::producer::select_pending;
use crate::publisher::publish_one;
use crate::recovery::recover_views;
use crate::shared::clock_ms;
use crate::shared::{ExchangeError, RootsAt, Shared};

/// Maximum number of snapshots kept.
const SNAPSHOTS_MAX: usize = 1_000;
/// Maximum number of blocks of one command.
const BLOCKS_MAX: u64 = 100_000;
/// Maximum number of edits of one block: with the longest code each, they fit into a block.
const EDITS_MAX: usize = 256;
/// Maximum number of pending commands.
const COMMANDS_MAX: usize = 256;
/// Interval at which the thread checks whether the node stops.
const LOOK: Duration = Duration::from_millis(100);

impl Shared {
    /// Accepts commands from now on.
    pub(crate) fn open_commands(&self) {
        self.pool.lock().commands.waiting = Some(VecDeque::new());
    }

    /// On a developers' chain, waits for the block that is due: the sender of a transaction expects it in there.
    pub(crate) fn settle(&self) {
        if self.is_developers {
            // If no block can be made, another part reports why.
            drop(self.command(DeveloperCommand::Settle));
        }
    }

    /// What the developer has chosen for the next block.
    pub(crate) fn next_block(&self) -> NextBlock {
        let pooled = self.pool.lock();
        let time_ms = pooled.commands.moved.map(|moved| moved.at(clock_ms()));
        NextBlock { time_ms, chosen: pooled.commands.chosen }
    }

    /// Gives a command to a developers' chain, and waits until it is performed.
    pub(crate) fn command(&self, command: DeveloperCommand) -> Answered {
        let refused = |why: &str| Err(DeveloperRefusal(why.into()));
        let (reply, answer) = sync_channel(1);
        match &mut self.pool.lock().commands.waiting {
            None => return refused("the node is stopping"),
            Some(waiting) if waiting.len() >= COMMANDS_MAX => {
                return refused("too many pending commands; try again later");
            }
            Some(waiting) => waiting.push_back((command, reply)),
        }
        self.pool.wake();
        answer.recv().unwrap_or_else(|_| refused("the node is stopping"))
    }
}

/// Answers all pending commands when the thread ends.
struct Closing<'a>(&'a Shared);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.pool.lock().commands.waiting = None;
    }
}

/// The producer thread of a developers' chain.
pub(crate) fn develop(shared: &Arc<Shared>, genesis: &Genesis) {
    let closing = Closing(shared);
    let done = DevelopersChain::new(shared, genesis.clone()).and_then(|mut chain| chain.run());
    drop(closing);
    if let Err(error) = done {
        shared.fail(&error);
    }
}

/// A state that the chain can revert to.
struct Kept {
    ledger: Ledger,
    /// Changes of offers by contracts after its last batch.
    after_batch: Vec<OfferEvent>,
    ahead_ms: i64,
}

/// What the thread does next.
enum Due {
    Block,
    Command,
    Stop,
}

fn is_nothing(entries: &[PoolEntry], ethereum: &ProposedSection) -> bool {
    entries.is_empty() && ethereum.transactions.is_empty()
}

/// The life of the blocks above a state. There are no checkpoints: the chain may revert to below them.
fn life_above(height: Height) -> BlockLife {
    let start = LifeStart { height, handover: None, certified: Height::MAX };
    BlockLife::new(LifeSettings::default(), start)
}

/// What the next block consists of.
struct Contents {
    native: Vec<PoolEntry>,
    ethereum: ProposedSection,
    /// Its time, if it is not that of the chain's clock.
    time_ms: Option<u64>,
}

struct DevelopersChain<'a> {
    shared: &'a Arc<Shared>,
    genesis: Genesis,
    life: BlockLife,
    executor: Executor<'a>,
    mining: Mining,
    /// When the next block of an interval is due.
    next_block: Instant,
    clock: ChainClock,
    /// What the developer has chosen for the next blocks; the random number for the next one only.
    chosen: DeveloperBlock,
    snapshots: BTreeMap<u64, Kept>,
    /// The number of the last snapshot.
    snapshot: u64,
    /// Whether the last block before a stop has been made.
    is_last_made: bool,
}

impl<'a> DevelopersChain<'a> {
    fn new(shared: &'a Arc<Shared>, genesis: Genesis) -> Result<DevelopersChain<'a>, ExchangeError> {
        let executor = Executor::of_this_thread(shared)?;
        let (height, time_ms) = {
            let ledger = shared.read_ledger();
            (ledger.height(), ledger.time_ms())
        };
        remember_candles(shared, height);
        let mining = match shared.config.blocks.interval_ms {
            0 => Mining::Instant,
            interval => Mining::Interval(interval),
        };
        Ok(DevelopersChain {
            shared,
            genesis,
            life: life_above(height),
            executor,
            mining,
            next_block: Instant::now(),
            // A chain whose time was moved into the future stays there.
            clock: ChainClock::ahead(time_ms.saturating_sub(clock_ms()) as i64),
            chosen: DeveloperBlock::default(),
            snapshots: BTreeMap::new(),
            snapshot: 0,
            is_last_made: false,
        })
    }

    /// Makes blocks and performs commands in turn, so that neither delays the other for long.
    fn run(&mut self) -> Result<(), ExchangeError> {
        loop {
            match self.wait() {
                Due::Stop if self.shared.has_failed() => return Ok(()),
                Due::Stop => return Ok(self.shared.lock_store().sync().map(drop)?),
                Due::Block => self.make_due()?,
                Due::Command => {}
            }
            let command = self.shared.pool.lock().commands.waiting.as_mut().and_then(VecDeque::pop_front);
            if let Some((command, reply)) = command {
                let answer = self.perform(command)?;
                self.share_choices();
                // The sender may be gone.
                drop(reply.send(answer));
            }
        }
    }

    /// Waits until something is due. Before the node stops, pending transactions are put into one last block, if blocks
    /// are made automatically: what stays pending after it would only delay the stop.
    fn wait(&mut self) -> Due {
        let shared = self.shared;
        let mut pooled = shared.pool.lock();
        loop {
            let mempool = &pooled.mempool;
            let waits = mempool.ready() > 0 || mempool.ethereum.waits_since_ms().is_some();
            let is_stopping = shared.life.stopping.load(Ordering::Acquire);
            let left = match self.mining {
                _ if shared.has_failed() => return Due::Stop,
                // Without the rules of the next block there is none; the chain may still be reverted.
                _ if shared.needs_rules().is_some() && !is_stopping => LOOK,
                _ if shared.needs_rules().is_some() => return Due::Stop,
                Mining::Instant if waits && !self.is_last_made => {
                    self.is_last_made = is_stopping;
                    return Due::Block;
                }
                _ if is_stopping => return Due::Stop,
                Mining::Interval(_) => self.next_block.saturating_duration_since(Instant::now()),
                Mining::Instant | Mining::Manual => LOOK,
            };
            if left.is_zero() {
                return Due::Block;
            }
            if pooled.commands.waiting.as_ref().is_some_and(|commands| !commands.is_empty()) {
                return Due::Command;
            }
            pooled = shared.pool.wait(pooled, left.min(LOOK));
        }
    }

    /// Makes the block that is due; at an interval it may be empty.
    fn make_due(&mut self) -> Result<(), ExchangeError> {
        if let Mining::Interval(interval) = self.mining {
            self.next_block = Instant::now() + Duration::from_millis(interval);
            return self.mine();
        }
        let (native, ethereum) = self.select_pending();
        // A transaction above a nonce gap stays pending, and causes no block.
        if is_nothing(&native, &ethereum) {
            return Ok(());
        }
        self.commit_pending(native, ethereum)
    }

    /// Makes a block of the pending transactions, even if there are none.
    fn mine(&mut self) -> Result<(), ExchangeError> {
        let (native, ethereum) = self.select_pending();
        self.commit_pending(native, ethereum)
    }

    /// Makes a block with the parts that the developer has chosen, which are an edit in it.
    fn commit_pending(&mut self, native: Vec<PoolEntry>, mut ethereum: ProposedSection) -> Result<(), ExchangeError> {
        if self.chosen != DeveloperBlock::default() {
            ethereum.transactions.insert(0, DeveloperEdit::Block(self.chosen).encode());
            ethereum.senders.insert(0, None);
            self.chosen.random = None;
        }
        self.commit(Contents { native, ethereum, time_ms: None })
    }

    fn select_pending(&self) -> (Vec<PoolEntry>, ProposedSection) {
        select_pending(self.shared, &mut self.shared.pool.lock().mempool)
    }

    /// Logs a block, applies and publishes it: performs the jobs of its life, one after another.
    fn commit(&mut self, contents: Contents) -> Result<(), ExchangeError> {
        let (shared, height) = (self.shared, self.life.height() + 1);
        let mut jobs = VecDeque::from(self.life.step(LifeInput::Decided(height)));
        let block = self.build(height, contents);
        let (mut log_ms, mut made, mut changes) = (0.0, None, None);
        while let Some(job) = jobs.pop_front() {
            let input = match job {
                BlockJob::Build(_) => LifeInput::Built(height),
                BlockJob::Log(_) => {
                    log_ms = self.log(&block)?;
                    LifeInput::Logged(height)
                }
                BlockJob::Apply { .. } => {
                    self.executor.apply(false)?;
                    LifeInput::Applied(height)
                }
                BlockJob::Show(_) => {
                    let shown = self.executor.show(log_ms);
                    shared.note_rules();
                    (made, changes) = (Some(shown.0), Some(shown.1));
                    LifeInput::Shown { height, handover: None }
                }
                BlockJob::Hash(_) => {
                    follow_one(shared, height, &changes.take().expect("it is shown"))?;
                    LifeInput::Hashed(height)
                }
                BlockJob::Publish(_) => {
                    publish_one(shared, made.take().expect("it is shown"), None)?;
                    LifeInput::Published(height)
                }
                other => unreachable!("{other:?} is not for a developers' chain"),
            };
            jobs.extend(self.life.step(input));
        }
        self.share_choices();
        Ok(())
    }

    fn build(&mut self, height: Height, contents: Contents) -> Arc<Superblock> {
        let Contents { native, ethereum, time_ms, .. } = contents;
        let foundation = self.executor.foundation();
        let time_ms = time_ms.unwrap_or_else(|| self.clock.next(foundation.parent_ms, clock_ms()));
        let ids = native.iter().map(|entry| entry.id).collect();
        let native = native.into_iter().map(|entry| entry.transaction).collect();
        self.executor.begin(foundation.block_at(height, native, ethereum, time_ms), ids)
    }

    /// Logs a block; returns how many milliseconds that took.
    fn log(&self, block: &Superblock) -> Result<f64, StoreError> {
        let begun = Instant::now();
        self.shared.lock_store().append(block.height, &block.to_bytes())?;
        Ok(milliseconds(begun.elapsed()))
    }

    /// Tells calls and estimates how the next block would see them.
    fn share_choices(&self) {
        let parent_ms = self.shared.read_ledger().time_ms();
        let commands = &mut self.shared.pool.lock().commands;
        (commands.moved, commands.chosen) = (self.clock.moved(parent_ms), self.chosen);
    }

    fn perform(&mut self, command: DeveloperCommand) -> Result<Answered, ExchangeError> {
        let refused = |why: String| Ok(Err(DeveloperRefusal(why)));
        Ok(Ok(match command {
            DeveloperCommand::Mine(blocks, _) if blocks > BLOCKS_MAX => {
                return refused(format!("{blocks} blocks; at most {BLOCKS_MAX} at a time"));
            }
            DeveloperCommand::Mine(blocks, seconds) => {
                for _ in 0..blocks {
                    if !self.shared.is_ready() {
                        return refused("the node is stopping".into());
                    }
                    if let Err(needed) = self.may_go_on() {
                        return Ok(Err(needed));
                    }
                    self.mine()?;
                    if let Err(late) = self.clock.increase(seconds, clock_ms()) {
                        return Ok(Err(late));
                    }
                }
                0
            }
            DeveloperCommand::Snapshot => self.keep(),
            DeveloperCommand::Revert(snapshot) => return self.revert(snapshot),
            DeveloperCommand::Reset => match Ledger::new(&self.genesis) {
                Err(error) => return refused(error.to_string()),
                Ok(ledger) => {
                    let ledger = ledger.up_to_rules(self.shared.config.network.newest_rules());
                    self.snapshots.clear();
                    self.chosen = DeveloperBlock::default();
                    return self.begin_again(Kept { ledger, after_batch: Vec::new(), ahead_ms: 0 });
                }
            },
            DeveloperCommand::Edit(edit) => {
                if let Err(needed) = self.may_go_on() {
                    return Ok(Err(needed));
                }
                let possible = self.shared.read_ledger().check_edit(&edit);
                if let Err(error) = possible {
                    return refused(error.to_string());
                }
                self.edit(&[edit])?;
                0
            }
            DeveloperCommand::Edits(edits) => return self.edit_all(&edits),
            DeveloperCommand::Choose(block) => {
                let chosen = DeveloperBlock {
                    coinbase: block.coinbase.or(self.chosen.coinbase),
                    random: block.random.or(self.chosen.random),
                    gas_limit: block.gas_limit.or(self.chosen.gas_limit),
                };
                if let Err(error) = self.shared.read_ledger().check_edit(&DeveloperEdit::Block(chosen)) {
                    return refused(error.to_string());
                }
                self.chosen = chosen;
                0
            }
            DeveloperCommand::IncreaseTime(seconds) => return Ok(self.clock.increase(seconds, clock_ms())),
            DeveloperCommand::NextTime(seconds) => {
                let parent_ms = self.shared.read_ledger().time_ms();
                return Ok(self.clock.choose(seconds, parent_ms));
            }
            DeveloperCommand::StepTime(seconds) => {
                self.clock.step_ms = seconds.map(|seconds| seconds.saturating_mul(1_000));
                0
            }
            DeveloperCommand::Mining(mining) => {
                self.mining = mining;
                if let Mining::Interval(interval) = mining {
                    self.next_block = Instant::now() + Duration::from_millis(interval);
                }
                0
            }
            DeveloperCommand::IsInstant => (self.mining == Mining::Instant).into(),
            DeveloperCommand::Drop(id) => self.shared.pool.lock().mempool.ethereum.forget(&id).into(),
            DeveloperCommand::DropAll(of) => self.shared.pool.lock().mempool.ethereum.forget_all(of.as_ref()) as u64,
            DeveloperCommand::IntervalMs => match self.mining {
                Mining::Interval(interval) => interval,
                Mining::Instant | Mining::Manual => 0,
            },
            DeveloperCommand::Settle => 0,
        }))
    }

    /// Whether this program follows the rules of the next block.
    fn may_go_on(&self) -> Result<(), DeveloperRefusal> {
        let needed = |rules| DeveloperRefusal(Closed::NeedsRules(rules).to_string());
        self.shared.needs_rules().map_or(Ok(()), |rules| Err(needed(rules)))
    }

    /// Makes edits that are possible, in one block.
    fn edit(&mut self, edits: &[DeveloperEdit]) -> Result<(), ExchangeError> {
        let parent_ms = self.shared.read_ledger().time_ms();
        let transactions = edits.iter().map(DeveloperEdit::encode).collect();
        let ethereum = ProposedSection { transactions, senders: vec![None; edits.len()] };
        let time_ms = Some(parent_ms + 1).filter(|_| parent_ms > 0);
        self.commit(Contents { native: Vec::new(), ethereum, time_ms })
    }

    /// Makes edits in order; returns their number. The balances that are possible depend on each other, so each has a
    /// block of its own; other edits share blocks.
    fn edit_all(&mut self, edits: &[DeveloperEdit]) -> Result<Answered, ExchangeError> {
        let is_alone = |edit: &DeveloperEdit| matches!(edit, DeveloperEdit::Balance { .. });
        for group in edits.chunk_by(|one, other| !is_alone(one) && !is_alone(other)) {
            for part in group.chunks(EDITS_MAX) {
                if let Err(needed) = self.may_go_on() {
                    return Ok(Err(needed));
                }
                let impossible = {
                    let ledger = self.shared.read_ledger();
                    part.iter().find_map(|edit| ledger.check_edit(edit).err())
                };
                if let Some(error) = impossible {
                    return Ok(Err(DeveloperRefusal(error.to_string())));
                }
                self.edit(part)?;
            }
        }
        Ok(Ok(edits.len() as u64))
    }

    /// Keeps the present state; returns its number.
    fn keep(&mut self) -> u64 {
        self.snapshot += 1;
        let ledger = self.shared.read_ledger().clone();
        let after_batch = self.shared.readers.published.views().after_batch().to_vec();
        self.snapshots.insert(self.snapshot, Kept { ledger, after_batch, ahead_ms: self.clock.ahead_ms });
        if self.snapshots.len() > SNAPSHOTS_MAX {
            self.snapshots.pop_first();
        }
        self.snapshot
    }

    /// Reverts to a snapshot; it and all later ones are used up. Returns 0 if there is no snapshot with this number.
    fn revert(&mut self, snapshot: u64) -> Result<Answered, ExchangeError> {
        if !self.snapshots.contains_key(&snapshot) {
            return Ok(Ok(0));
        }
        let mut gone = self.snapshots.split_off(&snapshot);
        self.begin_again(gone.remove(&snapshot).expect("it is there"))
    }

    /// Restarts from an earlier state; returns 1 when done. Nothing is in flight meanwhile: this thread does
    /// everything.
    fn begin_again(&mut self, kept: Kept) -> Result<Answered, ExchangeError> {
        let (shared, Kept { ledger, after_batch, ahead_ms }) = (self.shared, kept);
        let height = ledger.height();
        let mut roots = Roots::of(&ledger);
        let root = roots.parts().root();
        shared.lock_store().sync()?;
        match shared.lock_store().cut_above(height) {
            // A home that was made from a snapshot holds nothing below the snapshot.
            Err(error @ StoreError::OutOfOrder { .. }) => return Ok(Err(DeveloperRefusal(error.to_string()))),
            cut => cut?,
        }
        let are_views_back = {
            let mut present = shared.ledger.write();
            let mut at = shared.roots.lock();
            let mut pooled = shared.pool.lock();
            *present = ledger;
            *at = RootsAt { height, root, roots };
            pooled.mempool = Mempool::new(shared.config.mempool.transactions);
            shared.readers.bodies.cut_above(height);
            shared.readers.receipts.cut_above(height);
            let are_views_back = shared.readers.published.go_back(&present, root, after_batch);
            // Nobody will answer these waiters.
            pooled.waiters.clear();
            shared.note_pool(&pooled);
            are_views_back
        };
        if let Some(history) = shared.history.get() {
            history.go_back(height);
        }
        self.life = life_above(height);
        shared.note_rules();
        if !are_views_back {
            let views = {
                let ledger = shared.read_ledger();
                recover_views(&shared.config, &ledger, &shared.lock_store(), root)?
            };
            shared.readers.published.begin_again(views);
            remember_candles(shared, height);
        }
        self.clock.go_back(ahead_ms);
        tracing::info!(height, "the chain was reverted");
        Ok(Ok(1))
    }
}
