//! A block of Ethereum transactions over any state: one after another, or by Block-STM.

use stm::{Blocked, CommitSink, Proceed, Tally, TransactionView, Tuning, Vm, Workers, monotonic_ns};

use hashbrown::HashMap;
use revm::primitives::U256;

use super::evm::execute;
use super::evm_state::{Access, EvmContent, EvmJob, EvmPlace, EvmState, Waits};
use super::outcome::EvmOutcome;

/// Blocks whose transactions declare less gas than this, on average, run sequentially.
const WORTHWHILE_GAS: u64 = 30_000;
/// Bytes of a helper's stack.
const STACK: usize = 8 << 20;

/// The result of a block of Ethereum transactions.
#[derive(Debug, PartialEq)]
pub struct EvmBlock {
    /// The outcome of each transaction, in order.
    pub outcomes: Vec<EvmOutcome>,
    /// The locations that were written, in order, each with its new content.
    pub writes: Vec<(EvmPlace, EvmContent)>,
}

/// A block to execute: its transactions and the state that they begin with.
pub struct EvmProgram<S> {
    /// The state before the block.
    pub state: S,
    /// The transactions, in order.
    pub jobs: Vec<EvmJob>,
}

/// Writes on top of a state.
pub(super) struct Above<'a, S> {
    pub state: &'a S,
    pub written: HashMap<EvmPlace, EvmContent>,
}

impl<S: EvmState> Access for Above<'_, S> {
    fn read(&mut self, place: &EvmPlace) -> Result<EvmContent, Waits> {
        Ok(self.written.get(place).cloned().unwrap_or_else(|| load(self.state, place)))
    }

    fn write(&mut self, place: EvmPlace, content: EvmContent) {
        self.written.insert(place, content);
    }

    fn is_final(&self) -> bool {
        true
    }
}

impl<S: EvmState> Access for TransactionView<'_, EvmProgram<S>> {
    fn read(&mut self, place: &EvmPlace) -> Result<EvmContent, Waits> {
        Ok(TransactionView::read(self, place)?)
    }

    fn write(&mut self, place: EvmPlace, content: EvmContent) {
        TransactionView::write(self, place, content);
    }

    fn is_final(&self) -> bool {
        TransactionView::is_final(self)
    }
}

fn load<S: EvmState>(state: &S, place: &EvmPlace) -> EvmContent {
    match &place.slot {
        None => EvmContent::Account(state.account(place.space, &place.address)),
        Some(slot) => EvmContent::Slot(state.slot(place.space, &place.address, slot)),
    }
}

impl<S: EvmState> Vm for EvmProgram<S> {
    type Key = EvmPlace;
    type Value = EvmContent;
    type Output = EvmOutcome;

    fn load(&self, place: &EvmPlace) -> EvmContent {
        load(&self.state, place)
    }

    fn execute(&self, txn: usize, view: &mut TransactionView<'_, Self>) -> Result<EvmOutcome, Blocked> {
        execute(&self.state, &self.jobs[txn], view).map_err(|Waits(blocked)| blocked)
    }
}

/// Keeps outcomes in order.
struct Outcomes(Vec<EvmOutcome>);

impl CommitSink<EvmOutcome> for Outcomes {
    fn commit(&mut self, _: usize, outcome: EvmOutcome) -> Proceed {
        self.0.push(outcome);
        Proceed::Continue
    }
}

impl<S: EvmState> EvmProgram<S> {
    /// Executes the transactions one after another.
    pub fn execute_sequentially(&self) -> EvmBlock {
        let mut above = Above { state: &self.state, written: HashMap::new() };
        let one = |job| execute(&self.state, job, &mut above).expect("nothing waits for another transaction");
        let outcomes = self.jobs.iter().map(one).collect();
        EvmBlock { outcomes, writes: sorted(above.written.into_iter().collect()) }
    }

