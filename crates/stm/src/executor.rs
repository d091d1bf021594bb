//! One parallel run over a block: the work of each thread, and the commit ladder.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::counters::Apart;
use crate::memory::{Memory, NumberRead, Read, Version};
use crate::pace::{CHECKED_COMMITS, RunTimes};
use crate::parking::Parking;
use crate::scheduler::{CommitRule, Head, Scheduler, Task};
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Mutex, MutexGuard, hint, lock};
use crate::vm::view::{Accesses, Locations, Obstacle, Overlay, Speculation, TransactionView};
use crate::vm::{CommitSink, Proceed, Vm};
use crate::workers::Work;

/// Number of looks for work before a thread parks.
const LOOKS_BEFORE_PARKING: u32 = if cfg!(test) { 1 } else { 200 };
/// Number of commits over which conflicts are counted.
const JUDGED_COMMITS: u32 = 64;
/// Number of conflicts per helper in that time that cancels what a helper gains: each conflict is an execution, or
/// most of one, in vain.
const CONFLICTS_AT_MOST: u32 = JUDGED_COMMITS / 2;
/// The version of a record that has not been used.
const NO_VERSION: Version = Version { txn: u32::MAX, incarnation: 0 };

/// The parameters of a run besides the VM.
pub(crate) struct Plan {
    /// The index of the first transaction, and the number of transactions in this run.
    pub first: usize,
    pub size: u32,
    pub rule: CommitRule,
    pub window: u32,
    pub held_from: u32,
    pub expected_locations: usize,
    pub threads: usize,
    /// Whether to end the run when conflicts make its transactions run one after another.
    pub yields: bool,
    /// A clock, and the sequential cost of a transaction in nanoseconds: the run ends when it is not faster.
    pub sequential: Option<(fn() -> u64, u64)>,
}

/// What the latest incarnation of a transaction left for its validation and commit.
#[repr(align(64))]
struct Record<V: Vm> {
    version: Version,
    reads: Vec<Read>,
    number_reads: Vec<NumberRead<V::Value>>,
    written: Locations,
    deltas: bool,
    ran_at_head: bool,
    /// A panic is also an output of an incarnation; it counts only if it is repeated at the head.
    output: Option<Result<V::Output, String>>,
}

impl<V: Vm> Record<V> {
    /// Clears it for a later transaction, which reuses the memory.
    fn clear(&mut self) {
        self.reads.clear();
        self.number_reads.clear();
        self.written.clear();
    }
}

impl Plan {
    /// Maximum number of transactions in progress at once: the window, plus one per thread, which may find the window
    /// open while another thread takes its last place. A power of two.
    fn records(&self) -> usize {
        let under_way = match self.rule {
            CommitRule::Lazy => self.size,
            CommitRule::Rolling => self.size.min(self.window.saturating_add(self.threads as u32)),
        };
        (under_way as usize).next_power_of_two()
    }
}

/// How a run ended.
pub(crate) enum End {
    /// All of its transactions are committed, or it yielded before the next one.
    Exhausted,
    /// The sink stopped the block.
    Stopped,
    /// A transaction panicked on committed state.
    Panicked(String),
    /// The sink panicked.
    SinkPanicked(Box<dyn std::any::Any + Send>),
}

struct Ladder<S> {
    sink: Option<S>,
    end: End,
    /// Commits since the last check.
    judged: u32,
    times: RunTimes,
    committed: u32,
}

/// Counters of the work of all threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Executions, each of an incarnation or a part of one.
    pub executions: u64,
    /// Executions that met an estimate.
    pub blocked: u64,
    /// Validations, those at commit included.
    pub validations: u64,
    /// Incarnations found invalid.
    pub aborts: u64,
    /// Transactions that ran sequentially.
    pub sequential: u64,
    /// Parallel runs.
    pub runs: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Tally) {
        self.executions += other.executions;
        self.blocked += other.blocked;
        self.validations += other.validations;
        self.aborts += other.aborts;
        self.sequential += other.sequential;
        self.runs += other.runs;
    }
}

