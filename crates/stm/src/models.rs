//! Model tests: `shuttle` explores interleavings of whole runs of a few transactions, and compares each result with
//! the sequential one. Every unit test of this crate runs on shuttle's threads; `tests/` runs on real ones.

use std::collections::BTreeMap;

use shuttle::scheduler::{PctScheduler, RandomScheduler};

use crate::{
    Blocked, CommitRule, CommitSink, Number, Proceed, TransactionPanicked, TransactionView, Tuning, Vm, Workers,
};

/// Explores interleavings: half of them at random, half by priorities that change a few times (PCT).
fn model(interleavings: usize, check: impl Fn() + Clone + Send + Sync + 'static) {
    let mut config = shuttle::Config::new();
    config.stack_size = 1 << 20;
    let random = RandomScheduler::new(interleavings / 2);
    shuttle::Runner::new(random, config.clone()).run(check.clone());
    shuttle::Runner::new(PctScheduler::new(4, interleavings / 2), config).run(check);
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Held(i64);

impl Number for Held {
    fn to_number(&self) -> i128 {
        self.0.into()
    }
    fn from_number(number: i128) -> Self {
        Held(number as i64)
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Adds one to a key by reading and writing it.
    Increment(u8),
    /// Writes the sum of two keys to a third.
    Sum(u8, u8, u8),
    /// Writes to the key that another key's value names, from 4 on.
    WriteSeen(u8),
    /// Adds to a key within 0..=3.
    Add(u8, i8),
    /// Panics if a key is even.
    PanicIfEven(u8),
}

use Step::*;

#[derive(Clone)]
struct Steps(&'static [&'static [Step]]);

impl Vm for Steps {
    type Key = u8;
    type Value = Held;
    type Output = i64;

    fn load(&self, _: &u8) -> Held {
        Held(1)
    }

    fn execute(&self, txn: usize, view: &mut TransactionView<'_, Self>) -> Result<i64, Blocked> {
        let mut seen = 0;
        for &step in self.0[txn] {
            match step {
                Increment(key) => {
                    let value = view.read(&key)?.0 + 1;
                    view.write(key, Held(value));
                    seen += value;
                }
                Sum(one, other, to) => {
                    let sum = view.read(&one)?.0 + view.read(&other)?.0;
                    view.write(to, Held(sum));
                }
                WriteSeen(key) => {
                    let seen = view.read(&key)?.0;
                    view.write(4 + seen as u8 % 3, Held(seen));
                }
                Add(key, by) => seen = seen * 2 + i64::from(view.add(&key, by.into(), 0..=3)?),
                PanicIfEven(key) => std::assert!(view.read(&key)?.0 % 2 != 0, "planned"),
            }
        }
        Ok(seen)
    }
}

type Outcome = (Vec<i64>, Result<Vec<(u8, Held)>, TransactionPanicked>);

/// The transactions one after another on a map: it shares no code with the crate.
fn sequential(steps: &Steps) -> Outcome {
    let mut map: BTreeMap<u8, i64> = BTreeMap::new();
    let mut outputs = Vec::new();
    for steps in steps.0 {
        let mut seen = 0;
        for &step in *steps {
            let at = |key: u8| map.get(&key).copied().unwrap_or(1);
            match step {
                Increment(key) => {
                    let value = at(key) + 1;
                    map.insert(key, value);
                    seen += value;
                }
                Sum(one, other, to) => drop(map.insert(to, at(one) + at(other))),
                WriteSeen(key) => drop(map.insert(4 + at(key) as u8 % 3, at(key))),
                Add(key, by) => {
                    let sum = at(key) + i64::from(by);
                    let is_within = (0..=3).contains(&sum);
                    seen = seen * 2 + i64::from(is_within);
                    if is_within {
                        map.insert(key, sum);
                    }
                }
                PanicIfEven(key) => std::assert!(at(key) % 2 != 0, "planned"),
            }
        }
        outputs.push(seen);
    }
    (outputs, Ok(map.into_iter().map(|(key, value)| (key, Held(value))).collect()))
}

fn outcome(threads: usize, steps: &Steps, tuning: &Tuning) -> Outcome {
    let execution = Workers::new(threads).execute_with(steps.clone(), steps.0.len(), Vec::new(), tuning);
    (execution.sink, execution.result.map(|committed| committed.writes.into_sorted()))
}

/// Explores a program with two and three threads, under both commit rules.
fn explore(steps: &'static [&'static [Step]]) {
    let steps = Steps(steps);
    let parallel = Tuning { transactions_per_thread: 0, adaptive: false, ..Tuning::default() };
    let lazy = Tuning { rule: CommitRule::Lazy, ..parallel };
    let held = Tuning { window: 2, held_from: 1, ..parallel };
    for tuning in [parallel, lazy, held] {
        for threads in [2, 3] {
            let steps = steps.clone();
            let check = move || assert_eq!(outcome(threads, &steps, &tuning), sequential(&steps), "{tuning:?}");
            model(200, check);
        }
    }
}

#[test]
fn a_serial_chain() {
    explore(&[&[Increment(0)], &[Increment(0)], &[Increment(0)], &[Increment(0)]]);
}

#[test]
fn chains_that_cross() {
    explore(&[&[Increment(0)], &[Sum(0, 1, 2)], &[Increment(1), Increment(0)], &[Sum(2, 0, 1)], &[Increment(2)]]);
}

