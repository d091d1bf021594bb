//! Executions that change nothing: calls over a state, and transactions of old blocks executed again.
//!
//! *Properties.* The state is read and never written: writes of an execution are kept on top of it, for later
//! executions. If a transaction of a block is executed again, after those before it and over the state at the start
//! of the block's contract phase, its result agrees with its receipt.

use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use hashbrown::HashMap;
use proofs::EvmStatus;
use revm::context::journaled_state::account::JournaledAccountTr;
use revm::context::result::{EVMError, ExecutionResult, HaltReason, InvalidTransaction};
use revm::context::transaction::AuthorizationTr;
use revm::context::{Cfg, ContextTr, JournalTr, Transaction};
use revm::handler::pre_execution::apply_eip7702_auth_list;
use revm::handler::validation::validate_env;
use revm::handler::{EvmTr, FrameResult, Handler};
use revm::inspector::{Inspector, InspectorHandler};
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::{GasTracker, InitialAndFloorGas};
use revm::primitives::{Address, Bytes, Log, U256};
use revm::state::{Account, EvmState as Touched};

use super::evm::{execute, write_all};
use super::evm_state::{
    Access, AccountInfo, BlockEnv, CfgEnv, EvmContent, EvmContext, EvmJob, EvmPlace, EvmState, TxEnv, Waits,
};
use super::executor::Above;
use super::failures::{halted, invalid};
use super::frame::{EvmFrameContext, Reader};
use super::machine::{Machine, Parts, machine};
use super::outcome::EvmOutcome;
use super::trace::{Observer, Tracer};

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvmCalled {
    /// How it ended.
    pub status: EvmStatus,
    /// Gas that it used, minus refunds.
    pub gas_used: u64,
    /// Its return value, or the reason of a revert.
    pub output: Bytes,
    /// Its logs.
    pub logs: Vec<Log>,
    /// Why it was halted.
    pub halt: Option<String>,
}

/// An account that an execution looked at or changed.
#[derive(Clone, Debug)]
pub struct EvmTouched {
    /// Its address.
    pub address: Address,
    /// Its record before the execution; `None` if it did not exist.
    pub before: Option<AccountInfo>,
    /// Its record after it; `None` if it does not exist any more.
    pub after: Option<AccountInfo>,
    /// Slots that it looked at, in order: with the value before and the value after.
    pub slots: Vec<(U256, U256, U256)>,
    /// Whether it is warm from the beginning, or created: an access list that names it saves nothing.
    pub is_warm: bool,
}

impl EvmTouched {
    fn of(address: Address, account: &Account, is_warm: bool) -> EvmTouched {
        let is_gone = account.is_selfdestructed() || account.is_empty();
        let mut slots: Vec<_> =
            account.storage.iter().map(|(slot, value)| (*slot, value.original_value, value.present_value)).collect();
        slots.sort_unstable();
        EvmTouched {
            address,
            before: (!account.is_loaded_as_not_existing()).then(|| account.original_info()),
            after: (!is_gone).then(|| account.info.clone()),
            slots,
            is_warm: is_warm || account.is_created(),
        }
    }
}

/// Executions one after another over a state that they do not change.
pub struct EvmView<S> {
    state: S,
    written: HashMap<EvmPlace, EvmContent>,
}

impl<S: EvmState> EvmView<S> {
    /// A view over a state.
    pub fn new(state: S) -> EvmView<S> {
        EvmView { state, written: HashMap::new() }
    }

    /// The state below.
    pub fn state(&self) -> &S {
        &self.state
    }

    /// What later executions find at a place.
    pub fn content(&mut self, place: &EvmPlace) -> EvmContent {
        let mut above = self.above();
        let content = above.read(place);
        self.written = above.written;
        content.expect(NOTHING_WAITS)
    }

    /// The state below, to change it.
    pub fn state_mut(&mut self) -> &mut S {
        &mut self.state
    }

    /// Forgets what executions wrote to the slots of an account.
    pub fn forget_slots(&mut self, address: &Address) {
        self.written.retain(|place, _| place.address != *address || place.slot.is_none());
    }

