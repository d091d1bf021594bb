//! Independent bookkeeping of one account.

use std::collections::{BTreeMap, BTreeSet};

use ledger::Ledger;
use primitives::{Address, AssetId, PublicKey, Sequence};

/// See the module text.
#[derive(Clone, Default)]
pub(super) struct Holder {
    pub balances: BTreeMap<AssetId, i128>,
    /// Of its own numbers, not of those of its session keys.
    pub used: BTreeSet<Sequence>,
    pub key: Option<PublicKey>,
}

impl Holder {
    /// Compares the account with these books.
    pub fn hold(&self, address: &Address, ledger: &Ledger) -> Result<(), String> {
        let account = ledger.accounts().get(address).ok_or_else(|| format!("{address} is missing"))?;
        let state = account.state();
        let held: Vec<(AssetId, i128)> =
            state.balances.iter().map(|(asset, units)| (*asset, (*units).into())).collect();
        let ours: Vec<(AssetId, i128)> =
            self.balances.iter().filter(|(_, units)| **units != 0).map(|(asset, units)| (*asset, *units)).collect();
        if held != ours {
            return Err(format!("{address} holds {held:?}, but by the receipts {ours:?}"));
        }
        if let Some(free) = self.used.iter().find(|used| state.window.check(**used).is_ok()) {
            return Err(format!("sequence number {free} of {address} is used but still free"));
        }
        if state.window.highest() != self.used.last().copied().unwrap_or(0) || state.key != self.key {
            return Err(format!("{address} has a key or window that differs from the receipts"));
        }
        Ok(())
    }
}
