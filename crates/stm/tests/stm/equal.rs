//! The result is that of a plain loop over the transactions with a map, which shares no code with the crate, whatever
//! the program, the threads and the tuning.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::RangeInclusive;

use proptest::prelude::*;
use stm::{Blocked, CommitRule, Number, Proceed, TransactionView, Tuning, Vm, Workers};

/// The content of a location, which may be absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell(Option<i64>);

impl Number for Cell {
    fn to_number(&self) -> i128 {
        self.0.unwrap_or(0).into()
    }
    fn from_number(number: i128) -> Self {
        Cell(Some(number.try_into().expect("bounds are those of an i64")))
    }
}

/// Every third location is absent before the block.
fn initial(key: u8) -> Cell {
    Cell((key % 3 != 1).then_some(i64::from(key) * 3))
}

/// What a program runs on: the crate's view, or the plain state.
trait Access {
    /// Why an execution ends early.
    type Stop;
    fn read(&mut self, key: u8) -> Result<Cell, Self::Stop>;
    fn write(&mut self, key: u8, value: Cell);
    fn add(&mut self, key: u8, by: i128, bounds: RangeInclusive<i128>) -> Result<bool, Self::Stop>;
    fn is_final(&self) -> bool;
}

impl Access for TransactionView<'_, Program> {
    type Stop = Blocked;
    fn read(&mut self, key: u8) -> Result<Cell, Blocked> {
        TransactionView::read(self, &key)
    }
    fn write(&mut self, key: u8, value: Cell) {
        TransactionView::write(self, key, value);
    }
    fn add(&mut self, key: u8, by: i128, bounds: RangeInclusive<i128>) -> Result<bool, Blocked> {
        TransactionView::add(self, &key, by, bounds)
    }
    fn is_final(&self) -> bool {
        TransactionView::is_final(self)
    }
}

/// What transactions have written so far.
#[derive(Default)]
struct Plain(BTreeMap<u8, Cell>);

impl Access for Plain {
    type Stop = Infallible;
    fn read(&mut self, key: u8) -> Result<Cell, Infallible> {
        Ok(self.0.get(&key).copied().unwrap_or_else(|| initial(key)))
    }
    fn write(&mut self, key: u8, value: Cell) {
        self.0.insert(key, value);
    }
    fn add(&mut self, key: u8, by: i128, bounds: RangeInclusive<i128>) -> Result<bool, Infallible> {
        let Ok(Cell(held)) = self.read(key);
        let sum = i128::from(held.unwrap_or(0)) + by;
        if bounds.contains(&sum) {
            self.write(key, Cell(Some(sum as i64)));
        }
        Ok(bounds.contains(&sum))
    }
    fn is_final(&self) -> bool {
        true
    }
}

/// One step of a transaction. `Seen` keys depend on earlier reads, so read and write sets change with values.
#[derive(Clone, Debug)]
enum Step {
    Read(u8),
    ReadSeen(u8),
    Write(u8),
    WriteSeen(u8),
    Remove(u8),
    Add(u8, i8),
    /// Undoes nothing, but ends the transaction early if the value seen is odd.
    ReturnIfOdd,
    /// Panics if the value seen is a multiple of 7, unless the execution is final.
    StumbleIfSeventh,
    Work(u8),
}

#[derive(Clone, Debug)]
struct Program {
    transactions: Vec<Vec<Step>>,
    keys: u8,
    panics: bool,
}

type Output = (usize, i64, bool);

impl Program {
    fn run<A: Access>(&self, txn: usize, state: &mut A) -> Result<Output, A::Stop> {
        let mut seen = txn as i64;
        let mut answers = true;
        let key = |key: u8, seen: i64| (i64::from(key) + seen).rem_euclid(i64::from(self.keys)) as u8;
        let mix = |seen: i64, value: i64| (seen * 31 + value + 7) % 1_000_003;
        let absent = |Cell(value): Cell| value.unwrap_or(500_009);
        for step in &self.transactions[txn] {
            match step {
                Step::Read(k) => seen = mix(seen, absent(state.read(key(*k, 0))?)),
                Step::ReadSeen(k) => seen = mix(seen, absent(state.read(key(*k, seen))?)),
                Step::Write(k) => state.write(key(*k, 0), Cell(Some(seen))),
                Step::WriteSeen(k) => state.write(key(*k, seen), Cell(Some(seen))),
                Step::Remove(k) => state.write(key(*k, 0), Cell(None)),
                Step::Add(k, by) => {
                    let answer = state.add(key(*k, 0), (*by).into(), -40..=200)?;
                    answers &= answer;
                    seen = mix(seen, answer.into());
                }
                Step::ReturnIfOdd if seen % 2 != 0 => return Ok((txn, seen, answers)),
                Step::StumbleIfSeventh => {
                    assert!(!(self.panics && seen % 7 == 0 && !state.is_final()), "a planned panic");
                }
                Step::Work(turns) => {
                    for turn in 0..u64::from(*turns) * 20 {
                        std::hint::black_box(turn);
                    }
                }
                Step::ReturnIfOdd => {}
            }
        }
        Ok((txn, seen, answers))
    }
}

