//! Whole blocks on real threads: cases that have caused errors elsewhere.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::yield_now;

use stm::{Blocked, CommitRule, Execution, Number, Proceed, TransactionView, Tuning, Vm, Workers};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count(u64);

impl Number for Count {
    fn to_number(&self) -> i128 {
        self.0.into()
    }
    fn from_number(number: i128) -> Self {
        Count(number.try_into().expect("bounds are those of a u64"))
    }
}

/// What every transaction of a block does.
enum Block {
    /// Increments one location by reading and writing it.
    Chain,
    /// Adds to one location, up to a maximum.
    HotKey { most: i128 },
    /// Transaction i writes location i, and reads all lower locations.
    ReadsAllBelow,
    /// Transaction 0 runs until transaction 1 has read what 0 will write; transaction 1 reads it, and writes what
    /// transaction 2 reads. So 1 is aborted while 2 depends on it, and 2 must wait for its estimate.
    Overtaken { overtaken: AtomicBool },
    /// This transaction panics each time, and counts how often.
    Panics { at: usize, times: AtomicUsize },
    /// Ignores `Blocked`, like a careless VM.
    Swallows,
}

impl Vm for Block {
    type Key = u32;
    type Value = Count;
    type Output = u64;

    fn load(&self, _: &u32) -> Count {
        Count(0)
    }

    fn execute(&self, txn: usize, view: &mut TransactionView<'_, Self>) -> Result<u64, Blocked> {
        (0..300).for_each(|turn| {
            std::hint::black_box(turn);
        });
        match self {
            Block::Chain => increment(view),
            Block::HotKey { most } => view.add(&0, 1, 0..=*most).map(u64::from),
            Block::ReadsAllBelow => {
                let mut sum = 1u64;
                for below in 0..txn as u32 {
                    sum = sum.wrapping_add(view.read(&below)?.0);
                }
                view.write(txn as u32, Count(sum));
                Ok(sum)
            }
            Block::Overtaken { overtaken } => match txn {
                0 => {
                    while !view.is_final() || !overtaken.load(Ordering::SeqCst) {
                        yield_now();
                    }
                    increment(view)
                }
                1 => {
                    let Count(seen) = view.read(&0)?;
                    overtaken.store(true, Ordering::SeqCst);
                    view.write(1, Count(seen + 10));
                    Ok(seen)
                }
                _ => {
                    let Count(seen) = view.read(&1)?;
                    view.write(txn as u32, Count(seen));
                    Ok(seen)
                }
            },
            Block::Panics { at, times } => {
                if txn == *at {
                    times.fetch_add(1, Ordering::SeqCst);
                    panic!("a planned panic");
                }
                increment(view)
            }
            Block::Swallows => Ok(increment(view).unwrap_or(u64::MAX)),
        }
    }
}

fn increment(view: &mut TransactionView<'_, Block>) -> Result<u64, Blocked> {
    let Count(value) = view.read(&0)?;
    view.write(0, Count(value + 1));
    Ok(value)
}

fn parallel() -> Tuning {
    Tuning { transactions_per_thread: 0, adaptive: false, ..Tuning::default() }
}

fn tunings() -> [Tuning; 4] {
    let lazy = Tuning { rule: CommitRule::Lazy, ..parallel() };
    [parallel(), lazy, Tuning { held_from: 1, window: 5, ..parallel() }, Tuning::default()]
}

fn run(threads: usize, block: Block, size: usize, tuning: &Tuning) -> Execution<Block, Vec<u64>> {
    Workers::new(threads).execute_with(block, size, Vec::new(), tuning)
}

fn writes(execution: Execution<Block, Vec<u64>>) -> (Vec<(u32, Count)>, Vec<u64>) {
    (execution.result.expect("nothing panics").writes.into_sorted(), execution.sink)
}

#[test]
fn an_empty_block() {
    for tuning in tunings() {
        assert_eq!(writes(run(3, Block::Chain, 0, &tuning)), (vec![], vec![]));
    }
}

