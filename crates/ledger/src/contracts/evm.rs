//! Executes one Ethereum transaction over any state. No other module of the workspace uses the interpreter of revm.
//!
//! A transaction reads through an [`Access`], which is either a view of Block-STM or a plain overlay, and its write
//! set is taken from the journal at its end: accounts whose record changed, and slots whose present value differs
//! from the original one. The proposer's reward is kept apart, so that it makes no transaction depend on another.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use proofs::{EvmStatus, Skip};
use revm::context::result::{EVMError, ExecutionResult, HaltReason};
use revm::context::{Block as _, ContextTr, Transaction};
use revm::handler::{EvmTr, FrameResult, Handler};
use revm::primitives::{Address, Bytes, KECCAK_EMPTY, U256};
use revm::state::Account;

use super::call::evm_address;
use super::evm_state::{Access, AccountInfo, EvmContent, EvmJob, EvmPlace, EvmState, Waits};
use super::frame::Reader;
use super::machine::{Machine, Parts, machine, taken_apart};
use super::offer_words::locked_gas_units;
use super::outcome::{EvmExecution, EvmOutcome, skip_of};
use super::slots::GAS_ASSET;
use super::tokens::TokenFacts;
use super::transfer::transfer;
use crate::places::contracts::reserved::OFFERS;

/// Ethereum's handler, but the reward is recorded and not paid.
struct Rewardless<'a, S, A> {
    tip: Cell<U256>,
    evm: std::marker::PhantomData<fn(&'a S, &'a A)>,
}

impl<'a, S: EvmState, A: Access> Handler for Rewardless<'a, S, A> {
    type Evm = Machine<'a, S, A>;
    type Error = EVMError<Waits>;
    type HaltReason = HaltReason;

    fn reward_beneficiary(&self, evm: &mut Self::Evm, result: &mut FrameResult) -> Result<(), Self::Error> {
        let context = evm.ctx_ref();
        let base_fee = u128::from(context.block().basefee());
        let tip = context.tx().effective_gas_price(base_fee).saturating_sub(base_fee);
        let gas = result.gas();
        // Gas that is set apart for growth of the state (EIP-8037), and left, is given back.
        self.tip.set(U256::from(tip) * U256::from(gas.used().saturating_sub(gas.reservoir())));
        Ok(())
    }
}

/// Executes one transaction.
///
/// # Errors
/// [`Waits`] if a read returned it.
pub(super) fn execute<S: EvmState, A: Access>(state: &S, job: &EvmJob, access: &mut A) -> Result<EvmOutcome, Waits> {
    if !access.is_final() {
        return run(state, job, access);
    }
    match catch_unwind(AssertUnwindSafe(|| run(state, job, access))) {
        Ok(outcome) => outcome,
        Err(_) => halt(job, access),
    }
}

fn run<S: EvmState, A: Access>(state: &S, job: &EvmJob, access: &mut A) -> Result<EvmOutcome, Waits> {
    if let Some(execution) = transfer(job, access)? {
        return Ok(EvmOutcome::Executed(Box::new(execution)));
    }
    interpret(state, job, access)
}

/// Executes a transaction with the interpreter.
pub(super) fn interpret<S: EvmState, A: Access>(state: &S, job: &EvmJob, access: &mut A) -> Result<EvmOutcome, Waits> {
    let reader = Reader { state, space: job.space, access: &mut *access };
    let mut evm = machine(reader, job, Parts::kept_or_new(*job.context.rules.spec()), ());
    let mut handler = Rewardless { tip: Cell::new(U256::ZERO), evm: std::marker::PhantomData };
    let result = handler.run(&mut evm);
    let tip = handler.tip.get();
    let (touched, parts) = taken_apart(evm);
    let outcome = match result {
        Ok(result) => {
            let accounts = touched.iter().filter(|(_, account)| account.is_touched());
            let written = write_all(job.space, accounts, access);
            let written = written.without_locked(|| state.token(job.space, GAS_ASSET));
            Ok(EvmOutcome::Executed(Box::new(executed(job, result, tip, written))))
        }
        Err(EVMError::Transaction(fault)) => Ok(EvmOutcome::Skipped(skip_of(&fault))),
        Err(EVMError::Database(waits)) => Err(waits),
        Err(EVMError::Header(_)) => Ok(EvmOutcome::Skipped(Skip::Invalid)),
        Err(EVMError::Custom(_) | EVMError::CustomAny(_)) => halt(job, access),
    };
    parts.keep(touched);
    outcome
}

/// The result of a transaction's writes.
#[derive(Default)]
pub(super) struct Written {
    /// Wei that left all accounts.
    lost: U256,
    /// Units of asset 0 that offers lock now and did not lock before.
    locked: i128,
    is_destructive: bool,
    /// Contracts that were created.
    contracts: Vec<Address>,
}

