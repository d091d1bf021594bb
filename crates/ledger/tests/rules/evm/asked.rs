//! Calls of reserved addresses, and what they return after a height.

use std::sync::Arc;

use ledger::contracts::ethereum::{self, B256, U256, keccak256};
use ledger::contracts::{AccountInfo, BookFacts, EvmCalled, EvmCode, EvmState, EvmStatus, EvmView, TokenFacts, TxEnv};
use ledger::{Ledger, Pair, Place};
use primitives::{Address, Amount, AssetId, Height, Superblock};

use super::{CHAIN, Chain};

/// The input of a call.
pub fn input(function: &str, arguments: &[U256]) -> Vec<u8> {
    let words = arguments.iter().flat_map(U256::to_be_bytes::<32>);
    keccak256(function)[..4].iter().copied().chain(words).collect()
}

pub fn of(address: Address) -> U256 {
    U256::from_be_slice(&address.0)
}

/// A ledger after a height.
pub struct After(pub Arc<Ledger>, pub u64);

impl EvmState for After {
    fn account(&self, _: u32, address: &ethereum::Address) -> Option<AccountInfo> {
        let seen = self.0.ethereum_account_at(&Address(address.0.0), self.1).expect("kept");
        let code = self.0.ethereum_code(&seen.code).unwrap_or_default();
        let (balance, nonce) = (U256::from(seen.wei), seen.nonce);
        Some(AccountInfo { balance, nonce, code_hash: code.hash_slow(), code: Some(code), ..AccountInfo::default() })
    }

    fn slot(&self, _: u32, address: &ethereum::Address, slot: &U256) -> U256 {
        let value = self.0.slot_at(&Address(address.0.0), &slot.to_be_bytes(), self.1).expect("kept");
        value.map_or(U256::ZERO, U256::from_be_bytes)
    }

    fn code(&self, _: u32, _: &B256) -> EvmCode {
        unreachable!("accounts come with their code")
    }

    fn token(&self, _: u32, asset: AssetId) -> Option<TokenFacts> {
        self.0.token_facts_at(asset, self.1).expect("kept")
    }

    fn book(&self, _: u32) -> BookFacts {
        self.0.book_facts()
    }

    fn is_open(&self, _: u32, pair: Pair) -> bool {
        self.0.book().get(pair).is_some()
    }

    fn ending_at(&self, _: u32, height: Height) -> u32 {
        self.0.book().ending_at(height)
    }

    fn resting(&self, _: u32, pair: Pair, place: &Place) -> Option<Amount> {
        self.0.offer_at(pair, place, self.1).expect("kept")
    }

    fn block_hash(&self, _: u32, _: u64) -> B256 {
        B256::ZERO
    }
}

/// The return value of a call after a height.
pub fn ask_at(chain: &Chain, height: u64, to: Address, data: Vec<u8>) -> EvmCalled {
    let block = Superblock { height, ..Superblock::default() };
    let context = Arc::new(chain.ledger.ethereum_context(&block, usize::MAX, 0));
    let transaction = TxEnv {
        kind: ethereum::TxKind::Call(ethereum::Address::new(to.0)),
        gas_limit: 1_000_000,
        data: data.into(),
        chain_id: Some(CHAIN),
        ..TxEnv::default()
    };
    EvmView::new(After(Arc::new(chain.ledger.clone()), height)).call(&context, transaction).expect("executed")
}

pub fn ask(chain: &Chain, to: Address, function: &str, arguments: &[U256]) -> U256 {
    let called = ask_at(chain, chain.ledger.height(), to, input(function, arguments));
    assert_eq!(called.status, EvmStatus::Succeeded, "{function}");
    U256::from_be_slice(&called.output)
}

/// Calls the account in the first word of its input with the rest and the value that it received, by one of the four
/// instructions; slot 0 is 2 if that succeeded, otherwise 1.
pub fn caller(instruction: u8) -> Vec<u8> {
    let value: &[u8] = if instruction < 0xf4 { &[0x34] } else { &[] };
    let copied = [0x60, 32, 0x36, 0x03, 0x60, 32, 0x5f, 0x37, 0x5f, 0x5f, 0x60, 32, 0x36, 0x03, 0x5f];
    [&copied[..], value, &[0x5f, 0x35, 0x5a, instruction, 0x60, 1, 0x01, 0x5f, 0x55, 0x00]].concat()
}
