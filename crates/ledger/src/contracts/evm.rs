//! Executes one Ethereum transaction over any state. No other module of the workspace uses the interpreter of revm.
//!
//! A transaction reads through an [`Access`], which is either a view of Block-STM or a plain overlay, and its write
//! set is taken from the journal at its end: accounts whose record changed, and slots whose present value differs
//! from the original one. The proposer's reward is kept apart, so that it makes no transaction depend on another.

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use revm::context::result::{EVMError, ExecutionResult, HaltReason};
use revm::context::{Block as _, ContextTr, Transaction};
use revm::database_interface::DBErrorMarker;
use revm::handler::{EvmTr, FrameResult, Handler};
use revm::primitives::{Address, B256, Bytes, KECCAK_EMPTY, U256};
use revm::state::Account;

pub use revm::context::{BlockEnv, CfgEnv, TxEnv};
pub use revm::primitives::hardfork::SpecId;
pub use revm::state::{AccountInfo, Bytecode as EvmCode};

use primitives::{Amount, AssetId};
use stm::Blocked;

use super::assets::TokenFacts;
use super::machine::{Machine, Parts, Reader, machine, taken_apart};
use super::offers::{BookFacts, OFFERS, locked_gas_units};
use super::outcome::{EvmExecution, EvmOutcome, EvmStatus, Skip};
use super::reserved::evm_address;
use super::state::GAS_ASSET;
use super::transfer::transfer;
use crate::places::offers::{Pair, Place};

/// The state that a block of Ethereum transactions begins with. Tests run many blocks at once: each has a *space*,
/// which is a separate state. A ledger has only space 0.
pub trait EvmState: Send + Sync + 'static {
    /// The account at an address, unless it is empty. Its code may be left out: it is then requested by its hash.
    fn account(&self, space: u32, address: &Address) -> Option<AccountInfo>;
    /// The value of a slot; zero if it was never written.
    fn slot(&self, space: u32, address: &Address, slot: &U256) -> U256;
    /// The code that has this hash.
    fn code(&self, space: u32, hash: &B256) -> EvmCode;
    /// The hash of one of the last 256 blocks.
    fn block_hash(&self, space: u32, number: u64) -> B256;

    /// Facts about the token of an asset. A state without asset 0 has no tokens.
    fn token(&self, _space: u32, _asset: AssetId) -> Option<TokenFacts> {
        None
    }

    /// The room for offers in the book.
    fn book(&self, _space: u32) -> BookFacts {
        BookFacts::default()
    }

    /// Whether a pair has resting offers.
    fn is_open(&self, _space: u32, _pair: Pair) -> bool {
        false
    }

    /// Units for sale of an offer, if it rests.
    fn resting(&self, _space: u32, _pair: Pair, _place: &Place) -> Option<Amount> {
        None
    }
}

/// The environment of a transaction: its block and the rules.
#[derive(Clone, Debug)]
pub struct EvmContext {
    /// The block, with the proposer of the transaction as its beneficiary.
    pub block: BlockEnv,
    /// The rules.
    pub rules: CfgEnv,
}

/// A transaction to execute.
#[derive(Clone, Debug)]
pub struct EvmJob {
    /// The state that it belongs to.
    pub space: u32,
    /// Its environment.
    pub context: Arc<EvmContext>,
    /// The transaction, with its sender.
    pub transaction: Arc<TxEnv>,
}

/// A location of the state: an account's record, or one slot of its storage.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EvmPlace {
    /// The space of the state.
    pub space: u32,
    /// The account.
    pub address: Address,
    /// The slot; `None` for the record.
    pub slot: Option<U256>,
}

/// Hashes words, which is faster than hashing bytes.
impl Hash for EvmPlace {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let [head @ .., a, b, c, d] = self.address.into_array();
        let word = |from: usize| u64::from_le_bytes(std::array::from_fn(|at| head[from + at]));
        hasher.write_u64(word(0));
        hasher.write_u64(word(8));
        hasher.write_u64(u64::from(self.space) << 32 | u64::from(u32::from_le_bytes([a, b, c, d])));
        if let Some(slot) = &self.slot {
            slot.as_limbs().iter().for_each(|&limb| hasher.write_u64(limb));
        }
    }
}

/// The content of a location.
#[derive(Clone, Debug, PartialEq)]
pub enum EvmContent {
    /// The record of an account; `None` if it is empty.
    Account(Option<AccountInfo>),
    /// The value of a slot.
    Slot(U256),
}

/// How a running transaction reads the state.
pub(super) trait Access {
    /// The content of a location.
    fn read(&mut self, place: &EvmPlace) -> Result<EvmContent, Waits>;
    /// Changes the content of a location.
    fn write(&mut self, place: EvmPlace, content: EvmContent);
    /// Whether the values read are final, so that a panic is the transaction's own failure.
    fn is_final(&self) -> bool;
}

/// A read found the estimate of a lower transaction: the execution is repeated later.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(transparent)]
pub(super) struct Waits(#[from] pub Blocked);

impl DBErrorMarker for Waits {}

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
        self.tip.set(U256::from(tip) * U256::from(result.gas().used()));
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
        Err(EVMError::Transaction(fault)) => Ok(EvmOutcome::Skipped(Skip::of(&fault))),
        Err(EVMError::Database(waits)) => Err(waits),
        Err(EVMError::Header(_)) => Ok(EvmOutcome::Skipped(Skip::Invalid)),
        Err(EVMError::Custom(_) | EVMError::CustomAny(_)) => halt(job, access),
    };
    parts.keep(touched);
    outcome
}

/// The result of a transaction's writes.
#[derive(Default)]
struct Written {
    /// Wei that left all accounts.
    lost: U256,
    /// Units of asset 0 that offers lock now and did not lock before.
    locked: i128,
    is_destructive: bool,
    /// Contracts that were created.
    contracts: Vec<Address>,
}

/// Writes the changed parts of the accounts.
fn write_all<'a, A: Access>(
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

/// The hash of no code.
pub(super) const NO_CODE: B256 = KECCAK_EMPTY;

/// Code from its bytes: a contract, or the address of the contract that an account delegates to.
pub fn evm_code(bytes: Bytes) -> EvmCode {
    EvmCode::new_raw_checked(bytes.clone()).unwrap_or_else(|_| EvmCode::new_legacy(bytes))
}
