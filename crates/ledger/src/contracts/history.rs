//! What Ethereum saw at earlier heights: undo records of the last blocks.
//!
//! For each block of a chain with contracts, the ledger records for every account that the block changed what
//! Ethereum saw of it before, the former values of the slots, and code that no account has any more. A query about a
//! height is answered by the first record above it that names the account or slot, or by the present state. Changes
//! of the native phase and of the contract phase are recorded separately, so that the transactions of a block can be
//! executed again: the state between the phases is in the records of the contract phase, or is the one after the
//! block.
//!
//! The records are not part of the state: no root, checkpoint or fetched state contains them. A node that starts has
//! the records of the blocks that it replays, from its newest checkpoint on, and refuses queries about earlier
//! heights.
//!
//! *Properties.* At most [`HISTORY_BLOCKS`] blocks and [`HISTORY_RECORDS`] records are kept, so memory is bounded
//! whatever blocks change. An answer is either the correct state or an error.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use primitives::{Address, Amount, AssetId, Digest, Height, Price};
use proofs::{Batch, EndedOffer, Pair, Place, SlotKey, slot_key};
use smallvec::SmallVec;

use super::evm_state::{EvmCode, evm_code};
use super::offer_words::FIRST_CONTRACT_OFFER;
use super::shown::{fact_slot, shown_code, shown_code_of};
use super::slots::GAS_ASSET;
use super::state::{EthereumAccount, seen, units_slot};
use super::tokens::{TokenFacts, balance_slot, holder_of, token_address, token_at};
use crate::places::offers::OrderBook;
use crate::{Account, Ledger};

/// Blocks whose records are kept.
pub const HISTORY_BLOCKS: usize = 256;
/// Accounts and slots in all retained records; the record of the last block is always retained.
pub const HISTORY_RECORDS: usize = 1 << 20;

/// Why the state at a height cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UndoError {
    /// The height is not reached yet.
    #[error("height {0} is not reached yet")]
    Future(Height),
    /// The height is older than the records.
    #[error("the state of height {height} is not kept: the oldest state of this node is that of height {first}")]
    Forgotten {
        /// The requested height.
        height: Height,
        /// The first height whose state is available.
        first: Height,
    },
}

/// The former values of what a block changed.
#[derive(Debug, Default)]
pub(crate) struct Undo {
    /// For accounts that the native phase changed, what Ethereum saw before it.
    pub native: HashMap<Address, EthereumAccount>,
    /// For accounts that the contract phase changed, what Ethereum saw before it.
    pub accounts: HashMap<Address, EthereumAccount>,
    pub slots: HashMap<SlotKey, Option<[u8; 32]>>,
    /// For virtual slots that the native phase changed, the value before it.
    pub native_slots: HashMap<SlotKey, Option<[u8; 32]>>,
    /// Code that no account has any more.
    pub code: HashMap<Digest, Vec<u8>>,
    /// For offers that contracts placed and the native phase changed, the units before it.
    pub native_offers: HashMap<(Pair, Place), Option<Amount>>,
    /// For offers that the contract phase changed, the units before it.
    pub offers: HashMap<(Pair, Place), Option<Amount>>,
    /// Valuations of all assets before the block.
    pub valuations: Vec<Option<Price>>,
}

impl Undo {
    /// Records an account as it was before the contract phase; only the first record in a block counts.
    pub fn note(&mut self, address: Address, before: EthereumAccount) {
        self.accounts.entry(address).or_insert(before);
    }

    /// Records an account as it was before the native phase; only the first record in a block counts. `now` is the
    /// account after the block.
    pub fn note_native(&mut self, before: SeenBefore, now: &Account) {
        let SeenBefore { address, ethereum, assets } = before;
        if let Entry::Vacant(vacant) = self.native.entry(address) {
            vacant.insert(ethereum);
            let gone = assets.iter().copied();
            let came = now.balances().filter(|(asset, _)| !assets.iter().any(|(held, _)| held == asset));
            for (asset, units) in gone.chain(came.map(|(asset, _)| (asset, 0))) {
                let key = slot_key(&token_address(asset), &balance_slot(&address));
                if asset != GAS_ASSET && (now.balance(asset) != units || self.slots.contains_key(&key)) {
                    self.native_slots.insert(key, units_slot(units));
                }
            }
        }
    }

