//! Ethereum's own tries, for the roots of fixtures: hexary Merkle-Patricia with Keccak.

use std::collections::BTreeMap;

use alloy_rlp::Encodable;
use alloy_trie::TrieAccount;
use alloy_trie::root::{state_root_unhashed, storage_root_unhashed};
use ledger::contracts::ethereum::{Address, B256, Log, U256, keccak256};
use ledger::contracts::{AccountInfo, EvmContent, EvmPlace};

use super::fixture::{FixtureAccount, FixtureState};

/// Applies the writes of a block to a state.
pub fn write(state: &mut FixtureState, writes: impl Iterator<Item = (EvmPlace, EvmContent)>) {
    for (EvmPlace { address, slot, .. }, content) in writes {
        match (slot, content) {
            (None, EvmContent::Account(None)) => drop(state.remove(&address)),
            (None, EvmContent::Account(Some(info))) => entry(state, address).info = info,
            (Some(slot), EvmContent::Slot(value)) if value.is_zero() => {
                state.get_mut(&address).map(|account| account.storage.remove(&slot));
            }
            (Some(slot), EvmContent::Slot(value)) => drop(entry(state, address).storage.insert(slot, value)),
            (None, EvmContent::Slot(_)) | (Some(_), EvmContent::Account(_)) => {
                unreachable!("contents fit their places")
            }
        }
    }
}

fn entry(state: &mut FixtureState, address: Address) -> &mut FixtureAccount {
    state.entry(address).or_insert_with(|| FixtureAccount { info: AccountInfo::default(), storage: BTreeMap::new() })
}

/// Pays a proposer after a transaction. An empty account that is paid nothing is removed (EIP-161).
pub fn reward(state: &mut FixtureState, proposer: Address, tip: U256) {
    if !tip.is_zero() {
        let account = entry(state, proposer);
        account.info.balance = account.info.balance.saturating_add(tip);
    }
    if state.get(&proposer).is_some_and(|account| account.info.is_empty()) {
        state.remove(&proposer);
    }
}

/// The root of a state.
pub fn state_root(state: &FixtureState) -> B256 {
    state_root_unhashed(state.iter().map(|(address, account)| {
        let slots = account.storage.iter().map(|(slot, value)| (B256::from(*slot), *value));
        let info = &account.info;
        (*address, TrieAccount::new(info.nonce, info.balance, storage_root_unhashed(slots), info.code_hash))
    }))
}

/// The hash of a list of logs.
pub fn logs_hash(logs: &[Log]) -> B256 {
    let mut bytes = Vec::new();
    alloy_rlp::encode_list::<Log, Log>(logs, &mut bytes);
    debug_assert!(logs.iter().all(|log| log.length() > 0));
    keccak256(bytes)
}