#[test]
fn writes_that_depend_on_reads() {
    explore(&[&[Increment(0)], &[WriteSeen(0)], &[Sum(4, 5, 0)], &[WriteSeen(0)], &[Sum(5, 6, 1), WriteSeen(1)]]);
}

#[test]
fn bounded_increments() {
    explore(&[&[Add(0, 2)], &[Add(0, 1)], &[Add(0, -2), Add(0, 1)], &[Increment(0)], &[Add(0, -1), Add(1, 1)]]);
}

#[test]
fn increments_whose_size_depends_on_reads() {
    explore(&[&[Increment(1)], &[WriteSeen(1), Add(0, 1)], &[Add(4, 2), Add(5, -1)], &[Add(4, -2)], &[Sum(4, 5, 6)]]);
}

#[test]
fn speculative_panics_are_discarded() {
    // Transaction 1 panics if it overtakes transaction 0.
    let steps = Steps(&[&[Add(0, 0)], &[Increment(0)], &[PanicIfEven(1), Increment(0)], &[Increment(0)]]);
    let overtaking = Steps(&[&[Increment(0), Increment(0), Increment(1)], &[Increment(1)], &[PanicIfEven(1)]]);
    for steps in [steps, overtaking] {
        let tuning = Tuning { transactions_per_thread: 0, ..Tuning::default() };
        model(300, move || assert_eq!(outcome(2, &steps, &tuning), sequential(&steps)));
    }
}

#[test]
fn a_panic_on_committed_state_names_its_transaction() {
    let steps = Steps(&[&[Increment(0)], &[PanicIfEven(0)], &[Increment(0)]]);
    for rule in [CommitRule::Rolling, CommitRule::Lazy] {
        let steps = steps.clone();
        let tuning = Tuning { rule, transactions_per_thread: 0, ..Tuning::default() };
        let check = move || {
            let (outputs, result) = outcome(2, &steps, &tuning);
            let panicked = result.expect_err("transaction 1 panics");
            assert_eq!((panicked.txn, panicked.message.as_str(), outputs.as_slice()), (1, "planned", &[2][..]));
            assert_eq!(outcome(1, &steps, &Tuning::default()).1, Err(panicked), "one thread says the same");
        };
        model(200, check);
    }
}

#[test]
fn what_follows_a_stop_is_skipped() {
    struct UpTo(usize, Vec<i64>);
    impl CommitSink<i64> for UpTo {
        fn commit(&mut self, txn: usize, output: i64) -> Proceed {
            self.1.push(output);
            if txn == self.0 { Proceed::Stop } else { Proceed::Continue }
        }
    }
    let check = || {
        let steps = Steps(&[&[Increment(0)], &[Increment(0)], &[Increment(0)], &[Increment(1)]]);
        let tuning = Tuning { transactions_per_thread: 0, ..Tuning::default() };
        let execution = Workers::new(2).execute_with(steps, 4, UpTo(1, Vec::new()), &tuning);
        let committed = execution.result.expect("nothing panics");
        assert_eq!((committed.transactions, execution.sink.1), (2, vec![2, 3]));
        assert_eq!(committed.writes.into_sorted(), [(0, Held(3))]);
    };
    model(300, check);
}

#[test]
fn workers_persist_between_blocks() {
    let check = || {
        let mut workers = Workers::new(2);
        let tuning = Tuning { transactions_per_thread: 0, ..Tuning::default() };
        for _ in 0..2 {
            let steps = Steps(&[&[Increment(0)], &[Increment(1)]]);
            let execution = workers.execute_with(steps, 2, Vec::new(), &tuning);
            assert_eq!(execution.sink, [2, 2]);
        }
    };
    model(300, check);
}

/// A value that was read as a sum is another one than the value with the same number below it. When the increment goes,
/// the read is no longer valid, and when it is repeated or committed, it still is.
#[test]
fn a_sum_is_not_the_value_of_the_same_number() {
    use crate::memory::{Content, Delta, Memory, Version};
    #[derive(Clone, Debug, PartialEq)]
    struct Maybe(Option<i128>);
    impl Number for Maybe {
        fn to_number(&self) -> i128 {
            self.0.unwrap_or(0)
        }
        fn from_number(number: i128) -> Self {
            Maybe(Some(number))
        }
    }
    shuttle::check_random(
        || {
            let memory: Memory<u8, Maybe> = Memory::new(1);
            let (at, load) = (memory.locate(&7), |_: &u8| Maybe(None));
            let add = |incarnation, by| {
                let content = Content::Delta(Box::new(Delta::new(by)));
                memory.write(at, Version { txn: 1, incarnation }, content, 0)
            };
            assert!(add(0, 0));
            let (found, _, number) = memory.read(at, 2, load);
            assert!(matches!(found, crate::memory::ReadResult::Value(Maybe(Some(0)))));
            let number = number.expect("a sum");
            memory.mark_estimate(at, 1);
            assert!(!add(1, 0), "the same increment surprises nobody");
            assert!(memory.number_still_valid(&number, 2));
            memory.materialise(at, 1);
            memory.mark_estimate(at, 1);
            memory.write(at, Version { txn: 1, incarnation: 2 }, Content::Value(Maybe(None)), 0);
            assert!(!memory.number_still_valid(&number, 2), "another value of the same number");
            memory.mark_estimate(at, 1);
            memory.remove(at, 1);
            assert!(!memory.number_still_valid(&number, 2), "the value before the block");
        },
        1,
    );
}