pub(crate) struct Run<V: Vm, S> {
    vm: V,
    below: Overlay<V>,
    plan: Plan,
    memory: Memory<V::Key, V::Value>,
    scheduler: Scheduler,
    /// A ring with as many records as transactions can be in progress at once: the record of a committed one is
    /// reused.
    records: Box<[Mutex<Record<V>>]>,
    ladder: Apart<Mutex<Ladder<S>>>,
    parking: Parking,
    tally: Mutex<Tally>,
    /// Aborts and waits since the last check.
    conflicts: Apart<AtomicU32>,
    /// Threads that have begun.
    at_work: AtomicU32,
}

/// Data that a thread keeps between tasks.
struct Own<V: Vm> {
    accesses: Accesses<V>,
    tally: Tally,
}

/// The result of a finished run.
pub(crate) struct Ran<V: Vm, S> {
    pub vm: V,
    pub below: Overlay<V>,
    pub memory: Memory<V::Key, V::Value>,
    pub sink: S,
    pub end: End,
    pub committed: u32,
    pub tally: Tally,
}

impl<V: Vm, S: CommitSink<V::Output>> Run<V, S> {
    pub fn new(vm: V, below: Overlay<V>, sink: S, plan: Plan) -> Self {
        let record = || Record {
            version: NO_VERSION,
            reads: Vec::new(),
            number_reads: Vec::new(),
            written: Locations::new(),
            deltas: false,
            ran_at_head: false,
            output: None,
        };
        Run {
            vm,
            below,
            memory: Memory::new(plan.expected_locations),
            scheduler: Scheduler::new(plan.size, plan.rule, plan.window, plan.held_from),
            records: (0..plan.records()).map(|_| Mutex::new(record())).collect(),
            ladder: Apart(Mutex::new(Ladder {
                sink: Some(sink),
                end: End::Exhausted,
                judged: 0,
                times: RunTimes::new(plan.sequential.map_or(0, |(clock, _)| clock())),
                committed: 0,
            })),
            parking: Parking::new(),
            tally: Mutex::new(Tally::default()),
            conflicts: Apart(AtomicU32::new(0)),
            at_work: AtomicU32::new(0),
            plan,
        }
    }

    /// Dismantles the run, after all threads have left it.
    pub fn finish(mut self) -> Ran<V, S> {
        if self.plan.rule == CommitRule::Lazy {
            self.commit_all();
        }
        let inner = |error: std::sync::PoisonError<_>| error.into_inner();
        let ladder = self.ladder.0.into_inner().unwrap_or_else(inner);
        let tally = *lock(&self.tally);
        Ran {
            vm: self.vm,
            below: self.below,
            memory: self.memory,
            sink: ladder.sink.expect("the sink is given back once"),
            end: ladder.end,
            committed: ladder.committed,
            tally,
        }
    }

    /// The lazy commit: the whole block at once, when it is done.
    fn commit_all(&mut self) {
        self.scheduler.assert_all_executed();
        for txn in 0..self.plan.size {
            let record = self.record(txn);
            debug_assert!(self.is_valid(&record, txn), "no validation is left to be done, so all are valid");
            if !self.commit(&mut lock(&self.ladder), txn, record) {
                return;
            }
        }
    }

