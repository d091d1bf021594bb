//! The collaborative scheduler: which thread executes or validates which transaction, and which transactions wait for
//! which.
//!
//! A transaction's status is one word: an incarnation, a state, and whether others wait for it.
//!
//! ```text
//!            claimed                 finished                    valid, all below committed
//!  READY(i) ─────────► EXECUTING(i) ─────────► EXECUTED(i) ──────────────────────────────► COMMITTED
//!     ▲                  │     ▲                   │ invalid
//!     │ resumed          ▼     │ claimed           ▼
//!     ├────────── SUSPENDED(i) └─ HELD(i) ◄── ABORTING(i)
//!     │ i+1                        ▲ i+1           │ i+1
//!     └────────────────────────────┴───────────────┘
//! ```
//!
//! HELD is READY for transactions that have had many incarnations: only the commit ladder claims them, when all lower
//! transactions are committed. That incarnation is the last one.

use crate::counters::{Apart, Counters};
use crate::memory::Version;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use crate::sync::{Mutex, lock};

const READY: u64 = 0;
const EXECUTING: u64 = 1;
const SUSPENDED: u64 = 2;
const EXECUTED: u64 = 3;
const ABORTING: u64 = 4;
const HELD: u64 = 5;
const COMMITTED: u64 = 6;
const STATE: u64 = 7;
/// Others wait until this transaction is executed.
const WAITED: u64 = 8;

/// The task of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Execute(Version),
    Validate(Version),
}

/// What the lowest uncommitted transaction needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    /// It is executed: validate and commit it.
    Executed(Version),
    /// It is claimed for the caller, which executes it.
    Execute(Version),
    /// Another thread works on it, or no transaction is left.
    Busy,
}

/// How a block commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommitRule {
    /// Each transaction is committed when it is valid and all lower ones are committed.
    #[default]
    Rolling,
    /// The whole block is committed when the double collect finds no work left, as in the paper.
    Lazy,
}

#[repr(align(64))]
struct Slot {
    status: AtomicU64,
    dependents: Mutex<Vec<Version>>,
}

pub(crate) struct Scheduler {
    pub counters: Counters,
    size: u32,
    rule: CommitRule,
    /// Maximum distance above the lowest uncommitted transaction at which executions begin.
    window: u32,
    /// From this incarnation on a transaction is held.
    held_from: u32,
    /// All transactions below have been executed once.
    executed_once: Apart<AtomicU32>,
    /// All transactions below are committed.
    committed: Apart<AtomicU32>,
    slots: Box<[Slot]>,
}

impl Scheduler {
    pub fn new(size: u32, rule: CommitRule, window: u32, held_from: u32) -> Self {
        let slot = || Slot { status: AtomicU64::new(word(READY, 0)), dependents: Mutex::new(Vec::new()) };
        let lazy = rule == CommitRule::Lazy;
        Scheduler {
            counters: Counters::new(size, lazy),
            size,
            rule,
            window: if lazy { size } else { window },
            held_from: if lazy { u32::MAX } else { held_from },
            executed_once: Apart(AtomicU32::new(0)),
            committed: Apart(AtomicU32::new(0)),
            slots: (0..size).map(|_| slot()).collect(),
        }
    }

    pub fn committed(&self) -> u32 {
        self.committed.load(SeqCst)
    }

    /// The next task, active until [`Counters::finish`]. Validation comes first where it is possible.
    pub fn next_task(&self) -> Option<Task> {
        if self.can_validate() {
            self.counters.raise_validation(self.committed());
            let txn = self.counters.claim_validation()?;
            let status = self.status(txn);
            if state(status) == EXECUTED {
                return Some(Task::Validate(Version { txn, incarnation: incarnation(status) }));
            }
        } else if self.can_execute() {
            let txn = self.counters.claim_execution()?;
            if let Some(version) = self.try_execute(txn) {
                return Some(Task::Execute(version));
            }
        } else {
            if self.rule == CommitRule::Lazy {
                self.counters.check_done();
            }
            return None;
        }
        self.counters.finish();
        None
    }

    /// Whether a thread that looks for work finds some, or finds the block done.
    pub fn has_work(&self) -> bool {
        self.counters.is_done() || self.can_validate() || self.can_execute() || self.head_is_ready()
    }

    /// A validation waits until all lower transactions have been executed once. This alone shows in the first wave
    /// that a read was stale, and writes of first incarnations do not cause validations of everything above.
    fn can_validate(&self) -> bool {
        let below = self.executed_once.load(SeqCst).min(self.counters.execution());
        self.counters.validation().max(self.committed()) < below
    }

    fn can_execute(&self) -> bool {
        self.counters.execution() < self.size.min(self.committed().saturating_add(self.window))
    }

    fn status(&self, txn: u32) -> u64 {
        self.slots[txn as usize].status.load(SeqCst)
    }

    /// Changes a status from `from` to `to`, whether others wait or not.
    fn change(&self, txn: u32, from: u64, to: u64) -> bool {
        let change = |word: u64| (word & !WAITED == from).then_some(to | word & WAITED);
        self.slots[txn as usize].status.fetch_update(SeqCst, SeqCst, change).is_ok()
    }

    fn try_execute(&self, txn: u32) -> Option<Version> {
        let status = self.status(txn) & !WAITED;
        let incarnation = incarnation(status);
        let claimed = state(status) == READY && self.change(txn, status, word(EXECUTING, incarnation));
        claimed.then_some(Version { txn, incarnation })
    }

