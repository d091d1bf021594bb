//! What Ethereum sees of accounts, and of the whole state before the contract phase of a block.

use std::sync::Arc;

use primitives::{Address, Amount, AssetId, Digest, Height};
use proofs::{Pair, Place};
use revm::primitives::{Address as EvmAddress, B256, U256};

use super::call::plain_address;
use super::evm_state::{AccountInfo, EvmState, NO_CODE};
use super::offer_words::{BookFacts, OffersSlot};
use super::shown::{ShownCode, shown_code};
use super::slots::GAS_ASSET;
use super::tokens::{HolderFacts, TokenFacts, holder_of};
use crate::places::accounts::{Account, Accounts};
use crate::places::contracts::reserved::{OFFERS, token_at};
use crate::places::contracts::{Contracts, EvmCode};
use crate::places::controls::{Controls, HeldOffers};
use crate::places::offers::OrderBook;

/// The wei that an account has.
pub(crate) fn wei_of(account: &Account, wei_per_unit: u64) -> u128 {
    u128::from(account.balance(GAS_ASSET)) * u128::from(wei_per_unit) + u128::from(account.evm().remainder)
}

/// The nonce that Ethereum sees. It is at least 1 for an account that has acted natively, so that no contract is
/// created over it.
pub(crate) fn shown_nonce(account: &Account) -> u64 {
    let nonce = account.evm().nonce;
    if account.has_acted() { nonce.max(1) } else { nonce }
}

/// What Ethereum sees of an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EthereumAccount {
    /// Wei that it has.
    pub wei: u128,
    /// The nonce of its next transaction, or of the next contract that it creates.
    pub nonce: u64,
    /// The Keccak hash of its code; zero if it has none.
    pub code: Digest,
}

/// What Ethereum sees of an account.
pub(crate) fn seen(account: &Account, wei_per_unit: u64) -> EthereumAccount {
    EthereumAccount { wei: wei_of(account, wei_per_unit), nonce: shown_nonce(account), code: account.evm().code }
}

/// Units as the value of a slot; `None` for zero.
pub(crate) fn units_slot(units: Amount) -> Option<[u8; 32]> {
    (units > 0).then(|| U256::from(units).to_be_bytes())
}

/// What Ethereum sees of a reserved address, which may have received wei.
fn reserved_info(shown: &ShownCode, wei: u128) -> AccountInfo {
    let (code_hash, code) = (shown.hash, Some(shown.code.clone()));
    AccountInfo { balance: U256::from(wei), nonce: 1, code_hash, code, ..AccountInfo::default() }
}

/// The ledger as Ethereum sees it before a block's contract phase.
pub(crate) struct LedgerState {
    pub accounts: Accounts,
    pub contracts: Contracts,
    pub wei_per_unit: u64,
    /// The book after the native phase.
    pub book: OrderBook,
    pub book_facts: BookFacts,
    /// Facts about the tokens.
    pub tokens: Arc<[TokenFacts]>,
    /// What issuers control, and whom they have frozen, with the words of this block.
    pub controls: Arc<Controls>,
    /// Offers of controlled assets after the native phase.
    pub held: HeldOffers,
    /// The height of the executed block.
    pub height: Height,
}

impl EvmState for LedgerState {
    fn account(&self, _: u32, address: &EvmAddress) -> Option<AccountInfo> {
        let known = self.accounts.get(&Address(address.0.0));
        if let Some(shown) = shown_code(&plain_address(address)) {
            return Some(reserved_info(shown, known.map_or(0, |account| wei_of(account, self.wei_per_unit))));
        }
        let account = known?;
        let code = account.evm().code;
        let info = AccountInfo {
            balance: U256::from(wei_of(account, self.wei_per_unit)),
            nonce: shown_nonce(account),
            code_hash: if code == Digest::default() { NO_CODE } else { B256::new(code.0) },
            account_id: None,
            code: None,
        };
        (!info.is_empty()).then_some(info)
    }

    fn slot(&self, _: u32, address: &EvmAddress, slot: &U256) -> U256 {
        let (address, slot) = (Address(address.0.0), slot.to_be_bytes());
        let value = match token_at(&address).zip(holder_of(&slot)) {
            Some((asset, holder)) => units_slot(self.accounts.get(&holder).map_or(0, |account| account.balance(asset))),
            None if address == OFFERS && OffersSlot::of(&slot) != OffersSlot::Count => None,
            None => self.contracts.slot(&address, &slot),
        };
        value.map_or(U256::ZERO, U256::from_be_bytes)
    }

    fn code(&self, _: u32, hash: &B256) -> EvmCode {
        self.contracts.evm_code(&Digest(hash.0)).expect("code that an account names is there")
    }

    fn token(&self, _: u32, asset: AssetId) -> Option<TokenFacts> {
        self.tokens.get(asset.0 as usize).cloned()
    }

    fn holder(&self, _: u32, asset: AssetId, account: &EvmAddress) -> HolderFacts {
        let account = plain_address(account);
        HolderFacts { standing: self.controls.standing(asset, &account), offers: self.held.count(asset, &account) }
    }

    fn book(&self, _: u32) -> BookFacts {
        self.book_facts
    }

    fn is_open(&self, _: u32, pair: Pair) -> bool {
        self.book.get(pair).is_some()
    }

    fn ending_at(&self, _: u32, height: Height) -> u32 {
        self.book.ending_at(height)
    }

    fn resting(&self, _: u32, pair: Pair, place: &Place) -> Option<Amount> {
        self.book.get(pair)?.get(place)
    }

    fn block_hash(&self, _: u32, number: u64) -> B256 {
        let hashes = &self.contracts.head().expect("a chain with contracts").hashes;
        let back = self.height.checked_sub(number).and_then(|back| usize::try_from(back).ok());
        let at = back.filter(|back| *back > 0).and_then(|back| hashes.len().checked_sub(back));
        at.map_or(B256::ZERO, |at| B256::new(hashes[at].0))
    }
}

/// Splits wei into units and the remainder below one unit.
pub(crate) fn split(wei: u128, wei_per_unit: u64) -> (Amount, u64) {
    let (units, rest) = (wei / u128::from(wei_per_unit), wei % u128::from(wei_per_unit));
    (Amount::try_from(units).expect("all issued units fit"), rest as u64)
}