    /// Replaces what later executions find at a place.
    pub fn replace(&mut self, place: EvmPlace, content: EvmContent) {
        self.written.insert(place, content);
    }

    /// Executes a transaction as a block does. Later executions see its writes.
    pub fn execute(&mut self, job: &EvmJob) -> EvmOutcome {
        let mut above = self.above();
        let outcome = execute(above.state, job, &mut above);
        self.written = above.written;
        outcome.expect(NOTHING_WAITS)
    }

    /// Executes a call: its sender needs no key, nonce or funds for gas, and pays nothing. Its writes are dropped.
    ///
    /// # Errors
    /// The reason why nothing can be executed: the call itself is invalid.
    pub fn call(&mut self, context: &Arc<EvmContext>, transaction: TxEnv) -> Result<EvmCalled, String> {
        let job = EvmJob { space: 0, context: context.clone(), transaction: Arc::new(transaction) };
        self.run(&job, (), |machine| Free(PhantomData).run(machine)).0
    }

    /// Executes a call, or a transaction that its sender pays for, with a tracer. Later executions see its writes.
    ///
    /// # Errors
    /// As for [`EvmView::call`]; nothing is written.
    pub fn simulate(
        &mut self,
        context: &Arc<EvmContext>,
        transaction: TxEnv,
        is_paid: bool,
        tracer: Tracer,
    ) -> (Result<EvmCalled, String>, Tracer) {
        let job = EvmJob { space: 0, context: context.clone(), transaction: Arc::new(transaction) };
        let mut touched = Touched::default();
        let ran = self.run(&job, tracer, |machine| {
            let result = match is_paid {
                true => Paid(PhantomData).inspect_run(machine),
                false => Free(PhantomData).inspect_run(machine),
            };
            touched = std::mem::take(&mut machine.ctx.journaled_state.inner.state);
            result
        });
        if ran.0.is_ok() {
            let mut above = self.above();
            write_all(0, touched.iter().filter(|(_, account)| account.is_touched()), &mut above);
            self.written = above.written;
        }
        ran
    }

    /// Executes a call with a tracer.
    ///
    /// # Errors
    /// As for [`EvmView::call`].
    pub fn trace_call(
        &mut self,
        context: &Arc<EvmContext>,
        transaction: TxEnv,
        tracer: Tracer,
    ) -> (Result<EvmCalled, String>, Tracer) {
        let job = EvmJob { space: 0, context: context.clone(), transaction: Arc::new(transaction) };
        self.run(&job, tracer, |machine| Free(PhantomData).inspect_run(machine))
    }

    /// Executes a transaction as a block does, with a tracer. Its writes are dropped.
    ///
    /// # Errors
    /// The reason why it is not executed.
    pub fn trace(&mut self, job: &EvmJob, tracer: Tracer) -> (Result<EvmCalled, String>, Tracer) {
        self.run(job, tracer, |machine| Paid(PhantomData).inspect_run(machine))
    }

    /// Executes a transaction as a block does, and returns the accounts that it looked at, by address. Its writes are
    /// dropped.
    ///
    /// # Errors
    /// The reason why it is not executed.
    pub fn touched(&mut self, job: &EvmJob) -> Result<(EvmCalled, Vec<EvmTouched>), String> {
        let mut touched = Vec::new();
        let called =
            self.run(job, (), |machine| noting(&mut touched, machine, |machine| Paid(PhantomData).run(machine)));
        called.0.map(|called| (called, touched))
    }

    /// Executes a call, and returns the accounts that it looked at, by address.
    ///
    /// # Errors
    /// As for [`EvmView::call`].
    pub fn touched_by_call(
        &mut self,
        context: &Arc<EvmContext>,
        transaction: TxEnv,
    ) -> Result<(EvmCalled, Vec<EvmTouched>), String> {
        let job = EvmJob { space: 0, context: context.clone(), transaction: Arc::new(transaction) };
        let mut touched = Vec::new();
        let called =
            self.run(&job, (), |machine| noting(&mut touched, machine, |machine| Free(PhantomData).run(machine)));
        called.0.map(|called| (called, touched))
    }

