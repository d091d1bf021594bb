//! The state of contracts besides the accounts: storage, code, and what they see of the chain.

use std::collections::{BTreeMap, VecDeque};
use std::hash::BuildHasher;
use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use hashbrown::{DefaultHashBuilder, HashMap};
use primitives::{Address, Amount, AssetId, Digest, Height};
use proofs::{Pair, Place, SlotKey, slot_key};
use revm::primitives::{Address as EvmAddress, B256, U256, keccak256};

use super::call::plain_address;
use super::evm_state::{AccountInfo, EvmCode, EvmState, NO_CODE, evm_code};
use super::offer_words::{BookFacts, OFFERS, OffersSlot};
use super::shown::{ShownCode, shown_code};
use super::slots::GAS_ASSET;
use super::tokens::{TokenFacts, holder_of, token_at};
use crate::Account;
use crate::places::accounts::Accounts;
use crate::places::offers::OrderBook;

/// Heights whose block digests contracts can ask for.
pub const BLOCK_HASHES: usize = 256;
/// Parts that storage is split into. A part is copied when a block writes to it after a checkpoint has begun.
const PARTS: usize = 1 << 10;
const CONTEXT: &str = "walras 2026 contracts v1";
/// Code that accounts have.
#[derive(Clone)]
struct Shared {
    code: EvmCode,
    /// How many accounts have it.
    accounts: u64,
}

/// What contracts see of the chain besides accounts and storage.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ContractsHead {
    /// The minimum price of a unit of gas in wei, in the next block.
    pub base_fee: u64,
    /// Wei that are burnt but do not make a whole unit yet.
    pub carried: u64,
    /// Digests of the last blocks, the newest last.
    pub hashes: VecDeque<Digest>,
}

/// The state of contracts; see the module text.
#[derive(Clone)]
pub struct Contracts {
    head: Option<ContractsHead>,
    storage: Vec<Arc<HashMap<SlotKey, [u8; 32]>>>,
    code: Arc<HashMap<Digest, Shared>>,
    hasher: DefaultHashBuilder,
}

impl Default for Contracts {
    /// The state of a chain without contracts.
    fn default() -> Contracts {
        Contracts { head: None, storage: Vec::new(), code: Arc::default(), hasher: DefaultHashBuilder::default() }
    }
}

impl Contracts {
    /// An empty state.
    pub(crate) fn new(head: ContractsHead) -> Contracts {
        let storage = (0..PARTS).map(|_| Arc::default()).collect();
        Contracts { head: Some(head), storage, ..Contracts::default() }
    }

    /// What contracts see of the chain; `None` on a chain without them.
    pub fn head(&self) -> Option<&ContractsHead> {
        self.head.as_ref()
    }

    pub(super) fn head_mut(&mut self) -> &mut ContractsHead {
        self.head.as_mut().expect("a chain with contracts")
    }

    /// The digest in the state root of everything besides the storage.
    pub fn digest(&self) -> Option<Digest> {
        let bytes = borsh::to_vec(self.head.as_ref()?).expect("writing to memory cannot fail");
        Some(Digest::of(CONTEXT, &bytes))
    }

    /// The value of a slot, big-endian; `None` means zero.
    pub fn slot(&self, address: &Address, slot: &[u8; 32]) -> Option<[u8; 32]> {
        let key = slot_key(address, slot);
        self.part(&key).and_then(|part| self.storage[part].get(&key).copied())
    }

    fn part(&self, key: &SlotKey) -> Option<usize> {
        self.head.as_ref().map(|_| self.hasher.hash_one(key) as usize % PARTS)
    }

    /// Number of slots that are not zero.
    pub fn slots(&self) -> usize {
        self.storage.iter().map(|part| part.len()).sum()
    }

    /// Number of slots that are not zero, by account.
    pub fn slots_by_account(&self) -> BTreeMap<Address, u64> {
        let mut counts = BTreeMap::new();
        for key in self.storage.iter().flat_map(|part| part.keys()) {
            let address = Address(key[..20].try_into().expect("an address stands first"));
            *counts.entry(address).or_default() += 1;
        }
        counts
    }

    /// Number of different codes.
    pub fn codes(&self) -> usize {
        self.code.len()
    }

    /// Writes a slot; returns its former value.
    pub(crate) fn set_slot(&mut self, key: SlotKey, value: Option<[u8; 32]>) -> Option<[u8; 32]> {
        let part = self.part(&key).expect("a chain with contracts");
        let part = Arc::make_mut(&mut self.storage[part]);
        match value {
            Some(value) => part.insert(key, value),
            None => part.remove(&key),
        }
    }

