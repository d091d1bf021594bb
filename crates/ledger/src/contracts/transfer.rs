//! Executes ether transfers between accounts without code, which most transactions are, without the interpreter.
//!
//! Such a transfer uses 21,000 gas, moves the value and pays the fee: nothing else can happen. A transaction that is
//! not clearly valid (price, funds, nonce, limits), or is more than a transfer (data, lists, code, a reserved
//! address), is left to the interpreter, which decides and gives the reason. A test compares both over random
//! transfers.

use proofs::EvmStatus;
use revm::context::{Cfg, Transaction};
use revm::primitives::{Address, KECCAK_EMPTY, TxKind, U256};

use super::call::plain_address;
use super::evm_state::{Access, AccountInfo, EvmContent, EvmJob, EvmPlace, SpecId, TxEnv, Waits};
use super::outcome::EvmExecution;
use crate::places::contracts::reserved::is_reserved;

/// Gas of a transfer.
const TRANSFER_GAS: u64 = 21_000;
/// The last type of transactions that can be plain transfers: that of EIP-1559.
const LAST_TYPE: u8 = 2;
/// Addresses below 2^16 may be those of precompiles.
const PRECOMPILE_PREFIX: [u8; 18] = [0; 18];

/// Executes a transaction if it is a clearly valid transfer.
///
/// # Errors
/// [`Waits`] if a read returned it.
pub(super) fn transfer<A: Access>(job: &EvmJob, access: &mut A) -> Result<Option<EvmExecution>, Waits> {
    let transaction = &*job.transaction;
    let Some(to) = receiver(job) else { return Ok(None) };
    let base_fee = u128::from(job.context.block.basefee);
    let gas_price = transaction.effective_gas_price(base_fee);
    let Ok(most) = transaction.max_balance_spending() else { return Ok(None) };
    let Some(mut sender) = plain_record(job, transaction.caller, access)? else { return Ok(None) };
    if gas_price < base_fee || sender.nonce != transaction.nonce || sender.balance < most {
        return Ok(None);
    }
    let fee = U256::from(TRANSFER_GAS) * U256::from(gas_price);
    if to != transaction.caller {
        let Some(mut receiver) = plain_record(job, to, access)? else { return Ok(None) };
        let Some(sum) = receiver.balance.checked_add(transaction.value) else { return Ok(None) };
        receiver.balance = sum;
        sender.balance -= transaction.value;
        if !transaction.value.is_zero() {
            access.write(place(job, to), EvmContent::Account(Some(receiver)));
        }
    }
    sender.balance -= fee;
    sender.nonce += 1;
    access.write(place(job, transaction.caller), EvmContent::Account(Some(sender)));
    Ok(Some(EvmExecution {
        status: EvmStatus::Succeeded,
        gas_used: TRANSFER_GAS,
        gas_price,
        tip: U256::from(TRANSFER_GAS) * U256::from(gas_price - base_fee),
        lost: fee,
        is_destructive: false,
        logs: Vec::new(),
        output: Default::default(),
        created: None,
        contracts: Vec::new(),
    }))
}

/// The account that a transaction pays, if it does nothing else and its form is valid.
fn receiver(job: &EvmJob) -> Option<Address> {
    let TxEnv { tx_type, gas_limit, gas_price, kind, data, nonce, chain_id, access_list, gas_priority_fee, .. } =
        &*job.transaction;
    let (block, rules) = (&job.context.block, &job.context.rules);
    let is_known = matches!(rules.spec, SpecId::CANCUN | SpecId::PRAGUE | SpecId::OSAKA)
        && block.prevrandao.is_some()
        && block.blob_excess_gas_and_price.is_some();
    let is_plain = *tx_type <= LAST_TYPE && data.is_empty() && access_list.0.is_empty() && *nonce < u64::MAX;
    let is_allowed = (TRANSFER_GAS..=rules.tx_gas_limit_cap().min(block.gas_limit)).contains(gas_limit)
        && *chain_id == Some(rules.chain_id)
        && gas_priority_fee.is_none_or(|priority| priority <= *gas_price);
    match kind {
        TxKind::Call(to) if is_known && is_plain && is_allowed => {
            let may_run = to.starts_with(&PRECOMPILE_PREFIX) || is_reserved(&plain_address(to));
            (!may_run).then_some(*to)
        }
        _ => None,
    }
}

fn place(job: &EvmJob, address: Address) -> EvmPlace {
    EvmPlace { space: job.space, address, slot: None }
}

/// The record of an account that has no code; an empty record if the account does not exist.
fn plain_record<A: Access>(job: &EvmJob, address: Address, access: &mut A) -> Result<Option<AccountInfo>, Waits> {
    let EvmContent::Account(record) = access.read(&place(job, address))? else {
        unreachable!("the record of an account is no slot")
    };
    let record = record.unwrap_or(AccountInfo { code: None, ..AccountInfo::default() });
    Ok((record.code_hash == KECCAK_EMPTY).then_some(record))
}