    /// Records which offers of contracts a batch fills, and which end after it.
    pub fn note_batch(&mut self, batch: &Batch) {
        let ended = batch.ended.iter().filter(|ended| ended.why.is_after_batch());
        let own = ended.filter(|ended| ended.place.id >= FIRST_CONTRACT_OFFER);
        self.native_offers.extend(own.map(|ended| ((ended.pair, ended.place), Some(ended.returned))));
        // Of an offer that traded before it ended, this is what it had.
        let own = batch.fills.iter().filter(|fill| fill.place.id >= FIRST_CONTRACT_OFFER);
        self.native_offers.extend(own.map(|fill| ((fill.pair, fill.place), Some(fill.offered()))));
    }

    /// Records which offers of contracts are cancelled natively; `book` is the one before the block.
    pub fn note_leaving(&mut self, leaving: &[EndedOffer], book: &OrderBook) {
        for EndedOffer { pair, place, .. } in leaving.iter().filter(|ended| ended.place.id >= FIRST_CONTRACT_OFFER) {
            self.native_offers.insert((*pair, *place), book.rests((*pair, *place)));
        }
    }

    /// Units of an offer before the block, if the block changed them.
    fn offer_before(&self, offer: &(Pair, Place)) -> Option<Option<Amount>> {
        self.native_offers.get(offer).or_else(|| self.offers.get(offer)).copied()
    }

    /// The value of a slot before the block, if the block changed it.
    fn slot_before(&self, key: &SlotKey) -> Option<Option<[u8; 32]>> {
        self.native_slots.get(key).or_else(|| self.slots.get(key)).copied()
    }

    /// The account before the block, if the block changed it.
    fn before(&self, address: &Address) -> Option<EthereumAccount> {
        self.native.get(address).or_else(|| self.accounts.get(address)).copied()
    }

    fn len(&self) -> usize {
        let offers = self.native_offers.len() + self.offers.len() + self.valuations.len();
        self.native.len() + self.native_slots.len() + self.accounts.len() + self.slots.len() + offers
    }
}

/// What Ethereum saw of an account before the native phase of a block, and units of its assets.
pub(crate) struct SeenBefore {
    pub address: Address,
    pub ethereum: EthereumAccount,
    pub assets: SmallVec<[(AssetId, Amount); 2]>,
}

/// A reserved address is shown as a contract, whatever it holds.
fn shown(address: &Address, account: EthereumAccount) -> EthereumAccount {
    match shown_code(address) {
        Some(shown) => EthereumAccount { nonce: 1, code: Digest(shown.hash.0), ..account },
        None => account,
    }
}

/// The records of the last blocks, the newest last; see the module text.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    blocks: VecDeque<Arc<Undo>>,
    records: usize,
}

impl History {
    /// Adds the record of the block that was just applied.
    pub fn push(&mut self, undo: Undo) {
        self.records += undo.len();
        self.blocks.push_back(Arc::new(undo));
        let is_full = |history: &History| {
            history.blocks.len() > HISTORY_BLOCKS || (history.records > HISTORY_RECORDS && history.blocks.len() > 1)
        };
        while is_full(self) {
            self.records -= self.blocks.pop_front().map_or(0, |undo| undo.len());
        }
    }
}

impl Ledger {
    /// The records above a height, the oldest first.
    fn undone(&self, height: Height) -> Result<impl Iterator<Item = &Undo>, UndoError> {
        let blocks = &self.history.blocks;
        let above = self.height.checked_sub(height).ok_or(UndoError::Future(height))?;
        let first = self.height - blocks.len() as u64;
        if height < first {
            return Err(UndoError::Forgotten { height, first });
        }
        Ok(blocks.range(blocks.len() - above as usize..).map(Arc::as_ref))
    }

    /// What Ethereum saw of an account after a block.
    ///
    /// # Errors
    /// [`UndoError`] if the state after this height is not kept.
    pub fn ethereum_account_at(&self, address: &Address, height: Height) -> Result<EthereumAccount, UndoError> {
        let noted = self.undone(height)?.find_map(|undo| undo.before(address));
        let present = || self.places.accounts.get(address).map(|account| seen(account, self.wei_per_unit()));
        Ok(shown(address, noted.or_else(present).unwrap_or_default()))
    }

    /// The value of a slot after a block, big-endian; `None` means zero.
    ///
    /// # Errors
    /// [`UndoError`] if the state after this height is not kept.
    pub fn slot_at(&self, address: &Address, slot: &[u8; 32], height: Height) -> Result<Option<[u8; 32]>, UndoError> {
        let key = slot_key(address, slot);
        let noted = self.undone(height)?.find_map(|undo| undo.slot_before(&key));
        Ok(noted.unwrap_or_else(|| self.present_slot(address, slot)))
    }

