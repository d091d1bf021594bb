//! What a call replaces for itself: parts of accounts, and of its block.
//!
//! The form is that of geth: `{address: {balance, nonce, code, state, stateDiff}}` for accounts, where `state` replaces
//! the whole storage and `stateDiff` some slots of it, and `{number, time, gasLimit, feeRecipient, prevRandao,
//! baseFeePerGas}` for the block. Balances of tokens are slots too: that of a holder is the address of the holder as a
//! number. The code of tokens and offers cannot be replaced.

use std::collections::{BTreeMap, BTreeSet};

use ledger::contracts::ethereum::{self, B256, U256};
use ledger::contracts::{EvmContent, EvmContext, EvmPlace, EvmView, evm_code, is_reserved};
use primitives::Address;
use serde_json::Value;

use super::past_state::PastState;
use super::values::{read_address, read_bytes, read_data, read_quantity, read_slot, read_u64};

/// Maximum number of addresses and slots that a call replaces.
const REPLACED_MAX: usize = 10_000;

/// What a call replaces in the state.
#[derive(Clone, Debug, Default)]
pub(super) struct StateOverrides(BTreeMap<Address, AccountOverride>);

/// What a call replaces in an account.
#[derive(Clone, Debug, Default)]
struct AccountOverride {
    balance: Option<U256>,
    nonce: Option<u64>,
    code: Option<Vec<u8>>,
    /// Whether slots that are not named are zero.
    is_whole: bool,
    slots: Vec<SlotValue>,
}

/// A slot and its value, big-endian.
type SlotValue = ([u8; 32], [u8; 32]);

/// What a call replaces in its block.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockOverrides {
    pub number: Option<U256>,
    time: Option<u64>,
    gas_limit: Option<u64>,
    beneficiary: Option<Address>,
    random: Option<[u8; 32]>,
    base_fee: Option<u64>,
}

/// Reads a field of an object, naming it in errors.
fn named<T>(name: &str, value: &Value, read: impl FnOnce(&Value) -> Result<T, String>) -> Result<Option<T>, String> {
    if value.is_null() {
        return Ok(None);
    }
    read(value).map(Some).map_err(|why| format!("{name}: {why}"))
}

fn slots(value: &Value) -> Result<Vec<SlotValue>, String> {
    let fields = value.as_object().ok_or("an object of slots and values is expected")?;
    fields.iter().map(|(slot, value)| Ok((read_slot(&Value::from(slot.as_str()))?, read_slot(value)?))).collect()
}

impl AccountOverride {
    fn read(value: &Value) -> Result<AccountOverride, String> {
        let mut read = AccountOverride::default();
        for (name, value) in value.as_object().ok_or("an object is expected")? {
            match name.as_str() {
                "balance" => read.balance = named(name, value, read_quantity)?,
                "nonce" => read.nonce = named(name, value, read_u64)?,
                "code" => read.code = named(name, value, read_data)?,
                "state" | "stateDiff" if !read.slots.is_empty() => {
                    return Err("state and stateDiff exclude each other".into());
                }
                "state" => {
                    read.is_whole = !value.is_null();
                    read.slots = named(name, value, slots)?.unwrap_or_default();
                }
                "stateDiff" if read.is_whole => return Err("state and stateDiff exclude each other".into()),
                "stateDiff" => read.slots = named(name, value, slots)?.unwrap_or_default(),
                _ => return Err(format!("{name} cannot be replaced; balance, nonce, code, state and stateDiff can")),
            }
        }
        Ok(read)
    }
}