    /// A panic of the interpreter fails only this execution.
    fn run<I: Default>(
        &mut self,
        job: &EvmJob,
        inspector: I,
        run: impl FnOnce(&mut Machine<'_, S, Above<'_, S>, I>) -> Result<ExecutionResult<HaltReason>, EVMError<Waits>>,
    ) -> (Result<EvmCalled, String>, I) {
        let mut above = self.above();
        let state = above.state;
        let ran = catch_unwind(AssertUnwindSafe(|| {
            let reader = Reader { state, space: job.space, access: &mut above };
            let parts = Parts::new(*job.context.rules.spec());
            let mut machine = machine(reader, job, parts, inspector);
            (run(&mut machine), machine.inspector)
        }));
        self.written = above.written;
        match ran {
            Ok((result, inspector)) => (result.map(called).map_err(refused), inspector),
            Err(_) => (Err("the interpreter failed".into()), I::default()),
        }
    }

    fn above(&mut self) -> Above<'_, S> {
        Above { state: &self.state, written: std::mem::take(&mut self.written) }
    }
}

/// Runs a machine, and notes what it has looked at.
fn noting<'a, S: EvmState, A: Access, R>(
    touched: &mut Vec<EvmTouched>,
    machine: &mut Machine<'a, S, A>,
    run: impl FnOnce(&mut Machine<'a, S, A>) -> R,
) -> R {
    let result = run(machine);
    let accounts = &machine.ctx.journaled_state.inner.state;
    let warm = warm_addresses(machine.ctx.tx, machine.ctx.block, machine.ctx.cfg.chain_id, accounts);
    let is_warm = |address: &Address| warm.contains(address) || machine.precompiles.is_warm(address);
    touched.extend(accounts.iter().map(|(address, one)| EvmTouched::of(*address, one, is_warm(address))));
    touched.sort_unstable_by_key(|one| one.address);
    result
}

/// Addresses that a transaction finds warm, besides precompiles: its sender, its target and what that delegates to,
/// the beneficiary (EIP-3651), and the authorities of its delegations (EIP-7702).
fn warm_addresses(transaction: &TxEnv, block: &BlockEnv, chain: u64, accounts: &Touched) -> Vec<Address> {
    let target = transaction.kind.to().copied();
    let code = target.and_then(|target| accounts.get(&target)).and_then(|account| account.info.code.as_ref());
    let delegate = code.and_then(|code| code.eip7702_address());
    let is_looked_at = |one: &&_| {
        let (for_chain, nonce) = (AuthorizationTr::chain_id(*one), AuthorizationTr::nonce(*one));
        (for_chain.is_zero() || for_chain == U256::from(chain)) && nonce < u64::MAX
    };
    let authorities = transaction.authorization_list.iter().filter(is_looked_at).filter_map(AuthorizationTr::authority);
    let own = [Some(transaction.caller), target, delegate, Some(block.beneficiary)];
    own.into_iter().flatten().chain(authorities).collect()
}

const NOTHING_WAITS: &str = "nothing waits for another transaction";

/// Why nothing is executed.
fn refused(error: EVMError<Waits>) -> String {
    match error {
        EVMError::Transaction(fault) => invalid(&fault),
        EVMError::Header(_) => "invalid block context".into(),
        EVMError::Database(_) | EVMError::Custom(_) | EVMError::CustomAny(_) => "the interpreter failed".into(),
    }
}

fn called(result: ExecutionResult) -> EvmCalled {
    let gas_used = result.tx_gas_used();
    let (status, logs, output, halt) = match result {
        ExecutionResult::Success { logs, output, .. } => (EvmStatus::Succeeded, logs, output.into_data(), None),
        ExecutionResult::Revert { output, .. } => (EvmStatus::Reverted, Vec::new(), output, None),
        ExecutionResult::Halt { reason, .. } => {
            (EvmStatus::Halted, Vec::new(), Bytes::new(), Some(halted(reason).into()))
        }
    };
    EvmCalled { status, gas_used, output, logs, halt }
}

type Types<'a, S, A, I> = PhantomData<fn(&'a S, &'a A, &'a I)>;