#[test]
fn a_serial_chain() {
    for tuning in tunings() {
        for threads in [1, 2, 7] {
            let expected = (vec![(0, Count(1_000))], (0..1_000).collect());
            assert_eq!(writes(run(threads, Block::Chain, 1_000, &tuning)), expected, "{threads} {tuning:?}");
        }
    }
}

#[test]
fn increments_of_one_location_do_not_conflict() {
    for tuning in tunings() {
        for threads in [1, 2, 7] {
            let execution = run(threads, Block::HotKey { most: i128::from(u64::MAX) }, 1_000, &tuning);
            assert_eq!(execution.tally.aborts, 0, "{threads} {tuning:?}");
            assert_eq!(writes(execution), (vec![(0, Count(1_000))], vec![1; 1_000]));
        }
    }
}

#[test]
fn increments_stop_at_their_bound() {
    for tuning in tunings() {
        let (writes, answers) = writes(run(3, Block::HotKey { most: 300 }, 1_000, &tuning));
        assert_eq!(writes, [(0, Count(300))]);
        assert!(answers.iter().enumerate().all(|(txn, &answer)| answer == u64::from(txn < 300)), "{tuning:?}");
    }
}

#[test]
fn many_accesses_of_one_transaction() {
    for tuning in tunings() {
        let expected = writes(run(1, Block::ReadsAllBelow, 150, &Tuning::default()));
        assert_eq!(writes(run(3, Block::ReadsAllBelow, 150, &tuning)), expected, "{tuning:?}");
    }
}

/// The class of aptos-core PR #18820: with two workers, a transaction reads the estimate of one that is being
/// executed again. No worker may block in that read, otherwise no worker is left.
#[test]
fn a_dependency_on_a_reexecution_does_not_take_the_last_worker() {
    for _ in 0..200 {
        let block = Block::Overtaken { overtaken: AtomicBool::new(false) };
        let (writes, outputs) = writes(run(2, block, 4, &parallel()));
        assert_eq!(outputs, [0, 1, 11, 11]);
        assert_eq!(writes, [(0, Count(1)), (1, Count(11)), (2, Count(11)), (3, Count(11))]);
    }
}

#[test]
fn a_panic_names_its_transaction() {
    for tuning in tunings() {
        for threads in [1, 3] {
            let times = AtomicUsize::new(0);
            let execution = run(threads, Block::Panics { at: 37, times }, 100, &tuning);
            let panicked = execution.result.err().expect("transaction 37 panics");
            assert_eq!((panicked.txn, panicked.message.as_str()), (37, "a planned panic"));
            assert_eq!(execution.sink, (0..37).collect::<Vec<u64>>(), "lower transactions are committed");
            let Block::Panics { times, .. } = execution.vm else { unreachable!("the VM is given back") };
            assert!(times.into_inner() < 1_000);
        }
    }
}

#[test]
fn a_swallowed_block_is_no_result() {
    for tuning in tunings() {
        let (_, outputs) = writes(run(3, Block::Swallows, 500, &tuning));
        assert_eq!(outputs, (0..500).collect::<Vec<u64>>(), "{tuning:?}");
    }
}

#[test]
fn a_panic_of_the_sink_reaches_the_caller() {
    let sink = |txn: usize, _: u64| if txn == 20 { panic!("a planned panic") } else { Proceed::Continue };
    for tuning in tunings() {
        let run = || Workers::new(3).execute_with(Block::Chain, 100, sink, &tuning).tally;
        let panic = std::panic::catch_unwind(run).expect_err("the sink panics");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"a planned panic"));
    }
}

#[test]
fn workers_serve_many_blocks() {
    let mut workers = Workers::new(3);
    for size in (0..200).chain([5_000]) {
        let execution = workers.execute_with(Block::Chain, size, Vec::new(), &parallel());
        assert_eq!(execution.sink.len(), size);
    }
}