/// Writes the changed parts of the accounts.
pub(super) fn write_all<'a, A: Access>(
    space: u32,
    accounts: impl Iterator<Item = (&'a Address, &'a Account)>,
    access: &mut A,
) -> Written {
    let Written { mut lost, mut locked, mut is_destructive, mut contracts } = Written::default();
    for (&address, account) in accounts {
        let before = (!account.is_loaded_as_not_existing()).then(|| account.original_info());
        is_destructive |= account.is_selfdestructed();
        let is_gone = account.is_selfdestructed() || account.is_empty();
        let after = (!is_gone).then_some(&account.info);
        lost = lost.wrapping_add(before.as_ref().map_or(U256::ZERO, |info| info.balance));
        lost = lost.wrapping_sub(after.map_or(U256::ZERO, |info| info.balance));
        if before.as_ref() != after {
            let known = before.as_ref().is_some_and(|before| before.code.is_none());
            let after = after.map(|info| without_known_code(info, before.as_ref().filter(|_| known)));
            access.write(EvmPlace { space, address, slot: None }, EvmContent::Account(after));
        }
        if !is_gone {
            if account.is_created() {
                contracts.push(address);
            }
            let is_offers = address == evm_address(&OFFERS);
            for (&slot, value) in account.changed_storage_slots() {
                if is_offers {
                    locked += locked_gas_units(&slot, value.original_value, value.present_value);
                }
                let place = EvmPlace { space, address, slot: Some(slot) };
                access.write(place, EvmContent::Slot(value.present_value));
            }
        }
    }
    contracts.sort_unstable();
    Written { lost, locked, is_destructive, contracts }
}

/// A record as it is written. Code that the state before the block has is left out and requested by its hash, so that
/// threads do not constantly update the reference count of one code.
fn without_known_code(info: &AccountInfo, known: Option<&AccountInfo>) -> AccountInfo {
    let AccountInfo { balance, nonce, code_hash, .. } = *info;
    let is_known = code_hash == KECCAK_EMPTY || known.is_some_and(|known| known.code_hash == code_hash);
    let code = if is_known { None } else { info.code.clone() };
    AccountInfo { balance, nonce, code_hash, account_id: None, code }
}

impl Written {
    /// The same, with units that went into or came out of offers not counted as lost.
    fn without_locked(self, gas_token: impl FnOnce() -> Option<TokenFacts>) -> Written {
        if self.locked == 0 {
            return self;
        }
        let wei_per_unit = gas_token().map_or(0, |facts| facts.wei_per_unit());
        let wei = U256::from(self.locked.unsigned_abs()) * U256::from(wei_per_unit);
        let lost = if self.locked < 0 { self.lost.wrapping_add(wei) } else { self.lost.wrapping_sub(wei) };
        Written { lost, locked: 0, ..self }
    }
}

fn executed(job: &EvmJob, result: ExecutionResult, tip: U256, written: Written) -> EvmExecution {
    let Written { lost, is_destructive, contracts, .. } = written;
    let gas_price = job.transaction.effective_gas_price(job.context.block.basefee.into());
    let gas_used = result.tx_gas_used();
    let created = result.created_address();
    let (status, logs, output) = match result {
        ExecutionResult::Success { logs, output, .. } => (EvmStatus::Succeeded, logs, output.into_data()),
        ExecutionResult::Revert { output, .. } => (EvmStatus::Reverted, Vec::new(), output),
        ExecutionResult::Halt { .. } => (EvmStatus::Halted, Vec::new(), Bytes::new()),
    };
    EvmExecution { status, gas_used, gas_price, tip, lost, is_destructive, logs, output, created, contracts }
}

/// The outcome of a transaction that the interpreter could not execute although its reads were final: it pays for all
/// its gas. If it cannot pay, it is skipped.
fn halt<A: Access>(job: &EvmJob, access: &mut A) -> Result<EvmOutcome, Waits> {
    let (transaction, base_fee) = (&job.transaction, u128::from(job.context.block.basefee));
    let place = EvmPlace { space: job.space, address: transaction.caller, slot: None };
    let EvmContent::Account(Some(mut sender)) = access.read(&place)? else {
        return Ok(EvmOutcome::Skipped(Skip::Funds));
    };
    let gas_price = transaction.effective_gas_price(base_fee);
    let gas = U256::from(transaction.gas_limit);
    let paid = gas.saturating_mul(U256::from(gas_price));
    if sender.nonce != transaction.nonce || sender.balance < paid || gas_price < base_fee {
        return Ok(EvmOutcome::Skipped(Skip::Invalid));
    }
    sender.balance -= paid;
    sender.nonce += 1;
    access.write(place, EvmContent::Account(Some(sender)));
    Ok(EvmOutcome::Executed(Box::new(EvmExecution {
        status: EvmStatus::Halted,
        gas_used: transaction.gas_limit,
        gas_price,
        tip: gas * U256::from(gas_price - base_fee),
        lost: paid,
        is_destructive: false,
        logs: Vec::new(),
        output: Bytes::new(),
        created: None,
        contracts: Vec::new(),
    })))
}
