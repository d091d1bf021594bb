//! The interpreter for one transaction, and what a thread keeps of it for the next one.

use std::cell::RefCell;

use revm::context::{Context, Evm, FrameStack, Journal, JournalEntry, JournalInner, LocalContext};
use revm::handler::EthFrame;
use revm::handler::instructions::InstructionProvider;
use revm::interpreter::Host;
use revm::interpreter::instructions::{GasTable, InstructionTable, gas_table_spec, instruction_table};
use revm::interpreter::interpreter::EthInterpreter;
use revm::state::EvmState as Touched;

use super::evm_state::{Access, EvmJob, EvmState, SpecId};
use super::frame::{EvmFrameContext, Reader};
use super::reserved::ReservedPrecompiles;

/// Maps of the journal with a larger capacity than this are not kept for the next transaction: clearing them takes
/// time in proportion to the capacity.
const KEPT_ENTRIES: usize = 64;
/// Memory of the interpreter above this many bytes is freed after a transaction.
const KEPT_MEMORY: usize = 1 << 20;

pub(super) type Machine<'a, S, A, I = ()> = Evm<
    EvmFrameContext<'a, S, A>,
    I,
    Instructions<EvmFrameContext<'a, S, A>>,
    ReservedPrecompiles,
    EthFrame<EthInterpreter>,
>;
/// Ethereum's instructions. All transactions share their table, so none builds its own.
pub(super) struct Instructions<C> {
    gas: Box<GasTable>,
    context: std::marker::PhantomData<fn(C)>,
}

impl<C: Host> InstructionProvider for Instructions<C> {
    type Context = C;
    type InterpreterTypes = EthInterpreter;

    fn instruction_table(&self) -> &InstructionTable<EthInterpreter, C> {
        const { &instruction_table::<EthInterpreter, C>() }
    }

    fn gas_table(&self) -> &GasTable {
        &self.gas
    }
}

/// What a thread keeps from transaction to transaction.
pub(super) struct Parts {
    spec: SpecId,
    gas: Box<GasTable>,
    journal: JournalInner<JournalEntry>,
    local: LocalContext,
    frames: FrameStack<EthFrame<EthInterpreter>>,
    precompiles: ReservedPrecompiles,
}

thread_local! {
    static PARTS: RefCell<Option<Parts>> = const { RefCell::new(None) };
}

impl Parts {
    pub(super) fn new(spec: SpecId) -> Parts {
        let (journal, local) = (JournalInner::new(), LocalContext::default());
        let (gas, frames) = (Box::new(gas_table_spec(spec)), FrameStack::new_prealloc(8));
        Parts { spec, gas, journal, local, frames, precompiles: ReservedPrecompiles::new(spec) }
    }

    /// The parts that the thread has kept, if they are for these rules.
    pub(super) fn kept_or_new(spec: SpecId) -> Parts {
        PARTS.with_borrow_mut(|kept| match kept.take() {
            Some(parts) if parts.spec == spec => parts,
            _ => Parts::new(spec),
        })
    }

    /// Keeps the parts for the next transaction, with the memory of the touched entries.
    pub(super) fn keep(mut self, mut touched: Touched) {
        if touched.capacity() <= KEPT_ENTRIES {
            touched.clear();
            self.journal.state = touched;
        }
        if self.journal.transient_storage.capacity() > KEPT_ENTRIES {
            self.journal.transient_storage = Default::default();
        }
        if self.local.shared_memory_buffer.borrow().capacity() > KEPT_MEMORY {
            self.local = LocalContext::default();
        }
        PARTS.with_borrow_mut(|kept| *kept = Some(self));
    }
}

/// The interpreter before a transaction.
pub(super) fn machine<'a, S, A, I>(
    reader: Reader<'a, S, A>,
    job: &'a EvmJob,
    parts: Parts,
    inspector: I,
) -> Machine<'a, S, A, I>
where
    S: EvmState,
    A: Access,
{
    let Parts { gas, journal, local, frames, precompiles, .. } = parts;
    Evm {
        ctx: Context {
            block: &job.context.block,
            tx: &*job.transaction,
            cfg: &job.context.rules,
            journaled_state: Journal::new_with_inner(reader, journal),
            chain: (),
            local,
            error: Ok(()),
        },
        inspector,
        instruction: Instructions { gas, context: std::marker::PhantomData },
        precompiles,
        frame_stack: frames,
    }
}

/// The entries that a transaction has touched, and the parts of the interpreter, whose journal is empty again.
pub(super) fn taken_apart<S: EvmState, A: Access>(evm: Machine<'_, S, A>) -> (Touched, Parts) {
    let Evm { ctx, instruction: Instructions { gas, .. }, precompiles, frame_stack: frames, .. } = evm;
    let Context { cfg, journaled_state: Journal { inner: mut journal, .. }, local, .. } = ctx;
    let touched = std::mem::take(&mut journal.state);
    journal.finalize();
    (touched, Parts { spec: cfg.spec, gas, journal, local, frames, precompiles })
}
