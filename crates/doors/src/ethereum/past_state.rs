//! The state at a moment of the past, for executions without effect.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use ledger::contracts::ethereum::{self, B256, KECCAK_EMPTY, U256};
use ledger::contracts::{AccountInfo, BookFacts, EvmCode, EvmState, HolderFacts, TokenFacts, UndoError};
use ledger::{Pair, Place};
use primitives::{Address, Amount, AssetId, Digest, Height};

use super::wire::RpcError;
use crate::backend::{Backend, Moment};

/// The state at a moment, read by point reads.
pub(super) struct PastState {
    backend: Arc<dyn Backend>,
    moment: Moment,
    /// Number of listed assets.
    assets: usize,
    /// Accounts whose storage counts as empty.
    pub cleared: BTreeSet<Address>,
    /// The first read that failed.
    failed: Mutex<Option<UndoError>>,
}

impl PastState {
    pub fn new(backend: &Arc<dyn Backend>, moment: Moment) -> PastState {
        // What a block lists has no token before its end.
        let last = match moment {
            Moment::After(height) => height,
            Moment::Within(height) => height.saturating_sub(1),
        };
        let assets = backend.published().views().outline().listings.assets_after(last);
        PastState { backend: backend.clone(), moment, assets, cleared: BTreeSet::new(), failed: Mutex::default() }
    }

    /// Fails if a read failed.
    pub fn check(&self) -> Result<(), RpcError> {
        let failed = *self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    fn read<T: Default>(&self, read: Result<T, UndoError>) -> T {
        read.unwrap_or_else(|error| {
            self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            T::default()
        })
    }
}

impl EvmState for PastState {
    fn account(&self, _: u32, address: &ethereum::Address) -> Option<AccountInfo> {
        let account = self.read(self.backend.ethereum_account(&Address(address.0.0), self.moment));
        let has_code = account.code != Digest::default();
        let info = AccountInfo {
            balance: U256::from(account.wei),
            nonce: account.nonce,
            code_hash: if has_code { B256::new(account.code.0) } else { KECCAK_EMPTY },
            code: None,
            ..AccountInfo::default()
        };
        (!info.is_empty()).then_some(info)
    }

    fn slot(&self, _: u32, address: &ethereum::Address, slot: &U256) -> U256 {
        if self.cleared.contains(&Address(address.0.0)) {
            return U256::ZERO;
        }
        let read = self.backend.ethereum_slot(&Address(address.0.0), &slot.to_be_bytes(), self.moment);
        self.read(read).map_or(U256::ZERO, U256::from_be_bytes)
    }

    fn code(&self, _: u32, hash: &B256) -> EvmCode {
        if *hash == KECCAK_EMPTY {
            return EvmCode::default();
        }
        // An account names it, so it is missing only if its height has been forgotten since.
        let (Moment::After(height) | Moment::Within(height)) = self.moment;
        let code = self.backend.ethereum_code(&Digest(hash.0));
        self.read(code.ok_or(UndoError::Forgotten { height, first: height + 1 }))
    }

    /// Issued amounts, and when assets close, are those of the current state.
    fn token(&self, _: u32, asset: AssetId) -> Option<TokenFacts> {
        if asset.0 as usize >= self.assets {
            return None;
        }
        let (Moment::After(height) | Moment::Within(height)) = self.moment;
        self.read(self.backend.token_facts(asset, height))
    }

    /// The standing of holders is that of the height; how many offers they have is that of the current state.
    fn holder(&self, _: u32, asset: AssetId, account: &ethereum::Address) -> HolderFacts {
        let (Moment::After(height) | Moment::Within(height)) = self.moment;
        self.read(self.backend.holder_facts(asset, &Address(account.0.0), height))
    }

    /// Room for offers, and for their ends, is that of the current state.
    fn book(&self, _: u32) -> BookFacts {
        self.backend.book_facts(None).0
    }

    fn is_open(&self, _: u32, pair: Pair) -> bool {
        self.backend.book_facts(Some(pair)).1
    }

    fn ending_at(&self, _: u32, height: Height) -> u32 {
        self.backend.offers_ending_at(height)
    }

    fn resting(&self, _: u32, pair: Pair, place: &Place) -> Option<Amount> {
        self.read(self.backend.ethereum_offer(pair, place, self.moment))
    }

    fn block_hash(&self, _: u32, number: u64) -> B256 {
        self.backend.block_digest(number).map_or(B256::ZERO, |digest| B256::new(digest.0))
    }
}
