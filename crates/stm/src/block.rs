//! A block: when it runs sequentially, when in parallel, and its result.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::OnceLock;
use std::time::Instant;

use crate::executor::{End, Plan, Run, Tally, message};
use crate::memory::Memory;
use crate::scheduler::CommitRule;
use crate::vm::view::{Overlay, TransactionView};
use crate::vm::{CommitSink, Proceed, Vm};
use crate::workers::Workers;

/// On two threads a transaction costs about this much more than alone, mostly for data that moves between cores:
/// blocks run in parallel only if threads gain more.
const FRAMEWORK_NS: u64 = 2_500;
/// Waking helpers costs about this much: shorter work runs sequentially.
const WAKING_NS: u64 = 100_000;
/// A measurement of fewer nanoseconds is not reliable: the first transactions find nothing in the caches.
const MEASURED_NS: u64 = 50_000;
/// While a block runs sequentially, the clock is read after this many transactions.
const MEASURED_TRANSACTIONS: usize = 8;
/// Number of locations that a transaction is expected to touch, for the initial size of the index.
const EXPECTED_LOCATIONS: usize = 4;
/// Number of writes for which room is reserved before the first.
const RESERVED_WRITES: usize = 1 << 16;

/// How blocks are executed. It never changes a result.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// How transactions commit.
    pub rule: CommitRule,
    /// Maximum distance above the lowest uncommitted transaction at which executions begin; at least 1.
    pub window: u32,
    /// From this incarnation on a transaction waits until all lower ones are committed.
    pub held_from: u32,
    /// Blocks with fewer transactions per thread run sequentially, and so does everything on one thread. Zero: all
    /// blocks run in parallel, also on one thread.
    pub transactions_per_thread: usize,
    /// Whether to continue sequentially for a while if transactions run one after another anyway.
    pub adaptive: bool,
    /// A monotonic clock in nanoseconds, such as [`monotonic_ns`](crate::monotonic_ns). With it, transactions that cost
    /// less than the framework run sequentially, and runs that save no time end.
    pub clock: Option<fn() -> u64>,
}

impl Default for Tuning {
    fn default() -> Self {
        let rule = CommitRule::Rolling;
        Tuning { rule, window: 128, held_from: 4, transactions_per_thread: 2, adaptive: true, clock: None }
    }
}