    /// Suspends an execution until `on`, a lower transaction, is executed. Returns false if it already is: then the
    /// caller repeats the execution at once.
    pub fn suspend(&self, version: Version, on: u32) -> bool {
        debug_assert!(on < version.txn, "transactions wait for lower ones only");
        let slot = &self.slots[on as usize];
        let mut dependents = lock(&slot.dependents);
        let wait = |word| (!matches!(state(word), EXECUTED | COMMITTED)).then_some(word | WAITED);
        if slot.status.fetch_update(SeqCst, SeqCst, wait).is_err() {
            return false;
        }
        dependents.push(version);
        let from = word(EXECUTING, version.incarnation);
        let changed = self.change(version.txn, from, word(SUSPENDED, version.incarnation));
        debug_assert!(changed, "only the executing thread ends an execution");
        true
    }

    /// An incarnation has been executed, and its writes are in the memory. It is `surprising` if it wrote where the
    /// previous one did not, so that higher transactions may have read past it. Returns a task that follows at once.
    pub fn finish_execution(&self, version: Version, surprising: bool) -> Option<Task> {
        let Version { txn, incarnation } = version;
        let slot = &self.slots[txn as usize];
        let before = slot.status.swap(word(EXECUTED, incarnation), SeqCst);
        debug_assert_eq!(before & !WAITED, word(EXECUTING, incarnation), "a transaction has one execution at a time");
        if before & WAITED != 0 {
            let dependents = std::mem::take(&mut *lock(&slot.dependents));
            self.resume(&dependents);
        }
        if self.executed_once.load(SeqCst) <= txn {
            self.advance_executed_once();
        }
        if self.counters.validation() > txn {
            if !surprising {
                return Some(Task::Validate(version));
            }
            self.counters.lower_validation(txn);
        }
        None
    }

    fn resume(&self, dependents: &[Version]) {
        for &Version { txn, incarnation } in dependents {
            let resumed = self.change(txn, word(SUSPENDED, incarnation), self.next_incarnation(incarnation));
            debug_assert!(resumed, "a suspended incarnation is resumed once");
        }
        if let Some(lowest) = dependents.iter().map(|dependent| dependent.txn).min() {
            self.counters.lower_execution(lowest);
        }
    }

    fn next_incarnation(&self, incarnation: u32) -> u64 {
        let next = incarnation + 1;
        word(if next >= self.held_from { HELD } else { READY }, next)
    }

    fn advance_executed_once(&self) {
        let mut below = self.executed_once.load(SeqCst);
        while below < self.size && state(self.status(below)) >= EXECUTED {
            match self.executed_once.compare_exchange(below, below + 1, SeqCst, SeqCst) {
                Ok(_) => below += 1,
                Err(other) => below = other,
            }
        }
    }

    /// Claims the abort of an executed incarnation. Of several threads that find it invalid, one succeeds.
    pub fn try_abort(&self, version: Version) -> bool {
        self.change(version.txn, word(EXECUTED, version.incarnation), word(ABORTING, version.incarnation))
    }

    /// The writes of an aborted incarnation are estimates now. All higher transactions need a validation; the next
    /// incarnation may follow at once.
    pub fn finish_abort(&self, version: Version) -> Option<Task> {
        let Version { txn, incarnation } = version;
        let changed = self.change(txn, word(ABORTING, incarnation), self.next_incarnation(incarnation));
        debug_assert!(changed, "only the aborting thread ends an abort");
        self.counters.lower_validation(txn + 1);
        if self.counters.execution() > txn { self.try_execute(txn).map(Task::Execute) } else { None }
    }

    /// The same for the lowest uncommitted transaction: its next incarnation is claimed, and is the last one.
    pub fn restart_head(&self, version: Version) -> Version {
        let next = Version { incarnation: version.incarnation + 1, ..version };
        let changed = self.change(version.txn, word(ABORTING, version.incarnation), word(EXECUTING, next.incarnation));
        debug_assert!(changed, "only the aborting thread ends an abort");
        self.counters.lower_validation(version.txn + 1);
        next
    }

    /// Whether the lowest uncommitted transaction needs a thread.
    pub fn head_is_ready(&self) -> bool {
        let txn = self.committed();
        self.rule == CommitRule::Rolling
            && txn < self.size
            && matches!(state(self.status(txn)), EXECUTED | READY | HELD)
    }

    /// What the lowest uncommitted transaction needs. Only the thread on the commit ladder asks.
    pub fn head(&self) -> Head {
        let txn = self.committed();
        if txn >= self.size {
            return Head::Busy;
        }
        let status = self.status(txn) & !WAITED;
        let version = Version { txn, incarnation: incarnation(status) };
        match state(status) {
            EXECUTED => Head::Executed(version),
            READY | HELD if self.change(txn, status, word(EXECUTING, version.incarnation)) => Head::Execute(version),
            _ => Head::Busy,
        }
    }

    /// Commits the lowest uncommitted transaction, if that incarnation is still current.
    pub fn try_commit(&self, version: Version) -> bool {
        debug_assert_eq!(version.txn, self.committed(), "transactions commit in order");
        self.change(version.txn, word(EXECUTED, version.incarnation), word(COMMITTED, version.incarnation))
    }

    /// Completes the commit of the lowest uncommitted transaction. Returns true if it was the last one.
    pub fn advance_committed(&self) -> bool {
        self.committed.fetch_add(1, SeqCst) + 1 == self.size
    }

    /// The lemma of the lazy commit: when the block is done, every transaction is executed.
    pub fn assert_all_executed(&self) {
        let executed = |slot: &Slot| slot.status.load(SeqCst) & STATE == EXECUTED;
        assert!(self.slots.iter().all(executed), "no work is left, so all transactions are executed");
    }
}

fn word(state: u64, incarnation: u32) -> u64 {
    u64::from(incarnation) << 32 | state
}

fn state(word: u64) -> u64 {
    word & STATE
}

fn incarnation(word: u64) -> u32 {
    (word >> 32) as u32
}
