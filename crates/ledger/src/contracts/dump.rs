//! The state of all accounts, for a developer who moves it to another developers' chain.

use std::collections::BTreeMap;

use primitives::{Address, Digest};
use revm::primitives::{Bytes, U256};

use super::state::seen;
use crate::places::accounts::Accounts;
use crate::places::contracts::Contracts;
use crate::places::contracts::reserved::is_reserved;

/// What Ethereum sees of an account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DumpedAccount {
    /// Its address.
    pub address: Address,
    /// Wei.
    pub wei: u128,
    /// The nonce of its next transaction.
    pub nonce: u64,
    /// Its code; empty without any.
    pub code: Bytes,
    /// Its slots that are not zero, in order.
    pub slots: Vec<(U256, U256)>,
}

/// What Ethereum sees of all accounts, by address: without the reserved ones, whose slots are the balances of other
/// assets and the book.
pub(crate) fn dumped(accounts: &Accounts, contracts: &Contracts, wei_per_unit: u64) -> Vec<DumpedAccount> {
    let all = accounts.shards().iter().flat_map(|shard| shard.iter());
    let mut dumped: BTreeMap<Address, DumpedAccount> = all
        .map(|account| {
            let (address, shown) = (account.address(), seen(account, wei_per_unit));
            let code = Some(&shown.code).filter(|code| **code != Digest::default());
            let code = code.and_then(|code| contracts.code(code)).map(Bytes::copy_from_slice);
            let (wei, nonce, code) = (shown.wei, shown.nonce, code.unwrap_or_default());
            (address, DumpedAccount { address, wei, nonce, code, slots: Vec::new() })
        })
        .collect();
    for (key, value) in contracts.sorted_slots() {
        let (address, slot) = key.split_at(20);
        let address = Address(address.try_into().expect("an address stands first"));
        let account = dumped.entry(address).or_insert_with(|| DumpedAccount { address, ..Default::default() });
        account.slots.push((U256::from_be_slice(slot), U256::from_be_bytes(value)));
    }
    dumped.retain(|address, _| !is_reserved(address));
    dumped.into_values().collect()
}