/// Nanoseconds since the first call, for [`Tuning::clock`].
pub fn monotonic_ns() -> u64 {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    BEGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// The result of executing a block.
pub struct Execution<V: Vm, S> {
    /// The VM, returned to the caller.
    pub vm: V,
    /// The sink, with the outputs it received.
    pub sink: S,
    /// The committed part, or the transaction that panicked.
    pub result: Result<CommittedTransaction<V>, TransactionPanicked>,
    /// Counters of the work done.
    pub tally: Tally,
}

/// The committed part of a block: all of it, unless the sink stopped it.
pub struct CommittedTransaction<V: Vm> {
    /// How many transactions are committed.
    pub transactions: usize,
    /// The last value at each location that they wrote.
    pub writes: FinalWrites<V>,
}

/// A transaction panicked while all lower ones were committed, so that it would also panic in a sequential execution.
/// The block has no result: nothing of it may be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("transaction {txn} of the block panicked in the VM: {message}; nothing of the block is applied")]
pub struct TransactionPanicked {
    /// The transaction.
    pub txn: usize,
    /// The panic's message.
    pub message: String,
}

/// The last value of each written location.
pub struct FinalWrites<V: Vm> {
    overlay: Overlay<V>,
    latest: Option<Latest<V>>,
}

/// The memory of the last parallel run, and how many of its transactions are committed.
type Latest<V> = (Memory<<V as Vm>::Key, <V as Vm>::Value>, u32);

impl<V: Vm> FinalWrites<V> {
    /// All of them, in the order of keys.
    pub fn into_sorted(self) -> Vec<(V::Key, V::Value)>
    where
        V::Key: Ord,
    {
        let mut writes = self.into_unordered();
        writes.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        writes
    }

    /// All of them, in an order that differs from run to run.
    pub fn into_unordered(self) -> Vec<(V::Key, V::Value)> {
        match self.latest {
            Some((memory, end)) if self.overlay.is_empty() => memory.into_values(end),
            _ => self.merged().overlay.into_entries(),
        }
    }

    /// With the latest values in the overlay.
    fn merged(mut self) -> Self {
        if let Some((memory, end)) = self.latest.take() {
            self.overlay.extend(memory.into_values(end).into_iter());
        }
        self
    }
}

impl Workers {
    /// Executes the transactions `0..transactions` of a VM. The result is that of executing them one after another.
    pub fn execute<V: Vm, S: CommitSink<V::Output>>(&mut self, vm: V, transactions: usize, sink: S) -> Execution<V, S> {
        self.execute_with(vm, transactions, sink, &Tuning::default())
    }

    /// As [`execute`](Self::execute), with another tuning.
    ///
    /// # Panics
    ///
    /// If the sink panics, or `clone` or `drop` of a type of the VM.
    pub fn execute_with<V: Vm, S: CommitSink<V::Output>>(
        &mut self,
        vm: V,
        transactions: usize,
        sink: S,
        tuning: &Tuning,
    ) -> Execution<V, S> {
        let writes = FinalWrites { overlay: Overlay::<V>::default(), latest: None };
        let tally = Tally::default();
        let block =
            Block { vm, sink, tuning: *tuning, size: transactions, next: 0, writes, tally, sequential_ns: None };
        let (block, end) = block.execute(self);
        let panicked = match end {
            End::Exhausted | End::Stopped => None,
            End::Panicked(message) => Some(TransactionPanicked { txn: block.next, message }),
            End::SinkPanicked(payload) => resume_unwind(payload),
        };
        let Block { vm, sink, next, writes, tally, .. } = block;
        let result = match panicked {
            None => Ok(CommittedTransaction { transactions: next, writes }),
            Some(panicked) => Err(panicked),
        };
        Execution { vm, sink, result, tally }
    }
}

struct Block<V: Vm, S> {
    vm: V,
    sink: S,
    tuning: Tuning,
    size: usize,
    /// The next transaction: all lower ones are committed.
    next: usize,
    writes: FinalWrites<V>,
    tally: Tally,
    /// The cost of a transaction in the last measurement.
    sequential_ns: Option<u64>,
}

impl<V: Vm, S: CommitSink<V::Output>> Block<V, S> {
    /// Alternates sequential and parallel parts.
    fn execute(mut self, workers: &mut Workers) -> (Self, End) {
        let threads = workers.threads();
        loop {
            let small = self.size - self.next < self.tuning.transactions_per_thread.saturating_mul(threads);
            let parallel_in_any_case = self.tuning.rule == CommitRule::Lazy || self.tuning.transactions_per_thread == 0;
            let alone = !parallel_in_any_case && (threads == 1 || small);
            let before = self.next;
            let end = self.execute_sequentially(if alone { self.size } else { workers.pace.left() }, threads);
            workers.pace.pass(self.next - before);
            if !matches!(end, End::Exhausted) || self.next == self.size {
                return (self, end);
            }
            let before = self.next;
            let size = (self.size - before).min(workers.pace.run_at_most());
            let end;
            (self, end) = self.execute_in_parallel(size, workers);
            if !matches!(end, End::Exhausted) {
                return (self, end);
            }
            workers.pace.learn(self.next - before == size);
            if self.next == self.size {
                return (self, end);
            }
            self.writes = self.writes.merged();
        }
    }

    fn execute_in_parallel(self, size: usize, workers: &mut Workers) -> (Self, End) {
        let Block { vm, sink, tuning, size: all, next, writes, mut tally, sequential_ns } = self;
        let plan = Plan {
            first: next,
            size: size as u32,
            rule: tuning.rule,
            window: tuning.window.max(1),
            held_from: tuning.held_from.max(1),
            expected_locations: size * EXPECTED_LOCATIONS,
            threads: workers.threads(),
            yields: tuning.adaptive,
            sequential: tuning.clock.zip(sequential_ns),
        };
        let ran = workers.run(Run::new(vm, writes.overlay, sink, plan)).finish();
        tally.add(ran.tally);
        tally.runs += 1;
        let writes = FinalWrites { overlay: ran.below, latest: Some((ran.memory, ran.committed)) };
        let next = next + ran.committed as usize;
        (Block { vm: ran.vm, sink: ran.sink, tuning, size: all, next, writes, tally, sequential_ns }, ran.end)
    }

    /// Executes at least this many transactions in place, and continues while they are too cheap to run in parallel.
    fn execute_sequentially(&mut self, at_least: usize, threads: usize) -> End {
        let first = self.next;
        let last = self.size.min(first.saturating_add(at_least));
        // Most transactions write: growing step by step would move all entries repeatedly.
        self.writes.overlay.reserve((last - first).min(RESERVED_WRITES));
        // These flags tell what was running when a panic happens.
        let (next, in_sink) = (Cell::new(first), Cell::new(false));
        let mut gauge = self.gauge(threads);
        let result = catch_unwind(AssertUnwindSafe(|| {
            while next.get() < self.size && (next.get() < last || gauge.says_sequential(next.get() - first)) {
                let mut view = TransactionView::sequential(&self.vm, &mut self.writes.overlay);
                let output = self.vm.execute(next.get(), &mut view);
                in_sink.set(true);
                let output = output.expect("only a view makes `Blocked`, and this one does not");
                let proceed = self.sink.commit(next.get(), output);
                in_sink.set(false);
                next.set(next.get() + 1);
                if proceed == Proceed::Stop {
                    return End::Stopped;
                }
            }
            End::Exhausted
        }));
        self.next = next.get();
        self.sequential_ns = gauge.each_ns.or(self.sequential_ns);
        self.tally.sequential += (self.next - first) as u64;
        match result {
            Ok(end) => end,
            Err(payload) if in_sink.get() => End::SinkPanicked(payload),
            Err(payload) => End::Panicked(message(payload.as_ref())),
        }
    }

    fn gauge(&self, threads: usize) -> Gauge {
        let rolling = self.tuning.rule == CommitRule::Rolling;
        let clock = self.tuning.clock.filter(|_| rolling && threads > 1);
        let worth_ns = FRAMEWORK_NS / (threads as u64 - 1).max(1);
        let since = clock.map_or(0, |clock| clock());
        Gauge { clock, since, measured: 0, each_ns: None, remaining: self.size - self.next, worth_ns }
    }
}

/// Measures the cost of transactions while they run sequentially.
struct Gauge {
    clock: Option<fn() -> u64>,
    since: u64,
    measured: usize,
    each_ns: Option<u64>,
    remaining: usize,
    /// Transactions that cost more are worth running in parallel.
    worth_ns: u64,
}

impl Gauge {
    /// Whether the next transaction runs sequentially, after `done` transactions of this part.
    fn says_sequential(&mut self, done: usize) -> bool {
        let Some(clock) = self.clock else { return false };
        let early = done < MEASURED_TRANSACTIONS && done.is_power_of_two();
        if !done.is_multiple_of(MEASURED_TRANSACTIONS) && !early {
            return true;
        }
        let now = clock();
        let (elapsed, count) = (now.saturating_sub(self.since), (done - self.measured) as u64);
        if count == 0 || elapsed < MEASURED_NS {
            return true;
        }
        (self.since, self.measured) = (now, done);
        // The lower of two measurements: the thread may have been preempted during one of them.
        let each_ns = elapsed / count;
        let Some(before_ns) = self.each_ns.replace(each_ns) else { return true };
        let each_ns = each_ns.min(before_ns);
        each_ns < self.worth_ns || each_ns.saturating_mul((self.remaining - done) as u64) < WAKING_NS
    }
}