    /// Executes the transactions by Block-STM, with the same result. Returns the state as well.
    ///
    /// # Panics
    /// If a transaction panics where not even its fee can be taken: the state itself cannot be read.
    pub fn execute(self, workers: &mut Workers, tuning: &Tuning) -> (EvmBlock, S, Tally) {
        let jobs = self.jobs.len();
        let execution = workers.execute_with(self, jobs, Outcomes(Vec::with_capacity(jobs)), tuning);
        let committed = execution.result.unwrap_or_else(|panicked| panic!("{panicked}"));
        let block = EvmBlock { outcomes: execution.sink.0, writes: sorted(committed.writes.into_unordered()) };
        (block, execution.vm.state, execution.tally)
    }
}

/// Sorts writes. They are long, so their indices are sorted, by ranks that tell most of them apart, and each write is
/// moved once.
fn sorted(mut writes: Vec<(EvmPlace, EvmContent)>) -> Vec<(EvmPlace, EvmContent)> {
    let mut order: Vec<_> = writes.iter().enumerate().map(|(at, (place, _))| (rank(place), at)).collect();
    order.sort_unstable_by(|(rank, at), (other_rank, other_at)| {
        rank.cmp(other_rank).then_with(|| writes[*at].0.cmp(&writes[*other_at].0))
    });
    let moved = |(_, at): ([u64; 4], usize)| {
        let (place, content) = &mut writes[at];
        (place.clone(), std::mem::replace(content, EvmContent::Account(None)))
    };
    order.into_iter().map(moved).collect()
}

/// Space, address and the beginning of the slot, in the order of places.
fn rank(EvmPlace { space, address, slot }: &EvmPlace) -> [u64; 4] {
    let [a, b, c, d, rest @ ..] = address.into_array();
    let word = |from: usize| u64::from_be_bytes(std::array::from_fn(|at| rest[from + at]));
    let head = u64::from(*space) << 32 | u64::from(u32::from_be_bytes([a, b, c, d]));
    [head, word(0), word(8), slot.map_or(0, |slot| slot.as_limbs()[U256::LIMBS - 1])]
}

/// Threads for Block-STM over the EVM, including the caller's. Frames of the interpreter are on the heap, so a stack
/// only has to be as deep as the deepest precompile needs.
pub fn evm_workers(threads: usize) -> Workers {
    Workers::with_stacks(threads, STACK)
}

/// How a ledger executes these transactions. Payments alone cost less than running them in parallel, and each of them
/// declares little gas: so blocks of such transactions run sequentially. The clock changes no result.
pub fn evm_tuning(jobs: &[EvmJob]) -> Tuning {
    let gas: u64 = jobs.iter().map(|job| job.transaction.gas_limit).fold(0, u64::saturating_add);
    let is_cheap = gas / (jobs.len() as u64).max(1) < WORTHWHILE_GAS;
    let transactions_per_thread = if is_cheap { usize::MAX } else { Tuning::default().transactions_per_thread };
    Tuning { transactions_per_thread, clock: Some(monotonic_ns), ..Tuning::default() }
}

/// Runs everything in parallel, however small the block: for tests.
pub fn parallel_tuning() -> Tuning {
    Tuning { transactions_per_thread: 0, adaptive: false, ..Tuning::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use revm::primitives::Address;

    /// Addresses and slots that differ in only one byte, whichever it is, are sorted in the order of places.
    #[test]
    fn writes_come_in_the_order_of_places() {
        let byte = |at: usize, value: u8| Address::new(std::array::from_fn(|here| if here == at { value } else { 7 }));
        let addresses = (0..20).flat_map(|at| [byte(at, 3), byte(at, 7), byte(at, 9)]);
        let slots = (0..32).flat_map(|at| [3u8, 9].map(|value| U256::from(value) << (8 * at)));
        let slots: Vec<Option<U256>> = slots.map(Some).chain([None]).collect();
        let place = |address| slots.iter().map(move |&slot| EvmPlace { space: 0, address, slot });
        let mut places: Vec<EvmPlace> = addresses.flat_map(place).collect();
        let written = places.iter().rev().map(|place| (place.clone(), EvmContent::Account(None))).collect();
        let found: Vec<EvmPlace> = sorted(written).into_iter().map(|(place, _)| place).collect();
        places.sort_unstable();
        assert_eq!(found, places);
    }
}