    /// Every slot that is not zero, in order.
    pub(crate) fn sorted_slots(&self) -> impl Iterator<Item = (SlotKey, [u8; 32])> + use<> {
        let mut slots: Vec<_> = self.storage.iter().flat_map(|part| part.iter()).map(|(k, v)| (*k, *v)).collect();
        slots.sort_unstable();
        slots.into_iter()
    }

    /// The code of this hash.
    pub fn code(&self, hash: &Digest) -> Option<&[u8]> {
        self.code.get(hash).map(|shared| shared.code.original_byte_slice())
    }

    /// The same code in the interpreter's form.
    pub(super) fn evm_code(&self, hash: &Digest) -> Option<EvmCode> {
        self.code.get(hash).map(|shared| shared.code.clone())
    }

    /// Hashes of all code, in order.
    pub(crate) fn sorted_codes(&self) -> Vec<Digest> {
        let mut hashes: Vec<Digest> = self.code.keys().copied().collect();
        hashes.sort_unstable();
        hashes
    }

    /// Records that an account has this code from now on.
    pub(crate) fn share(&mut self, hash: Digest, code: impl FnOnce() -> EvmCode) {
        let codes = Arc::make_mut(&mut self.code);
        codes.entry(hash).or_insert_with(|| Shared { code: code(), accounts: 0 }).accounts += 1;
    }

    /// Records that an account does not have this code any more; returns the code if no account has it now.
    pub(crate) fn release(&mut self, hash: &Digest) -> Option<Vec<u8>> {
        let codes = Arc::make_mut(&mut self.code);
        let shared = codes.get_mut(hash).expect("an account has this code");
        shared.accounts -= 1;
        if shared.accounts > 0 {
            return None;
        }
        codes.remove(hash).map(|shared| shared.code.original_byte_slice().to_vec())
    }

    /// Restores code that accounts name; returns its hash.
    pub(crate) fn restore_code(&mut self, bytes: Vec<u8>) -> Digest {
        let hash = Digest(keccak256(&bytes).0);
        Arc::make_mut(&mut self.code).insert(hash, Shared { code: evm_code(bytes.into()), accounts: 0 });
        hash
    }

    /// Counts the accounts of every code. Returns whether each code has at least one account, and each named code
    /// exists.
    pub(crate) fn count_codes(&mut self, accounts: &Accounts) -> bool {
        let codes = Arc::make_mut(&mut self.code);
        for account in accounts.shards().iter().flat_map(|shard| shard.iter()) {
            let code = account.evm().code;
            if code != Digest::default() {
                let Some(shared) = codes.get_mut(&code) else { return false };
                shared.accounts += 1;
            }
        }
        codes.values().all(|shared| shared.accounts > 0)
    }
}

/// The wei that an account has.
pub(super) fn wei_of(account: &Account, wei_per_unit: u64) -> u128 {
    u128::from(account.balance(GAS_ASSET)) * u128::from(wei_per_unit) + u128::from(account.evm().remainder)
}

/// The nonce that Ethereum sees. It is at least 1 for an account that has acted natively, so that no contract is
/// created over it.
pub(super) fn shown_nonce(account: &Account) -> u64 {
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
pub(super) fn units_slot(units: Amount) -> Option<[u8; 32]> {
    (units > 0).then(|| U256::from(units).to_be_bytes())
}

/// What Ethereum sees of a reserved address, which may have received wei.
fn reserved_info(shown: &ShownCode, wei: u128) -> AccountInfo {
    let (code_hash, code) = (shown.hash, Some(shown.code.clone()));
    AccountInfo { balance: U256::from(wei), nonce: 1, code_hash, code, ..AccountInfo::default() }
}

/// The ledger as Ethereum sees it before a block's contract phase.
pub(super) struct LedgerState {
    pub accounts: Accounts,
    pub contracts: Contracts,
    pub wei_per_unit: u64,
    /// The book after the native phase.
    pub book: OrderBook,
    pub book_facts: BookFacts,
    /// Facts about the tokens.
    pub tokens: Arc<[TokenFacts]>,
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
        self.contracts.code.get(&Digest(hash.0)).expect("code that an account names is there").code.clone()
    }

    fn token(&self, _: u32, asset: AssetId) -> Option<TokenFacts> {
        self.tokens.get(asset.0 as usize).cloned()
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
pub(super) fn split(wei: u128, wei_per_unit: u64) -> (Amount, u64) {
    let (units, rest) = (wei / u128::from(wei_per_unit), wei % u128::from(wei_per_unit));
    (Amount::try_from(units).expect("all issued units fit"), rest as u64)
}