/// Ethereum's handler for calls: it does not check the nonce, the sender's code or the funds for gas, and the gas of a
/// block does not bound it.
struct Free<'a, S, A, I>(Types<'a, S, A, I>);

/// Ethereum's handler for transactions of old blocks: proposers were paid after all of them.
struct Paid<'a, S, A, I>(Types<'a, S, A, I>);

impl<'a, S: EvmState, A: Access, I: Observer> Handler for Free<'a, S, A, I> {
    type Evm = Machine<'a, S, A, I>;
    type Error = EVMError<Waits>;
    type HaltReason = HaltReason;

    fn validate_env(&self, evm: &mut Self::Evm) -> Result<(), Self::Error> {
        const ABOVE_BLOCK: InvalidTransaction = InvalidTransaction::CallerGasLimitMoreThanBlock;
        match validate_env::<_, Self::Error>(evm.ctx()) {
            // What would have been checked after it.
            Err(EVMError::Transaction(ABOVE_BLOCK)) => check_init_code(evm.ctx_ref().tx, evm.ctx_ref().cfg),
            checked => checked,
        }
    }

    fn apply_eip7702_auth_list(&self, evm: &mut Self::Evm, gas: &mut GasTracker) -> Result<Option<u64>, Self::Error> {
        delegated(evm, gas)
    }

    fn validate_against_state_and_deduct_caller(
        &self,
        evm: &mut Self::Evm,
        _gas: &mut InitialAndFloorGas,
    ) -> Result<(), Self::Error> {
        let (_, transaction, _, journal, _, _) = evm.ctx().all_mut();
        let mut caller = journal.load_account_with_code_mut(transaction.caller())?.data;
        if transaction.kind().is_call() {
            caller.bump_nonce();
        }
        Ok(())
    }

    fn reimburse_caller(&self, _evm: &mut Self::Evm, _result: &mut FrameResult) -> Result<(), Self::Error> {
        Ok(())
    }

    fn reward_beneficiary(&self, _evm: &mut Self::Evm, _result: &mut FrameResult) -> Result<(), Self::Error> {
        Ok(())
    }
}

impl<'a, S: EvmState, A: Access, I: Observer> Handler for Paid<'a, S, A, I> {
    type Evm = Machine<'a, S, A, I>;
    type Error = EVMError<Waits>;
    type HaltReason = HaltReason;

    fn apply_eip7702_auth_list(&self, evm: &mut Self::Evm, gas: &mut GasTracker) -> Result<Option<u64>, Self::Error> {
        delegated(evm, gas)
    }

    fn reward_beneficiary(&self, _evm: &mut Self::Evm, _result: &mut FrameResult) -> Result<(), Self::Error> {
        Ok(())
    }
}

fn check_init_code(transaction: &TxEnv, rules: &CfgEnv) -> Result<(), EVMError<Waits>> {
    match transaction.kind.is_create() && transaction.data.len() > rules.max_initcode_size() {
        true => Err(InvalidTransaction::CreateInitCodeSizeLimit.into()),
        false => Ok(()),
    }
}

/// Applies the delegations of a transaction, and tells the observer what they refund.
fn delegated<S: EvmState, A: Access, I: Observer>(
    evm: &mut Machine<'_, S, A, I>,
    gas: &mut GasTracker,
) -> Result<Option<u64>, EVMError<Waits>> {
    let refund = apply_eip7702_auth_list::<_, EVMError<Waits>>(evm.ctx(), gas)?;
    evm.inspector.refunds(refund.unwrap_or(0));
    Ok(refund)
}

impl<'a, S, A, I> InspectorHandler for Free<'a, S, A, I>
where
    S: EvmState,
    A: Access,
    I: Observer + Inspector<EvmFrameContext<'a, S, A>, EthInterpreter>,
{
    type IT = EthInterpreter;
}

impl<'a, S, A, I> InspectorHandler for Paid<'a, S, A, I>
where
    S: EvmState,
    A: Access,
    I: Observer + Inspector<EvmFrameContext<'a, S, A>, EthInterpreter>,
{
    type IT = EthInterpreter;
}
