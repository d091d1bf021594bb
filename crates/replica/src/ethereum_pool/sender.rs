//! The pending transactions of one sender, by nonce.

use std::collections::BTreeMap;

use ledger::Ledger;
use primitives::{Address, Digest, TransactionId};

use super::worth::Offered;

/// A pending transaction.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub id: TransactionId,
    pub bytes: Vec<u8>,
    pub gas: u64,
    pub max_fee: u128,
    pub offered: Offered,
    pub cost: u128,
    /// The order of arrival.
    pub arrival: u64,
    pub since_ms: u64,
    pub is_proposed: bool,
}

/// The pending transactions of one sender.
#[derive(Clone, Debug, Default)]
pub(super) struct Sender {
    /// The account's next nonce when it was last looked at.
    pub next: u64,
    pub waiting: BTreeMap<u64, Entry>,
}

/// The code of a sender, as far as it bears on what the sender may send.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SenderCode {
    None,
    /// The account of a key runs the code of a contract (EIP-7702).
    Delegates,
    Contract,
}

impl SenderCode {
    pub fn of(ledger: &Ledger, address: &Address) -> SenderCode {
        let code = ledger.accounts().get(address).map_or(Digest::default(), |account| account.evm().code);
        match ledger.ethereum_code(&code) {
            _ if code == Digest::default() => SenderCode::None,
            Some(code) if code.is_eip7702() => SenderCode::Delegates,
            _ => SenderCode::Contract,
        }
    }
}

impl Entry {
    /// The minimum price of a replacement: 110 percent rounded down, as wallets compute it, and more than its own.
    pub fn replaced_by(&self) -> u128 {
        self.max_fee.saturating_add((self.max_fee / 10).max(1))
    }
}

impl Sender {
    /// The maximum cost of all transactions except the one with this nonce.
    pub fn cost_but(&self, nonce: u64) -> u128 {
        let others = self.waiting.iter().filter(|(other, _)| **other != nonce);
        others.map(|(_, entry)| entry.cost).fold(0, u128::saturating_add)
    }

    /// The transactions above a gap that yield to one with this nonce, so that `wei` pay for all that are left; `None`
    /// if they do not pay for them. Only a transaction that can be proposed makes others yield.
    pub fn yielding(&self, next: u64, nonce: u64, cost: u128, wei: u128) -> Option<Vec<TransactionId>> {
        let mut total = self.cost_but(nonce).saturating_add(cost);
        let mut yielding = Vec::new();
        let mut gap = next;
        while self.waiting.contains_key(&gap) {
            gap += 1;
        }
        let above = self.waiting.range(gap..).rev().filter(|(other, entry)| **other != nonce && !entry.is_proposed);
        for (_, entry) in above.take_while(|_| nonce <= gap) {
            if total <= wei {
                break;
            }
            total = total.saturating_sub(entry.cost);
            yielding.push(entry.id);
        }
        (total <= wei).then_some(yielding)
    }

    /// The lowest transaction from a nonce on that has not been proposed, if below it there is neither a gap nor a
    /// transaction that offers too little.
    pub fn ready(&self, from: u64, base_fee: u128) -> Option<(u64, &Entry)> {
        let from = from.max(self.next);
        self.without_gap(base_fee).find(|(nonce, entry)| *nonce >= from && !entry.is_proposed)
    }

    /// The transactions from the account's nonce up to the first gap or the first one that offers too little.
    pub fn without_gap(&self, base_fee: u128) -> impl Iterator<Item = (u64, &Entry)> {
        (self.next..)
            .zip(&self.waiting)
            .take_while(move |(expected, (nonce, entry))| expected == *nonce && entry.max_fee >= base_fee)
            .map(|(nonce, (_, entry))| (nonce, entry))
    }
}

/// Whether all nonces from `next` up to this one are pending.
pub(super) fn follows(sender: Option<&Sender>, next: u64, nonce: u64) -> bool {
    sender.map_or(0, |sender| sender.waiting.range(next..nonce).count()) as u64 == nonce - next
}