    fn record(&self, txn: u32) -> MutexGuard<'_, Record<V>> {
        lock(&self.records[txn as usize & (self.records.len() - 1)])
    }

    fn perform(&self, task: Task, own: &mut Own<V>) -> Option<Task> {
        match task {
            Task::Execute(version) => self.execute(version, own),
            Task::Validate(version) => self.validate(version, own),
        }
    }

    /// Upon an execution task: run the VM; publish writes, then the read set, then the status.
    fn execute(&self, version: Version, own: &mut Own<V>) -> Option<Task> {
        let txn = version.txn;
        loop {
            let committed = self.scheduler.committed();
            let is_final = committed == txn;
            own.accesses.begin();
            own.tally.executions += 1;
            let output = self.run_vm(version, is_final, &mut own.accesses);
            match own.accesses.obstacle {
                Some(Obstacle::Estimate { of }) => {
                    debug_assert!(!is_final, "committed transactions leave no estimates");
                    own.tally.blocked += 1;
                    self.conflicts.fetch_add(1, Ordering::Relaxed);
                    if self.scheduler.suspend(version, of) {
                        return None;
                    }
                }
                Some(Obstacle::Inconsistent) => debug_assert!(!is_final, "committed values do not change"),
                None => {
                    let output = output.map(|output| output.expect("only a view makes `Blocked`, and it knows"));
                    return self.publish(version, output, committed, own);
                }
            }
        }
    }

    #[allow(clippy::type_complexity)]
    fn run_vm(
        &self,
        version: Version,
        is_final: bool,
        accesses: &mut Accesses<V>,
    ) -> Result<Result<V::Output, crate::Blocked>, String> {
        let Run { vm, below, memory, .. } = self;
        let speculation = Speculation { vm, below, memory, version, is_final, accesses };
        let txn = self.plan.first + version.txn as usize;
        let run = AssertUnwindSafe(|| vm.execute(txn, &mut TransactionView::speculative(speculation)));
        catch_unwind(run).map_err(|payload| message(payload.as_ref()))
    }

    fn publish(
        &self,
        version: Version,
        output: Result<V::Output, String>,
        committed: u32,
        own: &mut Own<V>,
    ) -> Option<Task> {
        let mut record = self.record(version.txn);
        let is_its_own = record.version.txn == version.txn;
        debug_assert!(is_its_own || record.version == NO_VERSION || record.version.txn < self.scheduler.committed());
        if output.is_err() {
            own.accesses.discard_writes();
        }
        record.deltas = own.accesses.has_deltas();
        let surprising = own.accesses.record(&self.memory, version, committed, &mut record.written);
        std::mem::swap(&mut record.reads, &mut own.accesses.reads);
        std::mem::swap(&mut record.number_reads, &mut own.accesses.number_reads);
        record.version = version;
        record.ran_at_head = committed == version.txn;
        record.output = Some(output);
        drop(record);
        self.scheduler.finish_execution(version, surprising)
    }

    /// Upon a validation task: read again what the incarnation read, and abort it if the answers differ.
    fn validate(&self, version: Version, own: &mut Own<V>) -> Option<Task> {
        let record = self.record(version.txn);
        own.tally.validations += 1;
        if record.version != version || self.is_valid(&record, version.txn) {
            return None;
        }
        if !self.scheduler.try_abort(version) {
            return None;
        }
        own.tally.aborts += 1;
        self.conflicts.fetch_add(1, Ordering::Relaxed);
        record.written.iter().for_each(|&location| self.memory.mark_estimate(location, version.txn));
        drop(record);
        self.scheduler.finish_abort(version)
    }

    fn is_valid(&self, record: &Record<V>, txn: u32) -> bool {
        record.reads.iter().all(|read| self.memory.still_valid(read, txn))
            && record.number_reads.iter().all(|read| self.memory.number_still_valid(read, txn))
    }

    /// Climbs the commit ladder, unless another thread is on it. Returns the execution that the next commit needs.
    fn climb(&self, own: &mut Own<V>) -> Option<Task> {
        while self.scheduler.head_is_ready() && !self.scheduler.counters.is_done() {
            let Ok(mut ladder) = self.ladder.try_lock() else { return None };
            if self.scheduler.counters.is_done() {
                return None;
            }
            if let Some(task) = self.commit_heads(&mut ladder, own) {
                return Some(task);
            }
        }
        None
    }

    /// Commits while the lowest uncommitted transaction is valid.
    fn commit_heads(&self, ladder: &mut Ladder<S>, own: &mut Own<V>) -> Option<Task> {
        loop {
            let version = match self.scheduler.head() {
                Head::Busy => return None,
                Head::Execute(version) => {
                    self.scheduler.counters.begin();
                    return Some(Task::Execute(version));
                }
                Head::Executed(version) => version,
            };
            let txn = version.txn;
            let record = self.record(txn);
            if record.version != version {
                continue;
            }
            own.tally.validations += 1;
            let valid = record.ran_at_head || self.is_valid(&record, txn);
            debug_assert!(!record.ran_at_head || self.is_valid(&record, txn), "what ran on committed state is valid");
            let panicked = matches!(record.output, Some(Err(_)));
            if valid && (!panicked || record.ran_at_head) {
                if !self.scheduler.try_commit(version) {
                    continue;
                }
                if !self.commit(ladder, txn, record) || self.ends_after(ladder) {
                    self.scheduler.counters.set_done();
                    return None;
                }
            } else if self.scheduler.try_abort(version) {
                own.tally.aborts += 1;
                self.conflicts.fetch_add(1, Ordering::Relaxed);
                record.written.iter().for_each(|&location| self.memory.mark_estimate(location, txn));
                drop(record);
                self.scheduler.counters.begin();
                return Some(Task::Execute(self.scheduler.restart_head(version)));
            }
        }
    }

    /// Commits one transaction: increments become values, its output goes to the sink. False if it is the last one.
    fn commit(&self, ladder: &mut Ladder<S>, txn: u32, mut record: MutexGuard<'_, Record<V>>) -> bool {
        let output = match record.output.take().expect("an executed transaction has an output") {
            Ok(output) => output,
            Err(message) => {
                ladder.end = End::Panicked(message);
                return false;
            }
        };
        if record.deltas {
            record.written.iter().for_each(|&location| self.memory.materialise(location, txn));
        }
        record.clear();
        drop(record);
        let sink = ladder.sink.as_mut().expect("the sink is there until the end");
        let index = self.plan.first + txn as usize;
        let proceed = catch_unwind(AssertUnwindSafe(|| sink.commit(index, output)));
        ladder.committed = txn + 1;
        let is_last = self.scheduler.advance_committed();
        match proceed {
            Ok(Proceed::Continue) => !is_last,
            Ok(Proceed::Stop) => {
                ladder.end = End::Stopped;
                false
            }
            Err(payload) => {
                ladder.end = End::SinkPanicked(payload);
                false
            }
        }
    }

    /// Whether the run should end because its transactions run one after another anyway, or faster that way.
    fn ends_after(&self, ladder: &mut Ladder<S>) -> bool {
        ladder.judged += 1;
        if !ladder.judged.is_multiple_of(CHECKED_COMMITS) || !self.plan.yields {
            return false;
        }
        let at_most = (self.plan.threads as u32).saturating_sub(1).saturating_mul(CONFLICTS_AT_MOST);
        let conflicts = match ladder.judged < JUDGED_COMMITS {
            true => self.conflicts.load(Ordering::Relaxed),
            false => {
                ladder.judged = 0;
                self.conflicts.swap(0, Ordering::Relaxed)
            }
        };
        conflicts > at_most || self.is_slow(ladder)
    }

    fn is_slow(&self, ladder: &mut Ladder<S>) -> bool {
        let is_alone = self.at_work.load(Ordering::Relaxed) < 2;
        let check =
            |(clock, each_ns): (fn() -> u64, u64)| ladder.times.is_slow(clock(), each_ns, ladder.committed, is_alone);
        self.plan.sequential.is_some_and(check)
    }
}