impl StateOverrides {
    pub fn read(value: &Value) -> Result<StateOverrides, String> {
        let mut accounts = BTreeMap::new();
        let mut count = 0;
        for (address, replaced) in value.as_object().ok_or("an object of addresses is expected")? {
            let account = read_address(&Value::from(address.as_str())).map_err(|why| format!("{address}: {why}"))?;
            let replaced = AccountOverride::read(replaced).map_err(|why| format!("{address}: {why}"))?;
            if replaced.code.is_some() && is_reserved(&account) {
                return Err(format!("{address}: the code of tokens and offers cannot be replaced"));
            }
            count += 1 + replaced.slots.len();
            if count > REPLACED_MAX {
                return Err(format!("more than {REPLACED_MAX} addresses and slots"));
            }
            accounts.insert(account, replaced);
        }
        Ok(StateOverrides(accounts))
    }

    /// The balance of an account, if it is replaced.
    pub fn balance(&self, address: &Address) -> Option<U256> {
        self.0.get(address)?.balance
    }

    /// The accounts whose slots are zero unless they are named.
    pub fn cleared(&self) -> BTreeSet<Address> {
        self.0.iter().filter(|(_, replaced)| replaced.is_whole).map(|(address, _)| *address).collect()
    }

    /// Replaces what executions find from now on, whatever those before it wrote.
    pub fn apply_anew(&self, view: &mut EvmView<PastState>) {
        let cleared = self.cleared();
        cleared.iter().for_each(|address| view.forget_slots(&ethereum::Address::new(address.0)));
        view.state_mut().cleared.extend(cleared);
        self.apply(view);
    }

    /// Replaces what later executions find.
    pub fn apply(&self, view: &mut EvmView<PastState>) {
        for (address, replaced) in &self.0 {
            let address = ethereum::Address::new(address.0);
            let place = EvmPlace { space: 0, address, slot: None };
            let EvmContent::Account(known) = view.content(&place) else { continue };
            let mut info = known.unwrap_or_default();
            info.balance = replaced.balance.unwrap_or(info.balance);
            info.nonce = replaced.nonce.unwrap_or(info.nonce);
            if let Some(code) = &replaced.code {
                let code = evm_code(code.clone().into());
                info.code_hash = code.hash_slow();
                info.code = Some(code);
            }
            view.replace(place, EvmContent::Account(Some(info)));
            for (slot, value) in &replaced.slots {
                let slot = Some(U256::from_be_bytes(*slot));
                view.replace(EvmPlace { space: 0, address, slot }, EvmContent::Slot(U256::from_be_bytes(*value)));
            }
        }
    }
}

impl BlockOverrides {
    pub fn read(value: &Value) -> Result<BlockOverrides, String> {
        let mut read = BlockOverrides::default();
        for (name, value) in value.as_object().ok_or("an object is expected")? {
            match name.as_str() {
                "number" => read.number = named(name, value, read_quantity)?,
                "time" | "timestamp" => read.time = named(name, value, read_u64)?,
                "gasLimit" => read.gas_limit = named(name, value, read_u64)?,
                "feeRecipient" | "coinbase" => read.beneficiary = named(name, value, read_address)?,
                "prevRandao" | "random" => read.random = named(name, value, read_bytes)?,
                "baseFeePerGas" | "baseFee" => read.base_fee = named(name, value, read_u64)?,
                _ => {
                    return Err(format!(
                        "{name} cannot be replaced; number, time, gasLimit, feeRecipient, prevRandao and \
                         baseFeePerGas can"
                    ));
                }
            }
        }
        Ok(read)
    }

    /// Replaces parts of a block. Calls without a price see no base fee, as without replacements.
    pub fn apply(&self, context: &mut EvmContext, has_price: bool) {
        let block = &mut context.block;
        block.number = self.number.unwrap_or(block.number);
        block.timestamp = self.time.map_or(block.timestamp, U256::from);
        block.gas_limit = self.gas_limit.unwrap_or(block.gas_limit);
        block.beneficiary = self.beneficiary.map_or(block.beneficiary, |address| ethereum::Address::new(address.0));
        block.prevrandao = self.random.map(B256::new).or(block.prevrandao);
        block.basefee = self.base_fee.filter(|_| has_price).unwrap_or(block.basefee);
    }
}
