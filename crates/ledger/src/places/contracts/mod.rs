//! The state of contracts besides the accounts: storage, code, and what they see of the chain. Addresses that are
//! nobody's stand in `reserved`.

mod custody;
pub(crate) mod reserved;

use std::collections::{BTreeMap, VecDeque};
use std::hash::BuildHasher;
use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use hashbrown::{DefaultHashBuilder, HashMap};
use primitives::{Address, Digest};
use proofs::{SlotKey, slot_key};
use revm::primitives::{Bytes, keccak256};
pub use revm::state::Bytecode as EvmCode;

use super::accounts::Accounts;
use crate::terms::ForkSchedule;
pub(crate) use custody::ContractsChange;

/// Heights whose block digests contracts can ask for.
pub const BLOCK_HASHES: usize = 256;
/// Parts that storage is split into. A part is copied when a block writes to it after a checkpoint has begun.
const PARTS: usize = 1 << 10;
const CONTEXT: &str = "walras 2026 contracts v1";

/// Code from its bytes: a contract, or the address of the contract that an account delegates to.
pub fn evm_code(bytes: Bytes) -> EvmCode {
    EvmCode::new_raw_checked(bytes.clone()).unwrap_or_else(|_| EvmCode::new_legacy(bytes))
}

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
    forks: ForkSchedule,
    storage: Vec<Arc<HashMap<SlotKey, [u8; 32]>>>,
    code: Arc<HashMap<Digest, Shared>>,
    hasher: DefaultHashBuilder,
}

impl Default for Contracts {
    /// The state of a chain without contracts.
    fn default() -> Contracts {
        let (forks, hasher) = (ForkSchedule::default(), DefaultHashBuilder::default());
        Contracts { head: None, forks, storage: Vec::new(), code: Arc::default(), hasher }
    }
}

impl Contracts {
    /// An empty state.
    pub(crate) fn new(head: ContractsHead, forks: ForkSchedule) -> Contracts {
        let storage = (0..PARTS).map(|_| Arc::default()).collect();
        Contracts { head: Some(head), forks, storage, ..Contracts::default() }
    }

    /// What contracts see of the chain; `None` on a chain without them.
    pub fn head(&self) -> Option<&ContractsHead> {
        self.head.as_ref()
    }

    /// Which fork begins at which height.
    pub fn forks(&self) -> &ForkSchedule {
        &self.forks
    }

    pub(super) fn set_forks(&mut self, forks: ForkSchedule) {
        self.forks = forks;
    }

    pub(crate) fn head_mut(&mut self) -> &mut ContractsHead {
        self.head.as_mut().expect("a chain with contracts")
    }

    /// The digest in the state root of everything besides the storage.
    pub fn digest(&self) -> Option<Digest> {
        let mut bytes = borsh::to_vec(self.head.as_ref()?).expect("writing to memory cannot fail");
        if let Some(steps) = self.forks.unusual() {
            bytes.extend(borsh::to_vec(steps).expect("writing to memory cannot fail"));
        }
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
    pub(crate) fn evm_code(&self, hash: &Digest) -> Option<EvmCode> {
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
