//! Bodies and receipts of the newest blocks, cached when they are written (Smart Red Belly §3.4).
//!
//! Clients ask for a transaction right after they have sent it. A cache that is filled by reads would go to the disk
//! for that first question. This one is filled by writes, before anybody is told that the block is committed, and
//! only blocks that have left it are read from the archive. Reads from the archive do not enter it, so a client that
//! reads old history evicts nothing.
//!
//! *Properties.* Both caches are bounded, in transactions; each block counts for a hundred more; the newest block
//! always fits. Blocks enter in order of height, without gaps. The cache and the archive return the same values.
//!
//! **Deviations from the paper.** There, only a block body is found by its number, and a receipt by its transaction.
//! Here receipts stay together with the trie that proves them, so that a proof costs one path and not the hashing of a
//! block.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use ledger::{BlockReceipts, EthereumReceiptProof, ModifiedProof, ReceiptProof, ReceiptsTrie, SettlesProof};
use primitives::{Address, Digest, Height, TransactionId};

/// The weight of a block besides its transactions, so that empty ones are bounded too.
const BLOCK_WEIGHT: usize = 100;

/// The newest values by height.
pub struct Cache<T> {
    /// Maximum number of transactions; 0 keeps nothing.
    limit: usize,
    kept: RwLock<Kept<T>>,
}

struct Kept<T> {
    /// Height, weight and value.
    blocks: VecDeque<(Height, usize, Arc<T>)>,
    weight: usize,
}

impl<T> Cache<T> {
    /// A cache for blocks with this many transactions in total; 0 keeps nothing.
    pub fn new(limit: usize) -> Cache<T> {
        Cache { limit, kept: RwLock::new(Kept { blocks: VecDeque::new(), weight: 0 }) }
    }

    /// Adds the next block, and drops the oldest until all fit or only this one is left.
    pub fn insert(&self, height: Height, transactions: usize, value: Arc<T>) {
        if self.limit == 0 {
            return;
        }
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        let weight = transactions + BLOCK_WEIGHT;
        kept.weight += weight;
        kept.blocks.push_back((height, weight, value));
        while kept.blocks.len() > 1 && kept.weight > self.limit {
            kept.weight -= kept.blocks.pop_front().map_or(0, |(_, count, _)| count);
        }
    }

    /// Removes everything above a height, when a developers' chain reverts to it.
    pub fn cut_above(&self, height: Height) {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        while kept.blocks.back().is_some_and(|(above, _, _)| *above > height) {
            kept.weight -= kept.blocks.pop_back().map_or(0, |(_, count, _)| count);
        }
    }

    /// The value of a height, if it is cached.
    pub fn get(&self, height: Height) -> Option<Arc<T>> {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        let first = kept.blocks.front()?.0;
        let at = usize::try_from(height.checked_sub(first)?).ok()?;
        kept.blocks.get(at).map(|(_, _, value)| value.clone())
    }
}

/// The receipts of a block, and the trie whose root is signed.
pub struct ProvenReceipts {
    /// The outcome of each transaction, and the batch.
    pub receipts: BlockReceipts,
    /// The root of the trie.
    pub root: Digest,
    trie: Mutex<ReceiptsTrie>,
}

impl ProvenReceipts {
    /// Hashes the trie of a block's receipts.
    pub fn new(receipts: BlockReceipts) -> ProvenReceipts {
        let mut trie = ReceiptsTrie::new(&receipts);
        ProvenReceipts { root: trie.root(), receipts, trie: Mutex::new(trie) }
    }

    fn trie(&self) -> std::sync::MutexGuard<'_, ReceiptsTrie> {
        self.trie.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The proof that a transaction is, or is not, in the block, with its outcome.
    pub fn prove(&self, id: &TransactionId) -> ReceiptProof {
        self.trie().prove(id, &self.receipts)
    }

    /// The proof that an Ethereum transaction was, or was not, executed in the block, with its receipt.
    pub fn prove_ethereum(&self, id: &TransactionId) -> EthereumReceiptProof {
        self.trie().prove_ethereum(id, &self.receipts)
    }

    /// The settles of venues that counted in the block, with their verdicts and the proof.
    pub fn prove_settles(&self) -> SettlesProof {
        self.trie().prove_settles(&self.receipts)
    }

    /// The proof that the block changed an account, or did not.
    pub fn prove_modified(&self, account: &Address) -> ModifiedProof {
        self.trie().prove_modified(account)
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK_WEIGHT, Cache};
    use proptest::prelude::*;
    use std::sync::Arc;

    proptest! {
        #[test]
        fn keeps_the_newest_that_fit(limit in 0usize..1_000, sizes in prop::collection::vec(0usize..30, 1..30)) {
            let cache = Cache::new(limit);
            for (at, size) in sizes.iter().enumerate() {
                let height = at as u64 + 5;
                cache.insert(height, *size, Arc::new(height));
                let weight = |first: usize| sizes[first..=at].iter().map(|size| size + BLOCK_WEIGHT).sum::<usize>();
                let fits = |first: &usize| *first == at || weight(*first) <= limit;
                let first = (0..=at).find(fits).expect("the newest");
                for other in 0..=at {
                    let expected = (limit > 0 && other >= first).then_some(other as u64 + 5);
                    prop_assert_eq!(cache.get(other as u64 + 5).as_deref().copied(), expected);
                }
            }
            prop_assert!(cache.get(4).is_none() && cache.get(sizes.len() as u64 + 5).is_none());
        }
    }
}
