//! The result is that of a sequential execution, whatever the program, the threads and the tuning.

use proptest::prelude::*;
use stm::{Blocked, CommitRule, Number, Proceed, TransactionView, Tuning, Vm, Workers};

/// A value, or the absence of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell(i64);

impl Number for Cell {
    fn to_number(&self) -> i128 {
        self.0.into()
    }
    fn from_number(number: i128) -> Self {
        Cell(number.try_into().expect("bounds are those of an i64"))
    }
}

/// One step of a transaction. `Seen` keys depend on earlier reads, so read and write sets change with values.
#[derive(Clone, Debug)]
enum Step {
    Read(u8),
    ReadSeen(u8),
    Write(u8),
    WriteSeen(u8),
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

impl Vm for Program {
    type Key = u8;
    type Value = Cell;
    type Output = (usize, i64, bool);

    fn load(&self, key: &u8) -> Cell {
        Cell(i64::from(*key) * 3)
    }

    fn execute(&self, txn: usize, view: &mut TransactionView<'_, Self>) -> Result<Self::Output, Blocked> {
        let mut seen = txn as i64;
        let mut answers = true;
        let key = |key: u8, seen: i64| (i64::from(key) + seen).rem_euclid(i64::from(self.keys)) as u8;
        let mix = |seen: i64, value: i64| (seen * 31 + value + 7) % 1_000_003;
        for step in &self.transactions[txn] {
            match step {
                Step::Read(k) => seen = mix(seen, view.read(&key(*k, 0))?.0),
                Step::ReadSeen(k) => seen = mix(seen, view.read(&key(*k, seen))?.0),
                Step::Write(k) => view.write(key(*k, 0), Cell(seen)),
                Step::WriteSeen(k) => view.write(key(*k, seen), Cell(seen)),
                Step::Add(k, by) => {
                    let answer = view.add(&key(*k, 0), (*by).into(), -40..=200)?;
                    answers &= answer;
                    seen = mix(seen, answer.into());
                }
                Step::ReturnIfOdd if seen % 2 != 0 => return Ok((txn, seen, answers)),
                Step::StumbleIfSeventh => {
                    assert!(!(self.panics && seen % 7 == 0 && !view.is_final()), "a planned panic");
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

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => any::<u8>().prop_map(Step::Read),
        2 => any::<u8>().prop_map(Step::ReadSeen),
        3 => any::<u8>().prop_map(Step::Write),
        2 => any::<u8>().prop_map(Step::WriteSeen),
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

type Outcome = (Vec<(usize, i64, bool)>, Vec<(u8, Cell)>);

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
        let sequential = outcome(&mut Workers::new(1), &program, &Tuning::default(), stop_after);
        let panicking = Program { panics: true, ..program };
        for threads in [1, 2, 3, 7] {
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