impl Vm for Program {
    type Key = u8;
    type Value = Cell;
    type Output = Output;

    fn load(&self, key: &u8) -> Cell {
        initial(*key)
    }

    fn execute(&self, txn: usize, view: &mut TransactionView<'_, Self>) -> Result<Output, Blocked> {
        self.run(txn, view)
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => any::<u8>().prop_map(Step::Read),
        2 => any::<u8>().prop_map(Step::ReadSeen),
        3 => any::<u8>().prop_map(Step::Write),
        2 => any::<u8>().prop_map(Step::WriteSeen),
        1 => any::<u8>().prop_map(Step::Remove),
        3 => (any::<u8>(), -9i8..10).prop_map(|(key, by)| Step::Add(key, by)),
        1 => Just(Step::ReturnIfOdd),
        1 => Just(Step::StumbleIfSeventh),
        1 => any::<u8>().prop_map(Step::Work),
    ]
}

fn program() -> impl Strategy<Value = Program> {
    let transactions = prop::collection::vec(prop::collection::vec(step(), 0..10), 0..120);
    (transactions, prop_oneof![Just(1u8), Just(3), Just(12), Just(100)]).prop_map(|(transactions, keys)| Program {
        transactions,
        keys,
        panics: false,
    })
}

type Outcome = (Vec<Output>, Vec<(u8, Cell)>);

/// The transactions one after another.
fn sequential(program: &Program, stop_after: usize) -> Outcome {
    let mut state = Plain::default();
    let transactions = 0..program.transactions.len().min(stop_after.saturating_add(1));
    let outputs = transactions.map(|txn| {
        let Ok(output) = program.run(txn, &mut state);
        output
    });
    let outputs = outputs.collect();
    (outputs, state.0.into_iter().collect())
}

fn outcome(workers: &mut Workers, program: &Program, tuning: &Tuning, stop_after: usize) -> Outcome {
    let outputs = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = outputs.clone();
    let sink = move |txn: usize, output| {
        let mut outputs = kept.lock().expect("no panic");
        assert_eq!(txn, outputs.len(), "outputs come in order");
        outputs.push(output);
        if txn == stop_after { Proceed::Stop } else { Proceed::Continue }
    };
    let execution = workers.execute_with(program.clone(), program.transactions.len(), sink, tuning);
    let committed = execution.result.expect("only speculative executions panic");
    let outputs = std::mem::take(&mut *outputs.lock().expect("no panic"));
    assert_eq!(committed.transactions, outputs.len());
    (outputs, committed.writes.into_sorted())
}

/// A clock in which everything takes some time, not the same each time.
fn strange_clock() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NOW: AtomicU64 = AtomicU64::new(0);
    NOW.fetch_add(7_001, Ordering::Relaxed) / 20_000 * 30_000
}

fn tunings() -> Vec<Tuning> {
    let parallel = Tuning { transactions_per_thread: 0, adaptive: false, ..Tuning::default() };
    vec![
        parallel,
        Tuning { rule: CommitRule::Lazy, ..parallel },
        Tuning { window: 3, held_from: 1, ..parallel },
        Tuning { adaptive: true, clock: Some(strange_clock), ..parallel },
        Tuning::default(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn equals_the_sequential_execution(program in program(), stop_after in 0usize..300) {
        quiet();
        let sequential = sequential(&program, stop_after);
        let panicking = Program { panics: true, ..program };
        for threads in 1..=8 {
            let mut workers = Workers::new(threads);
            for tuning in tunings() {
                let lazy = tuning.rule == CommitRule::Lazy;
                // Without a ladder no incarnation is ever final: there a panic is a result.
                let program = Program { panics: !lazy, ..panicking.clone() };
                let parallel = outcome(&mut workers, &program, &tuning, stop_after);
                prop_assert_eq!(&parallel, &sequential, "{} threads, {:?}", threads, tuning);
            }
        }
    }
}

/// Silences planned panics.
fn quiet() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !info.to_string().contains("a planned panic") {
                before(info);
            }
        }));
    });
}
