//! The interpreter for one transaction, and what a thread keeps of it for the next one.

use std::cell::RefCell;

use revm::context::{Context, Evm, FrameStack, Journal, JournalEntry, JournalInner, LocalContext};
use revm::database_interface::Database;
use revm::handler::EthFrame;
use revm::handler::instructions::InstructionProvider;
use revm::interpreter::Host;
use revm::interpreter::instructions::{GasTable, InstructionTable, gas_table_spec, instruction_table};
use revm::interpreter::interpreter::EthInterpreter;
use revm::primitives::{Address, B256, Bytes, U256};
use revm::state::EvmState as Touched;

use super::evm::{
    Access, AccountInfo, BlockEnv, CfgEnv, EvmCode, EvmContent, EvmJob, EvmPlace, EvmState, SpecId, TxEnv, Waits,
    evm_code,
};
use super::reserved::ReservedPrecompiles;

/// Maps of the journal with a larger capacity than this are not kept for the next transaction: clearing them takes
/// time in proportion to the capacity.
const KEPT_ENTRIES: usize = 64;
/// Memory of the interpreter above this many bytes is freed after a transaction.
const KEPT_MEMORY: usize = 1 << 20;
/// The most codes of which a thread has copies.
const KEPT_CODES: usize = 256;

pub(super) type Machine<'a, S, A, I = ()> = Evm<
    EvmFrameContext<'a, S, A>,
    I,
    Instructions<EvmFrameContext<'a, S, A>>,
    ReservedPrecompiles,
    EthFrame<EthInterpreter>,
>;
pub(super) type EvmFrameContext<'a, S, A> =
    Context<&'a BlockEnv, &'a TxEnv, &'a CfgEnv, Reader<'a, S, A>, Journal<Reader<'a, S, A>>, (), LocalContext>;

/// The database that revm reads from.
pub(super) struct Reader<'a, S, A> {
    pub state: &'a S,
    pub space: u32,
    pub access: &'a mut A,
}

impl<S: EvmState, A: Access> Database for Reader<'_, S, A> {
    type Error = Waits;

    fn basic(&mut self, address: Address) -> Result<Option<AccountInfo>, Waits> {
        match self.access.read(&EvmPlace { space: self.space, address, slot: None })? {
            EvmContent::Account(info) => Ok(info),
            EvmContent::Slot(_) => unreachable!("the record of an account is no slot"),
        }
    }

    fn code_by_hash(&mut self, hash: B256) -> Result<EvmCode, Waits> {
        Ok(CODES.with_borrow_mut(|codes| codes.get(hash, || self.state.code(self.space, &hash))))
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, Waits> {
        match self.access.read(&EvmPlace { space: self.space, address, slot: Some(slot) })? {
            EvmContent::Slot(value) => Ok(value),
            EvmContent::Account(_) => unreachable!("a slot is no account"),
        }
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, Waits> {
        Ok(self.state.block_hash(self.space, number))
    }
}

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
    static CODES: RefCell<Codes> = const { RefCell::new(Codes(Vec::new())) };
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

/// Copies of the codes that a thread has run twice, by their hashes. Calls update the reference count of a code, and
/// threads that update the same counter wait for each other.
struct Codes(Vec<Option<(B256, Option<EvmCode>)>>);

impl Codes {
    fn get(&mut self, hash: B256, load: impl FnOnce() -> EvmCode) -> EvmCode {
        if self.0.is_empty() {
            self.0.resize(KEPT_CODES, None);
        }
        let kept = &mut self.0[usize::from(hash[0]) % KEPT_CODES];
        match kept {
            Some((known, Some(code))) if *known == hash => code.clone(),
            Some((known, copy)) if *known == hash => {
                let code = load();
                // If a read of an earlier state has failed, there is no code.
                if code.is_empty() {
                    return code;
                }
                let own = evm_code(Bytes::copy_from_slice(code.original_byte_slice()));
                copy.insert(own).clone()
            }
            _ => {
                *kept = Some((hash, None));
                load()
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A read of an earlier state may fail: the empty code that it gives is not kept as the code of this hash.
    #[test]
    fn a_failed_read_of_a_code_is_not_kept() {
        let (mut codes, hash) = (Codes(Vec::new()), B256::repeat_byte(7));
        let code = evm_code(Bytes::from_static(&[0x60, 0x01]));
        for _ in 0..3 {
            assert!(codes.get(hash, EvmCode::default).is_empty());
        }
        for _ in 0..3 {
            assert_eq!(codes.get(hash, || code.clone()).original_byte_slice(), [0x60, 0x01]);
        }
        // It is a copy by now.
        assert_eq!(codes.get(hash, || unreachable!("it is kept")).original_byte_slice(), [0x60, 0x01]);
    }
}
