//! Block-STM compared with the best sequential loop: the peer-to-peer program of the paper (8 reads, 5 writes) with
//! and without work, between few accounts and many.
//!
//! In each round every way of running a block runs for a while, one after another, so a ratio compares measurements
//! within seconds. The medians over the rounds are reported. `N_machine` is the work alone, divided among N threads:
//! the machine's current speed, which nothing can exceed. Two loops are sequential: one leaves the state before the
//! block unchanged and returns the changes, as `stm` does, and one changes the state in place. Ratios are relative to
//! the first; the second shows the cost of this.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hashbrown::HashMap;
use kernel::Dice;
use serde_json::{Value, json};
use stm::{Blocked, TransactionView, Tuning, Vm, Workers};

use crate::measurement::{BenchResult, BenchShown, BenchSteps, Measurement, count, threads};
use crate::scaling::median;

/// Block-STM compared with the best sequential loop: payments of 8 reads and 5 writes, with and without work.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  walras-lab bench stm --json
  walras-lab bench stm --accounts 100 --work-us 20 --threads 1,2,16")]
pub struct StmOptions {
    /// Numbers of accounts.
    #[arg(long, value_delimiter = ',', default_values_t = [2usize, 10, 100, 1_000, 10_000], value_parser = count(2..))]
    pub accounts: Vec<usize>,
    /// Microseconds of work in a transaction.
    #[arg(long, value_delimiter = ',', default_values_t = [0u32, 2, 20],
          value_parser = clap::value_parser!(u32).range(..=10_000))]
    pub work_us: Vec<u32>,
    /// Numbers of threads.
    #[arg(long, value_delimiter = ',', default_values_t = [1usize, 2], value_parser = threads())]
    pub threads: Vec<usize>,
    /// Transactions in a block.
    #[arg(long, default_value_t = 10_000, value_parser = count(1..))]
    pub transactions: usize,
    /// Measured rounds; medians are reported.
    #[arg(long, default_value_t = 5, value_parser = count(1..))]
    pub rounds: usize,
}

impl Measurement for StmOptions {
    fn measured(self, say: &mut BenchSteps) -> BenchResult {
        Ok(BenchShown::Figures(run(&self, say)))
    }
}

/// A payment from one account to another.
type Pair = (u32, u32);

/// Fields of an account; each is a location.
const BALANCE: u64 = 0;
const SEQUENCE: u64 = 1;
const EVENTS: u64 = 2;
const KEY: u64 = 3;
const FLAGS: u64 = 4;
/// A location that all transactions read.
const SETTINGS: u64 = u64::MAX;

fn field(account: u32, field: u64) -> u64 {
    u64::from(account) << 3 | field
}

/// The operations on a state that a program needs.
trait State {
    type Error;
    fn read(&mut self, key: u64) -> Result<u64, Self::Error>;
    fn write(&mut self, key: u64, value: u64);
}

/// A payment: 8 reads, work, 5 writes.
#[inline]
fn pay<S: State>((from, to): Pair, turns: u64, state: &mut S) -> Result<u64, S::Error> {
    let settings = state.read(SETTINGS)?;
    let key = state.read(field(from, KEY))?;
    let sequence = state.read(field(from, SEQUENCE))?;
    let balance = state.read(field(from, BALANCE))?;
    let sent = state.read(field(from, EVENTS))?;
    let flags = state.read(field(to, FLAGS))?;
    let credit = state.read(field(to, BALANCE))?;
    let received = state.read(field(to, EVENTS))?;
    let amount = balance.min(1 + (key ^ flags ^ settings) % 10);
    work(turns);
    state.write(field(from, SEQUENCE), sequence + 1);
    state.write(field(from, BALANCE), balance - amount);
    state.write(field(from, EVENTS), sent + 1);
    state.write(field(to, BALANCE), credit + amount);
    state.write(field(to, EVENTS), received + 1);
    Ok(amount)
}

