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

use super::offer_words::FIRST_CONTRACT_OFFER;
use super::shown::shown_code;
use super::slots::GAS_ASSET;
use super::state::{EthereumAccount, units_slot};
use super::tokens::balance_slot;
use crate::places::accounts::Account;
use crate::places::contracts::reserved::token_address;
use crate::places::contracts::{EvmCode, evm_code};
use crate::places::controls::HolderStanding;
use crate::places::offers::OrderBook;

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
    /// Valuations before the block of the assets that it gave another one.
    pub valuations: HashMap<AssetId, Option<Price>>,
    /// For holders of whom an issuer says something, their standing before.
    pub holders: HashMap<(AssetId, Address), HolderStanding>,
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
    pub(crate) fn offer_before(&self, offer: &(Pair, Place)) -> Option<Option<Amount>> {
        self.native_offers.get(offer).or_else(|| self.offers.get(offer)).copied()
    }

    /// The value of a slot before the block, if the block changed it.
    pub(crate) fn slot_before(&self, key: &SlotKey) -> Option<Option<[u8; 32]>> {
        self.native_slots.get(key).or_else(|| self.slots.get(key)).copied()
    }

    /// The account before the block, if the block changed it.
    pub(crate) fn before(&self, address: &Address) -> Option<EthereumAccount> {
        self.native.get(address).or_else(|| self.accounts.get(address)).copied()
    }

    fn len(&self) -> usize {
        let offers = self.native_offers.len() + self.offers.len() + self.valuations.len() + self.holders.len();
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
pub(crate) fn shown(address: &Address, account: EthereumAccount) -> EthereumAccount {
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
    pub(crate) fn push(&mut self, undo: Undo) {
        self.records += undo.len();
        self.blocks.push_back(Arc::new(undo));
        let is_full = |history: &History| {
            history.blocks.len() > HISTORY_BLOCKS || (history.records > HISTORY_RECORDS && history.blocks.len() > 1)
        };
        while is_full(self) {
            self.records -= self.blocks.pop_front().map_or(0, |undo| undo.len());
        }
    }

    /// The records above a height, the oldest first; `now` is the height of the last block.
    pub(crate) fn above(&self, now: Height, height: Height) -> Result<impl Iterator<Item = &Undo>, UndoError> {
        let above = now.checked_sub(height).ok_or(UndoError::Future(height))?;
        let first = now - self.blocks.len() as u64;
        if height < first {
            return Err(UndoError::Forgotten { height, first });
        }
        Ok(self.blocks.range(self.blocks.len() - above as usize..).map(Arc::as_ref))
    }

    /// Code that no account has any more, but one had at a retained height.
    pub(crate) fn released(&self, hash: &Digest) -> Option<EvmCode> {
        let code = self.blocks.iter().find_map(|undo| undo.code.get(hash))?;
        Some(evm_code(code.clone().into()))
    }
}
