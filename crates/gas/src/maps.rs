//! The state of contracts in hash maps: what a loop over one EVM and the executor of the contract phase both read.

use std::convert::Infallible;
use std::sync::Arc;

use hashbrown::HashMap;
use ledger::contracts::ethereum::{Address, B256, KECCAK_EMPTY, U256};
use ledger::contracts::{AccountInfo, EvmCode, EvmContent, EvmPlace, EvmState, TokenFacts};
use primitives::{AssetControl, AssetId, Price};
use revm::database_interface::Database;

/// A state in maps.
#[derive(Clone, Default)]
pub struct Maps {
    /// Balances, nonces and hashes of code.
    pub accounts: HashMap<Address, AccountInfo>,
    /// Values of slots by contract and key.
    pub slots: HashMap<(Address, U256), U256>,
    /// Codes by their hashes.
    pub codes: HashMap<B256, EvmCode>,
}

impl Maps {
    /// Sets an account, and keeps its code by its hash.
    pub fn set_account(&mut self, address: Address, mut info: AccountInfo) {
        if let Some(code) = info.code.take().filter(|_| info.code_hash != KECCAK_EMPTY) {
            self.codes.insert(info.code_hash, code);
        } else if info.code_hash == KECCAK_EMPTY {
            info.code = Some(EvmCode::default());
        }
        self.accounts.insert(address, info);
    }

    /// Writes what a block changed.
    pub fn write(&mut self, writes: Vec<(EvmPlace, EvmContent)>) {
        for (EvmPlace { address, slot, .. }, content) in writes {
            match (slot, content) {
                (Some(slot), EvmContent::Slot(value)) => drop(self.slots.insert((address, slot), value)),
                (None, EvmContent::Account(Some(info))) => self.set_account(address, info),
                _ => drop(self.accounts.remove(&address)),
            }
        }
    }
}

impl Database for Maps {
    type Error = Infallible;

    fn basic(&mut self, address: Address) -> Result<Option<AccountInfo>, Infallible> {
        Ok(self.accounts.get(&address).cloned())
    }

    fn code_by_hash(&mut self, hash: B256) -> Result<EvmCode, Infallible> {
        Ok(self.codes[&hash].clone())
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, Infallible> {
        Ok(self.slots.get(&(address, slot)).copied().unwrap_or_default())
    }

    fn block_hash(&mut self, _: u64) -> Result<B256, Infallible> {
        Ok(B256::ZERO)
    }
}

/// The same, as the executor reads it.
#[derive(Clone)]
pub struct SharedMaps(pub Arc<Maps>);

impl EvmState for SharedMaps {
    fn account(&self, _: u32, address: &Address) -> Option<AccountInfo> {
        let AccountInfo { balance, nonce, code_hash, .. } = *self.0.accounts.get(address)?;
        Some(AccountInfo { balance, nonce, code_hash, account_id: None, code: None })
    }

    fn slot(&self, _: u32, address: &Address, slot: &U256) -> U256 {
        self.0.slots.get(&(*address, *slot)).copied().unwrap_or_default()
    }

    fn code(&self, _: u32, hash: &B256) -> EvmCode {
        self.0.codes[hash].clone()
    }

    fn block_hash(&self, _: u32, _: u64) -> B256 {
        B256::ZERO
    }

    /// Two assets, so that tokens and offers can be called.
    fn token(&self, _: u32, asset: AssetId) -> Option<TokenFacts> {
        let (symbol, valuation) = (format!("A{asset}"), Some(Price::ONE));
        let (decimals, issued, least_units) = (6, 1 << 62, 4_096);
        let (closes, control, is_crowded, pairs_left) = (None, AssetControl::Open, false, None);
        let facts =
            TokenFacts { symbol, decimals, issued, least_units, valuation, closes, control, is_crowded, pairs_left };
        (asset.0 < 2).then_some(facts)
    }
}