/// Work of this many turns; never inlined, so the code is the same for every caller.
#[inline(never)]
fn work(turns: u64) {
    let mut mixed = turns;
    for turn in 0..turns {
        mixed = black_box(mixed ^ turn).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    black_box(mixed);
}

type Base = HashMap<u64, u64>;

/// A block of payments over a state.
#[derive(Clone)]
struct Payments {
    base: Arc<Base>,
    pairs: Arc<Vec<Pair>>,
    turns: u64,
}

impl Vm for Payments {
    type Key = u64;
    type Value = u64;
    type Output = u64;

    fn load(&self, key: &u64) -> u64 {
        self.base[key]
    }

    fn execute(&self, txn: usize, view: &mut TransactionView<'_, Self>) -> Result<u64, Blocked> {
        pay(self.pairs[txn], self.turns, &mut Seen(view))
    }
}

struct Seen<'a, 'v>(&'a mut TransactionView<'v, Payments>);

impl State for Seen<'_, '_> {
    type Error = Blocked;
    fn read(&mut self, key: u64) -> Result<u64, Blocked> {
        self.0.read(&key)
    }
    fn write(&mut self, key: u64, value: u64) {
        self.0.write(key, value);
    }
}

/// The sequential loop that returns the changes.
struct Above<'a> {
    base: &'a Base,
    changed: Base,
}

impl State for Above<'_> {
    type Error = std::convert::Infallible;
    fn read(&mut self, key: u64) -> Result<u64, Self::Error> {
        Ok(*self.changed.get(&key).unwrap_or_else(|| &self.base[&key]))
    }
    fn write(&mut self, key: u64, value: u64) {
        self.changed.insert(key, value);
    }
}

/// The sequential loop that changes the state in place.
struct InPlace(Base);

impl State for InPlace {
    type Error = std::convert::Infallible;
    fn read(&mut self, key: u64) -> Result<u64, Self::Error> {
        Ok(self.0[&key])
    }
    fn write(&mut self, key: u64, value: u64) {
        self.0.insert(key, value);
    }
}

/// Runs everything; `say` is called with each step.
pub fn run(options: &StmOptions, say: &mut dyn FnMut(&str)) -> Value {
    let turns_per_us = calibrate();
    let mut pools: Vec<Workers> = options.threads.iter().map(|&threads| Workers::new(threads)).collect();
    let mut runs = Vec::new();
    for &work_us in &options.work_us {
        for &accounts in &options.accounts {
            say(&format!("{accounts} accounts, {work_us} µs of work"));
            let payments = payments(accounts, options.transactions, u64::from(work_us) * turns_per_us);
            let figures = measure(&payments, options.rounds, &mut pools);
            runs.push(json!({ "accounts": accounts, "work_us": work_us, "figures": figures }));
        }
    }
    say("the framework alone");
    let framework: Vec<Value> = options
        .accounts
        .iter()
        .map(|&accounts| {
            let us = framework(&payments(accounts, options.transactions, 0), options.rounds);
            json!({ "accounts": accounts, "us_per_transaction": us })
        })
        .collect();
    json!({ "transactions_per_block": options.transactions, "runs": runs, "framework": framework })
}

fn payments(accounts: usize, transactions: usize, turns: u64) -> Payments {
    let mut random = Dice::new(accounts as u64);
    let mut base: Base = [(SETTINGS, 3)].into();
    for account in 0..accounts as u32 {
        let fields = [(BALANCE, 1_000), (SEQUENCE, 0), (EVENTS, 0), (KEY, 77), (FLAGS, 1)];
        base.extend(fields.map(|(name, value)| (field(account, name), value)));
    }
    let pair = |random: &mut Dice| {
        let from = random.below(accounts as u64);
        let to = (from + 1 + random.below(accounts as u64 - 1)) % accounts as u64;
        (from as u32, to as u32)
    };
    let pairs = (0..transactions).map(|_| pair(&mut random)).collect();
    Payments { base: Arc::new(base), pairs: Arc::new(pairs), turns }
}

/// The number of turns of work in a microsecond on this machine.
fn calibrate() -> u64 {
    let turns = 2_000_000u64;
    let time = || {
        let begun = Instant::now();
        work(turns);
        begun.elapsed()
    };
    let best = (0..9).map(|_| time()).min().unwrap_or(Duration::from_millis(1));
    (turns as f64 / (best.as_secs_f64() * 1e6)).round() as u64
}

/// Blocks as a node runs them.
fn as_used() -> Tuning {
    Tuning { clock: Some(stm::monotonic_ns), ..Tuning::default() }
}

/// Blocks that always use the parallel machinery.
fn always_parallel() -> Tuning {
    Tuning { transactions_per_thread: 0, adaptive: false, ..Tuning::default() }
}

fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let begun = Instant::now();
    let result = work();
    (begun.elapsed().as_secs_f64() * 1e6, result)
}

fn sequential(payments: &Payments) -> (f64, Base) {
    timed(|| {
        let mut state = Above { base: &payments.base, changed: Base::default() };
        let mut outputs = Vec::new();
        for &pair in payments.pairs.iter() {
            let Ok(output) = pay(pair, payments.turns, &mut state);
            outputs.push(output);
        }
        black_box(outputs);
        state.changed
    })
}

