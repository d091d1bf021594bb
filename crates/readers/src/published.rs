//! The published state of a node: one delta per block, and the summaries from which readers are answered.
//!
//! The node's publisher writes. A reader waits only for the publisher, and the publisher only for a reader that
//! copies a bounded answer. Readers do not access the ledger here, so that no question can delay a commit. Locks are
//! taken in this order: views, candles.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use ledger::contracts::{ContractReceipts, OfferEvent};
use ledger::{Batch, BlockReceipts, Ledger};
use primitives::{Digest, Height, Superblock, Transaction, TransactionId};
use tokio::sync::broadcast;

use crate::candles::Candles;
use crate::views::{CommittedBlock, FoundTransaction, Views};

/// Maximum number of blocks that a reader of the stream may fall behind.
pub const STREAM_BACKLOG: usize = 256;

/// Maximum number of announcements of pending Ethereum transactions that a reader may fall behind.
const PENDING_BACKLOG: usize = 1_024;

/// Symbol and decimals of each asset, by number. They never change; assets that are listed join them.
pub type AssetNames = Arc<Vec<(String, u8)>>;

/// See the module text.
pub struct Published {
    views: RwLock<Views>,
    candles: RwLock<Candles>,
    /// Symbol and decimals of each asset, in a lock of their own: whoever holds the views may ask for them.
    names: RwLock<AssetNames>,
    events: broadcast::Sender<Arc<CommittedBlock>>,
    pending: broadcast::Sender<Arc<[TransactionId]>>,
}

impl Published {
    /// Begins with the views of a recovered state.
    pub fn new(views: Views) -> Published {
        let (events, _) = broadcast::channel(STREAM_BACKLOG);
        let (pending, _) = broadcast::channel(PENDING_BACKLOG);
        let names = RwLock::new(names_of(&views));
        Published { views: RwLock::new(views), candles: RwLock::default(), names, events, pending }
    }

    /// Reverts to an earlier state, see [`Views::go_back`]. The remaining candles are those of recent blocks.
    pub fn go_back(&self, ledger: &Ledger, root: Digest, after_batch: Vec<OfferEvent>) -> bool {
        let mut views = self.views.write().unwrap_or_else(PoisonError::into_inner);
        let is_back = views.go_back(ledger, root, after_batch);
        self.rename(&views);
        let mut candles = Candles::default();
        views.batches().for_each(|batch| candles.add(batch.height, batch.time_ms, &batch.batch));
        *self.candles.write().unwrap_or_else(PoisonError::into_inner) = candles;
        is_back
    }

    /// Restarts with the views of an earlier state, without candles.
    pub fn begin_again(&self, views: Views) {
        self.rename(&views);
        *self.views.write().unwrap_or_else(PoisonError::into_inner) = views;
        *self.candles.write().unwrap_or_else(PoisonError::into_inner) = Candles::default();
    }

    /// Adds a committed block, with its native transactions in order and the receipts of its Ethereum transactions. A
    /// client that is told "committed" after this finds the block.
    pub fn commit(&self, committed: &CommittedBlock, transactions: &[&Transaction], contracts: &ContractReceipts) {
        let mut views = self.views.write().unwrap_or_else(PoisonError::into_inner);
        views.commit(committed, transactions, contracts);
        self.rename(&views);
        // Under the lock of the views, so that a holder of that lock sees both at one height.
        self.add_batch(committed.batch.height, committed.batch.time_ms, &committed.batch.batch);
    }

    /// Learns the names of assets that were listed.
    fn rename(&self, views: &Views) {
        if self.names().len() != views.outline().assets.len() {
            *self.names.write().unwrap_or_else(PoisonError::into_inner) = names_of(views);
        }
    }

    /// Symbol and decimals of each asset, by number.
    pub fn names(&self) -> AssetNames {
        self.names.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notifies the readers of the stream of a block.
    pub fn announce(&self, committed: Arc<CommittedBlock>) {
        // It is fine if there is no reader.
        drop(self.events.send(committed));
    }

    /// Adds a batch to the candles, in any order, each once.
    pub fn add_batch(&self, height: Height, time_ms: u64, batch: &Batch) {
        self.candles.write().unwrap_or_else(PoisonError::into_inner).add(height, time_ms, batch);
    }

    /// Adds what venues did in a block of the archive, in any order.
    pub fn remember_venues(&self, block: &Superblock, receipts: &BlockReceipts) {
        self.views.write().unwrap_or_else(PoisonError::into_inner).remember_venues(block, receipts);
    }

    /// Sets the state root after a block.
    pub fn set_state_root(&self, height: Height, root: Digest) {
        self.views.write().unwrap_or_else(PoisonError::into_inner).set_state_root(height, root);
    }

    /// A feed of committed blocks. A reader that falls 256 blocks behind misses some and is told so.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<CommittedBlock>> {
        self.events.subscribe()
    }

    /// Notifies listeners of new Ethereum transactions.
    pub fn announce_pending(&self, ids: &[TransactionId]) {
        if !ids.is_empty() && self.pending.receiver_count() > 0 {
            // The listeners may be gone.
            drop(self.pending.send(ids.into()));
        }
    }

    /// A feed of new Ethereum transactions.
    pub fn subscribe_pending(&self) -> broadcast::Receiver<Arc<[TransactionId]>> {
        self.pending.subscribe()
    }

    /// The place of a transaction.
    pub fn find(&self, id: &TransactionId) -> Option<FoundTransaction> {
        self.views().find(id)
    }

    /// Recent blocks, resting offers and the outline, all at one height.
    pub fn views(&self) -> RwLockReadGuard<'_, Views> {
        self.views.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The candles.
    pub fn candles(&self) -> RwLockReadGuard<'_, Candles> {
        self.candles.read().unwrap_or_else(PoisonError::into_inner)
    }
}

fn names_of(views: &Views) -> AssetNames {
    let name = |asset: &ledger::Asset| (asset.symbol.clone(), asset.decimals);
    Arc::new(views.outline().assets.iter().map(name).collect())
}