impl<V: Vm, S: CommitSink<V::Output>> Work for Run<V, S> {
    /// Works until the run is done. A panic in here is a defect, or comes from the user's `clone` or `drop`: it ends
    /// the run for all threads and is resumed in the caller.
    fn work(&self) {
        self.at_work.fetch_add(1, Ordering::Relaxed);
        let result = catch_unwind(AssertUnwindSafe(|| self.work_until_done()));
        self.scheduler.counters.set_done();
        self.parking.wake_all();
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    }
}

impl<V: Vm, S: CommitSink<V::Output>> Run<V, S> {
    fn work_until_done(&self) {
        let mut own = Own { accesses: Accesses::new(), tally: Tally::default() };
        let mut looks = 0;
        while !self.scheduler.counters.is_done() {
            let mut task = self.climb(&mut own).or_else(|| self.scheduler.next_task());
            if task.is_some() {
                looks = 0;
                while let Some(next) = task {
                    task = self.perform(next, &mut own);
                }
                self.scheduler.counters.finish();
                self.parking.wake_if(|| self.scheduler.has_work());
            } else if looks < LOOKS_BEFORE_PARKING {
                looks += 1;
                hint::spin_loop();
            } else {
                looks = 0;
                self.parking.park_unless(|| self.scheduler.has_work());
            }
        }
        lock(&self.tally).add(own.tally);
    }
}

/// The message of a panic.
pub(crate) fn message(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}
