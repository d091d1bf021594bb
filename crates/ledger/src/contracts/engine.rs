//! The threads that execute contracts.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use stm::Workers;

use super::executor::{EvmBlock, EvmProgram, evm_tuning, evm_workers};
use super::state::LedgerState;

/// Threads that execute contracts. They persist between blocks and are not part of the state: a clone of a ledger
/// shares them.
#[derive(Clone, Default)]
pub(crate) struct EvmEngine(Arc<OnceLock<Mutex<Workers>>>);

impl EvmEngine {
    pub(crate) fn run(&self, program: EvmProgram<LedgerState>) -> (EvmBlock, LedgerState, stm::Tally) {
        let workers = self.0.get_or_init(|| Mutex::new(evm_workers(rayon::current_num_threads())));
        let mut workers = workers.lock().unwrap_or_else(PoisonError::into_inner);
        let tuning = evm_tuning(&program.jobs);
        program.execute(&mut workers, &tuning)
    }
}