fn in_place(payments: &Payments) -> f64 {
    let mut state = InPlace((*payments.base).clone());
    let (time, outputs) = timed(|| {
        let mut outputs = Vec::new();
        for &pair in payments.pairs.iter() {
            let Ok(output) = pay(pair, payments.turns, &mut state);
            outputs.push(output);
        }
        outputs
    });
    black_box((outputs, state.0));
    time
}

/// One block: microseconds, its changes, and its counters.
fn block(workers: &mut Workers, payments: &Payments, tuning: &Tuning) -> (f64, Vec<(u64, u64)>, stm::Tally) {
    let vm = payments.clone();
    let (time, (writes, tally)) = timed(|| {
        let execution = workers.execute_with(vm, payments.pairs.len(), Vec::new(), tuning);
        let committed = execution.result.unwrap_or_else(|panicked| panic!("{panicked}"));
        black_box(execution.sink);
        (committed.writes.into_unordered(), execution.tally)
    });
    (time, writes, tally)
}

/// The machine's current speed with this many threads: only the work of the block, divided evenly.
fn machine(payments: &Payments, threads: usize) -> f64 {
    let share = payments.pairs.len() as u64 * payments.turns / threads as u64;
    let (time, ()) = timed(|| {
        std::thread::scope(|scope| {
            (1..threads).for_each(|_| drop(scope.spawn(move || work(share))));
            work(share);
        });
    });
    time
}

/// Each way runs repeatedly for this long in each round, and the best block counts: the system needs a while to give
/// a second thread its own processor.
const SETTLING: Duration = Duration::from_millis(300);

fn best_of(mut block: impl FnMut() -> f64) -> f64 {
    let begun = Instant::now();
    let mut best = block();
    while begun.elapsed() < SETTLING {
        best = best.min(block());
    }
    best
}

fn measure(payments: &Payments, rounds: usize, pools: &mut [Workers]) -> Value {
    let each = payments.pairs.len() as f64;
    let mut times: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut ratios: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut tallies = BTreeMap::new();
    let (_, changed) = sequential(payments);
    for _ in 0..rounds {
        let best = best_of(|| sequential(payments).0);
        let mut note = |name: String, time: f64| {
            ratios.entry(name.clone()).or_default().push(best / time);
            times.entry(name).or_default().push(time / each);
        };
        note("sequential".into(), best);
        note("in_place".into(), best_of(|| in_place(payments)));
        for workers in pools.iter_mut() {
            let threads = workers.threads();
            note(format!("{threads}_machine"), best_of(|| machine(payments, threads)));
            let time = best_of(|| {
                let (time, writes, tally) = block(workers, payments, &as_used());
                assert_eq!(writes.into_iter().collect::<Base>(), changed, "the result is the sequential one");
                tallies.insert(threads.to_string(), tally);
                time
            });
            note(threads.to_string(), time);
        }
    }
    let medians = |values: BTreeMap<String, Vec<f64>>| -> BTreeMap<String, f64> {
        values.into_iter().map(|(name, values)| (name, median(values))).collect()
    };
    let executions: BTreeMap<String, Value> =
        tallies.into_iter().map(|(name, tally)| (name, tally_json(&tally))).collect();
    json!({
        "us_per_transaction": medians(times),
        "times_sequential": medians(ratios),
        "threads": executions,
    })
}

fn tally_json(tally: &stm::Tally) -> Value {
    json!({
        "sequential": tally.sequential,
        "executions": tally.executions,
        "blocked": tally.blocked,
        "validations": tally.validations,
        "aborts": tally.aborts,
        "parallel_runs": tally.runs,
    })
}

/// The additional cost of a transaction without work over the sequential loop, when it uses the parallel machinery:
/// on one thread, where time is processor time, and on two, where twice the time is a bound.
fn framework(payments: &Payments, rounds: usize) -> Value {
    let each = payments.pairs.len() as f64;
    let mut pools = [Workers::new(1), Workers::new(2)];
    let mut costs = [Vec::new(), Vec::new()];
    for round in 0..=rounds * 3 {
        let (best, _) = sequential(payments);
        for (workers, costs) in pools.iter_mut().zip(&mut costs) {
            let (time, _, _) = block(workers, payments, &always_parallel());
            if round > 0 {
                costs.push((time * workers.threads() as f64 - best) / each);
            }
        }
    }
    let [one, two] = costs.map(median);
    json!({ "1": one, "2": two })
}
