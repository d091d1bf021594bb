//! What a pending transaction is worth to a section: wei that it is expected to pay for each unit of gas it declares.
//!
//! A section is bounded by *declared* gas, since more is not known before execution, and paid for by *used* gas. By
//! arrival alone, whoever declares much and uses little keeps others out for nothing. So sections are filled by worth:
//! the price of a unit of gas, times the part of the declared gas that the transaction is expected to use. A transfer
//! to an account without code uses what its bytes cost. A call is expected to use as large a part as the last call of
//! its contract did, and all of it if that is not known.

use std::collections::HashMap;

use ledger::Ledger;
use ledger::contracts::EthereumTransaction;
use primitives::{Address, Digest};

/// Contracts whose last calls are remembered.
const CONTRACTS_MAX: usize = 4_096;
/// Gas of a transfer, and the most for a byte of its input.
const TRANSFER_GAS: u64 = 21_000;
const BYTE_GAS: u64 = 40;

/// What a transaction offers, and what it is expected to use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offered {
    /// The most wei for a unit of gas, and of these the most above the base fee.
    max_fee: u128,
    max_tip: u128,
    gas: u64,
    /// Gas of its bytes, if nothing else is executed.
    transfer: Option<u64>,
    /// The contract that it calls.
    calls: Option<Address>,
}

/// Gas that the last calls of contracts used and declared.
#[derive(Default)]
pub(super) struct LastCalls(HashMap<Address, (u64, u64)>);

impl Offered {
    pub(super) fn of(transaction: &EthereumTransaction, ledger: &Ledger) -> Offered {
        let parts = transaction.parts();
        let has_code = |to: &Address| {
            let code = ledger.accounts().get(to).map_or(Digest::default(), |account| account.evm().code);
            code != Digest::default()
        };
        let is_bare = parts.authorizations.is_none() && parts.access_list.as_ref().is_none_or(|list| list.is_empty());
        let to = parts.to.filter(|_| is_bare);
        let bytes = BYTE_GAS.saturating_mul(parts.input.len() as u64);
        let transfer = to.filter(|to| !has_code(to)).map(|_| TRANSFER_GAS.saturating_add(bytes));
        let (gas, max_fee) = (parts.gas_limit, parts.max_fee);
        Offered { max_fee, max_tip: parts.max_tip.unwrap_or(max_fee), gas, transfer, calls: parts.to }
    }

    /// In wei for a unit of declared gas.
    pub(super) fn worth(&self, base_fee: u128, last: &LastCalls) -> u128 {
        let price = self.max_fee.min(base_fee.saturating_add(self.max_tip));
        let of_last = |(used, declared): &(u64, u64)| {
            (u128::from(self.gas) * u128::from(*used) / u128::from((*declared).max(1))) as u64
        };
        let call = || self.calls.and_then(|to| last.0.get(&to)).map(of_last);
        let expected = self.transfer.or_else(call).unwrap_or(self.gas).min(self.gas);
        price.saturating_mul(expected.into()) / u128::from(self.gas.max(1))
    }
}

impl LastCalls {
    /// Notes what a transaction has used.
    pub(super) fn note(&mut self, offered: &Offered, used: u64) {
        let Some(to) = offered.calls.filter(|_| offered.transfer.is_none()) else { return };
        if self.0.len() >= CONTRACTS_MAX {
            self.0.clear();
        }
        self.0.insert(to, (used, offered.gas));
    }
}