    /// The value of a slot between the native phase and the contract phase of a block, big-endian.
    ///
    /// # Errors
    /// [`UndoError`] if the state before this height is not kept.
    pub fn slot_within(
        &self,
        address: &Address,
        slot: &[u8; 32],
        height: Height,
    ) -> Result<Option<[u8; 32]>, UndoError> {
        let mut from = self.undone(height.saturating_sub(1))?;
        let noted = from.next().and_then(|undo| undo.slots.get(&slot_key(address, slot)).copied());
        noted.map_or_else(|| self.slot_at(address, slot, height), Ok)
    }

    /// The present value of a slot; for a token, the holder's balance, or a fact about the asset.
    fn present_slot(&self, address: &Address, slot: &[u8; 32]) -> Option<[u8; 32]> {
        let Some((asset, holder)) = token_at(address).zip(holder_of(slot)) else {
            let asset = token_at(address).and_then(|asset| self.assets.get(asset.0 as usize));
            let fact = asset.and_then(|asset| fact_slot(slot, asset));
            return fact.or_else(|| self.places.contracts.slot(address, slot));
        };
        let account = self.places.accounts.get(&holder).filter(|_| asset != GAS_ASSET);
        units_slot(account.map_or(0, |account| account.balance(asset)))
    }

    /// What Ethereum saw of an account between the native phase and the contract phase of a block: what the block's
    /// first Ethereum transaction saw.
    ///
    /// # Errors
    /// [`UndoError`] if the state before this height is not kept.
    pub fn ethereum_account_within(&self, address: &Address, height: Height) -> Result<EthereumAccount, UndoError> {
        let mut from = self.undone(height.saturating_sub(1))?;
        let noted = from.next().and_then(|undo| undo.accounts.get(address).copied());
        noted.map_or_else(|| self.ethereum_account_at(address, height), |noted| Ok(shown(address, noted)))
    }

    /// Units for sale, after a block, of an offer that a contract placed; `None` if it does not rest.
    ///
    /// # Errors
    /// [`UndoError`] if the state after this height is not kept.
    pub fn offer_at(&self, pair: Pair, place: &Place, height: Height) -> Result<Option<Amount>, UndoError> {
        let noted = self.undone(height)?.find_map(|undo| undo.offer_before(&(pair, *place)));
        Ok(noted.unwrap_or_else(|| self.places.book.get(pair)?.get(place)))
    }

    /// Units for sale of an offer between the native phase and the contract phase of a block.
    ///
    /// # Errors
    /// [`UndoError`] if the state before this height is not kept.
    pub fn offer_within(&self, pair: Pair, place: &Place, height: Height) -> Result<Option<Amount>, UndoError> {
        let mut from = self.undone(height.saturating_sub(1))?;
        let noted = from.next().and_then(|undo| undo.offers.get(&(pair, *place)).copied());
        noted.map_or_else(|| self.offer_at(pair, place, height), Ok)
    }

    /// Facts about the token of an asset after a block: its valuation then, and the rest as it is now.
    ///
    /// # Errors
    /// [`UndoError`] if the state after this height is not kept.
    pub fn token_facts_at(&self, asset: AssetId, height: Height) -> Result<Option<TokenFacts>, UndoError> {
        let number = asset.0 as usize;
        let then = self.undone(height)?.next().map(|undo| undo.valuations.get(number).copied().flatten());
        Ok(self.assets.get(number).map(|asset| {
            let now = TokenFacts::of(asset);
            TokenFacts { valuation: then.unwrap_or(now.valuation), ..now }
        }))
    }

    /// Code that an account has, or had at a retained height.
    pub fn ethereum_code(&self, hash: &Digest) -> Option<EvmCode> {
        let released = || self.history.blocks.iter().find_map(|undo| undo.code.get(hash));
        let shown = || shown_code_of(hash);
        self.places
            .contracts
            .evm_code(hash)
            .or_else(shown)
            .or_else(|| released().map(|code| evm_code(code.clone().into())))
    }

    /// The digest of a block, if contracts can ask for it.
    pub fn recent_digest(&self, height: Height) -> Option<Digest> {
        let hashes = &self.places.contracts.head()?.hashes;
        let back = usize::try_from(self.height.checked_sub(height)?).ok()?;
        hashes.len().checked_sub(back + 1).map(|at| hashes[at])
    }
}
