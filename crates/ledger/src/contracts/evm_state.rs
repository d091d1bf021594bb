//! What a transaction reads and writes: the state before its block, locations, and their contents.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use primitives::{Amount, AssetId, Height};
use proofs::{Pair, Place};
use revm::database_interface::DBErrorMarker;
use revm::primitives::{Address, B256, KECCAK_EMPTY, U256};
use stm::Blocked;

pub use revm::context::BlockEnv;
pub use revm::context::CfgEnv;
pub use revm::context::TxEnv;
pub use revm::primitives::hardfork::SpecId;
pub use revm::state::AccountInfo;

use super::offer_words::BookFacts;
use super::tokens::{HolderFacts, TokenFacts};
use crate::places::contracts::EvmCode;

/// The state that a block of Ethereum transactions begins with. Tests run many blocks at once: each has a *space*,
/// which is a separate state. A ledger has only space 0.
pub trait EvmState: Send + Sync + 'static {
    /// The account at an address, unless it is empty. Its code may be left out: it is then requested by its hash.
    fn account(&self, space: u32, address: &Address) -> Option<AccountInfo>;
    /// The value of a slot; zero if it was never written.
    fn slot(&self, space: u32, address: &Address, slot: &U256) -> U256;
    /// The code that has this hash.
    fn code(&self, space: u32, hash: &B256) -> EvmCode;
    /// The hash of one of the last 256 blocks.
    fn block_hash(&self, space: u32, number: u64) -> B256;

    /// Facts about the token of an asset. A state without asset 0 has no tokens.
    fn token(&self, _space: u32, _asset: AssetId) -> Option<TokenFacts> {
        None
    }

    /// Facts about a holder of a controlled asset.
    fn holder(&self, _space: u32, _asset: AssetId, _account: &Address) -> HolderFacts {
        HolderFacts::default()
    }

    /// The room for offers in the book.
    fn book(&self, _space: u32) -> BookFacts {
        BookFacts::default()
    }

    /// Whether a pair has resting offers.
    fn is_open(&self, _space: u32, _pair: Pair) -> bool {
        false
    }

    /// Offers that end at a height.
    fn ending_at(&self, _space: u32, _height: Height) -> u32 {
        0
    }

    /// Units for sale of an offer, if it rests.
    fn resting(&self, _space: u32, _pair: Pair, _place: &Place) -> Option<Amount> {
        None
    }
}

/// The environment of a transaction: its block and the rules.
#[derive(Clone, Debug)]
pub struct EvmContext {
    /// The block, with the proposer of the transaction as its beneficiary.
    pub block: BlockEnv,
    /// The rules.
    pub rules: CfgEnv,
}

/// A transaction to execute.
#[derive(Clone, Debug)]
pub struct EvmJob {
    /// The state that it belongs to.
    pub space: u32,
    /// Its environment.
    pub context: Arc<EvmContext>,
    /// The transaction, with its sender.
    pub transaction: Arc<TxEnv>,
}

/// A location of the state: an account's record, or one slot of its storage.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EvmPlace {
    /// The space of the state.
    pub space: u32,
    /// The account.
    pub address: Address,
    /// The slot; `None` for the record.
    pub slot: Option<U256>,
}

/// Hashes words, which is faster than hashing bytes.
impl Hash for EvmPlace {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let [head @ .., a, b, c, d] = self.address.into_array();
        let word = |from: usize| u64::from_le_bytes(std::array::from_fn(|at| head[from + at]));
        hasher.write_u64(word(0));
        hasher.write_u64(word(8));
        hasher.write_u64(u64::from(self.space) << 32 | u64::from(u32::from_le_bytes([a, b, c, d])));
        if let Some(slot) = &self.slot {
            slot.as_limbs().iter().for_each(|&limb| hasher.write_u64(limb));
        }
    }
}

/// The content of a location.
#[derive(Clone, Debug, PartialEq)]
pub enum EvmContent {
    /// The record of an account; `None` if it is empty.
    Account(Option<AccountInfo>),
    /// The value of a slot.
    Slot(U256),
}

/// How a running transaction reads the state.
pub(super) trait Access {
    /// The content of a location.
    fn read(&mut self, place: &EvmPlace) -> Result<EvmContent, Waits>;
    /// Changes the content of a location.
    fn write(&mut self, place: EvmPlace, content: EvmContent);
    /// Whether the values read are final, so that a panic is the transaction's own failure.
    fn is_final(&self) -> bool;
}

/// A read found the estimate of a lower transaction: the execution is repeated later.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(transparent)]
pub(super) struct Waits(#[from] pub Blocked);

impl DBErrorMarker for Waits {}

/// The hash of no code.
pub(crate) const NO_CODE: B256 = KECCAK_EMPTY;
